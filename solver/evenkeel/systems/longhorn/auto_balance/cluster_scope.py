"""``Longhorn(scope="cluster")``: balance all volumes in one plan, by space and load.

Longhorn counts the replicas of one volume at a time. Here disks are balanced by their data, by the
space promised on them, and by any further load of the volumes, while the replicas of each volume
are spread over zones, hosts and disks as its effort requires. Least and best effort are two points
of one cost: the share of all data that is copied, plus a weight times the excess of the fullest
disk over the mean. The candidates are the results of ``balance`` at falling tolerances; the
cheapest wins.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import broken_limits
from evenkeel.measure.bounds import Bounds, bounds
from evenkeel.measure.compare import joined
from evenkeel.measure.rows import distinct_rows
from evenkeel.measure.tally import PlacementCounts
from evenkeel.methods.balance import balance
from evenkeel.methods.contract import Outcome, Request
from evenkeel.methods.levelling.run import searched
from evenkeel.methods.shared.stopping import Clock, OutOfTime
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Goals
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.reading.quantities import Percent
from evenkeel.model.rules import Amount, Rule
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.systems.longhorn.auto_balance.compile import (
    closed,
    efforts,
    limited_redundancy,
    stay_degraded,
    unfit,
    waiting_until,
)
from evenkeel.systems.longhorn.auto_balance.intake import (
    BEST_EFFORT,
    DEGRADED,
    DISABLED,
    HEALTHY,
    LEAST_EFFORT,
    NO_ZONE,
    System,
    part_of,
    promised,
    soft,
)
from evenkeel.systems.longhorn.auto_balance.settings import DATA_LOCALITY, Longhorn, Settings
from evenkeel.systems.longhorn.auto_balance.stepping import AutoBalance, one_by_one


@dataclass(frozen=True, eq=False)
class Standings:
    """What of a system a plan may touch. P volumes, K slots."""

    # (P,) DISABLED, LEAST_EFFORT or BEST_EFFORT: the volume's own setting, or else the global one
    effort: NDArray[np.uint8]
    balanced: NDArray[np.bool_]  # (P,) volumes whose replicas may move for the sake of balance
    # (P,) volumes that may be given replicas at all: attached, with a healthy replica, at rest
    repaired: NDArray[np.bool_]
    # (K,) replicas that count: on a disk, active and not failed, or failed a moment ago and likely
    # to return
    counts: NDArray[np.bool_]
    leaving: NDArray[np.bool_]  # (K,) replicas under eviction that may be moved
    pinned: NDArray[np.bool_]  # (K,) replicas that stay where they are
    # (P,) replicas that each volume should have; no more than it has where it may not be given any
    wanted: NDArray[np.int32]


def standings(cluster: Cluster, system: System, settings: Settings) -> Standings:
    """Sort out what a plan may touch, by the conditions under which Longhorn itself acts."""
    # longhorn-manager, ``controller/volume_controller.go``: ``replenishReplicas``,
    # ``getReplicaCountForAutoBalance...``, ``getHealthyAndActiveReplicaCount``
    volumes, replicas, placement = system.volumes, system.replicas, cluster.placement
    owner, there = placement.owner, placement.node >= 0
    effort = efforts(system, settings) + np.uint8(DISABLED)
    at_rest = (volumes.attached >= 0) & ~volumes.migrating & volumes.in_sync & ~volumes.rebuilding
    if settings.concurrent_replica_rebuild_per_node_limit == 0:
        at_rest = np.zeros_like(at_rest)
    whole = at_rest & (volumes.robustness == HEALTHY)
    repaired = whole | (at_rest & (volumes.robustness == DEGRADED))
    returning = ~np.isnan(waiting_until(system, settings))
    running = there & replicas.active & ~replicas.failed
    serving = np.bincount(owner[running], minlength=len(volumes))
    returning &= there & replicas.active & (serving < volumes.replicas)[owner]
    counts = running | returning
    held = np.bincount(owner[counts], minlength=len(volumes)).astype(np.int32)
    stays = (placement.flags & Flag.PINNED) != 0
    leaving = running & replicas.evicting & repaired[owner] & ~replicas.clone_source & ~stays
    balanced = whole & (effort != DISABLED)
    pinned = counts & ~leaving & (~balanced[owner] | replicas.clone_source | returning)
    pinned |= counts & (_local(cluster, system) | stays) & ~leaving
    # cleaning up is part of balancing, filling up is not
    wanted = np.where(repaired, volumes.replicas, held)
    wanted = np.where(repaired & ~balanced, np.maximum(wanted, held), wanted)
    return Standings(
        effort, balanced, repaired, counts, leaving, pinned, wanted.astype(np.int32)
    )  # fmt: skip


def _local(cluster: Cluster, system: System) -> NDArray[np.bool_]:
    """Return the replicas that data locality keeps where the engine runs, (K,) bool."""
    placement, volumes = cluster.placement, system.volumes
    host = np.append(system.disks.host, -1)[placement.node]
    owner = placement.owner
    wished = volumes.locality != DATA_LOCALITY.index("disabled")
    near = wished[owner] & (host >= 0) & (host == volumes.attached[owner])
    near &= system.replicas.healthy
    found = np.flatnonzero(near)
    _, first = np.unique(owner[found], return_index=True)
    kept = np.zeros(len(near), np.bool_)
    kept[found[first]] = True
    return kept


# dimensions: data to copy, nominal size, and the caller's further cost of a replica
DATA, PROMISED, LOAD = "bytes", "nominal", "load"


@dataclass(frozen=True, eq=False)
class SpaceProblem:
    """A problem of space, and where its slots come from."""

    # the problem. Of a volume's replicas those come first that share their disk or host with
    # another one, and of these the ones on fuller disks: a violation that several of them can
    # repair is repaired by the first.
    cluster: Cluster
    # (K,) slot of the system's own cluster that each of its slots stands for
    slot: NDArray[np.int64]
    # (classes, N) disks that new replicas of each class of volumes may be put on
    may: NDArray[np.bool_]
    like: NDArray[np.int64]  # (P,) class of each volume

    def in_own_slots(self, node: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return disks of this problem's slots in the slots of the system's own cluster."""
        own = np.empty_like(node)
        own[self.slot] = node
        return own


