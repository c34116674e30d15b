"""Minimise a weighted sum: compile the request into states for parallel searches.

Each search has its own state and its own random numbers, and cools independently. Between two
coolings all wait for each other, take the best placement that any has found, and reheat from it to
temperatures of their own. At the end each runs a local search from the best, and reheats it a
little where no move helps. The outcome depends on the seed and the work, not on the number of
threads.

One search cools the initial placement, too, from a low temperature and with a high price of moves
at first, since the cheapest placements to reach are near it. A search that began hot has moved far
from it and does not find the way back.

At high temperatures only large replicas take part: a replica that costs less than the temperature
would only add noise. Capacity, and at first the rules of groups, are penalties that rise as the
search cools.

Local search has two kinds of move, cheap ones first: an exact division of the replicas of two
nodes (`evenkeel_kernels.cost.two_node_exact`), and chains and cycles of up to three replicas
(`evenkeel_kernels.cost.ejection_chains`). It ends where neither of them helps.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.shared.compile import compile_problem, compile_state
from evenkeel.methods.shared.stopping import StopReason, Watch
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost
from evenkeel.model.placement import Placement
from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.core.state import relocate, total_cost
from evenkeel_kernels.cost import annealing as search
from evenkeel_kernels.cost import cost_state
from evenkeel_kernels.cost.annealing import fill_reach
from evenkeel_kernels.cost.compound_move import new_joint
from evenkeel_kernels.cost.cost_state import CostState, tighten
from evenkeel_kernels.cost.ejection_chains import eject, new_arcs
from evenkeel_kernels.cost.group_violations import all_breaches
from evenkeel_kernels.cost.two_node_exact import new_division, repartition_each

ANNEALING_SLICE = 1 << 15  # candidates between two looks at the clock
STEPS = 48  # temperatures of one cooling, in geometric progression
HOTTEST = 0.3  # first temperature, as a part of what an average replica costs above all watermarks
COLDEST = 1e-7  # last temperature at the latest, as a part of the first one
# replicas that cost less than so many temperatures, above all watermarks, wait for the cold
SMALLEST = 5.0

FEWEST = 0.05  # part of the replicas, the largest, that takes part at any temperature
# a temperature is frozen that accepts less than this part of what the liveliest one accepts
FROZEN = 0.02

WARM = 0.43  # part of the way down on which most of the cost falls
# time that a temperature gets below that, and a frozen one, as parts of what a warm one gets
COLD_SHARE, FROZEN_SHARE = 0.3, 0.1

# penalty per unit above capacity, in units of the dimension's weight, when hot and when cold
PENALTY = (1.0, 100.0)

PENALISED_BY = 0.2  # part of the way down after which the penalties have reached their height
# factors per temperature for the penalties of nodes that are above capacity, and of the others
PENALTY_UP, PENALTY_DOWN = 4.0, 0.65

# penalty weight of a violation of a group's rules, times the geometric mean of first and present
# temperature: it falls more slowly than the temperature does
BREACH_PENALTY = 1.0

# parts of the way down: from the first on the rules of groups are walls once none is broken; from
# the second on they are walls, and a search that still breaks one goes back to its best placement
SOFT_UNTIL, BROKEN_UNTIL = 0.12, 0.3


@dataclass
class Annealing:
    """One search: its state and where on the way down it is."""

    problem: Problem
    state: State
    walk: cost_state.CostState
    work_limit: int | None
    may_soften: bool
    size: NDArray[np.float64] = field(init=False)
    hottest: float = field(init=False)
    penalty_weight: NDArray[np.float64] = field(init=False)
    strictness: float = field(init=False, default=1.0)
    height: float = field(init=False, default=0.0)
    ends: NDArray[np.float64] = field(init=False)
    tried: NDArray[np.float64] = field(init=False)
    taken: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        """Take the measure of the replicas."""
        self.ends, self.tried, self.taken = np.ones(STEPS), np.zeros(STEPS), np.zeros(STEPS)
        self.size = sizes(self.problem, self.walk)
        mean = self.mean_size
        self.hottest = HOTTEST * mean if mean > 0.0 else max(1.0, steepest(self.problem))
        self.penalty_weight = _penalty_weights(self.problem, self.walk, mean)
        whole = all_breaches(self.problem, self.state) == 0
        self.may_soften = self.may_soften and whole

    @property
    def mean_size(self) -> float:
        """What an average replica costs above all watermarks."""
        return float(self.size.mean()) if len(self.size) else 0.0

    @property
    def work(self) -> int:
        """Candidates priced so far."""
        return int(self.walk.tally[cost_state.EVALUATED])

    def visit(self, node: NDArray[np.int32], cost: float) -> None:
        """Go on from another placement, which breaks no more rules than the start."""
        cost_state.visit(self.problem, self.state, self.walk, node, cost)

    def restart(self, node: NDArray[np.int32], cost: float) -> None:
        """Go on from another placement, and take it for the best one however bad it is."""
        self.walk.total[1] = cost_state.NEVER
        self.visit(node, cost)

    def begin_cooling(self, height: float) -> None:
        """Plan a cooling that starts part of the way down."""
        steps = np.arange(STEPS) >= int(height * STEPS)
        accepted = self.taken / np.maximum(self.tried, 1.0)
        alive = (self.tried == 0.0) | (accepted >= FROZEN * accepted.max())
        lively = np.where(np.arange(STEPS) < WARM * STEPS, 1.0, COLD_SHARE)
        pace = steps * np.where(alive, lively, FROZEN_SHARE)
        self.ends = np.cumsum(pace / pace.sum())
        self.tried[steps], self.taken[steps] = 0.0, 0.0
        self.height, self.strictness = height, 1.0
        floor = self._floor()
        cost_state.tighten(self.problem, self.state, self.walk, floor, 1.0, 0.0)

    def slice(self, part: float) -> None:
        """Do one slice of work at the temperature planned for this part of the cooling."""
        step = min(int(np.searchsorted(self.ends, part, side="right")), STEPS - 1)
        start = self.ends[step - 1] if step else 0.0
        height = (step + max(0.0, part - start) / (self.ends[step] - start)) / STEPS
        since = max(0.0, height - self.height) * STEPS
        self.height = height
        temperature = self.hottest * COLDEST**height
        walk = self.walk
        up, down = PENALTY_UP**since, PENALTY_DOWN**since
        cost_state.tighten(self.problem, self.state, walk, self._floor(), up, down)
        self._judge_breaches(temperature, up, down)
        large = int(np.searchsorted(-self.size, -SMALLEST * temperature, side="right"))
        items = max(1, large, int(FEWEST * len(self.size)))
        before = walk.tally.copy()
        work = (
            ANNEALING_SLICE
            if self.work_limit is None
            else min(ANNEALING_SLICE, self.work_limit - self.work)
        )
        search.anneal(self.problem, self.state, walk, items, work, temperature, temperature)
        self.tried[step] += walk.tally[cost_state.EVALUATED] - before[cost_state.EVALUATED]
        self.taken[step] += walk.tally[cost_state.APPLIED] - before[cost_state.APPLIED]

    def _floor(self) -> NDArray[np.float64]:
        """Least penalty per unit above capacity in each dimension."""
        low, high = PENALTY
        rise = min(1.0, self.height / PENALISED_BY)
        floor: NDArray[np.float64] = self.penalty_weight * (low * (high / low) ** rise)
        return floor

    def _judge_breaches(self, temperature: float, up: float, down: float) -> None:
        """Set what a breach costs; the more, the longer there has been one."""
        lost = self.height >= BROKEN_UNTIL and self.walk.breaches[0] > 0
        if lost and self.walk.total[1] < cost_state.NEVER:
            self.visit(self.walk.best.copy(), float(self.walk.total[1]))
        broken = self.walk.breaches[0] > 0
        self.strictness = max(1.0, self.strictness * (up if broken else down))
        penalty_weight = (
            BREACH_PENALTY * self.strictness * float(np.sqrt(self.hottest * temperature))
        )
        wall = not self.may_soften or (self.height >= SOFT_UNTIL and not broken)
        self.walk.breach_penalty[0] = cost_state.NEVER if wall else penalty_weight


def begin_walk(problem: Problem, state: State, seed: int) -> cost_state.CostState:
    """Begin the state of a search."""
    replicas, (dimensions, nodes) = len(state.node), problem.nodes.capacity.shape
    channels = dimensions + len(problem.nodes.proportion) + len(problem.nodes.hinge)
    moves = problem.moves
    farthest = max(moves.tier_distance.max(initial=0.0), moves.distance.max(initial=0.0))
    each = moves.move_cost.max(initial=0.0) + moves.distance_weight * farthest
    shared = moves.group_weight + 2.0 * steepest(problem)
    now = total_cost(problem, state)
    item = np.flatnonzero(problem.partitions.movable & (state.node >= 0)).astype(np.int32)
    walk = cost_state.CostState(
        item=item,
        group=problem.partitions.group[problem.partitions.owner],
        reach=np.zeros((0, 0), np.uint64),  # known once needs are
        reach_row=np.zeros(0, np.int32),
        need=np.zeros((replicas, channels)),
        kept=np.zeros((replicas, dimensions)),
        weight=np.zeros(channels),
        excess=np.zeros((nodes, channels)),
        room=np.zeros((nodes, dimensions)),
        cost=np.zeros(nodes),
        penalty_weight=np.zeros((nodes, dimensions)),
        penalty=np.zeros(nodes),
        overloaded=np.zeros(1, np.int64),
        breaches=np.zeros(1, np.int64),
        tied=_tied(problem),
        broken=_tied(problem),
        breach_penalty=np.array([cost_state.NEVER]),
        total=np.array([now, now]),
        spare=np.array([2.0 * (each + shared), 2.0 * shared]),
        best=state.node.copy(),
        astray=np.zeros(replicas, np.int32),
        is_astray=np.zeros(replicas, bool),
        astray_count=np.zeros(1, np.int64),
        random=np.array([seed], np.uint64) | np.uint64(1),
        tally=np.zeros(3, np.int64),
    )
    cost_state.begin(problem, state, walk)
    reach, row, options = reach_of(problem, state, walk.need, walk.kept, item)
    walk = walk._replace(reach=reach, reach_row=row, item=item[options > 1])
    walk.item[:] = walk.item[np.argsort(-sizes(problem, walk), kind="stable")]
    if (walk.room < 0.0).any():
        walk.total[1] = np.inf
    return walk


def forked(walk: cost_state.CostState, seed: int) -> cost_state.CostState:
    """Copy the state of a search that has not begun; what never changes is shared."""
    never = ("item", "group", "reach", "reach_row", "tied", "need", "weight", "spare")
    copies = {name: array.copy() for name, array in walk._asdict().items() if name not in never}
    copies["random"] = np.array([seed], np.uint64) | np.uint64(1)
    return walk._replace(**copies)


def _tied(problem: Problem) -> NDArray[np.int64]:
    """Return 1 for each group that needs another one or is needed by one, and 0 for the others."""
    rules = problem.rules
    tied = (np.diff(rules.needs_first) > 0) | (np.diff(rules.needed_first) > 0)
    return tied.astype(np.int64)


def steepest(problem: Problem) -> float:
    """Return the most that one replica more or fewer in a domain can save its group."""
    rules = problem.rules
    prices = np.abs(np.diff(rules.price, axis=1)).max(initial=0.0)
    priced = rules.price_of[:, 0] >= 0
    groups = np.repeat(
        np.arange(len(rules.group_limit_first) - 1), np.diff(rules.group_limit_first)
    )
    tables = np.bincount(groups[priced], minlength=1).max(initial=0)
    return float(prices * tables)


def sizes(problem: Problem, walk: cost_state.CostState) -> NDArray[np.float64]:
    """Return the cost of each replica of ``walk.item`` above all watermarks, with tables."""
    weight = walk.weight.copy()
    dimensions = walk.room.shape[1]
    weight[dimensions : dimensions + len(problem.nodes.proportion)] = 0.0
    size: NDArray[np.float64] = np.abs(walk.need[walk.item]) @ weight
    return size


def _penalty_weights(
    problem: Problem, walk: cost_state.CostState, mean: float
) -> NDArray[np.float64]:
    """Penalty per unit above capacity: the dimension's weight, or a like share where that is 0."""
    weight = problem.nodes.weight
    penalty_weight = np.ones(len(weight))
    if len(walk.item):
        need = walk.need[walk.item, : len(weight)].mean(axis=0)
        share = max(mean, 1.0) / len(weight) / np.where(need > 0.0, need, 1.0)
        penalty_weight[:] = np.where(weight > 0.0, weight, share)
    return penalty_weight


