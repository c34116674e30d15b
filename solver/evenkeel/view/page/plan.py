"""The page of a plan: whether it is safe, how long it takes, when what is copied, what is left."""

import numpy as np

from evenkeel.model.runtime.figures import amount, data, duration, quantity
from evenkeel.model.runtime.printable import counted
from evenkeel.planning.account.by_waves import wave_numbers
from evenkeel.planning.account.held_to import held_to
from evenkeel.planning.plan import Plan
from evenkeel.planning.replay import BREACHES, Certificate
from evenkeel.planning.steps import StepKind
from evenkeel.planning.throttle import BY_TIER, COUNTS, RATES, RATES_BY_TIER
from evenkeel.view.markup import Raw, shortened, text
from evenkeel.view.page.charts import strips
from evenkeel.view.page.document import (
    Section,
    cards,
    document,
    left_out,
    paragraph,
    searched,
    table,
)
from evenkeel.view.page.timeline import timeline_parts
from evenkeel.view.plan_report import summary

SHOWN_STEPS, SHOWN_WAVES, SHOWN_BLOCKED, SHOWN_POINTS = 500, 200, 200, 40


def plan_page(plan: Plan, certificate: Certificate | None = None) -> str:
    """Write what a plan does as a page of HTML; it is checked unless its certificate is at hand.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> page = plan_page(ek.solve(c, goals=ek.Goals(level=0.0)).plan())
    >>> page.startswith("<!DOCTYPE html>"), "2 copies" in page
    (True, True)
    """
    checked = plan.check() if certificate is None else certificate
    safe = "safe" if checked.ok else "not safe"
    return document(
        f"Evenkeel: plan, {safe}, {_copies(plan)}",
        _lead(plan, checked),
        [
            Section("timeline", "When what is copied", timeline_parts(plan)),
            Section("safety", "How safe", [*_breaches(checked), *_tightest(checked)]),
            Section("throttle", "What it is held to", _throttle(plan)),
            Section("blocked", "What is left where it is", _blocked(plan)),
            Section("rows", "Row by row", [*_waves(plan), *_steps(plan)]),
        ],
    )


def _copies(plan: Plan) -> str:
    return "1 copy" if plan.copies == 1 else f"{plan.copies:,} copies"


def _lead(plan: Plan, certificate: Certificate) -> list[str]:
    """Write the verdict in a sentence, and the figures that people look for first."""
    said = "✓ safe at every step" if certificate.ok else "✗ not safe"
    sentence = summary(plan)
    if plan.blocked:
        sentence += f" {counted(len(plan.blocked), 'move')} blocked: no order of theirs is safe."
    first = certificate.breach
    return [
        f'<h1>Evenkeel: plan, <span class="status">{said}</span></h1>',
        paragraph(sentence),
        *([paragraph(f"Broken first: {first}.")] if first is not None else []),
        cards(_figures(plan, certificate)),
        paragraph(f"{held_to(plan)}.", "dim"),
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
        ("blocked", f"{len(plan.blocked):,}", "moves that are left out"),
    ]  # fmt: skip
    if cluster.bytes_dimension >= 0:
        unit = shortened(cluster.dimensions[cluster.bytes_dimension])
        found.insert(1, ("data copied", data(plan.bytes, unit), unit))
    if plan.short_for > 0.0:
        ever = duration(plan.short_for) if np.isfinite(plan.short_for) else "never"
        found.append(("all replicas live", ever, "after the beginning"))
    if plan.cancelled:
        found.append(("cancelled", f"{len(plan.cancelled):,}", "copies in flight to drop first"))
    return found


def _breaches(certificate: Certificate) -> list[str]:
    """Lay out what is broken, the first first."""
    if certificate.ok:
        said = f"Every state between {certificate.steps:,} steps was replayed; none breaks a rule"
        return [paragraph(f"{said} that the beginning or the target keeps.")]
    rows = [
        (
            one.kind,
            f"{one.step}",
            duration(one.time),
            shortened(one.where, 96),
            quantity(one.amount),
        )
        for one in certificate.breaches[:SHOWN_BLOCKED]
    ]
    heads = ("broken", "step", "at", "where", "by")
    kinds = [(kind, f"{n:,}", BREACHES[kind]) for kind, n in certificate.counts.items()]
    note = left_out(len(certificate.breaches) - len(rows), "breaches")
    shown = table("In the order of time.", heads, rows, (3,))
    return [
        table("How often each kind is broken.", ("rule", "count", "meaning"), kinds, (2,)),
        searched(f"Breaches ({len(certificate.breaches):,})", shown, note=note),
    ]


