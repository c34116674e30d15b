"""Ideal states: as they were read, or with the placement that Helix is to bring about."""

import io
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import msgspec
import numpy as np

from evenkeel.formats.helix.resources import MODELS, NOT_SERVED, Model
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement

Mode = Literal["SEMI_AUTO", "CUSTOMIZED"]
Raw = dict[str, Any]

FOLDER = "IDEALSTATES"
NOBODY: list[str] = []
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
    names = cluster.partitions.names
    was, will = (held_in(cluster, one) for one in (cluster.placement, placement))
    for name, rows in rows_by_group(cluster).items():
        own = Writer(payload, name, mode)
        if resources == "all" or any(own.differ(was[p], will[p]) for p in rows):
            own.begin([names[p] for p in rows], [will[p] for p in rows])
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


def rows_by_group(cluster: Cluster) -> dict[str, list[int]]:
    """Return the partitions of each resource."""
    group, names = cluster.partitions.group, cluster.partitions.group_names
    rows = np.argsort(group, kind="stable").tolist()
    ends = np.cumsum(np.bincount(group, minlength=len(names))).tolist()
    return {
        name: rows[begin:end] for name, begin, end in zip(names, [0, *ends], ends, strict=False)
    }


Held = tuple[list[str], str]
"""The instances that hold a partition, in order, and the one that leads it, "" for nobody."""


def held_in(cluster: Cluster, placement: Placement) -> list[Held]:
    """Return who holds each partition in a placement."""
    names = [*cluster.nodes.names, ""]
    there = placement.node >= 0
    nodes = [names[n] for n in placement.node[there].tolist()]
    ends = np.cumsum(np.bincount(placement.owner[there], minlength=len(placement))).tolist()
    leaders = [names[n] for n in placement.leader_node.tolist()]
    return [
        (nodes[begin:end], leader)
        for begin, end, leader in zip([0, *ends], ends, leaders, strict=False)
    ]


class Writer:
    """Writes the ideal state of one resource."""

    def __init__(self, payload: Mapping[str, Any], name: str, mode: Mode | None = None) -> None:
        self.before: Raw = payload["ideal_states"][name]
        self.states: Mapping[str, Mapping[str, str]] = payload.get("states", {}).get(name, {})
        told = self.before["simpleFields"].get("STATE_MODEL_DEF_REF", "")
        given = payload["state_models"].get(told)
        self.model = MODELS[told] if given is None else Model(tuple(given[0]), bool(given[1]))
        simple = dict(self.before["simpleFields"])
        key = "REBALANCE_MODE" if "IDEAL_STATE_MODE" not in simple else "IDEAL_STATE_MODE"
        custom = (mode or simple.get(key, "").upper()) == "CUSTOMIZED"
        simple[key] = "CUSTOMIZED" if custom else "SEMI_AUTO"
        self.record: Raw = {
            "id": self.before["id"],
            "simpleFields": simple,
            "mapFields": dict(self.before["mapFields"]),
            "listFields": dict(self.before["listFields"]),
        }
        """The record, in which partitions are held as was said last."""

        self.widths: dict[str, int] = {}
        """By how many each of them is held."""

        self._lists = not custom or bool(self.before["listFields"])
        self._custom = custom

    def differ(self, was: Held, will: Held) -> bool:
        """Whether a partition has other replicas, or is led by another where somebody leads."""
        return (self.model.leads and was[1] != will[1]) or sorted(was[0]) != sorted(will[0])

    def begin(self, partitions: Iterable[str], held: Iterable[Held]) -> None:
        """Have partitions be held like this before anything else is said of any.

        Most of them are as the record has them, which takes no time.
        """
        lists, leads, widths = self.before["listFields"], self.model.leads, self.widths
        told = self._custom or bool(self.before["mapFields"])
        for partition, (nodes, leader) in zip(partitions, held, strict=True):
            if told or lists.get(partition) != nodes or (leads and leader and leader != nodes[0]):
                self.hold(partition, nodes, leader)
            else:
                widths[partition] = len(nodes)

    def hold(self, partition: str, nodes: list[str], leader: str) -> None:
        """Have a partition be held like this."""
        lists, states = self.before["listFields"], self.before["mapFields"]
        if partition not in lists and partition not in states:
            partition = partition.removeprefix(f"{self.before['id']}/")
        self.widths[partition] = len(nodes)
        listed = lists.get(partition, NOBODY)
        # the list itself, where it stands as it was: so that records are compared at a glance
        nodes = listed if nodes == listed else _in_order(nodes, listed)
        if self.model.leads and leader and nodes[0] != leader:
            nodes = [leader, *(name for name in nodes if name != leader)]
        if self._lists:
            self.record["listFields"][partition] = nodes
        if self._custom or partition in states:
            self.record["mapFields"][partition] = self._states(leader, partition, nodes)

    def _states(self, leader: str, partition: str, nodes: Sequence[str]) -> dict[str, str]:
        """Return the state of each replica; who joins takes that of one that left."""
        model = self.model
        before = self.states.get(partition) or self.before["mapFields"].get(partition, {})
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


def _in_order(nodes: list[str], listed: list[str]) -> list[str]:
    """Return the instances of a partition: those listed, in that order, and who joins."""
    stay = sorted([name for name in nodes if name in listed], key=listed.index)
    return stay + [name for name in nodes if name not in listed]


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
