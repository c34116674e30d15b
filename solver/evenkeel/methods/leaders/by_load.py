"""``leaders`` by load: minimise the load of the fullest node by the choice of leaders.

Minimised is the load of nodes over the fair load, in every dimension in which leading adds or takes
load. Three bounds prove the answer, tried in this order: the load of each node without its leaders;
the load that all nodes which lead must carry together; and the relaxation in which several replicas
lead a partition, a linear program. Its dual prices are the certificate: the sum over partitions of
the cheapest leader at these prices is the bound.

With one dimension and equal loads of all leaders it is a flow, and the answer is exact.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.loads import node_loads
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.leaders.flow import Arcs, Places, arcs_of, least_within, led_over, stays
from evenkeel.methods.leaders.method import Handed
from evenkeel.methods.leaders.room import (
    initial_leaders,
    lead_loads,
    left_as_they_came,
    overflows,
    room_of,
    unled,
    within_changes,
)
from evenkeel.methods.leaders.search import OUT_OF_REACH, Bound, Levels, Search
from evenkeel.methods.shared.stopping import Clock, OutOfTime, StopReason
from evenkeel.model.reading.arrays import ROUNDING
from evenkeel.model.runtime.figures import quantity
from evenkeel.model.runtime.heartbeat import beat

WORTH_RELAXING = 5e-4  # gap beyond which the linear program is solved
LARGEST_RELAXATION = 30_000  # arcs times dimensions beyond which it is not: it takes seconds


@dataclass(frozen=True)
class LoadProof:
    """Bound on the load of leaders, for replicas that stay where they are."""

    # greatest load of a node over the fair one, in the dimensions that leading changes
    level: float
    bound: float  # no choice of leaders has less; equal to ``level`` where that is proven best
    # what the bound comes from: a node and a dimension, a dimension, or the linear program
    binding: str
    # (N, D) the bound's certificate: prices of levels, 1 in all. Each partition led where that
    # costs least, what nodes carry costs the bound.
    price: NDArray[np.float64]
    changes: int  # leaders that lived and lead no more
    leaderless: int  # partitions that no replica can lead, or has room to

    @property
    def gap(self) -> float:
        """How much above the bound the answer is, as a part of it."""
        return self.level / self.bound - 1.0 if self.bound > 0.0 else 0.0


def level_loads(request: Request) -> Outcome:
    """Choose leaders so that the fullest node, over all dimensions, is as empty as can be."""
    cluster, start, watch = request.cluster, request.start, request.watch
    clock = Clock(watch)
    arcs, most, left = within_changes(request, arcs_of(cluster, start.node, start.leader))
    if not clock.goes_on():
        return stays(start, clock.reason)
    begin = initial_leaders(cluster, start, arcs, room_of(cluster, start, arcs))
    arcs, taken = begin.arcs, begin.taken
    task = _levels(request, arcs)
    if not clock.goes_on():
        return stays(start, clock.reason)
    stop: StopReason = "optimum"
    if arcs.count == 0 or len(task.dimension) == 0:
        bound, level, work, unfit = Bound(0.0, "", np.zeros((0, 0))), 0.0, 0, False
    elif _is_flow(task):
        try:
            flow, bound = _by_flow(task, clock, most)
        except OutOfTime:
            return stays(start, clock.reason)
        level, work, unfit = bound.level, len(arcs.p), overflows(arcs, begin.room, flow)
        taken = taken if unfit else flow
    else:
        bound, level, work, unfit = _simple_bound(request, task), 0.0, 0, True
    if unfit:
        search = Search(task, bound, begin, request.seed, watch, most)
        if search.gap > WORTH_RELAXING and task.share.size <= LARGEST_RELAXATION:
            _relax(search)
        search.run()
        taken, level, bound, work = search.best, search.level, search.bound, search.work
        if level > bound.level * (1.0 + ROUNDING):
            stop = watch.reason or "work"
    leader = led_over(start, arcs, taken, start.leader)
    handed = Handed.of(request, leader)
    proof = LoadProof(
        level=level,
        bound=bound.level,
        binding=bound.binding,
        price=bound.price,
        changes=handed.on,
        leaderless=int((cluster.partitions.replicas > 0).sum()) - arcs.count,
    )
    return Outcome(
        node=start.node,
        leader=leader,
        stop_reason=stop,
        message=f"Max/mean {quantity(proof.level)} of the loads that leading changes, at least "
        f"{quantity(proof.bound)} ({proof.binding or 'leading changes no load'}), "
        f"gap {round(100 * proof.gap, 9):.3g} %; {proof.changes:,} leaders changed{handed.since}."
        f"{handed.takeover_note()}",
        work=work,
        warnings=left_as_they_came(left + begin.left),
        native=proof,
    )


def _levels(request: Request, arcs: Arcs) -> Levels:
    """Put loads in units of what would be fair for each node."""
    cluster, start = request.cluster, request.start
    nodes = cluster.nodes
    base = node_loads(cluster, unled(start, arcs))
    beat()
    extra = lead_loads(cluster, start, arcs)
    alive = nodes.serves
    room = nodes.capacity[nodes.may_receive].sum(axis=0)
    total = base[alive].sum(axis=0) + extra.sum(axis=0)
    able = (extra != 0.0).any(axis=0) & np.isfinite(room) & (room > 0.0) & (total > 0.0)
    which = np.flatnonzero(able)
    target = nodes.capacity[:, which] * (total / np.where(room > 0.0, room, 1.0))[which]
    target[~alive] = np.inf
    beat()
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.where(target > 0.0, base[:, which] / target, 0.0)
        share = extra[arcs.p][:, which] / target[arcs.node]
    beat()
    share = np.where(target[arcs.node] > 0.0, share, np.sign(extra[arcs.p][:, which]))
    beat()
    share = np.where(target[arcs.node] > 0.0, share, OUT_OF_REACH * np.maximum(share, 0.0))
    return Levels(arcs, which, level, share, target, extra[:, which])


def _floor(task: Levels) -> NDArray[np.float64]:
    """Return the least load of each node, (N, D): partitions with one choice, and relief."""
    arcs = task.arcs
    alone = (np.bincount(arcs.p, minlength=arcs.count) == 1)[arcs.p]
    floor = task.base.copy()
    least = np.where(alone[:, None], task.share, np.minimum(task.share, 0.0))
    for d in range(floor.shape[1]):
        floor[:, d] += np.bincount(arcs.node, least[:, d], len(floor))
    return floor


def _simple_bound(request: Request, task: Levels) -> Bound:
    """Return the greater of what one node must carry, and what all that lead must together."""
    cluster = request.cluster
    names = [cluster.dimensions[d] for d in task.dimension.tolist()]
    floor = _floor(task)
    fullest_node, dimension = divmod(int(floor.argmax()), floor.shape[1])
    where = f"{cluster.nodes.names[fullest_node]} in {names[dimension]}, whichever replica leads"
    best = Bound(float(floor.max()), where, np.zeros(floor.shape))
    best.price[fullest_node, dimension] = 1.0
    among = np.unique(task.arcs.node)
    for d, name in enumerate(names):
        target = task.target[among, d]
        if not (np.isfinite(target) & (target > 0.0)).all():
            continue
        carried = (task.base[among, d] * target).sum() + task.extra[:, d].sum()
        if (level := float(carried / target.sum())) > best.level:
            price = np.zeros(floor.shape)
            price[among, d] = target / target.sum()
            best = Bound(level, f"all that may lead, in {name}", price)
    return best


def _priced(task: Levels, price: NDArray[np.float64]) -> float:
    """Return the bound at prices that sum to 1: each partition led where it is cheapest."""
    arcs = task.arcs
    first = np.searchsorted(arcs.p, np.arange(arcs.count))
    cheapest = np.minimum.reduceat((price[arcs.node] * task.share).sum(axis=1), first)
    return float((price * task.base).sum() + cheapest.sum())


def _relax(search: Search) -> None:
    """Raise the bound by the linear program, and begin from the choice nearest to it, too."""
    found = _relaxed(search.task)
    if found is not None:
        search.look_near(*found)


def _relaxed(task: Levels) -> tuple[Bound, NDArray[np.int64]] | None:
    """Solve the linear program: its bound, and the choice nearest to it; None where it fails."""
    from scipy import sparse
    from scipy.optimize import linprog

    arcs, (nodes, dimensions) = task.arcs, task.base.shape
    count = len(arcs.p)
    rows = (arcs.node[:, None] * dimensions + np.arange(dimensions)).ravel()
    columns = np.repeat(np.arange(count), dimensions)
    used, row = np.unique(rows, return_inverse=True)
    above = sparse.csr_matrix((task.share.ravel(), (row, columns)), (len(used), count))
    above = sparse.hstack([above, sparse.csr_matrix(-np.ones((len(used), 1)))], format="csr")
    once = sparse.csr_matrix((np.ones(count), (arcs.p, np.arange(count))), (arcs.count, count + 1))
    solved = linprog(
        np.append(np.zeros(count), 1.0),
        A_ub=above, b_ub=-task.base.ravel()[used], A_eq=once, b_eq=np.ones(arcs.count),
        bounds=[(0.0, None)] * count + [(None, None)], method="highs",
    )  # fmt: skip
    if solved.x is None:
        return None
    price = np.zeros(nodes * dimensions)
    price[used] = np.maximum(-solved.ineqlin.marginals, 0.0)
    if not price.sum() > 0.0:
        return None
    price = (price / price.sum()).reshape(nodes, dimensions)
    order = np.lexsort((np.arange(count), -solved.x[:count], arcs.p))
    nearest = order[np.searchsorted(arcs.p, np.arange(arcs.count))]
    # any prices give a valid bound; the optimum of the solver is not trusted
    bound = Bound(_priced(task, price), "the linear relaxation", price)
    return bound, nearest.astype(np.int64)


def _is_flow(task: Levels) -> bool:
    """Return whether all leads weigh alike in one dimension, on nodes that can carry any."""
    extra = task.extra
    sole = extra.shape[1] == 1 and extra[0, 0] > 0.0 and bool((extra == extra[0, 0]).all())
    target = task.target[task.arcs.node]
    return sole and bool((np.isfinite(target) & (target > 0.0)).all())


def _by_flow(task: Levels, clock: Clock, changes: int | None) -> tuple[NDArray[np.int64], Bound]:
    """Find the least level by halving over flows, and the fewest changes at it."""
    arcs, nodes = task.arcs, len(task.base)
    base, target, weight = task.base[:, 0], task.target[:, 0], float(task.extra[0, 0])
    held = np.bincount(arcs.node, minlength=nodes)
    at = np.repeat(np.arange(nodes), held)
    more = np.arange(len(at)) - np.repeat(np.cumsum(held) - held, held) + 1
    levels = np.unique(np.append(base[at] + more * (weight / target[at]), base.max()))
    levels = levels[levels >= base.max()]

    def room_at(at: int) -> Places:
        room = np.floor((float(levels[at]) * (1.0 + ROUNDING) - base) * target / weight + ROUNDING)
        room = np.where(held > 0, np.clip(np.nan_to_num(room), 0, arcs.count), 0)
        return Places.on_nodes(arcs, room.astype(np.int64))

    high, chosen = least_within(arcs, room_at, len(levels), clock, changes)
    if chosen is None:
        raise AssertionError("every node led all it could, and some partition found none")
    return chosen, Bound(float(levels[high]), "flow", np.zeros((0, 0)))
