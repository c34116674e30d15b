"""The fields of Longhorn's resources that placing needs; what else stands there is kept as it is.

References
----------
longhorn-manager, ``k8s/pkg/apis/longhorn/v1beta2``: ``volume.go``, ``replica.go``, ``node.go``,
``setting.go``. Sizes of volumes and replicas are texts there, those of disks numbers.
"""

# ruff: noqa: N815 - fields are called as Longhorn calls them

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

Whole = Annotated[int, Meta(ge=0, lt=2**53)]
"""Bytes, or a number of something."""

Digits = Annotated[str, Meta(pattern=r"^[0-9]{1,15}$")]
"""Bytes as a text."""

Name = Annotated[str, Meta(min_length=1)]
Switch = Literal["ignored", "enabled", "disabled", ""]
AutoBalance = Literal[
    "ignored", "disabled", "least-effort", "best-effort", "least_effort", "best_effort", ""
]


class Metadata(msgspec.Struct):
    """What every resource has: its name, and whether it is being deleted."""

    name: Name
    namespace: str = "longhorn-system"
    uid: str = ""
    deletionTimestamp: str | None = None


class Condition(msgspec.Struct):
    """Whether something is so, since when, and why."""

    type: str
    status: Literal["True", "False", "Unknown"]
    lastTransitionTime: str = ""
    reason: str = ""


class VolumeSpec(msgspec.Struct):
    """What is wanted of a volume."""

    size: Digits
    numberOfReplicas: Annotated[int, Meta(ge=0, le=1000)]  # Longhorn itself takes 1 to 20
    replicaAutoBalance: AutoBalance = ""
    replicaSoftAntiAffinity: Switch = ""
    replicaZoneSoftAntiAffinity: Switch = ""
    replicaDiskSoftAntiAffinity: Switch = ""
    dataLocality: Literal["disabled", "best-effort", "strict-local", ""] = ""
    nodeSelector: list[str] | None = None
    diskSelector: list[str] | None = None
    migrationNodeID: str = ""
    image: str = ""
    engineImage: str = ""
    dataEngine: Literal["v1", "v2", ""] = ""


class VolumeStatus(msgspec.Struct):
    """How a volume is."""

    state: str = ""
    robustness: Literal["healthy", "degraded", "faulted", "unknown", ""] = ""
    currentNodeID: str = ""
    currentMigrationNodeID: str = ""
    currentImage: str = ""
    actualSize: Whole = 0
    expansionRequired: bool = False


class VolumeResource(msgspec.Struct):
    """A volume."""

    metadata: Metadata
    spec: VolumeSpec
    status: VolumeStatus = field(default_factory=VolumeStatus)


class ReplicaSpec(msgspec.Struct):
    """Where a replica is, and what has become of it."""

    volumeName: Name
    volumeSize: Digits = "0"
    nodeID: str = ""
    diskID: str = ""
    engineName: str = ""
    image: str = ""
    active: bool = True
    healthyAt: str = ""
    failedAt: str = ""
    lastHealthyAt: str = ""
    evictionRequested: bool = False
    rebuildRetryCount: Whole = 0


class ReplicaStatus(msgspec.Struct):
    """How a replica is; before release 1.6 its eviction stood here."""

    currentState: str = ""
    evictionRequested: bool = False


class ReplicaResource(msgspec.Struct):
    """A replica of a volume."""

    metadata: Metadata
    spec: ReplicaSpec
    status: ReplicaStatus = field(default_factory=ReplicaStatus)


class DiskSpec(msgspec.Struct):
    """What people have asked of a disk."""

    path: str = ""
    diskType: Literal["filesystem", "block", ""] = ""
    allowScheduling: bool = False
    evictionRequested: bool = False
    storageReserved: Whole = 0
    tags: list[str] | None = None


class DiskStatus(msgspec.Struct):
    """How a disk is."""

    diskUUID: str = ""
    storageAvailable: Whole = 0
    storageMaximum: Whole = 0
    storageScheduled: Whole = 0
    scheduledReplica: dict[str, Whole] | None = None
    conditions: list[Condition] | None = None


class NodeSpec(msgspec.Struct):
    """What people have asked of a node, and its disks by name."""

    disks: dict[str, DiskSpec] | None = None
    allowScheduling: bool = False
    evictionRequested: bool = False
    tags: list[str] | None = None


class NodeStatus(msgspec.Struct):
    """How a node is, and its disks by the same names."""

    zone: str = ""
    region: str = ""
    autoEvicting: bool = False
    conditions: list[Condition] | None = None
    diskStatus: dict[str, DiskStatus] | None = None


class NodeResource(msgspec.Struct):
    """A node with its disks."""

    metadata: Metadata
    spec: NodeSpec
    status: NodeStatus = field(default_factory=NodeStatus)


class SettingResource(msgspec.Struct):
    """A global setting; its name is that of the resource."""

    metadata: Metadata
    value: str


SHAPES: dict[str, type[msgspec.Struct]] = {
    "Volume": VolumeResource,
    "Replica": ReplicaResource,
    "Node": NodeResource,
    "Setting": SettingResource,
}
"""The kinds that are read; resources of other kinds are kept, and not looked at."""
