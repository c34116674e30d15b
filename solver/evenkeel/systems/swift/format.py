"""The OpenStack Swift format: read a ring as a cluster, and write it with a placement.

References
----------
OpenStack Swift, ``swift.common.ring.ring.RingData``: the file of a ring, version 1.
"""

import gzip
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.model.rules import Amount
from evenkeel.model.runtime.printable import some_of
from evenkeel.systems.documents import Document, the_only
from evenkeel.systems.folders.carrier import (
    Carrier,
    Orders,
    Wave,
    all_nodes,
    anybody,
    as_wanted,
    stem,
)
from evenkeel.systems.folders.form import Command, Hold, Setting
from evenkeel.systems.native.arguments import build
from evenkeel.systems.notes import noted
from evenkeel.systems.payload import payload_of
from evenkeel.systems.registry import Format
from evenkeel.systems.swift.ring import (
    ASKS,
    ASSIGNMENTS,
    DEVICES,
    HASH_BITS,
    HEADER,
    MAGIC,
    METADATA,
    MOST_DEVICES,
    NO_DEVICE,
    NONE,
    SECTIONS,
    VERSION,
    WORDS,
    Device,
    Head,
    Ring,
    SectionWriter,
    check_devices,
    hint,
    read_ring,
    recognises,
)

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan

NAME = "swift"
TIERS = ("region", "zone", "server")
COUNT = "parts"

TierPath = tuple[str, ...]  # a domain, or a device: region, zone, server, device


def read(documents: Sequence[Document], *, spread: Mapping[str, Amount] | None = None) -> Cluster:
    """Read a cluster from a ring."""
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
    if ring.more > 0:
        given["native"]["more"] = ring.more
    given |= _placement(ring, devices)
    notes = given["native"]["notes"] = []
    if ring.version != VERSION:
        is_wide = any(one.id >= NO_DEVICE for one in devices)
        notes.append(
            f"a ring of version {ring.version}: a plan is written as version "
            + (f"{SECTIONS}, which alone can name these devices" if is_wide else
               f"{VERSION}, which every release of Swift reads")
        )  # fmt: skip
    if ring.overload:
        notes.append(f"an overload of {ring.overload:.0%}, which is not kept: shares are by weight")
    zones: dict[str, set[str]] = {}
    for one in devices:
        zones.setdefault(one.ip, set()).add(f"r{one.region}z{one.zone}")
    if torn := [ip for ip, own in zones.items() if len(own) > 1]:
        named = some_of(torn, lambda ip: f"{ip} in {' and '.join(sorted(zones[ip]))}")
        notes.append(
            f"servers in several zones ({named}): Swift takes each for as many servers, which may "
            "hold more than one replica of a partition together"
        )
    if ring.more:
        notes.append(
            f"{ring.replicas:g} replicas of a partition since set_replicas: {abs(ring.more)} "
            + ("are placed anew" if ring.more > 0 else "are given up, the last of their partitions")
        )
    strange = sorted({*ring.device.tolist()} - {NONE, *(one.id for one in devices)})
    if strange:
        notes.append(
            f"replicas on devices that are not there, which count as none: {some_of(strange, str)}"
        )
    given |= _amounts(ring, devices)
    # ``spread`` replaces the shares that weights give, for all domains of a tier alike
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
    ids = np.array([one.id for one in devices], np.int64)
    order = np.append(np.argsort(ids), -1)  # a device that is not there is none
    place = order[np.searchsorted(ids, ring.device, sorter=order[:-1])]
    node = np.where(np.append(ids, -1)[place] == ring.device, place, -1)
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
    """Return tiers, and how many replicas of a partition each domain may have."""
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
        # domains that may have fewer than the greatest of their tier have a tier of their own,
        # which does not nest, such as ``zone of at most 1``
        for amount in sorted({*most.values()} - {found[tier]}, reverse=True):
            own = f"{tier} of at most {amount}"
            found[own] = amount
            fewer[own] = [
                "/".join(path[:depth]) if most.get(path[:depth]) == amount else "" for path in paths
            ]
    return {"domains": labels | fewer, "crossing": [*fewer], "spread": found}


