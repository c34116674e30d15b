"""Node states: nodes that may hold replicas afterwards, and those without a target."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster


def usable(cluster: Cluster) -> NDArray[np.bool_]:
    """Return the nodes that may hold replicas afterwards: those that keep or receive some."""
    return cluster.nodes.may_hold | cluster.nodes.may_receive


def absent_keepers(cluster: Cluster) -> NDArray[np.bool_]:
    """Return nodes that keep replicas without being alive, which no level is asked of; (N,)."""
    return cluster.nodes.may_hold & ~cluster.nodes.alive
