"""WAGED's greedy fit: each replica in a given order goes to the best node of all.

A node's score for a replica is a sum of six terms. Two of them, how many replicas the node has and
how many of the same group, change only when the node is given one, so they are kept. Two follow
from its usage with the replica on it and are computed for all nodes in passes over contiguous rows.
The last two, for staying where the partition is or was meant to be, concern the few nodes that held
it, which are scored once more by themselves. The arithmetic, 32-bit floats and the order of sums
included, is the original's.

Nodes are in the order in which ties are broken, so that of the best the first one wins. Scores are
never negative, so they compare like their bits, of which a greatest one is found in vector lanes; a
node that may not be used scores less than 0. Replicas of one partition in one state follow each
other and share a scan: placing one changes only its node, whose zone is then closed.

The curve by which usage is scored takes its exponential from Apache Commons Math, which evaluates
it from two tables and a short polynomial, in plain additions and multiplications. About one result
in a thousand differs in the last bit from the C library's, and where nodes are nearly alike a last
bit decides. The tables are computed here, to 60 digits. Their high parts are the original's; of the
low parts the original's last digits are a little off, by less than 2**-70 of the value.

Replicas of a partition in one state are interchangeable. So a scope says which nodes of the old
assignment are kept, and how many replicas remain to be placed. Where there are more nodes than
replicas, those that come first in the old assignment's row count; rows are passed in the order in
which the original would walk them.

Rows are those of assignments: ``first (P + 1,)``, ``node (K,)`` with -1 for a node that is not
among those of the run, and ``state (K,)``. How many replicas there shall be is ``count (Q, S)`` for
partitions of each ``kind (P,)``, S states by falling priority; ``place (P, S)`` is what remains.

References
----------
Apache Helix, ``ConstraintBasedAlgorithm`` and the constraints of its factory,
``UsageSoftConstraint``, ``ClusterModelProvider`` and ``DelayedRebalanceOverwriteUtil``; Apache
Commons Math 3, ``Sigmoid`` and ``FastMath.exp``.
"""

from decimal import Decimal, localcontext
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inline_only, inlined, no_alloc
from evenkeel_kernels.core.problem import index

STEEPNESS = 44.0  # 0.9 at 0.95 of what is estimated, 0.5 at 1, 0.1 at 1.05

# whole exponents that occur: the least usage is 0, and beyond the highest all is infinite
LOWEST, HIGHEST = -45, 709

STEPS = 1024


def _halves(exact: Decimal) -> tuple[float, float]:
    """Split a number into its first 22 or 23 bits, and what is left."""
    near = float(exact)
    scale = 2.0**-60 if near > 1e290 else 1.0
    far = near * scale * 2.0**30
    high = ((near * scale + far) - far) / scale
    return high, float(exact - Decimal(high))


def _powers(base: Decimal, first: int, last: int) -> NDArray[np.float64]:
    """Halves of ``base`` to the powers ``first`` to ``last``: high ones in row 0, low in row 1."""
    values = [base**first]
    for _ in range(first, last):
        values.append(values[-1] * base)
    return np.array([_halves(value) for value in values]).T


with localcontext() as _context:
    _context.prec = 60
    _WHOLE = _powers(Decimal(1).exp(), LOWEST, HIGHEST)
    _PART = _powers((Decimal(1) / STEPS).exp(), 0, STEPS)

WHOLE_HIGH, WHOLE_LOW = _WHOLE[0].copy(), _WHOLE[1].copy()
PART_HIGH, PART_LOW = _PART[0].copy(), _PART[1].copy()


@inlined
def exponential(x: float) -> float:
    """Return e to the power of ``x``, at least -44; infinite from 710 on. O(1).

    >>> exponential(0.0), exponential(1.0), exponential(1e9)
    (1.0, 2.718281828459045, inf)
    """
    near = x if x < 710.0 else 0.0
    whole = np.int32(near)
    if near < 0.0:
        whole = np.int32(whole - np.int32(1))
    part = np.int32((near - whole) * STEPS)
    rest = near - (whole + part / STEPS)
    z = 0.04168701738764507
    z = z * rest + 0.1666666505023083
    z = z * rest + 0.5000000000042687
    z = z * rest + 1.0
    z = z * rest + -3.940510424527919e-20
    place = whole - LOWEST
    high = WHOLE_HIGH[place] * PART_HIGH[part]
    low = (
        WHOLE_HIGH[place] * PART_LOW[part]
        + WHOLE_LOW[place] * PART_HIGH[part]
        + WHOLE_LOW[place] * PART_LOW[part]
    )
    found = (low + high) * z + low + high
    return found if x < 710.0 else np.inf


