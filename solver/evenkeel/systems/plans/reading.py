"""Reading a plan that this or another tool wrote; everything wrong with it is reported at once."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.planning.changes.ends import check_target
from evenkeel.planning.outcome import outcome
from evenkeel.planning.plan import Plan
from evenkeel.planning.protocols import PRESETS, Protocol
from evenkeel.planning.stuck.blocked import Blocked
from evenkeel.planning.throttle import Throttle, check_throttle
from evenkeel.planning.underway.copies import Cancelled
from evenkeel.planning.windows import Windows
from evenkeel.systems.documents import Document, Source, quoted
from evenkeel.systems.json_text import decode_json
from evenkeel.systems.native import npz
from evenkeel.systems.native.rows import cluster_of
from evenkeel.systems.plans.documents import (
    PlanDocument,
    TargetDocument,
    ThrottleDocument,
    plan_file,
)
from evenkeel.systems.plans.fingerprint import fingerprint
from evenkeel.systems.plans.steps import arranged, read_steps
from evenkeel.systems.registry import PLAN, told_kind


@known_keywords
def read_plan(source: Source, cluster: Cluster | None = None) -> Plan:
    """Read a plan from a JSON file, whichever tool wrote it.

    That it says what there is, in an order, is checked here; whether it is safe, ``Plan.check``
    says.

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
        # of names that another cluster lacks nothing can be said
        raise InvalidInput(faults.faults)
    steps, change = arranged(faults, name, read, cluster)
    target, towards = (
        None if rows is None else _placement(faults, name, key, rows, cluster)
        for key, rows in (("target", found.target), ("towards", found.towards))
    )
    paced = FaultList()
    check_throttle(paced, cluster, throttle)
    _moved(faults, name, paced)
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
    told = "" if PLAN in document.data else told_kind(document)
    if told:
        message = (
            f"is not a plan but {told}: evenkeel plan -o writes a plan, which may be of this file"
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


def _moved(faults: FaultList, name: str, found: FaultList) -> None:
    """Note faults of an argument as faults of the file."""
    for one in found.faults:
        faults.add(f"{name}: {one.path}", one.value, one.message)


def _throttle(faults: FaultList, name: str, found: ThrottleDocument) -> Throttle:
    given = {field: getattr(found, field) for field in found.__struct_fields__}
    try:
        if found.windows is not None:
            spans = [(a, np.inf if b is None else b) for a, b in found.windows.spans]
            given["windows"] = Windows(spans, found.windows.every)
        return Throttle(**given)
    except InvalidInput as error:
        _moved(faults, name, FaultList(list(error.faults)))
        return Throttle()


def _protocol(faults: FaultList, name: str, found: PlanDocument) -> Protocol:
    given = found.protocol
    known = PRESETS.get(given.name)
    if known is None and (given.joint is None or given.whole is None):
        message = f"is not known: say whether it is joint and whole, or name one of {[*PRESETS]}"
        faults.add(f"{name}: protocol.name", quoted(given.name), message)
    base = known or Protocol(given.name)
    said = {key: getattr(given, key) for key in ("joint", "whole", "quorum", "roles")}
    return replace(base, **{key: value for key, value in said.items() if value is not None})


def _placement(
    faults: FaultList, name: str, key: str, rows: list[TargetDocument], cluster: Cluster
) -> Placement:
    """Return the cluster's placement with the rows that a list of the document changes."""
    start = cluster.placement
    node, role, flags = start.node.copy(), start.role.copy(), start.flags.copy()
    leader = start.leader.copy()
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
        for n, told in enumerate(row.nodes):
            if told not in places:
                faults.add(f"{at}.nodes[{n}]", quoted(told), "is not a node of the cluster")
        for part in ("nodes", "roles", "flags"):
            values = getattr(row, part)
            if values is not None and len(values) != count:
                faults.add(f"{at}.{part}", len(values), f"needs the {count} slots of the partition")
        if not -1 <= row.leader < max(count, 0):
            faults.add(f"{at}.leader", row.leader, f"is none of the {count} slots")
        if faults:
            continue
        node[slots] = [places[told] for told in row.nodes]
        leader[p] = row.leader
        if row.roles is not None:
            role[slots] = [Role[one.upper()] for one in row.roles]
        if row.flags is not None:
            flags[slots] = [sum(Flag[one.upper()] for one in {*each}) for each in row.flags]
    target = Placement(
        start.first, read_only(node), read_only(role), read_only(flags), read_only(leader)
    )
    if not faults:
        misfits = FaultList()
        check_target(misfits, cluster, target, path=key)
        _moved(faults, name, misfits)
    return target
