"""Ceph's CRUSH: rules run for many inputs at once, bit for bit as Ceph runs them for one.

References
----------
Ceph, ``crush_do_rule`` of ``crush/mapper.c``. Weil, Brandt, Miller, Maltzahn, "CRUSH: Controlled,
Scalable, Decentralized Placement of Replicated Data", SC 2006.
"""

from typing import NamedTuple

import numpy as np

from evenkeel_kernels.build.jit import jit, no_alloc
from evenkeel_kernels.ceph.crush_choose import Searches, Trials, firstn, indep, searches
from evenkeel_kernels.ceph.straw2 import NONE, Ints, Lanes, Tree, Words, lanes
from evenkeel_kernels.core.jenkins_hash import hash2

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

BATCH = 16384
"""Inputs mapped together: enough lanes for every bucket, few enough for the cache."""


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
    tree: Tree,
    steps: Ints,
    tunables: Tunables,
    reweight: Words,
    x: Words,
    size: int,
) -> tuple[Ints, Ints]:
    """Run a rule for many inputs.

    ``steps (S, 3)``: operation (TAKE, EMIT and so on) and its two arguments: the item to take; the
    number of replicas (0 or less: that many below ``size``) and their type; the value to set;
    ``reweight (devices,)``: reweights, 16.16 fixed point; device ids lie below its length;
    ``x (n,)``: inputs; ``size``: most items in an answer. Returns items by slot; NONE beyond the
    length and where ``indep`` leaves a hole; items in each answer.

    References
    ----------
    Ceph, ``crush_do_rule`` of ``crush/mapper.c``.

    Examples
    --------
    Two devices of equal weight in one bucket, an answer of one:

    >>> from evenkeel_kernels.ceph.crush_ln import straws
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

    Examples
    --------
    >>> hash_pairs(np.array([1], np.uint32), np.array([2], np.uint32)).tolist()
    [3079532188]
    """
    hashed = np.empty(words.size, np.uint32)
    for i in range(words.size):
        hashed[i] = hash2(words[i], others[i])
    return hashed
