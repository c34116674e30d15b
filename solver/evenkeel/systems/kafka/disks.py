"""Log directories as disks of brokers: their capacities, states and replicas."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.disks import homes
from evenkeel.model.cluster import Cluster
from evenkeel.model.disks import Disks, DiskState
from evenkeel.model.placement import Placement
from evenkeel.model.runtime.printable import some_of
from evenkeel.systems.kafka.findings import Findings, FoundDir
from evenkeel.systems.kafka.log_dirs import HeldReplicas
from evenkeel.systems.kafka.missing import NAMED, Missing
from evenkeel.systems.kafka.rows import Rows, keys_of

if TYPE_CHECKING:
    from evenkeel.planning.plan import Plan

ANY = "any"  # the log directory that the broker chooses
SEVERAL = 2  # log directories of a broker from which on they are disks that can be levelled


def folder_of(name: str) -> str:
    """Return the log directory of a disk, which is named ``1:/data/kafka``.

    >>> folder_of("1:/data/kafka")
    '/data/kafka'
    """
    return name.partition(":")[2]


def disks_of(
    found: Findings,
    rows: Rows,
    replicas: HeldReplicas,
    brokers: NDArray[np.int32],
    missing: Missing,
) -> dict[str, Any]:
    """Return disks, and the disk of each replica; nothing without sizes or several on a broker."""
    # a broker of which a directory could not be read, for want of a right, has no disks
    listed = [
        (n, found.log_dirs[broker]) for n, broker in enumerate(brokers.tolist())
        if found.log_dirs.get(broker)
    ]  # fmt: skip
    if not len(replicas.size):
        missing.unsized = any(name != ANY for dirs in rows.log_dirs.values() for name in dirs)
        return {}
    if all(len(dirs) < SEVERAL for _, dirs in listed):
        return {}
    nodes: list[int] = []
    names: list[str] = []
    capacity: list[float] = []
    states: list[int] = []
    for n, dirs in listed:
        broker = int(brokers[n])
        rooms = _rooms(found, broker, dirs, missing)
        for folder in sorted(dirs):
            nodes.append(n)
            names.append(f"{broker}:{folder}")
            capacity.append(rooms[folder])
            states.append(int(DiskState.FAILED if dirs[folder].failed else DiskState.FINE))
    place = {name: d for d, name in enumerate(names)}
    lies = np.fromiter(
        (
            place.get(f"{broker}:{folder}", -1)
            for broker, folder in zip(
                replicas.broker.tolist(), replicas.folder.tolist(), strict=True
            )
        ),
        np.int32, len(replicas.folder),
    )  # fmt: skip
    keys = keys_of(replicas.partition, replicas.broker)
    order = np.argsort(keys, kind="stable")
    asked = keys_of(rows.owner, rows.broker)
    disk = np.full(len(asked), -1, np.int32)
    if len(keys):
        at = np.minimum(np.searchsorted(keys[order], asked), len(keys) - 1)
        disk = np.where(keys[order][at] == asked, lies[order][at], np.int32(-1))
    return {"disks": Disks(nodes, capacity, states, names), "disk": disk}


def _rooms(
    found: Findings, broker: int, dirs: Mapping[str, FoundDir], missing: Missing
) -> dict[str, float]:
    """Return what each directory of a broker holds at most; ``inf`` where that is not known."""
    # a file of capacities precedes what the broker reports
    limits = found.dir_capacity.get(broker) or found.dir_capacity.get(-1, {})
    rooms = {}
    for folder, one in dirs.items():
        most = limits.get(folder, one.room)
        if one.cordoned:
            most = one.held
            missing.cordoned.append(f"{folder} on broker {broker}")
        # what is not described stays
        others = found.elsewhere_by_dir.get((broker, folder), 0.0)
        rooms[folder] = np.inf if most is None else max(most - others, 0.0)
        if most is None and not one.failed and len(dirs) >= SEVERAL:
            missing.roomless[str(broker)] = missing.roomless.get(str(broker), 0) + 1
    alone = sorted({*limits} - {*dirs})
    if alone and found.dir_capacity.get(broker):
        missing.unlisted[str(broker)] = alone
    return rooms


def named_disks(cluster: Cluster) -> dict[str, dict[str, str]]:
    """Return the disks that a reassignment names, by partition and broker."""
    native = cluster.native if isinstance(cluster.native, dict) else {}
    return {
        name: {one: f"{one}:{folder}" for one, folder in own.items() if folder != ANY}
        for name, own in native.get("log_dirs", {}).items()
    }


def room_of_brokers(found: Findings) -> None:
    """Give brokers without a capacity of disk that of their directories, where all report it."""
    default = found.capacity.get(-1, {})
    for broker, dirs in found.log_dirs.items():
        rooms = [one.room for one in dirs.values() if not one.failed]
        own = found.capacity.get(broker, {})
        if rooms and None not in rooms and "disk" not in default and "disk" not in own:
            total = sum(room for room in rooms if room is not None)
            found.capacity.setdefault(broker, {})["disk"] = total


def moved_inside(cluster: Cluster, target: Placement) -> NDArray[np.bool_]:
    """Return the partitions of which a replica changes its log directory on its broker, (P,)."""
    moves = np.zeros(len(cluster.partitions), np.bool_)
    if cluster.disks is None or target.disk is None:
        return moves
    home = homes(cluster, cluster.placement, target)
    moves[target.owner[(home >= 0) & (target.disk >= 0) & (home != target.disk)]] = True
    return moves


def folders_of_disks(cluster: Cluster) -> list[str]:
    """Return the log directory of each disk; ``any`` where its broker has no other, or is down."""
    disks = cluster.disks
    if disks is None:
        return []
    free = np.bincount(disks.node, minlength=len(cluster.nodes)) >= SEVERAL
    free &= cluster.nodes.alive
    names = zip(disks.names, free[disks.node].tolist(), strict=True)
    return [folder_of(name) if one else ANY for name, one in names]


def inside_waves(plan: "Plan", *, early: bool) -> Iterator[tuple[int, dict[int, dict[int, str]]]]:
    """Yield each wave of moves inside brokers: its number and directories by partition and node."""
    # ``early`` waves go before the copies between brokers, the others after them
    moves, cluster = plan.disk_moves, plan.cluster
    placement, folders = cluster.placement, folders_of_disks(cluster)
    for number in range(*((0, moves.early) if early else (moves.early, moves.waves))):
        lies: dict[int, dict[int, str]] = {}
        for i in np.flatnonzero(moves.wave == number).tolist():
            k = moves.replica[i]
            own = lies.setdefault(int(placement.owner[k]), {})
            own[int(placement.node[k])] = folders[moves.target[i]]
        yield number, lies


def folders_in(
    cluster: Cluster, placement: Placement, partitions: Sequence[int]
) -> dict[int, dict[int, str]]:
    """Return the log directories of replicas, by partition and node."""
    # only of live brokers that list several: Kafka has no choice elsewhere, and asks a broker that
    # is named
    disks = cluster.disks
    if disks is None or placement.disk is None:
        return {}
    names, found = folders_of_disks(cluster), {}
    start, home = cluster.placement, homes(cluster, cluster.placement, placement)
    for p in partitions:
        row = slice(int(placement.first[p]), int(placement.first[p + 1]))
        was = {*start.node[start.first[p] : start.first[p + 1]].tolist()}
        columns = (one[row].tolist() for one in (placement.node, placement.disk, home))
        # what stays where its directory is not known is left out
        found[p] = {
            n: names[d] for n, d, known in zip(*columns, strict=True)
            if n >= 0 and d >= 0 and names[d] != ANY and (known >= 0 or n not in was)
        }  # fmt: skip
    return found


def notes(missing: Missing) -> Iterator[str]:
    """Yield notes on sizes and capacities in log directories, and on moves between them."""
    if missing.unsized:
        yield (
            "no sizes in the log directories that an assignment names: they are not taken for "
            "disks; add what kafka-log-dirs.sh --describe prints"
        )
    if missing.roomless:
        which = some_of(sorted(missing.roomless, key=int), str, NAMED)
        yield (
            f"no capacities of log directories on brokers {which}: those of a broker count as "
            "equally large; add a file of capacities, with a size for each"
        )
    for broker, folders in missing.unlisted.items():
        yield (
            f"no listing of {', '.join(folders)} on broker {broker}, for which there is a "
            "capacity: nothing is placed there"
        )
    if missing.cordoned:
        yield f"a cordon on {', '.join(missing.cordoned)}: what is there stays, and nothing comes"
    if missing.moving:
        yield (
            f"a move between log directories under way of {missing.moving:,} "
            f"replica{'s' * (missing.moving > 1)}: each counts where it goes"
        )
