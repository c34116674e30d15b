"""Small clusters with a defect that real systems print, such as missing or null values.

A way changes the documents of a healthy cluster and returns the words that its note has to name,
and the partitions that must stay. ``WAYS`` has them by system and by name.
"""

import copy
import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.support.dumps.cockroach import table_of

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


MISSING = object()  # put at a place, takes away what is there


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

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def kubernetes() -> Documents:
    """Return a set of three pods that spread by zone, and one of two, on three of four nodes."""
    nodes = [
        {"apiVersion": "v1", "kind": "Node",
         "metadata": {"name": f"n{n}", "labels": {HOST: f"n{n}", ZONE: "abcd"[n]}}, "spec": {},
         "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
                    "conditions": [{"type": "Ready", "status": "True"}]}}
        for n in range(4)
    ]  # fmt: skip
    pods = [
        {"apiVersion": "v1", "kind": "Pod",
         "metadata": {"name": f"{app}-{n}", "namespace": "d", "labels": {"app": app},
                      "ownerReferences": [{"kind": "StatefulSet", "name": app,
                                           "controller": True}]},
         "spec": {"nodeName": f"n{n}", "containers": [{"resources": {"requests": {"cpu": "1"}}}],
                  "topologySpreadConstraints": [{
                      "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
                      "labelSelector": {"matchLabels": {"app": app}}}]},
         "status": {"phase": "Running"}}
        for app, many in (("w", 3), ("v", 2)) for n in range(many)
    ]  # fmt: skip
    return {"list": {"apiVersion": "v1", "kind": "List", "items": nodes + pods}}


POD = "list/items/4"
CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
         "metadata": {"name": "c", "namespace": "d"}, "spec": {"volumeName": "past"}}  # fmt: skip
KUBERNETES: dict[str, Way] = {
    "a node that is gone": put(f"{POD}/spec/nodeName", "n9", "n9"),
    "labels that are null": put("list/items/1/metadata/labels", None),
    "a node without a status": put("list/items/3/status", MISSING, "n3"),
    "a node without conditions": put("list/items/3/status/conditions", []),
    "no processors told of a node": put("list/items/3/status/allocatable/cpu", MISSING, "n3"),
    "a pod that ends": put(f"{POD}/metadata/deletionTimestamp", "2026-01-01T00:00:00Z"),
    "resources that are null": put(f"{POD}/spec/containers/0/resources", None),
    "requests that are null": put(f"{POD}/spec/containers/0/resources/requests/memory", None),
    "requests that are numbers": put(f"{POD}/spec/containers/0/resources/requests/cpu", 1),
    "lists that are null": put(f"{POD}/spec/tolerations", None),
    "a claim that is gone": put(f"{POD}/spec/volumes", [
        {"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}
    ], "gone"),
    "a claim of a volume that is gone": put("list/items/+", CLAIM),
    "a label that no node has": lambda told: [
        one["spec"]["topologySpreadConstraints"][0].update(topologyKey="gone/key")
        for one in told["list"]["items"][4:7]
    ] and Told(("gone/key",)),
    "a budget of nobody": put("list/items/+", {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "d"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "gone"}}},
    }),
    "an owner of another kind": put(f"{POD}/metadata/ownerReferences/0/kind", "CloneSet"),
    "no owners": put(f"{POD}/metadata/ownerReferences", None),
    "a pod without a status": put(f"{POD}/status", MISSING),
}  # fmt: skip

GIB = 2**30
BORN = "2026-03-01T08:00:00Z"


