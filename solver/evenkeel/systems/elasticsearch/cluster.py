"""Build a cluster from API answers: indices become groups, shards partitions."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.stranded import MARKS
from evenkeel.model.placement import Flag, Role
from evenkeel.model.rules import Amount, Rule, word
from evenkeel.model.runtime.printable import printable, some_of
from evenkeel.systems.documents import Document, largest, quoted
from evenkeel.systems.elasticsearch.documents import MOST, ElasticFindings, Row, amount, gather
from evenkeel.systems.elasticsearch.factors import ENABLE
from evenkeel.systems.elasticsearch.settings import (
    EXPAND,
    PARTIAL,
    SEARCH,
    DataNode,
    Settings,
    filtered,
    is_everywhere,
    is_true,
    of_kind,
    roles_of,
    whole,
    words,
)
from evenkeel.systems.elasticsearch.shards import Shard, ends, shards_of
from evenkeel.systems.native.arguments import attributes_of, build
from evenkeel.systems.notes import noted

AWARE = "cluster.routing.allocation.awareness."
SAME_HOST = "cluster.routing.allocation.same_shard.host"


class Aware(NamedTuple):
    """An awareness attribute, over which copies are spread."""

    tier: str
    labels: list[str]
    forced: list[str]  # values of forced awareness, which count even if no node has them


class Kind(NamedTuple):
    """Shards with the same rule."""

    tag: str  # that of the nodes for copies that may lead; empty for all nodes
    copies: int
    # the tag of the nodes for search replicas, where some nodes are for these alone
    search: str = ""
    searching: int = 0
    everywhere: bool = False


def rules_of(
    found: ElasticFindings,
    shards: Sequence[Shard],
    indices: Sequence[str],
    nodes: Sequence[DataNode],
    spread: Mapping[str, Amount] | None,
) -> dict[str, Any]:
    """Return a rule for each set of nodes that an index may use and each number of copies."""
    attributes = _awareness(found, nodes)
    searches = np.array([node.searches for node in nodes], np.bool_)
    tags: dict[str, NDArray[np.bool_]] = {}
    elsewhere = _standing_elsewhere(found, shards, nodes)
    tag_of = {}
    for index in indices:
        settings = found.indices.get(index, {})
        mask, closing = _allowed(settings, nodes, attributes)
        kind = of_kind(settings, nodes, default=index not in elsewhere)
        if (mask & ~kind).any():
            closing = [*closing, "roles of nodes"]
        tag_of[index] = _tag(tags, mask & kind, closing)
    keys: dict[Kind, int] = {}
    rule = []
    for shard in shards:
        settings = found.indices.get(shard.of, {})
        key = Kind(tag_of[shard.of], len(shard.rows))
        extra = sum(found.shards[i]["prirep"] == "s" for i in shard.rows)
        if extra and searches.any():
            mask, closing = _allowed(settings, nodes, attributes)
            tag = _tag(tags, searches & mask, [*closing, "nodes with the role search"])
            key = Kind(key.tag, key.copies - extra, tag, extra)
        key = key._replace(everywhere=is_everywhere(settings))
        rule.append(keys.setdefault(key, len(keys)))
    domains = {one.tier: one.labels for one in attributes}
    if any(key.searching for key in keys):
        for one in attributes:
            domains |= {name: own.labels for name, own in _in_two(one, searches).items()}
    same_host = spread is None and is_true(found.cluster, SAME_HOST, False)
    if same_host:
        domains["host"] = [node.host or node.ip for node in nodes]
    rules = []
    for key in keys:
        apart = dict(spread) if spread is not None else _apart(key, attributes, searches)
        if same_host and not key.everywhere:
            apart["host"] = 1
        rules.append(_rule(key, apart))
    name = "index.routing.allocation.total_shards_per_node"
    most = [whole(found.faults, found.indices.get(index, {}), name) for index in indices]
    group_rule = np.full(len(indices), -1)
    for limit in sorted({one for one in most if one > 0}):
        group_rule[np.array(most) == limit] = len(rules)
        rules.append(Rule(spread={"node": limit}))
    return {
        "domains": domains, "crossing": _crossing(domains), "tags": tags, "rules": rules,
        "group_rule": group_rule, "rule": np.array(rule, np.int64),
    }  # fmt: skip


def _crossing(domains: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the tiers with a value in several domains of those before: it is one value for all."""
    found: list[str] = []
    paths: list[tuple[str, ...]] = []
    for tier, labels in domains.items():
        paths = paths or [()] * len(labels)
        inner = [(*path, label) for path, label in zip(paths, labels, strict=True)]
        if len({*inner}) > len({*labels}):
            found.append(tier)
        else:
            paths = inner
    return found


