"""Select the replicas of some partitions, and find the distinct rows of a table."""

import numpy as np

from evenkeel.model.placement import Flag, Placement
from evenkeel.model.reading.arrays import Flags, Ints, Ints32, Ints64, read_only
from evenkeel.model.runtime.heartbeat import beat


def replicas_of(placement: Placement, partitions: Ints) -> tuple[Ints64, Ints64]:
    """Return the replicas of some partitions, and for each the index of its one of them."""
    start = placement.first[partitions]
    length = placement.first[partitions + 1] - start
    which = np.repeat(np.arange(len(partitions)), length)
    # where each row would start if the rows were laid end to end
    laid = np.cumsum(length) - length
    return np.arange(len(which)) + (start - laid)[which], which


def stands(placement: Placement, partition: Ints, node: Ints) -> Flags:
    """Return whether each partition has a replica on each node, pair by pair."""
    found = np.zeros(len(partition), bool)
    start, end = placement.first[partition], placement.first[partition + 1]
    beat()
    longest = int((end - start).max(initial=0))
    for slot in range(longest):
        beat()
        at = np.minimum(start + slot, len(placement.node) - 1)
        found |= (placement.node[at] == node) & (start + slot < end)
    return found


def pinned(placement: Placement) -> tuple[Ints32, Ints32]:
    """Return the partition and the node of each replica that is pinned there."""
    at = np.flatnonzero(((placement.flags & Flag.PINNED) != 0) & (placement.node >= 0))
    return placement.owner[at], placement.node[at]


def rows_alone(placement: Placement, partitions: Ints) -> Placement:
    """Return the rows of some partitions, in the order given, as a placement of their own."""
    replicas, _ = replicas_of(placement, partitions)
    first = np.zeros(len(partitions) + 1, np.int64)
    np.cumsum(np.diff(placement.first)[partitions], out=first[1:])
    return Placement(
        first=read_only(first),
        node=read_only(placement.node.take(replicas)),
        role=read_only(placement.role.take(replicas)),
        flags=read_only(placement.flags.take(replicas)),
        leader=read_only(placement.leader.take(partitions)),
        disk=None if placement.disk is None else read_only(placement.disk.take(replicas)),
    )


def at_node(value: Flags, node: Ints32) -> Flags:
    """Return a flag of each node given; False for no node."""
    # node -1 reads the last entry
    return np.append(value, False).take(node)


def distinct_rows(table: Ints64) -> tuple[Ints64, Ints64]:
    """Return the distinct rows of a table in lexical order, and the index of each row in them."""
    if not len(table):
        return table, np.zeros(0, np.int64)
    least = table.min(axis=0)
    span = table.max(axis=0) - least + 1
    # one number per row sorts as an integer, where ``np.unique`` compares rows byte by byte
    if np.prod(span.astype(float)) < 2.0**62:
        weight = np.append(np.cumprod(span[:0:-1])[::-1], 1)
        code = (table - least) @ weight
        _, first, index = np.unique(code, return_index=True, return_inverse=True)
        return table[first], index
    rows, index = np.unique(table, axis=0, return_inverse=True)
    return rows, index.reshape(-1)


def more_often(fewer: Ints64, more: Ints64) -> tuple[Ints64, Ints64]:
    """Return the numbers that one array has more often than another, and how much more often."""
    found, count = np.unique(more, return_counts=True)
    there = np.sort(fewer)
    count -= np.searchsorted(there, found, "right") - np.searchsorted(there, found)
    return found[count > 0], count[count > 0]


def earlier_of(placement: Placement, marked: Flags) -> Ints64:
    """Count the replicas ``marked (K,)`` of its partition that come before each, (K,)."""
    before: Ints64 = np.cumsum(marked) - marked
    of_row = np.append(before, marked.sum())[placement.first[:-1]]
    return np.asarray(before - of_row[placement.owner])
