"""Under way: what an observed state says of copies in flight, before a plan goes on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import read_only
from evenkeel.planning.steps import StepKind, Steps


@dataclass(frozen=True)
class Cancelled:
    """A copy in flight that is no longer wanted: what has arrived of it is to be dropped first.

    Parameters
    ----------
    partition : str
        Name of the partition.
    slot : int
        Slot of the replica.
    node : str
        Name of the node that it was copied to.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> plan = result.plan()
    >>> plan.resume(c.placement).cancelled
    ()
    """

    partition: str
    slot: int
    node: str


def settled(
    cluster: Cluster, start: Placement, steps: Steps, target: Placement
) -> tuple[Placement, tuple[Cancelled, ...]]:
    """Return where the replicas of an observed cluster serve, and which copies to it are no use.

    A replica that is flagged ``INCOMING`` serves where the steps, or else ``start``, had it before
    they copied it there. It keeps the flag if it is still to go there, so that its copy goes on.
    """
    now = cluster.placement
    coming = (now.flags & Flag.INCOMING) != 0
    if not coming.any():
        return now, ()
    home = _homes(start, steps, np.flatnonzero(coming), now.node)
    node = np.where(coming, home, now.node)
    live = np.append(cluster.nodes.serves, False)
    useful = coming & (now.node == target.node) & live[now.node] & (home != now.node)
    flags = np.where(useful, now.flags, now.flags & ~Flag.INCOMING).astype(np.uint16)
    useless = np.flatnonzero(coming & ~useful & (home != now.node))
    owner = now.owner[useless]
    names, nodes = cluster.partitions.names, cluster.nodes.names
    cancelled = tuple(
        Cancelled(names[p], k - int(now.first[p]), nodes[int(now.node[k])])
        for p, k in zip(owner.tolist(), useless.tolist(), strict=True)
    )
    return Placement(now.first, read_only(node), now.role, read_only(flags), now.leader), cancelled


def _homes(
    start: Placement, steps: Steps, replicas: NDArray[np.intp], node: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return where replicas, (K,), were before they were copied to their nodes."""
    home = start.node.copy()
    copies = np.flatnonzero(steps.kind == StepKind.COPY)
    copies = copies[np.isin(steps.replica[copies], replicas)]
    found: set[int] = set()
    # a replica that goes by a spare node is copied twice
    for k, n in zip(steps.replica[copies].tolist(), steps.target[copies].tolist(), strict=True):
        if n == node[k]:
            found.add(k)
        elif k not in found:
            home[k] = n
    astray = np.setdiff1d(replicas, np.array(sorted(found), np.int64))
    home[astray] = start.node[astray]
    return home
