"""Audit: count every rule that a placement breaks, from the placement alone.

Shares no code with the methods or the kernels, so that it can judge them.
"""

from dataclasses import dataclass
from functools import cached_property

from evenkeel.measure.audit.groups import missing_neighbours
from evenkeel.measure.audit.limits import broken_limits
from evenkeel.measure.audit.nodes import overloads
from evenkeel.measure.audit.replicas import misplaced_leaders, misplaced_replicas
from evenkeel.measure.audit.terms import broken_terms
from evenkeel.measure.audit.violations import KINDS, Violation, Violations
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.runtime.heartbeat import beat


@dataclass(frozen=True, eq=False)
class Audit:
    """Everything that a placement breaks.

    Parameters
    ----------
    cluster : Cluster
        Whose rules they are.
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
        """How often wishes are not met."""
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
        """Whether more hard rules are broken than in another audit, or as many and more wishes.

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
        The rules, and what is wanted.
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
