"""Small clusters of which every number of nodes is tried, each placed by CP-SAT from its arrays."""

from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from ortools.sat.python import cp_model

import evenkeel as ek


class Small(NamedTuple):
    """A small cluster as plain numbers, and types of nodes: capacity, price, zones, most."""

    capacity: list[list[int]]
    zone: list[str]
    load: list[list[int]]
    replicas: int
    spread: int | None
    types: list[tuple[list[int], float, list[str], int]]
    # at most so many replicas of all partitions together on each node, or in each zone
    together: tuple[str, int] | None = None

    @property
    def cluster(self):
        """It as a cluster, of which all replicas are yet to be placed."""
        spread = {} if self.spread is None else {"zone": self.spread}
        load = np.array(self.load, float).reshape(-1, len(self.capacity[0]))
        rules: dict[str, object] = {"spread": spread}
        if self.together is not None:
            rules = {
                "rules": [ek.Rule(spread=spread), ek.Rule(spread=dict([self.together]))],
                "rule": np.zeros(len(load), int), "group": np.zeros(len(load), int),
                "group_rule": [1],
            }  # fmt: skip
        return ek.Cluster.from_arrays(
            capacity=np.array(self.capacity, float), load=load,
            domains={"zone": self.zone}, replicas=self.replicas, **rules,
        )  # fmt: skip

    @property
    def node_types(self):
        """The types of nodes that one can get."""
        return [
            ek.NodeType(f"t{i}", np.array(capacity, float), price=price, places=zones, most=most)
            for i, (capacity, price, zones, most) in enumerate(self.types)
        ]


def drawn(seed):
    """Draw a small cluster."""
    rng = np.random.default_rng(seed)
    zones = [*"abcd"[: rng.integers(1, 5)]]
    nodes, dimensions = int(rng.integers(1, 5)), int(rng.integers(1, 3))
    types = [
        (
            rng.integers(3, 13, dimensions).tolist(), float(rng.integers(1, 5)) / 2,
            sorted(rng.choice(zones, rng.integers(1, len(zones) + 1), replace=False).tolist()),
            int(rng.integers(1, 4)),
        )
        for _ in range(rng.integers(1, 3))
    ]  # fmt: skip
    return Small(
        rng.integers(3, 11, (nodes, dimensions)).tolist(), rng.choice(zones, nodes).tolist(),
        rng.integers(1, 5, (rng.integers(1, 6), dimensions)).tolist(), int(rng.integers(1, 4)),
        None if rng.random() < 0.3 else int(rng.integers(1, 3)), types,
    )  # fmt: skip


def least_price(small, survive=""):
    """Return the least price at which everything has its place; inf if there is none."""
    kinds = [(cap, price, zone, most) for cap, price, zones, most in small.types for zone in zones]
    counts = sorted(
        product(*(range(most + 1) for *_, most in kinds)), key=lambda count: price_of(count, kinds)
    )
    too_few = []
    for count in counts:
        if any(all(a <= b for a, b in zip(count, few, strict=True)) for few in too_few):
            continue
        more = [kinds[i] for i, n in enumerate(count) for _ in range(n)]
        capacity = small.capacity + [one[0] for one in more]
        zone = small.zone + [one[2] for one in more]
        if survives(small, capacity, zone, survive):
            return price_of(count, kinds)
        too_few.append(count)
    return np.inf


def price_of(count, kinds):
    """Add up prices."""
    return sum(n * kind[1] for n, kind in zip(count, kinds, strict=True))


def survives(small, capacity, zone, survive):
    """Whether everything has its place, and again after each loss."""
    nodes = range(len(capacity))
    losses = {
        "": [()],
        "zone": [(), *({n for n in nodes if zone[n] == one} for one in set(zone))],
        "node": [(), *({n} for n in nodes)],
        "node pairs": [(), *map(set, combinations(nodes, min(2, len(nodes))))],
    }[survive]
    return all(
        places(small, [capacity[n] for n in nodes if n not in lost],
               [zone[n] for n in nodes if n not in lost])
        for lost in losses
    )  # fmt: skip


def places(small, capacity, zone):
    """Whether every replica has a place on these nodes, by CP-SAT."""
    model = cp_model.CpModel()
    at = [[model.new_bool_var("") for _ in capacity] for _ in small.load]
    for row in at:
        model.add(sum(row) == small.replicas)
        for one in set(zone) if small.spread is not None else ():
            model.add(sum(v for v, z in zip(row, zone, strict=True) if z == one) <= small.spread)
    for n, room in enumerate(capacity):
        for d, most in enumerate(room):
            loads = zip(small.load, at, strict=True)
            model.add(sum(load[d] * row[n] for load, row in loads) <= most)
    if small.together is not None:
        tier, most = small.together
        domain = [*range(len(capacity))] if tier == "node" else zone
        for one in set(domain):
            there = (row[n] for row in at for n, own in enumerate(domain) if own == one)
            model.add(sum(there) <= most)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    return solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