@inlined
def sigmoid(usage: float) -> float:
    """Score a ``usage`` relative to what is estimated: near 1 below it, near 0 above. O(1).

    >>> sigmoid(0.0), sigmoid(1.0), round(sigmoid(1.05), 3), sigmoid(np.inf)
    (1.0, 0.5, 0.1, 0.0)
    """
    return 1.0 / (1.0 + exponential((usage - 1.0) * STEEPNESS))


NO = -1.0  # score of a node that may not be used

# usage of such a node, while usages are computed; a usage is never as large
SHUT = np.float32(3e38)

# what a node that held the partition gets of the two terms for staying
SAME_STATE, OTHER_STATE = 1.0, 0.5


class WagedNodes(NamedTuple):
    """What is fixed about nodes. n nodes in the order of ties, D keys, Z zones."""

    capacity: NDArray[np.float32]  # (D, n)
    zone: NDArray[np.int32]  # (n,)
    member_first: NDArray[np.int64]  # (Z + 1,)
    member: NDArray[np.int32]  # (n,) nodes of each zone
    limit: NDArray[np.int32]  # (n,) most replicas; 2**31 - 1 for no limit
    void: NDArray[np.int32]  # (E,) nodes without capacity in a scored key


class WagedPartitions(NamedTuple):
    """What is fixed about P partitions in G groups, and where they were."""

    weight: NDArray[np.int32]  # (P, D) of each replica, in whatever state
    group: NDArray[np.int32]  # (P,)
    mask: NDArray[np.int32]  # (P,) row of ``WagedState.closed``
    disabled_first: NDArray[np.int64]  # (P + 1,)
    disabled: NDArray[np.int32]  # (F,) nodes on which the partition is disabled
    held_first: NDArray[np.int64]  # (P + 1,) where it is now
    held_node: NDArray[np.int32]  # (H,) -1 for a node that is not among these
    held_state: NDArray[np.uint8]  # (H,)
    meant_first: NDArray[np.int64]  # (P + 1,) where the baseline has it
    meant_node: NDArray[np.int32]  # (B,)
    meant_state: NDArray[np.uint8]  # (B,)
    row_first: NDArray[np.int64]  # (P + 1,) room for its replicas in ``WagedState``


class WagedTerms(NamedTuple):
    """What scores are made of."""

    weight: NDArray[np.float64]  # (6,) stay, converge, count, group count, top usage, usage
    usage: float  # expected usage; infinite where it is 0, so that all usages score alike
    usage_top: float
    replicas: float  # expected replicas of a node, infinite where it is 0
    group_count: NDArray[np.float64]  # (G,) the same of a group
    group_limit: NDArray[np.int32]  # (G,) most replicas of a group on a node; 2**31 - 1: no limit
    scored: NDArray[np.int64]  # (S,) keys of which the greatest usage counts


class WagedState(NamedTuple):
    """What the fit changes."""

    left: NDArray[np.int32]  # (D, n) capacity that is left
    left_top: NDArray[np.int32]  # (D, n) the same, as if only top states took any
    used: NDArray[np.float32]  # (D, n) capacity less what is left
    used_top: NDArray[np.float32]  # (D, n)
    replicas: NDArray[np.int32]  # (n,)
    group_count: NDArray[np.int32]  # (G, n)
    count_score: NDArray[np.float64]  # (n,) third term
    group_score: NDArray[np.float64]  # (G, n) fourth term, where ``scanned``
    scanned: NDArray[np.bool_]  # (G,) groups of which a replica was placed
    closed: NDArray[np.float32]  # (M, n) SHUT where a mask, or the node's limit, shuts it, else 0
    row_node: NDArray[np.int32]  # (K,) who holds each partition now
    row_state: NDArray[np.uint8]  # (K,)
    row_size: NDArray[np.int32]  # (P,)
    usage: NDArray[np.float32]  # (n,) of the replica in hand
    usage_top: NDArray[np.float32]  # (n,)
    score: NDArray[np.float64]  # (n,)
    bits: NDArray[np.int64]  # (n,) the same memory, read as integers


