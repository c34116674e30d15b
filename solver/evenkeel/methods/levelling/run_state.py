"""The state of one run of ``balance``, shared by its phases."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import Violations
from evenkeel.methods.contract import Request
from evenkeel.methods.shared.compile import compile_state
from evenkeel.methods.shared.stopping import StopReason
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.levelling.parameters import Parameters
from evenkeel_kernels.levelling.penalty import Targets, highest, new_targets
from evenkeel_kernels.levelling.redistribution import moves_made


@dataclass
class SearchRun:
    """The problem, the state of the search, and decisions made before it."""

    request: Request
    parameters: Parameters
    problem: Problem
    state: State
    forced: NDArray[np.bool_]  # (K,), replicas that must get another node
    dropped: NDArray[np.bool_]  # (K,), replicas that are too many
    broken: list[Violations]
    most_leaders: NDArray[np.float64]  # (N,), the most that each node may lead
    timings: dict[str, float] = field(default_factory=dict)
    work: int = 0  # candidates looked at, by this run and those before it in the same solve
    stop: StopReason | None = None
    fewest: int = 0  # moves that the goals take at least, as far as the search has proven
    due: NDArray[np.bool_] = field(init=False)  # (K,), those that were forced at the start
    led: NDArray[np.int16] = field(init=False)

    def __post_init__(self) -> None:
        self.due = self.forced.copy()
        self.led = self.state.leader.copy()

    @property
    def targets(self) -> Targets:
        """Factors that turn loads into fractions of their targets."""
        return new_targets(self.problem, self.most_leaders, 1.0)

    @property
    def ratio(self) -> float:
        """Greatest load in units of its target: 1 or less once all goals are met."""
        return highest(self.state, self.targets)

    @property
    def waiting(self) -> NDArray[np.bool_]:
        """Replicas that must get another node and have none yet, (K,)."""
        home = self.problem.partitions.home
        there: NDArray[np.bool_] = (self.state.node < 0) | (self.state.node == home)
        return self.forced & there

    @property
    def moves_left(self) -> int:
        """Replicas that may still move though nothing forces them."""
        return self.problem.budgets.moves - self.moves

    @property
    def moves(self) -> int:
        """Replicas that have moved though nothing forced them."""
        return moves_made(self.problem, self.state, self.forced)

    @property
    def placement(self) -> Placement:
        """Where everything is now."""
        return self.request.cluster.placement.replaced(self.state.node, self.state.leader)

    @property
    def has_limit(self) -> bool:
        """Whether a time limit is given; without one, small clusters get little time."""
        return self.request.watch.has_limit

    @property
    def has_walked_enough(self) -> bool:
        """Whether the steps of all walks are as many as there shall be without a limit."""
        parameters = self.parameters
        most = max(parameters.most_steps, parameters.steps_per_partition * len(self.state.leader))
        return self.work >= most and not self.has_limit

    def restart_from(self, node: NDArray[np.int32], leader: NDArray[np.int16]) -> None:
        """Go to a placement."""
        cluster = self.request.cluster
        placement = cluster.placement.replaced(node, leader)
        self.state = placed_state(cluster, self.problem, placement, self.dropped)

    def report(self, work: int, level: float) -> bool:
        """Report progress to the caller; return whether to go on."""
        watch, moves = self.request.watch, None
        self.work = work
        if watch.callback is not None:
            moves = moves_made(self.problem, self.state, np.zeros_like(self.forced))
        self.stop = watch.stop(work, moves, max(0.0, level - 1.0))
        return self.stop is None

    def look(self) -> bool:
        """Ask clock and caller whether to go on; the number of checks has no effect."""
        if self.stop is None:
            self.stop = self.request.watch.look(self.work)
        return self.stop is None

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Report a phase to the caller meanwhile, and note the seconds that it takes."""
        started = time.perf_counter()
        try:
            with self.request.watch.in_phase(phase):
                yield
        finally:
            took = time.perf_counter() - started
            self.timings[phase] = self.timings.get(phase, 0.0) + took

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Keep the best so far on Ctrl-C."""
        try:
            yield
        except KeyboardInterrupt:
            self.stop, self.request.watch.interrupted = "interrupted", True


def placed_state(
    cluster: Cluster, problem: Problem, placement: Placement, dropped: NDArray[np.bool_]
) -> State:
    """Return the state of a placement in which only what stood on dead nodes is nowhere."""
    nodes = cluster.nodes
    stays = nodes.may_hold | nodes.serves
    state = compile_state(cluster, problem, placement, stays)
    for k in np.flatnonzero(dropped).tolist():
        book_drop(problem, state, k)
    return state


def book_drop(problem: Problem, state: State, k: int) -> None:
    """Book that replica ``k`` has left its node for nowhere."""
    budgets, home = problem.budgets, int(problem.partitions.home[k])
    if budgets.binds and home >= 0 and budgets.source[home]:
        where = problem.domains.domain[budgets.tiers, home]
        state.went[where[where >= 0]] += 1
