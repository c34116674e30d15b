"""Preferred leaders: to whom a system hands the lead of a partition back by itself.

After a node was restarted others lead what it led, until the system elects the preferred replicas.
Its reader flags those that could be elected at once, so that no answer makes permanent what is not.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.model.placement import Flag
from evenkeel.model.reading.arrays import read_only

if TYPE_CHECKING:
    from evenkeel.model.cluster import Cluster


def led_as_preferred(cluster: "Cluster") -> "Cluster":
    """Return a cluster in which flagged replicas lead, where their nodes may lead.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[9.0]] * 2, load=[[1.0]], placement=[[0, 1]], leader=[1],
    ...     flags=[[ek.Flag.PREFERRED, 0]])
    >>> led_as_preferred(c).placement.leader.tolist()
    [0]
    """
    placement = cluster.placement
    at = np.flatnonzero((placement.flags & Flag.PREFERRED) != 0)
    at = at[placement.node[at] >= 0]
    at = at[cluster.nodes.may_lead[placement.node[at]]]
    if not len(at):
        return cluster
    leader = placement.leader.copy()
    leader[placement.owner[at]] = at - placement.first[placement.owner[at]]
    return cluster.with_placement(replace(placement, leader=read_only(leader)))
