"""Tables beside Kafka's documents, and that what is read at once is what is read line by line."""

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.model.errors import InvalidInput
from evenkeel.model.placement import Flag
from evenkeel.systems import registry
from evenkeel.systems.documents import Document
from evenkeel.systems.kafka import cluster as kafka
from evenkeel.systems.kafka.documents import regular_rows
from tests.support import places
from tests.support.clusters import assert_same

DATA = places.DATA / "formats"
DESCRIBE = DATA / "kafka_describe.txt"


def faults_of(*sources):
    with pytest.raises(InvalidInput) as caught:
        registry.read(*sources, format="kafka")
    return [(fault.path, fault.value) for fault in caught.value.faults]


class TestLoads:
    @pytest.fixture
    def cluster(self):
        return registry.read(DESCRIBE, DATA / "kafka_loads.csv")

    def test_each_replica_and_the_one_that_leads(self, cluster):
        assert cluster.dimensions == ("replicas", "cpu", "network_in", "network_out")
        load = cluster.partitions.load
        names = list(cluster.partitions.names)
        assert load.voter[names.index("orders-0")].tolist() == [1, 1.5, 1000, 0]
        assert load.leader[names.index("orders-0")].tolist() == [1, 4, 1000, 3000]
        assert load.voter[names.index("orders-1"), 2] == 2000
        assert not load.leader[names.index("orders-2"), 1:].any()

    def test_a_topic_is_divided_over_its_partitions(self, cluster):
        load = cluster.partitions.load
        for p in (0, 1):
            assert load.voter[p].tolist() == [1, 1, 250, 0]
            assert load.leader[p].tolist() == [1, 1.5, 250, 0]

    def test_a_table_says_more_than_log_directories(self):
        files = [DESCRIBE, DATA / "kafka_logdirs.txt", b"topic,partition,size\norders,0,7\n"]
        disk = registry.read(files).partitions.load.voter[:, 1]
        assert disk.tolist() == [50, 0, 7, 2000, 300]

    def test_everything_wrong_is_listed_with_its_line(self):
        table = b"topic,partition,cpu\norders,0,x\norders,9,1\norders,0,-1\nnone,,1\norders\n"
        assert faults_of(DESCRIBE, table) == [
            ("<bytes>:6", "orders"),
            ("<bytes>:3: topic", "orders-9"),
            ("<bytes>:4: topic", "orders"),
            ("<bytes>:2: cpu", "x"),
            ("<bytes>:4: cpu", "-1"),
        ]


class TestColumns:
    @pytest.mark.parametrize(
        ("table", "title", "meant"),
        [(b"topic,partition,cpu,laeder_cpu\norders,0,1,2\n", "laeder_cpu", "leader_cpu"),
         (b"topic,partiton,cpu\norders,,1\n", "partiton", "partition"),
         (b"broker,rack,stat\n1,a,up\n", "stat", "state"),
         (b"broker,rack,Dsik\n1,a,2TB\n", "Dsik", "disk")],
    )  # fmt: skip
    def test_one_that_nobody_knows_is_named_with_the_closest(self, table, title, meant):
        with pytest.raises(InvalidInput) as caught:
            registry.read(DESCRIBE, table)
        first = caught.value.faults[0]
        assert first.path == f"<bytes>: {title}"
        assert f"did you mean {meant!r}" in first.message


class TestBrokers:
    def test_racks_states_and_capacities(self):
        cluster = registry.read(DESCRIBE, DATA / "kafka_brokers.csv")
        nodes = cluster.nodes
        assert list(nodes.names) == ["1", "2", "3", "4", "1001"]
        assert nodes.alive.tolist() == [True, True, True, True, False]
        assert nodes.keeps.tolist() == [True, False, True, True, False]
        assert nodes.accepts.tolist() == [True, False, True, False, False]
        assert cluster.dimensions == ("replicas", "disk", "cpu", "network_in")
        assert nodes.capacity[3, 1:].tolist() == [2e12, 200, 125e6]
        assert cluster.rules[0].spread == {"rack": 1}

    def test_a_state_that_is_not_told_is_shown_by_the_description(self):
        table = b"broker,rack\n1,a\n2,b\n3,c\n1001,a\n"
        cluster = registry.read(DESCRIBE, table)
        assert cluster.nodes.alive.tolist() == [True, True, True, False]

    def test_everything_wrong_is_listed_with_its_line(self):
        table = b"broker,state,disk\n1,upp,9\nx,,1\n1,,-2\n"
        assert faults_of(DESCRIBE, table)[:4] == [
            ("<bytes>:3: broker", "x"),
            ("<bytes>:2: state", "upp"),
            ("<bytes>:4: disk", "-2"),
            ("<bytes>:4: broker", 1),
        ]

    def test_only_brokers_that_answer_are_up(self):
        cluster = registry.read(DESCRIBE, DATA / "kafka_answers.txt")
        assert cluster.nodes.alive.tolist() == [True, True, True, False]
        names = [cluster.topology.domain_name(0, d) for d in cluster.topology.domain[0][:3]]
        assert names == ["rack-a", "rack-b", "rack-c"]
        answers = (DATA / "kafka_answers.txt").read_text()
        some = answers[answers.index("kafka-2") :].replace("rack-", "null").encode()
        assert registry.read(DESCRIBE, some).nodes.alive.tolist() == [False, True, True, False]


