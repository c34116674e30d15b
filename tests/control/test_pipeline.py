"""One step of the pipeline: what it calculates, what it keeps, and what it leaves alone."""

import logging
from typing import NamedTuple

import numpy as np
import pytest

from evenkeel.control.clock import ManualClock
from evenkeel.control.engines.engine import CalculationFailed, Change, FailureKind, Scope
from evenkeel.control.executors import InlineWorkers, ManualWorkers
from evenkeel.control.operations import with_operations
from evenkeel.control.pipeline import Pipeline
from evenkeel.control.store import DiskStore, Kind, MemoryStore
from evenkeel.control.view import Delay
from evenkeel.model.errors import InvalidInput
from evenkeel.systems.helix.options import Waged
from tests.support.pipeline.engines import PlainEngine, cluster, fails, failure, rows

LEVEL = [[0, 1], [2, 3], [4, 5]]


class Rig(NamedTuple):
    """A pipeline and all that it works with."""

    pipeline: Pipeline
    engine: PlainEngine
    workers: ManualWorkers
    clock: ManualClock


def manual(*, levels=True, **settings):
    """A pipeline whose workers do nothing by themselves."""
    engine, workers, clock = PlainEngine(levels=levels), ManualWorkers(), ManualClock()
    return Rig(Pipeline(engine, workers=workers, clock=clock, **settings), engine, workers, clock)


def at_rest(placement=LEVEL, nodes=6, **settings):
    """A pipeline that has calculated all there is to calculate, and its cluster."""
    rig = manual(**settings)
    start = cluster(placement, nodes)
    for _ in range(50):
        rig.pipeline.run(start)
        if not rig.workers.waiting(Scope.GLOBAL) and not rig.workers.waiting(Scope.PARTIAL):
            rig.engine.calls.clear()
            return rig
        rig.workers.work(Scope.GLOBAL)
        rig.workers.work(Scope.PARTIAL)
    pytest.fail("never came to rest")


class TestNothingWrong:
    def test_nothing_is_calculated(self):
        rig = at_rest()
        for _ in range(3):
            result = rig.pipeline.run(cluster(LEVEL))
        assert rig.engine.calls == []
        assert not result.partial_started and not result.baseline_started
        assert not result.emergency and not result.overwritten
        assert rows(result.assignment) == LEVEL

    def test_an_equal_snapshot_is_no_event(self):
        rig = at_rest()
        again = cluster(LEVEL)
        assert not rig.pipeline.run(again).partial_started
        assert rig.engine.calls == []

    def test_partial_results_end(self):
        """A partial rebalance starts no other one unless it found something: no cycle."""
        engine = PlainEngine()
        triggered = []
        with Pipeline(
            engine, workers=InlineWorkers(), on_trigger=lambda: triggered.append(1)
        ) as pipeline:
            start = cluster([[0, 1]] * 6)
            for _ in range(40):
                pipeline.run(start)
            assert engine.count(Scope.PARTIAL) == len(triggered) + 1
            held = np.bincount(pipeline.run(start).assignment.node)
            assert held.max() - held.min() <= 1


