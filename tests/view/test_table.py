"""Tables: the same values in every form, and each form keeps to its room."""

import csv
import io
import json
import re

import numpy as np
import pytest

from evenkeel.model.runtime.figures import number, percent
from evenkeel.model.runtime.table import Column, Pair, Spread, Table
from evenkeel.view.html import Section, notebook, page
from evenkeel.view.terminal import Line, rendered
from tests.view.test_page import HOSTILE, read, said, tables


def made(**more):
    """Two rows with all that a column may have."""
    return Table(
        [
            Column("name", ["a", HOSTILE[0]], short="who"),
            Column("fullest ÷ mean", [Pair(1.5, 1.0), Pair(2.0, np.inf)], number, "max/mean"),
            Column("least", [0.25, None], percent, bars=[0.5, Pair(0.0, 1.0)]),
            Column("nodes", [Pair(*[Spread(np.array([0.5, 0.6]), 1.0)] * 2)] * 2),
            Column("spare", [1, 2], str, spare=True),
            Column("why", ["because", "of " * 40], letters=0, faint=True),
        ],
        "What rows are.", **more,
    )  # fmt: skip


def test_plain_values_are_the_same_in_csv_and_json():
    rows = [("a,b", 1, None), ('"c"', 2, 0.5)]
    table = Table.of(("name", "slot", "bytes"), rows)
    assert [*csv.reader(io.StringIO(table.csv()))][1:] == [["a,b", "1", ""], ['"c"', "2", "0.5"]]
    assert [tuple(one.values()) for one in json.loads(table.json())] == rows
    assert Table.of(("name",), []).csv() == "name\n"
    assert json.loads(Table.of(("name",), []).json()) == []
    counted = Table.of_columns({"n": np.arange(2), "name": ["a", "b"]})
    assert counted.rows() == [(0, "a"), (1, "b")]


def test_pairs_are_two_lines_in_a_terminal():
    text = rendered([made(left=3)], 100, styled=False)
    lines = text.splitlines()
    assert lines[1].split()[:2] == ["who", "max/mean"]
    assert lines[2].split()[:3] == ["a", "before", "1.5000"]
    assert lines[3].split()[:3] == ["after", "1.0000", "25.0%"]
    assert "∞" in text
    assert "spare" not in text
    assert lines[-1] == "... and 3 more"
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("width", [20, 78, 200])
def test_names_and_figures_are_never_cut_and_explanations_wrap(width):
    columns = [Column(f"figure {i}", [123_456.789], "{:,.3f}".format) for i in range(12)]
    text = rendered([Line("x " * 99), Table(columns)], width, styled=False)
    assert "…" not in text
    assert text.count("123,456.789") == 12
    assert max(map(len, text[: text.index("figure")].splitlines())) <= max(width, 78)


def test_nothing_in_a_name_acts_on_a_terminal():
    table = Table([Column("[red]", ["[bold]a[/]", "\x1b[2J\u202e"])])
    text = rendered([Line("! [green]", "dim"), table], 80, styled=False)
    assert "[bold]a[/]" in text
    assert "[red]" in text
    assert "! [green]" in text
    assert not {"\x1b", "\u202e"} & {*text}


def test_pairs_stand_in_one_cell_of_html():
    written = page("title", ["lead"], [Section("s", "Section", [made(title="Rows", left=3)])])
    [(caption, heads, rows)] = tables(read(written))
    assert caption == "What rows are."
    assert heads == ["name", "fullest ÷ mean", "least", "spare", "why"]
    assert rows[0] == ["a", "1.5000 → 1.0000", "25.0%", "1", "because"]
    assert written.count('<svg class="pair"') == 2
    assert "3 more rows are left out." in said(read(written))
    shown = notebook([made(left=3)])
    assert "1.5000 → 1.0000" in shown
    assert "spare" not in shown
    assert "… and 3 more rows" in shown
    assert "<script>alert" not in shown


def test_shades_are_shares_of_the_deepest():
    table = Table([Column("row", ["a"]), Column("n", [3], str, shades=[0.5])], "Shaded.")
    written = page("title", [], [Section("s", "Section", [table])])
    read(written)
    assert re.search(r'<td style="--a:0\.225">3</td>', written)


def test_a_section_without_parts_is_left_out():
    written = page("title", [], [Section("none", "Nothing", []), Section("s", "Section", ["x"])])
    assert "Nothing" not in written
    read(written)
