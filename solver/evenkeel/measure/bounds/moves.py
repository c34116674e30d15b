"""Lower bound on moves: replicas that must move, and the excess that full nodes must lose.

A partition that wants w replicas and keeps k of its nodes is joined by w - k others. So moves are
counted by replicas that cannot be kept: those missing or on forbidden nodes, and on every node that
is too full the fewest replicas whose loss makes room. Leadership is free, so a replica weighs only
what it weighs in its lightest role.

A second bound is on the fullest node if only replicas move that must. Lost and missing replicas
must find room beside everything that stays. One large replica may not find a balanced node, and
then no choice for the others helps.
"""

from dataclasses import dataclass

import numpy as np

from evenkeel.measure.audit import count_by_domain, domain_of, suspects
from evenkeel.measure.binding import (
    NONE,
    Binding,
    Scope,
    eligible_domains,
    group_scope,
    partition_scope,
)
from evenkeel.measure.loads import utilisation
from evenkeel.measure.room import most_away, piling, staying
from evenkeel.measure.rows import replicas_of
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.reading.arrays import Flags, Ints64, Reals, Rows, read_only
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.model.topology import NODE_TIER

ROUNDING = 1e-10  # relative excess, or lack, that may be rounding, and is not counted
TURNS = 3  # rounds in which the prices of the dimensions are improved
EAGERNESS = 2.0  # how far one round changes them
# no dimension is out for good: a round that takes what lacks it can bring it back
LEAST_WEIGHT = 1e-30

# how many times its node's average a replica has to be, to be looked at; then less, if need be
WIDENING = (2.0, 0.0)


@dataclass(frozen=True, eq=False)
class EvictionProof:
    """Proof of how many replicas overfull nodes must lose: anybody can check it node by node.

    Node ``node[i]`` exceeds its target by e (D,). Its replicas weigh w (D,) each, in their lightest
    role.
    The ``count[i]`` - 1 largest of its replicas by ``price[i] @ w`` sum up to less than
    ``price[i] @ e``, so it must lose ``count[i]``.

    Parameters
    ----------
    node : ndarray of int64, shape (m,)
        Nodes too full.
    count : ndarray of int64, shape (m,)
        Replicas that each must lose at least.
    price : ndarray of float64, shape (m, D)
        Weight of each dimension in the proof; all 0 where the number of replicas is too high.

    Examples
    --------
    >>> import numpy as np
    >>> proof = EvictionProof(np.array([4]), np.array([2]), np.array([[1.0, 0.0]]))
    >>> proof.moves
    2
    """

    node: Ints64
    count: Ints64
    price: Reals

    @property
    def moves(self) -> int:
        """Replicas that leave in all."""
        return int(self.count.sum())


@dataclass(frozen=True, eq=False)
class Keepable:
    """What can be kept of a placement. P partitions, K replicas."""

    missing: int  # replicas that have to join, whatever is kept
    # (K,) node plus one of each replica whose loss costs a move; 0 for all others. In the order of
    # ``PlacementCounts.node_row``.
    node_row: Rows
    replicas: Ints64  # (N,) such replicas on each node
    # (D, P) what a replica of each partition weighs in its lightest role
    least: Reals
    # (N, D) what each node would carry of these replicas, were they all that light
    load: Reals
    # (P,) how many of ``missing`` rules take from each partition whose other replicas cost nothing
    lost: Ints64

    def crowd(self, placed: PlacementCounts) -> Ints64:
        """Return how many of these replicas are beyond the most that each node takes, (N,)."""
        most = placed.cluster.nodes.max_replicas
        return np.where(most >= 0, np.maximum(self.replicas - most, 0), 0)


