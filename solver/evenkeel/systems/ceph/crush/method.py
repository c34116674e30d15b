"""Ceph's CRUSH and the upmap balancer as methods of ``solve``, on a cluster with a Ceph map."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.shared.foreign import only_for
from evenkeel.methods.shared.stopping import Clock, OutOfTime
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.stranded import marked
from evenkeel.model.placement import Flag
from evenkeel.model.runtime.printable import some_of
from evenkeel.systems.ceph.crush import primaries, upmap
from evenkeel.systems.ceph.crush.cluster import FORMAT, CephMap, slots_of
from evenkeel.systems.ceph.crush.crush_map import NO_OSD
from evenkeel.systems.ceph.crush.placement import Pairs, Pool, Rows, up, with_primaries
from evenkeel.systems.ceph.crush.primaries import ReadBalanced
from evenkeel.systems.ceph.crush.upmap import Upmapped
from evenkeel.systems.ceph.options import CephCrush, Upmap

SHOWN = 5
"""Devices that are named; the rest is counted."""

NO_TIME = "Stopped early: what was not levelled until then stays as it is."


@dataclass(frozen=True, eq=False)
class Upmaps:
    """What ``ceph_upmap`` found, by the number of the pool."""

    items: Mapping[int, Pairs]
    primaries: Mapping[int, Mapping[int, int]]
    levelled: Mapping[int, Upmapped]
    read: Mapping[int, ReadBalanced]


def ceph_crush(request: Request) -> Outcome:
    """Place every pool by Ceph's CRUSH; what there is no time for stays."""
    options, clock = request.options, Clock(request.watch)
    assert isinstance(options, CephCrush)
    native, reweight = _map_of(request)
    alive = request.cluster.nodes.alive
    pinned = marked(request.start, Flag.PINNED)
    node, leader = request.start.node.copy(), request.start.leader.copy()
    for pool, groups, replicas in _pools(native):
        if pool.id in native.known:
            continue
        try:
            rows = native.rows(pool, reweight, upmaps=options.upmaps, clock=clock)
        except OutOfTime:
            break
        free = ~pinned[groups]
        node[replicas] = np.where(np.repeat(free, pool.size), _nodes(rows), node[replicas])
        leader[groups] = np.where(free, native.leaders(pool, rows, alive), leader[groups])
    return Outcome(
        node=node,
        leader=leader,
        stop_reason=clock.reason or "exhausted",
        message=NO_TIME if clock.reason else "",
    )


def ceph_upmap(request: Request) -> Outcome:
    """Level the devices of every pool by ``pg-upmap-items``, each pool by itself.

    Pools that there is no time for stay as they are, with the pairs in force.
    """
    options, clock = request.options, Clock(request.watch)
    assert isinstance(options, Upmap)
    native, reweight = _map_of(request)
    nodes = request.cluster.nodes
    alive, pinned = nodes.alive, marked(request.start, Flag.PINNED)
    # one that is excluded keeps what it has; one without weight may give it away
    still = ~alive | (~nodes.accepts & (nodes.weight > 0))
    levelled: dict[int, Upmapped] = {}
    read: dict[int, ReadBalanced] = {}
    node, leader = request.start.node.copy(), request.start.leader.copy()
    for pool, groups, replicas in _pools(native):
        stays = pinned[groups]
        if pool.id in native.known or stays.all():
            continue
        try:
            found = levelled[pool.id] = upmap.balance(
                native.crush,
                pool,
                reweight=reweight,
                items=native.items.get(pool.id),
                whole=native.whole.get(pool.id),
                still=still,
                pinned=stays,
                deviation=options.deviation,
                spare=options.spare,
                clock=clock,
            )
        except OutOfTime:
            break
        present, primary = with_primaries(up(found.rows, pool, alive), pool, native.affinity)
        if options.primaries and pool.kind == "replicated":
            read[pool.id] = primaries.balance(
                present,
                primary,
                pool,
                devices=native.crush.devices,
                affinity=native.affinity,
                pinned=stays,
                clock=clock,
            )
            primary = read[pool.id].primary
        moves = np.repeat(~stays, pool.size)
        node[replicas] = np.where(moves, _nodes(found.rows), node[replicas])
        leader[groups] = np.where(stays, leader[groups], slots_of(found.rows, primary))
    told = [_told(number, found) for number, found in levelled.items()]
    kept = [
        pool.id for pool, groups, _ in _pools(native) if pinned[groups].all() and pool.pg_num > 0
    ]
    if kept:
        told.append(f"Pinned, as it was: pool {some_of(kept, str, SHOWN)}.")
    return Outcome(
        node=node,
        leader=leader,
        stop_reason=clock.reason or "exhausted",
        message=" ".join([*told, NO_TIME] if clock.reason else told),
        warnings=_about_down(request.cluster, reweight),
        native=Upmaps(
            items=dict(native.items) | {number: found.items for number, found in levelled.items()},
            primaries={number: found.changes for number, found in read.items()},
            levelled=levelled,
            read=read,
        ),
    )


def _pools(native: CephMap) -> Iterator[tuple[Pool, slice, slice]]:
    """Yield each pool with its partitions and its replicas in the cluster's slots."""
    group = replica = 0
    for pool in native.pools:
        groups = slice(group, group + pool.pg_num)
        replicas = slice(replica, replica + pool.pg_num * pool.size)
        yield pool, groups, replicas
        group, replica = groups.stop, replicas.stop


def _map_of(request: Request) -> tuple[CephMap, NDArray[np.int64]]:
    """Return the map, and the reweights with nodes that may keep nothing out."""
    cluster, native = request.cluster, request.cluster.native
    faults = FaultList()
    if not isinstance(native, CephMap) or cluster.native_format != FORMAT:
        message = f"must be a Ceph map, systems.ceph.crush.cluster_of: {only_for('Ceph', cluster)}"
        faults.add("cluster.native", native, message)
    else:
        groups = sum(pool.pg_num for pool in native.pools)
        if groups != len(cluster.partitions):
            faults.add("cluster.partitions", len(cluster.partitions), f"must be {groups}")
        if native.crush.devices != len(cluster.nodes):
            faults.add("cluster.nodes", len(cluster.nodes), f"must be {native.crush.devices}")
    faults.raise_if_any()
    assert isinstance(native, CephMap)
    return native, np.where(cluster.nodes.may_hold, native.reweight, 0)


def _nodes(rows: Rows) -> NDArray[np.int32]:
    """Return the nodes of a pool's slots."""
    flat = rows.ravel()
    return np.where(flat == NO_OSD, -1, flat).astype(np.int32)


def _about_down(cluster: Cluster, reweight: NDArray[np.int64]) -> tuple[str, ...]:
    """Say which devices are down and in, which nothing is mapped onto, nor away from."""
    native = cluster.native
    holding = np.bincount(
        cluster.placement.node[cluster.placement.node >= 0], minlength=native.crush.devices
    )
    down = np.flatnonzero(~cluster.nodes.alive & (reweight > 0) & (holding > 0)).tolist()
    if not down:
        return ()
    named = some_of(down, cluster.nodes.names.__getitem__, SHOWN)
    return (
        f"Down and in: {named}; nothing is mapped onto what is down, since that is a replica "
        "less, and what is there stays: mark it out, and read again, where it does not come back.",
    )


def _told(pool: int, found: Upmapped) -> str:
    """Say what the pairs do to one pool."""
    return (
        f"Pool {pool}: {found.moves:,} moves, deviation {found.before.deviation:.2f} -> "
        f"{found.after.deviation:.2f}, fill {found.before.fill:.3f} -> {found.after.fill:.3f}."
    )
