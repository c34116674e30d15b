"""Observed: what a system shows of a plan's replicas, brought into the plan's slots."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import read_only
from evenkeel.planning.changes.ends import check_target


def in_slots(cluster: Cluster, target: Placement, observed: Cluster | Placement) -> Placement:
    """Return the observed placement with every replica in the slot that a plan has it in.

    Systems order a partition's replicas as they like, and list one that is being copied beside the
    one that it is to replace. A slot holds the node that it is to go to if that is there, else the
    one that it comes from, else what no other slot accounts for. Where both are there it is on its
    way, ``INCOMING``, even if all of it has arrived: what it replaces has still to go.
    """
    faults = FaultList()
    now = observed.placement if isinstance(observed, Cluster) else observed
    if not isinstance(now, Placement):
        faults.add("observed", type(now).__name__, "must be a Cluster or a Placement")
    elif len(now) != len(cluster.placement):
        check_target(faults, cluster, now, path="observed")
    elif isinstance(observed, Cluster):
        _check_names(faults, cluster, observed)
    faults.raise_if_any()
    start = cluster.placement
    now = _flying(start, now)
    rows = np.arange(len(start), dtype=np.int32)
    if np.array_equal(now.first, start.first):
        rows = np.unique(now.owner[(now.node != start.node) & (now.node != target.node)])
    if len(rows):
        now = _seated(faults, start, target, now, rows)
    now = _recast(start, target, now)
    check_target(faults, cluster, now, path="observed")
    faults.raise_if_any()
    return now


def as_described(cluster: Cluster, observed: Cluster | Placement) -> Cluster:
    """Return the description that a plan of a cluster goes on with: what is observed, if it can be.

    One whose partitions have other slots counts replicas on their way among those that are wanted:
    of that only who has died is taken, and what its system knows of it.
    """
    if not isinstance(observed, Cluster):
        return cluster
    if np.array_equal(observed.placement.first, cluster.placement.first):
        return observed
    return replace(
        cluster.down(cluster.nodes.alive & ~observed.nodes.alive),
        native=observed.native, native_format=observed.native_format,
    )  # fmt: skip


def _flying(start: Placement, now: Placement) -> Placement:
    """Return what is observed with learners flagged as incoming, where a partition had none."""
    learns = now.role == Role.LEARNER
    if not learns.any():
        return now
    had = np.zeros(len(start), bool)
    had[start.owner[start.role == Role.LEARNER]] = True
    flags = np.where(learns & ~had[now.owner], now.flags | Flag.INCOMING, now.flags)
    return replace(now, flags=read_only(flags.astype(np.uint16)))


def _recast(start: Placement, target: Placement, now: Placement) -> Placement:
    """Return what is observed with the plan's roles of what is still a learner on its way."""
    if not now.role.any() or not np.array_equal(now.first, start.first):
        return now
    comes = (now.role == Role.LEARNER) & ((now.flags & Flag.INCOMING) != 0)
    known = np.where(start.node >= 0, start.role, target.role)
    return replace(now, role=read_only(np.where(comes, known, now.role).astype(np.uint8)))


def _check_names(faults: FaultList, cluster: Cluster, observed: Cluster) -> None:
    """Note the first node and partition that another cluster has in the place of a plan's."""
    for what in ("nodes", "partitions"):
        ours, theirs = getattr(cluster, what).names, getattr(observed, what).names
        if len(ours) != len(theirs):
            faults.add(f"observed.{what}", len(theirs), f"is of another cluster than {len(ours)}")
        else:
            for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
                if one != other:
                    path = f"observed.{what}[{i}]"
                    faults.add(path, other, f"is of another cluster: the plan has {one!r} there")
                    break


def _seated(
    faults: FaultList,
    start: Placement,
    target: Placement,
    now: Placement,
    rows: NDArray[np.int32],
) -> Placement:
    """Return what is observed in the slots of ``start``, some rows being seated anew."""
    node, flags = start.node.copy(), start.flags.copy()
    leader, role = now.leader.copy(), start.role.copy()
    if np.array_equal(now.first, start.first):
        node, flags, role = now.node.copy(), now.flags.copy(), now.role.copy()
    for p in rows.tolist():
        mine = slice(int(start.first[p]), int(start.first[p + 1]))
        theirs = slice(int(now.first[p]), int(now.first[p + 1]))
        seen = now.node[theirs].tolist()
        place = {n: i for i, n in reversed([*enumerate(seen)]) if n >= 0}
        wanted, before = target.node[mine].tolist(), start.node[mine].tolist()
        row = [
            n if n in place else was if was in place else -1
            for n, was in zip(wanted, before, strict=True)
        ]
        held = [n for n in row if n >= 0]
        if len({*held}) < len(held):  # who trade nodes by way of a third: the order seen tells
            row = seen if len(seen) == len(row) else _each_once(wanted, before, place)
        # what a copy replaces is where its slot was, and is not another replica
        known = {*row, *(was for n, was in zip(row, before, strict=True) if n != was)}
        rest = [n for n in place if n not in known]
        for slot, n in enumerate(row):
            if n < 0 and rest:
                row[slot] = rest.pop(0)
        for n in rest:
            faults.add(f"observed.partitions[{p}]", n, "is a node too many for the plan's slots")
        taken = [place.get(n, -1) for n in row]
        some, roles = now.flags[theirs], now.role[theirs]
        node[mine] = row
        flags[mine] = [
            int(some[i]) | Flag.INCOMING * beside if i >= 0 else 0
            for i, beside in zip(taken, _beside(row, before, place), strict=True)
        ]
        # a copy on its way has the role of its source
        home = [
            place.get(was, i) if i >= 0 and some[i] & Flag.INCOMING else i
            for i, was in zip(taken, before, strict=True)
        ]
        role[mine] = [
            int(roles[i]) if i >= 0 else known
            for i, known in zip(home, start.role[mine].tolist(), strict=True)
        ]
        led = seen[leader[p]] if 0 <= leader[p] < len(seen) else -1
        if led in row:
            leader[p] = row.index(led)
        else:  # the leader is being replaced, in the slot that it had
            leader[p] = before.index(led) if led in before else -1
    return Placement(
        start.first, read_only(node), read_only(role), read_only(flags), read_only(leader)
    )


def _beside(row: list[int], before: list[int], place: Mapping[int, int]) -> list[bool]:
    """Return the slots of which a new node is seen beside the one that it is to replace."""
    return [
        n not in before and was in place and was not in row
        for n, was in zip(row, before, strict=True)
    ]


def _each_once(wanted: list[int], before: list[int], place: Mapping[int, int]) -> list[int]:
    """Return the node of each slot, none twice: where it is to be, where it was, or -1."""
    row, free = [-1] * len(wanted), {*place}
    for nodes in (wanted, before):
        for slot, n in enumerate(nodes):
            if row[slot] < 0 and n in free:
                row[slot] = n
                free.remove(n)
    return row
