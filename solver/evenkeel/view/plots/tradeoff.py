"""A plot of the frontier: how level a cluster can be for how many moves."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.view.plots.canvas import canvas, legend, scale_to_nothing, titled
from evenkeel.view.plots.palette import AFTER, BOUND, FAINT, PALE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


TINY = 1e-6
"""Percent that is taken for nothing."""


def frontier(
    found: Any,
    ax: "Axes | None" = None,
    *,
    title: str = "",
) -> "Axes":
    """Draw the plans of a frontier against what is proven.

    Parameters
    ----------
    found : Frontier
        As ``evenkeel.frontier`` returns it.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own by default.
    title : str, optional
        What stands above it.

    Returns
    -------
    matplotlib.axes.Axes
        A point for each plan: its moves, and by how much its fullest node exceeds the fair share.
        No plan can be in the hatched area, by the bounds of the tolerances that were asked for.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[8.0]] * 4, load=[[1.0]] * 8, placement=[[0]] * 8
    ... )
    >>> frontier(ek.frontier(cluster, points=5, goals=ek.Goals(level=0.0))).get_xlabel()
    'moves'
    """
    ax = canvas(ax)
    moves, excess = found.moves, 100.0 * (found.level - 1.0)
    x, y = proven(found)
    finest = float(excess[excess > TINY].min(initial=1.0))
    widest = max(1.0, float(excess.max()), float(y.max(initial=0.0)))
    scale_to_nothing(ax, finest, widest)
    top = ax.get_ylim()[1]
    low, high = float(min(moves.min(), x.min())), float(max(moves.max(), x.max()))
    margin = max(1.0, 0.06 * (high - low))
    ax.set_xlim(low - margin, high + margin)
    floor = 100.0 * max(0.0, float(found.results[0].bounds.ratio.max(initial=1.0)) - 1.0)
    # from a corner to the next the bound of the coarser tolerance holds; below the floor is nothing
    across = np.append(np.repeat(x, 2), [high + margin] * 2)
    down = np.concatenate([[top], np.repeat(np.maximum(y, floor), 2), [floor, floor, 0.0]])
    ax.fill_betweenx(
        down, low - margin, across, facecolor=PALE, edgecolor=FAINT, hatch="////", linewidth=0.0,
        label="proven out of reach",
    )  # fmt: skip
    ax.plot(across[: 2 * len(x)], down[: 2 * len(x)], color=BOUND.colour, linestyle=BOUND.line)
    ax.plot(
        moves, excess, color=AFTER.colour, linestyle=AFTER.line, drawstyle="steps-post",
        linewidth=0.9,
    )  # fmt: skip
    ax.plot(
        moves, excess, color=AFTER.colour, linestyle="", marker=AFTER.marker, markersize=5.0,
        label="plans",
    )  # fmt: skip
    ax.set_xlabel("moves")
    ax.set_ylabel("fullest node above the fair share (%)")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    legend(ax)
    titled(ax, title)
    return ax


def proven(found: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least moves, first to mend and then by tolerance; and the tolerances, in percent.

    One fewer tolerances than numbers of moves: mending has none.
    """
    asked = [(one.goals.level, one.bounds.moves_level) for one in found.results]
    levels = sorted(((t, least) for t, least in asked if t is not None), reverse=True)
    moves = [found.results[0].bounds.moves_feasible, *(least for _, least in levels)]
    least = np.maximum.accumulate(np.asarray(moves, np.float64))
    return least, np.array([100.0 * t for t, _ in levels])
