"""Which replica of a volume Longhorn deletes when it has one too many.

References
----------
Longhorn, volume controller: clean-up of extra healthy replicas, preferred candidates for deletion.
"""

from evenkeel_kernels.build.jit import device_function
from evenkeel_kernels.longhorn.place_replica import Room
from evenkeel_kernels.longhorn.stages import (
    counted,
    extremes,
    may_be_relieved,
    stage_of,
)
from evenkeel_kernels.longhorn.state import (
    ACTIVE,
    BEST_EFFORT,
    DISABLED,
    EVICTING,
    FAILED,
    HEALTHY,
    OLD,
    SOURCE,
    Problem,
    State,
    put_back,
    take_out,
)

EVICTED, NOT_LOCAL, DOWN, UNSTABLE, OFF_UNSTABLE, FULL_HOST, FULL_ZONE, RELIEVED = range(11, 19)
SAME_DISK, SAME_HOST, SAME_ZONE, ANY = range(19, 23)
"""What a replica is deleted for: eviction; data locality; its host is down, or unstable, or holds
more than the unstable one; its host or zone is the fullest; its disk is under pressure; it shares a
disk, host or zone with most others; nothing of that."""


@device_function
def leaving(problem: Problem, state: State, v: int, room: Room) -> tuple[int, int, int]:
    """Choose the replica to delete: its slot, -1 for none, the step that chose, and of how many.

    For a volume with more healthy replicas than are wanted. Fills ``listed`` of the room.
    O(W^2 + H + Z).
    """
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
    """List those that share a disk with most others, else a host, else a zone, else all.

    Of groups of equal size all are listed. A group counts those that may not go, too.
    """
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
