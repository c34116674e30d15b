"""Loads measured elsewhere: answers of Prometheus and tables, for clusters of any system."""

import json
import time

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.cli import main

NOW = 1700000000.0


def answer(*series, kind="vector"):
    """What Prometheus returns: labels, and a value or several."""
    rows = [
        {"metric": labels, "value": [NOW, value]} if kind == "vector"
        else {"metric": labels, "values": [[NOW - 60 * back, text] for back, text in value]}
        for labels, value in series
    ]  # fmt: skip
    data = {"status": "success", "data": {"resultType": kind, "result": rows}}
    return json.dumps(data).encode()


def topics(**given):
    """Two topics of two partitions, one with a dot in its name, led by n0 and n1 in turn."""
    names = ["orders-0", "orders-1", "clicks.eu-0", "clicks.eu-1"]
    return ek.Cluster.from_arrays(**{
        "capacity": [[9.0]] * 3, "load": [[1.0], [3.0], [1.0], [1.0]], "dimensions": ["disk"],
        "bytes": "disk", "placement": [[0, 1], [1, 2], [0, 2], [1, 0]],
        "group": ["orders", "orders", "clicks.eu", "clicks.eu"], "partition_names": names,
    } | given)  # fmt: skip


def of(topic, partition, **more):
    return {"topic": topic, "partition": str(partition), **more}


FOUR = [(of("orders", 0), "1"), (of("orders", 1), "2"), (of("clicks.eu", 0), "3"),
        (of("clicks.eu", 1), "4")]  # fmt: skip


def loads(found, dimension="qps", role="voter"):
    d = found.cluster.dimensions.index(dimension)
    return getattr(found.cluster.partitions.load, role)[:, d].tolist()


def test_each_partition_takes_the_value_of_its_series():
    found = ek.read_loads(topics(), answer(*FOUR), "qps")
    assert loads(found) == loads(found, role="leader") == [1.0, 2.0, 3.0, 4.0]
    assert found.cluster.nodes.capacity[:, 1].tolist() == [20.0] * 3
    assert "no capacities" in found.notes[0]
    assert ek.solve(found.cluster).status in ("optimal", "feasible", "missed")


def test_a_result_alone_as_promtool_prints_it():
    alone = json.dumps(json.loads(answer(*FOUR))["data"]["result"]).encode()
    assert loads(ek.read_loads(topics(), alone, "qps")) == [1.0, 2.0, 3.0, 4.0]


def test_a_cluster_that_was_measured_before_is_measured_anew():
    cluster = topics()
    before = ek.solve(cluster).levelness_before.loads
    found = ek.read_loads(cluster, answer(*((labels, "10") for labels, _ in FOUR)), "disk")
    after = ek.solve(found.cluster).levelness_before.loads
    assert (before.sum(), after.sum()) == (12.0, 80.0)


def test_what_only_leaders_carry():
    found = ek.read_loads(topics(), answer(*FOUR), "leader_qps")
    assert loads(found, role="leader") == [1.0, 2.0, 3.0, 4.0]
    assert loads(found) == [0.0] * 4


def test_a_known_metric_replaces_the_loads_of_its_dimension():
    named = [({"__name__": "kafka_log_log_size", **labels}, value) for labels, value in FOUR]
    found = ek.read_loads(topics(), answer(*named))
    assert (found.cluster.dimensions, loads(found, "disk")) == (("disk",), [1.0, 2.0, 3.0, 4.0])
    assert found.notes == ()


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-1", ""])
def test_what_is_no_amount_is_listed_and_never_zero(text):
    series = [(labels, text if i == 1 else value) for i, (labels, value) in enumerate(FOUR)]
    found = ek.read_loads(topics(), answer(*series), "qps")
    assert loads(found) == [1.0, 1.0, 3.0, 4.0], "the mean of its topic"
    assert any("1 partition (orders-1)" in note for note in found.notes)
    kept = ek.read_loads(topics(), answer(*series), "disk")
    assert loads(kept, "disk") == [1.0, 3.0, 3.0, 4.0], "what it had"
    assert any("orders-1" in note for note in kept.notes)


def test_a_partition_without_a_series_is_listed():
    found = ek.read_loads(topics(), answer(*FOUR[:2]), "qps")
    assert loads(found) == [1.0, 2.0, 1.5, 1.5]
    assert any("clicks.eu-0, clicks.eu-1" in note for note in found.notes)


@pytest.mark.parametrize(
    ("take", "value"), [("last", 4.0), ("mean", 4.0), ("max", 6.0), ("p50", 4.0), ("p100", 6.0)]
)
def test_of_several_samples(take, value):
    series = [(labels, [(2, "2"), (1, "6"), (0, "4")]) for labels, _ in FOUR]
    found = ek.read_loads(topics(), answer(*series, kind="matrix"), "qps", take=take)
    assert loads(found) == [value] * 4


