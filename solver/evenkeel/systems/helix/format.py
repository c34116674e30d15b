"""Apache Helix: the records that it keeps in ZooKeeper, in; ideal states, out.

References
----------
Apache Helix, ``ZNRecord``, ``IdealState``, ``ExternalView``, ``InstanceConfig``, ``ClusterConfig``
and ``ResourceConfig``.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.carrier import Carrier, Change, Orders, Wave, stem
from evenkeel.systems.folders.form import Command, Setting, literal
from evenkeel.systems.folders.observing import Observed, Standing
from evenkeel.systems.helix.cluster import (
    instances_in,
    leading_slot,
    left_out,
    partition_names,
    read,
)
from evenkeel.systems.helix.output import (
    Held,
    Preferences,
    Writer,
    encode,
    held_by,
    in_order,
    led_by_state,
    payload_of,
    preferences_of,
    unlike,
)
from evenkeel.systems.helix.records import gather, hint, lists_instances, recognises
from evenkeel.systems.helix.resources import resources
from evenkeel.systems.registry import Format

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan


SETTINGS = (
    Setting("CLUSTER", "", "name of the cluster"),
    Setting("REST", "http://localhost:8100/admin/v2", "address of Helix's REST, for reading"),
    Setting("ZOOKEEPER", "localhost:2181", "address of ZooKeeper, for `helix-admin.sh`"),
)

NOTES = (
    "`helix-admin.sh` and `curl` are on the `PATH`; `CLUSTER` names the cluster.",
    "Each move is two waves here: the first adds the new instance to the list; the second removes "
    "the old one, when the external view shows that the new one serves. While lists differ in "
    "length, `REPLICAS` is `ANY_LIVEINSTANCE`, since Helix's tool refuses other records; its "
    "controller goes by the lists.",
    "Resources in FULL_AUTO become SEMI_AUTO, since Helix would place them by itself otherwise. "
    "`undo/` ends with the records as they were read, mode included.",
    "An ideal state is replaced as a whole: changes by others in the meantime are lost.",
    "Such folders were run on Helix 1.4.3, with a stand-in for its REST.",
)


def stages(cluster: Cluster, waves: Sequence[Wave]) -> list[Wave]:
    """Divide each wave in two; no resource without a state of a leader changes it."""
    payload, groups = payload_of(cluster), cluster.partitions.group_names
    leads = [Writer(payload, name).model.leads for name in groups]
    group = cluster.partitions.group.tolist()

    def stated(one: Change) -> Change:
        return one if leads[group[one.partition]] else one._replace(led=-1, leads=-1)

    changes = [[stated(one) for one in wave] for wave in waves]
    some = [
        [one for one in wave if one.joins or one.leaves or one.led != one.leads or one.restored]
        for wave in changes
    ]
    return [part for wave in some for part in _divided(wave)]


def _divided(wave: Wave) -> list[Wave]:
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


def orders(cluster: Cluster, waves: Sequence[Wave]) -> list[Orders]:
    """Return the ideal states that each wave changes, a file each, and calls for them.

    What REST calls an update adds to lists; only the tool replaces a record.
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
    found: list[Orders] = []
    for number, wave in enumerate(waves, start=1):
        for one in wave:
            if max(one.after, default=-1) < 0:
                faults.add(one.name, [], "would be left without replicas")
        hold(_held_after(wave))
        changed = dict.fromkeys(groups[group[one.partition]] for one in wave)
        commands, files = [], {}
        for i, name in enumerate(changed, start=1):
            file = f"{stem(number, len(waves))}{i}.record.json"
            own = writers[name]
            files[file] = _line(faults, name, own.before if own.as_before else own.accepted)
            run: list[str | list[str]] = ["helix-admin.sh", "--zkSvr", "${ZOOKEEPER}"]
            run += ["--addIdealState", "${CLUSTER}", literal(name), "${FILE}"]
            commands.append(Command(run, file=file))
        found.append(Orders(commands, files))
    faults.raise_if_any()
    return found


def _begun(cluster: Cluster, writers: Mapping[str, Writer], lists: Preferences) -> Held:
    """Return who holds, to begin with, the partitions that are not as their records have them."""
    groups = cluster.partitions.group_names
    touched = np.array([name in writers for name in groups], np.bool_)
    named = np.array([name in writers and writers[name].states_named for name in groups], np.bool_)
    group = cluster.partitions.group
    some = touched[group] & (named[group] | unlike(lists, cluster.placement))
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
    """Note names that ZooKeeper or a command refuses, and resources without an external view."""
    if name in (".", "..") or "/" in name or name.startswith("-") or not name.isprintable():
        message = "can be no name in ZooKeeper, or no argument of a command"
        faults.add("resource", name, message)
    if name not in payload.get("states", {}):
        message = "external view missing: the end of a wave cannot be detected"
        faults.add("resource", name, message)


def _line(faults: FaultList, name: str, record: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(record) + b"\n"
    except UnicodeEncodeError as error:
        faults.add(name, error.object, "cannot be written as UTF-8")
        return b""


def look(plan: "Plan") -> list[Command]:
    """Return what asks for the records that a plan was made from."""
    payload = payload_of(plan.cluster)
    views = payload.get("states", {})
    found = [_answer("instances", "instances.json")]
    for i, (name, record) in enumerate(payload["ideal_states"].items()):
        resource = f"resources/{_in_address(name)}"
        if name in views or record["simpleFields"]:
            found.append(_answer(f"{resource}/idealState", f"IDEALSTATES/{i}.json"))
        if name in views:
            found.append(_answer(f"{resource}/externalView", f"EXTERNALVIEW/{i}.json"))
    for i, name in enumerate(payload["state_models"]):
        found.append(_answer(f"statemodeldefs/{_in_address(name)}", f"STATEMODELDEFS/{i}.json"))
    configs = payload.get("configs", {})
    if configs.get("cluster"):
        found.append(_answer("configs", "CLUSTER/0.json"))
    for kind, folder in (("instances", "PARTICIPANT"), ("resources", "RESOURCE")):
        for i, name in enumerate(configs.get(kind, ())):
            ask = _answer(f"{kind}/{_in_address(name)}/configs", f"{folder}/{i}.json")
            if kind == "instances":
                # one that is configured no more has no config that could be asked for
                ask.where = ["instances.json", msgspec.json.encode(name).decode()]
            found.append(ask)
    return found


def _answer(path: str, file: str) -> Command:
    """Return what asks REST for something of the cluster."""
    address = f"${{REST}}/clusters/${{CLUSTER}}/{path}"
    return Command(["curl", "-fsSn", "--path-as-is", address], save=file)


def _in_address(name: str) -> str:
    return quote(name, safe="").replace(".", "%2E")


def observe(documents: Sequence[Document]) -> Observed:
    """Return where external views have partitions; who does not serve yet is on its way."""
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
    """Return who is in the top state after a change; -1 where none is."""
    return change.leads


CARRIER = Carrier(
    orders, look, settings=SETTINGS, notes=NOTES, leader=leader, observe=observe,
    lists_nodes=lists_instances, stages=stages,
)  # fmt: skip


FORMAT = Format(
    name="helix",
    summary="Helix: ideal states, external views, and instance, cluster and resource configs",
    suffixes=(".json", ".zip"),
    recognises=recognises,
    read=read,
    encode=encode,
    carrier=CARRIER,
    left_out=left_out,
    hint=hint,
)
