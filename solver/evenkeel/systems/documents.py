"""Read input files into documents, from plain and compressed files, folders and archives.

The unpacked size of a file is bounded before memory is allocated.
"""

import gc
import gzip
import io
import os
import re
import tarfile
import textwrap
import zipfile
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NoReturn, cast

from evenkeel.model.errors import Fault, FaultList, InvalidInput

# a path, the content itself, or an open binary file such as ``sys.stdin.buffer``
Source = str | os.PathLike[str] | bytes | BinaryIO

MOST_GROWTH = 250  # times by which what is packed may grow; what systems print grows less

FREE_GROWTH = 2**22  # bytes to which even the smallest packed file may grow

# bytes of a file, and to which a packed one may grow: more than any system's dump
MOST_BYTES = 2**33

PIECE = 2**24  # bytes that are read, or unpacked, at a time

# bytes that are unpacked before as much has been taken from the packed file as they stand for
BEFOREHAND = 2**26

GZIP_MAGIC, ZIP_MAGIC = b"\x1f\x8b", b"PK\x03\x04"

TAR = slice(257, 262)  # where a tar archive says that it is one

HEAD_OF_ZIP = 512  # bytes of a zip archive in which the name of its first member stands

# bytes of a file that is looked into before all of it is read, and how many of them
LARGE, BEGINNING = 2**28, 2**20

# where a value of JSON begins on a line, after what ``helix-admin.sh`` puts before it
VALUE = re.compile(rb'^[ \t]*(?:[A-Z]\w*: )?(?=\{\s*["}]|\[\s*[\[{"\]])', re.MULTILINE)

# the beginning of an object of JSON, or of a list of them
ANSWER = re.compile(rb'\s*(?:\[\s*)?\{\s*"')

# a text of JSON, or a bracket outside of one
TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)

SHOWN = 60  # characters of a text that are quoted in a fault


