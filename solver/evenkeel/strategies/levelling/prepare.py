"""Before the search: compile the cluster, drop what is too many, mark what must move."""

import time

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.strategies.levelling.run_state import Run
from evenkeel.strategies.registry import Request
from evenkeel.strategies.shared.compile import compile_problem, compile_state
from evenkeel.strategies.shared.replica_counts import serving, slots_to_fill, surplus_replicas
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.core.state import relocate
from evenkeel_kernels.levelling.parameters import Parameters
from evenkeel_kernels.levelling.repair import homeless


def prepare(request: Request, parameters: Parameters) -> Run:
    """Compile the cluster, drop what is too many, and mark what must move."""
    started = time.perf_counter()
    cluster = request.cluster
    target = np.ascontiguousarray(request.bounds.target.T)
    problem = compile_problem(cluster, target, np.ones(len(cluster.dimensions)))
    state = compile_state(cluster, problem, request.start)
    dropped = drop_surplus(cluster, problem, state)
    forced = homeless(problem, state, cluster.nodes.may_hold)
    forced &= (state.node >= 0) | slots_to_fill(cluster, serving(cluster, state.node))
    run = Run(
        request, parameters, problem, state, forced, dropped, request.bounds.leader_target
    )  # fmt: skip
    run.timings["compile"] = time.perf_counter() - started
    return run


def drop_surplus(cluster: Cluster, problem: Problem, state: State) -> NDArray[np.bool_]:
    """Put replicas beyond those wanted nowhere, and say which they are, (K,) bool."""
    with np.errstate(over="ignore"):  # load on a node without capacity
        pressure = (state.load * problem.nodes.inverse).max(axis=0, initial=0.0)
    surplus = surplus_replicas(cluster, serving(cluster, state.node), pressure)
    dropped = np.zeros(len(state.node), bool)
    if len(surplus):
        dropped[surplus] = True
        relocate(problem, state, surplus, np.full(len(surplus), -1, np.int32))
    return dropped
