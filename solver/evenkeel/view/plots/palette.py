"""What tells series apart: never colour alone, so that a grey print says the same.

The colours are those of Okabe and Ito, which colour-blind people can tell apart, in an order in
which neighbours differ in brightness too.

References
----------
Okabe and Ito, Color universal design: how to make figures that are colour-blind friendly.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Style:
    """How one series is drawn."""

    colour: str
    line: Any
    marker: str
    hatch: str


STYLES = (
    Style("#0072B2", "-", "o", ""),
    Style("#E69F00", "--", "s", "////"),
    Style("#202020", "-.", "^", "xxxx"),
    Style("#56B4E9", ":", "D", "...."),
    Style("#D55E00", (0, (5, 1, 1, 1, 1, 1)), "v", "\\\\\\\\"),
    Style("#CC79A7", (0, (1, 1)), "P", "++++"),
    Style("#009E73", (0, (8, 2)), "X", "oooo"),
)
"""For series without a meaning of their own, in turn."""

BEFORE = Style("#E69F00", "--", "s", "////")
AFTER = Style("#0072B2", "-", "o", "")
"""What was, and what is now: the same in every picture."""

BOUND = Style("#202020", ":", "|", "")
"""What is proven."""

INK = "#202020"
FAINT = "#8C8C8C"
PALE = "#D9D9D9"
RAMP = "cividis"
"""Values as brightness, dark for low; it rises evenly in grey."""


def style(number: int) -> Style:
    """Return how the series of a number is drawn.

    Examples
    --------
    >>> style(0).line, style(1).line
    ('-', '--')
    """
    return STYLES[number % len(STYLES)]
