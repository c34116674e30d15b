"""Build the cluster that a run of Longhorn's own rule leaves behind."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.reading.arrays import read_only
from evenkeel.systems.longhorn.auto_balance.compile import system_of
from evenkeel.systems.longhorn.auto_balance.intake import (
    DEGRADED,
    HEALTHY,
    UNKNOWN,
    Replicas,
    as_cluster,
)
from evenkeel.systems.longhorn.auto_balance.stepping import AutoBalance
from evenkeel_kernels.longhorn import state as marks


def cluster_after(work: AutoBalance) -> Cluster:
    """Build the cluster that a run leaves behind, as Longhorn would then show it."""
    made, cluster = work.bundle, work.cluster
    system, state = system_of(cluster), made.state
    there = np.flatnonzero(state.node >= 0)
    owner = state.owner[there]
    count = np.bincount(owner, minlength=len(system.volumes))
    width = np.maximum(count, system.volumes.replicas)
    first = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
    slot = first[owner] + np.arange(len(owner)) - np.searchsorted(owner, owner)
    node = np.full(int(first[-1]), -1, np.int32)
    node[slot] = state.node[there]
    disks = replace(
        system.disks,
        available=read_only(state.available.copy()),
        scheduled=read_only(state.scheduled.copy()),
    )
    after = replace(
        system,
        disks=disks,
        replicas=_replicas(work, first, slot, there),
        volumes=replace(system.volumes, robustness=_robustness(work)),
    )
    return as_cluster(after, first, node)


def _replicas(
    work: AutoBalance, first: NDArray[np.int64], slot: NDArray[np.int64], there: NDArray[np.int64]
) -> Replicas:
    """Take over what is known of replicas that stay; new ones are healthy since now."""
    system, state, known = system_of(work.cluster), work.bundle.state, work.bundle.names
    before, origin = system.replicas, known.slot(state.rank[there])
    fresh = origin < 0
    names = [""] * int(first[-1])
    rows = zip(slot, state.owner[there], state.rank[there], strict=True)
    for s, volume, rank in rows:
        names[s] = known.name(int(volume), int(rank))

    def flags(old: NDArray[np.bool_], of_new: bool) -> NDArray[np.bool_]:
        column = np.zeros(int(first[-1]), np.bool_)
        column[slot] = np.where(fresh, of_new, old[origin])
        return read_only(column)

    def times(old: NDArray[np.float64], of_new: float) -> NDArray[np.float64]:
        column = np.full(int(first[-1]), np.nan)
        column[slot] = np.where(fresh, of_new, old[origin])
        return read_only(column)

    return Replicas(
        names=tuple(names),
        healthy=flags(before.healthy, True),
        failed=flags(before.failed, False),
        active=flags(before.active, True),
        evicting=flags(before.evicting, False),
        reusable=flags(before.reusable, False),
        clone_source=flags(before.clone_source, False),
        healthy_at=times(before.healthy_at, system.now),
        failed_at=times(before.failed_at, np.nan),
    )


def _robustness(work: AutoBalance) -> NDArray[np.uint8]:
    made, volumes = work.bundle, system_of(work.cluster).volumes
    state, whole = made.state, marks.HEALTHY | marks.ACTIVE
    serving = (state.node >= 0) & (state.marks & whole == whole)
    healthy = np.bincount(state.owner[serving], minlength=len(volumes))
    mended = made.problem.whole & (healthy >= volumes.replicas)
    mended &= np.isin(volumes.robustness, (DEGRADED, UNKNOWN))
    return read_only(np.where(mended, HEALTHY, volumes.robustness).astype(np.uint8))
