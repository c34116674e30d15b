"""What every range needs first, in one pass, and what raft lets go."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.scenarios.one_range import Replicas
from evenkeel.systems.cockroach.allocator.actions import ACTIONS, actions
from evenkeel.systems.cockroach.allocator.zone_configs import ZoneConfig, configs_of
from evenkeel_kernels.cockroach.actions import needed_non_voters, needed_voters, removable
from evenkeel_kernels.cockroach.tables import LEARNER, NON_VOTER, VOTER
from tests.naive.cockroach import replicas as naive
from tests.support.cockroach.problems import compiled, problems


@st.composite
def fleets(draw):
    """(states of stores, ranges as (voters, non-voters, learners, joint, config), configs)."""
    status = draw(st.lists(st.sampled_from([0, 0, 0, 1, 2, 3, 4, 5, 6]), min_size=1, max_size=9))
    wanted = st.integers(1, 6)
    configs = [
        ZoneConfig(replicas, draw(st.integers(0, replicas)))
        for replicas in draw(st.lists(wanted, min_size=1, max_size=3))
    ]
    ranges = []
    for _ in range(draw(st.integers(1, 6))):
        order = draw(st.permutations(range(len(status))))
        cut = sorted(draw(st.tuples(*[st.integers(0, len(status))] * 3)))
        ranges.append((
            order[: cut[0]], order[cut[0] : cut[1]], order[cut[1] : cut[2]][:1],
            draw(st.integers(0, 5)) == 0, draw(st.integers(0, len(configs) - 1)),
        ))  # fmt: skip
    return status, ranges, configs, draw(st.integers(0, 12))


@pytest.mark.small
@given(fleets())
def test_actions_and_priorities_of_all_ranges(fleet):
    status, ranges, wanted, hosts = fleet
    configs, _ = configs_of(wanted)
    rows = [[*v, *n, *learners, -1] for v, n, learners, _, _ in ranges]
    found = actions(
        first=np.cumsum([0] + [len(row) for row in rows]),
        store=[s for row in rows for s in row],
        role=[
            role
            for v, n, learners, _, _ in ranges
            for role in [VOTER] * len(v) + [NON_VOTER] * len(n) + [LEARNER] * len(learners) + [0]
        ],
        status=status,
        configs=configs,
        hosts=hosts,
        config=[config for *_, config in ranges],
        joint=[joint for *_, joint, _ in ranges],
    )
    for p, (voters, others, learners, joint, config) in enumerate(ranges):
        c = wanted[config]
        expected = naive.action(
            status, voters, others, c.num_replicas, c.voters, hosts, len(learners), joint
        )
        assert (ACTIONS[found.action[p]], found.priority[p]) == expected


@pytest.mark.small
@pytest.mark.parametrize("configured", range(1, 9))
def test_a_small_cluster_gets_an_odd_factor(configured):
    for hosts in range(10):
        need = needed_voters(configured, hosts)
        assert need == naive.needed_voters(configured, hosts)
        assert need == configured or need % 2 == 1
        assert 0 <= needed_non_voters(configured + 2, configured, hosts) <= 2


@pytest.mark.small
@given(st.lists(st.booleans(), min_size=1, max_size=7), st.integers(-1, 6))
def test_what_raft_lets_go_leaves_a_quorum_that_is_up_to_date(up, newest):
    newest = min(newest, len(up) - 1)
    free = np.zeros(len(up), np.bool_)
    removable(np.array(up), len(up), newest, free)
    counted = [one or i == newest for i, one in enumerate(up)]
    for i in np.flatnonzero(free):
        left = [one for j, one in enumerate(counted) if j != i]
        assert not left or sum(left) >= len(left) // 2 + 1
        assert i != newest
    if sum(counted) < len(up) // 2 + 1:
        assert not free.any()


@pytest.mark.small
@given(problems())
def test_a_voter_that_the_quorum_needs_is_never_removed(case):
    problem, voters, others = case
    allocator, view = compiled(problem)
    for lagging in combinations(range(len(voters)), len(voters) // 2):
        up = [i not in lagging for i in range(len(voters))]
        free = np.zeros(len(voters), np.bool_)
        removable(np.array(up), len(voters), -1, free)
        allowed = {voters[i] for i in np.flatnonzero(free)} | {-1}
        held = Replicas(voters, others, up_to_date=up)
        assert allocator.remove(view, held) in allowed
        found = allocator.rebalance(view, held)
        assert found.target == -1 or found.target != found.removed
