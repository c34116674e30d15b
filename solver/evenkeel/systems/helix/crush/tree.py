"""Inputs of Helix's CRUSH strategies: the tree of fault zones, Java's hash order, and resources.

The tree has fault zones and their nodes. Tiers between the two are left out, as in Helix, so zones
differ by their value alone.

Helix's results depend on the order of ``HashMap``, ``HashSet``, ``TreeMap`` and
``Collections.shuffle``. Only this module computes it: hashes or seeds go in, permutations come out,
and everything else works with those.

A group is a resource, with its replicas by state and the nodes that it may use. Nodes are in the
order of their names, as in Helix's controller. A node that is alive, accepts and keeps replicas is
*live* in Helix; a node that keeps replicas but is not alive or does not accept is offline or
disabled within its delay window, and *active*; a dead node still counts in the tree; a node that
evacuates, is removed, or is swapped in beside the one whose place it takes is not in it.

References
----------
The Java class library: ``HashMap`` (buckets by ``h ^ h >>> 16``, doubled when more than three
quarters full), ``Collections.shuffle``, ``java.util.Random`` (48-bit congruential generator),
``String.compareTo`` (UTF-16 code units). Apache Helix, ``StateModelDefinition.getStateCountMap``.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.measure.binding import Demands, partition_scope
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.names import Names
from evenkeel.model.nodes import Nodes
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.model.topology import NODE_TIER
from evenkeel.systems.helix.options import States
from evenkeel.systems.helix.resources import states_by_group
from evenkeel_kernels.core.jenkins_hash import java_hashes
from evenkeel_kernels.helix.crush import (
    Children,
    by_bucket,
    place_in_zones,
    place_on_nodes,
    shuffle,
    straw_lengths,
)
from evenkeel_kernels.helix.multiround import Rooms, place_in_rounds

SMALLEST = 16  # buckets of a new ``HashMap``


def grown_capacity(count: int) -> int:
    """Buckets of a map into which entries were put one after another.

    >>> grown_capacity(12), grown_capacity(13)
    (16, 32)
    """
    capacity = SMALLEST
    while 4 * count > 3 * capacity:
        capacity *= 2
    return capacity


def copied_capacity(count: int) -> int:
    """Buckets of a set made from a collection."""
    wanted = max(4 * count // 3 + 1, SMALLEST)
    return 1 << (wanted - 1).bit_length()


def filled_capacity(count: int) -> int:
    """Buckets of an empty map into which all entries of another were put at once.

    >>> filled_capacity(2), filled_capacity(3), filled_capacity(6)
    (4, 8, 16)
    """
    return 1 << (4 * count // 3).bit_length()


def buckets(hashes: NDArray[np.int32], capacity: int) -> NDArray[np.int32]:
    """Tell which bucket each key falls into."""
    words = hashes.view(np.uint32)
    return ((words ^ (words >> np.uint32(16))) & np.uint32(capacity - 1)).view(np.int32)


def map_order(hashes: NDArray[np.int32], capacity: int | None = None) -> NDArray[np.int64]:
    """Walk a ``HashMap`` or ``HashSet`` of different keys."""
    return by_bucket(hashes, capacity or grown_capacity(hashes.size))


def set_orders(first: NDArray[np.int64], hashes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Walk several ``HashMap``s or ``HashSet``s, each grown from empty."""
    size = np.diff(first)
    capacity = np.full(len(size), SMALLEST, np.int64)
    while (small := 4 * size > 3 * capacity).any():
        capacity[small] *= 2
    words = hashes.view(np.uint32)
    owner = np.repeat(np.arange(len(size)), size)
    bucket = (words ^ (words >> np.uint32(16))) & (capacity - 1)[owner]
    return np.lexsort((bucket, owner))


