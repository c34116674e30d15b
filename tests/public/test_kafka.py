"""Situations of Kafka clusters that users reported in public."""

import json
import re
from collections import Counter

import pytest

import evenkeel as ek
from evenkeel.model.intake.stranded import unavailable_message
from evenkeel.systems import registry
from tests.public.case import PUBLIC
from tests.support import places


def lists(case, name):
    """The lists of a reassignment by topic-partition."""
    rows = json.loads(case.written(name))["partitions"]
    return {f"{row['topic']}-{row['partition']}": row["replicas"] for row in rows}


def elected(case, name):
    return [row["partition"] for row in json.loads(case.written(name))["partitions"]]


class TestRightFromTheBeginning:
    def test_a_lost_broker_that_has_no_rack_any_more(self, public):
        case = public("kafka/lost-broker-without-a-rack")
        told = case.run(
            "solve", "described.txt", "racks.txt", "--add-nodes", "more.csv", "--level", "none",
            "-o", "p.json",
        )  # fmt: skip
        assert told.code == 0 and "no sign of life of brokers 1002" in told.text
        assert {name: {*row} for name, row in lists(case, "p.json").items()} == {
            "test_topic-0": {1001, 1005}, "test_topic-1": {1001, 1005},
        }  # fmt: skip

    def test_disks_are_named_where_none_has_room(self, public):
        case = public("kafka/no-room-for-a-dead-broker")
        told = case.run("solve", "described.txt", "logdirs.json", "capacity.json", "-o", "p.json")
        assert told.code == 4 and "4 capacity disk" in told.text

    def test_each_broker_is_level_in_shares_of_its_own_network(self, public):
        case = public("kafka/brokers-of-unlike-networks")
        told = case.run(
            "solve", "described.txt", "brokers.csv", "loads.csv", "--level",
            "network_in=0.05,network_out=0.1", "-o", "p.json",
        )  # fmt: skip
        assert told.code == 0 and "moves 48 48" in told.text


class TestUnderWay:
    FILES = ("described.txt", "racks.txt")

    def test_partitions_that_are_being_reassigned_are_named_and_left_alone(self, public):
        case = public("kafka/reassignment-under-way")
        told = case.run("solve", *self.FILES, "--level", "0.1", "-o", "p.json")
        assert "(ledger-1, ledger-2)" in told.text and "--additional" in told.text
        for file in ("p.json", "p.rollback.json", "p.election.json"):
            listed = json.loads(case.written(file))["partitions"]
            assert not [one for one in listed if one["partition"] in (1, 2)]

    def test_they_count_where_they_will_be(self, public):
        case = public("kafka/reassignment-under-way")
        cluster = ek.read([case.path(name) for name in self.FILES])
        names = cluster.nodes.names
        placed = [[names[n] for n in row] for row in cluster.placement.nodes.tolist()]
        assert placed[1:3] == [["6", "7", "4", "5"], ["8", "5", "6", "2"]]
        assert cluster.partitions.replicas.tolist() == [4] * 6

    @pytest.mark.parametrize("words", [[], ["--exclude", "2", "--moves", "2", "--floor", "10%"]])
    def test_they_are_led_by_the_first_of_their_target(self, public, words):
        case = public("kafka/moving-to-a-third-broker")
        ran = case.run("solve", "session.txt", *words, "-o", "p.json")
        assert ran.code == 0 and "of 2 partitions (s14_move-0, s14_move-2)" in ran.text
        assert lists(case, "p.json") == {} and elected(case, "p.election.json") == []
        cluster = ek.read(case.path("session.txt"))
        led = [cluster.nodes.names[n] for n in cluster.placement.leader_node.tolist()]
        assert led == ["3", "1", "2"]

    def test_neither_a_plan_nor_its_undo_names_them(self, public):
        case = public("kafka/reassignment-under-way")
        told = case.run("plan", *self.FILES, "--drain", "1", "-o", "move")
        assert told.code in (0, 3)
        waves = [*(case.folder / "move").rglob("*.reassignment.json")]
        assert waves
        for wave in waves:
            rows = json.loads(wave.read_text())["partitions"]
            assert not {1, 2} & {row["partition"] for row in rows}
            assert all(len(row["replicas"]) == 4 for row in rows)

    def test_those_that_keep_a_dead_broker_do_not_end(self, public):
        case = public("kafka/reassignment-keeps-a-dead-broker")
        answer = case.run("solve", "described.txt", "list.txt", "-o", "p.json")
        assert answer.code == 3 and "leader partition" not in answer.text
        endless = "payments-0, payments-1, payments-2 while a broker of its target is down"
        assert f"no end of the reassignment of {endless}: cancel it" in answer.text
        listed = json.loads(case.written("p.json"))["partitions"]
        assert {one["topic"] for one in listed} == {"audit"}
        assert all(2 not in one["replicas"] for one in listed)

    def test_a_list_of_reassignments_tells_the_same(self, public):
        case = public("kafka/reassignment-under-way")
        text = case.path("described.txt").read_text()
        plain = re.sub(r"\tAdding Replicas: \S+\tRemoving Replicas: \S+", "", text)
        assert "Adding" not in plain
        listed = (
            "Current partition reassignments:\n"
            "ledger-1: replicas: 6,7,2,3,4,5. adding: 6,7. removing: 2,3.\n"
            "ledger-2: replicas: 8,5,6,3,4,1,2. adding: 8,5,6. removing: 3,4,1.\n"
        )
        racks = case.path("racks.txt").read_bytes()
        one, other = (
            ek.read([*files])
            for files in ((text.encode(), racks), (plain.encode(), racks, listed.encode()))
        )
        assert one.placement.node.tolist() == other.placement.node.tolist()
        assert one.placement.flags.tolist() == other.placement.flags.tolist()

    def test_the_order_that_is_being_carried_out_is_no_contradiction(self, public):
        case = public("kafka/reassignment-under-way")
        described, racks = (case.path(name).read_bytes() for name in self.FILES)
        rows = [
            {"topic": "ledger", "partition": 1, "replicas": [6, 7, 4, 5]},
            {"topic": "ledger", "partition": 2, "replicas": [3, 4, 1, 2]},
        ]
        order = json.dumps({"version": 1, "partitions": rows}).encode()
        alone = ek.read([described, racks])
        for files in ([described, order, racks], [order, described, racks]):
            cluster = ek.read(files)
            assert cluster.placement.node.tolist() == alone.placement.node.tolist()
            assert cluster.placement.flags.tolist() == alone.placement.flags.tolist()
        rows[0]["replicas"] = [1, 2, 3, 4]
        strange = json.dumps({"version": 1, "partitions": rows}).encode()
        with pytest.raises(ek.InvalidInput, match="contradicts"):
            ek.read([described, strange, racks])

    def test_an_old_release_shows_it_by_lists_that_are_too_long(self, public):
        case = public("kafka/reassignment-under-way")
        text = case.path("described.txt").read_text()
        plain = re.sub(r"\tAdding Replicas: \S+\tRemoving Replicas: \S+", "", text).encode()
        cluster = ek.read([plain, case.path("racks.txt")])
        names = cluster.nodes.names
        placed = [[names[n] for n in row] for row in cluster.placement.nodes.tolist()]
        assert placed[1:3] == [["2", "3", "4", "5"], ["3", "4", "1", "2"]]
        result = ek.solve(cluster, goals=ek.Goals(level=0.1))
        assert not {one.partition for one in result.moves} & {"ledger-1", "ledger-2"}

    def test_a_dead_replica_too_many_is_dropped(self, public):
        case = public("kafka/four-replicas-of-three")
        told = case.run("solve", "described.txt", "-o", "p.json")
        assert "(TESTING-1, TESTING-2, TESTING-4)" in told.text and "moves 0" in told.text
        assert lists(case, "p.json") == {
            "TESTING-1": [2, 3, 4], "TESTING-2": [3, 4, 5], "TESTING-4": [5, 6, 1],
        }  # fmt: skip
        assert lists(case, "p.rollback.json") == {}


