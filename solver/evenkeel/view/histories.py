"""Page and tables of a simulated run: its events, missing replicas over time, and moves."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.runtime.figures import data, duration, quantity
from evenkeel.model.runtime.printable import counted
from evenkeel.model.runtime.table import Column, Table
from evenkeel.view.charts import WIDTH, Axis, area, axis_of, axis_of_counts, figure, panel, uprights
from evenkeel.view.html import Section, cards, dim, notebook, page, shortened, verdict
from evenkeel.view.terminal import Line

SHOWN_ROWS = 500

SHOWN_EVENTS = 8  # events that a notebook spells out; the rest is counted
# what the figures of a simulation are, by name; levels come apart
SIMULATED = {
    "under": "partitions short of a live replica",
    "over": "partitions with a live replica too many",
    "unavailable": "partitions that do not serve",
    "in_danger": "partitions with fewer live replicas than min-active",
    "violating": "partitions whose replicas violate their rule",
    "lead_violating": "partitions led where their rule does not want it",
    "lead_less_preferred": "partitions led where their rule wants it less than elsewhere",
    "moves": "replicas moved so far",
    "bytes": "data that moves sent so far",
    "leader_changes": "leaders changed so far without a move",
    "failed": "changes so far that no longer fitted when they were due",
    "expired": "changes so far that took too long",
    "failovers": "leaders so far that another followed, their node being silent",
    "seconds_below_min_active": "seconds so far, added up over partitions",
    "returns": "replicas so far that came back to a node within the hour",
}

# what is drawn where there ever is any
DANGERS = ("under", "in_danger", "unavailable", "violating", "over")


def figure_table(history: Any) -> Table:
    """Lay out each figure at first, at worst and at last, with what it is."""
    columns = {name: of for name, of in history.table().items() if name != "seconds" and len(of)}
    cluster = history.scenario.cluster
    unit = cluster.dimensions[cluster.bytes_dimension] if cluster.bytes_dimension >= 0 else ""
    sides = np.array([(of[0], of.max(), of[-1]) for of in columns.values()]).reshape(-1, 3).T
    heads = ("at first", "at worst", "at last")
    return Table(
        [
            Column("figure", [*columns]),
            *(Column(head, side, quantity) for head, side in zip(heads, sides, strict=True)),
            Column("what it is", [_meaning(name, unit) for name in columns], letters=0, faint=True),
        ],
        "Of all samples.",
    )


def _meaning(figure: str, unit: str) -> str:
    """Return what a figure of a simulation is."""
    if figure.startswith("level_"):
        return "max/mean: the fullest node over the mean; 1 is level"
    words = SIMULATED.get(figure, "")
    return f"{words}, in units of {unit}" if figure == "bytes" and unit else words


def history_html(history: Any) -> str:
    """Report a simulated run for a notebook."""
    return notebook(history_parts(history, SHOWN_EVENTS))


def history_parts(history: Any, most: int | None = None) -> list[Line | Table]:
    """Return the lines and tables of a report, with the first so many events."""
    events = history.events[:most]
    more = len(history.events) - len(events)
    return [
        Line(repr(history).strip("<>")),
        *(Line(f"  {at:>10,.4g} s  {what}") for at, what in events),
        *([Line(f"  and {more:,} more")] if more else []),
        figure_table(history),
        *(Line(f"! {warning}") for warning in history.warnings),
    ]


def history_page(history: Any) -> str:
    """Write what came of a simulated run as a page of HTML."""
    columns = history.table()
    return page(
        f"Evenkeel: {shortened(history.scenario.name)}, {duration(_end(history))}",
        _lead(history, columns),
        [
            Section("recovery", "What was not as it should be", [_recovery(history, columns)]),
            Section("level", "How level", [_levels(history, columns)]),
            Section("figures", "At first, at worst, at last", [figure_table(history)]),
            Section("events", "What happened", _events(history)),
            Section("checks", "What was demanded", _checks(history)),
            Section("changes", "What was changed", _changes(history)),
        ],
    )


def _end(history: Any) -> float:
    return float(history.seconds[-1])


def _lead(history: Any, columns: Mapping[str, NDArray[np.float64]]) -> list[str | Table]:
    """Write in a sentence whether everything came back, and the figures that stand out."""
    under = columns["under"]
    short = np.flatnonzero(under > 0.0)
    whole = not len(short) or under[-1] == 0.0
    caption = "No partition was ever short of a replica."
    if len(short):
        caption = f"At worst {counted(int(under.max()), 'partition')} lacked a replica"
        caption += (
            f"; from {duration(float(history.seconds[short[-1] + 1]))} on none did."
            if whole
            else f", at the end {int(under[-1]):,} still."
        )
    total = history.total
    figures = [
        ("moves", f"{total('moves'):,.0f}", "replicas that joined a node"),
        ("leader changes", f"{total('leader_changes'):,.0f}", "they move no data"),
        ("failovers", f"{total('failovers'):,.0f}", "leaders that no longer answered"),
        ("below min-active", duration(float(total("below_min_active"))), "over all partitions"),
    ]
    cluster = history.scenario.cluster
    if cluster.bytes_dimension >= 0:
        name = shortened(cluster.dimensions[cluster.bytes_dimension])
        figures.insert(1, ("data moved", data(float(total("bytes")), name), name))
    who = f"{counted(len(cluster.nodes), 'node')}; {counted(len(history.partitions), 'partition')}"
    return [
        verdict("Evenkeel: simulation,",
                "✓ whole at the end" if whole else "✗ short of replicas at the end"),
        caption,
        *(f"Warning: {warning}" for warning in history.warnings),
        cards(figures),
        dim(f"{history.scenario.name}: {duration(_end(history))}, decided by {history.method}; "
            f"{who}."),
    ]  # fmt: skip


def _recovery(history: Any, columns: Mapping[str, NDArray[np.float64]]) -> str:
    """Draw how many partitions were not as they should be, of each kind that there was."""
    drawn = [
        _curve(history, kind, SIMULATED[kind], columns[kind],
               axis_of_counts(float(columns[kind].max())))
        for kind in DANGERS
        if columns[kind].any()
    ]  # fmt: skip
    if not drawn:
        return "Every partition had all that it wanted, at every sample."
    return figure(drawn, _across(history), "Across: time; lines where something happened.")


def _levels(history: Any, columns: Mapping[str, NDArray[np.float64]]) -> str:
    """Draw how far the fullest node is above what is fair, by dimension, and leaders."""
    names = [name for name in columns if name.startswith("level_")]
    if not history.leaders.any():
        names.remove("level_leaders")
    drawn = []
    for i, name in enumerate(names):
        above = 100.0 * np.maximum(np.nan_to_num(columns[name], posinf=np.inf) - 1.0, 0.0)
        finite = np.where(np.isfinite(above), above, 0.0)
        above = np.where(np.isfinite(above), above, finite.max(initial=0.0))
        title = f"fullest node above the mean of {shortened(name.removeprefix('level_'))}, %"
        axis = axis_of(float(above.max(initial=0.0)))
        drawn.append(_curve(history, f"level{i}", title, above, axis))
    return figure(drawn, _across(history), "Across: time. Nothing, where all nodes are level.")


def _curve(history: Any, key: str, title: str, values: NDArray[np.float64], axis: Axis) -> str:
    """Draw a figure over time, the greatest where many samples share a place, and events."""
    held = values[:-1] if len(values) > 1 else values
    if len(held) > WIDTH:
        held = np.maximum.reduceat(held, np.arange(WIDTH) * len(held) // WIDTH)
    end = max(_end(history), 1e-9)
    places = sorted({round(WIDTH * seconds / end) for seconds, _ in history.events})
    drawn = area(held, axis) + uprights([x for x in places if x <= WIDTH])
    first, worst, last = (quantity(float(one)) for one in (values[0], values.max(), values[-1]))
    caption = f"at first {first}, at most {worst}, at last {last}"
    return panel(key, title, caption, axis, drawn)


def _across(history: Any) -> list[str]:
    return ["0 s", duration(_end(history) / 2.0), duration(_end(history))]


def _events(history: Any) -> list[Table]:
    """List what happened from outside."""
    shown = history.events[:SHOWN_ROWS]
    columns = [
        Column("after", [seconds for seconds, _ in shown], duration),
        Column("what", [what for _, what in shown], letters=0),
    ]
    left = len(history.events) - len(shown)
    return [Table(columns, "From outside.", left=left, what="events")] if shown else []


def _checks(history: Any) -> list[Table]:
    """List what the scenario demanded."""
    found = history.check()
    columns = [
        Column("demand", [one.what for one in found], letters=0),
        Column("measured", [one.measured for one in found], quantity),
        Column("", ["✓ met" if one.met else "✗ missed" for one in found]),
    ]
    return [Table(columns, "What was measured.")] if found else []


def _changes(history: Any) -> list[Table]:
    """List the changes that ended, the first ones."""
    names = history.scenario.cluster.nodes.names
    shown = history.log[:SHOWN_ROWS]
    if not shown:
        return []
    changes = [one.change for one in shown]
    joins = [", ".join(shortened(names[n]) for n, _ in one.add) for one in changes]
    leaves = [", ".join(shortened(names[n]) for n in one.drop) for one in changes]
    leads = [names[one.lead] if one.lead >= 0 else "" for one in changes]
    return [
        Table(
            [
                Column("after", [one.seconds for one in shown], duration),
                Column("partition", [history.partitions[one.partition] for one in changes]),
                Column("joins", joins, letters=0),
                Column("leaves", leaves, letters=0),
                Column("then leads", leads),
                Column("outcome", [one.outcome for one in shown], letters=0),
            ],
            "In the order in which they ended.", f"Changes ({len(history.log):,})",
            len(history.log) - len(shown), "changes",
        )
    ]  # fmt: skip
