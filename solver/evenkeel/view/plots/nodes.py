"""Plots of the nodes: how full each one is, and how much it leads, before and after."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.view.plots.canvas import canvas, legend, named, titled
from evenkeel.view.plots.palette import AFTER, BEFORE, BOUND, FAINT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 24
"""Up to so many nodes have bars and names; more are curves, sorted from the fullest."""

NEAR_CAPACITY = 80.0
"""Percent from which on the line of the capacity is of interest."""

LONGEST_NAME = 10


def utilisation(
    result: Any,
    dimension: str | int = 0,
    ax: "Axes | None" = None,
    *,
    title: str = "",
) -> "Axes":
    """Draw how full the nodes are in one dimension, before and after.

    Parameters
    ----------
    result : Result
        Of a solve.
    dimension : str or int, optional
        Its name or number; the first by default.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own by default.
    title : str, optional
        What stands above it.

    Returns
    -------
    matplotlib.axes.Axes
        Bars for a few nodes; for many, a curve of the nodes that are alive, from the fullest. A
        dotted line is the proven floor of the fullest node; a full one, where it is near, capacity.
        Nodes that are loaded and have no capacity are left out.

    Raises
    ------
    InvalidInput
        If there is no such dimension.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[8.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6, dimensions=("disk",)
    ... )
    >>> utilisation(ek.solve(cluster), "disk").get_ylabel()
    'disk (% of capacity)'
    """
    cluster = result.cluster
    d = dimension_at(cluster, dimension)
    ax = canvas(ax)
    alive = result.levelness.alive
    before = _drawable(100.0 * result.levelness_before.table[alive, d])
    after = _drawable(100.0 * result.levelness.table[alive, d])
    _before_and_after(ax, _names(cluster, alive), before, after)
    floor = 100.0 * float(result.bounds.level[d])
    if np.isfinite(floor):
        ax.axhline(
            floor, color=BOUND.colour, linestyle=BOUND.line, linewidth=1.1,
            label="proven floor",
        )  # fmt: skip
    if max(np.nanmax(before, initial=0.0), np.nanmax(after, initial=0.0)) > NEAR_CAPACITY:
        ax.axhline(100.0, color=FAINT, linewidth=0.9, label="capacity")
    ax.set_ylabel(f"{named(cluster.dimensions[d])} (% of capacity)")
    _finish(ax, alive)
    titled(ax, title)
    return ax


def leaders(
    result: Any,
    ax: "Axes | None" = None,
    *,
    title: str = "",
) -> "Axes":
    """Draw how many partitions each node leads, before and after.

    Parameters
    ----------
    result : Result
        Of a solve.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own by default.
    title : str, optional
        What stands above it.

    Returns
    -------
    matplotlib.axes.Axes
        As ``utilisation`` draws it, with the proven floor of the node that leads most.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[8.0]] * 3, load=[[1.0]] * 6, placement=[[0, 1]] * 6
    ... )
    >>> leaders(ek.solve(cluster, goals=ek.Goals(leaders=0.0))).get_ylabel()
    'leaders on the node'
    """
    ax = canvas(ax)
    alive = result.levelness.alive
    before = result.levelness_before.leaders[alive].astype(np.float64)
    after = result.levelness.leaders[alive].astype(np.float64)
    _before_and_after(ax, _names(result.cluster, alive), before, after)
    if result.bounds.leaders:
        ax.axhline(
            result.bounds.leaders, color=BOUND.colour, linestyle=BOUND.line, linewidth=1.1,
            label="proven floor",
        )  # fmt: skip
    ax.set_ylabel("leaders on the node")
    _finish(ax, alive)
    titled(ax, title)
    return ax


def dimension_at(cluster: Cluster, dimension: str | int) -> int:
    """Return the number of a dimension."""
    faults = FaultList()
    known = list(cluster.dimensions)
    if dimension in known:
        return known.index(str(dimension))
    if not isinstance(dimension, int) or not 0 <= dimension < len(known):
        faults.add("dimension", dimension, f"unknown dimension; known: {known}")
    faults.raise_if_any()
    return int(dimension)


def _drawable(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values of which the infinite ones, which no axis can hold, are left out."""
    return np.where(np.isfinite(values), values, np.nan)


def _names(cluster: Cluster, alive: NDArray[np.bool_]) -> list[str]:
    return [cluster.nodes.names[int(n)] for n in np.flatnonzero(alive)]


def _before_and_after(
    ax: "Axes", names: Sequence[str], before: NDArray[np.float64], after: NDArray[np.float64]
) -> None:
    """Draw a pair of bars for each node, or two sorted curves where there are many."""
    if len(names) > MOST_BARS:
        place = np.arange(1, len(names) + 1)
        for values, label, look in ((before, "before", BEFORE), (after, "after", AFTER)):
            ax.plot(
                place, -np.sort(-values), color=look.colour, linestyle=look.line, linewidth=1.8,
                marker=look.marker, markersize=4.0, markevery=max(1, len(names) // 12),
                label=label,
            )  # fmt: skip
        ax.set_xlim(0, len(names) + 1)
        return
    at = np.arange(len(names))
    for values, label, look, side in (
        (before, "before", BEFORE, -0.2),
        (after, "after", AFTER, 0.2),
    ):
        ax.bar(
            at + side, values, 0.4, facecolor=look.colour, edgecolor=INK, linewidth=0.6,
            hatch=look.hatch, label=label,
        )  # fmt: skip
    shown = [named(name, LONGEST_NAME) for name in names]
    crowded = len(names) * (max(map(len, shown), default=0) + 1) > 70
    ax.set_xticks(
        at, shown, fontsize="small", rotation=45 if crowded else 0, rotation_mode="anchor",
        ha="right" if crowded else "center",
    )  # fmt: skip


def _finish(ax: "Axes", alive: NDArray[np.bool_]) -> None:
    """Begin the scale at nothing, and say under the axis which nodes it shows."""
    ax.set_ylim(bottom=0.0)
    many = int(alive.sum()) > MOST_BARS
    dead = len(alive) - int(alive.sum())
    said = "nodes alive, each curve from the fullest" if many else "node"
    ax.set_xlabel(f"{said} ({dead:,} dead, not shown)" if dead else said)
    legend(ax)
