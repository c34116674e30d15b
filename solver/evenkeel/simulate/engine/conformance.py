"""Conformance: how many partitions are not as they should be."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import nodes_of, nodes_that_meet
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Role
from evenkeel.model.rules import LimitKind, Term
from evenkeel.simulate.engine.world import Health, World

KINDS = (
    "under", "over", "unavailable", "in_danger", "violating", "lead_violating",
    "lead_less_preferred",
)  # fmt: skip
"""What is counted; in danger is what has fewer live replicas than its ``min_active``."""


@dataclass(frozen=True)
class Standing:
    """How the replicas of a partition must stand in the domains of a tier."""

    domain: NDArray[np.int32]  # (N,) domain of each node; -1 for none
    kind: LimitKind  # as in ``model.rules.Limit``: spread, min_domains or max_domains
    amount: int  # replicas in one domain, or domains

    def broken(self, node: NDArray[np.int32], held: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which rows break it."""
        at = np.sort(np.where(held, self.domain[node], np.int32(-1)), axis=1)
        inside = at >= 0
        if self.kind == "spread":
            # sorted, more than so many of one domain stand where the next one but so many is equal
            beyond, before = at[:, self.amount :], at[:, : at.shape[1] - self.amount]
            return np.asarray(((beyond == before) & (beyond >= 0)).any(1))
        apart = inside[:, :1].sum(1) + (inside[:, 1:] & (at[:, 1:] != at[:, :-1])).sum(1)
        less = self.kind == "min_domains"
        return np.asarray(apart < self.amount if less else apart > self.amount)


@dataclass(frozen=True)
class Demands:
    """What one rule asks for, as masks of nodes."""

    terms: list[tuple[Term, NDArray[np.bool_]]]  # what it wants on some nodes, (N,)
    lead: list[NDArray[np.bool_]]  # (N,) where the leader should be, first choice first
    # hard limits on domains that it sets for each partition by itself; not those on skew
    limits: list[Standing]

    def broken(
        self, node: NDArray[np.int32], held: NDArray[np.bool_], votes: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return which rows break what is asked of their replicas, or of their voters."""
        bad: NDArray[np.bool_] = np.zeros(len(node), bool)
        for term, mask in self.terms:
            counted = votes if term.voters else held
            if term.for_all:
                bad |= (counted & ~mask[node]).any(1)
            else:
                bad |= (counted & mask[node]).sum(1) < term.least
        for limit in self.limits:
            bad |= limit.broken(node, held)
        return bad


def demands_of(cluster: Cluster) -> list[Demands]:
    """Return what each rule of a cluster asks for."""
    domains = cluster.topology.domain_with_nodes
    return [
        Demands(
            terms=[(term, nodes_of(cluster, term)) for term in rule.terms()],
            lead=[nodes_that_meet(cluster, [text]) for text in rule.lead],
            limits=[
                Standing(domains[cluster.topology.tier_index(one.tier)], one.kind, one.amount)
                for one in rule.limits()
                if one.hard and one.kind != "skew"
            ],
        )
        for rule in cluster.rules
    ]


class Conformance:
    """Counts the partitions that are not as they should be.

    They have too few or too many live replicas, no majority (or, where no consensus is
    needed, no live replica at all), replicas where their rule does not want them, or not as far
    apart as it wants them (limits on skew, and those of whole groups, are left to the audit), or a
    leader where it does not want one.

    CockroachDB, replication reports: under-replicated, over-replicated, unavailable, violating
    constraints, and the same of lease preferences.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._demands = demands_of(cluster)
        self._seen: tuple[NDArray[np.generic], ...] = ()
        self._found = np.zeros(0, np.int64)

    def count(self, world: World) -> NDArray[np.int64]:
        """Count."""
        if len(self._demands) < len(world.cluster.rules):
            self._demands = demands_of(world.cluster)
        seen: tuple[NDArray[np.generic], ...] = (
            world.node, world.role, world.leader, world.health,
            world.wanted, world.voters, world.least_active(), world.rule,
        )  # fmt: skip
        same = (np.array_equal(now, then) for now, then in zip(seen, self._seen, strict=False))
        if not self._seen or not all(same):
            # most samples find everything as it was
            self._seen = tuple(part.copy() for part in seen)
            self._found = self._count(world)
        return self._found.copy()

    def _count(self, world: World) -> NDArray[np.int64]:
        node = world.node
        held = node >= 0
        votes = held & (world.role == Role.VOTER)
        lost = held & (world.health[node] >= Health.DEAD)
        answering = votes & world.serves()[node]
        live = (held & ~lost).sum(1)
        under = (live < world.wanted) | ((votes & ~lost).sum(1) < world.voters)
        over = live > world.wanted
        in_danger = (held & world.serves()[node]).sum(1) < world.least_active()
        if world.consensus:
            unavailable = 2 * answering.sum(1) <= votes.sum(1)
        else:
            unavailable = ~answering.any(1)
        violating = np.zeros(len(world), bool)
        badly_led = np.zeros(len(world), bool)
        less_preferred = np.zeros(len(world), bool)
        leader = world.leader_nodes()
        for number, demands in enumerate(self._demands):
            mine = np.flatnonzero(world.rule == number)
            if len(mine) == 0:
                continue
            violating[mine] = demands.broken(node[mine], held[mine], votes[mine])
            if demands.lead:
                meets = np.stack(
                    [mask[leader[mine]] & (leader[mine] >= 0) for mask in demands.lead]
                )
                badly_led[mine] = ~meets.any(0)
                less_preferred[mine] = ~meets[0] & meets.any(0)
        kinds = (under, over, unavailable, in_danger, violating, badly_led, less_preferred)
        return np.array([int(which.sum()) for which in kinds])
