"""What the command line says beside an answer: what was meant, and what is missing."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.cli import main
from tests.support import places

FORMATS = places.DATA / "formats"


@pytest.fixture
def files(tmp_path):
    """Eight partitions on one of three nodes; where they, and where two of them, should be."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 8, placement=[[0]] * 8, dimensions=["disk"]
    )
    node = np.arange(8, dtype=np.int32) % 3
    wanted = cluster.placement.replaced(node, cluster.placement.leader)
    some = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 2, placement=[[1], [2]], dimensions=["disk"]
    )
    names = {name: str(tmp_path / f"{name}.npz") for name in ("now", "wanted", "some", "died")}
    ek.write(cluster, names["now"])
    ek.write(cluster, names["wanted"], placement=wanted)
    ek.write(some, names["some"])
    ek.write(cluster.down(["n2"]), names["died"])
    ek.write_plan(ek.plan(cluster, wanted), tmp_path / "plan.json")
    return names | {"plan": str(tmp_path / "plan.json")}


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--levl", "0.1"], "did you mean '--level'?"),
        (["--prove"], "--prove is an option of evenkeel solve\n"),
        (["--lose=zone"], "--lose is an option of evenkeel sweep"),
        (["--pin", "g0"], "is a group, whose partitions are meant by 'group=g0' (got"),
        (["--protocol", "kafk"], "did you mean 'kafka'?"),
        (["-o", "plan.txt"], "a file that ends in .json"),
    ],
)
def test_what_was_meant_is_asked(files, words, hint, capsys):
    assert main(["plan", files["now"], "--target", files["wanted"], *words]) == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--level", "5%"], ["--level=5%"], ["-q"]])
def test_options_follow_the_command(files, words, capsys):
    assert main([*words, "solve", files["now"]]) == 2
    said = f"evenkeel: error: options follow the command: evenkeel solve {words[0]} ..."
    assert said in capsys.readouterr().err


