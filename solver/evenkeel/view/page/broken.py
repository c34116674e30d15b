"""What a page says of rules: what was broken, what was mended, and what was not and why."""

from typing import Any

import numpy as np

from evenkeel.measure.audit.violations import KINDS
from evenkeel.model.runtime.figures import quantity
from evenkeel.model.runtime.printable import counted
from evenkeel.result_rows import unplaced_of
from evenkeel.view.markup import shortened
from evenkeel.view.page.document import left_out, paragraph, searched, table

SHOWN_ROWS = 100
"""Violations that are spelled out; of each kind as many."""

SHOWN_UNPLACED = 50


def broken_parts(result: Any) -> list[str]:
    """Write what was broken and what is, with the reasons that are known."""
    before, after = result.audit_before, result.audit
    rows = [
        (
            kind, "hard" if KINDS[kind].hard else "wish", f"{before.counts[kind]:,}",
            f"{after.counts[kind]:,}", _outcome(before.counts[kind], after.counts[kind]),
            KINDS[kind].meaning,
        )
        for kind in KINDS
        if before.counts[kind] or after.counts[kind]
    ]  # fmt: skip
    if not rows:
        return [paragraph("No rule was broken before, and none is now.")]
    heads = ("rule", "strength", "before", "after", "outcome", "meaning")
    regressions = ", ".join(f"{n:,} {kind}" for kind, n in result.regressions.items() if n)
    worse = f"Broken now, and not before: {regressions}." if regressions else ""
    return [
        table("How often each rule is broken.", heads, rows, (1, 4, 5)),
        *([paragraph(worse)] if worse else []),
        *_unplaced(result),
        *_worst(result),
    ]


def _outcome(before: int, after: int) -> str:
    """Say what became of a kind, with a sign and in words."""
    if after == 0:
        return "✓ mended"
    return "✗ left" if after == before else "~ in part" if after < before else "✗ more than before"


def _unplaced(result: Any) -> list[str]:
    """Lay out replicas without a node, with what keeps them off the nodes, the commonest first."""
    unplaced = result.unplaced_replicas
    if not len(unplaced):
        return []
    shown = unplaced_of(
        result.cluster, result.placement, unplaced[:SHOWN_UNPLACED], result.levelness.loads,
        result.spent,
    )  # fmt: skip
    rows = []
    for one in shown:
        blocked = sorted(one.blocked.items(), key=lambda item: -item[1])
        said = ", ".join(f"{counted(n, 'node')}: {reason}" for reason, n in blocked)
        rows.append((shortened(one.partition), f"{one.slot}", said))
    heads = ("partition", "slot", "kept off its nodes by")
    note = left_out(len(unplaced) - SHOWN_UNPLACED, "replicas")
    return [
        "<h3>Replicas without a node</h3>",
        searched(
            f"Unplaced ({len(unplaced):,})",
            table("What keeps each off which nodes.", heads, rows, (2,)), note=note,
        ),
    ]  # fmt: skip


def _worst(result: Any) -> list[str]:
    """Lay out what is still broken, the largest amounts of each kind first."""
    found = result.audit.found
    if not found:
        return []
    each = max(1, SHOWN_ROWS // len(found))
    rows = []
    for one in found:
        largest = np.argsort(-one.amount, kind="stable")[:each]
        for row in one.take(largest).rows(result.cluster):
            where = {
                "partition": row.partition, "group": row.group, "node": row.node,
                row.tier: row.domain, "dimension": row.dimension, "asked": row.expression,
            }  # fmt: skip
            said = " · ".join(f"{name} {shortened(at)}" for name, at in where.items() if at)
            rows.append((row.kind, said, quantity(row.amount)))
    count = sum(len(one.amount) for one in found)
    note = left_out(count - len(rows), "violations")
    shown = table("The largest amounts of each kind.", ("rule", "where", "amount"), rows, (1,))
    return [
        "<h3>Still broken</h3>",
        searched(f"Violations ({count:,})", shown, note=note),
    ]
