"""The page of a sweep: which loss hurts, what is in danger, and what repairs it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.runtime.figures import amount, duration, number, percent
from evenkeel.model.runtime.printable import counted, some_of
from evenkeel.model.topology import NODE_TIER
from evenkeel.view.markup import Raw, shortened, text
from evenkeel.view.page.charts import Axis, axis_of_counts, axis_of_shares
from evenkeel.view.page.curves import axis_of, bars, figure, panel
from evenkeel.view.page.document import (
    Section,
    cards,
    document,
    left_out,
    matrix,
    paragraph,
    searched,
    table,
)

SHOWN_ROWS, SHOWN_LOSSES, SHOWN_NAMES = 500, 100, 8

MOST_BARS = 250
"""Scenarios up to which each has a bar; of more, the worst of some that follow each other."""

MOST_DOMAINS = 24
"""Domains in a matrix of pairs."""

UNKNOWN = ("failed", "not run")


def sweep_page(found: Any) -> str:
    """Write a sweep as a page of HTML.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> page = sweep_page(ek.sweep(c, ["node", "node pairs"]))
    >>> page.startswith("<!DOCTYPE html>"), "6 scenarios" in page
    (True, True)
    """
    rows = found.worst(len(found.outlooks))
    return document(
        f"Evenkeel: sweep, {counted(len(rows), 'scenario')}",
        _lead(found, rows),
        [
            Section("hurts", "Which loss hurts", [*_strips(rows), *_pairs(found)]),
            Section("recovery", "How long it takes to recover", _recovery(rows)),
            Section("lost", "What is lost", _lost(found)),
            Section("rows", "Row by row", _scenarios(found, rows)),
        ],
    )


def _lead(found: Any, rows: Sequence[Any]) -> list[str]:
    """Write the verdict in a sentence, and the figures that people look for first."""
    known = [row for row in rows if row.status not in UNKNOWN]
    fits = sum(row.fits for row in rows)
    losing = sum(row.lost > 0 for row in rows)
    good = fits == len(rows) and not losing
    verdict = "✓ all survived" if good else "✗ not all survived"
    said = f"{found.summary}."
    if known:
        worst = known[0]
        said += (
            f" The worst is {shortened(worst.scenario)}: {counted(worst.lost, 'partition')} lost, "
            f"{worst.without_quorum:,} without a quorum, {worst.under_min_active:,} short of live "
            f"replicas; {counted(worst.moves, 'move')} to repair, "
            f"{counted(worst.hard, 'hard rule')} still broken then."
        )
    moves = max((row.moves for row in known), default=0)
    fullest = max((row.fullest for row in known), default=0.0)
    figures = [
        ("scenarios", f"{len(rows):,}", f"{len(known):,} played to their end"),
        ("fit after the repair", f"{fits:,}", "no hard rule broken"),
        ("lose partitions", f"{losing:,}", "no live replica is left of some"),
        ("lose a quorum", f"{sum(row.without_quorum > 0 for row in rows):,}",
         "of some partitions"),
        ("most moves", f"{moves:,}", "of one repair"),
        ("fullest node", percent(fullest), f"after a repair; now {percent(_most(found.now))}"),
    ]  # fmt: skip
    longest = _finite(row.recovery for row in known)
    if longest:
        figures.append(("longest recovery", duration(max(longest)), "of one repair's plan"))
    cluster = found.cluster
    return [
        f'<h1>Evenkeel: sweep, <span class="status">{verdict}</span></h1>',
        paragraph(said),
        cards(figures),
        paragraph(f"Repaired by {found.method}. {counted(len(cluster.nodes), 'node')}, "
                  f"{counted(len(cluster.partitions), 'partition')}.", "dim"),
    ]  # fmt: skip


def _most(outlook: Any) -> float:
    return float(np.max(outlook.fullest, initial=0.0))


def _finite(values: Any) -> list[float]:
    return [float(value) for value in values if value is not None and np.isfinite(value)]


def _strips(rows: Sequence[Any]) -> list[str]:
    """Draw a bar for each scenario in each of the figures that are not all nothing."""
    known = [row for row in rows if row.status not in UNKNOWN]
    if not known:
        return [paragraph("No scenario was played to its end.")]
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
    return [figure(panels, _ends(known), _said(known))]


def _strip(
    key: str, title: str, look: str, rows: Sequence[Any], values: NDArray[np.float64], axis: Axis
) -> str:
    """Draw one figure of all scenarios."""
    most = int(np.argmax(values))
    value = percent(values[most]) if axis.form == "%" else f"{values[most]:,.4g}"
    told = f"most: {value}, {shortened(rows[most].scenario)}"
    return panel(key, title, told, axis, bars(_shared(values), axis, look))


def _shared(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a value for each bar, the greatest of the scenarios that share it."""
    if len(values) <= MOST_BARS:
        return values
    starts = np.arange(MOST_BARS) * len(values) // MOST_BARS
    return np.maximum.reduceat(values, starts)


def _ends(rows: Sequence[Any]) -> list[str]:
    return ["the worst", f"{counted(len(rows), 'scenario')}", "the least bad"]


