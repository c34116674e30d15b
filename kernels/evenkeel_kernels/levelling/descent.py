"""Descent: bring every node below its watermark with few moves.

`evenkeel_kernels.levelling.redistribution` makes the moves that a balanced cluster needs at least,
and spreads leaders. `evenkeel_kernels.levelling.threshold_walk` then reduces the remaining
overload, and `evenkeel_kernels.levelling.breakout` removes it: neither costs a move. `relieve`
makes one more move for each node that is still overfull. `send_home` and `restore_leaders` undo
superfluous moves and changes of leaders. `descend` does all of it in small pieces.
"""

from collections.abc import Generator, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, no_alloc
from evenkeel_kernels.core.by_node import by_node, scattered_by_node
from evenkeel_kernels.core.node_scan import Scan, find, new_scan
from evenkeel_kernels.core.problem import UNLIMITED, Problem, State, index, leads_now, load_of
from evenkeel_kernels.core.state import move, move_if_admitted
from evenkeel_kernels.levelling.breakout import LOOKED, break_out, gave_up, new_breakout
from evenkeel_kernels.levelling.crowding import limits_groups_on_nodes
from evenkeel_kernels.levelling.leaders.levelling import level_leaders, recall
from evenkeel_kernels.levelling.leaders.moves import restore_leaders
from evenkeel_kernels.levelling.leaders.rationing import ration_leaders
from evenkeel_kernels.levelling.parameters import DEFAULT, Parameters
from evenkeel_kernels.levelling.penalty import (
    Targets,
    count_overfull,
    highest,
    is_overfull,
    new_targets,
    passing_node,
    passing_replica,
    penalty,
)
from evenkeel_kernels.levelling.redistribution import moves_made, penalty_threshold, placed_anew
from evenkeel_kernels.levelling.slices import looks_in_slice
from evenkeel_kernels.levelling.threshold_walk import (
    accept_by_threshold,
    mean_square,
    moved_replicas,
    placed_replicas,
)


@by_reference
class Walk(NamedTuple):
    """How to walk (`evenkeel_kernels.levelling.threshold_walk`), and what to do after it."""

    length: int  # steps
    threshold: float  # rise of the penalty allowed at the start
    move_penalty: float  # price of leaving home; inf for a closed walk
    looks: int  # candidates to look at for breaking out afterwards
    relievable: int  # while no more nodes are overfull after that, relieve them,
    rounds: int  # at most so often


# parts of a piece: the caller can stop after them, but what stands then is not to be compared
SLICES = ("place", "leaders", "relieving")


@by_reference
class Progress(NamedTuple):
    """Where a descent stands."""

    stage: str  # of SLICES, or "redistribute", "walk", "break out", "relieve" or "level"
    highest: float  # greatest target ratio, inf if not known; level at 1 or less
    steps: int  # steps walked and candidates looked at so far


def descend(
    problem: Problem,
    state: State,
    was: NDArray[np.int16],
    forced: NDArray[np.bool_],
    most_leaders: NDArray[np.float64],
    most_moves: int,
    seed: int,
    parameters: Parameters = DEFAULT,
) -> Generator[Progress]:
    """Repair and level the cluster, piece by piece; the caller may stop after any of them.

    ``was (P,)`` are the slots that led before any change; ``forced (K,)``, ``most_leaders (N,)``
    and ``most_moves`` are those of `placed_anew`, the first piece, which comes after slices of it,
    "place"; ``seed`` starts the walks. Every piece leaves a state that breaks no rule that it did
    not break before. The pieces depend on nothing but the arguments: the same number of them gives
    the same bits.
    """
    # Yields after each piece. The last one is "level", unless the cluster cannot be brought there
    # by these means.
    targets = new_targets(problem, most_leaders, 1.0)
    if problem.budgets.leader_changes < UNLIMITED:
        for _ in ration_leaders(problem, state, targets, False):  # before moves spend the budget
            yield Progress("leaders", np.inf, 0)
    for _ in placed_anew(problem, state, forced, most_leaders, most_moves, parameters):
        yield Progress("place", np.inf, 0)
    targets = targets._replace(
        threshold=penalty_threshold(problem, state, parameters.sweep_threshold)
    )
    scan = new_scan(problem, np.zeros(state.load.shape[0]))
    yield Progress("redistribute", highest(state, targets), 0)
    for _ in level_leaders(problem, state, targets, was, parameters.sweeps):
        yield Progress("leaders", np.inf, 0)
    targets = targets._replace(
        threshold=penalty_threshold(problem, state, parameters.walk_threshold)
    )
    steps = 0
    patience = Patience(problem, state, targets, parameters)
    for progress in walked(problem, state, targets, scan, forced, most_moves, seed, parameters):
        yield progress
        steps = progress.steps
        if patience.is_over(progress):
            break
    if highest(state, targets) <= 1.0:
        send_home(problem, state, targets, forced, np.zeros_like(state.load))
        restore_leaders(problem, state, targets, was)
        yield Progress("level", highest(state, targets), steps)