@dataclass(frozen=True)
class Document:
    r"""The content of one file, and what to call it in messages."""

    name: str  # path as the caller wrote it, or ``<bytes>``
    # all of it, unpacked if it was packed by gzip, without a byte order mark; empty for a folder
    data: bytes
    # where it was read from, for formats that look for a second file beside it
    path: Path | None = None
    # whether it was packed with a checksum, which shows that nothing of it is missing
    checked: bool = False
    # lines before it that are not its own, such as the request that it answers
    before: bytes = b""
    # lines behind it, where it is the last value of JSON in a file
    after: bytes = b""
    # whether a table that it was made of ends early, or says that it has not all rows
    cut: bool = False
    # which of the sources it is from, whose names may be the same
    source: int = 0

    @classmethod
    def load(cls, source: Source) -> "Document":
        """Read a file, or take bytes as they are; what gzip packed is unpacked."""
        path = None
        if isinstance(source, bytes | bytearray | memoryview):
            name, data = "<bytes>", bytes(source)
        elif isinstance(source, str | os.PathLike) and os.fspath(source):
            name, path = os.fspath(source), Path(source)
            data = b"" if path.is_dir() else _content(path)
        elif hasattr(source, "read"):
            name = str(getattr(source, "name", "<file>"))
            data = _read_on(name, cast("BinaryIO", source))
        else:
            raise InvalidInput([Fault("source", source, "must be a path, bytes, or an open file")])
        packed = data.startswith(GZIP_MAGIC)
        if packed:
            data = _unpacked(name, data)
        text = _as_utf8(data)
        before = _before(data) if JSON_BEGINS.match(text) else b""
        return cls(name, text, path, packed, before)

    @classmethod
    def beginning(cls, source: Source) -> "Document | None":
        """Return the first bytes of a large file that nothing packed; None for any other."""
        if not isinstance(source, str | os.PathLike):
            return None
        path = Path(source)
        if not path.is_file() or path.stat().st_size <= LARGE:
            return None
        with path.open("rb") as file:
            head = file.read(BEGINNING)
        if head.startswith((GZIP_MAGIC, ZIP_MAGIC)) or head[TAR] == b"ustar":
            return None
        return cls(os.fspath(source), _as_utf8(head), path)

    def inside(self) -> "tuple[Document, ...]":
        """Return the files in a folder or an archive, by name; of a plain file, itself."""
        if self.path is not None and self.path.is_dir():
            found = sorted(file for file in self.path.rglob("*") if file.is_file())
            return tuple(map(Document.load, found))
        if not (self.data.startswith(ZIP_MAGIC) or self.is_archive):
            return (self,)
        if b"[Content_Types].xml" in self.data:
            raise InvalidInput([Fault(self.name, len(self.data), WORKBOOK)])
        try:
            return _members(self) if self.data.startswith(ZIP_MAGIC) else _members_of_tar(self)
        except BROKEN as error:
            message = f"is a broken or truncated archive: {error}"
            raise InvalidInput([Fault(self.name, len(self.data), message)]) from None

    @property
    def is_archive(self) -> bool:
        """Whether this is a tar or zip archive of files, and none of arrays, as NumPy has them."""
        zipped = self.data.startswith(ZIP_MAGIC) and b".npy" not in self.data[:HEAD_OF_ZIP]
        return zipped or self.data[TAR] == b"ustar"

    @cached_property
    def is_json(self) -> bool:
        """Whether this begins as JSON does, and not as ``[root@node ~]#``, and no text follows."""
        if not JSON_BEGINS.match(self.data):
            return False
        if len(self.data) > MOST_WRAPPED or self.data.rstrip().endswith((b"}", b"]")):
            return True
        found = values_in(self.data)
        return not found or not self.data[found[-1][1] :].strip()

    def line_at(self, offset: int) -> int:
        """Return the line, counted from 1, on which a byte stands."""
        return self.data.count(b"\n", 0, offset) + 1

    def text(self, faults: FaultList) -> str:
        """Return the content as text; the first byte that is not UTF-8 is a fault."""
        try:
            return self.data.decode()
        except UnicodeDecodeError as error:
            at = f"{self.name}:{self.line_at(error.start)}"
            faults.add(
                at, self.data[error.start : error.end], "is not UTF-8 text: save it as UTF-8"
            )
            return self.data.decode("utf-8", "replace")

    def values(self) -> "tuple[Document, ...]":
        r"""Return the objects and lists of JSON that begin on lines of their own; else itself."""
        # other lines are what a tool prints around JSON
        found, before, done = [], self.before, 0
        for start, end in values_in(self.data):
            before += self.data[done:start]
            done = end
            if self.data[start:end] != b"[]":  # an answer without rows, such as of an empty host
                found.append(self.part(start, end, before))
        found[-1:] = [replace(one, after=self.data[done:]) for one in found[-1:]]
        return tuple(found) or (self,)

    def beside_text(self) -> "tuple[Document, ...]":
        """Return the answers in JSON that a session has beside what it prints for people."""
        return tuple(one for one in self.values() if ANSWER.match(one.data))

    def apart(self) -> "tuple[Document, ...]":
        """Return the answers in JSON that a session has, and last what it prints for people."""
        text = bytearray(self.data)
        for start, end in reversed(values_in(self.data)):
            text[start:end] = b"\n" * self.data.count(b"\n", start, end)
        return (*self.beside_text(), replace(self, data=bytes(text)))

    def part(self, start: int, end: int, before: bytes = b"") -> "Document":
        """Return a stretch of the content as a document; lines are counted as in this one."""
        blank = b"\n" * self.data.count(b"\n", 0, start)
        return Document(self.name, blank + self.data[start:end], before=before, source=self.source)

    @property
    def origin(self) -> tuple[int, str]:
        """The source that this is all of, or a part of."""
        return self.source, self.name


WORKBOOK = "is a workbook of a spreadsheet: save each sheet as CSV"
FRAMES = "read it with pandas and give its frames to ek.Cluster.from_frames, or save it as CSV"
UNPACK = "unpack it (gzip, zip and tar are read)"
PICTURE = "is a picture: give the text that it shows"

