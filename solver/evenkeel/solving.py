"""Solve a cluster with any method: validate, search, audit, bound."""

import logging
import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from evenkeel.measure.audit import audit
from evenkeel.measure.compare import compare
from evenkeel.measure.disks import disk_report
from evenkeel.measure.levelness import levelness
from evenkeel.measure.regressions import regressions
from evenkeel.methods.options import Options
from evenkeel.methods.registry import Method, MethodName, find
from evenkeel.methods.run import MethodRun, checked, run_checked
from evenkeel.methods.shared.stopping import Callback, Watch
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.runtime.heartbeat import heard_by
from evenkeel.model.runtime.logs import log_event
from evenkeel.result import Result
from evenkeel.verdict import Found, Verdict, verdict, verdict_on_disks

logger = logging.getLogger("evenkeel.solve")

JUDGING = 5e-7  # seconds per replica that are kept of a time limit to judge the result in


@known_keywords
def solve(
    cluster: Cluster,
    method: MethodName = "balance",
    *,
    goals: Goals | Cost | None = None,
    limits: Limits | None = None,
    options: Options | None = None,
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
        ``"balance"``: repair broken rules, relocate replicas that must move, then meet the goals
        with the fewest moves.
    goals : Goals or Cost, optional
        Tolerances to meet, or a weighted sum to minimise; ``Goals()`` by default.
    limits : Limits, optional
        Budgets that are never exceeded, with ``Goals``; a ``Cost`` prices moves instead.
    options : options.Options, optional
        The method's own options, of the one class that it takes; its defaults if not given.
    start : Placement, optional
        Where to start the search, instead of the cluster's own placement; moves are still counted
        against the cluster's. One that breaks a hard rule which holds now, or exceeds ``limits``,
        is not used, and a warning reports it; methods that make no promise (below) use any.
    time_limit : float, optional
        Seconds; the best placement so far is returned when they are over. Compiling and loading
        kernels is not counted, and reported in a warning. Where too little time is left to prove
        how many moves the goals take, or to begin at all, a warning states that no number of moves
        is proven, or that the placement is unchanged.
    work_limit : int, optional
        Most candidate evaluations. With the same seed and work limit the answer is the same, bit
        for bit.
    seed : int, optional
        All randomness comes from it.
    callback : callable, optional
        Called with the ``Progress`` between slices of work, and every tenth of a second or so while
        there are none; raising StopIteration stops the search and keeps the best so far.

    Returns
    -------
    Result
        Audited, with bounds. Status ``"partial"`` if something could not be placed or repaired;
        it is then listed with the rule that blocks it. Status ``"missed"`` if no hard rule is
        broken but the goals are not met. Nothing is worse than before, and no budget exceeded.
        Methods that answer bit for bit as other systems do make no such promise; see
        ``Result.regressions``.

    Raises
    ------
    InvalidInput
        If an argument cannot be used, or asks for what the method does not do: options of another
        method, limits that it does not keep, a ``Cost`` that it does not minimise. Every problem
        is named.

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
    clock = Stopwatch()
    watch = Watch(time_limit, work_limit, callback)
    chosen = find(method)
    require_cluster(cluster)
    # what the system hands back by itself is no change that could be spared
    limited = isinstance(limits, Limits) and limits.leader_changes is not None
    base = cluster if limited or start is not None else led_as_preferred(cluster)
    request = checked(
        chosen, base, goals=goals, limits=limits, options=options, start=start, watch=watch,
        seed=seed,
    )  # fmt: skip
    if time_limit is not None:
        watch.reserve = min(JUDGING * len(cluster.placement.node), 0.5 * time_limit)
    log_event(
        logger, "solving", logging.DEBUG, method=chosen.name, nodes=len(cluster.nodes),
        partitions=len(cluster.partitions), seed=request.seed,
    )  # fmt: skip
    # a load on a node with next to no capacity may overflow to inf, which is what it should be
    with np.errstate(over="ignore"), heard_by(watch.hear):
        _ = request.bounds
        clock.lap("bounds")
        run = run_checked(chosen, request)
        decided = run.request  # with narrower goals where they were not worth moving for
        run = replace(run, request=replace(decided, cluster=cluster, proven=decided.bounds))
        return judged(chosen, run, clock, goals_given=goals is not None)


def judged(chosen: Method, run: MethodRun, clock: "Stopwatch", *, goals_given: bool) -> Result:
    """Audit, measure and judge what a method has answered."""
    request, outcome = run.request, run.outcome
    cluster, placement = request.cluster, led_for_good(run.placement)
    clock.add(run.timings)
    request.watch.phase = "audit"
    found = Found(
        run.audit,
        levelness(cluster, placement),
        compare(cluster, cluster.placement, placement),
        request.bounds,
    )
    clock.lap("audit")
    judgement = verdict(chosen, request, outcome, found, goals_given=goals_given)
    if cluster.disks is not None:
        goal = getattr(request.goals, "disks", None)
        judgement = verdict_on_disks(
            judgement, disk_report(cluster, placement, goal), request.limits
        )
    log_solved(
        chosen, judgement, clock, moves=found.comparison.moves,
        leader_changes=found.comparison.leader_changes, work=outcome.work,
    )  # fmt: skip
    return Result(
        cluster=cluster,
        placement=placement,
        method=chosen.name,
        goals=request.goals,
        **judgement._asdict(),
        warnings=outcome.warnings,
        audit=found.audit,
        levelness=found.level,
        comparison=found.comparison,
        bounds=found.bounds,
        timings=clock.laps,
        work=outcome.work,
        seed=request.seed,
        native=outcome.native,
        limits=request.limits,
        goals_asked="level" in chosen.goals or goals_given,
    )


def log_solved(chosen: Method, judgement: Verdict, clock: "Stopwatch", **counts: int) -> None:
    """Log the verdict on an answer: its moves, leader changes and work."""
    log_event(
        logger, "solved", method=chosen.name, status=judgement.status,
        stop_reason=judgement.stop_reason, **counts, seconds=clock.seconds,
        timings=dict(clock.laps),
    )  # fmt: skip


class Stopwatch:
    """Notes the seconds since its last lap under a name."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._began = self._last = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds from the start to the last lap."""
        return self._last - self._began

    def lap(self, name: str) -> None:
        """End a lap."""
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now

    def add(self, laps: Mapping[str, float]) -> None:
        """Add laps that another clock has measured so far."""
        self.laps |= laps
        self._last = time.perf_counter()


def led_for_good(placement: Placement) -> Placement:
    """Return a placement in which no replica is preferred to the leader that was decided on."""
    beside = (placement.flags & Flag.PREFERRED) != 0
    beside &= placement.leader_node[placement.owner] != placement.node
    if not beside.any():
        return placement
    flags = np.where(beside, placement.flags & ~np.uint16(Flag.PREFERRED), placement.flags)
    return replace(placement, flags=read_only(flags))


def led_as_preferred(cluster: "Cluster") -> "Cluster":
    """Return a cluster in which flagged replicas lead, where their nodes may lead and have room.

    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[9.0]] * 2, load=[[1.0]], placement=[[0, 1]], leader=[1],
    ...     flags=[[ek.Flag.PREFERRED, 0]])
    >>> led_as_preferred(c).placement.leader.tolist()
    [0]
    """
    # after a node was restarted, others lead its partitions until the system elects the preferred
    # replicas; its reader flags those that could be elected at once
    placement = cluster.placement
    at = np.flatnonzero((placement.flags & Flag.PREFERRED) != 0)
    at = at[placement.node[at] >= 0]
    at = at[cluster.nodes.may_lead[placement.node[at]]]
    while len(at):
        leader = placement.leader.copy()
        leader[placement.owner[at]] = at - placement.first[placement.owner[at]]
        led = replace(placement, leader=read_only(leader))
        worse = regressions(cluster, led, audit(cluster, led)).partitions[placement.owner[at]]
        if not worse.any():
            return cluster.with_placement(led)
        at = at[~worse]
    return cluster
