"""Begun: copies that are under way as a plan begins are gone on with, before all else."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Role
from evenkeel.planning.replay.findings import Findings
from evenkeel.planning.replay.timeline import BEGINNING
from evenkeel.planning.replay.transitions import CHANGES
from evenkeel.planning.steps import StepKind, Steps


@dataclass(frozen=True, eq=False)
class Begun:
    """Replicas of which a copy is under way, ascending, the node of each, and what it weighs there.

    That is its load in what is transient, and of a replica that was nowhere in all dimensions.
    """

    replica: NDArray[np.int64]
    node: NDArray[np.int32]
    weight: NDArray[np.float64]

    def steps(self, steps: Steps) -> NDArray[np.bool_]:
        """Return the steps that go on with one of the copies, (S,)."""
        copies = steps.kind == StepKind.COPY
        if len(self.replica) == 0:
            return np.zeros(len(steps), bool)
        at = np.minimum(np.searchsorted(self.replica, steps.replica), len(self.replica) - 1)
        same = (self.replica[at] == steps.replica) & (self.node[at] == steps.target)
        return np.asarray(copies & same)


def under_way(cluster: Cluster, in_flight: NDArray[np.int32] | None) -> Begun:
    """Return the copies that are under way where replicas are on, or on their way to, nodes."""
    start = cluster.placement
    node = start.node if in_flight is None else in_flight
    replica = np.flatnonzero((node != start.node) & (node >= 0))
    partition, load = start.owner[replica], cluster.partitions.load
    light = (start.role[replica] == Role.NON_VOTER)[:, None]
    weight = np.where(light, load.non_voter[partition], load.voter[partition])
    fresh = (start.node[replica] < 0)[:, None]
    return Begun(replica, node[replica], np.where(cluster.transient | fresh, weight, 0.0))


def check_begun(found: Findings, begun: Begun) -> None:
    """Find copies under way that no step goes on with, and changes that come before they settle."""
    if len(begun.replica) == 0:
        return
    timeline, steps, start = found.timeline, found.timeline.steps, found.cluster.placement
    on = np.flatnonzero(begun.steps(steps))
    left = np.setdiff1d(begun.replica, steps.replica[on])
    at = np.searchsorted(begun.replica, left)
    none = np.full(len(left), -1)
    found.breach("in_flight", none, np.full(len(left), BEGINNING), partition=start.owner[left],
                 node=begun.node[at])  # fmt: skip
    changes = np.isin(timeline.kind, CHANGES)
    row = np.minimum(np.searchsorted(begun.replica, steps.replica), len(begun.replica) - 1)
    mine = begun.replica[row] == steps.replica
    comes = np.isin(timeline.kind, (StepKind.PROMOTE, StepKind.SWAP))
    joins = np.flatnonzero(comes & mine & (steps.target == begun.node[row]))
    # until the last copy under way of each partition has become a member
    until = np.zeros(len(start))
    np.maximum.at(until, steps.partition[joins], steps.start[joins])
    early = np.flatnonzero(changes & ~mine & (steps.start < until[steps.partition]))
    found.breach("in_flight", early, timeline.start[early], partition=steps.partition[early])
