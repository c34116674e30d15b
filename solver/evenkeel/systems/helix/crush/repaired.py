"""CRUSH-ed and MultiRoundCRUSH without the faults of the originals.

All groups are dealt together, so that no node collects one surplus replica of each. Replicas
without room go to the least loaded node, and nodes left with too few get some. The ring is
walked repeatedly, and a partition that still finds no node is left short without dragging its group
along. Leaders are even over all groups. MultiRoundCRUSH works without zones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.runtime.heartbeat import beat
from evenkeel.systems.helix.crush import crushed
from evenkeel.systems.helix.crush.hashed import HashedNames, map_order, shuffled
from evenkeel.systems.helix.crush.tree import Base, Tree, crush, multiround
from evenkeel_kernels.helix import even_deal as cards
from evenkeel_kernels.helix.even_deal import Hands, Lists, Ring

ROOMS = 10
"""Zones that MultiRoundCRUSH makes of nodes that have none, if there are no more replicas."""

SEARCHED = 64
"""Nodes looked at for one that can give a card away, by itself or through others."""

SEED = 0
"""What the steps that treat all groups as one are seeded with."""


class Group(NamedTuple):
    """Partitions managed together."""

    name: str  # its name, which seeds the search for new nodes
    partitions: HashedNames  # its partitions
    states: tuple[int, ...]  # replicas in each state, the top state first


@dataclass(frozen=True, eq=False)
class Repaired:
    """The placement of all groups."""

    # (P, R) for each group the nodes of each partition, the first in the top state; -1 at the end
    # of a short list
    placed: tuple[NDArray[np.int32], ...]
    # group and partition of each short list: no live zone was left for it
    short: tuple[tuple[int, int], ...]


def crushed_together(groups: Sequence[Group], tree: Tree, base: Base = crush) -> Repaired:
    """Place all groups by CRUSH-ed, dealt as one."""
    heavy = np.flatnonzero(tree.weight > 0)
    some = tree.only(heavy)
    whole = some.all_live()
    width = max((sum(group.states) for group in groups), default=0)
    rows = [_widened(base(group.partitions, whole, group.states), width) for group in groups]
    beat()
    together = HashedNames.joined([group.partitions for group in groups])
    placed = np.concatenate(rows) if rows else np.empty((0, 0), np.int32)
    beat()
    walk = map_order(together.hash)
    beat()
    hands = dealt(together, some, cards.hands_of(placed, walk, len(some)), width)
    beat()
    lists = crushed.in_leading_order(together, some, hands, width)
    beat()
    cards.level_leaders(lists, len(some))
    beat()
    if not some.live.all():
        _rehome(groups, some, hands, lists)
    return _parted(groups, lists, heavy)


def dealt(partitions: HashedNames, tree: Tree, hands: Hands, width: int) -> Hands:
    """Deal cards until every node holds the whole part of its share, or one more where possible."""
    target = shares(tree, hands.partition.size, len(partitions))
    order = shuffled(len(tree), SEED)
    weight = tree.weight
    limit = cards.limits(hands, target, weight, tree.zone, tree.zones, order)
    names = tree.names.hash
    hands = hands._replace(
        partition=hands.partition[crushed.shuffled_overfull(hands.first, limit, names)]
    )
    beat()
    by_name = partitions.rank
    beat()
    deal = cards.give_up(hands, limit, tree.zone, by_name, width)
    whole = np.floor(target).astype(np.int64)
    count = 0
    for room in (whole, whole + 1, whole + 2, np.full(len(tree), np.iinfo(np.int64).max)):
        count = cards.deal_out(deal, room, tree.zone, names, count)
        beat()
    return settled(cards.dealt_hands(hands, deal, count), tree, target, len(partitions))


def settled(hands: Hands, tree: Tree, target: NDArray[np.float32], partitions: int) -> Hands:
    """Hand cards over from nodes above their share to those that the deal left below it."""
    whole = np.floor(target).astype(np.int64)
    load = np.diff(hands.first)
    if (load >= whole).all() and (load <= whole + 1).all():
        return hands
    holder = np.repeat(np.arange(len(tree)), load)
    taken = np.zeros((partitions, tree.zones), np.bool_)
    taken[hands.partition, tree.zone[holder]] = True
    beat()

    def fitting(taker: int) -> NDArray[np.bool_]:
        """Cards that a node could take: of its own zone, or of partitions its zone has not."""
        near = tree.zone[holder] == tree.zone[taker]
        return np.asarray(near | ~taken[hands.partition, tree.zone[taker]])

    for level in (whole, whole + 1):
        waiting = load < level
        while waiting.any() and (over := load > level).any():
            beat()
            taker = int(np.argmin(np.where(waiting, load - target, np.inf)))
            way = _way(taker, over, lambda node: np.unique(holder[fitting(node)]))
            waiting[taker] &= bool(way)
            for giver, receiver in way:
                cards_of = np.flatnonzero((holder == giver) & fitting(receiver))
                if cards_of.size == 0:  # the hand-over before took the only one
                    waiting[taker] = False
                    break
                card = cards_of[0]
                taken[hands.partition[card], tree.zone[giver]] = False
                taken[hands.partition[card], tree.zone[receiver]] = True
                holder[card] = receiver
                load[giver] -= 1
                load[receiver] += 1
            waiting[taker] &= load[taker] < level[taker]
    beat()
    order = np.argsort(holder, kind="stable")
    first = np.concatenate([[0], np.cumsum(load)])
    fresh = np.flatnonzero((load > 0) & ~np.isin(np.arange(len(tree)), hands.entered))
    return hands._replace(
        first=first,
        partition=hands.partition[order],
        entered=np.concatenate([hands.entered, fresh]).astype(hands.entered.dtype),
    )


def _way(
    taker: int, over: NDArray[np.bool_], givers: Callable[[int], NDArray[np.int64]]
) -> list[tuple[int, int]]:
    """Find hand-overs (giver, receiver) from a node with too much to the taker, the last one first.

    The search gives up after ``SEARCHED`` nodes.
    """
    receiver = {taker: -1}
    queue = [taker]
    for node in queue:
        for giver in givers(node).tolist():
            if giver in receiver:
                continue
            receiver[giver] = node
            if over[giver]:
                way = [(giver, node)]
                while receiver[way[-1][1]] >= 0:
                    way.append((way[-1][1], receiver[way[-1][1]]))
                return way[::-1]
            if len(queue) < SEARCHED:
                queue.append(giver)
    return []


def shares(tree: Tree, total: int, partitions: int) -> NDArray[np.float32]:
    """Share all replicas out by weight, where no zone takes more than one of each partition."""
    zone_weight = tree.all_live().zone_weight.astype(np.float64)
    share = np.zeros(tree.zones)
    full = np.zeros(tree.zones, np.bool_)
    while not full.all():
        left = total - share[full].sum()
        share[~full] = left * zone_weight[~full] / zone_weight[~full].sum()
        over = ~full & (share > partitions)
        if not over.any():
            break
        share[over] = partitions
        full |= over
    return (tree.weight / zone_weight[tree.zone] * share[tree.zone]).astype(np.float32)


def endless(ring: Ring) -> Ring:
    """Let a ring begin again where it ends."""
    lap = np.uint64(1 << 32)
    return Ring(np.concatenate([ring.point, ring.point + lap]), np.tile(ring.node, 2))


def multiround_anywhere(
    partitions: HashedNames, tree: Tree, states: Sequence[int]
) -> NDArray[np.int32]:
    """Place the partitions of a group by MultiRoundCRUSH, with zones or without.

    Nodes without zones are put into as many rooms of equal size as there are replicas, or ten if
    that is more; the rooms serve as zones.
    """
    if tree.zone_names is not None or len(tree) == 0:
        return multiround(partitions, tree, states)
    rooms = min(len(tree), max(ROOMS, sum(states)))
    place = np.empty(len(tree), np.int64)
    place[np.argsort(tree.names.id, kind="stable")] = np.arange(len(tree)) % rooms
    names = [f"room {room}" for room in place.tolist()]
    roomed = Tree.of(tuple(tree.names.names), names, tree.weight, tree.live)
    return multiround(partitions, roomed, states)


def _widened(placed: NDArray[np.int32], width: int) -> NDArray[np.int32]:
    return np.pad(placed, ((0, 0), (0, width - placed.shape[1])), constant_values=-1)


def _rehome(groups: Sequence[Group], tree: Tree, hands: Hands, lists: Lists) -> None:
    """Move replicas off nodes that are not live, group by group, in place."""
    ring = endless(crushed.ring(tree))
    begin = 0
    for group in groups:
        beat()
        end = begin + len(group.partitions)
        part = Lists(lists.node[begin:end], lists.size[begin:end], lists.entered)
        on_dead = (part.node >= 0) & ~tree.live[part.node]
        lost = np.flatnonzero(on_dead.any(axis=1)).astype(np.int32)
        seed = HashedNames.of([group.name]).word[0]
        found = cards.rehome(part, lost, tree.live, tree.zone, ring, group.partitions.word, seed)
        rank = crushed.ranks_in_sets(tree, hands.entered, found)
        cards.replace_lost(part, lost, found, tree.live, rank)
        begin = end


def _parted(groups: Sequence[Group], lists: Lists, nodes: NDArray[np.int64]) -> Repaired:
    """Give each group its own lists."""
    placed, short, begin = [], [], 0
    for g, group in enumerate(groups):
        end = begin + len(group.partitions)
        own = lists.node[begin:end, : sum(group.states)]
        placed.append(crushed.renumbered(own, nodes))
        short += [(g, int(p)) for p in np.flatnonzero((own < 0).any(axis=1))]
        begin = end
    return Repaired(tuple(placed), tuple(short))
