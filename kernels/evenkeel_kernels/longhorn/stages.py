"""How many replicas of a volume Longhorn wants to move, and what for.

References
----------
Longhorn, enhancement "Automatic Replica Rebalance" (2021), Implementation Overview; enhancement on
disk pressure.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function
from evenkeel_kernels.longhorn.place_replica import (
    HOST_BEST,
    HOST_LEAST,
    NOTHING,
    PRESSURE,
    ZONE_BEST,
    ZONE_LEAST,
    Room,
    acceptable,
    hold,
)
from evenkeel_kernels.longhorn.state import (
    ACTIVE,
    BEST_EFFORT,
    DISABLED,
    EVICTING,
    FAILED,
    GAINS,
    HEALTHY,
    OLD,
    Problem,
    State,
    fits,
    pressured,
)


@device_function
def counted(problem: Problem, state: State, v: int, must: int, must_not: int, room: Room) -> int:
    """Count the replicas of a volume that bear all marks of ``must`` and none of ``must_not``.

    Fills ``host_count`` and ``zone_count`` of the room. O(H + Z).
    """
    room.host_count[:] = 0
    room.zone_count[:] = 0
    found = 0
    for s in range(state.first[v], state.first[v + 1]):
        marks = state.marks[s]
        if state.node[s] >= 0 and marks & must == must and not marks & must_not:
            h = problem.host[state.node[s]]
            room.host_count[h] += 1
            room.zone_count[problem.zone[h]] += 1
            found += 1
    return found


@device_function
def is_healthy(problem: Problem, state: State, v: int) -> bool:
    """Whether a volume is healthy: it may be, and has as many healthy replicas as are wanted."""
    found = 0
    for s in range(state.first[v], state.first[v + 1]):
        whole = HEALTHY | ACTIVE
        found += state.node[s] >= 0 and state.marks[s] & whole == whole
    return bool(problem.whole[v] and found >= problem.wanted[v])


@device_function
def extremes(count: NDArray[np.int32]) -> tuple[int, int, int]:
    """Return how many of ``count`` (n,) int32 are above 0, and the least and most of those."""
    owners, least, most = 0, 0, 0
    for i in range(count.shape[0]):
        if count[i] > 0:
            least = count[i] if owners == 0 else min(least, count[i])
            most = max(most, count[i])
            owners += 1
    return owners, least, most


@device_function
def find_takers(problem: Problem, state: State, v: int, room: Room) -> None:
    """Find the hosts with a disk on which another replica of a volume fits, used or not. O(N)."""
    hold(problem, state, v, False, room)
    kind = problem.kind[v]
    for h in range(problem.zone.shape[0]):
        room.takes[h] = False
        for i in range(problem.first_disk[h], problem.first_disk[h + 1]):
            d = problem.disk[i]
            if problem.barred[kind, d] == 0 and not (room.held[d] and not problem.disk_soft[v]):
                if fits(problem, state, v, d):
                    room.takes[h] = True
                    break
    state.work[0] += problem.host.shape[0]


@device_function
def stage_of(problem: Problem, state: State, v: int, room: Room) -> tuple[int, int, int]:
    """Return what asks for another replica of a volume, how many it asks for, and on which host.

    For a healthy volume with exactly the replicas that are wanted, whose usable ones are counted in
    the room. A host of -1 is any. O(H + Z), and O(N) where hosts or zones are to be gained.
    """
    if problem.effort[v] == DISABLED or not problem.rebuilds:
        return NOTHING, 0, -1
    wanted = problem.wanted[v]
    zones, fewest_in_zone, most_in_zone = extremes(room.zone_count)
    hosts, fewest, most = extremes(room.host_count)
    uneven = problem.effort[v] == BEST_EFFORT and (
        most - fewest > 1 or most_in_zone - fewest_in_zone > 1
    )
    if zones < wanted or hosts < wanted or uneven:
        find_takers(problem, state, v, room)
    if zones < wanted:
        unused = unused_zones(problem, room)
        if unused > 0:
            return ZONE_LEAST, min(unused, wanted - zones), -1
    if hosts < wanted:
        unused = 0
        for h in range(room.host_count.shape[0]):
            unused += room.host_count[h] == 0 and room.takes[h]
        if unused > 0:
            return HOST_LEAST, min(unused, wanted - hosts), -1
    if problem.effort[v] != BEST_EFFORT:
        return NOTHING, 0, -1
    if uneven:
        for turn in range(2):
            if (turn == 0) == problem.zones_first:
                h = level_zones(problem, fewest_in_zone, most_in_zone, room)
                if h >= 0:
                    return ZONE_BEST, most_in_zone - fewest_in_zone - 1, h
            else:
                h = level_hosts(problem, fewest, most, room)
                if h >= 0:
                    return HOST_BEST, most - fewest - 1, h
    asked, h = relief(problem, state, v)
    return PRESSURE if asked > 0 else NOTHING, asked, h


@device_function
def unused_zones(problem: Problem, room: Room) -> int:
    """Count the zones without a replica in which a host has a disk for one; marks them by -1."""
    found = 0
    for h in range(room.takes.shape[0]):
        z = problem.zone[h]
        if room.takes[h] and room.zone_count[z] == 0:
            room.zone_count[z] = -1
            found += 1
    for z in range(room.zone_count.shape[0]):
        room.zone_count[z] = max(room.zone_count[z], 0)
    return found


@device_function
def level_hosts(problem: Problem, fewest: int, most: int, room: Room) -> int:
    """Return a host that holds the fewest and takes one more, if others hold two more; else -1."""
    best = -1
    if most - fewest < 2:
        return best
    for h in range(room.host_count.shape[0]):
        if room.host_count[h] == fewest and room.takes[h]:
            if best < 0 or problem.host_rank[h] < problem.host_rank[best]:
                best = h
    return best


@device_function
def level_zones(problem: Problem, fewest: int, most: int, room: Room) -> int:
    """Return the host with fewest replicas in a least zone, if others hold two more; else -1.

    It must then hold no more than the most loaded host of a fullest zone: without this, which is
    ours, the stages for zones and for hosts undo each other for ever.
    """
    best, highest = -1, 0
    if most - fewest < 2:
        return best
    for h in range(room.host_count.shape[0]):
        in_zone, held = room.zone_count[problem.zone[h]], room.host_count[h]
        if in_zone == most:
            highest = max(highest, held)
        if in_zone != fewest or not room.takes[h]:
            continue
        if best < 0 or held < room.host_count[best]:
            best = h
        elif held == room.host_count[best] and problem.host_rank[h] < problem.host_rank[best]:
            best = h
    return best if best >= 0 and room.host_count[best] + 1 <= highest else -1


@device_function
def may_be_relieved(problem: Problem, state: State, v: int, s: int) -> bool:
    """Whether the replica of a slot leaves a disk under pressure for another one of its host.

    It must be the first by name on its disk of all replicas of healthy volumes.
    """
    d = state.node[s]
    if not pressured(problem, state, d):
        return False
    at = state.head[d]
    while at >= 0 and (state.marks[at] & FAILED or not is_healthy(problem, state, state.owner[at])):
        at = state.after[at]
    if at != s:
        return False
    h = problem.host[d]
    for i in range(problem.first_disk[h], problem.first_disk[h + 1]):
        other = problem.disk[i]
        if other == d or problem.barred[problem.kind[v], other] != 0:
            continue
        if not problem.disk_soft[v] and holds(state, v, other):
            continue
        if fits(problem, state, v, other) and acceptable(problem, state, v, other):
            return True
    return False


@device_function
def holds(state: State, v: int, d: int) -> bool:
    """Whether a disk holds a replica of a volume."""
    for s in range(state.first[v], state.first[v + 1]):
        if state.node[s] == d and not state.marks[s] & FAILED:
            return True
    return False


@device_function
def relief(problem: Problem, state: State, v: int) -> tuple[int, int]:
    """Count the replicas that should leave a disk under pressure; and the host of the first."""
    asked, best = 0, -1
    if problem.pressure == 0:
        return 0, -1
    for s in range(state.first[v], state.first[v + 1]):
        bad = FAILED | EVICTING
        if state.node[s] < 0 or state.marks[s] & bad or not state.marks[s] & ACTIVE:
            continue
        if may_be_relieved(problem, state, v, s):
            asked += 1
            if best < 0 or state.rank[s] < state.rank[best]:
                best = s
    return asked, problem.host[state.node[best]] if best >= 0 else -1


@device_function
def gains(problem: Problem, state: State, v: int, room: Room, standing: NDArray[np.int64]) -> None:
    """Say in ``standing`` (GAINS,) int64 how a volume stands; what comes first matters most.

    None on hosts that are down, none that are old on the unstable host, many zones, many hosts, few
    together on a host, in a zone, and on disks under pressure: more is better.
    """
    counted(problem, state, v, ACTIVE, FAILED | EVICTING, room)
    standing[:] = 0
    for s in range(state.first[v], state.first[v + 1]):
        d, marks = state.node[s], state.marks[s]
        if d >= 0 and marks & ACTIVE and not marks & (FAILED | EVICTING):
            standing[0] -= not problem.ready[problem.host[d]]
            standing[1] -= marks & OLD != 0
            standing[6] -= pressured(problem, state, d)
    for z in range(room.zone_count.shape[0]):
        standing[2] += room.zone_count[z] > 0
        standing[5] -= room.zone_count[z] * room.zone_count[z]
    for h in range(room.host_count.shape[0]):
        standing[3] += room.host_count[h] > 0
        standing[4] -= room.host_count[h] * room.host_count[h]


@device_function
def better(after: NDArray[np.int64], before: NDArray[np.int64]) -> bool:
    """Whether ``after`` (GAINS,) int64 is better than ``before`` (GAINS,) int64."""
    for i in range(GAINS):
        if after[i] != before[i]:
            return bool(after[i] > before[i])
    return False
