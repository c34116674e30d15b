"""Random small clusters, targets and plans, and plans with one step tampered with."""

from dataclasses import replace
from typing import Any

import numpy as np

import evenkeel as ek
from evenkeel.model.placement import Placement
from evenkeel.planning.steps import StepKind
from tests.support.plans.one_by_one import Step, one_by_one


def draw(seed: int) -> tuple[ek.Cluster, Placement, list[Step]]:
    """Draw a cluster, a target, and steps between them that overlap where partitions differ."""
    rng = np.random.default_rng([seed, 15])
    cluster = draw_cluster(rng)
    target = draw_target(rng, cluster)
    rows = one_by_one(cluster, target, swaps=bool(rng.random() < 0.6))
    if rng.random() < 0.6:
        rows = overlapped(rng, rows)
    return cluster, target, rows


def draw_cluster(rng: np.random.Generator) -> ek.Cluster:
    """Draw up to 9 nodes in zones and racks, with rules, dead nodes, pins and roles."""
    nodes, partitions = int(rng.integers(3, 10)), int(rng.integers(1, 6))
    replicas = int(rng.integers(1, min(nodes, 4) + 1))
    zones = int(rng.integers(2, min(nodes, 4) + 1))
    zone = [f"z{n % zones}" if n < zones or rng.random() < 0.9 else "" for n in range(nodes)]
    dimensions = int(rng.integers(1, 4))
    load = rng.integers(1, 5, (partitions, dimensions)).astype(float)
    placement = np.stack([rng.permutation(nodes)[:replicas] for _ in range(partitions)])
    placement[rng.random(placement.shape) < 0.05] = -1
    names = [f"d{d}" for d in range(dimensions)]
    full = load.sum(0) * replicas / nodes
    given: dict[str, Any] = {
        "capacity": np.ceil(np.tile(full, (nodes, 1)) * rng.uniform(1.0, 3.0, (nodes, 1))),
        "load": load,
        "leader_load": load * rng.choice([0.5, 1.0, 2.0]),
        "dimensions": names,
        "transient": [name for name in names if rng.random() < 0.5],
        "domains": {"zone": zone, "rack": [f"r{n % 5}" for n in range(nodes)]},
        "placement": placement,
        "min_active": int(rng.integers(0, replicas + 1)),
        "rules": [draw_rule(rng, replicas)],
    }
    if rng.random() < 0.3:
        given["alive"] = rng.random(nodes) < 0.85
    if rng.random() < 0.2:
        given["leads"] = rng.random(nodes) < 0.8
    if rng.random() < 0.2:
        given["accepts"] = rng.random(nodes) < 0.8
    if rng.random() < 0.2:
        given["max_replicas"] = rng.integers(1, 4, nodes)
    if rng.random() < 0.3:
        given["role"] = (rng.random(placement.shape) < 0.3).astype(np.uint8)
        given["role"][:, 0] = 0
        given["non_voter_load"] = load * 0.5
    if rng.random() < 0.1:
        given["flags"] = (rng.random(placement.shape) < 0.2).astype(np.uint16)
    if rng.random() < 0.2:
        given["forbidden"] = [[0, int(rng.integers(nodes))]]
    if rng.random() < 0.3:
        shared = np.ceil(load.sum(0) * replicas / zones * rng.uniform(1.0, 2.0))
        given["tier_capacity"] = {"zone": np.tile(shared, (zones, 1))}
    if rng.random() < 0.4:
        groups = min(int(rng.integers(1, 3)), partitions)
        given["group"] = rng.permutation(np.arange(partitions) % groups)
        given["rule"] = [0] * partitions
        given["rules"].append(draw_group_rule(rng, partitions // groups * replicas))
        given["group_rule"] = [int(rng.integers(-1, 2)) for _ in range(groups)]
        if groups == 2:
            given["depends"] = [(0, 1, str(rng.choice(["zone", "rack"])))]
    if rng.random() < 0.3:
        given["rule"] = rng.integers(-1, 1, partitions)
    return ek.Cluster.from_arrays(**given)


def draw_group_rule(rng: np.random.Generator, replicas: int) -> ek.Rule:
    """Draw a rule for groups, kept or broken as the dice fall."""
    tier = str(rng.choice(["zone", "rack"]))
    amount = int(rng.integers(1, max(replicas // 2, 1) + 1))
    few = min(2, replicas)
    kinds: list[dict[str, Any]] = [
        {"spread": {tier: amount}}, {"spread": {"node": amount}}, {"min_domains": {tier: few}},
        {"max_domains": {tier: int(rng.integers(2, 5))}}, {"skew": {tier: amount}},
        {"place": {"zone=z1": amount}}, {"voters_place": {"rack=r0": amount}},
    ]  # fmt: skip
    return ek.Rule(**kinds[int(rng.integers(len(kinds)))])


def draw_rule(rng: np.random.Generator, replicas: int) -> ek.Rule:
    """Draw a rule, kept or broken as the dice fall."""
    tier = str(rng.choice(["zone", "rack"]))
    kinds: list[dict[str, Any]] = [
        {}, {"spread": {tier: 1}}, {"spread": {tier: 2}}, {"min_domains": {tier: min(2, replicas)}},
        {"max_domains": {tier: 2}}, {"skew": {tier: 1}}, {"require": ["zone!=z0"]},
        {"voters_require": ["rack!=r1"]}, {"place": {"zone=z1": 1}},
        {"voters_place": {"rack=r0": 1}},
    ]  # fmt: skip
    return ek.Rule(**(kinds[int(rng.integers(len(kinds)))] | kinds[int(rng.integers(3))]))


def draw_target(rng: np.random.Generator, cluster: ek.Cluster) -> Placement:
    """Draw a placement a few replicas away, each on a node that its partition was not on."""
    start = cluster.placement
    node, leader = start.node.copy(), start.leader.copy()
    live = cluster.nodes.alive & ~cluster.nodes.gone
    for p in range(len(start)):
        for k in range(start.first[p], start.first[p + 1]):
            row = {*start.node[start.first[p] : start.first[p + 1]].tolist()}
            row |= {*node[start.first[p] : start.first[p + 1]].tolist()}
            free = [n for n in range(len(live)) if n not in row and live[n]]
            if free and rng.random() < 0.4:
                node[k] = rng.choice(free)
            elif rng.random() < 0.05 and leader[p] != k - start.first[p]:
                node[k] = -1
        if rng.random() < 0.3:
            slot = int(rng.integers(start.first[p + 1] - start.first[p]))
            if node[start.first[p] + slot] >= 0 and start.role[start.first[p] + slot] == 0:
                leader[p] = slot
    role = start.role.copy()
    if role.any():
        role[rng.random(len(role)) < 0.4] ^= 1
    return replace(start.replaced(node, leader), role=role)


def overlapped(rng: np.random.Generator, rows: list[Step]) -> list[Step]:
    """Let the steps of each partition start whenever they like, in their own order."""
    last: dict[int, int] = {}
    shift = {p: float(rng.integers(0, 12)) for p in {row.partition for row in rows}}
    began: dict[int, float] = {}
    moved = []
    for row in rows:
        p = row.partition
        start = shift[p] + row.start - began.setdefault(p, row.start)
        moved.append((start, row._replace(start=start, finish=start + row.finish - row.start)))
    order = sorted(range(len(moved)), key=lambda i: moved[i][0])
    found = []
    for at, i in enumerate(order):
        row = moved[i][1]
        before = (last[row.partition],) if row.partition in last else ()
        found.append(row._replace(before=before, wave=at))
        last[row.partition] = at
    return found


def tampered(rng: np.random.Generator, rows: list[Step], nodes: int) -> tuple[str, list[Step]]:
    """Change one step, and say how."""
    rows = list(rows)
    i = int(rng.integers(len(rows)))
    row = rows[i]
    way = str(rng.choice(["target", "source", "order", "start", "late", "kind", "drop", "double",
                          "loose", "replica", "wave", "long", "stay"]))  # fmt: skip
    if way == "target":
        rows[i] = row._replace(target=int(rng.integers(-1, nodes)))
    elif way == "stay":
        kind = int(rng.choice([StepKind.PROMOTE, StepKind.DEMOTE]))
        rows[i] = row._replace(kind=kind, source=row.target, size=0.0)
    elif way == "source":
        rows[i] = row._replace(source=int(rng.integers(-1, nodes)))
    elif way == "replica":
        rows[i] = row._replace(replica=row.replica + int(rng.choice([-1, 1])))
    elif way == "start":
        rows[i] = row._replace(start=row.start - float(rng.integers(1, 5)))
    elif way == "late":
        rows[i] = row._replace(start=row.start + 1.0, finish=row.finish + 1.0)
    elif way == "long":
        rows[i] = row._replace(finish=row.finish + float(rng.integers(1, 4)))
    elif way == "kind":
        kind = int(rng.choice([k for k in StepKind if k != row.kind]))
        rows[i] = row._replace(kind=kind, size=row.size if kind == StepKind.COPY else 0.0)
    elif way == "wave":
        rows[i] = row._replace(wave=int(rng.integers(0, 2 * len(rows))))
    elif way == "loose":
        rows[i] = row._replace(before=row.before[1:])
    elif way == "order" and i:
        here, there = rows[i], rows[i - 1]
        rows[i] = there._replace(start=here.start, finish=here.finish, wave=here.wave,
                                 before=here.before)  # fmt: skip
        rows[i - 1] = here._replace(start=there.start, finish=there.finish, wave=there.wave,
                                    before=there.before)  # fmt: skip
    elif way in ("drop", "double"):
        shift = -1 if way == "drop" else 1
        rest = [
            other._replace(before=tuple(b + shift * (b >= i) for b in other.before
                                        if way != "drop" or b != i))
            for other in rows[i + 1 :]
        ]  # fmt: skip
        if way == "drop":
            joins = [o._replace(before=tuple(sorted({*new.before, *row.before})) if i in o.before
                                else new.before)
                     for o, new in zip(rows[i + 1 :], rest, strict=True)]  # fmt: skip
            rows = [*rows[:i], *(n._replace(before=o.before) for n, o in
                                 zip(rest, joins, strict=True))]  # fmt: skip
        else:
            rows = [*rows[: i + 1], row._replace(before=(*row.before, i)), *rest]
    return way, rows
