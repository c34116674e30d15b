"""The integers of a machine-reassignment file, taken from the front."""

import gzip
import re
import warnings
import zlib
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.reading.arrays import LISTED_FAULTS, check_range
from evenkeel.systems.documents import quoted

WORD_LIMIT = 2**32
"""Values are unsigned 32-bit integers."""

BAD_WORD = re.compile(r"(?<!\S)(?![0-9]{1,18}(?!\S))\S+", re.ASCII)


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
        if not 0 <= count <= there:
            raise Truncated  # that a number is negative is noted already
        taken = self.words[self.at : self.at + count]
        self.at += count
        return taken

    def count(self, what: str) -> int:
        """Take one integer that says how many records follow."""
        count = int(self.take(1, what)[0])
        if count < 0:
            raise Truncated  # that it is negative is noted already
        return count

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
        # rows of distances shrink as far as anything can: no size is suspicious
        text = gzip.decompress(data) if path.suffix == ".gz" else data
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
            words = np.fromstring(_cleaned(faults, path.name, decoded), np.int64, sep=" ")
    check_range(faults, path.name, words, 0, WORD_LIMIT, "must be an unsigned 32-bit integer")
    return words


def _cleaned(faults: FaultList, name: str, text: str) -> str:
    """Note words that are no integers and put 0 in their places, so that the others keep theirs."""
    cleaned, count = BAD_WORD.subn("0", text)
    for one in islice(BAD_WORD.finditer(text), min(count, LISTED_FAULTS)):
        at = len(re.findall(r"\S+", text[: one.start()], re.ASCII))
        faults.add(f"{name}[{at}]", quoted(one[0]), "must be an unsigned 32-bit integer")
    if count > LISTED_FAULTS:
        more = count - LISTED_FAULTS
        faults.add(name, more, "more words are not unsigned 32-bit integers")
    return cleaned
