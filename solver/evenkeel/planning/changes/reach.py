"""What a plan can reach: replicas that should join nodes that are down stay where they are."""

from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import audit
from evenkeel.measure.regressions import regressions
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import read_only
from evenkeel.planning.changes.ends import Ends
from evenkeel.planning.changes.safety import Safety
from evenkeel.planning.protocols import Protocol


def out_of_reach(
    cluster: Cluster, target: Placement, waits: NDArray[np.bool_], protocol: Protocol
) -> NDArray[np.bool_]:
    """Tell which replicas cannot join their node, (K,): it is down, or they wait, or for such.

    Those of a partition wait together where the rest alone would break a rule that both ends keep,
    or leave less after the loss of a domain than both do.
    """
    start = cluster.placement
    joins = (target.node != start.node) & (target.node >= 0)
    lost: NDArray[np.bool_] = waits | joins & ~np.append(cluster.nodes.serves, False)[target.node]
    ends = cache(lambda: [audit(cluster, _serving(cluster, one)) for one in (start, target)])
    while lost.any():
        rest = within_reach(cluster, target, lost)
        serves = _serving(cluster, rest)
        found = regressions(cluster, serves, audit(cluster, serves), ends)
        waits = np.zeros(len(start), bool)
        waits[start.owner[lost]] = True
        waits[waits] = found.partitions[waits] | _lacks(cluster, target, rest, waits, protocol)
        more = waits[start.owner] & ((rest.node != start.node) | (rest.role != start.role))
        if not more.any():
            break
        lost = lost | more
    return lost


def _serving(cluster: Cluster, placement: Placement) -> Placement:
    """Return a placement without what is on nodes that are down."""
    serves = np.append(cluster.nodes.serves, False)[placement.node]
    return replace(placement, node=read_only(np.where(serves, placement.node, np.int32(-1))))


def _lacks(
    cluster: Cluster,
    target: Placement,
    rest: Placement,
    which: NDArray[np.bool_],
    protocol: Protocol,
) -> NDArray[np.bool_]:
    """Tell which of some partitions lack in the rest what lives of them at both ends, (n,)."""
    ends = Ends.between(cluster.placement, target, np.flatnonzero(which).astype(np.int32))
    inside = ends.replica >= 0
    node = np.where(inside, rest.node[ends.replica], np.int32(-1))
    role = np.where(inside, rest.role[ends.replica], np.uint8(0))
    return Safety(cluster, ends, protocol).lacks(np.arange(len(ends)), node, role)


def within_reach(cluster: Cluster, target: Placement, lost: NDArray[np.bool_]) -> Placement:
    """Return a target in which replicas that cannot join their node stay, and lead no more."""
    if not lost.any():
        return target
    start = cluster.placement
    return replace(
        target,
        node=read_only(np.where(lost, start.node, target.node)),
        role=read_only(np.where(lost, start.role, target.role)),
        leader=read_only(np.where(_led_by(target, lost), start.leader, target.leader)),
    )


def in_full(target: Placement, lost: NDArray[np.bool_], reached: Placement) -> Placement:
    """Return what was reached with the rest of the target, in the same slots."""
    if not lost.any():
        return reached
    return replace(
        reached,
        node=read_only(np.where(lost, target.node, reached.node)),
        role=read_only(np.where(lost, target.role, reached.role)),
        leader=read_only(np.where(_led_by(target, lost), target.leader, reached.leader)),
    )


def _led_by(target: Placement, replicas: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell which partitions some replicas lead, (P,)."""
    return np.append(replicas, False)[target.leader_replica]
