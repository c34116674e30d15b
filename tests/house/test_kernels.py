"""Every kernel that Python calls is held by a test: one that names it, or a twin of its name."""

import ast
import re
from collections.abc import Iterator

from tests.support import places

KERNELS = places.ROOT / "kernels" / "evenkeel_kernels"
DECORATORS = {"jit", "lean", "inlined"}

NAMED_BY_NO_TEST: dict[str, str] = {}
"""Kernels that wait for a test of their own; what is not needed here any more must go."""


def kernels() -> dict[str, str]:
    """Every kernel that Python may call, by module and name."""
    found = {}
    for file in KERNELS.rglob("*.py"):
        module = ".".join(file.relative_to(KERNELS).with_suffix("").parts)
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(one, ast.Name) and one.id in DECORATORS for one in node.decorator_list
            ):
                found[f"{module}.{node.name}"] = node.name
    return found


def used() -> set[str]:
    """What the solver calls of the kernels, by module and name."""
    found = set()
    for file in (places.ROOT / "solver").rglob("*.py"):
        tree = ast.parse(file.read_text())
        modules: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(KERNELS.name):
                inside = (node.module or "").removeprefix(KERNELS.name).removeprefix(".")
                for alias in node.names:
                    whole = f"{inside}.{alias.name}".removeprefix(".")
                    found.add(whole)
                    modules[alias.asname or alias.name] = whole
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found.add(f"{modules.get(node.value.id)}.{node.attr}")
    return found


def words() -> set[str]:
    """Every word of every test and twin."""
    return {word for text in texts() for word in re.findall(r"\w+", text)}


def texts() -> Iterator[str]:
    """The text of every file of the tests but this one."""
    for file in (places.ROOT / "tests").rglob("*.py"):
        if file.name != "test_kernels.py":
            yield file.read_text()


def test_every_kernel_that_python_calls_is_held_by_a_test():
    known, named = kernels(), words()
    assert len(known) > 100
    bare = {one for one in used() & known.keys() if known[one] not in named}
    assert bare == NAMED_BY_NO_TEST.keys(), sorted(bare ^ NAMED_BY_NO_TEST.keys())
