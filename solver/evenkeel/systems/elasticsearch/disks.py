"""Disks: capacities below the watermarks, sizes of shards, and nodes above a watermark."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.runtime.printable import printable, some_of
from evenkeel.systems.documents import quoted
from evenkeel.systems.elasticsearch.documents import MOST, Findings, Row, amount
from evenkeel.systems.elasticsearch.settings import DataNode, is_true
from evenkeel.systems.elasticsearch.shards import Shard, ends

COUNT = "shards"
"""The dimension that counts shards; their sizes are ``disk``, in bytes."""

SETTINGS = "cluster.routing.allocation.disk."
WATERMARK = f"{SETTINGS}watermark"
USUAL = {"low": "85%", "high": "90%", "flood_stage": "95%"}
HEADROOM = {"low": "200gb", "high": "150gb", "flood_stage": "100gb"}
"""Largest headroom of the default watermarks, from release ``CAPPED`` on."""

CAPPED = (8, 5)


class Disk(NamedTuple):
    """A disk as ``_cat/allocation`` has it, in bytes."""

    total: float
    """0 for unknown."""

    used: float
    others: float
    """Bytes used by other data than shards."""


class Watermark(NamedTuple):
    """The free share of a disk, and its limit in bytes."""

    share: float
    most: float

    def room(self, total: float) -> float:
        """Return how many bytes may be used."""
        return max(total - min(total * self.share, self.most), 0.0)


class Disks(NamedTuple):
    """Arguments of a cluster, and the nodes above the low watermark."""

    given: dict[str, Any]
    above: NDArray[np.bool_]
    """Nodes above the low watermark, (N,)."""


def disks_of(
    found: Findings, shards: Sequence[Shard], nodes: Sequence[DataNode], place: Mapping[str, int]
) -> Disks:
    """Return the sizes of shards, and the capacities of nodes below the watermarks.

    A node below the low watermark takes shards up to it. One above takes none, and above the high
    watermark it has to give some away.
    """
    sizes, standing, coming, held, count = _sizes(found, shards, nodes, place)
    measured = bool(found.allocation) or bool(sizes.any())
    load = np.ones((len(shards), 1 + measured))
    if measured:
        load[:, 1] = sizes
    copies = np.array([len(shard.rows) for shard in shards], np.float64)
    # balance is measured against capacities, so unlimited dimensions need one, too
    everything = np.maximum(copies @ load, 1.0) if shards else load.sum(0) + 1
    capacity = np.tile(everything, (len(nodes), 1))
    above = np.zeros(len(nodes), np.bool_)
    disks = _disks(found, nodes, place, standing, count)
    recent = any(node.version >= CAPPED for node in nodes)
    marks = [watermark(found, kind, recent) for kind in USUAL]
    flooded: list[str] = []
    for n, disk in sorted(disks.items()):
        if nodes[n].only_frozen:
            continue  # its cache fills the disk by design: watermarks do not apply
        low, high, flood = (mark.room(disk.total) for mark in marks)
        used = disk.used + coming[n]
        above[n] = used > low
        bound = high if above[n] else low
        capacity[n, 1] = max(bound - disk.others, 0.0)
        if used <= bound:  # a copy may be smaller than the size of its shard
            capacity[n, 1] = max(capacity[n, 1], held[n])
        if disk.used > flood:
            flooded.append(_share(nodes[n], disk))
    _note(found, nodes, disks, above, flooded)
    given = {
        "dimensions": [COUNT, "disk"][: 1 + measured],
        "load": load,
        "capacity": capacity,
        "bytes": "disk" if measured else None,
    }
    return Disks(given, above)


def _sizes(
    found: Findings, shards: Sequence[Shard], nodes: Sequence[DataNode], place: Mapping[str, int]
) -> Sequence[NDArray[np.float64]]:
    """Return sizes of shards (P,), and per node present, incoming and counted bytes, and shards."""
    sizes = np.zeros(len(shards))
    standing, coming, held, count = np.zeros((4, len(nodes)))
    for p, shard in enumerate(shards):
        own = [_size(found, i) for i in shard.rows]
        # copies in progress are smaller for a while: the largest is the size
        sizes[p] = max(own)
        for i, size in zip(shard.rows, own, strict=True):
            row = found.shards[i]
            there = [place.get(name, -1) for name, _, _ in ends(row)]
            np.add.at(count, [n for n in there if n >= 0], 1.0)
            if there[0] >= 0:
                standing[there[0]] += size
            if (target := there[-1]) >= 0:
                held[target] += sizes[p]
                if len(there) > 1:
                    coming[target] += sizes[p]
                elif row.get("state") == "INITIALIZING":
                    coming[target] += sizes[p] - size
    return sizes, standing, coming, held, count


def _size(found: Findings, i: int) -> float:
    """Return the size of a copy; 0 if it is missing."""
    text = found.shards[i].get("store")
    if text is not None and not (text.isascii() and text.isdecimal() and len(text) < 19):
        return amount(found.faults, f"{found.shard_at(i)}.store", text)
    return float(text or 0)


def _disks(
    found: Findings,
    nodes: Sequence[DataNode],
    place: Mapping[str, int],
    standing: NDArray[np.float64],
    count: NDArray[np.float64],
) -> dict[int, Disk]:
    """Return the disk of each node by number; an unknown one is the average of the others.

    Shards that no row lists count as other data on the disk.
    """
    disks: dict[int, Disk] = {}
    seen: dict[str, str] = {}
    strange, partly = [], []
    for at, row in found.allocation:
        name = row.get("node") or ""
        if name in ("", "UNASSIGNED"):
            continue
        if name in seen:
            found.faults.add(f"{at}.node", quoted(name), f"is already given at {seen[name]}")
        seen.setdefault(name, at)
        if name in place:
            n = place[name]
            number = row.get("shards") or ""
            if len(number) < 10 and number.isdecimal() and int(number) > count[n]:
                partly.append(f"{printable(name)} ({count[n]:.0f} of {number})")
                row = row | {"disk.indices": None}
            disk = _disk(found, at, row, standing[n])
            if disk.total:
                disks[n] = disk
        elif found.nodes and all(node.name != name for _, node in found.nodes.values()):
            strange.append(name)
    if strange:
        found.notes.add(
            f"room of {some_of(strange, printable)}, which _nodes does not list: it is ignored"
        )
    if partly:
        found.notes.add(
            f"not all shards of nodes, as in a listing of some indices: "
            f"{some_of(partly, str, 4)}; the others stay and count by their bytes only; list all"
        )
    unknown = [n for n in range(len(nodes)) if n not in disks]
    if not found.allocation or not unknown:
        return disks
    names = some_of([nodes[n].name for n in unknown], printable)
    if not disks:
        found.notes.add(f"no room of disks of {names}: they count as large enough")
        return disks
    total = float(np.mean([disk.total for disk in disks.values()]))
    others = float(np.mean([disk.others for disk in disks.values()]))
    found.notes.add(
        f"no room of disks of {names}: they count as the average of the others, "
        f"{total / 2.0**30:,.1f} GiB with {others / 2.0**30:,.1f} GiB of other data; read "
        "_cat/allocation again when it is known"
    )
    return disks | {n: Disk(total, others + standing[n], others) for n in unknown}


def _disk(found: Findings, at: str, row: Row, standing: float) -> Disk:
    """Return the disk in a row.

    Missing columns follow from the others; ``standing`` is the size of the shards listed there.
    """
    sizes = {
        key: amount(found.faults, f"{at}.disk.{key}", row.get(f"disk.{key}"))
        for key in ("total", "used", "avail", "indices")
    }
    total = sizes["total"] or (sizes["used"] + sizes["avail"] if sizes["avail"] else 0.0)
    own = sizes["indices"] if row.get("disk.indices") else standing
    if row.get("disk.used"):
        used = sizes["used"]
    else:
        used = total - sizes["avail"] if row.get("disk.avail") else own
    return Disk(total, used, max(used - own, 0.0))


def watermark(found: Findings, kind: str, recent: bool) -> Watermark:
    """Return a watermark, a kind of ``USUAL``.

    ``recent`` releases limit the headroom of the default watermarks.
    """
    if not is_true(found.cluster, f"{SETTINGS}threshold_enabled", True):
        return Watermark(0.0, 0.0)
    name = f"{WATERMARK}.{kind}"
    at, value = found.cluster.get(name, ("", USUAL[kind]))
    text = str(value)
    share = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)%", text)
    ratio = re.fullmatch(r"[01]?\.[0-9]{1,9}|[01]", text)
    if not (share or ratio):
        return Watermark(1.0, amount(found.faults, at, text))
    used = float(share[1]) / 100.0 if share else float(text)
    usual = HEADROOM[kind] if recent and name not in found.chosen else "-1"
    at, headroom = found.cluster.get(f"{name}.max_headroom", ("", usual))
    most = MOST if str(headroom) == "-1" else amount(found.faults, at, str(headroom))
    return Watermark(1.0 - min(used, 1.0), most)


def _share(node: DataNode, disk: Disk) -> str:
    return f"{printable(node.name)} ({100.0 * disk.used / disk.total:.1f}%)"


def _note(
    found: Findings,
    nodes: Sequence[DataNode],
    disks: Mapping[int, Disk],
    above: NDArray[np.bool_],
    flooded: Sequence[str],
) -> None:
    """Note the nodes above a watermark, and the effect."""
    if above.any():
        mark = found.cluster.get(f"{WATERMARK}.low", ("", USUAL["low"]))[1]
        full = [_share(nodes[n], disks[n]) for n in np.flatnonzero(above).tolist()]
        found.notes.add(
            f"that nodes are above the low watermark, {WATERMARK}.low of {printable(str(mark))}: "
            f"{some_of(full, str)}; Elasticsearch allocates no shard to them"
        )
    if flooded:
        found.notes.add(
            f"that nodes are above the flood stage: {some_of(flooded, str)}; indices with "
            "shards there are read-only until usage falls (index.blocks.read_only_allow_delete)"
        )