def keepable(placed: PlacementCounts) -> Keepable:
    """Return the replicas that can stay, and how many must join although all of these stay."""
    cluster, scope = placed.cluster, partition_scope(placed.cluster)
    stays = np.append(False, cluster.nodes.may_hold).take(staying(placed, scope))
    having = placed.tallied(stays)
    wanted = cluster.partitions.replicas
    most, new = _most_kept(placed, scope, stays, having)
    most = np.minimum(most, most_away(placed, stays))
    free = (having > most) | (having > wanted)
    piled = piling(placed, scope)
    if piled.any():
        # replicas may pile up on nodes kept, so only to domains without one need any join
        most = np.where(piled & (having > 0), wanted - new, most)
        free |= piled
    if free.any():
        stays &= ~placed.spread_out(free)
    missing = int(np.maximum(wanted - most, 0).sum())
    lost = np.where(piled | (having > wanted), 0, having - most)
    return _counted(placed, missing, stays, lost)


def beyond_group_rules(placed: PlacementCounts, kept: Keepable) -> int:
    """Return how many of the replicas kept are beyond what domains may hold of whole groups."""
    cluster, spreads = placed.cluster, group_scope(placed.cluster).spreads
    groups = len(cluster.partitions.group_names)
    beyond = np.zeros(groups)
    there = np.flatnonzero(kept.node_row) if spreads else np.zeros(0, np.int64)
    group = cluster.partitions.group[placed.partition(there)].astype(np.int64)
    for one in spreads:
        row = -1 if one.tier == NODE_TIER else cluster.topology.tier_index(one.tier)
        domain = cluster.topology.domain_with_nodes[row]
        at = domain[kept.node_row[there] - 1]
        bound = (at >= 0) & (one.amount[group] != NONE)
        domains = int(domain.max(initial=-1)) + 1
        who, _, count = count_by_domain(group[bound], at[bound], groups, domains)
        over = np.bincount(who, np.maximum(count - one.amount[who], 0), groups)
        beyond = np.maximum(beyond, over)
    return int(beyond.sum())


def kept_on_full_nodes(placed: PlacementCounts, kept: Keepable, target: Reals) -> Keepable | None:
    """Return what can be kept, counting replicas on nodes above a target (N, D) by nodes alone."""
    # Rules take ``kept.lost`` from some partitions, no matter which. On full nodes such replicas
    # may count for more by their weight. None where no such partition has one there.
    if not kept.lost.any():
        return None
    cluster, may_hold = placed.cluster, np.append(False, placed.cluster.nodes.may_hold)
    node_row = staying(placed, partition_scope(cluster))
    stays = (kept.node_row > 0) | (placed.spread_out(kept.lost > 0) & may_hold[node_row])
    load = placed.weighed(kept.least, np.where(stays, node_row, 0))
    full = np.append(False, (load > target * (1.0 + ROUNDING)).any(1))
    by_node = (kept.lost > 0) & (placed.tallied(stays & full[node_row]) > 0)
    if not by_node.any():
        return None
    stays &= (kept.node_row > 0) | placed.spread_out(by_node)
    lost = np.where(by_node, 0, kept.lost)
    return _counted(placed, kept.missing - int(kept.lost[by_node].sum()), stays, lost)


def _counted(placed: PlacementCounts, missing: int, stays: Flags, lost: Ints64) -> Keepable:
    """Count the replicas whose loss costs a move, ``stays (K,)``."""
    node_row = np.where(stays, placed.node_row, 0)
    least = placed.cluster.partitions.load.lightest_by_dimension
    replicas = np.bincount(node_row, minlength=len(placed.cluster.nodes) + 1)[1:]
    return Keepable(missing, node_row, replicas, least, placed.weighed(least, node_row), lost)


