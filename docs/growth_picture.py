"""Draw how calls grow with partitions, nodes, dimensions and scenarios, as an SVG.

``python -m docs.growth_picture`` measures, prints and writes ``docs/pictures/growth.svg``.
"""

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import evenkeel as ek
from bench.growth import AXES, MIDDLE, cluster, exponent, seconds_of
from docs.picture import STYLE

FILE = Path(__file__).parent / "pictures" / "growth.svg"
GOALS = ek.Goals(level=0.04)
SCENARIOS = (30, 60, 120, 240)
WIDTH, HEIGHT, LEFT, TOP, GAP = 900, 250, 60, 34, 28
LEAST, MOST = 1e-3, 1.0
"""Seconds at the foot and the top of each panel."""


class Line(NamedTuple):
    """CPU seconds of a call at each size along an axis."""

    axis: str
    name: str
    sizes: list[int]
    seconds: list[float]


def solved(level: float | None) -> Callable[[dict[str, int]], Callable[[], object]]:
    """Solve from a cluster to an audited result with its bounds, without a walk."""
    goals = ek.Goals(level=level)

    def of(sizes: dict[str, int]) -> Callable[[], object]:
        given = cluster(sizes)
        return lambda: ek.solve(given, goals=goals, work_limit=0)

    return of


def parted(sizes: dict[str, int]) -> Callable[[], object]:
    """Solve in two parts, one after the other."""
    given = cluster(sizes)
    return lambda: ek.solve_in_parts(given, 2, goals=GOALS)


CALLS = {"solve": solved(0.04), "repair only": solved(None), "in two parts": parted}


def swept(scenarios: int) -> Callable[[], object]:
    """Lose so many nodes, one at a time."""
    given = cluster(MIDDLE, filled=True)
    level = given.with_placement(ek.solve(given, goals=GOALS).placement)
    alive = np.flatnonzero(level.nodes.alive)
    lost = [
        ek.Changes(name=f"loss {i}", down=[int(n)])
        for i, n in enumerate(np.resize(alive, scenarios))
    ]
    return lambda: ek.sweep(level, lost, goals=ek.Goals(level=0.1))


def measured() -> list[Line]:
    """Measure all lines."""
    found = []
    for axis in "PND":
        for name, make in CALLS.items():
            sizes = list(AXES[axis])
            seconds = [seconds_of(make(MIDDLE | {axis: size})) for size in sizes]
            found.append(Line(axis, name, sizes, seconds))
    seconds = [seconds_of(swept(count)) for count in SCENARIOS]
    found.append(Line("scenarios", "sweep", list(SCENARIOS), seconds))
    return found


def drawn(lines: list[Line]) -> str:
    """Return a panel for each axis, both scales logarithmic, a line for each call."""
    axes = list(dict.fromkeys(one.axis for one in lines))
    wide = (WIDTH - LEFT) / len(axes) - GAP
    high = HEIGHT - TOP - 40
    parts = [f"<style>{STYLE} path {{ fill: none; stroke-width: 2 }}</style>"]

    def height(seconds: float) -> float:
        share = math.log(seconds / LEAST) / math.log(MOST / LEAST)
        return TOP + high * (1.0 - share)

    for seconds, words in ((1e-3, "1 ms"), (1e-2, "10 ms"), (1e-1, "0.1 s"), (1.0, "1 s")):
        y = height(seconds)
        parts.append(f'<path class="line" stroke-width="1" d="M{LEFT} {y:.1f}H{WIDTH - GAP}"/>')
        parts.append(
            f'<text class="small" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{words}</text>'
        )
    for i, axis in enumerate(axes):
        left = LEFT + i * (wide + GAP)
        parts.append(f'<text x="{left:.0f}" y="{TOP - 12}">{axis}</text>')
        for one in (line for line in lines if line.axis == axis):
            at = [left + wide * k / (len(one.sizes) - 1) for k in range(len(one.sizes))]
            points = "L".join(
                f"{x:.1f} {height(s):.1f}" for x, s in zip(at, one.seconds, strict=True)
            )
            kind = "dead" if one.name == "repair only" else "node"
            dashed = ' stroke-dasharray="6 4"' if one.name == "in two parts" else ""
            slope = exponent(one.sizes, one.seconds)
            parts.append(f'<path class="{kind}"{dashed} d="M{points}"/>')
            parts.append(
                f'<text class="small" x="{at[0]:.0f}" y="{height(one.seconds[0]) - 6:.0f}">'
                f"{one.name}: {slope:.2f}</text>"
            )
        for x, size, anchor in (
            (left, one.sizes[0], "start"), (left + wide, one.sizes[-1], "end"),
        ):  # fmt: skip
            parts.append(
                f'<text class="small" x="{x:.0f}" y="{HEIGHT - 22}" text-anchor="{anchor}">'
                f"{size:,}</text>"
            )
    inside = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">\n'
        "<title>CPU seconds of calls as one size doubles</title>\n"
        f"{inside}\n</svg>\n"
    )


def main() -> int:
    """Measure, print and draw."""
    lines = measured()
    for one in lines:
        timings = "  ".join(f"{n:,}: {1e3 * s:.1f} ms" for n, s in zip(*one[2:], strict=True))
        sys.stdout.write(f"{one.axis:9} {one.name:13} {exponent(*one[2:]):5.2f}  {timings}\n")
    FILE.write_text(drawn(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
