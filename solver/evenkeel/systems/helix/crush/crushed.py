"""CRUSH-ed: CRUSH, or any base strategy, made even.

The base strategy places every partition as if all nodes were live. Overfull nodes then give cards
up, which are dealt to the others; each partition's list is put into an order that lets all nodes
lead about equally often; and replicas on nodes that are not live move along a ring. A step that
does not converge sends the whole group back to the base strategy on the live nodes.

References
----------
Apache Helix, CRUSH-ed for even distribution; ``AbstractEvenDistributionRebalanceStrategy``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.helix.crush.hashed import (
    HashedNames,
    copied_capacity,
    map_order,
    shuffled,
    shuffled_lists,
)
from evenkeel.systems.helix.crush.tree import Base, Tree, crush
from evenkeel_kernels.helix import even_deal as cards
from evenkeel_kernels.helix.even_deal import Hands, Lists, Ring


@dataclass(frozen=True, eq=False)
class Adjusted:
    """The placement of a group. P partitions, R replicas."""

    # (P, R) nodes of each partition, the first in the top state; -1 after the end of a short list
    placed: NDArray[np.int32]
    # why the base strategy's own placement on the live nodes was taken; None where every step
    # converged
    fell_back: str | None


class NotConverged(Exception):
    """A step did not converge; the message names it."""


def crushed(
    partitions: HashedNames, tree: Tree, states: Sequence[int], group: str, base: Base = crush
) -> Adjusted:
    """Place the partitions of a group by CRUSH-ed."""
    heavy = np.flatnonzero(tree.weight > 0)
    some = tree.only(heavy)
    try:
        placed = base(partitions, some.all_live(), states)
        adjusted = adjust(partitions, some, placed, HashedNames.of([group]))
    except NotConverged as reason:
        return Adjusted(renumbered(base(partitions, some, states), heavy), str(reason))
    return Adjusted(renumbered(adjusted, heavy), None)


def renumbered(placed: NDArray[np.int32], nodes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Turn places in a selection of nodes into nodes.

    >>> renumbered(np.array([[1, -1]], np.int32), np.array([4, 6])).tolist()
    [[6, -1]]
    """
    return np.append(nodes, -1).astype(np.int32)[placed]


def adjust(
    partitions: HashedNames, tree: Tree, placed: NDArray[np.int32], group: HashedNames
) -> NDArray[np.int32]:
    """Make a placement even: deal, shuffle and, where some nodes are not live, re-home."""
    seed = int(group.hash[0])
    hands = cards.hands_of(placed, map_order(partitions.hash), len(tree))
    hands = dealt(partitions, tree, hands, placed.shape[1], seed)
    lists = in_leading_order(partitions, tree, hands, placed.shape[1])
    if not tree.live.all():
        rehomed(partitions, tree, hands, lists, ring(tree), seed)
    return lists.node


def dealt(partitions: HashedNames, tree: Tree, hands: Hands, replicas: int, seed: int) -> Hands:
    """Deal cards until every node holds the whole part of its share, or one more."""
    total = hands.partition.size
    if total == 0:
        raise NotConverged("there are no replicas to deal")
    if replicas > tree.zones:
        raise NotConverged(f"{replicas} replicas need more than {tree.zones} zones")
    name = tree.names.hash
    target = cards.targets(tree.weight, tree.zone, tree.zones, total, replicas)
    in_map = tree.tree_order[map_order(name[tree.tree_order])]
    visited = in_map[shuffled(len(tree), seed)]
    limit = cards.limits(hands, target, tree.weight, tree.zone, tree.zones, visited)
    seeds = (name.view(np.uint32) * np.uint32(31) + np.uint32(seed & 0xFFFFFFFF)).view(np.int32)
    order = shuffled_overfull(hands.first, limit, seeds)
    hands = hands._replace(partition=hands.partition[order])
    deal = cards.give_up(hands, limit, tree.zone, partitions.rank, replicas)
    tie = tie_breakers(tree.names, seed)
    count = 0
    for extra in range(cards.ROUNDS):
        room = np.floor(target).astype(np.int64) + extra
        count = cards.deal_out(deal, room, tree.zone, tie, count)
    if count < deal.pool.size:
        raise NotConverged(f"{deal.pool.size - count} replicas could not be dealt to any node")
    return cards.dealt_hands(hands, deal, count)


