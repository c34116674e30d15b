"""Reassign leaders without moving replicas: every node within its target, few leaders changed.

As an integer program: minimise the number of partitions that another node leads than before, so
that what leading adds fits under the targets of all nodes in every dimension, and under the most
that each should lead. Where all leads weigh alike in one dimension that is a transport problem.

It is solved by the method of multipliers: what a node has above its target is charged at a price,
which rises with it, and by its square. Partition after partition goes to its cheapest choice, the
heaviest first, so that each sweep leaves whole leaders and no fraction of one; after each, prices
become what the last leader paid, and the squares weigh more.

References
----------
Hestenes, "Multiplier and gradient methods", 1969; Powell, "A method for nonlinear constraints in
minimization problems", 1969.
"""

import math
from collections.abc import Callable, Generator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, inline_only, no_alloc
from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.core.leadership import leads_late
from evenkeel_kernels.core.problem import Problem, State, index
from evenkeel_kernels.core.state import transfer_leader
from evenkeel_kernels.levelling.leaders.moves import may_lead
from evenkeel_kernels.levelling.penalty import Targets
from evenkeel_kernels.levelling.slices import PARTITIONS, slices

# what a mean lead's target ratio on the fullest node costs at first, in leader changes
STIFFNESS = 2.0
SOFT, STIFFER = 10, 1.25  # sweeps that find the prices, and by how much stiffness grows with each
# sweeps after these, which end what is nearly within targets, and the same for them
HARD, HARDER = 5, 3.0
# how often both are done, where prices lead nearly there; the same from who led before, when few
# others can end what is left; and soft sweeps from then on
ROUNDS, KEPT_ROUNDS, SOFT_AGAIN = 2, 3, 3
# trades of one node at the end of a round, if no more than one node in so many is overfull; and how
# much stiffer charges are then
TRADES, FEW_OVERFULL, STIFFEST = 4, 16, 1e3
# how far below targets is aimed: the lesser of parts of a mean lead's target ratio and of the slack
MARGIN, OF_SLACK = 0.25, 0.25
LEAST_GAIN = 1e-9
TENTH = 0.1  # of a leader change: that another leads until a lost leader's copy is made costs one
# of the target ratio of a mean lead: a resource may add nothing where there is a choice
LEAST_LEAD = 1e-100
LARGEST, SIZES = 1025, 2051  # the greatest exponent of a number, and the sizes of leads
BEYOND = 1e29  # 1 / the target of a node that may carry nothing


@by_reference
class Choices(NamedTuple):
    """Who could lead. M partitions that have a choice, A choices, E resources."""

    # a resource is a dimension in which leading weighs something else than following, or the number
    # of leaders

    partition: NDArray[np.int32]  # (M,)
    first: NDArray[np.int64]  # (M + 1,) its choices are first[m] : first[m + 1]
    slot: NDArray[np.int16]  # (A,)
    node: NDArray[np.int32]  # (A,)
    fee: NDArray[np.int8]  # (A,) what it costs, in tenths of a leader change
    taken: NDArray[np.int32]  # (M,) the choice that leads now
    kept: NDArray[np.int32]  # (M,) who led and lives, where it came from, -1 for none
    extra: NDArray[np.float64]  # (M, E) what leading adds
    content: NDArray[np.int32]  # (M,) the node that leads now, if it costs no leader change and
    # leading adds nothing below 0, so that only a price may make another one cheaper; else -1
    # (A,) the group and node of each choice, -1 where their leads do not count; or none of them
    cell: NDArray[np.int64]
    # led, least, most: (C,) leads of each of these, as they are, should be and may be
    led: NDArray[np.int64]
    least: NDArray[np.int64]
    most: NDArray[np.int64]


