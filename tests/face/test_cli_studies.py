"""What the command line tells of sweeps and simulations: how long repairs take, and a page."""

import json
import re

import pytest

import evenkeel as ek
from evenkeel.cli import main
from tests.support import places


@pytest.fixture
def file(tmp_path):
    """A cluster of four partitions on two of three nodes."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4, domains={"zone": [*"abc"]}
    )
    ek.write(cluster, tmp_path / "c.npz")
    return str(tmp_path / "c.npz")


def test_a_sweep_tells_how_long_repairs_take(file, capsys):
    assert main(["sweep", file, "--throttle", "node-in=1"]) == 0
    heads = capsys.readouterr().out.splitlines()[2].split("  ")
    assert heads[-2:] == ["recovery", "short for"]
    assert main(["sweep", file]) == 0
    assert "recovery" not in capsys.readouterr().out


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_a_sweep_has_a_table(file, tmp_path, capsys, suffix):
    table = tmp_path / f"losses{suffix}"
    assert main(["sweep", file, "--table", str(table)]) == 0
    assert f"wrote {table}" in capsys.readouterr().out
    text = table.read_text()
    rows = json.loads(text) if suffix == ".json" else text.splitlines()[1:]
    assert len(rows) == 3 and "n0" in str(rows[0])
    assert main(["sweep", file, "--table", "losses.txt"]) == 2


def test_a_simulation_has_a_page(file, tmp_path, capsys):
    page = tmp_path / "run.html"
    asked = ["simulate", file, "--down", "n0@60", "--until", "600"]
    assert main([*asked, "--report", str(page)]) == 0
    assert f"wrote {page}" in capsys.readouterr().out
    assert "n0 down" in page.read_text()
    assert main([*asked, "--report", "run.txt"]) == 2


def test_a_sweep_says_what_its_columns_tell(file, capsys):
    main(["sweep", file, "--throttle", "node-in=1"])
    told = capsys.readouterr().out
    heads = told.splitlines()[2].split()
    for head in ("lost", "quorum", "fullest"):
        assert head in heads
        assert re.search(rf"^  {head} +\w", told, re.M)
    assert "until no partition is short of live replicas" in told
    main(["sweep", file])
    assert "until no partition" not in capsys.readouterr().out


def test_a_simulation_says_what_its_figures_are(file, capsys):
    assert main(["simulate", file, "--down", "n0@60", "--until", "900"]) == 0
    rows = [
        line for line in capsys.readouterr().out.splitlines() if re.match(r"[a-z]\w+ +\d", line)
    ]
    assert len(rows) > 10
    for row in rows:
        assert re.search(r"[\d.]+  [a-z]", row), row


def test_a_simulation_carries_out_plans_under_a_throttle(file, capsys):
    def moves_made(*more):
        asked = ["simulate", file, "--level", "0", "--until", "900", "--every", "60", *more]
        assert main([*asked, "--json"]) == 0
        return json.loads(capsys.readouterr().out)["over_time"]["moves"]

    at_once, in_turn = moves_made(), moves_made("--throttle", "copies=1")
    assert at_once[-1] == in_turn[-1] > 1
    assert at_once.index(at_once[-1]) <= in_turn.index(in_turn[-1])
    assert main(["simulate", file, "--protocol", "kafka"]) == 2
    assert "goes with --throttle" in capsys.readouterr().err
    assert main(["simulate", file, "--throttle", "node-inn=2"]) == 2
    assert "node-in" in capsys.readouterr().err


@pytest.mark.parametrize(("method", "system"), [("longhorn", "Longhorn"), ("ceph_upmap", "Ceph")])
def test_a_method_of_another_system_says_so(method, system, capsys):
    described = str(places.DATA / "formats" / "kafka_describe.txt")
    assert main(["solve", described, "--method", method, "-q"]) == 2
    told = capsys.readouterr().err
    assert f"what was read from {system}, and this is of kafka; balance takes any cluster" in told


def test_a_sweep_has_the_goals_that_are_usual_for_the_system(tmp_path, capsys):
    lines = [f"\tTopic: t\tPartition: {p}\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n" for p in range(4)]
    lines += ["\tTopic: t\tPartition: 4\tLeader: 3\tReplicas: 3,1\tIsr: 3,1\n"]
    described = tmp_path / "described.txt"
    described.write_text("Topic: t\tPartitionCount: 5\tReplicationFactor: 2\tConfigs: \n")
    with described.open("a") as file:
        file.writelines(lines)
    main(["sweep", str(described)])
    assert "as usual for kafka" in capsys.readouterr().err
    main(["sweep", str(described), "--level", "none", "--leaders", "none"])
    assert "as usual" not in capsys.readouterr().err
