"""Draw the charts of HTML pages as SVG.

Charts have no text of their own and are stretched to the page; labels are HTML beside them. The
placements before and after have a panel each and a name, so that nothing depends on colour; colours
are those of the page, in light and dark mode and in print.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.runtime.printable import counted
from evenkeel.view.html import Raw, shortened, text
from evenkeel.view.plots.nodes import domain_names

MOST_BARS = 300  # nodes up to which each has a bar; of more, some that stand side by side share one
MOST_GROUPS = 60  # domains up to which each tells its own figures
MOST_NAMES = 12  # domains up to which names stand below a chart
# from bar to bar of nodes, width of these, height and usual width of a panel, in its units
PITCH, BAR, HEIGHT, WIDTH = 4, 3, 1000, 1000

# where an axis of shares may end; what is beyond the last is cut
TOPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)

STEPS = (1.0, 2.0, 4.0, 5.0, 6.0, 8.0, 10.0)  # where other axes may end, but for powers of ten


def widest_domains(cluster: Cluster) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of the domains of the widest tier, and the domain of each node."""
    names = domain_names(cluster, 0)
    domain = cluster.topology.domain[0].astype(np.int64)
    return names, np.where(domain < 0, len(names) - 1, domain)


@dataclass(frozen=True, eq=False)
class Lineup:
    """How nodes stand from left to right. N nodes, B bars, Z domains of the widest tier."""

    order: NDArray[np.int64]  # (N,) nodes, those of a domain together
    bar: NDArray[np.int64]  # (B,) where in ``order`` each bar begins
    group: NDArray[np.int64]  # (Z + 1,) the first bar of each domain, and the number of bars
    names: tuple[str, ...]  # of the domains; one empty name if they are none or too many

    @classmethod
    def of(cls, cluster: Cluster) -> "Lineup":
        """Line up the nodes of a cluster by the domains of its widest tier."""
        count = len(cluster.nodes)
        names, domain = [""], np.zeros(count, np.int64)
        if len(cluster.topology):
            known, domain = widest_domains(cluster)
            names = known if len(known) <= MOST_GROUPS else names
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
    """Where an axis ends, and the values shown beside it."""

    top: float
    ticks: tuple[float, ...]
    form: str

    def height(self, value: float) -> int:
        """Return how far below the top a value stands."""
        return HEIGHT - round(HEIGHT * min(value, self.top) / self.top)

    def label(self, value: float) -> str:
        """Write a value in the unit of the axis."""
        if not np.isfinite(value):
            return "∞"
        return f"{100.0 * value:.4g}%" if self.form == "%" else format(value, self.form)


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


def axis_of(most: float) -> Axis:
    """Return an axis from nothing to a round number that is at least so much."""
    if not (np.isfinite(most) and most > 0.0):
        return Axis(1.0, (0.0, 1.0), ",.4g")
    size = 10.0 ** np.floor(np.log10(most))
    top = float(next((n * size for n in STEPS if most <= n * size * (1.0 + 1e-9)), 10.0 * size))
    return Axis(top, (0.0, top / 2.0, top), ",.4g")


def figure(panels: Sequence[str], across: Sequence[str], caption: str) -> Raw:
    """Put panels below each other, what the axis below them has at its ends, and what they show."""
    return _figure("plot", "".join(panels), _across(across), caption)


def _figure(look: str, drawn: str, below: str, caption: str) -> Raw:
    return Raw(
        f'<figure><div class="{look}">{drawn}{below}</div>'
        f"<figcaption>{text(caption)}</figcaption></figure>"
    )


def _across(across: Sequence[str]) -> str:
    ticks = "".join(f"<span>{text(one)}</span>" for one in across)
    return f'<div class="across" aria-hidden="true">{ticks}</div>' if across else ""


def _svg(width: int, attributes: str, drawn: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {HEIGHT}" preserveAspectRatio="none" {attributes}>{drawn}</svg>'
    )


def panel(key: str, title: str, described: str, axis: Axis, drawn: str, width: int = WIDTH) -> str:
    """Put shapes into a frame: a title above, the axis on the left, words for who sees nothing."""
    ticks = "".join(
        f'<span style="bottom:{100.0 * tick / axis.top:.4g}%">{axis.label(tick)}</span>'
        for tick in axis.ticks
    )
    named = f'<title id="{key}-t">{text(title)}</title><desc id="{key}-d">{text(described)}</desc>'
    return f'<b>{text(title)}</b><div class="axis" aria-hidden="true">{ticks}</div>' + _svg(
        width, f'role="img" aria-labelledby="{key}-t {key}-d"', named + drawn
    )


def path(look: str, drawn: str) -> str:
    """Draw a shape, if there is any."""
    return f'<path class="{look}" d="{drawn}"/>' if drawn else ""


def uprights(places: Sequence[int]) -> str:
    """Draw dotted lines from the top to the bottom."""
    return path("rule least", "".join(f"M{x} 0V{HEIGHT}" for x in places))


def _bars(look: str, bars: Sequence[tuple[int, float, float]], axis: Axis, wide: int = BAR) -> str:
    """Draw bars, each at its place and from one value to another, as one shape."""
    shapes = (
        f"M{x} {axis.height(low)}V{axis.height(high)}h{wide}V{axis.height(low)}z"
        for x, low, high in bars
    )
    return path(look, "".join(shapes))


def area(values: NDArray[np.float64], axis: Axis, look: str = "now") -> str:
    """Draw what holds for equal stretches of an axis; neighbours of one height are one piece."""
    if not values.any():
        return ""
    height = [axis.height(float(value)) for value in values]
    cuts = [i for i in range(len(height)) if i == 0 or height[i] != height[i - 1]]
    ends = [*cuts[1:], len(height)]
    drawn = "".join(
        f"V{height[i]}H{round(WIDTH * end / len(height))}"
        for i, end in zip(cuts, ends, strict=True)
    )
    return path(look, f"M0 {HEIGHT}{drawn}V{HEIGHT}z")


