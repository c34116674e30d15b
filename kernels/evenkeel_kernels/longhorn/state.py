"""State of Longhorn's auto-balance: hosts, disks, volumes, and replicas in slots.

A *host* is a node of Longhorn, the things that hold replicas are its disks.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inlined, no_alloc


@inlined
def share_of(amount: int, percent: int) -> int:
    """Return ``percent`` % of an amount, rounded down, without a product that could overflow."""
    return amount // 100 * percent + amount % 100 * percent // 100


@inlined
def leaves_free(maximum: int, available: int, required: int, minimal: int) -> bool:
    """Whether copying leaves more than ``minimal`` bytes free on a disk that has anything."""
    return maximum > 0 and available > 0 and available - required > minimal


@inlined
def under_pressure(maximum: int, available: int, reserved: int, percent: int) -> bool:
    """Whether the unused share, in whole percent, is below what ``percent`` leaves; 0 is never."""
    # of a disk without size, as one that has failed shows itself, nothing is unused
    if percent == 0:
        return False
    unused = (available - reserved) * 100 // maximum if maximum > 0 else 0
    return max(0, unused) < 100 - percent


@inlined
def stays_below(maximum: int, scheduled: int, reserved: int, required: int, percent: int) -> bool:
    """Whether a disk with a copy of ``required`` bytes more is used to less than ``percent`` %."""
    return (required + scheduled + reserved) * 100 < percent * maximum


@no_alloc
def levellest(
    group: NDArray[np.int32],
    rank: NDArray[np.int32],
    candidate: NDArray[np.bool_],
    usable: NDArray[np.int64],
    size: int,
    total: NDArray[np.int64],
    fit: NDArray[np.bool_],
    spread: NDArray[np.int64],
) -> int:
    """Choose the group whose totals are levellest once it has taken ``size``; -1 for none.

    ``group`` (m,) int32 of each item, ``rank`` (g,) int32 of groups by name, ``candidate`` (m,)
    bool, ``usable`` (m,) int64 bytes. Filled: ``total`` (g,) int64 bytes of the candidates, -1 for
    groups without one; ``fit`` (g,) bool, groups with an item of ``size``; ``spread`` (g,) int64
    max - min after placing there, -1 for groups that do not fit.
    """
    # Every choice leaves the same mean, so that the least (max - min) / mean is the least max -
    # min, in whole bytes. O(items + groups).
    total[:] = -1
    fit[:] = False
    spread[:] = -1
    for i in range(group.shape[0]):
        if candidate[i]:
            g = group[i]
            total[g] = max(total[g], 0) + usable[i]
            fit[g] = fit[g] or usable[i] >= size
    most, second, least, next_least = -1, -1, -1, -1  # places of the two extremes at each end
    for g in range(total.shape[0]):
        if total[g] < 0:
            continue
        if most < 0 or total[g] > total[most]:
            most, second = g, most
        elif second < 0 or total[g] > total[second]:
            second = g
        if least < 0 or total[g] < total[least]:
            least, next_least = g, least
        elif next_least < 0 or total[g] < total[next_least]:
            next_least = g
    best = -1
    for g in range(total.shape[0]):
        if not fit[g]:
            continue
        left = total[g] - size
        other_most = second if g == most else most
        other_least = next_least if g == least else least
        high = left if other_most < 0 else max(left, total[other_most])
        low = left if other_least < 0 else min(left, total[other_least])
        spread[g] = high - low
        if best < 0 or spread[g] < spread[best]:
            best = g
        elif spread[g] == spread[best] and rank[g] < rank[best]:
            best = g
    return best


# marks of a replica: WAITING has failed so lately that it may return; SOURCE feeds a clone and
# stays; OLD was healthy before the one unstable host became ready, and stands there
HEALTHY, FAILED, EVICTING, ACTIVE, REUSABLE, WAITING, SOURCE, OLD = (1 << i for i in range(8))

DISABLED, LEAST_EFFORT, BEST_EFFORT = range(3)  # how far a volume is balanced

GAINS = 7  # what a pass may gain, see ``evenkeel_kernels.longhorn.stages.gains``


@by_reference
class Problem(NamedTuple):
    """What does not change. H hosts, Z zones, N disks, P volumes, C classes of volumes."""

    zone: NDArray[np.int32]  # (H,) zone of each host
    host: NDArray[np.int32]  # (N,) host of each disk
    first_disk: NDArray[np.int64]  # (H + 1,) where each host's disks start in ``disk``
    disk: NDArray[np.int32]  # (N,) disks, host by host
    host_rank: NDArray[np.int32]  # (H,) rank by name
    disk_rank: NDArray[np.int32]  # (N,) rank by name
    ready: NDArray[np.bool_]  # (H,) whether a host is ready
    # (C, N) why a disk takes no replicas of volumes of a class, whatever its space; 0 if it may
    barred: NDArray[np.uint8]
    # maximum, reserved: (N,) bytes
    maximum: NDArray[np.int64]
    reserved: NDArray[np.int64]
    minimal: NDArray[np.int64]  # (N,) bytes that must stay free
    promised: NDArray[np.int64]  # (N,) bytes that may be promised to replicas
    wanted: NDArray[np.int32]  # (P,) replicas wanted
    # size, actual: (P,) nominal bytes, and bytes to copy
    size: NDArray[np.int64]
    actual: NDArray[np.int64]
    effort: NDArray[np.uint8]  # (P,) DISABLED, LEAST_EFFORT or BEST_EFFORT
    # host_soft, zone_soft, disk_soft: (P,) whether two replicas may share one
    host_soft: NDArray[np.bool_]
    zone_soft: NDArray[np.bool_]
    disk_soft: NDArray[np.bool_]
    local: NDArray[np.int32]  # (P,) host where data should be local; -1 for none
    kind: NDArray[np.int32]  # (P,) class of the volume
    acts: NDArray[np.bool_]  # (P,) whether anything may be done to it
    whole: NDArray[np.bool_]  # (P,) whether it counts as healthy once it has all replicas
    fresh: NDArray[np.bool_]  # (P,) whether it has no data yet
    unstable: int  # the one unstable host; -1 for none
    pressure: int  # use of a disk, in percent, above which it is under pressure; 0 for never
    zones_first: bool  # whether best-effort asks zones before hosts
    rebuilds: bool  # whether replicas are built at all


@by_reference
class State(NamedTuple):
    """What changes. S slots; a volume's row has room for all it has and wants, and one more."""

    first: NDArray[np.int64]  # (P + 1,) where each volume's slots start
    owner: NDArray[np.int32]  # (S,) volume of each slot
    node: NDArray[np.int32]  # (S,) disk of each replica; -1 for an empty slot
    marks: NDArray[np.uint8]  # (S,) marks of each replica
    rank: NDArray[np.int64]  # (S,) rank by name
    # after, before: (S,) neighbours on the disk, in order of rank; -1 for none
    after: NDArray[np.int64]
    before: NDArray[np.int64]
    # head, tail: (N,) first and last replica of each disk; -1 for none
    head: NDArray[np.int64]
    tail: NDArray[np.int64]
    # available, scheduled: (N,) bytes free, and nominal bytes of all replicas
    available: NDArray[np.int64]
    scheduled: NDArray[np.int64]
    next_rank: NDArray[np.int64]  # (P,) rank of the next new replica of each volume
    work: NDArray[np.int64]  # (1,) candidates looked at


