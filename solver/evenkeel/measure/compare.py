"""Comparison of two placements: moves, leader changes and bytes."""

from dataclasses import dataclass

import numpy as np

from evenkeel.measure.loads import wanted_load, weighted_sum
from evenkeel.measure.rows import more_often, replicas_of, stands
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import Flags, Ints32, Ints64, Reals, Rows, read_only
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.model.runtime.memoize import memoize


@dataclass(frozen=True, eq=False)
class Comparison:
    """The way from one placement to another. N nodes, D dimensions, K replicas.

    Parameters
    ----------
    moves : int
        Nodes that join a partition's set of nodes; a leadership change is none.
    forced : int
        Replicas wanted that stood nowhere, or where they could not stay.
    leader_changes : int
        Partitions whose leader was alive and is another node now, or none though one is wanted.
    removed : int
        Replicas that left without another in their place.
    load_moved : ndarray of float64, shape (D,)
        Load of the moved replicas, in their new roles, as a fraction of all load wanted.
    bytes_moved : float
        Load of the moved replicas in the dimension that moves; 0 if there is none.
    node_in, node_out : ndarray of int64, shape (N,)
        Replicas that joined, and that left, each node.
    joined : ndarray of bool, shape (K of after,)
        Replicas whose node is new to their partition.
    left : ndarray of bool, shape (K of before,)
        Replicas whose node their partition left.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> way = result.comparison
    >>> way.moves, way.node_in.tolist(), way.node_out.tolist()
    (2, [0, 2], [2, 0])
    """

    moves: int
    forced: int
    leader_changes: int
    removed: int
    load_moved: Reals
    bytes_moved: float
    node_in: Ints64
    node_out: Ints64
    joined: Flags
    left: Flags

    @property
    def voluntary(self) -> int:
        """Moves beyond the forced ones; negative while forced ones are still to be made."""
        return self.moves - self.forced


def compare(cluster: Cluster, before: Placement, after: Placement) -> Comparison:
    """Count the moves, leadership changes and loads between two placements of one cluster.

    Parameters
    ----------
    cluster : Cluster
        The cluster of both placements.
    before, after : Placement
        The two; their rows may differ in length.

    Returns
    -------
    Comparison
        Everything that changed.

    Examples
    --------
    >>> from evenkeel.model.cluster import Cluster
    >>> c = Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]], placement=[[0, 1]])
    >>> swapped = c.placement.replaced(np.array([1, 2], np.int32), np.array([0], np.int16))
    >>> found = compare(c, c.placement, swapped)
    >>> found.moves, found.leader_changes
    (1, 1)
    """
    nodes = len(cluster.nodes)
    came = joined(before, after)
    beat()
    left = joined(after, before)
    beat()
    arrivals, departures = np.flatnonzero(came), np.flatnonzero(left)
    # replicas that share a node are one departure, and still several
    counts = (PlacementCounts.of(cluster, one) for one in (before, after))
    had, has = (one.tallied(one.node_row > 0) for one in counts)
    removed = int(np.maximum(had - has, 0).sum())
    beat()
    moved = _moved_load(cluster, after, arrivals)
    led = before.leader_node
    was_led = (led >= 0) & cluster.nodes.alive[np.maximum(led, 0)] if nodes else led >= 0
    was_led &= (after.leader_node >= 0) | (cluster.partitions.replicas > 0)
    bytes_at = cluster.bytes_dimension
    return Comparison(
        moves=len(arrivals),
        forced=forced_moves(PlacementCounts.of(cluster, before)),
        leader_changes=int(np.count_nonzero(was_led & (led != after.leader_node))),
        removed=removed,
        load_moved=read_only(_share_of_all(cluster, moved)),
        bytes_moved=float(moved[bytes_at]) if bytes_at >= 0 else 0.0,
        node_in=read_only(np.bincount(after.node[arrivals], minlength=nodes)),
        node_out=read_only(np.bincount(before.node[departures], minlength=nodes)),
        joined=read_only(came),
        left=read_only(left),
    )


def compare_losses(
    cluster: Cluster, after: Placement, replicas: Ints64, moved: Reals, forced: int
) -> Comparison:
    """Compare where all that moved are ``replicas (n,)``, ``forced`` of them off lost nodes."""
    # Each is on a node that its partition had not; they weigh ``moved (D,)`` in all. Live replicas
    # lead its partitions. The result equals that of ``compare``, at the cost of nodes and moves.
    before, nodes, bytes_at = cluster.placement, len(cluster.nodes), cluster.bytes_dimension
    flag = np.zeros(len(after.node), bool)
    flag[replicas] = True
    flag = read_only(flag)
    return Comparison(
        moves=len(replicas),
        forced=forced,
        leader_changes=0,
        removed=0,
        load_moved=read_only(_share_of_all(cluster, moved)),
        bytes_moved=float(moved[bytes_at]) if bytes_at >= 0 else 0.0,
        node_in=read_only(np.bincount(after.node[replicas], minlength=nodes)),
        node_out=read_only(np.bincount(before.node[replicas], minlength=nodes)),
        joined=flag,
        left=flag,
    )


