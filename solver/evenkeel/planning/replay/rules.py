"""Rules of partitions that start and target keep, checked in every state between them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import (
    NONE,
    eligible_domains,
    nodes_of,
    nodes_that_meet,
    partition_scope,
)
from evenkeel.measure.rows import at_node
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement, Role
from evenkeel.model.rules import REQUIREMENTS
from evenkeel.planning.replay.certificate import Findings
from evenkeel.planning.replay.trajectory import Trajectory

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]
Held = Literal["serving", "present", "voting"]


@dataclass(frozen=True, eq=False)
class Standing:
    """ReplicaColumns of partitions in n states."""

    cluster: Cluster  # whose nodes they are on
    partition: NDArray[np.int64]  # (n,) partition of each state
    # node, slot: (W, n) node and slot of each column
    node: NDArray[np.int32]
    slot: NDArray[np.int32]
    # serving, present: (W, n) whether it serves, and whether it holds anything at all
    serving: Flags
    present: Flags
    votes: Flags  # (W, n) whether its replica votes

    @classmethod
    def of_course(cls, cluster: Cluster, trajectory: Trajectory) -> "Standing":
        """Return all states of a trajectory."""
        return cls(
            cluster, trajectory.partition, trajectory.node, trajectory.slot, trajectory.serving,
            trajectory.present,
            trajectory.votes,
        )  # fmt: skip

    @classmethod
    def of_placement(
        cls, cluster: Cluster, placement: Placement, partition: NDArray[np.int64]
    ) -> "Standing":
        """Return how some partitions stand in a placement."""
        first = placement.first[partition]
        width = placement.first[partition + 1] - first
        slot = np.arange(int(width.max(initial=0)), dtype=np.int32)[:, None]
        inside = slot < width
        replica = np.minimum(first + slot, max(len(placement.node) - 1, 0))
        node = np.where(inside, placement.node[replica], np.int32(-1))
        held = node >= 0
        votes = np.asarray(placement.role[replica] == Role.VOTER)
        slot = np.broadcast_to(slot, node.shape)
        return cls(cluster, partition, node, slot, held, held, votes)

    @cached_property
    def live(self) -> Flags:
        """ReplicaColumns that serve on a live node, (W, n)."""
        nodes = self.cluster.nodes
        return self.serving & at_node(nodes.serves, self.node)

    @cached_property
    def voting(self) -> Flags:
        """ReplicaColumns that serve and vote, (W, n)."""
        return self.serving & self.votes

    def domains(self, tier: int) -> NDArray[np.int32]:
        """Return the domain of each column on a tier, -1 for none and on dead nodes; (W, n)."""
        nodes, domain = self.cluster.nodes, self.cluster.topology.domain_with_nodes[tier]
        living = np.where(nodes.serves, domain, np.int32(-1))
        return np.append(living, np.int32(-1)).take(self.node)

    def live_serving(self) -> Counts:
        """Count the live replicas that serve, each once even while it serves on two nodes."""
        once = _firsts(self.live, self.slot)
        return np.asarray(once.sum(0))

    def quorum_margin(self, tier: int) -> Counts:
        """Return twice the voters that live whatever domain is lost, minus the voters.

        They are a majority where it is above 0.
        """
        domain, votes = self.domains(tier), self.voting
        lives = votes & self.live
        worst = _per_domain(lives & (domain >= 0), domain).max(0, initial=0)
        return np.asarray(2 * (lives.sum(0) - worst) - votes.sum(0))

    def survivors(self, tier: int) -> Counts:
        """Count the replicas that live whatever domain is lost."""
        domain = self.domains(tier)
        worst = _per_domain(self.live & (domain >= 0), domain).max(0, initial=0)
        return np.asarray(self.live.sum(0) - worst)

    def crowd(self, tier: int) -> Counts:
        """Return the most replicas that may meet in one domain, learners and what is left included.

        A replica counts once in a domain, though it stands there twice while it moves.
        """
        domain = self.domains(tier)
        counted = self.present & (domain >= 0)
        alone = counted.copy()
        for c in range(1, len(counted)):
            for earlier in range(c):
                twice = counted[earlier] & (self.slot[earlier] == self.slot[c])
                alone[c] &= ~(twice & (domain[earlier] == domain[c]))
        return np.asarray(_per_domain(alone, domain).max(0, initial=0), np.int64)

    def distinct(self, tier: int, counted: Flags | None = None) -> Counts:
        """Count the domains in which some columns are; those that serve by default."""
        domain = self.domains(tier)
        chosen = self.serving if counted is None else counted
        return np.asarray(_firsts(chosen & (domain >= 0), domain).sum(0))

    def settled(self) -> tuple[Flags, Flags]:
        """Return the columns that serve, of a replica that does so on two nodes either one."""
        return _firsts(self.serving, self.slot), _firsts(self.serving[::-1], self.slot[::-1])[::-1]

    def widest(self, tier: int) -> Counts:
        """Count the domains that are served from, however a change that is under way ends."""
        one, other = self.settled()
        return np.maximum(self.distinct(tier, one), self.distinct(tier, other))

    def skew(self, tier: int, eligible: Flags, rule: NDArray[np.int32]) -> Counts:
        """Return the fullest domain minus the emptiest eligible one, however a change ends.

        ``eligible`` marks for each class of rules the domains with a node open to it, (Q, M), and
        ``rule`` the class of each partition.
        """
        rule = rule[self.partition]
        domain = self.domains(tier)
        open_to = eligible.sum(1)[rule]
        nowhere = np.zeros((len(eligible), 1), bool)
        able = np.append(eligible, nowhere, axis=1)[rule, domain]
        found = np.zeros(len(self.partition), np.int64)
        for chosen in self.settled():
            counted = chosen & (domain >= 0)
            count = _per_domain(counted, domain).astype(np.int64)
            most = count.max(0, initial=0)
            inside = counted & able
            least = np.where(inside, count, most).min(0, initial=np.iinfo(np.int64).max)
            touched = _firsts(inside, domain).sum(0)
            least = np.where(touched < open_to, 0, np.minimum(least, most))
            np.maximum(found, np.where(open_to > 0, most - least, 0), out=found)
        return found

    def inside(self, mask: Flags, of: Held) -> Counts:
        """Count the columns of some that are on the nodes of a mask which live."""
        chosen: Flags = getattr(self, of)
        living = self.cluster.nodes.serves
        return np.asarray((chosen & at_node(mask & living, self.node)).sum(0))


def _firsts(chosen: Flags, key: NDArray[np.integer]) -> Flags:
    """Return those chosen in each column of which no earlier one has the same key."""
    alone = chosen.copy()
    for c in range(1, len(chosen)):
        for earlier in range(c):
            alone[c] &= ~(chosen[earlier] & (key[earlier] == key[c]))
    return alone


def _per_domain(counted: Flags, domain: NDArray[np.int32]) -> NDArray[np.int16]:
    """Return for each column that counts how many in its column share its domain; 0 for others."""
    # short numbers: no partition has so many columns
    count = counted.astype(np.int16)
    for c in range(1, len(counted)):
        for other in range(c):
            meet = counted[c] & counted[other] & (domain[c] == domain[other])
            count[c] += meet
            count[other] += meet
    return count


Measure = Callable[[Standing], Counts]


@dataclass(frozen=True, eq=False)
class TrajectoryCheck:
    """The states of a trajectory beside those of the target."""

    found: Findings  # where breaches are noted
    trajectory: Trajectory  # its events
    states: Standing  # of the trajectory, n columns
    target: Standing | None  # of the trajectory's partitions in the target, Q columns
    judged: Flags  # (n,) states that are seen: those within a joint change are not

    def hold(
        self,
        kind: str,
        of: str,
        measure: Measure,
        amount: NDArray[np.integer],
        tier: int = -1,
    ) -> None:
        """Find states beyond the amount of their partition, (P,), that both ends keep to."""
        trajectory = self.trajectory
        sign = -1 if kind in AT_MOST else 1
        asked = amount[trajectory.partition[trajectory.initial]]
        bound = asked != UNBOUND
        if not bound.any():
            return
        value = measure(self.states)
        keeps = bound & (sign * (value[trajectory.initial] - asked) >= 0)
        if self.target is not None:
            keeps &= sign * (measure(self.target) - asked) >= 0
        length = trajectory.final - trajectory.initial + 1
        kept = np.repeat(keeps, length) & self.judged
        limit = np.repeat(asked, length)
        margin = sign * (value - limit)
        worse = np.flatnonzero(kept & (margin < 0) & (trajectory.step >= 0))
        # a state that is no worse than the one before was reported with it
        worse = worse[(margin[worse] < margin[worse - 1]) | ~self.judged[worse - 1]]
        self.found.breach(
            kind, trajectory.step[worse], trajectory.rank[worse], -margin[worse],
            partition=trajectory.partition[worse], tier=tier,
        )  # fmt: skip
        seen = np.flatnonzero(kept)
        self.found.tight(
            kind, of, -margin[seen], value[seen], limit[seen], trajectory.step[seen],
            trajectory.rank[seen], partition=trajectory.partition[seen], tier=tier,
        )  # fmt: skip


UNBOUND = np.iinfo(np.int64).min
"""Amount of a partition that is not bound."""

AT_MOST = {"same_node", "spread", "max_domains", "skew", *REQUIREMENTS}
"""Kinds that are bounded from above; all others are from below."""


def check_survival(check: TrajectoryCheck) -> None:
    """Find states with too few live replicas."""
    cluster = check.states.cluster
    least = cluster.partitions.min_active.astype(np.int64)
    least = np.where(least > 0, least, UNBOUND)
    check.hold("min_active", "", Standing.live_serving, least)


def check_quorum(check: TrajectoryCheck) -> None:
    """Find states of which the loss of a domain leaves no quorum of voters."""
    cluster = check.states.cluster
    one = np.ones(len(cluster.partitions), np.int64)
    for tier, name in enumerate([*cluster.topology.tiers, "node"]):
        check.hold("quorum", name, partial(Standing.quorum_margin, tier=tier), one, tier)


def check_survivors(check: TrajectoryCheck) -> None:
    """Find states of which the loss of a domain leaves no live replica."""
    cluster = check.states.cluster
    one = np.ones(len(cluster.partitions), np.int64)
    for tier, name in enumerate([*cluster.topology.tiers, "node"]):
        check.hold("survivor", name, partial(Standing.survivors, tier=tier), one, tier)


def check_limits(check: TrajectoryCheck) -> None:
    """Find states that break a hard limit on how a partition's replicas stand in domains."""
    cluster = check.states.cluster
    scope = partition_scope(cluster)
    for binding in scope.bindings:
        if not binding.hard:
            continue
        tier = cluster.topology.tier_index(binding.tier)
        bound = binding.amount != NONE
        if binding.kind == "min_domains":
            bound &= scope.wanted
        eligible = eligible_domains(cluster, scope, tier)
        measures: dict[str, Measure] = {
            "spread": partial(Standing.crowd, tier=tier),
            "min_domains": partial(Standing.distinct, tier=tier),
            "max_domains": partial(Standing.widest, tier=tier),
            "skew": partial(Standing.skew, tier=tier, eligible=eligible, rule=scope.rule),
        }
        # in 32 bits "unbound" would wrap to a limit of 0
        amount = np.where(bound, binding.amount.astype(np.int64), UNBOUND)
        check.hold(binding.violation, binding.tier, measures[binding.kind], amount, tier)


def check_terms(check: TrajectoryCheck) -> None:
    """Find states with replicas on excluded nodes, or too few on wanted ones."""
    cluster = check.states.cluster
    scope = partition_scope(cluster)
    for q, demands in enumerate(scope.demands):
        mine = scope.rule == q
        if not mine[check.trajectory.partition[check.trajectory.initial]].any():
            continue
        # each rule is kept or broken by itself, whatever another one excludes
        for rule in demands.written:
            for kind, voters in REQUIREMENTS.items():
                texts = getattr(rule, kind)
                if texts:
                    out = ~nodes_that_meet(cluster, texts)
                    of: Held = "voting" if voters else "present"
                    measure = partial(Standing.inside, mask=out, of=of)
                    check.hold(kind, "", measure, np.where(mine, 0, UNBOUND))
        for term in demands.counted:
            mask = nodes_of(cluster, term)
            of = "voting" if term.voters else "serving"
            measure = partial(Standing.inside, mask=mask, of=of)
            least = np.where(mine & scope.wanted, term.least, UNBOUND)
            check.hold(term.kind, term.text, measure, least)
