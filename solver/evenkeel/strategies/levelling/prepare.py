"""Before the search: compile the cluster, drop what is too many, mark what must move."""

import time

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.strategies.levelling.restraint import Restraint
from evenkeel.strategies.levelling.run_state import Run, book_drop, seated
from evenkeel.strategies.registry import Request
from evenkeel.strategies.shared.compile import compile_problem
from evenkeel.strategies.shared.replica_counts import (
    may_be_dropped,
    may_be_spared,
    serving,
    slots_to_fill,
    surplus_replicas,
)
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.core.state import relocate
from evenkeel_kernels.levelling.parameters import Parameters
from evenkeel_kernels.levelling.repair import breaches_without, must_relocate


def prepare(request: Request, parameters: Parameters, restraint: Restraint) -> Run:
    """Compile the cluster, drop what is too many, and mark what must move."""
    started = time.perf_counter()
    cluster = request.cluster
    target = np.ascontiguousarray(request.bounds.target.T)
    problem = compile_problem(
        cluster, target, np.ones(len(cluster.dimensions)), limits=request.limits
    )
    problem.partitions.movable[restraint.pinned[cluster.placement.owner]] = False
    dropped = np.zeros(len(request.start.node), bool)
    state = seated(cluster, problem, request.start, dropped)
    drop_surplus(cluster, problem, state, dropped, restraint.whole)
    seat = serving(cluster, state.node)
    must_fill = slots_to_fill(cluster, seat)
    leaving = np.flatnonzero((seat < 0) & (state.node >= 0) & ~must_fill)
    leaving = leaving[may_be_spared(cluster, state.node, leaving)]
    drop(problem, state, leaving[~restraint.whole[cluster.placement.owner[leaving]]], dropped)
    forced = must_relocate(problem, state, cluster.nodes.may_hold) & ((seat >= 0) | must_fill)
    forced &= problem.partitions.movable
    run = Run(
        request, parameters, problem, state, forced, dropped, [], request.bounds.leader_target
    )  # fmt: skip
    run.timings["compile"] = time.perf_counter() - started
    return run


def drop_surplus(
    cluster: Cluster,
    problem: Problem,
    state: State,
    dropped: NDArray[np.bool_],
    whole: NDArray[np.bool_],
) -> None:
    """Put replicas beyond those wanted nowhere, one of each partition at a time."""
    with np.errstate(over="ignore"):  # load on a node without capacity
        utilization = (state.load * problem.nodes.inverse).max(axis=0, initial=0.0)
    while True:
        seat = serving(cluster, state.node)
        seat[dropped] = -1
        candidates = may_be_dropped(cluster, seat)
        if len(candidates) == 0:
            return
        breaches = np.zeros(len(seat), np.int64)
        breaches_without(problem, state, candidates, breaches)
        surplus = surplus_replicas(cluster, seat, utilization, breaches)
        surplus = surplus[~whole[cluster.placement.owner[surplus]]]
        if drop(problem, state, surplus, dropped) == 0:
            return


def drop(
    problem: Problem, state: State, replicas: NDArray[np.int64], dropped: NDArray[np.bool_]
) -> int:
    """Drop those that may be, within the budgets of what leaves a node; how many they are."""
    replicas = replicas[problem.partitions.movable[replicas]]
    if problem.budgets.binds:
        affordable = []
        for k in replicas.tolist():
            if _may_leave(problem, state, k):
                book_drop(problem, state, k)
                affordable.append(k)
        replicas = np.array(affordable, np.int64)
    dropped[replicas] = True
    relocate(problem, state, replicas, np.full(len(replicas), -1, np.int32))
    return len(replicas)


def _may_leave(problem: Problem, state: State, k: int) -> bool:
    """Whether the budgets of its node and domains let replica ``k`` leave."""
    budgets, home = problem.budgets, int(problem.partitions.home[k])
    if home < 0 or not budgets.source[home]:
        return True
    where = problem.domains.domain[budgets.tiers, home]
    where = where[where >= 0]
    return bool((state.went[where] < budgets.out_of[where]).all())