def shares_of(weight: Mapping[TierPath, float], replicas: float) -> dict[TierPath, float]:
    """Return how many replicas of each partition each domain should have, by its path.

    >>> shares_of({("a", "1"): 300.0, ("b", "2"): 100.0, ("b", "3"): 100.0}, 2.0)
    {('a',): 1.0, ('a', '1'): 1.0, ('b',): 1.0, ('b', '2'): 0.5, ('b', '3'): 0.5}
    """
    # OpenStack Swift, ``RingBuilder._build_weighted_replicas_by_tier``
    found: dict[TierPath, float] = {}

    def share_out(inside: Mapping[TierPath, float], depth: int, amount: float) -> None:
        below: dict[TierPath, dict[TierPath, float]] = {}
        for path, own in inside.items():
            below.setdefault(path[: depth + 1], {})[path] = own
        left, open_to = amount, dict(below)
        share: dict[TierPath, float] = {}
        while open_to:
            total = sum(sum(members.values()) for members in open_to.values())
            wanted = {at: left * sum(members.values()) / total for at, members in open_to.items()}
            # a domain gets no more than it has devices: what it cannot hold goes to those beside it
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


# the time in every ring that Swift writes, so that the same ring has the same bytes
MOMENT = 1300507380


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return a ring, and with a placement the one of before beside it."""
    # A ring is given to Swift as it is. Its builder does not know of it: the next rebalance starts
    # from what the builder had.
    faults = FaultList()
    ids, text = _ring_of(cluster)
    target = cluster.placement if placement is None else placement
    lost = (target.node < 0) & (cluster.placement.node >= 0)
    for p in np.unique(target.owner[lost])[:20].tolist():
        faults.add(cluster.partitions.names[p], -1, "would give up a replica")
    faults.raise_if_any()
    before = _packed(text, ids, cluster.placement, cluster.native.get("more", 0))
    if placement is None:
        return {path: before}
    later = int((target.node != cluster.placement.node).any())
    undo = path.with_name(f"{path.name.removesuffix('.ring.gz')}.undo.ring.gz")
    return {path: packed_after(cluster, target.node, later), undo: before}


def packed_after(cluster: Cluster, node: NDArray[np.int32], later: int) -> bytes:
    """Return the file of a ring with replicas elsewhere, ``later`` versions after the one read."""
    ids, text = _ring_of(cluster)
    if (node < 0).any():
        p = cluster.placement.owner[np.flatnonzero(node < 0)[0]]
        message = (
            "a replica has no device in this ring, and Swift reads none with such a gap: place all "
            "that are missing at once, without a throttle"
        )
        raise InvalidInput([Fault(cluster.partitions.names[p], -1, message)])
    placement = cluster.placement.replaced(node, cluster.placement.leader)
    return _packed(_later(text, later), ids, placement)


class Payload(TypedDict):
    """What was read beside a cluster."""

    header: str
    ids: list[int]
    # replicas that ``set_replicas`` added, which no ring has before they are placed
    more: NotRequired[int]


def _ring_of(cluster: Cluster) -> tuple[Sequence[int], str]:
    """Return the ids of a ring's devices, and its JSON."""
    strange = "was not read from a ring: there is none to write"
    native = payload_of(cluster, Payload, strange)
    ids, header = native["ids"], native["header"]
    try:
        parts = 1 << HASH_BITS - msgspec.json.decode(header, type=Head).part_shift
    except msgspec.MsgspecError as error:
        raise InvalidInput(
            [Fault("cluster.native.header", header, f"{strange} ({error})")]
        ) from None
    if len(cluster.partitions) != parts:
        message = f"the ring has {parts} partitions, whose number only its builder raises"
        raise InvalidInput([Fault("partition_names", len(cluster.partitions), message)])
    if len(ids) != len(cluster.nodes):
        message = (
            f"the ring has {len(ids)} devices: add others with swift-ring-builder BUILDER add, "
            "and read the builder"
        )
        raise InvalidInput([Fault("node_names", len(cluster.nodes), message)])
    return ids, header


def _later(text: str, later: int) -> str:
    """Return the JSON of a ring with a later version, if it has one."""
    head: dict[str, Any] = msgspec.json.decode(text)
    if not later or not isinstance(head.get("version"), int):
        return text
    head["version"] += later
    return msgspec.json.encode(head).decode()


