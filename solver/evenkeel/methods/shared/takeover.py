"""Who led before, and who could take over at once where that one is lost."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag


def led_from(cluster: Cluster) -> NDArray[np.int32]:
    """Node that led each partition where it lives, else -1; (P,)."""
    led = cluster.placement.leader_node
    lives = np.append(cluster.nodes.alive, False).take(led)
    return np.where(lives, led, -1).astype(np.int32)


def ready(cluster: Cluster) -> NDArray[np.bool_]:
    """Whether each replica, where it came from, could lead at once; (K,).

    It lives; and where it is told of some that live that they are in sync, it is one of these.
    """
    placement = cluster.placement
    lives = np.append(cluster.nodes.alive, False).take(placement.node)
    if not placement.flags.any():
        return lives
    synced = lives & ((placement.flags & Flag.CAUGHT_UP) != 0)
    if not synced.any():
        return lives
    told = np.zeros(len(placement), bool)
    told[placement.owner[synced]] = True
    found: NDArray[np.bool_] = np.where(told[placement.owner], synced, lives)
    return found
