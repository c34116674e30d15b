"""Input and output types of methods, and hooks for sessions and simulations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds import Bounds, bounds, bounds_of_levels
from evenkeel.methods.options import Options
from evenkeel.methods.shared.stopping import Progress as Progress
from evenkeel.methods.shared.stopping import StopReason
from evenkeel.methods.shared.stopping import Watch as Watch
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import read_only

PROVING = 2e-7  # seconds per replica that it takes to prove how many moves the goals take


@dataclass(frozen=True)
class Request:
    """The request to a method, of checked arguments."""

    cluster: Cluster
    goals: Goals | Cost
    limits: Limits
    options: Options | None
    start: Placement
    watch: Watch
    seed: int
    proven: Bounds | None = None

    def resumed_from(self, outcome: "Outcome") -> "Request":
        """Return the same request, begun where an outcome ends."""
        return replace(self, start=self.cluster.placement.replaced(outcome.node, outcome.leader))

    def pinned(self, which: NDArray[np.bool_]) -> "Request":
        """Return the same request with some replicas (K,) pinned."""
        before = self.cluster.placement
        flags = np.where(which, before.flags | Flag.PINNED, before.flags)
        held = replace(before, flags=read_only(flags.astype(before.flags.dtype)))
        start = held if self.start is before else self.start
        return replace(self, cluster=replace(self.cluster, placement=held), start=start)

    def keep_pinned(
        self, node: NDArray[np.int32], leader: NDArray[np.int16]
    ) -> tuple[NDArray[np.int32], NDArray[np.int16]]:
        """Return an answer in which partitions with pinned replicas stay as they are."""
        cluster, was = self.cluster, self.cluster.placement
        pinned = np.unique(was.owner[(was.flags & Flag.PINNED) != 0])
        if not len(pinned):
            return node, leader
        node, leader = np.array(node), np.array(leader)
        serves = np.append(cluster.nodes.serves, False)[was.node]
        for p in pinned.tolist():
            begin, end = was.first[p], was.first[p + 1]
            node[begin:end] = was.node[begin:end]
            slots = np.flatnonzero(serves[begin:end])
            if was.leader[p] in slots:
                leader[p] = was.leader[p]
            elif leader[p] >= 0:
                leader[p] = slots[0] if len(slots) else -1
        return node, leader

    @cached_property
    def bounds(self) -> Bounds:
        """Bounds for the goals: those passed in, or computed on first use."""
        if self.proven is not None:
            return self.proven
        prove = bounds if self.has_time_to_prove else bounds_of_levels
        return prove(self.cluster, self.goals)

    @cached_property
    def has_time_to_prove(self) -> bool:
        """Whether the time limit leaves the seconds to prove how many moves the goals take."""
        return self.watch.seconds_left > PROVING * len(self.cluster.placement.node)


@dataclass(frozen=True)
class Outcome:
    """What a strategy returns; the solve audits it."""

    # (K,) node of each replica of the cluster's placement, in its slots; -1 for none
    node: NDArray[np.int32]
    leader: NDArray[np.int16]  # (P,) slot that leads each partition
    stop_reason: StopReason  # why it stopped
    message: str = ""  # what a person should know beyond that
    work: int = 0  # candidates looked at
    warnings: tuple[str, ...] = ()  # what a person should look into
    timings: Mapping[str, float] = field(default_factory=dict)  # seconds per phase
    # what only this method returns: an ordered decision log, pairs for another system
    native: Any = None
    fewest: int = 0  # moves that the method has proven the goals to take at least


Strategy = Callable[[Request], Outcome]


class Loss(NamedTuple):
    """What becomes of lost nodes without a search. n replicas moved, N nodes, D dimensions."""

    replica: NDArray[np.int64]  # indices of the replicas lost, then of those that gave way, (n,)
    node: NDArray[np.int32]  # where each is placed, (n,); on its lost node what waits for a budget
    slot: NDArray[np.int16]  # the slot that leads its partition, (n,)
    lost: NDArray[np.int32]  # partitions without data after the loss, ascending
    under_min_active: NDArray[np.int32]  # partitions short of live replicas, ascending
    without_quorum: NDArray[np.int32]  # partitions without a majority of their voters, ascending
    loads: NDArray[np.float64]  # what each node carries, (N, D)
    replicas: NDArray[np.int64]  # replicas on each node, (N,)
    leaders: NDArray[np.int64]  # leaders on each node, (N,)
    most: NDArray[np.float64]  # highest utilisation of a node that serves, (D,)
    fair: NDArray[np.float64]  # load on serving nodes ÷ capacity of receiving nodes, (D,)
    moved: NDArray[np.float64]  # load of what moved, (D,)
    gave_way: int  # how many of those that moved were not lost
    waits: int  # how many of those lost wait for a budget
    fits: bool  # whether a placement of those, too, is known that breaks no rule


class LossSeries(NamedTuple):
    """How each of S losses ends, without a search. D dimensions."""

    # replicas moved, (S,); -1 where a search is needed and no other figure is known
    moves: NDArray[np.int64]
    gave_way: NDArray[np.int64]  # how many of them were not lost, (S,)
    most: NDArray[np.float64]  # highest utilisation of a node that serves, (S, D)
    fair: NDArray[np.float64]  # load on serving nodes ÷ capacity of receiving nodes, (S, D)
    moved: NDArray[np.float64]  # load of what moved, (S, D)
    # partitions without data, short of live replicas, without a majority, loss by loss, (E,)
    endangered: NDArray[np.int32]
    ends: NDArray[np.int64]  # where each of those lists ends, (S, 3)


class ReadyCluster(Protocol):
    """A cluster that a method holds ready for the loss of nodes; threads may ask side by side."""

    def lose(
        self, nodes: NDArray[np.int32], goals: Goals | Cost, limits: Limits | None = None
    ) -> Loss | None:
        """Lose nodes, each named once; None if that takes a search."""
        # An answer breaks no rule, as an audit apart from the search shows, and meets the goals;
        # none that meets them makes fewer moves. Where ``limits`` do not allow as many, the most
        # endangered of what was lost has moved, and only a budget keeps the rest.

    def lose_each(
        self, losses: Sequence[NDArray[np.int32]], goals: Goals | Cost
    ) -> LossSeries | None:
        """Lose nodes, find how that ends as ``lose`` does, and restore them; then the next ones."""
        # the first of the losses are answered, as many as there is room for, which is one at least;
        # None if all of them take a search


# holds a cluster ready; None if something is wrong with it, which takes a search anyhow
Holder = Callable[[Cluster], ReadyCluster | None]


@dataclass(frozen=True)
class SimulatedState:
    """The changed cluster, for methods that read more of it than the model holds."""

    # as it began: P partitions, and all N nodes that will ever be, of which the payload may know
    # the first ones only
    began: Cluster
    now: Cluster  # as it is, with the payload that it began with. The same nodes; Q partitions.
    origin: NDArray[np.int64]  # (Q,) the partition of ``began`` that each is, or came from
    seconds: float  # since ``began``
    since: NDArray[np.float64]  # (N,) second at which each node came into its state


# updates the native data of a cluster to its nodes, loads and placement
RefreshPayload = Callable[[SimulatedState], Cluster]


@dataclass(frozen=True)
class StoreView:
    """The known states of all N nodes at a decision, which may be stale."""

    # (N,) 0 available, 1 throttled, 2 suspect, 3 draining, 4 unknown, 5 decommissioning, 6 dead
    status: NDArray[np.int8]
    present: NDArray[np.bool_]  # (N,) whether a node is part of the cluster
    load: NDArray[np.float64]  # (N, D) in the dimensions of the cluster
    # replicas, leaders: (N,) what each has and leads
    replicas: NDArray[np.int64]
    leaders: NDArray[np.int64]
    io: NDArray[np.float64]  # (N,) how overloaded its disks are


@dataclass(frozen=True)
class Decision:
    """A decided change of one partition."""

    partition: int
    add: tuple[tuple[int, int], ...] = ()
    drop: tuple[int, ...] = ()
    role: tuple[tuple[int, int], ...] = ()
    lead: int = -1
    reason: str = ""
    urgency: float = 0.0


class Decider(Protocol):
    """Decides partition by partition, as a system does whose nodes decide by themselves."""

    def place(
        self, partition: int, node: NDArray[np.int32], role: NDArray[np.uint8], leader: int
    ) -> None:
        """Set the current replicas of a partition."""

    def look(self, seen: StoreView) -> None:
        """Set the states of nodes that the next decision uses."""

    def action(self, partition: int) -> tuple[str, float]:
        """Return what a partition needs first, and how urgently."""

    def replicas(self, partition: int) -> Decision | None:
        """Decide the next change of a partition's replicas."""

    def lease(self, partition: int) -> Decision | None:
        """Decide whether a partition should be led from elsewhere."""

    def load(self, node: int) -> list[Decision]:
        """Decide which load an overloaded node gives away."""


def only_for(system: str, cluster: Cluster) -> str:
    """Return the system that a method is for, that of the cluster, and a method for any.

    >>> only_for("Ceph", Cluster.from_arrays(capacity=[[1.0]], load=[], native_format="kafka"))
    'the method is for what was read from Ceph, and this is of kafka; balance takes any cluster'
    """
    own = f"of {cluster.native_format}" if cluster.native_format else "of no system"
    what = f"the method is for what was read from {system}, and this is {own}"
    return f"{what}; balance takes any cluster"