def shuffled_overfull(
    first: NDArray[np.int64], limit: NDArray[np.int64], seeds: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Shuffle the hands of overfull nodes, and leave the others as they are."""
    order = np.arange(first[-1])
    overfull = np.flatnonzero(limit >= 0)
    sizes = np.diff(first)[overfull]
    starts = np.zeros(overfull.size + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    shift = np.repeat(first[overfull] - starts[:-1], sizes)
    places = np.arange(starts[-1]) + shift
    order[places] = shuffled_lists(starts, seeds[overfull]) + shift
    return order


def tie_breakers(names: HashedNames, seed: int) -> NDArray[np.int32]:
    """Hash each node's name with the seed written behind it."""
    suffix = HashedNames.of([str(seed)])
    return (names.word * suffix.power + suffix.word).view(np.int32)


def in_leading_order(partitions: HashedNames, tree: Tree, hands: Hands, replicas: int) -> Lists:
    """Gather each partition's nodes, and order them so that all lead about equally often."""
    walk = walk_of(tree, hands.entered)
    lists = cards.lists_of(hands, walk, len(partitions), replicas)
    order = lists.entered[map_order(partitions.hash[lists.entered])].astype(np.int64)
    load = np.diff(hands.first)
    names = tree.names
    cards.shuffle_lists(lists, order, load, partitions.word, names.word, names.power)
    return lists


def rehomed(
    partitions: HashedNames, tree: Tree, hands: Hands, lists: Lists, ring: Ring, seed: int
) -> None:
    """Move replicas off nodes that are not live, in place."""
    walk = walk_of(tree, hands.entered)
    lost = cards.lost_partitions(hands, walk, tree.live)
    lost = lost[map_order(partitions.hash[lost])]
    word = np.uint32(seed & 0xFFFFFFFF)
    found = cards.rehome(lists, lost, tree.live, tree.zone, ring, partitions.word, word)
    missing = np.count_nonzero(~tree.live[lists.node[lost]] & (lists.node[lost] >= 0), axis=1)
    short = np.flatnonzero(np.count_nonzero(found >= 0, axis=1) < missing)
    if short.size:
        name = partitions.names[int(lost[short[0]])]
        raise NotConverged(f"the ring ended before a node was found for partition {name!r}")
    rank = ranks_in_sets(tree, hands.entered, found)
    cards.replace_lost(lists, lost, found, tree.live, rank)


def ring(tree: Tree) -> Ring:
    """Put every node on the ring, and keep the points of those that are live."""
    order = tree.tree_order[map_order(tree.names.hash[tree.tree_order])]
    return cards.ring_of(tree.names.word, order, tree.live)


def walk_of(tree: Tree, entered: NDArray[np.int32]) -> NDArray[np.int64]:
    """Walk the map of the nodes that hold something."""
    return entered[map_order(tree.names.hash[entered])].astype(np.int64)


def ranks_in_sets(
    tree: Tree, entered: NDArray[np.int32], found: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Tell in which order sets of nodes are walked that were filled by walking the hands."""
    new = found[found >= 0]
    new = new[np.isin(new, entered, invert=True)]
    _, firsts = np.unique(new, return_index=True)
    walk = walk_of(tree, np.concatenate([entered, new[np.sort(firsts)]]))
    rank = np.zeros((found.shape[1] + 1, len(tree)), np.int32)
    for size in range(found.shape[1] + 1):
        order = walk[map_order(tree.names.hash[walk], copied_capacity(size))]
        rank[size, order] = np.arange(order.size, dtype=np.int32)
    return rank
