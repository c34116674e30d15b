"""Store the baseline and the best possible assignment of a pipeline between two runs.

It is kept in memory or on disk. On disk there are two files per kind, written in turn, so that a
crash loses at most the write in progress. Each write replaces the file of the older version, by way
of a temporary file that is synced and renamed. So a crash leaves the old state or the new one. If
the newest file is damaged later, its checksum shows it, and the version before it is read.
"""

import hashlib
import json
import logging
import os
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.assignment import Assignment
from evenkeel.model.names import Names
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.runtime.atomic import write_atomically


class Kind(Enum):
    """What is kept.

    Examples
    --------
    >>> [one.name for one in Kind]
    ['BASELINE', 'BEST_POSSIBLE']
    """

    BASELINE = "baseline"
    BEST_POSSIBLE = "best_possible"


class Stale(RuntimeError):
    """The store holds this version or a newer one; another writer uses it."""


@dataclass(frozen=True, eq=False)
class Record:
    """An assignment that means the same on any later cluster. P partitions, N nodes.

    Parameters
    ----------
    version : int
        Counted from 1; never falls.
    assignment : Assignment
        Of P partitions on N nodes.
    nodes : Names
        N names.
    partitions : Names
        P names.
    known : ndarray of bool, shape (P,)
        Partitions that were ever placed. The others are new, and their empty rows have no meaning.
    digests : mapping of str to str
        What the cluster was like for which it was calculated; see ``control.view``.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import control
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> store = control.MemoryStore()
    >>> with control.Pipeline("balance", store=store, workers=control.InlineWorkers()) as pipeline:
    ...     step = pipeline.run(c)
    >>> from evenkeel.control.store import Kind
    >>> record = store.read(Kind.BEST_POSSIBLE)
    >>> record.version, list(record.nodes), len(record.assignment)
    (1, ['n0', 'n1', 'n2'], 4)
    """

    version: int
    assignment: Assignment
    nodes: Names
    partitions: Names
    known: NDArray[np.bool_]
    digests: Mapping[str, str] = field(default_factory=dict)


class Store(ABC):
    """Keeps the newest record of each kind.

    Examples
    --------
    >>> class Shouting(MemoryStore):
    ...     def write(self, kind, record):
    ...         print("kept", kind.value, record.version)
    ...         super().write(kind, record)
    >>> isinstance(Shouting(), Store)
    True
    """

    @abstractmethod
    def read(self, kind: Kind) -> Record | None:
        """Return the newest record, None if there never was one."""

    @abstractmethod
    def write(self, kind: Kind, record: Record) -> None:
        """Keep a record, wholly or not at all.

        Raises
        ------
        Stale
            If its version is not above the last one, of whichever process.
        """


