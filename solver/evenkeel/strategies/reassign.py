"""Minimising a weighted sum: an annealing search, planned over the budget and cut into slices.

The search cools down several times, each time more slowly. The first coolings are short: they give
an answer early, the very first without heating up at all, and show at which temperatures the cost
falls; the last one spends its time there. While it is hot only large replicas take part: what costs
less than the temperature would only make noise.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost
from evenkeel.model.placement import Placement
from evenkeel.strategies.problem import compile_problem, compile_state
from evenkeel.strategies.registry import Outcome, Request
from evenkeel.strategies.stopping import Progress, StopReason, Watch
from evenkeel_kernels import search, search_walk
from evenkeel_kernels.problem import Problem, State
from evenkeel_kernels.state import total_cost

SLICE = 1 << 15
"""Candidates between two looks at the clock."""

DEFAULT_WORK = 20_000_000
"""Candidates where neither a work nor a time limit is given."""

COOLINGS = ((0.03, 0.4), (0.17, 0.0), (0.8, 0.0))
"""Share of the budget that each cooling gets, and the part of the way down at which it starts."""

STEPS = 48
"""Temperatures of one cooling, in geometric progression."""

EVEN_SHARE = 0.2
"""Part of a cooling that is spread evenly over all temperatures, whatever was learnt."""

HOTTEST = 0.3
"""First temperature, as a part of what an average replica costs above all watermarks."""

COLDEST = 1e-7
"""Last temperature at the latest, as a part of the first one."""

SMALLEST = 5.0
"""Replicas that cost less than so many temperatures, above all watermarks, wait for the cold."""

FEWEST = 0.05
"""Part of the replicas, the largest, that takes part at any temperature."""

FINE = (3.0, 100.0)
"""Fine per unit above capacity, in units of the dimension's weight, when hot and when cold."""

FINED_BY = 0.5
"""Part of a cooling, in steps, after which the fines have reached their height."""

FINE_UP, FINE_DOWN = 1.05, 0.99
"""Factors per slice for the fines of nodes that are above capacity, and of the others."""


@dataclass(frozen=True)
class Minimum:
    """What a search found.

    Parameters
    ----------
    node : ndarray of int32, shape (K,)
        Node of each replica.
    cost : float
        Weighted sum there.
    work : int
        Candidates priced.
    applied : int
        Candidates accepted.
    stop_reason : str
        Why it stopped.
    """

    node: NDArray[np.int32]
    cost: float
    work: int
    applied: int
    stop_reason: StopReason


def reassign(request: Request) -> Outcome:
    """Minimise the request's ``Cost``.

    Parameters
    ----------
    request : Request
        Its goals are a ``Cost``.

    Returns
    -------
    Outcome
        Costs no more than the start; leaders stay.

    Raises
    ------
    TypeError
        If the goals are no ``Cost``.
    """
    if not isinstance(request.goals, Cost):
        raise TypeError("reassign minimises a Cost")
    found = minimise(request.cluster, request.goals, request.watch, request.seed, request.start)
    return Outcome(
        node=found.node,
        leader=request.start.leader,
        stop_reason=found.stop_reason,
        message=f"Cost {found.cost:,.10g}.",
        work=found.work,
    )


def minimise(
    cluster: Cluster, cost: Cost, watch: Watch, seed: int = 0, start: Placement | None = None
) -> Minimum:
    """Search for the placement of least cost that keeps every hard rule.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    cost : Cost
        What is charged.
    watch : Watch
        Limits of time and work, and the callback; a few seconds' worth of work without limits.
    seed : int, optional
        Same seed and work limit: same bits.
    start : Placement, optional
        Where to start; the cluster's own placement by default.

    Returns
    -------
    Minimum
        Never above the cost of the start. Replicas that are nowhere stay so.

    References
    ----------
    Kirkpatrick, Gelatt, Vecchi: Optimization by simulated annealing, Science 220 (1983).
    """
    weight = np.array([cost.watermark_weight(name) for name in cluster.dimensions])
    watermark = np.array(cluster.nodes.watermark.T, order="C")
    problem = compile_problem(cluster, watermark, weight, cost=cost)
    state = compile_state(cluster, problem, start)
    run = _Run(problem, state, begin_walk(problem, state, seed), watch)
    return run.search()


