"""A plan wave by wave, as whoever hands it out so carries it out: which wave, and how long each."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenkeel.planning.bounds import copying_bound
from evenkeel.planning.steps import StepKind, Steps

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan


def wave_numbers(plan: "Plan") -> NDArray[np.int64]:
    """Return the number of each step's wave as people count, from 1 on, (S,)."""
    return np.searchsorted(np.unique(plan.steps.wave), plan.steps.wave) + 1


def seconds_by_wave(plan: "Plan", waves: Sequence[NDArray[np.intp]] | None = None) -> list[float]:
    """Return how long each wave takes at least, since all of it ends before the next begins.

    ``waves`` are the steps of each; the plan's own without them. Windows are left out of account.
    """
    steps, throttle = plan.steps, replace(plan.throttle, windows=None)
    copied = steps.kind == StepKind.COPY
    found = []
    for wave in plan.waves if waves is None else waves:
        own = wave[copied[wave]]
        waits = np.zeros(len(own) + 1, np.int64)
        alone = Steps(
            steps.kind[own], steps.partition[own], steps.replica[own], steps.source[own],
            steps.target[own], steps.size[own], steps.start[own], steps.finish[own],
            steps.wave[own], waits, np.zeros(0, np.int32),
        )  # fmt: skip
        exchange = plan.change[own] if plan.protocol.whole else None
        in_turn = exchange is None
        found.append(copying_bound(plan.cluster, alone, throttle, in_turn, exchange).seconds)
    return found
