"""Ceph's documents put together: devices are nodes, placement groups partitions, pools groups."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain

import numpy as np
from numpy.typing import NDArray

from evenkeel.formats.ceph.commands import read_commands, read_primaries
from evenkeel.formats.ceph.crush_map import FREE_IDS, crush_map_of
from evenkeel.formats.ceph.crush_text import read_crush_text
from evenkeel.formats.ceph.documents import (
    CrushDump,
    OsdMap,
    OsdTree,
    PgStat,
    kind_of,
    read_stats,
)
from evenkeel.formats.documents import Document, quoted
from evenkeel.formats.json_text import decode_json
from evenkeel.formats.native.arguments import check_slots
from evenkeel.measure.rows import at_node
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.model.intake.stranded import with_stranded
from evenkeel.model.reading.arrays import LISTED_FAULTS
from evenkeel.strategies.ceph.cluster import ROOM, CephMap, cluster_of
from evenkeel.strategies.ceph.crush_map import IN, NO_OSD, CrushMap
from evenkeel.strategies.ceph.placement import Pool, up

SERVES_NOT = frozenset(("down", "incomplete", "stale"))
"""States of a placement group in which nothing is copied: it lacks devices that hold its data."""

ERASURE = 3
HASHED = 1
"""The flag of a pool whose number is hashed into the seeds."""

PGID = re.compile(r"(\d{1,10})\.([0-9a-f]{1,8})")
NOT_A_NUMBER = re.compile(rb":\s*-?(?:nan|inf)\b")
"""What some releases print for a ratio to nothing."""


@dataclass
class _Found:
    """The documents read so far."""

    faults: FaultList = field(default_factory=FaultList)
    map: tuple[Document, OsdMap] | None = None
    crush: tuple[Document, CrushDump] | None = None
    trees: list[tuple[Document, OsdTree]] = field(default_factory=list)
    stats: tuple[Document, str, list[PgStat]] | None = None
    commands: list[Document] = field(default_factory=list)


def read(documents: Sequence[Document], *, compare: bool = True) -> Cluster:
    """Read a cluster from ``ceph osd dump`` and the CRUSH map, and what else belongs to them.

    Raises
    ------
    InvalidInput
        Naming every problem with file, place and value: truncated files, pools whose rule does not
        exist, devices that another file should know and does not, and unless ``compare`` is false
        placement groups that ``pg dump`` has elsewhere than the map puts them.
    """
    found = _Found()
    for document in documents:
        _read_document(found, document)
    faults = found.faults
    if not faults and (found.map is None or found.crush is None):
        names = [document.name for document in documents]
        faults.add("source", names, "needs `ceph osd dump` and a CRUSH map, as JSON or text")
    if found.map is None or found.crush is None:
        raise InvalidInput(faults.faults)
    (document, osd_map), (crush_document, crush_dump) = found.map, found.crush
    size = sum(len(one.data) for one in documents)
    devices = _devices(faults, document, osd_map, size)
    used = {pool.crush_rule for pool in osd_map.pools}
    crush = crush_map_of(faults, crush_document.name, crush_dump, devices, size, used)
    pools = _pools(faults, document, osd_map, crush)
    items = _items(found, document, osd_map, pools)
    _check_trees(found, {one.osd for one in osd_map.osds})
    faults.raise_if_any()
    assert crush is not None
    total = sum(pool.pg_num * pool.size for pool in pools)
    check_slots(faults, f"{document.name}: pools", np.array([total]), 1, document)
    cluster = _cluster(faults, document, osd_map, crush, pools, items)
    cluster = _with_stats(found, cluster, compare)
    return with_stranded(cluster, _without_source(found, cluster, osd_map))


def _without_source(found: _Found, cluster: Cluster, osd_map: OsdMap) -> NDArray[np.bool_]:
    """Tell of which placement groups too little lives to serve, (P,): of shards, less than k.

    Groups whose devices are out as well are mapped to others, which have nothing of them: only
    what ``pg dump`` says of their state tells.
    """
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
    if found.stats is not None:
        at = {name: p for p, name in enumerate(cluster.partitions.names)}
        for one in found.stats[2]:
            lost[at[one.pgid]] |= not SERVES_NOT.isdisjoint(one.state.split("+"))
    return np.asarray(lost)


def _read_document(found: _Found, document: Document) -> None:
    kind = kind_of(document)
    if kind == "osd dump":
        decoded = decode_json(found.faults, document, OsdMap)
        _only(found, document, kind, found.map is not None)
        found.map = None if decoded is None else (document, decoded)
    elif kind in ("osd tree", "osd df"):
        plain = NOT_A_NUMBER.sub(b":0", document.data)
        tree = decode_json(found.faults, Document(document.name, plain), OsdTree)
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


def _pools(
    faults: FaultList, document: Document, osd_map: OsdMap, crush: CrushMap | None
) -> list[Pool]:
    if not osd_map.pools:
        faults.add(f"{document.name}: pools", [], "needs a pool")
    known = None if crush is None else {rule.id for rule in crush.rules}
    pools: list[Pool] = []
    seen: dict[int, int] = {}
    for i, one in enumerate(osd_map.pools):
        at = f"{document.name}: pools[{i}]"
        if known is not None and one.crush_rule not in known:
            faults.add(f"{at}.crush_rule", one.crush_rule, f"no such CRUSH rule: {sorted(known)}")
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


def _items(
    found: _Found, document: Document, osd_map: OsdMap, pools: Sequence[Pool]
) -> dict[int, dict[int, list[tuple[int, int]]]]:
    """Return the pairs in force, by pool and placement group; commands come after the dump."""
    faults = found.faults
    sizes = {pool.id: pool.pg_num for pool in pools}
    osds = {one.osd for one in osd_map.osds}
    items: dict[int, dict[int, list[tuple[int, int]]]] = {}
    for i, whole in enumerate(osd_map.pg_upmap):
        at = f"{document.name}: pg_upmap[{i}].pgid"
        message = "names all devices of a group: not supported, use pg-upmap-items for it"
        faults.add(at, quoted(whole.pgid), message)
    for i, entry in enumerate(osd_map.pg_upmap_items):
        at = f"{document.name}: pg_upmap_items[{i}]"
        where = _place(faults, f"{at}.pgid", entry.pgid, sizes)
        pairs = [(swap.source, swap.target) for swap in entry.mappings]
        for swap in entry.mappings:
            if swap.target not in osds:
                faults.add(f"{at}.mappings", swap.target, "is not a device of the dump")
        if where is not None:
            items.setdefault(where[0], {})[where[1]] = pairs
    for commands in found.commands:
        for at, pgid, pairs in read_commands(faults, commands):
            where = _place(faults, at, pgid, sizes)
            for _, target in pairs:
                if target not in osds:
                    faults.add(at, target, "is not a device of the dump")
            if where is not None:
                items.setdefault(where[0], {})[where[1]] = pairs
    return items


def _place(faults: FaultList, at: str, pgid: str, sizes: dict[int, int]) -> tuple[int, int] | None:
    """Return pool and number of a placement group by its id."""
    found = PGID.fullmatch(pgid)
    pool, number = (int(found[1]), int(found[2], 16)) if found else (-1, -1)
    if found is None or f"{pool}.{number:x}" != pgid:
        faults.add(at, quoted(pgid), "must be pool.group, the group in hexadecimal")
    elif number >= sizes.get(pool, 0):
        faults.add(at, quoted(pgid), "is a placement group that no pool of the dump has")
    else:
        return pool, number
    return None


def _check_trees(found: _Found, osds: set[int]) -> None:
    for document, tree in found.trees:
        for i, node in enumerate(tree.nodes):
            if node.id >= 0 and node.id not in osds:
                at = f"{document.name}: nodes[{i}].id"
                found.faults.add(at, node.id, "is a device that the osd dump does not have")


def _cluster(
    faults: FaultList,
    document: Document,
    osd_map: OsdMap,
    crush: CrushMap,
    pools: Sequence[Pool],
    items: dict[int, dict[int, list[tuple[int, int]]]],
) -> Cluster:
    """Build the cluster of the map; devices that only CRUSH knows are down and out."""
    reweight = np.zeros(crush.devices, np.int64)
    affinity = np.full(crush.devices, IN)
    is_up = np.zeros(crush.devices, np.bool_)
    for one in osd_map.osds:
        reweight[one.osd] = round(one.weight * IN) if one.inside else 0
        affinity[one.osd] = round(one.primary_affinity * IN)
        is_up[one.osd] = bool(one.up)
    try:
        return cluster_of(
            crush, pools, reweight=reweight, items=items, affinity=affinity, is_up=is_up
        )
    except InvalidInput as error:
        for fault in error.faults:
            faults.add(f"{document.name}: {fault.path}", fault.value, fault.message)
    raise InvalidInput(faults.faults)


def _with_stats(found: _Found, cluster: Cluster, compare: bool) -> Cluster:
    """Put in the bytes of placement groups and devices, and who leads by decree."""
    native: CephMap = cluster.native
    capacity = _kilobytes(found, len(cluster.nodes))
    if found.stats is not None:
        load = _loads(found, cluster, native, compare)
        found.faults.raise_if_any()
        share = cluster.nodes.capacity / ROOM
        told = np.isfinite(capacity)
        # a device that osd df does not list has room by its weight
        room = ROOM * share * max(float(load.mean()) if load.size else 1.0, 1.0)
        cluster = cluster.replace(load=load, capacity=np.where(told, capacity, room))
    return _led(found, cluster, native)


def _kilobytes(found: _Found, devices: int) -> NDArray[np.float64]:
    """Return the bytes that each device holds by ``osd df``, (N, 1); infinite where not told."""
    capacity = np.full((devices, 1), np.inf)
    for _, tree in found.trees:
        for node in tree.nodes:
            if 0 <= node.id < devices and node.kb:
                capacity[node.id] = node.kb * 1024.0
    return capacity


def _loads(found: _Found, cluster: Cluster, native: CephMap, compare: bool) -> NDArray[np.float64]:
    """Return the bytes of a replica or shard of each placement group, (P, 1)."""
    assert found.stats is not None
    assert found.map is not None
    document, path, stats = found.stats
    faults = found.faults
    names = [f"{pool.id}.{pg:x}" for pool in native.pools for pg in range(pool.pg_num)]
    place = {name: p for p, name in enumerate(names)}
    where: dict[int, int] = {}
    for i, one in enumerate(stats):
        p = place.get(one.pgid, -1)
        if p < 0:
            message = "is a placement group that no pool of the dump has"
            faults.add(f"{path}[{i}].pgid", quoted(one.pgid), message)
        elif where.setdefault(p, i) != i:
            message = f"is already given at [{where[p]}]"
            faults.add(f"{path}[{i}].pgid", quoted(one.pgid), message)
    missing = [name for name, p in place.items() if p not in where]
    if missing:
        message = f"{len(missing)} placement groups are missing: the file is truncated or older"
        faults.add(document.name, missing[0], message)
    faults.raise_if_any()
    shards = _shards(found.map[1])
    parts = np.concatenate(
        [np.full(pool.pg_num, shards.get(pool.id, 1.0)) for pool in native.pools] or [np.ones(0)]
    )
    bytes_of = np.array(
        [max(stats[where[p]].stat_sum.num_bytes, 0) for p in range(len(place))], np.float64
    )
    if compare:
        _check_up(faults, path, [stats[where[p]] for p in range(len(place))], where, cluster)
    load: NDArray[np.float64] = bytes_of / parts
    return load[:, None]


def _shards(osd_map: OsdMap) -> dict[int, float]:
    """Return into how many parts the data of each erasure-coded pool are divided."""
    found = {}
    for pool in osd_map.pools:
        text = osd_map.erasure_code_profiles.get(pool.erasure_code_profile, {}).get("k", "")
        if pool.type == ERASURE and re.fullmatch("[1-9][0-9]{0,2}", text):
            found[pool.pool] = float(text)
    return found


def _check_up(
    faults: FaultList,
    path: str,
    stats: Sequence[PgStat],
    where: dict[int, int],
    cluster: Cluster,
) -> None:
    """Note placement groups that are elsewhere than the map puts them."""
    native: CephMap = cluster.native
    begin, elsewhere = 0, 0
    for pool in native.pools:
        rows = up(native.rows(pool, native.reweight), pool, cluster.nodes.alive)
        said = _padded([one.up for one in stats[begin : begin + pool.pg_num]], pool.size)
        differ = (np.sort(said, axis=1) != np.sort(rows, axis=1)).any(axis=1)
        for pg in np.flatnonzero(differ)[: max(LISTED_FAULTS - elsewhere, 0)].tolist():
            mapped = [osd for osd in rows[pg].tolist() if osd != NO_OSD]
            message = f"the map puts it on {mapped}: the files are of different times"
            at = f"{path}[{where[begin + pg]}].up"
            faults.add(at, stats[begin + pg].up[: pool.size + 1], message)
        elsewhere += int(np.count_nonzero(differ))
        begin += pool.pg_num
    if elsewhere > LISTED_FAULTS:
        faults.add(path, elsewhere - LISTED_FAULTS, "more placement groups are elsewhere")


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
    for at, pgid, osd in named:
        where = _place(found.faults, at, pgid, sizes)
        if where is None:
            continue
        p = first[where[0]] + where[1]
        begin, end = cluster.placement.first[p : p + 2]
        own = np.where(leads[begin:end], cluster.placement.node[begin:end], NO_OSD)
        held = np.flatnonzero(own == osd)
        # where it is not there or not up, and in an erasure-coded pool, Ceph chooses as ever
        leader[p] = held[0] if len(held) else cluster.placement.leader[p]
    found.faults.raise_if_any()
    if np.array_equal(leader, cluster.placement.leader):
        return cluster
    return cluster.with_placement(cluster.placement.replaced(cluster.placement.node, leader))
