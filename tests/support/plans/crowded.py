"""Random small clusters that are nearly full, with a target or with nodes that drain."""

from typing import Any

import numpy as np

import evenkeel as ek
from evenkeel.model.placement import Placement
from tests.support.plans.tight_clusters import PROTOCOLS

Drawn = tuple[ek.Cluster, Placement, str]


def crowded(seed: int) -> Drawn:
    """Draw 2 to 4 partitions on 4 to 6 nodes that are full but for a little, and a target."""
    rng = np.random.default_rng([seed, 46])
    nodes, partitions = int(rng.integers(4, 7)), int(rng.integers(2, 5))
    replicas = int(rng.integers(1, 4 if partitions < 4 else 3))
    zones = int(rng.integers(replicas, 4)) if replicas < 3 else 3
    zone = np.arange(nodes) % zones
    apart = bool(rng.random() < 0.6)
    before, after = (
        np.stack([_row(rng, zone if apart else np.arange(nodes), replicas)
                  for _ in range(partitions)]) for _ in range(2)
    )  # fmt: skip
    kept = rng.random(partitions) < 0.2
    after[kept] = before[kept]
    if rng.random() < 0.3:
        after = before[np.roll(np.arange(partitions), 1)]
    size = rng.integers(1, rng.choice([2, 4]), (partitions, 1)).astype(float)
    if rng.random() < 0.3:
        size[:] = 1.0
    ends = [np.bincount(one.ravel(), np.repeat(size, replicas), nodes) for one in (before, after)]
    spare = rng.choice([0.0, 0.0, 1.0, 2.0], nodes)
    given: dict[str, Any] = {"rules": [ek.Rule(**({"spread": {"zone": 1}} if apart else {}))]}
    if rng.random() < 0.4:
        given["rules"].append(_group_rule(rng, partitions * replicas, zones))
        given |= {"group": np.zeros(partitions, int), "group_rule": [1]}
    cluster = ek.Cluster.from_arrays(
        capacity=(np.maximum(*ends) + spare)[:, None], load=size, placement=before,
        dimensions=["disk"], bytes="disk", transient=["disk"], rule=[0] * partitions,
        domains={"zone": [f"z{z}" for z in zone]}, leader=[0] * partitions,
        min_active=int(rng.integers(0, replicas + 1)), **given,
    )  # fmt: skip
    leader = np.zeros(partitions, np.int16)
    if rng.random() < 0.5:
        leader = rng.integers(0, replicas, partitions).astype(np.int16)
    target = cluster.placement.replaced(after.reshape(-1).astype(np.int32), leader)
    return cluster, target, PROTOCOLS[seed % len(PROTOCOLS)]


def _row(rng: np.random.Generator, domain: np.ndarray, replicas: int) -> list[int]:
    """Draw nodes of distinct domains."""
    chosen = rng.permutation(np.unique(domain))[:replicas]
    return [int(rng.choice(np.flatnonzero(domain == d))) for d in chosen]


def _group_rule(rng: np.random.Generator, replicas: int, zones: int) -> ek.Rule:
    kinds: list[dict[str, Any]] = [
        {"spread": {"zone": -(-replicas // zones) + int(rng.integers(0, 2))}},
        {"skew": {"zone": int(rng.integers(1, 3))}},
        {"min_domains": {"zone": min(zones, replicas)}},
        {"max_domains": {"zone": max(zones - 1, 1)}}, {"place": {"zone=z0": 1}},
    ]  # fmt: skip
    return ek.Rule(**kinds[int(rng.integers(len(kinds)))])


def drained(seed: int) -> Drawn:
    """Draw a cluster that is 60 to 97 % full and unlike, of which several nodes drain."""
    # none of them has a successor: what they hold goes to any node with room in a free zone
    rng = np.random.default_rng([seed, 47])
    zones, each = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    nodes, replicas = zones * each, int(rng.integers(1, min(zones, 3) + 1))
    zone = np.arange(nodes) % zones
    partitions = int(rng.integers(2, 4 * each + 1))
    size = rng.integers(1, rng.choice([2, 6]), partitions).astype(float)
    before = np.stack([_row(rng, zone, replicas) for _ in range(partitions)])
    gone = rng.permutation(nodes)[: int(rng.integers(1, max(nodes // 2, 1) + 1))]
    after, load = before.copy(), np.bincount(before.ravel(), np.repeat(size, replicas), nodes)
    fair = size.sum() * replicas / (nodes - len(gone))
    room = fair * rng.choice([0.5, 1.0, 1.0, 2.0], nodes)
    for p in rng.permutation(partitions).tolist():
        for slot in np.flatnonzero(np.isin(before[p], gone)).tolist():
            taken = zone[np.delete(after[p], slot)]
            fit = np.setdiff1d(np.flatnonzero(~np.isin(zone, taken)), gone)
            if len(fit) == 0:
                continue
            to = int(fit[np.argmin((load[fit] + size[p]) / room[fit])])
            load[after[p, slot]] -= size[p]
            load[to] += size[p]
            after[p, slot] = to
    for p in rng.permutation(partitions)[: int(rng.integers(0, partitions + 1))].tolist():
        # others trade places with those of their size
        q, slot = int(rng.integers(partitions)), int(rng.integers(replicas))
        one, other = after[p, slot], after[q, slot]
        free = zone[np.delete(after[p], slot)], zone[np.delete(after[q], slot)]
        if size[p] == size[q] and zone[other] not in free[0] and zone[one] not in free[1]:
            after[p, slot], after[q, slot] = other, one
    began = np.bincount(before.ravel(), np.repeat(size, replicas), nodes)
    most = np.maximum(began, load)
    capacity = np.maximum(most, np.floor(most / rng.uniform(0.6, 0.97)))
    if rng.random() < 0.3:
        capacity = np.maximum(most, np.floor(most.mean() / rng.uniform(0.6, 0.97)))
    cluster = ek.Cluster.from_arrays(
        capacity=capacity[:, None], load=size[:, None], placement=before, dimensions=["disk"],
        bytes="disk", transient=["disk"] if rng.random() < 0.6 else [],
        domains={"zone": [f"z{z}" for z in zone]}, spread={"zone": 1},
        min_active=int(rng.integers(0, replicas + 1)), leader=rng.integers(0, replicas, partitions),
    ).drain([f"n{n}" for n in gone])  # fmt: skip
    target = cluster.placement.replaced(
        after.reshape(-1).astype(np.int32), cluster.placement.leader
    )
    return cluster, target, PROTOCOLS[seed % len(PROTOCOLS)]
