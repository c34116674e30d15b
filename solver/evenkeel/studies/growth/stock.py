"""Stock: the nodes there are, in kinds that can stand for each other, and what leaves with each."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.loads import node_loads
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Flag
from evenkeel.model.reading.arrays import MOST_IN_ALL
from evenkeel.model.reading.containers import entries_of
from evenkeel.model.reading.quantities import check_number
from evenkeel.model.reading.selection import find_nodes
from evenkeel.model.rules import mask_of, parse_expression
from evenkeel.studies.growth.node_types import own_tiers

FINE = 1 << 30
"""What all data of a cluster are scaled to, so that those of a node can be a whole number."""

LISTED = 3
"""Partitions that are named where their pins keep a node."""


class Leaving(NamedTuple):
    """A node that may go.

    Parameters
    ----------
    node, place : str
        Its name, and its domain of the widest tier; empty where there are no tiers.
    price : float
        What it saves.
    replicas : int
        Those on it, each of which takes a move.

    Examples
    --------
    >>> Leaving("n3", "zone a", price=1.0, replicas=40).node
    'n3'
    """

    node: str
    place: str
    price: float
    replicas: int


class Stock(NamedTuple):
    """Nodes in kinds that can stand for each other, each by itself at first. J kinds, N nodes."""

    cluster: Cluster  # whose nodes they are
    members: list[NDArray[np.intp]]  # of each kind the nodes, the one with which least leaves first
    # price, replicas, leaves: (N,) of each node; what leaves with it, in the unit of the budget
    price: NDArray[np.float64]
    replicas: NDArray[np.int64]
    leaves: NDArray[np.int64]
    budget: float  # how much may leave in all
    stays: NDArray[np.intp]  # nodes that hold replicas and cannot go
    must_stay: tuple[tuple[str, str], ...]  # the same by name, and why

    @property
    def like(self) -> NDArray[np.intp]:
        """A node of each kind."""
        return np.array([one[0] for one in self.members], np.intp)

    @property
    def limit(self) -> NDArray[np.int64]:
        """Nodes of each kind."""
        return np.array([len(one) for one in self.members], np.int64)

    @property
    def prices(self) -> list[float]:
        """Price of a node of each kind."""
        return [float(self.price[one[0]]) for one in self.members]

    @property
    def base(self) -> float:
        """Price of all that cannot go."""
        return float(self.price[self.stays].sum())

    def merged(self, holds: NDArray[np.float64]) -> tuple["Stock", NDArray[np.intp]]:
        """Return the nodes in kinds that hold alike, ``holds`` (M, J), and the first of each."""
        alike = np.column_stack([_alike(self.cluster, self.price)[self.like], holds.T])
        kinds: dict[bytes, list[int]] = {}
        for at in range(len(self.members)):
            kinds.setdefault(alike[at].tobytes(), []).append(at)
        members = [self.like[each] for each in kinds.values()]
        members = [one[np.argsort(self.leaves[one], kind="stable")] for one in members]
        return self._replace(members=members), np.array([one[0] for one in kinds.values()], np.intp)

    def leaving(self, count: NDArray[np.int64]) -> list[int]:
        """Return the nodes that go where so many of each kind stay."""
        each = zip(self.members, count.tolist(), strict=True)
        return [node for members, n in each for node in members[: len(members) - n].tolist()]

    def order(self, count: NDArray[np.int64]) -> tuple[Leaving, ...]:
        """Return the nodes that go, what saves most per move first."""
        topology, names = self.cluster.topology, self.cluster.nodes.names
        price, replicas = self.price.tolist(), self.replicas.tolist()
        saved = [p and (p / n if n else np.inf) for p, n in zip(price, replicas, strict=True)]
        goes = sorted(self.leaving(count), key=lambda n: (-saved[n], n))

        def place(node: int) -> str:
            domain = topology.domain[0][node] if topology.tiers else -1
            return f"{topology.tiers[0]} {topology.domain_name(0, domain)}" if domain >= 0 else ""

        return tuple(
            Leaving(names[n], place(n), float(self.price[n]), int(self.replicas[n])) for n in goes
        )

    def moves_at_least(self, leaving: tuple[Leaving, ...]) -> int:
        """Return how many replicas stand at least on any nodes that are worth as much."""
        asked = sum(one.price for one in leaving)
        nodes = np.concatenate([np.zeros(0, np.intp), *self.members])
        nodes = nodes[self.price[nodes] > 0.0]
        price, held = self.price[nodes], self.replicas[nodes]
        with np.errstate(over="ignore"):
            first = np.argsort(held / price, kind="stable")
        before = np.concatenate([[0.0], np.cumsum(price[first])])
        share = np.clip(asked - before[:-1], 0.0, price[first]) / price[first]
        return int(np.ceil(float(share @ held[first]) * (1.0 - 1e-12)))


def read_stock(
    faults: FaultList, cluster: Cluster, prices: Mapping[str, float] | None, limits: Limits | None
) -> Stock:
    """Sort the nodes that may go into kinds; read their prices, and name those that stay."""
    nodes, placement = cluster.nodes, cluster.placement
    price = np.ones(len(nodes))
    for which, one in entries_of(faults, "prices", {} if prices is None else prices).items():
        check_number(faults, f"prices[{which!r}]", one, greatest=MOST_IN_ALL)
        chosen = find_nodes(faults, "prices", nodes, cluster.topology, [which])
        if not faults.about("prices"):
            price[chosen] = one
    here = placement.node >= 0
    replicas = np.bincount(placement.node[here], minlength=len(nodes)).astype(np.int64)
    leaves, budget = replicas, np.inf
    moved = cluster.bytes_dimension
    if limits is not None and limits.moves is not None:
        budget = limits.moves
    elif limits is not None and limits.bytes is not None and moved >= 0:
        held = node_loads(cluster, placement)[:, moved]
        scale = FINE / max(float(held.sum()), 1.0)
        leaves, budget = np.floor(held * scale).astype(np.int64), limits.bytes * scale
    reasons: dict[int, str] = {}
    pinned = here & (placement.flags & Flag.PINNED > 0)
    for node in np.unique(placement.node[pinned & nodes.may_receive[placement.node]]).tolist():
        held = np.unique(placement.owner[pinned & (placement.node == node)])
        named = ", ".join(cluster.partitions.names[p] for p in held[:LISTED].tolist())
        more = f" and {len(held) - LISTED:,} more" if len(held) > LISTED else ""
        reasons[node] = f"replicas of {named}{more} are pinned to it"
    closed = nodes.may_hold & ~nodes.may_receive
    for node in np.flatnonzero(closed & (replicas > 0)).tolist():
        cordoned = "it accepts nothing but keeps its replicas; drain it by name"
        reasons[node] = cordoned if nodes.alive[node] else "it is down and may come back"
    free = nodes.may_receive.copy()
    free[[*reasons]] = False
    must_stay = tuple((nodes.names[n], reasons[n]) for n in sorted(reasons))
    stays = np.array(sorted(reasons), np.intp)
    members = [np.array([n], np.intp) for n in np.flatnonzero(free).tolist()]
    return Stock(cluster, members, price, replicas, leaves, budget, stays, must_stay)


def _alike(cluster: Cluster, price: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what nodes have to share to stand for each other, beside needs; a row for each."""
    nodes, topology, none = cluster.nodes, cluster.topology, FaultList()
    own = own_tiers(cluster)
    forbidden = np.zeros(len(nodes))
    at = np.unique(cluster.forbidden[:, 1])
    forbidden[at] = 1.0 + at
    texts = {term.text for rule in cluster.rules for term in rule.terms()}
    texts.update(*(rule.lead for rule in cluster.rules))
    return np.ascontiguousarray(np.column_stack([
        nodes.capacity, price, nodes.weight, nodes.lead_weight, nodes.leads, nodes.max_replicas,
        nodes.stands_for, forbidden,
        *(
            label for tier, label in zip(topology.tiers, topology.domain, strict=True)
            if tier not in own
        ),
        *(mask_of(parse_expression(none, "", text), nodes, topology, none, "")
            for text in sorted(texts)),
    ]).astype(np.float64))  # fmt: skip
