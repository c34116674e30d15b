"""Functions outside kernels are short and take few arguments."""

import ast
from collections.abc import Iterator

from tests.house.parsed import parsed
from tests.support import places

MOST_LINES = 80
"""Of code: what stands below the docstring, without comments and empty lines."""
MOST_PARAMETERS = 10

DOORS = {
    "model/cluster.py:from_arrays": "the model's door, by keyword",
    "planning/throttle.py:__init__": "every limit there is, by keyword",
    "strategies/cockroach/intake.py:cockroach_cluster": "the same in its own words",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def lines_of(function: Function, source: list[str]) -> int:
    """Count the lines of code of a function."""
    documented = ast.get_docstring(function) is not None and len(function.body) > 1
    first = function.body[int(documented)].lineno - 1
    lines = [line.strip() for line in source[first : function.end_lineno]]
    return sum(bool(line) and not line.startswith("#") for line in lines)


def parameters_of(function: Function) -> int:
    """Count the parameters of a function, itself or its class apart."""
    asked = function.args
    named = [one.arg for one in (*asked.posonlyargs, *asked.args, *asked.kwonlyargs)]
    return len([name for name in named if name not in {"self", "cls"}])


def too_large() -> Iterator[str]:
    """Every function beyond the limits."""
    root = places.ROOT / "solver" / "evenkeel"
    for file in sorted(root.rglob("*.py")):
        source = file.read_text()
        for node in ast.walk(parsed(source)):
            if isinstance(node, Function) and (
                lines_of(node, source.splitlines()) > MOST_LINES
                or parameters_of(node) > MOST_PARAMETERS
            ):
                yield f"{file.relative_to(root)}:{node.name}"


def test_functions_are_short_and_take_few_arguments():
    assert set(too_large()) == DOORS.keys()


def test_lines_and_parameters_are_counted():
    source = (
        'def f(self, a, *, b=1):\n    """Say.\n\n    More.\n    """\n\n    # why\n    return 1\n'
    )
    (function,) = parsed(source).body
    assert lines_of(function, source.splitlines()) == 1
    assert parameters_of(function) == 2