@no_alloc
def hold(
    nodes: WagedNodes,
    partitions: WagedPartitions,
    terms: WagedTerms,
    state: WagedState,
    owner: NDArray[np.int32],
    node: NDArray[np.int32],
    role: NDArray[np.uint8],
) -> None:
    """Book the replicas that are kept: ``owner``, ``node`` and state ``role`` of each, all (K,)."""
    # To be called once, on a fresh state. O(K D + D n).
    for k in range(owner.shape[0]):
        _book(partitions, state, index(owner[k]), role[k], index(node[k]))
    for n in range(nodes.zone.shape[0]):
        for d in range(nodes.capacity.shape[0]):
            _measure(nodes, state, d, n)
        _count(nodes, terms, state, n)


@no_alloc
def fit(
    nodes: WagedNodes,
    partitions: WagedPartitions,
    terms: WagedTerms,
    state: WagedState,
    owner: NDArray[np.int32],
    role: NDArray[np.uint8],
    begin: int,
    end: int,
) -> int:
    """Place the replicas ``begin`` to ``end`` of an order: ``owner (K,)`` and state ``role (K,)``.

    Returns ``end``, or the place of the first replica for which there is no node. Call it again
    with the next stretch to go on; the answer does not depend on how an order is cut. O((D + 1) n)
    for each scan.
    """
    scanned, as_role = -1, np.uint8(0)
    for at in range(begin, end):
        p = index(owner[at])
        if p != scanned or role[at] != as_role:
            scanned, as_role = p, role[at]
            scan(nodes, partitions, terms, state, p, as_role)
        n = _first_of_the_best(state)
        if n < 0:
            return at
        _book(partitions, state, p, as_role, n)
        for d in range(nodes.capacity.shape[0]):
            _measure(nodes, state, d, n)
        _count(nodes, terms, state, n)
        g = index(partitions.group[p])
        state.group_score[g, n] = _score_of_count(
            terms.weight[3], state.group_count[g, n], terms.group_count[g]
        )
        _close_zone(nodes, state, n)
    return end


@no_alloc
def scan(
    nodes: WagedNodes,
    partitions: WagedPartitions,
    terms: WagedTerms,
    state: WagedState,
    p: int,
    role: np.uint8,
) -> None:
    """Score every node for a replica of partition ``p`` in the state ``role``. O((D + 1) n)."""
    g = index(partitions.group[p])
    count = nodes.zone.shape[0]
    if not state.scanned[g]:
        state.scanned[g] = True
        for n in range(count):
            state.group_score[g, n] = _score_of_count(
                terms.weight[3], state.group_count[g, n], terms.group_count[g]
            )
    _fill_usage(nodes, partitions, terms, state, p)
    weight, expected = terms.weight[5], terms.usage
    weight_top, expected_top = terms.weight[4], terms.usage_top
    if role == 0:
        _fill_usage_top(nodes, partitions, terms, state, p)
        for n in range(count):
            score = state.count_score[n] + state.group_score[g, n]
            score += weight_top * sigmoid(np.float64(state.usage_top[n]) / expected_top)
            score += weight * sigmoid(np.float64(state.usage[n]) / expected)
            state.score[n] = NO if state.usage[n] >= SHUT else score
    else:
        top = weight_top * sigmoid(0.0)
        for n in range(count):
            score = state.count_score[n] + state.group_score[g, n]
            score += top
            score += weight * sigmoid(np.float64(state.usage[n]) / expected)
            state.score[n] = NO if state.usage[n] >= SHUT else score
    for i in range(nodes.void.shape[0]):
        _score_void(nodes, terms, state, role, index(nodes.void[i]))
    for i in range(partitions.disabled_first[p], partitions.disabled_first[p + 1]):
        state.score[partitions.disabled[i]] = NO
    for i in range(partitions.held_first[p], partitions.held_first[p + 1]):
        _score_again(partitions, terms, state, p, role, index(partitions.held_node[i]))
    for i in range(partitions.meant_first[p], partitions.meant_first[p + 1]):
        _score_again(partitions, terms, state, p, role, index(partitions.meant_node[i]))
    for i in range(partitions.row_first[p], partitions.row_first[p] + state.row_size[p]):
        _close_zone(nodes, state, index(state.row_node[i]))


