"""The parts of the pipeline by themselves: windows, changes, bindings, coverage, metrics."""

import itertools
import logging
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.control.binding import bind, with_vanished
from evenkeel.control.clock import ManualClock, SystemClock
from evenkeel.control.engines.engine import alike
from evenkeel.control.executors import InlineWorkers
from evenkeel.control.metrics import Numbers, baseline_divergence, breaks_nothing, health, is_short
from evenkeel.control.operations import STATES_OF, Operation, with_operations
from evenkeel.control.pipeline import Pipeline
from evenkeel.control.store import Record
from evenkeel.control.view import (
    Absences,
    Delay,
    Views,
    active_nodes,
    changes,
    changes_since,
    digests,
    window_ends,
)
from evenkeel.measure.audit import audit
from evenkeel.model.assignment import Assignment
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import InvalidInput
from evenkeel.model.names import Names
from tests.support.clusters import clusters
from tests.support.pipeline.engines import assignment, cluster, rows


def named(table, nodes, partitions, known=None, version=1):
    """A record under these names."""
    return Record(
        version,
        assignment(table),
        Names(nodes, len(nodes), ""),
        Names(partitions, len(partitions), ""),
        np.array([True] * len(partitions) if known is None else known),
    )


class TestDelay:
    def nodes(self):
        return cluster([[0]], 4, down=[1, 2], gone=[3], since=[0.0, 10.0, 50.0, 0.0]).nodes

    def active(self, delay, now):
        nodes = self.nodes()
        ends = window_ends(nodes, Absences().since(nodes, now), delay)
        return active_nodes(nodes, ends, now).tolist()

    def test_no_window_no_patience(self):
        assert self.active(Delay(), 11.0) == [True, False, False, False]
        assert self.active(Delay(100.0, enabled=False), 11.0) == [True, False, False, False]

    def test_each_node_has_its_own(self):
        assert self.active(Delay(100.0), 60.0) == [True, True, True, False]
        assert self.active(Delay(100.0), 110.0) == [True, False, True, False]
        assert self.active(Delay(100.0), 150.0) == [True, False, False, False]

    def test_a_node_may_be_exempt(self):
        assert self.active(Delay(100.0, exempt=frozenset(["n2"])), 60.0) == [
            True, True, False, False,
        ]  # fmt: skip

    def test_on_demand_ends_the_windows_that_were_open(self):
        assert self.active(Delay(100.0, on_demand=30.0), 60.0) == [True, False, True, False]

    @pytest.mark.parametrize(
        "given", [{"seconds": -1.0}, {"seconds": np.nan}, {"exempt": "n1"}, {"on_demand": "now"}]
    )
    def test_what_is_no_window_is_refused(self, given):
        with pytest.raises(InvalidInput):
            Delay(**given)

    def test_unknown_times_count_from_when_they_were_first_seen(self):
        nodes = cluster([[0]], 2, down=[1]).nodes
        absences = Absences()
        assert absences.since(nodes, 5.0).tolist() == [np.inf, 5.0]
        assert absences.since(nodes, 9.0).tolist() == [np.inf, 5.0]
        absences.since(cluster([[0]], 2).nodes, 10.0)
        assert absences.since(nodes, 12.0).tolist() == [np.inf, 12.0]

    def test_views_change_only_when_something_does(self):
        views, now = Views(Delay(10.0)), 100.0
        down = cluster([[0]], 3, down=[1], since=[0.0, 95.0, 0.0])
        first = views.observe(down, now)
        assert views.observe(down, now + 1.0) is first and first.wake_at == 105.0
        second = views.observe(down, 105.0)
        assert (second.epoch, second.static_epoch) == (2, 1)
        assert views.observe(replace(down), 106.0).epoch == 2
        views.delay = Delay(20.0)
        assert views.observe(down, 106.0).active.tolist() == [True, True, True]


class TestOperations:
    def test_every_operation_has_its_flags(self):
        assert set(STATES_OF) == {*Operation}

    @pytest.mark.parametrize(
        ("operation", "online", "active_in_window"),
        [("ENABLE", True, True), ("ENABLE", False, True), ("DISABLE", True, True),
         ("DISABLE", False, True), ("EVACUATE", True, False), ("EVACUATE", False, False),
         ("UNKNOWN", True, False), ("UNKNOWN", False, False)],
    )  # fmt: skip
    def test_who_keeps_places(self, operation, online, active_in_window):
        told = with_operations(cluster([[0]], 1, since=[5.0]), [operation], [online])
        view = Views(Delay(10.0)).observe(told, 6.0)
        assert view.active.tolist() == [active_in_window]
        assert view.serving.tolist() == [operation == "ENABLE" and online]


