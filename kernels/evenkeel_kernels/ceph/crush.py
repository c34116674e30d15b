"""Ceph's CRUSH: rules run for many inputs at once, bit for bit as Ceph runs them for one.

Searches do not depend on each other, so all of a batch advance together, one trial each per round:
every round is one descent of the whole batch (``crush_ceph_straw2``) and a short scalar pass that
accepts the item, or moves the search on to its next trial. Retries need no special case: a search
that collides just stays in the batch for longer.

References
----------
Ceph, ``crush_do_rule``, ``crush_choose_firstn``, ``crush_choose_indep`` and ``is_out`` of
``crush/mapper.c``. Weil, Brandt, Miller, Maltzahn, "CRUSH: Controlled, Scalable, Decentralized
Placement of Replicated Data", SC 2006.
"""

from typing import NamedTuple

import numpy as np

from evenkeel_kernels.build.jit import jit, no_alloc
from evenkeel_kernels.ceph.straw2 import (
    NONE,
    UNDEFINED,
    Ints,
    Lanes,
    Longs,
    Tree,
    Words,
    descend,
    lanes,
)
from evenkeel_kernels.core.jenkins_hash import hash2


class Trials(NamedTuple):
    """The trials that a choosing step may make, after what the rule has set."""

    # tries, leaf_tries: of one replica; of one leaf search
    tries: int
    leaf_tries: int
    local: int  # within the same bucket after a collision
    # vary_r, stable: whether a leaf search continues from its parent's trial number, shifted right
    # by one less; whether it does not depend on the replica's position
    vary_r: int
    stable: int


class Searches(NamedTuple):
    """State of up to C searches of up to R replicas each, indexed by search."""

    owner: Longs  # (C,) which input of the batch it is for
    x: Words  # (C,) that input
    start: Ints  # (C,) bucket that it looks below
    slots: Ints  # (C,) replicas it has room for
    found: Ints  # (C,) replicas found (firstn), or slots settled (indep)
    # rep, failed, local: (C,) replica at issue; its failed trials; those since it last started from
    # the top
    rep: Ints
    failed: Ints
    local: Ints
    # out, leaf: (C, R) items chosen, and the devices below them
    out: Ints
    leaf: Ints
    # at, row, r, item: (C,) the lane of its descent, as in ``descend``
    at: Ints
    row: Ints
    r: Words
    item: Ints
    # leaf_at, leaf_row, leaf_base, leaf_r, leaf_item, leaf_local: (C,) the lane of its leaf search;
    # ``leaf_base`` is the number of the first trial
    leaf_at: Ints
    leaf_row: Ints
    leaf_base: Ints
    leaf_r: Words
    leaf_item: Ints
    leaf_local: Ints
    # active, leafing: (C,) searches not yet done; those in a leaf search
    active: Longs
    leafing: Longs


@jit
def searches(capacity: int, replicas: int) -> Searches:
    """Make room for searches.

    ``capacity``: how many at most; ``replicas``: replicas of each at most. Returns the state, not
    yet filled.
    """
    c = capacity
    return Searches(
        np.empty(c, np.int64),
        np.empty(c, np.uint32),
        np.empty(c, np.int32),
        np.empty(c, np.int32),
        np.empty(c, np.int32),
        np.empty(c, np.int32),
        np.empty(c, np.int32),
        np.empty(c, np.int32),
        np.empty((c, replicas), np.int32),
        np.empty((c, replicas), np.int32),
        np.empty(c, np.int32),
        np.zeros(c, np.int32),
        np.empty(c, np.uint32),
        np.empty(c, np.int32),
        np.empty(c, np.int32),
        np.zeros(c, np.int32),
        np.empty(c, np.int32),
        np.empty(c, np.uint32),
        np.empty(c, np.int32),
        np.empty(c, np.int32),
        np.empty(c, np.int64),
        np.empty(c, np.int64),
    )


@no_alloc
def is_out(x: np.uint32, device: int, reweight: Words) -> bool:
    """Whether input ``x`` may not use ``device`` because of its reweight.

    ``x``: the input; ``device``: a device id; ``reweight (devices,)``: reweights, 16.16 fixed
    point: 65536 is in, 0 is out, between them a share of the inputs is. Returns true where it is
    out; a device beyond the vector always is.
    """
    if device >= reweight.size or reweight[device] == 0:
        return True
    if reweight[device] >= 0x10000:
        return False
    return (hash2(x, np.uint32(device)) & np.uint32(0xFFFF)) >= reweight[device]


