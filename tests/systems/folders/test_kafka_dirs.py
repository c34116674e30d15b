"""A folder for Kafka whose brokers have several log directories, carried out from end to end."""

import json
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from tests.support.systems.bench import System

TOOLS = [
    f"kafka-{name}.sh"
    for name in (
        "topics", "broker-api-versions", "reassign-partitions", "leader-election", "log-dirs",
    )
]  # fmt: skip


def system_of(tmp_path, *, partitions=12, old=(1, 2, 3)):
    """Partitions on two of three brokers each, all in the first directory; two brokers are new."""
    held = {
        f"t-{p}": {
            "replicas": (own := [old[p % len(old)], old[(p + 1) % len(old)]]),
            "leader": own[0], "size": 100, "dirs": {str(b): "/d1" for b in own},
        }
        for p in range(partitions)
    }  # fmt: skip
    brokers = {str(b): {"alive": True} for b in range(1, 6)}
    state = {"brokers": brokers, "partitions": held, "pace": 1}
    return System(tmp_path / "kafka", "kafka", TOOLS, state)


def seen(system, *more):
    """The cluster that the tools print now."""
    outputs = [
        subprocess.run(
            [system.bin / tool, "--describe"], env=system.environment(), capture_output=True,
            check=True,
        ).stdout
        for tool in ("kafka-topics.sh", "kafka-broker-api-versions.sh", "kafka-log-dirs.sh")
    ]  # fmt: skip
    return ek.read(*outputs, *more)


def capacities(megabytes):
    disk = dict.fromkeys(("/d1", "/d2"), str(megabytes))
    row = {"brokerId": "-1", "capacity": {"DISK": disk}}
    return json.dumps({"brokerCapacities": [row]}).encode()


def dirs(system):
    return {name: one["dirs"] for name, one in system.state["partitions"].items()}


def stands(plan):
    """The directory of each replica at the end of a plan."""
    end, disks = plan.end, plan.cluster.disks
    names = [name.partition(":")[::2] for name in disks.names]
    found = {name: {} for name in plan.cluster.partitions.names}
    for p, d in zip(end.owner.tolist(), end.disk.tolist(), strict=True):
        found[plan.cluster.partitions.names[p]][names[d][0]] = names[d][1]
    return found


def folder_of(system, goals, *more, **throttle):
    cluster = seen(system, *more)
    result = ek.solve(cluster, goals=goals)
    plan = result.plan(protocol="kafka", throttle=ek.Throttle(**throttle))
    assert plan.check().ok
    return plan, ek.write_plan_folder(plan, system.folder / "move")


def test_it_is_carried_out_and_undone(tmp_path):
    system = system_of(tmp_path)
    before = dirs(system)
    plan, folder = folder_of(system, ek.Goals(level=0.0, disks=0.1), node_in=1, disk_moves=1)
    assert len(plan.disk_moves) > 1
    assert plan.disk_moves.waves > 1
    done = system.run(folder, DISK_THROTTLE="5000")
    assert done.returncode == 0, done.stderr
    assert dirs(system) == stands(plan)
    assert "throttle" not in system.state
    assert any("--replica-alter-log-dirs-throttle 5000" in str(call) for call in system.calls)
    orders = sum("--execute" in str(call) for call in system.calls)
    assert system.run(folder).returncode == 0
    assert sum("--execute" in str(call) for call in system.calls) == orders
    assert "Inside nodes" in (folder / "README.md").read_text()
    back = system.run(folder / "undo")
    assert back.returncode == 0, back.stderr
    assert dirs(system) == before


def test_moves_inside_alone_make_a_folder(tmp_path):
    system = system_of(tmp_path)
    plan, folder = folder_of(system, ek.Goals(level=None, disks=0.0))
    assert len(plan) == 0
    assert len(plan.disk_moves) == 12
    for page in ("README.md", "undo/README.md"):
        text = (folder / page).read_text()
        assert "by moves inside nodes alone" in text and "0 waves" not in text
        assert "None between nodes." in text
    done = system.run(folder)
    assert done.returncode == 0, done.stderr
    assert dirs(system) == stands(plan)
    assert system.run(folder / "undo").returncode == 0
    assert {folder for one in dirs(system).values() for folder in one.values()} == {"/d1"}


@pytest.mark.parametrize("call", range(3, 12, 2))
def test_it_goes_on_where_it_stopped(tmp_path, call):
    system = system_of(tmp_path)
    plan, folder = folder_of(system, ek.Goals(level=0.0, disks=0.1), node_in=2, disk_moves=2)
    system.state = system.state | {"breaks": call}
    system.run(folder)
    done = system.run(folder)
    assert done.returncode == 0, done.stderr
    assert dirs(system) == stands(plan)


def test_what_makes_room_goes_before_the_copies_that_need_it(tmp_path):
    """Directories hold four replicas: what comes to a full one waits until two have left it."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[8.0]] * 2, load=[[1.0]] * 8, dimensions=["disk"], bytes="disk",
        placement=[[0]] * 4 + [[1]] * 4, disks=ek.Disks([0, 0, 1, 1], [4.0] * 4),
        disk=[[0]] * 4 + [[2]] * 4,
    )  # fmt: skip
    target = cluster.placement.replaced(
        np.array([1, 1, 0, 0, 0, 0, 1, 1], np.int32), cluster.placement.leader
    )
    disk = np.array([2, 2, 1, 1, 0, 0, 3, 3], np.int32)
    plan = ek.plan(cluster, cluster.with_placement(target).replace(disk=disk[:, None]))
    assert plan.disk_moves.early == 1
    assert plan.disk_moves.wave.tolist() == [0] * 4
    assert plan.check().ok
    assert plan.end.disk.tolist() == disk.tolist()


def test_a_broker_that_died_is_asked_for_no_directory(tmp_path):
    system = system_of(tmp_path)
    state = system.state
    state["brokers"]["2"]["alive"] = False
    for one in state["partitions"].values():
        one["leader"] = next(b for b in one["replicas"] if b != 2)
    system.state = state
    _, folder = folder_of(system, ek.Goals(level=None, disks=0.0))
    done = system.run(folder)
    assert done.returncode == 0, done.stderr
    assert not any(broker == "2" for _, broker, _ in system.state["sent"])
    assert all("2" not in one for one in dirs(system).values())


def test_the_rest_of_a_plan_has_the_moves_that_are_left(tmp_path):
    system = system_of(tmp_path)
    plan, _ = folder_of(system, ek.Goals(level=0.0, disks=0.1), node_in=1)
    rest = plan.resume(plan.prefix(len(plan) // 2).end)
    assert rest.end.disk.tolist() == plan.end.disk.tolist()
    assert rest.check().ok
    # a look without log directories: they are where the plan had them
    half = plan.prefix(len(plan) // 2).end
    blind = plan.resume(replace(half, disk=None))
    assert blind.end.disk.tolist() == plan.end.disk.tolist()


def test_no_room_on_any_disk_is_said(tmp_path):
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]], load=[[3.0], [3.0]], dimensions=["disk"], bytes="disk",
        placement=[[0], [0]], disks=ek.Disks([0, 0], [5.0] * 2), disk=[[0], [1]],
    )  # fmt: skip
    plan = ek.plan(cluster, cluster.replace(disk=[[1], [0]]))
    assert len(plan.disk_moves.blocked) == 2
    assert not plan.complete
    assert plan.end.disk.tolist() == [0, 1]
    assert "2 blocked, without room" in str(plan)
