"""Stages of the CP-SAT model: place all, then balance, then minimise moves.

The result of each stage is fixed for the next. Where the goals are out of reach, the worst node
comes first, then the sum of all excesses. Loads, capacities, shared ones too, and targets are whole
numbers to CP-SAT: a ``Scale`` rounds loads up and capacities down.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, assert_never

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import (
    Scope,
    eligible_domains,
    group_scope,
    lead_ranks,
    nodes_of,
    partition_scope,
)
from evenkeel.measure.bounds import Bounds
from evenkeel.measure.elections import NOWHERE, electable, leads_on, ready
from evenkeel.measure.group_goals import lead_goals
from evenkeel.measure.loads import has_leaders, wanted_load
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.contract import Request
from evenkeel.methods.exact.variables import (
    CutShort,
    Reasons,
    Slack,
    SoftTerm,
    Variables,
    add_variables,
    class_names,
    in_order,
    in_parts,
    order_symmetric,
    stuck,
)
from evenkeel.methods.shared.stopping import StopReason, Watch
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.limits import Limits, node_counts
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import ROUNDING
from evenkeel.model.rules import Limit, Term
from evenkeel.model.runtime.memoize import memoize

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel

Count = Callable[[int], Any]  # from a node to how many replicas of the member in question it holds


def bind(variables: Variables) -> list[SoftTerm]:
    """Add every rule but those of single nodes."""
    cluster = variables.cluster
    soft_terms: list[SoftTerm] = []
    scope = partition_scope(cluster)
    for p in range(len(cluster.partitions)):
        q = int(scope.rule[p])
        if scope.wanted[p]:
            wanted, demands = int(cluster.partitions.replicas[p]), scope.demands[q]
            for limit in demands.limits:
                soft_terms += _limit(variables, scope, q, limit, [p], (p, wanted))
            _terms(variables, demands.counted, [p], ("partition", p))
            soft_terms += _best_led(variables, p, demands.lead)
    if (cluster.partitions.group_rule >= 0).any():
        soft_terms += _bind_groups(variables)
    for group, other, tier in cluster.depends.tolist():
        _near(variables, group, other, tier)
    return soft_terms


def lead_terms(variables: Variables, goals: Goals | Cost) -> list[SoftTerm]:
    """Add what goals ask of the leaders of groups: how many of them are elsewhere is minimised."""
    asked, model = lead_goals(variables.cluster, goals), variables.model
    if asked is None:
        return []
    group = variables.cluster.partitions.group
    leads = [(group[p], n, lead) for p, by in enumerate(variables.leads) for n, lead in by.items()]
    places = np.array([one[:2] for one in leads], np.int32).reshape(-1, 2)
    cells = asked.cells(places[:, 0], places[:, 1])
    on: list[Any] = [0] * len(cells.group)
    for c, (_, _, lead) in zip(cells.which.tolist(), leads, strict=True):
        on[c] = on[c] + lead
    soft_terms = []
    for c, g in enumerate(cells.group.tolist()):
        most = int(asked.count[g])
        for gap in (on[c] - int(cells.most[c]), int(cells.least[c]) - on[c]):
            off = model.new_int_var(0, most, "")
            model.add(off >= gap)
            soft_terms.append(SoftTerm(off, most))
    return soft_terms


def _bind_groups(variables: Variables) -> list[SoftTerm]:
    cluster = variables.cluster
    scope = group_scope(cluster)
    soft_terms: list[SoftTerm] = []
    for g in np.flatnonzero(cluster.partitions.group_rule >= 0).tolist():
        members = np.flatnonzero(cluster.partitions.group == g).tolist()
        wanted = int(cluster.partitions.replicas[members].sum())
        if wanted == 0:
            continue
        q = int(scope.rule[g])
        for limit in scope.demands[q].limits:
            soft_terms += _limit(variables, scope, q, limit, members, (g, wanted))
        _terms(variables, scope.demands[q].counted, members, ("group", g))
    return soft_terms


def _limit(
    variables: Variables,
    scope: Scope,
    q: int,
    limit: Limit,
    members: list[int],
    whose: tuple[int, int],
) -> list[SoftTerm]:
    """Add one limit on the replicas of some partitions together: ``whose`` number, how many."""
    cluster, model = variables.cluster, variables.model
    row = cluster.topology.tier_index(limit.tier)
    member, wanted = whose
    kind = "same_node" if (limit.kind, limit.tier) == ("spread", "node") else limit.kind
    slack: Any = variables.slack.slack(kind, scope.column, member, row)
    may_give = not limit.hard or not isinstance(slack, int)
    if not limit.hard:
        slack = model.new_int_var(0, wanted + int(limit.amount), "")
    name = f"{scope.column} {limit.kind} {limit.tier} {limit.amount}"
    inside = _nodes_by_domain(cluster, row)
    counts = {where: _held(variables, members, nodes) for where, nodes in inside.items()}
    if limit.kind == "spread":
        over: list[Any] = []
        for where, count in counts.items():
            own: Any = 0
            if may_give:  # every domain may be too full by itself
                own = model.new_int_var(0, wanted, "")
                over.append(own)
            variables.reasons.hold(
                count <= limit.amount + own, f"{name} ({_domain_name(cluster, row, where)})"
            )
        if limit.hard and over:
            model.add(sum(over) <= slack)
        slack = sum(over) if not limit.hard else slack
    elif limit.kind == "skew":
        eligible = eligible_domains(cluster, scope, row)[q]
        most, least = model.new_int_var(0, wanted, ""), model.new_int_var(0, wanted, "")
        for where, count in counts.items():
            model.add(most >= count)
            if eligible[where]:
                model.add(least <= count)
        variables.reasons.hold(most - least <= limit.amount + slack, name)
    else:
        used = [_occupied(variables, count, wanted) for count in counts.values()]
        if limit.kind == "min_domains":
            variables.reasons.hold(sum(used) + slack >= limit.amount, name)
        elif limit.kind == "max_domains":
            variables.reasons.hold(sum(used) <= limit.amount + slack, name)
        else:
            assert_never(limit.kind)
    if limit.hard:
        return []
    return [SoftTerm(slack, max(wanted, int(limit.amount)), limit.weight)]


def _domain_name(cluster: Cluster, row: int, where: int) -> str:
    if row == len(cluster.topology):
        return f"node={cluster.nodes.names[where]}"
    return f"{cluster.topology.tiers[row]}={cluster.topology.domain_name(row, where)}"


def _nodes_by_domain(cluster: Cluster, row: int) -> dict[int, list[int]]:
    domain = cluster.topology.domain_with_nodes[row]

    def gathered() -> dict[int, list[int]]:
        inside = np.unique(domain[domain >= 0]).tolist()
        return {where: np.flatnonzero(domain == where).tolist() for where in inside}

    return memoize(cluster.topology, f"nodes by domain {row}", gathered)


def _held(variables: Variables, members: Iterable[int], nodes: list[int]) -> Any:
    """Replicas of some partitions on some nodes."""
    return sum(variables.count(p, n) for p in members for n in nodes)


def _occupied(variables: Variables, count: Any, most: int) -> Any:
    """Return whether a count is above 0, both ways."""
    used = variables.model.new_bool_var("")
    variables.model.add(count >= used)
    variables.model.add(count <= most * used)
    return used


def _terms(
    variables: Variables, terms: list[Term], members: list[int], whose: tuple[str, int]
) -> None:
    """Add the least numbers of replicas, or voters, on the nodes of an expression."""
    for one in terms:
        inside = np.flatnonzero(nodes_of(variables.cluster, one)).tolist()
        if one.voters:
            count = sum(variables.voters[p].get(n, 0) for p in members for n in inside)
        else:
            count = _held(variables, members, inside)
        slack = variables.slack.slack(one.kind, *whose, one.text)
        variables.reasons.hold(count + slack >= one.least, f"{one.kind} {one.text!r} {one.least}")


def _best_led(variables: Variables, p: int, lead: tuple[str, ...]) -> list[SoftTerm]:
    """Count a leader whose node ranks behind that of a voter which could lead."""
    if not lead or not variables.leads[p]:
        return []
    rank, behind = lead_ranks(variables.cluster, lead), variables.model.new_bool_var("")
    may_lead = variables.cluster.nodes.may_lead
    for choice in range(len(lead)):
        better = [v for n, v in variables.voters[p].items() if may_lead[n] and rank[n] <= choice]
        worse = [v for n, v in variables.leads[p].items() if rank[n] > choice]
        if better and worse:
            there = variables.model.new_bool_var("")
            variables.model.add(
                sum(better) <= int(variables.cluster.partitions.replicas[p]) * there
            )
            variables.model.add(sum(worse) + there <= 1 + behind)
    return [SoftTerm(behind, 1)]


def _near(variables: Variables, group: int, other: int, tier: int) -> None:
    """Let a group be in no domain in which a group that it needs is not."""
    cluster = variables.cluster
    own = np.flatnonzero(cluster.partitions.group == group).tolist()
    needed = np.flatnonzero(cluster.partitions.group == other).tolist()
    most = int(cluster.partitions.replicas[own].sum())
    names = cluster.partitions.group_names
    for nodes in _nodes_by_domain(cluster, tier).values():
        there = _occupied(variables, _held(variables, own, nodes), most) if most else 0
        slack = variables.slack.slack("depends", "group", group, tier)
        variables.reasons.hold(
            _held(variables, needed, nodes) + slack >= there, f"{names[group]} needs {names[other]}"
        )


DECIMALS = 6  # loads with so many decimals stay exact
WIDEST = 2.0**34  # loads may add up to so much where that keeps them exact
UNBOUND = 4.0 * WIDEST  # more than all loads together
# otherwise no dimension's loads add up to more: larger coefficients are not handled safely
FINEST = 2.0**26

# numbers this close to a whole number, relative and absolute, are replaced by it
NEAR, WHOLE = 1e-9, 1e-4


def _power(value: float) -> float:
    """Return the greatest power of two that is no more than a value."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1)


