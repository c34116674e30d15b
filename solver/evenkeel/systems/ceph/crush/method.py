"""The methods ``ceph_crush`` and ``ceph_upmap``, and the read balancer of ``osdmaptool --read``.

The upmap balancer writes pairs for ``pg-upmap-items`` that level the devices of a pool. Ceph's own
balancer aims at shares by weight, even where these are out of reach: a rack that deserves more than
one replica of every group cannot get it. Here the shares are computed first under the limits of the
failure domains. Where they allow levelling, every device ends within the requested deviation of its
share. Where they do not, the fullest device ends as low as whole replicas permit. Either takes as
few moves as possible.

The read balancer chooses primaries. Only replicated pools have a choice: in an erasure-coded pool
the order of the shards is their content. No data moves; the result is a ``pg-upmap-primary`` entry
for each placement group whose primary changes.

References
----------
Ceph, ``OSDMap::calc_pg_upmaps`` and ``_apply_upmap``, for the pairs that are replaced and produced;
``OSDMap::balance_primaries``, for the entries that are replaced and produced.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.methods.contract import Outcome, Request, SimulatedState, only_for
from evenkeel.methods.shared.stopping import Clock, OutOfTime
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.stranded import marked
from evenkeel.model.placement import Flag
from evenkeel.model.reading.arrays import ROUNDING
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.model.runtime.printable import some_of
from evenkeel.systems.ceph.crush.cluster import FORMAT, CephMap, slots_of
from evenkeel.systems.ceph.crush.crush_map import IN, NO_OSD, CrushMap
from evenkeel.systems.ceph.crush.failure_domains import (
    OUTSIDE,
    FailureDomains,
    broken,
    failure_domains,
    positions,
)
from evenkeel.systems.ceph.crush.placement import (
    Pairs,
    Pool,
    Rows,
    raw,
    up,
    upmapped,
    with_primaries,
)
from evenkeel.systems.ceph.options import CephCrush, Upmap
from evenkeel_kernels.ceph import upmap as kernels

HALVINGS = 60  # enough to find a level to the last bit of a double


class DeviceBalance(NamedTuple):
    """Balance of devices."""

    replicas: NDArray[np.int64]  # (devices,) replicas of the pool on each device
    share: NDArray[np.float64]  # (devices,) replicas that it deserves by its weight
    deviation: float  # largest distance of a device's replicas from its share
    spread: float  # root of the mean squared distance
    fill: float  # largest number of replicas as a multiple of the share


@dataclass(frozen=True)
class Upmapped:
    """What the balancer found."""

    items: Pairs  # all ``pg-upmap-items`` of the pool as they should be: pairs (from, to) by group
    rows: Rows  # (pg_num, size) devices by slot with these pairs in force
    moves: int  # replicas that change their device against the pairs in force before
    # before, after: balance of the devices before and after
    before: DeviceBalance
    after: DeviceBalance
    # the least fill that the failure domains allow, in whole replicas; 1 where they allow the
    # shares to be had
    level: float
    unresolved: int  # replicas outside the bands for which no chain of moves was found
    broken: NDArray[np.int64]  # (broken,) groups that break the rule, as they did before


def balance(
    crush: CrushMap,
    pool: Pool,
    *,
    reweight: ArrayLike | None = None,
    items: Pairs | None = None,
    whole: Mapping[int, Sequence[int]] | None = None,
    still: NDArray[np.bool_] | None = None,
    pinned: NDArray[np.bool_] | None = None,
    deviation: float = 1.0,
    spare: float = 0.08,
    clock: Clock | None = None,
) -> Upmapped:
    """Find pairs that level the devices of one pool, as far as the clock lets it."""
    # Devices that are ``still`` neither take nor give: those that are down (a replica mapped onto
    # one is a replica less, and once they are out CRUSH maps around them) and those that are
    # excluded. ``OutOfTime`` is raised if the clock stops it before all groups are mapped.
    faults = FaultList()
    if not deviation >= 0.5:
        faults.add("deviation", deviation, "must be at least 0.5")
    if not spare >= 0.0:
        faults.add("spare", spare, "must not be negative")
    faults.raise_if_any()
    weights = np.full(crush.devices, IN) if reweight is None else np.asarray(reweight)
    clock = clock or Clock()
    mapped = raw(crush, pool, weights, clock=clock)
    before = upmapped(mapped, weights, whole=whole, items=items)
    beat()
    domains = failure_domains(crush, pool.rule, pool.size)
    if still is not None:
        domains = _by_themselves(domains, np.flatnonzero(still))
    deserved = domains.weight * weights / IN
    aims = _aims(domains, before, deserved, deviation)
    free = np.ones(len(before), bool) if pinned is None else ~pinned
    there = (before != NO_OSD) & free[:, None]
    osd = np.where(there, before, kernels.NOWHERE).astype(np.int32).ravel()
    stays = before[~free]
    aims = aims.without(np.bincount(stays[stays != NO_OSD], minlength=crush.devices))
    state = kernels.spread(
        osd, pool.size, np.empty((osd.size, 0), np.int32), domains.enclosure, domains.domain
    )
    needed = levelled(state, aims.bands, osd.size * crush.devices, clock)
    levelled(state, aims.lifted, int(spare * needed), clock)
    placed = np.where(there, osd.reshape(before.shape), before).astype(np.int32)
    pairs = pairs_between(mapped, placed, positions(crush, pool.rule, pool.size))
    for pg in np.flatnonzero(~free).tolist():
        pairs.pop(pg, None)
        if kept := (items or {}).get(pg):
            pairs[pg] = [*kept]
    beat()
    rows = upmapped(mapped, weights, whole=whole, items=pairs)
    return Upmapped(
        items=pairs,
        rows=rows,
        moves=moves_between(before, rows),
        before=standing(before, aims.shares),
        after=standing(rows, aims.shares),
        level=aims.level,
        unresolved=_outside(state.tally, aims.bands),
        broken=broken(domains, rows),
    )


def _by_themselves(domains: FailureDomains, devices: NDArray[np.intp]) -> FailureDomains:
    """Return domains in which each of some devices is an enclosure that nothing joins or leaves."""
    devices = devices[domains.enclosure[devices] != OUTSIDE]
    enclosure = domains.enclosure.copy()
    enclosure[devices] = enclosure.max(initial=OUTSIDE) + 1 + np.arange(len(devices))
    return replace(domains, enclosure=enclosure)


def levelled(state: kernels.Spread, bands: kernels.Bands, budget: int, clock: Clock) -> int:
    """Balance within a budget of moves until the clock stops it; return the moves made."""
    course = kernels.new_course(len(state.tally))
    done = False
    while not done and clock.goes_on(int(course.at[kernels.LOOKED]), int(course.at[kernels.MOVES])):
        done = kernels.level_some(state, bands, budget, course, kernels.LOOKS)
    return int(course.at[kernels.MOVES])


def standing(rows: Rows, shares: NDArray[np.float64]) -> DeviceBalance:
    """Measure the balance of devices."""
    count = np.bincount(rows[rows != NO_OSD], minlength=shares.size).astype(np.int64)
    counted = (shares > 0) | (count > 0)
    off = count[counted] - shares[counted]
    with np.errstate(divide="ignore"):
        fill = count[counted] / shares[counted]
    return DeviceBalance(
        count,
        shares,
        float(np.abs(off).max(initial=0.0)),
        float(np.sqrt(np.mean(off**2))) if off.size else 0.0,
        float(fill.max(initial=0.0)),
    )


def moves_between(before: Rows, after: Rows) -> int:
    """Count the replicas that change their device."""
    stays = (after[:, :, None] == before[:, None, :]).any(axis=2)
    return int(np.count_nonzero(~stays & (after != NO_OSD)))


def pairs_between(
    mapped: Rows, placed: Rows, may_hold: NDArray[np.bool_] | None = None
) -> dict[int, list[tuple[int, int]]]:
    """Find the pairs that turn CRUSH's rows into the rows wanted."""
    # A device that only changes its slot needs no pair; the pair then goes from the device that
    # leaves to the one that joins. No pair fills a hole, or makes one.
    found: dict[int, list[tuple[int, int]]] = {}
    beat()
    for pg in np.flatnonzero((mapped != placed).any(axis=1)):
        old = mapped[pg].tolist()
        new = placed[pg].tolist()
        leaving = [osd for osd in dict.fromkeys(old) if osd not in new and osd != NO_OSD]
        pairs = []
        for slot, joins in enumerate(new):
            if joins not in old and joins != NO_OSD and leaving:
                leaves, steps = old[slot], 0
                while leaves in new and leaves != NO_OSD and steps < len(old):
                    leaves, steps = old[new.index(leaves)], steps + 1
                leaves = leaves if leaves in leaving else leaving[0]
                leaving.remove(leaves)
                pairs.append((leaves, joins))
        # ``may_hold (size, devices)`` marks the devices that the takes of the rule allow in each
        # slot: a new one takes an allowed slot, if there is a way
        if may_hold is not None:
            pairs = _lawful(pairs, old, may_hold)
        if pairs:
            found[int(pg)] = pairs
    return found


