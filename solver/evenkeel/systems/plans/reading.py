"""Read a plan from JSON, whichever tool wrote it, and report all errors in it at once.

The document has one step per row, with names. A step waits for those whose ids are in ``after``;
steps may come in any order. ``target`` lists the partitions that change, ``blocked`` the moves that
found no order. The beginning of a longer plan has the target of that plan in ``towards``.
"""

import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from heapq import heapify, heappop, heappush
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.rules import Rule
from evenkeel.planning.changes.transition_table import check_target
from evenkeel.planning.observed import Cancelled
from evenkeel.planning.plan import Plan
from evenkeel.planning.steps import Blocked, StepKind, Steps, outcome
from evenkeel.planning.throttle import PRESETS, Protocol, Throttle, Windows, check_throttle
from evenkeel.systems.documents import BROKEN, GZIP_MAGIC, Document, Source, quoted
from evenkeel.systems.json_text import Int32, decode_json
from evenkeel.systems.native import npz
from evenkeel.systems.native.arguments import RuleDocument, arguments_of
from evenkeel.systems.native.rows import ClusterRows, FlagName, RoleName, cluster_of
from evenkeel.systems.registry import BEGINNING, PLAN, kind_in_words

NAME: Literal["evenkeel-plan"] = "evenkeel-plan"

ChangeName = Literal["move", "lead", "promote", "demote"]
KindName = Literal["copy", "promote", "lead", "demote", "remove", "swap", "order"]
StepId = Int32 | str
# how the two ends of a step are written: Python keeps the first of these words to itself
NODES = {"source": "from", "target": "to"}


class StepDocument(
    msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, rename=NODES, gc=False
):
    """One step; ``replica`` is the slot in the partition's row, times are seconds."""

    id: StepId
    kind: KindName
    partition: str
    replica: Int32
    wave: Int32
    start: float
    finish: float
    source: str | None = None
    target: str | None = None
    bytes: float = 0.0
    after: list[StepId] = []
    change: Int32 | None = None


class BlockedDocument(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, rename=NODES):
    """A move that found no order, and what it lacks."""

    partition: str
    replica: Int32
    lacks: str
    circle: Int32
    source: str | None = None
    target: str | None = None
    change: ChangeName = "move"


