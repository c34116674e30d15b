"""Shares: what each part may put on each node, so that parts add up to what the whole may.

What a node carries beyond a limit, parts give away in proportion to what each has there. What it
has room for, they divide by what each has to place, and evenly beyond that. So a part never gives
away what only another one has too much of, whatever the draw.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds.even import WHOLE
from evenkeel.measure.wanted import has_leaders
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Role

SLACK = 1e-12
"""Part of a limit by which sums in another order may differ; the audit allows ten times that."""

Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Standing:
    """What stands where, part by part. n parts, N nodes, D dimensions.

    ``loads`` and ``wanted`` are in the units of each dimension, ``replicas`` and ``leaders`` count.
    """

    loads: Table
    """What replicas of each part weigh on each node, (n, D, N)."""
    wanted: Table
    """What everything wanted of each part weighs, (n, D)."""
    replicas: Table
    """Replicas of each part on each node, (n, N)."""
    leaders: Table
    """Partitions of each part that each node leads, (n, N)."""
    size: Table
    """Replicas wanted of each part, as a share of all, (n,)."""

    @classmethod
    def of(cls, cluster: Cluster, part: NDArray[np.int32], parts: int) -> "Standing":
        """Count what stands where, a slot of all partitions at a time."""
        placement, load = cluster.placement, cluster.partitions.load
        nodes, dimensions = cluster.nodes.capacity.shape
        cells = parts * (nodes + 1)
        loads = np.zeros((dimensions, cells))
        replicas = np.zeros(cells, np.int64)
        width = np.diff(placement.first)
        for slot in range(int(width.max(initial=0))):
            has = slice(None) if width.min() > slot else np.flatnonzero(width > slot)
            at = placement.first[:-1][has] + slot
            cell = part[has] * np.int64(nodes + 1) + placement.node[at] + 1
            leads = placement.leader[has] == slot
            light = placement.role[at] == Role.NON_VOTER
            replicas += np.bincount(cell, minlength=cells)
            for d in range(dimensions):
                weight = np.where(light, load.non_voter[has, d], load.voter[has, d])
                np.copyto(weight, load.leader[has, d], where=leads)
                loads[d] += np.bincount(cell, weight, cells)
        cell = part * np.int64(nodes + 1) + placement.leader_node + 1
        leaders = np.bincount(cell, minlength=cells)

        def by_node(counted: NDArray[np.generic]) -> Table:
            shape = (*counted.shape[:-1], parts, nodes + 1)
            return counted.reshape(shape)[..., 1:].astype(np.float64)

        wanted = cluster.partitions.replicas
        return cls(
            loads=np.ascontiguousarray(np.swapaxes(by_node(loads), 0, 1)),
            wanted=_wanted(cluster, part, parts),
            replicas=by_node(replicas),
            leaders=by_node(leaders),
            size=np.bincount(part, wanted, parts) / max(wanted.sum(dtype=np.int64), 1),
        )


def _wanted(cluster: Cluster, part: NDArray[np.int32], parts: int) -> Table:
    """Add up what is wanted of each part: a leader each, the other voters, the rest; (n, D)."""
    asked = cluster.partitions
    leaders = np.minimum(asked.replicas, has_leaders(cluster))
    voters = np.maximum(asked.voters - leaders, 0)
    others = asked.replicas - leaders - voters
    total = np.zeros((parts, asked.load.voter.shape[1]))
    for count, each in (
        (leaders, asked.load.leader), (voters, asked.load.voter), (others, asked.load.non_voter),
    ):  # fmt: skip
        if count.any():
            for d in range(total.shape[1]):
                total[:, d] += np.bincount(part, count * each[:, d], parts)
    return total


def shared_out(
    limit: Table, loads: Table, wanted: Table, size: Table, nodes: "Open", unit: float = 0.0
) -> Table:
    """Divide the limit of each node, (N,), among parts that have ``loads (n, N)`` there; (n, N).

    ``wanted (n,)`` is what each part weighs, ``size (n,)`` its share of everything. With a ``unit``
    every share is a whole number of units more or less than what stands there.
    """
    whole = loads.sum(0)
    kept = np.divide(limit, whole, out=np.ones_like(whole), where=whole > limit)
    staying = np.where(nodes.hold, loads * kept, 0.0).sum(1)
    need = np.maximum(wanted - staying, 0.0)
    room = np.where(nodes.receive, np.maximum(limit - whole, 0.0), 0.0).sum()
    spare = max(room - need.sum(), 0.0)
    share = need + spare * size if 0.0 < room < np.inf else size
    share = share / share.sum() if share.sum() > 0.0 else np.full(len(size), 1.0 / len(size))
    is_bound = np.isfinite(limit)
    more = np.where(is_bound & (whole <= limit), limit - whole, 0.0)
    less = np.where(whole > limit, whole - limit, 0.0)
    given = np.divide(loads, whole, out=np.zeros_like(loads), where=whole > 0.0)
    taken = np.repeat(share[:, None], len(limit), 1)
    if unit > 0.0:
        grown = _whole(np.floor(more / unit + WHOLE), taken) * unit
        shrunk = _whole(np.ceil(less / unit - WHOLE), given) * unit
    else:
        grown, shrunk = more * taken, less * given
    return np.where(is_bound, (loads + grown - shrunk) * (1.0 + SLACK), np.inf)


@dataclass(frozen=True, eq=False)
class Open:
    """Nodes that may ``hold`` and those that may ``receive`` replicas, (N,) bool both."""

    hold: NDArray[np.bool_]
    receive: NDArray[np.bool_]


def _whole(count: Table, share: Table) -> Table:
    """Divide whole numbers, (N,), into whole numbers by shares that add up to 1, (n, N) both.

    Where each is cut differs from node to node, so that no part gets all that is left over.
    """
    offset = (np.arange(len(count)) * 0.6180339887498949) % 1.0
    upto = np.cumsum(share, axis=0)
    upto[-1] = np.where(share.any(0), 1.0, 0.0)
    ends = np.floor(count * upto + offset)
    return np.diff(ends, axis=0, prepend=np.floor(offset)[None, :])
