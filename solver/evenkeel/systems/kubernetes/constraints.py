"""Convert spread constraints, anti-affinity and eligible nodes of workloads to rules."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.rules import Amount, Rule, word
from evenkeel.systems.kubernetes.resources import (
    Node,
    NodeSelector,
    Objects,
    PodSpec,
    PodTerm,
    Requirement,
    Selector,
    SpreadConstraint,
    Taint,
    Toleration,
)
from evenkeel.systems.kubernetes.workloads import Workload
from evenkeel.systems.native.arguments import attributes_of

KEEPING_AWAY = {"NoSchedule", "NoExecute"}
# the taint of a cordon, which ``spec.unschedulable`` states, too
CORDONED = "node.kubernetes.io/unschedulable"


def holds(one: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether a condition on labels holds."""
    values = one.values or []
    own = labels.get(one.key)
    if one.operator == "Exists":
        return own is not None
    if one.operator == "DoesNotExist":
        return own is None
    if one.operator == "NotIn":
        return own not in values
    if own is None or not values:
        return False
    if one.operator == "In":
        return own in values
    texts = (own, values[0])
    if not all(text.lstrip("-").isdecimal() and len(text) < 20 for text in texts):
        return False
    left, right = map(int, texts)
    return left > right if one.operator == "Gt" else left < right


