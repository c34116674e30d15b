"""Random partitions whose every replica must move, and clusters whose nodes are replaced."""

from typing import Any

import numpy as np

import evenkeel as ek
from evenkeel.model.placement import Placement

PROTOCOLS = ("plain", "kafka", "cockroach", "ceph", "helix", "longhorn")


def all_go(seed: int) -> tuple[ek.Cluster, Placement, str]:
    """Draw one partition of 2 to 5 replicas with room for everything, and where they all go to."""
    # their nodes drain, are dead, or are kept; rules, roles and leaders are as the dice fall
    rng = np.random.default_rng([seed, 44])
    replicas = int(rng.integers(2, 6))
    others = int(rng.integers(0, 3)) if replicas > 2 and rng.random() < 0.3 else 0
    nodes = 2 * replicas + int(rng.integers(2, 4))
    zones = int(rng.integers(2, replicas + 2))
    zone, rack = rng.integers(0, zones, nodes), rng.integers(0, 4, nodes)
    zone[-2:], rack[-4:] = (0, 1), (3, 2, 1, 0)
    if rng.random() < 0.6:
        zone[:replicas] = np.arange(replicas) % zones
        zone[replicas : 2 * replicas] = rng.permutation(zone[:replicas])
    before = np.arange(replicas)
    after = replicas + rng.permutation(replicas)
    role = np.zeros((1, replicas), np.uint8)
    role[0, replicas - others :] = 1
    voters = replicas - others
    leader, leads = int(rng.integers(voters)), int(rng.integers(voters))
    state = rng.choice(["drain", "drain", "drain", "dead", "kept"], replicas)
    if rng.random() < 0.5:
        state[:] = "drain"
    alive = np.ones(nodes, bool)
    alive[:replicas] = state != "dead"
    if rng.random() < 0.15:
        # one more comes than goes, or goes than comes
        fewer, keeps = (before, leader) if rng.random() < 0.5 else (after, leads)
        if keeps != replicas - 1:
            fewer[-1] = -1
    wanted = int((after >= 0).sum())
    cluster = ek.Cluster.from_arrays(
        capacity=[[99.0]] * nodes, load=[[1.0]], placement=before[None], role=role,
        leader=[leader], alive=alive, replicas=wanted, min_active=int(rng.integers(0, voters + 1)),
        domains={"zone": [f"z{z}" for z in zone], "rack": [f"r{r}" for r in rack]},
        crossing=["rack"], rules=[_rule(rng, wanted)], rule=[0],
    )  # fmt: skip
    cluster = cluster.drain([f"n{n}" for n in np.flatnonzero(state == "drain")])
    target = cluster.placement.replaced(after.astype(np.int32), np.array([leads], np.int16))
    return cluster, target, PROTOCOLS[seed % len(PROTOCOLS)]


