"""What Kafka's files leave open: who did not answer, who only joins, what is measured in part."""

import json
from pathlib import Path

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.errors import InvalidInput
from evenkeel.systems import registry
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.guarding import guard

KNOWN = b"Topic: a\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: \n"
IN_SYNC = KNOWN + (
    b"\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\n"
    b"\tTopic: a\tPartition: 1\tLeader: 2\tReplicas: 2,3,1\tIsr: 2,3,1\n"
)
LAGGING = IN_SYNC.replace(b"Isr: 1,2,3", b"Isr: 1,2").replace(b"Isr: 2,3,1", b"Isr: 2,1")


def read(*sources):
    return registry.read([*sources], format="kafka")


def notes(cluster):
    return [*registry.find("kafka").left_out(cluster)]


def noted(cluster, begin):
    (found,) = [one for one in notes(cluster) if one.startswith(begin)]
    return found


def faults_of(*sources):
    with pytest.raises(InvalidInput) as caught:
        read(*sources)
    return [(fault.path, fault.value) for fault in caught.value.faults]


def up(cluster):
    return [n for n, one in zip(cluster.nodes.names, cluster.nodes.alive, strict=True) if one]


def answers(**states):
    """What is printed of brokers 1, 2 and so on, on rack-1, rack-2 and so on."""
    said = {
        "up": "isFenced: false) -> (\n\tProduce(0): 0 to 11 [usable: 11]\n)",
        "fenced": "isFenced: true) -> (\n\tProduce(0): 0 to 11 [usable: 11]\n)",
        "silent": "isFenced: false) -> ERROR: org.apache.kafka.common.errors.DisconnectException\n",
    }
    return "".join(
        f"k{b[1:]}:9092 (id: {b[1:]} rack: rack {b[1:]} {said[state]}\n"
        for b, state in states.items()
    ).encode()


def listing(held, **more):
    """Log directories: bytes by partition, by broker."""
    return json.dumps({
        "version": 1,
        "brokers": [
            {"broker": broker, "logDirs": [{"logDir": "/d", "error": None, "partitions": [
                {"partition": name, "size": size, "isFuture": False} for name, size in own.items()
            ]} | more]}
            for broker, own in held.items()
        ],
    }).encode()  # fmt: skip


class TestAnswers:
    @pytest.mark.parametrize("state", ["silent", "fenced"])
    def test_who_does_not_answer_or_is_fenced_is_down(self, state):
        cluster = read(IN_SYNC, answers(b1="up", b2="up", b3=state, b4=state))
        assert [*cluster.nodes.names] == ["1", "2", "3", "4"]
        assert up(cluster) == ["1", "2"]
        racks = [cluster.topology.domain_name(0, d) for d in cluster.topology.domain[0]]
        assert racks == ["rack 1", "rack 2", "rack 3", "rack 4"]
        assert not any("sign of life" in one for one in notes(cluster))

    def test_nobody_answers(self):
        cluster = read(LAGGING, answers(b1="silent", b2="silent", b3="silent"))
        assert up(cluster) == []

    def test_two_files_that_differ_are_named(self):
        found = faults_of(IN_SYNC, answers(b1="up"), answers(b1="silent"))
        assert found == [("<bytes>:1", 1)]

    def test_a_guard_says_that_who_does_not_answer_is_dead(self, tmp_path):
        cluster = read(IN_SYNC, answers(b1="up", b2="up", b3="up", b4="up"))
        node = cluster.placement.node.copy()
        node[2] = 3
        target = cluster.placement.replaced(node, cluster.placement.leader)
        folder = ek.write_plan_folder(ek.plan(cluster, target), tmp_path / "move")
        found = {
            state: guard(folder, [
                Document("described.txt", IN_SYNC),
                Document("answers.txt", answers(b1="up", b2="up", b3="up", b4=state)),
            ])
            for state in ("up", "silent", "fenced")
        }  # fmt: skip
        assert found["up"].word == "ready"
        for state in ("silent", "fenced"):
            assert found[state].differences == ("4: is dead, and the plan needs it",)


