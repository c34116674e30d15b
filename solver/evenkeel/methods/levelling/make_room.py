"""Place replicas that fit on no node by ejection chains, in which they displace others.

Where that leads nowhere, one of any size makes way that has room elsewhere.

Helix gives up on the whole cluster where one large partition finds no node, though the total fits.
Those that make way move first, each to a node with room for it, so no rule is broken on the way.

References
----------
apache/helix, issue 1653: no cascading re-placement for a large partition.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.core.node_scan import FAR, Scan, new_scan
from evenkeel_kernels.core.problem import VOTER, Problem, State
from evenkeel_kernels.core.state import relocate
from evenkeel_kernels.levelling.best_fit import best_fit, repairs_first
from evenkeel_kernels.levelling.leaders.moves import (
    lead_if_afforded,
    replace_leaders,
    return_leaders,
)
from evenkeel_kernels.levelling.make_room import node_to_clear, take_over_each
from evenkeel_kernels.levelling.redistribution import moves_made

TRIES = 8  # nodes on which a replica is tried, one after the other
FAILURES = 8  # replicas in a row that find no room before the others are given up
TAKEN_OVER = 256  # replicas that are placed where others make way before nodes are listed anew
CASCADE = 64  # replicas that one may displace, directly or not
# replicas, times displacements that led nowhere, after which the others are given up
IN_VAIN = 30_000_000


def make_room(
    problem: Problem, state: State, forced: NDArray[np.bool_], may_go_on: Callable[[], bool]
) -> int:
    """Place replicas that fit nowhere by moving others out of their way."""
    waiting = forced & _has_no_node(problem, state)
    if not waiting.any() or not problem.nodes.accepts.any():
        return 0
    search = _Search(problem, state, forced, may_go_on)
    search.displace(repairs_first(problem, state, waiting, waiting))
    homeless = waiting & _has_no_node(problem, state)
    search.take_over(repairs_first(problem, state, homeless, homeless))
    moved = (state.node >= 0) & (state.node != problem.partitions.home)
    placed = int(np.count_nonzero(waiting & moved))
    if placed:
        replace_leaders(problem, state, search.scan)
    return placed


def make_room_to_lead(
    problem: Problem,
    state: State,
    forced: NDArray[np.bool_],
    partitions: NDArray[np.int64],
    may_go_on: Callable[[], bool],
) -> int:
    """Let others make way on nodes that may lead ``partitions``, which are led where none may."""
    search = _Search(problem, state, forced, may_go_on)
    first, before = problem.partitions.first, state.leader.copy()
    may = (state.node >= 0) & (state.role == VOTER) & problem.partitions.movable
    leads = before.copy()
    for p in partitions.tolist():
        able = np.flatnonzero(may[first[p] : first[p + 1]])
        if len(able) and before[p] not in able:
            leads[p] = able[0]
    chosen = first[partitions] + np.maximum(leads[partitions], 0)
    chosen = chosen[(leads[partitions] >= 0) & may[chosen]]
    lead = np.zeros(len(chosen), np.bool_)
    lead_if_afforded(problem, state, chosen, lead)
    chosen = chosen[lead]
    stood = state.node[chosen]
    search.take_over(chosen)
    search.displace(chosen[state.node[chosen] == stood])
    failed = chosen[state.node[chosen] == stood]
    leads = state.leader.copy()
    owner = problem.partitions.owner[failed]
    leads[owner] = before[owner]
    return_leaders(problem, state, leads)
    return len(chosen) - len(failed)


def _has_no_node(problem: Problem, state: State) -> NDArray[np.bool_]:
    """Return whether each replica stands nowhere, or where it came from, (K,)."""
    return np.asarray((state.node < 0) | (state.node == problem.partitions.home))


@dataclass
class _Search:
    """A search for room, with what its kernels share."""

    problem: Problem
    state: State
    forced: NDArray[np.bool_]
    may_go_on: Callable[[], bool]
    left: int = 0
    in_vain: int = 0
    members: tuple[NDArray[np.int64], NDArray[np.int64]] = field(init=False)
    scan: Scan = field(init=False)
    weight: NDArray[np.float64] = field(init=False)
    size: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.scan = new_scan(self.problem, np.zeros(len(self.state.load)))
        partitions, weight = self.problem.partitions, _weights(self.problem)
        follows = partitions.voter_load, partitions.non_voter_load
        self.size = _largest(follows, weight)
        most = _largest((*follows, partitions.leader_load), weight)
        known = (most > 0.0) & np.isfinite(most)
        self.weight = weight * (self.size[known] / most[known]).min(initial=1.0)

    def displace(self, order: NDArray[np.int64]) -> None:
        """Place replicas, in that ``order``, where smaller ones make way."""
        failures = 0
        for k in order.tolist():
            if failures == FAILURES or self.in_vain > IN_VAIN or not self.may_go_on():
                break
            failures = 0 if self.settles(k) else failures + 1

    def settles(self, k: int) -> bool:
        """Return whether ``k`` found a node; if not, all is as it was."""
        state, most = self.state, self.problem.budgets.moves
        before, leader = state.node.copy(), state.leader.copy()
        closed = np.zeros(len(state.replicas), bool)
        for _ in range(TRIES):
            self.left = CASCADE
            self.members = by_node(state.node, len(state.replicas))
            settled, tried = False, -1
            try:
                settled, tried = self._moved(k, closed)
                settled &= moves_made(self.problem, state, self.forced) <= most
            finally:  # Ctrl-C included
                if not settled:
                    changed = np.flatnonzero(state.node != before)
                    relocate(self.problem, state, changed, before[changed])
                    return_leaders(self.problem, state, leader)
            if settled or tried < 0:
                return settled
            closed[tried] = True
            self.in_vain += (1 + CASCADE - self.left) * len(state.node)
        return False

    def take_over(self, order: NDArray[np.int64]) -> None:
        """Place replicas, in that ``order``, where others were that have room elsewhere."""
        problem, state = self.problem, self.state
        for begin in range(0, len(order), TAKEN_OVER):
            left = problem.budgets.moves - moves_made(problem, state, self.forced)
            if not self.may_go_on():
                break
            end = min(begin + TAKEN_OVER, len(order))
            first, member = by_node(state.node, len(state.replicas))
            failed = take_over_each(
                problem, state, self.size, order, begin, end, first, member,
                self._emptiest_first(), np.empty(len(state.load)),
                np.full(len(state.replicas), np.inf), left // 2, FAILURES,
            )  # fmt: skip
            if failed == FAILURES:
                break

    def _emptiest_first(self) -> NDArray[np.int32]:
        """List the nodes with room, those with most of it first."""
        problem, state = self.problem, self.state
        capacity, load = problem.nodes.capacity, state.load + state.held
        roomy = problem.nodes.accepts & (state.replicas < problem.nodes.max_replicas)
        roomy &= (load < capacity).all(axis=0)
        bounded = np.isfinite(capacity) & (capacity > 0.0)
        used = np.divide(load, capacity, out=np.zeros_like(load), where=bounded)
        order = np.argsort(used.max(axis=0, initial=0.0), kind="stable").astype(np.int32)
        return order[roomy[order]]

    def _moved(self, k: int, closed: NDArray[np.bool_]) -> tuple[bool, int]:
        """Return whether ``k`` has another node now, and the node vacated for it, else -1."""
        if self._fits(k):
            return True, -1
        if not self.may_go_on():
            return False, -1
        problem, state = self.problem, self.state
        nodes, victim = len(state.replicas), np.empty(self.left, np.int64)
        there, count = node_to_clear(
            problem, state, self.size, k, *self.members, closed, self.weight,
            np.empty(nodes), np.empty(nodes, np.bool_), np.empty(len(state.load)), victim,
            self.left,
        )  # fmt: skip
        self.left -= count
        if there < 0:
            return False, there
        cleared = closed.copy()
        cleared[there] = True
        was_closed = self.scan.closed[:, there].copy()
        self.scan.closed[:, there] = FAR  # the room that is made is for one alone
        try:
            for i in victim[:count].tolist():
                if not self._moved(i, cleared)[0]:
                    return False, there
        finally:
            self.scan.closed[:, there] = was_closed
        return self._fits(k), there

    def _fits(self, k: int) -> bool:
        """Return whether a node has room for ``k``, which goes there."""
        state, order = self.state, np.array([k], np.int64)
        made = best_fit(
            self.problem, state, self.scan, order, self.forced, state.leader >= 0, 0.5 * FAR, 0, 1
        )
        return made == 1


def _weights(problem: Problem) -> NDArray[np.float64]:
    """1 / the capacity of the largest node, (D,); 0 where there is none."""
    usable = np.where(problem.nodes.accepts, problem.nodes.capacity, 0.0)
    capacity: NDArray[np.float64] = usable.max(axis=1, initial=0.0)
    weight = np.zeros_like(capacity)
    weight[capacity > 0.0] = 1.0 / capacity[capacity > 0.0]
    return weight


def _largest(
    loads: tuple[NDArray[np.float64], ...], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How large a part of the largest node the greatest of some loads is, (P,)."""
    share = np.zeros(len(loads[0]))
    for d in range(len(weight)):
        for load in loads:
            np.maximum(share, load[:, d] * weight[d], out=share)
    return share
