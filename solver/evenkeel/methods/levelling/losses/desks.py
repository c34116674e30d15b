"""Desks: what one loss at a time is played on, a desk for each thread that plays."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.core.node_scan import Scan, new_scan
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.levelling.losses.records import DANGERS, Figures, Kept, Told


@dataclass(frozen=True, eq=False)
class Desk:
    """Arrays that nobody else may use while a loss is played."""

    problem: Problem
    state: State
    scan: Scan
    forced: NDArray[np.bool_]
    led: NDArray[np.bool_]
    every: NDArray[np.bool_]
    most_leaders: NDArray[np.float64]
    told: Told
    endangered: NDArray[np.int32]

    def figures(self, losses: int) -> Figures:
        """Return where so many losses are told of; partitions in danger are the desk's."""
        dimensions = len(self.state.load)
        most, fair, moved = np.zeros((3, losses, dimensions))
        return Figures(
            np.zeros(losses, np.int64), np.zeros(losses, np.int64), most, fair, moved,
            np.zeros((losses, DANGERS), np.int64), self.endangered,
        )  # fmt: skip


class Desks:
    """Desks on one cluster, each made of what was compiled once.

    Parameters
    ----------
    problem, state : Problem, State
        The cluster compiled; neither is ever written to.
    """

    def __init__(self, problem: Problem, state: State) -> None:
        self._problem, self._state = problem, state
        closed = new_scan(problem, np.zeros(len(state.load))).closed
        self.kept = Kept(  # copies of what may be frozen, which would compile kernels once more
            state.load, state.held, state.domain_load, problem.nodes.accepts.copy(),
            problem.nodes.leads.copy(), problem.rules.allowed.copy(), closed,
        )  # fmt: skip
        self._free: list[Desk] = []

    @contextmanager
    def one(self) -> Iterator[Desk]:
        """Lend a desk; as many are made as are used side by side."""
        try:
            desk = self._free.pop()  # atomic, as giving back is
        except IndexError:
            desk = self.new()
        try:
            yield desk
        finally:
            self._free.append(desk)

    def new(self) -> Desk:
        """Make one more, of which no array that changes is shared."""
        nodes, rules, partitions = (
            self._problem.nodes, self._problem.rules, self._problem.partitions
        )  # fmt: skip
        problem = self._problem._replace(
            nodes=nodes._replace(
                accepts=nodes.accepts.copy(),
                leads=nodes.leads.copy(),
                watermark=nodes.watermark.copy(),
            ),
            partitions=partitions._replace(led_from=partitions.led_from.copy()),
            rules=rules._replace(allowed=rules.allowed.copy()),
        )
        domains = len(problem.domains.member_first) - 1
        state = State._make(array.copy() for array in self._state)._replace(
            moved_of=np.zeros(len(self._state.leader), np.int64),
            came=np.zeros(domains, np.int64),
            went=np.zeros(domains, np.int64),
        )
        return Desk(
            problem, state, new_scan(problem, np.zeros(len(state.load))),
            np.zeros(len(state.node), bool), np.ones(len(state.leader), bool),
            np.ones(len(state.leader), bool),
            np.zeros(len(nodes.accepts)), _new_told(state),
            np.empty(DANGERS * len(state.node), np.int32),
        )  # fmt: skip


def _new_told(state: State) -> Told:
    dimensions, nodes = state.load.shape
    replicas = len(state.node)
    return Told(
        replica=np.empty(replicas, np.int64),
        urgency=np.empty(replicas, np.int64),
        size=np.empty(replicas),
        node=np.empty(replicas, np.int32),
        slot=np.empty(replicas, np.int16),
        endangered=np.empty((DANGERS, replicas), np.int32),
        endangered_count=np.zeros(DANGERS, np.int64),
        load=np.zeros((dimensions, nodes)),
        replicas=np.zeros(nodes, np.int64),
        leaders=np.zeros(nodes, np.int64),
        most=np.zeros(dimensions),
        fair=np.zeros(dimensions),
        moved=np.zeros(dimensions),
        gave_way=np.zeros(1, np.int64),
        waits=np.zeros(3, np.int64),
        lost=np.zeros(nodes, bool),
        hosts=np.zeros(nodes, bool),
    )
