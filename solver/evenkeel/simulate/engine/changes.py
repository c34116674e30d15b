"""Changes: what a controller may ask of a range, and what is on its way."""

from dataclasses import dataclass, field

import numpy as np

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


@dataclass
class Flight:
    """A change that was submitted."""

    change: Change
    number: int
    submitted: int
    ends: int = -1
    source: int = -1
    cancelled: bool = field(default=False)
