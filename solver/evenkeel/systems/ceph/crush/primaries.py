"""Read balancing: which device of each up set is primary, so that reads are spread evenly.

Only replicated pools have a choice: in an erasure-coded one the shards' order is their content. No
data moves; the answer is a ``pg-upmap-primary`` entry for each group whose primary changes.

References
----------
Ceph, ``OSDMap::balance_primaries``, for what is replaced and what is produced.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.methods.shared.stopping import Clock
from evenkeel.model.errors import FaultList
from evenkeel.systems.ceph.crush.crush_map import IN, NO_OSD
from evenkeel.systems.ceph.crush.placement import Pool, Rows
from evenkeel.systems.ceph.crush.upmap import levelled
from evenkeel_kernels.ceph import upmap as kernels

ROUNDING = 1e-9
"""What a desired number may be off a whole one by rounding."""


@dataclass(frozen=True)
class ReadBalanced:
    """What the read balancer found.

    Parameters
    ----------
    primary : ndarray of int32, shape (pg_num,)
        The primary of each group; -1 where its row is empty.
    changes : mapping of int to int
        The new primary of each group whose primary changes.
    desired : ndarray of float64, shape (devices,)
        Groups that each device would lead ideally.
    before, after : float
        Score: the largest number of groups led as a multiple of what is desired; 1 is perfect.
    """

    primary: NDArray[np.int32]
    changes: dict[int, int]
    desired: NDArray[np.float64]
    before: float
    after: float


def balance(
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
    """Bands from wide to the narrowest, so that what cannot be level comes as near as it can."""
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
