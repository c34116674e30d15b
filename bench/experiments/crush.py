"""The experiments of the CRUSH-ed text, with any method.

A method is whatever takes a cluster and returns a placement::

    import evenkeel as ek
    from bench.experiments.crush import Layout, zone_down

    def place(cluster):
        return ek.solve(cluster, "helix_crushed").placement

    zone_down(place, Layout())

Each experiment returns a frozen ``Table``; ``bench.experiments.written`` prints it.

References
----------
Apache Helix, CRUSH-ed for even distribution, section Experiment.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench.experiments.tables import Change, Size, Table, change_of, spread_of
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Placement

Place = Callable[[Cluster], Placement]  # a method, as far as an experiment sees it


@dataclass(frozen=True)
class Layout:
    """A cluster of equal nodes in zones, and groups of equal partitions.

    >>> Layout(zones=(2, 1), groups=1, partitions=2, replicas=1).cluster()
    <Cluster: 3 nodes, 2 partitions, 2 replicas wanted, 1 dimension>
    """

    zones: tuple[int, ...] = (11, 12, 12, 12, 12)
    groups: int = 10
    partitions: int = 1024
    replicas: int = 3
    zoned: bool = True
    zone_name: str = "z{zone}"
    node_name: str = "h{zone}-{node}.example.com"
    group_name: str = "DbE{group}"
    partition_name: str = "{name}_{partition}"

    def __post_init__(self) -> None:
        faults = FaultList()
        for name in ("groups", "partitions", "replicas"):
            if getattr(self, name) < 1:
                faults.add(name, getattr(self, name), "must be 1 or more")
        if not self.zones or min(self.zones) < 1:
            faults.add("zones", self.zones, "needs at least one node in each zone")
        faults.raise_if_any()

    def cluster(self, sizes: NDArray[np.float64] | None = None) -> Cluster:
        """Build the cluster, with every node up and nothing placed."""
        names = [self.group_name.format(group=g) for g in range(self.groups)]
        count = self.groups * self.partitions
        load = np.ones(count) if sizes is None else sizes
        zone = np.repeat(np.arange(len(self.zones)), self.zones)
        return Cluster.from_arrays(
            capacity=np.full((len(zone), 1), max(1.0, float(load.sum()))),
            load=load[:, None],
            dimensions=("disk",),
            node_names=[
                self.node_name.format(zone=z, node=n)
                for z, size in enumerate(self.zones)
                for n in range(size)
            ],
            domains={"zone": [self.zone_name.format(zone=z) for z in zone]} if self.zoned else None,
            spread={"zone": 1} if self.zoned else None,
            replicas=self.replicas,
            group=np.repeat(np.arange(self.groups), self.partitions),
            group_names=names,
            partition_names=[
                self.partition_name.format(name=name, partition=p)
                for name in names
                for p in range(self.partitions)
            ],
        )

    def zone_of(self) -> NDArray[np.int64]:
        """Return the zone of each node."""
        return np.repeat(np.arange(len(self.zones)), self.zones)


def distribution(place: Place, layout: Layout, what: str = "all nodes up") -> Table:
    """Measure how even a placement is.

    >>> def in_turn(cluster):
    ...     node = np.arange(len(cluster.placement.node), dtype=np.int32) % len(cluster.nodes)
    ...     return cluster.placement.replaced(node, cluster.placement.leader)
    >>> distribution(in_turn, Layout((2, 2, 2), 1, 8)).rows[0].most
    4
    """
    cluster = layout.cluster()
    return Table("Distribution", (spread_of(cluster, place(cluster), what),))


def nodes_down(
    place: Place, layout: Layout, count: int = 7, draws: int = 5, seed: int = 0
) -> Table:
    """Take random nodes down."""
    cluster = layout.cluster()
    before = place(cluster)
    rng = np.random.default_rng(seed)
    rows = []
    for draw in range(draws):
        down = rng.choice(len(cluster.nodes), count, replace=False)
        after = place(_with_down(cluster.with_placement(before), down))
        rows.append(change_of(f"draw {draw + 1}", before, after, went=down))
    return Table(f"{count} random nodes down", tuple(rows))


def recovery(place: Place, layout: Layout, count: int = 7, seed: int = 0) -> Table:
    """Disable nodes and enable them again: the placement should be what it was."""
    cluster = layout.cluster()
    before = place(cluster)
    down = np.random.default_rng(seed).choice(len(cluster.nodes), count, replace=False)
    during = place(_with_down(cluster.with_placement(before), down))
    after = place(cluster.with_placement(during))
    rows = (
        change_of("disabled", before, during, went=down),
        change_of("enabled again", during, after, came=down),
        change_of("before to after", before, after),
    )
    return Table("Disabled and enabled again", rows)


def bouncing(
    place: Place, layout: Layout, count: int = 5, rounds: int = 10, seed: int = 0
) -> tuple[Table, Table]:
    """Keep bouncing the cluster: each round other nodes are down."""
    cluster = layout.cluster()
    now = place(cluster)
    rng = np.random.default_rng(seed)
    down = np.zeros(0, np.int64)
    changes, spreads = [], []
    for number in range(rounds + 1):
        last = number == rounds
        next_down = rng.choice(len(cluster.nodes), 0 if last else count, replace=False)
        bounced = _with_down(cluster.with_placement(now), next_down)
        after = place(bounced)
        name = "all nodes up" if last else f"round {number + 1}"
        went, came = np.setdiff1d(next_down, down), np.setdiff1d(down, next_down)
        changes.append(change_of(name, now, after, went=went, came=came))
        spreads.append(spread_of(bounced, after, name))
        now, down = after, next_down
    title = f"Bouncing, {count} nodes down at a time"
    return Table(title, tuple(changes)), Table(title, tuple(spreads))


def zone_down(place: Place, layout: Layout, zones: Sequence[int] | None = None) -> Table:
    """Take a whole zone down, then bring half of it back."""
    cluster, zone = layout.cluster(), layout.zone_of()
    before = place(cluster)
    rows = []
    for z in range(len(layout.zones)) if zones is None else zones:
        down = np.flatnonzero(zone == z)
        during = place(_with_down(cluster.with_placement(before), down))
        back = down[: (len(down) + 1) // 2]
        half = _with_down(cluster.with_placement(during), np.setdiff1d(down, back))
        rows.append(change_of(f"zone {z} down", before, during, went=down))
        rows.append(change_of(f"half of zone {z} back", during, place(half), came=back))
    return Table("A whole zone down, and half of it back", tuple(rows))


def rolling_upgrade(place: Place, layout: Layout, nodes: int | None = None) -> Table:
    """Restart nodes one after another: as one goes down, the one before it comes back."""
    cluster = layout.cluster()
    now = place(cluster)
    steps: list[Change] = []
    came = np.zeros(0, np.int64)
    for n in range(len(cluster.nodes) if nodes is None else nodes):
        went = np.array([n])
        after = place(_with_down(cluster.with_placement(now), went))
        name = f"node {n} down" + (f", {n - 1} back" if n else "")
        steps.append(change_of(name, now, after, went=went, came=came))
        now, came = after, went
    worst = (
        ("most moves", max(steps, key=lambda step: step.moved)),
        ("most extra moves", max(steps, key=lambda step: step.extra)),
        ("most extra leader changes", max(steps, key=lambda step: step.extra_changes)),
    )
    rows = tuple(replace(step, event=f"{name}: {step.event}") for name, step in worst)
    return Table("Rolling upgrade", rows)


def nodes_added(place: Place, layout: Layout, each: Iterable[int] = (1, 2, 3)) -> Table:
    """Add nodes to every zone."""
    cluster = layout.cluster()
    before = place(cluster)
    rows = []
    for more in each:
        larger = replace(layout, zones=tuple(size + more for size in layout.zones)).cluster()
        names = larger.nodes.names
        was = np.array([names.index(name) for name in cluster.nodes.names] + [-1], np.int32)
        moved_over = before.replaced(was[before.node], before.leader)
        came = np.setdiff1d(np.arange(len(names)), was)
        after = place(larger.with_placement(moved_over))
        rows.append(change_of(f"{more} added to each zone", moved_over, after, came=came))
    return Table("Adding nodes", tuple(rows))


def unequal_sizes(
    place: Place, layout: Layout, what: str, sigma: float = 1.0, seed: int = 0
) -> Table:
    """Measure how evenly data lies where partitions differ in size, and counts are balanced."""
    rng = np.random.default_rng(seed)
    group = np.repeat(rng.normal(0.0, sigma, layout.groups), layout.partitions)
    sizes = np.exp(group + rng.normal(0.0, 0.1 * sigma, len(group)))
    cluster = layout.cluster(sizes)
    placement = place(cluster)
    held = placement.node >= 0
    data = np.bincount(
        placement.node[held], sizes[placement.owner[held]], minlength=len(cluster.nodes)
    )
    row = Size(what, float(data.max()), float(data.mean()), float(data.std()))
    return Table("Partitions of unequal size", (row,))


# the corner cases of the text
CORNERS = {
    "100 nodes, 100 groups of 101": Layout((10,) * 10, 100, 101),
    "100 nodes, 1 group of 10,100": Layout((10,) * 10, 1, 10_100),
    "one group only": Layout(groups=1),
    "no fault zones": Layout(zoned=False),
}


def corner_cases(place: Place, corners: Iterable[str] = tuple(CORNERS)) -> Table:
    """Measure how even a placement is in extreme cases."""
    rows = []
    for name in corners:
        cluster = CORNERS[name].cluster()
        rows.append(spread_of(cluster, place(cluster), name))
    return Table("Corner cases", tuple(rows))


def _with_down(cluster: Cluster, down: NDArray[np.int64]) -> Cluster:
    """Return the cluster with some nodes dead, and all others up."""
    up = ~np.isin(np.arange(len(cluster.nodes)), down)
    return replace(cluster, nodes=replace(cluster.nodes, alive=up, accepts=up, keeps=up))
