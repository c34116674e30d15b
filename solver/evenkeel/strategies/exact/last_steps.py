"""The last steps: what one replica or one leader mends is mended, whatever search came before.

A search takes steps that help where it stands; CP-SAT, out of effort, ends anywhere. Here every
single step that could mend something is tried: a leader is seated, a replica is placed, dropped or
moved, two of a partition trade their roles. One is taken if less is undone by it, the most
endangered first, while no kind of rule is broken more often and nothing is worse than it came.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import Audit, audit
from evenkeel.measure.audit.violations import KINDS
from evenkeel.measure.bounds import goals_met
from evenkeel.measure.levelness import levelness
from evenkeel.measure.regressions import baselines_of, regressions
from evenkeel.measure.wanted import has_leaders
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.strategies.exact.budgets import is_within
from evenkeel.strategies.exact.hopeless import missing_places
from evenkeel.strategies.exact.ills import endangered
from evenkeel.strategies.registry import Outcome, Request

MOST = 200
"""Steps that are tried in all: each is audited."""

SLACK = 1e-9
"""Sums of loads in another order agree within this share."""

OF_PLACES = frozenset({"unassigned", "min_active", "leader", "leaderless", "surplus", "on_dead"})
"""What is broken where no replica stands in a place of its own accord."""

Step = tuple[dict[int, int], int]
"""Replicas with the nodes that they go to, and the slot that leads then."""


def with_last_steps(request: Request, outcome: Outcome) -> Outcome:
    """Take single steps for as long as one of them mends something."""
    steps = _Steps(request, outcome)
    if not steps.taken():
        return outcome
    now = steps.now
    met = not now.audited.hard and goals_met(
        levelness(request.cluster, now.placement), request.bounds
    )
    ended = replace(outcome, node=now.placement.node, leader=now.placement.leader)
    return replace(ended, stop_reason="tolerance", message="") if met else ended


@dataclass(frozen=True)
class _Standing:
    """A placement, and what is wrong with it, the worst first."""

    placement: Placement
    audited: Audit
    undone: tuple[object, ...]

    @classmethod
    def of(cls, cluster: Cluster, placement: Placement) -> "_Standing":
        audited = audit(cluster, placement)
        waiting = int(missing_places(cluster, placement).sum())
        undone = (*endangered(cluster, placement.node), audited.hard, waiting)
        return cls(placement, audited, undone)


class _Steps:
    """Where single steps have led, and how many more may be tried."""

    def __init__(self, request: Request, outcome: Outcome) -> None:
        cluster = request.cluster
        self.request, self.cluster, self.left = request, cluster, MOST
        self._go_to(_Standing.of(cluster, cluster.placement.replaced(outcome.node, outcome.leader)))
        self._baselines = cache(lambda: baselines_of(cluster))

    def taken(self) -> bool:
        """Take them, partition by partition, until none helps; whether any was."""
        any_taken, going = False, True
        while going:
            going = False
            for p in self._ill().tolist():
                while self._one_taken(p):
                    any_taken = going = True
        return any_taken

    def _ill(self) -> NDArray[np.int64]:
        """Partitions that lack something, or that a broken rule is about."""
        cluster, placement = self.cluster, self.now.placement
        ill = missing_places(cluster, placement) > 0
        for one in self.now.audited.found:
            if KINDS[one.kind].hard and one.count:
                ill[one.partition[one.partition >= 0]] = True
                ill |= np.isin(cluster.partitions.group, one.group[one.group >= 0])
        return np.flatnonzero(ill)

    def _one_taken(self, p: int) -> bool:
        for nodes, leads in self._steps(p):
            if self.left == 0 or self.request.watch.reason is not None:
                return False
            self.left -= 1
            then = self._after(p, nodes, leads)
            if then is not None:
                self._go_to(then)
                return True
        return False

    def _go_to(self, then: _Standing) -> None:
        self.now, self._loads = then, levelness(self.cluster, then.placement).loads

    def _after(self, p: int, nodes: dict[int, int], leads: int) -> _Standing | None:
        """Return where a step leads; None if it does not mend, or makes something worse."""
        was = self.now
        node, leader = was.placement.node.copy(), was.placement.leader.copy()
        node[list(nodes)] = list(nodes.values())
        leader[p] = leads
        then = _Standing.of(self.cluster, was.placement.replaced(node, leader))
        counts = was.audited.counts
        if then.undone >= was.undone or any(
            count > counts[kind] for kind, count in then.audited.counts.items() if KINDS[kind].hard
        ):
            return None
        worse = regressions(self.cluster, then.placement, then.audited, self._baselines)
        if worse or not is_within(self.cluster, self.request.limits, then.placement):
            return None
        return then

    def _steps(self, p: int) -> Iterator[Step]:
        """Yield what one partition may try: who leads, what is placed, goes, moves, changes role."""
        cluster, placement = self.cluster, self.now.placement
        first, end = placement.first[p : p + 2].tolist()
        leads = int(placement.leader[p])
        free = [k for k in range(first, end) if not placement.flags[k] & Flag.PINNED]
        free.sort(key=lambda k: k - first == leads)  # who leads goes last
        at = {k: int(placement.node[k]) for k in range(first, end)}
        stands = [k for k, n in at.items() if n >= 0]
        able = [leads]
        if not self._is_led(p):
            votes = placement.role[first:end] == Role.VOTER
            able += [slot for slot in np.flatnonzero(votes).tolist() if slot != leads]
            yield from (({}, slot) for slot in able[1:] if first + slot in stands)
        holds, serves = cluster.nodes.may_hold, cluster.nodes.serves
        kept = sum(holds[at[k]] for k in stands)
        wanted = int(cluster.partitions.replicas[p])
        for k in free if kept < wanted else ():
            if at[k] >= 0 and (holds[at[k]] or serves[at[k]]):
                continue
            for n in self._roomy(p, k):
                yield from (
                    ({k: n}, slot) for slot in able if first + slot in (*stands, k, first - 1)
                )
        for k in free if len(stands) > wanted else ():
            if at[k] >= 0 and k - first != leads:
                yield {k: -1}, leads
                yield from (
                    ({k: -1, i: at[k]}, leads) for i in free
                    if at[i] >= 0 and placement.role[i] != placement.role[k]
                )  # fmt: skip
        if not self._breaks(p):
            return
        for k in free:
            if at[k] >= 0:
                yield from (({k: n}, leads) for n in self._roomy(p, k))
        for i, k in combinations(free, 2):
            if placement.role[i] != placement.role[k]:
                yield {i: at[k], k: at[i]}, leads

    def _is_led(self, p: int) -> bool:
        """Whether who leads a partition may, or nobody need."""
        cluster, placement = self.cluster, self.now.placement
        if not has_leaders(cluster) or cluster.partitions.replicas[p] == 0:
            return True
        at, replica = placement.leader_node[p], placement.leader_replica[p]
        votes = placement.role[replica] == Role.VOTER
        return bool(at >= 0 and votes and cluster.nodes.may_lead[at])

    def _breaks(self, p: int) -> bool:
        """Whether a partition, or its group, breaks a rule about where its replicas stand."""
        group = self.cluster.partitions.group[p]
        return any(
            bool(((one.partition == p) | (one.group == group) & (one.group >= 0)).any())
            for one in self.now.audited.found
            if KINDS[one.kind].hard and one.count and one.kind not in OF_PLACES
        )

    def _roomy(self, p: int, k: int) -> list[int]:
        """Nodes without the partition that may take a replica, and have room for it."""
        cluster, placement = self.cluster, self.now.placement
        nodes, load = cluster.nodes, cluster.partitions.load
        stood = placement.owner == p
        open_to = nodes.may_receive.copy()
        home = cluster.placement.node[stood]
        open_to[home[home >= 0]] |= nodes.may_hold[home[home >= 0]]
        here = placement.node[stood]
        open_to[here[here >= 0]] = False
        weight = (load.voter if placement.role[k] == Role.VOTER else load.non_voter)[p]
        weight = np.minimum(weight, load.leader[p])
        room = nodes.capacity * (1.0 + SLACK) - self._loads
        fits = ((weight <= room) | (weight <= 0.0)).all(axis=1)
        found: list[int] = np.flatnonzero(open_to & fits).tolist()
        return found
