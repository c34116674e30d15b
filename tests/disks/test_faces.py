"""Moves inside nodes in all that is printed and written, where nothing or something is copied."""

import csv
import json
from pathlib import Path

import pytest

import evenkeel as ek
from evenkeel.cli import main


@pytest.fixture(params=[0, 1], ids=["nothing is copied", "one is copied"])
def asked(request, tmp_path, monkeypatch):
    """Arguments by which two replicas move inside node 0, and some from node 2 to node 3."""
    copied = request.param
    monkeypatch.chdir(tmp_path)
    cluster = ek.Cluster.from_arrays(
        capacity=[[120.0]] * 4, load=[[10.0]] * 16, dimensions=["disk"], bytes="disk",
        placement=[[0]] * 4 + [[1]] * 4 + [[2]] * (4 + copied) + [[3]] * (4 - copied),
        disks=ek.Disks(node=[0, 0, 1, 1, 2, 3], capacity=[60.0] * 4 + [120.0] * 2),
        disk=[[0]] * 4 + [[2], [2], [3], [3]] + [[4]] * (4 + copied) + [[5]] * (4 - copied),
    )  # fmt: skip
    ek.write(cluster, "now.npz")
    return ["now.npz", "--level", "0", "--disks", "0"], copied


def table(name):
    return [*csv.DictReader(Path(name).read_text().splitlines())]


def test_a_solve_counts_and_lists_them(asked, capsys):
    arguments, copied = asked
    assert main(["solve", *arguments, "-o", "to.npz", "--table", "moves.csv"]) == 0
    assert "between disks 2" in " ".join(capsys.readouterr().out.split())
    rows = [row for row in table("moves.csv") if row["kind"] == "disk"]
    assert [(row["from"], row["to"], row["bytes"]) for row in rows] == [
        ("disk0", "disk1", "10.0")
    ] * 2
    result = ek.solve(ek.read("now.npz"), goals=ek.Goals(level=0.0, disks=0.0))
    assert "inside nodes 2" in str(result)
    assert result.to_frame("disk_moves", "pandas").source.tolist() == ["disk0"] * 2
    result.report("result.html")
    assert "Moves inside nodes (2)" in Path("result.html").read_text()
    assert main(["diff", "now.npz", "to.npz"]) == 0
    assert "inside nodes  disk0 -> disk1" in capsys.readouterr().out
    assert main(["diff", "now.npz", "to.npz", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["moves"], told["disk_moves"], len(told["moved_inside"])) == (copied, 2, 2)


def test_a_plan_counts_and_lists_them(asked, capsys):
    arguments, copied = asked
    outs = ["-o", "plan.json", "--table", "steps.csv", "--report", "plan.html"]
    throttle = ["--throttle", "disk-moves=1"]
    assert main(["plan", *arguments, *throttle, *outs, "--explain", "p0"]) == 0
    text = capsys.readouterr().out
    assert "Inside nodes 2 moves, 20 of disk, in 2 waves" in text
    assert "Nothing is to be done" not in text
    assert ("1 copy" in text) == bool(copied)
    first = ek.read_plan("plan.json").disk_moves.replica[0]
    rows = table("steps.csv")
    assert len(rows) == 2 + 5 * copied
    inside = [row for row in rows if row["kind"] == "disk"]
    assert [(row["wave"], row["from"], row["to"], row["bytes"]) for row in inside] == [
        ("1", "disk0", "disk1", "10.0"), ("2", "disk0", "disk1", "10.0"),
    ]  # fmt: skip
    page = Path("plan.html").read_text()
    assert "Moves inside nodes (2)" in page and "Nothing is to be done" not in page
    assert main(["check", "plan.json"]) == 0
    assert "Inside nodes 2 moves" in capsys.readouterr().out
    assert main(["check", "plan.json", "--json", "--metrics", "a.prom"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["disk_moves"], told["disk_bytes"], told["disk_waves"]) == (2, 20.0, 2)
    assert 'evenkeel_disk_moves{cluster="a",command="check"} 2' in Path("a.prom").read_text()
    assert main(["plan", *arguments, "--explain", f"p{first}"]) == 0
    assert "inside its node, wave 1: disk0 -> disk1" in capsys.readouterr().out
    assert main(["resume", "plan.json", "now.npz"]) == 0
    assert "Inside nodes 2 moves" in capsys.readouterr().out


def test_progress_ends_with_the_last_move_inside_a_node(asked):
    cluster = ek.read("now.npz")
    plan = ek.solve(cluster, goals=ek.Goals(level=None, disks=0.0)).plan()
    assert len(plan) == 0 and not plan.progress(cluster).finished
    assert str(plan.progress(cluster)) == "done: 0 copies, 0 steps; inside nodes 2 moves left"
    assert plan.progress(plan.end).finished


def test_a_check_tells_of_disks_what_its_metrics_do(asked, capsys):
    words = ["check", "now.npz", "--empty-disk", "disk0", "--metrics", "a.prom"]
    assert main(words) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "✗ no hard rule is broken between nodes"
    assert told[1].startswith("✗ inside nodes, replicas on disks that failed")
    samples = Path("a.prom").read_text()
    for sample in ("disk_replicas_to_leave", "broken_disks"):
        assert f'evenkeel_{sample}{{cluster="a",command="check"}} 4\n' in samples
    assert main(["check", "now.npz", "--metrics", "a.prom", "-q"]) == 0
    assert 'evenkeel_disk_imbalance_ratio{cluster="a",command="check"} 2.0' in (
        Path("a.prom").read_text()
    )


def test_what_is_asked_for_is_told_if_quiet_and_no_move_needs_no_bound(asked, capsys):
    arguments, copied = asked
    assert main(["solve", *arguments, "-q", "--explain", "p0", "--by-group"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("group") and "\np0" in out and "movement" not in out
    assert main(["plan", *arguments, "-q", "--explain", "p5"]) == 0
    assert capsys.readouterr().out == "p5:\n  stays as it is\n"
    assert main(["solve", *arguments]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert ("moves 0 0 0.00% none are needed" in out) == (not copied)
    assert ("1 with the replica that moves" in out) == bool(copied)