def row_of_bars(values: NDArray[np.float64], axis: Axis, look: str = "now") -> str:
    """Draw a bar for each value, a little apart where there is room for that."""
    pitch = WIDTH / max(len(values), 1)
    bars = [(round(i * pitch), 0.0, v) for i, v in enumerate(values.tolist()) if v > 0.0]
    return _bars(look, bars, axis, max(1, round(0.8 * pitch)))


def stairs(points: Sequence[tuple[int, int]], edge: Sequence[tuple[int, int]], floor: int) -> str:
    """Draw points, the steps between them, and dotted the edge of what none can reach."""
    (x, y), *rest = points
    trail = f"M{x} {y}" + "".join(f"H{a}V{b}" for a, b in rest)
    (x, _), *corners = edge
    line = f"M{x} 0" + "".join(f"V{b}H{a}" for a, b in corners) + f"V{floor}H{WIDTH}"
    dots = "".join(f"M{a} {b}h0" for a, b in points)
    return path("rule least", line) + path("trail", trail) + path("mark now", dots)


def lanes(
    rows: Sequence[tuple[str, str, NDArray[np.float64]]], top: float, across: Sequence[str],
    caption: str,
) -> Raw:  # fmt: skip
    """Draw rows of a name, a title, and values over time, all on a scale to ``top``."""
    axis = Axis(top, (), ",.4g")
    drawn = "".join(
        f'<i title="{text(name)}">{text(name)}</i>'
        + _svg(WIDTH, 'aria-hidden="true"', f"<g><title>{text(title)}</title>{area(row, axis)}</g>")
        for name, title, row in rows
    )
    return _figure("lanes", drawn, _across(across), caption)


class Panel(NamedTuple):
    """One picture of all nodes: its name, its value per node, (N,), and lines across it."""

    key: str
    title: str
    look: str
    value: NDArray[np.float64]
    alive: NDArray[np.bool_]
    lines: Sequence[tuple[str, float]] = ()


def node_chart(
    cluster: Cluster, lineup: Lineup, axis: Axis, panels: Sequence[Panel], caption: str
) -> Raw:
    """Draw every node in panels below each other on one axis, and say below what they show."""
    width = PITCH * max(len(lineup.bar), 1)
    drawn = "".join(
        panel(
            one.key, one.title, _spread(cluster, one, np.arange(len(one.value)), axis), axis,
            "".join(_group(cluster, lineup, axis, one, z) for z in range(len(lineup.names)))
            + "".join(
                path(f"rule {look}", f"M0 {axis.height(value)}H{width}")
                for look, value in one.lines
                if value <= axis.top
            ),
            width,
        )
        for one in panels
    )  # fmt: skip
    names = ""
    if 1 < len(lineup.names) <= MOST_NAMES:
        spans = "".join(
            f'<span style="flex-grow:{n}">{text(shortened(name, 24))}</span>'
            for name, n in zip(lineup.names, np.diff(lineup.group).tolist(), strict=True)
        )
        names = f'<div class="domains" aria-hidden="true">{spans}</div>'
    return _figure("plot", drawn, names, caption)


def _group(cluster: Cluster, lineup: Lineup, axis: Axis, shown: Panel, z: int) -> str:
    """Draw the bars of one domain; pointing at them shows its figures."""
    first, end = int(lineup.group[z]), int(lineup.group[z + 1])
    if first == end:
        return ""
    begin = int(lineup.bar[first])
    stop = int(lineup.bar[end]) if end < len(lineup.bar) else len(lineup.order)
    members = lineup.order[begin:stop]
    value, alive = shown.value[members], shown.alive[members]
    starts = lineup.bar[first:end] - begin
    living = np.where(alive, np.where(np.isfinite(value), value, axis.top), np.nan)
    low, high = np.fmin.reduceat(living, starts), np.fmax.reduceat(living, starts)
    at = [PITCH * i for i in range(first, end)]
    bars = [(x, 0.0, v) for x, v in zip(at, low.tolist(), strict=True) if v > 0.0]
    above = [(x, a, b) for x, a, b in zip(at, low.tolist(), high.tolist(), strict=True) if b > a]
    gone = [] if lineup.shared else np.flatnonzero(~alive & (value > 0.0)).tolist()
    dead = [(at[i], 0.0, float(value[i])) for i in gone]
    tier = cluster.topology.tiers[0] if len(cluster.topology) else ""
    name = f"{shortened(tier)} {shortened(lineup.names[z])}: " if lineup.names[z] else ""
    return (
        f"<g><title>{text(f'{name}{_spread(cluster, shown, members, axis)}')}</title>"
        + _bars(shown.look, bars, axis)
        + _bars(f"{shown.look} part", above, axis)
        + _bars("dead", dead, axis)
        + "</g>"
    )


def _spread(cluster: Cluster, shown: Panel, members: NDArray[np.int64], axis: Axis) -> str:
    """Say how many nodes there are, and which has most and which least."""
    living = members[shown.alive[members]]
    dead = len(members) - len(living)
    caption = f"{counted(len(living), 'node')} alive" + (f", {dead:,} dead" if dead else "")
    if len(living) == 0:
        return caption
    value, names = shown.value[living], cluster.nodes.names
    most, least = int(living[np.argmax(value)]), int(living[np.argmin(value)])
    ends = (
        f"{kind} {shortened(names[n])} {axis.label(float(shown.value[n]))}"
        for kind, n in (("most on", most), ("least on", least))
    )
    return f"{caption}; {', '.join(ends)}"
