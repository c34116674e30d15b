"""Ceph's fixed-point logarithm of a 16-bit number, tabulated once.

straw2 draws ``(ln(u) - 2**48) / weight`` for a 16-bit hash ``u`` and lets the largest draw win. The
logarithm has only 65,536 arguments, so all of it is one table; kernels take ``straws()``, the
distances ``2**48 - ln(u)``, and look for the shortest straw instead.

Ceph's own evaluation goes through three tables. Two follow closed formulas; the third was meant to,
but the numbers that Ceph ships differ from the formula in most places, and they are what every
placement in every cluster hangs on. So they are reproduced here as shipped: a formula, an offset
that most entries have, a list of those that have none, and a list of the irregular ones.

References
----------
Ceph, ``crush/crush_ln_table.h`` and ``crush_ln`` of ``crush/mapper.c``: a logarithm to base 2 with
44 fractional bits.
"""

from functools import cache

import numpy as np
import numpy.typing as npt

ONE = 1 << 48
"""The upper end of the logarithm's range: 16 with 44 fractional bits."""

OFFSET = 0x147700000
"""What most entries of the fine table lie above their formula."""

REGULAR = frozenset(
    {0, 1, 203, 216, 222, 233, 237, 238, 239, 243, 244, 245, 246, 248, 249, *range(250, 256)}
)
"""Entries of the fine table that follow their formula."""

IRREGULAR = {
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
"""Entries of the fine table that follow nothing."""

BITS = 48
GUARD = 160


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

    References
    ----------
    Ceph, ``crush_ln`` of ``crush/mapper.c``.

    Examples
    --------
    >>> ln = logarithms()
    >>> int(ln[0]), int(ln[1]) == 2**44, int(ln[65534]) > int(ln[65535])
    (0, True, True)
    """
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

    Examples
    --------
    >>> float(straws()[0]) == 2.0**48
    True
    """
    return (ONE - logarithms()).astype(np.float64)
