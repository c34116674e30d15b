"""The incremental state against a recount from scratch, after any sequence of moves."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel_kernels.build.jit import jit
from evenkeel_kernels.core import feasibility as admission
from evenkeel_kernels.core import state as kernel
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.core.state import total_cost
from tests.naive.core import state as naive
from tests.support.in_step import admits
from tests.support.random_problems import random_budgeted, random_problem

SEEDS = st.integers(0, 2**32 - 1)
GENEROUS = settings(deadline=None, max_examples=60)


@jit
def apply(problem: Problem, state: State, k: int, n: int) -> None:
    """The kernel, which others only inline, as something to call."""
    kernel.apply(problem, state, k, n)


@jit
def overrun(problem: Problem, state: State) -> int:
    return admission.overrun(problem, state)


def assert_books_are_right(problem: Problem, state: State) -> None:
    for name, expected in naive.recount(problem, state).items():
        np.testing.assert_array_equal(getattr(state, name), expected, err_msg=name)


def wander(problem: Problem, state: State, rng: np.random.Generator, steps: int) -> None:
    """Move replicas anywhere, rules or no rules."""
    for _ in range(steps):
        k = int(rng.integers(len(state.node)))
        apply(problem, state, k, int(rng.integers(-1, len(state.replicas))))


@given(SEEDS)
@GENEROUS
def test_the_books_are_right_from_the_start_and_stay_so(seed):
    _, problem, state = random_problem(seed)
    assert_books_are_right(problem, state)
    wander(problem, state, np.random.default_rng(seed), 12)
    assert_books_are_right(problem, state)
    assert total_cost(problem, state) == naive.total_cost(problem, state)


@given(SEEDS)
@GENEROUS
def test_what_is_admitted_breaks_nothing(seed):
    _, problem, state = random_problem(seed)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        for _ in range(6):
            k, n = int(rng.integers(len(state.node))), int(rng.integers(len(state.replicas)))
            assert admits(problem, state, k, n) == naive.admits(problem, state, k, n), (k, n)
        wander(problem, state, rng, 2)


@given(SEEDS)
@GENEROUS
def test_budgets_are_booked_and_bind(seed):
    _, problem, state = random_budgeted(seed)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        for _ in range(6):
            k, n = int(rng.integers(len(state.node))), int(rng.integers(len(state.replicas)))
            assert admits(problem, state, k, n) == naive.admits(problem, state, k, n), (k, n)
        wander(problem, state, rng, 2)
        assert_books_are_right(problem, state)
        assert overrun(problem, state) == naive.overrun(problem, state)