class TestGuesses:
    JOINING = KNOWN + (
        b"\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 4,5,1,2,3\tIsr: 1,2\t"
        b"Adding Replicas: 4,5\tRemoving Replicas: 1,2\n"
        b"\tTopic: a\tPartition: 1\tLeader: 2\tReplicas: 2,3,1\tIsr: 2,1\n"
    )

    def test_who_only_joins_is_up_and_noted_so(self):
        cluster = read(self.JOINING)
        assert up(cluster) == ["1", "2", "4", "5"]
        assert "brokers 4, 5, which only join" in noted(cluster, "no sign of life of brokers 4")
        assert "count as dead" in noted(cluster, "no sign of life of brokers 3, which lead nothing")

    def test_who_joins_and_lists_no_log_dirs_where_others_do_is_down(self):
        held = {"a-0": 1, "a-1": 1}
        cluster = read(self.JOINING, listing({1: held, 2: held, 3: held, 4: {"a-0": 1}}))
        assert up(cluster) == ["1", "2", "3", "4"]
        assert "count as dead" in noted(cluster, "no sign of life of brokers 5")

    def test_what_is_told_is_no_guess(self):
        table = b"broker,state\n3,down\n4,up\n"
        found = notes(read(self.JOINING, table))
        assert [one for one in found if "sign of life" in one] == [
            one for one in found if one.startswith("no sign of life of brokers 5,")
        ]
        assert not any("sign of life" in one for one in notes(
            registry.read([self.JOINING], format="kafka", offline=[3])
        ))  # fmt: skip

    def test_a_guess_is_kept_with_the_cluster_that_is_written(self, tmp_path):
        cluster = read(self.JOINING)
        ek.write(cluster, tmp_path / "now.rows.json")
        assert notes(ek.read(tmp_path / "now.rows.json")) == notes(cluster)
        all_up = cluster.replace(alive=[True] * 5)
        assert not any("count as dead" in one for one in notes(all_up))

    @pytest.mark.parametrize("words", [b"LiveObservers: 3,4", b"Observers: 3,4"])
    def test_observers_are_not_dead(self, words):
        cluster = read(
            b"Topic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2,3,4\tIsr: 1,2\tOffline: \t" + words
        )
        assert up(cluster) == ["1", "2", "3", "4"]
        assert cluster.placement.node.tolist() == [0, 1, 2, 3]
        assert "there are 2:" in noted(cluster, "no difference between replicas and observers")
        assert any("3, 4, which" in one for one in notes(cluster)) == words.startswith(b"Obs")


class TestUnmeasured:
    OTHER = b"Topic: b\tPartition: 0\tLeader: 2\tReplicas: 2,3\tIsr: 2,3\n"

    def test_partitions_that_only_other_brokers_hold_are_counted(self):
        cluster = read(LAGGING + self.OTHER, listing({1: {"a-0": 100, "a-1": 100}}))
        assert cluster.partitions.load.voter[:, 1].tolist() == [100, 100, 0]
        assert "log dirs of all brokers" in noted(cluster, "no size of 1 of 3 partitions")
        whole = {"a-0": 100, "a-1": 100}
        full = read(LAGGING + self.OTHER, listing({1: whole, 2: whole | {"b-0": 0}}))
        assert not any(one.startswith("no size") for one in notes(full))

    def test_a_topic_that_is_younger_than_the_list_has_no_size(self):
        held = {"a-0": 100, "a-1": 100}
        cluster = read(IN_SYNC + self.OTHER, listing({1: held, 2: held, 3: held}))
        assert noted(cluster, "no size of 1 of 3 partitions")
        del held["a-1"]
        found = faults_of(IN_SYNC, listing({1: held, 2: held, 3: held}))
        assert found == [("<bytes>:3", "a-1")]

    def test_loads_of_some(self):
        cluster = read(IN_SYNC, b"topic,partition,cpu\na,0,5\n")
        assert noted(cluster, "no cpu of 1 of 2 partitions")

    def test_capacities_of_some_brokers(self):
        cluster = read(IN_SYNC, b"broker,disk\n1,5TB\n2,\n3,5TB\n")
        assert noted(cluster, "no capacity of disk of brokers 2")


