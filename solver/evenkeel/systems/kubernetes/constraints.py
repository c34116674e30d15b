"""Spread constraints, anti-affinity and eligible nodes of workloads as rules."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.rules import Amount, Rule
from evenkeel.systems.expressions import word
from evenkeel.systems.kubernetes.apart import Apart, chosen_by
from evenkeel.systems.kubernetes.conditions import selects
from evenkeel.systems.kubernetes.eligible import Eligible
from evenkeel.systems.kubernetes.objects import Objects
from evenkeel.systems.kubernetes.resources import Node, SpreadConstraint
from evenkeel.systems.kubernetes.selected import Selected
from evenkeel.systems.kubernetes.terms import terms_of, with_own
from evenkeel.systems.kubernetes.workloads import Workload

HOST = "kubernetes.io/hostname"
SHORT = {"topology.kubernetes.io/region": "region", "topology.kubernetes.io/zone": "zone"}
"""Tiers that every cluster has, under names that people use."""


class Constraints:
    """Turns what pods ask for into tiers, tags, rules and closed nodes.

    ``workloads`` may move; ``staying`` do not, and count where others ask about them.
    """

    def __init__(
        self, objects: Objects, workloads: Sequence[Workload], staying: Sequence[Workload]
    ) -> None:
        self.nodes: list[Node] = [node for _, node in objects.nodes.values()]
        self.labels = [node.metadata.labels or {} for node in self.nodes]
        self.workloads = workloads
        self.everyone = [*workloads, *staying]
        self.selected = Selected(self.everyone)
        self.eligible = Eligible(self.nodes)
        self.notes: list[str] = []
        """What was asked for and is not kept, for people."""

        self._tags: dict[bytes, str] = {}
        self._rules: dict[bytes, int] = {}
        self.rules: list[Rule] = []
        self.keys = self._keys()
        place = {name: n for n, name in enumerate(objects.nodes)}
        self._stands = [_stands(one, place) for one in self.everyone]
        apart = Apart(
            self.everyone, len(workloads), self.selected, self._stands, self.eligible.codes
        )
        self._closed = apart.closed
        self._loose = apart.loose

    def _keys(self) -> list[str]:
        """Return the labels that are tiers, those with the fewest domains first."""
        asked: set[str] = set()
        for one in self.workloads:
            spec = one.first.spec
            asked |= {each.topologyKey for each in spec.topologySpreadConstraints or ()}
            asked |= {term.key for term in terms_of(one)}
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

    def forbidden(self) -> NDArray[np.int32]:
        """Return pairs of a workload and a node that is closed for it, (F, 2)."""
        parts = [np.zeros((0, 2), np.int32)]
        for w, mask in sorted(self._closed.items()):
            shut = np.flatnonzero(mask)
            parts.append(np.stack([np.full(len(shut), w), shut], 1).astype(np.int32))
        return np.concatenate(parts)

    def rule_of(self, w: int) -> int:
        """Return the number of the rule of a workload, given by its number."""
        one = self.workloads[w]
        spread: dict[str, Amount] = {"node": None}
        skew: dict[str, Amount] = {}
        self._anti_affinity(w, spread)
        looked_at = self._spreads(w, spread, skew)
        affinity = one.first.spec.affinity
        if affinity and affinity.podAffinity is not None:
            self._note(one, "affinity with other pods")
        near = affinity.nodeAffinity if affinity else None
        if near and near.preferredDuringSchedulingIgnoredDuringExecution:
            self._note(one, "nodes that it would rather be on")
        if len(one.pods) > 1 and spread["node"] != 1:
            self._note(one, "its pods may share nodes: one that joins another counts as no move")
        require = self._require(w, looked_at)
        rule = Rule(require=require, spread=spread, skew=skew, place=self._places(one))
        return self._numbered(rule)

    def _anti_affinity(self, w: int, spread: dict[str, Amount]) -> None:
        """Set limits for pods that keep away from pods of the same workload."""
        one = self.workloads[w]
        for term in terms_of(one):
            tier, weight = self.tier(term.key), term.weight
            chosen = chosen_by(one, term, self.selected)
            if term.guesses:
                self._note(one, f"anti-affinity by {term.key} in namespaces with some labels")
            if weight is None and (w, term.key) in self._loose:
                self._note(
                    one, f"anti-affinity with other pods by {term.key}, but for where they are now"
                )
            elif weight is not None and chosen - {w}:
                self._note(one, f"preferred anti-affinity with other pods by {term.key}")
            if w not in chosen:
                continue
            if weight is None or spread.get(tier) is None:
                spread[tier] = 1 if weight is None else (1, "soft", float(weight))

    def _spreads(
        self, w: int, spread: dict[str, Amount], skew: dict[str, Amount]
    ) -> NDArray[np.bool_]:
        """Set limits for spread constraints; return closed nodes whose domains they look at."""
        one = self.workloads[w]
        spec = one.first.spec
        looked_at = np.zeros(len(self.nodes), np.bool_)
        for each in spec.topologySpreadConstraints or ():
            tier, key = self.tier(each.topologyKey), each.topologyKey
            selector = with_own(each.labelSelector, one.labels, each.matchLabelKeys or ())
            if not selects(selector, one.labels):
                self._note(one, f"a spread of other pods by {key}")
                continue
            others = self.selected.by(one.namespace, selector) - {w}
            if any(not self.everyone[other].leaves for other in others):
                self._note(one, f"a spread by {key} that counts others' pods, too")
            if not (self.eligible.codes(key) >= 0).any():
                self._note(one, f"a spread by {key}, a label that no node has")
            if each.whenUnsatisfiable == "ScheduleAnyway":
                # what must hold by the same label comes first
                skew.setdefault(tier, (each.maxSkew, "soft"))
            elif each.minDomains and self.eligible.domains(spec, each) < each.minDomains:
                # the fewest count as none: no domain has more than the skew
                spread[tier] = min(each.maxSkew, _number(spread.get(tier)))
            else:
                looked_at |= self._hold(w, each, spread, skew)
        return looked_at

    def _hold(
        self,
        w: int,
        each: SpreadConstraint,
        spread: dict[str, Amount],
        skew: dict[str, Amount],
    ) -> NDArray[np.bool_]:
        """Set the limit of a spread that must hold; return closed nodes that a skew looks at.

        A closed domain never has more than now, so that others may never have more than the skew
        beyond that. It is said besides: a skew that is broken lets a domain grow up to the fullest.
        With the emptiest at none it says all.
        """
        one, tier = self.workloads[w], self.tier(each.topologyKey)
        if self.eligible.cordons(one.first.spec, each):
            self._note(one, f"a spread by {each.topologyKey} that passes over cordoned nodes")
        closed = self.eligible.closed(one.first.spec, each)
        if closed.any():
            codes = self.eligible.codes(each.topologyKey)
            stands = self._stands[w]
            # what stood on nodes that are not ready is made anew elsewhere
            own = codes[stands[self.eligible.ready[stands]]]
            least = min(int((own == domain).sum()) for domain in np.unique(codes[closed]))
            spread[tier] = min(each.maxSkew + least, _number(spread.get(tier)))
            if least == 0:
                return np.zeros_like(closed)
        skew[tier] = each.maxSkew
        return closed

    def _note(self, one: Workload, text: str) -> None:
        """Note what of a workload is not kept."""
        self.notes.append(f"{one.full_name}: {text}")

    def _numbered(self, rule: Rule) -> int:
        key = msgspec.json.encode([rule.require, rule.spread, rule.skew, rule.place])
        if key not in self._rules:
            self._rules[key] = len(self.rules)
            self.rules.append(rule)
        return self._rules[key]

    def _require(self, w: int, looked_at: NDArray[np.bool_]) -> list[str]:
        """Return where pods of a workload may be, and close what only counts to a spread.

        A skew looks at domains that the rule leaves open: what takes nothing is closed apart.
        """
        one = self.workloads[w]
        specs = one.specs
        if len(specs) > 1:
            self._note(one, "its pods ask for different nodes: each may be where any of them may")
        masks = [self.eligible.open(spec) for spec in specs]
        mask: NDArray[np.bool_] = np.logical_or.reduce(masks) | looked_at
        by = "selectors and affinity and taints"
        if looked_at.any():
            self._closed[w] = self._closed.get(w, np.zeros_like(mask)) | looked_at
        if one.reach:
            # who stands where the volume is stays there, whatever is asked for since
            torn = [
                own
                for own, (_, pod) in zip(one.reach, one.pods, strict=True)
                if pod.spec.nodeName and not (own & mask).any()
            ]
            mask = np.logical_or.reduce([mask & np.logical_or.reduce(one.reach), *torn])
            by += " and volumes"
        return [] if mask.all() else [f"+{self._tag(mask, f'{by} of {one.full_name}')}"]

    def _places(self, one: Workload) -> dict[str, int]:
        """Return how many pods of a workload must be among the nodes that reach their volumes.

        Where volumes differ, as many pods as have theirs there: so each still finds its own.
        """
        masks = {mask.tobytes(): mask for mask in one.reach}
        if len(masks) < 2:
            return {}
        return {
            f"+{self._tag(mask, f'volumes of {one.full_name}')}": sum(
                not bool((own & ~mask).any()) for own in one.reach
            )
            for mask in masks.values()
            if not mask.all()
        }

    def _tag(self, mask: NDArray[np.bool_], by: str) -> str:
        """Return the tag of some nodes, named after what leaves these open."""
        name = f"eligible {len(self._tags)} by {word(by)}"
        return self._tags.setdefault(mask.tobytes(), name)


def _number(amount: Amount) -> int:
    """Return a hard amount; a great one where there is none."""
    return amount if isinstance(amount, int) else 2**15


def _stands(one: Workload, place: dict[str, int]) -> NDArray[np.int64]:
    """Return the nodes where pods of a workload stand."""
    names = (pod.spec.nodeName or "" for _, pod in one.pods)
    return np.array([place[name] for name in names if name in place], np.int64)