@dataclass(frozen=True)
class Scale:
    """How one dimension becomes whole numbers, and whether its loads stay what they are."""

    factor: float
    exact: bool = True

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
        return cls(_power(FINEST / total), exact=False)

    @classmethod
    def of_dimension(cls, cluster: Cluster, d: int) -> Scale:
        """Choose the scale of what is wanted, and of what stands somewhere."""
        load, asked = cluster.partitions.load, cluster.partitions.replicas > 0
        asked[cluster.placement.owner[cluster.placement.node >= 0]] = True
        every = np.concatenate([one[asked, d] for one in (load.leader, load.voter, load.non_voter)])
        total = max(float(wanted_load(cluster)[d]), float(every.max(initial=0.0)))
        return cls.of(every, 2.0 * total)

    def up(self, load: float) -> int:
        """Scale a load."""
        scaled = min(load * self.factor, 4.0 * WIDEST)
        return int(np.ceil(scaled - NEAR * max(scaled, 1.0)))

    def down(self, capacity: float) -> int:
        """Scale a capacity."""
        scaled = min(capacity * self.factor, 4.0 * WIDEST)
        return int(np.floor(scaled + NEAR * max(scaled, 1.0)))


@dataclass(frozen=True)
class Ceiling:
    """A node's load in one dimension, or its leaders, and its target."""

    reading: Any
    target: float

    def most(self, excess: float) -> int:
        """Return the load allowed on the node."""
        return int(np.floor(min(self.target * (1.0 + excess) * (1.0 + ROUNDING), UNBOUND)))

    def less(self, excess: float) -> int:
        """Return the load allowed on the node for a strictly better answer."""
        return int(np.ceil(min(self.target * (1.0 + excess) * (1.0 - ROUNDING), UNBOUND))) - 1


