"""``evenkeel plan`` and ``evenkeel check`` of plans: in-process, on files made for it."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.cli import main
from evenkeel.model.placement import Flag
from evenkeel.simulate.generators import expansion
from tests.support import places

FORMATS = places.DATA / "formats"


@pytest.fixture
def cluster_file(tmp_path):
    """A small cluster that was just expanded, as a file."""
    path = tmp_path / "cluster.npz"
    ek.write(expansion(partitions=200, nodes=20, zones=5, seed=3), path)
    return str(path)


def swap(spare=1.0):
    """Two full nodes whose replicas are to trade places, and what room a third one has."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[1.0], [1.0], [spare]], load=[[1.0]] * 2, placement=[["a"], ["b"]],
        dimensions=["disk"], transient=["disk"], bytes="disk", node_names=["a", "b", "c"],
    )  # fmt: skip
    target = cluster.placement.replaced(np.array([1, 0], np.int32), cluster.placement.leader)
    return cluster, target


@pytest.fixture
def swap_files(tmp_path):
    """Writes the swap, and where it should lead."""

    def written(spare=1.0):
        cluster, target = swap(spare)
        now, wanted = tmp_path / "now.npz", tmp_path / "wanted.npz"
        ek.write(cluster, now)
        ek.write(cluster, wanted, placement=target)
        return str(now), str(wanted)

    return written


