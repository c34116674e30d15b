"""Native columnar ``.npz``: arrays by the names that ``Cluster.from_arrays`` gives them.

Mappings are spread over members such as ``domains/zone`` and ``tags/ssd``; names are unicode
arrays; what is no array (rules, order of the tiers, dependencies) is JSON in the member ``meta``,
byte by byte; in one string, which takes four times the room, it is read as well. A file without
``meta``, written by ``numpy.savez(path, capacity=..., load=...)``, is read, too.

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
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.disks import Disks
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.systems.documents import Document, quoted, the_only
from evenkeel.systems.json_text import Int32, decode_json
from evenkeel.systems.native.arguments import (
    Arguments,
    RuleDocument,
    arguments_of,
    build,
    check_slots,
)
from evenkeel.systems.registry import Format

VERSION = 1
DISKS = ("node", "capacity", "state", "names")
MAPPINGS = ("domains", "tags", "attributes", "tier_capacity")
NAMES = ("node_names", "partition_names", "group_names")
ARRAYS = frozenset(
    {
        "capacity", "load", "leader_load", "non_voter_load", "tier_distance", "watermark", "alive",
        "accepts", "keeps", "leads", "gone", "since", "weight", "lead_weight", "max_replicas",
        "stands_for", "replicas", "voters", "min_active", "group", "move_cost", "attached",
        "forbidden", "placement", "first", "leader", "role", "flags", "disk", "rule", "group_rule",
    }
)  # fmt: skip


class Meta(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What is no array: the member ``meta``."""

    format: str
    version: int
    dimensions: list[str] | None = None
    tiers: list[str] = []
    crossing: list[str] = []
    transient: list[str] = []
    bytes: str | None = None
    rules: list[RuleDocument] = []
    depends: list[tuple[Int32, Int32, str]] = []
    native: Any = None
    native_format: str = ""


