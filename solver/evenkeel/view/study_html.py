"""What notebooks show of studies: the worst scenarios of a sweep, the points of a frontier."""

from typing import Any

from evenkeel.model.runtime.figures import amount, percent, ratio
from evenkeel.model.runtime.printable import counted
from evenkeel.view.markup import box, heading, line, shortened, table

SHOWN_ROWS = 10
"""Scenarios that are spelled out, the worst first; the rest is counted."""

UNKNOWN = ("failed", "not run")


def sweep_html(found: Any) -> str:
    """Write what a sweep came to.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> "3 scenarios: 3 fit with nothing lost" in sweep_html(ek.sweep(c, "node"))
    True
    """
    rows = found.worst(SHOWN_ROWS)
    told = [
        (shortened(one.scenario), one.status, *["-"] * 6)
        if one.status in UNKNOWN
        else (
            shortened(one.scenario), one.status, f"{one.hard:,}", f"{one.lost:,}",
            f"{one.without_quorum:,}", f"{one.under_min_active:,}", percent(one.fullest),
            f"{one.moves:,}",
        )
        for one in rows
    ]  # fmt: skip
    count = len(found.outlooks)
    heads = ("", "status", "broken", "lost", "no quorum", "short", "fullest", "moves")
    return box(
        [
            heading("Sweep", found.summary),
            table(heads, told),
            *([line(f"… and {count - len(rows):,} more scenarios")] if count > len(rows) else []),
        ]
    )


def frontier_html(found: Any) -> str:
    """Write the points of a frontier.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> "max/mean" in frontier_html(ek.frontier(c, points=2))
    True
    """
    weighed = found.cluster.bytes_dimension >= 0
    rows = [
        (ratio(level), f"{moves:,}", f"{least:,}", *((amount(moved),) if weighed else ()))
        for level, moves, least, moved in zip(
            found.level, found.moves, found.moves_at_least, found.bytes, strict=True
        )
    ]
    unit = (shortened(found.cluster.dimensions[found.cluster.bytes_dimension]) + " moved",)
    heads = ("max/mean", "moves", "at least", *(unit if weighed else ()))
    return box([heading("Frontier", counted(len(rows), "plan")), table(heads, rows)])
