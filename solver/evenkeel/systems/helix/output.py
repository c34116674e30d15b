"""Write ideal states, as they were read or with a placement for Helix to carry out.

In a preference list, replicas that stay keep their order, new replicas follow them, and the leader
comes first.
"""

import io
import zipfile
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import rows_alone
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.model.runtime.memoize import memoize
from evenkeel.systems.helix.resources import MODELS, NOT_SERVED, Model

EMPTY: list[str] = []


class Preferences(NamedTuple):
    """The lists of all partitions, one after the other, as the records have them."""

    first: NDArray[np.int64]
    """Where each list begins, (P + 1,)."""

    node: NDArray[np.int32]
    """Who stands in them, by index; -1 for what is no node, (L,)."""


class Held(NamedTuple):
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


def held_by(placement: Placement, partition: NDArray[np.integer]) -> Held:
    """Return who holds and leads partitions in a placement."""
    rows = rows_alone(placement, partition)
    return Held(partition, rows.first, rows.node, rows.leader_node)


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


def in_order(cluster: Cluster, lists: Preferences, held: Held) -> list[list[str]]:
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
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every member of an archive, so that the same input gives the same bytes."""


def encode(
    cluster: Cluster,
    placement: Placement | None,
    path: Path,
    *,
    mode: Mode | None = None,
    resources: Literal["changed", "all"] = "changed",
) -> dict[Path, bytes]:
    """Return ideal states, and with a placement beside them those of before.

    They are a list of records, or, where the path ends in ``.zip``, the files of the folder
    ``IDEALSTATES``. A resource is written in the mode it has, CUSTOMIZED with states of replicas
    and others as SEMI_AUTO with lists of instances, unless ``mode`` says otherwise: in FULL_AUTO
    Helix places by itself.
    """
    payload = payload_of(cluster)
    before: dict[str, Raw] = payload["ideal_states"]
    if placement is None:
        return {path: _packed([*before.values()], path)}
    _check(cluster, placement)
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


def payload_of(cluster: Cluster) -> Mapping[str, Any]:
    """Return the records that a cluster was read from, or raise."""
    native = cluster.native
    if not (isinstance(native, dict) and {"ideal_states", "state_models"} <= native.keys()):
        message = "was not read from Helix's records: there are no ideal states to write"
        raise InvalidInput([Fault("cluster.native", type(native).__name__, message)])
    return native


def _check(cluster: Cluster, placement: Placement) -> None:
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
        self.record: Raw = {
            "id": self.before["id"],
            "simpleFields": simple,
            "mapFields": dict(self.before["mapFields"]),
            "listFields": dict(self.before["listFields"]),
        }
        """The record, with the holders that were set last."""

        self.widths = {name: len(own) for name, own in self.before["listFields"].items()}
        """By how many each of them is held."""

        self.states_named = custom or bool(self.before["mapFields"])
        """Whether it has states of replicas, which follow from more than a list."""

        self._custom = custom
        self._changed: set[str] = set()

    @property
    def as_before(self) -> bool:
        """Whether all partitions are held as they were."""
        return not self._changed

    @property
    def accepted(self) -> Raw:
        """The record, as Helix accepts it while lists differ in length.

        Its tool refuses a record in SEMI_AUTO of which a list has another length than
        ``REPLICAS``, except for ``ANY_LIVEINSTANCE``; its controller goes by the lists alone.
        """
        simple, widths = self.record["simpleFields"], {*self.widths.values()}
        wanted = simple.get("REPLICAS", "")
        if self._custom or not wanted.isdecimal() or widths == {int(wanted)}:
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


def led_by_state(cluster: Cluster, writers: Mapping[str, Writer], held: Held) -> Held:
    """Return the holders of partitions, without a leader where no state is a leader's."""
    groups = cluster.partitions.group_names
    leads = np.array([name in writers and writers[name].model.leads for name in groups], np.bool_)
    stated = leads[cluster.partitions.group[held.partition]]
    return held._replace(leader=np.where(stated, held.leader, -1))


def _packed(records: Sequence[Raw], path: Path) -> bytes:
    """Return records as one list, or as the files of an archive."""
    try:
        if path.suffix != ".zip":
            return msgspec.json.format(msgspec.json.encode(records), indent=2) + b"\n"
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            if not records:
                archive.writestr(zipfile.ZipInfo(f"{FOLDER}.json", EPOCH), b"[]\n")
            for record in records:
                # a resource may be called anything: no name leads out of the folder
                safe = quote(record["id"], safe="").replace(".", "%2E")
                member = zipfile.ZipInfo(f"{FOLDER}/{safe}.json", EPOCH)
                content = msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
                archive.writestr(member, content, zipfile.ZIP_DEFLATED)
        return file.getvalue()
    except UnicodeEncodeError as error:
        raise InvalidInput([Fault("cluster", error.object, "cannot be written as UTF-8")]) from None