@dataclass(frozen=True)
class Floor:
    """A node's load in one dimension, and the least that the goals ask for."""

    reading: Any
    least: int


def weigh(variables: Variables, bounds: Bounds | None) -> tuple[list[Ceiling], list[Floor]]:
    """Add the capacities of nodes and domains; return loads to compare with the goals."""
    cluster = variables.cluster
    classes = class_names(cluster)
    most = cluster.nodes.max_replicas
    ceilings, floors = [], []
    for n in np.flatnonzero(cluster.nodes.carries & (most >= 0)).tolist():
        count = sum(variables.count(p, n) for p in range(len(cluster.partitions)))
        slack = variables.slack.slack("max_replicas", "node", n, -1)
        variables.reasons.hold(count <= int(most[n]) + slack, f"max_replicas ({classes[n]})")
    for d, name in enumerate(cluster.dimensions):
        scale = Scale.of_dimension(cluster, d)
        capacity = cluster.nodes.capacity[:, d]
        on = _loads(variables, d, scale)
        matters = variables.slack.repairs or cluster.transient[d]
        held = _held_loads(cluster, d, scale) if matters else [0] * len(capacity)
        for n in np.flatnonzero(cluster.nodes.carries & np.isfinite(capacity)).tolist():
            held_there = cluster.transient[d] and cluster.nodes.alive[n]
            left = _left_behind(variables, n, d, scale) if held_there else 0
            room = scale.down(float(capacity[n]))
            above = _stays_above(variables, [n], ("capacity", "node", n, d), held[n] > room)
            most_here, why = room + (held[n] - room) * above, f"capacity {name} ({classes[n]})"
            variables.reasons.hold(on[n] <= most_here, why)
            if not isinstance(left, int):
                variables.reasons.hold(on[n] + left <= max(room, held[n]), why)
        _share(variables, on, held, d, scale)
        if bounds is not None:
            target = bounds.target[:, d] * scale.factor
            finite = np.flatnonzero(np.isfinite(target)).tolist()
            ceilings += [Ceiling(on[n], float(target[n])) for n in finite]
            least = np.ceil(bounds.floor[:, d] * scale.factor * (1.0 - ROUNDING)).astype(np.int64)
            floors += [Floor(on[n], int(least[n])) for n in np.flatnonzero(least).tolist()]
    if bounds is not None and has_leaders(cluster):
        for n in np.flatnonzero(np.isfinite(bounds.leader_target)).tolist():
            leads = sum(one[n] for one in variables.leads if n in one)
            ceilings.append(Ceiling(leads, float(bounds.leader_target[n])))
    return [targets for targets in ceilings if not isinstance(targets.reading, int)], floors


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
    """Load of the replicas that leave a node, which counts there until all moves are done."""
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
    """Return for each partition that needs another leader whether it waits for a copy to lead."""
    cluster = variables.cluster
    placement, lives = cluster.placement, leads_on(cluster)
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


