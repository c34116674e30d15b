"""Conditions of pods on nodes (affinity, taints), and selectors of pods."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.kubernetes.resources import (
    Node,
    NodeSelector,
    PodSpec,
    Requirement,
    Selector,
    Taint,
    Toleration,
)

KEEPING_AWAY = {"NoSchedule", "NoExecute"}
CORDONED = "node.kubernetes.io/unschedulable"
"""The taint of a cordon, which ``spec.unschedulable`` states, too."""


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