def _packed(text: str, ids: Sequence[int], placement: Placement, more: int = 0) -> bytes:
    """Return the file of a ring, packed as Swift does, without the last ``more`` if unplaced."""
    head = msgspec.json.decode(text, type=Head)
    is_wide = max(ids, default=0) >= NO_DEVICE
    number = np.array([*ids, MOST_DEVICES if is_wide else NO_DEVICE], np.int64)
    device: NDArray[np.int64] = np.empty(len(placement.node), np.int64)
    _, slots = slots_of(max(len(placement), 1), len(placement.node))
    device[slots] = number[placement.node]
    if more and (device[-more:] == number[-1]).all():
        device = device[:-more]
        rows = float(-(-len(device) // len(placement)))
        text = msgspec.json.encode(msgspec.json.decode(text) | {"replica_count": rows}).decode()
    if is_wide:
        return _in_sections(text, device)
    own = text.encode()
    order = "<u2" if head.byteorder == "little" else ">u2"
    content = HEADER.pack(MAGIC, VERSION, len(own)) + own + device.astype(order).tobytes()
    return gzip.compress(content, 6, mtime=MOMENT)


def _in_sections(text: str, device: NDArray[np.int64]) -> bytes:
    """Return the file of a ring of version 2, with numbers of four bytes."""
    head: dict[str, Any] = msgspec.json.decode(text)
    meta = {key: head[key] for key in ("part_shift", "version", "next_part_power") if key in head}
    writer = SectionWriter(MOMENT)
    writer.add_section(METADATA, msgspec.json.encode(meta | {"dev_id_bytes": 4}))
    writer.add_section(DEVICES, msgspec.json.encode(head["devs"]))
    writer.add_section(ASSIGNMENTS, device.astype(">u4").tobytes())
    return writer.file()


STILL = "a ring is on its way that not all nodes may have"

SETTINGS = (
    Setting("RING", "/etc/swift/object.ring.gz", "the ring that this machine goes by"),
    Setting("DISTRIBUTE", "", "your program that puts the ring of its argument on all other nodes"),
    Setting(
        "REPLICATED",
        "",
        "your program that comes back when every node has replicated once with the ring of its "
        "argument, and fails where one could not",
    ),
)

NOTES = (
    "How rings reach the nodes, and how one sees that replication has passed, is a matter of your "
    "installation: a run begins only with `DISTRIBUTE` and `REPLICATED` set. For the second, "
    "`swift-recon object -r` tells when each node has completed its last pass, and "
    "`swift-dispersion-report` whether what it looks for is on its devices.",
    "Each ring moves at most one replica of a partition, as Swift's own builder does, so that the "
    "others serve meanwhile; who was left keeps its copy until replicators have found the new one.",
    "The builder does not know of these rings: its next `rebalance` starts from what it had. Move "
    "it aside before, and make one of the last ring by `swift-ring-builder RING write_builder "
    "HOURS` with your min_part_hours; then set your overload again.",
    "A pass can leave something behind: a new device takes nothing until its own replicator has "
    "made its folder of objects, and a node that could not give a partition away keeps it. Repeat "
    "the pass.",
    "A guard sees which ring this machine has, not whether data has arrived: that is what "
    "`REPLICATED` is for.",
)


def orders(cluster: Cluster, waves: Sequence[Wave]) -> list[Orders]:
    """Return the ring after each wave, and what hands it out."""
    faults = FaultList()
    names = cluster.nodes.names
    for wave in waves:
        for one in wave:
            if len(one.leaves) > 1:
                message = "would move two replicas at once: plan with the protocol plain"
                faults.add(one.name, [names[n] for n in one.leaves], message)
            if len(one.leaves) > len(one.joins):
                faults.add(one.name, [names[n] for n in one.leaves], "would give up a replica")
    faults.raise_if_any()
    node, first = cluster.placement.node.copy(), cluster.placement.first.tolist()
    found = []
    for number, wave in enumerate(waves, start=1):
        for one in wave:
            node[first[one.partition] : first[one.partition + 1]] = one.after
        file = f"{stem(number, len(waves))}ring.gz"
        found.append(Orders(_handed_out(file), {file: packed_after(cluster, node, number)}))
    return found


def _handed_out(file: str) -> list[Command]:
    """Return what brings a ring to all nodes and waits for replication."""
    # a ring that some nodes may have comes to all of them before anything else is done, which is
    # why all of it is recorded first
    steps = [
        Command(["${DISTRIBUTE}", "${FILE}"], file=file),
        Command(["cp", "--", "${FILE}", "${RING}.part"], file=file),
        Command(["mv", "--", "${RING}.part", "${RING}"]),
        Command(["${REPLICATED}", "${FILE}"], file=file),
    ]
    return [Command(hold=Hold("ring", steps, first=True)), Command(release="ring")]


def look(plan: "Plan") -> list[Command]:
    """Return what shows the ring of this machine."""
    return [Command(["cat", "--", "${RING}"], save="now.ring.gz")]


CARRIER = Carrier(
    orders=orders, look=look, settings=SETTINGS, notes=NOTES, still=STILL, leader=anybody,
    lists_nodes=all_nodes, listed=as_wanted,
)  # fmt: skip


FORMAT = Format(
    name="swift",
    summary="OpenStack Swift: one ring, such as object.ring.gz",
    suffixes=(".ring.gz",),
    recognises=recognises,
    read=read,
    encode=encode,
    left_out=left_out,
    carrier=CARRIER,
    hint=hint,
    asks=ASKS,
    words=WORDS,
)
