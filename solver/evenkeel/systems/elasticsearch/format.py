"""Elasticsearch and OpenSearch: read API answers, write reroute commands.

References
----------
Elasticsearch, ``_cat/shards``, ``_cat/allocation``, ``_nodes``, cluster and index settings,
``_cluster/reroute``; OpenSearch has the same.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Placement
from evenkeel.systems.elasticsearch.cluster import left_out, read
from evenkeel.systems.elasticsearch.documents import ASKS, MEMBERS, WORDS, hint, recognises
from evenkeel.systems.elasticsearch.exchanges import (
    Command,
    exchanges,
    goes_where_one_leaves,
    orders,
    under_way,
)
from evenkeel.systems.elasticsearch.factors import (
    Factor,
    enable_of,
    factors_of,
    freed_only,
    held_back,
    let_go,
    path_of,
)
from evenkeel.systems.elasticsearch.shards import native_of
from evenkeel.systems.elasticsearch.waves import CARRIER
from evenkeel.systems.json_text import encode_indented, encode_rows
from evenkeel.systems.registry import Format

REROUTE = """set -eu
cd -- "$(dirname -- "$0")"
: "${ES:=http://localhost:9200}"
reroute() {
  curl -fsSn -X POST "$ES/_cluster/reroute?$1" -H 'Content-Type: application/json' \\
    --data-binary @"$2"
}
"""
SCRIPT = (
    """#!/bin/sh
# Moves shards. ES is the address of the cluster; curl takes passwords from ~/.netrc (-n).
# First a dry run, which changes nothing; then, with the word go behind it, the moves.
"""
    + REROUTE
    + """reroute 'dry_run=true&explain=true&metric=none' FILE
TRIED[ "${1-}" = go ] || exit 0
"""
)
HELD = """# The balancer would take moves back: it is held until shards have arrived, or this ends.
settings() {
  curl -fsSn -X PUT "$ES$1" -H 'Content-Type: application/json' -d "$2"
}
balancer() {
  own='"cluster.routing.rebalance.enable"'
  settings /_cluster/settings "{\\"persistent\\":{$own:$1},\\"transient\\":{$own:$2}}"
}
now() {
  curl -fsSn "$ES/_cluster/settings?filter_path=$1.cluster.routing.rebalance.enable" |
    sed -n 's/.*"enable":\\("[a-z]*"\\).*/\\1/p; s/^{}$/null/p'
}
persistent=$(now persistent)
transient=$(now transient)
: "${persistent:?the setting of the balancer is unknown}" "${transient:?so is this one}"
release() {
  code=$?
  trap - EXIT
  balancer "$persistent" "$transient" || code=1
FREED  exit $code
}
trap release EXIT
trap 'exit 1' HUP INT TERM
balancer '"none"' null
"""
ARRIVED = """curl -fsSn "$ES/_cluster/health?wait_for_no_relocating_shards=true&timeout=24h"
"""
CHANGED = """# Indices with other numbers of copies. Elasticsearch should neither place nor choose
# any, so index.routing.allocation.enable is none meanwhile, and given back at the end or a failure.
"""
UNSET = "its copies are of a number that is not set yet"
# why a file is not tried before: Elasticsearch would refuse it as things are
LATER_ONLY = "it needs room or nodes that the commands before it free"

BACK = (
    """#!/bin/sh
