"""The document of row-wise JSON: one object per node and partition, all by name.

Loads and capacities are lists in the order of ``dimensions``. ``null`` is a capacity without limit
and a replica without a node.
"""

from typing import Any, Literal

import msgspec

from evenkeel.systems.json_text import Int32, Int64
from evenkeel.systems.native.arguments import RuleDocument

NAME: Literal["evenkeel-rows"] = "evenkeel-rows"

FlagName = Literal[
    "pinned",
    "incoming",
    "outgoing",
    "healthy",
    "caught_up",
    "new",
    "evicting",
    "error",
    "stranded",
    "preferred",
    "left_alone",
]
RoleName = Literal["voter", "non_voter", "learner"]


class NodeRow(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One node."""

    name: str
    capacity: list[float | None]
    domains: dict[str, str | Int64] = {}
    watermark: list[float | None] | None = None
    alive: bool = True
    accepts: bool | None = None
    keeps: bool | None = None
    leads: bool | None = None
    gone: bool = False
    since: float | None = None
    weight: float = 1.0
    lead_weight: float = 1.0
    max_replicas: Int32 = -1
    stands_for: str | None = None
    tags: list[str] = []
    attributes: dict[str, str | Int64] = {}


class PartitionRow(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One partition; ``nodes`` holds a name, or null, per slot."""

    name: str
    load: list[float]
    nodes: list[str | None] = []
    leader_load: list[float] | None = None
    non_voter_load: list[float] | None = None
    leader: Int32 = 0
    roles: list[RoleName] | None = None
    flags: list[list[FlagName]] | None = None
    replicas: Int32 | None = None
    voters: Int32 | None = None
    min_active: Int32 = 0
    group: str | None = None
    rule: Int32 = -1
    attached: str | None = None
    move_cost: float = 1.0
    forbidden: list[str] | None = None


class GroupRow(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One group; ``rule`` binds it as a whole."""

    name: str
    rule: Int32 = -1


class NeedRow(msgspec.Struct, forbid_unknown_fields=True):
    """A group that needs another one in every domain of a tier that it stands in."""

    group: str
    needs: str
    tier: str


class SharedCapacity(msgspec.Struct, forbid_unknown_fields=True):
    """Capacity of the domain of a tier in which a node stands."""

    tier: str
    node: str
    capacity: list[float | None]


class ClusterRows(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The whole document."""

    format: Literal["evenkeel-rows"]
    version: Literal[1]
    dimensions: list[str]
    nodes: list[NodeRow]
    partitions: list[PartitionRow]
    groups: list[GroupRow] = []
    tiers: list[str] = []
    crossing: list[str] = []
    tags: list[str] = []
    attributes: list[str] = []
    tier_capacity: list[SharedCapacity] = []
    tier_distance: list[float | list[float]] | None = None
    rules: list[RuleDocument] = []
    transient: list[str] = []
    bytes: str | None = None
    depends: list[NeedRow] = []
    native: Any = None
    native_format: str = ""


NODE_FIELDS = (
    "alive", "accepts", "keeps", "leads", "gone", "weight", "lead_weight", "max_replicas"
)  # fmt: skip
PARTITION_FIELDS = ("min_active", "rule", "move_cost")
LOADS = ("load", "leader_load", "non_voter_load")
