"""Bob Jenkins' 32-bit hash as CRUSH uses it, and Java's hash of a string.

Helix's ``JenkinsHash`` and Ceph's ``rjenkins1`` are the same function of one to three inputs; Ceph
adds four and five. The functions here take and give ``uint32`` and are inlined where they are
called, so that a plain loop over an array of inputs runs in the processor's vector lanes.

References
----------
Apache Helix, ``JenkinsHash`` (constants, one to three inputs); Ceph, ``rjenkins1`` (one to five
inputs); the Java language library, ``String.hashCode`` (31 * h + code unit, in 32 bits).
"""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inlined, jit

SEED = np.uint32(1315423911)
X = np.uint32(231232)
Y = np.uint32(1232)


@inlined
def mix(a: np.uint32, b: np.uint32, c: np.uint32) -> tuple[np.uint32, np.uint32, np.uint32]:
    """Mix three words; the nine lines that every hash below is made of.

    ``a``, ``b``, ``c``: the state; each is replaced. Returns the mixed ``a, b, c``.

    >>> tuple(map(int, mix(np.uint32(1), np.uint32(2), np.uint32(3))))
    (120349509, 1098030347, 3082062082)
    """
    a = np.uint32((a - b - c) ^ (c >> 13))
    b = np.uint32((b - c - a) ^ (a << 8))
    c = np.uint32((c - a - b) ^ (b >> 13))
    a = np.uint32((a - b - c) ^ (c >> 12))
    b = np.uint32((b - c - a) ^ (a << 16))
    c = np.uint32((c - a - b) ^ (b >> 5))
    a = np.uint32((a - b - c) ^ (c >> 3))
    b = np.uint32((b - c - a) ^ (a << 10))
    c = np.uint32((c - a - b) ^ (b >> 15))
    return a, b, c


@inlined
def hash1(a: np.uint32) -> np.uint32:
    """Hash one word.

    ``a``: the input; a negative number enters as its two's complement.

    >>> int(hash1(np.uint32(1)))
    3574081617
    """
    x = X
    y = Y
    h = np.uint32(SEED ^ a)
    b = a
    b, x, h = mix(b, x, h)
    y, a, h = mix(y, a, h)
    return h


@inlined
def hash2(a: np.uint32, b: np.uint32) -> np.uint32:
    """Hash two words.

    >>> int(hash2(np.uint32(1), np.uint32(2)))
    3079532188
    """
    x = X
    y = Y
    h = np.uint32(SEED ^ a ^ b)
    a, b, h = mix(a, b, h)
    x, a, h = mix(x, a, h)
    b, y, h = mix(b, y, h)
    return h


@inlined
def hash3(a: np.uint32, b: np.uint32, c: np.uint32) -> np.uint32:
    """Hash three words: CRUSH's draw, of (input, item, trial).

    >>> int(hash3(np.uint32(1), np.uint32(2), np.uint32(3)))
    1935332395
    """
    x = X
    y = Y
    h = np.uint32(SEED ^ a ^ b ^ c)
    a, b, h = mix(a, b, h)
    c, x, h = mix(c, x, h)
    y, a, h = mix(y, a, h)
    b, x, h = mix(b, x, h)
    y, c, h = mix(y, c, h)
    return h


@inlined
def hash4(a: np.uint32, b: np.uint32, c: np.uint32, d: np.uint32) -> np.uint32:
    """Hash four words (Ceph only).

    >>> one, two, three, four = np.arange(1, 5, dtype=np.uint32)
    >>> int(hash4(one, two, three, four))
    1768759062
    """
    x = X
    y = Y
    h = np.uint32(SEED ^ a ^ b ^ c ^ d)
    a, b, h = mix(a, b, h)
    c, d, h = mix(c, d, h)
    a, x, h = mix(a, x, h)
    y, b, h = mix(y, b, h)
    c, x, h = mix(c, x, h)
    y, d, h = mix(y, d, h)
    return h


@inlined
def hash5(a: np.uint32, b: np.uint32, c: np.uint32, d: np.uint32, e: np.uint32) -> np.uint32:
    """Hash five words (Ceph only).

    >>> one, two, three, four, five = np.arange(1, 6, dtype=np.uint32)
    >>> int(hash5(one, two, three, four, five))
    1262657953
    """
    x = X
    y = Y
    h = np.uint32(SEED ^ a ^ b ^ c ^ d ^ e)
    a, b, h = mix(a, b, h)
    c, d, h = mix(c, d, h)
    e, x, h = mix(e, x, h)
    y, a, h = mix(y, a, h)
    b, x, h = mix(b, x, h)
    y, c, h = mix(y, c, h)
    d, x, h = mix(d, x, h)
    y, e, h = mix(y, e, h)
    return h


@jit
def hash3_lanes(
    a: NDArray[np.uint32], b: np.uint32, c: np.uint32, count: int, hashed: NDArray[np.uint32]
) -> None:
    """Hash many first words with the same second and third.

    ``a (at least count,)``: first words; ``b``, ``c``: second and third word of all; ``count``: how
    many; fastest when a multiple of 64; ``hashed (at least count + 1,)``: receives the hashes; the
    entry after them is overwritten.

    >>> hashed = np.empty(3, np.uint32)
    >>> hash3_lanes(np.arange(2, dtype=np.uint32), np.uint32(2), np.uint32(3), 2, hashed)
    >>> hashed[:2].tolist()
    [380807466, 1935332395]
    """
    # One hash is a single chain of operations that wait for each other. The compiler interleaves
    # the chains of several vectors only in a loop that also reduces something, so the hashes are
    # or'ed together (twice as fast, where vectors have 16 lanes); the sum is stored so that it
    # counts.
    joined = np.uint32(0)
    for i in range(count):
        h = hash3(a[i], b, c)
        joined = np.uint32(joined | h)
        hashed[i] = h
    hashed[count] = joined


@jit
def java_hashes(units: NDArray[np.uint16], first: NDArray[np.int64]) -> NDArray[np.int32]:
    """Hash strings as Java does.

    ``units (U,)``: UTF-16 code units of all strings, one after another; ``first (S + 1,)``: string
    ``s`` is ``units[first[s]:first[s + 1]]``. Returns ``String.hashCode`` of each string, (S,).

    >>> units = np.frombuffer("abba".encode("utf-16-le"), dtype=np.uint16).copy()
    >>> java_hashes(units, np.array([0, 2, 4])).tolist()
    [3105, 3135]
    """
    hashes = np.empty(first.size - 1, np.int32)
    for s in range(hashes.size):
        h = np.uint32(0)
        for u in range(first[s], first[s + 1]):
            h = np.uint32(h * np.uint32(31) + units[u])
        hashes[s] = np.int32(h)
    return hashes
