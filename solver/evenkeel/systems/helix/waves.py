"""Waves as Helix takes them: ideal states, in which who joins comes before who leaves goes."""

import shlex
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.carrier import Carrier, Change, Setting, Wave
from evenkeel.systems.folders.observing import Observed, Standing
from evenkeel.systems.helix.cluster import instances_in, leading_slot, partition_names
from evenkeel.systems.helix.output import Writer, led_by_state, payload_of
from evenkeel.systems.helix.preferences import (
    Held,
    Preferences,
    held_by,
    in_order,
    preferences_of,
    unlike,
)
from evenkeel.systems.helix.records import gather, lists_instances
from evenkeel.systems.helix.resources import resources

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan

SHELL = r"""
# ideal RESOURCE LINE: what REST calls an update adds to lists, only the tool replaces a record
ideal() {
  record=$here/record.json
  sed -n "$2{p;q;}" "$wave_file.records.jsonl" >"$record" || return 1
  helix-admin.sh --zkSvr "$ZOOKEEPER" --addIdealState "$CLUSTER" "$1" "$record"
}

# answer PATH FILE: what REST says of the cluster at a path
answer() { curl -fsSn --path-as-is "$REST/clusters/$CLUSTER/$1" >"$dump/$2" </dev/null; }

take() {
  [ -n "$CLUSTER" ] || { echo 'CLUSTER is not set' >&2; return 1; }
  for kind in IDEALSTATES EXTERNALVIEW STATEMODELDEFS CLUSTER PARTICIPANT RESOURCE; do
    mkdir "$dump/$kind" || return 1
  done
  # who is configured no more has no config that could be asked for
  answer instances instances.json || return 1
  while read -r path file name; do
    [ -z "$name" ] || grep -qF -e "$name" "$dump/instances.json" || continue
    answer "$path" "$file" || return 1
  done <"$here/records.txt"
}

# shellcheck disable=SC1090 # each wave has a file of its own
apply() { (set -e; wave_file=$1; . "$1.calls.sh") </dev/null; }

settle() { :; }
"""

SETTINGS = (
    Setting("CLUSTER", "", "name of the cluster"),
    Setting("REST", "http://localhost:8100/admin/v2", "address of Helix's REST, for reading"),
    Setting("ZOOKEEPER", "localhost:2181", "address of ZooKeeper, for `helix-admin.sh`"),
)

NOTES = (
    "`helix-admin.sh` and `curl` are on the `PATH`; `CLUSTER` names the cluster.",
    "Each move is two waves here: first who joins is added to the list, with one replica more; "
    "then, when the external view shows that it serves, who leaves is taken from it.",
    "Resources in FULL_AUTO become SEMI_AUTO, since Helix would place them by itself otherwise. "
    "`undo/` ends with the records as they were read, mode included.",
    "An ideal state is replaced as a whole: what somebody else changes in it meanwhile is lost.",
    "Only Helix's own commands were read, no live cluster was there to try: begin with one "
    "resource.",
)


def stages(wave: Wave) -> list[Wave]:
    """Divide a wave: who joins serves before who leaves goes, and before another leads."""
    first: list[Change] = []
    then: list[Change] = []
    for one in wave:
        partition, name, before, after, led, leads, restored, joins = one
        if joins:
            both = (*before, *joins)
            first.append(Change(partition, name, before, both, led, led, False, joins))
            # a partition that was short of replicas and lost none has nothing left to do
            if {*both} != {*after} or led != leads:
                then.append(Change(partition, name, both, after, led, leads, restored, ()))
        else:
            then.append(one)
    return [part for part in (first, then) if part]


def files(cluster: Cluster, waves: Sequence[Wave]) -> list[dict[str, bytes]]:
    """Return the ideal states that each wave changes, a line each, and calls for them.

    Raises
    ------
    InvalidInput
        If the cluster was not read from Helix, a partition would be left without replicas, a
        resource has no external view, or a name can be none in ZooKeeper.
    """
    payload = payload_of(cluster)
    faults = FaultList()
    groups, group = cluster.partitions.group_names, cluster.partitions.group.tolist()
    nodes = [*cluster.nodes.names, ""]
    touched = dict.fromkeys(groups[group[one.partition]] for wave in waves for one in wave)
    for name in touched:
        _check(faults, payload, name)
    writers = {name: Writer(payload, name) for name in touched}
    lists = preferences_of(cluster, payload["ideal_states"])
    names = cluster.partitions.names

    def hold(held: Held) -> None:
        held = led_by_state(cluster, writers, held)
        rows = zip(
            held.partition.tolist(), in_order(cluster, lists, held), held.leader.tolist(),
            strict=True,
        )  # fmt: skip
        for p, own, leader in rows:
            writers[groups[group[p]]].hold(names[p], own, nodes[leader])

    hold(_begun(cluster, writers, lists))
    found: list[dict[str, bytes]] = []
    for wave in waves:
        for one in wave:
            if max(one.after, default=-1) < 0:
                faults.add(one.name, [], "would be left without replicas")
        hold(_held_after(wave))
        changed = dict.fromkeys(groups[group[one.partition]] for one in wave)
        calls, lines = [], []
        for i, name in enumerate(changed, start=1):
            calls.append(f"ideal {shlex.quote(name)} {i}\n")
            lines.append(_line(faults, name, _wide(writers[name])))
        text = "".join(calls).encode("utf-8", "replace")
        found.append({"calls.sh": text, "records.jsonl": b"".join(lines)})
    faults.raise_if_any()
    return found


