"""Types of nodes that can be added: capacities, prices, and the domains to add them to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.changes import limited_tiers
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.model.newcomers import with_unknown_domains
from evenkeel.model.nodes import Nodes
from evenkeel.model.reading.arrays import MOST_IN_ALL, entries_of, items_of
from evenkeel.model.reading.keywords import known_fields
from evenkeel.model.reading.quantities import check_number, is_whole
from evenkeel.model.rules import mask_of, parse_expression
from evenkeel.model.topology import NODE_TIER

Place = str | Mapping[str, str]  # a domain of the widest tier, or labels by tier

MOST_DOMAINS = 24  # domains of the widest tier above which one for each node is a host and no zone

MOST_KINDS = 200  # types, each in every place where it can stand


@known_fields
@dataclass(frozen=True, eq=False)
class NodeType:
    """A type of nodes that one can get. D dimensions.

    Parameters
    ----------
    name : str
        What it is called.
    capacity : mapping of str to float, or array_like of float64, shape (D,)
        What a node holds, by dimension; a mapping names all dimensions.
    price : float
        Of one node, in any unit; with 1 for all, the fewest nodes are the cheapest.
    places : sequence of (str, or mapping of str to str), or None
        Where such nodes can stand: domains of the widest tier, or labels by tier, those by which
        rules count replicas among them. None: in every domain of these and of the widest tier in
        which a node accepts replicas. A node has a domain of its own in tiers that its place leaves
        out and in which every other node has one, such as hosts.
    most : int or None
        Nodes that there are at most in each place; None for any number.
    tags : sequence of str
        Tags of each.
    attributes : mapping of str to str
        Further labels of each.
    max_replicas : int
        Most replicas on each; -1 for no limit.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[10.0]] * 3, load=[[2.0]] * 5, domains={"zone": [*"abc"]},
    ...     placement=[[0, 1, 2]] * 5, spread={"zone": 1})
    >>> big = ek.NodeType("big", {"d0": 20.0}, price=1.5)
    >>> small = ek.NodeType("small", {"d0": 10.0}, places=["a", "b"])
    >>> print(ek.size(cluster, 2.5, [big, small]))
    optimal: 3 nodes at a price of 4.5, and no less will do: ...
      big in zone a         1  at 1.5 each
      big in zone b         1  at 1.5 each
      big in zone c         1  at 1.5 each
      d0 of n0 is then at 100.0%; at_most=0.8 keeps a fifth free
    """

    name: str
    capacity: Mapping[str, float] | ArrayLike
    price: float = 1.0
    places: Sequence[Place] | None = None
    most: int | None = None
    tags: Sequence[str] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    max_replicas: int = -1


class Kind(NamedTuple):
    """Nodes of one type in one place. D dimensions."""

    type: str
    place: str
    labels: dict[str, str]
    capacity: NDArray[np.float64]
    price: float
    most: int | None
    tags: tuple[str, ...]
    attributes: dict[str, str]
    max_replicas: int


def read_types(faults: FaultList, cluster: Cluster, given: Sequence[NodeType] | None) -> list[Kind]:
    """Turn types as a person writes them into kinds; note what is wrong with them."""
    if given is None:
        given = usual_types(cluster)
        if not given:
            faults.add("node_types", None, "must be given: no node of the cluster accepts replicas")
    if isinstance(given, NodeType):
        given = [given]
    kinds: list[Kind] = []
    for i, one in enumerate(items_of(faults, "node_types", given)):
        if isinstance(one, NodeType):
            kinds += _kinds(faults, f"node_types[{i}]", cluster, one)
        else:
            faults.add(f"node_types[{i}]", one, "must be a NodeType")
    if len(kinds) > MOST_KINDS:
        faults.add("node_types", len(kinds), f"may be {MOST_KINDS} types x places; name fewer")
    seen: set[tuple[str, str]] = set()
    for kind in kinds:
        if (kind.type, kind.place) in seen:
            faults.add("node_types", f"{kind.type} in {kind.place}", "is given twice")
        seen.add((kind.type, kind.place))
    return kinds


def usual_types(cluster: Cluster) -> list[NodeType]:
    """Return the type of which there are most nodes that accept replicas, the first of equals."""
    # others follow where a rule requires tags or attributes that these nodes do not have
    nodes, topology, silent = cluster.nodes, cluster.topology, FaultList()
    accepting = nodes.may_receive
    likes = [_usual(nodes, accepting)] if accepting.any() else []
    for rule in cluster.rules:
        tests = [
            test
            for text in (*rule.require, *rule.voters_require)
            for test in parse_expression(silent, "require", text)
            if test.key not in (*topology.tiers, NODE_TIER)
        ]
        fit = accepting & mask_of(tests, nodes, topology, silent, "require")
        if fit.any() and not fit[likes].any():
            likes.append(_usual(nodes, fit))
    return [
        NodeType(
            f"like {nodes.names[like]}",
            nodes.capacity[like],
            tags=[tag for tag, carried in nodes.tags.items() if carried[like]],
            attributes={
                key: meaning[codes[like]]
                for key, (codes, meaning) in nodes.attributes.items() if codes[like] >= 0
            },
            max_replicas=int(nodes.max_replicas[like]),
        )
        for like in likes
    ]  # fmt: skip


def _usual(nodes: Nodes, among: NDArray[np.bool_]) -> int:
    """Return the first of the nodes whose capacity most of those have."""
    chosen = np.flatnonzero(among)
    _, first, count = np.unique(
        nodes.capacity[chosen], axis=0, return_index=True, return_counts=True
    )
    return int(chosen[min(first[count == count.max()])])


def _kinds(faults: FaultList, path: str, cluster: Cluster, given: NodeType) -> list[Kind]:
    """Read one type as kinds, one for each place."""
    if not isinstance(given.name, str) or not given.name:
        faults.add(f"{path}.name", given.name, "must be a name")
    check_number(faults, f"{path}.price", given.price, greatest=MOST_IN_ALL)
    if given.most is not None and (not is_whole(given.most) or given.most < 0):
        faults.add(f"{path}.most", given.most, "must be a whole number, 0 or more")
    if not is_whole(given.max_replicas) or given.max_replicas < -1:
        faults.add(f"{path}.max_replicas", given.max_replicas, "must be a whole number, or -1")
    capacity = _capacity(faults, f"{path}.capacity", cluster, given.capacity)
    tags = items_of(faults, f"{path}.tags", given.tags)
    attributes = entries_of(faults, f"{path}.attributes", given.attributes)
    places = _places(faults, f"{path}.places", cluster, given.places)
    _check_domains_given(faults, f"{path}.places", cluster, places)
    if faults.about(path):
        return []
    return [
        Kind(
            given.name, place, labels, capacity, float(given.price), given.most,
            tuple(map(str, tags)), {str(k): str(v) for k, v in attributes.items()},
            int(given.max_replicas),
        )
        for place, labels in places
    ]  # fmt: skip


def _capacity(
    faults: FaultList, path: str, cluster: Cluster, given: Mapping[str, float] | ArrayLike
) -> NDArray[np.float64]:
    """Read what a node holds, (D,)."""
    dimensions = cluster.dimensions
    none = np.zeros(len(dimensions))
    if isinstance(given, Mapping):
        for name in [*given]:
            if name not in dimensions:
                faults.add(f"{path}[{name!r}]", name, f"unknown dimension; known: {[*dimensions]}")
        for name in dimensions:
            if name not in given:
                faults.add(f"{path}[{name!r}]", None, "is missing")
        given = [given.get(name, 0.0) for name in dimensions]
    try:
        found = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        faults.add(path, given, "must be numbers, one for each dimension")
        return none
    if found.shape != (len(dimensions),):
        faults.add(path, found.shape, f"needs {len(dimensions)} numbers, one for each dimension")
        return none
    if not (found >= 0.0).all():
        faults.add(path, found.tolist(), "must be 0 or more")
    return found


def _places(
    faults: FaultList, path: str, cluster: Cluster, given: Sequence[Place] | None
) -> list[tuple[str, dict[str, str]]]:
    """Read where nodes can stand, each place in words and as labels by tier."""
    tiers = cluster.topology.tiers
    if given is None:
        return _present(cluster)
    found = []
    for i, one in enumerate(items_of(faults, path, given)):
        if isinstance(one, str):
            labels: dict[str, Any] = {tiers[0]: one} if tiers else {}
            if not tiers:
                faults.add(f"{path}[{i}]", one, "there is no tier of which it could be a domain")
        else:
            labels = entries_of(faults, f"{path}[{i}]", one)
        for tier, label in labels.items():
            if tier not in tiers:
                faults.add(f"{path}[{i}]", tier, f"unknown tier; known: {[*tiers]}")
            if not isinstance(label, str) or not label:
                faults.add(f"{path}[{i}]", label, "must be the name of a domain")
        found.append((_describe(labels), labels))
    if not found:
        faults.add(path, given, "names no place")
    return found


def _check_domains_given(
    faults: FaultList, path: str, cluster: Cluster, places: Sequence[tuple[str, dict[str, str]]]
) -> None:
    """Note places outside of the tiers by which rules count replicas; hosts come by themselves."""
    for tier in _counted_by(cluster):
        without = [place or "anywhere" for place, labels in places if tier not in labels]
        if without:
            message = f"must name a domain of {tier}, by which rules count replicas"
            faults.add(path, without, message)


def _present(cluster: Cluster) -> list[tuple[str, dict[str, str]]]:
    """Return every domain of the widest tier, and of those that rules count by, that accepts."""
    topology = cluster.topology
    if not topology.tiers:
        return [("", {})]
    codes = np.unique(topology.label[0][cluster.nodes.may_receive])
    if len(codes) > MOST_DOMAINS and _one_each(topology.label[0]):
        return [("", {})]
    counted = {topology.tiers.index(tier) for tier in _counted_by(cluster)}
    rows = sorted({0, *counted})
    found = np.unique(topology.label[rows][:, cluster.nodes.may_receive].T, axis=0)
    labels = [
        {
            topology.tiers[row]: topology.label_names[row][code]
            for row, code in zip(rows, codes, strict=True)
        }
        for codes in found[(found >= 0).all(axis=1)].tolist()
    ]
    return [(_describe(one), one) for one in labels] or [("", {})]


def _counted_by(cluster: Cluster) -> list[str]:
    """List the tiers by which rules count replicas, but for hosts and the like."""
    own = own_tiers(cluster)
    return [one for one in limited_tiers(cluster.rules, cluster.topology) if one not in own]


def _describe(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{tier} {label}" for tier, label in labels.items())


def _one_each(label: NDArray[np.int32]) -> bool:
    """Whether every node has a domain of its own."""
    return len(label) > 1 and bool((label >= 0).all()) and len(np.unique(label)) == len(label)


def own_tiers(cluster: Cluster) -> list[str]:
    """Return tiers in which every node has a domain of its own, such as hosts."""
    topology = cluster.topology
    return [t for t, label in zip(topology.tiers, topology.label, strict=True) if _one_each(label)]


def with_nodes(
    cluster: Cluster, kinds: Sequence[Kind], count: Sequence[int], *, own: bool = True
) -> Cluster:
    """Return a cluster with so many nodes of each kind after those it has."""
    each = [kind for kind, n in zip(kinds, count, strict=True) for _ in range(n)]
    if not each:
        return cluster
    names = _names(cluster, each)
    hosts = own_tiers(cluster) if own else []
    domains = {
        tier: [
            kind.labels.get(tier, name if tier in hosts else None)
            for kind, name in zip(each, names, strict=True)
        ]
        for tier in cluster.topology.tiers
    }
    keys = dict.fromkeys(key for kind in each for key in kind.attributes)
    tags = dict.fromkeys(tag for kind in each for tag in kind.tags)
    return with_unknown_domains(
        cluster,
        np.array([kind.capacity for kind in each]),
        names=names,
        domains=domains,
        tags={tag: np.array([tag in kind.tags for kind in each]) for tag in tags},
        attributes={key: [kind.attributes.get(key) for kind in each] for key in keys},
        max_replicas=np.array([kind.max_replicas for kind in each], np.int32),
    )


def _names(cluster: Cluster, each: Sequence[Kind]) -> list[str]:
    """Return free names: the type and a number, counted over all places."""
    known, counted, names = set(cluster.nodes.names), dict[str, int](), []
    for kind in each:
        while True:
            counted[kind.type] = counted.get(kind.type, 0) + 1
            name = f"{kind.type.replace(' ', '-')}-{counted[kind.type]}"
            if name not in known:
                break
        known.add(name)
        names.append(name)
    return names


def check_candidates(faults: FaultList, cluster: Cluster, kinds: Sequence[Kind]) -> Cluster:
    """Return a cluster with one node of each kind, which stands for all of them."""
    try:
        return with_nodes(cluster, kinds, [1] * len(kinds), own=False)
    except InvalidInput as error:
        faults.take(error, "node_types: ")
        return cluster
