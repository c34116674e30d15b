"""Answer losses of nodes from state that was compiled in advance.

When nodes of a cluster without violations are lost, only their replicas must move. An answer that
places all of them, breaks no rule and keeps every node within its target makes as many moves as
replicas were lost, which is proven to be the fewest. One move more is also optimal where a replica
is proven to fit nowhere unless another one moves. Where budgets do not let all of them move, the
most endangered partitions come first and the others wait. In any other case there is no answer
here, and the search runs.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import audit
from evenkeel.measure.binding import partition_scope
from evenkeel.measure.bounds import bounds_of_levels
from evenkeel.measure.bounds.even import ample_room
from evenkeel.measure.bounds.leading import leader_shares, most_led
from evenkeel.measure.loads import has_leaders, usable, wanted_leaders, wanted_load
from evenkeel.measure.room import piling
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.contract import Loss, LossSeries
from evenkeel.methods.shared.compile import budget_arrays, compile_problem, compile_state
from evenkeel.methods.shared.size import SMALL, size_of
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost, Goals, over_the_whole
from evenkeel.model.intake.stranded import unchanged
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Role
from evenkeel.model.reading.arrays import Flags, Ints32, Ints64
from evenkeel.model.rules import LimitKind
from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.core.node_scan import Scan, new_scan
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.levelling.best_fit import share_of_room
from evenkeel_kernels.levelling.losses.play import play_losses, play_series
from evenkeel_kernels.levelling.losses.records import (
    DANGERS,
    Asked,
    Demanded,
    Figures,
    Kept,
    LossReport,
    Stock,
)

# the limits that a row decides by itself; a skew depends on nodes elsewhere
BY_ROW: tuple[LimitKind, ...] = ("spread", "min_domains", "max_domains")


class RowDemands(NamedTuple):
    """Demands of Q classes of P partitions on N nodes."""

    rule: Ints32  # class of each partition, (P,)
    is_open: Flags  # nodes that meet what every replica requires, (Q, N)
    limit_first: Ints64  # where the limits of each class start, and the end, (Q + 1,)
    limit: Ints32  # tier, place in ``BY_ROW`` and amount of each limit, hard or soft, (., 3)


@dataclass(frozen=True, eq=False)
class Workspace:
    """Arrays that one thread uses while it answers a loss."""

    problem: Problem
    state: State
    scan: Scan
    report: LossReport
    endangered: NDArray[np.int32]

    def figures(self, losses: int) -> Figures:
        """Return arrays for the figures of ``losses``; endangered partitions share one array."""
        dimensions = len(self.state.load)
        most, fair, moved = np.zeros((3, losses, dimensions))
        return Figures(
            np.zeros(losses, np.int64), np.zeros(losses, np.int64), most, fair, moved,
            np.zeros((losses, DANGERS), np.int64), self.endangered,
        )  # fmt: skip


class Workspaces:
    """Workspaces of one cluster, each copied from what was compiled once."""

    def __init__(self, problem: Problem, state: State) -> None:
        self._problem, self._state = problem, state
        closed = new_scan(problem, np.zeros(len(state.load))).closed
        self.kept = Kept(  # copies of what may be frozen, which would compile kernels once more
            state.load, state.held, state.domain_load, problem.nodes.accepts.copy(),
            problem.nodes.leads.copy(), problem.rules.allowed.copy(), closed,
        )  # fmt: skip
        self._free: list[Workspace] = []

    @contextmanager
    def one(self) -> Iterator[Workspace]:
        """Lend a workspace; as many are made as threads need at once."""
        try:
            workspace = self._free.pop()  # atomic, as giving back is
        except IndexError:
            workspace = self.new()
        try:
            yield workspace
        finally:
            self._free.append(workspace)

    def new(self) -> Workspace:
        """Make one more, of which no array that changes is shared."""
        nodes, rules, partitions = (
            self._problem.nodes, self._problem.rules, self._problem.partitions
        )  # fmt: skip
        problem = self._problem._replace(
            nodes=nodes._replace(
                accepts=nodes.accepts.copy(),
                leads=nodes.leads.copy(),
                watermark=nodes.watermark.copy(),
            ),
            partitions=partitions._replace(led_from=partitions.led_from.copy()),
            rules=rules._replace(allowed=rules.allowed.copy()),
        )
        domains = len(problem.domains.member_first) - 1
        state = State._make(array.copy() for array in self._state)._replace(
            moved_of=np.zeros(len(self._state.leader), np.int64),
            came=np.zeros(domains, np.int64),
            went=np.zeros(domains, np.int64),
        )
        return Workspace(
            problem, state, new_scan(problem, np.zeros(len(state.load))),
            _new_report(state), np.empty(DANGERS * len(state.node), np.int32),
        )  # fmt: skip


def _new_report(state: State) -> LossReport:
    dimensions, nodes = state.load.shape
    replicas, partitions = len(state.node), len(state.leader)
    return LossReport(
        replica=np.empty(replicas, np.int64),
        urgency=np.empty(replicas, np.int64),
        size=np.empty(replicas),
        node=np.empty(replicas, np.int32),
        slot=np.empty(replicas, np.int16),
        endangered=np.empty((DANGERS, replicas), np.int32),
        endangered_count=np.zeros(DANGERS, np.int64),
        load=np.zeros((dimensions, nodes)),
        replicas=np.zeros(nodes, np.int64),
        leaders=np.zeros(nodes, np.int64),
        most=np.zeros(dimensions),
        fair=np.zeros(dimensions),
        moved=np.zeros(dimensions),
        gave_way=np.zeros(1, np.int64),
        waits=np.zeros(3, np.int64),
        lost=np.zeros(nodes, bool),
        hosts=np.zeros(nodes, bool),
        most_leaders=np.zeros(nodes),
        forced=np.zeros(replicas, bool),
        led=np.ones(partitions, bool),
        every=np.ones(partitions, bool),
    )


@dataclass(frozen=True, eq=False)
class HealthyCluster:
    """A cluster in which all is well, with all that the loss of nodes asks for."""

    cluster: Cluster
    stock: Stock
    demanded: Demanded
    workspaces: Workspaces
    unchanged: NDArray[np.bool_]  # (N,) nodes with a replica of a partition that stays as it is

    def lose(
        self, nodes: NDArray[np.int32], goals: Goals | Cost, limits: Limits | None = None
    ) -> Loss | None:
        """Lose nodes, each named once; None if that takes a search."""
        asked = _asked(self.cluster, goals)
        if asked is None or self.unchanged[nodes].any():
            return None
        with self.workspaces.one() as workspace:
            # a copy, since a frozen array would compile the kernel a second time
            return self._lose(workspace, np.array(nodes, np.int32), asked, limits)

    def lose_each(
        self, losses: Sequence[NDArray[np.int32]], goals: Goals | Cost
    ) -> LossSeries | None:
        """Lose nodes, find how that ends, and have them back; None if every loss takes a search."""
        asked = _asked(self.cluster, goals)
        if asked is None:
            return None
        first = np.zeros(len(losses) + 1, np.int64)
        np.cumsum([len(nodes) for nodes in losses], out=first[1:])
        nodes = np.concatenate([np.zeros(0, np.int32), *losses])
        if self.unchanged[nodes].any():
            return None
        with self.workspaces.one() as workspace:
            figures = workspace.figures(len(losses))
            played = play_series(
                workspace.problem, workspace.state, workspace.scan, self.stock, self.demanded,
                asked, self.workspaces.kept, first, nodes, workspace.report, figures,
            )  # fmt: skip
            ends = np.cumsum(figures.endangered_count[:played]).reshape(-1, DANGERS)
            return LossSeries(
                moves=figures.moves[:played],
                gave_way=figures.gave_way[:played],
                most=figures.most[:played],
                fair=figures.fair[:played],
                moved=figures.moved[:played],
                endangered=figures.endangered[: ends[-1, -1] if played else 0].copy(),
                ends=ends,
            )

    def _lose(
        self, workspace: Workspace, nodes: NDArray[np.int32], asked: Asked, limits: Limits | None
    ) -> Loss | None:
        report, budgeted = workspace.report, workspace.problem
        if limits not in (None, Limits()):
            assert limits is not None
            budgets = budget_arrays(self.cluster, limits)
            source = budgets.source.copy()
            source[nodes] = False  # what stands on a lost node does not leave it
            budgeted = workspace.problem._replace(budgets=budgets._replace(source=source))
        count = play_losses(
            workspace.problem, budgeted, workspace.state, workspace.scan, self.stock,
            self.demanded, asked, self.workspaces.kept, nodes, report,
        )  # fmt: skip
        # where little waits on a small cluster, CP-SAT looks for better before it is left undone
        if count < 0 or (report.waits[0] and size_of(self.cluster) <= SMALL):
            return None
        lost, short, stuck = (
            np.sort(report.endangered[i, :n]) for i, n in enumerate(report.endangered_count)
        )
        return Loss(
            replica=report.replica[:count].copy(),
            node=report.node[:count].copy(),
            slot=report.slot[:count].copy(),
            lost=lost,
            under_min_active=short,
            without_quorum=stuck,
            loads=np.ascontiguousarray(report.load.T),
            replicas=report.replicas.copy(),
            leaders=report.leaders.copy(),
            most=report.most.copy(),
            fair=report.fair.copy(),
            moved=report.moved.copy(),
            gave_way=int(report.gave_way[0]),
            waits=int(report.waits[0]),
            fits=bool(report.waits[1]),
        )


def standing(cluster: Cluster) -> HealthyCluster | None:
    """Hold a cluster ready for the loss of nodes; None if something is wrong with it before."""
    if len(cluster.placement.node) == 0:
        return None
    rows = _row_demands(cluster)
    if rows is None or not roles_fit(cluster):
        return None
    capacity = np.ascontiguousarray(cluster.nodes.capacity.T)
    problem = compile_problem(cluster, capacity, np.ones(len(capacity)))
    state = compile_state(cluster, problem)
    stock, demanded = stock_and_demands(cluster, rows, share_of_room(problem))
    stays = unchanged(cluster.placement)[cluster.placement.owner]
    problem.partitions.movable[stays] = False
    nodes = np.zeros(len(cluster.nodes) + 1, np.bool_)  # and one for nowhere
    nodes[cluster.placement.node[stays]] = True
    return HealthyCluster(cluster, stock, demanded, Workspaces(problem, state), nodes[:-1])


def _asked(cluster: Cluster, goals: Goals | Cost) -> Asked | None:
    """Return goals as numbers; None if they are of a kind that takes a search."""
    if isinstance(goals, Cost) or over_the_whole(goals):
        return None
    names = cluster.dimensions
    if any(goals.floor_tolerance(name) is not None for name in names):
        return None
    given = [goals.tolerance(name) for name in names]
    tolerance = np.array([-1.0 if one is None else one for one in given])
    return Asked(tolerance, -1.0 if goals.leaders is None else float(goals.leaders))


def roles_fit(cluster: Cluster) -> bool:
    """Return whether as many replicas of each partition vote as are wanted to."""
    placement, partitions = cluster.placement, cluster.partitions
    votes = (placement.role == Role.VOTER) & (placement.node >= 0)
    if not placement.role.any() and np.array_equal(partitions.voters, partitions.replicas):
        return True
    return np.array_equal(
        np.bincount(placement.owner[votes], minlength=len(partitions)), partitions.voters
    )


def stock_and_demands(
    cluster: Cluster, rows: RowDemands, share: NDArray[np.float64]
) -> tuple[Stock, Demanded]:
    """Count replicas and nodes, sizes by ``share (D,)``, and return them with the demands."""
    nodes, partitions, placement = cluster.nodes, cluster.partitions, cluster.placement
    placed = PlacementCounts.of(cluster, placement)
    first, member = by_node(np.array(placement.node), len(nodes))
    banned = cluster.forbidden
    leads = has_leaders(cluster)
    able = usable(cluster)
    even = bounds_of_levels(cluster, Goals(level=None))
    leading = leader_shares(cluster, nodes.capacity)
    weight = np.where(nodes.may_lead & able, nodes.lead_weight, 0.0)
    roomy = ample_room(placed, able)
    if leads and not np.array_equal(able, able & nodes.may_lead):
        roomy = np.full(len(roomy), np.inf)  # leaders are forced into those that may lead
    stock = Stock(
        first=first,
        member=member,
        share=share,
        leader=np.array(placement.leader),
        load=np.array(placed.loads.T, order="C"),
        wanted=np.array(wanted_load(cluster)),
        unit=np.array(partitions.load.unit),
        alike=np.array(partitions.load.alike),
        even=np.array(even.even.T, order="C"),
        least=np.array(_stays_least(even.even, even.least).T, order="C"),
        roomy=roomy,
        lead_even=leading.level,
        lead_least=_stays_least(leading.level, leading.least),
        leads_alike=bool(
            (roomy < np.inf).all() and (most_led(cluster, nodes.capacity, weight) == np.inf).all()
        ),
        lead_weight=weight,
        led=wanted_leaders(cluster),
        bytes_dimension=cluster.bytes_dimension,
    )
    return stock, Demanded(
        first=np.array(placement.first),
        role=np.array(placement.role),
        replicas=np.array(partitions.replicas),
        min_active=np.array(partitions.min_active),
        rule=np.array(rows.rule),
        is_open=np.array(rows.is_open),
        limit_first=rows.limit_first,
        limit=rows.limit,
        domain=np.array(cluster.topology.domain_with_nodes, order="C"),
        forbidden_first=_starts(np.bincount(banned[:, 0], minlength=len(partitions))),
        forbidden=np.array(banned[:, 1], order="C"),
        capacity=np.array(nodes.capacity.T, order="C"),
        max_replicas=np.array(nodes.max_replicas),
        replicas_on=np.array(placed.replicas),
        leaders_on=np.array(placed.leaders),
        serves=nodes.serves,
        holds=nodes.may_hold,
        receives=nodes.may_receive,
        leads=nodes.may_lead,
    )


def _stays_least(level: NDArray[np.float64], least: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least in whole units, (N,) or (N, D), that no loss of nodes makes smaller."""
    apart = level.max(0, initial=0.0) > np.where(level > 0.0, level, np.inf).min(0, initial=np.inf)
    return np.where(apart, 0.0, least)


