"""Small clusters: near the best there is, at rest once solved, and steady under small changes."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.audit import audit
from tests.support.effort import mostly_long
from tests.support.small_clusters import KINDS, draw
from tests.support.small_verdicts import Verdict, judged

SEEDS = range(2)


@pytest.mark.parametrize("seed", mostly_long(SEEDS, [0]))
def test_balance_is_near_a_proven_best_answer_and_never_infeasible_where_one_is_not(seed):
    found = [judged(*draw(kind, seed), effort=0.5) for kind in KINDS]
    assert Verdict.INFEASIBLE not in found
    assert found.count(Verdict.NEAR) >= 0.8 * len(found)  # the bench holds what is promised


@pytest.mark.parametrize("kind", KINDS)
def test_solving_the_answer_again_moves_nothing(kind):
    for seed in SEEDS:
        cluster, goals = draw(kind, seed)
        once = ek.solve(cluster, goals=goals)
        if once.stop_reason != "tolerance" or once.audit.hard:
            continue
        again = ek.solve(cluster.with_placement(once.placement), goals=goals)
        assert again.comparison.moves == 0
        assert again.comparison.leader_changes == 0


@pytest.mark.parametrize("kind", ["zoned", "led"])
def test_no_hard_rule_is_broken_that_was_not(kind):
    for seed in SEEDS:
        cluster, goals = draw(kind, seed)
        result = ek.solve(cluster, goals=goals, work_limit=50_000)
        before = audit(cluster, cluster.placement).counts
        for name, count in result.audit.counts.items():
            assert count <= before[name], name


def test_conflicts_name_the_tag_and_the_zones_that_lack_it():
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 6, load=[[1.0]] * 4, replicas=3,
        domains={"zone": ["a", "a", "b", "b", "c", "c"]},
        tags={"ssd": np.array([1, 1, 1, 1, 0, 0], bool)},
        rules=[ek.Rule(require=["+ssd"], min_domains={"zone": 3})], rule=[0] * 4,
    )  # fmt: skip
    found = ek.conflicts(cluster)
    assert set(found) == {"partition min_domains zone 3", "require '+ssd' (zone=c)"}


def test_conflicts_name_dead_zones_that_a_spread_needs():
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 6, load=[[1.0]] * 2, replicas=3,
        domains={"zone": ["a", "a", "b", "b", "c", "c"]},
        alive=[True, True, True, True, False, False], spread={"zone": 1},
    )  # fmt: skip
    found = ek.conflicts(cluster)
    assert len(found) == 3
    assert "nodes that may hold nothing (zone=c)" in found
    assert {one for one in found if "spread" in one} == {
        "partition spread zone 1 (zone=a)", "partition spread zone 1 (zone=b)",
    }  # fmt: skip
