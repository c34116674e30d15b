"""Bars and histograms of block characters, readable without colour."""

import numpy as np
from numpy.typing import ArrayLike

EIGHTHS = " ▏▎▍▌▋▊▉█"
HEIGHTS = " ▁▂▃▄▅▆▇█"
MARK = "│"


def bar(value: float, full: float, width: int) -> str:
    """Draw a horizontal bar, an eighth of a character fine.

    Examples
    --------
    >>> bar(3.0, 4.0, 8)
    '██████'
    >>> bar(0.001, 4.0, 8)
    '▏'
    """
    if not (value > 0.0 and full > 0.0 and width > 0):
        return ""
    eighths = max(1, round(8 * width * min(value / full, 1.0)))
    whole, rest = divmod(eighths, 8)
    return EIGHTHS[8] * whole + (EIGHTHS[rest] if rest else "")


def histogram(values: ArrayLike, top: float, width: int, mark: float | None = None) -> str:
    """Draw how values are distributed from 0 to ``top``, one character per class.

    Examples
    --------
    >>> histogram([0.1, 0.6, 0.6, 0.6, 0.7], 1.0, 10, mark=0.95)
    ' ▃    █▃ │'
    """
    drawn = np.asarray(values, np.float64)
    count = np.zeros(width, np.int64)
    if len(drawn) and top > 0.0:
        place = np.minimum(drawn / top * width, width - 1).astype(np.int64)
        count = np.bincount(place, minlength=width)
    height = np.ceil(count * 8 / max(1, int(count.max(initial=0)))).astype(np.int64)
    signs = [HEIGHTS[h] for h in height.tolist()]
    if mark is not None and 0.0 <= mark <= top:
        at = min(int(mark / top * width), width - 1)
        signs[at] = MARK if signs[at] == " " else signs[at]
    return "".join(signs)


def axis(top: float, width: int, step: float = 0.5) -> str:
    """Write a percent scale over a histogram.

    Examples
    --------
    >>> axis(1.6, 32)
    '0%        50%       100%'
    >>> axis(1.0, 10)
    '0%   50%'
    """
    line = ""
    for i in range(round(top / step) + 1):
        at = int(i * step / top * width) if top > 0.0 else 0
        figure = f"{100 * i * step:.0f}%"
        if at >= len(line) and at + len(figure) <= width:
            line = line.ljust(at) + figure
    return line
