"""The guard: whatever a method answers, nothing is worse than before."""

import numpy as np
import pytest

import evenkeel as ek
from tests.support.toy_methods import answering

LOOSE = ek.Goals(level=None)


def six(**more):
    """Four partitions of two replicas on six nodes in three zones."""
    given = {
        "capacity": [[10.0]] * 6, "load": [[1.0]] * 4, "domains": {"zone": [*"aabbcc"]},
        "placement": [[0, 2], [1, 3], [2, 4], [3, 5]], "spread": {"zone": 1},
    }  # fmt: skip
    return ek.Cluster.from_arrays(**(given | more))


def solved(cluster, node, leader=None, **more):
    """Let a method answer these nodes."""
    with answering(node, leader, **more) as name:
        return ek.solve(cluster, name, goals=LOOSE)


def test_what_is_no_worse_passes_as_it_is():
    result = solved(six(), [[0, 2], [1, 3], [2, 4], [1, 5]])
    assert result.metrics["guard"] == 0
    assert result.comparison.moves == 1
    assert result.warnings == ()


def test_a_rule_newly_broken_is_put_back_and_the_rest_stays():
    result = solved(six(), [[0, 1], [1, 3], [2, 4], [1, 5]])
    assert result.placement.node.tolist() == [0, 2, 1, 3, 2, 4, 1, 5]
    assert result.metrics["guard"] == 1
    assert "1 same" not in result.message
    assert "1 partitions are unchanged" in result.message
    assert "spread" in result.message
    assert result.audit.ok


def test_counts_that_net_out_hide_nothing():
    cluster = six(placement=[[0, 1], [1, 3], [2, 4], [3, 5]])
    result = solved(cluster, [[0, 3], [0, 1], [2, 4], [3, 5]])
    assert result.placement.node.tolist() == [0, 3, 1, 3, 2, 4, 3, 5]
    assert result.metrics["guard"] == 1


def test_no_live_replica_is_lost():
    cluster = six(placement=[[0, 2], [1, -1], [2, 4], [3, 5]])
    result = solved(cluster, [[0, -1], [1, 3], [2, 4], [3, 5]])
    assert result.placement.node.tolist() == [0, 2, 1, 3, 2, 4, 3, 5]
    assert result.metrics["guard"] == 1


def test_a_live_replica_is_not_lost_for_one_on_a_node_that_is_down():
    # n5 is down for a while and keeps what it has: nothing is broken without the other replica
    cluster = six(alive=np.arange(6) != 5, keeps=[True] * 6, replicas=[2, 2, 2, 1], leader=[-1] * 4)
    result = solved(cluster, [[0, 2], [1, 3], [2, 4], [-1, 5]], [-1] * 4)
    assert result.placement.node.tolist() == [0, 2, 1, 3, 2, 4, 3, 5]
    assert result.metrics["guard"] == 1


def test_a_replica_too_many_that_lives_may_go():
    cluster = six(alive=np.arange(6) != 5, keeps=[True] * 6, replicas=[2, 2, 1, 2], leader=[-1] * 4)
    result = solved(cluster, [[0, 2], [1, 3], [2, -1], [3, 5]], [-1] * 4)
    assert result.metrics["guard"] == 0
    assert result.placement.node.tolist() == [0, 2, 1, 3, 2, -1, 3, 5]


def test_a_dead_replica_may_be_given_up():
    alive = np.arange(6) != 5
    given_up = [[0, 2], [1, 3], [2, 4], [3, -1]]
    result = solved(
        six(alive=alive, spread=None, rules=[ek.Rule(min_domains={"zone": 2})]), given_up
    )
    assert result.metrics["guard"] == 0
    assert result.placement.node.tolist() == [0, 2, 1, 3, 2, 4, 3, -1]


@pytest.mark.parametrize("leader", [[-1, 0, 0, 0], [1, 0, 0, 0]])
def test_nobody_is_left_without_a_lawful_leader(leader):
    cluster = six(leads=np.arange(6) != 2, placement=[[0, 2], [1, 3], [3, 4], [3, 5]])
    result = solved(cluster, [[0, 2], [1, 3], [3, 4], [3, 5]], leader)
    assert result.placement.leader.tolist() == [0, 0, 0, 0]
    assert result.metrics["guard"] == 1


def test_a_leader_on_a_dead_node_may_be_lost():
    alive = np.arange(6) != 0
    result = solved(six(alive=alive), [[-1, 2], [1, 3], [2, 4], [3, 5]], [-1, 0, 0, 0])
    assert result.metrics["guard"] == 0


