"""The methods of Helix's CRUSH strategies, MultiRoundCRUSH and legacy auto-rebalance.

Each resource is placed on the tree of the nodes that it may use. While nodes are down within their
delay window, a resource is placed twice: on the active nodes (the live nodes and those within their
delay window) and on the live nodes alone. Each preference list combines the two results. A list
fills the slots of its partition from the first; a short list leaves the others empty.

CRUSH-ed makes CRUSH, or any base strategy, even. The base strategy places every partition as if all
nodes were live. Replicas of overfull nodes are then dealt, like cards, to the others; each list is
put into an order that lets all nodes lead about equally often; and replicas on nodes that are not
live move along a ring. A step that does not converge sends the whole group back to the base
strategy on the live nodes.

Options repair faults of the original CRUSH-ed and MultiRoundCRUSH. All groups are then dealt
together, so that no node collects one surplus replica of each. Replicas without room go to the
least loaded node, and nodes left with too few get some. The ring is walked repeatedly, and a
partition that still finds no node is left short without affecting its group. Leaders are even over
all groups. MultiRoundCRUSH works without zones.

The legacy strategy, Helix's first automatic one, deals replicas from a given mapping, blind to
zones and weights. Replicas on their preferred node stay; others stay while their node has room; the
rest is dealt by capacity. The result depends on the initial mapping.

References
----------
Apache Helix, ``DelayedAutoRebalancer``; CRUSH-ed for even distribution,
``AbstractEvenDistributionRebalanceStrategy``; ``AutoRebalanceStrategy``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.loads import has_leaders
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.shared.stopping import StopReason
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Role
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.systems.helix.crush.tree import (
    Base,
    HashedNames,
    HelixError,
    NotEnoughZones,
    OutOfTime,
    Resource,
    Site,
    Tree,
    copied_capacity,
    crush,
    enabled,
    map_order,
    multiround,
    shuffled,
    shuffled_lists,
    sites,
    text_order,
)
from evenkeel.systems.helix.options import Auto, Crush, Crushed, MultiRound, States
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
    hands = dealt_by_weight(partitions, tree, hands, placed.shape[1], seed)
    lists = in_leading_order(partitions, tree, hands, placed.shape[1])
    if not tree.live.all():
        rehomed(partitions, tree, hands, lists, ring(tree), seed)
    return lists.node


def dealt_by_weight(
    partitions: HashedNames, tree: Tree, hands: Hands, replicas: int, seed: int
) -> Hands:
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
        raise NotConverged(
            f"{deal.pool.size - count} replicas could not be dealt_by_weight to any node"
        )
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


# zones that MultiRoundCRUSH makes of nodes that have none, if there are no more replicas
ROOMS = 10

SEARCHED = 64  # nodes looked at for one that can give a card away, by itself or through others
SEED = 0  # what the steps that treat all groups as one are seeded with


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
    lists = in_leading_order(together, some, hands, width)
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
    hands = hands._replace(partition=hands.partition[shuffled_overfull(hands.first, limit, names)])
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
    """Find hand-overs (giver, receiver) from a node with too much to the taker, last one first."""
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
    """Place the partitions of a group by MultiRoundCRUSH, with zones or without."""
    # nodes without zones are put into as many rooms of equal size as there are replicas, or ten if
    # that is more; the rooms serve as zones
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
    points = endless(ring(tree))
    begin = 0
    for group in groups:
        beat()
        end = begin + len(group.partitions)
        part = Lists(lists.node[begin:end], lists.size[begin:end], lists.entered)
        on_dead = (part.node >= 0) & ~tree.live[part.node]
        lost = np.flatnonzero(on_dead.any(axis=1)).astype(np.int32)
        seed = HashedNames.of([group.name]).word[0]
        found = cards.rehome(part, lost, tree.live, tree.zone, points, group.partitions.word, seed)
        rank = ranks_in_sets(tree, hands.entered, found)
        cards.replace_lost(part, lost, found, tree.live, rank)
        begin = end


def _parted(groups: Sequence[Group], lists: Lists, nodes: NDArray[np.int64]) -> Repaired:
    """Give each group its own lists."""
    placed, short, begin = [], [], 0
    for g, group in enumerate(groups):
        end = begin + len(group.partitions)
        own = lists.node[begin:end, : sum(group.states)]
        placed.append(renumbered(own, nodes))
        short += [(g, int(p)) for p in np.flatnonzero((own < 0).any(axis=1))]
        begin = end
    return Repaired(tuple(placed), tuple(short))


class Replica(NamedTuple):
    """One replica, by the fields that the strategy compares."""

    # the name of the partition, ``|``, and the number: ``p_10|0`` comes before ``p_1|0``
    text: str | bytes
    place: int  # place of the partition in the order of names
    number: int  # number of the replica, from 0


@dataclass(eq=False)
class Bin:
    """A node at the table."""

    node: int
    held: int = 0  # replicas that it holds, with those of partitions that have more than are wanted
    live: bool = False
    capacity: int = 0
    ceiling: bool = False
    preferred: list[Replica] = field(default_factory=list)
    elsewhere: list[Replica] = field(default_factory=list)
    places: set[int] = field(default_factory=set)
    # replicas that partitions list behind those that they have
    new: set[Replica] = field(default_factory=set)

    def may_take(self, replica: Replica) -> bool:
        """Whether it is live and holds no replica of the partition."""
        return self.live and replica.place not in self.places

    def keep(self, replica: Replica, hand: list[Replica]) -> None:
        """Hold a replica, which is counted already, in one of the two hands."""
        hand.append(replica)
        self.places.add(replica.place)

    def take(self, replica: Replica, hand: list[Replica]) -> None:
        """Take a replica into one of the two hands."""
        self.keep(replica, hand)
        self.held += 1

    def give(self, replica: Replica) -> None:
        """Give a replica away that is not where it prefers to be."""
        self.elsewhere.remove(replica)
        self.places.remove(replica.place)
        self.held -= 1

    def can_take(self, replica: Replica) -> bool:
        """Whether it also has room."""
        return self.held < self.capacity and self.may_take(replica)


@dataclass(eq=False)
class Table:
    """The nodes, and where every replica would like to be."""

    bins: list[Bin]
    live: list[Bin]
    home: dict[Replica, Bin]
    start: dict[int, tuple[int, ...]]

    def offered(self, replica: Replica) -> Iterable[Bin]:
        """Offer a replica to every live node once, from where its search begins."""
        begin = self.start[replica.place][replica.number]
        return (self.live[(begin + i) % len(self.live)] for i in range(len(self.live)))


def legacy_auto(
    partitions: HashedNames,
    nodes: HashedNames,
    live: NDArray[np.bool_],
    states: Sequence[int],
    current: Sequence[Sequence[int]] = (),
    most: int | None = None,
) -> NDArray[np.int32]:
    """Place the partitions of a group by the legacy strategy."""
    replicas = sum(states)
    placed = np.full((len(partitions), replicas), -1, np.int32)
    if not live.any() or replicas == 0:
        return placed
    order = text_order(partitions.names)
    # a node may hold a partition more than once, which Helix does not know: there it holds it once
    before = [_walked(nodes, current[p]) if current else [] for p in order]
    table = _lay(partitions, nodes, live, replicas, before, most)
    strangers = _keep(table, before)
    orphans = _assign(table)
    _go_home(table, strangers)
    _relieve(table)
    _force(table, orphans, most)
    lists = _lists(table, len(before))
    for place, row in enumerate(_in_states(lists, states)):
        placed[order[place], : len(row)] = row
    return placed


def _walked(nodes: HashedNames, held: Sequence[int]) -> list[int]:
    """Return the nodes that hold a partition in the order of Helix's map of them."""
    own = np.array([*dict.fromkeys(held)], np.int64)
    return [int(n) for n in own[map_order(nodes.hash[own])]] if len(own) else []