# Takes back what the plan beside it did. ES is the address of the cluster.
"""
    + REROUTE
)
TO_DO = "reroute 'metric=none' FILE\n"
LATER = (
    "# What needs room or a node that others leave: once all have arrived, and disks are read.\n"
    f"{ARRIVED}sleep 60\n{TO_DO}"
)


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return reroute commands, their undo and a script; without a placement, a table of shards."""
    # primaries do not change: only Elasticsearch elects them, when one fails
    native = native_of(cluster)
    if placement is None:
        return {path: encode_rows(native["shards"])}
    there, back, factors = _commands(cluster, placement)
    # a dry run refuses copies of numbers that are not set yet
    held = [one for one in there if _index_of(one) in factors]
    ready = [one for one in there if _index_of(one) not in factors]
    refused = _refused_for_now(cluster, ready)
    ready = [one for one in ready if one not in refused]
    # commands that need space which others free are in files of their own, to be run later
    first, *later = _rounds(cluster, cluster.placement, ready) + [refused][: bool(refused)]
    files = {path: encode_indented({"commands": first}, 1)}
    again = ""
    returns = _rounds(cluster, placement, back)
    for i, commands in enumerate(returns, start=1):
        undo = path.with_suffix(f".undo.{i}.json" if i > 1 else ".undo.json")
        files[undo] = encode_indented({"commands": commands}, 1)
        again += (LATER if i > 1 else TO_DO).replace("FILE", shlex.quote(f"./{undo.name}"))
    first_name = shlex.quote(f"./{path.name}")
    script = TO_DO.replace("FILE", first_name)
    tried = ""
    if factors:
        later = [[*held], *later]
    if factors or returns[1:]:
        ways_back = {of: Factor(*one[::-1]) for of, one in factors.items()}
        files[path.with_suffix(".undo.sh")] = f"{BACK}{_held(cluster, ways_back, again)}".encode()
    for i, commands in enumerate(later, start=2):
        file = path.with_suffix(f".{i}.json")
        files[file] = encode_indented({"commands": commands}, 1)
        name = shlex.quote(f"./{file.name}")
        script += LATER.replace("FILE", name)
        raised = any("allocate_replica" in one for one in commands)
        if factors and i == 2 and not raised:
            tried += f"reroute 'dry_run=true&explain=true&metric=none' {name}\n"
        else:
            why = UNSET if factors and i == 2 else LATER_ONLY
            tried += f"echo {shlex.quote(f'{file.name}: no dry run: {why}')} >&2\n"
    dry = SCRIPT.replace("FILE", first_name).replace("TRIED", tried)
    script = f"{dry}{_held(cluster, factors, script)}"
    return files | {path.with_suffix(".sh"): script.encode()}


def _index_of(command: Command) -> str:
    [of] = command.values()
    return str(of["index"])


def _held(cluster: Cluster, factors: Mapping[str, Factor], moves: str) -> str:
    """Return the part of a script that holds the balancer and indices with other numbers."""

    def line(index: str, body: bytes) -> str:
        return f"settings {shlex.quote(path_of(index))} {shlex.quote(body.decode())}"

    freed = [line(of, freed_only(enable_of(cluster, of))) for of in factors]
    before = [line(of, held_back(max(one))) for of, one in factors.items()]
    after = [line(of, let_go(one.after, enable_of(cluster, of))) for of, one in factors.items()]
    held = HELD.replace("FREED", "".join(f"  {one} || code=1\n" for one in freed))
    rows = [CHANGED.rstrip(), *before] if factors else []
    return "\n".join([held.rstrip(), *rows, moves.rstrip(), *after, ARRIVED])


def _rounds(
    cluster: Cluster, before: Placement, commands: Sequence[Command]
) -> list[list[Command]]:
    """Return commands in rounds: none needs space that is freed in its own round."""
    # Elasticsearch counts a leaving copy until it has left. Commands that never find space come
    # last.
    if "disk" not in cluster.dimensions:
        return [[*commands]]
    d = cluster.dimensions.index("disk")
    place = {name: n for n, name in enumerate(cluster.nodes.names)}
    row = {name: p for p, name in enumerate(cluster.partitions.names)}
    sizes = cluster.partitions.load.voter[:, d]
    held = before.node >= 0
    used = np.zeros(len(place))
    np.add.at(used, before.node[held], sizes[before.owner[held]])
    rounds: list[list[Command]] = []
    waiting = [*commands]
    while waiting:
        given, left = list[Command](), list[Command]()
        leaves = np.zeros(len(place))
        for command in waiting:
            [(kind, of)] = command.items()
            size = sizes[row[f"{of['index']}/{of['shard']}"]]
            if kind == "cancel":
                given.append(command)
                continue
            n = place[of.get("to_node") or of["node"]]
            if used[n] + size > cluster.nodes.capacity[n, d]:
                left.append(command)
                continue
            given.append(command)
            used[n] += size
            if kind == "move":
                leaves[place[of["from_node"]]] += size
        if not given:
            given, left = left, []
        rounds.append(given)
        used -= leaves
        waiting = left
    return rounds or [[]]


