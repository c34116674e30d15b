"""Read rebalancing instances in ``.npz`` files: a cluster after an expansion and node failures.

The leader stands in column 0 and carries an extra load; a replica whose node died keeps its number;
one replica of a partition per zone.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.arrays import as_array
from evenkeel.systems.documents import Document, the_only
from evenkeel.systems.native.arguments import build
from evenkeel.systems.native.npz import ZIP_MAGIC, read_members
from evenkeel.systems.registry import Format

REQUIRED = (
    "capacity", "zone", "rack", "load", "leader_extra_load", "placement_before", "dead", "resource"
)  # fmt: skip
# which nodes were just added follows from the placement; ``meta`` holds its origin
IGNORED = ("new", "meta")

PLACES = {
    "leader_load": "leader_extra_load", "placement": "placement_before", "group": "resource",
    "alive": "dead",
}  # fmt: skip


def read(documents: Sequence[Document]) -> Cluster:
    """Read one instance: tiers zone and rack, and at most one replica of a partition per zone."""
    document = the_only(documents, FORMAT.name)
    faults = FaultList()
    members = read_members(faults, document)
    for name in REQUIRED:
        if name not in members and not any(f.path.endswith(f": {name}") for f in faults.faults):
            faults.add(f"{document.name}: {name}", None, "is missing")
    for name in sorted(members.keys() - {*REQUIRED, *IGNORED}):
        faults.add(f"{document.name}: {name}", name, f"is unknown; known: {[*REQUIRED, *IGNORED]}")
    faults.raise_if_any()
    return _cluster(faults, members, document.name)


def _cluster(faults: FaultList, members: dict[str, NDArray[Any]], name: str) -> Cluster:
    """Build the cluster that the arrays of an instance describe."""
    load = as_array(faults, f"{name}: load", members["load"], np.float64, (None, None))
    extra = as_array(
        faults, f"{name}: leader_extra_load", members["leader_extra_load"], np.float64, load.shape
    )
    dead = as_array(faults, f"{name}: dead", members["dead"], np.bool_, (None,))
    faults.raise_if_any()
    given = {
        "capacity": members["capacity"],
        "load": load,
        "leader_load": load + extra,
        "domains": {"zone": members["zone"], "rack": members["rack"]},
        "alive": ~dead,
        "placement": members["placement_before"],
        "group": members["resource"],
        "spread": {"zone": 1},
    }

    def locate(path: str) -> str:
        argument, bracket, rest = path.partition("[")
        return f"{name}: {PLACES.get(argument, argument)}{bracket}{rest}"

    return build(faults, given, locate)


def _recognises(document: Document) -> str:
    known = document.data.startswith(ZIP_MAGIC) and b"placement_before.npy" in document.data
    return "instance" if known else ""


FORMAT = Format(
    name="rebalancer-npz",
    summary="re-placement instances (.npz with placement_before)",
    suffixes=(".npz",),
    recognises=_recognises,
    read=read,
    encode=None,
)
