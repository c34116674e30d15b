"""Unbalanced Longhorn systems: uneven disks and sizes, a past outage, newly joined hosts."""

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.systems.longhorn.auto_balance.intake import Disk, Host, Replica, Volume, cluster_of
from evenkeel.systems.longhorn.auto_balance.settings import Settings

GIB = 2**30


def skewed(
    volumes: int = 1_000,
    hosts: int = 24,
    joined: int = 3,
    zones: int = 3,
    seed: int = 0,
    **settings,
) -> Cluster:
    """Draw a system whose hosts and disks are of uneven size and popularity."""
    # Every host has two to four disks, in four zones; hosts that have ``joined`` are empty. Sizes
    # of volumes follow a power law. Three volumes in ten were rebuilt in an outage of half the
    # hosts, two replicas on one host.
    rng = np.random.default_rng(seed)
    disks = [(h, d) for h in range(hosts) for d in range(int(rng.integers(2, 5)))]
    on = np.array([h for h, _ in disks])
    old = on < hosts - joined
    size = np.maximum(rng.zipf(1.5, volumes).clip(max=60), 1) * 4 * GIB
    actual = (size * rng.uniform(0.2, 0.9, volumes)).astype(np.int64)
    wanted = rng.choice([2, 3, 3, 3, 4], volumes)
    room = rng.choice([1, 2, 2, 4], len(disks)).astype(float)
    room *= 3.0 * float((actual * wanted).sum()) / room[old].sum()
    popular = rng.pareto(2.0, len(disks)) + 0.3
    outage = rng.permutation(hosts - joined)[: max((hosts - joined) // 2, 2)]
    used = np.zeros(len(disks))
    promised = np.zeros(len(disks))
    replicas: list[list[Replica]] = []
    for v in range(volumes):
        torn = rng.random() < 0.3
        chosen: list[int] = []
        for r in range(int(wanted[v])):
            able = old & ~np.isin(np.arange(len(disks)), chosen)
            if torn:
                able &= np.isin(on, outage)
                if r == 1:
                    able &= np.isin(on, on[chosen]) | ~np.isin(on[chosen[0]], on[able])
            else:
                able &= ~np.isin(on, on[chosen])
            able &= (used + actual[v] < 0.72 * room) & (promised + size[v] < 1.35 * room)
            elsewhere = able & ~np.isin(on % zones, on[chosen] % zones)
            if not torn and elsewhere.any():
                able = elsewhere
            weight = np.where(able, popular * room, 0.0)
            if not weight.any():
                break
            one = int(rng.choice(len(disks), p=weight / weight.sum()))
            chosen.append(one)
            used[one] += actual[v]
            promised[one] += size[v]
        replicas.append(
            [
                Replica(name=f"v{v}-r{r}", host=f"h{disks[n][0]}", disk=f"d{disks[n][1]}")
                for r, n in enumerate(chosen)
            ]
        )
    return cluster_of(
        [
            Host(
                name=f"h{h}",
                zone=f"z{h % zones}",
                disks=[
                    Disk(
                        name=f"d{d}",
                        maximum=int(room[n]),
                        available=int(room[n] - used[n]),
                        reserved=int(room[n] * 0.3),
                    )
                    for n, (at, d) in enumerate(disks)
                    if at == h
                ],
            )
            for h in range(hosts)
        ],
        [
            Volume(
                name=f"v{v}",
                size=int(size[v]),
                actual_size=int(actual[v]),
                number_of_replicas=max(len(replicas[v]), 1),
                attached_to=f"h{int(rng.integers(hosts - joined))}",
                robustness="healthy",
                replicas=replicas[v],
            )
            for v in range(volumes)
        ],
        settings=Settings(
            replica_soft_anti_affinity=True, storage_over_provisioning_percentage=200, **settings
        ),
    )


def use(solved) -> float:
    """Return the greatest share of a disk that is in use, of a cluster or of a result."""
    cluster = getattr(solved, "cluster", solved)
    volumes, disks = cluster.native.volumes, cluster.native.disks
    placement, now = cluster.placement, solved.placement.node
    held = np.zeros((2, len(disks)))
    for at, node in enumerate((placement.node, now)):
        there = np.flatnonzero(node >= 0)
        np.add.at(held[at], node[there], volumes.actual[placement.owner[there]])
    # what others keep on the disks included
    used = disks.maximum - disks.available + held[1] - held[0]
    return float((used / disks.maximum).max())
