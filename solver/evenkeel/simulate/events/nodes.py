"""Events that change nodes: they fail, return, drain, join, and restart one after another."""

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
from evenkeel.simulate.engine.world import Health, World
from evenkeel.simulate.events.event import Event, at_least, listed, several

SUSPECT_FOR = 30.0
"""Seconds for which a node that was away is suspect. CockroachDB, allocator, store states."""

MILLISECOND = 0.001

DEAD_AFTER = 300.0
"""Seconds after which a node that is not heard of is dead. CockroachDB, the same."""

DESCRIPTIONS = {
    Health.UP: "up",
    Health.SUSPECT: "suspect",
    Health.DRAINING: "drained",
    Health.DECOMMISSIONING: "evacuated",
    Health.UNKNOWN: "down",
    Health.DEAD: "dead",
    Health.ABSENT: "gone",
}


@dataclass(frozen=True, kw_only=True)
class NodesEvent(Event):
    """Something that happens to nodes."""

    nodes: str | int | Sequence[str | int]

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        found = find_nodes(
            faults, f"{path}.nodes", cluster.nodes, cluster.topology, several(self.nodes)
        )
        if len(found) == 0 and not faults.about(f"{path}.nodes"):
            faults.add(f"{path}.nodes", self.nodes, "names no node")
        return (replace(self, nodes=found.tolist()),)

    def numbers(self) -> list[int]:
        """Return the nodes, once they are bound."""
        return [int(node) for node in several(self.nodes)]

    def _are(self, world: World) -> str:
        return listed(world.cluster.nodes.names, self.numbers())


@dataclass(frozen=True, kw_only=True)
class NodesBecome(NodesEvent):
    """Nodes are in another state from now on.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    nodes : str, int, or sequence of them
        The nodes: names, numbers, or expressions such as ``"zone=a"``.
    health : Health
        Their state.

    Examples
    --------
    >>> NodesBecome(at=60.0, nodes="n3", health=Health.DRAINING).health.name
    'DRAINING'
    """

    health: Health

    def happen(self, world: World) -> Sequence[Event]:
        """Set the state; partitions led from nodes that no longer answer find another leader."""
        nodes = self.numbers()
        world.health[nodes] = self.health
        world.health_since[nodes] = world.seconds
        world.version += 1
        if world.keep_all_led() or self.health >= Health.UNKNOWN:
            world.refresh()
        return ()

    def _describe(self, world: World) -> str:
        return f"{self._are(world)} {DESCRIPTIONS[self.health]}"


@dataclass(frozen=True, kw_only=True)
class NodesDown(NodesEvent):
    """Nodes stop answering; unless they come back they are dead a while later.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    nodes : str, int, or sequence of them
        The nodes: names, numbers, or expressions such as ``"zone=a"``.
    dead_after : float
        Seconds until they count as dead: until then a method leaves their replicas where they are.
        A pipeline goes by its own delay windows instead.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> lost = simulate.NodesDown(at=60.0, nodes=["n0"], dead_after=300.0)
    >>> simulate.play(c, [lost], until=600.0, every=300.0).events
    ((60.0, 'n0 down'), (360.0, 'n0 dead'))
    """

    dead_after: float = DEAD_AFTER

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        at_least(faults, f"{path}.dead_after", self.dead_after, 0.0)
        return super()._bound(faults, path, cluster)

    def happen(self, world: World) -> Sequence[Event]:
        """Make those unknown that answer."""
        goes = [node for node in self.numbers() if world.health[node] < Health.UNKNOWN]
        if not goes:
            return ()
        NodesBecome(nodes=goes, health=Health.UNKNOWN).happen(world)
        return [
            NodesTurn(
                at=self.at + self.dead_after,
                nodes=goes,
                was=Health.UNKNOWN,
                turns=Health.DEAD,
                after=self.dead_after,
            )
        ]

    def _describe(self, world: World) -> str:
        return f"{self._are(world)} {DESCRIPTIONS[Health.UNKNOWN]}"


@dataclass(frozen=True, kw_only=True)
class NodesBack(NodesEvent):
    """Nodes that were down, dead or drained serve again; they are suspect for a while.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    nodes : str, int, or sequence of them
        The nodes: names, numbers, or expressions such as ``"zone=a"``. Those that are gone stay so.
    suspect_for : float
        Seconds for which they keep what they have and are given nothing.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> events = [simulate.NodesDown(nodes="n0"), simulate.NodesBack(at=60.0, nodes="n0")]
    >>> simulate.play(c, events, until=120.0, every=60.0).events
    ((0.0, 'n0 down'), (60.0, 'n0 back'), (90.0, 'n0 up'))
    """

    suspect_for: float = SUSPECT_FOR

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        at_least(faults, f"{path}.suspect_for", self.suspect_for, 0.0)
        return super()._bound(faults, path, cluster)

    def happen(self, world: World) -> Sequence[Event]:
        """Make them suspect."""
        away = (Health.DRAINING, Health.DECOMMISSIONING, Health.UNKNOWN, Health.DEAD)
        comes = [node for node in self.numbers() if world.health[node] in away]
        if not comes:
            return ()
        NodesBecome(nodes=comes, health=Health.SUSPECT).happen(world)
        return [
            NodesTurn(
                at=self.at + self.suspect_for,
                nodes=comes,
                was=Health.SUSPECT,
                turns=Health.UP,
                after=self.suspect_for,
            )
        ]

    def _describe(self, world: World) -> str:
        return f"{self._are(world)} back"


