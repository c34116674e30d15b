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
    """One change of one partition that somebody decided on.

    Parameters
    ----------
    partition : int
        The partition.
    add : tuple of (int, int)
        Nodes that join, and their roles.
    drop : tuple of int
        Nodes that leave.
    role : tuple of (int, int)
        Nodes that stay in another role.
    lead : int
        Node that leads afterwards; -1 if that is left open.
    reason : str
        Why.
    urgency : float
        Of a lease that moves: the higher, the sooner its turn comes in a queue.
    """

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
        """Hear where the replicas of a partition are now.

        Parameters
        ----------
        partition : int
            The partition.
        node : ndarray of int32, shape (W,)
            Node in each slot; -1 for none.
        role : ndarray of uint8, shape (W,)
            Role of each.
        leader : int
            Slot that leads.
        """

    @abstractmethod
    def look(self, sight: Sight) -> None:
        """Take in what whoever decides next knows.

        Parameters
        ----------
        sight : Sight
            Of all nodes.
        """

    @abstractmethod
    def action(self, partition: int) -> tuple[str, float]:
        """Return what a partition needs first, and how urgently.

        Parameters
        ----------
        partition : int
            The partition.

        Returns
        -------
        tuple of (str, float)
            ``"consider rebalance"`` where nothing is wrong, ``"unavailable"`` where nothing can be
            done, else any name; and a priority, 0 for both of these.
        """

    @abstractmethod
    def replicas(self, partition: int) -> Decision | None:
        """Decide the next change of a partition's replicas.

        Parameters
        ----------
        partition : int
            The partition.

        Returns
        -------
        Decision or None
            None if nothing is to be done, or nothing can be.
        """

    @abstractmethod
    def lease(self, partition: int) -> Decision | None:
        """Decide whether a partition should be led from elsewhere.

        Parameters
        ----------
        partition : int
            The partition.

        Returns
        -------
        Decision or None
            None if its leader stays.
        """

    @abstractmethod
    def load(self, node: int) -> list[Decision]:
        """Decide what a node gives away because it carries too much load.

        Parameters
        ----------
        node : int
            The node.

        Returns
        -------
        list of Decision
            Most loaded first.
        """


@dataclass(frozen=True)
class DeciderEntry:
    """One entry of the table of deciders.

    Parameters
    ----------
    name : str
        As given to a simulation.
    where : str
        ``module:function``, imported when it is first used; takes a cluster, the dimension whose
        load is levelled, and a seed, and returns a ``Decider``.
    summary : str
        One line for people.
    """

    name: str
    where: str
    summary: str

    def load(self) -> Callable[[Cluster, str, int], Decider]:
        """Import what makes the decider.

        Returns
        -------
        callable
            Takes a cluster, a dimension and a seed.
        """
        module, _, function = self.where.partition(":")
        make: Callable[[Cluster, str, int], Decider] = getattr(import_module(module), function)
        return make


DECIDERS: dict[str, DeciderEntry] = {}


def register_decider(name: str, where: str, summary: str) -> None:
    """Add a decider to the table, or replace one.

    Parameters
    ----------
    name : str
        As given to a simulation.
    where : str
        ``module:function`` of what makes it.
    summary : str
        One line for people.
    """
    DECIDERS[name] = DeciderEntry(name, where, summary)


register_decider(
    "cockroach",
    "evenkeel.strategies.cockroach.deciding:decider",
    "CockroachDB's replicate queue, lease queue and store rebalancer, one range at a time",
)
