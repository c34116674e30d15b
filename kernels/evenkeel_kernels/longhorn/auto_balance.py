"""Longhorn's replica auto-balance: add and delete replicas until no volume needs a change.

A pass adds one replica and then deletes one, so that no volume ever has less than it had. Where the
design and the code differ, the design counts.

References
----------
Longhorn, enhancement "Automatic Replica Rebalance" (2021), and the volume controller's replenishing
and cleaning up of replicas.
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, no_alloc
from evenkeel_kernels.longhorn.place_replica import NOTHING, REPLENISH, Room, place
from evenkeel_kernels.longhorn.stages import better, counted, gains, leaving, stage_of
from evenkeel_kernels.longhorn.state import (
    ACTIVE,
    EVICTING,
    FAILED,
    HEALTHY,
    WAITING,
    Problem,
    State,
    add,
    put_back,
    remove,
    take_out,
)

# kinds of action: a replica is added, deleted, or dropped since it failed and is replaced
ADD, DELETE, DROP = 1, 2, 3

# numbers of a log entry: kind, volume, slot, disk, what asked for it, how many were asked for (or
# could have been deleted), tier, rank of the replica
FIELDS = 8

DROPPED = 30  # what asks for a failed replica to be dropped


@no_alloc
def next_action(
    problem: Problem, state: State, v: int, room: Room, entry: NDArray[np.int64]
) -> int:
    """Find what to do next to a volume, without doing it; returns its kind, 0 for nothing.

    ``entry`` (FIELDS,) int64 is filled; an addition has no slot yet, -1.
    """
    entry[:] = 0
    entry[1] = v
    entry[2] = -1
    entry[3] = -1
    if not problem.acts[v]:
        return 0
    healthy = counted(problem, state, v, HEALTHY | ACTIVE, 0, room)
    wanted = problem.wanted[v]
    if healthy > wanted and healthy > 1:
        slot, step, among = leaving(problem, state, v, room)
        if slot >= 0:
            return filled(state, entry, DELETE, slot, step, among)
    usable = counted(problem, state, v, ACTIVE, FAILED | EVICTING, room)
    if usable >= wanted:
        slot = stale(state, v)
        if slot >= 0:
            return filled(state, entry, DROP, slot, DROPPED, 1)
    stage, asked, target = NOTHING, 0, -1
    if usable < wanted:
        if (healthy > 0 or problem.fresh[v]) and not waits(state, v) and problem.rebuilds:
            stage, asked = REPLENISH, wanted - usable
    elif usable == wanted and healthy == wanted and problem.whole[v]:
        stage, asked, target = stage_of(problem, state, v, room)
    if stage == NOTHING:
        return 0
    d, tier = place(problem, state, v, stage, target, room)
    entry[4] = stage
    entry[5] = asked
    entry[6] = tier
    if d < 0:
        return 0
    if stage != REPLENISH and not worth_it(problem, state, v, d, room):
        entry[3] = d
        return 0
    entry[0] = ADD
    entry[3] = d
    entry[7] = state.next_rank[v]
    return ADD


@device_function
def filled(
    state: State, entry: NDArray[np.int64], kind: int, slot: int, step: int, among: int
) -> int:
    """Write down in ``entry`` (FIELDS,) int64 that the replica of a slot goes; returns the kind."""
    entry[0] = kind
    entry[2] = slot
    entry[3] = state.node[slot]
    entry[4] = step
    entry[5] = among
    entry[7] = state.rank[slot]
    return kind


@device_function
def worth_it(problem: Problem, state: State, v: int, d: int, room: Room) -> bool:
    """Whether a pass that begins on a disk gains something once one replica has gone for it."""
    # Others are not begun. This is ours, and with it everything comes to rest whatever is deleted,
    # and nothing is copied in vain.
    gains(problem, state, v, room, room.before)
    new = add(problem, state, v, d)
    slot, _, _ = leaving(problem, state, v, room)
    gained = False
    if slot >= 0:
        left = take_out(problem, state, slot)
        gains(problem, state, v, room, room.after)
        gained = better(room.after, room.before)
        put_back(problem, state, slot, left)
    remove(problem, state, new)
    state.next_rank[v] -= 1
    return gained


@device_function
def stale(state: State, v: int) -> int:
    """Return the slot of the first replica by name that has failed for good; -1 for none."""
    best = -1
    for s in range(state.first[v], state.first[v + 1]):
        if state.node[s] >= 0 and state.marks[s] & (FAILED | WAITING) == FAILED:
            if best < 0 or state.rank[s] < state.rank[best]:
                best = s
    return best


@device_function
def waits(state: State, v: int) -> bool:
    """Whether a failed replica of a volume may still return."""
    for s in range(state.first[v], state.first[v + 1]):
        if state.node[s] >= 0 and state.marks[s] & WAITING:
            return True
    return False


@no_alloc
def act(problem: Problem, state: State, entry: NDArray[np.int64]) -> None:
    """Do what ``entry`` (FIELDS,) int64 says, and write the slot of a new replica into it."""
    if entry[0] == ADD:
        entry[2] = add(problem, state, entry[1], entry[3])
    else:
        remove(problem, state, entry[2])


@no_alloc
def run(
    problem: Problem,
    state: State,
    room: Room,
    log: NDArray[np.int64],
    cursor: NDArray[np.int64],
    budget: int,
) -> tuple[int, bool]:
    """Visit volume after volume, a pass each, until a whole round changes nothing.

    ``log`` (n, FIELDS) int64 receives the actions in order; ``cursor`` (2,) int64 holds the volume
    to go on with, and how many actions the round has seen. Returns how many were logged, and
    whether all is at rest; else it is called again, because the log was full or ``budget``
    candidates had been looked at. O(rounds x P x (H + Z)), and O(N) for each addition and each
    volume that has hosts or zones to gain.
    """
    volumes = problem.wanted.shape[0]
    logged = 0
    until = state.work[0] + budget
    while True:
        while cursor[0] < volumes:
            if logged >= log.shape[0] or state.work[0] >= until:
                return logged, False
            v = cursor[0]
            state.work[0] += 1
            kind = next_action(problem, state, v, room, log[logged])
            if kind == 0:
                cursor[0] += 1
                continue
            act(problem, state, log[logged])
            logged += 1
            cursor[1] += 1
            if kind == DELETE:
                cursor[0] += 1
        if cursor[1] == 0:
            return logged, True
        cursor[0] = 0
        cursor[1] = 0


@no_alloc
def replay(problem: Problem, state: State, log: NDArray[np.int64]) -> None:
    """Do what ``log`` (n, FIELDS) int64 says, action by action."""
    for i in range(log.shape[0]):
        act(problem, state, log[i])
