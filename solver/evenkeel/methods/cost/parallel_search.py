"""Two searches side by side that hand each other their best.

Each has its own state and its own random numbers. They cool on their own; between two coolings they
wait for each other, take the best placement that either has found, and heat up again from there, to
temperatures of their own. At the end each polishes what is best, and warms it up a little where
nothing helps any more. So the outcome depends on the seed and the work, not on how many threads
there were to do it.

The placement that came in is cooled, too, from a low temperature and with a high price of moves at
first, since what costs least to reach is near it. A search that began hot has moved far more
than that and does not find the way back.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.cost.annealing import Annealing
from evenkeel.methods.cost.local_search import polish
from evenkeel.methods.shared.stopping import Progress, StopReason, Watch
from evenkeel_kernels.core.problem import Problem
from evenkeel_kernels.core.state import total_cost
from evenkeel_kernels.cost import cost_state as search_walk

SEARCHES = 2
"""Searches side by side."""

ALONE = 4_000_000
"""Work limit under which one search has it all."""

SLICES = 4
"""Slices between two calls of the callback, or two turns of searches that share a thread."""


GLANCE = 0.1
"""Seconds between two calls of the callback in the end."""

ENDLESS = 1 << 62
"""More slices than there will ever be."""


@dataclass(frozen=True)
class Cooling:
    """One cooling of every search."""

    share: float
    heights: tuple[float, ...]
    from_best: bool


COOLINGS = (
    Cooling(0.03, (0.4, 0.4), from_best=False),  # an early answer, and where it freezes
    Cooling(0.72, (0.0, 0.0), from_best=False),
    Cooling(0.1, (0.4, 0.3), from_best=True),
)
"""What they leave of the budget is for polishing."""


@dataclass
class Portfolio:
    """Searches over one problem, and the limits that they share."""

    searches: list[Annealing]
    watch: Watch
    start: tuple[NDArray[np.int32], float] = field(init=False)

    def __post_init__(self) -> None:
        """Remember where the searches start."""
        first = self.searches[0]
        self.start = first.state.node.copy(), float(first.walk.total[0])

    @property
    def best(self) -> search_walk.CostState:
        """The state of the search that has found the best placement; the first one of equals."""
        return min((one.walk for one in self.searches), key=lambda walk: float(walk.total[1]))

    @property
    def work(self) -> int:
        """Candidates priced by all of them."""
        return sum(one.work for one in self.searches)

    def run(self) -> StopReason:
        """Cool down again and again until a limit is reached."""
        ends = 0.0
        try:
            with _threads(len(self.searches)) as pool:
                for cooling in COOLINGS:
                    begins, ends = ends, ends + cooling.share
                    if stop := self._cool(cooling, begins, pool):
                        return stop
                if stop := self._finish(pool):
                    return stop
        except KeyboardInterrupt:
            return "interrupted"
        return self.watch.reason or "work"

    def _cool(
        self, cooling: Cooling, begins: float, pool: ThreadPoolExecutor | None
    ) -> StopReason | None:
        """Take all searches through one cooling; why to stop, or None."""
        node, cost = self.start
        if cooling.from_best and self.best.total[1] < search_walk.NEVER:
            node, cost = self.best.best.copy(), float(self.best.total[1])
        for i, one in enumerate(self.searches):
            one.visit(node, cost)
            one.begin_cooling(cooling.heights[i])
        alone = pool is not None or len(self.searches) == 1
        slices = ENDLESS if alone and self.watch.callback is None else SLICES
        ends = begins + cooling.share
        while True:
            going = [one for one in self.searches if self._done(one) < ends]
            if not going:
                return None
            self._advance(going, begins, cooling.share, slices, pool)
            if stop := self._look_up():
                return stop

    def _advance(
        self,
        searches: list[Annealing],
        begins: float,
        share: float,
        slices: int,
        pool: ThreadPoolExecutor | None,
    ) -> None:
        """Let each of the searches do so many slices, or come to the end of this cooling."""

        def advance(one: Annealing) -> None:
            for _ in range(slices):
                done = self._done(one)
                if done >= begins + share or self.watch.halted:
                    return
                one.slice((done - begins) / share)

        self._each(advance, searches, pool)

    def _finish(self, pool: ThreadPoolExecutor | None) -> StopReason | None:
        """Spend what is left on polishing the best; why to stop, or None."""
        best = self.best
        if best.total[1] == search_walk.NEVER:
            return self._look_up()
        found = best.best.copy(), float(best.total[1])

        def polish_best(one: Annealing) -> None:
            one.restart(*found)
            Intensification(one, self.watch, self._done, self.start).run()

        stop = None
        with self._under_way(polish_best, self.searches, pool) as futures:
            while wait(futures, GLANCE).not_done:
                stop = stop or (self._look_up() if self.watch.callback is not None else None)
                self.watch.halted |= stop is not None
        return stop or self._look_up()

    def _each(
        self,
        work: Callable[[Annealing], None],
        searches: list[Annealing],
        pool: ThreadPoolExecutor | None,
    ) -> None:
        """Do something with each of the searches, side by side where there are threads."""
        with self._under_way(work, searches, pool):
            pass

    @contextmanager
    def _under_way(
        self,
        work: Callable[[Annealing], None],
        searches: list[Annealing],
        pool: ThreadPoolExecutor | None,
    ) -> Iterator[list[Future[None]]]:
        """Have something done with each of the searches, and wait for it in the end.

        Without threads all is done at once. What interrupts the caller halts the searches.
        """
        if pool is None:
            for one in searches:
                work(one)
            yield []
            return
        # in this context, so that what they compile is not counted as searching
        futures = [pool.submit(copy_context().run, work, one) for one in searches]
        try:
            yield futures
            for future in futures:
                future.result()
        except BaseException:
            self.watch.halted = True
            raise

    def _done(self, one: Annealing) -> float:
        """Part of its budget that a search has used up; a clock counts only with a time limit."""
        done = 0.0
        if one.work_limit is not None:
            done = one.work / one.work_limit if one.work_limit else 1.0
        if self.watch.time_limit is not None:
            limit = self.watch.time_limit - self.watch.reserve
            done = max(done, self.watch.seconds / limit if limit > 0.0 else 1.0)
        return done

    def _look_up(self) -> StopReason | None:
        """Tell the callback where the search is; why to stop, or None."""
        if self.watch.callback is None:
            return self.watch.reason
        walk = self.best
        home = self.searches[0].problem.partitions.home
        return self.watch.stop(
            Progress(
                stage="search",
                work=self.work,
                seconds=self.watch.seconds,
                moves=int(np.count_nonzero(walk.best != home)),
                cost=float(walk.total[1]),
            )
        )


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _threads(searches: int) -> Iterator[ThreadPoolExecutor | None]:
    """Threads for the searches, or None where one thread has to do; all have ended afterwards."""
    if searches < 2 or processors() < 2:
        yield None
        return
    with ThreadPoolExecutor(searches, "evenkeel-search") as pool:
        yield pool


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
