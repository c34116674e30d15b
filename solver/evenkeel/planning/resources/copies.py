"""Copies: the source and duration of each copy, and its share of the throttle."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.planning.changes.actions import Action, Actions
from evenkeel.planning.changes.transition_table import TransitionTable
from evenkeel.planning.resources.table import Resources
from evenkeel.planning.throttle import Throttle

SLACK = 1.0 + 1e-9
"""Room for the rounding of rates that add up to a bandwidth."""


@dataclass(frozen=True, eq=False)
class Copies:
    """Of M actions: where each copies from, how much, how long, and when after its change began.

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
    def of(
        cls, cluster: Cluster, transitions: TransitionTable, actions: Actions, throttle: Throttle
    ) -> "Copies":
        """Choose sources, the replica itself where it lives, and durations."""
        moves = (actions.action == Action.MOVE) | (actions.action == Action.ADD)
        source = np.where(moves, _sources(cluster, transitions, actions), np.int32(-1))
        size = np.zeros(len(actions))
        if cluster.bytes_dimension >= 0:
            load, p, d = cluster.partitions.load, actions.partition, cluster.bytes_dimension
            size = (
                np.where(actions.votes, load.voter[p, d], load.non_voter[p, d])
                * moves
                * actions.left
            )
        seconds = moves * actions.left
        if throttle.node_bandwidth is not None:
            seconds = size / throttle.node_bandwidth
        return cls(moves, source.astype(np.int32), size, seconds)

    def durations(self, actions: Actions, changes: int) -> NDArray[np.float64]:
        """Return how long every change takes, (C,)."""
        longest = np.zeros(changes)
        np.maximum.at(longest, actions.change, self.seconds)
        return longest


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
    resources: Resources, cluster: Cluster, throttle: Throttle, actions: Actions, copies: Copies
) -> None:
    """Add to ``resources`` what a throttle allows, and what each copy holds of it."""
    rows = np.flatnonzero(copies.moves)
    change, to, origin = actions.change[rows], actions.target[rows], copies.source[rows]
    nodes = len(cluster.nodes)
    one = np.ones(len(rows))
    rate = np.zeros(len(rows))
    if throttle.node_bandwidth is not None and np.isfinite(throttle.node_bandwidth):
        rate[:] = throttle.node_bandwidth

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


def _sources(cluster: Cluster, transitions: TransitionTable, actions: Actions) -> NDArray[np.int32]:
    """Return the node that each act copies from: its own where it lives, else that of another.

    Others that stay are asked before those that go; which of them turns with the partition.
    """
    live = np.append(cluster.nodes.serves, False)
    own = np.where(live[actions.source], actions.source, np.int32(-1))
    lost = np.flatnonzero(
        (own < 0) & ((actions.action == Action.MOVE) | (actions.action == Action.ADD))
    )
    if len(lost) == 0:
        return own
    row = np.searchsorted(transitions.partition, actions.partition[lost])
    slots = transitions.before.shape[1]
    here = transitions.before[row]
    worth = np.where(live[here], np.where(here == transitions.after[row], 2, 1), 0)
    turned = (np.arange(slots) - actions.partition[lost][:, None]) % max(slots, 1)
    best = np.argmax(worth * slots - turned, axis=1)
    lines = np.arange(len(lost))
    # by then it may have moved itself, and be on a node that it only goes by
    moving = np.flatnonzero(actions.action == Action.MOVE)
    key = np.sort(actions.replica[moving].astype(np.int64) * (len(actions) + 1) + moving)
    chosen = transitions.replica[row, best]
    begins = np.searchsorted(actions.change, actions.change[lost])
    at = np.searchsorted(key, chosen * (len(actions) + 1) + begins) - 1
    replica, action = np.divmod(np.append(key, -1)[at], len(actions) + 1)
    there = np.where(
        replica == chosen, actions.target[np.minimum(action, len(actions) - 1)], here[lines, best]
    )
    own[lost] = np.where(worth[lines, best] > 0, there, -1)
    # without a live replica the first that comes is new, and the others are copied from it
    new = lost[own[lost] < 0]
    began = np.flatnonzero(np.diff(actions.partition[new], prepend=-1))
    head = new[np.repeat(began, np.diff(np.append(began, len(new))))]
    own[new] = np.where(head < new, actions.target[head], -1)
    return own
