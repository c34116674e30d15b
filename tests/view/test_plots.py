"""Plots: what they show is what is so, they keep to their axes, and they need no colour."""

import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib import pyplot as plt
from matplotlib import rcParams
from matplotlib.colors import to_rgb

import evenkeel as ek
from evenkeel import simulate
from evenkeel.measure.levelness import levelness
from evenkeel.methods.shared.stopping import Progress
from evenkeel.model.errors import InvalidInput
from evenkeel.simulate.generators import expansion
from evenkeel.view import plots
from evenkeel.view.plots.canvas import STYLES
from evenkeel.view.plots.moves import DEAD, NOWHERE, OTHERS
from evenkeel.view.plots.nodes import MOST_BARS
from tests.support.clusters import clusters


@cache
def a_history():
    """A node dies; whoever asks twice is shown the same one."""
    dies = simulate.At(60.0, ek.Changes(down="n1"), dead_after=60.0)
    return simulate.play(expansion(200, 15, 5, seed=3), [dies], until=600.0)


TOLD = [
    Progress("repair", 0, 0.0, 3, 2.0),
    Progress("level", 50, 0.1, 5, 0.5),
    Progress("walk", 90, 0.2, 6, 0.01),
    Progress("level", 99, 0.2, 7, 0.0),
]


@pytest.fixture(scope="module")
def many():
    """A solved cluster with more nodes than bars."""
    return ek.solve(expansion(500, 60, 6, seed=3), goals=ek.Goals(level=0.1))


@pytest.fixture(scope="module")
def few():
    """A solved cluster of which every node has its bar."""
    return ek.solve(expansion(200, 15, 5, seed=3), goals=ek.Goals(level=0.1))


@pytest.fixture(scope="module")
def found(few):
    """A frontier."""
    return ek.frontier(few.cluster, points=5)


def every_plot(result, found):
    """All plots, each as a function of the axes to draw on."""
    seconds = np.arange(5) * 1000.0
    table = np.arange(20.0).reshape(5, 4)
    events = [(1500.0, "n1 down")]
    return {
        "utilisation": lambda ax: plots.utilisation(result, 0, ax),
        "leaders": lambda ax: plots.leaders(result, ax),
        "heat_map": lambda ax: plots.heat_map(result.cluster, result.levelness, ax=ax),
        "flows": lambda ax: plots.flows(result, ax=ax),
        "gantt": lambda ax: plots.gantt(result.plan(throttle=ek.Throttle(node_in=2)), ax=ax),
        "trace": lambda ax: plots.trace(TOLD, ax=ax),
        "trace of moves": lambda ax: plots.trace(TOLD, "moves", ax=ax),
        "evenness": lambda ax: plots.evenness(seconds, table, events=events, ax=ax),
        "compared": lambda ax: plots.compared(
            seconds, {"a": table[:, 0], "b": table[:, 1]}, what="load", events=events, ax=ax
        ),
        "course": lambda ax: plots.course({"a": a_history()}, "level_cpu", ax=ax),
        "frontier": lambda ax: plots.frontier(found, ax),
        "ranges": lambda ax: plots.ranges({"a": (1.0, 2.0, 3.0)}, "replicas", ax),
        "bars": lambda ax: plots.bars(["x", "y"], {"a": [1, 2], "b": [2, 1]}, "load", ax=ax),
    }


NAMES = list(every_plot(None, None))


