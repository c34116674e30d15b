"""Build HTML with all text escaped: fragments for notebooks, and self-contained pages.

Fragments for notebooks have the colours of the surrounding page.
"""

import os
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.runtime.atomic import as_path, write_atomically
from evenkeel.model.runtime.table import NAME_LETTERS, Column, Pair, Spread, Table
from evenkeel.view.terminal import Line, bar, histogram

CELL = "text-align:{side};padding:1px 10px 1px 0;border:0;background:none;white-space:nowrap"
RULE = "border-bottom:1px solid currentColor;font-weight:600;opacity:.75"
FIGURES = "font-variant-numeric:tabular-nums"

CHART = 24  # characters of a bar or a histogram
DEEPEST = 0.45  # how much of the colour the fullest cell of a matrix has; its figure stays readable
SUFFIXES = (".html", ".htm")

PAGE = Path(__file__).with_name("page.html")

# what is not seen itself, and turns around what stands after it, or is not allowed in markup
UNSEEN = dict.fromkeys(
    (
        *range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F,
        *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF,
    ),
    "\N{REPLACEMENT CHARACTER}",
)  # fmt: skip


class Raw(str):
    """Markup that is safe as it is."""

    __slots__ = ()


@dataclass(frozen=True)
class Section:
    """A part of a page that its table of contents leads to: paragraphs, tables, and markup."""

    key: str
    title: str
    parts: Sequence[str | Table]


def text(value: str | Raw) -> str:
    """Return what stands for a value in markup."""
    return str(value) if isinstance(value, Raw) else escape(value.translate(UNSEEN))


def shortened(name: str, letters: int = NAME_LETTERS) -> str:
    """Return a name that does not push a table out of the page.

    >>> shortened("transactions", 6)
    'trans…'
    """
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def heading(first: str, rest: str) -> Raw:
    """Write the line above everything in a notebook."""
    return Raw(f"<div><strong>{text(first)}</strong> {text(rest)}</div>")


def line(content: str | Raw) -> str:
    """Write a line in a notebook."""
    return f'<div style="opacity:.85;overflow-wrap:anywhere">{text(content)}</div>'


def table(heads: Sequence[str], rows: Sequence[Sequence[str | Raw]]) -> str:
    """Write a table in a notebook, the first column on the left and figures on the right."""
    if not rows:
        return ""
    return _styled(heads, rows, [k == 0 or isinstance(one, Raw) for k, one in enumerate(rows[0])])


