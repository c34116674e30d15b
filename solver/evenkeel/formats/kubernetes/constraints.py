"""Spread constraints, anti-affinity and eligible nodes of workloads as rules."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from evenkeel.formats.kubernetes.conditions import allowed, selects
from evenkeel.formats.kubernetes.objects import Objects
from evenkeel.formats.kubernetes.resources import Node, PodAntiAffinity
from evenkeel.formats.kubernetes.workloads import Selected, Workload
from evenkeel.model.rules import Amount, Rule

HOST = "kubernetes.io/hostname"
SHORT = {"topology.kubernetes.io/region": "region", "topology.kubernetes.io/zone": "zone"}
"""Tiers that every cluster has, under names that people use."""


class Constraints:
    """Turns what pods ask for into tiers, tags and rules."""

    def __init__(self, objects: Objects, workloads: Sequence[Workload]) -> None:
        self.nodes: list[Node] = [node for _, node in objects.nodes.values()]
        self.labels = [node.metadata.labels or {} for node in self.nodes]
        self.workloads = workloads
        self.selected = Selected(workloads)
        self.notes: list[str] = []
        """What was asked for and is not kept, for people."""

        self._masks: dict[bytes, Any] = {}
        self._tags: dict[bytes, str] = {}
        self._rules: dict[bytes, int] = {}
        self.rules: list[Rule] = []
        self.keys = self._keys()

    def _keys(self) -> list[str]:
        """Return the labels that are tiers, those with the fewest domains first."""
        asked: set[str] = set()
        for one in self.workloads:
            spec = one.first.spec
            asked |= {each.topologyKey for each in spec.topologySpreadConstraints or ()}
            apart = spec.affinity.podAntiAffinity if spec.affinity else None
            asked |= {key for key, _, _ in _terms(apart)}
        asked -= {HOST}
        keys = asked | {*SHORT}
        counts = {key: len({own.get(key) for own in self.labels} - {None}) for key in keys}
        # what is asked for is a tier, even if no node has a place in it
        known = [key for key in keys if counts[key] or key in asked]
        return sorted(known, key=lambda key: (key not in SHORT, counts[key], key))

    def tier(self, key: str) -> str:
        """Return the name of the tier of a label."""
        if key == HOST:
            return "node"
        return SHORT.get(key, f"label {key}" if key in {"node", "region", "zone"} else key)

    def domains(self) -> dict[str, Any]:
        """Return the label of each node per tier; all but the first cross, as labels do."""
        named = {self.tier(key): [own.get(key, "") for own in self.labels] for key in self.keys}
        tags = {tag: np.frombuffer(mask, np.bool_) for mask, tag in self._tags.items()}
        return {"domains": named, "crossing": [*named][1:], "tags": tags}

    def rule_of(self, one: Workload) -> int:
        """Return the number of the rule of a workload."""
        require = self._require(one)
        spread: dict[str, Amount] = {"node": None}
        skew: dict[str, Amount] = {}
        for key, weight, selector in _terms(_apart(one)):
            if not selects(selector, one.labels):
                self.notes.append(f"{_name(one)}: anti-affinity with other pods by {key}")
                continue
            tier = self.tier(key)
            if weight is None or spread.get(tier) is None:
                spread[tier] = 1 if weight is None else (1, "soft", float(weight))
        for each in one.first.spec.topologySpreadConstraints or ():
            tier, key = self.tier(each.topologyKey), each.topologyKey
            if not selects(each.labelSelector, one.labels):
                self.notes.append(f"{_name(one)}: a spread of other pods by {key}")
                continue
            own = {} if each.labelSelector is None else each.labelSelector.matchLabels or {}
            if len(self.selected.by(one.namespace, own)) > 1:
                self.notes.append(f"{_name(one)}: a spread by {key} that counts others' pods, too")
            soft = each.whenUnsatisfiable == "ScheduleAnyway"
            amount: Amount = (each.maxSkew, "soft") if soft else each.maxSkew
            if each.minDomains and not soft and self._domains(one, key) < each.minDomains:
                # the fewest count as none: no domain has more than the skew
                spread[tier] = min(each.maxSkew, _number(spread.get(tier)))
            else:
                skew[tier] = amount
        affinity = one.first.spec.affinity
        if affinity and affinity.podAffinity is not None:
            self.notes.append(f"{_name(one)}: affinity with other pods")
        near = affinity.nodeAffinity if affinity else None
        if near and near.preferredDuringSchedulingIgnoredDuringExecution:
            self.notes.append(f"{_name(one)}: nodes that it would rather be on")
        rule = Rule(require=require, spread=spread, skew=skew)
        return self._numbered(rule)

    def _numbered(self, rule: Rule) -> int:
        key = msgspec.json.encode([rule.require, rule.spread, rule.skew])
        if key not in self._rules:
            self._rules[key] = len(self.rules)
            self.rules.append(rule)
        return self._rules[key]

    def _mask(self, one: Workload) -> Any:
        spec = one.first.spec
        near = spec.affinity.nodeAffinity if spec.affinity else None
        needed = near.requiredDuringSchedulingIgnoredDuringExecution if near else None
        key = msgspec.json.encode([spec.nodeSelector, needed, spec.tolerations])
        if key not in self._masks:
            self._masks[key] = allowed(spec, self.nodes)
        return self._masks[key]

    def _require(self, one: Workload) -> list[str]:
        mask = self._mask(one)
        if mask.all():
            return []
        number = len(self._tags)
        return [f"+{self._tags.setdefault(mask.tobytes(), f'eligible {number}')}"]

    def _domains(self, one: Workload, key: str) -> int:
        """Return in how many domains the pods of a workload may be."""
        mask = self._mask(one)
        found = {own.get(key) for own, may in zip(self.labels, mask, strict=True) if may}
        return len(found - {None})


def _number(amount: Amount) -> int:
    """Return a hard amount; a great one where there is none."""
    return amount if isinstance(amount, int) else 2**15


def _name(one: Workload) -> str:
    return f"{one.namespace}/{one.kind}/{one.name}"


def _apart(one: Workload) -> PodAntiAffinity | None:
    affinity = one.first.spec.affinity
    return affinity.podAntiAffinity if affinity else None


def _terms(apart: PodAntiAffinity | None) -> list[tuple[str, int | None, Any]]:
    """Return label, weight and selector of each term; without a weight it must hold."""
    if apart is None:
        return []
    hard = apart.requiredDuringSchedulingIgnoredDuringExecution or []
    soft = apart.preferredDuringSchedulingIgnoredDuringExecution or []
    return [
        *((one.topologyKey, None, one.labelSelector) for one in hard),
        *(
            (one.podAffinityTerm.topologyKey, one.weight, one.podAffinityTerm.labelSelector)
            for one in soft
        ),
    ]
