"""Turns: changes that wait for others, handing on what each of them needs to begin."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.planning.resources.table import Resources


def charge_turns(
    resources: Resources, sequence: NDArray[np.int64], hopeless: NDArray[np.integer]
) -> None:
    """Let some changes begin in their order, the first of them when all others have finished.

    Those of ``hopeless`` partitions are not waited for: they may never begin.
    """
    if len(sequence) == 0:
        return
    others = np.setdiff1d(np.arange(resources.changes), np.append(sequence, hopeless))
    base = resources.add("turn", np.zeros(len(sequence)))
    need = np.ones(len(sequence))
    need[0] = len(others)
    resources.claim(base + np.arange(len(sequence)), sequence, need)
    resources.give(np.full(len(others), base), others, np.ones(len(others)))
    resources.give(base + np.arange(1, len(sequence)), sequence[:-1], need[1:])
