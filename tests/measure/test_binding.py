"""The audit reads rules on its own, and reads what the strategies read."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from evenkeel.measure import binding as judges
from evenkeel.methods.shared import scope as solvers
from evenkeel.model.binding import bound_rules, node_mask
from evenkeel.model.cluster import Cluster
from evenkeel.model.rules import Limit, Rule
from tests.support.clusters import clusters

RELAXED = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def met(cluster, texts):
    """Nodes that meet every expression, by the binding of the strategies."""
    mask = np.ones(len(cluster.nodes), bool)
    for text in texts:
        mask &= node_mask(cluster, text)
    return mask


@RELAXED
@given(clusters())
def test_both_bindings_say_the_same(cluster):
    mine, theirs = judges.partition_scope(cluster), solvers.partition_scope(cluster)
    rules, rule_of = bound_rules(cluster)
    assert mine.wanted.tolist() == theirs.wanted.tolist()
    for p in range(len(cluster.partitions)):
        demands, rule = mine.demands[mine.rule[p]], rules[rule_of[p]]
        assert demands.limits == theirs.limits[theirs.rule[p]]
        assert mine.open[mine.rule[p]].tolist() == theirs.open[theirs.rule[p]].tolist()
        assert demands.require == tuple(rule.require)
        assert demands.voters_require == tuple(rule.voters_require)
        assert dict(demands.place) == dict(rule.own.place)
        assert dict(demands.voters_place) == dict(rule.own.voters_place)
        assert demands.lead == tuple(rule.lead)
        for text in (*demands.require, *demands.voters_require, *demands.lead):
            assert judges.nodes_that_meet(cluster, [text]).tolist() == met(cluster, [text]).tolist()
    bound = {(one.tier, one.kind, one.hard): one.amount.tolist() for one in mine.bindings}
    assert bound == {(one.tier, one.kind, one.hard): one.amount.tolist() for one in theirs.bindings}


@RELAXED
@given(clusters())
def test_both_bindings_say_the_same_of_groups(cluster):
    mine, theirs = judges.group_scope(cluster), solvers.group_scope(cluster)
    assert mine.wanted.tolist() == theirs.wanted.tolist()
    for g in range(len(cluster.partitions.group_names)):
        assert mine.demands[mine.rule[g]].limits == theirs.limits[theirs.rule[g]]
        assert mine.open[mine.rule[g]].tolist() == theirs.open[theirs.rule[g]].tolist()


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("+ssd", [0, 2]),
        ("-ssd", [1, 3]),
        ("zone=a", [0, 1]),
        ("zone != a", [2, 3]),
        (" + ssd , zone!=b ", [0]),
        ("node=n3", [3]),
        ("node!=n3", [0, 1, 2]),
        ("region=east", []),
        ("region!=east", [0, 1, 2, 3]),
        ("disk=a+b", [1]),
    ],
)
def test_expressions_are_read_as_they_are_written(text, nodes):
    cluster = Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]], placement=[[0]],
        domains={"region": ["west"] * 4, "zone": [*"aabb"]},
        tags={"ssd": [True, False, True, False]},
        attributes={"disk": ["c", "a+b", "c", "c"]},
    )  # fmt: skip
    assert np.flatnonzero(judges.nodes_that_meet(cluster, [text])).tolist() == nodes
    assert met(cluster, [text]).nonzero()[0].tolist() == nodes


@pytest.mark.small
def test_one_replica_per_node_is_the_default_of_partitions_and_of_no_group():
    rules = [
        Rule(spread={"zone": 2}),
        Rule(spread={"node": None}),
        Rule(skew={"zone": (1, "soft")}),
    ]
    cluster = Cluster.from_arrays(
        capacity=[[9.0]] * 2, load=[[1.0]] * 3, placement=[[0]] * 3, domains={"zone": [*"ab"]},
        rules=rules, rule=[0, 1, -1], group=[0, 0, 1], group_rule=[2, -1],
    )  # fmt: skip
    scope = judges.partition_scope(cluster)
    limits = [scope.demands[q].limits for q in scope.rule]
    node = Limit("node", "spread", 1, True)
    assert limits == [(Limit("zone", "spread", 2, True), node), (), (node,)]
    scope = judges.group_scope(cluster)
    assert [scope.demands[q].limits for q in scope.rule] == [(Limit("zone", "skew", 1, False),), ()]
