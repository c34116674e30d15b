"""Wanted: what all partitions ask for together, whoever holds it."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.loads import weighted_sum
from evenkeel.model.cluster import Cluster
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.runtime.memoize import memoize


def has_leaders(cluster: Cluster) -> bool:
    """Whether leaders are told apart: some partition names a slot that leads."""
    return bool((cluster.placement.leader >= 0).any())


def wanted_load(cluster: Cluster) -> NDArray[np.float64]:
    """Return the load of everything wanted: a leader each, the other voters, the rest."""
    parts, led = cluster.partitions, has_leaders(cluster)

    def add_up() -> NDArray[np.float64]:
        leaders = np.minimum(parts.replicas, led)
        voters = np.maximum(parts.voters - leaders, 0)
        others = parts.replicas - leaders - voters
        load = parts.load
        total = np.zeros(load.voter.shape[1])
        for count, each in ((leaders, load.leader), (voters, load.voter), (others, load.non_voter)):
            if count.any():
                total += weighted_sum(count, each)
        return read_only(total)

    return memoize(parts, "wanted load", add_up, led)
