"""Skewed clusters of each system behind stand-ins of its tools, read as users read them."""

import gzip
import json
import struct
import subprocess
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

import evenkeel as ek
from evenkeel.systems.folders.form import filled, settings_of, values_of
from evenkeel.systems.registry import find
from tests.support.systems.bench import System

LEVEL = ek.Goals(level=0.0)
HOSTILE = ["; rm -rf x", "'q' \"w\"", "a\nb", "* ?", "&& |", "#", "ü", " ", "$(touch x)", "`x`",
           "-rf", "'; DROP TABLE t; --", "{{x}}: &a", "a\\b", "%2e%2e"]  # fmt: skip


@dataclass
class World:
    """A stand-in, what tells it to a run, and where it says that partitions are."""

    system: System
    environment: dict
    shown: object
    protocol: str = "plain"

    def seen(self):
        """Where all partitions are, as sets of nodes by name."""
        return {name: {*nodes} for name, nodes in self.shown(self.system.state).items()}

    def run(self, folder, *words, **more):
        return self.system.run(folder, *words, **(self.environment | more))

    def read(self):
        """The cluster, from the dump that a run takes."""
        dump = self.system.folder / "read"
        dump.mkdir(exist_ok=True)
        carrier = find(self.system.format).carrier
        environment = self.system.environment(**self.environment)
        values = values_of(settings_of(carrier.settings), environment)

        def save(command):
            called = subprocess.run(
                filled(command, values), env=environment, stdout=subprocess.PIPE, check=False
            )
            if called.returncode:
                save(command.otherwise)
            else:
                (dump / command.save).write_bytes(called.stdout)

        for command in carrier.look(None):
            save(command)
        return ek.read(dump)

    def plan(self, cluster=None, **throttle):
        cluster = self.read() if cluster is None else cluster
        result = ek.solve(cluster, goals=LEVEL)
        pace = ek.Throttle(**(throttle or {"node_in": 1}))
        return ek.plan(cluster, result, protocol=self.protocol, throttle=pace)


def ends(plan):
    """Where a plan ends, as sets of nodes by name."""
    names, end = plan.cluster.nodes.names, plan.end
    return {
        name: {names[n] for n in end.node[end.first[p] : end.first[p + 1]] if n >= 0}
        for p, name in enumerate(plan.cluster.partitions.names)
    }


def elasticsearch(folder, names=("orders", "logs"), nodes=("a", "b", "c", "d"), pace=1):
    shards = [
        {"index": index, "shard": s, "primary": not copy, "node": nodes[(s + copy) % 2]}
        for index in names for s in range(4) for copy in (0, 1)
    ]  # fmt: skip
    settings = {"persistent": {"cluster.routing.rebalance.enable": "primaries"}, "transient": {}}
    state = {"shards": shards, "nodes": [*nodes], "settings": settings, "pace": pace}
    system = System(folder / "elasticsearch", "elasticsearch", ["curl"], state)

    def shown(state):
        found = {}
        for one in state["shards"]:
            found.setdefault(f"{one['index']}/{one['shard']}", []).append(one["node"])
        return found

    return World(system, {"ES": "http://es"}, shown)


def cockroach(folder, count=9):
    ranges = {
        str(40 + r): {"voters": [1, 2, 3], "nonvoters": [4], "lease": 1 + r % 3,
                      "table": r > 0}
        for r in range(count)
    }  # fmt: skip
    zone = "ALTER {0} CONFIGURE ZONE USING\n\trange_min_bytes = 134217728,\n\t{1}"
    zones = {
        "RANGE default": zone.format("RANGE default", "num_replicas = 4,\n\tnum_voters = 3"),
        "DATABASE system": zone.format("DATABASE system", "num_replicas = 5"),
        "DATABASE bank": zone.format("DATABASE bank", "constraints = '{\"+region=r1\": 1}'"),
    }
    stores = [1, 2, 3, 4, 5, 6, 7]
    state = {"ranges": ranges, "stores": stores, "setting": "leases and replicas", "zones": zones}
    system = System(folder / "cockroach", "cockroach", ["cockroach"], state)
    return World(
        system, {"URL": "postgresql://it's here"},
        lambda state: {
            name: [str(s) for s in one["voters"] + one["nonvoters"]]
            for name, one in state["ranges"].items()
        },
        "cockroach",
    )  # fmt: skip


