"""The report of a result, for a person to read: in colour, in grey, or as plain text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.measure.audit import Audit
from evenkeel.measure.audit.violations import KINDS, Violation, Violations
from evenkeel.measure.levelness import Levelness, below_mean_said
from evenkeel.model.cluster import Cluster
from evenkeel.model.runtime.figures import data, duration, number, quantity
from evenkeel.model.runtime.printable import counted, some_of
from evenkeel.result_rows import down_nodes, held_back, lost_said, unplaced_of, waiting_replicas
from evenkeel.view.bars import axis, bar, histogram
from evenkeel.view.layout import (
    NARROWEST,
    SHOWN_ROWS,
    WIDEST_BAR,
    WIDTH,
    escaped,
    least_said,
    marked_line,
    plain_table,
    rendered,
    stranded_lines,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

BESIDE_CHART = 61
"""Characters of the table of dimensions beside its histogram and its names."""

LONGEST_NAME = 24

NAMED_NODES = 5
"""Nodes that are named where they are not alive; the rest is counted."""

BESIDE_BARS = 76
"""Characters of the other tables beside their bars."""

STATUS_STYLE = {
    "optimal": "green", "feasible": "green", "missed": "yellow", "partial": "yellow",
    "infeasible": "red",
}  # fmt: skip


def report(result: Any, *, width: int = WIDTH, styled: bool = False) -> str:
    """Report what a solve came to.

    Examples
    --------
    >>> import evenkeel as ek
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[10.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6
    ... )
    >>> print(report(ek.solve(cluster, goals=ek.Goals(level=0.0))))
    Evenkeel · balance · ✓ optimal...
    """
    width = max(width, NARROWEST)
    return rendered(_result_parts(result, width), width, styled)


def report_state(
    cluster: Cluster,
    audited: Audit,
    level: Levelness,
    *,
    width: int = WIDTH,
    styled: bool = False,
) -> str:
    """Report how a placement is as it stands: what it breaks, and how level it is.

    Examples
    --------
    >>> from evenkeel.measure.audit import audit
    >>> from evenkeel.measure.levelness import levelness
    >>> c = Cluster.from_arrays(capacity=[[1.0], [9.0]], load=[[2.0]] * 2, placement=[[0], [1]])
    >>> text = report_state(c, audit(c, c.placement), levelness(c, c.placement))
    >>> "nodes over capacity" in text
    True
    """
    width = max(width, NARROWEST)
    verdict = "no hard rule is broken" if audited.ok else counted(audited.hard, "hard violation")
    waiting = waiting_replicas(cluster, cluster.placement)
    if audited.ok and waiting:
        verdict += f", but nodes that are down hold {counted(waiting, 'replica')}"
    sign = "[green]✓[/]" if audited.ok and not waiting else "[red]✗[/]"
    parts = [
        marked_line(f"{sign} [bold]{verdict}[/]"),
        marked_line(f"[dim]{_size(cluster, level)}[/]"),
        *_not_alive(cluster),
        *(marked_line(f"[yellow]! {escaped(text)}[/]") for text in [lost_said(cluster)] if text),
        *stranded_lines(cluster),
        *_dimensions(cluster, [("", level)], width),
        *_broken_rules([audited]),
        *_worst_rows(audited),
    ]
    return rendered(parts, width, styled)


def _result_parts(result: Any, width: int) -> list["RenderableType"]:
    """Put the sections of a result's report together."""
    cluster = result.cluster
    style = STATUS_STYLE[result.status]
    sign = "✓" if result.success else "✗"
    states = [("before", result.levelness_before), ("after", result.levelness)]
    return [
        marked_line(
            f"[bold]Evenkeel[/] · {result.method} · [{style} bold]{sign} {result.status}[/]"
        ),
        marked_line(f"{escaped(result.message)} [dim]Stopped by: {result.stop_reason}.[/]"),
        marked_line(f"[dim]{_size(cluster, result.levelness)}[/]"),
        *(marked_line(f"[yellow]! {escaped(text)}[/]") for text in [lost_said(cluster)] if text),
        *(marked_line(f"[yellow]! {escaped(warning)}[/]") for warning in result.warnings),
        *_dimensions(cluster, states, width, result),
        *(marked_line(f"[dim]goal: {escaped(text)}[/]") for text in result.targets),
        *_proven(result),
        *_movement(result, width),
        *_broken_rules([result.audit_before, result.audit]),
        *(_worst_rows(result.audit) if result.audit.hard else ()),
        *_unplaced(result),
        *_times(result.timings, width),
    ]


