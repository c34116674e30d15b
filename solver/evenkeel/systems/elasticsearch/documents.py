"""Read API answers: rows of tables, nodes, shutdowns, and flat settings."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import msgspec

from evenkeel.model.errors import FaultList
from evenkeel.model.reading.arrays import LISTED_FAULTS
from evenkeel.model.reading.quantities import decimal_marks, read_number, two_readings
from evenkeel.systems.documents import Document, end_of_value, quoted
from evenkeel.systems.json_text import decode_json
from evenkeel.systems.notes import Notes, last_states
from evenkeel.systems.printed import CUT, HALF, LEFT_OUT, half_name
from evenkeel.systems.yaml_text import load_yaml

Row = dict[str, str | None]

SIZE = r"[0-9]+(?:[.,][0-9]+)?[kmgtp]?b?"
STATES = "STARTED|RELOCATING|INITIALIZING|UNASSIGNED"

# an address, or what stands in its place where a listing was made public
ADDRESS = (
    r"[0-9xX*]{1,3}(?:\.[0-9xX*]{1,3}){3}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(?:%\w+)?"
    r"|[xX*]{2,}|<[^<>\s]+>|\[?(?i:redacted|masked|hidden|removed)\]?"
)

# pattern of a cell, by the title of its column; other columns hold any text
LOOKS: Mapping[str, re.Pattern[str]] = {
    "index": re.compile(r"\S+"),
    "shard": re.compile("[0-9]{1,9}"),
    "prirep": re.compile("[prs]"),
    "state": re.compile(STATES),
    "docs": re.compile("[0-9]+|-"),
    **{
        name: re.compile(f"{SIZE}|-")
        for name in ("store", "dataset", "disk.indices", "disk.used", "disk.avail", "disk.total")
    },
    "disk.percent": re.compile("[0-9]+%?|-"),
    "shards": re.compile("[0-9]+"),
    "host": re.compile(r"\S+"),
    "ip": re.compile(rf"\S*[.:]\S*|-|{ADDRESS}"),
}


def borders(header: str, lines: Sequence[str]) -> list[int] | None:
    """Return where each column but the last ends; None for a table that is not padded.

    >>> borders("node  docs id", ["es 1 10000 a", "es-2     7 b"])
    [4, 10]
    >>> borders("node docs", ["es-number-1 7"]) is None
    True
    """
    # Columns are padded to their widest cells, text behind and numbers before. Between two titles
    # the last place that is blank in all lines parts them: a number has no blanks, and before a
    # column of text that place is right before its title, whatever blanks there are in names.
    found = []
    for here, there in pairwise(re.finditer(r"\S+", header)):
        blank = (
            at
            for at in range(there.start() - 1, here.end() - 1, -1)
            if all(line[at : at + 1] in ("", " ") for line in lines)
        )
        at = next(blank, -1)
        if at < 0:
            return None
        found.append(at)
    return found


def cut(titles: Sequence[str], ends: Sequence[int], line: str) -> Row | None:
    """Return the cells of a line of a padded table; None if one does not fit its column."""
    cells = [line[begin:end].strip() for begin, end in pairwise([0, *ends, len(line)])]
    return _row(titles, cells)


def split(titles: Sequence[str], line: str) -> Row | None:
    """Return the cells of a line that is not padded, a word each; the last may be more.

    >>> split(["state", "unassigned.reason", "node"], "STARTED  es 1")
    {'state': 'STARTED', 'node': 'es 1'}
    """
    empty = next((EMPTY[word] for word in line.split() if word in EMPTY), None)
    filled = [one for one in titles if empty is None or not empty.fullmatch(one)]
    cells = [cell.rstrip() for cell in line.split(None, len(filled) - 1)]
    return _row(filled, cells) if len(cells) == len(filled) else None


def _row(titles: Sequence[str], cells: Sequence[str]) -> Row | None:
    """Return cells by their titles; None if a filled one does not fit its column."""
    row = {title: cell or None for title, cell in zip(titles, cells, strict=True)}
    for title, cell in row.items():
        if cell is not None and title in LOOKS and not LOOKS[title].fullmatch(cell):
            return None
    return row


OF_LOSS = re.compile(r"unassigned\..*")
# columns without a cell in the row of a copy, by its state
EMPTY = {
    "UNASSIGNED": re.compile("docs|store|dataset|ip|id|node"),
    "STARTED": OF_LOSS,
    "RELOCATING": OF_LOSS,
}

Table = Literal["shards", "allocation", "roles", "attributes"]
CatKind = Literal[Table, ""]

LINES = 4  # lines that are tried to identify a text, and each part of it behind a blank line
BLANK = re.compile(r"\n[ \t\r]*\n")

SHARD = re.compile(
    r"(?P<index>\S+) +(?P<shard>[0-9]{1,9}) +(?P<prirep>[prs]) +"
    rf"(?P<state>{STATES})"
    rf"(?: +(?P<docs>[0-9]+))?(?: +(?P<store>{SIZE}))?(?: +{SIZE})?"
    rf"(?: +(?P<ip>{ADDRESS}) +(?P<node>\S.*))?"
)
ALLOCATION = re.compile(
    rf"(?P<counts>(?:{SIZE} +){{1,5}}?)"
    rf"(?:(?:(?P<indices>{SIZE}) +)?(?P<used>{SIZE}) +(?P<avail>{SIZE}) +(?P<total>{SIZE}) +"
    rf"[0-9]+%? +)?"
    rf"(?P<host>(?!{SIZE} )\S+) +(?P<ip>{ADDRESS}) +(?P<node>\S.*)"
)
MEMBER = re.compile(
    rf"(?:\S+ +)?(?P<ip>{ADDRESS})(?: +[0-9.]+)+ +(?P<role>[a-z]+|-)(?: +[a-z_]+(?:,[a-z_]+)*)?"
    r" +[*m-] +(?P<node>\S.*)"
)
REMARK = re.compile(r"\s+(?:←|<-).*")  # what people write behind a row of a listing that they post
NOWHERE = re.compile(rf"[0-9]+(?: +{SIZE})* +UNASSIGNED(?: +\S+)?")
ROLE = re.compile(r" +[a-z-]+$")  # the letters of roles after the name of a node

# default columns, in their order
USUAL: Mapping[Table, Sequence[str]] = {
    "shards": ("index", "shard", "prirep", "state", "docs", "store", "dataset", "ip", "node"),
    "allocation": (
        "shards", "shards.undesired", "write_load.forecast", "disk.indices.forecast",
        "disk.indices", "disk.used", "disk.avail", "disk.total", "disk.percent", "host", "ip",
        "node", "node.role",
    ),
    "roles": (),
    "attributes": (),
}  # fmt: skip

KEYS = frozenset({"index", "shard", "prirep"})  # columns that identify the shard of a row

# columns of which two give the usage of a disk
DISK = frozenset({"disk.used", "disk.avail", "disk.total"})

# columns by their aliases; those of ``_cat/nodes`` give the disks as well
SHORT: dict[Table, Mapping[str, str]] = {
    "shards": {
        "i": "index", "idx": "index", "s": "shard", "sh": "shard", "p": "prirep", "pr": "prirep",
        "primaryorreplica": "prirep", "st": "state", "sto": "store", "d": "docs", "dc": "docs",
        "n": "node", "ur": "unassigned.reason",
    },
    "allocation": {
        "s": "shards", "di": "disk.indices", "diskindices": "disk.indices", "du": "disk.used",
        "diskused": "disk.used", "da": "disk.avail", "diskavail": "disk.avail",
        "dt": "disk.total", "disktotal": "disk.total", "dp": "disk.percent",
        "diskpercent": "disk.percent", "h": "host", "n": "node", "name": "node", "r": "node.role",
        "role": "node.role", "noderole": "node.role",
    },
}  # fmt: skip
SHORT["roles"] = SHORT["attributes"] = SHORT["allocation"]

OF_ATTRIBUTES = frozenset({"node", "attr", "value"})
OF_ROLES = frozenset({"node", "node.role"})
# columns of ``_cat/nodes`` that are needed, and some that are usual beside them
BESIDE_ROLES = frozenset({"ip", "master", "heap.percent", "ram.percent", "cpu", "version"})


class Rows(NamedTuple):
    """Rows of a table, the line of each, and the lines of dots in place of others."""

    rows: list[Row]
    lines: list[int]
    dots: list[int]


def kind_of_text(head: str) -> CatKind:
    """Return the table that a text begins with; "" for other texts.

    >>> kind_of_text("wiki 0 p STARTED 3014 31.1mb 192.168.56.10 Frankie Raye"), kind_of_text("a b")
    ('shards', '')
    """
    begins = [block.split("\n", LINES)[:LINES] for block in BLANK.split(head.lstrip())]
    for line in [line.strip() for lines in begins for line in lines]:
        if _heads("shards", _titles("shards", line)) or SHARD.fullmatch(line):
            return "shards"
        row = ALLOCATION.fullmatch(line)
        if _heads("allocation", _titles("allocation", line)) or (row and row["total"]):
            return "allocation"
        if MEMBER.fullmatch(line):
            return "roles"
        for other in ("roles", "attributes"):
            if _heads(other, _titles(other, line)):
                return other
    return ""


def read_text(faults: FaultList, document: Document, kind: Table) -> Rows:
    """Return the rows of a table, and report lines that are not rows."""
    lines = [REMARK.sub("", line.rstrip("\r")) for line in document.text(faults).split("\n")]
    filled = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    titles = _titles(kind, filled[0][1]) if filled else []
    usual: Callable[[str], Row | None] = {"shards": _shard, "roles": _member}.get(kind, _allocation)
    known = usual
    headed = _heads(kind, titles)
    if kind == "shards" and not headed and not any(_placed(_shard(line)) for _, line in filled):
        message = f"{NO_NODE}: ask for all columns, with ?v"
        faults.add(f"{document.name}:{filled[0][0]}", quoted(filled[0][1][:80]), message)
        return Rows([], [], [])
    if headed:
        (number, header), *rest = filled
        # answers that were appended have their headers, and comments above them
        filled = [one for one in rest if one[1].split() != header.split() and one[1][0] != "#"]
        if missing := _missing(kind, titles):
            faults.add(f"{document.name}:{number}", quoted(header[:80]), missing)
            return Rows([], [], [])
        filled = _without_words(filled, len(titles))
        ends = borders(header, [line for _, line in filled])
        # padded titles mean padded cells, which may hold blanks
        ways: list[Callable[[str], Row | None]] = []
        if ends is not None:
            ways.append(partial(cut, titles, ends))
        # words alone tell a name with blanks only where it is last, or where there is none
        whole = all(len(line.split()) == len(titles) for _, line in filled)
        if whole or "  " not in header.strip() or titles[-1] == "node":
            ways.append(partial(split, titles))
        if _is_usual(kind, titles):
            ways.append(usual)
        known = partial(_headed, titles, ways)
    elif kind == "shards":
        filled = _without_words(filled, 0)
    found, wrong = Rows([], [], []), 0
    for number, line in filled:
        row = known(line)
        if row is not None:
            found.rows.append(row)
            found.lines.append(number)
            continue
        if line.strip() in CUT:
            found.dots.append(number)
            continue
        wrong += 1
        if wrong <= LISTED_FAULTS:
            of = {"roles": "nodes", "attributes": "nodeattrs"}.get(kind, kind)
            way = "?format=json" if headed else "?v, or with ?format=json"
            message = f"is no row of _cat/{of}: ask for it with {way}"
            if headed and len(cells := line.split()) < len(titles):
                message = f"has {len(cells)} cells, the header {len(titles)}: add ?format=json"
            faults.add(f"{document.name}:{number}", quoted(line[:80]), message)
    nodes = [(row.get("node") or row.get("name") or "").split(" -> ")[0] for row in found.rows]
    ips = [row.get("ip") or "" for row in found.rows]
    if whole_name := half_name(lines[-1], nodes, ips):
        faults.add(f"{document.name}:{len(lines)}", nodes[-1], HALF.format(whole_name))
    return found


def _without_words(filled: Sequence[tuple[int, str]], width: int) -> list[tuple[int, str]]:
    """Return lines without the words of a session above and below a table, behind blank lines."""
    if not filled or filled[-1][0] - filled[0][0] < len(filled):
        return [*filled]
    kept: list[tuple[int, str]] = []
    for number, line in filled:
        cells = line.split()
        begins = not kept or number > kept[-1][0] + 1
        # what has half as many cells as the header, or the state of a shard, is meant as a row
        like = 2 * len(cells) >= width if width else not {*STATES.split("|")}.isdisjoint(cells)
        if not begins or like or "UNASSIGNED" in cells or line.strip() in CUT:
            kept.append((number, line))
    return kept


def _titles(kind: Table, line: str) -> list[str]:
    """Return the words of a line as titles of columns."""
    return [SHORT[kind].get(name, name) for name in line.lower().split()]


def _heads(kind: Table, titles: Sequence[str]) -> bool:
    """Return whether titles are the header of a table."""
    if kind == "shards":
        return {*titles} >= KEYS and "segment" not in titles
    if kind == "allocation":
        return "node" in titles and any(title.startswith("disk.") for title in titles)
    if kind == "attributes":
        return {*titles} >= OF_ATTRIBUTES
    # other tables have roles of nodes as well
    own = {*titles} <= OF_ROLES or not {*titles}.isdisjoint(BESIDE_ROLES)
    return {*titles} >= OF_ROLES and own


NO_NODE = "has no column node: the nodes of shards are unknown"


def _missing(kind: Table, titles: Sequence[str]) -> str:
    """Return the required columns that a header lacks, as a message."""
    if "node" not in titles:
        return NO_NODE
    if kind == "allocation" and len(DISK & {*titles}) < 2:
        return f"needs two of the columns {', '.join(sorted(DISK))}"
    return ""


def _is_usual(kind: Table, titles: Sequence[str]) -> bool:
    """Return whether columns are in the default order, so that patterns identify cells."""
    return [*titles] == [title for title in USUAL[kind] if title in titles]


def _headed(
    titles: Sequence[str], ways: Sequence[Callable[[str], Row | None]], line: str
) -> Row | None:
    """Return the cells of a line by the first parser that fits."""
    row = next((row for way in ways if (row := way(line))), None)
    if row is None or any(title in titles and not row.get(title) for title in KEYS):
        return None
    return row


def _placed(row: Row | None) -> bool:
    """Return whether a row names a node, or is of a copy that has none."""
    return row is not None and (bool(row["node"]) or row["state"] == "UNASSIGNED")


def _shard(line: str) -> Row | None:
    found = SHARD.fullmatch(line.strip())
    return None if found is None else dict(found.groupdict())


def _member(line: str) -> Row | None:
    found = MEMBER.fullmatch(line.strip())
    return found and {"ip": found["ip"], "node.role": found["role"], "node": found["node"]}


def _allocation(line: str) -> Row | None:
    if NOWHERE.fullmatch(line.strip()):
        return {"node": "UNASSIGNED"}
    found = ALLOCATION.fullmatch(line.strip())
    if found is None:
        return None
    row = {name: found[name] for name in ("host", "ip", "node")}
    row["shards"] = found["counts"].split()[0]
    row |= {f"disk.{name}": found[name] for name in ("indices", "used", "avail", "total")}
    # releases with more counts also print the roles of nodes
    if len(found["counts"].split()) > 1 and found["total"]:
        row["node"] = ROLE.sub("", row["node"] or "")
    return row


Kind = Literal[
    "shards", "allocation", "roles", "attributes", "nodes", "stats", "state", "shutdown",
    "cluster settings", "index settings", "",
]  # fmt: skip

# first lines that are no answer: comments of Kibana's console, the request, the words of curl
PASTED = re.compile(
    rb"\A(?:[ \t]*(?:[^\n]{0,99}[$#>] ?(?:sudo )?(?:curl|kubectl|docker) |#|//|--|\$ |curl |"
    rb"(?i:GET|PUT) |(?:https?://[^\s/]+)?/?_cat/|```|HTTP/|[\w-]+: |Enter host password )"
    rb"[^\n]*\n|[ \t]*\r?\n)+"
)

# a line that asks for an answer, or the header of a table that another one precedes
BEGINS = re.compile(
    rb"^[ \t]*(?:[^\s@]*+@[^\s]*[$#] [^\n]*\b_(?:cat|cluster|nodes)/|"
    rb"(?:[^\s]*[$#>] ?)?(?:(?i:GET) +(?:https?://[^\s/]+)?/?_|"
    rb"(?i:PUT|POST|DELETE) +(?:https?://[^\s/]+)?/?\w|curl +[^|\n]*_)|"
    rb"(?:https?://[^\s/]+)?/?_(?:cat|cluster|nodes|all)/"
    rb"|index +shard +prirep |(?:shards|name) +(?:[\w.]+ +)*disk\.)[^\n]*",
    re.MULTILINE,
)

# last lines that are none: a prompt, the end of a quotation, the words before the next answer
LAST = re.compile(
    rb"\s*(?:^[ \t]*(?:```|#|//|--|[-*] )[^\n]*\s*|[^\s@]*+@[^\n$#]*+[$#]\s*|\$\s*)+\Z",
    re.MULTILINE,
)

BELOW = re.compile(rb"\n\s*(?=[{\[]\s*[\n{}\"\]])")  # where JSON begins below a table

# a request of the console, or of curl, whose body changes settings, and leaves the others
PUT = re.compile(
    rb"^[^\n{]{0,200}?(?:-X|\b)PUT\b(?:[^\n{]|\\\r?\n){0,200}?_(?:cluster/)?settings\b"
    rb"(?:(?!\s(?:#|//))[^\n{]|\\\r?\n){0,200}(?:\s+(?:#|//)[^\n]*){0,9}\n?[ \t>]*\{",
    re.IGNORECASE | re.MULTILINE,
)

# texts of a body, and what the console or a shell has between them: comments, and its prompts
BETWEEN = re.compile(
    rb'"(?:[^"\\\n]|\\.)*"|#[^\n]*|//[^\n]*|/\*.{0,2000}?\*/|^[ \t]*>', re.DOTALL | re.MULTILINE
)
QUOTED = re.compile(rb'\{\s*\\"')  # a body between double quotes of a shell

PLACE = re.compile(rb"[\w.*,-]{0,200}/?_settings")  # the indices that such a request names
FAILED = re.compile(
    rb'[^{]*(?:\bcurl: \([0-9]+\)|\{[^{}]*"error"\s*:)'
)  # the answer to a request that changed nothing
CHOSEN = re.compile(rb"_cat/\w+[^\s\"']*[?&]h=(?P<h>[\w.,]+)[^\n]*\s*\Z")
# the columns that a request chooses, whose answer has no header without ``?v``
ATTRIBUTES = re.compile(rb"_cat/nodeattrs(?P<h>)[^\n]*\s*\Z")

PATH = re.compile(rb"\b_(?:cat|cluster|nodes|all)\b[\w/.*,-]*")  # the path of a request
MOST_PASTED = 2**20  # bytes of what people paste from a console, which may hold several answers

# how a page of OpenSearch's ``_list/shards`` ends; ``null`` on the last
TOKEN = re.compile(rb"^next_token +(\S+)\s*$", re.MULTILINE)

HEAD = 65536  # bytes that identify an answer
UNITS = {"b": 0, "kb": 10, "mb": 20, "gb": 30, "tb": 40, "pb": 50}
AMOUNT = re.compile(r"([0-9][0-9.,']{0,27}) ?([kmgtp]?b)?", re.IGNORECASE)
MOST = 2.0**60


class Node(msgspec.Struct):
    """A node as ``_nodes`` has it."""

    name: str
    host: str = ""
    ip: str = ""
    version: str = ""
    roles: list[str] | None = None
    attributes: dict[str, str] = {}
    settings: dict[str, Any] = {}


class Page(msgspec.Struct):
    """A page of OpenSearch's ``_list/shards``."""

    shards: list[Row]
    next_token: str | None = None