class TestWhatIsNotSaid:
    def test_controllers_among_racks_get_nothing(self, public):
        case = public("kafka/controllers-among-racks")
        told = case.run("solve", "described.txt", "racks.txt", "-o", "p.json")
        assert "brokers 0, 1, 2, which hold nothing" in told.text and "controllers" in told.text
        assert not {0, 1, 2} & {b for row in lists(case, "p.json").values() for b in row}

    def test_a_filtered_listing_is_no_cluster(self, public):
        case = public("kafka/filtered-listing")
        told = case.run("check", "urp.txt")
        assert "the listing is filtered" in told.text and "4 nodes, 4 alive" in told.text
        assert "brokers 2 in a listing that is filtered: they count as up" in told.text
        case.run("solve", "urp.txt", "-o", "p.json")
        assert lists(case, "p.json") == {}

    def test_a_log_directory_that_failed(self, public):
        case = public("kafka/failed-log-directory")
        told = case.run("check", "described.txt", "logdirs.json")
        assert told.code == 1
        assert "/d/1 (KafkaStorageException) on broker 2" in told.text
        assert all(f"events-{n}" in told.text for n in (1, 3, 5, 7, 9, 11))
        files = ("described.txt", "logdirs.json")
        assert case.run("solve", *files, "--level", "none", "-o", "p.json").code == 0
        there = lists(case, "p.json")
        assert {*there} == {f"events-{n}" for n in (1, 3, 5, 7, 9, 11)}
        assert not any(2 in row for row in there.values())
        assert lists(case, "p.rollback.json") == {}
        assert case.run("plan", *files, "--level", "none", "-o", "move").code == 0
        assert not [*(case.folder / "move" / "undo" / "waves").glob("*.reassignment.json")]
        assert (
            "nothing goes back to where it may not be: events-1, "
            in (case.folder / "move" / "undo" / "README.md").read_text()
        )

    def test_what_must_leave_a_failed_directory_is_shared_by_the_other_brokers(self, public):
        """The three replicas that broker 2 keeps leave eleven each to the others."""
        case = public("kafka/failed-log-directory")
        told = case.run("solve", "described.txt", "logdirs.json", "-o", "p.json")
        assert told.code == 0
        assert "replicas at most 30.56% of capacity: the mean of 30.56%" in told.text

    def test_cores_are_a_capacity(self, public):
        case = public("kafka/capacity-files")
        files = [case.path(name) for name in ("described.txt", "logdirs.json", "cores.json")]
        cluster = ek.read(files)
        assert cluster.nodes.capacity[:, cluster.dimensions.index("cpu")].tolist() == [400.0] * 3

    def test_a_broker_that_joins_has_the_capacity_that_its_file_names(self, public):
        case = public("kafka/capacity-files")
        files = ("described.txt", "logdirs.json", "four.json")
        told = case.run("check", *files)
        assert told.code == 0 and "nothing of brokers 4 but capacities" in told.text
        case.run("solve", *files, "--add-nodes", "more.csv", "-o", "p.json")
        assert any(4 in row for row in lists(case, "p.json").values())
        from evenkeel.systems.tables.reading import read_newcomers

        cluster = ek.read([case.path(name) for name in files])
        grown, _ = read_newcomers(str(case.path("more.csv")), cluster)
        disk = grown.dimensions.index("disk")
        assert grown.nodes.capacity[:, disk].tolist() == [50000 * 2**20] * 3 + [100000 * 2**20]


class TestPreferredLeaders:
    def test_one_election_brings_leaders_back_and_no_list_changes(self, public):
        case = public("kafka/preferred-leaders")
        for more in ((), ("--leaders", "0")):
            told = case.run("solve", "described.txt", *more, "-o", "p.json")
            assert "leader changes 4" in told.text
            assert lists(case, "p.json") == {} == lists(case, "p.rollback.json")
            assert elected(case, "p.election.json") == [2, 5, 8, 11]

    def test_a_plan_only_elects(self, public):
        case = public("kafka/preferred-leaders")
        assert case.run("plan", "described.txt", "-o", "move").code == 0
        waves = [file.name for file in (case.folder / "move" / "waves").iterdir()]
        assert waves == ["1.election.json"]
        assert elected(case, "move/waves/1.election.json") == [2, 5, 8, 11]

    def test_who_levels_in_between_makes_no_skew_permanent(self, public):
        case = public("kafka/preferred-leaders")
        text = case.path("described.txt").read_text()
        # broker 3 catches up still: nobody can elect it now
        behind = text.replace("Isr: 3,1,2", "Isr: 1,2")
        cluster = ek.read(behind.encode())
        result = ek.solve(cluster.drain("2").add_nodes([[36.0]], names=["4"]))
        ek.write(cluster.add_nodes([[36.0]], names=["4"]), case.folder / "p.json", placement=result)
        there = lists(case, "p.json")
        assert {there[f"a-{n}"][0] for n in (2, 5, 8, 11)} == {3}


