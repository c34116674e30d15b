"""Events of whole domains: one is lost, or all are upgraded in turn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.selection import find_nodes
from evenkeel.model.topology import NODE_TIER
from evenkeel.simulate.engine.world import World
from evenkeel.simulate.events.event import Event, above_zero, at_least, several
from evenkeel.simulate.events.nodes import DEAD_AFTER, NodesBack, NodesDown


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

    def _said(self, world: World) -> str:
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

    def _said(self, world: World) -> str:
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