def prove_evictions(placed: PlacementCounts, kept: Keepable, targets: Reals) -> list[EvictionProof]:
    """Prove, for each of several targets, how many replicas the nodes above it must lose."""
    # a covering knapsack in several dimensions is relaxed to one by a surrogate constraint: F.
    # Glover, "Surrogate constraints", Operations Research 16, 1968
    excess = np.maximum(kept.load - targets * (1.0 + ROUNDING), 0.0)
    excess[excess < np.finfo(np.float64).tiny] = 0.0  # one divided by it is no number
    count = np.tile(kept.crowd(placed), (len(targets), 1))
    price = np.zeros(excess.shape)
    over = excess > 0.0
    which, node = np.nonzero(over.any(2))
    for above in WIDENING:
        if len(node) == 0:
            break
        nodes, row = np.unique(node, return_inverse=True)
        somewhere = np.logical_or.reduce(over[:, nodes])
        beat()
        table, limit = _largest(placed, kept, nodes, somewhere, above)
        short = excess[which, node]
        scale = np.divide(1.0, short, out=np.zeros_like(short), where=short > 0.0).T
        beat()
        # a replica that takes away more than all the excess counts for all of it
        share = np.minimum(table[:, row] * scale[:, :, None], 1.0)
        beat()
        found, mix, sure = _priced(share, limit[:, row] * scale, short > 0.0)
        better = sure & (found > count[which, node])
        count[which[better], node[better]] = found[better]
        price[which[better], node[better]] = (mix * scale.T)[better]
        which, node = which[~sure], node[~sure]
    found_nodes = [np.flatnonzero(one) for one in count]
    return [
        EvictionProof(read_only(at), read_only(count[i, at]), read_only(price[i, at]))
        for i, at in enumerate(found_nodes)
    ]


def _largest(
    placed: PlacementCounts, kept: Keepable, node: Rows, over: Flags, above: float
) -> tuple[Reals, Reals]:
    """Return the larger replicas of each node in a table, and what all others are smaller than."""
    # A replica is among them if in some dimension that its node has too much of (``over``, (m, D))
    # it weighs ``above`` times the average there. The table is (D, m, width), padded with 0; the
    # limits (D, m).
    average = kept.load[node] / np.maximum(kept.replicas[node], 1)[:, None]
    # even of all, only those that weigh something
    least = np.maximum(above * average, np.finfo(np.float64).tiny)
    limit = np.full((len(kept.load) + 1, over.shape[1]), np.inf)
    limit[node + 1] = np.where(over, least, np.inf)
    partitions, node_rows = [], []
    for node_row, owner in placed.stretches(kept.node_row):
        chosen = np.zeros(len(node_row), bool)
        for d in np.flatnonzero(over.any(0)):
            chosen |= kept.least[d, owner] >= limit[:, d].take(node_row)
        at = np.flatnonzero(chosen)
        node_rows.append(node_row[at])
        partitions.append(at if isinstance(owner, slice) else owner[at])
    beat()
    partition = np.concatenate(partitions)
    row_of = np.zeros(len(limit), np.int16 if len(node) < 2**15 else np.int32)
    row_of[node + 1] = np.arange(len(node), dtype=row_of.dtype)
    row = row_of[np.concatenate(node_rows)]
    # 16-bit keys are sorted in one pass per byte
    order = np.argsort(row, kind="stable")
    row, partition = row[order], partition[order]
    length = np.bincount(row, minlength=len(node))
    column = np.arange(len(row)) - (np.cumsum(length) - length)[row]
    beat()
    table = np.zeros((over.shape[1], len(node), int(length.max(initial=1))))
    table[:, row, column] = kept.least[:, partition]
    return table, least.T


