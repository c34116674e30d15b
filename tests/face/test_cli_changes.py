"""Changes that the command line makes to a cluster before it solves."""

import json

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.cli import main


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Twelve partitions of three topics, two replicas each, on six nodes in three racks."""
    monkeypatch.chdir(tmp_path)
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0, 90.0]] * 6, load=[[1.0, 1.0]] * 12, dimensions=["cpu", "disk"],
        placement=[[0, 1], [1, 0], [2, 3]] * 4, domains={"rack": [*"aabbcc"]},
        attributes={"nodepool": ["old", "new"] * 3}, tags={"ssd": [False, False, True] * 2},
        node_names=["a1", "a2", "b1", "b2", "c1", "c2"],
        group=["orders"] * 4 + ["orders-dlq"] * 4 + ["audit"] * 4,
    )  # fmt: skip
    ek.write(cluster, "c.npz")
    return "c.npz"


def solved(file, *words, codes=(0, 3)):
    assert main(["solve", file, "-o", "d.npz", "-q", "--force", *words]) in codes
    return ek.read("d.npz")


def held(cluster):
    counts = np.bincount(cluster.placement.node, minlength=len(cluster.nodes))
    return dict(zip(cluster.nodes.names, counts.tolist(), strict=True))


@pytest.mark.parametrize("word", ["a1", "a?", "rack=a", "nodepool=old"])
@pytest.mark.parametrize("option", ["--no-lead", "--demote"])
def test_a_demoted_node_keeps_its_replicas_and_leads_nothing(file, option, word):
    before = ek.read(file)
    found = solved(file, option, word, "--level", "none", "--leaders", "500%")
    lead = np.array(found.nodes.names)[found.placement.leader_node]
    whole_rack = word in ("a?", "rack=a")  # no other replica of what is there can lead
    assert ("a1" in lead) == whole_rack
    assert held(found) == held(before)


@pytest.mark.parametrize(
    "words",
    [
        ["--require", "{}:rack!=a"], ["--replicas", "{}=1"], ["--groups", "{}=20%"],
        ["--group-leaders", "aud*=20%,{}=none"], ["--min-leaders", "{}=1"],
    ],
)  # fmt: skip
def test_a_group_is_named_with_or_without_its_kind(file, words):
    plain, kind = (
        solved(file, *(word.format(name) for word in words), "--level", "none").placement
        for name in ("orders", "topic=orders")
    )
    assert (
        plain.node.tolist() == kind.node.tolist() and plain.leader.tolist() == kind.leader.tolist()
    )


def test_a_dead_replica_is_replaced_where_the_only_live_one_may_not_lead(tmp_path, capsys):
    rows = (
        "Partition: 0\tLeader: 2\tReplicas: 1,2\tIsr: 2",
        "Partition: 1\tLeader: 4\tReplicas: 4,5\tIsr: 4,5",
    )
    head = "Topic: orders\tTopicId: x\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: \n"
    text = head + "".join(f"\tTopic: orders\t{row}\n" for row in rows)
    (tmp_path / "described.txt").write_text(text)
    file, out = str(tmp_path / "described.txt"), tmp_path / "out.json"
    assert main(["solve", file, "--level", "none", "--no-lead", "2", "-o", str(out)]) == 0
    assert sorted(json.loads(out.read_text())["partitions"][0]["replicas"])[0] == 2
    assert "stay and are led" not in capsys.readouterr().err


def test_nothing_moves_to_lead_where_the_others_lag(tmp_path, capsys):
    rows = ("0\tLeader: 3\tReplicas: 3,4\tIsr: 3", "1\tLeader: 3\tReplicas: 3,2\tIsr: 3,2",
            "2\tLeader: 4\tReplicas: 4,2\tIsr: 4,2")  # fmt: skip
    text = "Topic: a\tPartitionCount: 3\tReplicationFactor: 2\tConfigs: \n"
    (tmp_path / "described.txt").write_text(
        text + "".join(f"\tTopic: a\tPartition: {row}\n" for row in rows)
    )
    out = tmp_path / "out.json"
    words = ["--level", "none", "--no-lead", "3", "-o", str(out)]
    assert main(["solve", str(tmp_path / "described.txt"), *words]) == 3  # one still leads
    lists = json.loads(out.read_text())["partitions"]
    assert lists == [{"topic": "a", "partition": 1, "replicas": [2, 3]}]
    assert "no replica elsewhere can lead 1 partition (a-0)" in capsys.readouterr().err


def test_a_sole_replica_on_a_demoted_node_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ek.write(
        ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0], [1]]),
        "c.npz",
    )
    assert main(["solve", "c.npz", "--demote", "n0", "-o", "out.npz"]) == 3
    assert "no replica elsewhere can lead 1 partition (p0)" in capsys.readouterr().err
    assert ek.read("out.npz").placement.node.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("word", "count"),
    [("group=orders", 4), ("topic=orders", 4), ("index=orders", 4), ("topic=orders*", 8),
     ("p1?", 2),
     ("*", 12), ("p0", 1)],
)  # fmt: skip
def test_what_is_pinned_by_topic_index_and_pattern(file, word, count):
    cluster = ek.read(file)
    pinned = cluster.pin(word)
    assert int(((pinned.placement.flags & ek.Flag.PINNED) != 0).sum()) == 2 * count
    solved(file, "--pin", word)


def test_a_name_with_a_star_stands_for_itself():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0], [1]], partition_names=["a*", "ab"]
    )
    assert int(((cluster.pin("a*").placement.flags & ek.Flag.PINNED) != 0).sum()) == 1
    with pytest.raises(ek.InvalidInput):
        cluster.pin("x*")


def test_replicas_spread_over_racks(file):
    found = solved(file, "--spread", "rack=1")
    rack = found.topology.domain[0][found.placement.nodes]
    assert (rack[:, 0] != rack[:, 1]).all()
    assert main(["solve", file, "-q", "--spread", "row=1"]) == 2


def test_some_partitions_need_certain_nodes(file):
    found = solved(file, "--require", "topic=audit:+ssd", "--level", "none")
    assert {found.nodes.names[n] for n in found.placement.nodes[8:].ravel()} == {"b1", "c2"}
    every = solved(file, "--require", "rack!=a", "--level", "none")
    assert held(every)["a1"] == held(every)["a2"] == 0
    both = solved(file, "--require", "topic=audit:nodepool=old", "--spread", "rack=1")
    assert {both.nodes.names[n] for n in both.placement.nodes[8:].ravel()} <= {"a1", "b1", "c1"}
    assert main(["solve", file, "-q", "--require", "topic=audit:+nvme"]) == 2


def test_loads_to_come(file, capsys):
    assert main(["solve", file, "--grow", "1.4", "-q"]) == 0
    assert main(["solve", file, "--grow", "cpu=+200%", "-q"]) == 4
    assert "no placement" in capsys.readouterr().err
    assert main(["solve", file, "--grow", "ram=2", "-q"]) == 2


def test_partitions_are_explained_beside_the_result(file, capsys):
    assert main(["solve", file, "--explain", "p3", "--explain", "5"]) == 0
    text = capsys.readouterr().out
    assert "p3" in text
    assert "p5" in text
    assert main(["solve", file, "--explain", "nope", "-q"]) == 2


def test_groups_that_lie_least_evenly_come_first(file, capsys):
    assert main(["check", file, "--by-group", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["groups"]
    assert [one["replicas"] for one in rows] == [8, 8, 8]
    assert {one["fullest"] for one in rows} <= {"a1", "a2", "b1", "b2"}
    assert {one["emptiest"] for one in rows} <= {"c1", "c2"} | {"b1", "b2"}
    over = [max(one["most"], one["most_leaders"]) for one in rows]
    assert over == sorted(over, reverse=True)
    assert main(["check", file, "--by-group"]) == 0
    assert "orders-dlq" in capsys.readouterr().out
    assert main(["solve", file, "--by-group"]) == 0
    assert "audit" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "named"), [
    (("--level", "5%", "--level", "none"), "--level: is given twice, '5%' and 'none'"),
    (("--method", "exact", "--method", "balance"), "--method: is given twice"),
    (("--seed", "1", "--seed=2", "--moves", "3", "--moves", "4"), "--moves: is given twice"),
    (("--replicas", "a=3", "--replicas", "a=2"), "--replicas: is given twice for a"),
    (("--spread", "rack=1", "--spread", "rack=2"), "--spread: is given twice for rack"),
    (("--domain-in", "rack=1", "--domain-in", "rack=2"), "--domain-in: is given twice for rack"),
    (("--move-cost", "a=1", "--move-cost", "a=2"), "--move-cost: is given twice for a"),
])  # fmt: skip
def test_of_two_values_none_is_dropped_in_silence(file, capsys, words, named):
    assert main(["solve", str(file), *words]) == 2
    assert named in capsys.readouterr().err


def test_the_same_value_twice_is_one(file):
    assert main(["solve", str(file), "--level", "5%", "--level", "5%"]) == 0
