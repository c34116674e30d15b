"""Random small Longhorn systems with full disks, broken hosts, ties and duplicates."""

import numpy as np

from evenkeel.systems.longhorn.auto_balance.intake import Disk, Host, Replica, Volume, cluster_of
from evenkeel.systems.longhorn.auto_balance.settings import Longhorn, Settings

EFFORTS = ("disabled", "least-effort", "best-effort")


def plain(zones, start, *, wanted=None, schedulable=None, settings=None, **volume):
    """One volume ``v`` on hosts of one roomy disk each: hosts' zones, and replicas by host."""
    hosts = [
        Host(
            name=name,
            zone=zone,
            allow_scheduling=schedulable is None or name in schedulable,
            disks=[Disk(name="d", maximum=10**9)],
        )
        for name, zone in zones.items()
    ]
    held = [host for host, count in start.items() for _ in range(count)]
    replicas = [Replica(name=f"r{i:02}", host=h, disk="d") for i, h in enumerate(held)]
    one = Volume(
        name="v",
        size=10,
        actual_size=5,
        replicas=replicas,
        number_of_replicas=len(held) if wanted is None else wanted,
        attached_to=next(iter(zones)),
        **volume,
    )
    return cluster_of(hosts, [one], settings=settings)


def soft(effort="best-effort", **settings):
    """Settings under which replicas may share hosts."""
    return Settings(replica_auto_balance=effort, replica_soft_anti_affinity=True, **settings)


def random_system(seed, *, rough=True, pressed=False):
    """A small system, and options."""
    # a rough one has everything that can be wrong with it; in a pressed one many disks are nearly
    # full, while what is promised on them is not
    rng = np.random.default_rng(seed)

    def often(share):
        return bool(rng.random() < share)

    def sometimes(share):
        return rough and often(share)

    def free_of(maximum):
        if pressed:
            return int(maximum * rng.choice([0.05, 0.2, 0.4, 1.0]))
        return int(rng.integers(0, maximum + 1)) if sometimes(0.6) else None

    tags = ["ssd", "fast"]
    scale = int(rng.choice([10, 100, 1000]))
    late = int(rng.integers(8)) if sometimes(0.3) else -1
    hosts = []
    for h in range(int(rng.integers(1, 7))):
        disks = []
        for d in range(int(rng.integers(1, 4))):
            maximum = int(rng.integers(1, 4)) * scale if rough or pressed else 10**6
            disks.append(
                Disk(
                    name=f"d{d}",
                    maximum=0 if sometimes(0.05) else maximum,
                    available=free_of(maximum),
                    reserved=int(rng.integers(0, maximum // 3 + 1)) if sometimes(0.5) else 0,
                    scheduled=int(rng.integers(0, maximum)) if sometimes(0.1) else None,
                    ready=not sometimes(0.05),
                    allow_scheduling=not sometimes(0.1),
                    eviction_requested=sometimes(0.05),
                    type="block" if sometimes(0.1) else "filesystem",
                    tags=[t for t in tags if sometimes(0.3)],
                )
            )
        hosts.append(
            Host(
                name=f"h{int(rng.integers(100)):02}-{h}",
                zone=str(rng.choice(["", "z1", "z2", "z3"])),
                disks=disks,
                ready=not sometimes(0.1),
                schedulable=not sometimes(0.1),
                allow_scheduling=not often(0.1),
                cordoned=sometimes(0.1),
                deleting=sometimes(0.03),
                eviction_requested=sometimes(0.03),
                ready_since=float(10_000 if h == late else rng.integers(0, 100)),
                tags=[t for t in tags if sometimes(0.3)],
            )
        )
    every = [(host.name, disk.name) for host in hosts for disk in host.disks]
    switches = ["ignored", "enabled", "disabled"]
    volumes, made = [], 0
    for v in range(int(rng.integers(1, 6))):
        wanted = int(rng.integers(1, 7))
        held = max(0, wanted + (int(rng.choice([-1, 0, 0, 0, 1])) if rough else 0))
        few = [every[i] for i in rng.integers(len(every), size=int(rng.integers(1, 4)))]
        replicas = []
        for _ in range(held):
            host, disk = few[int(rng.integers(len(few)))]
            failed = sometimes(0.07)
            replicas.append(
                Replica(
                    name=f"r{int(rng.integers(1000)):03}-{made}",
                    host=host,
                    disk=disk,
                    healthy=not failed,
                    failed=failed,
                    active=not sometimes(0.03),
                    eviction_requested=sometimes(0.07),
                    reusable=failed and often(0.5),
                    clone_source=sometimes(0.05),
                    healthy_at=float(rng.integers(0, 20_000)),
                    failed_at=float(rng.integers(18_800, 20_000)),
                )
            )
            made += 1
        size = int(rng.integers(0, scale // 2 + 2)) if rough else 1
        volumes.append(
            Volume(
                name=f"v{v}",
                size=size,
                actual_size=int(rng.integers(0, size + 1)),
                replicas=replicas,
                number_of_replicas=wanted,
                replica_auto_balance=str(rng.choice(["ignored", "ignored", *EFFORTS])),
                replica_soft_anti_affinity=str(rng.choice(switches)) if rough else "ignored",
                replica_zone_soft_anti_affinity=str(rng.choice(switches)) if rough else "ignored",
                replica_disk_soft_anti_affinity=str(rng.choice(switches)) if rough else "ignored",
                data_locality="best-effort" if sometimes(0.2) else "disabled",
                attached_to=None if sometimes(0.05) else hosts[int(rng.integers(len(hosts)))].name,
                robustness="degraded" if sometimes(0.1) else None,
                migrating=sometimes(0.03),
                block=False,
                node_selector=[t for t in tags if sometimes(0.1)],
                disk_selector=[t for t in tags if sometimes(0.1)],
            )
        )
    settings = Settings(
        replica_auto_balance=str(rng.choice(EFFORTS)),
        replica_soft_anti_affinity=not rough or often(0.7),
        replica_zone_soft_anti_affinity=not rough or often(0.7),
        replica_disk_soft_anti_affinity=not rough or often(0.7),
        replica_auto_balance_disk_pressure_percentage=int(
            rng.choice([50, 80] if pressed else [0, 50, 90])
        ),
        storage_over_provisioning_percentage=int(rng.choice([100, 200])),
        storage_minimal_available_percentage=int(rng.choice([0, 2] if pressed else [0, 10, 25])),
        allow_empty_node_selector_volume=not sometimes(0.2),
        allow_empty_disk_selector_volume=not sometimes(0.2),
        concurrent_replica_rebuild_per_node_limit=0 if sometimes(0.05) else 5,
    )
    order = str(rng.choice(["node-then-zone", "zone_then_node"]))
    cluster = cluster_of(hosts, volumes, settings=settings, now=20_000.0)
    return cluster, Longhorn(order=order)
