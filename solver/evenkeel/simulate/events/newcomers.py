"""Nodes that join: part of the cluster from the beginning, and absent until they come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.names import Names
from evenkeel.model.nodes import Nodes
from evenkeel.model.reading.arrays import as_array, list_entries, read_only
from evenkeel.model.reading.containers import entries_of, items_of
from evenkeel.model.reading.selection import find_nodes
from evenkeel.model.topology import Topology
from evenkeel.simulate.engine.health import Health
from evenkeel.simulate.engine.world import World
from evenkeel.simulate.events.event import Event, several
from evenkeel.simulate.events.nodes import NodesBecome, NodesEvent


@dataclass(frozen=True, kw_only=True)
class NodesAdded(NodesEvent):
    """Nodes join: new ones, or ones of the cluster that were gone.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    nodes : str, int, or sequence of them
        The nodes; names that the cluster does not know are new nodes.
    like : str or int, optional
        The node that new ones are like: capacity, weights, tags, domains. The cluster's first by
        default.
    capacity : sequence of float, optional
        Of each new node, one for each dimension; as ``like`` by default.
    domains : mapping of str to str, optional
        Labels of the new nodes by tier, where they are not those of ``like``. Labels may be new.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> history = ek.simulate.play(c, [NodesAdded(nodes=["n2", "n3"], at=60.0)])
    >>> bool(history.replicas[-1, 2:].any()), history.events
    (True, ((60.0, 'n2, n3 added'),))
    """

    like: str | int | None = None
    capacity: Sequence[float] | None = None
    domains: Mapping[str, str] | None = None

    def happen(self, world: World) -> Sequence[Event]:
        """Let those join that are absent."""
        comes = [node for node in self.numbers() if world.health[node] == Health.ABSENT]
        return NodesBecome(nodes=comes, health=Health.UP).happen(world) if comes else ()

    def _said(self, world: World) -> str:
        return f"{self._are(world)} added"


def with_newcomers(faults: FaultList, cluster: Cluster, events: Sequence[object]) -> Cluster:
    """Return a cluster of which all nodes are part that will ever join, absent so far."""
    for i, event in enumerate(events):
        if isinstance(event, NodesAdded):
            cluster = _with_new(faults, f"events[{i}]", cluster, event)
    return cluster


def _with_new(faults: FaultList, path: str, cluster: Cluster, event: NodesAdded) -> Cluster:
    known = cluster.nodes.names
    given = items_of(faults, f"{path}.nodes", several(event.nodes))
    new = [one for one in dict.fromkeys(given) if isinstance(one, str) and one not in known]
    if not new:
        return cluster
    before = len(faults.faults)
    template = 0
    if event.like is not None:
        found = find_nodes(faults, f"{path}.like", cluster.nodes, cluster.topology, [event.like])
        template = int(found[0]) if len(found) else 0
    elif len(known) == 0:
        faults.add(f"{path}.like", event.like, "the cluster has no node to be like")
    tiers = cluster.topology.tiers
    labels = entries_of(faults, f"{path}.domains", event.domains or {})
    for tier in labels:
        if tier not in tiers:
            faults.add(f"{path}.domains", tier, f"unknown tier; known: {list(tiers)}")
    capacity = None
    if event.capacity is not None:
        shape = (len(cluster.dimensions),)
        capacity = as_array(faults, f"{path}.capacity", event.capacity, np.float64, shape)
        list_entries(faults, f"{path}.capacity", capacity, ~(capacity >= 0.0), "must be 0 or more")
    if len(faults.faults) > before:
        return cluster
    nodes = _more_nodes(cluster.nodes, new, template, capacity)
    topology = _more_domains(faults, cluster.topology, len(new), template, labels)
    return replace(cluster, nodes=nodes, topology=topology)


def _more_nodes(
    nodes: Nodes, new: Sequence[str], template: int, capacity: NDArray[np.float64] | None
) -> Nodes:
    """Nodes with some more that are like one of them, and gone so far."""
    count = len(new)

    def like(array: NDArray[Any]) -> NDArray[Any]:
        return read_only(
            np.concatenate([array, np.repeat(array[template : template + 1], count, 0)])
        )

    given: dict[str, Any] = {
        one.name: like(getattr(nodes, one.name))
        for one in fields(nodes)
        if isinstance(getattr(nodes, one.name), np.ndarray)
    }
    if capacity is not None:
        room = given["capacity"].copy()
        room[len(nodes) :] = capacity
        given["capacity"] = read_only(room)
    for name, value in (("alive", False), ("gone", True), ("since", np.nan), ("stands_for", -1)):
        column = given[name].copy()
        column[len(nodes) :] = value
        given[name] = read_only(column)
    return replace(
        nodes,
        names=Names([*nodes.names, *new], len(nodes) + count, ""),
        tags={tag: like(mask) for tag, mask in nodes.tags.items()},
        attributes={key: (like(code), said) for key, (code, said) in nodes.attributes.items()},
        **given,
    )


def _more_domains(
    faults: FaultList, topology: Topology, count: int, template: int, labels: Mapping[str, str]
) -> Topology:
    """Topology with some more nodes in the domains of one of them, or in others."""
    old = topology.domain.shape[1]
    said: dict[str, list[str]] = {}
    for row, tier in enumerate(topology.tiers):
        meaning = topology.label_names[row]
        texts = [meaning[code] if code >= 0 else "" for code in topology.label[row].tolist()]
        said[tier] = texts + [str(labels.get(tier, texts[template]))] * count
    more = Topology.read(faults, said, old + count, sorted(topology.crossing))
    capacity = {}
    for tier, shared in topology.tier_capacity.items():
        row = topology.tier_index(tier)
        room = np.full((int(more.domain_count[row]), shared.shape[1]), np.inf)
        here = topology.domain[row] >= 0
        room[more.domain[row, :old][here]] = shared[topology.domain[row][here]]
        capacity[tier] = read_only(room)
    distance = topology.tier_distance
    if distance.ndim == 2:
        at = np.concatenate([np.arange(old), np.full(count, template)])
        distance = read_only(np.ascontiguousarray(distance[np.ix_(at, at)]))
    return replace(more, tier_capacity=capacity, tier_distance=distance)