# what files are that no system reads, and what to do with them, by how they begin
STRANGE = {
    b"PAR1": f"is a table in Parquet: {FRAMES}",
    b"ARROW1": f"is a table in Arrow's format: {FRAMES}",
    b"FEA1": f"is a table in Arrow's format: {FRAMES}",
    b"Obj\x01": f"is a table in Avro: {FRAMES}",
    b"SQLite format 3\0": "is a database of SQLite: save its tables as CSV",
    b"\xd0\xcf\x11\xe0": WORKBOOK,
    b"BZh": f"is packed by bzip2: {UNPACK}",
    b"\xfd7zXZ\0": f"is packed by xz: {UNPACK}",
    b"(\xb5/\xfd": f"is packed by zstd: {UNPACK}",
    b"7z\xbc\xaf": f"is packed by 7-Zip: {UNPACK}",
    b"\x89PNG": PICTURE,
    b"\xff\xd8\xff": PICTURE,
    b"GIF8": PICTURE,
    b"%PDF": "is a page as PDF: give its text",
}

# what unpacking a damaged file may raise; the standard library does not say
BROKEN = (
    ValueError, OSError, EOFError, LookupError, RuntimeError, OverflowError, zlib.error,
    zipfile.BadZipFile, tarfile.TarError,
)  # fmt: skip


COLOURS = re.compile(rb"\x1b\[[0-9;]*[mK]")

# what ``kubectl port-forward`` prints among answers
FORWARDED = re.compile(rb"^(?:Handling connection for \d+|Forwarding from \S+ -> \d+)\r?$", re.M)

# the meter that ``curl`` without ``-s`` prints, between rows or before the rest of one
METER = re.compile(
    rb"^[ ]*% Total +% Received[^\n]*\n[^\n]*Dload +Upload[^\n]*\n?"
    rb"|(?:^|\r)[ ]*\d{1,3}(?: +[\d.]+[kMGT]?){7}(?: +[\d-]+:[\d-]{2}:[\d-]{2}){3} +"
    rb"\d+(?:\.\d+)?[kMGTP]?(?:\r?\n)?",
    re.MULTILINE,
)

# what a terminal or a tool puts around JSON, by lines; a request that puts JSON is none of it
AROUND = re.compile(
    rb"(?:(?![^\n]{0,200}\bcurl [^\n]{0,400}PUT\b)"
    rb"(?:HTTP/[0-9.]+ [0-9]{3}[^\n]*\n(?:[\w-]+:[^\n]*\n)*"  # curl -i
    rb"|[^\n{\[]{0,200}[$>#] ?(?:sudo )?(?:kubectl|k|oc|curl|rabbitmq\w+|docker|ceph) [^\n]*\n"
    rb"|\[[^]\n]*\][$#][^\n]*(?:\n|\Z)"  # prompts
    rb"|(?:[^\s\"@]*+@[^\n\"{}]*[$#]|\$|PS [^\n{}]*>)(?:[ \t\r][^\n]*)?(?:\n|\Z)"
    rb"|[ \t]*(?:#|//|===|\+ )[^\n]*(?:\n|\Z)"  # comments, and commands as sh -x prints them
    rb"|[A-Z](?=[\w']* )[\w' ]*+:[ \t\r]*\n"  # what people write above an output
    rb"|\[?(?:[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}|(?:DEBUG|INFO|WARN)\b)[^\n]*\n"  # logs
    rb"|[WIE][0-9]{4} [0-9:.]+ [^\n]*\n"
    rb"|pod \"[^\"\n]*\"[^\n]* deleted[^\n]*(?:\n|\Z)"
    rb"|(?:Warning:|Defaulted container|Unable to use a TTY|Picked up )[^\n]*\n"
    rb"|(?:[A-Z][\w ]+ is running at http|To further debug and |Cluster info dumped )[^\n]*\n"
    rb"|```[^\n]*(?:\n|\Z)"
    rb"|[ \t\r]*\n|[ \t]+\Z))*+"
)

OBJECTS = (b"apiVersion:", b"- apiVersion:", b"items:", b"---\n")  # how YAML of Kubernetes begins

PROMPT_LAST = re.compile(rb"\n(?:\[[^]\n]*\][$#]|[^\s\"@]*+@[^\n\"{}]*[$#]|\$)\s*+\Z")

# a first line of JSON that ends within a text
WRAPPED = re.compile(
    rb'^[ \t]*[\[{](?=[^\n]*":)(?:[^"\\\n]|"(?:[^"\\\n]|\\.)*+")*+"(?:[^"\\\n]|\\.)*+\n', re.M
)

MOST_WRAPPED = 2**20  # bytes of what people paste from a terminal

