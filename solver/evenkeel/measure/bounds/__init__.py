"""Bounds on imbalance, leaders and moves that no placement of a cluster can beat."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from evenkeel.measure.binding import Scope, partition_scope, scope_without_forbidden
from evenkeel.measure.bounds.certificate import Certificate
from evenkeel.measure.bounds.cost import CostBound, cost_bound
from evenkeel.measure.bounds.even import (
    NEARLY,
    WHOLE,
    Even,
    Forced,
    left_over,
    whole_level,
    whole_loads,
    whole_units,
)
from evenkeel.measure.bounds.leading import leader_shares
from evenkeel.measure.bounds.level import (
    arrivals,
    floor_target,
    level_terms,
    parts_of,
    soft_parts_of,
)
from evenkeel.measure.bounds.moves import (
    EvictionProof,
    Keepable,
    beyond_group_rules,
    keepable,
    kept_on_full_nodes,
    prove_evictions,
)
from evenkeel.measure.bounds.sets import (
    confines,
    limits_of_groups,
    sets_of_places,
    shares_with_room,
)
from evenkeel.measure.compare import forced_moves
from evenkeel.measure.group_goals import (
    crowding,
    group_moves,
    group_targets,
    groups_met,
    lead_goals,
    lead_joins,
)
from evenkeel.measure.levelness import Levelness
from evenkeel.measure.loads import (
    keepers,
    usable,
    utilisation,
    wanted_leaders,
    wanted_load,
    wanted_replicas,
    weighted_sum,
)
from evenkeel.measure.room import most_away, most_by_number, staying
from evenkeel.measure.tally import PlacementCounts
from evenkeel.measure.units import PRODUCTS, powers, scaled
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.placement import Placement
from evenkeel.model.reading.arrays import ROUNDING, Ints64, Reals, read_only

# classes up to which partitions are distinguished by the nodes that are forbidden to them
MOST_NARROWED = 64

# factor by which targets are raised at most, so that all of them can be met together
MOST_RAISED = 2.0**60


@dataclass(frozen=True, eq=False)
class Bounds:
    """Proven lower bounds for one cluster and its goals. N nodes, D dimensions.

    They hold for every placement that places all replicas wanted and breaks no hard rule.

    Parameters
    ----------
    fair : ndarray of float64, shape (D,)
        All load wanted over all accepting capacity.
    level : ndarray of float64, shape (D,)
        The fullest node is at least so full, as a share of its capacity.
    level_term : tuple of str
        Which term of the bound is the binding one, per dimension.
    even : ndarray of float64, shape (N, D)
        Share of its capacity that each node carries where all is as level as rules permit: the
        mean, or what rules force. Tolerances are on top. 0 where there is none.
    least : ndarray of float64, shape (N, D)
        Load in whole replicas that nodes carry then, where loads are multiples of one unit, so that
        all find a place: no target is below it.
    target : ndarray of float64, shape (N, D)
        Load that a node may carry for the goals to be met: (1 + tolerance) x ``even``, rounded
        down to whole replicas, not below ``least``, and never above its capacity.
    leaders : int
        The node with most leaders leads at least so many.
    leader_ratio : float
        Some node leads at least so many times its share by lead weight.
    leader_target : ndarray of float64, shape (N,)
        Leaders that a node may have for the goals to be met; ``inf`` for any.
    forced : int
        Replicas that stand nowhere, or where they may not stay.
    moves_feasible : int
        Moves that a placement without broken rules needs at least.
    moves_level : int
        Moves that one within ``target`` and ``floor`` needs at least, leadership being free.
    feasible_proof, level_proof : EvictionProof
        Which nodes must lose how many replicas, beyond what must join whatever is kept.
    missing : int
        Replicas that must join whatever is kept, but for those that ``level_proof`` counts.
    floor : ndarray of float64, shape (N, D)
        Load that a node must hold for the goals to be met: (1 - floor) x the mean of its capacity,
        or what rules leave for it where that is less, rounded down where loads only count replicas;
        0 where no floor is asked for.
    arrivals : ndarray of int64, shape (N,)
        Replicas that must at least join each node for it to hold its floor.
    cost : CostBound or None
        What a ``Cost`` comes to at least; None for ``Goals``.
    certificate : Certificate or None
        Proof of ``moves_level`` where it was lifted above what the proofs here come to; see
        ``Result.proved``.
    crowded : int
        Replicas that must leave nodes with too many of their group, or domains by rules of whole
        groups, or that keep nothing; 0 without such a goal and where no such rule is broken.
    leading : int
        Replicas that must join nodes for the goals of the leaders of groups; 0 without any.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> found = result.bounds
    >>> found.fair.tolist(), found.level.tolist(), found.moves_level, found.leaders
    ([0.5], [0.5], 2, 2)
    """

    fair: Reals
    level: Reals
    level_term: tuple[str, ...]
    even: Reals
    least: Reals
    target: Reals
    leaders: int
    leader_ratio: float
    leader_target: Reals
    forced: int
    moves_feasible: int
    moves_level: int
    feasible_proof: EvictionProof
    level_proof: EvictionProof
    missing: int
    floor: Reals
    arrivals: Ints64
    cost: CostBound | None = None
    certificate: Certificate | None = None
    crowded: int = 0
    leading: int = 0

    @property
    def moves_term(self) -> str:
        """Which term of ``moves_level`` is the binding one."""
        if self.certificate is not None:
            return "joint prices" if self.certificate.joint else "covers of overfull nodes"
        others = max(self.missing + self.level_proof.moves, int(self.arrivals.sum()))
        if self.leading > max(others, self.crowded):
            return "leaders of groups"
        if self.crowded > others:
            return "groups on crowded nodes"
        if self.moves_level > self.missing + self.level_proof.moves:
            return "nodes below their floor"
        if self.moves_level > self.moves_feasible:
            return "overfull nodes"
        if self.moves_level > self.missing:
            return "nodes over capacity"
        if self.missing > self.forced:
            return "broken rules"
        return "forced moves" if self.missing else "nothing"

    @property
    def leaders_term(self) -> str:
        """Which term of ``leaders`` is the binding one."""
        return "aggregate" if self.leaders else "nothing"

    @property
    def ratio(self) -> Reals:
        """The least ratio of the fullest node to the fair share, (D,) float64."""
        ratio = np.ones(len(self.fair))
        apart = (self.fair > 0.0) & (self.level != self.fair)
        with np.errstate(over="ignore"):
            return np.divide(self.level, self.fair, out=ratio, where=apart)


def bounds(cluster: Cluster, goals: Goals | Cost) -> Bounds:
    """Prove how level a cluster can be, and how few moves from its placement that takes."""
    return _in_ordinary_units(_bounds, cluster, goals)


def _in_ordinary_units(
    prove: Callable[[Cluster, Goals | Cost], Bounds], cluster: Cluster, goals: Goals | Cost
) -> Bounds:
    """Return what is proven in the cluster's units; products of far amounts are no numbers."""
    power = powers(cluster)
    power = np.where(np.abs(power) > PRODUCTS, power, 0)
    if isinstance(goals, Cost) or not power.any():
        return prove(cluster, goals)
    found = prove(scaled(cluster, -power), goals)

    def back(amount: Reals) -> Reals:
        return read_only(np.ldexp(amount, power))

    def per_load(proof: EvictionProof) -> EvictionProof:
        return replace(proof, price=read_only(np.ldexp(proof.price, -power)))

    return replace(
        found,
        least=back(found.least),
        target=back(found.target),
        floor=back(found.floor),
        feasible_proof=per_load(found.feasible_proof),
        level_proof=per_load(found.level_proof),
    )


