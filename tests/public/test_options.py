"""Options keep each other: none is dropped without a word."""

import json

import pytest

import evenkeel as ek


def test_new_brokers_are_filled_where_no_other_may_take_anything(public):
    case = public("kafka/fill-only-the-new")
    old = [word for n in range(1, 7) for word in ("--exclude", str(n))]
    answer = case.run(
        "solve", "described.txt", "logdirs.json", "racks.txt", "--add-nodes", "more.csv", *old,
        "--level", "disk=0.1", "--floor", "disk=0.1", "-o", "p.json",
    )  # fmt: skip
    assert answer.code == 0
    assert "disk at least 10.00% of capacity on nodes that take replicas" in answer.text
    assert "the mean of 11.11% less 10.00%" in answer.text  # of all nine, a ninth of the load
    before = {
        (row["topic"], row["partition"]): set(row["replicas"])
        for row in json.loads(case.written("p.rollback.json"))["partitions"]
    }
    moved = [
        set(row["replicas"]) - before[row["topic"], row["partition"]]
        for row in json.loads(case.written("p.json"))["partitions"]
    ]
    assert sum(map(len, moved)) >= 40
    assert set().union(*moved) <= {7, 8, 9}


PINS = [
    *((method, "helix/instance-dropped", "dump", "DB_2") for method in
      ("helix_auto", "helix_waged", "helix_crush", "helix_crushed", "helix_multiround", "balance")),
    *((method, "longhorn/two-large-replicas-on-one-node", "longhorn.json", "pvc-big")
      for method in ("longhorn", "balance")),
]  # fmt: skip


@pytest.mark.parametrize(("method", "name", "file", "partition"), PINS)
def test_every_method_keeps_pins(public, method, name, file, partition):
    cluster = ek.read(public(name).source / file)
    moved = {move.partition for move in ek.solve(cluster, method).moves}
    assert partition in moved
    result = ek.solve(cluster.pin(partition), method)
    assert partition not in {move.partition for move in result.moves}
    assert "pinned" not in result.audit.counts or not result.audit.counts["pinned"]


def test_a_plan_of_the_whole_longhorn_cluster_keeps_pins(public):
    cluster = ek.read(public("longhorn/two-large-replicas-on-one-node").source / "longhorn.json")
    options = ek.options.Longhorn(scope="cluster")
    assert ek.solve(cluster, "longhorn", options=options).moves
    assert not ek.solve(cluster.pin("pvc-big"), "longhorn", options=options).moves


def test_what_pinot_consumes_stays_by_every_method(public):
    cluster = ek.read(public("helix/pinot-table-on-one-server").source / "dump")
    for method in ("helix_auto", "helix_waged"):
        assert not ek.solve(cluster, method).audit.counts.get("pinned")
