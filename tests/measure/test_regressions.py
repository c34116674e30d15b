"""Regressions: what a placement breaks that the initial one did not, counted anew as well."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.measure.audit import KINDS, audit
from evenkeel.measure.regressions import regressions
from tests.naive.measure import audit as naive
from tests.support.clusters import clusters
from tests.support.toy_methods import answering

BY_LIFE = {"unassigned", "min_active", "leaderless", "leader"}


def six(**more):
    """Four partitions of two replicas on six nodes in three zones."""
    given = {
        "capacity": [[10.0]] * 6, "load": [[1.0]] * 4, "domains": {"zone": [*"aabbcc"]},
        "placement": [[0, 2], [1, 3], [2, 4], [3, 5]], "spread": {"zone": 1},
    }  # fmt: skip
    return ek.Cluster.from_arrays(**(given | more))


def worse(cluster, node, leader=None):
    """Count what is worse once replicas stand on these nodes, (P, R), led by these slots, (P,)."""
    leader = np.zeros(len(node), np.int16) if leader is None else np.asarray(leader, np.int16)
    after = cluster.placement.replaced(np.ravel(node).astype(np.int32), leader)
    return regressions(cluster, after, audit(cluster, after)).counts


def test_a_rule_newly_broken_is_worse_wherever_another_is_mended():
    assert worse(six(), [[0, 2], [1, 3], [2, 4], [1, 5]]) == {}
    assert worse(six(), [[0, 1], [1, 3], [2, 4], [1, 5]]) == {"spread": 1}
    cluster = six(placement=[[0, 1], [1, 3], [2, 4], [3, 5]])
    assert worse(cluster, [[0, 3], [0, 1], [2, 4], [3, 5]]) == {"spread": 1}


def test_a_live_replica_is_lost_where_one_that_is_down_stays():
    cluster = six(placement=[[0, 2], [1, -1], [2, 4], [3, 5]])
    assert worse(cluster, [[0, -1], [1, 3], [2, 4], [3, 5]]) == {"live replicas": 1}
    # n5 is down for a while and keeps what it has: nothing is broken without the other replica
    down = {"alive": np.arange(6) != 5, "keeps": [True] * 6, "leader": [-1] * 4}
    unled = [-1] * 4
    cluster = six(**down, replicas=[2, 2, 2, 1])
    assert worse(cluster, [[0, 2], [1, 3], [2, 4], [-1, 5]], unled) == {"live replicas": 1}
    cluster = six(**down, replicas=[2, 2, 1, 2])
    assert worse(cluster, [[0, 2], [1, 3], [2, -1], [3, 5]], unled) == {}


def test_a_dead_replica_may_be_given_up():
    cluster = six(alive=np.arange(6) != 5, spread=None, rules=[ek.Rule(min_domains={"zone": 2})])
    assert worse(cluster, [[0, 2], [1, 3], [2, 4], [3, -1]]) == {}


@pytest.mark.parametrize("leader", [[-1, 0, 0, 0], [1, 0, 0, 0]])
def test_a_partition_without_a_leader_that_may_lead_is_worse(leader):
    cluster = six(leads=np.arange(6) != 2, placement=[[0, 2], [1, 3], [3, 4], [3, 5]])
    assert worse(cluster, [[0, 2], [1, 3], [3, 4], [3, 5]], leader) == {"leader": 1}


def test_a_leader_on_a_dead_node_may_be_lost():
    cluster = six(alive=np.arange(6) != 0)
    assert worse(cluster, [[-1, 2], [1, 3], [2, 4], [3, 5]], [-1, 0, 0, 0]) == {}


def test_a_leader_that_may_not_lead_is_no_better_than_none():
    cluster = six(
        leads=[False, True, True, True, False, False], placement=[[-1, -1], [1, 3], [2, 4], [3, 5]]
    )
    nodes = [[0, 4], [1, 3], [2, 4], [3, 5]]
    assert worse(cluster, nodes, [0, 0, 0, 0]) == {"leader": 1}
    assert worse(cluster, nodes, [-1, 0, 0, 0]) == {}


def test_a_node_that_is_too_full_may_become_less_so():
    cluster = six(capacity=[[10.0]] * 5 + [[1.0]])
    assert worse(cluster, [[0, 2], [1, 5], [2, 4], [3, 5]]) == {"capacity": 1}
    cluster = six(capacity=[[1.0]] * 6, placement=[[0, 2], [0, 3], [0, 4], [1, 5]])
    assert worse(cluster, [[0, 2], [0, 3], [1, 4], [1, 5]]) == {"capacity": 1}  # n1
    cluster = six(capacity=[[1.0]] + [[9.0]] * 5, placement=[[0, 2]] * 4)
    assert worse(cluster, [[0, 2], [0, 2], [1, 2], [1, 2]]) == {}


def test_rules_of_groups_count():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 6, domains={"zone": [*"abc"]}, group=[0] * 6,
        placement=[[0], [1], [2]] * 2, rules=[ek.Rule(skew={"zone": 1})], group_rule=[0],
    )  # fmt: skip
    assert worse(cluster, [[0], [0], [2], [0], [1], [2]]) == {"skew": 1}


def test_an_expression_that_fails_in_place_of_another_is_worse_and_one_less_is_not():
    cluster = six(
        spread=None, rules=[ek.Rule(require=["zone!=a", "node!=n0"])],
        placement=[[0, 2], [2, 3], [2, 4], [3, 5]],
    )  # fmt: skip
    assert worse(cluster, [[1, 2], [2, 3], [2, 4], [3, 5]]) == {}
    cluster = six(
        spread=None, rules=[ek.Rule(require=["zone=a"]), ek.Rule(require=["zone=b"])],
        rule=[0, -1, -1, -1], group=[0, 1, 1, 1], group_rule=[1, -1],
        placement=[[2, 3], [1, 3], [2, 4], [3, 5]],
    )  # fmt: skip
    assert worse(cluster, [[2, 4], [1, 3], [2, 4], [3, 5]]) == {"require": 1}


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


WORSE, MOVED = [[0, 1], [1, 3], [2, 4], [1, 5]], [[0, 2], [1, 3], [2, 4], [3, 1]]


def test_tests_stop_a_method_that_breaks_its_promise():
    with (
        answering(WORSE) as name,
        pytest.raises(AssertionError, match=r"worse than before: \{'spread': 1\}"),
    ):
        ek.solve(six(), name)
    with (
        answering(MOVED, limits=("moves",)) as name,
        pytest.raises(AssertionError, match=r"beyond the budgets: \['moves 1 above 0'\]"),
    ):
        ek.solve(six(), name, limits=ek.Limits(moves=0))
    with answering(WORSE, never_worse=False) as name:
        result = ek.solve(six(), name)
    assert result.placement.node.tolist() == np.ravel(WORSE).tolist()
    assert result.regressions == {"spread": 1}


def broken(cluster, placement):
    """How much of each hard rule is broken, by partition, group, node or domain and dimension."""
    amounts = defaultdict(float)
    for (kind, p, g, *rest), amount in naive.audit(cluster, placement).amounts.items():
        node, level, domain, dimension = rest
        if KINDS[kind].hard and kind not in BY_LIFE:
            kind = "capacity" if kind == "transient" else kind
            where = (-1, -1) if p >= 0 or g >= 0 else (node, domain)
            amounts[kind, p, g, level, dimension, *where] += amount
    return amounts


def live(cluster, placement):
    """Live replicas of each partition."""
    serves = cluster.nodes.alive & ~cluster.nodes.gone
    return [sum(bool(serves[n]) for _, n, _ in row) for row in naive.rows_of(placement)]


@given(clusters(), st.data())
def test_what_is_worse_by_a_naive_count_is_found(cluster, data):
    before = cluster.placement
    node = before.node.copy()
    for k in data.draw(st.lists(st.integers(0, max(len(node) - 1, 0)), max_size=5)):
        if len(node):
            node[k] = data.draw(st.integers(-1, len(cluster.nodes) - 1))
    leader = before.leader.copy()
    for p in range(len(leader)):
        slots = int(before.first[p + 1] - before.first[p])
        if leader[p] >= 0 and slots:
            leader[p] = data.draw(st.integers(0, slots - 1))
    after = before.replaced(node, leader)
    with np.errstate(all="ignore"):
        found = regressions(cluster, after, audit(cluster, after))
        was, now = broken(cluster, before), broken(cluster, after)
        serves = np.append(cluster.nodes.alive & ~cluster.nodes.gone, False)
        lives = serves[before.node]
        alone, left = (
            broken(cluster, before.replaced(np.where(stays, before.node, -1), before.leader))
            for stays in (lives, lives | (after.node == before.node))
        )
    grown = {
        rule for rule, amount in now.items()
        if amount > max(was[rule], alone[rule], left[rule]) + 1e-9 * (1.0 + abs(amount))
    }  # fmt: skip
    wanted = cluster.partitions.replicas.tolist()
    counts = zip(live(cluster, before), live(cluster, after), wanted, strict=True)
    fewer = [has < min(had, least) for had, has, least in counts]
    assert not grown or found
    assert any(fewer) == ("live replicas" in found.counts)
