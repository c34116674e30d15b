"""Put replicas on disks of nodes; where no disk has room, solve again with less room there."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.disks import NodeContents, disk_targets, node_contents, sizes, with_disk
from evenkeel.model.cluster import Cluster
from evenkeel.model.disks import disk_of
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import ROUNDING, read_only, writable
from evenkeel_kernels.core.disks import NodeDisks, level_disks

ROUNDS = 4  # how often nodes are chosen anew for replicas that the disks of theirs have no room for
R = TypeVar("R")

STEPS = 20_000  # steps of the exact search inside one small node


class OnDisks(NamedTuple):
    """A placement on disks, and the replicas that no disk of their node has room for."""

    placement: Placement
    left: NDArray[np.int64]


def on_disks(
    cluster: Cluster, placement: Placement, tolerance: float | None, most: int | None
) -> OnDisks:
    """Return a placement with a disk for each replica, with the fewest moves inside nodes."""
    # no more than ``most``: first of what must leave its disk, then on nodes that take the fewest
    contents, disks = node_contents(cluster, placement), cluster.disks
    found = _levelled(cluster, placement, contents, tolerance)
    assert disks is not None, "asked of a cluster without disks"
    lies, lay = disk_of(disks, found.placement)[contents.replica], contents.home
    moved = np.flatnonzero((lay >= 0) & (lies != lay))
    if most is None or len(moved) <= most:
        return found
    node = placement.node[contents.replica[moved]]
    order = np.lexsort((node, np.bincount(node)[node], disks.usable[lay[moved]]))
    fixed = contents.fixed | (lay >= 0)
    fixed[moved[order[:most]]] = False
    return _levelled(cluster, placement, contents._replace(fixed=fixed), tolerance)


def _levelled(
    cluster: Cluster, placement: Placement, contents: NodeContents, tolerance: float | None
) -> OnDisks:
    disks = cluster.disks
    assert disks is not None, "asked of a cluster without disks"
    targets = disk_targets(cluster, contents, tolerance)
    share = disk_targets(cluster, contents, 0.0)
    disk_first = np.zeros(len(cluster.nodes) + 1, np.int64)
    np.cumsum(np.bincount(disks.node, minlength=len(cluster.nodes)), out=disk_first[1:])
    count = len(contents.replica)
    where, load = np.empty(count, np.int32), np.empty(len(disks))
    arrays = NodeDisks(
        contents.first, contents.size, contents.home, contents.fixed, disk_first,
        writable(disks.usable), writable(disks.capacity), share, where, load,
        np.empty(count, np.int32), np.empty(count),
    )  # fmt: skip
    level_disks(arrays, targets, STEPS)
    disk = np.full(len(placement.node), -1, np.int32)
    # what has no room stays on its disk, as it came
    disk[contents.replica] = np.where(where < 0, contents.home, where)
    left = np.concatenate([contents.replica[where < 0], _too_many(cluster, contents, where, load)])
    return OnDisks(with_disk(cluster, placement, disk), left)


def _too_many(
    cluster: Cluster, contents: NodeContents, where: NDArray[np.int32], load: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return a replica of each disk that holds more than it can: the smallest that is enough."""
    disks = cluster.disks
    assert disks is not None, "asked of a cluster without disks"
    excess = load - disks.capacity * (1.0 + ROUNDING)
    full = np.flatnonzero((excess > 0.0) & disks.usable & cluster.nodes.alive[disks.node])
    found = []
    for d in full.tolist():
        own = np.flatnonzero((where == d) & ~contents.fixed & (contents.size > 0.0))
        enough = own[contents.size[own] >= excess[d]]
        if len(own):  # the largest come first
            found.append(int(contents.replica[enough[-1] if len(enough) else own[0]]))
    return np.array(found, np.int64)


def with_room_on_disks(cluster: Cluster) -> Cluster:
    """Return a cluster in which partitions are kept off nodes whose every disk is too small."""
    disks = cluster.disks
    assert disks is not None, "asked of a cluster without disks"
    nodes = len(cluster.nodes)
    widest = np.where(np.bincount(disks.node, minlength=nodes) > 0, 0.0, np.inf)
    np.maximum.at(widest, disks.node, np.where(disks.usable, disks.capacity, 0.0))
    load, at = cluster.partitions.load, cluster.bytes_dimension
    least = np.minimum(np.minimum(load.leader, load.voter), load.non_voter)[:, at]
    large = np.flatnonzero(least > widest.min(initial=np.inf))
    pairs = [
        np.stack([np.full(len(small), p), small], 1)
        for p in large.tolist()
        if len(small := np.flatnonzero(widest < least[p]))
    ]
    return _closed(cluster, np.concatenate(pairs)) if pairs else cluster


def without_overflow(
    cluster: Cluster, placement: Placement, left: NDArray[np.int64], *, repeated: bool
) -> Cluster:
    """Return a cluster in which what a node's disks have no room for is kept off that node."""
    # if that was ``repeated``, what took its place had no room either: the node then holds less
    pairs = np.stack([placement.owner[left], placement.node[left]], 1)
    if not repeated:
        return _closed(cluster, pairs)
    size, at = sizes(cluster, placement), cluster.bytes_dimension
    nodes = len(cluster.nodes)
    held = np.bincount(placement.node[placement.node >= 0], size[placement.node >= 0], nodes)
    over = np.bincount(placement.node[left], size[left], nodes)
    capacity = cluster.nodes.capacity.copy()
    capacity[:, at] = np.where(over > 0.0, np.maximum(held - over, 0.0), capacity[:, at])
    cluster = replace(cluster, nodes=replace(cluster.nodes, capacity=read_only(capacity)))
    return _closed(cluster, pairs)


def _closed(cluster: Cluster, pairs: NDArray[np.integer]) -> Cluster:
    both = np.concatenate([cluster.forbidden, pairs.astype(np.int32)])
    return replace(cluster, forbidden=read_only(np.unique(both, axis=0)))


def placed_on_disks(
    cluster: Cluster,
    tolerance: float | None,
    most: int | None,
    run: Callable[[Cluster], R],
    placement_of: Callable[[R], Placement],
) -> tuple[R, Placement]:
    """Run a method until the disks of nodes have room for what it places on them."""
    asked = with_room_on_disks(cluster)
    found = run(asked)
    best = found, on_disks(cluster, placement_of(found), tolerance, most)
    latest = best
    for i in range(ROUNDS):
        if not len(best[1].left):
            break
        asked = without_overflow(asked, latest[1].placement, latest[1].left, repeated=i > 1)
        found = run(asked)
        latest = found, on_disks(cluster, placement_of(found), tolerance, most)
        if len(latest[1].left) < len(best[1].left):
            best = latest
    return best[0], best[1].placement
