"""Limits: hard budgets on what a solve may move."""

from dataclasses import dataclass

from evenkeel.model.errors import FaultList


@dataclass(frozen=True)
class Limits:
    """Budgets that a result never exceeds; repairs come first and count.

    Parameters
    ----------
    moves : int or None
        Most moves in all.
    bytes : float or None
        Most data moved, in the unit of the cluster's ``bytes`` dimension.
    node_in, node_out : int or None
        Most replicas that may enter, or leave, one node.

    Raises
    ------
    InvalidInput
        If a budget is negative.

    Examples
    --------
    >>> Limits(moves=500, node_in=20).moves
    500
    """

    moves: int | None = None
    bytes: float | None = None
    node_in: int | None = None
    node_out: int | None = None

    def __post_init__(self) -> None:
        faults = FaultList()
        for name in ("moves", "bytes", "node_in", "node_out"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                faults.add(f"limits.{name}", value, "must be 0 or more")
        faults.raise_if_any()
