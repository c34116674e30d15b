"""Plot how many replicas move from each domain to each other."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.compare import joined, sources
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.topology import NODE_TIER
from evenkeel.view.plots.canvas import AFTER, FAINT, INK, canvas, named, plain
from evenkeel.view.plots.nodes import domain_names, level_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_DOMAINS = 12  # domains that are drawn by themselves; those with fewest moves are drawn as one
GAP = 0.012  # least gap between two blocks, as a share of the height of all moves
LINE = 0.048  # least distance between the tops of two blocks: a line of text
BLOCK = 0.035  # width of a block, as a share of the width
BAND = 0.01  # share of the moves above which a ribbon has an edge
DEAD, NOWHERE, OTHERS = "dead nodes", "nowhere", "others"


@dataclass(frozen=True, eq=False)
class Flows:
    """Moves between domains. S sources, T targets.

    Parameters
    ----------
    sources, targets : tuple of str
        Names of domains; sources may also be dead nodes, or nowhere.
    count : ndarray of int64, shape (S, T)
        Moves from each source to each target.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4, domains={"zone": [*"ab"]}
    ... )
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> found = flows_between(c, c.placement, result.placement)
    >>> found.sources, found.targets, found.count.tolist()
    (('a',), ('b',), [[2]])
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    count: NDArray[np.int64]

    @property
    def inside(self) -> int:
        """Moves that stay in their domain."""
        same = np.array(self.sources, object)[:, None] == np.array(self.targets, object)
        return int(self.count[same].sum())


def flows_between(
    cluster: Cluster, before: Placement, after: Placement, domains: str | None = None
) -> Flows:
    """Count the moves from each domain to each other.

    Parameters
    ----------
    cluster : Cluster
        Of both placements.
    before, after : Placement
        The two.
    domains : str, optional
        The level; the widest by default.

    Returns
    -------
    Flows
        Only sources and targets that have moves. A replica that joins comes from the one that left
        its slot; else from the one that left its partition in the same turn; else from nowhere.

    Raises
    ------
    InvalidInput
        If there is no such level.

    Examples
    --------
    >>> cluster = Cluster.from_arrays(
    ...     capacity=[[9.0]] * 3, load=[[1.0]], placement=[[0, 1]],
    ...     domains={"zone": ["a", "b", "c"]},
    ... )
    >>> after = cluster.placement.replaced(np.array([0, 2], np.int32), cluster.placement.leader)
    >>> flows_between(cluster, cluster.placement, after)
    Flows(sources=('b',), targets=('c',), count=array([[1]]))
    """
    row = level_at(cluster, domains)
    names = domain_names(cluster, row)
    domain = cluster.topology.domain_with_nodes[row].astype(np.int64)
    domain = np.where(domain < 0, len(names) - 1, domain)
    came = joined(before, after)
    source, target = sources(before, after)[came], after.node[came]
    dead, nowhere = len(names), len(names) + 1
    alive = cluster.nodes.serves
    came_from = np.where(alive[source], domain[source], dead)
    came_from[source < 0] = nowhere
    count = np.zeros((len(names) + 2, len(names)), np.int64)
    np.add.at(count, (came_from, domain[target]), 1)
    rows, columns = np.flatnonzero(count.any(1)), np.flatnonzero(count.any(0))
    every = [*names, DEAD, NOWHERE]
    return Flows(
        tuple(every[i] for i in rows),
        tuple(names[i] for i in columns),
        count[np.ix_(rows, columns)],
    )


