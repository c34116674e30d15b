"""Lock files by which processes that start together compile each kernel only once.

A kernel is a byte of a lock file beside the cache, locked by the process that compiles it. The
operating system takes the lock from a process that ends, however it ends. Kernels call each other
in no circle, so that no two processes wait for each other. Where the system has no such locks, or
the file cannot be written, every process compiles for itself.
"""

import contextlib
import hashlib
import logging
import os
import threading
import time
from functools import cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NAME = "evenkeel.lock"  # the file, in the folder in which kernels are kept

LOCKING = fcntl is not None  # whether the system has locks that processes share

# seconds after which a kernel is compiled without the lock: its holder may have stopped
PATIENCE = 120.0

# seconds between two tries, and until the wait for another process is reported
PAUSE, SILENCE = 0.02, 1.0

logger = logging.getLogger("evenkeel.kernels")


class CompileLock:
    """The right to compile one kernel, for as many calls within a process as ask for it."""

    # ``folder``: where the kernel is kept; ``kernel``: its name, the same in every process

    def __init__(self, folder: str, kernel: str) -> None:
        self._folder, self._kernel = folder, kernel
        digest = hashlib.sha256(kernel.encode()).digest()
        self._byte = int.from_bytes(digest[:4], "big") >> 1
        self._depth = 0
        self._guard = threading.Lock()

    def acquire(self) -> None:
        """Take the lock, and wait as long as another process has it."""
        began = time.perf_counter()
        warned = False
        while not self.claim():
            waited = time.perf_counter() - began
            if waited >= SILENCE and not warned:
                warned = True
                self._tell("waiting", logging.INFO)
            if waited >= PATIENCE:
                self._tell("impatient", logging.WARNING)
                return
            time.sleep(PAUSE)

    def release(self) -> None:
        """Give the lock back, if this process has it and no other call needs it."""
        with self._guard:
            self._depth = max(0, self._depth - 1)
            if self._depth == 0:
                with contextlib.suppress(OSError):
                    self._lock(free=True)

    def claim(self) -> bool:
        """Whether the lock is ours now, or there is none to be had."""
        with self._guard:
            if self._depth == 0:
                try:
                    self._lock(free=False)
                except BlockingIOError:
                    return False
                except OSError:  # it cannot be written, or its file system has no locks
                    return True
            self._depth += 1
            return True

    def _lock(self, *, free: bool) -> None:
        if fcntl is not None:
            how = fcntl.LOCK_UN if free else fcntl.LOCK_EX | fcntl.LOCK_NB
            fcntl.lockf(_opened(self._folder, os.getpid()), how, 1, self._byte)

    def _tell(self, event: str, level: int) -> None:
        fields = {"event": event, "kernel": self._kernel, "folder": self._folder}
        logger.log(level, "%s kernel=%s", event, self._kernel, extra={"evenkeel": fields})


@cache
def _opened(folder: str, process: int) -> int:
    """Open the lock file of a folder once: a process that closes it anywhere loses its locks."""
    return os.open(Path(folder, NAME), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