def _rule(key: Kind, apart: Mapping[str, Amount]) -> Rule:
    """Return the rule of shards of a kind."""
    require = [f"+{key.tag}"] if key.tag else []
    if not key.searching:
        return Rule(require=require, spread=apart)
    place = {f"+{key.search}": key.searching} if key.search else {}
    return Rule(voters_require=require, place=place, spread=apart)


def _apart(
    key: Kind, attributes: Sequence[Aware], searches: NDArray[np.bool_]
) -> dict[str, Amount]:
    """Return how many copies a value of each attribute may have, search replicas on their own."""
    if key.everywhere:
        return {}
    found: dict[str, Amount] = {}
    for one in attributes:
        other, search = _in_two(one, searches).items()
        parts = [(other, key.copies), (search, key.searching)]
        for (name, own), copies in parts if key.searching else parts[:1]:
            count = len({*own.labels, *own.forced} - {""})
            found[name if key.searching else one.tier] = -(-copies // max(count, 1))
    return found


def _in_two(one: Aware, searches: NDArray[np.bool_]) -> dict[str, Aware]:
    """Return an attribute as nodes have it that are not for search replicas, and that are."""
    here = list(zip(one.labels, searches.tolist(), strict=True))
    return {
        f"{one.tier} of other nodes": one._replace(labels=["" if s else own for own, s in here]),
        f"{one.tier} of search nodes": one._replace(labels=[own if s else "" for own, s in here]),
    }


def _tag(
    tags: dict[str, NDArray[np.bool_]], mask: NDArray[np.bool_], closing: Sequence[str]
) -> str:
    """Return the tag of nodes that some settings leave open, named after these; "" for all."""
    if mask.all():
        return ""
    name = word(" and ".join(closing))
    same = (f"{name} ({i})" if i else name for i in range(len(tags) + 1))
    tag = next(tag for tag in same if tag not in tags or np.array_equal(tags[tag], mask))
    tags[tag] = mask
    return tag


def _allowed(
    settings: Settings, nodes: Sequence[DataNode], attributes: Sequence[Aware]
) -> tuple[NDArray[np.bool_], list[str]]:
    """Return the nodes that filters and awareness leave to an index, (N,), and what closes any."""
    mask, closing = filtered(settings, "index.routing.allocation.", nodes)
    if not is_everywhere(settings):
        for one in attributes:
            labelled = np.array([bool(label) for label in one.labels], np.bool_)
            if not labelled.all():
                closing = [*closing, f"{AWARE}attributes: {one.tier}"]
            mask = mask & labelled
    return mask, closing


def _standing_elsewhere(
    found: ElasticFindings, shards: Sequence[Shard], nodes: Sequence[DataNode]
) -> set[str]:
    """Return the indices that have a copy on a node that is for any of them, or have none."""
    alone = {node.name for node in nodes if node.only_frozen or node.only_remote}
    homes: dict[str, set[str]] = {}
    for shard in shards:
        rows = [found.shards[i] for i in shard.rows]
        named = {name for row in rows if row["prirep"] != "s" for name, _, _ in ends(row)}
        homes.setdefault(shard.of, set()).update(named)
    return {index for index, named in homes.items() if not named or named - alone}


def _awareness(found: ElasticFindings, nodes: Sequence[DataNode]) -> list[Aware]:
    """Return the awareness attributes."""
    attributes = []
    _, named = found.cluster.get(f"{AWARE}attributes", ("", ""))
    for attribute in dict.fromkeys(words(named)):
        labels = [next(iter(node.values(attribute)), "") for node in nodes]
        if not any(labels):
            add = "" if found.nodes else "; add _nodes"
            found.notes.add(
                f"{AWARE}attributes names {printable(attribute)}, which no node has: it is "
                f"not kept, and Elasticsearch allocates nothing by it{add}"
            )
            continue
        tier = f"{attribute} attribute" if attribute in ("node", "host") else attribute
        forced = words(found.cluster.get(f"{AWARE}force.{attribute}.values", ("", ""))[1])
        attributes.append(Aware(tier, labels, forced))
    return attributes


COUNT = "shards"  # the dimension that counts shards; their sizes are ``disk``, in bytes
SETTINGS = "cluster.routing.allocation.disk."
WATERMARK = f"{SETTINGS}watermark"
USUAL = {"low": "85%", "high": "90%", "flood_stage": "95%"}
# largest headroom of the default watermarks, from release ``CAPPED`` on
HEADROOM = {"low": "200gb", "high": "150gb", "flood_stage": "100gb"}

CAPPED = (8, 5)


class Disk(NamedTuple):
    """A disk as ``_cat/allocation`` has it, in bytes."""

    total: float  # 0 for unknown
    used: float
    others: float  # bytes used by other data than shards


class Watermark(NamedTuple):
    """The free share of a disk, and its limit in bytes."""

    share: float
    most: float

    def room(self, total: float) -> float:
        """Return how many bytes may be used."""
        return max(total - min(total * self.share, self.most), 0.0)


class Disks(NamedTuple):
    """Arguments of a cluster, the nodes above the low watermark, and the disks of nodes."""

    given: dict[str, Any]
    above: NDArray[np.bool_]  # nodes above the low watermark, (N,)
    known: Mapping[int, Disk]


def disks_of(
    found: ElasticFindings,
    shards: Sequence[Shard],
    nodes: Sequence[DataNode],
    place: Mapping[str, int],
) -> Disks:
    """Return the sizes of shards, and the capacities of nodes below the watermarks."""
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
    # A node below the low watermark takes shards up to it. One above takes none, and above the high
    # watermark it has to give some away.
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
    return Disks(given, above, disks)


def _sizes(
    found: ElasticFindings,
    shards: Sequence[Shard],
    nodes: Sequence[DataNode],
    place: Mapping[str, int],
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


def _size(found: ElasticFindings, i: int) -> float:
    """Return the size of a copy; 0 if it is missing."""
    text = found.shards[i].get("store")
    if text is not None and not (text.isascii() and text.isdecimal() and len(text) < 19):
        return amount(found.faults, f"{found.shard_at(i)}.store", text)
    return float(text or 0)


def _disks(
    found: ElasticFindings,
    nodes: Sequence[DataNode],
    place: Mapping[str, int],
    standing: NDArray[np.float64],
    count: NDArray[np.float64],
) -> dict[int, Disk]:
    """Return the disk of each node by number; an unknown one is the average of the others."""
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
            # shards that no row lists count as other data on the disk
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
            f"{some_of(partly, str, 4)}; the others stay, on a node that is drained as well, and "
            "count by their bytes only; list all"
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


def _disk(found: ElasticFindings, at: str, row: Row, standing: float) -> Disk:
    """Return the disk in a row, with ``standing`` the size of the shards listed there."""
    sizes = {
        key: amount(found.faults, f"{at}.disk.{key}", row.get(f"disk.{key}"))
        for key in ("total", "used", "avail", "indices")
    }
    total = sizes["total"] or (sizes["used"] + sizes["avail"] if sizes["avail"] else 0.0)
    own = sizes["indices"] if row.get("disk.indices") else standing
    # what is not available is used, as for Elasticsearch, also where sizes are rounded
    if row.get("disk.avail"):
        used = total - sizes["avail"]
    else:
        used = sizes["used"] if row.get("disk.used") else own
    return Disk(total, used, max(used - own, 0.0))


def watermark(found: ElasticFindings, kind: str, recent: bool) -> Watermark:
    """Return the watermark of a kind of ``USUAL``."""
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
    # ``recent`` releases limit the headroom of the default watermarks
    usual = HEADROOM[kind] if recent and name not in found.chosen else "-1"
    at, headroom = found.cluster.get(f"{name}.max_headroom", ("", usual))
    most = MOST if str(headroom) == "-1" else amount(found.faults, at, str(headroom))
    return Watermark(1.0 - min(used, 1.0), most)


def _share(node: DataNode, disk: Disk) -> str:
    return f"{printable(node.name)} ({100.0 * disk.used / disk.total:.1f}%)"


def _note(
    found: ElasticFindings,
    nodes: Sequence[DataNode],
    disks: Mapping[int, Disk],
    above: NDArray[np.bool_],
    flooded: Sequence[str],
) -> None:
    """Note what room of disks is, the nodes above a watermark, and the effect."""
    mark = found.cluster.get(f"{WATERMARK}.low", ("", USUAL["low"]))[1]
    if disks and is_true(found.cluster, f"{SETTINGS}threshold_enabled", True):
        found.notes.add(
            f"watermarks: percentages of disk are of what shards may fill up to the low one, "
            f"{printable(str(mark))}, not of the whole disk"
            + ("; of nodes above it up to the high one" if above.any() else "")
        )
    if above.any():
        full = [_share(nodes[n], disks[n]) for n in np.flatnonzero(above).tolist()]
        found.notes.add(
            f"nodes are above the low watermark, {WATERMARK}.low of {printable(str(mark))}: "
            f"{some_of(full, str)}; Elasticsearch allocates no shard to them"
        )
    alike: dict[tuple[str, float, float], list[str]] = {}
    for n, disk in sorted(disks.items()):
        key = (nodes[n].host or nodes[n].ip, disk.total, disk.used)
        alike.setdefault(key, []).append(nodes[n].name)
    if shared := [name for (host, *_), names in alike.items() if host and len(names) > 1
                  for name in names]:  # fmt: skip
        apart = is_true(found.cluster, SAME_HOST, False)
        found.notes.add(
            f"nodes of a host report the same disk: {some_of(shared, printable)}; its room "
            "counts for each of them"
            + ("" if apart else f", and copies of a shard may share it without {SAME_HOST}")
        )
    if flooded:
        found.notes.add(
            f"nodes are above the flood stage: {some_of(flooded, str)}; indices with "
            "shards there are read-only until usage falls (index.blocks.read_only_allow_delete)"
        )


NAME = "elasticsearch"
SMALL = 2**20  # bytes below which no disk is
SIZES = ("disk.total", "disk.avail")
CAUGHT_UP, INCOMING = int(Flag.CAUGHT_UP), int(Flag.INCOMING)


def read(documents: Sequence[Document], *, spread: Mapping[str, Amount] | None = None) -> Cluster:
    """Read a cluster from the answers of its APIs, of which ``_cat/shards`` must be one."""
    # ``spread`` replaces the rules that the awareness attributes make
    faults = FaultList()
    found = gather(faults, documents)
    if not (found.shards or faults):
        listed = [document.name for document in documents]
        faults.add("source", listed, "needs the answer of _cat/shards")
    nodes = _nodes(found)
    place = {node.name: n for n, node in enumerate(nodes)}
    shards = shards_of(found)
    indices = list(dict.fromkeys(shard.of for shard in shards))
    group = {index: g for g, index in enumerate(indices)}
    given: dict[str, Any] = {
        "node_names": [node.name for node in nodes],
        "partition_names": [f"{shard.of}/{shard.number}" for shard in shards],
        "group": np.array([group[shard.of] for shard in shards], np.int64),
        "group_names": indices,
        "native_format": NAME,
    }
    given |= _placement(found, shards, nodes, place)
    if any(node.searches for node in nodes):
        given |= _roles(found, shards)
    disks = disks_of(found, shards, nodes, place)
    given |= disks.given
    given |= _states(found, nodes)
    given |= rules_of(found, shards, indices, nodes, spread)
    given["attributes"] = attributes_of([dict(one.attributes) for one in nodes], given["domains"])
    held = CopyNodes(given["first"], given["placement"])
    given["forbidden"] = closed_pairs(found, shards, nodes, held, disks.above)
    note_settings(found)
    given["native"] = {
        "shards": found.shards, "answers": sorted(found.kinds), "notes": [*found.notes],
        "started": sorted(found.started),
        "disks": {nodes[n].name: [*disk] for n, disk in sorted(disks.known.items())},
        "enable": {
            index: str(settings[ENABLE][1])
            for index, settings in found.indices.items() if ENABLE in settings
        },
        "expanding": sorted(
            index for index, settings in found.indices.items()
            if str(settings.get(EXPAND, ("", "false"))[1]).lower() != "false"
        ),
    }  # fmt: skip
    source = largest(documents)
    return build(faults, given, lambda path: f"{source.name}: {path}")


def _nodes(found: ElasticFindings) -> list[DataNode]:
    """Return the data nodes, by name: those of ``_nodes``, or else all that other files name."""
    if found.nodes:
        known = {node.name: DataNode.of(key, node) for key, (_, node) in found.nodes.items()}
        holding = {name: node for name, node in known.items() if node.holds}
        # shards on other nodes show files of different times, or partial ones: such nodes are
        # closed, and their shards stay
        strange = {
            name: DataNode(name, key, ip=ip, strange=True)
            for row in found.shards
            for name, key, ip in ends(row)
            if name and name not in holding
        }
        if strange:
            found.notes.add(
                f"shards are on {some_of([*strange], printable)}, which hold no data by "
                "_nodes: they stay there, and no other shard goes there; list both at one time"
            )
        return [node for _, node in sorted((holding | strange).items())]
    searching = _searching(found)
    busy = {name for row in found.shards for name, _, _ in ends(row)}
    empty, named = _without_disk(found, busy), dict[str, DataNode]()
    seen: set[str | None] = set()
    listed = dict[str | None, Row]()
    for row in (*found.roles, *(row for _, row in found.allocation)):
        cells: Row = {key: cell for key, cell in row.items() if cell}
        listed[row.get("node")] = listed.get(row.get("node"), {}) | cells
    for row in (*listed.values(), *found.shards):
        if row.get("node") in seen:
            continue
        seen.add(row.get("node"))
        for name, key, ip in ends(row):
            if name and name not in {"UNASSIGNED", *empty} and name not in named:
                roles = frozenset({SEARCH}) if name in searching else roles_of(row)
                own = tuple(found.attributes.get(name, {}).items())
                node = DataNode(name, key, row.get("host") or "", ip, roles, own)
                if node.holds or name in busy:
                    named[name] = node if node.holds else replace(node, roles=None)
    if empty:
        found.notes.add(
            f"no disk and no shard of {some_of(empty, printable)}: they count as nodes "
            "without data, such as client nodes; add _nodes, which has their roles"
        )
    return sorted(named.values(), key=lambda node: node.name)


def _without_disk(found: ElasticFindings, busy: Collection[str]) -> list[str]:
    """Return the nodes in a table of disks that have neither a disk nor shards."""
    sized = {row.get("node"): any(row.get(key) for key in SIZES) for _, row in found.allocation}
    empty = [name for name, size in sized.items() if name and not size and name not in busy]
    return [name for name in empty if name != "UNASSIGNED"] if any(sized.values()) else []


def _searching(found: ElasticFindings) -> set[str]:
    """Return the nodes that hold search replicas only, as nodes with that role do."""
    held: dict[bool, set[str]] = {True: set(), False: set()}
    for row in found.shards:
        held[row.get("prirep") == "s"].update(name for name, _, _ in ends(row))
    return held[True] - held[False]


def _placement(
    found: ElasticFindings,
    shards: Sequence[Shard],
    nodes: Sequence[DataNode],
    place: Mapping[str, int],
) -> dict[str, Any]:
    """Return the copies of each shard, relocating ones at their target."""
    node: list[int] = []
    flags: list[int] = []
    leader, wanted = [], []
    coming: list[str] = []
    for shard in shards:
        own: list[int] = []
        begin = len(flags)
        for i in shard.rows:
            n, flag = _copy(found, i, place)
            if n >= 0 and n in own:
                message = f"holds a copy of {shard.of}/{shard.number} already"
                found.faults.add(
                    f"{found.shard_at(i)}.node", quoted(found.shards[i]["node"]), message
                )
            own.append(n)
            flags.append(flag | int(Flag.PINNED) * (n >= 0 and nodes[n].strange))
        if any(flag & INCOMING for flag in flags[begin:]):
            coming.append(f"{shard.of}/{shard.number}")
        led = bool(own) and own[0] >= 0 and found.shards[shard.rows[0]]["prirep"] == "p"
        node += own
        leader.append(0 if led else -1)
        # without a primary there is no source for copies, and missing ones stay missing
        if led:
            flags[begin] |= int(Flag.ELECTED)
        else:
            flags[begin:] = [one | int(MARKS) for one in flags[begin:]]
        wanted.append(len(own))
    first = np.concatenate([[0], np.cumsum([len(shard.rows) for shard in shards])])
    if coming:
        found.notes.add(
            f"copies of {some_of(coming, printable, 4)} relocate or initialise: each counts at "
            "its target alone, and a node that one leaves has it until it is there"
        )
    return {
        "placement": np.array(node, np.int64),
        "first": first.astype(np.int64),
        "leader": np.array(leader, np.int64),
        "flags": np.array(flags, np.int64),
        "replicas": np.array(wanted, np.int64),
    }


def _roles(found: ElasticFindings, shards: Sequence[Shard]) -> dict[str, Any]:
    """Return the roles of copies: search replicas never lead."""
    role = [
        Role.NON_VOTER if found.shards[i]["prirep"] == "s" else Role.VOTER
        for shard in shards
        for i in shard.rows
    ]
    may_lead = [sum(found.shards[i]["prirep"] != "s" for i in shard.rows) for shard in shards]
    return {"role": np.array(role, np.uint8), "voters": np.array(may_lead, np.int64)}


def _copy(found: ElasticFindings, i: int, place: Mapping[str, int]) -> tuple[int, int]:
    """Return the node of a copy, -1 for none, and its flags."""
    row = found.shards[i]
    state, name = row.get("state"), row.get("node")
    if not name:
        if state in ("STARTED", "RELOCATING", "INITIALIZING"):
            message = f"is missing from a shard that is {state}"
            found.faults.add(f"{found.shard_at(i)}.node", None, message)
        return -1, 0
    if state == "STARTED" and name in place:
        return place[name], CAUGHT_UP
    own = ends(row)
    target = own[-1][0]
    if target not in place:
        message = "is not the name of a node"
        found.faults.add(f"{found.shard_at(i)}.node", quoted(target), message)
        return -1, 0
    arrives = len(own) > 1 or state == "INITIALIZING"
    return place[target], INCOMING if arrives else CAUGHT_UP


def _states(found: ElasticFindings, nodes: Sequence[DataNode]) -> dict[str, Any]:
    """Return the states of nodes: cluster filters and shutdowns drain them."""
    may, closing = filtered(found.cluster, "cluster.routing.allocation.", nodes)
    strange = np.array([node.strange for node in nodes], np.bool_)
    leave = ~may & ~strange
    if leave.any():
        emptied = [nodes[n].name for n in np.flatnonzero(leave).tolist()]
        found.notes.add(f"{some_of(emptied, printable, 4)} may hold no shard: {', '.join(closing)}")
    accepts = ~leave & ~strange
    place = {node.key: n for n, node in enumerate(nodes)}
    for _, one in found.shutdown:
        if one.node_id in place:
            n = place[one.node_id]
            accepts[n] = False
            leave[n] |= one.type.upper() in ("REMOVE", "REPLACE", "SIGTERM")
        elif one.node_id not in found.nodes:
            found.notes.add(
                f"{printable(one.node_id)} is shut down, which is not a node here: ignored"
            )
    most = whole(found.faults, found.cluster, "cluster.routing.allocation.total_shards_per_node")
    return {
        "accepts": accepts,
        "keeps": ~leave,
        "max_replicas": np.full(len(nodes), most if most > 0 else -1),
    }


# settings of indices that ignore watermarks
WITHOUT_WATERMARKS = (PARTIAL, "index.routing.allocation.disk.watermark.ignore")


class CopyNodes(NamedTuple):
    """Nodes of copies, at their target if they relocate."""

    first: NDArray[np.int64]  # (P + 1,)
    node: NDArray[np.int64]  # (K,), -1 for none; the primary of each shard first


def closed_pairs(
    found: ElasticFindings,
    shards: Sequence[Shard],
    nodes: Sequence[DataNode],
    held: CopyNodes,
    above: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """Return pairs of a shard and a node that is closed to it, (F, 2)."""
    parts = [
        _product(_bound_by_watermarks(found, shards), np.flatnonzero(above)),
        _without_places(found, shards, nodes),
        _on_hosts(found, shards, nodes, held),
        _older(found, nodes, held),
    ]
    pairs = np.concatenate(parts)
    p = np.repeat(np.arange(len(shards)), np.diff(held.first))
    there = held.node >= 0
    shut = np.setdiff1d(
        pairs[:, 0] * len(nodes) + pairs[:, 1], p[there] * len(nodes) + held.node[there]
    )
    return np.stack(np.divmod(shut, max(len(nodes), 1)), 1).astype(np.int32)


def _product(partitions: NDArray[np.int64], nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.stack([np.repeat(partitions, len(nodes)), np.tile(nodes, len(partitions))], 1)


def _bound_by_watermarks(found: ElasticFindings, shards: Sequence[Shard]) -> NDArray[np.int64]:
    """Return the shards that watermarks bind."""
    ignoring = {
        index
        for index, settings in found.indices.items()
        if any(is_true(settings, name, False) for name in WITHOUT_WATERMARKS)
    }
    return np.array([p for p, shard in enumerate(shards) if shard.of not in ignoring], np.int64)


def _without_places(
    found: ElasticFindings, shards: Sequence[Shard], nodes: Sequence[DataNode]
) -> NDArray[np.int64]:
    """Close all nodes if awareness requires an attribute that no node has."""
    asked = words(found.cluster.get(f"{AWARE}attributes", ("", ""))[1])
    if not found.nodes or all(any(node.values(one) for node in nodes) for one in asked):
        return np.zeros((0, 2), np.int64)
    bound = [p for p, one in enumerate(shards) if not is_everywhere(found.indices.get(one.of, {}))]
    return _product(np.array(bound, np.int64), np.arange(len(nodes)))


def _on_hosts(
    found: ElasticFindings, shards: Sequence[Shard], nodes: Sequence[DataNode], held: CopyNodes
) -> NDArray[np.int64]:
    """Close the other nodes of a host with a copy, even to that copy."""
    none = np.zeros((0, 2), np.int64)
    if not is_true(found.cluster, SAME_HOST, False):
        return none
    hosts: dict[str, list[int]] = {}
    for n, node in enumerate(nodes):
        hosts.setdefault(node.host or node.ip, []).append(n)
    shared = {n: own for own in hosts.values() if len(own) > 1 for n in own}
    if not shared:
        return none
    found.notes.add(
        f"{SAME_HOST} is true: Elasticsearch then refuses to move a shard to another node of "
        "its own host, too, so no such move is planned; it can while the setting is false"
    )
    pairs = []
    for p, shard in enumerate(shards):
        if is_everywhere(found.indices.get(shard.of, {})):
            continue
        for n in held.node[held.first[p] : held.first[p + 1]].tolist():
            pairs += [(p, other) for other in shared.get(n, ())]
    return np.array(pairs, np.int64).reshape(-1, 2)


def _older(found: ElasticFindings, nodes: Sequence[DataNode], held: CopyNodes) -> NDArray[np.int64]:
    """Close nodes of an older release than that of a shard's primary."""
    versions = sorted({node.version for node in nodes if node.version})
    parts = [np.zeros((0, 2), np.int64)]
    if len(versions) < 2:
        return parts[0]
    releases = [".".join(map(str, version)) for version in versions]
    found.notes.add(
        f"nodes are of several releases, {some_of(releases, printable)}: no shard goes to a "
        "node older than that of its primary"
    )
    rank = np.array(
        [versions.index(node.version) if node.version else len(versions) for node in nodes]
    )
    some = np.flatnonzero(np.diff(held.first) > 0)
    primary = held.node[held.first[some]]
    some, primary = some[primary >= 0], primary[primary >= 0]
    for level in range(1, len(versions)):
        newer = some[rank[primary] == level]
        parts.append(_product(newer, np.flatnonzero(rank < level)))
    return np.concatenate(parts)


FILTER = re.compile(r"(cluster|index)\.routing\.allocation\.(require|include|exclude)\.")
UNKEPT = re.compile(
    r"(cluster|index)\.routing\.allocation\.(total_primary_shards_per_node|write_load_decider\.enabled"
    r"|search\.replica\.dedicated\.include\.)"
)
IDLE = {"-1", "", "false", "disabled"}  # values of settings without effect
# settings that restrict allocation unless they are ``all``, and the effect
NOT_ALL = {
    "cluster.routing.allocation.enable": "Elasticsearch allocates no other shards by itself; it "
    "still carries out the written commands",
    "cluster.routing.rebalance.enable": "the script of a plan sets it to none meanwhile",
}

MISSING = {
    "nodes": "no roles and attributes of nodes: any node may hold any shard; add _nodes",
    "index settings": (
        "no settings of indices: their filters and tiers are not kept, and --replicas does not "
        "know which of them index.auto_expand_replicas gives another number of copies; add "
        "_all/_settings?expand_wildcards=all"
    ),
    "cluster settings": (
        "no settings of the cluster: no awareness and no filters, and the usual watermarks; add "
        "_cluster/settings?include_defaults=true"
    ),
    "allocation": "no room of disks: they count as large enough; add _cat/allocation",
}

# in place of the note on nodes where a table gives one of these
ALONE = {
    "roles": "no attributes of nodes: awareness and filters by attribute are not kept; add _nodes",
    "attributes": "no roles of nodes: any node may hold any shard; add _nodes",
}

PUT = (
    "no settings of the cluster but those that a request puts; add "
    "_cluster/settings?include_defaults=true"
)
STARTED = (
    "no settings of the cluster but those that its nodes were started with, which others may "
    "override; add _cluster/settings?include_defaults=true"
)


def note_settings(found: ElasticFindings) -> None:
    """Note settings and states that restrict allocation and are no rule."""
    for name, meaning in NOT_ALL.items():
        value = str(found.cluster.get(name, ("", "all"))[1]).lower()
        if value not in ("all", ""):
            found.notes.add(f"{name} is {printable(value)}: {meaning}")
        own = f"index.{name.removeprefix('cluster.')}"
        held = [
            index
            for index, settings in found.indices.items()
            if str(settings.get(own, ("", "all"))[1]).lower() not in ("all", "")
        ]
        if held:
            found.notes.add(f"{own} is not all of {some_of(held, printable, 4)}: {meaning}")
    named = dict.fromkeys(row.get("index") or "" for row in found.shards)
    missing = [index for index in named if index and index not in found.indices]
    if missing and "index settings" in found.kinds:
        found.notes.add(
            f"no settings of {some_of(missing, printable, 4)}: filters and tiers of these are not "
            "kept; hidden indices need _all/_settings?expand_wildcards=all"
        )
    listed = _set_to(found, FILTER, lambda value: isinstance(value, list))
    unkept = _set_to(found, UNKEPT, lambda value: str(value) not in IDLE)
    if unkept:
        found.notes.add(
            f"{some_of(unkept, printable, 4)} is set and not kept: commands against it "
            "may be written, and are refused"
        )
    if listed:
        found.notes.add(
            f"lists in {some_of(listed, printable, 4)}: kept, but OpenSearch and early releases of "
            "Elasticsearch match a text only; write names separated by commas"
        )
    totals = [row.get("disk.total") or "" for _, row in found.allocation]
    most = max((float(text) for text in totals if text.isdecimal()), default=0.0)
    if 0.0 < most < SMALL:
        found.notes.add(
            f"disks of at most {most:,.0f} bytes, as where _cat/allocation is asked for in another "
            "unit (bytes=gb): ask for bytes=b everywhere"
        )
    if fewer := _filtered(found):
        found.notes.add(
            f"no rows of all copies of {some_of(fewer, printable, 4)}: a shard of an index has a "
            "primary, and as many copies as the others, even where they are unassigned. The "
            "listing is filtered or cut off, and what it leaves out is not counted: list all"
        )
    failed = [
        f"{row.get('index')}/{row.get('shard')}"
        for row in found.shards
        if row.get("unassigned.reason") == "ALLOCATION_FAILED"
    ]
    if failed:
        found.notes.add(
            f"the allocation of {some_of(failed, printable, 4)} failed: after several times "
            "Elasticsearch refuses it until POST _cluster/reroute?retry_failed=true"
        )


def _filtered(found: ElasticFindings) -> list[str]:
    """Return the shards that have no row of a primary, or fewer rows than others of their index."""
    rows = Counter((row.get("index"), row.get("shard")) for row in found.shards)
    led = {(row.get("index"), row.get("shard")) for row in found.shards if row.get("prirep") == "p"}
    most: dict[str | None, int] = {}
    for (index, _), count in rows.items():
        most[index] = max(most.get(index, 0), count)
    return [
        f"{index}/{shard}"
        for (index, shard), count in rows.items()
        if (index, shard) not in led or count < most[index]
    ]


def _set_to(
    found: ElasticFindings, names: re.Pattern[str], counts: Callable[[object], bool]
) -> list[str]:
    """Return the settings of such names whose values count, each once."""
    return [
        *dict.fromkeys(
            name
            for settings in (found.cluster, *found.indices.values())
            for name, (_, value) in settings.items()
            if names.match(name) and counts(value)
        )
    ]


def left_out(cluster: Cluster) -> Iterator[str]:
    """Yield notes on missing answers and assumptions, each with its effect and what to add."""
    native = cluster.native
    if isinstance(native, dict) and isinstance(native.get("answers"), list):
        given = {*native["answers"]}
        parts = [kind for kind in ALONE if kind in given]
        if len(parts) == len(ALONE):
            given.add("nodes")
        instead = {
            "cluster settings": PUT if "put" in given else STARTED if native.get("started") else "",
            "nodes": ALONE[parts[0]] if parts else "",
        }
        for kind, note in MISSING.items():
            if kind not in given:
                yield instead.get(kind) or note
        yield from noted(native)