class Nodes(msgspec.Struct):
    """The answer of ``_nodes``, by id."""

    nodes: dict[str, Node]


class Total(msgspec.Struct):
    """The disks of a node together, in bytes."""

    total_in_bytes: int = 0
    available_in_bytes: int = 0


class FileSystem(msgspec.Struct):
    """Disks as ``_nodes/stats`` has them."""

    total: Total = msgspec.field(default_factory=Total)


class Stats(msgspec.Struct):
    """A node as ``_nodes/stats`` has it."""

    name: str
    host: str = ""
    ip: str | list[str] = ""
    roles: list[str] | None = None
    attributes: dict[str, str] = {}
    fs: FileSystem | None = None


class NodeStats(msgspec.Struct):
    """The answer of ``_nodes/stats``, by id."""

    nodes: dict[str, Stats]


class StateNode(msgspec.Struct):
    """A node as ``_cluster/state`` has it."""

    name: str
    transport_address: str = ""
    version: str = ""
    roles: list[str] | None = None
    attributes: dict[str, str] = {}


class Copy(msgspec.Struct):
    """A copy of a shard as ``_cluster/state`` has it."""

    state: str
    primary: bool
    shard: int
    index: str
    node: str | None = None
    relocating_node: str | None = None


class IndexTable(msgspec.Struct):
    """The copies of an index, by shard."""

    shards: dict[str, list[Copy]]


