"""The state of one run of ``balance``, and what its phases ask of it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.wanted import has_leaders
from evenkeel.model.placement import Placement
from evenkeel.strategies.registry import Request
from evenkeel.strategies.shared.compile import compile_state
from evenkeel.strategies.shared.stopping import Progress, StopReason
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.levelling.descent import moves_made
from evenkeel_kernels.levelling.parameters import Parameters
from evenkeel_kernels.levelling.penalty import Gauge, highest, new_gauge

UNLIMITED = 2**62


@dataclass
class Run:
    """What is solved, where the search stands, and what was decided before it.

    ``forced (K,)`` replicas must get another node, ``dropped (K,)`` ones are too many, and no node
    shall lead more than ``most_leaders (N,)``.
    """

    request: Request
    parameters: Parameters
    problem: Problem
    state: State
    forced: NDArray[np.bool_]
    dropped: NDArray[np.bool_]
    most_leaders: NDArray[np.float64]
    timings: dict[str, float] = field(default_factory=dict)
    work: int = 0
    stop: StopReason | None = None

    @property
    def gauge(self) -> Gauge:
        """What turns loads into parts of their targets."""
        return new_gauge(self.problem, self.most_leaders, 1.0)

    @property
    def pressure(self) -> float:
        """Greatest load in units of its target: 1 or less once all goals are met."""
        return highest(self.state, self.gauge)

    @property
    def most_moves(self) -> int:
        """Replicas that may move though nothing forces them."""
        most = self.request.limits.moves
        return UNLIMITED if most is None else max(0, most - int(self.forced.sum()))

    @property
    def moves(self) -> int:
        """Replicas that have moved though nothing forced them."""
        return moves_made(self.problem, self.state, self.forced)

    @property
    def placement(self) -> Placement:
        """Where everything is now."""
        return self.request.cluster.placement.replaced(self.state.node, self.state.leader)

    def restart_from(self, node: NDArray[np.int32], leader: NDArray[np.int16]) -> None:
        """Go to a placement."""
        placement = self.request.cluster.placement.replaced(node, leader)
        self.state = compile_state(self.request.cluster, self.problem, placement)

    def tell(self, stage: str, work: int, level: float) -> bool:
        """Tell the caller where the search stands; whether to go on."""
        watch = self.request.watch
        self.work = work
        self.stop = watch.stop(
            Progress(stage, work, watch.seconds, self.moves, max(0.0, level - 1.0))
        )
        return self.stop is None

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Note the seconds that a phase takes."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.timings[stage] = time.perf_counter() - started

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Keep the best so far on Ctrl-C."""
        try:
            yield
        except KeyboardInterrupt:
            self.stop = "interrupted"


def leaders_of(run: Run, leader: NDArray[np.int16]) -> NDArray[np.int16]:
    """Leading slots to hand out: a cluster that knows no leaders is given none, none is lost."""
    cluster = run.request.cluster
    was = cluster.placement.leader
    return np.where(leader < 0, was, leader) if has_leaders(cluster) else was
