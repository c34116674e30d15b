"""What the command line says: verdicts, hints, and names that would act on a terminal."""

import io
import json
import re
import zipfile

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.cli import main
from evenkeel.model.runtime.atomic import write_atomically
from evenkeel.systems.documents import Document
from tests.support import places

LONGHORN = places.DATA / "longhorn" / "cluster.json"
FORMATS = places.DATA / "formats"
HOSTILE = "a\x1b[2J\x9b\u202eb\nevenkeel: fine\r\x07\t[red]"


@pytest.fixture
def broken_file(tmp_path):
    """A cluster of three partitions of which two share the node that one of them fills."""
    path = tmp_path / "broken.npz"
    ek.write(
        ek.Cluster.from_arrays(
            capacity=[[2.0], [2.0]], load=[[2.0]] * 3, placement=[[0], [0], [1]]
        ),
        path,
    )  # fmt: skip
    return str(path)


class TestQuiet:
    @pytest.mark.parametrize(("command", "code"), [("solve", 4), ("check", 1), ("plan", 4)])
    def test_what_is_left_broken_is_said_on_the_error_stream(
        self, broken_file, command, code, capsys
    ):
        assert main([command, broken_file, "-q"]) == code
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.startswith("evenkeel: ")
        assert told.err.count("\n") == 1

    def test_the_verdict_of_a_plan_names_what_it_breaks(self, tmp_path, capsys):
        cluster = ek.Cluster.from_arrays(
            capacity=[[4.0]] * 3, load=[[3.0]] * 2, placement=[[0], [1]]
        )
        moved = cluster.placement.replaced(
            np.array([1, 2], np.int32), cluster.placement.leader.copy()
        )
        file = tmp_path / "plan.json"
        ek.write_plan(ek.plan(cluster, moved), file)
        changed = json.loads(file.read_text())
        for step in changed["steps"]:
            step["start"], step["finish"] = 0.0, 1.0
        file.write_text(json.dumps(changed))
        assert main(["check", str(file), "-q"]) == 1
        told = capsys.readouterr().err
        assert told.startswith("evenkeel: the plan is not safe: ")
        assert "capacity" in told

    def test_nothing_is_said_where_nothing_is_wrong(self, tmp_path, capsys):
        path = str(tmp_path / "fine.npz")
        ek.write(ek.Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]], placement=[[0]]), path)
        assert main(["solve", path, "-q"]) == 0
        assert capsys.readouterr() == ("", "")

    def test_figures_for_machines_say_it_already(self, broken_file, capsys):
        assert main(["check", broken_file, "-q", "--json"]) == 1
        told = capsys.readouterr()
        assert json.loads(told.out)["hard_violations"] == 1
        assert told.err == ""


class TestNames:
    """No name does anything to the terminal on which it is shown."""

    @pytest.fixture
    def hostile_file(self, tmp_path):
        path = tmp_path / "hostile.npz"
        ek.write(
            ek.Cluster.from_arrays(
                capacity=[[9.0, 9.0]] * 3, load=[[1.0, 1.0]] * 3, placement=[[0], [0], [-1]],
                alive=[False, True, True], node_names=[HOSTILE, "n1", "n2"],
                partition_names=["p0", f"p{HOSTILE}", "p2"], dimensions=["cpu", f"d{HOSTILE}"],
                domains={"zone": [HOSTILE, "b", "c"]}, group=[HOSTILE, "g", "g"],
                spread={"zone": 1},
            ),
            path,
        )  # fmt: skip
        return str(path)

    @pytest.mark.parametrize("styled", [False, True])
    @pytest.mark.parametrize(
        "asked",
        [["solve"], ["check"], ["plan"], ["plan", "--explain", "1"], ["explain", "1", "--as-is"],
         ["explain", "nobody"], ["solve", "--level", f"{HOSTILE}=1"], ["explain", "1"],
         ["solve", "--domain-in", f"{HOSTILE}=1"], ["solve", f"--{HOSTILE}"],
         ["solve", "--seed", HOSTILE], ["plan", "--throttle", f"{HOSTILE}=1"],
         ["solve", "--method", HOSTILE], ["solve", "-o", f"/nowhere/{HOSTILE}"]],
    )  # fmt: skip
    def test_are_spelled_out(self, hostile_file, asked, styled, capsys, monkeypatch):
        page = {"width": 120, "styled": styled}
        for where in ("output", "commands.solve", "commands.check", "commands.plan"):
            monkeypatch.setattr(f"evenkeel.cli.{where}.page", lambda: page)
        command, *rest = asked
        main([command, hostile_file, *rest])
        told = "".join(capsys.readouterr())
        bare = told.replace("\x1b[0m", "") if styled else told
        bare = bare if not styled else re.sub("\x1b\\[[0-9;]+m", "", bare)
        assert told
        assert not [one for one in bare if (one < " " and one != "\n") or "\x7f" <= one <= "\x9f"]
        assert "\u202e" not in told
        assert "\nevenkeel: fine" not in told

    def test_faults_spell_their_place_out(self):
        assert str(ek.Fault("a\x1b[1m", 1, "b\rc")) == "a\\x1b[1m: b\\rc (got 1)"


