"""Import the public names of a package lazily, on first use."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def imported(where: str) -> Any:
    """Import what a table names as ``"module:name"``, or as ``"module"``."""
    module, _, name = where.partition(":")
    found = import_module(module)
    return getattr(found, name) if name else found


def on_first_use(
    package: str, tables: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package that imports names when they are used."""
    # tables have the names of each module with spaces between; one without is such a name itself
    where = {name: f"{module}:{name}" for module, names in tables.items() for name in names.split()}
    where |= {module.rpartition(".")[2]: module for module, names in tables.items() if not names}
    space = vars(sys.modules[package])

    def used(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        space[name] = found = imported(where[name])
        return found

    def names() -> list[str]:
        return sorted({*where, *space["__all__"], *(name for name in space if name[:2] == "__")})

    return used, names