@inline_only
def _fill_usage(
    nodes: WagedNodes, partitions: WagedPartitions, terms: WagedTerms, state: WagedState, p: int
) -> None:
    """Fill ``usage`` with the greatest of the scored keys, and SHUT where there is no room."""
    count = nodes.zone.shape[0]
    mask = index(partitions.mask[p])
    for n in range(count):
        state.usage[n] = state.closed[mask, n]
    for i in range(terms.scored.shape[0]):
        d = terms.scored[i]
        more = np.float32(partitions.weight[p, d])
        for n in range(count):
            usage = (state.used[d, n] + more) / nodes.capacity[d, n]
            state.usage[n] = usage if usage > state.usage[n] else state.usage[n]
    for d in range(nodes.capacity.shape[0]):
        need = partitions.weight[p, d]
        for n in range(count):
            state.usage[n] = SHUT if state.left[d, n] < need else state.usage[n]
    g = index(partitions.group[p])
    most = terms.group_limit[g]
    if most < 2147483647:
        for n in range(count):
            state.usage[n] = SHUT if state.group_count[g, n] >= most else state.usage[n]


@inline_only
def _fill_usage_top(
    nodes: WagedNodes, partitions: WagedPartitions, terms: WagedTerms, state: WagedState, p: int
) -> None:
    """Fill ``usage_top`` with the usage by top states alone."""
    count = nodes.zone.shape[0]
    for n in range(count):
        state.usage_top[n] = np.float32(0.0)
    for i in range(terms.scored.shape[0]):
        d = terms.scored[i]
        more = np.float32(partitions.weight[p, d])
        for n in range(count):
            usage = (state.used_top[d, n] + more) / nodes.capacity[d, n]
            state.usage_top[n] = usage if usage > state.usage_top[n] else state.usage_top[n]


@inline_only
def _score_void(
    nodes: WagedNodes, terms: WagedTerms, state: WagedState, role: np.uint8, n: int
) -> None:
    """Score a node without capacity in some key: Java finds no number better than every number."""
    # what weighs something does not fit there, so only 0 / 0 is left; its score is no number
    if state.score[n] == NO:
        return
    weighty = terms.weight[5] != 0.0 and terms.usage < np.inf
    weighty |= role == 0 and terms.weight[4] != 0.0 and terms.usage_top < np.inf
    for i in range(terms.scored.shape[0]):
        if weighty and nodes.capacity[terms.scored[i], n] == 0.0:
            state.bits[n] = 0x7FF8000000000000


@inline_only
def _score_again(
    partitions: WagedPartitions,
    terms: WagedTerms,
    state: WagedState,
    p: int,
    role: np.uint8,
    n: int,
) -> None:
    """Score a node that held the partition, or was meant to, with the two terms for staying."""
    if n < 0 or not state.score[n] >= 0.0:
        return
    held = _stay(partitions.held_first, partitions.held_node, partitions.held_state, p, role, n)
    meant = _stay(partitions.meant_first, partitions.meant_node, partitions.meant_state, p, role, n)
    known = partitions.held_first[p] < partitions.held_first[p + 1]
    score = terms.weight[0] * (held if known else meant)
    score += terms.weight[1] * (meant if known else 0.0)
    score += state.count_score[n]
    score += state.group_score[index(partitions.group[p]), n]
    top = 0.0
    if role == 0:
        top = np.float64(state.usage_top[n]) / terms.usage_top
    score += terms.weight[4] * sigmoid(top)
    score += terms.weight[5] * sigmoid(np.float64(state.usage[n]) / terms.usage)
    state.score[n] = score


@inline_only
def _stay(
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    state: NDArray[np.uint8],
    p: int,
    role: np.uint8,
    n: int,
) -> float:
    """Value of a node for staying, by one of the two assignments."""
    for i in range(first[p], first[p + 1]):
        if node[i] == n:
            return SAME_STATE if state[i] == role else OTHER_STATE
    return 0.0


