"""Kafka's tools print it, we read it; we write it, Kafka's tools take it."""

import json
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.cli import main
from evenkeel.model.errors import InvalidInput
from evenkeel.model.placement import Flag
from evenkeel.systems import registry
from tests.support import places
from tests.support.clusters import assert_same

DATA = places.DATA / "formats"
RACKS = ["kafka_racks.json", "kafka_racks.txt", "kafka_racks.properties"]


def read(*names, **options):
    return registry.read([DATA / name for name in names], format="kafka", **options)


def faults_of(*sources, **options):
    """The faults of what cannot be read, as (path, value)."""
    with pytest.raises(InvalidInput) as caught:
        registry.read([*sources], format="kafka", **options)
    return [(fault.path, fault.value) for fault in caught.value.faults]


def canonical(text):
    """A reassignment as a set; an absent log directory is any."""
    document = json.loads(text)
    assert document["version"] == 1
    return sorted(
        (row["topic"], row["partition"], row["replicas"],
         row.get("log_dirs", ["any"] * len(row["replicas"])))
        for row in document["partitions"]
    )  # fmt: skip


class TestDescription:
    def test_brokers_topics_and_replicas(self):
        cluster = read("kafka_describe.txt")
        assert list(cluster.nodes.names) == ["1", "2", "3", "1001"]
        assert list(cluster.partitions.names) == [
            "clicks-eu-0", "clicks-eu-1", "orders-0", "orders-1", "orders-2",
        ]  # fmt: skip
        assert list(cluster.partitions.group_names) == ["clicks-eu", "orders"]
        assert cluster.partitions.group.tolist() == [0, 0, 1, 1, 1]
        assert cluster.placement.node.tolist() == [1, 0, 3, 0, 1, 2, 1, 2, 3, 2, 3, 0]
        assert cluster.partitions.replicas.tolist() == [2, 1, 3, 3, 3]

    def test_the_leader_need_not_be_preferred_nor_be(self):
        cluster = read("kafka_describe.txt")
        assert cluster.placement.leader.tolist() == [0, -1, 0, 1, 0]

    def test_a_broker_that_is_never_in_sync_is_offline(self):
        assert read("kafka_describe.txt").nodes.alive.tolist() == [True, True, True, False]
        told = read("kafka_describe.txt", offline=[2])
        assert told.nodes.alive.tolist() == [True, False, True, True]

    @pytest.mark.parametrize("more", [[], ["kafka_logdirs.txt"]])
    def test_the_last_in_sync_replica_of_a_partition_without_leader_is_no_sign_of_life(self, more):
        text = (DATA / "kafka_describe.txt").read_text()
        text = re.sub(r"(Leader: none.*Isr: )", r"\g<1>1001", text)
        assert "Isr: 1001" in text
        files = [text.encode(), *(DATA / name for name in more)]
        cluster = registry.read(files, format="kafka")
        assert cluster.nodes.alive.tolist() == [True, True, True, False]

    def test_a_broker_that_reports_its_log_dirs_is_up_though_it_is_in_sync_with_nobody(self):
        logs = json.loads((DATA / "kafka_logdirs.txt").read_text().splitlines()[2])
        held = [{"partition": name, "size": 9} for name in ("orders-1", "orders-2", "clicks-eu-1")]
        logs["brokers"] += [
            {"broker": 1001, "logDirs": [{"logDir": "/data/d1", "partitions": held}]},
            {"broker": 4, "logDirs": []},
        ]
        files = [DATA / "kafka_describe.txt", json.dumps(logs).encode()]
        named = registry.read(files, format="kafka").nodes
        assert dict(zip(named.names, named.alive.tolist(), strict=True)) == dict.fromkeys(
            ["1", "2", "3", "4", "1001"], True
        )

    def test_who_only_has_a_rack_is_down_unless_something_shows_it(self):
        files = ["kafka_describe.txt", "kafka_racks.json"]
        assert read(*files).nodes.alive.tolist() == [True, True, True, False, False]
        table = registry.read(
            [*(DATA / name for name in files), b"broker,disk\n1,1TB\n2,1TB\n3,1TB\n4,1TB\n1001,1TB"]
        )
        assert table.nodes.alive.tolist() == [True, True, True, True, False]
        files.append("kafka_logdirs.txt")
        assert read(*files).nodes.alive.tolist() == [True, True, True, False, False]
        assert read(*files, offline=[1001]).nodes.alive.tolist() == [True] * 4 + [False]

    def test_min_in_sync_and_in_sync(self):
        cluster = read("kafka_describe.txt")
        assert cluster.partitions.min_active.tolist() == [0, 0, 2, 2, 2]
        in_sync = (cluster.placement.flags & Flag.CAUGHT_UP) > 0
        assert in_sync.tolist() == [1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 0, 1]

    def test_an_old_release_in_the_middle_of_a_reassignment(self):
        cluster = read("kafka_describe_old.txt")
        assert cluster.partitions.replicas.tolist() == [2, 2]
        assert cluster.placement.leader.tolist() == [0, -1]
        assert cluster.placement.nodes.tolist() == [[0, 2], [1, 0]]
        moving = cluster.placement.flags & (Flag.INCOMING | Flag.PINNED)
        assert moving.tolist()[:2] == [Flag.PINNED, Flag.INCOMING | Flag.PINNED]

    def test_spaces_for_tabs_are_read(self):
        text = (DATA / "kafka_describe.txt").read_text().replace("\t", "    ")
        assert_same(registry.read(text.encode(), format="kafka"), read("kafka_describe.txt"))

    def test_a_topic_that_ends_early_is_named_with_its_line(self):
        lines = (DATA / "kafka_describe.txt").read_text().splitlines(keepends=True)
        assert faults_of("".join(lines[:3]).encode()) == [("<bytes>:1", "orders")]
        path, value = faults_of("".join([*lines[:3], lines[3][:40]]).encode())[0]
        assert path == "<bytes>:4" and value.startswith("Topic: orders")

    def test_everything_wrong_is_listed_with_its_line(self):
        text = (
            "Topic: a\tPartitionCount: 3\tReplicationFactor: 2\tConfigs: min.insync.replicas=x\n"
            "\tTopic: a\tPartition: 0\tLeader: 9\tReplicas: 1,2\tIsr: 1,3\n"
            "\tTopic: a\tPartition: 1\tLeader: 1\tReplicas: 1,2\tIsr: 1\n"
            "\tTopic: a\tPartition: 2\tLeader: 1\tReplicas: 1,one\tIsr: 1\n"
        )
        assert faults_of(text.encode()) == [
            ("<bytes>:1", "x"),
            ("<bytes>:4", "one"),
            ("<bytes>:2", [3]),
            ("<bytes>:2", 9),
        ]

    def test_a_line_that_cannot_be_read_contradicts_no_other(self):
        text = (
            "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1\n"
            "\tTopic: a\tPartition: x\tLeader: 1\tReplicas: 1,q\tIsr: 1,3\n"
        )
        assert faults_of(text.encode()) == [("<bytes>:2", "x"), ("<bytes>:2", "q")]