def _lay(
    partitions: HashedNames,
    nodes: HashedNames,
    live: NDArray[np.bool_],
    replicas: int,
    before: list[list[int]],
    most: int | None,
) -> Table:
    """Give every live node its capacity, and every replica its home."""
    held = np.bincount([n for row in before for n in row], minlength=len(nodes)).tolist()
    bins = [Bin(n, held[n]) for n in range(len(nodes))]
    by_name = [bins[n] for n in text_order(nodes.names)]
    alive = sorted((one for one in by_name if live[one.node]), key=lambda s: -s.held)
    least, over = divmod(replicas * len(partitions), len(alive))
    limit = np.iinfo(np.int64).max if most is None else most
    for one in alive:
        one.live = True
        one.ceiling = over > 0 and least < limit
        one.capacity = min(least, limit) + one.ceiling
        over -= one.ceiling
    home, start = {}, {}
    plain = all(map(str.isascii, partitions.names))
    for place, p in enumerate(text_order(partitions.names).tolist()):
        texts = [f"{partitions.names[p]}|{number}" for number in range(replicas)]
        for number, text in enumerate(texts):
            at = _preferred(p, number, len(partitions), len(bins))
            key = text if plain else text.encode("utf-16-be", "surrogatepass")
            home[Replica(key, place, number)] = by_name[at]
        start[place] = tuple(((HashedNames.of(texts).hash & 0x7FFFFFFF) % len(alive)).tolist())
    return Table(bins, alive, home, start)


