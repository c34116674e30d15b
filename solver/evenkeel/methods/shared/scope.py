"""Scopes of limits for solvers: partitions or groups."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.binding import allowed_masks, bound_rules, judged_by, node_mask
from evenkeel.model.cluster import Cluster
from evenkeel.model.rules import Limit, LimitKind, Rule
from evenkeel.model.runtime.memoize import memoize

NONE = -1
"""Amount of a limit that does not bind."""


@dataclass(frozen=True, eq=False)
class Scope:
    """Limits of E members, which are partitions or groups, under Q rules."""

    column: str  # "partition" or "group"
    limits: tuple[tuple[Limit, ...], ...]  # limits of each rule
    rule: NDArray[np.int32]  # (E,) rule of each member
    wanted: NDArray[np.bool_]  # (E,) members of which at least one replica is wanted
    open: NDArray[np.bool_]  # (Q, N) nodes that each rule leaves open to replicas

    @cached_property
    def bindings(self) -> "tuple[Binding, ...]":
        """What binds the members, one kind of limit on one tier at a time."""
        amounts: dict[tuple[str, LimitKind, bool], NDArray[np.int32]] = {}
        for q, limits in enumerate(self.limits):
            for limit in limits:
                key = (limit.tier, limit.kind, limit.hard)
                none = np.full(len(self.limits), NONE, np.int32)
                amounts.setdefault(key, none)[q] = limit.amount
        return tuple(
            Binding(tier, kind, hard, by_rule.take(self.rule))
            for (tier, kind, hard), by_rule in amounts.items()
        )


@dataclass(frozen=True, eq=False)
class Binding:
    """One kind of limit on one tier, for all members of a scope."""

    tier: str  # tier, or "node"
    kind: LimitKind  # as in ``Limit``
    hard: bool  # as in ``Limit``
    # (E,) the number that each member is held to; -1 where it is not bound
    amount: NDArray[np.int32]


def partition_scope(cluster: Cluster) -> Scope:
    """Return the limits that bind each partition by itself."""

    def read() -> Scope:
        rules, rule_of = bound_rules(cluster)
        return Scope(
            column="partition",
            limits=tuple(tuple(rule.own.limits()) for rule in rules),
            rule=rule_of,
            wanted=cluster.partitions.replicas > 0,
            open=allowed_masks(cluster, rules),
        )

    return memoize(cluster.partitions, "partition scope", read, *judged_by(cluster))


def group_scope(cluster: Cluster) -> Scope:
    """Return the limits that bind each group as a whole."""
    partitions = cluster.partitions

    def read() -> Scope:
        rules = (*cluster.rules, Rule())
        groups = len(partitions.group_names)
        is_open = np.ones((len(rules), len(cluster.nodes)), bool)
        for q, rule in enumerate(rules):
            for text in rule.require:
                is_open[q] &= node_mask(cluster, text)
        return Scope(
            column="group",
            limits=tuple(tuple(rule.limits(per_node=False)) for rule in rules),
            rule=np.where(partitions.group_rule < 0, len(cluster.rules), partitions.group_rule),
            wanted=np.bincount(partitions.group, partitions.replicas > 0, groups) > 0,
            open=is_open,
        )

    return memoize(partitions, "group scope", read, *judged_by(cluster))
