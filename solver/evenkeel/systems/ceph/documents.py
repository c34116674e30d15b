"""Recognise Ceph's JSON documents, and define the parts of their schemas that are read."""

import re
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document
from evenkeel.systems.json_text import decode_json
from evenkeel.systems.printed import CUT

OSD_DUMP = re.compile(rb"^(?:pool \d+ '|max_osd \d+|osd\.\d+ +(?:up|down) )", re.MULTILINE)
EPOCH = re.compile(rb"\s*+(?:[^\n]*\n){0,9}?epoch \d+\s*\n")
PG_DUMP = re.compile(
    rb"^[ \t]*+(?:pg_?stat\s+(?:objects|state)|pg\s+objects\s+degraded)\s",
    re.MULTILINE | re.IGNORECASE,
)

POOL = re.compile(r"pool (\d+) '(.*?)' (replicated|erasure)(?: profile (\S+))? (.*)")
OSD = re.compile(r"osd\.(\d+) +(up|down) +(in|out) +weight (\S+)(?: +primary_affinity (\S+))?(.*)")
NUMBERED = re.compile(r"(\w+) (\d+)(?= |$)")
FOR_GROUPS = re.compile(r"(pg_temp|pg_upmap|pg_upmap_items|pg_upmap_primar(?:y|ies)) (\S+) (.*)")
SET = re.compile(r"\[((?:-?\d+|NONE|,)*)\]")
NONE = 2147483647

DEVICES = re.compile(rb"^[ \t]*+ID\s.*\bWEIGHT\s.*\b(?:REWEIGHT|PRI-AFF)\b", re.MULTILINE)
# a device of ``osd tree`` or ``osd df``: its number, its class, its weight, and the rest
DEVICE = re.compile(r"\s*(\d+)\s+(?:[A-Za-z]\S*\s+)?[\d.]+\s+(.*)")
AMOUNT = re.compile(r"(\d+(?:\.\d+)?) ?([kKMGTPE]?)(?:iB|B)?\b")


def osd_dump_as_json(faults: FaultList, document: Document) -> Document:
    """Return the osd dump in its JSON, as far as placement needs it; JSON stays as it is."""
    if not EPOCH.match(document.data):
        return document
    found: dict[str, Any] = {
        "pools": [], "osds": [], "pg_temp": [], "pg_upmap": [], "pg_upmap_items": [],
        "pg_upmap_primaries": [],
    }  # fmt: skip
    lines = document.data.decode("utf-8", "replace").splitlines()
    for number, line in enumerate(lines, start=1):
        if pool := POOL.match(line):
            found["pools"].append(_pool(pool))
            found["before_luminous"] = "crush_ruleset" in line
        elif osd := OSD.match(line):
            found["osds"].append(_osd(osd))
        elif group := FOR_GROUPS.match(line):
            _add_group(found, *group.groups())
        elif line.startswith("backfillfull_ratio "):
            found["backfillfull_ratio"] = _number(line.split()[1])
        elif line.startswith("flags "):
            found["flags"] = line[len("flags ") :].strip()
        elif line.startswith("require_min_compat_client "):
            found["require_min_compat_client"] = line.split()[1]
        elif line.strip() in CUT:
            message = "stands for lines that were left out: devices and pools there would be gone"
            faults.add(f"{document.name}:{number}", line.strip(), f"{message}; print all of them")
    return replace(document, data=msgspec.json.encode(found))


def _pool(pool: re.Match[str]) -> dict[str, Any]:
    number, name, kind, profile, rest = pool.groups()
    stated = {key: int(value) for key, value in NUMBERED.findall(rest)}
    return {
        "pool": int(number), "pool_name": name, "type": 1 if kind == "replicated" else 3,
        "size": stated.get("size"), "pg_num": stated.get("pg_num"),
        "crush_rule": stated.get("crush_rule", stated.get("crush_ruleset")),
        "pg_placement_num": stated.get("pgp_num"),
        "pg_num_target": stated.get("pg_num_target", 0),
        "flags": int("hashpspool" in rest), "erasure_code_profile": profile or "",
    }  # fmt: skip