def _preferred(i: int, k: int, partitions: int, nodes: int) -> int:
    """Deal replica ``k`` of the i-th partition to the nodes in the order of their names."""
    if nodes > partitions:
        return (i + k * partitions) % nodes
    if nodes == partitions:
        return ((i + k * partitions) % nodes + k) % nodes
    return (i + k) % nodes


def _keep(table: Table, before: list[list[int]]) -> dict[Replica, Bin]:
    """Leave what is where it is; return the replicas that are not where they prefer to be."""
    own: list[list[Replica]] = [[] for _ in before]
    for replica in table.home:
        own[replica.place].append(replica)
    strangers: dict[Replica, Bin] = {}
    for replicas, row in zip(own, before, strict=True):
        left, others = [*replicas], []
        for one in (table.bins[n] for n in row):
            fitting = next((r for r in left if table.home[r] is one), None)
            if fitting is None:
                others.append(one)
            else:
                one.keep(fitting, one.preferred)
                left.remove(fitting)
        for one in others:
            fitting = next((r for r in left if table.home[r] is not one), None)
            if fitting is not None:
                one.keep(fitting, one.elsewhere)
                strangers[fitting] = one
                left.remove(fitting)
    return dict(sorted(strangers.items()))


def _assign(table: Table) -> list[Replica]:
    """Give orphans a node with room, or make room for them; return those that found none."""
    kept = {r for one in table.bins for r in (*one.preferred, *one.elsewhere)}
    left = []
    for replica in sorted(table.home.keys() - kept):
        home = table.home[replica]
        if home.can_take(replica):
            home.take(replica, home.preferred)
            home.new.add(replica)
            continue
        taker = next((one for one in table.offered(replica) if one.can_take(replica)), None)
        if taker is None:
            taker = _with_room_made(table, replica)
        if taker is None:
            left.append(replica)
        else:
            taker.take(replica, taker.elsewhere)
            taker.new.add(replica)
    return left


def _with_room_made(table: Table, replica: Replica) -> Bin | None:
    """Move one unit of capacity from a node that may not take the replica to one that may."""
    giver = taker = None
    for one in table.offered(replica):
        if one.ceiling:
            if giver is None and one.capacity > one.held and not one.may_take(replica):
                giver = one
        elif taker is None and one.capacity == one.held and one.may_take(replica):
            taker = one
    if giver is None or taker is None:
        return None
    giver.capacity, giver.ceiling = giver.capacity - 1, False
    taker.capacity, taker.ceiling = taker.capacity + 1, True
    return taker


def _go_home(table: Table, strangers: dict[Replica, Bin]) -> None:
    """Move replicas home from nodes that hold too many to homes that have room."""
    for replica, one in strangers.items():
        home = table.home[replica]
        if one.held > one.capacity and home.can_take(replica):
            one.give(replica)
            home.take(replica, home.preferred)
            home.new.add(replica)


