"""Scale loads and capacities by a power of two per dimension, which is exact."""

from dataclasses import replace

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.partitions import Loads
from evenkeel.model.reading.arrays import Ints64, Reals, read_only
from evenkeel.model.runtime.memoize import memoize

# powers of two between which the greatest load of a dimension is of ordinary size
SMALLEST, LARGEST = -30, 60

PRODUCTS = 500  # power of two within which a load times a room neither overflows nor vanishes
FARTHEST = 600  # power of two within which amounts have squares that neither overflow nor vanish


def powers(cluster: Cluster) -> Ints64:
    """Return the power of two of the greatest load of each dimension, (D,); 0 if it is ordinary."""
    # beyond ``FARTHEST`` it is 0 as well, unless the greatest room is as far
    load = cluster.partitions.load
    power = np.frexp(memoize(load, "greatest", lambda: _greatest(load)))[1].astype(np.int64)
    is_far = (power < SMALLEST) | (power > LARGEST)
    beyond = np.abs(power) > FARTHEST
    if beyond.any():
        rooms = [cluster.nodes.capacity, *cluster.topology.tier_capacity.values()]
        finite = [one.max(axis=0, initial=0.0, where=np.isfinite(one)) for one in rooms]
        room = np.max(finite, axis=0)
        is_far &= ~beyond | (np.abs(np.frexp(room)[1] - power) <= FARTHEST) | (room == 0.0)
    return np.where(is_far, power, 0)


def _greatest(load: Loads) -> Reals:
    """Return the greatest load of each dimension in any role, (D,)."""
    roles = {id(by): by for by in (load.leader, load.voter, load.non_voter)}.values()
    # column by column, which is much quicker than along the first axis
    greatest: Reals = np.max([[one.max(initial=0.0) for one in by.T] for by in roles], axis=0)
    return greatest


def scaled(cluster: Cluster, power: Ints64) -> Cluster:
    """Return a cluster with all loads and capacities times a power of two, by dimension (D,)."""
    nodes, topology, partitions = cluster.nodes, cluster.topology, cluster.partitions
    load = partitions.load

    def scale(values: Reals) -> Reals:
        with np.errstate(over="ignore", under="ignore"):  # what is beyond all loads is unlimited
            return read_only(np.ldexp(values, power))

    new = {id(by): scale(by) for by in (load.leader, load.voter, load.non_voter)}
    shared = {tier: scale(amount) for tier, amount in topology.tier_capacity.items()}
    return replace(
        cluster,
        nodes=replace(nodes, capacity=scale(nodes.capacity), watermark=scale(nodes.watermark)),
        topology=replace(topology, tier_capacity=shared),
        partitions=replace(
            partitions,
            load=Loads(
                leader=new[id(load.leader)],
                voter=new[id(load.voter)],
                non_voter=new[id(load.non_voter)],
            ),
        ),
    )