class TestSizes:
    def test_the_largest_replica_tells_the_size(self):
        cluster = read("kafka_describe.txt", "kafka_logdirs.txt")
        assert cluster.dimensions == ("replicas", "disk")
        assert cluster.bytes_dimension == 1
        assert cluster.partitions.load.voter[:, 1].tolist() == [50, 0, 1000, 2000, 300]
        assert cluster.partitions.load.voter[:, 0].tolist() == [1] * 5

    def test_without_limits_all_nodes_could_hold_everything(self):
        cluster = read("kafka_describe.txt", "kafka_logdirs.txt")
        assert cluster.nodes.capacity.tolist() == [[12.0, 100.0 + 9 * 1100.0]] * 4

    def test_capacities(self):
        cluster = read("kafka_describe.txt", "kafka_logdirs.txt", "kafka_capacity.json")
        assert cluster.dimensions == ("replicas", "disk", "cpu", "network_in", "network_out")
        mb, kb = 2.0**20, 1024.0
        default = [12.0, 100000 * mb, 100.0, 10000 * kb, 10000 * kb]
        assert cluster.nodes.capacity[0].tolist() == [12.0, 100000.5 * mb, 200.0, *default[3:]]
        assert cluster.nodes.capacity[1:].tolist() == [default] * 3

    def test_dangling_references_are_named(self, tmp_path):
        capacity = tmp_path / "capacity.json"
        capacity.write_text(
            '{"brokerCapacities":[{"brokerId":"77","capacity":{"DISK":"-5"}},'
            '{"brokerId":"x","capacity":{}},{"brokerId":"1","capacity":{"DISK":"1"}}]}'
        )
        logs = tmp_path / "logs.json"
        document = json.loads((DATA / "kafka_logdirs.txt").read_text().splitlines()[2])
        held = document["brokers"][0]["logDirs"][0]["partitions"]
        held[0]["partition"] = "order-0"
        held[1]["partition"] = "nonsense"
        del document["brokers"][1]["logDirs"][0]["partitions"][0]
        del document["brokers"][2]["logDirs"][0]["partitions"][0]
        logs.write_text(json.dumps(document))
        found = faults_of(DATA / "kafka_describe.txt", logs, capacity)
        at = f"{logs}: brokers[0].logDirs[0].partitions"
        assert found == [
            (f"{at}[1].partition", "nonsense"),
            (f"{capacity}: brokerCapacities[0].capacity.DISK", "-5"),
            (f"{capacity}: brokerCapacities[1].brokerId", "x"),
            (f"{DATA / 'kafka_describe.txt'}:2", "orders-0"),
        ]

    @pytest.mark.parametrize("strange", [False, True])
    def test_log_dirs_are_read_alike_at_once_and_one_by_one(self, strange, tmp_path):
        document = json.loads((DATA / "kafka_logdirs.txt").read_text().splitlines()[2])
        for folder in (one for broker in document["brokers"] for one in broker["logDirs"]):
            folder["partitions"] = [one for one in folder["partitions"] if not one["isFuture"]]
        if strange:
            document["brokers"][1]["logDirs"][0]["partitions"][0]["partition"] = "orders0"
            document["brokers"][2]["logDirs"][0]["partitions"][0]["size"] = -1
        found = []
        aside = [
            {"partition": f"orders-0.{'0a' * 16}-future", "size": 7},
            {"partition": f"orders-0.{'0a' * 16}-delete", "size": 7},
        ]
        for put_aside in ([], aside):
            held = document["brokers"][-1]["logDirs"][-1]["partitions"]
            held += put_aside
            file = tmp_path / "logs.json"
            file.write_text(json.dumps(document))
            if strange:
                found.append(faults_of(DATA / "kafka_describe.txt", file))
            else:
                cluster = registry.read([DATA / "kafka_describe.txt", file])
                found.append((cluster.partitions.load.voter.tolist(), cluster.native))
        assert found[0] == found[1]
        assert len(found[0]) == 2

    def test_of_a_replica_that_is_listed_twice_the_last_counts(self, tmp_path):
        document = json.loads((DATA / "kafka_logdirs.txt").read_text().splitlines()[2])
        folders = document["brokers"][0]["logDirs"]
        for folder in folders:
            folder["partitions"] = [one for one in folder["partitions"] if not one["isFuture"]]
        again = dict(folders[0]["partitions"][0], size=10**12)
        folders.append({"logDir": "/elsewhere", "error": None, "partitions": [again]})
        (tmp_path / "logs.json").write_text(json.dumps(document))
        cluster = registry.read([DATA / "kafka_describe.txt", tmp_path / "logs.json"])
        p = cluster.partitions.names.index(again["partition"])
        assert cluster.partitions.load.voter[p, 1] == 1e12
        broker = str(document["brokers"][0]["broker"])
        assert cluster.native["log_dirs"][again["partition"]][broker] == "/elsewhere"

    def test_a_disk_that_failed_may_hide_replicas(self, tmp_path):
        document = json.loads((DATA / "kafka_logdirs.txt").read_text().splitlines()[2])
        for broker in document["brokers"]:
            for folder in broker["logDirs"]:
                folder["partitions"] = []
                folder["error"] = "KAFKA_STORAGE_ERROR"
        logs = tmp_path / "logs.json"
        logs.write_text(json.dumps(document))
        cluster = registry.read([DATA / "kafka_describe.txt", logs])
        assert cluster.partitions.load.voter.sum() == 5


