"""Solving in parts: for clusters so large that one piece takes too long, or too much memory."""

import logging
import operator
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np

from evenkeel.measure.audit import audit
from evenkeel.measure.bounds import Bounds, goals_met
from evenkeel.measure.compare import compare
from evenkeel.measure.levelness import levelness
from evenkeel.methods.contract import Outcome
from evenkeel.methods.registry import find
from evenkeel.methods.run import Run, checked, run_checked, run_guarded
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Goals
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.quantities import is_whole
from evenkeel.model.runtime.logs import tell
from evenkeel.result import Result
from evenkeel.solving import Stopwatch, judged, solve
from evenkeel.studies.fan_out import fan_out
from evenkeel.studies.job import Failure
from evenkeel.studies.parts.pieces import PROOF, Piece, Split, solve_piece, split_up
from evenkeel.studies.parts.split import rows_of, split
from evenkeel.verdict import Found

logger = logging.getLogger("evenkeel.parts")

REPLICAS = 8_000_000
"""Replicas of a part, unless the caller says how many parts."""

FEWEST = 300
"""Replicas of a part on a node, on average; with fewer, what does not come out even costs moves."""


@known_keywords
def solve_in_parts(
    cluster: Cluster,
    parts: int | None = None,
    executor: Executor | None = None,
    *,
    goals: Goals | None = None,
    seed: int = 0,
    callback: Callable[[int, int], object] | None = None,
) -> Result:
    """Decide where the replicas of a very large cluster live, a part of them at a time.

    Each part is some partitions, drawn at random, on all nodes, with a share of what every node may
    carry; together they keep what the whole must. What one part cannot place or level is done over
    the whole at the end, from where everything is by then.

    Parameters
    ----------
    cluster : Cluster
        The snapshot; it is not changed.
    parts : int, optional
        How many; as many as make parts of eight million replicas by default, and one is solved as
        ``solve`` does. Groups that a limit or ``depends`` binds together stay in one part.
    executor : concurrent.futures.Executor, optional
        Who solves parts, the calling thread by default. The answer is the same whoever it is and
        however many they are. Threads share the cluster and run side by side; a process, or a
        worker of Dask (``client.get_executor()``), holds one of its own.
    goals : Goals, optional
        As ``solve`` takes them.
    seed : int, optional
        All randomness comes from it.
    callback : callable, optional
        Told how many pieces are done, and of how many: the parts, and the proof of the bounds;
        raising StopIteration leaves the other parts as they came.

    Returns
    -------
    Result
        As ``solve`` with ``method="balance"`` returns it, audited as one piece, with bounds of one
        piece; nothing is worse than before.

    Raises
    ------
    InvalidInput
        If an argument cannot be used; every problem is named.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[400.0]] * 4, load=[[1.0]] * 600, placement=[[0, 1]] * 600
    ... )
    >>> with ThreadPoolExecutor(2) as threads:
    ...     result = ek.solve_in_parts(cluster, 3, threads, goals=ek.Goals(level=0.0))
    >>> result.status, result.levelness.loads.ravel().tolist()
    ('optimal', [300.0, 300.0, 300.0, 300.0])
    """
    clock = Stopwatch()
    faults = FaultList()
    if parts is not None and not (is_whole(parts) and parts >= 1):
        faults.add("parts", parts, "must be a whole number, 1 or more")
    if executor is not None and not isinstance(executor, Executor):
        faults.add("executor", executor, "must be a concurrent.futures.Executor")
    if callback is not None and not callable(callback):
        faults.add("callback", callback, "must be callable")
    if goals is not None and not isinstance(goals, Goals):
        faults.add("goals", goals, "must be Goals: a Cost is minimised in one piece, by solve")
    faults.raise_if_any()
    asked = checked(find("balance"), cluster, goals=goals, seed=seed)
    wanted = Goals() if goals is None else goals
    count = parts_of(cluster) if parts is None else operator.index(parts)
    if count == 1:
        return solve(cluster, goals=goals, seed=seed)
    tell(
        logger, "splitting", logging.DEBUG, parts=count, nodes=len(cluster.nodes),
        partitions=len(cluster.partitions), seed=asked.seed,
    )  # fmt: skip
    # a load on a node with next to no capacity may overflow to inf, which is what it should be
    with np.errstate(over="ignore"):
        part = split(cluster, count, asked.seed)
        plan = split_up(cluster, wanted, part, count, asked.seed)
        clock.lap("split")
        found = fan_out(solve_piece, plan, [PROOF, *range(count)], executor, callback)
        clock.lap("parts")
        run = _joined(plan, found)
        return _judged(run, clock, goals_given=goals is not None)


