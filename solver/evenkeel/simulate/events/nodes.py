"""Events of nodes: they go, come back, are drained, join, and are upgraded in turn."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.selection import find_nodes
from evenkeel.simulate.engine.health import Health
from evenkeel.simulate.engine.world import World
from evenkeel.simulate.events.event import Event, at_least, listed, several

SUSPECT_FOR = 30.0
"""Seconds for which a node that was away is suspect. CockroachDB, allocator, store states."""

MILLISECOND = 0.001

DEAD_AFTER = 300.0
"""Seconds after which a node that is not heard of is dead. CockroachDB, the same."""

SAID = {
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

    def _said(self, world: World) -> str:
        return f"{self._are(world)} {SAID[self.health]}"


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

    def _said(self, world: World) -> str:
        return f"{self._are(world)} {SAID[Health.UNKNOWN]}"


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

    def _said(self, world: World) -> str:
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

    def _said(self, world: World) -> str:
        return f"{self._are(world)} {SAID[self.turns]}"


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

    def _said(self, world: World) -> str:
        return f"{self._are(world)} {SAID[Health.ABSENT]}"


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

    def _said(self, world: World) -> str:
        return f"{self._are(world)} {SAID[self._health()]}"

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

    def _said(self, world: World) -> str:
        return f"{world.cluster.nodes.names[int(self.node)]} overloaded {self.score:g}"