def _begun(cluster: Cluster, writers: Mapping[str, Writer], lists: Preferences) -> Held:
    """Return who holds, to begin with, the partitions that are not as their records have them."""
    groups = cluster.partitions.group_names
    touched = np.array([name in writers for name in groups], np.bool_)
    told = np.array([name in writers and writers[name].states_told for name in groups], np.bool_)
    group = cluster.partitions.group
    some = touched[group] & (told[group] | unlike(lists, cluster.placement))
    return held_by(cluster.placement, np.flatnonzero(some))


def _held_after(wave: Wave) -> Held:
    """Return who holds partitions after a wave."""
    first = np.zeros(len(wave) + 1, np.int64)
    np.cumsum([len(one.after) for one in wave], out=first[1:])
    return Held(
        np.array([one.partition for one in wave], np.int64),
        first,
        np.fromiter(chain.from_iterable(one.after for one in wave), np.int64),
        np.array([one.leads if one.leads in one.after else -1 for one in wave], np.int64),
    )


def _check(faults: FaultList, payload: Mapping[str, Any], name: str) -> None:
    """Note a name that can be none in ZooKeeper or is an option, and what nobody can look at."""
    if name in (".", "..") or "/" in name or name.startswith("-") or not name.isprintable():
        message = "can be no name in ZooKeeper, or no argument of a command"
        faults.add("resource", name, message)
    if name not in payload.get("states", {}):
        message = "has no external view: nobody could tell when a wave has ended"
        faults.add("resource", name, message)


def _wide(writer: Writer) -> Mapping[str, Any]:
    """Return an ideal state with as many replicas as its longest list; or the one of before."""
    record = writer.record
    if writer.as_before:
        return writer.before
    simple = record["simpleFields"]
    wanted, most = simple.get("REPLICAS", ""), max(writer.widths.values())
    if wanted.isdecimal() and int(wanted) < most:
        return record | {"simpleFields": simple | {"REPLICAS": f"{most}"}}
    return record


def _line(faults: FaultList, name: str, record: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(record) + b"\n"
    except UnicodeEncodeError as error:
        faults.add(name, error.object, "cannot be written as UTF-8")
        return b""


def beside(plan: "Plan") -> dict[str, bytes]:
    """Return which records guards ask for: their addresses, and the files that they go to."""
    payload = payload_of(plan.cluster)
    views = payload.get("states", {})
    lines = []
    for i, (name, record) in enumerate(payload["ideal_states"].items()):
        resource = f"resources/{_in_address(name)}"
        if name in views or record["simpleFields"]:
            lines.append(f"{resource}/idealState IDEALSTATES/{i}.json\n")
        if name in views:
            lines.append(f"{resource}/externalView EXTERNALVIEW/{i}.json\n")
    for i, name in enumerate(payload["state_models"]):
        lines.append(f"statemodeldefs/{_in_address(name)} STATEMODELDEFS/{i}.json\n")
    configs = payload.get("configs", {})
    if configs.get("cluster"):
        lines.append("configs CLUSTER/0.json\n")
    for kind, folder in (("instances", "PARTICIPANT"), ("resources", "RESOURCE")):
        for i, name in enumerate(configs.get(kind, ())):
            told = f" {_quoted(name)}" if kind == "instances" else ""
            lines.append(f"{kind}/{_in_address(name)}/configs {folder}/{i}.json{told}\n")
    return {"records.txt": "".join(lines).encode()}


def _quoted(name: str) -> str:
    """Return a name as lists of JSON have it."""
    return msgspec.json.encode(name).decode()


def _in_address(name: str) -> str:
    return quote(name, safe="").replace(".", "%2E")


def observe(documents: Sequence[Document]) -> Observed:
    """Return where external views have partitions; who does not serve yet is on its way.

    Raises
    ------
    InvalidInput
        Naming every problem with file, field and value.
    """
    faults = FaultList()
    records = gather(faults, documents)
    names = instances_in(records)
    alive = {name: records.is_live(name) for name in names}
    found = resources(faults, records, alive)
    faults.raise_if_any()
    rows = [(one, row) for one in found for row in one.rows.values()]
    standing = {}
    for name, (one, row) in zip(partition_names(found), rows, strict=True):
        slot = leading_slot(row, one.model.states[0]) if one.model.leads else -1
        # an ideal state alone does not tell what is
        copying = not row.states or not {*row.states} <= {*one.model.states}
        standing[name] = Standing(row.nodes, row.nodes[slot] if slot >= 0 else "", copying)
    return Observed(alive, standing)


def leader(change: Change) -> int:
    """Return who is in the top state after a change; -1 where nobody is."""
    return change.leads


CARRIER = Carrier(
    files, SHELL, SETTINGS, NOTES, leader, observe, lists_instances, stages=stages, beside=beside
)
