"""Validate a request and run its method.

Every caller of a method (``solve``, sweeps, pipelines, simulations) enters here, so all of them get
the same checks.

What a method is asked differs from what a caller asked, by these steps, in this order:

1. In ``solve``, replicas that the system elects by itself lead already (``led_as_preferred``).
2. Nodes have less capacity where their disks had no room for the outcome (``placed_on_disks``).
3. Goals that are not worth moving for are left out (``_run_or_repair``).
4. Partitions that are dear to move are pinned, in further runs (``_run_holding_dear``).
5. Replicas that must go have no node (``without_surplus``).
6. The last replica in sync is pinned where another can move (``with_last_in_sync``).
7. Loads are scaled by powers of two to ordinary size (``in_ordinary_units``): methods need absolute
   numbers for zero and for unlimited. No digit changes, so no answer depends on the unit.
8. A goal within groups is a soft rule of each group (``with_group_limits``).
9. Partitions whose list the system would refuse are pinned, and 7 and 8 repeated, until there
   are no more (``with_kept_lists``).
"""

import operator
import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from evenkeel.measure.audit import Audit, audit
from evenkeel.measure.bounds import Bounds, goals_reached
from evenkeel.measure.compare import compare
from evenkeel.measure.disks import price_of_moves
from evenkeel.measure.elections import led_from_behind
from evenkeel.measure.group_goals import FREE, group_targets
from evenkeel.measure.levelness import imbalance_fall, levelness
from evenkeel.measure.loads import has_leaders
from evenkeel.measure.regressions import regressions
from evenkeel.measure.spending import exceeded
from evenkeel.measure.units import powers, scaled
from evenkeel.methods.contract import Outcome, Request, Strategy, Watch
from evenkeel.methods.options import Options
from evenkeel.methods.registry import Method, find
from evenkeel.methods.shared.disk_exchanges import with_disks_in_view
from evenkeel.methods.shared.disks import on_disks, placed_on_disks
from evenkeel.methods.shared.giving_up import with_last_in_sync, with_what_stays, without_surplus
from evenkeel.methods.shared.kept_lists import kept_lists_messages, with_kept_lists
from evenkeel.methods.shared.replica_counts import slots_kept
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.cost_tables import NodeTable
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import (
    Cost,
    Goals,
    check_all_led,
    check_cost,
    check_goals,
    leads_in_groups,
    move_costs,
)
from evenkeel.model.intake.stranded import marked, pinned_messages, unavailable_message, unchanged
from evenkeel.model.limits import Limits, check_limits
from evenkeel.model.placement import NO_PLACEMENT, Flag, Placement
from evenkeel.model.reading.arrays import LISTED_FAULTS, read_only
from evenkeel.model.reading.quantities import check_time_limit, is_whole, read_count
from evenkeel.model.rules import Rule
from evenkeel.model.runtime.printable import counted
from evenkeel.model.topology import NODE_TIER
from evenkeel_kernels.build.compile_ahead import compiled_ahead
from evenkeel_kernels.build.inventory import report_preparing

# environment variable that makes an error of an answer that is worse than what came in
ASSERTIONS = "EVENKEEL_ASSERTIONS"

COMPILING = 1.0  # seconds from which on kernels were compiled, not merely loaded

# seconds, and part of it, by which a time limit may be exceeded without a word
OVERTIME, OVERTIME_SHARE = 0.1, 0.05

GENTLE = 4  # different costs of moves, the greatest first, from which on partitions are held

# message where a method was not begun
NO_TIME = "There was no time to begin: everything stays as it came."

# warning where a goal for leaders binds nothing
NO_LEADERS = "No partition of this cluster has a leader: the goal for leaders has no effect."

SEEDS = 2**62  # seeds are below it, and not below its negative