class TestDescribedNowhere:
    """Internal topics, all but the one that was asked for, and those made meanwhile."""

    OWN = {"a-0": 100, "a-1": 200}
    LISTED = listing({
        1: OWN | {"__consumer_offsets-0": 40, "b-c-3": 2}, 2: OWN, 3: OWN | {"b-c-3": 10**9},
    })  # fmt: skip

    def test_they_are_no_partitions_and_noted(self):
        cluster = read(IN_SYNC, self.LISTED)
        assert [*cluster.partitions.names] == ["a-0", "a-1"]
        note = noted(cluster, "no description of topics that log dirs hold")
        assert "(__consumer_offsets, b-c): they stay where they are, on a broker that is d" in note
        assert "1 GB (1 GB on 3, 42B on 1) are not counted, for want of capacities" in note

    def test_what_they_take_is_taken_off_where_capacities_are_told(self):
        cluster = read(IN_SYNC, self.LISTED, b"broker,disk\n1,1000\n2,1000\n3,1000\n")
        assert cluster.nodes.capacity[:, 1].tolist() == [958, 1000, 0]
        note = noted(cluster, "no description of topics that log dirs hold")
        assert "capacities of disk are less by 1 GB (1 GB on 3, 42B on 1)" in note

    def test_nothing_in_common_is_a_contradiction(self):
        strange = listing({1: {"x-0": 1}})
        assert faults_of(IN_SYNC, strange) == [
            ("<bytes>: brokers[0].logDirs[0].partitions[0].partition", "x-0")
        ]
        assert faults_of(IN_SYNC, b"topic,cpu\nx,1\ny,2\n") == [
            ("<bytes>:2: topic", "x"), ("<bytes>:3: topic", "y"),
        ]  # fmt: skip

    def test_loads_of_other_topics_are_noted(self):
        cluster = read(IN_SYNC, b"topic,partition,cpu\na,,4\n__consumer_offsets,0,9\nb,,9\n")
        assert cluster.partitions.load.voter[:, 1].tolist() == [2, 2]
        assert "(__consumer_offsets, b)" in noted(cluster, "no description of topics that have")

    def test_a_partition_that_a_described_topic_does_not_have_is_one_of_them(self):
        cluster = read(IN_SYNC, listing({1: self.OWN | {"a-2": 7}}))
        assert "(7B on 1)" in noted(cluster, "no description of topics that log dirs hold (a)")
        assert faults_of(IN_SYNC, b"topic,partition,cpu\na,2,9\n") == [("<bytes>:2: topic", "a-2")]


class TestRackLines:
    @pytest.mark.parametrize(
        "line", [b'3: "rc"', b"3: 'rc'", b'3,"rc"', b'3 "rc"', b"3 rc", b"3,rc", b"3=rc"]
    )
    def test_quotes_are_no_part_of_a_rack(self, line):
        cluster = read(IN_SYNC, b"1: ra\n2: rb\n" + line)
        assert cluster.topology.domain_name(0, cluster.topology.domain[0][2]) == "rc"

    def test_blanks_and_commas_may_stand_in_quotes(self):
        cluster = read(IN_SYNC, b'1 "r, a"\n2, r b\n3: dc1:r3\n')
        names = [cluster.topology.domain_name(0, d) for d in cluster.topology.domain[0]]
        assert names == ["r, a", "r b", "dc1:r3"]

    @pytest.mark.parametrize("line", ["ra,x", "ra x", '"ra', "ra'", "ra # spare"])
    def test_what_is_not_one_cell_is_refused(self, line):
        dividers = " " if " " in line else " ,:"
        for mark in dividers:
            racks = f"1{mark}ra\n2{mark}rb\n3{mark}{line}\n".encode()
            assert ("<bytes>:3", line) in faults_of(IN_SYNC, racks)