class TestOrders:
    """Lists of the same brokers in another order, which change who is preferred."""

    @pytest.mark.parametrize(
        ("name", "words", "firsts", "elected_too"),
        [
            (
                "kafka/list-begins-with-a-demoted-broker",
                ("--no-lead", "10001", "--level", "none", "--leaders", "none"),
                {"loadgen-1-3": 10003, "loadgen-1-9": 10002, "loadgen-1-15": 10000}, [],
            ),
            (
                "kafka/target-puts-the-leader-first", ("--target", "target.json"),
                {"my-topic-two-0": 2}, [],
            ),
            (
                "kafka/lists-in-ascending-order", ("--leaders", "0"),
                {"t-1": 3, "t-4": 3}, [],
            ),
            (
                "kafka/leaders-of-one-topic",
                ("--level", "none", "--leaders", "none", "--group-leaders", "a=0"),
                {"a-2": 3, "a-3": 3, "a-4": 2, "a-5": 2}, [],
            ),
            ("kafka/preferred-leaders", (), {}, [2, 5, 8, 11]),
        ],
    )  # fmt: skip
    def test_a_plan_changes_the_order_where_the_wanted_leader_is_not_first(
        self, public, name, words, firsts, elected_too
    ):
        case = public(name)
        answer = case.run("plan", "described.txt", *words, "-o", "move")
        assert answer.code == 0 and "no step of" not in answer.text
        cluster = ek.read(str(case.path("described.txt")))
        placed, nodes = cluster.placement, cluster.nodes.names
        was = {
            name: [int(nodes[n]) for n in placed.node[placed.first[p] : placed.first[p + 1]]]
            for p, name in enumerate(cluster.partitions.names)
        }
        numbers = [int(name.rpartition("-")[2]) for name in firsts]
        assert elected(case, "move/waves/1.election.json") == sorted([*numbers, *elected_too])
        if not firsts:
            return
        for way in ("move", "move/undo"):
            new = lists(case, f"{way}/waves/1.reassignment.json")
            assert new.keys() == firsts.keys()
            assert all(sorted(row) == sorted(was[one]) for one, row in new.items())
        assert new == {one: was[one] for one in firsts}
        there = lists(case, "move/waves/1.reassignment.json")
        assert {one: row[0] for one, row in there.items()} == firsts

    @pytest.mark.parametrize("pin", [(), ("--pin", "*")])
    def test_a_reassignment_orders_lists_of_pinned_partitions(self, public, pin):
        case = public("kafka/list-begins-with-a-demoted-broker")
        words = ("--no-lead", "10001", "--level", "none", "--leaders", "none", *pin)
        assert case.run("solve", "described.txt", *words, "-o", "new.json").code == 0
        firsts = {name: row[0] for name, row in lists(case, "new.json").items()}
        assert firsts == {"loadgen-1-3": 10003, "loadgen-1-9": 10002, "loadgen-1-15": 10000}


class TestWishes:
    def test_more_replicas_of_a_topic(self, public):
        case = public("kafka/more-replicas")
        told = case.run(
            "solve", "described.txt", "racks.txt", "--replicas", "orders=3", "-o", "p.json"
        )
        rack = {1: "a", 2: "b", 3: "c", 4: "a"}
        there = {name: row for name, row in lists(case, "p.json").items() if "orders" in name}
        assert len(there) == 8 and "unassigned 8 -" in told.text
        assert all({rack[b] for b in row} == {*"abc"} for row in there.values())
        assert case.run("solve", "described.txt", "--replicas", "orders").code == 2

    def test_more_replicas_than_racks_are_spread_evenly(self, public):
        case = public("kafka/more-replicas")
        files = ("described.txt", "racks.txt")
        told = case.run("solve", *files, "--replicas", "orders=4", "-o", "p.json")
        assert told.code == 0
        rack = {1: "a", 2: "b", 3: "c", 4: "a"}
        for name, row in lists(case, "p.json").items():
            if "orders" in name:
                assert sorted(rack[b] for b in row) == [*"aabc"]
        assert "4 replicas are spread evenly over 3 racks: at most 2" in told.text

    def test_fewer_replicas_than_must_be_in_sync_break_no_rule(self, public):
        case = public("kafka/more-replicas")
        files = ("described.txt", "racks.txt")
        told = case.run("solve", *files, "--replicas", "orders=3", "--level", "none", "--json")
        assert (told.code, told.json["moves"]) == (0, 12)
        assert "min.insync.replicas in topics tmp" in told.err
        cluster = ek.read([case.path(name) for name in files])
        least = dict(zip(cluster.partitions.names, cluster.partitions.min_active, strict=True))
        assert (least["tmp-0"], least["orders-0"]) == (1, 2)
        assert case.run("plan", *files, "--replicas", "orders=3", "-o", "move").code == 0

    def test_brokers_are_level_though_topics_are_not(self, public):
        case = public("kafka/topics-spread")
        told = case.run(
            "solve", "described.txt", "logdirs.json", "--add-nodes", "more.csv", "--level", "0.05",
            "--floor", "0.05", "--leaders", "0.05", "-o", "p.json",
        )  # fmt: skip
        assert told.code == 0 and "All goals are met" in told.text


class TestLeadersOfTopics:
    """Leaders of one topic on few brokers."""

    def test_one_broker_leads_all_of_consumer_offsets(self, public):
        case = public("kafka/leaders-of-consumer-offsets")
        told = case.run(
            "solve", "described.txt", "--level", "none", "--min-leaders",
            "__consumer_offsets=4", "-o", "p.json", "--json",
        )  # fmt: skip
        assert told.code == 0 and (told.json["moves"], told.json["leader_changes"]) == (0, 8)
        assert all("offsets" in name for name in lists(case, "p.json"))

    def test_a_topic_with_fewer_partitions_than_brokers(self, public):
        case = public("kafka/fewer-partitions-than-brokers")
        asked = ("--level", "none", "--min-leaders", "orders=1")
        told = case.run("solve", "described.txt", *asked, "-o", "p.json", "--json")
        assert told.code == 0 and (told.json["moves"], told.json["leader_changes"]) == (0, 2)
        told = case.run("solve", "described.txt", *asked, "-o", "q.json")
        assert "orders has 3 leaders for 6 nodes: at least 0 on each, not 1" in told.text

    def test_leaders_on_every_third_node(self, public):
        case = public("kafka/leaders-in-threes")
        asked = ("--level", "none", "--group-leaders", "0%")
        assert (
            "leads 3 partitions of single where 1"
            in case.run("check", "described.txt", *asked).text
        )
        told = case.run("solve", "described.txt", *asked, "-o", "p.json", "--json")
        assert told.code == 0 and (told.json["moves"], told.json["leader_changes"]) == (0, 6)


