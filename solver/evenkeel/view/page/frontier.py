"""The page of a frontier: how level a cluster can be for how many moves, beside what is proven."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.runtime.figures import amount, data, number
from evenkeel.model.runtime.printable import counted
from evenkeel.view.markup import shortened
from evenkeel.view.page.curves import WIDTH, axis_of, figure, panel
from evenkeel.view.page.document import Section, cards, document, paragraph, searched, table
from evenkeel.view.plots.tradeoff import proven


def frontier_page(found: Any) -> str:
    """Write a frontier as a page of HTML.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[8.0]] * 4, load=[[1.0]] * 8, placement=[[0]] * 8)
    >>> page = frontier_page(ek.frontier(c, points=3, goals=ek.Goals(level=0.0)))
    >>> page.startswith("<!DOCTYPE html>"), "6 moves" in page
    (True, True)
    """
    plans = counted(len(found.results), "plan")
    return document(
        f"Evenkeel: frontier, {plans}",
        _lead(found),
        [
            Section("curve", "How level for how many moves", [_curve(found)]),
            Section("plans", "Plan by plan", [_plans(found)]),
        ],
    )


def _lead(found: Any) -> list[str]:
    """Write what the frontier spans in a sentence, and its ends as figures."""
    cheapest, finest = found.results[0], found.results[-1]
    few, many = int(found.moves[0]), int(found.moves[-1])
    said = (
        f"With {counted(few, 'move')} the fullest node has {number(found.level[0])} times its fair "
        f"share; with {counted(many, 'move')}, {number(found.level[-1])} times."
    )
    if len(found.results) > 1:
        gain = (found.level[:-1] - found.level[1:]) / np.diff(found.moves).clip(1)
        best = int(np.argmax(gain)) + 1
        said += f" Most is gained per move up to {counted(int(found.moves[best]), 'move')}."
    else:
        said += " No plan is both more level and costs more."
    hard = max(one.audit.hard for one in found.results)
    sign = "✓" if hard == 0 else "✗"
    least = float(finest.bounds.ratio.max(initial=1.0))
    figures = [
        ("plans", f"{len(found.results):,}", "of which none beats another"),
        ("cheapest", counted(few, "move"), f"fullest ÷ mean {number(found.level[0])}"),
        ("most level", counted(many, "move"), f"fullest ÷ mean {number(found.level[-1])}"),
        ("no placement below", number(least), "fullest ÷ mean, proven"),
        ("hard violations", f"{hard:,}", "at most, of any plan"),
    ]
    cluster = found.cluster
    if cluster.bytes_dimension >= 0:
        name = shortened(cluster.dimensions[cluster.bytes_dimension])
        ends = f"{data(found.bytes[0], name)} to {data(found.bytes[-1], name)}"
        figures.append(("data moved", ends, name))
    told = "keeps all rules" if hard == 0 else "rules broken"
    return [
        f'<h1>Evenkeel: frontier, <span class="status">{sign} {told}</span></h1>',
        paragraph(said),
        cards(figures),
        paragraph(f"{counted(len(cluster.nodes), 'node')}, "
                  f"{counted(len(cluster.partitions), 'partition')}; seed {cheapest.seed}.", "dim"),
    ]  # fmt: skip


def _curve(found: Any) -> str:
    """Draw a point for each plan, and the line that none can be below or left of."""
    excess = 100.0 * np.maximum(found.level - 1.0, 0.0)
    least, tolerance = proven(found)
    down = axis_of(float(max(excess.max(), tolerance.max(initial=0.0))))
    low, high = _ends(np.concatenate([found.moves, least]))
    at = [round(WIDTH * (float(count) - low) / (high - low)) for count in found.moves]
    y = [down.height(float(one)) for one in excess]
    trail = f"M{at[0]} {y[0]}" + "".join(f"H{x}V{v}" for x, v in zip(at[1:], y[1:], strict=True))
    dots = "".join(f"M{x} {v}h0" for x, v in zip(at, y, strict=True))
    floor = 100.0 * max(0.0, float(found.results[0].bounds.ratio.max(initial=1.0)) - 1.0)
    edge = [round(WIDTH * (float(count) - low) / (high - low)) for count in least]
    heights = [down.height(max(float(one), floor)) for one in tolerance]
    line = f"M{edge[0]} 0" + "".join(f"V{v}H{x}" for v, x in zip(heights, edge[1:], strict=True))
    line += f"V{down.height(floor)}H{WIDTH}"
    drawn = (
        f'<path class="rule least" d="{line}"/><path class="trail" d="{trail}"/>'
        f'<path class="mark now" d="{dots}"/>'
    )
    told = "; ".join(
        f"{counted(int(m), 'move')}: {e:.4g}%" for m, e in zip(found.moves, excess, strict=True)
    )
    title = "fullest node above its fair share, %"
    said = (
        "Across: moves. A point for each plan; the line between them: what is reached for at most "
        "so many moves. Dotted: no plan is to the left of it or below, as is proven for the "
        "tolerances that were asked for."
    )
    middle = f"{(low + high) // 2:,}" if high - low > 1 else ""
    ends = [f"{low:,} moves", middle, f"{high:,} moves"]
    return figure([panel("frontier", title, told, down, drawn)], ends, said)


def _ends(moves: NDArray[np.int64]) -> tuple[int, int]:
    """Return between which numbers of moves all are drawn, with a little room at both ends.

    Examples
    --------
    >>> _ends(np.array([80, 132])), _ends(np.array([3])), _ends(np.array([0, 40]))
    ((77, 135), (2, 4), (0, 42))
    """
    least, most = int(moves.min()), int(moves.max())
    room = max(1, (most - least + 10) // 20)
    low = max(0, least - room)
    return low, most + room + (most + room - low) % 2


def _plans(found: Any) -> str:
    """Lay out the plans, the cheapest first."""
    cluster = found.cluster
    sized = cluster.bytes_dimension >= 0
    unit = (shortened(cluster.dimensions[cluster.bytes_dimension]),) if sized else ()
    rows = [
        (
            f"{i + 1}", f"{found.moves[i]:,}", f"{found.moves_at_least[i]:,}",
            number(float(found.level[i])), number(float(one.bounds.ratio.max(initial=1.0))),
            *((amount(float(found.bytes[i])),) if sized else ()),
            f"{one.comparison.leader_changes:,}", f"{one.audit.hard:,}", one.status,
        )
        for i, one in enumerate(found.results)
    ]  # fmt: skip
    heads = (
        "plan", "moves", "moves at least", "fullest ÷ mean", "at least", *unit, "leader changes",
        "hard violations", "status",
    )  # fmt: skip
    said = "The cheapest first; moves at least: proven for the tolerance of the plan."
    shown = table(said, heads, rows, (len(heads) - 1,))
    return searched(f"Plans ({len(rows):,})", shown)