@no_alloc
def _holds(slots: Ints, n: int, item: int) -> bool:
    """Whether one of the first ``n`` slots is ``item``; looks at all, as no end can be foreseen."""
    held = False
    for k in range(n):
        held |= slots[k] == item
    return held


@no_alloc
def _leaves(
    tree: Tree,
    reweight: Words,
    s: Searches,
    n: int,
    stride: int,
    apart: bool,
    limit: Trials,
    room: Lanes,
) -> None:
    """Find a device below ``s.item`` for each of ``s.leafing[:n]``, or leave ``s.leaf_item`` NONE.

    ``apart``: it must differ from the leaves that the search has already.
    """
    for k in range(n):
        i = s.leafing[k]
        s.leaf_at[i] = -1 - s.item[i]
        s.leaf_r[i] = s.leaf_base[i]
        s.leaf_local[i] = 0
    failed = 0
    while n > 0:
        descend(
            tree,
            reweight.size,
            0,
            s.leafing,
            n,
            s.leaf_at,
            s.leaf_row,
            s.x,
            s.leaf_r,
            s.leaf_item,
            room,
        )
        failed += 1
        left = 0
        for k in range(n):
            i = s.leafing[k]
            device = s.leaf_item[i]
            if device == NONE:
                continue
            collides = apart and _holds(s.leaf[i], s.slots[i], device)
            if device != UNDEFINED and not collides and not is_out(s.x[i], device, reweight):
                continue
            s.leaf_local[i] += 1
            if not (collides and device != UNDEFINED and s.leaf_local[i] <= limit.local):
                if failed >= limit.leaf_tries:
                    s.leaf_item[i] = NONE
                    continue
                s.leaf_at[i] = -1 - s.item[i]
                s.leaf_local[i] = 0
            s.leaf_r[i] = s.leaf_base[i] + stride * failed
            s.leafing[left] = i
            left += 1
        n = left


@no_alloc
def firstn(
    tree: Tree,
    reweight: Words,
    s: Searches,
    n: int,
    replicas: int,
    wanted: int,
    to_leaf: bool,
    limit: Trials,
    room: Lanes,
) -> None:
    """Run searches 0 to n - 1; replica ``rep`` tries the trials ``rep``, ``rep + 1`` and so on.

    ``reweight (devices,)``: reweights, 16.16 fixed point; ``n``: how many searches there are;
    ``replicas``: replicas that each tries to find; ``wanted``: their type; ``to_leaf``: whether a
    device below each is wanted.
    """
    # A replica that finds nothing is left out, and the next ones move up. Slots not yet filled are
    # UNDEFINED, so that an undefined item counts as held, which is a failed trial like a collision.
    # Ceph, ``crush_choose_firstn``
    last_row = tree.weight.shape[0] - 1
    active = 0
    for i in range(n):
        s.found[i] = 0
        s.rep[i] = 0
        s.failed[i] = 0
        s.local[i] = 0
        s.at[i] = s.start[i]
        for slot in range(s.slots[i]):
            s.out[i, slot] = UNDEFINED
            s.leaf[i, slot] = UNDEFINED
        s.active[active] = i
        active += s.slots[i] > 0
    while active > 0:
        for k in range(active):
            i = s.active[k]
            s.r[i] = s.rep[i] + s.failed[i]
            s.row[i] = min(s.found[i], last_row)
        descend(tree, reweight.size, wanted, s.active, active, s.at, s.row, s.x, s.r, s.item, room)
        leafing = 0
        for k in range(active):
            i = s.active[k]
            item = s.item[i]
            fails = _holds(s.out[i], s.slots[i], item)
            s.leaf_item[i] = UNDEFINED if fails else item
            if item < 0 and to_leaf:
                s.leaf_row[i] = s.row[i]
                s.leaf_base[i] = 0 if limit.stable else s.found[i]
                if limit.vary_r > 0:
                    s.leaf_base[i] += s.r[i] >> (limit.vary_r - 1)
                s.leafing[leafing] = i
                leafing += not fails
            elif 0 <= item < UNDEFINED and is_out(s.x[i], item, reweight):
                s.leaf_item[i] = UNDEFINED
        _leaves(tree, reweight, s, leafing, 1, True, limit, room)
        left = 0
        for k in range(active):
            i = s.active[k]
            item = s.item[i]
            filled = s.leaf_item[i] < UNDEFINED
            collides = not filled and item < UNDEFINED and _holds(s.out[i], s.slots[i], item)
            s.out[i, s.found[i]] = item if filled else UNDEFINED
            s.leaf[i, s.found[i]] = s.leaf_item[i] if filled else UNDEFINED
            s.found[i] += filled
            s.failed[i] += 1
            s.local[i] += 1
            if collides and s.local[i] <= limit.local:
                s.active[left] = i
                left += 1
                continue
            s.local[i] = 0
            s.at[i] = s.start[i]
            settled = filled or item == NONE or s.failed[i] >= limit.tries
            s.rep[i] += settled
            s.failed[i] = 0 if settled else s.failed[i]
            s.active[left] = i
            left += s.rep[i] < replicas and s.found[i] < s.slots[i]
        active = left