class RoutingTable(msgspec.Struct):
    """The copies of all shards."""

    indices: dict[str, IndexTable]


class RoutingNodes(msgspec.Struct):
    """The copies of all shards, by node."""

    nodes: dict[str, list[Copy]]
    unassigned: list[Copy] = []


class State(msgspec.Struct):
    """The answer of ``_cluster/state``, which may have the copies in one of its parts."""

    routing_table: RoutingTable | None = None
    routing_nodes: RoutingNodes | None = None
    nodes: dict[str, StateNode] = {}
    metadata: dict[str, Any] = {}


class Rerouted(msgspec.Struct):
    """The answer of ``_cluster/reroute``."""

    state: State


class Shutdown(msgspec.Struct):
    """A node that is being shut down."""

    node_id: str
    type: Literal["REMOVE", "RESTART", "REPLACE", "SIGTERM", "remove", "restart", "replace"]


class Shutdowns(msgspec.Struct):
    """The answer of ``_nodes/shutdown``."""

    nodes: list[Shutdown]


class IndexSettings(msgspec.Struct):
    """The settings of an index."""

    settings: dict[str, Any] = {}


@dataclass
class ElasticFindings:
    """Everything that was read, with its place in the files."""

    faults: FaultList
    kinds: set[str] = field(default_factory=set)  # kinds of answers that were given
    shards: list[Row] = field(default_factory=list)
    # the number of the first row of shards in each file, its name, and the lines of a text
    files: list[tuple[int, str, list[int]]] = field(default_factory=list)
    allocation: list[tuple[str, Row]] = field(default_factory=list)
    roles: list[Row] = field(default_factory=list)  # rows of ``_cat/nodes`` without disks
    # by the name of the node, from ``_cat/nodeattrs``
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    nodes: dict[str, tuple[str, Node]] = field(default_factory=dict)  # by id
    shutdown: list[tuple[str, Shutdown]] = field(default_factory=list)
    # settings by flat name, each with its place and value, of each kind, and which are effective
    put: dict[str, dict[str, tuple[str, Any]]] = field(
        default_factory=lambda: {"defaults": {}, "persistent": {}, "transient": {}}
    )
    cluster: dict[str, tuple[str, Any]] = field(default_factory=dict)
    # settings from the configuration files of nodes, which all others override
    started: dict[str, tuple[str, Any]] = field(default_factory=dict)
    # settings of the cluster that were set, and are no defaults
    chosen: set[str] = field(default_factory=set)
    indices: dict[str, dict[str, tuple[str, Any]]] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)  # assumptions and limits, for people

    def shard_at(self, row: int) -> str:
        """Return the place of a row of shards."""
        first, name, lines = next(one for one in reversed(self.files) if one[0] <= row)
        return f"{name}:{lines[row - first]}" if lines else f"{name}: [{row - first}]"


