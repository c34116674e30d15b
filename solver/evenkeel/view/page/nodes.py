"""What a page says of the nodes and of the domains: how full they were, and how full they are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.levelness import Levelness, below_mean_said
from evenkeel.measure.loads import utilisation
from evenkeel.model.cluster import Cluster
from evenkeel.model.runtime.figures import number, percent
from evenkeel.view.layout import least_said
from evenkeel.view.markup import Raw, shortened, text
from evenkeel.view.page.charts import (
    Lineup,
    Panel,
    axis_of_counts,
    axis_of_shares,
    chart,
    strips,
)
from evenkeel.view.page.document import left_out, paragraph, searched, table
from evenkeel.view.plots.domains import domain_names

SHOWN_DIMENSIONS = 12
SHOWN_NODES = 400
SHOWN_DOMAINS = 60

FEW_DOMAINS = 24
"""Domains up to which their figures have strips."""


def level_parts(result: Any) -> list[str]:
    """Write the table of dimensions, and draw every node in each of them, before and after."""
    cluster = result.cluster
    lineup = Lineup.of(cluster)
    hidden = left_out(len(cluster.dimensions) - SHOWN_DIMENSIONS, "dimensions")
    return [
        *(paragraph(f"Goal: {said}.") for said in result.targets),
        _dimensions(result),
        *([paragraph(hidden, "dim")] if hidden else []),
        *(
            _dimension_chart(result, lineup, d)
            for d in range(min(len(cluster.dimensions), SHOWN_DIMENSIONS))
        ),
        *_leader_chart(result, lineup),
    ]


def _dimensions(result: Any) -> str:
    """Lay out how level each dimension was and is, and the leaders."""
    was, now = result.levelness_before, result.levelness
    rows = []
    for d, name in enumerate(result.cluster.dimensions[:SHOWN_DIMENSIONS]):
        over = [
            int((state.table[state.alive, d] > 1.0 + 1e-9).sum()) for state in (was, now)
        ]  # as reports to the terminal count
        rows.append(
            (
                shortened(name),
                f"{number(was.ratio[d])} → {number(now.ratio[d])}",
                number(result.bounds.ratio[d]),
                f"{percent(was.most[d])} → {percent(now.most[d])}",
                f"{percent(was.least[d])} → {percent(now.least[d])}",
                f"{percent(was.deviation[d])} → {percent(now.deviation[d])}",
                f"{over[0]:,} → {over[1]:,}",
            )
        )
    heads = (
        "dimension", "fullest ÷ mean", least_said(result), "fullest node", "emptiest node",
        "standard deviation", "nodes over capacity",
    )  # fmt: skip
    said = "Utilisation is load as a share of the node's capacity, before → after"
    said = f"{'; '.join(filter(None, [said, below_mean_said([was, now])]))}."
    return table(said, heads, rows, ())


def _dimension_chart(result: Any, lineup: Lineup, d: int) -> str:
    """Draw how full every node is in one dimension."""
    name = shortened(result.cluster.dimensions[d])
    states = [("before", "was", result.levelness_before), ("after", "now", result.levelness)]
    seen = np.concatenate([state.table[state.alive, d] for _, _, state in states])
    axis = axis_of_shares(float(seen[np.isfinite(seen)].max(initial=0.0)))
    least = float(result.bounds.level[d])
    panels = []
    for when, look, state in states:
        lines = [("mean", float(state.fair[d]))]
        lines += [("capacity", 1.0)] if axis.top > 1.0 else []
        lines += [("least", least)] if when == "after" else []
        panels.append(
            Panel(f"d{d}-{when}", f"{name} {when}, % of capacity", look, state.table[:, d],
                  state.alive, lines)
        )  # fmt: skip
    told = [
        f"{_order(result.cluster, lineup)}",
        f"dashed: the mean, {percent(states[0][2].fair[d])} before and "
        f"{percent(states[1][2].fair[d])} after",
        f"dotted: the fullest node of any placement has at least {percent(least)}",
    ]
    told += ["full line: capacity"] if axis.top > 1.0 else []
    told += ["cut at the top of the axis"] if seen.max(initial=0.0) > axis.top * (1 + 1e-9) else []
    heading = f"<h3>{text(name)} by node</h3>"
    return heading + chart(result.cluster, lineup, axis, panels, "; ".join(told) + ".")


def _leader_chart(result: Any, lineup: Lineup) -> list[str]:
    """Draw how many partitions every node leads, where anything leads."""
    was, now = result.levelness_before, result.levelness
    if not (was.leaders.any() or now.leaders.any()):
        return []
    axis = axis_of_counts(float(max(was.leaders.max(), now.leaders.max())))
    panels = [
        Panel(f"l-{when}", f"leaders {when}, partitions led", look,
              state.leaders.astype(np.float64), state.alive, ())
        for when, look, state in (("before", "was", was), ("after", "now", now))
    ]  # fmt: skip
    said = (
        f"{_order(result.cluster, lineup)}; most on a node: {was.leaders.max():,} before, "
        f"{now.leaders.max():,} after, at least {result.bounds.leaders:,}. Most over the node's "
        f"share: {number(was.leader_ratio)} before, {number(now.leader_ratio)} after."
    )
    return ["<h3>Leaders by node</h3>" + chart(result.cluster, lineup, axis, panels, said)]


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


def domain_parts(result: Any) -> list[str]:
    """Lay out how full the domains of the widest tier are on the whole."""
    cluster = result.cluster
    if not len(cluster.topology):
        return []
    names = domain_names(cluster, 0)
    domain = cluster.topology.domain[0].astype(np.int64)
    domain = np.where(domain < 0, len(names) - 1, domain)
    was, now = result.levelness_before, result.levelness
    alive = _summed(now.alive.astype(np.float64), domain, len(names))
    shares = [_shares(cluster, state, domain, len(names)) for state in (was, now)]
    led = [_summed(state.leaders, domain, len(names)) for state in (was, now)]
    came = _summed(result.comparison.node_in, domain, len(names))
    left = _summed(result.comparison.node_out, domain, len(names))
    drawn = len(names) <= FEW_DOMAINS
    top = max(1.0, float(np.concatenate(shares).max(initial=0.0)))
    dimensions = range(min(len(cluster.dimensions), SHOWN_DIMENSIONS))
    rows = []
    for z in _first(-shares[1].max(1, initial=0.0), SHOWN_DOMAINS):
        filled = []
        for d in dimensions:
            before, after = float(shares[0][z, d]), float(shares[1][z, d])
            strip = strips([("was", before / top), ("now", after / top)]) if drawn else ""
            filled.append(Raw(f"{percent(before)} → {percent(after)}{strip}"))
        rows.append(
            (
                shortened(names[z]), f"{alive[z]:,.0f}", *filled,
                f"{led[0][z]:,.0f} → {led[1][z]:,.0f}", f"{came[z]:,.0f}", f"{left[z]:,.0f}",
            )
        )  # fmt: skip
    tier = shortened(cluster.topology.tiers[0])
    heads = (
        tier, "nodes alive", *(f"{shortened(cluster.dimensions[d])}, % of capacity"
        for d in dimensions), "leaders", "replicas in", "replicas out",
    )  # fmt: skip
    said = "Load of the nodes alive as a share of their capacity, before → after."
    said += " Upper strip: before; lower strip: after." if drawn else ""
    hidden = left_out(len(names) - SHOWN_DOMAINS, "domains")
    return [
        f"<h3>By {text(tier)}</h3>",
        table(said, heads, rows, ()),
        *([paragraph(hidden, "dim")] if hidden else []),
    ]


def _shares(
    cluster: Cluster, state: Levelness, domain: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    """Return load over capacity of the live nodes of each domain, (Z, D)."""
    living = state.alive.astype(np.float64)[:, None]
    load = np.zeros((count, state.loads.shape[1]))
    room = np.zeros_like(load)
    capacity = np.where(state.alive[:, None], cluster.nodes.capacity, 0.0)
    np.add.at(load, domain, state.loads * living)
    np.add.at(room, domain, capacity)
    return utilisation(load, room)


def _summed(values: NDArray[Any], domain: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    return np.bincount(domain, weights=values, minlength=count).astype(np.float64)


def node_table(result: Any) -> str:
    """Lay out the nodes, those first that were or are the fullest."""
    cluster = result.cluster
    nodes, was, now = cluster.nodes, result.levelness_before, result.levelness
    fullest = np.maximum(was.table.max(1, initial=0.0), now.table.max(1, initial=0.0))
    dimensions = range(min(len(cluster.dimensions), SHOWN_DIMENSIONS))
    tiers = cluster.topology.tiers
    state = np.where(~now.alive, "dead", np.where(nodes.may_receive, "up", "takes none"))
    came, left = result.comparison.node_in, result.comparison.node_out
    rows = []
    for n in _first(-fullest, SHOWN_NODES):
        at = int(cluster.topology.domain[-1, n]) if tiers else -1
        domain = cluster.topology.domain_name(len(tiers) - 1, at) if at >= 0 else ""
        rows.append(
            (
                shortened(nodes.names[n]), shortened(domain), str(state[n]),
                *(f"{percent(was.table[n, d])} → {percent(now.table[n, d])}" for d in dimensions),
                f"{was.leaders[n]:,} → {now.leaders[n]:,}", f"{came[n]:,}", f"{left[n]:,}",
            )
        )  # fmt: skip
    place = shortened(tiers[-1]) if tiers else "domain"
    heads = (
        "node", place, "state", *(shortened(cluster.dimensions[d]) for d in dimensions),
        "leaders", "replicas in", "replicas out",
    )  # fmt: skip
    said = "The fullest first, be it before or after; % of capacity, before → after."
    hidden = left_out(len(nodes) - SHOWN_NODES, "nodes")
    return searched(f"Nodes ({len(nodes):,})", table(said, heads, rows, (1, 2)), note=hidden)


def _first(key: NDArray[np.float64], count: int) -> list[int]:
    """Return the indices of the lowest few."""
    found: list[int] = np.argsort(key, kind="stable")[:count].tolist()
    return found
