"""Test whether ``balance`` is within one per cent of a proven best answer."""

from enum import Enum

import numpy as np

import evenkeel as ek

SHARE = 0.01
SAME = 1e-9
FINE = 0.003  # of a target: what each node is above its own is added up no finer
# work that no small cluster takes: it is refined to the end, which it is not by default
ALL_OF_IT = 2**40


class Verdict(Enum):
    """What is said of an answer of ``balance`` beside one of ``exact``."""

    NEAR = "near"
    INFEASIBLE = "break a rule that need not be"
    LEVEL = "less level"
    OTHERS = "the fullest as full, the others less level"
    MOVES = "as level with more moves"


def judged(cluster: ek.Cluster, goals: ek.Goals, *, effort: float) -> Verdict:
    """Say whether ``balance`` is near the answer of ``exact``; see `compared`."""
    return compared(cluster, goals, effort=effort)[0]


def compared(cluster: ek.Cluster, goals: ek.Goals, *, effort: float) -> tuple[Verdict, bool]:
    """Compare ``balance`` with ``exact`` for the same goals, and say if the latter is proven."""
    # An answer that is not stands for the best that is known, unless ``balance`` found a better
    # one. The objective of ``exact``: no rule broken, then the greatest load (or number of leaders)
    # in units of its target, 1 where all are within it; then what all nodes are above theirs; then
    # moves. ``balance`` is near where it breaks no rule that ``exact`` keeps, the greatest load is
    # at most 1 % above that of ``exact``, and, if both are equal, so is what all are above, and if
    # that is equal, too, so are the moves. Where ``exact`` breaks a rule too, no placement is known
    # that keeps them, and there is nothing to compare.
    best = ek.solve(cluster, method="exact", goals=goals, options=ek.options.Exact(effort=effort))
    own = ek.solve(cluster, goals=goals, work_limit=ALL_OF_IT)
    return _verdict(own, best), best.status == "optimal"


def _verdict(own: ek.Result, best: ek.Result) -> Verdict:
    if best.audit.hard:
        return Verdict.NEAR
    if own.audit.hard or own.audit.soft > best.audit.soft:
        return Verdict.INFEASIBLE
    if fullest(own) > (1.0 + SHARE) * fullest(best):
        return Verdict.LEVEL
    if abs(fullest(own) - fullest(best)) > SAME:
        return Verdict.NEAR
    beyond, least = excesses(own), excesses(best)
    slack = FINE * len(beyond)
    if beyond.sum() > (1.0 + SHARE) * least.sum() + slack:
        return Verdict.OTHERS
    alike = beyond.sum() >= least.sum() - slack
    if alike and own.comparison.moves > (1.0 + SHARE) * best.comparison.moves:
        return Verdict.MOVES
    return Verdict.NEAR


def fullest(result: ek.Result) -> float:
    """Return the greatest load, or number of leaders, in units of its target; at least 1."""
    return 1.0 + float(excesses(result).max(initial=0.0))


def excesses(result: ek.Result) -> np.ndarray:
    """Return how far each load, and number of leaders, is above its target, in units of that."""
    found = []
    for now, target in (
        (result.levelness.loads, result.bounds.target),
        (result.levelness.leaders, result.bounds.leader_target),
    ):
        carried = np.asarray(now) > 0
        with np.errstate(divide="ignore"):
            found.append(now[carried] / target[carried] - 1.0)
    return np.maximum(np.concatenate(found), 0.0)
