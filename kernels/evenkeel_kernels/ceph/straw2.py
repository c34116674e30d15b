"""Evaluate straw2 draws, and the descent through a CRUSH hierarchy, for a batch of inputs at once.

Each entry of the batch, a *lane*, asks which item of a bucket input ``x`` draws at trial ``r``.
Lanes at the same bucket are brought together, so that the inner loop runs over lanes with one item
and one weight: the hash, the table look-up, the division and the comparison all stay in the
processor's vector lanes, whatever the size of the bucket.

straw2 draws ``(ln(u) - 2**48) / weight`` for a 16-bit hash ``u`` and lets the largest draw win.
Ceph's fixed-point logarithm has only 65,536 arguments, so all of it is one table, computed once;
kernels take ``straws()``, the distances ``2**48 - ln(u)``, and look for the shortest straw instead.

Ceph's own evaluation goes through three tables. Two follow closed formulas; the third was meant to,
but the numbers that Ceph ships differ from the formula in most places, and every placement in every
cluster depends on them. So they are reproduced here as shipped: a formula, an offset that most
entries have, a list of those that have none, and a list of the irregular ones.

References
----------
Ceph, ``crush/crush_ln_table.h`` and ``crush_ln`` of ``crush/mapper.c``: a logarithm to base 2 with
44 fractional bits.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenkeel_kernels.build.jit import inlined, jit, no_alloc
from evenkeel_kernels.core.jenkins_hash import SEED, X, Y, mix

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]

# no item, and none to come: Ceph's CRUSH_ITEM_NONE, which also fills holes in answers
NONE = 0x7FFFFFFF

UNDEFINED = 0x7FFFFFFE  # no item yet; another trial may find one

HALF = 16
WIDTH = 2 * HALF  # lanes drawn together: two of the widest vectors of words

LOW = np.uint32(0xFFFF)

ONE = 1 << 48  # the upper end of the logarithm's range: 16 with 44 fractional bits

OFFSET = 0x147700000  # what most entries of the fine table lie above their formula

REGULAR = frozenset(  # entries of the fine table that follow their formula
    {0, 1, 203, 216, 222, 233, 237, 238, 239, 243, 244, 245, 246, 248, 249, *range(250, 256)}
)

IRREGULAR = {  # entries of the fine table that follow nothing
    56: 0xA2B07F3458,
    127: 0x16DF6CA19BD,
    134: 0x182B07F3458,
    181: 0x209C06E6212,
    184: 0x212B07F3458,
    188: 0x21D6A73A78F,
    193: 0x22C23679B4E,
    198: 0x23A2C3B0EA4,
    199: 0x23D13EE805B,
    200: 0x24035E9221F,
    207: 0x25492644D65,
    210: 0x25D13EE805B,
    212: 0x26296453882,
    225: 0x287BDBF5255,
    227: 0x28D13EE805B,
    228: 0x29035E9221F,
    229: 0x29296453882,
    231: 0x29902A37AAB,
    235: 0x2A4C7605D61,
    236: 0x2A7BDBF5255,
    240: 0x2B296453882,
    241: 0x2B5D022D80F,
    247: 0x2C61A5E8F4C,
}

BITS = 48
GUARD = 160


class Tree(NamedTuple):
    """A CRUSH hierarchy as arrays; bucket ``b`` is the one whose id is ``-1 - b``."""

    first: Longs  # (B + 1,) bucket ``b`` holds the items ``first[b]`` to ``first[b + 1]``
    item: Ints  # (I,) ids: devices from 0, buckets below 0
    hashed: Words  # (I,) what is hashed for an item: its id, or a substitute, as two's complement
    # (W, I) weight of an item within its bucket, 16.16 fixed point, for each output position;
    # positions beyond the last row use the last row
    weight: Floats
    kind: Ints  # (B,) type of each bucket, above 0; -1 where no bucket has that id
    straw: Floats  # (65536,) ``crush_ceph_ln.straws()``


class Lanes(NamedTuple):
    """Scratch of ``straw2`` and ``descend`` for up to C lanes."""

    tally: Longs  # (B * W,) lanes per bucket and position; all 0 between calls
    touched: Longs  # (C,) buckets that have lanes
    order: Longs  # (C,) lanes, brought together by bucket
    pending: Longs  # (C,) lanes still descending
    # (C,) for each lane the place of the drawn item in ``Tree.item``; -1 in an empty bucket
    drawn: Longs
    # x, r, u: (WIDTH,) input, trial and hash of the lanes drawn together
    x: Words
    r: Words
    u: Words
    # straw, best: (WIDTH,) their present and their shortest straws
    straw: Floats
    best: Floats
    place: Longs  # (WIDTH,) who drew the shortest


@jit
def lanes(capacity: int, tree: Tree) -> Lanes:
    """Make scratch for up to ``capacity`` lanes in ``tree``.

    ``capacity``: how many lanes at most.
    """
    return Lanes(
        np.zeros(tree.kind.size * tree.weight.shape[0], np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.zeros(WIDTH, np.uint32),
        np.zeros(WIDTH, np.uint32),
        np.empty(WIDTH, np.uint32),
        np.empty(WIDTH, np.float64),
        np.empty(WIDTH, np.float64),
        np.empty(WIDTH, np.int64),
    )


@inlined
def _hash_pair(
    x0: np.uint32, x1: np.uint32, item: np.uint32, r0: np.uint32, r1: np.uint32
) -> tuple[np.uint32, np.uint32]:
    """``hash3`` of two lanes, mix by mix in turn, so that neither waits for its own last result."""
    h0 = np.uint32(SEED ^ x0 ^ item ^ r0)
    h1 = np.uint32(SEED ^ x1 ^ item ^ r1)
    x0, i0, h0 = mix(x0, item, h0)
    x1, i1, h1 = mix(x1, item, h1)
    r0, p0, h0 = mix(r0, X, h0)
    r1, p1, h1 = mix(r1, X, h1)
    q0, x0, h0 = mix(Y, x0, h0)
    q1, x1, h1 = mix(Y, x1, h1)
    i0, p0, h0 = mix(i0, p0, h0)
    i1, p1, h1 = mix(i1, p1, h1)
    q0, r0, h0 = mix(q0, r0, h0)
    q1, r1, h1 = mix(q1, r1, h1)
    return h0, h1


@no_alloc
def _draw(
    tree: Tree, bucket: int, row: int, begin: int, end: int, x: Words, r: Words, room: Lanes
) -> None:
    """Draw from one bucket for the lanes ``room.order[begin:end]``, into ``room.drawn``."""
    low = tree.first[bucket]
    high = tree.first[bucket + 1]
    if low == high:
        for k in range(begin, end):
            room.drawn[room.order[k]] = -1
        return
    for base in range(begin, end, WIDTH):
        width = min(WIDTH, end - base)
        for i in range(width):
            lane = room.order[base + i]
            room.x[i] = x[lane]
            room.r[i] = r[lane]
        for i in range(WIDTH):
            room.best[i] = np.inf
            room.place[i] = low  # where every weight is 0 the first item wins
        for j in range(low, high):
            weight = tree.weight[row, j]
            if weight == 0.0:
                continue
            hashed = tree.hashed[j]
            for i in range(HALF):
                u0, u1 = _hash_pair(
                    room.x[i], room.x[i + HALF], hashed, room.r[i], room.r[i + HALF]
                )
                room.u[i] = u0 & LOW
                room.u[i + HALF] = u1 & LOW
            for i in range(WIDTH):  # the look-ups apart, so that the divisions are vectorised
                room.straw[i] = tree.straw[room.u[i]]
            for i in range(WIDTH):
                straw = np.floor(room.straw[i] / weight)
                best = room.best[i]
                place = room.place[i]
                room.best[i] = min(straw, best)
                room.place[i] = j if straw < best else place
        for i in range(width):
            room.drawn[room.order[base + i]] = room.place[i]


@no_alloc
def straw2(
    tree: Tree, asking: Longs, n: int, at: Ints, row: Ints, x: Words, r: Words, room: Lanes
) -> None:
    """Draw one item of its bucket for each asking lane, into ``room.drawn``.

    ``asking (n or more,)``: the lanes that ask; all arrays below are indexed by lane; ``n``: how
    many ask; ``at``: bucket that a lane stands at; ``row``: row of ``tree.weight`` that is in force
    for it; ``x``, ``r``: input and trial.
    """
    # The item with the shortest straw wins, ``floor(straw / weight)``; the first of equals. An item
    # of weight 0 wins only where all weights are 0, and then the first does.
    # Ceph, ``bucket_straw2_choose`` of ``crush/mapper.c``
    rows = tree.weight.shape[0]
    buckets = 0
    for k in range(n):
        key = at[asking[k]] * rows + row[asking[k]]
        if room.tally[key] == 0:
            room.touched[buckets] = key
            buckets += 1
        room.tally[key] += 1
    begin = 0
    for t in range(buckets):
        key = room.touched[t]
        begin, room.tally[key] = begin + room.tally[key], begin
    for k in range(n):
        lane = asking[k]
        key = at[lane] * rows + row[lane]
        room.order[room.tally[key]] = lane
        room.tally[key] += 1
    begin = 0
    for t in range(buckets):
        key = room.touched[t]
        end = room.tally[key]
        room.tally[key] = 0
        _draw(tree, key // rows, key % rows, begin, end, x, r, room)
        begin = end


@no_alloc
def descend(
    tree: Tree,
    devices: int,
    wanted: int,
    asking: Longs,
    n: int,
    at: Ints,
    row: Ints,
    x: Words,
    r: Words,
    item: Ints,
    room: Lanes,
) -> None:
    """Let each asking lane draw its way down to an item of the wanted type.

    ``devices``: device ids lie below it; ``wanted``: the type to reach; 0 is a device; ``asking``,
    ``n``: as for ``straw2``; ``at``: bucket that a lane starts from, and, after the call, the one
    that it drew the item from; ``row``, ``x``, ``r``: as for ``straw2``; the trial is the same at
    every level; ``item``: the answer: the item; UNDEFINED where an empty bucket ended the descent;
    NONE where it ended at a device although another type is wanted.
    """
    # Ceph, the inner loops of ``crush_choose_firstn`` and ``crush_choose_indep``
    pending = room.pending
    for k in range(n):
        pending[k] = asking[k]
    while n > 0:
        straw2(tree, pending, n, at, row, x, r, room)
        left = 0
        for k in range(n):
            lane = pending[k]
            place = room.drawn[lane]
            if place < 0:
                item[lane] = UNDEFINED
                continue
            found = tree.item[place]
            kind = 0 if found >= 0 else tree.kind[-1 - found]
            if kind == wanted and found < devices:
                item[lane] = found
            elif found >= 0:
                item[lane] = NONE
            else:
                at[lane] = -1 - found
                pending[left] = lane
                left += 1
        n = left


def _log2(numerator: int, denominator: int) -> int:
    """Floor of ``2**48 * log2(numerator / denominator)`` for a ratio in [1, 2), by squaring."""
    x = (numerator << GUARD) // denominator
    digits = 0
    for _ in range(BITS):
        x = x * x >> GUARD
        digits <<= 1
        if x >> GUARD >= 2:
            x >>= 1
            digits |= 1
    return digits


@cache
def logarithms() -> npt.NDArray[np.int64]:
    """Tabulate ``crush_ln``.

    Returns about ``2**44 * log2(u + 1)`` for every 16-bit ``u``. Read-only. Neighbours are often
    equal, and the last value lies below the last but one, (65536,).

    >>> ln = logarithms()
    >>> int(ln[0]), int(ln[1]) == 2**44, int(ln[65534]) > int(ln[65535])
    (0, True, True)
    """
    # Ceph, ``crush_ln`` of ``crush/mapper.c``
    k = range(129)
    reciprocal = np.array([-((-(ONE << 7)) // (128 + i)) for i in k], np.uint64)
    coarse = np.array([_log2(128 + i, 128) for i in k[:-1]] + [ONE - (1 << 32)], np.int64)
    fine = np.array(
        [
            IRREGULAR[i]
            if i in IRREGULAR
            else _log2(32768 + i, 32768) + OFFSET * (i not in REGULAR)
            for i in range(256)
        ],
        np.int64,
    )
    t = np.arange(1, 65537, dtype=np.int64)
    top = np.minimum(np.frexp(t)[1].astype(np.int64) - 1, 15)
    t <<= 15 - top
    k128 = (t >> 8) - 128
    j = ((t.astype(np.uint64) * reciprocal[k128]) >> np.uint64(48)).astype(np.int64) & 255
    table: npt.NDArray[np.int64] = (top << 44) + ((coarse[k128] + fine[j]) >> 4)
    table.setflags(write=False)
    return table


@cache
def straws() -> npt.NDArray[np.float64]:
    """Tabulate the straw that each 16-bit hash draws, before division by the item's weight.

    Returns ``2**48 - crush_ln(u)``, whole numbers in (0, 2**48]. As a double holds them and any
    32-bit weight exactly, and a quotient that is not whole stays clear of the next whole number by
    more than its rounding error, ``floor(straw / weight)`` in doubles is Ceph's integer division,
    (65536,).

    >>> float(straws()[0]) == 2.0**48
    True
    """
    return (ONE - logarithms()).astype(np.float64)
