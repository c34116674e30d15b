"""One annealing search: its state, its temperatures and its work at each temperature.

At high temperatures only large replicas take part: a replica that costs less than the temperature
would only add noise. Capacity, and at first the rules of groups, are penalties that rise as the
search cools.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.core.eligible_nodes import fill_reach
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.core.state import total_cost
from evenkeel_kernels.cost import annealing as search
from evenkeel_kernels.cost import cost_state as search_walk
from evenkeel_kernels.cost.group_violations import all_breaches

SLICE = 1 << 15
"""Candidates between two looks at the clock."""

STEPS = 48
"""Temperatures of one cooling, in geometric progression."""

HOTTEST = 0.3
"""First temperature, as a part of what an average replica costs above all watermarks."""

COLDEST = 1e-7
"""Last temperature at the latest, as a part of the first one."""

SMALLEST = 5.0
"""Replicas that cost less than so many temperatures, above all watermarks, wait for the cold."""

FEWEST = 0.05
"""Part of the replicas, the largest, that takes part at any temperature."""

FROZEN = 0.02
"""A temperature is frozen that accepts less than this part of what the liveliest one accepts."""

WARM = 0.43
"""Part of the way down on which most of the cost falls."""

COLD_SHARE, FROZEN_SHARE = 0.3, 0.1
"""Time that a temperature gets below that, and a frozen one, as parts of what a warm one gets."""

PENALTY = (1.0, 100.0)
"""Penalty per unit above capacity, in units of the dimension's weight, when hot and when cold."""

FINED_BY = 0.2
"""Part of the way down after which the penalties have reached their height."""

FINE_UP, FINE_DOWN = 4.0, 0.65
"""Factors per temperature for the penalties of nodes that are above capacity, and of the others."""

BREACH_FINE = 1.0
"""Penalty weight of a violation of a group's rules, times the geometric mean of first and present
temperature: it falls more slowly than the temperature does."""

SOFT_UNTIL, BROKEN_UNTIL = 0.12, 0.3
"""Parts of the way down: from the first on the rules of groups are walls once none is broken; from
the second on they are walls, and a search that still breaks one goes back to its best placement."""


@dataclass
class Annealing:
    """One search: its state and where on the way down it is."""

    problem: Problem
    state: State
    walk: search_walk.CostState
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
        self.penalty_weight = _fines(self.problem, self.walk, mean)
        whole = all_breaches(self.problem, self.state) == 0
        self.may_soften = self.may_soften and whole

    @property
    def mean_size(self) -> float:
        """What an average replica costs above all watermarks."""
        return float(self.size.mean()) if len(self.size) else 0.0

    @property
    def work(self) -> int:
        """Candidates priced so far."""
        return int(self.walk.tally[search_walk.EVALUATED])

    def visit(self, node: NDArray[np.int32], cost: float) -> None:
        """Go on from another placement, which breaks no more rules than the start."""
        search_walk.visit(self.problem, self.state, self.walk, node, cost)

    def restart(self, node: NDArray[np.int32], cost: float) -> None:
        """Go on from another placement, and take it for the best one however bad it is."""
        self.walk.total[1] = search_walk.NEVER
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
        search_walk.tighten(self.problem, self.state, self.walk, floor, 1.0, 0.0)

    def slice(self, part: float) -> None:
        """Do one slice of work at the temperature planned for this part of the cooling."""
        step = min(int(np.searchsorted(self.ends, part, side="right")), STEPS - 1)
        start = self.ends[step - 1] if step else 0.0
        height = (step + max(0.0, part - start) / (self.ends[step] - start)) / STEPS
        since = max(0.0, height - self.height) * STEPS
        self.height = height
        temperature = self.hottest * COLDEST**height
        walk = self.walk
        up, down = FINE_UP**since, FINE_DOWN**since
        search_walk.tighten(self.problem, self.state, walk, self._floor(), up, down)
        self._judge_breaches(temperature, up, down)
        large = int(np.searchsorted(-self.size, -SMALLEST * temperature, side="right"))
        items = max(1, large, int(FEWEST * len(self.size)))
        before = walk.tally.copy()
        work = SLICE if self.work_limit is None else min(SLICE, self.work_limit - self.work)
        search.anneal(self.problem, self.state, walk, items, work, temperature, temperature)
        self.tried[step] += walk.tally[search_walk.EVALUATED] - before[search_walk.EVALUATED]
        self.taken[step] += walk.tally[search_walk.APPLIED] - before[search_walk.APPLIED]

    def _floor(self) -> NDArray[np.float64]:
        """Least penalty per unit above capacity in each dimension."""
        low, high = PENALTY
        rise = min(1.0, self.height / FINED_BY)
        floor: NDArray[np.float64] = self.penalty_weight * (low * (high / low) ** rise)
        return floor

    def _judge_breaches(self, temperature: float, up: float, down: float) -> None:
        """Set what a breach costs; the more, the longer there has been one."""
        lost = self.height >= BROKEN_UNTIL and self.walk.breaches[0] > 0
        if lost and self.walk.total[1] < search_walk.NEVER:
            self.visit(self.walk.best.copy(), float(self.walk.total[1]))
        broken = self.walk.breaches[0] > 0
        self.strictness = max(1.0, self.strictness * (up if broken else down))
        penalty_weight = BREACH_FINE * self.strictness * float(np.sqrt(self.hottest * temperature))
        wall = not self.may_soften or (self.height >= SOFT_UNTIL and not broken)
        self.walk.breach_penalty[0] = search_walk.NEVER if wall else penalty_weight


