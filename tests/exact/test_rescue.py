"""What CP-SAT places or mends for ``balance`` is judged by the placement that is handed out."""

import numpy as np
import pytest

import evenkeel as ek
from tests.judge.clusters import draw
from tests.judge.trial import try_one


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


@pytest.mark.parametrize(
    ("family", "seed"),
    [
        ("roles", 440011),
        ("budgets", 430019),
        ("finer_budgets", 440027),
        ("zones", 440020),
        ("anything", 600252),
    ],
)
def test_as_much_is_mended_as_budgets_and_the_endangered_allow(family: str, seed: int) -> None:
    """Data of non-voters, quorums that placing others would cost, and quorums before rules."""
    tried = try_one(draw(family, seed), small=True)
    assert tried.findings == []
    assert tried.beside is not None


def test_moving_data_counts_in_the_role_that_a_replica_has_in_the_end() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4,
        load=[[4.0]],
        leader_load=[[8.0]],
        non_voter_load=[[1.0]],
        bytes="d0",
        placement=[[0, 1, 3]],
        role=[[0, 0, 1]],
        voters=2,
        alive=[True, True, True, False],
    )
    result = ek.solve(cluster, "exact", limits=ek.Limits(bytes=1.0))
    assert result.placement.node.tolist() == [0, 1, 2]
    assert result.comparison.bytes_moved == 1.0


def test_what_fits_beside_the_answer_of_cp_sat_is_placed() -> None:
    """CP-SAT, out of effort, left two replicas over where one of them had room."""
    assert try_one(draw("overfull", 610589)).findings == []


def test_a_live_replica_is_not_evacuated_where_its_partition_would_lose_its_quorum() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 2,
        load=[[1.0]],
        placement=[[0, -1, -1]],
        accepts=[False, True],
        keeps=[False, True],
        leads=[False, True],
    )
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert sorted(result.placement.node.tolist()) == [-1, 0, 1]
    assert result.placement.leader_node.tolist() == [1]


def test_no_dead_node_takes_a_lead_over() -> None:
    """Where nobody may lead, a slot that led on one dead node and stands on another does not."""
    tried = try_one(draw("states", 21000050))
    assert tried.findings == []
