"""Plan: steps that lead from one placement to another, safe at every instant."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import audit
from evenkeel.measure.regressions import regressions
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.placement import Placed, Placement, placement_of
from evenkeel.model.reading.frames import (
    Backend,
    Frame,
)
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.quantities import is_whole
from evenkeel.model.reading.selection import partition_index
from evenkeel.model.runtime.figures import data_of
from evenkeel.model.runtime.printable import counted
from evenkeel.model.runtime.shown import Reported, Shown
from evenkeel.model.runtime.table import Table
from evenkeel.planning.bounds import MakespanBound, makespan_bound
from evenkeel.planning.explain import PlanRow, explained, losses_in_words, rows_of, short_until
from evenkeel.planning.observed import Arrived, Cancelled, Flights, in_slots
from evenkeel.planning.progress import Curve, Progress, curve_of, progress_of
from evenkeel.planning.replay import Certificate, replay
from evenkeel.planning.steps import Blocked, StepKind, Steps, outcome
from evenkeel.planning.throttle import Protocol, Throttle


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
    change: NDArray[np.int32]
    blocked: tuple[Blocked, ...] = ()
    towards: Placement | None = None
    cancelled: tuple[Cancelled, ...] = ()
    undeclared: bool = False
    in_flight: NDArray[np.int32] | None = None
    goals: Goals | Cost | None = None

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def complete(self) -> bool:
        """Whether it leads to the target; else ``blocked`` lists the rest, if the planner knows.

        A plan from a file may lack steps, and then nothing is blocked.
        """
        return not self.blocked and not self.astray

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
        whole = self.protocol.whole
        exchange = self.change if whole else None
        given = self.cluster, self.target, self.steps, self.throttle
        return makespan_bound(*given, not whole, exchange)

    @cached_property
    def waves(self) -> tuple[NDArray[np.intp], ...]:
        """The steps of each wave, ascending: those of a move are in one wave, in their order."""
        if len(self) == 0:
            return ()
        order = np.argsort(self.steps.wave, kind="stable")
        cuts = np.flatnonzero(np.diff(self.steps.wave[order])) + 1
        return tuple(np.split(order, cuts))

    @cached_property
    def end(self) -> Placement:
        """Where the plan ends: the target, but for what is blocked."""
        return outcome(self.cluster.placement, self.steps, self.target)

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
        return replay(
            self.cluster, self.steps, target=target, towards=self.towards,
            throttle=self.throttle, joint=self.protocol.joint, quorum=self.protocol.quorum,
            in_flight=self.in_flight,
        )  # fmt: skip

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

    def rows_of(self, which: NDArray[np.integer]) -> list[PlanRow]:
        """Return some steps with names.

        Parameters
        ----------
        which : ndarray of int
            Indices of steps.

        Returns
        -------
        list of PlanRow
            In the order asked for.
        """
        return rows_of(self, which)

    def __repr__(self) -> str:
        return f"<Plan: {counted(len(self), 'step')} in {counted(len(self.waves), 'wave')}>"

    def __str__(self) -> str:
        if len(self) == 0 and self.complete:
            return "Nothing is to be done."
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
        return text + losses_in_words(self)


def _check_count(path: str, count: int, most: int) -> None:
    """Raise for what is no number of steps or waves that there are."""
    if not (is_whole(count) and 0 <= count <= most):
        raise InvalidInput([Fault(path, count, f"must be 0 to {most}")])