@by_reference
class Charges(NamedTuple):
    """What nodes are charged for."""

    scale: NDArray[np.float64]  # (N, E) 1 / target, 0 where there is none
    ratio: NDArray[np.float64]  # (N, E) load in units of the target
    above: NDArray[np.float64]  # (N, E) target ratio above what is aimed at, plus price / stiffness
    price: NDArray[np.float64]  # (N, E) leader changes for one more unit of load
    stiffness: NDArray[np.float64]  # (E,) leader changes for the square of one unit of target ratio
    pays: NDArray[np.bool_]  # (N,) whether any of its prices is above 0


@inline_only
def may_choose(problem: Problem, state: State, p: int, k: int) -> bool:
    """Whether replica ``k`` of ``p`` may lead, from no worse a choice of its rule than now."""
    if not may_lead(problem, state, p, k):
        return False
    now = index(problem.partitions.first[p] + state.leader[p])
    rank = problem.rules.lead_rank[problem.partitions.rule[p]]
    return k == now or rank[state.node[k]] <= rank[state.node[now]]


@inline_only
def extra_of(problem: Problem, p: int, resource: int) -> float:
    """What leading ``p`` adds to a resource: a dimension, or, -1, the number of leaders."""
    if resource < 0:
        return 1.0
    return problem.partitions.leader_load[p, resource] - problem.partitions.voter_load[p, resource]


@no_alloc
def count_choices(
    problem: Problem,
    state: State,
    resource: NDArray[np.int64],
    mean_scale: NDArray[np.float64],
    count: NDArray[np.int16],
    size: NDArray[np.int16],
    listed: NDArray[np.int64],
    begin: int,
    end: int,
) -> None:
    """Fill ``count (P,)`` with the choices that each partition has, and ``size (P,)``. O(K + P E).

    Of partitions ``begin`` to ``end``. 0 where none leads, where leading weighs nothing, and
    where there is one choice only. The size of a lead on a node of ``mean_scale (E,)`` is in half
    octaves, 0 the greatest; ``resource (E,)`` is as in `extra_of`. ``listed (SIZES, 2)`` counts
    the partitions of each size, and their choices.
    """
    first = problem.partitions.first
    for p in range(begin, end):
        count[p] = 0
        if state.leader[p] < 0 or not may_lead(problem, state, p, first[p] + state.leader[p]):
            continue
        share = 0.0
        for e in range(resource.shape[0]):
            share = max(share, abs(extra_of(problem, p, resource[e])) * mean_scale[e])
        if share == 0.0:
            continue
        many = index(0)
        for k in range(first[p], first[p + 1]):
            many += int(may_choose(problem, state, p, k))
        if many > 1:
            count[p] = many
            size[p] = LARGEST - max(-LARGEST, math.frexp(share * share)[1])
            listed[size[p], 0] += 1
            listed[size[p], 1] += many


@inline_only
def fee_of(choices: Choices, choice: int) -> float:
    """Return what a choice costs, in leader changes."""
    return TENTH * float(choices.fee[choice])


@inline_only
def charge(choices: Choices, charges: Charges, m: int, n: int, sign: float) -> float:
    """Change of what node ``n`` is charged if it led ``m`` (``sign`` 1.0), or no longer did."""
    change = 0.0
    for e in range(charges.stiffness.shape[0]):
        before = charges.above[n, e]
        after = before + sign * choices.extra[m, e] * charges.scale[n, e]
        square = max(after, 0.0) * max(after, 0.0) - max(before, 0.0) * max(before, 0.0)
        change += charges.stiffness[e] * square
    return change


@inline_only
def shift(choices: Choices, charges: Charges, m: int, n: int, sign: float) -> None:
    """Book that node ``n`` leads ``m`` (``sign`` 1.0), or that it no longer does (-1.0)."""
    pays = False
    for e in range(charges.stiffness.shape[0]):
        more = sign * choices.extra[m, e] * charges.scale[n, e]
        charges.ratio[n, e] += more
        charges.above[n, e] += more
        over = max(charges.above[n, e], 0.0)
        charges.price[n, e] = 2.0 * charges.stiffness[e] * over * charges.scale[n, e]
        pays = pays or charges.price[n, e] > 0.0
    charges.pays[n] = pays


