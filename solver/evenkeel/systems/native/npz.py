"""Native columnar ``.npz``: arrays by the names that ``Cluster.from_arrays`` gives them.

Mappings are spread over members such as ``domains/zone`` and ``tags/ssd``; names are unicode
arrays; what is no array (rules, order of the tiers, dependencies) is JSON in the member ``meta``,
byte by byte; in one string, which takes four times the room, it is read as well. A file without
``meta``, written by ``numpy.savez(path, capacity=..., load=...)``, is read, too.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.systems.documents import Document, quoted, the_only
from evenkeel.systems.json_text import Int32, decode_json
from evenkeel.systems.native.archive import ZIP_MAGIC, read_members
from evenkeel.systems.native.arguments import (
    Arguments,
    RuleDocument,
    arguments_of,
    build,
    check_slots,
)
from evenkeel.systems.registry import Format

VERSION = 1
MAPPINGS = ("domains", "tags", "attributes", "tier_capacity")
NAMES = ("node_names", "partition_names", "group_names")
ARRAYS = frozenset(
    {
        "capacity", "load", "leader_load", "non_voter_load", "tier_distance", "watermark", "alive",
        "accepts", "keeps", "leads", "gone", "since", "weight", "lead_weight", "max_replicas",
        "stands_for", "replicas", "voters", "min_active", "group", "move_cost", "attached",
        "forbidden", "placement", "first", "leader", "role", "flags", "rule", "group_rule",
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
        if inner and kind in MAPPINGS:
            mappings.setdefault(kind, {})[unquote(inner)] = array
        elif member in NAMES:
            if array.ndim != 1 or (array.dtype.kind != "U" and array.size):
                faults.add(f"{name}: {member}", str(array.dtype), "must be one row of strings")
            given[member] = array.ravel().tolist()
        elif member in ARRAYS:
            given[member] = array
        else:
            known = sorted(ARRAYS | {*NAMES, "meta"} | {f"{kind}/..." for kind in MAPPINGS})
            at = f"{name}: {quoted(member)}"
            faults.add(at, quoted(member), f"is unknown; known: {known}")
    tiers = mappings.get("domains", {})
    order = meta.tiers or list(tiers)
    for tier in sorted({*order} ^ {*tiers}):
        faults.add(f"{name}: domains/{tier}", tier, "must stand both in meta and as an array")
    if tiers and not faults:
        mappings["domains"] = {tier: tiers[tier] for tier in order}
    given |= mappings
    for key in ("dimensions", "bytes"):
        if getattr(meta, key) is not None:
            given[key] = getattr(meta, key)
    given["rules"] = [rule.rule() for rule in meta.rules]
    for key in ("crossing", "transient", "depends", "native", "native_format"):
        given[key] = getattr(meta, key)
    return given


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
