"""Writes down the kernels that each kind of work compiles, called before caller, with signatures.

Run as a module it brings the record of the package up to date: each kind of work is rehearsed by
itself, and what it loads, with all that this calls, is listed. Begin with an empty
``NUMBA_CACHE_DIR``: forms that were compiled before and that nothing asks for now would be listed.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import types

from evenkeel_kernels.build import signatures
from evenkeel_kernels.build.compile_ahead import PROCESSES
from evenkeel_kernels.build.jit import backend

REHEARSED = """
import sys
import evenkeel as ek
from evenkeel.simulate.generators import expansion
from evenkeel.methods.registry import METHODS
from evenkeel_kernels.build.inventory import _kernels
from evenkeel_kernels.build.jit import backend
from evenkeel_kernels.build.signatures import named

order = []
load = backend.KernelCache.load_overload

def noted(cache, *arguments):
    order.append(cache)
    return load(cache, *arguments)

backend.KernelCache.load_overload = noted
methods = [name for name, each in METHODS.items() if each.warmup == sys.argv[1]]
if "balance" in methods:  # what most people solve first
    ek.solve(expansion(partitions=25_000, nodes=300, zones=10), goals=ek.Goals(level=0.04))
if sys.argv[2] == "all":
    ek.warmup(methods=methods)
kernels = {id(kernel._cache): named(kernel) for kernel in _kernels()}
print(*dict.fromkeys(kernels[id(cache)] for cache in order if id(cache) in kernels))
"""


def loaded(work: str, much: str = "all") -> list[str]:
    """Name the kernels that a kind of work loads in a process of its own, in their order."""
    run = subprocess.run(
        [sys.executable, "-c", REHEARSED, work, much], text=True, capture_output=True, check=True
    )
    return run.stdout.splitlines()[-1].split()


def with_what_they_call(names: list[str]) -> list[str]:
    """Add the kernels that kernels call, each before the first that calls it."""
    seen: set[str] = set()
    found: list[str] = []

    def add(kernel: Any) -> None:
        name = signatures.named(kernel)
        if name not in seen:
            seen.add(name)
            for other in _called_by(kernel):
                add(other)
            found.append(name)

    for name in names:
        add(signatures.called(name))
    return found


def forms(kernel: Any, tuples: dict[str, list[str]]) -> list[list[str]]:
    """Spell the signatures of a kernel that are kept on disk, as far as they can be."""
    spelt = []
    for arguments, target, _ in kernel._cache._cache_file._load_index():
        if target == backend._target():
            try:
                spelt.append([text_of(each, tuples) for each in arguments])
            except ValueError:
                continue
    return sorted(spelt)


def text_of(argument: Any, tuples: dict[str, list[str]]) -> str:
    """Spell the type of an argument, and add to ``tuples`` what it is made of.

    Raises ValueError for a type that no kernel of the package takes today.
    """
    if isinstance(argument, types.IntegerLiteral | types.BooleanLiteral):
        return f"={argument.literal_value}"
    if isinstance(argument, types.Array):
        if (argument.layout, argument.mutable, argument.aligned) == ("C", True, True):
            return f"{text_of(argument.dtype, tuples)}:{argument.ndim}"
    elif isinstance(argument, types.NamedTuple | types.NamedUniTuple | backend.TuplePointer):
        made = argument.instance_class
        name = f"{made.__module__}.{made.__name__}".removeprefix(signatures.PACKAGE)
        fields = [text_of(field, tuples) for field in argument.types]
        if tuples.setdefault(name, fields) == fields:
            return name
    elif isinstance(argument, types.Integer | types.Float | types.Boolean):
        return np.dtype(argument.name).str[1:]
    raise ValueError(f"no text for {argument}")


def _called_by(kernel: Any) -> Iterator[Any]:
    function = kernel.py_func
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [each for each in code.co_consts if hasattr(each, "co_names")]
        for name in code.co_names:
            other = function.__globals__.get(name)
            if hasattr(other, "py_func"):
                yield other


def main() -> None:
    from evenkeel.methods.registry import METHODS

    os.environ[PROCESSES] = "1"  # others would compile what the record of before lists
    tuples: dict[str, list[str]] = {}
    spelt: dict[str, list[list[str]]] = {}
    work: dict[str, list[str]] = {}
    for each in dict.fromkeys(filter(None, (method.warmup for method in METHODS.values()))):
        found = with_what_they_call(loaded(each))
        for name in found:
            if name not in spelt:
                spelt[name] = forms(signatures.called(name), tuples)
        work[each] = [name for name in found if spelt[name]]
    record = {
        "tuples": dict(sorted(tuples.items())),
        "signatures": {name: spelt[name] for name in sorted(spelt) if spelt[name]},
        "work": work,
    }
    signatures.PLACE.write_text(_on_lines(record), encoding="utf-8")


def _on_lines(record: dict[str, dict[str, Any]]) -> str:
    """Write the record as JSON with a line for each entry, which a change shows apart."""
    parts = [
        f'"{part}": {{\n'
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
        + "\n}"
        for part, entries in record.items()
    ]
    return "{" + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    main()
