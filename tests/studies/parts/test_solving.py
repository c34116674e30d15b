"""Solving in parts: what one piece promises, whoever solves and however many parts there are."""

import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.bounds import bounds
from evenkeel.studies import parts as pieces
from evenkeel.studies.parts import FEWEST, PROOF, REPLICAS, parts_of, solve_piece, split, split_up
from tests.support.effort import mostly_long
from tests.support.instances import as_cluster, generate
from tests.support.random_problems import random_cluster

GOALS = ek.Goals(level=0.1)


@pytest.fixture(scope="module")
def cluster():
    return as_cluster(generate(P=3_000, N=30, Z=5, seed=3))


def assert_same(one, other):
    assert np.array_equal(one.placement.node, other.placement.node)
    assert np.array_equal(one.placement.leader, other.placement.leader)
    assert (one.status, one.message, one.warnings) == (other.status, other.message, other.warnings)
    assert one.bounds.moves_level == other.bounds.moves_level


def test_the_answer_is_the_same_whoever_solves_the_parts(cluster):
    alone = ek.solve_in_parts(cluster, 4, goals=GOALS, seed=5)
    assert alone.success
    for count in (1, 3):
        with ThreadPoolExecutor(count) as threads:
            assert_same(ek.solve_in_parts(cluster, 4, threads, goals=GOALS, seed=5), alone)
    other = ek.solve_in_parts(cluster, 4, goals=GOALS, seed=6)
    assert not np.array_equal(other.placement.node, alone.placement.node)


def test_a_part_is_the_same_in_another_process(cluster):
    plan = split_up(cluster, GOALS, split(cluster, 3, 0), 3, 0)
    here, there = solve_piece(plan, 1), solve_piece(pickle.loads(pickle.dumps(plan)), 1)
    assert np.array_equal(here.node, there.node)
    assert np.array_equal(here.leader, there.leader)
    assert solve_piece(plan, PROOF).moves_level == bounds(cluster, GOALS).moves_level


@pytest.mark.parametrize("parts", [2, 4])
def test_little_is_lost_against_one_piece(parts):
    """Where nodes hold as many replicas of each part as parts are made to have."""
    cluster = as_cluster(generate(P=FEWEST * 10 * parts, N=30, Z=5, seed=1))
    whole = ek.solve(cluster, goals=ek.Goals(level=0.04))
    found = ek.solve_in_parts(cluster, parts, goals=ek.Goals(level=0.04))
    assert found.success
    assert found.comparison.moves <= 1.03 * whole.comparison.moves
    assert (found.levelness.ratio <= 1.005 * whole.levelness.ratio).all()
    assert found.bounds.moves_level == bounds(cluster, whole.goals).moves_level


@pytest.mark.parametrize("seed", mostly_long([*range(20), 52, 68, 70], [3, 52]))
def test_nothing_is_worse_than_it_came(seed):
    """Rules of every kind, more parts than partitions, nodes and zones that take nothing."""
    cluster = random_cluster(seed)
    whole = ek.solve(cluster, goals=GOALS, seed=seed)
    for parts in (3, 20):
        found = ek.solve_in_parts(cluster, parts, goals=GOALS, seed=seed)
        assert not found.regressions
        assert not any("left to the whole" in one for one in found.warnings)
        assert found.audit.hard <= whole.audit.hard
        assert found.success or not whole.success


def test_one_part_is_one_piece(cluster):
    whole = ek.solve(cluster, goals=GOALS)
    found = ek.solve_in_parts(cluster, 1, goals=GOALS)
    assert_same(found, whole)


def test_floors_and_leaders_are_goals_of_the_whole(cluster):
    goals = ek.Goals(level=0.1, leaders=0.2, floor=0.3)
    found = ek.solve_in_parts(cluster, 3, goals=goals)
    assert found.success
    assert (found.levelness.loads >= found.bounds.floor * (1 - 1e-9)).all()
    assert (found.levelness.leaders <= found.bounds.leader_target).all()


def test_what_a_part_cannot_do_is_done_over_the_whole(cluster, monkeypatch):
    run_method = pieces.run_method

    def failing(method, given, **asked):
        if asked["seed"] == 1:
            raise MemoryError("too large")
        return run_method(method, given, **asked)

    monkeypatch.setattr(pieces, "run_method", failing)
    found = ek.solve_in_parts(cluster, 3, goals=GOALS)
    assert found.success
    assert not found.regressions
    assert found.warnings == ("Part 1 was left to the whole: MemoryError: too large.",)


def test_parts_that_are_not_begun_stay_as_they_came(cluster):
    told = []

    def stop(done, total):
        told.append((done, total))
        if done == 2:  # the proof and a part
            raise StopIteration

    found = ek.solve_in_parts(cluster, 3, goals=GOALS, callback=stop)
    assert told == [(1, 4), (2, 4)]
    assert found.stop_reason == "interrupted"
    assert not found.regressions
    part = split(cluster, 3, 0)[cluster.placement.owner]
    moved = found.placement.node != cluster.placement.node
    assert moved[part == 0].any()
    assert not moved[part != 0].any()


def test_every_problem_is_named():
    cluster = ek.Cluster.from_arrays(capacity=[[1.0]], load=[[1.0]], replicas=1)
    with pytest.raises(ek.InvalidInput) as caught:
        ek.solve_in_parts(cluster, 0, executor=4, goals=ek.Cost(), callback="x", seed="y")
    assert {one.path for one in caught.value.faults} == {"parts", "executor", "goals", "callback"}
    for given in ({"seed": "y"}, {"goals": ek.Goals(level={"cpu": 1})}, {"parts": True}):
        with pytest.raises(ek.InvalidInput):
            ek.solve_in_parts(cluster, **given)
    with pytest.raises(ek.InvalidInput):
        ek.solve_in_parts("cluster")


def test_a_cluster_of_next_to_nothing():
    nothing = ek.Cluster.from_arrays(capacity=[[1.0]], load=np.zeros((0, 1)))
    assert ek.solve_in_parts(nothing, 3).success
    nowhere = ek.Cluster.from_arrays(capacity=np.zeros((0, 1)), load=[[1.0]], replicas=1)
    assert ek.solve_in_parts(nowhere, 3).status == ek.solve(nowhere).status
    dead = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4, alive=[False, False]
    )
    assert not ek.solve_in_parts(dead, 2).regressions


def test_a_cluster_is_split_only_if_it_is_large(cluster):
    assert parts_of(cluster) == 1

    large = SimpleNamespace(
        nodes=range(20_000), placement=SimpleNamespace(node=range(4 * REPLICAS))
    )
    assert parts_of(large) == 4


def test_memory_per_partition_is_as_documented():
    """Beyond the cluster itself; numpy tells of all that it takes. In docs/tasks/scale.md."""
    for dimensions, most in ((1, 300), (3, 460)):
        cluster = as_cluster(generate(P=50_000, N=200, D=dimensions, Z=5, seed=1))
        tracemalloc.start()
        try:
            ek.solve_in_parts(cluster, 4, goals=GOALS)
            assert tracemalloc.get_traced_memory()[1] / 50_000 < most
        finally:
            tracemalloc.stop()
