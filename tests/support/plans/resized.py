"""Random partitions that get more replicas, fewer, or others of several roles."""

from dataclasses import replace
from typing import Any

import numpy as np

import evenkeel as ek
from evenkeel.model.placement import Placement
from tests.support.plans.replaced import PROTOCOLS


def resized(seed: int) -> tuple[ek.Cluster, Placement, ek.Protocol]:
    """Draw one partition of 2 to 5 replicas with room for everything, and what becomes of it."""
    rng = np.random.default_rng([seed, 50])
    name = (*PROTOCOLS, "one by one")[seed % (len(PROTOCOLS) + 1)]
    own = ek.Protocol(name, joint=False) if name == "one by one" else ek.Protocol.named(name)
    zones, nodes = int(rng.choice([2, 3, 3, 3, 4])), int(rng.integers(4, 8))
    zone = rng.permutation(np.arange(nodes) % zones)
    counts = np.minimum(rng.choice([2, 3, 3, 4, 5, 5], 2), nodes)
    if rng.random() < 0.3:
        counts[1] = counts[0]
    width = int(counts.max())
    node, role = np.full((2, width), -1, np.int32), np.zeros((2, width), np.uint8)
    mixes = rng.random() < 0.5
    for end, count in enumerate(counts.tolist()):
        order = _apart(rng, zone) if rng.random() < 0.85 else rng.permutation(nodes)
        node[end, :count] = order[:count]
        others = int(rng.integers(0, 3)) if mixes else 0
        role[end, max(count - others, 1) :] = 1
    if rng.random() < 0.5:  # some stay where they are
        kept = rng.random(width) < 0.5
        stays = np.where(kept & (node[1] >= 0) & (node[0] >= 0), node[0], node[1])
        if len({*stays[stays >= 0].tolist()}) == np.count_nonzero(stays >= 0):
            node[1] = stays
    leader = [int(rng.choice(np.flatnonzero((node[i] >= 0) & (role[i] == 0)))) for i in (0, 1)]
    alive = np.ones(nodes, bool)
    left = np.setdiff1d(np.arange(nodes), node[1])
    if len(left) and rng.random() < 0.2:
        alive[rng.choice(left)] = False
    kinds: list[dict[str, Any]] = [
        {"spread": {"zone": 1}}, {"spread": {"zone": 2}}, {"min_domains": {"zone": 2}},
        {"skew": {"zone": 1}}, {"place": {"zone=z0": 1}}, {"voters_place": {"zone=z1": 1}},
        {"max_domains": {"zone": 2}}, {"spread": {"zone": 1}, "place": {"zone=z0": 1}},
        {"spread": {"zone": 2}, "min_domains": {"zone": 3}},
    ]  # fmt: skip
    rule = kinds[int(rng.integers(len(kinds)))] | kinds[int(rng.integers(len(kinds)))]
    least, most = rule.get("min_domains", {}), rule.get("max_domains", {})
    if least.get("zone", 0) > min(most.get("zone", 9), *counts.tolist()):
        del rule["min_domains"]
    cluster = ek.Cluster.from_arrays(
        capacity=[[99.0]] * nodes, load=[[1.0]], placement=node[:1], role=role[:1],
        leader=leader[:1], alive=alive, replicas=int(counts[1]),
        min_active=int(rng.integers(0, counts.min() + 1)),
        domains={"zone": [f"z{z}" for z in zone]}, rules=[ek.Rule(**rule)],
        rule=[0],
    )  # fmt: skip
    target = cluster.placement.replaced(node[1], np.array(leader[1:], np.int16))
    return cluster, replace(target, role=role[1]), own


def _apart(rng: np.random.Generator, zone: np.ndarray) -> np.ndarray:
    """Return all nodes, those of a zone as far apart as can be."""
    order = rng.permutation(len(zone))
    turn = [int((zone[order[:i]] == zone[n]).sum()) for i, n in enumerate(order)]
    return order[np.argsort(turn, kind="stable")]