def _osd(osd: re.Match[str]) -> dict[str, Any]:
    number, up, inside, weight, affinity, rest = osd.groups()
    states = next((word for word in reversed(rest.split()) if "exists" in word), "")
    return {
        "osd": int(number), "up": int(up == "up"), "in": int(inside == "in"),
        "weight": _number(weight), "primary_affinity": _number(affinity or "1"),
        "state": states.split(","),
    }  # fmt: skip


def _add_group(found: dict[str, Any], what: str, pgid: str, rest: str) -> None:
    ids = _ids(rest)
    if what == "pg_upmap_items":
        pairs = [{"from": a, "to": b} for a, b in zip(ids[::2], ids[1::2], strict=False)]
        found[what].append({"pgid": pgid, "mappings": pairs})
    elif what.startswith("pg_upmap_primar"):
        found["pg_upmap_primaries"].append({"pgid": pgid, "primary_osd": int(rest.split()[0])})
    else:
        found[what].append({"pgid": pgid, "osds": ids})


# columns of a pg dump that count bytes, and what JSON calls them
COUNTED = {"BYTES": "num_bytes", "OMAP_BYTES": "num_omap_bytes"}


def pg_dump_as_json(document: Document) -> Document:
    """Return the placement groups of a pg dump as JSON; JSON stays as it is."""
    head = PG_DUMP.search(document.data)
    if head is None or document.is_json:
        return document
    lines = document.data[head.start() :].decode("utf-8", "replace").splitlines()
    names = [name.upper().rstrip("*") for name in next(filter(str.strip, lines)).split()]
    found = []
    for line in lines:
        words, sets = line.split(), SET.findall(line)
        if len(words) < len(names) or not re.fullmatch(r"\d+\.[0-9a-f]+", words[0]) or not sets:
            continue
        # all columns before the state are single words
        state = words[names.index("STATE")] if "STATE" in names else ""
        one: dict[str, Any] = {"pgid": words[0], "state": state, "up": _ids(sets[0])}
        one["acting"] = _ids(sets[1] if len(sets) > 1 else sets[0])
        if "BYTES" in names and words[names.index("BYTES")].lstrip("-").isdecimal():
            counted = zip(names, words, strict=False)
            one["stat_sum"] = {
                COUNTED[name]: int(word)
                for name, word in counted
                if name in COUNTED and word.lstrip("-").isdecimal()
            }
        found.append(one)
    return replace(document, data=msgspec.json.encode(found))


def devices_as_json(document: Document) -> Document:
    r"""Return the devices of ``osd tree`` or ``osd df`` as JSON; JSON stays as it is.

    >>> text = b"ID CLASS WEIGHT REWEIGHT SIZE RAW USE %USE\n 3 ssd 1 1 1 TiB 28 MiB\n"
    >>> devices_as_json(Document("df.txt", text)).data
    b'{"nodes":[{"id":3,"type":"osd","kb":1073741824,"kb_used":28672}]}'
    """
    head = DEVICES.search(document.data)
    if head is None or document.is_json:
        return document
    titles, *lines = document.data[head.start() :].decode("utf-8", "replace").splitlines()
    nodes: list[dict[str, Any]] = []
    for line in lines:
        if device := DEVICE.match(line):
            nodes.append({"id": int(device[1]), "type": "osd"})
            reweight, _, rest = device[2].partition(" ")
            amounts = (
                AMOUNT.findall(rest) if "%USE" in titles and _number(reweight) != reweight else []
            )
            for name, (amount, unit) in zip(("kb", "kb_used"), amounts, strict=False):
                power = "BKMGTPE".index(unit.upper() or "B") - 1
                nodes[-1][name] = round(float(amount) * 1024.0**power)
    return replace(document, data=msgspec.json.encode({"nodes": nodes}))


# how answers begin that are text
BEGINS = re.compile(
    rb"^(?:epoch \d+[ \t\r]*$|# begin crush map|%b|%b)"
    % (DEVICES.pattern.lstrip(b"^"), PG_DUMP.pattern.lstrip(b"^")),
    re.MULTILINE | re.IGNORECASE,
)