def space_problem(
    cluster: Cluster,
    system: System,
    settings: Settings,
    found: Standings,
    load: Mapping[str, float] | None = None,
) -> SpaceProblem:
    """Build the cluster in which disks have the room that Longhorn would use, and no more."""
    hosts, disks, volumes = system.hosts, system.disks, system.volumes
    node = np.where(found.counts, cluster.placement.node, np.int32(-1))
    owner = cluster.placement.owner
    weight = np.stack([volumes.actual, volumes.size], axis=1).astype(np.float64)
    there = np.flatnonzero(node >= 0)
    held = np.zeros((len(disks), 2))
    np.add.at(held, node[there], weight[owner[there]])
    capacity = _room(system, settings, held)
    beat()
    dimensions = [DATA, PROMISED]
    if load:
        cost = np.array([float(load.get(name, 0.0)) for name in volumes.names])
        weight = np.column_stack([weight, cost])
        everything = float((cost * found.wanted).sum()) or 1.0
        capacity = np.column_stack([capacity, np.full(len(disks), everything)])
        dimensions.append(LOAD)
    on = disks.host
    alive = hosts.ready[on] & disks.ready
    receives = ~np.any(closed(system, settings), axis=0)
    receives &= (disks.maximum > 0) & (disks.available > 0)
    made = rules_of(system, settings, found.effort, found.wanted, receives, owner, node)
    beat()
    zones = [hosts.zone_names[z] or NO_ZONE for z in hosts.zone[on].tolist()]
    banned = np.stack([owner[found.leaving], node[found.leaving]], axis=1)
    slot = _sharing_first(system, owner, node, held[:, 0] / np.maximum(capacity[:, 0], 1.0))
    beat()
    problem = Cluster.from_arrays(
        capacity=capacity,
        load=weight,
        dimensions=dimensions,
        bytes=DATA,
        transient=dimensions[:2],
        domains={"zone": zones, "host": [hosts.names[h] for h in on.tolist()]},
        tags=made.tags,
        node_names=list(cluster.nodes.names),
        partition_names=list(volumes.names),
        alive=alive,
        accepts=receives,
        keeps=np.ones(len(disks), np.bool_),
        replicas=found.wanted,
        placement=node[slot],
        first=cluster.placement.first,
        flags=np.where(found.pinned[slot], np.uint16(Flag.PINNED), np.uint16(0)),
        leader=np.full(len(volumes), -1, np.int16),
        forbidden=banned,
        rules=made.rules,
        rule=made.rule,
    )
    return SpaceProblem(problem, slot, made.may, made.like)