class TestReported:
    """Further reports from public trackers, runbooks and notes."""

    def test_a_replication_factor_that_is_being_raised(self, public):
        case = public("kafka/factor-being-raised")
        told = case.run("solve", "described.txt", "-o", "p.json")
        assert told.code == 0 and "(l07.move.test-0, l07.move.test-1)" in told.text
        assert "more replicas than the replication factor" not in told.text
        assert lists(case, "p.json") == {}
        assert ek.read(case.path("described.txt")).partitions.replicas.tolist() == [3, 3, 3]

    def test_a_region_that_is_lost(self, public):
        case = public("kafka/region-lost")
        told = case.run("check", "described.txt")
        assert told.code == 1 and "not alive: 1, 2" in told.text and "unclean" in told.text
        assert "multi-region-async-0 (on 2, 1, 3, 4), single-region-0 (on 2, 1)" in told.text
        assert case.run("solve", "described.txt", "-o", "p.json").code in (3, 4)
        assert lists(case, "p.json") == {}

    def test_brokers_that_were_deleted_before_they_were_empty(self, public):
        case = public("kafka/brokers-deleted-too-early")
        told = case.run("solve", "described.txt", "-o", "p.json")
        assert told.code == 3 and "nothing can repair 3 partitions now" in told.text
        assert lists(case, "p.json") == {} and {*elected(case, "p.election.json")} <= {2, 3}

    def test_nobody_leads_anything(self, public):
        case = public("kafka/no-leader-at-all")
        told = case.run("solve", "described.txt", "-o", "p.json")
        assert told.code in (3, 4) and "nothing can repair 3 partitions now" in told.text
        assert lists(case, "p.json") == {} and elected(case, "p.election.json") == []

    def test_log_directories_with_keys_in_another_order(self, public):
        case = public("kafka/log-dirs-of-one-topic")
        files = ("described.txt", "logdirs.json")
        told = case.run("check", *files)
        assert told.code == 1 and "/data/b (KafkaStorageException) on broker 1" in told.text
        assert "1 replica (orders-2)" in told.text
        case.run("solve", *files, "--level", "5%", "-o", "p.json")
        assert lists(case, "p.json") == {"orders-2": [3, 2]}


DESCRIBED = (PUBLIC / "kafka" / "preferred-leaders" / "described.txt").read_text()


@pytest.mark.parametrize(
    "text",
    [
        DESCRIBED.replace("\n", "\r\n"),
        DESCRIBED.replace("\t", "    "),
        "\ufeff" + DESCRIBED,
        "".join(f"    {line}\n" for line in DESCRIBED.splitlines()),
        "".join(f"kafka-1  | {line}\n" for line in DESCRIBED.splitlines()),
        "".join(f'"{line}"\n' for line in DESCRIBED.splitlines()),
        "[root@k1 ~]# kafka-topics.sh --describe\n[2024-05-01 10:00:00,123] WARN [AdminClient] "
        f"Connection to node 3 could not be established.\n{DESCRIBED}[root@k1 ~]# ",
        re.sub(r"\tTopicId: \S+", "", DESCRIBED).replace("\tElr: \tLastKnownElr: ", ""),
    ],
    ids=["crlf", "spaces", "bom", "indented", "compose", "quoted", "terminal", "old"],
)
def test_a_description_is_read_however_it_was_kept(text):
    whole, kept = ek.read(DESCRIBED.encode()), ek.read(text.encode())
    assert kept.placement.node.tolist() == whole.placement.node.tolist()
    assert kept.placement.leader.tolist() == whole.placement.leader.tolist()


def head(topic, partitions, factor, configs=""):
    return (
        f"Topic: {topic}\tPartitionCount: {partitions}\tReplicationFactor: {factor}\t"
        f"Configs: {configs}\n"
    )


def row(topic, partition, leader, replicas, in_sync, more=""):
    return (
        f"\tTopic: {topic}\tPartition: {partition}\tLeader: {leader}\tReplicas: {replicas}\t"
        f"Isr: {in_sync}{more}\n"
    )


JOINS = "\tAdding Replicas: 2"
ONE = head("a", 1, 2) + row("a", 0, 1, "1,2", "1,2")


def log_dirs(error):
    held = {"logDir": "/d", "error": None, "partitions": [{"partition": "a-0", "size": 1}]}
    lost = {"logDir": "/e", "error": error, "partitions": []}
    brokers = [{"broker": 1, "logDirs": [held]}, {"broker": 2, "logDirs": [lost]}]
    return json.dumps({"version": 1, "brokers": brokers})


def two_dirs(of_second=None, **more):
    """The log directories of broker 1: the first has the replica, the second what is given."""
    held = {"logDir": "/d", "partitions": [{"partition": "a-0", "size": 5}], **more}
    other = {"logDir": "/e", "partitions": of_second or []}
    return json.dumps({"version": 1, "brokers": [{"broker": 1, "logDirs": [held, other]}]})


DIRS = '{"brokerCapacities": [{"brokerId": "1", "capacity": {"DISK": {"/d": "9", "/x": "9"}}}]}'
CPU = '{"brokerCapacities": [{"brokerId": "-1", "capacity": {"CPU": {"num.cores": "4"}}}]}'
OF_NINE = (
    '{"brokerCapacities": [{"brokerId": "-1", "capacity": {"CPU": "100"}}, '
    '{"brokerId": "9", "capacity": {"CPU": "100"}}]}'
)
RACKS_OF_NINE = '{"1": "r", "2": "s", "9": "r"}'
SILENT = row("b", 3, 1, "1,2", "1")

LOAD = """{"brokers": [
    {"Broker": 1, "BrokerState": "DEMOTED", "DiskCapacityMB": -1.0},
    {"Broker": 2, "BrokerState": "BAD_DISKS", "DiskCapacityMB": -1.0}]}"""
TWO_OF_ONE = '{"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [1, 2]}]}'

