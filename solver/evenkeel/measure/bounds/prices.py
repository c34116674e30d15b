"""Lagrangian prices of load and losses: the least cost of each partition at given prices.

Each partition is priced by itself, on the cheapest nodes it may be on, so that the sum over all of
them is below what any placement costs. Limits on one level count; other rules are left out, which
only makes the sum smaller.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import NONE, Scope, partition_scope
from evenkeel.measure.bounds.level import piling
from evenkeel.measure.bounds.moves import keepable
from evenkeel.measure.rows import replicas_of
from evenkeel.measure.tally import PlacementCounts
from evenkeel.measure.wanted import has_leaders
from evenkeel.model.cluster import Cluster

SAFE = 1e-9
"""Relative error that sums of prices and loads are allowed, at the expense of the bound."""

BLOCK = 1 << 18
"""Entries of a table of partitions by nodes that are worked on at a time."""


def whole_moves(value: tuple[float, float]) -> int:
    """Round a bound up to the next whole number, on the safe side."""
    bound, size = value
    return max(0, int(np.ceil(bound - SAFE * (1.0 + size))))


def priced(
    cluster: Cluster,
    target: NDArray[np.float64],
    load_price: NDArray[np.float64],
    loss_price: NDArray[np.float64],
    count: NDArray[np.float64],
) -> tuple[float, float]:
    """Return the bound that prices prove, and the sum of what was added up for it."""
    room = np.where(load_price > 0.0, target, 0.0) * (1.0 + SAFE)
    spent = float((load_price * room).sum())
    losses = float(loss_price @ count)
    total, size = losses - spent, abs(losses) + spent
    for block in price_blocks(cluster, load_price, loss_price):
        total += float(block.least.sum())
        size += float(np.abs(block.least).sum())
    return total, size


@dataclass(frozen=True, eq=False)
class PriceBlock:
    """What it costs some partitions to be on each node, and the least for each in all."""

    partition: NDArray[np.int64]  # (n,) which
    # (n, N) price of a replica on a node in its lightest role by price; ``inf`` where none may be
    follow: NDArray[np.float64]
    lead: NDArray[np.float64] | None  # (n, N) price of a leader there
    # (n,) least price of all wanted replicas, less that of the losses if none stayed
    least: NDArray[np.float64]


def price_blocks(
    cluster: Cluster, load_price: NDArray[np.float64], loss_price: NDArray[np.float64]
) -> Iterator[PriceBlock]:
    """Price partitions by nodes, some partitions at a time; alike ones together."""
    placed = PlacementCounts.of(cluster, cluster.placement)
    scope = partition_scope(cluster)
    kept = keepable(placed)
    domain, cap = domains_and_caps(cluster)
    piles = piling(placed, scope)
    wanted = cluster.partitions.replicas
    kinds = np.stack([wanted, cap, piles], axis=1)[wanted > 0]
    at = np.flatnonzero(wanted > 0)
    counted = np.zeros(len(cluster.placement.node), np.intp)
    counted[_flat_order(placed)] = kept.node_row
    length = max(1, BLOCK // max(1, len(cluster.nodes)))
    members_of = domain_members(domain)
    for kind in np.unique(kinds, axis=0):
        members = at[(kinds == kind).all(1)]
        for start in range(0, len(members), length):
            some = members[start : start + length]
            follow, lead, credit = _tables(
                cluster, scope, some, counted, load_price, loss_price, piled=bool(kind[2])
            )
            replicas, most = int(kind[0]), int(kind[1])
            if kind[2]:
                least = replicas * follow.min(1, initial=np.inf)
                if lead is not None:
                    able = np.isfinite(follow)
                    extra = np.subtract(lead, follow, out=np.full_like(lead, np.inf), where=able)
                    least = least + extra.min(1, initial=np.inf)
            else:
                least = _cheapest(follow, lead, members_of, replicas, most)
            # what fits nowhere proves nothing, nor does it spoil what the others prove
            yield PriceBlock(some, follow, lead, np.where(np.isfinite(least), least, 0.0) - credit)


def _flat_order(placed: PlacementCounts) -> NDArray[np.int64]:
    """Return indices into the flat arrays of the placement, in the order of ``node_row``."""
    placement = placed.placement
    each = np.arange(len(placement.node))
    return each if placement.slots is None else each.reshape(-1, placement.slots).T.reshape(-1)


def domains_and_caps(cluster: Cluster) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the domains that replicas are kept apart by, and how many each may hold.

    One level is looked at, the widest on which a hard limit binds. Leaving the other limits out
    only makes a bound smaller.
    """
    cap = cluster.partitions.replicas.astype(np.int64)
    bindings = partition_scope(cluster).bindings
    hard = [one for one in bindings if one.kind == "spread" and one.hard]
    hard = [one for one in hard if one.tier != "node"]
    if not hard:
        return np.full(len(cluster.nodes), -1), cap
    topology = cluster.topology
    binding = min(hard, key=lambda one: int(topology.domain_count[topology.tier_index(one.tier)]))
    bound = binding.amount != NONE
    cap[bound] = np.minimum(cap[bound], binding.amount[bound])
    domain = topology.domain_with_nodes[topology.tier_index(binding.tier)]
    return domain.astype(np.int64), cap


