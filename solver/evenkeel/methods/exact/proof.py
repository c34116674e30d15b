"""What an exact solve proves, stage by stage."""

from dataclasses import dataclass
from typing import Literal

from evenkeel.methods.contract import Request
from evenkeel.model.limits import Limits

Certainty = Literal["optimal", "feasible", "infeasible", "unknown"]
"""*optimal*: every stage is proven; *feasible*: some stage was cut short; *infeasible*: proven that
no placement exists; *unknown*: nothing was found in the time given."""


@dataclass(frozen=True)
class Stage:
    """One thing that was made as small as it can be, after those before it."""

    name: str
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """How much less might be possible; 0 where it is proven that nothing is."""
        return self.value - self.bound


@dataclass(frozen=True)
class Proof:
    """What is known of the answer of an exact solve."""

    status: Certainty
    stages: tuple[Stage, ...] = ()
    effort: float = 0.0


def within_limits(request: Request) -> str:
    """Say that a proof is of what limits admit, where any are set; "" where none are."""
    return "" if request.limits == Limits() else " within the limits"
