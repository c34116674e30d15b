"""The report: every figure in it is the result's, and it fits where it is read."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.measure.audit import audit
from evenkeel.measure.levelness import levelness
from evenkeel.simulate.generators import expansion
from evenkeel.view.results import (
    in_words,
    moves_table,
    report,
    report_state,
    result_html,
    result_page,
)
from evenkeel.view.terminal import EIGHTHS, HEIGHTS, MARK, NARROWEST, axis, bar, histogram


@pytest.fixture(scope="module")
def result():
    """A cluster that was just expanded, solved."""
    cluster = expansion(partitions=500, nodes=30, zones=5, seed=3)
    return ek.solve(cluster, goals=ek.Goals(level=0.1))


def state(cluster, **asked):
    """Report a cluster as it stands."""
    placement = cluster.placement
    return report_state(cluster, audit(cluster, placement), levelness(cluster, placement), **asked)


def row(text, label):
    """The words of the first line that starts with a label."""
    return next(line.split() for line in text.splitlines() if line.startswith(label))


class TestReport:
    def test_the_figures_are_those_of_the_result(self, result):
        text = report(result)
        lines = text.splitlines()
        at = next(i for i, line in enumerate(lines) if line.startswith("cpu"))
        before, after = lines[at].split(), lines[at + 1].split()
        assert before[1:3] == ["before", f"{result.levelness_before.ratio[0]:.4f}"]
        assert after[:2] == ["after", f"{result.levelness.ratio[0]:.4f}"]
        assert after[2] == f"{result.bounds.ratio[0]:.4f}"
        assert row(text, "moves")[1] == f"{result.comparison.moves:,}"
        assert row(text, "at least")[2] == f"{result.metrics['moves_at_least']:,}"
        assert row(text, "to repair")[2] == f"{result.bounds.moves_feasible:,}"
        assert row(text, "forced")[1] == f"{result.comparison.forced:,}"
        assert row(text, "leader changes")[2] == f"{result.comparison.leader_changes:,}"
        dead = result.audit_before.counts["on_dead"]
        assert row(text, "✓ on dead")[3:5] == [f"{dead:,}", "-"]
        assert "unplaced" not in text
        for stage in result.timings:
            assert any(line.strip().startswith(stage.rpartition(".")[2]) for line in lines)

    @pytest.mark.parametrize("width", [20, 80, 100, 160])
    def test_it_keeps_to_the_width(self, result, width):
        for text in (report(result, width=width), state(result.cluster, width=width)):
            assert max(map(len, text.splitlines())) <= max(width, NARROWEST)
            assert "…" not in text

    def test_styles_add_nothing_but_styles(self, result, monkeypatch):
        monkeypatch.delenv("NO_COLOR", raising=False)
        plain, styled = report(result), report(result, styled=True)
        assert "\x1b" not in plain
        assert "\x1b[" in styled
        bare = re.sub(r"\x1b\[[0-9;]*m", "", styled)
        assert [line.rstrip() for line in bare.splitlines()] == plain.splitlines()

    def test_what_is_unplaced_is_told_with_what_keeps_it_off(self):
        cluster = ek.Cluster.from_arrays(
            capacity=[[2.0], [9.0]], load=[[1.5]] * 12, placement=[[-1]] * 12,
            alive=[True, False], node_names=["[red]", "b"],
        )  # fmt: skip
        text = report(ek.solve(cluster))
        assert "✗ infeasible" in text
        assert not any(word in text for word in ("to repair", "to the goals", "if complete"))
        assert "unplaced (11)" in text
        assert "1 capacity d0" in text
        assert "1 not alive" in text
        assert "... and 3 more" in text

    def test_bounds_are_of_complete_placements_and_say_so_where_this_is_none(self, result):
        cluster = expansion(partitions=500, nodes=30, zones=5, seed=3)
        short = ek.solve(cluster, limits=ek.Limits(moves=1))
        assert "if complete" in report(short).splitlines()[4]
        assert row(report(short), "to the goals")[3] == f"{short.metrics['moves_at_least']:,}"
        assert "if complete" not in report(result)
        assert "if complete" in result_html(short) and "if complete" in result_page(short)
        assert "at least" in result_html(result)

    def test_every_bound_is_shown_with_its_gap_and_what_binds(self, result):
        text = report(result)
        proven = text[text.index("proven") :]
        for one in result.proven:
            line = " ".join(row(proven, one.name))
            assert line.endswith(f"{one.gap:.2%} {in_words(one.reason)}")
        assert [one.name for one in result.proven[:3]] == [
            "moves",
            "leader changes",
            "max/mean of cpu",
        ]

    def test_moves_are_not_praised_where_the_goals_were_not_reached(self):
        cluster = expansion(partitions=500, nodes=30, zones=5, seed=3)
        short = ek.solve(cluster, goals=ek.Goals(level=0.1), limits=ek.Limits(moves=100))
        assert not short.goals_reached
        least, term = short.bounds.moves_level, short.bounds.moves_term
        assert short.comparison.moves < least
        said = f"the goals were not reached: the goals take at least {least:,} by {term}"
        assert said in str(short)
        assert "moves" not in [one.name for one in short.proven]
        text = report(short)
        assert "of the replicas, the goals were not reached" in " ".join(text.split())
        assert "the fewest possible" not in text
        broken = ek.solve(cluster, goals=ek.Goals(level=0.1), limits=ek.Limits(moves=60))
        assert "rules are still broken: the goals take at least" in str(broken)
        assert "of the replicas, rules are still broken" in " ".join(report(broken).split())

    def test_a_cost_is_shown_with_its_bound(self):
        cluster = ek.Cluster.from_arrays(
            capacity=[[8.0], [8.0]], load=[[3.0]] * 4, placement=[[0], [0], [1], [1]],
            watermark=[[4.0], [4.0]],
        )  # fmt: skip
        text = report(ek.solve(cluster, goals=ek.Cost(watermark=10.0), work_limit=100))
        assert row(text, "cost")[:5] == ["cost", "40", "40", "0.00%", "load"]
        assert "goals" not in text

    def test_names_are_never_taken_for_styles(self):
        cluster = ek.Cluster.from_arrays(
            capacity=[[1.0], [9.0]], load=[[2.0]], placement=[[0]], dimensions=["[bold]"],
            node_names=["[red]a[/red]", "b"],
        )  # fmt: skip
        text = state(cluster)
        assert "node [red]a[/red] · dimension [bold]" in text
        assert "[bold] before" in " ".join(report(ek.solve(cluster)).split())

    def test_long_names_leave_room_for_the_figures(self):
        cluster = ek.Cluster.from_arrays(
            capacity=[[9.0]], load=[[2.0]], placement=[[0]], dimensions=["x" * 60]
        )
        assert row(state(cluster), "xxx")[1] == "1.0000"

    def test_nothing_at_all_is_reported_as_that(self):
        for nodes, partitions in ((0, 0), (1, 0), (0, 1)):
            cluster = ek.Cluster.from_arrays(
                capacity=np.ones((nodes, 1)), load=np.ones((partitions, 1)), replicas=0
            )
            assert "✓" in report(ek.solve(cluster))
            assert "no hard rule is broken" in state(cluster)
            assert f"{nodes} node" in state(cluster)

    def test_load_without_capacity_is_infinitely_full(self):
        cluster = ek.Cluster.from_arrays(
            capacity=[[0.0], [np.inf]], load=[[1.0]] * 2, placement=[[0], [1]]
        )
        assert "∞" in row(state(cluster), "d0")

    def test_the_worst_come_first(self):
        cluster = ek.Cluster.from_arrays(
            capacity=[[1.0], [2.0], [3.0]], load=[[4.0]] * 3, placement=[[0], [1], [2]]
        )
        text = state(cluster)
        worst = [line.split()[2] for line in text.splitlines() if line.startswith("capacity ")]
        assert worst == ["n0", "n1", "n2"]


class TestTables:
    def test_every_move_is_a_line(self, result):
        lines = moves_table(result).csv().splitlines()
        assert lines[0] == "kind,partition,slot,from,to,bytes"
        assert sum(line.startswith("move,") for line in lines) == len(result.moves)
        assert sum(line.startswith("leader,") for line in lines) == len(result.leader_changes)
        rows = len(result.moves) + len(result.leader_changes)
        assert moves_table(result).json().count('"partition"') == rows

    def test_no_moves_are_an_empty_table(self):
        cluster = ek.Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]], placement=[[0]])
        still = ek.solve(cluster)
        assert moves_table(still).csv() == "kind,partition,slot,from,to,bytes\n"
        assert moves_table(still).json().split() == ["[", "]"]


class TestBars:
    @given(st.floats(0, 1e9), st.floats(0, 1e9), st.integers(0, 60))
    def test_a_bar_is_as_long_as_its_value(self, value, full, width):
        drawn = bar(value, full, width)
        eighths = sum(EIGHTHS.index(sign) for sign in drawn)
        assert len(drawn) <= width
        if value > 0 and full > 0 and width:
            assert abs(eighths - 8 * width * min(value / full, 1.0)) <= 1
            assert eighths >= 1
        else:
            assert drawn == ""

    @given(st.lists(st.floats(0, 3)), st.floats(0.1, 2), st.integers(1, 50), st.floats(0, 2))
    def test_a_histogram_shows_every_class_that_is_not_empty(self, values, top, width, mark):
        drawn = histogram(values, top, width, mark)
        filled = {min(int(value / top * width), width - 1) for value in values}
        assert len(drawn) == width
        assert {i for i, sign in enumerate(drawn) if sign in HEIGHTS[1:]} == filled
        assert drawn.count(MARK) <= 1
        if values:
            assert HEIGHTS[-1] in drawn

    def test_a_mark_gives_way_to_what_is_drawn(self):
        assert histogram([1.0], 2.0, 4, mark=1.0) == "  █ "
        assert histogram([0.0], 2.0, 4, mark=1.0) == "█ │ "

    @given(st.floats(0.05, 20), st.integers(0, 60))
    def test_an_axis_fits(self, top, width):
        drawn = axis(top, width)
        assert len(drawn) <= width
        for figure in re.finditer(r"(\d+)%", drawn):
            assert figure.start() == int(int(figure[1]) / 100 / top * width)
