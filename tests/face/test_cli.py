"""The command line: every command in-process, on files that are made for it."""

import csv
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import evenkeel as ek
from evenkeel import __version__
from evenkeel.cli import main
from evenkeel.cli.waiting import Waiting
from evenkeel.methods.contract import Outcome
from evenkeel.methods.registry import METHODS, Method
from evenkeel.model.cluster import Cluster
from evenkeel.model.rules import Rule
from evenkeel.simulate.generators import expansion
from evenkeel.systems.registry import read, write
from tests.support import places
from tests.support.processes.output import without_progress

LONGHORN = places.DATA / "longhorn" / "cluster.json"
FORMATS = places.DATA / "formats"
KAFKA_FILES = (".json", ".rollback.json", ".election.json")


@pytest.fixture
def cluster_file(tmp_path):
    """A small cluster that was just expanded, as a file."""
    path = tmp_path / "cluster.npz"
    write(expansion(partitions=200, nodes=20, zones=5, seed=3), path)
    return str(path)


@pytest.fixture
def level_file(tmp_path):
    """A cluster in which nothing is wrong."""
    path = tmp_path / "level.npz"
    write(Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0], [1]]), path)
    return str(path)


@pytest.fixture
def overfull_file(tmp_path):
    """A cluster with more load than any placement can hold."""
    path = tmp_path / "overfull.npz"
    write(Cluster.from_arrays(capacity=[[2.0]], load=[[1.5]] * 2, placement=[[-1]] * 2), path)
    return str(path)


@pytest.fixture
def method():
    """Register a strategy for one test."""
    names = []

    def add(function):
        where = f"{__name__}:{function.__name__}"
        METHODS[function.__name__] = Method(function.__name__, where, "for a test")
        names.append(function.__name__)
        return function.__name__

    yield add
    for name in names:
        METHODS.pop(name)


def unchanged(request, stop_reason="exhausted"):
    """Leave every replica where it is."""
    placement = request.start
    return Outcome(placement.node.copy(), placement.leader.copy(), stop_reason)


def interrupted_by_a_person(request):
    """Be interrupted between two slices of work, as by Ctrl-C at a terminal."""
    signal.raise_signal(signal.SIGINT)
    reason = request.watch.stop(10, 3, 0.5)
    return unchanged(request, reason or "exhausted")


def interrupted_twice(request):
    """Be interrupted again before there was time to stop."""
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)
    return unchanged(request)


def slow(request):
    """Take longer than a person's patience."""
    request.watch.stop(10, 3, 0.5)
    time.sleep(1.3)
    return unchanged(request)


