"""Signatures of kernels as text, and the record of those that each kind of work compiles.

Types are named as numpy and numba name them: ``f8:2`` is a matrix of doubles, ``i4`` a scalar,
``=1`` a literal, ``core.problem.Problem`` a named tuple whose fields the record lists.
"""

import ast
import importlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import from_dtype, types

from evenkeel_kernels.build.jit import backend

PACKAGE = "evenkeel_kernels."
PLACE = Path(__file__).with_name("signatures.json")


class Record(NamedTuple):
    """What is compiled, called before caller."""

    tuples: Mapping[str, Sequence[str]]  # named tuples and the types of their fields

    # kernels, and the types of their arguments for each compiled form
    signatures: Mapping[str, Sequence[Sequence[str]]]

    work: Mapping[str, Sequence[str]]  # kinds of work, and the kernels that they need


@cache
def recorded() -> Record:
    """Read the record that comes with the package."""
    return Record(**json.loads(PLACE.read_text(encoding="utf-8")))


def named(kernel: Any) -> str:
    """Name a kernel as the record does."""
    function = kernel.py_func
    return f"{function.__module__}.{function.__name__}".removeprefix(PACKAGE)


def called(name: str) -> Any:
    """Return the kernel of a name, or whatever else its module has by that name."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(PACKAGE + module), attribute)


def type_of(text: str, tuples: Mapping[str, Sequence[str]]) -> Any:
    """Return the type that a text stands for."""
    if text.startswith("="):
        return types.literal(ast.literal_eval(text[1:]))
    if text in tuples:
        fields = tuple(type_of(field, tuples) for field in tuples[text])
        return backend.tuple_type(called(text), fields)
    scalar, _, dimensions = text.partition(":")
    kind = from_dtype(np.dtype(scalar))
    return types.Array(kind, int(dimensions), "C") if dimensions else kind