@inline_only
def take_choice(choices: Choices, charges: Charges, m: int, choice: int) -> None:
    """Let ``m`` be led from ``choice``."""
    shift(choices, charges, m, index(choices.node[choices.taken[m]]), -1.0)
    if choices.cell.shape[0] > 0 and choices.cell[choice] >= 0:
        choices.led[choices.cell[choices.taken[m]]] -= 1
        choices.led[choices.cell[choice]] += 1
    choices.taken[m] = choice
    shift(choices, charges, m, index(choices.node[choice]), 1.0)
    note_content(choices, m)


@inline_only
def keeps_cells(choices: Choices, now: int, then: int) -> bool:
    """Whether the leads of groups on nodes stay within their numbers with another choice."""
    if choices.cell.shape[0] == 0:
        return True
    here, there = choices.cell[now], choices.cell[then]
    if here == there:
        return True
    return choices.led[here] > choices.least[here] and choices.led[there] < choices.most[there]


@inline_only
def is_exchange(choices: Choices, now: int, choice: int, own: int, to: int) -> bool:
    """Whether two partitions that take other choices exchange the cells of those they have."""
    cell = choices.cell
    return cell.shape[0] == 0 or (cell[own] == cell[choice] and cell[to] == cell[now])


@inline_only
def note_content(choices: Choices, m: int) -> None:
    """Note whether ``m`` is where it costs nothing, and leading weighs no less than following."""
    now = index(choices.taken[m])
    content = choices.fee[now] == 0
    for e in range(choices.extra.shape[1]):
        content = content and choices.extra[m, e] >= 0.0
    choices.content[m] = choices.node[now] if content else -1


@no_alloc
def list_choices(
    problem: Problem,
    state: State,
    was: NDArray[np.int16],
    resource: NDArray[np.int64],
    count: NDArray[np.int16],
    size: NDArray[np.int16],
    listed: NDArray[np.int64],
    choices: Choices,
    begin: int,
    end: int,
) -> None:
    """Fill in the choices of partitions ``begin`` to ``end``, whose slot ``was (P,)`` led. O(A).

    ``count (P,)``, ``size (P,)`` and ``resource (E,)`` are those of `count_choices`; ``listed
    (SIZES, 2)`` says where the next partition of each size goes, and its choices. Who leads now is
    taken. Where who led is lost, all are free that could lead at once.
    """
    partitions = problem.partitions
    for p in range(begin, end):
        if count[p] == 0:
            continue
        m, at = listed[size[p], 0], listed[size[p], 1]
        listed[size[p], 0] += 1
        listed[size[p], 1] += count[p]
        choices.partition[m] = p
        choices.first[m] = at
        choices.kept[m] = -1
        for e in range(resource.shape[0]):
            choices.extra[m, e] = extra_of(problem, p, resource[e])
        led = partitions.led_from[p] >= 0
        for slot in range(partitions.first[p + 1] - partitions.first[p]):
            k = index(partitions.first[p] + slot)
            if not may_choose(problem, state, p, k):
                continue
            choices.slot[at] = slot
            choices.node[at] = state.node[k]
            if slot == state.leader[p]:
                choices.taken[m] = at
            if led and slot == was[p] and state.node[k] == partitions.home[k]:
                choices.kept[m] = at
            choices.fee[at] = leads_late(problem, p, index(state.node[k]))
            at += 1
        for choice in range(choices.first[m], at if choices.kept[m] >= 0 else 0):
            choices.fee[choice] = 10 * int(choice != choices.kept[m])
        note_content(choices, m)


@no_alloc
def keep_choices(choices: Choices, charges: Charges) -> None:
    """Let those lead that led before and live, where they may. O(M E)."""
    for m in range(choices.partition.shape[0]):
        if choices.kept[m] >= 0:
            take_choice(choices, charges, index(m), index(choices.kept[m]))


