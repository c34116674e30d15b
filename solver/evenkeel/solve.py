"""One entry for every method: validate, solve, audit, bound."""

import logging
import operator
import time
from typing import Any

import numpy as np

from evenkeel.measure.audit import Audit, audit
from evenkeel.measure.bounds import Bounds, bounds, goals_met
from evenkeel.measure.compare import Comparison, compare
from evenkeel.measure.levelness import Levelness, levelness
from evenkeel.model.cluster import Cluster
from evenkeel.model.cost_tables import check_tables
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Cost, Goals, check_goals
from evenkeel.model.limits import Limits, check_limits
from evenkeel.model.logs import tell
from evenkeel.model.placement import Placement
from evenkeel.result import FEWEST_MOVES, Result, Status
from evenkeel.strategies.registry import Method, Outcome, Request, find
from evenkeel.strategies.shared.stopping import Callback, Watch

logger = logging.getLogger("evenkeel.solve")


def solve(
    cluster: Cluster,
    method: str = "balance",
    *,
    goals: Goals | Cost | None = None,
    limits: Limits | None = None,
    options: Any = None,
    start: Placement | None = None,
    time_limit: float | None = None,
    work_limit: int | None = None,
    seed: int = 0,
    callback: Callback | None = None,
) -> Result:
    """Decide where replicas live.

    Parameters
    ----------
    cluster : Cluster
        The snapshot; it is not changed.
    method : str, optional
        ``"balance"``: mend what is broken, re-home what must move, then meet the goals with the
        fewest moves.
    goals : Goals or Cost, optional
        Tolerances to meet, or a weighted sum to minimise; ``Goals()`` by default.
    limits : Limits, optional
        Budgets that are never exceeded, with ``Goals``; a ``Cost`` prices moves instead.
    options : object, optional
        The method's own options.
    start : Placement, optional
        Where to start the search, instead of the cluster's own placement; moves are still counted
        against the cluster's.
    time_limit : float, optional
        Seconds; the best placement so far is returned when they are over.
    work_limit : int, optional
        Candidates to look at. With the same seed and work limit the answer is the same bit for bit.
    seed : int, optional
        All randomness comes from it.
    callback : callable, optional
        Told of the ``Progress`` between slices of work; raising StopIteration stops the solve and
        keeps the best so far.

    Returns
    -------
    Result
        Audited, with bounds. Status ``"partial"`` if something could not be placed or mended; it is
        then listed with the rule that blocks it, and nothing is worse than it came.

    Raises
    ------
    InvalidInput
        If an argument cannot be used; every problem is named.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[10.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6
    ... )
    >>> result = ek.solve(cluster, goals=ek.Goals(level=0.0))
    >>> result.status, result.comparison.moves
    ('optimal', 4)
    """
    chosen = find(method)
    goals = Goals() if goals is None else goals
    limits = Limits() if limits is None else limits
    _check(cluster, goals, limits, start, time_limit, work_limit, seed, callback)
    watch = Watch(time_limit, work_limit, callback)
    # a load on a node with next to no capacity may overflow to inf, which is what it should be
    with np.errstate(over="ignore"):
        return _solve(chosen, cluster, goals, limits, options, start, watch, seed)


