"""After the search: what found no node, who leads, and why the search stopped."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.contract import Outcome
from evenkeel.methods.levelling.budgets import is_spent
from evenkeel.methods.levelling.floors import floors_met
from evenkeel.methods.levelling.run_state import Run
from evenkeel.methods.levelling.soft_rules import ignore_soft_rules, soft_weights
from evenkeel.methods.shared.leading_slots import leading_slots
from evenkeel.methods.shared.replica_counts import kept, waits_in_place_of_another
from evenkeel.methods.shared.stopping import LIMITS_REACHED
from evenkeel_kernels.core.state import relocate
from evenkeel_kernels.levelling.repair import leave_out_ghosts


def outcome_of(run: Run) -> Outcome:
    """Hand out what was found; what has no node stays where it was, dead nodes included."""
    node = _node(run)
    done = run.ratio <= 1.0 and floors_met(run) and not run.waiting.any()
    message = ""
    stop = run.stop
    if stop is None:
        stop = "tolerance" if done else "exhausted"
        if not done and is_spent(run):
            stop = "limits"
            message = LIMITS_REACHED
    return Outcome(
        node=node,
        leader=leading_slots(run.request.cluster, node, run.state.leader),
        stop_reason=stop,
        message=message,
        work=run.work,
        timings=run.timings,
    )


def _node(run: Run) -> NDArray[np.int32]:
    """Nodes to hand out: a lost replica stays on its dead node unless a rule breaks by it.

    One that is alive and found no other node stays in any case, unless the search began without it.
    """
    node = run.state.node
    stays = kept(run.request.cluster, node)
    waiting = np.flatnonzero((node < 0) & (stays >= 0) & ~run.dropped)
    lives = run.request.cluster.nodes.alive[stays[waiting]]
    stood = run.request.start.node[waiting] >= 0
    waiting, lives = waiting[stood | ~lives], lives[stood | ~lives]
    if lives.any():
        relocate(run.problem, run.state, waiting[lives], stays[waiting[lives]])
    _put_back(run, waiting[~lives])
    if run.dropped.any():
        _put_back(run, waits_in_place_of_another(run.request.cluster, run.state.node, run.dropped))
    return run.state.node.copy()


def _put_back(run: Run, ghosts: NDArray[np.int64]) -> None:
    """Put replicas back on their dead nodes unless a hard rule breaks by it."""
    if len(ghosts) == 0:
        return
    weights = soft_weights(run)
    if weights:
        ignore_soft_rules(run, weights[-1])
    leave_out_ghosts(run.problem, run.state, ghosts, np.zeros(len(run.state.node), bool))
