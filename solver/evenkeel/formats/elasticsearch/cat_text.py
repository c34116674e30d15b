"""What ``_cat`` prints where JSON was not asked for: lines for people, in columns or not."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Literal, NamedTuple

from evenkeel.formats.documents import Document, quoted
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.arrays import LISTED_FAULTS

Row = dict[str, str | None]
Kind = Literal["shards", "allocation", ""]

LINES = 4
"""Lines of which one shows what they all are."""

SIZE = r"[0-9]+(?:\.[0-9]+)?[kmgtp]?b?"
ADDRESS = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|x(?:\.x){3}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(?:%\w+)?"
SHARD = re.compile(
    r"(?P<index>\S+) +(?P<shard>[0-9]{1,9}) +(?P<prirep>[prs]) +"
    r"(?P<state>STARTED|RELOCATING|INITIALIZING|UNASSIGNED)"
    rf"(?: +(?P<docs>[0-9]+))?(?: +(?P<store>{SIZE}))?(?: +{SIZE})?"
    rf"(?: +(?P<ip>{ADDRESS}) +(?P<node>\S.*))?"
)
ALLOCATION = re.compile(
    r"(?P<counts>(?:[0-9.]+[kmgtp]?b? +){1,5}?)"
    rf"(?:(?P<indices>{SIZE}) +(?P<used>{SIZE}) +(?P<avail>{SIZE}) +(?P<total>{SIZE}) +[0-9]+%? +)?"
    rf"(?P<host>\S+) +(?P<ip>{ADDRESS}) +(?P<node>\S.*)"
)
NOWHERE = re.compile(r"[0-9]+(?: +[0-9.]+[kmgtp]?b?)* +UNASSIGNED(?: +\S+)?")
ROLE = re.compile(r" +[a-z-]+$")
"""Behind a node, the letters of what it is for."""

USUAL = frozenset({"index", "shard", "prirep", "state", "docs", "store", "dataset", "ip", "node"})
"""The columns of shards that are printed where nobody asked for others."""

HEADER: dict[Kind, frozenset[str]] = {
    "shards": frozenset({"index", "shard", "prirep"}),
    "allocation": frozenset({"disk.percent", "node"}),
}
"""The columns that a header has."""

SHORT = {
    "i": "index", "idx": "index", "s": "shard", "sh": "shard", "p": "prirep", "pr": "prirep",
    "primaryorreplica": "prirep", "st": "state", "sto": "store", "d": "docs", "dc": "docs",
    "n": "node",
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
        names = {*_names(line)}
        if names >= HEADER["shards"] or SHARD.fullmatch(line):
            return "shards"
        told = ALLOCATION.fullmatch(line)
        if names >= HEADER["allocation"] or (told is not None and told["total"]):
            return "allocation"
    return ""


def read_text(faults: FaultList, document: Document, kind: Kind) -> Rows:
    """Return the rows of a table, noting what is none."""
    lines = [line.rstrip("\r") for line in document.text(faults).split("\n")]
    filled = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    header = filled[0][1] if filled else ""
    titles = _names(header)
    headed = HEADER[kind] <= {*titles}
    filled = filled[headed:]
    known: Callable[[str], Row | None] = _shard if kind == "shards" else _allocation
    if headed and kind == "shards" and {*titles} - USUAL:
        known = partial(_cut, titles, _cuts(header, [line for _, line in filled]))
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


def _names(line: str) -> list[str]:
    names = line.lower().split()
    return [SHORT.get(name, name) for name in names]


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
    row |= {f"disk.{name}": told[name] for name in ("indices", "used", "avail", "total")}
    # releases that count more than shards also tell what nodes are for
    if len(told["counts"].split()) > 1 and told["total"]:
        row["node"] = ROLE.sub("", row["node"] or "")
    return row


def _cuts(header: str, lines: Sequence[str]) -> list[int]:
    """Return where columns end, which stand to the left or to the right of their widths."""
    cuts = []
    for here, there in pairwise(re.finditer(r"\S+", header)):
        blank = (
            at
            for at in range(here.end(), there.start())
            if all(line[at : at + 1] in ("", " ") for line in lines)
        )
        cuts.append(next(blank, here.end()))
    return cuts


def _cut(titles: Sequence[str], cuts: Sequence[int], line: str) -> Row | None:
    """Return the cells of a line."""
    if len(titles) != len(cuts) + 1:
        return None
    cells = [line[begin:end].strip() for begin, end in pairwise([0, *cuts, len(line)])]
    return {title: cell or None for title, cell in zip(titles, cells, strict=True)}
