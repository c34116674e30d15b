"""A Longhorn system in the model's words: disks are nodes, volumes partitions, settings rules."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import distinct_rows
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Flag
from evenkeel.model.rules import Amount, Rule
from evenkeel.systems.longhorn.auto_balance.settings import Settings
from evenkeel.systems.longhorn.auto_balance.system import (
    FORMAT,
    OWN_ENABLED,
    OWN_IGNORED,
    System,
)

NO_ZONE = "(no zone)"
"""Label of the one zone that hosts without a label share."""

BLOCK, FILESYSTEM = "block-disk", "filesystem-disk"
"""Tags of disks by which data engine they serve, where there are both."""

UNTAGGED = "untagged"
"""Tag of hosts and disks that carry none, which a volume without selector may be bound to."""


def as_cluster(system: System, first: NDArray[np.int64], node: NDArray[np.int32]) -> Cluster:
    """Build the cluster of a system."""
    hosts, disks, volumes = system.hosts, system.disks, system.volumes
    on = disks.host
    alive = hosts.ready[on] & disks.ready
    open_hosts = hosts.schedulable & hosts.allow_scheduling & ~hosts.deleting
    if system.settings.disable_scheduling_on_cordoned_node:
        open_hosts = open_hosts & ~hosts.cordoned
    tags = _tags(system)
    rules, rule, met = _rules(system, tags)
    capacity, watermark = _capacity(system, first, node)
    zones = [hosts.zone_names[z] or NO_ZONE for z in hosts.zone[on].tolist()]
    first_disk = np.full(len(hosts) + 1, -1, np.int32)
    first_disk[on[::-1]] = np.arange(len(disks), dtype=np.int32)[::-1]
    return Cluster.from_arrays(
        capacity=capacity,
        watermark=watermark,
        load=np.stack([volumes.actual, volumes.size], axis=1).astype(np.float64),
        dimensions=("bytes", "nominal"),
        bytes="bytes",
        domains={"zone": zones, "host": [hosts.names[h] for h in on.tolist()]},
        node_names=[
            f"{hosts.names[h]}/{name}" for h, name in zip(on.tolist(), disks.names, strict=True)
        ],
        tags=tags,
        alive=alive,
        accepts=alive & open_hosts[on] & disks.allow_scheduling,
        keeps=~(hosts.evicting[on] | disks.evicting) & (alive | _may_return(system, node)),
        since=hosts.ready_since[on],
        partition_names=list(volumes.names),
        replicas=volumes.replicas,
        attached=first_disk[volumes.attached],
        placement=node,
        first=first,
        flags=_flags(system),
        leader=np.full(len(volumes), -1, np.int16),
        rules=rules,
        rule=rule,
        forbidden=_forbidden(np.flatnonzero(~met[rule]), first, node, len(disks)),
        native=system,
        native_format=FORMAT,
    )


def _may_return(system: System, node: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return the disks that are down and that Longhorn waits for, (N,); all if unknown.

    It waits for failed replicas that can serve again. A disk without them is as long down as its
    host.
    """
    replicas, disks = system.replicas, system.disks
    failed = (node >= 0) & replicas.failed & replicas.reusable
    latest = np.full(len(disks), -np.inf)
    np.maximum.at(latest, node[failed], np.nan_to_num(replicas.failed_at[failed], nan=np.inf))
    since = np.where(latest > -np.inf, latest, system.hosts.ready_since[disks.host])
    over = since + system.settings.replica_replenishment_wait_interval <= system.now
    return ~np.asarray(over)


def _forbidden(
    volumes: NDArray[np.int64], first: NDArray[np.int64], node: NDArray[np.int32], disks: int
) -> NDArray[np.int64]:
    """Return the disks that have none of some volumes, as pairs: they may get none, (F, 2)."""
    pairs = [np.zeros((0, 2), np.int64)]
    for v in volumes.tolist():
        free = np.setdiff1d(np.arange(disks), node[first[v] : first[v + 1]])
        pairs.append(np.column_stack([np.full(len(free), v), free]))
    return np.concatenate(pairs)


def soft(own: NDArray[np.uint8], everywhere: bool) -> NDArray[np.bool_]:
    """Tell for which volumes a kind of anti-affinity is soft."""
    return np.where(own == OWN_IGNORED, everywhere, own == OWN_ENABLED)