def _lawful(
    pairs: list[tuple[int, int]], old: list[int], may_hold: NDArray[np.bool_]
) -> list[tuple[int, int]]:
    """Return pairs of the same devices in which each joins a slot that it is allowed in."""
    if all(may_hold[old.index(leaves), joins] for leaves, joins in pairs):
        return pairs
    taken: dict[int, int] = {}

    def assign(one: int, tried: set[int]) -> bool:
        for other, (leaves, _) in enumerate(pairs):
            if other not in tried and may_hold[old.index(leaves), pairs[one][1]]:
                tried.add(other)
                if other not in taken or assign(taken[other], tried):
                    taken[other] = one
                    return True
        return False

    if not all(assign(one, set()) for one in range(len(pairs))):
        return pairs
    return [(pairs[other][0], pairs[one][1]) for other, one in sorted(taken.items())]


def _outside(replicas: NDArray[np.int32], bands: kernels.Bands) -> int:
    """Count the replicas above and below the bands."""
    above = np.maximum(replicas - bands.high, 0)
    return int((above + np.maximum(bands.low - replicas, 0)).sum())


class _Aims(NamedTuple):
    """What the devices of a pool should hold."""

    shares: NDArray[np.float64]  # (devices,) what each deserves
    bands: kernels.Bands  # what is asked of each
    lifted: kernels.Bands  # the same, with a lower end also where the failure domains are tight
    level: float  # the least fill in whole replicas

    def without(self, fixed: NDArray[np.int64]) -> "_Aims":
        """Return the aims of what is free where so many replicas of each device are not."""

        def less(bands: kernels.Bands) -> kernels.Bands:
            low, high = (
                np.maximum(each - fixed, 0).astype(np.int32) for each in (bands.low, bands.high)
            )
            return kernels.Bands(low, high, bands.target - fixed)

        return (
            self
            if not fixed.any()
            else self._replace(bands=less(self.bands), lifted=less(self.lifted))
        )


