"""Build placement arrays from parsed entries, or directly from a file in Kafka's usual layout.

Most files are as Kafka's tools print them, and are parsed as a whole. Other files, wrong or rare,
are read line by line, with a message for each problem.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.csv_text import number_lists, whole_numbers
from evenkeel.systems.documents import Document
from evenkeel.systems.kafka.findings import Replicas, TopicPartition

UNKNOWN = -2  # marks an unknown leader: the first replica is preferred
CHUNK = 2**21  # bytes of a description that are parsed at a time
# a topic line with the line end before it, which speeds up the search
TOPIC_LINE = re.compile(
    rb"\nTopic: ?([^\t\n]++)\t(?:TopicId: [^\t\n]*+\t)?PartitionCount: ?([0-9]{1,9})\t"
    rb"ReplicationFactor: ?([0-9]{1,9})\tConfigs: ?([^\t\n\r]*+)\r?$",
    re.MULTILINE,
)

PARTITION_LINE = re.compile(
    rb"^\tTopic: ([^\t\n]++)\tPartition: ([0-9]{1,9})\tLeader: ([0-9]{1,9}|none|-1)\t"
    rb"Replicas: ([0-9,]++)\tIsr: ([0-9,]*+)(?:\tElr: [0-9,]*+\tLastKnownElr: [0-9,]*+)?+\r?$",
    re.MULTILINE,
)
MIN_IN_SYNC = re.compile(rb"(?:^|,)min\.insync\.replicas=([0-9]{1,9})(?:,|$)")


@dataclass
class Rows:
    """Partitions sorted by topic and number, with their replicas in Kafka's order."""

    topics: list[str]  # sorted
    # topic, number: (P,) partition of each row
    topic: NDArray[np.int32]
    number: NDArray[np.int32]
    first: NDArray[np.int64]  # (P + 1,) offset of its replicas
    broker: NDArray[np.int32]  # (K,) their brokers
    leader: NDArray[np.int32]  # (P,) leader; -1 for none, ``UNKNOWN`` where it is not given
    described: NDArray[np.bool_]  # (P,) rows with a known ISR
    # in_sync, adding, removing, observing: (K,) state of each replica
    in_sync: NDArray[np.bool_]
    adding: NDArray[np.bool_]
    removing: NDArray[np.bool_]
    observing: NDArray[np.bool_]
    path: Callable[[int], str]  # returns the place of a row in the file
    # folders of the replicas, by row, where given
    log_dirs: Mapping[int, Sequence[str]] = field(default_factory=dict)
    min_in_sync: Mapping[str, int] = field(default_factory=dict)  # ``min.insync.replicas`` by topic
    # replication factor by topic, of topics with a header line
    factor: Mapping[str, int] = field(default_factory=dict)

    @property
    def owner(self) -> NDArray[np.int32]:
        """Row of each replica, (K,) int32."""
        return np.repeat(np.arange(len(self.topic), dtype=np.int32), np.diff(self.first))

    def without(self, gone: NDArray[np.bool_]) -> "Rows":
        """Return rows without the replicas ``gone (K,)``; a lost leader becomes ``UNKNOWN``."""
        stays = ~gone
        columns = {
            name: getattr(self, name)[stays]
            for name in ("broker", "in_sync", "adding", "removing", "observing")
        }
        led = np.repeat(self.leader, np.diff(self.first)) == self.broker
        leader = self.leader.copy()
        leader[self.owner[led & gone]] = UNKNOWN
        first = np.concatenate([[0], np.cumsum(stays)])[self.first]
        return replace(self, first=first, leader=leader, log_dirs={}, **columns)

    def names(self) -> list[str]:
        """Return the names of the partitions."""
        # topic by topic: one list of all numbers would take as much memory as the names
        ends = np.searchsorted(self.topic, np.arange(len(self.topics) + 1, dtype=np.int32)).tolist()
        return [
            f"{topic}-{number}"
            for topic, begin, end in zip(self.topics, ends, ends[1:], strict=False)
            for number in self.number[begin:end].tolist()
        ]


def rows_of(
    given: Mapping[TopicPartition, Replicas],
    min_in_sync: Mapping[str, int],
    factor: Mapping[str, int],
) -> Rows:
    """Return entries read one by one as arrays."""
    keys = sorted(given)
    rows = [given[key] for key in keys]
    topics = sorted({key.topic for key in keys})
    place = {topic: g for g, topic in enumerate(topics)}

    def marks(name: str) -> NDArray[np.bool_]:
        found = (broker in (getattr(row, name) or ()) for row in rows for broker in row.brokers)
        return np.fromiter(found, np.bool_)

    return Rows(
        topics,
        np.array([place[key.topic] for key in keys], np.int32),
        np.array([key.number for key in keys], np.int32),
        _starts([len(row.brokers) for row in rows]),
        np.array([broker for row in rows for broker in row.brokers], np.int32),
        np.array([UNKNOWN if row.leader is None else row.leader for row in rows], np.int32),
        np.array([row.in_sync is not None for row in rows], np.bool_),
        marks("in_sync"),
        marks("adding"),
        marks("removing"),
        marks("observing"),
        lambda p: rows[p].path,
        {p: row.log_dirs for p, row in enumerate(rows) if row.log_dirs},
        min_in_sync,
        factor,
    )


