"""Compute the frontier of imbalance against number of moves, point by point, with bounds."""

import logging
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Goals
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.quantities import Percent, check_whole
from evenkeel.model.runtime.logs import log_event
from evenkeel.model.runtime.shown import Reported, Shown
from evenkeel.result import Result
from evenkeel.solving import solve

logger = logging.getLogger("evenkeel.frontier")

FINEST = 0.001  # the tolerance of the most level point, by default
MOST_POINTS = 1000

HALVINGS = 6  # solves that look for the best plan between two points


@dataclass(frozen=True, eq=False)
class Frontier(Reported, Shown):
    """Plans of which none is both more level and cheaper than another. F points, cheapest first.

    Parameters
    ----------
    cluster : Cluster
        The snapshot that the plans start from.
    results : tuple of Result
        One for each point.
    goals : Goals
        What all points have in common; their ``level`` is the finest tolerance.
    options : mapping
        Further arguments that every point was solved with.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[8.0]] * 4, load=[[1.0]] * 8, placement=[[0]] * 8
    ... )
    >>> found = ek.frontier(cluster, points=5, goals=ek.Goals(level=0.0))
    >>> found.moves.tolist(), found.level.tolist()
    ([0, 6], [4.0, 1.0])
    """

    cluster: Cluster
    results: tuple[Result, ...]
    goals: Goals
    options: dict[str, Any]

    def __repr__(self) -> str:
        points = ", ".join(
            f"{moves} moves to {level:.4g}"
            for moves, level in zip(self.moves.tolist(), self.level.tolist(), strict=True)
        )
        return f"<Frontier: {points}>"

    @property
    def level(self) -> NDArray[np.float64]:
        """Highest utilisation over the fair one, of the worst dimension, (F,) float64."""
        return read_only(np.array([_level(one) for one in self.results]))

    @property
    def moves(self) -> NDArray[np.int64]:
        """Moves of each plan, (F,) int64."""
        return read_only(np.array([one.comparison.moves for one in self.results], np.int64))

    @property
    def moves_at_least(self) -> NDArray[np.int64]:
        """The proven least number of moves for each tolerance, (F,) int64."""
        return read_only(np.array([one.bounds.moves_level for one in self.results], np.int64))

    @property
    def bytes(self) -> NDArray[np.float64]:
        """Data that each plan moves, in the unit of the dimension that moves, (F,) float64."""
        return read_only(np.array([one.comparison.bytes_moved for one in self.results]))

    def within(self, moves: int) -> Result:
        """Find the most level plan within a number of moves.

        Parameters
        ----------
        moves : int
            Most moves; no fewer than the repairs need.

        Returns
        -------
        Result
            The best point that keeps to it, or a better one between that and the next.

        Raises
        ------
        InvalidInput
            If the repairs alone need more.
        """
        faults = FaultList()
        check_whole(faults, "moves", moves)
        faults.raise_if_any()
        affordable = np.flatnonzero(self.moves <= moves)
        if len(affordable) == 0:
            message = f"the repairs alone take {int(self.moves.min())} moves"
            faults.add("moves", moves, message)
        faults.raise_if_any()
        at = int(affordable[-1])
        best = self.results[at]
        if at + 1 == len(self.results):
            return best
        wide, narrow = self.level[at] - 1.0, self.level[at + 1] - 1.0
        for _ in range(HALVINGS):
            middle = float((wide + narrow) / 2.0)
            tried = _solved(self.cluster, self.goals, middle, self.options)
            if tried.comparison.moves > moves:
                narrow = middle
                continue
            wide = middle
            if _level(tried) <= _level(best):
                best = tried
        return best


@known_keywords
def frontier(
    cluster: Cluster,
    points: int = 10,
    *,
    goals: Goals | None = None,
    time_limit: float | None = None,
    seed: int = 0,
) -> Frontier:
    """Trace how level the cluster can be for how many moves.

    The first point repairs only; the others ask for tolerances that shrink by the same factor each.

    Parameters
    ----------
    cluster : Cluster
        The snapshot.
    points : int, optional
        How many plans to try, 2 to 1000.
    goals : Goals, optional
        Its ``level`` is the tolerance of the most level point, a single number; 0.001 by default.
        All points meet its other tolerances as well. ``act_above`` and ``worth`` are left out,
        since the points show what acting costs.
    time_limit : float, optional
        Seconds for each point.
    seed : int, optional
        All randomness comes from it.

    Returns
    -------
    Frontier
        Cheapest first; plans that another one beats are left out.

    Raises
    ------
    InvalidInput
        If an argument cannot be used.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[8.0]] * 4, load=[[1.0]] * 8, placement=[[0]] * 8
    ... )
    >>> ek.frontier(cluster, points=3, goals=ek.Goals(level=0.0)).within(5).comparison.moves
    5
    """
    goals = Goals(level=FINEST) if goals is None else goals
    faults = FaultList()
    if not isinstance(points, int) or not 2 <= points <= MOST_POINTS:
        faults.add("points", points, f"must be a whole number, 2 to {MOST_POINTS}")
    if not isinstance(goals, Goals) or not isinstance(goals.level, float | int):
        message = "must be Goals with one level for all dimensions, such as Goals(level=0.02)"
        faults.add("goals", goals, message)
    faults.raise_if_any()
    assert isinstance(goals.level, float | int)
    options = {"time_limit": time_limit, "seed": seed}
    began = time.perf_counter()
    log_event(
        logger, "searching", logging.DEBUG, points=points, finest=float(goals.level), seed=seed
    )
    repaired = _solved(cluster, goals, None, options)
    widest = _level(repaired) - 1.0
    if not np.isfinite(widest):  # a node without capacity holds a load
        widest = 1.0
    finest = max(float(goals.level), 1e-9)
    found = [repaired]
    for i in range(1, points):
        tolerance = widest * (finest / widest) ** (i / (points - 1)) if widest > finest else finest
        if i == points - 1:
            tolerance = float(goals.level)
        found.append(_solved(cluster, goals, tolerance, options))
    plans = _unbeaten(found)
    log_event(
        logger, "found", points=len(plans), moves=[one.comparison.moves for one in plans],
        levels=[_level(one) for one in plans], seconds=time.perf_counter() - began,
    )  # fmt: skip
    return Frontier(cluster, plans, goals, options)


def _solved(
    cluster: Cluster, goals: Goals, tolerance: float | None, options: dict[str, Any]
) -> Result:
    level = None if tolerance is None else Percent(tolerance)
    asked = replace(goals, level=level, act_above=None, worth={})
    return solve(cluster, goals=asked, **options)


def _level(result: Result) -> float:
    return float(result.levelness.ratio.max(initial=1.0))


def _unbeaten(found: list[Result]) -> tuple[Result, ...]:
    """Keep the plans that no other one beats, cheapest first; ties keep the first."""
    kept: list[Result] = []
    for one in sorted(found, key=lambda result: (result.audit.hard, result.comparison.moves)):
        if not kept or _level(one) < _level(kept[-1]):
            while kept and _takes_no_more(one, kept[-1]):
                kept.pop()
            kept.append(one)
    return tuple(kept)


def _takes_no_more(one: Result, other: Result) -> bool:
    """Whether a plan breaks as little and makes no more moves and leader changes than another."""
    taken, least = (
        (plan.audit.hard, plan.comparison.moves, plan.comparison.leader_changes)
        for plan in (one, other)
    )
    return all(more <= than for more, than in zip(taken, least, strict=True))
