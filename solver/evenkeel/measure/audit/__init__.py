"""Audit: count every rule that a placement breaks, from the placement alone.

Shares no code with the methods or the kernels, so that it can judge them.
"""

from collections import deque
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit.limits import broken_limits, count_by_domain, domain_of
from evenkeel.measure.audit.nodes import overloads
from evenkeel.measure.audit.replicas import misplaced_leaders, misplaced_replicas
from evenkeel.measure.audit.terms import broken_terms
from evenkeel.measure.audit.violations import KINDS, Violation, Violations, violations
from evenkeel.measure.binding import Scope, group_scope, partition_scope
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.model.runtime.memoize import memoize

KEPT, MOST_KEPT = 8, 10_000
"""Audits that a cluster keeps, and the replicas up to which it does: on small ones, many steps
audit the same placement."""


@dataclass(frozen=True, eq=False)
class Audit:
    """Everything that a placement breaks.

    Parameters
    ----------
    cluster : Cluster
        Its rules are audited.
    found : tuple of Violations
        What each check found, as arrays; empty where all is well.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[2.0]] * 4, placement=[[0]] * 4)
    >>> found = ek.solve(c).audit_before
    >>> found.ok, found.hard
    (False, 1)
    """

    cluster: Cluster
    found: tuple[Violations, ...]

    @cached_property
    def counts(self) -> dict[str, int]:
        """How often each kind is broken; every kind of ``KINDS`` is there."""
        counts = dict.fromkeys(KINDS, 0)
        for one in self.found:
            counts[one.kind] += one.count
        return counts

    @property
    def hard(self) -> int:
        """How often hard rules are broken."""
        return sum(count for kind, count in self.counts.items() if KINDS[kind].hard)

    @property
    def soft(self) -> int:
        """Number of broken soft rules."""
        return sum(count for kind, count in self.counts.items() if not KINDS[kind].hard)

    @property
    def ok(self) -> bool:
        """Whether no hard rule is broken."""
        return self.hard == 0

    def table(self, kind: str | None = None) -> list[Violation]:
        """Return the violations with names.

        Parameters
        ----------
        kind : str, optional
            Only those of this kind; all by default.

        Returns
        -------
        list of Violation
            In the order of the checks.

        Raises
        ------
        ValueError
            If there is no such kind.
        """
        if kind is not None and kind not in KINDS:
            raise ValueError(f"no such kind of violation: {kind!r}; known: {list(KINDS)}")
        return [
            row for one in self.found if kind in (None, one.kind) for row in one.rows(self.cluster)
        ]

    def worse_than(self, other: "Audit") -> bool:
        """Return whether more hard rules are broken than in another, or as many and more soft ones.

        Parameters
        ----------
        other : Audit
            Of the same cluster.

        Returns
        -------
        bool
            True if the other placement is the better one.
        """
        return (self.hard, self.soft) > (other.hard, other.soft)

    def __repr__(self) -> str:
        broken = {kind: count for kind, count in self.counts.items() if count}
        return f"<Audit: {broken or 'no rule broken'}>"


def audit(cluster: Cluster, placement: Placement, before: Placement | None = None) -> Audit:
    """Count every rule, hard or soft, that a placement breaks.

    Parameters
    ----------
    cluster : Cluster
        The rules, and the wanted replicas.
    placement : Placement
        The placement to judge.
    before : Placement, optional
        Where moved and pinned replicas come from; the cluster's own placement by default.

    Returns
    -------
    Audit
        Counts per kind, and where.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[1.0], [9.0]], load=[[2.0]] * 2, placement=[[0], [1]])
    >>> found = audit(c, c.placement)
    >>> found.hard, found.counts["capacity"], found.table()[0].node
    (1, 1, 'n0')
    """
    if before is not None or len(placement.node) > MOST_KEPT:
        return _audited(cluster, placement, before)
    kept: deque[tuple[bytes, Placement, Audit]] = memoize(
        cluster, "audits", lambda: deque(maxlen=KEPT)
    )
    # a search may change the arrays later on, so what they hold is compared, and not they
    held = placement.node.tobytes() + placement.leader.tobytes()
    for was, one, found in kept:
        alike = one.first is placement.first and one.role is placement.role
        if was == held and alike and one.flags is placement.flags:
            return found
    found = _audited(cluster, placement, before)
    kept.appendleft((held, placement, found))
    return found


def _audited(cluster: Cluster, placement: Placement, before: Placement | None) -> Audit:
    """Count what a placement breaks, anew."""
    start = cluster.placement if before is None else before
    placed = PlacementCounts.of(cluster, placement)
    found = misplaced_replicas(placed, start)
    for judge in (misplaced_leaders, broken_limits, broken_terms):
        beat()
        found += judge(placed)
    found += overloads(placed, start)
    if len(cluster.depends):
        found += missing_neighbours(placed)
    return Audit(cluster, tuple(found))


def missing_neighbours(placed: PlacementCounts) -> list[Violations]:
    """Find domains that hold a replica of a group, but none of a group that it needs there."""
    found: list[Violations] = []
    cluster, placement = placed.cluster, placed.placement
    group = cluster.partitions.group.take(placement.owner)
    for row in np.unique(cluster.depends[:, 2]).tolist():
        pairs = np.unique(cluster.depends[cluster.depends[:, 2] == row, :2], axis=0)
        tied = np.unique(pairs)
        number = np.full(len(cluster.partitions.group_names), -1)
        number[tied] = np.arange(len(tied))
        where = domain_of(cluster.topology.domain_with_nodes[row], placement.node)
        counted = (number[group] >= 0) & (where >= 0)
        domains = int(cluster.topology.domain_count[row])
        who, at, _ = count_by_domain(number[group[counted]], where[counted], len(tied), domains)
        # for every pair, the domains that its first group is in
        one, other = number[pairs].T
        start, end = np.searchsorted(who, one), np.searchsorted(who, one, side="right")
        which = np.repeat(np.arange(len(pairs)), end - start)
        laid = np.cumsum(end - start) - (end - start)
        domain = at[np.arange(len(which)) + (start - laid)[which]]
        lacks = ~np.isin(other[which] * domains + domain, who * domains + at)
        found += violations(
            "depends",
            np.ones(int(lacks.sum())),
            group=pairs[which[lacks], 0],
            tier=row,
            domain=domain[lacks],
        )
    return found


def soft_cost(cluster: Cluster, audited: Audit) -> float:
    """Add up weight x amount of all soft limits that are broken, and 1 for each worse leader."""
    limits = [limit for rule in cluster.rules for limit in rule.limits()]
    if all(limit.hard or limit.weight == 1.0 for limit in limits):
        return float(audited.soft)
    cost = float(audited.counts["lead"])
    for one in audited.found:
        if KINDS[one.kind].hard or not KINDS[one.kind].summed or not len(one.amount):
            continue
        tiers = (*cluster.topology.tiers, "node")
        tier = tiers[one.tier[0]]  # each broken limit is of one
        for scope, member in (
            (partition_scope(cluster), one.partition),
            (group_scope(cluster), one.group),
        ):
            whose = np.flatnonzero(member >= 0)
            weight = _weights(scope, one.kind, tier)[member[whose]]
            cost += float((weight * one.amount[whose]).sum())
    return cost


def _weights(scope: Scope, kind: str, tier: str) -> NDArray[np.float64]:
    """Return the weight of each member's soft limit of a kind on a tier, (E,)."""
    for binding in scope.bindings:
        if (binding.violation, binding.tier) == (kind, tier):
            return binding.weight
    return np.zeros(len(scope.rule))
