"""Answers of Longhorn's API and tables of kubectl: what is malformed, and what is given twice."""

import json

import pytest

from evenkeel.model.errors import InvalidInput
from evenkeel.systems import registry

ALLOWS = {"allowScheduling": True}
DISK = ALLOWS | {"diskUUID": "u1", "storageMaximum": 10**9, "storageAvailable": 10**9}
NODE = ALLOWS | {"type": "node", "name": "n1", "disks": {"d": DISK}}
COPY = {"name": "v-r-1", "hostId": "n1", "diskID": "u1", "mode": "RW", "running": True}
VOLUME = {
    "type": "volume", "name": "v", "size": "10", "numberOfReplicas": 1, "state": "attached",
    "controllers": [{"hostId": "n1", "actualSize": "5"}], "replicas": [COPY],
}  # fmt: skip
RESOURCE = {
    "apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": {"name": "n1"},
    "spec": ALLOWS | {"disks": {"d": ALLOWS}}, "status": {"diskStatus": {"d": DISK}},
}  # fmt: skip

VOLUMES = "NAME  STATE     ROBUSTNESS  SIZE  NODE\nv     attached  healthy     10    n1\n"
REPLICAS = "NAME   STATE    NODE  DISK\nv-r-1  running  n1    u1\n"
NODES = "NAME  READY  ALLOWSCHEDULING  SCHEDULABLE\nn1    True   true             True\n"


def answered(*parts):
    return json.dumps({"data": parts}).encode()


def tables(*texts):
    return "\n".join(texts).encode()


def read(*sources):
    """The disks, what is on which of them, and the notes."""
    cluster = registry.read([*sources])
    notes = " ".join(registry.find("longhorn").left_out(cluster))
    return [*cluster.nodes.names], cluster.placement.node.tolist(), notes


@pytest.mark.parametrize(
    ("field", "value", "place"),
    [
        ("controllers", 5, "controllers"),
        ("controllers", ["x"], "controllers[0]"),
        ("controllers", [None], "controllers[0]"),
        ("controllers", [{"hostId": 5}], "controllers[0].hostId"),
        ("controllers", [{"actualSize": "1" * 5000}], "controllers[0].actualSize"),
        ("controllers", [{"actualSize": "x"}], "controllers[0].actualSize"),
        ("controllers", [{"actualSize": -1}], "status.actualSize"),
        ("replicas", 5, "replicas"),
        ("replicas", ["x"], "replicas[0]"),
        ("replicas", [COPY | {"failedAt": 5}], "spec.failedAt"),
        ("name", ["x"], "metadata.name"),
        ("numberOfReplicas", "x", "spec.numberOfReplicas"),
    ],
)
def test_malformed_answers_are_faults_with_their_place(field, value, place):
    with pytest.raises(InvalidInput) as caught:
        registry.read(answered(NODE, VOLUME | {field: value}))
    assert caught.value.faults[0].path == f"<bytes>: data[1].{place}"


def test_entries_of_answers_are_resources():
    with pytest.raises(InvalidInput, match=r"data\[0\]: must be a resource"):
        registry.read(answered(5, NODE, VOLUME))


@pytest.mark.parametrize("field", ["controllers", "replicas"])
def test_a_volume_without_parts_is_read(field):
    assert read(answered(NODE, VOLUME | {field: None}))[0] == ["n1/d"]


