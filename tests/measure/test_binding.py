"""Rules are bound as they are written."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from evenkeel.measure import binding
from evenkeel.model.cluster import Cluster
from evenkeel.model.rules import COUNTS, LIMITS, Limit, Rule
from tests.naive.measure.audit import meets
from tests.support.clusters import clusters

RELAXED = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def rule_of(cluster, q):
    return cluster.rules[q] if q >= 0 else Rule()


def nodes_of(cluster, texts):
    """Nodes that meet every expression, one after another."""
    return [all(meets(cluster, text, n) for text in texts) for n in range(len(cluster.nodes))]


def limits_of(rule, *, per_node):
    """Limits of a rule, as it writes them."""
    found = set()
    written = {"node": 1, **rule.spread} if per_node else rule.spread
    for kind in LIMITS:
        for tier, amount in (written if kind == "spread" else getattr(rule, kind)).items():
            number, *rest = amount if isinstance(amount, tuple) else (amount,)
            if number is not None:
                hard = not rest or rest[0] == "hard"
                found.add((tier, kind, number, hard, *(rest[1:] or [1.0])))
    return found


def plain(limit):
    return limit.tier, limit.kind, limit.amount, limit.hard, limit.weight


def counts(demands):
    return [(one.kind, one.text, one.least, one.voters) for one in demands.counted]


def counts_of(rule):
    """Numbers of replicas that a rule asks for, as it writes them."""
    return [
        (kind, text, least, voters)
        for kind, voters in COUNTS.items()
        for text, least in getattr(rule, kind).items()
    ]


def assert_bound(scope, members):
    """Compare every limit of some members with the amounts that are bound."""
    bound = {(one.tier, one.kind, one.hard): one for one in scope.bindings}
    for member, limits in enumerate(members):
        found = {
            (tier, kind, int(one.amount[member]), hard, float(one.weight[member]))
            for (tier, kind, hard), one in bound.items()
            if one.amount[member] != binding.NONE
        }
        assert found == limits


@RELAXED
@given(clusters())
def test_partitions_are_bound_as_rules_are_written(cluster):
    scope, parts = binding.partition_scope(cluster), cluster.partitions
    assert scope.wanted.tolist() == (parts.replicas > 0).tolist()
    written = []
    for p in range(len(parts)):
        own, shared = (
            rule_of(cluster, q) for q in (parts.rule[p], parts.group_rule[parts.group[p]])
        )
        demands = scope.demands[scope.rule[p]]
        written.append(limits_of(own, per_node=True))
        assert {plain(limit) for limit in demands.limits} == written[-1]
        assert demands.required(voters=False) == [*own.require, *shared.require]
        assert demands.required(voters=True) == [*own.voters_require, *shared.voters_require]
        assert counts(demands) == counts_of(own)
        assert demands.lead == tuple(own.lead or shared.lead)
        texts = [*own.require, *shared.require]
        assert scope.open[scope.rule[p]].tolist() == nodes_of(cluster, texts)
        for text in (*demands.required(voters=True), *demands.lead):
            assert binding.nodes_that_meet(cluster, [text]).tolist() == nodes_of(cluster, [text])
    assert_bound(scope, written)


@RELAXED
@given(clusters())
def test_groups_are_bound_as_rules_are_written(cluster):
    scope, parts = binding.group_scope(cluster), cluster.partitions
    wanted = np.zeros(len(parts.group_names), bool)
    np.logical_or.at(wanted, parts.group, parts.replicas > 0)
    assert scope.wanted.tolist() == wanted.tolist()
    rules = [rule_of(cluster, q) for q in parts.group_rule]
    for g, rule in enumerate(rules):
        demands = scope.demands[scope.rule[g]]
        assert counts(demands) == counts_of(rule)
        assert scope.open[scope.rule[g]].tolist() == nodes_of(cluster, rule.require)
    assert_bound(scope, [limits_of(rule, per_node=False) for rule in rules])


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
    assert np.flatnonzero(binding.nodes_that_meet(cluster, [text])).tolist() == nodes
    assert np.flatnonzero(nodes_of(cluster, [text])).tolist() == nodes


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
    scope = binding.partition_scope(cluster)
    limits = [scope.demands[q].limits for q in scope.rule]
    node = Limit("node", "spread", 1, True)
    assert limits == [(Limit("zone", "spread", 2, True), node), (), (node,)]
    scope = binding.group_scope(cluster)
    assert [scope.demands[q].limits for q in scope.rule] == [(Limit("zone", "skew", 1, False),), ()]