class TestSolve:
    def test_reports_and_writes_the_new_placement_and_its_moves(
        self, cluster_file, tmp_path, capsys
    ):
        placed, table = str(tmp_path / "placed.npz"), str(tmp_path / "moves.csv")
        assert main(["solve", cluster_file, "--level", "0.1", "-o", placed, "--table", table]) == 0
        told = capsys.readouterr().out
        assert "Evenkeel · balance" in told
        assert f"wrote {placed}" in told
        before, after = read(cluster_file), read(placed)
        with open(table, newline="") as file:  # noqa: PTH123 (csv wants the newlines as they are)
            rows = [row for row in csv.DictReader(file) if row["kind"] == "move"]
        moved = np.flatnonzero(before.placement.node != after.placement.node)
        names = after.nodes.names
        assert {(row["partition"], int(row["slot"])) for row in rows} >= {
            (f"p{k // 3}", k % 3) for k in moved.tolist()
        }
        for row in rows:
            p = int(row["partition"][1:])
            assert names[after.placement.nodes[p, int(row["slot"])]] == row["to"]
        assert main(["check", placed]) == 0

    def test_says_how_to_write_where_nothing_is_written(self, level_file, capsys):
        assert main(["solve", level_file]) == 0
        assert "nothing written; -o OUT" in capsys.readouterr().out

    def test_json_is_for_machines(self, cluster_file, tmp_path, capsys):
        table = tmp_path / "moves.json"
        code = main(["solve", cluster_file, "--level", "0.1", "--json", "--table", str(table)])
        figures = json.loads(capsys.readouterr().out)
        assert code == 0
        assert figures["success"]
        assert figures["broken"] == {}
        assert figures["broken_before"]["on_dead"] > 0
        assert set(figures["level"]) == {"cpu", "disk", "net"}
        assert figures["written"] == [str(table)]
        rows = json.loads(table.read_text())
        assert sum(row["kind"] == "move" for row in rows) == figures["moves"]
        assert set(rows[0]) == {"kind", "partition", "slot", "from", "to", "bytes"}

    def test_the_tolerances_are_what_is_asked_for(self, cluster_file, capsys):
        loose = ["--level", "cpu=0.08,disk=none", "--leaders", "0.2"]
        assert main(["solve", cluster_file, "--json", *loose]) == 0
        figures = json.loads(capsys.readouterr().out)
        assert figures["level"]["cpu"] <= 1.0801
        assert main(["solve", cluster_file, "--json", "--level", "none"]) == 0
        unlevelled = json.loads(capsys.readouterr().out)
        assert unlevelled["moves"] < figures["moves"]

    def test_bounds_are_lifted_on_request(self, tmp_path, capsys):
        cluster = Cluster.from_arrays(
            capacity=[[9.0]] * 3, load=[[1.0]] * 15,
            tags={"x": [True, True, False], "y": [False, True, True]},
            placement=[[0]] * 7 + [[1]] * 5 + [[2]] * 3, rule=[0] * 7 + [1] * 8,
            rules=[Rule(require=["+x"]), Rule(require=["+y"])],
        )  # fmt: skip
        file = str(write(cluster, tmp_path / "chain.npz")[0])
        asked = ["solve", file, "--level", "0", "--json"]
        main(asked)
        plain = json.loads(capsys.readouterr().out)
        assert main([*asked, "--prove"]) == 0
        proved = json.loads(capsys.readouterr().out)
        assert plain["moves_at_least"] < proved["moves_at_least"] <= proved["moves"]
        assert proved["proven"]["moves"]["term"] == "joint prices"
        main([*asked, "--prove", "--prove-limit", "0"])
        assert json.loads(capsys.readouterr().out)["moves_at_least"] == plain["moves_at_least"]

    def test_limits_are_kept(self, cluster_file, capsys):
        main(["solve", cluster_file, "--json", "--level", "0.02", "--moves", "7"])
        assert json.loads(capsys.readouterr().out)["moves"] <= 7

    def test_a_methods_own_options_can_be_given(self, capsys):
        told = {}
        for scope in ("volume", "cluster"):
            chosen = ["--method", "longhorn", "--option", f"scope={scope}"]
            chosen += ["--option", "replica-auto-balance=best-effort"]
            main(["solve", str(LONGHORN), *chosen])
            told[scope] = capsys.readouterr().out
        assert "plans the cheapest" in told["cluster"]
        assert "plans the cheapest" not in told["volume"]

    def test_the_same_seed_and_work_give_the_same_placement(self, cluster_file, tmp_path):
        once, twice = str(tmp_path / "a.npz"), str(tmp_path / "b.npz")
        for path in (once, twice):
            asked = ["--seed", "5", "--work-limit", "3000", "--level", "0.01"]
            main(["solve", cluster_file, "-q", *asked, "-o", path])
        assert np.array_equal(read(once).placement.node, read(twice).placement.node)

    def test_what_cannot_be_placed_is_told_with_the_reason(self, overfull_file, capsys):
        assert main(["solve", overfull_file]) == 4
        told = capsys.readouterr().out
        assert "✗ infeasible" in told
        assert "unplaced (1)" in told
        assert "capacity d0" in told

    def test_what_a_budget_leaves_undone_is_done_in_part(self, tmp_path):
        path = str(tmp_path / "down.npz")
        whole = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 4, load=[[1.0]] * 6, placement=[[0, 1]] * 3 + [[1, 0]] * 3
        )
        ek.write(whole.down(0), path)
        assert ek.solve(whole.down(0), limits=ek.Limits(moves=2)).status == "partial"
        assert main(["solve", path, "--moves", "2", "-q"]) == 3
        assert main(["plan", path, "--moves", "2", "-q"]) == 3
        assert main(["plan", path, "-q"]) == 0

    def test_kafka_in_is_kafka_out_with_the_way_back(self, tmp_path, capsys):
        names = ("describe_mendable.txt", "racks.json")
        files = [str(FORMATS / f"kafka_{name}") for name in names]
        plan = tmp_path / "plan.json"
        assert main(["solve", *files, "--level", "none", "-o", str(plan), "--json"]) == 0
        told = capsys.readouterr()
        written = json.loads(told.out)["written"]
        assert written == [str(plan.with_suffix(end)) for end in KAFKA_FILES]
        assert f"{plan.with_suffix('.rollback.json')} leaves out " in told.err
        assert "them: nothing is copied back to what is down or may not hold it (1001)" in told.err
        there, back = (json.loads(plan.with_suffix(end).read_text()) for end in KAFKA_FILES[:2])
        moved = [
            [(row["topic"], row["partition"]) for row in one["partitions"]] for one in (there, back)
        ]
        # all of them leave a broker that is dead, and go back to it in no case
        assert moved == [[("orders", 1), ("orders", 2)], [("orders", 1)]]
        assert there["version"] == 1
        assert 1001 not in {broker for row in there["partitions"] for broker in row["replicas"]}

    def test_another_format_can_be_asked_for(self, tmp_path):
        out = str(tmp_path / "placed.npz")
        described = str(FORMATS / "kafka_describe_mendable.txt")
        assert main(["solve", described, "-q", "-o", out, "--to", "native-npz"]) == 0
        assert len(read(out).nodes) == len(read(described).nodes)

    @pytest.mark.usefixtures("interruptible")
    def test_ctrl_c_writes_the_best_so_far(self, cluster_file, tmp_path, capsys, method):
        placed = tmp_path / "placed.npz"
        name = method(interrupted_by_a_person)
        assert main(["solve", cluster_file, "--method", name, "-o", str(placed)]) == 130
        told = capsys.readouterr()
        assert "stopping with the best so far" in told.err
        said = " ".join(told.out.split())  # lines are wrapped
        assert "The search was interrupted." in said
        assert "Cut short, since it was interrupted; still broken" in said
        assert np.array_equal(read(placed).placement.node, read(cluster_file).placement.node)

    @pytest.mark.usefixtures("interruptible")
    def test_a_second_ctrl_c_gives_up(self, cluster_file, tmp_path, capsys, method):
        placed = tmp_path / "placed.npz"
        handler = signal.getsignal(signal.SIGINT)
        name = method(interrupted_twice)
        assert main(["solve", cluster_file, "--method", name, "-o", str(placed)]) == 130
        assert "nothing was written" in capsys.readouterr().err
        assert not placed.exists()
        assert signal.getsignal(signal.SIGINT) is handler

    def test_whoever_waits_is_told_what_for(self, level_file, capsys, method):
        name = method(slow)
        assert main(["solve", level_file, "--method", name]) == 0
        assert f"1 s: {name}: 3 moves, 10 candidates" in capsys.readouterr().err
        assert main(["solve", level_file, "--method", name, "--quiet"]) == 0
        told = capsys.readouterr()
        assert told.out + told.err == ""