@inline_only
def _first_of_the_best(state: WagedState) -> int:
    """Return the first node with the greatest score, -1 if none may be used."""
    count = state.bits.shape[0]
    best = np.int64(-1)
    for n in range(count):
        best = max(best, state.bits[n])
    first = count
    for n in range(count):
        first = min(first, n if state.bits[n] == best else count)
    return -1 if best < 0 else first


@inline_only
def _book(partitions: WagedPartitions, state: WagedState, p: int, role: np.uint8, n: int) -> None:
    """Give node ``n`` a replica of ``p``; what follows from that is for the caller to renew."""
    for d in range(state.left.shape[0]):
        state.left[d, n] -= partitions.weight[p, d]
        if role == 0:
            state.left_top[d, n] -= partitions.weight[p, d]
    state.replicas[n] += np.int32(1)
    state.group_count[partitions.group[p], n] += np.int32(1)
    at = partitions.row_first[p] + state.row_size[p]
    state.row_node[at] = n
    state.row_state[at] = role
    state.row_size[p] += np.int32(1)


@inline_only
def _measure(nodes: WagedNodes, state: WagedState, d: int, n: int) -> None:
    """Renew what a node uses of a key, in 32-bit floats as the original takes the difference."""
    state.used[d, n] = nodes.capacity[d, n] - np.float32(state.left[d, n])
    state.used_top[d, n] = nodes.capacity[d, n] - np.float32(state.left_top[d, n])


@inline_only
def _count(nodes: WagedNodes, terms: WagedTerms, state: WagedState, n: int) -> None:
    """Renew what follows from the number of replicas on a node."""
    state.count_score[n] = _score_of_count(terms.weight[2], state.replicas[n], terms.replicas)
    if state.replicas[n] >= nodes.limit[n]:
        for m in range(state.closed.shape[0]):
            state.closed[m, n] = SHUT


@inline_only
def _score_of_count(weight: float, count: int, expected: float) -> float:
    """Return the term for a number of replicas."""
    return weight * sigmoid(np.float64(count) / expected)


@inline_only
def _close_zone(nodes: WagedNodes, state: WagedState, n: int) -> None:
    """Close the zone of a node that holds the partition in hand."""
    zone = index(nodes.zone[n])
    for i in range(nodes.member_first[zone], nodes.member_first[zone + 1]):
        state.score[nodes.member[i]] = NO


@no_alloc
def crowded(
    first: NDArray[np.int64],
    state: NDArray[np.uint8],
    kind: NDArray[np.int32],
    count: NDArray[np.int32],
) -> bool:
    """Whether some partition has more nodes in a state than it shall have replicas in it.

    ``first (P + 1,)`` and ``state (K,)`` are an assignment, ``kind (P,)`` and ``count (Q, S)`` what
    shall be. O(K).
    """
    for p in range(kind.shape[0]):
        run, last = 0, -1
        for i in range(first[p], first[p + 1]):
            s = index(state[i])
            run = run + 1 if s == last else 1
            last = s
            if run > count[kind[p], s]:
                return True
    return False


@no_alloc
def keep_all_valid(
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    state: NDArray[np.uint8],
    kind: NDArray[np.int32],
    count: NDArray[np.int32],
    anew: NDArray[np.bool_],
    keep: NDArray[np.bool_],
    place: NDArray[np.int32],
) -> None:
    """Keep, for a baseline, what is on a node of the run, but nothing of what is ``anew (P,)``.

    ``first (P + 1,)``, ``node (K,)`` and ``state (K,)`` are the last baseline, ``kind (P,)`` and
    ``count (Q, S)`` what shall be; fills ``keep (K,)`` and ``place (P, S)``. O(K + P S).
    """
    for p in range(kind.shape[0]):
        for s in range(count.shape[1]):
            place[p, s] = count[kind[p], s]
        for i in range(first[p], first[p + 1]):
            s = index(state[i])
            keep[i] = node[i] >= 0 and place[p, s] > 0 and not anew[p]
            if keep[i]:
                place[p, s] -= np.int32(1)


