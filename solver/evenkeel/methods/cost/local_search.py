"""Polishing what a search found: descent by moves that are too rare for it to draw at random.

Three kinds of move, cheap ones first: what is on two nodes divided anew, exactly
(`evenkeel_kernels.cost.two_node_exact`); chains and cycles of up to three replicas
(`evenkeel_kernels.cost.ejection_chains`); large replicas forced onto a node
(`evenkeel_kernels.cost.forced_insertion`). It ends where none of them helps.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.shared.stopping import Watch
from evenkeel_kernels.core.by_node import by_node
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.core.state import relocate
from evenkeel_kernels.cost.compound_move import new_joint
from evenkeel_kernels.cost.cost_state import CostState, tighten
from evenkeel_kernels.cost.ejection_chains import eject, new_arcs
from evenkeel_kernels.cost.forced_insertion import displace_each, new_forced
from evenkeel_kernels.cost.two_node_exact import new_division, repartition_each

SLICE = 1 << 18
"""Candidates between two looks at the clock."""

MOST_PAIRS = 20_000
"""All pairs of nodes are tried where there are no more."""

PARTNERS = 40
"""Otherwise so many, drawn at random, for each node."""

ITEMS, BRANCHES = 28, 2_000
"""Replicas of two nodes that are divided anew, and branches looked at for it."""

LOOKED_AT = 4 * ITEMS
"""Replicas of two nodes that are asked whether they may be items."""

WINDOW = 1_000
"""Replicas in a window for chains and cycles."""

DISPLACED = 4
"""Replicas that move when a large one is forced onto a node."""

LARGE_PART, LARGE_NODES = 0.05, 30
"""Part of the replicas that is forced onto other nodes, and onto how many."""


@dataclass
class Polished:
    """What polishing did."""

    work: int = 0
    gain: dict[str, float] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)
    spent: dict[str, int] = field(default_factory=dict)
    finished: bool = False


def polish(
    problem: Problem,
    state: State,
    walk: CostState,
    watch: Watch,
    work: int,
    seed: int = 0,
) -> Polished:
    """Descend from the best state of a search.

    References
    ----------
    Gavranović, Buljubašić: An efficient local search with noising strategy for Google machine
    reassignment problem, Annals of Operations Research 242 (2016), for the kinds of move.
    """
    done = Polished()
    if not np.isfinite(walk.total[1]) or len(walk.item) == 0 or len(walk.cost) < 2:
        return done
    run = _Run(problem, state, walk, watch, work, np.random.default_rng(seed % 2**64), done)
    run.take_best()
    while not run.over():
        before = float(walk.total[0])
        for turn in (run.divide, run.eject, run.displace):
            turn()
        if walk.total[0] >= before:
            done.finished = not run.over()
            break
    return done


class _Run:
    """One polishing: what it works on, and how much is left."""

    def __init__(
        self,
        problem: Problem,
        state: State,
        walk: CostState,
        watch: Watch,
        work: int,
        random: np.random.Generator,
        done: Polished,
    ) -> None:
        self.problem, self.state, self.walk, self.watch = problem, state, walk, watch
        self.work, self.random, self.done = work, random, done
        self.nodes = len(walk.cost)
        self.seen = np.full_like(walk.excess, np.nan)  # (N, C) when all chains had been tried

    def over(self) -> bool:
        """Whether time or work has run out."""
        return self.done.work >= self.work or self.watch.out_of_time or self.watch.halted

    def take_best(self) -> None:
        """Bring state and counters to the best state."""
        walk, state = self.walk, self.state
        astray = np.sort(walk.astray[: walk.astray_count[0]]).astype(np.int64)
        relocate(self.problem, state, astray, walk.best[astray])
        walk.is_astray[astray] = False
        walk.astray_count[0] = 0
        walk.penalty_weight[:] = 1.0
        tighten(self.problem, state, walk, np.ones(walk.room.shape[1]), 1.0, 1.0)
        walk.total[0] = walk.total[1]

    def _book(self, kind: str, before: float, made: int, work: int) -> None:
        done = self.done
        done.work += work
        done.gain[kind] = done.gain.get(kind, 0.0) + before - float(self.walk.total[0])
        done.made[kind] = done.made.get(kind, 0) + made
        done.spent[kind] = done.spent.get(kind, 0) + work

    def _slice(self) -> int:
        return max(1, min(SLICE, self.work - self.done.work))

    def _hottest(self) -> NDArray[np.int64]:
        return np.argsort(-self.walk.cost, kind="stable").astype(np.int64)

    def _pairs(self) -> NDArray[np.int64]:
        """Pairs of nodes, those with the hottest node first."""
        order = self._hottest()
        if self.nodes * (self.nodes - 1) // 2 <= MOST_PAIRS:
            one, other = np.triu_indices(self.nodes, 1)
            return np.stack([order[one], order[other]], axis=1)
        one = np.repeat(np.arange(self.nodes), PARTNERS)
        other = self.random.integers(0, self.nodes - 1, len(one))
        other += other >= one
        return np.stack([order[one], order[other]], axis=1)

    def _shuffled(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The replicas of each node that may move, in random order."""
        node = self.state.node.copy()
        node[~self.problem.partitions.movable] = -1
        first, member = by_node(node, self.nodes)
        owner = np.repeat(np.arange(self.nodes), np.diff(first))
        return first, member[np.lexsort((self.random.random(len(member)), owner))]

    def divide(self) -> None:
        """Divide pairs of nodes anew."""
        walk = self.walk
        division = new_division(ITEMS, len(walk.weight), walk.room.shape[1])
        joint, replica = new_joint(2 * ITEMS), np.zeros(LOOKED_AT, np.int64)
        pair = self._pairs()
        at = 0
        first, member = self._shuffled()
        while at < len(pair) and not self.over():
            before = float(walk.total[0])
            at, work, made = repartition_each(
                self.problem, self.state, walk, division, joint, pair, first, member, replica,
                at, BRANCHES, self._slice(),
            )  # fmt: skip
            self._book("divide", before, made, work)
            if made:
                first, member = self._shuffled()

    def _windows(self) -> Iterator[NDArray[np.int64]]:
        """All nodes if their replicas are few enough; else groups of them, each node in one."""
        count = np.bincount(self.state.node[self.walk.item], minlength=self.nodes)
        if count.sum() <= WINDOW * 1.5:
            yield np.arange(self.nodes)
            return
        order = self.random.permutation(self.nodes).astype(np.int64)
        part = np.cumsum(count[order]) // WINDOW
        for which in np.unique(part).tolist():
            yield order[part == which]

    def eject(self) -> None:
        """Make chains and cycles, window by window."""
        for node in self._windows():
            if self.over():
                return
            if len(node) > 1 and self.walk.cost[node].sum() + self._misplaced(node) > 0.0:
                self._eject_in(node)

    def _misplaced(self, node: NDArray[np.int64]) -> int:
        """Replicas on some nodes whose home is elsewhere."""
        state, home = self.state, self.problem.partitions.home
        return int((np.isin(state.node, node) & (state.node != home)).sum())

    def _eject_in(self, node: NDArray[np.int64]) -> None:
        walk, state = self.walk, self.state
        place = np.full(self.nodes, -1, np.int64)
        place[node] = np.arange(len(node))
        replica = walk.item[place[state.node[walk.item]] >= 0].astype(np.int64)
        arcs, joint = new_arcs(node, replica), new_joint(3)
        whole = len(node) == self.nodes
        was = self.seen if whole else np.full_like(self.seen, np.nan)
        while not self.over():
            # what passes through no node that has changed was looked at already
            turn = np.flatnonzero((was != walk.excess).any(axis=1)[state.node[replica]])
            was = walk.excess.copy()
            if len(turn) == 0:
                break
            at = 0
            while at < len(turn) and not self.over():
                before = float(walk.total[0])
                at, work, made = eject(
                    self.problem, state, walk, place, arcs, joint, turn, at, self._slice()
                )
                self._book("eject", before, made, work)
        else:
            return
        if whole:
            self.seen = was

    def displace(self) -> None:
        """Force the largest replicas on nodes that cost something onto others."""
        walk, state = self.walk, self.state
        hot = walk.item[walk.cost[state.node[walk.item]] > 0.0]
        large = hot[: max(1, int(LARGE_PART * len(walk.item)))]  # items come largest first
        others = min(LARGE_NODES, self.nodes)
        onto = np.array([self.random.permutation(self.nodes)[:others] for _ in large])
        trial = np.stack([np.repeat(large, others), onto.reshape(-1)], axis=1).astype(np.int64)
        forced = new_forced(self.nodes, len(walk.weight), walk.room.shape[1])
        joint = new_joint(DISPLACED)
        first, member = self._shuffled()
        at = 0
        while at < len(trial) and not self.over():
            before = float(walk.total[0])
            at, work, made = displace_each(
                self.problem, state, walk, forced, joint, trial, first, member, at, self._slice()
            )
            self._book("displace", before, made, work)
            if made:
                first, member = self._shuffled()
