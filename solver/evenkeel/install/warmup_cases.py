"""Define small clusters for each method whose solves compile its kernels."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenkeel import options
from evenkeel.methods.registry import find
from evenkeel.model.cluster import Cluster
from evenkeel.model.disks import Disks
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.limits import Limits
from evenkeel.model.rules import Rule

WORK = 1_000_000  # candidates that are enough to reach nearly every kernel
# candidates that are enough for the local search that ends a long search for a least cost
LONG = 30_000_000


@dataclass(frozen=True)
class Rehearsal:
    """A solve that has a method's kernels compiled."""

    cluster: Cluster
    goals: Goals | Cost
    options: Any = None
    limits: Limits | None = None
    work: int = WORK


def rehearsals(method: str) -> Iterator[Rehearsal]:
    """Give the solves that take a method through its kernels."""
    if work := find(method).warmup:
        yield from CASES[work]()


def _expanded() -> Iterator[Rehearsal]:
    from evenkeel.simulate.generators import expansion

    cluster = expansion(partitions=200, nodes=25, zones=5)
    yield Rehearsal(cluster, Goals(level=0.04))
    yield Rehearsal(cluster, Goals(level=0.0, leaders=0.0))
    # here leaders are traded: few nodes are a little above their targets once prices are found
    yield Rehearsal(expansion(partitions=600, nodes=48, zones=4, seed=2), Goals(level=0.02))


def _any_cluster() -> Iterator[Rehearsal]:
    """All that ``balance`` may meet: rules, roles, groups, tight room, budgets, floors, a cost."""
    for one in _expanded():
        yield one
        yield replace(one, goals=Goals(level=0.1, floor=0.1))
    yield from _every_kind()
    lost = _lost_nodes()
    above = replace(lost.nodes, watermark=np.full((12, 2), 10.0))  # wherever replicas are
    yield Rehearsal(replace(lost, nodes=above), Cost(moves=1.0), work=LONG)
    yield Rehearsal(_grouped(), Cost(moves=1.0))
    yield Rehearsal(_preferred(), Cost(moves=1.0))


def _every_kind() -> Iterator[Rehearsal]:
    """Small clusters of every kind, for all that level by moves."""
    yield Rehearsal(_led_from_second_choice(), Goals(level=0.0))
    yield Rehearsal(_led_where_none_may(), Goals(level=None))
    yield from _few_replicas()
    yield from _ruled()
    yield from _tight()
    yield Rehearsal(_on_disks(), Goals(level=0.1, disks=0.0))
    yield Rehearsal(_lost_nodes(), Goals(level=0.1))
    for limits in (Limits(moves=8), Limits(bytes=8.0, node_in=3, leader_changes=4)):
        yield Rehearsal(_lost_nodes(), Goals(level=0.1), limits=limits)
    yield Rehearsal(_lost_nodes(), Goals(leaders=0.0), limits=Limits(leader_changes=4))
    for rows in ([[0, 1]] * 12, [[0, 1, 2]] * 12):  # leads pass, and replicas move to lead
        cluster = Cluster.from_arrays(
            capacity=[[40.0]] * 3, load=[[1.0]] * 12, leader_load=[[1.5]] * 12, placement=rows
        )
        yield Rehearsal(cluster, Goals(level=0.1, groups=0.2, group_leaders=0.0))


def _few_replicas() -> Iterator[Rehearsal]:
    """Few replicas of unlike size, which no move and hardly a walk brings level."""
    size = 1.0 + (np.arange(20) * 7 % 11)[:, None] * np.array([1.0, 0.5])
    rows = [[p % 3, 3 + p % 2] for p in range(20)]
    for extra in (0.0, 1.0):
        cluster = Cluster.from_arrays(
            capacity=np.full((6, 2), 400.0), load=size, leader_load=(1.0 + extra) * size,
            placement=rows,
        )  # fmt: skip
        yield Rehearsal(cluster, Goals(level=0.01, leaders=0.0 if extra else None))


