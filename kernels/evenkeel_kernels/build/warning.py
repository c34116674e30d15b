"""Warn once in a process that compiled kernels cannot be cached."""

import threading
import warnings


class KernelCacheWarning(RuntimeWarning):
    """Compiled kernels cannot be kept, so that every process compiles them again."""


def warn_once(because: str = "no folder can be written") -> None:
    """Say so, with the reason that was met first, such as that a disk is full."""
    if not _warned.is_set():
        _warned.set()
        warnings.warn(
            f"compiled kernels cannot be kept ({because}), so that every process compiles them "
            "again; NUMBA_CACHE_DIR names a folder to use",
            KernelCacheWarning,
            stacklevel=4,
        )


_warned = threading.Event()