def _size(cluster: Cluster, level: Levelness) -> str:
    wanted = int(cluster.partitions.replicas.sum(dtype=np.int64))
    alive = int(level.alive.sum())
    return (
        f"{len(cluster.nodes):,} nodes, {alive:,} alive · {len(cluster.partitions):,} partitions · "
        f"{wanted:,} replicas wanted"
    )


def _not_alive(cluster: Cluster) -> list["RenderableType"]:
    """Name the nodes that are not alive, those with most replicas first, and what is on them."""
    down = down_nodes(cluster, cluster.placement)
    if not down:
        return []
    named = some_of(down, lambda one: one.node, NAMED_NODES)
    held = sum(one.replicas for one in down)
    waiting = sum(one.replicas for one in down if one.waits)
    waits = f", {waiting:,} of which wait there until it is back" if waiting else ""
    said = f"not alive: {named} · {held:,} replicas on them{waits}"
    return [marked_line(f"[yellow]! {escaped(said)}[/]")]


def _dimensions(
    cluster: Cluster,
    states: Sequence[tuple[str, Levelness]],
    width: int,
    result: Any = None,
) -> Iterator["RenderableType"]:
    """Lay out how full the nodes are: a row per dimension and state, and one for the leaders."""
    floor = None if result is None else result.bounds.ratio
    names = [_short(name) for name in cluster.dimensions]
    longest = max(map(len, [*names, "leaders"]))
    chart = max(10, min(width - BESIDE_CHART - longest, WIDEST_BAR))
    seen = [level.table[level.alive] for _, level in states]
    finite = np.concatenate([table[np.isfinite(table)] for table in seen])
    top = max(1.05, float(finite.max(initial=0.0)) * 1.02)
    table = plain_table()
    bound = () if result is None else (least_said(result),)
    for name in ("", "", "max/mean", *bound, "max", "min", "std", "over"):
        table.add_column(name, justify="right" if name else "left")
    table.add_column(axis(top, chart), no_wrap=True)
    for d, dimension in enumerate(names):
        for i, (label, level) in enumerate(states):
            full = level.table[level.alive, d]
            over = int((full > 1.0 + 1e-9).sum())
            least = () if floor is None else (number(floor[d]) if label == "after" else "",)
            figures = (
                number(level.ratio[d]), *least, _percent(level.most[d]),
                _percent(level.least[d]), _percent(level.deviation[d]),
                f"{over:,}" if over else "-",
            )  # fmt: skip
            drawn = histogram(np.minimum(full, top), top, chart, mark=1.0)
            name = escaped(dimension) if i == 0 else ""
            _state_row(table, name, label, figures, drawn, last=i == len(states) - 1)
    if any(level.leaders.any() for _, level in states):
        for i, (label, level) in enumerate(states):
            led = level.leaders[level.leader_share > 0.0]
            most, least_led = led.max(initial=0), led.min(initial=int(led.max(initial=0)))
            spread = led.std() if len(led) else 0.0
            figures = (
                number(level.leader_ratio), *("",) * len(bound), f"{most:,}", f"{least_led:,}",
                f"{spread:,.1f}", "",
            )  # fmt: skip
            name = "leaders" if i == 0 else ""
            _state_row(table, name, label, figures, "", last=i == len(states) - 1)
    yield table
    if said := below_mean_said(level for _, level in states):
        yield marked_line(f"[dim]{said}[/]")


