"""The phases of ``balance`` that place and level: descent, then two replicas at once.

Where the fullest node cannot reach its target, it is left out, and the others are balanced.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.levelling.make_room import make_room
from evenkeel.methods.levelling.rest import (
    Height,
    at_rest,
    evenly_full,
    excess,
    height_of,
    highest_of,
)
from evenkeel.methods.levelling.rule_repair import move_pairs
from evenkeel.methods.levelling.run_state import SearchRun
from evenkeel_kernels.core.by_node import by_node, scattered_by_node
from evenkeel_kernels.core.node_scan import ROUNDING, new_scan
from evenkeel_kernels.core.problem import UNLIMITED
from evenkeel_kernels.levelling.descent import SLICES, descend, recalled, relieve
from evenkeel_kernels.levelling.idle_moves import take_back_idle
from evenkeel_kernels.levelling.leaders.levelling import level_leaders
from evenkeel_kernels.levelling.penalty import highest, new_targets

LET_BE = 3  # most rounds of excluding the worst nodes from the objective
# most heights that are tried where budgets do not reach the targets; how close they come
TRIALS, CLOSE = 10, 0.002

ANY_HEIGHT = 1e9  # a height above all others


def level_within_budgets(run: SearchRun) -> None:
    """Place and level; where budgets do not reach the targets, to the lowest height they reach."""
    # Spent on targets out of their reach, budgets lower all nodes a little, and the fullest hardly.
    # So each trial begins where the run stands now and asks for no more than that no node is fuller
    # than its height, though not for less than targets, nor beyond capacities that all nodes can
    # keep to.
    if not run.problem.budgets.binds or run.waiting.any():
        place_and_level(run)
        return
    stood, came = (run.state.node.copy(), run.state.leader.copy()), height_of(run)
    place_and_level(run, in_brief=True)
    if run.stop is None and run.ratio > 1.0 and not is_spent(run):
        place_and_level(run)
    best, ceiling = (height_of(run), run.state.node, run.state.leader), run.problem.nodes.capacity
    low, high = 1.0, min(came.fullest, best[0].fullest)
    if came.is_overrun and high > low:  # some node is beyond its capacity, perhaps for good
        run.restart_from(*stood)
        if _relieved_to(run, ANY_HEIGHT, ceiling).is_overrun:
            ceiling = np.full_like(ceiling, np.inf)
    for _ in range(TRIALS):
        if not run.look() or high - low <= CLOSE * high:
            break
        asked = 0.5 * (low + high)
        run.restart_from(*stood)
        reached = _relieved_to(run, asked, ceiling)
        if reached < best[0]:
            best = reached, run.state.node, run.state.leader
        if reached.fullest <= asked * (1.0 + ROUNDING):
            high = min(asked, reached.fullest)
        else:
            low, high = asked, max(asked, min(high, reached.fullest))
    run.restart_from(*best[1:])


def _relieved_to(run: SearchRun, height: float, ceiling: NDArray[np.float64]) -> Height:
    """Relieve nodes above a height, or ``ceiling (D, N)`` if less; how high they are after that."""
    nodes, state = run.problem.nodes, run.state
    most = np.minimum(evenly_full(run.problem) * height, ceiling)
    problem = run.problem._replace(nodes=nodes._replace(watermark=np.fmax(nodes.watermark, most)))
    targets = new_targets(problem, np.floor(run.most_leaders * height), 1.0)
    scan = new_scan(problem, np.zeros(len(state.load)))
    for _ in level_leaders(problem, state, targets, run.led, run.parameters.sweeps):
        if not run.look():
            break
    done = np.ones(2, np.int64)
    while done[0] > 0 and highest(state, targets) > 1.0 and run.look():
        members = scattered_by_node(
            problem.partitions, state.node, state.leader, state.load.shape[1]
        )
        done[:] = 0
        relieve(problem, state, targets, scan, *members, run.moves_left, done, 0, UNLIMITED)
    return height_of(run)


def place_and_level(run: SearchRun, *, in_brief: bool = False) -> None:
    """Take the pieces of the descent until it ends or must stop; the most level one stands."""
    if at_rest(run):
        return
    best: tuple[tuple[float, float], NDArray[np.int32], NDArray[np.int16]] | None = None
    height = level, _ = np.inf, np.inf
    before = run.work
    parameters, targets = run.parameters, run.targets
    if not run.has_limit and (in_brief or len(run.state.node) <= parameters.brief_replicas):
        parameters = replace(parameters, walk_per_replica=parameters.brief_walk)
    if in_brief:
        parameters = replace(parameters, few_replicas=0)
    pieces = descend(
        run.problem, run.state, run.led, run.forced, run.most_leaders, run.problem.budgets.moves,
        run.request.seed, parameters,
    )  # fmt: skip
    for piece in pieces:
        if piece.stage in SLICES:
            if not run.look():
                break
            continue
        level = piece.highest
        if best is None and room_made(run) > 0:
            level = highest(run.state, targets)
        height = level, excess(run.state, targets)
        if best is None or height < best[0]:
            best = (height, run.state.node.copy(), run.state.leader.copy())
        if not run.report(before + piece.steps, level) or run.has_walked_enough:
            break
        if piece.stage != "redistribute" and moves_spent(run):
            break
    pieces.close()  # what was halfway takes effect
    if best is not None and best[0] < height and level > 1.0:
        run.restart_from(best[1], best[2])


def room_made(run: SearchRun) -> int:
    """Make room for what fits nowhere; how many were placed."""
    return make_room(run.problem, run.state, run.forced, run.look)


def level_pairs(run: SearchRun) -> None:
    """Move two replicas of a partition at once, where single moves did not level all."""
    if run.stop is not None or run.ratio <= 1.0 or moves_spent(run) or run.has_walked_enough:
        return
    before, stood = height_of(run), (run.state.node.copy(), run.state.leader.copy())
    run.work += move_pairs(
        run.problem, run.state, run.targets, run.moves_left, run.look,
        run.parameters,
    )  # fmt: skip
    if run.problem.budgets.binds and not _is_lower(run, before):
        run.restart_from(*stood)


def _is_lower(run: SearchRun, before: Height) -> bool:
    """Return whether the fullest node, or the sum of excesses, improved enough for the moves."""
    now, worth = height_of(run), run.parameters.worth_moving
    if now[:2] > before[:2]:
        return False
    return (
        now.is_overrun < before.is_overrun
        or now.fullest - 1.0 < worth * (before.fullest - 1.0)
        or now.excess < worth * before.excess
    )


def level_the_others(run: SearchRun) -> None:
    """Balance the other nodes where the fullest cannot reach their targets."""
    if run.stop is not None or run.ratio <= 1.0:
        return
    asked, problem, most_leaders = run.targets, run.problem, run.most_leaders
    for _ in range(LET_BE):
        before, stood = excess(run.state, asked), (run.state.node.copy(), run.state.leader.copy())
        height = height_of(run)
        _let_be_the_highest(run)
        if run.stop is not None or run.ratio <= 1.0 or moves_spent(run):
            break
        place_and_level(run, in_brief=True)
        level_pairs(run)
        let_be = run.problem, run.most_leaders
        run.problem, run.most_leaders = problem, most_leaders
        fuller = problem.budgets.binds and height_of(run)[:2] > height[:2]
        if fuller or excess(run.state, asked) >= before:
            run.restart_from(*stood)
            break
        run.problem, run.most_leaders = let_be
    run.problem, run.most_leaders = problem, most_leaders


def recall_leaders(run: SearchRun) -> None:
    """Choose leaders anew where walks levelled all: they hand on leads that need not change."""
    if run.stop is not None or run.work < len(run.led) or run.ratio > 1.0:
        return
    choosing = recalled(run.problem, run.state, run.most_leaders, run.led, run.parameters)
    for _ in choosing:
        if not run.look():
            break
    choosing.close()  # what was halfway takes effect, or is taken back


def take_back_idle_moves(run: SearchRun) -> None:
    """Take back the moves that bring no node nearer to its targets, where these are missed."""
    if run.stop is not None or run.ratio <= 1.0:
        return
    problem, state, height = run.problem, run.state, run.ratio
    before, stood = height_of(run), (state.node.copy(), state.leader.copy())
    members = by_node(state.node, state.load.shape[1])
    take_back_idle(problem, state, run.targets, run.forced, *members, height)
    if problem.budgets.binds and height_of(run)[:2] > before[:2]:
        run.restart_from(*stood)


def _let_be_the_highest(run: SearchRun) -> None:
    """Set the load of the fullest nodes as their target; the others keep theirs."""
    state, nodes = run.state, run.problem.nodes
    high, led_high = highest_of(state, run.targets)
    nodes = nodes._replace(
        watermark=np.where(high, state.load, nodes.watermark),
        capacity=np.where(high, np.minimum(state.load, nodes.capacity), nodes.capacity),
    )
    run.problem = run.problem._replace(nodes=nodes)
    run.most_leaders = np.where(led_high, state.leaders, run.most_leaders)


def is_spent(run: SearchRun) -> bool:
    """Return whether some budget leaves no room for one more of what it counts."""
    budgets, state = run.problem.budgets, run.state
    if not budgets.binds:
        return False
    moves, data, changes = state.spent.tolist()
    domains = (state.came >= budgets.into) | (state.went >= budgets.out_of)
    return bool(
        moves >= budgets.moves
        or changes >= budgets.leader_changes
        or (state.moved_of >= budgets.of_partition).any()
        or domains.any()
        or data + _largest(run) > budgets.data
    )


def moves_spent(run: SearchRun) -> bool:
    """Return whether no replica may move any more."""
    budgets, state = run.problem.budgets, run.state
    return budgets.binds and bool(
        state.spent[0] >= budgets.moves
        or state.spent[1] >= budgets.data
        or budgets.of_partition == 0
        or _all_closed(run)
    )


def _all_closed(run: SearchRun) -> bool:
    """Return whether no node that accepts replicas may take one more."""
    budgets, state, nodes = run.problem.budgets, run.state, run.problem.nodes
    for tier in budgets.tiers.tolist():
        where = run.problem.domains.domain[tier][nodes.accepts]
        if (where >= 0).all() and (state.came[where] >= budgets.into[where]).all():
            return True
    return False


def _largest(run: SearchRun) -> float:
    """What the largest replica weighs in the dimension that moves."""
    dimension = run.problem.budgets.data_dimension
    if dimension < 0:
        return 0.0
    load = run.problem.partitions
    return max(
        float(table[:, dimension].max(initial=0.0))
        for table in (load.leader_load, load.voter_load, load.non_voter_load)
    )
