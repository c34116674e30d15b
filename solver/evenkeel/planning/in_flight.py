"""Copies in flight: those that an observed state shows, and those that a resumed plan drops."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.reading.quantities import is_real
from evenkeel.planning.changes.actions import Action, Actions
from evenkeel.planning.steps import StepKind, Steps

Arrived = Mapping[tuple[str, str], float]
"""Names of a partition and of the node that it is copied to; share that is there, 0 to 1."""


@dataclass(frozen=True, eq=False)
class Flights:
    """The nodes that K replicas are on or on their way to, and the share that is still to come."""

    node: NDArray[np.int32]
    coming: NDArray[np.float64]

    @classmethod
    def of(cls, cluster: Cluster, now: Placement, arrived: Arrived | None) -> "Flights":
        """Read what has arrived of replicas that are flagged as incoming: all, where that is seen.

        Raises
        ------
        InvalidInput
            If nothing is in flight there, or a share is none.
        """
        faults = FaultList()
        if arrived is not None and not isinstance(arrived, Mapping):
            faults.add("arrived", arrived, "must map (partition, node) to a share")
            faults.raise_if_any()
        coming = np.where((now.flags & (Flag.HEALTHY | Flag.CAUGHT_UP)) != 0, 0.0, 1.0)
        rows: dict[tuple[str, str], int] = {}
        names, nodes = cluster.partitions.names, cluster.nodes.names
        if arrived:
            for k in np.flatnonzero((now.flags & Flag.INCOMING) != 0).tolist():
                rows[names[int(now.owner[k])], nodes[int(now.node[k])]] = k
        for key, share in (arrived or {}).items():
            if not is_real(share) or not 0.0 <= share <= 1.0:
                faults.add(f"arrived[{key!r}]", share, "must be a share, 0 to 1")
            elif key not in rows:
                faults.add("arrived", key, "is not a partition and node of a copy in flight")
            else:
                coming[rows[key]] = 1.0 - share
        faults.raise_if_any()
        return cls(now.node, coming)

    def left(
        self, replica: NDArray[np.integer], target: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """Return the share of copies of replicas to nodes that has not arrived yet."""
        return np.where(self.node[replica] == target, self.coming[replica], 1.0)

    def of_actions(self, actions: Actions, begin: Placement) -> Actions:
        """Return actions with the share left to copy, and which copies are in flight."""
        left = self.left(actions.replica, actions.target)
        flying = (self.node[actions.replica] == actions.target) & (
            begin.node[actions.replica] != actions.target
        )
        flying &= (actions.action == Action.MOVE) | (actions.action == Action.ADD)
        return replace(actions, left=left, flying=flying)


@dataclass(frozen=True)
class Cancelled:
    """A copy in flight that is no longer wanted: what has arrived of it is to be dropped first.

    Parameters
    ----------
    partition : str
        Name of the partition.
    slot : int
        Slot of the replica.
    node : str
        Name of the node that it was copied to.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> plan = result.plan()
    >>> plan.resume(c.placement).cancelled
    ()
    """

    partition: str
    slot: int
    node: str


@dataclass(frozen=True, eq=False)
class Settled:
    """An observed state with its copies in flight sorted out, before a plan goes on from it.

    Parameters
    ----------
    begin : Placement
        Where the replicas serve. Those of which a copy goes on are flagged ``INCOMING``.
    flights : Flights
        The copies that go on, in the slots whose replicas they become, and what is still to come.
    cancelled : tuple of Cancelled
        Those that are no use.
    """

    begin: Placement
    flights: Flights
    cancelled: tuple[Cancelled, ...]

    def forgotten(self, steps: Steps) -> NDArray[np.intp]:
        """Return the replicas whose copies are under way though no step goes on with them."""
        coming = self.flights.node != self.begin.node
        copies = np.flatnonzero(steps.kind == StepKind.COPY)
        on = copies[self.flights.node[steps.replica[copies]] == steps.target[copies]]
        coming[steps.replica[on]] = False
        return np.flatnonzero(coming)

    def without(self, replicas: NDArray[np.intp], cluster: Cluster) -> "Settled":
        """Return the state in which copies of some replicas are cancelled, itself if of none."""
        if len(replicas) == 0:
            return self
        flags, node = self.begin.flags.copy(), self.flights.node.copy()
        coming = self.flights.coming.copy()
        flags[replicas] &= ~np.uint16(Flag.INCOMING)
        names, nodes, first = cluster.partitions.names, cluster.nodes.names, self.begin.first
        more = [
            Cancelled(names[p], k - int(first[p]), nodes[n])
            for k, p, n in zip(replicas.tolist(), self.begin.owner[replicas].tolist(),
                               node[replicas].tolist(), strict=True)
        ]  # fmt: skip
        node[replicas], coming[replicas] = self.begin.node[replicas], 1.0
        begin = replace(self.begin, flags=read_only(flags))
        flights = Flights(read_only(node), read_only(coming))
        return Settled(begin, flights, (*self.cancelled, *more))

    def first_to_arrive(self, steps: Steps) -> bool:
        """Whether what goes on is the first copy of its replica, wherever that is copied at all."""
        goes_on = (self.begin.flags & Flag.INCOMING) != 0
        copies = np.flatnonzero(steps.kind == StepKind.COPY)
        replica, first = np.unique(steps.replica[copies], return_index=True)
        astray = steps.target[copies[first]] != self.flights.node[replica]
        return not bool((goes_on[replica] & astray).any())


def serving(start: Placement, steps: Steps, now: Placement) -> Placement:
    """Return where the replicas of an observed placement serve; itself if nothing is on its way.

    A replica that is flagged ``INCOMING`` serves where the steps, or else ``start``, had it before
    they copied it there.
    """
    coming = np.flatnonzero((now.flags & Flag.INCOMING) != 0)
    if len(coming) == 0:
        return now
    node, flags = now.node.copy(), now.flags.copy()
    node[coming] = _homes(start, steps, coming, now.node)[coming]
    flags[coming] &= ~np.uint16(Flag.INCOMING)
    return Placement(now.first, read_only(node), now.role, read_only(flags), now.leader)


def settled(
    cluster: Cluster,
    at_home: Placement,
    flights: Flights,
    wanted: Placement,
    continued: Steps | None = None,
) -> Settled:
    """Return which copies to the replicas of an observed cluster continue from where these serve.

    One goes on if a slot of its partition is to have its node as ``wanted``, or is copied there
    first by the steps ``continued``.
    """
    now = cluster.placement
    home, flags = at_home.node, at_home.flags.copy()
    going = _first_copies(continued, now)
    node, left = home.copy(), np.ones(len(now.node))
    cancelled = []
    names, nodes = cluster.partitions.names, cluster.nodes.names
    for k in np.flatnonzero(now.node != home).tolist():
        p, n = int(now.owner[k]), int(now.node[k])
        mine = np.arange(now.first[p], now.first[p + 1])
        free = mine[((wanted.node[mine] == n) | (going[mine] == n)) & (node[mine] == home[mine])]
        if len(free) and cluster.nodes.serves[n] and not (home[mine] == n).any():
            j = k if k in free else int(free[0])
            node[j], left[j] = n, flights.coming[k]
            flags[j] |= np.uint16(Flag.INCOMING)
        else:
            cancelled.append(Cancelled(names[p], k - int(now.first[p]), nodes[n]))
    begin = replace(at_home, flags=read_only(flags))
    return Settled(begin, Flights(read_only(node), read_only(left)), tuple(cancelled))


def _first_copies(steps: Steps | None, now: Placement) -> NDArray[np.int32]:
    """Return where some steps copy each replica first, (K,); -1 where they do not."""
    found = np.full(len(now.node), -1, np.int32)
    if steps is not None:
        copies = np.flatnonzero(steps.kind == StepKind.COPY)[::-1]
        found[steps.replica[copies]] = steps.target[copies]
    return found


def _homes(
    start: Placement, steps: Steps, replicas: NDArray[np.intp], node: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return where replicas, (K,), were before they were copied to their nodes."""
    home = start.node.copy()
    copies = np.flatnonzero(steps.kind == StepKind.COPY)
    copies = copies[np.isin(steps.replica[copies], replicas)]
    found: set[int] = set()
    # a replica that goes by a spare node is copied twice
    for k, n in zip(steps.replica[copies].tolist(), steps.target[copies].tolist(), strict=True):
        if n == node[k]:
            found.add(k)
        elif k not in found:
            home[k] = n
    astray = np.setdiff1d(replicas, np.array(sorted(found), np.int64))
    home[astray] = start.node[astray]
    return home