def _said(rows: Sequence[Any]) -> str:
    """Say in what order the scenarios stand."""
    worst = ", ".join(shortened(row.scenario, 32) for row in rows[:3])
    said = f"The same order in each panel, the worst first: {worst}"
    said += " and so on" if len(rows) > 3 else ""
    each = -(-len(rows) // MOST_BARS)
    return said + (f"; a bar is the greatest of up to {each:,}." if each > 1 else ".")


def _pairs(found: Any) -> list[str]:
    """Lay out what the loss of every two domains of a tier does, tier by tier."""
    parts = []
    for tier in dict.fromkeys([*found.cluster.topology.tiers, NODE_TIER]):
        cells = {}
        for name, outlook in zip(found.names, found.outlooks, strict=True):
            ends = name.removeprefix(f"{tier} ").split(" + ") if name.startswith(f"{tier} ") else []
            if len(ends) in (1, 2):
                cells[ends[0], ends[-1]] = cells[ends[-1], ends[0]] = outlook
        if any(one != other for one, other in cells):
            title = f"Two at once, by {text(shortened(tier))}"
            parts += [f"<h3>{title}</h3>", *_matrix(tier, cells)]
    return parts


def _matrix(tier: str, cells: dict[tuple[str, str], Any]) -> list[str]:
    """Lay out pairs by the first figure of danger that any of them has, and by moves else."""
    dangers = (
        ("lost", "partitions lost"), ("without_quorum", "partitions without a quorum"),
        ("under_min_active", "partitions short of live replicas"),
    )  # fmt: skip
    chosen = next(
        ((name, said) for name, said in dangers
         if any(len(getattr(one.before, name)) for one in cells.values())), None,
    )  # fmt: skip

    def value(one: Any) -> int:
        return len(getattr(one.before, chosen[0])) if chosen else int(one.moves)

    known = {pair: value(one) for pair, one in cells.items() if one.known}
    totals: dict[str, int] = {}
    for (row, _), count in known.items():
        totals[row] = totals.get(row, 0) + count
    names = list(dict.fromkeys(one for one, _ in cells))
    shown = sorted(names, key=lambda name: -totals.get(name, 0))[:MOST_DOMAINS]
    most = max([1, *known.values()])
    rows = [
        (
            shortened(row),
            [
                (f"{known[row, column]:,}", known[row, column] / most)
                if (row, column) in known else ("-", 0.0)
                for column in shown
            ],
        )
        for row in shown
    ]  # fmt: skip
    said = chosen[1] if chosen else "moves to repair"
    caption = f"{said.capitalize()} with the {shortened(tier)} of the row and that of the column."
    hidden = left_out(len(names) - len(shown), "domains, which hurt less,")
    heads = ["lost", *map(shortened, shown)]
    return [matrix(caption, heads, rows), *([paragraph(hidden, "dim")] if hidden else [])]


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
        told = title + (f"; never: {counted(never, 'scenario')}, at full height" if never else "")
        panels.append(_strip(f"r-{name}", told, look, asked, drawn, axis))
    return [figure(panels, _ends(asked), _said(asked))]


def _lost(found: Any) -> list[str]:
    """Name partitions of which no live replica is left, the worst scenarios first."""
    counts = found.lost[:, 0]
    losing = [int(i) for i in np.argsort(-counts, kind="stable") if counts[i]]
    if not losing:
        return [paragraph("No scenario leaves a partition without a live replica.")]
    partitions = found.cluster.partitions.names
    rows = []
    for i in losing[:SHOWN_LOSSES]:
        lost = found.outlooks[i].before.lost.tolist()
        named = some_of(lost, lambda p: shortened(partitions[p], 32), SHOWN_NAMES)
        rows.append((shortened(found.names[i]), f"{len(lost):,}", named))
    note = left_out(len(losing) - len(rows), "scenarios")
    shown = table("Those first that lose most.", ("scenario", "lost", "partitions"), rows, (2,))
    return [searched(f"Scenarios that lose partitions ({len(losing):,})", shown, note=note)]


def _scenarios(found: Any, rows: Sequence[Any]) -> list[str]:
    """Lay out every scenario, the worst first."""
    if not rows:
        return [paragraph("There is no scenario.")]
    cluster = found.cluster
    sized = cluster.bytes_dimension >= 0
    timed = any(row.recovery is not None for row in rows)
    unit = (shortened(cluster.dimensions[cluster.bytes_dimension]),) if sized else ()
    heads = (
        "scenario", "status", "fits", "still broken", "lost", "without quorum", "short",
        "fullest ÷ mean", "fullest node", "moves", "leader changes", *unit,
        *(("recovery", "all live after") if timed else ()),
    )  # fmt: skip
    cells: list[tuple[str | Raw, ...]] = []
    for row in rows[:SHOWN_ROWS]:
        if row.status in UNKNOWN:
            unknown = ("-",) * (len(heads) - 2)
            cells.append((shortened(row.scenario), row.status, *unknown))
            continue
        times = (_time(row.recovery), _time(row.under_replicated)) if timed else ()
        cells.append(
            (
                shortened(row.scenario), row.status, "✓" if row.fits else "✗", f"{row.hard:,}",
                f"{row.lost:,}", f"{row.without_quorum:,}", f"{row.under_min_active:,}",
                number(row.level), percent(row.fullest), f"{row.moves:,}",
                f"{row.leader_changes:,}", *((amount(row.bytes_moved),) if sized else ()), *times,
            )
        )  # fmt: skip
    note = left_out(len(rows) - len(cells), "scenarios, which are less bad,")
    said = "The worst first. Partitions in danger are counted before the repair, the rest after."
    return [searched(f"Scenarios ({len(rows):,})", table(said, heads, cells, (1, 2)), note=note)]


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return duration(seconds) if np.isfinite(seconds) else "never"
