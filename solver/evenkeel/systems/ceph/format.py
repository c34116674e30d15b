"""The Ceph format: read the output of its tools, write commands for them.

References
----------
Ceph, ``ceph osd dump``, ``osd tree``, ``osd df``, ``pg dump`` and ``osd crush dump`` with
``-f json``; ``crushtool --decompile``; ``osdmaptool --upmap``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.measure.audit import audit
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Flag
from evenkeel.systems.ceph.cluster import read
from evenkeel.systems.ceph.commands import encode
from evenkeel.systems.ceph.crush.cluster import FORMAT as NAME
from evenkeel.systems.ceph.crush.cluster import CephMap
from evenkeel.systems.ceph.crush.crush_map import NO_OSD
from evenkeel.systems.ceph.crush.failure_domains import positions
from evenkeel.systems.ceph.crush.placement import Pool, Rows, upmapped
from evenkeel.systems.ceph.crush.upmap import pairs_between
from evenkeel.systems.ceph.documents import OsdMap, PgStat, hint, kind_of, plain, read_stats
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.carrier import Carrier, Change, Orders, Wave, all_nodes, anybody
from evenkeel.systems.folders.form import Command, Setting
from evenkeel.systems.folders.observing import Observed, Standing
from evenkeel.systems.json_text import decode_json
from evenkeel.systems.notes import noted
from evenkeel.systems.registry import Format

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan


SETTINGS = (Setting("CLUSTER", "", "configuration file of the cluster, Ceph's own by default"),)

NOTES = (
    "`ceph balancer off`, or it moves placement groups of its own accord meanwhile.",
    "`ceph osd set-require-min-compat-client luminous`: older clients know no `pg-upmap-items`.",
    "A wave has ended when its placement groups are where they should be and are active and clean. "
    "How fast they are copied is Ceph's affair: `osd_max_backfills`.",
    "Ceph drops a command that breaks a rule of CRUSH without a word; a run looks whether every "
    "one was heeded, and stops where one was not.",
)


COPYING = frozenset(
    ("remapped", "backfilling", "backfill_wait", "backfill_toofull", "backfill_unfound",
     "recovering", "recovery_wait", "recovery_toofull", "recovery_unfound", "peering", "activating")
)  # fmt: skip
"""States of a placement group that still copies, or is about to."""


def orders(cluster: Cluster, waves: Sequence[Wave]) -> list[Orders]:
    """Return the commands of each wave, one for each placement group.

    One that breaks a rule is dropped by Ceph without an error: the next look shows that.
    """
    native = cluster.native
    if not isinstance(native, CephMap):
        kind = type(native).__name__
        raise InvalidInput([Fault("cluster.native", kind, "must be a Ceph map: read the dumps")])
    faults = FaultList()
    found: list[list[Command]] = [[] for _ in waves]
    begin = 0
    for pool in native.pools:
        end = begin + pool.pg_num
        own = [
            (w, one) for w, wave in enumerate(waves) for one in wave if begin <= one.partition < end
        ]
        if own:
            mapped = native.rows(pool, native.reweight, upmaps=False)
            items = _pairs(faults, native, pool, mapped, own, begin)
            for (w, one), pairs in zip(own, items, strict=True):
                if {*one.before} != {*one.after}:
                    found[w].append(_command(pool, one.partition - begin, pairs))
        begin = end
    faults.raise_if_any()
    return [Orders(each) for each in found]


def _pairs(
    faults: FaultList,
    native: CephMap,
    pool: Pool,
    mapped: Rows,
    own: Sequence[tuple[int, Change]],
    begin: int,
) -> list[Sequence[tuple[int, int]]]:
    """Return the pairs that put each changed placement group where it is to be."""
    natural = mapped[[one.partition - begin for _, one in own]]
    wanted = np.array([one.after for _, one in own], np.int32)
    wanted = np.where(wanted < 0, NO_OSD, wanted).astype(np.int32)
    allowed = positions(native.crush, pool.rule, pool.size)
    found: Mapping[int, Sequence[tuple[int, int]]] = pairs_between(natural, wanted, allowed)
    before = native.items.get(pool.id, {})
    items = {
        i: before.get(one.partition - begin, ()) if one.restored else found.get(i, ())
        for i, (_, one) in enumerate(own)
    }
    reached = upmapped(natural, native.reweight, items=items)
    short = (np.sort(reached, axis=1) != np.sort(wanted, axis=1)).any(axis=1)
    for i in np.flatnonzero(short).tolist():
        got = [osd for osd in reached[i].tolist() if osd != NO_OSD]
        asked = [osd for osd in wanted[i].tolist() if osd != NO_OSD]
        faults.add(own[i][1].name, asked, f"pg-upmap-items can only bring about {got}")
    return [*items.values()]


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
    """Return on which devices ``pg dump`` has placement groups, and which devices are up.

    A group that is not clean, or that older devices still serve, is being copied.
    """
    faults = FaultList()
    alive: dict[str, bool] = {}
    standing: dict[str, Standing] = {}
    for document, _ in map(plain, documents):
        if kind_of(document) == "osd dump":
            dump = decode_json(faults, document, OsdMap)
            alive = {f"osd.{one.osd}": bool(one.up) for one in dump.osds} if dump else alive
        elif kind_of(document) == "pg dump":
            _, stats = read_stats(faults, document)
            standing |= {one.pgid: _standing(one) for one in stats or ()}
    if not faults and not (alive and standing):
        faults.add("source", [one.name for one in documents], "needs `osd dump` and `pg dump`")
    faults.raise_if_any()
    return Observed(alive, standing)


def _standing(one: PgStat) -> Standing:
    words = one.state.split("+")
    # what lacks a device that is down is never clean, whatever has been copied
    whole = "clean" in words or ("undersized" in words and COPYING.isdisjoint(words))
    copying = not ("active" in words and whole) or {*one.up} != {*(one.acting or one.up)}
    devices = [f"osd.{osd}" for osd in one.up if osd != NO_OSD]
    return Standing(devices, f"osd.{one.up_primary}", copying)


CARRIER = Carrier(
    orders, look, settings=SETTINGS, notes=NOTES, leader=anybody, observe=observe,
    lists_nodes=all_nodes, lists_down=False,
)  # fmt: skip


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield the missing inputs, their effect, and the commands that print them."""
    yield from noted(cluster.native)
    if uncapped(cluster):
        yield (
            "no sizes: every placement group counts as one byte, and bytes are numbers of "
            "replicas; add what ceph pg dump -f json prints"
        )


def uncapped(cluster: Cluster) -> Sequence[str]:
    """Return the dimension, bytes, where no sizes are known: capacities follow the weights."""
    load = cluster.partitions.load.voter
    return cluster.dimensions if len(load) and (load == 1.0).all() else ()


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
    carrier=CARRIER,
    left_out=left_out,
    uncapped=uncapped,
    usual=usual,
    hint=hint,
    stranded="too few devices that hold their data are up for these placement groups to serve: "
    "bring one back (ceph pg PGID query names those it waits for), and read again",
)