def _answers(document: Document) -> list[Document]:
    """Return the answers of a session, text or JSON; a document with one, or none, as it is."""
    data, above = document.data, b""
    starts = [] if document.is_json else [one.start() for one in BEGINS.finditer(data)]
    found = []
    for begin, end in pairwise([*starts, len(data)]):
        # what asked for it, and no line of the answer before
        above += data[:begin].rstrip().rpartition(b"\n")[2] + b"\n"
        of_map = data.startswith(b"# begin", begin)
        found.append(
            document.part(begin, data.rfind(b"}", begin, end) + 1 if of_map else end, above)
        )
    if found and (b"\n{" in data or b"\n[" in data):
        found += [one for one in document.values() if one.is_json]
    known = [one for one in found if kind_of(one) in (*MAPS, "crush text")]
    return known if len(known) > 1 else [document]


def parts_of(document: Document) -> list[Document]:
    """Return the answers in a session or ``ceph report``; any other document as it is."""
    if kind_of(document) != "report":
        return _answers(document)
    try:
        inside = msgspec.json.decode(plain(document)[0].data, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return [document]
    return [
        replace(document, name=f"{document.name}: {key}", data=data)
        for key, raw in inside.items()
        if kind_of(Document(key, data := bytes(raw))) in MAPS
    ]


# what is in ``ceph report``, in ``ceph insights``, or where a tool keeps several answers
REPORT = re.compile(rb'"cluster_fingerprint"|"(?:crush_map|osd_dump)"\s*:\s*\{')

MAPS = ("osd dump", "crush dump", "pg dump", "osd tree", "osd df")

# the maps among the outputs in a sosreport, or in what must-gather collects
MEMBERS = re.compile(
    r"(?:^|/)(?:ceph|ceph_mon|must_gather_commands)/"
    r"ceph_(?:osd_dump|osd_crush_dump|osd_df|osd_tree|pg_dump)$"
)

# what people paste in place of maps, by its pattern
OTHERS = {
    rb"^(?:pg ?)?(?:id )?[0-9]+\.[0-9a-f]+[ \t]+\S*[ \t]*\[[0-9]+(?:,[0-9]+)+\]": (
        "to list groups and devices of Ceph"
    ),
    rb"^\s*health: HEALTH_|^HEALTH_(?:OK|WARN|ERR)\b|^--- RAW STORAGE ---|^\s+pgs:  ": (
        "to tell the state of Ceph, without its groups"
    ),
    rb"^pool \d+ '.*' (?:replicated|erasure) |\A\s*\[\s*\{\s*\"pool(?:_id|_name)?\"": (
        "to list pools of Ceph"
    ),
    rb"\A\s*\[?\s*\{\s*\"rule_id\"": "to list rules of Ceph's CRUSH map",
}

ASKS = "ceph osd dump, ceph osd crush dump and ceph pg dump, each with -f json"

# words of Ceph's commands and answers
WORDS = re.compile(
    rb"\bceph (?:osd|pg|df|health|report|tell)\b|\bosd\.\d|\bpg_upmap|\bactive\+clean\b"
)


def hint(document: Document) -> str:
    """Return how to print what a document seems to be as JSON or text; "" for others."""
    head = document.data[:HEAD].lstrip()
    for looks, what in OTHERS.items():
        if re.search(looks, head, re.MULTILINE):
            return f"it seems {what}: give {ASKS}"
    if re.match(rb"(?:<\?xml[^>]*>\s*)?<(?:osdmap|crush_map|pg_map|pg_stats|nodes)\b", head):
        return "it seems to be XML of Ceph: print it with -f json"
    if document.data.startswith((b"\0\0\1\0", b"\b\a")):
        return "it seems to be a binary map of Ceph: crushtool -d or osdmaptool --print prints it"
    return ""


def _ids(text: str) -> list[int]:
    found = re.findall(r"-?\d+|NONE", text)
    return [NONE if one == "NONE" or int(one) < 0 else int(one) for one in found]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


Kind = Literal[
    "osd dump",
    "osd tree",
    "osd df",
    "pg dump",
    "crush dump",
    "crush text",
    "upmap commands",
    "report",
    "",
]

HEAD = 65536  # bytes that are searched for the kind of a document
Id = Annotated[int, Meta(ge=0, lt=2**31)]
BucketId = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
Weight = Annotated[int, Meta(ge=0, lt=2**32)]  # in 16.16 fixed point
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Bytes = Annotated[int, Meta(ge=0, lt=2**62)]
# what a step of a rule may choose or set, and more than anybody asks for
Small = Annotated[int, Meta(ge=-1000, le=1000)]

# what some releases print for a ratio to nothing, and what other tools make of it
NO_NUMBER = re.compile(rb"[:,\[]\s*-?(?:nan|inf|NaN|Infinity)\b")

# the same, or a string, in which such words mean nothing
NUMBERS = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\b(?:nan|inf|NaN|Infinity)\b')

# what ``osdmaptool --upmap`` prints around its commands
AROUND = (
    r"osdmaptool: |writing upmap |checking for upmap |upmap, max-|pools |prepared \d|Unable to "
)

COMMAND = re.compile(
    rb"\s*+(?:(?:#(?! ceph osd (?:rm-)?pg-upmap)|%b)[^\n]*\s++)*+(?:# )?ceph osd (?:rm-)?pg-upmap"
    % AROUND.encode()
)


class PoolDump(msgspec.Struct):
    """A pool."""

    pool: Id
    type: Literal[1, 3]
    size: Annotated[int, Meta(ge=1, le=255)]
    crush_rule: Annotated[int, Meta(ge=0, le=255)]
    pg_num: Annotated[int, Meta(ge=1, lt=2**31)]
    pg_placement_num: Annotated[int, Meta(ge=1, lt=2**31)]
    pg_num_target: int = 0
    pool_name: str = ""
    flags: int = 1
    erasure_code_profile: str = ""


class OsdDump(msgspec.Struct):
    """A device."""

    osd: Id
    up: Literal[0, 1]
    inside: Literal[0, 1] = msgspec.field(name="in")
    weight: Share = 1.0
    primary_affinity: Share = 1.0
    state: list[str] = []


class Swap(msgspec.Struct, rename={"source": "from", "target": "to"}):
    """One pair of ``pg-upmap-items``."""

    source: Id
    target: Id


class UpmapItems(msgspec.Struct):
    """The pairs of one placement group."""

    pgid: str
    mappings: list[Swap]


class Upmap(msgspec.Struct):
    """A placement group whose devices are all named, for good or (``pg_temp``) for now."""

    pgid: str
    osds: list[Id] = []


class UpmapPrimary(msgspec.Struct):
    """A placement group whose primary is named."""

    pgid: str
    primary_osd: Id


class OsdMap(msgspec.Struct):
    """``ceph osd dump``."""

    pools: list[PoolDump]
    osds: list[OsdDump]
    pg_upmap: list[Upmap] = []
    pg_upmap_items: list[UpmapItems] = []
    pg_temp: list[Upmap] = []
    pg_upmap_primaries: list[UpmapPrimary] = []
    erasure_code_profiles: dict[str, dict[str, str]] = {}
    require_min_compat_client: str = ""
    flags: str = ""
    before_luminous: bool = False
    backfillfull_ratio: float | None = None


class TreeNode(msgspec.Struct):
    """A bucket or device of ``ceph osd tree``, or of ``ceph osd df``."""

    id: BucketId
    type: str = ""
    kb: Bytes = 0
    kb_used: Bytes = 0


class OsdTree(msgspec.Struct):
    """``ceph osd tree`` or ``ceph osd df``."""

    nodes: list[TreeNode]
    stray: list[TreeNode] = []


class StatSum(msgspec.Struct):
    """What is counted of a placement group."""

    num_bytes: Annotated[int, Meta(ge=-(2**62), lt=2**62)] = 0
    num_omap_bytes: Annotated[int, Meta(ge=-(2**62), lt=2**62)] = 0


class PgStat(msgspec.Struct):
    """A placement group, and the devices it is on."""

    pgid: str
    up: list[Id]
    up_primary: BucketId = -1
    acting: list[Id] = []
    state: str = "active+clean"
    stat_sum: StatSum | None = None


class PgStats(msgspec.Struct):
    """``ceph pg dump`` of old releases, and the inner part of the others."""

    pg_stats: list[PgStat]


class PgDump(msgspec.Struct):
    """``ceph pg dump``."""

    pg_map: PgStats


def plain(document: Document) -> tuple[Document, int]:
    """Return a document with ``null`` for each figure that is not finite, and their number."""
    if not NO_NUMBER.search(document.data):
        return document, 0
    found = 0

    def replaced(match: re.Match[bytes]) -> bytes:
        nonlocal found
        if match[0].startswith(b'"'):
            return match[0]
        found += 1
        return b"null"

    data = NUMBERS.sub(replaced, document.data)
    return replace(document, data=data), found


def read_stats(faults: FaultList, document: Document) -> tuple[str, list[PgStat] | None]:
    """Return the placement groups of a ``pg dump`` of any release, and where they stand in it."""
    head = document.data[:4096]
    if head.lstrip().startswith(b"["):
        return ": ", decode_json(faults, document, list[PgStat])
    if b'"pg_map"' in head:
        dump = decode_json(faults, document, PgDump)
        return ": pg_map.pg_stats", None if dump is None else dump.pg_map.pg_stats
    plain = decode_json(faults, document, PgStats)
    return ": pg_stats", None if plain is None else plain.pg_stats


class Device(msgspec.Struct):
    """A device of a CRUSH map."""

    id: Id
    name: str = ""


class TypeName(msgspec.Struct):
    """A type of buckets; 0 is that of devices."""

    type_id: Annotated[int, Meta(ge=0, lt=2**16)]
    name: str


class BucketItem(msgspec.Struct):
    """A child of a bucket."""

    id: BucketId
    weight: Weight


class BucketDump(msgspec.Struct):
    """A bucket; ``name~class`` is a shadow."""

    id: BucketId
    name: str
    type_name: str
    items: list[BucketItem]
    alg: str = "straw2"
    hash: str = "rjenkins1"


class StepDump(msgspec.Struct):
    """One step of a rule."""

    op: str
    item: BucketId = 0
    item_name: str = ""
    num: Small = 0
    type: str = ""


class RuleDump(msgspec.Struct):
    """A rule."""

    rule_id: Annotated[int, Meta(ge=0, le=255)]
    rule_name: str
    steps: list[StepDump]
    min_size: int = 0
    max_size: int = 2**31


class ChooseArgDump(msgspec.Struct):
    """Substitute weights, as fractions, and ids of one bucket."""

    bucket_id: BucketId
    weight_set: list[list[Annotated[float, Meta(ge=0.0, lt=2**16)]]] = []
    ids: list[BucketId] = []


class CrushDump(msgspec.Struct):
    """``ceph osd crush dump``."""

    devices: list[Device]
    types: list[TypeName]
    buckets: list[BucketDump]
    rules: list[RuleDump]
    tunables: dict[str, int | str] = {}
    choose_args: dict[str, list[ChooseArgDump]] = {}


def kind_of(document: Document) -> Kind:
    """Tell which of Ceph's documents this is by its beginning.

    >>> kind_of(Document("t.json", b'{"nodes":[{"id":-1,"type_id":11,"children":[]}],"stray":[]}'))
    'osd tree'
    """
    head = document.data[:HEAD]
    if document.is_json:
        return _kind_of_json(head)
    if re.search(rb"^(# begin crush map|tunable \w+ \d|device \d+ osd\.)", head, re.MULTILINE):
        return "crush text"
    if EPOCH.match(head) and OSD_DUMP.search(head):
        return "osd dump"
    if PG_DUMP.search(head):
        return "pg dump"
    if found := DEVICES.search(head):
        return "osd df" if b"%USE" in head[found.start() :].partition(b"\n")[0] else "osd tree"
    return "upmap commands" if COMMAND.match(head) else ""


def _kind_of_json(head: bytes) -> Kind:
    if (b'"monmap"' in head and b'"osdmap' in head) or REPORT.search(head):
        return "report"
    if b'"pg_stats"' in head or b'"pg_map"' in head or re.match(rb'\s*\[\s*\{\s*"pgid"', head):
        return "pg dump"
    if b'"nodes"' in head and b'"type_id"' in head:
        return "osd df" if b'"kb"' in head else "osd tree"
    if b'"pools"' in head and (b'"crush_rule"' in head or b'"max_osd"' in head):
        return "osd dump"
    if b'"devices"' in head and (b'"buckets"' in head or b'"type_name"' in head):
        return "crush dump"
    return ""
