"""Events: what happens to a cluster from outside, and when."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from evenkeel.simulate.world import Health, World

SUSPECT_FOR = 30.0
"""Seconds for which a node that was away is suspect. CockroachDB, allocator, store states."""

MILLISECOND = 0.001

DEAD_AFTER = 300.0
"""Seconds after which a node that is not heard of is dead. CockroachDB, the same."""


@dataclass(frozen=True, kw_only=True)
class Event(ABC):
    """Something that happens at a time.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    """

    at: float = 0.0

    @abstractmethod
    def happen(self, world: World) -> "Sequence[Event]":
        """Change the world.

        Parameters
        ----------
        world : World
            It is changed.

        Returns
        -------
        sequence of Event
            What follows from it later.
        """


@dataclass(frozen=True, kw_only=True)
class NodesBecome(Event):
    """Nodes are in another state from now on.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    nodes : sequence of int
        The nodes.
    health : Health
        Their state.
    """

    nodes: Sequence[int]
    health: Health

    def happen(self, world: World) -> Sequence[Event]:
        """Set the state; partitions led from nodes that no longer answer find another leader.

        Parameters
        ----------
        world : World
            It is changed.

        Returns
        -------
        sequence of Event
            Nothing.
        """
        world.health[list(self.nodes)] = self.health
        world.health_since[list(self.nodes)] = world.seconds
        world.version += 1
        if self.health >= Health.UNKNOWN:
            for partition in np.flatnonzero(np.isin(world.leader_nodes(), self.nodes)).tolist():
                world.keep_led(partition)
            world.refresh()
        return ()


@dataclass(frozen=True, kw_only=True)
class NodesDown(Event):
    """Nodes stop answering; unless they come back they are dead a while later.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    nodes : sequence of int
        The nodes.
    dead_after : float
        Seconds until they count as dead.
    """

    nodes: Sequence[int]
    dead_after: float = DEAD_AFTER

    def happen(self, world: World) -> Sequence[Event]:
        """Make them unknown.

        Parameters
        ----------
        world : World
            It is changed.

        Returns
        -------
        sequence of Event
            Their death.
        """
        NodesBecome(nodes=self.nodes, health=Health.UNKNOWN).happen(world)
        return [
            NodesTurn(
                at=self.at + self.dead_after,
                nodes=self.nodes,
                was=Health.UNKNOWN,
                turns=Health.DEAD,
                after=self.dead_after,
            )
        ]


@dataclass(frozen=True, kw_only=True)
class NodesBack(Event):
    """Nodes answer again; they are suspect for a while.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    nodes : sequence of int
        The nodes.
    """

    nodes: Sequence[int]

    def happen(self, world: World) -> Sequence[Event]:
        """Make them suspect.

        Parameters
        ----------
        world : World
            It is changed.

        Returns
        -------
        sequence of Event
            The end of the suspicion.
        """
        NodesBecome(nodes=self.nodes, health=Health.SUSPECT).happen(world)
        return [
            NodesTurn(
                at=self.at + SUSPECT_FOR,
                nodes=self.nodes,
                was=Health.SUSPECT,
                turns=Health.UP,
                after=SUSPECT_FOR,
            )
        ]


@dataclass(frozen=True, kw_only=True)
class NodesTurn(Event):
    """Nodes that have been in one state for so long turn to another.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    nodes : sequence of int
        The nodes.
    was, turns : Health
        The state that they must be in, and the next one.
    after : float
        Seconds for which they must have been in it.
    """

    nodes: Sequence[int]
    was: Health
    turns: Health
    after: float

    def happen(self, world: World) -> Sequence[Event]:
        """Turn them.

        Parameters
        ----------
        world : World
            It is changed.

        Returns
        -------
        sequence of Event
            Nothing.
        """
        lasted = world.seconds - world.health_since >= self.after - MILLISECOND
        still = [n for n in self.nodes if lasted[n] and world.health[n] == self.was]
        return NodesBecome(nodes=still, health=self.turns).happen(world) if still else ()


@dataclass(frozen=True, kw_only=True)
class Rewrite(Event):
    """Partitions want something else: other numbers, or another rule.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    partitions : sequence of int or slice
        Which ones; all by default.
    rule : int, optional
        Index of the rule in the cluster.
    replicas, voters : int, optional
        Wanted numbers.
    """

    partitions: Sequence[int] | slice = field(default_factory=lambda: slice(None))
    rule: int | None = None
    replicas: int | None = None
    voters: int | None = None

    def happen(self, world: World) -> Sequence[Event]:
        """Set what is given.

        Parameters
        ----------
        world : World
            It is changed.

        Returns
        -------
        sequence of Event
            Nothing.
        """
        given = (("rule", self.rule), ("wanted", self.replicas), ("voters", self.voters))
        for name, value in given:
            if value is not None:
                getattr(world, name)[self.partitions] = value
        world.version += 1
        return ()


@dataclass(frozen=True, kw_only=True)
class Overloaded(Event):
    """The disks of a node are overloaded, or no longer.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    node : int
        The node.
    score : float
        0 for not at all.
    """

    node: int
    score: float

    def happen(self, world: World) -> Sequence[Event]:
        """Set the score.

        Parameters
        ----------
        world : World
            It is changed.

        Returns
        -------
        sequence of Event
            Nothing.
        """
        world.io[self.node] = self.score
        world.version += 1
        return ()


@dataclass(frozen=True, kw_only=True)
class LoadBecomes(Event):
    """Partitions carry more load, or less.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    partitions : sequence of int
        Which ones.
    factors : sequence of float
        By which every dimension but the one that is moved, and counts of replicas, is multiplied.
    """

    partitions: Sequence[int]
    factors: Sequence[float]

    def happen(self, world: World) -> Sequence[Event]:
        """Multiply.

        Parameters
        ----------
        world : World
            It is changed.

        Returns
        -------
        sequence of Event
            Nothing.
        """
        flows = [
            d
            for d, name in enumerate(world.cluster.dimensions)
            if d != world.disk and name != "replicas"
        ]
        factor = np.asarray(self.factors, np.float64)[:, None]
        for load in (world.leader_load, world.voter_load, world.non_voter_load):
            load[np.ix_(self.partitions, flows)] *= factor
        world.growth[self.partitions] *= factor[:, 0]
        world.refresh()
        world.version += 1
        return ()


@dataclass(frozen=True, kw_only=True)
class Split(Event):
    """A partition is split in two.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    partition : int
        The partition; the new one gets the next number.
    share : float
        Part of load and size that the new one takes.
    """

    partition: int
    share: float = 0.5

    def happen(self, world: World) -> Sequence[Event]:
        """Split it.

        Parameters
        ----------
        world : World
            It is changed.

        Returns
        -------
        sequence of Event
            Nothing.
        """
        world.split(self.partition, self.share)
        world.version += 1
        return ()


@dataclass(frozen=True, kw_only=True)
class SplitBusy(Event):
    """Again and again, whatever carries or holds too much is split in the middle.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    every : float
        Seconds until the next look.
    rate : float
        Most requests per second at the leader, in the dimension ``qps``.
    size : float
        Most bytes of a replica.

    References
    ----------
    CockroachDB, load-based splitting (2,500 requests per second) and range size (512 MiB).
    """

    every: float = 10.0
    rate: float = np.inf
    size: float = np.inf

    def happen(self, world: World) -> Sequence[Event]:
        """Split what is too busy or too large.

        Parameters
        ----------
        world : World
            It is changed.

        Returns
        -------
        sequence of Event
            The next look.
        """
        names = world.cluster.dimensions
        busy = np.zeros(len(world), bool)
        if "qps" in names:
            busy |= world.leader_load[:, names.index("qps")] > self.rate
        if world.disk >= 0:
            busy |= world.leader_load[:, world.disk] > self.size
        for partition in np.flatnonzero(busy).tolist():
            Split(partition=partition).happen(world)
        return [replace(self, at=self.at + self.every)]


def rolling_restart(
    nodes: Sequence[int], *, away: float, apart: float, start: float = 0.0
) -> list[Event]:
    """Return the events of a rolling upgrade: one node after another is away for a while.

    Parameters
    ----------
    nodes : sequence of int
        In this order.
    away : float
        Seconds for which each is away.
    apart : float
        Seconds from one node's going to the next one's.
    start : float
        Second at which the first one goes.

    Returns
    -------
    list of Event
        Two for each node.

    Examples
    --------
    >>> [(e.at, type(e).__name__) for e in rolling_restart([4, 2], away=60.0, apart=90.0)]
    [(0.0, 'NodesDown'), (60.0, 'NodesBack'), (90.0, 'NodesDown'), (150.0, 'NodesBack')]
    """
    events: list[Event] = []
    for i, node in enumerate(nodes):
        goes = start + i * apart
        events.append(NodesDown(at=goes, nodes=[node]))
        events.append(NodesBack(at=goes + away, nodes=[node]))
    return events
