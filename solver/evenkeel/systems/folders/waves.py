"""Waves of a plan as what each does to whole partitions, the form in which systems take orders."""

from dataclasses import replace

import numpy as np

from evenkeel.measure.rows import rows_alone
from evenkeel.model.placement import Placement
from evenkeel.planning.outcome import outcome
from evenkeel.planning.plan import Plan
from evenkeel.systems.folders.carrier import Change, comers

Row = tuple[tuple[int, ...], int]
"""The nodes of a partition by slot, and the one that leads; -1 for none."""


def waves_of(plan: Plan, original: Placement) -> list[list[Change]]:
    """Return what each wave changes, by partition; those that change nothing are left out.

    ``original`` is how everything was before any plan: where a plan begins, and its undo leads.
    """
    names = [*plan.cluster.partitions.names]
    # of the others nothing changes: rows of those that are touched are all there is to follow
    touched = np.unique(plan.steps.partition)
    start, target, origin = (
        rows_alone(one, touched) for one in (plan.cluster.placement, plan.target, original)
    )
    place = np.searchsorted(touched, plan.steps.partition).astype(np.int32)
    moved = start.first[place] - plan.cluster.placement.first[plan.steps.partition]
    replica = (plan.steps.replica + moved).astype(np.int32)
    steps = replace(plan.steps, partition=place, replica=replica)
    at, first = listed(start), listed(origin)
    waves: list[list[Change]] = []
    done = np.zeros(0, np.intp)
    for wave in plan.waves:
        done = np.sort(np.concatenate([done, wave]))
        own = np.unique(place[wave])
        changes = []
        after = listed(rows_alone(outcome(start, steps, target, done), own))
        for r, row in zip(own.tolist(), after, strict=True):
            if row != (was := at[r]):
                p = int(touched[r])
                restored = row[0] == first[r][0] and row[1] in (first[r][1], -1)
                joins = comers(was[0], row[0])
                changes.append(Change(p, names[p], was[0], row[0], was[1], row[1], restored, joins))
                at[r] = row
        if changes:
            waves.append(changes)
    return waves


def listed(placement: Placement) -> list[Row]:
    """Return the rows of a placement one by one."""
    first, nodes = placement.first.tolist(), placement.node.tolist()
    led = placement.leader_node.tolist()
    return [
        (tuple(nodes[begin:end]), leads)
        for begin, end, leads in zip(first, first[1:], led, strict=False)
    ]