class TestPlan:
    def test_solves_plans_checks_and_writes(self, cluster_file, tmp_path, capsys):
        plan, table = str(tmp_path / "plan.json"), str(tmp_path / "steps.csv")
        asked = ["--level", "0.1", "--throttle", "node-in=2", "--throttle", "node-bandwidth=5"]
        assert main(["plan", cluster_file, *asked, "-o", plan, "--table", table]) == 0
        told = capsys.readouterr().out
        assert "✓ safe at every step" in told
        assert "no order takes less than" in told
        assert "node_in 2 · node_bandwidth 5" in told
        assert f"wrote {plan}" in told
        found = ek.read_plan(plan)
        assert found.check().ok
        with open(table, newline="") as file:  # noqa: PTH123 (csv wants the newlines as they are)
            assert [row["step"] for row in csv.DictReader(file)] == [*map(str, range(len(found)))]
        assert main(["check", plan]) == 0
        assert "✓ safe at every step" in capsys.readouterr().out

    def test_a_target_that_misses_its_goals_is_short_of_them(self, tmp_path, capsys):
        file, out = str(tmp_path / "heap.npz"), str(tmp_path / "plan.json")
        ek.write(
            ek.Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6),
            file,
        )
        assert main(["plan", file, "--level", "5%", "--moves", "1", "-o", out]) == 3
        assert "the target is missed" in " ".join(capsys.readouterr().out.split())
        assert sum(row.kind == "copy" for row in ek.read_plan(out).rows()) == 1
        assert main(["plan", file, "--level", "5%", "-o", out, "--force"]) == 0

    def test_a_target_comes_out_of_a_file(self, swap_files, tmp_path, capsys):
        now, wanted = swap_files()
        plan = str(tmp_path / "plan.json")
        assert main(["plan", now, "--target", wanted, "-o", plan, "--explain", "p0"]) == 0
        told = capsys.readouterr().out
        assert "3 copies" in told
        assert "p0:\n" in told
        assert ek.read_plan(plan).end.node.tolist() == [1, 0]

    def test_json_is_for_machines(self, swap_files, capsys):
        now, wanted = swap_files()
        assert main(["plan", now, "--target", wanted, "--json"]) == 0
        figures = json.loads(capsys.readouterr().out)
        assert figures["safe"]
        assert figures["complete"]
        assert (figures["copies"], figures["blocked"], figures["written"]) == (3, [], [])

    def test_what_is_blocked_is_told_with_its_exit_code(self, swap_files, tmp_path, capsys):
        now, wanted = swap_files(spare=0.5)
        plan = str(tmp_path / "plan.json")
        assert main(["plan", now, "--target", wanted, "-o", plan]) == 3
        told = capsys.readouterr().out
        assert "2 moves blocked" in told
        assert "room on b in disk" in told
        assert main(["check", plan]) == 3

    def test_a_target_that_exceeds_the_limits_is_not_written(self, swap_files, tmp_path, capsys):
        now, wanted = swap_files()
        plan = tmp_path / "plan.json"
        asked = ["plan", now, "--target", wanted, "-o", str(plan)]
        assert main([*asked, "--moves", "1"]) == 1
        told = capsys.readouterr().out
        assert "✗ exceeds its limits: moves 2 above 1, but safe" in told.splitlines()[0]
        assert told.endswith("nothing written\n")
        assert not plan.exists()
        assert main([*asked, "--moves", "2"]) == 0

    def test_limits_that_a_plan_exceeds_head_its_check(self, swap_files, tmp_path, capsys):
        now, wanted = swap_files()
        plan = str(tmp_path / "plan.json")
        assert main(["plan", now, "--target", wanted, "-o", plan, "-q"]) == 0
        assert main(["check", plan, "--moves", "1"]) == 1
        assert "✗ exceeds its limits: moves 2 above 1" in capsys.readouterr().out.splitlines()[0]
        assert main(["check", plan, "--moves", "1", "--json"]) == 1
        figures = json.loads(capsys.readouterr().out)
        assert figures["verdict"] == "the plan exceeds its limits: moves 2 above 1"
        assert figures["exceeded"] == ["moves 2 above 1"]
        assert main(["check", plan, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["verdict"] == ""

    def test_a_plan_file_without_its_steps_does_not_pass(self, swap_files, tmp_path, capsys):
        now, wanted = swap_files()
        plan = tmp_path / "plan.json"
        assert main(["plan", now, "--target", wanted, "-o", str(plan)]) == 0
        document = json.loads(plan.read_text())
        document["steps"] = []
        plan.write_text(json.dumps(document))
        capsys.readouterr()
        assert main(["check", str(plan)]) == 3
        assert "2 partitions short of the target" in capsys.readouterr().out
        assert main(["check", str(plan), "--json"]) == 3
        assert not json.loads(capsys.readouterr().out)["complete"]

    def test_kafka_files_are_planned_as_kafka_moves(self, capsys):
        files = [str(FORMATS / f"kafka_{name}") for name in ("describe.txt", "racks.json")]
        main(["plan", *files, "--json"])
        assert json.loads(capsys.readouterr().out)["protocol"] == "kafka"

    def test_what_cannot_be_placed_is_told(self, tmp_path, capsys):
        path = tmp_path / "overfull.npz"
        ek.write(
            ek.Cluster.from_arrays(capacity=[[2.0]], load=[[1.5]] * 2, placement=[[-1]] * 2), path
        )
        assert main(["plan", str(path)]) == 4
        assert "✓ safe at every step" in capsys.readouterr().out

    def test_windows_and_the_barrier_are_throttles(self, cluster_file, tmp_path, capsys):
        plan = str(tmp_path / "plan.json")
        asked = [*("--throttle", "window=30m-8h"), *("--throttle", "window=12h-13h")]
        asked += [*("--throttle", "every=1d"), *("--throttle", "recovery-first=yes")]
        assert main(["plan", cluster_file, "--level", "0.1", *asked, "-o", plan]) == 0
        throttle = ek.read_plan(plan).throttle
        assert throttle.recovery_first
        assert throttle.windows.spans == ((1800.0, 28800.0), (43200.0, 46800.0))
        assert throttle.windows.every == 86400.0
        assert "recovery first" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("extra", "says"),
        [
            (["--protocol", "magic"], "unknown protocol"),
            (["--throttle", "colour=1", "--throttle", "size=1"], "throttle size"),
            (["--throttle", "copies=few"], "--throttle copies"),
            (["--throttle", "nodein=2"], "did you mean 'node-in'?"),
            (["--throttle", "copies=1", "--throttle", "copies=2"], "is given twice"),
            (["--throttle", "domain-in=rack=0"], "would never let anything move"),
            (["--throttle", "domain-in=row=1"], "unknown tier"),
            (["--throttle", "window=8h-2h"], "windows.spans"),
            (["--throttle", "window=0-8h"], "must not end, or come again"),
            (["--throttle", "window=0-8h"], "throttle window: "),
            (["--throttle", "window=0-8h"], "every=24h"),
            (["--throttle", "window=0-8h", "--throttle", "every=6h"], "throttle every: "),
            (["--throttle", "every=1d"], "needs windows"),
            (["--throttle", "recovery-first=maybe"], "--throttle recovery-first"),
            (["--table", "steps.doc"], "must end in one of"),
            (["--explain", "nobody"], "is none of the"),
        ],
    )
    def test_arguments_that_do_not_fit(self, cluster_file, extra, says, capsys):
        assert main(["plan", cluster_file, *extra]) == 2
        assert says in capsys.readouterr().err

    def test_a_target_that_breaks_rules_is_told_and_fails(self, swap_files, tmp_path, capsys):
        now, wanted = swap_files(spare=2.0)
        asked = ["plan", now, "--target", wanted, "--drain", "b"]
        assert main([*asked, "--json"]) == 1
        figures = json.loads(capsys.readouterr().out)
        assert figures["safe"] and figures["regressions"] == {"leader": 1, "not_kept": 1}
        assert main(asked) == 1
        told = capsys.readouterr().out
        assert "its end breaks rules" in told.splitlines()[0]
        assert "not_kept 1" in " ".join(told.split())

    def test_a_target_of_others_is_refused_with_every_name(self, swap_files, tmp_path, capsys):
        now, _ = swap_files()
        other = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 2, load=[[1.0]] * 3, placement=[["a", "x"], ["x", "a"], ["a", "x"]],
            node_names=["a", "x"], partition_names=["p0", "q1", "q2"],
        )  # fmt: skip
        ek.write(other, tmp_path / "other.npz")
        assert main(["plan", now, "--target", str(tmp_path / "other.npz")]) == 2
        told = capsys.readouterr().err
        for said in ("'x'", "'q1'", "'q2'", "needs the 1 slots of partition p0"):
            assert said in told


