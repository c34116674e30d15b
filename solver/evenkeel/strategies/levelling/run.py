"""The ``balance`` method: mend, re-home, level with the fewest moves, and stop there.

1. Replicas too many are dropped; those that must leave, and those missing, wait to be placed. Rules
   broken between replicas are mended, one move at a time.
2. The descent places them, together with the fewest replicas that over-full nodes must give away,
   and brings every node below its target (`evenkeel_kernels.levelling.descent`).
3. A replica that fits nowhere takes the room of smaller ones, which go elsewhere.
4. What could not be mended for want of room is tried again.
5. Two replicas of a partition move at once, where single moves did not level all; and where all of
   it was hardly worth while, everything stays.
6. Where replicas are few, what was found is refined
   (`evenkeel.strategies.levelling.small_clusters`).
7. Wished-for limits give way where a replica would otherwise have no node.
8. Moves beyond the budgets are taken back, repairs last of all.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import Audit, audit
from evenkeel.measure.audit.limits import broken_limits
from evenkeel.measure.audit.terms import broken_terms
from evenkeel.measure.tally import PlacementCounts
from evenkeel.measure.wanted import has_leaders
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.rules import Rule
from evenkeel.strategies.levelling.make_room import make_room
from evenkeel.strategies.levelling.move_budget import is_limited, keep_within
from evenkeel.strategies.levelling.pair_moves import move_pairs
from evenkeel.strategies.levelling.small_clusters import LARGEST, Refining
from evenkeel.strategies.registry import Outcome, Request
from evenkeel.strategies.shared.compile import compile_problem, compile_state
from evenkeel.strategies.shared.replica_counts import kept, serving, slots_to_fill, surplus_replicas
from evenkeel.strategies.shared.size import size_of
from evenkeel.strategies.shared.stopping import Progress, StopReason
from evenkeel_kernels.core.node_scan import new_scan
from evenkeel_kernels.core.problem import Problem, State
from evenkeel_kernels.core.state import relocate
from evenkeel_kernels.levelling.best_fit import best_fit, largest_first
from evenkeel_kernels.levelling.descent import descend, moves_made
from evenkeel_kernels.levelling.leader_moves import prefer
from evenkeel_kernels.levelling.penalty import highest, new_gauge
from evenkeel_kernels.levelling.repair import homeless, mend

UNLIMITED = 2**62
WORTH_MOVING = 0.9  # part of the excess that may be left if moves are to be made for it at all
NO_TARGET = 1e29  # 1 / the target of a node that may carry nothing
MISLED = 0.1  # part of the partitions that may be led from a worse choice where replicas stay
WORTH_DESCENDING = 0.5  # part of the excess that pairs left, below which single moves go on


def levelled(request: Request) -> Outcome:
    """Mend, place and level by search, and refine what was found where replicas are few."""
    return _Thorough.begin(request).finish()


def searched(request: Request) -> Outcome:
    """Mend, place and level by search, without refining."""
    return _Balancing.begin(request).finish()


@dataclass
class _Balancing:
    """One run: the problem, its state, and what was decided before the descent."""

    request: Request
    problem: Problem
    state: State
    forced: NDArray[np.bool_]
    dropped: NDArray[np.bool_]
    most_leaders: NDArray[np.float64]
    timings: dict[str, float] = field(default_factory=dict)
    work: int = 0
    stop: StopReason | None = None

    @classmethod
    def begin(cls, request: Request) -> Self:
        """Compile the cluster, drop what is too many, and mark what must move."""
        started = time.perf_counter()
        cluster = request.cluster
        problem = compile_problem(
            cluster,
            np.ascontiguousarray(request.bounds.target.T),
            np.ones(len(cluster.dimensions)),
        )
        state = compile_state(cluster, problem, request.start)
        dropped = _drop_surplus(cluster, problem, state)
        keeps = cluster.nodes.may_hold
        forced = homeless(problem, state, keeps)
        forced &= (state.node >= 0) | slots_to_fill(cluster, serving(cluster, state.node))
        run = cls(request, problem, state, forced, dropped, request.bounds.leader_target)
        run.timings["compile"] = time.perf_counter() - started
        return run

    def finish(self) -> Outcome:
        """Descend, mend and keep to the budgets, as far as clock, work and caller allow."""
        before, due = self._excess(), self.dropped.any() or not self._nothing_due()
        try:
            with self._timed("mend"):
                broken = self._broken()
                if broken:
                    self._mend()
            with self._timed("level"):
                self._descend(self.request.seed)
            if broken and self.stop is None and self._mend():
                with self._timed("level again"):
                    self._descend(self.request.seed)
            with self._timed("pairs"):
                self._move_pairs()
            with self._timed("refine"):
                refined = self._refine()
            free = self.stop is None and not is_limited(self.request.limits)
            if free and not (refined or due or broken) and not self._is_worth_it(before):
                self._restart_from(self.request.start.node, self.request.start.leader)
            self._place_past_wishes()
            if self._misled():
                prefer(self.problem, self.state, new_gauge(self.problem, self.most_leaders, 1.0))
        except KeyboardInterrupt:
            self.stop = "interrupted"
        message = ""
        with self._timed("limits"):
            if is_limited(self.request.limits) and self._keep_budgets():
                self.stop = "limits"
                message = "The budgets are used up; what they left undone is as it was."
        return Outcome(
            node=self._nodes(),
            leader=self._leaders(self.state.leader),
            stop_reason=self.stop or self._reached(),
            message=message,
            work=self.work,
            timings=self.timings,
        )

    def _at_rest(self) -> bool:
        """Whether nothing must move, every leader may lead, and every node is within its target."""
        gauge = new_gauge(self.problem, self.most_leaders, 1.0)
        return self._nothing_due() and highest(self.state, gauge) <= 1.0

    def _nothing_due(self) -> bool:
        """Whether nothing must move, and every leader may lead."""
        if self.forced.any() or self._is_worth_leading():
            return False
        state, partitions = self.state, self.problem.partitions
        leads = np.append(self.problem.nodes.leads, False)
        replica = partitions.first[:-1] + np.maximum(state.leader, 0)
        led = (state.leader >= 0) & (partitions.first[1:] > partitions.first[:-1])
        led[led] = leads[state.node[replica[led]]]
        return bool(led.all()) or not has_leaders(self.request.cluster)

    def _excess(self) -> float:
        """How far all nodes together are above their targets, in units of these."""
        gauge = new_gauge(self.problem, self.most_leaders, 1.0)
        scale = np.where(gauge.scale < NO_TARGET, gauge.scale, 0.0)
        leader_scale = np.where(gauge.leader_scale < NO_TARGET, gauge.leader_scale, 0.0)
        over = np.maximum(self.state.load * scale - 1.0, 0.0).sum()
        return float(over + np.maximum(self.state.leaders * leader_scale - 1.0, 0.0).sum())

    def _is_worth_leading(self) -> bool:
        """Whether so many are led from a worse choice of their rule that replicas may move for it.

        Where these choices and the targets contend for room, some always are, and each run would
        find others. On a small cluster any is one too many.
        """
        misled = self._misled()
        if size_of(self.request.cluster) <= LARGEST:
            return misled > 0
        return misled > MISLED * len(self.state.leader)

    def _misled(self) -> int:
        """Count the partitions that are led from a worse choice of their rule than could be."""
        cluster = self.request.cluster
        if not any(rule.lead for rule in cluster.rules):
            return 0
        found = broken_terms(PlacementCounts.of(cluster, self._now()))
        return sum(len(one.amount) for one in found if one.kind == "lead")

    def _descend(self, seed: int) -> None:
        """Take the pieces of the descent until it ends or must stop; the most level one stands."""
        if self._at_rest():
            return
        best: tuple[float, NDArray[np.int32], NDArray[np.int16]] | None = None
        level = np.inf
        before = self.work
        gauge = new_gauge(self.problem, self.most_leaders, 1.0)
        for piece in descend(
            self.problem, self.state, self.forced, self.most_leaders, self._moves_left(), seed
        ):
            level = piece.highest
            if best is None and self._make_room():
                level = highest(self.state, gauge)
            self.work = before + piece.steps
            if best is None or level < best[0]:
                best = (level, self.state.node.copy(), self.state.leader.copy())
            self.stop = self.request.watch.stop(
                Progress(
                    stage=piece.stage,
                    work=self.work,
                    seconds=self.request.watch.seconds,
                    moves=moves_made(self.problem, self.state, self.forced),
                    cost=max(0.0, level - 1.0),
                )
            )
            if self.stop is not None:
                break
        if best is not None and best[0] < level and level > 1.0:
            self._restart_from(best[1], best[2])

    def _broken(self) -> bool:
        """Whether rules are broken that moves can mend; no move breaks one that was not.

        Who leads is another matter: see `_is_worth_leading`.
        """
        standing = PlacementCounts.of(self.request.cluster, self.request.start)
        found = broken_limits(standing) + broken_terms(standing)
        return any(one.count for one in found if one.kind != "lead")

    def _mend(self) -> bool:
        """Mend broken rules, one move at a time; whether a node is too full afterwards."""
        scan = new_scan(self.problem, np.zeros(self.problem.nodes.watermark.shape[0]))
        left = self._moves_left() - moves_made(self.problem, self.state, self.forced)
        if mend(self.problem, self.state, scan, 0, len(self.state.leader), left) == 0:
            return False
        gauge = new_gauge(self.problem, self.most_leaders, 1.0)
        return highest(self.state, gauge) > 1.0

    def _make_room(self) -> bool:
        """Place what fits nowhere in the room of smaller ones; whether anything was."""
        return make_room(self.problem, self.state, self.forced, self._moves_left()) > 0

    def _is_worth_it(self, before: float) -> bool:
        """Whether all is level, or nodes are a good deal less above their targets than ``before``.

        Where goals cannot be reached, every run finds something a little better; each would move
        replicas for it, and the next one others.
        """
        after = self._excess()
        return after == 0.0 or after < WORTH_MOVING * before

    def _refine(self) -> bool:
        """Go beyond what the search found; whether what stands now comes from that."""
        return False

    def _now(self) -> Placement:
        return self.request.cluster.placement.replaced(self.state.node, self.state.leader)

    def _move_pairs(self) -> None:
        """Move two replicas of a partition at once, where single moves did not level all."""
        gauge = new_gauge(self.problem, self.most_leaders, 1.0)
        if self.stop is not None or highest(self.state, gauge) <= 1.0:
            return
        left = self._moves_left() - moves_made(self.problem, self.state, self.forced)
        excess = highest(self.state, gauge) - 1.0
        move_pairs(self.problem, self.state, gauge, left, self.request.watch)
        if highest(self.state, gauge) - 1.0 < WORTH_DESCENDING * excess:
            self._descend(self.request.seed)

    def _place_past_wishes(self) -> None:
        """Place what only wished-for limits keep from having a node."""
        waiting = self.forced & (self.state.node < 0)
        if not waiting.any() or not any(_wishes(rule) for rule in self.request.cluster.rules):
            return
        cluster = self.request.cluster
        now = cluster.placement.replaced(self.state.node, self.state.leader)
        nodes = self.problem.nodes
        self.problem = compile_problem(cluster, nodes.watermark, nodes.weight, soft=False)
        self.state = compile_state(cluster, self.problem, now)
        scan = new_scan(self.problem, np.zeros(nodes.watermark.shape[0]))
        order = largest_first(self.problem, waiting)
        may_wait = self.state.leader >= 0
        best_fit(self.problem, self.state, scan, order, waiting, may_wait, 1.0, 0, len(order))

    def _keep_budgets(self) -> bool:
        gauge = new_gauge(self.problem, self.most_leaders, 1.0)
        cluster = self.request.cluster
        return keep_within(
            self.problem, self.state, gauge, self.request.limits, self.forced,
            cluster.bytes_dimension,
        )  # fmt: skip

    def _moves_left(self) -> int:
        most = self.request.limits.moves
        return UNLIMITED if most is None else max(0, most - int(self.forced.sum()))

    def _reached(self) -> StopReason:
        gauge = new_gauge(self.problem, self.most_leaders, 1.0)
        return "tolerance" if highest(self.state, gauge) <= 1.0 else "exhausted"

    def _restart_from(self, node: NDArray[np.int32], leader: NDArray[np.int16]) -> None:
        placement = self.request.cluster.placement.replaced(node, leader)
        self.state = compile_state(self.request.cluster, self.problem, placement)

    def _nodes(self) -> NDArray[np.int32]:
        """Nodes of the result: what found none is where it was while its partition is short."""
        node = self.state.node
        return np.where(self.dropped, node, kept(self.request.cluster, node))

    def _leaders(self, leader: NDArray[np.int16]) -> NDArray[np.int16]:
        """Leading slots: a cluster that knows no leaders is given none, and none is lost."""
        was = self.request.cluster.placement.leader
        return np.where(leader < 0, was, leader) if has_leaders(self.request.cluster) else was

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.timings[stage] = time.perf_counter() - started


class _Thorough(_Balancing):
    """A run that refines where replicas are few."""

    def _audited(self, placement: Placement) -> Audit:
        """Audit a placement with the leaders that it would be handed out with."""
        leader = self._leaders(placement.leader)
        return audit(self.request.cluster, placement.replaced(placement.node, leader))

    def _refine(self) -> bool:
        """Refine what was found."""
        request, cluster = self.request, self.request.cluster
        if self.stop is not None or size_of(cluster) > LARGEST or is_limited(request.limits):
            return False
        before = self.work

        def goes_on(done: int, level: float) -> bool:
            self.work = before + done
            moves = moves_made(self.problem, self.state, self.forced)
            cost = max(0.0, level - 1.0)
            seconds = request.watch.seconds
            self.stop = request.watch.stop(Progress("refine", self.work, seconds, moves, cost))
            return self.stop is None

        run = Refining(
            cluster, self.problem, compile_state(cluster, self.problem, self._now()),
            (request.start.node.copy(), request.start.leader.copy()), self.forced,
            self.most_leaders, int(request.bounds.moves_level), request.seed, goes_on,
        )  # fmt: skip
        if not run.found():
            return False
        better = cluster.placement.replaced(run.best.node, run.best.leader)
        kinds = self._audited(self._now()).counts
        if any(n > kinds[kind] for kind, n in self._audited(better).counts.items()):
            return False
        self._restart_from(better.node, better.leader)
        return True


def _drop_surplus(cluster: Cluster, problem: Problem, state: State) -> NDArray[np.bool_]:
    """Put replicas beyond those wanted nowhere, and say which they are, (K,) bool."""
    with np.errstate(over="ignore"):  # load on a node without capacity
        pressure = (state.load * problem.nodes.inverse).max(axis=0, initial=0.0)
    surplus = surplus_replicas(cluster, serving(cluster, state.node), pressure)
    dropped = np.zeros(len(state.node), bool)
    if len(surplus):
        dropped[surplus] = True
        relocate(problem, state, surplus, np.full(len(surplus), -1, np.int32))
    return dropped


def _wishes(rule: Rule) -> bool:
    return any(not limit.hard for limit in rule.limits())