def promised(
    maximum: NDArray[np.int64], reserved: NDArray[np.int64], settings: Settings
) -> NDArray[np.int64]:
    """Return what may be promised on disks.

    Examples
    --------
    >>> promised(np.array([100]), np.array([30]), Settings()).tolist()
    [70]
    """
    whole, rest = np.divmod(maximum - reserved, 100)
    over = settings.storage_over_provisioning_percentage
    return np.asarray(whole * over + rest * over // 100, np.int64)


def _capacity(
    system: System, first: NDArray[np.int64], node: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what this system's replicas may take up, (N, 2), and where it begins to cost.

    Longhorn schedules no replica that leaves a disk less than the minimum available; what is there
    already may stay.
    """
    disks, volumes = system.disks, system.volumes
    held = np.flatnonzero(node >= 0)
    owner = np.repeat(np.arange(len(volumes)), np.diff(first))[held]
    own = np.zeros((2, len(disks)), np.int64)
    np.add.at(own[0], node[held], volumes.actual[owner])
    np.add.at(own[1], node[held], volumes.size[owner])
    left = promised(disks.maximum, disks.kept(system.settings), system.settings)
    left -= disks.scheduled - own[1]
    free = disks.maximum // 100 * system.settings.storage_minimal_available_percentage
    there = np.maximum(own[0] + disks.available - free, 0)
    at_ease = np.stack([there, np.maximum(left, 0)], axis=1).astype(np.float64)
    capacity = np.stack([np.maximum(there, own[0]), at_ease[:, 1]], axis=1).astype(np.float64)
    return capacity, at_ease


def _flags(system: System) -> NDArray[np.uint16]:
    replicas = system.replicas
    flags = replicas.healthy * Flag.HEALTHY + replicas.evicting * Flag.EVICTING
    return np.asarray(flags + replicas.failed * Flag.ERROR, np.uint16)


def _tags(system: System) -> Mapping[str, NDArray[np.bool_]]:
    """Name the tags of hosts ``host:tag`` and those of disks ``disk:tag``, wanted ones included."""
    on, found = system.disks.host, {}
    asked = {tag for tags in system.selectors for tag in tags}
    for kind, tags in (("host", system.hosts.tags), ("disk", system.disks.tags)):
        none = np.zeros(len(system.hosts) if kind == "host" else len(system.disks), np.bool_)
        untagged = ~none
        for tag in sorted(asked | set(tags)):
            carried = tags.get(tag, none)
            untagged &= ~carried
            found[f"{kind}:{tag}"] = carried[on] if kind == "host" else carried
        found[f"{kind}-{UNTAGGED}"] = untagged[on] if kind == "host" else untagged
    if _kinds_differ(system):
        found |= {BLOCK: system.disks.block, FILESYSTEM: ~system.disks.block}
    return found


def _kinds_differ(system: System) -> bool:
    """Tell whether some disks, or volumes, are of the second data engine, on block devices."""
    return bool(system.disks.block.any() or system.engine_block.any())


def _rules(
    system: System, tags: Mapping[str, NDArray[np.bool_]]
) -> tuple[list[Rule], NDArray[np.int32], NDArray[np.bool_]]:
    """Return the distinct rules of the volumes, each volume's, and which some disk could keep."""
    settings, volumes = system.settings, system.volumes
    columns = np.stack(
        [
            soft(volumes.zone_soft, settings.replica_zone_soft_anti_affinity),
            soft(volumes.node_soft, settings.replica_soft_anti_affinity),
            soft(volumes.disk_soft, settings.replica_disk_soft_anti_affinity),
            volumes.node_selector,
            volumes.disk_selector,
            system.engine_block[volumes.engine],
        ],
        axis=1,
    ).astype(np.int64)
    if len(columns) == 0:
        return [], np.zeros(0, np.int32), np.ones(0, np.bool_)
    distinct, rule = distinct_rows(columns)
    found = [_rule(system, tags, row) for row in distinct.tolist()]
    met = np.array([some for _, some in found], np.bool_)
    return [one for one, _ in found], rule.astype(np.int32), met


def _rule(
    system: System, tags: Mapping[str, NDArray[np.bool_]], row: list[int]
) -> tuple[Rule, bool]:
    """Say what binds a volume, and whether some disk has all the tags that it asks for.

    A rule that no node can keep is refused as a contradiction, and to Longhorn it is none: replicas
    stay where they are, and new ones find no place.
    """
    zone, host, disk, by_host, by_disk, block = row
    settings = system.settings
    zones = np.unique(system.hosts.zone)
    spread: dict[str, Amount] = {
        level: (1, "soft") if is_soft else 1
        for level, is_soft in (("zone", zone), ("host", host), ("node", disk))
        if level != "zone" or not is_soft or len(zones) > 1  # the only zone has all of them anyway
    }
    require = []
    for kind, chosen, empty_may_all in (
        ("host", by_host, settings.allow_empty_node_selector_volume),
        ("disk", by_disk, settings.allow_empty_disk_selector_volume),
    ):
        asked = system.selectors[chosen]
        require += [f"{kind}:{tag}" for tag in asked]
        if not asked and not empty_may_all:
            require.append(f"{kind}-{UNTAGGED}")
    if _kinds_differ(system):
        require.append(BLOCK if block else FILESYSTEM)
    met = np.all([np.ones(len(system.disks), np.bool_), *(tags[tag] for tag in require)], axis=0)
    some = bool(met.any())
    return Rule(require=[f"+{tag}" for tag in require] if some else (), spread=spread), some
