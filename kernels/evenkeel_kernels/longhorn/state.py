"""What Longhorn's auto-balance knows and changes: hosts, disks, volumes, and replicas in slots.

A *host* is a node of Longhorn, the things that hold replicas are its disks.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, no_alloc
from evenkeel_kernels.longhorn.disk_space import leaves_free, under_pressure

HEALTHY, FAILED, EVICTING, ACTIVE, REUSABLE, WAITING, SOURCE, OLD = (1 << i for i in range(8))
"""Marks of a replica: WAITING has failed so lately that it may return; SOURCE feeds a clone and
stays; OLD was healthy before the one unstable host became ready, and stands there."""

DISABLED, LEAST_EFFORT, BEST_EFFORT = range(3)
"""How far a volume is balanced."""

GAINS = 7
"""What a pass may gain, see ``evenkeel_kernels.longhorn.stages.gains``."""


@by_reference
class Problem(NamedTuple):
    """What does not change. H hosts, Z zones, N disks, P volumes, C classes of volumes.

    Attributes
    ----------
    zone : (H,) int32
        Zone of each host.
    host : (N,) int32
        Host of each disk.
    first_disk : (H + 1,) int64
        Where each host's disks start in ``disk``.
    disk : (N,) int32
        Disks, host by host.
    host_rank : (H,) int32
        Rank by name.
    disk_rank : (N,) int32
        Rank by name.
    ready : (H,) bool
        Whether a host is ready.
    barred : (C, N) uint8
        Why a disk takes no replicas of volumes of a class, whatever its space; 0 if it may.
    maximum, reserved : (N,) int64
        Bytes.
    minimal : (N,) int64
        Bytes that must stay free.
    promised : (N,) int64
        Bytes that may be promised to replicas.
    wanted : (P,) int32
        Replicas wanted.
    size, actual : (P,) int64
        Nominal bytes, and bytes to copy.
    effort : (P,) uint8
        DISABLED, LEAST_EFFORT or BEST_EFFORT.
    host_soft, zone_soft, disk_soft : (P,) bool
        Whether two replicas may share one.
    local : (P,) int32
        Host where data should be local; -1 for none.
    kind : (P,) int32
        Class of the volume.
    acts : (P,) bool
        Whether anything may be done to it.
    whole : (P,) bool
        Whether it counts as healthy once it has all replicas.
    fresh : (P,) bool
        Whether it has no data yet.
    unstable : int
        The one unstable host; -1 for none.
    pressure : int
        Use of a disk, in percent, above which it is under pressure; 0 for never.
    zones_first : bool
        Whether best-effort asks zones before hosts.
    rebuilds : bool
        Whether replicas are built at all.
    """

    zone: NDArray[np.int32]
    host: NDArray[np.int32]
    first_disk: NDArray[np.int64]
    disk: NDArray[np.int32]
    host_rank: NDArray[np.int32]
    disk_rank: NDArray[np.int32]
    ready: NDArray[np.bool_]
    barred: NDArray[np.uint8]
    maximum: NDArray[np.int64]
    reserved: NDArray[np.int64]
    minimal: NDArray[np.int64]
    promised: NDArray[np.int64]
    wanted: NDArray[np.int32]
    size: NDArray[np.int64]
    actual: NDArray[np.int64]
    effort: NDArray[np.uint8]
    host_soft: NDArray[np.bool_]
    zone_soft: NDArray[np.bool_]
    disk_soft: NDArray[np.bool_]
    local: NDArray[np.int32]
    kind: NDArray[np.int32]
    acts: NDArray[np.bool_]
    whole: NDArray[np.bool_]
    fresh: NDArray[np.bool_]
    unstable: int
    pressure: int
    zones_first: bool
    rebuilds: bool


@by_reference
class State(NamedTuple):
    """What changes. S slots; a volume's row has room for all it has and wants, and one more.

    Attributes
    ----------
    first : (P + 1,) int64
        Where each volume's slots start.
    owner : (S,) int32
        Volume of each slot.
    node : (S,) int32
        Disk of each replica; -1 for an empty slot.
    marks : (S,) uint8
        Marks of each replica.
    rank : (S,) int64
        Rank by name.
    after, before : (S,) int64
        Neighbours on the disk, in order of rank; -1 for none.
    head, tail : (N,) int64
        First and last replica of each disk; -1 for none.
    available, scheduled : (N,) int64
        Bytes free, and nominal bytes of all replicas.
    next_rank : (P,) int64
        Rank of the next new replica of each volume.
    work : (1,) int64
        Candidates looked at.
    """

    first: NDArray[np.int64]
    owner: NDArray[np.int32]
    node: NDArray[np.int32]
    marks: NDArray[np.uint8]
    rank: NDArray[np.int64]
    after: NDArray[np.int64]
    before: NDArray[np.int64]
    head: NDArray[np.int64]
    tail: NDArray[np.int64]
    available: NDArray[np.int64]
    scheduled: NDArray[np.int64]
    next_rank: NDArray[np.int64]
    work: NDArray[np.int64]


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
