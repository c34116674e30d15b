"""A folder for RabbitMQ, carried out from end to end, on queues with names that no shell likes."""

import json
import subprocess

import pytest

import evenkeel as ek
from tests.support.effort import mostly_long
from tests.support.systems.bench import System, members_and_leaders

NODES = [f"rabbit@{one}" for one in "abcde"]
HOSTILE = ["; rm -rf x", "'q' \"w\"", "../up", "a\nb", "* ?", "&& |", "#", "ü", " "]


@pytest.fixture
def system(tmp_path):
    queues = {
        name: {"leader": NODES[0], "members": NODES[:3], "behind": {}}
        for name in [*HOSTILE, "orders", "bills", "mail"]
    }
    state = {"queues": queues, "nodes": NODES, "vhost": "books; ls", "pace": 1}
    return System(tmp_path / "rabbitmq", "rabbitmq", ["rabbitmqctl", "rabbitmq-queues"], state)


def asked(system, *arguments):
    done = subprocess.run(
        [system.bin / "rabbitmqctl", "-q", *arguments], env=system.environment(),
        capture_output=True, check=True,
    )  # fmt: skip
    return done.stdout


def read(system):
    vhost = system.state["vhost"]
    return ek.read(
        asked(system, "list_queues", "--vhost", vhost), asked(system, "cluster_status"), vhost=vhost
    )


@pytest.fixture
def plan(system):
    cluster = read(system)
    result = ek.solve(cluster, goals=ek.Goals(level=0.0, leaders=0.1))
    return ek.plan(cluster, result, throttle=ek.Throttle(node_in=4))


def shown(system):
    rows = system.state["queues"].items()
    return {name: ({*one["members"]}, one["leader"]) for name, one in rows}


def test_it_is_carried_out_and_undone(system, plan):
    before = shown(system)
    assert len(plan.waves) > 1
    folder = ek.write_plan_folder(plan, system.folder / "move")
    done = system.run(folder)
    assert done.returncode == 0, done.stderr
    assert shown(system) == members_and_leaders(plan) != before
    back = system.run(folder / "undo")
    assert back.returncode == 0, back.stderr
    assert shown(system) == before
    assert {*system.folder.iterdir()} == {system.bin, system.file, system.log, folder}


@pytest.mark.parametrize("call", mostly_long([1, 5], [5]))
def test_it_goes_on_where_it_stopped(system, plan, call):
    folder = ek.write_plan_folder(plan, system.folder / "move")
    system.state = system.state | {"breaks": call}
    assert system.run(folder).returncode == 1
    done = system.run(folder)
    assert done.returncode == 0, done.stderr
    assert shown(system) == members_and_leaders(plan)


@pytest.mark.parametrize("back", mostly_long([False, True], [True]))
def test_a_queue_with_a_member_too_many_is_resumed_there_and_back(system, plan, back):
    before = shown(system)
    folder = ek.write_plan_folder(plan, system.folder / "move")
    system.state = system.state | {"breaks": 2}
    assert system.run(folder).returncode == 1
    assert max(len(members) for members, _ in shown(system).values()) == 4
    rest = (plan.undo() if back else plan).resume(read(system))
    assert rest.complete
    done = system.run(ek.write_plan_folder(rest, system.folder / "rest"))
    assert done.returncode == 0, done.stderr
    assert shown(system) == (before if back else members_and_leaders(plan))


def test_a_node_that_has_died_stops_it(system, plan):
    folder = ek.write_plan_folder(plan, system.folder / "move")
    system.state = system.state | {"running": NODES[:4]}
    stopped = system.run(folder)
    assert stopped.returncode == 3
    assert "rabbit@e: is dead, and the plan needs it" in stopped.stderr
    assert system.calls == []
    assert json.loads((folder / "state.json").read_text())["done"] == 0


def lose(system, node):
    """One node of three goes for good: its queues live on without a member."""
    left = [one for one in NODES if one != node]
    state = system.state | {"running": left}
    for queue in state["queues"].values():
        queue["leader"] = NODES[0]
    system.state = state


def members_after_each_call(system, queue="orders"):
    """How many members a queue had after each call that changed them."""
    counts, members = [], 3
    for call in map(json.loads, system.calls):
        if call[1] in ("add_member", "delete_member") and queue in call:
            members += 1 if call[1] == "add_member" else -1
            counts.append(members)
    return counts


def test_a_lost_member_goes_before_another_comes(system):
    lose(system, NODES[2])
    cluster = read(system)
    plan = ek.plan(cluster, ek.solve(cluster, goals=ek.Goals()))
    done = system.run(ek.write_plan_folder(plan, system.folder / "move"))
    assert done.returncode == 0, done.stderr
    assert shown(system) == members_and_leaders(plan)
    assert all(NODES[2] not in members for members, _ in shown(system).values())
    assert members_after_each_call(system) == [2, 3]


@pytest.mark.long
def test_a_run_that_stops_between_a_lost_member_and_a_new_one_goes_on(system):
    lose(system, NODES[2])
    cluster = read(system)
    plan = ek.plan(cluster, ek.solve(cluster, goals=ek.Goals()))
    folder = ek.write_plan_folder(plan, system.folder / "move")
    system.state = system.state | {"breaks": 1}
    assert system.run(folder).returncode == 1
    assert min(len(members) for members, _ in shown(system).values()) == 2
    done = system.run(folder)
    assert done.returncode == 0, done.stderr
    assert shown(system) == members_and_leaders(plan)


def test_several_virtual_hosts_are_refused(tmp_path):
    rows = [{"name": "q", "vhost": host, "leader": NODES[0], "members": NODES[:1]} for host in "ab"]
    cluster = ek.read(json.dumps(rows).encode(), json.dumps(
        {"running_nodes": NODES, "disk_nodes": NODES}).encode())  # fmt: skip
    plan = ek.plan(cluster, cluster.placement)
    with pytest.raises(ek.InvalidInput, match="several virtual hosts"):
        ek.write_plan_folder(plan, tmp_path / "move")
