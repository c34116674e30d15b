"""A plot of a search: what a callback was told."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from evenkeel.methods.shared.stopping import Progress
from evenkeel.view.plots.canvas import canvas, legend, scale_to_nothing, titled
from evenkeel.view.plots.palette import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
        What the callback was told, in order: pass ``callback=told.append`` to ``solve``.
    figure : "cost" or "moves", optional
        What is drawn: what each stage brings down, in its own unit, or the moves so far.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own by default.
    title : str, optional
        What stands above it.

    Returns
    -------
    matplotlib.axes.Axes
        Against the work done, a line style and marker for each stage; costs on a logarithmic
        scale, linear below the least that is above 0.

    Examples
    --------
    >>> told = [Progress("level", 10, 0.1, 2, 0.5), Progress("walk", 20, 0.2, 3, 0.1)]
    >>> trace(told, "moves").get_ylabel()
    'moves so far'
    """
    from matplotlib.ticker import EngFormatter

    ax = canvas(ax)
    work = [one.work for one in progress]
    values = [one.cost if figure == "cost" else float(one.moves) for one in progress]
    stages = list(dict.fromkeys(one.stage for one in progress))
    for number, stage in enumerate(stages):
        look = style(number)
        at = [i for i, one in enumerate(progress) if one.stage == stage]
        line = look.line
        for begin, end in _runs(at):
            # the line sets out from where the stage before it ended
            span = slice(max(0, begin - 1), end + 1)
            ax.plot(work[span], values[span], color=look.colour, linestyle=line, linewidth=1.5)
        shown = at[:: -(-len(at) // MOST_MARKERS)]
        ax.plot(
            [work[i] for i in shown], [values[i] for i in shown], color=look.colour,
            linestyle="", marker=look.marker, markersize=4.5,
        )  # fmt: skip
        ax.plot(
            [], [], color=look.colour, linestyle=line, marker=look.marker, markersize=4.5,
            label=stage,
        )  # fmt: skip
    above = [value for value in values if value > 0.0]
    if figure == "cost" and above:
        scale_to_nothing(ax, min(above), max(above))
    else:
        ax.set_ylim(0.0, 1.06 * max(values, default=1.0) or 1.0)
    ax.set_ylabel("cost (unit of the stage)" if figure == "cost" else "moves so far")
    ax.set_xlabel("work (candidates looked at)")
    ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    if figure == "moves":
        ax.yaxis.set_major_formatter("{x:,.0f}")
    legend(ax)
    titled(ax, title)
    return ax


def _runs(at: Sequence[int]) -> list[tuple[int, int]]:
    """Return first and last of each stretch of numbers that follow each other."""
    breaks = [i for i, (one, two) in enumerate(pairwise(at)) if two != one + 1]
    begins = [0, *(i + 1 for i in breaks)]
    ends = [*breaks, len(at) - 1]
    return [(at[b], at[e]) for b, e in zip(begins, ends, strict=True)]