def _aims(
    domains: FailureDomains, rows: Rows, deserved: NDArray[np.float64], deviation: float
) -> _Aims:
    """Work out shares, bands about what can be had of them, and the level that is needed."""
    held = rows != NO_OSD
    osd = np.where(held, rows, 0)
    shares, target = np.zeros((2, deserved.size))
    low, lifted, high = np.zeros((3, deserved.size), np.int32)
    level = 1.0
    for enclosure in range(int(domains.enclosure.max(initial=-1)) + 1):
        inside = domains.enclosure == enclosure
        here = held & inside[osd]
        replicas = int(np.count_nonzero(here))
        groups = int(np.count_nonzero(here.any(axis=1)))
        weight = deserved[inside]
        if weight.sum() == 0.0:
            high[inside] = np.bincount(osd[here], minlength=deserved.size)[inside]
            continue
        share = weight * (replicas / weight.sum())
        domain = np.unique(domains.domain[inside], return_inverse=True)[1]
        part = _Part(share, domain, groups, replicas)
        shares[inside] = share
        target[inside] = attainable = part.attainable()
        lifted[inside] = part.at_least(attainable, deviation)
        if part.room(share + deviation) >= replicas:
            high[inside] = part.whole(share + deviation)
            low[inside] = lifted[inside]
        elif (attainable >= share * (1.0 - ROUNDING)).all():  # only whole replicas are in the way
            high[inside] = part.whole(share + part.least_deviation())
            low[inside] = lifted[inside]
        else:
            level = max(level, part.least_level())
            high[inside] = part.whole(part.least_level() * share)
    return _Aims(
        shares, kernels.Bands(low, high, target), kernels.Bands(lifted, high, target), level
    )


