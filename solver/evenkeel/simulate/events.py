"""Events of a simulation: what happens to nodes, loads and partitions, each at a time."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.changes import Changes, changed_parts, parts_of
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.consistency import vouch_for
from evenkeel.model.reading.containers import items_of
from evenkeel.model.reading.selection import find_nodes, find_partitions
from evenkeel.model.topology import NODE_TIER
from evenkeel.simulate.engine.world import Health, World

NAMED = 3
"""Nodes or partitions up to which each is named; of more the first two are."""


@dataclass(frozen=True, kw_only=True)
class Event(ABC):
    """Something that happens at a time.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> events: list[simulate.Event] = [
    ...     simulate.NodesDown(at=60.0, nodes="n0"), simulate.Split(at=30.0, partition="p0"),
    ... ]
    >>> simulate.play(c, events, until=60.0, every=60.0).events
    ((30.0, 'p0 split'), (60.0, 'n0 down'))
    """

    at: float = 0.0
    name: str = ""

    @property
    def grows(self) -> bool:
        """Whether there are more partitions afterwards."""
        return False

    def happen(self, world: World) -> Sequence["Event"]:
        """Change the world, or hand out the events that this one stands for.

        Parameters
        ----------
        world : World
            It is changed.

        Returns
        -------
        sequence of Event
            What follows from it later.
        """
        return self.bound(FaultList(), "event", world.cluster)

    def what(self, world: World) -> str:
        """Return a short description.

        Parameters
        ----------
        world : World
            Whose nodes and partitions it names.

        Returns
        -------
        str
            Its name if it has one; nothing for what only goes on.
        """
        return self.name or self._describe(world)

    def bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence["Event"]:
        """Put numbers in the place of names, and what is several one by one.

        Parameters
        ----------
        faults : FaultList
            Where everything that makes no sense is noted.
        path : str
            What the caller calls it.
        cluster : Cluster
            Whose nodes, levels and partitions it names.

        Returns
        -------
        sequence of Event
            Itself, or what it stands for.
        """
        at_least(faults, f"{path}.at", self.at, 0.0)
        if not isinstance(self.name, str):
            faults.add(f"{path}.name", self.name, "must be a string")
        return self._bound(faults, path, cluster)

    @abstractmethod
    def _describe(self, world: World) -> str:
        """Return a short description."""

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence["Event"]:
        """Look at what is its own, and put numbers in the place of names."""
        return (self,)


def at_least(faults: FaultList, path: str, value: float, least: float) -> None:
    """Note a number that is too small, or none.

    Examples
    --------
    >>> found = FaultList()
    >>> at_least(found, "events[0].at", -1.0, 0.0)
    >>> str(found.faults[0])
    'events[0].at: must be 0 or more (got -1.0)'
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        faults.add(path, value, "must be a number")
    elif not value >= least:
        faults.add(path, value, f"must be {least:g} or more")