def _solve(
    chosen: Method,
    cluster: Cluster,
    goals: Goals | Cost,
    limits: Limits,
    options: Any,
    start: Placement | None,
    watch: Watch,
    seed: int,
) -> Result:
    """Bound, solve, audit."""
    timings: dict[str, float] = {}
    clock = _Stopwatch(timings)
    tell(
        logger, "solving", logging.DEBUG, method=chosen.name, nodes=len(cluster.nodes),
        partitions=len(cluster.partitions), seed=operator.index(seed),
    )  # fmt: skip
    proven = bounds(cluster, goals)
    clock.lap("bounds")
    outcome = chosen.load()(
        Request(
            cluster=cluster,
            goals=goals,
            limits=limits,
            options=options,
            start=cluster.placement if start is None else start,
            bounds=proven,
            watch=watch,
            seed=operator.index(seed),
        )
    )
    clock.lap(chosen.name)
    timings |= {f"{chosen.name}.{stage}": seconds for stage, seconds in outcome.timings.items()}
    placement = cluster.placement.replaced(outcome.node, outcome.leader)
    audited = audit(cluster, placement)
    level = levelness(cluster, placement)
    compared = compare(cluster, cluster.placement, placement)
    clock.lap("audit")
    status, message = _verdict(goals, audited, level, compared, proven, outcome)
    tell(
        logger, "solved", method=chosen.name, status=status, stop_reason=outcome.stop_reason,
        moves=compared.moves, leader_changes=compared.leader_changes, work=outcome.work,
        seconds=clock.seconds, timings=dict(timings),
    )  # fmt: skip
    return Result(
        cluster=cluster,
        placement=placement,
        method=chosen.name,
        goals=goals,
        status=status,
        message=message,
        stop_reason=outcome.stop_reason,
        warnings=outcome.warnings,
        audit=audited,
        levelness=level,
        comparison=compared,
        bounds=proven,
        timings=timings,
        work=outcome.work,
        seed=seed,
        native=outcome.native,
    )


class _Stopwatch:
    """Writes the seconds since its last lap under a name."""

    def __init__(self, laps: dict[str, float]) -> None:
        self._laps = laps
        self._began = self._last = time.perf_counter()

    @property
    def seconds(self) -> float:
        return self._last - self._began

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self._laps[name] = now - self._last
        self._last = now


def _check(
    cluster: Cluster,
    goals: Goals | Cost,
    limits: Limits,
    start: Placement | None,
    time_limit: float | None,
    work_limit: int | None,
    seed: int,
    callback: Callback | None,
) -> None:
    """Raise every fault of the arguments together; the cluster was validated when it was made."""
    faults = FaultList()
    if not isinstance(cluster, Cluster):
        faults.add("cluster", type(cluster).__name__, "must be a Cluster")
        faults.raise_if_any()
    if not isinstance(goals, Goals | Cost):
        faults.add("goals", goals, "must be Goals or a Cost")
    elif isinstance(goals, Goals):
        check_goals(faults, cluster, goals)
    elif isinstance(goals, Cost):
        for one in goals.proportion:
            for name in (one.of, one.to):
                if name not in cluster.dimensions:
                    faults.add("goals.proportion", name, "is no dimension")
        check_tables(faults, cluster, goals.tables)
    if not isinstance(limits, Limits):
        faults.add("limits", limits, "must be Limits")
    elif isinstance(goals, Cost) and limits != Limits():
        faults.add("limits", limits, "go with Goals; a Cost prices moves instead")
    else:
        check_limits(faults, cluster, limits)
    if start is not None and not np.array_equal(start.first, cluster.placement.first):
        faults.add("start", type(start).__name__, "must have the rows of the cluster's placement")
    for name, value in (("time_limit", time_limit), ("work_limit", work_limit)):
        if value is not None and not value >= 0:
            faults.add(name, value, "must be 0 or more")
    try:
        operator.index(seed)
    except TypeError:
        faults.add("seed", seed, "must be an integer")
    if callback is not None and not callable(callback):
        faults.add("callback", callback, "must be callable")
    faults.raise_if_any()


def _verdict(
    goals: Goals | Cost,
    audited: Audit,
    level: Levelness,
    compared: Comparison,
    proven: Bounds,
    outcome: Outcome,
) -> tuple[Status, str]:
    """Return the status and a sentence for it."""
    if audited.hard:
        broken = ", ".join(f"{n:,} {kind}" for kind, n in audited.counts.items() if n)
        return "partial", outcome.message or f"What fits is placed; still broken: {broken}."
    if isinstance(goals, Cost):
        return "feasible", outcome.message or "No hard rule is broken."
    if outcome.stop_reason == "optimum":
        return "optimal", outcome.message or "Proven: no placement is better."
    if not goals_met(level, proven):
        return "feasible", outcome.message or "No hard rule is broken; the goals were not reached."
    if compared.moves <= proven.moves_level:
        return "optimal", outcome.message or FEWEST_MOVES
    return "feasible", outcome.message or "No hard rule is broken and all goals are met."
