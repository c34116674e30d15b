"""The pipeline's engine over WAGED: what it asks for, what it makes of answers, how it stops."""

from dataclasses import replace

import numpy as np
import pytest

from evenkeel.control.engines.engine import (
    CalculationFailed,
    Cancelled,
    Change,
    FailureKind,
    Scope,
    Task,
)
from evenkeel.control.engines.waged import WagedEngine
from evenkeel.control.executors import InlineWorkers
from evenkeel.control.pipeline import ENGINES, Pipeline, engine_of
from evenkeel.model.assignment import Assignment
from evenkeel.model.errors import InvalidInput
from evenkeel.systems.helix.options import Waged
from tests.support.pipeline.engines import assignment, cluster, rows

EMPTY = [[], [], []]
WHERE = [[0, 1], [2, 3], [4, 5]]


def calculate(scope, current, *, baseline=None, options=None, stop=lambda: False, **state):
    task = Task(
        scope, cluster(WHERE, **state), assignment(current),
        baseline=None if baseline is None else assignment(baseline),
        changes=frozenset([Change.NODES]) if scope is Scope.GLOBAL else frozenset(), stop=stop,
    )  # fmt: skip
    return WagedEngine(options or Waged())(task)


class TestWaged:
    def test_all_scopes(self):
        everything = calculate(Scope.GLOBAL, EMPTY)
        assert everything.placed == 6 and set(everything.timings) == {"model", "sort", "fit"}
        rescued = calculate(Scope.EMERGENCY, WHERE, gone=[2])
        assert rescued.placed == 1 and rows(rescued.assignment)[0] == [0, 1]
        assert 2 not in rescued.assignment.node
        partial = calculate(Scope.PARTIAL, WHERE, baseline=WHERE)
        assert partial.placed == 0 and rows(partial.assignment) == WHERE
        shown = calculate(
            Scope.OVERWRITE, WHERE, down=[2], min_active=2, keeps=[True] * 6
        )  # its places are kept
        assert shown.placed == 1 and {2, 3} < set(rows(shown.assignment)[1])

    def test_what_no_baseline_has_seen_stays(self):
        found = calculate(Scope.PARTIAL, WHERE, baseline=[[0, 1], [], [4, 5]])
        assert rows(found.assignment) == WHERE

    def test_no_room_is_a_failure_of_its_kind(self):
        with pytest.raises(CalculationFailed, match="FAILED_TO_CALCULATE") as caught:
            calculate(Scope.GLOBAL, EMPTY, nodes=6, capacity=np.zeros((6, 1)))
        assert caught.value.kind is FailureKind.FAILED_TO_CALCULATE

    def test_what_it_cannot_express_is_invalid_input(self):
        with pytest.raises(CalculationFailed) as caught:
            calculate(Scope.GLOBAL, EMPTY, load=np.full((3, 1), 0.5))
        assert caught.value.kind is FailureKind.INVALID_INPUT

    @pytest.mark.parametrize("scope", [Scope.GLOBAL, Scope.EMERGENCY])
    def test_it_stops_when_it_is_told_to(self, scope):
        with pytest.raises(Cancelled):
            calculate(scope, EMPTY if scope is Scope.GLOBAL else WHERE, gone=[2], stop=lambda: True)

    def test_options_are_kept(self):
        online = Waged(states={"ONLINE": "R"})
        start = cluster([[0, 1], [1, 2]], group=[0, 1], group_names=["a", "b"])
        assert not WagedEngine(online).one_leads(start).any()
        mixed = Waged(group_states={"b": {"ONLINE": "R"}})
        assert WagedEngine(mixed).one_leads(start).tolist() == [True, False]
        assert calculate(Scope.GLOBAL, EMPTY, options=online).assignment.state.tolist() == [0] * 6
        engine = engine_of("helix_waged", online)
        assert engine == WagedEngine(online)


@pytest.mark.parametrize("method", ENGINES)
def test_every_method_carries_a_cluster_through_a_loss(method):
    start = cluster([[0, 1]] * 6, min_active=1)
    lost = cluster([[0, 1]] * 6, min_active=1, gone=[1])
    with Pipeline(method, workers=InlineWorkers()) as pipeline:
        before, after = pipeline.run(start), pipeline.run(lost)
        again = pipeline.run(lost)
    assert after.emergency and not before.failures and not after.failures
    assert all(len(row) == 2 and 1 not in row for row in rows(after.assignment))
    assert not again.emergency and again.assignment.same_as(after.assignment)


def test_options_of_the_wrong_kind_are_refused():
    for method, options in (("helix_waged", object()), ("balance", {"speed": 9})):
        with pytest.raises(InvalidInput, match="options"):
            engine_of(method, options)
    assert engine_of("balance", {"level": 0.05}).level == 0.05


@pytest.mark.parametrize("method", ENGINES)
def test_a_calculation_stops_in_its_midst(method):
    """It asks many times while it runs; told to stop at the second, it goes on no further."""
    asked = []

    def stop_at(number):
        def stop():
            asked.append(1)
            return len(asked) >= number

        return stop

    count = 20_000
    load = np.random.default_rng(1).integers(1, 200, (count, 1)).astype(float) ** 2 // 9
    many = cluster(np.full((count, 3), -1), 200, load=load, capacity=np.full((200, 1), 1e6))
    none = np.zeros(0, np.int32)
    empty = Assignment.of_rows(count, none, none, none.astype(np.uint8))
    task = Task(Scope.GLOBAL, many, empty, changes=frozenset(Change))
    engine_of(method, None)(replace(task, stop=stop_at(10**9)))
    whole = len(asked)
    assert whole > 4
    asked.clear()
    with pytest.raises(Cancelled):
        engine_of(method, None)(replace(task, stop=stop_at(2)))
    assert len(asked) <= 3