def longhorn(folder, count=6, space="space-1", pace=1):
    version = "longhorn.io/v1beta2"

    def item(kind, name, spec, status=None, **more):
        metadata = {"name": name, "namespace": space, "uid": f"u-{name}"} | more
        told = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
        return told | ({} if status is None else {"status": status})

    ready = [{"type": kind, "status": "True"} for kind in ("Ready", "Schedulable")]
    items = []
    for n in range(1, 6):
        disk = {"path": "/d", "allowScheduling": True, "storageReserved": 0,
                "diskType": "filesystem"}  # fmt: skip
        told = {"diskUUID": f"uuid-{n}", "storageMaximum": 10**12, "storageAvailable": 10**12,
                "storageScheduled": 0, "conditions": ready[:1]}  # fmt: skip
        items.append(item(
            "Node", f"n{n}", {"disks": {"ssd": disk}, "allowScheduling": True},
            {"conditions": ready, "diskStatus": {"ssd": told}, "zone": f"z{n}"},
        ))  # fmt: skip
    for v in range(count):
        name = f"pvc-{v}"
        items.append(item(
            "Volume", name,
            {"size": str(10**10), "numberOfReplicas": 2, "replicaAutoBalance": "ignored",
             "dataLocality": "disabled"},
            {"state": "attached", "robustness": "healthy", "actualSize": 10**9},
        ))  # fmt: skip
        for n in (1, 2):
            labels = {"longhornvolume": name, "longhorndiskuuid": f"uuid-{n}"}
            items.append(item(
                "Replica", f"{name}-r-{n}",
                {"volumeName": name, "volumeSize": str(10**10), "nodeID": f"n{n}", "active": True,
                 "diskID": f"uuid-{n}", "diskPath": "/d", "desireState": "running", "failedAt": "",
                 "healthyAt": "2026-01-01T00:00:00Z"},
                {"currentState": "running"}, labels=labels,
            ))  # fmt: skip
    state = {"items": items, "namespace": space, "pace": pace}
    system = System(folder / "longhorn", "longhorn", ["kubectl"], state)

    def shown(state):
        found = {}
        for one in state["items"]:
            if one["kind"] == "Replica":
                place = f"{one['spec']['nodeID']}/ssd"
                found.setdefault(one["spec"]["volumeName"], []).append(place)
        return found

    return World(system, {"NAMESPACE": space}, shown, "longhorn")


def helix(
    folder,
    names=("DB", "Logs"),
    nodes=("h1", "h2", "h3", "h4"),
    parts=4,
    mode="SEMI_AUTO",
    zones=(),
):
    def record(name, simple=None, lists=None, maps=None):
        return {"id": name, "simpleFields": simple or {}, "listFields": lists or {},
                "mapFields": maps or {}}  # fmt: skip

    simple = {"REBALANCE_MODE": mode, "STATE_MODEL_DEF_REF": "MasterSlave", "REPLICAS": "2"}
    lists = {name: {f"{name}_{p}": [*nodes[:2]] for p in range(parts)} for name in names}
    ideals = {name: record(name, simple, lists[name]) for name in names}
    views = {
        name: record(name, maps={
            part: dict(zip(own, ("MASTER", "SLAVE"), strict=True))
            for part, own in lists[name].items()
        })
        for name in names
    }  # fmt: skip
    topology = {"TOPOLOGY": "/zone/instance", "FAULT_ZONE_TYPE": "zone",
                "TOPOLOGY_AWARE_ENABLED": "true"}  # fmt: skip
    keys = {"INSTANCE_CAPACITY_KEYS": ["DISK"]}
    configs = {} if not zones else {
        "configs": {"": record("c 1", topology, keys)},
        "instances": {
            node: record(node, {"HELIX_HOST": node, "DOMAIN": f"zone={zone},instance={node}"},
                         maps={"INSTANCE_CAPACITY_MAP": {"DISK": "1000"}})
            for node, zone in zip(nodes, zones, strict=True)
        },
        "resources": {
            name: record(name, maps={"PARTITION_CAPACITY_MAP": {"DEFAULT": '{"DISK": 7}'}})
            for name in names
        },
    }  # fmt: skip
    state = {"ideals": ideals, "views": views, "least": 1, "models": {}, "configs": configs,
             "instances": [*nodes]}  # fmt: skip
    system = System(folder / "helix", "helix", ["curl", "helix-admin.sh"], state)
    live = [record(node, {"LIVE_INSTANCE": "x", "SESSION_ID": "1"}) for node in nodes]

    class Read(World):
        def read(self):
            state = self.system.state
            kinds = (state["ideals"], state["views"], *state["configs"].values())
            records = [record for kind in kinds for record in kind.values()]
            return ek.read(json.dumps([*records, *live]).encode())

    environment = {"CLUSTER": "c 1", "REST": "http://rest", "ZOOKEEPER": "zk:1"}
    return Read(
        system, environment,
        lambda state: {
            part: held for one in state["views"].values() for part, held in one["mapFields"].items()
        },
        "helix",
    )  # fmt: skip


def swift(folder, parts=16):
    devices = [
        {"id": n, "region": 1, "zone": n, "ip": f"10.0.0.{n}", "port": 6200, "device": "sdb1",
         "weight": 100.0, "meta": ""}
        for n in range(5)
    ]  # fmt: skip
    head = {"devs": devices, "part_shift": 32 - parts.bit_length() + 1, "replica_count": 2.0,
            "byteorder": "little", "version": 7}  # fmt: skip
    text = json.dumps(head).encode()
    rows = np.array([[0] * parts, [1] * parts], "<u2")
    data = struct.pack("!4sHI", b"R1NG", 1, len(text)) + text + rows.tobytes()
    system = System(folder / "swift", "swift", ["distribute", "replicated"], {})
    ring = system.folder / "it's object.ring.gz"
    ring.write_bytes(gzip.compress(data))
    digest = sha256(data).hexdigest()
    system.state = {"there": digest, "replicated": digest}

    def shown(state):
        assert state["there"] == state["replicated"]
        cluster = ek.read(ring)
        names, nodes = cluster.nodes.names, cluster.placement.nodes
        return {part: [names[n] for n in nodes[p]] for p, part in
                enumerate(cluster.partitions.names)}  # fmt: skip

    environment = {"RING": str(ring), "DISTRIBUTE": "distribute", "REPLICATED": "replicated"}
    return World(system, environment, shown)


WORLDS = {
    "elasticsearch": elasticsearch, "cockroach": cockroach, "longhorn": longhorn, "helix": helix,
    "swift": swift,
}  # fmt: skip