def line_by_line(monkeypatch, source):
    with monkeypatch.context() as patch:
        patch.setattr(kafka, "regular_rows", lambda document: None)
        return registry.read(source, format="kafka")


@pytest.mark.parametrize(
    "name", ["describe.txt", "describe_old.txt", "generate.txt", "reassignment.json"]
)
def test_what_is_read_at_once_is_what_is_read_line_by_line(monkeypatch, name):
    file = DATA / f"kafka_{name}"
    assert_same(registry.read(file), line_by_line(monkeypatch, file))
    assert (regular_rows(Document.load(file)) is None) == (name == "describe_old.txt")


topics = st.dictionaries(
    st.sampled_from(["a", "b", "b-c", "b.c", "0", "é"]),
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 30), min_size=1, max_size=4, unique=True),
            st.integers(0, 15), st.integers(-1, 3),
        ),
        min_size=1, max_size=4,
    ),
    min_size=1,
)  # fmt: skip


def description(given):
    lines = []
    for topic, rows in given.items():
        lines.append(
            f"Topic: {topic}\tPartitionCount: {len(rows)}\tReplicationFactor: 1\t"
            f"Configs: a=b,min.insync.replicas={len(rows)}"
        )
        for number, (brokers, mask, leads) in enumerate(rows):
            sync = [broker for i, broker in enumerate(brokers) if mask >> i & 1]
            leader = brokers[leads] if 0 <= leads < len(brokers) else "none"
            lists = [",".join(map(str, one)) for one in (brokers, sync)]
            lines.append(
                f"\tTopic: {topic}\tPartition: {number}\tLeader: {leader}\t"
                f"Replicas: {lists[0]}\tIsr: {lists[1]}"
            )
    return "\n".join(lines).encode() + b"\n"


@given(topics)
def test_any_description_is_read_at_once_as_line_by_line(given):
    data = description(given)
    with pytest.MonkeyPatch.context() as patch:
        slow = line_by_line(patch, data)
    assert regular_rows(Document("a", data)) is not None
    assert_same(registry.read(data), slow)


@pytest.mark.parametrize(
    "wrong",
    [
        ("Leader: 1", "Leader: 9"), ("Replicas: 1,2,3", "Replicas: 1,2,2"), ("Isr: 3,2", "Isr: 7"),
        ("Partition: 1", "Partition: 0"), ("Replicas: 1,2,3", "Replicas: 1,,3"),
        ("PartitionCount: 3", "PartitionCount: 4"), ("replicas=2", "replicas=x"),
        ("Replicas: 1,2,3", "Replicas: 1,2,3000000000"), ("Partition: 2", "Number: 2"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_left_to_who_can_name_it(wrong):
    text = DESCRIBE.read_text()
    assert wrong[0] in text
    data = text.replace(*wrong, 1).encode()
    assert regular_rows(Document("<bytes>", data)) is None
    path = faults_of(data)[0][0]
    assert path.startswith("<bytes>:")


def test_a_partition_that_lacks_its_size_is_named_by_its_line():
    logs = (DATA / "kafka_logdirs.txt").read_text().splitlines()[2]
    for broker in (held := json.loads(logs))["brokers"]:
        for folder in broker["logDirs"]:
            folder["partitions"] = [
                one for one in folder["partitions"] if one["partition"] != "orders-1"
            ]
    assert faults_of(DESCRIBE, json.dumps(held).encode()) == [(f"{DESCRIBE}:3", "orders-1")]


def test_a_large_description_is_read_in_pieces(monkeypatch):
    draw = random.Random(3)
    given = {
        f"t{i}": [(draw.sample(range(20), 3), 7, draw.randrange(-1, 3)) for _ in range(9)]
        for i in range(40)
    }
    whole = registry.read(description(given))
    monkeypatch.setattr("evenkeel.systems.kafka.rows.CHUNK", 500)
    assert_same(registry.read(description(given)), whole)
    caught_up = whole.placement.flags & Flag.CAUGHT_UP > 0
    assert np.count_nonzero(caught_up) == len(whole.placement.node)
