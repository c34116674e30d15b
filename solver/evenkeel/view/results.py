"""Render a result as tables, a terminal report, HTML for notebooks and an HTML page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import KINDS, Audit
from evenkeel.measure.compare import relocations
from evenkeel.measure.levelness import Levelness, mean_note
from evenkeel.measure.loads import utilisation
from evenkeel.model.cluster import Cluster
from evenkeel.model.intake.stranded import (
    left_alone_message,
    stranded_names,
    unavailable_message,
    unjudged,
)
from evenkeel.model.placement import Placement
from evenkeel.model.rules import readable
from evenkeel.model.runtime.figures import amount, data, duration, number, percent, quantity
from evenkeel.model.runtime.printable import counted, some_of
from evenkeel.model.runtime.table import Column, Pair, Spread, Table
from evenkeel.model.topology import NODE_TIER
from evenkeel.result_rows import (
    GroupRow,
    bytes_of,
    down_nodes,
    group_rows,
    held_back,
    leader_changes_of,
    led_elsewhere,
    lost_message,
    moves_of,
    unplaced_of,
    waiting_replicas,
)
from evenkeel.systems.registry import system_of
from evenkeel.view.charts import (
    Lineup,
    Panel,
    axis_of_counts,
    axis_of_shares,
    node_chart,
    widest_domains,
)
from evenkeel.view.html import Section, cards, dim, notebook, page, shortened, subheading, verdict
from evenkeel.view.plots.moves import Flows, few, flows_between
from evenkeel.view.terminal import SHOWN_ROWS, WIDTH, Line, rendered

SHOWN_DIMENSIONS = 12
SHOWN_NODES = 400
SHOWN_DOMAINS = 60
SHOWN_MOVES = 500
SHOWN_CHANGES = 300
SHOWN_VIOLATIONS = 100
SHOWN_UNPLACED = 50  # rows of a page
FEW_DOMAINS = 24  # domains up to which their figures have strips
LONGEST_NAME = 24

WORST_GROUPS = 10  # groups that a view by group shows
NAMED_NODES = 5  # nodes that are named where they are not alive; the rest is counted
STATUS_STYLE = {
    "optimal": "green", "feasible": "green", "missed": "yellow", "partial": "yellow",
    "infeasible": "red",
}  # fmt: skip


def report(result: Any, *, width: int = WIDTH, styled: bool = False) -> str:
    """Report a result for a terminal."""
    return rendered(_parts(result), width, styled)


def result_html(result: Any) -> str:
    """Report a result for a notebook."""
    return notebook(_parts(result, SHOWN_DIMENSIONS))


def _parts(result: Any, dimensions: int | None = None) -> list[Line | Table]:
    """Return the lines and tables of a report, with the first so many dimensions."""
    cluster = result.cluster
    states = (result.levelness_before, result.levelness)
    style = f"bold {STATUS_STYLE[result.status]}"
    return [
        Line(f"Evenkeel · {result.method} · {_sign(result)} {result.status}", style),
        Line(f"{result.message} {STOPPED.get(result.stop_reason, '')}".rstrip()),
        Line(_size(cluster, result.levelness), "dim"),
        *(Line(f"! {caption}") for caption in (*absent(cluster), *result.warnings)),
        dimension_table(cluster, states, result, dimensions),
        *(Line(caption, "dim") for caption in [population_note(cluster)] if caption),
        *(Line(f"goal: {caption}", "dim") for caption in result.targets),
        *(Line(caption) for caption in [result.leaders_note] if caption),
        *([proven_table(result, SHOWN_ROWS)] if result.proven else []),
        movement_table(result),
        *_rules([result.audit_before, result.audit]),
        *(_violations(result.audit, SHOWN_ROWS) if result.audit.hard else ()),
        *_unplaced(result, SHOWN_ROWS),
        *_times(result.timings),
    ]


def report_state(
    cluster: Cluster,
    audited: Audit,
    level: Levelness,
    *,
    goals: Mapping[str, Any] | None = None,
    disks: str = "",  # what those inside nodes break
    width: int = WIDTH,
    styled: bool = False,
) -> str:
    """Report how a placement is as it stands: what it breaks, how level it is, and goals missed."""
    caption = "no hard rule is broken" if audited.ok else counted(audited.hard, "hard violation")
    caption += " between nodes" if disks else ""
    waiting = waiting_replicas(cluster, cluster.placement)
    idle = stranded_names(cluster)
    but = [f"nodes that are down hold {counted(waiting, 'replica')}"] * bool(waiting)
    but += [one for one in [unfilled_message(cluster)] if one]
    but += [f"no live replica surely has all data of {counted(len(idle), 'partition')}"] * bool(
        idle
    )
    if audited.ok and but:
        caption += f", but {' and '.join(but)}"
    alone = left_alone_message(cluster) if audited.ok and unjudged(cluster) else ""
    sign = "✗" if but or disks or alone or not audited.ok else "✓"
    parts: list[Line | Table] = [
        Line(f"{sign} {alone or caption}", "bold"),
        *([Line(f"✗ {disks}")] if disks else []),
        Line(_size(cluster, level), "dim"),
        *(
            Line(f"! {message}")
            for message in (
                _not_alive(cluster),
                lost_message(cluster),
                unavailable_message(cluster),
            )
            if message
        ),
        dimension_table(cluster, (level,)),
        *(Line(note, "dim") for note in [population_note(cluster)] if note),
        *_rules([audited]),
        *_violations(audited, SHOWN_ROWS),
    ]
    if goals:
        least = counted(goals["moves_at_least"], "move")
        if inside := goals.get("disk_moves_at_least"):
            least += f" between nodes, and {inside:,} inside nodes"
        parts[1:1] = (
            [Line("✓ all goals are met")] if goals["met"]
            else [Line(f"✗ goal missed: {one}") for one in goals["missed"]]
            + [Line(f"the goals take at least {least}", "dim")]
        )  # fmt: skip
    return rendered(parts, width, styled)


def absent(cluster: Cluster) -> list[str]:
    """Return messages on replicas that are nowhere: those of lost nodes, and empty slots."""
    return [one for one in (lost_message(cluster), unfilled_message(cluster)) if one]


def unfilled_message(cluster: Cluster) -> str:
    """Return how many replicas are on no node, and cannot be placed by orders; "" for none."""
    count = system_of(cluster).unfilled(cluster)
    verb = "is" if count == 1 else "are"
    return f"{counted(count, 'replica')} {verb} on no node, and no order places any" * bool(count)


def result_page(result: Any) -> str:
    """Write what came of a solve as a page of HTML."""
    lineup = Lineup.of(result.cluster)
    return page(
        f"Evenkeel: {result.status}, {counted(result.comparison.moves, 'move')}",
        _lead(result),
        [
            Section("level", "How level", [*_levels(result, lineup), *_domains(result)]),
            Section("bounds", "How far from the best", _bounds(result)),
            Section("changes", "What moves", _changes(result)),
            Section("rules", "What was broken", _broken(result)),
            Section("rows", "Row by row", [*_rows(result)]),
        ],
    )


def moves_table(result: Any) -> Table:
    """Return the table for files: moves, other leader changes, and moves between disks of nodes."""
    names = ("kind", "partition", "slot", "from", "to", "bytes")
    rows = [
        ("move", one.partition, one.slot, one.source, one.target, one.bytes) for one in result.moves
    ]
    rows += [
        ("leader", one.partition, None, one.source, one.target, None)
        for one in result.leader_changes
    ]
    rows += [
        ("disk", one.partition, one.slot, one.source, one.target, one.bytes)
        for one in result.disk_moves
    ]
    return Table.of(names, rows)


def dimension_table(
    cluster: Cluster, states: Sequence[Levelness], result: Any = None, most: int | None = None
) -> Table:
    """Lay out how full nodes are in one or two states: a row per dimension, one of leaders."""
    paired = _both if len(states) > 1 else _alone
    names = [shortened(name, LONGEST_NAME) for name in cluster.dimensions[:most]]
    seen = [state.table[state.alive] for state in states]
    finite = np.concatenate([table[np.isfinite(table)] for table in seen])
    top = max(1.05, float(finite.max(initial=0.0)) * 1.02)
    leading = np.any([(one.leader_share > 0.0) | (one.leaders > 0) for one in states], axis=0)
    led = [state.leaders[state.alive & leading] for state in states]
    leads = any(state.leaders.any() for state in states)
    count = range(len(names))

    def cells(of: Any, leaders: Any) -> list[Any]:
        found = [paired([of(state, d) for state in states]) for d in count]
        return found + ([paired([*map(leaders, states, led)])] if leads else [])

    over = 1.0 + 1e-9
    columns = [
        Column("dimension", names + (["leaders"] if leads else []), short=" ", letters=0),
        Column("max/mean", cells(lambda s, d: s.ratio[d] if s.loads[:, d].any() else None,
                                 lambda s, _: s.leader_ratio), number),
    ]  # fmt: skip
    if result is not None and result.status != "infeasible":
        least = [
            result.bounds.ratio[d] if any(one.loads[:, d].any() for one in states) else None
            for d in count
        ]
        least += [None] if leads else []
        columns.append(Column(_describe_least(result), least, number))
    columns += [
        Column("fullest node", cells(lambda s, d: s.most[d], lambda _, n: f"{n.max(initial=0):,}"),
               percent, "max"),
        Column("emptiest node", cells(lambda s, d: s.least[d],
               lambda _, n: f"{n.min(initial=int(n.max(initial=0))):,}"), percent, "min"),
        Column("standard deviation", cells(lambda s, d: s.deviation[d],
               lambda _, n: f"{n.std() if len(n) else 0.0:,.1f}"), percent, "std"),
        Column("nodes over capacity", cells(lambda s, d: int((s.table[s.alive, d] > over).sum()),
               lambda *_: ""), lambda n: f"{n:,}" if n else "-", "over"),
        Column("", [paired([Spread(table[:, d], top) for table in seen]) for d in count]
               + ([paired([""] * len(states))] if leads else [])),
    ]  # fmt: skip
    caption = "Utilisation is load as a share of the node's capacity, before → after"
    caption = f"{'; '.join(filter(None, [caption, population_note(cluster)]))}."
    return Table(columns, caption, left=len(cluster.dimensions) - len(names), what="dimensions")


def population_note(cluster: Cluster) -> str:
    """Return over which nodes figures are, where some that are alive take no replicas."""
    note = mean_note(cluster)
    more = "; max, min and std are over these, of leaders over those that may lead or do"
    return f"{note}{more}" if note else ""


def _both(values: Sequence[Any]) -> Any:
    return Pair(*values)


def _alone(values: Sequence[Any]) -> Any:
    return values[0]


def _describe_least(result: Any) -> str:
    """Return what heads bounds of levels: of a placement that lacks something they say nothing."""
    return "at least" if result.audit.ok else "if complete"


def proven_table(result: Any, most: int | None = None) -> Table:
    """Lay out what was reached against what is proven, with the gap and the term that binds."""
    shown = result.proven[:most]
    reached, least, gap = (
        zip(*(one.figures for one in shown), strict=True) if shown else ((), (), ())
    )
    return Table(
        [
            Column("proven", [one.name for one in shown]),
            Column("reached", reached, str),
            Column("at least", least, str),
            Column("gap", gap, str),
            Column("by", ["none are needed" if one.value == 0 and one.least == 0
                          else in_words(one.reason) for one in shown], letters=0, faint=True),
        ],
        "No placement that keeps all rules has less than the bound, but for leader changes: none "
        "that leaves replicas there. The gap is how far above it the result is.",
        left=len(result.proven) - len(shown), what="figures",
    )  # fmt: skip


# what ended a search before its end
STOPPED = {
    "time": "The time limit ended the search.",
    "work": "The work limit ended the search.",
    "interrupted": "The search was interrupted.",
}

# terms of bounds, for people
TERMS = {
    "nothing": "no bound is proven",
    "aggregate": "the total of all nodes",
    "forced moves": "replicas that must move",
    "overfull nodes": "nodes above the goal",
    "prices of leading": "leads that must be passed on",
    "leaders that left": "leaders whose replica moves away",
    "largest replica": "the size of the largest replica",
}


def in_words(term: str) -> str:
    """Return the term of a bound for people, with what follows a comma."""
    name, comma, rest = term.partition(",")
    return f"{TERMS.get(name, name)}{comma}{rest}"


def plain(kind: str) -> str:
    """Return the name of a rule for people."""
    return kind.replace("_", " ")


def movement_table(result: Any) -> Table:
    """Lay out the moves against the fewest that are proven to be needed."""
    compared, bounds, cluster = result.comparison, result.bounds, result.cluster
    proven = result.metrics["moves_at_least"]
    wanted = max(1, int(cluster.partitions.replicas.sum(dtype=np.int64)))
    to_reach = "at least" if result.audit.ok and result.goals_reached else "to the goals"
    share = f"{compared.moves / wanted:.1%} of the replicas, {_standing(result)}"
    forced = "replicas without a node, or on one that they must leave"
    beside = relocations(cluster.placement, result.placement) - compared.moves
    if beside and compared.forced > bounds.moves_feasible:
        forced += "; one that joins another of its partition is no move"
    rows = [
        ("moves", compared.moves, share),
        (to_reach, proven,
         f"no fewer reach the goals, proven by {in_words(bounds.moves_term)}" if proven
         else "no move is proven to be needed for the goals"),
        ("to repair", bounds.moves_feasible, "no fewer keep the rules (proven)"),
        ("forced", compared.forced, forced),
    ]  # fmt: skip
    if result.status == "infeasible":
        del rows[1:3]  # no placement keeps the rules
    elif result.cost is not None or not result.goals_asked:
        del rows[1]  # no goals to reach
    if beside:
        text = "to nodes with another of their partition, which count as no moves"
        rows.insert(1, ("moved beside", beside, text))
    full = max(1, *(count for _, count, _ in rows))
    bars = [count / full for _, count, _ in rows]
    rows.append(("leader changes", compared.leader_changes, _data_of_leads(result)))
    if (disks := result.disks) is not None:
        text = f"inside nodes, at least {disks.moves_at_least:,} for where replicas are (proven)"
        rows.append(("between disks", disks.moves, text))
    if compared.removed:
        rows.append(("removed", compared.removed, "replicas without another in their place"))
    names, counts, meanings = map(list, zip(*rows, strict=True))
    shown: list[Any] = counts
    if cluster.bytes_dimension >= 0:
        name = cluster.dimensions[cluster.bytes_dimension]
        part = float(compared.load_moved[cluster.bytes_dimension])
        names.append("data moved")
        shown.append(data(compared.bytes_moved, name))
        meanings.append(f"{shortened(name)}, {part:.1%} of all of it")
    bars += [0.0] * (len(names) - len(bars))
    return Table(
        [
            Column("movement", names),
            Column("count", shown, "{:,}".format, " ", bars),
            Column("meaning", meanings, short=" ", letters=0, faint=True),
        ],
        "Counts of replicas.",
    )


def _data_of_leads(result: Any) -> str:
    """Say how many leaders change with a replica that moves; the others move no data."""
    leads = result.placement.leader_replica[led_elsewhere(result.cluster, result.placement)]
    moved = int(np.count_nonzero(result.comparison.joined[leads[leads >= 0]]))
    others = "" if moved >= result.comparison.leader_changes else "; the others move no data"
    text = f"{moved:,} with the replica that moves{others}" if moved else "they move no data"
    lost = len(leads) - result.comparison.leader_changes
    return f"{text}; {lost:,} more had no live leader, or have none" if lost > 0 else text


def _standing(result: Any) -> str:
    """Say how the moves of a result stand to the fewest that could reach the goals."""
    if result.cost is not None:
        return "priced, not counted"
    if not result.audit.ok:
        return "rules are still broken"
    if not result.goals_asked:
        return "no goals were asked for"
    if not result.goals_reached:
        return "the goals were not reached"
    if result.gap.moves <= 0:
        return "the fewest possible (proven)"
    if not result.bounds.moves_level:
        return "none is proven to be needed"
    return f"{result.gap.moves:.1%} more than are proven to be needed"


def _broken_kinds(audits: Sequence[Audit]) -> list[str]:
    """Return the rules that some audit found broken, in their usual order."""
    return [kind for kind in KINDS if any(one.counts[kind] for one in audits)]


def _rules(audits: Sequence[Audit]) -> list[Line | Table]:
    """Lay out how often each rule is broken; a line says so where none is."""
    broken = _broken_kinds(audits)
    if not broken:
        return [Line("rules  none broken")]
    signs = [
        ("✗" if KINDS[kind].hard else "~") if audits[-1].counts[kind] else "✓" for kind in broken
    ]
    heads = ("before", "after") if len(audits) > 1 else ("broken",)
    names = [f"{sign} {plain(kind)}" for sign, kind in zip(signs, broken, strict=True)]
    return [
        Table(
            [
                Column("rules", names),
                *(
                    Column(head, [one.counts[kind] or "-" for kind in broken], "{:,}".format)
                    for head, one in zip(heads, audits, strict=True)
                ),
                Column("meaning", [KINDS[kind].meaning for kind in broken], short=" ", letters=0,
                       faint=True),
            ],
            "How often each rule is broken.",
        )
    ]  # fmt: skip


def _violations(audited: Audit, most: int, title: str = "") -> list[Table]:
    """List what is broken, the largest amounts first, of each kind about as many."""
    count = sum(len(found.amount) for found in audited.found)
    if not count:
        return []
    by_kind = [np.argsort(-found.amount, kind="stable")[:most] for found in audited.found]
    turns = sorted((turn, k) for k, rows in enumerate(by_kind) for turn in range(len(rows)))[:most]
    taken = np.bincount([k for _, k in turns], minlength=len(by_kind))
    rows = [
        row
        for found, largest, n in zip(audited.found, by_kind, taken.tolist(), strict=True)
        for row in found.take(largest[:n]).rows(audited.cluster)
    ]
    places = [
        {"partition": row.partition, "group": row.group, "node": row.node,
         row.tier: row.domain, "dimension": row.dimension, "asked": readable(row.expression)}
        for row in rows
    ]  # fmt: skip
    where = [
        " · ".join(f"{name} {shortened(at)}" for name, at in place.items() if at)
        for place in places
    ]
    return [
        Table(
            [
                Column("worst", [plain(row.kind) for row in rows]),
                Column("where", where, letters=0),
                Column("amount", [row.amount for row in rows], quantity),
            ],
            "The largest amounts of each kind.", title and f"{title} ({count:,})",
            count - len(rows), "violations",
        )
    ]  # fmt: skip


def _unplaced(result: Any, most: int) -> Iterator[Table]:
    """List replicas that found no node, and those that found none to leave theirs for."""
    for title, replicas in (
        ("unplaced", result.unplaced_replicas),
        ("to leave their nodes", held_back(result.cluster, result.placement)),
    ):
        if not len(replicas):
            continue
        shown = unplaced_of(
            result.cluster, result.placement, replicas[:most], result.levelness.loads, result.spent
        )
        blocked = (sorted(one.blocked.items(), key=lambda item: -item[1]) for one in shown)
        reasons_given = [
            ", ".join(f"{n:,} {reason}" for reason, n in reasons) for reasons in blocked
        ]
        name = f"{title} ({len(replicas):,})"
        yield Table(
            [
                Column(name, [one.partition for one in shown]),
                Column("slot", [one.slot for one in shown], str),
                Column("kept off others by", reasons_given, letters=0),
            ],
            "What keeps each off how many nodes.", name.capitalize(), len(replicas) - len(shown),
            "replicas",
        )  # fmt: skip


def _times(timings: Mapping[str, float]) -> list[Table]:
    """Lay out the seconds per phase; those of a method stand below it, indented."""
    outer = [name for name in timings if "." not in name]
    whole = sum(timings[name] for name in outer)
    if not timings:
        return []
    phases = [
        phase
        for name in outer
        for phase in (name, *(one for one in timings if one.startswith(f"{name}.")))
    ]
    labels = [f"  {one.partition('.')[2]}" if "." in one else one for one in phases]
    seconds = [timings[one] for one in phases]
    bars = [one / whole if whole > 0.0 else 0.0 for one in seconds]
    return [Table([Column("time", labels), Column(duration(whole), seconds, duration, "", bars)])]


def _size(cluster: Cluster, level: Levelness) -> str:
    wanted = int(cluster.partitions.replicas.sum(dtype=np.int64))
    alive = int(level.alive.sum())
    return (
        f"{counted(len(cluster.nodes), 'node')}, {alive:,} alive · "
        f"{counted(len(cluster.partitions), 'partition')} · {counted(wanted, 'replica')} wanted"
    )


def _not_alive(cluster: Cluster) -> str:
    """Name the nodes that are not alive, those with most replicas first, and what is on them."""
    down = down_nodes(cluster, cluster.placement)
    if not down:
        return ""
    named = some_of(down, lambda one: one.node, NAMED_NODES)
    held = sum(one.replicas for one in down)
    waiting = sum(one.replicas for one in down if one.waits)
    waits = f", {waiting:,} of which wait there until it is back" if waiting else ""
    return f"not alive: {named} · {counted(held, 'replica')} on them{waits}"


def _sign(result: Any) -> str:
    return "✓" if result.success else "✗"


def _lead(result: Any) -> list[str | Table]:
    """Write the verdict in a sentence, and the figures that people look for first."""
    cluster, compared = result.cluster, result.comparison
    wanted = int(cluster.partitions.replicas.sum(dtype=np.int64))
    return [
        verdict("Evenkeel:", f"{_sign(result)} {result.status}"),
        result.message,
        _sentence(result),
        *(f"Warning: {warning}" for warning in (*absent(cluster), *result.warnings)),
        cards(_figures(result, wanted)),
        dim(f"Method {result.method}, seed {result.seed}, stopped by: {result.stop_reason}. "
            f"{_size(cluster, result.levelness)}; {counted(compared.forced, 'replica')} had to "
            "move."),
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
        f"With {price}, the fullest node has {_format_times(now[d])} the mean in {name}, "
        f"where it was {_format_times(was[d])}; no other dimension is less level."
    )


def _format_times(value: float) -> str:
    return f"{value:.3f} times" if np.isfinite(value) else "infinitely many times"


def _figures(result: Any, wanted: int) -> list[tuple[str, str, str]]:
    """Return the figures that stand out, with what to compare each with."""
    cluster, compared = result.cluster, result.comparison
    goals = (
        "goals", "reached" if result.goals_reached else "missed",
        f"the goals take at least {result.bounds.moves_level:,}",
    )  # fmt: skip
    if not result.goals_asked:
        goals = ("goals", "none", "none were asked for")
    if result.cost is not None:
        goals = ("cost", f"{result.cost.total:,.0f}", "what was to be least")
    found = [
        ("moves", f"{compared.moves:,}", f"{compared.moves / max(1, wanted):.1%} of the replicas"),
        ("leader changes", f"{compared.leader_changes:,}", _data_of_leads(result)),
        goals,
        ("hard violations", f"{result.audit_before.hard:,} → {result.audit.hard:,}",
         "before → after"),
        ("unplaced", f"{len(result.unplaced_replicas):,}", "replicas without a node"),
    ]  # fmt: skip
    if cluster.bytes_dimension >= 0:
        name = shortened(cluster.dimensions[cluster.bytes_dimension])
        share = float(compared.load_moved[cluster.bytes_dimension])
        found.insert(
            1, ("data moved", data(compared.bytes_moved, name), f"{name}, {share:.1%} of all of it")
        )
    if result.disks is not None:
        moved = data(result.disks.bytes_moved, cluster.dimensions[cluster.bytes_dimension])
        found.append(("moves inside nodes", f"{result.disks.moves:,}", moved))
    return found


def _levels(result: Any, lineup: Lineup) -> Iterator[str | Table]:
    """Write the table of dimensions, and draw every node in each of them, before and after."""
    cluster, was, now = result.cluster, result.levelness_before, result.levelness
    states = (("before", "was", was), ("after", "now", now))
    yield from (f"Goal: {caption}." for caption in result.targets)
    yield dimension_table(cluster, (was, now), result, SHOWN_DIMENSIONS)
    for d, name in enumerate(map(shortened, cluster.dimensions[:SHOWN_DIMENSIONS])):
        seen = np.concatenate([state.table[state.alive, d] for _, _, state in states])
        axis = axis_of_shares(float(seen[np.isfinite(seen)].max(initial=0.0)))
        least = float(result.bounds.level[d])
        capacity = [("capacity", 1.0)] if axis.top > 1.0 else []
        panels = [
            Panel(f"d{d}-{when}", f"{name} {when}, % of capacity", look, state.table[:, d],
                  state.alive, [("mean", float(state.fair[d])), *capacity, *bound])
            for (when, look, state), bound in zip(states, ([], [("least", least)]), strict=True)
        ]  # fmt: skip
        legend = [
            _order(cluster, lineup),
            f"dashed: the mean, {percent(was.fair[d])} before and {percent(now.fair[d])} after",
            f"dotted: the fullest node of any placement has at least {percent(least)}",
        ]
        legend += ["full line: capacity"] if capacity else []
        if seen.max(initial=0.0) > axis.top * (1 + 1e-9):
            legend.append("cut at the top of the axis")
        yield subheading(f"{name} by node")
        yield node_chart(cluster, lineup, axis, panels, "; ".join(legend) + ".")
    if was.leaders.any() or now.leaders.any():
        axis = axis_of_counts(float(max(was.leaders.max(), now.leaders.max())))
        panels = [
            Panel(f"l-{when}", f"leaders {when}, partitions led", look,
                  state.leaders.astype(np.float64), state.alive)
            for when, look, state in states
        ]  # fmt: skip
        caption = (
            f"{_order(cluster, lineup)}; most on a node: {was.leaders.max():,} before, "
            f"{now.leaders.max():,} after, at least {result.bounds.leaders:,}."
        )
        yield subheading("Leaders by node")
        yield node_chart(cluster, lineup, axis, panels, caption)


def _order(cluster: Cluster, lineup: Lineup) -> str:
    """Say what stands side by side."""
    tiers = cluster.topology.tiers
    by = f", by {shortened(tiers[0])}" if tiers else ""
    if lineup.shared:
        return (
            f"{len(lineup.order):,} nodes in {len(lineup.bar):,} bars{by}: full colour up to the "
            "emptiest node of a bar, pale up to its fullest; dead nodes are left out"
        )
    return f"A bar for each node{by}; outlined: dead"


def _domains(result: Any) -> Iterator[str | Table]:
    """Lay out how full the domains of the widest tier are on the whole."""
    cluster, was, now = result.cluster, result.levelness_before, result.levelness
    if not len(cluster.topology):
        return
    names, domain = widest_domains(cluster)

    def summed(values: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(domain, weights=values, minlength=len(names)).astype(np.float64)

    shares = [_shares(cluster, state, domain, len(names)) for state in (was, now)]
    drawn = len(names) <= FEW_DOMAINS
    top = max(1.0, float(np.concatenate(shares).max(initial=0.0)))
    shown = np.argsort(-shares[1].max(1, initial=0.0), kind="stable")[:SHOWN_DOMAINS]
    tier = shortened(cluster.topology.tiers[0])
    columns = [
        Column(tier, [names[z] for z in shown.tolist()]),
        Column("nodes alive", summed(now.alive)[shown], "{:,.0f}".format),
    ]
    for d, name in enumerate(map(shortened, cluster.dimensions[:SHOWN_DIMENSIONS])):
        pairs = _pairs(shares[0][shown, d], shares[1][shown, d])
        bars = [Pair(a / top, b / top) for a, b in pairs] if drawn else None
        columns.append(Column(f"{name}, % of capacity", pairs, percent, bars=bars))
    led = _pairs(summed(was.leaders)[shown], summed(now.leaders)[shown])
    columns.append(Column("leaders", led, "{:,.0f}".format))
    for name, values in (
        ("replicas in", result.comparison.node_in), ("replicas out", result.comparison.node_out),
    ):  # fmt: skip
        columns.append(Column(name, summed(values)[shown], "{:,.0f}".format))
    caption = "Load of the nodes alive as a share of their capacity, before → after."
    caption += " Upper strip: before; lower strip: after." if drawn else ""
    yield subheading(f"By {tier}")
    yield Table(columns, caption, left=len(names) - len(shown), what="domains")


def _pairs(before: NDArray[Any], after: NDArray[Any]) -> list[Pair]:
    return [*map(Pair, before.tolist(), after.tolist())]


def _shares(
    cluster: Cluster, state: Levelness, domain: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    """Return load over capacity of the live nodes of each domain, (Z, D)."""
    load = np.zeros((count, state.loads.shape[1]))
    room = np.zeros_like(load)
    np.add.at(load, domain, state.loads * state.alive.astype(np.float64)[:, None])
    np.add.at(room, domain, np.where(state.alive[:, None], cluster.nodes.capacity, 0.0))
    return utilisation(load, room)


def _bounds(result: Any) -> list[str | Table]:
    """Lay out what was reached beside what no placement can beat."""
    if not result.audit.ok:
        return ["Rules are still broken; bounds are proven of placements that keep them all."]
    parts: list[str | Table] = [proven_table(result)]
    if result.cost is not None:
        names = [one.name for one in fields(result.cost)]
        costs = [float(np.sum(getattr(result.cost, name))) for name in names]
        named = Column("part", [name.replace("_", " ") for name in names])
        parts.append(Table([named, Column("cost", costs, quantity)], "What the placement costs."))
    return parts


def _changes(result: Any) -> list[str | Table]:
    """Write how many moves there are beside what is proven of them, and between which domains."""
    cluster, compared = result.cluster, result.comparison
    if not compared.moves:
        moved = relocations(cluster.placement, result.placement)
        return [*([] if moved else ["No replica moves."]), movement_table(result)]
    tiers = cluster.topology.tiers
    if not tiers:
        return [movement_table(result), "The cluster has no tiers to sum the moves up by."]
    flows = flows_between(cluster, cluster.placement, result.placement)
    tier = shortened(tiers[0])
    return [
        movement_table(result),
        subheading(f"From {tier} to {tier}"),
        f"{counted(compared.moves, 'move')}, {flows.inside:,} of them within their {tier}.",
        _matrix(few(flows), tier),
    ]


def _matrix(flows: Flows, tier: str) -> Table:
    """Lay out moves by source and target, deeper where there are more."""
    most = max(1, int(flows.count.max(initial=0)))
    columns = [Column("from \\ to", [*flows.sources, "all"])]
    for name, counts in zip(flows.targets, flows.count.T, strict=True):
        values = [*counts.tolist(), int(counts.sum())]
        shades = [*(counts / most).tolist(), 0.0]
        columns.append(Column(shortened(name), values, "{:,}".format, shades=shades))
    totals = [*flows.count.sum(1).tolist(), int(flows.count.sum())]
    columns.append(Column("all", totals, "{:,}".format))
    return Table(columns, f"Moves from the {tier} of the row to the {tier} of the column.")


def _broken(result: Any) -> list[str | Table]:
    """Write what was broken and what is, with the reasons that are known."""
    shown = _rules([result.audit_before, result.audit])
    if not isinstance(shown[0], Table):
        return ["No rule was broken before, and none is now."]
    rules = shown[0]
    pairs = [*zip(rules.columns[1].values, rules.columns[2].values, strict=True)]
    kinds = _broken_kinds([result.audit_before, result.audit])
    columns = [
        Column("rule", [*map(plain, kinds)]),
        Column("strength", ["hard" if KINDS[kind].hard else "soft" for kind in kinds]),
        *rules.columns[1:3],
        Column("outcome", [_outcome(*(0 if n == "-" else n for n in one)) for one in pairs]),
        rules.columns[3],
    ]
    regressions = ", ".join(f"{n:,} {plain(kind)}" for kind, n in result.regressions.items() if n)
    parts: list[str | Table] = [replace(rules, columns=columns)]
    parts += [f"Broken now, and not before: {regressions}."] if regressions else []
    if unplaced := [*_unplaced(result, SHOWN_UNPLACED)]:
        parts += [subheading("Replicas without a node"), *unplaced]
    if worst := _violations(result.audit, SHOWN_VIOLATIONS, "Violations"):
        parts += [subheading("Still broken"), *worst]
    return parts


def _outcome(before: int, after: int) -> str:
    """Say what became of a kind, with a sign and in words."""
    if after == 0:
        return "✓ repaired"
    return "✗ left" if after == before else "~ in part" if after < before else "✗ more than before"


def _rows(result: Any) -> Iterator[Table]:
    """Lay out nodes, moves and changes of leaders, folded away."""
    cluster, after = result.cluster, result.placement
    yield _node_table(result)
    moved = np.flatnonzero(result.comparison.joined)
    sized = cluster.bytes_dimension >= 0
    if sized:
        size = np.array(bytes_of(cluster, after, moved))
        moved = moved[np.argsort(-size, kind="stable")]
    if len(moved):
        rows = moves_of(cluster, after, moved[:SHOWN_MOVES])
        columns = [
            Column("partition", [one.partition for one in rows]),
            Column("slot", [one.slot for one in rows], str),
            Column("from", [one.source or "nowhere" for one in rows]),
            Column("to", [one.target for one in rows]),
        ]
        if sized:
            unit = shortened(cluster.dimensions[cluster.bytes_dimension])
            columns.append(Column(unit, [one.bytes for one in rows], amount))
        order = "The largest first." if sized else "In order of partition and slot."
        left = len(moved) - len(rows)
        yield Table(columns, order, f"Moves ({len(moved):,})", left, "moves")
    if inside := result.disk_moves:
        unit = shortened(cluster.dimensions[cluster.bytes_dimension])
        yield Table(
            [
                Column("partition", [one.partition for one in inside[:SHOWN_MOVES]]),
                Column("slot", [one.slot for one in inside[:SHOWN_MOVES]], str),
                Column("from", [one.source for one in inside[:SHOWN_MOVES]]),
                Column("to", [one.target for one in inside[:SHOWN_MOVES]]),
                Column(unit, [one.bytes for one in inside[:SHOWN_MOVES]], amount),
            ],
            "From disk to disk of a node, in order of partition and slot.",
            f"Moves inside nodes ({len(inside):,})", len(inside[SHOWN_MOVES:]), "moves",
        )  # fmt: skip
    changed = led_elsewhere(cluster, after)
    if len(changed):
        led = leader_changes_of(cluster, after, changed[:SHOWN_CHANGES])
        yield Table(
            [
                Column("partition", [one.partition for one in led]),
                Column("from", [one.source or "nowhere" for one in led]),
                Column("to", [one.target or "nowhere" for one in led]),
            ],
            "In order of partition; those without a live leader are listed, too.",
            f"Partitions led by another {NODE_TIER} ({len(changed):,})",
            len(changed) - len(led), "partitions",
        )  # fmt: skip


def _node_table(result: Any) -> Table:
    """Lay out the nodes, those first that were or are the fullest."""
    cluster, was, now = result.cluster, result.levelness_before, result.levelness
    nodes, topology = cluster.nodes, cluster.topology
    fullest = np.maximum(was.table.max(1, initial=0.0), now.table.max(1, initial=0.0))
    shown = np.argsort(-fullest, kind="stable")[:SHOWN_NODES]
    state = np.where(~now.alive, "dead", np.where(nodes.may_receive, "up", "takes none"))
    tiers = topology.tiers
    at = topology.domain[-1, shown].tolist() if tiers else [-1] * len(shown)
    domains = [topology.domain_name(len(tiers) - 1, z) if z >= 0 else "" for z in at]
    columns = [
        Column("node", [nodes.names[n] for n in shown.tolist()]),
        Column(shortened(tiers[-1]) if tiers else "domain", domains),
        Column("state", state[shown].tolist()),
    ]
    for d, name in enumerate(map(shortened, cluster.dimensions[:SHOWN_DIMENSIONS])):
        columns.append(Column(name, _pairs(was.table[shown, d], now.table[shown, d]), percent))
    led = _pairs(was.leaders[shown], now.leaders[shown])
    columns += [
        Column("leaders", led, "{:,}".format),
        Column("replicas in", result.comparison.node_in[shown], "{:,}".format),
        Column("replicas out", result.comparison.node_out[shown], "{:,}".format),
    ]
    return Table(
        columns, "The fullest first, be it before or after; % of capacity, before → after.",
        f"Nodes ({len(nodes):,})", len(nodes) - len(shown), "nodes",
    )  # fmt: skip


def groups_table(rows: Sequence[GroupRow], groups: int) -> Table:
    """Lay out the groups that lie least evenly."""
    columns = [
        Column("group", [shortened(one.group, LONGEST_NAME) for one in rows], letters=0),
        Column("replicas", [one.replicas for one in rows]),
        Column("share of a node", [one.share for one in rows], lambda x: f"{x:.1f}", "share"),
        Column("most", [one.most for one in rows]),
        Column("on", [one.fullest for one in rows], letters=0),
        Column("least", [one.least for one in rows]),
        Column("on the emptiest", [one.emptiest for one in rows], short="on", letters=0),
        Column("most leaders", [one.most_leaders for one in rows], short="leaders"),
        Column("on the leading", [one.leader for one in rows], short="on", letters=0),
        Column("least leaders", [one.least_leaders for one in rows], short="least"),
    ]
    caption = "Replicas of each group on nodes that take replicas, the least even group first."
    return Table(columns, caption, left=groups - len(rows), what="groups")


def report_groups(cluster: Cluster, placement: Placement, *, width: int, styled: bool) -> str:
    """Report the groups that lie least evenly over the nodes."""
    rows = group_rows(cluster, placement, WORST_GROUPS)
    return rendered([groups_table(rows, len(cluster.partitions.group_names))], width, styled)
