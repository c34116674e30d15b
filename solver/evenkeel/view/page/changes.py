"""What a page says of the changes: how many, from where to where, and the rows themselves."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenkeel.model.runtime.figures import amount
from evenkeel.model.runtime.printable import counted
from evenkeel.model.topology import NODE_TIER
from evenkeel.result_rows import bytes_of, leader_changes_of, led_elsewhere, moves_of
from evenkeel.view.markup import Raw, shortened, text
from evenkeel.view.page.charts import strips
from evenkeel.view.page.document import left_out, matrix, paragraph, searched, table
from evenkeel.view.plots.moves import Flows, few, flows_between

SHOWN_MOVES = 500
SHOWN_CHANGES = 300


def change_parts(result: Any) -> list[str]:
    """Write how many moves there are beside what is proven of them, and between which domains."""
    cluster, compared = result.cluster, result.comparison
    if not compared.moves:
        return [paragraph("No replica moves."), _amounts(result)]
    tiers = cluster.topology.tiers
    if not tiers:
        return [_amounts(result), paragraph("The cluster has no tiers to sum the moves up by.")]
    flows = flows_between(cluster, cluster.placement, result.placement)
    inside = sum(
        int(flows.count[i, j])
        for i, source in enumerate(flows.sources)
        for j, target in enumerate(flows.targets)
        if source == target
    )
    tier = shortened(tiers[0])
    said = f"{counted(compared.moves, 'move')}, {inside:,} of them within their {tier}."
    return [
        _amounts(result),
        f"<h3>From {text(tier)} to {text(tier)}</h3>",
        paragraph(said),
        _matrix(few(flows), tier),
    ]


def _amounts(result: Any) -> str:
    """Lay out the moves beside those that are proven to be needed."""
    compared, bounds = result.comparison, result.bounds
    counts = [
        ("moves", compared.moves, "replicas that join a node"),
        ("at least", bounds.moves_level, f"to reach the goals, proven by {bounds.moves_term}"),
        ("to mend", bounds.moves_feasible, "at least, to keep all rules"),
        ("forced", compared.forced, "had no node, or one that may not keep them"),
    ]
    if result.cost is not None:
        del counts[1]  # no goals to reach
    full = max(1, *(count for _, count, _ in counts))
    rows = [
        (name, f"{count:,}", Raw(f"{text(said)}{strips([('now', count / full)])}"))
        for name, count, said in counts
    ]
    rows += [
        ("leader changes", f"{compared.leader_changes:,}", Raw("they move no data")),
        ("removed", f"{compared.removed:,}", Raw("replicas without another in their place")),
    ]
    return table("Counts of replicas.", ("what", "count", "meaning"), rows, (2,))


def _matrix(flows: Flows, tier: str) -> str:
    """Lay out moves by source and target, deeper where there are more."""
    most = max(1, int(flows.count.max(initial=0)))
    rows = [
        (
            shortened(name),
            [*((f"{count:,}", count / most) for count in row.tolist()), (f"{row.sum():,}", 0.0)],
        )
        for name, row in zip(flows.sources, flows.count, strict=True)
    ]
    totals = [*flows.count.sum(0).tolist(), int(flows.count.sum())]
    rows.append(("all", [(f"{count:,}", 0.0) for count in totals]))
    caption = f"Moves from the {tier} of the row to the {tier} of the column."
    heads = ["from \\ to", *map(shortened, flows.targets), "all"]
    return matrix(caption, heads, rows)


def move_table(result: Any) -> list[str]:
    """Lay out the moves, the largest first where they have a size."""
    cluster = result.cluster
    moved = np.flatnonzero(result.comparison.joined)
    if not len(moved):
        return []
    sized = cluster.bytes_dimension >= 0
    if sized:
        size = np.array(bytes_of(cluster, result.placement, moved))
        moved = moved[np.argsort(-size, kind="stable")]
    rows = [
        (
            shortened(one.partition), f"{one.slot}", _node(one.source), _node(one.target),
            *((amount(one.bytes),) if one.bytes is not None else ()),
        )
        for one in moves_of(cluster, result.placement, moved[:SHOWN_MOVES])
    ]  # fmt: skip
    unit = (shortened(cluster.dimensions[cluster.bytes_dimension]),) if sized else ()
    heads = ("partition", "slot", "from", "to", *unit)
    order = "The largest first." if sized else "In order of partition and slot."
    note = left_out(len(moved) - SHOWN_MOVES, "moves")
    shown = table(order, heads, rows, (2, 3))
    return [searched(f"Moves ({len(moved):,})", shown, note=note)]


def leader_table(result: Any) -> list[str]:
    """Lay out which partitions another node leads."""
    changed = led_elsewhere(result.cluster, result.placement)
    if not len(changed):
        return []
    rows: Sequence[Sequence[str]] = [
        (shortened(one.partition), _node(one.source), _node(one.target))
        for one in leader_changes_of(result.cluster, result.placement, changed[:SHOWN_CHANGES])
    ]
    note = left_out(len(changed) - SHOWN_CHANGES, "partitions")
    title = f"Partitions led by another {NODE_TIER} ({len(changed):,})"
    said = "In order of partition; those that nobody alive led are listed, too."
    shown = table(said, ("partition", "from", "to"), rows, (1, 2))
    return [searched(title, shown, note=note)]


def _node(name: str | None) -> str:
    return "nowhere" if name is None else shortened(name)
