"""Copies in flight at every instant, checked against the limits of a throttle."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import at_node
from evenkeel.model.placement import Flag
from evenkeel.planning.replay.certificate import Findings
from evenkeel.planning.replay.timeline import pairs, sort_by
from evenkeel.planning.replay.transitions import live_nodes
from evenkeel.planning.steps import StepKind, Steps

if TYPE_CHECKING:
    from evenkeel.planning.throttle import Throttle

DRIFT = 1e-9
"""Relative excess of a rate that is rounding: rates are quotients of sizes and times."""


def check_flights(found: Findings, throttle: "Throttle") -> None:
    """Find copies that start while as many, or as many bytes per second, are under way."""
    timeline, cluster = found.timeline, found.cluster
    steps = timeline.steps
    copies = np.flatnonzero(steps.kind == StepKind.COPY)
    if len(copies) == 0:
        return
    source, target = steps.source[copies], steps.target[copies]
    all_of_it = np.zeros(len(copies), np.int32)
    one = np.ones(len(copies))
    nodes = len(cluster.nodes)
    ends = (("in", target), ("out", source))
    for way, node in ends:
        _hold(found, f"node_{way}", "", copies, node, one, getattr(throttle, f"node_{way}"), nodes,
              column="node")  # fmt: skip
    for way, node in ends:
        limits: Mapping[str, int] = getattr(throttle, f"domain_{way}")
        for tier, most in limits.items():
            row = cluster.topology.tier_index(tier)
            domain = np.append(cluster.topology.domain_with_nodes[row], np.int32(-1))
            crosses = domain[source] != domain[target]
            place = np.where(crosses, domain[node], -1)
            _hold(found, f"domain_{way}", tier, copies, place, one, most,
                  int(cluster.topology.domain_count[row]), column="domain", tier=row)  # fmt: skip
    _hold(found, "copies", "", copies, all_of_it, one, throttle.copies, 1, column="")
    time = steps.finish[copies] - steps.start[copies]
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(steps.size[copies] > 0.0, steps.size[copies] / time, 0.0)
    for way, node in ends:
        _hold(found, f"bytes_{way}", "", copies, node, rate, throttle.node_bandwidth, nodes,
              column="node")  # fmt: skip
    if throttle.recovery_first:
        _check_recovery(found, copies)
    if throttle.windows is not None:
        # what is under way pauses in between
        for at in (timeline.start, timeline.finish):
            when = steps.start if at is timeline.start else steps.finish
            shut = np.flatnonzero(~throttle.windows.is_open(when))
            found.breach("window", shut, at[shut], partition=steps.partition[shut])


def _check_recovery(found: Findings, copies: NDArray[np.intp]) -> None:
    """Find copies that begin while partitions lack live replicas that they get later.

    What waits, directly or not, for a step of a partition that lacks nothing is not waited for, and
    what is under way as the plan begins goes on.
    """
    cluster, timeline = found.cluster, found.timeline
    steps, start = timeline.steps, cluster.placement
    live = live_nodes(cluster)
    was = at_node(live, start.node)
    lack = np.maximum(cluster.partitions.min_active, cluster.partitions.replicas)
    lack = lack - np.bincount(start.owner, was, len(start)).astype(np.int64)
    comes = np.isin(steps.kind, (StepKind.PROMOTE, StepKind.SWAP)) & ~was[steps.replica]
    comes &= at_node(live, steps.target) & (lack > 0)[steps.partition]
    which = np.flatnonzero(comes)
    which = which[np.argsort(timeline.finish[which], kind="stable")]
    # a replica that goes by a third node comes once
    which = which[np.sort(np.unique(steps.replica[which], return_index=True)[1])]
    which = which[np.argsort(steps.partition[which], kind="stable")]
    partition = steps.partition[which]
    opens = np.flatnonzero(np.diff(partition, prepend=-1))
    place = np.arange(len(which)) - np.repeat(opens, np.diff(np.append(opens, len(which))))
    needed = which[place < lack[partition]]
    needed = needed[~_followers(steps, (lack <= 0)[steps.partition])[needed]]
    until = int(timeline.finish[needed].max(initial=-1))
    begun = (start.flags[steps.replica[copies]] & Flag.INCOMING) != 0
    early = copies[(lack[steps.partition[copies]] <= 0) & ~begun & (timeline.start[copies] < until)]
    found.breach("recovery", early, timeline.start[early], partition=steps.partition[early])


def _followers(steps: Steps, some: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return some steps and all that wait for them, directly or not, (S,)."""
    step, before = pairs(steps)
    order = np.argsort(before, kind="stable")
    step = step[order]
    first = np.searchsorted(before[order], np.arange(len(steps) + 1))
    reached = some.copy()
    front = np.flatnonzero(some)
    while len(front):
        low, length = first[front], first[front + 1] - first[front]
        laid = np.cumsum(length) - length
        on = step[np.arange(int(length.sum())) + np.repeat(low - laid, length)]
        front = np.unique(on[~reached[on]])
        reached[front] = True
    return reached


def _hold(
    found: Findings,
    kind: str,
    of: str,
    copies: NDArray[np.intp],
    place: NDArray[np.int32],
    amount: NDArray[np.float64],
    most: float | None,
    places: int,
    *,
    column: str,
    tier: int = -1,
) -> None:
    """Find copies with whose start a place has more under way than it may."""
    if most is None:
        return
    timeline = found.timeline
    inside = np.flatnonzero(place >= 0)
    which = copies[inside]
    step = np.concatenate([which, which])
    rank = np.concatenate([timeline.start[which], timeline.finish[which]])
    change = np.concatenate([amount[inside], -amount[inside]])
    at = np.concatenate([place[inside], place[inside]])
    by_rank = np.argsort(rank)
    order = by_rank[sort_by(at[by_rank], places)]
    at, change, step, rank = at[order], change[order], step[order], rank[order]
    endless = ~np.isfinite(change)
    change = np.where(endless, 0.0, change)
    total = np.cumsum(change)
    opens = np.flatnonzero(np.diff(at, prepend=-1))
    length = np.diff(np.append(opens, len(at)))
    under_way = total - np.repeat(total[opens] - change[opens], length)
    begins = rank == timeline.start[step]
    under_way = np.where(endless & begins, np.inf, under_way)
    seen = np.flatnonzero(begins)
    spot = {column: at[seen]} if column else {}
    if tier >= 0:
        spot["tier"] = np.full(len(seen), tier)
    reached = under_way[seen]
    over = np.flatnonzero(reached > most * (1.0 + DRIFT))
    found.breach(kind, step[seen[over]], rank[seen[over]], reached[over] - most,
                 **{name: value[over] for name, value in spot.items()})  # fmt: skip
    found.tight(kind, of, reached, reached, most, step[seen], rank[seen], **spot)
