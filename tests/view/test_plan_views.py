"""A plan as text, as a table, in a notebook and as a Gantt chart."""

import csv
import io
import json

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

import evenkeel as ek
from evenkeel.view import plots
from evenkeel.view.plans import report_plan, steps_table
from evenkeel.view.plots.plans import MOST_ROWS
from tests.planning.test_plan import drawn, full, swapped


@pytest.fixture
def plan():
    """Two full nodes that trade all they have by way of a third."""
    cluster = full()
    return ek.plan(cluster, swapped(cluster))


def bars(ax):
    """The bars of a chart as start, finish and row."""
    found = []
    for one in ax.collections:
        if isinstance(one, PolyCollection):
            found += [(*p.vertices[:, 0].round(9)[[0, 2]], p.vertices[:, 1].mean())
                      for p in one.get_paths()]  # fmt: skip
    return found


def test_every_copy_has_its_bar_in_the_row_of_its_node(plan):
    ax = plots.gantt(plan)
    names = [one.get_text() for one in ax.get_yticklabels()]
    drawn_ones = sorted((a, b, names[round(row)]) for a, b, row in bars(ax))
    wanted = sorted((r.start, r.finish, r.target) for r in plan.rows() if r.kind == "copy")
    assert [(min(a, b), max(a, b), n) for a, b, n in drawn_ones] == wanted


def test_detours_are_told_without_colour_and_the_bound_is_drawn(plan):
    ax = plots.gantt(plan, title="the swap")
    labels = ax.get_legend_handles_labels()[1]
    assert labels[:2] == ["copy", "copy to a spare node"]
    assert labels[2].startswith("at least, by ")
    hatches = {one.get_label(): one.get_hatch() for one in ax.collections if one.get_hatch()}
    assert list(hatches) == ["copy to a spare node"]
    (line,) = ax.lines
    assert line.get_xdata()[0] == plan.bound.seconds
    assert ax.get_title(loc="left") == "the swap"


def test_many_nodes_are_counted():
    cluster = ek.Cluster.from_arrays(
        capacity=[[99.0]] * 60, load=[[1.0]] * 50, placement=[[0]] * 50, bytes="d0"
    )
    node = np.arange(1, 51, dtype=np.int32)
    target = cluster.placement.replaced(node, cluster.placement.leader)
    ax = plots.gantt(ek.plan(cluster, target, throttle=ek.Throttle(node_bandwidth=2.0)))
    assert len(ax.get_yticks()) == MOST_ROWS
    assert ax.get_ylabel() == f"to node (and {50 - MOST_ROWS} more)"
    assert ax.get_xlabel() == "time (s)"


def test_a_plan_without_steps_is_drawn_and_told():
    cluster = full()
    idle = ek.plan(cluster, cluster.placement)
    assert plots.gantt(idle).get_ylabel() == "to node"
    assert "Nothing is to be done." in report_plan(idle, idle.check())
    assert "Nothing is to be done." in idle._repr_html_()


def test_tables_have_every_step(plan):
    rows = [*csv.DictReader(io.StringIO(steps_table(plan).csv()))]
    assert [row["kind"] for row in rows] == [row.kind for row in plan.rows()]
    parsed = json.loads(steps_table(plan).json())
    # files count waves from 1, as those of a folder do
    counted = [row._replace(wave=row.wave + 1) for row in plan.rows()]
    assert [tuple(row.values()) for row in parsed] == [tuple(row) for row in counted]


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_every_plan_is_reported_in_a_page(seed):
    _, found = drawn(seed)
    text = report_plan(found, found.check(), width=100)
    assert max(map(len, text.splitlines())) <= 100
    assert ("blocked" in text) == bool(found.blocked)
    assert "\x1b[" not in text
    assert "Plan" in found._repr_html_()


def test_what_comes_closest_to_its_limit_is_first_and_a_loosened_one_is_told():
    cluster = ek.Cluster.from_arrays(
        capacity=[[3.0], [9.0], [9.0], [9.0]], load=[[1.0]] * 4, dimensions=["disk"],
        placement=[[0, 1, 2]] * 4, bytes="disk", min_active=1,
    )  # fmt: skip
    node = cluster.placement.node.copy()
    node[0] = 3
    plan = ek.plan(
        cluster, cluster.placement.replaced(node, cluster.placement.leader),
        throttle=ek.Throttle(node_bandwidth=1.0),
    )  # fmt: skip
    told = report_plan(plan, plan.check()).split("closest to its limit")[1]
    assert told.index("bytes_in") < told.index("min_active")
    assert "node n0, disk: over-full at an end, its capacity is 3" in told