@no_alloc
def indep(
    tree: Tree,
    reweight: Words,
    s: Searches,
    n: int,
    replicas: int,
    wanted: int,
    to_leaf: bool,
    limit: Trials,
    room: Lanes,
) -> None:
    """Run searches 0 to n - 1; slots keep their places, and one that finds nothing is NONE.

    ``reweight (devices,)``: reweights, 16.16 fixed point; ``s``, ``n``, ``replicas``, ``wanted``,
    ``to_leaf``, ``limit``, ``room``: as for ``firstn``; ``slots`` may be fewer than ``replicas``.
    """
    # All undefined slots take turns: slot ``rep`` tries trial ``rep + replicas * round`` in a
    # round. Where leaves are wanted and the type chosen is the device itself, a slot that ends
    # undefined has as its leaf the last device that was tried and is out, as in Ceph.
    # Ceph, ``crush_choose_indep``
    last_row = tree.weight.shape[0] - 1
    active = 0
    for i in range(n):
        s.found[i] = 0
        s.rep[i] = 0
        s.failed[i] = 0
        s.row[i] = 0
        for slot in range(s.slots[i]):
            s.out[i, slot] = UNDEFINED
            s.leaf[i, slot] = UNDEFINED
        s.active[active] = i
        active += s.slots[i] > 0
    while active > 0:
        for k in range(active):
            i = s.active[k]
            s.at[i] = s.start[i]
            s.r[i] = s.rep[i] + replicas * s.failed[i]
        descend(tree, reweight.size, wanted, s.active, active, s.at, s.row, s.x, s.r, s.item, room)
        leafing = 0
        for k in range(active):
            i = s.active[k]
            item = s.item[i]
            fails = item < UNDEFINED and _holds(s.out[i], s.slots[i], item)
            s.leaf_item[i] = UNDEFINED if fails else item
            if item < 0 and to_leaf:
                s.leaf_row[i] = min(s.rep[i], last_row)
                s.leaf_base[i] = s.rep[i] + s.r[i]
                s.leafing[leafing] = i
                leafing += not fails
            elif not fails and 0 <= item < UNDEFINED and is_out(s.x[i], item, reweight):
                s.leaf_item[i] = UNDEFINED
                s.leaf[i, s.rep[i]] = item  # which Ceph leaves there if no trial replaces it
        _leaves(tree, reweight, s, leafing, replicas, False, limit, room)
        left = 0
        for k in range(active):
            i = s.active[k]
            slot = s.rep[i]
            if s.item[i] == NONE or s.leaf_item[i] < UNDEFINED:
                s.out[i, slot] = s.item[i]
                s.leaf[i, slot] = s.leaf_item[i]
                s.found[i] += 1
            if s.found[i] == s.slots[i]:
                continue
            slot += 1
            while slot < s.slots[i] and s.out[i, slot] != UNDEFINED:
                slot += 1
            if slot == s.slots[i]:
                s.failed[i] += 1
                slot = 0
                while s.out[i, slot] != UNDEFINED:
                    slot += 1
            s.rep[i] = slot
            s.active[left] = i
            left += s.failed[i] < limit.tries
        active = left
    for i in range(n):
        for slot in range(s.slots[i]):
            if s.out[i, slot] == UNDEFINED:
                s.out[i, slot] = NONE
            if s.leaf[i, slot] == UNDEFINED:
                s.leaf[i, slot] = NONE
        s.found[i] = s.slots[i]