# a line that begins or ends code in Markdown, and code on a line of prose
FENCE = re.compile(rb"[ \t]*(?:```|~~~)[ \t]*[\w+-]*[ \t\r]*")
QUOTED = re.compile(rb"`[^`]*`(?: +(?= ))?")

# a line of markup, or a heading
ASIDE = re.compile(rb"[ ]*(?:<[^<>]*>.*|\{%.*%\}|(?:#|\*\*)[^|{}\[\]=;/@$_,\t]*)")

# a line of a sentence: words, and no sign that tables and commands have
PROSE = re.compile(
    rb"(?=\D|\d+\. )(?=\S+ \S+ \S|.*[.:!?]\Z)"
    rb"(?:(?:[^\s|{}\[\]=;/@$_,:]++[,:]?+|:)(?:[ ]|\Z))*+"
)

WORD = re.compile(rb"(?<!\S)[A-Za-z'*\x80-\xff]{2,}+[,:.]?(?!\S)|\A(?:[-*]|\d+\.)(?= )")
# a word, or the mark of an item, and how many of them make a sentence without its end
FEW, ITEM = 4, re.compile(rb"(?:[-*]|\d+\.) ")

# a line with a mark of Chinese or Japanese sentences, which no table has
EASTERN = re.compile(rb'[^"{|#]*(?:\xe3\x80[\x81\x82]|\xef\xbc[\x81\x8c\x9a\x9b\x9f])[^"{|]*')

BEFORE = 4096  # bytes in which the first value of JSON is looked for, behind lines that are none

MOST_INDENT = 256  # blanks before the first bracket

# logs of pods among the objects of ``kubectl cluster-info dump``
LOGS = re.compile(rb"^==== START logs for .*?^==== END logs for [^\n]*(?:\n|\Z)", re.M | re.S)


JSON_BEGINS = re.compile(rb'\s*(?:\{|\[\s*[\[{"\]])')


def _as_utf8(data: bytes) -> bytes:
    """Return text in UTF-8, without marks, colours, and what a terminal has around JSON."""
    # PowerShell's ``>`` writes UTF-16
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        data = data.decode("utf-16", "replace").encode()
    data = data.removeprefix(BOM_UTF8)
    head = data[:BEGINNING]
    if b"\0" in head[:4096]:
        return data
    if b"\x1b[" in head:
        data = COLOURS.sub(b"", data)
    if b"Handling connection for " in head or b"Forwarding from " in head:
        data = FORWARDED.sub(b"", data)
    if b"% Total" in head:
        data = METER.sub(b"", data)
    # a page may indent all of it
    if data.startswith((b" ", b"\t")):
        data = textwrap.dedent(data.decode("latin-1")).encode("latin-1")
    if (b"```" in head or b"~~~" in head) and len(data) <= MOST_WRAPPED:
        data = _out_of_fences(data)
    return bare(_unwrapped(data))


def _out_of_fences(data: bytes) -> bytes:
    """Return a page of Markdown without its fences, and without what is prose between these."""
    lines = data.split(b"\n")
    fences = [i for i, line in enumerate(lines) if FENCE.fullmatch(line)]
    if not fences:
        return data
    inside = {i for a, b in zip(fences[::2], fences[1::2], strict=False) for i in range(a, b + 1)}
    for begin, end in zip(fences[::2], fences[1::2], strict=False):
        # code in an item of a list is indented as its fence
        indent = lines[begin][: -len(lines[begin].lstrip())]
        lines[begin:end] = [line.removeprefix(indent) for line in lines[begin:end]]
    between = (b"" if i in inside else line.strip() for i, line in enumerate(lines))
    # all stays where any paragraph may be data, as where a page has lost a fence
    if len(fences) % 2 or not _is_prose(between):
        inside = {*range(len(lines))}
    return b"\n".join(
        line if i in inside and not FENCE.fullmatch(line) else b"" for i, line in enumerate(lines)
    )


def _is_prose(lines: Iterable[bytes]) -> bool:
    """Return whether all paragraphs are of words, and end as sentences do."""
    last = b""
    for line in (b"" if ASIDE.fullmatch(one) else QUOTED.sub(b"code", one) for one in lines):
        if line and EASTERN.fullmatch(line):
            line = b"."
        if not (PROSE.fullmatch(line) if line else _ends(last)):
            return False
        last = line
    return _ends(last)