# *optimal*: every stage is proven; *feasible*: some stage was cut short; *infeasible*: proven that
# no placement exists; *unknown*: nothing was found in the time given
Certainty = Literal["optimal", "feasible", "infeasible", "unknown"]


@dataclass(frozen=True)
class Stage:
    """One thing that was made as small as it can be, after those before it."""

    name: str
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """How much less might be possible; 0 where it is proven that nothing is."""
        return self.value - self.bound


@dataclass(frozen=True)
class Proof:
    """Proof and statistics of an exact solve."""

    status: Certainty
    stages: tuple[Stage, ...] = ()
    effort: float = 0.0


def within_limits(request: Request) -> str:
    """Return the text that a proof holds within the limits; "" where none are set."""
    return "" if request.limits == Limits() else " within the limits"


Join = tuple[Any, int, int]  # how many replicas of a partition join a node, and which these are


def hold_budgets(
    variables: Variables, limits: Limits, joins: list[Join], changes: list[Any]
) -> None:
    """Hold moves and leader changes to their budgets."""
    cluster, model = variables.cluster, variables.model
    if limits.moves is not None:
        model.add(sum(count for count, _, _ in joins) <= limits.moves)
    if limits.leader_changes is not None:
        model.add(sum(changes) <= limits.leader_changes)
    if limits.partition_moves is not None:
        for counts in _each(joins, 1).values():
            model.add(sum(counts) <= limits.partition_moves)
    if limits.bytes is not None:
        _hold_bytes(variables, limits.bytes, joins)
    if limits.node_in is not None:
        most = node_counts(cluster, limits.node_in).tolist()
        for n, counts in _each(joins, 2).items():
            model.add(sum(counts) <= most[n])
    if limits.node_out is not None:
        _hold_leaving(variables, node_counts(cluster, limits.node_out).tolist())
    for tier in {*limits.domain_in, *limits.domain_out}:
        domain = cluster.topology.domain_with_nodes[cluster.topology.tier_index(tier)]
        _hold_passing(variables, domain, _of(limits.domain_in, tier), _of(limits.domain_out, tier))


def _each(joins: list[Join], which: int) -> dict[int, list[Any]]:
    """Gather the counts of each partition, 1, or of each node, 2."""
    found: dict[int, list[Any]] = {}
    for join in joins:
        found.setdefault(join[which], []).append(join[0])
    return found


def _hold_bytes(variables: Variables, most: float, joins: list[Join]) -> None:
    """Hold the data that moves, in the roles that replicas have in the end, to a budget."""
    load, d = variables.cluster.partitions.load, variables.cluster.bytes_dimension
    of = load.leader[:, d], load.voter[:, d], load.non_voter[:, d]
    scale = Scale.of(np.concatenate(of), 4.0 * float(np.maximum.reduce(of).sum()) + most)
    total: Any = 0
    for _, p, n in joins:
        leader, voter, other = (scale.up(float(weight[p])) for weight in of)
        total += voter * variables.voters[p].get(n, 0) + other * variables.others[p].get(n, 0)
        total += (leader - voter) * variables.leads[p].get(n, 0)
    variables.model.add(total <= scale.down(most))


def _of(amounts: Mapping[str, int], tier: str) -> int | None:
    return amounts.get(tier)


