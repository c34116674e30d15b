"""Compiled problems and states on which kernels run, of expanded or empty clusters."""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.support.jobs import empty, expanded
from evenkeel.measure.bounds import bounds
from evenkeel.methods.shared.compile import compile_problem, compile_state
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Goals
from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.core.node_scan import Scan, new_scan
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.levelling.leaders.moves import unassign_leaders
from evenkeel_kernels.levelling.parameters import DEFAULT
from evenkeel_kernels.levelling.penalty import Targets, new_targets
from evenkeel_kernels.levelling.redistribution import Ease, leader_ease, penalty_threshold
from evenkeel_kernels.levelling.threshold_walk import mean_square, moved_replicas
from tests.support.instances import Instance, as_cluster, generate
from tests.support.redistributed import redistribute

ZONES = 10
UNREACHABLE = 0.0  # a level that no walk reaches, so that all of its steps are taken


class Compiled(NamedTuple):
    """A compiled cluster. Kernels get a `fresh` state each."""

    cluster: Cluster
    problem: Problem
    state: State
    forced: NDArray[np.bool_]

    @property
    def replicas(self) -> int:
        """K."""
        return len(self.state.node)

    def fresh(self) -> State:
        """Copy the state, so that a kernel may change it."""
        return State(*(array.copy() for array in self.state))

    def blank(self) -> State:
        """Copy the state without what `settle` counts."""
        given = ("node", "role", "leader")
        zeros = {name: np.zeros_like(array) for name, array in self.fresh()._asdict().items()}
        return State(**zeros | {name: getattr(self.state, name).copy() for name in given})


def compile_instance(instance: Instance, level: float) -> Compiled:
    """Compile an instance for a tolerance."""
    cluster = as_cluster(instance)
    target = np.ascontiguousarray(bounds(cluster, Goals(level=level)).target.T)
    problem = compile_problem(cluster, target, np.ones(len(cluster.dimensions)))
    state = compile_state(cluster, problem)
    return Compiled(cluster, problem, state, state.node < 0)


@cache
def compiled_expansion(
    partitions: int, nodes: int, dimensions: int = 3, level: float = 0.04
) -> Compiled:
    """Return an expanded cluster's."""
    if dimensions == 3:
        return compile_instance(expanded(partitions, nodes, ZONES, 1), level)
    return compile_instance(generate(P=partitions, N=nodes, Z=ZONES, D=dimensions, seed=1), level)


@cache
def compiled_empty(partitions: int, nodes: int, dimensions: int = 3) -> Compiled:
    """Return those of a cluster in which nothing is placed, to be filled to 1.04."""
    if dimensions == 3:
        return compile_instance(empty(partitions, nodes, ZONES, 1), 0.04)
    instance = generate(P=partitions, N=nodes, Z=ZONES, D=dimensions, seed=1, frac_dead=0.0)
    instance["placement_before"][:] = -1
    return compile_instance(instance, 0.04)


class Filling(NamedTuple):
    """What best fit needs to place every replica of an empty cluster, row by row."""

    state: State
    scan: Scan
    order: NDArray[np.int64]
    forced: NDArray[np.bool_]
    led: NDArray[np.bool_]


def filling(compiled: Compiled, order: NDArray[np.int64]) -> Filling:
    """Start again without leaders, so that replicas have the load of their data."""
    state = compiled.fresh()
    state.leader.fill(-1)
    scan = new_scan(compiled.problem, np.zeros(len(state.load)))
    return Filling(state, scan, order, compiled.forced, np.ones(len(state.leader), bool))


class Shedding(NamedTuple):
    """What choosing the replicas to give away needs."""

    state: State
    ease: Ease
    first: NDArray[np.int64]
    member: NDArray[np.int64]


def before_shedding(compiled: Compiled) -> Shedding:
    """Let the leaders stand down, as the descent does first."""
    state = compiled.fresh()
    extra = np.empty(state.load.shape[0])
    unassign_leaders(compiled.problem, state, np.empty(len(state.leader), np.int16), extra)
    ease = leader_ease(compiled.problem, state, extra)
    return Shedding(state, ease, *by_node(state.node, state.load.shape[1]))


class Stroll(NamedTuple):
    """What a walk needs, from where the descent leaves off."""

    state: State
    targets: Targets
    moved: NDArray[np.int64]
    threshold: float
    random: NDArray[np.uint64]


@cache
def redistributed(partitions: int, nodes: int, dimensions: int = 3) -> Compiled:
    """Return the state after the first piece of the descent towards a level out of reach."""
    compiled = compiled_expansion(partitions, nodes, dimensions, UNREACHABLE)
    compiled = compiled._replace(state=compiled.fresh())
    redistribute(compiled.problem, compiled.state, compiled.forced, np.full(nodes, np.inf), 2**62)
    return compiled


def before_walking(compiled: Compiled) -> Stroll:
    """Begin a walk."""
    problem, state = compiled.problem, compiled.fresh()
    nodes = state.load.shape[1]
    targets = new_targets(
        problem, np.full(nodes, np.inf), penalty_threshold(problem, state, DEFAULT.walk_threshold)
    )
    return Stroll(
        state,
        targets,
        moved_replicas(problem, state),
        0.1 * mean_square(targets, problem.partitions.leader_load - problem.partitions.voter_load),
        np.array([1], np.uint64),
    )
