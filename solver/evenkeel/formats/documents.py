"""Documents: what was handed in to be read, and how its text is taken apart."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evenkeel.model.errors import Fault, FaultList, InvalidInput

Source = str | os.PathLike[str] | bytes
"""A path, or the content itself."""

SHOWN = 60
"""Characters of a text that are quoted in a fault."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Document:
    r"""The content of one file, and what to call it in messages.

    Parameters
    ----------
    name : str
        Path as the caller wrote it, or ``<bytes>``.
    data : bytes
        All of it, without a byte order mark; empty for a folder.
    path : Path or None
        Where it was read from, for formats that look for a second file beside it.

    Examples
    --------
    >>> Document("a.txt", b"x\ny").line_at(2)
    2
    """

    name: str
    data: bytes
    path: Path | None = None

    @classmethod
    def load(cls, source: Source) -> "Document":
        """Read a file, or take bytes as they are."""
        if isinstance(source, bytes | bytearray | memoryview):
            return cls("<bytes>", bytes(source).removeprefix(BYTE_ORDER_MARK))
        path = Path(source)
        data = b"" if path.is_dir() else path.read_bytes()
        return cls(os.fspath(source), data.removeprefix(BYTE_ORDER_MARK), path)

    def line_at(self, offset: int) -> int:
        """Return the line, counted from 1, on which a byte stands."""
        return self.data.count(b"\n", 0, offset) + 1

    def text(self, faults: FaultList) -> str:
        """Return the content as text; the first byte that is not UTF-8 is a fault."""
        try:
            return self.data.decode()
        except UnicodeDecodeError as error:
            at = f"{self.name}:{self.line_at(error.start)}"
            faults.add(at, self.data[error.start : error.end], "is not UTF-8 text")
            return self.data.decode("utf-8", "replace")

    def part(self, start: int, end: int) -> "Document":
        """Return a stretch of the content as a document; lines are counted as in this one."""
        blank = b"\n" * self.data.count(b"\n", 0, start)
        return Document(self.name, blank + self.data[start:end])


def quoted(value: object) -> object:
    """Return a value as faults show it: a long text cut off, a container by its type alone."""
    if isinstance(value, str | bytes):
        return value[:SHOWN]
    return type(value).__name__ if isinstance(value, dict | list) else value


def the_only(documents: Sequence[Document], name: str) -> Document:
    """Return the one document of a format that is read from one file."""
    if len(documents) != 1:
        given = [document.name for document in documents]
        raise InvalidInput([Fault("source", given, f"format {name!r} is read from one file")])
    return documents[0]
