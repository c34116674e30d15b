"""A Longhorn system as kubectl prints it, before and after steps are applied."""

import json

import numpy as np

from evenkeel.systems import registry
from tests.support import places

FILE = places.DATA / "longhorn" / "cluster.json"


def written(cluster, path, node=None):
    """Write a cluster with replicas on other nodes; returns resources, steps and steps back."""
    placement = None
    if node is not None:
        placement = cluster.placement.replaced(np.array(node, np.int32), cluster.placement.leader)
    files = registry.write(cluster, path, format="longhorn", placement=placement)
    return [json.loads(file.read_text()) for file in files]


def replayed(cluster, steps):
    """Apply steps to a cluster; return the disk of each replica, and the fewest of each volume."""
    objects = cluster.native.objects
    uuid_at = {
        state["diskUUID"]: f"{one.value.metadata.name}/{name}"
        for one in objects.nodes
        for name, state in one.raw["status"]["diskStatus"].items()
    }
    place, owner, built = {}, {}, set()
    names, node = cluster.native.replicas.names, cluster.placement.node
    for k, name in enumerate(names):
        if node[k] >= 0:
            place[name] = cluster.nodes.names[node[k]]
            owner[name] = cluster.partitions.names[cluster.placement.owner[k]]
            built.add(name)

    def counts():
        held = [owner[name] for name in place if name in built]
        return {volume: held.count(volume) for volume in cluster.partitions.names}

    fewest = counts()
    for step in steps:
        name = step["target"]["name"]
        if step["verb"] == "create":
            assert name not in place
            place[name] = uuid_at[step["body"]["spec"]["diskID"]]
            owner[name] = step["body"]["spec"]["volumeName"]
        elif step["verb"] == "wait" and name in place:
            built.add(name)
        elif step["verb"] == "delete":
            del place[name]
        fewest = {volume: min(n, fewest[volume]) for volume, n in counts().items()}
    return place, fewest
