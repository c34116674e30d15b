"""Rule tests: whether rows of replicas, as tables, keep each hard rule of their partitions.

What is left on nodes that are down keeps no rule, and breaks none.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.binding import BoundRule, node_mask
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Role
from evenkeel.model.rules import Limit

Nodes = NDArray[np.int32]
Test = Callable[[Nodes, NDArray[np.uint8], NDArray[np.intp] | None], NDArray[np.bool_]]
"""A function of nodes and roles, (n, W), -1 for none, to the rows that keep a rule, (n,).

Where the last column is another node of a replica that is under way, the third argument says in
which column, (n,), its own node is. It counts once in a domain, and where it is to stay.
"""

FEW = 64
"""Rows of which all pairs of columns are compared at once."""

LearnerTest = Callable[[Nodes, Nodes], NDArray[np.bool_]]
"""A function of current nodes and copy targets, (n, W), to the rows that keep a rule."""


def rule_tests(cluster: Cluster, rule: BoundRule) -> list[Test]:
    """Return a test for every hard rule that binds a partition by itself."""
    tests = [_limit_test(cluster, rule, limit) for limit in rule.own.limits() if limit.hard]
    for texts, voters in ((rule.require, False), (rule.voters_require, True)):
        tests += [
            _inside_test(node_mask(cluster, text) | ~cluster.nodes.serves, None, voters)
            for text in texts
        ]
    for counts, voters in ((rule.own.place, False), (rule.own.voters_place, True)):
        tests += [
            _inside_test(node_mask(cluster, text) & cluster.nodes.serves, least, voters)
            for text, least in counts.items()
        ]
    return tests


def learner_tests(cluster: Cluster, rule: BoundRule) -> list[LearnerTest]:
    """Return a test for every hard rule that binds learners, which neither serve nor vote."""
    limits = [limit for limit in rule.own.limits() if limit.hard and limit.kind == "spread"]
    tests = [_crowd_test(cluster, limit) for limit in limits]
    return tests + [_learner_inside_test(node_mask(cluster, text)) for text in rule.require]


def _learner_inside_test(mask: NDArray[np.bool_]) -> LearnerTest:
    """Test that all that is copied is copied to the nodes of a mask."""
    inside = np.append(mask, True)
    return lambda before, after: np.asarray(inside[after].all(1))


def _crowd_test(cluster: Cluster, limit: Limit) -> LearnerTest:
    """Test that no domain has too many; a replica counts once where its learner is beside it."""
    domain_of = serving_domains(cluster, cluster.topology.tier_index(limit.tier))

    def keeps(before: Nodes, after: Nodes) -> NDArray[np.bool_]:
        here, there = domain_of[before].T, domain_of[after].T
        joined = np.where(here == there, np.int32(-1), there)
        return np.asarray(most_in_one(np.vstack([here, joined])) <= limit.amount)

    return keeps


def _limit_test(cluster: Cluster, rule: BoundRule, limit: Limit) -> Test:
    tier = cluster.topology.tier_index(limit.tier)
    domain_of = serving_domains(cluster, tier)
    if limit.kind == "skew":
        return _skew_test(cluster, rule, limit, tier, domain_of)

    def keeps(
        node: Nodes, role: NDArray[np.uint8], twin: NDArray[np.intp] | None
    ) -> NDArray[np.bool_]:
        if twin is not None and limit.kind == "max_domains":
            return _either(keeps, node, role, twin)
        domain = domain_of[node]
        if twin is not None:
            home = domain[np.arange(len(node)), twin]
            domain[:, -1] = np.where(domain[:, -1] == home, -1, domain[:, -1])
        domain = np.ascontiguousarray(domain.T)
        if limit.kind == "spread":
            return np.asarray(most_in_one(domain) <= limit.amount)
        distinct = (domain >= 0).sum(0)
        for i in range(1, len(domain)):
            again = np.zeros(len(node), bool)
            for j in range(i):
                again |= domain[j] == domain[i]
            distinct -= again & (domain[i] >= 0)
        if limit.kind == "min_domains":
            return np.asarray(distinct >= limit.amount)
        return np.asarray(distinct <= limit.amount)

    return keeps


def serving_domains(cluster: Cluster, tier: int) -> NDArray[np.int32]:
    """Return the domain of every node that serves, -1 for others and for no node, (N + 1,)."""
    domain = cluster.topology.domain_with_nodes[tier]
    return np.append(np.where(cluster.nodes.serves, domain, np.int32(-1)), np.int32(-1))


def most_in_one(domain: NDArray[np.int32]) -> NDArray[np.int16]:
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


def _skew_test(
    cluster: Cluster, rule: BoundRule, limit: Limit, tier: int, domain_of: NDArray[np.int32]
) -> Test:
    domain = cluster.topology.domain_with_nodes[tier]
    usable = cluster.nodes.may_hold & (domain >= 0)
    for text in rule.require:
        usable &= node_mask(cluster, text)
    count = int(cluster.topology.domain_count[tier])
    is_open = np.zeros(count, bool)
    is_open[domain[usable]] = True

    def keeps(
        node: Nodes, role: NDArray[np.uint8], twin: NDArray[np.intp] | None
    ) -> NDArray[np.bool_]:
        if twin is not None:
            return _either(keeps, node, role, twin)
        domain = domain_of[node]
        held = np.zeros((len(node), count + 1), np.int64)
        np.add.at(held, (np.arange(len(node))[:, None], domain), 1)
        if not is_open.any():
            return np.ones(len(node), bool)
        spread = held[:, :-1].max(axis=1) - held[:, :-1][:, is_open].min(axis=1)
        return np.asarray(spread <= limit.amount)

    return keeps


def _either(
    keeps: Test, node: Nodes, role: NDArray[np.uint8], twin: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Test rows with a replica that is under way on either of its nodes."""
    moved = node[:, :-1].copy()
    moved[np.arange(len(node)), twin] = node[:, -1]
    return keeps(node[:, :-1], role[:, :-1], None) & keeps(moved, role[:, :-1], None)


def _inside_test(mask: NDArray[np.bool_], least: int | None, voters: bool) -> Test:
    """Test that so many replicas, or voters, are on the nodes of a mask; None: all of them."""
    inside = np.append(mask, False)

    def keeps(
        node: Nodes, role: NDArray[np.uint8], twin: NDArray[np.intp] | None
    ) -> NDArray[np.bool_]:
        counts = node >= 0
        if voters:
            counts &= role == Role.VOTER
        if least is None:
            return np.asarray(~(counts & ~inside[node]).any(1))
        return np.asarray((counts & inside[node]).sum(1) >= least)

    return keeps
