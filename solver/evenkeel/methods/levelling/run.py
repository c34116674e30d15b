"""The ``balance`` method: mend, re-home, level with the fewest moves, and stop there.

Budgets bind all of it: they are among the rules that admit a move.

1. *Prepare*: surplus replicas are dropped; those that must leave, and those missing, wait, and so
   do some on nodes and in domains beyond their limits.
2. *Repair*, where budgets bind: what waits is placed, the most endangered partitions first.
3. *Mend*: rules broken between replicas are mended, one move at a time; a partition that no replica
   can lead where it stands has one moved.
4. *Place and level*: the descent places what waits, together with the fewest replicas that
   over-full nodes must give away, and brings every node below its target; a replica that fits
   nowhere takes the room of smaller ones, or of any that fits elsewhere. What could not be mended
   for want of room is tried again.
5. *Pairs*: two replicas of a partition move at once, to mend it, or where single moves did not
   level all. Where goals are missed still, the highest nodes are let be and the others levelled;
   and where soft rules shall yield to goals, they do. Moves that bring missed goals no nearer are
   taken back: under budgets they would be made in vain, run after run. Where walks levelled all,
   leaders are chosen anew, beside those that led at first.
6. *Refine*: where replicas are few, what was found is refined. Where the gain is negligible,
   everything stays.
7. *Fill*: nodes below their floor take replicas from nodes that can spare them, or trade some for
   others.
8. *Relax soft rules*: they give way where a replica would otherwise have no node.
9. *Leaders*: who lives takes over from lost ones, and followers move instead of leaders.
10. *Last look*: what one step would place, lead or drop by now is placed, led or dropped.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.wanted import has_leaders
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.levelling.floors import fill_to_floors, floors_met, lowest_of
from evenkeel.methods.levelling.level import (
    level_pairs,
    level_the_others,
    level_within_budgets,
    recall_leaders,
    take_back_idle_moves,
)
from evenkeel.methods.levelling.mending import (
    make_way_for_leaders,
    mend_in_pairs,
    mend_leaders,
    mend_rules,
    rules_broken,
    some_mended,
)
from evenkeel.methods.levelling.outcome import outcome_of
from evenkeel.methods.levelling.prepare import Restraint, prepare
from evenkeel.methods.levelling.refine import refine_small
from evenkeel.methods.levelling.repair import look_once_more, place_what_fits, repair
from evenkeel.methods.levelling.rest import count_misled, excess, is_worth_it, nothing_due
from evenkeel.methods.levelling.run_state import Run, seated
from evenkeel.methods.levelling.soft_rules import level_past_soft_rules, place_past_soft_rules
from evenkeel.methods.shared.compile import compile_problem
from evenkeel.methods.shared.leading_slots import leading_slots
from evenkeel.methods.shared.size import SMALL, size_of
from evenkeel_kernels.core.node_scan import new_scan
from evenkeel_kernels.levelling.descent import send_home
from evenkeel_kernels.levelling.leaders.exchange import spare_leaders
from evenkeel_kernels.levelling.leaders.moves import prefer, replace_leaders
from evenkeel_kernels.levelling.leaders.survivors import lead_by_survivors
from evenkeel_kernels.levelling.parameters import DEFAULT, Parameters
from evenkeel_kernels.levelling.penalty import new_targets
from evenkeel_kernels.levelling.slices import at_once


def levelled(request: Request, parameters: Parameters = DEFAULT) -> Outcome:
    """Mend, place and level by search, and refine what was found where replicas are few."""

    def phases(run: Run) -> None:
        before, changed = excess(run.state, run.targets), must_change(run)
        search(run)
        with run.timed("refine"):
            changed |= refine_small(run)
        stay_unless_worth_it(run, before, changed)
        complete(run)

    return outcome_after(phases, request, parameters)


def searched(request: Request, parameters: Parameters = DEFAULT, *, work: int = 0) -> Outcome:
    """Mend, place and level by search, without refining, after so much ``work``."""

    def phases(run: Run) -> None:
        before, changed = excess(run.state, run.targets), must_change(run)
        search(run)
        stay_unless_worth_it(run, before, changed)
        complete(run)

    return outcome_after(phases, request, parameters, work)


def placed_and_led(request: Request, *, work: int = 0) -> Outcome:
    """Place what waits, room being made for it, and let partitions be led; level nothing."""

    def phases(run: Run) -> None:
        repair(run)
        mend_leaders(run)
        complete(run)

    return outcome_after(phases, request, DEFAULT, work)


def outcome_after(
    phases: Callable[[Run], None], request: Request, parameters: Parameters, work: int = 0
) -> Outcome:
    """Go through phases, anew with what they made worse left alone, until nothing is worse."""
    restraint: Restraint | None = Restraint.none(request.cluster)
    while restraint is not None:
        run = prepare(request, parameters, restraint, work)
        with run.interruptible():
            phases(run)
        outcome, work = outcome_of(run), run.work
        restraint = None if run.stop is not None else restraint.after(run, outcome)
    return outcome


def well_led(request: Request, outcome: Outcome) -> Outcome:
    """Let those lead who should, of the replicas where an answer has them.

    CP-SAT knows nothing of replicas that stay where they may not be, and deals leads out anyhow.
    """
    cluster, bounds = request.cluster, request.bounds
    if not has_leaders(cluster):
        return outcome
    target = np.ascontiguousarray(bounds.target.T)
    problem = compile_problem(
        cluster, target, np.ones(len(cluster.dimensions)), limits=request.limits
    )
    stands = cluster.placement.replaced(outcome.node, outcome.leader)
    state = seated(cluster, problem, stands, np.zeros(len(outcome.node), bool))
    replace_leaders(problem, state, new_scan(problem, np.zeros(len(state.load))))
    targets = new_targets(problem, bounds.leader_target, 1.0)
    floor, stays = lowest_of(bounds, problem), np.ones(len(state.node), np.bool_)
    lead_by_survivors(problem, state, targets, floor)
    at_once(spare_leaders(problem, state, targets, floor, stays, anywhere=False))
    return replace(outcome, leader=leading_slots(cluster, outcome.node, state.leader))


def search(run: Run) -> None:
    """Repair, mend, place and level, as far as clock, work and caller allow."""
    run.broken = rules_broken(run, run.request.start)
    # what waits goes before rules, which would else take all of a budget, the time or the work
    if run.problem.budgets.binds or (run.broken and run.has_limit):
        with run.timed("repair"):
            repair(run)
    if run.broken:
        with run.timed("mend"):
            mend_rules(run)
    mend_leaders(run)
    with run.timed("level"):
        level_within_budgets(run)
    if run.stop is None and mended_late(run):
        with run.timed("level again"):
            level_within_budgets(run)
    with run.timed("pairs"):
        mend_in_pairs(run)
        level_pairs(run)
    if size_of(run.request.cluster) > SMALL:
        with run.timed("others"):
            level_the_others(run)
    with run.timed("soft rules"):
        level_past_soft_rules(run)
    take_back_idle_moves(run)
    with run.timed("recall"):
        recall_leaders(run)


def mended_late(run: Run) -> bool:
    """Mend what had no room before all was level; whether that left a node too full."""
    too_full = mend_leaders(run)
    too_full |= make_way_for_leaders(run)
    too_full |= place_what_fits(run) and run.ratio > 1.0
    return (bool(run.broken) and mend_rules(run)) or too_full


def must_change(run: Run) -> bool:
    """Whether something must change, however little nodes are above their targets."""
    return bool(run.dropped.any()) or not nothing_due(run)


def stay_unless_worth_it(run: Run, before: float, changed: bool) -> None:
    """Leave everything where it is, if nothing must change and the gain is negligible."""
    free = run.stop is None and not run.problem.budgets.binds
    if free and not changed and not is_worth_it(run, before) and not some_mended(run):
        run.restart_from(run.request.start.node, run.request.start.leader)


def complete(run: Run) -> None:
    """Fill up to floors, place what soft rules keep out, and let those lead who should."""
    fill_to_floors(run)
    place_past_soft_rules(run)
    scan = new_scan(run.problem, np.zeros(len(run.state.load)))
    replace_leaders(run.problem, run.state, scan)
    floor = lowest_of(run.request.bounds, run.problem)
    if count_misled(run):
        prefer(run.problem, run.state, run.targets, floor)
    lead_by_survivors(run.problem, run.state, run.targets, floor)
    spare_some(run, floor)
    look_once_more(run)
    if run.stop is None and run.ratio <= 1.0 and floors_met(run):
        send_home(run.problem, run.state, run.targets, run.forced, floor)


def spare_some(run: Run, floor: NDArray[np.float64]) -> None:
    """Let followers move instead of leaders, where as many moves do, and leaders stay."""
    if run.stop is not None:
        return
    small, stays = size_of(run.request.cluster) <= SMALL, run.due | run.dropped
    for _ in spare_leaders(run.problem, run.state, run.targets, floor, stays, small):
        if not run.look("leaders"):
            break
