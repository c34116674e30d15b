"""Render sweeps and frontiers as tables, HTML for notebooks and HTML pages."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.runtime.figures import amount, data, duration, number, percent
from evenkeel.model.runtime.printable import counted, some_of
from evenkeel.model.runtime.table import Column, Table
from evenkeel.model.topology import NODE_TIER
from evenkeel.studies.scenario import UNKNOWN, scenario_table
from evenkeel.view.charts import (
    WIDTH,
    Axis,
    axis_of,
    axis_of_counts,
    axis_of_shares,
    figure,
    panel,
    row_of_bars,
    stairs,
)
from evenkeel.view.html import (
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
from evenkeel.view.plots.plans import proven

SHOWN_ROWS, SHOWN_LOSSES, SHOWN_NAMES = 500, 100, 8

# scenarios that a notebook and a terminal spell out, the worst first; the rest is counted
FEW_ROWS = 10

# scenarios up to which each has a bar; of more, the worst of some that follow each other
MOST_BARS = 250

MOST_DOMAINS = 24  # domains in a matrix of pairs


def _scenarios(found: Any, most: int = FEW_ROWS) -> Table:
    return scenario_table(found.cluster, found.worst(most), len(found.results))


def frontier_table(found: Any) -> Table:
    """Lay out the plans of a frontier, the cheapest first."""
    cluster, results = found.cluster, found.results
    columns = [
        Column("plan", range(1, len(results) + 1), str),
        Column("moves", found.moves, "{:,}".format),
        Column("moves at least", found.moves_at_least, "{:,}".format, "at least"),
        Column("max/mean", found.level, number),
        Column("at least", [one.bounds.ratio.max(initial=1.0) for one in results], number,
               "never below"),
        Column("leader changes", [one.comparison.leader_changes for one in results],
               "{:,}".format, "leaders"),
        Column("hard violations", [one.audit.hard for one in results], "{:,}".format, "broken"),
        Column("status", [one.status for one in results]),
    ]  # fmt: skip
    if cluster.bytes_dimension >= 0:
        unit = shortened(cluster.dimensions[cluster.bytes_dimension])
        columns.insert(5, Column(f"{unit} moved", found.bytes, amount))
    caption = "The cheapest first; moves at least: proven for the tolerance of the plan."
    return Table(columns, caption, f"Plans ({len(results):,})")


def sweep_html(found: Any) -> str:
    """Write what a sweep came to, for a notebook."""
    return notebook([heading("Sweep", found.summary), _scenarios(found)])


def frontier_html(found: Any) -> str:
    """Write the points of a frontier, for a notebook."""
    plans = counted(len(found.results), "plan")
    return notebook([heading("Frontier", plans), frontier_table(found)])


def sweep_page(found: Any) -> str:
    """Write a sweep as a page of HTML."""
    rows = found.worst(len(found.results))
    shown = [_scenarios(found, SHOWN_ROWS)] if rows else ["There is no scenario."]
    return page(
        f"Evenkeel: sweep, {counted(len(rows), 'scenario')}",
        _sweep_lead(found, rows),
        [
            Section("hurts", "Which loss hurts", [_strips(rows), *_pairs(found)]),
            Section("recovery", "How long it takes to recover", _recovery(rows)),
            Section("lost", "What is lost", [_lost(found)]),
            Section("rows", "Row by row", shown),
        ],
    )


def frontier_page(found: Any) -> str:
    """Write a frontier as a page of HTML."""
    return page(
        f"Evenkeel: frontier, {counted(len(found.results), 'plan')}",
        _frontier_lead(found),
        [
            Section("curve", "How level for how many moves", [_curve(found)]),
            Section("plans", "Plan by plan", [frontier_table(found)]),
        ],
    )


def _sweep_lead(found: Any, rows: Sequence[Any]) -> list[str | Table]:
    """Write the verdict in a sentence, and the figures that people look for first."""
    known = [row for row in rows if row.status not in UNKNOWN]
    fits = sum(row.fits for row in rows)
    losing = sum(row.lost > 0 for row in rows)
    good = fits == len(rows) and not losing
    caption = f"{found.summary}."
    if known:
        worst = known[0]
        caption += (
            f" The worst is {shortened(worst.scenario)}: {counted(worst.moves, 'move')} to repair, "
            f"{counted(worst.hard, 'hard rule')} still broken then."
        )
    moves = max((row.moves for row in known), default=0)
    fullest = max((row.fullest for row in known), default=0.0)
    now = float(np.max(found.now.fullest, initial=0.0))
    figures = [
        ("scenarios", f"{len(rows):,}", f"{len(known):,} played to their end"),
        ("fit after the repair", f"{fits:,}", "no hard rule broken"),
        ("lose partitions", f"{losing:,}", "no live replica is left of some"),
        ("lose a quorum", f"{sum(row.without_quorum > 0 for row in rows):,}",
         "of some partitions"),
        ("most moves", f"{moves:,}", "of one repair"),
        ("fullest node", percent(fullest), f"after a repair; now {percent(now)}"),
    ]  # fmt: skip
    times = [row.recovery for row in known if row.recovery is not None]
    if longest := [float(one) for one in times if np.isfinite(one)]:
        figures.append(("longest recovery", duration(max(longest)), "of one repair's plan"))
    cluster = found.cluster
    return [
        verdict("Evenkeel: sweep,", f"{'✓' if good else '✗ not'} all fit with nothing lost"),
        caption,
        cards(figures),
        dim(f"Repaired by {found.method}. {counted(len(cluster.nodes), 'node')}, "
            f"{counted(len(cluster.partitions), 'partition')}."),
    ]  # fmt: skip


def _strips(rows: Sequence[Any]) -> str:
    """Draw a bar for each scenario in each of the figures that are not all nothing."""
    known = [row for row in rows if row.status not in UNKNOWN]
    if not known:
        return "No scenario was played to its end."
    wanted = (
        ("lost", "partitions lost", "was"),
        ("without_quorum", "partitions without a quorum", "was"),
        ("under_min_active", "partitions short of live replicas", "was"),
        ("hard", "hard rules broken after the repair", "was"), ("moves", "moves to repair", "now"),
    )  # fmt: skip
    panels = []
    for name, title, look in wanted:
        values = np.array([getattr(row, name) for row in known], np.float64)
        if values.any():
            axis = axis_of_counts(float(values.max()))
            panels.append(_strip(name, title, look, known, values, axis))
    fullest = np.array([row.fullest for row in known], np.float64)
    axis = axis_of_shares(float(fullest[np.isfinite(fullest)].max(initial=0.0)))
    title = "fullest node after the repair, % of capacity"
    panels.append(_strip("fullest", title, "now", known, np.nan_to_num(fullest), axis))
    return figure(panels, _ends(known), _describe(known))


def _strip(
    key: str, title: str, look: str, rows: Sequence[Any], values: NDArray[np.float64], axis: Axis
) -> str:
    """Draw one figure of all scenarios, the greatest of those that share a bar."""
    most = int(np.argmax(values))
    value = percent(values[most]) if axis.form == "%" else f"{values[most]:,.4g}"
    caption = f"most: {value}, {shortened(rows[most].scenario)}"
    if len(values) > MOST_BARS:
        values = np.maximum.reduceat(values, np.arange(MOST_BARS) * len(values) // MOST_BARS)
    return panel(key, title, caption, axis, row_of_bars(values, axis, look))


def _ends(rows: Sequence[Any]) -> list[str]:
    return ["the worst", f"{counted(len(rows), 'scenario')}", "the least bad"]


def _describe(rows: Sequence[Any]) -> str:
    """Say in what order the scenarios stand."""
    worst = ", ".join(shortened(row.scenario, 32) for row in rows[:3])
    caption = f"The same order in each panel, the worst first: {worst}"
    caption += " and so on" if len(rows) > 3 else ""
    each = -(-len(rows) // MOST_BARS)
    return caption + (f"; a bar is the greatest of up to {each:,}." if each > 1 else ".")


def _pairs(found: Any) -> Iterator[str | Table]:
    """Lay out what the loss of every two domains of a tier does, tier by tier."""
    for tier in dict.fromkeys([*found.cluster.topology.tiers, NODE_TIER]):
        cells = {}
        for name, one in zip(found.names, found.results, strict=True):
            ends = name.removeprefix(f"{tier} ").split(" + ") if name.startswith(f"{tier} ") else []
            if len(ends) in (1, 2):
                cells[ends[0], ends[-1]] = cells[ends[-1], ends[0]] = one
        if any(one != other for one, other in cells):
            yield subheading(f"Two at once, by {shortened(tier)}")
            yield _matrix(tier, cells)


def _matrix(tier: str, cells: dict[tuple[str, str], Any]) -> Table:
    """Lay out pairs by the first figure of danger that any of them has, and by moves else."""
    dangers = (
        ("lost", "partitions lost"), ("without_quorum", "partitions without a quorum"),
        ("under_min_active", "partitions short of live replicas"),
    )  # fmt: skip
    chosen, caption = next(
        ((name, caption) for name, caption in dangers
         if any(len(getattr(one.before, name)) for one in cells.values())),
        ("", "moves to repair"),
    )  # fmt: skip
    known = {
        pair: len(getattr(one.before, chosen)) if chosen else int(one.moves)
        for pair, one in cells.items()
        if one.known
    }
    totals: dict[str, int] = {}
    for (row, _), count in known.items():
        totals[row] = totals.get(row, 0) + count
    names = list(dict.fromkeys(one for one, _ in cells))
    shown = sorted(names, key=lambda name: -totals.get(name, 0))[:MOST_DOMAINS]
    most = max([1, *known.values()])
    columns = [Column("lost", shown)]
    for column in shown:
        values = [known.get((row, column)) for row in shown]
        columns.append(
            Column(
                shortened(column), ["-" if n is None else n for n in values], "{:,}".format,
                shades=[(n or 0) / most for n in values],
            )
        )  # fmt: skip
    caption = (
        f"{caption.capitalize()} with the {shortened(tier)} of the row and that of the column."
    )
    return Table(columns, caption, left=len(names) - len(shown), what="domains, which hurt less,")


def _recovery(rows: Sequence[Any]) -> list[str]:
    """Draw how long repairs take, where the sweep was asked."""
    asked = [row for row in rows if row.recovery is not None]
    if not asked:
        return []
    panels = []
    for name, title, look in (
        ("recovery", "seconds until the repair is done", "now"),
        ("under_replicated", "seconds until no partition is short of live replicas", "was"),
    ):
        values = np.array([getattr(row, name) or 0.0 for row in asked])
        finite = values[np.isfinite(values)]
        axis = axis_of(float(finite.max(initial=0.0)))
        drawn = np.where(np.isfinite(values), values, axis.top)
        never = int(np.count_nonzero(~np.isfinite(values)))
        caption = title + (
            f"; never: {counted(never, 'scenario')}, at full height" if never else ""
        )
        panels.append(_strip(f"r-{name}", caption, look, asked, drawn, axis))
    return [figure(panels, _ends(asked), _describe(asked))]


def _lost(found: Any) -> str | Table:
    """Name partitions of which no live replica is left, the worst scenarios first."""
    counts = found.lost[:, 0]
    losing = [int(i) for i in np.argsort(-counts, kind="stable") if counts[i]]
    if not losing:
        return "No scenario leaves a partition without a live replica."
    names, shown = found.cluster.partitions.names, losing[:SHOWN_LOSSES]
    lost = [found.results[i].before.lost.tolist() for i in shown]
    named = [some_of(ps, lambda p: shortened(names[p], 32), SHOWN_NAMES) for ps in lost]
    return Table(
        [
            Column("scenario", [found.names[i] for i in shown]),
            Column("lost", [len(ps) for ps in lost], "{:,}".format),
            Column("partitions", named, letters=0),
        ],
        "Those first that lose most.", f"Scenarios that lose partitions ({len(losing):,})",
        len(losing) - len(shown), "scenarios",
    )  # fmt: skip


def _frontier_lead(found: Any) -> list[str | Table]:
    """Write what the frontier spans in a sentence, and its ends as figures."""
    cheapest, finest = found.results[0], found.results[-1]
    few, many = int(found.moves[0]), int(found.moves[-1])
    caption = (
        f"With {counted(few, 'move')} the fullest node has {number(found.level[0])} times the "
        f"mean; with {counted(many, 'move')}, {number(found.level[-1])} times."
    )
    if len(found.results) > 1:
        gain = (found.level[:-1] - found.level[1:]) / np.diff(found.moves).clip(1)
        best = int(np.argmax(gain)) + 1
        caption += f" Most is gained per move up to {counted(int(found.moves[best]), 'move')}."
    else:
        caption += " No plan is both more level and costs more."
    hard = max(one.audit.hard for one in found.results)
    least = float(finest.bounds.ratio.max(initial=1.0))
    figures = [
        ("plans", f"{len(found.results):,}", "of which none beats another"),
        ("cheapest", counted(few, "move"), f"max/mean {number(found.level[0])}"),
        ("most level", counted(many, "move"), f"max/mean {number(found.level[-1])}"),
        ("no placement below", number(least), "max/mean, proven"),
        ("hard violations", f"{hard:,}", "at most, of any plan"),
    ]
    cluster = found.cluster
    if cluster.bytes_dimension >= 0:
        name = shortened(cluster.dimensions[cluster.bytes_dimension])
        ends = f"{data(found.bytes[0], name)} to {data(found.bytes[-1], name)}"
        figures.append(("data moved", ends, name))
    return [
        verdict("Evenkeel: frontier,", "✗ rules broken" if hard else "✓ keeps all rules"),
        caption,
        cards(figures),
        dim(f"{counted(len(cluster.nodes), 'node')}, "
            f"{counted(len(cluster.partitions), 'partition')}; seed {cheapest.seed}."),
    ]  # fmt: skip


def _curve(found: Any) -> str:
    """Draw a point for each plan, and the line that none can be below or left of."""
    excess = 100.0 * np.maximum(found.level - 1.0, 0.0)
    least, tolerance = proven(found)
    down = axis_of(float(max(excess.max(), tolerance.max(initial=0.0))))
    low, high = _span(np.concatenate([found.moves, least]))
    at, edge = (
        [round(WIDTH * (float(count) - low) / (high - low)) for count in counts]
        for counts in (found.moves, least)
    )
    floor = 100.0 * max(0.0, float(found.results[0].bounds.ratio.max(initial=1.0)) - 1.0)
    heights = [0, *(down.height(max(float(one), floor)) for one in tolerance)]
    points = [*zip(at, (down.height(float(one)) for one in excess), strict=True)]
    drawn = stairs(points, [*zip(edge, heights, strict=True)], down.height(floor))
    tolerances = "; ".join(
        f"{counted(int(m), 'move')}: {e:.4g}%" for m, e in zip(found.moves, excess, strict=True)
    )
    title = "fullest node above the mean, %"
    caption = (
        "Across: moves. A point for each plan; the line between them: what is reached for at most "
        "so many moves. Dotted: no plan is to the left of it or below, as is proven for the "
        "tolerances that were asked for."
    )
    middle = f"{(low + high) // 2:,}" if high - low > 1 else ""
    ends = [f"{low:,} moves", middle, f"{high:,} moves"]
    return figure([panel("frontier", title, tolerances, down, drawn)], ends, caption)


def _span(moves: NDArray[np.float64]) -> tuple[int, int]:
    """Return between which numbers of moves all are drawn, with a little room at both ends.

    >>> _span(np.array([80, 132])), _span(np.array([3])), _span(np.array([0, 40]))
    ((77, 135), (2, 4), (0, 42))
    """
    least, most = int(moves.min()), int(moves.max())
    room = max(1, (most - least + 10) // 20)
    low = max(0, least - room)
    return low, most + room + (most + room - low) % 2