class TestChanges:
    @settings(max_examples=60, deadline=None)
    @given(clusters())
    def test_digests_and_comparison_agree(self, one):
        same = replace(one, nodes=replace(one.nodes), placement=one.placement)
        assert not changes(one, same)
        assert not changes_since(digests(one), same)
        heavier = replace(one.partitions.load, voter=one.partitions.load.voter + 1.0)
        other = replace(one, partitions=replace(one.partitions, load=heavier))
        has_load = one.partitions.load.voter.size > 0
        assert bool(changes(one, other)) == has_load
        assert bool(changes_since(digests(one), other)) == has_load

    def test_groups_are_found_by_name(self):
        before = cluster([[0]] * 3, partition_names=["a", "b", "c"], group=[0, 1, 2])
        now = cluster(
            [[0]] * 3, partition_names=["c", "x", "a"], group=[0, 1, 2],
            load=np.array([[1.0], [1.0], [2.0]]), group_names=["g2", "gx", "g0"],
        )  # fmt: skip
        # c is as it was, x is new, a is heavier
        assert changes(before, now).groups == (1, 2)
        assert changes_since(digests(before), now).groups == (0, 1, 2)


class TestBinding:
    def test_by_name(self):
        record = named([[0, 1], [1, 2]], ["a", "b", "c"], ["p", "q"])
        now = cluster([[-1, -1]] * 3, 3, names=["c", "b", "d"], partition_names=["new", "q", "p"])
        bound = bind(record, now, adopt=True)
        assert bound.vanished == ("a",)
        assert rows(bound.assignment) == [[], [1, 0], [3, 1]]
        assert rows(bound.present) == [[], [1, 0], [1]]
        assert bound.known.tolist() == [False, True, True]
        assert bound.sits_outside(np.ones(3, np.bool_))

    def test_what_no_record_knows_is_where_it_is(self):
        now = cluster([[0, 1], [1, 2]], 3, partition_names=["p", "q"])
        record = named([[2]], ["n0", "n1", "n2"], ["q"])
        assert rows(bind(record, now, adopt=True).assignment) == [[0, 1], [2]]
        assert rows(bind(record, now, adopt=False).assignment) == [[], [2]]
        assert rows(bind(None, now, adopt=True).assignment) == [[0, 1], [1, 2]]

    def test_an_empty_row_that_is_known_stays_empty(self):
        now = cluster([[0], [1]], 2, partition_names=["p", "q"])
        record = named([[], [1]], ["n0", "n1"], ["p", "q"], known=[True, True])
        bound = bind(record, now, adopt=True)
        assert rows(bound.assignment) == [[], [1]]
        eager = replace(now.partitions, min_active=np.ones(2, np.int32))
        short = is_short(bound, replace(now, partitions=eager), np.ones(2, np.bool_))
        assert short.tolist() == [True, False]

    def test_a_swap_leaves_each_partition_once(self):
        swapped = cluster([[0, 1], [0, 2]], 3, stands_for=[-1, -1, 0])
        told = with_operations(swapped, ["UNKNOWN", "ENABLE", "ENABLE"], [True] * 3)
        assert rows(bind(None, told, adopt=True).assignment) == [[2, 1], [2]]

    @settings(max_examples=60, deadline=None)
    @given(clusters(), st.integers(1, 3))
    def test_vanished_nodes_can_be_added_to_any_cluster(self, one, count):
        names = tuple(f"vanished {i}" for i in range(count))
        more = with_vanished(one, names)
        assert len(more.nodes) == len(one.nodes) + count
        assert not more.nodes.may_hold[-count:].any()
        assert audit(more, more.placement).counts == audit(one, one.placement).counts


class TestCoverage:
    def test_full_nodes_and_domains_are_rules_to_keep(self):
        one = cluster(
            [[0], [1]], 3, capacity=np.array([[9.0], [1.0], [9.0]]), replicas=2,
            domains={"zone": [0, 1, 0]}, spread={"zone": 1},
        )  # fmt: skip
        before = assignment([[0], [1]])
        assert not breaks_nothing(before, assignment([[0, 1], [1]]), one)  # node 1 is full
        assert not breaks_nothing(before, assignment([[0, 2], [1]]), one)  # the same zone
        assert breaks_nothing(before, assignment([[0], [1, 2]]), one)

    def test_what_is_over_full_takes_no_more(self):
        one = cluster([[1], [1], [0]], 3, capacity=np.array([[9.0], [1.0], [9.0]]), replicas=2)
        before = assignment([[1], [1], [0]])
        assert not breaks_nothing(before, assignment([[1], [1], [0, 1]]), one)
        assert breaks_nothing(before, assignment([[1, 2], [1], [0, 2]]), one)


