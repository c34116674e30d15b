"""Windows of a large instance, solved by CP-SAT: a few nodes, and the replicas on them.

Everything outside the window stays. Within it, each replica gets a seat that its rules allow; what
its group needs or limits is counted together with the group's other replicas, in the window and
outside. The rules are those of `evenkeel_kernels.admission`: what is broken may stay as broken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.strategies.exact.whole import FINEST, NEAR, WIDEST
from evenkeel_kernels.joint import price_each, suit_each
from evenkeel_kernels.problem import NON_VOTER, Problem, State
from evenkeel_kernels.search_walk import Walk

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel

DEAREST = 2.0**20
"""Prices per unit are whole numbers up to this, if they are not whole as they come."""


@dataclass(frozen=True)
class Effort:
    """How much one window may cost.

    Parameters
    ----------
    seed : int
        All randomness comes from it.
    deterministic : float
        CP-SAT's own measure of work; about seconds.
    seconds : float
        Seconds of the clock; infinite for none.
    """

    seed: int
    deterministic: float
    seconds: float = float("inf")


@dataclass(frozen=True)
class Rearranged:
    """What became of a window.

    Parameters
    ----------
    replica : ndarray of int64, shape (J,)
        Replicas that are to move; none where nothing better was found.
    target : ndarray of int64, shape (J,)
        Where to.
    proven : bool
        Whether nothing in the window is better, up to the rounding of its numbers.
    spent : float
        CP-SAT's own measure of the work done.
    """

    replica: NDArray[np.int64]
    target: NDArray[np.int64]
    proven: bool
    spent: float


def rearrange_window(
    problem: Problem,
    state: State,
    walk: Walk,
    node: NDArray[np.int64],
    replica: NDArray[np.int64],
    effort: Effort,
) -> Rearranged:
    """Find the best places for some replicas on some nodes, all others staying.

    Parameters
    ----------
    problem : Problem
        What does not change.
    state : State
        Where the search stands; not changed.
    walk : Walk
        Its books.
    node : ndarray of int64, shape (M,)
        The nodes of the window.
    replica : ndarray of int64, shape (R,)
        Replicas that may move, each on one of the nodes, no two of one partition.
    effort : Effort
        When to stop.

    Returns
    -------
    Rearranged
        Moves to be made as one; whoever makes them judges rules and cost once more.

    References
    ----------
    Perron, Didier: CP-SAT (OR-Tools). Shaw: Using constraint programming and local search methods
    to solve vehicle routing problems, CP 1998 (large neighbourhood search).
    """
    from ortools.sat.python import cp_model

    window = _Window(problem, state, walk, node, replica, cp_model.CpModel())
    window.seat()
    window.count_groups()
    window.model.minimize(window.cost())
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = 1
    parameters.random_seed = effort.seed & 0x7FFFFFFF
    parameters.catch_sigint_signal = False  # it would leave Python without its own handler
    parameters.max_deterministic_time = effort.deterministic
    if np.isfinite(effort.seconds):
        parameters.max_time_in_seconds = max(effort.seconds, 1e-3)
    status = solver.solve(window.model)
    spent = float(solver.response_proto.deterministic_time)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Rearranged(replica[:0], node[:0], False, spent)
    target = state.node[replica].astype(np.int64)
    for (i, m), chosen in window.on.items():
        if solver.value(chosen):
            target[i] = node[m]
    moves = target != state.node[replica]
    return Rearranged(replica[moves], target[moves], status == cp_model.OPTIMAL, spent)


class _Window:
    """A window on its way to CP-SAT. The unknown ``on[i, m]`` puts its replica i on its node m."""

    def __init__(
        self,
        problem: Problem,
        state: State,
        walk: Walk,
        node: NDArray[np.int64],
        replica: NDArray[np.int64],
        model: CpModel,
    ) -> None:
        self.problem, self.state, self.walk, self.model = problem, state, walk, model
        self.node, self.replica = node, replica
        self.now = np.argmax(state.node[replica][:, None] == node, axis=1)
        self.group = problem.partitions.group[problem.partitions.owner[replica]]
        self.on: dict[tuple[int, int], Any] = {}

    def seat(self) -> None:
        """Give each replica one seat, and each node no more than it has room for."""
        shape = len(self.replica), len(self.node)
        may = np.zeros(shape, bool)
        suit_each(self.problem, self.state, self.replica, self.node, may)
        for i, m in np.argwhere(may).tolist():
            self.on[i, m] = self.model.new_bool_var("")
            self.model.add_hint(self.on[i, m], m == self.now[i])
        for i in range(shape[0]):
            self.model.add_exactly_one(self.on[i, m] for m in np.flatnonzero(may[i]).tolist())
        most = self.problem.nodes.max_replicas[self.node]
        for m in np.flatnonzero(most < 2**31 - 1).tolist():
            now = int((self.now == m).sum())
            fixed = int(self.state.replicas[self.node[m]]) - now
            self.model.add(self._count(m) <= max(int(most[m]) - fixed, now))
        self._hold()

    def _hold(self) -> None:
        """Keep to the capacities; in a transient dimension what left a node counts there, too."""
        nodes, home = self.problem.nodes, self.problem.partitions.home[self.replica]
        need = self.walk.need[self.replica]
        for d in range(len(nodes.capacity)):
            factor = _factor(need[:, d])
            for m, n in enumerate(self.node.tolist()):
                if not np.isfinite(nodes.capacity[d, n]):
                    continue
                counts = np.ones(len(need), bool)
                if nodes.transient[d]:
                    counts = home != n  # those at home take their room in any case
                room = self.walk.room[n, d] + need[counts & (self.now == m), d].sum()
                size = np.ceil(need[:, d] * factor - NEAR).astype(np.int64) * counts
                most = max(int(np.floor(room * factor + NEAR)), int(size[self.now == m].sum()))
                if size[[i for i, at in self.on if at == m]].sum() > most:
                    self.model.add(self._weighted(m, size) <= most)

    def _weighted(self, m: int, size: NDArray[np.int64]) -> Any:
        """Sum of ``size`` over the replicas on node ``m`` of the window."""
        pairs = [(int(size[i]), one) for (i, at), one in self.on.items() if at == m and size[i]]
        return sum(each * one for each, one in pairs)

    def _count(self, m: int) -> Any:
        return sum(one for (_, at), one in self.on.items() if at == m)

    def count_groups(self) -> None:
        """Add what groups limit, ask for, or need near them."""
        rules = self.problem.rules
        for g in np.unique(self.group).tolist():
            for row in range(rules.group_limit_first[g], rules.group_limit_first[g + 1]):
                self._limit(g, row)
            for row in range(rules.group_term_first[g], rules.group_term_first[g + 1]):
                self._ask(g, row)
        self._stay_near()

    def _inside(self, g: int, level: int) -> dict[int, tuple[int, Any]]:
        """For each domain of the window: the group's replicas in it now, and the unknown ones."""
        domain = self.problem.domains.domain[level, self.node]
        found: dict[int, tuple[int, Any]] = {}
        for (i, m), one in self.on.items():
            if self.group[i] == g and domain[m] >= 0:
                now, unknown = found.get(int(domain[m]), (0, 0))
                now += int(self.now[i] == m)
                found[int(domain[m])] = (now, unknown + one)
        return found

    def _limit(self, g: int, row: int) -> None:
        """At most so many per domain; at least, and at most, so many domains."""
        rules, state = self.problem.rules, self.state
        level, most, fewest, widest, _ = rules.group_limit[row].tolist()
        base = int(rules.group_base[row] - self.problem.domains.domain_offset[level])
        inside = self._inside(g, level)
        touched: Any = int(state.group_domains[row])
        for where, (now, unknown) in inside.items():
            count = int(state.group_count[base + where])
            outside = count - now
            if most >= 0:
                self.model.add(unknown + outside <= max(most, count))
            if outside == 0 and max(fewest, widest) >= 0:
                has = self.model.new_bool_var("")
                self.model.add(unknown >= 1).only_enforce_if(has)
                self.model.add(unknown == 0).only_enforce_if(has.negated())
                touched = touched - int(count > 0) + has
        domains = int(state.group_domains[row])
        if isinstance(touched, int):
            return
        if fewest >= 0:
            self.model.add(touched >= min(fewest, domains))
        if widest >= 0:
            self.model.add(touched <= max(widest, domains))

    def _ask(self, g: int, row: int) -> None:
        """At least so many of the group inside a mask."""
        rules, state = self.problem.rules, self.state
        least, voters, mask = rules.group_term[row].tolist()
        inside = rules.term_mask[mask, self.node]
        role = state.role[self.replica]
        now = int(state.group_inside[row])
        change: Any = 0
        for (i, m), one in self.on.items():
            if self.group[i] == g and inside[m] and not (voters and role[i] == NON_VOTER):
                change = change + one - int(self.now[i] == m)
        if not isinstance(change, int):
            self.model.add(now + change >= min(least, now))

    def _stay_near(self) -> None:
        """Where a group is, the groups that it needs must be."""
        rules, domains = self.problem.rules, self.problem.domains
        mine = np.unique(self.group).tolist()
        ties = set()
        for g in mine:
            for other, level in rules.needs[
                rules.needs_first[g] : rules.needs_first[g + 1]
            ].tolist():
                ties.add((g, other, level))
            for other, level in rules.needed[
                rules.needed_first[g] : rules.needed_first[g + 1]
            ].tolist():
                ties.add((other, g, level))
        for one, other, level in sorted(ties):
            have, need = self._inside(one, level), self._inside(other, level)
            for where in sorted(set(have) | set(need)):
                now = have.get(where, (0, 0))[0]
                there, support = need.get(where, (0, 0))
                has = self._near(one, level, where) - now
                supported = self._near(other, level, where) - there
                if supported > 0 or (has + now > 0 and supported + there == 0):
                    continue
                if has > 0:
                    self.model.add(support >= 1)
                    continue
                for (i, m), seat in self.on.items():
                    if self.group[i] == one and domains.domain[level, self.node[m]] == where:
                        self.model.add(support >= seat)

    def _near(self, g: int, level: int, where: int) -> int:
        """Replicas of a tied group in a domain, now."""
        base = self.problem.rules.near_base[g, level] - self.problem.domains.domain_offset[level]
        return int(self.state.near_count[base + where])

    def cost(self) -> Any:
        """Excess above the watermarks, out of proportion, and movement, in whole numbers."""
        walk = self.walk
        need = walk.need[self.replica]
        shape = len(self.replica), len(self.node)
        moving = np.zeros(shape)
        price_each(self.problem, self.state, self.replica, self.node, moving)
        factor = np.array([_factor(need[:, c]) for c in range(need.shape[1])])
        unit = _whole(np.append((walk.weight / factor), np.abs(moving).max(initial=0.0)), moving)
        total: Any = 0
        for c in np.flatnonzero(walk.weight > 0.0).tolist():
            dear = round(float(walk.weight[c] / factor[c] * unit))
            size = np.rint(need[:, c] * factor[c]).astype(np.int64)
            for m, n in enumerate(self.node.tolist()):
                base = walk.excess[n, c] - need[self.now == m, c].sum()
                if not np.isfinite(base):
                    continue  # a node that never pays
                fixed = int(np.ceil(base * factor[c] - NEAR))
                most = fixed + int(np.maximum(size, 0).sum())
                if most <= 0 or dear == 0:
                    continue
                over = self.model.new_int_var(0, most, "")
                self.model.add(self._weighted(m, size) + fixed <= over)
                total = total + dear * over
        for (i, m), one in self.on.items():
            price = round(float(moving[i, m] * unit))
            if price:
                total = total + price * one
        return total


def _factor(size: NDArray[np.float64]) -> float:
    """What turns loads into whole numbers: nothing where they are; else a power of two."""
    total = float(np.abs(size).sum())
    if total <= WIDEST and bool((size == np.rint(size)).all()):
        return 1.0
    return float(2.0 ** np.floor(np.log2(FINEST / max(total, 1e-200))))


def _whole(prices: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """What turns prices into whole numbers: 1 where they are; else a power of two."""
    largest = float(prices.max(initial=0.0))
    both = np.append(prices, others.ravel())
    if largest <= DEAREST and bool((both == np.rint(both)).all()):
        return 1.0
    return float(2.0 ** np.floor(np.log2(DEAREST / max(largest, 1e-200))))
