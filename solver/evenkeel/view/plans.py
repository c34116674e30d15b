"""Render a plan: the times of its copies, its safety, and its blocked moves."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.intake.stranded import left_alone_message, unavailable_message
from evenkeel.model.runtime.figures import amount, data, duration, quantity
from evenkeel.model.runtime.printable import counted
from evenkeel.model.runtime.table import Column, Table
from evenkeel.planning.explain import (
    disk_rows_of,
    held_to,
    losses_in_words,
    seconds_by_wave,
    short_until,
    wave_numbers,
)
from evenkeel.planning.plan import Plan
from evenkeel.planning.replay import BREACHES, Certificate
from evenkeel.planning.replay.certificate import Tightest
from evenkeel.planning.steps import StepKind
from evenkeel.planning.throttle import BY_TIER, COUNTS, RATES
from evenkeel.view.charts import WIDTH as ACROSS
from evenkeel.view.charts import (
    area,
    axis_of,
    axis_of_counts,
    figure,
    lanes,
    panel,
    uprights,
    widest_domains,
)
from evenkeel.view.html import (
    Raw,
    Section,
    cards,
    dim,
    heading,
    notebook,
    page,
    shortened,
    subheading,
    verdict,
)
from evenkeel.view.terminal import SHOWN_ROWS, WIDTH, Line, rendered

FEW_STEPS = 24  # steps up to which a plan is listed step by step, not wave by wave
SHOWN_STEPS, SHOWN_WAVES, SHOWN_BLOCKED, SHOWN_POINTS = 500, 200, 200, 40
SHOWN_NODES, SHOWN_DOMAINS = 40, 24  # rows of a page
# equal stretches of a plan's time; a chart shows how many copies are under way in each
STRETCHES = 200


def report_plan(
    plan: Plan,
    certificate: Certificate,
    *,
    beyond: Sequence[str] = (),
    lacking: str = "",
    width: int = WIDTH,
    styled: bool = False,
) -> str:
    """Report a plan, its check, limits that it is ``beyond``, what its target is ``lacking``."""
    caption = "✓ safe at every step" if certificate.ok else "✗ not safe"
    if beyond:
        safe = ", but safe at every step" if certificate.ok else ", and not safe"
        caption = f"✗ exceeds its limits: {', '.join(beyond)}{safe}"
    held = len(plan.blocked) + len(plan.disk_moves.blocked)
    blocked = f" · {counted(held, 'move')} blocked" if held else ""
    if plan.astray:
        blocked = f" · {counted(plan.astray, 'partition')} short of the target"
    if plan.regressions:
        blocked += " · its end breaks rules"
    if lacking:
        blocked += " · the target falls short"
    colour = "red" if caption[0] == "✗" else "yellow" if blocked else "green"
    stranded = unavailable_message(plan.cluster) or left_alone_message(plan.cluster)
    parts: list[Line | Table] = [
        Line(f"Evenkeel · plan · {caption}{blocked}", f"bold {colour}"),
        Line(summary(plan)),
        Line(held_to(plan), "dim"),
        *([Line(f"! the target is {lacking}")] if lacking else []),
        *([Line(f"! {stranded}")] if stranded else []),
    ]
    if len(plan):
        few = len(plan) <= FEW_STEPS
        parts.append(_steps(plan, FEW_STEPS, quantity) if few else _waves(plan, SHOWN_ROWS))
    parts += [_inside(plan, SHOWN_ROWS)] if plan.disk_moves.waves else []
    if certificate.breaches:
        parts.append(_breaches(certificate, SHOWN_ROWS))
        lines = (f"{kind} {n:,}: {BREACHES[kind]}" for kind, n in certificate.counts.items())
        parts += [Line(one, "dim") for one in lines]
    elif certificate.tightest:
        parts.append(_tightest(plan, certificate, SHOWN_ROWS))
    parts += [_blocked(plan, SHOWN_ROWS)] if plan.blocked else []
    return rendered(parts, width, styled)


def plan_html(plan: Plan) -> str:
    """Write what a plan is, for a notebook."""
    return notebook(
        [
            heading("Plan", summary(plan)),
            held_to(plan),
            *([_waves(plan, SHOWN_ROWS)] if len(plan) else []),
            *([_inside(plan, SHOWN_ROWS)] if plan.disk_moves.waves else []),
            *([_blocked(plan, SHOWN_ROWS)] if plan.blocked else []),
        ]
    )


def plan_page(plan: Plan, certificate: Certificate | None = None) -> str:
    """Write what a plan does as a page of HTML; it is checked unless its certificate is at hand."""
    checked = plan.check() if certificate is None else certificate
    safe = "safe" if checked.ok else "not safe"
    blocked: list[str | Table] = []
    if plan.blocked:
        none = "No order of these moves is safe at every step."
        blocked = [none, _blocked(plan, SHOWN_BLOCKED)]
    rows = [_waves(plan, SHOWN_WAVES), _steps(plan, SHOWN_STEPS, _clock)] if len(plan) else []
    rows += [_inside(plan, SHOWN_STEPS)] if plan.disk_moves.waves else []
    return page(
        f"Evenkeel: plan, {safe}, {counted(plan.copies, 'copy', 'copies')}",
        _lead(plan, checked),
        [
            Section("timeline", "When what is copied", _timeline(plan)),
            Section("safety", "How safe", [*_safety(plan, checked)]),
            Section("throttle", "What it is held to", [_throttle(plan)]),
            Section("blocked", "What is left where it is", blocked),
            Section("rows", "Row by row", rows),
        ],
    )


def steps_table(plan: Plan) -> Table:
    """Return the table for files: steps in their order, then moves inside nodes and their waves."""
    names = ("step", "wave", "kind", "partition", "slot", "from", "to", "bytes", "start", "finish")
    numbers = wave_numbers(plan).tolist()
    rows = zip(plan.rows(), numbers, strict=True)
    steps = (row._replace(wave=number) for row, number in rows)
    inside = ((None, row.wave + 1, "disk", *row[1:], None, None) for row in disk_rows_of(plan))
    return Table.of(names, [*steps, *inside])


def summary(plan: Plan) -> str:
    """Return how much is moved, how long it takes and would at least, and what the end breaks."""
    return " ".join(filter(None, [_amounts(plan), plan.inside])) + losses_in_words(plan)


def _amounts(plan: Plan) -> str:
    if len(plan) == 0:
        if plan.astray:
            return "There are no steps."
        none = "" if len(plan.disk_moves) else "Nothing is to be done."
        return "No step can be made." if plan.blocked else none
    cluster = plan.cluster
    size = ""
    if cluster.bytes_dimension >= 0:
        size = f" ({quantity(plan.bytes)} of {cluster.dimensions[cluster.bytes_dimension]})"
    waves = counted(len(plan.waves), "wave")
    copies = counted(plan.copies, "copy", "copies")
    total = sum(seconds_by_wave(plan))
    lasts = duration(plan.makespan)
    if plan.throttle.paces and len(plan.waves) > 1 and duration(total) != lasts:
        lasts += f" if each step begins as soon as it may, {duration(total)} at least wave by wave"
    least = f"no order takes less than {duration(plan.bound.seconds)} ({plan.bound.term})"
    if not plan.throttle.paces:
        least += "; a copy counts as 1 s"
    return f"{copies}{size} in {counted(len(plan), 'step')}, {waves}: {lasts}; {least}."


def _clock(seconds: float) -> str:
    return "0 s" if seconds == 0.0 else duration(seconds)


def _steps(plan: Plan, most: int, time: Any) -> Table:
    """Lay out the first steps."""
    rows = plan.rows_of(np.arange(min(len(plan), most)))
    numbers = wave_numbers(plan)
    sized = plan.cluster.bytes_dimension >= 0
    columns = [
        Column("step", [one.step for one in rows], str),
        Column("wave", [int(numbers[one.step]) for one in rows], str),
        Column("what", [one.kind for one in rows], short=" "),
        Column("partition", [one.partition for one in rows]),
        Column("slot", [one.slot for one in rows], str),
        Column("from", [one.source for one in rows]),
        Column("to", [one.target for one in rows]),
        *([Column("size", [one.bytes for one in rows], amount)] if sized else []),
        Column("start", [one.start for one in rows], time),
        Column("finish", [one.finish for one in rows], time),
    ]
    return Table(
        columns, "In their order.", f"Steps ({len(plan):,})", len(plan) - len(rows), "steps"
    )


def _waves(plan: Plan, most: int) -> Table:
    """Lay out how much each wave copies and how long it lasts."""
    steps, shown = plan.steps, plan.waves[:most]
    copied = steps.kind == StepKind.COPY
    size = steps.size if plan.bytes > 0.0 else copied.astype(np.float64)
    totals = [float(size[wave].sum()) for wave in shown]
    largest = max((float(size[wave].sum()) for wave in plan.waves), default=0.0) or 1.0
    sized = plan.cluster.bytes_dimension
    unit = shortened(plan.cluster.dimensions[sized]) if sized >= 0 else "size"
    return Table(
        [
            Column("wave", range(1, len(shown) + 1), str),
            Column("steps", [len(wave) for wave in shown], "{:,}".format),
            Column("copies", [int(copied[wave].sum()) for wave in shown], "{:,}".format),
            Column("start", [float(steps.start[wave].min()) for wave in shown], _clock),
            Column("finish", [float(steps.finish[wave].max()) for wave in shown], _clock),
            Column(
                unit, [float(steps.size[wave].sum()) for wave in shown], amount,
                bars=[total / largest for total in totals],
            ),
        ],
        "Strip: its share of what the largest wave copies.", f"Waves ({len(plan.waves):,})",
        len(plan.waves) - len(shown), "waves",
    )  # fmt: skip


def _inside(plan: Plan, most: int) -> Table:
    """Lay out the first moves between disks of nodes."""
    rows = disk_rows_of(plan)
    shown = rows[:most]
    title = f"Moves inside nodes ({len(rows):,})"
    return Table(
        [
            Column("inside nodes", [one.partition for one in shown]),
            Column("slot", [one.slot for one in shown], str),
            Column("wave", [one.wave + 1 for one in shown], str),
            Column("from", [one.source for one in shown]),
            Column("to", [one.target for one in shown]),
            Column("size", [one.bytes for one in shown], amount),
        ],
        "In waves of their own.", title, len(rows) - len(shown), "moves",
    )  # fmt: skip


def _breaches(certificate: Certificate, most: int) -> Table:
    """Lay out what is broken, the first first."""
    shown = certificate.breaches[:most]
    return Table(
        [
            Column("broken", [one.kind for one in shown]),
            Column("step", [one.step for one in shown], str),
            Column("at", [one.time for one in shown], duration),
            Column("where", [one.where for one in shown], letters=96),
            Column("by", [one.amount for one in shown], quantity),
        ],
        "In the order of time.", f"Breaches ({len(certificate.breaches):,})",
        len(certificate.breaches) - len(shown), "breaches",
    )  # fmt: skip


def _tightest(plan: Plan, certificate: Certificate, most: int) -> Table:
    """Lay out where the plan comes closest to each limit, the closest first."""
    # some limits are the least that is allowed, and amounts are of many sizes
    shown = sorted(
        certificate.tightest, key=lambda one: abs(one.limit - one.value) / max(abs(one.limit), 1.0)
    )[:most]
    return Table(
        [
            Column("closest to its limit", [f"{one.kind} {one.of}".strip() for one in shown]),
            Column("reached", [one.value for one in shown], quantity),
            Column("limit", [one.limit for one in shown], quantity),
            Column("at", [one.time for one in shown], _clock),
            Column("where", [one.where + _loosened(plan, one) for one in shown], letters=0,
                   faint=True),
            Column("counts", [BREACHES[one.kind] for one in shown], letters=0, spare=True),
        ],
        "Where the plan comes closest to each limit.",
    )  # fmt: skip


def _loosened(plan: Plan, one: Tightest) -> str:
    """Say where the limit is what a node carries at an end of the plan, above its capacity."""
    cluster = plan.cluster
    name = one.where.removeprefix("node ").removesuffix(f", {one.of}")
    if one.kind != "capacity" or one.of not in cluster.dimensions or name == one.where:
        return ""
    of = cluster.dimensions.index(one.of)
    found = [n for n, node in enumerate(cluster.nodes.names) if node == name]
    own = [float(cluster.nodes.capacity[n, of]) for n in found]
    return "".join(
        f": over-full at an end, its capacity is {quantity(c)}" for c in own if c < one.limit
    )


def _blocked(plan: Plan, most: int) -> Table:
    """Lay out the moves that are left out, with what each lacks."""
    shown = plan.blocked[:most]
    lacks = [one.lacks if one.circle < 0 else f"{one.lacks} (circle {one.circle})" for one in shown]
    title = f"blocked ({len(plan.blocked):,})"
    return Table(
        [
            Column(title, [one.partition for one in shown]),
            Column("slot", [one.slot for one in shown], str),
            Column("change", [one.change for one in shown], short=" "),
            Column("from", [one.source for one in shown]),
            Column("to", [one.target for one in shown]),
            Column("lacks", lacks, letters=120),
        ],
        "Moves with the same circle wait for one another.", title.capitalize(),
        len(plan.blocked) - len(shown), "moves",
    )  # fmt: skip


def _lead(plan: Plan, certificate: Certificate) -> list[str | Table]:
    """Write the verdict in a sentence, and the figures that people look for first."""
    sentence = summary(plan)
    if plan.blocked:
        sentence += f" {counted(len(plan.blocked), 'move')} blocked: no order of theirs is safe."
    first = certificate.breach
    return [
        verdict("Evenkeel: plan,", "✓ safe at every step" if certificate.ok else "✗ not safe"),
        sentence,
        *([f"Broken first: {first}."] if first is not None else []),
        cards(_figures(plan, certificate)),
        dim(f"{held_to(plan)}."),
    ]


def _figures(plan: Plan, certificate: Certificate) -> list[tuple[str, str, str]]:
    """Return the figures that stand out, with what to compare each with."""
    cluster, at_least = plan.cluster, plan.bound
    slower = plan.makespan / at_least.seconds if at_least.seconds > 0.0 else 1.0
    found = [
        ("copies", f"{plan.copies:,}", f"{len(plan):,} steps"),
        ("waves", f"{len(plan.waves):,}", "handed out one after the other"),
        ("time", duration(plan.makespan), f"at least {duration(at_least.seconds)}, "
         f"{slower:.2f} times that"),
        ("breaches", f"{len(certificate.breaches):,}", "found by the replay of every instant"),
        ("blocked", f"{len(plan.blocked) + len(plan.disk_moves.blocked):,}",
         "moves that are left out"),
    ]  # fmt: skip
    if moved := len(plan.disk_moves.done):
        waves = counted(plan.disk_moves.waves, "wave")
        found.append(("moves inside nodes", f"{moved:,}", f"in {waves} of their own"))
    if cluster.bytes_dimension >= 0:
        unit = shortened(cluster.dimensions[cluster.bytes_dimension])
        found.insert(1, ("data copied", data(plan.bytes, unit), unit))
    if plan.short_for > 0.0:
        ever = duration(plan.short_for) if np.isfinite(plan.short_for) else "never"
        found.append(("all replicas live", ever, "after the beginning"))
    if plan.cancelled:
        found.append(("cancelled", f"{len(plan.cancelled):,}", "copies in flight to drop first"))
    return found


def _safety(plan: Plan, certificate: Certificate) -> Iterator[str | Table]:
    """Write what is broken, and where the plan comes closest to each limit."""
    if certificate.ok:
        caption = (
            f"Every state between {certificate.steps:,} steps was replayed; none breaks a rule"
        )
        yield f"{caption} that the beginning or the target keeps."
    else:
        kinds = certificate.counts
        yield Table(
            [
                Column("rule", [*kinds]),
                Column("count", [*kinds.values()], "{:,}".format),
                Column("meaning", [BREACHES[kind] for kind in kinds], letters=0),
            ],
            "How often each kind is broken.",
        )
        yield _breaches(certificate, SHOWN_BLOCKED)
    if certificate.tightest:
        yield subheading("Closest to breaking")
        yield _tightest(plan, certificate, SHOWN_POINTS)


def _throttle(plan: Plan) -> str | Table:
    """Lay out what may be under way at once."""
    throttle = plan.throttle
    rows = [
        (name.replace("_", " "), quantity(float(value)))
        for name in COUNTS
        if (value := getattr(throttle, name)) is not None
    ]
    rows += [
        (name.replace("_", " "), f"{amount(float(value))} per second")
        for name in RATES
        if (value := getattr(throttle, name)) is not None
    ]
    for name in BY_TIER:
        rows += [
            (f"{name.replace('_', ' ')} of a {tier}", amount(float(most)))
            for tier, most in getattr(throttle, name).items()
        ]
    if throttle.recovery_first:
        rows.append(("recovery first", "yes"))
    if throttle.windows is not None:
        rows.append(("windows of time", shortened(str(throttle.windows), 96)))
    if not rows:
        return f"Protocol {plan.protocol.name}; nothing limits how much is under way."
    caption = f"Protocol {plan.protocol.name}; at most so much is under way at a time."
    names, figures = zip(*rows, strict=True)
    return Table([Column("throttle", names), Column("at most", figures, str)], caption)


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


def _timeline(plan: Plan) -> list[str]:
    """Draw how a plan goes from its beginning to its end."""
    copies = Copies.of(plan)
    if not (len(copies.start) and copies.until > 0.0):
        return []
    across = [_clock(share * copies.until) for share in (0.0, 0.5, 1.0)]
    return [_whole(plan, copies, across), *_lanes(plan, copies, across), *_levelled(plan)]


def _whole(plan: Plan, copies: Copies, across: list[str]) -> Raw:
    """Draw the copies under way of the whole cluster, and the partitions short of replicas."""
    under_way = copies.under_way(np.arange(len(copies.start)))
    most = float(under_way.max())
    axis, bound = axis_of_counts(most), plan.bound.seconds
    drawn = area(under_way, axis) + uprights([round(ACROSS * min(bound / copies.until, 1.0))])
    caption = f"at most {amount(most)} at a time, over {duration(copies.until)}"
    panels = [panel("copies", "copies under way", caption, axis, drawn)]
    short = short_until(plan)
    if (short > 0.0).any():
        ends = np.sort(short)
        starts = np.linspace(0.0, copies.until, STRETCHES, endpoint=False)
        left = (len(ends) - np.searchsorted(ends, starts, side="right")).astype(np.float64)
        counts = axis_of_counts(float(left[0]))
        last = duration(plan.short_for) if np.isfinite(plan.short_for) else "never"
        caption = f"{counted(int(left[0]), 'partition')} at first, none: {last}"
        drawn = area(left, counts, "was")
        panels.append(panel("short", "partitions short of live replicas", caption, counts, drawn))
    caption = (
        f"Time from the beginning, {duration(copies.until)} in all; dotted: no order of the same "
        f"copies ends before {duration(bound)}, by {plan.bound.term}."
    )
    caption += (
        "" if plan.throttle.paces else " No bandwidth is given, so that a copy counts as 1 s."
    )
    return figure(panels, across, caption)


def _lanes(plan: Plan, copies: Copies, across: list[str]) -> Iterator[str]:
    """Draw a row for each domain of the widest tier, and for the nodes that receive for longest."""
    cluster = plan.cluster
    lasting = copies.finish - copies.start
    groups = []
    if len(cluster.topology):
        names, domain = widest_domains(cluster)
        tier = shortened(cluster.topology.tiers[0])
        groups.append((tier, names, domain[copies.target], SHOWN_DOMAINS))
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
        top = max(float(row.max()) for row in rows) or 1.0
        drawn = [
            (shortened(known[g]), _describe_lane(shortened(known[g]), int(count[g]), row), row)
            for g, row in zip(shown, rows, strict=True)
        ]
        caption = f"Copies into each {tier}, those first that receive for longest. A row of full "
        caption += f"height: {amount(top)} copies under way at a time, on the mean of "
        caption += f"{duration(copies.until / STRETCHES)}."
        yield subheading(f"Into each {tier}")
        yield lanes(drawn, top, across, caption)
        if len(receiving) > most_rows:
            yield dim(f"{len(receiving) - most_rows:,} more {tier}s are left out.")


def _describe_lane(name: str, count: int, row: NDArray[np.float64]) -> str:
    busy = np.flatnonzero(row > 0.0)
    share = f", the last at {(busy[-1] + 1) / len(row):.0%} of the time" if len(busy) else ""
    return f"{name}: {counted(count, 'copy', 'copies')}{share}"


def _levelled(plan: Plan) -> list[str]:
    """Draw how far above the mean nodes are, against what is copied."""
    curve = plan.curve()
    total = float(curve.bytes[-1])
    if not total > 0.0:
        return []
    at = np.linspace(0.0, total, STRETCHES, endpoint=False)
    over = 100.0 * curve.over[np.searchsorted(curve.bytes, at, side="right") - 1]
    axis = axis_of(float(over.max(initial=0.0)))
    cluster = plan.cluster
    sized = cluster.bytes_dimension >= 0
    unit = shortened(cluster.dimensions[cluster.bytes_dimension]) if sized else "copies"
    ends = [f"0 of {unit}", amount(total / 2.0), f"{amount(total)} of {unit}"]
    caption = f"from {100.0 * curve.over[0]:,.4g} to {100.0 * curve.over[-1]:,.4g}"
    title = "above the mean, % of capacity, added up over nodes and dimensions"
    summary_text = (
        "What is copied first should level most: the sooner it falls, the better the order."
    )
    return [
        subheading("How level on the way"),
        figure([panel("level", title, caption, axis, area(over, axis))], ends, summary_text),
    ]
