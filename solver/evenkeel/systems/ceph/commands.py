"""Reads and writes commands (``pg-upmap-items``) that override where CRUSH places groups.

A line is what ``osdmaptool --upmap`` writes: ``ceph osd pg-upmap-items 1.17 171 173``, pairs of the
device that leaves and the one that joins, or ``ceph osd rm-pg-upmap-items 1.17``. The primary
against the order of devices needs ``pg-upmap-primary``, which clients before Reef do not know; so
these lines go into a file of their own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.systems.ceph.crush.cluster import CephMap, slots_of
from evenkeel.systems.ceph.crush.crush_map import NO_OSD
from evenkeel.systems.ceph.crush.failure_domains import breaks_rule, positions
from evenkeel.systems.ceph.crush.placement import Pool, Rows, up, upmapped, with_primaries
from evenkeel.systems.ceph.crush.upmap import pairs_between
from evenkeel.systems.ceph.documents import AROUND
from evenkeel.systems.documents import Document, quoted

Pairs = Mapping[int, Sequence[tuple[int, int]]]

SET = re.compile(r"ceph osd pg-upmap-items (\S{1,40})((?: \d{1,10} \d{1,10})+)")
UNSET = re.compile(r"ceph osd rm-pg-upmap-items (\S{1,40})")
PRIMARY = re.compile(r"ceph osd (rm-)?pg-upmap-primary (\S{1,40})(?(1)| (\d{1,10}))")
NOTHING = b"# ceph osd pg-upmap-items: no placement group is elsewhere than CRUSH puts it\n"
"""What stands in a file of commands that has none."""


def read_commands(
    faults: FaultList, document: Document
) -> Iterator[tuple[str, str, list[tuple[int, int]]]]:
    """Yield place, placement group and pairs of each command; no pairs where they are removed."""
    for number, line in enumerate(document.text(faults).split("\n"), start=1):
        at, text = f"{document.name}:{number}", " ".join(line.split())
        if found := SET.fullmatch(text):
            osds = [int(one) for one in found[2].split()]
            yield at, found[1], [*zip(osds[::2], osds[1::2], strict=True)]
        elif removed := UNSET.fullmatch(text):
            yield at, removed[1], []
        elif text and not re.match(f"#|{AROUND}", text) and not PRIMARY.fullmatch(text):
            faults.add(at, quoted(line), "is not a pg-upmap-items command of Ceph")


def read_primaries(document: Document) -> Iterator[tuple[str, str, int]]:
    """Yield place, placement group and primary of each command; -1 where Ceph chooses again."""
    for number, line in enumerate(document.text(FaultList()).split("\n"), start=1):
        if found := PRIMARY.fullmatch(" ".join(line.split())):
            yield f"{document.name}:{number}", found[2], int(found[3] or -1)


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return the commands that bring a placement about, and beside them the way back.

    Without a placement, the commands that bring about what is.
    """
    native = cluster.native
    if not isinstance(native, CephMap) or len(native.pools) == 0:
        kind = type(native).__name__
        raise InvalidInput([Fault("cluster.native", kind, "must be a Ceph map with pools")])
    now = {pool.id: native.items.get(pool.id, {}) for pool in native.pools}
    if placement is None:
        return _in_force(cluster, native, now, path)
    faults = FaultList()
    then: dict[int, Pairs] = {}
    primaries: list[str] = []
    back: list[str] = []
    for pool, groups, mapped in _mapped(native):
        rows = rows_of(placement, groups.start, pool)
        then[pool.id] = _wanted_pairs(faults, native, pool, mapped, rows)
        leads, led = placement.leader_node[groups], cluster.placement.leader_node[groups]
        for pg in _decreed(cluster, native, pool, mapped, then[pool.id], leads):
            if leads[pg] != led[pg]:
                primaries.append(_primary(pool, pg, leads))
                back.append(f"ceph osd rm-pg-upmap-primary {pool.id}.{pg:x}\n")
    faults.raise_if_any()
    files = {path: _lines(now, then), path.with_suffix(".rollback.sh"): _lines(then, now)}
    if primaries:
        files[path.with_suffix(".primaries.sh")] = "".join(primaries).encode()
        files[path.with_suffix(".primaries.rollback.sh")] = "".join(back).encode()
    return files


def _in_force(
    cluster: Cluster, native: CephMap, now: Mapping[int, Pairs], path: Path
) -> dict[Path, bytes]:
    """Return the commands that bring about what is."""
    files = {path: _lines({}, now) or NOTHING}
    primaries: list[str] = []
    for pool, groups, mapped in _mapped(native):
        leads = cluster.placement.leader_node[groups]
        decreed = _decreed(cluster, native, pool, mapped, now[pool.id], leads)
        primaries += [_primary(pool, pg, leads) for pg in decreed]
    if primaries:
        files[path.with_suffix(".primaries.sh")] = "".join(primaries).encode()
    return files


