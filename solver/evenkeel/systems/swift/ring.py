"""Read the file of a ring: a header, JSON with the devices, and the device of each replica.

Version 2 (Swift 2.36) has these as sections, each with its length, and an index of the sections;
the last 16 bytes are where the index begins, unpacked and packed. It is read as version 1 has it.
The claims of the header are compared with the size of the file before memory is allocated.
"""

import hashlib
import math
import re
import struct
import zlib
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.json_text import Int64, decode_json
from evenkeel.systems.swift.builder import contents

MAGIC = b"R1NG"
HEADER = struct.Struct("!4sHI")
VERSION = 1
SECTIONS = 2  # the version with sections
LENGTH = struct.Struct("!Q")
METADATA, DEVICES, ASSIGNMENTS = (
    f"swift/ring/{name}" for name in ("metadata", "devices", "assignments")
)
CHECKSUMS = ("md5", "sha1", "sha256", "sha512")
HEAD = 65536
HASH_BITS = 32
# the device of a replica that has none, in version 1; the greatest number in version 2
NO_DEVICE = 65535

NONE = -1  # the same once it is read
MOST_DEVICES = 2**32 - 1  # devices are numbered below it: more than version 1 can name


class Device(msgspec.Struct, gc=False):
    """A device of a ring."""

    id: Annotated[int, Meta(ge=0, lt=MOST_DEVICES)]
    zone: Int64
    ip: str
    port: Annotated[int, Meta(ge=0, lt=65536)]
    device: str
    weight: Annotated[float, Meta(ge=0.0, le=1e12)]
    region: Int64 = 1  # rings from before there were regions have none, and Swift takes it for 1


class Head(msgspec.Struct):
    """The JSON of a ring; removed devices are null."""

    devs: list[Device | None]
    part_shift: Annotated[int, Meta(ge=0, le=HASH_BITS)]
    replica_count: Annotated[float, Meta(ge=0.0, lt=1000.0)]
    byteorder: Literal["little", "big"] = "little"


class Metadata(msgspec.Struct):
    """The JSON of a ring with sections, but its devices."""

    part_shift: Annotated[int, Meta(ge=0, le=HASH_BITS)]
    dev_id_bytes: Literal[2, 4, 8]
    version: int | None = None
    next_part_power: int | None = None


# of each section where it begins and ends, packed and unpacked, and its checksum
Index = dict[str, tuple[int | None, int, int | None, int | None, str | None, str | None]]


class Ring(NamedTuple):
    """A ring: its JSON as it came and as we read it, and devices, replica by replica."""

    text: str
    head: Head
    device: NDArray[np.int64]
    parts: int
    version: int = VERSION
    # by how much devices may hold more than their weight, which only a builder has
    overload: float = 0.0
    more: int = 0  # replicas that ``set_replicas`` added since the last ring, less those it gave up

    @property
    def replicas(self) -> float:
        """How many a partition has, on average."""
        return len(self.device) / self.parts


def recognises(document: Document) -> str:
    """Tell whether a document is a ring, or the builder that makes rings."""
    head = document.data[:HEAD]
    if head.startswith(MAGIC):
        return "ring"
    # a pickle, which is never loaded; the name of a field identifies it
    return "builder" if head.startswith(b"\x80") and b"part_power" in head else ""


ASKS = "the ring itself, such as /etc/swift/object.ring.gz"

# lines that Swift's tools print of a ring or cluster
WORDS = re.compile(
    rb"^\S+, build version \d+|^Devices: +id |--> Starting reconnaissance|^Dispersion is |"
    rb"^Queried \d+ (?:objects|containers) for dispersion|^Server:Port Device|"
    rb"\bswift-(?:ring|recon)",
    re.MULTILINE,
)


def hint(document: Document) -> str:
    """Return how a ring of an early release is read; "" for other documents."""
    head = document.data[:HEAD]
    if head.startswith(b"\x80") and b"part_shift" in head:
        return "is a ring as a pickle, of an early release: let a later one write it (write_ring)"
    return ""