def test_options_may_stand_between_files(files, tmp_path, capsys):
    (tmp_path / "nodes.csv").write_text("node,disk\na,9\nb,9\n")
    (tmp_path / "replicas.csv").write_text("partition,node,disk\np,a,1\nq,a,1\n")
    tables = [str(tmp_path / name) for name in ("nodes.csv", "replicas.csv")]
    assert main(["solve", tables[0], "--level", "5%", tables[1], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["moves"] == 1
    assert main(["solve", files["now"], "--drain", "n1", "n2"]) == 2
    assert "several are given one by one: --drain n2" in capsys.readouterr().err


def test_a_kind_of_step_that_there_is_not(files, tmp_path, capsys):
    document = json.loads((tmp_path / "plan.json").read_text())
    document["steps"][0]["kind"] = "copi"
    (tmp_path / "plan.json").write_text(json.dumps(document))
    assert main(["check", files["plan"]]) == 2
    told = capsys.readouterr().err
    assert "steps[0].kind: is unknown; known: ['copy', " in told
    assert "did you mean 'copy'?" in told


@pytest.mark.parametrize("data", [b"", b" \n"])
def test_an_empty_file_is_empty(tmp_path, data, capsys):
    (tmp_path / "empty.json").write_bytes(data)
    assert main(["check", str(tmp_path / "empty.json")]) == 2
    assert "empty.json: is empty" in capsys.readouterr().err


def test_a_level_of_more_than_the_mean_is_asked_for_in_per_cent(files):
    assert main(["solve", files["now"], "--level", "500%"]) == 0
    assert main(["solve", files["now"], "--level", "disk=500%", "--leaders", "200%"]) == 0


@pytest.mark.parametrize("words", [["--level", "5"], ["--leaders", "5"], ["--level", "disk=5"]])
def test_a_tolerance_that_has_lost_its_sign_is_refused(files, words, capsys):
    assert main(["solve", files["now"], *words]) == 2
    assert "'5' is 500%: write 5% or 0.05" in capsys.readouterr().err


def test_partitions_that_a_target_leaves_out_stay_and_are_counted(files, capsys):
    assert main(["plan", files["now"], "--target", files["some"], "--json"]) == 0
    told = capsys.readouterr()
    assert "the target names 2 of 8 partitions: the other ones stay where they are" in told.err
    assert json.loads(told.out)["copies"] == 2
    assert main(["diff", files["now"], files["some"]]) == 0
    assert "AFTER names 2 of 8 partitions" in capsys.readouterr().err
    main(["plan", files["now"], "--target", files["wanted"]])
    main(["diff", files["now"], files["some"], "-q"])
    assert "partitions: the other ones" not in capsys.readouterr().err


def test_resume_says_what_it_does_not_know_and_does_not_mend(files, capsys):
    main(["resume", files["plan"], files["some"]])
    assert "names 2 of 8 partitions" in capsys.readouterr().err
    main(["resume", files["plan"], files["died"]])
    told = capsys.readouterr().err
    assert "dead since the plan was made: n2; what lies there" in told
    assert "plan afresh" in told
    main(["resume", files["plan"], files["now"]])
    assert "note" not in capsys.readouterr().err


def test_what_files_of_ceph_and_cockroach_leave_out_is_noted(tmp_path, capsys):
    ceph = [str(FORMATS / "ceph" / name) for name in ("osd_dump.json", "crush.txt")]
    main(["check", *ceph])
    assert "note: no sizes: every placement group" in capsys.readouterr().err
    main(["check", str(FORMATS / "cockroach" / "ranges.csv")])
    told = capsys.readouterr().err
    assert "note: no load of cpu, qps, writes: " in told
    assert "note: no capacities of bytes" in told


def test_diff_pairs_who_left_with_who_joined(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = {"before.json": [[5, 3, 1], [0, 1, 2]], "after.json": [[3, 2, 1], [2, 0, 1]]}
    for file, lists in rows.items():
        told = [
            {"topic": "t", "partition": p, "replicas": one} for p, one in enumerate(lists)
        ]  # fmt: skip
        Path(file).write_text(json.dumps({"version": 1, "partitions": told}))
    assert main(["diff", *rows]) == 0
    told = capsys.readouterr().out
    assert told.startswith("1 move, 2 partitions that another node leads")
    assert "t-0[1]  5 -> 2" in told


def test_diff_names_what_is_given_up(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for file, placement in (
        ("before.npz", [[3, 2, 1], [0, 1, 2]]), ("after.npz", [[0, 2, -1], [0, -1, -1]])
    ):  # fmt: skip
        cluster = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 4, load=[[1.0]] * 2, placement=placement, replicas=3
        )
        ek.write(cluster, file)
    assert main(["diff", "before.npz", "after.npz"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("1 move, 3 replicas given up, ")
    lines = [*map(str.strip, told.split("\n"))]
    assert {"p0[0]  n3 -> n0", "p0[2]  n1 -> nowhere", "p1[1]  n1 -> nowhere"} < {*lines}
    main(["diff", "before.npz", "after.npz", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["removed"] == len(told["given_up"]) == 3


def test_a_plan_that_is_packed_is_a_plan(files, tmp_path, capsys):
    plan = tmp_path / "plan.json"
    main(["plan", files["now"], "-o", str(plan), "-q"])
    packed = tmp_path / "plan.json.gz"
    packed.write_bytes(gzip.compress(plan.read_bytes()))
    told = []
    for one in (plan, packed):
        assert main(["check", str(one), "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1]
    packed.write_bytes(packed.read_bytes()[:99])
    assert main(["check", str(packed)]) == 2
    assert "where gzip packed it" in capsys.readouterr().err


def test_diff_lets_nodes_join(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = {"before.json": [[5, 3, 1], [0, 1, 2]], "after.json": [[3, 7, 1], [8, 0, 1]]}
    for file, lists in rows.items():
        told = [
            {"topic": "t", "partition": p, "replicas": one} for p, one in enumerate(lists)
        ]  # fmt: skip
        Path(file).write_text(json.dumps({"version": 1, "partitions": told}))
    Path("racks.txt").write_text("0 a\n1 b\n2 c\n3 a\n5 c\n")
    Path("more.txt").write_text("0 a\n1 b\n3 a\n7 c\n8 d\n")
    assert main(["diff", *rows]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("2 moves, ")
    assert "t-0[1]  5 -> 7" in told.out
    assert "note: nodes of AFTER that BEFORE has not, taken to join: 7, 8" in told.err
    words = ["before.json", "racks.txt", "--target", "after.json", "--target", "more.txt"]
    assert main(["diff", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["broken"] == {}


@pytest.mark.parametrize("file", ["moves.csv", "moves.json"])
def test_a_table_of_moves_is_no_target_and_what_is_one_is_told(files, file, capsys):
    table = str(Path(files["now"]).with_name(file))
    main(["solve", files["now"], "--level", "0.1", "-q", "--table", table])
    for words in (["plan", files["now"], "--target"], ["diff", files["now"]], ["check"]):
        capsys.readouterr()
        assert main([*words, table]) == 2
        assert "write one with -o OUT of solve" in capsys.readouterr().err


def test_brokers_that_only_racks_name_are_noted(tmp_path, capsys):
    racks = tmp_path / "racks.txt"
    racks.write_text("1 a\n2 b\n3 c\n1001 a\n1002 b\n")
    files = [str(FORMATS / name) for name in ("kafka_describe.txt", "kafka_logdirs.txt")]
    main(["check", *files, str(racks)])
    told = capsys.readouterr()
    assert "no sign of life of brokers 1002, which hold nothing: they count as dead" in told.err
    assert "--add-nodes" in told.err
    assert "not alive: 1001, 1002 · 3 replicas on them" in told.out


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["check", "--drain", "broker-22"], "did you mean 'broker-2'?"),
        (["check", "--pin", "ordrs-1"], "did you mean 'orders-1'?"),
        (["check", "--pin", "orders"], "whose partitions are meant by 'group=orders'"),
        (["check", "--pin", "group=ordrs"], "did you mean 'orders'?"),
        (["explain", "ordrs-1"], "did you mean 'orders-1'?"),
        (["check", "--drain", "broker-1,broker-2"], "; several are given one by one (got"),
        (["check", "--pin", "orders-0 orders-1"], "; several are given one by one (got"),
        (["check", "--pin", "group=x,group=orders"], "; did you mean"),
        (["check", "--drain", "c", "broker-2"], "one by one: --drain broker-2\n"),
        (["check", "--drain", "c", "--format", "npz", "broker-2"], "arguments: broker-2\n"),
    ],
)
def test_names_of_nodes_partitions_and_groups_that_were_meant(tmp_path, words, hint, capsys):
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 2, placement=[[0], [1]], group=["orders"] * 2,
        node_names=["broker-1", "broker-2", "c"], partition_names=["orders-0", "orders-1"],
    )  # fmt: skip
    ek.write(cluster, tmp_path / "c.npz")
    assert main([words[0], str(tmp_path / "c.npz"), *words[1:]]) == 2
    assert hint in capsys.readouterr().err


def test_large_amounts_are_told_without_an_exponent(tmp_path, capsys):
    cluster = ek.Cluster.from_arrays(
        capacity=[[1e12]] * 3, load=[[2e9]] * 8, placement=[[0]] * 8, bytes="d0"
    )
    wanted = cluster.placement.replaced(
        np.arange(8, dtype=np.int32) % 3, cluster.placement.leader
    )  # fmt: skip
    ek.write(cluster, tmp_path / "now.npz")
    ek.write(cluster, tmp_path / "wanted.npz", placement=wanted)
    files = [str(tmp_path / "now.npz"), "--target", str(tmp_path / "wanted.npz")]
    out = str(tmp_path / "plan.json")
    assert main(["plan", *files, "--throttle", "node-bandwidth=50000000", "-o", out]) == 0
    main(["check", out])
    told = capsys.readouterr().out
    assert "node_bandwidth 50 M" in told
    assert not re.search(r"\de\+\d", told)


def test_a_method_that_is_given_as_a_command_is_named_by_an_option(capsys):
    assert main(["balance", "nodes.csv"]) == 2
    assert "evenkeel solve --method balance" in capsys.readouterr().err
