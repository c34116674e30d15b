"""What CP-SAT places or mends for ``balance`` is judged by the placement that is handed out."""

import numpy as np

import evenkeel as ek


def unled() -> ek.Cluster:
    """Rows half empty, of which one finds no node by search; then one node is a little too full."""
    return ek.Cluster.from_arrays(
        capacity=[[11.905]] * 4,
        load=[[5.0], [1.0], [1.0], [6.0], [4.0]],
        leader_load=[[7.5], [1.5], [1.5], [9.0], [6.0]],
        placement=[0, 2, -1, -1, 0, -1, -1, -1, -1, -1, -1],
        first=[0, 2, 4, 7, 8, 11],
        leads=[True, True, False, True],
    )


def test_goals_that_are_missed_after_a_rescue_are_said_to_be() -> None:
    result = ek.solve(unled(), goals=ek.Goals(level=0.1), seed=9017)
    assert "CP-SAT placed 1 of 1" in result.message
    assert not result.unplaced
    assert (result.goals_reached, result.success, result.status) == (False, False, "missed")
    assert result.stop_reason != "optimum"


def test_a_rescue_is_the_same_each_time_and_moves_nothing_the_next_time() -> None:
    goals = ek.Goals(level=0.1)
    once, twice = (ek.solve(unled(), goals=goals, seed=9017) for _ in range(2))
    assert once.placement.node.tolist() == twice.placement.node.tolist()
    again = ek.solve(unled().with_placement(once.placement), goals=goals)
    assert again.comparison.moves == 0


def test_a_cluster_without_nodes_has_nothing_to_be_asked():
    cluster = ek.Cluster.from_arrays(
        capacity=np.zeros((0, 1)), load=[[0.0]], placement=[[-1]], replicas=1
    )
    result = ek.solve(cluster)
    assert (result.status, len(result.unplaced)) == ("partial", 1)