def longhorn() -> Documents:
    """Return two volumes of two replicas each on three nodes with a disk each."""

    def made(kind: str, name: str, **fields: Any) -> dict[str, Any]:
        meta = {"name": name, "namespace": "longhorn-system"}
        return {"apiVersion": "longhorn.io/v1beta2", "kind": kind, "metadata": meta, **fields}

    ready = [{"type": "Ready", "status": "True"}, {"type": "Schedulable", "status": "True"}]
    nodes = [
        made("Node", f"n{n}", spec={
            "allowScheduling": True, "evictionRequested": False, "tags": [],
            "disks": {"d": {"allowScheduling": True, "evictionRequested": False, "path": "/x",
                            "storageReserved": 0, "tags": [], "diskType": "filesystem"}},
        }, status={
            "zone": f"z{n}", "region": "", "conditions": ready,
            "diskStatus": {"d": {"diskUUID": f"n{n}-d", "storageMaximum": 500 * GIB,
                                 "storageAvailable": 400 * GIB, "storageScheduled": 10 * GIB,
                                 "scheduledReplica": {}, "conditions": ready}},
        })
        for n in range(3)
    ]  # fmt: skip
    volumes = [
        made("Volume", f"v{v}", spec={
            "size": str(5 * GIB), "numberOfReplicas": 2, "nodeID": "n0", "dataEngine": "v1",
            "image": "e:v1", "nodeSelector": [], "diskSelector": [], "dataLocality": "disabled",
        }, status={"state": "attached", "currentNodeID": "n0", "robustness": "healthy",
                   "currentImage": "e:v1", "actualSize": GIB})
        for v in range(2)
    ]  # fmt: skip
    replicas = [
        made("Replica", f"v{v}-r{n}", spec={
            "volumeName": f"v{v}", "volumeSize": str(5 * GIB), "nodeID": f"n{n}",
            "diskID": f"n{n}-d", "active": True, "healthyAt": BORN, "failedAt": "",
            "evictionRequested": False,
        }, status={"currentState": "running"})
        for v, n in ((0, 0), (0, 1), (1, 1), (1, 2))
    ]  # fmt: skip
    settings = [made("Setting", "replica-soft-anti-affinity", value="false")]
    items = [*nodes, *volumes, *replicas, *settings]
    return {"list": {"apiVersion": "v1", "kind": "List", "items": items}}


LONGHORN: dict[str, Way] = {
    "a node that is gone": put("list/items/5/spec/nodeID", "n9", "n9"),
    "a disk that is gone": put("list/items/5/spec/diskID", "of-old", "v0"),
    "a volume that is gone": put("list/items/7/spec/volumeName", "v9", "v1-r1"),
    "a tag that nobody has": put("list/items/3/spec/nodeSelector", ["gone"], "v0", still=("v0",)),
    "attached to a node that is gone": put("list/items/4/status/currentNodeID", "n9"),
    "conditions that are null": put("list/items/2/status/conditions", None),
    "disks that are null": put("list/items/2/status/diskStatus", None),
    "a disk without a status": put("list/items/1/spec/disks/e", {
        "allowScheduling": True, "path": "/y", "tags": None,
    }),
    "a node without a status": put("list/items/2/status", MISSING),
    "a replica without a status": put("list/items/8/status", MISSING),
    "a setting for each engine": put("list/items/9/value", '{"v1":"true","v2":"true"}'),
    "a setting that differs by engine": put(
        "list/items/9/value", '{"v1":"true","v2":"false"}', "replica-soft-anti-affinity"
    ),
    "a setting of another value": put(
        "list/items/9/value", "novel", "replica-soft-anti-affinity"
    ),
    "an empty setting": put("list/items/9/value", ""),
    "a replica that failed": put("list/items/6/spec/failedAt", BORN),
    "a replica that stopped": put("list/items/6/status/currentState", "stopped"),
    "a field of newer versions": put("list/items/6/spec/snapshotMaxCount", 250),
}  # fmt: skip


def cockroach() -> Documents:
    """Return three ranges of a table on three of four nodes."""
    return {
        "ranges": [
            {"range_id": f"{40 + n}", "start_key": f"/Table/1/{n}", "end_key": f"/Table/1/{n}9",
             "lease_holder": f"{n + 1}", "replicas": "{1,2,3}", "voting_replicas": "{1,2,3}",
             "non_voting_replicas": "{}", "learner_replicas": "{}", "range_size_mb": "64",
             "table_name": "users"}
            for n in range(3)
        ],
        "nodes": [
            {"id": f"{n}", "address": "h:1", "locality": f"region={'abca'[n - 1]}",
             "is_available": "true", "is_live": "true", "is_decommissioning": "false",
             "membership": "active", "is_draining": "false"}
            for n in range(1, 5)
        ],
        "zones": [
            {"target": "RANGE default",
             "raw_config_sql": "ALTER RANGE default CONFIGURE ZONE USING num_replicas = 3"},
        ],
    }  # fmt: skip


