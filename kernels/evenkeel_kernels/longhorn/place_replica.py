"""Choose the disk of a new replica as Longhorn's scheduler does.

The disk is in the first tier of hosts that has one with room, on the most balanced host there, and
is the most balanced disk of it.

References
----------
Longhorn, replica scheduler: node filter, tiers of anti-affinity, disk filter, balance score.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function
from evenkeel_kernels.longhorn.state import (
    BEST_EFFORT,
    EVICTING,
    FAILED,
    REUSABLE,
    Problem,
    State,
    leaves_free,
    levellest,
    pressured,
    stays_below,
    under_pressure,
)

# what asks for another replica
NOTHING, ZONE_LEAST, HOST_LEAST, HOST_BEST, ZONE_BEST, PRESSURE, REPLENISH = range(7)

# why a disk is no candidate, beyond being barred: too little would stay free, or too much be
# promised; another host is asked for; it would be under pressure; anti-affinity; a disk of an
# earlier tier; it holds a replica already; its usable space is less than the volume's size
MINIMAL, PROMISED, ELSEWHERE, STRAINED, APART, LATER, HOLDS, SMALL = range(20, 28)

# tiers: unused zone and host; free after evictions; unused host; host free after evictions; used
# host
UNUSED, FREED, UNUSED_HOST, FREED_HOST, USED_HOST, NO_TIER = 1, 2, 3, 4, 5, 9


@by_reference
class Room(NamedTuple):
    """Working space, and what the last decision looked at. W is the longest row."""

    # host_count, zone_count: (H,), (Z,) replicas that a decision counts
    host_count: NDArray[np.int32]
    zone_count: NDArray[np.int32]
    # host_all, zone_all: (H,), (Z,) replicas that are in the way of another one
    host_all: NDArray[np.int32]
    zone_all: NDArray[np.int32]
    # host_kept, zone_kept: (H,), (Z,) of these, those that are not being evicted
    host_kept: NDArray[np.int32]
    zone_kept: NDArray[np.int32]
    takes: NDArray[np.bool_]  # (H,) whether a host has a disk for the volume
    verdict: NDArray[np.uint8]  # (N,) why a disk is no candidate; 0 for candidates
    tier: NDArray[np.uint8]  # (N,) tier of each disk that has room
    candidate: NDArray[np.bool_]  # (N,) candidates of the tier
    usable: NDArray[np.int64]  # (N,) bytes that are neither used, reserved nor promised
    held: NDArray[np.bool_]  # (N,) disks that hold a replica of the volume
    itself: NDArray[np.int32]  # (N,) 0 to N - 1
    # host_total, host_spread: (H,) see ``levellest``
    host_total: NDArray[np.int64]
    host_spread: NDArray[np.int64]
    host_fit: NDArray[np.bool_]  # (H,) see ``levellest``
    # disk_total, disk_spread: (N,) the same for the disks of the chosen host
    disk_total: NDArray[np.int64]
    disk_spread: NDArray[np.int64]
    disk_fit: NDArray[np.bool_]  # (N,) the same
    listed: NDArray[np.bool_]  # (W,) replicas of the row from which one is to be deleted
    # before, after: (GAINS,) how the volume stands before and after a pass
    before: NDArray[np.int64]
    after: NDArray[np.int64]


@device_function
def hold(problem: Problem, state: State, v: int, replacing: bool, room: Room) -> None:
    """Count the replicas that are in the way of another one, by host and zone, and their disks."""
    # A failed replica that can be reused is, unless it is being replaced. O(H + Z + N).
    room.host_all[:] = 0
    room.zone_all[:] = 0
    room.host_kept[:] = 0
    room.zone_kept[:] = 0
    room.held[:] = False
    for s in range(state.first[v], state.first[v + 1]):
        d, marks = state.node[s], state.marks[s]
        if d < 0:
            continue
        if marks & FAILED and (replacing or not marks & REUSABLE):
            continue
        h = problem.host[d]
        z = problem.zone[h]
        room.held[d] = True
        room.host_all[h] += 1
        room.zone_all[z] += 1
        if not marks & EVICTING:
            room.host_kept[h] += 1
            room.zone_kept[z] += 1


@device_function
def acceptable(problem: Problem, state: State, v: int, d: int) -> bool:
    """Whether a disk may take a replica from one under pressure, and is under none itself then."""
    # that it must be under none itself afterwards is ours: without it two full disks pass a replica
    # to and fro for ever
    required = 0 if problem.fresh[v] else problem.actual[v]
    percent = problem.pressure
    if not stays_below(
        problem.maximum[d], state.scheduled[d], problem.reserved[d], required, percent
    ):
        return False
    left = state.available[d] - required
    return not under_pressure(problem.maximum[d], left, problem.reserved[d], percent)


@device_function
def relieved(problem: Problem, state: State, h: int) -> bool:
    """Whether any disk of a host is under pressure, so that it counts as unused."""
    for i in range(problem.first_disk[h], problem.first_disk[h + 1]):
        if pressured(problem, state, problem.disk[i]):
            return True
    return False


@device_function
def tier_of(problem: Problem, v: int, h: int, relief: bool, room: Room) -> int:
    """Return the tier of a host for a volume; NO_TIER where anti-affinity keeps it out."""
    z = problem.zone[h]
    if room.host_all[h] == 0 and room.zone_all[z] == 0:
        return UNUSED
    freed = room.host_kept[h] == 0
    if not problem.zone_soft[v]:
        evicted = problem.effort[v] == BEST_EFFORT and room.host_all[h] > 0
        return FREED if freed and (room.zone_kept[z] == 0 or evicted) else NO_TIER
    if room.host_all[h] == 0 or relief:
        return UNUSED_HOST
    if problem.host_soft[v]:
        return USED_HOST
    return FREED_HOST if freed else NO_TIER


@device_function
def place(
    problem: Problem, state: State, v: int, stage: int, target: int, room: Room
) -> tuple[int, int]:
    """Choose a disk for another replica of a volume; -1 for none, and the tier of the candidates.

    ``stage`` is what asks for it; ``target`` is the host that it must be on, -1 for any. Longhorn
    lets a used host with a disk under pressure count as unused; where least-effort asks, this would
    undo the pass, and there it does not count. O(N + H).
    """
    hold(problem, state, v, stage == REPLENISH, room)
    kind = problem.kind[v]
    relieves = (
        problem.effort[v] == BEST_EFFORT
        and problem.pressure > 0
        and (stage == PRESSURE or stage == REPLENISH)
    )
    required = 0 if problem.fresh[v] else problem.actual[v]
    best = NO_TIER
    bare = False
    for h in range(problem.zone.shape[0]):
        tier = NO_TIER
        known = False
        for i in range(problem.first_disk[h], problem.first_disk[h + 1]):
            d = problem.disk[i]
            room.tier[d] = NO_TIER
            room.candidate[d] = False
            verdict = problem.barred[kind, d]
            if verdict == 0:
                if target >= 0 and h != target:
                    verdict = ELSEWHERE
                elif not leaves_free(
                    problem.maximum[d], state.available[d], required, problem.minimal[d]
                ):
                    verdict = MINIMAL
                elif problem.size[v] + state.scheduled[d] > problem.promised[d]:
                    verdict = PROMISED
                elif stage == PRESSURE and not acceptable(problem, state, v, d):
                    verdict = STRAINED
                elif room.held[d] and not problem.disk_soft[v]:
                    verdict = HOLDS
                else:
                    if not known:
                        relief = relieves and relieved(problem, state, h)
                        tier = tier_of(problem, v, h, relief, room)
                        known = True
                    room.tier[d] = tier
                    if tier == NO_TIER:
                        verdict = APART
                    elif tier < best:
                        best = tier
                        bare = not room.held[d]
                    elif tier == best and not room.held[d]:
                        bare = True
            room.verdict[d] = verdict
    state.work[0] += problem.host.shape[0]
    if best == NO_TIER:
        return -1, 0
    for d in range(problem.host.shape[0]):
        if room.verdict[d] != 0:
            continue
        if room.tier[d] != best:
            room.verdict[d] = LATER
        elif bare and room.held[d]:
            room.verdict[d] = HOLDS
        else:
            room.candidate[d] = True
            spare = state.available[d] - problem.reserved[d] - state.scheduled[d]
            room.usable[d] = max(0, spare)
            if room.usable[d] < problem.size[v]:
                room.verdict[d] = SMALL
    return choose(problem, problem.size[v], room), best


@device_function
def choose(problem: Problem, size: int, room: Room) -> int:
    """Choose among the candidates the levellest host, then its levellest disk; -1 if none fits."""
    h = levellest(
        problem.host, problem.host_rank, room.candidate, room.usable, size,
        room.host_total, room.host_fit, room.host_spread,
    )  # fmt: skip
    if h < 0:
        return -1
    for d in range(problem.host.shape[0]):
        room.candidate[d] = room.candidate[d] and problem.host[d] == h
    return levellest(
        room.itself, problem.disk_rank, room.candidate, room.usable, size,
        room.disk_total, room.disk_fit, room.disk_spread,
    )  # fmt: skip
