"""Room in transient dimensions: what has not left yet still weighs where it is."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit.nodes import TOLERANCE, held_loads
from evenkeel.measure.levelness import levelness
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement


def leaves_room(cluster: Cluster, before: Placement, after: Placement) -> bool:
    """Whether no node gets fuller than it may until what is to leave it has left.

    ``before`` is where replicas were to be so far, ``after`` where they shall be; where they are,
    ``cluster`` says. One run after another would else count on room that the first has yet to make.
    """
    if not cluster.transient.any():
        return True
    drift = TOLERANCE * cluster.nodes.capacity
    return not (_beyond(cluster, after) > _beyond(cluster, before) + drift).any()


def _beyond(cluster: Cluster, placement: Placement) -> NDArray[np.float64]:
    """How far nodes are above their capacity in transient dimensions, held loads included, (N, D).

    A node that is above it anyhow stays so until all moves are done.
    """
    nodes, now = cluster.nodes, cluster.placement
    loads = levelness(cluster, placement).loads + held_loads(cluster, now, placement)
    came = np.maximum(levelness(cluster, now).loads, nodes.capacity)
    bound = cluster.transient & nodes.carries[:, None]
    return np.where(bound, np.maximum(loads - came, 0.0), 0.0)
