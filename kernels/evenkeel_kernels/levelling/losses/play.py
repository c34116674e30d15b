"""Simulate losses of nodes: re-place their replicas, check and report the result, and undo it.

The initial cluster breaks no rule. The replicas on lost nodes have to move, and the answer is worth
having only if it is proven to be as good as any: everything placed, no rule broken, every node
within its target, and as many moves made as replicas were lost; or one more, where
`evenkeel_kernels.levelling.losses.room` proves that they are not enough. No placement makes do with
fewer then. Where budgets cannot carry all of it, the most endangered come first, and the others
wait where they are: that is an answer if every one of them waits for a budget, and for nothing
else. In any other case -1 is returned, and a search has to be made.

A loss costs O(D N) for each replica lost, vectorised, and O(N (D + M)) besides: nothing untouched
is looked at. Everything is restored, floats bit by bit, so that the report of a loss does not
depend on those simulated before.

A series of losses from the same cluster is simulated without Python, so that other threads have the
interpreter meanwhile. It returns figures of each loss, and no placements.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, no_alloc
from evenkeel_kernels.core.feasibility import affords_move
from evenkeel_kernels.core.node_scan import FAR, Scan
from evenkeel_kernels.core.problem import Problem, State, index, leads_now
from evenkeel_kernels.core.state import move, transfer_leader
from evenkeel_kernels.levelling.best_fit import best_fit
from evenkeel_kernels.levelling.leaders.moves import appoint
from evenkeel_kernels.levelling.losses.judge import find_endangered, is_sound, measure
from evenkeel_kernels.levelling.losses.records import (
    DANGERS,
    Asked,
    Demanded,
    Figures,
    Kept,
    LossReport,
    Stock,
)
from evenkeel_kernels.levelling.losses.room import make_room
from evenkeel_kernels.levelling.losses.urgency import (
    budgets_carry,
    largest_first,
    may_enter,
    most_endangered_first,
)

# attempts at placing all that was lost, and how many may have failed in the first one
ATTEMPTS, FEW = 3, 8

WHOLE = 1e-9  # what is this close to a whole number is taken for it before it is rounded

NEARLY = 1.0 + 1e-12  # what is whole but for rounding is whole


@no_alloc
def play_losses(
    problem: Problem,
    budgeted: Problem,
    state: State,
    scan: Scan,
    stock: Stock,
    demanded: Demanded,
    asked: Asked,
    kept: Kept,
    nodes: NDArray[np.int32],
    report: LossReport,
) -> int:
    """Lose ``nodes (n,)``, place what they held, tell what came of it, and take it back.

    ``budgeted`` is the ``problem``, whose budgets do not bind, with those that may. Returns how
    many moved or wait, or -1 if no answer was found that is proven the best. The watermarks of
    ``problem`` and the scales of ``scan`` are scratch.
    """
    partitions = problem.partitions
    count = lose(problem, state, scan, stock, nodes, report)
    find_endangered(partitions, demanded, report, count)
    set_targets(problem, scan, stock, demanded, asked, report)
    report.gave_way[0], report.waits[0] = 0, 0
    report.waits[1], report.waits[2] = 1, 1
    sound, binds = False, budgeted.budgets.binds
    if budgets_carry(budgeted, state, demanded, report, count):
        sound = place_all(
            problem, budgeted, state, scan, stock, demanded, kept, nodes, report, count
        )
        count += report.gave_way[0]
        if binds and not sound:
            take_back(problem, state, scan, stock, kept, nodes, report, count)
            count = lose(problem, state, scan, stock, nodes, report)
            report.gave_way[0] = 0
    if binds and not sound:
        sound = place_within_budgets(budgeted, state, scan, demanded, report, count)
        largest_first(partitions, stock, report, count)
    for i in range(count):
        k = report.replica[i]
        report.node[i] = state.node[k] if state.node[k] >= 0 else partitions.home[k]
        report.slot[i] = state.leader[partitions.owner[k]]
    if sound:
        measure(partitions, stock, demanded, report, count)
        sound = is_sound(
            partitions, problem.nodes.watermark, demanded, state.node, state.leader,
            stock.led > 0, report, count,
        )  # fmt: skip
    if sound and report.waits[0] > 0:
        reopen(scan, kept, report)
        report.waits[1] = int(fit_too(problem, state, scan, report, count))
    take_back(problem, state, scan, stock, kept, nodes, report, count)
    return count if sound else index(-1)


@device_function
def place_all(
    problem: Problem,
    budgeted: Problem,
    state: State,
    scan: Scan,
    stock: Stock,
    demanded: Demanded,
    kept: Kept,
    nodes: NDArray[np.int32],
    report: LossReport,
    count: int,
) -> bool:
    """Place all that was lost with ``nodes (n,)``; whether all of it found a place."""
    # what found none goes first in a second attempt; if that was one replica, another gives way in
    # the third
    gave_way, failed, at = index(0), index(0), index(0)
    for attempt in range(ATTEMPTS):
        if attempt > 0:
            take_back(problem, state, scan, stock, kept, nodes, report, count)
            lose(problem, state, scan, stock, nodes, report)
        if attempt == 1:
            at = index(report.node[0])
            bring_forward(problem.partitions.owner, report, failed, count)
        if attempt == 2:
            gave_way = make_room(budgeted, state, scan, stock, demanded, report, at, count)
            report.gave_way[0] = gave_way
            if gave_way == 0:
                return False
        placed, begin = gave_way, gave_way
        while begin < count:
            end = count
            if budgeted.budgets.tiers.shape[0] > 0:
                end = end_of_row(problem.partitions.owner, report, begin, count)
            placed += best_fit(
                budgeted, state, scan, report.replica, report.forced, report.led, 1.0, begin, end
            )  # fmt: skip
            for i in range(begin, end):
                close_entered(budgeted, state, scan, report, index(state.node[report.replica[i]]))
            begin = end
        if placed == count:
            return True
        if attempt == 0:
            failed = list_failures(state.node, report, count)
        if failed > (FEW if attempt == 0 else 1):
            break
    return False


@device_function
def end_of_row(owner: NDArray[np.int32], report: LossReport, begin: int, count: int) -> int:
    """Return where the replicas end that are lost of the same partition, by ``owner (K,)``."""
    end = index(begin + 1)
    while end < count and owner[report.replica[end]] == owner[report.replica[begin]]:
        end += 1
    return end


@device_function
def close_entered(budgeted: Problem, state: State, scan: Scan, report: LossReport, n: int) -> None:
    """Close the domains that ``n`` has just been entered in and that may be entered no more."""
    # A domain with a lost node is not closed: what stood there does not enter it. O(members).
    budgets, domains = budgeted.budgets, budgeted.domains
    for i in range(budgets.tiers.shape[0]):
        tier = index(budgets.tiers[i])
        where = index(domains.domain[tier, n]) if n >= 0 else index(-1)
        if where < 0 or state.came[where] < budgets.into[where]:
            continue
        has_lost = False
        for m in range(domains.member_first[where], domains.member_first[where + 1]):
            has_lost = has_lost or report.lost[domains.member[m]]
        for m in range(domains.member_first[where], domains.member_first[where + 1]):
            for mask in range(scan.closed.shape[0]):
                if not has_lost:
                    scan.closed[mask, domains.member[m]] = FAR


@device_function
def place_within_budgets(
    budgeted: Problem, state: State, scan: Scan, demanded: Demanded, report: LossReport, count: int
) -> bool:
    """Place what budgets allow, the most endangered first; whether all else waits for a budget."""
    # Who lives leads what is not led before anything is placed, and where its node is above target
    # then, another may. What finds no place lets others go first that are in as much danger, as
    # long as they use up what it would have needed.
    most_endangered_first(budgeted, state, demanded, report, count)
    lead_again(budgeted, state, scan, report, count)
    enter, passed_over, danger = True, False, index(0)
    for i in range(count):
        if enter and affords_move(budgeted, state, report.replica[i]):
            if passed_over and report.urgency[i] != danger:
                return False
            placed = place_one(budgeted, state, scan, report, i, 1.0)
            if not placed:
                placed = place_one(budgeted, state, scan, report, i, 0.5 * FAR)
                report.waits[2] *= int(not placed)
            if placed:
                close_entered(budgeted, state, scan, report, index(state.node[report.replica[i]]))
                continue
            passed_over, danger = True, report.urgency[i]
            enter = may_enter(budgeted, state, demanded, report.lost, 1)
        report.waits[0] += 1
    lead_again(budgeted, state, scan, report, count)
    if passed_over and budgeted.budgets.data_dimension >= 0:
        return False
    for i in range(count):
        k = report.replica[i]
        if passed_over and enter and state.node[k] < 0 and affords_move(budgeted, state, k):
            return False
    return True


@device_function
def lead_again(problem: Problem, state: State, scan: Scan, report: LossReport, count: int) -> None:
    """Appoint who leads what is not led, unless its leader is on a node below its target."""
    # only what lost a replica is looked at
    partitions = problem.partitions
    for i in range(count):
        p = index(partitions.owner[report.replica[i]])
        if report.led[p]:
            continue
        if state.leader[p] >= 0:
            n, above = state.node[partitions.first[p] + state.leader[p]], False
            for d in range(scan.scale.shape[0]):
                above = above or state.load[d, n] * scan.scale[d, n] > 1.0
            if not above:
                continue
            transfer_leader(problem, state, p, index(-1))
        appoint(problem, state, scan, p, index(-1))


@device_function
def fit_too(problem: Problem, state: State, scan: Scan, report: LossReport, count: int) -> bool:
    """Place what waits, as if there were no budgets; whether all of it found a place."""
    # then some placement within the targets is known, and the rules are not to blame
    waits, p = index(0), index(0)
    for i in range(count):
        k = report.replica[i]
        if state.node[k] < 0:
            p = index(problem.partitions.owner[k])
            report.every[p] = report.led[p] or state.leader[p] >= 0
            report.urgency[waits] = k
            waits += 1
    placed = best_fit(
        problem, state, scan, report.urgency, report.forced, report.every, 0.5 * FAR, index(0),
        waits,
    )  # fmt: skip
    for i in range(waits):
        report.every[problem.partitions.owner[report.urgency[i]]] = True
    return placed == waits


@device_function
def place_one(
    problem: Problem, state: State, scan: Scan, report: LossReport, i: int, ceiling: float
) -> bool:
    """Place the lost replica ``i`` where it fits best and no node is too full; whether it fits."""
    k = report.replica[i]
    p = index(problem.partitions.owner[k])
    report.every[p] = report.led[p] or state.leader[p] >= 0
    best_fit(problem, state, scan, report.replica, report.forced, report.every, ceiling, i, i + 1)
    report.every[p] = True
    return state.node[k] >= 0


@device_function
def lose(
    problem: Problem,
    state: State,
    scan: Scan,
    stock: Stock,
    nodes: NDArray[np.int32],
    report: LossReport,
) -> int:
    """Close ``nodes (n,)`` and take what they hold off them; how much that is."""
    # it is listed in ``report.replica``, largest partitions first
    partitions = problem.partitions
    count = index(0)
    for n in nodes:
        report.lost[n] = True
        problem.nodes.accepts[n] = False
        problem.nodes.leads[n] = False
        for mask in range(scan.closed.shape[0]):
            scan.closed[mask, n] = FAR
            problem.rules.allowed[mask, n] = False
        for i in range(stock.first[n], stock.first[n + 1]):
            k = stock.member[i]
            report.replica[count] = k
            count += 1
    largest_first(partitions, stock, report, count)
    for i in range(count):
        k = report.replica[i]
        p = index(partitions.owner[k])
        if leads_now(partitions.first, state.leader, p, k):
            transfer_leader(problem, state, p, index(-1))
            report.led[p] = False
            partitions.led_from[p] = -1
        move(problem, state, k, index(-1))
    return count


@device_function
def list_failures(node: NDArray[np.int32], report: LossReport, count: int) -> int:
    """Fill ``report.node`` with the places of what has no ``node (K,)``; how many of ``count``."""
    failed = index(0)
    for at in range(count):
        if node[report.replica[at]] < 0:
            report.node[failed] = at
            failed += 1
    return failed


@device_function
def bring_forward(owner: NDArray[np.int32], report: LossReport, failed: int, count: int) -> None:
    """Put what is at ``report.node[:failed]`` first, with its partition by ``owner (K,)``."""
    front, done = index(0), index(0)
    for i in range(failed):
        begin = index(report.node[i])
        if begin < done:
            continue
        p = owner[report.replica[begin]]
        while begin > done and owner[report.replica[begin - 1]] == p:
            begin -= 1
        done = begin
        while done < count and owner[report.replica[done]] == p:
            k = report.replica[done]
            for at in range(done, front, -1):
                report.replica[at] = report.replica[at - 1]
            report.replica[front] = k
            front += 1
            done += 1


@device_function
def set_targets(
    problem: Problem, scan: Scan, stock: Stock, demanded: Demanded, asked: Asked, report: LossReport
) -> None:
    """Set the watermarks, and the most leaders of nodes, by the nodes that are not lost."""
    # They are no higher than those of the goals: what a node's share was before is what it is at
    # least, and the mean where the room that is left is too much for rules to force anything. Where
    # there is no mean, since capacity has no end, nothing is within a target.
    lost, watermark = report.lost, problem.nodes.watermark
    nodes = lost.shape[0]
    for d in range(watermark.shape[0]):
        room, unit = 0.0, stock.unit[d]
        for n in range(nodes):
            if demanded.receives[n] and not lost[n]:
                room += demanded.capacity[d, n]
        level, whole, tolerance = 0.0, 0.0, asked.tolerance[d]
        if tolerance >= 0.0 and room > 0.0:
            level = stock.wanted[d] / room
        endless = tolerance >= 0.0 and stock.wanted[d] > 0.0 and not 0.0 < level < np.inf
        is_even = room > stock.roomy[d]
        if unit > 0.0 and is_even and 0.0 < level < np.inf:
            whole = whole_level(demanded.capacity[d], lost, stock.wanted[d] / unit, unit)
        for n in range(nodes):
            target = 0.0 if endless else np.inf
            if not endless and not lost[n] and (demanded.serves[n] or demanded.holds[n]):
                target = demanded.capacity[d, n]
                if level > 0.0 and demanded.serves[n]:
                    even, least = stock.even[d, n], stock.least[d, n]
                    if is_even:
                        even = max(even, level)
                    most = (1.0 + tolerance) * even * target
                    if stock.alike[d]:
                        most = rounded_down(most / unit) * unit
                    if unit > 0.0:
                        least = max(least, rounded_down(whole * (target / unit)) * unit)
                    target = min(target, max(most, least))
            watermark[d, n] = target
            scan.scale[d, n] = 1.0 / max(target, 1e-30)
    weight = 0.0
    for n in range(nodes):
        report.most_leaders[n] = np.inf
        if not lost[n]:
            weight += stock.lead_weight[n]
    if asked.leaders >= 0.0 and weight > 0.0:
        whole = 0.0
        if stock.leads_alike:
            whole = whole_level(stock.lead_weight, lost, stock.led, 1.0)
        for n in range(nodes):
            even, least = stock.lead_even[n], stock.lead_least[n]
            if lost[n]:
                even, least = 0.0, 0.0
            elif stock.leads_alike:
                even = max(even, stock.led / weight)
                least = max(least, rounded_down(whole * stock.lead_weight[n]))
            most = (1.0 + asked.leaders) * even * stock.lead_weight[n]
            report.most_leaders[n] = max(least, rounded_down(most))


@device_function
def rounded_down(value: float) -> float:
    """Return the whole number below a value, or that next to it."""
    return np.floor(value * NEARLY + WHOLE)


@device_function
def whole_level(
    room: NDArray[np.float64], lost: NDArray[np.bool_], count: float, unit: float
) -> float:
    """Return the least t for which the sum of floor(t x room / unit) reaches a count.

    Summed are the nodes that are not ``lost (N,)``, with their ``room (N,)``; found by halving.
    """
    count = np.ceil(count * (1.0 - 1e-12) - WHOLE)
    total, nodes = 0.0, index(0)
    for n in range(room.shape[0]):
        if not lost[n] and room[n] > 0.0:
            total += room[n] / unit
            nodes += 1
    low, high = count / total, (count + nodes) / total
    if whole_count(room, lost, low, unit) >= count:
        return low
    while high > low * NEARLY:
        middle = 0.5 * (low + high)
        if whole_count(room, lost, middle, unit) >= count:
            high = middle
        else:
            low = middle
    return high


@device_function
def whole_count(
    room: NDArray[np.float64], lost: NDArray[np.bool_], level: float, unit: float
) -> float:
    """Add up floor(level x room / unit) of the nodes that are not ``lost (N,)``."""
    count = 0.0
    for n in range(room.shape[0]):
        if not lost[n]:
            count += np.floor(level * (room[n] / unit) * NEARLY)
    return count


@device_function
def take_back(
    problem: Problem,
    state: State,
    scan: Scan,
    stock: Stock,
    kept: Kept,
    nodes: NDArray[np.int32],
    report: LossReport,
    count: int,
) -> None:
    """Put all back as it was before ``nodes (n,)`` were lost, sums included."""
    partitions = problem.partitions
    for i in range(count):
        k = report.replica[i]
        p = index(partitions.owner[k])
        if not report.led[p]:
            if state.leader[p] >= 0:
                transfer_leader(problem, state, p, index(-1))
            report.led[p] = True
        move(problem, state, k, index(partitions.home[k]))
    for i in range(count):
        p = index(partitions.owner[report.replica[i]])
        if state.leader[p] != stock.leader[p]:
            transfer_leader(problem, state, p, index(stock.leader[p]))
            partitions.led_from[p] = partitions.home[partitions.first[p] + stock.leader[p]]
        state.moved_of[p] = 0
    for i in range(state.spent.shape[0]):
        state.spent[i] = 0.0
    for where in range(state.came.shape[0]):
        state.came[where] = 0
        state.went[where] = 0
    for d in range(state.load.shape[0]):
        for n in range(state.load.shape[1]):
            state.load[d, n] = kept.load[d, n]
            state.held[d, n] = kept.held[d, n]
        for where in range(state.domain_load.shape[1]):
            state.domain_load[d, where] = kept.domain_load[d, where]
    for n in nodes:
        report.lost[n] = False
        problem.nodes.accepts[n] = kept.accepts[n]
        problem.nodes.leads[n] = kept.leads[n]
        for mask in range(scan.closed.shape[0]):
            problem.rules.allowed[mask, n] = kept.allowed[mask, n]
    reopen(scan, kept, report)


@device_function
def reopen(scan: Scan, kept: Kept, report: LossReport) -> None:
    """Open what was closed for its budget, or lost, and is lost no more."""
    for mask in range(scan.closed.shape[0]):
        for n in range(scan.closed.shape[1]):
            if not report.lost[n]:
                scan.closed[mask, n] = kept.closed[mask, n]


@no_alloc
def play_series(
    problem: Problem,
    state: State,
    scan: Scan,
    stock: Stock,
    demanded: Demanded,
    asked: Asked,
    kept: Kept,
    first: NDArray[np.int64],
    nodes: NDArray[np.int32],
    report: LossReport,
    figures: Figures,
) -> int:
    """Play S losses, each of ``nodes[first[i] : first[i + 1]]``; ``first (S + 1,)``."""
    # All else is as for ``play_losses``, without budgets. Returns how many were played: fewer than
    # S only if ``figures`` have no room for the partitions that the next one endangers, but always
    # one where there is room for all three lists of a loss of everything.
    used = index(0)
    for i in range(first.shape[0] - 1):
        count = play_losses(
            problem, problem, state, scan, stock, demanded, asked, kept,
            nodes[first[i] : first[i + 1]], report,
        )  # fmt: skip
        figures.moves[i] = count
        figures.gave_way[i] = report.gave_way[0]
        total = 0
        for danger in range(DANGERS):
            listed = report.endangered_count[danger] if count >= 0 else 0
            figures.endangered_count[i, danger] = listed
            total += listed
        if used + total > figures.endangered.shape[0]:
            return i
        if count < 0:
            continue
        for d in range(report.most.shape[0]):
            figures.most[i, d] = report.most[d]
            figures.fair[i, d] = report.fair[d]
            figures.moved[i, d] = report.moved[d]
        for danger in range(DANGERS):
            end = used + figures.endangered_count[i, danger]
            for j in range(used, end):
                figures.endangered[j] = report.endangered[danger, j - used]
            sort_between(figures.endangered, used, end)
            used = end
    return first.shape[0] - 1


@device_function
def sort_between(values: NDArray[np.int32], begin: int, end: int) -> None:
    """Sort ``values[begin:end]`` in place (Shell, 1959; gaps of Knuth)."""
    gap = 1
    while gap < (end - begin) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, end):
            one = values[i]
            at = i
            while at >= begin + gap and values[at - gap] > one:
                values[at] = values[at - gap]
                at -= gap
            values[at] = one
        gap //= 3
