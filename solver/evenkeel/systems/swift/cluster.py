"""Read a cluster from a ring: devices are nodes; regions, zones and servers tiers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.rules import Amount
from evenkeel.model.runtime.printable import some_of
from evenkeel.systems.documents import Document, the_only
from evenkeel.systems.native.arguments import build
from evenkeel.systems.notes import noted
from evenkeel.systems.swift.ring import NO_DEVICE, VERSION, Device, Ring, check_devices, read_ring

NAME = "swift"
TIERS = ("region", "zone", "server")
COUNT = "parts"

Path = tuple[str, ...]
"""A domain, or a device: region, zone, server, device."""


def read(documents: Sequence[Document], *, spread: Mapping[str, Amount] | None = None) -> Cluster:
    """Read a cluster from a ring.

    Replicas of a partition stand as far apart as weights let them: in no region, zone or server
    are more of them than its own share, rounded up; ``spread`` replaces that, for all domains of
    a tier alike. A device of weight 0 gives away what it has.
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
    given |= _placement(ring, devices)
    notes = given["native"]["notes"] = []
    if ring.version != VERSION:
        notes.append(
            f"a ring of version {ring.version}: a plan is written as version {VERSION}, which "
            "every release of Swift reads"
        )
    strange = sorted({*ring.device.tolist()} - {NO_DEVICE, *(one.id for one in devices)})
    if strange:
        notes.append(
            f"replicas on devices that are not there, which count as none: {some_of(strange, str)}"
        )
    given |= _amounts(ring, devices)
    given |= _tiers(ring, devices, spread)
    return build(faults, given, lambda path: f"{document.name}: {path}")


def left_out(cluster: Cluster) -> Iterable[str]:
    """Return what was noted of a ring."""
    return noted(cluster.native)


def name_of(device: Device) -> str:
    """Return a device as ``swift-ring-builder`` looks it up."""
    host = f"[{device.ip}]" if ":" in device.ip else device.ip
    where = f"r{device.region}z{device.zone}-{host}:{device.port}/{device.device}"
    return f"d{device.id}{where}"


def _placement(ring: Ring, devices: Sequence[Device]) -> dict[str, Any]:
    """Return the device of each replica, by partition, without leaders."""
    place = np.full(2**16, -1, np.int64)
    for n, one in enumerate(devices):
        place[one.id] = n
    node = place[ring.device]
    width, slots = slots_of(ring.parts, len(node))
    return {
        "placement": node[slots],
        "first": np.concatenate([[0], np.cumsum(width)]).astype(np.int64),
        "leader": np.full(ring.parts, -1),
        "replicas": width,
    }


def slots_of(parts: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many replicas each partition has, and where in the file they stand, by partition.

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
    takes = weight > 0.0
    # even the lightest device could hold a replica of each partition
    least = float(weight[takes].min(initial=np.inf))
    share = weight / max(float(weight.max(initial=0.0)), 1e-300)
    room = max(len(ring.device), 1, ring.parts / least * float(weight.max(initial=0.0)))
    return {
        "dimensions": [COUNT],
        "load": np.ones((ring.parts, 1)),
        "capacity": (share * room)[:, None],
        "weight": weight,
        "accepts": takes,
        "keeps": takes,
    }


def _tiers(
    ring: Ring, devices: Sequence[Device], spread: Mapping[str, Amount] | None
) -> dict[str, Any]:
    """Return tiers, and how many replicas of a partition each domain may have.

    Domains that may have fewer than the greatest of their tier have a tier of their own, which
    does not nest, such as ``zone of at most 1``.
    """
    labels = {
        "region": [f"r{one.region}" for one in devices],
        "zone": [f"z{one.zone}" for one in devices],
        "server": [one.ip for one in devices],
    }
    if spread is not None:
        return {"domains": labels, "spread": spread}
    paths = [(*(labels[tier][n] for tier in TIERS), str(one.id)) for n, one in enumerate(devices)]
    weight = {path: one.weight for path, one in zip(paths, devices, strict=True) if one.weight > 0}
    if not weight:
        return {"domains": labels, "spread": {}}
    share = shares_of(weight, ring.replicas)
    found: dict[str, Amount] = {}
    fewer: dict[str, list[str]] = {}
    for depth, tier in enumerate(TIERS, start=1):
        # a rounding error is no further replica
        most = {
            path: max(int(np.ceil(amount - 1e-9)), 1)
            for path, amount in share.items()
            if len(path) == depth
        }
        found[tier] = max(most.values())
        for amount in sorted({*most.values()} - {found[tier]}, reverse=True):
            own = f"{tier} of at most {amount}"
            found[own] = amount
            fewer[own] = [
                "/".join(path[:depth]) if most.get(path[:depth]) == amount else "" for path in paths
            ]
    return {"domains": labels | fewer, "crossing": [*fewer], "spread": found}


def shares_of(weight: Mapping[Path, float], replicas: float) -> dict[Path, float]:
    """Return how many replicas of each partition each domain should have, by its path.

    ``weight`` is that of devices by their paths. A domain gets no more than it has devices: what
    it cannot hold goes to those beside it, by weight.

    OpenStack Swift, ``RingBuilder._build_weighted_replicas_by_tier``.

    >>> shares_of({("a", "1"): 300.0, ("b", "2"): 100.0, ("b", "3"): 100.0}, 2.0)
    {('a',): 1.0, ('a', '1'): 1.0, ('b',): 1.0, ('b', '2'): 0.5, ('b', '3'): 0.5}
    """
    found: dict[Path, float] = {}

    def share_out(inside: Mapping[Path, float], depth: int, amount: float) -> None:
        below: dict[Path, dict[Path, float]] = {}
        for path, own in inside.items():
            below.setdefault(path[: depth + 1], {})[path] = own
        left, open_to = amount, dict(below)
        share: dict[Path, float] = {}
        while open_to:
            total = sum(sum(members.values()) for members in open_to.values())
            wanted = {at: left * sum(members.values()) / total for at, members in open_to.items()}
            full = [at for at in open_to if wanted[at] > len(open_to[at])]
            if not full or len(full) == len(open_to):  # no domain has space for the rest
                share |= wanted
                break
            for at in full:
                share[at] = float(len(open_to.pop(at)))
                left -= share[at]
        for at, members in below.items():
            found[at] = share[at]
            if any(len(path) > len(at) for path in members):
                share_out(members, depth + 1, share[at])

    share_out(weight, 0, replicas)
    return found