@device_function
def fits(problem: Problem, state: State, v: int, d: int) -> bool:
    """Whether a disk has room for another replica of a volume, by the space rule."""
    required = 0 if problem.fresh[v] else problem.actual[v]
    if not leaves_free(problem.maximum[d], state.available[d], required, problem.minimal[d]):
        return False
    return bool(problem.size[v] + state.scheduled[d] <= problem.promised[d])


@device_function
def pressured(problem: Problem, state: State, d: int) -> bool:
    """Whether a disk is under pressure."""
    return under_pressure(
        problem.maximum[d], state.available[d], problem.reserved[d], problem.pressure
    )


@device_function
def link(state: State, s: int) -> None:
    """Put the replica of a slot into its disk's list, where its rank belongs."""
    d = state.node[s]
    right, left = -1, state.tail[d]
    while left >= 0 and state.rank[left] > state.rank[s]:
        right, left = left, state.before[left]
    state.before[s], state.after[s] = left, right
    relink(state, s)


@device_function
def relink(state: State, s: int) -> None:
    """Put a replica back where it was taken out last."""
    d = state.node[s]
    left, right = state.before[s], state.after[s]
    if left >= 0:
        state.after[left] = s
    else:
        state.head[d] = s
    if right >= 0:
        state.before[right] = s
    else:
        state.tail[d] = s


@device_function
def unlink(state: State, s: int) -> None:
    """Take a replica out of its disk's list; its own neighbours stay written in it."""
    d = state.node[s]
    left, right = state.before[s], state.after[s]
    if left >= 0:
        state.after[left] = right
    else:
        state.head[d] = right
    if right >= 0:
        state.before[right] = left
    else:
        state.tail[d] = left


@no_alloc
def link_all(state: State, order: NDArray[np.int64]) -> None:
    """Make the lists of all disks from ``order`` (n,) int64, slots; by rank is fastest."""
    for i in range(order.shape[0]):
        if state.node[order[i]] >= 0:
            link(state, order[i])


@device_function
def add(problem: Problem, state: State, v: int, d: int) -> int:
    """Put a new healthy replica of a volume on a disk; returns its slot."""
    s = state.first[v]
    while state.node[s] >= 0:
        s += 1
    state.node[s] = d
    state.marks[s] = HEALTHY | ACTIVE
    state.rank[s] = state.next_rank[v]
    state.next_rank[v] += 1
    state.available[d] -= 0 if problem.fresh[v] else problem.actual[v]
    state.scheduled[d] += problem.size[v]
    link(state, s)
    return s


@device_function
def remove(problem: Problem, state: State, s: int) -> None:
    """Take a replica away, and give back what it took up."""
    d, v = state.node[s], state.owner[s]
    unlink(state, s)
    state.available[d] += 0 if problem.fresh[v] else problem.actual[v]
    state.scheduled[d] -= problem.size[v]
    state.node[s] = -1


@device_function
def take_out(problem: Problem, state: State, s: int) -> int:
    """Take a replica away for a moment; returns its disk, with which ``put_back`` undoes it."""
    d = state.node[s]
    remove(problem, state, s)
    return d


@device_function
def put_back(problem: Problem, state: State, s: int, d: int) -> None:
    """Put back the replica that was taken out last."""
    v = state.owner[s]
    state.node[s] = d
    state.available[d] -= 0 if problem.fresh[v] else problem.actual[v]
    state.scheduled[d] += problem.size[v]
    relink(state, s)