def _relieve(table: Table) -> None:
    """Move replicas from nodes that hold too many to any with room."""
    for one in table.live:
        for replica in sorted(one.elsewhere):
            if one.held <= one.capacity:
                break
            taker = next((s for s in table.offered(replica) if s.can_take(replica)), None)
            if taker is not None:
                one.give(replica)
                taker.take(replica, taker.elsewhere)  # listed as one that is there, by Helix too


def _force(table: Table, orphans: list[Replica], most: int | None) -> None:
    """Give what is left to nodes that may take it, whatever their capacity."""
    for replica in orphans:
        taker, least = None, np.iinfo(np.int32).max
        for one in table.live:
            has_room = most is None or one.held < most
            # capacity beside what others are over theirs: the original compares the two
            better = taker is None or one.capacity < least
            if better and has_room and one.may_take(replica):
                taker = one
                least = min(one.held - one.capacity, least)
        if taker is not None:
            taker.take(replica, taker.elsewhere)
            taker.new.add(replica)


def _lists(table: Table, partitions: int) -> list[tuple[list[int], list[int]]]:
    """For each partition in the order of names the nodes that held it before, and the new ones."""
    lists: list[tuple[list[int], list[int]]] = [([], []) for _ in range(partitions)]
    for hand in ("preferred", "elsewhere"):
        for one in table.live:
            for replica in getattr(one, hand):
                lists[replica.place][replica in one.new].append(one.node)
    return lists


def _in_states(lists: list[tuple[list[int], list[int]]], states: Sequence[int]) -> list[list[int]]:
    """Order each list so that every node is in each state about equally often."""
    state_of = [s for s, count in enumerate(states) for _ in range(count)]
    counts: dict[tuple[int, int], int] = {}
    rows: list[list[int]] = [[] for _ in lists]
    for part in (0, 1):
        for row, both in zip(rows, lists, strict=True):
            left = list(both[part])
            for state in state_of[: len(left)]:
                node = min(left, key=lambda n, s=state: counts.get((n, s), 0))  # type: ignore[misc]
                left.remove(node)
                row.append(node)
                counts[node, state] = counts.get((node, state), 0) + 1
    return rows


class Answer(NamedTuple):
    """The result of a strategy for one resource."""

    # (P, R) places of nodes in the site, -1 at the end of short lists; None if it gives no answer
    placed: NDArray[np.int32] | None
    note: str  # what a person should know, "" for nothing


# answer for a resource skipped after the time limit; one warning counts them
STOPPED = Answer(None, "")

# places the resources of a site on its nodes, of which the tree marks the live ones
Place = Callable[[Site, Tree], Sequence[Answer]]


class Clock:
    """Asks the watch of a request before each group, and keeps its reason to stop."""

    def __init__(self, request: Request) -> None:
        self._watch = request.watch
        self._asked = 0
        self.reason: StopReason | None = None

    def ask(self) -> None:
        """Raise ``OutOfTime`` if there is a reason to stop."""
        if self.reason is None:
            self.reason = self._watch.look(self._asked)
            self._asked += 1
        if self.reason is not None:
            raise OutOfTime

    def before(self, strategy: Base) -> Base:
        """Let a strategy be asked for only while there is time."""

        def asked(*given: Any) -> NDArray[np.int32]:
            self.ask()
            return strategy(*given)

        return asked


def helix_crush(request: Request) -> Outcome:
    """Place every group by CRUSH."""
    options, clock = request.options, Clock(request)
    assert isinstance(options, Crush)
    return _outcome(request, options, clock, options.zone, _one_by_one(_as_is(clock.before(crush))))


def helix_multiround(request: Request) -> Outcome:
    """Place every group by MultiRoundCRUSH."""
    options, clock = request.options, Clock(request)
    assert isinstance(options, MultiRound)
    if options.repaired:

        def repaired_one(resource: Resource, tree: Tree) -> Answer:
            clock.ask()
            return _repaired_multiround(resource, tree)

        return _outcome(request, options, clock, options.zone, _one_by_one(repaired_one))
    place = _one_by_one(_as_is(clock.before(multiround)))
    return _outcome(request, options, clock, options.zone, place, zoned=True)