class TestRacks:
    @pytest.mark.parametrize("racks", RACKS)
    def test_racks_are_a_level_and_spare_brokers_are_empty(self, racks):
        cluster = read("kafka_describe.txt", racks)
        assert list(cluster.nodes.names) == ["1", "2", "3", "4", "1001"]
        names = [cluster.topology.domain_name(0, d) for d in cluster.topology.domain[0]]
        assert names == ["rack-a", "rack-b", "rack-c", "rack-a", "rack-b"]
        assert cluster.nodes.alive.tolist() == [True, True, True, False, False]
        assert not (cluster.placement.node == 3).any()

    def test_replicas_are_spread_as_far_as_racks_go(self):
        assignment, racks = DATA / "kafka_reassignment.json", DATA / "kafka_racks.json"
        cluster = registry.read([assignment, racks, b"7 rack-c\n"], format="kafka")
        limits = [cluster.rules[r].spread for r in cluster.partitions.rule]
        assert limits == [{"rack": 1}] * 4
        two = registry.read([assignment, b"1 a\n2 b\n3 b\n7 a\n1001 a\n"], format="kafka")
        limits = [two.rules[r].spread["rack"] for r in two.partitions.rule]
        assert dict(zip(two.partitions.names, limits, strict=True)) == {
            "clicks-eu-9": 1, "clicks-eu-10": 1, "orders-0": 2, "orders-1": 2,
        }  # fmt: skip

    @pytest.mark.parametrize("options", [{}, {"format": "kafka"}])
    @pytest.mark.parametrize(
        "data",
        [
            b'{"1": {"rack": "a"}, "2": {"rack": "b"}}',
            b'[{"number": 1, "rack": "a"}]',
            b'{"racks": {"a": [1, 2]}}',
            b'{"broker-1": "rack-a"}',
        ],
    )
    def test_racks_in_an_unknown_form_are_told_the_right_one(self, data, options):
        with pytest.raises(InvalidInput) as caught:
            registry.read(DATA / "kafka_describe.txt", data, **options)
        (fault,) = caught.value.faults
        assert 'racks are read as {"1": "rack-a"}' in fault.message

    def test_another_spread_may_be_asked_for(self):
        cluster = read("kafka_describe.txt", "kafka_racks.json", spread={"rack": (2, "soft")})
        assert cluster.rules[0].spread == {"rack": (2, "soft")}

    @pytest.mark.parametrize(
        ("racks", "strays"),
        [
            (b'{"1": "a", "2": "b"}', [3]),
            (b'{"1": "a", "2": null, "3": ""}', [2, 3]),
            (b"{}", [1, 2, 3]),
        ],
    )
    def test_brokers_that_are_up_need_a_rack_where_racks_are_kept_apart(self, racks, strays):
        # broker 1001 is down: what it holds goes elsewhere, whatever its rack was
        files = [DATA / "kafka_describe.txt", racks]
        assert faults_of(*files) == [("<bytes>: brokers", strays)]
        assert faults_of(*files, spread={"rack": 2}) == [("<bytes>: brokers", strays)]
        cluster = registry.read(files, format="kafka", spread={})
        assert not cluster.rules[0].spread and cluster.topology.tiers == ("rack",)

    def test_what_is_wrong_with_racks(self):
        assert faults_of(
            DATA / "kafka_reassignment.json",
            b"1 rack-a\nrack-b\n1 rack-c\n",
            b"broker.id=5\nbroker.id=6\nbroker.rack=r\nbroker.rack=s\n",
        ) == [
            ("<bytes>:2", "rack-b"),
            ("<bytes>:3", "rack-c"),
            ("<bytes>:1", 5),
            ("<bytes>:4", "s"),
        ]