def _ends(line: bytes) -> bool:
    """Return whether a paragraph of words may end with a line."""
    return line[-1:] in b".:!?" or len(WORD.findall(line)) >= FEW - bool(ITEM.match(line))


def _before(data: bytes) -> bytes:
    """Return the lines before the first value of JSON, if any is near the beginning."""
    first = VALUE.search(data[:BEFORE])
    return data[: first.start()] if first else b""


def values_in(data: bytes) -> list[tuple[int, int]]:
    """Return where the objects and lists of JSON begin and end that begin on lines of their own."""
    found, end = [], 0
    while start := VALUE.search(data, end):
        end = end_of_value(data, start.end())
        found.append((start.end(), end))
    return found


def end_of_value(data: bytes, begin: int) -> int:
    """Return where an object or list of JSON ends; the end of the data if it is cut off."""
    depth = 0
    for token in TOKEN.finditer(data, begin):
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token[0], 0)
        if not depth:
            return token.end()
    return len(data)


def _unwrapped(data: bytes) -> bytes:
    """Return JSON without the line breaks of a terminal, if one of them is within a text."""
    if len(data) > MOST_WRAPPED or not WRAPPED.search(data):
        return data
    found, done = [], 0
    for start, end in values_in(data):
        value = data[start:end]
        if WRAPPED.match(value):
            breaks = value.count(b"\n")
            found += [data[done:start], value.replace(b"\r\n", b"").replace(b"\n", b"")]
            # line breaks come behind the value, so that lines are counted as before
            found.append(b"\n" * breaks)
            done = end
    return b"".join([*found, data[done:]])


def bare(data: bytes) -> bytes:
    """Return JSON, or YAML of Kubernetes, without what a terminal or tool has around it."""
    first = AROUND.match(data)
    assert first is not None  # it may be empty
    beginning = data[first.end() : first.end() + MOST_INDENT].lstrip()
    if first[0].strip() and beginning.startswith(OBJECTS):
        last = PROMPT_LAST.search(data, max(first.end(), len(data) - MOST_INDENT))
        whole = data[first.end() : last.start() + 1 if last else len(data)]
        return b"\n" * data.count(b"\n", 0, first.end()) + whole
    if not beginning.startswith((b"{", b"[")):
        return data
    if b"\n==== START logs for " in data:
        data = LOGS.sub(b"", data)
    ends = data.rstrip().endswith((b"}", b"]"))
    if first[0].strip() or not ends or OUTSIDE.search(data[:MOST_WRAPPED]):
        found = values_in(data) or [(first.end(), len(data))]
        (start, _), (_, end) = found[0], found[-1]
        if not (AROUND.fullmatch(data, 0, start) and AROUND.fullmatch(data, end)):
            return data
        # requests stand between answers: each is a document of its own
        if any(data[done:at].strip(b", \t\r\n") for (_, done), (at, _) in pairwise(found)):
            return data
        data = b"\n" * data.count(b"\n", 0, start) + data[start:end]
    return _as_array(data)


# where a line of a session begins between values of JSON, which have no such lines
OUTSIDE = re.compile(rb"^[^\s{}\[\]\",0-9-]", re.MULTILINE)

# where an object ends, and the next begins below it
APART = (b"}\n{", b"}\n\n{", b"}\r\n{", b"}\r\n\r\n{")

# where an array of objects ends, and the next begins on the next line
ARRAYS = re.compile(rb"(?<=[}])[ \t\r\n]*\]((?:\r?\n)+)\[(?=\s*\{)")


def _as_array(data: bytes) -> bytes:
    """Return JSON objects, or arrays of them, that follow one another on new lines as an array."""
    if not any(between in data for between in (*APART, b"]\n[")):
        return data
    start = len(data) - len(data.lstrip())
    if data[start : start + 1] == b"[":
        return ARRAYS.sub(lambda found: b",%s" % found[1], data)
    # a line break is in no text of JSON
    joined = data[start:]
    for between in APART:
        joined = joined.replace(between, b"}," + between[1:])
    return data[:start] + b"[" + joined.rstrip() + b"]"


