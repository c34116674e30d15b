"""Arrays out of an ``.npz`` archive that anybody may have made.

Nothing is unpickled and no text is evaluated. What a file claims, the shape of an array and the
size of a member, is compared with what it holds before memory is taken for it.

References
----------
NumPy Enhancement Proposal 1, the ``.npy`` format; PKWARE, ``APPNOTE.TXT``.
"""

import io
import math
import re
import struct
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document, quoted

ZIP_MAGIC = b"PK\x03\x04"
MAGIC = b"\x93NUMPY"
LENGTH = {b"\x01\x00": struct.Struct("<H"), b"\x02\x00": struct.Struct("<I")}
"""How each version of the ``.npy`` format writes the length of its header."""

HEADER = re.compile(
    rb"(?=.{0,400}?['\"]descr['\"]\s{0,9}:\s{0,9}['\"]([<>|=]?[a-zA-Z?]\d{0,9})['\"])"
    rb"(?=.{0,400}?['\"]fortran_order['\"]\s{0,9}:\s{0,9}(True|False))"
    rb"(?=.{0,400}?['\"]shape['\"]\s{0,9}:\s{0,9}\(([\d,\sL]{0,200})\))\{",
    re.DOTALL,
)
"""The three entries of a header, in any order."""

DTYPE = re.compile(rb"[<>|=]?([?]|b1|[iu][1248]|f[248]|f16|U[1-9]\d{0,8})")
MOST_AXES = 8
MOST_GROWTH = 100
"""Times by which the members of an archive may outgrow it; loads never compress so far."""

FREE_GROWTH = 2**19
"""Bytes to which even the smallest archive may grow."""

FREE_ROWS = 2**16
"""Rows without columns that even the smallest archive may have: they take no bytes there."""

BROKEN = (
    ValueError, TypeError, OSError, EOFError, LookupError, RuntimeError, OverflowError,
    struct.error, zlib.error, zipfile.BadZipFile,
)  # fmt: skip
"""What reading a damaged archive may raise; the standard library does not say."""


def read_members(faults: FaultList, document: Document) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive by name, noting those that cannot be read."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(document.data))
    except BROKEN as error:
        message = "is not an .npz archive"
        if document.data.startswith(ZIP_MAGIC):
            message = "is a truncated .npz archive"
        faults.add(document.name, len(document.data), f"{message}: {error}")
        return {}
    size = len(document.data)
    members: dict[str, NDArray[Any]] = {}
    with archive:
        entries = archive.infolist()
        if not _is_as_large_as_it_says(faults, document, entries):
            return {}
        for entry in entries:
            name = entry.filename.removesuffix(".npy")
            at = f"{document.name}: {quoted(name)}"
            if name in members:
                faults.add(at, quoted(name), "is the name of two members")
                continue
            try:
                if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError("it is neither stored nor deflated")
                members[name] = array_of(archive.read(entry), max(size, FREE_ROWS))
            except BROKEN as error:
                faults.add(at, type(error).__name__, f"is broken: {error}")
    return members


def _is_as_large_as_it_says(
    faults: FaultList, document: Document, entries: list[zipfile.ZipInfo]
) -> bool:
    """Whether members fit the archive that holds them, so that none of it is a bomb."""
    size = len(document.data)
    held = sum(entry.compress_size for entry in entries)
    if held > size:
        faults.add(document.name, held, f"claims members of more than its {size} bytes")
        return False
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > max(MOST_GROWTH * size, FREE_GROWTH):
        message = f"unpacks to more than {MOST_GROWTH} times its {size} bytes: write it anew"
        faults.add(document.name, unpacked, f"{message}, uncompressed")
        return False
    return True


def array_of(data: bytes, most_rows: int) -> NDArray[Any]:
    """Return the array of one ``.npy`` member; ``most_rows`` limits what takes no bytes at all."""
    length = LENGTH.get(data[6:8])
    if data[:6] != MAGIC or length is None:
        raise ValueError("it has no header of a .npy array")
    begin = 8 + length.size + length.unpack_from(data, 8)[0]
    header = HEADER.match(data[8 + length.size : begin])
    if header is None:
        raise ValueError("its header is none that numpy writes for plain arrays")
    if not DTYPE.fullmatch(header[1]):
        raise ValueError(f"type {header[1].decode()} is neither a number, a truth nor text")
    dtype = np.dtype(header[1].decode())
    shape = tuple(int(number) for number in re.findall(rb"\d+", header[3]))
    claimed = math.prod(shape) * dtype.itemsize
    if (
        len(shape) > MOST_AXES
        or claimed != len(data) - begin
        or max(shape, default=0) > max(math.prod(shape), most_rows)
    ):
        raise ValueError(f"its shape {shape} of {dtype} does not fit {len(data) - begin} bytes")
    _check_values(data, begin, dtype)
    flat = np.frombuffer(data, dtype, math.prod(shape), begin)
    return flat.reshape(shape, order="F" if header[2] == b"True" else "C").copy()


def _check_values(data: bytes, begin: int, dtype: np.dtype[Any]) -> None:
    """Raise for bytes that are no truth value, and for characters that are none."""
    if dtype.kind == "b" and np.frombuffer(data, np.uint8, -1, begin).max(initial=0) > 1:
        raise ValueError("it holds bytes that are neither true nor false")
    if dtype.kind == "U":
        code = np.frombuffer(data, np.dtype(np.uint32).newbyteorder(dtype.byteorder), -1, begin)
        if ((code > 0x10FFFF) | ((code >= 0xD800) & (code < 0xE000))).any():
            raise ValueError("it holds characters that are not Unicode")
