"""A Longhorn system as a cluster for ``balance``: space, loads and rules of all volumes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit.limits import broken_limits
from evenkeel.measure.compare import joined
from evenkeel.measure.rows import distinct_rows
from evenkeel.measure.tally import PlacementCounts
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.rules import Amount, Rule
from evenkeel.model.runtime.heartbeat import beat
from evenkeel.systems.longhorn.auto_balance.compile import waiting_until
from evenkeel.systems.longhorn.auto_balance.settings import AUTO_BALANCE, DATA_LOCALITY, Settings
from evenkeel.systems.longhorn.auto_balance.system import (
    BEST_EFFORT,
    DEGRADED,
    DISABLED,
    HEALTHY,
    IGNORED,
    System,
)
from evenkeel.systems.longhorn.auto_balance.to_cluster import NO_ZONE, promised, soft


@dataclass(frozen=True, eq=False)
class Standings:
    """What of a system a plan may touch. P volumes, K slots.

    Parameters
    ----------
    effort : ndarray of uint8, shape (P,)
        DISABLED, LEAST_EFFORT or BEST_EFFORT: the volume's own setting, or else the global one.
    balanced : ndarray of bool, shape (P,)
        Volumes whose replicas may move for the sake of balance.
    repaired : ndarray of bool, shape (P,)
        Volumes that may be given replicas at all: attached, with a healthy replica, at rest.
    counts : ndarray of bool, shape (K,)
        Replicas that count: on a disk, active and not failed, or failed a moment ago and likely to
        return.
    leaving : ndarray of bool, shape (K,)
        Replicas under eviction that may be moved.
    pinned : ndarray of bool, shape (K,)
        Replicas that stay where they are.
    wanted : ndarray of int32, shape (P,)
        Replicas that each volume should have; no more than it has where it may not be given any.
    """

    effort: NDArray[np.uint8]
    balanced: NDArray[np.bool_]
    repaired: NDArray[np.bool_]
    counts: NDArray[np.bool_]
    leaving: NDArray[np.bool_]
    pinned: NDArray[np.bool_]
    wanted: NDArray[np.int32]


def standings(cluster: Cluster, system: System, settings: Settings) -> Standings:
    """Sort out what a plan may touch, by the conditions under which Longhorn itself acts.

    References
    ----------
    longhorn-manager, ``controller/volume_controller.go``: ``replenishReplicas``,
    ``getReplicaCountForAutoBalance...``, ``getHealthyAndActiveReplicaCount``.
    """
    volumes, replicas, placement = system.volumes, system.replicas, cluster.placement
    owner, there = placement.owner, placement.node >= 0
    effort = efforts(system, settings)
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


def efforts(system: System, settings: Settings) -> NDArray[np.uint8]:
    """Return how far each volume is balanced."""
    everywhere = np.uint8(DISABLED + AUTO_BALANCE.index(settings.replica_auto_balance))
    own = system.volumes.auto_balance
    return np.where(own == IGNORED, everywhere, own)


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


DATA, PROMISED, LOAD = "bytes", "nominal", "load"
"""Dimensions: data to copy, nominal size, and the caller's further cost of a replica."""


@dataclass(frozen=True, eq=False)
class SpaceProblem:
    """A problem of space, and where its slots come from.

    Parameters
    ----------
    cluster : Cluster
        The problem. Of a volume's replicas those come first that share their disk or host with
        another one, and of these the ones on fuller disks: a violation that several of them can
        repair is repaired by the first.
    slot : ndarray of int64, shape (K,)
        Slot of the system's own cluster that each of its slots stands for.
    may : ndarray of bool, shape (classes, N)
        Disks that new replicas of each class of volumes may be put on.
    like : ndarray of int64, shape (P,)
        Class of each volume.
    """

    cluster: Cluster
    slot: NDArray[np.int64]
    may: NDArray[np.bool_]
    like: NDArray[np.int64]

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
    receives = alive & receiving(system, settings)
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
    """Find the volumes of which a new replica stands where Longhorn would not put it.

    That happens where another replica was to leave and then found no place, and where one of
    several that share a domain against a hard rule moves within it: to the search that is no worse,
    while the scheduler looks only at where the new replica would stand.
    """
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


