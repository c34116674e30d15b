"""A store on disk: two files per kind, written in turn, so that no crash costs more than itself.

Each write goes to the file of the older version, by way of a temporary one that is synced and
renamed. What a crash leaves is therefore the old state or the new one; and should the newest file
be damaged later, its checksum shows it, and the one before it is still there.
"""

import hashlib
import json
import logging
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.stores.store import Kind, Record, Store, refuse_stale
from evenkeel.model.assignment import Assignment
from evenkeel.model.names import Names
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.runtime.atomic import write_atomically

logger = logging.getLogger("evenkeel.control")

MAGIC = b"EVENKEEL"
PREFIX = struct.Struct("<8sQQ32s")
"""Magic, version, length of the header, and the checksum of all that is not this."""

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
        """Return the newest record that is whole.

        Parameters
        ----------
        kind : Kind
            Which one.

        Returns
        -------
        Record or None
            None if there never was one.

        Raises
        ------
        Damaged
            If there are records, and none is whole.
        OSError
            If a file is there and cannot be read.
        """
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
        """Keep a record.

        Parameters
        ----------
        kind : Kind
            Which one.
        record : Record
            With a version above the last one.

        Raises
        ------
        Stale
            If a version as high is there already, of whichever process.
        OSError
            If it cannot be written; what was there before still is.
        """
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
