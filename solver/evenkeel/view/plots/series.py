"""Plots of series: comparisons of methods, figures over time, and the course of a search."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from evenkeel.methods.shared.stopping import Progress
from evenkeel.model.errors import FaultList
from evenkeel.view.plots.canvas import (
    AFTER,
    FAINT,
    INK,
    PALE,
    canvas,
    cased,
    finished,
    letters_across,
    named,
    plain,
    scale_to_nothing,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from evenkeel.simulate.engine.history import History


def ranges(
    spans: Mapping[str, tuple[float, float, float]],
    what: str,
    ax: "Axes | None" = None,
    *,
    title: str = "",
) -> "Axes":
    """Draw the emptiest and the fullest node under each method.

    Parameters
    ----------
    spans : mapping of str to (float, float, float)
        Least, mean and most by method; NaN for a least that is not known.
    what : str
        What is counted, with its unit.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own by default.
    title : str, optional
        What stands above it.

    Returns
    -------
    matplotlib.axes.Axes
        A line per method from the least to the most, with both figures; an upright stroke is the
        mean, where the line begins if the least is not known.

    Examples
    --------
    >>> drawn = ranges({"crush": (1.0, 2.0, 5.0), "balance": (2.0, 2.0, 2.0)}, "replicas")
    >>> [label.get_text() for label in drawn.get_yticklabels()]
    ['crush', 'balance']
    """
    ax = canvas(ax, height=1.1 + 0.34 * len(spans))
    ax.grid(False)
    ax.grid(axis="x", color=PALE, linewidth=0.6)
    rows = np.arange(len(spans))
    least, mean, most = np.array([*spans.values()], np.float64).reshape(-1, 3).T
    begin = np.where(np.isnan(least), mean, least)
    ax.hlines(rows, begin, most, color=FAINT, linewidth=4.0)
    open_ring: dict[str, Any] = {"marker": "o", "markersize": 6, "color": "white", "mec": INK}
    stroke: dict[str, Any] = {"marker": "|", "markersize": 13, "color": INK, "mew": 1.4}
    disc: dict[str, Any] = {"marker": "o", "markersize": 6, "color": INK}
    for values, look, label in (
        (least, open_ring, "least"),
        (mean, stroke, "mean"),
        (most, disc, "most"),
    ):
        if np.isfinite(values).any():
            ax.plot(values, rows, linestyle="", label=label, **look)
    for values, side, shift in ((least, "right", -7), (most, "left", 7)):
        for row in np.flatnonzero(np.isfinite(values)).tolist():
            ax.annotate(
                f"{values[row]:,.0f}", (values[row], row), xytext=(shift, 0),
                textcoords="offset points", ha=side, va="center", fontsize="small",
            )  # fmt: skip
    ax.set_yticks(range(len(spans)), [plain(name) for name in spans])
    ax.set_ylim(len(spans) - 0.4, -0.6)
    ax.margins(x=0.12)
    ax.set_xlabel(plain(what))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    return finished(ax, title)


def bars(
    names: Sequence[str],
    series: Mapping[str, Sequence[float]],
    what: str,
    *,
    figures: str = "{:.3g}",
    ax: "Axes | None" = None,
    title: str = "",
) -> "Axes":
    """Draw a group of bars for each name, a bar for each method.

    Parameters
    ----------
    names : sequence of str
        What each group is.
    series : mapping of str to sequence of float
        As many values as there are groups, by method.
    what : str
        What the bars are, with its unit.
    figures : str, optional
        How the figures over the bars are written; "" for none.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own by default.
    title : str, optional
        What stands above it.

    Returns
    -------
    matplotlib.axes.Axes
        With a hatch for each method. NaN leaves a bar out.

    Raises
    ------
    InvalidInput
        If a method has more or fewer values than there are groups.

    Examples
    --------
    >>> drawn = bars(["replicas", "leaders"], {"crush": [3.0, 2.0]}, "standard deviation")
    >>> len(drawn.patches)
    2
    """
    faults = FaultList()
    for name, values in series.items():
        if len(values) != len(names):
            faults.add(f"series[{name!r}]", len(values), f"needs {len(names)} values")
    faults.raise_if_any()
    ax = canvas(ax)
    at, width = np.arange(len(names)), 0.84 / max(1, len(series))
    for number, (name, values) in enumerate(series.items()):
        look = style(number)
        drawn = ax.bar(
            at + (number - (len(series) - 1) / 2.0) * width, values, width,
            facecolor=look.colour, edgecolor=INK if look.colour != INK else "white",
            linewidth=0.6, hatch=look.hatch, label=plain(name),
        )  # fmt: skip
        if figures:
            ax.bar_label(drawn, fmt=figures, fontsize="x-small", padding=1.5)
    ax.set_xticks(at, [plain(name) for name in names])
    ax.tick_params(axis="x", length=0)
    ax.set_ylabel(plain(what))
    ax.margins(y=0.08)
    return finished(ax, title)


# from how many seconds on which unit is used, and its seconds
UNITS = (
    (86_400.0 * 2, 86_400.0, "days"),
    (3_600.0 * 2, 3_600.0, "hours"),
    (120.0, 60.0, "minutes"),
)

MOST_EVENTS = 12  # events up to which each is named; more are marked on the upper edge
TOO_NEAR = 0.025  # share of the width within which two numbers of events would touch
NUMBER_ROW = 10.0  # points that a row of numbers is high
MOST_LETTERS = 60  # letters of what happened
HEADROOM = 0.14  # share of the height that is kept free for them


def evenness(
    seconds: ArrayLike,
    values: ArrayLike,
    *,
    what: str = "load on a node",
    present: ArrayLike | None = None,
    events: Sequence[tuple[float, str]] = (),
    ax: "Axes | None" = None,
    title: str = "",
) -> "Axes":
    """Draw how evenly a figure lies on the nodes, over time.

    Parameters
    ----------
    seconds : array_like of float, shape (T,)
        Time of each sample, rising.
    values : array_like of float, shape (T, N)
        The figure of each node.
    what : str, optional
        What the figure is, with its unit.
    present : array_like of bool, shape (T, N), optional
        Whether the node counts at that time; all do by default.
    events : sequence of (float, str), optional
        When something happened, in seconds, and what.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own by default.
    title : str, optional
        What stands above it.

    Returns
    -------
    matplotlib.axes.Axes
        The fullest and the emptiest node as the edges of an area, the middle half of the nodes as
        a darker one, and their mean.

    Raises
    ------
    InvalidInput
        If the shapes do not fit.

    Examples
    --------
    >>> drawn = evenness([0.0, 60.0, 7200.0], [[1.0, 3.0], [2.0, 2.0], [2.0, 2.0]])
    >>> drawn.get_xlabel()
    'time (hours)'
    """
    times, table = np.asarray(seconds, np.float64), np.asarray(values, np.float64)
    here = np.ones(table.shape, bool) if present is None else np.asarray(present, bool)
    faults = FaultList()
    if table.ndim != 2 or times.shape != table.shape[:1]:
        faults.add("values", table.shape, f"needs shape ({len(np.atleast_1d(times))}, N)")
    if here.shape != table.shape:
        faults.add("present", here.shape, f"needs shape {table.shape}")
    faults.raise_if_any()
    kept = here.any(1)
    times, table = times[kept], np.where(here, table, np.nan)[kept]
    ax = canvas(ax)
    at = times / _clock(ax, times)
    if len(times):
        low, lower, upper, high = np.nanquantile(table, [0.0, 0.25, 0.75, 1.0], axis=1)
        ax.fill_between(
            at, low, high, facecolor=PALE, edgecolor=FAINT, linewidth=0.6, label="all nodes"
        )
        ax.fill_between(
            at, lower, upper, facecolor=FAINT, edgecolor=INK, linewidth=0.4, hatch="////",
            alpha=0.6, label="middle half",
        )  # fmt: skip
        ax.plot(at, high, color=INK, linewidth=1.3, label="fullest")
        ax.plot(
            at, np.nanmean(table, 1), color=AFTER.colour, linewidth=1.8, linestyle="--",
            label="mean", path_effects=cased(1.8),
        )  # fmt: skip
        ax.margins(x=0.01)
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel(plain(what))
    _mark(ax, events, _clock(ax, times))
    return finished(ax, title)


def compared(
    seconds: ArrayLike,
    series: Mapping[str, ArrayLike],
    *,
    what: str,
    events: Sequence[tuple[float, str]] = (),
    ax: "Axes | None" = None,
    title: str = "",
) -> "Axes":
    """Draw one figure of several methods, over time.

    Parameters
    ----------
    seconds : array_like of float, shape (T,)
        Time of each sample, rising.
    series : mapping of str to array_like of float, shape (T,)
        The figure by method.
    what : str
        What the figure is, with its unit.
    events : sequence of (float, str), optional
        When something happened, in seconds, and what.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own by default.
    title : str, optional
        What stands above it.

    Returns
    -------
    matplotlib.axes.Axes
        A line style and a marker for each method.

    Raises
    ------
    InvalidInput
        If the shapes do not fit.

    Examples
    --------
    >>> drawn = compared([0, 1], {"balance": [1.0, 1.1]}, what="max/mean")
    >>> drawn.get_ylabel()
    'max/mean'
    """
    times = np.asarray(seconds, np.float64)
    found = {name: np.asarray(values, np.float64) for name, values in series.items()}
    faults = FaultList()
    for name, values in found.items():
        if values.shape != times.shape:
            faults.add(f"series[{name!r}]", values.shape, f"needs shape {times.shape}")
    faults.raise_if_any()
    ax = canvas(ax)
    unit = _clock(ax, times)
    for number, (name, values) in enumerate(found.items()):
        look = style(number)
        ax.plot(
            times / unit, values, color=look.colour, linestyle=look.line, linewidth=1.6,
            marker=look.marker, markersize=4.5,
            # markers of different lines stand apart where the lines run together
            markevery=(number * len(times) // (8 * len(found)), max(1, len(times) // 8)),
            label=plain(name),
        )  # fmt: skip
    ax.set_ylabel(plain(what))
    if max((np.nanmax(v, initial=0.0) for v in found.values()), default=0.0) >= 1000.0:
        ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.margins(x=0.01)
    _mark(ax, events, unit)
    return finished(ax, title)


def course(
    histories: "History | Mapping[str, History]",
    column: str,
    *,
    what: str = "",
    ax: "Axes | None" = None,
    title: str = "",
) -> "Axes":
    """Draw a figure of simulated runs, over time, with what happened.

    Parameters
    ----------
    histories : History, or mapping of str to History
        One, or several by name with samples at the same times; events are those of the first.
    column : str
        One of ``History.table``: ``"level_cpu"``, ``"moves"``, ``"in_danger"``.
    what : str, optional
        What the figure is, with its unit; the name of the column by default.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own by default.
    title : str, optional
        What stands above it.

    Returns
    -------
    matplotlib.axes.Axes
        As ``compared`` draws it.

    Raises
    ------
    InvalidInput
        If there is no such column, or the times differ.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> history = ek.simulate.play(c, [ek.simulate.At(0.0, ek.Changes(down="n0"))])
    >>> course(history, "under").get_ylabel()
    'under'
    """
    runs = dict(histories) if isinstance(histories, Mapping) else {histories.method: histories}
    tables = {name: history.table() for name, history in runs.items()}
    faults = FaultList()
    if not runs:
        faults.add("histories", histories, "names no run")
    for name, table in tables.items():
        if column not in table:
            faults.add("column", column, f"is none of {name!r}; known: {[*table]}")
    faults.raise_if_any()
    first = next(iter(runs.values()))
    series = {name: table[column] for name, table in tables.items()}
    return compared(
        first.seconds, series, what=what or column, events=first.events, ax=ax, title=title
    )


def _clock(ax: "Axes", times: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
    """Label the axis of time, and return the seconds of its unit."""
    span = float(times.max(initial=0.0))
    unit, name = next(((u, n) for least, u, n in UNITS if span >= least), (1.0, "seconds"))
    ax.set_xlabel(f"time ({name})")
    return unit


def _mark(ax: "Axes", events: Sequence[tuple[float, str]], unit: float) -> None:
    """Mark when something happened: a few by numbered lines with a key below, many on the edge."""
    if not events:
        return
    times = np.array([when for when, _ in events]) / unit
    if len(events) > MOST_EVENTS:
        ax.plot(
            times, np.ones(len(times)), transform=ax.get_xaxis_transform(), linestyle="",
            marker="|", markersize=9.0, color=INK, markeredgewidth=0.7,
            label=f"{len(times):,} events",
        )  # fmt: skip
        return
    low, high = ax.get_ylim()
    start, end = ax.get_xlim()
    near, row, last = TOO_NEAR * (end - start), 0, -np.inf
    for number, when in enumerate(times.tolist(), 1):
        ax.axvline(when, color=INK, linewidth=0.8, linestyle=":")
        row = row + 1 if when - last < near else 0
        last = when
        ax.annotate(
            str(number), (when, 1.0), xycoords=("data", "axes fraction"), fontsize="x-small",
            xytext=(0.0, -2.0 - NUMBER_ROW * row), textcoords="offset points", va="top",
            ha="center", bbox={"facecolor": "white", "linewidth": 0, "pad": 0.8},
        )  # fmt: skip
    # no line of the picture passes behind the numbers
    ax.set_ylim(low, high + HEADROOM * (high - low))
    caption = [
        f"{number} {named(name, MOST_LETTERS)}" for number, (_, name) in enumerate(events, 1)
    ]
    ax.set_xlabel("\n".join([ax.get_xlabel(), *_lines(caption, letters_across(ax))]))


def _lines(entries: Sequence[str], letters: int) -> list[str]:
    """Put entries side by side, in lines of so many letters where that is enough for each."""
    lines: list[str] = []
    for entry in entries:
        if lines and len(lines[-1]) + 3 + len(entry) <= letters:
            lines[-1] += f" · {entry}"
        else:
            lines.append(entry)
    return lines


MOST_MARKERS = 40


def trace(
    progress: Sequence[Progress],
    figure: Literal["cost", "moves"] = "cost",
    ax: "Axes | None" = None,
    *,
    title: str = "",
) -> "Axes":
    """Draw how a search went.

    Parameters
    ----------
    progress : sequence of Progress
        What the callback received, in order: pass ``callback=steps.append`` to ``solve``.
    figure : "cost" or "moves", optional
        What is drawn: what each phase brings down, in its own unit, or the moves so far.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own by default.
    title : str, optional
        What stands above it.

    Returns
    -------
    matplotlib.axes.Axes
        Against the work done, a line style and marker for each phase; costs on a logarithmic
        scale, linear below the least that is above 0.

    Examples
    --------
    >>> steps = [Progress("level", 10, 0.1, 2, 0.5), Progress("walk", 20, 0.2, 3, 0.1)]
    >>> trace(steps, "moves").get_ylabel()
    'moves so far'
    """
    from matplotlib.ticker import EngFormatter

    ax = canvas(ax)
    work = [one.work for one in progress]
    values = [one.cost if figure == "cost" else float(one.moves) for one in progress]
    phases = list(dict.fromkeys(one.phase for one in progress))
    for number, phase in enumerate(phases):
        look = style(number)
        at = [i for i, one in enumerate(progress) if one.phase == phase]
        line = look.line
        for begin, end in _runs(at):
            # the line sets out from where the phase before it ended
            span = slice(max(0, begin - 1), end + 1)
            ax.plot(work[span], values[span], color=look.colour, linestyle=line, linewidth=1.5)
        shown = at[:: -(-len(at) // MOST_MARKERS)]
        ax.plot(
            [work[i] for i in shown], [values[i] for i in shown], color=look.colour,
            linestyle="", marker=look.marker, markersize=4.5,
        )  # fmt: skip
        ax.plot(
            [], [], color=look.colour, linestyle=line, marker=look.marker, markersize=4.5,
            label=phase,
        )  # fmt: skip
    above = [value for value in values if value > 0.0]
    if figure == "cost" and above:
        scale_to_nothing(ax, min(above), max(above))
    else:
        ax.set_ylim(0.0, 1.06 * max(values, default=1.0) or 1.0)
    ax.set_ylabel("cost (unit of the phase)" if figure == "cost" else "moves so far")
    ax.set_xlabel("work (candidates looked at)")
    ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    if figure == "moves":
        ax.yaxis.set_major_formatter("{x:,.0f}")
    return finished(ax, title)


def _runs(at: Sequence[int]) -> list[tuple[int, int]]:
    """Return first and last of each stretch of numbers that follow each other."""
    breaks = [i for i, (one, two) in enumerate(pairwise(at)) if two != one + 1]
    begins = [0, *(i + 1 for i in breaks)]
    ends = [*breaks, len(at) - 1]
    return [(at[b], at[e]) for b, e in zip(begins, ends, strict=True)]
