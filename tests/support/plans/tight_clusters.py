"""Nearly full clusters, and targets that keep every rule."""

from typing import Any

import numpy as np

import evenkeel as ek
from evenkeel.model.placement import Placement
from tests.support.plans.random_plans import draw_group_rule

PROTOCOLS = ("plain", "kafka", "cockroach", "ceph", "helix", "longhorn")


def tight(seed: int) -> tuple[ek.Cluster, Placement, ek.Throttle | None, str]:
    """Draw a cluster that is 60 to 97 % full, with disks, rules and roles, and a target."""
    rng = np.random.default_rng([seed, 1])
    hosts, disks = int(rng.integers(3, 9)), int(rng.integers(1, 3))
    nodes, zones = hosts * disks, int(rng.integers(2, 5))
    host = np.arange(nodes) // disks
    zone = host % zones
    replicas = int(rng.integers(1, min(zones, 3) + 1))
    partitions = int(rng.integers(2, 3 * nodes))
    dimensions = int(rng.integers(1, 4))
    load = rng.integers(1, rng.choice([2, 9]), (partitions, dimensions)).astype(float)
    before = _spread(rng, zone, partitions, replicas)
    after, leader = before.copy(), np.zeros(partitions, np.int16)
    for p in np.flatnonzero(rng.random(partitions) < rng.choice([0.3, 0.9])).tolist():
        after[p] = _another(rng, zone, before[p])
        if rng.random() < 0.3:
            leader[p] = rng.integers(replicas)
    extra = load * rng.choice([0.0, 0.0, 1.0])
    ends = [_loads(nodes, load, extra, *end) for end in ((before, leader * 0), (after, leader))]
    most = np.maximum(*ends)
    share = rng.uniform(0.6, 0.97)
    capacity = np.maximum(np.ceil(most), np.floor(most + (1.0 / share - 1.0) * most.mean()))
    names = [f"d{d}" for d in range(dimensions)]
    given: dict[str, Any] = {"rules": [ek.Rule(spread={"zone": 1})], "rule": [0] * partitions}
    if disks > 1 and rng.random() < 0.5:
        by_host = [np.stack([np.bincount(host, one[:, d]) for d in range(dimensions)], 1)
                   for one in ends]  # fmt: skip
        shared = np.maximum(*by_host)
        given["tier_capacity"] = {"rack": np.ceil(shared + (1.0 / share - 1.0) * shared.mean())}
    if rng.random() < 0.3:
        groups = min(3, partitions)
        given["group"] = rng.permutation(np.arange(partitions) % groups)
        given["group_rule"] = rng.choice([-1, 1], groups)
        given["rules"].append(draw_group_rule(rng, partitions // groups * replicas))
    if rng.random() < 0.2 and replicas > 1:
        given["role"] = np.tile([0] * (replicas - 1) + [1], (partitions, 1)).astype(np.uint8)
    cluster = ek.Cluster.from_arrays(
        capacity=capacity, load=load, leader_load=load + extra, dimensions=names, bytes="d0",
        transient=[name for name in names if rng.random() < 0.6],
        domains={"zone": [f"z{z}" for z in zone], "rack": [f"r{h}" for h in host]},
        placement=before, min_active=int(rng.integers(0, replicas + 1)), leader=0 * leader, **given,
    )  # fmt: skip
    if "role" in given:
        leader = np.minimum(leader, replicas - 2).astype(np.int16)
    throttle = ek.Throttle(node_in=1, node_out=2) if rng.random() < 0.5 else None
    target = cluster.placement.replaced(after.reshape(-1).astype(np.int32), leader)
    return cluster, target, throttle, PROTOCOLS[seed % len(PROTOCOLS)]


def _spread(
    rng: np.random.Generator, zone: np.ndarray, partitions: int, replicas: int
) -> np.ndarray:
    """Draw rows of nodes in distinct zones."""
    return np.stack([_another(rng, zone, np.full(replicas, -1)) for _ in range(partitions)])


def _another(rng: np.random.Generator, zone: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Draw a row that keeps some of its nodes, the others in further zones."""
    kept = (row >= 0) & (rng.random(len(row)) < 0.4)
    found = np.where(kept, row, -1)
    for slot in np.flatnonzero(~kept).tolist():
        free = ~np.isin(zone, zone[found[found >= 0]])
        found[slot] = rng.choice(np.flatnonzero(free))
    return found


def _loads(
    nodes: int, load: np.ndarray, extra: np.ndarray, rows: np.ndarray, leader: np.ndarray
) -> np.ndarray:
    """Add up what nodes carry, (N, D)."""
    total = np.zeros((nodes, load.shape[1]))
    for slot in range(rows.shape[1]):
        np.add.at(total, rows[:, slot], load + extra * (leader == slot)[:, None])
    return total


def circles(seed: int) -> tuple[ek.Cluster, Placement]:
    """Draw swaps on full nodes: each but one is full, and that one has room for one replica."""
    rng = np.random.default_rng([seed, 2])
    nodes, each = int(rng.integers(3, 9)), int(rng.integers(1, 4))
    size = rng.integers(1, 6, nodes * each).astype(float)
    before = np.repeat(np.arange(nodes), each)
    after = before.copy()
    # equal sizes trade places, so that all nodes are as full as before
    for s in np.unique(size):
        some = np.flatnonzero(size == s)
        after[some] = before[rng.permutation(some)]
    room = rng.choice(size)
    capacity = np.append(np.bincount(before, size), 0.0)
    capacity[int(rng.integers(nodes + 1))] += room
    cluster = ek.Cluster.from_arrays(
        capacity=capacity[:, None], load=size[:, None], placement=before[:, None],
        dimensions=["disk"], transient=["disk"], bytes="disk",
    )  # fmt: skip
    return cluster, cluster.placement.replaced(after.astype(np.int32), cluster.placement.leader)


def tiny(seed: int) -> tuple[ek.Cluster, Placement]:
    """Draw up to five single replicas on up to five nodes with little room, some forbidden."""
    rng = np.random.default_rng([seed, 3])
    nodes, partitions = int(rng.integers(2, 6)), int(rng.integers(2, 6))
    dimensions = int(rng.integers(1, 3))
    load = rng.integers(1, 4, (partitions, dimensions)).astype(float)
    before, after = rng.integers(0, nodes, (2, partitions))
    none = np.zeros(partitions)
    ends = [_loads(nodes, load, 0 * load, one[:, None], none) for one in (before, after)]
    capacity = np.maximum(*ends) + rng.integers(0, 3, (nodes, 1)) * (rng.random((nodes, 1)) < 0.4)
    given: dict[str, Any] = {}
    if rng.random() < 0.4:
        p, n = int(rng.integers(partitions)), int(rng.integers(nodes))
        if n not in (before[p], after[p]):
            given["forbidden"] = [[p, n]]
    if nodes == 4 and rng.random() < 0.5:
        shared = np.maximum(*[one.reshape(2, 2, -1).sum(1) for one in ends])
        given |= {"domains": {"host": ["a", "a", "b", "b"]},
                  "tier_capacity": {"host": shared + rng.integers(0, 3)}}  # fmt: skip
    names = [f"d{d}" for d in range(dimensions)]
    cluster = ek.Cluster.from_arrays(
        capacity=capacity, load=load, placement=before[:, None], dimensions=names, bytes="d0",
        transient=[name for name in names if rng.random() < 0.7], **given,
    )  # fmt: skip
    return cluster, cluster.placement.replaced(after.astype(np.int32), cluster.placement.leader)


def tiny_rows(seed: int) -> tuple[ek.Cluster, Placement, list[str], str]:
    """Draw a few partitions of two or three replicas with little room, some of them in zones."""
    rng = np.random.default_rng([seed, 4])
    replicas, nodes = int(rng.integers(2, 4)), int(rng.integers(4, 7))
    partitions = int(rng.integers(2, 4 if replicas == 2 else 3))
    apart = bool(rng.random() < 0.5)
    zone = np.arange(nodes) % (replicas + 1) if apart else np.arange(nodes)
    rows = np.full((partitions, replicas), -1)
    before, after = (np.stack([_another(rng, zone, row) for row in rows]) for _ in range(2))
    size = rng.integers(1, 3, (partitions, 1)).astype(float)
    if rng.random() < 0.5:
        # in a circle, or back and forth
        size[:], after = 1.0, before[np.roll(np.arange(partitions), 1)]
    ends = [sum(_loads(nodes, size, 0 * size, one[:, [slot]], np.zeros(partitions))
                for slot in range(replicas)) for one in (before, after)]  # fmt: skip
    capacity = np.maximum(*ends) + rng.choice([0.0, 0.0, 0.0, 1.0], (nodes, 1))
    given: dict[str, Any] = {}
    if apart:
        given = {"domains": {"zone": [f"z{z}" for z in zone]}, "spread": {"zone": 1}}
    cluster = ek.Cluster.from_arrays(
        capacity=capacity, load=size, placement=before, dimensions=["disk"], bytes="disk",
        transient=["disk"] if rng.random() < 0.5 else [], **given,
    )  # fmt: skip
    target = cluster.placement.replaced(
        after.reshape(-1).astype(np.int32), cluster.placement.leader
    )
    return cluster, target, ["zone"] if apart else [], PROTOCOLS[seed % len(PROTOCOLS)]