def begin_walk(problem: Problem, state: State, seed: int) -> search_walk.CostState:
    """Begin the state of a search."""
    replicas, (dimensions, nodes) = len(state.node), problem.nodes.capacity.shape
    channels = dimensions + len(problem.nodes.proportion) + len(problem.nodes.hinge)
    moves = problem.moves
    farthest = max(moves.tier_distance.max(initial=0.0), moves.distance.max(initial=0.0))
    each = moves.move_cost.max(initial=0.0) + moves.distance_weight * farthest
    shared = moves.group_weight + 2.0 * steepest(problem)
    now = total_cost(problem, state)
    item = np.flatnonzero(problem.partitions.movable & (state.node >= 0)).astype(np.int32)
    walk = search_walk.CostState(
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
        breach_penalty=np.array([search_walk.NEVER]),
        total=np.array([now, now]),
        spare=np.array([2.0 * (each + shared), 2.0 * shared]),
        best=state.node.copy(),
        astray=np.zeros(replicas, np.int32),
        is_astray=np.zeros(replicas, bool),
        astray_count=np.zeros(1, np.int64),
        random=np.array([seed], np.uint64) | np.uint64(1),
        tally=np.zeros(3, np.int64),
    )
    search_walk.begin(problem, state, walk)
    reach, row, options = reach_of(problem, state, walk.need, walk.kept, item)
    walk = walk._replace(reach=reach, reach_row=row, item=item[options > 1])
    walk.item[:] = walk.item[np.argsort(-sizes(problem, walk), kind="stable")]
    if (walk.room < 0.0).any():
        walk.total[1] = np.inf
    return walk


def forked(walk: search_walk.CostState, seed: int) -> search_walk.CostState:
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


def sizes(problem: Problem, walk: search_walk.CostState) -> NDArray[np.float64]:
    """Return the cost of each replica of ``walk.item`` above all watermarks, with tables."""
    weight = walk.weight.copy()
    dimensions = walk.room.shape[1]
    weight[dimensions : dimensions + len(problem.nodes.proportion)] = 0.0
    size: NDArray[np.float64] = np.abs(walk.need[walk.item]) @ weight
    return size


def _fines(problem: Problem, walk: search_walk.CostState, mean: float) -> NDArray[np.float64]:
    """Penalty per unit above capacity: the dimension's weight, or a like share where that is 0."""
    weight = problem.nodes.weight
    penalty_weight = np.ones(len(weight))
    if len(walk.item):
        need = walk.need[walk.item, : len(weight)].mean(axis=0)
        share = max(mean, 1.0) / len(weight) / np.where(need > 0.0, need, 1.0)
        penalty_weight[:] = np.where(weight > 0.0, weight, share)
    return penalty_weight


MOST_BYTES = 1 << 28
"""Memory for the rows, and as much while they are made. Dimensions and replicas for which it does
not suffice are left out: such replicas are taken to fit, or to reach every node."""


def reach_of(
    problem: Problem,
    state: State,
    need: NDArray[np.float64],
    kept: NDArray[np.float64],
    item: NDArray[np.int32],
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]:
    """Return the nodes that each replica can be on in any placement that keeps the rules.

    ``need (K, D or more)`` is what it takes where it is, ``kept (K, D)`` what at home while away.
    """
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