def _styled(heads: Sequence[str], rows: Sequence[Sequence[str | Raw]], left: Sequence[bool]) -> str:
    style = [CELL.format(side="left" if is_left else "right") for is_left in left]
    top = "".join(
        f'<th style="{look};{RULE}">{text(head)}</th>'
        for head, look in zip(heads, style, strict=True)
    )
    body = "".join(
        "<tr style='background:none'>"
        + "".join(
            f'<td style="{look}">{text(cell)}</td>' for cell, look in zip(row, style, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return (
        '<div style="overflow-x:auto">'
        f'<table style="border-collapse:collapse;margin:6px 0;{FIGURES}">'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def notebook(parts: Sequence[str | Line | Table]) -> str:
    """Put lines, tables and markup one below the other, as notebooks show them."""
    written = []
    for part in parts:
        if isinstance(part, Table):
            written += _notebook_table(part)
        elif isinstance(part, Line):
            written.append(line(part.text))
        else:
            written.append(part if isinstance(part, Raw) else line(part))
    return f'<div style="line-height:1.45">{"".join(written)}</div>'


def _notebook_table(shown: Table) -> list[str]:
    if not len(shown):
        return []
    heads: list[str] = []
    columns: list[Sequence[str | Raw]] = []
    left: list[bool] = []
    for one in (one for one in shown.columns if not one.spare):
        cells = _cells(one)
        if one.drawn:
            whole = _last(one.values[0])
            heads += [f"nodes, 0 to {whole.top:.0%} full", *[""] * (len(cells[0]) - 1)]
            columns += [*zip(*cells, strict=True)]
            left += [True] * len(cells[0])
            continue
        heads.append(shortened(one.short or one.name))
        columns.append([_joined(cell) for cell in cells])
        left.append(one.words)
        if one.bars is not None:
            shares = [_last(share) for share in one.bars]
            heads.append("")
            columns.append([signs(bar(share, 1.0, CHART)) for share in shares])
            left.append(True)
    more = [line(f"… and {shown.left:,} more {shown.what}")] if shown.left > 0 else []
    return [_styled(heads, [*zip(*columns, strict=True)], left), *more]


def _last(value: Any) -> Any:
    return value.after if isinstance(value, Pair) else value


def _cells(column: Column) -> list[tuple[str | Raw, ...]]:
    """Write the values of a column, each as what was and what is, or as that alone."""
    found = []
    for value in column.values:
        sides = value if isinstance(value, Pair) else (value,)
        found.append(tuple(_cell(column, side) for side in sides))
    return found


def _cell(column: Column, value: Any) -> str | Raw:
    if isinstance(value, Spread):
        full = [min(one, value.top) for one in value.values.tolist()]
        return signs(histogram(full, value.top, CHART, mark=1.0))
    written = value if isinstance(value, Raw) else column.written(value)
    return shortened(written, column.letters) if column.words and column.letters else written


def _joined(sides: Sequence[str | Raw]) -> str | Raw:
    if len(sides) == 1:
        return sides[0]
    return " → ".join(sides) if any(sides) else ""


def signs(drawn: str) -> Raw:
    """Write block characters, such as those of a histogram, so that they stand in line."""
    return Raw(f'<span style="font-family:monospace;white-space:pre">{escape(drawn)}</span>')


def page(title: str, lead: Sequence[str | Table], sections: Sequence[Section]) -> str:
    """Write a page, which may neither fetch anything nor run any script but its own."""
    template = PAGE.read_text(encoding="utf-8")
    script = template.partition("<script>")[2].partition("</script>")[0]
    digest = sha256(Template(script).substitute().encode()).digest()
    shown = [one for one in sections if one.parts]
    return Template(template).substitute(
        digest=b64encode(digest).decode(),
        title=text(title),
        lead="".join(map(_part, lead)),
        links="".join(f'<li><a href="#{one.key}">{text(one.title)}</a></li>' for one in shown),
        body="\n".join(
            f'<section id="{one.key}" aria-labelledby="{one.key}-title">'
            f'<h2 id="{one.key}-title">{text(one.title)}</h2>\n'
            + "\n".join(map(_part, one.parts))
            + "</section>"
            for one in shown
        ),
    )


def _part(part: str | Table) -> str:
    """Write a paragraph, a table, or what is markup already."""
    if isinstance(part, Table):
        return _folded(part) if part.title else _page_table(part)
    return part if isinstance(part, Raw) else f"<p>{text(part)}</p>"


def dim(content: str) -> Raw:
    """Write a paragraph that stands back."""
    return Raw(f'<p class="dim">{text(content)}</p>')


def verdict(what: str, content: str) -> Raw:
    """Write the heading of a page, in which the verdict stands out."""
    return Raw(f'<h1>{text(what)} <span class="status">{text(content)}</span></h1>')


def subheading(title: str) -> Raw:
    """Write the heading of a part of a section."""
    return Raw(f"<h3>{text(title)}</h3>")


def cards(figures: Sequence[tuple[str, str, str]]) -> Raw:
    """Write figures that stand out: what each is of, the figure, and what to compare it with."""
    shown = "".join(
        f"<div><dt>{text(name)}</dt><dd>{text(figure)}<small>{text(beside)}</small></dd></div>"
        for name, figure, beside in figures
    )
    return Raw(f'<dl class="cards">{shown}</dl>')


def strips(shares: Sequence[tuple[str, float]]) -> str:
    """Draw shares of a whole as strips below each other, each in its own look."""
    deep = 10.0 / len(shares)
    drawn = "".join(
        f'<rect class="{look}" y="{i * deep:g}" width="{100.0 * min(max(share, 0.0), 1.0):.4g}" '
        f'height="{deep - 1.0:g}"/>'
        for i, (look, share) in enumerate(shares)
    )
    return (
        '<svg class="pair" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f"{drawn}</svg>"
    )


def _page_table(shown: Table) -> str:
    """Write a table whose first column names the row; it is scrolled where it is too wide."""
    columns = [one for one in shown.columns if not one.drawn]
    shades = any(one.shades is not None for one in columns)
    look = [' class="w"' if i and one.words else "" for i, one in enumerate(columns)]
    top = "".join(
        f'<th scope="col"{kind}>{text(shortened(one.name))}</th>'
        for one, kind in zip(columns, look, strict=True)
    )
    cells = [[_marked(one, row, sides) for row, sides in enumerate(_cells(one))] for one in columns]
    body = "\n".join(
        f'<tr><th scope="row">{first}</th>'
        + "".join(
            f"<td{kind}{_shade(one, row)}>{cell}</td>"
            for one, kind, cell in zip(columns[1:], look[1:], rest, strict=True)
        )
        + "</tr>"
        for row, (first, *rest) in enumerate(zip(*cells, strict=True))
    )
    name, kind = text(shown.caption), "f matrix" if shades else "f"
    left = "" if shown.title or shown.left <= 0 else dim(_left(shown))
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{name}">'
        f'<table class="{kind}"><caption><span>{name}</span></caption>'
        f"<thead><tr>{top}</tr></thead><tbody>\n{body}</tbody></table></div>{left}"
    )


def _marked(column: Column, row: int, sides: Sequence[str | Raw]) -> str:
    """Write a cell, its shares of a whole below it."""
    cell = text(_joined(sides))
    if column.bars is None:
        return cell
    share = column.bars[row]
    if not share:
        return cell
    both = [("was", share.before), ("now", share.after)] if isinstance(share, Pair) else None
    return cell + strips(both or [("now", float(_last(share)))])


def _shade(column: Column, row: int) -> str:
    return "" if column.shades is None else f' style="--a:{DEEPEST * column.shades[row]:.3f}"'


def _left(shown: Table) -> str:
    return f"{shown.left:,} more {shown.what} are left out."


def _folded(shown: Table) -> str:
    """Fold a table away, with a field above it that finds rows."""
    content = f'<p class="dim">{text(_left(shown))}</p>' if shown.left > 0 else ""
    return (
        f'<details class="rows"><summary>{text(shown.title)}</summary>{content}'
        f'<p class="search" hidden="hidden"><label>Find rows with <input type="search" '
        f'autocomplete="off"/></label> <output></output></p>{_page_table(shown)}</details>'
    )


def check_page(path: str | os.PathLike[str], argument: str = "path") -> None:
    """Raise what is wrong with the name of a page, before any work is done for it."""
    if as_path(path, argument).suffix.lower() not in SUFFIXES:
        raise InvalidInput([Fault(argument, os.fspath(path), f"must end in one of {[*SUFFIXES]}")])


def write_page(written: str, path: str | os.PathLike[str]) -> Path:
    """Write a page, such that a crash leaves what stood there or all of it."""
    return write_atomically(path, written.encode())