def text_order(names: Sequence[str]) -> NDArray[np.int64]:
    """Walk a ``TreeMap`` of names."""
    if all(map(str.isascii, names)):
        keys: Sequence[str | bytes] = names
    else:
        keys = [name.encode("utf-16-be", "surrogatepass") for name in names]
    return np.array(sorted(range(len(names)), key=keys.__getitem__), np.int64)


def shuffled(count: int, seed: int) -> NDArray[np.int64]:
    """Shuffle a list with ``Collections.shuffle`` and a new ``Random``.

    >>> shuffled(5, 42).tolist()
    [1, 2, 3, 4, 0]
    """
    return shuffled_lists(np.array([0, count]), np.array([seed], np.int32))


def shuffled_lists(first: NDArray[np.int64], seeds: NDArray[np.int32]) -> NDArray[np.int64]:
    """Shuffle several lists, each with a generator of its own."""
    return shuffle(first, seeds)


@dataclass(frozen=True, eq=False)
class HashedNames:
    """Names and their Java hashes; what is asked for is computed once."""

    names: Names  # the names
    # (n,)) more names, and the places of these among them: what was computed for all is taken over
    among: "tuple[HashedNames, NDArray[np.int64]] | None" = None

    @classmethod
    def of(cls, names: Sequence[str]) -> "HashedNames":
        """Take names in."""
        return cls(names if isinstance(names, Names) else Names(names, len(names), ""))

    @classmethod
    def joined(cls, parts: Sequence["HashedNames"]) -> "HashedNames":
        """Put lists of names one behind the other; hashes that are known of all are taken over."""
        chosen = [part.among for part in parts if part.among is not None]
        wholes = {id(whole): whole for whole, _ in chosen}
        if len(chosen) < len(parts) or len(wholes) != 1:
            return cls.of([name for part in parts for name in part.names])
        (whole,) = wholes.values()
        places = np.concatenate([places for _, places in chosen])
        beat()
        return whole if np.array_equal(places, np.arange(len(whole))) else whole.some(places)

    def some(self, places: NDArray[np.int64]) -> "HashedNames":
        """Select some of the names."""
        return HashedNames(
            Names([self.texts[i] for i in places.tolist()], len(places), ""), (self, places)
        )

    @cached_property
    def texts(self) -> list[str]:
        """The names as a list, which is faster to look up in."""
        return list(self.names)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def hash(self) -> NDArray[np.int32]:
        """``String.hashCode`` of each name, (n,) int32."""
        if self.among is not None:
            whole, places = self.among
            return whole.hash[places]
        beat()
        first, units = self.names.utf16
        beat()
        return java_hashes(units.copy(), first.copy())

    @property
    def word(self) -> NDArray[np.uint32]:
        """The same bits, as Jenkins' hash takes them, (n,) uint32."""
        return self.hash.view(np.uint32)

    @cached_property
    def power(self) -> NDArray[np.uint32]:
        """31 to the power of each name's length, (n,) uint32."""
        if self.among is not None:
            whole, places = self.among
            return whole.power[places]
        first, _ = self.names.utf16
        lengths = np.diff(first)
        powers = np.ones(int(lengths.max(initial=0)) + 1, np.uint32)
        powers[1:] = 31
        return np.multiply.accumulate(powers, dtype=np.uint32)[lengths]

    @cached_property
    def rank(self) -> NDArray[np.int32]:
        """Place of each name in the order of a ``TreeMap``, (n,) int32."""
        rank = np.empty(len(self), np.int32)
        if self.among is not None:
            whole, places = self.among
            order = np.argsort(whole.rank[places], kind="stable")
        else:
            order = text_order(self.names)
        rank[order] = np.arange(len(self), dtype=np.int32)
        return rank

    @cached_property
    def id(self) -> NDArray[np.uint32]:
        """First four bytes of SHA-1 of each name in UTF-8, (n,) uint32: its id in a tree."""
        digests = [
            hashlib.sha1(name.encode("utf-8", "replace")).digest()[:4] for name in self.names
        ]
        return np.frombuffer(b"".join(digests), ">u4").astype(np.uint32)


