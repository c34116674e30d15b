"""Render lines and tables for a terminal, in colour, in grey, or as plain text.

Bars and histograms are of block characters, readable without colour.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenkeel.model.runtime.printable import printable
from evenkeel.model.runtime.table import Column, Pair, Spread, Table

if TYPE_CHECKING:
    from rich.table import Table as Grid
    from rich.text import Text

WIDTH = 100  # characters of a line by default
NARROWEST = 78

SHOWN_ROWS = 8  # rows of a list that are spelled out; the rest is counted
CHART = (10, 44)  # characters of the narrowest chart and of the widest
# characters of a name and of an explanation that are kept on a line
MOST_NAMED, MOST_WRAPPED = 40, 20

EIGHTHS = " ▏▎▍▌▋▊▉█"
HEIGHTS = " ▁▂▃▄▅▆▇█"
MARK = "│"

# the colours of signs that stand at the beginning of a text
SIGNS = {"✓": "green", "✗": "red", "~": "yellow", "!": "yellow"}


class Line(NamedTuple):
    """A line of a report, in a style of rich."""

    text: str
    style: str = ""


def rendered(parts: Sequence[Line | Table], width: int, styled: bool) -> str:
    """Write the parts one below the other, a blank line before each table."""
    import io

    from rich.console import Console

    width = max(width, NARROWEST)
    widest = max([width, *(_least(part) for part in parts if isinstance(part, Table))])
    out = io.StringIO()
    console = Console(
        file=out, width=widest, force_terminal=styled, color_system="standard" if styled else None,
        highlight=False, emoji=False, legacy_windows=False,
    )  # fmt: skip
    for part in parts:
        if isinstance(part, Table):
            room = max(width, _least(part))
            console.print()
            console.print(_grid(part, room), width=room)
            if part.left > 0:
                console.print(_styled(f"... and {part.left:,} more", "dim"), width=width)
        else:
            console.print(_styled(part.text, part.style), width=width)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _least(table: Table) -> int:
    """Return how many characters a table takes if whatever explains is wrapped, charts apart."""
    least = 0
    for one in table.columns:
        if not (one.spare or one.drawn):
            sides = [side for v in one.values for side in (v if isinstance(v, Pair) else (v,))]
            widest = max(map(len, [one.short or one.name, *map(one.written, sides)]))
            least += 2 + min(widest, MOST_WRAPPED if one.words and not one.letters else MOST_NAMED)
    return least


def _styled(text: str, style: str = "") -> "Text":
    """Return a text in which nothing acts on a terminal, its signs in their colours."""
    from rich.text import Text

    made = Text(printable(text), style)
    first = SIGNS.get(text[:1])
    if first and text[1:2] == " ":
        made.stylize(first, 0, 1)
    return made


def _grid(table: Table, width: int) -> "Grid":
    """Lay out a table without lines; a row with values before and after takes two lines."""
    from rich.table import Table as Grid

    grid = Grid(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_edge=False
    )
    table = replace(table, columns=[one for one in table.columns if not one.spare])
    two = any(isinstance(value, Pair) for one in table.columns for value in one.values)
    columns = [*table.columns[:1], *([Column("", [""])] if two else []), *table.columns[1:]]
    lines = [[*_lines(table, row, two)] for row in range(len(table))]
    chart = _room(columns, lines, width)
    for one in columns:
        head = axis(one.values[0].top, chart) if one.drawn and not two else one.short or one.name
        if one.drawn and two:
            head = axis(one.values[0].after.top, chart)
        style = "cyan" if one.drawn else "dim" if one.faint else ""
        grid.add_column(
            _styled(head), justify="left" if one.words else "right", style=style, no_wrap=one.drawn
        )
        if one.bars is not None:
            grid.add_column("", style="cyan", no_wrap=True)
    for row, cells in enumerate(lines):
        for k, line in enumerate(cells):
            style = ("dim" if k == 0 else "bold") if two else ""
            shown = []
            for one, cell in zip(columns, line, strict=True):
                if isinstance(cell, Spread):
                    full = np.minimum(cell.values, cell.top)
                    cell = histogram(full, cell.top, chart, mark=1.0)
                shown.append(_styled(cell, "" if one.drawn else style))
                if one.bars is not None:
                    share = one.bars[row] if row < len(one.bars) else 0.0
                    share = share.after if isinstance(share, Pair) else share
                    shown.append(_styled(bar(share, 1.0, chart)))
            grid.add_row(*shown)
    return grid


def _lines(table: Table, row: int, two: bool) -> Iterator[list[Any]]:
    """Return the cells of a row, in one line, or in one of what was and one of what is."""
    for k in range(1 + two):
        cells = []
        for i, one in enumerate(table.columns):
            value = one.values[row]
            if two and not isinstance(value, Pair):
                value = value if (i == 0) == (k == 0) else None
            value = value[k] if isinstance(value, Pair) else value
            cells.append(value if isinstance(value, Spread) else one.written(value))
            if two and i == 0:
                cells.append(("before", "after")[k])
        yield cells


def _room(columns: Sequence[Column], lines: Sequence[Sequence[Sequence[Any]]], width: int) -> int:
    """Return how wide a chart may be beside all else."""
    beside = 0
    for i, one in enumerate(columns):
        cells = [line[i] for row in lines for line in row if isinstance(line[i], str)]
        head = "" if one.drawn else one.short or one.name
        beside += 0 if one.drawn else 2 + max(map(len, [head, *cells]))
    return min(max(width - beside - 2, CHART[0]), CHART[1])


def bar(value: float, full: float, width: int) -> str:
    """Draw a horizontal bar, an eighth of a character fine."""
    if not (value > 0.0 and full > 0.0 and width > 0):
        return ""
    eighths = max(1, round(8 * width * min(value / full, 1.0)))
    whole, rest = divmod(eighths, 8)
    return EIGHTHS[8] * whole + (EIGHTHS[rest] if rest else "")


def histogram(values: ArrayLike, top: float, width: int, mark: float | None = None) -> str:
    """Draw how values are distributed from 0 to ``top``, one character per class."""
    drawn = np.asarray(values, np.float64)
    count = np.zeros(width, np.int64)
    if len(drawn) and top > 0.0:
        place = np.minimum(drawn / top * width, width - 1).astype(np.int64)
        count = np.bincount(place, minlength=width)
    height = np.ceil(count * 8 / max(1, int(count.max(initial=0)))).astype(np.int64)
    signs = [HEIGHTS[h] for h in height.tolist()]
    if mark is not None and 0.0 <= mark <= top:
        at = min(int(mark / top * width), width - 1)
        signs[at] = MARK if signs[at] == " " else signs[at]
    return "".join(signs)


def axis(top: float, width: int, step: float = 0.5) -> str:
    """Write a percent scale over a histogram."""
    line = ""
    for i in range(round(top / step) + 1):
        at = int(i * step / top * width) if top > 0.0 else 0
        figure = f"{100 * i * step:.0f}%"
        if at >= len(line) and at + len(figure) <= width:
            line = line.ljust(at) + figure
    return line
