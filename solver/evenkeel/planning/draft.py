"""Draft: acts with all that they need and when each may start, before they become steps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.planning.changes.acts import Act, Acts, under_way, ushered
from evenkeel.planning.changes.ends import Ends
from evenkeel.planning.expand import steps_of
from evenkeel.planning.order import begun, least_seconds, ranks
from evenkeel.planning.protocols import Protocol
from evenkeel.planning.resources.copies import Copies, charge_throttle
from evenkeel.planning.resources.groups import charge_groups
from evenkeel.planning.resources.recovery import barred, charge_recovery, lacking
from evenkeel.planning.resources.space import charge_space
from evenkeel.planning.resources.table import Resources
from evenkeel.planning.resources.turns import charge_turns
from evenkeel.planning.scheduling import Hurry, Scheduled, chained, rank_in, scheduled
from evenkeel.planning.steps import Steps
from evenkeel.planning.throttle import Throttle
from evenkeel.planning.ties import tied
from evenkeel.planning.windows import Windows


def split_in_two(acts: Acts, protocol: Protocol) -> NDArray[np.bool_]:
    """Whether old and new replica of an act serve together for an instant, (M,)."""
    split = (acts.act == Act.MOVE) & acts.votes
    if protocol.joint:
        split &= acts.led & acts.leads
    return np.asarray(split)


@dataclass(frozen=True, eq=False)
class Leeway:
    """What a draft is free to do otherwise.

    Parameters
    ----------
    loose : ndarray of int32
        Partitions of which one change may come before another, whatever their numbers are.
    begins : ndarray of float64, shape (C,) or (0,)
        What begins earlier here goes first, instead of what its rank says; none for the latter.
    """

    loose: NDArray[np.int32]
    begins: NDArray[np.float64]

    def given(
        self,
        resources: Resources,
        acts: Acts,
        previous: NDArray[np.int32],
        by_rank: NDArray[np.int32],
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the change before each, and changes by rank; loose ones share their partition."""
        first = np.flatnonzero(np.diff(acts.change, prepend=-1))
        own = np.searchsorted(self.loose, acts.partition[first])
        loose = np.flatnonzero(np.isin(acts.partition[first], self.loose))
        if len(loose):
            base = resources.add("partition", np.ones(len(self.loose)))
            resources.borrow(base + own[loose], loose, np.ones(len(loose)))
            previous = previous.copy()
            previous[loose] = -1
            heir, led = _handed_over(acts)
            inside = np.isin(acts.partition[heir], self.loose)
            previous[acts.change[led[inside]]] = acts.change[heir[inside]]
        if len(self.begins):
            by_rank = np.lexsort((rank_in(by_rank), self.begins)).astype(np.int32)
        return previous, by_rank


