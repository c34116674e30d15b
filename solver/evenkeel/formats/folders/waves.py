"""Waves of a plan as what each does to whole partitions, which is what systems are told."""

import numpy as np

from evenkeel.formats.folders.carrier import Change
from evenkeel.model.placement import Placement
from evenkeel.planning.plan import Plan

Row = tuple[tuple[int, ...], int]
"""The nodes of a partition by slot, and the one that leads; -1 for none."""


def waves_of(plan: Plan, original: Placement) -> list[list[Change]]:
    """Return what each wave changes, by partition; those that change nothing are left out.

    ``original`` is how everything was before any plan: where a plan begins, and its undo leads.
    """
    names = plan.cluster.partitions.names
    waves: list[list[Change]] = []
    before = plan.after(0)
    for number, wave in enumerate(plan.waves, start=1):
        after = plan.after(number)
        changes = []
        for p in np.unique(plan.steps.partition[wave]).tolist():
            was, row = _row(before, p), _row(after, p)
            if row != was:
                origin = _row(original, p)
                restored = row[0] == origin[0] and row[1] in (origin[1], -1)
                changes.append(Change(p, names[p], was[0], row[0], was[1], row[1], restored))
        if changes:
            waves.append(changes)
        before = after
    return waves


def _row(placement: Placement, p: int) -> Row:
    nodes = tuple(placement.node[placement.first[p] : placement.first[p + 1]].tolist())
    slot = int(placement.leader[p])
    return nodes, nodes[slot] if 0 <= slot < len(nodes) else -1
