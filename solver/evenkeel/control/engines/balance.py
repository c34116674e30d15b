"""The ``balance`` method as the engine of a pipeline, in all four scopes.

Level means: the tightest dimension is within a tolerance of its fair share, and in no other
dimension is a node fuller than that. A replica that finds no node stops no other.

A replica that leads takes the traffic. Where it weighs no more than its followers, as in Helix,
no other dimension shows that, and a node may lead few partitions that are all large.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.engines.engine import Answer, Cancelled, Scope, Task
from evenkeel.measure.audit import TOLERANCE, audit, held_loads
from evenkeel.measure.bounds import Bounds, bounds
from evenkeel.measure.bounds.even import whole_loads
from evenkeel.measure.bounds.moves import rehoming_level
from evenkeel.measure.compare import joined
from evenkeel.measure.levelness import levelness
from evenkeel.measure.loads import has_leaders, usable, utilisation, wanted_load
from evenkeel.measure.rows import at_node
from evenkeel.methods.contract import Outcome, Progress, Watch
from evenkeel.methods.run import run_method
from evenkeel.model.assignment import TOP, Assignment
from evenkeel.model.cluster import Cluster
from evenkeel.model.disks import lying
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Goals
from evenkeel.model.limits import Limits
from evenkeel.model.partitions import Loads
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.reading.quantities import Percent

# where the proven floor is above the fair share: how far a node may be above the floor
ABOVE_FLOOR = 0.0045

# of what is above the targets, moves that nothing forces must leave no more than this part
WORTH = 0.97

# or else they must take away at least this part of what they carry: a small budget will not bring
# much down at once, but each of its moves should
FRUITFUL = 0.5

FEW = 4  # lost replicas, the largest ones, by which it is judged how level a cluster can be at once
AT_ONCE = 250_000  # steps that a search may take in the scopes that a pipeline waits for
# steps that it may take in a partial run: so many, or so many for each replica if that is more
IN_PASSING, PER_REPLICA = 1_000_000, 400


@dataclass(frozen=True)
class BalanceEngine:
    """An engine over the method ``balance``; it keeps nothing between two calls.

    In every scope the flags of the nodes are taken as they are, and where replicas are is read from
    the task's ``current`` alone. Of the cluster's own placement only its pinned replicas count, and
    whether it knows leaders.

    - *Global*: from the previous baseline, or from nothing, everything is placed, repaired and
      levelled with the fewest moves; ``changes`` do not matter, since a baseline that is level
      stays as it is.
    - *Partial*: the same from the best possible, within a budget of moves. The task's ``baseline``
      is not looked at: the goal is to be level, and to come closer to another placement, level as
      well, would only cost moves.
    - *Emergency*: replicas on nodes that may not hold them are placed, no other moves, and
      partitions that were short before stay so. Leadership may change hands, for the number of
      leaders alone: what they weigh is for the partial run that follows.
    - *Overwrite*: partitions with fewer than min(``min_active``, ``replicas``) replicas on nodes
      that are alive are given more there; everything else stays. What is on other nodes is not
      counted, neither as load nor by any rule.

    A replica that finds no node stays on one that is alive, and is left out of the answer if its
    node is dead or gone. One replica of each partition is in the top state, unless the cluster
    knows no leaders, and all others are in the next one. Asked again with its own answer as
    ``current``, the engine returns the same.

    Parameters
    ----------
    level : float
        How far the fullest node may be above the fair share of the tightest dimension.
    extra_moves : float
        Replicas, as a share of those wanted, that a partial run may move beyond those that stand
        nowhere, or that any placement without broken rules has to move.
    least_moves : int
        Such moves that it may make in any case: in a small cluster that share would be too few to
        get anywhere.
    spare_leaders : int
        Leaders that a node may have beyond the least possible greatest number.
    leader_load : float or None
        How far what a node's leaders weigh in the tightest dimension may be above its fair share of
        that; None: only their number counts. Leadership is handed on for it, nothing is moved.
    limits : Limits or None
        Budgets of a partial run, such as moves into a node or a zone; repairs that a step waits for
        are exempt. ``leader_changes`` is refused.

    Raises
    ------
    InvalidInput
        If a parameter is negative.

    Examples
    --------
    >>> nowhere = np.full((4, 1), -1)
    >>> c = Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 4, placement=nowhere)
    >>> nothing = Assignment.of_placement(c.placement)
    >>> answer = BalanceEngine()(Task(Scope.GLOBAL, c, nothing))
    >>> answer.placed, np.bincount(answer.assignment.node).tolist()
    (4, [2, 2])
    """

    level: float = 0.009
    extra_moves: float = 0.02
    least_moves: int = 40
    spare_leaders: int = 1
    leader_load: float | None = 0.1
    limits: Limits | None = None

    def __post_init__(self) -> None:
        faults = FaultList()
        if not isinstance(self.limits, Limits | None):
            faults.add("limits", self.limits, "must be Limits")
        elif self.limits is not None and self.limits.leader_changes is not None:
            faults.add("limits.leader_changes", self.limits.leader_changes, "is not kept here")
        for name in ("level", "extra_moves", "least_moves", "spare_leaders", "leader_load"):
            value = getattr(self, name)
            if value is None and name == "leader_load":
                continue
            if not isinstance(value, int | float) or not value >= 0:
                faults.add(name, value, "must be a number, 0 or more")
        faults.raise_if_any()

    def __call__(self, task: Task) -> Answer:
        """Calculate."""
        # a load on a node with next to no capacity may overflow to inf, which is what it should be
        with np.errstate(over="ignore"):
            return _SCOPES[task.scope](self, task)


class _Model(NamedTuple):
    """What the method is asked to solve."""

    cluster: Cluster  # with ``current`` as its placement, and with what this scope wants
    bounds: Bounds  # with the targets of this scope
    seconds: float  # spent to make it


def _level(engine: BalanceEngine, task: Task) -> Answer:
    """Place, repair and balance everything, for the scopes global and partial."""
    started = time.perf_counter()
    cluster = task.cluster
    current = with_pinned(cluster, task.current)
    width = np.maximum(np.diff(current.first), cluster.partitions.replicas)
    start = _start(cluster, current, width, cluster.partitions.voters)
    cluster = cluster.with_placement(replace(start, flags=pinned_flags(cluster, start)))
    proven = bounds(cluster, Goals(level=None, leaders=_leaders(engine, cluster)))
    proven = replace(proven, target=_targets(engine, cluster, proven, 0.0))
    limits, work_limit = Limits(), None
    if task.scope is Scope.PARTIAL:
        work_limit = max(IN_PASSING, PER_REPLICA * len(start.node))
        extra = engine.extra_moves * float(cluster.partitions.replicas.sum(dtype=np.int64))
        needed = max(proven.moves_feasible, proven.forced)
        budget = needed + max(int(extra), engine.least_moves)
        limits = engine.limits or Limits()
        limits = replace(
            limits, moves=budget if limits.moves is None else min(budget, limits.moves)
        )
    model = _Model(cluster, proven, time.perf_counter() - started)
    outcome = _solve(task, model, limits, work_limit)
    after = _placed(model, outcome.node, outcome.leader)
    before = _placed(model, cluster.placement.node, cluster.placement.leader)
    at_once = task.scope is Scope.PARTIAL  # a baseline is no order to move
    if not _better(model, before, after) or (
        at_once and not leaves_room(task.cluster, before, after)
    ):
        after = before
    return _answer(model, _well_led(engine, task, model, after), outcome)


def _emergency(engine: BalanceEngine, task: Task) -> Answer:
    """Place what is lost; pin everything else."""
    started = time.perf_counter()
    cluster, current = task.cluster, task.current
    kept = cluster.nodes.may_hold[current.node]
    if kept.all():
        return Answer(current)
    kept |= is_pinned(cluster, current.owner, current.node)
    held = np.diff(current.first)
    stays = np.bincount(current.owner[kept], minlength=len(current))
    wanted = np.minimum(held, np.maximum(cluster.partitions.replicas, stays)).astype(np.int32)
    model = _fixed(engine, cluster, current, wanted, kept, started)
    outcome = _solve(task, model, Limits(), AT_ONCE)
    return _answer(model, _placed(model, outcome.node, outcome.leader), outcome)


def _overwrite(engine: BalanceEngine, task: Task) -> Answer:
    """Add replicas to partitions short of live ones, as if nothing but those that live existed."""
    started = time.perf_counter()
    cluster, current = task.cluster, task.current
    nodes, partitions = cluster.nodes, cluster.partitions
    serves = nodes.serves
    lives = serves[current.node]
    active = np.bincount(current.owner[lives], minlength=len(current))
    needed = np.minimum(partitions.min_active, partitions.replicas)
    short = active < needed
    if not short.any():
        return Answer(current)
    living = current.kept(lives)
    serving = replace(nodes, accepts=read_only(nodes.may_receive), keeps=read_only(serves))
    cluster = replace(cluster, nodes=serving)
    wanted = np.maximum(active, needed).astype(np.int32)
    every = np.ones(len(living.node), bool)
    model = _fixed(engine, cluster, living, wanted, every, started)
    outcome = _solve(task, model, Limits(), AT_ONCE)
    after = _placed(model, outcome.node, outcome.leader)
    answer = _answer(model, after, outcome)
    return replace(answer, assignment=_joined(current, answer.assignment, short))


_SCOPES: dict[Scope, Callable[[BalanceEngine, Task], Answer]] = {
    Scope.GLOBAL: _level,
    Scope.PARTIAL: _level,
    Scope.EMERGENCY: _emergency,
    Scope.OVERWRITE: _overwrite,
}


def _start(
    cluster: Cluster, current: Assignment, width: NDArray[np.integer], voters: NDArray[np.int32]
) -> Placement:
    """Give an assignment ``width (P,)`` slots a row: what is held first, by state, then node."""
    # the first ``voters (P,)`` slots of a row vote; an empty row is led by its first slot, as in a
    # cluster that is built without a placement
    first = np.zeros(len(current) + 1, np.int64)
    np.cumsum(width, out=first[1:])
    held = np.diff(current.first)
    at = np.arange(len(current.node)) + np.repeat(first[:-1] - current.first[:-1], held)
    node = np.full(first[-1], -1, np.int32)
    node[at] = current.node
    role = np.zeros(len(node), np.uint8)
    if (voters < width).any():
        slot = np.arange(len(node)) - np.repeat(first[:-1], width)
        role[slot >= np.repeat(voters, width)] = Role.NON_VOTER
    leader = np.full(len(current), -1, np.int16)
    if has_leaders(cluster):
        led = held > 0
        led[led] = current.state[current.first[:-1][led]] == TOP
        leader[(led | (held == 0)) & (width > 0)] = 0
    flags = np.zeros(len(node), np.uint16)
    found = Placement(*(read_only(array) for array in (first, node, role, flags, leader)))
    return replace(found, disk=lying(found, cluster.placement))


def _fixed(
    engine: BalanceEngine,
    cluster: Cluster,
    current: Assignment,
    wanted: NDArray[np.int32],
    pinned: NDArray[np.bool_],
    started: float,
) -> _Model:
    """Model in which ``wanted (P,)`` replicas shall be, and those ``pinned`` stay in place."""
    # how level that can be depends on the largest replicas to be placed
    held = np.diff(current.first)
    width = np.maximum(held, wanted)
    partitions = cluster.partitions
    all_vote = partitions.voters == partitions.replicas
    voters = np.where(all_vote, wanted, np.minimum(partitions.voters, wanted)).astype(np.int32)
    start = _start(cluster, current, width, np.where(all_vote, width, voters))
    flags = np.zeros(len(start.node), np.uint16)
    flags[start.node >= 0] = np.where(pinned, np.uint16(Flag.PINNED), np.uint16(0))
    cluster = replace(
        cluster,
        placement=replace(start, flags=read_only(flags)),
        partitions=replace(partitions, replicas=read_only(wanted), voters=read_only(voters)),
    )
    proven = bounds(cluster, Goals(level=None, leaders=_leaders(engine, cluster)))
    floor = rehoming_level(cluster, FEW)
    proven = replace(proven, target=_targets(engine, cluster, proven, floor))
    return _Model(cluster, proven, time.perf_counter() - started)


def _leaders(engine: BalanceEngine, cluster: Cluster) -> float | None:
    """Tolerance for the number of leaders that is worth the spare ones; None without leaders."""
    able = int((cluster.nodes.may_lead & usable(cluster)).sum())
    led = int((cluster.partitions.replicas > 0).sum())
    if not able or not led or not has_leaders(cluster):
        return None
    return Percent((engine.spare_leaders - (-led // able)) * able / led - 1.0)


def _targets(
    engine: BalanceEngine, cluster: Cluster, proven: Bounds, least: float
) -> NDArray[np.float64]:
    """Load that each node may carry, (N, D): no fuller than the tightest dimension has to be."""
    # the fullest node is at least as full as ``least``, in whichever dimension
    floor = np.maximum(proven.fair, proven.level)
    bounded = np.isfinite(floor) & (floor > 0.0)
    tightest = float(proven.fair[bounded].max(initial=0.0))
    ceiling = np.maximum(
        (1.0 + engine.level) * tightest, np.maximum(floor, least) + ABOVE_FLOOR * tightest
    )
    target = np.array(proven.target)
    load = cluster.partitions.load
    for d, unit in enumerate(np.where(load.alike, load.unit, 0.0).tolist()):
        if bounded[d] and ceiling[d] < np.inf:
            most = whole_loads(ceiling[d] * cluster.nodes.capacity[:, d], unit)
            np.minimum(target[:, d], np.maximum(most, proven.least[:, d]), out=target[:, d],
                       where=cluster.nodes.serves)  # fmt: skip
    return read_only(target)


def _solve(task: Task, model: _Model, limits: Limits, work_limit: int | None) -> Outcome:
    """Ask the method, which asks between its slices of work whether to stop."""

    def watched(progress: Progress) -> None:
        if task.stop():
            raise StopIteration

    if task.stop():
        raise Cancelled
    watch = Watch(None, work_limit, watched)
    outcome = run_method(
        "balance", model.cluster, goals=Goals(level=None), limits=limits, proven=model.bounds,
        watch=watch, seed=task.seed,
    ).outcome  # fmt: skip
    if outcome.stop_reason == "interrupted":
        if not task.stop():
            raise KeyboardInterrupt
        raise Cancelled
    return outcome


def _placed(model: _Model, node: NDArray[np.int32], leader: NDArray[np.int16]) -> Placement:
    """Place what has a ``node (K,)`` that lives, or may hold it; slot ``leader (P,)`` leads."""
    nodes = model.cluster.nodes
    stays = np.append(nodes.may_hold | nodes.serves, False)
    return model.cluster.placement.replaced(np.where(stays[node], node, np.int32(-1)), leader)


def _well_led(engine: BalanceEngine, task: Task, model: _Model, after: Placement) -> Placement:
    """Hand leadership on where what leaders weigh is not level; every replica stays where it is."""
    # only as far as nothing else is less level for it: where leaders carry more than others, the
    # next run would level that again, and so on for ever
    placed = after.node >= 0
    voter = placed & (after.role == Role.VOTER)
    count, voters = (
        np.bincount(after.owner[one], minlength=len(after)).astype(np.int32)
        for one in (placed, voter)
    )
    cluster = replace(
        model.cluster,
        placement=replace(after, flags=read_only(np.full(len(placed), Flag.PINNED, np.uint16))),
        partitions=replace(model.cluster.partitions, replicas=count, voters=voters),
    )
    wider = cluster if engine.leader_load is None else with_leading(cluster)
    if wider is cluster:
        return after
    most = leading_target(wider, engine.leader_load or 0.0)
    target = read_only(np.column_stack([model.bounds.target, most]))
    plain, model = model, _Model(wider, replace(model.bounds, target=target), 0.0)
    excess = _excess(model, after)
    while excess > 0.0:
        # one pass hands few leaders on; a walk would hand on many
        outcome = _solve(task, model, Limits(), 0)
        led = after.replaced(after.node, outcome.leader)
        before, excess = excess, _excess(model, led)
        if not _falls(before, excess) or not np.array_equal(outcome.node, after.node):
            break
        if _less_level(plain, after, led):
            break
        after = led
        pinned = replace(led, flags=wider.placement.flags)
        model = model._replace(cluster=wider.with_placement(pinned))
    return after


def _better(model: _Model, before: Placement, after: Placement) -> bool:
    """Whether moves are worth it: a rule less is broken, or it is more level by a fair part."""
    if np.array_equal(before.node, after.node) and np.array_equal(before.leader, after.leader):
        return False
    was, now = audit(model.cluster, before), audit(model.cluster, after)
    if (now.hard, now.soft) != (was.hard, was.soft):
        return was.worse_than(now)
    was_above, above = _excess(model, before), _excess(model, after)
    if _falls(was_above, above):
        return True
    # where many nodes are as full as the fullest, a budget brings only some of them down
    total, now_total = _total_excess(model, before), _total_excess(model, after)
    # leaders above their target weigh in the total: handing them on takes no budget of later runs
    fullest, now_fullest = (
        _fullest(model, levelness(model.cluster, one).loads) for one in (before, after)
    )
    if now_fullest > fullest or not now_total < total:
        return False
    carried = _carried(model, before, after)
    return now_total < WORTH * total or 0.0 < FRUITFUL * carried <= total - now_total


def _carried(model: _Model, before: Placement, after: Placement) -> float:
    """What moves carry, in the unit of ``_total_excess``, on the mean of the bounded dimensions."""
    load = model.cluster.partitions.load.voter[after.owner[joined(before, after)]]
    target = model.bounds.target
    serving = np.isfinite(target)
    bounded = serving.any(axis=0)
    mean = np.sum(target, axis=0, where=serving) / np.maximum(serving.sum(axis=0), 1)
    part = load[:, bounded] / np.maximum(mean[bounded], 1e-30)
    return float(part.sum() / max(int(bounded.sum()), 1))


def _total_excess(model: _Model, placement: Placement) -> float:
    """How far all nodes together are above their targets."""
    found = levelness(model.cluster, placement)
    target = np.maximum(model.bounds.target, 1e-30)
    most = np.maximum(model.bounds.leader_target, 1e-30)
    above = np.maximum(found.loads / target - 1.0, 0.0).max(axis=1)
    return float(above.sum() + np.maximum(found.leaders / most - 1.0, 0.0).sum())


def _less_level(model: _Model, before: Placement, after: Placement) -> bool:
    """Whether a node is, or all nodes together are, further above their targets than before."""
    return any(
        excess(model, after) > excess(model, before) + 1e-9 for excess in (_excess, _total_excess)
    )


def _falls(before: float, now: float) -> bool:
    """Whether an excess falls by a fair part; there may be none, or one that is infinite."""
    return now < WORTH * before or before == now == 0.0


def _excess(model: _Model, placement: Placement) -> float:
    """How far the fullest node, and the one that leads most, are above their targets."""
    found = levelness(model.cluster, placement)
    most = np.maximum(model.bounds.leader_target, 1e-30)
    leads = float((found.leaders / most).max(initial=0.0))
    return _fullest(model, found.loads) + max(0.0, leads - 1.0)


def _fullest(model: _Model, loads: NDArray[np.float64]) -> float:
    """How far the fullest node is above its target; ``loads`` of nodes are (N, D)."""
    target = np.maximum(model.bounds.target, 1e-30)
    return max(0.0, float((loads / target).max(initial=0.0)) - 1.0 - 1e-9)


def _answer(model: _Model, after: Placement, outcome: Outcome) -> Answer:
    cluster = model.cluster
    held = np.append(cluster.nodes.may_hold, False)[after.node]
    there = np.bincount(after.owner[held], minlength=len(after))
    return Answer(
        assignment=Assignment.of_placement(after),
        placed=int(joined(cluster.placement, after).sum()),
        unplaced=int(np.maximum(cluster.partitions.replicas - there, 0).sum()),
        timings={"model": model.seconds, "fit": sum(outcome.timings.values())},
    )


def _joined(current: Assignment, living: Assignment, short: NDArray[np.bool_]) -> Assignment:
    """Give the ``short`` partitions what ``living`` has more; among them, those that live lead."""
    ours = living.kept(short[living.owner])
    nodes = 1 + int(max(current.node.max(initial=0), ours.node.max(initial=0)))
    key = current.owner.astype(np.int64) * nodes + current.node
    kept = ~np.isin(key, ours.owner.astype(np.int64) * nodes + ours.node)
    led = np.zeros(len(current), bool)
    led[ours.owner[ours.state == TOP]] = True
    demoted = np.maximum(current.state, led[current.owner]).astype(np.uint8)
    return replace(current, state=demoted).kept(kept).joined(ours)


def leaves_room(cluster: Cluster, before: Placement, after: Placement) -> bool:
    """Return whether no node gets fuller than it may until what is to leave it has left."""
    # ``before`` is where replicas were to be so far, ``after`` where they shall be; where they are,
    # ``cluster`` has. Else later runs would use headroom that the first has yet to make.
    if not cluster.transient.any():
        return True
    drift = TOLERANCE * cluster.nodes.capacity
    return not (_beyond(cluster, after) > _beyond(cluster, before) + drift).any()


def _beyond(cluster: Cluster, placement: Placement) -> NDArray[np.float64]:
    """How far nodes exceed their capacity in transient dimensions with held loads, (N, D)."""
    nodes, now = cluster.nodes, cluster.placement
    loads = levelness(cluster, placement).loads + held_loads(cluster, now, placement)
    # a node that is above it anyhow stays so until all moves are done
    came = np.maximum(levelness(cluster, now).loads, nodes.capacity)
    bound = cluster.transient & nodes.carries[:, None]
    return np.where(bound, np.maximum(loads - came, 0.0), 0.0)


def with_pinned(cluster: Cluster, current: Assignment) -> Assignment:
    """Add what is pinned to a dead node, which no assignment lists: it waits, and counts."""
    own, nodes = cluster.placement, cluster.nodes
    at = np.flatnonzero((own.flags & Flag.PINNED) != 0)
    at = at[at_node(~(nodes.may_hold | nodes.serves), own.node[at])]
    listed = _pairs(cluster, current.owner, current.node)
    at = at[~np.isin(_pairs(cluster, own.owner[at], own.node[at]), listed)]
    if len(at) == 0:
        return current
    state = np.full(len(at), TOP + 1, np.uint8)
    return current.joined(Assignment.of_rows(len(current), own.owner[at], own.node[at], state))


def pinned_flags(cluster: Cluster, start: Placement) -> NDArray[np.uint16]:
    """Flags of the replicas that are pinned where they stand, (K,)."""
    fixed = is_pinned(cluster, start.owner, start.node)
    return read_only(np.where(fixed, np.uint16(Flag.PINNED), np.uint16(0)))


def is_pinned(
    cluster: Cluster, owner: NDArray[np.integer], node: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Whether the cluster pins its replica of ``owner (K,)`` to ``node (K,)``."""
    own = cluster.placement
    fixed = np.flatnonzero(((own.flags & Flag.PINNED) != 0) & (own.node >= 0))
    if len(fixed) == 0:
        return np.zeros(len(node), bool)
    here = _pairs(cluster, own.owner[fixed], own.node[fixed])
    found: NDArray[np.bool_] = np.isin(_pairs(cluster, owner, node), here) & (node >= 0)
    return found


