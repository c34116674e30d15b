"""Columns of a table that has a header: where they end, and what their cells look like."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

Row = dict[str, str | None]

SIZE = r"[0-9]+(?:\.[0-9]+)?[kmgtp]?b?"
STATES = "STARTED|RELOCATING|INITIALIZING|UNASSIGNED"

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
    "ip": re.compile(r"\S*[.:]\S*|-"),
}
"""What a cell looks like, by the title of its column; others hold anything."""


def borders(header: str, lines: Sequence[str]) -> list[int] | None:
    """Return where each column but the last ends; None for a table that is not padded.

    Columns are padded to their widest cells, text behind and numbers before. Between two titles
    the last place that is blank in all lines parts them: a number has no blanks, and before a
    column of text that place is right before its title, whatever blanks there are in names.

    Examples
    --------
    >>> borders("node  docs id", ["es 1 10000 a", "es-2     7 b"])
    [4, 10]
    >>> borders("node docs", ["es-number-1 7"]) is None
    True
    """
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
    """Return the cells of a line of a padded table; None where one does not look like its title."""
    cells = [line[begin:end].strip() for begin, end in pairwise([0, *ends, len(line)])]
    return _row(titles, cells)


def split(titles: Sequence[str], line: str) -> Row | None:
    """Return the cells of a line that is not padded, a word each; the last may be more."""
    cells = line.split(None, len(titles) - 1)
    return _row(titles, [cell.rstrip() for cell in cells]) if len(cells) == len(titles) else None


def _row(titles: Sequence[str], cells: Sequence[str]) -> Row | None:
    """Return cells by their titles if all that are filled look like it."""
    row = {title: cell or None for title, cell in zip(titles, cells, strict=True)}
    for title, cell in row.items():
        if cell is not None and title in LOOKS and not LOOKS[title].fullmatch(cell):
            return None
    return row
