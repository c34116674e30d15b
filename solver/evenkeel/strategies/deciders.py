"""Who decides partition by partition, for simulations and control loops."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster


@dataclass(frozen=True)
class Sight:
    """What somebody knows of all N nodes when a decision is made; it may be old.

    Parameters
    ----------
    status : ndarray of int8, shape (N,)
        0 available, 1 throttled, 2 suspect, 3 draining, 4 unknown, 5 decommissioning, 6 dead.
    present : ndarray of bool, shape (N,)
        Whether a node is part of the cluster.
    load : ndarray of float64, shape (N, D)
        In the dimensions of the cluster.
    replicas, leaders : ndarray of int64, shape (N,)
        What each has and leads.
    io : ndarray of float64, shape (N,)
        How overloaded its disks are.
    """

    status: NDArray[np.int8]
    present: NDArray[np.bool_]
    load: NDArray[np.float64]
    replicas: NDArray[np.int64]
    leaders: NDArray[np.int64]
    io: NDArray[np.float64]


@dataclass(frozen=True)
class Decision:
    """One change of one partition that somebody decided on."""

    partition: int
    add: tuple[tuple[int, int], ...] = ()
    drop: tuple[int, ...] = ()
    role: tuple[tuple[int, int], ...] = ()
    lead: int = -1
    reason: str = ""
    urgency: float = 0.0


class Decider(ABC):
    """Decides partition by partition, as a system does whose nodes decide by themselves.

    It applies nothing: whoever asks says what came of it.
    """

    @abstractmethod
    def place(
        self, partition: int, node: NDArray[np.int32], role: NDArray[np.uint8], leader: int
    ) -> None:
        """Hear where the replicas of a partition are now."""

    @abstractmethod
    def look(self, sight: Sight) -> None:
        """Take in what whoever decides next knows."""

    @abstractmethod
    def action(self, partition: int) -> tuple[str, float]:
        """Return what a partition needs first, and how urgently."""

    @abstractmethod
    def replicas(self, partition: int) -> Decision | None:
        """Decide the next change of a partition's replicas."""

    @abstractmethod
    def lease(self, partition: int) -> Decision | None:
        """Decide whether a partition should be led from elsewhere."""

    @abstractmethod
    def load(self, node: int) -> list[Decision]:
        """Decide what a node gives away because it carries too much load."""


@dataclass(frozen=True)
class DeciderEntry:
    """One entry of the table of deciders."""

    name: str
    where: str
    summary: str

    def load(self) -> Callable[[Cluster, str, int], Decider]:
        """Import what makes the decider."""
        module, _, function = self.where.partition(":")
        make: Callable[[Cluster, str, int], Decider] = getattr(import_module(module), function)
        return make


DECIDERS: dict[str, DeciderEntry] = {}


def register_decider(name: str, where: str, summary: str) -> None:
    """Add a decider to the table, or replace one."""
    DECIDERS[name] = DeciderEntry(name, where, summary)


register_decider(
    "cockroach",
    "evenkeel.strategies.cockroach.range_decider:decider",
    "CockroachDB's replicate queue, lease queue and store rebalancer, one range at a time",
)
