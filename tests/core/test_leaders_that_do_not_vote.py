"""Who leads though it does not vote weighs as one that does not vote once it stands down."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.methods.shared.compile import compile_problem, compile_state
from evenkeel_kernels.build.jit import no_alloc
from evenkeel_kernels.core.leadership import admits_leader
from evenkeel_kernels.core.node_scan import new_scan
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.core.state import transfer_leader
from evenkeel_kernels.levelling.leaders.moves import replace_leaders


@no_alloc
def lead(problem: Problem, state: State, p: int, slot: int) -> None:
    """Let the replica in a slot lead."""
    transfer_leader(problem, state, p, slot)


@no_alloc
def may_lead(problem: Problem, state: State, p: int, slot: int) -> bool:
    """Whether the replica in a slot may lead."""
    return admits_leader(problem, state, p, slot)


def led_by_a_non_voter(room: float) -> ek.Cluster:
    """One partition, led by its last replica, which does not vote and weighs 4 if it follows."""
    return ek.Cluster.from_arrays(
        capacity=[[9.0], [9.0], [room]],
        load=[[2.0]],
        leader_load=[[3.0]],
        non_voter_load=[[4.0]],
        placement=[[0, 1, 2]],
        voters=[2],
        leader=[2],
        domains={"zone": ["a", "a", "b"]},
        tier_capacity={"zone": [[18.0], [room]]},
    )


@pytest.mark.small
def test_its_load_is_booked_as_what_it_becomes() -> None:
    cluster = led_by_a_non_voter(9.0)
    problem = compile_problem(cluster, np.full((1, 3), 9.0), np.ones(1))
    stays = np.ones(3, bool)
    state = compile_state(cluster, problem, cluster.placement, stays)
    assert state.load[0].tolist() == [2.0, 2.0, 3.0]
    lead(problem, state, 0, 0)
    assert state.load[0].tolist() == [3.0, 2.0, 4.0]
    assert state.domain_load[0, :2].tolist() == [5.0, 4.0]
    lead(problem, state, 0, 2)
    assert state.load[0].tolist() == [2.0, 2.0, 3.0]


@pytest.mark.small
@pytest.mark.parametrize(("room", "may"), [(9.0, True), (4.0, True), (3.5, False)])
def test_it_stands_down_only_where_there_is_room_for_what_it_becomes(
    room: float, may: bool
) -> None:
    cluster = led_by_a_non_voter(room)
    problem = compile_problem(cluster, np.full((1, 3), 9.0), np.ones(1))
    state = compile_state(cluster, problem, cluster.placement, np.ones(3, bool))
    assert bool(may_lead(problem, state, 0, 0)) is may
    replace_leaders(problem, state, new_scan(problem, np.zeros(1)))
    assert state.load[0, 2] <= max(room, 3.0)