def above_zero(faults: FaultList, path: str, value: float) -> None:
    """Note a number that is not above 0, not finite, or none.

    Examples
    --------
    >>> found = FaultList()
    >>> above_zero(found, "events[0].factor", 0.0)
    >>> str(found.faults[0])
    'events[0].factor: must be finite and above 0 (got 0.0)'
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        faults.add(path, value, "must be a number")
    elif not 0.0 < value < np.inf:
        faults.add(path, value, "must be finite and above 0")


def listed(names: Sequence[str], which: Iterable[int]) -> str:
    """Name a few of many.

    Examples
    --------
    >>> listed(["a", "b", "c", "d"], [0, 2]), listed(["a", "b", "c", "d"], range(4))
    ('a, c', 'a, b and 2 more')
    """
    chosen = [int(i) for i in which]
    if len(chosen) <= NAMED:
        return ", ".join(names[i] for i in chosen)
    return f"{', '.join(names[i] for i in chosen[:2])} and {len(chosen) - 2} more"


def several(given: Any) -> Any:
    """Return a sequence, of one where one was given by itself.

    Examples
    --------
    >>> several("n3"), several(["n3", "n4"])
    (['n3'], ['n3', 'n4'])
    """
    return [given] if isinstance(given, str | int | np.integer) else given


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

ANSWERING = (Health.UP, Health.SUSPECT, Health.DRAINING, Health.DECOMMISSIONING)
"""States of nodes that answer."""


@dataclass(frozen=True, kw_only=True)
class NodesEvent(Event):
    """Nodes that are in some states go to another one, and to a third a while later."""

    nodes: str | int | Sequence[str | int]

    where: ClassVar[Collection[Health]] = (*Health,)
    becomes: ClassVar[Health] = Health.UP
    verb: ClassVar[str] = ""
    later: ClassVar[tuple[str, Health] | None] = None

    def happen(self, world: World) -> Sequence[Event]:
        """Set the state; partitions led from nodes that no longer answer find another leader."""
        nodes, health = self._chosen(world), self._health()
        if not nodes:
            return ()
        world.health[nodes] = health
        world.health_since[nodes] = world.seconds
        world.version += 1
        if world.keep_all_led() or health >= Health.UNKNOWN:
            world.refresh()
        if self.later is None:
            return ()
        seconds = getattr(self, self.later[0])
        turn = NodesTurn(
            at=self.at + seconds, nodes=nodes, was=health, turns=self.later[1], after=seconds
        )
        return [turn]

    def numbers(self) -> list[int]:
        """Return the nodes, once they are bound."""
        return [int(node) for node in several(self.nodes)]

    def _chosen(self, world: World) -> list[int]:
        return [node for node in self.numbers() if world.health[node] in self.where]

    def _health(self) -> Health:
        return self.becomes

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        if self.later is not None:
            at_least(faults, f"{path}.{self.later[0]}", getattr(self, self.later[0]), 0.0)
        found = find_nodes(
            faults, f"{path}.nodes", cluster.nodes, cluster.topology, several(self.nodes)
        )
        if len(found) == 0 and not faults.about(f"{path}.nodes"):
            faults.add(f"{path}.nodes", self.nodes, "names no node")
        return (replace(self, nodes=found.tolist()),)

    def _describe(self, world: World) -> str:
        which = listed(world.cluster.nodes.names, self.numbers())
        return f"{which} {self.verb or DESCRIPTIONS[self._health()]}"


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

    def _health(self) -> Health:
        return self.health


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

    where = ANSWERING
    becomes = Health.UNKNOWN
    later = ("dead_after", Health.DEAD)


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

    where = (Health.DRAINING, Health.DECOMMISSIONING, Health.UNKNOWN, Health.DEAD)
    becomes = Health.SUSPECT
    verb = "back"
    later = ("suspect_for", Health.UP)


@dataclass(frozen=True, kw_only=True)
class NodesTurn(NodesEvent):
    """Nodes that have been in one state for so long turn to another."""

    was: Health
    turns: Health
    after: float

    def _chosen(self, world: World) -> list[int]:
        lasted = world.seconds - world.health_since >= self.after - MILLISECOND
        return [n for n in self.numbers() if lasted[n] and world.health[n] == self.was]

    def _health(self) -> Health:
        return self.turns


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

    becomes = Health.ABSENT


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

    where = ANSWERING

    def _health(self) -> Health:
        return Health.DECOMMISSIONING if self.evacuated else Health.DRAINING


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

    where = (Health.ABSENT,)
    becomes = Health.UP
    verb = "added"


def with_newcomers(faults: FaultList, cluster: Cluster, events: Sequence[object]) -> Cluster:
    """Return a cluster of which all nodes are part that will ever join, absent so far."""
    for i, event in enumerate(events):
        if isinstance(event, NodesAdded):
            cluster = _with_new(faults, f"events[{i}]", cluster, event)
    return cluster


def _with_new(faults: FaultList, path: str, cluster: Cluster, event: NodesAdded) -> Cluster:
    known, given = cluster.nodes.names, event.capacity
    asked = items_of(faults, f"{path}.nodes", several(event.nodes))
    new = [one for one in dict.fromkeys(asked) if isinstance(one, str) and one not in known]
    if not new:
        return cluster
    if len(known) == 0:
        faults.add(f"{path}.like", event.like, "the cluster has no node to be like")
        return cluster
    domains: Any = event.domains
    if isinstance(domains, Mapping):
        domains = {tier: [str(label)] * len(new) for tier, label in domains.items()}
    capacity = None if given is None else [given] * len(new)
    like = 0 if event.like is None else event.like
    inside = FaultList()
    parts = changed_parts(
        inside,
        parts_of(cluster),
        Changes(
            nodes={"names": new, "like": like, "capacity": capacity, "domains": domains}, gone=new
        ),
    )
    for one in inside.faults:
        faults.add(f"{path}.{one.path.removeprefix('nodes.')}", one.value, one.message)
    if inside:
        return cluster
    vouch_for(parts)
    return replace(cluster, **parts)


def bound(
    faults: FaultList, cluster: Cluster, events: Sequence[Event]
) -> tuple[Cluster, tuple[Event, ...]]:
    """Return a cluster with all nodes that will ever be, and what happens to it, by number.

    Examples
    --------
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