def selects(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector selects a pod with such labels; none selects nothing."""
    if selector is None:
        return False
    wanted = (selector.matchLabels or {}).items()
    return all(labels.get(key) == value for key, value in wanted) and all(
        holds(one, labels) for one in selector.matchExpressions or ()
    )


def near(spec: PodSpec, nodes: Sequence[Node]) -> NDArray[np.bool_]:
    """Return the nodes that a pod asks for by selector and affinity, (N,) bool."""
    return np.array([_wants(spec, node) for node in nodes], np.bool_)


def tolerated(spec: PodSpec, nodes: Sequence[Node]) -> NDArray[np.bool_]:
    """Return the nodes whose taints a pod tolerates, (N,) bool."""
    return np.array(
        [
            all(
                tolerates(spec, taint)
                for taint in node.spec.taints or ()
                if taint.effect in KEEPING_AWAY and taint.key != CORDONED
            )
            for node in nodes
        ],
        np.bool_,
    )


def ready(node: Node) -> bool:
    """Return whether a node is ready; one without the condition is."""
    status = {one.type: one.status for one in node.status.conditions or ()}
    return status.get("Ready", "True") == "True"


def tolerates(spec: PodSpec, taint: Taint) -> bool:
    """Whether a pod tolerates a taint."""
    return any(_tolerates(one, taint) for one in spec.tolerations or ())


def _wants(spec: PodSpec, node: Node) -> bool:
    """Whether a node meets the selector and the required affinity of a pod."""
    labels = node.metadata.labels or {}
    if any(labels.get(key) != value for key, value in (spec.nodeSelector or {}).items()):
        return False
    near_to = spec.affinity.nodeAffinity if spec.affinity else None
    required = near_to.requiredDuringSchedulingIgnoredDuringExecution if near_to else None
    return required is None or meets(required, node)


def meets(selector: NodeSelector, node: Node) -> bool:
    """Whether a node meets a term of a selector."""
    labels = node.metadata.labels or {}
    fields = {"metadata.name": node.metadata.name}
    terms = (
        [
            *(holds(one, labels) for one in term.matchExpressions or ()),
            *(holds(one, fields) for one in term.matchFields or ()),
        ]
        for term in selector.nodeSelectorTerms
    )
    # a term without conditions selects nothing
    return any(bool(term) and all(term) for term in terms)


def _tolerates(one: Toleration, taint: Taint) -> bool:
    if one.effect and one.effect != taint.effect:
        return False
    if one.key and one.key != taint.key:
        return False
    if one.operator == "Exists":
        return True
    return bool(one.key) and (one.value or "") == taint.value


Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]
# the label that every namespace has: its name; others of namespaces are not read
NAMED = "kubernetes.io/metadata.name"
NO_LABEL = "no node has the label of a spread that must hold, so that none takes the pods: {}"
LEFT_OUT = "left out: {}"


@dataclass(frozen=True, eq=False)
class Term:
    """Pods that a workload's should be apart from, in the domains of a label."""

    key: str  # label that names the domains
    weight: int | None  # what it is worth; None for a term that must hold
    selector: Selector | None  # which pods; none selects nothing
    listed: Sequence[str]  # namespaces by name
    spaces: Selector | None  # namespaces by their labels

    @property
    def guesses(self) -> bool:
        """Whether it selects namespaces by labels that are not read."""
        if self.spaces is None:
            return False
        keys = {*(self.spaces.matchLabels or ())}
        return bool((keys | {one.key for one in self.spaces.matchExpressions or ()}) - {NAMED})

    def namespaces(self, own: str, known: Iterable[str]) -> set[str]:
        """Return the namespaces that it looks into; without any named, that of its pod."""
        if self.spaces is None:
            return {*self.listed} or {own}
        return {*self.listed} | {name for name in known if selects(self.spaces, {NAMED: name})}


def terms_of(one: Workload) -> list[Term]:
    """Return the anti-affinity terms of a workload, those that must hold first."""
    affinity = one.first.spec.affinity
    apart = affinity.podAntiAffinity if affinity else None
    if apart is None:
        return []
    hard = apart.requiredDuringSchedulingIgnoredDuringExecution or []
    soft = apart.preferredDuringSchedulingIgnoredDuringExecution or []
    return [
        *(_term(each, None, one.labels) for each in hard),
        *(_term(each.podAffinityTerm, each.weight, one.labels) for each in soft),
    ]


def _term(given: PodTerm, weight: int | None, labels: Mapping[str, str]) -> Term:
    """Return a term with what it takes from the labels of its own pod."""
    selector = with_own(
        given.labelSelector, labels, given.matchLabelKeys or (), given.mismatchLabelKeys or ()
    )
    return Term(
        given.topologyKey, weight, selector, given.namespaces or (), given.namespaceSelector
    )


def with_own(
    selector: Selector | None,
    labels: Mapping[str, str],
    same: Sequence[str],
    other: Sequence[str] = (),
) -> Selector | None:
    """Return a selector that wants some labels to be as a pod has them, and some to differ."""
    if selector is None:
        return None
    more = [Requirement(key, "In", [labels[key]]) for key in same if key in labels]
    more += [Requirement(key, "NotIn", [labels[key]]) for key in other if key in labels]
    return Selector(selector.matchLabels, [*(selector.matchExpressions or ()), *more])


CORDON = Taint(CORDONED, "NoSchedule")


class Eligible:
    """Looks nodes up for what pods ask for, the same only once."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._labels = [node.metadata.labels or {} for node in nodes]
        self._masks: dict[bytes, Mask] = {}
        self._codes: dict[str, NDArray[np.int64]] = {}
        self.ready: Mask = np.array([ready(node) for node in nodes], np.bool_)
        self.cordoned: Mask = np.array([node.spec.unschedulable for node in nodes], np.bool_)

    def codes(self, key: str) -> NDArray[np.int64]:
        """Return the domain of each node by a label, (N,); -1 for none."""
        if key not in self._codes:
            numbers: dict[str, int] = {}
            labels = [own.get(key) for own in self._labels]
            self._codes[key] = np.array(
                [-1 if one is None else numbers.setdefault(one, len(numbers)) for one in labels],
                np.int64,
            )
        return self._codes[key]

    def open(self, spec: PodSpec) -> Mask:
        """Return the nodes that a pod may come to, (N,)."""
        return self._near(spec) & self._tolerated(spec) & self._labelled(spec)

    def counted(self, spec: PodSpec, each: SpreadConstraint) -> Mask:
        """Return the nodes whose domains a spread looks at, (N,)."""
        mask = self._labelled(spec)
        if each.nodeAffinityPolicy != "Ignore":
            mask = mask & self._near(spec)
        if each.nodeTaintsPolicy == "Honor":
            # a node that is not ready has a taint for that
            mask = mask & self._tolerated(spec) & self.ready
        return mask

    def domains(self, spec: PodSpec, each: SpreadConstraint) -> int:
        """Return how many domains a spread looks at."""
        return len(np.unique(self.codes(each.topologyKey)[self.counted(spec, each)]))

    def closed(self, spec: PodSpec, each: SpreadConstraint, reached: Mask) -> Mask:
        """Return the nodes of domains that a spread looks at and no pod may come to, (N,)."""
        codes = self.codes(each.topologyKey)
        # volumes are on the nodes that are reached; a spread looks at the others all the same
        open_to = self.open(spec) & self.ready & reached
        return self.counted(spec, each) & ~np.isin(codes, codes[open_to])

    def cordons(self, spec: PodSpec, each: SpreadConstraint) -> bool:
        """Whether a spread does not look at a domain because all that it has is cordoned."""
        if each.nodeTaintsPolicy != "Honor" or not self.cordoned.any():
            return False
        codes, mask = self.codes(each.topologyKey), self.counted(spec, each)
        rest = codes[mask & ~self.cordoned]
        return not tolerates(spec, CORDON) and not np.isin(codes[mask], rest).all()

    def _near(self, spec: PodSpec) -> Mask:
        """Return the nodes that a pod asks for, (N,)."""
        affinity = spec.affinity.nodeAffinity if spec.affinity else None
        needed = affinity.requiredDuringSchedulingIgnoredDuringExecution if affinity else None
        key = b"near" + msgspec.json.encode([spec.nodeSelector, needed])
        if key not in self._masks:
            self._masks[key] = near(spec, self._nodes)
        return self._masks[key]

    def _tolerated(self, spec: PodSpec) -> Mask:
        """Return the nodes whose taints a pod tolerates, (N,)."""
        key = b"taints" + msgspec.json.encode(spec.tolerations)
        if key not in self._masks:
            self._masks[key] = tolerated(spec, self._nodes)
        return self._masks[key]

    def _labelled(self, spec: PodSpec) -> Mask:
        """Return the nodes that are in a domain of each spread that must hold, (N,)."""
        mask = np.ones(len(self._nodes), np.bool_)
        for each in spec.topologySpreadConstraints or ():
            if each.whenUnsatisfiable == "DoNotSchedule":
                mask &= self.codes(each.topologyKey) >= 0
        return mask


class Selected:
    """Looks selectors up among workloads, each selector once."""

    def __init__(self, workloads: Sequence[Workload]) -> None:
        self._workloads = workloads
        self._by_label: dict[tuple[str, str, str], set[int]] = {}
        self._inside: dict[str, set[int]] = {}
        self._found: dict[bytes, frozenset[int]] = {}
        for w, one in enumerate(workloads):
            self._inside.setdefault(one.namespace, set()).add(w)
            for key, value in one.labels.items():
                self._by_label.setdefault((one.namespace, key, value), set()).add(w)

    @property
    def namespaces(self) -> list[str]:
        """The namespaces that have pods."""
        return [*self._inside]

    def by(self, namespace: str, selector: Selector | None) -> frozenset[int]:
        """Return the workloads of a namespace that a selector selects; none selects nothing."""
        if selector is None:
            return frozenset()
        key = msgspec.json.encode([namespace, selector])
        if key not in self._found:
            near = self._near(namespace, selector)
            self._found[key] = frozenset(
                w for w in near if selects(selector, self._workloads[w].labels)
            )
        return self._found[key]

    def _near(self, namespace: str, selector: Selector) -> set[int]:
        """Return no fewer than a selector selects: those with the rarest label that it wants."""
        wanted = [[pair] for pair in (selector.matchLabels or {}).items()]
        wanted += [
            [(one.key, value) for value in one.values or ()]
            for one in selector.matchExpressions or ()
            if one.operator == "In"
        ]
        near = self._inside.get(namespace, set())
        for pairs in wanted:
            own = [self._by_label.get((namespace, *pair), set()) for pair in pairs]
            if sum(map(len, own)) < len(near):
                near = set().union(*own)
        return near


# the label and weight of a term, and the workloads that it selects
Asked = tuple[str, int | None, frozenset[int]]


class Apart:
    """Close domains for required anti-affinity, in both directions."""

    def __init__(
        self,
        workloads: Sequence[Workload],
        movable: int,
        selected: Selected,
        stands: Sequence[Numbers],
    ) -> None:
        # the first ``movable`` of the workloads may move
        self._movable = movable
        self._stands = stands
        # nodes that are closed, by number of the workload, (N,) bool each
        self.closed: dict[int, Mask] = {}

        # workload and label of each term that selects others which may move, too
        self.loose: set[tuple[int, str]] = set()

        # what all ask for whom it selects, by number of these workloads
        self.mutual: dict[int, list[Asked]] = {}

        self._askers: dict[Asked, list[int]] = {}
        for w, one in enumerate(workloads):
            for term in terms_of(one):
                chosen = chosen_by(one, term, selected)
                self._askers.setdefault((term.key, term.weight, chosen), []).append(w)
        for asked, asks in self._askers.items():
            for w in asked[2] if asked[2] <= {*asks} else ():
                self.mutual.setdefault(w, []).append(asked)

    def close(
        self, codes: Callable[[str], Numbers], together: Mapping[int, frozenset[int]]
    ) -> None:
        """Close domains, but for workloads that a rule counts ``together`` and keeps apart."""
        # ``codes`` gives the domain of each node by a label, (N,), -1 for none
        for (key, weight, chosen), asking in self._askers.items():
            asks = frozenset(asking)
            if weight is not None or (asks == chosen and together.get(min(chosen)) == chosen):
                continue
            others = sum(w < self._movable for w in chosen)
            self.loose |= {(w, key) for w in asks if w < self._movable and others > (w in chosen)}
            self._part(codes(key), asks, chosen)

    def _part(self, codes: Numbers, asks: frozenset[int], chosen: frozenset[int]) -> None:
        """Close domains for workloads with the same term, and for those that it selects."""
        # of workloads that exclude each other, the last may stay in a shared domain:
        # those that do not move come last
        stays = np.full(int(codes.max(initial=-1)) + 2, -1)
        for w in sorted(asks & chosen):
            stays[codes[self._stands[w]]] = w
        taken = self._taken(codes, chosen)
        silent = self._taken(codes, chosen - asks)
        for w in asks:
            shut = taken.copy()
            if w in chosen:
                own = codes[self._stands[w]]
                own = own[own >= 0]
                shut[own] = silent[own] | (stays[own] != w)
            self._close(w, shut[codes])
        asked = self._taken(codes, asks)[codes]
        unselected = self._taken(codes, asks - chosen)[codes]
        for w in chosen:
            # a workload with the term is kept away from all that it selects already
            shut = (unselected if w in asks else asked).copy()
            # one without the term is not moved away
            shut[self._stands[w]] = False
            self._close(w, shut)

    def _taken(self, codes: Numbers, which: Iterable[int]) -> Mask:
        """Return the domains where pods of some workloads stand; the last, of no domain, is not."""
        taken = np.zeros(int(codes.max(initial=-1)) + 2, np.bool_)
        for w in which:
            taken[codes[self._stands[w]]] = True
        taken[-1] = False
        return taken

    def _close(self, w: int, shut: Mask) -> None:
        """Close nodes for a workload, if it moves at all."""
        if w < self._movable and shut.any():
            mask = self.closed.setdefault(w, np.zeros(len(shut), np.bool_))
            mask |= shut


def chosen_by(one: Workload, term: Term, selected: Selected) -> frozenset[int]:
    """Return the workloads that a term selects, its own among them."""
    spaces = term.namespaces(one.namespace, selected.namespaces)
    found = [selected.by(space, term.selector) for space in sorted(spaces)]
    return found[0] if len(found) == 1 else frozenset().union(*found)


OPEN = "selectors and labels of spreads and affinity and taints"
HOST = "kubernetes.io/hostname"
# tiers that every cluster has, under names that people use
SHORT = {"topology.kubernetes.io/region": "region", "topology.kubernetes.io/zone": "zone"}


# labels by which providers name the pool of a node
POOLS = (
    "cloud.google.com/gke-nodepool", "karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool", "doks.digitalocean.com/node-pool",
)  # fmt: skip


def _with_pool(labels: dict[str, str]) -> dict[str, str]:
    """Return labels with the pool of the node as ``nodepool``, too."""
    return {"nodepool": next((labels[key] for key in POOLS if key in labels), "")} | labels


class Constraints:
    """Translate the constraints of pods into tiers, tags, rules and closed nodes."""

    def __init__(
        self, objects: Objects, workloads: Sequence[Workload], staying: Sequence[Workload]
    ) -> None:
        self.nodes: list[Node] = [node for _, node in objects.nodes.values()]
        self.labels = [node.metadata.labels or {} for node in self.nodes]
        self.workloads = workloads
        self.everyone = [*workloads, *staying]
        self.selected = Selected(self.everyone)
        self.eligible = Eligible(self.nodes)
        self.notes = objects.notes
        self._tags: dict[bytes, str] = {}
        self._rules: dict[bytes, int] = {}
        self.rules: list[Rule] = []
        self.keys = self._keys()
        place = {name: n for n, name in enumerate(objects.nodes)}
        self._stands = [_stands(one, place) for one in self.everyone]
        apart = Apart(self.everyone, len(workloads), self.selected, self._stands)
        self._mutual = apart.mutual
        # the workloads with which a rule counts each, by number; none is alone in a set
        self.together: dict[int, frozenset[int]] = self._together()

        apart.close(self.eligible.codes, self.together)
        self._closed = apart.closed
        self._loose = apart.loose

    def _together(self) -> dict[int, frozenset[int]]:
        """Return sets of workloads that are counted together: all may move, to the same nodes."""
        found: dict[int, frozenset[int]] = {}
        for w in range(len(self.workloads)):
            for *_, chosen in [*self._counting(w), *self._mutual.get(w, ())]:
                alike = len(chosen) > 1 and max(chosen) < len(self.workloads)
                if alike and not any(found.get(other, chosen) != chosen for other in chosen):
                    masks = [self._open(self.workloads[i]) for i in chosen]
                    alike = all((mask == masks[0]).all() for mask in masks)
                    found |= dict.fromkeys(chosen, chosen) if alike else {}
        return found

    def _counting(self, w: int) -> list[tuple[SpreadConstraint, frozenset[int]]]:
        """Return the spread constraints of a workload that count it, and all that each counts."""
        one = self.workloads[w]
        found = []
        for each in one.first.spec.topologySpreadConstraints or ():
            selector = with_own(each.labelSelector, one.labels, each.matchLabelKeys or ())
            if selects(selector, one.labels):
                chosen = self.selected.by(one.namespace, selector)
                stay = {other for other in chosen if not self.everyone[other].leaves}
                found.append((each, frozenset(stay | {w})))
            else:
                self._note(one, f"a spread of other pods by {each.topologyKey}")
        return found

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
        bare = {key for own in self.labels for key, value in own.items() if not value}
        tags = {key: np.array([key in own for own in self.labels]) for key in sorted(bare)} | tags
        attributes = attributes_of([_with_pool(own) for own in self.labels], named)
        return {
            "domains": named, "crossing": [*named][1:], "tags": tags, "attributes": attributes,
        }  # fmt: skip

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
        looked_at = self._spreads(w, frozenset({w}), spread, skew)
        affinity = one.first.spec.affinity
        if affinity and affinity.podAffinity is not None:
            self._note(one, "affinity with other pods")
        near = affinity.nodeAffinity if affinity else None
        if near and near.preferredDuringSchedulingIgnoredDuringExecution:
            self._note(one, "preferred nodes")
        if len(one.pods) > 1 and spread["node"] != 1 and not self._alone_among_all(w):
            self._note(
                one,
                "its pods may share a node: one that goes to the node of another counts as not "
                "moved",
            )
        require = self._require(w, looked_at)
        rule = Rule(require=require, spread=spread, skew=skew, place=self._places(one))
        return self._numbered(rule)

    def _anti_affinity(self, w: int, spread: dict[str, Amount]) -> None:
        """Set limits for pods that keep away from pods of the same workload."""
        one = self.workloads[w]
        for term in terms_of(one):
            weight, chosen = term.weight, chosen_by(one, term, self.selected)
            if term.guesses:
                self._note(one, f"anti-affinity by {term.key} in namespaces with some labels")
            asked = (term.key, weight, chosen)
            if self.together.get(w) == chosen and asked in self._mutual.get(w, ()):
                continue
            if weight is None and (w, term.key) in self._loose:
                self._note(
                    one, f"anti-affinity with other pods by {term.key}, but for where they are now"
                )
            elif weight is not None and chosen - {w}:
                self._note(one, f"preferred anti-affinity with other pods by {term.key}")
            if w in chosen:
                self._keep_apart(term.key, weight, spread)

    def _alone_among_all(self, w: int) -> bool:
        """Whether the rule of all that a workload is counted with keeps its pods on nodes apart."""
        return any(
            key == HOST and weight is None and self.together.get(w) == chosen
            for key, weight, chosen in self._mutual.get(w, ())
        )

    def _keep_apart(self, key: str, weight: int | None, spread: dict[str, Amount]) -> None:
        """Set the limit of a term on those that it keeps apart."""
        tier = self.tier(key)
        if weight is None or spread.get(tier) is None:
            spread[tier] = 1 if weight is None else (1, "soft", float(weight))

    def rule_together(self, members: frozenset[int]) -> int:
        """Return the number of the rule of workloads that are counted together."""
        spread: dict[str, Amount] = {"node": None}
        skew: dict[str, Amount] = {}
        for key, weight, chosen in self._mutual.get(min(members), ()):
            if chosen == members:
                self._keep_apart(key, weight, spread)
        looked_at = np.zeros(len(self.nodes), np.bool_)
        for w in sorted(members):
            looked_at |= self._spreads(w, members, spread, skew)
        for w in members if looked_at.any() else ():
            self._close(w, looked_at)
        one = self.workloads[min(members)]
        require = self._only(self._open(one) | looked_at, OPEN)
        return self._numbered(Rule(require=require, spread=spread, skew=skew))

    def _open(self, one: Workload) -> Mask:
        """Return the nodes that a pod of a workload may come to, (N,)."""
        mask: Mask = np.logical_or.reduce([self.eligible.open(spec) for spec in one.specs])
        return mask

    def _spreads(
        self, w: int, among: frozenset[int], spread: dict[str, Amount], skew: dict[str, Amount]
    ) -> NDArray[np.bool_]:
        """Set limits for spreads that count some workloads; return closed nodes they look at."""
        one = self.workloads[w]
        spec = one.first.spec
        looked_at = np.zeros(len(self.nodes), np.bool_)
        for each, chosen in self._counting(w):
            tier, key = self.tier(each.topologyKey), each.topologyKey
            apart = self.together.get(w) != chosen
            if among != (frozenset({w}) if apart else chosen):
                continue
            if apart and len(chosen) > 1:
                self._note(one, f"a spread by {key} that counts others' pods, too")
            is_soft = each.whenUnsatisfiable == "ScheduleAnyway"
            if not (self.eligible.codes(key) >= 0).any():
                if is_soft:
                    self._note(one, f"a spread by {key}, a label that no node has")
                else:
                    self.notes.add(NO_LABEL, f"{one.full_name} ({key})")
            if is_soft:
                # what must hold by the same label comes first
                skew.setdefault(tier, (each.maxSkew, "soft"))
            elif each.minDomains and self.eligible.domains(spec, each) < each.minDomains:
                # the fewest count as none: no domain has more than the skew
                spread[tier] = min(each.maxSkew, _number(spread.get(tier)))
            else:
                looked_at |= self._hold(w, among, each, spread, skew)
        return looked_at

    def _hold(
        self,
        w: int,
        among: frozenset[int],
        each: SpreadConstraint,
        spread: dict[str, Amount],
        skew: dict[str, Amount],
    ) -> NDArray[np.bool_]:
        """Set the limit of a spread that must hold; return closed nodes that a skew looks at."""
        one, tier = self.workloads[w], self.tier(each.topologyKey)
        if self.eligible.cordons(one.first.spec, each):
            self._note(one, f"a spread by {each.topologyKey} that passes over cordoned nodes")
        everywhere = np.ones(len(self.nodes), np.bool_)
        reached = [mask for i in sorted(among) for mask in self.everyone[i].reach or [everywhere]]
        closed = self.eligible.closed(one.first.spec, each, np.logical_or.reduce(reached))
        if closed.any():
            codes = self.eligible.codes(each.topologyKey)
            stands = np.concatenate([self._stands[i] for i in sorted(among)])
            # what stood on nodes that are not ready is made anew elsewhere
            own = codes[stands[self.eligible.ready[stands]]]
            least = min(int((own == domain).sum()) for domain in np.unique(codes[closed]))
            # A closed domain never has more than now, so that others may never have more than the
            # skew beyond that. The limit is set besides, since a violated skew lets a domain grow
            # up to the fullest; if the emptiest has none, the limit is enough.
            spread[tier] = min(each.maxSkew + least, _number(spread.get(tier)))
            if least == 0:
                return np.zeros_like(closed)
        skew[tier] = min(each.maxSkew, _number(skew.get(tier)))
        return closed

    def _note(self, one: Workload, text: str) -> None:
        """Note what of a workload is not kept."""
        self.notes.add(LEFT_OUT, f"{one.full_name}: {text}")

    def _numbered(self, rule: Rule) -> int:
        key = msgspec.json.encode([rule.require, rule.spread, rule.skew, rule.place])
        if key not in self._rules:
            self._rules[key] = len(self.rules)
            self.rules.append(rule)
        return self._rules[key]

    def _require(self, w: int, looked_at: NDArray[np.bool_]) -> list[str]:
        """Return where pods of a workload may be, and close what only counts to a spread."""
        one = self.workloads[w]
        if len(one.specs) > 1:
            self._note(one, "its pods ask for different nodes: each may be where any of them may")
        mask, by = self._open(one) | looked_at, OPEN
        if looked_at.any():
            self._close(w, looked_at)
        if one.reach:
            # a pod on a node with its volume may stay, whatever its present conditions
            torn = [
                own
                for own, (_, pod) in zip(one.reach, one.pods, strict=True)
                if pod.spec.nodeName and not (own & mask).any()
            ]
            by = "volumes" if mask.all() else f"{OPEN} and volumes"
            mask = np.logical_or.reduce([mask & np.logical_or.reduce(one.reach), *torn])
        elif w in self.together:
            return []  # the rule of all that are counted together has it
        return self._only(mask, by)

    def _close(self, w: int, shut: Mask) -> None:
        """Close nodes for a workload."""
        self._closed[w] = self._closed.get(w, np.zeros_like(shut)) | shut

    def _only(self, mask: Mask, by: str) -> list[str]:
        """Return what a rule requires that leaves these nodes open."""
        return [] if mask.all() else [f"+{self._tag(mask, by)}"]

    def _places(self, one: Workload) -> dict[str, int]:
        """Return how many pods of a workload must be among the nodes that reach their volumes."""
        masks = {mask.tobytes(): mask for mask in one.reach}
        if len(masks) < 2:
            return {}
        return {
            f"+{self._tag(mask, 'volumes')}": sum(
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
