"""The ``tables`` format: nodes and replicas of any system as tables, with rules in TOML.

Nodes: ``node``, ``cap_NAME`` for each dimension, and any of ``watermark_NAME``, ``state`` (up,
cordoned, draining, down), ``tags`` (divided by blanks), ``weight``, ``max_replicas``; every other
column is a tier, the widest first, unless its name is like one of these: ``tiers`` among the rules
then lists the columns that are tiers.

Replicas, one per row: ``group`` and ``index``, or ``partition``, or all of them; ``node``, empty
where a replica has none; and any of ``role`` (leader, voter, non_voter, learner; where the column
is missing the first replica leads, but no single one), ``pinned``, ``flags``, ``size_NAME`` or
``load_NAME``,
``leader_load_NAME``, ``non_voter_load_NAME``, ``replicas``, ``voters``, ``min_active`` and
``rule``, which are the partition's and the same in each of its rows.

Disks, one per row: ``node``, ``disk`` (or ``log_dir``, ``volume``), ``capacity`` and perhaps
``state`` (fine, emptying, failed); replicas name theirs in a column of the same title.

Rules: ``[[rule]]`` with the fields of ``evenkeel.Rule``, and ``groups`` or ``name``; one with
neither binds all partitions that no other binds. One with ``per = "group"`` counts all replicas of
a group together. ``bytes`` and ``transient`` name dimensions,
and so does ``uncapped`` those with unknown capacities: those of the table are assumed.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.systems.csv_text import ASIDE, SPECIAL, encode_table, header_of
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.native.arguments import Arguments, RuleDocument, arguments_of
from evenkeel.systems.node_states import NODE_STATES, NodeState, names_of
from evenkeel.systems.printed import HEAD, titles_above
from evenkeel.systems.registry import Format, system_of
from evenkeel.systems.tables.disks import columns_of, disk_cells, lying_cells
from evenkeel.systems.tables.other_headings import titles_in
from evenkeel.systems.tables.other_nodes import TIERS, describes_nodes
from evenkeel.systems.tables.reading import (
    COUNTS,
    HEADINGS,
    LOADS,
    NAME,
    NODE,
    OF_NODES,
    UNGROUPED,
    Headings,
    headings_of,
    kind_of,
    left_out,
    likely_column,
    read,
    titled,
    uncapped,
)

# what tables can hold of the arguments that build a cluster
KEPT = {
    "dimensions", "capacity", "watermark", "node_names", "domains", "tags", "weight",
    "max_replicas", "alive", "accepts", "keeps", "leads", "load", "leader_load", "non_voter_load",
    "partition_names", "group", "group_names", "group_rule", "rules", "rule", "placement", "first",
    "leader", "role", "flags", "replicas", "voters", "min_active", "transient", "bytes",
    "native_format", "disks", "disk",
}  # fmt: skip

NUMBERED = re.compile(r"(0|[1-9][0-9]{0,17})")


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return a table of replicas, one of nodes beside it, and disks and rules if there are any."""
    faults = FaultList()
    given = arguments_of(cluster)
    for name in sorted(given.keys() - KEPT - {"native"}):
        faults.add(f"cluster.{name}", type(given[name]).__name__, "cannot be held by tables")
    _check_cells(faults, "node_names", cluster.nodes.names)
    _check_cells(faults, "partition_names", cluster.partitions.names)
    _check_cells(faults, "group_names", filter(None, cluster.partitions.group_names))
    headings = headings_of(cluster)
    nodes = _nodes(faults, cluster, given, headings.nodes)
    placed = cluster.placement if placement is None else placement
    replicas = _replicas(faults, cluster, placed, headings.replicas)
    groups = _by_group(cluster, headings.replicas)
    if groups is None and ((cluster.partitions.rule >= 0).any() or "rule" in headings.replicas):
        names = [f"r{r}" for r in range(len(cluster.rules))]
        bound = [names[r] if r >= 0 else "" for r in cluster.partitions.rule.tolist()]
        replicas["rule"] = [bound[p] for p in cluster.placement.owner.tolist()]
    tables = {"nodes": titled(nodes, headings.nodes)}
    if (disks := cluster.disks) is not None:
        own, title = list(cluster.nodes.names), headings.disks.get("disk", "")
        _check_cells(faults, "disks.names", disks.names)
        title, cells = disk_cells(disks, own, title)
        _check_cells(faults, "disks.names", cells)
        of_disks = {**(headings.disks or {"node": "node"}), "disk": title}
        tables["disks"] = titled(columns_of(disks, cells, own, headings.disks), of_disks)
        if placed.disk is not None or "disk" in headings.replicas:
            replicas["disk"] = lying_cells(disks, cells, placed)
    faults.raise_if_any()
    mark = "\t" if path.suffix == TABS else ","
    suffix = path.suffix if path.suffix == TABS else ".csv"
    files = {path: encode_table(titled(replicas, headings.replicas), mark)}
    files |= {
        path.with_suffix(f".{name}{suffix}"): encode_table(columns, mark)
        for name, columns in tables.items()
    }
    rules = _rules(cluster, given, groups or {})
    if rules:
        files[path.with_suffix(".rules.toml")] = rules
    return files


