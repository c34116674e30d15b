"""Why a run has no result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.helix.crush.errors import HelixError
from evenkeel.systems.helix.waged.model import Model
from evenkeel_kernels.helix.waged_fit import WagedNodes, WagedPartitions, WagedState, WagedTerms

FAILED_TO_CALCULATE = "FAILED_TO_CALCULATE"


class Reason(Enum):
    """Hard constraints, in the order in which they are asked; the first that says no counts."""

    ZONE = "its fault zone holds a replica of the partition"
    CAPACITY = "too little capacity is left"
    DISABLED = "the partition is disabled there"
    LIMIT = "it holds as many replicas as it may"
    TAG = "it lacks a tag that the group asks for"


@dataclass(frozen=True)
class WagedFailure:
    """No result, and why."""

    kind: str
    message: str
    key: str = ""
    partition: int = -1
    state: int = -1
    reasons: Mapping[int, Reason] = field(default_factory=dict)


class NoResult(HelixError):
    """A run ended in a failure.

    Parameters
    ----------
    failure : WagedFailure
        What happened.
    """

    def __init__(self, failure: WagedFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def short_of(key: str) -> WagedFailure:
    """Describe a cluster with too little capacity."""
    return WagedFailure(FAILED_TO_CALCULATE, f"all nodes together have too little {key}", key=key)


def nowhere(
    model: Model,
    names: NDArray[np.int32],
    nodes: WagedNodes,
    partitions: WagedPartitions,
    terms: WagedTerms,
    state: WagedState,
    p: int,
    role: int,
) -> WagedFailure:
    """Describe a replica for which there is no node."""
    first = int(partitions.row_first[p])
    held = nodes.zone[state.row_node[first : first + int(state.row_size[p])]]
    group = int(partitions.group[p])
    begin, end = partitions.disabled_first[p : p + 2].tolist()
    disabled = np.isin(np.arange(len(names)), partitions.disabled[begin:end])
    full = state.replicas >= nodes.limit
    full = full | (state.group_count[group] >= terms.group_limit[group])
    says_no = {
        Reason.ZONE: np.isin(nodes.zone, held),
        Reason.CAPACITY: (state.left < partitions.weight[p][:, np.newaxis]).any(axis=0),
        Reason.DISABLED: disabled,
        Reason.LIMIT: full,
        Reason.TAG: ~model.masks[int(partitions.mask[p])][names],
    }
    reasons = {
        int(names[n]): next(reason for reason, no in says_no.items() if no[n])
        for n in range(len(names))
    }
    return WagedFailure(
        FAILED_TO_CALCULATE, _message(model, p, role, reasons), partition=p, state=role,
        reasons=reasons,
    )  # fmt: skip


def _message(model: Model, p: int, role: int, reasons: Mapping[int, Reason]) -> str:
    """Name the replica, and what every node was refused for."""
    state = model.kinds[int(model.kind[p])].names[role]
    found = {reason: [n for n, one in reasons.items() if one is reason] for reason in Reason}
    parts = []
    for reason, nodes in found.items():
        if nodes:
            shown = ", ".join(sorted(model.nodes.texts[n] for n in nodes[:5]))
            more = f" and {len(nodes) - 5} more" if len(nodes) > 5 else ""
            parts.append(f"{shown}{more}: {reason.value}")
    told = "; ".join(parts) or "there is no node"
    return f"partition {model.partitions.texts[p]!r} has no node for its {state} ({told})"