def _sharing_first(
    system: System, owner: NDArray[np.int32], node: NDArray[np.int32], use: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the slots, within each volume in the order in which they had better move."""
    there = node >= 0
    host = np.where(there, system.disks.host[node], -1) if len(use) else node
    fullness = np.where(there, use[node], -1.0) if len(use) else np.zeros(len(node))
    together = [_alike(owner, place, there) for place in (node, host)]
    return np.lexsort((-fullness, *(~shared for shared in reversed(together)), owner))


def _alike(
    owner: NDArray[np.int32], place: NDArray[np.int32], there: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return the replicas that share their place with another one of their volume, (K,) bool."""
    key = owner.astype(np.int64) * (int(place.max(initial=0)) + 2) + place + 1
    _, back, count = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(there & (count[back] > 1), np.bool_)


def overreached(
    space: SpaceProblem, problem: Cluster, node: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Find the volumes of which a new replica stands where Longhorn would not put it."""
    # a replica that was to leave may have stayed, and one of several that share a domain against a
    # hard rule may move within it: no worse to the search, but the scheduler looks only at the new
    # place
    before = problem.placement
    after = before.replaced(node, before.leader)
    came = np.flatnonzero(joined(before, after))
    owner = before.owner[came]
    found = np.zeros(len(problem.partitions), np.bool_)
    found[owner[~space.may[space.like[owner], node[came]]]] = True
    found[owner[_crowded(problem, after, came)]] = True
    return found


def _crowded(
    problem: Cluster, placement: Placement, replicas: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which of some replicas share a domain with more than hard rules allow, (n,) bool."""
    strict = replace(problem, rules=tuple(hard_only(rule) for rule in problem.rules))
    owner, node = placement.owner[replicas].astype(np.int64), placement.node[replicas]
    domain, width = problem.topology.domain_with_nodes, len(problem.nodes)
    crowded = np.zeros(len(replicas), np.bool_)
    for one in broken_limits(PlacementCounts.of(strict, placement)):
        for row in np.unique(one.tier):
            at = one.tier == row
            full = one.partition[at].astype(np.int64) * width + one.domain[at]
            crowded |= np.isin(owner * width + domain[row, node], full)
    return crowded


def left_alone(problem: Cluster, volumes: NDArray[np.bool_]) -> Cluster:
    """Return a problem in which some volumes stay as they are."""
    placement, partitions = problem.placement, problem.partitions
    flags = np.where(volumes[placement.owner], placement.flags | Flag.PINNED, placement.flags)
    held = np.bincount(placement.owner[placement.node >= 0], minlength=len(partitions))
    wanted = read_only(np.where(volumes, held, partitions.replicas).astype(np.int32))
    return replace(
        problem,
        placement=replace(placement, flags=read_only(flags.astype(np.uint16))),
        partitions=replace(partitions, replicas=wanted, voters=wanted),
        forbidden=read_only(problem.forbidden[~volumes[problem.forbidden[:, 0]]]),
    )


def _room(system: System, settings: Settings, held: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what this system's replicas may take up on each disk, (N, 2)."""
    disks = system.disks
    kept_free = part_of(disks.maximum, settings.storage_minimal_available_percentage)
    free = disks.available - kept_free - 1  # more than that must stay free
    open_promise = promised(disks.maximum, disks.kept(settings), settings) - disks.scheduled
    room = np.stack([free, open_promise], axis=1).astype(np.float64)
    # rules bind the scheduler: a disk that is beyond them is full, and not broken
    return held + np.maximum(room, 0.0)


MAY = "may"  # tag ``may:i`` of the disks that volumes under rule i may use, or are on all the same


class Likeness(NamedTuple):
    """What volumes of one class have in common."""

    wanted: int
    effort: int
    zone_soft: int
    host_soft: int
    disk_soft: int
    engine: int
    node_selector: int
    disk_selector: int


class Rules(NamedTuple):
    """Rules by class of volumes, and by their disks where these take no new replicas of them."""

    rules: list[Rule]
    rule: NDArray[np.int32]  # (P,)
    tags: dict[str, NDArray[np.bool_]]  # each (N,)
    may: NDArray[np.bool_]  # (classes, N) disks that new replicas may be put on
    like: NDArray[np.int64]  # (P,) class of each volume


def rules_of(
    system: System,
    settings: Settings,
    effort: NDArray[np.uint8],
    wanted: NDArray[np.int32],
    receives: NDArray[np.bool_],
    owner: NDArray[np.int32],
    node: NDArray[np.int32],
) -> Rules:
    """Return the rules of the volumes by their effort, anti-affinity, tags and engines."""
    # Least effort asks for as many zones and hosts as can be had, best effort also for an even
    # spread. Hard anti-affinity asks for one per zone (host, disk), from which the levels within
    # follow. Tags, engines and closed hosts bind only new replicas: one that is there may stay, and
    # counts.
    volumes = system.volumes
    columns = np.stack(
        [
            wanted,
            effort,
            soft(volumes.zone_soft, settings.replica_zone_soft_anti_affinity),
            soft(volumes.node_soft, settings.replica_soft_anti_affinity),
            soft(volumes.disk_soft, settings.replica_disk_soft_anti_affinity),
            volumes.engine,
            volumes.node_selector,
            volumes.disk_selector,
        ],
        axis=1,
    ).astype(np.int64)
    if len(columns) == 0:
        none = np.zeros((0, len(system.disks)), np.bool_)
        return Rules([], np.zeros(0, np.int32), {}, none, np.zeros(0, np.int64))
    distinct, like = distinct_rows(columns)
    classes = [Likeness(*row) for row in distinct.tolist()]
    may = ~np.stack([np.any(unfit(system, settings, *one[-3:]), axis=0) for one in classes])
    there = np.flatnonzero(node >= 0)
    outside = there[~(may & receives)[like[owner[there]], node[there]]]
    rules: list[Rule] = []
    tags: dict[str, NDArray[np.bool_]] = {}
    kind: dict[tuple[int, bytes], int] = {}
    rule = np.zeros(len(like), np.int32)
    bare = np.bincount(owner[outside], minlength=len(like)) == 0
    first_bare = np.flatnonzero(bare)[np.unique(like[bare], return_index=True)[1]]
    for p, own in _by_volume(owner[outside], node[outside], np.append(owner[outside], first_bare)):
        key = (int(like[p]), own.tobytes())
        if key not in kind:
            kind[key] = len(rules)
            mask = np.isin(np.arange(len(receives)), own)
            tags[f"{MAY}:{len(rules)}"] = may[like[p]] | mask
            able = (may[like[p]] & receives) | mask
            rules.append(_rule(system, classes[like[p]], f"+{MAY}:{len(rules)}", able))
        rule[p] = kind[key]
    for p in first_bare.tolist():
        rule[bare & (like == like[p])] = rule[p]
    return Rules(rules, rule, tags, may, like)


def _by_volume(
    owner: NDArray[np.int32], node: NDArray[np.int32], volumes: NDArray[np.int64]
) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """Yield some volumes, ascending, each with its own disks of those listed, sorted."""
    order = np.lexsort((node, owner))
    owner, node = owner[order], node[order]
    some = np.unique(volumes)
    begins, ends = np.searchsorted(owner, some), np.searchsorted(owner, some, side="right")
    for p, begin, end in zip(some.tolist(), begins.tolist(), ends.tolist(), strict=True):
        yield p, np.unique(node[begin:end])


def _rule(system: System, like: Likeness, require: str, able: NDArray[np.bool_]) -> Rule:
    """Return the rule of a class whose volumes may be given the ``able`` disks."""
    on = system.disks.host[able]
    hosts, disks = np.unique(on, return_counts=True)
    zones = system.hosts.zone[hosts]
    on_disk = np.full(len(on), like.wanted if like.disk_soft else 1)
    on_host = np.full(len(hosts), like.wanted) if like.disk_soft else disks
    if not like.host_soft:
        on_host = np.minimum(on_host, 1)
    in_zone = np.bincount(zones, on_host)[np.unique(zones)].astype(np.int64)
    if not like.zone_soft:
        in_zone = np.minimum(in_zone, 1)
    spread: dict[str, Amount] = {"node": None}
    least: dict[str, Amount] = {}
    for level, room, is_soft in (
        ("zone", in_zone, like.zone_soft),
        ("host", on_host, like.host_soft),
        ("node", on_disk, like.disk_soft),
    ):
        if not is_soft:
            # one alone in its zone is alone on its host: nothing is asked for below, or a move
            # within a zone would repair a host, which no scheduler makes while the zone is shared
            spread[level] = 1
            break
        if len(room) > 0:
            least[level] = (min(like.wanted, len(room)), "soft")
            if like.effort == BEST_EFFORT:
                spread[level] = (even(room, like.wanted), "soft")
    return Rule(require=[require], spread=spread, min_domains=least)


def hard_only(rule: Rule) -> Rule:
    """Return what of a rule must hold.

    >>> hard_only(Rule(spread={"node": (1, "soft"), "host": 1})).spread
    {'node': None, 'host': 1}
    """
    # None and not left out, which for nodes would mean one each
    spread = {
        level: None if isinstance(amount, tuple) else amount
        for level, amount in rule.spread.items()
    }
    return replace(rule, spread=spread, min_domains={})


def zones_first(rule: Rule) -> Rule:
    """Return the part of a rule that is repaired first: zones, and all hard limits.

    >>> zones_first(Rule(spread={"zone": (1, "soft"), "host": (1, "soft")})).spread
    {'zone': (1, 'soft'), 'host': None}
    """
    # a replica that goes to another zone is on another host by that; the other way round could take
    # two moves

    def kept(amounts: Mapping[str, Amount]) -> dict[str, Amount]:
        return {
            level: amount if level == "zone" or not isinstance(amount, tuple) else None
            for level, amount in amounts.items()
        }

    return replace(rule, spread=kept(rule.spread), min_domains=kept(rule.min_domains))


def even(room: NDArray[np.integer], wanted: int) -> int:
    """Return how many replicas the fullest domain has in an even spread."""
    for most in range(1, wanted + 1):
        if np.minimum(room, most).sum() >= wanted:
            return most
    return max(wanted, 1)


# tolerances that are tried, as parts of the imbalance after required repairs
SHARES = (0.9, 0.8, 0.65, 0.5, 0.35, 0.2, 0.1, 0.05, 0.02)

PATIENCE = 2  # candidates in a row that cost more than the best one before no more are tried
HALVINGS = 4  # tolerances that are tried between one that copies too much and one that does not
# by how much the cost must fall for anything to move that need not: else a plan that was carried
# out would be followed by small ones for ever
WORTH = 0.005

CUT_SHORT = ("time", "work", "interrupted")


@dataclass(frozen=True)
class Point:
    """What one tolerance leads to."""

    tolerance: float | None
    copied: float
    uneven: float
    cost: float


@dataclass(frozen=True)
class ClusterPlan:
    """What a plan for all volumes was chosen from: ``result.native``."""

    points: tuple[Point, ...]
    chosen: Point
    evenness: float
    most_copied: float


@dataclass(frozen=True)
class Search:
    """The candidates of one plan."""

    request: Request
    goals: Goals
    problem: Cluster
    evenness: float
    most_copied: float
    fewer_than: float
    clock: Clock

    def cheapest(self, *, levels: bool) -> tuple[ClusterPlan, Outcome]:
        """Return the candidate of least cost; among equals the first tried, which copies least."""
        repaired, least = self._repaired()
        best, chosen = repaired, least
        points, work = [least], repaired.work
        most = self._most(least)
        if levels and repaired.stop_reason != "limits":
            try:
                for outcome, point in self._levelled(chosen.uneven, most):
                    points.append(point)
                    work += outcome.work
                    if point.copied <= most and point.cost < chosen.cost:
                        best, chosen = outcome, point
                    stop = self.request.watch.stop(work, cost=chosen.cost)
                    if stop is not None or outcome.stop_reason in CUT_SHORT:
                        best = replace(best, stop_reason=stop or outcome.stop_reason)
                        break
            except OutOfTime:
                best = replace(best, stop_reason=self.clock.reason or "time")
        if chosen.cost > least.cost - WORTH:
            best, chosen = replace(repaired, stop_reason=best.stop_reason), least
        plan = ClusterPlan(tuple(points), chosen, self.evenness, most)
        return plan, replace(best, work=work)

    def _most(self, repaired: Point) -> float:
        """Return the bytes that may be copied."""
        share = repaired.copied + self.most_copied * self._everything
        own = max(share, float(np.nextafter(self.fewer_than, 0.0)))
        limit = self.request.limits.bytes
        return own if limit is None else min(own, limit)

    def _levelled(self, uneven: float, most: float) -> Iterator[tuple[Outcome, Point]]:
        """Yield what falling tolerances lead to, until they cost ever more, or too many bytes."""
        limits = replace(self.request.limits, bytes=None)
        cheapest, worse, last = np.inf, 0, uneven
        for share in SHARES if uneven > 0.0 else ():
            tolerance = share * uneven
            outcome, point = self._tried(self.problem, self._start, tolerance, limits)
            yield outcome, point
            if point.copied > most:
                yield from self._between(last, tolerance, most, limits)
                return
            last = tolerance
            worse = 0 if point.cost < cheapest else worse + 1
            cheapest = min(cheapest, point.cost)
            if worse == PATIENCE:
                return

    def _between(
        self, easy: float, tight: float, most: float, limits: Limits
    ) -> Iterator[tuple[Outcome, Point]]:
        """Yield what tolerances lead to that come ever closer to using up the bytes."""
        for _ in range(HALVINGS):
            middle = 0.5 * (easy + tight)
            outcome, point = self._tried(self.problem, self._start, middle, limits)
            yield outcome, point
            if point.copied > most:
                tight = middle
            else:
                easy = middle

    def _repaired(self) -> tuple[Outcome, Point]:
        """Repair what must be repaired, or as many volumes as the limits allow."""
        limits = self.request.limits
        free = replace(limits, bytes=None, moves=None)
        outcome, point = self._tried(self.problem, self._start, None, free)
        placement, volumes = self.problem.placement, len(self.problem.partitions)
        moved = self._moved(outcome.node)
        most_bytes = np.inf if limits.bytes is None else limits.bytes
        most_moves = np.inf if limits.moves is None else limits.moves
        if point.copied <= most_bytes and len(moved) <= most_moves:
            return outcome, point
        owner = placement.owner[moved]
        forced = (placement.node[moved] < 0) | self._banned(moved)
        data = np.bincount(owner, self._data[owner], volumes)
        moves = np.bincount(owner, minlength=volumes)
        urgent = np.bincount(owner, forced, volumes) > 0
        order = np.lexsort((data, ~urgent))
        order = order[moves[order] > 0]
        fits = (np.cumsum(data[order]) <= most_bytes) & (np.cumsum(moves[order]) <= most_moves)
        left = pinned(self.problem, ~np.isin(placement.owner, order[fits]))
        outcome, point = self._tried(left, self._repaired_zones(left), None, limits)
        return replace(outcome, stop_reason="limits"), point

    def _banned(self, replicas: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which replicas stand where they may not stay."""
        nodes = len(self.problem.nodes)
        placement, forbidden = self.problem.placement, self.problem.forbidden.astype(np.int64)
        pair = placement.owner[replicas].astype(np.int64) * nodes + placement.node[replicas]
        return np.isin(pair, forbidden[:, 0] * nodes + forbidden[:, 1])

    @cached_property
    def _start(self) -> Placement:
        return self._repaired_zones(self.problem)

    def _repaired_zones(self, problem: Cluster) -> Placement:
        """Return a placement with required moves to other zones; it does not balance."""
        first = replace(problem, rules=tuple(zones_first(rule) for rule in problem.rules))
        asked = self._asked(first, problem.placement, Goals(level=None), Limits())
        repaired = balance(asked)
        return problem.placement.replaced(repaired.node, repaired.leader)

    def _tried(
        self, problem: Cluster, start: Placement, tolerance: float | None, limits: Limits
    ) -> tuple[Outcome, Point]:
        self.clock.ask()
        goals = Goals(
            level={name: self._target_for(name, tolerance) for name in problem.dimensions}
        )
        asked = self._asked(problem, start, goals, limits)
        outcome = searched(asked)
        copied = self._copied(outcome.node)
        uneven = self._uneven(outcome.node, asked.bounds.fair)
        cost = copied / self._everything + self.evenness * uneven
        return outcome, Point(tolerance, copied, uneven, cost)

    def _asked(self, problem: Cluster, start: Placement, goals: Goals, limits: Limits) -> Request:
        return replace(
            self.request, cluster=problem, start=start, goals=goals, limits=limits, options=None,
            proven=self._bounds(problem, goals),
        )  # fmt: skip

    def _bounds(self, problem: Cluster, goals: Goals) -> Bounds:
        """Return bounds whose targets let what cannot leave a disk be no measure for others."""
        placement = problem.placement
        free = replace(placement, flags=np.zeros_like(placement.flags))
        found = bounds(problem.with_placement(free), goals)
        fixed = (placement.flags & Flag.PINNED) != 0
        level = np.where(np.isfinite(found.fair), found.fair, 0.0) * problem.nodes.capacity
        stuck = self._held(np.where(fixed, placement.node, np.int32(-1)))
        most = np.maximum(found.target, problem.nodes.capacity)
        return replace(
            found, target=np.minimum(found.target + np.maximum(stuck - level, 0.0), most)
        )

    @cached_property
    def _everything(self) -> float:
        """Bytes of all replicas wanted; 1 where there are none, to divide by."""
        return float((self._data * self.problem.partitions.replicas).sum()) or 1.0

    @property
    def _data(self) -> NDArray[np.float64]:
        return self.problem.partitions.load.voter[:, self.problem.bytes_dimension]

    def _target_for(self, name: str, tolerance: float | None) -> float | None:
        """Return the tolerance of a dimension, no tighter than the caller's own."""
        own = 0.0 if name == LOAD else self.goals.tolerance(name)
        return None if own is None or tolerance is None else Percent(max(own, tolerance))

    def _copied(self, node: NDArray[np.int32]) -> float:
        return float(self._data[self.problem.placement.owner[self._moved(node)]].sum())

    def _moved(self, node: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the slots whose disk is new to their volume."""
        before = self.problem.placement
        return np.flatnonzero(joined(before, before.replaced(node, before.leader)))

    def _uneven(self, node: NDArray[np.int32], fair: NDArray[np.float64]) -> float:
        """How far the fullest disk that is up stands above level, or above what cannot leave it."""
        problem = self.problem
        level = np.where(np.isfinite(fair), fair, 0.0) * problem.nodes.capacity
        up = problem.nodes.alive[:, None] & (level > 0.0)
        share = np.divide(1.0, level, out=np.zeros_like(level), where=up)
        fixed = (problem.placement.flags & Flag.PINNED) != 0
        use = self._held(node) * share
        least = self._held(np.where(fixed, node, np.int32(-1))) * share
        above = use - np.maximum(least, 1.0)
        wished = [self._target_for(name, 0.0) is not None for name in problem.dimensions]
        return float(above[:, wished].max(initial=0.0))

    def _held(self, node: NDArray[np.int32]) -> NDArray[np.float64]:
        """Load on each disk, (N, D)."""
        problem = self.problem
        held = np.zeros_like(problem.nodes.capacity)
        there = np.flatnonzero(node >= 0)
        np.add.at(held, node[there], problem.partitions.load.voter[problem.placement.owner[there]])
        return held


def pinned(problem: Cluster, stays: NDArray[np.bool_]) -> Cluster:
    """Return a problem with more replicas pinned."""
    placement = problem.placement
    flags = placement.flags | np.where(stays, np.uint16(Flag.PINNED), np.uint16(0))
    return problem.with_placement(replace(placement, flags=flags))


# share of all data that it is worth to copy to bring the fullest disk down by the level itself
EVENNESS = {LEAST_EFFORT: 0.1, BEST_EFFORT: 1.0}

# the default goal: the data on the disks, not the space promised
DATA_GOAL = Goals(level={DATA: 0.0})


def cluster_scope(
    request: Request, options: Longhorn, system: System, settings: Settings
) -> Outcome:
    """Plan for all volumes at once; what there is no time to plan stays as it is."""
    clock = Clock(request.watch)
    try:
        return _planned(request, options, system, settings, clock)
    except OutOfTime:
        assert clock.reason is not None
        was = request.cluster.placement
        return Outcome(
            node=was.node.copy(), leader=was.leader.copy(), stop_reason=clock.reason,
            message="There was no time for a plan: everything stays as it is.",
        )  # fmt: skip


def _planned(
    request: Request, options: Longhorn, system: System, settings: Settings, clock: Clock
) -> Outcome:
    """Plan until no volume is made worse; ``OutOfTime`` where the clock ends it before."""
    goals = _checked(request, options, system)
    clock.ask()
    found = standings(request.cluster, system, settings)
    clock.ask()
    space = space_problem(request.cluster, system, settings, found, options.load)
    problem, effort = _of_hardest_effort(space, found)
    weight = EVENNESS[effort] if options.evenness is None else options.evenness
    share, fewer_than = _allowed(request, options, clock)
    stayed = np.zeros(len(problem.partitions), np.bool_)
    while True:
        search = Search(request, goals, problem, weight, share, fewer_than, clock)
        plan, best = search.cheapest(levels=bool(found.balanced.any()))
        too_far = overreached(space, problem, best.node)
        if not too_far.any():
            break
        # first they only get what they lack; each turn more of them are left as they are
        problem = left_alone(_staying(space, found, problem, too_far), too_far & stayed)
        stayed |= too_far
    was = request.cluster.placement
    node = _nodes(request.cluster, problem, found, space.in_own_slots(best.node))
    healthy = system.replicas.healthy | (node != was.node)
    return replace(
        best,
        node=node,
        leader=was.leader.copy(),
        message=_message(plan),
        warnings=(
            *limited_redundancy(request.cluster, node, healthy),
            *stay_degraded(request.cluster, settings, node, _why_none(request.cluster, options)),
        ),
        native=plan,
    )


def _allowed(request: Request, options: Longhorn, clock: Clock) -> tuple[float, float]:
    """Return the share of all data that may be copied, or the bytes that are too many."""
    if options.most_copied is not None:
        return options.most_copied, 0.0
    if request.limits.bytes is not None:
        return np.inf, 0.0
    # as much as Longhorn itself: more would not converge, since what a plan leaves is spread as
    # Longhorn wants it, and looks like disks never levelled
    return 0.0, one_by_one(request.cluster, options, clock)


def _checked(request: Request, options: Longhorn, system: System) -> Goals:
    """Raise everything that keeps the plan from being made, together; return the goals."""
    faults = FaultList()
    known = set(system.volumes.names)
    for name in options.load or ():
        if name not in known:
            faults.add("options.load", name, "unknown volume")
    faults.raise_if_any()
    assert isinstance(request.goals, Goals)
    return DATA_GOAL if request.goals == Goals() else request.goals


def _of_hardest_effort(space: SpaceProblem, found: Standings) -> tuple[Cluster, int]:
    """Return the problem for the greatest effort that some volume makes, and that effort."""
    problem = space.cluster
    if not (found.effort[found.balanced] == BEST_EFFORT).any():
        return problem, LEAST_EFFORT
    broken = np.zeros(len(problem.partitions), np.bool_)
    for one in broken_limits(PlacementCounts.of(problem, problem.placement)):
        broken[one.partition] = True
    content = (found.effort == LEAST_EFFORT) & ~broken
    return _staying(space, found, problem, content), BEST_EFFORT


def _staying(
    space: SpaceProblem, found: Standings, problem: Cluster, volumes: NDArray[np.bool_]
) -> Cluster:
    """Pin the replicas of some volumes that are not under eviction."""
    stays = (found.counts & ~found.leaving)[space.slot] & volumes[problem.placement.owner]
    return pinned(problem, stays)


def _nodes(
    cluster: Cluster, problem: Cluster, found: Standings, node: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return a disk for each slot; what did not count stays unless its volume is whole without."""
    owner, was = cluster.placement.owner, cluster.placement.node
    placed = np.bincount(owner[node >= 0], minlength=len(problem.partitions))
    whole = found.balanced & (placed >= problem.partitions.replicas)
    return np.where((node < 0) & ~found.counts & ~whole[owner], was, node)


def _why_none(cluster: Cluster, options: Longhorn) -> Callable[[int], str]:
    """Return a function from volumes to the reasons why no replica of them is built."""
    work = cache(lambda: AutoBalance(cluster, replace(options, scope="volume")))

    def why(volume: int) -> str:
        found = work().next_action(volume)
        return found.why if found.kind == "nothing" else "the plan has no room for another"

    return why


def _message(plan: ClusterPlan) -> str:
    reported = plan.chosen
    return (
        f"Of {len(plan.points)} plans the cheapest: {reported.copied:,.0f} bytes to copy, "
        f"the fullest disk {reported.uneven:.1%} above level."
    )
