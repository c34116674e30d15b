"""Compute node loads under a placement, and the totals that all partitions request."""

import numpy as np

from evenkeel.measure.rows import at_node
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.intake.stranded import unchanged
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import Flags, Ints, Ints64, Reals, read_only
from evenkeel.model.runtime.memoize import memoize


def node_loads(cluster: Cluster, placement: Placement) -> Reals:
    """Return the load that each node carries, by the roles of its replicas, (N, D) float64."""
    return PlacementCounts.of(cluster, placement).loads


def replica_counts(cluster: Cluster, placement: Placement) -> Ints64:
    """Return how many replicas stand on each node, (N,) int64."""
    return PlacementCounts.of(cluster, placement).replicas


def leader_counts(cluster: Cluster, placement: Placement) -> Ints64:
    """Return how many partitions each node leads, (N,) int64."""
    return PlacementCounts.of(cluster, placement).leaders


def utilisation(loads: Reals, capacity: Reals) -> Reals:
    """Divide loads by capacities: nothing on nothing is 0, something on nothing is infinite."""
    empty = np.where(loads > 0.0, np.inf, 0.0)
    with np.errstate(over="ignore"):
        return np.divide(loads, capacity, out=empty, where=capacity > 0.0)


def weighted_sum(count: Ints, load: Reals) -> Reals:
    """Add up rows, each so many times, in an order that no number of threads can change."""
    times = count.astype(np.float64)
    return np.array([np.einsum("n,n->", times, load[:, d]) for d in range(load.shape[1])])


def usable(cluster: Cluster) -> Flags:
    """Return the nodes that may hold replicas afterwards: those that keep or receive some."""
    return cluster.nodes.may_hold | cluster.nodes.may_receive


def keepers(cluster: Cluster) -> Flags:
    """Return the nodes that keep what they hold and accept nothing, (N,)."""
    return cluster.nodes.may_hold & ~cluster.nodes.may_receive


def absent_keepers(cluster: Cluster) -> Flags:
    """Return nodes that keep replicas without being alive, which no level is asked of; (N,)."""
    return cluster.nodes.may_hold & ~cluster.nodes.alive


def has_leaders(cluster: Cluster) -> bool:
    """Return whether the cluster has leaders: some partition names a leading slot."""
    placement = cluster.placement
    return memoize(placement, "has leaders", lambda: bool((placement.leader >= 0).any()))


def wanted_replicas(cluster: Cluster) -> int:
    """Return how many replicas are wanted in all."""
    parts = cluster.partitions
    return memoize(parts, "wanted replicas", lambda: int(parts.replicas.sum()))


def wanted_leaders(cluster: Cluster) -> int:
    """Return how many partitions want a leader."""
    return int(np.count_nonzero(to_be_led(cluster))) if has_leaders(cluster) else 0


def to_be_led(cluster: Cluster) -> Flags:
    """Return which partitions want a leader, (P,) bool."""
    # those that stay as they are without a live one get none
    placement, nodes = cluster.placement, cluster.nodes

    def find() -> Flags:
        wanted = cluster.partitions.replicas > 0
        stays = unchanged(placement)
        if stays.any():
            wanted &= ~stays | at_node(nodes.serves, placement.leader_node)
        return read_only(wanted)

    return memoize(cluster.partitions, "to be led", find, placement, nodes)


def wanted_load(cluster: Cluster) -> Reals:
    """Return the load of everything wanted: a leader each, the other voters, the rest."""
    # partitions that stay as they are get no replicas: what these lack on live nodes is left out
    parts, led, placement = cluster.partitions, has_leaders(cluster), cluster.placement
    stays = unchanged(placement)

    def add_up() -> Reals:
        count = parts.replicas
        if stays.any():
            live = placement.owner[at_node(cluster.nodes.serves, placement.node)]
            held = np.bincount(live, minlength=len(parts))
            count = np.where(stays, np.minimum(held, count), count)
        leaders = (to_be_led(cluster) & led).astype(np.int64)
        voters = np.maximum(np.minimum(parts.voters, count) - leaders, 0)
        others = count - leaders - voters
        load = parts.load
        total = np.zeros(load.voter.shape[1])
        for number, each in (
            (leaders, load.leader), (voters, load.voter), (others, load.non_voter)
        ):  # fmt: skip
            if number.any():
                total += weighted_sum(number, each)
        return read_only(total)

    if stays.any():
        return memoize(parts, "wanted load of some", add_up, placement, cluster.nodes)
    return memoize(parts, "wanted load", add_up, led)
