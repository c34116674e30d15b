"""The door to whole numbers: loads rounded up, capacities rounded down, one scale a dimension."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DECIMALS = 6
"""Loads with so many decimals stay exact."""

WIDEST = 2.0**34
"""Loads may add up to so much where that keeps them exact."""

FINEST = 2.0**26
"""Otherwise no dimension's loads add up to more: larger coefficients are not handled safely."""

NEAR = 1e-9
"""What is this close to a whole number, relative to its size, is taken for it."""


@dataclass(frozen=True)
class Scale:
    """How one dimension becomes whole numbers."""

    factor: float

    @classmethod
    def of(cls, loads: NDArray[np.float64], total: float) -> "Scale":
        """Choose the finest scale that keeps loads exact, or just the finest.

        Examples
        --------
        >>> scale = Scale.of(np.array([0.1, 0.25]), 10.0)
        >>> scale.up(0.25) * 2 == scale.up(0.1) * 5
        True
        """
        if total < 1e-200:
            return cls(1.0)
        most = total

        def finer(factor: float) -> float:
            return float(2.0 ** max(np.floor(np.log2(FINEST / (most * factor))), 0.0))

        for decimals in range(DECIMALS + 1):
            factor = 10.0**decimals
            scaled = loads * factor
            if most * factor > WIDEST:
                break
            if np.all(np.abs(scaled - np.rint(scaled)) <= NEAR * np.maximum(scaled, 1.0)):
                return cls(factor * finer(factor))
        return cls(float(2.0 ** np.floor(np.log2(FINEST / most))))

    def up(self, load: float) -> int:
        """Scale a load."""
        scaled = min(load * self.factor, 4.0 * WIDEST)
        return int(np.ceil(scaled - NEAR * max(scaled, 1.0)))

    def down(self, capacity: float) -> int:
        """Scale a capacity."""
        scaled = min(capacity * self.factor, 4.0 * WIDEST)
        return int(np.floor(scaled + NEAR * max(scaled, 1.0)))
