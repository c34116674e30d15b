"""Making room: leadership relayed along chains, and large replicas that displace smaller ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.methods.levelling.make_room import make_room
from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.levelling.leaders.chains import chain_leaders
from evenkeel_kernels.levelling.leaders.moves import unassign_leaders
from evenkeel_kernels.levelling.make_room import choose_victims, take_over_each
from evenkeel_kernels.levelling.penalty import new_targets
from tests.levelling.test_descent import check_counts, check_rules
from tests.naive.core.state import admits, recount
from tests.naive.levelling import make_room as naive_displace
from tests.naive.levelling.best_fit import PlainState
from tests.naive.levelling.leaders import chains as naive_relay
from tests.support.random_problems import random_problem
from tests.support.small_problems import Small, random_small

pytestmark = pytest.mark.small

seeds = st.integers(0, 2**32 - 1)
ANY = 1 << 40


def whole(seed: int) -> Small:
    """Loads in whole numbers, so that sums are exact in any order."""
    small = random_small(seed)
    small.load = np.round(small.load)
    small.extra = np.round(small.extra)
    small.capacity = np.round(small.capacity)
    small.watermark = np.round(small.watermark)
    return small


@given(seeds, st.integers(0, 3))
def test_leadership_takes_the_shortest_chain(seed: int, most: int) -> None:
    small = whole(seed)
    problem, state = small.arrays()
    plain = PlainState(small)
    expected = naive_relay.relay(plain, [float(most)] * len(small.zone))
    targets = new_targets(problem, np.full(len(small.zone), float(most)), 0.9)
    overfull = state.leaders.copy()
    assert chain_leaders(problem, state, targets) == expected
    assert state.leader.tolist() == plain.leader
    check_counts(problem, state)
    assert (state.leaders <= np.maximum(overfull, most)).all()


def test_a_chain_goes_through_nodes_that_lead_their_share_already() -> None:
    # node 0 leads two; its partitions are followed on node 1 alone, whose own one is on node 2
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 3, placement=[[0, 1], [0, 1], [1, 2]]
    )
    result = ek.solve(cluster, goals=ek.Goals(level=None, leaders=0.0))
    assert result.levelness.leaders.tolist() == [1, 1, 1]
    assert result.comparison.moves == 0


@given(seeds)
def test_the_replicas_that_make_way_are_smaller_and_enough(seed: int) -> None:
    small = whole(seed)
    problem, state = small.arrays()
    plain = PlainState(small)
    first, member = by_node(state.node, len(small.zone))
    size = np.max(small.load / 64.0, axis=1)
    lack = np.empty(small.load.shape[1])
    victim = np.empty(len(state.node) + 1, np.int64)
    slots = len(small.placement[0])
    for k in np.flatnonzero(state.node < 0).tolist():
        for n in range(len(small.zone)):
            count = choose_victims(problem, state, size, k, n, first, member, lack, victim, ANY)
            expected = naive_displace.victims(plain, size, divmod(k, slots), n)
            if expected is None:
                assert count == -1
            else:
                assert [divmod(i, slots) for i in victim[:count].tolist()] == expected


@given(seeds)
def test_making_room_breaks_nothing_and_loses_nobody(seed: int) -> None:
    small = random_small(seed)
    problem, state = small.arrays()
    forced = state.node < 0
    room = state.load <= problem.nodes.capacity
    before = state.node.copy()
    placed = make_room(problem, state, forced, lambda: True)
    assert placed == np.count_nonzero(forced & (state.node >= 0))
    assert (state.node[~forced] >= 0).all()
    assert placed or np.array_equal(state.node, before)
    check_counts(problem, state)
    check_rules(small, state)
    if (small.extra == 0.0).all():  # who leads may else find no room for it
        assert (state.load <= problem.nodes.capacity * (1 + 1e-12))[room].all()


@given(seeds)
def test_every_kind_of_rule_holds_and_a_budget_is_kept(seed: int) -> None:
    _, problem, state = random_problem(seed)
    was = np.empty(len(state.leader), np.int16)
    unassign_leaders(problem, state, was, np.empty(len(state.load)))
    forced = (state.node < 0) & problem.partitions.movable
    before = state.node.copy()
    problem = problem._replace(budgets=problem.budgets._replace(moves=1))
    make_room(problem, state, forced, lambda: True)
    assert np.count_nonzero((state.node != before) & ~forced) <= 1
    assert (state.node[before >= 0] >= 0).all()
    moved = np.flatnonzero(state.node != before)
    assert problem.partitions.movable[moved].all()
    assert problem.nodes.accepts[state.node[moved]].all()


def test_a_large_partition_displaces_smaller_ones() -> None:
    # apache/helix, issue 1653: 26 of 30 are needed, and no node has 8 free
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 3,
        load=[[3.0]] * 6 + [[8.0]],
        placement=[[0], [0], [1], [1], [2], [2], [-1]],
        replicas=1,
    )
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert result.audit.ok
    assert result.comparison.moves == 3


def test_those_displaced_displace_smaller_ones_in_turn() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[12.0], [8.0], [5.0], [3.0]],
        load=[[11.0], [7.0], [4.0], [2.0]],
        placement=[[-1], [0], [1], [2]],
        replicas=1,
    )
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert result.audit.ok
    assert np.asarray(result.placement).ravel().tolist() == [0, 1, 2, 3]


def test_what_no_room_can_be_made_for_stops_nobody_else() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 3,
        load=[[11.0], [4.0], [8.0], [3.0]],
        placement=[[-1], [-1], [0], [1]],
        replicas=1,
    )
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert np.asarray(result.placement).ravel().tolist()[0] == -1
    assert result.audit.counts["unassigned"] == 1
    assert result.audit.hard == 1 + result.audit.counts["leaderless"]


def test_the_first_replica_of_a_partition_goes_where_it_can_lead() -> None:
    given = {"load": [[1.0]], "leader_load": [[3.0]], "placement": [[-1]]}
    beside = ek.Cluster.from_arrays(capacity=[[2.0], [30.0], [2.0]], **given)
    placed = ek.solve(beside, goals=ek.Goals(level=None)).placement
    assert placed.node.tolist() == [1]
    nowhere = ek.Cluster.from_arrays(capacity=[[2.0], [2.0]], **given)
    assert ek.solve(nowhere, goals=ek.Goals(level=None)).audit.counts["capacity"] == 0


def ways(problem: Problem, state: State, k: int, roomy: list[int]) -> set[tuple[int, int, int]]:
    """Every node for ``k``, who makes way there, and where to, by the plain rules."""
    found = set()
    p = problem.partitions.owner[k]
    for i in np.flatnonzero(state.node >= 0).tolist():
        n = int(state.node[i])
        if problem.partitions.owner[i] == p or n == state.node[k]:
            continue
        for m in roomy:
            if m == n or not admits(problem, state, i, m):
                continue
            node = state.node.copy()
            node[i] = m
            away = state._replace(node=node)
            if admits(problem, away._replace(**recount(problem, away)), k, n):
                found.add((n, i, m))
    return found


@given(seeds, st.floats(0.3, 1.0))
def test_one_that_fits_nowhere_takes_over_from_one_that_fits_elsewhere(
    seed: int, room: float
) -> None:
    _, problem, state = random_problem(seed)
    problem.nodes.capacity[:] *= room
    limits = problem.rules.group_limit, problem.rules.group_term, problem.rules.needs
    size = np.max(problem.partitions.voter_load, axis=1, initial=0.0)
    nodes = len(state.replicas)
    roomy = np.flatnonzero(problem.nodes.accepts).astype(np.int32)
    for k in np.flatnonzero(state.node < 0).tolist()[:3]:
        before = state.node.copy()
        could = ways(problem, state, k, roomy.tolist())
        first, member = by_node(state.node, nodes)
        failed = take_over_each(
            problem, state, size, np.array([k]), 0, 1, first, member, roomy,
            np.empty(len(state.load)), np.full(nodes, np.inf), 1, 8,
        )  # fmt: skip
        check_counts(problem, state)
        changed = np.flatnonzero(state.node != before).tolist()
        if failed:
            assert changed == []
            assert not could or any(len(one) for one in limits)
        else:
            (i,) = set(changed) - {k}
            assert (int(before[i]), i, int(state.node[i])) in could
            assert state.node[k] == before[i]


def test_room_is_made_beside_capacities_that_are_next_to_nothing() -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[0.0, 2.3e-308], [0.0, np.inf], [0.0, 0.0]], load=[[0.0, 4.0]],
        placement=[[-1]], replicas=1, alive=[True, False, False],
    )  # fmt: skip
    result = ek.solve(cluster)
    assert result.status == "infeasible"
    assert result.placement.node.tolist() == [-1]