def _starts(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return where rows of these lengths start, and the end."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _row_demands(cluster: Cluster) -> RowDemands | None:
    """Return demands on single rows; None if rules need more than rows, or any is broken now."""
    partitions, nodes = cluster.partitions, cluster.nodes
    if len(cluster.depends) or cluster.topology.tier_capacity or cluster.transient.any():
        return None
    if (partitions.group_rule >= 0).any() or (nodes.may_hold & ~nodes.serves).any():
        return None
    scope = partition_scope(cluster)
    for one in scope.demands:
        if one.counted or one.required(voters=True) or one.lead:
            return None
        if any(limit.kind not in BY_ROW for limit in one.limits):
            return None
    placed = PlacementCounts.of(cluster, cluster.placement)
    broken = audit(cluster, cluster.placement).counts
    if any(broken.values()) or piling(placed, scope).any():
        return None
    rows = [
        [
            (cluster.topology.tier_index(at.tier), BY_ROW.index(at.kind), at.amount)
            for at in one.limits
        ]
        for one in scope.demands
    ]
    return RowDemands(
        rule=scope.rule,
        is_open=scope.open,
        limit_first=_starts(np.array([len(one) for one in rows], np.int64)),
        limit=np.array([row for one in rows for row in one], np.int32).reshape(-1, 3),
    )
