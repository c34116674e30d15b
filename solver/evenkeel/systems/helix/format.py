"""The Helix format: read the records that Helix keeps in ZooKeeper, write ideal states.

Ideal states are written as they were read, or with a placement for Helix to carry out. In a
preference list, replicas that stay keep their order, new replicas follow them, and the leader comes
first.

References
----------
Apache Helix, ``ZNRecord``, ``IdealState``, ``ExternalView``, ``InstanceConfig``, ``ClusterConfig``
and ``ResourceConfig``.
"""

import io
import zipfile
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NotRequired, TypedDict
from urllib.parse import quote

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import rows_alone
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Placement
from evenkeel.model.runtime.memoize import memoize
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.carrier import Carrier, Change, Observed, Orders, Standing, Wave, stem
from evenkeel.systems.folders.form import Command, Setting, literal
from evenkeel.systems.helix import pinot
from evenkeel.systems.helix.cluster import (
    instances_in,
    leading_slot,
    left_out,
    partition_names,
    read,
)
from evenkeel.systems.helix.records import gather, hint, lists_instances, recognises
from evenkeel.systems.helix.resources import MODELS, NOT_SERVED, Model, resources, topology_of
from evenkeel.systems.json_text import encode_indented
from evenkeel.systems.payload import check_names, payload_of
from evenkeel.systems.registry import Format

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan

EMPTY: list[str] = []


class Preferences(NamedTuple):
    """The lists of all partitions, one after the other, as the records have them."""

    first: NDArray[np.int64]  # where each list begins, (P + 1,)
    node: NDArray[np.int32]  # who stands in them, by index; -1 for what is no node, (L,)


class Holders(NamedTuple):
    """Who holds some partitions, and who leads them."""

    partition: NDArray[np.integer]
    first: NDArray[np.int64]
    node: NDArray[np.integer]
    leader: NDArray[np.integer]


def rows_by_group(cluster: Cluster) -> dict[str, list[int]]:
    """Return the partitions of each resource."""
    group, names = cluster.partitions.group, cluster.partitions.group_names
    rows = np.argsort(group, kind="stable").tolist()
    ends = np.cumsum(np.bincount(group, minlength=len(names))).tolist()
    return {
        name: rows[begin:end] for name, begin, end in zip(names, [0, *ends], ends, strict=False)
    }


def key_in(record: Mapping[str, Any], partition: str) -> str:
    """Return what an ideal state calls a partition: without the resource that sets it apart."""
    if partition not in record["listFields"] and partition not in record["mapFields"]:
        return partition.removeprefix(f"{record['id']}/")
    return partition


def preferences_of(cluster: Cluster, ideal_states: Mapping[str, Any]) -> Preferences:
    """Return the lists that a cluster was read from; they are the same for both ways of a plan."""
    return memoize(
        cluster.partitions, "preference lists", lambda: _read(cluster, ideal_states),
        cluster.nodes.names, ideal_states,
    )  # fmt: skip


def _read(cluster: Cluster, ideal_states: Mapping[str, Any]) -> Preferences:
    names, found = cluster.partitions.names, [EMPTY] * len(cluster.partitions)
    for resource, rows in rows_by_group(cluster).items():
        record = ideal_states[resource]
        lists = record["listFields"]
        for p in rows:
            listed = lists.get(names[p])
            found[p] = lists.get(key_in(record, names[p]), EMPTY) if listed is None else listed
    first = np.zeros(len(found) + 1, np.int64)
    np.cumsum([*map(len, found)], out=first[1:])
    number = {name: n for n, name in enumerate(cluster.nodes.names)}
    node = np.fromiter(map(number.get, chain.from_iterable(found), repeat(-1)), np.int32)
    return Preferences(first, node)


def held_by(placement: Placement, partition: NDArray[np.integer]) -> Holders:
    """Return who holds and leads partitions in a placement."""
    rows = rows_alone(placement, partition)
    return Holders(partition, rows.first, rows.node, rows.leader_node)


