"""A folder for NATS, carried out from end to end, on streams with names that no shell likes."""

import json
import subprocess

import pytest

import evenkeel as ek
from tests.support.effort import mostly_long
from tests.support.systems.bench import System, members_and_leaders

SERVERS = {f"n{i}": [f"server:n{i}", "x"] for i in range(1, 6)}
HOSTILE = [";rm-rf", "'q'\"w\"", "&&|", "#", "ü", "$(x)", "-f", "`b`"]
CONTEXTS = {"SYSTEM_CONTEXT": "sys tem", "CONTEXT": "a's"}


@pytest.fixture
def system(tmp_path):
    streams = {
        name: {"leader": "n1", "peers": ["n1", "n2", "n3"], "behind": 0}
        for name in [*HOSTILE, "orders", "bills", "mail"]
    } | {"alone": {"leader": "n1", "peers": ["n1"], "behind": 0}}
    state = {"servers": SERVERS, "streams": streams, "pace": 2}
    return System(tmp_path / "nats", "nats", ["nats"], state)


def read(system):
    asked = subprocess.run(
        [system.bin / "nats", "--context", "sys tem", "server", "request", "jetstream"],
        env=system.environment(), capture_output=True, check=True,
    )  # fmt: skip
    return ek.read(asked.stdout)


def run(system, folder):
    return system.run(folder, **CONTEXTS)


@pytest.fixture
def plan(system):
    cluster = read(system)
    result = ek.solve(cluster, goals=ek.Goals(level=0.0, leaders=0.1))
    return ek.plan(cluster, result, throttle=ek.Throttle(node_in=4))


def shown(system):
    return {name: ({*one["peers"]}, one["leader"]) for name, one in system.state["streams"].items()}


def test_it_is_carried_out_and_undone(system, plan):
    before = shown(system)
    assert len(plan.waves) > 1
    folder = ek.write_plan_folder(plan, system.folder / "move")
    done = run(system, folder)
    assert done.returncode == 0, done.stderr
    assert shown(system) == members_and_leaders(plan) != before
    assert not len(ek.solve(read(system), goals=ek.Goals(level=0.0, leaders=0.1)).moves)
    back = run(system, folder / "undo")
    assert back.returncode == 0, back.stderr
    assert shown(system) == before


@pytest.mark.parametrize("call", mostly_long([1, 7], [7]))
def test_it_goes_on_where_it_stopped(system, plan, call):
    folder = ek.write_plan_folder(plan, system.folder / "move")
    system.state = system.state | {"breaks": call}
    assert run(system, folder).returncode == 1
    done = run(system, folder)
    assert done.returncode == 0, done.stderr
    assert shown(system) == members_and_leaders(plan)


def test_a_server_that_does_not_answer_stops_it(system, plan):
    folder = ek.write_plan_folder(plan, system.folder / "move")
    system.state = system.state | {"down": ["n5"]}
    stopped = run(system, folder)
    assert stopped.returncode == 3
    assert "n5: is dead, and the plan needs it" in stopped.stderr
    assert system.calls == []
    assert json.loads((folder / "state.json").read_text())["done"] == 0


def test_streams_move_off_a_lost_server(system):
    system.state = system.state | {"down": ["n3"]}
    cluster = read(system)
    plan = ek.plan(cluster, ek.solve(cluster))
    done = run(system, ek.write_plan_folder(plan, system.folder / "move"))
    assert done.returncode == 0, done.stderr
    assert shown(system) == members_and_leaders(plan)
    assert all("n3" not in peers for peers, _ in shown(system).values())


def test_a_move_that_is_refused_stops_it(system, plan):
    folder = ek.write_plan_folder(plan, system.folder / "move")
    system.state = system.state | {"servers": {name: ["x"] for name in SERVERS}}
    stopped = run(system, folder)
    assert stopped.returncode == 1
    assert "a move is asked for - 0 suitable peers" in stopped.stderr
