"""Ideal states: as they were read, or with the placement that Helix is to bring about."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.systems.helix.preferences import (
    Held,
    held_by,
    in_order,
    key_in,
    preferences_of,
    rows_by_group,
)
from evenkeel.systems.helix.resources import MODELS, NOT_SERVED, Model

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

    Raises
    ------
    InvalidInput
        If the cluster was not read from Helix, or a partition would be left without replicas.
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
            after[name] = own.record
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
        told = self.before["simpleFields"].get("STATE_MODEL_DEF_REF", "")
        given = payload["state_models"].get(told)
        self.model = MODELS[told] if given is None else Model(tuple(given[0]), bool(given[1]))
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
        """The record, in which partitions are held as was said last."""

        self.widths = {name: len(own) for name, own in self.before["listFields"].items()}
        """By how many each of them is held."""

        self.states_told = custom or bool(self.before["mapFields"])
        """Whether it tells states of replicas, which follow from more than a list."""

        self._custom = custom
        self._changed: set[str] = set()

    @property
    def as_before(self) -> bool:
        """Whether all partitions are held as they were."""
        return not self._changed

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
        before = self.before["mapFields"].get(partition, {})
        # what a CUSTOMIZED ideal state says is meant, whatever is so far
        before = viewed | before if self._custom else viewed or before
        top = model.states[0] if model.leads else ""
        second = model.states[min(1, len(model.states) - 1)] if model.leads else model.states[0]
        free = [
            state
            for node, state in sorted(before.items())
            if node not in nodes and state in model.states and state != top
        ]
        led = model.leads and leader != ""
        found = {nodes[0]: top} if led else {}
        for node in nodes[led:]:
            state = before.get(node, "")
            if state == top or state in NOT_SERVED or state not in model.states:
                state = free.pop(0) if free else second
            found[node] = state
        return found


def led_by_state(cluster: Cluster, writers: Mapping[str, Writer], held: Held) -> Held:
    """Return who holds partitions, led by nobody where no state says that somebody leads."""
    groups = cluster.partitions.group_names
    leads = np.array([name in writers and writers[name].model.leads for name in groups], np.bool_)
    told = leads[cluster.partitions.group[held.partition]]
    return held._replace(leader=np.where(told, held.leader, -1))


def _packed(records: Sequence[Raw], path: Path) -> bytes:
    """Return records as one list, or as the files of an archive."""
    try:
        if path.suffix != ".zip":
            return msgspec.json.format(msgspec.json.encode(records), indent=2) + b"\n"
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for record in records:
                # a resource may be called anything: no name leads out of the folder
                safe = quote(record["id"], safe="").replace(".", "%2E")
                member = zipfile.ZipInfo(f"{FOLDER}/{safe}.json", EPOCH)
                content = msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
                archive.writestr(member, content, zipfile.ZIP_DEFLATED)
        return file.getvalue()
    except UnicodeEncodeError as error:
        raise InvalidInput([Fault("cluster", error.object, "cannot be written as UTF-8")]) from None
