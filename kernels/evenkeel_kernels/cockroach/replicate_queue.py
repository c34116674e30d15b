"""The replicate queue: decide and apply the next action of each range, range after range.

References
----------
CockroachDB, ``pkg/kv/kvserver/replicate_queue.go``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import device_function, inline_only, no_alloc
from evenkeel_kernels.cockroach.actions import (
    ADD_NON_VOTER,
    ADD_VOTER,
    CONSIDER_REBALANCE,
    FINALIZE,
    REMOVE_DEAD_NON_VOTER,
    REMOVE_DEAD_VOTER,
    REMOVE_DECOMMISSIONING_NON_VOTER,
    REMOVE_DECOMMISSIONING_VOTER,
    REMOVE_LEARNER,
    REMOVE_VOTER,
    REPLACE_DEAD_NON_VOTER,
    REPLACE_DEAD_VOTER,
    REPLACE_DECOMMISSIONING_NON_VOTER,
    REPLACE_DECOMMISSIONING_VOTER,
    UNAVAILABLE,
    action_of,
)
from evenkeel_kernels.cockroach.add_remove import add_target, remove_target
from evenkeel_kernels.cockroach.changes import (
    DecisionLog,
    Left,
    give_lease,
    has_left,
    has_room,
    is_worn,
    join,
    leaseholder,
    note,
    note_left,
    slot_of,
    swap,
    withdraw,
)
from evenkeel_kernels.cockroach.cluster_rules import ClusterRules, agrees
from evenkeel_kernels.cockroach.context import AllocatorContext, tally_class
from evenkeel_kernels.cockroach.rebalance import Decision, find_classes, nothing, rebalance
from evenkeel_kernels.cockroach.scores import BY_VALIDITY, BY_VOTERS
from evenkeel_kernels.cockroach.tables import (
    AVAILABLE,
    BYTES,
    CLOSE,
    DEAD,
    DECOMMISSIONING,
    LEARNER,
    LEASES,
    NON_VOTER,
    NOWHERE,
    THROTTLED,
    VOTER,
    Ints,
    Longs,
    Ranges,
    Stores,
    compared,
    diversity,
    member_at,
    take_members,
)
from evenkeel_kernels.core.problem import index

STEPS = 32  # decisions about one range in a row, after which the others have their turn

TRIES = 8  # draws for one range, where what is drawn would not last

# scores from here up are for constraints, disks and diversity, and not for preferences
NEEDED = 250.0

# what comes of looking at a range: nothing to do, something that cannot be done, something done, a
# move that is not made since it would lead back, or one that the cluster's own rules forbid
DONE, STUCK, ACTED, WITHHELD, REFUSED = 0, 1, 2, 3, 4


class Step(NamedTuple):
    """One change of one range."""

    # ``came`` is DONE and so on, ``action`` what the range needed, ``role`` that of the replica
    # concerned. Without ``removed`` one comes on ``target``, without ``target`` one goes; with both
    # it moves, and where there is another replica on the target already, the two change roles.

    came: int
    action: int
    role: int
    target: int
    removed: int
    score: float


@no_alloc
def work_off(
    ranges: Ranges,
    context: AllocatorContext,
    rules: ClusterRules,
    hosts: int,
    order: Ints,
    cursor: Longs,
    budget: int,
    least: float,
    steps: int,
    state: NDArray[np.int8],
    left: Left,
    log: DecisionLog,
    rng_state: NDArray[np.uint64],
) -> None:
    """Look at the ranges of ``order (M,)`` in turn, and do with each all that it needs.

    Goes on at place ``cursor[0]``, adds decisions to ``cursor[1]`` and ranges looked at to
    ``cursor[2]``, moves withheld to ``cursor[3]`` and decisions made again to ``cursor[4]``
    (``cursor (5,)``), and stops after ``budget`` of the last and of ranges, or when the log is
    full. ``state (P,)`` says what came of each range. ``rng_state (1,)`` makes the draws. What the
    ``rules`` of the cluster forbid is not done.
    """
    end = cursor[2] + cursor[4] + budget
    while cursor[0] < order.size and cursor[2] + cursor[4] < end and has_room(log, steps):
        p = index(order[cursor[0]])
        for _ in range(steps):
            step = decide(ranges, context, hosts, p, least, left, rng_state)
            came = step.came
            if came == ACTED:
                came = act(
                    ranges, context, rules, hosts, p, least, step, cursor, left, log, rng_state
                )
            state[p] = came
            cursor[3] += came == WITHHELD
            if came != ACTED:
                break
            cursor[1] += 1
        cursor[0] += 1
        cursor[2] += 1


@device_function
def act(
    ranges: Ranges,
    context: AllocatorContext,
    rules: ClusterRules,
    hosts: int,
    p: int,
    least: float,
    step: Step,
    cursor: Longs,
    left: Left,
    log: DecisionLog,
    rng_state: NDArray[np.uint64],
) -> int:
    """Carry out what was decided; what the cluster refuses is decided again without that store.

    What must come somewhere tries all stores, what would be moved for the better a few; how often
    is added to ``cursor[4]``. ``rng_state (1,)`` draws.
    """
    barred = context.barred
    came = carry_out(ranges, context, rules, p, step, left, log)
    if came != REFUSED:
        return came
    tries = TRIES if step.action == CONSIDER_REBALANCE else barred.size
    for _ in range(tries):
        if step.target < 0:
            break
        barred[step.target] = True
        cursor[4] += 1
        step = decide(ranges, context, hosts, p, least, left, rng_state)
        came = step.came
        if came == ACTED:
            came = carry_out(ranges, context, rules, p, step, left, log)
        if came != REFUSED:
            break
    barred[:] = False
    if came == REFUSED:
        return DONE if step.action == CONSIDER_REBALANCE else STUCK
    return came


@device_function
def decide(
    ranges: Ranges,
    context: AllocatorContext,
    hosts: int,
    p: int,
    least: float,
    left: Left,
    rng_state: NDArray[np.uint64],
) -> Step:
    """Find the one thing that a range needs most, and do nothing; ``rng_state (1,)`` draws."""
    # a replica is moved only if that scores ``least`` or more
    action, _ = action_of(
        ranges.first,
        ranges.store,
        ranges.role,
        ranges.joint,
        ranges.config,
        context.stores.status,
        context.configs,
        hosts,
        p,
    )
    if action == UNAVAILABLE:
        return stepped(STUCK, action, VOTER, NOWHERE, NOWHERE, 0.0)
    if action == FINALIZE:
        return stepped(ACTED, action, VOTER, NOWHERE, NOWHERE, 0.0)
    if action == REMOVE_LEARNER:
        return stepped(ACTED, action, LEARNER, NOWHERE, learner_of(ranges, p), 0.0)
    take_members(ranges, p, context.members)
    if action != CONSIDER_REBALANCE:
        return repair(ranges, context, p, action, rng_state)
    q = index(ranges.config[p])
    role, came, tries = index(VOTER), index(DONE), 0
    while True:
        found = nothing()
        if least < NEEDED or find_classes(context, q, role):
            found = rebalance(context, q, role, rng_state)
        wanted = found.target >= 0 and found.score >= least
        if wanted and lasts(ranges, context, p, role, found):
            back = has_left(left, p, found.target) and found.score < BY_VOTERS
            if not back and (found.score >= NEEDED or not is_worn(left, p)):
                return stepped(ACTED, action, role, found.target, found.removed, found.score)
            came = index(WITHHELD)
        tries += 1
        if wanted and tries < TRIES:
            continue
        if role == NON_VOTER or context.members.size[1] == 0:
            return stepped(came, action, VOTER, NOWHERE, NOWHERE, 0.0)
        role, tries = index(NON_VOTER), 0


@inline_only
def lasts(ranges: Ranges, context: AllocatorContext, p: int, role: int, found: Decision) -> bool:
    """Whether a move would not be undone at once, once it is booked."""
    # It must not fill the disk it comes to so far that it would have to go again. Who goes may be
    # another replica than the one the target was better than, so diversity is looked at again. And
    # for the sake of counts no store may end with more than the other had: two ranges see different
    # means where they may live on different stores, and would change places for ever.
    stores, s = context.stores, found.target
    if found.score < BY_VALIDITY and stores.capacity[s] > 0.0:
        more = ranges.replica_load[BYTES, p]
        if leaseholder(ranges, p) == found.removed:
            more += ranges.lease_load[BYTES, p]  # the lease moves along
        used = stores.amount[BYTES, s]
        if (used + more) / (used + stores.available[s]) >= context.settings.disk_full:
            return False
    if found.score >= BY_VOTERS:
        return True
    gain = gained(context, role, found.removed, s)
    if found.score >= NEEDED:
        return gain > CLOSE
    # a voter's move, too, must not bring a non-voter to move back
    gain = min(gain, gained(context, index(NON_VOTER), found.removed, s))
    row = context.scorer.row
    return gain >= -CLOSE and stores.amount[row, found.removed] >= stores.amount[row, s] + 2.0


@inline_only
def gained(context: AllocatorContext, role: int, removed: int, target: int) -> float:
    """Return by how much the diversity of all pairs of replicas grows with a move. O(W)."""
    localities, members = context.localities, context.members
    gain = 0.0
    n = compared(members, role)
    for i in range(n):
        other = member_at(members, i)
        if other != removed:
            gain += diversity(localities, target, other) - diversity(localities, removed, other)
    return gain


@inline_only
def stepped(came: int, action: int, role: int, target: int, removed: int, score: float) -> Step:
    """Return a step, its numbers as one type of number."""
    return Step(index(came), index(action), index(role), index(target), index(removed), score)


@inline_only
def learner_of(ranges: Ranges, p: int) -> int:
    """Return the store of the first learner, or -1. O(W)."""
    for k in range(ranges.first[p], ranges.first[p + 1]):
        if ranges.store[k] >= 0 and ranges.role[k] == LEARNER:
            return index(ranges.store[k])
    return index(NOWHERE)


@device_function
def repair(
    ranges: Ranges, context: AllocatorContext, p: int, action: int, rng_state: NDArray[np.uint64]
) -> Step:
    """Find whom to add, replace or remove, as ``action`` says; ``rng_state (1,)`` draws."""
    role = role_of(action)
    going = first_in_state(ranges, context.stores, p, role, state_for(action))
    if adds(action):
        # the last voter is not replaced: one is added, and it goes later
        if role == VOTER and context.members.size[0] == 1:
            going = index(NOWHERE)
        target = add_target(context, index(ranges.config[p]), role, going, rng_state)
        came = STUCK if target < 0 else ACTED
        return stepped(came, action, role, target, going, 0.0)
    if going < 0:
        going = remove_target(context, index(ranges.config[p]), role, index(NOWHERE), rng_state)
    came = STUCK if going < 0 else ACTED
    return stepped(came, action, role, NOWHERE, going, 0.0)


@device_function
def carry_out(
    ranges: Ranges,
    context: AllocatorContext,
    rules: ClusterRules,
    p: int,
    step: Step,
    left: Left,
    log: DecisionLog,
) -> int:
    """Do what was decided, book it and note it. O(W), and what `agrees` takes."""
    # ACTED, or STUCK if the row has no room, or REFUSED, and then all is as it was
    if step.action == FINALIZE:
        ranges.joint[p] = False
    elif step.removed < 0:
        if not join(ranges, context.stores, p, step.target, step.role):
            return STUCK
    elif step.target < 0:
        retire(ranges, context, p, step.removed)
    else:
        replace(ranges, context, p, step.removed, step.target)
    fits = agrees(rules, ranges, context.stores, p)
    if step.target >= 0:
        tally_store(context, step.target)
    if step.removed >= 0:
        tally_store(context, step.removed)
    if not fits:
        return REFUSED
    if step.removed >= 0:
        note_left(left, p, step.removed)
    note(log, step.action, p, step.removed, step.target, step.score)
    return ACTED


@inline_only
def role_of(action: int) -> int:
    """Return whether an action is about VOTERs or NON_VOTERs."""
    voters = (
        action == ADD_VOTER
        or action == REMOVE_VOTER
        or action == REPLACE_DEAD_VOTER
        or action == REPLACE_DECOMMISSIONING_VOTER
        or action == REMOVE_DEAD_VOTER
        or action == REMOVE_DECOMMISSIONING_VOTER
    )
    return index(VOTER if voters else NON_VOTER)


@inline_only
def adds(action: int) -> bool:
    """Whether an action brings a replica."""
    return (
        action == ADD_VOTER
        or action == ADD_NON_VOTER
        or action == REPLACE_DEAD_VOTER
        or action == REPLACE_DEAD_NON_VOTER
        or action == REPLACE_DECOMMISSIONING_VOTER
        or action == REPLACE_DECOMMISSIONING_NON_VOTER
    )


@inline_only
def state_for(action: int) -> int:
    """Return the state of the store whose replica an action takes away, or -1 for any."""
    if (
        action == REPLACE_DEAD_VOTER
        or action == REPLACE_DEAD_NON_VOTER
        or action == REMOVE_DEAD_VOTER
        or action == REMOVE_DEAD_NON_VOTER
    ):
        return DEAD
    if (
        action == REPLACE_DECOMMISSIONING_VOTER
        or action == REPLACE_DECOMMISSIONING_NON_VOTER
        or action == REMOVE_DECOMMISSIONING_VOTER
        or action == REMOVE_DECOMMISSIONING_NON_VOTER
    ):
        return DECOMMISSIONING
    return NOWHERE


@inline_only
def first_in_state(ranges: Ranges, stores: Stores, p: int, role: int, state: int) -> int:
    """Return the store of the first replica of that role on a store in that state, or -1. O(W)."""
    for k in range(ranges.first[p], ranges.first[p + 1]):
        s = ranges.store[k]
        if s >= 0 and ranges.role[k] == role and stores.status[s] == state:
            return index(s)
    return index(NOWHERE)


@inline_only
def replace(ranges: Ranges, context: AllocatorContext, p: int, removed: int, target: int) -> None:
    """Move a replica; a lease that would come to a bad place moves on. O(W)."""
    held = leaseholder(ranges, p) == removed
    swap(ranges, context.stores, p, target, removed)
    if held and ranges.role[slot_of(ranges, p, target)] != VOTER:
        transfer_leader(ranges, context, p, index(NOWHERE))


@inline_only
def retire(ranges: Ranges, context: AllocatorContext, p: int, going: int) -> None:
    """Take a replica off its store, its lease first. O(W)."""
    if leaseholder(ranges, p) == going:
        transfer_leader(ranges, context, p, going)
    withdraw(ranges, context.stores, p, going)


@device_function
def transfer_leader(ranges: Ranges, context: AllocatorContext, p: int, going: int) -> None:
    """Give the lease to the voter that serves on the store with the fewest leases. O(W)."""
    next_holder = index(NOWHERE)
    for k in range(ranges.first[p], ranges.first[p + 1]):
        s = index(ranges.store[k])
        if s < 0 or s == going or ranges.role[k] != VOTER or ranges.behind[k]:
            continue
        status = context.stores.status[s]
        if status != AVAILABLE and status != THROTTLED:
            continue
        fewer = (
            next_holder >= 0
            and context.stores.amount[LEASES, s] < context.stores.amount[LEASES, next_holder]
        )
        if next_holder < 0 or fewer:
            next_holder = s
    give_lease(ranges, context.stores, p, next_holder)


@inline_only
def tally_store(context: AllocatorContext, s: int) -> None:
    """Tally the class of a store again."""
    tally_class(context, context.localities.alike[s])


@no_alloc
def decide_alone(
    ranges: Ranges,
    context: AllocatorContext,
    hosts: int,
    p: int,
    left: Left,
    rng_state: NDArray[np.uint64],
) -> Step:
    """As `decide`, with ``rng_state (1,)``, whatever a move scores."""
    return decide(ranges, context, hosts, p, 0.0, left, rng_state)