def recognises(document: Document) -> Kind:
    """Return the answer that a document is, or the first of several; "" for other documents."""
    return next((kind for one in _answers(document) if (kind := _kind_of(one))), "")


def _kind_of(document: Document) -> Kind:
    head = document.data[:HEAD].lstrip()
    if head.startswith(b"["):
        if b'"prirep"' in head or all(name in head for name in SHARD_ROWS):
            return "shards"
        if b'"attr"' in head and b'"value"' in head:
            return "attributes"
        if not re.search(rb'"(?:node|name)"\s*:', head):
            return ""
        return "allocation" if b'"disk.' in head else "roles" if b'"node.role"' in head else ""
    if not head.startswith(b"{"):
        if found := IN_YAML.match(head):
            return KINDS_IN_YAML[found[1]]
        return kind_of_text(head.decode("utf-8", "replace"))
    if b'"prirep"' in head and re.search(rb'"shards"\s*:\s*\[', head):
        return "shards"
    if b'"nodes"' in head and re.search(SHUTDOWNS, head):
        return "shutdown"
    if re.search(ROUTING, head, re.DOTALL) or re.match(STATE, head):
        return "state"
    if b'"nodes"' in head and re.search(STATS, head):
        return "stats"
    if b'"nodes"' in head and (b'"transport_address"' in head or re.search(FILTERED, head)):
        return "nodes"
    if re.match(rb'\{\s*(?:"(persistent|transient|defaults)"\s*:|\}\s*$)', head):
        return "cluster settings"
    return "index settings" if re.match(INDEX, head, re.DOTALL) else ""


