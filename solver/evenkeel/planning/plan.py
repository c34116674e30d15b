"""Plan: steps that lead from one placement to another, safe at every instant."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from evenkeel.measure.audit import audit
from evenkeel.measure.loads import utilisation
from evenkeel.measure.regressions import regressions
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.placement import Flag, Placed, Placement, Role, placement_of
from evenkeel.model.reading.arrays import (
    Flags,
    Ints32,
    Ints64,
    Reals,
    Rows,
    as_array,
    check_range,
    read_only,
)
from evenkeel.model.reading.frames import Backend, Frame
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.quantities import is_real, is_whole
from evenkeel.model.reading.selection import partition_index
from evenkeel.model.runtime.figures import data, data_of, quantity
from evenkeel.model.runtime.printable import counted, printable, some_of
from evenkeel.model.runtime.shown import Reported, Shown
from evenkeel.model.runtime.table import Table
from evenkeel.planning.disk_moves import NO_MOVES, DiskMoves, disk_moves
from evenkeel.planning.explain import (
    MakespanBound,
    PlanRow,
    explained,
    losses_in_words,
    makespan_bound,
    rows_of,
    short_until,
    way_of,
)
from evenkeel.planning.observed import Arrived, Cancelled, Flights, in_slots
from evenkeel.planning.replay import Certificate, replay
from evenkeel.planning.replay.loads import check_disks
from evenkeel.planning.steps import Blocked, StepKind, Steps, outcome, roles_of
from evenkeel.planning.throttle import Protocol, Throttle

SHOWN = 4  # steps of a line that are spelled out; the rest is counted


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
    disk_moves_left : int
        Moves inside nodes that are not done.

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
    done: Flags
    under_way: Flags
    astray: tuple[str, ...]
    elapsed: float | None = None
    left_of: Reals | None = None
    alive: Flags | None = None
    disk_moves_left: int = 0

    @property
    def finished(self) -> bool:
        """Whether every step and every move inside nodes is done."""
        return bool(self.done.all()) and not self.disk_moves_left

    @property
    def bytes_done(self) -> float:
        """How much has been copied, in the unit of the cluster's ``bytes`` dimension."""
        return float((self.plan.steps.size * (1.0 - self._open)).sum())

    @cached_property
    def _open(self) -> Reals:
        """Share of each step that is still to be done, (S,)."""
        whole = np.ones(len(self.done)) if self.left_of is None else self.left_of
        return np.where(self.done, 0.0, np.where(self.under_way, whole, 1.0))

    @cached_property
    def ready(self) -> Rows:
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
        inside = f"inside nodes {counted(self.disk_moves_left, 'move')} left"
        if self.done.all():
            done = f"done: {plan.copies:,} copies, {len(plan):,} steps"
            return f"{done}; {inside}" if self.disk_moves_left else done
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
        if self.disk_moves_left:
            lines.append(inside)
        return "\n".join(map(printable, lines))


def progress_of(
    plan: "Plan", observed: Placement, elapsed: float | None, flights: Flights, alive: Flags
) -> Progress:
    """Return which steps are done, judged by replicas, leaders and live nodes."""
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
    orders = np.flatnonzero(steps.kind == StepKind.ORDER)
    done[orders] = observed.preferred_node[steps.partition[orders]] == steps.target[orders]
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
    moves, lies = plan.disk_moves, observed.disk
    inside = moves.replica[moves.done]
    there = 0 if lies is None else np.count_nonzero(lies[inside] == moves.target[moves.done])
    left_inside = len(inside) - int(there)
    return Progress(plan, done, under_way, astray, elapsed, left_of, alive, left_inside)


def _hops(plan: "Plan", copies: Rows) -> Ints64:
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


def _settle_leads(plan: "Plan", observed: Placement, done: Flags) -> None:
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

    bytes: Reals
    over: Reals
    excess: Reals

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


def curve_of(cluster: Cluster, target: Placement, steps: Steps, change: Ints32) -> Curve:
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


