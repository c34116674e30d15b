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

from evenkeel.systems.helix.crush.hashed import HashedNames
from evenkeel.systems.helix.crush.java_order import map_order, text_order


class Replica(NamedTuple):
    """One replica, by the fields that the strategy compares.

    Attributes
    ----------
    place : int
        Place of the partition in the order of names.
    number : int
        Number of the replica, from 0.
    """

    place: int
    number: int


@dataclass(eq=False)
class Bin:
    """A node at the table."""

    node: int
    live: bool = False
    capacity: int = 0
    ceiling: bool = False
    preferred: list[Replica] = field(default_factory=list)
    elsewhere: list[Replica] = field(default_factory=list)
    places: set[int] = field(default_factory=set)

    @property
    def held(self) -> int:
        """How many replicas it holds."""
        return len(self.preferred) + len(self.elsewhere)

    def may_take(self, replica: Replica) -> bool:
        """Whether it is live and holds no replica of the partition."""
        return self.live and replica.place not in self.places

    def take(self, replica: Replica, hand: list[Replica]) -> None:
        """Take a replica into one of the two hands."""
        hand.append(replica)
        self.places.add(replica.place)

    def give(self, replica: Replica, hand: list[Replica]) -> None:
        """Give a replica out of one of the two hands."""
        hand.remove(replica)
        self.places.remove(replica.place)

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
    """Place the partitions of a group by the legacy strategy.

    Examples
    --------
    >>> nodes = HashedNames.of(["n1", "n2", "n3"])
    >>> some = HashedNames.of(["p0", "p1", "p2"])
    >>> legacy_auto(some, nodes, np.ones(3, np.bool_), [1, 1]).tolist()
    [[0, 1], [1, 2], [2, 0]]
    """
    replicas = sum(states)
    placed = np.full((len(partitions), replicas), -1, np.int32)
    if not live.any() or replicas == 0:
        return placed
    order = text_order(partitions.names)
    # a node may hold a partition more than once, which Helix does not know: there it holds it once
    before = [list(dict.fromkeys(current[p])) if current else [] for p in order]
    table = _lay(partitions, nodes, live, replicas, before, most)
    orphans = _keep(table, before)
    orphans = _assign(table, orphans)
    _go_home(table)
    _relieve(table)
    _force(table, orphans, most)
    lists = _lists(table, nodes, before)
    for place, row in enumerate(_in_states(lists, states)):
        placed[order[place], : len(row)] = row
    return placed


def _lay(
    partitions: HashedNames,
    nodes: HashedNames,
    live: NDArray[np.bool_],
    replicas: int,
    before: list[list[int]],
    most: int | None,
) -> Table:
    """Give every live node its capacity, and every replica its home."""
    bins = [Bin(n) for n in range(len(nodes))]
    by_name = [bins[n] for n in text_order(nodes.names)]
    held = np.bincount([n for row in before for n in row], minlength=len(bins))
    alive = sorted((one for one in by_name if live[one.node]), key=lambda s: -held[s.node])
    least, over = divmod(replicas * len(partitions), len(alive))
    limit = np.iinfo(np.int64).max if most is None else most
    for one in alive:
        one.live = True
        one.ceiling = over > 0 and least < limit
        one.capacity = min(least, limit) + one.ceiling
        over -= one.ceiling
    home, start = {}, {}
    for place, p in enumerate(text_order(partitions.names).tolist()):
        for number in range(replicas):
            at = _preferred(p, number, len(partitions), len(bins))
            home[Replica(place, number)] = by_name[at]
        text = partitions.names[p]
        asked = HashedNames.of([f"{text}|{number}" for number in range(replicas)])
        start[place] = tuple(((asked.hash & 0x7FFFFFFF) % len(alive)).tolist())
    return Table(bins, alive, home, start)


def _preferred(i: int, k: int, partitions: int, nodes: int) -> int:
    """Deal replica ``k`` of the i-th partition to the nodes in the order of their names."""
    if nodes > partitions:
        return (i + k * partitions) % nodes
    if nodes == partitions:
        return ((i + k * partitions) % nodes + k) % nodes
    return (i + k) % nodes


def _keep(table: Table, before: list[list[int]]) -> list[Replica]:
    """Leave what is on live nodes there; return the replicas that are nowhere."""
    left = dict.fromkeys(table.home)
    numbers = range(1 + max((replica.number for replica in table.home), default=-1))
    for place, row in enumerate(before):
        holders = [table.bins[n] for n in row if table.bins[n].live]
        strangers = []
        for one in holders:
            own = [Replica(place, k) for k in numbers]
            fitting = [r for r in own if r in left and table.home[r] is one]
            if fitting:
                one.take(fitting[0], one.preferred)
                del left[fitting[0]]
            else:
                strangers.append(one)
        for one in strangers:
            fitting = [Replica(place, k) for k in numbers if Replica(place, k) in left]
            if fitting:
                one.take(fitting[0], one.elsewhere)
                del left[fitting[0]]
    return list(left)


def _assign(table: Table, orphans: list[Replica]) -> list[Replica]:
    """Give orphans a node with room, or make room for them; return those that found none."""
    left = []
    for replica in orphans:
        home = table.home[replica]
        if home.can_take(replica):
            home.take(replica, home.preferred)
            continue
        taker = next((one for one in table.offered(replica) if one.can_take(replica)), None)
        if taker is None:
            taker = _with_room_made(table, replica)
        if taker is None:
            left.append(replica)
        else:
            taker.take(replica, taker.elsewhere)
    return left


def _with_room_made(table: Table, replica: Replica) -> Bin | None:
    """Move one unit of capacity from a node that may not take the replica to one that may."""
    for giver in table.live:
        if giver.ceiling and giver.capacity > giver.held and not giver.may_take(replica):
            for taker in table.live:
                if not taker.ceiling and taker.may_take(replica):
                    giver.capacity -= 1
                    giver.ceiling = False
                    taker.capacity += 1
                    taker.ceiling = True
                    return taker
    return None


def _go_home(table: Table) -> None:
    """Move replicas home from nodes that hold too many to homes that have room."""
    for one in table.live:
        for replica in sorted(one.elsewhere):
            home = table.home[replica]
            if one.held > one.capacity and home.can_take(replica):
                one.give(replica, one.elsewhere)
                home.take(replica, home.preferred)


def _relieve(table: Table) -> None:
    """Move replicas from nodes that hold too many to any with room, strangers first."""
    for one in table.live:
        for hand in (one.elsewhere, one.preferred):
            for replica in sorted(hand):
                if one.held <= one.capacity:
                    break
                taker = next((s for s in table.offered(replica) if s.can_take(replica)), None)
                if taker is not None:
                    one.give(replica, hand)
                    taker.take(replica, taker.elsewhere)


def _force(table: Table, orphans: list[Replica], most: int | None) -> None:
    """Give what is left to the nodes that are least over their capacity."""
    for replica in orphans:
        takers = [s for s in table.live if s.may_take(replica) and (most is None or s.held < most)]
        if takers:
            taker = min(takers, key=lambda one: one.held - one.capacity)
            taker.take(replica, taker.elsewhere)


def _lists(
    table: Table, nodes: HashedNames, before: list[list[int]]
) -> list[tuple[list[int], list[int]]]:
    """For each partition in the order of names the nodes that held it before, and the new ones."""
    lists: list[tuple[list[int], list[int]]] = [([], []) for _ in before]
    for n in map_order(nodes.hash).tolist():
        one = table.bins[n]
        for replica in (*one.preferred, *one.elsewhere):
            old, new = lists[replica.place]
            (old if n in before[replica.place] else new).append(n)
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
