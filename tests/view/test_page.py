"""The page of a result: true, well-formed, escaped, complete in itself, small, and repeatable."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

import evenkeel as ek
from evenkeel.measure.audit import KINDS
from evenkeel.simulate.generators import expansion
from evenkeel.view.charts import MOST_BARS, Lineup, axis_of_counts, axis_of_shares
from evenkeel.view.html import UNSEEN
from evenkeel.view.plots.moves import flows_between
from evenkeel.view.results import (
    SHOWN_CHANGES,
    SHOWN_MOVES,
    SHOWN_NODES,
    in_words,
    plain,
    result_page,
)
from tests.support.clusters import clusters

HOSTILE = (
    "<script>alert(1)</script>", "\"><img src=x onerror='x'>", "a\nb\r\nc\x0b\x0cd",
    "</title></svg>", "\u202eevil\u2066", "&amp;&lt;", "\ud800", "-->", "]]>", "שלום", "x" * 500,
)  # fmt: skip
VOID = {"meta", "input"}


class Reader(HTMLParser):
    """Reads markup as a browser does, and insists that every element is closed in its turn."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(page):
    """Return the elements of a page, after looking for what should not be there."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert not reader.open
    names = {name for _, name, _ in reader.attributes}
    assert not {name for name in names if name.startswith("on")}
    assert not names & {"src", "srcset", "action", "formaction", "data", "background", "xlink:href"}
    links = [value for _, name, value in reader.attributes if name == "href"]
    assert all(link.startswith("#") for link in links)
    assert reader.seen.count("script") == reader.seen.count("style") == 1
    assert not re.search(r"url\(|@import|https?:|//[a-z]", page)
    root = ET.fromstring(page.removeprefix("<!DOCTYPE html>"))
    ids = [one.get("id") for one in root.iter() if one.get("id")]
    assert len(ids) == len(set(ids))
    referred = {link.removeprefix("#") for link in links}
    for one in root.iter():
        referred |= set(one.get("aria-labelledby", "").split())
    assert referred <= set(ids)
    return root


def said(element):
    """What a person reads in an element."""
    return " ".join("".join(element.itertext()).split())


def tables(root):
    """Every table of a page: its caption, its heads, and its rows as texts."""
    for table in root.iter("table"):
        caption = said(table.find("caption"))
        heads = [said(one) for one in table.find("thead").iter("th")]
        rows = [[said(cell) for cell in row] for row in table.find("tbody")]
        assert all(len(row) == len(heads) for row in rows)
        yield caption, heads, rows


def table_of(root, caption):
    """The rows of the table whose caption begins so."""
    found = [rows for name, _, rows in tables(root) if name.startswith(caption)]
    assert len(found) == 1
    return found[0]


@pytest.fixture(scope="module")
def result():
    """A cluster of three dimensions that was just expanded, solved."""
    return ek.solve(expansion(600, 40, 4, seed=3), goals=ek.Goals(level=0.1, leaders=0.3))


@pytest.fixture(scope="module")
def root(result):
    """Its page."""
    return read(result_page(result))


def cards(root):
    """The figures that stand out, by name."""
    found = next(one for one in root.iter("dl"))
    return {said(one.find("dt")): one.find("dd").text for one in found}


def test_the_verdict_comes_first(result, root):
    header = said(root.find("body/header"))
    assert result.status in said(next(root.iter("h1")))
    assert result.message in header
    assert f"{result.comparison.moves:,} moves and {result.comparison.leader_changes:,}" in header
    worst = int(np.argmax(result.levelness.ratio))
    assert f"{result.levelness.ratio[worst]:.3f} times the mean in" in header
    assert f"where it was {result.levelness_before.ratio[worst]:.3f} times" in header


def test_figures_that_stand_out_are_those_of_the_result(result, root):
    shown = cards(root)
    assert shown["moves"] == f"{result.metrics['moves']:,}"
    assert shown["leader changes"] == f"{result.metrics['leader_changes']:,}"
    assert float(shown["data moved"].replace(",", "")) == pytest.approx(
        result.metrics["bytes_moved"], abs=0.51
    )
    assert shown["hard violations"] == f"{result.audit_before.hard:,} → {result.audit.hard:,}"
    assert shown["unplaced"] == f"{result.metrics['unplaced']:,}"
    assert shown["goals"] == "reached"


def test_dimensions_are_those_of_the_result(result, root):
    rows = table_of(root, "Utilisation is")
    assert [row[0] for row in rows] == [*result.cluster.dimensions, "leaders"]
    was, now = result.levelness_before, result.levelness
    assert rows[-1][1] == f"{was.leader_ratio:.4f} → {now.leader_ratio:.4f}"
    assert rows[-1][3] == f"{was.leaders.max():,} → {now.leaders.max():,}"
    for d, row in enumerate(rows[:-1]):
        assert row[1] == f"{was.ratio[d]:.4f} → {now.ratio[d]:.4f}"
        assert row[2] == f"{result.bounds.ratio[d]:.4f}"
        assert row[3] == f"{100 * was.most[d]:.1f}% → {100 * now.most[d]:.1f}%"
        assert row[4] == f"{100 * was.least[d]:.1f}% → {100 * now.least[d]:.1f}%"
        assert row[5] == f"{100 * was.deviation[d]:.1f}% → {100 * now.deviation[d]:.1f}%"
        over = [int((one.table[one.alive, d] > 1.0).sum()) for one in (was, now)]
        assert row[6] == f"{over[0] or '-'} → {over[1] or '-'}"


def test_bars_are_as_high_as_nodes_are_full(result, root):
    lineup = Lineup.of(result.cluster)
    assert not lineup.shared
    for d, name in enumerate(result.cluster.dimensions):
        for when, state in (("before", result.levelness_before), ("after", result.levelness)):
            svg = next(
                one for one in root.iter("svg") if one.find("title") is not None
                and one.find("title").text == f"{name} {when}, % of capacity"
            )  # fmt: skip
            both = (result.levelness_before, result.levelness)
            top = axis_of_shares(max(float(one.most[d]) for one in both)).top
            drawn = {
                int(x) // 4: (1000 - int(y)) / 1000 * top
                for path in svg.iter("path")
                for x, y in re.findall(r"M(\d+) 1000V(\d+)h3V1000z", path.get("d"))
            }
            for i, n in enumerate(lineup.order.tolist()):
                assert drawn.get(i, 0.0) == pytest.approx(float(state.table[n, d]), abs=top / 900)


def test_domains_add_up_to_the_cluster(result, root):
    rows = table_of(root, "Load of the nodes alive")
    assert sum(int(row[1]) for row in rows) == int(result.levelness.alive.sum())
    assert sum(int(row[-1]) for row in rows) == int(result.comparison.node_out.sum())
    assert sum(int(row[-2]) for row in rows) == int(result.comparison.node_in.sum())
    led = [sum(int(row[-3].split(" → ")[k].replace(",", "")) for row in rows) for k in (0, 1)]
    assert led == [int(result.levelness_before.leaders.sum()), int(result.levelness.leaders.sum())]
    zones = result.cluster.topology.domain[0]
    alive = result.levelness.alive
    for row in rows:
        here = alive & (zones == int(row[0]))
        share = result.levelness.loads[here].sum(0) / result.cluster.nodes.capacity[here].sum(0)
        for d in range(3):
            assert row[2 + d].endswith(f"→ {100 * share[d]:.1f}%")


def test_bounds_are_those_of_the_result(result, root):
    rows = table_of(root, "No placement that keeps")
    expected = [[one.name, *one.figures, in_words(one.reason)] for one in result.proven]
    assert rows == expected
    assert len(rows) >= 4


def test_moves_between_domains_add_up(result, root):
    rows = table_of(root, "Moves from the zone")
    flows = flows_between(result.cluster, result.cluster.placement, result.placement)
    assert [row[0] for row in rows] == [*flows.sources, "all"]
    counts = np.array([[int(cell) for cell in row[1:]] for row in rows])
    assert np.array_equal(counts[:-1, :-1], flows.count)
    assert counts[-1, -1] == result.comparison.moves
    assert np.array_equal(counts[:-1, -1], flows.count.sum(1))
    amounts = {row[0]: row[1] for row in table_of(root, "Counts of replicas")}
    assert amounts["moves"] == f"{result.comparison.moves:,}"
    assert amounts["at least"] == f"{result.bounds.moves_level:,}"
    assert amounts["to repair"] == f"{result.bounds.moves_feasible:,}"
    assert amounts["forced"] == f"{result.comparison.forced:,}"


def test_rules_are_counted_as_the_audits_count(result, root):
    rows = table_of(root, "How often each rule")
    expected = {
        plain(kind): (result.audit_before.counts[kind], result.audit.counts[kind])
        for kind in KINDS
        if result.audit_before.counts[kind] or result.audit.counts[kind]
    }
    shown = {
        row[0]: tuple(int(n.replace("-", "0").replace(",", "")) for n in row[2:4]) for row in rows
    }
    assert shown == expected
    assert all(row[4] == "✓ repaired" for row in rows if row[3] == "-")


def test_rows_are_those_of_the_result(result, root):
    moves = table_of(root, "The largest first")
    key = lambda one: -one.bytes  # noqa: E731 (stable, as the page sorts)
    expected = sorted(result.moves, key=key)[:SHOWN_MOVES]
    assert [row[0] for row in moves] == [one.partition for one in expected]
    assert [row[3] for row in moves] == [one.target for one in expected]
    assert [row[2] for row in moves] == [one.source or "nowhere" for one in expected]
    changes = table_of(root, "In order of partition")
    assert [row[0] for row in changes] == [
        one.partition for one in result.leader_changes[:SHOWN_CHANGES]
    ]
    nodes = table_of(root, "The fullest first")
    assert sorted(row[0] for row in nodes) == sorted(result.cluster.nodes.names)
    for row in nodes:
        n = result.cluster.nodes.names.index(row[0])
        assert row[2] == ("up" if result.levelness.alive[n] else "dead")
        assert row[3].endswith(f"{100 * result.levelness.table[n, 0]:.1f}%")


def test_what_is_not_mended_is_told_with_the_reason():
    cluster = ek.Cluster.from_arrays(
        capacity=[[2.0], [2.0], [9.0]], load=[[1.5]] * 3, placement=[[-1]] * 3,
        alive=[True, True, False], partition_names=["a", "b", "c"],
    )  # fmt: skip
    result = ek.solve(cluster)
    root = read(result_page(result))
    assert "✗" in said(next(root.iter("h1")))
    [row] = table_of(root, "What keeps each off")
    assert row[0] == result.unplaced[0].partition
    for reason, count in result.unplaced[0].blocked.items():
        assert reason in row[2]
        assert str(count) in row[2]
    broken = table_of(root, "The largest amounts")
    assert [row[0] for row in broken] == [one.kind for one in result.violations]
    assert "~ in part" in said(root)


def test_names_do_no_harm():
    names = [f"{name}{i}" for i, name in enumerate(HOSTILE)]
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0, 9.0]] * len(names), load=[[1.0, 2.0]] * 22, placement=[[0, 1]] * 22,
        node_names=names, partition_names=[f"{name}{i}" for name in HOSTILE for i in range(2)],
        domains={"<b>zone": names}, dimensions=(HOSTILE[0], HOSTILE[1]), bytes=HOSTILE[1],
    )  # fmt: skip
    page = result_page(ek.solve(cluster, goals=ek.Goals(level=0.2)))
    read(page)
    page.encode()
    assert "<img" not in page
    assert "alert(1)</script>" not in page
    assert "\u202e" not in page
    assert not set(map(ord, page)) & set(UNSEEN)
    assert "שלום" in page


@given(clusters())
def test_any_result_has_a_page(cluster):
    result = ek.solve(cluster)
    page = result_page(result)
    root = read(page)
    assert cards(root)["moves"] == f"{result.comparison.moves:,}"
    assert page == result_page(result)
    assert len(page.encode()) < 120_000
    assert not re.search(r"\bnan\b|\binf\b", "".join(root.find("body/main").itertext()))


def test_a_cost_has_its_parts():
    cluster = expansion(200, 20, 5, seed=3)
    result = ek.solve(cluster, goals=ek.Cost(watermark=1.0, moves=1.0), work_limit=20_000)
    root = read(result_page(result))
    shown = {row[0]: row[1] for row in table_of(root, "What the placement costs")}
    assert shown["watermark"] == f"{result.cost.watermark:,.6g}"
    assert shown["moves"] == f"{result.cost.moves:,.6g}"


def test_a_page_repeats_byte_for_byte():
    pages = [
        result_page(ek.solve(expansion(300, 20, 4, seed=5), goals=ek.Goals(level=0.1), seed=1))
        for _ in range(2)
    ]
    assert pages[0] == pages[1]


def test_a_large_page_says_what_it_leaves_out():
    result = ek.solve(expansion(6_000, 1_200, 8, seed=2), goals=ek.Goals(level=0.2))
    page = result_page(result)
    root = read(page)
    assert len(page.encode()) < 350 * 1024
    moves, nodes = result.comparison.moves, len(result.cluster.nodes)
    assert moves > SHOWN_MOVES
    assert f"{moves - SHOWN_MOVES:,} more moves are left out" in said(root)
    assert f"{nodes - SHOWN_NODES:,} more nodes are left out" in said(root)
    lineup = Lineup.of(result.cluster)
    assert lineup.shared
    assert len(lineup.bar) <= MOST_BARS + len(lineup.names)
    assert sorted(lineup.order.tolist()) == list(range(nodes))


def test_it_is_a_page_for_everybody(root):
    body = root.find("body")
    assert [body.find(name) is not None for name in ("header", "nav", "main", "footer")] == [
        True
    ] * 4
    assert root.get("lang") == "en"
    assert len(list(root.iter("h1"))) == 1
    levels = [int(one.tag[1]) for one in root.iter() if re.fullmatch(r"h[1-6]", one.tag)]
    assert all(b <= a + 1 for a, b in pairwise(levels))
    for svg in root.iter("svg"):
        told = svg.get("role") == "img" and svg.find("title").text and svg.find("desc").text
        assert told or svg.get("aria-hidden") == "true"
    for box in root.iter("div"):
        if box.get("class") == "scroll":
            assert box.get("tabindex") == "0"
            assert box.get("aria-label")
    metas = {
        one.get("name") or one.get("http-equiv"): one.get("content") for one in root.iter("meta")
    }
    assert "width=device-width" in metas["viewport"]
    assert metas["Content-Security-Policy"].startswith("default-src 'none'")
    style = next(root.iter("style")).text
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style
    assert not re.search(r"(?<![-\w])width: *\d+(px|rem)", style)


@pytest.mark.parametrize(
    ("most", "top"), [(0.0, 0.01), (0.04, 0.05), (0.7, 1.0), (1.0, 1.0), (1.2, 1.5), (9.0, 5.0)]
)
def test_axes_of_shares_end_above_what_they_show(most, top):
    axis = axis_of_shares(most)
    assert axis.top == axis.ticks[-1] == top


@pytest.mark.parametrize("most", [0, 1, 2, 3, 7, 10, 11, 95, 101, 123_456])
def test_axes_of_counts_end_above_what_they_show(most):
    axis = axis_of_counts(most)
    assert most <= axis.top <= max(1, 2 * most)
    assert all(tick == int(tick) for tick in axis.ticks)


def test_a_page_is_written_as_a_whole(result, tmp_path):
    path = tmp_path / "out.html"
    path.write_text("old")
    assert result.report(path) == path
    assert path.read_bytes() == result_page(result).encode()
    assert [one.name for one in tmp_path.iterdir()] == ["out.html"]
    with pytest.raises(ek.InvalidInput, match="must end in one of"):
        result.report(tmp_path / "out.pdf")
    with pytest.raises(OSError, match="no"):
        result.report(tmp_path / "no" / "out.html")
