"""Helix's first automatic strategy: card dealing on a given mapping, blind to zones and weights.

What is where it prefers to be stays; what is elsewhere stays while its node has room; the rest is
dealt by capacity. The result depends on the mapping it starts from.

References
----------
Apache Helix, ``AutoRebalanceStrategy``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.helix.crush.hashed import HashedNames, map_order, text_order


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
    held: int = 0
    """Replicas that it holds, with those of partitions that have more than are wanted."""

    live: bool = False
    capacity: int = 0
    ceiling: bool = False
    preferred: list[Replica] = field(default_factory=list)
    elsewhere: list[Replica] = field(default_factory=list)
    places: set[int] = field(default_factory=set)
    new: set[Replica] = field(default_factory=set)
    """Replicas that partitions list behind those that they have."""

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
