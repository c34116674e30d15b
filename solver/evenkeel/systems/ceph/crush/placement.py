"""Map placement groups to devices as Ceph does: seeds, CRUSH, upmaps, up sets, primaries.

The steps follow one another as Ceph's do, each a function on arrays::

    seeds -> raw -> upmapped -> up -> primaries

An array of placement groups has one row per group, ``(pg_num, size)`` int32, with ``NO_OSD`` in
holes (erasure-coded pools keep every shard in its slot) and beyond the end of short rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.methods.shared.stopping import Clock
from evenkeel.model.errors import FaultList
from evenkeel.systems.ceph.crush.crush_map import IN, NO_OSD, CrushMap
from evenkeel_kernels.ceph.crush import hash_pairs

SLICE = 1 << 14  # placement groups that CRUSH maps between two looks at the clock
Rows = NDArray[np.int32]
# ``pg-upmap-items``: for a placement group the (from, to) pairs in the order they apply
Pairs = Mapping[int, Sequence[tuple[int, int]]]


@dataclass(frozen=True)
class Pool:
    """A pool of placement groups.

    Parameters
    ----------
    id : int
        Its number.
    pg_num : int
        Placement groups.
    size : int
        Replicas, or shards, of each.
    rule : int
        Number of its CRUSH rule.
    pgp_num : int, optional
        Placement groups that differ in placement; ``pg_num`` unless a change is under way.
    kind : {"replicated", "erasure"}
        Whether replicas move up into holes, or shards keep their slots.
    hashpspool : bool
        Whether the pool's number is hashed into the seeds, as it has been since 2013, or added.

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Examples
    --------
    >>> Pool(1, pg_num=8, size=3, rule=0).pgp_num
    """

    id: int
    pg_num: int
    size: int
    rule: int
    pgp_num: int | None = None
    kind: Literal["replicated", "erasure"] = "replicated"
    hashpspool: bool = True

    def __post_init__(self) -> None:
        faults = FaultList()
        for name, low in (("id", 0), ("pg_num", 1), ("size", 1)):
            if getattr(self, name) < low:
                faults.add(f"pool.{name}", getattr(self, name), f"must be at least {low}")
        if self.pgp_num is not None and not 1 <= self.pgp_num <= self.pg_num:
            faults.add("pool.pgp_num", self.pgp_num, f"must lie in 1 to {self.pg_num}")
        if self.kind not in ("replicated", "erasure"):
            faults.add("pool.kind", self.kind, "must be replicated or erasure")
        faults.raise_if_any()


def stable_mod(value: ArrayLike, count: int) -> NDArray[np.uint32]:
    """Reduce hashes to ``count`` classes so that few change class as the count grows."""
    # Ceph, ``ceph_stable_mod``
    mask = (1 << (count - 1).bit_length()) - 1
    words = np.asarray(value).astype(np.uint32)
    low = words & np.uint32(mask)
    return np.where(low < count, low, words & np.uint32(mask >> 1)).astype(np.uint32)


def seeds(pool: Pool) -> NDArray[np.uint32]:
    """Compute what CRUSH gets as its input for each placement group."""
    # Ceph, ``pg_pool_t::raw_pg_to_pps``
    places = stable_mod(np.arange(pool.pg_num), pool.pgp_num or pool.pg_num)
    if not pool.hashpspool:
        return places + np.uint32(pool.id)
    return hash_pairs(places, np.full(pool.pg_num, pool.id, np.uint32))


def raw(
    crush: CrushMap,
    pool: Pool,
    reweight: ArrayLike | None = None,
    exists: ArrayLike | None = None,
    clock: Clock | None = None,
) -> Rows:
    """Place all groups of a pool by CRUSH alone; ``OutOfTime`` if the clock stops it."""
    # Ceph, ``OSDMap::_pg_to_raw_osds``
    named = [name for name in (str(pool.id), "-1") if name in crush.choose_args]
    clock, inputs = clock or Clock(), seeds(pool)
    rows = np.empty((pool.pg_num, pool.size), np.int32)
    for begin in range(0, pool.pg_num, SLICE):
        clock.ask(begin)
        some = slice(begin, begin + SLICE)
        rows[some] = crush.map(
            pool.rule, inputs[some], pool.size, reweight, named[0] if named else None
        ).osd
    if exists is None:
        if (rows >= 0).all():
            return rows
        exists = np.ones(crush.devices, bool)
    return _without(rows, ~np.asarray(exists, bool), pool)


def _without(rows: Rows, absent: NDArray[np.bool_], pool: Pool) -> Rows:
    """Take absent devices out: replicas move up, shards leave a hole."""
    # what is no device at all is absent, too: the buckets of a rule that chooses no leaves
    known = (rows >= 0) & (rows < absent.size)
    there = known & ~absent[np.where(known, rows, 0)]
    kept = np.where(there, rows, NO_OSD).astype(np.int32)
    if pool.kind == "erasure":
        return kept
    order = np.argsort(kept == NO_OSD, axis=1, kind="stable")
    return np.take_along_axis(kept, order, axis=1)


def upmapped(
    rows: Rows,
    reweight: ArrayLike,
    *,
    whole: Mapping[int, Sequence[int]] | None = None,
    items: Pairs | None = None,
    primary: Mapping[int, int] | None = None,
) -> Rows:
    """Apply the exceptions that the monitors hold for single placement groups."""
    # Ceph, ``OSDMap::_apply_upmap``
    weights = np.asarray(reweight)
    usable = {int(osd) for osd in np.flatnonzero(weights)}
    answer = rows.copy()
    void: set[int] = set()
    for pg, osds in (whole or {}).items():
        if all(osd in usable or osd == NO_OSD for osd in osds):
            answer[pg] = NO_OSD
            answer[pg, : len(osds)] = osds
        else:
            void.add(pg)
    for pg, pairs in (items or {}).items():
        if pg not in void:
            _swap_in(answer[pg], pairs, usable)
    for pg, osd in (primary or {}).items():
        if osd in usable and pg not in void:
            held = np.flatnonzero(answer[pg] == osd)
            if held.size and held[0] > 0:
                answer[pg, held[0]], answer[pg, 0] = answer[pg, 0], osd
    return answer


def _swap_in(row: Rows, pairs: Iterable[tuple[int, int]], usable: set[int]) -> None:
    """Apply pairs to one row in place."""
    held = row.tolist()
    for source, target in pairs:
        if source in held and target in usable and target not in held:
            held[held.index(source)] = target
    row[:] = held


def up(rows: Rows, pool: Pool, is_up: ArrayLike) -> Rows:
    """Take devices that are down out of the rows."""
    # Ceph, ``OSDMap::_raw_to_up_osds``
    return _without(rows, ~np.asarray(is_up, bool), pool)


def with_primaries(
    rows: Rows, pool: Pool, affinity: ArrayLike | None = None
) -> tuple[Rows, NDArray[np.int32]]:
    """Choose who is primary, and in replicated pools move it to the front."""
    # Ceph, ``OSDMap::_apply_primary_affinity``
    held = rows != NO_OSD
    any_held = held.any(axis=1)
    place = np.where(any_held, held.argmax(axis=1), 0)
    if affinity is not None:
        share = np.asarray(affinity, np.int64)
        osd = np.where(held, rows, 0)
        draw = hash_pairs(np.repeat(seeds(pool), rows.shape[1]), osd.ravel().astype(np.uint32))
        willing = (share[osd] >= IN) | ((draw.reshape(rows.shape) >> np.uint32(16)) < share[osd])
        willing &= held
        place = np.where(willing.any(axis=1), willing.argmax(axis=1), place)
    each = np.arange(len(rows))
    primary = np.where(any_held, rows[each, place], -1).astype(np.int32)
    if pool.kind == "erasure":
        return rows, primary
    slot = np.arange(rows.shape[1])
    source = np.where(slot == 0, place[:, None], slot - (slot <= place[:, None]))
    return np.take_along_axis(rows, source, axis=1), primary
