"""The experiments of the CRUSH-ed text, on small clusters."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

import evenkeel as ek
from bench.experiments import crush, tables
from bench.experiments.__main__ import main
from bench.experiments.crush import Layout
from bench.experiments.written import written

SMALL = Layout(zones=(3, 4, 4, 4, 4), groups=3, partitions=64)


def method(name="helix_crushed", options=None):
    """A method as the experiments take it."""
    goals = ek.Goals(level=None)
    return lambda cluster: ek.solve(cluster, name, options=options, goals=goals).placement


CRUSH = method("helix_crush")
CRUSHED = method()
MENDED = method(options=ek.options.Crushed(repaired=True))


def test_crushed_is_more_even_than_crush_and_mended_most_of_all():
    crushed, mended, plain = (
        crush.distribution(place, SMALL).rows[0] for place in (CRUSHED, MENDED, CRUSH)
    )
    assert mended.most - mended.least <= 1
    assert mended.std <= crushed.std < plain.std
    assert crushed.leaders_std < plain.leaders_std
    assert {row.total for row in (crushed, mended, plain)} == {3 * 64 * 3}


def test_nodes_down_moves_only_what_was_there():
    table = crush.nodes_down(MENDED, SMALL, count=2, draws=4)
    assert len(table.rows) == 4
    for row in table.rows:
        assert row.nodes == -2
        assert row.moved == row.forced > 0
        assert row.extra_changes == 0
    assert any(row.extra > 0 for row in crush.nodes_down(CRUSH, SMALL, 2, 4).rows)


@pytest.mark.parametrize("place", [CRUSH, CRUSHED, MENDED])
def test_disabled_and_enabled_again_recovers_exactly(place):
    whole = crush.recovery(place, SMALL, count=3).rows[-1]
    assert (whole.moved, whole.leader_changes) == (0, 0)


def test_bouncing_leaves_no_trace():
    changes, spreads = crush.bouncing(MENDED, SMALL, count=2, rounds=4)
    assert [row.extra for row in changes.rows] == [0] * 5
    before = crush.distribution(MENDED, SMALL).rows[0]
    assert spreads.rows[-1] == replace(before, what="all nodes up")
    assert spreads.rows[0].nodes == 17


def test_a_zone_down_and_half_of_it_back_moves_nothing_else():
    rows = crush.zone_down(MENDED, SMALL).rows
    assert len(rows) == 10
    assert {row.extra for row in rows} == {0}
    assert {row.extra_changes for row in rows} == {0}
    assert [row.nodes for row in rows[:4]] == [-3, 2, -4, 2]


def test_a_rolling_upgrade_moves_two_nodes_worth_at_most():
    worst = crush.rolling_upgrade(MENDED, SMALL, nodes=6).rows
    most = crush.distribution(MENDED, SMALL).rows[0].most
    assert worst[0].moved <= 2 * most
    assert worst[1].extra == 0


def test_extra_moves_do_not_grow_with_the_nodes_added():
    rows = crush.nodes_added(CRUSHED, SMALL, each=(1, 2, 3)).rows
    assert [row.nodes for row in rows] == [5, 10, 15]
    assert [row.forced for row in rows] == sorted(row.forced for row in rows)
    assert rows[-1].extra < 1.5 * rows[0].extra


def test_level_counts_make_disks_more_level():
    layout = Layout(zones=(4,) * 5, groups=8, partitions=64)
    plain = crush.unequal_sizes(CRUSH, layout, "crush").rows[0]
    even = crush.unequal_sizes(CRUSHED, layout, "crushed").rows[0]
    assert even.mean == pytest.approx(plain.mean)
    assert even.most < 0.95 * plain.most


def test_corner_cases_are_level():
    alone, flat = crush.corner_cases(MENDED, ["one group only", "no fault zones"]).rows
    assert alone.most - alone.least <= 1
    assert flat.most - flat.least <= 1
    with pytest.raises(KeyError):
        crush.corner_cases(MENDED, ["none such"])


def test_no_group_gives_a_node_more_than_one_surplus_replica():
    cluster = Layout(zones=(4,) * 5, groups=3, partitions=64).cluster()
    assert tables.most_surplus(cluster, CRUSHED(cluster)).max() <= 1
    assert tables.most_surplus(cluster, CRUSH(cluster)).max() > 1


def test_a_change_counts_what_the_event_forces():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 2, placement=[[0, 1], [2, 3]]
    )
    after = cluster.placement.replaced(np.array([3, 1, 1, 2], np.int32), np.array([0, 0], np.int16))
    row = tables.change_of("", cluster.placement, after, went=np.array([0]))
    assert (row.moved, row.forced, row.extra) == (2, 1, 1)
    assert (row.leader_changes, row.forced_changes, row.extra_changes) == (2, 1, 1)
    back = tables.change_of("", after, cluster.placement, came=np.array([0]))
    assert (back.forced, back.extra) == (1, 1)


def test_tables_are_frozen_and_written_in_columns():
    table = crush.nodes_down(CRUSHED, SMALL, count=1, draws=1)
    with pytest.raises(FrozenInstanceError):
        table.rows[0].moved = 0
    title, head, row = written(table).splitlines()
    assert title == "1 random nodes down"
    assert head.split()[:3] == ["nodes", "moved", "moved"]
    assert len(head) == len(row)
    assert written(crush.distribution(CRUSHED, SMALL)).count("\n") == 2
    assert "max/mean" in written(crush.unequal_sizes(CRUSHED, SMALL, "crushed"))
    assert written(tables.Table("nothing", ())) == "nothing"


@pytest.mark.parametrize("wrong", [{"zones": ()}, {"groups": 0}, {"zones": (3, 0)}])
def test_a_layout_that_cannot_be_is_refused(wrong):
    with pytest.raises(ek.InvalidInput, match=next(iter(wrong))):
        Layout(**wrong)


def test_the_command_runs_them(capsys):
    size = ["--zones", "3,3,3,3", "--groups", "2", "--partitions", "16", "--repaired"]
    main(["distribution", "recovery", *size])
    told = capsys.readouterr().out
    assert told.startswith("Distribution\n")
    assert "before to after" in told
    with pytest.raises(SystemExit):
        main(["nonsense", *size])
    assert "no experiment: nonsense" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["distribution", "--zones", "a,b"])
