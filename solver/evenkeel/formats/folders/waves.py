"""Waves of a plan as what each does to whole partitions, which is what systems are told."""

from dataclasses import replace

import numpy as np

from evenkeel.formats.folders.carrier import Change
from evenkeel.measure.rows import rows_alone
from evenkeel.model.placement import Placement
from evenkeel.planning.outcome import outcome
from evenkeel.planning.plan import Plan

Row = tuple[tuple[int, ...], int]
"""The nodes of a partition by slot, and the one that leads; -1 for none."""


def waves_of(plan: Plan, original: Placement) -> list[list[Change]]:
    """Return what each wave changes, by partition; those that change nothing are left out.

    ``original`` is how everything was before any plan: where a plan begins, and its undo leads.
    """
    names = plan.cluster.partitions.names
    # of the others nothing changes: rows of those that are touched are all there is to follow
    touched = np.unique(plan.steps.partition)
    start, target, origin = (
        rows_alone(one, touched) for one in (plan.cluster.placement, plan.target, original)
    )
    place = np.searchsorted(touched, plan.steps.partition).astype(np.int32)
    moved = start.first[place] - plan.cluster.placement.first[plan.steps.partition]
    replica = (plan.steps.replica + moved).astype(np.int32)
    steps = replace(plan.steps, partition=place, replica=replica)
    waves: list[list[Change]] = []
    done = np.zeros(0, np.intp)
    before = outcome(start, steps, target, done)
    for wave in plan.waves:
        done = np.sort(np.concatenate([done, wave]))
        after = outcome(start, steps, target, done)
        changes = []
        for r in np.unique(place[wave]).tolist():
            was, row = _row(before, r), _row(after, r)
            if row != was:
                p, first = int(touched[r]), _row(origin, r)
                restored = row[0] == first[0] and row[1] in (first[1], -1)
                changes.append(Change(p, names[p], was[0], row[0], was[1], row[1], restored))
        if changes:
            waves.append(changes)
        before = after
    return waves


def _row(placement: Placement, p: int) -> Row:
    nodes = tuple(placement.node[placement.first[p] : placement.first[p + 1]].tolist())
    slot = int(placement.leader[p])
    return nodes, nodes[slot] if 0 <= slot < len(nodes) else -1
