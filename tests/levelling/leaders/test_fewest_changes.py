"""Where leading weighs nothing, as few leaders change as the placement of an answer allows."""

from itertools import product

import numpy as np
import pytest

import evenkeel as ek


def fewest(cluster, result):
    """Return the fewest leader changes within the goal, replicas staying, by trying all choices."""
    came, most = cluster.placement.leader_node, result.bounds.leader_target
    least = len(came)
    for leads in product(*(sorted(row) for row in result.placement.nodes)):
        if (np.bincount(leads, minlength=len(most)) <= most).all():
            least = min(least, int((np.array(leads) != came).sum()))
    return least


def test_a_lead_is_taken_from_those_that_lose_one_anyway():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 2, placement=[[1, 2], [2, 0]]
    ).drain([2])
    result = ek.solve(cluster, goals=ek.Goals(leaders=0.05))
    assert result.comparison.leader_changes == 1
    assert result.placement.leader_node.tolist() == [1, 0]


@pytest.mark.parametrize("seed", range(40))
def test_no_choice_of_leaders_changes_fewer(seed):
    random = np.random.default_rng(seed)
    nodes, partitions = int(random.integers(3, 6)), int(random.integers(2, 7))
    rows = [random.permutation(nodes)[:3] for _ in range(partitions)]
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * nodes, load=random.integers(1, 4, (partitions, 1)), placement=rows
    )
    if nodes > 3:
        cluster = cluster.drain([int(random.integers(nodes))])
    result = ek.solve(cluster, goals=ek.Goals(level=0.3, leaders=0.0))
    if result.status in ("optimal", "feasible"):
        assert result.comparison.leader_changes == fewest(cluster, result)


@pytest.mark.parametrize("goals", [ek.Goals(leaders=0.0), ek.Goals(group_leaders=0.0)])
def test_the_last_partition_may_have_no_replicas(goals):
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 4, replicas=[2, 2, 2, 0],
        placement=[[0, 1], [0, 1], [0, 1], []],
    )  # fmt: skip
    result = ek.solve(cluster, goals=goals)
    assert result.status == "optimal" and result.placement.leader[3] == -1
