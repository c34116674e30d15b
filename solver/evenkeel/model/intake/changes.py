"""Changes to a cluster, named by a user, as arguments of ``Cluster.replace``.

A node without a domain of a tier is outside all domains: no limit of that tier counts its replicas.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.intake.arguments import Arguments
from evenkeel.model.intake.nodes import COLUMNS, check_nodes, read_nodes
from evenkeel.model.intake.parts import check_rules, labels_by_tier
from evenkeel.model.intake.sizes import Given, Sizes, length
from evenkeel.model.names import Names
from evenkeel.model.nodes import Nodes
from evenkeel.model.partitions import Partitions
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import read_only, shape_of
from evenkeel.model.reading.containers import entries_of, items_of
from evenkeel.model.reading.keywords import did_you_mean, known_keywords
from evenkeel.model.reading.quantities import is_whole
from evenkeel.model.reading.selection import Which, find_nodes, find_partitions, read_groups
from evenkeel.model.rules import Rule
from evenkeel.model.topology import Topology, read_labels

STATES: Mapping[str, Mapping[str, bool]] = {
    "down": {"alive": False, "accepts": False, "keeps": False, "leads": False},
    "up": {"alive": True, "accepts": True, "keeps": True, "leads": True, "gone": False},
    "cordon": {"accepts": False},
    "drain": {"accepts": False, "keeps": False, "leads": False},
    "gone": {"alive": False, "accepts": False, "keeps": False, "leads": False, "gone": True},
}
"""Flags of a node in each state; other flags stay as they were."""


class Changeable:
    """What a person does to nodes and partitions, each as another cluster.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0], [1]])
    >>> c.down("n0").pin("p1").nodes.alive.tolist()
    [False, True]
    """

    nodes: Nodes
    topology: Topology
    partitions: Partitions
    placement: Placement

    if TYPE_CHECKING:

        def replace(self, **changes: Unpack[Arguments]) -> Self:
            """Return a cluster with some arguments changed, validated like a new one."""

    def down(self, *which: Which) -> Self:
        """Return a cluster in which nodes are dead, with all they hold.

        Parameters
        ----------
        *which : str, int, or array_like
            Nodes by name (``"n17"``), by number (17), by an expression as in a rule
            (``"zone=b,+ssd"``), by a mask, (N,) bool, or by a list of any of these. A string is
            always a name or an expression, a number always an index.

        Returns
        -------
        Cluster
            Validated; its dead nodes neither accept, keep nor lead.

        Raises
        ------
        InvalidInput
            If there is no such node.

        Examples
        --------
        >>> import evenkeel as ek
        >>> c = ek.Cluster.from_arrays(
        ...     capacity=[[9.0]] * 3, load=[[1.0]] * 4, domains={"zone": ["a", "b", "b"]})
        >>> c.down("n0").drain("zone=b").nodes.alive.tolist()
        [False, True, True]
        """
        return self.replace(**_in_state(self, "down", which))

    def up(self, *which: Which) -> Self:
        """Return a cluster in which nodes are up: alive, accepting, keeping, leading, not gone.

        Parameters
        ----------
        *which : str, int, or array_like
            Nodes, as ``down`` takes them.

        Returns
        -------
        Cluster
            Validated.

        Raises
        ------
        InvalidInput
            If there is no such node.
        """
        return self.replace(**_in_state(self, "up", which))

    def cordon(self, *which: Which) -> Self:
        """Return a cluster in which nodes keep what they have and take no more replicas.

        Parameters
        ----------
        *which : str, int, or array_like
            Nodes, as ``down`` takes them.

        Returns
        -------
        Cluster
            Validated; cordoned nodes do not accept.

        Raises
        ------
        InvalidInput
            If there is no such node.
        """
        return self.replace(**_in_state(self, "cordon", which))

    def drain(self, *which: Which) -> Self:
        """Return a cluster in which nodes stay alive but keep no replica: all have to leave.

        Parameters
        ----------
        *which : str, int, or array_like
            Nodes, as ``down`` takes them.

        Returns
        -------
        Cluster
            Validated; drained nodes neither accept, keep nor lead.

        Raises
        ------
        InvalidInput
            If there is no such node.
        """
        return self.replace(**_in_state(self, "drain", which))

    def gone(self, *which: Which) -> Self:
        """Return a cluster in which nodes are dead and will not come back.

        Parameters
        ----------
        *which : str, int, or array_like
            Nodes, as ``down`` takes them.

        Returns
        -------
        Cluster
            Validated; the nodes are still there, as places that replicas are missing from.

        Raises
        ------
        InvalidInput
            If there is no such node.
        """
        return self.replace(**_in_state(self, "gone", which))

    @known_keywords
    def pin(
        self,
        *which: Which,
        group: str | int | Sequence[str | int] | None = None,
        topic: str | Sequence[str] | None = None,
    ) -> Self:
        """Return a cluster in which the replicas of some partitions stay where they are.

        Parameters
        ----------
        *which : str, int, or array_like
            Partitions by name, by number, as ``"group=orders"``, by a mask, (P,) bool, or by a list
            of any of these.
        group : str, int, or sequence of them, optional
            Groups, by name or number, all of whose partitions are meant.
        topic : str or sequence of str, optional
            The same, as Kafka calls a group.

        Returns
        -------
        Cluster
            Validated; their replicas carry ``Flag.PINNED``.

        Raises
        ------
        InvalidInput
            If there is no such partition or group.

        Examples
        --------
        >>> import evenkeel as ek
        >>> c = ek.Cluster.from_arrays(
        ...     capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0], [1]],
        ...     group=["audit", "pay"])
        >>> c.pin(topic="audit").placement.flags.tolist()
        [1, 0]
        """
        return self.replace(placement=_pinned(self, which, group, topic, stays=True))

    @known_keywords
    def unpin(
        self,
        *which: Which,
        group: str | int | Sequence[str | int] | None = None,
        topic: str | Sequence[str] | None = None,
    ) -> Self:
        """Return a cluster in which the replicas of some partitions may move again.

        Parameters
        ----------
        *which : str, int, or array_like
            Partitions, as ``pin`` takes them.
        group : str, int, or sequence of them, optional
            Groups, as ``pin`` takes them.
        topic : str or sequence of str, optional
            The same, as Kafka calls a group.

        Returns
        -------
        Cluster
            Validated.

        Raises
        ------
        InvalidInput
            If there is no such partition or group.

        Examples
        --------
        >>> import evenkeel as ek
        >>> c = ek.Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]] * 2, placement=[[0], [0]])
        >>> c.pin("p0", "p1").unpin("p0").placement.flags.tolist()
        [0, 1]
        """
        return self.replace(placement=_pinned(self, which, group, topic, stays=False))


def chosen_nodes(
    faults: FaultList, cluster: Changeable, path: str, which: Sequence[Which]
) -> NDArray[np.int32]:
    """Return the nodes that arguments name, each once."""
    found = [
        find_nodes(faults, at, cluster.nodes, cluster.topology, one)
        for at, one in _arguments(path, which)
    ]
    return np.unique(np.concatenate([np.zeros(0, np.int32), *found]))


def _in_state(cluster: Changeable, state: str, which: Sequence[Which]) -> Arguments:
    """Return the flags of nodes after some of them went into a state."""
    faults = FaultList()
    chosen = chosen_nodes(faults, cluster, state, which)
    faults.raise_if_any()
    flags: Arguments = {}
    for name, value in STATES[state].items():
        column = getattr(cluster.nodes, name).copy()
        column[chosen] = value
        flags[name] = column  # type: ignore[literal-required]
    return flags


def _pinned(
    cluster: Changeable,
    which: Sequence[Which],
    group: str | int | Sequence[str | int] | None,
    topic: str | Sequence[str] | None,
    *,
    stays: bool,
) -> Placement:
    """Return a placement in which all replicas of some partitions are pinned, or no more."""
    faults, partitions = FaultList(), cluster.partitions
    held = np.zeros(len(partitions), bool)
    for at, one in _arguments("pin" if stays else "unpin", which):
        held[find_partitions(faults, at, partitions, one)] = True
    for path, groups in (("group", group), ("topic", topic)):
        for one in () if groups is None else listed(groups):
            held[read_groups(faults, path, partitions, one, one)] = True
    faults.raise_if_any()
    return with_pins(cluster.placement, held, stays=stays)


def with_pins(placement: Placement, held: NDArray[np.bool_], *, stays: bool) -> Placement:
    """Return a placement with the replicas of ``held (P,)`` partitions pinned, or no more."""
    flags = placement.flags.copy()
    rows = held[placement.owner]
    flags[rows] = (flags[rows] | Flag.PINNED) if stays else (flags[rows] & ~Flag.PINNED)
    return replace(placement, flags=read_only(flags))


def _arguments(path: str, which: Sequence[Which]) -> Iterator[tuple[str, Any]]:
    """Yield each argument with its path; names and numbers alone make one list."""
    if all(isinstance(one, str) or is_whole(one) for one in which):
        yield path, list(which)
    elif len(which) == 1:
        yield path, listed(which[0])
    else:
        yield from ((f"{path}[{i}]", listed(one)) for i, one in enumerate(which))


def listed(which: Any) -> Any:
    """Return one name or number as a list of it."""
    return [which] if isinstance(which, str) or shape_of(which) == () else which


def added(faults: FaultList, parts: Mapping[str, Any], given: Given) -> dict[str, Any]:
    """Return the parts of a cluster with more nodes after those of another, each in its domains."""
    check_domains_given(faults, parts, given, length([given["capacity"]]))
    return joined(faults, parts, given)


def joined(faults: FaultList, parts: Mapping[str, Any], given: Given) -> dict[str, Any]:
    """Return the same where nodes may be in no domain, as far as anybody knows."""
    old, topology, dimensions = parts["nodes"], parts["topology"], len(parts["dimensions"])
    more = length([given["capacity"]])
    labels = _joined_labels(faults, "domains", labels_by_tier(topology), given, len(old), more)
    wider = Topology.read(faults, labels, len(old) + more, list(topology.crossing))
    wider = _with_sizes(faults, topology, wider)
    new = read_nodes(faults, {**given, "attributes": None}, Sizes(more, 0, dimensions), wider, None)
    stated = {key: _texts(*at) for key, at in old.attributes.items()}
    labels = _joined_labels(faults, "attributes", stated, given, len(old), more)
    nodes = Nodes(
        names=_joined_names(faults, old.names, given.get("node_names"), more),
        tags={
            tag: read_only(np.concatenate([
                one.tags.get(tag, np.zeros(len(one), bool)) for one in (old, new)
            ]))
            for tag in {**old.tags, **new.tags}
        },
        attributes={
            key: read_labels(faults, f"attributes[{key!r}]", at, len(old) + more)
            for key, at in labels.items()
        },
        **{
            name: read_only(np.concatenate([getattr(old, name), getattr(new, name)]))
            for name in ("capacity", "watermark", *COLUMNS)
        },
    )  # fmt: skip
    rules = {f"rules[{i}]": rule for i, rule in enumerate(parts["rules"])}
    check_nodes(faults, nodes)
    check_rules(faults, rules, nodes, wider, parts["partitions"])
    return {**parts, "nodes": nodes, "topology": wider}


def without_nodes(parts: Mapping[str, Any], which: NDArray[np.int32]) -> dict[str, Any]:
    """Return the parts of a cluster without some nodes; what stood on them stands nowhere."""
    old, topology, placement = parts["nodes"], parts["topology"], parts["placement"]
    stays = np.ones(len(old), bool)
    stays[which] = False
    left = np.flatnonzero(stays)
    number = np.append(np.where(stays, np.cumsum(stays) - 1, -1), -1).astype(np.int32)
    names = [old.names[n] for n in left.tolist()]
    nodes = Nodes(
        names=Names(names, len(names), ""),
        tags={tag: read_only(has[stays]) for tag, has in old.tags.items()},
        attributes={key: (read_only(code[stays]), text) for key, (code, text)
                    in old.attributes.items()},
        **{
            name: read_only(getattr(old, name)[stays])
            for name in ("capacity", "watermark", *COLUMNS)
        },
    )  # fmt: skip
    nodes = replace(nodes, stands_for=read_only(number[nodes.stands_for]))
    labels: dict[str, Any] = {
        tier: [stated[n] for n in left.tolist()]
        for tier, stated in labels_by_tier(topology).items()
    }
    fewer = Topology.read(FaultList(), labels, len(left), list(topology.crossing))
    shared = {}
    for tier, amounts in topology.tier_capacity.items():
        row = topology.tier_index(tier)
        was, now = topology.domain[row, left], fewer.domain[row]
        table = np.full((int(fewer.domain_count[row]), amounts.shape[1]), np.inf)
        table[now[now >= 0]] = amounts[was[now >= 0]]
        shared[tier] = read_only(table)
    distance = topology.tier_distance
    if distance.ndim == 2:
        distance = read_only(distance[np.ix_(left, left)])
    banned = parts["forbidden"]
    banned = banned[stays[banned[:, 1]]]
    partitions = parts["partitions"]
    node = number[placement.node]
    leader, at = placement.leader.copy(), placement.leader_replica
    leader[(leader >= 0) & (node[np.maximum(at, 0)] < 0)] = -1
    return {
        **parts,
        "nodes": nodes,
        "topology": replace(fewer, tier_capacity=shared, tier_distance=distance),
        "placement": replace(placement, node=read_only(node), leader=read_only(leader)),
        "partitions": replace(partitions, attached=read_only(number[partitions.attached])),
        "forbidden": read_only(np.stack([banned[:, 0], number[banned[:, 1]]], 1)),
    }


def _joined_labels(
    faults: FaultList, path: str, old: Mapping[str, list[Any]], given: Given, count: int, more: int
) -> dict[str, list[Any]]:
    """Return labels of all nodes by key; None for new nodes where a key is left out."""
    stated = {} if given.get(path) is None else entries_of(faults, path, given[path])
    joined = {key: labels + [None] * more for key, labels in old.items()}
    for key, labels in stated.items():
        codes, meaning = read_labels(faults, f"{path}[{key!r}]", labels, more)
        joined[key] = old.get(key, [None] * count) + _texts(codes, meaning)
    return joined


def _texts(codes: NDArray[np.int32], meaning: Sequence[str]) -> list[str | None]:
    return [meaning[code] if code >= 0 else None for code in codes.tolist()]


def _joined_names(faults: FaultList, old: Names, given: Any, more: int) -> Names:
    """Return the names of all nodes; new ones are counted on where none are given."""
    count = len(old) + more
    if given is None and old.counted:
        return old.counted_to(count)
    new = [f"n{i}" for i in range(len(old), count)] if given is None else items_of(
        faults, "node_names", given
    )  # fmt: skip
    if len(new) != more:
        faults.add("node_names", len(new), f"needs {more} names")
        return old.counted_to(count)
    return Names.read(faults, "node_names", [*old, *new], count, "n")


def _with_sizes(faults: FaultList, old: Topology, new: Topology) -> Topology:
    """Return a topology with the capacities and distances of another that it contains."""
    shared = {}
    for tier, amounts in old.tier_capacity.items():
        row = new.tier_index(tier)
        was, now = old.domain[row], new.domain[row, : old.domain.shape[1]]
        wider = np.full((int(new.domain_count[row]), amounts.shape[1]), np.inf)
        wider[now[was >= 0]] = amounts[was[was >= 0]]
        shared[tier] = read_only(wider)
    distance = new.tier_distance
    if old.tier_distance.ndim == 1 and len(old) == len(new):
        distance = old.tier_distance
    elif old.tier_distance.ndim == 2:
        message = "is between the old nodes only: give distances by tier, by Cluster.replace, first"
        faults.add("tier_distance", old.tier_distance.shape, message)
    return replace(new, tier_capacity=shared, tier_distance=distance)


LISTED = 10
"""Nodes without a domain that are listed; the others are counted."""


def limited_tiers(rules: Sequence[Rule], topology: Topology) -> list[str]:
    """List the tiers that rules set limits on and that every node has a domain of.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[9.0]] * 2, load=[], domains={"zone": ["a", "b"], "rack": ["x", None]},
    ...     rules=[Rule(spread={"zone": 1, "rack": 1})])
    >>> limited_tiers(c.rules, c.topology)
    ['zone']
    """
    limited = {limit.tier for rule in rules for limit in rule.limits()}
    return [
        tier
        for row, tier in enumerate(topology.tiers)
        if tier in limited and len(topology.label[row]) and (topology.label[row] >= 0).all()
    ]


def check_domains_given(
    faults: FaultList, parts: Mapping[str, Any], given: Given, more: int
) -> None:
    """Note tiers that the cluster does not have, and new nodes that rules would not count."""
    topology: Topology = parts["topology"]
    stated = given.get("domains")
    stated = stated if isinstance(stated, Mapping) else {}
    for tier in stated:
        if isinstance(tier, str) and tier not in topology.tiers:
            known = list(topology.tiers)
            message = f"unknown tier; known: {known}{did_you_mean(tier, known)}"
            faults.add(f"domains[{tier!r}]", tier, message)
    for tier in limited_tiers(parts["rules"], topology):
        inside = FaultList()
        codes, _ = read_labels(inside, "", stated.get(tier, [None] * more), more)
        strays = [] if inside else np.flatnonzero(codes < 0).tolist()
        if strays:
            shown = strays if len(strays) <= LISTED else [*strays[:LISTED], "..."]
            message = f"new nodes have none, and rules count replicas by {tier}: give each its own"
            faults.add(f"domains[{tier!r}]", shown, message)