def zone_of(target: str, using: str, *named: str) -> Way:
    """Return a way that configures the zone of a target, which has one only."""
    statement = f"ALTER {target} CONFIGURE ZONE USING {using}"

    def way(told: Documents) -> Told:
        told["zones"] = [one for one in told["zones"] if one["target"] != target]
        told["zones"].append({"target": target, "raw_config_sql": statement})
        return Told(named)

    return way


COCKROACH: dict[str, Way] = {
    "a store that is gone": put("ranges/0/replicas", "{1,2,9}"),
    "no holder of the lease": put("ranges/0/lease_holder", "NULL"),
    "a holder 0": put("ranges/1/lease_holder", "0"),
    "a holder that is gone": put("ranges/1/lease_holder", "9", "41", still=("41",)),
    "voters that are null": put("ranges/2/voting_replicas", "NULL"),
    "a learner": lambda told: told["ranges"][2].update(
        replicas="{1,2,3,4}", learner_replicas="{4}"
    ) or Told(("42",), ("42",)),
    "a size that is null": put("ranges/0/range_size_mb", "NULL"),
    "a node of which nothing is known": put("nodes/+", {
        "id": "5", "address": "NULL", "locality": "NULL", "is_available": "NULL",
        "is_live": "NULL", "is_decommissioning": "NULL", "membership": "NULL",
        "is_draining": "NULL",
    }),
    "a node that was decommissioned": put("nodes/+", {
        "id": "6", "address": "h:1", "locality": "region=b", "is_available": "false",
        "is_live": "false", "is_decommissioning": "true", "membership": "decommissioned",
        "is_draining": "false",
    }),
    "a zone of a table that is gone": zone_of("TABLE db.public.gone", "num_replicas = 5"),
    "a constraint of a region that is gone": zone_of(
        "TABLE users", "constraints = '[+region=gone]'", "gone"
    ),
    "a preference of a region that is gone": zone_of(
        "TABLE users", "lease_preferences = '[[+region=gone]]'", "gone"
    ),
    "a field of newer versions": zone_of("TABLE users", "novel.thing = 5", "novel"),
    "a zone taken from above": zone_of("TABLE users", "num_replicas = COPY FROM PARENT"),
    "a zone of system ranges": zone_of("RANGE meta", "num_replicas = 5"),
}  # fmt: skip


def csv_files(told: Documents) -> list[bytes]:
    """Return each document as CSV."""
    return [table_of(rows) for rows in told.values()]


# ------------------------------------------------------------------------------------ Helix


def helix() -> Documents:
    """Return a resource of six partitions on the first three of four instances, all live."""
    names = [f"h{n}_1" for n in range(1, 5)]
    held = {f"t_{p}": [names[p % 3], names[(p + 1) % 3]] for p in range(6)}
    ideal = {
        "id": "t", "mapFields": {p: dict.fromkeys(own, "SLAVE") for p, own in held.items()},
        "listFields": held,
        "simpleFields": {
            "REBALANCE_MODE": "SEMI_AUTO", "STATE_MODEL_DEF_REF": "MasterSlave",
            "REPLICAS": "2", "NUM_PARTITIONS": "6", "MAX_PARTITIONS_PER_INSTANCE": "9",
        },
    }  # fmt: skip
    documents: Documents = {"ideal": ideal}
    for n, name in enumerate(names):
        documents[f"config{n + 1}"] = {
            "id": name, "mapFields": {}, "listFields": {"TAG_LIST": ["t"]},
            "simpleFields": {
                "HELIX_HOST": f"h{n + 1}", "HELIX_PORT": "1", "HELIX_ENABLED": "true",
                "DOMAIN": f"zone={'abca'[n]},instance={name}", "INSTANCE_WEIGHT": "1",
            },
        }  # fmt: skip
        documents[f"live{n + 1}"] = {
            "id": name, "mapFields": {}, "listFields": {},
            "simpleFields": {"LIVE_INSTANCE": "7@h", "SESSION_ID": f"{n}"},
        }  # fmt: skip
    return documents


