"""Sections of a report: lines and tables below each other, in colour, in grey, or as plain text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evenkeel.model.cluster import Cluster
from evenkeel.model.intake.stranded import told_stranded
from evenkeel.model.runtime.printable import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

WIDTH = 100
"""Characters of a line where nobody says otherwise."""

NARROWEST = 78

WIDEST_BAR = 44

SHOWN_ROWS = 8
"""Rows of a list that are spelled out; the rest is counted."""


def plain_table() -> "Table":
    """Return a table without lines."""
    from rich.table import Table

    return Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_edge=False
    )


def least_said(result: Any) -> str:
    """Return what heads bounds of levels: of a placement that lacks something they say nothing."""
    return "at least" if result.audit.ok else "if complete"


def marked_line(markup: str) -> "RenderableType":
    """Return a line with styles in it."""
    from rich.text import Text

    return Text.from_markup(markup)


def stranded_lines(cluster: Cluster) -> list["RenderableType"]:
    """Say which partitions nobody can mend, if there are any."""
    told = told_stranded(cluster)
    return [marked_line(f"[yellow]! {escaped(told)}[/]")] if told else []


def escaped(text: str) -> str:
    """Return a name such that nothing in it is taken for a style, or acts on a terminal."""
    from rich.markup import escape

    return escape(printable(text))


def rendered(parts: Sequence["RenderableType"], width: int, styled: bool) -> str:
    """Write the sections one below the other, a blank line before each table."""
    import io

    from rich.console import Console
    from rich.table import Table

    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=styled, color_system="standard" if styled else None,
        highlight=False, emoji=False, legacy_windows=False,
    )  # fmt: skip
    for part in parts:
        if isinstance(part, Table):
            console.print()
        console.print(part)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
