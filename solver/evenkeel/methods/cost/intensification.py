"""The end of a search: what is best is polished, and varied where nothing helps any more.

It is warmed up a little and cooled again. And the placement that came in is cooled from where it is
cold, with moves that are dear at first: what costs least to reach is near it. A search that came
from the hot side has moved far more than that, and does not find the way back.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.cost.annealing import Annealing
from evenkeel.methods.cost.local_search import polish
from evenkeel.methods.shared.stopping import Watch
from evenkeel_kernels.core.problem import Problem
from evenkeel_kernels.core.state import total_cost
from evenkeel_kernels.cost import cost_state as search_walk

REHEAT = (0.7, 0.6, 0.5, 0.65, 0.55)
"""Parts of the way down to which what is polished is warmed up, in turn."""

NEAR_START = (
    (0.7, 0.0),
    (0.5, 0.03),
    (0.8, 0.0),
    (0.5, 0.01),
    (0.6, 0.0),
    (0.3, 0.03),
    (0.7, 0.003),
)
"""Parts of the way down from which the placement that came in is cooled, in turn; and what a move
costs at least then, as a part of what an average replica costs above all watermarks."""

SHORT = 256
"""Slices of such a cooling."""

NEAR = 1e-4
"""Part of the cost within which placements near the one that came in are worth going on with."""

POLISHED = 8_000_000
"""Candidates that polishing looks at before something else has its turn."""

OVERSHOT = 1 << 20
"""By how much it may pass that, since what it has begun it ends."""


@dataclass
class Intensification:
    """The end of one search.

    Parameters
    ----------
    search : Annealing
        At the best placement so far.
    watch : Watch
        Limits of time.
    done : callable
        Part of its budget that a search has used up.
    start : tuple of (ndarray of int32, shape (K,), float)
        The placement that came in, and what it costs.
    """

    search: Annealing
    watch: Watch
    done: Callable[[Annealing], float]
    start: tuple[NDArray[np.int32], float]

    def run(self) -> None:
        """Go on until the budget is used up, and leave the search at the best placement."""
        walk = self.search.walk
        near_start, rough, turn = True, True, 0
        while not self._is_over():
            if rough:
                rough = not self._polish()
            best = walk.best.copy(), float(walk.total[1])
            try:
                if near_start and turn % 2 == 0:
                    self._cool_from_start(*NEAR_START[turn // 2 % len(NEAR_START)])
                    changed = near_start = walk.total[1] <= best[1] + NEAR * abs(best[1])
                else:
                    self.search.visit(*best)
                    self._cool(REHEAT[turn // 2 % len(REHEAT)])
                    changed = walk.total[1] < best[1]
                still_rough = changed and not self._polish()
            except BaseException:
                self.search.restart(*best)
                raise
            turn += 1
            if walk.total[1] > best[1]:
                self.search.restart(*best)
            else:
                rough = still_rough

    def _is_over(self) -> bool:
        return self.watch.halted or self.done(self.search) >= 1.0

    def _cool(self, height: float) -> None:
        """Cool once, quickly, from part of the way down."""
        self.search.begin_cooling(height)
        for i in range(SHORT):
            if self._is_over():
                return
            self.search.slice(i / SHORT)

    def _cool_from_start(self, height: float, dear: float) -> None:
        """Cool the placement that came in, with moves that are dear, and price what was found."""
        search, walk = self.search, self.search.walk
        problem = search.problem
        factor = max(1.0, dear * search.mean_size / max(_cheapest_move(problem), 1e-300))
        moves = problem.moves._replace(
            move_cost=problem.moves.move_cost * factor,
            distance_weight=problem.moves.distance_weight * factor,
        )
        search.problem = problem._replace(moves=moves)
        search.walk = walk._replace(spare=walk.spare * factor)
        try:
            self._restart_from(self.start[0])
            self._cool(height)
        finally:
            search.problem, search.walk = problem, walk
        self._restart_from(walk.best.copy())

    def _restart_from(self, node: NDArray[np.int32]) -> None:
        """Restart from a placement that has not been priced."""
        search = self.search
        search.visit(node, search_walk.NEVER)
        search.restart(node, total_cost(search.problem, search.state))

    def _polish(self) -> bool:
        """Polish what is best for a while; whether nothing helps any more."""
        search, walk = self.search, self.search.walk
        left = POLISHED
        if search.work_limit is not None:
            left = min(left, search.work_limit - search.work - OVERSHOT)
        if left <= 0:
            return False
        seed = int(walk.random[0] >> np.uint64(1))
        done = polish(search.problem, search.state, walk, self.watch, left, seed)
        walk.tally[search_walk.EVALUATED] += done.work
        return done.finished


def _cheapest_move(problem: Problem) -> float:
    """Least that one move costs, if it costs anything."""
    cost = problem.moves.move_cost
    return float(cost[cost > 0.0].min(initial=np.inf))