def _ruled() -> Iterator[Rehearsal]:
    """Rules that take one move, or two at once, to repair."""
    region = ["a", "b", "c"] * 3
    cluster = Cluster.from_arrays(
        capacity=np.full((9, 1), 99.0),
        load=np.ones((12, 1)),
        leader_load=np.full((12, 1), 2.0),
        domains={"region": region},
        placement=[[p % 9, (p + 3) % 9, (p + 6) % 9, (p + 1) % 9, (p + 4) % 9] for p in range(12)],
        voters=3,
        rules=[
            Rule(
                place={"region=a": 1, "region=b": 1, "region=c": 1},
                voters_place={"region=a": 2}, lead=["region=b"], spread={"region": (2, "soft")},
            ),
            Rule(spread={"region": 2}, min_domains={"region": 3}, skew={"region": 1}),
        ],
        rule=np.arange(12) % 2,
    )  # fmt: skip
    yield Rehearsal(cluster, Goals(level=0.1))
    accepts = np.arange(9) != 1
    shedding = replace(cluster.nodes, accepts=accepts, keeps=accepts)
    yield Rehearsal(replace(cluster, nodes=shedding), Goals(level=0.1, leaders=0.1))


def _on_disks() -> Cluster:
    """Nodes whose replicas all lie on the first of their disks."""
    return Cluster.from_arrays(
        capacity=np.full((3, 1), 99.0), load=1.0 + np.arange(12)[:, None] % 4, bytes="d0",
        placement=[[p % 3] for p in range(12)], disk=[[2 * (p % 3)] for p in range(12)],
        disks=Disks([0, 0, 1, 1, 2, 2], [40.0] * 6),
    )  # fmt: skip


def _grouped() -> Cluster:
    """Groups that have rules of their own."""
    return Cluster.from_arrays(
        capacity=np.full((6, 1), 60.0),
        load=1.0 + np.arange(24)[:, None] % 4,
        domains={"zone": ["a", "a", "b", "b", "c", "c"]},
        placement=[[p % 3, 3 + p % 2] for p in range(24)],
        group=np.arange(24) // 8,
        group_rule=[0, 0, 0],
        rules=[Rule(spread={"zone": 10}, skew={"zone": 1}, place={"zone=c": 4})],
    )


def _preferred() -> Cluster:
    """Partitions that no node leads which the rule of their group prefers."""
    return Cluster.from_arrays(
        capacity=np.full((6, 1), 6.0), load=[[3.0], [2.0]], leader_load=[[1.5], [6.0]],
        domains={"zone": [*"aaabbc"]}, placement=[[2, 4], [4, 2]],
        rules=[Rule(lead=["zone!=b", "zone=c"], skew={"zone": 1})], group_rule=[0],
    )  # fmt: skip


def _led_from_second_choice() -> Cluster:
    """A partition whose leader has no room where its rule prefers it."""
    return Cluster.from_arrays(
        capacity=[[4.0], [1.0]], load=[[1.0]], leader_load=[[2.0]], domains={"zone": [*"ab"]},
        placement=[[0, 1]], rules=[Rule(lead=["zone=b", "zone=a"])], rule=[0],
    )  # fmt: skip


def _led_where_none_may() -> Cluster:
    """A partition led where none may, and nodes that may lead full of what can make way."""
    return Cluster.from_arrays(
        capacity=[[2.0], [4.0], [4.0], [2.0]], load=[[1.0]] * 3, leads=[True, False, False, True],
        placement=[[1, -1], [3, 0], [3, 0]], replicas=[1, 2, 2],
    )  # fmt: skip


def _led_unevenly() -> Cluster:
    """Partitions that are led at more or less than they weigh, all on two of five full nodes."""
    size = np.array([
        [2.2, 1.2], [1.9, 3.9], [2.6, 2.2], [2.8, 1.3], [2.9, 2.0], [1.9, 5.5], [4.2, 1.1],
        [3.5, 1.4], [3.0, 1.4], [1.8, 0.6], [2.6, 3.9], [3.1, 10.4], [2.4, 2.0], [3.2, 7.4],
    ])  # fmt: skip
    more = np.array(
        [[0.5, 0.5], [1.0, 3.0], [0.5, 1.0], [3.0, 0.5], [2.0, 1.0], [0.5, 3.0], [1.0, 1.0]]
    )
    return Cluster.from_arrays(
        capacity=np.tile([10.6, 16.5], (5, 1)), load=size, leader_load=size * np.tile(more, (2, 1)),
        placement=[[2 - (p in (1, 9, 10, 13))] for p in range(14)],
    )  # fmt: skip


