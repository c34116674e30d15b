"""Charts as SVG without text of its own: it is stretched to the page, and labels stand beside it.

What is before and what is after has a panel each and a name, so that nothing hangs on a colour.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.runtime.printable import counted
from evenkeel.view.markup import Raw, shortened, text
from evenkeel.view.plots.domains import domain_names

MOST_BARS = 300
"""Nodes up to which each has a bar; of more, some that stand side by side share one."""

MOST_GROUPS = 60
"""Domains up to which each tells its own figures."""

MOST_NAMES = 12
"""Domains up to which names stand below a chart."""

PITCH, BAR, HEIGHT = 4, 3, 1000
"""From bar to bar, width of a bar, and height of a panel, in units of the drawing."""

TOPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)
"""Where an axis of shares may end; what is beyond the last is cut."""


@dataclass(frozen=True, eq=False)
class Lineup:
    """How nodes stand from left to right. N nodes, B bars, Z domains of the widest tier.

    Parameters
    ----------
    order : ndarray of int64, shape (N,)
        The nodes, those of a domain together.
    bar : ndarray of int64, shape (B,)
        Where in ``order`` each bar begins.
    group : ndarray of int64, shape (Z + 1,)
        The bar with which each domain begins, and the number of bars.
    names : tuple of str
        Z names; one that is empty if domains are none or too many to tell apart.
    """

    order: NDArray[np.int64]
    bar: NDArray[np.int64]
    group: NDArray[np.int64]
    names: tuple[str, ...]

    @classmethod
    def of(cls, cluster: Cluster) -> "Lineup":
        """Line up the nodes of a cluster by the domains of its widest tier."""
        count = len(cluster.nodes)
        names, domain = [""], np.zeros(count, np.int64)
        if len(cluster.topology):
            known = domain_names(cluster, 0)
            if len(known) <= MOST_GROUPS:
                names = known
            domain = cluster.topology.domain[0].astype(np.int64)
            domain = np.where(domain < 0, len(known) - 1, domain)
        order = np.argsort(domain, kind="stable")
        sizes = np.bincount(domain, minlength=len(names)) if len(names) > 1 else np.array([count])
        bars = sizes if count <= MOST_BARS else -(-sizes * MOST_BARS // max(count, 1))
        first = np.cumsum(sizes) - sizes
        starts = [
            begin + np.arange(n) * size // n
            for begin, size, n in zip(first.tolist(), sizes.tolist(), bars.tolist(), strict=True)
            if n
        ]
        return cls(
            order,
            np.concatenate([np.zeros(0, np.int64), *starts]),
            np.concatenate([[0], np.cumsum(bars)]),
            tuple(names),
        )

    @property
    def shared(self) -> bool:
        """Whether a bar stands for more than one node."""
        return len(self.bar) < len(self.order)


class Axis(NamedTuple):
    """Where an axis ends, and the values that are told beside it."""

    top: float
    ticks: tuple[float, ...]
    form: str

    def height(self, value: float) -> int:
        """Return how far below the top a value stands."""
        return HEIGHT - round(HEIGHT * min(value, self.top) / self.top)


def axis_of_shares(most: float) -> Axis:
    """Return an axis for shares of a capacity."""
    top = next((top for top in TOPS if most <= top * (1.0 + 1e-9)), TOPS[-1])
    whole = (0.0, 0.5, 1.0, 1.5) if top == 1.5 else tuple(np.arange(top + 1.0).tolist())
    return Axis(top, whole if top > 1.0 else (0.0, top / 2.0, top), "%")


def axis_of_counts(most: float) -> Axis:
    """Return an axis for counts of things."""
    size = 10 ** max(0, int(np.floor(np.log10(max(most, 1.0)))))
    top = float(next(n * size for n in (1, 2, 4, 6, 8, 10) if most <= n * size))
    return Axis(top, (0.0, top / 2.0, top) if top > 1.0 else (0.0, top), ",.0f")


class Panel(NamedTuple):
    """One picture of all nodes: its name, its value per node, (N,), and lines across it."""

    key: str
    title: str
    look: str
    value: NDArray[np.float64]
    alive: NDArray[np.bool_]
    lines: Sequence[tuple[str, float]]


def chart(cluster: Cluster, lineup: Lineup, axis: Axis, panels: Sequence[Panel], said: str) -> str:
    """Draw panels below each other on one axis, and say below them what they show."""
    drawn = "".join(_panel(cluster, lineup, axis, panel) for panel in panels)
    sizes = np.diff(lineup.group).tolist()
    names = ""
    if 1 < len(lineup.names) <= MOST_NAMES:
        spans = "".join(
            f'<span style="flex-grow:{n}">{text(shortened(name, 24))}</span>'
            for name, n in zip(lineup.names, sizes, strict=True)
        )
        names = f'<div class="domains" aria-hidden="true">{spans}</div>'
    return (
        f'<figure><div class="plot">{drawn}{names}</div>'
        f"<figcaption>{text(said)}</figcaption></figure>"
    )


def _panel(cluster: Cluster, lineup: Lineup, axis: Axis, panel: Panel) -> str:
    """Draw one panel, its axis on the left."""
    width = PITCH * max(len(lineup.bar), 1)
    lines = "".join(
        f'<path class="rule {look}" d="M0 {axis.height(value)}H{width}"/>'
        for look, value in panel.lines
        if value <= axis.top
    )
    bars = "".join(_group(cluster, lineup, axis, panel, z) for z in range(len(lineup.names)))
    whole = _spread(cluster, panel, np.arange(len(panel.value)), axis)
    return framed(panel.key, panel.title, whole, axis, width, bars + lines)


def framed(key: str, title: str, described: str, axis: Axis, width: int, drawn: str) -> str:
    """Put shapes into a frame: a title above, the axis on the left, words for who sees nothing."""
    ticks = "".join(
        f'<span style="bottom:{100.0 * tick / axis.top:.4g}%">{_told(axis, tick)}</span>'
        for tick in axis.ticks
    )
    return (
        f'<b>{text(title)}</b><div class="axis" aria-hidden="true">{ticks}</div>'
        f'<svg viewBox="0 0 {width} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-labelledby="{key}-t {key}-d"><title id="{key}-t">{text(title)}</title>'
        f'<desc id="{key}-d">{text(described)}</desc>{drawn}</svg>'
    )


def _group(cluster: Cluster, lineup: Lineup, axis: Axis, panel: Panel, z: int) -> str:
    """Draw the bars of one domain; a person who points at them is told its figures."""
    first, end = int(lineup.group[z]), int(lineup.group[z + 1])
    if first == end:
        return ""
    begin = int(lineup.bar[first])
    stop = int(lineup.bar[end]) if end < len(lineup.bar) else len(lineup.order)
    members = lineup.order[begin:stop]
    value, alive = panel.value[members], panel.alive[members]
    starts = lineup.bar[first:end] - begin
    living = np.where(alive, np.where(np.isfinite(value), value, axis.top), np.nan)
    low, high = np.fmin.reduceat(living, starts), np.fmax.reduceat(living, starts)
    at = [PITCH * i for i in range(first, end)]
    bars = [(x, 0.0, v) for x, v in zip(at, low.tolist(), strict=True) if v > 0.0]
    above = [(x, a, b) for x, a, b in zip(at, low.tolist(), high.tolist(), strict=True) if b > a]
    dead = []
    if not lineup.shared:
        gone = np.flatnonzero(~alive & (value > 0.0)).tolist()
        dead = [(at[i], 0.0, float(value[i])) for i in gone]
    tier = cluster.topology.tiers[0] if len(cluster.topology) else ""
    name = f"{shortened(tier)} {shortened(lineup.names[z])}: " if lineup.names[z] else ""
    told = f"{name}{_spread(cluster, panel, members, axis)}"
    return (
        f"<g><title>{text(told)}</title>"
        + _path(panel.look, bars, axis)
        + _path(f"{panel.look} part", above, axis)
        + _path("dead", dead, axis)
        + "</g>"
    )


def _path(look: str, bars: Sequence[tuple[int, float, float]], axis: Axis) -> str:
    """Draw bars, each from one value to another, as one shape."""
    if not bars:
        return ""
    drawn = "".join(
        f"M{x} {axis.height(low)}V{axis.height(high)}h{BAR}V{axis.height(low)}z"
        for x, low, high in bars
    )
    return f'<path class="{look}" d="{drawn}"/>'


def _spread(cluster: Cluster, panel: Panel, members: NDArray[np.int64], axis: Axis) -> str:
    """Say how many nodes there are, and which has most and which least."""
    living = members[panel.alive[members]]
    dead = len(members) - len(living)
    said = f"{counted(len(living), 'node')} alive" + (f", {dead:,} dead" if dead else "")
    if len(living) == 0:
        return said
    value, names = panel.value[living], cluster.nodes.names
    most, least = int(living[np.argmax(value)]), int(living[np.argmin(value)])
    ends = (
        f"{kind} {shortened(names[n])} {_told(axis, float(panel.value[n]))}"
        for kind, n in (("most on", most), ("least on", least))
    )
    return f"{said}; {', '.join(ends)}"


def _told(axis: Axis, value: float) -> str:
    """Write a value in the unit of its axis."""
    if not np.isfinite(value):
        return "∞"
    if axis.form.endswith("%"):
        return f"{100.0 * value:.4g}%"
    return format(value, axis.form)


def strips(shares: Sequence[tuple[str, float]]) -> Raw:
    """Draw shares of a whole as strips below each other, each in its own look."""
    deep = 10.0 / len(shares)
    drawn = "".join(
        f'<rect class="{look}" y="{i * deep:g}" width="{100.0 * min(max(share, 0.0), 1.0):.4g}" '
        f'height="{deep - 1.0:g}"/>'
        for i, (look, share) in enumerate(shares)
    )
    return Raw(
        '<svg class="pair" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f"{drawn}</svg>"
    )