def read(documents: Sequence[Document]) -> Cluster:
    """Read a cluster from one ``.npz`` file."""
    document = the_only(documents, FORMAT.name)
    faults = FaultList()
    members = read_members(faults, document)
    meta = _read_meta(faults, document, members.pop("meta", None))
    given = _arguments(faults, document.name, members, meta)
    for name in ("capacity", "load"):
        if name not in given and not faults:
            faults.add(f"{document.name}: {name}", None, "is missing")
    faults.raise_if_any()
    if "replicas" in given:
        partitions = len(np.atleast_1d(given["load"]))
        path = f"{document.name}: replicas"
        check_slots(faults, path, given["replicas"], partitions, document)
    return build(faults, given, lambda path: f"{document.name}: {path}")


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return the content of one ``.npz`` file, uncompressed so that it reads fast."""
    given = arguments_of(cluster if placement is None else cluster.with_placement(placement))
    members: dict[str, NDArray[Any]] = {}
    for key in MAPPINGS:
        mapping = given.pop(key, {})
        if key == "domains":
            given["tiers"] = list(mapping)
        for name, array in mapping.items():
            members[f"{key}/{_quoted(name)}"] = array
    if disks := given.pop("disks", None):
        members |= {f"disks/{key}": np.asarray(getattr(disks, key)) for key in DISKS[:-1]}
        members["disks/names"] = _names_array("disks/names", list(disks.names))
    for key in NAMES:
        if key in given:
            members[key] = _names_array(key, given.pop(key))
    for key in sorted(ARRAYS & given.keys()):
        members[key] = np.asarray(given.pop(key))
    given["rules"] = [RuleDocument.of(rule) for rule in given.pop("rules", ())]
    given["dimensions"] = list(given["dimensions"])
    meta = Meta("evenkeel", VERSION, **given)
    # the description comes first, where it is also recognised
    ordered = {"meta": np.frombuffer(_encoded(meta), np.uint8)} | members
    file = io.BytesIO()
    np.savez(file, **ordered)
    return {path: file.getvalue()}


def _read_meta(faults: FaultList, document: Document, array: NDArray[Any] | None) -> Meta:
    nothing = Meta("evenkeel", VERSION)
    if array is None:
        return nothing
    at = f"{document.name}: meta"
    if array.dtype == np.uint8:
        text = array.tobytes()
    elif array.shape == () and array.dtype.kind == "U":  # as it was written at first
        text = str(array).encode()
    else:
        faults.add(at, f"{array.dtype} of shape {array.shape}", "must be JSON in UTF-8, (n,) uint8")
        return nothing
    meta = decode_json(faults, Document(at, text), Meta)
    if meta is None:
        return nothing
    if (meta.format, meta.version) != ("evenkeel", VERSION):
        faults.add(at, f"{meta.format} {meta.version}", f"must be evenkeel, version {VERSION}")
    return meta


def _arguments(
    faults: FaultList, name: str, members: dict[str, NDArray[Any]], meta: Meta
) -> Arguments:
    given: Arguments = {}
    mappings: dict[str, dict[str, NDArray[Any]]] = {}
    for member, array in members.items():
        kind, _, inner = member.partition("/")
        if kind == "disks" and inner in DISKS:
            mappings.setdefault(kind, {})[inner] = array
        elif inner and kind in MAPPINGS:
            mappings.setdefault(kind, {})[unquote(inner)] = array
        elif member in NAMES:
            if array.ndim != 1 or (array.dtype.kind != "U" and array.size):
                faults.add(f"{name}: {member}", str(array.dtype), "must be one row of strings")
            given[member] = array.ravel().tolist()
        elif member in ARRAYS:
            given[member] = array
        else:
            known = sorted(
                ARRAYS | {*NAMES, "meta"} | {f"{kind}/..." for kind in (*MAPPINGS, "disks")}
            )
            at = f"{name}: {quoted(member)}"
            faults.add(at, quoted(member), f"is unknown; known: {known}")
    tiers = mappings.get("domains", {})
    order = meta.tiers or list(tiers)
    for tier in sorted({*order} ^ {*tiers}):
        faults.add(f"{name}: domains/{tier}", tier, "must stand both in meta and as an array")
    if tiers and not faults:
        mappings["domains"] = {tier: tiers[tier] for tier in order}
    if disks := mappings.pop("disks", None):
        given["disks"] = _disks(faults, name, disks)
    given |= mappings
    for key in ("dimensions", "bytes"):
        if getattr(meta, key) is not None:
            given[key] = getattr(meta, key)
    given["rules"] = [rule.rule() for rule in meta.rules]
    for key in ("crossing", "transient", "depends", "native", "native_format"):
        given[key] = getattr(meta, key)
    return given


def _disks(faults: FaultList, name: str, parts: dict[str, NDArray[Any]]) -> Disks | None:
    """Return the disks of nodes, noting what does not fit at its place in the file."""
    labels = parts.pop("names", None)
    try:
        return Disks(**parts, names=None if labels is None else labels.ravel().tolist())
    except (InvalidInput, TypeError) as error:
        for one in getattr(error, "faults", [Fault("disks/node", None, "is missing")]):
            faults.add(f"{name}: {one.path.replace('.', '/')}", one.value, one.message)
    return None


def _quoted(name: str) -> str:
    try:
        return quote(name, safe=" +,;=@()[]:!$&")
    except UnicodeEncodeError:
        raise InvalidInput([Fault("name", name, "cannot be written as UTF-8")]) from None


def _names_array(argument: str, names: list[str]) -> NDArray[Any]:
    """Return names as a unicode array, which drops trailing NULs and takes no lone surrogates."""
    array = np.array(names, np.str_)
    back = array.tolist()
    if back == names:
        return array
    faults = FaultList()
    for i, (name, kept) in enumerate(zip(names, back, strict=True)):
        if name != kept:
            faults.add(f"{argument}[{i}]", name, "cannot be written: it ends in a NUL")
    faults.raise_if_any()
    return array


def _encoded(meta: Meta) -> bytes:
    try:
        return msgspec.json.encode(meta)
    except UnicodeEncodeError as error:
        raise InvalidInput([Fault("cluster", error.object, "cannot be written as UTF-8")]) from None


def _recognises(document: Document) -> str:
    known = (
        document.data.startswith(ZIP_MAGIC)
        and b"capacity.npy" in document.data
        and b"placement_before.npy" not in document.data
    )
    return "cluster" if known else ""


FORMAT = Format(
    name="native-npz",
    summary="columnar .npz, the fastest",
    suffixes=(".npz",),
    recognises=_recognises,
    read=read,
    encode=encode,
)


ZIP_MAGIC = b"PK\x03\x04"
MAGIC = b"\x93NUMPY"
# how each version of the ``.npy`` format writes the length of its header
LENGTH = {b"\x01\x00": struct.Struct("<H"), b"\x02\x00": struct.Struct("<I")}

# the three entries of a header, in any order
HEADER = re.compile(
    rb"(?=.{0,400}?['\"]descr['\"]\s{0,9}:\s{0,9}['\"]([<>|=]?[a-zA-Z?]\d{0,9})['\"])"
    rb"(?=.{0,400}?['\"]fortran_order['\"]\s{0,9}:\s{0,9}(True|False))"
    rb"(?=.{0,400}?['\"]shape['\"]\s{0,9}:\s{0,9}\(([\d,\sL]{0,200})\))\{",
    re.DOTALL,
)

DTYPE = re.compile(rb"[<>|=]?([?]|b1|[iu][1248]|f[248]|f16|U[1-9]\d{0,8})")
MOST_AXES = 8
# times by which the members of an archive may outgrow it; loads never compress so far
MOST_GROWTH = 100

FREE_GROWTH = 2**19  # bytes to which even the smallest archive may grow
# rows without columns that even the smallest archive may have: they take no bytes there
FREE_ROWS = 2**16

# what reading a damaged archive may raise; the standard library does not say
BROKEN = (
    ValueError, TypeError, OSError, EOFError, LookupError, RuntimeError, OverflowError,
    struct.error, zlib.error, zipfile.BadZipFile,
)  # fmt: skip


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