def _by_group(cluster: Cluster, headings: Headings) -> dict[int, list[str]] | None:
    """Return the groups that each rule binds, if the tables had no column of rules nor need one."""
    partitions = cluster.partitions
    if not headings or "rule" in headings or not cluster.rules or not len(partitions):
        return None
    count = len(partitions.group_names)
    rule = np.full(count, -1, np.int64)
    rule[partitions.group] = partitions.rule
    if (rule[partitions.group] != partitions.rule).any():
        return None
    bound: dict[int, list[str]] = {}
    for name, r in zip(partitions.group_names, rule.tolist(), strict=True):
        if r >= 0:
            bound.setdefault(r, []).append(name)
    return bound


def _check_cells(faults: FaultList, path: str, texts: Iterable[str]) -> None:
    """Note what would not come back as it is: cells are stripped, and # starts a comment."""
    for i, text in enumerate(texts):
        if not text or text != text.strip() or text.startswith(ASIDE) or "\0" in text:
            faults.add(f"{path}[{i}]", text, "cannot be a cell of a table")


def _nodes(
    faults: FaultList, cluster: Cluster, given: Arguments, headings: Headings
) -> dict[str, Sequence[Any]]:
    """Return the columns of nodes: what is not usual, and whatever the headings name."""
    nodes, topology = cluster.nodes, cluster.topology
    columns: dict[str, Sequence[Any]] = {"node": list(nodes.names)}
    for i, tier in enumerate(topology.tiers):
        names = topology.label_names[i]
        if tier.lower() in OF_NODES or tier.lower().startswith(("cap_", "watermark_")):
            faults.add(f"domains[{tier!r}]", tier, "is the name of another column")
        _check_cells(faults, f"domains[{tier!r}]", [tier, *names])
        columns[tier] = [names[code] if code >= 0 else "" for code in topology.label[i].tolist()]
    states = names_of(nodes)
    for n, name in enumerate(states):
        flags = (nodes.alive[n], nodes.accepts[n], nodes.keeps[n], nodes.leads[n])
        if NodeState(*map(bool, flags)) != NODE_STATES[name]:
            faults.add(f"nodes[{n}]", [bool(one) for one in flags], "is none of the known states")
    if not headings or "state" in headings or {*states} != {"up"}:
        columns["state"] = states
    for d, dimension in enumerate(cluster.dimensions):
        columns[f"cap_{dimension}"] = nodes.capacity[:, d].tolist()
        if "watermark" in given or f"watermark_{dimension}" in headings:
            columns[f"watermark_{dimension}"] = nodes.watermark[:, d].tolist()
    _check_cells(faults, "dimensions", cluster.dimensions)
    for name in ("weight", "max_replicas"):
        if name in given or name in headings:
            columns[name] = getattr(nodes, name).tolist()
    if nodes.tags or "tags" in headings:
        for tag in nodes.tags:
            if len(tag.split()) != 1:
                faults.add("tags", tag, "has a blank in it")
        columns["tags"] = [
            " ".join(tag for tag, own in nodes.tags.items() if own[n]) for n in range(len(nodes))
        ]
    for title in columns:
        if SPECIAL.search(title):
            faults.add("nodes", title, "cannot be the name of a column")
        alike = [one for one in columns if one.lower() == title.lower()]
        if len(alike) > 1 and alike[0] == title:
            faults.add("nodes", alike, "would be two columns of the same name")
    return columns


