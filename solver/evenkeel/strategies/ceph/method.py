"""Ceph's CRUSH and the upmap balancer as methods of ``solve``, on a cluster with a Ceph map."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.strategies.ceph import primaries, upmap
from evenkeel.strategies.ceph.cluster import FORMAT, CephMap, slots_of
from evenkeel.strategies.ceph.crush_map import NO_OSD
from evenkeel.strategies.ceph.placement import Pairs, Rows, up, with_primaries
from evenkeel.strategies.ceph.primaries import ReadBalanced
from evenkeel.strategies.ceph.upmap import Upmapped
from evenkeel.strategies.options import CephCrush, Upmap
from evenkeel.strategies.registry import Outcome, Request


@dataclass(frozen=True, eq=False)
class Upmaps:
    """What ``ceph_upmap`` found, by the number of the pool."""

    items: Mapping[int, Pairs]
    primaries: Mapping[int, Mapping[int, int]]
    levelled: Mapping[int, Upmapped]
    read: Mapping[int, ReadBalanced]


def ceph_crush(request: Request) -> Outcome:
    """Place every pool by Ceph's CRUSH."""
    options = request.options
    assert isinstance(options, CephCrush)
    native, reweight = _map_of(request)
    alive = request.cluster.nodes.alive
    rows = [native.rows(pool, reweight, upmaps=options.upmaps) for pool in native.pools]
    leaders = [
        native.leaders(pool, row, alive) for pool, row in zip(native.pools, rows, strict=True)
    ]
    return Outcome(node=_nodes(rows), leader=np.concatenate(leaders), stop_reason="exhausted")


def ceph_upmap(request: Request) -> Outcome:
    """Level the devices of every pool by ``pg-upmap-items``, each pool by itself."""
    options = request.options
    assert isinstance(options, Upmap)
    native, reweight = _map_of(request)
    alive = request.cluster.nodes.alive
    levelled: dict[int, Upmapped] = {}
    read: dict[int, ReadBalanced] = {}
    leaders = []
    for pool in native.pools:
        found = levelled[pool.id] = upmap.balance(
            native.crush,
            pool,
            reweight=reweight,
            items=native.items.get(pool.id),
            deviation=options.deviation,
            spare=options.spare,
        )
        present, primary = with_primaries(up(found.rows, pool, alive), pool, native.affinity)
        if options.primaries and pool.kind == "replicated":
            read[pool.id] = primaries.balance(
                present,
                primary,
                pool,
                devices=native.crush.devices,
                affinity=native.affinity,
            )
            primary = read[pool.id].primary
        leaders.append(slots_of(found.rows, primary))
    return Outcome(
        node=_nodes([found.rows for found in levelled.values()]),
        leader=np.concatenate(leaders),
        stop_reason="exhausted",
        message=" ".join(_told(number, found) for number, found in levelled.items()),
        native=Upmaps(
            items={number: found.items for number, found in levelled.items()},
            primaries={number: found.changes for number, found in read.items()},
            levelled=levelled,
            read=read,
        ),
    )


def _map_of(request: Request) -> tuple[CephMap, NDArray[np.int64]]:
    """Return the map, and the reweights with nodes that may keep nothing out."""
    cluster, native = request.cluster, request.cluster.native
    faults = FaultList()
    if not isinstance(native, CephMap) or cluster.native_format != FORMAT:
        faults.add("cluster.native", native, "must be a Ceph map; strategies.ceph.cluster_of")
    else:
        groups = sum(pool.pg_num for pool in native.pools)
        if groups != len(cluster.partitions):
            faults.add("cluster.partitions", len(cluster.partitions), f"must be {groups}")
        if native.crush.devices != len(cluster.nodes):
            faults.add("cluster.nodes", len(cluster.nodes), f"must be {native.crush.devices}")
    faults.raise_if_any()
    assert isinstance(native, CephMap)
    return native, np.where(cluster.nodes.may_hold, native.reweight, 0)


def _nodes(rows: Sequence[Rows]) -> NDArray[np.int32]:
    flat = np.concatenate([row.ravel() for row in rows])
    return np.where(flat == NO_OSD, -1, flat).astype(np.int32)


def _told(pool: int, found: Upmapped) -> str:
    """Say what the pairs do to one pool."""
    return (
        f"Pool {pool}: {found.moves:,} moves, deviation {found.before.deviation:.2f} -> "
        f"{found.after.deviation:.2f}, fill {found.before.fill:.3f} -> {found.after.fill:.3f}."
    )
