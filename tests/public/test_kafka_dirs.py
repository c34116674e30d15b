"""Situations of Kafka clusters with several log directories, tried as users reported them."""

import json
from collections import Counter

import pytest

import evenkeel as ek

FILES = ("described.txt", "logdirs.txt")
INSIDE = ("--level", "none", "--leaders", "none", "--disks", "10%", "-o", "p.json")


def rows(case, name="p.json"):
    """The replicas and directories of a reassignment, by partition."""
    written = json.loads(case.written(name))["partitions"]
    return {row["partition"]: (row["replicas"], row["log_dirs"]) for row in written}


def before(case, *files):
    return ek.read([case.path(name) for name in (*FILES, *files)])


def test_two_disks_of_five_brokers_are_brought_within_ten_percent(public):
    case = public("kafka/two-disks-of-five-brokers")
    answer = case.run("solve", *FILES, "capacity.json", *INSIDE)
    assert answer.code == 0, answer.text
    assert "between disks 15 inside nodes, at least 15" in answer.text
    there, cluster = rows(case), before(case, "capacity.json")
    assert Counter(own[0] for own, _ in there.values()) == dict.fromkeys(range(5), 3)
    assert {folder for _, dirs in there.values() for folder in dirs} == {
        "/var/lib/kafka/data-0/kafka-log"
    }
    assert rows(case, "p.rollback.json").keys() == there.keys()
    loads = ek.solve(cluster, goals=ek.Goals(level=None, disks=0.1)).disks.loads
    assert (loads / cluster.disks.capacity).max() <= 1.1 * 0.48


def test_a_capacity_for_a_disk_that_is_gone_ends_nothing(public):
    case = public("kafka/disk-left-out-of-log-dirs")
    assert case.run("solve", *FILES, "capacity.json", *INSIDE).code == 0
    there = rows(case)
    assert there and all(dirs == ["/disk3"] for _, dirs in there.values())
    assert not any(2 in own for own, _ in there.values())
    disk = before(case, "capacity.json")
    assert disk.nodes.capacity[:, disk.dimensions.index("disk")].tolist() == [
        60 * 2.0**30, 40 * 2.0**30, 60 * 2.0**30,
    ]  # fmt: skip


def test_brokers_with_one_directory_stand_beside_one_with_two(public):
    case = public("kafka/only-some-brokers-with-jbod")
    assert case.run("solve", *FILES, *INSIDE).code == 0
    assert [*rows(case).values()] == [([2], ["/d2"])] * 3


def test_brokers_and_their_disks_are_levelled_in_one_run(public):
    case = public("kafka/skew-across-and-within-brokers")
    goals = ("--level", "10%", "--leaders", "none", "--disks", "10%")
    assert case.run("solve", *FILES, *goals, "-o", "p.json").code == 0
    cluster = before(case)
    result = ek.solve(cluster, goals=ek.Goals(level=0.1, disks=0.1))
    assert result.status == "optimal"
    assert result.disks.moves > 0
    held = result.disks.loads.reshape(5, 4)
    assert (held.max(1) <= 1.1 * held.mean(1)).all()
    assert (held.sum(1) <= 1.1 * held.sum(1).mean()).all()
    for own, dirs in rows(case).values():
        assert len(own) == len(dirs) and "any" not in dirs


def test_what_comes_goes_where_there_is_room_and_not_where_partitions_are_few(public):
    case = public("kafka/fewest-partitions-are-not-the-most-room")
    goals = ("--level", "25%", "--leaders", "none")
    assert case.run("solve", *FILES, *goals, "-o", "p.json").code == 0
    assert [*rows(case).values()] == [([2], ["/d2"])]


@pytest.mark.parametrize("name", ["two-disks-of-five-brokers", "disk-left-out-of-log-dirs"])
def test_check_says_which_disks_are_above_their_share(public, name):
    case = public(f"kafka/{name}")
    answer = case.run("check", *FILES, "capacity.json", "--disks", "10%", "--level", "none")
    assert answer.code == 1
    assert "above the share of the node by more than 10%" in answer.text
    assert "inside nodes" in answer.text


@pytest.mark.parametrize("given", ["to.npz", "p.json"])
def test_plans_that_only_move_inside_brokers_have_their_folder(public, given):
    """Of a target that names log directories, too: a reassignment, or a cluster."""
    case = public("kafka/two-disks-of-five-brokers")
    files = (*FILES, "capacity.json")
    assert case.run("solve", *files, *INSIDE[:-1], given).code == 0
    for goals in (INSIDE[:-2], ("--target", str(case.path(given)))):
        answer = case.run("plan", *files, *goals, "--force", "-o", "move")
        assert answer.code == 0 and "Inside nodes 15 moves" in answer.text
        assert "Inside nodes 15 moves" in case.written("move/README.md")
        assert [*case.path("move").glob("waves/inside-*.json")]


def test_two_volumes_of_a_broker_are_emptied_where_partitions_are_empty(public):
    case = public("kafka/volumes-of-a-broker-removed")
    left, taken = (f"/var/lib/kafka/data-{n}/kafka-log0" for n in (1, 0))
    other = left.replace("-1", "-2")
    words = ("--empty-disk", f"0:{left}", "--empty-disk", f"0:{other}", "-o", "p.json")
    assert case.run("solve", "described.txt", "logdirs.json", *words).code == 0
    found = rows(case)
    assert sorted(found) == [1, 2, 4, 5]
    for replicas, dirs in found.values():
        own = dict(zip(replicas, dirs, strict=True))
        assert own == dict.fromkeys(range(1, 6), "any") | {0: taken}
