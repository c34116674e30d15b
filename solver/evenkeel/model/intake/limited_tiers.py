"""Tiers that rules limit: nodes which join have to be in a domain of each.

A node without a domain is outside of all of them: no limit of a tier counts what stands on it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenkeel.model.errors import FaultList
from evenkeel.model.intake.sizes import Given
from evenkeel.model.reading.keywords import did_you_mean
from evenkeel.model.rules import Rule
from evenkeel.model.topology import Topology, read_labels

LISTED = 10
"""Nodes without a domain that are listed; the others are counted."""


def limited_tiers(rules: Sequence[Rule], topology: Topology) -> list[str]:
    """List the tiers that rules set limits on and that every node has a domain of.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[9.0]] * 2, load=[], domains={"zone": ["a", "b"], "rack": ["x", None]},
    ...     rules=[Rule(spread={"zone": 1, "rack": 1})])
    >>> limited_tiers(c.rules, c.topology)
    ['zone']
    """
    limited = {limit.tier for rule in rules for limit in rule.limits()}
    return [
        tier
        for row, tier in enumerate(topology.tiers)
        if tier in limited and len(topology.label[row]) and (topology.label[row] >= 0).all()
    ]


def check_domains_given(
    faults: FaultList, parts: Mapping[str, Any], given: Given, more: int
) -> None:
    """Note tiers that the cluster does not have, and new nodes that rules would not count."""
    topology: Topology = parts["topology"]
    told = given.get("domains")
    told = told if isinstance(told, Mapping) else {}
    for tier in told:
        if isinstance(tier, str) and tier not in topology.tiers:
            known = list(topology.tiers)
            message = f"unknown tier; known: {known}{did_you_mean(tier, known)}"
            faults.add(f"domains[{tier!r}]", tier, message)
    for tier in limited_tiers(parts["rules"], topology):
        inside = FaultList()
        codes, _ = read_labels(inside, "", told.get(tier, [None] * more), more)
        strays = [] if inside else np.flatnonzero(codes < 0).tolist()
        if strays:
            told_of = strays if len(strays) <= LISTED else [*strays[:LISTED], "..."]
            message = f"new nodes have none, and rules count replicas by {tier}: give each its own"
            faults.add(f"domains[{tier!r}]", told_of, message)
