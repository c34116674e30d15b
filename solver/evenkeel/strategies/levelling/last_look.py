"""The last look: what one step would place, lead or drop where everything has come to stand.

Room comes about while nodes are levelled, leaders change and others go, long after all that waited
was tried.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import audit
from evenkeel.measure.regressions import regressions
from evenkeel.strategies.levelling.prepare import drop, may_leave
from evenkeel.strategies.levelling.repair import place, place_what_fits
from evenkeel.strategies.levelling.run_state import Run
from evenkeel.strategies.shared.replica_counts import (
    may_be_dropped,
    may_be_spared,
    serving,
    slots_to_fill,
)
from evenkeel_kernels.core.node_scan import new_scan
from evenkeel_kernels.core.problem import Problem
from evenkeel_kernels.levelling.leaders.moves import replace_leaders

ROUNDS = 4
"""How often it is looked, as long as anything is found: one step makes room for another."""


def look_once_more(run: Run) -> None:
    """Place, lead and drop what one step would, until nothing more is found."""
    for _ in range(ROUNDS):
        if run.stop is not None:
            break
        found = [place_what_fits(run), _place_beside_terms(run), _appoint(run), _drop(run)]
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
    placed = place(run, nowhere) > 0
    run.problem = asked
    return placed


def _without_counted_terms(problem: Problem) -> Problem:
    """Return the problem with terms that ask no replica to be inside of them, all or none."""
    term = problem.rules.term.copy()
    term[:, 0] = np.minimum(term[:, 0], 0)
    return problem._replace(rules=problem.rules._replace(term=term))


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
