"""How few replicas a node that is too full can lose: a covering problem, solved with its proof.

Whatever leaves has to cover the excess in all dimensions at once. Prices of the dimensions make one
of them, and tell how many of the largest replicas it takes at least; where fractions of replicas
are what makes so few suffice, one of them is supposed to leave, and then to stay. The cases in
which prices decide are the proof.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds.certificate import Case, Cover

MOST_CASES = 64
"""Cases of one proof; where more are needed, none is given."""

WHOLE = 1e-7
"""A share of a replica that is so close to a whole one is one."""

MARGIN = 1e-7
"""By how much the excess has to be missed for a case to be decided."""


@dataclass
class _Search:
    """A search for a proof that ``count`` replicas do not cover the excess, 1 in each column.

    Parameters
    ----------
    share : ndarray of float64, shape (m, k)
        Part of the excess that each replica covers, 1 at most.
    count : int
        Replicas that may leave.
    out_of_time : callable
        Whether to give up.
    """

    share: NDArray[np.float64]
    count: int
    out_of_time: Callable[[], bool]

    def cases(self) -> list[tuple[NDArray[np.float64], list[int], list[int]]] | None:
        """Return the price, those that leave, and those that stay, of every case; or None."""
        found = []
        open_cases: list[tuple[list[int], list[int]]] = [([], [])]
        while open_cases:
            leaves, stays = open_cases.pop()
            price, fraction = self._relaxed(leaves, stays)
            if price is not None:
                found.append((price, leaves, stays))
                continue
            if fraction is None or len(found) + len(open_cases) >= MOST_CASES or self.out_of_time():
                return None
            open_cases += [(leaves, [*stays, fraction]), ([*leaves, fraction], stays)]
        return found

    def _relaxed(
        self, leaves: list[int], stays: list[int]
    ) -> tuple[NDArray[np.float64] | None, int | None]:
        """Return prices that decide a case; else a replica to split it by, None if it is covered.

        The most that so many replicas cover of the dimension they cover least, in fractions, is a
        linear program with as many rows as dimensions; its multipliers are the prices.
        """
        from scipy.optimize import linprog

        replicas, dimensions = self.share.shape
        upper = np.ones(replicas)
        lower = np.zeros(replicas)
        lower[leaves], upper[stays] = 1.0, 0.0
        if len(leaves) > self.count:
            return np.ones(dimensions), None
        solved = linprog(
            np.append(np.zeros(replicas), -1.0),
            A_ub=np.vstack(
                [
                    np.column_stack([-self.share.T, np.ones(dimensions)]),
                    np.append(np.ones(replicas), 0.0),
                ]
            ),
            b_ub=np.append(np.zeros(dimensions), float(self.count)),
            bounds=np.column_stack([np.append(lower, 0.0), np.append(upper, 2.0)]),
            method="highs",
        )
        if solved.x is None:
            return None, None
        price = np.maximum(-solved.ineqlin.marginals[:dimensions], 0.0)
        if self._decided(price, leaves, stays):
            return price, None
        if solved.x[-1] < 1.0:
            return None, None  # too close to tell
        taken = solved.x[:-1]
        split = np.flatnonzero((taken > WHOLE) & (taken < 1.0 - WHOLE))
        whole = self.share[taken >= 1.0 - WHOLE].sum(0)
        spare = self.count - int((taken >= 1.0 - WHOLE).sum())
        if len(split) == 0 or any(
            (whole + self.share[list(some)].sum(0) >= 1.0).all()
            for some in combinations(split.tolist(), min(spare, len(split)))
        ):
            return None, None
        return None, int(split[np.argmin(np.abs(taken[split] - 0.5))])

    def _decided(self, price: NDArray[np.float64], leaves: list[int], stays: list[int]) -> bool:
        """Whether the largest replicas by price miss the excess."""
        value = self.share @ price
        free = np.delete(value, [*leaves, *stays])
        largest = np.sort(free)[::-1][: self.count - len(leaves)].sum()
        return bool(value[leaves].sum() + largest < (1.0 - MARGIN) * price.sum())


def least_losses(
    node: int,
    partition: NDArray[np.intp],
    weight: NDArray[np.float64],
    excess: NDArray[np.float64],
    known: Cover,
    out_of_time: Callable[[], bool],
) -> Cover:
    """Prove that a node must lose more replicas than is known, as many more as can be.

    References
    ----------
    Branch and bound with surrogate duality for knapsack constraints: F. Glover, "Surrogate
    constraints", Operations Research 16, 1968; Martello, Toth, Knapsack Problems, 1990, section 2.

    Examples
    --------
    >>> known = Cover(0, 1, (Case(np.ones(2)),))
    >>> apart = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    >>> cover = least_losses(0, np.arange(3), apart, np.ones(2), known, lambda: False)
    >>> cover.count, len(cover.cases)
    (2, 1)
    """
    over = excess > 0.0
    if not over.any() or len(partition) == 0:
        return known
    share = weight[:, over] / excess[over]
    while known.count < len(partition) and not out_of_time():
        found = _Search(share, known.count, out_of_time).cases()
        if found is None:
            break
        cases = []
        for price, leaves, stays in found:
            full = np.zeros(len(excess))
            full[over] = price / excess[over]
            named = (tuple(int(partition[i]) for i in some) for some in (leaves, stays))
            cases.append(Case(full, *named))
        known = Cover(node, known.count + 1, tuple(cases))
    return known
