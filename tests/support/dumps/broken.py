"""Small clusters, each broken in ways that real systems print: what is gone, null, or under way.

A way changes the documents of a healthy cluster and returns the words that its note has to name,
and the partitions that must stay. ``WAYS`` has them by system and by name.
"""

import copy
import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Documents = dict[str, Any]


class Told(NamedTuple):
    """What notes have to name, and which partitions must stay as they are."""

    named: tuple[str, ...] = ()
    still: tuple[str, ...] = ()


Way = Callable[[Documents], Any]

# ------------------------------------------------------------------------------------ Kafka


def kafka() -> Documents:
    """Return a topic of six partitions on the first three of four brokers, in four racks."""
    held = [(n % 3 + 1, (n + 1) % 3 + 1) for n in range(6)]
    folders = [
        {
            "broker": broker,
            "logDirs": [{"logDir": "/d", "error": None, "partitions": [
                {"partition": f"t-{p}", "size": 100, "offsetLag": 0, "isFuture": False}
                for p, own in enumerate(held) if broker in own
            ]}],
        }
        for broker in (1, 2, 3, 4)
    ]  # fmt: skip
    return {
        "head": "Topic: t\tTopicId: AAAAAAAAQAC1_wAAAAAAAA\tPartitionCount: 6\t"
        "ReplicationFactor: 2\tConfigs: ",
        "rows": [f"Leader: {a}\tReplicas: {a},{b}\tIsr: {a},{b}" for a, b in held],
        "racks": {1: "a", 2: "b", 3: "c", 4: "d"},
        "folders": {"version": 1, "brokers": folders},
        "capacity": {"brokerCapacities": [
            {"brokerId": str(n), "capacity": {"DISK": "1", "NW_IN": "9", "NW_OUT": "9"}}
            for n in (-1, 1, 2, 3, 4)
        ]},
        "before": "", "end": "\n",
    }  # fmt: skip


def kafka_files(told: Documents) -> list[bytes]:
    """Return the files."""
    rows = [f"\tTopic: t\tPartition: {p}\t{row}" for p, row in enumerate(told["rows"])]
    described = told["before"] + "\n".join([told["head"], *rows, ""])
    racks = "".join(f"{broker} {rack}\n" for broker, rack in told["racks"].items())
    texts = [described.replace("\n", told["end"]), racks]
    documents = [json.dumps(told["folders"]), json.dumps(told["capacity"])]
    return [one.encode() for one in texts + documents]


def row(p: int, text: str, *named: str, still: bool = False) -> Way:
    """Return a way that describes one partition otherwise."""

    def way(told: Documents) -> Told:
        told["rows"][p] = text
        return Told(named, (f"t-{p}",) if still else ())

    return way


KAFKA: dict[str, Way] = {
    "a leader that is none": row(1, "Leader: none\tReplicas: 2,3\tIsr: ", still=True),
    "a leader -1": row(1, "Leader: -1\tReplicas: 2,3\tIsr: ", still=True),
    "lists of version 4": row(2, "Leader: 3\tReplicas: 3,1\tIsr: 3,1\tElr: N/A\tLastKnownElr: N/A"),
    "an eligible leader": row(
        2, "Leader: none\tReplicas: 3,1\tIsr: \tElr: 3\tLastKnownElr: 1", still=True
    ),
    "a broker that is gone": row(3, "Leader: 1\tReplicas: 1,9\tIsr: 1", "9"),
    "a reassignment": row(
        4, "Leader: 2\tReplicas: 1,2,3\tIsr: 2,3\tAdding Replicas: 1\tRemoving Replicas: 3",
        "t-4", still=True,
    ),
    "a topic being deleted": lambda told: told.update(
        head=told["head"].replace("Configs", "MarkedForDeletion: true\tConfigs")
    ),
    "a warning of Java": lambda told: told.update(before="Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n"),
    "lines of Windows": lambda told: told.update(end="\r\n"),
    "a rack of nobody": lambda told: told["racks"].update({7: "a"}),
    "a directory that failed": lambda told: told["folders"]["brokers"][3]["logDirs"].append(
        {"logDir": "/e", "error": "org.apache.kafka.common.errors.KafkaStorageException",
         "partitions": []}
    ) or Told(("4",)),
    "a topic that no listing has": lambda told: _first(told).append(
        {"partition": "gone-0", "size": 5, "offsetLag": 0, "isFuture": False}
    ) or Told(("gone",)),
    "a copy between directories": lambda told: _first(told).append(
        {"partition": "t-0", "size": 5, "offsetLag": 0, "isFuture": True}
    ),
    "a new field": lambda told: told["folders"]["brokers"][0]["logDirs"][0].update(
        totalBytes=1000, usableBytes=500, isCordoned=False
    ),
    "capacities of a broker to come": lambda told: told["capacity"]["brokerCapacities"].append(
        {"brokerId": "8", "capacity": {"DISK": "1000", "CPU": {"num.cores": "4"}}}
    ) or Told(("8",)),
    "no capacity of a broker": lambda told: [
        told["capacity"]["brokerCapacities"].pop(0), told["capacity"]["brokerCapacities"].pop(0)
    ] and Told(("1",)),
}  # fmt: skip


