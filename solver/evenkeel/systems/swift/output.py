"""Write the planned ring, and the original one as its undo."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, FaultList, InvalidInput
from evenkeel.model.placement import Placement
from evenkeel.systems.swift.cluster import slots_of
from evenkeel.systems.swift.ring import HEADER, MAGIC, NO_DEVICE, VERSION, Head

MOMENT = 1300507380
"""The time in every ring that Swift writes, so that the same ring has the same bytes."""


def encode(cluster: Cluster, placement: Placement | None, path: Path) -> dict[Path, bytes]:
    """Return a ring, and with a placement the one of before beside it.

    A ring is given to Swift as it is. Its builder does not know of it: the next rebalance starts
    from what the builder had.

    Raises
    ------
    InvalidInput
        If the cluster was not read from a ring, has other devices than that, or a replica would be
        given up.
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