class TestBaseline:
    def test_a_live_instance_alone_asks_for_none(self):
        rig = at_rest(delay=Delay(100.0))
        rig.pipeline.run(cluster(LEVEL, down=[0]))
        rig.pipeline.run(cluster(LEVEL))
        assert rig.workers.waiting(Scope.GLOBAL) == 0

    @pytest.mark.parametrize(
        ("change", "kinds", "groups"),
        [
            ({"capacity": np.full((6, 1), 90.0)}, {Change.NODES}, ()),
            ({"load": np.array([[1.0], [2.0], [1.0]])}, {Change.GROUPS}, (1,)),
            ({"min_active": 1}, {Change.GROUPS}, (0, 1)),
            ({"dimensions": ["cpu"]}, {Change.CLUSTER}, ()),
            ({"node_names": list("uvwxyz")}, {Change.NODES}, ()),
            ({"keeps": [True] * 5 + [False]}, {Change.NODES}, ()),
            ({"weight": [2.0] * 6}, {Change.NODES}, ()),
        ],
    )
    def test_it_knows_what_changed(self, change, kinds, groups):
        rig = manual()
        group = np.array([0, 1, 1], np.int32)
        rig.pipeline.run(cluster(LEVEL, group=group))
        rig.workers.work(Scope.GLOBAL)
        rig.engine.calls.clear()
        rig.pipeline.run(cluster(LEVEL, group=group, **change))
        rig.workers.work(Scope.GLOBAL)
        task = next(task for task in rig.engine.calls if task.scope is Scope.GLOBAL)
        assert (task.changes, task.groups) == (frozenset(kinds), groups)

    def test_a_node_that_came_alive_counts_once_something_else_did(self):
        rig = manual(delay=Delay(100.0))
        rig.pipeline.run(cluster(LEVEL, down=[5]))
        rig.workers.work(Scope.GLOBAL)
        assert not rig.pipeline.run(cluster(LEVEL)).baseline_started
        rig.pipeline.run(cluster(LEVEL, load=np.full((3, 1), 2.0)))
        rig.workers.work(Scope.GLOBAL)
        assert rig.engine.calls[-1].changes == {Change.GROUPS, Change.NODES}

    def test_changes_while_one_runs_are_followed_by_another(self):
        rig = manual()
        rig.pipeline.run(cluster(LEVEL))
        rig.pipeline.run(cluster(LEVEL, load=np.full((3, 1), 2.0)))
        assert rig.workers.waiting(Scope.GLOBAL) == 1
        rig.workers.work(Scope.GLOBAL)
        assert rig.workers.waiting(Scope.GLOBAL) == 1  # nobody had to run the pipeline again
        rig.workers.work(Scope.GLOBAL)
        assert rig.workers.waiting(Scope.GLOBAL) == 0

    def test_one_that_failed_is_tried_again_when_something_changed(self):
        rig = manual()
        rig.engine.before = fails(Scope.GLOBAL, failure(FailureKind.FAILED_TO_CALCULATE))
        rig.pipeline.run(cluster(LEVEL))
        rig.workers.work(Scope.GLOBAL)
        assert not rig.pipeline.run(cluster(LEVEL)).baseline_started
        assert rig.pipeline.run(cluster(LEVEL, load=np.full((3, 1), 2.0))).baseline_started