class TestCheck:
    def test_a_plan_that_is_not_safe_fails_and_says_where(self, swap_files, tmp_path, capsys):
        now, wanted = swap_files()
        file = tmp_path / "plan.json"
        assert main(["plan", now, "--target", wanted, "-o", str(file), "-q"]) == 0
        changed = json.loads(file.read_text())
        for step in changed["steps"]:
            step["start"], step["finish"] = 0.0, 1.0
        file.write_text(json.dumps(changed))
        assert main(["check", str(file)]) == 1
        told = capsys.readouterr().out
        assert "✗ not safe" in told
        assert "capacity" in told

    def test_the_cluster_may_be_given_beside_it(self, swap_files, tmp_path, capsys):
        now, wanted = swap_files()
        file = str(tmp_path / "plan.json")
        assert main(["plan", now, "--target", wanted, "-o", file, "--without-cluster", "-q"]) == 0
        assert main(["check", file]) == 2
        assert "none was given beside the file" in capsys.readouterr().err
        assert main(["check", file, now]) == 0
        assert main(["check", now, file]) == 0
        assert main(["check", file, wanted]) == 2
        assert "is of another cluster" in capsys.readouterr().err

    def test_a_damaged_plan_is_refused_with_every_fault(self, swap_files, tmp_path, capsys):
        now, wanted = swap_files()
        file = tmp_path / "plan.json"
        main(["plan", now, "--target", wanted, "-o", str(file), "-q"])
        changed = json.loads(file.read_text())
        for step in changed["steps"][:5]:
            step["partition"] = "nobody"
        file.write_text(json.dumps(changed))
        assert main(["check", str(file)]) == 2
        told = capsys.readouterr().err.splitlines()
        assert sum("is not a partition of the cluster" in line for line in told) == 5

    def test_two_plans_are_one_too_many(self, swap_files, tmp_path):
        now, wanted = swap_files()
        file = str(tmp_path / "plan.json")
        main(["plan", now, "--target", wanted, "-o", file, "-q"])
        assert main(["check", file, file]) == 2


