"""Where replicas are, as arrays: from what was found one by one, or at once from a regular file.

Most files are as Kafka's tools print them and are read in one go. Whatever is unlike that, wrong
or merely rare, is left to those who read line by line and can say what it is.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.documents import Document
from evenkeel.systems.kafka.findings import Replicas, TopicPartition
from evenkeel.systems.number_lists import number_lists, whole_numbers

UNSAID = -2
"""Stands for a leader of which nothing is said: the first replica is preferred."""

CHUNK = 2**21
"""Bytes of a description that are taken apart at a time."""

TOPIC_LINE = re.compile(
    rb"\nTopic: ?([^\t\n]++)\t(?:TopicId: [^\t\n]*+\t)?PartitionCount: ?([0-9]{1,9})\t"
    rb"ReplicationFactor: ?([0-9]{1,9})\tConfigs: ?([^\t\n\r]*+)\r?$",
    re.MULTILINE,
)
"""A topic, with the end of the line before: a text that begins with a letter is found fast."""

PARTITION_LINE = re.compile(
    rb"^\tTopic: ([^\t\n]++)\tPartition: ([0-9]{1,9})\tLeader: ([0-9]{1,9}|none|-1)\t"
    rb"Replicas: ([0-9,]++)\tIsr: ([0-9,]*+)(?:\tElr: [0-9,]*+\tLastKnownElr: [0-9,]*+)?+\r?$",
    re.MULTILINE,
)
MIN_IN_SYNC = re.compile(rb"(?:^|,)min\.insync\.replicas=([0-9]{1,9})(?:,|$)")


@dataclass
class Rows:
    """Partitions sorted by topic and number, with their replicas in Kafka's order.

    Parameters
    ----------
    topics : list of str
        Sorted.
    topic, number : ndarray of int32, shape (P,)
        Which partition each row is.
    first : ndarray of int64, shape (P + 1,)
        Where its replicas start.
    broker : ndarray of int32, shape (K,)
        Who holds them.
    leader : ndarray of int32, shape (P,)
        Broker that leads; -1 for none, ``UNSAID`` where nothing is said.
    described : ndarray of bool, shape (P,)
        Of which rows it is said who is in sync.
    in_sync, adding, removing, observing : ndarray of bool, shape (K,)
        What is said of each replica.
    path : callable
        Where a row stands.
    log_dirs : mapping of int to sequence of str
        Folders of the replicas of those rows that tell them.
    min_in_sync : mapping of str to int
        ``min.insync.replicas`` by topic.
    factor : mapping of str to int
        Replication factor by topic, of those that a line of their own announces.
    """

    topics: list[str]
    topic: NDArray[np.int32]
    number: NDArray[np.int32]
    first: NDArray[np.int64]
    broker: NDArray[np.int32]
    leader: NDArray[np.int32]
    described: NDArray[np.bool_]
    in_sync: NDArray[np.bool_]
    adding: NDArray[np.bool_]
    removing: NDArray[np.bool_]
    observing: NDArray[np.bool_]
    path: Callable[[int], str]
    log_dirs: Mapping[int, Sequence[str]] = field(default_factory=dict)
    min_in_sync: Mapping[str, int] = field(default_factory=dict)
    factor: Mapping[str, int] = field(default_factory=dict)

    @property
    def owner(self) -> NDArray[np.int32]:
        """Row of each replica, (K,) int32."""
        return np.repeat(np.arange(len(self.topic), dtype=np.int32), np.diff(self.first))

    def without(self, gone: NDArray[np.bool_]) -> "Rows":
        """Return rows that lack the replicas ``gone (K,)``; the first of the others leads then."""
        stays = ~gone
        columns = {
            name: getattr(self, name)[stays]
            for name in ("broker", "in_sync", "adding", "removing", "observing")
        }
        led = np.repeat(self.leader, np.diff(self.first)) == self.broker
        leader = self.leader.copy()
        leader[self.owner[led & gone]] = UNSAID
        first = np.concatenate([[0], np.cumsum(stays)])[self.first]
        return replace(self, first=first, leader=leader, log_dirs={}, **columns)

    def names(self) -> list[str]:
        """Return the names of the partitions."""
        # topic by topic: a list of the numbers of all of them would take as much as the names
        ends = np.searchsorted(self.topic, np.arange(len(self.topics) + 1, dtype=np.int32)).tolist()
        return [
            f"{topic}-{number}"
            for topic, begin, end in zip(self.topics, ends, ends[1:], strict=False)
            for number in self.number[begin:end].tolist()
        ]


def rows_of(
    found: Mapping[TopicPartition, Replicas],
    min_in_sync: Mapping[str, int],
    factor: Mapping[str, int],
) -> Rows:
    """Lay out what was found one by one."""
    keys = sorted(found)
    rows = [found[key] for key in keys]
    topics = sorted({key.topic for key in keys})
    place = {topic: g for g, topic in enumerate(topics)}

    def said(name: str) -> NDArray[np.bool_]:
        marks = (broker in (getattr(row, name) or ()) for row in rows for broker in row.brokers)
        return np.fromiter(marks, np.bool_)

    return Rows(
        topics,
        np.array([place[key.topic] for key in keys], np.int32),
        np.array([key.number for key in keys], np.int32),
        _starts([len(row.brokers) for row in rows]),
        np.array([broker for row in rows for broker in row.brokers], np.int32),
        np.array([UNSAID if row.leader is None else row.leader for row in rows], np.int32),
        np.array([row.in_sync is not None for row in rows], np.bool_),
        said("in_sync"),
        said("adding"),
        said("removing"),
        said("observing"),
        lambda p: rows[p].path,
        {p: row.log_dirs for p, row in enumerate(rows) if row.log_dirs},
        min_in_sync,
        factor,
    )


class _Part(NamedTuple):
    """Partitions of a stretch of a description, in its order; topics by the order they come in."""

    topic: NDArray[np.int32]
    number: NDArray[np.int32]
    leader: NDArray[np.int32]
    width: NDArray[np.int32]
    broker: NDArray[np.int32]
    in_sync: NDArray[np.bool_]


def rows_of_description(document: Document) -> Rows | None:
    """Take a description apart at once; None if any of it is unlike what Kafka prints."""
    names: dict[bytes, int] = {}
    announced: dict[bytes, int] = {}
    least: dict[str, int] = {}
    factor: dict[str, int] = {}
    parts: list[_Part] = []
    data = document.data
    for stretch in _stretches(data):
        headers = TOPIC_LINE.findall(b"\n" + data[slice(*stretch)])
        lines = PARTITION_LINE.findall(data, *stretch)
        if len(headers) + len(lines) != data.count(b"Topic:", *stretch):
            return None
        for name, count, replicas, configs in headers:
            set_to = MIN_IN_SYNC.search(configs)
            if name in announced or (set_to is None and b"min.insync.replicas" in configs):
                return None
            announced[name] = int(count)
            factor[name.decode("utf-8", "replace")] = int(replicas)
            if set_to is not None:
                least[name.decode("utf-8", "replace")] = int(set_to[1])
        if lines and (part := _part(names, lines)) is None:
            return None
        parts += [part] if lines and part else []
    if not parts:
        return None
    whole = _Part(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    del parts
    counts = np.bincount(whole.topic, minlength=len(names))
    if announced and announced != dict(zip(names, counts.tolist(), strict=True)):
        return None
    try:
        labels = [name.decode() for name in names]
    except UnicodeDecodeError:
        return None
    found = _sorted_rows(labels, whole, described=True)
    if found is None:
        return None
    rows = found[0]
    rows.min_in_sync, rows.factor = least, factor
    topics, topic, number = rows.topics, rows.topic, rows.number

    def path(p: int) -> str:
        line = f"\tTopic: {topics[topic[p]]}\tPartition: {number[p]}\t"
        return f"{document.name}:{document.line_at(data.find(line.encode()) + 1)}"

    rows.path = path
    return rows


def _part(names: dict[bytes, int], lines: Sequence[tuple[bytes, ...]]) -> _Part | None:
    """Lay out the lines of some partitions; None if any of them contradicts itself."""
    topic, numbers, leaders, replicas, in_sync = zip(*lines, strict=True)
    for name in dict.fromkeys(topic):
        names.setdefault(name, len(names))
    held, synced = number_lists(replicas), number_lists(in_sync)
    if held is None or synced is None:
        return None
    leader = whole_numbers(b",".join(leaders).replace(b"none", b"-1"))
    keys = _agreeing(leader, *held)
    if keys is None:
        return None
    told = _keys(*synced)
    if not within(np.sort(keys), told).all():
        return None
    return _Part(
        np.fromiter(map(names.__getitem__, topic), np.int32, len(topic)),
        whole_numbers(b",".join(numbers)).astype(np.int32),
        leader.astype(np.int32),
        held[0].astype(np.int32),
        held[1].astype(np.int32),
        within(np.sort(told), keys),
    )


def _agreeing(
    leader: NDArray[np.integer], width: NDArray[np.integer], broker: NDArray[np.integer]
) -> NDArray[np.int64] | None:
    """Return a number for each replica; None if a row has a broker twice, or not who leads it."""
    keys = _keys(width, broker)
    known = np.sort(keys)
    led = np.flatnonzero(leader >= 0)
    once = (known[1:] != known[:-1]).all() and within(known, (led << 31) | leader[led]).all()
    return keys if once else None


class Entry(Protocol):
    """One entry of a reassignment."""

    topic: str
    partition: int
    replicas: list[int]
    log_dirs: list[str] | None


def rows_of_assignment(entries: Sequence[Entry], name: str) -> Rows | None:
    """Lay out the entries of a reassignment; None if anything is wrong with them."""
    names: dict[str, int] = {}
    topic = np.fromiter((names.setdefault(one.topic, len(names)) for one in entries), np.int32)
    number = np.fromiter((one.partition for one in entries), np.int32)
    width = np.fromiter((len(one.replicas) for one in entries), np.int32)
    broker = np.fromiter(chain.from_iterable(one.replicas for one in entries), np.int32)
    told = [i for i, one in enumerate(entries) if one.log_dirs]
    if number.min(initial=0) < 0 or broker.min(initial=0) < 0:
        return None
    if any(len(entries[i].log_dirs or ()) != width[i] for i in told):
        return None
    leader = np.full(len(topic), UNSAID, np.int32)
    if _agreeing(leader, width, broker) is None:
        return None
    unsaid = np.zeros(len(broker), np.bool_)
    part = _Part(topic, number, leader, width, broker, unsaid)
    found = _sorted_rows([*names], part, described=False)
    if found is None:
        return None
    rows, order = found
    rows.path = lambda p: f"{name}: partitions[{order[p]}].replicas"
    if told:
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        rows.log_dirs = {int(place[i]): entries[i].log_dirs or () for i in told}
    return rows


def _stretches(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where stretches of whole lines begin and end."""
    begin = 0
    while begin < len(data):
        end = data.find(b"\n", begin + CHUNK)
        end = len(data) if end < 0 else end + 1
        yield begin, end
        begin = end


