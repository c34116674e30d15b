"""The result of one synchronous step of a pipeline."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.engines.engine import CalculationFailed
from evenkeel.measure.compare import joined
from evenkeel.model.assignment import TOP, Assignment
from evenkeel.model.cluster import Cluster
from evenkeel.model.disks import lying
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import read_only
from evenkeel.planning.plan import Plan
from evenkeel.planning.planner import plan
from evenkeel.planning.throttle import Protocol, Throttle


@dataclass(frozen=True, eq=False, repr=False)
class PipelineResult:
    """Where replicas should be now.

    Parameters
    ----------
    assignment : Assignment
        The best possible, with what was added for partitions short of replicas that serve, and for
        nodes that are being swapped in. P partitions, in the numbers of the cluster that came.
    best_version, baseline_version : int
        Versions of the records it rests on; 0 if there is none yet.
    emergency : bool
        Whether partitions on lost nodes were placed anew.
    overwritten : bool
        Whether replicas were added that are not kept.
    partial_started, baseline_started : bool
        Whether a calculation was started beside the pipeline.
    wake_at : float or None
        When the next delay window ends: run the pipeline again then. None if no window is open.
    failures : tuple of CalculationFailed
        What failed since the last step, beside the pipeline too; what was known before still holds.
    seconds : float
        How long the step took.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import control
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> with control.Pipeline("balance", workers=control.InlineWorkers()) as pipeline:
    ...     step = pipeline.run(c.replace(gone=[False, True, False], alive=[True, False, True]))
    >>> step.emergency, step.moves_from(c.placement), sorted(set(step.placement.node.tolist()))
    (True, 4, [0, 2])
    """

    assignment: Assignment
    best_version: int
    baseline_version: int
    emergency: bool
    overwritten: bool
    partial_started: bool
    baseline_started: bool
    wake_at: float | None
    failures: tuple[CalculationFailed, ...]
    seconds: float

    @property
    def placement(self) -> Placement:
        """The assignment as a placement: the replica in the top state leads."""
        return self.assignment.as_placement

    def plan(
        self,
        cluster: Cluster,
        *,
        throttle: Throttle | None = None,
        protocol: str | Protocol | None = None,
    ) -> Plan:
        """Return the steps that lead there, safe at every one, instead of the bare placement.

        Parameters
        ----------
        cluster : Cluster
            Where replicas are: the snapshot that the pipeline was run with, or a later one of the
            same nodes and partitions.
        throttle : Throttle, optional
            How much may be under way at once.
        protocol : str or Protocol, optional
            What the system can do; by default that of the system that the cluster was read from.

        Returns
        -------
        Plan
            A partition that gets more replicas than it has slots has empty ones in its cluster.

        Raises
        ------
        InvalidInput
            If the cluster has other partitions, the throttle names unknown tiers, or there is no
            such protocol.
        """
        if len(cluster.partitions) != len(self.assignment):
            found, wanted = len(cluster.partitions), len(self.assignment)
            raise InvalidInput(
                [Fault("cluster", found, f"needs the {wanted} partitions of the step")]
            )
        return plan_towards(cluster, self.assignment, throttle, protocol)

    def moves_from(self, before: "PipelineResult | Assignment | Placement") -> int:
        """Count the replicas that get a node which is new to their partition.

        ``before`` is of the same partitions and nodes, by number; changes of leader are no moves.
        """
        if isinstance(before, PipelineResult):
            before = before.assignment
        was = before.as_placement if isinstance(before, Assignment) else before
        return int(joined(was, self.placement).sum())

    def __repr__(self) -> str:
        parts = [
            name
            for name in ("emergency", "overwritten", "partial_started", "baseline_started")
            if getattr(self, name)
        ]
        parts += [f"{len(self.failures)} failures"] if self.failures else []
        return (
            f"<PipelineResult: best possible {self.best_version}, baseline "
            f"{self.baseline_version}{''.join(f', {one}' for one in parts)}>"
        )


def plan_towards(
    cluster: Cluster, wanted: Assignment, throttle: Throttle | None, protocol: str | Protocol | None
) -> Plan:
    """Return the plan from a cluster's placement to an assignment of the same numbers."""
    # A replica that stays keeps its slot; one that comes takes that of one which leaves, in the
    # same domains if possible, or an empty one, or a new one where there is none.
    start = cluster.placement
    width = np.maximum(np.diff(start.first), np.diff(wanted.first))
    before = _widened(start, width)
    node, leader = before.node.copy(), before.leader.copy()
    rows = zip(before.first[:-1].tolist(), before.first[1:].tolist(), strict=True)
    domain = cluster.topology.domain
    top = wanted.node.copy()
    top[wanted.state != TOP] = -1
    for p, (begin, end) in enumerate(rows):
        due = wanted.node[wanted.first[p] : wanted.first[p + 1]].tolist()
        was = node[begin:end].tolist()
        row = [n if n in due else -1 for n in was]
        for n in due:
            if n not in row:
                free = [slot for slot, held in enumerate(row) if held < 0]
                row[max(free, key=lambda slot: alike(domain, was[slot], n))] = n
        node[begin:end] = row
        leads = top[wanted.first[p] : wanted.first[p + 1]]
        # the planner finds leaders for partitions without one
        leader[p] = row.index(int(leads[0])) if len(leads) and leads[0] >= 0 else -1
    target = before.replaced(node, leader)
    return plan(replace(cluster, placement=before), target, throttle=throttle, protocol=protocol)


def alike(domain: NDArray[np.int32], one: int, other: int) -> int:
    """Return how many domains two nodes share; -1 where one is none. ``domain`` is (L, N)."""
    if one < 0:
        return -1
    return int(np.count_nonzero((domain[:, one] == domain[:, other]) & (domain[:, one] >= 0)))


def _widened(start: Placement, width: NDArray[np.integer]) -> Placement:
    """Return a placement with more slots in some rows, empty ones at their ends."""
    if np.array_equal(width, np.diff(start.first)):
        return start
    first = np.zeros(len(width) + 1, np.int64)
    np.cumsum(width, out=first[1:])
    at = first[start.owner] + np.arange(len(start.node)) - start.first[start.owner]
    node = np.full(int(first[-1]), -1, np.int32)
    role = np.full(len(node), Role.VOTER, np.uint8)
    flags = np.zeros(len(node), np.uint16)
    node[at], role[at], flags[at] = start.node, start.role, start.flags
    found = Placement(
        read_only(first), read_only(node), read_only(role), read_only(flags), start.leader
    )
    return replace(found, disk=lying(found, start))
