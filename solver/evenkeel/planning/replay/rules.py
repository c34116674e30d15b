"""Rules: what both ends of a plan keep of each partition, kept in every state between them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import NONE, nodes_that_meet, partition_scope
from evenkeel.model.cluster import Cluster
from evenkeel.planning.replay.course import Course
from evenkeel.planning.replay.findings import Findings
from evenkeel.planning.replay.standing import Counts, Flags, Held, Standing

Measure = Callable[[Standing], Counts]


@dataclass(frozen=True, eq=False)
class Passage:
    """The states of a course beside those of the target.

    Parameters
    ----------
    found : Findings
        Where breaches are noted.
    course : Course
        Its events.
    states : Standing
        Of the course, n columns.
    target : Standing or None
        Of the course's partitions in the target, Q columns.
    judged : ndarray of bool, shape (n,)
        States that are seen: those within a joint change are not.
    """

    found: Findings
    course: Course
    states: Standing
    target: Standing | None
    judged: Flags

    def hold(
        self,
        kind: str,
        of: str,
        measure: Measure,
        amount: NDArray[np.integer],
        tier: int = -1,
    ) -> None:
        """Find states beyond the amount of their partition, (P,), that both ends keep to."""
        course = self.course
        sign = -1 if kind in AT_MOST else 1
        asked = amount[course.partition[course.initial]]
        bound = asked != UNBOUND
        if not bound.any():
            return
        value = measure(self.states)
        keeps = bound & (sign * (value[course.initial] - asked) >= 0)
        if self.target is not None:
            keeps &= sign * (measure(self.target) - asked) >= 0
        length = course.final - course.initial + 1
        kept = np.repeat(keeps, length) & self.judged
        limit = np.repeat(asked, length)
        margin = sign * (value - limit)
        worse = np.flatnonzero(kept & (margin < 0) & (course.step >= 0))
        # a state that is no worse than the one before was told with that
        worse = worse[(margin[worse] < margin[worse - 1]) | ~self.judged[worse - 1]]
        self.found.breach(
            kind, course.step[worse], course.rank[worse], -margin[worse],
            partition=course.partition[worse], tier=tier,
        )  # fmt: skip
        seen = np.flatnonzero(kept)
        self.found.tight(
            kind, of, -margin[seen], value[seen], limit[seen], course.step[seen],
            course.rank[seen], partition=course.partition[seen], tier=tier,
        )  # fmt: skip


UNBOUND = np.iinfo(np.int64).min
"""Amount of a partition that is not bound."""

AT_MOST = {"same_node", "spread", "max_domains", "skew", "require", "voters_require"}
"""Kinds that are bounded from above; all others are from below."""


def check_survival(passage: Passage) -> None:
    """Find states with too few live replicas."""
    cluster = passage.states.cluster
    least = cluster.partitions.min_active.astype(np.int64)
    least = np.where(least > 0, least, UNBOUND)
    passage.hold("min_active", "", Standing.live_serving, least)


def check_quorum(passage: Passage) -> None:
    """Find states of which the loss of a domain leaves no quorum of voters."""
    cluster = passage.states.cluster
    one = np.ones(len(cluster.partitions), np.int64)
    for tier, name in enumerate([*cluster.topology.tiers, "node"]):
        passage.hold("quorum", name, partial(Standing.quorum_margin, tier=tier), one, tier)


def check_survivors(passage: Passage) -> None:
    """Find states of which the loss of a domain leaves no live replica."""
    cluster = passage.states.cluster
    one = np.ones(len(cluster.partitions), np.int64)
    for tier, name in enumerate([*cluster.topology.tiers, "node"]):
        passage.hold("survivor", name, partial(Standing.survivors, tier=tier), one, tier)


def check_limits(passage: Passage) -> None:
    """Find states that break a hard limit on how a partition's replicas stand in domains."""
    cluster = passage.states.cluster
    scope = partition_scope(cluster)
    for binding in scope.bindings:
        if not binding.hard:
            continue
        tier = cluster.topology.tier_index(binding.tier)
        bound = binding.amount != NONE
        if binding.kind == "min_domains":
            bound &= scope.wanted
        eligible = eligible_domains(cluster, tier, scope.open)
        measures: dict[str, Measure] = {
            "spread": partial(Standing.crowd, tier=tier),
            "min_domains": partial(Standing.distinct, tier=tier),
            "max_domains": partial(Standing.widest, tier=tier),
            "skew": partial(Standing.skew, tier=tier, eligible=eligible, rule=scope.rule),
        }
        # in 32 bits "unbound" would wrap to a limit of 0
        amount = np.where(bound, binding.amount.astype(np.int64), UNBOUND)
        passage.hold(binding.violation, binding.tier, measures[binding.kind], amount, tier)


def eligible_domains(cluster: Cluster, tier: int, open_to: Flags) -> Flags:
    """Return the domains that hold a node which may hold something, for each class of rules."""
    domain = cluster.topology.domain_with_nodes[tier]
    usable = cluster.nodes.may_hold & (domain >= 0)
    eligible = np.zeros((len(open_to), int(cluster.topology.domain_count[tier])), bool)
    for q, mask in enumerate(open_to):
        eligible[q, domain[mask & usable]] = True
    return eligible


def check_terms(passage: Passage) -> None:
    """Find states with replicas on excluded nodes, or too few on wanted ones."""
    cluster = passage.states.cluster
    scope = partition_scope(cluster)
    for q, demands in enumerate(scope.demands):
        mine = scope.rule == q
        if not mine[passage.course.partition[passage.course.initial]].any():
            continue
        # each rule is kept or broken by itself, whatever another one excludes
        for rule in demands.written:
            asked: tuple[tuple[str, Held, Sequence[str]], ...] = (
                ("require", "present", rule.require),
                ("voters_require", "voting", rule.voters_require),
            )
            for kind, of, texts in asked:
                if texts:
                    out = ~nodes_that_meet(cluster, texts)
                    measure = partial(Standing.inside, mask=out, of=of)
                    passage.hold(kind, "", measure, np.where(mine, 0, UNBOUND))
        wanted: tuple[tuple[str, Held, tuple[tuple[str, int], ...]], ...] = (
            ("place", "serving", demands.place),
            ("voters_place", "voting", demands.voters_place),
        )
        for kind, of, counts in wanted:
            for text, least in counts:
                mask = nodes_that_meet(cluster, [text])
                measure = partial(Standing.inside, mask=mask, of=of)
                passage.hold(kind, text, measure, np.where(mine & scope.wanted, least, UNBOUND))