# how ``_nodes`` begins where ``filter_path`` left out addresses
FILTERED = rb'"nodes"\s*:\s*\{\s*"[^"]+"\s*:\s*\{\s*"(?:name|roles|attributes|version|ip|host)"\s*:'

# how ``_settings`` begins, or an index with its mappings
INDEX = rb'\{\s*"[^"]+"\s*:\s*\{\s*"(?:settings"|aliases"\s*:\s*\{.*"(?:mappings|settings)"\s*:)'


# what rows of shards have, of whatever columns
SHARD_ROWS = (b'"index"', b'"shard"', b'"state"', b'"node"')

# what ``_nodes/shutdown`` has, also where no node is shut down
SHUTDOWNS = rb'"shutdown_startedmillis"|\A\{\s*"nodes"\s*:\s*\[\s*\]'

# what ``_nodes/stats`` has and ``_nodes`` has not
STATS = rb'"fs"\s*:\s*\{|"indices"\s*:\s*\{\s*"(?:docs|shard_stats)"'

# the parts of ``_cluster/state`` that have copies, by shard and by node
ROUTING = rb'\A(?!\{\s*"stats").*?"routing_(?:table|nodes)"'

# how ``_cluster/state`` begins
STATE = rb'\{\s*"cluster_name"\s*:[^{]{0,400}"(?:state_uuid|master_node)"\s*:'

# how answers begin with ``format=yaml``
IN_YAML = re.compile(rb"(?:---\s*\n)?(- index|- shards|persistent|transient|defaults):")

KINDS_IN_YAML: Mapping[bytes, Kind] = {
    b"- index": "shards", b"- shards": "allocation", b"persistent": "cluster settings",
    b"transient": "cluster settings", b"defaults": "cluster settings",
}  # fmt: skip

# how the answer of ``_cluster/reroute`` begins
REROUTED = rb'\{\s*"acknowledged"\s*:\s*\w+\s*,\s*"state"\s*:'