class TestMetrics:
    def test_divergence(self):
        best = assignment([[0, 1], [2, 3], [4]])
        assert baseline_divergence(best, best) == 0.0
        assert baseline_divergence(best, assignment([[], [], []])) == 1.0
        # the first as it is, the second with its states swapped, the third unknown
        assert baseline_divergence(best, assignment([[0, 1], [3, 2], []])) == 0.5

    def test_health(self):
        one = cluster(
            [[0, 1], [1, 2], [0, 2]], 3, capacity=np.full((3, 1), 4.0), down=[1], min_active=2
        )
        found = health(one, Assignment.of_placement(one.placement))
        assert found.max_capacity_usage_gauge == 0.5
        assert found.missing_top_state_partition_gauge == 1
        assert found.missing_replica_partition_gauge == 2
        assert found.missing_min_active_replica_partition_gauge == 2
        assert found.difference_with_ideal_state_gauge == 0
        assert found.pending_recovery_rebalance_replica_gauge == 0
        assert found.average_partition_weight == {"d0": 1.0}
        assert (
            health(one, assignment([[0, 1], [2, 1], [0, 1]])).difference_with_ideal_state_gauge == 2
        )

    def test_what_is_to_come_is_recovery_first(self, caplog):
        one = cluster([[0, 1], [0, 2]], 4, down=[1], min_active=2)
        with caplog.at_level(logging.INFO, "evenkeel.control"):
            found = health(one, assignment([[2, 3], [2, 3]]))
        # the first lacks one that serves, the second lacks none
        assert found.pending_recovery_rebalance_replica_gauge == 1
        assert found.pending_load_rebalance_replica_gauge == 2
        assert caplog.records[-1].evenkeel == {"event": "health", **asdict(found)}
        unsaid = health(cluster([[0, 1], [0, 2]], 4, down=[1]), assignment([[2, 3], [2, 3]]))
        assert unsaid.pending_recovery_rebalance_replica_gauge == 1

    @pytest.mark.parametrize("wrong", [None, assignment([[0]]), assignment([[0], [7]])])
    def test_only_an_assignment_of_the_cluster_is_measured(self, wrong):
        with pytest.raises(InvalidInput, match="assignment"):
            health(cluster([[0, 1], [0, 2]], 4), wrong)

    def test_the_originals_are_all_there(self):
        for name in (
            "global_baseline_calc_latency_gauge", "partial_rebalance_latency_gauge",
            "emergency_rebalance_latency_gauge", "rebalance_overwrite_latency_gauge",
            "state_read_latency_gauge", "state_write_latency_gauge", "baseline_divergence_gauge",
            "rebalance_failure_counter", "global_baseline_calc_counter",
            "partial_rebalance_counter", "emergency_rebalance_counter",
            "rebalance_overwrite_counter",
        ):  # fmt: skip
            assert hasattr(Numbers(), name)


class TestClock:
    def test_time_runs_forward(self):
        with pytest.raises(ValueError, match="must not decrease"):
            ManualClock().advance(-1.0)
        clock = SystemClock()
        assert clock.now() > 1e9 and clock.elapsed() <= clock.elapsed()


class TestComparison:
    @settings(max_examples=100, deadline=None)
    @given(st.data(), st.booleans())
    def test_as_sets_of_pairs(self, data, states):
        row = st.lists(st.integers(0, 4), max_size=4, unique=True)
        one, other = (
            assignment(data.draw(st.lists(row, min_size=5, max_size=5))) for _ in range(2)
        )

        def said(of):
            state = of.state.tolist() if states else [0] * len(of.node)
            return list(zip(of.owner.tolist(), of.node.tolist(), state, strict=True))

        there = set(said(other))
        expected = [entry in there for entry in said(one)]
        assert alike(one, other, states=states).tolist() == expected


def test_a_result_counts_its_moves_from_a_result_an_assignment_or_a_placement():
    arrays = {"capacity": [[10.0]] * 3, "load": [[1.0]] * 6, "min_active": 1}
    whole = Cluster.from_arrays(placement=[[0, 1]] * 6, **arrays)
    lost = Cluster.from_arrays(placement=[[0, 1]] * 6, alive=[True, False, True], **arrays)
    with Pipeline("balance", workers=InlineWorkers()) as pipeline:
        before, after = pipeline.run(whole), pipeline.run(lost)
    moved = [set(b) ^ set(a) for b, a in zip(nodes_of(before), nodes_of(after), strict=True)]
    expected = sum(len(one) // 2 for one in moved)
    assert expected > 0
    for start in (before, before.assignment, before.placement):
        assert after.moves_from(start) == expected
    assert after.moves_from(after) == 0


def nodes_of(result):
    """Nodes of each partition."""
    held = result.assignment
    return [held.node[a:b].tolist() for a, b in itertools.pairwise(held.first.tolist())]