def read_ring(faults: FaultList, document: Document) -> Ring | None:
    """Take the file of a ring apart; None after noting what is wrong with it."""
    data = document.data
    if recognises(document) == "builder":
        return _of_builder(faults, document)
    if len(data) < HEADER.size or not data.startswith(MAGIC):
        faults.add(document.name, data[:8], "is not a ring, or is truncated")
        return None
    _, version, length = HEADER.unpack_from(data)
    if version == SECTIONS:
        return _of_sections(faults, document)
    if version != VERSION:
        message = (
            f"is a ring of another version than {VERSION} and {SECTIONS}: have swift-ring-builder "
            f"write one of version {VERSION}"
        )
        faults.add(document.name, version, message)
        return None
    if HEADER.size + length > len(data):
        message = f"is truncated: its list of devices claims {length} bytes"
        faults.add(document.name, len(data), message)
        return None
    begin = HEADER.size + length
    head = decode_json(faults, Document(document.name, data[HEADER.size : begin]), Head)
    if head is None or not _counts_fit(faults, document, head, len(data) - begin):
        return None
    order = "<u2" if head.byteorder == "little" else ">u2"
    device = np.frombuffer(data, order, offset=begin).astype(np.int64)
    device[device == NO_DEVICE] = NONE
    text = data[HEADER.size : begin].decode("utf-8", "replace")
    return Ring(text, head, device, 1 << (HASH_BITS - head.part_shift))


def _of_builder(faults: FaultList, document: Document) -> Ring | None:
    """Take a builder apart: the ring that it would write."""
    try:
        held = contents(document.data)
        rows = [np.array(row, np.int64) for row in held.rows or ()]
        head = {
            "devs": held.devices(), "part_shift": HASH_BITS - held.part_power,
            "byteorder": "little", "replica_count": float(len(held.lengths())),
            "version": held.version,
        }  # fmt: skip
        text = msgspec.json.encode(head)
    except (ValueError, OverflowError) as error:
        faults.add(document.name, document.data[:8], f"is a builder that is not read: {error}")
        return None
    read = decode_json(faults, Document(document.name, text), Head)
    if read is None:
        return None
    device = np.concatenate([*rows, np.zeros(0, np.int64)])
    parts = 1 << held.part_power
    full = rows[:-1] or rows
    if not len(device) or any(len(row) != parts for row in full) or len(rows[-1]) > parts:
        message = "is a builder without a ring: rebalance it once, or read the ring that it wrote"
        faults.add(document.name, len(device), message)
        return None
    device[device >= held.none_dev_id] = NONE
    wanted = np.full(sum(held.lengths()), NONE)
    wanted[: len(device)] = device[: len(wanted)]
    more = len(wanted) - len(device)
    return Ring(text.decode(), read, wanted, parts, overload=held.overload or 0.0, more=more)


