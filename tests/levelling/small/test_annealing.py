"""Refining small clusters: what is kept is what it is said to be, and nothing better is missed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel_kernels.levelling.annealing import Aim, Best, Course, Pace, begin_course, note, refine
from evenkeel_kernels.levelling.penalty import new_targets
from tests.naive.core import state as recounting
from tests.naive.levelling.small import annealing as naive
from tests.support.small_problems import budgeted, random_small, tiny_case

seeds = st.integers(0, 2**32 - 1)


def begun(small, value=1.0, most_leaders=np.inf, forced=None, least=0.0, budgets=None):
    """What a run starts from; replicas without a node are to get one.

    Nodes are to carry at least a part of their targets; ``budgets`` are drawn from a seed.
    """
    problem, state = small.arrays()
    if budgets is not None:
        problem, state = budgeted(problem, state, budgets)
    nodes = len(small.zone)
    targets, scratch = (
        new_targets(problem, np.full(nodes, most_leaders), 1.0 + 1e-10) for _ in range(2)
    )
    finite = np.isfinite(problem.nodes.watermark)
    floor = np.where(finite, problem.nodes.watermark, 0.0) * least
    aim = Aim(np.ones(1), targets, scratch, floor)
    course = Course(
        forced=state.node < 0 if forced is None else forced,
        led=np.ones(len(state.leader), bool),
        mixed=mixed_roles(problem, state),
        faults=np.zeros(len(state.leader), np.int64),
        tally=np.zeros(4, np.int64),
        random=np.array([88172645463325252], np.uint64),
    )
    best = Best(state.node.copy(), state.leader.copy(), np.full(5, np.inf))
    begin_course(problem, state, aim, value, course)
    return problem, state, aim, course, best


def mixed_roles(problem, state):
    """Whether the replicas of each partition have more than one role, (P,)."""
    rows = (recounting.row(problem, p) for p in range(len(state.leader)))
    return np.array([len({int(state.role[k]) for k in row}) > 1 for row in rows], bool)


def placed(state, best):
    """The state that was kept."""
    return state._replace(node=best.node, leader=best.leader)


@pytest.mark.small
@settings(max_examples=100)
@given(
    seeds, st.sampled_from([1.0, 1.3]), st.sampled_from([np.inf, 1.0, 2.0]),
    st.sampled_from([0.0, 0.2]),
)  # fmt: skip
def test_faults_and_worth_are_what_counting_them_anew_gives(seed, value, most_leaders, least):
    problem, state, aim, course, best = begun(
        random_small(seed), value, most_leaders, least=least
    )  # fmt: skip
    for p, faults in enumerate(course.faults.tolist()):
        assert faults == naive.faults_of(problem, state, course, p)
    expected = naive.worth(problem, state, aim, course)
    assert note(problem, state, aim, course, best, 0.0) == (expected is not None)
    if expected is not None:
        assert (best.worth[0], *best.worth[2:]) == expected
        assert best.worth[1] == value


@pytest.mark.small
@settings(max_examples=40)
@given(
    seeds, st.sampled_from([0.0, 0.01]), st.sampled_from([0.0, 0.2]),
    st.none() | st.integers(0, 99),
)  # fmt: skip
def test_what_a_run_keeps_is_worth_what_it_says(seed, fall, least, budgets):
    small = random_small(seed)
    problem, state, aim, course, best = begun(
        small, 1e3 if fall else 1.0, least=least, budgets=budgets
    )
    before = recounting.recount(problem, state)
    assert before["load"] == pytest.approx(state.load)
    pace = Pace(1e-3, 1e-4, 0.2, 0.1, 1e-4, fall)
    refine(problem, state, aim, course, best, pace, 0, 2_000, 2_000)
    after = recounting.recount(problem, state)
    np.testing.assert_allclose(state.load, after["load"], rtol=1e-9, atol=1e-9)
    assert state.leaders.tolist() == after["leaders"].tolist()
    for p, faults in enumerate(course.faults.tolist()):
        assert faults == naive.faults_of(problem, state, course, p)
    if np.isfinite(best.worth[0]):
        begin_course(problem, state, aim, float(best.worth[1]) * (1.0 + 1e-12), course)
        kept = placed(state, best)
        assert naive.worth(problem, kept, aim, course) == (best.worth[0], *best.worth[2:])
        home = problem.partitions.home
        for k in np.flatnonzero((best.node != home) & (best.node >= 0)):
            mask = problem.rules.allowed[problem.partitions.mask[problem.partitions.owner[k]]]
            row = recounting.row(problem, problem.partitions.owner[k])
            here = int(best.node[k])
            stood = here in {int(home[i]) for i in row if not course.forced[i]}
            assert stood or (problem.nodes.accepts[here] and mask[here])


@pytest.mark.small
@settings(max_examples=25)
@given(seeds, st.none() | st.integers(0, 99))
def test_runs_never_keep_what_is_better_than_the_best_there_is(seed, budgets):
    problem, state, aim, course, best = begun(tiny_case(seed), budgets=budgets)
    start = state.node.copy(), state.leader.copy()
    all_worths = (naive.worth(problem, one, aim, course)
                  for one in naive.everything(problem, state, course))  # fmt: skip
    fewest = min((one for one in all_worths if one is not None), default=None)
    note(problem, state, aim, course, best, 0.0)
    pace = Pace(1e-2, 1e-3, 0.5, 0.1, 1e-3, 0.0)
    for _ in range(3):
        refine(problem, state, aim, course, best, pace, 0, 3_000, 3_000)
    found = None if np.isinf(best.worth[0]) else (best.worth[0], *best.worth[2:])
    if found is not None:
        assert fewest is not None
        assert found >= fewest
    assert start[0].tolist() == problem.partitions.home.tolist()