class TestEveryPlot:
    @pytest.mark.parametrize("name", NAMES)
    def test_it_draws_where_it_is_told_and_nowhere_else(self, name, few, found, tmp_path):
        before, open_figures = dict(rcParams), plt.get_fignums()
        draw = every_plot(few, found)[name]
        figure, axes = plt.subplots(1, 2, layout="constrained")
        assert draw(axes[0]) is axes[0]
        assert not axes[1].has_data()
        alone = draw(None)
        assert alone.figure not in (figure, None)
        figure.savefig(tmp_path / "plot.png")
        alone.figure.draw_without_rendering()
        plt.close(figure)
        assert plt.get_fignums() == open_figures
        assert dict(rcParams) == before

    @pytest.mark.parametrize("name", [name for name in NAMES if name != "flows"])
    def test_its_axes_say_what_they_are(self, name, few, found):
        drawn = every_plot(few, found)[name](None)
        assert drawn.get_ylabel() or name == "ranges"
        assert drawn.get_xlabel() or name == "bars"

    def test_a_result_in_which_nothing_is_and_nothing_moves(self, tmp_path):
        cluster = ek.Cluster.from_arrays(
            capacity=[[0.0, np.inf]] * 2, load=[[0.0, 0.0]], placement=[[-1]], alive=[False] * 2
        )
        result = ek.solve(cluster)
        for draw in every_plot(result, ek.frontier(cluster, 2)).values():
            draw(None).figure.savefig(tmp_path / "plot.png")

    @pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
    @settings(max_examples=8)
    @given(clusters())
    def test_any_result_can_be_drawn(self, cluster):
        result = ek.solve(cluster)
        for d in range(min(2, len(cluster.dimensions))):
            plots.utilisation(result, d)
            plots.heat_map(cluster, result.levelness, d)
        for draw in (plots.leaders, plots.flows):
            draw(result).figure.draw_without_rendering()

    def test_a_dollar_in_a_name_is_a_dollar(self):
        odd = "$x_{$"
        cluster = ek.Cluster.from_arrays(
            capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4, dimensions=(odd,),
            node_names=[odd, "n"], domains={odd: [odd, "b"]},
        )  # fmt: skip
        result = ek.solve(cluster)
        series = {odd: [1.0, 2.0]}
        for drawn in (
            plots.utilisation(result),
            plots.heat_map(cluster, result.levelness),
            plots.flows(result),
            plots.compared([0.0, 1.0], series, what=odd, events=[(0.5, odd)]),
            plots.evenness([0.0, 1.0], [[1.0], [2.0]], what=odd, events=[(0.5, odd)]),
            plots.bars([odd, "b"], series, odd),
            plots.ranges({odd: (1.0, 2.0, 3.0)}, odd),
        ):
            drawn.figure.draw_without_rendering()

    def test_loading_the_plots_does_not_load_matplotlib(self):
        code = "import sys, evenkeel.view.plots; print('matplotlib' in sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == ["False"]


class TestPalette:
    @pytest.mark.parametrize("what", ["colour", "line", "marker", "hatch"])
    def test_every_series_differs_in_everything(self, what):
        assert len({getattr(one, what) for one in STYLES}) == len(STYLES)

    def test_neighbours_differ_in_brightness(self):
        bright = [np.dot(to_rgb(one.colour), [0.299, 0.587, 0.114]) for one in STYLES]
        assert np.abs(np.diff(bright[:5])).min() > 0.1

    def test_bars_and_lines_differ_without_colour(self):
        series = {str(n): [1.0, 2.0] for n in range(len(STYLES))}
        drawn = plots.bars(["x", "y"], series, "load")
        assert len({bar.get_hatch() for bar in drawn.patches}) == len(STYLES)
        drawn = plots.compared([0.0, 1.0], series, what="load")
        looks = {(one.get_marker(), str(one.get_linestyle())) for one in drawn.get_lines()}
        assert len(looks) == len(STYLES)


class TestNodes:
    def test_many_nodes_are_sorted_curves(self, many):
        drawn = plots.utilisation(many, "disk")
        before, after, floor = drawn.get_lines()[:3]
        alive = many.levelness.alive
        assert alive.sum() > MOST_BARS
        for line, level in ((before, many.levelness_before), (after, many.levelness)):
            np.testing.assert_array_equal(
                line.get_ydata(), np.sort(100.0 * level.table[alive, 1])[::-1]
            )
        assert before.get_linestyle() != after.get_linestyle()
        assert floor.get_ydata()[0] == 100.0 * many.bounds.level[1]
        assert "dead, not shown" in drawn.get_xlabel()
        assert drawn.get_ylim()[1] > 100.0 * many.levelness_before.most[1]

    def test_few_nodes_are_bars_with_names(self, few):
        drawn = plots.utilisation(few, 2)
        alive = few.levelness.alive
        high = [bar.get_height() for bar in drawn.patches]
        expected = [
            100.0 * level.table[alive, 2] for level in (few.levelness_before, few.levelness)
        ]
        np.testing.assert_array_equal(high, np.concatenate(expected))
        names = [few.cluster.nodes.names[n] for n in np.flatnonzero(alive)]
        assert [label.get_text() for label in drawn.get_xticklabels()] == names

    def test_leaders(self, few):
        drawn = plots.leaders(few)
        high = [bar.get_height() for bar in drawn.patches]
        count = int(few.levelness.alive.sum())
        assert high[count:] == few.levelness.leaders[few.levelness.alive].tolist()
        assert drawn.get_lines()[0].get_ydata()[0] == few.bounds.leaders

    @pytest.mark.parametrize("dimension", ["memory", 3, -1])
    def test_a_dimension_that_is_none(self, few, dimension):
        with pytest.raises(InvalidInput, match="unknown dimension"):
            plots.utilisation(few, dimension)