def _answer(document: Document) -> Document:
    """Return a document without what a console or terminal has before the answer and after it."""
    found = PASTED.match(document.data)
    first = found.end() if found else 0
    last = LAST.search(document.data, max(first, len(document.data) - 400))
    end = last.start() if last else len(document.data)
    if (first, end) == (0, len(document.data)):
        return document
    part = document.part(first, end, document.data[:first])
    chosen = CHOSEN.search(part.before) or ATTRIBUTES.search(part.before)
    line = part.data.lstrip().partition(b"\n")[0].decode("utf-8", "replace")
    if chosen is None or line[:1] in "[{" or any(_heads(one, _titles(one, line)) for one in USUAL):
        return part
    header = (chosen["h"] or b"node,host,ip,attr,value").replace(b",", b" ")
    blank = first and document.data.count(b"\n", 0, first)
    return replace(part, data=b"\n" * (blank - 1) + header + part.data[blank - 1 :])


def _answers(document: Document) -> list[Document]:
    """Return the answers of a session, without what the console or terminal has around each."""
    data = document.data
    starts = [found.start() for found in BEGINS.finditer(data)] if len(data) < MOST_PASTED else []
    # a header right below its request is of the same answer
    cuts = [0, *(at for at in starts if data[:at].strip()), len(data)]
    pieces = [document.part(a, b) if len(cuts) > 2 else document for a, b in pairwise(cuts)]
    parts = [one for piece in pieces for one in _put(piece)]
    return [one for part in parts for one in _apart(part) if one.data.strip()] or parts[:1]


def _put(document: Document) -> list[Document]:
    """Return what a request puts into settings apart from what is before it, and its answer."""
    data = document.data
    request = PUT.search(data) if len(data) < MOST_PASTED else None
    if request is None:
        return [_answer(document)]
    begin = request.end() - 1
    body = data[begin:]
    escaped = QUOTED.match(body) is not None
    body = BETWEEN.sub(_blank, body.replace(b'\\"', b'"') if escaped else body)
    body = body[: end_of_value(body, 0)]
    end = begin + len(body) + escaped * body.count(b'"')
    below = len(data) - len(data[end:].partition(b"\n")[2])
    answer = document.part(below, len(data))
    part = document.part(begin, end, request[0])
    blank = part.data[: len(part.data) - (end - begin)]
    put = [] if FAILED.match(answer.data) else [replace(part, data=blank + body)]
    return [_answer(document.part(0, request.start())), *put, _answer(answer)]


def _blank(found: re.Match[bytes]) -> bytes:
    """Return a text as it is, and blanks in place of what is none."""
    return found[0] if found[0].startswith(b'"') else re.sub(rb"[^\n]", b" ", found[0])


def _apart(document: Document) -> list[Document]:
    """Return a table as text, and the JSON of another answer below it, each for itself."""
    json = None if document.is_json else BELOW.search(document.data[:MOST_PASTED])
    if json is None or not kind_of_text(document.data[:HEAD].decode("utf-8", "replace")):
        return [document]
    below = document.part(json.end(), len(document.data), document.before)
    return [document.part(0, json.start(), document.before), below]


# a row of shards among others that are none
ROW = (
    rb"(?:[^\n]*\n){0,20}?[^\n]*\b[0-9]+ +[prs] +"
    rb"(?:STARTED|UNASSIGNED|RELOCATING|INITIALIZING)\b"
)

# other answers, by their pattern
OTHERS = {
    rb'\s*\{\s*"stats".{0,4000}"cluster_balance_stats"': "_internal/desired_balance is what the "
    "balancer wants",
    rb"index,shard,prirep": "commas part its columns, and format=json is read",
    ROW: "_cat/shards with h= needs its header (?v) to be understood",
    rb'\s*\{[^}]{0,400}"can_allocate"|.{0,4000}"node_allocation_decisions"': "_cluster/allocation/"
    "explain is about one shard",
    rb'.{0,4000}"relocating_shards"': "_cluster/health lists no shard",
    rb".{0,400}(heap\.percent|node\.role)": "_cat/nodes needs the columns name and node.role",
    rb'\s*\{\s*"error"\s*:.{0,4000}"status"\s*:\s*(?:4|5)\d\d': "the cluster answered "
    "with an error",
    rb"health +status +index": "_cat/indices lists no node",
    rb"index +shard +(?:time|start_time) .*stage": "_cat/recovery lists copies that are made",
    rb".{0,400}\bcluster +status +node\.total": "_cat/health lists no shard",
    rb'.{0,4000}"shards"\s*:\s*\{\s*"\d+"\s*:\s*\{\s*"stores"': "_shard_stores "
    "lists copies on disks, in use or not",
    rb"index +shard +prirep +ip +segment": "_cat/segments lists no state of shards",
    rb'.{0,4000}"_shards"\s*:\s*\{\s*"total"': "an answer about _shards lists no node",
}

ASKS = (
    "_cat/shards, _cat/allocation, _nodes, _cluster/settings?include_defaults=true and "
    "_all/_settings?expand_wildcards=all"
)
# the answers that are read of those that Elastic's tool for diagnostics collects
MEMBERS = re.compile(
    r"(?:^|/)\w+-diagnostics[^/]*/(?:shards|nodes|nodes_stats|settings|"
    r"cluster_settings(?:_defaults)?|commercial/nodes_shutdown_status)\.json$"
)

# words of requests and answers
WORDS = re.compile(rb"\b_(?:cat|cluster|nodes|shards)\b|\bUNASSIGNED\b")


def hint(document: Document) -> str:
    """Return which answers to give instead of another one; "" for other documents."""
    # of rows that are comments themselves nothing is left
    head = _answer(document).data.lstrip()[:4096] or document.data[:4096]
    for looks, reason in OTHERS.items():
        if re.match(looks, head, re.DOTALL):
            return f"{reason}: give {ASKS}"
    return ""


