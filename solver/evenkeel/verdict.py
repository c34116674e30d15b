"""The verdict on a solve: its status, its stop reason and its message."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import Audit
from evenkeel.measure.bounds import Bounds, goals_reached
from evenkeel.measure.bounds.level import floor_mean
from evenkeel.measure.bounds.needs import out_of_reach
from evenkeel.measure.compare import Comparison
from evenkeel.measure.disks import DiskReport
from evenkeel.measure.group_goals import group_excesses, lead_texts, replica_text
from evenkeel.measure.levelness import Levelness
from evenkeel.measure.spending import departed
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.registry import Method
from evenkeel.methods.shared.stopping import StopReason
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.intake.stranded import left_alone_message, pinned_on_down
from evenkeel.model.limits import Limits, node_counts
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import ROUNDING
from evenkeel.model.runtime.figures import fine_percent
from evenkeel.model.runtime.printable import counted, some_of

Status = Literal["optimal", "feasible", "missed", "partial", "infeasible"]

STATUS_MEANING: Mapping[str, str] = {
    "optimal": "no hard rule broken, what goals were given are met, and proven that none is better "
    "in what the message names",
    "feasible": "no hard rule broken, and the goals met",
    "missed": "no hard rule broken, but the goals are not met: see the message",
    "partial": "what fits is placed; the rest is listed with the rule that blocks it",
    "infeasible": "proven that no placement meets the hard rules",
}

# message of a result whose moves are proven to be the fewest
FEWEST_MOVES = "All goals are met, and no placement meets them with fewer moves."

# message of a result that may take more moves than are proven to be needed
GOALS_MET = "No hard rule is broken and all goals are met."

# why something is left undone, by the reason to stop
CUT_SHORT: Mapping[str, str] = {
    "time": "the time limit was reached",
    "work": "the work limit was reached",
    "interrupted": "it was interrupted",
}

# message of a method that proves only that it could do no better
CLOSEST = "Proven: no placement comes closer to the goals."

# why they are missed, where nothing is proven to be the reason
NOT_FOUND = "no move within the rules and capacities was found that comes closer"


class Found(NamedTuple):
    """Measures of a result."""

    audit: Audit
    level: Levelness
    comparison: Comparison
    bounds: Bounds


class Verdict(NamedTuple):
    """Status, message and stop reason of a result."""

    status: Status
    message: str
    stop_reason: StopReason


def verdict(
    method: Method, request: Request, outcome: Outcome, found: Found, *, goals_given: bool
) -> Verdict:
    """Judge a result by its request; default goals bind only methods that balance."""
    judged = "level" in method.goals or goals_given
    placement = request.cluster.placement.replaced(outcome.node, outcome.leader)
    met = isinstance(request.goals, Cost) or goals_reached(
        request.cluster, request.goals, placement, found.level, found.bounds
    )
    above = np.any(found.level.loads > found.bounds.target * (1.0 + ROUNDING), axis=1)
    used_up = budgets_used_up(
        request.cluster, request.limits, found.comparison, outcome.node, np.asarray(above)
    )
    stop = _stop_reason(outcome.stop_reason, met and found.audit.ok, used_up)
    text = outcome.message
    if hard := found.audit.hard:
        bounds: Bounds | None = found.bounds
        if hard == found.audit.counts["on_dead"] == pinned_on_down(request.cluster):
            text, bounds = "", None  # pins keep them there, whatever other nodes could take
        return still_broken(request.cluster, bounds, found.audit, text, stop, used_up)
    if alone := left_alone_message(request.cluster):
        return Verdict("feasible", f"{alone[0].upper()}{alone[1:]}.", stop)
    if stop == "worth":
        return Verdict("feasible", text, stop)
    if isinstance(request.goals, Cost):
        return Verdict("feasible", text or "No hard rule is broken.", stop)
    if stop == "optimum" and (met or not judged):
        return Verdict("optimal", text or "Proven: no placement is better.", stop)
    if not judged:
        return Verdict("feasible", text or "No hard rule is broken; no goals were asked for.", stop)
    if not met:
        return Verdict(
            "missed", _missed(method, request, stop, used_up, found, text, placement), stop
        )
    if found.comparison.moves <= max(found.bounds.moves_level, outcome.fewest):
        return Verdict("optimal", f"{text} {FEWEST_MOVES}".lstrip(), stop)
    return Verdict("feasible", text or GOALS_MET, stop)


def verdict_on_disks(nodes: Verdict, disks: DiskReport, limits: Limits) -> Verdict:
    """Return the verdict on a result after that on its nodes: what disks break, or miss."""
    whole = nodes.status in ("optimal", "feasible")
    stop, why = nodes.stop_reason, ""
    if limits.disk_moves is not None and disks.moves >= limits.disk_moves:
        stop, why = "limits", f"; limits.disk_moves={limits.disk_moves:,} used up"
    elif whole:
        stop = "exhausted"
    if disks.broken:
        status: Status = "partial" if whole or nodes.status == "missed" else nodes.status
        text = f"Inside nodes, {broken_disks(disks)}{why}."
        return Verdict(status, text + ("" if whole else f" {nodes.message}"), stop)
    if missed := missed_disks(disks):
        text = f"The goal of disks is missed: {missed}{why}."
        status = "missed" if whole else nodes.status
        return Verdict(status, text + ("" if whole else f" {nodes.message}"), stop)
    if nodes.status == "optimal" and disks.moves > disks.moves_at_least:
        text = f"{GOALS_MET} Between disks of a node, {disks.moves_at_least:,} moves are proven."
        return Verdict("feasible", text, nodes.stop_reason)
    return nodes


def broken_disks(disks: DiskReport) -> str:
    """Return how many disks and replicas break what disks ask."""
    broken = {
        "disks above their capacity": len(disks.over_capacity),
        "replicas on disks that failed or are to be emptied": len(disks.to_empty),
        "replicas without a disk that has room": len(disks.adrift),
    }
    return ", ".join(f"{what}: {count:,}" for what, count in broken.items() if count)


def missed_disks(disks: DiskReport) -> str:
    """Return how many disks are above their target; empty where none is, or none is asked."""
    if disks.goal is None or not len(disks.over_target):
        return ""
    count = counted(len(disks.over_target), "disk")
    return f"{count} above the share of the node by more than {100 * disks.goal:.4g}%"


def still_broken(
    cluster: Cluster,
    bounds: Bounds | None,
    audit: Audit,
    text: str,
    stop: StopReason,
    used_up: list[str],
) -> Verdict:
    """Judge a result that breaks hard rules; without bounds, some placement breaks none."""
    broken = ", ".join(f"{n:,} {kind.replace('_', ' ')}" for kind, n in audit.counts.items() if n)
    done = f"Cut short, since {CUT_SHORT[stop]}" if stop in CUT_SHORT else "What fits is placed"
    text = text or f"{done}; still broken: {broken}."
    if used_up and stop == "limits":
        text = f"{text} Used up: {' and '.join(used_up)}."
    too_much = "" if bounds is None else _too_much(cluster, bounds)
    return Verdict("infeasible" if too_much else "partial", f"{too_much}{text}", stop)


def _too_much(cluster: Cluster, bounds: Bounds) -> str:
    """Return a message on the dimension whose total load is proven not to fit; "" if none."""
    d = int(np.argmax(bounds.level)) if len(bounds.level) else 0
    if not len(bounds.level) or bounds.level[d] <= 1.0 + ROUNDING:
        return ""
    if np.isinf(bounds.level[d]):
        takes = cluster.nodes.serves & cluster.nodes.accepts
        why = f"no node takes replicas with any {cluster.dimensions[d]}"
        if (cluster.nodes.capacity[takes, d] > 0.0).any():
            term = bounds.level_term[d]
            why = f"the nodes that take replicas are in too few places, by {term}"
            if term == "largest replica":
                why = "no node that takes replicas may hold some of them"
        return f"Proven: no placement meets the hard rules, since {why}. "
    return (
        f"Proven: no placement meets the hard rules, since some node would carry at least "
        f"{fine_percent(bounds.level[d])} of its capacity in {cluster.dimensions[d]}, by "
        f"{bounds.level_term[d]}. "
    )


def _stop_reason(reason: StopReason, done: bool, used_up: list[str]) -> StopReason:
    """Correct the reason of a method: a missed goal is none, but a budget may be."""
    if done or reason not in ("tolerance", "exhausted"):
        return reason
    return "limits" if used_up else "exhausted"


def budgets_used_up(
    cluster: Cluster,
    limits: Limits,
    compared: Comparison,
    node: NDArray[np.int32] | None = None,
    above: NDArray[np.bool_] | None = None,
) -> list[str]:
    """Name the limits that leave no room for another move, or for another leader elsewhere."""
    size = 0.0
    # where replicas wait, ``node (K,)`` being none that serves, one of them moves next, else the
    # largest on nodes ``above (N,)`` their targets
    if limits.bytes is not None and cluster.bytes_dimension >= 0:
        owner, sizes = cluster.placement.owner, cluster.partitions.load.voter
        size = _next_size(cluster, sizes[owner, cluster.bytes_dimension], node, above)
    spent = {
        "moves": compared.moves + 1,
        "bytes": compared.bytes_moved + size,
        "leader_changes": compared.leader_changes + 1,
    }
    if limits.partition_moves is not None:
        owner = cluster.placement.owner[compared.joined]
        spent["partition_moves"] = int(np.bincount(owner, minlength=1).max()) + 1
    used_up = [
        f"limits.{name}={limit:,.0f}"
        for name, next_one in spent.items()
        if (limit := getattr(limits, name)) is not None and next_one > limit
    ]
    by_node = {"node_in": compared.node_in, "node_out": departed(cluster, compared)}
    for name, passed in by_node.items():
        if (limit := getattr(limits, name)) is None:
            continue
        full = np.flatnonzero(passed >= node_counts(cluster, limit))
        if len(full):
            of = some_of(full.tolist(), lambda n: str(cluster.nodes.names[n]), 3)
            used_up.append(
                f"limits.{name}={limit:,}" if isinstance(limit, int)
                else f"limits.{name} of {of}"
            )  # fmt: skip
    return used_up


def _next_size(
    cluster: Cluster,
    sizes: NDArray[np.float64],
    node: NDArray[np.int32] | None,
    above: NDArray[np.bool_] | None,
) -> float:
    """Return the bytes of the next move, of replicas of ``sizes (K,)``; inf where none has any."""
    if node is not None:
        waits = ~np.append(cluster.nodes.serves, False)[node]
        moves = np.append(above, False)[node] if above is not None and not waits.any() else waits
        if moves.any() and not waits.any():
            return float(sizes[moves].max())
        sizes = sizes[moves] if moves.any() else sizes
    return float(sizes[sizes > 0.0].min(initial=np.inf))


def _missed(
    method: Method,
    request: Request,
    stop: StopReason,
    used_up: list[str],
    found: Found,
    text: str,
    placement: Placement,
) -> str:
    """Return by how much goals are missed, above what they are counted, and why."""
    missed = [*excesses(request.cluster, request.goals, found.bounds, found.level)]
    missed += group_excesses(request.cluster, request.goals, placement)
    far = "; ".join(missed)
    if stop == "optimum":  # the text states the proof
        return f"{text or CLOSEST} The goals are missed: {far}."
    needed = found.bounds.moves_level
    if used_up and stop == "limits":
        why = f"{' and '.join(used_up)} used up{_but_for(request.limits, found, used_up)}"
        if needed > found.comparison.moves:
            why += f", and the goals take at least {needed:,} moves by {found.bounds.moves_term}"
    elif stop in CUT_SHORT:
        why = CUT_SHORT[stop]
    elif "level" not in method.goals:
        why = f"{method.name} does not work towards goals"
    else:
        why = out_of_reach(request.cluster, found.level, found.bounds.target) or NOT_FOUND
    return f"{text} " * bool(text) + f"The goals are missed: {far}; {why}."


def _but_for(limits: Limits, found: Found, used_up: list[str]) -> str:
    """Return the rest of the budget of bytes, if it alone is too small for the next replica."""
    left = 0.0 if limits.bytes is None else limits.bytes - found.comparison.bytes_moved
    if left <= 0.0 or len(used_up) > 1 or not used_up[0].startswith("limits.bytes"):
        return ""
    return f" but for {left:,.0f} bytes, fewer than the largest replica of a node above its target"


def excesses(
    cluster: Cluster, goals: Goals | Cost, bounds: Bounds, level: Levelness
) -> Iterator[str]:
    """Yield how far the worst node is above its target or below its floor, and of the leaders."""
    over = level.loads / np.maximum(bounds.target, 1e-300)
    for d, name in enumerate(cluster.dimensions):
        worst = int(np.argmax(over[:, d])) if len(over) else 0
        if not len(over) or over[worst, d] <= 1.0 + ROUNDING:
            continue
        tolerance = getattr(goals, "tolerance", lambda _: None)(name)
        asked = "its capacity"
        if tolerance is not None and bounds.even[worst, d] > 0.0:
            asked = f"its target, {above_what(cluster, bounds, worst, d, tolerance)}"
        by = f"{over[worst, d] - 1.0:.2%} above {asked}"
        if bounds.target[worst, d] <= 0.0:
            by = f"above {asked}, which leaves room for none"
        if others := int(np.count_nonzero(over[:, d] > 1.0 + ROUNDING)) - 1:
            by += f", and {counted(others, 'other node')} above theirs"
        yield f"{name} of {cluster.nodes.names[worst]} is {by}"
    has_floor = bounds.floor > 0.0
    short = np.where(has_floor, 1.0 - level.loads / np.where(has_floor, bounds.floor, 1.0), 0.0)
    for d, name in enumerate(cluster.dimensions):
        worst = int(np.argmax(short[:, d])) if len(short) else 0
        if len(short) and short[worst, d] > ROUNDING:
            yield f"{name} of {cluster.nodes.names[worst]} is {short[worst, d]:.2%} below its floor"
    extra = level.leaders - bounds.leader_target
    if len(extra) and extra.max() > 0.0:
        n = int(np.argmax(extra))
        yield (
            f"{cluster.nodes.names[n]} leads {int(level.leaders[n]):,} partitions where "
            f"{bounds.leader_target[n]:,.0f} are within the goal"
        )


def target_texts(cluster: Cluster, goals: Goals | Cost, bounds: Bounds) -> Iterator[str]:
    """Yield for each tolerance its limit and the base of its calculation."""
    if isinstance(goals, Cost):
        return
    for d, name in enumerate(cluster.dimensions):
        tolerance = goals.tolerance(name)
        if tolerance is not None and (text := level_text(cluster, bounds, d, tolerance)):
            yield f"{name} at most {text}"
    asked = [goals.floor_tolerance(name) for name in cluster.dimensions]
    if any(tolerance is not None for tolerance in asked):
        yield from _floor_texts(cluster, bounds, asked)
    yield from replica_text(cluster, goals)
    yield from lead_texts(cluster, goals)
    if goals.leaders is not None and bounds.leaders:
        most = bounds.leader_target.max()
        more = f"its share plus {goals.leaders:.2%}, in whole leaders"
        yield f"leaders at most {most:,.0f} on a node: {more}"


def _floor_texts(cluster: Cluster, bounds: Bounds, asked: Sequence[float | None]) -> Iterator[str]:
    """Yield the same for tolerances below the mean, by dimension."""
    nodes, load = cluster.nodes, cluster.partitions.load
    for d, (name, of) in enumerate(
        zip(cluster.dimensions, floor_mean(cluster, bounds.fair).tolist(), strict=True)
    ):
        tolerance = asked[d]
        if tolerance is None or not 0.0 < (1.0 - tolerance) * of < np.inf:
            continue
        room = np.where(nodes.may_receive, nodes.capacity[:, d], 0.0)
        on = np.flatnonzero((room > 0.0) & (room < np.inf))
        part = (1.0 - tolerance) * of
        least, below = part * room[on], f"the mean of {fine_percent(of)} less {tolerance:.2%}"
        if load.alike[d]:
            below += ", rounded down to whole replicas"
            least = np.floor(least / load.unit[d] * (1.0 + ROUNDING)) * load.unit[d]
        lower = bounds.floor[on, d] < least * (1.0 - ROUNDING)
        share = f"{fine_percent(part)} of capacity"
        if lower.any():
            left = (bounds.floor[on, d] / room[on])[lower].min()
            share += f", {fine_percent(left)} where rules leave less,"
        yield f"{name} at least {share} on nodes that take replicas: {below}"


def level_text(cluster: Cluster, bounds: Bounds, dimension: int, tolerance: float) -> str:
    """Return the limit of a tolerance on the fullest node allowed; "" without a goal."""
    room = cluster.nodes.capacity[:, dimension]
    on = np.flatnonzero(
        cluster.nodes.serves
        & (bounds.even[:, dimension] > 0.0)
        & (bounds.even[:, dimension] < np.inf)
        & (room > 0.0)
        & (room < np.inf)
    )
    if not len(on):
        return ""
    full = bounds.target[on, dimension] / room[on]
    most, base = float(full.max()), bounds.even[on, dimension]
    above = above_what(cluster, bounds, int(on[full.argmax()]), dimension, tolerance)
    others = base < base.max() * (1.0 - ROUNDING)
    limit, lower = fine_percent(most), fine_percent(full[others].max(initial=0.0))
    less = (
        f", and at most {lower} where rules force less" if others.any() and lower != limit else ""
    )
    return f"{limit} of capacity: {above}{less}"


def above_what(
    cluster: Cluster, bounds: Bounds, node: int, dimension: int, tolerance: float
) -> str:
    """Name what the target of a node is counted from, and how: the mean, or what rules force."""
    target, base = float(bounds.target[node, dimension]), float(bounds.even[node, dimension])
    above = f"the mean of {fine_percent(base)}"
    fullest, level = float(bounds.even[:, dimension].max()), float(bounds.level[dimension])
    if base < min(bounds.fair[dimension], fullest) * (1.0 - ROUNDING):
        above = f"its share of {fine_percent(base)} under the rules"
    elif base > bounds.fair[dimension] * (1.0 + ROUNDING):
        above = f"the proven floor of {fine_percent(base)}"
        limits = (limit for rule in cluster.rules for limit in rule.limits())
        if base > level * (1.0 + ROUNDING) and not all(limit.hard for limit in limits):
            above = f"the {fine_percent(base)} that hard and soft rules force"  # no proof
        elif abs(base - level) <= ROUNDING * level:
            above += f" ({bounds.level_term[dimension]})"
    load, asked = cluster.partitions.load, (1.0 + tolerance) * base
    if target > asked * cluster.nodes.capacity[node, dimension] * (1.0 + ROUNDING):
        if load.alike[dimension] and target > bounds.least[node, dimension] * (1.0 + ROUNDING):
            names = _contending(cluster, bounds)
            return f"{above}, raised since {names} cannot all be within a level of {tolerance:.2%}"
        whole = "replicas" if load.alike[dimension] else f"multiples of {load.unit[dimension]:.4g}"
        return f"{above}, rounded up to whole {whole}"
    down = ", rounded down to whole replicas" * bool(load.alike[dimension])
    return f"{above} plus {tolerance:.2%}{down}"


def _contending(cluster: Cluster, bounds: Bounds) -> str:
    """Name the dimensions in which replicas are alike and that have targets."""
    room = np.where(cluster.nodes.serves[:, None], cluster.nodes.capacity, 0.0)
    bound = ((bounds.target < room) & (bounds.even > 0.0)).any(0) & cluster.partitions.load.alike
    names = [cluster.dimensions[d] for d in np.flatnonzero(bound)]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
