"""Clusters of voters and non-voters, with targets in which some exchange roles and some move."""

from dataclasses import replace

import numpy as np

import evenkeel as ek
from evenkeel.model.placement import Placement

PROTOCOLS = ("cockroach", "plain", "one by one", "kafka", "helix", "ceph")


def with_roles(seed: int) -> tuple[ek.Cluster, Placement, ek.Protocol]:
    """Draw a cluster and a target, both within capacity and rules, and a protocol."""
    rng = np.random.default_rng([seed, 38])
    nodes, partitions = int(rng.integers(5, 10)), int(rng.integers(1, 7))
    voters, others = int(rng.choice([1, 2, 3, 3, 5])), int(rng.integers(1, 3))
    voters = min(voters, nodes - others)
    alive = rng.random(nodes) < (1.0 if rng.random() < 0.7 else 0.85)
    ends = [_end(rng, alive, partitions, voters, others, None)]
    ends.append(_end(rng, alive, partitions, voters, others, ends[0]))
    load = rng.integers(1, 6, (partitions, 2)).astype(float)
    leader_load = load * rng.choice([1.0, 1.5])
    light = load * rng.choice([0.5, 1.0, 1.5])
    carried = np.zeros((2, nodes, 2))
    for total, (node, role, leader) in zip(carried, ends, strict=True):
        for p in range(partitions):
            for slot, n in enumerate(node[p]):
                leads = leader[p] == slot
                one = leader_load if leads else light if role[p, slot] else load
                total[n] += one[p] if n >= 0 else 0.0
    slack = rng.choice([0.0, 1.0, 3.0]) * max(load.max(), light.max())
    rules = [{}, {"voters_place": {"zone=z0": 1}}, {"voters_require": ["zone!=z2"]},
             {"spread": {"zone": 2}}, {"place": {"zone=z1": 1}}]  # fmt: skip
    (node, role, leader), (then, becomes, leads) = ends
    cluster = ek.Cluster.from_arrays(
        capacity=carried.max(0) + slack, load=load, leader_load=leader_load, non_voter_load=light,
        dimensions=["disk", "cpu"], transient=["disk"] if rng.random() < 0.5 else [],
        bytes="disk", placement=node, role=role, leader=leader,
        domains={"zone": [f"z{n % 3}" for n in range(nodes)]},
        min_active=int(rng.integers(0, voters + 1)), rules=[ek.Rule(**rng.choice(rules))],
        rule=[0] * partitions, alive=alive,
        group_rule=[0 if rng.random() < 0.2 else -1],
    )  # fmt: skip
    start = cluster.placement
    target = start.replaced(then.reshape(-1).astype(np.int32), leads.astype(np.int16))
    target = replace(target, role=becomes.reshape(-1).astype(np.uint8))
    name = PROTOCOLS[seed % len(PROTOCOLS)]
    own = ek.Protocol(name, joint=False) if name == "one by one" else ek.Protocol.named(name)
    return cluster, target, own


def _end(rng, alive, partitions, voters, others, before):  # type: ignore[no-untyped-def]
    """Draw nodes, roles and leading slots; close to those ``before``, if there are any."""
    width, nodes = voters + others, len(alive)
    node = np.stack([rng.permutation(nodes)[:width] for _ in range(partitions)])
    role = np.zeros((partitions, width), np.int64)
    role[:, voters:] = 1
    if before is not None:
        node = before[0].copy()
        for p in range(partitions):
            free = [n for n in range(nodes) if n not in node[p] and alive[n]]
            for slot in range(width):
                if free and rng.random() < 0.3:
                    node[p, slot] = free.pop(int(rng.integers(len(free))))
            order = rng.permutation(width) if rng.random() < 0.7 else np.arange(width)
            node[p] = node[p, order]
            if rng.random() < 0.3:
                order = rng.permutation(width)
                node[p], role[p] = node[p, order], role[p, order]
        if rng.random() < 0.2:
            role[:, voters:][rng.random((partitions, others)) < 0.3] = 0
    leader = np.zeros(partitions, np.int64)
    for p in range(partitions):
        able = np.flatnonzero((role[p] == 0) & (alive[node[p]] | (before is None)))
        leader[p] = rng.choice(able) if len(able) else -1
    return node, role, leader