def _share_of_all(cluster: Cluster, load: Reals) -> Reals:
    """Return a load as a fraction of all load wanted, 0 of none; (D,)."""
    total = wanted_load(cluster)
    with np.errstate(over="ignore"):
        return np.divide(load, total, out=np.zeros_like(load), where=total > 0.0)


def joined(before: Placement, after: Placement) -> Flags:
    """Return which replicas of ``after`` are on a node that is new to their partition."""
    if before is after:
        return np.zeros(len(after.node), bool)
    if before.first is after.first or np.array_equal(before.first, after.first):
        suspect = np.flatnonzero((after.node != before.node) & (after.node >= 0))
    else:
        suspect = np.flatnonzero(after.node >= 0)
    new = np.zeros(len(after.node), bool)
    new[suspect] = ~stands(before, after.owner[suspect], after.node[suspect])
    return new


def relocations(before: Placement, after: Placement) -> int:
    """Count the replicas that leave nodes for others, also for one where their partition stands."""
    size = int(max(before.node.max(initial=-1), after.node.max(initial=-1))) + 2
    pairs = [one.owner.astype(np.int64) * size + one.node + 1 for one in (before, after)]
    if np.array_equal(before.first, after.first):
        changed = np.zeros(len(after.first), bool)
        changed[after.owner[before.node != after.node]] = True
        pairs = [own[changed[after.owner]] for own in pairs]
    pair, more = more_often(*pairs)
    return int(more[pair % size > 0].sum())


def forced_moves(placed: PlacementCounts) -> int:
    """Count the replicas wanted that stand nowhere, or on a node that may not hold them."""
    cluster = placed.cluster

    def count() -> int:
        lacking = cluster.partitions.replicas - placed.holding
        return int(np.maximum(lacking, 0).sum())

    return memoize(placed, "forced moves", count, cluster.nodes, cluster.partitions)


def _moved_load(cluster: Cluster, after: Placement, arrivals: Rows) -> Reals:
    """Return the total load of some replicas, in the roles they have; (D,)."""
    owner = after.owner[arrivals]
    load, partitions = cluster.partitions.load, len(cluster.partitions)
    leads = after.leader_replica[owner] == arrivals
    light = (after.role[arrivals] == Role.NON_VOTER) & ~leads
    total = np.zeros(load.voter.shape[1])
    for weight, counted in (
        (load.leader, leads), (load.non_voter, light), (load.voter, ~(leads | light)),
    ):  # fmt: skip
        if counted.any():
            total += weighted_sum(np.bincount(owner[counted], minlength=partitions), weight)
    return total


def sources(before: Placement, after: Placement) -> Ints64:
    """Return the node that each replica of ``after`` takes the place of, (K,); -1 for none."""
    # Only a replica on a node that is new to its partition takes a place: that of the node that
    # left its slot, or else of the one that left its partition in the same turn.
    joins, leaves = joined(before, after), joined(after, before)
    found = np.full(len(after.node), -1, np.int64)
    went = np.flatnonzero(leaves)
    if np.array_equal(before.first, after.first):
        same = joins & leaves
        found[same] = before.node[same]
        went = went[~joins[went]]
    rest = np.flatnonzero(joins & (found < 0))
    # the n-th arrival of a partition that is left takes the place of its n-th departure
    most = len(after.node) + len(before.node)
    arrival, departure = _turns(after.owner[rest], most), _turns(before.owner[went], most)
    at = np.minimum(np.searchsorted(departure, arrival), max(len(went) - 1, 0))
    if len(went):
        found[rest] = np.where(departure[at] == arrival, before.node[went[at]], -1)
    return found


def sources_with_surplus(before: Placement, after: Placement) -> Ints64:
    """Return the same where a node that a partition was on twice is left by one replica, too."""
    found = sources(before, after)
    if not np.array_equal(before.first, after.first):
        return found
    more = np.flatnonzero(joined(before, after) & (found < 0) & (before.node >= 0))
    owner, node = after.owner[more], before.node[more]
    spare = _times(before, owner, node) > _times(after, owner, node)
    found[more[spare]] = node[spare]
    return found


def _times(placement: Placement, partition: Ints32, node: Ints32) -> Ints64:
    """Count how often each partition stands on each node, pair by pair."""
    replicas, pair = replicas_of(placement, partition)
    same = placement.node[replicas] == node[pair]
    return np.bincount(pair[same], minlength=len(partition))


def _turns(owner: Ints32, most: int) -> Ints64:
    """Number the entries of each partition, ``most`` apart; they stand in order of partition."""
    turn = np.arange(len(owner)) - np.searchsorted(owner, owner)
    return owner.astype(np.int64) * most + turn
