"""The frame of a page: head, landmarks, sections, tables that scroll and can be searched."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from evenkeel.view.markup import Raw, text
from evenkeel.view.page.looks import SCRIPT, STYLE

DEEPEST = 0.45
"""How much of the colour the fullest cell of a matrix has; its figure stays readable."""


@dataclass(frozen=True)
class Section:
    """A part of a page that its table of contents leads to."""

    key: str
    title: str
    parts: Sequence[str]


def document(title: str, lead: Sequence[str], sections: Sequence[Section]) -> str:
    """Write a page, which may neither fetch anything nor run any script but its own."""
    digest = b64encode(sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    links = "".join(
        f'<li><a href="#{one.key}">{text(one.title)}</a></li>' for one in sections if one.parts
    )
    body = "\n".join(
        f'<section id="{one.key}" aria-labelledby="{one.key}-title">'
        f'<h2 id="{one.key}-title">{text(one.title)}</h2>\n' + "\n".join(one.parts) + "</section>"
        for one in sections
        if one.parts
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{text(title)}</title><style>{STYLE}</style></head>\n"
        '<body><a class="skip" href="#content">Skip to the content</a>\n'
        f"<header>{''.join(lead)}</header>\n"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n'
        f'<main id="content">\n{body}\n</main>\n'
        "<footer>Written by Evenkeel. The same answer gives the same page.</footer>\n"
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def paragraph(said: str | Raw, look: str = "") -> str:
    """Write a paragraph."""
    return f'<p class="{look}">{text(said)}</p>' if look else f"<p>{text(said)}</p>"


def cards(figures: Sequence[tuple[str, str, str]]) -> str:
    """Write figures that stand out: what each is of, the figure, and what to compare it with."""
    shown = "".join(
        f"<div><dt>{text(name)}</dt><dd>{text(figure)}<small>{text(beside)}</small></dd></div>"
        for name, figure, beside in figures
    )
    return f'<dl class="cards">{shown}</dl>'


def table(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[str | Raw]], words: Sequence[int]
) -> str:
    """Write a table whose first column names the row; ``words`` are columns without figures."""
    look = [' class="w"' if i in words else "" for i in range(len(heads))]
    top = "".join(
        f'<th scope="col"{kind}>{text(head)}</th>' for head, kind in zip(heads, look, strict=True)
    )
    body = "\n".join(
        f'<tr><th scope="row">{text(row[0])}</th>'
        + "".join(f"<td{look[i]}>{text(row[i])}</td>" for i in range(1, len(row)))
        + "</tr>"
        for row in rows
    )
    return scrolled(
        caption,
        f'<table class="f"><caption><span>{text(caption)}</span></caption>'
        f"<thead><tr>{top}</tr></thead><tbody>\n{body}</tbody></table>",
    )


def matrix(
    caption: str, heads: Sequence[str], rows: Sequence[tuple[str, Sequence[tuple[str, float]]]]
) -> str:
    """Write figures by row and column, deeper where their share of the greatest is greater."""
    top = "".join(f'<th scope="col">{text(head)}</th>' for head in heads)
    body = "".join(
        f'<tr><th scope="row">{text(name)}</th>'
        + "".join(
            f'<td style="--a:{DEEPEST * share:.3f}">{text(figure)}</td>' for figure, share in cells
        )
        + "</tr>"
        for name, cells in rows
    )
    return scrolled(
        caption,
        f'<table class="f matrix"><caption><span>{text(caption)}</span></caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>",
    )


def scrolled(name: str, markup: str) -> str:
    """Let what is wider than the page be scrolled, by keys too."""
    label = text(name)
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">{markup}</div>'


def searched(title: str, markup: str, *, note: str = "") -> str:
    """Fold a table away, with a field above it that finds rows."""
    said = f'<p class="dim">{text(note)}</p>' if note else ""
    return (
        f'<details class="rows"><summary>{text(title)}</summary>{said}'
        f'<p class="search" hidden="hidden"><label>Find rows with <input type="search" '
        f'autocomplete="off"/></label> <output></output></p>{markup}</details>'
    )


def left_out(count: int, what: str) -> str:
    """Say how many rows are not in the page."""
    return f"{count:,} more {what} are left out." if count > 0 else ""
