"""A ring as a cluster: devices are nodes; regions, zones and servers its tiers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.formats.documents import Document, the_only
from evenkeel.formats.native.arguments import build
from evenkeel.formats.swift.ring import NOBODY, Device, Ring, check_devices, read_ring
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.rules import Amount

NAME = "swift"
TIERS = ("region", "zone", "server")
COUNT = "parts"


def read(documents: Sequence[Document], *, spread: Mapping[str, Amount] | None = None) -> Cluster:
    """Read a cluster from a ring.

    Replicas of a partition stand as far apart as weights let them: in no region, zone or server
    are more of them than its share, rounded up; ``spread`` replaces that. A device of weight 0
    gives away what it has.

    Raises
    ------
    InvalidInput
        Naming every problem: a truncated file, another version, a builder, which is a pickle;
        devices that come twice, and partitions on devices that are not there.
    """
    document = the_only(documents, NAME)
    faults = FaultList()
    ring = read_ring(faults, document)
    faults.raise_if_any()
    assert ring is not None, "a ring that could not be read left no fault"
    check_devices(faults, document.name, ring.head.devs)
    devices = [one for one in ring.head.devs if one is not None]
    given: dict[str, Any] = {
        "node_names": [name_of(one) for one in devices],
        "native_format": NAME,
        "native": {"header": ring.text, "ids": [one.id for one in devices]},
    }
    given |= _placement(faults, document.name, ring, devices)
    given |= _amounts(ring, devices)
    given |= _tiers(ring, devices, spread)
    return build(faults, given, lambda path: f"{document.name}: {path}")


def name_of(device: Device) -> str:
    """Return a device as ``swift-ring-builder`` looks it up."""
    host = f"[{device.ip}]" if ":" in device.ip else device.ip
    where = f"r{device.region}z{device.zone}-{host}:{device.port}/{device.device}"
    return f"d{device.id}{where}"


def _placement(
    faults: FaultList, name: str, ring: Ring, devices: Sequence[Device]
) -> dict[str, Any]:
    """Return the device of each replica, partition by partition; nobody leads."""
    place = np.full(2**16, -2, np.int64)
    for n, one in enumerate(devices):
        place[one.id] = n
    place[NOBODY] = -1
    node = place[ring.device]
    width, slots = slots_of(ring.parts, len(node))
    for at in np.flatnonzero(node < -1)[:20].tolist():
        row, part = divmod(at, ring.parts)
        where = f"{name}: replica {row} of partition {part}"
        faults.add(where, int(ring.device[at]), "is on a device that is not there")
    return {
        "placement": np.maximum(node[slots], -1),
        "first": np.concatenate([[0], np.cumsum(width)]).astype(np.int64),
        "leader": np.full(ring.parts, -1),
        "replicas": width,
    }


def slots_of(parts: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many replicas each partition has, and where in the file they stand, by partition.

    Examples
    --------
    >>> width, slots = slots_of(4, 6)
    >>> width.tolist(), slots.tolist()
    ([2, 2, 1, 1], [0, 4, 1, 5, 2, 3])
    """
    whole, rest = divmod(count, parts)
    width = np.full(parts, whole, np.int64)
    width[:rest] += 1
    part = np.arange(count) % parts
    return width, np.argsort(part, kind="stable")


def _amounts(ring: Ring, devices: Sequence[Device]) -> dict[str, Any]:
    """Return parts as load, and capacities as weights are, of which none binds."""
    weight = np.array([one.weight for one in devices], np.float64)
    share = weight / max(float(weight.max(initial=0.0)), 1e-300)
    takes = weight > 0.0
    return {
        "dimensions": [COUNT],
        "load": np.ones((ring.parts, 1)),
        "capacity": np.maximum(share * max(len(ring.device), 1), takes.astype(np.float64))[:, None],
        "weight": weight,
        "accepts": takes,
        "keeps": takes,
    }


def _tiers(
    ring: Ring, devices: Sequence[Device], spread: Mapping[str, Amount] | None
) -> dict[str, Any]:
    """Return tiers, and how many replicas of a partition each domain may have."""
    labels = {
        "region": [f"r{one.region}" for one in devices],
        "zone": [f"z{one.zone}" for one in devices],
        "server": [one.ip for one in devices],
    }
    if spread is not None:
        return {"domains": labels, "spread": spread}
    weight = [one.weight for one in devices]
    total = sum(weight)
    found: dict[str, Amount] = {}
    paths: list[tuple[str, ...]] = [()] * len(devices)
    for tier in TIERS:
        paths = [(*path, own) for path, own in zip(paths, labels[tier], strict=True)]
        shares: dict[tuple[str, ...], float] = {}
        for path, amount in zip(paths, weight, strict=True):
            if amount > 0.0:
                shares[path] = shares.get(path, 0.0) + amount
        if shares:
            # the greatest share, rounded up: a rounding error is no further replica
            greatest = ring.replicas * max(shares.values()) / total
            found[tier] = max(int(np.ceil(greatest - 1e-9)), 1)
    return {"domains": labels, "spread": found}
