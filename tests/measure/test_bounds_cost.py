"""No placement costs less than is proven; on tiny clusters all of them are tried."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.measure.binding import partition_scope
from evenkeel.measure.bounds import bounds
from evenkeel.measure.bounds.even import Classes, forced_loads
from evenkeel.measure.bounds.level import level_terms, parts_of
from evenkeel.measure.costs import cost_of
from evenkeel.measure.loads import wanted_load
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.relaxation import relaxation
from evenkeel.systems import roadef
from tests.support import places

ROADEF = places.DATA / "roadef"


@st.composite
def priced(draw):
    """A few replicas on a few nodes, and everything that a cost can charge for."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, p, d = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 2))
    load = random.integers(0, 9, (p, d)).astype(float)
    capacity = random.integers(6, 30, (n, d)).astype(float)
    names = ("a", "b")[:d]
    cluster = ek.Cluster.from_arrays(
        capacity=capacity,
        watermark=np.floor(capacity * random.choice([0.2, 0.5, 1.0])),
        load=load,
        dimensions=names,
        transient=list(names) if random.random() < 0.3 else [],
        placement=random.integers(0, n, (p, 1)),
        group=random.integers(0, 2, p),
        group_names=["g", "h"],
        domains={"zone": random.integers(0, 2, n)},
        tags={"ssd": random.random(n) < 0.6},
        rules=[ek.Rule(require=["+ssd"])],
        rule=random.choice([-1, 0], p),
        tier_distance=[2.0, 0.0],
        move_cost=random.integers(0, 4, p).astype(float),
    )
    tables = [ek.NodeTable("a", at=[3.0, 9.0], slope=[0.0, 4.0], below=-2.0)]
    cost = ek.Cost(
        watermark=float(random.choice([0.0, 1.0, 10.0])),
        proportion=[ek.Proportion("a", "b", 2.0, 3.0)] if d == 2 else [],
        moves=float(random.integers(0, 3)),
        group_moves=float(random.integers(0, 3)),
        distance=float(random.integers(0, 3)),
        tables=tables if draw(st.booleans()) else [],
    )
    return cluster, cost


def least_cost(cluster, cost):
    """The least cost of all placements within capacity, both ends counted, and the rules."""
    scope = partition_scope(cluster)
    able = [np.flatnonzero(scope.open[scope.rule[p]]) for p in range(len(cluster.partitions))]
    best = np.inf
    home, load = cluster.placement.node, cluster.partitions.load.voter
    for row in itertools.product(*able):
        node = np.array(row, np.int32)
        placement = cluster.placement.replaced(node, cluster.placement.leader)
        used = PlacementCounts.of(cluster, placement).loads.copy()
        for p in np.flatnonzero(node != home):
            used[home[p]] += np.where(cluster.transient, load[p], 0.0)
        if (used <= cluster.nodes.capacity).all():
            best = min(best, cost_of(cluster, placement, cost).total)
    return best


@pytest.mark.small
@settings(max_examples=150)
@given(priced())
def test_nothing_costs_less_than_is_proven(case):
    cluster, cost = case
    best = least_cost(cluster, cost)
    found = bounds(cluster, cost)
    assert found.cost.total <= best * (1 + 1e-12)
    assert found.cost.total == pytest.approx(sum(found.cost.parts.values()))


@settings(max_examples=60, deadline=None)
@given(priced())
def test_nothing_costs_less_than_the_relaxation(case):
    cluster, cost = case
    best = least_cost(cluster, cost)
    before = bounds(cluster, cost)
    found = relaxation(cluster, cost, proven=before).cost
    assert before.cost.total <= found.total <= best * (1 + 1e-9)


def test_the_aggregate_is_what_others_published():
    model = next(ROADEF.glob("model_a1_3*"))
    cluster = roadef.read(model)
    found = bounds(cluster, roadef.cost_of(cluster)).cost
    assert found.total == pytest.approx(583_005_700, rel=1e-11)
    assert found.term == "load of r1 (aggregate)"


