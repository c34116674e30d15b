"""The Ceph format: read the output of its tools, write commands for them.

The commands override where CRUSH places groups. A line is what ``osdmaptool --upmap`` writes:
``ceph osd pg-upmap-items 1.17 171 173``, pairs of the device that leaves and the one that joins, or
``ceph osd rm-pg-upmap-items 1.17``. The primary against the order of devices needs
``pg-upmap-primary``, which clients before Reef do not know; so these lines go into a file of their
own.

References
----------
Ceph, ``ceph osd dump``, ``osd tree``, ``osd df``, ``pg dump`` and ``osd crush dump`` with
``-f json``; ``crushtool --decompile``; ``osdmaptool --upmap``.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import audit
from evenkeel.measure.rows import at_node
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.intake.stranded import with_stranded
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import LISTED_FAULTS
from evenkeel.model.runtime.printable import counted, some_of
from evenkeel.systems.ceph.crush.cluster import FORMAT as NAME
from evenkeel.systems.ceph.crush.cluster import (
    ROOM,
    SHOWN,
    CephMap,
    cluster_of,
    places_in,
    shares_of,
    slots_of,
)
from evenkeel.systems.ceph.crush.crush_map import IN, NO_OSD, CrushMap, is_known
from evenkeel.systems.ceph.crush.failure_domains import breaks_rule, positions
from evenkeel.systems.ceph.crush.method import pairs_between
from evenkeel.systems.ceph.crush.placement import Pool, Rows, up, upmapped, with_primaries
from evenkeel.systems.ceph.crush_map import FREE_IDS, crush_map_of, read_crush_text, unread_rules
from evenkeel.systems.ceph.documents import (
    AROUND,
    ASKS,
    MEMBERS,
    WORDS,
    CrushDump,
    Kind,
    OsdMap,
    OsdTree,
    PgStat,
    devices_as_json,
    hint,
    kind_of,
    osd_dump_as_json,
    parts_of,
    pg_dump_as_json,
    plain,
    read_stats,
)

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.folders.carrier import (
    Carrier,
    Observed,
    Orders,
    Standing,
    Wave,
    all_nodes,
    anybody,
)
from evenkeel.systems.folders.form import Command, Setting
from evenkeel.systems.json_text import decode_json
from evenkeel.systems.native.arguments import check_slots
from evenkeel.systems.notes import Notes, last_answers, noted
from evenkeel.systems.payload import check_names
from evenkeel.systems.registry import Format

Pairs = Mapping[int, Sequence[tuple[int, int]]]

SET = re.compile(r"ceph osd pg-upmap-items (\S{1,40})((?: \d{1,10} \d{1,10})+)")
UNSET = re.compile(r"ceph osd rm-pg-upmap-items (\S{1,40})")
PRIMARY = re.compile(r"ceph osd (rm-)?pg-upmap-primary (\S{1,40})(?(1)| (\d{1,10}))")
# what stands in a file of commands that has none
NOTHING = b"# ceph osd pg-upmap-items: no placement group is elsewhere than CRUSH puts it\n"


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
    """Return the commands that bring a placement about, and beside them the way back."""
    native = cluster.native
    if not isinstance(native, CephMap) or len(native.pools) == 0:
        kind = type(native).__name__
        raise InvalidInput([Fault("cluster.native", kind, "must be a Ceph map with pools")])
    now = {pool.id: native.items.get(pool.id, {}) for pool in native.pools}
    if placement is None:
        return _in_force(cluster, native, now, path)
    faults = FaultList()
    _check_names(cluster, native)
    then: dict[int, Pairs] = {}
    primaries: list[str] = []
    back: list[str] = []
    for pool, groups, mapped in _mapped(native):
        rows = rows_of(placement, groups.start, pool)
        then[pool.id] = _wanted_pairs(faults, native, pool, range(pool.pg_num), mapped, rows)
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


def _check_names(cluster: Cluster, native: CephMap) -> None:
    """Raise for placement groups and devices that are not those of the map, and other sizes."""
    groups = [f"{pool.id}.{pg:x}" for pool in native.pools for pg in range(pool.pg_num)]
    devices = [f"osd.{number}" for number in range(native.crush.devices)]
    check_names(cluster, partitions=groups, nodes=devices)
    faults, width, begin = FaultList(), np.diff(cluster.placement.first), 0
    for pool in native.pools:
        own = {*width[begin : begin + pool.pg_num].tolist()} - {pool.size}
        begin += pool.pg_num
        if own:
            message = f"must be {pool.size}: ceph osd pool set POOL size changes it"
            faults.add(f"replicas of pool {pool.id}", max(own), message)
    faults.raise_if_any()


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
    faults: FaultList, native: CephMap, pool: Pool, groups: Sequence[int], mapped: Rows, rows: Rows
) -> Pairs:
    """Return the pairs, by row, that turn CRUSH's rows of groups into those wanted."""
    items, all_whole = native.items.get(pool.id, {}), native.whole.get(pool.id, {})
    before = {row: items[pg] for row, pg in enumerate(groups) if pg in items}
    if pool.id in native.known:
        _note_unreachable(faults, pool, groups, rows, mapped)
        return before
    whole = {row: all_whole[pg] for row, pg in enumerate(groups) if pg in all_whole}
    now = upmapped(mapped, native.reweight, whole=whole, items=before)
    changed = (np.sort(now, axis=1) != np.sort(rows, axis=1)).any(axis=1)
    pairs = pairs_between(mapped, rows, positions(native.crush, pool.rule, pool.size))
    for row in {*before, *pairs}:
        if not changed[row]:
            pairs[row] = [*before.get(row, ())]
    reached = upmapped(mapped, native.reweight, whole=whole, items=pairs)
    _note_unreachable(faults, pool, groups, rows, reached)
    broken = changed & breaks_rule(native.crush, pool, reached)
    if broken.any():
        broken &= ~breaks_rule(native.crush, pool, now)
    for row in np.flatnonzero(broken).tolist():
        message = f"would break CRUSH rule {native.crush.rule(pool.rule).name}"
        faults.add(f"{pool.id}.{groups[row]:x}", reached[row].tolist(), message)
    return pairs