# goals that are refused where a method does not pursue them; the others measure any result
ASKED_APART = (
    "floor", "soft_yield", "act_above", "worth", "groups", "move_cost", "group_leaders",
    "min_leaders",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class MethodRun:
    """The answer of a method."""

    request: Request  # what it was asked, with the bounds that it used
    outcome: Outcome  # what it answered
    placement: Placement  # the same, in the slots of the cluster's placement
    timings: Mapping[str, float]  # seconds of the method and of its phases
    audited: Audit | None = None  # of that placement, if it has been audited

    @property
    def audit(self) -> Audit:
        """The audit of the placement."""
        known = self.audited
        return audit(self.request.cluster, self.placement) if known is None else known


def run_method(
    method: str,
    cluster: Cluster,
    *,
    goals: Goals | Cost | None = None,
    limits: Limits | None = None,
    options: Options | None = None,
    start: Placement | None = None,
    proven: Bounds | None = None,
    watch: Watch | None = None,
    seed: int = 0,
) -> MethodRun:
    """Run a method on a cluster; ``InvalidInput`` names everything that it cannot be asked."""
    chosen = find(method)
    request = checked(
        chosen, cluster, goals=goals, limits=limits, options=options, start=start, proven=proven,
        watch=watch, seed=seed,
    )  # fmt: skip
    # a load on a node with next to no capacity may overflow to inf, which is what it should be
    with np.errstate(over="ignore"):
        return run_checked(chosen, request)


def checked(
    chosen: Method,
    cluster: Cluster,
    *,
    goals: Goals | Cost | None = None,
    limits: Limits | None = None,
    options: Options | None = None,
    start: Placement | None = None,
    proven: Bounds | None = None,
    watch: Watch | None = None,
    seed: int = 0,
) -> Request:
    """Make the request, or raise every fault of the arguments together."""
    goals = Goals() if goals is None else goals
    limits = Limits() if limits is None else limits
    watch = Watch(None, None, None) if watch is None else watch
    faults = FaultList()
    _check_cluster(faults, cluster, start)
    _check_goals(faults, chosen, cluster, goals)
    _check_leaders(faults, chosen, cluster, goals)
    given = _options(faults, chosen, options)
    kept = given.kept_of(chosen.limits) if isinstance(given, Options) else chosen.limits
    _check_limits(faults, chosen, kept, cluster, goals, limits)
    _check_running(faults, chosen, cluster, start, watch, seed)
    faults.raise_if_any()
    return Request(
        cluster=cluster,
        goals=goals,
        limits=limits,
        options=given,
        start=cluster.placement if start is None else start,
        watch=watch,
        seed=operator.index(seed),
        proven=proven,
    )


def run_checked(chosen: Method, request: Request) -> MethodRun:
    """Run a method, then level the disks of nodes, if they have any."""
    cluster = request.cluster
    if cluster.disks is None:
        return _run_or_repair(chosen, request)

    def run(asked: Cluster) -> MethodRun:
        if asked is cluster:
            return _run_or_repair(chosen, request)
        start = asked.placement if request.start is cluster.placement else request.start
        return _run_or_repair(chosen, replace(request, cluster=asked, start=start))

    tolerance, most = getattr(request.goals, "disks", None), request.limits.disk_moves
    found, placement = placed_on_disks(cluster, tolerance, most, run, lambda one: one.placement)
    if found.request.cluster is not cluster:  # what is proven of it holds of less room
        outcome = replace(_unproven(found.outcome), fewest=0)
        found = replace(found, request=request, outcome=outcome, audited=None)
    if "move_cost" in chosen.goals and isinstance(request.goals, Goals):
        other = with_disks_in_view(with_group_limits(request), request.goals, placement)
        if other is not placement:
            outcome = replace(found.outcome, node=other.node, leader=other.leader)
            return replace(found, outcome=outcome, placement=other, audited=None)
    return replace(found, placement=placement)


def _run_or_repair(chosen: Method, request: Request) -> MethodRun:
    """Run a method; where its goals are not worth moving for, let it repair alone."""
    goals = request.goals
    if isinstance(goals, Cost) or (goals.act_above is None and not goals.worth):
        return _run_holding_dear(chosen, request)
    repaired = _run_once(chosen, replace(request, goals=goals.repairs, proven=None))
    if goals.act_above is not None:
        wide = replace(repaired.request, goals=goals.widened(request.cluster.dimensions))
        cluster, placement = request.cluster, repaired.placement
        level = levelness(cluster, placement)
        if goals_reached(cluster, wide.goals, placement, level, wide.bounds):
            return _held_back(repaired, wide, "every node is within act_above")
    found = _run_holding_dear(chosen, request)
    if reason := _not_worth(goals, repaired.placement, found):
        return _held_back(repaired, repaired.request, reason)
    return found


def _not_worth(goals: Goals, repaired: Placement, found: MethodRun) -> str:
    """Return why what goals take beyond repairs gains too little; "" where it is worth it."""
    cluster = found.request.cluster
    gain = imbalance_fall(cluster, goals, repaired, found.placement)
    ends = [compare(cluster, cluster.placement, one) for one in (repaired, found.placement)]
    spent = {
        "all": 1.0,
        "move": float(max(0, ends[1].moves - ends[0].moves)),
        "byte": max(0.0, ends[1].bytes_moved - ends[0].bytes_moved),
    }
    short = [word for word, least in goals.worth.items() if gain < least * spent[word]]
    if not short or (
        np.array_equal(repaired.node, found.placement.node)
        and np.array_equal(repaired.leader, found.placement.leader)
    ):
        return ""
    asked = ", ".join(f"{100.0 * goals.worth[word] * spent[word]:.3g}%" for word in short)
    moves = counted(int(spent["move"]), "move")
    return f"{moves} would lower the imbalance by {100.0 * gain:.3g}%, where worth asks for {asked}"


def _held_back(repaired: MethodRun, request: Request, reason: str) -> MethodRun:
    """Return a run that has repaired and moved nothing for its goals, with the reason."""
    text = f"Nothing moves for the goals: {reason}."
    outcome, whole = repaired.outcome, repaired.audit.ok
    if whole:
        text_all = f"{outcome.message} {text}".lstrip()
        outcome = replace(outcome, message=text_all, stop_reason="worth")
    return replace(repaired, request=request, outcome=_with_warnings(outcome, [text] * (not whole)))


def _run_holding_dear(chosen: Method, request: Request) -> MethodRun:
    """Run a method, and again with what is dear to move held, then let go; keep the cheapest."""
    found, goals, cluster = _run_once(chosen, request), request.goals, request.cluster
    if isinstance(goals, Cost) or not goals.move_cost:
        return found
    costs, placement = move_costs(FaultList(), cluster, goals), cluster.placement

    def judged(run: MethodRun) -> tuple[int, bool, float]:
        after, most = run.placement, request.limits.disk_moves
        met = goals_reached(cluster, goals, after, levelness(cluster, after), request.bounds)
        if cluster.disks is not None:
            after = on_disks(cluster, after, goals.disks, most).placement
        return audit(cluster, after).hard, not met, price_of_moves(cluster, goals, after)

    stays = np.append(cluster.nodes.may_hold & cluster.nodes.serves, False)[placement.node]
    best = judged(found)
    for least in np.unique(costs[costs > 1.0])[::-1][:GENTLE].tolist():
        held = (costs >= least)[placement.owner] & stays
        pinned = request.pinned(held)
        held_back = _run_once(chosen, replace(pinned, start=pinned.cluster.placement))
        then = _run_once(chosen, replace(request, start=held_back.placement))
        for run in (held_back, then):
            if (score := judged(run)) < best:
                outcome = _unproven(replace(run.outcome, fewest=0))  # of what is held only
                best = score
                found = replace(run, request=request, outcome=outcome, audited=None)
    return found


def _run_once(chosen: Method, request: Request) -> MethodRun:
    """Run the strategy, and stop the clock."""
    began = time.perf_counter()
    watch = request.watch
    if refused := _refused_start(chosen, request):
        request = replace(request, start=request.cluster.placement)
    with report_preparing(watch.exclude), compiled_ahead(chosen.warmup):
        strategy = chosen.load()
        loaded = time.perf_counter() - began
        watch.exclude(loaded)
        outcome = _not_begun(request)
        if _is_time_for(chosen, request):
            with watch.in_phase(chosen.name):
                outcome = _outcome_of(chosen, strategy, request)
    phases = {"load": loaded, **outcome.timings}
    timings = {chosen.name: time.perf_counter() - began}
    timings |= {f"{chosen.name}.{phase}": seconds for phase, seconds in phases.items()}
    return answered(chosen, request, _with_warnings(outcome, refused), timings)


def _refused_start(chosen: Method, request: Request) -> list[str]:
    """Return why a search does not begin at the start that is given; nothing where it does."""
    cluster, start = request.cluster, request.start
    if start is cluster.placement or not chosen.never_worse:
        return []
    worse = regressions(cluster, start, audit(cluster, start)).counts
    found = [f"{count:,} {kind}" for kind, count in worse.items()]
    found += exceeded(cluster, start, request.limits)
    return [f"The start is not used, since it is worse than now: {', '.join(found)}."] * bool(found)


def _outcome_of(chosen: Method, strategy: Strategy, request: Request) -> Outcome:
    """Return what a strategy answers where replicas that go, or stay, are chosen before."""
    asked = with_what_stays(request)
    if "partition_moves" in chosen.limits:
        asked = with_last_in_sync(without_surplus(asked))
    outcome = strategy(with_group_limits(in_ordinary_units(chosen, asked)))
    while chosen.never_worse and (kept := with_kept_lists(asked, outcome)) is not asked:
        asked = kept
        outcome = strategy(with_group_limits(in_ordinary_units(chosen, asked)))
    if asked is request:
        return outcome
    outcome = _with_warnings(outcome, kept_lists_messages(request.cluster, asked.cluster))
    return _unproven(replace(outcome, fewest=0))


def _unproven(outcome: Outcome) -> Outcome:
    """Return an outcome of which nothing is proven."""
    stop = outcome.stop_reason
    return replace(outcome, message="", stop_reason="exhausted" if stop == "optimum" else stop)


def answered(
    chosen: Method, request: Request, outcome: Outcome, timings: Mapping[str, float]
) -> MethodRun:
    """Return the run of an answer, with warnings of what had no effect or found no time."""
    cluster = request.cluster
    warnings = [
        f"{one}." for one in (unavailable_message(cluster), *pinned_messages(cluster)) if one
    ]
    asks = getattr(request.goals, "leaders", None) is not None or leads_in_groups(request.goals)
    if asks and not has_leaders(cluster):
        warnings.append(NO_LEADERS)
    outcome = _with_warnings(outcome, [*warnings, *_about_time(request)])
    run = MethodRun(request, outcome, _placement_of(cluster, outcome), timings)
    if chosen.never_worse and os.environ.get(ASSERTIONS):
        worse = regressions(cluster, run.placement, run.audit).counts
        assert not worse, f"worse than before: {worse}"
        beyond = exceeded(cluster, run.placement, request.limits)
        assert not beyond, f"beyond the budgets: {beyond}"
        behind = np.flatnonzero(led_from_behind(cluster, run.placement))
        assert not len(behind), f"led by replicas that lag: partitions {behind}"
    return run


def _placement_of(cluster: Cluster, outcome: Outcome) -> Placement:
    """Return the placement answered; the cluster's own, with all its counts, if it is that."""
    # partitions that are unavailable, being reassigned or left alone keep nodes and leader; where
    # only the system elects leaders, a live leader leads on, where its replica moves to
    before, node, leader = cluster.placement, outcome.node, outcome.leader
    if node is before.node and leader is before.leader:
        return before
    held = unchanged(before)
    if held.any():
        node = np.where(held[before.owner], before.node, node)
        leader = np.where(held, before.leader, leader)
    if (elected := marked(before, Flag.ELECTED)).any():
        changed = np.where(elected[before.owner], node, before.node)
        order, leader = slots_kept(before, changed, leader)
        node = node[order]
        at = np.maximum(before.leader_replica, 0)
        lives = np.append(cluster.nodes.serves, False)[before.node[at]]
        leader = np.where(elected & lives & (node[at] >= 0), before.leader, leader)
    if np.array_equal(before.node, node) and np.array_equal(before.leader, leader):
        return before
    return before.replaced(node, leader)


def _is_time_for(chosen: Method, request: Request) -> bool:
    """Return whether there is time to begin, where a method takes some to read the cluster."""
    takes = chosen.begins * len(request.start.node)
    return takes == 0.0 or request.watch.seconds_left > takes


def _not_begun(request: Request) -> Outcome:
    """Leave everything where the search would have started."""
    start = request.start
    return Outcome(node=start.node, leader=start.leader, stop_reason="time", message=NO_TIME)


def _with_warnings(outcome: Outcome, more: Sequence[str]) -> Outcome:
    """Return the outcome with more warnings."""
    return replace(outcome, warnings=(*outcome.warnings, *more)) if more else outcome


def _about_time(request: Request) -> list[str]:
    """Return notes on the time limit: its excess, skipped work and uncounted compilation."""
    notes: list[str] = []
    watch = request.watch
    if watch.time_limit is None:
        return notes
    if "bounds" in vars(request) and request.proven is None and not request.has_time_to_prove:
        notes.append("There was no time to prove how many moves the goals take.")
    if watch.seconds > watch.time_limit * (1.0 + OVERTIME_SHARE) + OVERTIME:
        notes.append(f"It took {watch.seconds:.2f} s where time_limit is {watch.time_limit:g}.")
    if watch.excluded > max(COMPILING, watch.time_limit):
        notes.append(
            f"Compiling kernels took {watch.excluded:.1f} s that time_limit does not count; "
            "`evenkeel warmup` compiles them beforehand."
        )
    return notes


def _check_cluster(faults: FaultList, cluster: Cluster, start: Placement | None) -> None:
    """Raise at once what makes the other checks impossible; the cluster was validated when made."""
    require_cluster(cluster)
    if start is None:
        return
    if not isinstance(start, Placement):
        faults.add("start", type(start).__name__, NO_PLACEMENT)
    elif not np.array_equal(start.first, cluster.placement.first):
        message = "must have as many slots for each partition as cluster.placement"
        faults.add("start", type(start).__name__, message)
    elif (start.node >= len(cluster.nodes)).any():
        unknown = np.unique(start.node[start.node >= len(cluster.nodes)])[:LISTED_FAULTS].tolist()
        faults.add("start.node", unknown, f"unknown node; there are {len(cluster.nodes)}")


def _check_goals(faults: FaultList, chosen: Method, cluster: Cluster, goals: Goals | Cost) -> None:
    """Note goals that the cluster has no dimensions for, or that the method cannot pursue."""
    if not isinstance(goals, Goals | Cost):
        faults.add("goals", goals, "must be Goals or a Cost, such as evenkeel.Goals(level=0.05)")
    elif isinstance(goals, Cost):
        if not chosen.minimises:
            faults.add("goals", "Cost", f"{chosen.name} takes Goals; balance minimises a Cost")
        check_cost(faults, cluster, goals)
    else:
        check_goals(faults, cluster, goals)
        for name in ASKED_APART:
            value = getattr(goals, name)
            if name not in chosen.goals and value != getattr(Goals(), name):
                message = f"the method {chosen.name} cannot pursue this goal; balance can"
                faults.add(f"goals.{name}", value, message)


def _check_leaders(
    faults: FaultList, chosen: Method, cluster: Cluster, goals: Goals | Cost
) -> None:
    """Note goals and methods for leaders, where only the system elects them, or some have none."""
    if chosen.name == "leaders":
        check_all_led(faults, cluster, "method", chosen.name)
    if not marked(cluster.placement, Flag.ELECTED).any():
        return
    message = "cannot be kept: only the system elects leaders (primaries), no order moves one"
    for name in ("leaders", "group_leaders", "min_leaders") if isinstance(goals, Goals) else ():
        if (asked := getattr(goals, name)) not in (None, {}):
            faults.add(f"goals.{name}", asked, message)
    if chosen.name == "leaders":
        faults.add("method", chosen.name, message)


def _check_limits(
    faults: FaultList,
    chosen: Method,
    kept: Collection[str],
    cluster: Cluster,
    goals: Goals | Cost,
    limits: Limits,
) -> None:
    """Note limits that the cluster has no unit for, or that the method cannot keep."""
    if not isinstance(limits, Limits):
        faults.add("limits", limits, "must be Limits, such as evenkeel.Limits(moves=100)")
        return
    asked = {one.name: getattr(limits, one.name) for one in fields(limits)}
    asked = {name: value for name, value in asked.items() if value is not None and value != {}}
    if isinstance(goals, Cost) and asked:
        faults.add("limits", limits, "go with Goals; a Cost prices moves instead")
    else:
        check_limits(faults, cluster, limits)
    text = f"it keeps {', '.join(kept)}" if kept else "it keeps no limits"
    if len(kept) < len(chosen.limits):
        text += f" with these options, and {', '.join(chosen.limits)} with others"
    for name, value in asked.items():
        if name not in (*kept, "disk_moves"):
            faults.add(f"limits.{name}", value, f"{chosen.name} cannot keep this; {text}")


def _options(faults: FaultList, chosen: Method, options: Options | None) -> Options | None:
    """Return the options, the method's defaults if none are given; note those of another method."""
    kind = chosen.options_class()
    if options is None:
        return None if kind is None else kind()
    if kind is None:
        faults.add("options", options, f"{chosen.name} takes none")
    elif type(options) is not kind:
        faults.add("options", options, f"{chosen.name} takes evenkeel.options.{kind.__name__}")
    return options


def _check_running(
    faults: FaultList,
    chosen: Method,
    cluster: Cluster,
    start: Placement | None,
    watch: Watch,
    seed: int,
) -> None:
    """Note errors of the start, the time and work limits and the seed."""
    if start is not None and start is not cluster.placement and not chosen.starts:
        message = f"{chosen.name} begins where the cluster's replicas are"
        faults.add("start", "another placement", message)
    check_time_limit(faults, watch.time_limit)
    read_count(faults, "work_limit", watch.work_limit)
    if not is_whole(seed):
        faults.add("seed", seed, "must be an integer")
    elif not -SEEDS <= seed < SEEDS:
        faults.add("seed", seed, "must be at least -2**62, and below 2**62")
    if watch.callback is not None and not callable(watch.callback):
        faults.add("callback", watch.callback, "must be callable")


def with_group_limits(request: Request) -> Request:
    """Return a request in which a goal within groups is a soft rule of each group."""
    cluster, target = request.cluster, group_targets(request.cluster, request.goals)
    if target is None:
        return request
    rules, bound = [*cluster.rules], cluster.partitions.group_rule.copy()
    known, none = dict[tuple[int, int], int](), Rule()
    for g, most in enumerate(target.tolist()):
        own = none if bound[g] < 0 else rules[bound[g]]
        if NODE_TIER in own.spread or most in (0, FREE):
            continue  # what binds a node stays as it is; a group without partitions or goal is free
        if (key := (int(bound[g]), most)) not in known:
            known[key] = len(rules)
            rules.append(replace(own, spread={**own.spread, NODE_TIER: (most, "soft")}))
        bound[g] = known[key]
    partitions = replace(cluster.partitions, group_rule=read_only(bound))
    cluster = replace(
        cluster, rules=tuple(rules), partitions=partitions, placement=replace(cluster.placement)
    )
    return replace(request, cluster=cluster, proven=request.bounds)  # soft rules prove nothing


def in_ordinary_units(chosen: Method, request: Request) -> Request:
    """Return a request in units in which loads are of ordinary size; the same one if they are."""
    cluster = request.cluster
    if cluster.native is not None and not chosen.where.startswith("evenkeel.methods."):
        return request
    power = -powers(cluster)
    if not power.any():
        return request
    limits, goals = request.limits, request.goals
    if isinstance(goals, Cost):
        goals = _priced(goals, dict(zip(cluster.dimensions, power.tolist(), strict=True)))
    if limits.bytes is not None:
        limits = replace(
            limits, bytes=float(np.ldexp(limits.bytes, int(power[cluster.bytes_dimension])))
        )
    return replace(request, cluster=scaled(cluster, power), goals=goals, limits=limits, proven=None)


def _priced(cost: Cost, power: Mapping[str, int]) -> Cost:
    """Return the same cost of loads that are times a power of two, by the dimension's name."""
    return replace(
        cost,
        watermark={
            name: float(np.ldexp(cost.watermark_weight(name), -by)) for name, by in power.items()
        },
        proportion=[
            replace(
                one,
                ratio=float(np.ldexp(one.ratio, power[one.to] - power[one.of])),
                weight=float(np.ldexp(one.weight, -power[one.to])),
            )
            for one in cost.proportion
        ],
        tables=[
            NodeTable(
                one.dimension,
                at=np.ldexp(one.points, power[one.dimension]),
                slope=np.ldexp(one.prices, -power[one.dimension]),
                below=float(np.ldexp(one.below, -power[one.dimension])),
            )
            if isinstance(one, NodeTable)
            else one
            for one in cost.tables
        ],
    )