def flows(
    result: Any, domains: str | None = None, ax: "Axes | None" = None, *, title: str = ""
) -> "Axes":
    """Draw the moves as flows between domains.

    Parameters
    ----------
    result : Result
        Of a solve.
    domains : str, optional
        The level; the widest by default.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a figure of its own by default.
    title : str, optional
        What stands above it, instead of the number of moves.

    Returns
    -------
    matplotlib.axes.Axes
        Sources on the left and targets on the right, as high as they have moves; hatched ribbons
        stay within their domain. Small domains are drawn as one where there are many.

    Raises
    ------
    InvalidInput
        If there is no such level.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[8.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6,
    ...     domains={"zone": ["a", "b", "c"]},
    ... )
    >>> flows(ek.solve(cluster, goals=ek.Goals(level=0.0))).get_title(loc="left")
    '4 moves, 0 of them within their zone'
    """
    cluster = result.cluster
    every = flows_between(cluster, cluster.placement, result.placement, domains)
    found = few(every)
    ax = canvas(ax, height=4.2)
    ax.set_axis_off()
    total = int(found.count.sum())
    name = named([*cluster.topology.tiers, NODE_TIER][level_at(cluster, domains)])
    caption = f"{total:,} moves, {every.inside:,} of them within their {name}"
    ax.set_title(plain(title) or caption, loc="left", fontsize="medium")
    if total == 0:
        return ax
    ax.set_xlim(-0.32, 1.32)
    _draw(ax, found, total, name)
    return ax


def few(found: Flows) -> Flows:
    """Draw together the domains with fewest moves, where there are many."""
    sources, count = _merged(found.sources, found.count)
    targets, turned = _merged(found.targets, count.T)
    return Flows(sources, targets, turned.T)


def _merged(
    names: tuple[str, ...], count: NDArray[np.int64]
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    if len(names) <= MOST_DOMAINS:
        return names, count
    special = np.array([name in (DEAD, NOWHERE) for name in names])
    size = np.where(special, np.inf, count.sum(1))
    kept = np.sort(np.argsort(-size, kind="stable")[: MOST_DOMAINS - 1])
    rest = np.setdiff1d(np.arange(len(names)), kept)
    merged = np.vstack([count[kept], count[rest].sum(0)])
    return (*(names[i] for i in kept), OTHERS), merged


def _draw(ax: "Axes", found: Flows, total: int, name: str) -> None:
    """Draw blocks and ribbons from top to bottom."""
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    height = found.count / total
    (left, left_end), (right, right_end) = _tops(height.sum(1)), _tops(height.sum(0))
    ax.set_ylim(max(left_end, right_end), -0.09)
    for x, tops, sizes, names, side in (
        (0.0, left, height.sum(1), found.sources, "right"),
        (1.0 - BLOCK, right, height.sum(0), found.targets, "left"),
    ):
        for top, size, label in zip(tops, sizes, names, strict=True):
            ax.add_patch(Rectangle((x, top), BLOCK, size, color=INK, linewidth=0))
            beside = -0.015 if side == "right" else 1.015
            caption = f"{named(label)} · {round(size * total):,}"
            ax.text(beside, top + size / 2.0, caption, ha=side, va="center", fontsize="small")
    ax.text(-0.015, -0.03, f"from {name}", ha="right", va="bottom", color=INK, fontsize="small")
    ax.text(1.015, -0.03, f"to {name}", ha="left", va="bottom", color=INK, fontsize="small")
    start, end = left.copy(), right.copy()
    for i, source in enumerate(found.sources):
        for j, target in enumerate(found.targets):
            size = height[i, j]
            if size == 0.0:
                continue
            inside = source == target != OTHERS
            path = _ribbon(Path, float(start[i]), float(end[j]), float(size))
            face = AFTER.colour if inside else FAINT if source in (DEAD, NOWHERE) else "#C4C4C4"
            ax.add_patch(
                PathPatch(
                    path, facecolor=face, edgecolor="white", alpha=0.85,
                    linewidth=0.4 if size > BAND else 0.0,
                    hatch="////" if inside else "", zorder=2 if inside else 1,
                )
            )  # fmt: skip
            start[i] += size
            end[j] += size


def _tops(sizes: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return where each block begins, with room for its label, and where all end."""
    room = np.maximum(sizes + GAP, LINE)
    return np.cumsum(room) - room, float(room.sum())


def _ribbon(path: Any, start: float, end: float, size: float) -> Any:
    """Return the outline of a band that swings from left to right."""
    x, middle, far = BLOCK, 0.5, 1.0 - BLOCK
    corners = [
        (x, start), (middle, start), (middle, end), (far, end),
        (far, end + size), (middle, end + size), (middle, start + size), (x, start + size),
        (x, start),
    ]  # fmt: skip
    curve = [path.MOVETO, *[path.CURVE4] * 3, path.LINETO, *[path.CURVE4] * 3, path.CLOSEPOLY]
    return path(corners, curve)
