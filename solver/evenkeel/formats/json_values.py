"""Numbers and labels on their way between arrays and JSON, which has no word for ``inf`` or NaN."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import Fault, FaultList, InvalidInput


def encoded(document: msgspec.Struct) -> bytes:
    """Return a document as JSON.

    Parameters
    ----------
    document : Struct
        The document.

    Returns
    -------
    bytes
        UTF-8, on one line.

    Raises
    ------
    InvalidInput
        If a text in it is not Unicode.
    """
    try:
        return msgspec.json.encode(document) + b"\n"
    except UnicodeEncodeError as error:
        raise InvalidInput([Fault("cluster", error.object, "cannot be written as UTF-8")]) from None


def listed(array: NDArray[Any]) -> list[Any]:
    """Return an array as a list in which what JSON cannot say is None.

    Parameters
    ----------
    array : ndarray
        Numbers; infinite or NaN ones become None.

    Returns
    -------
    list
        Nested as the array is.
    """
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        finite = np.isfinite(array)
        array = array.astype(object)
        array[~finite] = None
    values: list[Any] = array.tolist()
    return values


def labels_listed(array: NDArray[Any]) -> list[Any]:
    """Return labels as a list in which a missing one is None.

    Parameters
    ----------
    array : ndarray, shape (N,)
        Strings, "" for none, or integers, -1 for none.

    Returns
    -------
    list
        With None for none.
    """
    none = "" if array.dtype.kind == "U" else -1
    return [None if label == none else label for label in array.tolist()]


def labels_array(labels: Sequence[str | int | None]) -> NDArray[Any]:
    """Return labels as ``Cluster.from_arrays`` takes them.

    Parameters
    ----------
    labels : sequence of str, int or None
        One per node.

    Returns
    -------
    ndarray, shape (N,)
        Integers if no label is a text, else strings.
    """
    if set(map(type, labels)) - {type(None)} == {int}:
        return np.array([-1 if label is None else label for label in labels], np.int64)
    return np.array(["" if label is None else str(label) for label in labels], np.str_)


def opened_rows(
    faults: FaultList, path: str, rows: Sequence[Sequence[Any]], width: int, missing: float
) -> NDArray[np.float64]:
    """Return rows of numbers as a table, noting rows of the wrong length.

    Parameters
    ----------
    faults : FaultList
        Where faults are noted.
    path : str
        Place of the rows in the file; row ``i`` is ``path[i]``.
    rows : sequence of sequence of float or None
        As decoded.
    width : int
        Numbers in every row.
    missing : float
        What None stands for.

    Returns
    -------
    ndarray of float64, shape (len(rows), width)
        Zeros in rows that are faulty.
    """
    if set(map(len, rows)) - {width}:
        for i, row in enumerate(rows):
            if len(row) != width:
                faults.add(f"{path}[{i}]", len(row), f"needs {width} numbers")
        rows = [row if len(row) == width else [0.0] * width for row in rows]
    # numpy reads None as NaN
    table = np.fromiter(chain.from_iterable(rows), np.float64, len(rows) * width)
    if missing == missing:
        table[np.isnan(table)] = missing
    return table.reshape(len(rows), width)


def distances(values: Sequence[float | Sequence[float]] | None) -> Any:
    """Return distances as ``Cluster.from_arrays`` takes them.

    Parameters
    ----------
    values : sequence or None
        One per level, or a row per node; no row at all where there are no nodes.

    Returns
    -------
    sequence, ndarray of shape (0, 0), or None
        The same.
    """
    return np.zeros((0, 0)) if values is not None and len(values) == 0 else values