def gather(faults: FaultList, documents: Sequence[Document]) -> ElasticFindings:
    """Read all documents."""
    found = ElasticFindings(faults)
    for given in [one for document in documents for one in _known(found, document)]:
        kind, document = _kind_of(given), given
        if IN_YAML.match(given.data[:HEAD].lstrip()):
            loaded = load_yaml(faults, given, "ask for format=json")
            document = Document(given.name, msgspec.json.encode(loaded), given.path)
        found.kinds.add("put" if PUT.search(given.before) else kind)
        if kind in ("shards", "allocation", "roles", "attributes"):
            _take_table(found, document, kind)
        elif kind == "nodes":
            _take_nodes(found, document)
        elif kind == "stats":
            _take_stats(found, document)
        elif kind == "state":
            _take_state(found, document)
        elif kind == "shutdown":
            decoded = decode_json(faults, document, Shutdowns)
            listed = enumerate(decoded.nodes if decoded else ())
            found.shutdown += [(f"{document.name}: nodes[{i}]", one) for i, one in listed]
        elif kind == "cluster settings":
            _take_cluster(found, document)
        elif kind == "index settings":
            _take_indices(found, document)
        else:
            message = "is not an answer of _cat/shards, _cat/allocation, _nodes or _settings"
            faults.add(document.name, document.data[:40], message)
    of_all = (found.started, *found.put.values())
    found.cluster = {name: value for put in of_all for name, value in put.items()}
    found.chosen = {*found.started, *found.put["persistent"], *found.put["transient"]}
    return found


LEFT_AS_THEY_WERE = (
    "settings of indices that a request puts, {}: they do not count; add "
    "_all/_settings?expand_wildcards=all as they are after it"
)


def _known(found: ElasticFindings, document: Document) -> list[Document]:
    """Return the answers of a document that are read, of each kind one; others are passed over."""
    # Of answers to the same request the last holds. What is put into settings counts where no
    # answer about them comes after it.
    answers, put = _answers(document), list[Document]()
    known = list[tuple[Kind, re.Match[bytes] | None, Document]]()
    for one in answers:
        request, kind = PUT.search(one.before), _kind_of(one)
        if request and kind:
            put.append(one)
        elif request:
            place = PLACE.search(request[0])
            found.notes.add(LEFT_AS_THEY_WERE, place[0].decode() if place else "")
        elif kind:
            known.append((kind, PATH.search(one.before), one))
            put = [] if kind == "cluster settings" else put
    given = (
        (document.origin, f"{kind} by {path[0].decode()}" if path else kind,
         str(i) if kind == "shards" and not path else "", (kind, one))
        for i, (kind, path, one) in enumerate(known)
    )  # fmt: skip
    held = last_states(found.notes, given)
    for i, (kind, one) in enumerate(held):
        if kind in [other for other, _ in held[:i]]:
            begin = one.data.lstrip()
            at = f"{document.name}:{one.line_at(len(one.data) - len(begin))}"
            message = f"begins another answer of {kind}: each needs a file of its own"
            found.faults.add(at, quoted(begin[:80]), message)
    return [one for _, one in held] + put or answers[:1]


def _take_table(found: ElasticFindings, document: Document, kind: Table) -> None:
    """Read a table of shards, disks or roles, as JSON or text."""
    name, lines = document.name, list[int]()
    head = document.data[:HEAD].lstrip()
    if head.startswith(b"["):
        rows = decode_json(found.faults, document, list[Row]) or []
    elif head.startswith(b"{"):
        page = decode_json(found.faults, document, Page)
        rows = page.shards if page else []
        _note_pages(found, page.next_token if page else None)
    else:
        if token := TOKEN.search(document.data, max(len(document.data) - 400, 0)):
            _note_pages(found, token[1].decode("utf-8", "replace"))
            document = document.part(0, token.start())
        rows, lines, dots = read_text(found.faults, document, kind)
        for at in dots:
            found.notes.add(LEFT_OUT, f"{name}:{at}")
    if kind == "shards":
        found.files.append((len(found.shards), name, lines))
        found.shards += rows
    else:
        rows = [{SHORT[kind].get(key, key): cell for key, cell in row.items()} for row in rows]
        if any(row.get("node.role") for row in rows):
            found.kinds.add("roles")
        if kind == "roles":
            found.roles += rows
            return
        if kind == "attributes":
            for row in rows:
                own = found.attributes.setdefault(row.get("node") or "", {})
                own[row.get("attr") or ""] = row.get("value") or ""
            return
        places = [f"{name}:{i}" for i in lines] or [f"{name}: [{i}]" for i in range(len(rows))]
        found.allocation += zip(places, rows, strict=True)


def _note_pages(found: ElasticFindings, token: str | None) -> None:
    """Note that there is a page after the one that was given."""
    if token and token != "null":
        found.notes.add(
            "one page of _list/shards: shards of other pages are not counted; give _cat/shards, or "
            "the other pages too"
        )


def _take_nodes(found: ElasticFindings, document: Document) -> None:
    decoded = decode_json(found.faults, document, Nodes)
    names: dict[str, str] = {node.name: at for at, node in found.nodes.values()}
    for key, node in (decoded.nodes if decoded else {}).items():
        at = f"{document.name}: nodes.{quoted(key)}"
        if key in found.nodes:
            found.faults.add(at, quoted(key), f"is already given at {found.nodes[key][0]}")
        if node.name in names:
            message = f"is already the name of {names[node.name]}: commands need unique names"
            found.faults.add(f"{at}.name", quoted(node.name), message)
        names.setdefault(node.name, at)
        found.nodes.setdefault(key, (at, node))
        for name, value in flat(node.settings).items():
            if name.startswith("cluster.routing."):
                found.started.setdefault(name, (f"{at}.settings.{quoted(name)}", value))


