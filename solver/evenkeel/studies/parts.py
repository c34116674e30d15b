"""Solve large clusters in parts, to save time and memory.

The excess of a node over a limit is divided among parts in proportion to what each has there. The
room of a node is divided by the load that each part has to place, and evenly beyond that. So,
whatever the draw of the parts, none moves load off a node where only another part has too much.
"""

import logging
import operator
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds import Bounds, bounds, bounds_of_levels, goals_met
from evenkeel.measure.bounds.even import WHOLE
from evenkeel.measure.levelness import levelness
from evenkeel.measure.loads import has_leaders
from evenkeel.measure.rows import rows_alone
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.contract import Outcome
from evenkeel.methods.registry import find
from evenkeel.methods.run import MethodRun, answered, checked, run_checked, run_method
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Goals, over_the_whole
from evenkeel.model.names import Names
from evenkeel.model.partitions import Loads, Partitions
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.quantities import check_whole
from evenkeel.model.rules import Rule
from evenkeel.model.runtime.logs import log_event
from evenkeel.result import Result
from evenkeel.solving import Stopwatch, judged, solve
from evenkeel.studies.fan_out import Failure, fan_out

# part of a limit by which sums in another order may differ; the audit allows ten times that
SLACK = 1e-12

Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PlacementByPart:
    """What stands where, by n parts, N nodes and D dimensions."""

    loads: Table  # what replicas of each part weigh on each node, (n, D, N)
    wanted: Table  # what everything wanted of each part weighs, (n, D)
    replicas: Table  # replicas of each part on each node, (n, N)
    leaders: Table  # partitions of each part that each node leads, (n, N)
    size: Table  # replicas wanted of each part, as a share of all, (n,)

    @classmethod
    def of(cls, cluster: Cluster, part: NDArray[np.int32], parts: int) -> "PlacementByPart":
        """Count what stands where, a slot of all partitions at a time."""
        placement, load = cluster.placement, cluster.partitions.load
        nodes, dimensions = cluster.nodes.capacity.shape
        cells = parts * (nodes + 1)
        loads = np.zeros((dimensions, cells))
        replicas = np.zeros(cells, np.int64)
        width = np.diff(placement.first)
        for slot in range(int(width.max(initial=0))):
            has = slice(None) if width.min() > slot else np.flatnonzero(width > slot)
            at = placement.first[:-1][has] + slot
            cell = part[has] * np.int64(nodes + 1) + placement.node[at] + 1
            leads = placement.leader[has] == slot
            light = placement.role[at] == Role.NON_VOTER
            replicas += np.bincount(cell, minlength=cells)
            for d in range(dimensions):
                weight = np.where(light, load.non_voter[has, d], load.voter[has, d])
                np.copyto(weight, load.leader[has, d], where=leads)
                loads[d] += np.bincount(cell, weight, cells)
        cell = part * np.int64(nodes + 1) + placement.leader_node + 1
        leaders = np.bincount(cell, minlength=cells)

        def by_node(counted: NDArray[np.generic]) -> Table:
            shape = (*counted.shape[:-1], parts, nodes + 1)
            return counted.reshape(shape)[..., 1:].astype(np.float64)

        wanted = cluster.partitions.replicas
        return cls(
            loads=np.ascontiguousarray(np.swapaxes(by_node(loads), 0, 1)),
            wanted=_wanted(cluster, part, parts),
            replicas=by_node(replicas),
            leaders=by_node(leaders),
            size=np.bincount(part, wanted, parts) / max(wanted.sum(dtype=np.int64), 1),
        )


def _wanted(cluster: Cluster, part: NDArray[np.int32], parts: int) -> Table:
    """Add up what is wanted of each part: a leader each, the other voters, the rest; (n, D)."""
    asked = cluster.partitions
    leaders = np.minimum(asked.replicas, has_leaders(cluster))
    voters = np.maximum(asked.voters - leaders, 0)
    others = asked.replicas - leaders - voters
    total = np.zeros((parts, asked.load.voter.shape[1]))
    for count, each in (
        (leaders, asked.load.leader), (voters, asked.load.voter), (others, asked.load.non_voter),
    ):  # fmt: skip
        if count.any():
            for d in range(total.shape[1]):
                total[:, d] += np.bincount(part, count * each[:, d], parts)
    return total