def begin_walk(problem: Problem, state: State, seed: int) -> search_walk.Walk:
    """Open the books of a search.

    Parameters
    ----------
    problem : Problem
        What does not change.
    state : State
        Where the search starts.
    seed : int
        All randomness comes from it.

    Returns
    -------
    Walk
        Without fines; the start is the best state unless some node is above capacity.
    """
    replicas, (dimensions, nodes) = len(state.node), problem.nodes.capacity.shape
    channels = dimensions + len(problem.nodes.proportion) + len(problem.nodes.hinge)
    moves = problem.moves
    farthest = max(moves.level_distance.max(initial=0.0), moves.distance.max(initial=0.0))
    each = moves.move_cost.max(initial=0.0) + moves.distance_weight * farthest
    shared = moves.group_weight + 2.0 * _steepest(problem)
    now = total_cost(problem, state)
    item = np.flatnonzero(problem.partitions.movable & (state.node >= 0)).astype(np.int32)
    walk = search_walk.Walk(
        item=item,
        need=np.zeros((replicas, channels)),
        weight=np.zeros(channels),
        excess=np.zeros((nodes, channels)),
        room=np.zeros((nodes, dimensions)),
        cost=np.zeros(nodes),
        fine=np.zeros((nodes, dimensions)),
        fined=np.zeros(nodes),
        crowded=np.zeros(1, np.int64),
        total=np.array([now, now]),
        spare=np.array([2.0 * (each + shared), 2.0 * shared]),
        best=state.node.copy(),
        astray=np.zeros(replicas, np.int32),
        is_astray=np.zeros(replicas, bool),
        astray_count=np.zeros(1, np.int64),
        random=np.random.SeedSequence(seed % 2**64).generate_state(1, np.uint64) | np.uint64(1),
        tally=np.zeros(3, np.int64),
    )
    search_walk.begin(problem, state, walk)
    walk.item[:] = item[np.argsort(-sizes(problem, walk), kind="stable")]
    if (walk.room < 0.0).any():
        walk.total[1] = np.inf
    return walk


def _steepest(problem: Problem) -> float:
    """Most that one replica more or fewer in a domain can save its group."""
    rules = problem.rules
    prices = np.abs(np.diff(rules.price, axis=1)).max(initial=0.0)
    priced = rules.price_of[:, 0] >= 0
    groups = np.repeat(
        np.arange(len(rules.group_limit_first) - 1), np.diff(rules.group_limit_first)
    )
    tables = np.bincount(groups[priced], minlength=1).max(initial=0)
    return float(prices * tables)


def sizes(problem: Problem, walk: search_walk.Walk) -> NDArray[np.float64]:
    """Return what each replica of ``walk.item`` would cost above all watermarks, tables included.

    Parameters
    ----------
    problem : Problem
        What the books are of.
    walk : Walk
        The books of a search.

    Returns
    -------
    ndarray of float64, shape (I,)
        In the order of ``walk.item``.
    """
    weight = walk.weight.copy()
    dimensions = walk.room.shape[1]
    weight[dimensions : dimensions + len(problem.nodes.proportion)] = 0.0
    size: NDArray[np.float64] = np.abs(walk.need[walk.item]) @ weight
    return size


