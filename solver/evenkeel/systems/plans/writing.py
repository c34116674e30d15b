"""Write a plan to a JSON file without loss of precision."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import rows_alone
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.quantities import require
from evenkeel.model.runtime.atomic import write_atomically
from evenkeel.planning.plan import Plan
from evenkeel.planning.steps import StepKind
from evenkeel.planning.throttle import Throttle
from evenkeel.systems.native.npz import encode as encode_arrays
from evenkeel.systems.native.rows import encode, flags_listed
from evenkeel.systems.plans.reading import (
    NAME,
    BlockedDocument,
    ClusterFile,
    FlightDocument,
    ProtocolDocument,
    StepDocument,
    TargetDocument,
    ThrottleDocument,
    WindowsDocument,
    fingerprint,
)

# what writes a cluster in one of our own formats
Encode = Callable[[Cluster, Placement | None, Path], Mapping[Path, bytes]]


@known_keywords
def write_plan(plan: Plan, path: str | os.PathLike[str], *, with_cluster: bool = True) -> Path:
    """Write a plan to a JSON file, which ``read_plan`` reads back bit for bit.

    Parameters
    ----------
    plan : Plan
        What ``plan`` returned.
    path : str or path
        Where it goes; the file is written aside and put in place when it is complete.
    with_cluster : bool, optional
        Whether the cluster stands in the file, so that this is all it takes to check the plan.
        Its fingerprint stands there in any case.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidInput
        If a time or size is not finite, or the cluster carries what JSON cannot hold.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile, evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> plan = ek.solve(c, goals=ek.Goals(level=0.0)).plan()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write_plan(plan, Path(folder, "plan.json"))
    ...     ek.read_plan(file).rows() == plan.rows()
    True
    """
    require("plan", plan, Plan)
    require("with_cluster", with_cluster, bool)
    return write_atomically(path, encoded(plan, with_cluster=with_cluster))


def encoded(plan: Plan, *, with_cluster: bool = True) -> bytes:
    """Return the document of a plan, one step per line."""
    parts = _parts(plan)
    if with_cluster:
        parts["cluster"] = _cluster(plan.cluster)
    return _document(parts)


def encoded_beside(plan: Plan, file: ClusterFile, there: Placement) -> bytes:
    """Return the document of a plan for the cluster in a file, where replicas are ``there``."""
    parts = _parts(plan) | {"cluster_file": _json(file)}
    if plan.cluster.placement is not there:
        parts["start"] = _lines(_rows(plan, there, plan.cluster.placement))
    return _document(parts)


def encoded_cluster(cluster: Cluster) -> bytes:
    """Return a cluster as arrays, without a payload that JSON cannot hold, which no plan needs."""
    return _without_payload(cluster, encode_arrays)


def _document(parts: Mapping[str, bytes]) -> bytes:
    return b"{" + b",\n".join(_json(key) + b":" + part for key, part in parts.items()) + b"}\n"


def _parts(plan: Plan) -> dict[str, bytes]:
    """Return the parts of a plan without its cluster."""
    _check_finite(plan)
    protocol = plan.protocol
    parts = {
        "format": _json(NAME),
        "version": b"1",
        "fingerprint": _json(fingerprint(plan.cluster)),
        "protocol": _json(
            ProtocolDocument(
                protocol.name, protocol.joint, protocol.whole, protocol.quorum, protocol.roles
            )
        ),
        "throttle": _json(_throttle(plan.throttle)),
        "steps": _lines(_steps(plan)),
        "blocked": _lines(_blocked(plan)),
    }
    if not plan.undeclared:
        parts["target"] = _lines(_rows(plan, plan.cluster.placement, plan.target))
    if plan.towards is not None:
        parts["towards"] = _lines(_rows(plan, plan.cluster.placement, plan.towards))
    if plan.cancelled:
        parts["cancelled"] = _lines(
            [FlightDocument(one.partition, one.slot, one.node) for one in plan.cancelled]
        )
    if plan.in_flight is not None:
        start, names = plan.cluster.placement, plan.cluster.partitions.names
        coming = np.flatnonzero(plan.in_flight != start.node)
        slot, nodes = coming - start.first[start.owner[coming]], plan.cluster.nodes.names
        columns = start.owner[coming], slot, plan.in_flight[coming]
        rows = [FlightDocument(names[p], k, nodes[n])
                for p, k, n in zip(*(one.tolist() for one in columns), strict=True)]  # fmt: skip
        if rows:
            parts["in_flight"] = _lines(rows)
    return parts


def _cluster(cluster: Cluster) -> bytes:
    """Return a cluster as rows."""
    return _without_payload(cluster, encode).rstrip()


def _without_payload(cluster: Cluster, encode: Encode) -> bytes:
    """Return a cluster, without its payload where JSON cannot hold that."""
    file = Path("cluster.npz")
    try:
        return encode(cluster, None, file)[file]
    except InvalidInput as error:
        if {one.path for one in error.faults} != {"cluster.native"}:
            raise
        plain = replace(cluster, native=None, native_format="")
        return encode(plain, None, file)[file]


def _check_finite(plan: Plan) -> None:
    """Raise for numbers that JSON has no words for."""
    faults = FaultList()
    for name in ("size", "start", "finish"):
        values = getattr(plan.steps, name)
        for i in np.flatnonzero(~np.isfinite(values)).tolist():
            faults.add(f"steps.{name}[{i}]", float(values[i]), "must be finite")
    for group, one in plan.throttle.priority.items():
        if not np.isfinite(one):
            faults.add(f"throttle.priority[{group!r}]", one, "must be finite")
    faults.raise_if_any()


def _throttle(throttle: Throttle) -> ThrottleDocument:
    limits: dict[str, Any] = {one.name: getattr(throttle, one.name) for one in fields(throttle)}
    for name, value in limits.items():
        if isinstance(value, Mapping):
            limits[name] = dict(value)
    if throttle.windows is not None:
        spans = [(a, b if np.isfinite(b) else None) for a, b in throttle.windows.spans]
        limits["windows"] = WindowsDocument(spans, throttle.windows.every)
    return ThrottleDocument(**limits)


def _steps(plan: Plan) -> Iterator[StepDocument]:
    steps, cluster = plan.steps, plan.cluster
    nodes, partitions = [*cluster.nodes.names, None], [*cluster.partitions.names]
    slot = steps.replica - cluster.placement.first[steps.partition]
    kinds: list[Any] = [kind.name.lower() for kind in StepKind]
    first, before = steps.first.tolist(), steps.before.tolist()
    columns: tuple[Iterable[Any], ...] = (
        range(len(steps)),
        map(kinds.__getitem__, steps.kind.tolist()),
        map(partitions.__getitem__, steps.partition.tolist()),
        *(column.tolist() for column in (slot, steps.wave, steps.start, steps.finish)),
        map(nodes.__getitem__, steps.source.tolist()),
        map(nodes.__getitem__, steps.target.tolist()),
        steps.size.tolist(),
        (before[begin:end] for begin, end in pairwise(first)),
        plan.change.tolist(),
    )
    return map(StepDocument, *columns)


def _blocked(plan: Plan) -> list[BlockedDocument]:
    return [
        BlockedDocument(
            one.partition,
            one.slot,
            one.lacks,
            one.circle,
            one.source,
            one.target,
            one.change,  # type: ignore[arg-type]
        )
        for one in plan.blocked
    ]


def _rows(plan: Plan, start: Placement, target: Placement) -> Iterator[TargetDocument]:
    """Yield the rows of a placement that are not those of another."""
    partitions = [*plan.cluster.partitions.names]
    nodes = [*plan.cluster.nodes.names, None]
    kinds: list[Any] = [role.name.lower() for role in Role]
    other_roles = _differ(start, start.role, target.role)
    other_flags = _differ(start, start.flags, target.flags)
    other_disks = _other_disks(start, target)
    disks = [*plan.cluster.disks.names, None] if plan.cluster.disks is not None else [None]
    changed = np.flatnonzero(_changed(start, target) | other_disks)
    own = rows_alone(target, changed)
    first, node, role = own.first.tolist(), own.node.tolist(), own.role.tolist()
    for i, (p, leader) in enumerate(zip(changed.tolist(), own.leader.tolist(), strict=True)):
        slots = slice(first[i], first[i + 1])
        flags: Any = flags_listed(own.flags[slots]) if other_flags[p] else None
        yield TargetDocument(
            partitions[p],
            [nodes[n] for n in node[slots]],
            leader,
            [kinds[r] for r in role[slots]] if other_roles[p] else None,
            flags,
            [disks[d] for d in own.disk[slots].tolist()]
            if own.disk is not None and other_disks[p] else None,
        )  # fmt: skip


def _other_disks(start: Placement, target: Placement) -> NDArray[np.bool_]:
    """Return the partitions of which some replica is to lie on another disk, (P,) bool."""
    if target.disk is None:
        return np.zeros(len(start), np.bool_)
    before = np.full_like(target.disk, -1) if start.disk is None else start.disk
    return _differ(start, before, target.disk)


def _changed(start: Placement, target: Placement) -> NDArray[np.bool_]:
    """Return the partitions that differ between two placements, but for their disks, (P,) bool."""
    found = (start.leader != target.leader) | _differ(start, start.node, target.node)
    found |= _differ(start, start.role, target.role)
    return np.asarray(found | _differ(start, start.flags, target.flags))


def _differ(
    start: Placement, before: NDArray[np.integer], after: NDArray[np.integer]
) -> NDArray[np.bool_]:
    """Return the partitions of which some slot has another value than it had, (P,) bool."""
    found = np.zeros(len(start.leader), bool)
    found[start.owner[before != after]] = True
    return found


def _lines(rows: Iterable[msgspec.Struct]) -> bytes:
    """Return a list with a row per line, for people to read and compare."""
    try:
        # each row is written as it comes: all of them take more memory than their text
        lines = msgspec.json.Encoder().encode_lines(rows)
    except UnicodeEncodeError as error:
        raise _unwritable(error) from None
    # text has no line ends of its own, so these stand between rows only
    inner = memoryview(lines.replace(b"\n", b",\n"))[:-2]
    return b"".join((b"[\n" if lines else b"[", inner, b"]"))


def _json(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        raise _unwritable(error) from None


def _unwritable(error: UnicodeEncodeError) -> InvalidInput:
    """Return what is wrong with a name that has no UTF-8."""
    return InvalidInput([Fault("plan", error.object, "cannot be written as UTF-8")])