def _bounds(cluster: Cluster, goals: Goals | Cost) -> Bounds:
    """Prove the same in the units that the cluster has."""
    cost = goals if isinstance(goals, Cost) else None
    goals = goals if isinstance(goals, Goals) else Goals(level=None)
    placed = PlacementCounts.of(cluster, cluster.placement)
    found = _levels(cluster, goals, placed)
    capacity = level_target(placed, Goals(level=None), found.even, found.least)
    kept = keepable(placed)
    targets = [capacity]
    if not np.array_equal(capacity, found.target):
        targets.append(found.target)
    proofs = prove_evictions(placed, kept, np.stack(targets))
    to_fit, to_level = proofs[0], max(proofs, key=lambda proof: proof.moves)  # what is level fits
    to_part = beyond_group_rules(placed, kept)
    crowded = _crowded(placed, goals, kept, to_level)
    crowded = max(crowded, kept.missing + to_part) if to_part else crowded
    missing, on_full = kept.missing, kept_on_full_nodes(placed, kept, found.target)
    if on_full is not None:
        other = prove_evictions(placed, on_full, found.target[None])[0]
        if on_full.missing + other.moves > missing + to_level.moves:
            missing, to_level = on_full.missing, other
    floor = floor_target(cluster, goals, found.fair, found.even, found.target)
    joining = arrivals(placed, floor)
    asked = lead_goals(cluster, goals)
    leading = 0 if asked is None else lead_joins(cluster, asked)
    return Bounds(
        **found._asdict(),
        forced=forced_moves(placed),
        moves_feasible=kept.missing + max(to_fit.moves, to_part),
        moves_level=max(missing + to_level.moves, int(joining.sum()), crowded, leading),
        crowded=crowded,
        leading=leading,
        feasible_proof=to_fit,
        level_proof=to_level,
        missing=missing,
        floor=read_only(floor),
        arrivals=read_only(joining),
        cost=None if cost is None else cost_bound(cluster, cost, kept.missing + to_fit.moves),
    )


