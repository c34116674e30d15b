"""Levelness: utilisation per dimension, and leaders against their share."""

import numpy as np
import pytest
from hypothesis import given

import evenkeel as ek
from evenkeel.measure.levelness import levelness
from evenkeel.measure.loads import (
    leader_counts,
    node_loads,
    replica_counts,
    utilisation,
    wanted_leaders,
    wanted_load,
)
from evenkeel.model.cluster import Cluster
from evenkeel.model.intake.stranded import with_stranded
from tests.naive.measure import audit as naive
from tests.support.clusters import clusters
from tests.support.instances import as_cluster, golden

REFERENCE = {
    "small": {
        "fair": [0.6712316629684418, 0.6658415369352869, 0.6617871202619844],
        "most": [1.0451722756410255, 0.9835069444444444, 1.071105072463768],
        "ratio": [1.557096205829856, 1.4770886012478242, 1.6185039564380541],
        "deviation": [0.272218209446591, 0.27425929835445434, 0.27437720809212707],
        "least": [0.0, 0.0, 0.0],
    },
    "medium": {
        "fair": [0.6742159510010537, 0.6749445438978829, 0.6736922395910051],
        "most": [1.213798076923077, 1.1363636363636365, 1.1515456989247312],
        "ratio": [1.8003105312487333, 1.6836400066307742, 1.7093052750968727],
        "deviation": [0.27052602633710676, 0.2644231904130607, 0.26670553909772504],
        "least": [0.0, 0.0, 0.0],
    },
}
"""What the reference scorer says of the placements that come in."""


@pytest.mark.parametrize("name", REFERENCE)
def test_figures_are_those_of_the_reference_scorer(name):
    cluster = as_cluster(golden(name))
    found = levelness(cluster, cluster.placement)
    for figure, expected in REFERENCE[name].items():
        assert getattr(found, figure) == pytest.approx(expected, rel=1e-12), figure


@pytest.mark.small
@given(clusters())
def test_loads_and_counts_are_what_adding_up_gives(cluster):
    placement = cluster.placement
    rows = naive.rows_of(placement)
    load = node_loads(cluster, placement)
    expected = naive.loads_of(cluster, placement, rows)
    for n in range(len(cluster.nodes)):
        for d in range(len(cluster.dimensions)):
            assert load[n, d] == pytest.approx(expected[n, d], rel=1e-12)
    standing = [n for row in rows for _, n, _ in row]
    assert replica_counts(cluster, placement).tolist() == [
        standing.count(n) for n in range(len(cluster.nodes))
    ]
    led = [n for p, row in enumerate(rows) for s, n, _ in row if s == placement.leader[p]]
    assert leader_counts(cluster, placement).tolist() == [
        led.count(n) for n in range(len(cluster.nodes))
    ]


@pytest.mark.small
@given(clusters())
def test_any_cluster_has_a_levelness(cluster):
    found = levelness(cluster, cluster.placement)
    assert not np.isnan(found.table).any()
    assert (found.most >= found.least).all()
    assert (found.ratio >= 0.0).all()
    assert found.leader_ratio >= 0.0


def test_nothing_on_nothing_is_empty_and_something_on_nothing_is_infinitely_full():
    loads = np.array([0.0, 2.0, 2.0, 2.0])
    capacity = np.array([0.0, 0.0, np.inf, 4.0])
    assert utilisation(loads, capacity).tolist() == [0.0, np.inf, 0.0, 0.5]


def test_dead_nodes_are_left_out_and_cordoned_ones_add_no_fair_capacity():
    cluster = Cluster.from_arrays(
        capacity=[[10.0]] * 4, load=[[1.0]] * 8, accepts=[True, True, False, False],
        alive=[True, True, True, False], placement=[[0], [0], [0], [1], [1], [2], [3], [3]],
    )  # fmt: skip
    found = levelness(cluster, cluster.placement)
    assert found.fair.tolist() == [6 / 20]
    assert found.alive.tolist() == [True, True, True, False]
    assert (found.most[0], found.least[0]) == (0.3, 0.1)
    assert found.table[:, 0].tolist() == [0.3, 0.2, 0.1, 0.2]


def test_leaders_are_held_against_lead_weight():
    cluster = Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 4, lead_weight=[3.0, 1.0, 0.0],
        placement=[[0, 2], [0, 2], [1, 2], [1, 2]],
    )  # fmt: skip
    found = levelness(cluster, cluster.placement)
    assert found.leaders.tolist() == [2, 2, 0]
    assert found.leader_share.tolist() == [3.0, 1.0, 0.0]
    assert found.leader_ratio == 2.0


def test_partitions_that_stay_are_counted_as_they_are():
    one = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 3, load=[[1.0]] * 4, leader_load=[[2.0]] * 4,
        placement=[[0, 1]] * 3 + [[2, 0]], leader=[0] * 4, alive=[True, True, False],
    )  # fmt: skip
    assert (wanted_load(one).tolist(), wanted_leaders(one)) == ([12.0], 4)
    stays = with_stranded(one, np.arange(4) == 3)  # keeps a replica on a live node, and no leader
    assert (wanted_load(stays).tolist(), wanted_leaders(stays)) == ([10.0], 3)
    # goals count what can be placed: 10 and 3 on two nodes, not 12 and 4
    goals = ek.Goals(level=0.0, leaders=0.0)
    proven = ek.solve(stays, goals=goals).bounds
    assert proven.fair.tolist() == [0.5]
    assert proven.leader_target.tolist()[:2] == [2.0, 2.0]