def recalled(
    problem: Problem,
    state: State,
    most_leaders: NDArray[np.float64],
    was: NDArray[np.int16],
    parameters: Parameters = DEFAULT,
) -> Generator[int]:
    """Choose leaders anew where walks handed leads on, of which the slots ``was (P,)`` led.

    ``most_leaders (N,)`` is that of `placed_anew`. Yields the partitions looked at.
    """
    targets = new_targets(problem, most_leaders, 1.0)
    targets = targets._replace(
        threshold=penalty_threshold(problem, state, parameters.walk_threshold)
    )
    homes = by_node(problem.partitions.home, state.load.shape[1])
    looks = walk_length(problem, parameters)
    yield from recall(
        problem, state, targets, was, parameters.sweeps,
        lambda: broken_out(problem, state, targets, homes, looks, parameters.chunk),
    )  # fmt: skip


def walked(
    problem: Problem,
    state: State,
    targets: Targets,
    scan: Scan,
    forced: NDArray[np.bool_],
    most_moves: int,
    seed: int,
    parameters: Parameters,
) -> Iterator[Progress]:
    """Walk, break out and relieve, piece by piece, until level or at the end of the schedule.

    ``forced (K,)``, ``most_moves`` and ``seed`` are those of `descend`.
    """
    if highest(state, targets) <= 1.0:
        return
    n_nodes = state.load.shape[1]
    homes = by_node(problem.partitions.home, n_nodes)
    random = np.array([(2 * seed + 88172645463325252) % 2**64], np.uint64)
    size = mean_square(targets, problem.partitions.voter_load) ** 0.5
    steps = 0
    for walk in walks(problem, state, targets, parameters):
        if highest(state, targets) <= 1.0:
            break
        may_go = moved_replicas if np.isinf(walk.move_penalty) else placed_replicas
        replicas = may_go(problem, state)
        spare = np.array([most_moves - moves_made(problem, state, forced)], np.int64)
        step = 0
        while step < walk.length:
            end = min(step + parameters.chunk, walk.length)
            reached = accept_by_threshold(
                problem,
                state,
                targets,
                replicas,
                walk.threshold,
                step,
                end,
                walk.length,
                walk.move_penalty,
                spare,
                random,
            )
            steps += reached - step
            yield Progress("walk", highest(state, targets), steps)
            if reached < end:
                break
            step = end
        for turn in range(walk.rounds + 1):
            for looked in broken_out(problem, state, targets, homes, walk.looks, parameters.chunk):
                steps += looked
                yield Progress("break out", highest(state, targets), steps)
            if turn == walk.rounds or not 0 < count_overfull(state, targets) <= walk.relievable:
                break
            left = most_moves - moves_made(problem, state, forced)
            if highest(state, targets) - 1.0 < size:
                left = min(left, (count_overfull(state, targets) + 1) // 2)
            members = scattered_by_node(problem.partitions, state.node, state.leader, n_nodes)
            done, reached = np.zeros(2, np.int64), 0
            looks = looks_in_slice(problem)
            while reached < n_nodes:
                reached = relieve(
                    problem, state, targets, scan, *members, left, done, reached, looks
                )
                if reached < n_nodes:
                    yield Progress("relieving", highest(state, targets), steps)
            yield Progress("relieve", highest(state, targets), steps)
            if done[0] == 0:
                break


class Patience:
    """When to give up: once the penalty of the overfull nodes has not fallen for long.

    Where the level is about as near as a replica is large, what is left falls slowly, and walks go
    on. Few replicas are walked to the end: what is level there lies far apart.

    ``problem``: what is being levelled; ``state``: as it changes: looked at again each time;
    ``targets``: of the watermarks; ``parameters``: how long to wait.
    """

    def __init__(
        self, problem: Problem, state: State, targets: Targets, parameters: Parameters
    ) -> None:
        self._parameters = parameters
        replicas = state.node.shape[0]
        self._state = state
        self._against = targets._replace(threshold=1.0)
        self._near = 1.0 + state.load.shape[1] / max(1, replicas)
        self._length = (
            walk_length(problem, parameters) if replicas > parameters.few_replicas else 1 << 60
        )
        self._least = np.inf
        self._since = 0

    def is_over(self, progress: Progress) -> bool:
        """Whether the penalty has not fallen for longer than is worth waiting."""
        parameters = self._parameters
        now = penalty(self._state, self._against)
        if now < parameters.falls * self._least:
            self._least, self._since = now, progress.steps
        waited = progress.steps - self._since
        return progress.highest >= self._near and waited > parameters.patience * self._length


def walk_length(problem: Problem, parameters: Parameters) -> int:
    """Steps of a long walk."""
    replicas = problem.partitions.home.shape[0]
    return min(parameters.walk_steps, parameters.walk_per_replica * replicas)


def broken_out(
    problem: Problem,
    state: State,
    targets: Targets,
    homes: tuple[NDArray[np.int64], NDArray[np.int64]],
    most: int,
    chunk: int,
) -> Iterator[int]:
    """Break out, piece by piece, looking at about ``most`` candidates; yields how many each did.

    ``homes`` lists the replicas by the node they came from (`by_node`).
    """
    moved = moved_replicas(problem, state)
    breakout = new_breakout(state, moved)
    looked = 0
    while looked < most and highest(state, targets) > 1.0 and not gave_up(breakout):
        until = min(looked + chunk, most)
        break_out(problem, state, targets, moved, *homes, breakout, until)
        yield int(breakout.tally[LOOKED]) - looked
        looked = int(breakout.tally[LOOKED])


def walks(
    problem: Problem, state: State, targets: Targets, parameters: Parameters
) -> Iterator[Walk]:
    """Propose walks for as long as ``state`` is not level, each when the one before was taken."""
    # Closed ones first, a short one, which often will do, and longer ones; then open ones at a
    # falling move penalty; and, where replicas are few, some that are all but free to go anywhere:
    # few replicas are large beside the room that is left, so that what is level lies far apart.
    # Where they are not, and few nodes are overfull, relief comes before any walk: a move or two,
    # and all is level. So it does where groups have limits on nodes, among which walks seldom find
    # a step.
    partitions = problem.partitions
    n_nodes = state.load.shape[1]
    lead = mean_square(targets, partitions.leader_load - partitions.voter_load)
    data = mean_square(targets, partitions.voter_load)
    unit = parameters.threshold * (lead if lead > 0.0 else parameters.threshold * data)
    replicas = state.node.shape[0]
    length = walk_length(problem, parameters)
    least = 0.1 * unit
    first = min(length, parameters.first_steps)
    at_once = parameters.reliefs_at_once if replicas > parameters.few_replicas else 0
    if limits_groups_on_nodes(problem):
        for _ in range(2 * at_once):
            yield Walk(0, unit, np.inf, 0, n_nodes, 1)
    for _ in range(at_once):
        if count_overfull(state, targets) <= n_nodes // parameters.few_overfull:
            yield Walk(0, unit, np.inf, first // 64, n_nodes, 1)
    fruitless = 0
    for _ in range(parameters.reliefs):
        before = penalty(state, targets)
        yield Walk(first // 8, unit, np.inf, 0, 0, 0)
        if penalty(state, targets) <= parameters.stuck * before:
            yield Walk(0, unit, np.inf, first // 2, 0, 0)
            before = penalty(state, targets)
            yield Walk(first // 2, 3.0 * unit, np.inf, 2 * first, 0, 0)
            if penalty(state, targets) <= parameters.stuck * before:
                break
        before = penalty(state, targets)
        yield Walk(0, unit, np.inf, 0, n_nodes, 1)
        fruitless = 0 if penalty(state, targets) < before else fruitless + 1
        if replicas > parameters.few_replicas and fruitless == parameters.fruitless_reliefs:
            break
    schedule = [
        Walk(length // 2, unit, np.inf, length, 0, 0),
        Walk(length // 2, least, np.inf, 2 * length, n_nodes // 2, 1),
    ]
    if (
        replicas > parameters.many_replicas
    ):  # open walks take too long to come back to what relief reaches
        yield from schedule
        yield Walk(length // 4, least, np.inf, length, n_nodes, parameters.many_reliefs)
        if count_overfull(state, targets) <= n_nodes // 4:
            yield Walk(0, least, np.inf, 2 * length, n_nodes, 4)
        return
    schedule.append(Walk(length // 4, least, np.inf, 2 * length, n_nodes, 4))
    penalties = data * parameters.move_penalty_falls ** np.arange(parameters.open_walks)
    schedule += [
        Walk(length, 0.1 * move_penalty, move_penalty, length, 0, 0)
        for move_penalty in penalties.tolist()
    ]
    if replicas <= parameters.few_replicas:
        schedule += [Walk(length, 0.3 * data, 0.01 * data, 0, 0, 0)] * parameters.free_walks
    yield from schedule


@no_alloc
def relieve(
    problem: Problem,
    state: State,
    targets: Targets,
    scan: Scan,
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    most_moves: int,
    done: NDArray[np.int64],
    begin: int,
    looks: int,
) -> int:
    """Make, for every overfull node, the one move out of it that lowers the penalty most.

    ``first`` and ``member`` list the replicas of each node. At most ``most_moves`` moves of
    replicas that are at home are made. ``done (2,)`` counts the moves made, and those of replicas
    that were at home. It begins at node ``begin``, looks for a target at least ``looks`` times, and
    returns the node to go on with.

    Complexity: O(D N) for each replica on an overfull node, vectorised.
    """
    partitions = problem.partitions
    for here in range(begin, state.load.shape[1]):
        if looks <= 0:
            return here
        if not is_overfull(state, targets, here):
            continue
        least = -1e-12
        best = index(-1)
        target = index(-1)
        for i in range(first[here], first[here + 1]):
            k = member[i]
            if state.node[k] != here or not partitions.movable[k]:
                continue
            if state.node[k] == partitions.home[k] and done[1] >= most_moves:
                continue
            if passing_node(problem, state, targets, k, here, -1.0) >= least:
                continue
            looks -= 1
            there = find(problem, state, scan, k, 2.0)
            if there < 0:
                continue
            change = passing_replica(partitions, state, targets, k, here, there)
            if change < least:
                least = change
                best = k
                target = there
        if best >= 0:
            done[0] += 1
            done[1] += int(state.node[best] == partitions.home[best])
            move(problem, state, best, target)
    return state.load.shape[1]


@no_alloc
def send_home(
    problem: Problem,
    state: State,
    targets: Targets,
    forced: NDArray[np.bool_],
    floor: NDArray[np.float64],
) -> int:
    """Take back every move that the level does not need, the ``forced (K,)`` ones apart.

    No node gets below its ``floor (D, N)``. Returns how many. O(K D).
    """
    partitions = problem.partitions
    returned = 0
    for k in range(state.node.shape[0]):
        home = index(partitions.home[k])
        if home < 0 or home == state.node[k] or state.node[k] < 0 or forced[k]:
            continue
        room = True
        for d in range(state.load.shape[0]):
            size = load_of(partitions, state, k, d)
            if (state.load[d, home] + size) * targets.scale[d, home] > 1.0:
                room = False
            lowest = floor[d, state.node[k]]
            if lowest > 0.0 < size and state.load[d, state.node[k]] - size < lowest:
                room = False
        p = index(partitions.owner[k])
        if leads_now(partitions.first, state.leader, p, k):
            room = room and (state.leaders[home] + 1) * targets.leader_scale[home] <= 1.0
        if room and move_if_admitted(problem, state, k, home):
            returned += 1
    return returned
