"""The report of a plan, for a person to read: what happens when, how safe it is, what cannot."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.model.runtime.figures import duration, quantity
from evenkeel.model.runtime.printable import counted
from evenkeel.planning.account.broken import told_losses
from evenkeel.planning.account.by_waves import seconds_by_wave, wave_numbers
from evenkeel.planning.account.held_to import held_to
from evenkeel.planning.account.rows import PlanRow
from evenkeel.planning.plan import Plan
from evenkeel.planning.replay import BREACHES, Certificate
from evenkeel.planning.replay.certificate import Tightest
from evenkeel.planning.steps import StepKind
from evenkeel.view.bars import bar
from evenkeel.view.layout import (
    NARROWEST,
    SHOWN_ROWS,
    WIDEST_BAR,
    WIDTH,
    escaped,
    marked_line,
    plain_table,
    rendered,
    stranded_lines,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

FEW_STEPS = 24
"""Steps up to which a plan is told step by step, not wave by wave."""

BESIDE_BARS = 66
"""Characters of the table of waves beside its bars."""


def report_plan(
    plan: Plan,
    certificate: Certificate,
    *,
    beyond: Sequence[str] = (),
    width: int = WIDTH,
    styled: bool = False,
) -> str:
    """Report a plan, what its check found, and the limits that it is ``beyond``.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> plan = ek.solve(c, goals=ek.Goals(level=0.0)).plan()
    >>> print(report_plan(plan, plan.check()))
    Evenkeel · plan · ✓ safe at every step...
    """
    width = max(width, NARROWEST)
    sign = "[green]✓ safe at every step[/]" if certificate.ok else "[red]✗ not safe[/]"
    if beyond:
        safe = ", but safe at every step" if certificate.ok else ", and not safe"
        sign = f"[red]✗ exceeds its limits: {escaped(', '.join(beyond))}[/]{safe}"
    blocked = f" · [yellow]{counted(len(plan.blocked), 'move')} blocked[/]" if plan.blocked else ""
    if plan.astray:
        blocked = f" · [red]{counted(plan.astray, 'partition')} short of the target[/]"
    if plan.regressions:
        blocked += " · [red]its end breaks rules[/]"
    parts = [
        marked_line(f"[bold]Evenkeel[/] · plan · [bold]{sign}[/]{blocked}"),
        marked_line(escaped(summary(plan))),
        marked_line(f"[dim]{escaped(held_to(plan))}[/]"),
        *stranded_lines(plan.cluster),
    ]
    if len(plan):
        parts.append(steps_table(plan) if len(plan) <= FEW_STEPS else _waves(plan, width))
    parts += _breaches(certificate) if certificate.breaches else _tightest(plan, certificate)
    parts += _blocked(plan)
    return rendered(parts, width, styled)


def summary(plan: Plan) -> str:
    """Return how much is copied, how long it takes and would at least, and what the end breaks."""
    return _amounts(plan) + told_losses(plan)


def _amounts(plan: Plan) -> str:
    if len(plan) == 0:
        if plan.astray:
            return "There are no steps."
        return "No step can be made." if plan.blocked else "Nothing is to be done."
    cluster = plan.cluster
    amount = ""
    if cluster.bytes_dimension >= 0:
        amount = f" ({quantity(plan.bytes)} of {cluster.dimensions[cluster.bytes_dimension]})"
    waves = counted(len(plan.waves), "wave")
    copies = counted(plan.copies, "copy", "copies")
    total = sum(seconds_by_wave(plan))
    lasts = duration(plan.makespan)
    if plan.throttle.paces and len(plan.waves) > 1 and duration(total) != lasts:
        lasts += f" if each step begins as soon as it may, {duration(total)} at least wave by wave"
    least = f"no order takes less than {duration(plan.bound.seconds)} ({plan.bound.term})"
    if not plan.throttle.paces:
        least += "; a copy counts as 1 s"
    return f"{copies}{amount} in {counted(len(plan), 'step')}, {waves}: {lasts}; {least}."


def steps_table(plan: Plan) -> "Table":
    """Lay out every step."""
    table = plain_table()
    for name in ("step", "wave", "", "partition", "slot", "from", "to", "start", "finish"):
        figure = name in ("step", "wave", "slot", "start", "finish")
        table.add_column(name, justify="right" if figure else "left")
    for row, number in zip(plan.rows(), wave_numbers(plan).tolist(), strict=True):
        table.add_row(*_cells(row, number))
    return table


def _cells(row: PlanRow, wave: int) -> tuple[str, ...]:
    return (
        f"{row.step}", f"{wave}", row.kind, escaped(row.partition), f"{row.slot}",
        escaped(row.source or ""), escaped(row.target or ""),
        quantity(row.start), quantity(row.finish),
    )  # fmt: skip


def _waves(plan: Plan, width: int) -> "Table":
    """Lay out how much each wave copies and how long it lasts."""
    steps = plan.steps
    table = plain_table()
    for name in ("wave", "steps", "copies", "bytes", "start", "finish"):
        table.add_column(name, justify="right")
    table.add_column("share of what is copied", no_wrap=True)
    chart = max(10, min(width - BESIDE_BARS, WIDEST_BAR))
    copied = steps.kind == StepKind.COPY
    size = steps.size if plan.bytes > 0.0 else copied.astype(np.float64)
    totals = [float(size[wave].sum()) for wave in plan.waves]
    for i, wave in enumerate(plan.waves[:SHOWN_ROWS]):
        table.add_row(
            f"{i + 1}", f"{len(wave):,}", f"{int(copied[wave].sum()):,}",
            quantity(float(steps.size[wave].sum())), duration(float(steps.start[wave].min())),
            duration(float(steps.finish[wave].max())),
            f"[cyan]{bar(totals[i], max(totals), chart)}[/]",
        )  # fmt: skip
    more = len(plan.waves) - SHOWN_ROWS
    if more > 0:
        table.add_row("[dim]...[/]", f"[dim]and {more:,} more[/]", "", "", "", "", "")
    return table


def _tightest(plan: Plan, certificate: Certificate) -> list["RenderableType"]:
    """Lay out where the plan comes closest to each limit."""
    if not certificate.tightest:
        return []
    table = plain_table()
    for name in ("closest to its limit", "reached", "limit", "at", "where"):
        table.add_column(name, justify="right" if name in ("reached", "limit", "at") else "left")
    # some limits are the least that is allowed, and amounts are of many sizes
    closest = sorted(
        certificate.tightest, key=lambda one: abs(one.limit - one.value) / max(abs(one.limit), 1.0)
    )
    for one in closest[:SHOWN_ROWS]:
        table.add_row(
            escaped(f"{one.kind} {one.of}".strip()), quantity(one.value), quantity(one.limit),
            duration(one.time), f"[dim]{escaped(one.where + _loosened(plan, one))}[/]",
        )  # fmt: skip
    return [table]


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


def _breaches(certificate: Certificate) -> list["RenderableType"]:
    """Lay out what the plan breaks first, and how often each kind."""
    table = plain_table()
    for name in ("broken", "step", "at", "where", "by"):
        table.add_column(name, justify="right" if name in ("step", "at", "by") else "left")
    for one in certificate.breaches[:SHOWN_ROWS]:
        table.add_row(
            one.kind, f"{one.step}", duration(one.time), escaped(one.where), quantity(one.amount)
        )
    more = len(certificate.breaches) - SHOWN_ROWS
    if more > 0:
        table.add_row(f"[dim]... and {more:,} more[/]", "", "", "", "")
    told = (f"{kind} {n:,}: {BREACHES[kind]}" for kind, n in certificate.counts.items())
    return [table, *(marked_line(f"[dim]{escaped(one)}[/]") for one in told)]


def _blocked(plan: Plan) -> list["RenderableType"]:
    """List the moves that are left out, with what each lacks."""
    if not plan.blocked:
        return []
    table = plain_table()
    for name in (f"blocked ({len(plan.blocked):,})", "slot", "", "from", "to", "lacks"):
        table.add_column(name, justify="right" if name == "slot" else "left")
    for one in plan.blocked[:SHOWN_ROWS]:
        circle = "" if one.circle < 0 else f" [dim](circle {one.circle})[/]"
        table.add_row(
            escaped(one.partition), f"{one.slot}", one.change, escaped(one.source or ""),
            escaped(one.target or ""), f"{escaped(one.lacks)}{circle}",
        )  # fmt: skip
    more = len(plan.blocked) - SHOWN_ROWS
    if more > 0:
        table.add_row(f"[dim]... and {more:,} more[/]", "", "", "", "", "")
    return [table]
