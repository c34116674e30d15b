"""Random systems of Longhorn: nodes with their disks, volumes, replicas, settings and others."""

import random
from typing import Any

Object = dict[str, Any]
GIB = 2**30
BORN = "2026-03-01T08:00:00Z"


def dump(draw: random.Random) -> list[Object]:
    """Return the resources of a list."""
    hosts = [f"n{n}" for n in range(draw.randint(1, 5))]
    nodes = [node(draw, name) for name in hosts]
    items = list(nodes)
    disks = [
        (one["metadata"]["name"], told["diskUUID"])
        for one in nodes
        for told in one["status"]["diskStatus"].values()
    ]
    for number in range(draw.randint(0, 5)):
        name = f"pvc-{number}"
        wanted = draw.randint(1, 3)
        items.append(volume(draw, name, wanted, hosts))
        at = draw.sample(disks, draw.randint(0, min(wanted + 1, len(disks))))
        items += [replica(draw, f"{name}-r-{i}", name, *place) for i, place in enumerate(at)]
        if draw.random() < 0.2:
            items.append(replica(draw, f"{name}-r-none", name, "", ""))
        if draw.random() < 0.2:  # what is gone is named still
            gone = draw.choice([("n9", "n9-disk-0"), (draw.choice(hosts), "of-old")])
            items.append(replica(draw, f"{name}-r-gone", name, *gone))
    if draw.random() < 0.1:
        items.append(replica(draw, "pvc-9-r-0", "pvc-9", *draw.choice(disks)))
    for name, values in SETTINGS.items():
        if draw.random() < 0.5:
            items.append(resource("Setting", name, value=draw.choice(values)))
    if draw.random() < 0.3:
        items.append(resource("EngineImage", "ei-1", spec={"image": "e:v1", "x": [1, None, 2.5]}))
    draw.shuffle(items)
    return items


SETTINGS = {
    "replica-auto-balance": ("disabled", "least-effort", "best-effort"),
    "replica-soft-anti-affinity": ("true", "false"),
    "replica-zone-soft-anti-affinity": ("true", "false"),
    "storage-over-provisioning-percentage": ("100", "200"),
    "storage-minimal-available-percentage": ("10", "25"),
    "default-data-path": ("/var/lib/longhorn/",),
}


def resource(kind: str, name: str, **fields: Any) -> Object:
    """Return a resource."""
    metadata = {"name": name, "namespace": "longhorn-system", "uid": f"uid-{name}", "labels": {}}
    return {"apiVersion": "longhorn.io/v1beta2", "kind": kind, "metadata": metadata, **fields}


def node(draw: random.Random, name: str) -> Object:
    """Return a node with up to three disks, of which some take nothing."""
    names = [f"disk-{d}" for d in range(draw.randint(1, 3))]
    ready = draw.choice(["True", "True", "True", "False"])
    return resource(
        "Node", name,
        spec={
            "allowScheduling": draw.random() < 0.8, "evictionRequested": draw.random() < 0.1,
            "tags": draw.choice([[], ["fast"], None]),
            "disks": {
                one: {
                    "allowScheduling": draw.random() < 0.9, "diskType": "filesystem",
                    "evictionRequested": draw.random() < 0.1, "path": f"/var/lib/{one}/",
                    "storageReserved": draw.choice([0, 10 * GIB]),
                    "tags": draw.choice([[], ["ssd"], None]),
                }
                for one in names
            },
        },
        status={
            "zone": draw.choice(["", "z1", "z2"]), "region": "",
            "conditions": [condition("Ready", ready), condition("Schedulable", "True")],
            "diskStatus": {
                one: {
                    "diskUUID": f"{name}-{one}", "storageMaximum": 500 * GIB,
                    "storageAvailable": draw.randint(0, 500) * GIB,
                    "storageScheduled": draw.randint(0, 300) * GIB, "scheduledReplica": {},
                    "conditions": [condition("Ready", draw.choice(["True", "True", "False"]))],
                }
                for one in names
            },
        },
    )  # fmt: skip


def condition(kind: str, status: str) -> Object:
    """Return a condition that has held from the beginning."""
    return {"type": kind, "status": status, "lastTransitionTime": BORN, "reason": "", "message": ""}


def volume(draw: random.Random, name: str, wanted: int, hosts: list[str]) -> Object:
    """Return a volume, attached to some node or to none."""
    attached = draw.choice(["", "n9", *hosts])
    switches = ("ignored", "enabled", "disabled")
    return resource(
        "Volume", name,
        spec={
            "size": str(draw.randint(1, 40) * GIB), "numberOfReplicas": wanted, "Standby": False,
            "replicaAutoBalance": draw.choice(["ignored", "disabled", "best-effort"]),
            "replicaSoftAntiAffinity": draw.choice(switches),
            "replicaZoneSoftAntiAffinity": draw.choice(switches),
            "replicaDiskSoftAntiAffinity": draw.choice(switches),
            "dataLocality": draw.choice(["disabled", "best-effort"]), "dataEngine": "v1",
            "image": "e:v1", "nodeID": attached, "nodeSelector": draw.choice([[], [], ["fast"]]),
            "diskSelector": draw.choice([None, ["ssd"]]),
        },
        status={
            "state": "attached" if attached else "detached", "currentNodeID": attached,
            "robustness": draw.choice(["healthy", "degraded", "faulted", "unknown"]),
            "currentImage": "e:v1" if attached else "", "actualSize": draw.randint(0, 9) * GIB,
        },
    )  # fmt: skip


def replica(draw: random.Random, name: str, volume: str, host: str, disk: str) -> Object:
    """Return a replica of a volume on a disk, or one that is not scheduled yet."""
    failed = draw.random() < 0.2
    return resource(
        "Replica", name,
        spec={
            "volumeName": volume, "volumeSize": "1", "nodeID": host, "diskID": disk,
            "active": draw.random() < 0.9, "healthyAt": "" if failed else BORN,
            "failedAt": BORN if failed else "", "lastHealthyAt": draw.choice(["", BORN]),
            "evictionRequested": draw.random() < 0.1, "rebuildRetryCount": draw.randint(0, 6),
        },
        status={"currentState": "stopped" if failed else "running", "port": 10_000},
    )  # fmt: skip