SHOWN = {
    "`MarkedForDeletion`": (
        [ONE + "Topic: z\tPartitionCount: 0\tReplicationFactor: 1\tMarkedForDeletion: true\n"],
        "a mark of deletion on topics z",
    ),
    "both assignments of": (
        ["Current partition replica assignment\n" + TWO_OF_ONE
         + "\nProposed partition reassignment configuration\n" + TWO_OF_ONE],
        "the current one is read",
    ),
    "a session with several": (
        [ONE + "Status of partition reassignment:\n" + TWO_OF_ONE],
        "a proposed assignment beside the current one",
    ),
    "`DEMOTED` and `BAD_DISKS`": (
        [ONE, LOAD], "a demotion of brokers 1: they keep replicas, and lead none",
    ),
    "a table without the name": (["PARTITION  LEADER  REPLICAS\n0  1  [1]\n"], ek.InvalidInput),
    "`Adding Replicas`": (
        [head("a", 1, 1) + row("a", 0, 1, "2,1", "1", JOINS + "\tRemoving Replicas: 1")],
        "a running reassignment of 1 partition (a-0)",
    ),
    "more replicas than": (
        [head("a", 2, 1) + row("a", 0, 1, "1,2", "1") + row("a", 1, 1, "1", "1")],
        "more replicas than the replication factor in 1 partition (a-0)",
    ),
    "fewer replicas than": (
        [head("a", 2, 2) + row("a", 0, 1, "1,2", "1,2") + row("a", 1, 1, "1", "1")],
        "fewer replicas than the replication factor in 1 partition (a-1)",
    ),
    "a reassignment to a broker that is down": (
        [
            head("a", 1, 1) + row("a", 0, 1, "2,1", "1", JOINS),
            "k1:9092 (id: 1 rack: null isFenced: false) -> (\n)\n",
        ],
        "no end of the reassignment of a-0 while a broker of its target is down",
    ),
    "`Leader` is not the first of `Replicas`, which is in": (
        [head("a", 1, 2) + row("a", 0, 2, "1,2", "1,2")],
        "no lead of the preferred broker in 1 partition (a-0)",
    ),
    "a replica on a broker that is up": (
        [head("a", 2, 2) + row("a", 0, 1, "1,2", "1") + row("a", 1, 2, "1,2", "1,2")],
        "1 replica not in sync in 1 partition (a-0), on brokers that are up (1 on 2)",
    ),
    "too few replicas in sync": (
        [
            head("a", 2, 2, "min.insync.replicas=2")
            + row("a", 0, 1, "1,2", "1") + row("a", 1, 2, "1,2", "1,2")
        ],
        "fewer replicas in sync than min.insync.replicas in 1 partition (a-0)",
    ),
    "`Leader` is not the first of `Replicas`, which is not": (
        [head("a", 3, 2) + row("a", 0, 2, "1,2", "2") + row("a", 1, 1, "2,1", "1,2")
         + row("a", 2, 1, "1,2", "1,2")],
        "no lead of the preferred broker in 1 partition (a-0), since it is not in sync",
    ),
    "no in-sync broker is up": (
        [head("a", 1, 2) + row("a", 0, "none", "1,2", "1")], "no live replica surely has",
    ),
    "a broker in `Isr`, beside": (
        [head("a", 1, 2) + row("a", 0, 1, "1,2", "1,2,3")],
        "brokers in sync that hold no replica (a-0 (3))",
    ),
    '`"error"` of a log directory that failed': (
        [head("a", 1, 2) + row("a", 0, 1, "1,2", "1"), log_dirs("KafkaStorageException: Disk")],
        "no access to log directory /e (KafkaStorageException) on broker 2: 1 replica (a-0)",
    ),
    'another `"error"` of a log directory': (
        [ONE, log_dirs("x.ClusterAuthorizationException")],
        "no list of log directory /e (ClusterAuthorizationException) on broker 2",
    ),
    "`isFuture`": (
        [ONE, two_dirs([{"partition": "a-0", "size": 1, "isFuture": True}])],
        lambda cluster: cluster.disks.names[cluster.placement.disk[0]] == "1:/e",
    ),
    "log directories without a capacity": (
        [ONE, two_dirs()], "no capacities of log directories on brokers 1",
    ),
    "`usableBytes`": (
        [ONE, two_dirs(usableBytes=7)], lambda cluster: cluster.disks.capacity[0] == 12.0,
    ),
    "a capacity for a log directory": (
        [ONE, two_dirs(), DIRS], "no listing of /x on broker 1",
    ),
    "no lines of topics": ([SILENT], "the listing is filtered"),
    "a broker in the file of racks only": (
        [ONE, RACKS_OF_NINE], "no sign of life of brokers 9, which hold nothing",
    ),
    "a broker in the file of capacities only": (
        [ONE, OF_NINE],
        "nothing of brokers 9 but capacities",
    ),
    "num.cores": ([ONE, CPU], lambda cluster: 400.0 in cluster.nodes.capacity[0]),
    "replicas of a partition on a rack": (
        [ONE, '{"1": "r", "2": "s"}'],
        lambda cluster: [{**one.spread} for one in cluster.rules] == [{"rack": 1}],
    ),
    "`min.insync.replicas`": (
        [head("a", 1, 2, "min.insync.replicas=2") + row("a", 0, 1, "1,2", "1,2")],
        lambda cluster: cluster.partitions.min_active.tolist() == [2],
    ),
    "log directories of an assignment": (
        ['{"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [1, 2],'
         ' "log_dirs": ["/d1", "/d2"]}]}'],
        "not taken for disks",
    ),
    "leaders given as addresses": (
        ['{"Name": "a", "Partitions": [{"ID": 0, "Leader": "b1:9092", "Replicas": [1, 2],'
         ' "inSyncReplicas": [1, 2]}]}'],
        "only addresses of the leaders of a",
    ),
    "a column of loads": (
        ['topic,partition,leader,replicas,isr,size\na,0,1,"1,2","1,2",13GB\n'],
        "loads in the column size of a listing",
    ),
    "the spread of a topic": ([ONE], lambda cluster: not any(rule.skew for rule in cluster.rules)),
    "a topic with fewer lines": ([head("a", 2, 2) + row("a", 0, 1, "1,2", "1,2")], ek.InvalidInput),
}  # fmt: skip


class TestThePage:
    """The table of the page says what is kept, noted and refused."""

    ROWS = [
        line
        for line in (places.ROOT / "docs/systems/kafka.md").read_text()
        .split("## Kept, noted, refused")[1].split("\n## ")[0].splitlines()
        if line.startswith("| ") and "content of the files" not in line
    ]  # fmt: skip

    def test_each_line_has_an_example(self):
        for line in self.ROWS:
            assert sum(key in line.split(" | ")[0] for key in SHOWN) == 1, line
        assert len(self.ROWS) == len(SHOWN)

    @pytest.mark.parametrize("key", SHOWN)
    def test_it_is_so(self, key):
        files, shown = SHOWN[key]
        sources = [text.encode() for text in files]
        if shown is ek.InvalidInput:
            with pytest.raises(ek.InvalidInput):
                ek.read(sources, format="kafka")
            return
        cluster = ek.read(sources, format="kafka")
        if callable(shown):
            assert shown(cluster)
        else:
            notes = " ".join(
                [*registry.find("kafka").left_out(cluster), unavailable_message(cluster)]
            )
            assert shown in notes

    def test_controllers_by_their_properties_are_no_brokers(self):
        properties = (
            "process.roles=controller\nnode.id=9\nbroker.rack=r\n"
            "process.roles=broker\nnode.id=1\nbroker.rack=r\n"
            "node.id=2\nprocess.roles=broker,controller\nbroker.rack=s\n"
        )
        cluster = ek.read([ONE.encode(), properties.encode()], format="kafka")
        assert [*cluster.nodes.names] == ["1", "2"]
        notes = " ".join(registry.find("kafka").left_out(cluster))
        assert "nothing placed on 9" in notes


