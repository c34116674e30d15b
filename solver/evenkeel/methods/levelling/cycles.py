"""The fewest moves where all replicas weigh alike: placing is a flow then."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.compare import compare
from evenkeel.methods.levelling.rest import height_of
from evenkeel.methods.levelling.run_state import Run
from evenkeel.methods.levelling.soft_rules import soft_weights
from evenkeel.model.placement import Flag
from evenkeel_kernels.core.problem import Problem, RuleArrays
from evenkeel_kernels.levelling.cycles import cancel
from evenkeel_kernels.levelling.leaders.levelling import level_leaders

LARGEST, MOST_NODES = 5_000_000, 300
"""Replicas x nodes, and nodes, up to which cycles are sought."""

SLICES, WORK = 5, 10_000_000
"""How often the clock is looked at meanwhile, and the work until then."""


def save_moves(run: Run) -> None:
    """Make the fewest moves where placing is a flow, and note the number if it is proven.

    Where leaders could not be levelled after that, moves are saved among those that follow.
    """
    if run.stop is not None or not _is_a_flow(run):
        return
    if run.ratio <= 1.0 and _moves(run) <= run.request.bounds.moves_level:
        return
    problem, cluster, home = run.problem, run.request.cluster, run.problem.partitions.home
    before, stood = height_of(run), (run.state.node.copy(), run.state.leader.copy())
    for one in (problem, _with_leaders_pinned(run)):
        proven = _cancelled(run, one) and one is problem
        if height_of(run)[:2] <= before[:2]:
            break
        run.restart_from(*stood)
        proven = False
    closed = (home >= 0) & (run.state.node != home) & ~problem.nodes.accepts[home] & ~run.due
    held = ~problem.partitions.movable & ((cluster.placement.flags & Flag.PINNED) == 0)
    if proven and not closed.any() and not held.any() and not soft_weights(run):
        run.fewest = _moves(run)


def _cancelled(run: Run, problem: Problem) -> bool:
    """Relieve nodes and save moves, and level leaders after that; whether no fewer are possible."""
    state, nodes, proven = run.state, len(run.state.replicas), False
    scratch = (
        np.zeros(nodes + len(state.node), np.int64), np.zeros((nodes, nodes), np.int64),
        np.zeros((nodes, nodes), np.int64), np.zeros((4, nodes + 1), np.int64),
    )  # fmt: skip
    size = problem.partitions.voter_load[0].copy()
    for _ in range(SLICES):
        left = np.array([WORK], np.int64)
        proven = cancel(problem, state, run.targets, size, *scratch, left)
        if proven or left[0] > 0 or not run.look("cycles"):
            break
    if run.ratio > 1.0:
        for _ in level_leaders(problem, state, run.targets, run.led, run.parameters.sweeps):
            if not run.look("leaders"):
                break
    return proven


def _with_leaders_pinned(run: Run) -> Problem:
    """Return the problem with leaders staying where they are."""
    problem, leader = run.problem, run.state.leader
    movable = problem.partitions.movable.copy()
    movable[(problem.partitions.first[:-1] + leader)[leader >= 0]] = False
    return problem._replace(partitions=problem.partitions._replace(movable=movable))


def _moves(run: Run) -> int:
    """Count the moves made."""
    came = run.request.cluster.placement
    return compare(run.request.cluster, came, run.placement).moves


def _is_a_flow(run: Run) -> bool:
    """Return whether replicas weigh alike, and rules only limit them in domains that are nested.

    All are placed, no node holds two of a partition, and any node that takes one may lead.
    """
    problem, bounds = run.problem, run.request.bounds
    nodes, rules, domain = problem.nodes, problem.rules, problem.domains.domain
    replicas, count = len(run.state.node), len(run.state.replicas)
    if count > MOST_NODES or not 0 < replicas * count <= LARGEST:
        return False
    if not run.request.cluster.partitions.load.alike.all() or bounds.floor.any():
        return False
    if run.waiting.any() or run.dropped.any() or nodes.transient.any():
        return False
    if len(rules.group_limit) or len(rules.group_term) or len(rules.needs) or len(rules.term):
        return False
    if len(problem.domains.limited) or not nodes.leads[nodes.accepts].all():
        return False
    return bool((rules.lead_rank == rules.lead_rank[:, :1]).all()) and _are_nested(rules, domain)


def _are_nested(rules: RuleArrays, domain: NDArray[np.int32]) -> bool:
    """Return whether limits are only upper ones, one per node, in domains that lie in each other.

    ``domain (L + 1, N)`` are the domains of each level, the nodes last.
    """
    if (rules.limit[:, 2:] >= 0).any():
        return False
    complete: NDArray[np.bool_] = np.all(domain >= 0, axis=1)
    single = complete[rules.limit[:, 0]] & (rules.limit[:, 1] == 1)
    rule = np.repeat(np.arange(len(rules.limit_first) - 1), np.diff(rules.limit_first))
    if len(np.unique(rule[single])) < len(rules.limit_first) - 1:
        return False
    levels = np.unique(rules.limit[:, 0])
    return all(
        np.unique(domain[levels[: i + 1]], axis=1).shape[1] == len(np.unique(domain[level]))
        for i, level in enumerate(levels)
    )