def _tight() -> Iterator[Rehearsal]:
    """A large replica that others must make room for, leaders without room, replicas alike."""
    rows = [[0], [0], [1], [1], [2], [2], [-1]]
    load = np.array([4.0, 3.0, 4.0, 3.0, 4.0, 3.0, 6.0])[:, None]
    yield Rehearsal(
        Cluster.from_arrays(capacity=np.full((3, 1), 10.0), load=load, placement=rows),
        Goals(level=None),
    )
    size = 1.0 + np.arange(40)[:, None] % 5
    cluster = Cluster.from_arrays(
        capacity=np.full((5, 1), 200.0), load=size, leader_load=4.0 * size,
        placement=[[p % 4, (p + 1) % 4] for p in range(40)],
    )  # fmt: skip
    yield Rehearsal(cluster, Goals(level=0.02))
    yield Rehearsal(_grouped(), Goals(level=0.05))
    surplus = Cluster.from_arrays(
        capacity=np.full((4, 1), 30.0), load=np.ones((8, 1)), placement=[[0, 1, 2]] * 8, replicas=2
    )
    yield Rehearsal(surplus, Goals(level=0.1))
    alike = Cluster.from_arrays(
        capacity=np.full((3, 1), 20.0), load=np.ones((8, 1)), domains={"zone": [*"abb"]},
        placement=[[0], [0], [2], [0], [1], [0], [1], [2]], rules=[Rule(require=["zone=b"])],
        rule=[0 if p % 2 else -1 for p in range(8)],
    )  # fmt: skip
    yield Rehearsal(alike, Goals(level=0.0))


def _lost_nodes() -> Cluster:
    """A node of each zone is dead, and one drains."""
    alive = np.arange(12) % 6 != 5
    return Cluster.from_arrays(
        capacity=np.full((12, 2), 160.0),
        load=(1.0 + np.arange(54) % 4)[:, None] * np.array([1.0, 2.0]),
        leader_load=(2.0 + np.arange(54) % 4)[:, None] * np.array([1.0, 2.0]),
        dimensions=("cpu", "disk"),
        bytes="disk",
        domains={"zone": np.arange(12) % 3},
        placement=[[p % 12, (p + 1) % 12, (p + 2) % 12] for p in range(54)],
        alive=alive,
        accepts=alive & (np.arange(12) != 0),
        keeps=alive & (np.arange(12) != 0),
        spread={"zone": 1},
    )


