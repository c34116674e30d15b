"""Undo from the middle: waves of the way back are ordered where some are done, if there is room."""

import json
from itertools import product

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.guarding import Step, guard, has_room
from tests.live.seen import after_wave

SIZES = {"a": 60, "b": 60, "x": 10, "y": 10}
NOW = {"a": 1, "b": 2, "x": 1, "y": 1}
THEN = {"a": 2, "b": 3, "x": 4, "y": 4}
"""A broker holds 100: b has to go before a comes. x and y go one by one, whatever becomes of a."""


def described(where):
    lines = []
    for topic, broker in where.items():
        lines.append(f"Topic: {topic}\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: ")
        lines.append(
            f"\tTopic: {topic}\tPartition: 0\tLeader: {broker}\tReplicas: {broker}\tIsr: {broker}"
        )
    return Document("described.txt", ("\n".join(lines) + "\n").encode())


@pytest.fixture
def plan():
    logs = {
        broker: [
            {"partition": f"{t}-0", "size": size, "offsetLag": 0, "isFuture": False}
            for t, size in SIZES.items() if NOW[t] == broker
        ]
        for broker in (1, 2, 3, 4)
    }  # fmt: skip
    brokers = [
        {"broker": b, "logDirs": [{"logDir": "/d", "error": None, "partitions": own}]}
        for b, own in logs.items()
    ]
    dirs = json.dumps({"version": 1, "brokers": brokers}).encode()
    cluster = ek.read([described(NOW).data, dirs])
    disk = cluster.dimensions.index("disk")
    capacity = cluster.nodes.capacity.copy()
    capacity[:, disk] = 100.0
    cluster = cluster.replace(capacity=capacity)
    node = cluster.placement.node.copy()
    names = [int(name) for name in cluster.nodes.names]
    for p, name in enumerate(cluster.partitions.names):
        node[cluster.placement.first[p]] = names.index(THEN[name[0]])
    target = cluster.placement.replaced(node, cluster.placement.leader)
    plan = ek.plan(cluster, target, throttle=ek.Throttle(node_in=1), protocol="kafka")
    assert plan.complete
    return plan


def test_from_wherever_the_plan_was_stopped_the_way_back_goes_on(plan, tmp_path):
    folder = ek.write_plan_folder(plan, tmp_path / "move")
    assert not json.loads((folder / "undo" / "waves.json").read_text())["in_any_order"]
    names = plan.cluster.nodes.names
    for wave in range(len(plan.waves)):
        end = after_wave(plan, wave)
        where = {
            name[0]: int(names[end.node[end.first[p]]])
            for p, name in enumerate(plan.cluster.partitions.names)
        }
        found = guard(folder / "undo", [described(where)])
        assert found.word in ("ready", "partly"), (wave, where, found.differences)


@pytest.fixture
def document(tmp_path):
    """Three nodes with room for two; p1 is on n2."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[3.0], [3.0], [2.0]], load=[[1.0]] * 4, placement=[[0], [2], [0], [1]]
    )
    target = cluster.placement.replaced(np.array([2, 2, 0, 1], np.int32), cluster.placement.leader)
    return Document.load(str(ek.write_plan(ek.plan(cluster, target), tmp_path / "plan.json")))


def test_what_is_there_early_leaves_room_or_does_not(document):
    waves = [{"p0": Step(1, (2,))}, {"p2": Step(1, (2,))}]
    assert has_room(document, {"p0": [0]}, {"p0": 0}, waves[:1])
    assert not has_room(document, {"p0": [0], "p2": [2]}, {"p0": 0, "p2": 1}, waves)
    # it is where its wave puts it, and no wave puts anything beside it
    done = {"p0": 1, "p2": 1}
    assert has_room(document, {"p0": [2], "p2": [2]}, done, waves)


def test_what_is_under_way_takes_room_on_both_ends(document):
    waves = [{"p0": Step(1, (2,))}]
    for held, place in product(([0], [0, 2]), (0.0, 0.5)):
        assert has_room(document, {"p0": held}, {"p0": place}, waves)
    held, places = {"p2": [0, 2], "p0": [0]}, {"p2": 0.5, "p0": 0}
    assert not has_room(document, held, places, [{"p0": Step(1, (2,)), "p2": Step(1, (0,))}])
