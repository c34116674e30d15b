"""Random numbers: one xorshift generator (Marsaglia 2003, shifts 13, 7, 17), state passed in."""

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inline_only, inlined


@inlined
def advance(state: np.uint64) -> np.uint64:
    """Return the next number of a 64-bit xorshift generator, which is also its next state."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@inlined
def scaled(number: np.uint64, bound: int) -> int:
    """Turn the upper half of a random number into an index below ``bound``."""
    return int(np.int64(((number >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32)))


@inline_only
def draw(state: NDArray[np.uint64], bound: int) -> int:
    """Draw an index below ``bound`` and advance the generator ``state (1,)``."""
    state[0] = advance(state[0])
    return scaled(state[0], bound)