class TestBadInput:
    @pytest.mark.parametrize(
        "arguments",
        [
            [],
            ["nonsense"],
            ["solve"],
            ["solve", "x.npz", "--level", "much"],
            ["solve", "x.npz", "--level", "-0.1"],
            ["solve", "x.npz", "--level", "cpu=0.1,cpu=0.2"],
            ["solve", "x.npz", "--level", "cpu=0.1,=0.2"],
            ["solve", "x.npz", "--level", "cpu=nan"],
            ["solve", "x.npz", "--moves", "some"],
            ["solve", "x.npz", "--option", "repaired"],
            ["explain", "x.npz"],
            ["plan"],
            ["plan", "x.npz", "--throttle", "node-in"],
            ["plan", "x.npz", "--throttle", "domain-in=zone"],
        ],
    )
    def test_arguments_that_do_not_parse(self, arguments, capsys):
        assert main(arguments) == 2
        told = capsys.readouterr().err
        assert "usage: evenkeel" in told
        assert len(told.splitlines()) == 2
        assert "Traceback" not in told

    def test_a_file_that_is_not_there(self, tmp_path, capsys):
        file = tmp_path / "missing.npz"
        assert main(["solve", str(file)]) == 2
        assert capsys.readouterr().err.endswith(f"evenkeel: {file}: No such file or directory\n")

    def test_a_file_of_no_format(self, tmp_path, capsys):
        path = tmp_path / "letter.txt"
        path.write_text("Dear sir")
        assert main(["check", str(path)]) == 2
        assert "is not in a known format" in capsys.readouterr().err

    def test_a_truncated_file(self, cluster_file, tmp_path, capsys):
        path = tmp_path / "half.npz"
        with open(cluster_file, "rb") as file:  # noqa: PTH123
            whole = file.read()
        path.write_bytes(whole[: len(whole) // 2])
        assert main(["solve", str(path)]) == 2
        told = capsys.readouterr().err
        assert "truncated" in told
        assert "Traceback" not in told

    def test_every_fault_is_listed(self, tmp_path, capsys):
        path = tmp_path / "bad.npz"
        load = np.full((30, 1), np.nan)
        np.savez(path, capacity=np.array([[-1.0]]), load=load, placement=np.zeros((30, 1), int))
        assert main(["check", str(path)]) == 2
        told = capsys.readouterr().err.splitlines()
        assert any("capacity[0, 0]" in line for line in told)
        assert sum("load[" in line for line in told) > 1
        assert all(line.startswith("evenkeel: ") for line in told)

    def test_a_thousand_faults_alike_take_a_few_lines(self, cluster_file, tmp_path, capsys):
        other = tmp_path / "other.npz"
        write(Cluster.from_arrays(
            capacity=[[1.0]], load=[[0.0]] * 1000, placement=[[0]] * 1000, node_names=["n0"],
            partition_names=[f"elsewhere-{i}" for i in range(1000)],
        ), other)  # fmt: skip
        for asked in (
            ["diff", cluster_file, str(other)],
            ["plan", cluster_file, "--target", str(other)],
            ["convert", str(other), "--to", "cockroach", "-o", str(tmp_path / "x")],
        ):
            assert main(asked) == 2
            told = capsys.readouterr().err.splitlines()
            assert len(told) <= 22, asked
            assert "more: " in told[-1]

    @pytest.mark.parametrize(
        ("extra", "says"),
        [
            (["--method", "magic"], "unknown method"),
            (["--option", "repaired=true"], "balance; it takes none"),
            (["--method", "helix_crushed", "--option", "colour=1"], "known: states, replicas"),
            (["--method", "helix_crushed", "--option", "base=straw"], "options.base"),
            (["--format", "magic"], "unknown format"),
            (["--level", "heat=0.1"], "unknown dimension"),
            (["--moves", "-1"], "--moves"),
            (["--time-limit", "-1"], "--time-limit"),
            (["--table", "moves.doc"], "must end in one of"),
            (["--report", "out.pdf"], "--report: must end in one of"),
        ],
    )
    def test_arguments_that_do_not_fit(self, cluster_file, extra, says, capsys):
        assert main(["solve", cluster_file, *extra]) == 2
        assert says in capsys.readouterr().err

    def test_a_page_about_the_result(self, cluster_file, tmp_path, capsys):
        page = tmp_path / "out.html"
        assert main(["solve", cluster_file, "--level", "0.1", "--json", "--report", str(page)]) == 0
        figures = json.loads(capsys.readouterr().out)
        assert figures["written"] == [str(page)]
        assert f"{figures['moves']:,} moves" in page.read_text()

    @pytest.mark.parametrize("command", ["plan", "sweep", "frontier"])
    def test_a_page_about_what_else_is_asked(self, command, level_file, tmp_path, capsys):
        page = tmp_path / "out.html"
        main([command, level_file, "--json", "--report", str(page)])
        assert json.loads(capsys.readouterr().out)["written"] == [str(page)]
        assert f"<h1>Evenkeel: {command}" in page.read_text()
        assert main([command, level_file, "--report", "out.pdf"]) == 2
        assert "--report: must end in one of" in capsys.readouterr().err

    def test_an_output_that_cannot_be_written(self, level_file, tmp_path, capsys):
        assert main(["solve", level_file, "-o", str(tmp_path / "no" / "such.npz")]) == 2
        assert "such" in capsys.readouterr().err


class TestCheck:
    def test_a_broken_placement_fails_and_shows_the_worst(self, cluster_file, capsys):
        assert main(["check", cluster_file]) == 1
        told = capsys.readouterr().out
        assert "on dead" in told
        assert "worst" in told

    def test_nodes_that_are_not_alive_are_named_with_what_is_on_them(self, tmp_path, capsys):
        cluster = Cluster.from_arrays(
            capacity=[[9.0]] * 3, load=[[1.0]] * 4, placement=[[0], [1], [1], [2]],
            alive=[True, False, False], keeps=[True, True, False],
        )  # fmt: skip
        write(cluster, tmp_path / "down.npz")
        main(["check", str(tmp_path / "down.npz")])
        told = capsys.readouterr().out
        assert "not alive: n1, n2 · 3 replicas on them, 2 of which wait there" in told
        main(["check", str(tmp_path / "down.npz"), "--json"])
        assert json.loads(capsys.readouterr().out)["not_alive"] == [
            {"node": "n1", "replicas": 2, "waits": True},
            {"node": "n2", "replicas": 1, "waits": False},
        ]

    def test_what_waits_on_a_node_that_is_down_does_not_pass(self, tmp_path, capsys):
        cluster = Cluster.from_arrays(
            capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0, 1]] * 2,
            alive=[True, False], keeps=[True, True],
        )  # fmt: skip
        file = str(write(cluster, tmp_path / "down.npz")[0])
        assert main(["check", file]) == 1
        assert (
            "✗ no hard rule is broken, but nodes that are down hold 2 replicas"
            in capsys.readouterr().out
        )
        assert main(["check", file, "-q"]) == 1
        assert "replicas that wait on nodes that are down: 2" in capsys.readouterr().err

    def test_a_sound_placement_passes(self, level_file, capsys):
        assert main(["check", level_file]) == 0
        assert "no hard rule is broken" in capsys.readouterr().out

    def test_json(self, cluster_file, capsys):
        assert main(["check", cluster_file, "--json"]) == 1
        figures = json.loads(capsys.readouterr().out)
        assert figures["hard_violations"] >= figures["broken"]["on_dead"] > 0

    def test_it_is_not_solved(self, cluster_file, capsys, method):
        assert main(["check", cluster_file, "--quiet"]) == 1
        assert capsys.readouterr().out == ""


