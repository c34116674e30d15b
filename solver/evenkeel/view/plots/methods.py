"""Plots of methods side by side: ranges from the least to the most, and bars."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.model.errors import FaultList
from evenkeel.view.plots.canvas import canvas, legend, plain, titled
from evenkeel.view.plots.palette import FAINT, INK, PALE, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    legend(ax)
    titled(ax, title)
    return ax


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
    legend(ax)
    titled(ax, title)
    return ax
