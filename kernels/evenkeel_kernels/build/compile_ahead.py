"""Compile, in other processes, the kernels that a waiting call will need next.

Compiling holds the interpreter's lock, so that threads gain nothing. `compiled_ahead` starts
processes that go through the record of what the same kind of work compiled before, called before
caller, and take what is neither kept nor being compiled; the process that waits finds it on disk.
They end with the kernel at hand when none waits any more.
"""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from evenkeel_kernels.build import signatures
from evenkeel_kernels.build.inventory import on_compile
from evenkeel_kernels.build.jit import backend

# the variable that says how many processes compile at a time; as many as there are cores else
PROCESSES = "EVENKEEL_COMPILE_PROCESSES"

MOST = 8  # more than these wait for each other: kernels call kernels

ENOUGH = 3  # kernels in a row after which others help: a process takes a second to start


@contextmanager
def compiled_ahead(work: str) -> Iterator[None]:
    """Within the context, have other processes compile along once kernels must be compiled.

    ``work``: the kind of work, as the record names it; one that it does not know has no help.
    Yields nothing; the processes end when the context is left.

    >>> with compiled_ahead("any"):
    ...     pass
    """
    helpers: list[subprocess.Popen[bytes]] = []
    begun: list[str] = []

    def help_once(kernel: str) -> None:
        begun.append(kernel)
        if len(begun) == ENOUGH:
            helpers.extend(_started(work))

    with on_compile(help_once):
        try:
            yield
        finally:
            for helper in helpers:  # it ends by itself, and is not waited for
                threading.Thread(target=helper.communicate, daemon=True).start()


def _started(work: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start the processes that help, unless nothing they compile could be handed over."""
    if not backend.SHARED or work not in signatures.recorded().work:
        return
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), PROCESSES: "1"}
    for _ in range(_processes() - 1):
        with contextlib.suppress(OSError):  # a system that starts no more of them
            yield subprocess.Popen(
                [sys.executable, "-m", __name__, work],
                env=environment, stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip


def _processes() -> int:
    """How many processes may compile, this one counted."""
    asked = os.environ.get(PROCESSES, "")
    if asked.isdigit():
        return int(asked)
    try:
        return min(len(os.sched_getaffinity(0)), MOST)
    except AttributeError:  # a system that binds no process to cores
        return min(os.cpu_count() or 1, MOST)


def compile_recorded(work: str, stopped: threading.Event) -> None:
    """Compile what the record names for a kind of work, unless another process does or did."""
    record = signatures.recorded()
    for name in record.work[work]:
        if stopped.is_set():
            return
        with contextlib.suppress(Exception):
            # what cannot be compiled as it was recorded is compiled where it is needed
            kernel = signatures.called(name)
            if backend.is_kept(kernel) or not backend.claimed(kernel):
                continue
            try:
                for form in record.signatures[name]:
                    kernel.compile(tuple(signatures.type_of(each, record.tuples) for each in form))
            finally:
                backend.give_back(kernel)


def main() -> None:
    """Help with one kind of work or all, until it is done or the other end closes the pipe."""
    stopped = threading.Event()

    def wait() -> None:
        sys.stdin.buffer.read()
        stopped.set()

    threading.Thread(target=wait, daemon=True).start()
    for work in sys.argv[1:] or signatures.recorded().work:
        compile_recorded(work, stopped)


if __name__ == "__main__":
    main()