@no_alloc
def keep_where_active(
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    state: NDArray[np.uint8],
    kind: NDArray[np.int32],
    count: NDArray[np.int32],
    keep: NDArray[np.bool_],
    place: NDArray[np.int32],
) -> None:
    """Keep, in an emergency, what is on a node of the run, and place what is on another.

    A replica without a node of either kind is left alone. ``first (P + 1,)``, ``node (K,)`` and
    ``state (K,)`` are the best possible, ``kind (P,)`` and ``count (Q, S)`` what shall be; fills
    ``keep (K,)`` and ``place (P, S)``. O(K + P S).
    """
    for p in range(kind.shape[0]):
        for s in range(count.shape[1]):
            place[p, s] = 0
        run, last = 0, -1
        for i in range(first[p], first[p + 1]):
            s = index(state[i])
            run = run + 1 if s == last else 1
            last = s
            if run <= count[kind[p], s]:
                keep[i] = node[i] >= 0
                place[p, s] += np.int32(node[i] < 0)
            else:
                keep[i] = False


@no_alloc
def keep_what_agrees(
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    state: NDArray[np.uint8],
    meant_first: NDArray[np.int64],
    meant_node: NDArray[np.int32],
    meant_state: NDArray[np.uint8],
    kind: NDArray[np.int32],
    count: NDArray[np.int32],
    keep: NDArray[np.bool_],
    place: NDArray[np.int32],
    made: NDArray[np.int32],
) -> None:
    """Keep, in a partial run, where the best possible agrees with the baseline.

    ``first (P + 1,)``, ``node (K,)`` and ``state (K,)`` are the best possible,
    ``meant_first (P + 1,)``, ``meant_node (B,)`` and ``meant_state (B,)`` the baseline; fills
    ``keep (K,)``, ``place (P, S)`` and ``made (P, S)``, how many replicas there are at all.
    ``kind (P,)`` and ``count (Q, S)`` say what shall be. O(K R + P S), with rows of R replicas.
    """
    # Replica by replica, each using up the node that it matches: a node on which both have it in
    # this state is kept; else one where only the baseline has it is a replica to place; else one
    # where only the best possible has it is kept; else the replica is placed. Of a state there are
    # at most as many replicas as the baseline has.
    for p in range(kind.shape[0]):
        for s in range(count.shape[1]):
            made[p, s] = 0
            place[p, s] = 0  # first: nodes that only the baseline has
        for j in range(meant_first[p], meant_first[p + 1]):
            s = index(meant_state[j])
            if made[p, s] < count[kind[p], s]:
                made[p, s] += np.int32(1)
            place[p, s] += np.int32(meant_node[j] >= 0)
        i = first[p]
        while i < first[p + 1]:
            s = index(state[i])
            end = i
            left = made[p, s]
            while end < first[p + 1] and state[end] == s:
                keep[end] = node[end] >= 0 and _is_meant(
                    meant_first, meant_node, meant_state, p, node[end], state[end]
                )
                if keep[end]:
                    place[p, s] -= np.int32(1)
                    keep[end] = left > 0
                    left -= np.int32(keep[end])
                end += 1
            left = max(left - max(place[p, s], np.int32(0)), np.int32(0))
            place[p, s] = 0
            for k in range(i, end):
                if left > 0 and node[k] >= 0 and not keep[k]:
                    keep[k] = True
                    left -= np.int32(1)
            i = end
        for s in range(count.shape[1]):
            place[p, s] = made[p, s]
        for k in range(first[p], first[p + 1]):
            if keep[k]:
                place[p, index(state[k])] -= np.int32(1)


@no_alloc
def _is_meant(
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    state: NDArray[np.uint8],
    p: int,
    on: int,
    role: int,
) -> bool:
    """Whether a baseline has partition ``p`` on a node in a state."""
    for i in range(first[p], first[p + 1]):
        if node[i] == on:
            return state[i] == role
    return False


