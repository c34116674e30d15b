"""What a golden schema provides, and the one comparison that all of them share."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

Document: TypeAlias = object
"""A file as it was loaded: the decoded JSON of ``.json`` and ``.json.gz``, the arrays by name of
``.npz``, the text of ``.txt``, and for a folder the texts of its ``.txt`` files by file name."""


class _Missing:
    def __repr__(self) -> str:
        return "nothing expected"


MISSING = _Missing()  # stands for an expected answer that the file does not hold


@dataclass(frozen=True, slots=True)
class Case:
    """One answer of a file.

    ``agrees`` is None where the file holds no expected answer, so that there was nothing to agree
    with. A case that cannot be computed is a case that disagrees, and ``detail`` says why: leaving
    it out would skip it silently.
    """

    name: str
    agrees: bool | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Replay:
    """What a schema made of a file.

    ``answers`` is the document with everything that was expected replaced by what was computed, in
    the type it was loaded in; it is written only when asked for. ``figures`` are lines to print
    below the verdict.
    """

    cases: Sequence[Case]
    answers: Document
    figures: Sequence[str] = ()


class Schema(Protocol):
    """The three names of a schema module; the module itself is the object."""

    NAME: str

    def recognises(self, path: Path, document: Document) -> bool:
        """Whether the file is of this schema; cheap, and true for one schema only."""
        ...

    def replay(self, path: Path, document: Document) -> Replay:
        """Compute every case; ``document`` may be changed, nobody else reads it afterwards."""
        ...


def compared(name: str, expected: object, computed: object, *, rel_tol: float = 0.0) -> Case:
    """Judge ``computed`` against ``expected``, which is MISSING where the file does not hold it.

    Examples
    --------
    >>> compared("c1", {"a": [1, 2]}, {"a": [1, 3]})
    Case(name='c1', agrees=False, detail='a[1]: expected 2, computed 3')
    >>> compared("c1", MISSING, 3).agrees is None
    True
    """
    if expected is MISSING:
        return Case(name, None)
    differences = _differences("", plain(expected), plain(computed), rel_tol)
    if not differences:
        return Case(name, True)
    shown = "; ".join(differences[:3])
    more = f"; and {len(differences) - 3} more" if len(differences) > 3 else ""
    return Case(name, False, shown + more)


def plain(value: object) -> object:
    """Turn arrays, numpy scalars and tuples into what JSON has, all the way down."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    return value


def _differences(where: str, expected: object, computed: object, rel_tol: float) -> list[str]:
    if isinstance(expected, dict) and isinstance(computed, dict):
        found = []
        for key in [*expected, *(key for key in computed if key not in expected)]:
            inner = f"{where}.{key}" if where else str(key)
            pair = expected.get(key, MISSING), computed.get(key, MISSING)
            found += _differences(inner, *pair, rel_tol)
        return found
    if isinstance(expected, list) and isinstance(computed, list):
        if len(expected) != len(computed):
            lengths = f"expected {len(expected)} items, computed {len(computed)}"
            return [_at(where, f"{lengths}: {_short(expected)}, {_short(computed)}")]
        return [
            difference
            for i, pair in enumerate(zip(expected, computed, strict=True))
            for difference in _differences(f"{where}[{i}]", *pair, rel_tol)
        ]
    if _same(expected, computed, rel_tol):
        return []
    return [_at(where, f"expected {_short(expected)}, computed {_short(computed)}")]


def _same(expected: object, computed: object, rel_tol: float) -> bool:
    if isinstance(expected, bool) or isinstance(computed, bool):
        return expected is computed
    if isinstance(expected, int | float) and isinstance(computed, int | float):
        both_nan = math.isnan(expected) and math.isnan(computed)
        return both_nan or math.isclose(expected, computed, rel_tol=rel_tol)
    return expected == computed


def _at(where: str, what: str) -> str:
    return f"{where}: {what}" if where else what


def _short(value: object) -> str:
    if value is MISSING:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