TAKE = 0
EMIT = 1
CHOOSE_FIRSTN = 2
CHOOSE_INDEP = 3
CHOOSELEAF_FIRSTN = 4
CHOOSELEAF_INDEP = 5
SET_CHOOSE_TRIES = 6
SET_CHOOSELEAF_TRIES = 7
SET_CHOOSE_LOCAL_TRIES = 8
SET_CHOOSELEAF_VARY_R = 9
SET_CHOOSELEAF_STABLE = 10

BATCH = 16384  # inputs mapped together: enough lanes for every bucket, few enough for the cache


class Tunables(NamedTuple):
    """What steers the trials; the names are Ceph's, the defaults its present ones ("jewel")."""

    choose_total_tries: int = 50  # retries of one replica
    choose_local_tries: int = 0  # retries within the same bucket after a collision; 0 since bobtail
    # 1: a failed leaf search is one failed trial; 0: it tries as often itself
    chooseleaf_descend_once: int = 1
    # whether a leaf search continues from its parent's trial number, shifted right by one less
    chooseleaf_vary_r: int = 1
    chooseleaf_stable: int = 1  # 1: a leaf search does not depend on the replica's position


@no_alloc
def _begin(
    tree: Tree, x: Words, work: Ints, width: Ints, replicas: int, sized: bool, s: Searches
) -> int:
    """Set up a search below every bucket that is being worked on; return how many there are.

    ``sized``: each takes all of its room, so that what is left for the next is known beforehand.
    """
    n = 0
    for i in range(x.size):
        room = work.shape[1]
        for k in range(width[i]):
            bucket = -1 - work[i, k]
            if bucket < 0 or bucket >= tree.kind.size or tree.kind[bucket] < 0:
                continue
            s.owner[n] = i
            s.x[n] = x[i]
            s.start[n] = bucket
            s.slots[n] = min(replicas, room)
            if sized:
                room -= s.slots[n]
            n += 1
    return n


@no_alloc
def _gather(s: Searches, n: int, chosen: Ints, work: Ints, width: Ints) -> None:
    """String together what the searches of each input chose, as far as there is room."""
    for i in range(width.size):
        width[i] = 0
    for k in range(n):
        i = s.owner[k]
        for slot in range(s.found[k]):
            if width[i] == work.shape[1]:
                break
            work[i, width[i]] = chosen[k, slot]
            width[i] += 1


@no_alloc
def _with(limit: Trials, operation: int, number: int) -> Trials:
    """Set one limit as a rule's step does: tries only above 0, the others from 0."""
    tries, leaf_tries, local, vary_r, stable = limit
    if operation == SET_CHOOSE_TRIES and number > 0:
        tries = number
    elif operation == SET_CHOOSELEAF_TRIES and number > 0:
        leaf_tries = number
    elif operation == SET_CHOOSE_LOCAL_TRIES and number >= 0:
        local = number
    elif operation == SET_CHOOSELEAF_VARY_R and number >= 0:
        vary_r = number
    elif operation == SET_CHOOSELEAF_STABLE and number >= 0:
        stable = number
    return Trials(tries, leaf_tries, local, vary_r, stable)