def _replicas(
    faults: FaultList, cluster: Cluster, placement: Placement, headings: Headings
) -> dict[str, Sequence[Any]]:
    """Return the columns of replicas: what is not usual, and whatever the headings name."""
    partitions = cluster.partitions
    owner = placement.owner
    for p in np.flatnonzero(np.diff(placement.first) == 0).tolist()[:10]:
        faults.add(partitions.names[p], [], "has no slot and so no row")
    at = owner.tolist()
    columns = _named(cluster, at, headings)
    nodes = list(cluster.nodes.names)
    columns["node"] = [nodes[n] if n >= 0 else "" for n in placement.node.tolist()]
    roles = [Role(code).name.lower() for code in placement.role.tolist()]
    led = placement.first[:-1] + placement.leader
    for k in led[placement.leader >= 0].tolist():
        if roles[k] != "voter":
            faults.add("role", roles[k], f"leads {partitions.names[at[k]]}: only voters do here")
        roles[k] = "leader"
    as_usual = any((placement.leader == slot).all() for slot in (0, -1))  # as without the column
    if not headings or "role" in headings or not as_usual or (placement.role != Role.VOTER).any():
        columns["role"] = roles
    columns |= _flags(placement, headings)
    load = partitions.load
    for argument, rows in zip(LOADS, (load.voter, load.leader, load.non_voter), strict=True):
        for d, dimension in enumerate(cluster.dimensions):
            title = f"{argument}_{dimension}"
            apart = not np.array_equal(rows[:, d], load.voter[:, d])
            needed = bool(rows[:, d].any()) or not headings if argument == "load" else apart
            if needed or title in headings:
                columns[title] = rows[owner, d].tolist()
    width = np.diff(placement.first)
    counts = dict(zip(COUNTS, (width, partitions.replicas, 0), strict=True))
    for name, default in counts.items():
        wanted = getattr(partitions, name)
        if name in headings or not np.all(wanted == default):
            columns[name] = wanted[owner].tolist()
    slots = np.bincount(owner[placement.role == Role.VOTER], minlength=len(partitions))
    if headings and "voters" not in headings and np.array_equal(partitions.voters, slots):
        columns.pop("voters", None)
    elif "voters" not in columns and (placement.role != Role.VOTER).any():
        columns["voters"] = partitions.voters[owner].tolist()
    return columns


def _flags(placement: Placement, headings: Headings) -> dict[str, Sequence[Any]]:
    """Return the flags of replicas; that they are pinned in a column of its own where one was."""
    flags = placement.flags
    columns: dict[str, Sequence[Any]] = {}
    if "pinned" in headings:
        columns["pinned"] = ["yes" if one & Flag.PINNED else "" for one in flags.tolist()]
        flags = np.where(flags & Flag.PINNED != 0, flags ^ np.uint16(Flag.PINNED), flags)
    if flags.any() or "flags" in headings:
        columns["flags"] = [
            " ".join(one.name.lower() for one in Flag if code & one and one.name)
            for code in flags.tolist()
        ]
    return columns


def _named(cluster: Cluster, at: Sequence[int], headings: Headings) -> dict[str, Sequence[Any]]:
    """Return the columns that name partitions; as group and index where names are made of them."""
    names, group = cluster.partitions.names, cluster.partitions.group.tolist()
    groups = [cluster.partitions.group_names[g] for g in group]
    index = [
        name[len(own) + 1 :] if name.startswith(f"{own}-") else ""
        for name, own in zip(names, groups, strict=True)
    ]
    columns: dict[str, Sequence[Any]] = {}
    if "partition" not in headings or "group" in headings or {*groups} != {UNGROUPED}:
        columns["group"] = [groups[p] for p in at]
    made = all(map(NUMBERED.fullmatch, index))
    if made and ("partition" not in headings or "index" in headings):
        columns["index"] = [index[p] for p in at]
    if not made or "partition" in headings:
        columns["partition"] = [names[p] for p in at]
    return columns


