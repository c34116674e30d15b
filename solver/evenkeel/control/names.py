"""Names of two snapshots: whether they are equal, and the old number of each."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.names import Names


def same_names(one: Names, other: Names) -> bool:
    """Return whether names are the same, at once where they usually are.

    >>> same_names(Names(["a"], 1, ""), Names(["b"], 1, ""))
    False
    """
    if one is other:
        return True
    if len(one) != len(other):
        return False
    if one.counted and other.counted:
        return len(one) == 0 or one[0] == other[0]
    return one == other


def numbers(before: Names, now: Names) -> NDArray[np.int32]:
    """Return what the number of each name was before."""
    if same_names(before, now):
        return np.arange(len(now), dtype=np.int32)
    if before.counted and now.counted and before[:1] == now[:1]:
        found = np.arange(len(now), dtype=np.int32)
        found[len(before) :] = -1
        return found
    places = {name: i for i, name in enumerate(before)}
    return np.fromiter((places.get(name, -1) for name in now), np.int32, len(now))
