"""A folder for Kafka, carried out from end to end."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import evenkeel as ek
from evenkeel.cli import main
from evenkeel.model.runtime.figures import duration
from evenkeel.systems import registry
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.guarding import guard
from evenkeel.systems.folders.writing import seconds_of, waves_of
from evenkeel.systems.plans.targets import target_by_name
from tests.support import places
from tests.support.systems.bench import System

DUMPS = places.DATA / "formats"
TOOLS = [
    f"kafka-{name}.sh"
    for name in ("topics", "broker-api-versions", "reassign-partitions", "leader-election")
]


def skewed(pace=1):
    """Twelve partitions on three of five brokers."""
    partitions = {
        f"t-{p}": {"replicas": [1 + p % 3, 1 + (p + 1) % 3], "leader": 1 + p % 3} for p in range(12)
    }
    brokers = {str(b): {"alive": True} for b in range(1, 6)}
    return {"brokers": brokers, "partitions": partitions, "pace": pace}


@pytest.fixture
def system(tmp_path):
    return System(tmp_path / "kafka", "kafka", TOOLS, skewed())


def described(system):
    """What the tools print now, read."""
    outputs = [
        subprocess.run(
            [system.bin / tool, *more], env=system.environment(), capture_output=True, check=True
        ).stdout
        for tool, more in (
            ("kafka-topics.sh", ["--describe"]),
            ("kafka-broker-api-versions.sh", []),
        )
    ]
    return ek.read(outputs)


def planned(system, **throttle):
    cluster = described(system)
    result = ek.solve(cluster, goals=ek.Goals(level=0.0, leaders=0.0))
    return ek.plan(cluster, result, protocol="kafka", throttle=ek.Throttle(**throttle))


def folder_of(system, **throttle):
    plan = planned(system, **(throttle or {"node_in": 1}))
    assert len(plan.waves) > 2
    return plan, ek.write_plan_folder(plan, system.folder / "move")


def stands(plan):
    """Where a plan ends, as the system would tell it."""
    names, first = plan.cluster.nodes.names, plan.end.first
    return {
        name: (
            sorted(int(names[n]) for n in plan.end.node[first[p] : first[p + 1]]),
            int(names[plan.end.leader_node[p]]),
        )
        for p, name in enumerate(plan.cluster.partitions.names)
    }


def shown(system):
    rows = system.state["partitions"].items()
    return {name: (sorted(one["replicas"]), one["leader"]) for name, one in rows}


def test_it_is_carried_out_and_undone(system):
    before = system.state["partitions"]
    plan, folder = folder_of(system)
    done = system.run(folder)
    assert done.returncode == 0, done.stderr
    assert shown(system) == stands(plan)
    waves = len(list((folder / "waves").glob("*.reassignment.json")))
    assert json.loads((folder / "state.json").read_text())["done"] == waves
    assert not (folder / "running").exists()
    calls = len(system.calls)
    again = system.run(folder)
    assert again.returncode == 0
    assert len(system.calls) == calls
    back = system.run(folder / "undo")
    assert back.returncode == 0, back.stderr
    assert {n: (o["replicas"], o["leader"]) for n, o in system.state["partitions"].items()} == {
        n: (o["replicas"], o["leader"]) for n, o in before.items()
    }


def test_leads_are_handed_back_by_an_election_alone(tmp_path):
    state = skewed()
    for name in ("t-2", "t-5"):
        one = state["partitions"][name]
        one["leader"] = one["replicas"][1]
    system = System(tmp_path / "kafka", "kafka", TOOLS, state)
    plan = ek.solve(described(system), goals=ek.Goals(level=None)).plan(protocol="kafka")
    folder = ek.write_plan_folder(plan, system.folder / "move")
    assert not [*(folder / "waves").glob("*.reassignment.json")]
    done = system.run(folder)
    assert done.returncode == 0, done.stderr
    rows = system.state["partitions"].values()
    assert all(one["leader"] == one["replicas"][0] for one in rows)
    assert not any("--execute" in str(call) for call in system.calls)


@pytest.mark.parametrize("call", [1, 4])
def test_it_goes_on_where_it_stopped(system, call):
    plan, folder = folder_of(system)
    system.state = system.state | {"breaks": call}
    stopped = system.run(folder)
    assert stopped.returncode == 1
    assert "failed with exit code 1" in stopped.stderr
    assert not (folder / "running").exists()
    done = system.run(folder)
    assert done.returncode == 0, done.stderr
    assert shown(system) == stands(plan)


def test_what_was_on_a_dead_broker_is_mended_under_a_throttle(tmp_path):
    """The tool sets the throttle of the brokers that are up, and fails for the one that is not."""
    state = skewed()
    state["brokers"]["2"]["alive"] = False
    for one in state["partitions"].values():
        one["leader"] = next(b for b in one["replicas"] if b != 2)
    system = System(tmp_path / "kafka", "kafka", TOOLS, state)
    plan = ek.solve(described(system), goals=ek.Goals(level=None)).plan(protocol="kafka")
    folder = ek.write_plan_folder(plan, system.folder / "move")
    done = system.run(folder, THROTTLE="1000")
    assert done.returncode == 0, done.stderr
    assert not any(2 in one["replicas"] for one in system.state["partitions"].values())
    assert "throttle" not in system.state


def ended_without_us(system, plan):
    """Kafka ends what it was asked for while no run waits for it."""
    state, ends = system.state, stands(plan)
    for name, one in state["partitions"].items():
        if "to" in one:
            one["replicas"] = one.pop("to")
            del one["adding"], one["was"]
            one["leader"] = ends[name][1]
    system.state = state


def test_a_throttle_goes_though_the_copies_ended_while_nothing_ran(system):
    plan = planned(system)
    folder = ek.write_plan_folder(plan, system.folder / "move")
    system.state = system.state | {"breaks": 1}
    stopped = system.run(folder, THROTTLE="1000")
    # whom the file names is asked for its throttle, and may be down
    assert {*re.findall(r'"replicas":(.*?)}', (folder / "waves/throttled.json").read_text())} == {
        "[]"
    }
    assert stopped.returncode == 1
    assert "left with the throttle on copies" in stopped.stderr
    early = system.run(folder, "--release", THROTTLE="1000")
    assert early.returncode == 1
    assert "still held" in early.stderr
    assert system.state["throttle"] == "1000"
    ended_without_us(system, plan)
    done = system.run(folder, THROTTLE="1000")
    assert done.returncode == 0, done.stderr
    assert "finished" in done.stdout
    assert "throttle" not in system.state


def test_a_partition_that_somebody_else_moved_stops_it(system):
    plan, folder = folder_of(system)
    name = plan.cluster.partitions.names[plan.steps.partition[plan.waves[-1][0]]]
    state, (nodes, _) = system.state, stands(plan)[name]
    elsewhere = [b for b in range(1, 6) if b not in nodes and b > 3] + [1, 2]
    state["partitions"][name] |= {"replicas": elsewhere[:2], "leader": elsewhere[0]}
    system.state = state
    stopped = system.run(folder)
    assert stopped.returncode == 3
    assert name in stopped.stderr
    assert system.calls == []


def test_no_folder_is_made_of_a_plan_that_is_not_safe(system, tmp_path, monkeypatch, capsys):
    unsafe = replace(planned(system), throttle=ek.Throttle(copies=1)).check()
    assert not unsafe.ok
    monkeypatch.setattr(ek.Plan, "check", lambda plan: unsafe)
    file, out = tmp_path / "described.txt", tmp_path / "move"
    with pytest.raises(ek.InvalidInput, match="is not safe to carry out"):
        ek.write_plan_folder(planned(system), out)
    tools = [[system.bin / "kafka-topics.sh", "--describe"], [system.bin / TOOLS[1]]]
    files = [file, tmp_path / "answers.txt"]
    for tool, printed in zip(tools, files, strict=True):
        output = subprocess.run(tool, env=system.environment(), capture_output=True, check=True)
        printed.write_bytes(output.stdout)
    given = [*map(str, files), "--level", "0", "-o", str(out)]
    assert main(["plan", *given]) == 1
    assert not out.exists()
    assert "was not written" in capsys.readouterr().out
    assert main(["plan", *given, "-q"]) == 1
    assert "not safe" in capsys.readouterr().err


def test_both_plans_stand_on_the_one_cluster(system, tmp_path):
    plan, folder = folder_of(system)
    there, back = (ek.read_plan(folder / way / "plan.json") for way in ("", "undo"))
    assert there.rows() == plan.rows()
    assert there.check().ok
    assert back.check().ok
    assert (back.cluster.placement.node == plan.end.node).all()
    assert (back.cluster.placement.leader_node == plan.end.leader_node).all()
    assert (back.end.node == plan.cluster.placement.node).all()
    alone = tmp_path / "alone.json"
    alone.write_bytes((folder / "plan.json").read_bytes())
    with pytest.raises(ek.InvalidInput, match=r"cluster_file: is not there"):
        ek.read_plan(alone)
    assert ek.read_plan(alone, plan.cluster).rows() == plan.rows()
    alone.write_text(alone.read_text().replace("cluster.npz", "/etc/passwd"))
    with pytest.raises(ek.InvalidInput, match="cluster_file"):
        ek.read_plan(alone)


def test_its_scripts_are_scripts(system):
    _, folder = folder_of(system)
    for script in (folder / "run.sh", folder / "undo" / "run.sh"):
        subprocess.run(["sh", "-n", script], check=True)


def test_a_plan_that_changes_roles_has_no_folder(system):
    plan = planned(system)
    start = plan.cluster.placement
    cluster = plan.cluster.replace(placement=start, role=[0, 1] * (len(start.node) // 2))
    target = replace(cluster.placement, role=start.role)
    recast = ek.plan(cluster, target, protocol="plain")
    with pytest.raises(ek.InvalidInput, match="which kafka has no command for"):
        ek.write_plan_folder(recast, system.folder / "move")
    assert not (system.folder / "move").exists()


def test_where_all_that_is_left_is_on_a_dead_broker_its_page_promises_no_way_back(tmp_path):
    described = tmp_path / "described.txt"
    described.write_text(
        "Topic: t\tTopicId: x\tPartitionCount: 3\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,3\tIsr: 1\n"
        "\tTopic: t\tPartition: 1\tLeader: 2\tReplicas: 3,2\tIsr: 2\n"
        "\tTopic: t\tPartition: 2\tLeader: 4\tReplicas: 4,1\tIsr: 4,1\n"
    )
    cluster = ek.read(described)
    plan = ek.solve(cluster, goals=ek.Goals(level=None)).plan(protocol="kafka")
    ek.write_plan_folder(plan, tmp_path / "move")
    page = (tmp_path / "move" / "README.md").read_text()
    assert "There is no way back: 2 changes" in page and "(3 is down)" in page
    assert "goes back to where every replica was" not in page


def test_the_way_back_ends_where_a_leader_was_not_preferred(tmp_path):
    """Its list has its order back, in which who leads now comes first: nothing is left to see."""
    state = skewed()
    for p in (0, 3):
        state["partitions"][f"t-{p}"]["leader"] = 2
    system = System(tmp_path / "kafka", "kafka", TOOLS, state)
    result = ek.solve(described(system), "leaders")
    assert result.comparison.leader_changes
    plan = ek.plan(result.cluster, result, protocol="kafka")
    folder = ek.write_plan_folder(plan, tmp_path / "move")
    # the first of its list is elected, whoever led before
    page = (folder / "undo" / "README.md").read_text()
    assert not re.search(r"t-[03] [^;]*led by 2", page) and "in another order" not in page
    said = "ther leaders than before the plan stay where the system elects them: t-"
    assert said in page and said in (folder / "README.md").read_text()
    done = system.run(folder)
    assert done.returncode == 0, done.stderr
    back = system.run(folder / "undo")
    assert back.returncode == 1 and "nothing to run: o" + said in back.stderr
    lists = {name: one["replicas"] for name, one in system.state["partitions"].items()}
    assert lists == {name: one["replicas"] for name, one in state["partitions"].items()}


@pytest.mark.parametrize("moves", [0, 3, 5])
def test_a_repair_cut_short_by_a_budget_names_no_dead_broker_and_takes_nothing_off(moves, tmp_path):
    state = skewed()
    state["brokers"]["2"]["alive"] = False
    for one in state["partitions"].values():
        one["leader"] = next(b for b in one["replicas"] if b != 2)
    system = System(tmp_path / "kafka", "kafka", TOOLS, state)
    cluster = described(system)
    goals, limits = ek.Goals(level=0.2, leaders=0.2), ek.Limits(moves=moves)
    plan = ek.solve(cluster, goals=goals, limits=limits).plan(protocol="kafka")
    folder = ek.write_plan_folder(plan, tmp_path / "move")
    for file in folder.glob("waves/*.reassignment.json"):
        for one in json.loads(file.read_text())["partitions"]:
            assert 2 not in one["replicas"] and len(one["replicas"]) == 2
    done = system.run(folder)
    assert done.returncode == 0, done.stderr
    now = system.state["partitions"].values()
    assert sum(2 in one["replicas"] for one in now) == 8 - moves


class TestLeftOut:
    def told(self, *files):
        cluster = registry.read([DUMPS / one for one in files])
        return [one.split(":")[0] for one in registry.find("kafka").left_out(cluster)]

    def test_what_no_file_tells_is_named(self):
        dead = "no sign of life of brokers 1001, which lead nothing and are in sync with no leader"
        returns = "no lead of the preferred broker in 1 partition (orders-1), though it is "
        returns += "in sync"
        shorter = "fewer replicas than the replication factor in 1 partition (clicks-eu-1)"
        assert self.told("kafka_describe.txt") == [
            "no racks", shorter, returns, dead, "no sizes", "no capacities of replicas",
        ]  # fmt: skip
        files = ["kafka_describe.txt", "kafka_racks.json", "kafka_logdirs.txt"]
        unsized = "no size of 1 of 5 partitions"
        # broker 4 stands only in the file of racks
        silent = "no sign of life of brokers 4, which hold nothing"
        folders = "no capacities of log directories on brokers 1"
        moving = "a move between log directories under way of 1 replica"
        assert self.told(*files) == [
            shorter, returns, dead, silent, folders, moving, unsized,
            "no capacities of replicas and disk",
        ]  # fmt: skip
        assert self.told(*files, "kafka_capacity.json") == [
            shorter, returns, dead, silent, moving, unsized,
        ]  # fmt: skip

    def test_it_is_noted_on_the_way_and_in_the_folder(self, tmp_path, capsys):
        described = str(DUMPS / "kafka_describe.txt")
        # a partition of it is in sync on the broker that is down alone: that is left
        assert main(["plan", described, "-o", str(tmp_path / "move")]) == 3
        noted = capsys.readouterr().err
        lacks = "racks", "lead of", "sign of life", "sizes", "capacities"
        page = (tmp_path / "move" / "README.md").read_text()
        assert all(f"note: no {one}" in noted and f"- No {one}" in page for one in lacks)
        main(["check", described])
        assert "no racks" in capsys.readouterr().err
        main(["check", described, "-q"])
        assert "note" not in capsys.readouterr().err

    def test_nodes_that_were_added_are_named_with_their_racks(self, tmp_path):
        files = [str(DUMPS / f"kafka_{one}") for one in ("describe.txt", "racks.json")]
        folder = tmp_path / "move"
        assert main(["plan", *files, "--add-nodes", "7,8", "-o", str(folder)]) in (0, 3)
        page = (folder / "README.md").read_text()
        found = re.search(r"Nodes without replicas now, with some after the plan: (.*?)\. ", page)
        racks = dict(re.findall(r"\b([78]) \(rack ([^)]+)\)", found[1] if found else ""))
        assert {*racks} == {"7", "8"}
        described = Document.load(files[0])
        for seven, different in ((racks["7"], False), ("zz", True), (None, False)):
            seen = racks | {"7": seven} if seven else {"8": racks["8"]}
            live = Document("racks.json", json.dumps(seen).encode())
            verdict = guard(folder, [described, live])
            elsewhere = f"7: is in rack zz, where the plan has it in {racks['7']}"
            assert (elsewhere in verdict.differences) is different

    @pytest.mark.parametrize(
        ("beside", "lacks"),
        [
            ([], ["racks", "sizes"]),
            (["racks.json"], ["sizes"]),
            (["racks.json", "logdirs.txt"], []),
        ],
    )
    def test_what_the_plan_knows_is_not_noted_on_the_rest_of_it(
        self, tmp_path, capsys, beside, lacks
    ):
        described = str(DUMPS / "kafka_describe.txt")
        files = [described, *(str(DUMPS / f"kafka_{one}") for one in beside)]
        plan = str(tmp_path / "plan.json")
        main(["plan", *files, "-o", plan, "--quiet"])
        capsys.readouterr()
        main(["resume", plan, described])
        noted = capsys.readouterr().err
        assert [one for one in ("racks", "sizes") if f"note: no {one}" in noted] == lacks


def dumped(system, tmp_path, **states):
    """What is described now, as a file, with some partitions otherwise."""
    state = system.state
    for name, more in states.items():
        state["partitions"][name.replace("_", "-")] |= more
    system.state = state
    file = tmp_path / "described.txt"
    told = subprocess.run(
        [system.bin / "kafka-topics.sh", "--describe"], env=system.environment(),
        capture_output=True, check=True,
    )  # fmt: skip
    file.write_bytes(told.stdout)
    return file


class TestALookSays:
    def test_which_replicas_of_the_wave_are_not_in_sync(self, system, tmp_path, capsys):
        _, folder = folder_of(system)
        first = json.loads((folder / "waves.json").read_text())["waves"][0]["expect"][0]
        file = dumped(system, tmp_path)
        assert main(["run", str(folder), "--dry-run", "--dump", str(file)]) == 0
        assert "not in sync" not in capsys.readouterr().err
        number = first[0].removeprefix("t-")
        lines = [
            re.sub(r"Isr: (\d+),\d+", r"Isr: \1", line)
            if f"Partition: {number}\t" in line else line
            for line in file.read_text().split("\n")
        ]  # fmt: skip
        file.write_text("\n".join(lines))
        assert main(["run", str(folder), "--dry-run", "--dump", str(file)]) == 0
        told = capsys.readouterr().err
        assert "replicas of 1 partition of wave 1 are not in sync: " in told
        assert first[0] in told


class TestItsPage:
    def test_lists_what_each_wave_changes_and_how_long_it_takes(self, system):
        plan, folder = folder_of(system, node_in=1, node_out=1)
        page = (folder / "README.md").read_text()
        assert "Planned for: protocol kafka · node_in 1 · node_out 1." in page
        waves = len(list((folder / "waves").glob("*.reassignment.json")))
        listed = re.findall(r"^- \*\*(\d+)\*\*: (.*)$", page, re.M)
        assert [int(number) for number, _ in listed] == [*range(1, waves + 1)]
        assert "goes back to where every replica was" in page
        told = " ".join(line for _, line in listed)
        for row in plan.rows():
            if row.kind == "copy":
                assert re.search(rf"{row.partition} [^;]*-> [^;]*{row.target}", told)

    def test_adds_up_waves_that_wait_for_one_another(self, tmp_path):
        plan = sized_plan(ek.Throttle(node_bandwidth=10.0, node_in=1))
        page = page_of(plan, tmp_path)
        assert "| wave | partitions | copies | leader changes | disk | at least |" in page
        waves = waves_of(plan, plan.cluster.placement)
        seconds = seconds_of(plan, waves)
        assert len(seconds) > 1
        assert sum(seconds) >= plan.makespan
        assert f"take {duration(sum(seconds))} at least." in page
        assert "| `THROTTLE` | `10` |" in page
        assert "Nothing here enforces" not in page


def sized_plan(throttle):
    """Six partitions of 100 bytes that level three brokers."""
    rows = [{"topic": "t", "partition": p, "replicas": [1]} for p in range(6)]
    document = json.dumps({"version": 1, "partitions": rows}).encode()
    loads = "topic,partition,disk\n" + "".join(f"t,{p},100\n" for p in range(6))
    racks = b'{"1": "a", "2": "b", "3": "c"}'
    cluster = ek.read(document, racks, loads.encode())
    cluster = cluster.replace(bytes="disk")
    result = ek.solve(cluster, goals=ek.Goals(level=0.0))
    return ek.plan(cluster, result, throttle=throttle, protocol="kafka")


def page_of(plan, tmp_path):
    return (ek.write_plan_folder(plan, tmp_path / "move") / "README.md").read_text()


@pytest.mark.parametrize(
    ("goals", "said"),
    [
        (
            ek.Goals(level=0.04, leaders="10%", floor={"replicas": 0.5}),
            "Asked for: replicas at most 33.33% of capacity: the mean of 33.33% plus 4.00%, "
            "rounded down to whole replicas; disk at most 33.33% of capacity: the mean of 33.33% "
            "plus 4.00%, rounded down to whole replicas; replicas at least 16.67% of capacity on "
            "nodes that take replicas: the mean of 33.33% less 50.00%, rounded down to whole "
            "replicas; leaders at most 2 on a node: its share plus 10.00%, in whole leaders.",
        ),
        (ek.Goals(level={"disk": 0.125, "replicas": None}), "Asked for: disk at most"),
        (ek.Goals(level=None), "Asked for: all rules kept, and no levelness."),
        (ek.Cost(), "Asked for: the least cost."),
    ],
)
def test_its_page_states_the_goals_that_were_asked(goals, said, tmp_path):
    cluster = sized_plan(None).cluster
    result = ek.solve(cluster, goals=goals)
    page = page_of(result.plan(protocol="kafka"), tmp_path)
    assert said in page
    asked = re.search(r"Asked for: .*", page)[0]
    halfway = result.plan(protocol="kafka").prefix(0)
    assert asked in page_of(halfway, tmp_path / "halfway")
    assert asked in page_of(result.plan(protocol="kafka").resume(cluster), tmp_path / "rest")


def test_its_page_says_nothing_of_goals_that_nobody_named(tmp_path):
    plan = sized_plan(None)
    again = ek.plan(plan.cluster, plan.target, protocol="kafka")
    assert "Asked for" not in page_of(again, tmp_path)
    led = ek.solve(plan.cluster, "leaders").plan(protocol="kafka")
    assert "Asked for" not in page_of(led, tmp_path / "led")


@pytest.mark.parametrize(
    ("leader", "in_sync"),
    [("1", "1,2"), ("2", "1,2"), ("1", "1")],
    ids=["led", "not led", "behind"],
)
def test_the_way_back_of_a_plan_that_was_never_run_is_finished(tmp_path, capsys, leader, in_sync):
    """Though it elects another leader than there was, and leaves repairs as the plan makes them."""
    described = tmp_path / "described.txt"
    row = "\tTopic: t\tPartition: {}\tLeader: {}\tReplicas: {}\tIsr: {}\n"
    rows = [(0, leader, "1,2", in_sync), (1, 2, "2,3", "2,3"), (2, 3, "3,9", "3")]
    described.write_text(
        "Topic: t\tPartitionCount: 3\tReplicationFactor: 2\tConfigs: \n"
        + "".join(row.format(*one) for one in rows)
    )
    racks = tmp_path / "racks.csv"
    racks.write_text("broker,rack\n1,a\n2,b\n3,c\n4,a\n")
    files = [str(described), str(racks)]
    move = str(tmp_path / "move")
    main(["plan", *files, "--drain", "2", "--throttle", "copies=1", "-o", move, "-q"])
    capsys.readouterr()
    assert main(["run", f"{move}/undo", "--dry-run", "--dump", files[0]]) == 0
    printed = capsys.readouterr()
    assert "finished: " in printed.out.splitlines()[0]
    assert "nothing of the plan is carried out" in printed.err


def stood_in():
    """Twelve partitions, of which broker 2 leads those that begin with 1."""
    state = skewed()
    for one in state["partitions"].values():
        one["leader"] = 2 if one["replicas"][0] == 1 else one["leader"]
    return state


def led_on(placement):
    """The same, with lists that begin with who leads."""
    return replace(placement, flags=placement.flags & ~ek.Flag.PREFERRED)


class TestAnotherOrder:
    """Lists that begin with another broker than the one that leads, and is to lead on."""

    @pytest.fixture
    def made(self, tmp_path):
        system = System(tmp_path / "kafka", "kafka", TOOLS, stood_in())
        cluster = described(system)
        plan = ek.plan(cluster, led_on(cluster.placement))
        return system, plan, ek.write_plan_folder(plan, system.folder / "move")

    def test_it_is_written_elected_and_taken_back(self, made):
        system, plan, folder = made
        assert {row.kind for row in plan.rows()} == {"order"} and plan.copies == 0
        before = {name: one["replicas"] for name, one in system.state["partitions"].items()}
        done = system.run(folder)
        assert done.returncode == 0, done.stderr
        after = {name: one["replicas"] for name, one in system.state["partitions"].items()}
        changed = {name for name, row in before.items() if row[0] == 1}
        assert len(changed) == 4
        assert after == {n: [*reversed(row)] if n in changed else row for n, row in before.items()}
        calls = len(system.calls)
        assert system.run(folder).returncode == 0
        assert len(system.calls) == calls
        assert not (described(system).placement.flags & ek.Flag.PREFERRED).any()
        back = system.run(folder / "undo")
        assert back.returncode == 0, back.stderr
        rows = system.state["partitions"]
        assert {name: one["replicas"] for name, one in rows.items()} == before
        assert {rows[name]["leader"] for name in changed} == {1}

    @pytest.mark.parametrize("call", [1, 2])
    def test_it_goes_on_where_it_stopped(self, made, call):
        system, plan, folder = made
        system.state = system.state | {"breaks": call}
        assert system.run(folder).returncode == 1
        done = system.run(folder)
        assert done.returncode == 0, done.stderr
        assert shown(system) == stands(plan)
        assert not [one for one in system.state["partitions"].values() if one["replicas"][0] == 1]

    def test_the_first_of_the_list_tells_how_far_it_is(self, made, tmp_path):
        system, plan, folder = made
        begun = described(system)
        rows = system.state["partitions"]
        ordered = [name for name, one in rows.items() if one["replicas"][0] == 1]
        for count, word in ((0, "ready"), (1, "partly"), (4, "finished")):
            for name in ordered[:count]:
                rows[name]["replicas"] = [2, 1]
            system.state = system.state | {"partitions": rows}
            now = described(system)
            dump = system.run(folder, "--dry-run")
            assert f" {word}: " in dump.stdout.splitlines()[0]
            progress = plan.progress(now)
            assert progress.done.sum() == count and progress.finished == (count == 4)
            rest = plan.resume(now)
            assert [row.kind for row in rest.rows()] == ["order"] * (4 - count)
            assert rest.check().end == "target"
            first = plan.prefix(count)
            assert len(first.merge(plan.target, observed=now)) == 4 - count
            assert first.check().ok and len(plan.merge(plan.target, count)) == 4 - count
        assert len(plan.merge(begun.placement, 4)) == 4  # back to the old order

    def test_its_file_is_the_same_plan(self, made):
        _, plan, folder = made
        read = ek.read_plan(folder / "plan.json")
        assert read.rows() == plan.rows()
        assert (read.end.flags == plan.end.flags).all()
        assert read.check().end == "target"
        assert [row.kind for row in read.undo().rows()] == ["order"] * 4

    def test_a_list_with_a_broker_that_is_down_stays(self, made):
        system, _, _ = made
        state = system.state
        state["brokers"]["1"]["alive"] = False
        system.state = state
        cluster = described(system)
        flags = cluster.placement.flags.copy()
        flags[cluster.placement.first[:-1]] |= ek.Flag.PREFERRED
        start = replace(cluster.placement, flags=flags)
        cluster = replace(cluster, placement=start)
        plan = ek.plan(cluster, led_on(start))
        assert len(plan) == 0 and plan.check().end == "target"

    def test_lists_whose_first_lags_or_is_down(self, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        row = "\tTopic: t\tPartition: {}\tLeader: {}\tReplicas: {}\tIsr: {}\n"
        lists = [
            (0, 2, "1,2,3", "2,3"), (1, 2, "2,3,1", "1,2,3"), (2, 3, "9,3,1", "3,1"),
            (3, 3, "1,3,2", "3,2"), (4, 2, "1,2,3", "2,3"), (5, 2, "1,2,3", "1,2,3"),
        ]  # fmt: skip
        wanted = ([2, 1, 3], [2, 1, 3], [3, 9, 1], [3, 1, 4], [2, 4, 3], [1, 2, 3])
        rows = [{"topic": "t", "partition": p, "replicas": own} for p, own in enumerate(wanted)]
        head = "Topic: t\tPartitionCount: 6\tReplicationFactor: 3\tConfigs: \n"
        now, files = Path("now.txt"), ["now.txt", "brokers.csv"]
        now.write_text(head + "".join(row.format(*one) for one in lists))
        Path("target.json").write_text(json.dumps({"version": 1, "partitions": rows}))
        Path("brokers.csv").write_text("broker,rack\n1,a\n2,a\n3,a\n4,a\n")
        assert main(["plan", *files, "--target", "target.json", "-o", "move"]) == 0
        said = " ".join(capsys.readouterr().err.split())
        assert "no step of 1 partition (t-2), led by others than the first" in said
        assert "no step of 1 partition (t-1), whose list differs from the target's" in said

        def written(way):
            document = json.loads(Path(f"{way}/waves/1.reassignment.json").read_text())
            return {one["partition"]: one["replicas"] for one in document["partitions"]}

        assert written("move") == {0: [2, 1, 3], 3: [3, 1, 4], 4: [2, 4, 3]}
        before = {0: [1, 2, 3], 3: [1, 3, 2], 4: [1, 2, 3]}
        assert written("move/undo") == before
        plan = ek.read_plan("move/plan.json")
        assert len(plan.resume(ek.read(files))) == len(plan)
        done = [
            lists[p] if p == 2 else (p, row[0], *(2 * [",".join(map(str, row))]))
            for p, row in enumerate(wanted)
        ]
        Path("done.txt").write_text(head + "".join(row.format(*one) for one in done))
        assert main(["resume", "move/undo/plan.json", "done.txt", "brokers.csv", "-o", "back"]) == 0
        back = written("back")
        assert {p: back[p] for p in before} == before and 5 not in back
        now.write_text(now.read_text().replace("1,2,3\tIsr: 2", "2,1,3\tIsr: 2"))
        left = {one.partition for one in plan.resume(ek.read(files)).rows()}
        assert left == {"t-3", "t-4", "t-5"}


@pytest.mark.parametrize("seed", range(318, 326))
def test_lists_end_with_the_first_and_the_brokers_of_the_target(seed):
    """Where stand-ins lead, and their lead and a replica move in waves of their own."""
    random = Random(seed)
    brokers = range(1, random.randint(4, 6) + 1)
    head = "Topic: t\tPartitionCount: 6\tReplicationFactor: 3\tConfigs: \n"
    text, wanted = head, []
    for p in range(6):
        replicas = random.sample(brokers, 3)
        leads = random.choice(replicas)
        synced = [b for b in replicas if b == leads or random.random() < 0.3]
        rows = "\t".join(
            f"{name}: {','.join(map(str, row))}"
            for name, row in (("Leader", [leads]), ("Replicas", replicas), ("Isr", synced))
        )
        text += f"\tTopic: t\tPartition: {p}\t{rows}\n"
        wanted.append(random.sample(brokers, 3))
    answers = "".join(
        f"localhost:9092 (id: {b} rack: null isFenced: false) -> (\n" for b in brokers
    )
    cluster = ek.read([text.encode(), answers.encode()])
    rows = [{"topic": "t", "partition": p, "replicas": row} for p, row in enumerate(wanted)]
    document = json.dumps({"version": 1, "partitions": rows}).encode()
    plan = ek.plan(cluster, target_by_name(cluster, ek.read([document])), protocol="kafka")
    carrier = registry.find("kafka").carrier
    waves = carrier.stages(cluster, waves_of(plan, cluster.placement))
    written = [
        row
        for own in carrier.orders(cluster, waves)
        for name, content in own.files.items()
        if name.endswith("reassignment.json")
        for row in json.loads(content)["partitions"]
    ]
    last = {row["partition"]: row["replicas"] for row in written}
    for p, row in last.items():
        assert row[0] == wanted[p][0] and sorted(row) == sorted(wanted[p])