class _Run:
    """One search: its books, its plan of temperatures, and where in the plan it is."""

    def __init__(
        self, problem: Problem, state: State, walk: search_walk.Walk, watch: Watch
    ) -> None:
        self.problem, self.state, self.walk, self.watch = problem, state, walk, watch
        self.work_limit = watch.work_limit
        if watch.work_limit is None and watch.time_limit is None:
            self.work_limit = DEFAULT_WORK
        self.size = sizes(problem, walk)
        mean = float(self.size.mean()) if len(self.size) else 0.0
        self.hottest = HOTTEST * mean if mean > 0.0 else max(1.0, _steepest(problem))
        self.fine = _fines(problem, walk, mean)
        self.falls = np.zeros(STEPS)

    def search(self) -> Minimum:
        """Cool down cycle by cycle until a limit is reached."""
        walk = self.walk
        stop: StopReason | None = None
        if len(walk.item) == 0 or len(walk.cost) < 2:
            stop = "optimum"
        try:
            begins = 0.0
            for share, height in COOLINGS:
                ends = np.cumsum(self._pace(height))
                while stop is None and (done := self._done()) < begins + share:
                    self._slice(ends, (done - begins) / share)
                    stop = self._look_up()
                begins += share
        except KeyboardInterrupt:
            stop = "interrupted"
        return Minimum(
            node=walk.best,
            cost=float(walk.total[1]),
            work=int(walk.tally[search_walk.EVALUATED]),
            applied=int(walk.tally[search_walk.APPLIED]),
            stop_reason=stop or ("time" if self.watch.out_of_time else "work"),
        )

    def _done(self) -> float:
        """Part of the budget that is used up; the clock counts only where a time limit is set."""
        done = 0.0
        if self.work_limit is not None:
            work = int(self.walk.tally[search_walk.EVALUATED])
            done = work / self.work_limit if self.work_limit else 1.0
        if self.watch.time_limit is not None:
            limit = self.watch.time_limit
            done = max(done, self.watch.seconds / limit if limit > 0.0 else 1.0)
        return done

    def _pace(self, height: float) -> NDArray[np.float64]:
        """Part of the next cooling for each temperature: more where the cost fell before."""
        steps = np.arange(STEPS) >= height * STEPS
        learnt = np.sqrt(np.maximum(self.falls, 0.0)) * steps
        self.falls = np.zeros(STEPS)
        pace: NDArray[np.float64] = steps / steps.sum()
        if learnt.sum() > 0.0:
            pace = EVEN_SHARE * pace + (1.0 - EVEN_SHARE) * learnt / learnt.sum()
        return pace

    def _slice(self, ends: NDArray[np.float64], part: float) -> None:
        """Do one slice of work at the temperature planned for this part of the cooling."""
        step = min(int(np.searchsorted(ends, part, side="right")), STEPS - 1)
        start = ends[step - 1] if step else 0.0
        height = (step + max(0.0, part - start) / (ends[step] - start)) / STEPS
        temperature = self.hottest * COLDEST**height
        low, high = FINE
        floor = self.fine * low * (high / low) ** min(1.0, height / FINED_BY)
        search_walk.tighten(self.problem, self.state, self.walk, floor, FINE_UP, FINE_DOWN)
        large = int(np.searchsorted(-self.size, -SMALLEST * temperature, side="right"))
        items = max(1, large, int(FEWEST * len(self.size)))
        before = float(self.walk.total[0])
        done = int(self.walk.tally[search_walk.EVALUATED])
        work = SLICE if self.work_limit is None else min(SLICE, self.work_limit - done)
        search.anneal(self.problem, self.state, self.walk, items, work, temperature, temperature)
        self.falls[step] += before - float(self.walk.total[0])

    def _look_up(self) -> StopReason | None:
        """Tell the callback where the search is; why to stop, or None."""
        walk = self.walk
        if self.watch.callback is None:
            return "time" if self.watch.out_of_time else None
        return self.watch.stop(
            Progress(
                stage="search",
                work=int(walk.tally[search_walk.EVALUATED]),
                seconds=self.watch.seconds,
                moves=int(np.count_nonzero(walk.best != self.problem.partitions.home)),
                cost=float(walk.total[1]),
            )
        )


def _fines(problem: Problem, walk: search_walk.Walk, mean: float) -> NDArray[np.float64]:
    """Fine per unit above capacity: the dimension's weight, or a like share where that is 0."""
    weight = problem.nodes.weight
    fine = np.ones(len(weight))
    if len(walk.item):
        need = walk.need[walk.item, : len(weight)].mean(axis=0)
        share = max(mean, 1.0) / len(weight) / np.where(need > 0.0, need, 1.0)
        fine[:] = np.where(weight > 0.0, weight, share)
    return fine