def _tightest(certificate: Certificate) -> list[str]:
    """Lay out where the plan comes closest to each limit, the closest first."""
    if not certificate.tightest:
        return []
    closest = sorted(certificate.tightest, key=lambda one: one.limit - one.value)
    rows = []
    for one in closest[:SHOWN_POINTS]:
        most = max(one.value, one.limit)
        filled = one.value / most if most > 0.0 and np.isfinite(most) else 0.0
        strip = strips([("now", filled)])
        rows.append(
            (
                shortened(f"{one.kind} {one.of}".strip()),
                Raw(f"{text(quantity(one.value))}{strip}"),
                quantity(one.limit), _time(one.time), shortened(one.where, 96),
                BREACHES[one.kind],
            )
        )  # fmt: skip
    heads = ("limit", "reached", "limit is", "at", "where", "counts")
    said = "Where the plan comes closest to each limit. Strip: what is reached of the limit."
    return [
        "<h3>Closest to breaking</h3>",
        table(said, heads, rows, (4, 5)),
    ]


def _throttle(plan: Plan) -> list[str]:
    """Lay out what may be under way at once."""
    throttle = plan.throttle
    rows = [
        (name.replace("_", " "), quantity(float(value)))
        for name in (*COUNTS, "group_copies")
        if (value := getattr(throttle, name)) is not None
    ]
    rows += [
        (name.replace("_", " "), f"{amount(float(value))} per second")
        for name in RATES
        if (value := getattr(throttle, name)) is not None
    ]
    for name in (*BY_TIER, *RATES_BY_TIER):
        each = " per second" if name in RATES_BY_TIER else ""
        rows += [
            (shortened(f"{name.replace('_', ' ')} of a {tier}"), f"{amount(float(most))}{each}")
            for tier, most in getattr(throttle, name).items()
        ]
    if throttle.recovery_first:
        rows.append(("recovery first", "yes"))
    if throttle.windows is not None:
        rows.append(("windows of time", shortened(str(throttle.windows), 96)))
    if not rows:
        return [paragraph(f"Protocol {plan.protocol.name}; nothing limits how much is under way.")]
    said = f"Protocol {plan.protocol.name}; at most so much is under way at a time."
    return [table(said, ("throttle", "at most"), rows, ())]


def _blocked(plan: Plan) -> list[str]:
    """Lay out the moves that are left out, with what each lacks."""
    if not plan.blocked:
        return []
    rows = [
        (
            shortened(one.partition), f"{one.slot}", _node(one.source), _node(one.target),
            shortened(one.lacks, 120), "" if one.circle < 0 else f"{one.circle}",
        )
        for one in plan.blocked[:SHOWN_BLOCKED]
    ]  # fmt: skip
    heads = ("partition", "slot", "from", "to", "lacks", "circle")
    note = left_out(len(plan.blocked) - len(rows), "moves")
    said = "Moves with the same circle wait for one another."
    shown = searched(
        f"Blocked ({len(plan.blocked):,})", table(said, heads, rows, (2, 3, 4)), note=note
    )
    return [paragraph("No order of these moves is safe at every step."), shown]


def _waves(plan: Plan) -> list[str]:
    """Lay out how much each wave copies and how long it lasts."""
    if not len(plan):
        return []
    steps = plan.steps
    copied = steps.kind == StepKind.COPY
    size = steps.size if plan.bytes > 0.0 else copied.astype(np.float64)
    shown = plan.waves[:SHOWN_WAVES]
    totals = [float(size[wave].sum()) for wave in shown]
    most = max(totals, default=0.0) or 1.0
    rows = [
        (
            f"{i + 1}", f"{len(wave):,}",
            Raw(f"{int(copied[wave].sum()):,}{strips([('now', totals[i] / most)])}"),
            amount(float(steps.size[wave].sum())), duration(float(steps.start[wave].min())),
            duration(float(steps.finish[wave].max())),
        )
        for i, wave in enumerate(shown)
    ]  # fmt: skip
    sized = plan.cluster.bytes_dimension
    unit = shortened(plan.cluster.dimensions[sized]) if sized >= 0 else "size"
    heads = ("wave", "steps", "copies", unit, "start", "finish")
    note = left_out(len(plan.waves) - len(rows), "waves")
    said = "Strip: its share of what the largest wave copies."
    return [searched(f"Waves ({len(plan.waves):,})", table(said, heads, rows, ()), note=note)]


def _steps(plan: Plan) -> list[str]:
    """Lay out the first steps."""
    if not len(plan):
        return []
    numbers = wave_numbers(plan)
    rows = [
        (
            f"{one.step}", f"{numbers[one.step]}", one.kind, shortened(one.partition),
            f"{one.slot}", _node(one.source), _node(one.target), amount(one.bytes),
            _time(one.start), _time(one.finish),
        )
        for one in plan.rows_of(np.arange(min(len(plan), SHOWN_STEPS)))
    ]  # fmt: skip
    heads = ("step", "wave", "what", "partition", "slot", "from", "to", "size", "start", "finish")
    note = left_out(len(plan) - len(rows), "steps")
    shown = table("In their order.", heads, rows, (2, 3, 5, 6))
    return [searched(f"Steps ({len(plan):,})", shown, note=note)]


def _node(name: str | None) -> str:
    return "" if name is None else shortened(name)


def _time(seconds: float) -> str:
    return "0 s" if seconds == 0.0 else duration(seconds)