def unlike(lists: Preferences, placement: Placement) -> NDArray[np.bool_]:
    """Return the partitions whose holders or leader differ from their lists, (P,)."""
    there = placement.node >= 0
    node, owner = placement.node[there], placement.owner[there]
    width = np.bincount(owner, minlength=len(placement))
    found: NDArray[np.bool_] = np.diff(lists.first) != width
    begin = np.cumsum(width) - width
    at = np.arange(len(node)) - begin[owner]
    same = ~found[owner]
    differs = lists.node[lists.first[owner[same]] + at[same]] != node[same]
    found[owner[same][differs]] = True
    leader = placement.leader_node
    led = np.flatnonzero((leader >= 0) & ~found & (width > 0))
    found[led[node[begin[led]] != leader[led]]] = True
    return found


def in_order(cluster: Cluster, lists: Preferences, held: Holders) -> list[list[str]]:
    """Return the instances that hold partitions in the order in which they are to be listed."""
    there = held.node >= 0
    row = np.repeat(np.arange(len(held.partition)), np.diff(held.first))[there]
    node = held.node[there].astype(np.int64)
    own, line = np.unique(held.partition, return_inverse=True)
    start, length = lists.first[own], np.diff(lists.first)[own]
    which = np.repeat(np.arange(len(own)), length)
    at = np.arange(len(which)) + (start - np.cumsum(length) + length)[which]
    # a number for each pair: a missing node gets an unused one
    span = len(cluster.nodes) + 1
    known = which * span + lists.node[at]
    by_number = np.argsort(known, kind="stable")
    asked = line[row] * span + node
    found = np.minimum(np.searchsorted(known, asked, sorter=by_number), max(len(known) - 1, 0))
    place = np.arange(len(node)) + len(lists.node)
    if len(known):
        listed = by_number[found]
        place = np.where(known[listed] == asked, listed, place)
    place[node == held.leader[row]] = -1
    names = [*cluster.nodes.names]
    ordered = [names[n] for n in node[np.lexsort((place, row))].tolist()]
    ends = np.cumsum(np.bincount(row, minlength=len(held.partition))).tolist()
    return [ordered[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


Mode = Literal["SEMI_AUTO", "CUSTOMIZED"]
Raw = dict[str, Any]

FOLDER = "IDEALSTATES"
# the time of every member of an archive, so that the same input gives the same bytes
EPOCH = (1980, 1, 1, 0, 0, 0)


def encode(
    cluster: Cluster,
    placement: Placement | None,
    path: Path,
    *,
    mode: Mode | None = None,
    resources: Literal["changed", "all"] = "changed",
) -> dict[Path, bytes]:
    """Return ideal states, and with a placement beside them those of before."""
    # They are a list of records, or, where the path ends in ``.zip``, the files of the folder
    # ``IDEALSTATES``. A resource is written in the mode it has, CUSTOMIZED with states of replicas
    # and others as SEMI_AUTO with lists of instances, unless ``mode`` says otherwise: in FULL_AUTO
    # Helix places by itself.
    payload = native_of(cluster)
    before: dict[str, Raw] = payload["ideal_states"]
    if placement is None:
        return {path: _packed([*before.values()], path)}
    _check_groups(cluster)
    _check_kept(cluster, placement)
    after = dict(before)
    names, instances = cluster.partitions.names, [*cluster.nodes.names, ""]
    writers = {name: Writer(payload, name, mode) for name in cluster.partitions.group_names}
    held = led_by_state(cluster, writers, held_by(placement, np.arange(len(placement))))
    lists = in_order(cluster, preferences_of(cluster, before), held)
    moved = _moved(cluster, placement)
    passed = cluster.placement.leader_node != placement.leader_node
    for name, rows in rows_by_group(cluster).items():
        own = writers[name]
        if resources == "all" or moved[rows].any() or (own.model.leads and passed[rows].any()):
            for p, leader in zip(rows, held.leader[rows].tolist(), strict=True):
                own.hold(names[p], lists[p], instances[leader])
            after[name] = own.accepted
    chosen = [name for name in before if resources == "all" or after[name] != before[name]]
    undo = path.with_suffix(f".undo{path.suffix}")
    return {
        path: _packed([after[name] for name in chosen], path),
        undo: _packed([before[name] for name in chosen], path),
    }


class Record(TypedDict):
    """A ZNRecord, as it was read."""

    id: str
    simpleFields: dict[str, str]
    mapFields: dict[str, dict[str, str]]
    listFields: dict[str, list[str]]


class Payload(TypedDict):
    """What was read beside a cluster."""

    ideal_states: dict[str, Record]
    state_models: dict[str, tuple[list[str], bool]]
    states: NotRequired[dict[str, dict[str, dict[str, str]]]]
    configs: NotRequired[dict[str, Any]]


def native_of(cluster: Cluster) -> Mapping[str, Any]:
    """Return the records that a cluster was read from, or raise."""
    message = "was not read from Helix's records: there are no ideal states to write"
    native: Mapping[str, Any] = payload_of(cluster, Payload, message)
    return native


def _check_groups(cluster: Cluster) -> None:
    """Raise for resources without a record, or without the definition of its states."""
    native = native_of(cluster)
    defined = {*MODELS, *native["state_models"]}
    check_names(cluster, groups={
        name for name, record in native["ideal_states"].items()
        if record["simpleFields"].get("STATE_MODEL_DEF_REF", "") in defined
    })  # fmt: skip


def _check_kept(cluster: Cluster, placement: Placement) -> None:
    faults = FaultList()
    count = len(placement)
    kept = np.bincount(placement.owner[placement.node >= 0], minlength=count)
    had = cluster.placement.owner[cluster.placement.node >= 0]
    emptied = (kept == 0) & (np.bincount(had, minlength=count) > 0)
    for p in np.flatnonzero(emptied).tolist():
        faults.add(cluster.partitions.names[p], [], "would be left without replicas")
    faults.raise_if_any()


def _moved(cluster: Cluster, placement: Placement) -> NDArray[np.bool_]:
    """Return the partitions that others hold in a placement than do now, (P,)."""
    nodes, found = len(cluster.nodes), np.zeros(len(placement), np.bool_)

    def pairs(one: Placement) -> NDArray[np.int64]:
        there = one.node >= 0
        numbers: NDArray[np.int64] = one.owner[there].astype(np.int64) * nodes + one.node[there]
        return numbers

    found[np.setxor1d(pairs(cluster.placement), pairs(placement)) // max(nodes, 1)] = True
    return found


class Writer:
    """Writes the ideal state of one resource."""

    def __init__(self, payload: Mapping[str, Any], name: str, mode: Mode | None = None) -> None:
        self.before: Raw = payload["ideal_states"][name]
        self.states: Mapping[str, Mapping[str, str]] = payload.get("states", {}).get(name, {})
        stated = self.before["simpleFields"].get("STATE_MODEL_DEF_REF", "")
        given = payload["state_models"].get(stated)
        self.model = MODELS[stated] if given is None else Model(tuple(given[0]), bool(given[1]))
        simple = dict(self.before["simpleFields"])
        was = simple.get("REBALANCE_MODE") or simple.get("IDEAL_STATE_MODE", "")
        custom = (mode or was.upper()) == "CUSTOMIZED"
        if simple.get("REBALANCE_MODE") or "IDEAL_STATE_MODE" not in simple:
            simple["REBALANCE_MODE"] = "CUSTOMIZED" if custom else "SEMI_AUTO"
        if "IDEAL_STATE_MODE" in simple:  # the older field, in whose words semi-automatic is AUTO
            simple["IDEAL_STATE_MODE"] = "CUSTOMIZED" if custom else "AUTO"
        # the record, with the holders that were set last
        self.record: Raw = {
            "id": self.before["id"],
            "simpleFields": simple,
            "mapFields": dict(self.before["mapFields"]),
            "listFields": dict(self.before["listFields"]),
        }
        # by how many each of them is held
        self.widths = {name: len(own) for name, own in self.before["listFields"].items()}
        # whether it has states of replicas, which follow from more than a list
        self.states_named = custom or bool(self.before["mapFields"])

        self._custom = custom
        self._changed: set[str] = set()

    @property
    def as_before(self) -> bool:
        """Whether all partitions are held as they were."""
        return not self._changed

    @property
    def accepted(self) -> Raw:
        """The record, as Helix accepts it while lists differ in length."""
        # Its tool refuses a record in SEMI_AUTO of which a list has another length than
        # ``REPLICAS``, except for ``ANY_LIVEINSTANCE``; its controller goes by the lists alone. In
        # CUSTOMIZED it is the number of all partitions, if they have another one than before.
        simple, widths = self.record["simpleFields"], {*self.widths.values()}
        wanted = simple.get("REPLICAS", "")
        if self._custom:
            before, widths = (
                {*map(len, one["mapFields"].values())} for one in (self.before, self.record)
            )
            if widths == before or len(widths) > 1:
                return self.record
        if not wanted.isdecimal() or widths == {int(wanted)}:
            return self.record
        named = f"{widths.pop()}" if len(widths) == 1 else "ANY_LIVEINSTANCE"
        changed: Raw = {**self.record, "simpleFields": {**simple, "REPLICAS": named}}
        return changed

    def hold(self, partition: str, nodes: list[str], leader: str) -> None:
        """Have a partition be held like this, by instances in the order to be listed."""
        lists, states = self.before["listFields"], self.before["mapFields"]
        partition = key_in(self.before, partition)
        self.widths[partition] = len(nodes)
        same = True
        if not self._custom or partition in lists:
            self.record["listFields"][partition] = nodes
            same = lists.get(partition) == nodes
        if self._custom or partition in states:
            found = self._states(leader, partition, nodes)
            self.record["mapFields"][partition] = found
            same &= states.get(partition) == found
        (self._changed.discard if same else self._changed.add)(partition)

    def _states(self, leader: str, partition: str, nodes: Sequence[str]) -> dict[str, str]:
        """Return the state of each replica; who joins takes that of one that left."""
        model = self.model
        viewed = self.states.get(partition, {})
        before = stated = self.before["mapFields"].get(partition, {})
        # a CUSTOMIZED ideal state is the target, even where the present placement differs
        before = viewed | before if self._custom else viewed or before
        top = model.states[0] if model.leads else ""
        second = model.states[min(1, len(model.states) - 1)] if model.leads else model.states[0]
        free = [
            state
            for node, state in sorted(before.items())
            if node not in nodes
            and state != top
            and (state in model.states or (self._custom and stated.get(node) in NOT_SERVED))
        ]
        led = model.leads and leader != ""
        found = {nodes[0]: top} if led else {}
        for node in nodes[led:]:
            state = before.get(node, "")
            if self._custom and stated.get(node) in NOT_SERVED:
                found[node] = state  # it is meant to serve nothing, whatever else moves
                continue
            if state == top or state in NOT_SERVED or state not in model.states:
                state = free.pop(0) if free else second
            found[node] = state
        return found


def led_by_state(cluster: Cluster, writers: Mapping[str, Writer], held: Holders) -> Holders:
    """Return the holders of partitions, without a leader where no state is a leader's."""
    groups = cluster.partitions.group_names
    leads = np.array([name in writers and writers[name].model.leads for name in groups], np.bool_)
    stated = leads[cluster.partitions.group[held.partition]]
    return held._replace(leader=np.where(stated, held.leader, -1))


def _packed(records: Sequence[Raw], path: Path) -> bytes:
    """Return records as one list, or as the files of an archive."""
    parts = [(record["id"], pinot.as_answer(record)) for record in records]
    if path.suffix != ".zip":
        return encode_indented([record for _, record in parts], 2)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        if not records:
            archive.writestr(zipfile.ZipInfo(f"{FOLDER}.json", EPOCH), b"[]\n")
        for name, record in parts:
            text = encode_indented(record, 2)
            # a resource may be called anything: no name leads out of the folder
            member = zipfile.ZipInfo(f"{FOLDER}/{_in_address(name)}.json", EPOCH)
            archive.writestr(member, text, zipfile.ZIP_DEFLATED)
    return file.getvalue()


SETTINGS = (
    Setting("CLUSTER", "", "name of the cluster"),
    Setting("REST", "http://localhost:8100/admin/v2", "address of Helix's REST, for reading"),
    Setting("ZOOKEEPER", "localhost:2181", "address of ZooKeeper, for `helix-admin.sh`"),
    Setting("CONTROLLER", "http://localhost:9000", "address of Pinot's controller, if it is Pinot"),
)

NOTES = (
    "`helix-admin.sh` and `curl` are on the `PATH`; `CLUSTER` names the cluster. Tables of Pinot "
    "are read and written by its controller's `/zk/get` and `/zk/put`, with `curl` alone.",
    "Each move is two waves here: the first adds the new instance to the list; the second removes "
    "the old one, when the external view shows that the new one serves. While lists differ in "
    "length, `REPLICAS` is `ANY_LIVEINSTANCE`, since Helix's tool refuses other records; its "
    "controller goes by the lists.",
    "Resources in FULL_AUTO become SEMI_AUTO, since Helix would place them by itself otherwise. "
    "`undo/` ends with the records as they were read, mode included.",
    "An ideal state is replaced as a whole: changes by others in the meantime are lost.",
    "Such folders were run on Helix 1.4.3, with a stand-in for its REST; those of Pinot's tables "
    "were not run on Pinot.",
)


def stages(cluster: Cluster, waves: Sequence[Wave]) -> list[Wave]:
    """Divide each wave in two; no resource without a state of a leader changes it."""
    _check_groups(cluster)
    payload, groups = native_of(cluster), cluster.partitions.group_names
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
        partition, name, before, after, led, leads, restored, joins, *_ = one
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
    """Return the ideal states that each wave changes, a file each, and calls for them."""
    # what REST calls an update adds to lists; only the tool replaces a record
    payload = native_of(cluster)
    faults = FaultList()
    groups, group = cluster.partitions.group_names, cluster.partitions.group.tolist()
    nodes = [*cluster.nodes.names, ""]
    touched = dict.fromkeys(groups[group[one.partition]] for wave in waves for one in wave)
    for name in touched:
        _check(faults, payload, name)
    writers = {name: Writer(payload, name) for name in touched}
    lists = preferences_of(cluster, payload["ideal_states"])
    names = cluster.partitions.names

    def hold(held: Holders) -> None:
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
            commands.append(Command(_replacing(own.before), file=file))
        found.append(Orders(commands, files))
    faults.raise_if_any()
    return found


def _replacing(record: Raw) -> list[str | list[str]]:
    """Return the arguments of what replaces an ideal state by a file."""
    if is_pinots(record):
        address = _of_controller("put", f"IDEALSTATES/{_in_address(record['id'])}")
        return ["curl", "-fsS", "-X", "PUT", "-H", "Content-Type: application/json",
                "--data-binary", "@${FILE}", address]  # fmt: skip
    run: list[str | list[str]] = ["helix-admin.sh", "--zkSvr", "${ZOOKEEPER}"]
    return [*run, "--addIdealState", "${CLUSTER}", literal(record["id"]), "${FILE}"]


def is_pinots(record: Raw) -> bool:
    """Return whether an ideal state is that of a table of Pinot."""
    return bool(record["simpleFields"].get("STATE_MODEL_DEF_REF") == pinot.SEGMENTS)


def _begun(cluster: Cluster, writers: Mapping[str, Writer], lists: Preferences) -> Holders:
    """Return who holds, to begin with, the partitions that are not as their records have them."""
    groups = cluster.partitions.group_names
    touched = np.array([name in writers for name in groups], np.bool_)
    named = np.array([name in writers and writers[name].states_named for name in groups], np.bool_)
    group = cluster.partitions.group
    some = touched[group] & (named[group] | unlike(lists, cluster.placement))
    return held_by(cluster.placement, np.flatnonzero(some))


def _held_after(wave: Wave) -> Holders:
    """Return who holds partitions after a wave."""
    first = np.zeros(len(wave) + 1, np.int64)
    np.cumsum([len(one.after) for one in wave], out=first[1:])
    return Holders(
        np.array([one.partition for one in wave], np.int64),
        first,
        np.fromiter(chain.from_iterable(one.after for one in wave), np.int64),
        np.array([one.leads if one.leads in one.after else -1 for one in wave], np.int64),
    )


CONSUMED = (
    "has segments that are being consumed: Pinot changes the ideal state meanwhile, and a folder "
    "replaces it as a whole. Pause it (POST /tables/NAME/pauseConsumption) and read it again, or "
    "leave it with --pin"
)


def _check(faults: FaultList, payload: Mapping[str, Any], name: str) -> None:
    """Note names that ZooKeeper or a command refuses, and resources without an external view."""
    if name in (".", "..") or "/" in name or name.startswith("-") or not name.isprintable():
        message = "can be no name in ZooKeeper, or no argument of a command"
        faults.add("resource", name, message)
    if name not in payload.get("states", {}):
        message = "external view missing: the end of a wave cannot be detected"
        faults.add("resource", name, message)
    record = payload["ideal_states"][name]
    if record["simpleFields"] == pinot.STATED:
        message = (
            "only states are known, and a record is replaced as a whole: give what /zk/get prints"
        )
        faults.add("resource", name, message)
    if any(pinot.CONSUMING in row.values() for row in record["mapFields"].values()):
        faults.add("resource", name, CONSUMED)


def _line(faults: FaultList, name: str, record: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(record) + b"\n"
    except UnicodeEncodeError as error:
        faults.add(name, error.object, "cannot be written as UTF-8")
        return b""


def look(plan: "Plan") -> list[Command]:
    """Return what asks for the records that a plan was made from."""
    payload = native_of(plan.cluster)
    views = payload.get("states", {})
    if any(map(is_pinots, payload["ideal_states"].values())):
        return _look_at_tables(payload)
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
    known = configs.get("instances", {})
    # of those that are to join, too, if any was configured
    instances = [*known, *(one for one in plan.cluster.nodes.names if known and one not in known)]
    for kind, folder, names in (
        ("instances", "PARTICIPANT", instances),
        ("resources", "RESOURCE", configs.get("resources", ())),
    ):
        for i, name in enumerate(names):
            ask = _answer(f"{kind}/{_in_address(name)}/configs", f"{folder}/{i}.json")
            if kind == "instances":
                # one that is configured no more has no config that could be asked for
                ask.where = ["instances.json", msgspec.json.encode(name).decode()]
            found.append(ask)
    return found


def _look_at_tables(payload: Mapping[str, Any]) -> list[Command]:
    """Return what asks Pinot's controller for records."""
    asked = [("getChildren", "CONFIGS/PARTICIPANT", "PARTICIPANT/all.json"),
             ("getChildren", "LIVEINSTANCES", "LIVEINSTANCES/all.json")]  # fmt: skip
    for i, name in enumerate(payload["ideal_states"]):
        there = ["IDEALSTATES", "EXTERNALVIEW"][: 1 + (name in payload.get("states", {}))]
        asked += [("get", f"{kind}/{_in_address(name)}", f"{kind}/{i}.json") for kind in there]
    return [
        Command(["curl", "-fsS", "--path-as-is", _of_controller(verb, path)], save=file)
        for verb, path, file in asked
    ]


def _of_controller(verb: str, path: str) -> str:
    """Return the address by which Pinot's controller reads or replaces a record."""
    return f"${{CONTROLLER}}/zk/{verb}?path=/${{CLUSTER}}/{path}"


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
    domains, _ = topology_of(faults, records, names, [*alive.values()])
    faults.raise_if_any()
    rows = [(one, row) for one in found for row in one.rows.values()]
    standing = {}
    for name, (one, row) in zip(partition_names(found), rows, strict=True):
        slot = leading_slot(row, one.model.states[0]) if one.model.leads else -1
        # an ideal state alone does not tell what is
        copying = not row.states or not {*row.states} <= {*one.model.states}
        standing[name] = Standing(row.nodes, row.nodes[slot] if slot >= 0 else "", copying)
    places = {
        tier: {name: label for name, label in zip(names, labels, strict=True) if label}
        for tier, labels in domains.items()
    }
    return Observed(alive, standing, places)


def leader(change: Change) -> int:
    """Return who is in the top state after a change; -1 where none is."""
    return change.leads


CARRIER = Carrier(
    orders=orders, look=look, settings=SETTINGS, notes=NOTES, leader=leader, observe=observe,
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
