"""A cluster held ready: compiled once, so that the loss of nodes costs what they held.

Where nothing is wrong with a cluster before, all that must move is what stood on the lost nodes. An
answer that places all of it, breaks no rule and keeps every node within its target has made as many
moves as replicas were lost, and so is proven to be the best: no placement makes do with fewer. In
any other case there is no answer here, and the search has to be asked.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.row_demands import row_demands
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost, Goals
from evenkeel.strategies.levelling.losses.demands import roles_fit, stock_and_demands
from evenkeel.strategies.registry import Loss
from evenkeel.strategies.shared.compile import compile_problem, compile_state
from evenkeel_kernels.core.node_scan import Scan, new_scan
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.levelling.best_fit import largest_first
from evenkeel_kernels.levelling.losses.play import play_losses
from evenkeel_kernels.levelling.losses.records import Asked, Demanded, Kept, Stock, Told

MOST_REPLICAS = 1 << 32
"""As many have room in a key by which replicas are sorted."""


@dataclass
class _Desk:
    """What one loss at a time is played on: arrays that nobody else may use meanwhile."""

    problem: Problem
    state: State
    scan: Scan
    forced: NDArray[np.bool_]
    led: NDArray[np.bool_]
    most_leaders: NDArray[np.float64]
    told: Told


@dataclass(frozen=True, eq=False)
class Standing:
    """A cluster in which all is well, with all that the loss of nodes asks for.

    Several threads may ask at once: each takes a desk of its own. An answer depends on the cluster,
    the nodes and the goals alone, bit by bit, not on what was asked before.
    """

    cluster: Cluster
    stock: Stock
    demanded: Demanded
    kept: Kept
    desks: list[_Desk] = field(default_factory=list)

    def lose(self, nodes: NDArray[np.int32], goals: Goals | Cost) -> Loss | None:
        """Lose nodes, each named once; None if that takes a search."""
        asked = _asked(self.cluster, goals)
        if asked is None:
            return None
        try:
            desk = self.desks.pop()  # atomic, as giving back is
        except IndexError:
            desk = self._new_desk()
        try:
            # a copy, since a frozen array would compile the kernel a second time
            return self._lose(desk, np.array(nodes, np.int32), asked)
        finally:
            self.desks.append(desk)

    def _lose(self, desk: _Desk, nodes: NDArray[np.int32], asked: Asked) -> Loss | None:
        told = desk.told
        count = play_losses(
            desk.problem, desk.state, desk.scan, self.stock, self.demanded, asked, self.kept,
            nodes, desk.forced, desk.led, desk.most_leaders, told,
        )  # fmt: skip
        if count < 0:
            return None
        lost, short, stuck = (
            np.sort(told.endangered[i, :n]) for i, n in enumerate(told.endangered_count)
        )
        return Loss(
            replica=told.replica[:count].copy(),
            node=told.node[:count].copy(),
            slot=told.slot[:count].copy(),
            lost=lost,
            under_min_active=short,
            without_quorum=stuck,
            loads=np.ascontiguousarray(told.load.T),
            replicas=told.replicas.copy(),
            leaders=told.leaders.copy(),
            most=told.most.copy(),
            fair=told.fair.copy(),
            moved=told.moved.copy(),
        )

    def _new_desk(self) -> _Desk:
        """Compile the cluster for one more thread."""
        problem, state = _compiled(self.cluster)
        return _Desk(
            problem, state, new_scan(problem, np.zeros(len(state.load))),
            np.zeros(len(state.node), bool), np.ones(len(state.leader), bool),
            np.zeros(len(self.cluster.nodes)), _new_told(self.cluster),
        )  # fmt: skip


def standing(cluster: Cluster) -> Standing | None:
    """Hold a cluster ready for the loss of nodes; None if something is wrong with it before."""
    if not 0 < len(cluster.placement.node) < MOST_REPLICAS:
        return None
    rows = row_demands(cluster)
    if rows is None or not roles_fit(cluster):
        return None
    problem, state = _compiled(cluster)
    stock, demanded = stock_and_demands(cluster, rows, _rank(problem))
    scan = new_scan(problem, np.zeros(len(state.load)))
    kept = Kept(
        state.load.copy(), state.held.copy(), state.domain_load.copy(),
        problem.nodes.accepts.copy(), problem.nodes.leads.copy(), problem.rules.allowed.copy(),
        scan.closed.copy(),
    )  # fmt: skip
    return Standing(cluster, stock, demanded, kept)


def _compiled(cluster: Cluster) -> tuple[Problem, State]:
    """Compile a cluster into arrays of which none that changes is shared."""
    capacity = np.ascontiguousarray(cluster.nodes.capacity.T)
    problem = compile_problem(cluster, capacity, np.ones(len(capacity)))
    rules = problem.rules._replace(allowed=problem.rules.allowed.copy())
    nodes = problem.nodes._replace(
        accepts=problem.nodes.accepts.copy(), leads=problem.nodes.leads.copy()
    )
    problem = problem._replace(rules=rules, nodes=nodes)
    return problem, compile_state(cluster, problem)


def _rank(problem: Problem) -> NDArray[np.int64]:
    """Return the place of each partition in the order in which replicas are placed, (P,)."""
    owner = problem.partitions.owner
    order = owner[largest_first(problem, np.ones(len(owner), bool))]
    _, at = np.unique(order, return_index=True)
    rank = np.zeros(len(problem.partitions.first) - 1, np.int64)
    rank[np.unique(owner)] = at
    return rank


def _new_told(cluster: Cluster) -> Told:
    nodes, dimensions = cluster.nodes.capacity.shape
    replicas = len(cluster.placement.node)
    return Told(
        replica=np.empty(replicas, np.int64),
        node=np.empty(replicas, np.int32),
        slot=np.empty(replicas, np.int16),
        endangered=np.empty((3, replicas), np.int32),
        endangered_count=np.zeros(3, np.int64),
        load=np.zeros((dimensions, nodes)),
        replicas=np.zeros(nodes, np.int64),
        leaders=np.zeros(nodes, np.int64),
        most=np.zeros(dimensions),
        fair=np.zeros(dimensions),
        moved=np.zeros(dimensions),
        lost=np.zeros(nodes, bool),
    )


def _asked(cluster: Cluster, goals: Goals | Cost) -> Asked | None:
    """Return goals as numbers; None if they are of a kind that takes a search."""
    if isinstance(goals, Cost):
        return None
    names = cluster.dimensions
    if any(goals.floor_tolerance(name) is not None for name in names):
        return None
    given = [goals.tolerance(name) for name in names]
    tolerance = np.array([-1.0 if one is None else one for one in given])
    return Asked(tolerance, -1.0 if goals.leaders is None else float(goals.leaders))
