"""Interfaces of systems that decide partition by partition, for simulations and control loops."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class StoreView:
    """The known states of all N nodes at a decision, which may be stale."""

    # (N,) 0 available, 1 throttled, 2 suspect, 3 draining, 4 unknown, 5 decommissioning, 6 dead
    status: NDArray[np.int8]
    present: NDArray[np.bool_]  # (N,) whether a node is part of the cluster
    load: NDArray[np.float64]  # (N, D) in the dimensions of the cluster
    # replicas, leaders: (N,) what each has and leads
    replicas: NDArray[np.int64]
    leaders: NDArray[np.int64]
    io: NDArray[np.float64]  # (N,) how overloaded its disks are


@dataclass(frozen=True)
class Decision:
    """A decided change of one partition."""

    partition: int
    add: tuple[tuple[int, int], ...] = ()
    drop: tuple[int, ...] = ()
    role: tuple[tuple[int, int], ...] = ()
    lead: int = -1
    reason: str = ""
    urgency: float = 0.0


class Decider(Protocol):
    """Decides partition by partition, as a system does whose nodes decide by themselves.

    It applies no change: the caller reports the outcome.
    """

    def place(
        self, partition: int, node: NDArray[np.int32], role: NDArray[np.uint8], leader: int
    ) -> None:
        """Set the current replicas of a partition."""

    def look(self, seen: StoreView) -> None:
        """Set the states of nodes that the next decision uses."""

    def action(self, partition: int) -> tuple[str, float]:
        """Return what a partition needs first, and how urgently."""

    def replicas(self, partition: int) -> Decision | None:
        """Decide the next change of a partition's replicas."""

    def lease(self, partition: int) -> Decision | None:
        """Decide whether a partition should be led from elsewhere."""

    def load(self, node: int) -> list[Decision]:
        """Decide which load an overloaded node gives away."""
