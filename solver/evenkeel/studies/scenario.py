"""One scenario: what it does to a cluster, and what repairs it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import NamedTuple, TypedDict

import numpy as np

from evenkeel.measure.levelness import share_of_fair
from evenkeel.measure.survival import Survival, survival
from evenkeel.methods.contract import LossSeries
from evenkeel.methods.options import Options
from evenkeel.methods.registry import MethodName
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.limits import Limits
from evenkeel.model.reading.arrays import read_only
from evenkeel.planning.protocols import Protocol
from evenkeel.planning.throttle import Throttle
from evenkeel.result import Result
from evenkeel.session.changes import Changes
from evenkeel.session.session import HeldCluster, session_on
from evenkeel.solving import solve
from evenkeel.studies.scenario_result import NO_PARTITIONS, ScenarioResult
from evenkeel.studies.what_if import Change, changed
from evenkeel.verdict import FEWEST_MOVES, GOALS_MET

NO_BUDGETS = (None, Limits())
"""What ``limits`` are where none are to be kept."""


class Asked(TypedDict, total=False):
    """What ``solve`` is asked for in every scenario.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 2, placement=[[0, 1]] * 2)
    >>> asked: Asked = {"goals": ek.Goals(level=0.5), "seed": 3}
    >>> ek.sweep(c, "node", **asked).asked["seed"]
    3
    """

    goals: Goals | Cost | None
    limits: Limits | None
    options: Options | None
    time_limit: float | None
    work_limit: int | None
    seed: int


class Study(NamedTuple):
    """What every scenario is played with."""

    held: HeldCluster
    method: MethodName
    asked: Asked
    recovery: Throttle | None = None
    protocol: str | Protocol = "plain"


def is_loss(asked: Asked, change: Change) -> bool:
    """Whether nothing happens but that nodes are lost, and no budget is to be kept."""
    alone = len(change.lost) > 0 and len(change.back) == 0 and change.factor is None
    return alone and asked.get("limits") in NO_BUDGETS


def repaired(held: HeldCluster, method: MethodName, asked: Asked, change: Change) -> Result:
    """Return what the method makes of a changed cluster; losses alone are the session's."""
    if is_loss(asked, change):
        return session_on(held).apply(Changes(down=change.lost)).solve(method, **asked)
    return solve(changed(held.cluster, change), method, **asked)


def result_of(study: Study, change: Change) -> ScenarioResult:
    """Play one scenario that ``loss_results`` has no answer to."""
    if study.recovery is None:
        result = solve(changed(study.held.cluster, change), study.method, **study.asked)
    else:
        result = repaired(study.held, study.method, study.asked, change)
    return _result_of(study, result)


def result_now(study: Study, changes: Sequence[Change]) -> ScenarioResult:
    """Tell of the cluster as it is, before any of ``changes``.

    Where some of them are losses, what those are played on is compiled first: by it a cluster in
    which all is well is known to be so.
    """
    if any(is_loss(study.asked, change) for change in changes):
        study.held.prepare(study.method)
    return _result_of(study, session_on(study.held).solve(study.method, **study.asked))


def _result_of(study: Study, result: Result) -> ScenarioResult:
    """Tell what comes of a scenario by its repair, planned if the study says how fast it may be."""
    if result.stop_reason == "interrupted":
        raise KeyboardInterrupt  # the method ended early and well, but the sweep is to end too
    before = survival(result.cluster, result.cluster.placement)
    after = survival(result.cluster, result.placement)
    way = None
    if study.recovery is not None:
        way = result.plan(throttle=study.recovery, protocol=study.protocol)
    return ScenarioResult(
        status=result.status,
        message=result.message,
        hard=result.audit.hard,
        level=result.levelness.ratio,
        fullest=result.levelness.most,
        moves=result.comparison.moves,
        moves_at_least=result.bounds.moves_level,
        leader_changes=result.comparison.leader_changes,
        bytes_moved=result.comparison.bytes_moved,
        before=before,
        after=replace(after, lost=np.union1d(before.lost, after.lost)),
        recovery=None if way is None else way.makespan,
        under_replicated=None if way is None else way.short_for,
    )


def loss_results(study: Study, changes: Sequence[Change]) -> list[ScenarioResult | None]:
    """Play the first scenarios, one at least, that do no more than lose nodes, all in one go.

    None stands for what takes a search, or is no loss.
    """
    losses: list[Change] = []
    if study.recovery is None:
        losses = [*takewhile(partial(is_loss, study.asked), changes)]
    if not losses:
        return [None]
    goals = study.asked.get("goals") or Goals()
    series = study.held.lose_each(study.method, [one.lost for one in losses], goals)
    if series is None:
        return [None] * len(losses)
    return _after_losses(study.held.cluster, series)


def _after_losses(cluster: Cluster, series: LossSeries) -> list[ScenarioResult | None]:
    """Tell how losses end that took no search: all has its place, and no rule is broken."""
    bytes_at = cluster.bytes_dimension
    level = read_only(share_of_fair(series.most, series.fair))
    fullest, endangered = read_only(series.most), read_only(series.endangered)
    bytes_moved = series.moved[:, bytes_at].tolist() if bytes_at >= 0 else [0.0] * len(level)
    results: list[ScenarioResult | None] = []
    begin = 0
    for i, (moves, gave_way, ends) in enumerate(
        zip(series.moves.tolist(), series.gave_way.tolist(), series.ends.tolist(), strict=True)
    ):
        if moves < 0:
            results.append(None)
            continue
        lists = []
        for end in ends:
            lists.append(endangered[begin:end] if end > begin else NO_PARTITIONS)
            begin = end
        before = Survival(*lists)
        results.append(
            ScenarioResult(
                status="feasible" if gave_way else "optimal",
                message=GOALS_MET if gave_way else FEWEST_MOVES,
                hard=0,
                level=level[i],
                fullest=fullest[i],
                moves=moves,
                moves_at_least=moves - gave_way,
                leader_changes=0,
                bytes_moved=bytes_moved[i],
                before=before,
                after=Survival(before.lost, NO_PARTITIONS, NO_PARTITIONS),
            )
        )
    return results