class TestEmergency:
    def test_only_what_sits_on_lost_nodes_moves(self):
        rig = at_rest()
        result = rig.pipeline.run(cluster(LEVEL, gone=[2]))
        assert result.emergency
        assert [task.scope for task in rig.engine.calls] == [Scope.EMERGENCY]
        assert rows(result.assignment) == [[0, 1], [3, 0], [4, 5]]
        assert result.best_version == 1
        assert result.partial_started

    def test_it_needs_no_baseline(self):
        rig = manual()
        result = rig.pipeline.run(cluster(LEVEL, gone=[2]))
        assert result.emergency and result.baseline_version == 0
        assert 2 not in result.assignment.node

    def test_nodes_that_vanished_are_lost_too(self):
        names = [f"n{i}" for i in range(6)]
        rig = at_rest()
        rig.pipeline.run(cluster(LEVEL, gone=[5]))  # something is in the store
        left = cluster([[-1, -1]] * 3, nodes=4, names=[names[i] for i in (0, 1, 3, 4)])
        result = rig.pipeline.run(left)
        assert result.emergency
        # by name: [n0, n1], [n2, n3] and [n4, n0] before
        assert rows(result.assignment)[0] == [0, 1]
        assert 2 in rows(result.assignment)[1]
        assert all(len(row) == 2 for row in rows(result.assignment))

    def test_what_cannot_be_placed_is_not_tried_again_for_nothing(self):
        rig = at_rest()
        rig.engine.before = fails(Scope.EMERGENCY, failure(FailureKind.FAILED_TO_CALCULATE))
        lost = cluster(LEVEL, gone=[2])
        assert len(rig.pipeline.run(lost).failures) == 1
        partial = rig.workers.waiting(Scope.PARTIAL)
        assert partial == 1
        again = rig.pipeline.run(lost)
        assert not again.failures and not again.emergency
        assert rig.engine.count(Scope.EMERGENCY) == 1
        assert rig.workers.waiting(Scope.PARTIAL) == 1  # and what may still help runs in peace
        rig.engine.before = None
        assert rig.pipeline.run(cluster(LEVEL, 7, gone=[2])).emergency

    def test_failures_of_most_kinds_leave_the_last_known_good(self):
        rig = at_rest()
        rig.engine.before = fails(Scope.EMERGENCY, failure(FailureKind.INVALID_CLUSTER_STATUS))
        result = rig.pipeline.run(cluster(LEVEL, gone=[2]))
        assert rows(result.assignment) == LEVEL
        assert [one.kind for one in result.failures] == [FailureKind.INVALID_CLUSTER_STATUS]
        assert rig.pipeline.metrics["rebalance_failure_counter"] == 1

    @pytest.mark.parametrize(
        "error",
        [failure(FailureKind.INVALID_REBALANCER_STATUS), failure(FailureKind.UNKNOWN_FAILURE),
         ZeroDivisionError("of the engine")],
    )  # fmt: skip
    def test_failures_of_two_kinds_reach_the_caller(self, error):
        rig = at_rest()
        rig.engine.before = fails(Scope.EMERGENCY, error)
        with pytest.raises(CalculationFailed, match="Failure Type"):
            rig.pipeline.run(cluster(LEVEL, gone=[2]))
        assert rig.pipeline.metrics["rebalance_failure_counter"] == 1
        rig.engine.before = None
        assert rig.pipeline.run(cluster(LEVEL, gone=[2])).emergency

    def test_failures_beside_the_pipeline_are_told_with_the_next_step(self):
        rig = at_rest([[0, 1]] * 3)
        rig.engine.before = fails(Scope.PARTIAL, ZeroDivisionError("of the engine"))
        rig.pipeline.run(cluster([[0, 1]] * 3, load=np.full((3, 1), 2.0)))
        rig.workers.work(Scope.PARTIAL)
        result = rig.pipeline.run(cluster(LEVEL))
        assert [one.kind for one in result.failures] == [FailureKind.UNKNOWN_FAILURE]
        assert rig.pipeline.run(cluster(LEVEL)).failures == ()


class TestDelay:
    def test_a_node_that_is_down_keeps_its_places_for_a_while(self):
        rig = manual(delay=Delay(60.0))
        rig.clock.advance(1000.0)
        down = cluster(LEVEL, down=[2], since=np.full(6, 990.0))
        result = rig.pipeline.run(down)
        assert not result.emergency and result.wake_at == 1050.0
        rig.clock.advance(49.0)
        assert not rig.pipeline.run(down).emergency
        rig.clock.advance(1.0)
        result = rig.pipeline.run(down)
        assert result.emergency and result.wake_at is None

    def test_on_demand_ends_all_windows(self):
        rig = manual(delay=Delay(60.0))
        down = cluster(LEVEL, down=[2])
        rig.clock.advance(1.0)
        assert not rig.pipeline.run(down).emergency
        rig.clock.advance(1.0)
        rig.pipeline.rebalance_now()
        assert rig.pipeline.run(down).emergency


