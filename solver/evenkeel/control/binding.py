"""Bind a stored record to a cluster by the names of its nodes and partitions.

Nodes that the record names and the cluster lacks are numbered after the cluster's own, so that
their replicas can still be identified and placed again; ``with_vanished`` returns the cluster that
includes these nodes.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.operations import successors
from evenkeel.control.store import Record
from evenkeel.model.assignment import Assignment
from evenkeel.model.cluster import Cluster
from evenkeel.model.names import Names
from evenkeel.model.reading.arrays import read_only


def same_names(one: Names, other: Names) -> bool:
    """Return whether names are the same, at once where they usually are.

    >>> same_names(Names(["a"], 1, ""), Names(["b"], 1, ""))
    False
    """
    if one is other:
        return True
    if len(one) != len(other):
        return False
    if one.counted and other.counted:
        return len(one) == 0 or one[0] == other[0]
    return one == other


def numbers(before: Names, now: Names) -> NDArray[np.int32]:
    """Return what the number of each name was before."""
    if same_names(before, now):
        return np.arange(len(now), dtype=np.int32)
    if before.counted and now.counted and before[:1] == now[:1]:
        found = np.arange(len(now), dtype=np.int32)
        found[len(before) :] = -1
        return found
    places = {name: i for i, name in enumerate(before)}
    return np.fromiter((places.get(name, -1) for name in now), np.int32, len(now))


@dataclass(frozen=True, eq=False)
class Bound:
    """An assignment in the numbers of one cluster. P partitions, N nodes, V vanished ones."""

    assignment: Assignment  # on nodes below N + V
    known: NDArray[np.bool_]  # (P,) partitions that were ever placed
    nodes: int  # N
    vanished: tuple[str, ...] = ()  # v names of nodes that hold replicas and are not in the cluster

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """Nodes that hold replicas, (N + V,) bool."""
        counts = np.bincount(self.assignment.node, minlength=self.nodes + len(self.vanished))
        return read_only(counts > 0)

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        """Replicas of each partition, (P,) int32, as what it is compared with."""
        return read_only(np.diff(self.assignment.first).astype(np.int32))

    def sits_outside(self, allowed: NDArray[np.bool_]) -> bool:
        """Return whether a replica is on a node other than these."""
        return bool(self.used[self.nodes :].any() or (self.used[: self.nodes] & ~allowed).any())

    def is_beyond(self, other: "Bound", allowed: NDArray[np.bool_]) -> bool:
        """Return whether a replica is on a node that is not allowed, and not used by another."""
        outside = self.used[: self.nodes] & ~allowed & ~other.used[: self.nodes]
        return bool(outside.any() or set(self.vanished) - set(other.vanished))

    @cached_property
    def present(self) -> Assignment:
        """The assignment without the replicas on nodes that have vanished."""
        if not self.vanished:
            return self.assignment
        return self.assignment.kept(self.assignment.node < self.nodes)


def bind(record: Record | None, cluster: Cluster, *, adopt: bool) -> Bound:
    """Read a record in the numbers of a cluster."""
    partitions = cluster.partitions.names
    swapped = successors(cluster.nodes)
    if record is None:
        none = np.zeros(0, np.int32)
        found = Assignment.of_rows(len(partitions), none, none, none.astype(np.uint8))
        known = np.zeros(len(partitions), np.bool_)
        vanished: tuple[str, ...] = ()
    else:
        number, vanished = _numbers(record.nodes, cluster.nodes.names, record.assignment.node)
        same_rows = same_names(record.partitions, partitions)
        if number is None and swapped is None and same_rows and record.known.all():
            return Bound(record.assignment, record.known, len(cluster.nodes))
        found, known = _renumbered(record, partitions, number, same_rows)
    if adopt and not known.all():
        placed = Assignment.of_placement(cluster.placement)
        found = found.joined(placed.kept(~known[placed.owner]))
        known = known | (np.diff(placed.first) > 0)
    if swapped is not None:
        found = _swapped(found, swapped)
    return Bound(found, read_only(known), len(cluster.nodes), vanished)


def with_vanished(cluster: Cluster, vanished: tuple[str, ...]) -> Cluster:
    """Add nodes that are gone, so that an assignment may name what they held.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[1.0]], load=[], domains={"zone": ["a"]})
    >>> d = with_vanished(c, ("old",))
    >>> len(d.nodes), d.nodes.gone.tolist(), d.nodes.names[1]
    (2, [False, True], 'old')
    """
    if not vanished:
        return cluster
    count, nodes, topology = len(vanished), cluster.nodes, cluster.topology
    none = np.full(count, -1, np.int32)
    filled = {"gone": True, "since": np.nan, "max_replicas": -1, "stands_for": -1}
    columns: dict[str, Any] = {
        one.name: _joined(column, np.full((count, *column.shape[1:]), filled.get(one.name, 0)))
        for one in fields(nodes)
        if isinstance(column := getattr(nodes, one.name), np.ndarray)
    }
    names = [*nodes.names, *vanished]
    more = replace(
        nodes,
        **columns,
        names=Names(names, len(names), ""),
        tags={tag: _joined(mask, none >= 0) for tag, mask in nodes.tags.items()},
        attributes={
            name: (_joined(codes, none), meaning)
            for name, (codes, meaning) in nodes.attributes.items()
        },
    )
    distance = topology.tier_distance
    if distance.ndim == 2:
        size = len(distance) + count
        wider = np.zeros((size, size))
        wider[: len(distance), : len(distance)] = distance
        distance = read_only(wider)
    # where they stood is forgotten; any domain does for nodes that receive nothing
    somewhere = np.zeros((len(topology), count), np.int32)
    somewhere[(topology.label < 0).all(axis=1)] = -1
    wider_topology = replace(
        topology,
        label=read_only(np.concatenate([topology.label, somewhere], axis=1)),
        domain=read_only(np.concatenate([topology.domain, somewhere], axis=1)),
        tier_distance=distance,
    )
    return replace(cluster, nodes=more, topology=wider_topology)


def _numbers(
    recorded: Names, names: Names, used: NDArray[np.int32]
) -> tuple[NDArray[np.int32] | None, tuple[str, ...]]:
    """Number of each recorded node in the cluster, None if all stay; and who has vanished."""
    if same_names(recorded, names):
        return None, ()
    number = numbers(names, recorded)
    holds = np.zeros(len(recorded), np.bool_)
    holds[used] = True
    lost = np.flatnonzero(holds & (number < 0))
    number[lost] = len(names) + np.arange(len(lost), dtype=np.int32)
    return number, tuple(recorded[i] for i in lost.tolist())


def _renumbered(
    record: Record, partitions: Names, number: NDArray[np.int32] | None, same_rows: bool
) -> tuple[Assignment, NDArray[np.bool_]]:
    """Replicas in new numbers, and which partitions are known."""
    old, known = record.assignment, record.known
    node = old.node if number is None else number[old.node]
    if same_rows:
        return Assignment.of_rows(len(partitions), old.owner, node, old.state), known
    row = numbers(partitions, record.partitions)
    known = np.zeros(len(partitions), np.bool_)
    known[row[(row >= 0) & record.known]] = True
    owner = row[old.owner] if len(row) else old.owner
    stays = owner >= 0
    return Assignment.of_rows(len(partitions), owner[stays], node[stays], old.state[stays]), known


def _swapped(found: Assignment, successor: NDArray[np.int32]) -> Assignment:
    """Let successors hold what those held for whom they stand, each partition once."""
    owner, node = found.owner, found.node.copy()
    inside = node < len(successor)
    node[inside] = successor[node[inside]]
    order = np.lexsort((found.state, node, owner))
    a, b = order[:-1], order[1:]
    again = (owner[a] == owner[b]) & (node[a] == node[b])
    node[b[again]] = -1
    return Assignment.of_rows(len(found), owner, node, found.state)


def _joined(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    return read_only(np.concatenate([one, other]).astype(one.dtype, copy=False))