def _of_sections(faults: FaultList, document: Document) -> Ring | None:
    """Take a ring of version 2 apart."""
    data, name = document.data, document.name
    tail = len(data) - 2 * LENGTH.size
    begin = LENGTH.unpack_from(data, tail)[0] if tail > HEADER.size else len(data)
    text = _section(data, begin) if begin < len(data) else None
    index = None if text is None else decode_json(faults, Document(name, text), Index)
    if index is None:
        faults.add(name, begin, "has no index of its sections: it is truncated, or broken")
        return None
    found = {}
    for key in (METADATA, DEVICES, ASSIGNMENTS):
        if key not in index:
            faults.add(name, key, f"is missing from the sections, {[*index]}")
            continue
        begin, method, digest = index[key][1], *index[key][4:]
        own = _section(data, begin) if 0 <= begin < len(data) else None
        if own is None:
            faults.add(name, key, "is truncated")
            continue
        sum_ = hashlib.new(method, usedforsecurity=False) if method in CHECKSUMS else None
        if sum_ is not None:
            sum_.update(data[begin : begin + LENGTH.size + len(own)])
            if sum_.hexdigest() != digest:
                faults.add(name, key, f"does not have its checksum, {digest}: it is broken")
        found[key] = own
    if faults:
        return None
    meta = decode_json(faults, Document(name, found[METADATA]), Metadata)
    devs = decode_json(faults, Document(name, found[DEVICES]), list[Device | None])
    if meta is None or devs is None:
        return None
    parts, wide = 1 << (HASH_BITS - meta.part_shift), meta.dev_id_bytes
    count, rest = divmod(len(found[ASSIGNMENTS]), wide)
    if rest or not count:
        message = f"bytes of replicas do not fit numbers of {wide} bytes"
        faults.add(name, len(found[ASSIGNMENTS]), message)
        return None
    number = np.frombuffer(found[ASSIGNMENTS], f">u{wide}").astype(np.uint64)
    is_none = number == np.uint64((1 << (8 * wide)) - 1)
    number[is_none] = 0
    if number.max() >= MOST_DEVICES:
        faults.add(name, int(number.max()), f"devices are numbered below {MOST_DEVICES}")
        return None
    device = np.where(is_none, NONE, number.astype(np.int64))
    head = {
        "devs": msgspec.json.decode(found[DEVICES]), "part_shift": meta.part_shift,
        "replica_count": -(-count // parts), "byteorder": "little",
    }  # fmt: skip
    more = {key: getattr(meta, key) for key in ("version", "next_part_power")}
    head |= {key: value for key, value in more.items() if value is not None}
    as_first = msgspec.json.encode(head).decode()
    read = Head(devs, meta.part_shift, head["replica_count"])
    return Ring(as_first, read, device, parts, SECTIONS)


class SectionWriter:
    """The file of a ring of version 2 while it is packed: each piece can be unpacked by itself."""

    def __init__(self, moment: int) -> None:
        """Begin with what gzip and the ring begin with."""
        self.packed = bytearray(struct.pack("<4sIBB", b"\x1f\x8b\x08\0", moment, 2, 255))
        self.plain = b""
        self.index: dict[str, tuple[int, int, int, int, str, str]] = {}
        self._add(struct.pack("!4sH", MAGIC, SECTIONS), 0)

    def _add(self, data: bytes, level: int = 9) -> tuple[int, int]:
        """Add a piece; return where it begins, packed and unpacked."""
        begin = len(self.packed), len(self.plain)
        packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
        self.packed += packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH)
        self.plain += data
        return begin

    def add_section(self, name: str, data: bytes) -> None:
        """Add a section with its length, and note it in the index."""
        own = LENGTH.pack(len(data)) + data
        begin = self._add(own)
        end, digest = (len(self.packed), len(self.plain)), hashlib.sha256(own).hexdigest()
        self.index[name] = (*begin, *end, "sha256", digest)

    def file(self) -> bytes:
        """Add the index, and return the file; its last pieces are of a known length."""
        index = msgspec.json.encode(self.index)
        packed, plain = self._add(LENGTH.pack(len(index)) + index)
        self._add(LENGTH.pack(plain), 0)
        self._add(LENGTH.pack(packed), 0)
        end = zlib.compressobj(0, zlib.DEFLATED, -zlib.MAX_WBITS).flush()
        size = len(self.plain) % 2**32
        return bytes(self.packed) + end + struct.pack("<II", zlib.crc32(self.plain), size)


def _section(data: bytes, begin: int) -> bytes | None:
    """Return the section that begins somewhere, None where it would end beyond the data."""
    if begin + LENGTH.size > len(data):
        return None
    end = begin + LENGTH.size + LENGTH.unpack_from(data, begin)[0]
    return data[begin + LENGTH.size : end] if end <= len(data) else None


def _counts_fit(faults: FaultList, document: Document, head: Head, rest: int) -> bool:
    """Return whether the number of replicas fits the header; the last row may be short."""
    parts = 1 << (HASH_BITS - head.part_shift)
    whole, fraction = divmod(head.replica_count, 1.0)
    least = int(whole) * parts + math.floor(fraction * parts)
    most = least + (fraction > 0.0)
    # Swift writes the number of rows: only a checksum tells a short row from a truncated file
    if document.checked and whole and not fraction:
        least -= parts - 1
    if rest % 2 or not least <= rest // 2 <= most:
        claimed = f"{parts} partitions with {head.replica_count:g} replicas"
        message = f"bytes of replicas do not fit {claimed}: it is truncated, or broken"
        faults.add(document.name, rest, message)
        return False
    return True


def check_devices(faults: FaultList, name: str, devices: list[Device | None]) -> None:
    """Note devices whose number is not their place, and those that come twice."""
    seen: dict[tuple[str, int, str], int] = {}
    for i, one in enumerate(devices):
        if one is None:
            continue
        if one.id != i:
            faults.add(f"{name}: devs[{i}].id", one.id, f"must be {i}, its place")
        key = (one.ip, one.port, one.device)
        first = seen.setdefault(key, i)
        if first != i:
            message = f"is device {first} already, at the same address"
            faults.add(f"{name}: devs[{i}].device", quoted(one.device), message)