def _first(told: Documents) -> list[Any]:
    found: list[Any] = told["folders"]["brokers"][0]["logDirs"][0]["partitions"]
    return found


# --------------------------------------------------------------------- documents of JSON only


def json_files(told: Documents) -> list[bytes]:
    """Return each document as a file."""
    return [json.dumps(one).encode() for one in told.values()]


def put(path: str, value: Any, *named: str, still: tuple[str, ...] = ()) -> Way:
    """Return a way that puts a value at a place such as ``shards/1/node``."""

    def way(told: Documents) -> Told:
        at: Any = told
        *above, last = [int(one) if one.isdigit() else one for one in path.split("/")]
        for key in above:
            at = at[key]
        if last == "+":
            at.append(copy.deepcopy(value))
        elif value is MISSING:
            del at[last]
        else:
            at[last] = copy.deepcopy(value)
        return Told(named, still)

    return way


MISSING = object()
"""Put at a place, takes away what is there."""


def elasticsearch() -> Documents:
    """Return an index of three shards on three of four nodes."""
    held = [(0, "p", 0), (0, "r", 1), (1, "p", 1), (1, "r", 2), (2, "p", 0), (2, "r", 1)]
    return {
        "shards": [
            {"index": "i", "shard": str(s), "prirep": kind, "state": "STARTED", "docs": "1",
             "store": "100", "ip": f"10.0.0.{n}", "id": f"x{n}", "node": f"n{n}"}
            for s, kind, n in held
        ],
        "nodes": {"_nodes": {"total": 4}, "cluster_name": "c", "nodes": {
            f"x{n}": {"name": f"n{n}", "transport_address": "a:1", "host": f"h{n}",
                      "ip": f"10.0.0.{n}", "roles": ["data", "master"],
                      "attributes": {"zone": "abcd"[n]}, "version": "8.4.1"}
            for n in range(4)
        }},
        "room": [
            {"shards": "2", "disk.indices": "200", "disk.used": "300", "disk.avail": "700",
             "disk.total": "1000", "disk.percent": "30", "host": f"h{n}", "ip": f"10.0.0.{n}",
             "node": f"n{n}"}
            for n in range(4)
        ],
        "cluster": {"persistent": {}, "transient": {}},
        "indices": {"i": {"settings": {"index.number_of_replicas": "1"}}},
    }  # fmt: skip


ROUTING = "cluster.routing.allocation."
ELASTICSEARCH: dict[str, Way] = {
    "an excluded node that is gone": put(f"cluster/persistent/{ROUTING}exclude._name", "gone"),
    "a setting that is null": put(f"cluster/persistent/{ROUTING}exclude._ip", None),
    "settings nested": put("cluster/transient/cluster", {"max_shards_per_node": 1000}),
    "awareness of what nobody has": put(
        f"cluster/persistent/{ROUTING}awareness.attributes", "rack_id", "rack_id"
    ),
    "settings of an index that is gone": put("indices/gone", {"settings": {"index.codec": "x"}}),
    "a shard on a node that is gone": put("shards/1/node", "n9", "n9"),
    "a shard nowhere": put("shards/3", {"index": "i", "shard": "1", "prirep": "r", "docs": None,
                                        "state": "UNASSIGNED", "store": None, "ip": None,
                                        "node": None, "id": None}),
    "a shard on its way": put("shards/4", {
        "index": "i", "shard": "2", "prirep": "p", "state": "RELOCATING", "docs": "1",
        "store": "100", "ip": "10.0.0.0", "id": "x0", "node": "n0 -> 10.0.0.3 x3 n3",
    }),
    "no size": put("shards/0/store", "-1b"),
    "new columns": put("shards/2/dataset", "100b"),
    "room of what has no node": put("room/+", {
        "shards": "2", "disk.indices": None, "disk.used": None, "disk.avail": None,
        "disk.total": None, "disk.percent": None, "host": None, "ip": None, "node": "UNASSIGNED",
    }),
    "room of a node that is gone": put("room/+", {
        "shards": "0", "disk.indices": "0", "disk.used": "1", "disk.total": "1000", "node": "n8",
    }, "n8"),
    "no room of a node": put("room/3", MISSING, "n3"),
    "figures that are -1": put(
        "room/0", {"disk.total": "-1", "disk.used": "-1", "disk.avail": "-1", "node": "n0"}, "n0"
    ),
    "a node that did not answer": put("nodes/_nodes", {"total": 5, "failed": 1}, "1"),
    "a node without attributes": put("nodes/nodes/x0/attributes", MISSING),
    "a node that only votes": put("nodes/nodes/x7", {
        "name": "m7", "transport_address": "a:1", "roles": ["master"], "version": "8.4.1",
    }),
}  # fmt: skip


