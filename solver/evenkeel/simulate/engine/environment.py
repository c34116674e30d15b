"""The environment of a simulated cluster: speed of changes, growth of data, delay of news."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList


@dataclass(frozen=True, eq=False)
class Environment:
    """What surrounds a cluster that is played.

    Parameters
    ----------
    snapshot : float
        Bytes per second at which one snapshot is sent.
    overhead : float
        Seconds that any change takes beyond its snapshots; all of it where no dimension is moved.
    receive, send : int
        Snapshots that one node takes in, and sends, at the same time.
    lead_gap : float
        Seconds between two transfers of leadership away from the same node.
    deadline : float
        Seconds after which a queue gives up a change; see ``never_done``.
    growth : ndarray of float64, shape (P,), optional
        What each replica grows by in a second, in the dimension that is moved.
    consensus : bool
        Whether only a majority of its voters can change a partition; else any live replica can.
    pace : float
        Least seconds between two decisions of a method; a pipeline is run after every event, and at
        this pace as long as it finds something. CockroachDB's queues have their own.
    gossip_interval, gossip_delay : float
        Seconds between two rounds of gossip, and until it is heard; 0 where all is known at once.

    Raises
    ------
    InvalidInput
        If a rate is not above 0, or a time below 0.

    References
    ----------
    CockroachDB, cluster settings ``kv.snapshot_rebalance.max_rate`` (32 MiB/s) and
    ``kv.allocator.min_lease_transfer_interval`` (1 s); queue timeout 60 s.

    Examples
    --------
    >>> Environment(snapshot=1e6).seconds(3e6, 2)
    3.1
    """

    snapshot: float = 32.0 * 2**20
    overhead: float = 0.1
    receive: int = 1
    send: int = 2
    lead_gap: float = 1.0
    deadline: float = 60.0
    growth: NDArray[np.float64] | None = None
    consensus: bool = False
    pace: float = 10.0
    gossip_interval: float = 0.0
    gossip_delay: float = 0.0

    def __post_init__(self) -> None:
        faults = FaultList()
        for name in ("snapshot", "receive", "send", "deadline", "pace"):
            if not getattr(self, name) > 0:
                faults.add(f"environment.{name}", getattr(self, name), "must be above 0")
        for name in ("overhead", "lead_gap", "gossip_interval", "gossip_delay"):
            if not getattr(self, name) >= 0:
                faults.add(f"environment.{name}", getattr(self, name), "must be 0 or more")
        faults.raise_if_any()

    def seconds(self, size: float, snapshots: int) -> float:
        """Return how long a change takes once it has begun.

        Parameters
        ----------
        size : float
            Bytes of one replica.
        snapshots : int
            How many are sent, as many at the same time as one node may send.

        Returns
        -------
        float
            Seconds.
        """
        return self.overhead + -(-snapshots // self.send) * size / self.snapshot
