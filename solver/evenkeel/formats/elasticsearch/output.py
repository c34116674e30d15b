"""Commands of a reroute, there and back, and the script that gives them."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from evenkeel.formats.elasticsearch.exchanges import Command, exchanges, orders, under_way
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement

SCRIPT = """#!/bin/sh
# Moves shards. ES is the address of the cluster; curl takes passwords from ~/.netrc (-n).
# First a dry run, which changes nothing; then, with the word go behind it, the moves.
# The balancer is held, or it would take moves back; afterwards let it go on as it was before:
#   curl -fsSn -X PUT "$ES/_cluster/settings" -H 'Content-Type: application/json' \\
#     -d '{"persistent":{"cluster.routing.rebalance.enable":null}}'
set -eu
: "${ES:=http://localhost:9200}"
reroute() {
  curl -fsSn -X POST "$ES/_cluster/reroute?$1" -H 'Content-Type: application/json' \\
    --data-binary @FILE
}
reroute 'dry_run=true&explain=true&metric=none'
[ "${1-}" = go ] || exit 0
curl -fsSn -X PUT "$ES/_cluster/settings" -H 'Content-Type: application/json' \\
  -d '{"persistent":{"cluster.routing.rebalance.enable":"none"}}'
reroute 'metric=none'
"""


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return the commands of a reroute, the way back, and a script; unsolved, the table of shards.

    Which copy is the primary is not changed: only Elasticsearch chooses it, when one fails.

    Raises
    ------
    InvalidInput
        If the cluster was not read from Elasticsearch, a partition is not named index/number, or a
        copy would be given up.
    """
    native = cluster.native
    if not (isinstance(native, dict) and isinstance(native.get("shards"), list)):
        message = "was not read from Elasticsearch: there are no shards to write"
        raise InvalidInput([Fault("cluster.native", type(native).__name__, message)])
    if placement is None:
        return {path: _lines(native["shards"])}
    there, back = _commands(cluster, placement)
    script = SCRIPT.replace("FILE", shlex.quote(f"./{path.name}"))
    return {
        path: msgspec.json.format(msgspec.json.encode({"commands": there}), indent=1) + b"\n",
        path.with_suffix(".undo.json"): msgspec.json.format(
            msgspec.json.encode({"commands": back}), indent=1
        )
        + b"\n",
        path.with_suffix(".sh"): script.encode(),
    }


def _lines(rows: Sequence[Any]) -> bytes:
    """Return a table with a row per line, for people to read and compare."""
    try:
        return b"[\n" + b",\n".join(map(msgspec.json.encode, rows)) + b"\n]\n"
    except UnicodeEncodeError as error:
        raise InvalidInput([Fault("cluster", error.object, "cannot be written as UTF-8")]) from None


def _commands(cluster: Cluster, after: Placement) -> tuple[list[Command], list[Command]]:
    """Return the commands there and back: cancelled copies first, then moves, then new copies."""
    faults = FaultList()
    before, names = cluster.placement, cluster.nodes.names
    there: list[list[Command]] = [[], [], []]
    coming = under_way(cluster.native)
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
        told = exchanges(before.role[slots].tolist(), ours, after.node[slots].tolist())
        if any(len(one.joins) < len(one.leaves) for one in told):
            new = [names[n] for n in after.node[slots].tolist() if n >= 0]
            message = f"would give up copies: it has {sum(n >= 0 for n in ours)}"
            faults.add(name, new, message)
            continue
        for all_, more in zip(there, orders(own, told, names, coming.get(name, {})), strict=True):
            all_ += more
    faults.raise_if_any()
    undo = [
        {"move": one | {"from_node": one["to_node"], "to_node": one["from_node"]}}
        for one in (command["move"] for command in reversed(there[1]))
    ]
    return [command for part in there for command in part], undo
