"""Which replicas are to be built where, and which of the old ones go, between two placements."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import count

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement

NOWHERE = -1


@dataclass(frozen=True)
class Seat:
    """A replica on a disk, which is a node of the cluster; "" and -1 where there is none."""

    replica: str = ""
    disk: int = NOWHERE


@dataclass(frozen=True)
class Change:
    """One replica that is built, and the one that goes when it is healthy; either may be none.

    ``tight`` says that there may be no room for both at the time.
    """

    volume: int
    old: Seat
    new: Seat
    tight: bool = False

    def undone(self, name: str) -> "Change":
        """Return the change that takes this one back: it builds where the old replica was."""
        there = self.old.disk
        back = Seat(replica_name(name, f"undo {there}"), there) if there >= 0 else Seat()
        return Change(self.volume, self.new, back)


def replica_name(volume: str, key: str) -> str:
    """Return a name as Longhorn makes them, the same for the same change of a volume.

    Examples
    --------
    >>> replica_name("pvc-1", "node-1/disk-1")
    'pvc-1-r-03cb7ebb'
    """
    digits = blake2b(f"{volume} {key}".encode(), digest_size=4).hexdigest()
    return f"{volume}-r-{digits}"


def changes(cluster: Cluster, names: Sequence[str], after: Placement) -> list[Change]:
    """List what has to be built and what goes, so that there is room at every step.

    Replicas that only swap their slots do not change. What finds no room before another has left
    comes last, and says so.
    """
    before = cluster.placement
    moved = np.flatnonzero(before.node != after.node)
    volumes, begin = np.unique(before.owner[moved], return_index=True)
    found: list[Change] = []
    for p, slots in zip(volumes.tolist(), np.split(moved, begin[1:]), strict=False):
        found += _of_volume(cluster, names, after, p, slots.tolist())
    return list(_with_room(cluster, found))


def _of_volume(
    cluster: Cluster, names: Sequence[str], after: Placement, p: int, slots: list[int]
) -> Iterator[Change]:
    """Pair the replicas of a volume that go with those that are built."""
    was = cluster.placement.node
    leaving = [k for k in slots if was[k] >= 0]
    coming: list[tuple[int, int]] = []
    for k in slots:
        disk = int(after.node[k])
        same = next((j for j in leaving if was[j] == disk), None)
        if same is not None:
            leaving.remove(same)
        elif disk >= 0:
            coming.append((k, disk))
    first = cluster.placement.first
    taken = set(names[first[p] : first[p + 1]])
    for k, disk in coming:
        old = Seat()
        if leaving:
            partner = k if k in leaving else leaving[0]
            leaving.remove(partner)
            old = Seat(names[partner], int(was[partner]))
        keys = (f"{cluster.nodes.names[disk]} {i}" for i in count())
        drawn = (replica_name(cluster.partitions.names[p], key) for key in keys)
        name = next(one for one in drawn if one not in taken)
        taken.add(name)
        yield Change(p, old, Seat(name, disk))
    for k in leaving:
        yield Change(p, Seat(names[k], int(was[k])), Seat())


def _with_room(cluster: Cluster, found: Iterable[Change]) -> Iterator[Change]:
    """Put first what has room now, again and again."""
    placement, load = cluster.placement, cluster.partitions.load.voter
    held = np.zeros_like(cluster.nodes.capacity)
    there = placement.node >= 0
    np.add.at(held, placement.node[there], load[placement.owner[there]])
    waiting = list(found)
    while waiting:
        blocked = []
        for one in waiting:
            if _has_room(cluster, held, one):
                _apply(held, load, one)
                yield one
            else:
                blocked.append(one)
        if len(blocked) == len(waiting):
            yield from (replace(one, tight=True) for one in blocked)
            return
        waiting = blocked


def _has_room(cluster: Cluster, held: NDArray[np.float64], one: Change) -> bool:
    if one.new.disk < 0:
        return True
    needed = held[one.new.disk] + cluster.partitions.load.voter[one.volume]
    return bool((needed <= cluster.nodes.capacity[one.new.disk]).all())


def _apply(held: NDArray[np.float64], load: NDArray[np.float64], one: Change) -> None:
    if one.new.disk >= 0:
        held[one.new.disk] += load[one.volume]
    if one.old.disk >= 0:
        held[one.old.disk] -= load[one.volume]