def _rules(cluster: Cluster, given: Arguments, groups: Mapping[int, Sequence[str]]) -> bytes:
    """Return the rules in TOML, each by the groups that it binds, or else by a name."""
    lines = [f"{name} = {_toml(given[name])}" for name in ("bytes", "transient") if name in given]
    if unknown := system_of(cluster).uncapped(cluster):
        lines.append(f"uncapped = {_toml([*unknown])}")
    if any(likely_column(tier, cluster.dimensions) for tier in cluster.topology.tiers):
        lines.append(f"tiers = {_toml(cluster.topology.tiers)}")
    names, group_rule = cluster.partitions.group_names, cluster.partitions.group_rule
    for r, rule in enumerate(cluster.rules):
        written: Mapping[str, Any] = msgspec.to_builtins(RuleDocument.of(rule))
        fields = [f"{name} = {_toml(value)}" for name, value in written.items()]
        whole = [names[g] for g in np.flatnonzero(group_rule == r).tolist()]
        if r in groups or not whole or (cluster.partitions.rule == r).any():
            own = f"groups = {_toml(groups[r])}" if r in groups else f'name = "r{r}"'
            lines += ["[[rule]]", own, *fields]
        if whole:
            lines += ["[[rule]]", f"groups = {_toml(whole)}", 'per = "group"', *fields]
    try:
        return ("\n".join(lines) + "\n").encode() if lines else b""
    except UnicodeEncodeError as error:
        text = quoted(error.object)
        raise InvalidInput([Fault("rules", text, "cannot be written as UTF-8")]) from None


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_toml(key)} = {_toml(one)}" for key, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


CHANGES = re.compile(rb'kind,partition,slot,from,to,|\[\s*\{"kind": "(move|leader)", "partition"|'
                     rb"step,wave,kind,partition,slot,from,to,")  # fmt: skip


TABS = ".tsv"
TITLE = re.compile(r"[a-z_][\w .()%'\[\]/-]{0,60}")

WITHOUT = (
    f"is a table without the columns of nodes ({HEADINGS['nodes']}) or of replicas "
    f"({HEADINGS['replicas']})"
)


SHIFTED = (
    "is a table of which cells do not begin below their titles, as where names were shortened: "
    "give it as it was printed, or part its cells by tabs"
)


# what systems without a reader print, by its pattern
OTHERS = {
    rb"^Datacenter: .*\n=+\s*\n(?:Status=|Address )": "what nodetool prints",
    rb"\b(?:myself,)?(?:master|slave) (?:-|[0-9a-f]{40}) \d+ \d+ |^[MS]: [0-9a-f]{40} ": (
        "what redis-cli prints of a cluster"
    ),
    rb'<lst name="(?:cluster|collections)">': "Solr's CLUSTERSTATUS as XML (wt=json is read)",
    rb"^Configured Capacity: |^Live datanodes |\bblk_\d+_\d+ len=": "what HDFS's tools print",
    rb'"gitHash"\s*:\s*"[0-9a-f]*"\s*,\s*"name"\s*:': "what Weaviate answers of its nodes",
    rb"\bLEADER_STORE_ID\b": (
        "what SHOW TABLE REGIONS prints, with peers but not their stores (as "
        "information_schema.tikv_region_peers has them)"
    ),
    rb'"SchedulingEligibility"\s*:|"ClientStatus"\s*:': (
        "what Nomad prints with -json (its lists without it are read)"
    ),
    rb"^--- Sharding Status|^shardingVersion\s*$": "what sh.status() of MongoDB prints",
}


# how JSON begins with rows, or columns, by their names
ROWS_BY_NAME = re.compile(rb'\s*\{\s*"[^"]*"\s*:\s*\{[^{}\[\]]*\}\s*[,}]')


def hint(document: Document) -> str:
    """Return what to give in place of a table of changes, or which columns a table needs."""
    for looks, what in OTHERS.items():
        if re.search(looks, document.data[:HEAD], re.MULTILINE):
            return (
                f"is {what}, which has no reader: write two tables, of nodes and of replicas, as "
                "docs/systems/tables.md describes them"
            )
    if ROWS_BY_NAME.match(document.data[:HEAD]):
        return (
            "is JSON that is no array of rows: write a table of nodes and one of replicas, each as "
            '[{"node": "n1", ...}, ...], which pandas writes with orient="records"'
        )
    if not CHANGES.match(document.data[:200]):
        titles = titles_above(document)
        if titles_in(titles) or describes_nodes(titles, NODE, TIERS):
            return SHIFTED
        titles = header_of(document)
        several = len(titles) > 1 and all(map(TITLE.fullmatch, titles))
        return WITHOUT if several else ""
    return "is a table of changes; to get a cluster or target, write one with -o OUT of solve"


FORMAT = Format(
    name=NAME,
    summary="tables of nodes, replicas and disks (CSV, JSON rows), and rules (TOML)",
    suffixes=(".csv", TABS),
    recognises=kind_of,
    read=read,
    encode=encode,
    left_out=left_out,
    uncapped=uncapped,
    hint=hint,
    no_carrier="is of no system whose commands could be written",
)