def _priced(table: Reals, limit: Reals, over: Flags) -> tuple[Ints64, Reals, Flags]:
    """Find, per row, prices of dimensions for which the most of the largest items are needed."""
    # returns that number, the prices, and whether the table held all items that the proof needs
    count = np.zeros(len(over), np.int64)
    best = np.zeros(over.shape)
    sure = np.ones(len(over), bool)

    def offer(rows: Rows, mix: Reals, blend: Reals, below: Reals) -> Reals:
        beat()
        needed, smallest = largest_needed(blend)
        sure[rows] &= smallest >= below
        better = needed > count[rows]
        count[rows[better]] = needed[better]
        best[rows[better]] = mix[better]
        return smallest

    for d, one in enumerate(np.eye(over.shape[1])):
        rows = np.flatnonzero(over[:, d])
        offer(rows, np.tile(one, (len(rows), 1)), table[d, rows], limit[d, rows])
    rows = np.flatnonzero(over.sum(1) > 1)
    if len(rows) == 0:
        return count, best, sure
    over, table, limit = over[rows], table[:, rows], limit[:, rows]
    mix = over / over.sum(1, keepdims=True)
    for _ in range(TURNS):
        blend = sum(mix[:, d, None] * one for d, one in enumerate(table))
        smallest = offer(rows, mix, blend, (mix.T * limit).sum(0))
        mix = _reweighed(mix, table, blend >= smallest[:, None], over)
    return count, best, sure


def _reweighed(mix: Reals, table: Reals, taken: Flags, over: Flags) -> Reals:
    """Give more weight to the dimensions that the items taken cover worst; (rows, D)."""
    cover = np.stack([(one * taken).sum(1) for one in table], axis=1)
    cover[~over] = np.inf
    worst = np.maximum(cover.min(1, keepdims=True), ROUNDING)
    weight: Reals = mix * np.exp(-EAGERNESS * (cover - worst) / worst)
    weight = np.maximum(weight, LEAST_WEIGHT * over)
    return weight / np.add.reduce(weight, axis=1, keepdims=True)


def largest_needed(size: Reals) -> tuple[Ints64, Reals]:
    """Return how many of the largest entries of each row sum up to 1, and the smallest of those."""
    descending = np.sort(size, axis=1)[:, ::-1]
    enough = np.cumsum(descending, axis=1) >= 1.0 - ROUNDING
    count = np.minimum((~enough).sum(1) + 1, size.shape[1])
    smallest = descending[np.arange(len(size)), count - 1]
    # 0 where all of them are too few
    return count, np.where(enough[:, -1], smallest, 0.0)


def _most_kept(
    placed: PlacementCounts, scope: Scope, stays: Flags, having: Ints64
) -> tuple[Ints64, Ints64]:
    """Return how many replicas each partition can keep under hard limits, and new domains; (P,)."""
    placement, topology = placed.placement, placed.cluster.topology
    most, new = having.copy(), np.zeros_like(having)
    limits = [one for one in scope.bindings if one.kind in ("spread", "skew") and one.hard]
    spreads = [one for one in limits if one.kind == "spread"]
    alone = [one for one in spreads if one.tier != "node" and (one.amount == 1).all()]
    for binding in limits:
        if alone and (binding.kind, binding.tier) == ("spread", "node") and binding.amount.all():
            continue  # what may share no domain may share no node either
        row = topology.tier_index(binding.tier)
        domain = topology.domain_with_nodes[row]
        members = suspects(placed, binding, row)
        replicas, which = replicas_of(placement, members)
        where = domain_of(domain, placement.node[replicas])
        counted = stays[placed.places(replicas)] & (where >= 0)
        who, at, count = count_by_domain(
            which[counted], where[counted], len(members), int(topology.domain_count[row])
        )
        largest = binding.amount[members].astype(np.int64)
        if binding.kind == "skew":
            largest, joining, empty = _evened(
                placed.cluster, scope, binding, members, who, at, count
            )
            new[members] = np.maximum(new[members], empty)
            stay = placed.cluster.partitions.replicas[members] - joining
            most[members] = np.minimum(most[members], stay)
        over = np.maximum(count - largest[who], 0)
        lost = np.bincount(who, over, len(members)).astype(np.int64)
        most[members] = np.minimum(most[members], having[members] - lost)
    return most, new


