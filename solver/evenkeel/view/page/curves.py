"""Curves and bars along an axis of time, of amounts or of scenarios, which is told below them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenkeel.view.markup import text
from evenkeel.view.page.charts import HEIGHT, Axis, framed

WIDTH = 1000
"""Of a drawing, in its units."""

STEPS = (1.0, 2.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""Where an axis may end, but for powers of ten."""


def axis_of(most: float, form: str = ",.4g") -> Axis:
    """Return an axis from nothing to a round number that is at least so much.

    Examples
    --------
    >>> axis_of(0.034).top, axis_of(7.0).ticks, axis_of(0.0).top
    (0.04, (0.0, 4.0, 8.0), 1.0)
    """
    if not (np.isfinite(most) and most > 0.0):
        return Axis(1.0, (0.0, 1.0), form)
    size = 10.0 ** np.floor(np.log10(most))
    top = float(next((n * size for n in STEPS if most <= n * size * (1.0 + 1e-9)), 10.0 * size))
    return Axis(top, (0.0, top / 2.0, top), form)


def area(values: NDArray[np.float64], axis: Axis, look: str = "now") -> str:
    """Draw what holds for equal stretches of an axis; neighbours of one height are one piece."""
    if not len(values):
        return ""
    height = [axis.height(float(value)) for value in values]
    cuts = [i for i in range(len(height)) if i == 0 or height[i] != height[i - 1]]
    ends = [*cuts[1:], len(height)]
    drawn = "".join(
        f"V{height[i]}H{round(WIDTH * end / len(height))}"
        for i, end in zip(cuts, ends, strict=True)
    )
    return f'<path class="{look}" d="M0 {HEIGHT}{drawn}V{HEIGHT}z"/>' if any(values) else ""


def bars(values: NDArray[np.float64], axis: Axis, look: str = "now") -> str:
    """Draw a bar for each value, a little apart where there is room for that."""
    pitch = WIDTH / max(len(values), 1)
    wide = max(1, round(0.8 * pitch))
    drawn = "".join(
        f"M{round(i * pitch)} {HEIGHT}V{axis.height(value)}h{wide}V{HEIGHT}z"
        for i, value in enumerate(values.tolist())
        if value > 0.0
    )
    return f'<path class="{look}" d="{drawn}"/>' if drawn else ""


def figure(panels: Sequence[str], across: Sequence[str], said: str) -> str:
    """Put panels below each other, what the axis below them has at its ends, and what they show."""
    ticks = "".join(f"<span>{text(one)}</span>" for one in across)
    below = f'<div class="across" aria-hidden="true">{ticks}</div>' if across else ""
    return (
        f'<figure><div class="plot">{"".join(panels)}{below}</div>'
        f"<figcaption>{text(said)}</figcaption></figure>"
    )


def panel(key: str, title: str, described: str, axis: Axis, drawn: str) -> str:
    """Frame one drawing of the width that all have here."""
    return framed(key, title, described, axis, WIDTH, drawn)
