"""The house: which floor may import which, who owns a heavy package, and names of files.

A module imports from its own room and from floors below its own. Every import counts, inside
functions and below ``if TYPE_CHECKING`` too, and so does a string that is the name of a module,
because that is how an import is put off.
"""

import ast
import functools
import graphlib
import importlib.util
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.house.parsed import parsed
from tests.support import places

ROOT = places.ROOT
SOURCES = (ROOT / "solver", ROOT / "kernels")

FLOORS = (
    {"evenkeel_kernels"},
    {"evenkeel.model"},
    {"evenkeel.measure"},
    {"evenkeel.methods"},
    {"evenkeel.planning"},
    {"evenkeel.result_rows"},
    {"evenkeel.verdict"},
    {"evenkeel.result"},
    {"evenkeel.solving"},
    {"evenkeel.session"},
    {"evenkeel.systems"},
    {"evenkeel.control"},
    {"evenkeel.simulate"},
    {"evenkeel.studies", "evenkeel.options"},
    {"evenkeel.view"},
    {"evenkeel.install", "evenkeel.showing"},
    {"evenkeel"},  # the face: what a user imports by name
    {"evenkeel.cli"},
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

OPEN_TO_ALL_WINGS = {
    "evenkeel_kernels": {"build", "core"},
    "evenkeel.methods": {"shared", "registry", "contract", "options"},
    "evenkeel.systems": {
        "csv_text", "documents", "expressions", "folders", "json_text", "kubectl_tables",
        "printed", "yaml_text", "native", "node_states", "notes", "number_lists", "one_way",
        "payload", "plans", "registry", "sources",
    },
}  # fmt: skip
"""What every wing of a house may import, beside itself."""

BETWEEN_WINGS = {
    ("exact", "levelling"): "exact starts from where the search ends",
    ("levelling", "leaders"): "who leads within groups is a flow",
    ("balance", "levelling"): "balance chooses between the searches",
    ("balance", "cost"): "balance chooses between the searches",
    ("balance", "exact"): "balance calls CP-SAT where search falls short",
}
"""The arrows between wings; there are none between wings of kernels."""

NUMPY_ONLY = {
    "evenkeel.measure", "evenkeel.planning.replay", "evenkeel.systems.roadef.reassignment",
}  # fmt: skip
"""They judge the others, so they share no code with kernels."""

THROUGH_THE_REGISTRY = {"evenkeel.planning", "evenkeel.control", "evenkeel.simulate"}
CONTRACT = {f"evenkeel.methods.{name}" for name in ("registry", "contract", "run", "options")}
"""What methods take and return, and their options: plain data, no algorithm."""

HOMES = {
    "numba": {"evenkeel_kernels"},
    "scipy": {"evenkeel.methods", "evenkeel.planning"},
    "ortools": {"evenkeel.methods", "evenkeel.studies"},
    "msgspec": {"evenkeel.systems", "evenkeel.cli"},
    "rich": {"evenkeel.view", "evenkeel.cli"},
    "yaml": {"evenkeel.systems"},
    "matplotlib": {"evenkeel.view"},
    "shtab": {"evenkeel.cli"},
    "narwhals": {"evenkeel.model"},
}
"""The rooms that may import a package at all; numpy is at home everywhere."""

ONLY_INSIDE_FUNCTIONS = {
    "scipy", "ortools", "rich", "matplotlib", "yaml", "pandas", "narwhals", "shtab"
}  # fmt: skip
DISTRIBUTED_AS = {"yaml": "pyyaml"}
"""Packages that are imported by another name than they are installed by."""

VAGUE = {"utils", "util", "common", "misc", "helpers", "helper", "tools", "stuff"}


class Import(NamedTuple):
    """One import of a module: what, where, and whether loading the module performs it."""

    target: str
    line: int
    at_load: bool


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of both roots by its dotted name."""
    for root in SOURCES:
        for file in sorted(root.rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            yield ".".join(parts).removesuffix(".__init__"), file


KNOWN = dict(modules())


@functools.cache
def imports(source: str, module: str, *, is_package: bool = False) -> list[Import]:
    """Find every import in ``source``, resolved to absolute module names."""
    package = module if is_package else module.rpartition(".")[0]
    found: list[Import] = []

    def visit(node: ast.AST, at_load: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, node.lineno, at_load) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            dots = "." * node.level
            base = importlib.util.resolve_name(dots + (node.module or ""), package)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.append(Import(inner if inner in KNOWN else base, node.lineno, at_load))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = node.value.partition(":")[0]
            if named in KNOWN and "." in named:
                found.append(Import(named, node.lineno, False))
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for inside in node.body:
                visit(inside, False)
            for inside in node.orelse:
                visit(inside, at_load)
        else:
            inside_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for inside in ast.iter_child_nodes(node):
                visit(inside, at_load and not inside_function)

    visit(parsed(source), True)
    return found


def room(module: str) -> str:
    """The room a module is in; a folder that the house does not know is no room."""
    parts = module.split(".")
    if module == "evenkeel.__main__":
        return "evenkeel.cli"
    if parts[0] == "evenkeel" and len(parts) > 1:
        inner = ".".join(parts[:2])
        is_folder = len(parts) > 2 or KNOWN.get(module, Path()).name == "__init__.py"
        return inner if is_folder or inner in FLOOR else "evenkeel"
    return parts[0]


def within(module: str, places: set[str]) -> bool:
    """Whether ``module`` is one of ``places`` or inside one."""
    return any(module == place or module.startswith(place + ".") for place in places)


def breach(module: str, imported: Import) -> str | None:
    """Why an import breaks the contract; None where it does not."""
    target, own = imported.target, room(module)
    top = target.partition(".")[0]
    if own not in FLOOR:
        return f"{own} is on no floor"
    if top in {"evenkeel", "evenkeel_kernels"}:
        theirs = room(target)
        if theirs not in FLOOR:
            return f"{theirs} is on no floor"
        if theirs != own and FLOOR[theirs] >= FLOOR[own]:
            return f"floor {FLOOR[own]} reaches up to {target} on floor {FLOOR[theirs]}"
        if top == "evenkeel_kernels" and within(module, NUMPY_ONLY):
            return f"judges the kernels and shares {target} with them"
        if (crossed := crossing(module, target)) is not None:
            return crossed
        if own in THROUGH_THE_REGISTRY and theirs == "evenkeel.methods" and target not in CONTRACT:
            return f"reaches {target} past the registry"
        return None
    if top in sys.stdlib_module_names or top == "numpy":
        return None
    if within(module, NUMPY_ONLY):
        return f"{top} where only numpy may be"
    if top in ONLY_INSIDE_FUNCTIONS and imported.at_load:
        return f"{top} is imported as the module loads"
    if top in HOMES and own not in HOMES[top]:
        return f"{top} is not at home here"
    return (
        None if DISTRIBUTED_AS.get(top, top) in declared() else f"{top} is no declared dependency"
    )


def wing(module: str) -> tuple[str, str] | None:
    """The house of wings that a module is in, and its wing there; None elsewhere."""
    for house in OPEN_TO_ALL_WINGS:
        if module.startswith(house + "."):
            return house, module.removeprefix(house + ".").partition(".")[0]
    return None


def crossing(module: str, target: str) -> str | None:
    """Why an import from one wing to another breaks the contract; None where it does not."""
    here, there = wing(module), wing(target)
    if here is None or there is None or here[0] != there[0] or here[1] == there[1]:
        return None
    house, theirs = there
    if theirs in OPEN_TO_ALL_WINGS[house] or here[1] == "registry":
        return None
    if (here[1], theirs) in BETWEEN_WINGS:
        return None
    return f"reaches {target} in another wing"


@functools.cache
def declared() -> set[str]:
    """The packages that the project file names, extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project.get("optional-dependencies", {}).values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    return {re.match(r"[\w.-]+", line)[0].lower().replace("-", "_") for line in lines}


def test_every_import_goes_down():
    broken = [
        f"{module}:{imported.line}: {why}"
        for module, file in KNOWN.items()
        for imported in imports(file.read_text(), module, is_package=file.name == "__init__.py")
        if (why := breach(module, imported))
    ]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(
    ("module", "source", "says"),
    [
        ("evenkeel_kernels.toy", "import evenkeel", "reaches up"),
        ("evenkeel_kernels.cost.toy", "import evenkeel_kernels.levelling.repair", "another wing"),
        ("evenkeel_kernels.core.toy", "import evenkeel_kernels.cost.annealing", "another wing"),
        (
            "evenkeel.systems.ceph.crush.toy",
            "import evenkeel.systems.helix.crush.tree",
            "another wing",
        ),
        ("evenkeel.methods.levelling.toy", "import evenkeel.methods.exact", "another wing"),
        ("evenkeel.model.toy", "def f():\n    from evenkeel.measure import x", "reaches up"),
        ("evenkeel.model.toy", "if TYPE_CHECKING:\n    import evenkeel.view", "reaches up"),
        ("evenkeel.model.toy", "from ..measure import audit", "reaches up"),
        ("evenkeel.methods.toy", "from evenkeel import systems", "reaches up"),
        ("evenkeel.systems.toy", "import evenkeel.view.x", "reaches up"),
        (
            "evenkeel.measure.toy",
            "from evenkeel_kernels.build.jit import jit",
            "judges the kernels",
        ),
        ("evenkeel.measure.toy", "LATER = 'evenkeel_kernels.build.jit:jit'", "judges the kernels"),
        ("evenkeel.planning.replay", "import evenkeel_kernels.build.jit", "judges the kernels"),
        ("evenkeel.measure.toy", "import numba", "only numpy"),
        ("evenkeel.simulate.toy", "import evenkeel.methods.levelling.run", "past the registry"),
        ("evenkeel.odd.toy", "import numpy", "no floor"),
        ("evenkeel.model.toy", "import evenkeel.odd.toy", "no floor"),
        ("evenkeel.methods.toy", "import numba", "not at home"),
        ("evenkeel.methods.toy", "import scipy.optimize", "as the module loads"),
        ("evenkeel.methods.toy", "class A:\n    import ortools", "as the module loads"),
        ("evenkeel.model.toy", "def f():\n    import scipy", "not at home"),
        ("evenkeel.model.toy", "import msgspec", "not at home"),
        ("evenkeel.toy", "import numba", "not at home"),
        ("evenkeel.toy", "import evenkeel.cli", "reaches up"),
        ("evenkeel.systems.toy", "import simplejson", "no declared dependency"),
    ],
)
def test_the_contract_sees_a_breach(module, source, says):
    whys = [breach(module, imported) for imported in imports(source, module)]
    assert any(why and says in why for why in whys), whys


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("evenkeel_kernels.toy", "import numba\nfrom evenkeel_kernels.build.jit import jit"),
        ("evenkeel.model.toy", "from evenkeel.model.cluster import Cluster"),
        ("evenkeel.measure.toy", "import numpy as np\nfrom evenkeel.model.cluster import Cluster"),
        ("evenkeel.planning.toy", "def f():\n    from scipy.optimize import linprog"),
        ("evenkeel.__main__", "from evenkeel.cli import main"),
        ("evenkeel.methods.toy", "from evenkeel_kernels.build.jit import jit"),
        ("evenkeel.methods.toy", "def f():\n    from ortools.sat.python import cp_model"),
        ("evenkeel.methods.toy", "if TYPE_CHECKING:\n    from ortools.sat.python import x"),
        ("evenkeel.simulate.toy", "from evenkeel.methods.registry import find"),
        ("evenkeel.control.toy", "from evenkeel.methods.options import Waged"),
        ("evenkeel.cli.main", "from evenkeel.solving import solve\ndef f():\n    import rich"),
        ("evenkeel", "from evenkeel.model.cluster import Cluster"),
    ],
)
def test_the_contract_lets_the_rest_pass(module, source):
    whys = [breach(module, imported) for imported in imports(source, module)]
    assert whys
    assert not any(whys)


