"""The calls that bring a placement about, and those that take it back, as shell scripts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.systems.rabbitmq.calls import FUNCTIONS, QueueChange, check_texts, lines_of

HEAD = """#!/bin/sh
# Changes the members and leaders of quorum queues, one queue after the other. Run it with sh on any
# node of the cluster; it stops at the first call that fails, and may be run again: what is done
# already is not done twice.
set -u
"""


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return queues as they will be, the script that gets there, and the one that goes back.

    A path that ends in ``.sh`` is that of the script; the queues are left out then. Unsolved, the
    queues are as they were read.

    Raises
    ------
    InvalidInput
        If the cluster was not read from RabbitMQ, a queue would be left without members, or a name
        cannot stand in a command.
    """
    native = cluster.native
    if not (isinstance(native, dict) and {"queues", "keys"} <= native.keys()):
        message = "was not read from RabbitMQ: there are no queues to write"
        raise InvalidInput([Fault("cluster.native", type(native).__name__, message)])
    if placement is None:
        return {path: _rows(native["queues"])}
    there, back, after = _changes(cluster, placement, native)
    script = path if path.suffix == ".sh" else path.with_suffix(".sh")
    files = {} if path == script else {path: _rows(after)}
    return files | {
        script: _script(there),
        script.with_suffix(".undo.sh"): _script(back),
    }


def _rows(rows: Sequence[Any]) -> bytes:
    """Return queues with one on each line, for people to read and compare."""
    try:
        return b"[\n" + b",\n".join(map(msgspec.json.encode, rows)) + b"\n]\n"
    except (UnicodeEncodeError, OverflowError) as error:
        message = f"cannot be written: {error}"
        raise InvalidInput([Fault("cluster.native", "queues", message)]) from None


def _changes(
    cluster: Cluster, after: Placement, native: Mapping[str, Any]
) -> tuple[list[QueueChange], list[QueueChange], list[dict[str, Any]]]:
    """Return the changes there and back, and the queues as they are then."""
    faults = FaultList()
    before, names = cluster.placement, cluster.nodes.names
    usual = native.get("vhost", "/")
    rows = {(row.get("vhost") or usual, row["name"]): i for i, row in enumerate(native["queues"])}
    queues = list(native["queues"])
    there: list[QueueChange] = []
    back: list[QueueChange] = []
    down = {names[n] for n in np.flatnonzero(~cluster.nodes.alive).tolist()}
    moved = np.unique(before.owner[before.node != after.node])
    led = np.flatnonzero(before.leader_node != after.leader_node)
    for p in np.union1d(moved, led).tolist():
        vhost, queue = native["keys"][cluster.partitions.names[p]]
        slots = slice(int(before.first[p]), int(before.first[p + 1]))
        old = [names[n] for n in before.node[slots].tolist() if n >= 0]
        new = [names[n] for n in after.node[slots].tolist() if n >= 0]
        if not new:
            faults.add(cluster.partitions.names[p], [], "would be left without members")
        was, leads = (int(one.leader_node[p]) for one in (before, after))
        joins = [one for one in new if one not in old]
        leaves = [one for one in old if one not in new]
        then = names[leads] if leads >= 0 and leads != was else ""
        first = names[was] if was >= 0 and leads != was else ""
        if not (joins or leaves or then):
            continue
        check_texts(faults, cluster.partitions.names[p], [vhost, queue, *joins, *leaves, then])
        lost = [one for one in leaves if one in down]
        there.append(QueueChange(vhost, queue, joins, leaves, then, lost))
        if not lost:  # nobody joins a node that is down: what was mended stays as it is then
            back.append(QueueChange(vhost, queue, leaves, joins, first))
        i = rows[vhost, queue]
        queues[i] = queues[i] | {"members": new, "leader": then or queues[i].get("leader")}
        if isinstance(queues[i].get("online"), list):
            gone = {*leaves}
            stay = [one for one in queues[i]["online"] if one not in gone]
            queues[i]["online"] = stay + joins
    faults.raise_if_any()
    return there, back[::-1], queues


def _script(changes: Sequence[QueueChange]) -> bytes:
    return (HEAD + FUNCTIONS + "".join(map(lines_of, changes))).encode()