class MemoryStore(Store):
    """Keeps records as long as the process lives.

    Examples
    --------
    >>> MemoryStore().read(Kind.BASELINE) is None
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[Kind, Record] = {}

    def read(self, kind: Kind) -> Record | None:
        """Return the newest record."""
        with self._lock:
            return self._records.get(kind)

    def write(self, kind: Kind, record: Record) -> None:
        """Keep a record."""
        with self._lock:
            kept = self._records.get(kind)
            refuse_stale(kind, record.version, kept.version if kept else 0)
            self._records[kind] = record


def refuse_stale(kind: Kind, version: int, kept: int) -> None:
    """Refuse to go back.

    >>> refuse_stale(Kind.BASELINE, 3, 3)
    Traceback (most recent call last):
    evenkeel.control.store.Stale: baseline 3 is stale: version 3 is there already
    """
    if version <= kept:
        raise Stale(f"{kind.value} {version} is stale: version {kept} is there already")


logger = logging.getLogger("evenkeel.control")

MAGIC = b"EVENKEEL"
# magic, version, length of the header, and the checksum of all that is not this
PREFIX = struct.Struct("<8sQQ32s")

ARRAYS = (("first", "<i8"), ("node", "<i4"), ("state", "|u1"), ("known", "|b1"))


class Damaged(RuntimeError):
    """There are records, and none of them can be read."""


class DiskStore(Store):
    """Keeps records in a folder.

    Parameters
    ----------
    folder : str or path
        Made if it is not there. Several processes may share it; the second writer gets an error.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     DiskStore(folder).read(Kind.BASELINE) is None
    True
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)

    def read(self, kind: Kind) -> Record | None:
        """Return the newest record that is whole; ``Damaged`` where none of several is."""
        contents = [_content(file) for file in self._files(kind)]
        found = [data for data in contents if data is not None]
        whole = [data for data in found if _is_whole(data)]
        if len(whole) < len(found):
            logger.warning(
                "a record of the %s is damaged", kind.value,
                extra={"evenkeel": {"event": "damaged", "kind": kind.value}},
            )  # fmt: skip
            if not whole:
                raise Damaged(
                    f"no record of the {kind.value} in {self._folder} is whole; "
                    f"without the files {kind.value}.* a pipeline would begin anew"
                )
        return _decoded(max(whole, key=_version)) if whole else None

    def write(self, kind: Kind, record: Record) -> None:
        """Keep a record; after an ``OSError`` what was there before still is."""
        data = _encoded(record)
        with self._alone():
            refuse_stale(kind, record.version, self._newest(kind, record.version))
            write_atomically(self._files(kind)[record.version % 2], data)

    def _files(self, kind: Kind) -> tuple[Path, Path]:
        """The two files of a kind: even versions, odd versions."""
        return self._folder / f"{kind.value}.0", self._folder / f"{kind.value}.1"

    def _newest(self, kind: Kind, wanted: int) -> int:
        """The highest version there is; only one that stands in the way is read as a whole."""
        newest = 0
        for file in self._files(kind):
            try:
                with file.open("rb") as opened:
                    start = opened.read(PREFIX.size)
                    if _version(start) >= wanted and not _is_whole(start + opened.read()):
                        continue
                    newest = max(newest, _version(start))
            except FileNotFoundError:
                pass
        return newest

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes out, where the system can do that."""
        try:
            import fcntl
        except ImportError:  # no such lock here: a version may then be written twice
            yield
            return
        with (self._folder / "lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _content(file: Path) -> bytes | None:
    """What stands in a file; None if it is not there."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _version(data: bytes) -> int:
    """The version that a file claims to hold; 0 if the file is too short."""
    if len(data) < PREFIX.size or not data.startswith(MAGIC):
        return 0
    return int(PREFIX.unpack_from(data)[1])


def _is_whole(data: bytes) -> bool:
    """Whether a file is what was written."""
    if _version(data) == 0:
        return False
    _, version, length, checksum = PREFIX.unpack_from(data)
    return bool(_checksum(version, length, data[PREFIX.size :]) == checksum)


def _checksum(version: int, length: int, body: bytes) -> bytes:
    """Of the two numbers in front and all that follows."""
    digest = hashlib.blake2b(struct.pack("<QQ", version, length), digest_size=32)
    digest.update(body)
    return digest.digest()


def _encoded(record: Record) -> bytes:
    """Write a record as bytes."""
    assignment = record.assignment
    columns = (assignment.first, assignment.node, assignment.state, record.known)
    header = {
        "nodes": list(record.nodes),
        "partitions": list(record.partitions),
        "digests": dict(record.digests),
        "lengths": [len(column) for column in columns],
    }
    # a lone surrogate is a name too: only ASCII escapes can carry one
    head = json.dumps(header, ensure_ascii=True).encode()
    body = head + b"".join(
        np.ascontiguousarray(column, dtype).tobytes()
        for column, (_, dtype) in zip(columns, ARRAYS, strict=True)
    )
    length = len(head)
    checksum = _checksum(record.version, length, body)
    return PREFIX.pack(MAGIC, record.version, length, checksum) + body


def _decoded(data: bytes) -> Record:
    """Read a record that is whole."""
    _, version, length, _ = PREFIX.unpack_from(data)
    at = PREFIX.size + length
    header = json.loads(data[PREFIX.size : at])
    columns: dict[str, NDArray[Any]] = {}
    for (name, dtype), count in zip(ARRAYS, header["lengths"], strict=True):
        kind = np.dtype(dtype)
        column = np.frombuffer(data, kind, count, at).astype(kind.newbyteorder("="))
        columns[name] = read_only(column)
        at += count * kind.itemsize
    return Record(
        version=version,
        assignment=Assignment(columns["first"], columns["node"], columns["state"]),
        nodes=Names(header["nodes"], len(header["nodes"]), ""),
        partitions=Names(header["partitions"], len(header["partitions"]), ""),
        known=columns["known"],
        digests=header["digests"],
    )
