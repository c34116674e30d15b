"""The tree of fault zones and nodes that Helix's CRUSH strategies draw from, and their errors.

Tiers between the fault zone and the node are left out, as in Helix, so zones differ by their value
alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.systems.helix.crush.hashed import HashedNames, buckets, grown_capacity, map_order
from evenkeel_kernels.helix.crush import Children, place_in_zones, place_on_nodes, straw_lengths
from evenkeel_kernels.helix.multiround import Rooms, place_in_rounds

DEFAULT_WEIGHT = 1000
"""What an instance weighs that states no weight, or a negative one."""


@dataclass(frozen=True, eq=False)
class Tree:
    """N nodes, in the order in which the strategy is given them, and their Z zones."""

    # n names of nodes: their values in the topology, not necessarily their instance names
    names: HashedNames
    # z names of zones, in the order of their first nodes; None without a zone tier
    zone_names: HashedNames | None
    zone: NDArray[np.int32]  # (N,) zone of each node; without a zone tier, the node itself
    weight: NDArray[np.int64]  # (N,) weight of each node, live or not
    live: NDArray[np.bool_]  # (N,) whether the node is live and enabled

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        zones: Sequence[str] | None = None,
        weight: ArrayLike | None = None,
        live: ArrayLike | None = None,
    ) -> "Tree":
        """Build a tree."""
        count = len(names)
        found: dict[str, int] = {}
        if zones is None:
            zone = np.arange(count, dtype=np.int32)
        else:
            zone = np.array([found.setdefault(name, len(found)) for name in zones], np.int32)
        seen = set()
        for i, name in enumerate(names):
            place = ("", name) if zones is None else (zones[i], name)
            if place in seen:
                where = f" of zone {zones[i]!r}" if zones is not None else ""
                raise BadTopology(f"two nodes{where} have the name {name!r}")
            seen.add(place)
        weights = np.full(count, DEFAULT_WEIGHT) if weight is None else np.array(weight, np.int64)
        weights[weights < 0] = DEFAULT_WEIGHT
        return cls(
            HashedNames.of(names),
            None if zones is None else HashedNames.of(list(found)),
            zone,
            weights,
            np.ones(count, np.bool_) if live is None else np.array(live, np.bool_),
        )

    def __len__(self) -> int:
        return len(self.names)

    def all_live(self) -> "Tree":
        """Treat every node as live."""
        return self if self.live.all() else replace(self, live=np.ones(len(self), np.bool_))

    def only(self, nodes: NDArray[np.int64]) -> "Tree":
        """Build the tree of some of the nodes."""
        if nodes.size == len(self):
            return self
        zones = self.zone_names
        return Tree.of(
            [self.names.names[n] for n in nodes],
            None if zones is None else [zones.names[z] for z in self.zone[nodes]],
            self.weight[nodes],
            self.live[nodes],
        )

    @property
    def zones(self) -> int:
        """How many zones; nodes where there is no zone tier."""
        return len(self.names if self.zone_names is None else self.zone_names)

    @cached_property
    def tree_order(self) -> NDArray[np.int64]:
        """The nodes, zone by zone, (N,) int64."""
        return np.argsort(self.zone, kind="stable")

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """Nodes of zone z are ``tree_order[first[z]:first[z + 1]]``, (Z + 1,) int64."""
        return np.searchsorted(self.zone[self.tree_order], np.arange(self.zones + 1))

    @cached_property
    def live_weight(self) -> NDArray[np.int64]:
        """Weight of each node, 0 where it is not live, (N,) int64."""
        return np.where(self.live, self.weight, 0)

    @cached_property
    def zone_weight(self) -> NDArray[np.int64]:
        """What the live nodes of each zone weigh, (Z,) int64."""
        return _sums(self.zone, self.live_weight, self.zones)

    @cached_property
    def node_children(self) -> Children:
        """All nodes as the children of one bucket."""
        return _children(self.names, self.live_weight, np.arange(len(self)))

    @cached_property
    def zone_children(self) -> Children:
        """All zones as the children of one bucket."""
        if self.zone_names is None:
            return self.node_children
        return _children(self.zone_names, self.zone_weight, np.arange(self.zones))

    @cached_property
    def zone_nodes(self) -> tuple[NDArray[np.int64], Children]:
        """The nodes zone by zone, in the order of ``zone_children``, and where each zone begins."""
        children = []
        first = np.zeros(self.zones + 1, np.int64)
        for place, z in enumerate(self.zone_children.item):
            nodes = self.tree_order[self.first[z] : self.first[z + 1]]
            children.append(_children(self.names, self.live_weight, nodes))
            first[place + 1] = first[place] + nodes.size
        return first, Children(*(np.concatenate(parts) for parts in zip(*children, strict=True)))

    @cached_property
    def rooms(self) -> Rooms:
        """The nodes zone by zone, in tree order of the zones."""
        largest = int(np.diff(self.first).max(initial=0))
        capacities = [grown_capacity(count) for count in range(largest + 1)]
        distinct = sorted(set(capacities))
        order = self.tree_order.copy()
        for begin, end in zip(self.first[:-1], self.first[1:], strict=True):
            bucket = buckets(self.names.hash[order[begin:end]], grown_capacity(end - begin))
            order[begin:end] = order[begin:end][np.argsort(bucket, kind="stable")]
        return Rooms(
            first=self.first,
            id=self.names.id[order],
            weight=self.live_weight[order],
            node=order.astype(np.int32),
            bucket=np.stack([buckets(self.names.hash[order], each) for each in distinct]),
            capacity=np.array([distinct.index(capacity) for capacity in capacities]),
        )


def _sums(key: NDArray[np.int32], value: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, key, value)
    return sums


def _children(names: HashedNames, weight: NDArray[np.int64], items: NDArray[np.int64]) -> Children:
    """Lay out the children of a bucket in the order in which ties are decided."""
    falling = items[np.argsort(-weight[items], kind="stable")]
    straw = straw_lengths(weight[falling])
    order = map_order(names.hash[falling])
    item = falling[order]
    return Children(names.id[item], straw[order], weight[item] > 0, item.astype(np.int32))


class HelixError(ValueError):
    """The strategy gives no placement at all for this group, as the original gives none."""


class BadTopology(HelixError):
    """The nodes' domains do not make a tree."""