@dataclass(frozen=True, kw_only=True)
class DomainLost(Event):
    """All nodes of a domain stop answering: a rack, a zone, a region.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    tier : str
        Name of the tier.
    domain : str
        Name of the domain: its label, or its path where labels repeat, as ``"b/r1"``.
    lasts : float
        Seconds until they are back; for good by default.
    dead_after : float
        Seconds until they count as dead.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4,
    ...     domains={"zone": [*"aab"]},
    ... )
    >>> lost = simulate.DomainLost(tier="zone", domain="a", lasts=60.0)
    >>> simulate.play(c, [lost], until=600.0, every=300.0).events
    ((0.0, 'zone a lost'), (60.0, 'zone a back'), (90.0, 'n0, n1 up'))
    """

    tier: str
    domain: str
    lasts: float = np.inf
    dead_after: float = DEAD_AFTER

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        above_zero(faults, f"{path}.lasts", min(self.lasts, 1e300))
        at_least(faults, f"{path}.dead_after", self.dead_after, 0.0)
        members = domains_of(cluster, self.tier)
        if not members:
            known = list(cluster.topology.tiers)
            faults.add(f"{path}.tier", self.tier, f"unknown tier; known: {known}")
            return ()
        paths = [one for one in members if self.domain in (one, one.rpartition("/")[2])]
        if len(paths) != 1:
            many = "names several domains" if paths else "unknown domain"
            faults.add(f"{path}.domain", self.domain, f"{many}; known: {list(members)}")
            return ()
        nodes = members[paths[0]]
        what = f"{self.tier} {self.domain}"
        events: list[Event] = [
            NodesDown(
                at=self.at,
                name=self.name or f"{what} lost",
                nodes=nodes,
                dead_after=self.dead_after,
            )
        ]
        if np.isfinite(self.lasts):
            events.append(NodesBack(at=self.at + self.lasts, name=f"{what} back", nodes=nodes))
        return events

    def _describe(self, world: World) -> str:
        return f"{self.tier} {self.domain} lost"