class TestReassignment:
    def test_partitions_are_sorted_by_number_and_the_first_replica_leads(self):
        cluster = read("kafka_reassignment.json")
        names = ["clicks-eu-9", "clicks-eu-10", "orders-0", "orders-1"]
        assert list(cluster.partitions.names) == names
        assert cluster.placement.leader.tolist() == [0, 0, 0, 0]
        assert cluster.nodes.alive.all()

    def test_generate_prints_what_is_before_what_is_proposed(self):
        cluster = read("kafka_generate.txt")
        assert list(cluster.nodes.names) == ["1", "2", "3"]
        assert cluster.placement.nodes.tolist() == [[0, 1], [1, 0]]

    def test_two_files_that_agree_complete_each_other(self, tmp_path):
        describe = (DATA / "kafka_describe.txt").read_text()
        path = tmp_path / "now.json"
        registry.write(read("kafka_describe.txt"), path, "kafka")
        both = registry.read([path, describe.encode()], format="kafka")
        assert_same(both, read("kafka_describe.txt"))
        path.write_text(path.read_text().replace("[1,2,3]", "[2,1,3]"))
        assert faults_of(path, describe.encode()) == [("<bytes>:2", [1, 2, 3])]

    def test_everything_wrong_is_listed_with_its_json_path(self):
        rows = [
            {"topic": "a", "partition": 0, "replicas": [1, 1]},
            {"topic": "a", "partition": 1, "replicas": [1, -2], "log_dirs": ["any"]},
            {"topic": "a", "partition": 1, "replicas": [1, -2]},
        ]
        found = faults_of(json.dumps({"version": 1, "partitions": rows}).encode())
        assert found == [
            ("<bytes>: partitions[0].replicas", [1, 1]),
            ("<bytes>: partitions[1].replicas[1]", -2),
            ("<bytes>: partitions[1].log_dirs", ["any"]),
            ("<bytes>: partitions[2].replicas[1]", -2),
            ("<bytes>: partitions[2].replicas", "a-1"),
        ]
        rows = [{"topic": 7, "partition": "x", "replicas": [1, None]}, {"replicas": [1]}]
        found = faults_of(json.dumps({"version": 3, "partitions": rows}).encode())
        assert {path.removeprefix("<bytes>: ") for path, _ in found} == {
            "version", "partitions[0].topic", "partitions[0].partition",
            "partitions[0].replicas[1]", "partitions[1].topic", "partitions[1].partition",
        }  # fmt: skip

    @pytest.mark.parametrize(
        "name", ["kafka_reassignment.json", "kafka_logdirs.txt", "kafka_capacity.json"]
    )
    def test_truncated_json_is_invalid_input(self, name):
        data = (DATA / name).read_bytes()
        for length in (0, 1, len(data) // 2, len(data) - 4):
            with pytest.raises(InvalidInput):
                registry.read([DATA / "kafka_describe.txt", data[:length]], format="kafka")

    def test_files_of_other_kinds_are_named(self):
        election = b'{"partitions":[{"topic":"orders","partition":0}]}'
        found = faults_of(election, b"hello", (DATA / "kafka_describe.txt").read_bytes())
        assert [value for _, value in found] == [election[:40], b"hello"]
        assert faults_of(DATA / "kafka_racks.json")[0][0] == "source"

    def test_an_empty_reassignment_is_an_empty_cluster(self):
        cluster = registry.read(b'{"version":1,"partitions":[]}')
        assert (len(cluster.nodes), len(cluster.partitions)) == (0, 0)

    def test_formats_are_found_by_content(self):
        for name in ("kafka_describe.txt", "kafka_describe_old.txt", "kafka_generate.txt"):
            assert registry.read(DATA / name).native_format == "kafka"
        with pytest.raises(InvalidInput, match="not in a known format"):
            registry.read(b"0 3 0\n")


def moved(cluster, changes, leaders=()):
    """The cluster's placement with some replicas and leaders elsewhere, by name."""
    node, leader = cluster.placement.node.copy(), cluster.placement.leader.copy()
    for (partition, slot), broker in changes.items():
        p = cluster.partitions.names.index(partition)
        node[cluster.placement.first[p] + slot] = cluster.nodes.names.index(broker)
    for partition, slot in leaders:
        leader[cluster.partitions.names.index(partition)] = slot
    return cluster.placement.replaced(node, leader)


class TestWriting:
    def test_reading_and_writing_changes_nothing(self, tmp_path):
        cluster = read("kafka_reassignment.json")
        assert registry.write(cluster, tmp_path / "out.json", "kafka") == (tmp_path / "out.json",)
        original = (DATA / "kafka_reassignment.json").read_text()
        assert canonical((tmp_path / "out.json").read_text()) == canonical(original)

    def test_a_leader_that_is_not_preferred_stays_where_it_stands(self, tmp_path):
        registry.write(read("kafka_describe.txt"), tmp_path / "out.json", "kafka")
        replicas = {row[:2]: row[2] for row in canonical((tmp_path / "out.json").read_text())}
        assert replicas["orders", 1] == [2, 3, 1001]

    def test_only_what_changes_is_written_with_the_way_back_and_the_election(self, tmp_path):
        cluster = read("kafka_describe.txt", "kafka_racks.json").up("4")
        target = moved(
            cluster,
            {("orders-1", 2): "4", ("orders-2", 1): "4"},
            [("orders-0", 2), ("orders-2", 1)],
        )
        path = tmp_path / "plan.json"
        files = registry.write(cluster, path, "kafka", placement=target)
        assert [file.name for file in files] == [
            "plan.json", "plan.rollback.json", "plan.election.json",
        ]  # fmt: skip
        there, back = (canonical(file.read_text()) for file in files[:2])
        assert [row[:3] for row in there] == [
            ("orders", 0, [3, 1, 2]),
            ("orders", 1, [3, 2, 4]),
            ("orders", 2, [4, 3, 1]),
        ]
        # 1001 is dead: what it held is not given back to it, the lead of the others is
        assert [row[:3] for row in back] == [("orders", 0, [1, 2, 3]), ("orders", 2, [3, 4, 1])]
        assert json.loads(files[2].read_text()) == {
            "partitions": [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 2}]
        }

    def test_electing_the_preferred_leader_moves_nothing(self, tmp_path):
        cluster = read("kafka_describe.txt")
        target = moved(cluster, {}, [("orders-1", 0)])
        files = registry.write(cluster, tmp_path / "p.json", "kafka", placement=target)
        assert canonical(files[0].read_text()) == []
        elected = json.loads(files[2].read_text())["partitions"]
        assert elected == [{"topic": "orders", "partition": 1}]

    def test_whoever_leads_becomes_preferred_though_nothing_moves(self, tmp_path):
        # Kafka takes the leadership back to the first replica by itself
        cluster = read("kafka_describe.txt").up("1001")
        assert cluster.placement.leader[cluster.partitions.names.index("orders-1")] == 1
        path = tmp_path / "p.json"
        files = registry.write(cluster, path, "kafka", placement=cluster.placement)
        there, back = (canonical(file.read_text()) for file in files[:2])
        assert [row[:3] for row in there] == [("orders", 1, [3, 2, 1001])]
        assert [row[:3] for row in back] == [("orders", 1, [2, 3, 1001])]
        # it leads already
        assert json.loads(files[2].read_text())["partitions"] == []

    def test_the_way_back_copies_nothing_to_a_dead_broker(self, tmp_path):
        cluster = read("kafka_describe.txt", "kafka_racks.json").up("4")
        dead = cluster.nodes.names.index("1001")
        assert not cluster.nodes.alive[dead]
        target = moved(cluster, {("orders-1", 2): "4", ("orders-0", 1): "4"}, [])
        files = registry.write(cluster, tmp_path / "p.json", "kafka", placement=target)
        there, back = ({row[:2] for row in canonical(file.read_text())} for file in files[:2])
        assert there >= {("orders", 0), ("orders", 1)}
        assert ("orders", 0) in back and ("orders", 1) not in back

    def test_what_is_pinned_keeps_its_order_unless_its_placement_changes(self, tmp_path):
        cluster = read("kafka_describe.txt")
        pinned = replace(cluster.placement, flags=cluster.placement.flags | int(Flag.PINNED))
        cluster = replace(cluster, placement=pinned)
        files = registry.write(cluster, tmp_path / "p.json", "kafka", placement=pinned)
        assert canonical(files[0].read_text()) == []
        assert json.loads(files[2].read_text())["partitions"] == []
        target = moved(cluster, {}, [("orders-0", 1)])
        files = registry.write(cluster, tmp_path / "p.json", "kafka", placement=target)
        assert [row[:3] for row in canonical(files[0].read_text())] == [("orders", 0, [2, 1, 3])]

    def test_replicas_that_stay_keep_their_log_directory(self, tmp_path):
        cluster = read("kafka_describe.txt", "kafka_logdirs.txt", "kafka_racks.json").up("4")
        target = moved(cluster, {("orders-1", 2): "4"})
        registry.write(cluster, tmp_path / "p.json", "kafka", placement=target)
        there = canonical((tmp_path / "p.json").read_text())
        assert there == [("orders", 1, [3, 2, 4], ["/data/d1", "/data/d1", "any"])]

    def test_no_list_names_a_broker_that_is_down_nor_loses_one_that_nobody_replaces(self, tmp_path):
        # kafka-reassign-partitions.sh refuses a whole file over one: "Unknown broker id"
        cluster = read("kafka_describe.txt")
        dead = cluster.nodes.names.index("1001")
        assert not cluster.nodes.alive[dead]
        target = moved(cluster, {}, [("orders-1", 0)])
        node = target.node.copy()
        node[(cluster.placement.node == dead) & (node == dead)] = -1
        for after in (target, target.replaced(node, target.leader)):
            files = registry.write(cluster, tmp_path / "p.json", "kafka", placement=after)
            for file in files[:2]:
                assert all(1001 not in row[2] for row in canonical(file.read_text()))
                assert not {("orders", 1), ("orders", 2)} & {
                    row[:2] for row in canonical(file.read_text())
                }

    def test_all_partitions_on_request(self, tmp_path):
        cluster = read("kafka_reassignment.json")
        files = registry.write(
            cluster, tmp_path / "p.json", "kafka", placement=cluster.placement, partitions="all"
        )
        assert len(canonical(files[0].read_text())) == 4
        assert json.loads(files[2].read_text()) == {"partitions": []}

    def test_a_replica_without_a_node_is_left_out_and_none_at_all_is_refused(self, tmp_path):
        cluster = read("kafka_reassignment.json")
        node = cluster.placement.node.copy()
        node[cluster.placement.first[2]] = -1
        target = cluster.placement.replaced(node, cluster.placement.leader)
        registry.write(cluster, tmp_path / "p.json", "kafka", placement=target)
        assert canonical((tmp_path / "p.json").read_text())[0][2] == [2, 3]
        node[cluster.placement.first[1]] = -1
        target = cluster.placement.replaced(node, cluster.placement.leader)
        with pytest.raises(InvalidInput, match="clicks-eu-10: would be left without replicas"):
            registry.write(cluster, tmp_path / "q.json", "kafka", placement=target)
        assert not (tmp_path / "q.json").exists()

    def test_a_cluster_that_kafka_does_not_know_is_refused(self, tmp_path):
        from evenkeel.model.cluster import Cluster

        cluster = Cluster.from_arrays(
            capacity=[[1.0]], load=[[1.0]], placement=[[0]], partition_names=["orders"]
        )
        with pytest.raises(InvalidInput) as caught:
            registry.write(cluster, tmp_path / "p.json", "kafka")
        assert [f.path for f in caught.value.faults] == ["partition_names[0]", "node_names[0]"]

    def test_every_name_that_is_not_kafkas_is_told(self, tmp_path):
        cluster = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 2, load=[[1.0]] * 3, placement=[[0], [1], [0]],
            partition_names=["orders", "a-0", "clicks-x"], node_names=["b1", "b2"],
        )  # fmt: skip
        with pytest.raises(InvalidInput) as caught:
            registry.write(cluster, tmp_path / "p.json", "kafka")
        assert [fault.path for fault in caught.value.faults] == [
            "partition_names[0]", "partition_names[2]", "node_names[0]", "node_names[1]",
        ]  # fmt: skip

    def test_two_files_of_racks_are_named_where_brokers_have_none(self):
        racks = DATA / "kafka_racks.txt"
        found = faults_of(DATA / "kafka_reassignment.json", racks, b'{"1": "rack-a"}')
        assert found == [(f"{racks}, <bytes>: brokers", [7])]

    def test_a_fault_in_a_file_of_a_like_name_hides_no_missing_rack(self, tmp_path):
        racks, other = tmp_path / "racks.txt", tmp_path / "racks.txt2"
        racks.write_text("1 a\n2 b\n")
        other.write_text("broker,disk\n1,x\n")
        found = faults_of(DATA / "kafka_reassignment.json", racks, other)
        assert (f"{racks}: brokers", [3, 7, 1001]) in found

    def test_it_survives_the_native_formats(self, tmp_path):
        cluster = read("kafka_describe.txt", "kafka_logdirs.txt", *RACKS[:1])
        for suffix in (".npz", ".rows.json"):
            path = tmp_path / f"c{suffix}"
            registry.write(cluster, path)
            assert_same(registry.read(path), cluster)


