"""Which nodes a pod may be on, and which pods a selector selects."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evenkeel.formats.kubernetes.resources import (
    Node,
    PodSpec,
    Requirement,
    Selector,
    Taint,
    Toleration,
)

KEEPING_AWAY = {"NoSchedule", "NoExecute"}
CORDONED = "node.kubernetes.io/unschedulable"
"""The taint that a cordon brings: that no new pods come is told otherwise."""


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


def allowed(spec: PodSpec, nodes: Sequence[Node]) -> NDArray[np.bool_]:
    """Return the nodes that a pod may be on, by what it asks for and tolerates, (N,) bool."""
    return np.array([_admits(spec, node) for node in nodes], np.bool_)


def _admits(spec: PodSpec, node: Node) -> bool:
    labels = node.metadata.labels or {}
    if any(labels.get(key) != value for key, value in (spec.nodeSelector or {}).items()):
        return False
    near = spec.affinity.nodeAffinity if spec.affinity else None
    required = near.requiredDuringSchedulingIgnoredDuringExecution if near else None
    if required is not None:
        fields = {"metadata.name": node.metadata.name}
        terms = (
            [
                *(holds(one, labels) for one in term.matchExpressions or ()),
                *(holds(one, fields) for one in term.matchFields or ()),
            ]
            for term in required.nodeSelectorTerms
        )
        # a term without conditions selects nothing
        if not any(bool(term) and all(term) for term in terms):
            return False
    return all(
        any(_tolerates(one, taint) for one in spec.tolerations or ())
        for taint in node.spec.taints or ()
        if taint.effect in KEEPING_AWAY and taint.key != CORDONED
    )


def _tolerates(one: Toleration, taint: Taint) -> bool:
    if one.effect and one.effect != taint.effect:
        return False
    if one.key and one.key != taint.key:
        return False
    if one.operator == "Exists":
        return True
    return bool(one.key) and (one.value or "") == taint.value
