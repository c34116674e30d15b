"""The document of a plan: a step per row, everything by name.

A step waits for those whose ids stand in ``after``; steps may come in any order. ``target`` lists
the partitions that are to end otherwise than they begin, ``blocked`` the moves that found no order.
The beginning of a longer plan has the target of that one in ``towards``.
"""

import gzip
import os
from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.rules import Rule
from evenkeel.systems.documents import BROKEN, GZIP_MAGIC
from evenkeel.systems.json_text import Int32
from evenkeel.systems.native.arguments import RuleDocument, arguments_of
from evenkeel.systems.native.rows import ClusterRows, FlagName, RoleName
from evenkeel.systems.registry import BEGINNING, PLAN

NAME: Literal["evenkeel-plan"] = "evenkeel-plan"

ChangeName = Literal["move", "lead", "promote", "demote"]
KindName = Literal["copy", "promote", "lead", "demote", "remove", "swap"]
StepId = Int32 | str
NODES = {"source": "from", "target": "to"}
"""How the two ends of a step are written: Python keeps the first of these words to itself."""


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


class ProtocolDocument(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A protocol; of one that has a preset the name is enough."""

    name: str
    joint: bool | None = None
    whole: bool | None = None
    quorum: bool | None = None
    roles: bool | None = None


ClusterFile = Literal["", "cluster.npz", "../cluster.npz"]
"""Where the cluster of a plan in a folder stands, beside the file; ``start`` is then what is
otherwise when this plan begins."""


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