@dataclass(frozen=True, kw_only=True)
class RollingUpgrade(Event):
    """Nodes are restarted in turn, a few at a time, domain by domain if a tier is named.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    nodes : str, int, or sequence of them, optional
        The nodes: names, numbers, or expressions; all that are there by default.
    tier : str
        Nodes of different domains of this tier are never away together; ``"node"`` for no tier.
    batch : int
        How many are away at the same time.
    away : float
        Seconds for which each is away.
    pause : float
        Seconds between the return of some and the going of the next.
    dead_after : float
        Seconds after which a node that is away counts as dead.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[1.0]] * 3, load=[], domains={"zone": ["a", "b", "a"]})
    >>> upgrade = RollingUpgrade(tier="zone", batch=2, away=60.0, pause=30.0)
    >>> [(e.at, e.nodes) for e in upgrade.bound(FaultList(), "", c)]
    [(0.0, [0, 2]), (60.0, [0, 2]), (90.0, [1]), (150.0, [1])]
    """

    nodes: str | int | Sequence[str | int] | None = None
    tier: str = NODE_TIER
    batch: int = 1
    away: float = 120.0
    pause: float = 60.0
    dead_after: float = DEAD_AFTER

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        above_zero(faults, f"{path}.away", self.away)
        at_least(faults, f"{path}.pause", self.pause, 0.0)
        at_least(faults, f"{path}.dead_after", self.dead_after, 0.0)
        if isinstance(self.batch, bool) or not isinstance(self.batch, int) or self.batch < 1:
            faults.add(f"{path}.batch", self.batch, "must be a whole number, 1 or more")
        if self.nodes is None:
            chosen = set(np.flatnonzero(~cluster.nodes.gone).tolist())
        else:
            found = find_nodes(
                faults, f"{path}.nodes", cluster.nodes, cluster.topology, several(self.nodes)
            )
            chosen = set(found.tolist())
        everywhere = {"": list(range(len(cluster.nodes)))}
        members = everywhere if self.tier == NODE_TIER else domains_of(cluster, self.tier)
        if not members:
            known = [*cluster.topology.tiers, NODE_TIER]
            faults.add(f"{path}.tier", self.tier, f"unknown tier; known: {known}")
        if faults.about(path):
            return ()
        stray = chosen.difference(*members.values())
        events: list[Event] = []
        goes = self.at
        for inside in [*members.values(), sorted(stray)]:
            mine = [node for node in inside if node in chosen]
            for i in range(0, len(mine), self.batch):
                some = mine[i : i + self.batch]
                events.append(
                    NodesDown(at=goes, name=self.name, nodes=some, dead_after=self.dead_after)
                )
                events.append(NodesBack(at=goes + self.away, nodes=some))
                goes += self.away + self.pause
        return events

    def _describe(self, world: World) -> str:
        return f"rolling upgrade by {self.tier}"


def domains_of(cluster: Cluster, tier: str) -> dict[str, list[int]]:
    """Return the nodes of each domain of a tier that holds any which are not gone.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[1.0]] * 3, load=[], domains={"zone": ["a", "b", "a"]})
    >>> domains_of(c, "zone")
    {'a': [0, 2], 'b': [1]}
    """
    topology = cluster.topology
    if tier not in topology.tiers:
        return {}
    row = topology.tier_index(tier)
    domain = np.where(cluster.nodes.gone, -1, topology.domain[row])
    return {
        topology.domain_name(row, d): np.flatnonzero(domain == d).tolist()
        for d in np.unique(domain[domain >= 0]).tolist()
    }


COUNTED = "replicas"
"""A dimension of this name counts replicas, whatever they carry."""