def helix_crushed(request: Request) -> Outcome:
    """Place every group by CRUSH-ed."""
    options, clock = request.options, Clock(request)
    assert isinstance(options, Crushed)
    bases: dict[object, Base] = {
        "crush": crush,
        "multiround": multiround_anywhere if options.repaired else multiround,
    }
    base = bases[options.base] if isinstance(options.base, str) else options.base
    if options.repaired:
        place = _all_together(clock.before(base))
        return _outcome(request, options, clock, options.zone, place)

    def one(resource: Resource, tree: Tree) -> Answer:
        clock.ask()
        found = crushed(resource.partitions, tree, resource.states, resource.name, base)
        note = f"fell back to the base strategy: {found.fell_back}" if found.fell_back else ""
        return Answer(found.placed, note)

    return _outcome(request, options, clock, options.zone, _one_by_one(one))


def helix_auto(request: Request) -> Outcome:
    """Deal every group from where it is, blind to fault zones and weights."""
    options, clock = request.options, Clock(request)
    assert isinstance(options, Auto)
    start = request.start

    def place(site: Site, tree: Tree) -> Sequence[Answer]:
        at = np.full(len(request.cluster.nodes) + 1, -1)
        # instances that are gone have no states
        there = site.nodes[request.cluster.nodes.alive[site.nodes]]
        at[there] = np.flatnonzero(request.cluster.nodes.alive[site.nodes])
        local = at[start.node]

        def one(resource: Resource, tree: Tree) -> Answer:
            clock.ask()
            current = [local[start.first[p] : start.first[p + 1]] for p in resource.rows]
            held = [row[row >= 0].tolist() for row in current]
            placed = legacy_auto(
                resource.partitions, tree.names, tree.live, resource.states, held, options.most
            )
            return Answer(placed, "")

        return _one_by_one(one)(site, tree)

    return _outcome(request, options, clock, "node", place)


def _as_is(strategy: Base) -> Callable[[Resource, Tree], Answer]:
    """Let a strategy answer for one resource."""

    def one(resource: Resource, tree: Tree) -> Answer:
        return Answer(strategy(resource.partitions, tree, resource.states), "")

    return one


def _repaired_multiround(resource: Resource, tree: Tree) -> Answer:
    try:
        placed = multiround_anywhere(resource.partitions, tree, resource.states)
    except NotEnoughZones as reason:
        placed = crush(resource.partitions, tree, resource.states)
        return Answer(placed, f"fell back to CRUSH: {reason}")
    return Answer(placed, "")


def _one_by_one(one: Callable[[Resource, Tree], Answer]) -> Place:
    """Place the resources of a site by themselves; one that is refused does not stop the others."""

    def place(site: Site, tree: Tree) -> list[Answer]:
        answers = []
        for resource in site.resources:
            try:
                answers.append(one(resource, tree))
            except OutOfTime:
                answers.append(STOPPED)
            except HelixError as reason:
                answers.append(Answer(None, f"stays as it is: {reason}"))
        return answers

    return place


def _all_together(base: Base) -> Place:
    """Deal the resources of a site as one."""

    def place(site: Site, tree: Tree) -> list[Answer]:
        groups = [Group(r.name, r.partitions, r.states) for r in site.resources]
        try:
            placed = crushed_together(groups, tree, base).placed
        except OutOfTime:
            return [STOPPED] * len(groups)
        except HelixError as reason:
            return [Answer(None, f"stays as it is: {reason}")] * len(groups)
        return [Answer(rows, "") for rows in placed]

    return place


def _outcome(
    request: Request,
    options: States,
    clock: Clock,
    zone: str | None,
    place: Place,
    *,
    zoned: bool = False,
) -> Outcome:
    """Place all sites of a cluster, and put the lists into its slots."""
    cluster = request.cluster
    found = sites(cluster, options, zone)
    _check(found, zoned)
    first, start = cluster.placement.first, request.start
    node = np.full(len(start.node), -1, np.int32)
    stays = np.zeros(len(cluster.partitions), np.bool_)
    notes = []
    for site in found:
        answers = _with_delay(cluster, site, place)
        for resource, (placed, note) in zip(site.resources, answers, strict=True):
            if placed is None:
                stays[resource.rows] = True
            else:
                slots = first[resource.rows, None] + np.arange(placed.shape[1])
                node[slots] = renumbered(placed, site.nodes)
                short = int(np.count_nonzero((placed < 0).any(axis=1)))
                note = note or (f"{short} short lists" if short else "")
            if note:
                notes.append(f"group {resource.name!r} {note}.")
    if clock.reason is not None:
        notes.append(f"Stopped early: {int(stays.sum()):,} partitions stay as they are.")
    beat()
    node = np.where(stays[start.owner], start.node, node)
    leader = np.where(stays, start.leader, leaders(cluster, node)).astype(np.int16)
    node, leader = request.keep_pinned(node, leader)
    return Outcome(
        node=node,
        leader=leader,
        stop_reason=clock.reason or "exhausted",
        message=" ".join(notes),
        warnings=_disabled_warning(cluster, node),
    )


