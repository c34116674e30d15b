"""The search of ``balance``: repair, relocate and balance with the fewest moves.

Budgets bind all of it: they are among the rules that admit a move.

The phases have the names that timings and callbacks show, and these names alone:

1. *prepare*: surplus replicas are dropped; those that must leave, and those missing, wait, and so
   do some on nodes and in domains beyond their limits.
2. *place*, where budgets bind: waiting replicas are placed, the most endangered partitions first.
3. *rules*: rules broken between replicas are repaired, one move at a time, soft ones yielding to
   hard ones, and skews of groups completely; a partition without a replica that can lead where it
   is has one moved. Where nodes only hold too many of a group, by soft rules, that is left to the
   descent.
4. *level*: the descent places waiting replicas, together with the fewest that overfull nodes must
   lose, and brings every node below its target; a replica that fits nowhere displaces smaller
   ones, or any that fits elsewhere. Repairs that failed for want of room are tried again, and what
   that leaves is levelled.
5. *pairs*: two replicas of a partition move at once, to repair it, or where single moves did not
   level all.
6. *others*: where goals are missed still, the highest nodes are left out and the others levelled.
7. *soft rules*: where soft rules shall yield to goals, they do. Moves that bring missed goals no
   nearer are undone: under budgets they would be made in vain, run after run.
8. *recall*: where walks levelled all, leaders are chosen again, beside the initial ones.
9. *cycles*: where replicas weigh alike, cycles save moves until there are none to save.
10. *refine*: where replicas are few, the placement is refined, unless its moves are proven; moves
    that bring missed goals no nearer are undone again. Where the gain is negligible, everything
    stays.
11. *floors*: nodes below their floor take replicas from nodes that can spare them, or trade some
    for others. Then *soft rules* yield where a replica would otherwise have no node.
12. *leaders*: live replicas take over from lost ones, and followers move instead of leaders; every
    placement, leader change or removal that takes a single step by now is made. Where leading
    weighs nothing, a flow then finds the fewest leader changes. At last, leaders are changed as
    goals for the leaders of groups ask, and replicas moved where that is not enough.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import KINDS, audit
from evenkeel.measure.bounds import Bounds
from evenkeel.measure.compare import compare
from evenkeel.measure.loads import has_leaders
from evenkeel.measure.regressions import regressions
from evenkeel.measure.spending import exceeded
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.levelling.group_leaders import led_with_fewest_changes, led_within_groups
from evenkeel.methods.levelling.level import (
    is_spent,
    level_pairs,
    level_the_others,
    level_within_budgets,
    place_and_level,
    recall_leaders,
    take_back_idle_moves,
)
from evenkeel.methods.levelling.repair import (
    Restraint,
    appoint,
    look_once_more,
    place,
    place_waiting,
    place_what_fits,
    prepare,
)
from evenkeel.methods.levelling.rest import (
    count_misled,
    excess,
    height_of,
    is_worth_it,
    nothing_due,
)
from evenkeel.methods.levelling.rule_repair import (
    even_out_groups,
    make_way_for_leaders,
    only_crowded,
    repair_in_pairs,
    repair_leaders,
    repair_rules,
    rules_broken,
    some_repaired,
)
from evenkeel.methods.levelling.run_state import SearchRun, placed_state
from evenkeel.methods.shared.answers import soft_rules_yield
from evenkeel.methods.shared.compile import compile_problem
from evenkeel.methods.shared.replica_counts import (
    kept,
    leading_slots,
    slots_kept,
    waits_in_place_of_another,
)
from evenkeel.methods.shared.size import SMALL, size_of
from evenkeel.methods.shared.stopping import LIMITS_REACHED
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import writable
from evenkeel_kernels.core.by_node import scattered_by_node
from evenkeel_kernels.core.node_scan import new_scan
from evenkeel_kernels.core.problem import UNLIMITED, Problem, RuleArrays
from evenkeel_kernels.core.state import relocate
from evenkeel_kernels.levelling.best_fit import repairs_first
from evenkeel_kernels.levelling.cycles import cancel
from evenkeel_kernels.levelling.descent import send_home
from evenkeel_kernels.levelling.floors import DONORS, ROUNDING, exchange, fill
from evenkeel_kernels.levelling.leaders.exchange import spare_leaders
from evenkeel_kernels.levelling.leaders.levelling import level_leaders
from evenkeel_kernels.levelling.leaders.moves import lead_by_survivors, prefer, replace_leaders
from evenkeel_kernels.levelling.parameters import DEFAULT, Parameters
from evenkeel_kernels.levelling.penalty import new_targets
from evenkeel_kernels.levelling.repair import leave_out_dead, must_relocate, repair_partitions
from evenkeel_kernels.levelling.slices import at_once, looks_in_slice


def levelled(request: Request, parameters: Parameters = DEFAULT) -> Outcome:
    """Repair, place and level by search, and refine what was found where replicas are few."""
    return outcome_after(lambda run: _level(run, refine_small), request, parameters)


def searched(request: Request, parameters: Parameters = DEFAULT, *, work: int = 0) -> Outcome:
    """Repair, place and level by search, without refining, after so much ``work``."""
    return outcome_after(lambda run: _level(run, lambda _: False), request, parameters, work)


def _level(run: SearchRun, refine: Callable[[SearchRun], bool]) -> None:
    """Repair, place and level, and ``refine``, which returns whether what stands comes from it."""
    before, changed = excess(run.state, run.targets), must_change(run)
    search(run)
    with run.timed("refine"):
        changed |= refine(run)
    take_back_idle_moves(run)
    stay_unless_worth_it(run, before, changed)
    complete(run)


def placed_and_led(request: Request, *, work: int = 0) -> Outcome:
    """Place what waits, room being made for it, and let partitions be led; level nothing."""

    def phases(run: SearchRun) -> None:
        with run.timed("place"):
            place_waiting(run)
        with run.timed("rules"):
            repair_leaders(run)
        complete(run)

    return outcome_after(phases, request, DEFAULT, work)


def outcome_after(
    phases: Callable[[SearchRun], None], request: Request, parameters: Parameters, work: int = 0
) -> Outcome:
    """Go through phases, anew with what they made worse left alone, until nothing is worse.

    Where they may be cut short, nothing is dropped before them that is missed at once.
    """
    restraint, in_phase = Restraint.none(request.cluster), request.watch.in_phase
    with in_phase("prepare"):
        run = prepare(request, parameters, restraint, work)
    first = run.dropped.any() and (run.has_limit or request.watch.callback is not None)
    while True:
        with run.interruptible():
            (appoint if first else phases)(run)
        outcome, work = outcome_of(run), run.work
        found = restraint.after(run, outcome)
        if found is None and not first:
            break
        first = first and found is not None
        restraint = found or restraint
        with in_phase("prepare"):
            run = prepare(request, parameters, restraint, work)
    with run.timed("leaders"):
        return led_within_groups(request, led_with_fewest_changes(request, outcome))


def well_led(request: Request, outcome: Outcome) -> Outcome:
    """Elect the leaders that should lead, with replicas where an answer has them."""
    cluster, bounds = request.cluster, request.bounds
    if not has_leaders(cluster):
        return outcome
    target = np.ascontiguousarray(bounds.target.T)
    problem = compile_problem(
        cluster, target, np.ones(len(cluster.dimensions)), limits=request.limits
    )
    stands = cluster.placement.replaced(outcome.node, outcome.leader)
    state = placed_state(cluster, problem, stands, np.zeros(len(outcome.node), bool))
    replace_leaders(problem, state, new_scan(problem, np.zeros(len(state.load))))
    targets = new_targets(problem, bounds.leader_target, 1.0)
    floor, stays = lowest_of(bounds, problem), np.ones(len(state.node), np.bool_)
    lead_by_survivors(problem, state, targets, floor)
    at_once(spare_leaders(problem, state, targets, floor, stays, anywhere=False))
    found = replace(outcome, leader=leading_slots(cluster, outcome.node, state.leader))
    return led_within_groups(request, found)


def search(run: SearchRun) -> None:
    """Place, repair, level and save moves, as far as clock, work and caller allow."""
    run.broken = rules_broken(run, run.request.start)
    # what waits goes before rules, which would else take all of a budget, the time or the work
    if run.problem.budgets.binds or (run.broken and run.has_limit):
        with run.timed("place"):
            place_waiting(run)
    with run.timed("rules"):
        if run.broken and not only_crowded(run):
            repair_rules(run)
            repair_past_soft_rules(run)
            even_out_groups(run)
        repair_leaders(run)
    with run.timed("level"):
        level_within_budgets(run)
        if run.stop is None and repair_late(run):
            level_within_budgets(run)
    with run.timed("pairs"):
        repair_in_pairs(run)
        level_pairs(run)
    if size_of(run.request.cluster) > SMALL:
        with run.timed("others"):
            level_the_others(run)
    with run.timed("soft rules"):
        level_past_soft_rules(run)
        take_back_idle_moves(run)
    with run.timed("recall"):
        recall_leaders(run)
    with run.timed("cycles"):
        save_moves(run)


def repair_late(run: SearchRun) -> bool:
    """Repair what had no room before all was level; whether that left a node too full."""
    too_full = repair_leaders(run)
    too_full |= make_way_for_leaders(run)
    too_full |= place_what_fits(run) and run.ratio > 1.0
    too_full |= bool(run.broken) and repair_rules(run)
    return (bool(run.broken or run.waiting.any()) and even_out_groups(run)) or too_full


def must_change(run: SearchRun) -> bool:
    """Return whether something must change, however little nodes are above their targets."""
    return bool(run.dropped.any()) or not nothing_due(run)


def stay_unless_worth_it(run: SearchRun, before: float, changed: bool) -> None:
    """Leave everything where it is, if nothing must change and the gain is negligible."""
    free = run.stop is None and not run.problem.budgets.binds
    if free and not changed and not is_worth_it(run, before) and not some_repaired(run):
        run.restart_from(run.request.start.node, run.request.start.leader)


def complete(run: SearchRun) -> None:
    """Fill up to floors, place replicas that soft rules keep out, and elect leaders."""
    with run.timed("floors"):
        fill_to_floors(run)
        place_past_soft_rules(run)
    with run.timed("leaders"):
        lead_at_last(run)


def lead_at_last(run: SearchRun) -> None:
    """Elect leaders, and take the single steps that are left."""
    scan = new_scan(run.problem, np.zeros(len(run.state.load)))
    replace_leaders(run.problem, run.state, scan)
    floor = lowest_of(run.request.bounds, run.problem)
    if count_misled(run):
        prefer(run.problem, run.state, run.targets, floor)
    lead_by_survivors(run.problem, run.state, run.targets, floor)
    spare_some(run, floor)
    look_once_more(run)
    if run.stop is None and run.waiting.any() and (weights := soft_weights(run)):
        ignore_soft_rules(run, weights[-1])
        look_once_more(run)
        ignore_soft_rules(run, 0.0)
    if run.stop is None and run.ratio <= 1.0 and floors_met(run):
        send_home(run.problem, run.state, run.targets, run.forced, floor)


def spare_some(run: SearchRun, floor: NDArray[np.float64]) -> None:
    """Let followers move instead of leaders, where as many moves do, and leaders stay."""
    if run.stop is not None:
        return
    small, stays = size_of(run.request.cluster) <= SMALL, run.due | run.dropped
    for _ in spare_leaders(run.problem, run.state, run.targets, floor, stays, small):
        if not run.look():
            break


def outcome_of(run: SearchRun) -> Outcome:
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
    leader = leading_slots(run.request.cluster, node, run.state.leader)
    return Outcome(
        node=node,
        leader=leader,
        stop_reason=stop,
        message=message,
        work=run.work,
        timings=run.timings,
        fewest=run.fewest,
    )


def _node(run: SearchRun) -> NDArray[np.int32]:
    """Nodes to hand out: a lost replica stays on its dead node unless a rule breaks by it."""
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
        cluster, state = run.request.cluster, run.state
        _put_back(run, waits_in_place_of_another(cluster, state.node, run.dropped))
    return run.state.node.copy()


def _put_back(run: SearchRun, replicas: NDArray[np.int64]) -> None:
    """Put replicas back on the nodes that they stood on unless a hard rule breaks by it."""
    if len(replicas) == 0:
        return
    weights = soft_weights(run)
    if weights:
        ignore_soft_rules(run, weights[-1])
    leave_out_dead(run.problem, run.state, replicas, np.zeros(len(run.state.node), bool))


def refine_small(run: SearchRun) -> bool:
    """Refine what was found on a small cluster; whether what stands now comes from that."""
    request, cluster = run.request, run.request.cluster
    binds = run.problem.budgets.binds
    if run.stop is not None or size_of(cluster) > SMALL or (binds and run.waiting.any()):
        return False
    if run.fewest > 0 and run.ratio <= 1.0:
        return False
    from evenkeel.methods.levelling.small_clusters import (
        BRIEF_PATIENCE,
        BRIEF_STEPS,
        BRIEF_STEPS_PER_PLACE,
        Refining,
    )

    before = run.work
    steps, patience = UNLIMITED, UNLIMITED
    if not run.has_limit:
        steps = min(BRIEF_STEPS, BRIEF_STEPS_PER_PLACE * size_of(cluster))
        patience = BRIEF_PATIENCE
    refining = Refining(
        cluster, run.problem, placed_state(cluster, run.problem, run.placement, run.dropped),
        (np.where(run.dropped, -1, request.start.node), request.start.leader.copy()), _forced(run),
        run.dropped, run.most_leaders, floors_of(run), int(request.bounds.moves_level),
        request.seed, steps, patience,
        lambda done, level: run.report(before + done, level),
    )  # fmt: skip
    if not refining.found():
        return False
    better, dropped = in_their_slots(
        cluster.placement, refining.best.node, refining.best.leader, run.dropped
    )
    stands = run.placement
    if not _is_sound(cluster, stands, better) or exceeded(cluster, better, request.limits):
        return False
    height, stood = height_of(run), (run.state.node, run.state.leader, run.dropped)
    run.dropped = dropped
    run.restart_from(better.node, better.leader)
    # refining keeps every soft rule
    if (binds or soft_rules_yield(request)) and height_of(run)[:2] > height[:2]:
        run.dropped = stood[2]
        run.restart_from(*stood[:2])
        return False
    return True


def _is_sound(cluster: Cluster, stands: Placement, refined: Placement) -> bool:
    """Return whether a refined placement breaks no more than what stands, nor what came."""
    was, now = _led_at_last(stands, cluster), _led_at_last(refined, cluster)
    if np.array_equal(was.node, now.node) and np.array_equal(was.leader, now.leader):
        return True
    before, after = audit(cluster, was), audit(cluster, now)
    if any(n > before.counts[kind] for kind, n in after.counts.items()):
        return False
    return bool(regressions(cluster, was, before)) or not regressions(cluster, now, after)


def _forced(run: SearchRun) -> NDArray[np.bool_]:
    """Return the replicas that must not stay on their initial node, (K,)."""
    request, cluster = run.request, run.request.cluster
    if request.start is cluster.placement:
        return run.due
    came = placed_state(cluster, run.problem, cluster.placement, run.dropped)
    homeless = must_relocate(run.problem, came, cluster.nodes.may_hold)
    return run.due | (homeless & (request.start.node >= 0) & ~run.dropped)


def in_their_slots(
    before: Placement,
    node: NDArray[np.int32],
    leader: NDArray[np.int16],
    dropped: NDArray[np.bool_],
) -> tuple[Placement, NDArray[np.bool_]]:
    """Return a placement in which replicas keep their slots, and which are ``dropped (K,)`` then.

    Where another took the place of a dropped replica, it is that one.
    """
    order, leader = slots_kept(before, node, leader)
    return before.replaced(node[order], leader), dropped[order]


def _led_at_last(placement: Placement, cluster: Cluster) -> Placement:
    """Return a placement with the leaders that it would be handed out with."""
    leader = leading_slots(cluster, placement.node, placement.leader)
    return placement.replaced(placement.node, leader)


ROUNDS = 8
"""How often nodes are filled and then trade replicas."""

PAIRS = 50_000_000
"""Pairs of replicas looked at for exchanges, unless a time limit is given."""


def fill_to_floors(run: SearchRun) -> None:
    """Let nodes below their floor take replicas that others can spare, or trade them for others."""
    if run.stop is not None or floors_met(run):
        return
    tally = np.array([0, UNLIMITED if run.has_limit else PAIRS], np.int64)
    for _ in range(ROUNDS):
        before = int(tally[0])
        _fill(run)
        if run.stop is None and not floors_met(run):
            _exchange(run, tally)
        if run.stop is not None or tally[0] == before:
            break


def floors_met(run: SearchRun) -> bool:
    """Return whether every node holds its floor; true where none is asked for."""
    floor = floors_of(run)
    # what leaves a node may leave a rounding below nothing there
    return bool(((run.state.load >= floor) | (floor <= 0.0)).all())


def floors_of(run: SearchRun) -> NDArray[np.float64]:
    """Return the least load wanted on each node, up to rounding, (D, N)."""
    return np.ascontiguousarray(run.request.bounds.floor.T) * (1.0 - ROUNDING)


def lowest_of(bounds: Bounds, problem: Problem) -> NDArray[np.float64]:
    """Return the least load to which nodes may be brought, (D, N): their floors, if any."""
    floor = np.array(bounds.floor.T, order="C")  # not a view that is read only
    if not floor.any():
        return floor
    even, capacity = bounds.even.T, problem.nodes.capacity
    even = np.where((even > 0.0) & (capacity < np.inf), even, np.inf) * np.maximum(capacity, 1e-300)
    even = np.minimum(even, problem.nodes.watermark)
    return np.where(problem.nodes.accepts, floor, even)


class _Asked(NamedTuple):
    """Targets and loads of nodes, as the kernels take both."""

    lowest: NDArray[np.float64]  # (D, N)
    first: NDArray[np.int64]  # (N + 1,)
    member: NDArray[np.int64]  # (K,)
    stuck: NDArray[np.bool_]  # (N,) none at first
    most_leaders: NDArray[np.float64]  # (N,)
    donor: NDArray[np.int64]  # (DONORS,) room to work in, as the next
    surplus: NDArray[np.float64]  # (DONORS,)

    @classmethod
    def of(cls, run: SearchRun) -> "_Asked":
        """Take it from where a run stands."""
        nodes = run.state.load.shape[1]
        return cls(
            lowest_of(run.request.bounds, run.problem),
            *scattered_by_node(run.problem.partitions, run.state.node, run.state.leader, nodes),
            np.zeros(nodes, np.bool_),
            writable(run.most_leaders),
            np.zeros(DONORS, np.int64),
            np.zeros(DONORS),
        )


def _fill(run: SearchRun) -> None:
    """Let nodes take replicas, one at a time, until that fills none any further."""
    asked, made = _Asked.of(run), np.zeros(1, np.int64)
    turns = max(1, looks_in_slice(run.problem) // DONORS)
    while not fill(run.problem, run.state, *asked, made, UNLIMITED, turns):
        if not run.look():
            break


def _exchange(run: SearchRun, tally: NDArray[np.int64]) -> None:
    """Let nodes trade replicas until that brings none nearer; ``tally`` is that of `exchange`."""
    asked = _Asked.of(run)
    size = np.zeros((1 + int(np.diff(asked.first).max(initial=0)), len(asked.lowest)))
    while not exchange(run.problem, run.state, *asked, size, tally, 1):
        if not run.look():
            break


LARGEST, MOST_NODES = 5_000_000, 300
"""Replicas x nodes, and nodes, up to which cycles are sought."""

SLICES, WORK = 5, 10_000_000
"""How often the clock is looked at meanwhile, and the work until then."""


def save_moves(run: SearchRun) -> None:
    """Make the fewest moves where placing is a flow, and note the number if it is proven."""
    if run.stop is not None or not _is_a_flow(run):
        return
    if run.ratio <= 1.0 and _moves(run) <= run.request.bounds.moves_level:
        return
    problem, cluster, home = run.problem, run.request.cluster, run.problem.partitions.home
    before, stood = height_of(run), (run.state.node.copy(), run.state.leader.copy())
    for one in (problem, _with_leaders_pinned(run)):
        proven = _cancelled(run, one) and one is problem
        if height_of(run)[:2] <= before[:2]:
            break
        run.restart_from(*stood)
        proven = False
    closed = (home >= 0) & (run.state.node != home) & ~problem.nodes.accepts[home] & ~run.due
    held = ~problem.partitions.movable & ((cluster.placement.flags & Flag.PINNED) == 0)
    if proven and not closed.any() and not held.any() and not soft_weights(run):
        run.fewest = _moves(run)


def _cancelled(run: SearchRun, problem: Problem) -> bool:
    """Relieve nodes and save moves, and level leaders after that; whether no fewer are possible."""
    state, nodes, proven = run.state, len(run.state.replicas), False
    scratch = (
        np.zeros(nodes + len(state.node), np.int64), np.zeros((nodes, nodes), np.int64),
        np.zeros((nodes, nodes), np.int64), np.zeros((4, nodes + 1), np.int64),
    )  # fmt: skip
    size = problem.partitions.voter_load[0].copy()
    for _ in range(SLICES):
        left = np.array([WORK], np.int64)
        proven = cancel(problem, state, run.targets, size, *scratch, left)
        if proven or left[0] > 0 or not run.look():
            break
    if run.ratio > 1.0:
        for _ in level_leaders(problem, state, run.targets, run.led, run.parameters.sweeps):
            if not run.look():
                break
    return proven


def _with_leaders_pinned(run: SearchRun) -> Problem:
    """Return the problem with leaders staying where they are."""
    problem, leader = run.problem, run.state.leader
    movable = problem.partitions.movable.copy()
    movable[(problem.partitions.first[:-1] + leader)[leader >= 0]] = False
    return problem._replace(partitions=problem.partitions._replace(movable=movable))


def _moves(run: SearchRun) -> int:
    """Count the moves made."""
    came = run.request.cluster.placement
    return compare(run.request.cluster, came, run.placement).moves


def _is_a_flow(run: SearchRun) -> bool:
    """Return whether replicas weigh alike, and rules only limit them in domains that are nested.

    All are placed, no node holds two of a partition, and any node that takes one may lead.
    """
    problem, bounds = run.problem, run.request.bounds
    nodes, rules, domain = problem.nodes, problem.rules, problem.domains.domain
    replicas, count = len(run.state.node), len(run.state.replicas)
    if count > MOST_NODES or not 0 < replicas * count <= LARGEST:
        return False
    if not run.request.cluster.partitions.load.alike.all() or bounds.floor.any():
        return False
    if run.waiting.any() or run.dropped.any() or nodes.transient.any():
        return False
    if len(rules.group_limit) or len(rules.group_term) or len(rules.needs) or len(rules.term):
        return False
    if len(problem.domains.limited) or not nodes.leads[nodes.accepts].all():
        return False
    return bool((rules.lead_rank == rules.lead_rank[:, :1]).all()) and _are_nested(rules, domain)


def _are_nested(rules: RuleArrays, domain: NDArray[np.int32]) -> bool:
    """Return whether limits are only upper ones, one per node, in domains that lie in each other.

    ``domain (L + 1, N)`` are the domains of each level, the nodes last.
    """
    if (rules.limit[:, 2:] >= 0).any():
        return False
    complete: NDArray[np.bool_] = np.all(domain >= 0, axis=1)
    single = complete[rules.limit[:, 0]] & (rules.limit[:, 1] == 1)
    rule = np.repeat(np.arange(len(rules.limit_first) - 1), np.diff(rules.limit_first))
    if len(np.unique(rule[single])) < len(rules.limit_first) - 1:
        return False
    levels = np.unique(rules.limit[:, 0])
    return all(
        np.unique(domain[levels[: i + 1]], axis=1).shape[1] == len(np.unique(domain[level]))
        for i, level in enumerate(levels)
    )


MOST_FAILURES = 64
"""Partitions that could not be repaired within the targets before no more are tried."""


def place_past_soft_rules(run: SearchRun) -> None:
    """Place what only soft limits keep from having a node."""
    if not run.waiting.any():
        return
    yielded = False
    for weight in soft_weights(run):
        waiting = run.waiting
        if not waiting.any():
            break
        ignore_soft_rules(run, weight)
        yielded = True
        place(run, repairs_first(run.problem, run.state, waiting, waiting))
    if yielded and run.stop is None:
        repair_within_targets(run)


def repair_past_soft_rules(run: SearchRun) -> None:
    """Repair the hard rules that only soft limits keep broken."""
    weights, yielded = soft_weights(run), False
    while weights and run.stop is None:
        if not any(KINDS[one.kind].hard for one in rules_broken(run, run.placement)):
            break
        ignore_soft_rules(run, weights.pop(0))
        repair_rules(run)
        yielded = True
    if yielded:
        ignore_soft_rules(run, 0.0)
        repair_rules(run, 0)  # what moved is put where it keeps them, if that can be


def level_past_soft_rules(run: SearchRun) -> None:
    """Level what only soft limits keep above its target, if they shall yield to goals."""
    if not soft_rules_yield(run.request):
        return
    yielded = False
    for weight in soft_weights(run):
        if run.stop is not None or run.ratio <= 1.0:
            break
        ignore_soft_rules(run, weight)
        place_and_level(run)
        level_pairs(run)
        yielded = True
    if yielded:
        repair_within_targets(run)


def repair_within_targets(run: SearchRun) -> None:
    """Enforce all soft rules again, and repair those that can hold within the targets."""
    ignore_soft_rules(run, 0.0)
    if run.ratio > 1.0:
        return
    scan = new_scan(run.problem, np.zeros(run.problem.nodes.watermark.shape[0]))
    broken = [one.partition for one in rules_broken(run, run.placement)]
    failed = 0
    for p in np.unique(np.concatenate([[-1], *broken]))[1:].tolist():
        node, leader = run.state.node.copy(), run.state.leader.copy()
        just_this = np.array([run.moves_left, 1])
        repair_partitions(run.problem, run.state, scan, p, just_this, np.zeros(1, np.int64))
        if run.ratio > 1.0:
            run.restart_from(node, leader)
            failed += 1
        if failed == MOST_FAILURES or not run.look():
            return


def soft_weights(run: SearchRun) -> list[float]:
    """Weights of the soft limits, the least first."""
    rules = run.request.cluster.rules
    return sorted({limit.weight for rule in rules for limit in rule.limits() if not limit.hard})


def ignore_soft_rules(run: SearchRun, weight: float) -> None:
    """Compile anew without the soft limits up to a weight, and stand where it stood."""
    cluster, now, nodes = run.request.cluster, run.placement, run.problem.nodes
    movable = run.problem.partitions.movable
    run.problem = compile_problem(
        cluster, nodes.watermark, nodes.weight, soft_from=np.nextafter(weight, np.inf),
        limits=run.request.limits,
    )  # fmt: skip
    run.problem.partitions.movable[:] = movable
    run.state = placed_state(cluster, run.problem, now, run.dropped)
