"""Waves of a plan as what each does to whole partitions, which is what systems are told."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.formats.folders.carrier import Change
from evenkeel.model.placement import Placement
from evenkeel.planning.plan import Plan
from evenkeel.planning.steps import StepKind

Row = tuple[tuple[int, ...], int]
"""The nodes of a partition by slot, and the one that leads; -1 for none."""


def waves_of(plan: Plan, original: Placement) -> list[list[Change]]:
    """Return what each wave changes, by partition; those that change nothing are left out.

    ``original`` is how everything was before any plan: where a plan begins, and its undo leads.
    """
    steps, start = plan.steps, plan.cluster.placement
    names = plan.cluster.partitions.names
    first: list[int] = start.first.tolist()
    node = start.node.copy()
    leader = np.where(start.leader_node >= 0, start.leader, -1)
    waves: list[list[Change]] = []
    for wave in plan.waves:
        touched: list[int] = np.unique(steps.partition[wave]).tolist()
        before = [_row(first, node, leader, p) for p in touched]
        _carry_out(plan, wave, node, leader)
        changes = []
        for p, was in zip(touched, before, strict=True):
            row = _row(first, node, leader, p)
            if row != was:
                origin = _row(first, original.node, original.leader, p)
                restored = row[0] == origin[0] and row[1] in (origin[1], -1)
                changes.append(Change(p, names[p], was[0], row[0], was[1], row[1], restored))
        if changes:
            waves.append(changes)
    return waves


def _row(first: list[int], node: NDArray[np.int32], leader: NDArray[np.integer], p: int) -> Row:
    nodes = tuple(node[first[p] : first[p + 1]].tolist())
    slot = int(leader[p])
    return nodes, nodes[slot] if 0 <= slot < len(nodes) else -1


def _carry_out(
    plan: Plan, wave: NDArray[np.intp], node: NDArray[np.int32], leader: NDArray[np.integer]
) -> None:
    """Change where replicas are, and in which slots leaders are, by the steps of a wave."""
    steps, kind = plan.steps, plan.steps.kind[wave]
    copied = wave[kind == StepKind.COPY]
    node[steps.replica[wave[kind == StepKind.REMOVE]]] = -1
    node[steps.replica[copied]] = steps.target[copied]
    handed = wave[kind == StepKind.LEAD]
    partition = steps.partition[handed]
    leader[partition] = steps.replica[handed] - plan.cluster.placement.first[partition]