class TestHeatMap:
    def test_it_shows_every_node_in_the_row_of_its_domain(self, few):
        cluster, level = few.cluster, few.levelness_before
        drawn = plots.heat_map(cluster, level, "net")
        shown = drawn.images[0].get_array().filled(np.nan)
        assert shown.shape == (5, 3)
        for zone in range(5):
            here = np.flatnonzero(cluster.topology.domain[0] == zone)
            expected = np.where(level.alive[here], 100.0 * level.table[here, 2], np.nan)
            np.testing.assert_array_equal(shown[zone], expected)
        assert len(drawn.get_lines()[0].get_xdata()) == int((~level.alive).sum()) > 0
        over = int((level.table[level.alive, 2] > 1.0).sum())
        assert over > 0
        assert len(drawn.patches) == over
        assert f"above capacity: {over}" in drawn.get_xlabel()
        assert drawn.images[0].get_clim() == (0.0, 100.0 * level.most[2])

    def test_two_pictures_may_share_a_scale(self, few):
        drawn = plots.heat_map(few.cluster, few.levelness, top=150.0)
        assert drawn.images[0].get_clim() == (0.0, 150.0)

    def test_nodes_without_a_domain_have_a_row(self):
        cluster = ek.Cluster.from_arrays(
            capacity=[[4.0]] * 3, load=[[1.0]] * 3, placement=[[0], [1], [2]],
            domains={"zone": ["a", None, "a"]},
        )  # fmt: skip
        drawn = plots.heat_map(cluster, levelness(cluster, cluster.placement))
        assert [label.get_text() for label in drawn.get_yticklabels()] == ["a", "in none"]
        with pytest.raises(InvalidInput, match="unknown tier"):
            plots.heat_map(cluster, levelness(cluster, cluster.placement), 0, "rack")


class TestFlows:
    @given(clusters())
    def test_every_move_is_counted_once(self, cluster):
        result = ek.solve(cluster, goals=ek.Goals(level=0.1))
        found = plots.flows_between(cluster, cluster.placement, result.placement, "node")
        assert found.count.sum() == result.comparison.moves
        came = dict(zip(found.targets, found.count.sum(0).tolist(), strict=True))
        node_in = result.comparison.node_in
        names = cluster.nodes.names
        assert came == {names[int(n)]: int(node_in[n]) for n in np.flatnonzero(node_in)}
        for source, row in zip(found.sources, found.count, strict=True):
            if source not in (DEAD, NOWHERE):
                assert row.sum() <= result.comparison.node_out[names.index(source)]

    def test_where_moves_come_from(self):
        cluster = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 5, load=[[1.0]] * 4,
            placement=[[0, 1], [3, 1], [-1, 0], [0, 1]],
            alive=[True, True, True, False, True], domains={"zone": [*"aabbc"]},
        )  # fmt: skip
        after = np.array([2, 1, 4, 1, 4, 0, 1, 2], np.int32)
        placed = cluster.placement.replaced(after, cluster.placement.leader)
        found = plots.flows_between(cluster, cluster.placement, placed)
        moved = {
            (source, target): int(found.count[i, j])
            for i, source in enumerate(found.sources)
            for j, target in enumerate(found.targets)
            if found.count[i, j]
        }
        # 0 to 2; from dead 3 to 4; from nowhere to 4; and 0 to 2, while 1 only changed its slot
        assert moved == {("a", "b"): 2, (DEAD, "c"): 1, (NOWHERE, "c"): 1}

    def test_many_domains_are_drawn_as_few(self):
        cluster = expansion(600, 60, 6, seed=1, racks_per_zone=5)
        result = ek.solve(cluster, goals=ek.Goals(level=0.05))
        drawn = plots.flows(result, "rack")
        labels = [text.get_text() for text in drawn.texts]
        assert sum(label.startswith(f"{OTHERS} · ") for label in labels) == 2
        assert sum(label.startswith(f"{DEAD} · ") for label in labels) == 1
        counts = [int(label.rpartition(" · ")[2].replace(",", "")) for label in labels[:-2]]
        assert sum(counts) == 2 * result.comparison.moves
        assert drawn.get_title(loc="left").startswith(f"{result.comparison.moves:,} moves")