@no_alloc
def sweep_choices(choices: Choices, charges: Charges, begin: int, end: int) -> int:
    """Let partitions ``begin`` to ``end`` be led from where it costs least, one after the other."""
    # Since what a node is charged is convex, leaving it saves at most its price, and joining
    # another costs at least that one's: most choices need no closer look, and none where a
    # partition is content and its node pays no price. Returns how many changed. O(1) for each of
    # those, O(E) for the others, and O(choices E) where leaving its node may pay.
    resources = charges.stiffness.shape[0]
    made = 0
    for m in range(begin, end):
        here = index(choices.content[m])
        content = here >= 0
        if content and not charges.pays[here]:
            continue  # all prices are 0, and so is what it saves
        now = index(choices.taken[m])
        if not content:
            here = index(choices.node[now])
        saves = 0.0
        for e in range(resources):
            saves += choices.extra[m, e] * charges.price[here, e]
        if content and saves <= 1.0 and (choices.kept[m] >= 0 or saves <= 0.0):
            continue  # any other choice costs a leader change, or nothing is saved
        paid = fee_of(choices, now)
        best, least = now, -LEAST_GAIN
        leaving = np.nan
        for choice in range(choices.first[m], choices.first[m + 1]):
            if choice == now:
                continue
            there = index(choices.node[choice])
            change = fee_of(choices, index(choice)) - paid
            costs = change - saves
            for e in range(resources):
                costs += choices.extra[m, e] * charges.price[there, e]
            if costs >= least or not keeps_cells(choices, now, index(choice)):
                continue
            if np.isnan(leaving):
                leaving = charge(choices, charges, m, here, -1.0)
            change += leaving + charge(choices, charges, m, there, 1.0)
            if change < least:
                best, least = index(choice), change
        if best != now:
            take_choice(choices, charges, m, best)
            made += 1
    return made


@no_alloc
def trade_choices(
    choices: Choices,
    charges: Charges,
    led_first: NDArray[np.int64],
    led: NDArray[np.int64],
    here: int,
) -> bool:
    """Let ``here`` hand on one partition, and who takes it another one, so that most is saved.

    ``led_first (N + 1,)`` and ``led`` list the partitions by the node that led them; those who went
    elsewhere since are left out. Whether any was. O(E) for each pair that the two nodes lead.
    """
    best, best_to, least = index(-1), index(-1), -LEAST_GAIN
    other, other_to = index(-1), index(-1)
    for i in range(led_first[here], led_first[here + 1]):
        m = led[i]
        now = choices.taken[m]
        if choices.node[now] != here:
            continue
        for choice in range(choices.first[m], choices.first[m + 1]):
            there = index(choices.node[choice])
            if there == here:
                continue
            change = fee_of(choices, index(choice)) - fee_of(choices, index(now))
            change += charge(choices, charges, m, here, -1.0)
            change += charge(choices, charges, m, there, 1.0)
            shift(choices, charges, m, here, -1.0)
            shift(choices, charges, m, there, 1.0)
            keeps = keeps_cells(choices, index(now), index(choice))
            if change < least and keeps:
                best, best_to, least, other = m, choice, change, index(-1)
            for j in range(led_first[there], led_first[there + 1]):
                q = led[j]
                if choices.node[choices.taken[q]] != there or q == m:
                    continue
                leaving = change + charge(choices, charges, q, there, -1.0)
                if leaving - 1.0 >= least:
                    continue
                for to in range(choices.first[q], choices.first[q + 1]):
                    if choices.node[to] == there:
                        continue
                    own = index(choices.taken[q])
                    if not is_exchange(choices, index(now), index(choice), own, index(to)):
                        if not keeps or not keeps_cells(choices, own, index(to)):
                            continue
                    both = leaving + (fee_of(choices, index(to)) - fee_of(choices, own))
                    both += charge(choices, charges, q, index(choices.node[to]), 1.0)
                    if both < least:
                        best, best_to, other, other_to, least = m, choice, q, to, both
            shift(choices, charges, m, there, -1.0)
            shift(choices, charges, m, here, 1.0)
    if best < 0:
        return False
    take_choice(choices, charges, best, best_to)
    if other >= 0:
        take_choice(choices, charges, other, other_to)
    return True