def shared_out(
    limit: Table, loads: Table, wanted: Table, size: Table, nodes: "Open", unit: float = 0.0
) -> Table:
    """Divide the limit of each node, (N,), among parts that have ``loads (n, N)`` there; (n, N)."""
    # ``wanted (n,)`` is what each part weighs, ``size (n,)`` its share of everything; with a
    # ``unit`` every share is a whole number of units more or less than what stands there
    whole = loads.sum(0)
    kept = np.divide(limit, whole, out=np.ones_like(whole), where=whole > limit)
    staying = np.where(nodes.hold, loads * kept, 0.0).sum(1)
    need = np.maximum(wanted - staying, 0.0)
    room = np.where(nodes.receive, np.maximum(limit - whole, 0.0), 0.0).sum()
    spare = max(room - need.sum(), 0.0)
    share = need + spare * size if 0.0 < room < np.inf else size
    share = share / share.sum() if share.sum() > 0.0 else np.full(len(size), 1.0 / len(size))
    is_bound = np.isfinite(limit)
    more = np.where(is_bound & (whole <= limit), limit - whole, 0.0)
    less = np.where(whole > limit, whole - limit, 0.0)
    given = np.divide(loads, whole, out=np.zeros_like(loads), where=whole > 0.0)
    taken = np.repeat(share[:, None], len(limit), 1)
    if unit > 0.0:
        grown = _whole(np.floor(more / unit + WHOLE), taken) * unit
        shrunk = _whole(np.ceil(less / unit - WHOLE), given) * unit
    else:
        grown, shrunk = more * taken, less * given
    return np.where(is_bound, (loads + grown - shrunk) * (1.0 + SLACK), np.inf)


@dataclass(frozen=True, eq=False)
class Open:
    """Nodes that may ``hold`` and those that may ``receive`` replicas, (N,) bool both."""

    hold: NDArray[np.bool_]
    receive: NDArray[np.bool_]


def _whole(count: Table, share: Table) -> Table:
    """Divide whole numbers, (N,), into whole numbers by shares that add up to 1, (n, N) both."""
    offset = (np.arange(len(count)) * 0.6180339887498949) % 1.0
    upto = np.cumsum(share, axis=0)
    upto[-1] = np.where(share.any(0), 1.0, 0.0)
    ends = np.floor(count * upto + offset)
    return np.diff(ends, axis=0, prepend=np.floor(offset)[None, :])


PROOF = -1  # the item that is no part but the proof of what the whole can come to


@dataclass(frozen=True, eq=False)
class Split:
    """A cluster in n parts, and what each may put on N nodes in D dimensions."""

    cluster: Cluster
    part: NDArray[np.int32]
    goals: Goals
    seed: int
    levels: Bounds
    capacity: Table  # (n, N, D)
    target: Table  # (n, N, D)
    most_replicas: Table  # (n, N)
    most_leaders: Table  # (n, N)
    tier_capacity: dict[str, Table]  # by tier (n, domains, D)


@dataclass(frozen=True, eq=False)
class Piece:
    """What became of a part: nodes and leading slots of its replicas and partitions, in order."""

    node: NDArray[np.int32]
    leader: NDArray[np.int16]
    work: int


def split_up(
    cluster: Cluster, goals: Goals, part: NDArray[np.int32], parts: int, seed: int
) -> Split:
    """Give every part its share of what each node may carry."""
    levels = bounds_of_levels(cluster, goals)
    found = PlacementByPart.of(cluster, part, parts)
    nodes, load = cluster.nodes, cluster.partitions.load
    unit = np.where(load.alike, load.unit, 0.0)
    open_ = Open(nodes.may_hold, nodes.may_receive)
    dimensions = range(len(cluster.dimensions))

    def by_dimension(limit: Table, loads: Table, where: Open) -> Table:
        return np.stack(
            [
                shared_out(limit[:, d], loads[:, d], found.wanted[:, d], found.size, where,
                           float(unit[d]))
                for d in dimensions
            ],
            axis=-1,
        )  # fmt: skip

    tiers = {}
    for tier, limit in cluster.topology.tier_capacity.items():
        domain = cluster.topology.domain[cluster.topology.tier_index(tier)]
        inside = np.zeros((parts, len(dimensions), len(limit)))
        for n in np.flatnonzero(domain >= 0).tolist():
            inside[:, :, domain[n]] += found.loads[:, :, n]
        anywhere = np.ones(len(limit), bool)
        tiers[tier] = by_dimension(limit, inside, Open(anywhere, anywhere))
    counted = found.size * cluster.partitions.replicas.sum(dtype=np.int64)
    led = found.size * len(cluster.partitions)
    most = np.where(nodes.max_replicas < 0, np.inf, nodes.max_replicas)
    return Split(
        cluster=cluster,
        part=part,
        goals=goals,
        seed=seed,
        levels=levels,
        capacity=by_dimension(nodes.capacity, found.loads, open_),
        target=by_dimension(levels.target, found.loads, open_),
        most_replicas=shared_out(most, found.replicas, counted, found.size, open_, 1.0),
        most_leaders=shared_out(levels.leader_target, found.leaders, led, found.size, open_, 1.0),
        tier_capacity=tiers,
    )


