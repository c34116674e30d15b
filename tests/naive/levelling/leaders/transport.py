"""Choosing leaders anew in plain Python: one sweep, one trade, and the linear program's least."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from evenkeel_kernels.core.problem import VOTER, Problem, State
from tests.support.small_problems import Small

LEAST_GAIN = 1e-9


def list_choices(
    problem: Problem, state: State, resource: list[int], mean_scale: list[float]
) -> list[tuple[int, list[int]]]:
    """List the partitions that have a choice, the heaviest lead first, with slots that may lead."""
    partitions, found = problem.partitions, []
    for p, leader in enumerate(state.leader.tolist()):
        rank, first = problem.rules.lead_rank[partitions.rule[p]], partitions.first[p]
        slots = [
            slot
            for slot, n in enumerate(state.node[first : partitions.first[p + 1]].tolist())
            if n >= 0 and state.role[first + slot] == VOTER and problem.nodes.leads[n]
            and rank[n] < 255
        ]  # fmt: skip
        if leader not in slots:
            continue
        least = rank[state.node[first + leader]]
        slots = [s for s in slots if s == leader or rank[state.node[first + s]] <= least]
        extra = partitions.leader_load[p] - partitions.voter_load[p]
        adds = [1.0 if e < 0 else abs(extra[e]) for e in resource]
        share = max((a * m for a, m in zip(adds, mean_scale, strict=True)), default=0.0)
        if share > 0.0 and len(slots) > 1:
            found.append((-math.frexp(share * share)[1], p, slots))
    return [(p, slots) for _, p, slots in sorted(found)]


@dataclass
class Plain:
    """Who could lead, what that adds, and what nodes are charged for."""

    nodes: list[list[int]]  # of each partition's choices
    taken: list[int]
    fee: list[list[float]]  # leader changes that each of them costs
    extra: list[list[float]]
    scale: list[list[float]]
    above: list[list[float]]
    stiffness: list[float]
    cell: list[list[int]]  # of each choice, -1 for none
    led: dict[int, int]  # leads of each cell, as they are, should be and may be
    least: dict[int, int]
    most: dict[int, int]

    def keeps(self, m: int, choice: int) -> bool:
        """Whether cells stay within their numbers if ``m`` took ``choice``."""
        here, there = self.cell[m][self.taken[m]], self.cell[m][choice]
        alike = here == there
        return alike or (self.led[here] > self.least[here] and self.led[there] < self.most[there])

    def keep_both(self, m: int, choice: int, q: int, to: int) -> bool:
        """Whether they do if ``q`` took ``to`` as well: in exchange, or each for itself."""
        ends = self.cell[m][self.taken[m]], self.cell[m][choice]
        exchange = (self.cell[q][to], self.cell[q][self.taken[q]]) == ends
        return exchange or (self.keeps(m, choice) and self.keeps(q, to))

    def charge(self, m: int, n: int, sign: float) -> float:
        """Change of what node ``n`` is charged if it led ``m``, or no longer did."""
        change = 0.0
        for e, stiffness in enumerate(self.stiffness):
            before = self.above[n][e]
            after = before + sign * self.extra[m][e] * self.scale[n][e]
            change += stiffness * (max(after, 0.0) ** 2 - max(before, 0.0) ** 2)
        return change

    def changed(self, m: int, choice: int) -> float:
        """How many more leaders have changed if ``m`` took ``choice``."""
        return self.fee[m][choice] - self.fee[m][self.taken[m]]

    def take(self, m: int, choice: int) -> None:
        """Let ``m`` be led from ``choice``."""
        for n, sign in ((self.nodes[m][self.taken[m]], -1.0), (self.nodes[m][choice], 1.0)):
            for e in range(len(self.stiffness)):
                self.above[n][e] += sign * self.extra[m][e] * self.scale[n][e]
        for at, by in ((self.taken[m], -1), (choice, 1)):
            self.led[self.cell[m][at]] += by
        self.taken[m] = choice

    def cost(self) -> float:
        """What all nodes are charged, and the leaders changed."""
        changes = sum(fee[t] for t, fee in zip(self.taken, self.fee, strict=True))
        squares = (max(a, 0.0) ** 2 * s for row in self.above for a, s in
                   zip(row, self.stiffness, strict=True))  # fmt: skip
        return changes + sum(squares)

    def sweep(self) -> int:
        """Let each partition in turn be led from where it costs least."""
        made = 0
        for m, nodes in enumerate(self.nodes):
            best, least = self.taken[m], -LEAST_GAIN
            for choice, there in enumerate(nodes):
                if choice == self.taken[m] or not self.keeps(m, choice):
                    continue
                change = self.changed(m, choice) + (
                    self.charge(m, nodes[self.taken[m]], -1.0) + self.charge(m, there, 1.0)
                )
                if change < least:
                    best, least = choice, change
            if best != self.taken[m]:
                self.take(m, best)
                made += 1
        return made

    def best_trade(self, here: int) -> float:
        """Cost after the best that ``here`` can do: hand one on, and who takes it another one."""
        least = self.cost()
        for m, nodes in enumerate(self.nodes):
            was = self.taken[m]
            if nodes[was] != here:
                continue
            for choice, there in enumerate(nodes):
                if there == here:
                    continue
                keeps, pairs = self.keeps(m, choice), {
                    (q, to) for q, others in enumerate(self.nodes) for to in range(len(others))
                    if q != m and self.keep_both(m, choice, q, to)
                }  # fmt: skip
                self.take(m, choice)
                least = min(least, self.cost()) if keeps else least
                for q, others in enumerate(self.nodes):
                    before = self.taken[q]
                    if q == m or others[before] != there:
                        continue
                    for to in range(len(others)):
                        if (q, to) not in pairs:
                            continue
                        self.take(q, to)
                        least = min(least, self.cost())
                        self.take(q, before)
                self.take(m, was)
        return least


def fewest_changes(small: Small, node: np.ndarray, most: np.ndarray) -> float:
    """Leaders that must change with replicas on ``node``, by the linear program; inf if none do."""
    rows = node.reshape(len(small.placement), -1)
    p, slot = np.nonzero(rows >= 0)
    at = rows[p, slot]
    fits = np.array(small.leads)[at]
    p, slot, at = p[fits], slot[fits], at[fits]
    came = np.array([row[s] if s >= 0 else -1 for row, s in
                     zip(small.placement, small.leader, strict=True)])  # fmt: skip
    changes = (at != came[p]).astype(float)
    nodes, count = len(small.zone), len(p)
    above, room = [], []
    for d in range(small.load.shape[1]):
        base = np.zeros(nodes)
        np.add.at(base, rows[rows >= 0], np.repeat(small.load[:, d], (rows >= 0).sum(axis=1)))
        counted = np.isfinite(small.watermark[:, d])
        table = sparse.csr_matrix((small.extra[p, d], (at, np.arange(count))), (nodes, count))
        above.append(table[counted])
        room.append((small.watermark[:, d] - base)[counted] + 1e-9)
    counted = np.isfinite(most)
    above.append(
        sparse.csr_matrix((np.ones(count), (at, np.arange(count))), (nodes, count))[counted]
    )
    room.append(most[counted])
    led, index = np.unique(p, return_inverse=True)
    once = sparse.csr_matrix((np.ones(count), (index, np.arange(count))), (len(led), count))
    solved = linprog(
        changes, A_ub=sparse.vstack(above), b_ub=np.concatenate(room), A_eq=once,
        b_eq=np.ones(len(led)), bounds=(0, 1), method="highs",
    )  # fmt: skip
    return float(solved.fun) if solved.x is not None else float("inf")
