"""One scenario: what it does to a cluster, and what repairs it."""

from dataclasses import replace
from typing import NamedTuple, TypedDict

import numpy as np

from evenkeel.measure.levelness import share_of_fair
from evenkeel.measure.survival import Survival, survival
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.limits import Limits
from evenkeel.model.reading.arrays import read_only
from evenkeel.planning.protocols import Protocol
from evenkeel.planning.throttle import Throttle
from evenkeel.result import Result
from evenkeel.session.changes import Changes
from evenkeel.session.held import HeldCluster
from evenkeel.session.session import session_on
from evenkeel.solving import solve
from evenkeel.strategies.options import Options
from evenkeel.strategies.registry import Loss
from evenkeel.studies.outlook import NOBODY, Outlook
from evenkeel.studies.what_if import Change, changed
from evenkeel.verdict import FEWEST_MOVES


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
    method: str
    asked: Asked
    recovery: Throttle | None = None
    protocol: str | Protocol = "plain"


def is_loss(asked: Asked, change: Change) -> bool:
    """Whether nothing happens but that nodes are lost, and no budget is to be kept."""
    alone = len(change.lost) > 0 and len(change.back) == 0 and change.factor is None
    return alone and asked.get("limits") in (None, Limits())


def repaired(held: HeldCluster, method: str, asked: Asked, change: Change) -> Result:
    """Return what the method makes of a changed cluster; losses alone are the session's."""
    if is_loss(asked, change):
        return session_on(held).apply(Changes(down=change.lost)).solve(method, **asked)
    return solve(changed(held.cluster, change), method, **asked)


def outlook_of(study: Study, change: Change) -> Outlook:
    """Play one scenario."""
    if study.recovery is None and is_loss(study.asked, change):
        goals = study.asked.get("goals") or Goals()
        loss = study.held.lose(study.method, change.lost, goals)
        if loss is not None:
            return _after_loss(study.held.cluster, loss)
        result = solve(changed(study.held.cluster, change), study.method, **study.asked)
    else:
        result = repaired(study.held, study.method, study.asked, change)
    if result.stop_reason == "interrupted":
        raise KeyboardInterrupt  # the method ended early and well, but the sweep is to end too
    before = survival(result.cluster, result.cluster.placement)
    after = survival(result.cluster, result.placement)
    way = None
    if study.recovery is not None:
        way = result.plan(throttle=study.recovery, protocol=study.protocol)
    return Outlook(
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


def _after_loss(cluster: Cluster, loss: Loss) -> Outlook:
    """Tell what becomes of a loss that took no search: all has its place, and no rule is broken."""
    before = Survival(*map(read_only, (loss.lost, loss.under_min_active, loss.without_quorum)))
    moved, at = len(loss.replica), cluster.bytes_dimension
    return Outlook(
        status="optimal",
        message=FEWEST_MOVES,
        hard=0,
        level=read_only(share_of_fair(loss.most, loss.fair)),
        fullest=read_only(loss.most),
        moves=moved,
        moves_at_least=moved,
        leader_changes=0,
        bytes_moved=float(loss.moved[at]) if at >= 0 else 0.0,
        before=before,
        after=Survival(before.lost, NOBODY, NOBODY),
    )
