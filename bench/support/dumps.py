"""Clusters of 25,000 partitions as the files that Kafka, Helix and Ceph print."""

import json
from collections.abc import Mapping

import numpy as np

import evenkeel as ek
from bench.support.ceph_maps import as_text, regular
from tests.support.instances import Instance, headline

# placement groups of each pool, which come in powers of two: 25,088 of them
POOLS = (16_384, 8_192, 512)

Files = Mapping[str, bytes]


def alike(new: int = 30) -> Instance:
    """Return the instance of the promises with nodes all alike: level, but for some new ones."""
    # this is what Kafka shows, which says nothing of capacities
    instance = dict(headline())
    nodes = len(instance["zone"])
    old = np.arange(nodes) < nodes - new
    held = ek.Cluster.from_arrays(
        capacity=np.full((nodes, 1), 1e6), load=np.ones((len(instance["load"]), 1)), replicas=3,
        domains={"zone": instance["zone"]}, spread={"zone": 1}, alive=old,
    )  # fmt: skip
    instance["placement_before"] = ek.solve(held, goals=ek.Goals(level=0.0)).placement.nodes
    # one of the others is dead
    instance["dead"] = np.arange(nodes) == 0
    return instance


def kafka(instance: Instance, log_dirs: bool = False) -> Files:
    """Return a topic description and the racks of brokers, with log directories on request."""
    first = np.searchsorted(instance["resource"], instance["resource"])
    number = np.arange(len(first)) - first
    dead = {*np.flatnonzero(instance["dead"]).tolist()}
    lines, topic = [], -1
    sizes: dict[int, list[str]] = {broker: [] for broker in range(len(instance["zone"]))}
    amount = (instance["load"][:, 0] * 2.0**30).astype(np.int64).tolist()
    counts = np.bincount(instance["resource"]).tolist()
    for p, row in enumerate(instance["placement_before"].tolist()):
        if topic != (topic := int(instance["resource"][p])):
            lines.append(
                f"Topic: topic-{topic}\tTopicId: K-dZgP_7TSyBkF0M3l{topic:04}\tPartitionCount: "
                f"{counts[topic]}\tReplicationFactor: 3\tConfigs: segment.bytes=1073741824"
            )
        held = [broker for broker in row if broker >= 0]
        synced = [broker for broker in held if broker not in dead]
        listed, in_sync = (",".join(map(str, one)) for one in (held, synced))
        lines.append(
            f"\tTopic: topic-{topic}\tPartition: {number[p]}\tLeader: "
            f"{synced[0] if synced else 'none'}\tReplicas: {listed}\tIsr: {in_sync}"
        )
        for broker in synced:
            sizes[broker].append(
                f'{{"partition":"topic-{topic}-{number[p]}","size":{amount[p]},"offsetLag":0,'
                '"isFuture":false}'
            )
    racks = {str(n): f"zone-{zone}" for n, zone in enumerate(instance["zone"].tolist())}
    files = {
        "described.txt": "\n".join([*lines, ""]).encode(),
        "racks.json": json.dumps(racks).encode(),
    }
    if log_dirs:
        held_by = ",".join(
            f'{{"broker":{broker},"logDirs":[{{"logDir":"/d1","error":null,"partitions":'
            f"[{','.join(own)}]}}]}}"
            for broker, own in sizes.items()
            if broker not in dead
        )
        files["log_dirs.json"] = f'{{"version":1,"brokers":[{held_by}]}}'.encode()
    return files