def rabbitmq() -> Documents:
    """Return four quorum queues on three of four nodes."""
    nodes = [f"rabbit@n{n}" for n in range(4)]
    return {
        "queues": [
            {"name": f"q{i}", "vhost": "/", "type": "quorum", "leader": nodes[i % 3],
             "members": nodes[:3], "online": nodes[:3], "message_bytes": 10,
             "arguments": {"x-queue-type": "quorum"}}
            for i in range(4)
        ],
        "status": {"disk_nodes": nodes, "running_nodes": nodes, "alarms": [], "partitions": {},
                   "maintenance_status": dict.fromkeys(nodes, "not under maintenance")},
        "zones": dict(zip(nodes, "abcd", strict=True)),
    }  # fmt: skip


RABBITMQ: dict[str, Way] = {
    "a member that is gone": put(
        "queues/0", {"name": "q0", "vhost": "/", "type": "quorum", "leader": "rabbit@n0",
                     "members": ["rabbit@n0", "rabbit@n1", "rabbit@old"],
                     "online": ["rabbit@n0", "rabbit@n1"]}, "rabbit@old",
    ),
    "no leader": put("queues/1/leader", None),
    "a leader called none": put("queues/1/leader", "none"),
    "members that are null": put("queues/2/members", None),
    "a state down": put("queues/3/state", "down", still=("q3",)),
    "a policy that is a list": put("queues/3/effective_policy_definition", []),
    "a stream": put("queues/2/type", "stream"),
    "a size that is null": put("queues/1/message_bytes", None),
    "a size that is text": put("queues/1/message_bytes", "17"),
    "somebody online who is no member": put(
        "queues/3/online", ["rabbit@n0", "rabbit@n1", "rabbit@n9"], "rabbit@n9"
    ),
    "a node that keeps nothing on disk": put("status/ram_nodes", ["rabbit@ram"]),
    "no states of maintenance": put("status/maintenance_status", []),
    "fields of newer versions": put("status/versions", {}),
    "alarms": put("status/alarms", [{"node": "rabbit@n0", "resource": "memory"}, "odd"], "n0"),
    "a zone of a node that is gone": put("zones/rabbit@past", "z", "rabbit@past"),
}  # fmt: skip


def swift() -> Documents:
    """Return the JSON and the rows of a ring of four devices."""
    devices = [
        {"id": n, "region": 1, "zone": n + 1, "ip": f"10.0.0.{n}", "port": 6200, "device": "sdb",
         "weight": 100.0, "meta": "", "replication_ip": "x", "replication_port": 6200}
        for n in range(4)
    ]  # fmt: skip
    head = {"devs": devices, "part_shift": 30, "replica_count": 3, "byteorder": "little"}
    return {"head": head, "rows": [[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1]]}


def swift_files(told: Documents) -> list[bytes]:
    """Return the ring."""
    head = json.dumps(told["head"]).encode()
    rows = b"".join(struct.pack(f"<{len(own)}H", *own) for own in told["rows"])
    return [struct.pack("!4sHI", b"R1NG", 1, len(head)) + head + rows]


SWIFT: dict[str, Way] = {
    "no region": put("head/devs/1/region", MISSING),
    "a device that was removed": put("head/devs/3", None, "3"),
    "a device that weighs nothing": put("head/devs/2/weight", 0),
    "a whole weight": put("head/devs/1/weight", 100),
    "no address for replication": put("head/devs/1/replication_ip", None),
    "a replica that nobody has": put("rows/0/1", 65535),
    "a replica on what never was": put("rows/0/2", 9, "9"),
    "a partition twice on a device": put("rows/1/0", 0),
    "fields of newer versions": put("head/next_part_power", 3),
    "a hole in the list": put("head/devs/+", None),
}  # fmt: skip

Files = Callable[[Documents], list[bytes]]
WAYS: Mapping[str, tuple[Callable[[], Documents], Files, dict[str, Way]]] = {
    "kafka": (kafka, kafka_files, KAFKA),
    "elasticsearch": (elasticsearch, json_files, ELASTICSEARCH),
    "rabbitmq": (rabbitmq, json_files, RABBITMQ),
    "swift": (swift, swift_files, SWIFT),
}
