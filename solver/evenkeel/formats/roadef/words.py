"""The integers of a machine-reassignment file, taken from the front."""

import gzip
import io
import re
import warnings
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenkeel.formats.documents import quoted
from evenkeel.model.arrays import LISTED_FAULTS, check_range
from evenkeel.model.errors import FaultList

WORD_LIMIT = 2**32
"""Values are unsigned 32-bit integers."""

MOST_GROWTH = 300
"""Times by which a compressed file may grow; rows of distances that repeat compress so far."""

FREE_GROWTH = 2**19
"""Bytes to which even the smallest file may grow."""


class Truncated(Exception):
    """The file ended before its model did; the fault is noted already."""


class Words:
    """The integers of one file, taken from the front."""

    def __init__(self, faults: FaultList, path: Path) -> None:
        self.faults = faults
        self.name = path.name
        self.at = 0
        self.words = integers(faults, path)

    def take(self, count: int, what: str) -> NDArray[np.int64]:
        """Take ``count`` integers; ``what`` names them for the message."""
        there = len(self.words) - self.at
        if count > there:
            self.faults.add(f"{self.name}: {what}", there, f"the file ends; needs {count} integers")
            raise Truncated
        taken = self.words[self.at : self.at + count]
        self.at += count
        return taken

    def count(self, what: str) -> int:
        """Take one integer that says how many records follow."""
        return int(self.take(1, what)[0])

    def records(self, what: str, width: int) -> int:
        """Take the number of records that follow; each takes at least ``width`` integers."""
        count = self.count(what)
        there = len(self.words) - self.at
        if count * width > there:
            needed = f"the file ends; needs {count * width} integers"
            self.faults.add(f"{self.name}: {what}", there, needed)
            raise Truncated
        return count

    def finish(self) -> None:
        """Note what is left over."""
        if self.at < len(self.words):
            self.faults.add(self.name, len(self.words) - self.at, "integers after the end")


def integers(faults: FaultList, path: Path) -> NDArray[np.int64]:
    """Return all integers of a file; what is none of them is a fault."""
    try:
        data = path.read_bytes()
        text = _unpacked(data) if path.suffix == ".gz" else data
        decoded = text.decode("ascii")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        faults.add(path.name, type(error).__name__, f"cannot be read: {error}")
        return np.zeros(0, np.int64)
    if not decoded.strip():
        return np.zeros(0, np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            words = np.fromstring(decoded, np.int64, sep=" ")
        except (DeprecationWarning, ValueError):
            return _fault_words(faults, path.name, decoded)
    check_range(faults, path.name, words, 0, WORD_LIMIT, "must be an unsigned 32-bit integer")
    return words


def _unpacked(data: bytes) -> bytes:
    """Unpack as much as a file of integers can hold; what grows further is a bomb."""
    most = max(MOST_GROWTH * len(data), FREE_GROWTH)
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
        text = packed.read(most + 1)
    if len(text) > most:
        raise ValueError(f"it unpacks to more than {MOST_GROWTH} times its {len(data)} bytes")
    return text


def _fault_words(faults: FaultList, name: str, text: str) -> NDArray[np.int64]:
    """Note words that are no integers; the others keep their places."""
    words = text.split()
    whole = [re.fullmatch(r"[0-9]{1,18}", word) is not None for word in words]
    bad = [i for i, good in enumerate(whole) if not good]
    for i in bad[:LISTED_FAULTS]:
        faults.add(f"{name}[{i}]", quoted(words[i]), "must be an unsigned 32-bit integer")
    if len(bad) > LISTED_FAULTS:
        faults.add(name, len(bad) - LISTED_FAULTS, "more words are no unsigned 32-bit integers")
    values = [int(word) if good else 0 for word, good in zip(words, whole, strict=True)]
    return np.array(values, np.int64)
