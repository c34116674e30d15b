"""Rules in: which there are, and whether they suit the nodes and the partitions they bind."""

from collections.abc import Mapping

import numpy as np

from evenkeel.model.errors import FaultList
from evenkeel.model.intake.sizes import Given
from evenkeel.model.nodes import Nodes
from evenkeel.model.partitions import Partitions
from evenkeel.model.reading.containers import items_of
from evenkeel.model.rule_checks import check_counts, check_rule
from evenkeel.model.rules import Rule
from evenkeel.model.topology import Topology

COUNTED_BY = ("rule", "group", "group_rule", "replicas", "voters", "placement", "first", "role")
"""Arguments without which nobody can say how many replicas a rule binds."""


def read_rules(faults: FaultList, given: Given) -> dict[str, Rule]:
    """Return the rules by where they stand; a plain one stands in for what is no rule."""
    listed = given.get("rules")
    bound = {
        f"rules[{i}]": one
        for i, one in enumerate(items_of(faults, "rules", () if listed is None else listed))
    }
    for path, one in bound.items():
        if not isinstance(one, Rule):
            faults.add(path, one, "must be a Rule")
            bound[path] = Rule()
    spread = given.get("spread")
    if spread is None:
        return bound
    if bound:
        faults.add("spread", spread, "give either spread or rules, not both")
        return bound
    return {"": Rule(spread=spread)}


def check_rules(
    faults: FaultList,
    rules: Mapping[str, Rule],
    nodes: Nodes,
    topology: Topology,
    partitions: Partitions,
) -> None:
    """Check rules by themselves, then against the partitions and groups that they bind."""
    sized = not faults.about(*COUNTED_BY)
    of_group = [
        np.bincount(partitions.group, wanted, len(partitions.group_names)).astype(np.int64)
        for wanted in (partitions.replicas, partitions.voters)
        if sized and (partitions.group_rule >= 0).any()
    ]
    for i, (path, one) in enumerate(rules.items()):
        if not check_rule(faults, path, one, nodes, topology) or not sized:
            continue
        mine = partitions.rule == i
        check_counts(
            faults, path, one, "partition", partitions.replicas[mine], partitions.voters[mine],
            nodes, topology,
        )  # fmt: skip
        if of_group:
            ours = partitions.group_rule == i
            replicas, voters = of_group
            check_counts(faults, path, one, "group", replicas[ours], voters[ours], nodes, topology)