def solve_piece(split: Split, i: int) -> Piece | Bounds:
    """Solve a part by itself, or prove what the whole can come to."""
    if i == PROOF:
        return bounds(split.cluster, split.goals)
    given = _cluster_of(split, i)
    levels = split.levels
    run = run_method(
        "balance", given, goals=split.goals, seed=split.seed + i,
        proven=replace(
            levels,
            target=read_only(split.target[i]),
            leader_target=read_only(np.floor(split.most_leaders[i] + 0.5)),
            # the whole is filled up to floors at the end
            floor=np.zeros_like(levels.floor),
            arrivals=np.zeros_like(levels.arrivals),
        ),
    )  # fmt: skip
    for each in (given.placement, run.placement):
        PlacementCounts.forget(each)
    if run.outcome.stop_reason == "interrupted":
        raise KeyboardInterrupt  # the part ended early and well, but the whole is to end too
    return Piece(run.placement.node, run.placement.leader, run.outcome.work)


def _cluster_of(split: Split, i: int) -> Cluster:
    """Return a part as a cluster of its own, with its share of every node."""
    given = cut(split.cluster, split.part == i)
    nodes, topology = given.nodes, given.topology
    most = split.most_replicas[i]
    counted = np.where(np.isinf(most), -1, np.floor(np.where(np.isinf(most), 0.0, most) + 0.5))
    return replace(
        given,
        nodes=replace(
            nodes,
            capacity=read_only(np.ascontiguousarray(split.capacity[i])),
            watermark=read_only(np.full_like(nodes.watermark, np.inf)),
            max_replicas=read_only(counted.astype(np.int32)),
        ),
        topology=replace(
            topology,
            tier_capacity={tier: read_only(each[i]) for tier, each in split.tier_capacity.items()},
        ),
    )


logger = logging.getLogger("evenkeel.parts")

REPLICAS = 8_000_000  # replicas of a part, unless the caller says how many parts
# replicas of a part on a node, on average; with fewer, what does not come out even costs moves
FEWEST = 300


@known_keywords
def solve_in_parts(
    cluster: Cluster,
    parts: int | None = None,
    executor: Executor | None = None,
    *,
    goals: Goals | None = None,
    seed: int = 0,
    callback: Callable[[int, int], object] | None = None,
) -> Result:
    """Decide where the replicas of a very large cluster live, a part of them at a time.

    Each part is some partitions, drawn at random, on all nodes, with a share of what every node may
    carry; together they keep what the whole must. What one part cannot place or level is done over
    the whole at the end, from where everything is by then.

    Parameters
    ----------
    cluster : Cluster
        The snapshot; it is not changed.
    parts : int, optional
        How many, one for each partition at most; as many as make parts of eight million replicas
        by default, and one is solved as ``solve`` does. Groups that a limit or ``depends`` binds
        together stay in one part.
    executor : concurrent.futures.Executor, optional
        Executor that solves parts, the calling thread by default. The answer is the same for any
        number of workers. Threads share the cluster and run side by side; a process, or a
        worker of Dask (``client.get_executor()``), holds one of its own.
    goals : Goals, optional
        As ``solve`` takes them.
    seed : int, optional
        All randomness comes from it.
    callback : callable, optional
        Receives how many pieces are done, and of how many: the parts, and the proof of the bounds;
        raising StopIteration leaves the other parts as they came.

    Returns
    -------
    Result
        As ``solve`` with ``method="balance"`` returns it, audited as one piece, with bounds of one
        piece; nothing is worse than before.

    Raises
    ------
    InvalidInput
        If an argument cannot be used; every problem is named.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[400.0]] * 4, load=[[1.0]] * 600, placement=[[0, 1]] * 600
    ... )
    >>> with ThreadPoolExecutor(2) as threads:
    ...     result = ek.solve_in_parts(cluster, 3, threads, goals=ek.Goals(level=0.0))
    >>> result.status, result.levelness.loads.ravel().tolist()
    ('optimal', [300.0, 300.0, 300.0, 300.0])
    """
    clock = Stopwatch()
    faults = FaultList()
    require_cluster(cluster)
    if parts is not None:
        check_whole(faults, "parts", parts, 1)
    if executor is not None and not isinstance(executor, Executor):
        faults.add("executor", executor, "must be a concurrent.futures.Executor")
    if callback is not None and not callable(callback):
        faults.add("callback", callback, "must be callable")
    if goals is not None and not isinstance(goals, Goals):
        faults.add("goals", goals, "must be Goals: a Cost is minimised in one piece, by solve")
    faults.raise_if_any()
    asked = checked(find("balance"), cluster, goals=goals, seed=seed)
    wanted = Goals() if goals is None else goals
    asked_parts = parts_of(cluster) if parts is None else operator.index(parts)
    count = min(asked_parts, max(len(cluster.partitions), 1))
    if count == 1 or over_the_whole(wanted):
        return solve(cluster, goals=goals, seed=seed)
    log_event(
        logger, "splitting", logging.DEBUG, parts=count, nodes=len(cluster.nodes),
        partitions=len(cluster.partitions), seed=asked.seed,
    )  # fmt: skip
    # a load on a node with next to no capacity may overflow to inf, which is what it should be
    with np.errstate(over="ignore"):
        part = split(cluster, count, asked.seed)
        plan = split_up(cluster, wanted, part, count, asked.seed)
        clock.lap("split")
        found = fan_out(solve_piece, plan, [PROOF, *range(count)], executor, callback)
        clock.lap("parts")
        run = _joined(plan, found)
        return judged(find("balance"), run, clock, goals_given=goals is not None)


