"""Importing this leaves numba loaded and used once: a first compilation reads all that it knows."""

import numba


@numba.njit("f8(f8[::1])")  # type: ignore[misc]
def doubled(load):
    return 2.0 * load[0]
