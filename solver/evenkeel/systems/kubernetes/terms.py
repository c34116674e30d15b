"""Anti-affinity terms, and which namespaces and pods they look at."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evenkeel.systems.kubernetes.conditions import selects
from evenkeel.systems.kubernetes.resources import PodTerm, Requirement, Selector
from evenkeel.systems.kubernetes.workloads import Workload

NAMED = "kubernetes.io/metadata.name"
"""The label that every namespace has: its name. Others of namespaces are not read."""


@dataclass(frozen=True, eq=False)
class Term:
    """Pods that a workload's should be apart from, in the domains of a label.

    Parameters
    ----------
    key : str
        Label that names the domains.
    weight : int or None
        What it is worth; None for a term that must hold.
    selector : Selector or None
        Which pods; none selects nothing.
    listed : list of str
        Namespaces by name.
    spaces : Selector or None
        Namespaces by their labels.
    """

    key: str
    weight: int | None
    selector: Selector | None
    listed: Sequence[str]
    spaces: Selector | None

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
