"""Needs: no placement without a broken rule falls short of one."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.bounds.needs import Case, needs
from evenkeel.measure.loads import node_loads
from tests.studies.growth.oracle import drawn
from tests.support.effort import mostly_long

ROUNDING = 1e-9


@pytest.mark.parametrize("seed", mostly_long(range(100), range(30)))
def test_every_need_is_met_by_whatever_is_placed(seed):
    cluster = drawn(seed).cluster
    load = cluster.partitions.load.voter
    rng = np.random.default_rng(seed)
    cluster = cluster.replace(leader_load=load + rng.integers(0, 2, load.shape))
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    case = Case("", np.zeros(len(cluster.nodes), bool), np.ones(load.shape[1]))
    placed = cluster.with_placement(result.placement)
    found = list(needs(placed, case))
    assert found or not len(load)
    if result.audit.hard:
        return
    carried = node_loads(placed, placed.placement)
    for need in found:
        if need.kind != "domains":
            assert need.holds.sum() >= need.amount * (1.0 - ROUNDING), need
        if need.kind == "load" and not need.where:
            assert carried[:, need.dimension].sum() >= need.amount * (1.0 - ROUNDING)


def test_what_spread_leaves_no_other_place_for_is_needed_of_a_zone():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[2.0]] * 3, replicas=3, domains={"zone": [*"abc"]},
        spread={"zone": 1},
    )  # fmt: skip
    case = Case("", np.zeros(3, bool), np.ones(1))
    forced = {one.where: one.amount for one in needs(cluster, case) if one.kind == "load"}
    assert forced["zone a"] == 6.0
    assert forced["zone a + b"] == 12.0
    assert forced[""] == 18.0


def test_what_the_least_number_of_domains_leaves_no_other_place_for_is_needed_of_a_zone():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[2.0]] * 3, replicas=2, domains={"zone": [*"abb"]},
        rules=[ek.Rule(min_domains={"zone": 2})], rule=[0] * 3,
    )  # fmt: skip
    case = Case("", np.zeros(3, bool), np.ones(1))
    forced = {one.where: one.amount for one in needs(cluster, case) if one.kind == "load"}
    assert forced["zone a"] == forced["zone b"] == 6.0
    assert forced[""] == 12.0


def test_loads_of_leaders_are_no_need_where_nobody_leads():
    given = {"capacity": [[9.0]] * 3, "load": [[2.0]] * 3, "leader_load": [[5.0]] * 3,
             "placement": [[0, 1]] * 3}  # fmt: skip
    case = Case("", np.zeros(3, bool), np.ones(1))
    for leader, amount in (([-1] * 3, 12.0), ([0] * 3, 21.0)):
        cluster = ek.Cluster.from_arrays(**given, leader=leader)
        found = [one for one in needs(cluster, case) if one.kind in ("load", "leaders")]
        assert max(one.amount for one in found) == amount
        large = [one for one in needs(cluster, case) if one.kind == "whole replicas"]
        assert all(one.amount <= 6.0 for one in large)
