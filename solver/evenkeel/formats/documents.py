"""Documents: what was handed in to be read, and how its text and JSON are taken apart.

A typed decode stops at the first thing that does not fit. When that happens, the document is gone
through once more, part by part, so that everything wrong with it is reported together.
"""

import os
import re
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from evenkeel.model.errors import Fault, FaultList, InvalidInput

Source = str | os.PathLike[str] | bytes
"""A path, or the content itself."""

SHOWN = 60
"""Characters of a text that are quoted in a fault."""

T = TypeVar("T")


@dataclass(frozen=True)
class Document:
    r"""The content of one file, and what to call it in messages.

    Parameters
    ----------
    name : str
        Path as the caller wrote it, or ``<bytes>``.
    data : bytes
        All of it; empty for a folder.
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
        """Read a file, or take bytes as they are.

        Parameters
        ----------
        source : str, path or bytes
            Where the content is.

        Returns
        -------
        Document
            With all of its content.

        Raises
        ------
        OSError
            If the file cannot be read.
        """
        if isinstance(source, bytes | bytearray | memoryview):
            return cls("<bytes>", bytes(source))
        path = Path(source)
        return cls(os.fspath(source), b"" if path.is_dir() else path.read_bytes(), path)

    def line_at(self, offset: int) -> int:
        """Return the line, counted from 1, on which a byte stands."""
        return self.data.count(b"\n", 0, offset) + 1

    def text(self, faults: FaultList) -> str:
        """Return the content as text, noting bytes that are not UTF-8.

        Parameters
        ----------
        faults : FaultList
            Where the fault is noted.

        Returns
        -------
        str
            Without a byte order mark; undecodable bytes replaced after a fault.
        """
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            at = f"{self.name}:{self.line_at(error.start)}"
            faults.add(at, self.data[error.start : error.end], "is not UTF-8 text")
            return self.data.decode("utf-8-sig", "replace")

    def part(self, start: int, end: int) -> "Document":
        """Return a stretch of the content as a document; lines are counted as in this one."""
        blank = b"\n" * self.data.count(b"\n", 0, start)
        return Document(self.name, blank + self.data[start:end])


def the_only(documents: Sequence[Document], name: str) -> Document:
    """Return the one document of a format that is one file.

    Parameters
    ----------
    documents : sequence of Document
        What was handed in.
    name : str
        Name of the format, for the message.

    Returns
    -------
    Document
        The only one.

    Raises
    ------
    InvalidInput
        If there are none or several.
    """
    if len(documents) != 1:
        given = [document.name for document in documents]
        raise InvalidInput([Fault("source", given, f"format {name!r} is read from one file")])
    return documents[0]


def decode_json(faults: FaultList, document: Document, shape: type[T]) -> T | None:
    """Decode JSON into a typed value, or note everything that does not fit.

    Parameters
    ----------
    faults : FaultList
        Where faults are noted.
    document : Document
        The JSON text.
    shape : type
        A msgspec struct, or any type that msgspec decodes.

    Returns
    -------
    object or None
        The value; None after a fault.

    Examples
    --------
    >>> found = FaultList()
    >>> decode_json(found, Document("a.json", b'[1, "x", 2, null]'), list[int]) is None
    True
    >>> [fault.path for fault in found.faults]
    ['a.json: [1]', 'a.json: [3]']
    """
    try:
        return msgspec.json.decode(document.data, type=shape)
    except msgspec.ValidationError:
        note_misfits(faults, f"{document.name}: ", msgspec.json.decode(document.data), shape)
    except msgspec.DecodeError as error:
        note_syntax(faults, document, error)
    except (UnicodeDecodeError, RecursionError) as error:
        faults.add(document.name, document.data[:SHOWN], f"is not JSON: {error}")
    return None


def note_syntax(faults: FaultList, document: Document, error: Exception) -> None:
    """Note where a text stops being JSON.

    Parameters
    ----------
    faults : FaultList
        Where the fault is noted.
    document : Document
        The text.
    error : Exception
        What the decoder said.
    """
    found = re.search(r"\(byte (\d+)\)", str(error))
    offset = int(found[1]) if found else len(document.data)
    near = document.data[max(offset - SHOWN // 2, 0) : offset + SHOWN // 2]
    if found is None:
        message = "ends in the middle of its JSON: the file is truncated or empty"
    else:
        message = f"is not JSON: {re.sub(r'^JSON is malformed: | [(]byte.*', '', str(error))}"
    at = f"{document.name}:{document.line_at(offset)}"
    faults.add(at, near.decode("utf-8", "replace"), message)


def note_misfits(faults: FaultList, path: str, value: Any, shape: Any) -> None:
    """Note every part of a decoded value that does not fit a type, each with its JSON path.

    Parameters
    ----------
    faults : FaultList
        Where faults are noted.
    path : str
        Path of the value.
    value : object
        Dicts, lists and scalars.
    shape : type
        What it should be.
    """
    try:
        msgspec.convert(value, shape, str_keys=True)
        return
    except msgspec.ValidationError as error:
        message = str(error).split(" - at `")[0]
    before = len(faults.faults)
    for inner_path, inner, inner_shape in _parts(faults, path, value, shape):
        note_misfits(faults, inner_path, inner, inner_shape)
    if len(faults.faults) == before:
        shown = value if not isinstance(value, dict | list) else type(value).__name__
        faults.add(path.rstrip(": "), shown, message[:1].lower() + message[1:])


def _parts(faults: FaultList, path: str, value: Any, shape: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the parts of a value with their types; note fields that are missing or unknown."""
    shape = _plain(shape, value)
    origin, arguments = typing.get_origin(shape), typing.get_args(shape)
    if isinstance(value, dict) and isinstance(shape, type) and issubclass(shape, msgspec.Struct):
        fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
        for name, field in fields.items():
            if name in value:
                yield _inside(path, name), value[name], field.type
            elif field.required:
                faults.add(_inside(path, name), None, "is missing")
        if shape.__struct_config__.forbid_unknown_fields:
            tag = shape.__struct_config__.tag_field
            for name in value.keys() - fields.keys() - {tag}:
                faults.add(_inside(path, name), value[name], f"is unknown; known: {[*fields]}")
    elif isinstance(value, dict) and origin is dict:
        for key, inner in value.items():
            yield _inside(path, key), inner, arguments[1]
    elif isinstance(value, list) and origin is list:
        for i, inner in enumerate(value):
            yield f"{path}[{i}]", inner, arguments[0]


def _plain(shape: Any, value: Any) -> Any:
    """Strip annotations, and the ``None`` of an optional type where there is a value."""
    if typing.get_origin(shape) is typing.Annotated:
        return _plain(typing.get_args(shape)[0], value)
    if typing.get_origin(shape) in (typing.Union, types.UnionType) and value is not None:
        rest = [one for one in typing.get_args(shape) if one is not type(None)]
        if len(rest) == 1:
            return _plain(rest[0], value)
    return shape


def _inside(path: str, name: str) -> str:
    return f"{path}{name}" if path.endswith(": ") or not path else f"{path}.{name}"
