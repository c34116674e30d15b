"""Soft limits that cannot all hold: what weighs least yields."""

import itertools
import random

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.audit import audit, soft_cost
from evenkeel.model.rules import LIMITS
from tests.support.effort import mostly_long

TIERS = ("zone", "row")


def drawn(rng: random.Random, *, placed: bool = False) -> ek.Cluster:
    """A cluster with room for all, where soft limits contradict one another more often than not."""
    nodes = rng.randint(3, 5)
    partitions, replicas = rng.randint(1, 3), rng.randint(1, 3)
    limits = {}
    for kind in LIMITS:
        weights = {tier: rng.choice([0.25, 1.0, 1.5, 2.0, 7.0, 10.0]) for tier in TIERS}
        limits[kind] = {
            tier: (rng.randint(1, 2), "soft", weight)
            for tier, weight in weights.items()
            if rng.random() < 0.4
        }
    return ek.Cluster.from_arrays(
        capacity=[[100.0]] * nodes,
        load=[[1.0]] * partitions,
        placement=[
            rng.sample(range(nodes), replicas) if placed else [-1] * replicas
            for _ in range(partitions)
        ],
        domains={tier: [rng.randrange(3) for _ in range(nodes)] for tier in TIERS},
        rules=[ek.Rule(**limits)],
        rule=[0] * partitions,
    )


def cost_of(cluster: ek.Cluster, nodes: tuple[int, ...]) -> float:
    """Weight x amount of what one partition breaks, by the words of the page on rules."""
    rule, cost = cluster.rules[0], 0.0
    for row, tier in enumerate(TIERS):
        domain = cluster.topology.domain[row].tolist()
        held = [sum(domain[n] == one for n in nodes) for one in sorted(set(domain))]
        used = sum(count > 0 for count in held)
        broken = {
            "spread": lambda most, held=held: sum(max(count - most, 0) for count in held),
            "min_domains": lambda least, used=used: max(least - used, 0),
            "max_domains": lambda most, used=used: max(used - most, 0),
            "skew": lambda most, held=held: max(max(held) - min(held) - most, 0),
        }
        for kind, amount in broken.items():
            if tier in getattr(rule, kind):
                number, _, weight = getattr(rule, kind)[tier]
                cost += weight * amount(number)
    return cost


@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("method", ["balance", "exact"])
@pytest.mark.parametrize("seed", mostly_long(range(8), [0]))
def test_what_costs_least_is_broken(seed, method, placed):
    """A limit is broken to repair a heavier one, whether replicas wait or stand somewhere."""
    rng = random.Random(seed)
    for _ in range(20):
        cluster = drawn(rng, placed=placed)
        replicas = int(cluster.partitions.replicas[0])
        choices = itertools.combinations(range(len(cluster.nodes)), replicas)
        least = len(cluster.partitions) * min(cost_of(cluster, nodes) for nodes in choices)
        result = ek.solve(cluster, method, goals=ek.Goals(level=None))
        rows = [tuple(row) for row in np.asarray(result.placement).tolist()]
        assert sum(cost_of(cluster, row) for row in rows) == pytest.approx(least)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_broken_costs_its_weights(seed):
    rng = random.Random(100 + seed)
    for _ in range(40):
        cluster = drawn(rng)
        placement, nodes = cluster.placement, range(len(cluster.nodes))
        replicas = int(cluster.partitions.replicas[0])
        rows = [tuple(rng.sample(nodes, replicas)) for _ in range(len(cluster.partitions))]
        placed = placement.replaced(np.array(sum(rows, ()), np.int32), placement.leader)
        expected = sum(cost_of(cluster, row) for row in rows)
        assert soft_cost(cluster, audit(cluster, placed)) == pytest.approx(expected)


def test_a_group_and_a_leader_cost_what_they_weigh():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3,
        load=[[1.0]] * 4,
        placement=[[0], [0], [0], [1]],
        domains={"zone": [0, 0, 1]},
        group=[0, 0, 0, 1],
        rules=[ek.Rule(spread={"zone": (1, "soft", 2.5)}), ek.Rule(lead=["zone=1"])],
        group_rule=[0, -1],
    )
    assert soft_cost(cluster, audit(cluster, cluster.placement)) == 5.0


@pytest.mark.parametrize("method", ["balance", "exact"])
def test_an_equal_cost_is_no_reason_to_leave_a_node_too_full(method):
    """One of two zones has two of three replicas, whichever it is; a small node can have none."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0], [100.0], [100.0], [100.0]], load=[[4.0]], placement=[[0, 1, 2]],
        domains={"zone": [*"aabb"]}, spread={"zone": (1, "soft", 2.0)},
    )  # fmt: skip
    result = ek.solve(cluster, method, goals=ek.Goals(level=0.0))
    assert sorted(result.placement.node.tolist()) == [1, 2, 3]
    assert result.status == "optimal" and result.audit.soft == 1


def test_a_proof_names_the_soft_rules_that_come_before_levels():
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0], [10.0]], load=[[4.0], [4.0]], placement=[[0], [0]],
        domains={"zone": [*"ab"]}, group=[0, 0], group_rule=[0], rule=[-1, -1],
        rules=[ek.Rule(max_domains={"zone": (1, "soft")})],
    )  # fmt: skip
    result = ek.solve(cluster, "exact", goals=ek.Goals(level=0.0))
    assert result.audit.soft == 0 and result.status == "missed"
    assert "Proven: none that breaks soft rules no more is more level" in result.message


def test_a_preferred_leader_that_is_too_heavy_leaves_nobody_without_a_leader():
    cluster = ek.Cluster.from_arrays(
        capacity=[[1.0], [9.0]], load=[[1.0]], leader_load=[[2.0]], placement=[[1, 0]],
        domains={"zone": [*"ab"]}, rules=[ek.Rule(lead=["zone=a"])], rule=[0],
    )  # fmt: skip
    result = ek.solve(cluster, "exact", goals=ek.Goals(level=None))
    assert result.message.startswith("Proven: none") and result.audit.counts["lead"] == 1