def _crowded(placed: PlacementCounts, goals: Goals, kept: Keepable, proof: EvictionProof) -> int:
    """Return the least moves for goals within groups: what leaves a node for them, or for loads."""
    cluster, most = placed.cluster, group_targets(placed.cluster, goals)
    if most is None:
        return 0
    there, leaving = np.flatnonzero(kept.node_row), np.zeros(len(cluster.nodes), np.int64)
    crowd = crowding(cluster, most, placed.partition(there), kept.node_row[there] - 1)
    leaving[proof.node] = proof.count
    together = kept.missing + int(np.maximum(crowd, leaving).sum())
    return max(group_moves(cluster, most), together)


def bounds_of_levels(cluster: Cluster, goals: Goals | Cost, missing: int = 0) -> Bounds:
    """Prove bounds of levels, at the cost of the nodes; of moves, only the ``missing`` ones."""
    # Enough where a placement is at hand that breaks no rule, is within the targets of goals
    # without floors, and moves just the ``missing`` replicas that stand where they may not.
    return _in_ordinary_units(partial(_of_levels, missing=missing), cluster, goals)


def _of_levels(cluster: Cluster, goals: Goals | Cost, missing: int) -> Bounds:
    """Prove the same in the units that the cluster has."""
    cost = goals if isinstance(goals, Cost) else None
    goals = goals if isinstance(goals, Goals) else Goals(level=None)
    found = _levels(cluster, goals, PlacementCounts.of(cluster, cluster.placement))
    none = np.zeros(0, np.int64)
    proof = EvictionProof(none, none, np.zeros((0, len(cluster.dimensions))))
    nodes = len(cluster.nodes)
    return Bounds(
        **found._asdict(),
        forced=missing,
        moves_feasible=missing,
        moves_level=missing,
        feasible_proof=proof,
        level_proof=proof,
        missing=missing,
        floor=read_only(floor_target(cluster, goals, found.fair, found.even, found.target)),
        arrivals=read_only(np.zeros(nodes, np.int64)),
        cost=None if cost is None else cost_bound(cluster, cost, missing),
    )


class _Levels(NamedTuple):
    """Bounds on levels and leaders that hold for any initial placement; as in ``Bounds``."""

    fair: Reals
    level: Reals
    level_term: tuple[str, ...]
    even: Reals
    least: Reals
    target: Reals
    leaders: int
    leader_ratio: float
    leader_target: Reals


def _levels(cluster: Cluster, goals: Goals, placed: PlacementCounts) -> _Levels:
    """Prove how level the cluster can be, and what nodes may carry and lead for the goals."""
    wanted, nodes = wanted_load(cluster), cluster.nodes
    scope = scope_without_forbidden(cluster, MOST_NARROWED)
    parts = parts_of(placed, scope)
    names, proven = zip(*level_terms(placed, scope, wanted, parts), strict=True)
    terms = np.stack(proven)
    if not goals.soft_yield:
        parts += soft_parts_of(placed, scope)
    even, least, more = _even_loads(
        placed, scope, parts, wanted, dict(zip(names, proven, strict=True))
    )
    parts += more
    fair = utilisation(wanted, nodes.capacity[nodes.may_receive].sum(0))
    with np.errstate(invalid="ignore"):  # of two sums the one that is known
        even = np.where(np.abs(even - fair) <= 1e-12 * fair, fair, even)
    target = level_target(placed, goals, even, least, parts)
    leaders, ratio, leader_target = _leaders(cluster, goals, target)
    return _Levels(
        fair=read_only(fair),
        level=read_only(terms.max(0)),
        level_term=tuple(names[i] for i in terms.argmax(0)),
        even=read_only(even),
        least=read_only(least),
        target=read_only(target),
        leaders=leaders,
        leader_ratio=ratio,
        leader_target=read_only(leader_target),
    )


