"""Repair: who must leave, how broken a partition is, and repairing it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenkeel_kernels.build.jit import no_alloc
from evenkeel_kernels.core.node_scan import FAR, Scan, new_scan
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.core.state import settle
from evenkeel_kernels.levelling.best_fit import best_fit, largest_first
from evenkeel_kernels.levelling.leaders.moves import (
    assign_leaders,
    replace_leaders,
    unassign_leaders,
)
from evenkeel_kernels.levelling.repair import breaches, must_relocate, repair_partitions
from tests.levelling.test_descent import check_counts
from tests.naive.levelling import repair as naive
from tests.support.in_step import admits
from tests.support.small_problems import Small, level_case, random_small

seeds = st.integers(0, 2**32 - 1)
ANY = 1 << 40


@no_alloc
def breaches_of(problem, state, p, moved_k, target):
    """A piece, made callable."""
    return breaches(problem, state, p, moved_k, target)


def repaired(problem: Problem, state: State, scan: Scan) -> int:
    """Mend all partitions, a few looks at a time; the moves made."""
    left, made, reached = np.array([ANY, 0]), np.zeros(1, np.int64), 0
    while reached < len(state.leader):
        left[1] = 3
        reached = repair_partitions(problem, state, scan, reached, left, made)
    return int(made[0])


def roomy(seed: int, partitions: int) -> Small:
    """Every node alive, none with a capacity."""
    small = level_case(seed, partitions=partitions)
    small.accepts = small.leads = [True] * len(small.zone)
    small.capacity[:] = np.inf
    return small


def with_group_rules(
    small: Small, limits: list[list[int]], terms: list[list[int]], masks: list[list[bool]]
) -> tuple[Problem, State]:
    """Bind all partitions, which are one group, by limits on zones and by terms."""
    problem, state = small.arrays()
    zones = max(small.zone) + 1
    rules = problem.rules._replace(
        group_limit_first=np.array([0, len(limits)], np.int64),
        group_limit=np.array(limits, np.int32).reshape(-1, 5),
        group_base=zones * np.arange(len(limits), dtype=np.int64),
        group_term_first=np.array([0, len(terms)], np.int64),
        group_term=np.array(terms, np.int32).reshape(-1, 3),
        group_open=np.ones(zones * len(limits), bool),
        term_mask=np.array(masks, bool).reshape(-1, len(small.zone)),
    )
    problem = problem._replace(rules=rules)
    for array in state[3:]:
        array[...] = 0
    state = state._replace(
        group_count=np.zeros(zones * len(limits), np.int32),
        group_domains=np.zeros(len(limits), np.int32),
        group_inside=np.zeros(len(terms), np.int32),
    )
    settle(problem, state)
    return problem, state


@given(seeds)
def test_who_must_leave(seed: int) -> None:
    small = random_small(seed)
    problem, state = small.arrays()
    keeps = np.random.default_rng(seed).random(len(small.zone)) < 0.8
    forced = must_relocate(problem, state, keeps)
    assert forced.tolist() == naive.must_relocate(small, [bool(k) for k in keeps])


@given(seeds)
def test_breaches_are_those_counted_by_hand(seed: int) -> None:
    small = random_small(seed)
    problem, state = small.arrays()
    rng = np.random.default_rng(seed)
    for p, row in enumerate(small.placement):
        assert breaches_of(problem, state, p, -1, -1) == naive.breaches(small, row)
        slot, n = int(rng.integers(len(row))), int(rng.integers(-1, len(small.zone)))
        instead = [n if s == slot else at for s, at in enumerate(row)]
        k = int(problem.partitions.first[p]) + slot
        assert breaches_of(problem, state, p, k, n) == naive.breaches(small, instead)


@given(seeds)
def test_mending_leaves_nothing_that_one_move_mends(seed: int) -> None:
    small = random_small(seed)
    problem, state = small.arrays()
    n_partitions = len(small.placement)
    replicas = len(small.placement[0])
    before = [naive.breaches(small, row) for row in small.placement]
    unplaced = state.node < 0
    moves = repaired(problem, state, new_scan(problem, np.zeros(state.load.shape[0])))
    rows = state.node.reshape(-1, replicas).tolist()
    after = [naive.breaches(small, row) for row in rows]
    assert ((state.node < 0) == unplaced).all()
    assert sum(before) - sum(after) >= moves
    for p in range(n_partitions):
        assert after[p] <= before[p]
    last = n_partitions - 1  # nothing changed after it was looked at
    for slot in range(replicas):
        for n in range(len(small.zone)):
            if admits(problem, state, last * replicas + slot, n) and rows[last][slot] >= 0:
                instead = [n if s == slot else at for s, at in enumerate(rows[last])]
                assert naive.breaches(small, instead) >= after[last]


@given(seeds)
def test_leaders_that_may_not_lead_are_replaced_where_another_can(seed: int) -> None:
    small = random_small(seed)
    problem, state = small.arrays()
    replace_leaders(problem, state, new_scan(problem, np.zeros(state.load.shape[0])))
    check_leaders(small, state)
    check_counts(problem, state)


@given(seeds)
def test_leaders_that_stood_down_come_back(seed: int) -> None:
    small = random_small(seed)
    problem, state = small.arrays()
    was = np.empty(len(small.placement), np.int16)
    extra = np.empty(state.load.shape[0])
    unassign_leaders(problem, state, was, extra)
    assert was.tolist() == small.leader
    assign_leaders(problem, state, new_scan(problem, np.zeros(state.load.shape[0])), was)
    check_leaders(small, state)
    check_counts(problem, state)
    for p, row in enumerate(small.placement):
        unlimited = np.isinf(small.capacity).all()
        stands = small.leader[p] >= 0 and row[small.leader[p]] >= 0
        if unlimited and stands and small.leads[row[small.leader[p]]]:
            assert state.leader[p] == small.leader[p]


def check_leaders(small: Small, state: State) -> None:
    """Whoever could be led by a node with room for it is led by a node that may lead."""
    for p, row in enumerate(small.placement):
        slot = int(state.leader[p])
        extra = small.extra[p]
        roomy = [
            n for n in row if n >= 0 and small.leads[n]
            and (state.load[:, n] + extra <= small.capacity[n]).all()
        ]  # fmt: skip
        if roomy:
            assert slot >= 0 and row[slot] >= 0 and small.leads[row[slot]]


def test_the_replicas_of_a_dead_node_find_homes_and_no_others_move() -> None:
    small = level_case(1, partitions=200, nodes=16)
    problem, state = small.arrays()
    keeps = np.array(small.accepts)
    forced = must_relocate(problem, state, keeps)
    scan = new_scan(problem, np.zeros(2))
    replace_leaders(problem, state, scan)
    order = largest_first(problem, forced)
    led = np.ones(200, bool)
    assert (
        best_fit(problem, state, scan, order, forced, led, FAR, 0, order.shape[0]) == forced.sum()
    )
    assert (state.node[~forced] == problem.partitions.home[~forced]).all()
    assert keeps[state.node].all()
    for row in state.node.reshape(-1, 3):
        assert len({small.zone[n] for n in row}) == 3


def test_two_replicas_in_one_zone_are_parted_by_one_move() -> None:
    small = level_case(2)
    first = small.placement[0]
    twin = [n for n in range(8) if small.zone[n] == small.zone[first[0]] and n != first[0]]
    small.placement[0] = [first[0], twin[0], first[2]]
    small.accepts = small.leads = [True] * 12
    small.capacity[:] = np.inf
    problem, state = small.arrays()
    assert repaired(problem, state, new_scan(problem, np.zeros(2))) == 1
    assert len({small.zone[n] for n in state.node[:3]}) == 3


@given(seeds)
def test_a_group_with_too_many_in_a_zone_sheds_just_those(seed: int) -> None:
    small = roomy(seed, 16)
    most = 13  # of 48 replicas in 4 zones, at most 16 in each
    problem, state = with_group_rules(small, [[0, most, -1, -1, -1]], [], [])
    before = state.group_count.copy()
    excess = int(np.maximum(before - most, 0).sum())
    moves = repaired(problem, state, new_scan(problem, np.zeros(2)))
    assert moves == excess == int((state.node != problem.partitions.home).sum())
    zone = np.array(small.zone)[state.node]
    assert state.group_count.tolist() == np.bincount(zone, minlength=4).tolist()
    assert state.group_count.max() <= most
    assert all(len(set(row)) == 3 for row in zone.reshape(-1, 3).tolist())


@given(seeds)
def test_a_group_with_too_few_inside_a_mask_brings_in_just_those(seed: int) -> None:
    small = roomy(seed, 16)
    inside = [z == 0 for z in small.zone]
    least = 15
    problem, state = with_group_rules(small, [], [[least, 0, 0]], [inside])
    missing = max(0, least - int(np.array(inside)[state.node].sum()))
    moves = repaired(problem, state, new_scan(problem, np.zeros(2)))
    assert moves == missing
    assert int(np.array(inside)[state.node].sum()) == state.group_inside[0] >= least