def _handed_over(acts: Acts) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return acts that take the lead from who changes later, and of each the act of that one."""
    takes = np.flatnonzero(acts.heir >= 0)
    act_of = np.full(int(max(acts.replica.max(initial=-1), acts.heir.max(initial=-1))) + 1, -1)
    moves = np.flatnonzero(acts.act != Act.LEAD)
    act_of[acts.replica[moves]] = moves
    gives = act_of[acts.heir[takes]]
    later = (gives >= 0) & (acts.change[gives] > acts.change[takes])
    return takes[later], gives[later]


@dataclass(frozen=True, eq=False)
class Draft:
    """C changes of M acts, scheduled; those that never start wait for one another."""

    cluster: Cluster
    target: Placement
    ends: Ends
    acts: Acts
    copies: Copies
    split: NDArray[np.bool_]
    resources: Resources
    previous: NDArray[np.int32]
    schedule: Scheduled

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        target: Placement,
        ends: Ends,
        acts: Acts,
        throttle: Throttle,
        protocol: Protocol,
        in_turn: Sequence[int] = (),
        leeway: Leeway | None = None,
    ) -> "Draft":
        """Charge acts for what they take, and start each as early as there is room.

        The changes ``in_turn`` come after all others, one after another; not after those of
        partitions that rules block, which may never come.
        """
        count = int(acts.change.max(initial=-1)) + 1
        split = split_in_two(acts, protocol)
        copies = Copies.of(cluster, ends, acts, throttle)
        resources = Resources(count)
        shifts = charge_space(resources, cluster, target, acts, split)
        charge_groups(resources, cluster, target, acts)
        charge_throttle(resources, cluster, throttle, acts, copies)
        resources.keep(acts.change[ushered(acts, under_way(acts, cluster.placement.flags))])
        hopeless = acts.change[np.isin(acts.partition, acts.partition[acts.blocked])]
        charge_turns(resources, np.array(in_turn, np.int64), hopeless)
        lasts = copies.durations(acts, count)
        if acts.recovers.any():
            free = begun(cluster, acts, count)
            free[acts.change[lacking(cluster)[acts.partition] > 0]] = True
            charge_recovery(resources, acts, free, lasts)
        chain = chained(acts, count)
        by_rank, rank = ranks(cluster, acts, copies, shifts, throttle, chain)
        del shifts
        if leeway is not None:
            chain, by_rank = leeway.given(resources, acts, chain, by_rank)
        turn = np.array(in_turn, np.int32)
        in_order = np.append(by_rank[~np.isin(by_rank, turn)], turn)
        previous, held_back = tied(cluster, target, acts, in_order, chain)
        held_back[acts.change[acts.blocked]] = True
        hurry = None
        if throttle.hurries and previous is chain:
            # what is under way goes first, and groups that were told to
            fixed = rank if throttle.priority else ~begun(cluster, acts, count) + 0
            hurry = Hurry(fixed, rank, least_seconds(acts, copies, throttle, lasts))
        schedule = scheduled(resources, lasts, by_rank, previous, held_back, hurry)
        return cls(cluster, target, ends, acts, copies, split, resources, previous, schedule)

    @property
    def stuck(self) -> NDArray[np.intp]:
        """Changes that never start, ascending."""
        return np.flatnonzero(np.isnan(self.schedule.start))

    @property
    def seconds(self) -> float:
        """When the last change that starts has finished."""
        return float(np.nanmax(self.schedule.finish, initial=0.0))

    @property
    def worth(self) -> float:
        """What the ends of its classes amount to, the less the better; inf if that is all one."""
        hurry = self.schedule.hurry
        return np.inf if hurry is None else hurry.worth(hurry.ends(self.schedule.finish))

    @property
    def left(self) -> int:
        """How many replicas do not arrive."""
        return len(np.unique(self.acts.replica[np.isin(self.acts.change, self.stuck)]))

    @property
    def bytes(self) -> float:
        """How much is copied of what starts; of copies each counts as one without bytes."""
        starts = ~np.isnan(self.schedule.start[self.acts.change]) & self.copies.moves
        sized = self.cluster.bytes_dimension >= 0
        return float(self.copies.size[starts].sum() if sized else np.count_nonzero(starts))

    def of_acts(self, acts: Acts, throttle: Throttle, protocol: Protocol) -> "Draft":
        """Return the draft with other acts, which are neither charged nor scheduled."""
        copies = Copies.of(self.cluster, self.ends, acts, throttle)
        return replace(self, acts=acts, copies=copies, split=split_in_two(acts, protocol))

    def barred(self) -> "Draft":
        """Return the draft with what lacks nothing after all repairs that need not wait for it."""
        under_way = begun(self.cluster, self.acts, len(self.previous))
        schedule = barred(self.cluster, self.acts, under_way, self.schedule, self.previous)
        return replace(self, schedule=schedule)

    def steps(self, windows: Windows | None) -> tuple[Steps, NDArray[np.int32]]:
        """Return the steps of everything that starts, and the change that each is of."""
        steps, change = steps_of(self.acts, self.copies, self.split, self.schedule, self.previous)
        if windows is not None:
            start, finish = windows.opening(steps.start), windows.closing(steps.finish)
            # what takes no time is done when the copy before it is
            start = np.where(steps.start < steps.finish, start, finish)
            steps = replace(steps, start=start, finish=finish)
        return steps, change
