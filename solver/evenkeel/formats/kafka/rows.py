"""Where replicas are, as arrays: from what was found one by one, or at once from a regular file.

Most files are as Kafka's tools print them and are read in one go. Whatever is unlike that, wrong
or merely rare, is left to those who read line by line and can say what it is.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evenkeel.formats.documents import Document
from evenkeel.formats.kafka.findings import Replicas, TopicPartition
from evenkeel.formats.number_lists import number_lists, whole_numbers

UNSAID = -2
"""Stands for a leader of which nothing is said: the first replica is preferred."""

CHUNK = 2**21
"""Bytes of a description that are taken apart at a time."""

TOPIC_LINE = re.compile(
    rb"^Topic: ?([^\t\n]++)\t(?:TopicId: [^\t\n]*+\t)?PartitionCount: ?([0-9]{1,9})\t"
    rb"ReplicationFactor: ?[0-9]++\tConfigs: ?([^\t\n\r]*+)\r?$",
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
    """Partitions sorted by topic and number, with their replicas in Kafka's order.

    Parameters
    ----------
    topics : list of str
        Sorted.
    topic, number : ndarray of int64, shape (P,)
        Which partition each row is.
    first : ndarray of int64, shape (P + 1,)
        Where its replicas start.
    broker : ndarray of int64, shape (K,)
        Who holds them.
    leader : ndarray of int64, shape (P,)
        Broker that leads; -1 for none, ``UNSAID`` where nothing is said.
    described : ndarray of bool, shape (P,)
        Of which rows it is said who is in sync.
    in_sync, adding, removing : ndarray of bool, shape (K,)
        What is said of each replica.
    path : callable
        Where a row stands.
    log_dirs : mapping of int to sequence of str
        Folders of the replicas of those rows that tell them.
    min_in_sync : mapping of str to int
        ``min.insync.replicas`` by topic.
    """

    topics: list[str]
    topic: NDArray[np.int64]
    number: NDArray[np.int64]
    first: NDArray[np.int64]
    broker: NDArray[np.int64]
    leader: NDArray[np.int64]
    described: NDArray[np.bool_]
    in_sync: NDArray[np.bool_]
    adding: NDArray[np.bool_]
    removing: NDArray[np.bool_]
    path: Callable[[int], str]
    log_dirs: Mapping[int, Sequence[str]] = field(default_factory=dict)
    min_in_sync: Mapping[str, int] = field(default_factory=dict)

    @property
    def owner(self) -> NDArray[np.int64]:
        """Row of each replica, (K,) int64."""
        return np.repeat(np.arange(len(self.topic)), np.diff(self.first))

    def names(self) -> list[str]:
        """Return the names of the partitions."""
        pairs = zip(self.topic.tolist(), self.number.tolist(), strict=True)
        return [f"{self.topics[t]}-{n}" for t, n in pairs]


def rows_of(found: Mapping[TopicPartition, Replicas], min_in_sync: Mapping[str, int]) -> Rows:
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
        np.array([place[key.topic] for key in keys], np.int64),
        np.array([key.number for key in keys], np.int64),
        _starts([len(row.brokers) for row in rows]),
        np.array([broker for row in rows for broker in row.brokers], np.int64),
        np.array([UNSAID if row.leader is None else row.leader for row in rows], np.int64),
        np.array([row.in_sync is not None for row in rows], np.bool_),
        said("in_sync"),
        said("adding"),
        said("removing"),
        lambda p: rows[p].path,
        {p: row.log_dirs for p, row in enumerate(rows) if row.log_dirs},
        min_in_sync,
    )


def rows_of_description(document: Document) -> Rows | None:
    """Take a description apart at once; None if any of it is unlike what Kafka prints."""
    names: dict[bytes, int] = {}
    announced: dict[bytes, int] = {}
    least: dict[str, int] = {}
    parts: list[tuple[NDArray[np.int64], ...]] = []
    for chunk in _chunks(document.data):
        headers = TOPIC_LINE.findall(chunk)
        lines = PARTITION_LINE.findall(chunk)
        if len(headers) + len(lines) != chunk.count(b"Topic:"):
            return None
        for topic, count, configs in headers:
            set_to = MIN_IN_SYNC.search(configs)
            if topic in announced or (set_to is None and b"min.insync.replicas" in configs):
                return None
            announced[topic] = int(count)
            if set_to is not None:
                least[topic.decode("utf-8", "replace")] = int(set_to[1])
        if not lines:
            continue
        topic, numbers, leaders, replicas, in_sync = zip(*lines, strict=True)
        for name in dict.fromkeys(topic):
            names.setdefault(name, len(names))
        lists = number_lists(replicas), number_lists(in_sync)
        if lists[0] is None or lists[1] is None:
            return None
        parts.append(
            (
                np.fromiter(map(names.__getitem__, topic), np.int64, len(topic)),
                whole_numbers(b",".join(numbers)),
                whole_numbers(b",".join(leaders).replace(b"none", b"-1")),
                *lists[0],
                *lists[1],
            )
        )
    if not parts:
        return None
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    which, number, leader, width, broker, synced, sync = joined
    counts = np.bincount(which, minlength=len(names))
    if announced and announced != dict(zip(names, counts.tolist(), strict=True)):
        return None
    try:
        labels = [name.decode() for name in names]
    except UnicodeDecodeError:
        return None
    in_sync_keys = _keys(synced, sync)
    found = _sorted_rows(labels, which, number, leader, width, broker, in_sync_keys)
    if found is None:
        return None
    rows = found[0]
    rows.min_in_sync = least

    def path(p: int) -> str:
        line = f"\tTopic: {rows.topics[rows.topic[p]]}\tPartition: {rows.number[p]}\t"
        return f"{document.name}:{document.line_at(document.data.find(line.encode()) + 1)}"

    rows.path = path
    return rows


class Entry(Protocol):
    """One entry of a reassignment."""

    topic: str
    partition: int
    replicas: list[int]
    log_dirs: list[str] | None


def rows_of_assignment(entries: Sequence[Entry], name: str) -> Rows | None:
    """Lay out the entries of a reassignment; None if anything is wrong with them."""
    names: dict[str, int] = {}
    topic = np.fromiter((names.setdefault(one.topic, len(names)) for one in entries), np.int64)
    number = np.fromiter((one.partition for one in entries), np.int64)
    width = np.fromiter((len(one.replicas) for one in entries), np.int64)
    broker = np.fromiter(chain.from_iterable(one.replicas for one in entries), np.int64)
    told = [i for i, one in enumerate(entries) if one.log_dirs]
    if number.min(initial=0) < 0 or broker.min(initial=0) < 0:
        return None
    if any(len(entries[i].log_dirs or ()) != width[i] for i in told):
        return None
    leader = np.full(len(topic), UNSAID)
    found = _sorted_rows([*names], topic, number, leader, width, broker, None)
    if found is None:
        return None
    rows, order = found
    rows.path = lambda p: f"{name}: partitions[{order[p]}].replicas"
    if told:
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        rows.log_dirs = {int(place[i]): entries[i].log_dirs or () for i in told}
    return rows


def _chunks(data: bytes) -> list[bytes]:
    """Divide a text into stretches of whole lines."""
    found, begin = [], 0
    while begin < len(data):
        end = data.find(b"\n", begin + CHUNK)
        end = len(data) if end < 0 else end + 1
        found.append(data[begin:end])
        begin = end
    return found


def _starts(width: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    first = np.zeros(len(width) + 1, np.int64)
    np.cumsum(width, out=first[1:])
    return first


def _keys(width: NDArray[np.int64], broker: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one number for each pair of a row and a broker."""
    return np.repeat(np.arange(len(width)) << 31, width) | broker


