"""Followers move instead of leaders where as many moves do: as in plain Python, and in the end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.methods.shared.compile import compile_problem, compile_state
from evenkeel_kernels.core.problem import State
from evenkeel_kernels.core.state import relocate
from evenkeel_kernels.levelling.leaders.exchange import spare_leaders
from evenkeel_kernels.levelling.penalty import new_targets
from evenkeel_kernels.levelling.slices import at_once
from tests.core.test_state import assert_books_are_right, wander
from tests.judge.clusters import draw
from tests.judge.trial import try_one
from tests.naive.core.state import admits
from tests.naive.levelling.leaders import exchange as naive
from tests.support.effort import mostly_long, share_of_examples
from tests.support.random_problems import random_problem

GOALS = ek.Goals(level=0.2)


def uneven(seed: int) -> ek.Cluster:
    """Pairs of replicas on nodes that are drawn unevenly, one of them empty."""
    rng = np.random.default_rng(seed)
    nodes, partitions = int(rng.integers(5, 14)), int(rng.integers(8, 60))
    likely = rng.dirichlet(np.full(nodes - 1, 3.0))
    rows = [rng.choice(nodes - 1, 2, replace=False, p=likely).tolist() for _ in range(partitions)]
    load = np.round(rng.lognormal(0.0, 0.8, (partitions, 1)), 1) + 0.1
    return ek.Cluster.from_arrays(
        capacity=np.full((nodes, 1), load.sum() * 2 / nodes / 0.5), load=load, placement=rows
    )


def test_a_follower_leaves_in_place_of_a_leader() -> None:
    result = ek.solve(uneven(230), goals=GOALS)
    assert (result.status, result.comparison.moves) == ("optimal", 5)
    assert result.comparison.leader_changes == 0


@pytest.mark.parametrize("seed", mostly_long(range(200, 320, 10), (200, 230)))
def test_no_single_exchange_spares_another_leader_change(seed: int) -> None:
    """All that a follower of the leader's node could have done instead, tried by the full audit."""
    cluster = uneven(seed)
    result = ek.solve(cluster, goals=GOALS)
    assert result.goals_reached
    before, after = cluster.placement, result.placement
    load, target = cluster.partitions.load.voter[:, 0], result.bounds.target[:, 0]
    rows = after.node.reshape(-1, 2)
    carried = result.levelness.loads[:, 0]
    for p in np.flatnonzero(after.leader_node != before.leader_node).tolist():
        home = int(before.leader_node[p])
        slot = int(before.leader[p])
        there = int(rows[p, slot])
        if there == home:
            continue
        for q in np.flatnonzero((rows == home).any(axis=1)).tolist():
            if after.leader_node[q] == home or home not in before.node.reshape(-1, 2)[q]:
                continue
            for to in set(range(len(cluster.nodes))) - {home, *rows[q].tolist()}:
                if to in before.node.reshape(-1, 2)[q]:
                    continue
                then = carried.copy()
                then[[home, there]] += load[p] * np.array([1.0, -1.0])
                then[home] -= load[q]
                then[to] += load[q]
                assert then[home] > target[home] or then[to] > target[to]


@pytest.mark.parametrize(("heavier", "goals"), [(1.0, ek.Goals(level=0.1)), (1.5, GOALS)])
def test_large_clusters_spare_leader_changes_at_as_many_moves(
    heavier: float, goals: ek.Goals
) -> None:
    rng = np.random.default_rng(1)
    rows = np.argsort(rng.random((3000, 54)), axis=1)[:, :3]
    load = rng.lognormal(0.0, 0.8, (3000, 2))
    room = (load * (2.0 + heavier)).sum(axis=0) / 60 * 1.6
    cluster = ek.Cluster.from_arrays(
        capacity=np.tile(room, (60, 1)), load=load, leader_load=heavier * load, placement=rows
    )
    result = ek.solve(cluster, goals=goals)
    assert result.goals_reached
    left = cluster.placement.leader_node != result.placement.leader_node
    stayed = result.placement.node.reshape(-1, 3)[:, 0] == rows[:, 0]
    assert int((left & ~stayed).sum()) < 0.3 * result.comparison.moves


@pytest.mark.small
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([2.0, np.inf]),
    st.sampled_from([0.9, 3.0, 1e9]),
    st.booleans(),
)
def test_exchanges_are_those_of_plain_python(
    seed: int, most: float, roomy: float, anywhere: bool
) -> None:
    _, problem, state = random_problem(seed)
    rng = np.random.default_rng(seed)
    wander(problem, state, rng, int(rng.integers(1, 8)))
    targets = new_targets(problem, np.full(len(state.replicas), most), 0.9)
    targets.scale[:] /= roomy
    floor = np.where(rng.random(state.load.shape) < 0.1, 2.0, 0.0)
    stays = rng.random(len(state.node)) < 0.1
    expected = naive.spare_leaders(problem, state, targets, floor, stays, anywhere)
    spared = at_once(spare_leaders(problem, state, targets, floor, stays, anywhere))
    assert state.node.tolist() == expected.node.tolist()
    assert state.leader.tolist() == expected.leader.tolist()
    assert spared >= 0
    assert_books_are_right(problem, state)


@share_of_examples(0.1)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_exchanges_between_uneven_nodes_are_those_of_plain_python(
    seed: int, anywhere: bool
) -> None:
    cluster = uneven(seed)
    target = np.full((1, len(cluster.nodes)), 0.7 * cluster.nodes.capacity[0, 0])
    problem = compile_problem(cluster, target, np.ones(1))
    state = compile_state(cluster, problem, cluster.placement, cluster.nodes.may_hold)
    rng = np.random.default_rng(seed)
    for k in rng.permutation(len(state.node))[:12].tolist():
        n = int(rng.integers(len(cluster.nodes)))
        if admits(problem, state, k, n):
            relocate(problem, state, np.array([k]), np.array([n], np.int32))
    targets = new_targets(problem, np.full(len(cluster.nodes), np.inf), 1.0)
    floor, stays = np.zeros(state.load.shape), np.zeros(len(state.node), bool)
    expected = naive.spare_leaders(problem, state, targets, floor, stays, anywhere)
    before = count_changed(cluster, state)
    spared = at_once(spare_leaders(problem, state, targets, floor, stays, anywhere))
    assert state.node.tolist() == expected.node.tolist()
    assert spared == before - count_changed(cluster, state)


def count_changed(cluster: ek.Cluster, state: State) -> int:
    """Partitions that another node leads than before."""
    now = cluster.placement.replaced(state.node, state.leader).leader_node
    return int((now != cluster.placement.leader_node).sum())


def test_a_follower_does_not_leave_the_only_other_zone_of_its_partition() -> None:
    """It was judged as if it stood nowhere, and then no zone is left by its going."""
    tried = try_one(draw("zones", 18, times=(4, 10)))
    assert tried.findings == []