@no_alloc
def lead_as_chosen(problem: Problem, state: State, choices: Choices) -> int:
    """Hand leadership on to what was chosen; returns how many changed hands."""
    changed = 0
    for m in range(choices.partition.shape[0]):
        p, slot = index(choices.partition[m]), choices.slot[choices.taken[m]]
        if state.leader[p] != slot:
            transfer_leader(problem, state, p, index(slot))
            changed += 1
    return changed


# the cell of each choice; and the leads of each cell, as they are, should be and may be
Cells = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def transport_leaders(
    problem: Problem,
    state: State,
    targets: Targets,
    was: NDArray[np.int16],
    keep: bool = False,
    cells: Callable[[NDArray[np.int32], NDArray[np.int32]], Cells] | None = None,
) -> Generator[int]:
    """Choose leaders anew, slice by slice, so that few change and nodes are within their targets.

    ``was (P,)`` are the slots that led where replicas came from. It starts from who leads now, or,
    with ``keep``, from these. ``cells`` of partitions and the nodes that could lead them keep the
    leads of groups on nodes within numbers, within which they are to begin with. What was chosen
    takes effect at the end, or when the caller stops: nodes may be a little above their targets
    then, and above what they should lead. Yields the partitions looked at in each slice.

    Complexity: O(K) to begin with, and O(P E) for each of some 20 sweeps.
    """
    choices, charges, aim, mean = yield from _drawn_up(problem, state, targets, was, keep)
    count = len(choices.partition)
    if cells is not None:
        owner = np.repeat(choices.partition, np.diff(choices.first))
        cell, led, least, most = cells(owner, choices.node)
        choices = choices._replace(cell=cell, led=led, least=least, most=most)
    if count == 0:
        return
    near = mean.max() * len(charges.scale)  # a mean lead's target ratio on every node
    try:
        for turn in range(KEPT_ROUNDS if keep else ROUNDS):
            soft = SOFT if turn == 0 else SOFT_AGAIN
            for sweep in range(soft + HARD):
                if sweep == soft:
                    found, stiffness = np.maximum(charges.above, 0.0), charges.stiffness.copy()
                    if np.maximum(charges.ratio - 1.0, 0.0).sum() > near:
                        return
                for begin, end in slices(count, PARTITIONS):
                    sweep_choices(choices, charges, begin, end)
                    yield end - begin
                if (charges.ratio <= 1.0).all():
                    return
                growth = HARDER if sweep >= soft else STIFFER if turn == 0 else 1.0
                paid = np.maximum(charges.above, 0.0) / growth
                _set_charges(charges, charges.ratio - aim + paid, charges.stiffness * growth)
            yield from _trade(choices, charges)
            if (charges.ratio <= 1.0).all():
                return
            _set_charges(charges, charges.ratio - aim + found, stiffness)
    finally:
        lead_as_chosen(problem, state, choices)


def _trade(choices: Choices, charges: Charges) -> Generator[int]:
    """End what is above targets by trades, node by node; yields the partitions looked at."""
    overfull = np.flatnonzero((charges.ratio > 1.0).any(axis=1))
    if len(overfull) > len(charges.scale) // FEW_OVERFULL:
        return
    _set_charges(charges, charges.ratio - 1.0, charges.stiffness * STIFFEST)
    led_first, led = by_node(choices.node[choices.taken], len(charges.scale))
    for here in overfull.tolist():
        for _ in range(TRADES):
            if (charges.above[here] <= 0.0).all():
                break
            traded = trade_choices(choices, charges, led_first, led, here)
            yield int(led_first[here + 1] - led_first[here])
            if not traded:
                break