def helix(instance: Instance) -> Files:
    """Return ideal states, external views, configs and live instances, a file of each."""
    names = [f"h{n}_12913" for n in range(len(instance["zone"]))]
    capacity, load = (instance[key].astype(np.int64) for key in ("capacity", "load"))
    keys = ["CPU", "DISK", "NET"][: load.shape[1]]
    dead = {*np.flatnonzero(instance["dead"]).tolist()}
    ideal, view, resources = [], [], []
    for group in np.unique(instance["resource"]).tolist():
        own = np.flatnonzero(instance["resource"] == group).tolist()
        rows = [[n for n in instance["placement_before"][p].tolist() if n >= 0] for p in own]
        name = f"resource-{group}"
        fields = {
            "REBALANCE_MODE": "FULL_AUTO", "STATE_MODEL_DEF_REF": "MasterSlave", "REPLICAS": "3",
            "NUM_PARTITIONS": str(len(own)),
        }  # fmt: skip
        lists = {f"{name}_{i}": [names[n] for n in row] for i, row in enumerate(rows)}
        ideal.append(record(name, fields, lists))
        states = {}
        for i, row in enumerate(rows):
            up = [n for n in row if n not in dead]
            states[f"{name}_{i}"] = {names[n]: "SLAVE" if j else "MASTER" for j, n in enumerate(up)}
        view.append(record(name, fields, {}, states))
        weights = {
            f"{name}_{i}": json.dumps(dict(zip(keys, load[p].tolist(), strict=True)))
            for i, p in enumerate(own)
        }
        weights["DEFAULT"] = json.dumps(dict.fromkeys(keys, 1))
        resources.append(record(name, {}, {}, {"PARTITION_CAPACITY_MAP": weights}))
    configs = []
    for n, name in enumerate(names):
        fields = {
            "HELIX_HOST": f"h{n}", "HELIX_PORT": "12913", "HELIX_ENABLED": "true",
            "DOMAIN": f"zone=z{instance['zone'][n]},host=h{n}",
        }  # fmt: skip
        amounts = dict(zip(keys, map(str, capacity[n].tolist()), strict=True))
        configs.append(record(name, fields, {}, {"INSTANCE_CAPACITY_MAP": amounts}))
    whole = record(
        "cluster",
        {"TOPOLOGY": "/zone/host", "FAULT_ZONE_TYPE": "zone", "TOPOLOGY_AWARE_ENABLED": "true"},
        {"INSTANCE_CAPACITY_KEYS": keys},
        {"DEFAULT_PARTITION_WEIGHT_MAP": dict.fromkeys(keys, "1")},
    )
    live = [
        record(name, {"LIVE_INSTANCE": f"1@h{n}", "SESSION_ID": f"{n:x}"}, {})
        for n, name in enumerate(names)
        if n not in dead
    ]
    files = {
        "ideal_states": ideal, "external_views": view, "instance_configs": configs,
        "cluster_config": [whole], "resource_configs": resources, "live_instances": live,
    }  # fmt: skip
    return {f"{name}.json": json.dumps(one).encode() for name, one in files.items()}


def record(
    name: str,
    simple: Mapping[str, str],
    lists: Mapping[str, list[str]],
    maps: Mapping[str, Mapping[str, str]] | None = None,
) -> Mapping[str, object]:
    """Return a ZNRecord."""
    return {"id": name, "simpleFields": simple, "listFields": lists, "mapFields": maps or {}}


def ceph() -> Files:
    """Return the map of 300 devices that weigh 1 to 4, and the dump of pools in three sizes."""
    crush = regular(10, 6, 5, "rack", 4)
    pools = [
        {
            "pool": number, "pool_name": f"pool-{number}", "flags": 1, "type": 1, "size": 3,
            "crush_rule": 0, "pg_num": count, "pg_placement_num": count,
            "erasure_code_profile": "",
        }
        for number, count in enumerate(POOLS, start=1)
    ]  # fmt: skip
    osds = [
        {"osd": osd, "up": 1, "in": 1, "weight": 1.0, "primary_affinity": 1.0}
        for osd in range(crush.devices)
    ]
    dump = {"max_osd": crush.devices, "pools": pools, "osds": osds, "pg_upmap_items": []}
    return {"osd_dump.json": json.dumps(dump).encode(), "crush.txt": as_text(crush).encode()}
