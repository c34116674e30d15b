"""Compute the cache key of a kernel: a digest of its source and of all modules it imports.

A compiled kernel has the kernels it calls, and the constants it names, frozen into its machine
code. numba stamps a cached kernel with the content of its own file only, so that a kernel outlives
a change in a helper it took from another file and goes on answering with the old helper. The stamp
made here is a digest over all files of the same package, and of this one, that the module imports,
directly or not.
"""

import ast
import hashlib
import importlib.util
import os
import re
import sys
from functools import cache
from pathlib import Path

# An import statement as it stands at the start of a line, with its brackets or continuations.
# Reading these alone is much faster than parsing whole files, and importing has to be fast; a line
# of prose that begins like one is no import to the parser, or at worst stamps one file too many.
_IMPORT = re.compile(
    rb"^[ \t]*((?:from|import)\b(?:[^\n(\\]*\([^)]*\)|(?:[^\n\\]|\\\n)*))", re.MULTILINE
)


def imports_digest(module: str) -> bytes:
    """Digest the sources of ``module`` and of all it imports from its own package and this one.

    ``module``: dotted name of a module whose top-level package is loaded. Returns SHA-256 over the
    names and contents of the files; empty for a module that is in no package, such as ``__main__``.

    >>> len(imports_digest("evenkeel_kernels.build.jit"))
    32
    >>> imports_digest("__main__")
    b''
    """
    own = module.partition(".")[0]
    roots = {
        package: tuple(getattr(sys.modules.get(package), "__path__", ()))
        for package in (own, __name__.partition(".")[0])
    }
    if not roots[own]:
        return b""
    contents: dict[str, bytes] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        file = None if name in contents else _file_of(name, roots[name.partition(".")[0]])
        if file is not None:
            state = os.stat(file)  # noqa: PTH116 (a Path costs more than the call)
            contents[name], imported = _read(name, file, state.st_mtime_ns, state.st_size)
            waiting += [other for other in imported if other.partition(".")[0] in roots]
    whole = hashlib.sha256()
    for name in sorted(contents):
        whole.update(name.encode() + b"\0" + contents[name])
    return whole.digest()


@cache
def _file_of(name: str, roots: tuple[str, ...]) -> str | None:
    """Find the file of a module by its name; None where the name is no module of the package."""
    inside = name.split(".")[1:]
    for root in roots:
        place = Path(root, *inside)
        for file in (place / "__init__.py", place.with_suffix(".py")):
            if file.is_file():
                return str(file)
    return None


@cache
def _read(name: str, file: str, mtime_ns: int, size: int) -> tuple[bytes, tuple[str, ...]]:
    """Digest a file and name what it imports; an edited file has another time, and is read anew."""
    source = Path(file).read_bytes()
    package = name if file.endswith("__init__.py") else name.rpartition(".")[0]
    imported: list[str] = []
    for found in _IMPORT.finditer(source):
        try:
            statements = ast.parse(found[1]).body
        except SyntaxError:
            continue
        for statement in statements:
            imported += _names(statement, package)
    return hashlib.sha256(source).digest(), tuple(imported)


def _names(statement: ast.stmt, package: str) -> list[str]:
    """List the modules that an import may load; ``from a import b`` may mean ``a.b``."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    if isinstance(statement, ast.ImportFrom):
        dots = "." * statement.level
        base = importlib.util.resolve_name(dots + (statement.module or ""), package)
        return [base, *(f"{base}.{alias.name}" for alias in statement.names)]
    return []
