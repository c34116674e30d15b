"""A floor below: new nodes fill up, within targets and budgets, and the bound on moves holds."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.bounds import goals_met


def expanded(seed: int, new: int = 2) -> ek.Cluster:
    """A cluster in three zones to which empty nodes have just come."""
    rng = np.random.default_rng(seed)
    nodes, partitions = 9 + new, 120
    zone = [n % 3 for n in range(nodes)]
    placement = [
        [int(rng.choice([n for n in range(9) if n % 3 == z])) for z in rng.permutation(3)]
        for _ in range(partitions)
    ]
    return ek.Cluster.from_arrays(
        capacity=np.full((nodes, 2), 200.0),
        load=rng.uniform(0.5, 2.0, (partitions, 2)),
        domains={"zone": zone},
        placement=placement,
        spread={"zone": 1},
    )


@pytest.mark.parametrize("seed", range(6))
def test_new_nodes_fill_up_to_the_floor(seed):
    cluster = expanded(seed)
    goals = ek.Goals(level=0.3, floor=0.3)
    result = ek.solve(cluster, goals=goals)
    mean = result.levelness.loads.sum(axis=0) / len(cluster.nodes)
    assert (result.levelness.loads >= 0.7 * mean * (1 - 1e-9)).all()
    assert goals_met(result.levelness, result.bounds) and result.success
    assert result.comparison.moves >= result.bounds.moves_level
    assert result.audit.ok
    again = ek.solve(cluster.replace(placement=result.placement), goals=goals)
    assert again.comparison.moves == 0


def test_without_a_floor_a_new_node_may_stay_emptier():
    cluster = expanded(0)
    result = ek.solve(cluster, goals=ek.Goals(level=0.3))
    mean = result.levelness.loads.sum(axis=0) / len(cluster.nodes)
    assert (result.levelness.loads < 0.7 * mean).any()


def test_a_budget_binds_filling_too():
    cluster = expanded(1)
    limits = ek.Limits(moves=20, node_in=12)
    result = ek.solve(cluster, goals=ek.Goals(level=0.3, floor=0.3), limits=limits)
    came = result.placement.nodes != cluster.placement.nodes
    assert came.sum() <= 20
    assert np.bincount(result.placement.nodes[came], minlength=len(cluster.nodes)).max() <= 12
    assert not result.success and result.stop_reason == "limits"


def test_a_floor_that_is_missed_is_said_with_how_much_is_lacking() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[20.0, 3.0]] * 8, load=[[3.0, 2.0]] * 3, leader_load=[[12.0, 3.0]] * 3,
        placement=[[7, 4], [5, 1], [4, 2]],
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=0.1, floor=0.1))
    assert result.status == "missed"
    assert "below its floor" in result.message
    assert result.bounds.moves_level > result.comparison.moves


@pytest.mark.parametrize("seed", range(8))
def test_what_only_keeps_gives_nothing_for_the_floors_of_others(seed: int) -> None:
    """It would raise them: they are what others hold beside what it goes on holding."""
    rng = np.random.default_rng(seed)
    nodes, new = int(rng.integers(10, 30)), int(rng.integers(1, 4))
    placement = [rng.choice(nodes - new, 3, replace=False).tolist() for _ in range(nodes * 6)]
    load = np.round(rng.lognormal(0, 0.6, (len(placement), 2)), 2) + 0.05
    cluster = ek.Cluster.from_arrays(
        capacity=np.tile(load.sum(axis=0) * 4 / nodes / 0.6, (nodes, 1)), load=load,
        leader_load=load * 2, placement=placement,
    ).cordon("n0")  # fmt: skip
    goals = ek.Goals(level=0.1, floor=0.15)
    result = ek.solve(cluster, goals=goals)
    assert result.success
    full = ek.solve(cluster, goals=ek.Goals(level=0.1)).levelness.loads[0]
    assert (result.levelness.loads[0] >= full * (1 - 1e-9)).all()
    again = ek.solve(cluster.with_placement(result.placement), goals=goals)
    assert again.comparison.moves == 0
