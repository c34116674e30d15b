"""The method ``exact``: CP-SAT on small clusters, which also improves answers of ``balance``.

After its search ``balance`` asks CP-SAT to place and repair the rest, and to find fewer moves:
bounds prove how few are needed, and only where the search made a few more than that, CP-SAT looks
for fewer, from the placement found. Most such models are solved in hundredths of a second.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import KINDS, Audit, soft_cost
from evenkeel.measure.binding import NONE, group_scope, partition_scope
from evenkeel.measure.bounds import goals_met
from evenkeel.measure.bounds.needs import out_of_reach
from evenkeel.measure.compare import compare
from evenkeel.measure.group_goals import lead_goals
from evenkeel.measure.levelness import levelness
from evenkeel.measure.loads import usable
from evenkeel.measure.regressions import spread_excess_before
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.exact.stages import (
    FULL,
    SOME,
    Found,
    Proof,
    Scale,
    Search,
    Stages,
    in_stages,
    within_limits,
)
from evenkeel.methods.exact.variables import CutShort, Slack
from evenkeel.methods.levelling.run import levelled, placed_and_led, searched, well_led
from evenkeel.methods.options import Exact
from evenkeel.methods.shared.answers import (
    ViolationSummary,
    audited_answer,
    endangered,
    is_better,
    leaves_less,
    missing,
    objective_tuple,
    regresses,
    soft_rules_yield,
)
from evenkeel.methods.shared.replica_counts import kept, leading_slots, missing_places
from evenkeel.methods.shared.size import SMALL, check_size, size_of
from evenkeel.methods.shared.stopping import StopReason
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.runtime.logs import log_event

LARGEST = 1_000  # replicas x nodes up to which it is tried
# so many moves above those proven to be needed are too many; where whole groups have rules, which
# the search before never breaks on its way
FAR, FAR_IN_GROUPS = 3, 1

# deterministic seconds for the moves, for them where too many are left after all, for who leads
# after that, and for the moves where a time limit is given
FEWEST_EFFORT, FEWEST_AGAIN, LEADERS, FEWEST_LONGEST = 0.1, 0.7, 0.02, 1.0

ROUNDS = 6  # refinements where moves are still too many: better and sooner than more CP-SAT


def with_fewest_moves(request: Request, outcome: Outcome) -> Outcome:
    """Reach the goals with fewer moves, if the cluster is small and that may well be."""
    cluster = request.cluster
    if size_of(cluster) > LARGEST or ViolationSummary.of(request, outcome).broken:
        return outcome
    stands = cluster.placement.replaced(outcome.node, outcome.leader)
    made = compare(cluster, cluster.placement, stands).moves
    missed, far = outcome.stop_reason != "tolerance", _far(cluster)
    if soft_rules_yield(request):  # what they cost comes before moves
        cost = soft_cost(cluster, audited_answer(request, outcome)[1])
        missed |= round(cost, 9) > least_soft_cost(cluster)
    if not missed and made - request.bounds.moves_level < far:
        return outcome
    if missed and out_of_reach(cluster, levelness(cluster, stands), request.bounds.target):
        return outcome
    effort = FEWEST_LONGEST if request.watch.has_limit else FEWEST_EFFORT
    found = _fewest(request, stands, None if missed else made, effort)
    proven = [int(one.bound) for one in found.proof.stages if one.name == "moves"]
    better, least = _better_of(request, outcome, found), max([request.bounds.moves_level, *proven])
    if better is outcome and missed:
        return _proven_apart(request, outcome, found.proof)
    best = _refined(request, better, least)
    stands = cluster.placement.replaced(best.node, best.leader)
    made = compare(cluster, cluster.placement, stands).moves
    if request.watch.has_limit or made - least < far or request.watch.reason is not None:
        return best
    other = replace(request, seed=request.seed + 1)  # the same seed would go the same way
    return _better_of(request, best, _fewest(other, stands, made, FEWEST_AGAIN))


def _proven_apart(request: Request, outcome: Outcome, proof: Proof) -> Outcome:
    """Return an answer that misses goals, with the message that none reaches all, if proven."""
    dimensions = range(len(request.cluster.dimensions))
    exact = all(Scale.of_dimension(request.cluster, d).exact for d in dimensions)
    if proof.status != "infeasible" or not exact:
        return outcome
    text = f"{outcome.message} Proven: no placement{within_limits(request)} reaches all goals."
    return replace(outcome, message=text.lstrip())


def _far(cluster: Cluster) -> int:
    return FAR_IN_GROUPS if (cluster.partitions.group_rule >= 0).any() else FAR


def _better_of(request: Request, outcome: Outcome, found: Found) -> Outcome:
    """Return the answer found if it has a better objective, else the outcome."""
    if found.node is None or found.leader is None:
        return outcome
    node = kept(request.cluster, found.node)
    leader = leading_slots(request.cluster, node, found.leader)
    answer = replace(outcome, node=node, leader=leader)
    if outcome.stop_reason != "tolerance":
        answer = replace(answer, stop_reason="tolerance", message="")
    # what leads better by loads may be further from goals within groups
    for one in (well_led(request, answer), answer):
        if is_better(request, one, outcome):
            return one
    return outcome


def _refined(request: Request, outcome: Outcome, least: int) -> Outcome:
    """Refine an answer far above the ``least`` moves repeatedly, each time from the best."""
    cluster, best = request.cluster, outcome
    for again in range(1 if request.watch.has_limit else ROUNDS):
        if request.watch.reason is not None:
            break
        start = cluster.placement.replaced(best.node, best.leader)
        if compare(cluster, cluster.placement, start).moves - least < _far(cluster):
            break
        found = levelled(replace(request.resumed_from(best), seed=request.seed + again))
        better = replace(best, node=found.node, leader=found.leader)
        if is_better(request, better, best):
            best = better
    return best


def _fewest(request: Request, stands: Placement, made: int | None, effort: float) -> Found:
    """Look for the fewest moves within the targets, fewer than were ``made``; None for none."""
    search = Search(1, effort, request.seed, request.watch)
    try:
        stages = Stages.of(request, stands, search)
    except CutShort:
        return Found(None, None, Proof("unknown"))
    _hold_what_is_reached(stages, stands)
    moves = sum(count for count, _, _ in stages.joins)
    if made is None:
        search.linearization = SOME
        stages.minimise("reached", 0 * moves, 1)
        if stages.answer is None:
            return stages.found
        stages.start_from(stands)  # it has few moves, and what reaches the goals may have many
        search.effort, search.linearization = search.spent + search.effort, FULL
        search.seed += 1
    stages.minimise("moves", moves, 1)
    last = stages.last("moves")
    if made is None or (last is not None and last.value < made):
        search.effort = search.spent + LEADERS
        stages.minimise("leader changes", stages.handed_on, 1)
        return stages.found
    return Found(None, None, stages.found.proof)


def _hold_what_is_reached(stages: Stages, reached: Placement) -> None:
    """Let all be placed and led, within the targets, and no more soft terms open than are."""
    variables = stages.variables
    few = sum(map(sum, variables.few))
    variables.model.add(sum(variables.missing) + sum(variables.unled) + few == 0)
    variables.model.add(sum(variables.no_quorum) <= endangered(variables.cluster, reached.node)[1])
    for one in stages.ceilings:
        variables.model.add(one.reading <= one.most(0.0))
    for floor in stages.floors:
        variables.reasons.hold(floor.reading >= floor.least, "floor")
    for swapped, most in zip(variables.swapped, _swapped(variables.cluster, reached), strict=True):
        variables.model.add(swapped.amount <= int(most))
    if len(stages.soft_terms) > len(variables.swapped):
        stages.meet_soft_terms()


def _swapped(cluster: Cluster, placement: Placement) -> NDArray[np.int64]:
    """Count the replicas of each partition that vote, or do not, beyond those that should."""
    partitions, count = cluster.partitions, len(cluster.partitions)
    voters = np.minimum(partitions.voters, partitions.replicas)
    votes = placement.role == Role.VOTER
    stands = np.append(cluster.nodes.may_hold, False)[placement.node]
    voting = np.bincount(placement.owner[stands & votes], minlength=count)
    others = np.bincount(placement.owner[stands & ~votes], minlength=count)
    most: NDArray[np.int64] = np.maximum(voting - voters, others - (partitions.replicas - voters))
    return np.maximum(most, 0)


SearchOn = Callable[[Request], Outcome]  # a search that begins where a request starts
# deterministic seconds, the same on every machine: for placing and repairing, for placing all where
# that is likely, and for soft terms after that
EFFORT, AGAIN, SOFT_RULES = 0.05, 0.8, 0.01

FIRST = 0.4  # the part of it for endangering the fewest
LONGEST = 1.0  # the same for each where a time limit is given
PRECISION = 0.01  # an excess over the targets this near to the least one is near enough


def rescued(request: Request, outcome: Outcome, level: SearchOn) -> Outcome:
    """Place and repair by CP-SAT what a search left, if the cluster is small."""
    # the search ``level`` begins at what CP-SAT repairs; nothing more is tried once it is known
    # that no more can be placed or repaired in the time given
    if size_of(request.cluster) > SMALL:
        return outcome
    before = ViolationSummary.of(request, outcome)
    if not any(before[3:]) or outcome.stop_reason in ("time", "work", "interrupted"):
        return outcome
    cluster = request.cluster
    start, audited = audited_answer(request, outcome)
    if not before.broken and before.soft <= least_soft_cost(cluster):
        return outcome
    if before.broken and is_hopeless(cluster, request.limits, start, audited, before.is_endangered):
        proven = missing(request, outcome) == int(lacking_nodes(cluster).sum())
        return _proven_short(outcome, before, "") if proven else outcome
    try:
        better = _asked_of_cp_sat(request, outcome, before, level)
    except CutShort:
        return outcome
    if better is outcome:
        return outcome
    return well_led(request, better)


def _asked_of_cp_sat(
    request: Request, outcome: Outcome, before: ViolationSummary, level: SearchOn
) -> Outcome:
    """Place and repair what CP-SAT can, if that may be any."""
    cluster = request.cluster
    start = cluster.placement.replaced(outcome.node, outcome.leader)
    effort = LONGEST if request.watch.has_limit else EFFORT
    search = Search(1, effort * FIRST, request.seed, request.watch, PRECISION)
    stages = Stages.of(request, start, search, Slack.of)
    if before.is_endangered:
        stages.endanger_least()
    search.effort = effort
    stages.repair()
    better = _answered(request, outcome, stages.found)
    costs_others = (
        better is not None and ViolationSummary.of(request, better).danger > before.danger
    )
    if costs_others:
        search.effort = search.spent + effort
        stages = Stages.of(request, start, search, Slack.of)
        stages.endanger_no_more(*before.danger)
        stages.repair()
        better = _answered(request, outcome, stages.found)
    if not stages.proves_some and (better is None or ViolationSummary.of(request, better).broken):
        whole = _all_placed(request, start, search)
        if whole.answer is not None:
            stages, better = whole, _answered(request, outcome, whole.found)
    if better is None or not leaves_less(request, better, outcome):
        if costs_others:  # more can be placed, but not without danger to others
            return outcome
        return _no_better(request, outcome, before, better, stages.found.proof)
    if request.watch.has_limit:
        better = _levelled_by_cp_sat(request, outcome, better, stages)
    if stages.certain != "optimal" and ViolationSummary.of(request, better).broken:
        better = _searched_on(request, better)
    if not request.watch.has_limit:
        better = _levelled_on(request, better, level)
    return _proof_message(request, before, better, stages.found.proof)


def _levelled_by_cp_sat(
    request: Request, outcome: Outcome, repaired: Outcome, stages: Stages
) -> Outcome:
    """Level what was repaired with the fewest moves, with a proof if time allows."""
    stages.search.effort = stages.search.spent + LONGEST
    stages.level_and_move()
    level = _answered(request, outcome, stages.found)
    return repaired if level is None or not leaves_less(request, level, outcome) else level


def _searched_on(request: Request, outcome: Outcome) -> Outcome:
    """Search from what CP-SAT found before it was done, then place what waits: it may lie near."""
    best = outcome
    for search_from in (searched, placed_and_led):
        found = search_from(request.resumed_from(best))
        if leaves_less(request, found, best):
            best = found
    return best


def _levelled_on(request: Request, outcome: Outcome, level: SearchOn) -> Outcome:
    """Level from what CP-SAT repaired, by search: that takes a quarter of what CP-SAT takes."""
    found = level(request.resumed_from(outcome))
    if ViolationSummary.of(request, found) > ViolationSummary.of(request, outcome) or regresses(
        request, found
    ):
        return outcome
    return found if objective_tuple(request, found) < objective_tuple(request, outcome) else outcome


def _all_placed(request: Request, start: Placement, search: Search) -> Stages:
    """Look for a placement that breaks nothing, which is found more easily than the best."""
    search.effort, search.linearization = search.spent + AGAIN, SOME
    stages = Stages.of(request, start, search)
    stages.place_all()
    search.effort, search.linearization = search.spent + SOFT_RULES, FULL
    stages.meet_soft_terms()
    return stages


def _answered(request: Request, outcome: Outcome, found: Found) -> Outcome | None:
    """Put an answer into an outcome, lost replicas on their nodes if they break nothing there."""
    if found.node is None or found.leader is None:
        return None
    every = []
    for node in (kept(request.cluster, found.node), found.node):
        leader = leading_slots(request.cluster, node, found.leader)
        every.append(replace(outcome, node=node, leader=leader))
    with_dead_replicas, without = every
    if regresses(request, with_dead_replicas) or ViolationSummary.of(
        request, without
    ) < ViolationSummary.of(request, with_dead_replicas):
        return without
    return with_dead_replicas


def _no_better(
    request: Request,
    outcome: Outcome,
    before: ViolationSummary,
    other: Outcome | None,
    proof: Proof,
) -> Outcome:
    """Return the outcome with the proof, if any, that the rest fits on no node."""
    if other is None or proof.status != "optimal":
        return outcome
    least = ViolationSummary.of(request, other)
    # where endangering fewer came first, each of those is short of one replica at least
    alone = not before.is_endangered or least.missing <= least.no_quorum
    if not alone or before.missing != least.missing:
        return outcome
    return _proven_short(outcome, before, within_limits(request))


def _proven_short(outcome: Outcome, summary: ViolationSummary, within: str) -> Outcome:
    """Return the outcome with the message that the rest is proven to fit nowhere."""
    if not summary.missing:
        return outcome
    last = f"the last {summary.missing:,} of the replicas find"
    text = f"{'the last replica finds' if summary.missing == 1 else last} no node."
    text = f"Proven: whatever is moved{within}, {text}"
    return replace(outcome, message=outcome.message or text)


def _proof_message(
    request: Request, before: ViolationSummary, better: Outcome, proof: Proof
) -> Outcome:
    """Return the outcome with a message on the repairs and the stop reason of its placement."""
    cluster, after = request.cluster, ViolationSummary.of(request, better)
    placement = cluster.placement.replaced(better.node, better.leader)
    met = goals_met(levelness(cluster, placement), request.bounds)
    stop: StopReason = "tolerance" if met else "exhausted"
    if proof.status == "optimal" and proof.stages[-1].name == "moves" and (met or after.broken):
        stop = "optimum"
    placed, repaired = before.missing - after.missing, before.broken - after.broken
    text = "CP-SAT leaves fewer partitions endangered than the search did."
    if placed > 0:
        text = f"CP-SAT placed {placed} of {before.missing} replicas that the search left over."
    elif repaired > 0:
        text = f"CP-SAT repaired {repaired} of {before.broken} rules that the search left broken."
    elif after.danger == before.danger:
        text = f"CP-SAT lowered the cost of soft rules from {before.soft:g} to {after.soft:g}."
    return replace(better, stop_reason=stop, message=text)


# kinds of violations where replicas have no node that keeps them
OF_PLACES = frozenset({"unassigned", "on_dead", "not_kept", "min_active"})

# what a leader elsewhere may repair, however few nodes there are
OF_LEADERS = frozenset({"leader", "leaderless"})

# kinds of violations by replicas on nodes that are not open to them
OF_MASKS = frozenset({"require", "voters_require", "forbidden"})


def is_hopeless(
    cluster: Cluster, limits: Limits, placement: Placement, audited: Audit, is_endangered: bool
) -> bool:
    """Return whether nothing that is broken can be repaired, as each partition by itself shows."""
    leaving = np.append(cluster.nodes.serves & ~cluster.nodes.may_hold, False)
    if is_endangered and leaving[cluster.placement.node].any():
        return False
    broken = [one for one in audited.found if KINDS[one.kind].hard and one.count]
    missing = missing_places(cluster, placement.node)
    if limits.moves is not None and not is_endangered and {one.kind for one in broken} <= OF_PLACES:
        placed = int((missing_places(cluster, cluster.placement.node) - missing).sum())
        if placed >= limits.moves and _stand_apart(cluster):
            return True  # each of these took a move, and so would each of the others
    if any(one.kind in OF_LEADERS or (one.partition < 0).any() for one in broken):
        return False
    if any(one.kind in OF_MASKS and (missing[one.partition] > 0).any() for one in broken):
        return False  # a misplaced replica leaves the nodes of others free
    lacking = lacking_nodes(cluster)
    beyond = all((lacking[one.partition] > 0).all() for one in broken)
    return beyond and bool((missing <= lacking).all())


def _stand_apart(cluster: Cluster) -> bool:
    """Return whether replicas of a partition may not share a node; joining one is no move then."""
    apart = np.zeros(len(cluster.partitions), bool)
    for binding in partition_scope(cluster).bindings:
        if binding.kind == "spread" and binding.hard and binding.tier == "node":
            apart |= binding.amount == 1
    return bool(apart.all())


def lacking_nodes(cluster: Cluster) -> NDArray[np.int64]:
    """Count the replicas wanted of each partition that find no node whatever is moved, (P,)."""
    placement, nodes, scope = cluster.placement, cluster.nodes, partition_scope(cluster)
    wanted = cluster.partitions.replicas.astype(np.int64)
    by_rule = scope.open[scope.rule]
    open_to = by_rule & nodes.may_receive
    stands = np.flatnonzero(np.append(nodes.may_hold, False)[placement.node])
    owner, node = placement.owner[stands], placement.node[stands]
    open_to[owner, node] |= by_rule[owner, node]
    open_to[tuple(cluster.forbidden.T)] = False
    most = wanted.copy()
    excess = spread_excess_before(cluster)
    for binding in scope.bindings:
        if binding.kind != "spread" or not binding.hard:
            continue
        row = cluster.topology.tier_index(binding.tier)
        domain = cluster.topology.domain_with_nodes[row]
        if (domain < 0).any():
            continue
        inside = domain[:, None] == np.unique(domain)
        reached = (open_to.astype(np.int64) @ inside.astype(np.int64) > 0).sum(axis=1)
        bound = binding.amount != NONE
        most[bound] = np.minimum(most, reached * binding.amount + excess[row])[bound]
    most[placement.owner[(placement.flags & Flag.PINNED) != 0]] = wanted.max(initial=0)
    lacking: NDArray[np.int64] = np.maximum(wanted - most, 0)
    return lacking


def least_soft_cost(cluster: Cluster) -> float:
    """Return what soft limits cost at least where their domains are too few for the replicas."""
    parts, topology, cost = cluster.partitions, cluster.topology, 0.0
    of_groups = np.bincount(parts.group, parts.replicas, len(parts.group_names))
    scopes = (partition_scope(cluster), parts.replicas), (group_scope(cluster), of_groups)
    for scope, wanted in scopes:
        for one in scope.bindings:
            domain = topology.domain_with_nodes[topology.tier_index(one.tier)]
            domain = np.unique(domain[usable(cluster)])
            if one.kind == "spread" and not one.hard and domain.min(initial=0) >= 0:
                cost += float(one.weight @ np.maximum(wanted - len(domain) * one.amount, 0))
    return round(cost, 9)


logger = logging.getLogger("evenkeel.exact")

OUTDONE = "What CP-SAT found would be worse than what the search without it did, which stands."


def exact(request: Request) -> Outcome:
    """Place all, level, and move little, each proven before the next is looked at."""
    options = request.options
    assert isinstance(options, Exact)
    cluster = request.cluster
    faults = FaultList()
    check_size(faults, cluster, options)
    faults.raise_if_any()
    begun = rescued(request, searched(replace(request, options=None)), searched)
    hint = cluster.placement.replaced(begun.node, begun.leader)
    search = Search(options.workers, options.effort, request.seed, request.watch)
    log_event(logger, "proving", logging.DEBUG, replicas=len(hint.node), effort=options.effort)
    found = in_stages(request, hint, search)
    stop_reason: StopReason = (
        "optimum" if found.proof.status in ("optimal", "infeasible") else _cut_short(search)
    )
    log_event(
        logger, "proven", status=found.proof.status, stop_reason=stop_reason,
        stages={one.name: (one.value, one.bound) for one in found.proof.stages},
        effort=found.proof.effort,
    )  # fmt: skip
    if found.node is None or found.leader is None:
        return replace(begun, native=found.proof, message=_proof_text(request, begun, found.proof))
    lacking = int(found.proof.stages[0].bound)

    def outdone(outcome: Outcome) -> Outcome:
        proven = f"{_proof_text(request, outcome, found.proof)} " if lacking else ""
        return replace(outcome, native=found.proof, message=proven + OUTDONE)

    node = kept(cluster, found.node)
    answer = Outcome(
        node=node,
        leader=leading_slots(cluster, node, found.leader),
        stop_reason=stop_reason,
        work=begun.work,
        timings=begun.timings,
        native=found.proof,
    )
    # CP-SAT counts what stays where it may not be as missing: that may lead
    answer = well_led(request, answer)
    answer = replace(answer, message=_proof_text(request, answer, found.proof))
    own, other = objective_tuple(request, answer), objective_tuple(request, begun)
    proven = found.proof.status == "optimal" and not lacking and own[:3] <= other[:3]
    # its model keeps rules that came broken, beside which a search may place and level more
    if regresses(request, answer) or not (proven or own <= other):
        answer, own = outdone(begun), other
    if proven or request.watch.reason is not None:
        return answer
    alone = replace(request, options=None)  # what balance does with a small cluster
    search_alone = with_fewest_moves(alone, rescued(alone, levelled(alone), levelled))
    if objective_tuple(request, search_alone) < own and not regresses(request, search_alone):
        return outdone(search_alone)
    return answer


def _cut_short(search: Search) -> StopReason:
    return search.stopped or search.watch.reason or "work"


def _proof_text(request: Request, answer: Outcome, proof: Proof) -> str:
    """Return the sentence on the proof, within the limits and without broken hard rules."""
    within = within_limits(request)
    if proof.status == "infeasible":
        return f"Proven: no placement{within} keeps the hard rules."
    if proof.status == "unknown":
        return "CP-SAT proved nothing in the time given."
    lacking = int(proof.stages[0].bound)
    if lacking:
        text = f"find no node without breaking a hard rule, whatever is moved{within}."
        if missing(request, answer) == 0:  # rules may stay as broken as they came
            text += " All are placed, and no rule is broken further than it came."
        return f"Proven: at least {lacking:,} replicas or leaders {text}"
    if proof.status == "optimal":
        if _has_soft_rules(request):
            within += " that breaks soft rules no more"
        return f"Proven: none{within} is more level, and none as level moves less."
    gaps = ", ".join(f"{stage.name} within {stage.gap:.4g}" for stage in proof.stages)
    return f"Cut short: {gaps} of the proven least."


def _has_soft_rules(request: Request) -> bool:
    """Return whether soft rules, preferred leaders or leaders of groups come before levels."""
    rules, asked = request.cluster.rules, lead_goals(request.cluster, request.goals)
    soft = any(rule.lead or not all(one.hard for one in rule.limits()) for rule in rules)
    return soft or asked is not None
