"""Predict which replicas a system would elect as leaders.

A search passes leads to these only. A replica that lags behind others leads where it moves to, as
its copy is new there, but not where it came from. Where only the system elects, or a partition is
left alone, its leader stays.
"""

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.intake.stranded import marked, unchanged
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import Flags, Ints32, Roles
from evenkeel.model.runtime.memoize import memoize

# where a replica may lead: nowhere, only away from where it came from, or on any node that may
NOWHERE, MOVED, ANYWHERE = 0, 1, 2


def blocking(cluster: Cluster) -> Flags:
    """Return which replicas are on dead nodes that their system takes in no list, (K,) bool."""
    placement, serves = cluster.placement, cluster.nodes.serves
    if serves.all() or not placement.flags.any():
        return np.zeros(len(placement.node), np.bool_)
    held = marked(placement, Flag.BLOCKS)[placement.owner] & (placement.node >= 0)
    return np.asarray(held & ~np.append(serves, True)[placement.node])


def kept_lists(cluster: Cluster) -> Flags:
    """Return which partitions keep their lists, as a blocking replica is pinned, (P,) bool."""
    placement = cluster.placement
    held = placement.owner[blocking(cluster) & ((placement.flags & Flag.PINNED) != 0)]
    return np.asarray(np.bincount(held, minlength=len(placement)) > 0)


def led_from(cluster: Cluster) -> Ints32:
    """Node that led each partition where it lives, else -1; (P,)."""
    led = cluster.placement.leader_node
    lives = np.append(cluster.nodes.alive, False).take(led)
    return np.where(lives, led, -1).astype(np.int32)


def leads_on(cluster: Cluster) -> Flags:
    """Return whether the leader of each partition leads it until another can, (P,) bool."""
    # not where it is lost, nor where its node keeps its replicas, but may no longer lead
    nodes, was = cluster.nodes, led_from(cluster)
    return np.asarray((was >= 0) & np.append(nodes.may_lead | ~nodes.may_receive, False)[was])


def ready(cluster: Cluster) -> Flags:
    """Return whether each replica could lead at once where it came from, (K,)."""
    # it lives; and where some live replicas are reported in sync, it is one of these
    placement = cluster.placement
    lives = np.append(cluster.nodes.alive, False).take(placement.node)
    if not placement.flags.any():
        return lives
    synced = lives & ((placement.flags & Flag.CAUGHT_UP) != 0)
    if not synced.any():
        return lives
    reported = np.zeros(len(placement), bool)
    reported[placement.owner[synced]] = True
    found: Flags = np.where(reported[placement.owner], synced, lives)
    return found


def electable(cluster: Cluster) -> Roles:
    """Return where each replica may lead, (K,): nowhere, only where it moves to, or anywhere.

    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[9.0]] * 3, load=[[1.0]], placement=[[0, 1, 2]],
    ...     flags=[[Flag.CAUGHT_UP, 0, Flag.CAUGHT_UP]])
    >>> electable(c).tolist() == [ANYWHERE, MOVED, ANYWHERE]
    True
    """
    # shape (0,) where all may lead anywhere; a leader may always lead on
    placement = cluster.placement
    if not placement.flags.any():
        return np.zeros(0, np.uint8)
    return memoize(placement, "electable", lambda: _electable(cluster), cluster.nodes)


def _electable(cluster: Cluster) -> Roles:
    before, partitions = cluster.placement, len(cluster.partitions)
    owner, voters = before.owner, before.role == Role.VOTER
    lives = np.append(cluster.nodes.serves, False)[before.node]
    leads = np.zeros(len(owner), np.bool_)
    leads[before.leader_replica[before.leader >= 0]] = True

    def some(which: Flags) -> Flags:
        return (np.bincount(owner[which], minlength=partitions) > 0)[owner]

    synced, led = (before.flags & Flag.CAUGHT_UP) != 0, some(leads & lives)
    lags = ~synced & some(synced) & (before.node >= 0) & (led | some(synced & voters & lives))
    listed = kept_lists(cluster)[owner]
    keeps = led & (marked(before, Flag.ELECTED)[owner] | listed)
    keeps &= ~listed | ((before.flags & Flag.PREFERRED) == 0)
    keeps |= unchanged(before)[owner]
    found = np.where(keeps, NOWHERE, np.where(lags, MOVED, ANYWHERE)).astype(np.uint8)
    found[leads] = ANYWHERE
    return found if (found != ANYWHERE).any() else found[:0]


def led_alone(cluster: Cluster, nodes: Flags) -> Flags:
    """Return which partitions are led on some nodes (N,), and only there as they are now, (P,)."""
    # To lead nothing is no reason to move data: where no other replica can lead where it is, these
    # stay, unless their node gives its replicas away, or one on a dead node is replaced, by which
    # they may be led.
    held = cluster.placement
    nodes = nodes & cluster.nodes.may_hold
    others = np.append(cluster.nodes.may_lead & ~nodes, False)[held.node]
    if len(where := electable(cluster)):
        others &= where == ANYWHERE
    others |= np.append(~cluster.nodes.alive, False)[held.node]
    led = np.append(nodes, False)[held.leader_node]
    led &= np.bincount(held.owner[others], minlength=len(held)) == 0
    return np.asarray(led)


def would_lead(cluster: Cluster, node: Ints32) -> Flags:
    """Return whether each replica would be elected on ``node (K,)``."""
    # a replica that comes to where another one lags changes nothing there: that one stays
    found, where = np.ones(len(node), np.bool_), electable(cluster)
    if not len(where):
        return found
    before = cluster.placement
    differs = np.bincount(before.owner[where != ANYWHERE], minlength=len(before)) > 0
    k = np.flatnonzero(differs[before.owner])
    p, at = before.owner[k], node[k]
    row = p.astype(np.int64) * (len(cluster.nodes) + 1)
    barred = (row + before.node[k])[(where[k] != ANYWHERE) & (before.node[k] >= 0)]
    led = (before.leader_node[p] >= 0) & (at == before.leader_node[p])
    found[k] = (where[k] != NOWHERE) & (~np.isin(row + at, barred) | led)
    return found


def led_from_behind(cluster: Cluster, placement: Placement) -> Flags:
    """Return which partitions are led by a replica that would not be elected, (P,) bool."""
    elected = np.append(would_lead(cluster, placement.node), True)
    return np.asarray((placement.leader >= 0) & ~elected[placement.leader_replica])