@dataclass(frozen=True, kw_only=True)
class LoadBecomes(Event):
    """Partitions carry more load, or less.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    partitions : sequence of (str or int)
        Which ones, by name, number or ``"group=NAME"``.
    factors : float or sequence of float
        By which loads are multiplied: one for all of them, or one for each.
    dimensions : sequence of str, optional
        Which dimensions; all but the one that is moved, and counts of replicas, by default.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> more = simulate.LoadBecomes(at=30.0, partitions=["p0"], factors=2.0)
    >>> history = simulate.play(c, [more], until=60.0, every=30.0)
    >>> history.load.sum((1, 2)).tolist()
    [8.0, 10.0, 10.0]
    """

    partitions: Sequence[str | int]
    factors: float | Sequence[float]
    dimensions: Sequence[str] | None = None

    def happen(self, world: World) -> Sequence[Event]:
        """Multiply."""
        which = np.array(self.partitions, np.int64)
        factor = np.broadcast_to(np.asarray(self.factors, np.float64), which.shape)
        multiply(world, which, factor, flows_of(world.cluster, self.dimensions))
        world.growth[which] *= factor
        world.refresh()
        world.version += 1
        return ()

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        which = find_partitions(
            faults, f"{path}.partitions", cluster.partitions, several(self.partitions)
        )
        check_dimensions(faults, f"{path}.dimensions", cluster, self.dimensions)
        if np.ndim(self.factors) == 0:
            above_zero(faults, f"{path}.factors", self.factors)  # type: ignore[arg-type]
        else:
            given = items_of(faults, f"{path}.factors", self.factors)
            if len(given) != len(which) and not faults.about(path):
                faults.add(f"{path}.factors", len(given), f"needs {len(which)}, one a partition")
            for i, factor in enumerate(given):
                above_zero(faults, f"{path}.factors[{i}]", factor)
        return (replace(self, partitions=which.tolist()),)

    def _describe(self, world: World) -> str:
        which = listed(world.names, self.partitions)  # type: ignore[arg-type]
        factors = np.unique(np.asarray(self.factors, np.float64))
        return f"load of {which}" + (f" x {factors[0]:.3g}" if len(factors) == 1 else "")


@dataclass(frozen=True, kw_only=True)
class HotSpot(Event):
    """Some partitions are hot for a while.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    partitions : sequence of (str or int)
        Which ones, by name, number or ``"group=NAME"``.
    factor : float
        By which their loads are multiplied.
    lasts : float
        Seconds until they are as before; for good by default.
    dimensions : sequence of str, optional
        Which dimensions; all but the one that is moved, and counts of replicas, by default.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> hot = simulate.HotSpot(partitions=["p0"], factor=4.0, lasts=60.0)
    >>> history = simulate.play(c, [hot], until=60.0, every=30.0)
    >>> history.load.sum((1, 2)).tolist()
    [14.0, 14.0, 8.0]
    """

    partitions: Sequence[str | int]
    factor: float = 10.0
    lasts: float = np.inf
    dimensions: Sequence[str] | None = None

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        which = find_partitions(
            faults, f"{path}.partitions", cluster.partitions, several(self.partitions)
        )
        check_dimensions(faults, f"{path}.dimensions", cluster, self.dimensions)
        above_zero(faults, f"{path}.factor", self.factor)
        at_least(faults, f"{path}.lasts", self.lasts, 0.0)
        if faults.about(path):
            return ()
        partitions, factor = which.tolist(), float(self.factor)
        who = listed(cluster.partitions.names, partitions)
        hot = LoadBecomes(
            at=self.at,
            name=self.name or f"{who} hot",
            partitions=partitions,
            factors=factor,
            dimensions=self.dimensions,
        )
        if np.isinf(self.lasts):
            return (hot,)
        over = f"{self.name} ends" if self.name else f"{who} cool"
        ends = replace(hot, at=self.at + self.lasts, name=over, factors=1.0 / factor)
        return (hot, ends)

    def _describe(self, world: World) -> str:
        return "hot spot"


