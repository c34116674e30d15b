"""Random clusters in which all is well, so that a session can hold them ready for losses."""

import numpy as np

import evenkeel as ek


def ready_cluster(seed: int, more: int = 0) -> ek.Cluster:
    """A cluster of up to 14 nodes and 60 partitions, solved, with whatever can be held ready.

    There may be ``more`` partitions. Roles, leaders or none, classes of rules, soft limits,
    forbidden pairs, dead, cordoned and emptied nodes, nodes without capacity and rows with empty
    slots all happen.
    """
    rng = np.random.default_rng(seed)
    nodes, partitions = int(rng.integers(4, 15)), int(rng.integers(1, 61)) + more
    dimensions, zones = int(rng.integers(1, 4)), int(rng.integers(2, 6))
    wide = int(rng.integers(1, 4))
    zone = np.arange(nodes) % zones
    whole = rng.random() < 0.3
    shape = (partitions, dimensions)
    load = rng.integers(0, 4, shape).astype(float) if whole else rng.exponential(2.0, shape)
    if rng.random() < 0.15:
        load[:] = 1.0
    leader_load = load + rng.exponential(1.0, shape) if rng.random() < 0.6 else None
    if leader_load is not None and rng.random() < 0.2:
        leader_load *= 0.3
    replicas = rng.integers(0 if rng.random() < 0.1 else 1, wide + 1, partitions)
    voters = np.where(rng.random(partitions) < 0.3, np.minimum(replicas, 1), replicas)
    room = 3.0 * load.sum(0) * wide / nodes + 30.0
    capacity = room * rng.choice([0.8, 1.0, 1.5], nodes)[:, None]
    capacity[rng.random(nodes) < 0.05] = 0.0
    capacity[rng.random(nodes) < 0.05] = np.inf
    alive = rng.random(nodes) > 0.1
    alive[:2] = True
    rule = rng.integers(-1, 3, partitions)
    rules = [
        ek.Rule(spread={"zone": 1 if zones > wide else wide}),
        ek.Rule(require=["+fast"], spread={"zone": (1, "soft")}),
        ek.Rule(min_domains={"zone": 1}, max_domains={"zone": wide + 1}),
    ]
    fast = rng.random(nodes) < 0.8
    fast[:2] = True
    pairs = np.stack([rng.integers(0, partitions, 6), rng.integers(2, nodes, 6)], 1)
    ruled = rng.random() < 0.7
    cluster = ek.Cluster.from_arrays(
        capacity=capacity,
        load=load,
        leader_load=leader_load,
        non_voter_load=load * 0.5 if rng.random() < 0.3 else None,
        domains={"zone": [f"z{z}" for z in zone]},
        alive=alive,
        accepts=alive & (rng.random(nodes) > 0.05),
        replicas=replicas,
        voters=voters if rng.random() < 0.4 else None,
        min_active=np.minimum(replicas, rng.integers(0, 2)),
        tags={"fast": fast},
        lead_weight=rng.choice([0.0, 1.0, 2.0], nodes, p=[0.1, 0.6, 0.3]),
        max_replicas=np.where(rng.random(nodes) < 0.1, 2 * partitions, -1),
        forbidden=pairs if rng.random() < 0.3 else None,
        rules=rules if ruled else None,
        rule=rule if ruled else None,
        bytes="d0" if rng.random() < 0.5 else None,
        leader=np.full(partitions, -1) if rng.random() < 0.15 else None,
    )
    return cluster.with_placement(ek.solve(cluster, goals=ek.Goals(level=0.2)).placement)


def cluster_to_the_brim(seed: int) -> ek.Cluster:
    """Six nodes in three zones, some replicas of which are about as large as what nodes have free.

    Roles and what leaders weigh differ by seed.
    """
    rng = np.random.default_rng(seed)
    load = rng.choice([1.0, 2.0, 3.0, 8.0], (24, 2), p=[0.4, 0.3, 0.2, 0.1])
    cluster = ek.Cluster.from_arrays(
        capacity=[[2.0 * load.sum() / 6.0] * 2] * 6,
        load=load,
        leader_load=load * rng.choice([1.0, 1.5, 0.8]),
        domains={"zone": [*"aabbcc"]},
        replicas=2,
        spread={"zone": 1},
        leader=np.full(24, -1) if rng.random() < 0.3 else None,
    )
    return cluster.with_placement(ek.solve(cluster, goals=ek.Goals(level=0.1)).placement)
