"""Last steps: improve an answer by single changes, whatever search found it.

A search takes steps that help where it stands; CP-SAT, out of effort, ends anywhere. Here every
single step that could repair something is tried: elect a leader; place, drop or move a replica;
exchange the roles of two. A step is taken if it leaves less undone, the most endangered first,
while no kind of rule is broken more often and nothing is worse than initially.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import KINDS, Audit, audit
from evenkeel.measure.binding import NONE, partition_scope
from evenkeel.measure.bounds import goals_met
from evenkeel.measure.elections import would_lead
from evenkeel.measure.levelness import ROUNDING, levelness
from evenkeel.measure.loads import has_leaders
from evenkeel.measure.regressions import regressions
from evenkeel.measure.spending import exceeded
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.shared.answers import endangered
from evenkeel.methods.shared.replica_counts import missing_places
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement, Role

MOST = 200
"""Steps that are tried in all: each is audited."""

INDEPENDENT_OF_PLACES = frozenset(
    {"unassigned", "min_active", "leader", "leaderless", "surplus", "on_dead"}
)
"""Kinds of violations that do not depend on where replicas are."""

Step = tuple[dict[int, int], int]
"""Replicas with the nodes that they go to, and the slot that leads then."""


def with_last_steps(request: Request, outcome: Outcome) -> Outcome:
    """Take single steps as long as one of them repairs something."""
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
    """A placement and its violations, the worst first."""

    placement: Placement
    audited: Audit
    undone: tuple[object, ...]

    @classmethod
    def of(cls, cluster: Cluster, placement: Placement) -> "_Standing":
        audited = audit(cluster, placement)
        waiting = int(missing_places(cluster, placement.node).sum())
        undone = (*endangered(cluster, placement.node), audited.hard, waiting)
        return cls(placement, audited, undone)


@dataclass(frozen=True)
class _Row:
    """The replicas of a partition: the node of each, and those that may leave, the leader last."""

    partition: int
    first: int
    leads: int
    at: dict[int, int]
    free: list[int]
    ballots: list[int]

    @classmethod
    def of(cls, placement: Placement, p: int) -> "_Row":
        first, end = placement.first[p : p + 2].tolist()
        leads = int(placement.leader[p])
        free = [k for k in range(first, end) if not placement.flags[k] & Flag.PINNED]
        return cls(
            partition=p,
            first=first,
            leads=leads,
            at={k: int(placement.node[k]) for k in range(first, end)},
            free=sorted(free, key=lambda k: k - first == leads),
            ballots=np.flatnonzero(placement.role[first:end] == Role.VOTER).tolist(),
        )

    @property
    def standing(self) -> list[int]:
        """Those that stand somewhere, and may go."""
        return [k for k in self.free if self.at[k] >= 0]

    def votes(self, k: int) -> bool:
        return k - self.first in self.ballots


def _dropping(row: _Row) -> Iterator[Step]:
    """Yield replicas that may leave, except the leader, and replacements of another role."""
    for k in row.standing:
        if k - row.first == row.leads:
            continue
        yield {k: -1}, row.leads
        for i in row.standing:
            if row.votes(i) != row.votes(k):
                yield {k: -1, i: row.at[k]}, row.leads


class _Steps:
    """Where single steps have led, and how many more may be tried."""

    def __init__(self, request: Request, outcome: Outcome) -> None:
        cluster = request.cluster
        self.request, self.cluster, self.left = request, cluster, MOST
        self._go_to(_Standing.of(cluster, cluster.placement.replaced(outcome.node, outcome.leader)))
        topology = cluster.topology
        self._spreads = [  # no node is the last one, and stands in no domain
            (binding, np.append(topology.domain_with_nodes[topology.tier_index(binding.tier)], -1))
            for binding in partition_scope(cluster).bindings
            if binding.kind == "spread" and binding.hard
        ]

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
        ill = missing_places(cluster, placement.node) > 0
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
        """Return where a step leads; None if it does not repair, or makes something worse."""
        was = self.now
        node, leader = was.placement.node.copy(), was.placement.leader.copy()
        node[list(nodes)] = list(nodes.values())
        k = was.placement.first[p] + leads
        if leads != leader[p] and not (
            self._may_lead(node[k]) and would_lead(self.cluster, node)[k]
        ):
            return None
        leader[p] = leads
        if self._crowds(p, node):
            return None
        after = was.placement.replaced(node, leader)
        if exceeded(self.cluster, after, self.request.limits):
            return None
        then = _Standing.of(self.cluster, after)
        counts = was.audited.counts
        if then.undone >= was.undone or any(
            count > counts[kind] for kind, count in then.audited.counts.items() if KINDS[kind].hard
        ):
            return None
        worse = regressions(self.cluster, then.placement, then.audited)
        return None if worse else then

    def _crowds(self, p: int, node: NDArray[np.int32]) -> bool:
        """Return whether more replicas would share domains than may; this needs no audit."""
        first, end = self.now.placement.first[p : p + 2].tolist()
        more = {True: 0, False: 0}  # on a node, and elsewhere: two kinds of violation
        for binding, domain in self._spreads:
            if binding.amount[p] == NONE:
                continue
            for sign, stands in ((1, node), (-1, self.now.placement.node)):
                at = domain[stands[first:end]]
                beyond = np.maximum(np.bincount(at[at >= 0]) - binding.amount[p], 0)
                more[binding.tier == "node"] += sign * int(beyond.sum())
        return any(count > 0 for count in more.values())

    def _may_lead(self, n: int) -> bool:
        return n >= 0 and bool(self.cluster.nodes.may_lead[n])

    def _steps(self, p: int) -> Iterator[Step]:
        """Yield what a partition may try, what takes the least first."""
        cluster = self.cluster
        row = _Row.of(self.now.placement, p)
        able = [row.leads]
        if not self._is_led(p):
            able += [slot for slot in row.ballots if slot != row.leads]
            yield from (({}, slot) for slot in able[1:] if row.at[row.first + slot] >= 0)
        kept = sum(bool(cluster.nodes.may_hold[n]) for n in row.at.values() if n >= 0)
        wanted = int(cluster.partitions.replicas[p])
        if kept < wanted:
            yield from self._placing(row, able)
        if sum(n >= 0 for n in row.at.values()) > wanted:
            yield from _dropping(row)
        if self._breaks(p):
            for k in row.standing:
                yield from (({k: n}, row.leads) for n in self._roomy(p, k))
            for i, k in combinations(row.free, 2):
                if row.votes(i) != row.votes(k):
                    yield {i: row.at[k], k: row.at[i]}, row.leads

    def _placing(self, row: "_Row", able: list[int]) -> Iterator[Step]:
        """Yield nodes for replicas without a live node, and the leader then."""
        nodes = self.cluster.nodes
        for k in row.free:
            at = row.at[k]
            if at >= 0 and (nodes.may_hold[at] or nodes.serves[at]):
                continue
            for n in self._roomy(row.partition, k):
                then = row.at | {k: n}
                yield from (
                    ({k: n}, slot) for slot in able if slot < 0 or then[row.first + slot] >= 0
                )

    def _is_led(self, p: int) -> bool:
        """Return whether the leader of a partition may lead, or it needs none."""
        cluster, placement = self.cluster, self.now.placement
        if not has_leaders(cluster) or cluster.partitions.replicas[p] == 0:
            return True
        at, replica = placement.leader_node[p], placement.leader_replica[p]
        votes = placement.role[replica] == Role.VOTER
        return bool(votes) and self._may_lead(at)

    def _breaks(self, p: int) -> bool:
        """Return whether a partition or its group breaks a rule about its nodes."""
        group = self.cluster.partitions.group[p]
        return any(
            bool(((one.partition == p) | (one.group == group) & (one.group >= 0)).any())
            for one in self.now.audited.found
            if KINDS[one.kind].hard and one.count and one.kind not in INDEPENDENT_OF_PLACES
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
        room = nodes.capacity * (1.0 + ROUNDING) - self._loads
        fits = ((weight <= room) | (weight <= 0.0)).all(axis=1)
        found: list[int] = np.flatnonzero(open_to & fits).tolist()
        return found