HELIX: dict[str, Way] = {
    "no map fields": put("ideal/mapFields", None, "mapFields"),
    "no list fields of an instance": put("config2/listFields", None, "listFields"),
    "a field that is null": put("config2/simpleFields/DOMAIN", None, "DOMAIN"),
    "a tag that is null": put("config1/listFields/TAG_LIST/0", None, "TAG_LIST[0]"),
    "a replica that is null": put("ideal/listFields/t_1/1", None, "listFields.t_1[1]"),
    "a state that is null": put("ideal/mapFields/t_1/h2_1", None, "mapFields.t_1.h2_1"),
    "a number of replicas": put("ideal/simpleFields/REPLICAS", 2),
    "a port": put("config1/simpleFields/HELIX_PORT", 1),
    "a truth": put("config1/simpleFields/HELIX_ENABLED", True),
    "a disabled instance": put("config1/simpleFields/HELIX_ENABLED", False),
    "a weight": put("config1/simpleFields/INSTANCE_WEIGHT", 2),
    "a session": put("live1/simpleFields/SESSION_ID", 72057594037927936),
    "an instance that is gone": put("ideal/listFields/t_0/1", "h9_1", "h9_1"),
    "no live record": lambda told: told.pop("live2"),
    "a new field": put("config3/simpleFields/NOVEL", "x"),
}


# ----------------------------------------------------------------------------------- tables


def tables() -> Documents:
    """Return six partitions on the first three of four nodes, with every column there is."""
    held = [("abc"[p % 3], "abc"[(p + 1) % 3]) for p in range(6)]
    return {
        "nodes": [
            {"node": node, "zone": zone, "cap_disk": "100", "watermark_disk": "80", "state": "up",
             "tags": "ssd", "weight": "1", "max_replicas": "9"}
            for node, zone in zip("abcd", "wxyw", strict=True)
        ],
        "replicas": [
            {"group": "t", "index": str(p), "node": node, "role": role, "pinned": "no",
             "flags": "", "load_disk": "5", "leader_load_disk": "6", "replicas": "2",
             "voters": "2", "min_active": "1", "rule": ""}
            for p, own in enumerate(held)
            for node, role in zip(own, ("leader", "voter"), strict=True)
        ],
    }  # fmt: skip


def cells(table: str, column: str, value: str, *named: str) -> Way:
    """Return a way that writes a value into the cells of the first two rows of a table."""

    def way(told: Documents) -> Told:
        for one in told[table][: 1 if column == "role" else 2]:
            one[column] = value
        return Told(named)

    return way


# columns in which an empty cell is noted, as it is read as the usual number
COUNTED = ("replicas", "voters", "min_active")

TABLES: dict[str, Way] = {
    f"{column} of {table} that is {value or 'empty'!r}": cells(
        table, column, value, *([column] if value or column in COUNTED else [])
    )
    for value in ("NULL", "\\N", "N/A", "")
    for table, columns in {
        "nodes": "zone cap_disk watermark_disk state tags weight max_replicas",
        "replicas": "node role pinned flags load_disk leader_load_disk replicas voters min_active "
        "rule",
    }.items()
    for column in columns.split()
} | {
    "a node that is gone": cells("replicas", "node", "gone", "gone"),
    "a node of which nothing is known": lambda told: told["nodes"].append(
        dict.fromkeys(told["nodes"][0], "NULL") | {"node": "e"}
    ) or Told(("cap_disk",)),
}  # fmt: skip

Files = Callable[[Documents], list[bytes]]
WAYS: Mapping[str, tuple[Callable[[], Documents], Files, dict[str, Way]]] = {
    "kafka": (kafka, kafka_files, KAFKA),
    "elasticsearch": (elasticsearch, json_files, ELASTICSEARCH),
    "rabbitmq": (rabbitmq, json_files, RABBITMQ),
    "swift": (swift, swift_files, SWIFT),
    "kubernetes": (kubernetes, json_files, KUBERNETES),
    "longhorn": (longhorn, json_files, LONGHORN),
    "cockroach": (cockroach, csv_files, COCKROACH),
    "helix": (helix, json_files, HELIX),
    "tables": (tables, csv_files, TABLES),
}
