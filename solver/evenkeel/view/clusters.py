"""Render a cluster or a placement as HTML for notebooks."""

from dataclasses import fields

import numpy as np

from evenkeel.measure.levelness import levelness
from evenkeel.measure.loads import utilisation, wanted_load
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.rules import Rule
from evenkeel.model.runtime.figures import amount, percent
from evenkeel.model.runtime.printable import counted
from evenkeel.model.runtime.table import Column, Spread, Table
from evenkeel.view.html import Raw, heading, notebook, shortened

SHOWN_ROWS = 6  # rows of a list that are spelled out; the rest is counted
SHOWN_DIMENSIONS = 12

LONGEST = 120  # characters of a rule


def cluster_html(cluster: Cluster) -> str:
    """Write what a cluster is, and how it stands."""
    nodes, partitions = cluster.nodes, cluster.partitions
    level = levelness(cluster, cluster.placement)
    dead = len(nodes) - int(level.alive.sum())
    closed = int((level.alive & ~nodes.may_receive).sum())
    wanted = int(partitions.replicas.sum(dtype=np.int64))
    placed = int(np.count_nonzero(cluster.placement.node >= 0))
    facts = [
        counted(len(nodes), "node") + (f" ({dead:,} dead)" if dead else ""),
        f"{counted(len(partitions), 'partition')} in "
        f"{counted(len(partitions.group_names), 'group')}",
        f"{counted(wanted, 'replica')} wanted, {placed:,} placed",
    ]
    topology = cluster.topology
    tiers = [
        f"{shortened(name)} ({int(count):,})"
        for name, count in zip(topology.tiers, topology.domain_count[:-1], strict=True)
    ]
    total, room = wanted_load(cluster), nodes.capacity[nodes.may_receive].sum(0)
    table = level.table[level.alive]
    top = min(5.0, max(1.1, float(table[np.isfinite(table)].max(initial=0.0))))
    first = slice(SHOWN_DIMENSIONS)
    names = cluster.dimensions[first]
    dimensions = Table(
        [
            Column("dimension", names, short=" "),
            Column("load", total[first], amount),
            Column("capacity", room[first], amount),
            Column("used", utilisation(total, room)[first], percent),
            Column("fullest", level.most[first], percent),
            Column("over", (table > 1.0).sum(0)[first], "{:,}".format),
            Column("", [Spread(table[:, d], top) for d in range(len(names))]),
        ],
        left=len(cluster.dimensions) - SHOWN_DIMENSIONS,
        what="dimensions",
    )
    more = len(cluster.rules) - SHOWN_ROWS
    return notebook(
        [
            heading("Cluster", " · ".join(facts)),
            *(["tiers: " + ", ".join(tiers)] if tiers else []),
            *([f"{closed:,} more nodes accept nothing"] if closed else []),
            dimensions,
            *(f"rule {i}: {_rule(rule)}" for i, rule in enumerate(cluster.rules[:SHOWN_ROWS])),
            *([f"… and {more:,} more rules"] if more > 0 else []),
        ]
    )


def _rule(rule: Rule) -> str:
    caption = ", ".join(
        f"{one.name}={value}" for one in fields(rule) if (value := getattr(rule, one.name))
    )
    return shortened(caption, LONGEST)


def placement_html(placement: Placement) -> str:
    """Write what a placement is."""
    held = int(np.count_nonzero(placement.node >= 0))
    empty = len(placement.node) - held
    led = int(np.count_nonzero(placement.leader_node >= 0))
    uniform = placement.slots is not None
    slots = f"{counted(placement.slots or 0, 'slot')} each" if uniform else "rows of any length"
    facts = f"{counted(len(placement), 'partition')}, {slots} · {counted(held, 'replica')} placed"
    rows = []
    for p in range(min(len(placement), SHOWN_ROWS)):
        start, end = int(placement.first[p]), int(placement.first[p + 1])
        cells = ["-" if n < 0 else str(n) for n in placement.node[start:end].tolist()]
        lead = int(placement.leader[p])
        if lead >= 0:
            cells[lead] = f"<strong>{cells[lead]}</strong>"
        rows.append(Raw(" · ".join(cells)))
    shown = Table(
        [
            Column("partition", range(len(rows))),
            Column("node of each slot, the leader in bold", rows, letters=0),
        ],
        left=len(placement) - len(rows),
        what="partitions",
    )
    return notebook(
        [
            heading("Placement", facts + (f", {counted(empty, 'slot')} empty" if empty else "")),
            f"{counted(led, 'partition')} with a leader · {_spread(placement)}",
            shown,
        ]
    )


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
