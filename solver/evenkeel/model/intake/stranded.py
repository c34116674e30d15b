"""Mark unavailable (stranded) partitions, of which no live replica surely has all data.

The reader of a system's dump knows the sources of copies: a replica in sync, a majority, a disk
that answers. A partition without a source stays as it is until one is back, and no plan waits for
it. So does one that is left alone, since the dump has too little about it, or was taken during a
change.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.runtime.memoize import memoize
from evenkeel.model.runtime.printable import counted, some_of

if TYPE_CHECKING:
    from evenkeel.model.cluster import Cluster

MOST_LISTED = 5  # partitions that are named; the rest is counted
MARKS = Flag.STRANDED | Flag.PINNED


def stranded(placement: Placement) -> NDArray[np.bool_]:
    """Return which partitions have a replica that is marked as stranded, (P,) bool."""
    return marked(placement, Flag.STRANDED)


def reassigned(placement: Placement) -> NDArray[np.bool_]:
    """Return which partitions have a pinned replica that is on its way already, (P,) bool."""
    return marked(placement, Flag.PINNED | Flag.INCOMING)


def unchanged(placement: Placement) -> NDArray[np.bool_]:
    """Return which partitions stay as they are, leader included, (P,) bool."""

    def found() -> NDArray[np.bool_]:
        kept = marked(placement, Flag.LEFT_ALONE)
        return read_only(stranded(placement) | reassigned(placement) | kept)

    return memoize(placement, "unchanged", found)


def marked(placement: Placement, flags: Flag) -> NDArray[np.bool_]:
    """Return which partitions have a replica that carries all of some flags, (P,) bool."""
    if not placement.flags.any():
        return np.zeros(len(placement), np.bool_)
    marked = (placement.flags & flags) == flags
    return np.asarray(np.bincount(placement.owner[marked], minlength=len(placement)) > 0)


def with_left_alone(cluster: "Cluster", which: NDArray[np.bool_]) -> "Cluster":
    """Return a cluster in which some partitions (P,) are left alone."""
    if not which.any():
        return cluster
    held = cluster.placement
    marks = np.uint16(Flag.LEFT_ALONE | Flag.PINNED)
    flags = read_only(np.where(which[held.owner], held.flags | marks, held.flags))
    return cluster.with_placement(replace(held, flags=flags))


def stranding(flags: NDArray[np.integer], rows: NDArray[np.bool_]) -> NDArray[np.uint16]:
    """Return flags in which the replicas of some ``rows (K,)`` are stranded, and so stay."""
    return np.where(rows, flags | np.uint16(MARKS), flags).astype(np.uint16)


def with_stranded(cluster: "Cluster", which: NDArray[np.bool_]) -> "Cluster":
    """Return a cluster in which some partitions (P,) are stranded."""
    if not which.any():
        return cluster
    held = cluster.placement
    flags = read_only(stranding(held.flags, which[held.owner]))
    return cluster.with_placement(replace(held, flags=flags))


def stranded_names(cluster: "Cluster") -> list[str]:
    """Return the partitions that are stranded, by name."""
    names = cluster.partitions.names
    return [names[p] for p in np.flatnonzero(stranded(cluster.placement)).tolist()]


def unavailable_message(cluster: "Cluster") -> str:
    """Return which partitions are stranded and where they are, the first of them; "" for none."""
    held = np.flatnonzero(stranded(cluster.placement)).tolist()
    if not held:
        return ""
    nodes, first = cluster.nodes.names, cluster.placement.first

    def one(p: int) -> str:
        there = cluster.placement.node[first[p] : first[p + 1]].tolist()
        named = ", ".join(nodes[n] for n in there if n >= 0)
        return f"{cluster.partitions.names[p]} (on {named or 'no node'})"

    stay, their = ("stays as it is", "its") if len(held) == 1 else ("stay as they are", "their")
    return (
        f"{counted(len(held), 'partition')} {stay}, since no live replica surely has all {their} "
        f"data: {some_of(held, one, MOST_LISTED)}"
    )


def unjudged(cluster: "Cluster") -> bool:
    """Return whether all partitions are left alone, and under none of the rules."""
    kept = marked(cluster.placement, Flag.LEFT_ALONE)
    free = cluster.partitions.rule < 0
    return bool(kept.size and kept.all() and free.all() and cluster.rules)


def left_alone_message(cluster: "Cluster") -> str:
    """Return that nothing that was read can be judged, or decided; "" where something can."""
    kept = marked(cluster.placement, Flag.LEFT_ALONE)
    if not kept.all() or not cluster.native_format:
        return ""
    if not kept.size:
        return "nothing is decided: no partition was read that may be placed"
    them = f"all {kept.size:,} partitions are" if kept.size > 1 else "the only partition is"
    return f"nothing is {'judged' if unjudged(cluster) else 'decided'}: {them} left alone"


def _pinned(placement: Placement) -> NDArray[np.bool_]:
    """Return the replicas that pins keep where they are, of partitions that may change, (K,)."""
    pinned = ((placement.flags & Flag.PINNED) != 0) & (placement.node >= 0)
    return np.asarray(pinned & ~unchanged(placement)[placement.owner])


def pinned_on_down(cluster: "Cluster") -> int:
    """Count the pinned replicas on nodes that are down."""
    held = cluster.placement
    return int((_pinned(held) & ~np.append(cluster.nodes.serves, True)[held.node]).sum())


def pinned_messages(cluster: "Cluster") -> list[str]:
    """Return notes on pinned replicas that stay on nodes that are down, draining or forbidden.

    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0, 1]] * 2)
    >>> pinned_messages(c.pin("p1").down("n0"))
    ['1 pinned replica stays on a node that is down: n0']
    """
    held, nodes = cluster.placement, cluster.nodes
    if not held.flags.any():
        return []
    pinned = _pinned(held)
    down, leaves = (
        pinned & ~np.append(state, True)[held.node] for state in (nodes.serves, nodes.may_hold)
    )
    banned = np.zeros(len(held.node), np.bool_)
    if pinned.any() and len(cluster.forbidden):
        pairs = {(int(p), int(n)) for p, n in cluster.forbidden.tolist()}
        for k in np.flatnonzero(pinned).tolist():
            banned[k] = (int(held.owner[k]), int(held.node[k])) in pairs
    stated = []
    for which, why in (
        (down, "down"),
        (leaves & ~down, "to be emptied"),
        (banned & ~down & ~leaves, "forbidden to its partition"),
    ):
        there = np.unique(held.node[which]).tolist()
        if there:
            stay = "stays" if which.sum() == 1 else "stay"
            on = "a node that is" if len(there) == 1 else "nodes that are"
            stated.append(
                f"{counted(int(which.sum()), 'pinned replica')} {stay} on {on} {why}: "
                f"{some_of(there, lambda n: nodes.names[n], MOST_LISTED)}"
            )
    return stated