def _hold_leaving(variables: Variables, most: list[int]) -> None:
    """Hold what leaves each living node to a number: none, where another of its partition stays."""
    model, placement = variables.model, variables.cluster.placement
    for n in np.flatnonzero(variables.cluster.nodes.serves).tolist():
        owner, count = np.unique(placement.owner[placement.node == n], return_counts=True)
        leave = []
        for p, held in zip(owner.tolist(), count.tolist(), strict=True):
            left = model.new_bool_var("")
            model.add(variables.count(p, n) + left >= 1)
            leave.append(held * left)
        model.add(sum(leave) <= most[n])


def _hold_passing(
    variables: Variables, domain: NDArray[np.int32], most_in: int | None, most_out: int | None
) -> None:
    """Hold what enters each domain, and what leaves its living nodes, to a number each."""
    if most_in is None and most_out is None:
        return
    cluster, model, placement = variables.cluster, variables.model, variables.cluster.placement
    source = cluster.nodes.serves
    owner = placement.owner
    for where in np.unique(domain[domain >= 0]).tolist():
        inside = domain == where
        held = owner[np.append(inside, False)[placement.node]]
        living = owner[np.append(inside & source, False)[placement.node]]
        count = len(variables.voters)
        before, alive = np.bincount(held, minlength=count), np.bincount(living, minlength=count)
        enter, leave = [], []
        for p in range(count):
            nodes = [n for n in variables.nodes(p) if inside[n]]
            after = sum(variables.count(p, n) for n in nodes)
            if most_in is not None and nodes:
                more = model.new_int_var(0, int(cluster.partitions.replicas[p]), "")
                model.add(more >= after - int(before[p]))
                enter.append(more)
            if most_out is not None and alive[p]:
                less = model.new_int_var(0, int(alive[p]), "")
                model.add(less >= int(alive[p]) - after)
                leave.append(less)
        if most_in is not None:
            model.add(sum(enter) <= most_in)
        if most_out is not None:
            model.add(sum(leave) <= most_out)


GLANCE = 0.05  # seconds between two looks at the clock while CP-SAT runs
# How much of a model CP-SAT puts into its linear program. All of it settles knapsacks and limits
# per domain soonest; where nothing is minimised, a part of it finds a placement sooner.
FULL, SOME = 2, 1

# resolution of excesses as a part of the target, and the most of these parts
PARTS, FARTHEST = 1000, 1000

# excesses this close, relative to the greater one where that is above 1, are compared by asking for
# a strictly better one
NEARLY = 1e-4


@dataclass
class Search:
    """How CP-SAT is run, how long, and how near to the least excess is near enough."""

    workers: int
    effort: float
    seed: int
    watch: Watch
    precision: float = 0.0
    linearization: int = FULL
    spent: float = field(default=0.0)
    stopped: StopReason | None = None

    def minimise(self, model: CpModel, objective: Any) -> tuple[Any, Certainty]:
        """Run CP-SAT on one objective."""
        from ortools.sat.python import cp_model

        model.minimize(objective)
        solver = cp_model.CpSolver()
        parameters = solver.parameters
        parameters.num_workers = self.workers
        parameters.catch_sigint_signal = False  # it would leave Python without its own handler
        parameters.random_seed = self.seed & 0x7FFFFFFF
        parameters.linearization_level = self.linearization
        # probing costs small models more than it finds, and twins are in order already
        parameters.cp_model_probing_level = parameters.symmetry_level = 0
        parameters.max_deterministic_time = max(self.effort - self.spent, 1e-3)
        left = 0.0 if self.stopped is not None else self.watch.seconds_left
        if np.isfinite(left):
            parameters.max_time_in_seconds = max(left, 1e-3)
        status = self._solved(solver, model)
        self.spent += solver.response_proto.deterministic_time
        names: dict[Any, Certainty] = {
            cp_model.OPTIMAL: "optimal",
            cp_model.FEASIBLE: "feasible",
            cp_model.INFEASIBLE: "infeasible",
        }
        return solver, names.get(status, "unknown")

    def _solved(self, solver: Any, model: CpModel) -> Any:
        """Run CP-SAT in a thread, while the caller is asked here, and Ctrl-C arrives."""
        with ThreadPoolExecutor(1, "evenkeel-exact") as pool:
            running = pool.submit(solver.solve, model)
            try:
                while wait([running], GLANCE).not_done:
                    self.stopped = self.stopped or self.watch.look()
                    if self.stopped is not None:
                        solver.stop_search()
            finally:  # what interrupts the caller ends the search, too
                while not running.done():
                    solver.stop_search()
                    wait([running], GLANCE)
            return running.result()