class TestOutputs:
    def test_a_failure_names_the_file_that_was_asked_for(self, tmp_path):
        with pytest.raises(FileNotFoundError) as caught:
            write_atomically(tmp_path / "none" / "out.json", b"")
        assert caught.value.filename == str(tmp_path / "none" / "out.json")

    @pytest.mark.parametrize("command", ["solve", "plan"])
    def test_a_folder_that_is_not_there_is_told_before_any_work(
        self, command, broken_file, tmp_path, capsys
    ):
        assert main([command, broken_file, "-o", str(tmp_path / "none" / "out.json")]) == 2
        told = capsys.readouterr().err
        assert "there is no folder" in told
        assert ".part" not in told

    def test_a_name_without_an_ending_is_told_what_it_may_end_in(
        self, broken_file, tmp_path, capsys
    ):
        assert main(["solve", broken_file, "-o", str(tmp_path / "out")]) == 2
        told = capsys.readouterr().err
        assert "'.npz'" in told
        assert "'tables'" in told
        assert "Evenkeel" not in told


class TestHints:
    def test_a_node_that_is_named_is_not_said_to_be_missing(self, tmp_path, capsys):
        path = str(tmp_path / "c.npz")
        ek.write(
            ek.Cluster.from_arrays(
                capacity=[[9.0]] * 2, load=[[1.0]], placement=[[0]], alive=[False, True]
            ),
            path,
        )
        assert main(["explain", path, "p0", "--as-is"]) == 0
        told = capsys.readouterr().out
        assert "n1 is open to it by itself" in told
        assert "no other node is open" not in told

    @pytest.mark.parametrize("value", ["-1", "nan", "inf"])
    def test_elapsed_is_a_number_of_seconds(self, value, tmp_path, capsys):
        cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]], placement=[[0]])
        plan, now = str(tmp_path / "plan.json"), str(tmp_path / "now.npz")
        ek.write(cluster, now)
        ek.write_plan(ek.plan(cluster, cluster.placement), plan)
        assert main(["resume", plan, now, f"--elapsed={value}"]) == 2
        assert "elapsed: must be a number of seconds, 0 or more" in capsys.readouterr().err

    def test_what_is_resumed_is_a_plan(self, capsys):
        file = str(FORMATS / "kafka_reassignment.json")
        assert main(["resume", file, file]) == 2
        told = capsys.readouterr().err
        assert "is not a plan but assignment (kafka)" in told
        assert told.count("\n") == 1

    def test_a_method_that_does_not_level_is_not_judged_by_a_level(self, capsys):
        assert main(["solve", str(LONGHORN), "--method", "longhorn"]) == 0
        assert "feasible" in capsys.readouterr().out
        assert main(["solve", str(LONGHORN), "--method", "longhorn", "--level", "0.0"]) == 3

    @pytest.mark.parametrize(
        ("asked", "says"),
        [(["--method", "balanced"], "did you mean 'balance'?"),
         (["--format", "kafak"], "did you mean 'kafka'?"),
         (["--method", "longhorn", "--option", "scoop=volume"], "did you mean 'scope'?"),
         (["--method", "longhorn", "--moves", "1"],
          "keeps no limits with these options, and moves, bytes, node_in, node_out with others")],
    )  # fmt: skip
    def test_the_closest_word_that_is_known(self, asked, says, broken_file, capsys):
        assert main(["solve", broken_file, *asked]) == 2
        assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "meant"),
    [(lambda: ek.Goals(levle=0.1), "level"), (lambda: ek.Limits(move=1), "moves"),
     (lambda: ek.Throttle(node_inn=1), "node_in"), (lambda: ek.Rule(sprade={}), "spread"),
     (lambda: ek.Cost(move=1.0), "moves"), (lambda: ek.options.Waged(scop="x"), "scope"),
     (lambda: ek.options.Longhorn(scop="x"), "scope"), (lambda: ek.Windows(span=[]), "spans"),
     (lambda: ek.solve(ek.Cluster.from_arrays(capacity=[[1.0]], load=[]), goal=None), "goals"),
     (lambda: ek.Cluster.from_arrays(capacity=[[1.0]], loads=[]), "load")],
)  # fmt: skip
def test_a_keyword_that_is_unknown_is_told_with_the_closest(call, meant):
    with pytest.raises(ek.InvalidInput, match=f"unknown argument; did you mean '{meant}'"):
        call()