def test_parts_that_nothing_leaves_are_bound_one_by_one():
    cluster = ek.Cluster.from_arrays(
        capacity=[[20.0]] * 2, watermark=[[5.0]] * 2, load=[[1.0]] * 10, replicas=1,
        placement=[[0]] * 8 + [[1]] * 2, tags={"x": [True, False]},
        rules=[ek.Rule(require=["+x"]), ek.Rule(require=["-x"])], rule=[0] * 8 + [1] * 2,
    )  # fmt: skip
    found = bounds(cluster, ek.Cost(watermark=10.0)).cost
    assert (found.total, found.term) == (pytest.approx(30.0), "load of d0 (classes)")


def test_zones_that_must_hold_a_replica_each_are_bound_one_by_one():
    cluster = ek.Cluster.from_arrays(
        capacity=[[20.0]] * 3, watermark=[[9.0], [9.0], [2.0]], load=[[1.0]] * 6,
        placement=[[0, 1, 2]] * 6, domains={"zone": [0, 1, 2]}, spread={"zone": 1},
    )  # fmt: skip
    found = bounds(cluster, ek.Cost(watermark=1.0)).cost
    assert (found.total, found.term) == (pytest.approx(4.0), "load of d0 (domains)")


def test_a_result_prints_its_cost_its_bound_and_the_gap():
    cluster = ek.Cluster.from_arrays(
        capacity=[[8.0], [8.0]], load=[[3.0]] * 4, placement=[[0], [0], [1], [1]],
        watermark=[[4.0], [4.0]],
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Cost(watermark=10.0), work_limit=1000)
    assert result.cost.total == 40.0
    assert result.gap.cost == pytest.approx(0.0, abs=1e-9)
    assert "cost 40 (at least 40 by load of d0 (aggregate); gap 0.00%)" in str(result)
    free = ek.solve(cluster, goals=ek.Cost(watermark=0.0, moves=1.0), work_limit=1000)
    assert free.gap.cost == 0.0
    assert ek.solve(cluster).gap.cost is None


def test_each_term_of_a_level_can_bind():
    def terms(**given):
        cluster = ek.Cluster.from_arrays(**given)
        standing = PlacementCounts.of(cluster, cluster.placement)
        scope = partition_scope(cluster)
        parts = parts_of(standing, scope)
        found = level_terms(standing, scope, wanted_load(cluster), parts)
        return {name: float(level[0]) for name, level in found}

    ten = [[10.0]] * 4
    tagged = terms(
        capacity=ten, load=[[2.0]] * 8, replicas=1, tags={"x": [False, True, False, True]},
        rules=[ek.Rule(require=["+x"])], rule=[0] * 5 + [-1] * 3,
    )  # fmt: skip
    assert tagged["class"] == pytest.approx(0.6)  # five on two nodes: three on one of them
    assert max(tagged, key=tagged.get) == "class"
    grouped = terms(
        capacity=[[9.0], [9.0], [4.0]], load=[[3.0], [3.0], [3.0]], replicas=1, group=[0, 0, 0],
        group_names=["g"], rules=[ek.Rule(spread={"node": 1})], group_rule=[0],
    )  # fmt: skip
    assert grouped["group"] == pytest.approx(0.75)
    assert max(grouped, key=grouped.get) == "group"
    # of four zones, two small ones together hold one replica of three at least
    paired = terms(
        capacity=[[1.0], [1.0], [9.0], [9.0]], load=[[1.0], [1.0]], replicas=3,
        domains={"zone": [0, 1, 2, 3]}, spread={"zone": 1},
    )  # fmt: skip
    assert paired["spread"] == pytest.approx(1.0)


def test_what_a_limit_forces_into_domains():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0], [5.0]], replicas=[3, 1],
        placement=[[0, 1, 2], [0, -1, -1]], domains={"zone": [0, 0, 1, 1]}, spread={"zone": 2},
    )  # fmt: skip
    standing, scope = PlacementCounts.of(cluster, cluster.placement), partition_scope(cluster)
    binding = next(one for one in scope.bindings if one.tier == "zone")
    forced = forced_loads(
        standing, scope, Classes.of(standing, scope), binding.amount,
        cluster.topology.domain_with_nodes[0], np.ones(4, bool),
    )  # fmt: skip
    assert forced.tolist() == [[1.0], [1.0]]