def domain_members(domain: NDArray[np.int64]) -> list[tuple[NDArray[np.intp], bool]]:
    """Return the nodes of each domain, and whether the number of replicas there is limited."""
    return [(np.flatnonzero(domain == one), bool(one >= 0)) for one in np.unique(domain)]


def _tables(
    cluster: Cluster,
    scope: Scope,
    some: NDArray[np.int64],
    counted: NDArray[np.intp],
    load_price: NDArray[np.float64],
    loss_price: NDArray[np.float64],
    *,
    piled: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, NDArray[np.float64]]:
    """Return the prices of following and leading on each node, and the credit for all losses."""
    nodes, parts, placement = cluster.nodes, cluster.partitions, cluster.placement
    price = load_price.T
    follow = parts.load.voter[some] @ price
    if (parts.voters[some] < parts.replicas[some]).any():
        follow = np.minimum(follow, parts.load.non_voter[some] @ price)
    base = np.where(nodes.may_receive, 0.0 if piled else 1.0, np.inf) + np.zeros_like(follow)
    replica, row = replicas_of(placement, some)
    stood = placement.node[replica] >= 0
    replica, row = replica[stood], row[stood]
    at = placement.node[replica]
    base[row, at] = np.where(nodes.may_hold[at], 0.0, base[row, at])
    base[~scope.open[scope.rule[some]]] = np.inf
    place = np.full(len(parts), -1)
    place[some] = np.arange(len(some))
    banned = place[cluster.forbidden[:, 0]]
    base[banned[banned >= 0], cluster.forbidden[banned >= 0, 1]] = np.inf
    credit = np.zeros(len(some))
    node_rows = counted[replica] > 0
    np.add.at(credit, row[node_rows], loss_price[at[node_rows]])
    base[row[node_rows], at[node_rows]] += loss_price[at[node_rows]]
    lead = None
    if has_leaders(cluster):
        lead = parts.load.leader[some] @ price + base
    return follow + base, lead, credit


def _cheapest(
    follow: NDArray[np.float64],
    lead: NDArray[np.float64] | None,
    members: Sequence[tuple[NDArray[np.intp], bool]],
    replicas: int,
    cap: int,
) -> NDArray[np.float64]:
    """Return the least price of distinct nodes, at most ``cap`` per domain, one of which leads.

    The cheapest followers are taken first; a leader elsewhere takes the place of the dearest of
    them that makes room for it, which is what exchanges in a partition matroid come to.
    """
    most = [cap if limited else replicas for _, limited in members]
    near = [
        np.sort(follow[:, nodes], axis=1)[:, :room]
        for (nodes, _), room in zip(members, most, strict=True)
    ]
    if not near:
        return np.full(len(follow), np.inf)
    chosen = np.sort(np.concatenate(near, axis=1), axis=1)[:, :replicas]
    if chosen.shape[1] < replicas:
        return np.full(len(follow), np.inf)
    least: NDArray[np.float64] = chosen.sum(1)
    if lead is None:
        return least
    dearest = chosen[:, -1:]
    extra = np.full(len(follow), np.inf)
    for (nodes, _), taken, full in zip(members, near, most, strict=True):
        room = np.minimum(dearest, taken[:, -1:]) if taken.shape[1] == full else dearest
        place = np.minimum(follow[:, nodes], room)
        able = np.isfinite(lead[:, nodes])
        more = np.subtract(lead[:, nodes], place, out=np.full(able.shape, np.inf), where=able)
        extra = np.minimum(extra, more.min(1))
    least += extra
    return least
