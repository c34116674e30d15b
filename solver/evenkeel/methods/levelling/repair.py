"""Repairs: before all else where budgets bind, the most endangered first, and once more at the end.

The last look does what one step would where everything has come to stand: room comes about while
nodes are levelled, leaders change and others go, long after all that waited was tried.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import audit
from evenkeel.measure.regressions import regressions, spread_excess, spread_excess_before
from evenkeel.measure.wanted import has_leaders
from evenkeel.methods.levelling.make_room import make_room
from evenkeel.methods.levelling.prepare import drop, may_leave
from evenkeel.methods.levelling.run_state import Run
from evenkeel.methods.shared.replica_counts import (
    may_be_dropped,
    may_be_spared,
    serving,
    slots_to_fill,
)
from evenkeel.model.placement import Role
from evenkeel_kernels.core.node_scan import FAR, new_scan
from evenkeel_kernels.core.problem import Problem
from evenkeel_kernels.levelling.best_fit import best_fit, repairs_first
from evenkeel_kernels.levelling.leaders.moves import replace_leaders
from evenkeel_kernels.levelling.slices import replica_slices

ROUNDS = 4
"""How often it is looked, as long as anything is found: one step makes room for another."""


def repair(run: Run) -> None:
    """Place what waits, the most endangered partitions first, as far as the budgets go."""
    problem, state = run.problem, run.state
    scan = new_scan(problem, np.zeros(len(state.load)))
    replace_leaders(problem, state, scan)
    if not run.forced.any():
        return
    place(run, most_endangered_first(run, run.waiting), "repair")
    make_room(problem, state, run.waiting, run.most_moves, lambda: run.look("make room"))
    _place_beside_spread(run)
    replace_leaders(problem, state, scan)
    run.forced &= run.waiting


def place_what_fits(run: Run) -> bool:
    """Place what still waits, the most endangered first, wherever it fits; whether any did."""
    if run.stop is not None or not run.forced.any():
        return False
    return place(run, most_endangered_first(run, run.waiting), "repair") > 0


def place(run: Run, order: NDArray[np.int64], stage: str) -> int:
    """Place what waits, in that order, each where it fits best; how many were placed."""
    return _placed(run, order, stage, run.state.leader >= 0)


def _placed(run: Run, order: NDArray[np.int64], stage: str, led: NDArray[np.bool_]) -> int:
    """Place what waits, with room to lead where its partition is not ``led (P,)``."""
    problem, state, placed = run.problem, run.state, 0
    scan = new_scan(problem, np.zeros(len(state.load)))
    for begin, end in replica_slices(problem, order):
        placed += best_fit(problem, state, scan, order, run.forced, led, FAR, begin, end)
        if not run.look(stage):
            break
    return placed


def most_endangered_first(run: Run, waiting: NDArray[np.bool_]) -> NDArray[np.int64]:
    """List what is ``waiting (K,)``: the fewest live replicas against ``min_active`` first.

    Then by quorum. Each replica of a partition that is mended makes the next one less urgent. What
    still lives where it must leave comes last. What is equally urgent is in the order of
    `repairs_first`.
    """
    cluster, state = run.request.cluster, run.state
    placement, partitions = cluster.placement, cluster.partitions
    lives = np.append(cluster.nodes.serves, False).take(state.node)
    count = len(partitions)
    live = np.bincount(placement.owner[lives], minlength=count)
    votes = lives & (placement.role == Role.VOTER)
    voting = np.bincount(placement.owner[votes], minlength=count)
    order = repairs_first(run.problem, run.state, waiting, waiting)
    owner = placement.owner[order]
    lost = ~lives[order]
    rank = _earlier_lost(owner, lost)
    margin = np.where(lost, (live - partitions.min_active)[owner] + rank, 0)
    quorum = np.where(lost, (voting - partitions.voters // 2 - 1)[owner] + rank, 0)
    return order[np.lexsort((np.arange(len(order)), quorum, margin, ~lost))]


def _earlier_lost(owner: NDArray[np.int32], lost: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many lost replicas of the same partition come before each; partitions are in one run."""
    if len(owner) == 0:
        return np.zeros(0, np.int64)
    before: NDArray[np.int64] = np.cumsum(lost) - lost
    starts = np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]]))
    length = np.diff(np.append(starts, len(owner)))
    return before - np.repeat(before[starts], length)


def look_once_more(run: Run) -> None:
    """Place, lead and drop what one step would, until nothing more is found."""
    for _ in range(ROUNDS):
        if run.stop is not None:
            break
        found = [
            place_what_fits(run), _place_beside_terms(run), _place_beside_spread(run),
            _place_unled(run), _appoint(run), _drop(run),
        ]  # fmt: skip
        if not any(found):
            break


