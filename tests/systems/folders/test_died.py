"""Nodes that die while a plan is carried out: told where no wave left touches them, else a stop."""

import gzip
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.cli import main
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.guarding import guard
from tests.support.effort import mostly_long
from tests.support.systems.bench import System
from tests.support.systems.worlds import WORLDS, ends

TOOLS = [
    f"kafka-{name}.sh"
    for name in ("topics", "broker-api-versions", "reassign-partitions", "leader-election")
]
TOLD = "has died since the plan was made. Nothing that is left to do touches it"


@pytest.fixture
def system(tmp_path):
    """Twelve partitions on three of five brokers."""
    partitions = {
        f"t-{p}": {"replicas": [1 + p % 3, 1 + (p + 1) % 3], "leader": 1 + p % 3} for p in range(12)
    }
    brokers = {str(b): {"alive": True} for b in range(1, 6)}
    state = {"brokers": brokers, "partitions": partitions, "pace": 1}
    return System(tmp_path / "kafka", "kafka", TOOLS, state)


def printed(system, tool, *more):
    return subprocess.run(
        [system.bin / tool, *more], env=system.environment(), capture_output=True, check=True
    ).stdout


def moved(system, **to):
    """The folder of a plan that puts replicas elsewhere, a partition a wave."""
    told = [printed(system, TOOLS[0], "--describe"), printed(system, TOOLS[1])]
    cluster = ek.read(told)
    node = cluster.placement.node.copy()
    for name, brokers in to.items():
        p = cluster.partitions.names.index(name.replace("_", "-"))
        begin = int(cluster.placement.first[p])
        node[begin : begin + len(brokers)] = [cluster.nodes.names.index(b) for b in brokers]
    target = cluster.placement.replaced(node, cluster.placement.leader)
    plan = ek.plan(cluster, target, protocol="kafka", throttle=ek.Throttle(copies=1))
    assert plan.complete
    return plan, ek.write_plan_folder(plan, system.folder / "move")


def kill(system, broker):
    state = system.state
    state["brokers"][broker]["alive"] = False
    system.state = state


def test_a_broker_that_no_wave_touches_is_told_and_does_not_stop_it(system):
    _, folder = moved(system, t_0=["4", "2"])
    kill(system, "3")
    done = system.run(folder)
    assert done.returncode == 0, done.stderr
    assert f"note: 3: {TOLD}" in done.stderr
    assert system.state["partitions"]["t-0"]["replicas"] == [4, 2]


def test_one_that_only_waves_before_touched_is_told(system):
    plan, folder = moved(system, t_0=["5", "2"], t_1=["2", "4"])
    assert len(plan.waves) == 2
    first = plan.rows_of(plan.waves[0])[0].partition
    system.state = system.state | {"breaks": 3}  # what the second wave orders
    assert system.run(folder).returncode == 1
    assert json.loads((folder / "state.json").read_text())["done"] == 1
    kill(system, "5" if first == "t-0" else "4")
    done = system.run(folder)
    assert done.returncode == 0, done.stderr
    assert TOLD in done.stderr


def test_one_that_holds_nothing_yet_and_is_to_be_filled_stops_it(system):
    _, folder = moved(system, t_0=["4", "2"])
    kill(system, "4")
    stopped = system.run(folder)
    assert stopped.returncode == 3
    assert "4: is dead, and the plan needs it" in stopped.stderr
    assert system.calls == []


def test_a_description_alone_does_not_tell_of_empty_brokers(system, tmp_path):
    _, folder = moved(system, t_0=["4", "2"])
    described = Document("described.txt", printed(system, TOOLS[0], "--describe"))
    verdict = guard(folder, [described])
    assert (verdict.word, verdict.notes) == ("ready", ())


def test_the_last_word_tells_of_it_too(system):
    _, folder = moved(system, t_0=["4", "2"])
    assert system.run(folder).returncode == 0
    kill(system, "5")
    dumps = [
        Document("d", printed(system, TOOLS[0], "--describe")),
        Document("a", printed(system, TOOLS[1])),
    ]
    verdict = guard(folder, dumps)
    assert verdict.word == "finished"
    assert [note.partition(":")[0] for note in verdict.notes] == ["5"]


def test_what_a_dead_broker_never_ends_is_cancelled_before_the_rest(system, capsys):
    _, folder = moved(system, t_0=["4", "2"], t_1=["2", "5"])
    system.state = system.state | {"dies": "4", "pace": 1000}
    assert system.run(folder, PATIENCE="0.5").returncode == 1  # it waits for a broker that is gone
    system.state = system.state | {"pace": 1}
    assert system.run(folder, PATIENCE="0.5").returncode == 3
    rest = system.folder / "rest"
    assert main(["resume", str(folder / "plan.json"), str(folder / "dump"), "-o", str(rest)]) == 3
    told = (rest / "README.md").read_text()
    assert "lead nowhere any more, to be dropped first: t-0 to 4. A run cancels these" in told
    assert json.loads((rest / "cancel.json").read_text())["partitions"] == [
        {"topic": "t", "partition": 0, "replicas": [1, 2]}
    ]
    for _ in range(2):
        done = system.run(rest)
        assert done.returncode == 3, done.stderr  # what was to go to the dead one is left out
        assert "finished: the only wave is done" in done.stdout
    assert sum("--cancel" in call for call in system.calls) == 1
    assert system.state["partitions"]["t-0"]["replicas"] == [1, 2]
    assert system.state["partitions"]["t-1"]["replicas"] == [2, 5]