@dataclass(frozen=True)
class _Part:
    """The devices of one enclosure: what they deserve, and what their domains let them have."""

    share: NDArray[np.float64]
    domain: NDArray[np.int64]
    groups: int
    replicas: int

    def whole(self, limit: NDArray[np.float64]) -> NDArray[np.float64]:
        """Replicas that each device takes up to ``limit``; none where it deserves none."""
        return np.minimum(np.floor(limit + ROUNDING), self.groups) * (self.share > 0)

    def room(self, limit: NDArray[np.float64]) -> float:
        """Replicas that fit up to ``limit`` on each device."""
        return float(np.minimum(self.groups, np.bincount(self.domain, self.whole(limit))).sum())

    def attainable(self) -> NDArray[np.float64]:
        """Shares that the domains allow: what one cannot hold goes to the others by weight."""
        deserved = np.bincount(self.domain, self.share)
        enough = self.replicas * (1.0 - ROUNDING)
        level = _least(lambda x: float(np.minimum(self.groups, x * deserved).sum()) >= enough, 1.0)
        held = np.minimum(self.groups, level * deserved)
        factor = np.divide(held, deserved, out=np.zeros_like(held), where=deserved > 0)
        return np.asarray(self.share * factor[self.domain])

    def at_least(self, attainable: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
        """Replicas that each device should have: as many as the deviation asks, if all can have."""

        def low(x: float) -> NDArray[np.float64]:
            return np.maximum(np.ceil(attainable - x - ROUNDING), 0.0)

        return low(_least(lambda x: float(low(x).sum()) <= self.replicas, deviation))

    def least_deviation(self) -> float:
        """The least that, added to each share and rounded down, makes room for all replicas."""
        return _least(lambda x: self.room(self.share + x) >= self.replicas, 0.0)

    def least_level(self) -> float:
        """The least multiple of the shares, rounded down, in which all replicas fit."""
        return _least(lambda x: self.room(x * self.share) >= self.replicas, 1.0)


def _least(enough: Callable[[float], bool], low: float) -> float:
    """Find the least number from ``low`` that is enough; one far beyond any if none is."""
    if enough(low):
        return low
    step = 1.0
    while not enough(low + step) and step < 1e9:
        step *= 2.0
    high = low + step
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


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
    """Choose primaries so that devices lead as many groups as they should, with few changes."""
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


SHOWN = 5  # devices that are named; the rest is counted
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
    pinned = _pinned(request)
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
    """Level the devices of every pool by ``pg-upmap-items``, each pool by itself."""
    options, clock = request.options, Clock(request.watch)
    assert isinstance(options, Upmap)
    native, reweight = _map_of(request)
    nodes = request.cluster.nodes
    alive, pinned = nodes.alive, _pinned(request)
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
            found = levelled[pool.id] = balance(
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


def _pinned(request: Request) -> NDArray[np.bool_]:
    """Return which groups stay, (P,); what is on a device that is down holds back no other."""
    start, alive = request.start, request.cluster.nodes.alive
    flags = np.where((start.node < 0) | alive[start.node], start.flags, 0)
    return marked(replace(start, flags=flags), Flag.PINNED)


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