def _state_row(
    table: "Table", name: str, label: str, figures: Sequence[str], drawn: str, *, last: bool
) -> None:
    """Add one state; what is now stands out from what was."""
    style = "bold" if last else "dim"
    shown = (f"[{style}]{figure}[/]" for figure in figures)
    table.add_row(f"[bold]{name}[/]", f"[{style}]{label}[/]", *shown, f"[cyan]{drawn}[/]")


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _percent(value: float) -> str:
    return f"{100.0 * value:.1f}%" if np.isfinite(value) else "∞" if value > 0 else "-"


def _movement(result: Any, width: int) -> list["RenderableType"]:
    """Lay out the moves against the fewest that are proven to be needed."""
    compared, proven = result.comparison, result.metrics["moves_at_least"]
    mending = result.bounds.moves_feasible
    wanted = max(1, int(result.cluster.partitions.replicas.sum(dtype=np.int64)))
    full = max(compared.moves, proven, mending, compared.forced, 1)
    chart = max(10, min(width - BESIDE_BARS, WIDEST_BAR))
    term = escaped(result.bounds.moves_term)
    to_reach = "at least" if result.audit.ok and result.goals_reached else "to the goals"
    rows = [
        (
            "moves",
            compared.moves,
            f"{compared.moves / wanted:.1%} of the replicas, {_standing(result)}",
        ),
        (to_reach, proven, f"proven by {term}: the goals cannot be reached with fewer"),
        ("to mend", mending, "proven: rules cannot be kept with fewer"),
        ("forced", compared.forced, "had no node, or one that may not keep them"),
    ]
    if result.cost is not None or not result.goals_asked:
        del rows[1]  # no goals to reach
    table = plain_table()
    table.add_column("movement")
    table.add_column("", justify="right")
    table.add_column("")
    table.add_column("")
    for i, (name, count, meaning) in enumerate(rows):
        style = "bold" if i == 0 else "dim"
        drawn = f"[cyan]{bar(count, full, chart)}[/]"
        table.add_row(f"[{style}]{name}[/]", f"[{style}]{count:,}[/]", drawn, f"[dim]{meaning}[/]")
    table.add_row(
        "[bold]leader changes[/]", f"[bold]{compared.leader_changes:,}[/]", "",
        "[dim]they move no data[/]",
    )  # fmt: skip
    if result.cluster.bytes_dimension >= 0:
        name = result.cluster.dimensions[result.cluster.bytes_dimension]
        share = float(compared.load_moved[result.cluster.bytes_dimension])
        table.add_row(
            "data moved", data(compared.bytes_moved, name), "",
            f"[dim]{escaped(name)}, {share:.1%} of all of it[/]",
        )  # fmt: skip
    return [table]


def _standing(result: Any) -> str:
    """Say how the moves of a result stand to the fewest that could reach the goals."""
    if result.cost is not None:
        return "priced, not counted"
    if not result.audit.ok:
        return "rules are still broken"
    if not result.goals_asked:
        return "no goals were asked for"
    if not result.goals_reached:
        return "the goals were not reached"
    return "proven best" if result.gap.moves <= 0 else f"{result.gap.moves:.1%} above the bound"


def _proven(result: Any) -> list["RenderableType"]:
    """Lay out what was reached against what is proven, with the gap and the term that binds."""
    if not result.proven:
        return []
    table = plain_table()
    for name in ("proven", "", "at least", "gap", "by"):
        table.add_column(name, justify="left" if name in ("proven", "by") else "right")
    for one in result.proven[:SHOWN_ROWS]:
        whole = one.name in ("moves", "cost", "leaders", "leader changes")
        value, least = (f"{x:,.0f}" if whole else number(x) for x in (one.value, one.least))
        gap = f"{one.gap:.2%}" if np.isfinite(one.gap) else "unknown"
        table.add_row(
            escaped(one.name), f"[bold]{value}[/]", least, gap, f"[dim]{escaped(one.reason)}[/]"
        )
    if len(result.proven) > SHOWN_ROWS:
        table.add_row(f"[dim]... and {len(result.proven) - SHOWN_ROWS:,} more[/]", "", "", "", "")
    return [table]


