"""Log directories of brokers as their disks: read, levelled, and written."""

import json

import pytest

import evenkeel as ek
from evenkeel.systems import registry
from evenkeel.systems.plans.targets import target_by_name

HEAD = "Topic: t\tPartitionCount: {}\tReplicationFactor: {}\tConfigs: \n"
LINE = "\tTopic: t\tPartition: {}\tLeader: {}\tReplicas: {}\tIsr: {}\n"


def described(*rows, in_sync=None):
    """A description of topic t, of which each row lists the brokers."""
    synced = in_sync or rows
    lines = [
        LINE.format(p, own[0], ",".join(map(str, own)), ",".join(map(str, insync)))
        for p, (own, insync) in enumerate(zip(rows, synced, strict=True))
    ]
    return (HEAD.format(len(rows), len(rows[0])) + "".join(lines)).encode()


def folder(path, *held, error=None, **more):
    """A log directory with partitions of t, as numbers or as pairs of a number and a size."""
    pairs = [one if isinstance(one, tuple) else (one, 100) for one in held]
    rows = [
        {"partition": f"t-{p}", "size": size, "offsetLag": 0, "isFuture": False}
        for p, size in pairs
    ]
    return {"logDir": path, "error": error, "partitions": rows, **more}


def listing(**brokers):
    """What ``kafka-log-dirs --describe`` prints of brokers ``b1``, ``b2`` and so on."""
    rows = [{"broker": int(name[1:]), "logDirs": dirs} for name, dirs in brokers.items()]
    return json.dumps({"version": 1, "brokers": rows}).encode()


def capacities(of=None, **brokers):
    rows = [{"brokerId": name[1:], "capacity": {"DISK": disk}} for name, disk in brokers.items()]
    rows += [{"brokerId": "-1", "capacity": {"DISK": of}}] if of else []
    return json.dumps({"brokerCapacities": rows}).encode()


def written(cluster, result, path):
    """The replicas and log directories of each partition in a reassignment and its rollback."""
    ek.write(cluster, path, placement=result)
    return [
        {
            f"{row['topic']}-{row['partition']}": (row["replicas"], row.get("log_dirs"))
            for row in json.loads(file.read_bytes())["partitions"]
        }
        for file in (path, path.with_suffix(".rollback.json"))
    ]


def noted(cluster):
    return " | ".join(registry.find("kafka").left_out(cluster))


ONE_SIDED = described([1], [1], [1], [1]), listing(b1=[folder("/d1", 0, 1, 2, 3), folder("/d2")])


def test_one_broker_is_levelled_by_moves_inside_and_the_way_back_names_where_they_were(tmp_path):
    cluster = ek.read(*ONE_SIDED)
    assert [*cluster.disks.names] == ["1:/d1", "1:/d2"]
    result = ek.solve(cluster, goals=ek.Goals(disks=0.1))
    assert (result.comparison.moves, result.disks.moves) == (0, 2)
    there, back = written(cluster, result, tmp_path / "p.json")
    assert len(there) == 2
    assert [*there.values()] == [([1], ["/d2"])] * 2
    assert back == {name: ([1], ["/d1"]) for name in there}


def test_a_target_names_directories_that_the_broker_has():
    def target(folder):
        row = {"topic": "t", "partition": 0, "replicas": [1], "log_dirs": [folder]}
        wanted = ek.read(json.dumps({"version": 1, "partitions": [row]}).encode())
        return target_by_name(ek.read(*ONE_SIDED), wanted).disk.tolist()

    assert target("/d2") == [1, 0, 0, 0]
    assert target("any") == [0, 0, 0, 0]
    refusal = r"target: partitions\[0\]\.disk\[0\]: is not a disk of node 1.*'1:/d3'"
    with pytest.raises(ek.InvalidInput, match=refusal):
        target("/d3")


def test_without_the_goal_nothing_moves_inside(tmp_path):
    cluster = ek.read(*ONE_SIDED)
    result = ek.solve(cluster, goals=ek.Goals(level=0.1))
    assert written(cluster, result, tmp_path / "p.json") == [{}, {}]


