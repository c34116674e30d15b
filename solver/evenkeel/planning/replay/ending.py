"""Ending: whether the last state is settled, and is the target."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.rows import at_node
from evenkeel.model.placement import Placement
from evenkeel.planning.replay.certificate import End
from evenkeel.planning.replay.course import Course, Seat
from evenkeel.planning.replay.findings import Findings


def settle(
    found: Findings,
    course: Course,
    final: NDArray[np.int32],
    role: NDArray[np.uint8],
    live: NDArray[np.bool_],
) -> None:
    """Write down where replicas stand in the end, and as what; find what is left over."""
    end = course.final
    partition = course.partition[end]
    first = found.cluster.placement.first[partition]
    width = found.cluster.placement.first[partition + 1] - first
    served = np.zeros((int(width.max(initial=0)), len(end)), np.int64)
    for slot in range(len(served)):
        inside = np.flatnonzero(slot < width)
        final[first[inside] + slot] = -1
        role[first[inside] + slot] = course.role[slot, end[inside]]
    left = np.full(len(end), -1, np.int64)
    for c in range(len(course.node)):
        state, slot, node = course.state[c, end], course.slot[c, end], course.node[c, end]
        serves = np.flatnonzero(state == Seat.SERVING)
        served[slot[serves], serves] += 1
        final[first[serves] + slot[serves]] = node[serves]
        unsettled = (state != Seat.EMPTY) & (state != Seat.SERVING)
        # nobody has to clean up what a dead node has left
        unsettled &= (state != Seat.LEFT) | at_node(live, node)
        left = np.where(unsettled & (left < 0), node, left)
    twice = (served > 1).any(0)
    bad = np.flatnonzero(twice | (left >= 0))
    found.breach(
        "end", course.step[end[bad]], course.rank[end[bad]], partition=partition[bad],
        node=left[bad],
    )  # fmt: skip


def compare_ends(
    found: Findings,
    target: Placement | None,
    node: NDArray[np.int32],
    role: NDArray[np.uint8],
    leader: NDArray[np.int32],
) -> End:
    """Say how the last state, nodes and roles (K,) and leading nodes (P,), lies to the target."""
    if target is None:
        return "open"
    start = found.cluster.placement
    moved = node != target.node
    other = (role != target.role) & (node >= 0) & (target.node >= 0)
    wanted = target.leader_node
    led = leader != wanted
    if not (moved.any() or other.any() or led.any()):
        return "target"
    astray = np.flatnonzero((moved & (node != start.node)) | (other & (role != start.role)))
    if len(astray):
        owner = np.searchsorted(start.first, astray, side="right") - 1
        none = np.full(len(astray), -1)
        found.breach(
            "end", none, np.full(len(astray), found.timeline.end), partition=owner,
            node=node[astray],
        )  # fmt: skip
        return "other"
    return "prefix"
