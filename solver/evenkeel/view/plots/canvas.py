"""Axes and styles of plots, whose series can be distinguished without colour.

The colours are those of Okabe and Ito, which colour-blind people can tell apart, in an order in
which neighbours differ in brightness too.

References
----------
Okabe and Ito, Color universal design: how to make figures that are colour-blind friendly.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Style:
    """How one series is drawn."""

    colour: str
    line: Any
    marker: str
    hatch: str


# for series without a meaning of their own, in turn
STYLES = (
    Style("#0072B2", "-", "o", ""),
    Style("#E69F00", "--", "s", "////"),
    Style("#202020", "-.", "^", "xxxx"),
    Style("#56B4E9", ":", "D", "...."),
    Style("#D55E00", (0, (5, 1, 1, 1, 1, 1)), "v", "\\\\\\\\"),
    Style("#CC79A7", (0, (1, 1)), "P", "++++"),
    Style("#009E73", (0, (8, 2)), "X", "oooo"),
)

BEFORE = Style("#E69F00", "--", "s", "////")
AFTER = Style("#0072B2", "-", "o", "")  # what was, and what is now: the same in every picture
BOUND = Style("#202020", ":", "|", "")  # what is proven
INK = "#202020"
FAINT = "#8C8C8C"
PALE = "#D9D9D9"
RAMP = "cividis"  # values as brightness, dark for low; it rises evenly in grey


def style(number: int) -> Style:
    """Return how the series of a number is drawn."""
    return STYLES[number % len(STYLES)]


# inches that a letter takes in a legend, and the rest of an entry
PER_LETTER, PER_ENTRY = 0.068, 0.65

LABEL_LETTER = 0.078  # inches that a letter takes in the label of an axis
LAID_OUT = 1.15  # how much wider axes become when their figure is laid out
LEGEND_ROW = 15.0  # points that a row of a legend is high
LONGEST_NAME = 24  # letters of a name beside a picture
WIDTH, HEIGHT = 6.4, 3.6  # inches of a plot that stands by itself


def canvas(ax: "Axes | None", width: float = WIDTH, height: float = HEIGHT) -> "Axes":
    """Return the axes to draw on."""
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(width, height), layout="constrained").subplots()
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(color=FAINT)
    ax.grid(axis="y", color=PALE, linewidth=0.6)
    ax.set_axisbelow(True)
    return ax


def plain(text: str) -> str:
    """Return a text such that no dollar in it begins a formula."""
    return text.replace("$", r"\$")


def named(name: str, letters: int = LONGEST_NAME) -> str:
    """Return a name that stands on one line and leaves room for the picture."""
    line = " ".join(name.split())
    return plain(line if len(line) <= letters else f"…{line[1 - letters :]}")


def cased(width: float) -> list[Any]:
    """Return what draws a line on white, so that it stands out from areas and hatches behind it."""
    from matplotlib.patheffects import Normal, Stroke

    return [Stroke(linewidth=width + 1.8, foreground="white"), Normal()]


def scale_to_nothing(ax: "Axes", least: float, most: float) -> None:
    """Scale the upright axis by orders of magnitude, and let it end at nothing all the same."""
    ax.set_yscale("symlog", linthresh=least, linscale=0.5)
    ax.set_ylim(0.0, 1.4 * most)
    steps = (1.0,) if most > 100.0 * least else (1.0, 2.0, 5.0)
    exponents = range(math.floor(math.log10(least)), math.floor(math.log10(most)) + 2)
    marks = [step * 10.0**e for e in exponents for step in steps]
    ax.set_yticks([0.0, *(mark for mark in marks if 0.99 * least <= mark <= 1.4 * most)])
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()


def legend(ax: "Axes") -> None:
    """Put the legend above the axes, where it covers nothing."""
    handles, labels = ax.get_legend_handles_labels()
    if labels:
        wide = [PER_ENTRY + PER_LETTER * len(label) for label in labels]
        room = _inches_across(ax)
        columns = next((n for n in range(len(wide), 1, -1) if _across(wide, n) <= room), 1)
        ax.legend(
            handles, labels, loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False,
            ncols=columns, borderaxespad=0.2, fontsize="small",
            handlelength=2.6, columnspacing=1.4,
        )  # fmt: skip


def letters_across(ax: "Axes") -> int:
    """Return how many letters of a line below the axes are as wide as they are."""
    return max(20, int(_inches_across(ax) / LABEL_LETTER))


def _inches_across(ax: "Axes") -> float:
    """Return how wide the axes will be once their figure is laid out."""
    return float(
        ax.figure.get_figure(root=True).get_figwidth() * ax.get_position().width * LAID_OUT
    )


def _across(wide: list[float], columns: int) -> float:
    """Return how wide entries are in so many columns; they are filled one after the other."""
    short, longer = divmod(len(wide), columns)
    ends = [short * n + min(n, longer) for n in range(columns + 1)]
    return sum(max(wide[a:b]) for a, b in pairwise(ends))


def floor_line(
    ax: "Axes", value: float, label: str = "proven floor", *, across: bool = True
) -> None:
    """Draw a bound that is proven."""
    draw = ax.axhline if across else ax.axvline
    draw(
        value, color=BOUND.colour, linestyle=BOUND.line, linewidth=1.1 if across else 1.3,
        label=label,
    )  # fmt: skip


def finished(ax: "Axes", title: str) -> "Axes":
    """Return axes with their legend, and with a title above it."""
    legend(ax)
    if not title:
        return ax
    found = ax.get_legend()
    entries = 0 if found is None else len(found.get_texts())
    columns = 1 if found is None else max(1, found._ncols)  # type: ignore[attr-defined]
    rows = -(-entries // columns)
    ax.set_title(plain(title), loc="left", fontsize="medium", pad=6.0 + LEGEND_ROW * rows)
    return ax
