"""Longhorn's auto-balance as a method of ``solve``: a cluster in, nodes in its slots out."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.shared.stopping import Progress, StopReason
from evenkeel.systems.longhorn.auto_balance.actions import ActionLog
from evenkeel.systems.longhorn.auto_balance.compile import system_of
from evenkeel.systems.longhorn.auto_balance.degraded import stay_degraded
from evenkeel.systems.longhorn.auto_balance.redundancy import limited_redundancy
from evenkeel.systems.longhorn.auto_balance.settings import Longhorn
from evenkeel.systems.longhorn.auto_balance.stepping import BUDGET, AutoBalance
from evenkeel.systems.longhorn.auto_balance.write_back import nodes_in_slots
from evenkeel_kernels.longhorn import state as marks
from evenkeel_kernels.longhorn.auto_balance import ADD


def longhorn(request: Request) -> Outcome:
    """Balance every volume as Longhorn does, or all of them by one plan.

    A single step of one volume is ``next_action`` of ``evenkeel.systems.longhorn.auto_balance``.
    """
    options = request.options
    assert isinstance(options, Longhorn)
    if options.scope == "cluster":
        from evenkeel.systems.longhorn.auto_balance.cluster_scope.method import cluster_scope

        system = system_of(request.cluster)
        settings = system.settings.overridden(options)
        return cluster_scope(request, options, system, settings)
    work = AutoBalance(request.cluster, options)
    stop = _run(work, request)
    node, left_over = nodes_in_slots(work)
    log = work.log
    return Outcome(
        node=node,
        leader=request.start.leader.copy(),
        stop_reason=stop,
        message=_message(log),
        work=work.work,
        warnings=(
            *limited_redundancy(request.cluster, node, _healthy(work, node)),
            *_left_over(left_over),
            *stay_degraded(request.cluster, work.settings, node, lambda v: work.next_action(v).why),
        ),
        native=log,
    )


def _message(log: ActionLog) -> str:
    added, deleted = np.count_nonzero(log.kind == ADD), np.count_nonzero(log.kind != ADD)
    return f"{added:,} replicas were added and {deleted:,} deleted."


def _run(work: AutoBalance, request: Request) -> StopReason:
    """Run to rest, or until the watch says stop."""
    while not work.slice(request.watch.work_left(work.work, BUDGET)):
        seconds, moves = request.watch.seconds, len(work.log)
        stop = request.watch.stop(Progress("balance", work.work, seconds, moves, 0.0))
        if stop is not None:
            return stop
    return "exhausted"


def _healthy(work: AutoBalance, node: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Tell which slots hold a healthy replica at the end: new ones all, and old ones that were."""
    made = work.bundle
    stays = made.state.node[made.slot] >= 0
    was_healthy = made.state.marks[made.slot] & marks.HEALTHY != 0
    return np.asarray((node >= 0) & (~stays | was_healthy))


def _left_over(count: int) -> tuple[str, ...]:
    if count == 0:
        return ()
    return (f"{count:,} replicas beyond those wanted stay, and are not in the placement",)
