"""The method ``longhorn``: auto-balance of a cluster, volume by volume or in one plan."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.contract import Outcome, Request, SimulatedState
from evenkeel.methods.shared.stopping import StopReason
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.runtime.printable import counted
from evenkeel.systems.longhorn.auto_balance.compile import (
    IN_PLACE,
    limited_redundancy,
    stay_degraded,
    system_of,
)
from evenkeel.systems.longhorn.auto_balance.intake import (
    DEGRADED,
    FAULTED,
    HEALTHY,
    UNKNOWN,
    Disks,
    Hosts,
    Replicas,
    System,
    Volumes,
)
from evenkeel.systems.longhorn.auto_balance.settings import Longhorn
from evenkeel.systems.longhorn.auto_balance.stepping import (
    BUDGET,
    ActionLog,
    AutoBalance,
    nodes_in_slots,
)
from evenkeel_kernels.longhorn import state as marks
from evenkeel_kernels.longhorn.auto_balance import ADD


def longhorn(request: Request) -> Outcome:
    """Balance every volume as Longhorn does, or all of them by one plan."""
    options = request.options
    assert isinstance(options, Longhorn)
    wanted = request.cluster.partitions.replicas
    if (wanted != system_of(request.cluster).volumes.replicas).any():
        message = "Longhorn keeps numberOfReplicas of its volumes: another needs method balance"
        raise InvalidInput([Fault("cluster.partitions.replicas", "other numbers", message)])
    if options.scope == "cluster":
        from evenkeel.systems.longhorn.auto_balance.cluster_scope import cluster_scope

        system = system_of(request.cluster)
        settings = system.settings.overridden(options)
        return cluster_scope(request, options, system, settings)
    work = AutoBalance(request.cluster, options)
    stop = _run(work, request)
    node, left_over = nodes_in_slots(work)
    log, healthy = work.log, _healthy(work, node)
    was = request.cluster.placement
    failed = system_of(request.cluster).replicas.failed
    rebuilt = {*was.owner[healthy & failed & (node == was.node)].tolist()}
    return Outcome(
        node=node,
        leader=request.start.leader.copy(),
        stop_reason=stop,
        message=_message(log),
        work=work.work,
        warnings=(
            *limited_redundancy(request.cluster, node, healthy),
            *_left_over(left_over),
            *stay_degraded(
                request.cluster,
                work.settings,
                node,
                lambda v: IN_PLACE if v in rebuilt else work.next_action(v).why,
            ),
        ),
        native=log,
    )


def _message(log: ActionLog) -> str:
    added, deleted = (int(np.count_nonzero(one)) for one in (log.kind == ADD, log.kind != ADD))
    verb = "was" if added == 1 else "were"
    return f"{counted(added, 'replica')} {verb} added and {deleted:,} deleted."


def _run(work: AutoBalance, request: Request) -> StopReason:
    """Run until convergence, or until the watch stops it."""
    while not work.slice(request.watch.work_left(work.work, BUDGET)):
        stop = request.watch.stop(work.work, len(work.log))
        if stop is not None:
            return stop
    return "exhausted"


def _healthy(work: AutoBalance, node: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return the slots with a healthy replica at the end: all new ones, and old ones that were."""
    made = work.bundle
    stays = made.state.node[made.slot] >= 0
    was_healthy = made.state.marks[made.slot] & marks.HEALTHY != 0
    return np.asarray((node >= 0) & (~stays | was_healthy))


def _left_over(count: int) -> tuple[str, ...]:
    if count == 0:
        return ()
    return (f"{count:,} replicas beyond those wanted stay, and are not in the placement",)


def refresh_payload(simulated: SimulatedState) -> Cluster:
    """Return a cluster whose Longhorn system is up to date."""
    system = system_of(simulated.now)
    now = simulated.now
    replicas = _replicas(simulated, system)
    volumes = _volumes(now, system, replicas)
    after = replace(
        system,
        hosts=_hosts(simulated, system),
        disks=_disks(simulated, system, volumes),
        volumes=volumes,
        replicas=replicas,
        now=system.now + simulated.seconds,
    )
    return replace(now, native=after)


def _changed(simulated: SimulatedState) -> NDArray[np.bool_]:
    """Disks whose flags are not what they were; (N,)."""
    was, now = simulated.began.nodes, simulated.now.nodes
    flags = ("alive", "accepts", "keeps", "gone")
    changed: NDArray[np.bool_] = np.any([getattr(was, f) != getattr(now, f) for f in flags], axis=0)
    return changed


def _hosts(simulated: SimulatedState, system: System) -> Hosts:
    hosts, on = system.hosts, system.disks.host
    nodes, changed = simulated.now.nodes, _changed(simulated)
    serves, opens = nodes.serves, nodes.accepts & ~nodes.gone
    touched, up, opened = (np.zeros(len(hosts), np.bool_) for _ in range(3))
    touched[on[changed]] = True
    up[on[serves]] = True
    opened[on[changed & opens]] = True
    since = np.full(len(hosts), -np.inf)
    np.maximum.at(since, on, np.where(serves, simulated.since, -np.inf))
    ready = np.where(touched, up, hosts.ready)
    came = ready & ~hosts.ready
    return replace(
        hosts,
        ready=read_only(ready),
        schedulable=read_only(hosts.schedulable | opened),
        allow_scheduling=read_only(hosts.allow_scheduling | opened),
        cordoned=read_only(hosts.cordoned & ~opened),
        deleting=read_only(hosts.deleting & ~opened),
        evicting=read_only(hosts.evicting & ~touched),
        ready_since=read_only(np.where(came, system.now + since, hosts.ready_since)),
    )