class TestLeadersBesideADeadBroker:
    """Kafka refuses a list that names a dead broker, and elects only the first of a list."""

    HEAD = "Topic: a\tPartitionCount: {}\tReplicationFactor: 3\tConfigs: \n"
    ROW = "\tTopic: a\tPartition: {}\tLeader: {}\tReplicas: {}\tIsr: 2,3\n"

    def described(self, *rows, brokers=()):
        lines = (self.ROW.format(p, *row) for p, row in enumerate(rows))
        found = read("".join([self.HEAD.format(len(rows)), *lines]).encode(), *brokers)
        assert "1" not in up(found)
        return found

    def changes(self, cluster, result):
        """Return what is counted, and the partitions of the lists and elections written."""
        files = registry.find("kafka").encode(cluster, result.placement, Path("r.json"))
        lists, _, elections = (json.loads(one)["partitions"] for one in files.values())
        numbers = [[one["partition"] for one in rows] for rows in (lists, elections)]
        return len(result.leader_changes), *numbers

    @pytest.mark.parametrize("method", ["balance", "leaders"])
    def test_no_change_is_counted_that_no_list_can_make(self, method):
        cluster = self.described(*[(2, one) for one in ("1,2,3", "2,3,1", "1,2,3", "2,3,1")])
        goals = {} if method == "leaders" else {"goals": ek.Goals(leaders=0.1)}
        result = ek.solve(cluster, method=method, **goals)
        assert self.changes(cluster, result) == (0, [], [])
        assert any(
            "4 partitions (a-0, a-1, a-2, a-3) keep their replicas and leaders" in one
            for one in result.warnings
        )

    def test_a_broker_that_is_declared_dead_blocks_its_lists(self):
        rows = [self.ROW.format(p, 2, "2,3,1").replace("Isr: 2,3", "Isr: 2,3,1") for p in range(6)]
        cluster = read((self.HEAD.format(6) + "".join(rows)).encode()).down("1")
        result = ek.solve(cluster, goals=ek.Goals(leaders=0.1))
        assert self.changes(cluster, result) == (0, [], [])

    def test_a_broker_that_is_to_lead_nothing_leads_on(self):
        cluster = self.described((2, "1,2,3"), (2, "2,3,1"))
        nodes = cluster.nodes
        leads = nodes.leads & np.array([one != "2" for one in nodes.names])
        result = ek.solve(cluster.replace(leads=leads), goals=ek.Goals(leaders=0.1))
        assert self.changes(cluster, result) == (0, [], [])
        assert not result.success

    def test_the_preferred_leader_is_elected_within_the_list(self):
        cluster = self.described((2, "2,3,1"), (2, "3,2,1"))
        result = ek.solve(cluster, goals=ek.Goals(leaders=0.1))
        assert self.changes(cluster, result) == (1, [], [1])
        assert not any("keep their replicas" in one for one in result.warnings)
        plan = ek.plan(cluster, result, protocol="kafka")
        assert (plan.end.leader_node[1], len(plan.blocked)) == (2, 0)

    def test_no_replica_moves_in_a_list_that_keeps_the_dead_broker(self):
        beside = [self.ROW.format(p, 2, "2,3") for p in range(8)]
        beside.insert(0, self.HEAD.format(8).replace("Factor: 3", "Factor: 2"))
        brokers = answers(b1="silent", **{f"b{b}": "up" for b in range(2, 6)})
        for b, rack in zip(range(1, 6), b"abcbc", strict=True):
            brokers = brokers.replace(b"rack: rack %d " % b, b"rack: %c " % rack)
        rows = [self.ROW.format(p, 2, "1,2,3") for p in range(4)]
        described = "".join([self.HEAD.format(4), *rows])
        described += "".join(beside).replace("Topic: a", "Topic: b")
        cluster = read(described.encode(), brokers).replace(spread={"rack": 1})
        assert "1" not in up(cluster)
        result = ek.solve(cluster, goals=ek.Goals(level=0.05, leaders=0.05))
        assert {one.partition[0] for one in result.moves} == {"b"}
        counted, lists, _ = self.changes(cluster, result)
        assert counted > 0
        assert len(lists) == len({
            one.partition for one in (*result.moves, *result.leader_changes)
        })  # fmt: skip

    def test_leaders_change_where_the_dead_broker_is_replaced(self):
        brokers = answers(b1="silent", b2="up", b3="up", b4="up").replace(b"rack: rack", b"rack: n")
        cluster = self.described(*[(2, "2,3,1")] * 4, brokers=[brokers])
        result = ek.solve(cluster, goals=ek.Goals(leaders=0.1))
        counted, lists, elections = self.changes(cluster, result)
        assert counted == len(elections) > 0
        assert lists == [0, 1, 2, 3]


def test_partitions_under_reassignment_that_no_file_describes_are_noted():
    verified = (
        b"Status of partition reassignment:\n"
        b"Reassignment of partition a-0 is still in progress.\n"
        b"Reassignment of partition b-3 is still in progress.\n"
    )
    found = noted(read(IN_SYNC, verified), "1 partition under reassignment (b-3)")
    assert found.endswith("that no file describes: what they add to their brokers is not counted")
    ended = verified.replace(b"b-3", b"a-1")
    assert not any("no file describes" in one for one in notes(read(IN_SYNC, ended)))
