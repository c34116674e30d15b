"""Copies: from where each replica is copied, how long it takes, and what it holds of a throttle."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.planning.changes.actions import Act, Acts
from evenkeel.planning.changes.transition_table import Ends
from evenkeel.planning.resources.table import Resources
from evenkeel.planning.throttle import Throttle

SLACK = 1.0 + 1e-9
"""Room for the rounding of rates that add up to a bandwidth."""


@dataclass(frozen=True, eq=False)
class Copies:
    """Of M acts: where each copies from, how much, how long, and when after its change began.

    Parameters
    ----------
    moves : ndarray of bool, shape (M,)
        Whether it copies at all.
    source : ndarray of int32, shape (M,)
        Node that is copied from; -1 for none.
    size : ndarray of float64, shape (M,)
        Bytes; 0 without a dimension of bytes.
    seconds : ndarray of float64, shape (M,)
        How long the copy takes.
    """

    moves: NDArray[np.bool_]
    source: NDArray[np.int32]
    size: NDArray[np.float64]
    seconds: NDArray[np.float64]

    @classmethod
    def of(cls, cluster: Cluster, ends: Ends, acts: Acts, throttle: Throttle) -> "Copies":
        """Choose sources, the replica itself where it lives, and durations."""
        moves = (acts.act == Act.MOVE) | (acts.act == Act.ADD)
        source = np.where(moves, _sources(cluster, ends, acts), np.int32(-1))
        size = np.zeros(len(acts))
        if cluster.bytes_dimension >= 0:
            load, p, d = cluster.partitions.load, acts.partition, cluster.bytes_dimension
            size = np.where(acts.votes, load.voter[p, d], load.non_voter[p, d]) * moves * acts.left
        seconds = moves * acts.left
        if throttle.paces:
            seconds = size / rates_of(cluster, throttle, source, acts.target)
        return cls(moves, source.astype(np.int32), size, seconds)

    def durations(self, acts: Acts, changes: int) -> NDArray[np.float64]:
        """Return how long every change takes, (C,)."""
        longest = np.zeros(changes)
        np.maximum.at(longest, acts.change, self.seconds)
        return longest


def rates_of(
    cluster: Cluster, throttle: Throttle, source: NDArray[np.integer], target: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the bytes per second of each copy: all that its nodes and its way have.

    One copy after another at the full rate moves as many bytes as several that share it, and what
    waits for the first of them goes on sooner.
    """
    widths = (throttle.node_bandwidth, throttle.cluster_bandwidth)
    rate = np.full(len(source), min((one for one in widths if one is not None), default=np.inf))
    for by_tier in (throttle.domain_bandwidth, throttle.link_bandwidth):
        for tier, width in by_tier.items():
            rate[crosses(cluster, tier, source, target)] = np.minimum(
                rate[crosses(cluster, tier, source, target)], width
            )
    return rate


def crosses(
    cluster: Cluster, tier: str, source: NDArray[np.integer], target: NDArray[np.integer]
) -> NDArray[np.bool_]:
    """Whether copies go from one domain of a tier to another."""
    domain = _domains(cluster, tier)
    return np.asarray(domain[source] != domain[target])


def _domains(cluster: Cluster, tier: str) -> NDArray[np.int32]:
    """Return the domain of each node, and -1 for none at the end."""
    return np.append(cluster.topology.domain_with_nodes[cluster.topology.tier_index(tier)], -1)


def charge_throttle(
    resources: Resources, cluster: Cluster, throttle: Throttle, acts: Acts, copies: Copies
) -> None:
    """Add to ``resources`` what a throttle allows, and what each copy holds of it."""
    rows = np.flatnonzero(copies.moves)
    change, to, origin = acts.change[rows], acts.target[rows], copies.source[rows]
    nodes = len(cluster.nodes)
    one = np.ones(len(rows))
    rate = np.zeros(len(rows))
    if throttle.paces:
        rate = rates_of(cluster, throttle, origin, to)
        # what no limit binds takes no time
        rate[~np.isfinite(rate)] = 0.0

    def hold(
        name: str, most: float | None, count: int, where: NDArray[np.integer],
        amount: NDArray[np.float64],
    ) -> None:  # fmt: skip
        if most is not None:
            base = resources.add(name, np.full(count, float(most)))
            some = where >= 0
            resources.borrow(base + where[some], change[some], amount[some])

    slack = None if throttle.node_bandwidth is None else throttle.node_bandwidth * SLACK
    for end, where, counts, by_tier in (
        ("in", to, throttle.node_in, throttle.domain_in),
        ("out", origin, throttle.node_out, throttle.domain_out),
    ):
        # at its full rate a copy has a node for itself
        alone = slack is not None and 2.0 * float(rate.min(initial=np.inf)) > slack
        hold(f"node_{end}", None if alone else counts, nodes, where, one)
        hold(f"bandwidth_{end}", slack, nodes, where, rate)
        for tier, most in by_tier.items():
            domain = _domains(cluster, tier)
            away = np.where(crosses(cluster, tier, origin, to), domain[where], -1)
            hold(f"{tier}_{end}", most, int(domain.max(initial=-1)) + 1, away, one)
    hold("copies", throttle.copies, 1, np.zeros(len(rows), np.int64), one)


def _sources(cluster: Cluster, ends: Ends, acts: Acts) -> NDArray[np.int32]:
    """Return the node that each act copies from: its own where it lives, else that of another.

    Others that stay are asked before those that go; which of them turns with the partition.
    """
    live = np.append(cluster.nodes.serves, False)
    own = np.where(live[acts.source], acts.source, np.int32(-1))
    lost = np.flatnonzero((own < 0) & ((acts.act == Act.MOVE) | (acts.act == Act.ADD)))
    if len(lost) == 0:
        return own
    row = np.searchsorted(ends.partition, acts.partition[lost])
    slots = ends.before.shape[1]
    here = ends.before[row]
    worth = np.where(live[here], np.where(here == ends.after[row], 2, 1), 0)
    turned = (np.arange(slots) - acts.partition[lost][:, None]) % max(slots, 1)
    best = np.argmax(worth * slots - turned, axis=1)
    lines = np.arange(len(lost))
    # by then it may have moved itself, and be on a node that it only goes by
    moving = np.flatnonzero(acts.act == Act.MOVE)
    key = np.sort(acts.replica[moving].astype(np.int64) * (len(acts) + 1) + moving)
    chosen = ends.replica[row, best]
    begins = np.searchsorted(acts.change, acts.change[lost])
    at = np.searchsorted(key, chosen * (len(acts) + 1) + begins) - 1
    replica, act = np.divmod(np.append(key, -1)[at], len(acts) + 1)
    there = np.where(
        replica == chosen, acts.target[np.minimum(act, len(acts) - 1)], here[lines, best]
    )
    own[lost] = np.where(worth[lines, best] > 0, there, -1)
    # where nobody lives, the first that comes is new, and the others are copied from it
    new = lost[own[lost] < 0]
    began = np.flatnonzero(np.diff(acts.partition[new], prepend=-1))
    head = new[np.repeat(began, np.diff(np.append(began, len(new))))]
    own[new] = np.where(head < new, acts.target[head], -1)
    return own
