"""The audit counts what a replica-by-replica count finds, whatever the cluster."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.measure.audit import KINDS, audit, held_loads
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.rules import Rule
from tests.naive.measure import audit as naive
from tests.support.clusters import clusters
from tests.support.instances import as_cluster, golden

RELAXED = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@st.composite
def judged(draw):
    """A cluster and a placement of it: its own, or another one in the same rows or in others."""
    cluster = demanding(draw, draw(clusters()))
    if draw(st.booleans()) or len(cluster.nodes) == 0:
        return cluster, cluster.placement
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    nodes, partitions = len(cluster.nodes), len(cluster.partitions)
    first = cluster.placement.first
    if draw(st.booleans()):
        length = random.integers(0, 4, partitions)
        if draw(st.booleans()):
            length[:] = draw(st.integers(0, 10))
        first = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    replicas = int(first[-1])
    slots = np.diff(first)
    return cluster, Placement(
        first,
        random.integers(-1, nodes, replicas).astype(np.int32),
        random.integers(0, 3, replicas).astype(np.uint8),
        np.zeros(replicas, np.uint16),
        np.array([random.integers(-1, max(n, 1)) if n else -1 for n in slots], np.int16),
    )


def demanding(draw, cluster):
    """Ask for replicas on the nodes of an expression, and for groups near each other."""
    counts = st.integers(0, 2)
    rules = tuple(
        replace(
            rule,
            place={text: draw(counts) for text in rule.place},
            voters_place={text: draw(counts) for text in rule.voters_place},
            min_domains={
                level: (draw(counts), draw(st.sampled_from(["hard", "soft"])))
                for level in rule.min_domains
            },
        )
        for rule in cluster.rules
    )
    depends = cluster.depends.copy()
    for edge in depends:
        edge[2] = draw(st.integers(0, len(cluster.topology)))
    try:
        return replace(cluster, rules=rules, depends=depends)
    except ek.InvalidInput:  # demands that no node meets
        reject()


def rows_of(found):
    """Amounts by kind and place, as the naive audit keeps them."""
    amounts = defaultdict(float)
    for one in found.found:
        for i, amount in enumerate(one.amount.tolist()):
            where = (one.partition, one.group, one.node, one.tier, one.domain, one.dimension)
            amounts[one.kind, *(int(column[i]) for column in where)] += amount
    return amounts


@pytest.mark.small
@RELAXED
@given(judged())
def test_audit_agrees_with_counting_one_by_one(case):
    cluster, placement = case
    found, expected = audit(cluster, placement), naive.audit(cluster, placement)
    assert {kind: n for kind, n in found.counts.items() if n} == dict(expected.counts)
    assert rows_of(found) == pytest.approx(expected.amounts, rel=1e-9, abs=1e-3)
    assert found.hard + found.soft == sum(found.counts.values())
    assert found.ok == (not any(KINDS[kind].hard for kind in expected.counts))
    assert len(found.table()) == sum(len(one.amount) for one in found.found)


@pytest.mark.parametrize("name", ["small", "medium"])
def test_golden_instances_break_what_the_reference_scorer_says(name):
    expected = {
        "small": {"on_dead": 69, "leader": 21, "capacity": 2},
        "medium": {"unassigned": 5, "on_dead": 534, "leader": 176, "capacity": 16},
    }
    cluster = as_cluster(golden(name))
    counts = audit(cluster, cluster.placement).counts
    assert {kind: n for kind, n in counts.items() if n} == expected[name]
    assert list(counts) == list(KINDS)


def one_node(load, capacity):
    return Cluster.from_arrays(capacity=[[capacity]], load=[[load]] * 4, placement=[[0]] * 4)


def test_one_unit_in_four_thousand_million_is_over_capacity_and_rounding_is_not():
    cluster = one_node(1_000_000_000.0, 3_999_999_999.0)
    assert audit(cluster, cluster.placement).counts["capacity"] == 1
    cluster = one_node(0.1, 0.4 * (1 - 1e-15))
    assert audit(cluster, cluster.placement).ok


def test_a_moved_replica_counts_on_both_ends_of_a_transient_dimension():
    cluster = Cluster.from_arrays(
        capacity=[[4.0], [4.0]], load=[[3.0], [3.0]], transient=["d0"], placement=[[0], [1]]
    )
    exchanged = cluster.placement.replaced(np.array([1, 0], np.int32), cluster.placement.leader)
    found = audit(cluster, exchanged)
    assert found.counts["transient"] == 2
    assert [row.amount for row in found.table("transient")] == [2.0, 2.0]
    assert audit(cluster, exchanged, before=exchanged).ok


@pytest.mark.parametrize("method", ["balance", "exact"])
def test_a_node_that_came_too_full_breaks_nothing_while_replicas_only_leave_it(method):
    cluster = Cluster.from_arrays(
        capacity=[[4.0], [9.0]], load=[[3.0], [3.0], [1.0]], transient=["d0"],
        placement=[[0], [0], [1]],
    )  # fmt: skip
    stays = cluster.placement
    assert audit(cluster, stays.replaced(np.array([0, 1, 1], np.int32), stays.leader)).ok
    exchanged = audit(cluster, stays.replaced(np.array([0, 1, 0], np.int32), stays.leader))
    assert [row.amount for row in exchanged.table("transient")] == [3.0]
    result = ek.solve(cluster, method, goals=ek.Goals(level=None))
    assert (result.status, result.comparison.moves) == ("optimal", 1)
    assert ek.headroom(cluster).reaches[0].at_least >= 1.0


@pytest.mark.parametrize(
    ("node", "held"),
    [([0, 1], 1.0), ([1, 0], 2.0), ([1, 1], 3.0), ([0, 0], 0.0)],
    ids=["the lighter leaves", "the heavier leaves", "both leave", "none leaves"],
)
def test_each_of_two_that_share_a_node_counts_there_when_it_leaves(
    node: list[int], held: float
) -> None:
    cluster = Cluster.from_arrays(
        capacity=[[9.0], [9.0]], load=[[2.0]], non_voter_load=[[1.0]], transient=["d0"],
        placement=[[0, 0]], role=[[0, 1]],
    )  # fmt: skip
    after = cluster.placement.replaced(np.array(node, np.int32), cluster.placement.leader)
    assert held_loads(cluster, cluster.placement, after).tolist() == [[held], [0.0]]


def test_what_leaves_a_dead_node_is_not_held_there():
    """A leader that weighs less than a follower hands over: more weighs on its dead node then."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0]] * 3, load=[[3.0]] * 2, leader_load=[[1.0]] * 2, transient=["d0"],
        placement=[[0, 1]] * 2, alive=[False, True, True], keeps=[True] * 3,
    )  # fmt: skip
    found = audit(cluster, cluster.placement.replaced(np.array([2, 1, 0, 1]), np.array([1, 1])))
    assert found.counts["transient"] == 0


