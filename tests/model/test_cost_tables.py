"""Cost tables: what they mean, what they refuse, and that every reader of them agrees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.measure.costs import cost_of
from evenkeel.model.cost_tables import GroupTable, NodeTable
from evenkeel_kernels.core.state import total_cost
from tests.support.random_problems import random_cluster, random_cost, random_problem

SEEDS = st.integers(0, 2**32 - 1)


def test_a_node_pays_each_unit_at_the_price_of_its_stretch():
    table = NodeTable("cpu", at=[10.0, 20.0], slope=[1.0, 3.0])
    assert table.cost(np.array([0.0, 10.0, 15.0, 25.0])).tolist() == [0.0, 0.0, 5.0, 25.0]


def test_load_may_cost_from_the_first_unit_on():
    table = NodeTable("cpu", at=[10.0], slope=[3.0], below=1.0)
    assert table.cost(np.array([0.0, 4.0, 12.0])).tolist() == [0.0, 4.0, 16.0]


def test_too_little_load_may_cost():
    table = NodeTable("cpu", at=[5.0, 10.0], slope=[-1.0, 2.0], below=-3.0)
    assert table.cost(np.array([0.0, 5.0, 10.0, 11.0])).tolist() == [20.0, 5.0, 0.0, 2.0]


def test_nodes_have_points_of_their_own_or_pay_nothing():
    table = NodeTable("cpu", at=[[1.0], [5.0], [np.nan]], slope=[2.0])
    assert table.cost(np.array([6.0, 6.0, 6.0])).tolist() == [10.0, 2.0, 0.0]


@given(SEEDS)
def test_hinges_say_what_the_pieces_say(seed):
    rng = np.random.default_rng(seed)
    pieces = int(rng.integers(1, 5))
    at = np.sort(rng.integers(0, 20, pieces)).astype(float)
    slope = np.sort(rng.integers(-4, 5, pieces + 1)).astype(float)
    slope[-1] = max(slope[-1], 0.0)
    table = NodeTable("x", at, slope[1:], below=float(slope[0]))
    load = np.arange(0.0, 30.0, 0.25)
    cost = table.cost(load)
    middle = (load[:-1] + load[1:]) / 2  # no point lies strictly between two loads
    price = slope[np.searchsorted(at, middle, side="right")]
    np.testing.assert_allclose(np.diff(cost) / 0.25, price)
    assert cost.min() == 0.0 or slope[0] > 0.0 or at[0] > 30.0


def test_a_group_pays_by_how_many_share_a_domain_and_on_beyond_the_last_entry():
    table = GroupTable("zone", cost=[4.0, 0.0, 1.0, 3.0])
    count = np.array([0, 1, 2, 3, 4, 6])
    assert table.of(count, np.zeros(6, int)).tolist() == [4.0, 0.0, 1.0, 3.0, 5.0, 9.0]


def test_domains_may_have_curves_of_their_own():
    table = GroupTable("zone", cost=[[0.0, 1.0], [0.0, 7.0]])
    assert table.of(np.array([2, 2]), np.array([0, 1])).tolist() == [2.0, 14.0]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (lambda: NodeTable("cpu", at=[2.0, 1.0], slope=[1.0, 2.0]), "ascend"),
        (lambda: NodeTable("cpu", at=[1.0, 2.0], slope=[2.0, 1.0]), "convex"),
        (lambda: NodeTable("cpu", at=[1.0], slope=[1.0], below=2.0), "convex"),
        (lambda: NodeTable("cpu", at=[1.0], slope=[-1.0], below=-2.0), "at the end"),
        (lambda: NodeTable("cpu", at=[1.0, 2.0], slope=[1.0]), "as many loads"),
        (lambda: NodeTable("cpu", at=[], slope=[]), "at least one price"),
        (lambda: NodeTable("cpu", at=[[1.0, np.nan]], slope=[1.0, 2.0]), "finite"),
        (lambda: NodeTable("cpu", at=[1.0], slope=[np.inf]), "numbers"),
        (lambda: GroupTable("zone", cost=[1.0]), "at least two"),
        (lambda: GroupTable("zone", cost=[0.0, np.nan]), "numbers"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(table, words):
    with pytest.raises(ek.InvalidInput, match=words):
        table()


def test_what_a_cluster_does_not_have_is_reported_all_at_once():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 2, load=[[1.0]], placement=[[0]], domains={"zone": [0, 1]}
    )
    tables = [
        NodeTable("ram", at=[1.0], slope=[1.0]),
        NodeTable("d0", at=[[1.0]] * 3, slope=[1.0]),
        GroupTable("rack", cost=[0.0, 1.0]),
        GroupTable("zone", cost=[[0.0, 1.0]] * 3, groups=["nobody"]),
    ]
    with pytest.raises(ek.InvalidInput) as found:
        ek.solve(cluster, goals=ek.Cost(tables=tables))
    assert sorted(fault.path for fault in found.value.faults) == [
        "goals.tables[0].dimension",
        "goals.tables[1].at",
        "goals.tables[2].tier",
        "goals.tables[3].cost",
        "goals.tables[3].groups",
    ]


@given(SEEDS)
def test_search_and_measure_agree_on_every_cost(seed):
    cluster, problem, state = random_problem(seed)
    placement = cluster.placement.replaced(state.node, state.leader)
    parts = cost_of(cluster, placement, random_cost(seed, cluster))
    assert total_cost(problem, state) == pytest.approx(parts.total)


def test_parts_of_a_cost_are_told_apart():
    cluster = random_cluster(0)
    parts = cost_of(cluster, cluster.placement, random_cost(0, cluster))
    assert (parts.moves, parts.group_moves, parts.distance) == (0.0, 0.0, 0.0)
