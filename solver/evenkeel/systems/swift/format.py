"""OpenStack Swift: a ring, in and out.

References
----------
OpenStack Swift, ``swift.common.ring.ring.RingData``: the file of a ring, version 1.
"""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.systems.folders.carrier import (
    Carrier,
    Orders,
    Wave,
    all_nodes,
    anybody,
    no_partition,
    stem,
)
from evenkeel.systems.folders.form import Command, Hold, Setting
from evenkeel.systems.registry import Format
from evenkeel.systems.swift.cluster import left_out, read, slots_of
from evenkeel.systems.swift.ring import HEADER, MAGIC, NO_DEVICE, VERSION, Head, hint, recognises

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan


MOMENT = 1300507380
"""The time in every ring that Swift writes, so that the same ring has the same bytes."""


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return a ring, and with a placement the one of before beside it.

    A ring is given to Swift as it is. Its builder does not know of it: the next rebalance starts
    from what the builder had.
    """
    faults = FaultList()
    ids, text = _ring_of(cluster)
    target = cluster.placement if placement is None else placement
    lost = (target.node < 0) & (cluster.placement.node >= 0)
    for p in np.unique(target.owner[lost])[:20].tolist():
        faults.add(cluster.partitions.names[p], -1, "would give up a replica")
    faults.raise_if_any()
    before = _packed(text, ids, cluster.placement)
    if placement is None:
        return {path: before}
    name = path.name.removesuffix(".ring.gz")
    return {
        path: _packed(_later(text, int((target.node != cluster.placement.node).any())),
                      ids, target),
        path.with_name(f"{name}.undo.ring.gz"): before,
    }  # fmt: skip


def packed_after(cluster: Cluster, node: NDArray[np.int32], later: int) -> bytes:
    """Return the file of a ring with replicas elsewhere, ``later`` versions after the one read."""
    ids, text = _ring_of(cluster)
    placement = cluster.placement.replaced(node, cluster.placement.leader)
    return _packed(_later(text, later), ids, placement)


def _ring_of(cluster: Cluster) -> tuple[Sequence[int], str]:
    """Return the ids of a ring's devices, and its JSON."""
    native = cluster.native
    if not (isinstance(native, dict) and {"header", "ids"} <= native.keys()):
        message = "was not read from a ring: there is none to write"
        raise InvalidInput([Fault("cluster.native", type(native).__name__, message)])
    ids = native["ids"]
    if len(ids) != len(cluster.nodes):
        message = (
            f"the ring has {len(ids)} devices: add others with swift-ring-builder BUILDER add, "
            "write its ring (write_ring), and read that"
        )
        raise InvalidInput([Fault("node_names", len(cluster.nodes), message)])
    return ids, str(native["header"])


def _later(text: str, later: int) -> str:
    """Return the JSON of a ring with a later version, if it has one."""
    head: dict[str, Any] = msgspec.json.decode(text)
    if not later or not isinstance(head.get("version"), int):
        return text
    head["version"] += later
    return msgspec.json.encode(head).decode()


def _packed(text: str, ids: Sequence[int], placement: Placement) -> bytes:
    """Return the file of a ring, packed as Swift does."""
    head = msgspec.json.decode(text, type=Head)
    number = np.array([*ids, NO_DEVICE], np.int64)
    device: NDArray[np.int64] = np.empty(len(placement.node), np.int64)
    _, slots = slots_of(max(len(placement), 1), len(placement.node))
    device[slots] = number[placement.node]
    own = text.encode()
    order = "<u2" if head.byteorder == "little" else ">u2"
    content = HEADER.pack(MAGIC, VERSION, len(own)) + own + device.astype(order).tobytes()
    return gzip.compress(content, 6, mtime=MOMENT)


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
    """Return what brings a ring to all nodes and waits for replication.

    A ring that some nodes may have comes to all of them before anything else is done, which is why
    all of it is recorded first.
    """
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
    orders, look, settings=SETTINGS, notes=NOTES, still=STILL, leader=anybody,
    lists_nodes=all_nodes, gives_up=no_partition,
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
)
