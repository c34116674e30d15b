"""Changes: what a controller may ask of a range, and how fast the cluster carries them out."""

from dataclasses import dataclass, field

import numpy as np

from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Role


@dataclass(frozen=True)
class Change:
    """One atomic change of a partition's replicas, or of who leads it.

    Parameters
    ----------
    partition : int
        The partition.
    add : tuple of (int, Role)
        Nodes that join, and as what; each is sent a snapshot first.
    drop : tuple of int
        Nodes that leave.
    role : tuple of (int, Role)
        Nodes that stay in another role.
    lead : int
        Node that leads afterwards; -1 leaves that as it is, or to whoever takes the leader's slot.
    by : str
        Who asked for it.
    reason : str
        Why, in a few words.
    urgency : float
        Of those that wait for the same lane the most urgent goes first.
    claims : bool
        Whether it waits for a change of the same partition that is under way, and keeps all others
        off until it is done, instead of being refused.
    deadline : float
        Seconds that it may take, waiting included, before it is given up.

    Examples
    --------
    >>> Change(3, add=((7, Role.VOTER),), drop=(1,)).moves
    1
    """

    partition: int
    add: tuple[tuple[int, Role], ...] = ()
    drop: tuple[int, ...] = ()
    role: tuple[tuple[int, Role], ...] = ()
    lead: int = -1
    by: str = ""
    reason: str = ""
    urgency: float = 0.0
    claims: bool = False
    deadline: float = np.inf

    @property
    def moves(self) -> int:
        """Replicas that get another node, or a first one."""
        return len(self.add)

    @property
    def only_leads(self) -> bool:
        """Whether no replica changes, only who leads."""
        return not (self.add or self.drop or self.role)


@dataclass(frozen=True)
class Rates:
    """How fast changes are carried out.

    Parameters
    ----------
    snapshot : float
        Bytes per second at which one snapshot is sent.
    overhead : float
        Seconds that any change takes beyond its snapshots.
    receive, send : int
        Snapshots that one node takes in, and sends, at the same time.
    lead_gap : float
        Seconds between two transfers of leadership away from the same node.
    deadline : float
        Seconds after which a queue gives up a change; see ``never_done``.

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
    >>> Rates(snapshot=1e6).seconds(3e6, 2)
    3.1
    """

    snapshot: float = 32.0 * 2**20
    overhead: float = 0.1
    receive: int = 1
    send: int = 2
    lead_gap: float = 1.0
    deadline: float = 60.0

    def __post_init__(self) -> None:
        faults = FaultList()
        for name in ("snapshot", "receive", "send", "deadline"):
            if not getattr(self, name) > 0:
                faults.add(f"rates.{name}", getattr(self, name), "must be above 0")
        for name in ("overhead", "lead_gap"):
            if not getattr(self, name) >= 0:
                faults.add(f"rates.{name}", getattr(self, name), "must be 0 or more")
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


@dataclass
class Flight:
    """A change that was submitted."""

    change: Change
    number: int
    submitted: int
    ends: int = -1
    source: int = -1
    cancelled: bool = field(default=False)