class TestOverwrite:
    def short(self, **settings):
        """At rest; then one replica of the first partition is down."""
        return at_rest(delay=Delay(60.0), **settings), cluster(LEVEL, down=[0], min_active=2)

    def test_it_is_shown_and_not_kept(self):
        rig, down = self.short()
        before = rig.pipeline.run(cluster(LEVEL)).best_version
        result = rig.pipeline.run(down)
        assert result.overwritten and not result.emergency
        assert set(rows(result.assignment)[0]) > {0, 1}
        assert result.best_version == before
        assert rig.pipeline.run(cluster(LEVEL, min_active=2)).overwritten is False

    def test_it_is_calculated_once(self):
        rig, down = self.short()
        first = rig.pipeline.run(down)
        calls = len(rig.engine.calls)
        again = rig.pipeline.run(down)
        assert len(rig.engine.calls) == calls
        assert again.overwritten and again.assignment.same_as(first.assignment)

    def test_the_texts_way_takes_the_nodes_of_the_baseline(self):
        """The baseline has the partition on nodes 0 and 1; the best possible on 1 and 2."""
        rig = manual(levels=False, delay=Delay(60.0))
        rig.pipeline.run(cluster([[2, 1]]))
        rig.workers.work(Scope.GLOBAL)
        shown = rig.pipeline.run(cluster([[2, 1]], down=[2], min_active=2)).assignment
        assert {*rows(shown)[0]} == {0, 1, 2}

    def test_the_codes_way_starts_from_the_best_possible(self):
        rig = manual(levels=False, delay=Delay(60.0), overwrite_from="best_possible")
        rig.pipeline.run(cluster([[2, 1]]))
        rig.workers.work(Scope.GLOBAL)
        rig.pipeline.run(cluster([[2, 1]], down=[2], min_active=2))
        tasks = [task for task in rig.engine.calls if task.scope is Scope.OVERWRITE]
        assert [rows(task.current) for task in tasks] == [[[2, 1]]]

    def test_the_texts_way_breaks_no_rule(self):
        """Node 0, where the baseline has the partition, is full by now."""
        rig = manual(levels=False, delay=Delay(60.0))
        capacity = np.array([[1.0]] * 2 + [[100.0]] * 4)
        placement = [[2, 1], [0, 3]]
        rig.pipeline.run(cluster(placement, capacity=capacity))
        rig.workers.work(Scope.GLOBAL)
        assert rows(rig.engine.calls[0].current) == [[], []]
        rig.engine.before = None
        down = cluster(placement, capacity=capacity, down=[2], min_active=[2, 0])
        rig.engine.calls.clear()
        shown = rig.pipeline.run(down).assignment
        sources = [rows(t.current) for t in rig.engine.calls if t.scope is Scope.OVERWRITE]
        assert sources == [[[0, 1], [2, 3]], [[2, 1], [0, 3]]]
        assert len(rows(shown)[0]) == 3

    def test_new_partitions_wait_for_the_baseline(self):
        rig = manual()
        result = rig.pipeline.run(cluster([[0, 1], [-1, -1]], min_active=1))
        assert not result.overwritten
        assert rows(result.assignment) == [[0, 1], []]


