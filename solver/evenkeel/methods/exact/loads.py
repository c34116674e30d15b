"""Loads as constraints: capacities, shared ones too, and loads to compare with the targets.

A ``Scale`` converts to whole numbers: loads are rounded up, capacities down.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds import Bounds
from evenkeel.measure.tally import PlacementCounts
from evenkeel.measure.wanted import has_leaders, wanted_load
from evenkeel.methods.exact.variables import Variables, class_names
from evenkeel.methods.shared.compile import led_from, ready
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Role

SNUG = 1e-9
"""A node this far above its target, relatively, is at it."""

DECIMALS = 6
"""Loads with so many decimals stay exact."""

WIDEST = 2.0**34
"""Loads may add up to so much where that keeps them exact."""

UNBOUND = 4.0 * WIDEST
"""More than all loads together."""

FINEST = 2.0**26
"""Otherwise no dimension's loads add up to more: larger coefficients are not handled safely."""

NEAR, WHOLE = 1e-9, 1e-4
"""Numbers this close to a whole number, relative and absolute, are replaced by it."""


def _power(value: float) -> float:
    """Return the greatest power of two that is no more than a value."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1)


@dataclass(frozen=True)
class Scale:
    """How one dimension becomes whole numbers."""

    factor: float

    @classmethod
    def of(cls, loads: NDArray[np.float64], total: float) -> Scale:
        """Choose the finest scale that keeps loads exact, or just the finest."""
        if total < 1e-200:
            return cls(1.0)
        for widest, decimals in itertools.product((FINEST, WIDEST), range(DECIMALS + 1)):
            factor = 10.0**decimals
            factor *= _power(widest / (total * factor))
            scaled = loads * factor
            if np.all(np.abs(scaled - np.rint(scaled)) <= np.clip(NEAR * scaled, NEAR, WHOLE)):
                return cls(factor)
        return cls(_power(FINEST / total))

    def up(self, load: float) -> int:
        """Scale a load."""
        scaled = min(load * self.factor, 4.0 * WIDEST)
        return int(np.ceil(scaled - NEAR * max(scaled, 1.0)))

    def down(self, capacity: float) -> int:
        """Scale a capacity."""
        scaled = min(capacity * self.factor, 4.0 * WIDEST)
        return int(np.floor(scaled + NEAR * max(scaled, 1.0)))


@dataclass(frozen=True)
class Targets:
    """A node's load in one dimension, or its leaders, against its target."""

    reading: Any
    target: float

    def most(self, excess: float) -> int:
        """Return the load allowed on the node."""
        return int(np.floor(min(self.target * (1.0 + excess) * (1.0 + SNUG), UNBOUND)))

    def less(self, excess: float) -> int:
        """Return the load allowed on the node for a strictly better answer."""
        return int(np.ceil(min(self.target * (1.0 + excess) * (1.0 - SNUG), UNBOUND))) - 1


@dataclass(frozen=True)
class Floor:
    """A node's load in one dimension, and the least that the goals ask for."""

    reading: Any
    least: int


