"""Find the replicas that may stay, and upper bounds on the replicas that nodes may hold."""

from typing import NamedTuple

import numpy as np

from evenkeel.measure.binding import NONE, Scope, partition_scope
from evenkeel.measure.loads import absent_keepers, has_leaders, keepers
from evenkeel.measure.rows import pinned, replicas_of, stands
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.reading.arrays import ROUNDING, Flags, Ints, Ints64, Reals, Rows
from evenkeel.model.runtime.memoize import memoize

SHARES = 2  # a node with capacity for so many times the even share is not full


def staying(placed: PlacementCounts, scope: Scope) -> Rows:
    """Return node plus one of each replica that rules let stay there, 0 for others; (K,)."""
    forbidden = placed.cluster.forbidden
    if scope.open.all() and not len(forbidden):
        return placed.node_row
    return memoize(placed, "staying", lambda: _staying(placed, scope), scope, forbidden)


def _staying(placed: PlacementCounts, scope: Scope) -> Rows:
    """Find the same."""
    node_row = placed.node_row.copy()
    if not scope.open.all():
        is_open = np.insert(scope.open, 0, False, axis=1)
        rule = scope.rule[placed.partition(np.arange(len(node_row)))]
        node_row[~is_open[rule, node_row]] = 0
    placement = placed.placement
    partition, node = placed.cluster.forbidden.T
    hit = stands(placement, partition, node)
    replicas, which = replicas_of(placement, partition[hit])
    banned = replicas[placement.node[replicas] == node[hit][which]]
    node_row[placed.places(banned)] = 0
    return node_row


def piling(placed: PlacementCounts, scope: Scope) -> Flags:
    """Return the partitions of which a node may hold two replicas."""
    topology = placed.cluster.topology
    may_pile = np.ones(len(placed.placement), bool)
    for binding in scope.spreads:
        if topology.domain_with_nodes[topology.tier_index(binding.tier)].min(initial=0) >= 0:
            may_pile &= (binding.amount == NONE) | (binding.amount > 1)
    return may_pile


def most_away(placed: PlacementCounts, stays: Flags) -> Ints64:
    """Return how many replicas each partition can keep if all that stay are on dead nodes, (P,)."""
    cluster = placed.cluster
    wanted = cluster.partitions.replicas.astype(np.int64)
    if not has_leaders(cluster) or not absent_keepers(cluster).any():
        return wanted
    alive = placed.tallied(stays & np.append(False, cluster.nodes.alive).take(placed.node_row))
    # one is elsewhere then, to lead
    return np.where(alive == 0, np.maximum(wanted - 1, 0), wanted)


def most_by_number(placed: PlacementCounts) -> Reals:
    """Return the load that nodes may hold by their number of replicas, (N, D); inf for any."""
    most = placed.cluster.nodes.max_replicas[:, None]
    if (most < 0).all():
        return np.full(placed.cluster.nodes.capacity.shape, np.inf)
    return np.where(most >= 0, most * placed.heaviest.max(0, initial=0.0), np.inf)


def most_held(
    cluster: Cluster, part: Ints, parts: int, room: Reals, weight: Reals, *, each: bool = False
) -> Ints64:
    """Return how many replicas of some parts of the partitions each node may hold, (U, N)."""
    # ``part (P,)`` is that of each partition, and ``each`` counts one replica of a partition only.
    # A node that receives replicas may hold those that rules, closed pairs and its number of
    # replicas allow, any other one those that it has and keeps; both as many as fit into its
    # ``room (N, D)`` beside what is pinned. Room for far more than the even share by
    # ``weight (N,)`` is no limit.
    placed, scope, nodes = (
        PlacementCounts.of(cluster, cluster.placement), partition_scope(cluster), cluster.nodes
    )  # fmt: skip
    copies = np.minimum(cluster.partitions.replicas, 1)
    wanted = copies if each else cluster.partitions.replicas
    if not each:
        copies = np.where(piling(placed, scope), wanted, copies)
    key = part.astype(np.int64) * len(scope.open) + scope.rule
    of_class = np.bincount(key, copies, parts * len(scope.open)).reshape(parts, -1)
    takes = scope.open & nodes.may_receive
    most = (of_class.astype(np.float64) @ takes.astype(np.float64)).astype(np.int64)
    partition, node = cluster.forbidden.T
    owner, home = pinned(cluster.placement)
    size = len(nodes)
    stands = np.isin(partition.astype(np.int64) * size + node, owner.astype(np.int64) * size + home)
    shut = takes[scope.rule[partition], node] & ~stands  # what is pinned stays where it is
    np.subtract.at(most, (part[partition[shut]], node[shut]), copies[partition[shut]])
    keeps = keepers(cluster)
    if keeps.any():
        stays = staying(placed, scope)
        at = np.flatnonzero(np.append(False, keeps)[stays])
        np.add.at(most, (part[placed.partition(at)], stays[at] - 1), 1)
    limited = nodes.may_receive & (nodes.max_replicas >= 0)
    most[:, limited] = np.minimum(most[:, limited], nodes.max_replicas[limited])
    wanted = np.bincount(part, wanted, parts)
    items = _Items.of(placed, scope, part, copies, parts)
    return _most_fitting(placed, part, items, wanted, most, room, weight)


