"""Check that intermediate states keep every rule that both start and target keep."""

from collections.abc import Callable
from functools import cached_property
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import (
    Scope,
    eligible_domains,
    nodes_of,
    nodes_that_meet,
    partition_scope,
)
from evenkeel.measure.elections import ANYWHERE, electable
from evenkeel.measure.loads import utilisation
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Role
from evenkeel.model.reading.arrays import Flags, Ints32, Ints64, Roles, Rows
from evenkeel.model.rules import Limit, Term
from evenkeel.planning.changes.transition_table import TransitionTable
from evenkeel.planning.throttle import Protocol

Nodes = Ints32
# A function of nodes and roles, (n, W), -1 for none, to the rows that keep a rule, (n,). Where the
# last column is another node of a replica that is under way, the third argument says in which
# column, (n,), its own node is. It counts once in a domain, and where it is to stay.
Test = Callable[[Nodes, Roles, Rows | None], Flags]

FEW = 64  # rows of which all pairs of columns are compared at once
# a function of current nodes and copy targets, (n, W), to the rows that keep a rule
LearnerTest = Callable[[Nodes, Nodes], Flags]


def rule_tests(cluster: Cluster, scope: Scope, q: int) -> list[Test]:
    """Return a test for every hard rule that binds a partition of a class by itself."""
    demands, serves = scope.demands[q], cluster.nodes.serves
    tests = [_limit_test(cluster, scope, q, limit) for limit in demands.limits if limit.hard]
    for term in demands.terms:
        mask = nodes_of(cluster, term)
        tests.append(_inside_test(mask | ~serves if term.for_all else mask & serves, term))
    return tests


def learner_tests(cluster: Cluster, scope: Scope, q: int) -> list[LearnerTest]:
    """Return a test for every hard rule that binds learners, which neither serve nor vote."""
    demands = scope.demands[q]
    limits = [limit for limit in demands.limits if limit.hard and limit.kind == "spread"]
    tests = [_crowd_test(cluster, limit) for limit in limits]
    required = [nodes_that_meet(cluster, [text]) for text in demands.required(voters=False)]
    return tests + [_learner_inside_test(mask) for mask in required]


def _learner_inside_test(mask: Flags) -> LearnerTest:
    """Test that all that is copied is copied to the nodes of a mask."""
    inside = np.append(mask, True)
    return lambda before, after: np.asarray(inside[after].all(1))


def _crowd_test(cluster: Cluster, limit: Limit) -> LearnerTest:
    """Test that no domain has too many; a replica counts once where its learner is beside it."""
    domain_of = serving_domains(cluster, cluster.topology.tier_index(limit.tier))

    def keeps(before: Nodes, after: Nodes) -> Flags:
        here, there = domain_of[before].T, domain_of[after].T
        joined = np.where(here == there, np.int32(-1), there)
        return np.asarray(most_in_one(np.vstack([here, joined])) <= limit.amount)

    return keeps


def _limit_test(cluster: Cluster, scope: Scope, q: int, limit: Limit) -> Test:
    tier = cluster.topology.tier_index(limit.tier)
    domain_of = serving_domains(cluster, tier)
    kind = limit.kind
    if kind == "skew":
        return _skew_test(limit, eligible_domains(cluster, scope, tier)[q], domain_of)

    def keeps(node: Nodes, role: Roles, twin: Rows | None) -> Flags:
        if twin is not None and kind == "max_domains":
            return _either(keeps, node, role, twin)
        domain = domain_of[node]
        if twin is not None:
            home = domain[np.arange(len(node)), twin]
            domain[:, -1] = np.where(domain[:, -1] == home, -1, domain[:, -1])
        domain = np.ascontiguousarray(domain.T)
        if kind == "spread":
            return np.asarray(most_in_one(domain) <= limit.amount)
        distinct = (domain >= 0).sum(0)
        for i in range(1, len(domain)):
            again = np.zeros(len(node), bool)
            for j in range(i):
                again |= domain[j] == domain[i]
            distinct -= again & (domain[i] >= 0)
        if kind == "min_domains":
            return np.asarray(distinct >= limit.amount)
        if kind == "max_domains":
            return np.asarray(distinct <= limit.amount)
        assert_never(kind)

    return keeps


def serving_domains(cluster: Cluster, tier: int) -> Ints32:
    """Return the domain of every node that serves, -1 for others and for no node, (N + 1,)."""
    domain = cluster.topology.domain_with_nodes[tier]
    return np.append(np.where(cluster.nodes.serves, domain, np.int32(-1)), np.int32(-1))


