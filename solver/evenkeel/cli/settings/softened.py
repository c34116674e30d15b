"""Rules that keep replicas apart by a tier: softened, or adapted to other numbers of replicas."""

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


def spread_evenly(before: "Cluster", after: "Cluster") -> "tuple[Cluster, list[str]]":
    """Return a cluster whose even spreads are even for other numbers of replicas, and notes.

    A limit that spread the former number evenly, such as one of three in each of three racks,
    spreads the new one evenly, too: four are at most two in each.
    """
    import numpy as np

    rules, rule = [*after.rules], after.partitions.rule.copy()
    then, now = before.partitions.replicas, after.partitions.replicas
    notes = []
    bound = (then != now) & (rule >= 0)
    for r, old, new in np.unique(np.stack([rule, then, now], 1)[bound], axis=0).tolist():
        own = dict[str, Any]()
        for tier, amount in rules[r].spread.items():
            count = len(_domains_left(after, rules[r], tier))
            if count and _is_hard(amount) and amount == -(-old // count) != -(-new // count):
                own[tier] = -(-new // count)
                if count > 1:  # one holds all in any case
                    notes.append(
                        f"{new} replicas are spread evenly over {count} {tier}s: at most "
                        f"{own[tier]} of a partition in one, instead of {amount}; --spread "
                        f"{tier}=N sets another limit"
                    )
        if own:
            rule[bound & (after.partitions.rule == r) & (then == old) & (now == new)] = len(rules)
            rules.append(replace(rules[r], spread={**rules[r].spread, **own}))
    if len(rules) == len(after.rules):
        return after, []
    changed = after.replace(rules=rules, rule=rule, group_rule=after.partitions.group_rule)
    return changed, [*dict.fromkeys(notes)]


def _domains_left(cluster: "Cluster", rule: "Rule", tier: str) -> list[int]:
    """Return the domains of a tier with nodes that take replicas of a rule; none where some has
    no domain, or that is no tier.
    """
    import numpy as np

    from evenkeel.model.rules import mask_of, parse_expression

    nodes, topology = cluster.nodes, cluster.topology
    takes = nodes.alive & nodes.accepts
    for text in rule.require:
        tests = parse_expression(FaultList(), "require", text)
        takes = takes & mask_of(tests, nodes, topology, FaultList(), "require")
    if tier not in topology.tiers:
        return []
    domain = np.unique(topology.domain[topology.tier_index(tier)][takes])
    return [] if (domain < 0).any() else domain.tolist()


def too_few_domains(cluster: "Cluster") -> Iterator[str]:
    """Yield by which tiers rules keep more replicas apart than there are domains that take any."""
    named = set()
    for r, rule in enumerate(cluster.rules):
        wanted = int(cluster.partitions.replicas[cluster.partitions.rule == r].max(initial=0))
        for tier, amount in rule.spread.items():
            if tier in named or not isinstance(amount, int):
                continue
            left = len(_domains_left(cluster, rule, tier))
            if left and amount * left < wanted:
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