class TargetDocument(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Where the replicas of a partition are to be, slot by slot, as in the rows of a cluster."""

    partition: str
    nodes: list[str | None]
    leader: Int32
    roles: list[RoleName] | None = None
    flags: list[list[FlagName]] | None = None
    disks: list[str | None] | None = None


class FlightDocument(msgspec.Struct, forbid_unknown_fields=True):
    """A copy in flight: one that is to be dropped first, or that goes on."""

    partition: str
    replica: Int32
    node: str


class WindowsDocument(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The arguments of ``Windows``; ``null`` is an end that never comes."""

    spans: list[tuple[float, float | None]]
    every: float | None = None


class ThrottleDocument(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The arguments of ``Throttle``."""

    node_in: Int32 | None = None
    node_out: Int32 | None = None
    domain_in: dict[str, Int32] = {}
    domain_out: dict[str, Int32] = {}
    copies: Int32 | None = None
    node_bandwidth: float | None = None
    priority: dict[str, float] = {}
    windows: WindowsDocument | None = None
    recovery_first: bool = False
    disk_moves: Int32 | None = None


class ProtocolDocument(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A protocol; of one that has a preset the name is enough."""

    name: str
    joint: bool | None = None
    whole: bool | None = None
    quorum: bool | None = None
    roles: bool | None = None


# where the cluster of a plan in a folder stands, beside the file; ``start`` is then what is
# otherwise when this plan begins
ClusterFile = Literal["", "cluster.npz", "../cluster.npz"]


class PlanDocument(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The whole document."""

    format: Literal["evenkeel-plan"]
    version: Literal[1]
    steps: list[StepDocument]
    fingerprint: str = ""
    protocol: ProtocolDocument = msgspec.field(default_factory=lambda: ProtocolDocument("plain"))
    throttle: ThrottleDocument = msgspec.field(default_factory=ThrottleDocument)
    blocked: list[BlockedDocument] = []
    target: list[TargetDocument] | None = None
    towards: list[TargetDocument] | None = None
    cancelled: list[FlightDocument] = []
    in_flight: list[FlightDocument] = []
    cluster: ClusterRows | None = None
    cluster_file: ClusterFile = ""
    start: list[TargetDocument] | None = None


def plan_file(source: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return the file of the plan where its folder is named, else what came."""
    within = Path(source, "plan.json")
    return within if os.fspath(source) and within.is_file() else source


def holds_plan(source: str | bytes) -> bool:
    """Tell whether a file, or what stands in for one, is a plan; reads only its beginning."""
    if isinstance(source, bytes):
        return PLAN in source[:BEGINNING]
    path = Path(plan_file(source))
    if not path.is_file():
        return False
    with path.open("rb") as file:
        packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        file.seek(0)
        try:
            return PLAN in (gzip.open(file) if packed else file).read(BEGINNING)
        except BROKEN:
            return False  # reading it reports the problem


def fingerprint(cluster: Cluster) -> str:
    """Return a digest of a cluster without the payload of its system."""
    digest = blake2b(digest_size=16)
    given = arguments_of(replace(cluster, native=None, native_format=""))
    # names that are counted up are the same as those that are listed
    given["node_names"] = list(cluster.nodes.names)
    given["partition_names"] = list(cluster.partitions.names)
    given["group_names"] = list(cluster.partitions.group_names)
    # nor do empty tables of tiers without domains matter
    shared = given.pop("tier_capacity", {})
    given["tier_capacity"] = {tier: table for tier, table in shared.items() if len(table)}
    for name in sorted(given):
        for part in (name, *_parts(given[name])):
            digest.update(part if isinstance(part, bytes) else part.encode("utf-8", "replace"))
            digest.update(b"\1")
    return digest.hexdigest()


def _parts(value: Any) -> Iterator[str | bytes]:
    """Yield texts and bytes that identify a value of an argument."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _parts(inner)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype.str}{value.shape}"
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, list) and {*map(type, value)} == {str}:
        # what is yielded one by one is divided by the same sign
        yield "\1".join(value)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _parts(inner)
    else:
        yield msgspec.json.encode(RuleDocument.of(value)) if isinstance(value, Rule) else str(value)


@known_keywords
def read_plan(source: Source, cluster: Cluster | None = None) -> Plan:
    """Read a plan from a JSON file, whichever tool wrote it.

    Names and order are checked here; ``Plan.check`` checks that it is safe.

    Parameters
    ----------
    source : str, path or bytes
        The file, the folder of a plan, or the content of a file.
    cluster : Cluster, optional
        What it is a plan for; by default the one that stands in the file.

    Returns
    -------
    Plan
        Its steps in an order in which each comes after those that it waits for. Without a target in
        the file, its target is where it ends, and ``check`` asks of that what the beginning keeps.

    Raises
    ------
    InvalidInput
        Naming every problem, with file, place in it, and value: unknown partitions and nodes, steps
        that wait for each other, times that are none, a cluster that it is no plan for.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> c = Cluster.from_arrays(
    ...     capacity=[[4.0]] * 2, load=[[1.0]], placement=[["a"]], node_names=["a", "b"])
    >>> step = b'{"kind": "swap", "partition": "p0", "replica": 0, "from": "a", "to": "b"}'
    >>> read_plan(b'{"format": "evenkeel-plan", "version": 1, "steps": [' + step + b']}', c)
    Traceback (most recent call last):
    evenkeel.model.errors.InvalidInput: 4 problems with the input:
      <bytes>: steps[0].id: is missing (got None)
      <bytes>: steps[0].wave: is missing (got None)
      <bytes>: steps[0].start: is missing (got None)
      <bytes>: steps[0].finish: is missing (got None)
    """
    if isinstance(source, str | os.PathLike):
        source = plan_file(source)
    return plan_of(Document.load(source), cluster)


def plan_of(document: Document, cluster: Cluster | None = None) -> Plan:
    """Read a plan from a document."""
    faults = FaultList()
    found = decode_json(faults, document, PlanDocument)
    if found is None:
        _check_kind(document)
        raise InvalidInput(faults.faults)
    name = document.name
    read, given = read_steps(faults, name, found.steps), cluster is not None
    throttle = _throttle(faults, name, found.throttle)
    protocol = _protocol(faults, name, found)
    if cluster is None and found.cluster_file:
        cluster = _cluster_beside(faults, document, found)
    elif cluster is None:
        cluster = _cluster_within(faults, document, found)
    if found.fingerprint and found.fingerprint != fingerprint(cluster):
        if given:
            message = "is of another cluster or another moment of it: "
            message += "evenkeel resume goes on from there"
        elif found.cluster_file:
            message = f"is of another cluster than {_beside(document, found)} beside it: "
            message += "read the plan where its folder is, or give its own cluster with it"
        else:
            message = "is of another cluster than the one within the file"
        faults.add(f"{name}: fingerprint", quoted(found.fingerprint), message)
        # names cannot be checked against another cluster
        raise InvalidInput(faults.faults)
    steps, change = arranged(faults, name, read, cluster)
    target, towards = (
        None if rows is None else _placement(faults, name, key, rows, cluster)
        for key, rows in (("target", found.target), ("towards", found.towards))
    )
    paced = FaultList()
    check_throttle(paced, cluster, throttle)
    faults.take(paced, f"{name}: ")
    flying = _in_flight(faults, name, found, cluster)
    blocked = tuple(
        Blocked(
            one.partition, one.replica, one.source, one.target, one.lacks, one.circle, one.change
        )
        for one in found.blocked
    )
    faults.raise_if_any()
    undeclared = target is None
    if target is None:
        target = outcome(cluster.placement, steps, cluster.placement)
    cancelled = tuple(Cancelled(one.partition, one.replica, one.node) for one in found.cancelled)
    return Plan(
        cluster, target, steps, throttle, protocol, change, blocked, towards, cancelled, undeclared,
        flying,
    )  # fmt: skip


def _in_flight(
    faults: FaultList, name: str, found: PlanDocument, cluster: Cluster
) -> NDArray[np.int32] | None:
    """Return the node that each replica is on, or copied to as the plan begins; None if none is."""
    if not found.in_flight:
        return None
    start = cluster.placement
    node = start.node.copy()
    places = {one: n for n, one in enumerate(cluster.nodes.names)}
    numbers = {one: p for p, one in enumerate(cluster.partitions.names)}
    for i, one in enumerate(found.in_flight):
        at, p, n = f"{name}: in_flight[{i}]", numbers.get(one.partition), places.get(one.node)
        if p is None:
            faults.add(
                f"{at}.partition", quoted(one.partition), "is not a partition of the cluster"
            )
        elif not 0 <= one.replica < start.first[p + 1] - start.first[p]:
            faults.add(f"{at}.replica", one.replica, "is no slot of the partition")
        elif n is None:
            faults.add(f"{at}.node", quoted(one.node), "is not a node of the cluster")
        else:
            node[int(start.first[p]) + one.replica] = n
    return read_only(node)


def _check_kind(document: Document) -> None:
    """Raise where a document is no broken plan but what a format of clusters knows."""
    kind = "" if PLAN in document.data else kind_in_words(document)
    if kind:
        message = (
            f"is not a plan but {kind}: evenkeel plan -o writes a plan, which may be of this file"
        )
        raise InvalidInput([Fault(document.name, quoted(document.data[:40]), message)])


def _cluster_within(faults: FaultList, document: Document, found: PlanDocument) -> Cluster:
    """Return the cluster that stands in the file, or raise everything noted."""
    own = FaultList()
    if found.cluster is None:
        own.add(f"{document.name}: cluster", None, "is missing, and none was given beside the file")
    else:
        within = Document(f"{document.name}: cluster", document.data, document.path)
        try:
            return cluster_of(own, within, found.cluster)
        except InvalidInput:
            pass  # noted in its list
    raise InvalidInput(faults.faults + own.faults)


def _beside(document: Document, found: PlanDocument) -> Path | None:
    """Return where the cluster of a plan in a folder stands; None of a plan that is in no file."""
    return None if document.path is None else document.path.parent / found.cluster_file


def _cluster_beside(faults: FaultList, document: Document, found: PlanDocument) -> Cluster:
    """Return the cluster of a plan in a folder, as it is when the plan begins, or raise."""
    at, file = f"{document.name}: cluster_file", _beside(document, found)
    if file is None or not file.is_file():
        faults.add(at, found.cluster_file, "is not there: read the plan where its folder is")
        raise InvalidInput(faults.faults)
    cluster = npz.read([Document.load(os.fspath(file))])
    placement = _placement(faults, document.name, "start", found.start or [], cluster)
    faults.raise_if_any()
    return cluster if found.start is None else replace(cluster, placement=placement)


def _throttle(faults: FaultList, name: str, found: ThrottleDocument) -> Throttle:
    given = {field: getattr(found, field) for field in found.__struct_fields__}
    try:
        if found.windows is not None:
            spans = [(a, np.inf if b is None else b) for a, b in found.windows.spans]
            given["windows"] = Windows(spans, found.windows.every)
        return Throttle(**given)
    except InvalidInput as error:
        faults.take(error, f"{name}: ")
        return Throttle()


def _protocol(faults: FaultList, name: str, found: PlanDocument) -> Protocol:
    given = found.protocol
    known = PRESETS.get(given.name)
    if known is None and (given.joint is None or given.whole is None):
        message = f"is not known: say whether it is joint and whole, or name one of {[*PRESETS]}"
        faults.add(f"{name}: protocol.name", quoted(given.name), message)
    base = known or Protocol(given.name)
    given_parts = {key: getattr(given, key) for key in ("joint", "whole", "quorum", "roles")}
    return replace(base, **{key: value for key, value in given_parts.items() if value is not None})


def _placement(
    faults: FaultList, name: str, key: str, rows: list[TargetDocument], cluster: Cluster
) -> Placement:
    """Return the cluster's placement with the rows that a list of the document changes."""
    start = cluster.placement
    node, role, flags = start.node.copy(), start.role.copy(), start.flags.copy()
    leader = start.leader.copy()
    disk, disks = None if start.disk is None else start.disk.copy(), _numbers_of_disks(cluster)
    places: dict[str | None, int] = {None: -1}
    places |= {one: n for n, one in enumerate(cluster.nodes.names)}
    numbers = {one: p for p, one in enumerate(cluster.partitions.names)} if rows else {}
    seen: set[int] = set()
    for i, row in enumerate(rows):
        at = f"{name}: {key}[{i}]"
        p = numbers.get(row.partition, -1)
        if p < 0 or p in seen:
            message = "is not a partition of the cluster" if p < 0 else "stands there twice"
            faults.add(f"{at}.partition", quoted(row.partition), message)
            continue
        seen.add(p)
        slots = slice(int(start.first[p]), int(start.first[p + 1]))
        count = slots.stop - slots.start
        for n, node_name in enumerate(row.nodes):
            if node_name not in places:
                faults.add(f"{at}.nodes[{n}]", quoted(node_name), "is not a node of the cluster")
        for n, disk_name in enumerate(row.disks or ()):
            if disk_name not in disks:
                faults.add(f"{at}.disks[{n}]", quoted(disk_name), "is not a disk of the cluster")
        for part in ("nodes", "roles", "flags", "disks"):
            values = getattr(row, part)
            if values is not None and len(values) != count:
                faults.add(f"{at}.{part}", len(values), f"needs the {count} slots of the partition")
        if not -1 <= row.leader < max(count, 0):
            faults.add(f"{at}.leader", row.leader, f"is none of the {count} slots")
        if faults:
            continue
        node[slots] = [places[one] for one in row.nodes]
        leader[p] = row.leader
        if row.roles is not None:
            role[slots] = [Role[one.upper()] for one in row.roles]
        if row.flags is not None:
            flags[slots] = [sum(Flag[one.upper()] for one in {*each}) for each in row.flags]
        if row.disks is not None:
            disk = np.full(len(node), -1, np.int32) if disk is None else disk
            disk[slots] = [disks[one] for one in row.disks]
        elif disk is not None:
            disk[slots] = np.where(node[slots] == start.node[slots], disk[slots], np.int32(-1))
    target = Placement(
        start.first, read_only(node), read_only(role), read_only(flags), read_only(leader),
        None if disk is None else read_only(disk),
    )  # fmt: skip
    if not faults:
        misfits = FaultList()
        check_target(misfits, cluster, target, path=key)
        faults.take(misfits, f"{name}: ")
    return target


def _numbers_of_disks(cluster: Cluster) -> dict[str | None, int]:
    """Return the number of each disk by its name, and -1 for none."""
    names = () if cluster.disks is None else cluster.disks.names
    return {None: -1} | {name: d for d, name in enumerate(names)}


JOINS = ("copy", "promote", "lead", "order")  # kinds that need a node to go to
LEAVES = ("demote", "remove")  # kinds that need a node to come from


@dataclass(frozen=True)
class Read:
    """S steps as they stand in the file, and what they wait for by the row of each."""

    rows: list[StepDocument]  # the steps
    first: NDArray[np.int64]  # (S + 1,) where the predecessors of each begin in ``before``
    before: NDArray[np.int64]  # (B,) rows of the predecessors, ascending within a step
    # (S,) rows such that each comes after its predecessors, otherwise as in the file
    order: NDArray[np.int64]


def read_steps(faults: FaultList, name: str, rows: list[StepDocument]) -> Read:
    """Note what is wrong with steps in themselves: ids, times, sizes, ends, and circles."""
    place: dict[int | str, int] = {}
    for i, row in enumerate(rows):
        if place.setdefault(row.id, i) != i:
            message = f"is already the id of steps[{place[row.id]}]"
            faults.add(f"{name}: steps[{i}].id", quoted(row.id), message)
    _check_rows(faults, name, rows)
    ahead = [sorted({place.get(one, -1) for one in row.after}) for row in rows]
    for i, found in enumerate(ahead):
        if found and found[0] < 0:
            for k, one in enumerate(rows[i].after):
                if one not in place:
                    faults.add(f"{name}: steps[{i}].after[{k}]", quoted(one), "is not a step")
            ahead[i] = found[1:]
    first = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(one) for one in ahead], out=first[1:])
    before = np.fromiter(chain.from_iterable(ahead), np.int64, int(first[-1]))
    return Read(rows, first, before, _ordered(faults, name, rows, first, before))


def _check_rows(faults: FaultList, name: str, rows: list[StepDocument]) -> None:
    """Note times and sizes that are none, and ends that are missing."""
    for i, row in enumerate(rows):
        at = f"{name}: steps[{i}]"
        if row.start < 0.0:
            faults.add(f"{at}.start", row.start, "must not be negative")
        if row.finish < row.start:
            faults.add(f"{at}.finish", row.finish, f"is before its start, {row.start:g}")
        if row.bytes < 0.0:
            faults.add(f"{at}.bytes", row.bytes, "must not be negative")
        if row.wave < 0:
            faults.add(f"{at}.wave", row.wave, "must not be negative")
        if row.target is None and (row.kind in JOINS or (row.kind == "swap" and not row.source)):
            faults.add(f"{at}.to", None, f"is missing: a {row.kind} needs it")
        if row.source is None and row.kind in LEAVES:
            faults.add(f"{at}.from", None, f"is missing: a {row.kind} needs it")


def _ordered(
    faults: FaultList,
    name: str,
    rows: list[StepDocument],
    first: NDArray[np.int64],
    before: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return rows in an order in which each comes after those that it waits for."""
    count = len(rows)
    later = np.repeat(np.arange(count), np.diff(first))
    if not (before >= later).any():
        return np.arange(count)
    by_earlier = np.argsort(before, kind="stable")
    followers = later[by_earlier]
    begin = np.searchsorted(before[by_earlier], np.arange(count + 1)).tolist()
    waiting = np.diff(first).tolist()
    ready = [i for i in range(count) if waiting[i] == 0]
    heapify(ready)
    order = []
    while ready:
        i = heappop(ready)
        order.append(i)
        for k in followers[begin[i] : begin[i + 1]].tolist():
            waiting[k] -= 1
            if waiting[k] == 0:
                heappush(ready, k)
    if len(order) < count:
        _note_circles(faults, name, rows, first, before, waiting)
        order = list(range(count))
    return np.array(order, np.int64)


def _note_circles(
    faults: FaultList,
    name: str,
    rows: list[StepDocument],
    first: NDArray[np.int64],
    before: NDArray[np.int64],
    waiting: list[int],
) -> None:
    """Note one circle in each chain of steps that never come: every one waits for another."""
    seen = [0] * len(rows)
    for begin in (i for i, lacks in enumerate(waiting) if lacks):
        path, i = [], begin
        while not seen[i]:
            seen[i] = begin + 1
            path.append(i)
            i = next(k for k in before[first[i] : first[i + 1]].tolist() if waiting[k])
        if seen[i] == begin + 1:
            circle = [rows[k].id for k in path[path.index(i) :]]
            steps = " after ".join(str(quoted(one)) for one in [*circle[:8], circle[0]])
            more = f", of {len(circle)} steps" if len(circle) > 8 else ""
            faults.add(
                f"{name}: steps[{i}].after",
                quoted(rows[i].id),
                f"waits for itself in a cycle: {steps}{more}",
            )


def arranged(
    faults: FaultList, name: str, read: Read, cluster: Cluster
) -> tuple[Steps, NDArray[np.int32]]:
    """Return the steps with what they name looked up in the cluster, and the change of each."""
    rows = read.rows
    nodes: dict[str | None, int] = {None: -1}
    nodes |= {one: n for n, one in enumerate(cluster.nodes.names)}
    numbers = {one: p for p, one in enumerate(cluster.partitions.names)}
    partition = np.array([numbers.get(row.partition, -1) for row in rows], np.int32)
    ends = [
        np.array([nodes.get(getattr(row, end), -2) for row in rows], np.int32)
        for end in ("source", "target")
    ]
    slot = np.array([row.replica for row in rows], np.int64)
    at = np.maximum(partition, 0)
    width = np.append(np.diff(cluster.placement.first), 0)
    outside = (partition >= 0) & ((slot < 0) | (slot >= width[at]))
    for i in np.flatnonzero((partition < 0) | outside | (ends[0] < -1) | (ends[1] < -1)).tolist():
        row, path = rows[i], f"{name}: steps[{i}]"
        if partition[i] < 0:
            message = "is not a partition of the cluster"
            faults.add(f"{path}.partition", quoted(row.partition), message)
        if outside[i]:
            message = f"is none of the {int(width[at[i]])} slots of the partition"
            faults.add(f"{path}.replica", row.replica, message)
        for key, end, own in (("from", ends[0], row.source), ("to", ends[1], row.target)):
            if end[i] < -1:
                faults.add(f"{path}.{key}", quoted(own), "is not a node of the cluster")
    if faults:
        return Steps.none(), np.zeros(0, np.int32)
    order = read.order
    position = np.empty(len(rows), np.int64)
    position[order] = np.arange(len(rows))
    later = position[np.repeat(np.arange(len(rows)), np.diff(read.first))]
    pair = np.sort(later * max(len(rows), 1) + position[read.before])
    first = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.bincount(later, minlength=len(rows)), out=first[1:])
    kinds = {kind.name.lower(): int(kind) for kind in StepKind}
    replica = cluster.placement.first[partition] + slot
    start, finish, size = (
        np.array([getattr(row, column) for row in rows], np.float64)[order]
        for column in ("start", "finish", "bytes")
    )
    steps = Steps(
        kind=np.array([kinds[row.kind] for row in rows], np.int8)[order],
        partition=partition[order], replica=replica.astype(np.int32)[order],
        source=ends[0][order], target=ends[1][order], size=size, start=start, finish=finish,
        wave=np.array([row.wave for row in rows], np.int32)[order],
        first=first, before=(pair % max(len(rows), 1)).astype(np.int32),
    )  # fmt: skip
    return steps, _changes([rows[i] for i in order.tolist()], steps)


def _changes(rows: list[StepDocument], steps: Steps) -> NDArray[np.int32]:
    """Return which steps belong together: as they say, or else what a prefix must not divide."""
    changes = [row.change for row in rows]
    known = [one for one in changes if one is not None]
    if len(known) == len(rows):
        return np.array(known, np.int32)
    last = np.zeros(int(steps.partition.max(initial=-1)) + 1, np.int64)
    last[steps.partition] = np.arange(len(rows))
    reaches = np.maximum.accumulate(last[steps.partition])
    begins = np.append(True, reaches[:-1] < np.arange(1, len(rows)))[: len(rows)]
    return np.cumsum(begins).astype(np.int32) - np.int32(1)