assignments = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b-c", "b.c", "0", "a-0"]), st.integers(0, 12)),
    st.lists(st.integers(0, 10**6), min_size=1, max_size=4, unique=True),
    max_size=8,
)


@given(assignments, st.randoms(use_true_random=False))
def test_any_assignment_comes_back_and_any_change_is_told(tmp_path_factory, rows, random):
    path = tmp_path_factory.mktemp("kafka") / "in.json"
    partitions = [{"topic": t, "partition": n, "replicas": r} for (t, n), r in rows.items()]
    text = json.dumps({"version": 1, "partitions": partitions})
    cluster = registry.read(text.encode(), format="kafka")
    registry.write(cluster, path, "kafka")
    assert canonical(path.read_text()) == canonical(text)

    placement = cluster.placement
    first = placement.first.tolist()
    leader = np.array([random.randrange(b - a) for a, b in pairwise(first)], np.int16)
    target = placement.replaced(placement.node, leader)
    files = registry.write(cluster, path, "kafka", placement=target)
    there, back = ({row[:2]: row[2] for row in canonical(file.read_text())} for file in files[:2])
    ids = [int(name) for name in cluster.nodes.names]
    for p, name in enumerate(cluster.partitions.names):
        topic, number = name.rsplit("-", 1)
        key = (topic, int(number))
        now = rows[key]
        assert there.get(key, now)[0] == ids[target.leader_node[p]]
        assert sorted(there.get(key, now)) == sorted(now)
        assert back.get(key, now) == now
        assert (key in there) == (leader[p] > 0)