def _pairs(
    cluster: Cluster, owner: NDArray[np.integer], node: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Number each pair of a partition and a node."""
    return owner.astype(np.int64) * len(cluster.nodes) + node


def with_leading(cluster: Cluster) -> Cluster:
    """Return a cluster with one more dimension: what leaders weigh in the tightest one.

    >>> c = Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[2.0]], placement=[[0, 1]])
    >>> wider = with_leading(c)
    >>> wider.dimensions, wider.partitions.load.leader.tolist()
    (('d0', 'leading d0'), [[2.0, 2.0]])
    """
    # its capacity is that of the tightest dimension, so that nothing fits less than before
    nodes, partitions = cluster.nodes, cluster.partitions
    full = utilisation(wanted_load(cluster), nodes.capacity[nodes.may_receive].sum(0))
    full = np.where(np.isfinite(full), full, 0.0)
    if not full.any() or not has_leaders(cluster):
        return cluster
    tight = int(full.argmax())
    weight = partitions.load.leader[:, tight : tight + 1]
    nothing = np.zeros_like(weight)
    following = _wider(partitions.load.voter, nothing)
    other = partitions.load.non_voter
    load = Loads(
        leader=_wider(partitions.load.leader, weight),
        voter=following,
        non_voter=following if other is partitions.load.voter else _wider(other, nothing),
    )
    shared = {
        level: _wider(capacity, np.full((len(capacity), 1), np.inf))
        for level, capacity in cluster.topology.tier_capacity.items()
    }
    name = f"leading {cluster.dimensions[tight]}"
    while name in cluster.dimensions:
        name += "'"
    return replace(
        cluster,
        nodes=replace(
            nodes,
            capacity=_wider(nodes.capacity, nodes.capacity[:, tight : tight + 1]),
            watermark=_wider(nodes.watermark, nodes.watermark[:, tight : tight + 1]),
        ),
        topology=replace(cluster.topology, tier_capacity=shared),
        partitions=replace(partitions, load=load),
        dimensions=(*cluster.dimensions, name),
        transient=read_only(np.append(cluster.transient, False)),
    )


def leading_target(cluster: Cluster, tolerance: float) -> NDArray[np.float64]:
    """Return what the leaders of each node should weigh at most."""
    nodes, partitions = cluster.nodes, cluster.partitions
    weight = partitions.load.leader[partitions.replicas > 0, -1]
    capacity = nodes.capacity[:, -1]
    able = nodes.may_lead & usable(cluster) & np.isfinite(capacity)
    room = np.where(able, capacity, 0.0)
    share = utilisation(weight.sum() * room, np.full(len(room), room.sum()))
    target = np.maximum((1.0 + tolerance) * share, share + weight.mean())
    return np.where(room > 0.0, target, np.inf)


def _wider(table: NDArray[np.float64], column: NDArray[np.float64]) -> NDArray[np.float64]:
    return read_only(np.hstack([table, column]))
