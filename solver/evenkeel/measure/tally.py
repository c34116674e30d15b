"""Counts and sums of a placement's replicas by node and by partition."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import Flags, Ints32, Ints64, Reals, Rows
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.model.runtime.memoize import is_kept


@dataclass(frozen=True, eq=False)
class PlacementCounts:
    """Counts of a placement of K replicas, in an order of replicas that suits counting."""

    # That order is slot by slot where rows are uniform, so that a slot of all partitions is one
    # stretch of memory; else it is row by row.

    cluster: Cluster  # n nodes, P partitions
    placement: Placement  # where the replicas are

    @classmethod
    def of(cls, cluster: Cluster, placement: Placement) -> "PlacementCounts":
        """Return the placed of a placement, counted once and kept with it."""
        kept = placement.__dict__.get("_counts")
        if kept is None or kept.cluster is not cluster:
            made = cls(cluster, placement)
            if kept is not None:
                made.__dict__.update(kept.counted_for(cluster))
            kept = placement.__dict__["_counts"] = made
        return kept

    @classmethod
    def forget(cls, placement: Placement) -> None:
        """Drop what was counted of a placement: the two keep each other, and so the cluster."""
        placement.__dict__.pop("_counts", None)

    def counted_for(self, other: Cluster) -> dict[str, Any]:
        """Return the counts that also hold in another cluster with the same placement."""
        same = {"node_row"}
        if len(other.nodes) == len(self.cluster.nodes):
            same |= {"replicas", "leaders"}
            if other.partitions.load is self.cluster.partitions.load:
                same.add("loads")
        counted = self.__dict__.copy()
        return {name: counted[name] for name in counted if name in same or is_kept(name)}

    def take_over(self, loads: Reals, replicas: Ints64, leaders: Ints64) -> None:
        """Take what was counted elsewhere: ``loads (N, D)``, ``replicas`` and ``leaders (N,)``."""
        self.__dict__.update(loads=loads, replicas=replicas, leaders=leaders)

    @property
    def uniform(self) -> bool:
        """Whether every partition has as many slots, and the order is slot by slot."""
        return self.placement.slots is not None

    @cached_property
    def node_row(self) -> Rows:
        """Node of each replica plus one, so that 0 stands for no node; (K,) intp."""
        placement = self.placement
        if placement.slots is None:
            return np.add(placement.node, 1, dtype=np.intp)
        node_row = np.empty((placement.slots, len(placement)), np.intp)
        np.add(placement.nodes.T, 1, out=node_row, casting="unsafe")
        return node_row.reshape(-1)

    @cached_property
    def replicas(self) -> Ints64:
        """Replicas on each node, (N,) int64."""
        return np.bincount(self.node_row, minlength=len(self.cluster.nodes) + 1)[1:]

    @cached_property
    def holding(self) -> Ints64:
        """Replicas of each partition on nodes that may hold them, (P,) int64."""
        return self.per_partition(self.cluster.nodes.may_hold)

    @cached_property
    def leaders(self) -> Ints64:
        """Leaders on each node, (N,) int64."""
        node_row = np.add(self.placement.leader_node, 1, dtype=np.intp)
        return np.bincount(node_row, minlength=len(self.cluster.nodes) + 1)[1:]

    @cached_property
    def loads(self) -> Reals:
        """Load of each node by the roles of its replicas, (N, D) float64."""
        nodes, dimensions = self.cluster.nodes.capacity.shape
        total = np.zeros((nodes, dimensions))
        load = self.cluster.partitions.load
        leads, other = self._roles()
        start, pieces = 0, []
        for node_row, owner in self.stretches(self.node_row):
            lead, light = (flag[start : start + len(node_row)] for flag in (leads, other))
            all_lead = bool(lead.all())
            some = None if all_lead or not lead.any() else lead
            pieces.append((node_row, owner, all_lead, some, light if light.any() else None))
            start += len(node_row)
        for d in range(dimensions):
            # in one stretch of memory each: columns are slow to read, and each slot reads them
            leader, voter = load.leader[:, d].copy(), load.voter[:, d].copy()
            for node_row, owner, all_lead, some, lighter in pieces:
                weight = (leader if all_lead else voter)[owner]
                if lighter is not None and not all_lead:
                    weight = np.where(lighter, load.non_voter[owner, d], weight)
                if some is not None:
                    weight = np.where(some, leader[owner], weight)
                total[:, d] += np.bincount(node_row, weight, nodes + 1)[1:]
                beat()
        return total

    @property
    def lightest(self) -> Reals:
        """What a replica of each partition weighs at least, whatever its role, (P, D) float64."""
        return self.cluster.partitions.load.lightest

    @cached_property
    def heaviest(self) -> Reals:
        """What a replica of each partition weighs at most, whatever its role, (P, D) float64."""
        load = self.cluster.partitions.load
        return np.maximum(np.maximum(load.voter, load.leader), load.non_voter)

    def weighed(self, load: Reals, node_row: Rows) -> Reals:
        """Return the load of each node if every replica of a partition weighed the same."""
        nodes, dimensions = len(self.cluster.nodes), len(load)
        total = np.zeros((nodes, dimensions))
        for stretch, owner in self.stretches(node_row):
            for d in range(dimensions):
                total[:, d] += np.bincount(stretch, load[d, owner], nodes + 1)[1:]
        return total

    def stretches(self, each: Rows) -> Iterator[tuple[Rows, slice | Ints32]]:
        """Cut what stands in this order into pieces, each with the partitions that it is of."""
        if self.uniform:
            for slot in range(self.placement.slots or 0):
                beat()
                start = slot * len(self.placement)
                yield each[start : start + len(self.placement)], slice(None)
        else:
            beat()
            yield each, self.placement.owner

    def where(self, flag: Flags) -> Rows:
        """Return the replicas, in this order, on nodes that carry a flag."""
        return np.flatnonzero(np.append(False, flag).take(self.node_row))

    def partition(self, at: Rows) -> Rows:
        """Return the partitions of some replicas."""
        if not self.uniform:
            return self.placement.owner.take(at).astype(np.intp)
        # division by a scalar is quicker than its remainder
        return at - at // len(self.placement) * len(self.placement)

    def places(self, replica: Ints64) -> Ints64:
        """Return where in this order some replicas stand."""
        slots = self.placement.slots
        if not slots:
            return replica
        partition, slot = np.divmod(replica, slots)
        return slot * len(self.placement) + partition

    def spread_out(self, flag: Flags) -> Flags:
        """Give every replica, in this order, the flag of its partition."""
        slots = self.placement.slots
        return flag[self.placement.owner] if slots is None else np.tile(flag, slots)

    def tallied(self, flag: Flags) -> Ints64:
        """Count each partition's replicas that carry a flag."""
        partitions = len(self.placement)
        slots = self.placement.slots
        if slots is not None:
            # small numbers are added up many at a time
            kind = np.int8 if slots < 2**7 else np.int64
            of_slots = flag.reshape(slots, partitions).view(np.int8)
            count: Ints64 = np.add.reduce(of_slots, axis=0, dtype=kind).astype(np.int64)
            return count
        return np.bincount(self.placement.owner[flag], minlength=partitions)

    def per_partition(self, flag: Flags) -> Ints64:
        """Count each partition's replicas on nodes that carry a flag."""
        beat()
        return self.tallied(np.append(False, flag).take(self.node_row))

    def _roles(self) -> tuple[Flags, Flags]:
        """Return which replicas lead and which do not vote, in this order; (K,) both."""
        placement = self.placement
        other: Flags = np.zeros(len(placement.node), bool)
        if placement.role.any():
            other = placement.role == Role.NON_VOTER
        if placement.slots is None:
            leads = np.zeros(len(placement.node), bool)
            leads[placement.leader_replica[placement.leader >= 0]] = True
            return leads, other
        slot = np.arange(placement.slots)[:, None]
        by_slot = other.reshape(len(placement), placement.slots).T
        return (placement.leader == slot).reshape(-1), by_slot.reshape(-1)
