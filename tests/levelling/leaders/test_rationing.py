"""Rationing leader changes: as in plain Python, and a budget leaves the fullest node lowest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.methods.shared.compile import compile_problem, compile_state
from evenkeel_kernels.levelling.leaders.chains import chain_leaders
from evenkeel_kernels.levelling.leaders.rationing import ration_leaders
from evenkeel_kernels.levelling.penalty import new_targets
from evenkeel_kernels.levelling.slices import at_once
from tests.levelling.test_make_room import whole
from tests.naive.levelling.best_fit import PlainState
from tests.naive.levelling.leaders import rationing as naive

seeds = st.integers(0, 2**32 - 1)


def skewed(seed: int) -> ek.Cluster:
    """537 partitions on nine nodes, the first of which lead about four times what the last do."""
    rng = np.random.default_rng(seed)
    weight = np.linspace(1.9, 0.5, 9)
    rows = []
    for _ in range(537):
        row = rng.permutation(9)[:3]
        first = rng.choice(3, p=weight[row] / weight[row].sum())
        row[[0, first]] = row[[first, 0]]
        rows.append(row.tolist())
    size = np.round(rng.lognormal(1.0, 1.2, 537), 2)
    return ek.Cluster.from_arrays(capacity=[[float(size.sum())]] * 9, load=size[:, None],
                                  dimensions=["disk"], placement=rows)  # fmt: skip


def led(cluster: ek.Cluster) -> np.ndarray:
    placement = cluster.placement
    return np.bincount(placement.node[placement.leader_replica], minlength=9)


@pytest.mark.parametrize("moves", [0, None])
@pytest.mark.parametrize("changes", [5, 10, 15])
@pytest.mark.parametrize("seed", [1, 3])
def test_a_budget_of_changes_leaves_the_fullest_node_lowest(
    seed: int, changes: int, moves: int | None
) -> None:
    cluster = skewed(seed)
    result = ek.solve(
        cluster, goals=ek.Goals(leaders=0.3), limits=ek.Limits(leader_changes=changes, moves=moves)
    )
    before, target = led(cluster), result.bounds.leader_target[0]
    lowest = next(t for t in range(1000) if np.maximum(before - t, 0).sum() <= changes)
    assert result.levelness.leaders.max() == max(lowest, target)
    assert result.comparison.leader_changes <= changes
    if result.levelness.leaders.max() > target:
        assert f"limits.leader_changes={changes}" in result.message


@given(seeds, st.integers(1, 3), st.booleans(), st.integers(0, 5))
def test_each_change_is_the_one_of_plain_python(
    seed: int, most: int, by_load: bool, changes: int
) -> None:
    small = whole(seed)
    problem, state = small.arrays()
    at = problem.partitions.first[:-1] + np.maximum(state.leader, 0)
    problem = problem._replace(
        budgets=problem.budgets._replace(binds=True, leader_changes=changes),
        partitions=problem.partitions._replace(
            led_from=np.where(state.leader >= 0, state.node[at], -1).astype(np.int32)
        ),
    )
    plain = PlainState(small)
    targets = new_targets(problem, np.full(len(small.zone), float(most)), 1.0)
    naive.ration(plain, targets.scale, targets.leader_scale, by_load, changes)
    at_once(ration_leaders(problem, state, targets, by_load))
    assert state.leader.tolist() == plain.leader


@pytest.mark.parametrize(("changes", "leaders"), [(1, [2, 1, 0]), (2, [1, 1, 1])])
def test_a_chain_is_gone_along_only_if_the_budget_has_room_for_all_of_it(
    changes: int, leaders: list[int]
) -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 3, placement=[[0, 1], [0, 1], [1, 2]]
    )
    capacity = np.ascontiguousarray(cluster.nodes.capacity.T)
    limits = ek.Limits(leader_changes=changes)
    problem = compile_problem(cluster, capacity, np.ones(1), limits=limits)
    state = compile_state(cluster, problem)
    chain_leaders(problem, state, new_targets(problem, np.ones(3), 1.0))
    assert state.leaders.tolist() == leaders
    assert state.spent[2] <= changes
