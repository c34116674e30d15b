"""Choose leaders so that the fullest node in any dimension carries least; replicas stay.

Each partition is led over one of its *arcs*, one for each replica that may lead it, and the load
that leading adds to the node counts in units of the node's target. The search lowers a penalty, the
sum of the squares of all load above a threshold; where no lead alone lowers it, two change at once,
and where that fails, too, an annealing walk changes some at random.

No node, and no domain with a capacity of its own, is given more leads than it has room for. The
leader of a partition carries so much more, or less, than its followers. A *row* is a node or a
domain. It carries at most its capacity, or its initial load where that was more already.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, inlined, no_alloc
from evenkeel_kernels.core.leadership import Leading, leave_lead, take_lead
from evenkeel_kernels.core.problem import squared_excess
from evenkeel_kernels.core.rng import advance

# a change of the penalty that is worth making; what is nearer to 0 may be rounding
LEAST_GAIN = -1e-13

COOLING_STEP = 64
UNIT = 2.0**-53


@by_reference
class LeadRoom(NamedTuple):
    """What rows carry by who leads what. M rows, C dimensions in which room may run out."""

    # (N, T) the rows of each node, itself first; -1 where it is in no domain of a tier
    row: NDArray[np.int64]
    weight: NDArray[np.float64]  # (P, C) what leading each partition adds
    base: NDArray[np.float64]  # (M, C) what rows carry whichever leads
    most: NDArray[np.float64]  # (M, C) the most that they may
    load: NDArray[np.float64]  # (M, C) what they carry; changed


@no_alloc
def move_load(room: LeadRoom, p: int, here: int, there: int) -> None:
    """Take the lead of ``p`` off node ``here``, -1 for none, and put it on ``there``. O(T C)."""
    if room.load.shape[1] == 0:
        return
    for t in range(room.row.shape[1]):
        for c in range(room.load.shape[1]):
            if here >= 0 and room.row[here, t] >= 0:
                room.load[room.row[here, t], c] -= room.weight[p, c]
            if room.row[there, t] >= 0:
                room.load[room.row[there, t], c] += room.weight[p, c]


@inlined
def has_room(room: LeadRoom, p: int, here: int, there: int) -> bool:
    """Whether node ``there`` may lead ``p`` instead of ``here``. O(T C)."""
    # who leads no more carries more than before where leading weighs less than following
    if room.load.shape[1] == 0:
        return True
    for t in range(room.row.shape[1]):
        left, to = room.row[here, t], room.row[there, t]
        if left == to:
            continue
        for c in range(room.load.shape[1]):
            more = room.weight[p, c]
            if to >= 0 and more > 0.0 and room.load[to, c] + more > room.most[to, c]:
                return False
            if left >= 0 and more < 0.0 and room.load[left, c] - more > room.most[left, c]:
                return False
    return True


@inlined
def stays_within(room: LeadRoom, n: int) -> bool:
    """Whether a node, and the domains that it is in, carry no more than they may. O(T C)."""
    for t in range(room.row.shape[1]):
        for c in range(room.load.shape[1]):
            if room.row[n, t] >= 0 and room.load[room.row[n, t], c] > room.most[room.row[n, t], c]:
                return False
    return True


@by_reference
class LeaderAssignment(NamedTuple):
    """Who may lead what, who does, how full nodes are by it. A arcs, N nodes, D dimensions."""

    # (P + 1,) arcs of partition p are ``first[p] : first[p + 1]``; each has one at least
    first: NDArray[np.int64]
    node: NDArray[np.int64]  # (A,) node of each arc
    share: NDArray[np.float64]  # (A, D) what leading there adds, in units of the node's target
    taken: NDArray[np.int64]  # (P,) the arc over which each partition is led; changed
    level: NDArray[np.float64]  # (N, D) load of each node in units of its target; changed
    leading: Leading  # the partitions that each node leads; changed
    room: LeadRoom  # what leading takes of what nodes and domains can carry; changed


@no_alloc
def rebuild(assignment: LeaderAssignment, base: NDArray[np.float64]) -> None:
    """Fill levels, lists and loads from ``taken``, over ``base (N, D)``. O(P D + N D)."""
    leading, room = assignment.leading, assignment.room
    for m in range(room.load.shape[0]):
        for c in range(room.load.shape[1]):
            room.load[m, c] = room.base[m, c]
    for n in range(base.shape[0]):
        leading.led[n] = 0
        leading.first[n] = -1
        for d in range(base.shape[1]):
            assignment.level[n, d] = base[n, d]
    for p in range(assignment.taken.shape[0] - 1, -1, -1):
        a = assignment.taken[p]
        take_lead(leading, assignment.node[a], p)
        for d in range(base.shape[1]):
            assignment.level[assignment.node[a], d] += assignment.share[a, d]
        move_load(room, p, -1, assignment.node[a])


@no_alloc
def fullest(assignment: LeaderAssignment) -> float:
    """Greatest level anywhere. O(N D)."""
    most = -np.inf
    for n in range(assignment.level.shape[0]):
        for d in range(assignment.level.shape[1]):
            most = max(most, assignment.level[n, d])
    return most


@inlined
def shifted(assignment: LeaderAssignment, a: int, b: int, threshold: float) -> float:
    """Change of the penalty if what is led over arc ``a`` were led over ``b``."""
    here, there = assignment.node[a], assignment.node[b]
    change = 0.0
    if here == there:
        return change
    for d in range(assignment.level.shape[1]):
        before = squared_excess(assignment.level[here, d], threshold) + squared_excess(
            assignment.level[there, d], threshold
        )
        less, more = (
            assignment.level[here, d] - assignment.share[a, d],
            assignment.level[there, d] + assignment.share[b, d],
        )
        change += squared_excess(less, threshold) + squared_excess(more, threshold) - before
    return change


@inlined
def may_take(assignment: LeaderAssignment, p: int, b: int) -> bool:
    """Whether there is room for partition ``p`` to be led over arc ``b`` instead. O(tiers D)."""
    return has_room(assignment.room, p, assignment.node[assignment.taken[p]], assignment.node[b])


@no_alloc
def hand_over(assignment: LeaderAssignment, p: int, b: int) -> None:
    """Let partition ``p`` be led over arc ``b``. O(D)."""
    a = assignment.taken[p]
    here, there = assignment.node[a], assignment.node[b]
    for d in range(assignment.level.shape[1]):
        assignment.level[here, d] -= assignment.share[a, d]
        assignment.level[there, d] += assignment.share[b, d]
    move_load(assignment.room, p, here, there)
    leave_lead(assignment.leading, here, p)
    take_lead(assignment.leading, there, p)
    assignment.taken[p] = b


@inlined
def is_above(assignment: LeaderAssignment, n: int, threshold: float) -> bool:
    """Whether a node is above the threshold in some dimension."""
    for d in range(assignment.level.shape[1]):
        if assignment.level[n, d] > threshold:
            return True
    return False


@no_alloc
def descend(assignment: LeaderAssignment, threshold: float) -> int:
    """Hand leads on one by one, from nodes above ``threshold``, until that lowers nothing more.

    Returns how often. O(A D) for each sweep.
    """
    changes = 0
    before = -1
    while changes != before:
        before = changes
        for p in range(assignment.taken.shape[0]):
            a = assignment.taken[p]
            if not is_above(assignment, assignment.node[a], threshold):
                continue
            best = -1
            least = LEAST_GAIN
            for b in range(assignment.first[p], assignment.first[p + 1]):
                if b != a:
                    change = shifted(assignment, a, b, threshold)
                    if change < least and may_take(assignment, p, b):
                        best, least = b, change
            if best >= 0:
                hand_over(assignment, p, best)
                changes += 1
    return changes


@no_alloc
def trade(assignment: LeaderAssignment, threshold: float, work: NDArray[np.int64]) -> int:
    """Hand on two leads at once where that lowers the penalty, the second from the first one's end.

    Each lead of a node above ``threshold`` is the first of such a pair at most once. Ends once
    ``work (1,)`` is used up, from which each pair looked at is taken. Returns how many changed.
    O(R^2 D) for each lead and each one of the node it goes to.
    """
    changes = 0
    leading = assignment.leading
    for p in range(assignment.taken.shape[0]):
        a = assignment.taken[p]
        if work[0] <= 0 or not is_above(assignment, assignment.node[a], threshold):
            continue
        done = False
        for b in range(assignment.first[p], assignment.first[p + 1]):
            if b == a or done:
                continue
            alone = shifted(assignment, a, b, threshold)
            hand_over(assignment, p, b)
            q = leading.first[assignment.node[b]]
            while q >= 0 and not done:
                follower = leading.next[q]
                if q != p:
                    work[0] -= assignment.first[q + 1] - assignment.first[q]
                    for c in range(assignment.first[q], assignment.first[q + 1]):
                        own = assignment.taken[q]
                        if c == own:
                            continue
                        if alone + shifted(assignment, own, c, threshold) >= LEAST_GAIN:
                            continue
                        hand_over(assignment, q, c)
                        if fit_together(assignment, a, b, c):
                            changes += 1
                            done = True
                            break
                        hand_over(assignment, q, own)
                q = follower
            if not done:
                hand_over(assignment, p, a)
    return changes


@inlined
def fit_together(assignment: LeaderAssignment, a: int, b: int, c: int) -> bool:
    """Whether all that these arcs concern have room for what they carry now. O(tiers D)."""
    node, room = assignment.node, assignment.room
    alone = stays_within(room, node[a]) and stays_within(room, node[b])
    return alone and stays_within(room, node[c])


@no_alloc
def perturb(
    assignment: LeaderAssignment,
    threshold: float,
    work: int,
    hot: float,
    cold: float,
    random: NDArray[np.uint64],
) -> None:
    """Hand leads on at random while a temperature falls, those that lower the penalty always.

    ``threshold``: level above which the penalty begins; ``work``: leads to try; ``hot``, ``cold``:
    temperature at the beginning and at the end, in units of the penalty; both above 0; ``random
    (1,)``: state of the generator, not 0; changed.
    """
    partitions = np.uint64(assignment.taken.shape[0])
    fall = (cold / hot) ** (COOLING_STEP / max(work, 1))
    temperature = hot
    now = random[0]
    for step in range(work):
        if step % COOLING_STEP == COOLING_STEP - 1:
            temperature *= fall
        now = advance(now)
        p = int(np.int64(((now >> np.uint64(32)) * partitions) >> np.uint64(32)))
        first, arcs = assignment.first[p], assignment.first[p + 1] - assignment.first[p]
        if arcs < 2:
            continue
        a = assignment.taken[p]
        skip = 1 + np.int64((now & np.uint64(0xFFFF)) % np.uint64(arcs - 1))
        b = int(first + (a - first + skip) % arcs)
        now = advance(now)
        accepted = -temperature * np.log((np.float64(now >> np.uint64(11)) + 1.0) * UNIT)
        if shifted(assignment, a, b, threshold) <= accepted and may_take(assignment, p, b):
            hand_over(assignment, p, b)
    random[0] = now


@no_alloc
def restore(assignment: LeaderAssignment, began: NDArray[np.int64], most: float) -> int:
    """Give leads back to the arcs ``began (P,)``, -1 for none, where no level passes ``most``.

    Returns how many went back. O(P D) for each sweep.
    """
    restored = 0
    before = -1
    while restored != before:
        before = restored
        for p in range(began.shape[0]):
            a, b = assignment.taken[p], began[p]
            if b < 0 or a == b:
                continue
            fits = may_take(assignment, p, b)
            for d in range(assignment.level.shape[1]):
                more = assignment.level[assignment.node[b], d] + assignment.share[b, d]
                less = assignment.level[assignment.node[a], d] - assignment.share[a, d]
                if more > most or less > most:
                    fits = False
            if fits:
                hand_over(assignment, p, b)
                restored += 1
    return restored
