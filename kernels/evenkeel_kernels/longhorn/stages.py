"""Decide how many replicas of a volume Longhorn moves, why, and which it deletes.

References
----------
Longhorn, enhancement "Automatic Replica Rebalance" (2021), Implementation Overview; enhancement on
disk pressure; volume controller: clean-up of extra healthy replicas, preferred candidates for
deletion.
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
    SOURCE,
    Problem,
    State,
    fits,
    pressured,
    put_back,
    take_out,
)


@device_function
def counted(problem: Problem, state: State, v: int, must: int, must_not: int, room: Room) -> int:
    """Count the replicas of a volume that bear all marks of ``must`` and none of ``must_not``."""
    # Fills ``host_count`` and ``zone_count`` of the room. O(H + Z).
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
    """Return what asks for another replica of a volume, how many it asks for, and on which host."""
    # For a healthy volume with exactly the replicas that are wanted, whose usable ones are counted
    # in the room. A host of -1 is any. O(H + Z), and O(N) where hosts or zones are to be gained.
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
    """Return the host with fewest replicas in a least zone, if others hold two more; else -1."""
    # it must then hold no more than the most loaded host of a fullest zone: without this, which is
    # ours, the stages for zones and for hosts undo each other for ever
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
    """Whether the replica of a slot leaves a disk under pressure for another one of its host."""
    # it must be the first by name on its disk of all replicas of healthy volumes
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
    """Say in ``standing`` (GAINS,) int64 how a volume stands; what comes first matters most."""
    # none on hosts that are down, none that are old on the unstable host, many zones, many hosts,
    # few together on a host, in a zone, and on disks under pressure: more is better
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


EVICTED, NOT_LOCAL, DOWN, UNSTABLE, OFF_UNSTABLE, FULL_HOST, FULL_ZONE, RELIEVED = range(11, 19)
# what a replica is deleted for: eviction; data locality; its host is down, or unstable, or holds
# more than the unstable one; its host or zone is the fullest; its disk is under pressure; it shares
# a disk, host or zone with most others; nothing of that
SAME_DISK, SAME_HOST, SAME_ZONE, ANY = range(19, 23)


@device_function
def leaving(problem: Problem, state: State, v: int, room: Room) -> tuple[int, int, int]:
    """Choose the replica to delete: its slot, -1 for none, the step that chose, and of how many."""
    # For a volume with more healthy replicas than are wanted. Fills ``listed`` of the room.
    # O(W^2 + H + Z).
    among = list_marked(state, v, EVICTING, room)
    if among > 0:
        return first_by_name(state, v, room), EVICTED, among
    if counted(problem, state, v, HEALTHY | ACTIVE, EVICTING, room) <= problem.wanted[v]:
        return -1, 0, 0
    if problem.local[v] >= 0 and counted_on(problem, state, v, problem.local[v]) > 0:
        step = list_preferred(problem, state, v, room)
        among = 0
        for i in range(state.first[v + 1] - state.first[v]):
            d = state.node[state.first[v] + i]
            if room.listed[i] and problem.host[d] == problem.local[v]:
                room.listed[i] = False
            among += room.listed[i]
        if among > 0:
            return first_by_name(state, v, room), NOT_LOCAL, among
    if problem.effort[v] == DISABLED:
        return -1, 0, 0
    among, step = list_for_balance(problem, state, v, room)
    if among == 0:
        step = list_preferred(problem, state, v, room)
        among = 0
        for i in range(state.first[v + 1] - state.first[v]):
            among += room.listed[i]
    best = fullest_disk(state, v, room)
    if among == 1 and starts_anew(problem, state, v, best, room):
        return -1, step, among
    return best, step, among


@device_function
def serves(state: State, s: int) -> bool:
    """Whether a slot holds a healthy replica of the engine in use."""
    whole = HEALTHY | ACTIVE
    return bool(state.node[s] >= 0 and state.marks[s] & whole == whole)


@device_function
def list_marked(state: State, v: int, mark: int, room: Room) -> int:
    """List the healthy replicas with a mark that may go; returns how many."""
    first, found = state.first[v], 0
    for s in range(first, state.first[v + 1]):
        room.listed[s - first] = False
        if serves(state, s) and state.marks[s] & mark and not state.marks[s] & SOURCE:
            room.listed[s - first] = True
            found += 1
    return found


@device_function
def list_host(problem: Problem, state: State, v: int, h: int, room: Room) -> int:
    """List the healthy replicas on a host that may go; returns how many."""
    first, found = state.first[v], 0
    for s in range(first, state.first[v + 1]):
        room.listed[s - first] = False
        if serves(state, s) and problem.host[state.node[s]] == h and not state.marks[s] & SOURCE:
            room.listed[s - first] = True
            found += 1
    return found


@device_function
def counted_on(problem: Problem, state: State, v: int, h: int) -> int:
    """Count the healthy replicas on a host."""
    found = 0
    for s in range(state.first[v], state.first[v + 1]):
        found += serves(state, s) and problem.host[state.node[s]] == h
    return found


@device_function
def first_by_name(state: State, v: int, room: Room) -> int:
    """Return the slot of the listed replica with the lowest name; -1 for none."""
    best = -1
    for s in range(state.first[v], state.first[v + 1]):
        if room.listed[s - state.first[v]]:
            if best < 0 or state.rank[s] < state.rank[best]:
                best = s
    return best


@device_function
def fullest_disk(state: State, v: int, room: Room) -> int:
    """Return the slot of the listed replica with least free space on its disk, then by name."""
    best = -1
    for s in range(state.first[v], state.first[v + 1]):
        if not room.listed[s - state.first[v]]:
            continue
        if best < 0:
            best = s
            continue
        free, least = state.available[state.node[s]], state.available[state.node[best]]
        if free < least or (free == least and state.rank[s] < state.rank[best]):
            best = s
    return best


@device_function
def list_preferred(problem: Problem, state: State, v: int, room: Room) -> int:
    """List those that share a disk with most others, else a host, else a zone, else all."""
    # Of groups of equal size all are listed. A group counts those that may not go, too.
    first, last = state.first[v], state.first[v + 1]
    for step in (SAME_DISK, SAME_HOST, SAME_ZONE):
        largest = 1
        for s in range(first, last):
            room.listed[s - first] = False
            if not serves(state, s) or state.marks[s] & SOURCE:
                continue
            size = 0
            for t in range(first, last):
                size += serves(state, t) and shares(problem, state, step, s, t)
            if size > largest:
                largest = size
                for i in range(s - first):
                    room.listed[i] = False
            room.listed[s - first] = size > 1 and size == largest
        if largest > 1:
            return step
    for s in range(first, last):
        room.listed[s - first] = serves(state, s) and not state.marks[s] & SOURCE
    return ANY


@device_function
def shares(problem: Problem, state: State, step: int, s: int, t: int) -> bool:
    """Whether two replicas share a disk, host or zone."""
    one, other = state.node[s], state.node[t]
    if step == SAME_DISK:
        return bool(one == other)
    one, other = problem.host[one], problem.host[other]
    if step == SAME_HOST:
        return bool(one == other)
    return bool(problem.zone[one] == problem.zone[other])


@device_function
def list_for_balance(problem: Problem, state: State, v: int, room: Room) -> tuple[int, int]:
    """List what auto-balance itself wants to see go; returns how many, and the step."""
    first, last = state.first[v], state.first[v + 1]
    among = 0
    for s in range(first, last):
        down = serves(state, s) and not problem.ready[problem.host[state.node[s]]]
        room.listed[s - first] = down and not state.marks[s] & SOURCE
        among += room.listed[s - first]
    if among > 0:
        return among, DOWN
    counted(problem, state, v, HEALTHY | ACTIVE, 0, room)
    if problem.unstable >= 0 and room.host_count[problem.unstable] > 0:
        h = fullest_host(problem, room)
        if room.host_count[h] > room.host_count[problem.unstable]:
            among = list_host(problem, state, v, h, room)
            step = OFF_UNSTABLE
        else:
            among = list_marked(state, v, OLD, room)
            step = UNSTABLE
        if among > 0:
            return among, step
    if problem.effort[v] != BEST_EFFORT:
        return 0, 0
    return list_fullest(problem, state, v, room)


@device_function
def fullest_host(problem: Problem, room: Room) -> int:
    """Return the host with most replicas; of equals one in the fullest zone, then by name."""
    best = 0
    for h in range(1, room.host_count.shape[0]):
        more = room.host_count[h] - room.host_count[best]
        if more == 0:
            more = room.zone_count[problem.zone[h]] - room.zone_count[problem.zone[best]]
        if more > 0 or (more == 0 and problem.host_rank[h] < problem.host_rank[best]):
            best = h
    return best


@device_function
def list_fullest(problem: Problem, state: State, v: int, room: Room) -> tuple[int, int]:
    """List the replicas of the fullest host, else zone; and those that disk pressure would move."""
    first, last = state.first[v], state.first[v + 1]
    for i in range(last - first):
        room.listed[i] = False
    among, step = 0, RELIEVED
    hosts, fewest, most = extremes(room.host_count)
    difference = most - fewest
    if hosts > 1 and difference > 0:
        step = FULL_HOST
        among = list_host(problem, state, v, fullest_host(problem, room), room)
    else:
        zones, fewest, most = extremes(room.zone_count)
        difference = most - fewest
        if zones > 1 and difference > 0:
            step = FULL_ZONE
            best = 0
            while room.zone_count[best] < most:
                best += 1
            for s in range(first, last):
                inside = serves(state, s) and problem.zone[problem.host[state.node[s]]] == best
                room.listed[s - first] = inside and not state.marks[s] & SOURCE
                among += room.listed[s - first]
    if difference < 2 and problem.pressure > 0:
        for s in range(first, last):
            if room.listed[s - first] or not serves(state, s) or state.marks[s] & SOURCE:
                continue
            if may_be_relieved(problem, state, v, s):
                room.listed[s - first] = True
                among += 1
    return among, step


@device_function
def starts_anew(problem: Problem, state: State, v: int, s: int, room: Room) -> bool:
    """Whether the volume would be balanced again at once if the replica of a slot went."""
    d = take_out(problem, state, s)
    usable = counted(problem, state, v, ACTIVE, FAILED | EVICTING, room)
    asked = 0
    if usable == problem.wanted[v] and problem.whole[v]:
        _, asked, _ = stage_of(problem, state, v, room)
    put_back(problem, state, s, d)
    return bool(asked > 0)
