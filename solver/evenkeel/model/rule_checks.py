"""What is wrong with a rule: by itself, on the nodes there are, and for those it binds."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.nodes import Nodes
from evenkeel.model.reading.containers import entries_of, items_of
from evenkeel.model.reading.quantities import is_real, is_whole
from evenkeel.model.rules import Condition, Rule, mask_of, parse_expression
from evenkeel.model.topology import NODE_TIER, Topology

LABELS = ("domains", "attributes", "node_names")
"""Arguments that say which labels there are; expressions are not judged by broken ones."""

TAGS = ("tags",)

NEVER_MET_BY_NONE = ("spread", "max_domains")
"""Limits that no replica at all would meet if their amount were 0."""


def check_rule(faults: FaultList, path: str, rule: Rule, nodes: Nodes, topology: Topology) -> bool:
    """Note everything wrong with a rule by itself: parsing, unknown names, contradictions."""
    before = len(faults.faults)
    path = f"{path}." if path else ""
    for name in ("require", "voters_require"):
        met: list[Condition] = []
        for i, text in enumerate(items_of(faults, f"{path}{name}", getattr(rule, name))):
            met += _conditions(faults, f"{path}{name}[{i}]", text, nodes, topology)
        _check_contradiction(faults, f"{path}{name}", met)
    for name in ("place", "voters_place"):
        for text, count in entries_of(faults, f"{path}{name}", getattr(rule, name)).items():
            at = f"{path}{name}[{text!r}]"
            conditions = _conditions(faults, at, text, nodes, topology)
            _check_contradiction(faults, at, conditions)
            if not isinstance(count, int) or isinstance(count, bool) or count < 0:
                faults.add(at, count, "must be a whole number, 0 or more")
    for i, text in enumerate(items_of(faults, f"{path}lead", rule.lead)):
        at = f"{path}lead[{i}]"
        _check_contradiction(faults, at, _conditions(faults, at, text, nodes, topology))
    for name in ("spread", "min_domains", "max_domains", "skew"):
        for tier, amount in entries_of(faults, f"{path}{name}", getattr(rule, name)).items():
            at = f"{path}{name}[{tier!r}]"
            _check_tier(faults, at, tier, topology)
            _check_amount(faults, at, amount, 1 if name in NEVER_MET_BY_NONE else 0)
    if len(faults.faults) == before:
        _check_domain_counts(faults, path, rule)
        if not faults.about(*LABELS, *TAGS):
            _check_reach(faults, path, rule, nodes, topology)
    return len(faults.faults) == before


def check_counts(
    faults: FaultList,
    path: str,
    rule: Rule,
    bound: str,
    replicas: NDArray[np.integer[Any]],
    voters: NDArray[np.integer[Any]],
    nodes: Nodes,
    topology: Topology,
) -> None:
    """Note counts above the number of replicas or voters of a partition or group that is bound."""
    path = f"{path}." if path else ""
    asked = replicas > 0
    if not asked.any():
        return
    least, least_voters = int(replicas[asked].min()), int(voters[asked].min())
    for name, counts, there, whose in (
        ("place", rule.place, least, "replicas"),
        ("voters_place", rule.voters_place, least_voters, "voters"),
    ):
        message = f"asks for more than the {there} {whose} of a {bound} it binds"
        beyond = {text: count for text, count in counts.items() if count > there}
        for text, count in beyond.items():
            faults.add(f"{path}{name}[{text!r}]", count, message)
        apart = _apart(counts, nodes, topology)
        if not beyond and sum(apart.values()) > there:
            faults.add(f"{path}{name}", apart, f"{message}: no node counts twice here")
    for limit in rule.limits(per_node=False):
        if limit.kind == "min_domains" and limit.hard and limit.amount > least:
            faults.add(
                f"{path}min_domains[{limit.tier!r}]", limit.amount,
                f"asks for more than the {least} replicas of a {bound} it binds",
            )  # fmt: skip


def _conditions(
    faults: FaultList, path: str, text: object, nodes: Nodes, topology: Topology
) -> list[Condition]:
    """Read an expression, noting what does not parse and what no node knows."""
    parsed = parse_expression(faults, path, text)
    known = [one for one in parsed if not faults.about(*(TAGS if one.value is None else LABELS))]
    mask_of(known, nodes, topology, faults, path)
    return list(parsed)


def _check_tier(faults: FaultList, path: str, tier: str, topology: Topology) -> None:
    known = [*topology.tiers, NODE_TIER]
    if tier not in known and not faults.about("domains"):
        faults.add(path, tier, f"unknown tier; known: {known}")


def _check_amount(faults: FaultList, path: str, amount: object, least: int) -> None:
    """Note what is no amount."""
    number = amount
    if isinstance(amount, tuple):
        if len(amount) not in (2, 3) or amount[0] is None or amount[1] not in ("hard", "soft"):
            faults.add(path, amount, 'must be a number or (number, "hard" or "soft")')
            return
        number = amount[0]
        _check_weight(faults, path, amount)
    if number is not None and not (is_whole(number) and number >= least):  # type: ignore[operator]
        faults.add(path, number, f"must be a whole number, {least} or more")


def _check_weight(faults: FaultList, path: str, amount: tuple[object, ...]) -> None:
    """Note a weight that is none, and one of a hard limit."""
    if len(amount) == 2:
        return
    weight = amount[2]
    if amount[1] == "hard":
        faults.add(path, amount, "only a soft limit has a weight")
    elif not is_real(weight) or not 0.0 < weight < np.inf:  # type: ignore[operator]
        faults.add(path, weight, "must be a weight, above 0 and finite")


def _check_contradiction(faults: FaultList, path: str, conditions: list[Condition]) -> None:
    """Note the first condition of a conjunction that no node can meet together with others."""
    met: set[Condition] = set()
    label: dict[str, Condition] = {}
    for one in conditions:
        other: Condition | None = replace(one, wanted=not one.wanted)
        if other not in met:
            wanted = label.setdefault(one.key, one) if one.wanted and one.value is not None else one
            other = None if wanted.value == one.value else wanted
        if other is not None:
            faults.add(path, f"{other}, {one}", "contradict each other: no node meets both")
            return
        met.add(one)


def _check_domain_counts(faults: FaultList, path: str, rule: Rule) -> None:
    """Note a least number of domains above the greatest."""
    amounts = {(limit.kind, limit.tier): limit for limit in rule.limits() if limit.hard}
    for (kind, tier), limit in amounts.items():
        most = amounts.get(("max_domains", tier))
        if kind == "min_domains" and most is not None and limit.amount > most.amount:
            faults.add(
                f"{path}min_domains[{tier!r}]",
                limit.amount,
                f"contradicts max_domains[{tier!r}] = {most.amount}",
            )


def _check_reach(
    faults: FaultList, path: str, rule: Rule, nodes: Nodes, topology: Topology
) -> None:
    """Note requirements, and places to fill, that some nodes meet one by one but none together."""

    def hopeless(texts: Iterable[str]) -> bool:
        silent = FaultList()
        conditions = [one for text in texts for one in parse_expression(silent, "", text)]
        masks = [mask_of([one], nodes, topology, silent, "") for one in conditions]
        met = np.ones(len(nodes), bool)
        for mask in masks:
            met &= mask
        return not met.any() and all(mask.any() for mask in masks)

    required: list[str] = []
    for kind in ("", "voters_"):
        own = list(getattr(rule, f"{kind}require"))
        required += own
        if own and hopeless(required):
            faults.add(f"{path}{kind}require", required, "no node meets all of these together")
            return
        for text, count in getattr(rule, f"{kind}place").items():
            if count > 0 and hopeless([*required, text]):
                together = " together with what is required" if required else ""
                faults.add(
                    f"{path}{kind}place[{text!r}]", [*required, text],
                    f"no node meets it{together}",
                )  # fmt: skip


def _apart(counts: Mapping[str, int], nodes: Nodes, topology: Topology) -> dict[str, int]:
    """Return demands, the greatest first, whose nodes do not overlap: their counts add up."""
    taken = np.zeros(len(nodes), bool)
    found: dict[str, int] = {}
    silent = FaultList()
    for text in sorted(counts, key=lambda text: -counts[text]):
        mask = mask_of(parse_expression(silent, "", text), nodes, topology, silent, "")
        if mask.any() and not (mask & taken).any():
            taken |= mask
            found[text] = counts[text]
    return found