class TestResume:
    def test_the_rest_is_told_and_written(self, swap_files, tmp_path, capsys):
        now, wanted = swap_files()
        file, seen, rest = (str(tmp_path / name) for name in ("plan.json", "seen.npz", "rest.json"))
        assert main(["plan", now, "--target", wanted, "-o", file, "-q"]) == 0
        plan = ek.read_plan(file)
        first = next(k for k in range(1, len(plan) + 1) if len(plan.prefix(k)))
        ek.write(plan.cluster, seen, placement=plan.prefix(first).end)
        assert main(["resume", file, seen, "--elapsed", "5", "-o", rest]) == 0
        told = capsys.readouterr().out
        assert "1 of 3 copies done" in told
        assert "5 s at the pace so far" not in told.splitlines()[0]
        assert "2 copies" in told
        onwards = ek.read_plan(rest)
        assert onwards.check().ok
        assert onwards.end.node.tolist() == [1, 0]
        assert main(["resume", file, wanted, "--json"]) == 0
        figures = json.loads(capsys.readouterr().out)
        assert figures["progress"]["done"] == len(plan)
        assert figures["rest"]["steps"] == 0

    def test_what_has_arrived_is_not_copied_again(self, tmp_path, capsys):
        cluster = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 3, load=[[4.0]], placement=[["n=0"]], dimensions=["disk"],
            bytes="disk", node_names=["n=0", "=", "n=2"], partition_names=["a=b=c"],
        )  # fmt: skip
        file, seen = str(tmp_path / "plan.json"), str(tmp_path / "seen.json")
        target = cluster.placement.replaced(np.array([2], np.int32), cluster.placement.leader)
        ek.write_plan(ek.plan(cluster, target), file)
        flying = replace(target, flags=np.array([Flag.INCOMING], np.uint16))
        ek.write(cluster.with_placement(flying), seen)
        for share in ("0.75", "75%"):
            assert main(["resume", file, seen, "--json", "--arrived", f"a=b=c=n=2={share}"]) == 0
            figures = json.loads(capsys.readouterr().out)
            assert figures["rest"]["bytes"] == 1.0
            assert figures["progress"]["bytes_done"] == 3.0
        given = ["half", "a=b=c=n=2=x", "a=b=c=n=7=0.5", "a=b=c=n=2=0.5", "a=b=c=n=2=0.6"]
        assert main(["resume", file, seen, *(f"--arrived={one}" for one in given)]) == 2
        told = capsys.readouterr().err
        assert told.count("is not of the form PARTITION=NODE=SHARE") == 2
        assert "names no partition and node of the plan (got 'a=b=c=n=7=0.5')" in told
        assert "is given twice (got 'a=b=c=n=2=0.6')" in told
        assert main(["resume", file, seen, "--arrived", "a=b=c=n=2=120%"]) == 2
        assert "must be a share, 0 to 1" in capsys.readouterr().err

    def test_what_is_seen_may_be_another_description(self, swap_files, tmp_path, capsys):
        now, wanted = swap_files()
        file = str(tmp_path / "plan.json")
        main(["plan", now, "--target", wanted, "-o", file, "-q"])
        other = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 4, load=[[1.0]] * 2, placement=[["a"], ["b"]],
            node_names=["d", "c", "b", "a"], partition_names=["p1", "p0"],
            alive=[True, False, True, True],
        )  # fmt: skip
        ek.write(other, tmp_path / "other.npz")
        assert main(["resume", file, str(tmp_path / "other.npz"), "--json"]) == 0
        figures = json.loads(capsys.readouterr().out)
        assert figures["progress"]["astray"] == []
        assert figures["progress"]["seconds_left"] == 0.0

    def test_what_cannot_go_on_is_blocked(self, swap_files, tmp_path, capsys):
        now, wanted = swap_files()
        file, seen = str(tmp_path / "plan.json"), tmp_path / "seen.npz"
        main(["plan", now, "--target", wanted, "-o", file, "-q"])
        ek.write(ek.read(now).down("c"), seen)
        assert main(["resume", file, str(seen)]) == 3
        assert "2 moves blocked" in capsys.readouterr().out


def test_help_shows_an_example(capsys):
    assert main(["plan", "--help"]) == 0
    assert "evenkeel plan cluster.npz --throttle" in capsys.readouterr().out


def test_a_pipe_gets_plain_text_and_a_terminal_styles(swap_files, capsys, monkeypatch):
    now, wanted = swap_files()
    main(["plan", now, "--target", wanted])
    assert "\x1b[" not in capsys.readouterr().out

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out = Terminal()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    main(["plan", now, "--target", wanted])
    assert "\x1b[" in out.getvalue()


def test_what_a_later_dump_does_not_tell_is_as_the_plan_has_it(tmp_path, capsys):
    """``run.sh`` keeps a description and answers, which tell neither sizes nor racks."""
    lines = ["Topic: t\tPartitionCount: 6\tReplicationFactor: 1\tConfigs: "]
    lines += [
        f"\tTopic: t\tPartition: {p}\tLeader: {1 + p % 2}\tReplicas: {1 + p % 2}\tIsr: {1 + p % 2}"
        for p in range(6)
    ]
    named = {
        "described.txt": "\n".join(lines) + "\n",
        "loads.csv": "topic,partition,disk\n" + "".join(f"t,{p},100\n" for p in range(6)),
        "brokers.csv": "broker,rack,state,disk\n"
        + "".join(f"{b},r{b},up,900\n" for b in (1, 2, 3, 4)),
    }
    for name, text in named.items():
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / name) for name in named]
    plan = str(tmp_path / "plan.json")
    throttle = ["--throttle", "node-in=1", "--throttle", "node-bandwidth=10"]
    assert main(["plan", *files, "--level", "0", *throttle, "-o", plan]) == 0
    whole = ek.read_plan(plan)
    assert whole.bytes > 0.0
    capsys.readouterr()
    # all four brokers are listed, so that the names are those of the plan
    listed = tmp_path / "answers.txt"
    listed.write_text("".join(f"h:9092 (id: {b} rack: null) -> (\n" for b in (1, 2, 3, 4)))
    rest = str(tmp_path / "rest.json")
    assert main(["resume", plan, files[0], str(listed), "-o", rest]) in (0, 3)
    told = capsys.readouterr()
    assert "missing values are taken from the plan: disk, rack" in told.err
    left = ek.read_plan(rest)
    assert (left.bytes, left.makespan) == (whole.bytes, whole.makespan)
    assert left.cluster.topology.tiers == ("rack",)
    assert (left.cluster.nodes.capacity == whole.cluster.nodes.capacity).all()