def test_what_comes_to_a_broker_is_sent_to_the_directory_with_the_most_room(tmp_path):
    dirs = [folder("/d1", 0, 1, 2, 3), folder("/d2", 4, 5)]
    cluster = ek.read(
        described(*[[1]] * 6), listing(b1=dirs, b2=[folder("/d1"), folder("/d2")]),
        capacities(of={"/d1": "1", "/d2": "3"}),
    )  # fmt: skip
    assert cluster.disks.capacity.tolist() == [2.0**20, 3 * 2.0**20] * 2
    result = ek.solve(cluster, goals=ek.Goals(level=0.0))
    there, back = written(cluster, result, tmp_path / "p.json")
    assert sorted(row[1][0] for row in there.values()) == ["/d1", "/d2", "/d2"]
    assert all(row[0] == [2] for row in there.values())
    assert {name: row[1][0] for name, row in back.items()} == {
        name: "/d2" if name in ("t-4", "t-5") else "/d1" for name in back
    }


def test_one_directory_everywhere_makes_no_disks_and_names_none_for_what_comes(tmp_path):
    cluster = ek.read(
        described([1], [1]), listing(b1=[folder("/d1", 0, 1)], b2=[folder("/d1")])
    )  # fmt: skip
    assert cluster.disks is None
    result = ek.solve(cluster, goals=ek.Goals(level=0.0))
    there, _ = written(cluster, result, tmp_path / "p.json")
    assert [*there.values()] == [([2], ["any"])]


def test_bytes_that_a_broker_reports_are_the_capacity_unless_a_file_has_another():
    dirs = [folder("/d1", 0, totalBytes=1000, usableBytes=300), folder("/d2", usableBytes=150)]
    files = described([1]), listing(b1=dirs)
    cluster = ek.read(*files)
    assert cluster.disks.capacity.tolist() == [400.0, 150.0]
    assert cluster.nodes.capacity[0, cluster.dimensions.index("disk")] == 550.0
    assert "capacities of log directories" not in noted(cluster)
    given = ek.read(*files, capacities(b1={"/d1": "1", "/d2": "2"}))
    assert given.disks.capacity.tolist() == [2.0**20, 2 * 2.0**20]
    unknown = ek.read(described([1]), listing(b1=[folder("/d1", 0, usableBytes=-1), folder("/d2")]))
    assert "no capacities of log directories on brokers 1" in noted(unknown)


def test_topics_that_no_file_describes_take_room_in_their_directory():
    held = folder("/d1", 0, usableBytes=300)
    held["partitions"].append({"partition": "other-0", "size": 70})
    cluster = ek.read(described([1]), listing(b1=[held, folder("/d2", usableBytes=400)]))
    assert cluster.disks.capacity.tolist() == [400.0, 400.0]
    assert cluster.nodes.capacity[0, cluster.dimensions.index("disk")] == 800.0


def test_a_cordoned_directory_keeps_what_it_holds_and_gets_nothing():
    dirs = [folder("/d1", 0, isCordoned=True), folder("/d2", 1, 2, 3)]
    cluster = ek.read(described(*[[1]] * 4), listing(b1=dirs))
    result = ek.solve(cluster, goals=ek.Goals(disks=0.0))
    assert (result.disks.moves, result.status) == (0, "missed")
    assert "a cordon on /d1 on broker 1" in noted(cluster)


@pytest.mark.parametrize(("folders", "is_noted"), [(["/d1", "/d2"], True), (["any"] * 2, False)])
def test_directories_of_an_assignment_are_no_disks_without_sizes(folders, is_noted):
    row = {"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": folders}
    cluster = ek.read(json.dumps({"version": 1, "partitions": [row]}).encode(), format="kafka")
    assert cluster.disks is None
    assert ("not taken for disks" in noted(cluster)) == is_noted


def test_a_replica_that_is_being_moved_counts_where_it_goes():
    dirs = [folder("/d1", 0, 1), folder("/d2")]
    dirs[1]["partitions"].append({"partition": "t-1", "size": 7, "isFuture": True})
    cluster = ek.read(described([1], [1]), listing(b1=dirs))
    result = ek.solve(cluster, goals=ek.Goals(disks=0.0))
    assert result.disks.moves == 0
    assert result.disks.loads.tolist() == [100.0, 100.0]
    assert "under way of 1 replica" in noted(cluster)


