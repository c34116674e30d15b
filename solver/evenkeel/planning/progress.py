"""Progress of a plan: which steps are done, and how level the cluster is after so many bytes."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.loads import utilisation
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.quantities import is_real
from evenkeel.model.runtime.figures import data, data_of, quantity
from evenkeel.model.runtime.printable import printable, some_of
from evenkeel.planning.explain import way_of
from evenkeel.planning.observed import Flights
from evenkeel.planning.steps import StepKind, Steps, roles_of

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan


SHOWN = 4
"""Steps of a line that are spelled out; the rest is counted."""


@dataclass(frozen=True, eq=False)
class Progress:
    """How far a plan of S steps has come; ``str`` of it is lines for a person to watch.

    Parameters
    ----------
    plan : Plan
        What is carried out.
    done, under_way : ndarray of bool, shape (S,)
        Steps that have finished; copies of which a part has arrived.
    astray : tuple of str
        Replicas that are where the plan never has them, as ``partition[slot] on node``.
    elapsed : float or None
        Seconds since the plan began, if given.
    left_of : ndarray of float64, shape (S,), or None
        Share of each copy that has not arrived; None where unknown.
    alive : ndarray of bool, shape (N,), or None
        Nodes that still live; None for all.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> plan = ek.solve(c, goals=ek.Goals(level=0.0)).plan(throttle=ek.Throttle(copies=1))
    >>> print(plan.progress(plan.prefix(len(plan) // 2).end, elapsed=3.0))
    1 of 2 copies done, 0 under way; wave 2 of 2
    1 s left at the plan's pace, 3 s at the pace so far
    next: copy [0] n0 -> n1 of p1
    """

    plan: "Plan"
    done: NDArray[np.bool_]
    under_way: NDArray[np.bool_]
    astray: tuple[str, ...]
    elapsed: float | None = None
    left_of: NDArray[np.float64] | None = None
    alive: NDArray[np.bool_] | None = None

    @property
    def finished(self) -> bool:
        """Whether every step is done."""
        return bool(self.done.all())

    @property
    def bytes_done(self) -> float:
        """How much has been copied, in the unit of the cluster's ``bytes`` dimension."""
        return float((self.plan.steps.size * (1.0 - self._open)).sum())

    @cached_property
    def _open(self) -> NDArray[np.float64]:
        """Share of each step that is still to be done, (S,)."""
        whole = np.ones(len(self.done)) if self.left_of is None else self.left_of
        return np.where(self.done, 0.0, np.where(self.under_way, whole, 1.0))

    @cached_property
    def ready(self) -> NDArray[np.intp]:
        """Steps that wait for nothing any more and have not begun; none to a node that died."""
        steps = self.plan.steps
        later = np.repeat(np.arange(len(steps)), np.diff(steps.first))
        held_up = np.zeros(len(steps), bool)
        held_up[later[~self.done[steps.before]]] = True
        if self.alive is not None:
            held_up |= ~np.append(self.alive, True)[steps.target]
        return np.flatnonzero(~(self.done | self.under_way | held_up))

    @property
    def died(self) -> list[str]:
        """Nodes that lived when the plan was made, while something is left to do."""
        if self.alive is None or self.finished:
            return []
        nodes = self.plan.cluster.nodes
        return [nodes.names[n] for n in np.flatnonzero(nodes.alive & ~self.alive).tolist()]

    @cached_property
    def left(self) -> float:
        """Seconds that what is left takes at the plan's pace: its longest chain.

        Of a copy in flight the share that has not arrived counts, all of it where unknown.
        """
        steps = self.plan.steps
        lasts = (self._open * (steps.finish - steps.start)).tolist()
        first, before = steps.first.tolist(), steps.before.tolist()
        ends = [0.0] * len(steps)
        for i, seconds in enumerate(lasts):
            ready = max((ends[k] for k in before[first[i] : first[i + 1]]), default=0.0)
            ends[i] = ready + seconds
        return max(ends, default=0.0)

    @property
    def left_so_far(self) -> float | None:
        """Seconds left at the pace so far; None until it is known."""
        came = self.plan.makespan - self.left
        if self.elapsed is None or came <= 0.0:
            return None
        return self.left * self.elapsed / came

    def __str__(self) -> str:
        plan, steps = self.plan, self.plan.steps
        copies = steps.kind == StepKind.COPY
        if self.finished:
            return f"done: {plan.copies:,} copies, {len(plan):,} steps"
        amount = ""
        if plan.bytes > 0.0:
            unit = plan.cluster.dimensions[plan.cluster.bytes_dimension]
            amount = f" ({data(self.bytes_done, unit)} of {data_of(plan.bytes, unit)})"
        wave = int(steps.wave[~self.done].min())
        lines = [
            f"{int((copies & self.done).sum()):,} of {plan.copies:,} copies done{amount}, "
            f"{int(self.under_way.sum()):,} under way; "
            f"wave {int(np.searchsorted(np.unique(steps.wave), wave)) + 1:,} of {len(plan.waves):,}"
        ]
        if self.died:
            lines.append(f"died since: {some_of(self.died, str)}; resume plans what is left anew")
        else:
            pace = f"{round(self.left, 2):,.12g} s left at the plan's pace"
            if self.left_so_far is not None:
                pace += f", {round(self.left_so_far, 2):,.12g} s at the pace so far"
            lines.append(pace)
        to_come = self.ready[:0] if self.died else self.ready
        for word, which in (("under way", np.flatnonzero(self.under_way)), ("next", to_come)):
            if len(which):
                rows = plan.rows_of(which[:SHOWN])
                moves = ", ".join(f"{way_of(row)} of {row.partition}" for row in rows)
                lines.append(f"{word}: {moves}{_more(len(which))}")
        if self.astray:
            lines.append(f"off the plan: {', '.join(self.astray[:SHOWN])}{_more(len(self.astray))}")
        if plan.blocked:
            lines.append(f"blocked: {len(plan.blocked):,} moves")
        return "\n".join(map(printable, lines))


def progress_of(
    plan: "Plan",
    observed: Placement,
    elapsed: float | None,
    flights: Flights,
    alive: NDArray[np.bool_],
) -> Progress:
    """Return which steps are done, judged by replicas, leaders and live nodes.

    A replica has passed the copies that lead to its node. Of those flagged ``INCOMING`` the copy is
    under way. Leadership goes with the rest of its change, or alone is judged by the leader.
    """
    steps, first = plan.steps, plan.cluster.placement.first
    copies = np.flatnonzero(steps.kind == StepKind.COPY)
    hop = _hops(plan, copies)
    last = np.zeros(len(observed.node), np.int64)
    np.maximum.at(last, steps.replica, hop)
    node, coming = observed.node, (observed.flags & Flag.INCOMING) != 0
    place = np.full(len(node), -1, np.int64)
    place[plan.cluster.placement.node == node] = 0
    at, of = hop[copies], steps.replica[copies]
    here = steps.target[copies] == node[of]
    under_way = np.zeros(len(steps), bool)
    under_way[copies[here & coming[of]]] = True
    np.maximum.at(place, of[here], at[here] - coming[of[here]])
    dropped = (plan.end.node < 0) & (plan.cluster.placement.node >= 0)
    place[dropped & (node < 0)] = last[dropped & (node < 0)] + 1
    drops = dropped[steps.replica] & (hop == last[steps.replica]) & (steps.kind != StepKind.COPY)
    done = place[steps.replica] >= hop + drops
    recast = np.flatnonzero(steps.in_place)
    rises = steps.kind[recast] == StepKind.PROMOTE
    done[recast] &= (observed.role[steps.replica[recast]] == Role.VOTER) == rises
    under_way &= ~done
    _settle_leads(plan, observed, done)
    moved = np.zeros(len(node), bool)
    moved[steps.replica] = True
    lost = np.flatnonzero((place < 0) & moved)
    owner = observed.owner[lost]
    names = [*plan.cluster.nodes.names, "no node"]
    partitions = plan.cluster.partitions.names
    astray = tuple(
        f"{partitions[int(p)]}[{int(k - first[p])}] on {names[int(node[k])]}"
        for p, k in zip(owner, lost, strict=True)
    )
    if elapsed is not None and not (is_real(elapsed) and 0.0 <= elapsed < np.inf):
        message = "must be a number of seconds, 0 or more"
        raise InvalidInput([Fault("elapsed", elapsed, message)])
    left_of = flights.left(steps.replica, steps.target)
    return Progress(plan, done, under_way, astray, elapsed, left_of, alive)


def _hops(plan: "Plan", copies: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return how many copies of its replica have begun up to each step, itself included, (S,)."""
    steps = plan.steps
    began = np.zeros(len(steps), np.int64)
    began[copies] = 1
    order = np.argsort(steps.replica, kind="stable")
    count = np.cumsum(began[order])
    opens = np.flatnonzero(np.diff(steps.replica[order], prepend=-1))
    before = np.repeat(count[opens] - began[order[opens]], np.diff(np.append(opens, len(steps))))
    hop = np.empty(len(steps), np.int64)
    hop[order] = count - before
    return hop


def _settle_leads(plan: "Plan", observed: Placement, done: NDArray[np.bool_]) -> None:
    """Mark which changes of leader are done: those of changes that are, and those that show."""
    steps = plan.steps
    leads = np.flatnonzero(steps.kind == StepKind.LEAD)
    if len(leads) == 0:
        return
    number = np.unique(plan.change, return_inverse=True)[1]
    others = np.flatnonzero(steps.kind != StepKind.LEAD)
    pending = np.zeros(len(steps), bool)
    pending[number[others[~done[others]]]] = True
    alone = np.ones(len(steps), bool)
    alone[number[others]] = False
    done[leads] = ~pending[number[leads]]
    shows = observed.leader_replica[steps.partition[leads]] == steps.replica[leads]
    begins = plan.cluster.placement.leader_replica
    single = alone[number[leads]]
    done[leads[single]] = shows[single]
    latest = np.full(len(plan.cluster.partitions), -1)
    passed = others[done[others]]
    np.maximum.at(latest, steps.partition[passed], passed)
    # of several, who has lead before has led, and who led before what is done since
    for i in leads[single & ~shows].tolist():
        later = leads[(leads > i) & (steps.partition[leads] == steps.partition[i])]
        seen = observed.leader_replica[steps.partition[i]]
        follows = (steps.replica[later] == seen).any() and seen != begins[steps.partition[i]]
        done[i] = bool(follows) or latest[steps.partition[i]] > i


def _more(count: int) -> str:
    return f" and {count - SHOWN:,} more" if count > SHOWN else ""


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """What a plan has reached when so much is copied. M changes, in the order in which they begin.

    Parameters
    ----------
    bytes : ndarray of float64, shape (M + 1,)
        Copied so far, in the unit of the cluster's ``bytes`` dimension; copies without one.
    over : ndarray of float64, shape (M + 1,)
        By how much nodes are above the cluster's mean utilisation, added up over nodes and
        dimensions.
    excess : ndarray of float64, shape (M + 1,)
        By how much nodes are above their capacity, added up in the same way.

    Examples
    --------
    >>> Curve(np.array([0.0, 2.0]), np.array([0.5, 0.0]), np.zeros(2)).area
    1.0
    """

    bytes: NDArray[np.float64]
    over: NDArray[np.float64]
    excess: NDArray[np.float64]

    def __repr__(self) -> str:
        return (
            f"<Curve: {len(self.bytes) - 1:,} changes copy {quantity(self.bytes[-1])}; "
            f"above the mean {self.over[0]:.4g} -> {self.over[-1]:.4g}, "
            f"above capacity {self.excess[0]:.4g} -> {self.excess[-1]:.4g}>"
        )

    @property
    def area(self) -> float:
        """Over-utilisation times the bytes for which it lasts: the less, the sooner it falls."""
        return float((np.diff(self.bytes) * self.over[:-1]).sum())


def curve_of(cluster: Cluster, target: Placement, steps: Steps, change: NDArray[np.int32]) -> Curve:
    """Follow the loads of nodes from change to change."""
    node, amount, of = _shifts(cluster, target, steps)
    rank = np.cumsum(np.diff(change, prepend=change[:1]) != 0)
    count = int(rank[-1]) + 1 if len(rank) else 0
    position = rank[of]
    capacity = cluster.nodes.capacity
    loads = PlacementCounts.of(cluster, cluster.placement).loads
    accepting = cluster.nodes.may_hold
    room = capacity[accepting].sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nan_to_num(loads.sum(0) / room, posinf=0.0)
    over, excess = np.zeros(count + 1), np.zeros(count + 1)
    for d in range(len(cluster.dimensions)):
        able = np.isfinite(capacity[:, d]) & (capacity[:, d] > 0.0)
        for total, limit in ((over, mean[d]), (excess, 1.0)):
            total += _above(loads[:, d], capacity[:, d], limit, able, node, amount[:, d], position,
                            count)  # fmt: skip
    copied = steps.size if cluster.bytes_dimension >= 0 else steps.kind == StepKind.COPY
    each = np.bincount(rank, copied, count)
    return Curve(np.append(0.0, np.cumsum(each)), over, excess)


def _shifts(
    cluster: Cluster, target: Placement, steps: Steps
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.intp]]:
    """Return nodes that become fuller or emptier, by how much, (E, D), and through which step."""
    load, kind = cluster.partitions.load, steps.kind
    light = roles_of(cluster.placement, steps, target) == Role.NON_VOTER
    own = np.where(light[:, None], load.non_voter[steps.partition], load.voter[steps.partition])
    extra = load.leader[steps.partition] - load.voter[steps.partition]
    parts: list[tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.intp]]] = []
    recast = np.flatnonzero(steps.in_place)
    if len(recast):
        of = steps.partition[recast]
        more = load.voter[of] - load.non_voter[of]
        rises = (steps.kind[recast] == StepKind.PROMOTE)[:, None]
        parts.append((steps.target[recast], np.where(rises, more, -more), recast))
    for kinds, node, sign, weight in (
        (StepKind.COPY, steps.target, 1.0, own), (StepKind.REMOVE, steps.source, -1.0, own),
        (StepKind.LEAD, steps.target, 1.0, extra), (StepKind.LEAD, steps.source, -1.0, extra),
    ):  # fmt: skip
        some = np.flatnonzero((kind == kinds) & (node >= 0))
        parts.append((node[some], sign * weight[some], some))
    node, amount = (np.concatenate([one[i] for one in parts]) for i in (0, 1))
    return node.astype(np.int32), amount, np.concatenate([one[2] for one in parts])


def _above(
    load: NDArray[np.float64],
    capacity: NDArray[np.float64],
    limit: float,
    able: NDArray[np.bool_],
    node: NDArray[np.int32],
    amount: NDArray[np.float64],
    position: NDArray[np.intp],
    count: int,
) -> NDArray[np.float64]:
    """Return by how much nodes are above a utilisation before any change, and after each."""
    some = np.flatnonzero(able[node])
    some = some[np.lexsort((position[some], node[some]))]
    at, when, change = node[some], position[some], amount[some]
    total = np.cumsum(change)
    opens = np.flatnonzero(np.diff(at, prepend=-1))
    base = load[at[opens]] - (total[opens] - change[opens])
    length = np.diff(np.append(opens, len(at)))
    used = (total + np.repeat(base, length)) / capacity[at]
    above = np.maximum(used - limit, 0.0)
    first = np.maximum(utilisation(load[:, None], capacity[:, None])[:, 0] - limit, 0.0)
    first[~able] = 0.0
    before = np.roll(above, 1)
    before[opens] = first[at[opens]]
    steps = np.bincount(when + 1, above - before, count + 1)
    steps[0] = first.sum()
    return np.cumsum(steps)
