"""Events by name: those that a simulation can apply to a cluster, and random ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.selection import find_nodes, find_partitions
from evenkeel.model.topology import NODE_TIER
from evenkeel.simulate.engine.world import World
from evenkeel.simulate.events.event import Event, above_zero, at_least, several
from evenkeel.simulate.events.loads import (
    COUNTED,
    HotSpot,
    LoadBecomes,
    LoadDrift,
    check_whole,
    multiply,
)
from evenkeel.simulate.events.nodes import (
    DEAD_AFTER,
    NodesAdded,
    NodesBack,
    NodesBecome,
    NodesDown,
    NodesDrained,
    NodesGone,
    NodesTurn,
    Overloaded,
)

__all__ = [
    "DomainLost",
    "Event",
    "Growth",
    "HotSpot",
    "LoadBecomes",
    "LoadDrift",
    "NodesAdded",
    "NodesBack",
    "NodesBecome",
    "NodesDown",
    "NodesDrained",
    "NodesGone",
    "NodesTurn",
    "Overloaded",
    "Rewrite",
    "RollingUpgrade",
    "Split",
    "SplitBusy",
]


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

    def happen(self, world: World) -> Sequence[Event]:
        """Do nothing: it is bound to what happens to its nodes."""
        return self.bound(FaultList(), "event", world.cluster)

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

    def happen(self, world: World) -> Sequence[Event]:
        """Do nothing: it is bound to what happens to its nodes."""
        return self.bound(FaultList(), "event", world.cluster)

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
