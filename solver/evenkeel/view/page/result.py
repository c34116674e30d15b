"""The page of a result: the verdict first, then the figures behind it."""

from dataclasses import fields
from typing import Any

import numpy as np

from evenkeel.model.runtime.figures import data, quantity
from evenkeel.model.runtime.printable import counted
from evenkeel.view.markup import shortened, text
from evenkeel.view.page.broken import broken_parts
from evenkeel.view.page.changes import change_parts, leader_table, move_table
from evenkeel.view.page.document import Section, cards, document, paragraph, table
from evenkeel.view.page.nodes import domain_parts, level_parts, node_table


def result_page(result: Any) -> str:
    """Write what came of a solve as a page of HTML.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> page = result_page(ek.solve(c, goals=ek.Goals(level=0.0)))
    >>> page.startswith("<!DOCTYPE html>"), "2 moves" in page
    (True, True)
    """
    title = f"Evenkeel: {result.status}, {counted(result.comparison.moves, 'move')}"
    return document(
        title,
        _lead(result),
        [
            Section("level", "How level", level_parts(result) + domain_parts(result)),
            Section("bounds", "How far from the best", _bounds(result)),
            Section("changes", "What moves", change_parts(result)),
            Section("rules", "What was broken", broken_parts(result)),
            Section(
                "rows", "Row by row",
                [node_table(result), *move_table(result), *leader_table(result)],
            ),
        ],
    )  # fmt: skip


def _lead(result: Any) -> list[str]:
    """Write the verdict in a sentence, and the figures that people look for first."""
    cluster, compared = result.cluster, result.comparison
    sign = "✓" if result.success else "✗"
    wanted = int(cluster.partitions.replicas.sum(dtype=np.int64))
    alive = int(result.levelness.alive.sum())
    size = (
        f"{counted(len(cluster.nodes), 'node')}, {alive:,} alive; "
        f"{counted(len(cluster.partitions), 'partition')}; {counted(wanted, 'replica')} wanted"
    )
    return [
        f'<h1>Evenkeel: <span class="status">{sign} {text(result.status)}</span></h1>',
        paragraph(f"{result.message}"),
        paragraph(_sentence(result)),
        *(paragraph(f"Warning: {warning}") for warning in result.warnings),
        cards(_figures(result, wanted)),
        paragraph(
            f"Method {result.method}, seed {result.seed}, stopped by: {result.stop_reason}. "
            f"{size}; {counted(compared.forced, 'replica')} had to move.", "dim",
        ),
    ]  # fmt: skip


def _sentence(result: Any) -> str:
    """Say in a sentence how level the cluster has become, and at what price."""
    compared, was, now = result.comparison, result.levelness_before.ratio, result.levelness.ratio
    price = (
        f"{counted(compared.moves, 'move')} and {counted(compared.leader_changes, 'leader change')}"
    )
    if not len(now):
        return f"{price}."
    d = int(np.argmax(now))
    name = shortened(result.cluster.dimensions[d])
    return (
        f"With {price}, the fullest node has {_times(now[d])} the mean in {name}, "
        f"where it was {_times(was[d])}; no other dimension is less level."
    )


def _figures(result: Any, wanted: int) -> list[tuple[str, str, str]]:
    """Return the figures that stand out, with what to compare each with."""
    cluster, compared = result.cluster, result.comparison
    least = (
        "" if result.cost is not None else f"the goals take at least {result.bounds.moves_level:,}"
    )
    found = [
        ("moves", f"{compared.moves:,}", f"{compared.moves / max(1, wanted):.1%} of the replicas"),
        ("leader changes", f"{compared.leader_changes:,}", "they move no data"),
        (
            "goals", "reached" if result.goals_reached else "missed", least,
        ),
        (
            "hard violations", f"{result.audit_before.hard:,} → {result.audit.hard:,}",
            "before → after",
        ),
        ("unplaced", f"{len(result.unplaced_replicas):,}", "replicas without a node"),
    ]  # fmt: skip
    if not result.goals_asked:
        found[2] = ("goals", "none", "none were asked for")
    if result.cost is not None:
        found[2] = ("cost", f"{result.cost.total:,.0f}", "what was to be least")
    if cluster.bytes_dimension >= 0:
        name = shortened(cluster.dimensions[cluster.bytes_dimension])
        share = float(compared.load_moved[cluster.bytes_dimension])
        found.insert(
            1, ("data moved", data(compared.bytes_moved, name), f"{name}, {share:.1%} of all of it")
        )
    return found


def _bounds(result: Any) -> list[str]:
    """Lay out what was reached beside what no placement can beat."""
    if not result.audit.ok:
        said = "Rules are still broken; bounds are proven of placements that keep them all."
        return [paragraph(said)]
    rows = [(shortened(one.name), *one.figures, one.reason) for one in result.proven]
    heads = ("figure", "reached", "at least", "gap", "proven by")
    parts = [table("No placement that keeps all rules has less than the bound, but for leader "
                   "changes: none that leaves replicas there. The gap is how far above it the "
                   "result is.", heads, rows, (4,))]  # fmt: skip
    if result.cost is not None:
        costs = [
            (one.name.replace("_", " "), quantity(np.sum(getattr(result.cost, one.name))))
            for one in fields(result.cost)
        ]
        parts.append(table("What the placement costs.", ("part", "cost"), costs, ()))
    return parts


def _times(value: float) -> str:
    return f"{value:.3f} times" if np.isfinite(value) else "infinitely many times"