class TestSearch:
    def test_it_shows_what_was_told(self):
        drawn = plots.trace(TOLD)
        shown = {
            (x, y)
            for line in drawn.get_lines()
            if line.get_linestyle() == "None"
            for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
        }
        assert shown == {(one.work, one.cost) for one in TOLD}
        stages = [text.get_text() for text in drawn.get_legend().get_texts()]
        assert stages == ["repair", "level", "walk"]

    def test_nothing_was_told(self):
        assert plots.trace([]).get_xlabel() == "work (candidates looked at)"


class TestOverTime:
    def test_nodes_that_are_not_there_do_not_count(self):
        values = np.array([[1.0, 2.0, 99.0], [1.0, 3.0, 99.0], [5.0, 5.0, 99.0]])
        present = np.array([[True, True, False]] * 2 + [[False] * 3])
        drawn = plots.evenness([0.0, 60.0, 120.0], values, present=present)
        lines = {line.get_label(): line.get_ydata().tolist() for line in drawn.get_lines()}
        assert lines == {"fullest": [2.0, 3.0], "mean": [1.5, 2.0]}

    def test_shapes_that_do_not_fit_are_named_together(self):
        with pytest.raises(InvalidInput) as caught:
            plots.evenness([0.0], [[1.0], [2.0]], present=[[True]])
        assert [fault.path for fault in caught.value.faults] == ["values", "present"]
        with pytest.raises(InvalidInput, match="series"):
            plots.compared([0.0, 1.0], {"a": [1.0]}, what="load")

    def test_events_are_named_where_they_are_few(self):
        events = [(60.0 * i, f"e{i}") for i in range(3)]
        drawn = plots.compared([0.0, 180.0], {"a": [1.0, 1.0]}, what="load", events=events)
        assert [text.get_text() for text in drawn.texts] == ["1", "2", "3"]
        assert drawn.get_xlabel() == "time (minutes)\n1 e0 · 2 e1 · 3 e2"
        assert [float(line.get_xdata()[0]) for line in drawn.get_lines()[1:]] == [0.0, 1.0, 2.0]

    def test_many_events_are_marks_on_the_edge(self):
        events = [(float(i), f"e{i}") for i in range(40)]
        drawn = plots.compared([0.0, 180.0], {"a": [1.0, 1.0]}, what="load", events=events)
        assert not drawn.texts and drawn.get_xlabel() == "time (minutes)"
        _, marks = drawn.get_lines()
        assert len(marks.get_xdata()) == 40 and set(marks.get_ydata()) == {1.0}

    def test_no_line_passes_behind_the_numbers_of_events(self):
        events = [(30.0, "a"), (31.0, "b"), (90.0, "c")]
        drawn = plots.compared([0.0, 180.0], {"a": [0.0, 5.0]}, what="load", events=events)
        assert drawn.get_ylim()[1] > 5.5
        first, second, third = (text.xyann[1] for text in drawn.texts)
        assert second < first == third


class TestFrontier:
    def test_no_plan_is_out_of_reach_and_the_area_ends_at_the_bounds(self, found):
        drawn = plots.frontier(found)
        out_of_reach = drawn.collections[0].get_paths()[0]
        excess = 100.0 * (found.level - 1.0)
        for moves, above in zip(found.moves.tolist(), excess.tolist(), strict=True):
            assert not out_of_reach.contains_point((moves, above), radius=-1e-9)
        for one in found.results:
            asked = one.goals.level
            if (
                asked is not None
                and one.bounds.moves_level > found.results[0].bounds.moves_feasible
            ):
                below = 100.0 * asked * (1.0 - 1e-6)
                assert out_of_reach.contains_point((one.bounds.moves_level - 0.5, below))
        points = drawn.get_lines()[-1]
        np.testing.assert_array_equal(points.get_xdata(), found.moves)
        np.testing.assert_array_equal(points.get_ydata(), excess)