def test_a_failed_directory_takes_nothing_and_no_directory_is_named_on_a_dead_broker(tmp_path):
    failed = "org.apache.kafka.common.errors.KafkaStorageException"
    dirs = [folder("/d1", 0), folder("/d2", error=failed)]
    cluster = ek.read(
        described([1, 2], [1, 2], in_sync=[[1, 2], [2]]),
        listing(b1=dirs, b2=[folder("/d1", 0, 1), folder("/d2")],
                b3=[folder("/d1"), folder("/d2")]),
    )  # fmt: skip
    assert cluster.disks.state.tolist() == [0, ek.DiskState.FAILED, 0, 0, 0, 0]
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    there, _ = written(cluster, result, tmp_path / "p.json")
    assert {*there["t-1"][0]} == {2, 3}
    assert "/d2" not in [there["t-1"][1][there["t-1"][0].index(2)]]
    assert not result.disks.broken


def test_a_broker_that_may_not_be_asked_has_no_disks():
    denied = "org.apache.kafka.common.errors.ClusterAuthorizationException"
    cluster = ek.read(
        described([1, 2]),
        listing(b1=[folder("/d1", 0), folder("/d2")], b2=[folder("/d1", error=denied)]),
    )  # fmt: skip
    assert [*cluster.disks.names] == ["1:/d1", "1:/d2"]


def test_a_topic_that_is_newer_than_the_listing_stays_in_a_directory_that_is_not_known(tmp_path):
    newer = described([1, 2]).replace(b"Topic: t", b"Topic: new")
    cluster = ek.read(
        described([1], [1], [1], [1]), newer,
        listing(b1=[folder("/d1", 0, 1, 2, 3), folder("/d2")],
                b2=[folder("/d1"), folder("/d2")], b3=[folder("/d1"), folder("/d2")]),
    )  # fmt: skip
    assert main_check(cluster, tmp_path) == 0
    result = ek.solve(cluster.drain("2"), goals=ek.Goals(level=None))
    there, _ = written(cluster, result, tmp_path / "p.json")
    replicas, dirs = there["new-0"]
    assert {*replicas} == {1, 3}
    assert dirs[replicas.index(1)] == "any"
    assert dirs[replicas.index(3)] in ("/d1", "/d2")


def main_check(cluster, tmp_path):
    """The exit code of a check of the cluster."""
    from evenkeel.cli import main

    file = str(tmp_path / "c.npz")
    ek.write(cluster, file, overwrite=True)
    return main(["check", file])


def test_a_size_for_a_directory_that_no_broker_lists_is_noted():
    files = described([1]), listing(b1=[folder("/d1", 0), folder("/d2")])
    cluster = ek.read(*files, capacities(b1={"/d1": "1", "/d9": "2"}))
    assert "no listing of /d9 on broker 1" in noted(cluster)


@pytest.mark.parametrize("disk", [{"/d1": "-3"}, {"/d1": "x"}])
def test_a_capacity_that_is_no_number_is_refused_with_its_place(disk):
    with pytest.raises(ek.InvalidInput) as error:
        ek.read(*ONE_SIDED, capacities(b1=disk))
    assert "capacity.DISK./d1" in error.value.faults[0].path


def test_a_directory_is_emptied_within_its_broker_as_far_as_others_have_room(tmp_path, capsys):
    """Source: the review of Strimzi proposal 106: the others have 1 GiB each, a partition 1.5."""
    from evenkeel.cli import main

    dirs = [folder("/d1", (0, 90)), folder("/d2", (1, 90)), folder("/d3", (2, 15), (3, 5))]
    files = {
        "described.txt": described(*[[1]] * 4),
        "logdirs.json": listing(b1=dirs, b2=[folder("/d1")]),
        "brokers.csv": b"broker,disk\n2,100\n",
    }
    reported = json.loads(files["logdirs.json"])
    for one in (*reported["brokers"][0]["logDirs"], *reported["brokers"][1]["logDirs"]):
        one["usableBytes"] = 100 - sum(held["size"] for held in one["partitions"])
    files["logdirs.json"] = json.dumps(reported).encode()
    paths = []
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        paths.append(str(tmp_path / name))
    out = tmp_path / "p.json"
    words = ["--level", "none", "--leaders", "none", "--empty-disk", "1:/d3", "-o", str(out)]
    assert main(["solve", *paths, *words]) == 0
    there = {row["partition"]: row for row in json.loads(out.read_bytes())["partitions"]}
    assert there.keys() == {2, 3}
    assert there[2]["replicas"] == [2]
    assert (there[3]["replicas"], there[3]["log_dirs"][0][:2]) == ([1], "/d")
    assert there[3]["log_dirs"] != ["/d3"]
    capsys.readouterr()
    assert main(["solve", *paths, *words[:-3], "9:/d1"]) == 2
    assert "is no disk" in capsys.readouterr().err