def _content(path: Path) -> bytes:
    """Return the content of a file, or raise for a device, which need not end, and a huge one."""
    with path.open("rb") as file:
        if path.is_char_device() and not file.isatty():
            raise InvalidInput([Fault(os.fspath(path), "a device", "must be a file")])
        if path.stat().st_size > MOST_BYTES:
            _too_large(path, path.stat().st_size)
        return file.read() if path.is_file() else _read_on(os.fspath(path), file)


def _read_on(name: str, file: BinaryIO) -> bytes:
    """Read an open file, or raise when more comes than any dump holds."""
    whole = io.BytesIO()
    while piece := file.read(PIECE):
        whole.write(piece)
        if whole.tell() > MOST_BYTES:
            _too_large(name, whole.tell())
    return whole.getvalue()


def _too_large(name: str | Path, size: int) -> NoReturn:
    raise InvalidInput([Fault(os.fspath(name), size, f"must be {MOST_BYTES:,} bytes at most")])


def _unpacked(name: str, data: bytes) -> bytes:
    """Return what gzip packed, or raise for what is broken or grows beyond belief."""
    packed, whole = io.BytesIO(data), io.BytesIO()
    most = min(max(MOST_GROWTH * len(data), FREE_GROWTH), MOST_BYTES)
    try:
        with gzip.GzipFile(fileobj=packed) as file:
            while piece := file.read(min(PIECE, most + 1)):
                whole.write(piece)
                so_far = max(MOST_GROWTH * packed.tell(), BEFOREHAND)
                if whole.tell() > min(most, so_far):
                    raise InvalidInput([_grown(name, whole.tell(), len(data))])
    except BROKEN as error:
        if isinstance(error, InvalidInput):
            raise
        message = f"is broken or truncated where gzip packed it: {error}"
        raise InvalidInput([Fault(name, len(data), message)]) from None
    return whole.getvalue()


def _grown(name: str, unpacked: int, packed: int) -> Fault:
    """Return the fault of a file that unpacks to too many bytes."""
    times = f"more than {MOST_GROWTH} times its {packed} bytes"
    return Fault(
        name, unpacked, f"unpacks to {times if unpacked <= MOST_BYTES else MOST_BYTES}: unpack it"
    )


def _members(document: Document) -> tuple[Document, ...]:
    """Return the members of a zip archive by name."""
    size = len(document.data)
    with zipfile.ZipFile(io.BytesIO(document.data)) as archive:
        entries = sorted(archive.infolist(), key=lambda entry: entry.filename)
        unpacked = sum(entry.file_size for entry in entries)
        if unpacked > min(max(MOST_GROWTH * size, FREE_GROWTH), MOST_BYTES):
            raise InvalidInput([_grown(document.name, unpacked, size)])
        for entry in entries:
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile(f"{quoted(entry.filename)} is neither stored nor deflated")
        return tuple(
            Document(
                f"{document.name}/{entry.filename}", _as_utf8(archive.read(entry)), checked=True
            )
            for entry in entries
            if not entry.is_dir()
        )


def _members_of_tar(document: Document) -> tuple[Document, ...]:
    """Return the files of a tar archive by name; what gzip packed was unpacked before."""
    with tarfile.open(fileobj=io.BytesIO(document.data), mode="r:") as archive:
        entries = sorted(
            (one for one in archive if one.isreg() and not one.issparse()), key=lambda one: one.name
        )
        return tuple(
            Document(f"{document.name}/{entry.name}", _as_utf8(content.read()), checked=True)
            for entry in entries
            if (content := archive.extractfile(entry)) is not None
        )


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


def largest(documents: Sequence[Document]) -> Document:
    """Return the largest document, which stands for all in messages and limits of size."""
    if not documents:
        raise InvalidInput([Fault("source", [], "names no file")])
    return max(documents, key=lambda one: len(one.data))


@contextmanager
def collector_held() -> Iterator[None]:
    """Hold the collector of circular garbage, which else looks at every object of a file again.

    >>> with collector_held():
    ...     gc.isenabled()
    False
    """
    enabled = gc.isenabled()
    gc.disable()  # reference counts still free memory
    try:
        yield
    finally:
        if enabled:
            gc.enable()
