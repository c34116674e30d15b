"""What ``_cat`` prints where JSON was not asked for: lines for people, in columns or not."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

from evenkeel.model.errors import FaultList
from evenkeel.model.reading.arrays import LISTED_FAULTS
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.elasticsearch.columns import SIZE, STATES, Row, borders, cut, split

Table = Literal["shards", "allocation"]
Kind = Literal[Table, ""]

LINES = 4
"""Lines of which one shows what they all are."""

ADDRESS = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|x(?:\.x){3}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(?:%\w+)?"
SHARD = re.compile(
    r"(?P<index>\S+) +(?P<shard>[0-9]{1,9}) +(?P<prirep>[prs]) +"
    rf"(?P<state>{STATES})"
    rf"(?: +(?P<docs>[0-9]+))?(?: +(?P<store>{SIZE}))?(?: +{SIZE})?"
    rf"(?: +(?P<ip>{ADDRESS}) +(?P<node>\S.*))?"
)
ALLOCATION = re.compile(
    r"(?P<counts>(?:[0-9.]+[kmgtp]?b? +){1,5}?)"
    rf"(?:(?P<indices>{SIZE}) +(?P<used>{SIZE}) +(?P<avail>{SIZE}) +(?P<total>{SIZE}) +[0-9]+%? +)?"
    rf"(?P<host>(?!{SIZE} )\S+) +(?P<ip>{ADDRESS}) +(?P<node>\S.*)"
)
NOWHERE = re.compile(r"[0-9]+(?: +[0-9.]+[kmgtp]?b?)* +UNASSIGNED(?: +\S+)?")
ROLE = re.compile(r" +[a-z-]+$")
"""Behind a node, the letters of what it is for."""

USUAL: Mapping[Table, Sequence[str]] = {
    "shards": ("index", "shard", "prirep", "state", "docs", "store", "dataset", "ip", "node"),
    "allocation": (
        "shards", "shards.undesired", "write_load.forecast", "disk.indices.forecast",
        "disk.indices", "disk.used", "disk.avail", "disk.total", "disk.percent", "host", "ip",
        "node", "node.role",
    ),
}  # fmt: skip
"""The columns that are printed where nobody asked for others, in their order."""

KEYS = frozenset({"index", "shard", "prirep"})
"""Columns that tell which shard a row is about."""

DISK = frozenset({"disk.used", "disk.avail", "disk.total"})
"""Columns of which two tell how full a disk is."""

SHORT: Mapping[Table, Mapping[str, str]] = {
    "shards": {
        "i": "index", "idx": "index", "s": "shard", "sh": "shard", "p": "prirep", "pr": "prirep",
        "primaryorreplica": "prirep", "st": "state", "sto": "store", "d": "docs", "dc": "docs",
        "n": "node",
    },
    "allocation": {
        "s": "shards", "di": "disk.indices", "diskindices": "disk.indices", "du": "disk.used",
        "diskused": "disk.used", "da": "disk.avail", "diskavail": "disk.avail",
        "dt": "disk.total", "disktotal": "disk.total", "dp": "disk.percent",
        "diskpercent": "disk.percent", "h": "host", "n": "node",
    },
}  # fmt: skip
"""Columns by the other names that they may be asked for by."""


class Rows(NamedTuple):
    """Rows of a table, and the line of each."""

    rows: list[Row]
    lines: list[int]


def kind_of_text(head: str) -> Kind:
    """Tell what the beginning of a text is of.

    Examples
    --------
    >>> kind_of_text("wiki 0 p STARTED 3014 31.1mb 192.168.56.10 Frankie Raye"), kind_of_text("a b")
    ('shards', '')
    """
    for line in [line.strip() for line in head.lstrip().split("\n", LINES)[:LINES]]:
        if _heads("shards", _titles("shards", line)) or SHARD.fullmatch(line):
            return "shards"
        told = ALLOCATION.fullmatch(line)
        if _heads("allocation", _titles("allocation", line)) or (told and told["total"]):
            return "allocation"
    return ""


def read_text(faults: FaultList, document: Document, kind: Table) -> Rows:
    """Return the rows of a table, noting what is none."""
    lines = [line.rstrip("\r") for line in document.text(faults).split("\n")]
    filled = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    titles = _titles(kind, filled[0][1]) if filled else []
    usual: Callable[[str], Row | None] = _shard if kind == "shards" else _allocation
    known = usual
    if _heads(kind, titles):
        (number, header), *filled = filled
        if missing := _missing(kind, titles):
            faults.add(f"{document.name}:{number}", quoted(header[:80]), missing)
            return Rows([], [])
        ends = borders(header, [line for _, line in filled])
        # where titles are apart, so were cells, and words are none of them
        ways: list[Callable[[str], Row | None]] = []
        if ends is not None:
            ways.append(partial(cut, titles, ends))
        if "  " not in header.strip():
            ways.append(partial(split, titles))
        if _is_usual(kind, titles):
            ways.append(usual)
        known = partial(_headed, titles, ways)
    found, wrong = Rows([], []), 0
    for number, line in filled:
        row = known(line)
        if row is not None:
            found.rows.append(row)
            found.lines.append(number)
            continue
        wrong += 1
        if wrong <= LISTED_FAULTS:
            message = f"is no row of _cat/{kind}: ask for it with ?v, or with ?format=json"
            faults.add(f"{document.name}:{number}", quoted(line[:80]), message)
    return found


def _titles(kind: Table, line: str) -> list[str]:
    """Return the words of a line as the titles of columns that they would be."""
    return [SHORT[kind].get(name, name) for name in line.lower().split()]


def _heads(kind: Table, titles: Sequence[str]) -> bool:
    """Whether titles are the header of a table."""
    if kind == "shards":
        return {*titles} >= KEYS
    disks = [title for title in titles if title.startswith("disk.")]
    return len(disks) > 1 and "node" in titles


def _missing(kind: Table, titles: Sequence[str]) -> str:
    """Return what a header lacks without which the table tells nothing."""
    if "node" not in titles:
        return "has no column node: nothing tells where shards are"
    if kind == "allocation" and len(DISK & {*titles}) < 2:
        return f"needs two of the columns {', '.join(sorted(DISK))}"
    return ""


def _is_usual(kind: Table, titles: Sequence[str]) -> bool:
    """Whether columns stand in the usual order, so that cells tell by their looks what they are."""
    return [*titles] == [title for title in USUAL[kind] if title in titles]


def _headed(
    titles: Sequence[str], ways: Sequence[Callable[[str], Row | None]], line: str
) -> Row | None:
    """Return the cells of a line as the first of the ways to part them finds them."""
    row = next((row for way in ways if (row := way(line))), None)
    if row is None or any(title in titles and not row.get(title) for title in KEYS):
        return None
    return row


def _shard(line: str) -> Row | None:
    told = SHARD.fullmatch(line.strip())
    return None if told is None else dict(told.groupdict())


def _allocation(line: str) -> Row | None:
    if NOWHERE.fullmatch(line.strip()):
        return {"node": "UNASSIGNED"}
    told = ALLOCATION.fullmatch(line.strip())
    if told is None:
        return None
    row = {name: told[name] for name in ("host", "ip", "node")}
    row["shards"] = told["counts"].split()[0]
    row |= {f"disk.{name}": told[name] for name in ("indices", "used", "avail", "total")}
    # releases that count more than shards also tell what nodes are for
    if len(told["counts"].split()) > 1 and told["total"]:
        row["node"] = ROLE.sub("", row["node"] or "")
    return row
