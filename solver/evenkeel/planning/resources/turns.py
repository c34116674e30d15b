"""Turns: changes that wait for others, handing on what each of them needs to begin."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.planning.changes.acts import Acts
from evenkeel.planning.resources.table import Resources

RECOVERY = "recovery"
"""Kind of the resource that is free once everything has what it lacked."""


def charge_turns(resources: Resources, sequence: NDArray[np.int64]) -> None:
    """Let some changes begin in their order, the first of them when all others have finished."""
    if len(sequence) == 0:
        return
    others = np.setdiff1d(np.arange(resources.changes), sequence)
    base = resources.add("turn", np.zeros(len(sequence)))
    need = np.ones(len(sequence))
    need[0] = len(others)
    resources.claim(base + np.arange(len(sequence)), sequence, need)
    resources.give(np.full(len(others), base), others, np.ones(len(others)))
    resources.give(base + np.arange(1, len(sequence)), sequence[:-1], need[1:])


def charge_recovery(
    resources: Resources, acts: Acts, begun: NDArray[np.bool_], duration: NDArray[np.float64]
) -> None:
    """Let no change begin before those that recover have finished, but for what has ``begun (C,)``.

    The shortest of those is the last: it waits for them, and all others for it alone, so that there
    are no more arrows than changes.
    """
    recovers = np.zeros(resources.changes, bool)
    recovers[acts.change[acts.recovers & ~acts.blocked]] = True
    others = np.flatnonzero(~recovers & ~begun)
    if not (recovers.any() and len(others)):
        return
    ends = np.zeros(resources.changes, bool)
    ends[acts.change[np.flatnonzero(np.diff(acts.partition, append=-1))]] = True
    last = np.flatnonzero(recovers & ends)
    last = last[[np.argmin(duration[last])]]
    before = np.setdiff1d(np.flatnonzero(recovers), last)
    base = resources.add(RECOVERY, np.zeros(2))
    if len(before):
        resources.give(np.full(len(before), base), before, np.ones(len(before)))
        resources.claim(np.array([base]), last, np.array([float(len(before))]))
    resources.give(np.array([base + 1]), last, np.array([float(len(others))]))
    resources.claim(np.full(len(others), base + 1), others, np.ones(len(others)))
