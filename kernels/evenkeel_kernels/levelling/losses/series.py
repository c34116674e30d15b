"""One loss after another from the same cluster: figures of each, and no placements.

Whoever asks about many losses asks how each ends, not where every replica is then. All of a series
is played without Python, so that other threads have the interpreter meanwhile.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, no_alloc
from evenkeel_kernels.core.node_scan import Scan
from evenkeel_kernels.core.problem import Problem, State, index
from evenkeel_kernels.levelling.losses.play import play_losses
from evenkeel_kernels.levelling.losses.records import (
    DANGERS,
    Asked,
    Demanded,
    Figures,
    Kept,
    Stock,
    Told,
)


@no_alloc
def play_series(
    problem: Problem,
    state: State,
    scan: Scan,
    stock: Stock,
    demanded: Demanded,
    asked: Asked,
    kept: Kept,
    first: NDArray[np.int64],
    nodes: NDArray[np.int32],
    forced: NDArray[np.bool_],
    led: NDArray[np.bool_],
    every: NDArray[np.bool_],
    most_leaders: NDArray[np.float64],
    told: Told,
    figures: Figures,
) -> int:
    """Play S losses, each of ``nodes[first[i] : first[i + 1]]``; ``first (S + 1,)``.

    All else is as for ``play_losses``, without budgets: ``forced (K,)``, ``led (P,)`` and
    ``every (P,)`` come back as they were, and ``most_leaders (N,)`` is scratch. Returns
    how many were played: fewer than S only if ``figures`` have no room for the partitions that the
    next one endangers, but always one where there is room for all three lists of a loss of
    everything.
    """
    used = index(0)
    for i in range(first.shape[0] - 1):
        count = play_losses(
            problem, problem, state, scan, stock, demanded, asked, kept,
            nodes[first[i] : first[i + 1]], forced, led, every, most_leaders, told,
        )  # fmt: skip
        figures.moves[i] = count
        figures.gave_way[i] = told.gave_way[0]
        total = 0
        for danger in range(DANGERS):
            listed = told.endangered_count[danger] if count >= 0 else 0
            figures.endangered_count[i, danger] = listed
            total += listed
        if used + total > figures.endangered.shape[0]:
            return i
        if count < 0:
            continue
        for d in range(told.most.shape[0]):
            figures.most[i, d] = told.most[d]
            figures.fair[i, d] = told.fair[d]
            figures.moved[i, d] = told.moved[d]
        for danger in range(DANGERS):
            end = used + figures.endangered_count[i, danger]
            for j in range(used, end):
                figures.endangered[j] = told.endangered[danger, j - used]
            sort_between(figures.endangered, used, end)
            used = end
    return first.shape[0] - 1


@device_function
def sort_between(values: NDArray[np.int32], begin: int, end: int) -> None:
    """Sort ``values[begin:end]`` in place (Shell, 1959; gaps of Knuth)."""
    gap = 1
    while gap < (end - begin) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, end):
            one = values[i]
            at = i
            while at >= begin + gap and values[at - gap] > one:
                values[at] = values[at - gap]
                at -= gap
            values[at] = one
        gap //= 3
