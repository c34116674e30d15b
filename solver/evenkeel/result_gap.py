"""How far a result is from what is proven: shares of the bounds, and figures beside them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import Audit
from evenkeel.measure.bounds import Bounds
from evenkeel.measure.bounds.leaders import LeaderBound
from evenkeel.measure.compare import Comparison
from evenkeel.measure.costs import CostParts
from evenkeel.measure.levelness import ROUNDING, Levelness
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag

REPLICAS_STAY = "for where replicas stay"
"""Other moves, as many of them, might spare some of the leader changes."""


@dataclass(frozen=True)
class Gap:
    """How far a result may be from the best, as a share of the proven bound; 0 is proven best.

    Bounds are proven of placements that place every replica and break no hard rule, and of
    ``moves`` of those that meet the goals, too. Of other results they prove nothing: that is
    ``inf`` then. ``leaders`` is of the most leaders on a node; ``leader_changes`` of the fewest
    changes for where replicas stay, None unless the goals were reached; ``floor`` is the greatest
    part of its floor that a node lacks.
    """

    moves: float
    level: float
    leaders: float
    cost: float | None = None
    floor: float = 0.0
    fewest_changes: Callable[[], float | None] | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def leader_changes(self) -> float | None:
        """Worked out when asked for: it takes longer than the other figures together."""
        return None if self.fewest_changes is None else self.fewest_changes()


@dataclass(frozen=True)
class Proven:
    """A figure of a result beside what is proven of it: of all placements, or of some, if given."""

    name: str
    value: float
    least: float
    gap: float
    term: str
    given: str = ""

    @property
    def reason(self) -> str:
        """By what it is proven, and of which placements, where not of all."""
        return f"{self.term}, {self.given}" if self.given else self.term

    @property
    def figures(self) -> tuple[str, str, str]:
        """What was reached, what is proven, and the gap, as they are written."""
        whole = self.name in ("moves", "cost", "leaders", "leader changes")
        value, least = (f"{x:,.0f}" if whole else f"{x:.4f}" for x in (self.value, self.least))
        return value, least, f"{self.gap:.2%}" if np.isfinite(self.gap) else "unknown"

    def __str__(self) -> str:
        if not np.isfinite(self.value):
            return f"{self.name}: endless capacity leaves no mean to compare with"
        value, least, gap = self.figures
        return f"{self.name} {value} (at least {least} by {self.reason}; gap {gap})"


class Judged(Protocol):
    """What is known of a result before it is held against its bounds."""

    @property
    def cluster(self) -> Cluster:
        """What was solved."""

    @property
    def bounds(self) -> Bounds:
        """What is proven of its placements."""

    @property
    def audit(self) -> Audit:
        """What the placement breaks."""

    @property
    def comparison(self) -> Comparison:
        """What changes."""

    @property
    def levelness(self) -> Levelness:
        """How loads lie on nodes."""

    @property
    def goals_reached(self) -> bool:
        """Whether all goals are met."""

    @property
    def goals_asked(self) -> bool:
        """Whether they bind."""

    @property
    def cost(self) -> CostParts | None:
        """What the placement costs, if a cost was minimised."""

    @property
    def leader_bound(self) -> LeaderBound | None:
        """Proof of the fewest leader changes, where there is one."""


def gap_of(result: Judged) -> Gap:
    """Work out how far from the proven bounds a result is."""
    bounds, levelness = result.bounds, result.levelness
    above = np.inf
    if result.audit.ok and result.goals_reached:
        above = _over(result.comparison.moves, bounds.moves_level)
    cost = None
    if result.cost is not None and bounds.cost is not None:
        cost = _share_above(result.cost.total, bounds.cost.total)
    if not result.audit.ok:
        return Gap(above, np.inf, np.inf, None if cost is None else np.inf, np.inf)
    pairs = zip(levelness.most.tolist(), bounds.level.tolist(), strict=True)
    leaders = int(levelness.leaders.max(initial=0))
    return Gap(
        moves=above,
        level=max((_share_above(most, least) for most, least in pairs), default=0.0),
        leaders=max(0.0, leaders / max(bounds.leaders, 1) - 1.0),
        cost=cost,
        floor=float(_below_floor(result).max(initial=0.0)),
        fewest_changes=partial(_leader_gap, result),
    )


def proven_of(result: Judged, gap: Gap) -> Iterator[Proven]:
    """Yield what a result that breaks no hard rule has reached beside what is proven."""
    bounds, levelness = result.bounds, result.levelness
    if result.cost is not None and bounds.cost is not None and gap.cost is not None:
        least = bounds.cost
        yield Proven("cost", result.cost.total, least.total, gap.cost, least.term)
    elif result.goals_reached and result.goals_asked:
        moves, fewest = result.comparison.moves, bounds.moves_level
        yield Proven("moves", moves, fewest, gap.moves, bounds.moves_term)
    is_known = result.goals_asked and result.comparison.leader_changes > 0
    is_known &= not (result.cluster.placement.flags & Flag.PREFERRED).any()
    if is_known and result.leader_bound is not None:
        changes, fewest = result.comparison.leader_changes, result.leader_bound.changes
        term = result.leader_bound.term
        gap_here = _over(changes, fewest)
        yield Proven("leader changes", changes, fewest, gap_here, term, REPLICAS_STAY)
    for name, value, ratio, term in zip(
        result.cluster.dimensions, levelness.ratio.tolist(), bounds.ratio.tolist(),
        bounds.level_term, strict=True,
    ):  # fmt: skip
        yield Proven(f"level of {name}", value, ratio, _share_above(value, ratio), term)
    if bounds.leaders:
        most = int(levelness.leaders.max(initial=0))
        yield Proven("leaders", most, bounds.leaders, gap.leaders, bounds.leaders_term)


def _leader_gap(result: Judged) -> float | None:
    """Return by what share leader changes are above the fewest; None if these are not known."""
    if result.leader_bound is None:
        return None
    return _over(result.comparison.leader_changes, result.leader_bound.changes)


def _below_floor(result: Judged) -> NDArray[np.float64]:
    """Return the part of its floor that each node lacks, (N, D)."""
    floor = result.bounds.floor
    lacks = np.maximum(floor - result.levelness.loads, 0.0)
    return np.divide(lacks, floor, out=np.zeros_like(lacks), where=lacks > ROUNDING * floor)


def _over(count: int, least: int) -> float:
    """Return how many more there are than the fewest, as a share of these."""
    return (count - least) / max(least, 1)


def _share_above(value: float, least: float) -> float:
    """How far a figure is above its bound, as a share of it."""
    if value <= least:
        return 0.0
    return value / least - 1.0 if least > 1e-300 else np.inf