def _sorted_rows(
    topics: list[str],
    topic: NDArray[np.int64],
    number: NDArray[np.int64],
    leader: NDArray[np.int64],
    width: NDArray[np.int64],
    broker: NDArray[np.int64],
    in_sync: NDArray[np.int64] | None,
) -> tuple[Rows, NDArray[np.int64]] | None:
    """Sort rows by topic and number; None if they contradict each other or themselves."""
    held = _keys(width, broker)
    led = np.flatnonzero(leader >= 0)
    leading = _keys(np.ones(len(led), np.int64), leader[led]) & (2**31 - 1) | (led << 31)
    known = np.sort(held)
    if (known[1:] == known[:-1]).any() or not _within(known, leading).all():
        return None
    marks = np.full(len(held), in_sync is not None)
    if in_sync is not None and not np.array_equal(held, in_sync):
        if not _within(known, in_sync).all():
            return None
        marks = _within(np.sort(in_sync), held)
    rank = np.empty(len(topics), np.int64)
    rank[np.argsort(np.array(topics, object), kind="stable")] = np.arange(len(topics))
    order = np.lexsort((number, rank[topic]))
    topic, number = rank[topic][order], number[order]
    if ((topic[1:] == topic[:-1]) & (number[1:] == number[:-1])).any():
        return None
    first = _starts(width[order])
    moved = np.repeat(_starts(width)[:-1][order] - first[:-1], width[order])
    at = np.arange(len(broker)) + moved
    none = np.zeros(len(broker), np.bool_)
    rows = Rows(
        sorted(topics), topic, number, first, broker[at], leader[order],
        np.full(len(topic), in_sync is not None), marks[at], none, none, str,
    )  # fmt: skip
    return rows, order


def _within(known: NDArray[np.int64], asked: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which numbers are among known ones that are sorted."""
    if not len(known):
        return np.zeros(len(asked), np.bool_)
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return np.equal(known[at], asked)