def test_a_series_that_ended_counts_where_there_is_no_other_and_is_named():
    fresh = [(labels, [(1, "5"), (0, "5")]) for labels, _ in FOUR[1:]]
    ended = [(of("orders", 0), [(9, "7"), (8, "8")]), (of("orders", 1), [(9, "70")])]
    for series in ([*fresh, *ended], [*ended, *fresh]):
        found = ek.read_loads(topics(), answer(*series, kind="matrix"), "qps")
        assert loads(found) == [8.0, 5.0, 5.0, 5.0]
        assert any("1 partition (orders-0) is older" in note for note in found.notes)


def test_dots_that_a_metric_has_as_underscores():
    series = [*FOUR[:2], (of("clicks_eu", 0), "3"), (of("clicks_eu", 1), "4")]
    assert loads(ek.read_loads(topics(), answer(*series), "qps")) == [1.0, 2.0, 3.0, 4.0]


def test_brokers_that_all_report_a_partition():
    series = [
        (of("orders", 0, instance="b1"), "9"),
        (of("orders", 0, instance="b2"), "7"),
        *FOUR[1:],
    ]
    found = ek.read_loads(topics(), answer(*series), "qps")
    assert loads(found)[0] == 9.0
    assert any("the largest counts" in note for note in found.notes)


def test_a_node_tells_the_leader_from_others():
    series = [(of("orders", 0, broker="n0"), "9"), (of("orders", 0, broker="n1"), "2"), *FOUR[1:]]
    labels = {"topic": "topic", "partition": "partition", "broker": "broker"}
    found = ek.read_loads(topics(), answer(*series), "qps", labels=labels)
    assert (loads(found, role="leader")[0], loads(found)[0]) == (9.0, 2.0)


def test_the_value_of_a_topic_is_shared_out_by_size():
    series = [({"topic": "orders", "instance": "b1"}, "6"), ({"topic": "orders"}, "2"),
              ({"topic": "clicks.eu"}, "4")]  # fmt: skip
    found = ek.read_loads(topics(), answer(*series), "qps")
    assert loads(found) == [2.0, 6.0, 2.0, 2.0]
    assert any("shared out by size" in note for note in found.notes)
    even = ek.read_loads(topics(bytes=None), answer(*series), "qps")
    assert loads(even) == [4.0, 4.0, 2.0, 2.0]


def test_the_value_of_a_topic_on_a_broker_is_of_what_is_led_there():
    labels = {"topic": "topic", "broker": "broker"}
    given = [("orders", "n0", "6"), ("orders", "n1", "4"), ("clicks.eu", "n0", "5"),
            ("clicks.eu", "b9", "1")]  # fmt: skip
    series = [({"topic": topic, "broker": broker}, value) for topic, broker, value in given]
    cluster = topics().apply(ek.Changes(placement=[[0, 1], [1, 0], [1, 0], [1, 0]]))
    found = ek.read_loads(cluster, answer(*series), "qps", labels=labels)
    assert loads(found, role="leader") == [6.0, 4.0, 0.5, 0.5]
    assert any("clicks.eu on n0: no partition is led there" in note for note in found.notes)
    assert any("broker b9: no node of the cluster" in note for note in found.notes)


def test_labels_that_some_series_lack():
    found = ek.read_loads(topics(), answer(*FOUR, ({"instance": "b1"}, "10")), "qps")
    assert loads(found) == [1.0, 2.0, 3.0, 4.0]
    assert any("1 series of no partition" in note for note in found.notes)


@pytest.mark.parametrize("word", ["segment", "stream", "stream_name"])
def test_what_other_systems_call_a_partition(word):
    found = ek.read_loads(topics(), f"{word},qps\norders-0,5\norders-1,7\n".encode())
    assert loads(found)[:2] == [5.0, 7.0]


def test_loads_of_a_dimension_without_capacities_count():
    cluster = topics().replace(capacity=[[np.inf]] * 3)
    with pytest.raises(ek.InvalidInput, match=r"goals.level: no node has a capacity of it"):
        ek.solve(cluster, goals=ek.Goals(level={"disk": 0.1}))
    found = ek.read_loads(cluster, answer(*FOUR), "disk")
    assert any("no capacities" in note for note in found.notes)
    assert not ek.solve(found.cluster, goals=ek.Goals(level={"disk": 0.0})).audit.hard


