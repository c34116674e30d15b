"""Plots of nodes: utilisation and leaders, by node or by domain."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.levelness import Levelness
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.topology import NODE_TIER
from evenkeel.view.plots.canvas import (
    AFTER,
    BEFORE,
    FAINT,
    INK,
    RAMP,
    canvas,
    cased,
    finished,
    floor_line,
    named,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 24  # up to so many nodes have bars and names; more are curves, sorted from the fullest
NEAR_CAPACITY = 80.0  # percent from which on the line of the capacity is of interest
LONGEST_NAME = 10


def utilisation(
    result: Any, dimension: str | int = 0, ax: "Axes | None" = None, *, title: str = ""
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
    before, after = (
        _drawable(100.0 * one.table[result.levelness.alive, d])
        for one in (result.levelness_before, result.levelness)
    )
    _before_and_after(ax, result, before, after)
    floor = 100.0 * float(result.bounds.level[d])
    if np.isfinite(floor):
        floor_line(ax, floor)
    if max(np.nanmax(before, initial=0.0), np.nanmax(after, initial=0.0)) > NEAR_CAPACITY:
        ax.axhline(100.0, color=FAINT, linewidth=0.9, label="capacity")
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel(f"{named(cluster.dimensions[d])} (% of capacity)")
    return finished(ax, title)


def leaders(result: Any, ax: "Axes | None" = None, *, title: str = "") -> "Axes":
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
    before, after = (
        one.leaders[result.levelness.alive].astype(np.float64)
        for one in (result.levelness_before, result.levelness)
    )
    _before_and_after(ax, result, before, after)
    if result.bounds.leaders:
        floor_line(ax, result.bounds.leaders)
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("leaders on the node")
    return finished(ax, title)


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


def _before_and_after(
    ax: "Axes", result: Any, before: NDArray[np.float64], after: NDArray[np.float64]
) -> None:
    """Draw a pair of bars for each live node, or two sorted curves where there are many."""
    alive = result.levelness.alive
    names = [result.cluster.nodes.names[int(n)] for n in np.flatnonzero(alive)]
    dead, many = len(alive) - len(names), len(names) > MOST_BARS
    caption = "nodes alive, each curve from the fullest" if many else "node"
    ax.set_xlabel(f"{caption} ({dead:,} dead, not shown)" if dead else caption)
    if many:
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


MOST_FIGURES = 160  # cells up to which each has its figure written in it
MOST_COLUMNS = 16  # nodes of a domain up to which a figure has room in its cell
MOST_NAMES = 30

# rows or columns up to which lines between them are thick, and are drawn at all
FEW, MOST_RULED = 60, 250

INSET = 0.1  # of a cell that a frame leaves free on each side


def heat_map(
    cluster: Cluster,
    level: Levelness,
    dimension: str | int = 0,
    domains: str | None = None,
    *,
    top: float | None = None,
    ax: "Axes | None" = None,
    title: str = "",
) -> "Axes":
    """Draw how full every node is, a row for each domain.

    Parameters
    ----------
    cluster : Cluster
        Of N nodes.
    level : Levelness
        Of a placement: ``result.levelness``, or ``result.levelness_before``.
    dimension : str or int, optional
        Its name or number; the first by default.
    domains : str, optional
        The level whose domains are the rows; the widest by default.
    top : float, optional
        Percent of the capacity where the scale ends, which two pictures should share that are to
        be compared; the fullest node by default. The scale begins at nothing.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own by default.
    title : str, optional
        What stands above it.

    Returns
    -------
    matplotlib.axes.Axes
        The nodes of a row are in their own order. A cross is a node that is dead, a framed cell one
        above its capacity; a few cells have their figures in them.

    Raises
    ------
    InvalidInput
        If there is no such dimension or level.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel.measure.levelness import levelness
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[8.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6,
    ...     domains={"zone": ["a", "a", "b"]},
    ... )
    >>> drawn = heat_map(cluster, levelness(cluster, cluster.placement))
    >>> [label.get_text() for label in drawn.get_yticklabels()]
    ['a', 'b']
    """
    d, row = dimension_at(cluster, dimension), level_at(cluster, domains)
    names = [named(name) for name in domain_names(cluster, row)]
    y, x = _cells(cluster.topology.domain_with_nodes[row])
    values = 100.0 * level.table[:, d]
    shown = np.full((max(1, len(names)), int(x.max(initial=0)) + 1), np.nan)
    shown[y, x] = np.where(level.alive, values, np.nan)
    ax = canvas(ax, height=min(7.0, 1.4 + 0.26 * len(names)))
    if top is None:
        top = float(shown[np.isfinite(shown)].max(initial=0.0)) or 1.0
    image = ax.imshow(shown, cmap=RAMP, aspect="auto", interpolation="nearest", vmin=0.0, vmax=top)
    _rule(ax, shown.shape)
    dead, over = ~level.alive, level.alive & (values > 100.0 + 1e-7)
    ax.plot(x[dead], y[dead], linestyle="", marker="x", color=INK, markersize=6.0)
    for n in np.flatnonzero(over).tolist():
        _frame(ax, int(x[n]), int(y[n]))
    if len(values) <= MOST_FIGURES and shown.shape[1] <= MOST_COLUMNS:
        for n in np.flatnonzero(level.alive & np.isfinite(values)).tolist():
            ax.text(
                x[n], y[n], f"{values[n]:.0f}", ha="center", va="center", fontsize="small",
                color=INK if values[n] > top / 2.0 else "white",
            )  # fmt: skip
    step = max(1, -(-len(names) // MOST_NAMES))
    ax.set_yticks(np.arange(0, len(names), step), names[::step], fontsize="small")
    ax.set_xticks([])
    level_name = named([*cluster.topology.tiers, NODE_TIER][row])
    crosses = f"; \u00d7 dead: {int(dead.sum()):,}" if dead.any() else ""
    frames = f"; framed, above capacity: {int(over.sum()):,}" if over.any() else ""
    each = f"nodes of each {level_name}" if row < len(cluster.topology) else "a cell for each node"
    ax.set_xlabel(f"{each}{crosses}{frames}")
    ax.set_ylabel(level_name)
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label(f"{named(cluster.dimensions[d])} (% of capacity)")
    return finished(ax, title)


def level_at(cluster: Cluster, domains: str | None) -> int:
    """Return the row of a level."""
    if domains is None:
        return 0
    faults = FaultList()
    known = [*cluster.topology.tiers, NODE_TIER]
    if domains not in known:
        faults.add("domains", domains, f"unknown tier; known: {known}")
    faults.raise_if_any()
    return known.index(domains)


def domain_names(cluster: Cluster, row: int) -> list[str]:
    """Return the names of the domains of a level."""
    topology = cluster.topology
    if row == len(topology):
        return list(cluster.nodes.names)
    names = [topology.domain_name(row, z) for z in range(int(topology.domain_count[row]))]
    return [*names, "in none"] if (topology.domain[row] < 0).any() else names


def _cells(domain: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return row and column of each node's cell; nodes in no domain come last."""
    row = np.where(domain < 0, domain.max(initial=-1) + 1, domain).astype(np.int64)
    order = np.argsort(row, kind="stable")
    first = np.searchsorted(row[order], row[order])
    column = np.empty(len(row), np.int64)
    column[order] = np.arange(len(row)) - first
    return row, column


def _rule(ax: "Axes", shape: tuple[int, ...]) -> None:
    """Keep cells apart that are equally bright, by lines of the page's colour that leave room."""
    ax.grid(False)
    ax.spines[:].set_visible(False)
    for count, axis in zip(shape, (ax.yaxis, ax.xaxis), strict=True):
        if count <= MOST_RULED:
            axis.set_ticks(np.arange(-0.5, count), minor=True)
            axis.grid(which="minor", color="white", linewidth=1.0 if count <= FEW else 0.4)
    ax.tick_params(which="both", length=0)


def _frame(ax: "Axes", x: int, y: int) -> None:
    """Draw a black frame in a white one, which stands out from any brightness."""
    from matplotlib.patches import Rectangle

    side = 1.0 - 2.0 * INSET
    ax.add_patch(
        Rectangle(
            (x - 0.5 + INSET, y - 0.5 + INSET), side, side, fill=False, edgecolor=INK,
            linewidth=1.4, path_effects=cased(1.4),
        )
    )  # fmt: skip
