"""Preference lists: in which order ideal states name the instances of a partition.

Those that were listed keep their order, who joins comes behind them, and who leads stands in front.
"""

from collections.abc import Mapping
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import rows_alone
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from evenkeel.model.runtime.memoize import memoize

NOBODY: list[str] = []


class Preferences(NamedTuple):
    """The lists of all partitions, one after the other, as the records have them."""

    first: NDArray[np.int64]
    """Where each list begins, (P + 1,)."""

    node: NDArray[np.int32]
    """Who stands in them, by index; -1 for what is no node, (L,)."""


class Held(NamedTuple):
    """Who holds some partitions, and who leads them."""

    partition: NDArray[np.integer]
    first: NDArray[np.int64]
    node: NDArray[np.integer]
    leader: NDArray[np.integer]


def rows_by_group(cluster: Cluster) -> dict[str, list[int]]:
    """Return the partitions of each resource."""
    group, names = cluster.partitions.group, cluster.partitions.group_names
    rows = np.argsort(group, kind="stable").tolist()
    ends = np.cumsum(np.bincount(group, minlength=len(names))).tolist()
    return {
        name: rows[begin:end] for name, begin, end in zip(names, [0, *ends], ends, strict=False)
    }


def key_in(record: Mapping[str, Any], partition: str) -> str:
    """Return what an ideal state calls a partition: without the resource that sets it apart."""
    if partition not in record["listFields"] and partition not in record["mapFields"]:
        return partition.removeprefix(f"{record['id']}/")
    return partition


def preferences_of(cluster: Cluster, ideal_states: Mapping[str, Any]) -> Preferences:
    """Return the lists that a cluster was read from; they are the same for both ways of a plan."""
    return memoize(
        cluster.partitions, "preference lists", lambda: _read(cluster, ideal_states),
        cluster.nodes.names, ideal_states,
    )  # fmt: skip


def _read(cluster: Cluster, ideal_states: Mapping[str, Any]) -> Preferences:
    names, found = cluster.partitions.names, [NOBODY] * len(cluster.partitions)
    for resource, rows in rows_by_group(cluster).items():
        record = ideal_states[resource]
        lists = record["listFields"]
        for p in rows:
            listed = lists.get(names[p])
            found[p] = lists.get(key_in(record, names[p]), NOBODY) if listed is None else listed
    first = np.zeros(len(found) + 1, np.int64)
    np.cumsum([*map(len, found)], out=first[1:])
    number = {name: n for n, name in enumerate(cluster.nodes.names)}
    node = np.fromiter(map(number.get, chain.from_iterable(found), repeat(-1)), np.int32)
    return Preferences(first, node)


def held_by(placement: Placement, partition: NDArray[np.integer]) -> Held:
    """Return who holds and leads partitions in a placement."""
    rows = rows_alone(placement, partition)
    return Held(partition, rows.first, rows.node, rows.leader_node)


def unlike(lists: Preferences, placement: Placement) -> NDArray[np.bool_]:
    """Return the partitions that are not held, and led, as their lists say, (P,)."""
    there = placement.node >= 0
    node, owner = placement.node[there], placement.owner[there]
    width = np.bincount(owner, minlength=len(placement))
    found: NDArray[np.bool_] = np.diff(lists.first) != width
    begin = np.cumsum(width) - width
    at = np.arange(len(node)) - begin[owner]
    same = ~found[owner]
    differs = lists.node[lists.first[owner[same]] + at[same]] != node[same]
    found[owner[same][differs]] = True
    leader = placement.leader_node
    led = np.flatnonzero((leader >= 0) & ~found & (width > 0))
    found[led[node[begin[led]] != leader[led]]] = True
    return found


def in_order(cluster: Cluster, lists: Preferences, held: Held) -> list[list[str]]:
    """Return the instances that hold partitions in the order in which they are to be listed."""
    there = held.node >= 0
    row = np.repeat(np.arange(len(held.partition)), np.diff(held.first))[there]
    node = held.node[there].astype(np.int64)
    own, line = np.unique(held.partition, return_inverse=True)
    start, length = lists.first[own], np.diff(lists.first)[own]
    which = np.repeat(np.arange(len(own)), length)
    at = np.arange(len(which)) + (start - np.cumsum(length) + length)[which]
    # a number for each pair: what is no node gets one that nobody asks for
    span = len(cluster.nodes) + 1
    known = which * span + lists.node[at]
    by_number = np.argsort(known, kind="stable")
    asked = line[row] * span + node
    found = np.minimum(np.searchsorted(known, asked, sorter=by_number), max(len(known) - 1, 0))
    place = np.arange(len(node)) + len(lists.node)
    if len(known):
        listed = by_number[found]
        place = np.where(known[listed] == asked, listed, place)
    place[node == held.leader[row]] = -1
    names = [*cluster.nodes.names]
    ordered = [names[n] for n in node[np.lexsort((place, row))].tolist()]
    ends = np.cumsum(np.bincount(row, minlength=len(held.partition))).tolist()
    return [ordered[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
