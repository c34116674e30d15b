"""Heartbeat: long computations let whoever waits for them hear from them, whatever calls them.

Searches tell their callers of their progress between slices. What is computed in one go around
them (bounds, the compiled problem, the audit) knows of no caller; it beats, and ``solve`` says who
listens. Where nobody does, a beat costs a look at a variable.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[], None] | None] = ContextVar("heartbeat", default=None)


def beat() -> None:
    """Let who listens hear that the computation goes on: every some ten milliseconds of it."""
    listener = _listener.get()
    if listener is not None:
        listener()


@contextmanager
def heard_by(listener: Callable[[], None]) -> Iterator[None]:
    """Call a listener, and no other, at every beat of this thread within the block.

    Examples
    --------
    >>> with heard_by(lambda: print("still here")):
    ...     beat()
    still here
    >>> beat()
    """
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)
