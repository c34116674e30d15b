"""Random CockroachDB clusters: hosts with several stores, regions, voters, leases, loads."""

import numpy as np

import evenkeel as ek

# requests go to the leaseholder; CPU is spent there and a part of it on followers; writes and bytes
# are the same on every replica
DIMENSIONS = ("qps", "cpu", "writes", "bytes")


def loads_of(rng, count, spread=1.0):
    """Loads of followers and of leaseholders, (P, 4); requests and writes do not go together."""
    qps = rng.lognormal(3.0, spread, count)
    writes = rng.lognormal(8.0, spread, count)
    data = rng.lognormal(18.0, 0.5 * spread, count)
    apply = writes * 2e-7
    follower = np.stack([np.zeros(count), apply, writes, data], axis=1)
    leader = np.stack([qps, apply + qps * 4e-4, writes, data], axis=1)
    return follower, leader


def capacity_of(follower, leader, replicas, nodes, share=0.45):
    """Capacity of each of so many nodes; the cluster fills a ``share``, and no range two thirds."""
    total = leader.sum(axis=0) + follower.sum(axis=0) * (replicas - 1)
    return np.tile(np.maximum(total / nodes / share, 1.5 * leader.max(axis=0)), (nodes, 1))


def two_at_once(count=20, seed=0):
    """Racks k1, k2 and machines of kinds ra, rb; each range has one of each kind in each rack."""
    # All of them are on the same two of the four stores. To leave these, both replicas have to go
    # at once: the first alone would come into the rack of the second, the second into that of the
    # first.
    rng = np.random.default_rng(seed)
    follower, leader = loads_of(rng, count, spread=0.3)
    return ek.Cluster.from_arrays(
        capacity=capacity_of(follower, leader, 2, 4),
        load=follower,
        leader_load=leader,
        dimensions=DIMENSIONS,
        bytes="bytes",
        domains={"rack": ["k1", "k2", "k2", "k1"]},
        tags={"ra": [True, True, False, False], "rb": [False, False, True, True]},
        replicas=2,
        placement=np.tile([0, 2], (count, 1)),
        leader=np.arange(count) % 2,
        rules=[ek.Rule(place={"+ra": 1, "+rb": 1}, spread={"rack": 1})],
        rule=np.zeros(count, int),
    )


def skewed_cpu_and_writes(hot=36, cold=100, seed=0):
    """Six stores; ranges that are read are on the first three, others, written, on the rest."""
    # every store has as many ranges, so that counts say nothing: they have to be exchanged
    rng = np.random.default_rng(seed)
    kinds = np.repeat([0, 1, 2, 2], [hot, hot, cold, cold])
    qps = np.select([kinds == 0], [150.0], 1.0) * rng.uniform(0.9, 1.1, len(kinds))
    writes = np.select([kinds == 1], [5e5], 1e3) * rng.uniform(0.9, 1.1, len(kinds))
    data = np.full(len(kinds), 5e8)
    follower = np.stack([qps * 0, writes * 2e-7, writes, data], axis=1)
    leader = np.stack([qps, writes * 2e-7 + qps * 1e-3, writes, data], axis=1)
    left = (kinds == 0) | (np.arange(len(kinds)) % 2 == 0) & (kinds == 2)
    place = np.where(left[:, None], [[0, 1, 2]], [[3, 4, 5]])
    return ek.Cluster.from_arrays(
        capacity=capacity_of(follower, leader, 3, 6),
        load=follower,
        leader_load=leader,
        dimensions=DIMENSIONS,
        bytes="bytes",
        replicas=3,
        placement=place,
        leader=np.arange(len(kinds)) % 3,
    )


def regions(count=300, hosts=9, stores=2, seed=0, leases="anywhere"):
    """Three regions of hosts with several stores; three voters of which two at home, two others."""
    # A third of the ranges is at home in each region and led from there. The loads are lognormal,
    # and where everything is now takes no notice of them.
    rng = np.random.default_rng(seed)
    follower, leader = loads_of(rng, count)
    host = np.repeat(np.arange(hosts), stores)
    region = np.array(["east", "west", "north"])[host % 3]
    home = np.array(["east", "west", "north"])[np.arange(count) % 3]
    place = np.zeros((count, 5), int)
    names = ["east", "west", "north"]
    for p in range(count):
        others = [name for name in names if name != home[p]]
        order = [home[p], home[p], others[0], others[1], others[rng.integers(2)]]
        used = set()
        for slot, name in enumerate(order):
            free = [s for s in range(len(host)) if region[s] == name and host[s] not in used]
            weight = np.array([1.0 + (s % stores) for s in free])  # some stores are liked better
            place[p, slot] = rng.choice(free, p=weight / weight.sum())
            used.add(host[place[p, slot]])
    rules = [
        ek.Rule(
            place={"region=east": 1, "region=west": 1, "region=north": 1},
            voters_place={f"region={name}": 2},
            lead=[f"region={name}"] if leases == "at home" else [],
            spread={"host": 1},
        )
        for name in names
    ]
    return ek.Cluster.from_arrays(
        capacity=capacity_of(follower, leader, 5, len(host)),
        load=follower,
        leader_load=leader,
        dimensions=DIMENSIONS,
        bytes="bytes",
        domains={"region": region, "host": [str(h) for h in host]},
        replicas=5,
        voters=3,
        placement=place,
        role=np.tile([0, 0, 0, 1, 1], (count, 1)),
        leader=np.zeros(count, int),
        rules=rules,
        rule=np.arange(count) % 3,
    )


def grown(count=400, stores=12, new=4, zones=4, seed=0):
    """Zones of equal size, level by counts, that have just got new stores; loads are not level."""
    rng = np.random.default_rng(seed)
    follower, leader = loads_of(rng, count)
    total = stores + new
    zone = np.arange(total) % zones
    place = np.zeros((count, 3), int)
    for p in range(count):
        chosen = rng.permutation(zones)[:3]
        place[p] = [rng.choice(np.flatnonzero(zone[:stores] == z)) for z in chosen]
    return ek.Cluster.from_arrays(
        capacity=capacity_of(follower, leader, 3, total),
        load=follower,
        leader_load=leader,
        dimensions=DIMENSIONS,
        bytes="bytes",
        domains={"zone": [f"z{z}" for z in zone]},
        replicas=3,
        placement=place,
        leader=rng.integers(0, 3, count),
        spread={"zone": 1},
    )
