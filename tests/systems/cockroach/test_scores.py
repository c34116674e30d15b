"""Whom the allocator adds, removes and moves, against decisions spelled out store by store."""

import pytest
from hypothesis import given, settings

from bench.scenarios.one_range import Allocator, Replicas, stores_like
from evenkeel.systems.cockroach.allocator.range_decider import BY_COUNT
from evenkeel.systems.cockroach.allocator.zone_configs import (
    Site,
    ZoneConfig,
    configs_of,
    diversity,
    localities_of,
)
from evenkeel_kernels.cockroach.tables import NEUTRAL, NON_VOTER, VOTER
from tests.naive.cockroach import replicas as naive
from tests.support.cockroach.problems import compiled, held, problems

ROLES = [(VOTER, True), (NON_VOTER, False)]


@pytest.mark.small
@given(problems())
def test_diversity_of_every_pair_is_that_of_their_tiers(case):
    problem, _, _ = case
    allocator, _ = compiled(problem)
    found = allocator.localities
    for i, a in enumerate(problem.stores):
        for j, b in enumerate(problem.stores):
            pair = found.pair[found.alike[i], found.alike[j]]
            together = found.host[i] == found.host[j]
            assert (0.0 if together else pair) == pytest.approx(naive.pair(a, b))


@pytest.mark.parametrize(("role", "is_voter"), ROLES)
@pytest.mark.small
@given(case=problems())
def test_an_addition_is_one_of_the_best(case, role, is_voter):
    problem, voters, others = case
    allocator, view = compiled(problem)
    best, outcomes = naive.to_add(problem, voters, others, is_voter)
    assert allocator.best_to_add(view, held(voters, others), role) == best
    drawn = {allocator.add(view, held(voters, others), role, seed) for seed in range(12)}
    assert drawn <= (outcomes or {-1})


@pytest.mark.small
@given(case=problems())
def test_what_stands_in_for_a_lost_voter_is_one_of_the_good(case):
    problem, voters, others = case
    allocator, view = compiled(problem)
    lost = voters[0]
    good, outcomes = naive.to_add(problem, voters, others, True, lost, recovers=True)
    range_ = held(voters, others, replaced=lost)
    drawn = {allocator.add(view, range_, VOTER, seed) for seed in range(12)}
    assert drawn <= (outcomes or {-1})
    assert drawn <= {*good, -1}


@pytest.mark.parametrize(("role", "is_voter"), ROLES)
@pytest.mark.small
@given(case=problems())
def test_a_removal_is_one_of_the_worst(case, role, is_voter):
    problem, voters, others = case
    allocator, view = compiled(problem)
    worst, outcomes = naive.to_remove(problem, voters, others, is_voter)
    assert allocator.worst_to_remove(view, held(voters, others), role) == worst
    drawn = {allocator.remove(view, held(voters, others), role, seed) for seed in range(12)}
    assert drawn <= (outcomes or {-1})


@pytest.mark.parametrize(("role", "is_voter"), ROLES)
@pytest.mark.small
@settings(max_examples=100)
@given(case=problems())
def test_a_rebalance_is_a_possible_outcome_of_the_draws(case, role, is_voter):
    problem, voters, others = case
    allocator, view = compiled(problem)
    range_ = held(voters, others)
    should, outcomes = naive.rebalance(problem, voters, others, is_voter)
    assert allocator.should_rebalance(view, range_, role) == should
    for seed in range(12):
        found = allocator.rebalance(view, range_, role, seed)
        moved = (found.target, found.removed) if found.target >= 0 else None
        assert moved in outcomes


@pytest.mark.parametrize(("role", "is_voter"), ROLES)
@pytest.mark.small
@given(case=problems())
def test_replacements_are_the_best_of_those_strictly_better(case, role, is_voter):
    problem, voters, others = case
    allocator, view = compiled(problem)
    row = voters if is_voter else others
    found, _ = naive.classes(problem, voters, others, is_voter)
    expected = {}
    for now, members in found:
        better = [c["store"] for c in members if naive.compare(c, now) > 0]
        better = sorted(s for s in better if s not in row)
        if better:
            expected[now["store"]] = better
    assert allocator.replacements(view, held(voters, others), role) == expected


@pytest.mark.small
def test_the_founding_text_s_four_stores():
    """By counts alone s3 or s4 would give way to s2; that would bring two replicas together."""
    places = [("west", "a"), ("west", "b"), ("central", "a"), ("east", "a")]
    sites = [
        Site(i + 1, (("region", region), ("zone", zone))) for i, (region, zone) in enumerate(places)
    ]
    configs, conjunctions = configs_of([ZoneConfig(num_replicas=3)])
    allocator = Allocator(localities_of(sites, conjunctions), configs)
    stores = stores_like(4, ranges=[10, 10, 100, 100])
    range_ = Replicas([0, 2, 3])
    assert allocator.replacements(stores, range_) == {}
    for seed in range(100):
        found = allocator.rebalance(stores, range_, seed=seed)
        assert found.target == -1 or found.removed == 0
    # with more ranges on s1, s2 may come, but only in its place
    stores = stores_like(4, ranges=[100, 10, 100, 100])
    moves = {allocator.rebalance(stores, range_, seed=seed)[:2] for seed in range(100)}
    assert moves == {(1, 0)}


@pytest.mark.small
@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((), (), 0.0),
        (("us",), ("us",), 0.0),
        (("us",), ("eu",), 1.0),
        (("us", "a"), ("us", "b"), 0.5),
        (("us",), ("us", "a"), 0.5),
        (("us", "a", "1"), ("us", "b"), 0.5),
    ],
)
def test_diversity_of_localities_of_unequal_depth(a, b, expected):
    assert diversity(a, b) == diversity(b, a) == expected


@pytest.mark.small
def test_a_host_whose_id_is_another_s_tier_counts_as_that_value():
    sites = [Site(5, (("region", "us"),)), Site(1, (("region", "us"), ("rack", "5"))), Site(2)]
    found = localities_of(sites, [])
    assert found.pair[found.alike[0], found.alike[1]] == pytest.approx(1 / 3)


@pytest.mark.small
def test_where_counts_are_left_to_another_allocator_only_needs_move_replicas():
    sites = [Site(i, (("zone", zone),)) for i, zone in enumerate("aabc")]
    configs, conjunctions = configs_of([ZoneConfig(num_replicas=2)])
    neutral = BY_COUNT._replace(kind=NEUTRAL)
    allocator = Allocator(localities_of(sites, conjunctions), configs, scorer=neutral)
    stores = stores_like(4, ranges=[900, 0, 900, 0])
    assert allocator.rebalance(stores, Replicas([0, 2])).target == -1
    moves = {allocator.rebalance(stores, Replicas([0, 1]), seed=seed).target for seed in range(50)}
    assert moves == {2, 3}