class TestPrintedByKafka4:
    def test_a_broker_that_the_cluster_tool_calls_fenced(self, public):
        case = public("kafka/listed-by-the-cluster-tool")
        told = case.run(
            "solve", "described.txt", "endpoints.txt", "--level", "none", "-o", "p.json"
        )
        assert told.code == 0 and "no racks" not in told.text
        cluster = ek.read([case.path("described.txt"), case.path("endpoints.txt")])
        assert cluster.nodes.alive.tolist() == [True] * 4 + [False, True]
        was, now = lists(case, "p.rollback.json"), lists(case, "p.json")
        assert not any(5 in row for row in now.values())
        # broker 2 is the only one of rack b that is left
        assert len(now) == 7 and all(2 in row for row in now.values()) and not was

    def test_partitions_that_end_between_two_listings(self, public):
        case = public("kafka/levelled-while-watched")
        files = ["described.txt", "list.txt", "verify.txt"]
        told = case.run("solve", *files, "--level", "0.1", "-o", "p.json")
        assert told.code == 0 and "a running reassignment of 9 partitions" in told.text
        going = {
            "audit-log-0", "audit-log-2", "clicks-1", "clicks-2", "orders-0", "orders-1",
            "orders-2", "orders-5", "orders-6",
        }  # fmt: skip
        assert not going & lists(case, "p.json").keys()
        cluster = ek.read([*map(case.path, files)])
        names = [*cluster.partitions.names]
        first, node = cluster.placement.first, cluster.placement.node
        p = names.index("clicks-1")
        there = {cluster.nodes.names[n] for n in node[first[p] : first[p + 1]]}
        assert there == {"4", "5", "6"}

    def test_no_wave_names_a_broker_that_is_down(self, public):
        case = public("kafka/two-of-three-gone")
        told = case.run("plan", "described.txt", "brokers.txt", "--level", "none", "-o", "move")
        assert told.code == 0, told.text
        files = [*case.path("move/waves").glob("*.reassignment.json")]
        rows = [row for file in files for row in json.loads(file.read_text())["partitions"]]
        assert not any({1, 9} & {*row["replicas"]} for row in rows)
        mended = [
            row["replicas"] for row in rows if (row["topic"], row["partition"]) == ("clicks", 2)
        ]
        assert len(mended) == 1 and len({*mended[0]}) == 3

    def test_eligible_replicas_that_are_down_lead_nothing(self, public):
        case = public("kafka/eligible-replicas-and-no-leader")
        cluster = ek.read([case.path("described.txt"), case.path("logdirs.txt")])
        names = cluster.nodes.names
        up = {n for n, alive in zip(names, cluster.nodes.alive, strict=True) if alive}
        assert up == {"1"}
        leaders = dict(zip(cluster.partitions.names, cluster.placement.leader_node, strict=True))
        assert [name for name, n in leaders.items() if n < 0] == ["orders-1"]
        told = case.run("solve", "described.txt", "logdirs.txt", "-o", "p.json")
        assert told.code == 4 and "nothing can repair 1 partition now" in told.text
        assert lists(case, "p.json") == {}


CRUISE = ("state.json", "load.json", "partition_load.json")


def test_answers_of_cruise_control(public):
    case = public("kafka/cruise-control-answers")
    found = case.run("solve", *CRUISE, "--level", "none", "--leaders", "10%")
    assert found.code == 0
    assert "no racks" in found.text
    assert "no size of 1 of 9 partitions" in found.text
    cluster = ek.read(*(str(case.path(one)) for one in CRUISE))
    assert cluster.dimensions == ("replicas", "disk", "cpu", "network_in", "network_out")
    assert cluster.nodes.capacity[0, 1:].tolist() == [500000 * 2.0**20, 100.0, 5.12e7, 5.12e7]
    p = cluster.partitions.names.index("orders-0")
    assert cluster.partitions.load.leader[p].tolist() == [1.0, 400 * 2.0**20, 1.5, 40960.0, 81920.0]
    assert cluster.partitions.load.voter[p].tolist()[3:] == [40960.0, 0.0]
    assert 0.0 < cluster.partitions.load.voter[p, 2] < 1.5


def test_a_state_of_partitions_in_trouble_only(public, tmp_path):
    case = public("kafka/cruise-control-answers")
    state = json.loads(case.path("state.json").read_text())
    del state["KafkaPartitionState"]["other"]
    (tmp_path / "short.json").write_text(json.dumps(state))
    with pytest.raises(ek.InvalidInput, match="verbose=true"):
        ek.read(str(tmp_path / "short.json"))


SOLVED = [
    ("kafka/missing-broker-of-three", ["described.txt"], 4, {"test2-1": [1002, 1001]}),
    ("kafka/kcat-text", ["kcat.txt"], 3, {"lost-1": [2, 1]}),
    ("kafka/racks-of-api-versions", ["described.txt", "api.txt"], 0, {"t-0": [1, 4, 3]}),
    ("kafka/execute-output", ["executed.txt", "--drain", "1"], 4, {}),
    (
        "kafka/drained-without-room",
        ["described.txt", "logdirs.json", "capacity.json", "--drain", "1"],
        4,
        {},
    ),
    (
        "kafka/fenced-while-another-lags",
        ["described.txt", "api.txt"],
        0,
        {"pay-0": [1, 2, 4], "pay-1": [2, 4, 1]},
    ),
    (
        "kafka/cruise-control-remove-broker",
        ["state.json", "--drain", "1"],
        0,
        {f"t-{p}": [3, 2] for p in range(5)},
    ),
    ("kafka/offline-field", ["described.txt"], 0, {"x-0": [1, 2, 4], "x-1": [2, 4, 1]}),
    (
        "kafka/broker-with-another-number",
        ["described.txt", "api.txt", "--level", "0.05"],
        0,
        {"t-0": [2, 1001], "t-2": [3, 1001], "t-3": [2, 1001], "t-5": [3, 1001]},
    ),
    ("kafka/eligible-leader-replicas", ["described.txt"], 3, {"payments-2": [1, 3, 2]}),
    (
        "kafka/failed-disk-of-three-brokers",
        ["described.txt", "logdirs.txt"],
        4,
        {"two-0": [40001, 40002]},
    ),
    ("kafka/topic-marked-for-deletion", ["described.txt", "--drain", "3"], 0, {"keep-0": [2, 1]}),
    ("kafka/cruise-control-offline-log-dir", ["state.json", "load.json"], 0, {"t-1": [2, 4]}),
    (
        "kafka/cruise-control-demoted",
        ["state.json", "load.json"],
        0,
        {"t-1": [3, 2], "t-4": [3, 2]},
    ),
]