def weigh(variables: Variables, bounds: Bounds | None) -> tuple[list[Targets], list[Floor]]:
    """Add the capacities of nodes and domains; return loads to compare with the goals."""
    cluster = variables.cluster
    classes = class_names(cluster)
    most = cluster.nodes.max_replicas
    gauges, floors = [], []
    asked = cluster.partitions.replicas > 0
    asked[cluster.placement.owner[cluster.placement.node >= 0]] = True
    for n in np.flatnonzero(cluster.nodes.carries & (most >= 0)).tolist():
        count = sum(variables.count(p, n) for p in range(len(cluster.partitions)))
        slack = variables.slack.slack("max_replicas", "node", n, -1)
        variables.reasons.hold(count <= int(most[n]) + slack, f"max_replicas ({classes[n]})")
    for d, name in enumerate(cluster.dimensions):
        load = cluster.partitions.load
        every = np.concatenate([one[asked, d] for one in (load.leader, load.voter, load.non_voter)])
        total = max(float(wanted_load(cluster)[d]), float(every.max(initial=0.0)))
        scale = Scale.of(every, 2.0 * total)
        capacity = cluster.nodes.capacity[:, d]
        on = _loads(variables, d, scale)
        held = _held_loads(cluster, d, scale) if variables.slack.repairs else [0] * len(capacity)
        for n in np.flatnonzero(cluster.nodes.carries & np.isfinite(capacity)).tolist():
            held_there = cluster.transient[d] and cluster.nodes.alive[n]
            left = _left_behind(variables, n, d, scale) if held_there else 0
            room = scale.down(float(capacity[n]))
            above = _stays_above(variables, [n], ("capacity", "node", n, d), held[n] > room)
            most_here = room + (held[n] - room) * above
            variables.reasons.hold(on[n] + left <= most_here, f"capacity {name} ({classes[n]})")
            if not isinstance(left, int) and not isinstance(above, int):
                below = _stays_above(variables, [n], ("capacity", "node", n, d), held[n] > room)
                # less full in the end counts, too
                variables.model.add(on[n] <= room + (held[n] - room) * below)
        _share(variables, on, held, d, scale)
        if bounds is not None:
            target = bounds.target[:, d] * scale.factor
            finite = np.flatnonzero(np.isfinite(target)).tolist()
            gauges += [Targets(on[n], float(target[n])) for n in finite]
            least = np.ceil(bounds.floor[:, d] * scale.factor * (1.0 - SNUG)).astype(np.int64)
            floors += [Floor(on[n], int(least[n])) for n in np.flatnonzero(least).tolist()]
    if bounds is not None and has_leaders(cluster):
        for n in np.flatnonzero(np.isfinite(bounds.leader_target)).tolist():
            leads = sum(one[n] for one in variables.leads if n in one)
            gauges.append(Targets(leads, float(bounds.leader_target[n])))
    return [targets for targets in gauges if not isinstance(targets.reading, int)], floors


def _loads(variables: Variables, d: int, scale: Scale) -> list[Any]:
    """Load of every node in one dimension, in whole numbers."""
    load = variables.cluster.partitions.load
    on: list[Any] = [0] * len(variables.cluster.nodes)
    for alike in variables.alike:
        variables.reasons.look()
        p = alike[0]
        voter, other = scale.up(load.voter[p, d]), scale.up(load.non_voter[p, d])
        more = scale.up(load.leader[p, d]) - voter
        kinds = ((voter, variables.voters), (other, variables.others), (more, variables.leads))
        for number, (weight, of) in enumerate(kinds):
            for n in of[p]:
                on[n] = on[n] + weight * variables.together(alike, n, number, of)
    return on


def _held_loads(cluster: Cluster, d: int, scale: Scale) -> list[int]:
    """Load of every node in one dimension as things came, in whole numbers."""
    placement, load = cluster.placement, cluster.partitions.load
    held = [0] * len(cluster.nodes)
    for k in np.flatnonzero(placement.node >= 0).tolist():
        p = placement.owner[k]
        weight = load.voter if placement.role[k] == Role.VOTER else load.non_voter
        if k == placement.leader_replica[p]:
            weight = load.leader
        held[placement.node[k]] += scale.up(float(weight[p, d]))
    return held


def _left_behind(variables: Variables, n: int, d: int, scale: Scale) -> Any:
    """Load of the replicas that leave a node, which counts there until all moves are done.

    A leader hands over before it leaves, so it weighs what a voter does.
    """
    cluster = variables.cluster
    placement, load = cluster.placement, cluster.partitions.load
    total: Any = 0
    for p in np.unique(placement.owner[placement.node == n]).tolist():
        rows = np.arange(placement.first[p], placement.first[p + 1])
        rows = rows[placement.node[rows] == n]
        for kind, counts in (
            (Role.VOTER, variables.voters[p]),
            (Role.NON_VOTER, variables.others[p]),
        ):
            held = rows[(placement.role[rows] == Role.VOTER) == (kind == Role.VOTER)]
            if len(held) == 0:
                continue
            each = load.voter[p, d] if kind == Role.VOTER else load.non_voter[p, d]
            gone = variables.model.new_int_var(0, len(held), "")
            variables.model.add(gone + counts.get(n, 0) >= len(held))
            total = total + scale.up(float(each)) * gone
    return total