class NoNodes(HelixError):
    """There is no node to draw."""


class NoZones(HelixError):
    """MultiRoundCRUSH needs a tier of fault zones above the nodes."""


class NotEnoughZones(HelixError):
    """MultiRoundCRUSH found too few zones, or no node, for a partition."""


class OutOfTime(HelixError):
    """The time is over, or the caller wants no more."""


Base: TypeAlias = Callable[[HashedNames, Tree, Sequence[int]], NDArray[np.int32]]
"""A strategy that places the partitions of one group, with so many replicas in each state."""


def crush(partitions: HashedNames, tree: Tree, states: Sequence[int]) -> NDArray[np.int32]:
    """Place the partitions of a group by CRUSH.

    Apache Helix, ``CrushRebalanceStrategy``.
    """
    if len(tree) == 0:
        raise NoNodes("the tree has no nodes")
    replicas = sum(states)
    if tree.zone_names is None:
        return place_on_nodes(tree.node_children, partitions.word, replicas)
    first, nodes = tree.zone_nodes
    return place_in_zones(tree.zone_children, first, nodes, partitions.word, replicas)


def multiround(partitions: HashedNames, tree: Tree, states: Sequence[int]) -> NDArray[np.int32]:
    """Place the partitions of a group by MultiRoundCRUSH.

    Apache Helix, ``MultiRoundCrushRebalanceStrategy``.
    """
    if len(tree) == 0:
        raise NoNodes("the tree has no nodes")
    if tree.zone_names is None:
        raise NoZones("MultiRoundCRUSH needs a tier of fault zones above the nodes")
    state = np.repeat(np.arange(len(states), dtype=np.int32), states)
    order = map_order(partitions.hash)
    placed, failed = place_in_rounds(tree.zone_children, tree.rooms, partitions.word, state, order)
    if failed >= 0:
        live = int(np.count_nonzero(tree.zone_weight))
        raise NotEnoughZones(
            f"partition {partitions.names[failed]!r} needs {state.size} zones;"
            f" {live} of {tree.zones} have live nodes"
        )
    return placed