def _take_stats(found: ElasticFindings, document: Document) -> None:
    """Read the disks of nodes as rows of ``_cat/allocation``; ``_nodes`` has more of nodes."""
    decoded = decode_json(found.faults, document, NodeStats)
    for key, node in (decoded.nodes if decoded else {}).items():
        at = f"{document.name}: nodes.{quoted(key)}"
        ip = node.ip if isinstance(node.ip, str) else next(iter(node.ip), "")
        disk = node.fs.total if node.fs else Total()
        row: Row = {"node": node.name, "host": node.host, "ip": ip.rpartition(":")[0] or ip}
        if disk.total_in_bytes > 0:
            row["disk.total"] = str(disk.total_in_bytes)
            row["disk.avail"] = str(disk.available_in_bytes)
            row["disk.used"] = str(disk.total_in_bytes - disk.available_in_bytes)
        found.allocation.append((at, row))
    found.kinds.add("allocation")


def _take_state(found: ElasticFindings, document: Document) -> None:
    """Read shards as rows of ``_cat/shards``, and the settings of indices."""
    if re.match(REROUTED, document.data[:HEAD].lstrip()):
        answer = decode_json(found.faults, document, Rerouted)
        state = None if answer is None else answer.state
    else:
        state = decode_json(found.faults, document, State)
    if state is None:
        return
    if (table := state.routing_table) is not None:
        held = [one for of in table.indices.values() for one in of.shards.values()]
    elif (by_node := state.routing_nodes) is not None:
        held = [*by_node.nodes.values(), by_node.unassigned]
    else:
        found.faults.add(f"{document.name}: routing_table", None, "is missing")
        return
    found.kinds.add("shards")
    found.files.append((len(found.shards), document.name, []))
    names = {key: node.name for key, node in state.nodes.items()}
    ips = {key: node.transport_address.rpartition(":")[0] for key, node in state.nodes.items()}
    for copies in held:
        for copy in copies:
            here, there = copy.node or "", copy.relocating_node or ""
            if copy.state == "INITIALIZING" and there:
                continue  # the target of a copy that relocates, which is listed itself
            text = names.get(here, here)
            if there:
                text += f" -> {ips.get(there, '')} {there} {names.get(there, there)}"
            found.shards.append({
                "index": copy.index, "shard": str(copy.shard),
                "prirep": "p" if copy.primary else "r", "state": copy.state, "docs": None,
                "store": None, "ip": ips.get(here) or None,
                "id": here or None, "node": text or None,
            })  # fmt: skip
    listed = state.metadata.get("indices", {})
    for index, one in listed.items() if isinstance(listed, dict) else ():
        if isinstance(one, dict) and isinstance(settings := one.get("settings"), dict) and settings:
            found.kinds.add("index settings")
            at = f"{document.name}: metadata.indices.{quoted(index)}.settings"
            found.indices.setdefault(
                index, {name: (f"{at}.{name}", value) for name, value in flat(settings).items()}
            )


def _take_cluster(found: ElasticFindings, document: Document) -> None:
    decoded = decode_json(found.faults, document, dict[str, Any]) or {}
    for kind, put in found.put.items():
        if not isinstance(own := decoded.get(kind, {}), dict):
            found.faults.add(f"{document.name}: {kind}", quoted(own), "must be settings")
            continue
        for name, value in _leaves(own).items():
            if value is None:  # it takes back what was put in here, below a name or by *
                group = name.removesuffix("*").removesuffix(".") + "."
                for one in [one for one in put if one == name or one.startswith(group)]:
                    del put[one]
            else:
                put[name] = (f"{document.name}: {kind}.{quoted(name)}", _text_of(value))


def _take_indices(found: ElasticFindings, document: Document) -> None:
    decoded = decode_json(found.faults, document, dict[str, IndexSettings]) or {}
    for index, one in decoded.items():
        at = f"{document.name}: {quoted(index)}.settings"
        if index in found.indices:
            found.faults.add(at, quoted(index), "has settings already")
        own = flat(one.settings)
        found.indices[index] = {
            name: (f"{at}.{quoted(name)}", value) for name, value in own.items()
        }


def flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings as text by their flat names, however they are nested."""
    return {name: _text_of(value) for name, value in _leaves(settings).items()}


def _leaves(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings by their flat names."""
    found: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [("", settings)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            inner = [(f"{path}.{key}" if path else key, one) for key, one in value.items()]
            # a name that grows with the depth is no setting
            waiting += [(name, one) for name, one in reversed(inner) if len(name) < 2000]
        else:
            found[path] = value
    return found


def _text_of(value: Any) -> Any:
    return [_plain(one) for one in value] if isinstance(value, list) else _plain(value)


def _plain(value: Any) -> str:
    """Return the value of a setting as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) >= 2**63:
        return "more than 64 bits"
    return "" if value is None else str(quoted(value))


def amount(faults: FaultList, at: str, text: str | None) -> float:
    """Return a number of bytes, which may have a unit; 0 for a missing one or -1."""
    if text is None or text in ("", "-", "-1", "-1b"):
        return 0.0
    known = AMOUNT.fullmatch(text.strip())
    value = read_number(known[1]) if known else None
    unit = (known[2] or "b").lower() if known else "b"
    number = MOST if value is None else value * 2.0 ** UNITS[unit]
    marks = decimal_marks(known[1]) if known else ""
    two = known is not None and marks == ".," and not known[1].isdecimal()
    # bytes are whole; a number of a larger unit is small, so that its point is decimal
    if number >= MOST or (unit == "b" and (two or not number.is_integer())):
        message = "must be a number of bytes, such as 31100000 or 29.6mb"
        if known and two:
            message = two_readings(known[1])
        faults.add(at, quoted(text), message)
        return 0.0
    return number