def _place_beside_terms(run: Run) -> bool:
    """Place what has no node where a slot is kept free for a node that a term wants.

    The term is broken in any case while the slot is empty.
    """
    nowhere = run.waiting & (run.state.node < 0)
    if not nowhere.any() or not (run.problem.rules.term[:, 0] > 0).any():
        return False
    asked = run.problem
    run.problem = _without_counted_terms(asked)
    placed = place(run, most_endangered_first(run, nowhere), "repair") > 0
    run.problem = asked
    return placed


def _place_beside_spread(run: Run) -> bool:
    """Place what waits where its partition breaks its hard spread limits no more than it came.

    While levelling, a domain is given no more than its limit, be another relieved of as much. As
    a last resort, slots that have no node are not kept free for terms, either.
    """
    if not run.waiting.any() or not (run.problem.rules.limit[:, 1] >= 0).any():
        return False
    came = spread_excess_before(run.request.cluster)
    stuck = (came.sum(axis=0) > 0)[run.request.cluster.placement.owner]
    asked = run.problem
    placed = _placed_beyond(run, came, run.waiting & stuck)
    run.problem = _without_counted_terms(asked)
    placed += _placed_beyond(run, came, run.waiting & stuck & (run.state.node < 0))
    run.problem = asked
    return placed > 0


def _placed_beyond(run: Run, came: NDArray[np.int64], waiting: NDArray[np.bool_]) -> int:
    """Place a replica of each partition that may break its limits by one more; how many were.

    One replica breaks a limit by no more than one, wherever it goes.
    """
    if not waiting.any():
        return 0
    cluster, asked = run.request.cluster, run.problem
    owner, placed = cluster.placement.owner, 0
    order = most_endangered_first(run, waiting)
    order = order[np.sort(np.unique(owner[order], return_index=True)[1])]
    node = run.state.node.copy()
    node[order] = -1
    without = cluster.placement.replaced(node, run.state.leader)
    spare = (came > spread_excess(cluster, audit(cluster, without)))[:, owner[order]]
    for tiers in np.unique(spare, axis=1).T:
        if tiers.any():
            run.problem = _without_spread(asked, np.flatnonzero(tiers))
            placed += place(run, order[np.all(spare == tiers[:, None], axis=0)], "repair")
    run.problem = asked
    return placed


def _place_unled(run: Run) -> bool:
    """Place what has no node with the room to lead, of partitions that nobody leads in any case."""
    nowhere = run.waiting & (run.state.node < 0)
    nowhere &= (run.state.leader < 0)[run.problem.partitions.owner]
    if not nowhere.any() or not has_leaders(run.request.cluster):
        return False
    every = np.ones(len(run.state.leader), bool)
    return _placed(run, most_endangered_first(run, nowhere), "repair", every) > 0


def _without_counted_terms(problem: Problem) -> Problem:
    """Return the problem with terms that ask no replica to be inside of them, all or none."""
    term = problem.rules.term.copy()
    term[:, 0] = np.minimum(term[:, 0], 0)
    return problem._replace(rules=problem.rules._replace(term=term))


def _without_spread(problem: Problem, tiers: NDArray[np.intp]) -> Problem:
    """Return the problem with any number of a partition's replicas in a domain of some tiers."""
    limit = problem.rules.limit.copy()
    limit[np.isin(limit[:, 0], tiers), 1] = -1
    return problem._replace(rules=problem.rules._replace(limit=limit))


def _appoint(run: Run) -> bool:
    """Let partitions be led that are not, or not where a leader may stand."""
    scan = new_scan(run.problem, np.zeros(len(run.state.load)))
    return replace_leaders(run.problem, run.state, scan) > 0


def _drop(run: Run) -> bool:
    """Drop followers beyond those wanted that were needed before, and are not any more."""
    cluster, state = run.request.cluster, run.state
    seat = serving(cluster, state.node)
    spare = may_be_dropped(cluster, seat, slots_to_fill(cluster, seat) & ~run.dropped)
    owner, first = cluster.placement.owner, run.problem.partitions.first
    spare = spare[first[owner[spare]] + state.leader[owner[spare]] != spare]
    spare = spare[may_leave(run.problem, state, spare)]
    spare = spare[may_be_spared(cluster, state.node, spare)]
    spare = spare[np.unique(owner[spare], return_index=True)[1]]  # one of each
    if len(spare) == 0:
        return False
    spare = spare[~_is_missed(run, spare)]
    drop(run.problem, state, spare, run.dropped)
    return bool(run.dropped[spare].any())


def _is_missed(run: Run, replicas: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a partition is worse than it came without each of some replicas."""
    cluster, node = run.request.cluster, run.state.node.copy()
    node[replicas] = -1
    without = cluster.placement.replaced(node, run.state.leader)
    worse = regressions(cluster, without, audit(cluster, without)).partitions
    return worse[cluster.placement.owner[replicas]]
