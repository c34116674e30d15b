"""Drawing off: what leadership alone cannot fill gets the largest replicas, and no more."""

import os

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenkeel_kernels.levelling.descent import descend
from evenkeel_kernels.levelling.leaders.moves import unassign_leaders
from evenkeel_kernels.levelling.redistribution import lone_leaders_beyond, reserve_leader_headroom
from evenkeel_kernels.levelling.repair import must_relocate
from tests.naive.levelling.leaders import headroom as naive
from tests.support.small_problems import Small, level_case, random_small

NO_LIMIT = 1 << 40


def led_everywhere(seed: int, partitions: int = 60, nodes: int = 12) -> Small:
    """Draw an expanded cluster in the one dimension that leaders load."""
    small = level_case(seed, partitions, nodes, 0.02)
    for name in ("load", "extra", "capacity", "watermark"):
        setattr(small, name, np.ascontiguousarray(getattr(small, name)[:, :1]))
    return small


@pytest.mark.small
@given(st.integers(0, 2**32 - 1), st.booleans())
@example(260774, False)  # the last replica leaves a node exactly at its watermark, but for rounding
@example(183, False)
def test_the_largest_leave_until_all_load_could_find_a_place(seed: int, expanded: bool) -> None:
    small = led_everywhere(seed) if expanded else random_small(seed)
    problem, state = small.arrays()
    forced = must_relocate(problem, state, np.array(small.accepts))
    was = np.empty(len(small.leader), np.int16)
    extra = np.empty(state.load.shape[0])
    unassign_leaders(problem, state, was, extra)
    got = reserve_leader_headroom(problem, state, forced, extra)
    rows = forced.reshape(len(small.placement), -1).tolist()
    wide = len(small.placement[0])
    expected = naive.reserve_leader_headroom(small, state.leader.tolist(), rows, extra)
    assert [divmod(k, wide) for k in got.tolist()] == expected


@pytest.mark.small
@given(st.integers(0, 2**32 - 1))
def test_so_many_lone_leaders_leave_a_node_as_it_leads_too_many(seed: int) -> None:
    small = random_small(seed)
    problem, state = small.arrays()
    rng = np.random.default_rng(seed)
    most = rng.choice([0.0, 1.0, 1.5, np.inf], len(small.zone))
    leaving = rng.random(state.node.shape[0]) < 0.2
    unassign_leaders(
        problem, state, np.empty(len(small.leader), np.int16), np.empty(len(state.load))
    )
    got = lone_leaders_beyond(problem, state, leaving, most)
    assert len(set(got.tolist())) == len(got)
    wide = len(small.placement[0])
    for n in range(len(small.zone)):
        lone = [
            p * wide + slot
            for p, slot in enumerate(state.leader.tolist())
            if slot >= 0 and small.placement[p][slot] == n and not leaving[p * wide + slot]
        ]
        may = {k for k in lone if problem.partitions.movable[k]}
        chosen = set(got.tolist()) & set(lone)
        beyond = len(lone) - np.floor(most[n])
        assert chosen <= may
        assert len(chosen) == max(0, min(len(may), beyond))


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="walks")
@pytest.mark.parametrize("seed", range(4))
def test_one_dimension_gets_level_at_once_with_few_moves(seed: int) -> None:
    small = led_everywhere(seed, partitions=1200, nodes=36)
    problem, state = small.arrays()
    forced = must_relocate(problem, state, np.array(small.accepts))
    most = np.full(len(small.zone), np.inf)
    stages = list(descend(problem, state, state.leader.copy(), forced, most, NO_LIMIT, 0))
    assert stages[-1].stage == "level"
    assert stages[-1].steps < 100_000  # what moved first was enough; else walks begin
    moves = int((state.node != problem.partitions.home).sum())
    was = np.empty(len(small.leader), np.int16)
    extra = np.empty(1)
    before = small.arrays()[1]
    unassign_leaders(problem, before, was, extra)
    drawn = len(reserve_leader_headroom(problem, before, forced, extra))
    assert drawn > 0
    assert moves <= 1.2 * (forced.sum() + drawn)
