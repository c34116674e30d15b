"""Rules: what both ends of a plan keep of each partition, kept in every state between them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import NONE, nodes_that_meet, partition_scope
from evenkeel.model.cluster import Cluster
from evenkeel.planning.replay.course import Course
from evenkeel.planning.replay.findings import Findings
from evenkeel.planning.replay.standing import Counts, Flags, Standing

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
        self, kind: str, of: str, measure: Measure, least: NDArray[np.integer], tier: int = -1,
        *, ends: bool = True,
    ) -> None:  # fmt: skip
        """Find states that measure less than the least of their partition, (P,), where ends do not.

        Without ``ends`` it is asked only that the beginning holds it.
        """
        course = self.course
        asked = least[course.partition[course.initial]]
        bound = asked != UNBOUND
        if not bound.any():
            return
        value = measure(self.states)
        keeps = bound & (value[course.initial] >= asked)
        if ends and self.target is not None:
            keeps &= measure(self.target) >= asked
        length = course.final - course.initial + 1
        kept = np.repeat(keeps, length) & self.judged
        margin = value - np.repeat(asked, length)
        worse = np.flatnonzero(kept & (margin < 0))
        # a state that is no worse than the one before was told with that
        worse = worse[course.step[worse] >= 0]
        worse = worse[(margin[worse] < margin[worse - 1]) | ~self.judged[worse - 1]]
        sign = -1 if kind in AT_MOST else 1
        self.found.breach(
            kind, course.step[worse], course.rank[worse], -margin[worse],
            partition=course.partition[worse], tier=tier,
        )  # fmt: skip
        seen = np.flatnonzero(kept)
        self.found.tight(
            kind, of, -margin[seen], sign * value[seen], sign * (value - margin)[seen],
            course.step[seen], course.rank[seen], partition=course.partition[seen], tier=tier,
        )  # fmt: skip


UNBOUND = np.iinfo(np.int64).min
"""Least of a partition that is not bound."""

AT_MOST = {"same_node", "spread", "max_domains", "skew", "require", "voters_require"}
"""Kinds that are bounded from above; they are measured, and told, with the sign turned."""


def check_survival(passage: Passage) -> None:
    """Find states with too few live replicas, or of which the loss of a domain leaves no quorum."""
    cluster = passage.states.cluster
    least = cluster.partitions.min_active.astype(np.int64)
    passage.hold("min_active", "", Standing.live_serving, np.where(least > 0, least, UNBOUND),
                 ends=False)  # fmt: skip
    one = np.ones(len(cluster.partitions), np.int64)
    for tier, name in enumerate([*cluster.topology.tiers, "node"]):
        passage.hold("quorum", name, lambda st, tier=tier: st.quorum_margin(tier), one, tier)


def check_limits(passage: Passage) -> None:
    """Find states that break a hard limit on how a partition's replicas stand in domains."""
    cluster = passage.states.cluster
    scope = partition_scope(cluster)
    for binding in scope.bindings:
        if not binding.hard:
            continue
        tier = cluster.topology.tier_index(binding.tier)
        amount = binding.amount.astype(np.int64)
        bound = binding.amount != NONE
        if binding.kind == "min_domains":
            least = np.where(bound & scope.wanted, amount, UNBOUND)
            passage.hold(binding.kind, binding.tier, lambda st, tier=tier: st.distinct(tier), least,
                         tier)  # fmt: skip
            continue
        measure: Measure
        if binding.kind == "spread":
            measure = lambda st, tier=tier: -st.crowd(tier)  # noqa: E731
        elif binding.kind == "max_domains":
            measure = lambda st, tier=tier: -st.widest(tier)  # noqa: E731
        else:
            eligible = eligible_domains(cluster, tier, scope.open)
            measure = lambda st, tier=tier, eligible=eligible: (
                -st.skew(  # noqa: E731
                    tier, eligible, scope.rule[st.partition]
                )
            )
        passage.hold(binding.violation, binding.tier, measure, np.where(bound, -amount, UNBOUND),
                     tier)  # fmt: skip


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
        for kind, texts in (
            ("require", demands.require), ("voters_require", demands.voters_require),
        ):  # fmt: skip
            if texts:
                out = ~nodes_that_meet(cluster, texts)
                of = "present" if kind == "require" else "voting"
                passage.hold(
                    kind, "", lambda st, out=out, of=of: -st.inside(out, getattr(st, of)),
                    np.where(mine, 0, UNBOUND),
                )  # fmt: skip
        for kind, counts in (("place", demands.place), ("voters_place", demands.voters_place)):
            of = "serving" if kind == "place" else "voting"
            for text, least in counts:
                mask = nodes_that_meet(cluster, [text])
                passage.hold(
                    kind, text, lambda st, mask=mask, of=of: st.inside(mask, getattr(st, of)),
                    np.where(mine & scope.wanted, least, UNBOUND),
                )  # fmt: skip
