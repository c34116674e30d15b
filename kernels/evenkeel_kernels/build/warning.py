"""The warning, once in a process, where compiled kernels cannot be kept."""

import warnings
from functools import cache


class KernelCacheWarning(RuntimeWarning):
    """Compiled kernels cannot be kept, so that every process compiles them again."""


@cache
def warn_once() -> None:
    """Say so."""
    warnings.warn(
        "no folder can be written that would keep compiled kernels, so that every process compiles "
        "them again; NUMBA_CACHE_DIR names a folder to use",
        KernelCacheWarning,
        stacklevel=4,
    )
