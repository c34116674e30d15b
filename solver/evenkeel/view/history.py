"""What notebooks show of a simulated run: its figures at the beginning, at worst and at the end."""

import numpy as np

from evenkeel.simulate.engine.history import History
from evenkeel.view.markup import box, heading, line, table

SHOWN_EVENTS = 8
"""Events that are spelled out; the rest is counted."""

SAID = {
    "under": "partitions short of a replica",
    "in_danger": "partitions below min-active",
    "unavailable": "partitions that do not serve",
    "violating": "partitions that violate their rule",
}


def history_html(history: History) -> str:
    """Write what came of a simulated run.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> "2 moves" in history_html(ek.simulate.play(c, until=60.0))
    True
    """
    columns = history.table()
    minutes = history.seconds[-1] / 60.0
    levels = [name for name in columns if name.startswith("level_")]
    if not history.leaders.any():
        levels.remove("level_leaders")
    rows = [
        (f"fullest node over fair, {name.removeprefix('level_')}", *_three(columns[name], ".3f"))
        for name in levels
    ]
    rows += [(said, *_three(columns[kind], ",.0f")) for kind, said in SAID.items()]
    total = history.total
    moved = [
        _count(total("moves"), "move"),
        _count(total("leader_changes"), "leader change"),
        _count(total("failovers"), "failover"),
        _count(float(columns["returns"][-1]), "return") + " within the hour",
    ]
    if history.scenario.cluster.bytes_dimension >= 0:
        unit = history.scenario.cluster.dimensions[history.scenario.cluster.bytes_dimension]
        moved.append(f"{total('bytes'):,.4g} {unit} sent")
    below = total("below_min_active")
    parts = [
        heading(
            "History",
            f"{history.scenario.name}: {minutes:,.4g} minutes, decided by {history.method}",
        ),
        table(("", "at first", "worst", "at last"), rows),
        line(" \u00b7 ".join(moved)),
        line(f"below min-active: {below:,.4g} seconds, added up over partitions"),
    ]
    if history.events:
        said = [f"{seconds:,.4g} s {what}" for seconds, what in history.events[:SHOWN_EVENTS]]
        more = len(history.events) - len(said)
        said += [f"and {more:,} more"] if more else []
        parts.append(line(" \u00b7 ".join(said)))
    parts += [line(f"warning: {warning}") for warning in history.warnings]
    return box(parts)


def _three(column: "np.ndarray[tuple[int], np.dtype[np.float64]]", form: str) -> tuple[str, ...]:
    """First, greatest and last value."""
    return tuple(format(float(value), form) for value in (column[0], column.max(), column[-1]))


def _count(number: float, what: str) -> str:
    return f"{number:,.0f} {what}{'' if number == 1 else 's'}"