def test_a_field_of_a_rule_in_toml_is_told_with_the_closest():
    nodes, replicas = b"node,cap_cpu\na,1\n", b"partition,node\np,a\n"
    with pytest.raises(ek.InvalidInput, match=r"rule\[0\]\.spraed: .*did you mean 'spread'"):
        ek.read(nodes, replicas, b"[[rule]]\nspraed = { zone = 1 }\n")


def test_nodes_that_nothing_forbids_are_counted_under_words():
    cluster = ek.Cluster.from_arrays(
        capacity=[[3.0]] * 2, load=[[2.0]] * 3, placement=[[0], [1], [-1]]
    )
    result = ek.solve(cluster)
    (one,) = result.unplaced
    assert all(one.blocked)


def test_members_of_an_archive_are_named_in_full():
    file = io.BytesIO()
    names = [f"{'folder/' * 12}{one}.json" for one in "ab"]
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "{}")
    assert [one.name for one in Document("z", file.getvalue()).inside()] == [
        f"z/{name}" for name in names
    ]


def test_a_broker_without_capacity_is_named_in_a_note(tmp_path, capsys):
    """A description may hold brokers that are gone: those of the table are read all the same."""
    table = tmp_path / "brokers.csv"
    table.write_bytes(b"broker,disk\n1,1TB\n2,1TB\n3,1TB\n")
    main(["check", str(FORMATS / "kafka_describe.txt"), str(table)])
    assert "no capacity of disk of brokers 1001" in " ".join("".join(capsys.readouterr()).split())


def test_a_curve_is_shown_in_a_line():
    cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    curve = ek.solve(cluster).plan().curve()
    assert repr(curve).startswith("<Curve: 2 changes copy 2; above the mean")
    assert "array" not in repr(curve)


def test_help_begins_with_a_line_and_examples(capsys):
    assert main(["solve", "--help"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("usage: evenkeel solve [OPTION ...] FILE [FILE ...]\n\n")
    assert told.index("examples:") < told.index("positional arguments:") < told.index("--level X")


def test_everything_wrong_with_the_options_is_told(broken_file, capsys):
    asked = ["solve", broken_file, "--level", "abc", "--moves", "x", "--seed", "q", "--nope"]
    assert main(asked) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("usage: evenkeel solve ...")
    assert [re.sub(r".*argument (--[a-z]+).*", r"\1", line) for line in told[1:]] == [
        "--level", "--moves", "--seed",
    ]  # fmt: skip
    assert main(["solve", "--moves", "x"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert "argument --moves" in told[1] and "are required: FILE" in told[2]
    assert main(["solve", broken_file, "--moves", "x"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


@pytest.mark.parametrize("command", ["solve", "check", "plan", "explain", "sweep"])
def test_a_standard_input_that_is_closed_is_told(command, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", None)
    more = {"explain": ["p0"], "sweep": ["--lose", "node"]}.get(command, [])
    assert main([command, "-", *more]) == 2
    assert "FILE: is the standard input, which is closed (got '-')" in capsys.readouterr().err


def test_a_run_tells_that_its_standard_input_is_closed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", None)
    assert main(["run", str(tmp_path), "--dry-run", "--dump", "-"]) == 2
    assert "which is closed" in capsys.readouterr().err
