"""The ``balance`` method: mend, re-home, level with the fewest moves, and stop there.

1. *Prepare*: replicas too many are dropped; those that must leave, and those missing, wait.
2. *Mend*: rules broken between replicas are mended, one move at a time.
3. *Place and level*: the descent places what waits, together with the fewest replicas that
   over-full nodes must give away, and brings every node below its target; a replica that fits
   nowhere takes the room of smaller ones. What could not be mended for want of room is tried again.
4. *Level pairs*: two replicas of a partition move at once, where single moves did not level all.
5. *Refine*: where replicas are few, what was found is refined. Where all of it was hardly worth
   while, everything stays.
6. *Relax soft rules*: they give way where a replica would otherwise have no node.
7. *Budgets*: moves beyond them are taken back, repairs last of all.
"""

import numpy as np

from evenkeel.strategies.levelling.level import level_pairs, place_and_level
from evenkeel.strategies.levelling.mending import mend_rules, rules_broken
from evenkeel.strategies.levelling.move_budget import is_limited, keep_within
from evenkeel.strategies.levelling.prepare import prepare
from evenkeel.strategies.levelling.refine import refine_small
from evenkeel.strategies.levelling.rest import count_misled, excess_of, is_worth_it, nothing_due
from evenkeel.strategies.levelling.run_state import Run, leaders_of
from evenkeel.strategies.levelling.soft_rules import place_past_soft_rules
from evenkeel.strategies.registry import Outcome, Request
from evenkeel.strategies.shared.replica_counts import kept
from evenkeel_kernels.levelling.leader_moves import prefer
from evenkeel_kernels.levelling.parameters import DEFAULT, Parameters


def levelled(request: Request, parameters: Parameters = DEFAULT) -> Outcome:
    """Mend, place and level by search, and refine what was found where replicas are few."""
    run = prepare(request, parameters)
    before, changed = excess_of(run), must_change(run)
    with run.interruptible():
        search(run)
        with run.timed("refine"):
            changed |= refine_small(run)
        stay_unless_worth_it(run, before, changed)
        complete(run)
    return outcome_of(run)


def searched(request: Request, parameters: Parameters = DEFAULT) -> Outcome:
    """Mend, place and level by search, without refining."""
    run = prepare(request, parameters)
    before, changed = excess_of(run), must_change(run)
    with run.interruptible():
        search(run)
        stay_unless_worth_it(run, before, changed)
        complete(run)
    return outcome_of(run)


def search(run: Run) -> None:
    """Mend, place and level, as far as clock, work and caller allow."""
    broken = rules_broken(run)
    if broken:
        with run.timed("mend"):
            mend_rules(run)
    with run.timed("level"):
        place_and_level(run)
    if broken and run.stop is None and mend_rules(run):
        with run.timed("level again"):
            place_and_level(run)
    with run.timed("pairs"):
        level_pairs(run)


def must_change(run: Run) -> bool:
    """Whether something must change, however little nodes are above their targets."""
    return bool(run.dropped.any()) or not nothing_due(run) or rules_broken(run)


def stay_unless_worth_it(run: Run, before: float, changed: bool) -> None:
    """Leave everything where it is, if nothing must change and it is hardly worth while."""
    free = run.stop is None and not is_limited(run.request.limits)
    if free and not changed and not is_worth_it(run, before):
        run.restart_from(run.request.start.node, run.request.start.leader)


def complete(run: Run) -> None:
    """Place what soft rules keep out, and let the preferred lead where that makes no node hot."""
    place_past_soft_rules(run)
    if count_misled(run):
        prefer(run.problem, run.state, run.gauge)


def outcome_of(run: Run) -> Outcome:
    """Keep to the budgets, and hand out what was found: what has no node stays where it was."""
    message = ""
    with run.timed("limits"):
        if is_limited(run.request.limits) and keep_within(
            run.problem, run.state, run.gauge, run.request.limits, run.forced,
            run.request.cluster.bytes_dimension,
        ):  # fmt: skip
            run.stop = "limits"
            message = "The budgets are used up; what they left undone is as it was."
    node = run.state.node
    return Outcome(
        node=np.where(run.dropped, node, kept(run.request.cluster, node)),
        leader=leaders_of(run, run.state.leader),
        stop_reason=run.stop or ("tolerance" if run.pressure <= 1.0 else "exhausted"),
        message=message,
        work=run.work,
        timings=run.timings,
    )
