"""Import numba and compile one function, so that later compilations start fast."""

import numba


@numba.njit("f8(f8[::1])")  # type: ignore[misc]
def doubled(load):
    return 2.0 * load[0]
