"""Measure the disks inside nodes: targets, a lower bound on disk moves, and violations."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from evenkeel.measure.compare import joined
from evenkeel.model.cluster import Cluster
from evenkeel.model.disks import DiskState, disk_of, lying
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Goals, move_costs
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import ROUNDING, Flags, Ints32, Ints64, Reals, read_only
from evenkeel.model.runtime.memoize import memoize


@dataclass(frozen=True, eq=False)
class DiskReport:
    """The disks of a cluster under a placement. M disks, K replicas.

    Parameters
    ----------
    moves : int
        Replicas that stay on their node and change its disk.
    bytes_moved : float
        What they weigh.
    moves_at_least : int
        Fewest such moves, proven for the nodes that the replicas are on. Of an answer that misses
        its targets no more than it moves.
    loads, targets : ndarray of float64, shape (M,)
        What each disk holds, and what the goal allows it: its share of the node times (1 +
        tolerance), or the least that its whole replicas allow.
    over_target, over_capacity : ndarray of int32
        Disks above their target, and above their capacity.
    to_empty : ndarray of int64
        Replicas on disks that failed or are being emptied.
    adrift : ndarray of int64
        Replicas of an answer that no disk of their node has room for.
    goal : float or None
        Tolerance that the targets allow.
    level : float
        Most that a disk holds, as a multiple of its share of its node.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[20.0]], load=[[1.0]] * 4, dimensions=["disk"], bytes="disk",
    ...     placement=[[0]] * 4, disks=ek.Disks([0, 0], [10.0] * 2), disk=[[0]] * 4)
    >>> found = ek.solve(c, goals=ek.Goals(disks=0.0)).disks
    >>> found.moves, found.moves_at_least, found.loads.tolist()
    (2, 2, [2.0, 2.0])
    """

    moves: int
    bytes_moved: float
    moves_at_least: int
    loads: Reals
    targets: Reals
    over_target: Ints32
    over_capacity: Ints32
    to_empty: Ints64
    adrift: Ints64
    goal: float | None = None
    level: float = 1.0

    @property
    def broken(self) -> int:
        """Disks above their capacity, and replicas that lie on no disk that takes them."""
        return len(self.over_capacity) + len(self.to_empty) + len(self.adrift)


class NodeContents(NamedTuple):
    """The replicas on nodes with disks, by node, the largest first. I replicas, N nodes."""

    replica: Ints64
    first: Ints64
    size: Reals
    home: Ints32
    fixed: Flags


def sizes(cluster: Cluster, placement: Placement) -> Reals:
    """Return what each replica weighs in the dimension that moves, in its role, (K,)."""
    load, at, owner = cluster.partitions.load, cluster.bytes_dimension, placement.owner
    found = load.voter[:, at].take(owner)
    if load.non_voter is not load.voter:
        found = np.where(placement.role == Role.NON_VOTER, load.non_voter[owner, at], found)
    if load.leader is not load.voter:
        leads = placement.leader_replica
        led = np.flatnonzero(leads >= 0)
        found[leads[led]] = load.leader[led, at]
    return found


def homes(cluster: Cluster, before: Placement, after: Placement) -> Ints32:
    """Return the disk on which each replica of ``after`` lay on its node before, (K,); -1: none."""
    assert cluster.disks is not None, "asked of a cluster without disks"
    found = lying(after, replace(before, disk=disk_of(cluster.disks, before)))
    assert found is not None, "each has a disk, or none"
    return found


def node_contents(cluster: Cluster, after: Placement) -> NodeContents:
    """Return the replicas on nodes with disks, in order of node and of size."""
    return memoize(
        after, "contents of nodes", lambda: _contents(cluster, after),
        cluster.disks, cluster.nodes, cluster.partitions, cluster.placement,
        cluster.bytes_dimension,
    )  # fmt: skip


def with_disk(cluster: Cluster, after: Placement, disk: Ints32) -> Placement:
    """Return a placement with other disks for its replicas, of the same nodes."""
    placed, contents = replace(after, disk=read_only(disk)), node_contents(cluster, after)
    memoize(
        placed, "contents of nodes", lambda: contents,
        cluster.disks, cluster.nodes, cluster.partitions, cluster.placement,
        cluster.bytes_dimension,
    )  # fmt: skip
    return placed


def _contents(cluster: Cluster, after: Placement) -> NodeContents:
    disks, before = cluster.disks, cluster.placement
    assert disks is not None, "asked of a cluster without disks"
    nodes = len(cluster.nodes)
    has = np.append(np.bincount(disks.node, minlength=nodes) > 0, False)
    replica = np.flatnonzero(has[after.node])
    size = sizes(cluster, after)[replica]
    order = np.argsort(-size, kind="stable")
    kind = np.int16 if nodes < 2**15 else np.int32  # short integers sort by digits
    node = after.node[replica].astype(kind)
    order = order[np.argsort(node[order], kind="stable")]
    replica = replica[order]
    first = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(node, minlength=nodes), out=first[1:])
    home = homes(cluster, before, after)[replica]
    pinned = (before.flags[replica] & Flag.PINNED) != 0
    failed = np.append(disks.state == DiskState.FAILED, False)[home]
    # nothing moves inside a node that is down
    fixed = (home >= 0) & ((pinned & ~failed) | ~cluster.nodes.alive[after.node[replica]])
    return NodeContents(replica, first, size[order], home, fixed)


def disk_targets(cluster: Cluster, contents: NodeContents, tolerance: float | None) -> Reals:
    """Return what each disk may hold, (M,): no more than its capacity, 0 where it takes nothing."""
    # Any amount on a node that is down. The share of a disk is that of its capacity in those of the
    # node's usable disks, an equal one where a capacity is unlimited. No target is below what whole
    # replicas force: of k m + 1 replicas some disk of m holds k + 1.
    disks, nodes = cluster.disks, len(cluster.nodes)
    assert disks is not None, "asked of a cluster without disks"
    usable, of = disks.usable, disks.node
    most = np.where(usable, disks.capacity, 0.0)
    up = cluster.nodes.alive[of]
    if tolerance is None:
        return np.where(up, most, np.inf)
    weight, mean = _shares(cluster, contents)
    count = np.bincount(of, usable, nodes).astype(np.int64)
    node = np.repeat(np.arange(nodes), np.diff(contents.first))
    widest = np.zeros(nodes)
    np.maximum.at(widest, of, weight)
    rank = np.arange(len(node)) - contents.first[node]
    at = np.flatnonzero((count[node] > 0) & (rank % np.maximum(count[node], 1) == 0))
    forced = np.zeros(nodes)
    least = (rank[at] // count[node[at]] + 1) * contents.size[at]
    np.maximum.at(forced, node[at], least)
    forced = np.divide(forced, widest, out=np.zeros(nodes), where=widest > 0.0)
    share = np.maximum((1.0 + tolerance) * mean, forced)[of]
    return np.where(up, np.minimum(share * weight, most), np.inf)


def _shares(cluster: Cluster, contents: NodeContents) -> tuple[Reals, Reals]:
    """Return the weight of each disk, (M,), and what its node holds for each unit of it, (N,)."""
    disks, nodes = cluster.disks, len(cluster.nodes)
    assert disks is not None, "asked of a cluster without disks"
    usable, of = disks.usable, disks.node
    endless = np.bincount(of, usable & np.isinf(disks.capacity), nodes) > 0
    weight = np.where(endless[of], usable.astype(float), np.where(usable, disks.capacity, 0.0))
    weights = np.bincount(of, weight, nodes)
    held = np.bincount(np.repeat(np.arange(nodes), np.diff(contents.first)), contents.size, nodes)
    return weight, np.divide(held, weights, out=np.zeros(nodes), where=weights > 0.0)


def _level(cluster: Cluster, contents: NodeContents, loads: Reals) -> float:
    """Return the most that a usable disk holds, as a multiple of its share of its node."""
    assert cluster.disks is not None, "asked of a cluster without disks"
    weight, mean = _shares(cluster, contents)
    share = weight * mean[cluster.disks.node]
    return float(np.max(loads[share > 0.0] / share[share > 0.0], initial=1.0))


def fewest_disk_moves(cluster: Cluster, contents: NodeContents, targets: Reals) -> int:
    """Return how many replicas must change the disk of their node at least."""
    # All leave a disk that takes nothing. A disk above its target without what arrives gives up at
    # least as many as its largest ones are that weigh the excess.
    disks = cluster.disks
    assert disks is not None, "asked of a cluster without disks"
    free = np.flatnonzero((contents.home >= 0) & ~contents.fixed)
    free = free[np.lexsort((-contents.size[free], contents.home[free]))]
    home, size = contents.home[free], contents.size[free]
    fixed = contents.fixed
    lain = np.bincount(home, size, len(disks)).astype(float)
    lain += np.bincount(contents.home[fixed], contents.size[fixed], len(disks))
    excess = lain - targets * (1.0 + ROUNDING)
    excess[disks.usable & np.isinf(targets)] = 0.0
    start = np.searchsorted(home, np.arange(len(disks)))
    so_far = np.cumsum(size) - size
    before = so_far - so_far[start[home]] if len(home) else so_far
    leaves = ~disks.usable[home] | (before < excess[home] * (1.0 - ROUNDING))
    return int(np.count_nonzero(leaves & ((size > 0.0) | ~disks.usable[home])))


def price_of_moves(cluster: Cluster, goals: Goals, after: Placement) -> float:
    """Return what the moves to a placement cost, a plain one between nodes counting for 1."""
    moved = joined(cluster.placement, after)
    between = float(move_costs(FaultList(), cluster, goals)[after.owner[moved]].sum())
    inside = 0 if cluster.disks is None else disk_report(cluster, after, goals.disks).moves
    return between + goals.disk_move_cost * inside


def least_price(cluster: Cluster, goals: Goals, moves: int) -> float:
    """Return what moves cost at least where as many as ``moves`` are needed between nodes."""
    # what must leave its disk, on any node, moves between nodes or inside of one
    contents, partitions = node_contents(cluster, cluster.placement), cluster.partitions
    owner = cluster.placement.owner
    lightest = partitions.load.lightest_by_dimension[cluster.bytes_dimension]
    contents = contents._replace(size=lightest[owner[contents.replica]])
    leave = fewest_disk_moves(cluster, contents, disk_targets(cluster, contents, None))
    there = np.bincount(owner[cluster.placement.node >= 0], minlength=len(partitions))
    leave -= int(np.maximum(there - partitions.replicas, 0).sum())  # dropping one is no move
    return moves + goals.disk_move_cost * max(0, leave - moves)


def disk_report(cluster: Cluster, after: Placement, tolerance: float | None) -> DiskReport:
    """Count what changes its disk under a placement, and what disks break under it, once."""
    return memoize(
        after, f"disks within {tolerance}", lambda: _report(cluster, after, tolerance),
        cluster.disks, cluster.nodes, cluster.partitions, cluster.placement,
        cluster.bytes_dimension,
    )  # fmt: skip


def _report(cluster: Cluster, after: Placement, tolerance: float | None) -> DiskReport:
    disks = cluster.disks
    assert disks is not None, "asked of a cluster without disks"
    contents = node_contents(cluster, after)
    targets = disk_targets(cluster, contents, tolerance)
    disk = disk_of(disks, after)[contents.replica]
    moved = (contents.home >= 0) & (disk != contents.home)
    lies = disk >= 0
    loads = np.bincount(disk[lies], contents.size[lies], len(disks)).astype(float)
    above = loads > targets * (1.0 + ROUNDING)
    full = loads > disks.capacity * (1.0 + ROUNDING)
    up = cluster.nodes.alive[after.node[contents.replica]]
    closed = ~np.append(disks.usable, True)[disk] & up
    moves, fewest = int(np.count_nonzero(moved)), fewest_disk_moves(cluster, contents, targets)
    given = after is cluster.placement  # what lies on no disk is not known there
    missed = (above & disks.usable).any() or closed.any() or not lies.all()
    return DiskReport(
        moves=moves,
        bytes_moved=float(contents.size[moved].sum()),
        moves_at_least=min(fewest, moves) if missed and not given else fewest,
        loads=read_only(loads),
        targets=read_only(targets),
        over_target=np.flatnonzero(above & disks.usable).astype(np.int32),
        over_capacity=np.flatnonzero(full & disks.usable & cluster.nodes.alive[disks.node]).astype(
            np.int32
        ),
        to_empty=np.sort(contents.replica[closed]),
        adrift=np.sort(contents.replica[~lies & up & (not given)]),
        goal=tolerance,
        level=_level(cluster, contents, loads),
    )
