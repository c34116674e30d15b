"""Flights: how much of the copies in flight has arrived."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.quantities import is_real
from evenkeel.planning.changes.acts import Act, Acts

Arrived = Mapping[tuple[str, str], float]
"""Names of a partition and of the node that it is copied to; share that is there, 0 to 1."""


@dataclass(frozen=True, eq=False)
class Flights:
    """The nodes that K replicas are on or on their way to, and the share that is still to come."""

    node: NDArray[np.int32]
    coming: NDArray[np.float64]

    @classmethod
    def of(cls, cluster: Cluster, now: Placement, arrived: Arrived | None) -> "Flights":
        """Read what has arrived of replicas that are flagged as incoming: all, where that is seen.

        Raises
        ------
        InvalidInput
            If nothing is in flight there, or a share is none.
        """
        faults = FaultList()
        if arrived is not None and not isinstance(arrived, Mapping):
            faults.add("arrived", arrived, "must map (partition, node) to a share")
            faults.raise_if_any()
        coming = np.where((now.flags & (Flag.HEALTHY | Flag.CAUGHT_UP)) != 0, 0.0, 1.0)
        rows: dict[tuple[str, str], int] = {}
        names, nodes = cluster.partitions.names, cluster.nodes.names
        if arrived:
            for k in np.flatnonzero((now.flags & Flag.INCOMING) != 0).tolist():
                rows[names[int(now.owner[k])], nodes[int(now.node[k])]] = k
        for key, share in (arrived or {}).items():
            if not is_real(share) or not 0.0 <= share <= 1.0:
                faults.add(f"arrived[{key!r}]", share, "must be a share, 0 to 1")
            elif key not in rows:
                faults.add("arrived", key, "is not a partition and node of a copy in flight")
            else:
                coming[rows[key]] = 1.0 - share
        faults.raise_if_any()
        return cls(now.node, coming)

    def left(
        self, replica: NDArray[np.integer], target: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """Return the share of copies of replicas to nodes that has not arrived yet."""
        return np.where(self.node[replica] == target, self.coming[replica], 1.0)

    def of_acts(self, acts: Acts, begin: Placement) -> Acts:
        """Return acts with the share of their copies that has not arrived, and who is under way."""
        left = self.left(acts.replica, acts.target)
        flying = (self.node[acts.replica] == acts.target) & (
            begin.node[acts.replica] != acts.target
        )
        flying &= (acts.act == Act.MOVE) | (acts.act == Act.ADD)
        return replace(acts, left=left, flying=flying)