# memory for the rows, and as much while they are made; dimensions and replicas for which it does
# not suffice are left out: such replicas are taken to fit, or to reach every node
MOST_BYTES = 1 << 28


def reach_of(
    problem: Problem,
    state: State,
    need: NDArray[np.float64],
    kept: NDArray[np.float64],
    item: NDArray[np.int32],
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]:
    """Return the nodes that each replica can be on in any placement that keeps the rules."""
    # ``need (K, D or more)`` is what it takes where it is, ``kept (K, D)`` what at home while away
    space, narrow = guest_room(problem, need, kept)
    nodes = len(space)
    every = packed(np.ones((1, nodes), bool))
    words = every.shape[1]
    narrow = narrow[: max(0, MOST_BYTES // (8 * words * (nodes + 1)) - 1)]
    rows = max(1, min(len(item) + 1, MOST_BYTES // (8 * words)))
    reach, row = np.zeros((rows, words), np.uint64), np.zeros(len(state.node), np.int32)
    reach[0] = every
    roomiest = np.zeros((len(narrow), nodes + 1, words), np.uint64)
    fits = np.zeros((len(narrow), len(item)), np.int32)
    for j, d in enumerate(narrow):
        order = np.argsort(-space[:, d], kind="stable")
        each = packed(np.arange(nodes) == order[:, None])
        np.bitwise_or.accumulate(each, axis=0, out=roomiest[j, 1:])
        fits[j] = np.searchsorted(-space[order, d], -need[item, d], side="right")
    stand = packed(problem.rules.allowed & problem.nodes.accepts)
    used = fill_reach(problem, state, item, stand, roomiest, fits, reach, row)
    reach = reach[:used].copy()
    options = np.bitwise_count(reach).sum(axis=1, dtype=np.int64)
    return reach, row, options[row[item]]


def packed(which: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pack the nodes of each row into bits."""
    words = which.shape[1] // 64 + 1
    bytes_of = np.zeros((len(which), 8 * words), np.uint8)
    bits = np.packbits(which, axis=1, bitorder="little")
    bytes_of[:, : bits.shape[1]] = bits
    return bytes_of.view("<u8").astype(np.uint64)


def guest_room(
    problem: Problem, need: NDArray[np.float64], kept: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the capacity for one more replica on each node in any feasible placement."""
    home = problem.partitions.home
    placed = np.flatnonzero(home >= 0)
    space = np.array(problem.nodes.capacity.T, order="C")
    lacking = np.zeros(space.shape[1], np.int64)
    for d in range(space.shape[1]):
        if problem.nodes.transient[d]:
            least = np.minimum(need[placed, d], kept[placed, d])
            space[:, d] -= np.bincount(home[placed], least, len(space))
        lacking[d] = np.searchsorted(np.sort(space[:, d]), need[:, d], side="left").sum()
    order = np.argsort(-lacking, kind="stable")
    return space, order[lacking[order] > 0]


# candidates where neither a work nor a time limit is given: a small cluster takes 0.1 s or so
FEWEST_CANDIDATES, PER_REPLICA, MOST_CANDIDATES = 100_000, 100, 20_000_000


@dataclass(frozen=True)
class Minimum:
    """What a search found."""

    node: NDArray[np.int32]  # (K,) node of each replica
    cost: float  # weighted sum there
    work: int  # candidates priced
    applied: int  # candidates accepted
    stop_reason: StopReason  # why it stopped


def reassign(request: Request) -> Outcome:
    """Minimise the request's ``Cost``."""
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
    """Search for the placement of least cost that keeps every hard rule."""
    # Kirkpatrick, Gelatt, Vecchi: Optimization by simulated annealing, Science 220 (1983)
    weight = np.array([cost.watermark_weight(name) for name in cluster.dimensions])
    watermark = np.array(cluster.nodes.watermark.T, order="C")
    problem = compile_problem(cluster, watermark, weight, cost=cost)
    state = compile_state(cluster, problem, start)
    limit = watch.work_limit
    if limit is None and watch.time_limit is None:
        limit = min(FEWEST_CANDIDATES + PER_REPLICA * len(state.node), MOST_CANDIDATES)
    portfolio = Portfolio(_searches(problem, state, seed, limit), watch)
    stop: StopReason = "optimum"
    if len(portfolio.best.item) and len(portfolio.best.cost) > 1:
        stop = portfolio.run()
    walk = portfolio.best
    return Minimum(
        node=walk.best,
        cost=float(walk.total[1]),
        work=portfolio.work,
        applied=sum(int(one.walk.tally[cost_state.APPLIED]) for one in portfolio.searches),
        stop_reason=stop,
    )


def _searches(problem: Problem, state: State, seed: int, work_limit: int | None) -> list[Annealing]:
    """Begin the state of each search; what none of them changes they share."""
    count = SEARCHES if work_limit is None or work_limit >= ALONE else 1
    seeds = np.random.SeedSequence(seed % 2**64).generate_state(count, np.uint64) | np.uint64(1)
    first = begin_walk(problem, state, int(seeds[0]))
    searches = []
    for i in range(count):
        own = None if work_limit is None else (work_limit + i) // count
        if i == 0:
            searches.append(Annealing(problem, state, first, own, count > 1))
        else:
            copied = state._replace(**{name: x.copy() for name, x in state._asdict().items()})
            searches.append(Annealing(problem, copied, forked(first, seeds[i]), own, False))
    return searches


SEARCHES = 2  # searches side by side
ALONE = 4_000_000  # work limit under which one search has it all
SLICES = 4  # slices between two calls of the callback, or two turns of searches that share a thread


GLANCE = 0.1  # seconds between two calls of the callback in the end
ENDLESS = 1 << 62  # more slices than there will ever be


@dataclass(frozen=True)
class Cooling:
    """One cooling of every search."""

    share: float
    heights: tuple[float, ...]
    from_best: bool


COOLINGS = (  # what they leave of the budget is for polishing
    Cooling(0.03, (0.4, 0.4), from_best=False),  # an early answer, and where it freezes
    Cooling(0.72, (0.0, 0.0), from_best=False),
    Cooling(0.1, (0.4, 0.3), from_best=True),
)


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
    def best(self) -> cost_state.CostState:
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
        if cooling.from_best and self.best.total[1] < cost_state.NEVER:
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
        """Spend the rest on a local search from the best; return the reason to stop, or None."""
        best = self.best
        if best.total[1] == cost_state.NEVER:
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
        """Have something done with each of the searches, and wait for it in the end."""
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
        """Report progress to the callback; return the reason to stop, or None."""
        if self.watch.callback is None:
            return self.watch.reason
        walk = self.best
        home = self.searches[0].problem.partitions.home
        return self.watch.stop(
            self.work, int(np.count_nonzero(walk.best != home)), float(walk.total[1])
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


# fractions of the cooling to which a polished placement is reheated, in turn
REHEAT = (0.7, 0.6, 0.5, 0.65, 0.55)

# parts of the way down from which the placement that came in is cooled, in turn; and what a move
# costs at least then, as a part of what an average replica costs above all watermarks
NEAR_START = (
    (0.7, 0.0),
    (0.5, 0.03),
    (0.8, 0.0),
    (0.5, 0.01),
    (0.6, 0.0),
    (0.3, 0.03),
    (0.7, 0.003),
)

SHORT = 256  # slices of such a cooling
# part of the cost within which placements near the one that came in are worth going on with
NEAR = 1e-4

POLISHED = 8_000_000  # candidates that polishing looks at before something else has its turn
OVERSHOT = 1 << 20  # by how much it may pass that, since what it has begun it ends


@dataclass
class Intensification:
    """The end of one search."""

    search: Annealing  # at the best placement so far
    watch: Watch  # limits of time
    done: Callable[[Annealing], float]  # part of its budget that a search has used up
    start: tuple[NDArray[np.int32], float]  # (K,) the placement that came in, and what it costs

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
        search.visit(node, cost_state.NEVER)
        search.restart(node, total_cost(search.problem, search.state))

    def _polish(self) -> bool:
        """Run a local search from the best for a while; return whether no move helps."""
        search, walk = self.search, self.search.walk
        left = POLISHED
        if search.work_limit is not None:
            left = min(left, search.work_limit - search.work - OVERSHOT)
        if left <= 0:
            return False
        seed = int(walk.random[0] >> np.uint64(1))
        done = polish(search.problem, search.state, walk, self.watch, left, seed)
        walk.tally[cost_state.EVALUATED] += done.work
        return done.finished


def _cheapest_move(problem: Problem) -> float:
    """Least that one move costs, if it costs anything."""
    cost = problem.moves.move_cost
    return float(cost[cost > 0.0].min(initial=np.inf))


SLICE = 1 << 18  # candidates between two looks at the clock
MOST_PAIRS = 20_000  # all pairs of nodes are tried where there are no more
PARTNERS = 40  # otherwise so many, drawn at random, for each node
# replicas of two nodes that are divided anew, and branches looked at for it
ITEMS, BRANCHES = 28, 2_000

LOOKED_AT = 4 * ITEMS  # replicas of two nodes that are asked whether they may be items
WINDOW = 1_000  # replicas in a window for chains and cycles


@dataclass
class Polished:
    """What polishing did."""

    work: int = 0
    gain: dict[str, float] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)
    spent: dict[str, int] = field(default_factory=dict)
    finished: bool = False


def polish(
    problem: Problem, state: State, walk: CostState, watch: Watch, work: int, seed: int = 0
) -> Polished:
    """Descend from the best state of a search."""
    # kinds of moves: Gavranović, Buljubašić: An efficient local search with noising strategy for
    # Google machine reassignment problem, Annals of Operations Research 242 (2016)
    done = Polished()
    if not np.isfinite(walk.total[1]) or len(walk.item) == 0 or len(walk.cost) < 2:
        return done
    run = _Run(problem, state, walk, watch, work, np.random.default_rng(seed % 2**64), done)
    run.take_best()
    while not run.over():
        before = float(walk.total[0])
        for turn in (run.divide, run.eject):
            turn()
        if walk.total[0] >= before:
            done.finished = not run.over()
            break
    return done


class _Run:
    """One polishing: what it works on, and how much is left."""

    def __init__(
        self,
        problem: Problem,
        state: State,
        walk: CostState,
        watch: Watch,
        work: int,
        random: np.random.Generator,
        done: Polished,
    ) -> None:
        self.problem, self.state, self.walk, self.watch = problem, state, walk, watch
        self.work, self.random, self.done = work, random, done
        self.nodes = len(walk.cost)
        self.seen = np.full_like(walk.excess, np.nan)  # (N, C) when all chains had been tried

    def over(self) -> bool:
        """Return whether time or work has run out."""
        return self.done.work >= self.work or self.watch.out_of_time or self.watch.halted

    def take_best(self) -> None:
        """Bring state and counters to the best state."""
        walk, state = self.walk, self.state
        astray = np.sort(walk.astray[: walk.astray_count[0]]).astype(np.int64)
        relocate(self.problem, state, astray, walk.best[astray])
        walk.is_astray[astray] = False
        walk.astray_count[0] = 0
        walk.penalty_weight[:] = 1.0
        tighten(self.problem, state, walk, np.ones(walk.room.shape[1]), 1.0, 1.0)
        walk.total[0] = walk.total[1]

    def _book(self, kind: str, before: float, made: int, work: int) -> None:
        done = self.done
        done.work += work
        done.gain[kind] = done.gain.get(kind, 0.0) + before - float(self.walk.total[0])
        done.made[kind] = done.made.get(kind, 0) + made
        done.spent[kind] = done.spent.get(kind, 0) + work

    def _slice(self) -> int:
        return max(1, min(SLICE, self.work - self.done.work))

    def _hottest(self) -> NDArray[np.int64]:
        return np.argsort(-self.walk.cost, kind="stable").astype(np.int64)

    def _pairs(self) -> NDArray[np.int64]:
        """Pairs of nodes, those with the hottest node first."""
        order = self._hottest()
        if self.nodes * (self.nodes - 1) // 2 <= MOST_PAIRS:
            one, other = np.triu_indices(self.nodes, 1)
            return np.stack([order[one], order[other]], axis=1)
        one = np.repeat(np.arange(self.nodes), PARTNERS)
        other = self.random.integers(0, self.nodes - 1, len(one))
        other += other >= one
        return np.stack([order[one], order[other]], axis=1)

    def _shuffled(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The replicas of each node that may move, in random order."""
        node = self.state.node.copy()
        node[~self.problem.partitions.movable] = -1
        first, member = by_node(node, self.nodes)
        owner = np.repeat(np.arange(self.nodes), np.diff(first))
        return first, member[np.lexsort((self.random.random(len(member)), owner))]

    def divide(self) -> None:
        """Divide pairs of nodes anew."""
        walk = self.walk
        division = new_division(ITEMS, len(walk.weight), walk.room.shape[1])
        joint, replica = new_joint(2 * ITEMS), np.zeros(LOOKED_AT, np.int64)
        pair = self._pairs()
        at = 0
        first, member = self._shuffled()
        while at < len(pair) and not self.over():
            before = float(walk.total[0])
            at, work, made = repartition_each(
                self.problem, self.state, walk, division, joint, pair, first, member, replica,
                at, BRANCHES, self._slice(),
            )  # fmt: skip
            self._book("divide", before, made, work)
            if made:
                first, member = self._shuffled()

    def _windows(self) -> Iterator[NDArray[np.int64]]:
        """All nodes if their replicas are few enough; else groups of them, each node in one."""
        count = np.bincount(self.state.node[self.walk.item], minlength=self.nodes)
        if count.sum() <= WINDOW * 1.5:
            yield np.arange(self.nodes)
            return
        order = self.random.permutation(self.nodes).astype(np.int64)
        part = np.cumsum(count[order]) // WINDOW
        for which in np.unique(part).tolist():
            yield order[part == which]

    def eject(self) -> None:
        """Make chains and cycles, window by window."""
        for node in self._windows():
            if self.over():
                return
            if len(node) > 1 and self.walk.cost[node].sum() + self._misplaced(node) > 0.0:
                self._eject_in(node)

    def _misplaced(self, node: NDArray[np.int64]) -> int:
        """Return replicas on some nodes that are not their initial nodes."""
        state, home = self.state, self.problem.partitions.home
        return int((np.isin(state.node, node) & (state.node != home)).sum())

    def _eject_in(self, node: NDArray[np.int64]) -> None:
        walk, state = self.walk, self.state
        place = np.full(self.nodes, -1, np.int64)
        place[node] = np.arange(len(node))
        replica = walk.item[place[state.node[walk.item]] >= 0].astype(np.int64)
        arcs, joint = new_arcs(node, replica), new_joint(3)
        whole = len(node) == self.nodes
        was = self.seen if whole else np.full_like(self.seen, np.nan)
        while not self.over():
            # what passes through no node that has changed was looked at already
            turn = np.flatnonzero((was != walk.excess).any(axis=1)[state.node[replica]])
            was = walk.excess.copy()
            if len(turn) == 0:
                break
            at = 0
            while at < len(turn) and not self.over():
                before = float(walk.total[0])
                at, work, made = eject(
                    self.problem, state, walk, place, arcs, joint, turn, at, self._slice()
                )
                self._book("eject", before, made, work)
        else:
            return
        if whole:
            self.seen = was