class TestExplain:
    def test_by_name_and_by_number(self, cluster_file, capsys):
        assert main(["explain", cluster_file, "p7"]) == 0
        by_name = capsys.readouterr().out
        assert by_name.startswith("p7\n")
        assert "(leader)" in by_name
        assert main(["explain", cluster_file, "7"]) == 0
        assert capsys.readouterr().out == by_name

    def test_as_it_stands(self, cluster_file, capsys):
        cluster = read(cluster_file)
        dead = np.flatnonzero(~cluster.nodes.alive)
        lost = int(cluster.placement.owner[np.isin(cluster.placement.node, dead)][0])
        assert main(["explain", cluster_file, f"p{lost}", "--as-is"]) == 0
        assert "not alive" in capsys.readouterr().out

    def test_json(self, level_file, capsys):
        assert main(["explain", level_file, "p1", "--as-is", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["partition"] == "p1"
        assert told["replicas"][0]["now"] == "n1"

    @pytest.mark.parametrize("name", ["orders-17", "200", "-1", "p200", ""])
    def test_an_unknown_partition(self, cluster_file, name, capsys):
        assert main(["explain", cluster_file, "--", name]) == 2
        assert "is none of the 200 partitions, p0 to p199" in capsys.readouterr().err


class TestGenerate:
    def test_writes_what_was_asked_for(self, tmp_path, capsys):
        path = tmp_path / "made.npz"
        asked = ["--partitions", "300", "--nodes", "20", "--zones", "5", "--seed", "7"]
        assert main(["generate", str(path), *asked]) == 0
        assert str(path) in capsys.readouterr().out
        made = read(path)
        same = expansion(partitions=300, nodes=20, zones=5, seed=7)
        assert np.array_equal(made.placement.node, same.placement.node)
        assert np.array_equal(made.partitions.load.leader, same.partitions.load.leader)

    def test_refuses_the_impossible(self, tmp_path, capsys):
        path = tmp_path / "made.npz"
        assert main(["generate", str(path), "--nodes", "3", "--replicas", "11"]) == 2
        told = capsys.readouterr().err
        assert "replicas" in told
        assert "nodes" in told
        assert not path.exists()


class TestInstallation:
    def test_versions(self, capsys):
        assert main(["versions"]) == 0
        told = capsys.readouterr().out
        for name in ("evenkeel", "python", "numpy", "numba", "processor", "kernel folder"):
            assert f"\n{name}" in f"\n{told}"
        assert main(["versions", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["evenkeel"] == __version__

    def test_after_a_warmup_a_solve_compiles_nothing(self, cluster_file, capsys):
        assert main(["warmup"]) == 0
        assert "kept in" in capsys.readouterr().out
        assert main(["solve", cluster_file, "--level", "0.01", "--leaders", "0.05"]) == 0
        assert "compiling kernels" not in capsys.readouterr().err
        assert main(["warmup", "leaders"]) == 0
        capsys.readouterr()
        assert main(["warmup", "leaders", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["compiled"] == {}

    def test_a_warmup_takes_methods(self, capsys):
        assert main(["warmup", "helix_crush", "helix_auto", "--json"]) == 0
        assert isinstance(json.loads(capsys.readouterr().out)["compiled"], dict)
        assert main(["warmup", "nobody"]) == 2
        assert "unknown method" in capsys.readouterr().err

    def test_it_is_the_same_as_a_module(self):
        done = subprocess.run(
            [sys.executable, "-m", "evenkeel", "--version"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == f"evenkeel {__version__}\n"

    def test_a_reader_who_leaves_early_is_no_error(self, cluster_file):
        lines = f"{sys.executable} -m evenkeel check {cluster_file} | head -n 1"
        done = subprocess.run(lines, shell=True, capture_output=True, text=True, check=True)
        assert "hard violations" in done.stdout
        assert without_progress(done.stderr) == ""


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_verdict_stays_where_the_reader_of_a_pipe_has_gone(overfull_file, form):
    command = [sys.executable, "-m", "evenkeel", "check", overfull_file, *form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        run.stdout.close()
        said = run.stderr.read()
    assert (run.returncode, without_progress(said.decode())) == (1, "")


def test_demo_solves_reports_and_writes(tmp_path, capsys):
    folder = tmp_path / "demo"
    assert main(["demo", "--folder", str(folder), "--partitions", "2000", "--nodes", "60"]) == 0
    told = capsys.readouterr().out
    assert "10 of its 60 nodes are new and empty, 2 have died" in told
    assert {path.name for path in folder.iterdir()} == {
        "cluster.npz", "placement.npz", "moves.csv"
    }  # fmt: skip
    assert main(["check", str(folder / "placement.npz")]) == 0


class TestWaiting:
    def test_nothing_is_said_of_what_is_quick(self, capsys):
        with Waiting(quiet=False) as waiting:
            waiting.doing("reading")
        assert capsys.readouterr().err == ""

    def test_compiling_is_announced_once_and_at_once(self, capsys):
        with Waiting(quiet=False) as waiting:
            waiting.compiling("state.apply")
            waiting.compiling("state.book")
        told = capsys.readouterr().err
        assert told.startswith("compiling kernels (once each, kept for later runs): ")
        assert told.count("\n") == 1
        with Waiting(quiet=True) as waiting:
            waiting.compiling("state.apply")
        assert capsys.readouterr().err == ""

    def test_a_terminal_is_shown_a_line_that_goes_away(self, capsys, monkeypatch):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr("evenkeel.cli.waiting.PATIENCE", 0.01)
        told = ""

        def until(text):
            nonlocal told
            for _ in range(400):
                told += capsys.readouterr().err
                if text in told:
                    break
                time.sleep(0.05)

        with Waiting(quiet=False, time_limit=10.0) as waiting:
            waiting.doing("searching [far]")
            until("searching [far]")
            waiting.compiling("state.apply")
            until("state.apply")
        told += capsys.readouterr().err
        assert "searching [far]" in told
        assert "compiling kernels (once each" in told
