"""Flat: a short list of nodes or partitions as bytes, on its way to another process.

Pickle takes longer to write and to read an array than a scenario takes to describe.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Flat = bytes | NDArray[Any]
"""The bytes of int32 or float64, or an array of another kind as it is."""


def flat(array: NDArray[Any], dtype: type[np.generic]) -> Flat:
    """Return what ``unflat`` makes the array of again, given the same dtype."""
    return array.tobytes() if array.dtype == dtype and array.ndim == 1 else array


def unflat(given: Flat, dtype: type[np.generic]) -> NDArray[Any]:
    """Return the array, read-only where it travelled as bytes."""
    return np.frombuffer(given, dtype) if isinstance(given, bytes) else given