def _small() -> Iterator[Rehearsal]:
    cluster = Cluster.from_arrays(
        capacity=[[10.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6, spread={"node": 1}
    )
    yield Rehearsal(cluster, Goals(level=0.0))
    yield Rehearsal(_preferred(), Goals(level=0.0))
    yield Rehearsal(_led_unevenly(), Goals(level=0.05, leaders=0.1), limits=Limits(node_in=3))
    yield Rehearsal(_beyond_repair(), Goals(level=0.05))
    yield from _every_kind()


def _beyond_repair() -> Cluster:
    """Groups of more replicas than their rule permits, which the search alone levels further."""
    return Cluster.from_arrays(
        capacity=np.full((6, 1), 40.0),
        load=1.0 + (np.arange(12) * 7 % 11)[:, None] * 0.5,
        domains={"zone": ["a", "b"] * 3},
        placement=[[p % 2] for p in range(12)],
        group=np.arange(12) % 3,
        group_rule=[0] * 3,
        rules=[Rule(spread={"zone": 1})],
    )


def _placed() -> Iterator[Rehearsal]:
    """What leaders are chosen in."""
    from evenkeel.simulate.generators import expansion

    yield Rehearsal(expansion(partitions=200, nodes=25, zones=5), Goals(level=0.0, leaders=0.0))
    yield Rehearsal(_on_disks(), Goals(disks=0.0))


def _zones(*each: Any) -> Callable[[], Iterator[Rehearsal]]:
    """Zones of equal nodes, all up and then two down, with each of some options."""

    def of() -> Iterator[Rehearsal]:
        cluster = _equal_nodes(**_IN_ZONES)
        alive = np.arange(16) >= 2
        down = replace(cluster.nodes, alive=alive, accepts=alive, keeps=alive)
        for chosen in each:
            yield Rehearsal(cluster, Goals(level=None), chosen)
            yield Rehearsal(replace(cluster, nodes=down), Goals(level=None), chosen)

    return of


def _zones_or_none() -> Iterator[Rehearsal]:
    """Zones of equal nodes, and nodes each of which is a zone of its own."""
    yield from _zones(None)()
    yield Rehearsal(_equal_nodes(), Goals(level=None))


def _zones_in_every_scope() -> Iterator[Rehearsal]:
    """Zones of equal nodes, placed anew and to each extent to which WAGED changes a placement."""
    from evenkeel.solving import solve

    yield from _zones(None)()
    cluster = _equal_nodes(**_IN_ZONES)
    placed = solve(cluster, "helix_waged").placement
    for scope in ("global", "partial", "emergency", "overwrite"):
        chosen = options.Waged(scope=scope, current=placed, baseline=placed)
        yield Rehearsal(cluster, Goals(level=None), chosen)


_IN_ZONES: Mapping[str, Any] = {
    "domains": {"zone": [f"z{n // 4}" for n in range(16)]}, "spread": {"zone": 1},
}  # fmt: skip


def _equal_nodes(**more: Any) -> Cluster:
    return Cluster.from_arrays(
        capacity=np.full((16, 1), 64.0),
        load=np.ones((64, 1)),
        dimensions=("disk",),
        node_names=[f"h{n // 4}-{n % 4}" for n in range(16)],
        replicas=3,
        group=np.repeat([0, 1], 32),
        group_names=["a", "b"],
        partition_names=[f"{group}_{p}" for group in "ab" for p in range(32)],
        **more,
    )


def _devices() -> Iterator[Rehearsal]:
    from evenkeel.systems.ceph.crush.cluster import cluster_of
    from evenkeel.systems.ceph.crush.crush_map import IN, Bucket, CrushMap, CrushRule, Step
    from evenkeel.systems.ceph.crush.placement import Pool

    hosts = [Bucket(-2 - h, f"h{h}", "host", [(2 * h, IN), (2 * h + 1, 2 * IN)]) for h in range(4)]
    root = Bucket(-1, "root", "root", [(host.id, 3 * IN) for host in hosts])
    rules = []
    for number, kind in enumerate(("firstn", "indep")):
        steps = [Step("take", -1), Step(f"chooseleaf_{kind}", 0, "host"), Step("emit")]
        rules.append(CrushRule(number, kind, steps))
    crush = CrushMap(8, {"osd": 0, "host": 1, "root": 2}, [root, *hosts], rules)
    for number in range(len(rules)):
        yield Rehearsal(cluster_of(crush, [Pool(number + 1, 64, 3, number)]), Goals(level=None))


def _stores() -> Iterator[Rehearsal]:
    from evenkeel.systems.cockroach.allocator.intake import cockroach_cluster

    yield from _expanded()
    yield Rehearsal(_on_disks(), Goals(level=0.1, disks=0.0))
    for dead in (False, True):
        cluster = cockroach_cluster(
            localities=["region=us", "region=eu", "region=asia"] * 3,
            status=["available"] * 7 + ["dead" if dead else "available", "available"],
            replicas=[[0, 1, 2], [0, 4, 5], [3, 7, 2]] * 20,
            leaseholder=[0, 0, 3] * 20,
            configs=[{"num_replicas": 3, "constraints": {"+region=us": 1}}],
            qps=np.linspace(10.0, 60.0, 60) ** 2,
            size=64 * 2**20,
            spread={"region": 1},
        )
        yield Rehearsal(cluster, Goals(level=0.1))


def _volumes() -> Iterator[Rehearsal]:
    from evenkeel.systems.longhorn.auto_balance import Disk, Host, Replica, Volume, cluster_of

    hosts = [Host(name=f"n{n}", disks=[Disk(name="ssd", maximum=10**12)]) for n in range(4)]
    volumes = [
        Volume(
            name=f"v{v}", size=10**10, actual_size=10**9, attached_to="n0",
            replicas=[Replica(name=f"v{v}-{i}", host=f"n{i // 2}", disk="ssd") for i in range(3)],
        )
        for v in range(8)
    ]  # fmt: skip
    for scope in ("volume", "cluster"):
        for effort in ("least-effort", "best-effort"):
            chosen = options.Longhorn(
                scope=scope, replica_auto_balance=effort, replica_soft_anti_affinity=True
            )
            yield Rehearsal(cluster_of(hosts, volumes), Goals(level=0.1), chosen)


# the cases by the name that the table of methods calls them
CASES: Mapping[str, Callable[[], Iterator[Rehearsal]]] = {
    "any": _any_cluster,
    "small": _small,
    "placed": _placed,
    "zones": _zones_or_none,
    "zones_in_every_scope": _zones_in_every_scope,
    "zones_or_repaired_multiround": _zones(None, options.MultiRound(repaired=True)),
    "zones_or_repaired_crushed": _zones(None, options.Crushed(repaired=True)),
    "devices": _devices,
    "stores": _stores,
    "volumes": _volumes,
}