class TestOperations:
    def test_evacuation_is_an_emergency(self):
        rig = at_rest()
        told = with_operations(cluster(LEVEL), ["EVACUATE"] + ["ENABLE"] * 5, [True] * 6)
        result = rig.pipeline.run(told)
        assert result.emergency and 0 not in result.assignment.node

    def test_a_swap(self):
        stands_for = [-1] * 5 + [0]
        before = cluster([[0, 1], [2, 0]], stands_for=stands_for)
        rig = manual(levels=False)
        coming = with_operations(before, ["ENABLE"] * 5 + ["SWAP_IN"], [True] * 6)
        shown = rig.pipeline.run(coming)
        assert rows(shown.assignment) == [[0, 1, 5], [2, 0, 5]]
        assert shown.assignment.state.tolist() == [0, 1, 1, 0, 1, 1]
        done = with_operations(before, ["UNKNOWN"] + ["ENABLE"] * 5, [True] * 6)
        after = rig.pipeline.run(done)
        assert rows(after.assignment) == [[5, 1], [2, 5]]
        assert not after.emergency

    @pytest.mark.parametrize("method", ["helix_waged", "balance"])
    def test_a_swap_leaves_the_newcomer_what_it_took_over(self, method):
        """Neither a new baseline empties it, nor that the node which left is forgotten."""
        store = MemoryStore()

        def rested(snapshot):
            with Pipeline(method, store=store, workers=InlineWorkers()) as pipeline:
                for _ in range(10):
                    found = pipeline.run(snapshot)
            assert found.failures == ()
            return [sorted(snapshot.nodes.names[n] for n in row) for row in rows(found.assignment)]

        def six(**others):
            return cluster([[-1, -1]] * 9, 6, names=list("abcdef"), **others)

        coming = six(stands_for=[-1] * 5 + [0])
        told = with_operations(coming, ["ENABLE"] * 5 + ["SWAP_IN"], [True] * 6)
        before = rested(with_operations(coming, ["ENABLE"] * 5 + ["UNKNOWN"], [True] * 6))
        shadowed = [sorted([*row, "f"]) if "a" in row else row for row in before]
        used = {name for row in before for name in row}
        assert "a" in used and "f" not in used
        assert rested(told) == shadowed
        swapped = [sorted("f" if name == "a" else name for name in row) for row in before]
        done = with_operations(coming, ["UNKNOWN"] + ["ENABLE"] * 5, [True] * 6)
        assert rested(done) == swapped
        assert rested(cluster([[-1, -1]] * 9, 5, names=list("bcdef"))) == swapped

    def test_all_that_is_wrong_is_told(self):
        with pytest.raises(InvalidInput) as caught:
            with_operations(cluster([[0, 1]], 2), ["SWAP_IN", "DANCE"], [True, True])
        assert len(caught.value.faults) == 2