class TestPreferredLeaders:
    """Kafka brings leaders back to the first broker of a list, where it is set to."""

    LED_BY_ANOTHER = (
        "Topic: t\tPartitionCount: 3\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: t\tPartition: 0\tLeader: 2\tReplicas: 1,2\tIsr: 1,2\n"
        "\tTopic: t\tPartition: 1\tLeader: 1\tReplicas: 1,3\tIsr: 1,3\n"
        "\tTopic: t\tPartition: 2\tLeader: 2\tReplicas: 3,2\tIsr: 3,2\n"
    )

    def test_an_answer_hands_leads_back_by_election_and_rewrites_only_what_changes(self, tmp_path):
        cluster = registry.read(self.LED_BY_ANOTHER.encode()).drain("3")
        registry.write(cluster, tmp_path / "p.json", placement=ek.solve(cluster))
        told = json.loads((tmp_path / "p.json").read_text())["partitions"]
        lists = {one["partition"]: one["replicas"] for one in told}
        assert {*lists} == {1, 2}
        elected = json.loads((tmp_path / "p.election.json").read_text())["partitions"]
        assert {"topic": "t", "partition": 0} in elected


@pytest.mark.parametrize(
    ("words", "back"),
    [
        (["--replicas", "t=2", "--drain", "3"], {0: [2, 3], 1: [2, 3, 4]}),
        (["--replicas", "t=2"], {1: [2, 3, 4]}),
        (["--drain", "2"], {0: [2, 4, 3], 1: [2, 3, 4]}),
        (["--no-lead", "3"], {2: [3, 4, 2]}),
    ],
)
def test_a_rollback_and_the_undo_of_a_folder_return_the_same(tmp_path, words, back):
    rows = [([1, 2, 3], 2), ([2, 3, 4], 2), ([3, 4, 1], 3)]
    head = "Topic: t\tPartitionCount: 3\tReplicationFactor: 3\n"
    (tmp_path / "described.txt").write_text(head + "".join(
        f"\tTopic: t\tPartition: {p}\tLeader: {leader}\tReplicas: {','.join(map(str, row))}"
        f"\tIsr: {','.join(str(b) for b in row if b > 1)}\n"
        for p, (row, leader) in enumerate(rows)
    ))  # fmt: skip
    (tmp_path / "racks.txt").write_text("1 a\n2 b\n3 c\n4 a\n5 b\n")
    files = [str(tmp_path / name) for name in ("described.txt", "racks.txt")]
    asked = [*files, *words, "--level", "none", "-q", "-o"]
    for command, name in (("solve", "plan.json"), ("plan", "move")):
        assert main([command, *asked, str(tmp_path / name)]) in (0, 4)
    wave = tmp_path / "move" / "undo" / "waves" / "1.reassignment.json"
    for file in (tmp_path / "plan.rollback.json", wave):
        lists = json.loads(file.read_text())["partitions"]
        assert {one["partition"]: one["replicas"] for one in lists} == back