def _rule(rng: np.random.Generator, replicas: int) -> ek.Rule:
    """Draw a rule that one or both of the ends may keep."""
    few = int(rng.integers(1, max(replicas // 2, 1) + 1))
    kinds: list[dict[str, Any]] = [
        {"spread": {"zone": few}}, {"spread": {"zone": 1}}, {"spread": {"rack": few}},
        {"min_domains": {"zone": min(2, replicas)}}, {"min_domains": {"zone": min(3, replicas)}},
        {"max_domains": {"zone": 3}}, {"skew": {"zone": 1}}, {"place": {"zone=z1": 1}},
        {"place": {"zone=z0": 1}}, {"voters_place": {"zone=z0": 1}}, {"require": ["rack!=r3"]}, {},
    ]  # fmt: skip
    one, other = rng.integers(len(kinds), size=2)
    return ek.Rule(**(kinds[one] | kinds[other]))


def hardware(seed: int) -> tuple[ek.Cluster, Placement, str]:
    """Draw a cluster that is 60 to 97 % full, a set of its nodes drained, each with a successor."""
    # in the target all replicas of such a node are on the one that takes its place in its zone
    rng = np.random.default_rng([seed, 45])
    zones, each = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    replicas, old = int(rng.integers(2, min(zones, 3) + 1)), zones * each
    partitions = int(rng.integers(1, 3 * each + 1))
    zone = np.arange(old) % zones
    rows = np.stack([
        [rng.choice(np.flatnonzero(zone == z)) for z in rng.permutation(zones)[:replicas]]
        for _ in range(partitions)
    ])  # fmt: skip
    gone = rng.permutation(old)[: int(rng.integers(1, old + 1))]
    if rng.random() < 0.4:
        gone = np.arange(old)
    successor = np.arange(old)
    successor[gone] = old + np.arange(len(gone))
    size = rng.integers(1, rng.choice([2, 6]), (partitions, 1)).astype(float)
    held = np.bincount(rows.ravel(), np.repeat(size, replicas), old)
    capacity = np.maximum(held, np.floor(held.max() / rng.uniform(0.6, 0.97)))
    zone = np.append(zone, zone[gone])
    cluster = ek.Cluster.from_arrays(
        capacity=np.append(capacity, capacity[gone])[:, None], load=size, placement=rows,
        dimensions=["disk"], bytes="disk", transient=["disk"] if rng.random() < 0.6 else [],
        domains={"zone": [f"z{z}" for z in zone]}, spread={"zone": 1},
        min_active=int(rng.integers(0, replicas + 1)), leader=rng.integers(0, replicas, partitions),
    ).drain([f"n{n}" for n in gone])  # fmt: skip
    node, leader = successor[rows].reshape(-1).astype(np.int32), cluster.placement.leader
    if rng.random() < 0.4:
        leader = rng.integers(0, replicas, partitions).astype(np.int16)
    target = cluster.placement.replaced(node, leader)
    return cluster, target, PROTOCOLS[seed % len(PROTOCOLS)]


def mixed(seed: int) -> tuple[ek.Cluster, Placement, str]:
    """Draw a cluster that is 60 to 97 % full, whose hardware changes in several ways at once."""
    # Old nodes are kept, drain or are dead. What a drained zone held goes to successors of unlike
    # size: one for several nodes, several for one, or none, so that the others fill up. Replicas of
    # equal size on kept nodes trade places beside it.
    rng = np.random.default_rng([seed, 48])
    zones, each = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    replicas, old = int(rng.integers(2, min(zones, 3) + 1)), zones * each
    partitions = int(rng.integers(2, 3 * each + 2))
    zone = np.arange(old) % zones
    before = np.stack([
        [rng.choice(np.flatnonzero(zone == z)) for z in rng.permutation(zones)[:replicas]]
        for _ in range(partitions)
    ])  # fmt: skip
    size = rng.integers(1, rng.choice([2, 3, 6]), partitions).astype(float)
    state = rng.choice(["kept", "drain", "drain", "dead"], old, p=[0.4, 0.25, 0.25, 0.1])
    if rng.random() < 0.25:
        state[:] = "drain"
    new = [z for z in range(zones) for _ in range(int(rng.integers(0, 3)))]
    zone = np.append(zone, new).astype(int)
    nodes = len(zone)
    weight = np.append(rng.choice([1.0, 1.0, 2.0], old), rng.choice([0.5, 1.0, 2.0, 3.0], len(new)))
    stays = np.append(state == "kept", np.ones(len(new), bool))
    load = np.bincount(before.ravel(), np.repeat(size, replicas), nodes)
    began, after = load.copy(), before.copy()
    for p in rng.permutation(partitions).tolist():
        for slot in np.flatnonzero(~stays[before[p]]).tolist():
            taken = zone[np.delete(after[p], slot)]
            fit = np.flatnonzero(~np.isin(zone, taken) & stays)
            near = fit[zone[fit] == zone[before[p, slot]]]
            fit = near if len(near) and rng.random() < 0.8 else fit
            if len(fit) == 0:
                continue
            to = int(fit[np.argmin((load[fit] + size[p]) / weight[fit])])
            load[after[p, slot]] -= size[p]
            load[to] += size[p]
            after[p, slot] = to
    for _ in range(int(rng.integers(0, partitions + 1))):
        (p, q), slot, other = rng.integers(partitions, size=2), *rng.integers(replicas, size=2)
        a, b = after[p, slot], after[q, other]
        free = zone[np.delete(after[p], slot)], zone[np.delete(after[q], other)]
        if p != q and size[p] == size[q] and zone[b] not in free[0] and zone[a] not in free[1]:
            after[p, slot], after[q, other] = b, a
    # who finds no place elsewhere stays on a node that lives
    state[np.isin(np.arange(old), after) & (state == "dead")] = "kept"
    full = np.maximum(began, load)
    capacity = np.maximum(full, np.floor(full / rng.uniform(0.6, 0.97, nodes)))
    cluster = ek.Cluster.from_arrays(
        capacity=capacity[:, None], load=size[:, None], placement=before, dimensions=["disk"],
        bytes="disk", transient=["disk"] if rng.random() < 0.6 else [],
        alive=np.append(state != "dead", np.ones(len(new), bool)),
        domains={"zone": [f"z{z}" for z in zone]}, spread={"zone": 1},
        min_active=int(rng.integers(0, replicas + 1)), leader=rng.integers(0, replicas, partitions),
    ).drain([f"n{n}" for n in np.flatnonzero(state == "drain")])  # fmt: skip
    leader = cluster.placement.leader
    if rng.random() < 0.4:
        leader = rng.integers(0, replicas, partitions).astype(np.int16)
    target = cluster.placement.replaced(after.reshape(-1).astype(np.int32), leader)
    return cluster, target, PROTOCOLS[seed % len(PROTOCOLS)]