def _note_unreachable(
    faults: FaultList, pool: Pool, groups: Sequence[int], rows: Rows, reached: Rows
) -> None:
    """Note the groups that pairs do not bring to where they should be."""
    short = np.sort(reached, axis=1) != np.sort(rows, axis=1)
    for row in np.flatnonzero(short.any(axis=1)).tolist():
        wanted = [osd for osd in rows[row].tolist() if osd != NO_OSD]
        got = [osd for osd in reached[row].tolist() if osd != NO_OSD]
        faults.add(
            f"{pool.id}.{groups[row]:x}", wanted, f"pg-upmap-items can only bring about {got}"
        )


def _decreed(
    cluster: Cluster, native: CephMap, pool: Pool, mapped: Rows, pairs: Pairs, leads: np.ndarray
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


# states of a placement group in which nothing is copied: it lacks devices that hold its data
SERVES_NOT = frozenset(("down", "incomplete", "stale"))

ERASURE = 3
HASHED = 1  # the flag of a pool whose number is hashed into the seeds
# releases whose clients do not know ``pg-upmap-items``
BEFORE_UPMAP = (
    "argonaut", "bobtail", "cuttlefish", "dumpling", "emperor", "firefly", "giant", "hammer",
    "infernalis", "jewel", "kraken",
)  # fmt: skip

TOO_FULL = frozenset(("backfillfull", "full"))  # states of a device to which nothing is copied
BACKFILLFULL = 0.9  # the usual share of a disk from which on it is backfillfull
PGID = re.compile(r"(\d{1,10})\.([0-9a-f]{1,8})")
# states of a placement group of which ``pg dump`` has what once was, or nothing yet
OLD_STATES = frozenset(("stale", "unknown", "creating"))

# share of the groups beyond which those elsewhere, or missing, make files of different times
MOST_STRANGE = 0.5


@dataclass
class _Found:
    """The documents read so far."""

    faults: FaultList = field(default_factory=FaultList)
    notes: Notes = field(default_factory=Notes)
    map: tuple[Document, OsdMap] | None = None
    crush: tuple[Document, CrushDump] | None = None
    trees: list[tuple[Document, OsdTree]] = field(default_factory=list)
    stats: tuple[Document, str, list[PgStat]] | None = None
    commands: list[Document] = field(default_factory=list)


def read(documents: Sequence[Document], *, compare: bool = True) -> Cluster:
    """Read a cluster from ``ceph osd dump`` and the CRUSH map, and what else belongs to them."""
    found = _Found()
    parts = [part for document in documents for part in parts_of(document)]
    for document in last_answers(found.notes, parts):
        _read_document(found, document)
    faults = found.faults
    if not faults and (found.map is None or found.crush is None):
        wanted = {"ceph osd dump": found.map, "ceph osd crush dump": found.crush}
        missing = " and ".join(command for command, there in wanted.items() if there is None)
        message = f"needs {missing}, with -f json, or as text; ceph pg dump adds the groups"
        faults.add("source", [document.name for document in documents], message)
    if found.map is None or found.crush is None:
        raise InvalidInput(faults.faults)
    (document, osd_map), (crush_document, crush_dump) = found.map, found.crush
    size = sum(len(one.data) for one in documents)
    devices = _devices(faults, document, osd_map, size)
    unread = unread_rules(crush_dump)
    crush = crush_map_of(faults, crush_document.name, crush_dump, devices, size, unread)
    _note_tunables(found, crush_document, crush_dump)
    pools = _pools(faults, document, osd_map)
    items = _items(found, document, osd_map, pools)
    _note_strangers(found, {one.osd for one in osd_map.osds})
    faults.raise_if_any()
    assert crush is not None
    total = sum(pool.pg_num * pool.size for pool in pools)
    check_slots(faults, f"{document.name}: pools", np.array([total]), 1, document)
    known = _known(found, crush, pools, unread, _outside(crush_dump, pools))
    cluster = _cluster(found, document, osd_map, crush, pools, items, known)
    cluster = _with_stats(found, cluster, compare)
    lost = _without_source(found, cluster, osd_map)
    cluster = cluster.replace(native=replace(cluster.native, notes=(
        *found.notes, *cluster.native.notes
    )))  # fmt: skip
    return with_stranded(cluster, lost)


def _without_source(found: _Found, cluster: Cluster, osd_map: OsdMap) -> NDArray[np.bool_]:
    """Tell of which placement groups too little lives to serve, (P,): of shards, less than k."""
    placement, native = cluster.placement, cluster.native
    needs = _shards(osd_map)
    least = np.concatenate(
        [np.full(pool.pg_num, needs.get(pool.id, 1.0)) for pool in native.pools] or [np.ones(0)]
    )
    placed, live = (
        np.bincount(placement.owner[rows], minlength=len(placement))
        for rows in (placement.node >= 0, at_node(cluster.nodes.serves, placement.node))
    )
    lost = (placed >= least) & (live < least)
    # groups whose devices are out as well are mapped to others, which have nothing of them: only
    # their state tells that
    if found.stats is not None:
        at = {name: p for p, name in enumerate(cluster.partitions.names)}
        for one in found.stats[2]:
            if one.pgid in at:
                lost[at[one.pgid]] |= not SERVES_NOT.isdisjoint(one.state.split("+"))
    return np.asarray(lost)


def _in_json(faults: FaultList, document: Document) -> tuple[Kind, Document, int]:
    """Return the kind of a document, the document in its JSON, and figures that are no numbers."""
    kind = kind_of(document)
    if kind == "osd dump":
        document = osd_dump_as_json(faults, document)
    elif kind == "pg dump":
        document = pg_dump_as_json(document)
    elif kind in ("osd tree", "osd df"):
        document = devices_as_json(document)
    return kind, *(plain(document) if kind.endswith(("dump", "tree", "df")) else (document, 0))


def _read_document(found: _Found, document: Document) -> None:
    kind, document, figures = _in_json(found.faults, document)
    if figures:
        found.notes.add(
            f"{document.name}: {counted(figures, 'figure')} infinite or not a number, as some "
            "releases print a ratio to nothing; none of them is needed"
        )
    if kind == "osd dump":
        decoded = decode_json(found.faults, document, OsdMap)
        _only(found, document, kind, found.map is not None)
        found.map = None if decoded is None else (document, decoded)
    elif kind in ("osd tree", "osd df"):
        tree = decode_json(found.faults, document, OsdTree)
        if tree is not None:
            found.trees.append((document, tree))
    elif kind == "pg dump":
        _only(found, document, kind, found.stats is not None)
        _read_stats(found, document)
    elif kind == "crush dump":
        _only(found, document, "CRUSH map", found.crush is not None)
        dump = decode_json(found.faults, document, CrushDump)
        found.crush = None if dump is None else (document, dump)
    elif kind == "crush text":
        _only(found, document, "CRUSH map", found.crush is not None)
        found.crush = (document, read_crush_text(found.faults, document))
    elif kind == "upmap commands":
        found.commands.append(document)
    else:
        message = "is not an osd dump, osd tree, osd df, pg dump or CRUSH map of Ceph"
        found.faults.add(document.name, document.data[:40], message)


def _only(found: _Found, document: Document, kind: str, there: bool) -> None:
    if there:
        found.faults.add(document.name, kind, "is a second file of this kind; one is needed")


def _read_stats(found: _Found, document: Document) -> None:
    path, stats = read_stats(found.faults, document)
    if stats is not None:
        found.stats = (document, document.name + path, stats)


def _devices(faults: FaultList, document: Document, osd_map: OsdMap, size: int) -> int:
    """Return how many devices there are; ids far beyond what the files hold are refused."""
    seen: dict[int, int] = {}
    for i, one in enumerate(osd_map.osds):
        at = f"{document.name}: osds[{i}].osd"
        if one.osd in seen:
            faults.add(at, one.osd, f"is already given at osds[{seen[one.osd]}]")
        seen.setdefault(one.osd, i)
        if one.osd >= max(FREE_IDS, size):
            faults.add(at, one.osd, "is too large an id for a file of this size")
    return max((one.osd + 1 for one in osd_map.osds), default=0)


def _note_tunables(found: _Found, document: Document, dump: CrushDump) -> None:
    unknown = [name for name in dump.tunables if not is_known(name)]
    if unknown:
        found.notes.add(
            f"{document.name}: tunables that are not known are not heeded: "
            f"{some_of(unknown, str, SHOWN)}; pg dump shows whether groups are where they should be"
        )


def _pools(faults: FaultList, document: Document, osd_map: OsdMap) -> list[Pool]:
    if not osd_map.pools:
        faults.add(f"{document.name}: pools", [], "needs a pool")
    pools: list[Pool] = []
    seen: dict[int, int] = {}
    for i, one in enumerate(osd_map.pools):
        at = f"{document.name}: pools[{i}]"
        if one.pool in seen:
            faults.add(f"{at}.pool", one.pool, f"is already given at pools[{seen[one.pool]}]")
        seen.setdefault(one.pool, i)
        if one.pg_placement_num > one.pg_num:
            message = f"must be at most pg_num, {one.pg_num}"
            faults.add(f"{at}.pg_placement_num", one.pg_placement_num, message)
            continue
        pools.append(
            Pool(
                one.pool,
                one.pg_num,
                one.size,
                one.crush_rule,
                one.pg_placement_num,
                "erasure" if one.type == ERASURE else "replicated",
                bool(one.flags & HASHED),
            )
        )
    return pools


def _outside(found: CrushDump, pools: Sequence[Pool]) -> dict[int, str]:
    """Return why rules place nothing of pools, by pool: they are for other numbers of replicas."""
    sizes = {rule.rule_id: (rule.min_size, rule.max_size) for rule in found.rules}
    return {
        pool.id: f"it is for {low} to {high} replicas, not {pool.size}, and releases before Quincy "
        "place nothing by it"
        for pool in pools
        for low, high in [sizes.get(pool.rule, (pool.size, pool.size))]
        if not low <= pool.size <= high
    }


def _known(
    found: _Found,
    crush: CrushMap,
    pools: Sequence[Pool],
    unread: Mapping[int, str],
    outside: Mapping[int, str],
) -> dict[int, Rows]:
    """Return where ``pg dump`` has the groups of pools whose rule cannot be run, by pool."""
    # ``unread`` has the reasons by rule, ``outside`` by pool
    rules = {rule.id for rule in crush.rules}
    reported = {} if found.stats is None else {one.pgid: one.up for one in found.stats[2]}
    known: dict[int, Rows] = {}
    for pool in pools:
        if pool.rule in rules and pool.id not in outside:
            continue
        why = outside.get(pool.id) or unread.get(pool.rule, "is not in the CRUSH map")
        where = "its groups are where pg dump has them" if reported else (
            "where its groups are is not known: add what ceph pg dump -f json prints"
        )  # fmt: skip
        found.notes.add(f"pool {pool.id} (CRUSH rule {pool.rule}) is left alone: {why}; {where}")
        rows = _padded(
            [reported.get(f"{pool.id}.{pg:x}", []) for pg in range(pool.pg_num)], pool.size
        )
        there = (rows >= 0) & (rows < crush.devices)
        known[pool.id] = np.where(there, rows, NO_OSD).astype(np.int32)
    return known


@dataclass
class _Exceptions:
    """What the monitors hold for single groups, by pool and group."""

    items: dict[int, dict[int, list[tuple[int, int]]]] = field(default_factory=dict)
    whole: dict[int, dict[int, list[int]]] = field(default_factory=dict)
    temporary: list[str] = field(default_factory=list)


def _items(
    found: _Found, document: Document, osd_map: OsdMap, pools: Sequence[Pool]
) -> _Exceptions:
    """Return the exceptions in force; commands come after the dump."""
    # those of the dump for groups and devices that are gone have no effect, and are noted
    faults = found.faults
    sizes = {pool.id: pool.pg_num for pool in pools}
    slots = {pool.id: pool.size for pool in pools}
    osds = {one.osd for one in osd_map.osds}
    exceptions = _Exceptions(temporary=[one.pgid for one in osd_map.pg_temp])
    gone: list[str] = []
    for i, whole in enumerate(osd_map.pg_upmap):
        where = _place(faults, f"{document.name}: pg_upmap[{i}].pgid", whole.pgid, sizes, gone)
        if where is not None and len(whole.osds) <= slots[where[0]] and {*whole.osds} <= osds:
            exceptions.whole.setdefault(where[0], {})[where[1]] = whole.osds
        elif where is not None:
            gone.append(whole.pgid)
    for i, entry in enumerate(osd_map.pg_upmap_items):
        at = f"{document.name}: pg_upmap_items[{i}].pgid"
        where = _place(faults, at, entry.pgid, sizes, gone)
        if where is None:
            continue
        pairs = [(swap.source, swap.target) for swap in entry.mappings]
        if not {target for _, target in pairs} <= osds:
            gone.append(entry.pgid)
        exceptions.items.setdefault(where[0], {})[where[1]] = pairs
    if gone:
        found.notes.add(
            f"{document.name}: upmaps for groups or devices that are gone have no effect: "
            f"{some_of(gone, str, SHOWN)}"
        )
    if exceptions.whole:
        named = [f"{pool}.{pg:x}" for pool, own in exceptions.whole.items() for pg in own]
        found.notes.add(
            "placed by pg-upmap, which names all devices of a group, and left alone: "
            f"{some_of(named, str, SHOWN)}"
        )
    for commands in found.commands:
        for at, pgid, pairs in read_commands(faults, commands):
            where = _place(faults, at, pgid, sizes)
            for _, target in pairs:
                if target not in osds:
                    faults.add(at, target, "is not a device of the dump")
            if where is not None:
                exceptions.items.setdefault(where[0], {})[where[1]] = pairs
    return exceptions


def _place(
    faults: FaultList, at: str, pgid: str, sizes: dict[int, int], gone: list[str] | None = None
) -> tuple[int, int] | None:
    """Return pool and number of a placement group by its id; one that no pool has is noted."""
    found = PGID.fullmatch(pgid)
    pool, number = (int(found[1]), int(found[2], 16)) if found else (-1, -1)
    if found is None or f"{pool}.{number:x}" != pgid:
        faults.add(at, quoted(pgid), "must be pool.group, the group in hexadecimal")
    elif number >= sizes.get(pool, 0) and gone is not None:
        gone.append(pgid)
    elif number >= sizes.get(pool, 0):
        faults.add(at, quoted(pgid), "is a placement group that no pool of the dump has")
    else:
        return pool, number
    return None


def _note_strangers(found: _Found, osds: set[int]) -> None:
    """Note devices of the CRUSH map, osd tree and osd df that the osd dump does not have."""
    assert found.crush is not None
    document, crush = found.crush
    hung = {item.id for bucket in crush.buckets for item in bucket.items if item.weight}
    if lacking := sorted(one for one in hung - osds if one >= 0):
        found.notes.add(
            f"{document.name}: devices that the osd dump does not have count as gone: "
            f"{some_of(lacking, str, SHOWN)}"
        )
    for document, tree in found.trees:
        gone = [node.id for node in tree.nodes if node.id >= 0 and node.id not in osds]
        if gone:
            found.notes.add(
                f"{document.name}: devices that the osd dump does not have are passed over: "
                f"{some_of(gone, str, SHOWN)}"
            )


# flags of a cluster with which groups stay where they are, whatever the map says
HALTING = ("nobackfill", "norebalance", "norecover")


def _cluster(
    found: _Found,
    document: Document,
    osd_map: OsdMap,
    crush: CrushMap,
    pools: Sequence[Pool],
    exceptions: _Exceptions,
    known: dict[int, Rows],
) -> Cluster:
    """Build the cluster of the map; devices that only CRUSH knows are down and out."""
    reweight = np.zeros(crush.devices, np.int64)
    affinity = np.full(crush.devices, IN)
    is_up = np.zeros(crush.devices, np.bool_)
    for one in osd_map.osds:
        reweight[one.osd] = round(one.weight * IN) if one.inside else 0
        affinity[one.osd] = round(one.primary_affinity * IN)
        is_up[one.osd] = bool(one.up)
    names = Counter(one.pool_name for one in osd_map.pools)
    numbers = {str(one.pool) for one in osd_map.pools}
    try:
        cluster = cluster_of(
            crush,
            pools,
            reweight=reweight,
            items=exceptions.items,
            affinity=affinity,
            is_up=is_up,
            whole=exceptions.whole,
            known=known,
            names={
                one.pool_name: one.pool
                for one in osd_map.pools
                if one.pool_name not in ("", *numbers) and names[one.pool_name] == 1
            },
        )
    except InvalidInput as error:
        found.faults.take(error, f"{document.name}: ")
        raise InvalidInput(found.faults.faults) from None
    cluster = _closed(found, osd_map, cluster)
    if halting := [one for one in osd_map.flags.split(",") if one.strip() in HALTING]:
        found.notes.add(
            f"{document.name}: with the flags {', '.join(halting)} nothing is copied: what is "
            f"moved waits until they are taken away (ceph osd unset {halting[0]})"
        )
    merging = [one.pool for one in osd_map.pools if 0 < one.pg_num_target < one.pg_num]
    if merging:
        found.notes.add(
            "pools whose groups are being merged (pg_num above pg_num_target) are left alone, as "
            "Ceph's balancer does: {}",
            *map(str, merging),
        )
        ids = np.array([pool.id for pool in cluster.native.pools], np.int64)
        cluster = _pinned(cluster, np.isin(ids[cluster.partitions.group], merging))
    return _with_copies(found, cluster, exceptions.temporary)


def _closed(found: _Found, osd_map: OsdMap, cluster: Cluster) -> Cluster:
    """Return the cluster in which devices that are too full for backfill accept nothing."""
    if osd_map.before_luminous:
        found.notes.add(
            "a release before Luminous (crush_ruleset): its monitors know no pg-upmap-items"
        )
    elif osd_map.require_min_compat_client in BEFORE_UPMAP:
        found.notes.add(
            f"require_min_compat_client {osd_map.require_min_compat_client}: the monitors refuse "
            "pg-upmap-items until ceph osd set-require-min-compat-client luminous, and clients "
            "before Luminous cannot connect afterwards"
        )
    most = osd_map.backfillfull_ratio or BACKFILLFULL
    full = {one.osd for one in osd_map.osds if not TOO_FULL.isdisjoint(one.state)}
    for _, tree in found.trees:
        full |= {one.id for one in tree.nodes if one.kb and one.kb_used >= most * one.kb}
    full &= {*range(len(cluster.nodes))}
    if not full:
        return cluster
    found.notes.add(
        f"devices that are at least {most:.0%} full (backfillfull): nothing may be copied to them, "
        "so that groups only leave: {}",
        *(cluster.nodes.names[osd] for osd in sorted(full)),
    )
    accepts = cluster.nodes.accepts.copy()
    accepts[[*full]] = False
    return cluster.replace(accepts=accepts)


def _with_copies(found: _Found, cluster: Cluster, temporary: Sequence[str]) -> Cluster:
    """Return the cluster in which groups that are being copied stay until they have arrived."""
    # where they go, ``up``, is where they count
    copying = {*temporary}
    for one in () if found.stats is None else found.stats[2]:
        if one.acting and {*one.up} - {NO_OSD} != {*one.acting} - {NO_OSD}:
            copying.add(one.pgid)
        else:
            copying.discard(one.pgid)
    which = np.array([name in copying for name in cluster.partitions.names], np.bool_)
    if which.any():
        names = [name for name in cluster.partitions.names if name in copying]
        found.notes.add(
            f"{counted(len(names), 'group')} being copied (where they are up is not where they are "
            "acting), counted where they go, and left alone until they are there: "
            f"{some_of(names, str, SHOWN)}"
        )
    return _pinned(cluster, which)


def _pinned(cluster: Cluster, which: NDArray[np.bool_]) -> Cluster:
    """Return a cluster in which some partitions (P,) stay."""
    return cluster.pin(np.flatnonzero(which)) if which.any() else cluster


NOMINAL = (
    f"of {ROOM:.0f} times what each device deserves by its weight (of pools left alone, what it "
    "holds), not of disks"
)


def _with_stats(found: _Found, cluster: Cluster, compare: bool) -> Cluster:
    """Put in the bytes of placement groups and devices, and who leads by decree."""
    native: CephMap = cluster.native
    capacity = _kilobytes(found, len(cluster.nodes))
    if found.stats is not None and compare:
        cluster = _pinned(cluster, _elsewhere(found, cluster))
    # a brief listing has no sizes
    if found.stats is not None and any(one.stat_sum for one in found.stats[2]):
        load = _loads(found, cluster, native)
        known = np.isfinite(capacity)
        # a device that osd df does not list has room by its weight
        room = ROOM * _deserved(cluster, load)
        cluster = cluster.replace(load=load, capacity=np.where(known, capacity, room))
    return _led(found, cluster, native)


def _deserved(cluster: Cluster, load: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the bytes of all pools that each device deserves by its weight, (N, 1)."""
    native: CephMap = cluster.native
    group = cluster.partitions.group
    sizes = [max(float(load[group == i].mean()), 1.0) for i in range(len(native.pools))]
    return shares_of(native, sizes)[:, None]


def _kilobytes(found: _Found, devices: int) -> NDArray[np.float64]:
    """Return the bytes that each device holds by ``osd df``, (N, 1); infinite where unknown."""
    capacity = np.full((devices, 1), np.inf)
    for _, tree in found.trees:
        for node in tree.nodes:
            if 0 <= node.id < devices and node.kb:
                capacity[node.id] = node.kb * 1024.0
    return capacity


def _loads(found: _Found, cluster: Cluster, native: CephMap) -> NDArray[np.float64]:
    """Return the bytes of a replica or shard of each placement group, (P, 1)."""
    assert found.stats is not None
    assert found.map is not None
    document, path, stats = found.stats
    faults = found.faults
    place = {name: p for p, name in enumerate(cluster.partitions.names)}
    where: dict[int, int] = {}
    gone: list[str] = []
    for i, one in enumerate(stats):
        p = place.get(one.pgid, -1)
        if p < 0:
            gone.append(one.pgid)
        elif where.setdefault(p, i) != i:
            message = f"is already given at [{where[p]}]"
            faults.add(f"{path}[{i}].pgid", quoted(one.pgid), message)
    missing = [name for name, p in place.items() if p not in where]
    if len(missing) > MOST_STRANGE * len(place):
        message = f"{len(missing)} placement groups are missing: the file is truncated or older"
        faults.add(document.name, missing[0], message)
    faults.raise_if_any()
    if gone:
        found.notes.add(
            f"{document.name}: placement groups that no pool of the osd dump has are passed over: "
            f"{some_of(gone, str, SHOWN)}"
        )
    shards = _shards(found.map[1])
    parts = np.concatenate(
        [np.full(pool.pg_num, shards.get(pool.id, 1.0)) for pool in native.pools] or [np.ones(0)]
    )
    bytes_of = np.full(len(place), np.nan)
    for p, i in where.items():
        counted_of = stats[i].stat_sum
        if counted_of is not None:
            bytes_of[p] = max(counted_of.num_bytes, 0) + max(counted_of.num_omap_bytes, 0)
    if missing:
        found.notes.add(
            f"{document.name}: placement groups that are not in it count as much as the mean of "
            f"their pool: {some_of(missing, str, SHOWN)}"
        )
        for number in range(len(native.pools)):
            own = cluster.partitions.group == number
            known = bytes_of[own & ~np.isnan(bytes_of)]
            bytes_of[own & np.isnan(bytes_of)] = known.mean() if len(known) else 0.0
    load: NDArray[np.float64] = bytes_of / parts
    return load[:, None]


def _elsewhere(found: _Found, cluster: Cluster) -> NDArray[np.bool_]:
    """Tell which groups ``pg dump`` has elsewhere than the map puts them, (P,), and note them."""
    assert found.stats is not None
    document, path, stats = found.stats
    native: CephMap = cluster.native
    where = {one.pgid: i for i, one in enumerate(stats)}
    elsewhere = np.zeros(len(cluster.partitions), np.bool_)
    compared, begin = 0, 0
    for pool in native.pools:
        at = [where.get(f"{pool.id}.{pg:x}", -1) for pg in range(pool.pg_num)]
        # a group without a primary to report it shows what once was, and counts as no difference
        fresh = np.array(
            [i >= 0 and OLD_STATES.isdisjoint(stats[i].state.split("+")) for i in at], np.bool_
        )
        if pool.id not in native.known and fresh.any():
            rows = up(rows_of(cluster.placement, begin, pool), pool, cluster.nodes.alive)
            reported = _padded([stats[i].up if i >= 0 else () for i in at], pool.size)
            differ = (np.sort(reported, axis=1) != np.sort(rows, axis=1)).any(axis=1) & fresh
            elsewhere[begin : begin + pool.pg_num] = differ
            compared += int(np.count_nonzero(fresh))
        begin += pool.pg_num
    few = np.flatnonzero(elsewhere).tolist()
    if len(few) > MOST_STRANGE * compared:
        names = cluster.partitions.names
        for p in few[:LISTED_FAULTS]:
            mapped = [osd for osd in cluster.placement.nodes[p].tolist() if osd >= 0]
            message = f"the map puts it on {mapped}: the files are of different times"
            i = where[names[p]]
            found.faults.add(f"{path}[{i}].up", stats[i].up, message)
        if len(few) > LISTED_FAULTS:
            found.faults.add(path, len(few) - LISTED_FAULTS, "more placement groups are elsewhere")
    elif few:
        found.notes.add(
            f"{document.name}: {counted(len(few), 'group')} elsewhere than the map puts them, as "
            "in files of different times, and left alone: "
            f"{some_of(few, cluster.partitions.names.__getitem__, SHOWN)}"
        )
    found.faults.raise_if_any()
    return elsewhere


def _shards(osd_map: OsdMap) -> dict[int, float]:
    """Return into how many parts the data of each erasure-coded pool are divided."""
    found = {}
    for pool in osd_map.pools:
        text = osd_map.erasure_code_profiles.get(pool.erasure_code_profile, {}).get("k", "")
        if pool.type == ERASURE and re.fullmatch("[1-9][0-9]{0,2}", text):
            found[pool.pool] = float(text)
    return found


def _padded(lists: Sequence[Sequence[int]], size: int) -> NDArray[np.int64]:
    """Return lists as rows, (n, size): ``NO_OSD`` behind short ones, -1 where one is too long."""
    width = np.fromiter(map(len, lists), np.int64, len(lists))
    fits = width <= size
    flat = np.fromiter(chain.from_iterable(lists), np.int64, int(width.sum()))
    slot = np.arange(len(flat)) - np.repeat(np.cumsum(width) - width, width)
    row = np.repeat(np.arange(len(lists)), width)
    rows = np.full((len(lists), size), NO_OSD, np.int64)
    rows[~fits] = -1
    kept = fits[row]
    rows[row[kept], slot[kept]] = flat[kept]
    return rows


def _led(found: _Found, cluster: Cluster, native: CephMap) -> Cluster:
    """Return the cluster in which primaries are who was named by ``pg-upmap-primary``."""
    assert found.map is not None
    document, osd_map = found.map
    sizes = {pool.id: pool.pg_num for pool in native.pools}
    leader = cluster.placement.leader.copy()
    named = [
        (f"{document.name}: pg_upmap_primaries[{i}].pgid", one.pgid, one.primary_osd)
        for i, one in enumerate(osd_map.pg_upmap_primaries)
    ]
    for commands in found.commands:
        named += read_primaries(commands)
    replicated = np.array([pool.kind == "replicated" for pool in native.pools], np.bool_)
    of = np.repeat(replicated, [pool.pg_num * pool.size for pool in native.pools])
    leads = of & (cluster.placement.node >= 0) & cluster.nodes.alive[cluster.placement.node]
    first = dict(zip(sizes, accumulate(sizes.values(), initial=0), strict=False))
    gone: list[str] = []
    for at, pgid, osd in named:
        where = _place(found.faults, at, pgid, sizes, gone)
        if where is None:
            continue
        p = first[where[0]] + where[1]
        begin, end = cluster.placement.first[p : p + 2]
        own = np.where(leads[begin:end], cluster.placement.node[begin:end], NO_OSD)
        held = np.flatnonzero(own == osd)
        # where it is not there or not up, and in an erasure-coded pool, Ceph chooses as ever
        leader[p] = held[0] if len(held) else cluster.placement.leader[p]
    found.faults.raise_if_any()
    if gone:
        found.notes.add(
            f"primaries of groups that are gone are passed over: {some_of(gone, str, SHOWN)}"
        )
    if np.array_equal(leader, cluster.placement.leader):
        return cluster
    return cluster.with_placement(cluster.placement.replaced(cluster.placement.node, leader))


SETTINGS = (Setting("CLUSTER", "", "configuration file of the cluster, Ceph's own by default"),)

NOTES = (
    "`ceph balancer off`, or it moves placement groups of its own accord meanwhile.",
    "`ceph osd set-require-min-compat-client luminous`: older clients know no `pg-upmap-items`.",
    "A wave has ended when its placement groups are where they should be and are active and clean.",
    "Ceph drops a command that breaks a rule of CRUSH without a word; a run looks whether every "
    "one was heeded, and stops where one was not.",
)

PACE = (
    "`osd_max_backfills` limits how many placement groups an OSD copies at once, and "
    "`osd_mclock_profile` what share of it copies may take; before Quincy, `osd_recovery_sleep`."
)

# states of a placement group that still copies, or is about to
COPYING = frozenset(
    ("remapped", "backfilling", "backfill_wait", "backfill_toofull", "backfill_unfound",
     "recovering", "recovery_wait", "recovery_toofull", "recovery_unfound", "peering", "activating")
)  # fmt: skip


def orders(cluster: Cluster, waves: Sequence[Wave]) -> list[Orders]:
    """Return the commands of each wave, one for each placement group."""
    # Ceph drops one that breaks a rule without an error: the next look shows that
    native = cluster.native
    if not isinstance(native, CephMap):
        kind = type(native).__name__
        raise InvalidInput([Fault("cluster.native", kind, "must be a Ceph map: read the dumps")])
    _check_names(cluster, native)
    faults = FaultList()
    found: list[list[Command]] = [[] for _ in waves]
    begin = 0
    for pool in native.pools:
        end = begin + pool.pg_num
        own = [
            (w, one) for w, wave in enumerate(waves) for one in wave if begin <= one.partition < end
        ]
        if own:
            groups = [one.partition - begin for _, one in own]
            mapped = native.rows(pool, native.reweight, upmaps=False)[groups]
            wanted = np.array([one.after for _, one in own], np.int32)
            wanted[wanted < 0] = NO_OSD
            pairs = _wanted_pairs(faults, native, pool, groups, mapped, wanted)
            for row, (w, one) in enumerate(own):
                if {*one.before} != {*one.after}:
                    found[w].append(_command(pool, groups[row], pairs.get(row, ())))
        begin = end
    faults.raise_if_any()
    return [Orders(each) for each in found]


def _command(pool: Pool, group: int, pairs: Sequence[tuple[int, int]]) -> Command:
    word = "pg-upmap-items" if pairs else "rm-pg-upmap-items"
    osds = [f"{osd}" for pair in pairs for osd in pair]
    return _ask("osd", word, f"{pool.id}.{group:x}", *osds)


def _ask(*words: str, save: str = "") -> Command:
    return Command(["ceph", ["--conf", "${CLUSTER}"], *words], save=save)


def look(plan: "Plan") -> list[Command]:
    """Return what dumps the map and the placement groups."""
    return [
        _ask("osd", "dump", "-f", "json", save="osd_dump.json"),
        _ask("osd", "crush", "dump", "-f", "json", save="crush.json"),
        _ask("pg", "dump", "-f", "json", save="pg_dump.json"),
    ]


def observe(documents: Sequence[Document]) -> Observed:
    """Return on which devices ``pg dump`` has groups, which are up, and in which buckets."""
    # a group that is not clean, or that older devices still serve, is being copied
    faults = FaultList()
    alive: dict[str, bool] = {}
    standing: dict[str, Standing] = {}
    places: dict[str, dict[str, str]] = {}
    for kind, document, _ in (_in_json(faults, one) for one in documents):
        if kind == "osd dump":
            dump = decode_json(faults, document, OsdMap)
            alive = {f"osd.{one.osd}": bool(one.up) for one in dump.osds} if dump else alive
        elif kind == "pg dump":
            _, stats = read_stats(faults, document)
            standing |= {one.pgid: _standing(one) for one in stats or ()}
        elif kind == "crush dump" and (crush := decode_json(faults, document, CrushDump)):
            size, unread = len(document.data), unread_rules(crush)
            tree = crush_map_of(faults, document.name, crush, 0, size, unread)
            places = places_in(tree) if tree else places
    if not faults and not (alive and standing):
        faults.add("source", [one.name for one in documents], "needs `osd dump` and `pg dump`")
    faults.raise_if_any()
    return Observed(alive, standing, places)


def _standing(one: PgStat) -> Standing:
    words = one.state.split("+")
    # what lacks a device that is down is never clean, whatever has been copied
    whole = "clean" in words or ("undersized" in words and COPYING.isdisjoint(words))
    copying = not ("active" in words and whole) or {*one.up} != {*(one.acting or one.up)}
    devices = [f"osd.{osd}" for osd in one.up if osd != NO_OSD]
    return Standing(devices, f"osd.{one.up_primary}", copying)


CARRIER = Carrier(
    orders=orders, look=look, settings=SETTINGS, notes=NOTES, leader=anybody, observe=observe,
    lists_nodes=all_nodes, lists_down=False, pace=PACE,
)  # fmt: skip


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield the missing inputs, their effect, and the commands that print them."""
    yield from noted(cluster.native)
    load = cluster.partitions.load.voter
    if uncapped(cluster):
        yield (
            "no sizes: every placement group counts as one byte, bytes are numbers of replicas, "
            f"and percentages are {NOMINAL}; add what ceph pg dump -f json prints"
        )
    elif np.array_equal(cluster.nodes.capacity, ROOM * _deserved(cluster, load)):
        yield f"no sizes of devices: percentages are {NOMINAL}; add ceph osd df"


def uncapped(cluster: Cluster) -> Sequence[str]:
    """Return the dimension, bytes, where no sizes are known: capacities follow the weights."""
    load = cluster.partitions.load.voter
    return cluster.dimensions if len(load) and (load == 1.0).all() else ()


def unfilled(cluster: Cluster) -> int:
    """Count the slots of groups for which CRUSH finds no device: pairs fill none."""
    empty = np.diff(cluster.placement.first) - cluster.partitions.replicas
    return int(np.maximum(empty, 0).sum())


def usual(cluster: Cluster) -> dict[str, str]:
    """Return Ceph's own method where groups are only to be levelled, nothing repaired."""
    nodes, placement = cluster.nodes, cluster.placement
    settled = nodes.may_receive[placement.node].all() and not (placement.flags & Flag.PINNED).any()
    if (placement.node < 0).any() or not settled or audit(cluster, placement).hard:
        return {}
    return {"method": "ceph_upmap"}


FORMAT = Format(
    name=NAME,
    summary="Ceph: osd dump, pg dump, osd df, osd tree and the CRUSH map as JSON or text; "
    "ceph report; pg-upmap-items commands",
    suffixes=(".sh",),
    recognises=kind_of,
    read=read,
    encode=encode,
    enforces=True,
    carrier=CARRIER,
    left_out=left_out,
    uncapped=uncapped,
    usual=usual,
    unfilled=unfilled,
    hint=hint,
    asks=ASKS,
    words=WORDS,
    members=MEMBERS,
    stranded="too few devices that hold their data are up for these placement groups to serve: "
    "bring one back (ceph pg PGID query names those it waits for), and read again",
)