def _evened(
    cluster: Cluster,
    scope: Scope,
    binding: Binding,
    members: Rows,
    who: Ints64,
    at: Ints64,
    count: Ints64,
) -> tuple[Ints64, Ints64, Ints64]:
    """Return the most in a domain by a skew, how many join the emptiest, and new domains."""
    # beside m replicas in one of d domains each other has from m - skew to m + skew, w in all
    row, rule = cluster.topology.tier_index(binding.tier), scope.rule[members]
    counts = eligible_domains(cluster, scope, row)
    domains, wanted = counts.sum(1)[rule], cluster.partitions.replicas[members].astype(np.int64)
    apart = cluster.nodes.may_hold & (cluster.topology.domain_with_nodes[row] < 0)
    strays = np.array([(is_open & apart).any() for is_open in scope.open], np.bool_)[rule]
    each = np.maximum(domains, 1)
    beside = (each - 1) * binding.amount[members].astype(np.int64)
    largest = np.where(domains > 0, np.minimum((wanted + beside) // each, wanted), wanted)
    fewest = np.where((domains > 0) & ~strays, np.maximum(-((beside - wanted) // each), 0), 0)
    counted = counts[rule[who], at]
    held = np.bincount(who, np.minimum(count, fewest[who]) * counted, len(members)).astype(np.int64)
    empty = np.where(fewest > 0, domains - np.bincount(who[counted], minlength=len(members)), 0)
    return largest, fewest * domains - held, empty


def rehoming_level(cluster: Cluster, largest: int | None = None) -> float:
    """Prove how full the fullest node is, in whichever dimension, after the fewest moves of all."""
    # It holds for every placement that places all replicas wanted, breaks no hard rule, and keeps
    # whatever can be kept. A replica for which no node has capacity is left out: there is no such
    # placement then. Only the ``largest`` partitions that lack replicas are tried, if it is given.
    placed = PlacementCounts.of(cluster, cluster.placement)
    scope = partition_scope(cluster)
    kept = keepable(placed)
    nodes = cluster.nodes
    seen = nodes.serves
    full = utilisation(kept.load, nodes.capacity)
    level = float(full[seen].max(initial=0.0))
    stays = np.bincount(
        placed.partition(np.flatnonzero(kept.node_row)), minlength=len(cluster.partitions)
    )
    lacking = np.flatnonzero(stays < cluster.partitions.replicas)
    widest = np.where(nodes.may_receive[:, None], nodes.capacity, 0.0).max(axis=0, initial=0.0)
    size = utilisation(placed.lightest[lacking], widest).max(axis=1, initial=0.0)
    for p in lacking[np.argsort(-size, kind="stable")[:largest]].tolist():
        beside = utilisation(kept.load + placed.lightest[p], nodes.capacity).max(axis=1)
        there = beside[_open_to(cluster, scope, p)]
        least = float(there.min(initial=np.inf))
        if least <= 1.0:
            level = max(level, least)
    return level


def _open_to(cluster: Cluster, scope: Scope, p: int) -> Flags:
    """Nodes that may be given a replica of a partition that keeps what it can, (N,)."""
    nodes, placement, topology = cluster.nodes, cluster.placement, cluster.topology
    is_open: Flags = nodes.may_receive & scope.open[scope.rule[p]]
    is_open[cluster.forbidden[cluster.forbidden[:, 0] == p, 1]] = False
    held = placement.node[placement.first[p] : placement.first[p + 1]]
    held = held[held >= 0]
    held = held[nodes.may_hold[held]]
    if len(held) > cluster.partitions.replicas[p]:
        return is_open  # some of these are dropped, whichever
    for binding in scope.spreads:
        if binding.amount[p] == NONE:
            continue
        domain = topology.domain_with_nodes[topology.tier_index(binding.tier)]
        there, count = np.unique(domain[held], return_counts=True)
        taken = there[(count == binding.amount[p]) & (there >= 0)]
        is_open &= ~np.isin(domain, taken)
    return is_open