def _mapped(native: CephMap) -> Iterator[tuple[Pool, slice, Rows]]:
    """Yield pools, each with its groups among all, and where CRUSH puts them."""
    begin = 0
    for pool in native.pools:
        groups = slice(begin, begin + pool.pg_num)
        yield pool, groups, native.rows(pool, native.reweight, upmaps=False)
        begin += pool.pg_num


def _primary(pool: Pool, pg: int, leads: NDArray[np.int32]) -> str:
    """Return the command that lets a group of a pool be led by whom it is to be."""
    return f"ceph osd pg-upmap-primary {pool.id}.{pg:x} {leads[pg]}\n"


def rows_of(placement: Placement, begin: int, pool: Pool) -> Rows:
    """Return the devices of a pool's groups by slot."""
    first, last = placement.first[begin], placement.first[begin + pool.pg_num]
    node = placement.node[first:last].reshape(pool.pg_num, pool.size)
    return np.where(node < 0, NO_OSD, node).astype(np.int32)


def _wanted_pairs(
    faults: FaultList, native: CephMap, pool: Pool, mapped: Rows, rows: Rows
) -> Pairs:
    """Return the pairs that turn CRUSH's rows into those wanted; groups that stay keep theirs."""
    before = native.items.get(pool.id, {})
    if pool.id in native.known:
        _note_unreachable(faults, pool, rows, mapped)
        return before
    whole = native.whole.get(pool.id, {})
    now = upmapped(mapped, native.reweight, whole=whole, items=before)
    changed = (np.sort(now, axis=1) != np.sort(rows, axis=1)).any(axis=1)
    pairs = pairs_between(mapped, rows, positions(native.crush, pool.rule, pool.size))
    for pg in {*before, *pairs}:
        if not changed[pg]:
            pairs[pg] = [*before.get(pg, ())]
    reached = upmapped(mapped, native.reweight, whole=whole, items=pairs)
    _note_unreachable(faults, pool, rows, reached)
    broken = changed & breaks_rule(native.crush, pool, reached)
    if broken.any():
        broken &= ~breaks_rule(native.crush, pool, now)
    for pg in np.flatnonzero(broken).tolist():
        message = f"would break CRUSH rule {native.crush.rule(pool.rule).name}"
        faults.add(f"{pool.id}.{pg:x}", reached[pg].tolist(), message)
    return pairs


def _note_unreachable(faults: FaultList, pool: Pool, rows: Rows, reached: Rows) -> None:
    """Note the groups that pairs do not bring to where they should be."""
    short = np.sort(reached, axis=1) != np.sort(rows, axis=1)
    for pg in np.flatnonzero(short.any(axis=1)).tolist():
        wanted = [osd for osd in rows[pg].tolist() if osd != NO_OSD]
        got = [osd for osd in reached[pg].tolist() if osd != NO_OSD]
        faults.add(f"{pool.id}.{pg:x}", wanted, f"pg-upmap-items can only bring about {got}")


def _decreed(
    cluster: Cluster,
    native: CephMap,
    pool: Pool,
    mapped: Rows,
    pairs: Pairs,
    leads: np.ndarray,
) -> list[int]:
    """Return the groups whose primary is not the one that Ceph would choose by itself."""
    if pool.kind != "replicated" or pool.id in native.known:
        return []
    placed = upmapped(mapped, native.reweight, whole=native.whole.get(pool.id), items=pairs)
    rows = up(placed, pool, cluster.nodes.alive)
    present, primary = with_primaries(rows, pool, native.affinity)
    held = slots_of(present, leads.astype(np.int32)) >= 0
    there = (present == leads[:, None]).any(axis=1)
    found: list[int] = np.flatnonzero((primary != leads) & held & there).tolist()
    return found


def _lines(now: Mapping[int, Pairs], then: Mapping[int, Pairs]) -> bytes:
    """Return a line for each placement group whose pairs change."""
    lines = []
    for pool in then:
        before, after = now.get(pool, {}), then[pool]
        for pg in sorted({*before, *after}):
            pairs = [tuple(pair) for pair in after.get(pg, ())]
            if pairs == [tuple(pair) for pair in before.get(pg, ())]:
                continue
            osds = "".join(f" {source} {target}" for source, target in pairs)
            command = f"pg-upmap-items {pool}.{pg:x}{osds}"
            lines.append(f"ceph osd {command}\n" if pairs else f"ceph osd rm-{command}\n")
    return "".join(lines).encode()