def most_in_one(domain: Ints32) -> NDArray[np.int16]:
    """Return how many columns at most share a domain, (n,), of domains (W, n), -1 for none."""
    inside = domain >= 0
    if domain.shape[1] <= FEW:
        meets = (domain[:, None] == domain) & inside
        return np.asarray(meets.sum(axis=1, dtype=np.int16).max(axis=0, initial=0))
    count = inside.astype(np.int16)
    for i in range(1, len(domain)):
        for j in range(i):
            meet = (domain[i] == domain[j]) & inside[i]
            count[i] += meet
            count[j] += meet
    return np.asarray(count.max(axis=0, initial=0))


def _skew_test(limit: Limit, eligible: Flags, domain_of: Ints32) -> Test:
    def keeps(node: Nodes, role: Roles, twin: Rows | None) -> Flags:
        if twin is not None:
            return _either(keeps, node, role, twin)
        domain = domain_of[node]
        held = np.zeros((len(node), len(eligible) + 1), np.int64)
        np.add.at(held, (np.arange(len(node))[:, None], domain), 1)
        if not eligible.any():
            return np.ones(len(node), bool)
        spread = held[:, :-1].max(axis=1) - held[:, :-1][:, eligible].min(axis=1)
        return np.asarray(spread <= limit.amount)

    return keeps


def _either(keeps: Test, node: Nodes, role: Roles, twin: Rows) -> Flags:
    """Test rows with a replica that is under way on either of its nodes."""
    moved = node[:, :-1].copy()
    moved[np.arange(len(node)), twin] = node[:, -1]
    return keeps(node[:, :-1], role[:, :-1], None) & keeps(moved, role[:, :-1], None)


def _inside_test(mask: Flags, term: Term) -> Test:
    """Test that so many replicas, or voters, are on the nodes of a mask, or all of them."""
    inside = np.append(mask, False)

    def keeps(node: Nodes, role: Roles, twin: Rows | None) -> Flags:
        counts = node >= 0
        if term.voters:
            counts &= role == Role.VOTER
        if term.for_all:
            return np.asarray(~(counts & ~inside[node]).any(1))
        return np.asarray((counts & inside[node]).sum(1) >= term.least)

    return keeps