class _Items(NamedTuple):
    """Replicas that nodes may hold, each by its partition; nodes of a kind may hold the same."""

    kind: Ints64  # (N,) kind of each node
    key: Ints  # (I,) kind and part that each replica is of
    owner: Rows  # (I,) partition of each

    @classmethod
    def of(
        cls, placed: PlacementCounts, scope: Scope, part: Ints, copies: Ints, parts: int
    ) -> "_Items":
        """Return those of the parts of a cluster, each of so many ``copies (P,)``."""
        cluster = placed.cluster
        owners, keys = list[Rows](), list[Ints]()
        kinds, kind = np.ones((len(scope.open), 1), bool), np.zeros(len(cluster.nodes), np.int64)
        if not scope.open.all():
            kinds, which = np.unique(scope.open, axis=1, return_inverse=True)
            kind = which.reshape(-1).astype(np.int64)
        for k, is_open in enumerate(kinds.T):
            owners.append(np.repeat(np.arange(len(part)), copies * is_open[scope.rule]))
            keys.append(k * parts + part[owners[-1]])
        keeps = np.flatnonzero(keepers(cluster))
        if len(keeps):  # may hold what they have, each its own
            kind[keeps] = len(owners) + np.arange(len(keeps))
            stays = staying(placed, scope)
            at = np.flatnonzero(np.append(False, keepers(cluster))[stays])
            owners.append(placed.partition(at))
            keys.append(kind[stays[at] - 1] * parts + part[owners[-1]])
        return cls(kind, np.concatenate(keys), np.concatenate(owners))


def _most_fitting(
    placed: PlacementCounts, part: Ints, items: _Items, wanted: Ints, most: Ints64, room: Reals,
    weight: Reals,
) -> Ints64:  # fmt: skip
    """Return the most that also fit into a room beside what is pinned, (U, N)."""
    cluster = placed.cluster
    nodes, lightest = cluster.nodes, placed.lightest
    owner, home = pinned(cluster.placement)
    key = items.kind * len(most) + np.arange(len(most))[:, None]
    keys = (int(items.kind.max(initial=0)) + 1) * len(most)
    count = np.bincount(items.key, minlength=keys)
    tried = most.copy()
    share = np.outer(even_share(most, wanted, weight), weight)
    shares = np.minimum(SHARES * share + 1.0, count[key])
    for d in range(lightest.shape[1]):
        free = room[:, d] - np.bincount(home, lightest[owner, d], len(nodes))
        item = lightest[items.owner, d]
        load = np.bincount(items.key, item, keys)
        mean = load / np.maximum(count, 1.0)  # as many of the lightest as make a share weigh less
        u, n = np.nonzero((free < mean[key] * shares) & (most > 0))
        if not len(u):
            continue
        order = np.lexsort((item, items.key))
        first = np.searchsorted(items.key[order], np.arange(keys + 1))
        total = np.append(0.0, np.cumsum(item[order]))
        upto = total[first[key[u, n]]] + np.maximum(free[n], 0.0) * (1.0 + ROUNDING)
        fits = np.searchsorted(total, upto + ROUNDING * ROUNDING * total[-1], "right") - 1
        stays = np.bincount(part[owner] * len(nodes) + home, minlength=most.size)
        fits = np.minimum(fits, first[key[u, n] + 1]) - first[key[u, n]] + stays[u * len(nodes) + n]
        most[u, n] = np.minimum(most[u, n], fits)
    if (most < tried).any():  # what does not fit is for the others, which may be full then
        return _most_fitting(placed, part, items, wanted, most, room, weight)
    return most


def even_share(most: Ints64, wanted: Ints, weight: Reals) -> Reals:
    """Return the share of each part on a node of weight 1 where it is even, (U,) float64."""
    # No node holds more than its ``most (U, N)``, the others share the rest by ``weight (N,)``.
    # Nodes that may hold any share what has no room.
    on = weight > 0.0
    if (most[:, on] >= wanted[:, None]).all():
        return wanted / (float(weight.sum()) or 1.0)
    weighs = np.where(most > 0, weight, 0.0)
    in_all = weighs.sum(1)
    share: Reals = np.divide(wanted, in_all, out=wanted.astype(np.float64), where=in_all > 0.0)
    full = ((weighs > 0.0) & (most < weighs * share[:, None])).any(1)
    for u in np.flatnonzero(full & (most[:, on].sum(1) >= wanted)).tolist():
        holds = weighs[u] > 0.0
        room, by = most[u, holds], weighs[u, holds]
        order = np.argsort(room / by, kind="stable")
        room, by = room[order], by[order]
        level = (wanted[u] - (np.cumsum(room) - room)) / np.cumsum(by[::-1])[::-1]
        share[u] = level[np.argmax(level * by <= room * (1.0 + ROUNDING))]
    return share