@dataclass
class Found:
    """What the stages end with."""

    # (K,) node of each replica in the cluster's slots; None if nothing was found
    node: NDArray[np.int32] | None
    leader: NDArray[np.int16] | None  # (P,) slot that leads
    proof: Proof  # how certain it is


def in_stages(request: Request, hint: Placement, search: Search) -> Found:
    """Place as many replicas as can be, then level, then move as little as possible."""
    try:
        stages = Stages.of(request, hint, search)
    except CutShort:
        return Found(None, None, Proof("unknown"))
    stages.place()
    stages.level_and_move()
    return stages.found


@dataclass
class Stages:
    """A model of a cluster, the stages so far, and the best answer."""

    variables: Variables
    search: Search
    soft_terms: list[SoftTerm]
    ceilings: list[Ceiling]
    floors: list[Floor]
    joins: list[Join]
    changes: list[Any]
    late: list[Any]
    stages: list[Stage] = field(default_factory=list)
    certain: Certainty = "optimal"
    answer: tuple[NDArray[np.int32], NDArray[np.int16]] | None = None
    _solver: Any = None

    @classmethod
    def of(
        cls,
        request: Request,
        hint: Placement,
        search: Search,
        slack: Callable[[Cluster, CpModel], Slack] = Slack.none,
    ) -> Stages:
        """Model a request, its rules and its budgets, and start from a placement."""
        # ``slack`` sets how far rules may be broken. Raises ``CutShort`` if the time is over before
        # the model is made; the time to load CP-SAT is left out of it, as what compiling takes.
        began = search.watch.clock()
        from ortools.sat.python import cp_model

        search.watch.exclude(search.watch.clock() - began)
        model, cluster = cp_model.CpModel(), request.cluster
        reasons = Reasons(model, watch=search.watch)
        variables = add_variables(cluster, model, reasons, slack(cluster, model), may_miss=True)
        soft_terms = [*bind(variables), *lead_terms(variables, request.goals), *variables.swapped]
        ceilings, floors = weigh(variables, request.bounds)
        order_symmetric(variables)
        joins, changes = moved(variables), changed_leaders(variables)
        hold_budgets(variables, request.limits, joins, changes)
        stages = cls(
            variables, search, soft_terms, ceilings, floors, joins, changes, late_leaders(variables)
        )
        stages.start_from(hint)
        reasons.watch = None  # from here on CP-SAT is stopped
        return stages

    def start_from(self, placement: Placement) -> None:
        """Let the next stage start from a placement; it starts from the best answer else."""
        _hint(self.variables, in_order(self.variables, placement))

    @property
    def found(self) -> Found:
        """What there is by now."""
        proof = Proof(self.certain, tuple(self.stages), self.search.spent)
        node, leader = (None, None) if self.answer is None else self.answer
        return Found(node, leader, proof)

    def last(self, name: str) -> Stage | None:
        """Return the last stage, if it is of that name."""
        return self.stages[-1] if self.stages and self.stages[-1].name == name else None

    def place(self) -> None:
        """Place and lead the most; then endanger the fewest; then meet the most soft terms."""
        danger, most = self.danger
        unmet, most_unmet = self.unmet
        soft = 1 + most_unmet
        many = 1 + 1000 * soft * most
        missing = sum(self.variables.missing) + sum(self.variables.unled)
        self.minimise("missing", many * missing + soft * danger + unmet, many)

    def endanger_least(self) -> None:
        """Leave the fewest short of ``min_active``, then the fewest partitions without a quorum."""
        self.minimise("endangered", self.danger[0], 1)

    def endanger_no_more(self, few: tuple[int, ...], no_quorum: int) -> None:
        """Endanger no more than so many: those furthest below ``min_active`` first, and quorums."""
        danger, most, weight = self.danger[0], no_quorum, 1 + len(self.variables.no_quorum)
        for short, count in zip(self.variables.few, reversed(few), strict=False):
            most, weight = most + weight * count, weight * (1 + len(short))
        self.variables.model.add(danger <= most)

    @property
    def danger(self) -> tuple[Any, int]:
        """Those furthest below ``min_active`` first, lost quorums last; and the most it can be."""
        total, most = sum(self.variables.no_quorum), 1 + len(self.variables.no_quorum)
        for few in self.variables.few:
            total, most = total + most * sum(few), most * (1 + len(few))
        return total, most

    @property
    def unmet(self) -> tuple[Any, int]:
        """Weighted sum of unmet soft terms, and its upper limit."""
        parts = in_parts([soft.weight for soft in self.soft_terms])
        both = list(zip(parts, self.soft_terms, strict=True))
        return sum(n * one.amount for n, one in both), sum(n * one.most for n, one in both)

    def meet_soft_terms(self) -> None:
        """Leave the fewest soft terms unmet, by weight."""
        self.minimise("soft rules", self.unmet[0], 1)

    def repair(self) -> None:
        """Place the most, then break the fewest rules, then the fewest soft terms."""
        variables = self.variables
        unmet, most_unmet = self.unmet
        soft = 1 + most_unmet
        broken = sum(variables.unled) + sum(variables.slack.broken)
        many = soft * (1 + len(variables.unled) + sum(variables.slack.came.values()))
        lacking = many * sum(variables.missing) + soft * broken + unmet
        self.minimise("missing", lacking, many)

    def place_all(self) -> None:
        """Place and lead all, however many soft terms that costs."""
        variables = self.variables
        variables.model.add(sum(variables.missing) + sum(variables.unled) == 0)
        self.minimise("missing", 0 * sum(variables.missing), 1)

    @property
    def proves_some(self) -> bool:
        """Whether it is proven that something must be endangered, missing or broken."""
        return self.certain == "optimal" or any(one.bound > 0.0 for one in self.stages)

    def level_and_move(self) -> None:
        """Balance, then minimise moves and leader changes, with all placed."""
        self.level()
        each = 1 + len(self.changes) + len(self.late)
        moves = sum(count for count, _, _ in self.joins)
        self.minimise("moves", each * moves + self.handed_on, each)

    @property
    def handed_on(self) -> Any:
        """Leader changes, except those of leaders that are lost."""
        return sum(self.changes) + sum(self.late)

    def minimise(self, name: str, objective: Any, parts: int) -> None:
        """Make something small, and hold it there; it is counted in so many parts of one."""
        if self.certain in ("infeasible", "unknown"):
            return
        if isinstance(objective, int):
            self.stages.append(Stage(name, objective / parts, objective / parts))
            return
        solver, status = self.search.minimise(self.variables.model, objective)
        if status in ("infeasible", "unknown"):
            self.certain = status if self.answer is None else "feasible"
            return
        if status == "feasible":
            self.certain = "feasible"
        value = round(solver.objective_value)
        bound = int(np.ceil(solver.best_objective_bound - 1e-6))
        self.stages.append(Stage(name, value / parts, bound / parts))
        self._keep(solver)
        self.variables.model.add(objective <= value)

    def level(self) -> None:
        """Bring the greatest excess down, by asking whether all nodes can be below some value."""
        # an excess as an unknown of its own would be multiplied with every target, and products of
        # such size are beyond what the solver handles safely
        ceilings = [one for one in self.ceilings if one.target > 0.0]
        empty = [one for one in self.ceilings if one.target <= 0.0]
        if self.answer is None or self.certain in ("infeasible", "unknown") or not self.ceilings:
            return
        if not self._is_loaded_beyond_nothing():
            for one in empty:
                self.variables.model.add(one.reading <= 0)
        elif self._try(empty, [0] * len(empty)) is None:
            self.certain = "feasible"
        low, high = 0.0, max(self._excess(ceilings), 0.0)
        proven = high <= 0.0
        if not proven and self._try(ceilings, [one.most(0.0) for one in ceilings]) is True:
            low = high = 0.0
            proven = True
        while not proven:
            apart = (high - low) / max(high, 1.0)  # of what is huge a float has no more digits
            if apart < self.search.precision:
                self.certain = "feasible"
                break
            close = apart < NEARLY
            beaten = self._try(
                ceilings,
                [one.less(high) if close else one.most((low + high) / 2.0) for one in ceilings],
            )
            if beaten is None:
                self.certain = "feasible"
                break
            if beaten:
                high = max(self._excess(ceilings), 0.0)
                proven = high <= low
            elif close:
                low, proven = high, True
            else:
                low = (low + high) / 2.0
        for one in self.ceilings:
            reached = int(self._solver.value(one.reading))
            self.variables.model.add(one.reading <= max(one.most(high + ROUNDING), reached))
        self.stages.append(Stage("level", high, low))
        if high > 0.0 or self._is_loaded_beyond_nothing():
            self._level_the_others()

    def _level_the_others(self) -> None:
        """Where the worst node stays above its target, bring all together as near as can be."""
        model, above = self.variables.model, []
        for one in self.ceilings:
            step = max(1, int(min(one.target, UNBOUND) / PARTS))
            reached = max(0, -(-(self._solver.value(one.reading) - one.most(0.0)) // step))
            steps = model.new_int_var(0, max(reached, PARTS * FARTHEST), "")
            model.add(step * steps >= one.reading - one.most(0.0))
            above.append(steps)
        self.minimise("others", sum(above), PARTS)

    def _try(self, ceilings: list[Ceiling], most: list[int]) -> bool | None:
        """Return whether all nodes can carry so little, and keep the answer; None without time."""
        model = self.variables.model
        wanted = model.new_bool_var("")
        for one, limit in zip(ceilings, most, strict=True):
            model.add(one.reading <= limit).only_enforce_if(wanted)
        solver, status = self.search.minimise(model, 1 - wanted)
        reached = status in ("optimal", "feasible") and bool(solver.value(wanted))
        if reached:
            self._keep(solver)
        model.add(wanted == int(reached))
        return True if reached else False if status == "optimal" else None

    def _excess(self, ceilings: list[Ceiling]) -> float:
        """How far above its target the worst node is in the best answer."""
        return max(
            (
                self._solver.value(one.reading) / (one.target * (1.0 + ROUNDING)) - 1.0
                for one in ceilings
            ),
            default=0.0,
        )

    def _is_loaded_beyond_nothing(self) -> bool:
        """Return whether a node whose target is 0 carries load in the best answer."""
        return any(one.target <= 0.0 < self._solver.value(one.reading) for one in self.ceilings)

    def _keep(self, solver: Any) -> None:
        self.answer = _read(self.variables, solver)
        self._solver = solver
        _hint(self.variables, self.variables.cluster.placement.replaced(*self.answer))


def _hint(variables: Variables, hint: Placement) -> None:
    """Start from a placement."""
    variables.model.clear_hints()
    held: dict[tuple[int, int, bool], int] = {}
    votes = hint.role == int(Role.VOTER)
    for key in zip(hint.owner.tolist(), hint.node.tolist(), votes.tolist(), strict=True):
        held[key] = held.get(key, 0) + 1
    led = hint.leader_node
    for p in range(len(variables.voters)):
        for n, count in variables.voters[p].items():
            variables.model.add_hint(count, held.get((p, n, True), 0))
        for n, count in variables.others[p].items():
            variables.model.add_hint(count, held.get((p, n, False), 0))
        for n, lead in variables.leads[p].items():
            variables.model.add_hint(lead, int(led[p]) == n)


def _read(variables: Variables, solver: Any) -> tuple[NDArray[np.int32], NDArray[np.int16]]:
    """Put an answer into the cluster's slots: a replica that stays keeps its slot."""
    placement, may_hold = variables.cluster.placement, variables.cluster.nodes.may_hold
    stays, where = stuck(variables.cluster), electable(variables.cluster)
    node = np.full(len(placement.node), -1, np.int32)
    leader = np.full(len(placement), -1, np.int16)
    for p in range(len(placement)):
        rows = np.arange(placement.first[p], placement.first[p + 1])
        votes = placement.role[rows] == Role.VOTER
        for slots, counts in (
            (rows[votes], variables.voters[p]),
            (rows[~votes], variables.others[p]),
        ):
            left = {n: solver.value(count) for n, count in counts.items()}
            free = []
            for k in slots.tolist():
                n = int(placement.node[k])
                if stays[k]:
                    node[k] = n
                elif left.get(n, 0) > 0:
                    node[k] = n
                    left[n] -= 1
                else:
                    free.append(k)
            # a slot that lost its replica is filled before one that waits for another node, and
            # that one before a slot that never had any
            held = placement.node[free]
            rank = np.where(held < 0, 2, 0)
            rank[held >= 0] = ~may_hold[held[held >= 0]]
            free = [free[i] for i in np.argsort(rank, kind="stable").tolist()]
            joining = [n for n, count in left.items() for _ in range(count)]
            for k, n in zip(free, joining, strict=False):
                node[k] = n
        leads = [n for n, lead in variables.leads[p].items() if solver.value(lead)]
        if leads:
            at = np.flatnonzero(votes & (node[rows] == leads[0]))
            was = placement.leader[p]
            # what no election makes the leader is not the replica that leads on elsewhere
            if len(at) and len(where) and where[rows[at[0]]] == NOWHERE and votes[was]:
                node[rows[[at[0], was]]] = node[rows[[was, at[0]]]]
                at[0] = was
            leader[p] = (
                was if was in at or len(at) == 0 else at[0]
            )  # none: a leader that may not lead
    return node, leader
