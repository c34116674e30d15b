"""Plans of a pipeline: what a step published, as steps that are safe at every instant."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.control import InlineWorkers, Pipeline


def cluster_of(alive=None, **more):
    """Eight partitions of two replicas on four nodes."""
    return ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 8, placement=[[p % 4, (p + 1) % 4] for p in range(8)],
        min_active=1, alive=alive, **more,
    )  # fmt: skip


def test_a_step_hands_out_its_plan():
    cluster = cluster_of([True, True, True, False])
    with Pipeline("balance", workers=InlineWorkers()) as pipeline:
        step = pipeline.run(cluster)
        plan = step.plan(cluster, throttle=ek.Throttle(node_in=1), protocol="helix")
    assert plan.complete
    assert plan.check().ok
    assert plan.protocol.name == "helix"
    assert 3 not in plan.end.node
    wanted = step.assignment
    for p in range(8):
        row = sorted(plan.end.node[plan.end.first[p] : plan.end.first[p + 1]].tolist())
        assert row == sorted(wanted.node[wanted.first[p] : wanted.first[p + 1]].tolist())
    assert np.array_equal(plan.end.leader_node, step.placement.leader_node)
    assert plan.copies == step.moves_from(cluster.placement)


def test_replicas_without_a_slot_get_one():
    cluster = cluster_of(replicas=3)
    with Pipeline("balance", workers=InlineWorkers()) as pipeline:
        for _ in range(4):
            step = pipeline.run(cluster)
    plan = step.plan(cluster)
    assert plan.check().ok
    assert np.diff(plan.end.first).tolist() == [3] * 8
    assert (plan.end.node >= 0).all()


def test_replicas_stay_in_their_zones_where_they_can():
    cluster = ek.Cluster.from_arrays(
        capacity=[[99.0]] * 9, load=[[1.0]] * 30, domains={"zone": [*"aaabbbccc"]},
        placement=[[0, 3, 6], [1, 4, 7]] * 15, spread={"zone": 1},
    )  # fmt: skip
    with Pipeline("balance", workers=InlineWorkers()) as pipeline:
        for _ in range(4):
            step = pipeline.run(cluster)
    plan = step.plan(cluster)
    assert plan.copies > 0
    assert plan.complete
    zone = cluster.topology.domain[0]
    assert np.array_equal(zone[plan.end.node], zone[cluster.placement.node])


def test_where_nothing_is_to_be_done_the_plan_is_empty():
    cluster = cluster_of()
    with Pipeline("balance", workers=InlineWorkers()) as pipeline:
        step = pipeline.run(cluster)
    level = cluster.with_placement(step.plan(cluster).end)
    assert len(step.plan(level)) == 0


def test_another_cluster_is_refused():
    cluster = cluster_of()
    other = ek.Cluster.from_arrays(capacity=[[9.0]] * 4, load=[[1.0]], placement=[[0]])
    with Pipeline("balance", workers=InlineWorkers()) as pipeline:
        step = pipeline.run(cluster)
    with pytest.raises(ek.InvalidInput, match="needs the 8 partitions"):
        step.plan(other)