def receiving(system: System, settings: Settings) -> NDArray[np.bool_]:
    """Return the disks that Longhorn's scheduler looks at, space and tags apart."""
    hosts, disks = system.hosts, system.disks
    host = hosts.ready & hosts.schedulable & hosts.allow_scheduling & ~hosts.deleting
    host = host & ~hosts.evicting
    if settings.disable_scheduling_on_cordoned_node:
        host = host & ~hosts.cordoned
    disk = disks.ready & disks.allow_scheduling & ~disks.evicting
    return host[disks.host] & disk & (disks.maximum > 0) & (disks.available > 0)


def _room(system: System, settings: Settings, held: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what this system's replicas may take up on each disk, (N, 2).

    The rules bind the scheduler: what is on a disk already may stay, and so a disk that is
    beyond them is full, and not broken.
    """
    disks = system.disks
    whole, rest = np.divmod(disks.maximum, 100)
    minimal = settings.storage_minimal_available_percentage
    kept_free = whole * minimal + rest * minimal // 100
    free = disks.available - kept_free - 1  # more than that must stay free
    open_promise = promised(disks.maximum, disks.kept(settings), settings) - disks.scheduled
    room = np.stack([free, open_promise], axis=1).astype(np.float64)
    return held + np.maximum(room, 0.0)


MAY = "may"
"""Tag ``may:i`` of the disks that volumes under rule i may use, or are on all the same."""


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
    """Return the rules of the volumes.

    Least effort asks for as many zones and hosts as can be had, best effort in addition for no more
    replicas in one than an even spread has. Where anti-affinity is hard, one per zone (host, disk)
    is asked for in any case, and nothing of the levels within, where it follows. Tags and engines
    are looked at when a replica is placed, and so are hosts that are closed: one that is there may
    stay, and counts.
    """
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
    may = np.stack([usable(system, settings, one) for one in classes])
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


def usable(system: System, settings: Settings, like: Likeness) -> NDArray[np.bool_]:
    """Return the disks that a class of volumes may use, by engine and tags."""
    hosts, disks = system.hosts, system.disks
    by_host = _tagged(
        hosts.tags, len(hosts), system.selectors[like.node_selector],
        settings.allow_empty_node_selector_volume,
    )  # fmt: skip
    by_disk = _tagged(
        disks.tags, len(disks), system.selectors[like.disk_selector],
        settings.allow_empty_disk_selector_volume,
    )  # fmt: skip
    runs = system.hosts.engines[like.engine] & by_host
    kind = disks.block == system.engine_block[like.engine]
    return np.asarray(runs[disks.host] & by_disk & kind, np.bool_)


def _tagged(
    tags: Mapping[str, NDArray[np.bool_]], count: int, asked: Sequence[str], empty_takes_all: bool
) -> NDArray[np.bool_]:
    """Return what carries all tags asked for; if none is, all, or all that carry none."""
    found = np.ones(count, np.bool_)
    for tag in asked:
        found &= tags.get(tag, np.zeros(count, np.bool_))
    if not asked and not empty_takes_all:
        for carried in tags.values():
            found &= ~carried
    return found


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

    Examples
    --------
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

    A replica that goes to another zone is on another host by that; done the other way round, it
    could take two moves.

    Examples
    --------
    >>> zones_first(Rule(spread={"zone": (1, "soft"), "host": (1, "soft")})).spread
    {'zone': (1, 'soft'), 'host': None}
    """

    def kept(amounts: Mapping[str, Amount]) -> dict[str, Amount]:
        return {
            level: amount if level == "zone" or not isinstance(amount, tuple) else None
            for level, amount in amounts.items()
        }

    return replace(rule, spread=kept(rule.spread), min_domains=kept(rule.min_domains))


def even(room: NDArray[np.integer], wanted: int) -> int:
    """Return how many replicas the fullest domain has in an even spread.

    Examples
    --------
    >>> even(np.array([4, 4, 1]), 4), even(np.array([1, 1]), 3)
    (2, 3)
    """
    for most in range(1, wanted + 1):
        if np.minimum(room, most).sum() >= wanted:
            return most
    return max(wanted, 1)