def _check(found: list[Site], zoned: bool) -> None:
    """Refuse a lack of fault zones that are needed."""
    faults = FaultList()
    for site in found:
        if zoned and site.tree.zone_names is None:
            name = site.resources[0].name
            faults.add(f"group[{name!r}]", "node", "needs a tier of fault zones above the nodes")
    faults.raise_if_any()


def _with_delay(cluster: Cluster, site: Site, place: Place) -> Sequence[Answer]:
    """Place on the live nodes and, where others keep their places, on the active ones too."""
    on_live = place(site, site.with_live(site.live))
    if np.array_equal(site.live, site.active):
        return on_live
    answers = []
    on_active = place(site, site.with_live(site.active))
    for resource, now, kept in zip(site.resources, on_live, on_active, strict=True):
        if now is STOPPED or kept is STOPPED:
            answers.append(STOPPED)
            continue
        if now.placed is None or kept.placed is None:
            answers.append(kept if now.placed is None else now)
            continue
        least = cluster.partitions.min_active[resource.rows]
        lists = with_places_kept(kept.placed, now.placed, site.live, least)
        answers.append(Answer(lists, now.note or kept.note))
    return answers


def leaders(cluster: Cluster, node: NDArray[np.int32]) -> NDArray[np.int16]:
    """Let the first replica of each list lead whose node is live and not disabled for it."""
    placement, nodes = cluster.placement, cluster.nodes
    leader = np.full(len(placement), -1, np.int16)
    if not has_leaders(cluster):
        return leader
    may = np.append(enabled(nodes) & nodes.may_lead, False)[node]
    beat()
    may &= (placement.role == Role.VOTER) & ~disabled(cluster, node)
    beat()
    able = np.flatnonzero(may)[::-1]  # of several writes to one place the last one stays
    owner = placement.owner[able]
    leader[owner] = able - placement.first[owner]
    return leader


def disabled(cluster: Cluster, node: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Tell which replicas stand on a node that is disabled for their partition."""
    if len(cluster.forbidden) == 0:
        return np.zeros(len(node), np.bool_)
    count = len(cluster.nodes)
    pairs = cluster.forbidden[:, 0].astype(np.int64) * count + cluster.forbidden[:, 1]
    own = cluster.placement.owner.astype(np.int64) * count + node
    return np.asarray((node >= 0) & np.isin(own, pairs))


def _disabled_warning(cluster: Cluster, node: NDArray[np.int32]) -> tuple[str, ...]:
    count = int(np.count_nonzero(disabled(cluster, node)))
    if count == 0:
        return ()
    return (f"{count} replicas stay offline on nodes where their partition is disabled",)


def with_places_kept(
    active: NDArray[np.int32],
    on_live: NDArray[np.int32],
    live: NDArray[np.bool_],
    min_active: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Keep the lists on active nodes where enough of each list is live, and top up the others."""
    replicas = active.shape[1]
    alive = (active >= 0) & live[active]
    short = np.count_nonzero(alive, axis=1) < min_active
    kept = active.copy()
    everything = min_active >= replicas
    kept[everything] = on_live[everything]
    for p in np.flatnonzero(short & ~everything):
        row = active[p, alive[p]].tolist()
        fresh = [node for node in on_live[p].tolist() if node >= 0 and node not in active[p]]
        row += fresh[: min_active[p] - len(row)]
        kept[p] = row + [-1] * (replicas - len(row))
    return kept