def parts_of(cluster: Cluster) -> int:
    """In how many parts a cluster is solved unless the caller says; 1 if it is not that large."""
    replicas = len(cluster.placement.node)
    fair = replicas // (FEWEST * max(len(cluster.nodes), 1))
    return max(1, min(-(-replicas // REPLICAS), fair))


def _joined(plan: Split, found: Sequence[Piece | Bounds | Failure | None]) -> Run:
    """Put the pieces together, and solve over the whole what they could not."""
    cluster, method = plan.cluster, find("balance")
    proof, pieces = found[0], found[1:]
    proven = proof if isinstance(proof, Bounds) else plan.levels
    outcome = _outcome(plan, pieces)
    start = cluster.placement.replaced(outcome.node, outcome.leader)
    request = checked(
        method, cluster, goals=plan.goals, start=start, proven=proven, seed=plan.seed
    )  # fmt: skip
    run = run_guarded(method, request, outcome, {})
    if outcome.stop_reason == "interrupted" or _is_done(run):
        return run
    again = run_checked(method, request)
    if again.audit is not None and not again.audit.ok:
        # from where the parts have put things it may end worse than from where they came
        alone = run_checked(
            method, checked(method, cluster, goals=plan.goals, proven=proven, seed=plan.seed)
        )
        if alone.audit is not None and again.audit.worse_than(alone.audit):
            again = alone
    work = outcome.work + again.outcome.work
    warnings = (*outcome.warnings, *again.outcome.warnings)
    return replace(again, outcome=replace(again.outcome, work=work, warnings=warnings))


def _is_done(run: Run) -> bool:
    """Whether the parts have left nothing to do."""
    level = levelness(run.request.cluster, run.placement)
    is_ok = run.guard == 0 and run.audit is not None and run.audit.ok
    return is_ok and goals_met(level, run.request.bounds)


def _outcome(plan: Split, pieces: Sequence[Piece | Bounds | Failure | None]) -> Outcome:
    """Put together where parts have put everything; what was not solved stays as it came."""
    before = plan.cluster.placement
    node, leader, work = before.node.copy(), before.leader.copy(), 0
    warnings = []
    for i, piece in enumerate(pieces):
        if isinstance(piece, Piece):
            node[rows_of(plan.part, i, before)] = piece.node
            leader[plan.part == i] = piece.leader
            work += piece.work
        elif isinstance(piece, Failure):
            warnings.append(f"Part {i} was left to the whole: {piece.message.rstrip('.')}.")
    is_cut_short = any(piece is None for piece in pieces)
    return Outcome(
        node=node, leader=leader, stop_reason="interrupted" if is_cut_short else "tolerance",
        work=work, warnings=tuple(warnings),
    )  # fmt: skip


def _judged(run: Run, clock: Stopwatch, *, goals_given: bool) -> Result:
    """Measure and judge what came of the whole."""
    cluster, placement = run.request.cluster, run.placement
    clock.add(run.timings)
    found = Found(
        audit(cluster, placement) if run.audit is None else run.audit,
        levelness(cluster, placement),
        compare(cluster, cluster.placement, placement),
        run.request.bounds,
    )
    clock.lap("audit")
    return judged(find("balance"), run, found, clock, goals_given=goals_given)