class TestStore:
    def test_a_restarted_pipeline_resumes(self):
        store = MemoryStore()
        with Pipeline(PlainEngine(), workers=InlineWorkers(), store=store) as pipeline:
            for _ in range(5):
                before = pipeline.run(cluster([[0, 1]] * 4))
        engine = PlainEngine()
        with Pipeline(engine, workers=InlineWorkers(), store=store) as pipeline:
            after = pipeline.run(cluster([[0, 1]] * 4))
            assert after.best_version == before.best_version > 0
            assert after.assignment.same_as(before.assignment)
            assert engine.count(Scope.GLOBAL) == 0

    def test_it_resumes_on_another_cluster_by_name(self):
        store = MemoryStore()
        names = ["a", "b", "c", "d"]
        old = cluster([[3, 1], [1, 2]], 4, names=names, partition_names=["p", "q"], gone=[3])
        with Pipeline(PlainEngine(levels=False), workers=ManualWorkers(), store=store) as pipeline:
            pipeline.run(cluster([[3, 1], [1, 2]], 4, names=names, partition_names=["p", "q"]))
            pipeline.run(old)  # keeps [a, b] and [b, c]
        assert store.read(Kind.BEST_POSSIBLE).version == 1
        new = cluster([[-1, -1]] * 2, 4, names=["e", "c", "b", "a"], partition_names=["r", "q"])
        with Pipeline(PlainEngine(levels=False), workers=ManualWorkers(), store=store) as pipeline:
            assert rows(pipeline.run(new).assignment) == [[], [2, 1]]

    def test_a_pipeline_that_was_overtaken_says_so_and_goes_on_from_there(self):
        store = MemoryStore()
        one = Pipeline(PlainEngine(), workers=ManualWorkers(), store=store)
        two = Pipeline(PlainEngine(), workers=ManualWorkers(), store=store)
        one.run(cluster(LEVEL, gone=[0]))
        with pytest.raises(CalculationFailed, match="INVALID_REBALANCER_STATUS"):
            two.run(cluster(LEVEL, gone=[5]))
        late = two.run(cluster(LEVEL, gone=[0, 5]))
        assert late.emergency and late.best_version == 2

    def test_a_store_that_fails_is_tried_again(self):
        class Full(MemoryStore):
            def write(self, kind, record):
                raise OSError("no space left")

        pipeline = Pipeline(PlainEngine(), workers=ManualWorkers(), store=Full())
        for _ in range(2):
            with pytest.raises(CalculationFailed, match="no space left"):
                pipeline.run(cluster(LEVEL, gone=[0]))
        assert pipeline.metrics["rebalance_failure_counter"] == 2

    @pytest.mark.parametrize("error", [OSError("full"), ValueError("locked")])
    def test_a_store_that_fails_beside_the_pipeline_is_tried_again(self, error):
        class Failing(MemoryStore):
            is_broken = True

            def write(self, kind, record):
                if self.is_broken:
                    raise error
                super().write(kind, record)

        store = Failing()
        with Pipeline(PlainEngine(), store=store) as pipeline:
            pipeline.run(cluster(LEVEL))
            assert pipeline.wait(60.0)
            told = pipeline.run(cluster(LEVEL)).failures
            assert pipeline.wait(60.0)
            assert [str(error) in str(failure) for failure in told] == [True]
            store.is_broken = False
            pipeline.run(cluster(LEVEL))
            assert pipeline.wait(60.0)
            assert pipeline.run(cluster(LEVEL)).baseline_version == 1

    def test_a_partial_result_that_could_not_be_kept_is_found_again(self):
        class Failing(MemoryStore):
            is_broken = False

            def write(self, kind, record):
                if self.is_broken:
                    raise OSError("full")
                super().write(kind, record)

        rig, store = manual(), Failing()
        pipeline = Pipeline(rig.engine, workers=rig.workers, store=store)
        pipeline.run(cluster([[0, 1]] * 6))
        rig.workers.work(Scope.GLOBAL)
        store.is_broken = True
        rig.workers.work(Scope.PARTIAL)
        assert rig.workers.waiting(Scope.PARTIAL) == 0  # not before the next step
        store.is_broken = False
        assert pipeline.run(cluster([[0, 1]] * 6)).partial_started
        rig.workers.work(Scope.PARTIAL)
        assert store.read(Kind.BEST_POSSIBLE).version == 1

    def test_it_resumes_from_disk(self, tmp_path):
        start = cluster([[0, 1]] * 4, names=list("abcdef"))
        with Pipeline(
            PlainEngine(), workers=InlineWorkers(), store=DiskStore(tmp_path)
        ) as pipeline:
            for _ in range(5):
                before = pipeline.run(start)
        engine = PlainEngine()
        with Pipeline(engine, workers=InlineWorkers(), store=DiskStore(tmp_path)) as pipeline:
            after = pipeline.run(start)
        assert after.assignment.same_as(before.assignment) and after.best_version > 0
        assert [task.scope for task in engine.calls] == [Scope.PARTIAL]