def _shifts(cluster: Cluster, target: Placement, steps: Steps) -> tuple[Ints32, Reals, Rows]:
    """Return nodes that become fuller or emptier, by how much, (E, D), and through which step."""
    load, kind = cluster.partitions.load, steps.kind
    light = roles_of(cluster.placement, steps, target) == Role.NON_VOTER
    own = np.where(light[:, None], load.non_voter[steps.partition], load.voter[steps.partition])
    extra = load.leader[steps.partition] - load.voter[steps.partition]
    parts: list[tuple[Ints32, Reals, Rows]] = []
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
    load: Reals,
    capacity: Reals,
    limit: float,
    able: Flags,
    node: Ints32,
    amount: Reals,
    position: Rows,
    count: int,
) -> Reals:
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


@dataclass(frozen=True, eq=False)
class Plan(Reported, Shown):
    """Steps from the cluster's placement to a target. S steps.

    Parameters
    ----------
    cluster : Cluster
        Where it begins.
    target : Placement
        Where it leads; what stays with a partition has its slot.
    steps : Steps
        The steps, each after those that it waits for.
    throttle : Throttle
        What was allowed to be under way at once.
    protocol : Protocol
        What the system can do.
    change : ndarray of int32, shape (S,)
        Steps with the same number belong together: what a partition goes through at once.
    blocked : tuple of Blocked
        Moves for which there was no safe order.
    towards : Placement or None
        Of the beginning of a longer plan: where that one leads. What that breaks in the end is not
        asked of its beginning either. And of a plan that leaves some of what was asked as it is,
        because its source is down: the target that was asked for, if it bounds what nodes
        and groups may have.
    cancelled : tuple of Cancelled
        Of a plan that was gone on with: copies in flight that are to be dropped first.
    undeclared : bool
        Whether its target is not known, as of a plan that another tool wrote: its target is
        where it ends, and ``check`` asks all that the beginning keeps of that, too.
    in_flight : ndarray of int32, shape (K,), or None
        Of a plan that was gone on with: the node that each replica is on, or is being copied to as
        the plan begins. Those copies are its own steps, and have their room from the beginning.
    goals : Goals, Cost or None
        What its target was solved for, where it is a result's; files of plans do not keep it.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> found = ek.plan(c, result, throttle=ek.Throttle(copies=1))
    >>> len(found.waves), found.makespan, found.bound.seconds
    (2, 2.0, 2.0)
    """

    cluster: Cluster
    target: Placement
    steps: Steps
    throttle: Throttle
    protocol: Protocol
    change: Ints32
    blocked: tuple[Blocked, ...] = ()
    towards: Placement | None = None
    cancelled: tuple[Cancelled, ...] = ()
    undeclared: bool = False
    in_flight: Ints32 | None = None
    goals: Goals | Cost | None = None

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def complete(self) -> bool:
        """Whether it leads to the target; else ``blocked`` lists the rest, if the planner knows.

        Moves between disks that have no room are those of ``disk_moves.blocked``.

        A plan from a file may lack steps, and then nothing is blocked.
        """
        return not self.blocked and not self.astray and not len(self.disk_moves.blocked)

    @cached_property
    def astray(self) -> int:
        """How many partitions end elsewhere than in the target, with no move that is blocked."""
        if self.blocked or self.undeclared:
            return 0
        end, target = self.end, self.target
        differs = end.leader_node != target.leader_node
        differs[target.owner[end.node != target.node]] = True
        return int(np.count_nonzero(differs))

    @property
    def copies(self) -> int:
        """How many replicas are copied."""
        return int(np.count_nonzero(self.steps.kind == StepKind.COPY))

    @property
    def bytes(self) -> float:
        """How much is copied, in the unit of the cluster's ``bytes`` dimension."""
        return float(self.steps.size.sum())

    @property
    def makespan(self) -> float:
        """Seconds from the beginning to the last finish; a copy lasts one without bandwidths."""
        return float(self.steps.finish.max(initial=0.0))

    @property
    def short_for(self) -> float:
        """Seconds until no partition is short of live replicas; inf where one stays short."""
        return float(short_until(self).max(initial=0.0))

    @cached_property
    def bound(self) -> MakespanBound:
        """Seconds that no order of the same copies can beat."""
        given = self.cluster, self.target, self.steps, self.throttle
        return makespan_bound(*given, not self.protocol.whole, self.change)

    @cached_property
    def waves(self) -> tuple[Rows, ...]:
        """The steps of each wave, ascending: those of a move are in one wave, in their order."""
        if len(self) == 0:
            return ()
        order = np.argsort(self.steps.wave, kind="stable")
        cuts = np.flatnonzero(np.diff(self.steps.wave[order])) + 1
        return tuple(np.split(order, cuts))

    @cached_property
    def disk_moves(self) -> DiskMoves:
        """What changes its disk on its node, in waves before and after the steps."""
        if self.cluster.disks is None:
            return NO_MOVES
        return disk_moves(
            self.cluster, self._copied, self.target, self.throttle.disk_moves,
            names_all=self.protocol.names_all,
        )  # fmt: skip

    @cached_property
    def _copied(self) -> Placement:
        """Where the steps lead, without the moves between disks."""
        return outcome(self.cluster.placement, self.steps, self.target)

    @cached_property
    def end(self) -> Placement:
        """Where the plan ends: the target, but for what is blocked."""
        end, moves = self._copied, self.disk_moves
        if end.disk is None or not len(moves):
            return end
        disk = end.disk.copy()
        disk[moves.replica[moves.done]] = moves.target[moves.done]
        return replace(end, disk=read_only(disk))

    @cached_property
    def regressions(self) -> Mapping[str, int]:
        """What its end breaks that the beginning keeps, by kind, as of a ``Result``.

        Steps are safe on the way to any target: these are the rules that the target itself
        breaks.
        """
        # what moves counts on both ends while it does, which is over in the end
        cluster = replace(self.cluster, transient=np.zeros_like(self.cluster.transient))
        return dict(regressions(cluster, self.end, audit(cluster, self.end)).counts)

    def after(self, waves: int) -> Placement:
        """Return what is to be seen once so many waves are done.

        Waves are not in the order of the steps, so that this is not where ``prefix`` ends.

        Parameters
        ----------
        waves : int
            How many of ``waves`` are done, from the first one on.

        Returns
        -------
        Placement
            Where replicas are, as what, and who leads. What is copied by then, and serves only in a
            later wave, is flagged ``INCOMING``, as ``resume`` and ``progress`` read it.

        Raises
        ------
        InvalidInput
            If there are not so many waves.

        Examples
        --------
        >>> import evenkeel as ek
        >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
        >>> plan = ek.solve(c, goals=ek.Goals(level=0.0)).plan(throttle=ek.Throttle(copies=1))
        >>> [plan.after(done).node.tolist() for done in range(len(plan.waves) + 1)]
        [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]]
        """
        _check_count("waves", waves, len(self.waves))
        some = np.sort(np.concatenate([*self.waves[:waves], np.zeros(0, np.intp)]))
        return outcome(self.cluster.placement, self.steps, self.target, some)

    def check(self) -> Certificate:
        """Replay every state between the steps, with code that the planner has no part in.

        Room is proven for every pace of the copies, throttles for the times that are planned.

        Returns
        -------
        Certificate
            What is broken first, if anything is, and the tightest points of every kind.
        """
        target = None if self.undeclared else self.target
        found = replay(
            self.cluster, self.steps, target=target, towards=self.towards,
            throttle=self.throttle, joint=self.protocol.joint, quorum=self.protocol.quorum,
            in_flight=self.in_flight,
        )  # fmt: skip
        if self.cluster.disks is None:
            return found
        given = self.cluster, self.end, self.disk_moves, self.throttle.disk_moves
        inside = tuple(check_disks(*given, self.makespan))
        return replace(found, breaches=found.breaches + inside) if inside else found

    def curve(self) -> Curve:
        """Return how level the cluster is against the bytes copied, change by change.

        Returns
        -------
        Curve
            From the beginning to the end of the plan.
        """
        return curve_of(self.cluster, self.target, self.steps, self.change)

    def prefix(self, count: int) -> "Plan":
        """Return the plan of the first steps, and nothing unsettled.

        Parameters
        ----------
        count : int
            Most steps; the steps of a move that would be cut are left out as a whole.

        Returns
        -------
        Plan
            Its target is where it ends; it is checked as the beginning of this one.

        Raises
        ------
        InvalidInput
            If there are not so many steps.
        """
        _check_count("count", count, len(self))
        while 0 < count < len(self) and self.change[count] == self.change[count - 1]:
            count -= 1
        steps = self.steps.first_ones(count)
        target = outcome(self.cluster.placement, steps, self.target)
        coming = self.in_flight
        if coming is not None:  # what goes on later is no matter of this plan
            mine = np.zeros(len(coming), bool)
            mine[steps.replica[steps.kind == StepKind.COPY]] = True
            coming = np.where(mine, coming, self.cluster.placement.node)
        return Plan(
            self.cluster, target, steps, self.throttle, self.protocol, self.change[:count],
            towards=self.target if self.towards is None else self.towards, in_flight=coming,
            goals=self.goals,
        )  # fmt: skip

    def undo(self) -> "Plan":
        """Return the plan back from where this one ends, planned afresh.

        Returns
        -------
        Plan
            Its target is the placement that this plan begins with. What stood on nodes that have
            died is not brought back there: that is ``blocked``.
        """
        from evenkeel.planning.planner import planned

        cluster = replace(self.cluster, placement=self.end)
        return planned(cluster, self.cluster.placement, self.throttle, self.protocol)

    @known_keywords
    def resume(self, observed: Cluster | Placement, *, arrived: Arrived | None = None) -> "Plan":
        """Return the plan from a state on the way, or beside it, to the same target.

        Parameters
        ----------
        observed : Cluster or Placement
            Where replicas are now; a cluster also states which nodes are alive. A replica that is
            flagged ``INCOMING``, or is seen beside the one that it replaces, is on its way to its
            node: it still serves where this plan had it before. Its copy goes on from the beginning
            of the new plan, or is ``cancelled`` if its node has died or is not where it is to be.
            What is to go to a node that has died stays, and is ``blocked``.
        arrived : mapping of (str, str) to float, optional
            Of copies in flight, by the names of the partition and of the node that it is copied to:
            the share that is there, 0 to 1. That is not copied again; it is 0 by default, and 1 of
            what is ``HEALTHY`` or ``CAUGHT_UP``.

        Returns
        -------
        Plan
            What has been done is not done again.

        Raises
        ------
        InvalidInput
            If other partitions or slots are observed, or ``arrived`` names what is not in flight.
        """
        from evenkeel.planning.planner import resumed_plan

        return replace(
            resumed_plan(self, observed, self.target, arrived, self.towards), goals=self.goals
        )

    @known_keywords
    def progress(
        self,
        observed: Cluster | Placement,
        elapsed: float | None = None,
        *,
        arrived: Arrived | None = None,
    ) -> Progress:
        """Return the progress of the plan, judged by where replicas are seen.

        Parameters
        ----------
        observed : Cluster or Placement
            Where replicas are now; those flagged ``INCOMING`` are still being copied.
        elapsed : float, optional
            Seconds since the plan began, for the pace so far.
        arrived : mapping of (str, str) to float, optional
            How much of copies in flight is there, as for ``resume``.

        Returns
        -------
        Progress
            What is done, under way and next, and how long the rest takes.

        Raises
        ------
        InvalidInput
            If other partitions or slots are observed.
        """
        now = in_slots(self.cluster, self.target, self.steps, observed)
        nodes = observed.nodes if isinstance(observed, Cluster) else self.cluster.nodes
        return progress_of(self, now, elapsed, Flights.of(self.cluster, now, arrived), nodes.alive)

    @known_keywords
    def merge(
        self,
        target: Placement | Placed,
        done: int = 0,
        *,
        observed: Cluster | Placement | None = None,
        arrived: Arrived | None = None,
    ) -> "Plan":
        """Return the plan to another target, from where the first steps of this one lead.

        Parameters
        ----------
        target : Placement or Result
            The new target; anything with a ``placement`` will do.
        done : int, optional
            Steps that were carried out, as for ``prefix``.
        observed : Cluster or Placement, optional
            Where replicas are now, as for ``resume``; then ``done`` is not asked.
        arrived : mapping of (str, str) to float, optional
            How much of copies in flight is there, as for ``resume``.

        Returns
        -------
        Plan
            With the same throttle and protocol.

        Raises
        ------
        InvalidInput
            If the target or what is observed is of other partitions or nodes, or there are not so
            many steps.
        """
        from evenkeel.planning.planner import resumed_plan

        if observed is None:
            _check_count("done", done, len(self))
            observed = self.prefix(done).end
        return resumed_plan(self, observed, placement_of(target), arrived)

    def rows(self) -> list[PlanRow]:
        """Return every step with names.

        Returns
        -------
        list of PlanRow
            In the order of the steps.
        """
        return self.rows_of(np.arange(len(self)))

    def explain(self, partition: str | int) -> str:
        """Describe the steps of a partition, their times, and what each of them waits for.

        Parameters
        ----------
        partition : str or int
            Its name or index.

        Returns
        -------
        str
            A line per step, below it the steps that it waits for, each with the room or the
            throttle that it gets of them; and a line per move that is blocked.

        Raises
        ------
        InvalidInput
            If there is no such partition.
        """
        return explained(self, partition_index(self.cluster.partitions.names, partition))

    @known_keywords
    def to_frame(self, backend: Backend | None = None) -> Frame:
        """Return the steps as a frame of pandas, polars or pyarrow, a row for each.

        Parameters
        ----------
        backend : str, optional
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``; the first of them that is installed.

        Returns
        -------
        frame
            The fields of ``rows_of`` by column.

        Raises
        ------
        InvalidInput
            If there is no such library, or narwhals is missing, which makes frames.
        """
        return Table.of_records(PlanRow, self.rows()).frame(backend)

    def rows_of(self, which: ArrayLike) -> list[PlanRow]:
        """Return some steps with names.

        Parameters
        ----------
        which : array_like of int
            Indices of steps.

        Returns
        -------
        list of PlanRow
            In the order asked for.

        Raises
        ------
        InvalidInput
            If there is no such step.
        """
        faults = FaultList()
        steps = as_array(faults, "which", which, np.int64, (None,))
        check_range(faults, "which", steps, 0, len(self), f"must be 0 to {len(self) - 1}")
        faults.raise_if_any()
        return rows_of(self, steps)

    def __repr__(self) -> str:
        return f"<Plan: {counted(len(self), 'step')} in {counted(len(self.waves), 'wave')}>"

    def __str__(self) -> str:
        if len(self) == 0 and self.complete:
            return self.inside or "Nothing is to be done."
        sized = self.cluster.bytes_dimension
        amount = f", {data_of(self.bytes, self.cluster.dimensions[sized])}" if sized >= 0 else ""
        waves, steps = counted(len(self.waves), "wave"), counted(len(self), "step")
        text = (
            f"{counted(self.copies, 'copy', 'copies')}{amount} in {waves} of {steps} "
            f"{'takes' if self.copies == 1 else 'take'} {self.makespan:,.1f} s; "
            f"no order takes less than {self.bound.seconds:,.1f} s "
            f"({self.bound.term})"
        )
        text += "." if self.throttle.paces or self.copies == 0 else "; a copy counts as 1 s."
        if self.astray:
            partitions = counted(self.astray, "partition")
            text += f" The steps do not lead to the target: {partitions} end elsewhere."
        if self.blocked:
            shown = "; ".join(str(one) for one in self.blocked[:3])
            text += f" {counted(len(self.blocked), 'move')} blocked: {shown}."
        inside = f" {self.inside}" if self.inside else ""
        return text + inside + losses_in_words(self)

    @property
    def inside(self) -> str:
        """What is moved between disks of nodes, as a sentence; empty for nothing."""
        moves = self.disk_moves
        if not len(moves):
            return ""
        amount = data_of(moves.bytes, self.cluster.dimensions[self.cluster.bytes_dimension])
        waves = counted(moves.waves, "wave")
        text = f"Inside nodes {counted(len(moves.done), 'move')}, {amount}, in {waves}"
        text += f", {moves.early:,} before the copies" if moves.early else ""
        held = len(moves.blocked)
        return text + (f"; {held:,} blocked, without room." if held else ".")


def _check_count(path: str, count: int, most: int) -> None:
    """Raise for what is no number of steps or waves that there are."""
    if not (is_whole(count) and 0 <= count <= most):
        raise InvalidInput([Fault(path, count, f"must be 0 to {most}")])
