"""What a folder leaves out: its run says so, and does not end well where it does nothing."""

import json

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.cli import main
from tests.support.systems.bench import System
from tests.support.systems.worlds import WORLDS
from tests.systems.folders.test_kafka_folder import TOOLS


def swapped(count=0):
    """Two full brokers whose partitions are to trade places, and some that only move."""
    rows = [("t", p, [1 + p]) for p in range(2)] + [("u", p, [1]) for p in range(count)]
    document = {
        "version": 1,
        "partitions": [{"topic": t, "partition": p, "replicas": b} for t, p, b in rows],
    }
    loads = "topic,partition,disk\n" + "".join(
        f"{t},{p},{100 if t == 't' else 1}\n" for t, p, _ in rows
    )
    racks = b'{"1": "a", "2": "b", "3": "c"}'
    cluster = ek.read(json.dumps(document).encode(), racks, loads.encode())
    full = 100.0 + count
    capacity = np.array([[9.0, full], [9.0, full], [9.0, 50.0]])
    cluster = cluster.replace(bytes="disk", capacity=capacity)
    node = [1, 0] + [2] * count
    target = cluster.placement.replaced(np.array(node, np.int32), cluster.placement.leader)
    return ek.plan(cluster, target, protocol="kafka")


@pytest.fixture
def system(tmp_path):
    brokers = {str(b): {"alive": True} for b in (1, 2, 3)}
    partitions = {
        "t-0": {"replicas": [1], "leader": 1}, "t-1": {"replicas": [2], "leader": 2},
        "u-0": {"replicas": [1], "leader": 1},
    }  # fmt: skip
    state = {"brokers": brokers, "partitions": partitions, "pace": 1}
    return System(tmp_path / "kafka", "kafka", TOOLS, state)


def test_where_every_move_is_blocked_it_says_so_and_does_not_end_well(system):
    plan = swapped()
    assert (len(plan), len(plan.blocked)) == (0, 2)
    folder = ek.write_plan_folder(plan, system.folder / "move")
    done = system.run(folder)
    assert done.returncode == 1
    assert "nothing to run: 2 moves have no safe order and are left out: t-0[0]" in done.stderr
    assert "finished" not in done.stdout
    assert not (folder / "running").exists()


def test_what_is_blocked_is_named_after_the_waves(system):
    plan = swapped(1)
    assert plan.blocked and len(plan.waves) == 1
    done = system.run(ek.write_plan_folder(plan, system.folder / "move"))
    assert done.returncode == 3, done.stderr
    assert "finished: the only wave is done" in done.stdout
    assert "2 moves have no safe order and are left out: t-0[0]" in done.stderr


def test_where_nothing_was_to_be_done_it_ends_well(system):
    plan = swapped(1)
    start = plan.cluster.placement
    done = system.run(
        ek.write_plan_folder(ek.plan(plan.cluster, start, protocol="kafka"), system.folder / "move")
    )
    assert done.returncode == 0, done.stderr
    assert "finished: there is nothing to do" in done.stdout


def test_where_there_is_no_way_back_it_says_why(system):
    described = (
        "Topic: t\tTopicId: x\tPartitionCount: 3\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,3\tIsr: 1\n"
        "\tTopic: t\tPartition: 1\tLeader: 2\tReplicas: 3,2\tIsr: 2\n"
        "\tTopic: t\tPartition: 2\tLeader: 4\tReplicas: 4,1\tIsr: 4,1\n"
    )
    cluster = ek.read(described.encode())
    plan = ek.solve(cluster, goals=ek.Goals(level=None)).plan(protocol="kafka")
    folder = ek.write_plan_folder(plan, system.folder / "move")
    done = system.run(folder / "undo")
    assert done.returncode == 1
    assert "nothing to run: 2 changes cannot be taken back: " in done.stderr
    assert "(3 is down)" in done.stderr
    told = (folder / "undo" / "README.md").read_text()
    assert "There is no way back: 2 changes cannot be taken back: " in told


def test_where_all_that_was_done_is_mending_there_is_nothing_to_take_back(tmp_path):
    rows = [
        {"index": "i", "shard": "0", "prirep": "p", "state": "STARTED", "node": "a", "store": "1"},
        {"index": "i", "shard": "0", "prirep": "r", "state": "UNASSIGNED", "node": None},
        {"index": "j", "shard": "0", "prirep": "p", "state": "STARTED", "node": "b", "store": "1"},
    ]
    world = WORLDS["elasticsearch"](tmp_path)
    cluster = ek.read(json.dumps(rows).encode())
    start = cluster.placement
    target = start.replaced(np.array([0, 1, 1], np.int32), start.leader)
    folder = ek.write_plan_folder(ek.plan(cluster, target), world.system.folder / "move")
    done = world.run(folder / "undo")
    assert done.returncode == 1
    assert "nothing to run: what was short of replicas before" in done.stderr
    assert "There is no way back: what was short of replicas" in (folder / "README.md").read_text()


def test_a_replica_that_is_missing_is_a_reason(tmp_path):
    shards = tmp_path / "shards.txt"
    shards.write_text(
        "logs 0 p STARTED 120 1gb 10.1.0.11 n1\nlogs 0 r UNASSIGNED\n"
        "logs 1 p STARTED 120 1gb 10.1.0.12 n2\nlogs 1 r STARTED 120 1gb 10.1.0.11 n1\n"
    )
    assert main(["plan", str(shards), "-o", str(tmp_path / "move")]) == 0
    page = (tmp_path / "move" / "README.md").read_text()
    assert "- 1 partition of logs: 1 of 2 replicas is missing, and is added\n" in page
