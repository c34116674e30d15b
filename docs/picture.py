"""Draw the picture of the README: every node's utilisation before and after, as an SVG.

``python -m docs.picture`` writes ``docs/pictures/balance.svg``.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import evenkeel as ek
from evenkeel.measure.loads import node_loads
from evenkeel.simulate.generators import expansion

FILE = Path(__file__).parent / "pictures" / "balance.svg"
DIMENSION = 1
LEVEL = 0.04
WIDTH, LEFT, RIGHT, TOP, GAP = 900, 52, 10, 34, 44
FULL, HIGHEST = 110, 1.3
"""Height of a bar at 100 %, and the utilisation at which a panel ends."""
STYLE = """
text { font: 14px system-ui, sans-serif; fill: #333 }
.small { font-size: 12px }
.node { stroke: #0072b2 }
.dead { stroke: #d55e00 }
.line { stroke: #767676; stroke-dasharray: 5 4 }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd }
  .node { stroke: #56b4e9 }
  .dead { stroke: #e69f00 }
}
"""
"""Blue and orange differ for the colour-blind, and the title names the colours."""


def panel(
    top: float, title: str, use: NDArray[np.float64], alive: NDArray[np.bool_], mean: float
) -> list[str]:
    """Draw one bar per node, (N,), as high as its utilisation."""
    step = (WIDTH - LEFT - RIGHT) / len(use)
    at = LEFT + step * (np.arange(len(use)) + 0.5)
    bottom = top + FULL * HIGHEST
    drawn = [f'<text x="{LEFT}" y="{top - 10:.0f}">{title}</text>']
    for name, rows in (("node", alive), ("dead", ~alive)):
        bars = "".join(
            f"M{x:.1f} {bottom:.0f}V{bottom - FULL * min(u, HIGHEST):.1f}"
            for x, u in zip(at[rows].tolist(), use[rows].tolist(), strict=True)
        )
        drawn.append(f'<path class="{name}" stroke-width="{0.75 * step:.2f}" d="{bars}"/>')
    for share, words in ((1.0, "100 %"), (mean, f"{mean:.0%}".replace("%", " %"))):
        y = bottom - FULL * share
        drawn.append(f'<path class="line" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        drawn.append(
            f'<text class="small" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{words}</text>'
        )
    return drawn


def picture(cluster: ek.Cluster, result: ek.Result) -> str:
    """Return the drawing, nodes by zone and by how full they were."""
    nodes = cluster.nodes
    capacity = nodes.capacity[:, DIMENSION]
    before, after = (
        node_loads(cluster, placed)[:, DIMENSION] / capacity
        for placed in (cluster.placement, result.placement)
    )
    order = np.lexsort((before, cluster.topology.label[0]))
    mean = float(after[nodes.alive] @ capacity[nodes.alive] / capacity[nodes.alive].sum())
    new, dead = int((before[nodes.alive] == 0).sum()), int((~nodes.alive).sum())
    name = cluster.dimensions[DIMENSION]
    metrics = result.metrics
    titles = (
        f"before: {name} of {len(nodes)} nodes by zone; {new} are new and empty, {dead} have died "
        f"(orange), the fullest alive is at {before[nodes.alive].max():.0%}".replace("%", " %"),
        f"after {metrics['moves']:,} moves (proven: at least {metrics['moves_at_least']:,}): no "
        f"rule broken, the fullest is at {after.max():.0%}".replace("%", " %"),
    )
    second = TOP + FULL * HIGHEST + GAP
    height = second + FULL * HIGHEST + 12
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'viewBox="0 0 {WIDTH} {height:.0f}">',
            f"<title>Utilisation of {len(nodes)} nodes before and after</title>",
            f"<style>{STYLE}</style>",
            *panel(TOP, titles[0], before[order], nodes.alive[order], mean),
            *panel(second, titles[1], after[order], nodes.alive[order], mean),
            "</svg>\n",
        ]
    )


def main() -> int:
    """Draw the cluster of ``make demo``."""
    cluster = expansion()
    result = ek.solve(cluster, goals=ek.Goals(level=LEVEL))
    FILE.write_text(picture(cluster, result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