@pytest.mark.parametrize(("name", "words", "code", "expected"), SOLVED)
def test_only_what_can_be_mended_is_in_the_list(public, name, words, code, expected):
    case = public(name)
    level = () if "--level" in words else ("--level", "none")
    answer = case.run("solve", *words, *level, "-o", "p.json")
    assert answer.code == code, answer.text
    found = {one: {*row} for one, row in lists(case, "p.json").items()}
    assert found == {one: {*row} for one, row in expected.items()}


def test_three_replicas_in_two_zones(public):
    case = public("kafka/two-zones-three-replicas")
    case.run("solve", "described.txt", "racks.json", "--level", "none", "-o", "p.json")
    ((name, row),) = lists(case, "p.json").items()
    assert name == "__consumer_offsets-2"
    assert len({*row} & {1003, 1002, 1005}) == 2 and {*row} & {1001, 1007}


def test_replicas_of_a_dead_broker_leave_it_but_not_the_last(public):
    case = public("kafka/cruise-control-dead-broker")
    answer = case.run("solve", "state.json", "load.json", "-o", "p.json")
    assert answer.code == 3 and "filtered" not in answer.text
    rows = lists(case, "p.json")
    assert rows.keys() == {"t-0", "t-1", "t-2", "t-3"}
    assert not any(3 in row for row in rows.values())


def test_proposals_of_cruise_control_are_a_target(public):
    case = public("kafka/cruise-control-proposals")
    files = ("state.json", "load.json")
    answer = case.run("plan", *files, "--target", "proposals.json", "-o", "plan.json")
    assert answer.code == 0 and "2 copies" in answer.text


def held_and_led(case, start):
    """Return how many replicas each broker holds, and leads by the lists, from those of before."""
    after = start | lists(case, "p.json")
    held = Counter(broker for row in after.values() for broker in row)
    return held, Counter(row[0] for row in after.values())


def test_a_fourth_broker_leads_as_many_as_the_others(public):
    case = public("kafka/fourth-broker-leads-too")
    words = ("described.txt", "--add-nodes", "more.csv", "--leaders", "0", "-o", "p.json")
    assert case.run("solve", *words).code == 0
    start = {"t-0": [1, 2], "t-1": [2, 3], "t-2": [3, 1], "t-3": [1, 3]}
    held, led = held_and_led(case, start)
    assert {*held.values()} == {2} and {*led.values()} == {1} and len(led) == 4


def test_a_fourth_broker_is_filled_by_the_fewest_moves(public):
    case = public("kafka/fewest-moves-to-a-fourth-broker")
    words = ("--add-nodes", "more.csv", "--level", "0", "--leaders", "0", "-o", "p.json")
    assert case.run("solve", "described.txt", *words).code == 0
    start = {f"t-{p}": [p % 3 + 1, (p + 1) % 3 + 1, (p + 2) % 3 + 1] for p in range(12)}
    held, led = held_and_led(case, start)
    assert {*held.values()} == {9} and {*led.values()} == {3}
    assert sum(4 in row for row in lists(case, "p.json").values()) == 9


def test_a_lower_factor_takes_followers_away(public):
    case = public("kafka/factor-lowered")
    answer = case.run("solve", "described.txt", "--replicas", "logs=2", "-o", "p.json")
    assert answer.code == 0
    rows = lists(case, "p.json")
    assert [rows[f"logs-{p}"][0] for p in range(8)] == [p % 4 + 1 for p in range(8)]
    assert all(len(row) == 2 for row in rows.values())
    assert {*Counter(broker for row in rows.values() for broker in row).values()} == {4}


def test_a_broker_that_joins_a_rack_takes_from_all(public):
    case = public("kafka/cruise-control-add-broker")
    answer = case.run("solve", "state.json", "load.json", "--level", "replicas=0", "-o", "p.json")
    assert answer.code == 0
    start = {f"t-{p}": [1 + p % 3, 1 + (p + 1) % 3] for p in range(12)}
    held, _ = held_and_led(case, start)
    assert {*held.values()} == {6}
    rows = start | lists(case, "p.json")
    assert not any({3, 4} <= {*row} for row in rows.values()) and len(lists(case, "p.json")) == 6


def test_racks_that_are_numbers(public):
    case = public("kafka/racks-that-are-numbers")
    files = ("described.txt", "racks.txt")
    answer = case.run("check", *files)
    assert answer.code == 1 and "3 replicas too many in one domain" in answer.text
    assert "mycooltopic-10 · rack 115" in answer.text
    case.run("solve", *files, "--level", "none", "-o", "p.json")
    assert lists(case, "p.json").keys() == {f"mycooltopic-{p}" for p in (0, 4, 10)}
    assert "moves 6 6" in case.run("solve", *files, "-o", "p.json").text


def test_a_replica_too_many_stays_where_another_is_on_a_dead_broker(public):
    case = public("kafka/in-sync-on-one-broker")
    answer = case.run("solve", "described.txt", "-o", "p.json")
    assert answer.code == 4 and "where no broker that is down would stay" in answer.text
    assert lists(case, "p.json") == {}


def test_two_racks_are_left_for_three_replicas(public):
    case = public("kafka/rack-of-three-lost")
    words = ("described.txt", "racks.txt", "--level", "none")
    answer = case.run("solve", *words, "-o", "p.json")
    assert answer.code == 4 and "in one rack" in answer.text and not lists(case, "p.json")
    assert case.run("solve", *words, "--soft", "rack", "-o", "p.json").code == 0
    rows = lists(case, "p.json").values()
    assert len(rows) == 3 and all(len({*row} & {3, 4, 5, 6}) == 3 for row in rows)


class TestReplicasThatLag:
    """Kafka elects no preferred replica that is not in sync."""

    @pytest.mark.parametrize("words", [
        ["--leaders", "0"], ["--method", "leaders"], ["--method", "exact", "--leaders", "0"],
        ["--level", "none", "--leaders", "0"],
    ])  # fmt: skip
    def test_none_becomes_the_preferred_leader(self, tmp_path, public, words):
        case = public("kafka/preferred-leaders")
        rows = [
            f"\tTopic: t\tPartition: {p}\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,3" for p in range(6)
        ]
        rows.append("\tTopic: t\tPartition: 6\tLeader: 2\tReplicas: 2,1,3\tIsr: 2,1,3")
        text = "Topic: t\tPartitionCount: 7\tReplicationFactor: 3\tConfigs: \n" + "\n".join(rows)
        (tmp_path / "lagging.txt").write_text(text)
        answer = case.run("solve", str(tmp_path / "lagging.txt"), *words, "-o", "p.json")
        assert answer.code == 0
        new = lists(case, "p.json")
        assert len(new) == 3
        assert {row[0] for row in new.values()} == {3}