class _Part(NamedTuple):
    """Partitions of a part of a description, in its order; topics numbered by appearance."""

    topic: NDArray[np.int32]
    number: NDArray[np.int32]
    leader: NDArray[np.int32]
    width: NDArray[np.int32]
    broker: NDArray[np.int32]
    in_sync: NDArray[np.bool_]


def rows_of_description(document: Document) -> Rows | None:
    """Parse a whole description; None if any of it is irregular."""
    names: dict[bytes, int] = {}
    announced: dict[bytes, int] = {}
    least: dict[str, int] = {}
    factor: dict[str, int] = {}
    parts: list[_Part] = []
    data = document.data
    if b"..." in data:  # rows may have been left out
        return None
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
    """Return lines of partitions as arrays; None if a line contradicts itself."""
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
    known = _keys(*synced)
    if not within(np.sort(keys), known).all():
        return None
    return _Part(
        np.fromiter(map(names.__getitem__, topic), np.int32, len(topic)),
        whole_numbers(b",".join(numbers)).astype(np.int32),
        leader.astype(np.int32),
        held[0].astype(np.int32),
        held[1].astype(np.int32),
        within(np.sort(known), keys),
    )


def _agreeing(
    leader: NDArray[np.integer], width: NDArray[np.integer], broker: NDArray[np.integer]
) -> NDArray[np.int64] | None:
    """Return a key for each replica; None if a row lists a broker twice or lacks its leader."""
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
    """Return the entries of a reassignment as arrays; None if any is wrong."""
    names: dict[str, int] = {}
    topic = np.fromiter((names.setdefault(one.topic, len(names)) for one in entries), np.int32)
    number = np.fromiter((one.partition for one in entries), np.int32)
    width = np.fromiter((len(one.replicas) for one in entries), np.int32)
    broker = np.fromiter(chain.from_iterable(one.replicas for one in entries), np.int32)
    with_dirs = [i for i, one in enumerate(entries) if one.log_dirs]
    if number.min(initial=0) < 0 or broker.min(initial=0) < 0:
        return None
    if any(len(entries[i].log_dirs or ()) != width[i] for i in with_dirs):
        return None
    leader = np.full(len(topic), UNKNOWN, np.int32)
    if _agreeing(leader, width, broker) is None:
        return None
    none = np.zeros(len(broker), np.bool_)
    part = _Part(topic, number, leader, width, broker, none)
    found = _sorted_rows([*names], part, described=False)
    if found is None:
        return None
    rows, order = found
    rows.path = lambda p: f"{name}: partitions[{order[p]}].replicas"
    if with_dirs:
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        rows.log_dirs = {int(place[i]): entries[i].log_dirs or () for i in with_dirs}
    return rows


def _stretches(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the bounds of parts of whole lines."""
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
    """Return a key for each replica of rows of the given widths."""
    return keys_of(np.repeat(np.arange(len(width)), width), broker)


def keys_of(row: NDArray[np.integer], broker: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return a key for each pair of a row and a broker."""
    keys: NDArray[np.int64] = row.astype(np.int64) << 31 | broker
    return keys


def _sorted_rows(
    topics: list[str], part: _Part, *, described: bool
) -> tuple[Rows, NDArray[np.intp]] | None:
    """Return rows sorted by topic and number, and their order; None if one comes twice."""
    rank = np.empty(len(topics), np.int32)
    rank[np.argsort(np.array(topics, object), kind="stable")] = np.arange(len(topics))
    topic = rank[part.topic]
    order = np.lexsort((part.number, topic))
    topic, number, width = topic[order], part.number[order], part.width[order]
    if ((topic[1:] == topic[:-1]) & (number[1:] == number[:-1])).any():
        return None
    first = _starts(width)
    begin = (_starts(part.width)[:-1][order] - first[:-1]).astype(np.int32)
    at = np.arange(len(part.broker), dtype=np.int32)
    at += np.repeat(begin, width)
    none = np.zeros(len(at), np.bool_)
    rows = Rows(
        sorted(topics), topic, number, first, part.broker[at], part.leader[order],
        np.full(len(topic), described), part.in_sync[at], none, none, none, str,
    )  # fmt: skip
    return rows, order


def within(known: NDArray[np.int64], asked: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which numbers are among sorted known ones."""
    if not len(known):
        return np.zeros(len(asked), np.bool_)
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return np.equal(known[at], asked)