def parts_of(cluster: Cluster) -> int:
    """In how many parts a cluster is solved unless the caller says; 1 if it is not that large."""
    replicas = len(cluster.placement.node)
    fair = replicas // (FEWEST * max(len(cluster.nodes), 1))
    return max(1, min(-(-replicas // REPLICAS), fair))


def _joined(plan: Split, found: Sequence[Piece | Bounds | Failure | None]) -> MethodRun:
    """Put the pieces together, and solve over the whole what they could not."""
    cluster, method = plan.cluster, find("balance")
    proof, pieces = found[0], found[1:]
    proven = proof if isinstance(proof, Bounds) else plan.levels
    outcome = _outcome(plan, pieces)
    start = cluster.placement.replaced(outcome.node, outcome.leader)
    request = checked(
        method, cluster, goals=plan.goals, start=start, proven=proven, seed=plan.seed
    )  # fmt: skip
    run = answered(method, request, outcome, {})
    if outcome.stop_reason == "interrupted" or _is_done(run):
        return run
    again = run_checked(method, request)
    if not again.audit.ok:
        # from where the parts have put things it may end worse than from where they came
        alone = run_checked(
            method, checked(method, cluster, goals=plan.goals, proven=proven, seed=plan.seed)
        )
        if again.audit.worse_than(alone.audit):
            again = alone
    work = outcome.work + again.outcome.work
    warnings = (*outcome.warnings, *again.outcome.warnings)
    return replace(again, outcome=replace(again.outcome, work=work, warnings=warnings))


def _is_done(run: MethodRun) -> bool:
    """Whether the parts have left nothing to do."""
    level = levelness(run.request.cluster, run.placement)
    return run.audit.ok and goals_met(level, run.request.bounds)


def _outcome(plan: Split, pieces: Sequence[Piece | Bounds | Failure | None]) -> Outcome:
    """Put together where parts have put everything; what was not solved stays as it came."""
    before = plan.cluster.placement
    node, leader, work = before.node.copy(), before.leader.copy(), 0
    warnings = []
    for i, piece in enumerate(pieces):
        if isinstance(piece, Piece):
            node[rows_of(plan.part, i, before)] = piece.node
            leader[plan.part == i] = piece.leader
            work += piece.work
        elif isinstance(piece, Failure):
            warnings.append(f"Part {i} was left to the whole: {piece.message.rstrip('.')}.")
    is_cut_short = any(piece is None for piece in pieces)
    return Outcome(
        node=node, leader=leader, stop_reason="interrupted" if is_cut_short else "tolerance",
        work=work, warnings=tuple(warnings),
    )  # fmt: skip


Entry = TypeVar("Entry", bound=np.generic)


def split(cluster: Cluster, parts: int, seed: int) -> NDArray[np.int32]:
    """Draw the part of each partition, (P,), so that parts have as many replicas each."""
    wanted = cluster.partitions.replicas
    part = np.full(len(wanted), -1, np.int32)
    filled = np.zeros(parts, np.int64)
    # groups that a limit or a dependence binds together stay together, the largest first; the other
    # partitions even out what that leaves
    bound = _bound_together(cluster)[cluster.partitions.group]
    tied = bound >= 0
    if tied.any():
        size = np.bincount(bound[tied], wanted[tied]).astype(np.int64)
        home = np.zeros(len(size), np.int32)
        for each in np.argsort(-size, kind="stable").tolist():
            home[each] = np.argmin(filled)
            filled[home[each]] += size[each]
        part[tied] = home[bound[tied]]
    free = np.flatnonzero(~tied)
    quota = _quotas(filled, int(wanted[free].sum(dtype=np.int64)))
    drawn = np.random.default_rng(np.random.PCG64(seed % 2**64)).random(len(free))
    share = np.cumsum(quota) / max(quota.sum(), 1.0)
    part[free] = np.searchsorted(share[:-1], drawn, side="right")
    return part


def _quotas(filled: NDArray[np.int64], more: int) -> NDArray[np.float64]:
    """How much of what is free each part takes, so that the fullest part is as small as it can be.

    >>> _quotas(np.array([4, 0, 1]), 4).tolist()
    [0.0, 2.5, 1.5]
    """
    order = np.sort(filled)
    most = (np.cumsum(order) + more) / np.arange(1, len(order) + 1)
    height = most[np.flatnonzero(most >= order)[-1]] if more else 0.0
    left: NDArray[np.float64] = np.maximum(height - filled, 0.0)
    return left


def _bound_together(cluster: Cluster) -> NDArray[np.int32]:
    """The first of the groups that each group must stay together with; -1 for none, (G,)."""
    rules, group_rule = cluster.rules, cluster.partitions.group_rule
    whole = np.array([_binds_a_group(rule) for rule in rules] + [False])
    first = np.where(whole[group_rule], np.arange(len(group_rule)), -1).astype(np.int32)
    for a, b in cluster.depends[:, :2].tolist():
        for each in (a, b):
            first[each] = each if first[each] < 0 else first[each]
        joined = np.isin(first, (first[a], first[b])) & (first >= 0)
        first[joined] = min(first[a], first[b])
    return first


def _binds_a_group(rule: Rule) -> bool:
    """Whether a rule counts the replicas of all partitions of its group together."""
    counted = any(not term.for_all for term in rule.terms())
    return counted or bool(rule.limits(per_node=False))


def rows_of(part: NDArray[np.int32], i: int, placement: Placement) -> NDArray[np.intp]:
    """Return the replicas of a part, in the order of the whole placement."""
    return np.flatnonzero(np.repeat(part == i, placement.slots or np.diff(placement.first)))


def cut(cluster: Cluster, chosen: NDArray[np.bool_]) -> Cluster:
    """Return the cluster of some partitions, (P,) bool, in their order, on all nodes."""
    which = np.flatnonzero(chosen)
    number = np.cumsum(chosen) - 1
    pairs = cluster.forbidden[chosen[cluster.forbidden[:, 0]]].copy()
    pairs[:, 0] = number[pairs[:, 0]]
    return replace(
        cluster,
        partitions=_partitions(cluster.partitions, which),
        placement=rows_alone(cluster.placement, which),
        forbidden=read_only(pairs),
        native=None,
        native_format="",
    )


def _partitions(whole: Partitions, which: NDArray[np.intp]) -> Partitions:
    load, shared = whole.load, {}
    for each in (load.leader, load.voter, load.non_voter):  # roles that share one array go on so
        if each.ctypes.data not in shared:
            shared[each.ctypes.data] = _take(each, which)
    return replace(
        whole,
        names=Names(None, len(which), "p"),
        load=Loads(
            leader=shared[load.leader.ctypes.data],
            voter=shared[load.voter.ctypes.data],
            non_voter=shared[load.non_voter.ctypes.data],
        ),
        replicas=_take(whole.replicas, which),
        voters=_take(whole.voters, which),
        min_active=_take(whole.min_active, which),
        group=_take(whole.group, which),
        rule=_take(whole.rule, which),
        attached=_take(whole.attached, which),
        move_cost=_take(whole.move_cost, which),
    )


def _take(array: NDArray[Entry], which: NDArray[np.intp]) -> NDArray[Entry]:
    return read_only(array.take(which, axis=0))