def _drawn_up(
    problem: Problem, state: State, targets: Targets, was: NDArray[np.int16], keep: bool
) -> Generator[int, None, tuple[Choices, Charges, NDArray[np.float64], NDArray[np.float64]]]:
    """List choices, the heaviest leads first; what nodes carry, the aim, and a mean lead (E,)."""
    resource, charges = _resources(problem, state, targets)
    scale, ratio = charges.scale, charges.ratio
    mean_scale = scale.sum(axis=0) / np.maximum((scale > 0.0).sum(axis=0), 1)
    count = np.empty(len(state.leader), np.int16)
    size, listed = np.empty(len(count), np.int16), np.zeros((SIZES, 2), np.int64)
    for begin, end in slices(len(count), PARTITIONS):
        count_choices(problem, state, resource, mean_scale, count, size, listed, begin, end)
        yield end - begin
    chosen, number = listed.sum(axis=0).tolist()
    none = np.zeros(0, np.int64)
    listed = np.cumsum(listed, axis=0) - listed
    choices = Choices(
        partition=np.empty(chosen, np.int32),
        first=np.full(chosen + 1, number),
        slot=np.empty(number, np.int16),
        node=np.empty(number, np.int32),
        fee=np.empty(number, np.int8),
        taken=np.empty(chosen, np.int32),
        kept=np.empty(chosen, np.int32),
        extra=np.empty((chosen, len(resource))),
        content=np.empty(chosen, np.int32),
        cell=none,
        led=none,
        least=none,
        most=none,
    )
    for begin, end in slices(len(count), PARTITIONS):
        list_choices(problem, state, was, resource, count, size, listed, choices, begin, end)
        yield end - begin
    if keep:
        keep_choices(choices, charges)
    # the norm of each column; `numpy.linalg.norm` makes two copies for it
    norm = np.sqrt(np.square(choices.extra).sum(axis=0))
    mean = mean_scale * norm / max(chosen, 1) ** 0.5
    room = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0).sum(axis=0)
    load = np.divide(ratio, scale, out=np.zeros_like(scale), where=scale > 0.0).sum(axis=0)
    slack = np.clip(1.0 - load / np.maximum(room, 1e-300), 0.0, 1.0)
    margin = np.minimum(MARGIN * mean, OF_SLACK * slack)
    aim = 1.0 - np.where(resource >= 0, margin, 0.0)
    above, at_least = ratio - aim, np.maximum(mean, LEAST_LEAD)
    worst = np.maximum(above.max(axis=0, initial=0.0), at_least)
    _set_charges(charges, above, STIFFNESS / np.maximum(at_least * worst, 1e-300))
    return choices, charges, aim, mean


def _resources(
    problem: Problem, state: State, targets: Targets
) -> tuple[NDArray[np.int64], Charges]:
    """Find what leading adds to, -1 for the number of leaders, and what nodes carry of it."""
    partitions = problem.partitions
    # column by column is much quicker than along the first axis
    pairs = zip(partitions.leader_load.T, partitions.voter_load.T, strict=True)
    weighs = np.array([(lead != vote).any() for lead, vote in pairs], bool)
    scale = np.where(targets.scale < BEYOND, targets.scale, 0.0)
    resource = np.flatnonzero(weighs & (scale > 0.0).any(axis=1))
    scale, load = scale[resource].T, state.load[resource].T
    leader_scale = np.where(targets.leader_scale < BEYOND, targets.leader_scale, 0.0)
    if leader_scale.any():
        resource = np.append(resource, -1)
        scale = np.column_stack([scale, leader_scale])
        load = np.column_stack([load, state.leaders])
    scale = np.ascontiguousarray(scale)
    ratio = np.ascontiguousarray(load * scale)
    nothing = np.zeros_like(ratio)
    return resource, Charges(
        scale, ratio, nothing, nothing.copy(), np.zeros(len(resource)), np.zeros(len(scale), bool)
    )


def _set_charges(
    charges: Charges, above: NDArray[np.float64], stiffness: NDArray[np.float64]
) -> None:
    """Charge for what is above what is aimed at, by its square."""
    charges.above[:], charges.stiffness[:] = above, stiffness
    charges.price[:] = 2.0 * stiffness * np.maximum(above, 0.0) * charges.scale
    charges.pays[:] = (charges.price > 0.0).any(axis=1)
