"""What a plan leaves undone, and why."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Blocked:
    """A replica that the plan leaves where it is, or as it is, and why.

    Parameters
    ----------
    partition : str
        Name of the partition.
    slot : int
        Slot of the replica.
    source, target : str or None
        Nodes that it should leave and join; the same for what is no move.
    lacks : str
        What it waits for in vain.
    circle : int
        Moves with the same number wait for one another; -1: it waits for one of those.
    change : str
        What should become of it: "move", or where it is "lead", "promote" or "demote".

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[2.0]] * 2, load=[[2.0]] * 2, placement=[[0], [1]])
    >>> swapped = c.placement.replaced(c.placement.node[::-1].copy(), c.placement.leader)
    >>> for one in ek.plan(c, swapped).blocked:
    ...     print(one)
    p0[0] n0 -> n1: no room on n1 in d0
    p1[0] n1 -> n0: no room on n0 in d0
    """

    partition: str
    slot: int
    source: str | None
    target: str | None
    lacks: str
    circle: int
    change: str = "move"

    @property
    def way(self) -> str:
        """From where to where it should go, or what it should become where it is."""
        if self.change != "move":
            return f"{self.change} on {self.target}"
        return f"{self.source or 'nowhere'} -> {self.target or 'nowhere'}"

    def __str__(self) -> str:
        return f"{self.partition}[{self.slot}] {self.way}: no {self.lacks}"