def test_no_module_imports_itself_around_a_corner():
    graph = {
        module: {
            imported.target
            for imported in imports(file.read_text(), module, is_package=file.name == "__init__.py")
            if imported.at_load and imported.target in KNOWN and imported.target != module
        }
        for module, file in KNOWN.items()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as cycle:
        pytest.fail("import cycle: " + " > ".join(cycle.args[1]))


def test_a_module_imports_a_name_once_and_before_it_defines_any():
    wrong = []
    for module, file in KNOWN.items():
        names, defines = set(), False
        for one in parsed(file.read_text()).body:
            is_block = isinstance(one, ast.If) and "TYPE_CHECKING" in ast.unparse(one.test)
            for imported in one.body if is_block else [one]:
                if not isinstance(imported, ast.Import | ast.ImportFrom):
                    continue
                here = {alias.asname or alias.name for alias in imported.names}
                wrong += [f"{module}:{one.lineno}: {here & names}"] * (
                    defines or bool(here & names)
                )
                names |= here
            defines |= isinstance(one, ast.FunctionDef | ast.ClassDef | ast.Assign)
    assert not wrong


def test_every_exception_between_wings_is_used():
    used = {
        (here[1], there[1])
        for module, file in KNOWN.items()
        for imported in imports(file.read_text(), module, is_package=file.name == "__init__.py")
        if (here := wing(module)) and (there := wing(imported.target)) and here[0] == there[0]
    }
    assert set(BETWEEN_WINGS) <= used, set(BETWEEN_WINGS) - used


def test_files_are_named_for_what_they_hold():
    files = [file for name in ("solver", "kernels", "bench", "tests") for file in python(name)]
    vague = [
        str(file) for file in files if VAGUE & set(file.relative_to(ROOT).with_suffix("").parts)
    ]
    assert not vague, f"names that say nothing: {vague}"


def python(name: str) -> Iterator[Path]:
    """The Python files of one top folder."""
    return (ROOT / name).rglob("*.py")


def test_importing_evenkeel_loads_nothing_heavy():
    code = textwrap.dedent(
        """
        import sys, evenkeel
        heavy = {"numba", "scipy", "ortools", "rich", "pandas", "matplotlib", "evenkeel_kernels"}
        print(*sorted(heavy & set(sys.modules)))
        """
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
