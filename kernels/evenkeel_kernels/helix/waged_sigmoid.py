"""The curve by which WAGED scores how full a node is, in the exact arithmetic of the original.

Helix takes its exponential from Apache Commons Math, which evaluates it from two tables and a short
polynomial, in plain additions and multiplications. About one result in a thousand differs in the
last bit from what the C library returns; where nodes are nearly alike a last bit decides. Being
plain arithmetic it is the same on every machine, and runs in the processor's vector lanes.

The tables are computed here, to 60 digits. Their high parts are the original's; of the low parts
the original's last digits are a little off, by less than 2**-70 of the value.

References
----------
Apache Helix, ``UsageSoftConstraint``; Apache Commons Math 3, ``Sigmoid`` and ``FastMath.exp``.
"""

from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inlined

STEEPNESS = 44.0
"""0.9 at 0.95 of what is estimated, 0.5 at 1, 0.1 at 1.05."""

LOWEST, HIGHEST = -45, 709
"""Whole exponents that occur: the least usage is 0, and beyond the highest all is infinite."""

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

    Examples
    --------
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

    Examples
    --------
    >>> sigmoid(0.0), sigmoid(1.0), round(sigmoid(1.05), 3), sigmoid(np.inf)
    (1.0, 0.5, 0.1, 0.0)
    """
    return 1.0 / (1.0 + exponential((usage - 1.0) * STEEPNESS))