def test_where_nothing_is_left_but_to_cancel_it_is_done_and_the_rest_named(system, capsys):
    _, folder = moved(system, t_0=["4", "2"])
    system.state = system.state | {"dies": "4", "pace": 1000}
    assert system.run(folder, PATIENCE="0.5").returncode == 1
    system.state = system.state | {"pace": 1}
    assert system.run(folder, PATIENCE="0.5").returncode == 3
    rest = system.folder / "rest"
    assert main(["resume", str(folder / "plan.json"), str(folder / "dump"), "-o", str(rest)]) == 3
    for _ in range(2):
        done = system.run(rest)
        assert done.returncode == 3, done.stderr
        assert "what the folder holds is done, and not all of the plan: " in done.stderr
        assert "t-0[0] 1 -> 4" in done.stderr
    assert sum("--cancel" in call for call in system.calls) == 1
    assert system.state["partitions"]["t-0"]["replicas"] == [1, 2]


def test_a_node_that_elasticsearch_names_no_more_is_dead(tmp_path, capsys):
    shards = [
        {"index": "i", "shard": str(s), "prirep": "p", "state": "STARTED", "node": node}
        for s, node in enumerate(("a", "b", "c"))
    ]
    ids = [*"abcd"]

    def dump(nodes):
        told = {
            f"id-{n}": {"name": n, "ip": "", "roles": ["data"], "transport_address": "x",
                        "attributes": {}}
            for n in nodes
        }  # fmt: skip
        return [json.dumps(shards).encode(), json.dumps({"nodes": told}).encode()]

    cluster = ek.read(dump(ids))
    target = cluster.placement.replaced(
        np.array([3, 1, 0], np.int32), np.array([0, 0, 0], np.int16)
    )
    folder = ek.write_plan_folder(ek.plan(cluster, target), tmp_path / "move")

    def verdict(nodes):
        return guard(folder, [Document(f"{i}.json", one) for i, one in enumerate(dump(nodes))])

    assert verdict("abcd").word == "ready"
    gone = verdict("abc")
    assert gone.differences == ("d: is dead, and the plan needs it",)
    now = tmp_path / "now"
    now.mkdir()
    for i, one in enumerate(dump("abc")):
        (now / f"{i}.json").write_bytes(one)
    capsys.readouterr()
    rest = str(tmp_path / "rest")
    assert main(["resume", str(folder / "plan.json"), str(now), "-o", rest]) == 3
    told = capsys.readouterr()
    assert "dead since the plan was made: d;" in told.err
    assert "died since: d;" in told.out
    left = ek.read_plan(Path(rest, "plan.json"))
    assert [left.cluster.nodes.names[n] for n in left.steps.target[left.steps.kind == 0]] == ["a"]


@pytest.mark.parametrize("zones", [(), ("a", "b", "a", "b")])
@pytest.mark.parametrize("configured", [True, False])
def test_an_instance_of_helix_that_is_live_no_more_is_dead(tmp_path, zones, configured):
    world = WORLDS["helix"](tmp_path, zones=zones)
    folder = ek.write_plan_folder(world.plan(), world.system.folder / "move")
    left = ["h1", "h2", "h3"]
    gone = {"online": left} if configured else {"online": left, "instances": left}
    world.system.state = world.system.state | gone
    stopped = world.run(folder)
    assert stopped.returncode == 3
    assert "h4: is dead, and the plan needs it" in stopped.stderr
    assert world.system.calls == []
    told = ["resume", str(folder / "plan.json"), str(folder / "dump"), "-q"]
    assert main([*told, "-o", str(world.system.folder / "rest")]) == 3
    left = ek.read_plan(world.system.folder / "rest" / "plan.json")
    copies = left.steps.target[left.steps.kind == 0]
    assert {left.cluster.nodes.names[n] for n in copies} <= {"h1", "h2", "h3"}


def test_a_device_that_swift_has_no_more_is_dead(tmp_path):
    world = WORLDS["swift"](tmp_path)
    plan = world.plan()
    folder = ek.write_plan_folder(plan, world.system.folder / "move")
    ring = Path(world.environment["RING"])
    data = gzip.decompress(ring.read_bytes())
    length = int.from_bytes(data[6:10], "big")
    head = json.loads(data[10 : 10 + length])
    head["devs"][4] = None
    text = json.dumps(head).encode()
    there = data[:6] + len(text).to_bytes(4, "big") + text + data[10 + length :]
    verdict = guard(folder, [Document("now.ring", there)])
    gone = next(name for name in plan.cluster.nodes.names if name.startswith("d4r"))
    assert verdict.differences == (f"{gone}: is dead, and the plan needs it",)


@pytest.mark.parametrize("name", mostly_long(WORLDS, ["longhorn"]))
def test_nothing_is_told_where_all_live(name, tmp_path):
    world = WORLDS[name](tmp_path)
    plan = world.plan()
    folder = ek.write_plan_folder(plan, world.system.folder / "move")
    done = world.run(folder)
    assert done.returncode == 0, done.stderr
    assert "has died" not in done.stderr
    assert world.seen() == ends(plan)