TWICE = "given more than once: {}: resources count before answers"
BESIDE = "tables beside resources or answers, which count alone"


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("sources", "disk", "note"),
    [
        ((json.dumps(RESOURCE).encode(), tables(VOLUMES, REPLICAS)), "n1/d", "volumes count as"),
        ((json.dumps(RESOURCE).encode(), tables(VOLUMES, REPLICAS, NODES)), "n1/d", "Node n1"),
        ((answered(NODE), tables(VOLUMES, REPLICAS, NODES)), "n1/d", TWICE.format("Node n1")),
        ((json.dumps(RESOURCE).encode(), answered(NODE, VOLUME)), "n1/d", TWICE.format("Node n1")),
        ((answered(VOLUME), tables(NODES)), "n1/u1", BESIDE),
        ((answered(VOLUME), tables(VOLUMES, REPLICAS)), "n1/u1", BESIDE),
        ((answered(VOLUME, NODE), answered(NODE)), "n1/d", TWICE.format("Node n1")),
    ],
)
def test_what_states_most_counts(sources, disk, note, turned):
    disks, node, notes = read(*sources[:: -1 if turned else 1])
    assert (disks, node) == ([disk], [0])
    assert note in notes and "no patch is written" in notes
    assert "disks count as alike" not in notes or disk == "n1/u1"


def test_replicas_in_tables_on_disks_that_nodes_lack_are_noted():
    more = REPLICAS + "w-r-2  running  n1    u2\nx-r-3  running  n2    u3\n"
    disks, node, notes = read(json.dumps(RESOURCE).encode(), tables(VOLUMES, more))
    assert (disks, node) == (["n1/d", "n2/u3"], [0, -1, 1])
    assert "no disk u2 of n1 (w-r-2): its replicas count as lost" in notes


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("NAME   STATE    ROBUSTNESS\npvc-2  unknown  faulted\n", "no replica: pvc-2"),
        ("NAME   STATE    DISK\nw-r-1  running  u1\n", "columns NODE (w-r-1)"),
        ("NAME   ROBUSTNESS\npvc-2  faulted\n", "columns STATE (pvc-2)"),
    ],
)
def test_rows_that_do_not_count_are_noted(text, note):
    disks, node, notes = read(tables(VOLUMES, REPLICAS, text))
    assert (disks, node) == (["n1/u1"], [0]) and note in notes


@pytest.mark.parametrize("stated", [True, False])
def test_a_node_counts_as_one_disk_where_columns_leave_disks_out(stated):
    chosen = tables("NAME          STATE    NODE\nw-r-0000000a  running  n1\n")
    if stated:
        disks, node, notes = read(json.dumps(RESOURCE).encode(), tables(VOLUMES, REPLICAS), chosen)
        assert (disks, node) == (["n1/d"], [0]) and "columns DISK (w-r-0000000a)" in notes
    else:
        chosen += b"w-r-0000000b  stopped  <none>\n"
        assert read(chosen)[:2] == (["n1/disk of n1"], [0, -1])


@pytest.mark.parametrize(
    ("text", "node", "note"),
    [
        ("NAME          NODE  DISK\nw-r-0000000a  n1    u1\nw-r-0000000b  <none>  <none>\n",
         [0, -1], "no states of replicas in tables"),
        ("NODE  DISK  REPLICA       STATE\nn1    u1    w-r-0000000a  running\n",
         [0], "count as stopped long ago"),
        ("VOLUME  NAME          NODE  DISK  STATE\nw       w-r-0000000a  n1    u1    running\n",
         [0], "count as stopped long ago"),
        ("a@b:~$ kl get replica -w --output-watch-events\n"
         "EVENT     NAME          DATA ENGINE  STATE    NODE  DISK  INSTANCEMANAGER\n"
         "ADDED     w-r-0000000a  v1           stopped                     \n"
         "ADDED     w-r-0000000b  v1           running  n2    u2    im-2\n"
         "MODIFIED  w-r-0000000a  v1           running  n1    u1    im-1\n"
         "DELETED   w-r-0000000b  v1           stopped  n2    u2\n^Ca@b:~$ kl get volume\n",
         [0], "2 rows of tables come again"),
    ],
)  # fmt: skip
def test_columns_that_were_chosen_and_events_are_read(text, node, note):
    disks, found, notes = read(text.encode())
    assert (disks, found) == (["n1/u1"], node)
    assert note in notes and "do not fit" not in notes


def test_sizes_in_tables_are_bytes():
    with pytest.raises(InvalidInput, match="size"):
        registry.read(tables(VOLUMES.replace("10    n1", "5" * 5000 + " n1"), REPLICAS))