@dataclass(frozen=True, kw_only=True)
class NodesTurn(NodesEvent):
    """Nodes that have been in one state for so long turn to another."""

    was: Health
    turns: Health
    after: float

    def happen(self, world: World) -> Sequence[Event]:
        """Turn them."""
        lasted = world.seconds - world.health_since >= self.after - MILLISECOND
        still = [n for n in self.numbers() if lasted[n] and world.health[n] == self.was]
        return NodesBecome(nodes=still, health=self.turns).happen(world) if still else ()

    def _describe(self, world: World) -> str:
        return f"{self._are(world)} {DESCRIPTIONS[self.turns]}"


@dataclass(frozen=True, kw_only=True)
class NodesGone(NodesEvent):
    """Nodes are gone for good, with all they hold.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    nodes : str, int, or sequence of them
        The nodes: names, numbers, or expressions such as ``"zone=a"``.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> history = simulate.play(c, [simulate.NodesGone(nodes=2)], until=600.0, every=300.0)
    >>> history.events
    ((0.0, 'n2 gone'),)
    """

    def happen(self, world: World) -> Sequence[Event]:
        """Take them out of the cluster."""
        return NodesBecome(nodes=self.nodes, health=Health.ABSENT).happen(world)

    def _describe(self, world: World) -> str:
        return f"{self._are(world)} {DESCRIPTIONS[Health.ABSENT]}"


@dataclass(frozen=True, kw_only=True)
class NodesDrained(NodesEvent):
    """Nodes lead nothing and are given nothing, until they are back.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    nodes : str, int, or sequence of them
        The nodes: names, numbers, or expressions such as ``"zone=a"``.
    evacuated : bool
        Whether they give away all replicas, and not leadership alone.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> drained = simulate.NodesDrained(nodes="n0", evacuated=True)
    >>> history = simulate.play(c, [drained], until=600.0, every=300.0)
    >>> history.replicas[-1].tolist()
    [0, 4, 4]
    """

    evacuated: bool = False

    def happen(self, world: World) -> Sequence[Event]:
        """Drain those that answer."""
        still = [node for node in self.numbers() if world.health[node] < Health.UNKNOWN]
        becomes = NodesBecome(nodes=still, health=self._health())
        return becomes.happen(world) if still else ()

    def _describe(self, world: World) -> str:
        return f"{self._are(world)} {DESCRIPTIONS[self._health()]}"

    def _health(self) -> Health:
        return Health.DECOMMISSIONING if self.evacuated else Health.DRAINING


@dataclass(frozen=True, kw_only=True)
class Overloaded(Event):
    """The disks of a node are overloaded, or no longer.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    node : int or str
        The node.
    score : float
        0 for not at all.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> busy = simulate.Overloaded(node="n0", score=2.0)
    >>> simulate.play(c, [busy], until=60.0, every=60.0).events
    ((0.0, 'n0 overloaded 2'),)
    """

    node: int | str
    score: float

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        at_least(faults, f"{path}.score", self.score, 0.0)
        found = find_nodes(faults, f"{path}.node", cluster.nodes, cluster.topology, [self.node])
        return (replace(self, node=int(found[0])),) if len(found) else ()

    def happen(self, world: World) -> Sequence[Event]:
        """Set the score."""
        world.io[int(self.node)] = self.score
        world.version += 1
        return ()

    def _describe(self, world: World) -> str:
        return f"{world.cluster.nodes.names[int(self.node)]} overloaded {self.score:g}"


def bound(
    faults: FaultList, cluster: Cluster, events: Sequence[Event]
) -> tuple[Cluster, tuple[Event, ...]]:
    """Return a cluster with all nodes that will ever be, and what happens to it, by number.

    Examples
    --------
    >>> from evenkeel.simulate.events.catalogue import NodesDown
    >>> c = Cluster.from_arrays(capacity=[[1.0]] * 3, load=[])
    >>> [event.nodes for event in bound(FaultList(), c, [NodesDown(nodes="n2")])[1]]
    [[2]]
    """
    given = items_of(faults, "events", events)
    cluster = with_newcomers(faults, cluster, given)
    found: list[Event] = []
    for i, event in enumerate(given):
        if isinstance(event, Event):
            found += event.bound(faults, f"events[{i}]", cluster)
        else:
            faults.add(f"events[{i}]", event, "must be an event")
    return cluster, tuple(found)


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

    def _describe(self, world: World) -> str:
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
        attributes={
            key: (like(code), texts_of) for key, (code, texts_of) in nodes.attributes.items()
        },
        **given,
    )


def _more_domains(
    faults: FaultList, topology: Topology, count: int, template: int, labels: Mapping[str, str]
) -> Topology:
    """Topology with some more nodes in the domains of one of them, or in others."""
    old = topology.domain.shape[1]
    texts_of: dict[str, list[str]] = {}
    for row, tier in enumerate(topology.tiers):
        meaning = topology.label_names[row]
        texts = [meaning[code] if code >= 0 else "" for code in topology.label[row].tolist()]
        texts_of[tier] = texts + [str(labels.get(tier, texts[template]))] * count
    more = Topology.read(faults, texts_of, old + count, sorted(topology.crossing))
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