@dataclass(frozen=True, kw_only=True)
class LoadDrift(Event):
    """Loads go up and down at random, each partition by itself: a random walk.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    every : float
        Seconds from one step to the next.
    deviation : float
        Standard deviation of the logarithm of one step's factor.
    pull : float
        Share of the way back to where it began that each step takes; 0 for a walk that ends
        anywhere, in which sooner or later one partition outweighs all others.
    lasts : float
        Seconds until it ends; never by default.
    partitions : sequence of (str or int), optional
        Which ones, by name, number or ``"group=NAME"``; all by default, those to come too.
    dimensions : sequence of str, optional
        Which dimensions; all but the one that is moved, and counts of replicas, by default.
    seed : int
        All randomness comes from it, so that it is the same for all controllers.
    step : int
        Steps taken so far.
    strayed : ndarray of float64, shape (n,)
        How far each partition is from where it began, as a logarithm.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> drift = simulate.LoadDrift(every=60.0, deviation=0.1, seed=1)
    >>> history = simulate.play(c, [drift], until=120.0, every=60.0)
    >>> history.load.sum((1, 2)).round(2).tolist()
    [8.06, 8.53, 8.54]
    """

    every: float = 60.0
    deviation: float = 0.05
    pull: float = 0.1
    lasts: float = np.inf
    partitions: Sequence[str | int] | None = None
    dimensions: Sequence[str] | None = None
    seed: int = 0
    step: int = field(default=0, repr=False)
    strayed: NDArray[np.float64] = field(
        default_factory=lambda: np.zeros(0), repr=False, compare=False
    )

    def happen(self, world: World) -> Sequence[Event]:
        """Take a step."""
        everywhere = np.arange(len(world))
        which = everywhere if self.partitions is None else np.array(self.partitions, np.int64)
        random = np.random.default_rng([self.seed, self.step])
        noise = random.standard_normal(len(which))
        before = np.zeros(len(which))
        before[: len(self.strayed)] = self.strayed
        after = (1.0 - self.pull) * before + self.deviation * noise
        multiply(world, which, np.exp(after - before), flows_of(world.cluster, self.dimensions))
        world.refresh()
        world.version += 1
        if self.every * (self.step + 1) > self.lasts:
            return ()
        then = self.at + self.every
        return (replace(self, at=then, name="", step=self.step + 1, strayed=after),)

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        check_dimensions(faults, f"{path}.dimensions", cluster, self.dimensions)
        above_zero(faults, f"{path}.every", self.every)
        above_zero(faults, f"{path}.deviation", self.deviation)
        if not 0.0 <= self.pull <= 1.0:
            faults.add(f"{path}.pull", self.pull, "must be a share, from 0 to 1")
        at_least(faults, f"{path}.lasts", self.lasts, 0.0)
        check_whole(faults, f"{path}.seed", self.seed, 0)
        if self.partitions is None:
            return (self,)
        which = find_partitions(
            faults, f"{path}.partitions", cluster.partitions, several(self.partitions)
        )
        return (replace(self, partitions=which.tolist()),)

    def _describe(self, world: World) -> str:
        return "" if self.step else "load drifts"


def flows_of(cluster: Cluster, dimensions: Sequence[str] | None) -> list[int]:
    """Return the dimensions in which a change of load counts."""
    if dimensions is not None:
        return sorted({cluster.dimensions.index(name) for name in dimensions})
    return [
        d
        for d, name in enumerate(cluster.dimensions)
        if d != cluster.bytes_dimension and name != COUNTED
    ]


def check_dimensions(
    faults: FaultList, path: str, cluster: Cluster, dimensions: Sequence[str] | None
) -> None:
    """Note dimensions that are none, and a change that would change none."""
    known = list(cluster.dimensions)
    named = [] if dimensions is None else items_of(faults, path, dimensions)
    for i, name in enumerate(named):
        if name not in known:
            faults.add(f"{path}[{i}]", name, f"unknown dimension; known: {known}")
    if not faults.about(path) and not flows_of(cluster, dimensions):
        faults.add(path, dimensions, f"changes nothing: give at least one of {known}")


