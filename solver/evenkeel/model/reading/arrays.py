"""Convert input to validated arrays of one dtype in C order, read-only for users.

An array that already has the right dtype and layout is used as it is, without a copy, and never
written to. Kernels want writable arrays (numba compiles a read-only array a second time), so the
library can make its views writable again.
"""

import sys
from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.errors import FaultList

Flags = NDArray[np.bool_]
Ints = NDArray[np.integer]
Ints32 = NDArray[np.int32]
Ints64 = NDArray[np.int64]
Reals = NDArray[np.float64]
Roles = NDArray[np.uint8]
Rows = NDArray[np.intp]  # arrays by what they hold; ``Rows`` are indices
# share by which sums, rates and times may differ by rounding, as where sums have another order
ROUNDING = 1e-9

LISTED_FAULTS = 10  # bad entries of one array that are listed one by one
# what amounts may sum to, so that no product of a sum and a count of replicas is infinite
MOST_IN_ALL = 1e300


@dataclass(frozen=True, eq=False)
class Columns:
    """Fields of a data class that are arrays of one length, an entry for each row."""

    def take(self, rows: slice | Ints | Flags) -> Self:
        """Return some of the rows."""
        return type(self)(*(getattr(self, one.name)[rows] for one in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of all parts."""
        return cls(*(np.concatenate([getattr(part, one.name) for part in parts])
                     for one in fields(cls)))  # fmt: skip


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view


def writable(view: NDArray[Any]) -> NDArray[Any]:
    """Return a writable C-contiguous view of a frozen array, for a kernel that only reads it."""
    if not view.flags.c_contiguous:
        return np.array(view, order="C")
    writable = view.view()
    try:
        writable.flags.writeable = True
    except ValueError:
        return view.copy()
    return writable


def list_entries(
    faults: FaultList,
    path: str,
    array: NDArray[Any],
    bad: NDArray[np.bool_],
    message: str,
    rows: NDArray[np.int64] | None = None,
) -> None:
    """Note the entries of an array where ``bad`` is true, by row and slot where ``rows`` start."""
    if not bad.any():
        return
    where = np.argwhere(bad)
    for index in where[:LISTED_FAULTS]:
        at = f"[{', '.join(str(int(i)) for i in index)}]" if len(index) else ""
        if rows is not None:
            row = int(np.searchsorted(rows, index[0], side="right")) - 1
            at = f"[{row}][{int(index[0] - rows[row])}]"
        faults.add(f"{path}{at}", array[tuple(index)].item(), message)
    if len(where) > LISTED_FAULTS:
        faults.add(path, f"{len(where) - LISTED_FAULTS} more entries", message)


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of what may become an array.

    >>> shape_of([[1, 2], [3, 4]]), shape_of([[1, 2], [3]]), shape_of(7)
    ((2, 2), (2,), ())
    """
    try:
        return np.shape(value)
    except (ValueError, TypeError, OverflowError):
        return (len(value),) if isinstance(value, Sized) else ()


def masked_in(value: object) -> NDArray[np.bool_] | None:
    """Return which entries of a masked array are masked; None where none is."""
    masked = sys.modules.get("numpy.ma")  # loaded wherever such an array exists
    if masked is None or not isinstance(value, masked.MaskedArray):
        return None
    hidden: NDArray[np.bool_] = masked.getmaskarray(value)
    return hidden if hidden.any() else None


AXES = {  # axes of an argument, for the message on a wrong shape
    "capacity": "a row for each node, with a column for each dimension",
    "watermark": "a row for each node, with a column for each dimension",
    "load": "a row for each partition, with a column for each dimension",
    "leader_load": "a row for each partition, with a column for each dimension",
    "non_voter_load": "a row for each partition, with a column for each dimension",
    "placement": "a row for each partition, with the nodes of its replicas",
}


def as_array(
    faults: FaultList,
    path: str,
    value: ArrayLike,
    dtype: type[np.generic],
    shape: tuple[int | None, ...],
) -> NDArray[Any]:
    """Take an array in: right dtype, C order, expected shape.

    >>> as_array(FaultList(), "capacity", [[1, 2]], np.float64, (None, 2))
    array([[1., 2.]])
    """
    fallback = np.zeros(tuple(0 if n is None else n for n in shape), dtype)
    try:
        given = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        faults.add(path, type(value).__name__, f"is not an array: {error}")
        return fallback
    hidden = masked_in(value)
    if hidden is not None:
        list_entries(
            faults, path, given, hidden, "is masked, and no value stands for a missing one"
        )
        return fallback
    if given.shape == (0,) and fallback.size == 0 and shape[:1] in ((0,), (None,)):
        return fallback
    if given.dtype == object or given.dtype.kind in "USMmVc":
        faults.add(path, str(given.dtype), f"must be an array of numbers, as {np.dtype(dtype)}")
        return fallback
    if given.ndim != len(shape) or any(
        n is not None and n != m for n, m in zip(shape, given.shape, strict=True)
    ):
        # the number of rows is unknown where a number came instead of an array
        unknown = (None, 0) if given.ndim == 0 else (None,)
        wanted = ", ".join("any" if n in unknown else str(n) for n in shape)
        stated = f": {AXES[path]}" if path in AXES else ""
        faults.add(path, given.shape, f"needs shape ({wanted}){stated}")
        return fallback
    if given.dtype == dtype and given.flags.c_contiguous:
        return given
    # a long double beyond float64 becomes infinite, which is for the caller to judge
    with np.errstate(over="ignore"):
        if _unfit(faults, path, given, np.dtype(dtype)):
            return fallback
        return np.ascontiguousarray(given, dtype=dtype)


def _unfit(faults: FaultList, path: str, given: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Note the numbers that would become others in an array of another dtype."""
    if dtype.kind == "b" and given.dtype.kind != "b":
        bad, message = (given != 0) & (given != 1), "needs true or false"
    elif dtype.kind in "iu" and given.dtype.kind == "b":
        faults.add(path, str(given.dtype), "needs whole numbers, not true or false")
        return True
    elif dtype.kind in "iu" and given.dtype.kind == "f":
        number = given.astype(np.float64, copy=False)
        bad, message = ~np.isfinite(number) | (number != np.floor(number)), "needs a whole number"
        if not bad.any():
            # the greatest integer may be no float, but the number after it always is
            limits = np.iinfo(dtype)
            bad = (number < limits.min) | (number >= float(limits.max) + 1.0)
            message = f"does not fit {dtype}"
    elif dtype.kind in "iu" and given.dtype.kind in "iu":
        limits = np.iinfo(dtype)
        bad, message = (given < limits.min) | (given > limits.max), f"does not fit {dtype}"
    else:
        return False
    list_entries(faults, path, given, bad, message)
    return bool(bad.any())


def column(
    faults: FaultList,
    length: int,
    path: str,
    given: ArrayLike | None,
    dtype: type[np.generic],
    default: Any,
) -> NDArray[Any]:
    """Take in one value for each node, partition or group, or one for all of them.

    >>> column(FaultList(), 3, "weight", 2, np.float64, 1.0)
    array([2., 2., 2.])
    """
    if given is not None:
        single = shape_of(given) == ()
        array = as_array(faults, path, given, dtype, () if single else (length,))
        if not faults.about(path):
            return read_only(np.full(length, array, dtype) if single else array)
    return read_only(
        default if isinstance(default, np.ndarray) else np.full(length, default, dtype)
    )


def check_amounts(
    faults: FaultList, path: str, array: NDArray[np.float64], *, infinite: bool
) -> None:
    """Note entries that are NaN or negative, and infinite ones unless they are allowed."""
    if array.size == 0:
        return
    low, high = array.min(), array.max()
    # min and max carry a NaN through, so two passes settle the ordinary case
    if low >= 0.0 and high <= MOST_IN_ALL / array.size:
        return
    list_entries(faults, path, array, np.isnan(array), "must be a number")
    list_entries(faults, path, array, array < 0.0, "must not be negative")
    if not infinite:
        list_entries(faults, path, array, np.isinf(array) & (array > 0.0), "must be finite")
    finite = array[np.isfinite(array)]
    if finite.max(initial=0.0) > MOST_IN_ALL / max(finite.size, 1):
        with np.errstate(over="ignore"):
            total = float(finite.sum())
        if not total <= MOST_IN_ALL:
            faults.add(path, total, f"must sum to at most {MOST_IN_ALL:g}")


def node_or_none(nodes: int) -> str:
    """Return the description of a valid node number.

    >>> node_or_none(6), node_or_none(0)
    ('must be a node, 0 to 5, or -1 for none', 'must be -1 for none: there are no nodes')
    """
    if nodes == 0:
        return "must be -1 for none: there are no nodes"
    return f"must be a node, 0 to {nodes - 1}, or -1 for none"


def check_range(
    faults: FaultList,
    path: str,
    array: NDArray[Any],
    low: int,
    high: int,
    what: str,
    rows: NDArray[np.int64] | None = None,
) -> None:
    """Note integer entries outside ``low <= entry < high``, as ``list_entries`` does."""
    if array.size and (array.min() < low or array.max() >= high):
        list_entries(faults, path, array, (array < low) | (array >= high), what, rows)


def items_of(faults: FaultList, path: str, given: Any) -> list[Any]:
    """Return the items of a list."""
    lone = isinstance(given, np.ndarray) and given.ndim == 0
    if lone or not isinstance(given, Collection) or isinstance(given, str | bytes | Mapping):
        faults.add(path, given, "must be a list")
        return []
    return list(given)


def entries_of(faults: FaultList, path: str, given: Any) -> dict[str, Any]:
    """Return the entries of a mapping by name.

    >>> entries_of(FaultList(), "spread", {"zone": 1})
    {'zone': 1}
    """
    if not isinstance(given, Mapping):
        faults.add(path, given, "must be a mapping")
        return {}
    for key in given:
        if not isinstance(key, str):
            faults.add(f"{path}[{key!r}]", key, "must be a string")
    return {key: value for key, value in given.items() if isinstance(key, str)}
