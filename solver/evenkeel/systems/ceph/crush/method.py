"""The methods ``ceph_crush`` and ``ceph_upmap``, with the read balancer of ``osdmaptool --read``.

The read balancer chooses primaries. Only replicated pools have a choice: in an erasure-coded pool
the order of the shards is their content. No data moves; the result is a ``pg-upmap-primary`` entry
for each placement group whose primary changes.

References
----------
Ceph, ``OSDMap::balance_primaries``, for the entries that are replaced and produced.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.methods.contract import Outcome, Request, SimulatedState, only_for
from evenkeel.methods.shared.stopping import Clock, OutOfTime
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.stranded import marked
from evenkeel.model.placement import Flag
from evenkeel.model.runtime.printable import some_of
from evenkeel.systems.ceph.crush import upmap
from evenkeel.systems.ceph.crush.cluster import FORMAT, CephMap, slots_of
from evenkeel.systems.ceph.crush.crush_map import IN, NO_OSD
from evenkeel.systems.ceph.crush.placement import Pairs, Pool, Rows, up, with_primaries
from evenkeel.systems.ceph.crush.upmap import Upmapped, levelled
from evenkeel.systems.ceph.options import CephCrush, Upmap
from evenkeel_kernels.ceph import upmap as kernels

ROUNDING = 1e-9
"""What a desired number may be off a whole one by rounding."""


@dataclass(frozen=True)
class ReadBalanced:
    """What the read balancer found."""

    primary: NDArray[np.int32]  # (pg_num,) the primary of each group; -1 where its row is empty
    changes: dict[int, int]  # the new primary of each group whose primary changes
    desired: NDArray[np.float64]  # (devices,) groups that each device would lead ideally
    # before, after: score: the largest number of groups led as a multiple of what is desired; 1 is
    # perfect
    before: float
    after: float


def balance_primaries(
    rows: Rows,
    primary: NDArray[np.int32],
    pool: Pool,
    *,
    devices: int,
    affinity: ArrayLike | None = None,
    pinned: NDArray[np.bool_] | None = None,
    clock: Clock | None = None,
) -> ReadBalanced:
    """Choose primaries so that devices lead as many groups as they should, with few changes.

    Groups that are ``pinned`` keep theirs.
    """
    faults = FaultList()
    if pool.kind != "replicated":
        faults.add("pool.kind", pool.kind, "only replicated pools can change their primaries")
    elsewhere = (primary >= 0) & ~(rows == primary[:, None]).any(axis=1)
    for pg in np.flatnonzero(elsewhere)[:10]:
        faults.add(f"primary[{pg}]", int(primary[pg]), "is not in the row of its group")
    faults.raise_if_any()
    held = np.bincount(rows[rows != NO_OSD], minlength=devices)
    willing = np.ones(devices) if affinity is None else np.asarray(affinity) / IN
    deserved = (held * np.minimum(willing, 1.0)).astype(np.float64)
    led = int(np.count_nonzero(primary >= 0))
    desired: NDArray[np.float64] = deserved * (led / max(float(deserved.sum()), 1.0))
    chosen = primary.astype(np.int32, copy=True)
    free = np.ones(len(rows), bool) if pinned is None else ~pinned
    choice = np.where((rows == NO_OSD) | ~free[:, None], kernels.NOWHERE, rows).astype(np.int32)
    alone = np.zeros(devices, np.int32), np.arange(devices, dtype=np.int32)
    state = kernels.spread(chosen, 1, choice, *alone)
    for bands in _narrowing(desired, float(np.abs(state.tally - desired).max(initial=0.0))):
        levelled(state, bands, rows.size * rows.size, clock or Clock())
    changed = np.flatnonzero(chosen != primary)
    return ReadBalanced(
        primary=chosen,
        changes={int(pg): int(chosen[pg]) for pg in changed},
        desired=desired,
        before=_score(primary, desired),
        after=_score(chosen, desired),
    )


def _narrowing(desired: NDArray[np.float64], width: float) -> Iterator[kernels.Bands]:
    """Bands from wide to the narrowest, so that uneven shares come as close as possible."""
    while width >= 2.0:
        width /= 2.0
        low = np.maximum(np.ceil(desired - width), 0.0).astype(np.int32)
        yield kernels.Bands(low, np.floor(desired + width).astype(np.int32), desired)
    low = np.floor(desired + ROUNDING).astype(np.int32)
    yield kernels.Bands(low, np.ceil(desired - ROUNDING).astype(np.int32), desired)


def _score(primary: NDArray[np.int32], desired: NDArray[np.float64]) -> float:
    """Largest number of groups led as a multiple of what is desired, where anything is."""
    led = np.bincount(primary[primary >= 0], minlength=desired.size)
    return float((led[desired > 0] / desired[desired > 0]).max(initial=1.0))


SHOWN = 5
"""Devices that are named; the rest is counted."""

NO_TIME = "Stopped early: pools not balanced until then stay as they are."


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
            read[pool.id] = balance_primaries(
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
    summaries = [_summary(number, found) for number, found in levelled.items()]
    kept = [
        pool.id for pool, groups, _ in _pools(native) if pinned[groups].all() and pool.pg_num > 0
    ]
    if kept:
        summaries.append(f"Pinned, as it was: pool {some_of(kept, str, SHOWN)}.")
    return Outcome(
        node=node,
        leader=leader,
        stop_reason=clock.reason or "exhausted",
        message=" ".join([*summaries, NO_TIME] if clock.reason else summaries),
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


def _summary(pool: int, found: Upmapped) -> str:
    """Say what the pairs do to one pool."""
    return (
        f"Pool {pool}: {found.moves:,} moves, deviation {found.before.deviation:.2f} -> "
        f"{found.after.deviation:.2f}, fill {found.before.fill:.3f} -> {found.after.fill:.3f}."
    )


def refresh_payload(simulated: SimulatedState) -> Cluster:
    """Return a cluster whose map is up to date."""
    faults = FaultList()
    if not isinstance(simulated.now.native, CephMap):
        kind = type(simulated.now.native).__name__
        faults.add("cluster.native", kind, "must be a Ceph map; systems.ceph.crush.cluster_of")
    faults.raise_if_any()
    return simulated.now