def _even_loads(
    placed: PlacementCounts, scope: Scope, parts: Sequence[Forced], wanted: Reals,
    terms: Mapping[str, Reals],
) -> tuple[Reals, Reals, list[Forced]]:  # fmt: skip
    """Return targets of balanced nodes, as loads and in whole replicas, (N, D), and sets of nodes
    that had too little room.
    """
    cluster = placed.cluster
    nodes, units = cluster.nodes, cluster.partitions.load.unit
    keeps = keepers(cluster)
    held, at_once = np.zeros(nodes.capacity.shape), np.zeros(nodes.capacity.shape[1])
    if keeps.any():  # whichever replica leads
        stays = staying(placed, partition_scope(cluster))
        held = placed.weighed(placed.heaviest.T, stays)
        kept = np.append(False, keeps & ~nodes.alive).take(stays)
        at_once = weighted_sum(
            np.minimum(placed.tallied(kept), most_away(placed, stays > 0)), placed.heaviest
        )
    within = np.minimum(held, nodes.capacity)  # what is beyond it has to leave
    absent = np.where((keeps & ~nodes.alive)[:, None], within, 0.0)
    room = np.where((usable(cluster) & nodes.alive)[:, None], nodes.capacity, 0.0)
    fits = np.where(keeps[:, None], np.inf, nodes.capacity)
    by_number = most_by_number(placed)
    even, least, more = np.zeros(room.shape), np.zeros(room.shape), list[Forced]()
    sets, inside_only = np.zeros((0, len(nodes)), bool), np.zeros((0, len(wanted)))
    if parts or confines(scope) or limits_of_groups(cluster):
        sets, inside_only = sets_of_places(placed, scope, usable(cluster), room)
    for d, unit in enumerate(units.tolist()):
        most = np.where(keeps, np.minimum(by_number[:, d], held[:, d]), by_number[:, d])
        away = whole_loads(absent[:, d], unit)
        all_away = min(float(away.sum()), float(at_once[d]))
        forced = [
            (
                one.inside,
                left_over(float(one.load[d]), min(all_away, float(away[one.inside].sum()))),
            )
            for one in parts
        ]
        (even[:, d], least[:, d]), found = shares_with_room(
            left_over(float(wanted[d]), all_away), room[:, d], most, unit, forced, fits[:, d],
            sets, inside_only[:, d] - np.minimum(all_away, sets @ away),
        )  # fmt: skip
        more += [Forced("spread", one, load * (np.arange(len(wanted)) == d)) for one, load in found]
        whole = np.maximum(terms["largest replica"][d], terms["group"][d])
        on = even[:, d] > 0.0
        if cluster.partitions.load.alike[d]:
            if whole < np.inf:
                least[on, d] = np.maximum(least[on, d], whole_loads(whole * room[on, d], unit))
        else:
            whole = np.maximum(whole, terms["pigeonhole"][d])
            even[on, d] = np.maximum(even[on, d], whole)
    return even, least, more


def goals_met(level: Levelness, proven: Bounds) -> bool:
    """Return whether every node is within what the goals ask of it."""
    within = level.loads <= proven.target * (1.0 + ROUNDING)
    within &= level.loads >= proven.floor * (1.0 - ROUNDING)
    return bool(within.all() and (level.leaders <= proven.leader_target).all())


def goals_reached(
    cluster: Cluster, goals: Goals | Cost, placement: Placement, level: Levelness, proven: Bounds
) -> bool:
    """Return whether a placement meets the goals, those within groups as well."""
    return goals_met(level, proven) and groups_met(cluster, goals, placement)


def level_target(
    placed: PlacementCounts, goals: Goals, even: Reals, least: Reals, parts: Sequence[Forced] = ()
) -> Reals:
    """Return the load that each node may carry for its dimensions to be level, (N, D)."""
    # ``even`` and ``least (N, D)`` are those of ``Bounds``, ``parts`` those of ``parts_of``
    cluster = placed.cluster
    capacity, load = cluster.nodes.capacity, cluster.partitions.load
    serves = cluster.nodes.serves
    target = np.where((serves | usable(cluster))[:, None], capacity, np.inf)
    tolerances = [goals.tolerance(name) for name in cluster.dimensions]
    asked = [d for d, tolerance in enumerate(tolerances) if tolerance is not None]
    most = np.zeros(even.shape)
    for d in asked:
        unit = float(load.unit[d]) if load.alike[d] else 0.0
        each = Even(even[:, d], least[:, d])
        most[:, d] = each.target(tolerances[d] or 0.0, capacity[:, d], unit)
    bound = serves[:, None] & (even > 0.0) & (even < np.inf)
    alike = [d for d in asked if load.alike[d] and bound[:, d].any()]
    if len(alike) > 1:
        tolerance = np.array([tolerances[d] or 0.0 for d in alike])
        asks = np.full(even.shape, np.inf)
        np.multiply(even, capacity, out=asks, where=bound)
        asks = asks[:, alike] * (1.0 + tolerance)
        most[:, alike] = _raised_together(placed, parts, alike, asks, most[:, alike])
    for d in asked:
        np.minimum(target[:, d], most[:, d], out=target[:, d], where=bound[:, d])
    return target


