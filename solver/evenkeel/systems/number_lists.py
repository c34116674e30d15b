"""Many short lists of whole numbers, read at once."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MOST_DIGITS = 9
"""Of a number that is read at once."""


def whole_numbers(text: bytes) -> NDArray[np.int64]:
    """Return the numbers of a text, divided by commas, that is known to hold nothing else."""
    return np.fromstring(text.decode(), np.int64, sep=",")


def number_lists(texts: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return how many numbers each list has, and all of them; None if some are no lists."""
    width = np.zeros(len(texts), np.int64)
    some = np.fromiter(map(bool, texts), np.bool_, len(texts))
    joined = b";".join(filter(None, texts) if not some.all() else texts) + b";"
    if len(joined) == 1:
        return width, np.zeros(0, np.int64)
    codes = np.frombuffer(joined, np.uint8)
    ends, lasts = (
        np.flatnonzero((codes < ord("0")) | (codes > ord("9"))),
        np.flatnonzero(codes == ord(";")),
    )
    digits = np.diff(ends, prepend=-1) - 1
    if digits.min() < 1 or digits.max() > MOST_DIGITS:
        return None
    width[some] = np.diff(np.searchsorted(ends, lasts), prepend=-1)
    return width, whole_numbers(joined[:-1].replace(b";", b","))
