"""Units of loads: a method gets numbers of ordinary size, whatever the unit they came in.

A power of two changes no digit, so the answer is the same in every such unit. Methods compare loads
with one another only, but where something is nothing, or beyond all reach, they need numbers for
that; these are made for loads of ordinary size.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.contract import Request
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Goals
from evenkeel.model.partitions import Loads
from evenkeel.model.reading.arrays import read_only

SMALLEST, LARGEST = -30, 60
"""Powers of two between which the greatest load of a dimension is of ordinary size."""

FARTHEST = 500
"""Power of two beyond which loads are left as they are: capacities might overflow."""


def in_ordinary_units(request: Request) -> Request:
    """Return a request in units in which loads are of ordinary size; the same one if they are.

    Left alone are costs, which are prices of a unit, and what a system has in units of its own.
    """
    cluster = request.cluster
    if not isinstance(request.goals, Goals) or cluster.native is not None:
        return request
    power = -_powers(cluster.partitions.load)
    if not power.any():
        return request
    limits = request.limits
    if limits.bytes is not None:
        limits = replace(
            limits, bytes=float(np.ldexp(limits.bytes, int(power[cluster.bytes_dimension])))
        )
    return replace(request, cluster=_scaled(cluster, power), limits=limits, proven=None)


def _powers(load: Loads) -> NDArray[np.int64]:
    """Return the power of two of the greatest load of each dimension, (D,); 0 if it is ordinary."""
    roles = {id(by): by for by in (load.leader, load.voter, load.non_voter)}.values()
    most = np.max([by.max(axis=0, initial=0.0) for by in roles], axis=0)
    power = np.frexp(most)[1].astype(np.int64)
    is_far = (power < SMALLEST) | (power > LARGEST)
    return np.where(is_far & (np.abs(power) <= FARTHEST), power, 0)


def _scaled(cluster: Cluster, power: NDArray[np.int64]) -> Cluster:
    """Return a cluster with all loads and capacities times a power of two, by dimension (D,)."""
    nodes, topology, partitions = cluster.nodes, cluster.topology, cluster.partitions
    load = partitions.load

    def scale(values: NDArray[np.float64]) -> NDArray[np.float64]:
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
