"""Skews of groups are repaired: as by hand, in many situations, and nothing else gets worse."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.measure.audit import audit
from evenkeel.methods.shared.compile import compile_problem, compile_state
from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.levelling.group_skew import even_out
from evenkeel_kernels.levelling.repair import must_relocate
from tests.core.test_state import assert_books_are_right
from tests.naive.levelling import group_skew as naive

SEEDS = st.integers(0, 2**32 - 1)


def small_groups(seed: int) -> ek.Cluster:
    """Some groups with skews, among all else that may stand in the way of a move."""
    rng = np.random.default_rng(seed)
    nodes, partitions, groups = rng.integers(1, 7), rng.integers(1, 9), rng.integers(1, 4)
    width = int(rng.integers(1, min(nodes, 3) + 1))
    rows = [rng.choice(nodes, width, replace=False).tolist() for _ in range(partitions)]
    load = rng.integers(0, 4, (partitions, int(rng.integers(1, 3)))).astype(float)
    tier = ("node", "zone", "rack")
    rules = [
        ek.Rule(skew={t: int(rng.integers(0, 3)) for t in tier if rng.random() < 0.5})
        for _ in range(2)
    ]
    return ek.Cluster.from_arrays(
        capacity=np.full((nodes, load.shape[1]), float(rng.choice([4, 8, 40]))), load=load,
        placement=rows, domains={"zone": rng.integers(0, 3, nodes).astype(str).tolist(),
                                 "rack": rng.integers(0, 2, nodes).astype(str).tolist()},
        group=np.sort(rng.integers(0, groups, partitions)),
        group_names=[f"g{g}" for g in range(groups)],
        rules=[*rules, ek.Rule(spread={"rack": int(rng.integers(1, 3))})],
        group_rule=rng.integers(-1, 2, groups), rule=rng.choice([-1, 2], partitions),
        alive=rng.random(nodes) < 0.9, accepts=rng.random(nodes) < 0.9,
    )  # fmt: skip


@pytest.mark.small
@settings(max_examples=60)
@given(SEEDS)
def test_skews_are_repaired_as_by_hand(seed: int) -> None:
    cluster = small_groups(seed)
    rng = np.random.default_rng(seed)
    limits = ek.Limits(moves=int(rng.integers(0, 6))) if rng.random() < 0.3 else ek.Limits()
    watermark = np.array(cluster.nodes.watermark.T, order="C")
    problem = compile_problem(cluster, watermark, np.ones(len(watermark)), limits=limits)
    state = compile_state(cluster, problem)
    forced = must_relocate(problem, state, cluster.nodes.may_hold)
    group = problem.partitions.group[problem.partitions.owner].astype(np.int32)
    groups = len(problem.rules.group_limit_first) - 1
    first, member = by_node(group, groups)
    most = int(rng.choice([2, 4, 40]))
    expected, moves = naive.even_out(
        problem, state, forced.tolist(), [member[first[g]: first[g + 1]].tolist()
                                          for g in range(groups)], most
    )  # fmt: skip
    journal = np.zeros((most, 2), np.int64)
    assert even_out(problem, state, forced, first, member, 0, groups, journal) == moves
    assert state.node.tolist() == expected.node.tolist()
    assert_books_are_right(problem, state)


def uneven(topics: int, partitions: int, nodes: int, **arguments: object) -> ek.Cluster:
    """Topics of two replicas anywhere in three zones, bound by a skew of 1 per node."""
    rng = np.random.default_rng(topics)
    count = topics * partitions
    rows = [rng.choice(nodes, 2, replace=False).tolist() for _ in range(count)]
    load = np.round(rng.lognormal(0, 0.5, (count, 1)), 3)
    given = {
        "capacity": np.full((nodes, 1), 3.0 * load.sum() / nodes), "load": load, "placement": rows,
        "group": np.repeat(np.arange(topics), partitions), "group_rule": [0] * topics,
        "domains": {"zone": (np.arange(nodes) % 3).astype(str).tolist()},
        "rules": [ek.Rule(skew={"node": 1})],
    }  # fmt: skip
    return ek.Cluster.from_arrays(**(given | arguments))


SPREAD = {"rules": [ek.Rule(skew={"node": 1}), ek.Rule(spread={"zone": 1})], "rule": [1] * 240}

SITUATIONS: dict[str, Callable[[], ek.Cluster]] = {
    "40 topics": lambda: uneven(40, 12, 10),
    "300 topics": lambda: uneven(300, 20, 30),
    "none apart": lambda: uneven(20, 15, 10, rules=[ek.Rule(skew={"node": 0})]),
    "zones": lambda: uneven(20, 12, 12, rules=[ek.Rule(skew={"zone": 1})]),
    "zones and nodes": lambda: uneven(20, 12, 12, rules=[ek.Rule(skew={"zone": 1, "node": 1})]),
    "spread": lambda: uneven(20, 12, 12, **SPREAD),
    "node gone": lambda: uneven(20, 12, 12).down("n3"),
    "node drained": lambda: uneven(20, 12, 12).drain("n3"),
    "node added": lambda: uneven(20, 12, 12).add_nodes([[60.0]], domains={"zone": ["0"]}),
    "some pinned": lambda: uneven(20, 12, 12).pin(range(0, 240, 5)),
    "soft": lambda: uneven(20, 12, 12, rules=[ek.Rule(skew={"node": (1, "soft")})]),
}


@pytest.mark.parametrize("leaders", [None, 0.1])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_no_skew_is_left(situation: str, leaders: float | None) -> None:
    cluster = SITUATIONS[situation]()
    goals = ek.Goals(level=0.2, leaders=leaders)
    result = ek.solve(cluster, goals=goals)
    assert result.audit.counts["skew"] == result.audit.counts["soft_skew"] == 0
    assert result.success
    again = ek.solve(cluster.with_placement(result.placement), goals=goals)
    assert again.comparison.moves == 0


@pytest.mark.parametrize("most", [0, 1, 5, 40])
def test_a_budget_is_spent_where_a_skew_falls(most: int) -> None:
    cluster = uneven(40, 12, 10)
    before = audit(cluster, cluster.placement).counts["skew"]
    result = ek.solve(cluster, goals=ek.Goals(level=None), limits=ek.Limits(moves=most))
    assert result.comparison.moves <= most
    assert result.audit.counts["skew"] <= before - most