def _refused_for_now(cluster: Cluster, commands: Sequence[Command]) -> list[Command]:
    """Return the commands onto nodes that other copies of their shards are leaving already."""
    cancelled: dict[str, set[str]] = {}
    for command in commands:
        if of := command.get("cancel"):
            cancelled.setdefault(f"{of['index']}/{of['shard']}", set()).add(of["node"])
    coming, refused = under_way(cluster), []
    for command in commands:
        [of] = command.values()
        name = f"{of['index']}/{of['shard']}"
        if goes_where_one_leaves(command, coming.get(name, {}), cancelled.get(name, set())):
            refused.append(command)
    return refused


def _commands(
    cluster: Cluster, after: Placement
) -> tuple[list[Command], list[Command], Mapping[str, Factor]]:
    """Return commands, their undo, and the indices with other numbers of copies."""
    # Cancels are first, then moves, then new copies. The undo takes back only those copies that a
    # higher number asked for.
    faults = FaultList()
    factors = factors_of(faults, cluster)
    fewer: list[Command] = []
    more_again: list[Command] = []
    before, names = cluster.placement, cluster.nodes.names
    there: list[list[Command]] = [[], [], []]
    coming = under_way(cluster)
    changed = np.unique(before.owner[before.node != after.node])
    for p in changed.tolist():
        name = cluster.partitions.names[p]
        index, _, number = name.rpartition("/")
        if not (index and number.isdecimal()):
            faults.add(f"partition_names[{p}]", name, "must be index/number")
            continue
        own: dict[str, Any] = {"index": index, "shard": int(number)}
        slots = slice(int(before.first[p]), int(before.first[p + 1]))
        ours = before.node[slots].tolist()
        exchanged = exchanges(before.role[slots].tolist(), ours, after.node[slots].tolist())
        if index not in factors and any(len(one.joins) < len(one.leaves) for one in exchanged):
            new = [names[n] for n in after.node[slots].tolist() if n >= 0]
            message = f"would give up copies: it has {sum(n >= 0 for n in ours)}"
            faults.add(name, new, message)
            continue
        found = orders(own, exchanged, names, coming.get(name, {}), int(before.leader_node[p]))
        for all_, more in zip(there, found, strict=True):
            all_ += more
        if index in factors:
            joined = [one["allocate_replica"]["node"] for one in found[2]]
            left = [one["cancel"]["node"] for one in found[0]]
            fewer += [{"cancel": {**own, "node": n, "allow_primary": False}} for n in joined]
            more_again += [{"allocate_replica": {**own, "node": n}} for n in left]
    faults.raise_if_any()
    undo = [
        {"move": one | {"from_node": one["to_node"], "to_node": one["from_node"]}}
        for one in (command["move"] for command in reversed(there[1]))
    ]
    undo = [*fewer, *undo, *more_again]
    return [command for part in there for command in part], undo, factors


FORMAT = Format(
    name="elasticsearch",
    summary="Elasticsearch, OpenSearch: _cat/shards and _cat/allocation, _nodes, settings",
    suffixes=(".json",),
    recognises=recognises,
    read=read,
    encode=encode,
    enforces=True,
    carrier=CARRIER,
    left_out=left_out,
    hint=hint,
    asks=ASKS,
    words=WORDS,
    members=MEMBERS,
    stranded="copies are made of the primary, and these shards have none: bring back a node that "
    "holds a copy, restore a snapshot, or give data up by allocate_stale_primary or "
    "allocate_empty_primary of _cluster/reroute, and read again; a shard of a mounted snapshot "
    "waits for a node that may hold it: _cluster/allocation/explain says why none may",
)
