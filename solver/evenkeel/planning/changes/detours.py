"""Detours: a replica that waits on a third node while others of its partition trade domains."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.loads import utilisation
from evenkeel.measure.tally import PlacementCounts
from evenkeel.planning.changes.safety import Safety

MOST = 2000
"""Partitions for which a detour is sought."""


def detours(
    safety: Safety,
    rows: NDArray[np.intp],
    order: NDArray[np.intp],
    free: NDArray[np.bool_],
    full: Collection[tuple[int, int]],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return per row of the ends the slot that makes a detour and its node, (A,); -1 for none.

    Of the slots that are ``free (A, R)`` to do so one goes to a third node first and on to its own
    last, the others in the usual order between. The emptiest node that rules admit is taken, but
    none that is ``full`` for the partition.
    """
    cluster, ends = safety.cluster, safety.ends
    slot_of = np.full(len(ends), -1)
    node_of = np.full(len(ends), -1, np.int32)
    if len(rows) == 0:
        return slot_of, node_of
    loads = PlacementCounts.of(cluster, cluster.placement).loads
    used = utilisation(loads, cluster.nodes.capacity).max(axis=1, initial=0.0)
    by_room = np.argsort(used, kind="stable").astype(np.int32)
    by_room = by_room[cluster.nodes.may_receive[by_room]]
    for row in rows[:MOST].tolist():
        p = int(ends.partition[row])
        banned = [
            *cluster.forbidden[cluster.forbidden[:, 0] == p, 1],
            *(n for q, n in full if q == p),
        ]
        nodes = by_room[~np.isin(by_room, [*ends.before[row], *ends.after[row], *banned])]
        for slot in np.flatnonzero(free[row]).tolist():
            others = [one for one in order[row] if one != slot]
            held = _holds(safety, row, slot, others, nodes)
            if held.any():
                slot_of[row], node_of[row] = slot, nodes[np.argmax(held)]
                break
    return slot_of, node_of


def _holds(
    safety: Safety,
    row: int,
    slot: int,
    others: list[int],
    nodes: NDArray[np.int32],
) -> NDArray[np.bool_]:
    """Say for which of some nodes every state of a detour over it keeps the rules."""
    ends = safety.ends
    rows = np.full(len(nodes), row)
    node = np.repeat(ends.before[row][None], len(nodes), axis=0)
    role = np.repeat(ends.role[row][None], len(nodes), axis=0)
    node[:, slot] = nodes
    held = safety.keeps(rows, node, role)
    for other in others:
        if ends.recasts[row, other]:
            role[:] = ends.becomes[row]
            held &= safety.keeps(rows, node, role)
        elif ends.before[row, other] != ends.after[row, other]:
            node[:, other] = ends.after[row, other]
            held &= safety.keeps(rows, node, role)
    return held