@no_alloc
def keep_and_fill(
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    state: NDArray[np.uint8],
    kind: NDArray[np.int32],
    wanted: NDArray[np.int32],
    least: NDArray[np.int32],
    count: NDArray[np.int32],
    keep: NDArray[np.bool_],
    place: NDArray[np.int32],
) -> None:
    """Keep all that is on a node of the run, and place what is missing for the least number active.

    State by state, the first ones first, replicas are added up to the ``count (Q, S)`` of that
    number, until as many were added as are missing. ``first (P + 1,)``, ``node (K,)`` and ``state
    (K,)`` are the best possible, in which a partition must be; ``kind (P,)`` is the partition's
    place in ``wanted (Q,)``, the replicas that it shall have, and ``least (Q,)``, of them active.
    Fills ``keep (K,)`` and ``place (P, S)``. O(K + P S).
    """
    for p in range(kind.shape[0]):
        q = index(kind[p])
        live = 0
        for s in range(count.shape[1]):
            place[p, s] = 0
        for i in range(first[p], first[p + 1]):
            keep[i] = node[i] >= 0
            live += int(keep[i])
            place[p, index(state[i])] += np.int32(keep[i])
        missing = least[q] - live
        known = first[p] < first[p + 1] and live < min(least[q], wanted[q])
        for s in range(count.shape[1]):
            has = place[p, s]
            place[p, s] = 0
            if known and missing > 0:
                place[p, s] = max(count[q, s] - has, np.int32(0))
                missing -= place[p, s]


@no_alloc
def pack_rows(
    row_first: NDArray[np.int64],
    row_size: NDArray[np.int32],
    row_node: NDArray[np.int32],
    row_state: NDArray[np.uint8],
    name: NDArray[np.int32],
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    state: NDArray[np.uint8],
) -> None:
    """Sort each row by state, then by node, and put the rows one after another.

    Row ``p`` is ``row_size (P,)`` entries of ``row_node (K,)`` and ``row_state (K,)`` from
    ``row_first (P + 1,)`` on; ``name (n,)`` is the node that each stands for. Fills ``first (P +
    1,)``, ``node`` and ``state``. O(K R), with rows of R replicas.
    """
    first[0] = 0
    for p in range(row_size.shape[0]):
        begin = first[p]
        for k in range(row_size[p]):
            what, where = row_state[row_first[p] + k], name[row_node[row_first[p] + k]]
            i = begin + k
            while i > begin and (
                state[i - 1] > what or (state[i - 1] == what and node[i - 1] > where)
            ):
                state[i], node[i] = state[i - 1], node[i - 1]
                i -= 1
            state[i], node[i] = what, where
        first[p + 1] = begin + row_size[p]


@no_alloc
def into_slots(
    slot_first: NDArray[np.int64],
    before: NDArray[np.int32],
    led: NDArray[np.int16],
    first: NDArray[np.int64],
    node: NDArray[np.int32],
    state: NDArray[np.uint8],
    after: NDArray[np.int32],
    leader: NDArray[np.int16],
) -> int:
    """Put an assignment into the slots of a placement; returns how many replicas had none.

    A node stays in the slot that it had ``before (K,)``; the others fill the free slots, the higher
    states first. The slot ``led (P,)`` goes on leading if its node is in the top state, else the
    first slot does whose node is. ``slot_first (P + 1,)`` says where slots begin, ``first (P +
    1,)``, ``node (R,)`` and ``state (R,)`` are the assignment; fills ``after (K,)`` and ``leader
    (P,)``. O(K R), with rows of R replicas.
    """
    spilled = 0
    for p in range(led.shape[0]):
        begin, end = slot_first[p], slot_first[p + 1]
        for k in range(begin, end):
            after[k] = -1
            if before[k] >= 0 and not _within(before, begin, k, before[k]):
                if _within(node, first[p], first[p + 1], before[k]):
                    after[k] = before[k]
        free = begin
        for i in range(first[p], first[p + 1]):
            if _within(after, begin, end, node[i]):
                continue
            while free < end and after[free] >= 0:
                free += 1
            if free == end:
                spilled += 1
            else:
                after[free] = node[i]
        leader[p] = -1
        for k in range(begin, end):
            if after[k] >= 0 and _is_top(first[p], first[p + 1], node, state, after[k]):
                if leader[p] < 0 or k - begin == led[p]:
                    leader[p] = k - begin
    return spilled


@no_alloc
def _within(node: NDArray[np.int32], begin: int, end: int, sought: int) -> bool:
    """Whether ``node[begin:end]`` holds a node."""
    for i in range(begin, end):
        if node[i] == sought:
            return True
    return False


@no_alloc
def _is_top(
    begin: int, end: int, node: NDArray[np.int32], state: NDArray[np.uint8], sought: int
) -> bool:
    """Whether a node is in the top state in ``node[begin:end]``."""
    for i in range(begin, end):
        if node[i] == sought:
            return state[i] == 0
    return False
