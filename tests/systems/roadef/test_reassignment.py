"""The exact judge of machine-reassignment answers: the subject's example, and every constraint."""

from dataclasses import replace

import numpy as np
import pytest

from evenkeel.systems import roadef
from evenkeel.systems.roadef.reassignment import MoveDistance, RoadefModel, check
from tests.support import places

DATA = places.DATA / "roadef"
INITIAL = {"a1_1": 49_528_750, "a1_3": 583_662_270}


@pytest.fixture(scope="module")
def worked() -> RoadefModel:
    return roadef.native_of(roadef.read(DATA / "worked"))


@pytest.mark.parametrize(
    ("assignment", "cost"), [([0, 3, 0], 4200), ([0, 2, 0], 3510), ([0, 2, 1], 2411)]
)
def test_the_worked_example_of_the_subject(worked, assignment, cost):
    verdict = check(worked, np.array(assignment))
    assert verdict.cost == cost
    assert verdict.feasible


def test_the_parts_of_a_cost(worked):
    verdict = check(worked, np.array([0, 2, 0]))
    assert (verdict.load, verdict.balance) == (1500, 1700)
    assert (verdict.process_move, verdict.service_move, verdict.machine_move) == (100, 10, 200)


@pytest.mark.parametrize("name", sorted(INITIAL))
def test_initial_costs_are_the_published_ones(name):
    model = roadef.native_of(roadef.read(DATA / f"model_{name}.txt.gz"))
    verdict = check(model, model.initial)
    assert verdict.cost == INITIAL[name]
    assert verdict.feasible
    assert (verdict.process_move, verdict.service_move, verdict.machine_move) == (0, 0, 0)


@pytest.mark.parametrize(
    ("assignment", "constraint", "count"),
    [
        ([0, 0, 0], "conflict", 1),
        ([0, 1, 0], "spread", 1),
        ([1, 3, 0], "transient", 1),
        ([0, 3, 2], "capacity", 1),
    ],
)
def test_each_broken_constraint_is_named(worked, assignment, constraint, count):
    found = {b.constraint: b for b in check(worked, np.array(assignment)).breaches}
    assert found[constraint].count == count
    assert found[constraint].offenders


def test_a_dependency_binds_one_way(worked):
    roomy = replace(worked, capacity=worked.capacity * 100, spread=np.zeros(2, np.int64))
    # process 2 (service 1) needs one of service 0 in its neighbourhood
    found = check(roomy, np.array([0, 1, 3])).breaches
    assert [(b.constraint, b.count) for b in found] == [("dependency", 1)]
    assert check(roomy, np.array([2, 3, 3])).feasible
    assert check(roomy, np.array([0, 3, 1])).feasible


def test_what_left_still_counts_where_it_was_in_transient_resources(worked):
    # 12 and 6 of 30 used on machine 0; with 17 left, neither may be followed by anybody
    tight = replace(worked, capacity=np.where(np.arange(4)[:, None] == 0, [[17, 400]], 100_000))
    found = check(tight, np.array([1, 3, 1])).breaches
    assert [b.constraint for b in found] == ["transient"]
    lax = replace(tight, transient=np.zeros(2, bool))
    assert check(lax, np.array([1, 3, 1])).feasible


def test_large_integers_stay_exact():
    big = 2**32 - 1
    model = RoadefModel(
        transient=np.zeros(2, bool), load_weight=np.array([big, 0]),
        neighbourhood=np.zeros(2, np.int64), location=np.zeros(2, np.int64),
        capacity=np.array([[big, big]] * 2), safety=np.zeros((2, 2), np.int64),
        distance=MoveDistance((0, 0, 0), np.array([[0, big], [big, 0]], np.uint32)),
        spread=np.zeros(1, np.int64), needs=np.zeros((0, 2), np.int64),
        service=np.zeros(1, np.int64), requirement=np.array([[1, big]]),
        move_cost=np.array([big]), balance=np.array([[0, 1, big, big]]),
        process_weight=big, service_weight=big, machine_weight=big, initial=np.array([0]),
    )  # fmt: skip
    verdict = check(model, np.array([1]))
    assert verdict.load == big
    assert verdict.process_move == verdict.machine_move == big * big
    assert verdict.service_move == big
    assert verdict.balance == big * ((big * big - big) + big * (big - 1))


@pytest.mark.parametrize("assignment", [[0, 1], [0, 1, 4], [0, 1, -1]])
def test_an_assignment_of_something_else_is_refused(worked, assignment):
    with pytest.raises(ValueError, match="needs"):
        check(worked, np.array(assignment))


def test_a_verdict_reads_well(worked):
    assert str(check(worked, np.array([0, 2, 1]))).startswith("cost 2411 (load ")
    assert "conflict broken 1 times" in str(check(worked, np.array([0, 0, 0])))
