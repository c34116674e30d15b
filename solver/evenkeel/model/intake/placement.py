"""Read replicas: their nodes and roles, and the wanted numbers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.intake.arguments import Given, Sizes
from evenkeel.model.names import Names
from evenkeel.model.partitions import Partitions
from evenkeel.model.placement import Flag, Placement, Role
from evenkeel.model.reading.arrays import (
    AXES,
    as_array,
    check_range,
    column,
    list_entries,
    node_or_none,
    read_only,
    shape_of,
)
from evenkeel.model.reading.quantities import is_missing, is_whole

EVERY_FLAG = int(sum(Flag))


class Rows(NamedTuple):
    """Replicas as given: the node of each, and the start of each partition's row."""

    node: NDArray[np.int32]
    first: NDArray[np.int64]


# of each partition the replicas and the voters wanted; None before they were read
Wanted = tuple[NDArray[np.int32] | None, NDArray[np.int32] | None]


def read_placement(
    faults: FaultList, given: Given, sizes: Sizes, names: Names, base: Partitions | None
) -> tuple[Placement, Wanted]:
    """Read a placement and wanted numbers; rows are widened to hold the wanted replicas."""
    wants = base is not None or any(given.get(one) is not None for one in ("placement", "replicas"))
    if sizes.partitions and not wants:
        faults.add("replicas", None, "must be given where there is no placement, such as 3")
    given = _taken_apart(faults, given, sizes.partitions)
    rows = _rows(faults, given, sizes.partitions, names)
    known = not faults.about("placement", "first")
    check_range(
        faults, "placement", rows.node, -1, sizes.nodes, node_or_none(sizes.nodes),
        rows.first if given.get("first") is None else None,
    )  # fmt: skip
    replicas, voters = given.get("replicas"), given.get("voters")
    if base is not None:
        replicas = given.get("replicas", base.replicas)
    width = np.diff(rows.first).astype(np.int32)
    wanted = column(faults, sizes.partitions, "replicas", replicas, np.int32, width)
    if base is not None and "voters" not in given:
        # where all replicas voted, they all vote whatever their number
        all_vote = base.replicas == base.voters
        voters = None if all_vote.all() else np.where(all_vote, wanted, base.voters)
    check_range(faults, "replicas", wanted, 0, 2**15, "must be 0 to 32767")
    counted = not faults.about("replicas") and (known or replicas is not None)

    length = len(rows.node) if known else None
    roles = _per_replica(faults, "role", given.get("role"), np.uint8, length)
    starts = {
        name: rows.first if known and len(shape_of(given.get(name))) == 2 else None
        for name in ("role", "flags")
    }
    check_range(faults, "role", roles, 0, len(Role), "must be a Role", starts["role"])
    marks = _per_replica(faults, "flags", given.get("flags"), np.uint16, length)
    disk = given.get("disk")
    if disk is not None:
        disk = _per_replica(faults, "disk", disk, np.int32, length)
    check_flags(faults, marks, starts["flags"])
    slots = np.maximum(width, wanted)
    leads = _leaders(faults, given.get("leader"), slots, known and counted)
    voting = column(faults, sizes.partitions, "voters", voters, np.int32, wanted)
    if voters is not None and counted:
        list_entries(
            faults, "voters", voting, (voting < 0) | (voting > wanted),
            "must be between 0 and the replicas wanted",
        )  # fmt: skip
    elif given.get("role") is not None and known:
        stated = _voters(roles, rows.first)
        voting = np.where(stated == width, wanted, np.minimum(wanted, stated))
    if faults:
        return _nothing(sizes.partitions), (wanted, voting)
    placement = _widened(Placement(rows.first, rows.node, roles, marks, leads, disk), width, slots)
    if voters is not None and given.get("role") is None:
        slot = np.arange(len(placement.node)) - np.repeat(placement.first[:-1], slots)
        votes = slot < np.repeat(voting, slots)
        roles = np.where(votes, Role.VOTER, Role.NON_VOTER).astype(np.uint8)
        placement = replace(placement, role=read_only(roles))
    return placement, (wanted, voting)


def check_placement(faults: FaultList, placement: Placement, partitions: int, nodes: int) -> None:
    """Note values that no placement of so many partitions on so many nodes can have."""
    first = placement.first
    if len(placement) != partitions:
        faults.add("placement", len(placement), f"needs a row for each of {partitions} partitions")
    elif first[0] != 0 or first[-1] != len(placement.node) or (np.diff(first) < 0).any():
        faults.add("first", first.tolist()[:8], f"must rise from 0 to {len(placement.node)}")
    else:
        _leaders(faults, placement.leader, np.diff(first), True)
    check_range(faults, "placement", placement.node, -1, nodes, node_or_none(nodes))
    check_range(faults, "role", placement.role, 0, len(Role), "must be a Role")
    check_flags(faults, placement.flags)


def check_flags(
    faults: FaultList, flags: NDArray[np.uint16], rows: NDArray[np.int64] | None = None
) -> None:
    """Note bits that are no ``Flag``, by row and slot where ``rows`` start."""
    unknown = flags & np.uint16(~EVERY_FLAG & 0xFFFF) != 0
    list_entries(faults, "flags", flags, unknown, "has bits that are not a Flag", rows)


def _leaders(
    faults: FaultList, given: Any, slots: NDArray[np.integer[Any]], judged: bool
) -> NDArray[np.int16]:
    """Read the slots that lead; by default the first ones."""
    foremost = np.where(slots > 0, 0, -1).astype(np.int16)
    leads = column(faults, len(slots), "leader", given, np.int16, foremost)
    if given is not None and judged:
        beyond = (leads < -1) | (leads >= slots)
        list_entries(faults, "leader", leads, beyond, "must be a slot of its partition or -1")
    return leads


