"""The page of a simulated run: what happened, what was short of what for how long, what moved."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.runtime.figures import data, duration, quantity
from evenkeel.model.runtime.printable import counted
from evenkeel.view.markup import shortened
from evenkeel.view.page.charts import HEIGHT, Axis, axis_of_counts
from evenkeel.view.page.curves import WIDTH, area, axis_of, figure, panel
from evenkeel.view.page.document import (
    Section,
    cards,
    document,
    left_out,
    paragraph,
    searched,
    table,
)

SHOWN_ROWS = 500

SAID = {
    "under": "partitions short of a replica",
    "in_danger": "partitions below min-active",
    "unavailable": "partitions that do not serve",
    "violating": "partitions that violate their rule",
    "over": "partitions with a replica too many",
}
"""What is drawn where there ever is any."""


def history_page(history: Any) -> str:
    """Write what came of a simulated run as a page of HTML.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> page = history_page(ek.simulate.play(c, until=60.0))
    >>> page.startswith("<!DOCTYPE html>"), "whole at the end" in page
    (True, True)
    """
    columns = history.table()
    return document(
        f"Evenkeel: {shortened(history.scenario.name)}, {duration(_end(history))}",
        _lead(history, columns),
        [
            Section("recovery", "What was not as it should be", _recovery(history, columns)),
            Section("level", "How level", _levels(history, columns)),
            Section("figures", "At first, at worst, at last", [_figures(columns)]),
            Section("events", "What happened", _events(history)),
            Section("checks", "What was demanded", _checks(history)),
            Section("changes", "What was changed", _changes(history)),
        ],
    )


def _end(history: Any) -> float:
    return float(history.seconds[-1])


def _lead(history: Any, columns: dict[str, NDArray[np.float64]]) -> list[str]:
    """Write in a sentence whether everything came back, and the figures that stand out."""
    under = columns["under"]
    short = np.flatnonzero(under > 0.0)
    whole = not len(short) or under[-1] == 0.0
    if not len(short):
        said = "No partition was ever short of a replica."
    elif whole:
        back = float(history.seconds[short[-1] + 1])
        said = (
            f"At worst {counted(int(under.max()), 'partition')} lacked a replica; from "
            f"{duration(back)} on none did."
        )
    else:
        said = (
            f"At worst {counted(int(under.max()), 'partition')} lacked a replica, at the end "
            f"{int(under[-1]):,} still."
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
    sign, status = ("✓", "whole at the end") if whole else ("✗", "short of replicas at the end")
    who = f"{counted(len(cluster.nodes), 'node')}; {counted(len(history.partitions), 'partition')}"
    return [
        f'<h1>Evenkeel: simulation, <span class="status">{sign} {status}</span></h1>',
        paragraph(said),
        *(paragraph(f"Warning: {warning}") for warning in history.warnings),
        cards(figures),
        paragraph(f"{history.scenario.name}: {duration(_end(history))}, decided by "
                  f"{history.method}; {who}.", "dim"),
    ]  # fmt: skip


def _recovery(history: Any, columns: dict[str, NDArray[np.float64]]) -> list[str]:
    """Draw how many partitions were not as they should be, of each kind that there was."""
    drawn = [
        _curve(history, kind, said, columns[kind], axis_of_counts(float(columns[kind].max())))
        for kind, said in SAID.items()
        if columns[kind].any()
    ]
    if not drawn:
        return [paragraph("Every partition had all that it wanted, at every sample.")]
    return [figure(drawn, _across(history), "Across: time; lines where something happened.")]


def _levels(history: Any, columns: dict[str, NDArray[np.float64]]) -> list[str]:
    """Draw how far the fullest node is above what is fair, by dimension, and leaders."""
    names = [name for name in columns if name.startswith("level_")]
    if not history.leaders.any():
        names.remove("level_leaders")
    drawn = []
    for i, name in enumerate(names):
        above = 100.0 * np.maximum(np.nan_to_num(columns[name], posinf=np.inf) - 1.0, 0.0)
        finite = np.where(np.isfinite(above), above, 0.0)
        above = np.where(np.isfinite(above), above, finite.max(initial=0.0))
        of = shortened(name.removeprefix("level_"))
        title = f"fullest node above its fair share of {of}, %"
        drawn.append(
            _curve(history, f"level{i}", title, above, axis_of(float(above.max(initial=0.0))))
        )
    return [figure(drawn, _across(history), "Across: time. Nothing, where all nodes are level.")]


def _curve(history: Any, key: str, title: str, values: NDArray[np.float64], axis: Axis) -> str:
    """Draw a figure over time, the greatest where many samples share a place, and events."""
    held = values[:-1] if len(values) > 1 else values
    if len(held) > WIDTH:
        held = np.maximum.reduceat(held, np.arange(WIDTH) * len(held) // WIDTH)
    end = max(_end(history), 1e-9)
    places = sorted({round(WIDTH * seconds / end) for seconds, _ in history.events})
    lines = "".join(f"M{x} 0V{HEIGHT}" for x in places if x <= WIDTH)
    drawn = area(held, axis) + (f'<path class="rule least" d="{lines}"/>' if lines else "")
    first, worst, last = _three(values)
    told = f"at first {first}, at most {worst}, at last {last}"
    return panel(key, title, told, axis, drawn)


def _three(values: NDArray[np.float64]) -> tuple[str, ...]:
    """Write a figure at first, at worst and at last."""
    found = (float(one) for one in (values[0], values.max(), values[-1]))
    return tuple(quantity(one) for one in found)


def _across(history: Any) -> list[str]:
    return ["0 s", duration(_end(history) / 2.0), duration(_end(history))]


def _figures(columns: dict[str, NDArray[np.float64]]) -> str:
    """Lay out each figure at first, at worst and at last."""
    rows = [
        (name.replace("_", " "), *_three(of)) for name, of in columns.items() if name != "seconds"
    ]
    return table("Of all samples.", ("figure", "at first", "at worst", "at last"), rows, ())


def _events(history: Any) -> list[str]:
    rows = [(duration(seconds), what) for seconds, what in history.events[:SHOWN_ROWS]]
    left = left_out(len(history.events) - len(rows), "events")
    if not rows:
        return []
    return [table(f"From outside. {left}".strip(), ("after", "what"), rows, (1,))]


def _checks(history: Any) -> list[str]:
    rows = [
        (one.what, quantity(one.measured), "✓ met" if one.met else "✗ missed")
        for one in history.check()
    ]
    return [table("What was measured.", ("demand", "measured", ""), rows, (2,))] if rows else []


def _changes(history: Any) -> list[str]:
    """List the changes that ended, the first ones."""
    names = history.scenario.cluster.nodes.names
    rows: list[Sequence[str]] = [
        (
            duration(one.seconds), shortened(history.partitions[one.change.partition]),
            ", ".join(shortened(names[node]) for node, _ in one.change.add),
            ", ".join(shortened(names[node]) for node in one.change.drop),
            shortened(names[one.change.lead]) if one.change.lead >= 0 else "",
            one.outcome,
        )
        for one in history.log[:SHOWN_ROWS]
    ]  # fmt: skip
    if not rows:
        return []
    heads = ("after", "partition", "joins", "leaves", "then leads", "outcome")
    shown = table("In the order in which they ended.", heads, rows, (1, 2, 3, 4, 5))
    note = left_out(len(history.log) - len(rows), "changes")
    return [searched(f"Changes ({len(history.log):,})", shown, note=note)]
