"""Softened: rules that keep replicas apart by a tier, and yield where too few domains are left."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evenkeel.model.errors import FaultList
from evenkeel.model.reading.keywords import did_you_mean

if TYPE_CHECKING:
    from evenkeel.model.cluster import Cluster
    from evenkeel.model.rules import Rule

KINDS = ("spread", "min_domains", "skew")
"""What keeps replicas apart."""


def softened(cluster: "Cluster", tiers: Sequence[str]) -> "Cluster":
    """Return a cluster in which the rules about some tiers are soft.

    Raises
    ------
    InvalidInput
        If no hard rule keeps replicas apart by one of them.
    """
    faults = FaultList()
    known = sorted({tier for rule in cluster.rules for tier in _hard(rule)})
    for tier in tiers:
        if tier not in known:
            message = (
                f"no hard rule is about it; those there are: {known}{did_you_mean(tier, known)}"
            )
            faults.add("tier", tier, message)
    faults.raise_if_any()
    rules = [_yielding(rule, {*tiers}) for rule in cluster.rules]
    return cluster.replace(
        rules=rules, rule=cluster.partitions.rule, group_rule=cluster.partitions.group_rule
    )


def too_few_domains(cluster: "Cluster") -> Iterator[str]:
    """Yield by which tiers rules keep more replicas apart than there are domains that take any."""
    import numpy as np

    from evenkeel.model.rules import mask_of, parse_expression

    nodes, topology = cluster.nodes, cluster.topology
    named = set()
    for r, rule in enumerate(cluster.rules):
        wanted = int(cluster.partitions.replicas[cluster.partitions.rule == r].max(initial=0))
        takes = nodes.alive & nodes.accepts
        for text in rule.require:
            tests = parse_expression(FaultList(), "require", text)
            takes = takes & mask_of(tests, nodes, topology, FaultList(), "require")
        for tier, amount in rule.spread.items():
            if tier in named or tier not in topology.tiers or not isinstance(amount, int):
                continue
            domain = topology.domain[topology.tier_index(tier)][takes]
            left = len(np.unique(domain))
            if (domain >= 0).all() and amount * left < wanted:
                named.add(tier)
                yield (
                    f"a rule wants at most {amount} of {wanted} replicas in one {tier}, and nodes "
                    f"that take any are left in {left} only: what has no other place stays; "
                    f"--soft {tier} lets the rule yield where it must"
                )


def _hard(rule: "Rule") -> Iterator[str]:
    """Yield the tiers by which a rule keeps replicas apart, come what may."""
    for kind in KINDS:
        yield from (tier for tier, amount in getattr(rule, kind).items() if _is_hard(amount))


def _is_hard(amount: Any) -> bool:
    return isinstance(amount, int)


def _yielding(rule: "Rule", tiers: set[str]) -> "Rule":
    """Return a rule whose limits on some tiers are soft."""
    changed: dict[str, Any] = {
        kind: {
            tier: (amount, "soft") if tier in tiers and _is_hard(amount) else amount
            for tier, amount in getattr(rule, kind).items()
        }
        for kind in KINDS
    }
    return replace(rule, **changed)
