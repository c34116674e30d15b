"""What notebooks show: a cluster, a placement, and a result, as small pieces of HTML."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from evenkeel.measure.audit.violations import KINDS
from evenkeel.measure.levelness import Levelness, below_mean_said, levelness
from evenkeel.measure.loads import utilisation
from evenkeel.measure.wanted import wanted_load
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.rules import Rule
from evenkeel.model.runtime.figures import amount, data, percent, ratio
from evenkeel.model.runtime.printable import counted
from evenkeel.view.bars import histogram
from evenkeel.view.layout import least_said
from evenkeel.view.markup import Raw, box, heading, line, shortened, signs, table

SHOWN_ROWS = 6
"""Rows of a list that are spelled out; the rest is counted."""

CLASSES = 24
"""Characters of a histogram."""

SHOWN_DIMENSIONS = 12

LONGEST = 120
"""Characters of a rule."""


def cluster_html(cluster: Cluster) -> str:
    """Write what a cluster is, and how it stands.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> "2 nodes" in cluster_html(c)
    True
    """
    nodes, partitions, level = (
        cluster.nodes,
        cluster.partitions,
        levelness(cluster, cluster.placement),
    )
    dead = len(nodes) - int(level.alive.sum())
    closed = int((level.alive & ~nodes.may_receive).sum())
    wanted = int(partitions.replicas.sum(dtype=np.int64))
    placed = int(np.count_nonzero(cluster.placement.node >= 0))
    told = [
        counted(len(nodes), "node") + (f" ({dead:,} dead)" if dead else ""),
        f"{counted(len(partitions), 'partition')} in "
        f"{counted(len(partitions.group_names), 'group')}",
        f"{counted(wanted, 'replica')} wanted, {placed:,} placed",
    ]
    topology = cluster.topology
    levels = [
        f"{shortened(name)} ({int(count):,})"
        for name, count in zip(topology.tiers, topology.domain_count[:-1], strict=True)
    ]
    total, top = wanted_load(cluster), _top([level])
    room = nodes.capacity[nodes.may_receive].sum(0)
    share = utilisation(total, room)
    rows = [
        (
            shortened(name),
            amount(float(total[d])),
            amount(float(room[d])),
            percent(float(share[d])),
            percent(float(level.most[d])),
            f"{int((level.table[level.alive, d] > 1.0).sum()):,}",
            _nodes_drawn(level, d, top),
        )
        for d, name in enumerate(cluster.dimensions[:SHOWN_DIMENSIONS])
    ]
    heads = (
        "",
        "load",
        "capacity",
        "used",
        "fullest",
        "over",
        f"nodes, 0 to {top:.0%} full",
    )
    return box(
        [
            heading("Cluster", " · ".join(told)),
            line("tiers: " + ", ".join(levels)) if levels else "",
            line(f"{closed:,} more nodes accept nothing") if closed else "",
            table(heads, rows),
            *_left_out(len(cluster.dimensions) - SHOWN_DIMENSIONS, "dimensions"),
            *(line(f"rule {i}: {_rule(rule)}") for i, rule in _first(cluster.rules)),
            *_left_out(len(cluster.rules) - SHOWN_ROWS, "rules"),
        ]
    )


def placement_html(placement: Placement) -> str:
    """Write what a placement is.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> "<strong>0</strong>" in placement_html(c.placement)
    True
    """
    held = placement.node[placement.node >= 0]
    empty = len(placement.node) - len(held)
    led = int(np.count_nonzero(placement.leader_node >= 0))
    uniform = placement.slots is not None
    slots = f"{counted(placement.slots or 0, 'slot')} each" if uniform else "rows of any length"
    told = (
        f"{counted(len(placement), 'partition')}, {slots} · {counted(len(held), 'replica')} placed"
    )
    rows = []
    for p in range(min(len(placement), SHOWN_ROWS)):
        start, end = int(placement.first[p]), int(placement.first[p + 1])
        cells = ["-" if n < 0 else str(n) for n in placement.node[start:end].tolist()]
        lead = int(placement.leader[p])
        if lead >= 0:
            cells[lead] = f"<strong>{cells[lead]}</strong>"
        rows.append((str(p), Raw(" · ".join(cells))))
    return box(
        [
            heading("Placement", told + (f", {counted(empty, 'slot')} empty" if empty else "")),
            line(f"{counted(led, 'partition')} with a leader · {_spread(placement)}"),
            table(("partition", "node of each slot, the leader in bold"), rows),
            *_left_out(len(placement) - SHOWN_ROWS, "partitions"),
        ]
    )


def result_html(result: Any) -> str:
    """Write what a solve came to.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> "optimal" in result_html(ek.solve(c, goals=ek.Goals(level=0.0)))
    True
    """
    compared, cluster = result.comparison, result.cluster
    before, after = result.levelness_before, result.levelness
    top = _top([before, after])
    gaps = {
        one.name: f"; gap {one.gap:.2%}" if np.isfinite(one.gap) else "; gap unknown"
        for one in result.proven
    }
    rows = [
        (
            shortened(name),
            f"{ratio(before.ratio[d])} → {ratio(after.ratio[d])}",
            f"{ratio(result.bounds.ratio[d])} by {result.bounds.level_term[d]}"
            f"{gaps.get(f'level of {name}', '')}",
            f"{percent(before.most[d])} → {percent(after.most[d])}",
            _nodes_drawn(before, d, top),
            _nodes_drawn(after, d, top),
        )
        for d, name in enumerate(cluster.dimensions[:SHOWN_DIMENSIONS])
    ]
    heads = (
        "",
        "max/mean",
        least_said(result),
        "fullest",
        f"nodes before, 0 to {top:.0%} full",
        "nodes after",
    )
    moved = (
        f"{counted(compared.moves, 'move')}; {counted(compared.forced, 'replica')} had to move · "
        f"{counted(compared.leader_changes, 'leader change')}"
    )
    if cluster.bytes_dimension >= 0:
        unit = shortened(cluster.dimensions[cluster.bytes_dimension])
        moved += f" · {unit} moved: {data(compared.bytes_moved, unit)}"
    broken = [
        (
            f"{_sign(kind, result.audit.counts[kind])} {kind}",
            f"{result.audit_before.counts[kind]:,} → {result.audit.counts[kind]:,}",
            Raw(line(KINDS[kind].meaning)),
        )
        for kind in KINDS
        if result.audit.counts[kind] or result.audit_before.counts[kind]
    ]
    sign = "✓" if result.success else "✗"
    return box(
        [
            heading(f"{sign} {result.status}", f"· {result.method} · {result.message}"),
            line(moved),
            *_short_of_goals(result),
            *(line(str(one)) for one in result.proven if not one.name.startswith("level")),
            *(line(f"! {warning}") for warning in result.warnings),
            table(heads, rows),
            *_left_out(len(cluster.dimensions) - SHOWN_DIMENSIONS, "dimensions"),
            *(line(said) for said in [below_mean_said([before, after])] if said),
            table(("rules", "broken", "what it means"), broken) or line("no rule was broken"),
            _unplaced(len(result.unplaced_replicas)),
        ]
    )


def _short_of_goals(result: Any) -> list[str]:
    if result.cost is not None or (result.goals_reached and result.audit.ok):
        return []
    if not result.goals_asked:
        return [] if result.audit.ok else [line("Rules are still broken")]
    least, term = result.bounds.moves_level, result.bounds.moves_term
    short = "The goals were not reached" if result.audit.ok else "Rules are still broken"
    takes = f"; the goals take at least {counted(least, 'move')}, by {term}" if least else ""
    return [line(short + takes)]


def _unplaced(count: int) -> str:
    have = "has" if count == 1 else "have"
    said = f"{counted(count, 'replica')} {have} no node: see result.unplaced"
    return line(said) if count else ""


def _sign(kind: str, count: int) -> str:
    return "✓" if count == 0 else "✗" if KINDS[kind].hard else "~"


def _top(states: Sequence[Levelness]) -> float:
    """Return where the histograms end: beyond the fullest node and beyond capacity."""
    seen = np.concatenate([level.table[level.alive].ravel() for level in states])
    return min(5.0, max(1.1, float(seen[np.isfinite(seen)].max(initial=0.0))))


def _nodes_drawn(level: Levelness, d: int, top: float) -> Raw:
    return signs(histogram(np.minimum(level.table[level.alive, d], top), top, CLASSES, mark=1.0))


def _spread(placement: Placement) -> str:
    """Say how many nodes hold something, and how much."""
    held = placement.node[placement.node >= 0]
    if len(held) == 0:
        return "no node holds any"
    count = np.bincount(held)
    used = count[count > 0]
    least, most = int(used.min()), int(used.max())
    held_by = f"{least:,} to {most:,} replicas" if least < most else counted(most, "replica")
    return f"{counted(len(used), 'node')} in use, {held_by} on each"


def _rule(rule: Rule) -> str:
    said = ", ".join(
        f"{one.name}={value}" for one in fields(rule) if (value := getattr(rule, one.name))
    )
    return said if len(said) <= LONGEST else f"{said[: LONGEST - 1]}…"


def _first(rules: Sequence[Rule]) -> list[tuple[int, Rule]]:
    return list(enumerate(rules[:SHOWN_ROWS]))


def _left_out(count: int, what: str) -> list[str]:
    return [line(f"… and {count:,} more {what}")] if count > 0 else []
