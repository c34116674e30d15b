"""What notebooks show: well-formed, escaped, small, from nowhere else, and true."""

import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given

import evenkeel as ek
from evenkeel.model.runtime.shown import Shown
from evenkeel.simulate.generators import expansion
from evenkeel.view.results import in_words
from tests.support.clusters import clusters

ODD = "<script>alert('1')</script>&\"x\""


class Reader(HTMLParser):
    """Reads markup, and insists that every element is closed in its turn."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text, self.attributes = [], set(), [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(markup):
    """Return what a person reads, after looking for what should not be there."""
    reader = Reader()
    reader.feed(markup)
    reader.close()
    assert not reader.open
    assert reader.seen <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "span"}
    assert {name for name, _ in reader.attributes} <= {"style"}
    for _, style in reader.attributes:
        # no colour but that of the text around: light pages and dark ones both do
        assert "url" not in style
        assert not re.search(r"#[0-9a-f]{3}|rgb|(?<!-)color:", style)
        assert "background" not in style or "background:none" in style
    return " ".join(" ".join(reader.text).split())


@given(clusters())
def test_any_cluster_its_placement_and_its_result_can_be_shown(cluster):
    result = ek.solve(cluster)
    for shown in (cluster, cluster.placement, result):
        markup = shown._repr_html_()
        read(markup)
        assert len(markup) < 60_000


@pytest.fixture(scope="module")
def result():
    """A cluster that was just expanded, solved."""
    return ek.solve(expansion(500, 30, 5, seed=3), goals=ek.Goals(level=0.1))


def test_a_cluster_says_what_it_is(result):
    text = read(result.cluster._repr_html_())
    for said in ("30 nodes (1 dead)", "500 partitions", "1,500 replicas wanted", "zone (5)",
                 "spread={'zone': 1}"):  # fmt: skip
        assert said in text
    over = int((result.levelness_before.table[result.levelness_before.alive, 0] > 1.0).sum())
    cells = re.search(r"cpu ([\d,]+) ([\d,]+) ([\d.]+)% ([\d.]+)% (\d+) ", text).groups()
    assert int(cells[4]) == over
    assert float(cells[3]) == round(100.0 * result.levelness_before.most[0], 1)
    load, room = (float(cell.replace(",", "")) for cell in cells[:2])
    assert float(cells[2]) == pytest.approx(100.0 * load / room, abs=0.1)


def test_a_placement_shows_its_first_rows_with_their_leaders(result):
    placement = result.placement
    markup = placement._repr_html_()
    for p in range(6):
        row = [str(n) for n in placement.nodes[p].tolist()]
        row[placement.leader[p]] = f"<strong>{row[placement.leader[p]]}</strong>"
        assert " · ".join(row) in markup
    assert "and 494 more partitions" in read(markup)


def test_a_result_says_what_came_of_it(result):
    text = read(result._repr_html_())
    assert text.startswith(f"Evenkeel · balance · ✓ {result.status}")
    compared = result.comparison
    assert f"moves {compared.moves:,} " in text and f"forced {compared.forced:,} " in text
    for one in result.proven:
        assert " ".join([one.name, *one.figures, in_words(one.reason)]) in text
    for d, name in enumerate(result.cluster.dimensions):
        before, after = result.levelness_before.ratio[d], result.levelness.ratio[d]
        assert f"{name} {before:.4f} → {after:.4f} {result.bounds.ratio[d]:.4f}" in text
    assert f"✓ on dead {result.audit_before.counts['on_dead']:,} - " in text
    assert "unplaced" not in text


def test_what_could_not_be_done_is_said():
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0]] * 2, load=[[1.0]], replicas=2, domains={"zone": ["a", "a"]},
        spread={"zone": 1},
    )  # fmt: skip
    text = read(ek.solve(cluster)._repr_html_())
    assert text.startswith("Evenkeel · balance · ✗ partial")
    assert "✗ unassigned 2 1 " in text
    assert "unplaced (1)" in text


def test_names_are_text_and_nothing_else():
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0]] * 2, load=[[1.0]], placement=[[0]], dimensions=(ODD,),
        domains={ODD: ["a", "b"]}, spread={ODD: 1}, node_names=[ODD, "n"],
    )  # fmt: skip
    for shown in (cluster, cluster.placement, ek.solve(cluster)):
        assert "<script" not in shown._repr_html_()
    assert ODD in read(cluster._repr_html_())


def test_long_lists_are_counted():
    count = 30
    cluster = ek.Cluster.from_arrays(
        capacity=np.ones((2, count)), load=np.full((1, count), 0.1), placement=[[0]]
    )
    assert f"… and {count - 12} more dimensions" in read(cluster._repr_html_())


def test_only_those_are_shown_of_whom_somebody_said_how():
    assert Shown()._repr_html_() is None


def test_it_works_without_the_packages_that_draw():
    code = (
        "import sys; sys.modules['matplotlib'] = sys.modules['rich'] = None\n"
        "import evenkeel as ek\n"
        "c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]], placement=[[0]])\n"
        "print(all(len(x._repr_html_()) > 99 for x in (c, c.placement, ek.solve(c))))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]


def test_nothing_turns_the_page_around_or_pushes_it_apart():
    turned = "pay\u202eroll\u2066\x07"
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0] * 2] * 2, load=[[1.0] * 2], placement=[[0]], dimensions=("y" * 300, "x"),
        domains={turned: ["a", "b"]}, spread={turned: 1},
    )  # fmt: skip
    for shown in (cluster, ek.solve(cluster)):
        markup = shown._repr_html_()
        assert not {"\u202e", "\u2066", "\x07"} & {*markup}
        # lines wrap anywhere, cells do not
        assert "y" * 60 not in re.sub(r'<div style="opacity[^>]*>[^<]*</div>', "", markup)
    assert "pay\ufffdroll\ufffd\ufffd (2)" in read(cluster._repr_html_())


def test_amounts_that_nobody_counts_have_prefixes():
    cluster = ek.Cluster.from_arrays(
        capacity=[[2e13, 5e7, np.inf, 1e25]], load=[[17_779_258_168_839.0, 9e6, 1e-3, 1e24]],
        placement=[[0]],
    )  # fmt: skip
    text = read(cluster._repr_html_())
    for said in ("d0 17.78 T 20 T", "d1 9,000,000 50 M", "d2 0.001 ∞", "d3 1e+24 1e+25"):
        assert said in text


def test_one_is_not_counted_as_many():
    cluster = ek.Cluster.from_arrays(capacity=[[4.0]], load=[[1.0]], placement=[[-1]])
    text = read(cluster._repr_html_()) + read(cluster.placement._repr_html_())
    assert "1 replica wanted, 0 placed" in text
    assert "1 partition, 1 slot each · 0 replicas placed, 1 slot empty" in text


class TestWhatIsNotPlacedProvesNothing:
    """Bounds are of placements that place every replica and break no hard rule."""

    def solved(self, **given):
        return ek.solve(
            ek.Cluster.from_arrays(
                capacity=[[1.0], [9.0]], load=[[1.0]] * 4, placement=[[-1]] * 4, **given
            )
        )

    @pytest.mark.parametrize("alive", [[False, False], [True, False]])
    def test_nothing_is_called_proven(self, alive):
        result = self.solved(alive=alive)
        assert not result.success
        assert result.proven == ()
        assert result.metrics["proven"] == {}
        assert result.gap.level == result.gap.leaders == np.inf
        assert result.gap.cost is None
        assert f"max/mean of d0 {result.levelness.ratio[0]:.4f}, was" in str(result)
        for said in (str(result), read(result._repr_html_())):
            assert "gap" not in said

    def test_what_is_placed_has_its_gap(self):
        result = self.solved()
        assert result.success
        assert {one.name for one in result.proven} >= {"moves", "max/mean of d0", "leaders"}
        assert np.isfinite(result.gap.level)
        assert "gap" in str(result)


def test_a_sweep_says_what_hurts_and_a_frontier_what_is_had_for_what():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 12, load=[[1.0]] * 6, placement=[[0], [1]] * 3, bytes="d0",
        node_names=[f"{ODD}{n}" for n in range(12)],
    )  # fmt: skip
    told = read(ek.sweep(cluster, "node")._repr_html_())
    assert "12 scenarios: 10 fit with nothing lost, 2 with partitions lost" in told
    assert "… and 2 more scenarios" in told
    curve = ek.frontier(cluster, points=2)
    told = read(curve._repr_html_())
    assert f"{len(curve.results)} plans" in told
    assert "d0 moved" in told


def test_what_is_wide_scrolls_and_tiers_are_called_so() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 2, load=[[1.0]], placement=[[0]], domains={"zone": ["a", "b"]}
    )
    shown = cluster._repr_html_()
    assert "tiers: zone" in shown
    assert shown.count("<table") == shown.count("overflow-x:auto") > 0