def _taken_apart(faults: FaultList, given: Given, partitions: int) -> Given:
    """Return a whole placement as the arrays it is made of; others may stand beside it."""
    whole = given.get("placement")
    if not isinstance(whole, Placement):
        return given
    if given.get("first") is not None:
        message = "goes with a flat list of nodes; a Placement has its own"
        faults.add("first", shape_of(given["first"]), message)
    if len(whole) != partitions:
        faults.add("placement", len(whole), f"needs a row for each of {partitions} partitions")
        return {**given, "placement": None, "leader": None}
    parts = {
        "role": whole.role, "flags": whole.flags, "leader": whole.leader, "disk": whole.disk,
    }  # fmt: skip
    stated = {name: value for name, value in given.items() if value is not None}
    return parts | stated | {"placement": whole.node, "first": whole.first}


def _widened(placement: Placement, width: NDArray[np.int32], slots: NDArray[np.int32]) -> Placement:
    """Return a placement with empty slots after the rows that want more replicas."""
    first, node, role, flags = placement.first, placement.node, placement.role, placement.flags
    disk = placement.disk
    if (slots > width).any():
        kept = np.arange(len(node)) - np.repeat(first[:-1], width)
        first = np.concatenate([[0], np.cumsum(slots)]).astype(np.int64)
        at = np.repeat(first[:-1], width) + kept
        node, role, flags = (
            _spread_out(values, at, int(first[-1]), empty)
            for values, empty in ((node, -1), (role, 0), (flags, 0))
        )
        disk = None if disk is None else _spread_out(disk, at, int(first[-1]), -1)
    widened = Placement(*(read_only(a) for a in (first, node, role, flags, placement.leader)))
    return widened if disk is None else replace(widened, disk=read_only(disk))


def _rows(faults: FaultList, given: Given, partitions: int, names: Names) -> Rows:
    """Return nodes per replica and where rows start, from a table, rows, a flat list or nothing."""
    placement, first = given.get("placement"), given.get("first")
    nothing = Rows(np.zeros(0, np.int32), np.zeros(partitions + 1, np.int64))
    if placement is None:
        return nothing
    if first is None:
        if len(shape_of(placement)) != 2 or _has_names(placement):
            return _rows_by_name(faults, placement, partitions, names) or nothing
        filled = _without_nan(placement)
        table = as_array(faults, "placement", filled, np.int32, (partitions, None))
        return Rows(table.reshape(-1), np.arange(partitions + 1, dtype=np.int64) * table.shape[1])
    if len(shape_of(placement)) == 1 and _has_names(placement):
        placement = _numbers(faults, "placement", placement, names)
    node = as_array(faults, "placement", placement, np.int32, (None,))
    start = as_array(faults, "first", first, np.int64, (partitions + 1,))
    if faults.about("placement", "first"):
        return nothing
    if start[0] != 0 or start[-1] != len(node) or (np.diff(start) < 0).any():
        faults.add("first", start.tolist()[:8], f"must rise from 0 to {len(node)}")
        return nothing
    return Rows(node, start)


def _has_names(placement: Any) -> bool:
    """Return whether nodes are given by name, or some of them are missing."""
    try:
        return np.asarray(placement).dtype.kind in "UO"
    except (ValueError, TypeError, OverflowError):  # reported where it is read as numbers
        return False


def _without_nan(placement: Any) -> Any:
    """Return nodes with -1 where pandas, which then has floats, has none."""
    try:
        given = np.asarray(placement)
    except (ValueError, TypeError, OverflowError):  # reported where it is read
        return placement
    return np.where(np.isnan(given), -1.0, given) if given.dtype.kind == "f" else placement


def _rows_by_name(faults: FaultList, placement: Any, partitions: int, names: Names) -> Rows | None:
    """Return rows of any length, in which nodes are given by name or by number."""
    if not isinstance(placement, np.ndarray | Sequence) and len(shape_of(placement)) == 2:
        placement = np.asarray(placement)  # a frame
    lone = isinstance(placement, str) or shape_of(placement) == ()
    if lone or not isinstance(placement, np.ndarray | Sequence):
        as_array(faults, "placement", placement, np.int32, (partitions, None))
        return None
    rows = list(placement)
    bare = any(isinstance(row, str) or shape_of(row) == () for row in rows)
    if len(rows) != partitions or bare:
        needed = f"needs shape ({partitions}, any): {AXES['placement']}"
        faults.add("placement", shape_of(placement), needed)
        return None
    node = [
        one for p, row in enumerate(rows) for one in _numbers(faults, f"placement[{p}]", row, names)
    ]
    first = np.zeros(partitions + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=first[1:])
    return Rows(as_array(faults, "placement", node, np.int32, (None,)), first)


def _numbers(faults: FaultList, path: str, row: Any, names: Names) -> list[int]:
    """Return nodes as numbers: a text is a name, a number is a number, None is no node."""
    found = []
    for slot, one in enumerate(row):
        number = -1
        if isinstance(one, str):
            if one in names:
                number = names.index(one)
            elif one:
                faults.add(f"{path}[{slot}]", one, "is not the name of a node")
        elif is_whole(one):
            number = int(one)
        elif one is not None and not is_missing(one):
            faults.add(f"{path}[{slot}]", one, "must be a node, by name or number, or None")
        found.append(number)
    return found


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
