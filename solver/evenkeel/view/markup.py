"""Pieces of HTML: everything is escaped, and colours are those of the page around it."""

from collections.abc import Sequence
from html import escape

CELL = "text-align:{side};padding:1px 10px 1px 0;border:0;background:none;white-space:nowrap"
RULE = "border-bottom:1px solid currentColor;font-weight:600;opacity:.75"
FIGURES = "font-variant-numeric:tabular-nums"

MOST_LETTERS = 48
"""Letters of a name in a table, whose lines do not break."""

UNSEEN = dict.fromkeys(
    (
        *range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F,
        *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF,
    ),
    "\N{REPLACEMENT CHARACTER}",
)  # fmt: skip
"""What is not seen itself, and turns around what stands after it, or is not allowed in markup."""


class Raw(str):
    """Markup that is safe as it is."""

    __slots__ = ()


def text(value: str | Raw) -> str:
    """Return what stands for a value in markup.

    Examples
    --------
    >>> text("a<b"), text(Raw("<b>"))
    ('a&lt;b', '<b>')
    """
    return str(value) if isinstance(value, Raw) else escape(value.translate(UNSEEN))


def shortened(name: str, letters: int = MOST_LETTERS) -> str:
    """Return a name that does not push a table out of the page.

    Examples
    --------
    >>> shortened("transactions", 6)
    'trans…'
    """
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def heading(first: str, rest: str) -> str:
    """Write the line above everything."""
    return f"<div><strong>{text(first)}</strong> {text(rest)}</div>"


def line(said: str | Raw) -> str:
    """Write a line."""
    return f'<div style="opacity:.85;overflow-wrap:anywhere">{text(said)}</div>'


def table(heads: Sequence[str], rows: Sequence[Sequence[str | Raw]]) -> str:
    """Write a table, the first column on the left and figures on the right."""
    if not rows:
        return ""
    left = [k == 0 or isinstance(cell, Raw) for k, cell in enumerate(rows[0])]
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


def signs(drawn: str) -> Raw:
    """Write block characters, such as those of a histogram, so that they stand in line."""
    return Raw(f'<span style="font-family:monospace;white-space:pre">{escape(drawn)}</span>')


def box(parts: Sequence[str]) -> str:
    """Put pieces one below the other."""
    return f'<div style="line-height:1.45">{"".join(parts)}</div>'