@jit
def map_inputs(
    tree: Tree, steps: Ints, tunables: Tunables, reweight: Words, x: Words, size: int
) -> tuple[Ints, Ints]:
    """Run a rule for many inputs.

    ``steps (S, 3)``: operation (TAKE, EMIT and so on) and its two arguments: the item to take; the
    number of replicas (0 or less: that many below ``size``) and their type; the value to set;
    ``reweight (devices,)``: reweights, 16.16 fixed point; device ids lie below its length;
    ``x (n,)``: inputs; ``size``: most items in an answer. Returns items by slot; NONE beyond the
    length and where ``indep`` leaves a hole; items in each answer.

    Two devices of equal weight in one bucket, an answer of one:

    >>> from evenkeel_kernels.ceph.straw2 import straws
    >>> tree = Tree(
    ...     first=np.array([0, 2]), item=np.array([0, 1], np.int32),
    ...     hashed=np.array([0, 1], np.uint32), weight=np.full((1, 2), 65536.0),
    ...     kind=np.array([1], np.int32), straw=straws(),
    ... )
    >>> steps = np.array([[TAKE, -1, 0], [CHOOSE_FIRSTN, 0, 0], [EMIT, 0, 0]], np.int32)
    >>> reweight = np.full(2, 65536, np.uint32)
    >>> answer, length = map_inputs(
    ...     tree, steps, Tunables(), reweight, np.arange(4, dtype=np.uint32), 1
    ... )
    >>> answer.ravel().tolist(), length.tolist()
    ([0, 0, 1, 0], [1, 1, 1, 1])
    """
    # Ceph, ``crush_do_rule`` of ``crush/mapper.c``
    answer = np.full((x.size, size), NONE, np.int32)
    length = np.zeros(x.size, np.int32)
    batch = min(BATCH, x.size)
    state = searches(batch * size, size)
    room = lanes(batch * size, tree)
    work = np.empty((batch, size), np.int32)
    width = np.empty(batch, np.int32)
    for begin in range(0, x.size, BATCH):
        end = min(begin + BATCH, x.size)
        _map_batch(
            tree,
            steps,
            tunables,
            reweight,
            x[begin:end],
            work,
            width[: end - begin],
            answer[begin:end],
            length[begin:end],
            state,
            room,
        )
    return answer, length


@no_alloc
def _map_batch(
    tree: Tree,
    steps: Ints,
    tunables: Tunables,
    reweight: Words,
    x: Words,
    work: Ints,
    width: Ints,
    answer: Ints,
    length: Ints,
    s: Searches,
    room: Lanes,
) -> None:
    size = work.shape[1]
    limit = Trials(
        tunables.choose_total_tries + 1,
        0,
        tunables.choose_local_tries,
        tunables.chooseleaf_vary_r,
        tunables.chooseleaf_stable,
    )
    width[:] = 0
    for step in range(steps.shape[0]):
        operation = steps[step, 0]
        number = steps[step, 1]
        if operation == TAKE:
            work[: x.size, 0] = number
            width[:] = 1
        elif operation == EMIT:
            for i in range(x.size):
                for k in range(min(width[i], size - length[i])):
                    answer[i, length[i] + k] = work[i, k]
                length[i] += min(width[i], size - length[i])
            width[:] = 0
        elif operation >= SET_CHOOSE_TRIES:
            limit = _with(limit, operation, number)
        else:
            in_order = operation == CHOOSE_FIRSTN or operation == CHOOSELEAF_FIRSTN
            to_leaf = operation == CHOOSELEAF_FIRSTN or operation == CHOOSELEAF_INDEP
            replicas = max(number if number > 0 else number + size, 0)
            wanted = steps[step, 2]
            n = _begin(tree, x, work, width, replicas, not in_order, s)
            if in_order:
                usual = 1 if tunables.chooseleaf_descend_once else limit.tries
                given = _with(limit, SET_CHOOSELEAF_TRIES, limit.leaf_tries or usual)
                firstn(tree, reweight, s, n, replicas, wanted, to_leaf, given, room)
            else:
                given = _with(limit, SET_CHOOSELEAF_TRIES, limit.leaf_tries or 1)
                indep(tree, reweight, s, n, replicas, wanted, to_leaf, given, room)
            _gather(s, n, s.leaf if to_leaf else s.out, work, width)


@jit
def hash_pairs(words: Words, others: Words) -> Words:
    """Hash words pair by pair, as placement groups' seeds and primary affinity need it.

    ``words``, ``others (n,)``: the two inputs of each hash. Returns the hashes, (n,).

    >>> hash_pairs(np.array([1], np.uint32), np.array([2], np.uint32)).tolist()
    [3079532188]
    """
    hashed = np.empty(words.size, np.uint32)
    for i in range(words.size):
        hashed[i] = hash2(words[i], others[i])
    return hashed