def _broken_rules(audits: Sequence[Audit]) -> list["RenderableType"]:
    """Lay out how often each rule is broken; a line says so where none is."""
    broken = [kind for kind in KINDS if any(audit.counts[kind] for audit in audits)]
    if not broken:
        return [marked_line("[bold]rules[/]  none broken")]
    table = plain_table()
    table.add_column("rules")
    for name in ("before", "after")[: len(audits)] if len(audits) > 1 else ("broken",):
        table.add_column(name, justify="right")
    table.add_column("")
    for kind in broken:
        counts = [audit.counts[kind] for audit in audits]
        mark = "[red]✗[/]" if KINDS[kind].hard else "[yellow]~[/]"
        sign = mark if counts[-1] else "[green]✓[/]"
        shown = [f"{n:,}" if n else "-" for n in counts]
        table.add_row(f"{sign} {kind}", *shown, f"[dim]{KINDS[kind].meaning}[/]")
    return [table]


def _worst_rows(audited: Audit) -> list["RenderableType"]:
    """List what is broken most, the kinds in turn."""
    count = sum(len(found.amount) for found in audited.found)
    if not count:
        return []
    by_kind = [_worst(audited.cluster, found) for found in audited.found]
    table = plain_table()
    for name in ("worst", "where", "amount"):
        table.add_column(name, justify="right" if name == "amount" else "left")
    turns = (rows[turn] for turn in range(SHOWN_ROWS) for rows in by_kind if turn < len(rows))
    for row, _ in zip(turns, range(SHOWN_ROWS), strict=False):
        where = {
            "partition": row.partition, "group": row.group, "node": row.node,
            row.tier: row.domain, "dimension": row.dimension, "asked": row.expression,
        }  # fmt: skip
        said = " · ".join(f"{name} {escaped(at)}" for name, at in where.items() if at)
        table.add_row(row.kind, said, quantity(row.amount))
    if count > SHOWN_ROWS:
        table.add_row(f"[dim]... and {count - SHOWN_ROWS:,} more[/]", "", "")
    return [table]


def _worst(cluster: Cluster, found: Violations) -> list[Violation]:
    """Name the few violations with the largest amounts."""
    top = np.argsort(-found.amount, kind="stable")[:SHOWN_ROWS]
    return found.take(top).rows(cluster)


def _unplaced(result: Any) -> Iterator["RenderableType"]:
    """List replicas that found no node, and those that found none to leave theirs for.

    With the rules that keep them off, the commonest first.
    """
    for title, replicas in (
        ("unplaced", result.unplaced_replicas),
        ("to leave their nodes", held_back(result.cluster, result.placement)),
    ):
        if not len(replicas):
            continue
        table = plain_table()
        table.add_column(f"{title} ({len(replicas):,})")
        table.add_column("kept off others by")
        loads, spent = result.levelness.loads, result.spent
        shown = replicas[:SHOWN_ROWS]
        for one in unplaced_of(result.cluster, result.placement, shown, loads, spent):
            blocked = sorted(one.blocked.items(), key=lambda item: -item[1])
            said = ", ".join(f"{n:,} {escaped(reason)}" for reason, n in blocked)
            table.add_row(f"{escaped(one.partition)} [dim]slot {one.slot}[/]", said)
        if len(replicas) > SHOWN_ROWS:
            table.add_row(f"[dim]... and {len(replicas) - SHOWN_ROWS:,} more[/]", "")
        yield table


def _times(timings: Mapping[str, float], width: int) -> list["RenderableType"]:
    """Lay out the seconds per stage; stages within a stage stand below it, indented."""
    whole = sum(seconds for name, seconds in timings.items() if "." not in name)
    if not timings:
        return []
    table = plain_table()
    table.add_column("time")
    table.add_column(duration(whole), justify="right")
    table.add_column("")
    chart = max(10, min(width - BESIDE_BARS, WIDEST_BAR))
    for name in (name for name in timings if "." not in name):
        inner = [one for one in timings if one.startswith(f"{name}.")]
        for stage in (name, *inner):
            label = (
                f"  [dim]{escaped(stage.removeprefix(f'{name}.'))}[/]" if stage != name else name
            )
            drawn = bar(timings[stage], whole, chart)
            table.add_row(label, duration(timings[stage]), f"[cyan]{drawn}[/]")
    return [table]