def check_whole(faults: FaultList, path: str, value: int, least: int) -> None:
    """Note what is no whole number, or too small."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        faults.add(path, value, f"must be a whole number, {least} or more")


def multiply(
    world: World,
    partitions: NDArray[np.int64],
    factor: NDArray[np.float64],
    dimensions: Sequence[int],
) -> None:
    """Multiply the loads of some partitions in all roles."""
    columns = np.array(dimensions, np.int64)
    for load in (world.leader_load, world.voter_load, world.non_voter_load):
        load[np.ix_(partitions, columns)] *= factor[:, None]


@dataclass(frozen=True, kw_only=True)
class Rewrite(Event):
    """Partitions want something else: other numbers, or another rule.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    partitions : sequence of (str or int) or slice
        Which ones, by name, number or ``"group=NAME"``; all by default.
    rule : int, optional
        Index of the rule in the cluster.
    replicas, voters : int, optional
        Wanted numbers. Where all replicas vote, they do so in other numbers, too.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> more = simulate.Rewrite(at=60.0, partitions=["p0"], replicas=3)
    >>> history = simulate.play(c, [more], until=600.0, every=300.0)
    >>> history.replicas.sum(1).tolist()
    [8, 9, 9]
    """

    partitions: Sequence[str | int] | slice = field(default_factory=lambda: slice(None))
    rule: int | None = None
    replicas: int | None = None
    voters: int | None = None

    def happen(self, world: World) -> Sequence[Event]:
        """Set what is given."""
        which: Any = self.partitions  # numbers or a slice, once it is bound
        if self.replicas is not None:
            votes, wanted = world.voters[which], world.wanted[which]
            most = np.minimum(votes, self.replicas)
            world.voters[which] = np.where(votes == wanted, self.replicas, most)
        given = (("rule", self.rule), ("wanted", self.replicas), ("voters", self.voters))
        for name, value in given:
            if value is not None:
                getattr(world, name)[which] = value
        world.version += 1
        return ()

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        if self.rule is not None and not -1 <= self.rule < len(cluster.rules):
            faults.add(f"{path}.rule", self.rule, f"must be a rule, -1 to {len(cluster.rules) - 1}")
        for name in ("replicas", "voters"):
            if getattr(self, name) is not None:
                at_least(faults, f"{path}.{name}", getattr(self, name), 0.0)
        if isinstance(self.partitions, slice):
            return (self,)
        which = find_partitions(
            faults, f"{path}.partitions", cluster.partitions, several(self.partitions)
        )
        return (replace(self, partitions=which.tolist()),)

    def _describe(self, world: World) -> str:
        given = (("rule", self.rule), ("replicas", self.replicas), ("voters", self.voters))
        return ", ".join(f"{name} {value}" for name, value in given if value is not None)


@dataclass(frozen=True, kw_only=True)
class Growth(Event):
    """Partitions are added, and load grows, again and again.

    Parameters
    ----------
    at : float
        Seconds from the beginning, for the first time.
    name : str
        What histories call it; what it does, if left empty.
    every : float
        Seconds from one time to the next.
    lasts : float
        Seconds until it ends; never by default.
    partitions : int
        How many are added each time, without replicas so far: each wants and weighs what one of
        those that are there does, drawn at random.
    load : float
        Share by which all loads grow each time, the dimension that is moved as well.
    seed : int
        All randomness comes from it, so that it is the same for all controllers.
    step : int
        Times that it has grown so far.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> grown = simulate.Growth(at=60.0, every=60.0, lasts=120.0, partitions=1)
    >>> history = simulate.play(c, [grown], until=300.0, every=300.0)
    >>> history.partitions
    ('p0', 'p1', 'p2', 'p3', 'p4', 'p5', 'p6')
    """

    every: float = 60.0
    lasts: float = np.inf
    partitions: int = 0
    load: float = 0.0
    seed: int = 0
    step: int = field(default=0, repr=False)

    @property
    def grows(self) -> bool:
        """Whether there are more partitions afterwards."""
        return self.partitions > 0

    def happen(self, world: World) -> Sequence[Event]:
        """Grow."""
        if self.load:
            everywhere = np.arange(len(world))
            carried = [d for d, n in enumerate(world.cluster.dimensions) if n != COUNTED]
            multiply(world, everywhere, np.full(len(world), 1.0 + self.load), carried)
        if self.partitions and len(world):
            random = np.random.default_rng([self.seed, self.step])
            world.add_partitions(random.integers(0, len(world), self.partitions))
        world.refresh()
        world.version += 1
        if self.every * (self.step + 1) > self.lasts:
            return ()
        return (replace(self, at=self.at + self.every, name="", step=self.step + 1),)

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        above_zero(faults, f"{path}.every", self.every)
        at_least(faults, f"{path}.lasts", self.lasts, 0.0)
        at_least(faults, f"{path}.load", self.load, 0.0)
        check_whole(faults, f"{path}.partitions", self.partitions, 0)
        check_whole(faults, f"{path}.seed", self.seed, 0)
        if not self.partitions and not self.load:
            faults.add(
                f"{path}.partitions", self.partitions, "grows nothing: give partitions or load"
            )
        return (self,)

    def _describe(self, world: World) -> str:
        if self.step:
            return ""
        parts = [f"{self.partitions} more partitions"] if self.partitions else []
        parts += [f"load + {100.0 * self.load:g} %"] if self.load else []
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Split(Event):
    """A partition is split in two.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    partition : int or str
        The partition; the new one gets the next number.
    share : float
        Part of load and size that the new one takes.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> split = simulate.Split(partition="p0", share=0.25)
    >>> simulate.play(c, [split], until=60.0, every=60.0).partitions
    ('p0', 'p1', 'p2', 'p3', 'p4')
    """

    partition: int | str
    share: float = 0.5

    @property
    def grows(self) -> bool:
        """Whether there are more partitions afterwards."""
        return True

    def happen(self, world: World) -> Sequence[Event]:
        """Split it."""
        world.split(int(self.partition), self.share)
        world.version += 1
        return ()

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        which = find_partitions(faults, f"{path}.partition", cluster.partitions, [self.partition])
        if not 0.0 < self.share < 1.0:
            faults.add(f"{path}.share", self.share, "must be between 0 and 1")
        return (replace(self, partition=int(which[0])),) if len(which) else ()

    def _describe(self, world: World) -> str:
        return f"{world.names[int(self.partition)]} split"


@dataclass(frozen=True, kw_only=True)
class SplitBusy(Event):
    """Again and again, whatever carries or holds too much is split in the middle.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    every : float
        Seconds until the next look.
    rate : float
        Most requests per second at the leader, in the dimension ``qps``.
    size : float
        Most bytes of a replica.

    References
    ----------
    CockroachDB, load-based splitting (2,500 requests per second) and range size (512 MiB).

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[9e9]] * 3, load=[[1e9]], placement=[[0, 1]], dimensions=["disk"],
    ...     bytes="disk",
    ... )
    >>> busy = simulate.SplitBusy(every=10.0, size=600e6)
    >>> simulate.play(c, [busy], until=60.0, every=60.0).partitions
    ('p0', 'p1')
    """

    every: float = 10.0
    rate: float = np.inf
    size: float = np.inf

    @property
    def grows(self) -> bool:
        """Whether there are more partitions afterwards."""
        return True

    def happen(self, world: World) -> Sequence[Event]:
        """Split what is too busy or too large."""
        names = world.cluster.dimensions
        busy = np.zeros(len(world), bool)
        if "qps" in names:
            busy |= world.leader_load[:, names.index("qps")] > self.rate
        if world.disk >= 0:
            busy |= world.leader_load[:, world.disk] > self.size
        for partition in np.flatnonzero(busy).tolist():
            Split(partition=partition).happen(world)
        return [replace(self, at=self.at + self.every)]

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        above_zero(faults, f"{path}.every", self.every)
        for name in ("rate", "size"):
            at_least(faults, f"{path}.{name}", getattr(self, name), 0.0)
        return (self,)

    def _describe(self, world: World) -> str:
        return "busy partitions split"