def test_no_node_is_newly_too_full():
    cluster = six(capacity=[[10.0]] * 5 + [[1.0]])
    result = solved(cluster, [[0, 2], [1, 5], [2, 4], [3, 5]])
    assert result.placement.node.tolist() == [0, 2, 1, 3, 2, 4, 3, 5]
    assert result.metrics["guard"] == 1


def test_a_node_that_is_too_full_may_become_less_so():
    cluster = six(capacity=[[1.0]] * 6, placement=[[0, 2], [0, 3], [0, 4], [1, 5]])
    result = solved(cluster, [[0, 2], [0, 3], [1, 4], [1, 5]])
    assert result.metrics["guard"] == 1  # n1 is newly too full
    result = solved(six(capacity=[[1.0]] + [[9.0]] * 5, placement=[[0, 2]] * 4),
                    [[0, 2], [0, 2], [1, 2], [1, 2]])  # fmt: skip
    assert result.metrics["guard"] == 0


def test_a_groups_rule_is_judged_too():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 6, domains={"zone": [*"abc"]}, group=[0] * 6,
        placement=[[0], [1], [2]] * 2, rules=[ek.Rule(skew={"zone": 1})], group_rule=[0],
    )  # fmt: skip
    result = solved(cluster, [[0], [0], [2], [0], [1], [2]])
    assert result.placement.node.tolist() == [0, 1, 2, 0, 1, 2]
    assert result.metrics["guard"] == 1


def test_methods_that_repeat_another_system_only_report():
    worse = [[0, 1], [1, 3], [2, 4], [3, 5]]
    result = solved(six(), worse, never_worse=False)
    assert result.placement.node.tolist() == np.ravel(worse).tolist()
    assert result.metrics["guard"] == 0
    assert result.regressions == {"spread": 1}


def test_a_proof_does_not_outlive_what_was_put_back():
    result = solved(six(), [[0, 1], [1, 3], [2, 4], [3, 5]], stop_reason="optimum")
    assert result.status != "optimal" or result.comparison.moves == 0
    assert result.stop_reason != "optimum"


def test_a_replica_that_fails_less_than_it_did_is_not_worse():
    cluster = six(
        spread=None, rules=[ek.Rule(require=["zone!=a", "node!=n0"])],
        placement=[[0, 2], [2, 3], [2, 4], [3, 5]],
    )  # fmt: skip
    result = solved(cluster, [[1, 2], [2, 3], [2, 4], [3, 5]])
    assert result.metrics["guard"] == 0


def test_a_rule_of_a_group_that_breaks_in_place_of_a_partitions_own_is_put_back():
    cluster = six(
        spread=None, rules=[ek.Rule(require=["zone=a"]), ek.Rule(require=["zone=b"])],
        rule=[0, -1, -1, -1], group=[0, 1, 1, 1], group_rule=[1, -1],
        placement=[[2, 3], [1, 3], [2, 4], [3, 5]],
    )  # fmt: skip
    result = solved(cluster, [[2, 4], [1, 3], [2, 4], [3, 5]])
    assert result.metrics["guard"] == 1
    assert result.placement.node.tolist() == cluster.placement.node.tolist()


def test_who_may_not_lead_is_no_better_than_nobody():
    cluster = six(
        leads=[False, True, True, True, False, False], placement=[[-1, -1], [1, 3], [2, 4], [3, 5]]
    )
    result = solved(cluster, [[0, 4], [1, 3], [2, 4], [3, 5]], [0, 0, 0, 0])
    assert result.placement.leader_node[0] == -1
    assert result.metrics["guard"] == 1
    result = solved(cluster, [[0, 4], [1, 3], [2, 4], [3, 5]], [-1, 0, 0, 0])
    assert result.metrics["guard"] == 0


@pytest.mark.parametrize("rule", [{"place": {"zone=a": 1}}, {"min_domains": {"zone": 2}}])
def test_what_only_a_dead_replica_satisfied_is_broken_and_no_regression(rule):
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 2, placement=[[0, 1], [1, 0]],
        domains={"zone": [*"abb"]}, rules=[ek.Rule(**rule)],
    ).down("n0")  # fmt: skip
    result = ek.solve(cluster)
    (kind,) = rule
    assert result.audit_before.counts[kind] == 0
    assert result.audit.counts[kind] == 2
    assert not result.unplaced and result.regressions == {}