def _starts(width: Sequence[int] | NDArray[np.integer]) -> NDArray[np.int64]:
    first = np.zeros(len(width) + 1, np.int64)
    np.cumsum(width, out=first[1:])
    return first


def _keys(width: NDArray[np.integer], broker: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return one number for each replica of rows of some widths."""
    return keys_of(np.repeat(np.arange(len(width)), width), broker)


def keys_of(row: NDArray[np.integer], broker: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return one number for each pair of a row and a broker."""
    keys: NDArray[np.int64] = row.astype(np.int64) << 31 | broker
    return keys


def _sorted_rows(
    topics: list[str], told: _Part, *, described: bool
) -> tuple[Rows, NDArray[np.intp]] | None:
    """Sort rows by topic and number, and return their order; None if one comes twice."""
    rank = np.empty(len(topics), np.int32)
    rank[np.argsort(np.array(topics, object), kind="stable")] = np.arange(len(topics))
    topic = rank[told.topic]
    order = np.lexsort((told.number, topic))
    topic, number, width = topic[order], told.number[order], told.width[order]
    if ((topic[1:] == topic[:-1]) & (number[1:] == number[:-1])).any():
        return None
    first = _starts(width)
    begin = (_starts(told.width)[:-1][order] - first[:-1]).astype(np.int32)
    at = np.arange(len(told.broker), dtype=np.int32)
    at += np.repeat(begin, width)
    none = np.zeros(len(at), np.bool_)
    rows = Rows(
        sorted(topics), topic, number, first, told.broker[at], told.leader[order],
        np.full(len(topic), described), told.in_sync[at], none, none, none, str,
    )  # fmt: skip
    return rows, order


def within(known: NDArray[np.int64], asked: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which numbers are among known ones that are sorted."""
    if not len(known):
        return np.zeros(len(asked), np.bool_)
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return np.equal(known[at], asked)