def _raised_together(
    placed: PlacementCounts, parts: Sequence[Forced], alike: list[int], asks: Reals, most: Reals
) -> Reals:
    """Return targets of dimensions in which replicas are alike, raised if need be; (N, A)."""
    # Each of the targets ``most (N, A)`` may have room for all, yet not all of them together, where
    # capacities are unlike. Then the loads that tolerances ask for, ``asks (N, A)``, are raised:
    # the greatest factor is the least that leaves room, so is the next greatest beside it, and so
    # on.
    cluster, units = placed.cluster, placed.cluster.partitions.load.unit[alike]
    nodes, free = cluster.nodes, np.isinf(asks)
    whole = np.where(free, np.inf, np.floor(most / units * NEARLY + WHOLE))
    room = np.floor(nodes.capacity[:, alike] / units * NEARLY + WHOLE).min(1)
    room = np.where(nodes.max_replicas >= 0, np.minimum(room, nodes.max_replicas), room)
    room = np.minimum(room, np.count_nonzero(cluster.partitions.replicas))  # one of each partition
    keeps = keepers(cluster)
    if keeps.any():
        stays = staying(placed, partition_scope(cluster))
        held = np.bincount(stays, minlength=len(nodes) + 1)[1:]
        room = np.where(keeps, held, room)
    room = np.where(usable(cluster), room, 0.0)
    needs = [(usable(cluster), float(wanted_replicas(cluster)))]
    needs += [(one.inside, float(whole_units(one.load[d], u)))
              for one in parts for d, u in zip(alike, units.tolist(), strict=True)]  # fmt: skip

    shares = asks / units

    def counts(factor: Reals) -> Reals:
        with np.errstate(over="ignore", invalid="ignore"):
            raised = np.floor(factor * shares * NEARLY)
        return np.where(free, np.inf, np.maximum(whole, raised))

    def suffices(factor: Reals) -> bool:
        within = np.minimum(counts(factor).min(1), room)
        return all(float(within[inside].sum()) >= count for inside, count in needs)

    def least(which: list[int], high: float) -> float:
        """Return the least factor of some, the others being as they are."""
        low, tried = 1.0, factor.copy()
        while high > low * NEARLY:
            tried[which] = middle = min(0.5 * (low + high), 2.0 * low)
            low, high = (low, middle) if suffices(tried) else (middle, high)
        return high * (1.0 + WHOLE)  # with all that ties with it

    factor, open_ = np.ones(len(alike)), [*range(len(alike))]
    if suffices(factor) or not suffices(np.full(len(alike), MOST_RAISED)):
        return most
    factor[:] = least(open_, MOST_RAISED)
    while len(open_) > 1:
        # whichever is beside the lowest others stays as high
        others = [[o for o in open_ if o != d] for d in open_]
        lowest = [least(some, float(factor[some[0]])) for some in others]
        at = int(np.argmin(lowest))
        open_ = others[at]
        factor[open_] = lowest[at]
    return np.where(free, most, counts(factor) * units)


def _leaders(cluster: Cluster, goals: Goals, room: Reals) -> tuple[int, float, Reals]:
    """Return the least greatest number of leaders, its least ratio to the share, and the target of
    nodes that hold no more than their ``room (N, D)``.
    """
    nodes = cluster.nodes
    count = wanted_leaders(cluster)
    able = nodes.may_lead & usable(cluster)
    weight = np.where(able, nodes.lead_weight, 0.0)
    if count == 0 or not able.any():
        return 0, 1.0, np.full(len(nodes), np.inf)
    least, ratio = -(-count // int(able.sum())), whole_level(weight * (count / weight.sum()), count)
    if goals.leaders is None:
        return least, ratio, np.full(len(nodes), np.inf)
    return least, ratio, leader_shares(cluster, room).target(goals.leaders, weight, 1.0)