def test_pinned_replicas_that_left_are_told_by_name():
    cluster = Cluster.from_arrays(
        capacity=[[4.0], [4.0]], load=[[1.0]], placement=[[0]], flags=[[Flag.PINNED]],
        node_names=["a", "b"], partition_names=["x"],
    )  # fmt: skip
    moved = cluster.placement.replaced(np.array([1], np.int32), cluster.placement.leader)
    (row,) = audit(cluster, moved).table()
    assert (row.kind, row.hard, row.partition, row.node) == ("pinned", True, "x", "a")


def test_domains_are_named_by_their_path():
    cluster = Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]], placement=[[0, 1, 2]],
        domains={"zone": ["a", "a", "b"], "rack": ["r1", "r1", "r1"]}, spread={"rack": 1},
    )  # fmt: skip
    (row,) = audit(cluster, cluster.placement).table("spread")
    assert (row.tier, row.domain, row.amount) == ("rack", "a/r1", 1.0)
    with pytest.raises(ValueError, match="no such kind"):
        audit(cluster, cluster.placement).table("sprawl")


def test_wishes_are_counted_apart_and_decide_between_equals():
    cluster = Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 2, placement=[[0, 1], [0, 2]],
        domains={"zone": ["a", "a", "b"]}, rules=[Rule(spread={"zone": (1, "soft")})],
    )  # fmt: skip
    found = audit(cluster, cluster.placement)
    assert (found.hard, found.soft, found.ok) == (0, 1, True)
    mended = cluster.placement.replaced(np.array([0, 2, 0, 2], np.int32), cluster.placement.leader)
    assert found.worse_than(audit(cluster, mended))
    assert not audit(cluster, mended).worse_than(found)


def test_a_replica_that_two_rules_exclude_counts_for_each_of_them():
    cluster = Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 2, domains={"zone": [*"abc"]},
        placement=[[2], [1]], rules=[Rule(require=["zone=a"]), Rule(require=["zone=b"])],
        rule=[0, 0], group_rule=[1],
    )  # fmt: skip
    found = audit(cluster, cluster.placement)
    assert found.counts["require"] == 3
    assert [row.expression for row in found.table("require")] == ["zone=a", "zone=a", "zone=b"]