def test_a_factor_is_lowered_to_what_lives_and_can_be_taken_back(public):
    case = public("kafka/factor-lowered-while-a-broker-is-down")
    answer = case.run("solve", "described.txt", "--replicas", "topic-3=1", "-o", "p.json")
    assert answer.code == 0
    assert lists(case, "p.json") == {"topic-3-0": [1], "topic-3-1": [2], "topic-3-2": [1]}
    assert lists(case, "p.rollback.json") == {"topic-3-0": [1, 2]}


def test_registered_controllers_are_no_brokers(public):
    case = public("kafka/controllers-that-stay-registered")
    answer = case.run("solve", "described.txt", "--replicas", "new-topic-2=3", "-o", "p.json")
    assert answer.code == 0 and "moves 0" in answer.text
    rows = [*lists(case, "p.json").values()]
    assert len(rows) == 6 and all({*row} == {3, 4, 5} for row in rows)
    answer = case.run("solve", "described.txt", "--level", "none")
    assert answer.code == 4 and "unplaced (18)" in answer.text


def test_a_broker_that_was_removed_too_early_is_replaced(public):
    case = public("kafka/scaled-down-too-early")
    answer = case.run("solve", "described.txt", "-o", "p.json")
    assert answer.code == 3 and "alone-0 (on 2)" in answer.text
    rows = lists(case, "p.json")
    assert {*rows} == {"samples-1", "samples-2"}
    assert all({*row} == {0, 1} for row in rows.values())


def test_the_one_broker_of_a_rack_holds_a_replica_of_all(public):
    case = public("kafka/racks-of-three-three-one")
    answer = case.run("solve", "described.txt", "racks.txt", "-o", "p.json")
    assert answer.code == 0
    listing = case.path("described.txt").read_text().splitlines()[1:]
    start = {f"t-{p}": [*map(int, re.findall(r"\d+", row.split("\t")[4]))]
             for p, row in enumerate(listing)}  # fmt: skip
    rows = [*(start | lists(case, "p.json")).values()]
    held = Counter(b for row in rows for b in row)
    assert held[6] == 10 and {*held.values()} == {3, 4, 10}
    assert all(sorted(min(b // 3, 2) for b in row) == [0, 1, 2] for row in rows)


def test_a_replacement_takes_what_failed(public):
    case = public("kafka/replaced-broker-takes-what-failed")
    files = ("described.txt", "logdirs.json", "--add-nodes", "more.csv", "--level", "none")
    answer = case.run("solve", *files, "--exclude", "1", "--exclude", "2", "-o", "p.json")
    assert answer.code == 0
    assert [*lists(case, "p.json").values()] == [[1, 4]] * 6


def test_a_third_broker_gets_its_share(public):
    case = public("kafka/third-broker-holds-nothing")
    words = ("--add-nodes", "more.csv", "--level", "5%")
    answer = case.run("solve", "described.txt", *words, "-o", "p.json")
    rows = lists(case, "p.json")
    assert answer.code == 0 and len(rows) == 18
    assert all(3 in row for row in rows.values())


def test_what_only_a_dead_broker_held_is_named_and_stays(public):
    case = public("kafka/single-replicas-of-a-dead-broker")
    answer = case.run("solve", "described.txt", "-o", "p.json")
    assert answer.code == 3 and lists(case, "p.json") == {}
    assert "r1-3 (on 3), r1-7 (on 3)" in answer.text and "unclean" in answer.text


def test_groups_of_brokers_are_level(public):
    case = public("kafka/groups-of-brokers")
    assert case.run("check", "described.txt", "--level", "5%").code == 0
    assert case.run("solve", "described.txt", "--level", "5%", "--json").json["moves"] == 0


def test_an_answer_that_no_file_can_carry_is_printed_before_the_error(public):
    case = public("kafka/capacity-files")
    kind = "b,replicas=40,cpu=9,disk=9,network_in=9,network_out=9"
    grown = ["--grow", "2", "--type", kind, "--at-most", "50%", "-o", "s.json"]
    answer = case.run("size", "described.txt", "cores.json", *grown)
    assert answer.code == 2 and "must be a broker id in files of Kafka" in answer.text
    assert "optimal: " in answer.text and "no loads of disk, cpu" in answer.text
    text = case.run("check", "described.txt", "cores.json").text
    assert "cpu 0.0%" in text and "replicas 1.0000" in text


def test_a_preferred_leader_that_lags_is_not_elected(public):
    case = public("kafka/preferred-leader-not-in-sync")
    assert case.run("solve", "described.txt", "--leaders", "0", "-o", "p.json").code == 0
    assert lists(case, "p.json") == {} and elected(case, "p.election.json") == []


def test_remarks_behind_lines_are_passed_over(public):
    case = public("kafka/remarks-behind-lines")
    answer = case.run("solve", "page.txt", "--leaders", "5%", "-o", "p.json", "--json")
    assert (answer.json["moves"], answer.json["leader_changes"]) == (0, 3)
    assert "with --level none they move only for rules and for what is named" in answer.text
    assert [*lists(case, "p.json")] == ["balanced_topic-1"]
    assert elected(case, "p.election.json") == [2, 4, 6]


def test_two_of_five_brokers_are_emptied_as_one_session_describes_them(public):
    case = public("kafka/scale-down-of-strimzi")
    answer = case.run("solve", "session.txt", "--drain", "3", "--drain", "4", "-o", "p.json")
    assert answer.code == 0 and "moves 24 24" in answer.text
    assert "a proposed assignment beside the current one" in answer.text
    after = lists(case, "p.json")
    assert len(after) == 18 and all(sorted(row) == [0, 1, 2] for row in after.values())
    led = Counter(row[0] for row in after.values()) + Counter([0, 0])  # two lists stay
    assert max(led.values()) == 7


def test_brokers_of_a_proposal_below_a_description_are_up(public):
    case = public("kafka/one-broker-to-three")
    answer = case.run("solve", "session.txt", "-o", "p.json", "--json")
    assert answer.json["moves"] == 2 and "brokers of the other count as up" in answer.text
    assert sorted(lists(case, "p.json").values()) == [[1], [2]]


def test_a_replica_on_a_controller_has_no_other_place(public):
    case = public("kafka/replica-on-a-controller")
    answer = case.run("solve", "described.txt")
    assert answer.code == 4
    assert "5 replicas of a partition are wanted, 1 on a node, and 4 nodes take any" in answer.text
    words = ("--replicas", "test5=4", "-o", "fewer.json")
    lowered = case.run("solve", "described.txt", *words)
    assert lowered.code == 0
    assert "are wanted, 1 on a node" not in lowered.text
    (change,) = json.loads(case.written("fewer.json"))["partitions"]
    assert change == {"topic": "test5", "partition": 0, "replicas": [3, 4, 1, 2]}
