"""The combined rules of each partition, and the nodes that they allow."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.partitions import Partitions
from evenkeel.model.rules import Rule, mask_of, parse_expression
from evenkeel.model.runtime.memoize import memoize


@dataclass(frozen=True)
class BoundRule:
    """The rules that bind a partition by itself: its own, and what its group's demands of each."""

    own: Rule  # the partition's rule, or the default
    # the group's rule, whose requirements and leader preferences hold for each partition
    shared: Rule | None

    @property
    def require(self) -> list[str]:
        """Expressions that the node of every replica must meet."""
        return [*self.own.require, *(self.shared.require if self.shared else ())]

    @property
    def voters_require(self) -> list[str]:
        """Expressions that the node of every voter must meet."""
        return [*self.own.voters_require, *(self.shared.voters_require if self.shared else ())]

    @property
    def lead(self) -> list[str]:
        """Where the leader should be, first choice first."""
        return [*(self.own.lead or (self.shared.lead if self.shared else ()))]


def node_mask(cluster: Cluster, text: str) -> NDArray[np.bool_]:
    """Return the nodes that meet an expression, which was validated with the cluster, (N,) bool."""
    silent = FaultList()
    tests = parse_expression(silent, "", text)
    return mask_of(tests, cluster.nodes, cluster.topology, silent, "")


def judged_by(cluster: Cluster) -> tuple[object, ...]:
    """Return all columns that rules and their expressions depend on."""
    nodes = cluster.nodes
    return cluster.rules, cluster.topology, nodes.names, nodes.tags, nodes.attributes


def bound_rules(cluster: Cluster) -> tuple[list[BoundRule], NDArray[np.int32]]:
    """Return the distinct combinations of partition and group rule, and each partition's."""
    partitions, rules = cluster.partitions, cluster.rules
    return memoize(partitions, "bound rules", lambda: _combined(partitions, rules), rules)


def _combined(
    partitions: Partitions, rules: tuple[Rule, ...]
) -> tuple[list[BoundRule], NDArray[np.int32]]:
    own = partitions.rule
    if (partitions.group_rule < 0).all():
        shared = np.full(len(own), -1, np.int32)
    else:
        shared = partitions.group_rule[partitions.group]
    if len(own) == 0:
        return [BoundRule(Rule(), None)], np.zeros(0, np.int32)
    key = (own.astype(np.int64) + 1) * (len(rules) + 1) + shared + 1
    if key[0] == key.min() == key.max():
        distinct, index = key[:1], np.zeros(len(own), np.int32)
    else:
        distinct, found = np.unique(key, return_inverse=True)
        index = found.astype(np.int32)
    combined = []
    for one in distinct.tolist():
        a, b = divmod(one, len(rules) + 1)
        combined.append(BoundRule(rules[a - 1] if a else Rule(), rules[b - 1] if b else None))
    return combined, index


def allowed_masks(cluster: Cluster, rules: list[BoundRule]) -> NDArray[np.bool_]:
    """Return, per combination of rules, the nodes that may hold a replica at all, (Q, N) bool."""
    allowed = np.ones((len(rules), len(cluster.nodes)), bool)
    for i, rule in enumerate(rules):
        for text in rule.require:
            allowed[i] &= node_mask(cluster, text)
    return allowed
