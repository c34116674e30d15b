"""Longhorn's auto-balance: 10,000 volumes x 3 on 200 hosts x 4 disks, two hosts joined."""

from functools import cache

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.systems.longhorn.auto_balance.intake import Disk, Host, Replica, Volume, cluster_of
from evenkeel.systems.longhorn.auto_balance.settings import Settings
from evenkeel.systems.longhorn.auto_balance.stepping import AutoBalance

GB = 10**9
VOLUMES, HOSTS, DISKS, JOINED, SEED = 10_000, 200, 4, 2, 0

CASES = {
    "new_zone": ("distinct hosts in two zones; the hosts that join are a third", ("z1", "z2"), 3),
    "duplicates": ("half the volumes with two replicas on one host", ("z1", "z2", "z3"), 2),
}


@cache
def joined(name: str) -> ek.Cluster:
    """Return the cluster as two empty hosts have joined, the same every time."""
    _, zones, distinct = CASES[name]
    rng = np.random.default_rng(SEED)
    hosts = []
    for h in range(HOSTS):
        fresh = h >= HOSTS - JOINED
        size = 20_000 * GB if fresh else 4_000 * GB
        hosts.append(
            Host(
                name=f"host-{h:03}",
                zone="z3" if fresh else zones[h % len(zones)],
                disks=[Disk(name=f"disk-{d}", maximum=size) for d in range(DISKS)],
            )
        )
    volumes = []
    for v in range(VOLUMES):
        on = rng.choice(HOSTS - JOINED, 3, replace=False).tolist()
        if distinct < 3 and v % 2:
            on[2] = on[1]
        replicas = [
            Replica(
                name=f"volume-{v:05}-r-{r}",
                host=hosts[h].name,
                disk=f"disk-{int(rng.integers(DISKS))}",
            )
            for r, h in enumerate(on)
        ]
        volumes.append(
            Volume(
                name=f"volume-{v:05}",
                size=int(rng.integers(1, 20)) * GB,
                actual_size=GB,
                replicas=replicas,
                attached_to=replicas[0].host,
            )
        )
    settings = Settings(replica_auto_balance="best-effort", replica_soft_anti_affinity=True)
    return cluster_of(hosts, volumes, settings=settings)


@pytest.mark.parametrize("name", CASES)
def test_to_rest(benchmark, name):
    cluster = joined(name)

    def run():
        work = AutoBalance(cluster)
        work.run()
        return work

    work = benchmark.pedantic(run, rounds=10, warmup_rounds=1)
    added = int((work.log.kind == 1).sum())
    title = f"{CASES[name][0]}: until convergence"
    benchmark.extra_info |= {"title": title, "seed": SEED, "added": added}
    assert added > VOLUMES // 4
    assert len(work.log) == 2 * added


@pytest.mark.parametrize("name", CASES)
def test_whole_call(benchmark, name):
    cluster = joined(name)
    result = benchmark.pedantic(
        lambda: ek.solve(cluster, "longhorn", goals=ek.Goals(level=None)), rounds=5, warmup_rounds=1
    )
    benchmark.extra_info |= {
        "title": f"{CASES[name][0]}: by `solve`",
        "moves": result.comparison.moves,
    }
    assert result.audit.hard == 0
