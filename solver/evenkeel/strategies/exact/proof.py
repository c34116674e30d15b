"""What an exact solve proves, stage by stage."""

from dataclasses import dataclass
from typing import Literal

Certainty = Literal["optimal", "feasible", "infeasible", "unknown"]
"""*optimal*: every stage is proven; *feasible*: some stage was cut short; *infeasible*: proven that
no placement exists; *unknown*: nothing was found in the time given."""


@dataclass(frozen=True)
class Stage:
    """One thing that was made as small as it can be, after those before it.

    Parameters
    ----------
    name : str
        ``"missing"`` (replicas without a node, then wishes missed), ``"level"`` (greatest excess
        over a node's target, as a share of it), or ``"moves"`` (then leadership changes).
    value : float
        What was reached.
    bound : float
        What nothing can beat.
    """

    name: str
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """How much less might be possible; 0 where it is proven that nothing is."""
        return self.value - self.bound


@dataclass(frozen=True)
class Proof:
    """What is known of the answer of an exact solve.

    Parameters
    ----------
    status : str
        A ``Certainty``.
    stages : tuple of Stage
        In the order of their importance.
    effort : float
        Deterministic seconds that it took.
    """

    status: Certainty
    stages: tuple[Stage, ...] = ()
    effort: float = 0.0
