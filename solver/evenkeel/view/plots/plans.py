"""Plots of plans: copies in flight into each node, and the points of a frontier."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.planning.plan import Plan
from evenkeel.planning.steps import StepKind
from evenkeel.view.plots.canvas import (
    AFTER,
    BEFORE,
    BOUND,
    FAINT,
    INK,
    PALE,
    canvas,
    finished,
    floor_line,
    named,
    scale_to_nothing,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 24  # nodes that have a row; of more, those that receive for longest
ROW = 0.8  # part of a row that its bars fill
HEIGHT, PER_ROW = 1.4, 0.22  # inches of a chart without rows, and of each of them


def gantt(plan: Plan, ax: "Axes | None" = None, *, title: str = "") -> "Axes":
    """Draw when which node receives copies.

    Parameters
    ----------
    plan : Plan
        What ``plan`` returned.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own by default.
    title : str, optional
        What stands above it.

    Returns
    -------
    matplotlib.axes.Axes
        A row per node that receives anything, the longest on top, copies at the same time one below
        the other. What goes to a spare node first is hatched. The dotted line is what no order of
        the same copies can beat.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> gantt(ek.solve(c, goals=ek.Goals(level=0.0)).plan()).get_xlabel()
    'time (s; a copy counts as 1 s)'
    """
    steps = plan.steps
    copies = np.flatnonzero(steps.kind == StepKind.COPY)
    nodes = _rows(plan, copies)
    ax = canvas(ax, height=HEIGHT + PER_ROW * max(len(nodes), 4))
    ax.grid(visible=False, axis="y")
    detour = _detours(plan, copies)
    for label, style, which in (
        ("copy", AFTER, copies[~detour]), ("copy to a spare node", BEFORE, copies[detour]),
    ):  # fmt: skip
        _bars(ax, plan, nodes, copies, which, label=label, colour=style.colour, hatch=style.hatch)
    if len(copies):
        floor_line(ax, plan.bound.seconds, f"at least, by {plan.bound.term}", across=False)
    names = plan.cluster.nodes.names
    ax.set_yticks(range(len(nodes)), [named(names[n]) for n in nodes.tolist()])
    ax.set_ylim(max(len(nodes), 1) - 0.5, -0.5)
    ax.set_xlim(0.0, 1.02 * max(plan.makespan, plan.bound.seconds, 1e-9))
    ax.set_xlabel("time (s)" if plan.throttle.paces else "time (s; a copy counts as 1 s)")
    more = len(np.unique(steps.target[copies])) - len(nodes)
    ax.set_ylabel("to node" + (f" (and {more:,} more)" if more > 0 else ""))
    return finished(ax, title)


def _rows(plan: Plan, copies: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the nodes that receive for longest, from the top."""
    target = plan.steps.target[copies]
    until = np.zeros(len(plan.cluster.nodes))
    np.maximum.at(until, target, plan.steps.finish[copies])
    receives = np.unique(target)
    order = np.argsort(-until[receives], kind="stable")[:MOST_ROWS]
    return receives[order].astype(np.intp)


def _detours(plan: Plan, copies: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which copies go where their replica does not end."""
    steps = plan.steps
    return np.asarray(plan.end.node[steps.replica[copies]] != steps.target[copies])


def _bars(
    ax: "Axes",
    plan: Plan,
    nodes: NDArray[np.intp],
    copies: NDArray[np.intp],
    which: NDArray[np.intp],
    *,
    label: str,
    colour: str,
    hatch: str,
) -> None:
    """Draw some of the copies, each in its lane of the row of its node."""
    steps = plan.steps
    for row, n in enumerate(nodes.tolist()):
        mine = copies[steps.target[copies] == n]
        lane, lanes = _lanes(steps.start[mine], steps.finish[mine])
        height = ROW / lanes
        for one in range(lanes):
            drawn = mine[(lane == one) & np.isin(mine, which)]
            if len(drawn):
                ax.broken_barh(
                    [*zip(steps.start[drawn], (steps.finish - steps.start)[drawn], strict=True)],
                    (row - ROW / 2 + one * height, height),
                    facecolor=colour, hatch=hatch, edgecolor=INK, linewidth=0.4, label=label,
                )  # fmt: skip
                label = ""


def _lanes(start: NDArray[np.float64], finish: NDArray[np.float64]) -> tuple[NDArray[np.intp], int]:
    """Return a lane for each bar such that those of a lane do not overlap, and how many there are.

    >>> lane, lanes = _lanes(np.array([0.0, 0.0, 1.0]), np.array([1.0, 2.0, 2.0]))
    >>> lane.tolist(), lanes
    ([0, 1, 0], 2)
    """
    lane = np.zeros(len(start), np.intp)
    free: list[float] = []
    for i in np.argsort(start, kind="stable").tolist():
        fits = [k for k, until in enumerate(free) if until <= start[i]]
        if not fits:
            fits = [len(free)]
            free.append(0.0)
        lane[i] = fits[0]
        free[fits[0]] = float(finish[i])
    return lane, max(len(free), 1)


TINY = 1e-6  # percent that is taken for nothing


def frontier(found: Any, ax: "Axes | None" = None, *, title: str = "") -> "Axes":
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
        A point for each plan: its moves, and by how much its fullest node exceeds the mean.
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
    ax.set_ylabel("fullest node above the mean (%)")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    return finished(ax, title)


def proven(found: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least moves, to repair and then by tolerance, and the tolerances in percent."""
    asked = [(one.goals.level, one.bounds.moves_level) for one in found.results]
    levels = sorted(((t, least) for t, least in asked if t is not None), reverse=True)
    moves = [found.results[0].bounds.moves_feasible, *(least for _, least in levels)]
    least = np.maximum.accumulate(np.asarray(moves, np.float64))
    return least, np.array([100.0 * t for t, _ in levels])