class TestEdges:
    def test_nothing_at_all(self):
        with Pipeline(PlainEngine(), workers=InlineWorkers()) as pipeline:
            result = pipeline.run(cluster(np.zeros((0, 2), int), 3))
            assert len(result.assignment) == 0 and result.failures == ()

    def test_unknown_methods_are_refused(self):
        with pytest.raises(InvalidInput, match="unknown method of a pipeline"):
            Pipeline("dice")
        with pytest.raises(InvalidInput, match="by name"):
            Pipeline(PlainEngine(), options=object())

    def test_all_arguments_are_checked_together(self):
        with pytest.raises(InvalidInput) as caught:
            Pipeline(
                PlainEngine(), store="here", clock=0, workers=2, delay=600.0, on_trigger="me",
                overwrite_from="nowhere", seed=0.5,
            )  # fmt: skip
        assert [fault.path for fault in caught.value.faults] == [
            "store", "clock", "workers", "delay", "on_trigger", "overwrite_from", "seed",
        ]  # fmt: skip
        with pytest.raises(InvalidInput, match="Waged"):
            Pipeline("helix_waged", options={"evenness": 2})
        with pytest.raises(InvalidInput, match="mapping"):
            Pipeline("balance", options=Waged())
        with pytest.raises(InvalidInput, match="lvel"):
            Pipeline("balance", options={"lvel": 0.1})
        for method in (None, ["balance"], PlainEngine):
            with pytest.raises(InvalidInput, match="unknown method of a pipeline"):
                Pipeline(method)
        with Pipeline(PlainEngine(), workers=InlineWorkers()) as pipeline:
            with pytest.raises(InvalidInput, match="must be a Cluster"):
                pipeline.run(LEVEL)
            with pytest.raises(InvalidInput, match="must be a Delay"):
                pipeline.delay = 600.0

    @pytest.mark.parametrize("answer", [None, 3])
    def test_an_engine_that_returns_no_answer_is_a_failure(self, answer):
        with Pipeline(lambda task: answer) as pipeline:
            pipeline.run(cluster(LEVEL))
            assert pipeline.wait(60.0)
            failed = pipeline.run(cluster(LEVEL)).failures
            assert [failure.kind for failure in failed] == [FailureKind.UNKNOWN_FAILURE]
            with pytest.raises(CalculationFailed, match="an engine returns an Answer"):
                pipeline.run(cluster(LEVEL, gone=[0]))

    def test_a_closed_pipeline_refuses(self):
        pipeline = Pipeline(PlainEngine(), workers=InlineWorkers())
        pipeline.close()
        with pytest.raises(RuntimeError, match="closed"):
            pipeline.run(cluster(LEVEL))

    def test_a_callback_that_fails_stops_nothing(self, caplog):
        def broken():
            raise ValueError("of the caller")

        with Pipeline(PlainEngine(), workers=InlineWorkers(), on_trigger=broken) as pipeline:
            assert pipeline.run(cluster([[0, 1]] * 6)).best_version > 0
        assert "on_trigger failed" in caplog.text

    def test_a_callback_may_run_the_pipeline(self):
        start = cluster([[0, 1]] * 6)
        with Pipeline(
            PlainEngine(), workers=InlineWorkers(), on_trigger=lambda: pipeline.run(start)
        ) as pipeline:
            held = np.bincount(pipeline.run(start).assignment.node)
        assert held.max() - held.min() <= 1

    def test_a_callback_may_run_the_pipeline_as_often_as_it_likes(self):
        start = cluster([[0, 1]] * 400, capacity=np.full((6, 1), 1e3))
        with Pipeline(
            PlainEngine(), workers=InlineWorkers(), on_trigger=lambda: pipeline.run(start)
        ) as pipeline:
            pipeline.run(start)
            found = pipeline.run(start)
        held = np.bincount(found.assignment.node)
        assert found.failures == () and found.best_version > 400 and held.max() - held.min() <= 1

    def test_an_interrupted_callback_leaves_everything_in_order(self):
        triggered = []

        def interrupted():
            triggered.append(1)
            if len(triggered) == 1:
                raise KeyboardInterrupt

        start = cluster([[0, 1]] * 6)
        with Pipeline(PlainEngine(), workers=InlineWorkers(), on_trigger=interrupted) as pipeline:
            with pytest.raises(KeyboardInterrupt):
                pipeline.run(start)
            assert pipeline.wait(1.0)
            assert pipeline.run(start).best_version == 2 and pipeline.wait(1.0)

    def test_log_records_carry_plain_data(self, caplog):
        with (
            caplog.at_level(logging.INFO, "evenkeel.control"),
            Pipeline(PlainEngine(), workers=InlineWorkers()) as pipeline,
        ):
            pipeline.run(cluster(LEVEL, gone=[0]))
        events = [record.evenkeel for record in caplog.records]
        assert {"event": "kept", "kind": "best_possible", "version": 1} in events
        assert {one["scope"] for one in events if one["event"] == "calculated"} == {
            "emergency", "global", "partial",
        }  # fmt: skip
        told = [one for one in events if one["event"] == "metrics"][-1]
        assert told == {"event": "metrics", **pipeline.metrics}