def test_labels_of_other_names():
    series = [({"t": one["topic"], "p": one["partition"]}, value) for one, value in FOUR]
    with pytest.raises(ek.InvalidInput, match="no label of a partition"):
        ek.read_loads(topics(), answer(*series), "qps")
    labels = {"topic": "t", "partition": "p"}
    assert loads(ek.read_loads(topics(), answer(*series), "qps", labels=labels))[3] == 4.0


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        (answer((of("others", 0), "1")), {"dimension": "qps"}, "of no partition"),
        (answer(*FOUR), {}, "qps=FILE"),
        (answer(), {"dimension": "qps"}, "no series"),
        (b'{"status": "error", "error": "boom"}', {"dimension": "qps"}, "boom"),
        (answer(*FOUR)[:-9], {"dimension": "qps"}, "truncated"),
        (answer(*FOUR), {"dimension": "qps", "take": "p200"}, "percentile"),
        (answer(*FOUR), {"dimension": "qps", "labels": {"topik": "topic"}}, "topic"),
        (answer(*FOUR), {"dimension": "qps", "labels": {"topic": "nope"}}, "nope"),
        (b"topic,partition\norders,0\n", {}, "no column"),
    ],
)
def test_what_cannot_be_used_is_said(source, more, message):
    with pytest.raises(ek.InvalidInput, match=message):
        ek.read_loads(topics(), source, **more)


def test_a_table_has_a_column_for_each_dimension():
    head = b"topic,partition,qps,leader_cpu\n"
    table = head + b"orders,0,1,10\norders,1,2,\nclicks.eu,0,3,30\nclicks.eu,1,4,40\n"
    found = ek.read_loads(topics(), table)
    assert found.cluster.dimensions == ("disk", "qps", "cpu")
    assert loads(found) == [1.0, 2.0, 3.0, 4.0]
    assert loads(found, "cpu", "leader") == [10.0, 10.0, 30.0, 40.0]
    assert loads(found, "cpu") == [0.0] * 4
    assert any("cpu" in note and "orders-1" in note for note in found.notes)


@pytest.mark.parametrize(
    ("files", "head", "row"),
    [
        (["elasticsearch/shards.json", "elasticsearch/nodes.json"], "index,shard", "logs-2026,1"),
        (["rabbitmq/queues.json"], "vhost,queue", "/,orders.1"),
        (["kubernetes/nodes.json", "kubernetes/pods.json"], "namespace,workload", "shop,db"),
        (["kafka_describe.txt"], "topic,partition", "clicks-eu,1"),
        (["helix"], "resource,partition", "MyDB,0"),
        (["helix"], "partition", "MyDB_0"),
        (["swift/object.ring.gz"], "partition", "p7"),
    ],
)
def test_clusters_of_every_system_take_loads(files, head, row):
    cluster = ek.read(*(f"tests/data/formats/{one}" for one in files))
    found = ek.read_loads(cluster, f"{head},qps\n{row},12\n".encode())
    d = found.cluster.dimensions.index("qps")
    assert (found.cluster.partitions.load.voter[:, d] == 12.0).any()
    assert any(note.endswith("counts") for note in found.notes)


def test_the_command_line_reads_and_notes_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ek.write(topics(), "c.npz")
    (tmp_path / "q.json").write_bytes(answer(*FOUR[:3]))
    words = ["--loads", "qps=q.json", "--label", "topic=topic,partition=partition"]
    assert main(["solve", "c.npz", *words, "-o", "d.npz", "--level", "none"]) == 0
    assert "clicks.eu-1" in capsys.readouterr().err
    assert ek.read("d.npz").dimensions == ("disk", "qps")
    assert main(["check", "c.npz", *words, "--level", "qps=1%", "-q"]) == 1
    assert main(["check", "c.npz", "--loads", "qps=q.json", "--label", "topic"]) == 2


def test_a_file_of_75_000_series_takes_half_a_second_of_cpu():
    count, of_each = 75_000, 150
    names = [f"t.{i // of_each}-{i % of_each}" for i in range(count)]
    cluster = ek.Cluster.from_arrays(
        capacity=[[1e9]] * 30, load=[[1.0]] * count, partition_names=names,
        placement=np.arange(count)[:, None] % 30, group=[f"t.{i // of_each}" for i in range(count)],
    )  # fmt: skip
    rows = [(of(f"t.{i // of_each}", i % of_each, job="kafka"), str(i)) for i in range(count)]
    given, best = answer(*rows), 9.0
    for _ in range(3):
        began = time.process_time()
        found = ek.read_loads(cluster, given, "qps")
        best = min(best, time.process_time() - began)
    assert loads(found)[-1] == count - 1.0
    assert best <= 0.5
