"""Log directories: the size of each replica, and its folder on the broker.

Most of the output of a cluster is this, so replicas are columns here. A document with regular
names and sizes is read as a whole, others replica by replica.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.documents import quoted
from evenkeel.systems.json_text import Int32, Int64
from evenkeel.systems.kafka.findings import Findings, FoundDir, any_failed, whole
from evenkeel.systems.kafka.rows import keys_of

NAMES = re.compile(r"(?:[^\n]+-[0-9]{1,9}\n)*+")  # names of partitions, one per line
ASIDE = ("-delete", "-future", "-stray")
# folders that a broker set aside, which are no partitions
LEFTOVER = re.compile(r"\.[0-9a-f]{32}-(delete|future|stray)\Z")


class HeldReplica(msgspec.Struct, gc=False):
    """One replica in a log directory; its size is in bytes."""

    partition: str
    size: Int64
    isFuture: bool = False  # noqa: N815


class LogDir(msgspec.Struct):
    """One log directory; ``error`` is set if it cannot be read. Admin clients give its bytes."""

    logDir: str  # noqa: N815
    partitions: list[HeldReplica] = []
    error: str | None = None
    totalBytes: Int64 | None = None  # noqa: N815
    usableBytes: Int64 | None = None  # noqa: N815
    isCordoned: bool = False  # noqa: N815


class BrokerDirs(msgspec.Struct):
    """The log directories of one broker."""

    broker: Int32
    logDirs: list[LogDir]  # noqa: N815


class LogDirs(msgspec.Struct):
    """The JSON line of ``kafka-log-dirs --describe``."""

    brokers: list[BrokerDirs]
    version: int = 1


@dataclass(frozen=True)
class Listed:
    """The replicas of one document, a column per property."""

    partition: list[str]
    broker: NDArray[np.int32]
    size: NDArray[np.int64]
    folder: NDArray[np.object_]
    path: Callable[[int], str]  # return the place of a replica in the file


def listed_in(found: Findings, document: str, brokers: Sequence[BrokerDirs]) -> Listed:
    """Return the replicas in the log directories of a document, and report problems."""
    folders = [
        (b, f, broker.broker, folder)
        for b, broker in enumerate(brokers)
        for f, folder in enumerate(broker.logDirs)
    ]
    counts = [len(folder.partitions) for *_, folder in folders]
    ends = np.cumsum(counts)
    replicas = [one for *_, folder in folders for one in folder.partitions]

    def path(i: int) -> str:
        at = int(np.searchsorted(ends, i, "right"))
        b, f, *_ = folders[at]
        r = i - int(ends[at]) + counts[at]
        return f"{document}: brokers[{b}].logDirs[{f}].partitions[{r}].partition"

    names = [one.partition for one in replicas]
    size = np.array([one.size for one in replicas], np.int64)
    future = True in [one.isFuture for one in replicas]
    if future:
        for i, one in enumerate(replicas):
            if one.isFuture:
                *_, broker, folder = folders[int(np.searchsorted(ends, i, "right"))]
                found.moving[one.partition, broker] = folder.logDir
    of = np.repeat(np.arange(len(folders)), counts)
    held = np.zeros(len(folders))
    np.add.at(held, of, size)
    _note_dirs(found, folders, held)
    if not future and size.min(initial=0) >= 0 and NAMES.fullmatch("\n".join([*names, ""])):
        kept = np.arange(len(names))
    else:
        kept = np.array(_counted(found, replicas, path), np.intp)
        names = [names[i] for i in kept.tolist()]
    where = of[kept]
    return Listed(
        names,
        np.array([broker for *_, broker, _ in folders], np.int32)[where],
        size[kept],
        np.array([folder.logDir for *_, folder in folders], object)[where],
        lambda i: path(int(kept[i])),
    )


def _note_dirs(
    found: Findings, folders: Sequence[tuple[int, int, int, LogDir]], held: NDArray[np.float64]
) -> None:
    """Record what each log directory holds, and has room for: what is free, and Kafka's own."""
    unread = {
        broker for *_, broker, one in folders
        if one.error is not None and not any_failed({"": one.error})
    }  # fmt: skip
    for (*_, broker, one), amount in zip(folders, held.tolist(), strict=True):
        if broker in unread:
            continue
        usable, failed = one.usableBytes, one.error is not None
        room = amount + usable if usable is not None and usable >= 0 else None
        own = found.log_dirs.setdefault(broker, {})
        own[one.logDir] = FoundDir(amount, room, failed, one.isCordoned)


def _counted(
    found: Findings, replicas: Sequence[HeldReplica], path: Callable[[int], str]
) -> list[int]:
    """Return the replicas that are complete, not set aside, and of a partition."""
    kept = []
    for i, one in enumerate(replicas):
        name = one.partition
        if one.isFuture or (name.endswith(ASIDE) and LEFTOVER.search(name)):
            continue
        topic, _, number = name.rpartition("-")
        if not topic or whole(number) is None:
            found.faults.add(path(i), quoted(name), "must be topic-number")
            continue
        if one.size < 0:
            at = f"{path(i).removesuffix('partition')}size"
            found.faults.add(at, one.size, "must be 0 or more")
        kept.append(i)
    return kept


class HeldReplicas(NamedTuple):
    """The replicas in log directories, sorted by partition and then as listed."""

    partition: NDArray[np.int64]
    broker: NDArray[np.int32]
    size: NDArray[np.int64]
    folder: NDArray[np.object_]


def held(found: Findings, names: Sequence[str]) -> HeldReplicas:
    """Return the replicas of known partitions, and count the bytes of others."""
    # without listings, no index of a million names is needed
    place = {name: p for p, name in enumerate(names)} if found.listed_replicas else {}
    columns = [
        HeldReplicas(*(np.zeros(0, kind) for kind in (np.int64, np.int32, np.int64, object)))
    ]
    for one in found.listed_replicas:
        p = np.fromiter(map(place.get, one.partition, repeat(-1)), np.int64, len(one.partition))
        for i in np.flatnonzero(p < 0).tolist() if len(names) else ():
            broker = int(one.broker[i])
            found.elsewhere[broker] = found.elsewhere.get(broker, 0.0) + float(one.size[i])
            where = broker, one.folder[i]
            before = found.elsewhere_by_dir.get(where, 0.0)
            found.elsewhere_by_dir[where] = before + float(one.size[i])
            found.topics_elsewhere.add(one.partition[i].rpartition("-")[0])
        columns.append(HeldReplicas(p, one.broker, one.size, one.folder))
    whole = HeldReplicas(*map(np.concatenate, zip(*columns, strict=True)))
    if len(names) and len(whole.partition) and whole.partition.max() < 0:
        strange = next(one for one in found.listed_replicas if one.partition)
        message = "is in no reassignment or description, and neither is any other that is listed"
        found.faults.add(strange.path(0), strange.partition[0], message)
    # of a replica that is listed twice, the last entry counts
    back = keys_of(whole.partition, whole.broker)[::-1]
    last = np.sort(len(back) - 1 - np.unique(back, return_index=True)[1])
    last = last[whole.partition[last] >= 0]
    order = last[np.argsort(whole.partition[last], kind="stable")]
    folder = whole.folder[order]
    if found.moving:  # what is being moved counts where it goes
        pairs = zip(whole.partition[order].tolist(), whole.broker[order].tolist(), strict=True)
        for i, (p, broker) in enumerate(pairs):
            folder[i] = found.moving.get((names[p], broker), folder[i])
    return HeldReplicas(whole.partition[order], whole.broker[order], whole.size[order], folder)