def _share(variables: Variables, on: list[Any], held: list[int], d: int, scale: Scale) -> None:
    """Add the capacities that the nodes of a domain share."""
    topology = variables.cluster.topology
    for tier, shared in topology.tier_capacity.items():
        row = topology.tier_index(tier)
        domain = topology.domain[row]
        for where in np.flatnonzero(np.isfinite(shared[:, d])).tolist():
            nodes = np.flatnonzero(variables.cluster.nodes.carries & (domain == where)).tolist()
            inside, had = sum(on[n] for n in nodes), sum(held[n] for n in nodes)
            room = scale.down(float(shared[where, d]))
            place = "tier_capacity", f"tier {row}", where, d
            above = _stays_above(variables, nodes, place, had > room)
            variables.reasons.hold(
                inside <= room + (had - room) * above,
                f"tier_capacity {variables.cluster.dimensions[d]} ({tier} {where})",
            )


def _stays_above(
    variables: Variables, nodes: list[int], place: tuple[str, str, int, int], came_so: bool
) -> Any:
    """Return whether nodes stay above their room, as they came; then no load joins them there."""
    above = variables.slack.above(*place) if came_so else 0
    if isinstance(above, int):
        return 0
    placement = variables.cluster.placement
    weighs = PlacementCounts.of(variables.cluster, placement).heaviest[:, place[3]] > 0.0
    stood = np.bincount(placement.owner[np.isin(placement.node, nodes)], minlength=len(placement))
    for p, most in enumerate(stood.tolist()):
        if not weighs[p]:
            continue
        inside = [variables.count(p, n) for n in variables.nodes(p) if n in nodes]
        if inside:
            variables.model.add(sum(inside) <= most).only_enforce_if(above)
    return above


def moved(variables: Variables) -> list[tuple[Any, int, int]]:
    """Count the nodes that join a partition's set of nodes."""
    homes = _homes(variables.cluster)
    found = []
    for p, n in variables.all():
        variables.reasons.look()
        if n not in homes[p]:
            found.append((variables.count(p, n), p, n))
    return found


def changed_leaders(variables: Variables) -> list[Any]:
    """Return the changes of live leaders, by partition."""
    was: NDArray[np.int32] = variables.cluster.placement.leader_node
    alive = variables.cluster.nodes.alive
    found = []
    for p, leads in enumerate(variables.leads):
        if leads and was[p] >= 0 and alive[was[p]]:
            found.append(1 - leads.get(int(was[p]), 0))
    return found


def late_leaders(variables: Variables) -> list[Any]:
    """Return for each partition that lost its leader whether it waits for a copy to lead.

    Another replica leads it until the copy is made.
    """
    cluster = variables.cluster
    placement, lives = cluster.placement, led_from(cluster) >= 0
    there = ready(cluster)
    found = []
    for p, leads in enumerate(variables.leads):
        if lives[p] or not leads:
            continue
        first, end = placement.first[p : p + 2].tolist()
        at_once = set(placement.node[first:end][there[first:end]].tolist())
        if not at_once.isdisjoint(leads):
            found.append(sum(lead for n, lead in leads.items() if n not in at_once))
    return found


def _homes(cluster: Cluster) -> list[set[int]]:
    placement = cluster.placement
    homes: list[set[int]] = [set() for _ in range(len(placement))]
    for k in np.flatnonzero(placement.node >= 0).tolist():
        homes[int(placement.owner[k])].add(int(placement.node[k]))
    return homes
