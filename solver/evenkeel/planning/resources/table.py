"""Resources: all finite quantities that actions share, as one flat table for the scheduler."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Charges = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]
"""Resource, change and amount, row by row."""


@dataclass(eq=False)
class Resources:
    """Collects what is finite, and what each of ``changes`` changes claims and gives back."""

    changes: int
    free: list[NDArray[np.float64]] = field(default_factory=list)
    kinds: list[tuple[str, int, int]] = field(default_factory=list)
    claims: list[Charges] = field(default_factory=list)
    gifts: list[Charges] = field(default_factory=list)
    size: int = 0

    def add(self, name: str, free: NDArray[np.float64]) -> int:
        """Add resources by the row, all of one kind; return the index of the first."""
        base = self.size
        flat = np.ascontiguousarray(free, np.float64).reshape(-1)
        self.kinds.append((name, base, free.shape[1] if free.ndim == 2 else 1))
        self.free.append(flat)
        self.size += len(flat)
        return base

    def claim(
        self,
        resource: NDArray[np.integer],
        change: NDArray[np.integer],
        amount: NDArray[np.float64],
    ) -> None:
        """Let changes take from resources as they start."""
        self.claims.append((resource.astype(np.int32), change.astype(np.int32), amount))

    def give(
        self,
        resource: NDArray[np.integer],
        change: NDArray[np.integer],
        amount: NDArray[np.float64],
    ) -> None:
        """Let changes give back to resources as they finish."""
        self.gifts.append((resource.astype(np.int32), change.astype(np.int32), amount))

    def borrow(
        self,
        resource: NDArray[np.integer],
        change: NDArray[np.integer],
        amount: NDArray[np.float64],
    ) -> None:
        """Let changes hold resources while they last."""
        self.claim(resource, change, amount)
        self.give(resource, change, amount)

    def keep(self, change: NDArray[np.integer]) -> None:
        """Let the change before each of some, which takes no time, hold what they will claim.

        So no other change takes it meanwhile. What is not free at the beginning cannot be kept.
        """
        kept = np.zeros(self.changes, bool)
        kept[change] = True
        free = np.concatenate([*self.free, np.zeros(0)])
        for resource, of, amount in list(self.claims):
            rows = np.flatnonzero(kept[of])
            rows = rows[amount[rows] <= free[resource[rows]]]
            self.borrow(resource[rows], of[rows] - 1, amount[rows])

    def rows(
        self, charges: list[Charges]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
        """Return charges by change: where each one's begin, the resources, and the amounts.

        A resource stands once in the row of a change, and those added last come last.
        """
        if not charges:
            return np.zeros(self.changes + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
        resource, change, amount = (np.concatenate(one) for one in zip(*charges, strict=True))
        key = change.astype(np.int64) * max(self.size, 1) + resource
        order = np.argsort(key, kind="stable")
        key, amount = key[order], amount[order]
        start = np.flatnonzero(np.diff(key, prepend=-1))
        if len(start) < len(key):
            key, amount = key[start], np.add.reduceat(amount, start)
        change, resource = np.divmod(key, max(self.size, 1))
        first = np.zeros(self.changes + 1, np.int64)
        np.cumsum(np.bincount(change, minlength=self.changes), out=first[1:])
        return first, resource.astype(np.int32), amount

    def place_of(self, resource: int) -> tuple[str, int, int]:
        """Return the kind of a resource, its row and its column."""
        name, base, width = next(one for one in reversed(self.kinds) if one[1] <= resource)
        return name, *divmod(resource - base, width)
