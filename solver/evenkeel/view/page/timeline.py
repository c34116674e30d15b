"""When a plan copies what to where: as a whole, by domain and by node, however many copies."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.runtime.figures import amount, duration
from evenkeel.model.runtime.printable import counted
from evenkeel.planning.account.recovery import short_until
from evenkeel.planning.plan import Plan
from evenkeel.planning.steps import StepKind
from evenkeel.view.markup import shortened, text
from evenkeel.view.page.charts import HEIGHT, Axis, axis_of_counts
from evenkeel.view.page.curves import WIDTH, area, axis_of, figure, panel
from evenkeel.view.page.document import left_out, paragraph
from evenkeel.view.plots.domains import domain_names

STRETCHES = 200
"""Equal stretches of a plan's time; a chart shows how many copies are under way in each."""

SHOWN_NODES, SHOWN_DOMAINS = 40, 24


class Copies(NamedTuple):
    """Copies of a plan: when each begins and ends, in seconds, and where it goes, (C,) each."""

    start: NDArray[np.float64]
    finish: NDArray[np.float64]
    target: NDArray[np.int32]
    until: float

    @classmethod
    def of(cls, plan: Plan) -> "Copies":
        """Take the copies out of the steps."""
        steps = plan.steps
        which = np.flatnonzero(steps.kind == StepKind.COPY)
        return cls(steps.start[which], steps.finish[which], steps.target[which], plan.makespan)

    def under_way(self, which: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return how many of some copies are under way on the mean of each stretch of time."""
        edges = np.linspace(0.0, self.until, STRETCHES + 1)
        busy = _since(self.start[which], edges) - _since(self.finish[which], edges)
        return np.maximum(np.diff(busy) * STRETCHES / self.until, 0.0)


def _since(times: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the seconds that have passed since each of some times, in all, at each edge."""
    ordered = np.sort(times)
    before = np.searchsorted(ordered, edges)
    passed: NDArray[np.float64] = before * edges - np.append(0.0, np.cumsum(ordered))[before]
    return passed


def timeline_parts(plan: Plan) -> list[str]:
    """Draw how a plan goes from its beginning to its end."""
    copies = Copies.of(plan)
    if not (len(copies.start) and copies.until > 0.0):
        return []
    across = [duration(share * copies.until) for share in (0.0, 0.5, 1.0)]
    across[0] = "0 s"
    return [_whole(plan, copies, across), *_lanes(plan, copies, across), *_levelled(plan)]


def _whole(plan: Plan, copies: Copies, across: list[str]) -> str:
    """Draw the copies under way of the whole cluster, and the partitions short of replicas."""
    under_way = copies.under_way(np.arange(len(copies.start)))
    most = float(under_way.max())
    axis = axis_of_counts(most)
    bound = plan.bound.seconds
    at = round(WIDTH * min(bound / copies.until, 1.0))
    drawn = area(under_way, axis) + f'<path class="rule least" d="M{at} 0V{HEIGHT}"/>'
    title = "copies under way"
    told = f"at most {amount(most)} at a time, over {duration(copies.until)}"
    panels = [panel("copies", title, told, axis, drawn)]
    short = short_until(plan)
    if (short > 0.0).any():
        ends = np.sort(short)
        starts = np.linspace(0.0, copies.until, STRETCHES, endpoint=False)
        left = (len(ends) - np.searchsorted(ends, starts, side="right")).astype(np.float64)
        counts = axis_of_counts(float(left[0]))
        last = duration(plan.short_for) if np.isfinite(plan.short_for) else "never"
        told = f"{counted(int(left[0]), 'partition')} at first, none: {last}"
        panels.append(
            panel("short", "partitions short of live replicas", told, counts,
                  area(left, counts, "was"))
        )  # fmt: skip
    said = (
        f"Time from the beginning, {duration(copies.until)} in all; dotted: no order of the same "
        f"copies ends before {duration(bound)}, by {plan.bound.term}."
    )
    said += "" if plan.throttle.paces else " No bandwidth is given, so that a copy counts as 1 s."
    return figure(panels, across, said)


def _lanes(plan: Plan, copies: Copies, across: list[str]) -> Iterable[str]:
    """Draw a row for each domain of the widest tier, and for the nodes that receive for longest."""
    cluster = plan.cluster
    lasting = copies.finish - copies.start
    groups = []
    if len(cluster.topology):
        names = domain_names(cluster, 0)
        domain = cluster.topology.domain[0].astype(np.int64)
        domain = np.where(domain < 0, len(names) - 1, domain)[copies.target]
        groups.append((shortened(cluster.topology.tiers[0]), names, domain, SHOWN_DOMAINS))
    of_node = copies.target.astype(np.int64)
    groups.append(("node", list(cluster.nodes.names), of_node, SHOWN_NODES))
    for tier, known, place, most_rows in groups:
        busy = np.bincount(place, lasting, len(known))
        count = np.bincount(place, minlength=len(known))
        receiving = np.flatnonzero(count)
        shown = receiving[np.argsort(-busy[receiving], kind="stable")][:most_rows].tolist()
        order = np.argsort(place, kind="stable")
        first = np.searchsorted(place[order], np.arange(len(known) + 1))
        rows = [copies.under_way(order[first[g] : first[g + 1]]) for g in shown]
        axis = Axis(max(float(row.max()) for row in rows) or 1.0, (), ",.4g")
        drawn = "".join(
            _lane(shortened(known[g]), int(count[g]), row, axis)
            for g, row in zip(shown, rows, strict=True)
        )
        ticks = "".join(f"<span>{one}</span>" for one in across)
        said = f"Copies into each {tier}, those first that receive for longest. A row of full "
        said += f"height: {amount(axis.top)} copies under way at a time, on the mean of "
        said += f"{duration(copies.until / STRETCHES)}."
        yield f"<h3>Into each {text(tier)}</h3>"
        yield (
            f'<figure><div class="lanes">{drawn}<div class="across" aria-hidden="true">{ticks}'
            f"</div></div><figcaption>{text(said)}</figcaption></figure>"
        )
        if len(receiving) > most_rows:
            yield paragraph(left_out(len(receiving) - most_rows, f"{tier}s"), "dim")


def _lane(name: str, count: int, row: NDArray[np.float64], axis: Axis) -> str:
    """Draw one row; a person who points at it is told how much it is."""
    busy = np.flatnonzero(row > 0.0)
    share = f", the last at {(busy[-1] + 1) / len(row):.0%} of the time" if len(busy) else ""
    told = text(f"{name}: {counted(count, 'copy') if count == 1 else f'{count:,} copies'}{share}")
    return (
        f'<i title="{text(name)}">{text(name)}</i>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true"><g>'
        f"<title>{told}</title>{area(row, axis)}</g></svg>"
    )


def _levelled(plan: Plan) -> list[str]:
    """Draw how far above the mean nodes are, against what is copied."""
    curve = plan.curve()
    total = float(curve.bytes[-1])
    if not total > 0.0:
        return []
    at = np.linspace(0.0, total, STRETCHES, endpoint=False)
    over = 100.0 * curve.over[np.searchsorted(curve.bytes, at, side="right") - 1]
    axis = axis_of(float(over.max(initial=0.0)), ",.4g")
    cluster = plan.cluster
    sized = cluster.bytes_dimension >= 0
    unit = shortened(cluster.dimensions[cluster.bytes_dimension]) if sized else "copies"
    ends = [f"0 of {unit}", amount(total / 2.0), f"{amount(total)} of {unit}"]
    told = f"from {100.0 * curve.over[0]:,.4g} to {100.0 * curve.over[-1]:,.4g}"
    title = "above the mean, % of capacity, added up over nodes and dimensions"
    said = "What is copied first should level most: the sooner it falls, the better the order."
    return [
        "<h3>How level on the way</h3>",
        figure([panel("level", title, told, axis, area(over, axis))], ends, said),
    ]
