"""CRUSH's searches: the replicas of one input below one bucket, many searches at once.

Searches do not depend on each other, so all of a batch advance together, one trial each per round:
every round is one descent of many lanes (``crush_ceph_straw2``) and a short scalar pass that
accepts the item, or moves the search on to its next trial. Retries need no special case: a search
that collides just stays in the batch for longer.

References
----------
Ceph, ``crush/mapper.c``: ``crush_choose_firstn``, ``crush_choose_indep``, ``is_out``.
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
)
from evenkeel_kernels.core.jenkins_hash import hash2


class Trials(NamedTuple):
    """The trials that a choosing step may make, after what the rule has set.

    Attributes
    ----------
    tries, leaf_tries : int
        Of one replica; of one leaf search.
    local : int
        Within the same bucket after a collision.
    vary_r, stable : int
        Whether a leaf search continues from its parent's trial number, shifted right by one less;
        whether it does not depend on the replica's position.
    """

    tries: int
    leaf_tries: int
    local: int
    vary_r: int
    stable: int


class Searches(NamedTuple):
    """State of up to C searches of up to R replicas each, indexed by search.

    Attributes
    ----------
    owner : (C,) int64
        Which input of the batch it is for.
    x : (C,) uint32
        That input.
    start : (C,) int32
        Bucket that it looks below.
    slots : (C,) int32
        Replicas it has room for.
    found : (C,) int32
        Replicas found (firstn), or slots settled (indep).
    rep, failed, local : (C,) int32
        Replica at issue; its failed trials; those since it last started from the top.
    out, leaf : (C, R) int32
        Items chosen, and the devices below them.
    at, row, r, item : (C,)
        The lane of its descent, as in ``descend``.
    leaf_at, leaf_row, leaf_base, leaf_r, leaf_item, leaf_local : (C,)
        The lane of its leaf search; ``leaf_base`` is the number of the first trial.
    active, leafing : (C,) int64
        Searches not yet done; those in a leaf search.
    """

    owner: Longs
    x: Words
    start: Ints
    slots: Ints
    found: Ints
    rep: Ints
    failed: Ints
    local: Ints
    out: Ints
    leaf: Ints
    at: Ints
    row: Ints
    r: Words
    item: Ints
    leaf_at: Ints
    leaf_row: Ints
    leaf_base: Ints
    leaf_r: Words
    leaf_item: Ints
    leaf_local: Ints
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

    A replica that finds nothing is left out, and the next ones move up. Slots not yet filled are
    UNDEFINED, so that an undefined item counts as held, which is a failed trial like a collision.

    ``reweight (devices,)``: reweights, 16.16 fixed point; ``n``: how many searches there are;
    ``replicas``: replicas that each tries to find; ``wanted``: their type; ``to_leaf``: whether a
    device below each is wanted.

    References
    ----------
    Ceph, ``crush_choose_firstn``.
    """
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

    All undefined slots take turns: slot ``rep`` tries trial ``rep + replicas * round`` in a round.
    Where leaves are wanted and the type chosen is the device itself, a slot that ends undefined has
    as its leaf the last device that was tried and is out, as in Ceph.

    ``reweight (devices,)``: reweights, 16.16 fixed point; ``s``, ``n``, ``replicas``, ``wanted``,
    ``to_leaf``, ``limit``, ``room``: as for ``firstn``; ``slots`` may be fewer than ``replicas``.

    References
    ----------
    Ceph, ``crush_choose_indep``.
    """
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