def test_bars_need_a_value_for_each_group():
    with pytest.raises(InvalidInput, match="needs 2 values"):
        plots.bars(["x", "y"], {"a": [1.0]}, "load")


class TestTitle:
    @pytest.mark.parametrize("methods", [1, 9])
    def test_it_stands_above_the_legend(self, methods):
        series = {f"method {m}": [1.0, m + 1.0] for m in range(methods)}
        drawn = plots.compared([0.0, 1.0], series, what="load", title="in $")
        assert drawn.get_title(loc="left") == r"in \$"
        drawn.figure.canvas.draw()
        title, legend = drawn._left_title, drawn.get_legend()
        assert title.get_window_extent().y0 >= legend.get_window_extent().y1 - 1.0

    def test_every_plot_takes_one(self, few, found):
        seconds, table = [0.0, 1.0], [[1.0, 2.0], [2.0, 1.0]]
        for drawn in (
            plots.utilisation(few, title="so"),
            plots.leaders(few, title="so"),
            plots.heat_map(few.cluster, few.levelness, title="so"),
            plots.flows(few, title="so"),
            plots.trace(TOLD, title="so"),
            plots.evenness(seconds, table, title="so"),
            plots.course(a_history(), "moves", title="so"),
            plots.frontier(found, title="so"),
            plots.ranges({"a": (1.0, 2.0, 3.0)}, "replicas", title="so"),
            plots.bars(["x"], {"a": [1]}, "load", title="so"),
        ):
            assert drawn.get_title(loc="left") == "so"
        assert not plots.leaders(few).get_title(loc="left")


class TestCourse:
    def test_it_is_a_column_with_what_happened(self):
        history = a_history()
        drawn = plots.course(history, "level_cpu")
        line = drawn.get_lines()[0]
        assert np.array_equal(line.get_ydata(), history.table()["level_cpu"])
        assert drawn.get_xlabel().endswith("1 n1 down · 2 n1 dead")

    def test_a_column_that_is_none_is_named(self):
        with pytest.raises(InvalidInput, match="level_cpu"):
            plots.course(a_history(), "evenness")


class TestNamesOfAnyKind:
    NAME = "cost in $\n and ^2 " + "so long a name " * 6

    def test_they_keep_to_a_line_and_leave_room_for_the_picture(self):
        cluster = ek.Cluster.from_arrays(
            capacity=[[8.0]] * 4, load=[[1.0]] * 6, placement=[[0]] * 6, dimensions=(self.NAME,),
            domains={"zone": [self.NAME, "b", "c", "d"]},
            node_names=[f"{self.NAME}{n}" for n in range(4)],
        )  # fmt: skip
        result = ek.solve(cluster)
        for ax in (
            plots.utilisation(result),
            plots.heat_map(cluster, result.levelness),
            plots.flows(result),
            plots.evenness([0.0, 60.0], [[1.0], [1.0]], events=[(9.0, self.NAME)]),
        ):
            ax.figure.draw_without_rendering()
            texts = [*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels(), ax.yaxis.label]
            assert all("\n" not in text.get_text() for text in texts)
            inside = ax.get_window_extent().width / ax.figure.bbox.width
            assert inside > 0.5


def test_many_rows_are_not_ruled_away():
    few, many = (
        ek.Cluster.from_arrays(capacity=np.ones((n, 1)), load=[[0.5]], placement=[[0]])
        for n in (5, 900)
    )
    ruled = [
        len(plots.heat_map(c, levelness(c, c.placement)).yaxis.get_minorticklocs())
        for c in (few, many)
    ]
    assert ruled == [6, 0]


def test_a_least_that_is_not_known_is_left_out():
    ax = plots.ranges({"a": (np.nan, 2.0, 5.0), "b": (1.0, 2.0, 3.0)}, "replicas")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["least", "mean", "most"]
    assert {text.get_text() for text in ax.texts} == {"1", "5", "3"}
    alone = plots.ranges({"a": (np.nan, 2.0, 5.0)}, "replicas")
    assert [text.get_text() for text in alone.get_legend().get_texts()] == ["mean", "most"]


def test_many_events_are_counted_in_the_legend():
    at = np.arange(50.0)
    ax = plots.compared(at, {"a": at}, what="x", events=[(float(t), "e") for t in range(30)])
    assert "30 events" in [text.get_text() for text in ax.get_legend().get_texts()]