@lru_cache(maxsize=2)
def hashed(names: Names) -> HashedNames:
    """Hash the names of a cluster, which is likely to be solved again with the same ones.

    >>> names = Names(None, 3, "p")
    >>> hashed(names) is hashed(names)
    True
    """
    return HashedNames(names)


DEFAULT_WEIGHT = 1000  # what an instance weighs that states no weight, or a negative one


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


# a strategy that places the partitions of one group, with so many replicas in each state
Base: TypeAlias = Callable[[HashedNames, Tree, Sequence[int]], NDArray[np.int32]]


def crush(partitions: HashedNames, tree: Tree, states: Sequence[int]) -> NDArray[np.int32]:
    """Place the partitions of a group by CRUSH."""
    # Apache Helix, ``CrushRebalanceStrategy``
    if len(tree) == 0:
        raise NoNodes("the tree has no nodes")
    replicas = sum(states)
    if tree.zone_names is None:
        return place_on_nodes(tree.node_children, partitions.word, replicas)
    first, nodes = tree.zone_nodes
    return place_in_zones(tree.zone_children, first, nodes, partitions.word, replicas)


def multiround(partitions: HashedNames, tree: Tree, states: Sequence[int]) -> NDArray[np.int32]:
    """Place the partitions of a group by MultiRoundCRUSH."""
    # Apache Helix, ``MultiRoundCrushRebalanceStrategy``
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


class Resource(NamedTuple):
    """Partitions that are placed together."""

    name: str  # name of their group
    rows: NDArray[np.int64]  # (P,) the partitions
    partitions: HashedNames  # their names
    states: tuple[int, ...]  # replicas in each state, the top state first


@dataclass(frozen=True, eq=False)
class Site:
    """Nodes, and the resources that may use exactly these. n nodes."""

    nodes: NDArray[np.int64]  # (n,) their indices in the cluster, in the order of their names
    tree: Tree  # the same nodes, all of them live
    live: NDArray[np.bool_]  # (n,) nodes that are up and enabled
    # (n,) these, and the ones that keep their places because they may soon be back
    active: NDArray[np.bool_]
    resources: tuple[Resource, ...]  # what they hold

    def with_live(self, live: NDArray[np.bool_]) -> Tree:
        """Return the tree with some nodes live."""
        return replace(self.tree, live=live)


def sites(cluster: Cluster, options: States, zone: str | None) -> list[Site]:
    """Sort partitions into resources, and resources by the nodes that they may use."""
    faults = FaultList()
    known = [*cluster.topology.tiers, NODE_TIER]
    if zone is not None and zone not in known:
        faults.add("options.zone", zone, f"unknown tier; known: {known}")
    faults.raise_if_any()
    scope = partition_scope(cluster)
    tiers = [zone_tier(cluster, one) if zone is None else zone for one in scope.demands]
    kinds: dict[tuple[bytes, str], int] = {}
    kind = [
        kinds.setdefault((mask.tobytes(), tier), len(kinds))
        for mask, tier in zip(scope.open, tiers, strict=True)
    ]
    site_of = np.array(kind, np.int64)[scope.rule]
    names = hashed(cluster.partitions.names)
    found = []
    for number, (mask, tier) in enumerate(kinds):
        site = _site(cluster, np.frombuffer(mask, np.bool_), tier)
        rows = np.flatnonzero(site_of == number)
        resources = _resources(cluster, names, rows, options, int(site.active.sum()), faults)
        if resources:
            found.append(replace(site, resources=tuple(resources)))
    faults.raise_if_any()
    return found


def zone_tier(cluster: Cluster, demands: Demands) -> str:
    """Choose the tier of the fault zones: the widest on which a rule spreads replicas."""
    spread = {limit.tier for limit in demands.limits if limit.kind == "spread"}
    return next((tier for tier in cluster.topology.tiers if tier in spread), NODE_TIER)