class Safety:
    """Judges sets of replicas that a partition has between its ends."""

    def __init__(self, cluster: Cluster, transitions: TransitionTable, protocol: Protocol) -> None:
        self.cluster = cluster
        self.transitions = transitions
        self.protocol = protocol
        self.live = np.append(cluster.nodes.serves, False)
        self._kinds: dict[int, Rows] = {}

    def keeps(self, rows: Rows, node: Ints32, role: Roles, twin: Rows | None = None) -> Flags:
        """Return which rows of the ends may have these replicas, (n, W), in between."""
        # the last column may be a second node of the replicas in the columns ``twin (n,)``
        return ~self.lacks(rows, node, role) & ~self._breaks(rows, node, role, twin)

    def orders(self, given: Rows, current: Ints64, first: Flags) -> tuple[Rows, Flags]:
        """Return orders of slots that keep every rule, (A, R), and the rows without one, (A,)."""
        # The slot that leads in the end changes before the ``current`` one does, and those that are
        # to be ``first (A, R)`` before all others. At each turn the first slot left that can change
        # does.
        transitions, order = self.transitions, given.copy()
        count = transitions.moves.sum(1)
        rows = np.flatnonzero(count > (1 if self.protocol.joint else 0))
        node, role = transitions.before[rows], transitions.role[rows]
        without = np.zeros(len(count), bool)
        most = int(count[rows].max(initial=0))
        for turn in range(most):
            left = np.flatnonzero(~without[rows] & (turn < count[rows]))
            for place in range(turn, most):
                some = left[place < count[rows[left]]]
                at = rows[some]
                slot, last = order[at, place], count[at] == turn + 1
                held, there, then = self._changed(at, node[some], role[some], slot, last)
                some, at = some[held], at[held]
                node[some], role[some] = there[held], then[held]
                order[at, turn + 1 : place + 1] = order[at, turn:place]
                order[at, turn] = slot[held]
                left = np.setdiff1d(left, some, assume_unique=True)
                if len(left) == 0:
                    break
            without[rows[left]] = True
        without[rows] |= ~self._fits(order[rows], current[rows], first[rows], rows)
        return np.where(without[:, None], given, order), without

    def admits_learners(self, rows: Rows, before: Ints32, after: Ints32, role: Roles) -> Flags:
        """Whether rows keep their rules while all that moves is copied beside the old; (n,)."""
        if not self.protocol.joint:
            # one by one they serve beside the old, too
            new = np.where(before != after, after, np.int32(-1))
            return ~self._breaks(rows, np.hstack([before, new]), np.hstack([role, role]))
        transitions, admits = self.transitions, np.ones(len(rows), bool)
        rule = self._scope.rule[transitions.partition[rows]]
        for q in np.unique(rule).tolist():
            for kept in self._learner_tests[q]:
                bad = np.flatnonzero((rule == q) & admits)
                bad = bad[~kept(before[bad], after[bad])]
                both = [
                    kept(one[rows[bad]], one[rows[bad]])
                    for one in (transitions.before, transitions.after)
                ]
                admits[bad[both[0] & both[1]]] = False
        return admits

    def _joined(self, rows: Rows, node: Ints32, role: Roles, slot: Ints64) -> tuple[Ints32, Roles]:
        """Add the new replica of a slot to a row that still has the old one."""
        lines = np.arange(len(rows))
        more = self.transitions.after[rows, slot][:, None]
        return np.hstack([node, more]), np.hstack([role, role[lines, slot][:, None]])

    def _changed(
        self, rows: Rows, node: Ints32, role: Roles, slot: Ints64, last: Flags
    ) -> tuple[Flags, Ints32, Roles]:
        """Whether rows keep the rules as a slot changes, and what they have then; (n,), (n, R)."""
        # those that have changed all their slots, the ``last (n,)``, are as the target has them
        transitions, lines = self.transitions, np.arange(len(rows))
        old, new = transitions.before[rows, slot], transitions.after[rows, slot]
        recast = transitions.recasts[rows, slot]
        then = np.where(recast[:, None], transitions.becomes[rows], role)
        there, held = node.copy(), np.ones(len(rows), bool)
        there[lines, slot] = new
        if not self.protocol.joint:
            some = np.flatnonzero(recast)
            held[some] = self._one_by_one(rows[some], node[some], role[some])
            serve_twice = (old != new) & (old >= 0) & (new >= 0)
            some = np.flatnonzero(serve_twice & (then[lines, slot] == Role.VOTER))
            joined = self._joined(rows[some], node[some], then[some], slot[some])
            held[some] &= self.keeps(rows[some], *joined, slot[some])
        some = np.flatnonzero(~last)
        held[some] &= self.keeps(rows[some], there[some], then[some])
        return held, there, then

    def _one_by_one(self, rows: Rows, node: Ints32, role: Roles) -> Flags:
        """Whether every state keeps the rules as roles change, voters being made first."""
        held, becomes = np.ones(len(rows), bool), self.transitions.becomes[rows]
        for rises in (True, False):
            for slot in range(role.shape[1]):
                new = (role[:, slot] != becomes[:, slot]) & (node[:, slot] >= 0)
                some = np.flatnonzero(new & ((becomes[:, slot] == Role.VOTER) == rises))
                role[some, slot] = becomes[some, slot]
                held[some] &= self.keeps(rows[some], node[some], role[some])
        return held

    def _fits(self, order: Rows, current: Ints64, first: Flags, rows: Rows) -> Flags:
        """Return which orders begin with what is to be first, and let next leaders keep to their
        rules.
        """
        # the next leader changes before the present one does, and gets its vote in between
        leads, changed = self.transitions.leads[rows], self.transitions.moves[rows]
        place = np.argsort(order, axis=1)
        lines = np.arange(len(order))
        next_leader, now = place[lines, np.maximum(leads, 0)], place[lines, np.maximum(current, 0)]
        comes = (leads >= 0) & (leads != current) & changed[lines, np.maximum(leads, 0)]
        goes = (current >= 0) & (leads != current) & changed[lines, np.maximum(current, 0)]
        fits = ~(comes & goes) | (next_leader < now)
        if first.any():
            last = np.where(first, place, -1).max(1, initial=-1)
            fits &= last < first.sum(1)
        recasts = self.transitions.recasts[rows]
        if not recasts.any():
            return np.asarray(fits)
        turn = place[lines, np.argmax(recasts, axis=1)]
        new = (self.transitions.role != self.transitions.becomes)[rows]
        gets = new[lines, np.maximum(leads, 0)] & (leads >= 0)
        loses = new[lines, np.maximum(current, 0)] & (current >= 0)
        fits &= ~(comes & (gets | loses)) | (next_leader < turn)
        return np.asarray(fits & (~(goes & gets) | (turn < now)))

    def lacks(self, rows: Rows, node: Ints32, role: Roles) -> Flags:
        """Whether rows lack live replicas, or enough of them after a loss, that both ends have."""
        transitions = self.transitions
        active = [
            self.live[one].sum(1)
            for one in (transitions.before[rows], transitions.after[rows], node)
        ]
        lacks = active[2] < np.minimum(*active[:2])
        now = self._survives(node, role)
        bad = np.flatnonzero(~now.all(1))
        if len(bad):
            at = rows[bad]
            for one, of in (
                (transitions.before, transitions.role),
                (transitions.after, transitions.becomes),
            ):
                now[bad] |= ~self._survives(one[at], of[at])
            lacks |= ~now.all(1)
        return np.asarray(lacks)

    def _survives(self, node: Ints32, role: Roles) -> Flags:
        """Return whether enough is left as it is and after the loss of any domain, (n, 2 + L)."""
        topology = self.cluster.topology
        # column by column: sums over a few columns are slow row by row
        columns = np.ascontiguousarray(node.T)
        votes = (role.T == Role.VOTER) & (columns >= 0)
        enough = votes.sum(0) // 2 + 1
        votes &= self.live[columns]
        if not self.protocol.quorum:
            votes, enough = self.live[columns], np.ones(len(node), np.int64)
        left = votes.sum(0)
        survives = [left >= enough]
        for tier in range(len(topology) + 1):
            domain = np.append(topology.domain_with_nodes[tier], -1)[columns]
            lost = most_in_one(np.where(votes, domain, -1))
            survives.append(left - lost >= enough)
        return np.stack(survives, axis=1)

    def _breaks(self, rows: Rows, node: Ints32, role: Roles, twin: Rows | None = None) -> Flags:
        """Whether rows break a hard rule of their partitions that both ends keep."""
        transitions = self.transitions
        breaks = np.zeros(len(rows), bool)
        rule = self._scope.rule[transitions.partition[rows]]
        for q in np.unique(rule).tolist():
            of_rule = rule == q
            for kept in self._tests[q]:
                bad = np.flatnonzero(of_rule & ~breaks)
                other = None if twin is None else twin[bad]
                bad = bad[~kept(node[bad], role[bad], other)]
                if len(bad):
                    at = rows[bad]
                    both = kept(transitions.before[at], transitions.role[at], None)
                    both &= kept(transitions.after[at], transitions.becomes[at], None)
                    breaks[bad[both]] = True
        return breaks

    @cached_property
    def begun(self) -> Flags:
        """Slots of which a copy is under way, (A, R)."""
        transitions, flags = self.transitions, np.append(self.cluster.placement.flags, np.uint16(0))
        begun = (flags[transitions.replica] & Flag.INCOMING) != 0
        return np.asarray(begun & (transitions.before != transitions.after))

    @cached_property
    def urgent(self) -> Flags:
        """Slots that change first: what is under way, else what lost its node, (A, R)."""
        # what lost its node goes first only where the others can be exchanged together after it
        transitions = self.transitions
        if not self.protocol.whole:
            return self.begun
        lost = transitions.moves & (transitions.after >= 0) & ~self.live[transitions.before]
        lost &= ~(transitions.changes_roles | self.begun.any(1))[:, None]
        return np.asarray(lost | self.begun)

    @cached_property
    def unelected(self) -> Flags:
        """Replicas that no election makes leaders where they came from, (K,)."""
        where = electable(self.cluster)
        if len(where) == 0:
            return np.zeros(len(self.cluster.placement.node), bool)
        return np.asarray(where != ANYWHERE)

    @cached_property
    def may_lead(self) -> list[bool]:
        """Whether each node may lead, (N,)."""
        found: list[bool] = self.cluster.nodes.may_lead.tolist()
        return found

    @cached_property
    def by_room(self) -> Rows:
        """Nodes, the emptiest first."""
        cluster = self.cluster
        loads = PlacementCounts.of(cluster, cluster.placement).loads
        used = utilisation(loads, cluster.nodes.capacity).max(axis=1, initial=0.0)
        return np.argsort(used, kind="stable")

    def kinds(self, row: int) -> Rows:
        """Return a number per node, the same for those that are all one to the rules of a row."""
        q = int(self._scope.rule[self.transitions.partition[row]])
        if q not in self._kinds:
            cluster = self.cluster
            terms = self._scope.demands[q].terms
            masks = [nodes_of(cluster, term) for term in terms]
            table = np.stack([cluster.nodes.may_lead, *masks, *cluster.topology.domain])
            self._kinds[q] = np.unique(table, axis=1, return_inverse=True)[1].reshape(-1)
        return self._kinds[q]

    @cached_property
    def _scope(self) -> Scope:
        return partition_scope(self.cluster)

    @cached_property
    def _tests(self) -> list[list[Test]]:
        scope = self._scope
        return [rule_tests(self.cluster, scope, q) for q in range(len(scope.demands))]

    @cached_property
    def _learner_tests(self) -> list[list[LearnerTest]]:
        scope = self._scope
        return [learner_tests(self.cluster, scope, q) for q in range(len(scope.demands))]
