"""Pieces: the solve of one part, and what every part must know of the whole."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds import Bounds, bounds, bounds_of_levels
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.run import run_method
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Goals
from evenkeel.model.reading.arrays import read_only
from evenkeel.studies.parts.shares import Open, Standing, Table, shared_out
from evenkeel.studies.parts.split import cut

PROOF = -1
"""The item that is no part but the proof of what the whole can come to."""


@dataclass(frozen=True, eq=False)
class Split:
    """A cluster in parts, and what each part may put on each node. n parts, N nodes, D dimensions.

    Limits are by part: ``capacity`` and ``target (n, N, D)``, ``most_replicas`` and
    ``most_leaders (n, N)``, and by tier ``tier_capacity (n, domains, D)``.
    """

    cluster: Cluster
    part: NDArray[np.int32]
    goals: Goals
    seed: int
    levels: Bounds
    capacity: Table
    target: Table
    most_replicas: Table
    most_leaders: Table
    tier_capacity: dict[str, Table]


@dataclass(frozen=True, eq=False)
class Piece:
    """What became of a part: nodes and leading slots of its replicas and partitions, in order."""

    node: NDArray[np.int32]
    leader: NDArray[np.int16]
    work: int


def split_up(
    cluster: Cluster, goals: Goals, part: NDArray[np.int32], parts: int, seed: int
) -> Split:
    """Give every part its share of what each node may carry."""
    levels = bounds_of_levels(cluster, goals)
    found = Standing.of(cluster, part, parts)
    nodes, load = cluster.nodes, cluster.partitions.load
    unit = np.where(load.alike, load.unit, 0.0)
    open_ = Open(nodes.may_hold, nodes.may_receive)
    dimensions = range(len(cluster.dimensions))

    def by_dimension(limit: Table, loads: Table, where: Open) -> Table:
        return np.stack(
            [
                shared_out(limit[:, d], loads[:, d], found.wanted[:, d], found.size, where,
                           float(unit[d]))
                for d in dimensions
            ],
            axis=-1,
        )  # fmt: skip

    tiers = {}
    for tier, limit in cluster.topology.tier_capacity.items():
        domain = cluster.topology.domain[cluster.topology.tier_index(tier)]
        inside = np.zeros((parts, len(dimensions), len(limit)))
        for n in np.flatnonzero(domain >= 0).tolist():
            inside[:, :, domain[n]] += found.loads[:, :, n]
        anywhere = np.ones(len(limit), bool)
        tiers[tier] = by_dimension(limit, inside, Open(anywhere, anywhere))
    counted = found.size * cluster.partitions.replicas.sum(dtype=np.int64)
    led = found.size * len(cluster.partitions)
    most = np.where(nodes.max_replicas < 0, np.inf, nodes.max_replicas)
    return Split(
        cluster=cluster,
        part=part,
        goals=goals,
        seed=seed,
        levels=levels,
        capacity=by_dimension(nodes.capacity, found.loads, open_),
        target=by_dimension(levels.target, found.loads, open_),
        most_replicas=shared_out(most, found.replicas, counted, found.size, open_, 1.0),
        most_leaders=shared_out(levels.leader_target, found.leaders, led, found.size, open_, 1.0),
        tier_capacity=tiers,
    )


def solve_piece(split: Split, i: int) -> Piece | Bounds:
    """Solve a part by itself, or prove what the whole can come to."""
    if i == PROOF:
        return bounds(split.cluster, split.goals)
    given = _cluster_of(split, i)
    levels = split.levels
    run = run_method(
        "balance", given, goals=split.goals, seed=split.seed + i,
        proven=replace(
            levels,
            target=read_only(split.target[i]),
            leader_target=read_only(np.floor(split.most_leaders[i] + 0.5)),
            # the whole is filled up to floors at the end
            floor=np.zeros_like(levels.floor),
            arrivals=np.zeros_like(levels.arrivals),
        ),
    )  # fmt: skip
    for each in (given.placement, run.placement):
        PlacementCounts.forget(each)
    if run.outcome.stop_reason == "interrupted":
        raise KeyboardInterrupt  # the part ended early and well, but the whole is to end too
    return Piece(run.placement.node, run.placement.leader, run.outcome.work)


def _cluster_of(split: Split, i: int) -> Cluster:
    """Return a part as a cluster of its own, with its share of every node."""
    given = cut(split.cluster, split.part == i)
    nodes, topology = given.nodes, given.topology
    most = split.most_replicas[i]
    counted = np.where(np.isinf(most), -1, np.floor(np.where(np.isinf(most), 0.0, most) + 0.5))
    return replace(
        given,
        nodes=replace(
            nodes,
            capacity=read_only(np.ascontiguousarray(split.capacity[i])),
            watermark=read_only(np.full_like(nodes.watermark, np.inf)),
            max_replicas=read_only(counted.astype(np.int32)),
        ),
        topology=replace(
            topology,
            tier_capacity={tier: read_only(each[i]) for tier, each in split.tier_capacity.items()},
        ),
    )