def assignable(nodes: Nodes) -> NDArray[np.bool_]:
    """Tell which nodes Helix counts: not evacuating, nor swapped in beside one that has its own."""
    swapped_in = (nodes.stands_for >= 0) & nodes.may_hold[nodes.stands_for]
    return ~nodes.gone & ~(nodes.alive & ~nodes.keeps) & ~swapped_in


def enabled(nodes: Nodes) -> NDArray[np.bool_]:
    """Tell which nodes Helix calls live and enabled: it looks at weights apart from that."""
    return nodes.alive & nodes.accepts & nodes.keeps & ~nodes.gone


def _site(cluster: Cluster, allowed: NDArray[np.bool_], tier: str) -> Site:
    """Build the tree of the nodes that are allowed."""
    nodes = cluster.nodes
    by_name = text_order(nodes.names)
    chosen = by_name[(allowed & assignable(nodes))[by_name]]
    zones = None
    if tier != NODE_TIER:
        row = cluster.topology.tier_index(tier)
        labels = [*cluster.topology.label_names[row], f"Default_{tier}"]
        zones = [labels[code] for code in cluster.topology.label[row, chosen].tolist()]
    weight = np.rint(nodes.weight[chosen] * DEFAULT_WEIGHT).astype(np.int64)
    tree = Tree.of([nodes.names[n] for n in chosen.tolist()], zones, weight)
    live = enabled(nodes)[chosen]
    return Site(chosen, tree, live, live | nodes.may_hold[chosen], ())


def _resources(
    cluster: Cluster,
    names: HashedNames,
    rows: NDArray[np.int64],
    options: States,
    active: int,
    faults: FaultList,
) -> Sequence[Resource]:
    """Sort partitions by group and number of replicas."""
    group = cluster.partitions.group[rows].astype(np.int64)
    wanted = cluster.partitions.replicas[rows].astype(np.int64)
    if options.replicas is not None:
        wanted[:] = active
    slots = np.diff(cluster.placement.first)[rows]
    models = states_by_group(cluster, options)
    key = group * (int(wanted.max(initial=0)) + 1) + wanted
    beat()
    order = np.argsort(key, kind="stable")
    beat()
    found = []
    for part in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
        if len(part) == 0:
            continue
        name = cluster.partitions.group_names[int(group[part[0]])]
        model = models.get(name, options.states)
        counts = state_counts(model, active, int(wanted[part[0]]))
        states = tuple(counts[state] for state in model if state in counts)
        if sum(states) > slots[part].min():
            message = f"has fewer slots than the {sum(states)} replicas of a partition"
            faults.add(f"group[{name!r}]", int(slots[part].min()), message)
        elif states:
            whole = len(part) == len(names)
            members = names if whole else names.some(rows[part])
            found.append(Resource(name, rows[part], members, states))
    return found


ANY_LIVE = "ANY_LIVEINSTANCE"  # as many replicas as there are eligible nodes
# counts that stand for all candidates, and for the replicas that are left
CANDIDATES, REPLICAS = "N", "R"


def state_counts(model: Mapping[str, int | str], candidates: int, replicas: int) -> dict[str, int]:
    """Count the replicas in each state."""
    counts: dict[str, int] = {}
    for state, number in model.items():
        if candidates <= 0:
            break
        if number == CANDIDATES:
            counts[state] = candidates
            replicas -= candidates
            candidates = 0
        elif number != REPLICAS and str(number).isdigit() and int(number) > 0:
            counts[state] = min(candidates, int(number))
            candidates -= counts[state]
            replicas -= counts[state]
    for state, number in model.items():
        if number == REPLICAS and candidates > 0 and replicas > 0:
            counts[state] = min(candidates, replicas)
            break
    return counts


def wanted_replicas(stated: int | str, eligible: int) -> int:
    """Read how many replicas a group wants."""
    return eligible if stated == ANY_LIVE else int(stated)