def _disks(simulated: SimulatedState, system: System, volumes: Volumes) -> Disks:
    disks, nodes, changed = system.disks, simulated.now.nodes, _changed(simulated)
    serves = nodes.serves
    # what a host's eviction asks of all its disks is set disk by disk once one of them has changed
    touched = np.isin(disks.host, disks.host[changed])
    evicted = disks.evicting | (touched & system.hosts.evicting[disks.host])
    grown = _held(simulated.now, volumes) - _held(simulated.began, system.volumes)
    return replace(
        disks,
        ready=read_only(np.where(changed, serves, disks.ready)),
        allow_scheduling=read_only(np.where(changed, nodes.accepts, disks.allow_scheduling)),
        evicting=read_only(np.where(changed, serves & ~nodes.keeps, evicted)),
        available=read_only(np.maximum(disks.available - grown[0], 0)),
        scheduled=read_only(np.maximum(disks.scheduled + grown[1], 0)),
    )


def _held(cluster: Cluster, volumes: Volumes) -> NDArray[np.int64]:
    """Bytes that the replicas on each disk take up, and that are promised to them; (2, N)."""
    held = np.flatnonzero(cluster.placement.node >= 0)
    node, owner = cluster.placement.node[held], cluster.placement.owner[held]
    found = np.zeros((2, len(cluster.nodes)), np.int64)
    np.add.at(found[0], node, volumes.actual[owner])
    np.add.at(found[1], node, volumes.size[owner])
    return found


def _volumes(now: Cluster, system: System, replicas: Replicas) -> Volumes:
    volumes, placement = system.volumes, now.placement
    held = placement.node >= 0
    serving = held & replicas.healthy & replicas.active & ~replicas.failed
    count = np.bincount(placement.owner[serving], minlength=len(volumes))
    there = np.bincount(placement.owner[held], minlength=len(volumes)) > 0
    found = np.where(count >= now.partitions.replicas, HEALTHY, DEGRADED)
    found = np.where((count == 0) & there, FAULTED, found)
    as_it_was = (volumes.robustness == UNKNOWN) | ~there
    load = now.partitions.load.voter
    nominal = now.dimensions.index("nominal")
    return replace(
        volumes,
        replicas=now.partitions.replicas,
        actual=_bytes(load[:, now.bytes_dimension]),
        size=_bytes(load[:, nominal]),
        robustness=read_only(np.where(as_it_was, volumes.robustness, found).astype(np.uint8)),
    )


def _bytes(load: NDArray[np.float64]) -> NDArray[np.int64]:
    return read_only(np.rint(load).astype(np.int64))


def _replicas(simulated: SimulatedState, system: System) -> Replicas:
    """Find what is known of every replica that was there; the others are new."""
    was, now, before = simulated.began.placement, simulated.now.placement, system.replicas
    count = len(simulated.now.nodes)
    held = np.flatnonzero(was.node >= 0)
    known = {
        int(volume) * count + int(node): int(slot)
        for volume, node, slot in zip(was.owner[held], was.node[held], held, strict=True)
    }
    pairs = now.owner.astype(np.int64) * count + now.node
    there = now.node >= 0
    origin = np.array(
        [known.get(pair, -1) if h else -1 for pair, h in zip(pairs.tolist(), there, strict=True)],
        np.int64,
    )
    fresh = there & (origin < 0)
    serves = simulated.now.nodes.serves
    lost = there & ~serves[now.node]
    leaves = there & serves[now.node] & ~simulated.now.nodes.keeps[now.node]
    # one that failed with its disk serves again when the disk does
    returned = there & serves[now.node] & ~simulated.began.nodes.alive[now.node]

    def flags(old: NDArray[np.bool_], of_new: bool) -> NDArray[np.bool_]:
        return np.where(origin >= 0, np.append(old, False)[origin], fresh & of_new)

    def times(old: NDArray[np.float64], of_new: float) -> NDArray[np.float64]:
        return np.where(
            origin >= 0, np.append(old, np.nan)[origin], np.where(fresh, of_new, np.nan)
        )

    failed = flags(before.failed, False) & ~returned
    fell = lost & ~failed
    # Longhorn waits for a replica that may serve again: for as long as its node is not given up
    waits = fell & simulated.now.nodes.keeps[now.node]
    fell_at = system.now + np.where(waits, simulated.seconds, simulated.since[now.node])
    names = np.append(np.array(before.names, object), "")[origin].tolist()
    for slot in np.flatnonzero(fresh).tolist():
        volume = system.volumes.names[int(now.owner[slot])]
        names[slot] = f"{volume}-r-on{int(now.node[slot]):05}"
    return Replicas(
        names=tuple(names),
        healthy=read_only((flags(before.healthy, True) | returned) & ~lost),
        failed=read_only(failed | lost),
        active=read_only(flags(before.active, True)),
        evicting=read_only(flags(before.evicting, False) | leaves),
        reusable=read_only((flags(before.reusable, False) & ~fell) | waits),
        clone_source=read_only(flags(before.clone_source, False)),
        healthy_at=read_only(times(before.healthy_at, system.now)),
        failed_at=read_only(np.where(fell, fell_at, times(before.failed_at, np.nan))),
    )
