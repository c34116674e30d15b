"""Replicas in: where they are, in which roles, and how many are wanted."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.arrays import as_array, check_range, column, frozen, list_entries, shape_of
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Flag, Placement, Role

EVERY_FLAG = int(sum(Flag))


def read_placement(
    faults: FaultList,
    placement: ArrayLike | None,
    first: ArrayLike | None,
    leader: ArrayLike | None,
    role: ArrayLike | None,
    flags: ArrayLike | None,
    replicas: ArrayLike | None,
    voters: ArrayLike | None,
    partitions: int,
    nodes: int,
) -> tuple[Placement, NDArray[np.int32], NDArray[np.int32]]:
    """Read a placement and what is wanted; rows are widened to hold what is wanted.

    Parameters
    ----------
    faults : FaultList
        Where faults are noted.
    placement, first, leader, role, flags, replicas, voters : array_like or None
        As ``evenkeel.model.intake.from_arrays`` takes them.
    partitions, nodes : int
        P and N.

    Returns
    -------
    tuple of (Placement, ndarray of int32, ndarray of int32)
        The replicas, none after a fault; and per partition the replicas and the voters wanted.
    """
    node, start = _rows(faults, placement, first, partitions)
    known = not faults.about("placement", "first")
    check_range(faults, "placement", node, -1, nodes, "must be a node or -1")
    width = np.diff(start).astype(np.int32)
    wanted = column(faults, partitions, "replicas", replicas, np.int32, width)
    check_range(faults, "replicas", wanted, 0, 2**15, "must be 0 to 32767")
    slots = np.maximum(width, wanted)
    counted = not faults.about("replicas") and (known or replicas is not None)

    length = len(node) if known else None
    roles = _per_replica(faults, "role", role, np.uint8, length)
    check_range(faults, "role", roles, 0, len(Role), "must be a Role")
    marks = _per_replica(faults, "flags", flags, np.uint16, length)
    if flags is not None:
        unknown = marks & np.uint16(~EVERY_FLAG & 0xFFFF) != 0
        list_entries(faults, "flags", marks, unknown, "has bits that are no Flag")
    foremost = np.where(slots > 0, 0, -1).astype(np.int16)
    leads = column(faults, partitions, "leader", leader, np.int16, foremost)
    if leader is not None and known and counted:
        beyond = (leads < -1) | (leads >= slots)
        list_entries(faults, "leader", leads, beyond, "must be a slot of its partition or -1")
    voting = column(faults, partitions, "voters", voters, np.int32, wanted)
    if voters is not None and counted:
        list_entries(
            faults, "voters", voting, (voting < 0) | (voting > wanted),
            "must be between 0 and the replicas wanted",
        )  # fmt: skip
    elif role is not None and known:
        voting = np.minimum(wanted, _voters(roles, start))
    if faults:
        return _nothing(partitions), wanted, voting

    if (wanted > width).any():
        kept = np.arange(len(node)) - np.repeat(start[:-1], width)
        start = np.concatenate([[0], np.cumsum(slots)]).astype(np.int64)
        at = np.repeat(start[:-1], width) + kept
        node, roles, marks = (
            _spread_out(values, at, int(start[-1]), empty)
            for values, empty in ((node, -1), (roles, 0), (marks, 0))
        )
    if voters is not None and role is None:
        slot = np.arange(len(node)) - np.repeat(start[:-1], slots)
        roles = np.where(slot < np.repeat(voting, slots), Role.VOTER, Role.NON_VOTER)
        roles = roles.astype(np.uint8)
    rows = Placement(*(frozen(a) for a in (start, node, roles, marks, leads)))
    return rows, wanted, voting


def _rows(
    faults: FaultList, placement: ArrayLike | None, first: ArrayLike | None, partitions: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return nodes per replica and where rows start, from a table, a flat list or nothing."""
    nothing = np.zeros(0, np.int32), np.zeros(partitions + 1, np.int64)
    if placement is None:
        return nothing
    if first is None:
        table = as_array(faults, "placement", placement, np.int32, (partitions, None))
        return table.reshape(-1), np.arange(partitions + 1, dtype=np.int64) * table.shape[1]
    node = as_array(faults, "placement", placement, np.int32, (None,))
    start = as_array(faults, "first", first, np.int64, (partitions + 1,))
    if faults.about("placement", "first"):
        return nothing
    if start[0] != 0 or start[-1] != len(node) or (np.diff(start) < 0).any():
        faults.add("first", start.tolist()[:8], f"must rise from 0 to {len(node)}")
        return nothing
    return node, start


def _per_replica(
    faults: FaultList,
    path: str,
    given: ArrayLike | None,
    dtype: type[np.generic],
    length: int | None,
) -> NDArray[Any]:
    """Read one value per replica, in the shape of the placement; zeros by default."""
    if given is None:
        return np.zeros(length or 0, dtype)
    flat = np.ravel(given) if len(shape_of(given)) > 1 else given
    return as_array(faults, path, flat, dtype, (length,))


def _voters(roles: NDArray[np.uint8], start: NDArray[np.int64]) -> NDArray[np.int32]:
    """Count the replicas of each row that vote."""
    so_far = np.concatenate([[0], np.cumsum(roles == Role.VOTER)])
    return np.diff(so_far[start]).astype(np.int32)


def _nothing(partitions: int) -> Placement:
    """Return a placement without replicas."""
    return Placement(
        np.zeros(partitions + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint8),
        np.zeros(0, np.uint16), np.full(partitions, -1, np.int16),
    )  # fmt: skip


def _spread_out(
    values: NDArray[Any], at: NDArray[np.int64], length: int, empty: int
) -> NDArray[Any]:
    wide = np.full(length, empty, values.dtype)
    wide[at] = values
    return wide
