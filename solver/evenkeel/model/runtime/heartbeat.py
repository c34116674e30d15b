"""Report progress of long computations to the caller of a solve.

Searches report their progress between slices. Computations without slices around
them (bounds, the compiled problem, the audit) know no caller; they call ``beat``, and ``solve``
sets the listener. Without one, a beat costs a look at a variable.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[], None] | None] = ContextVar("heartbeat", default=None)


def beat() -> None:
    """Report to the listener that the computation goes on; call it every 10 ms or so."""
    listener = _listener.get()
    if listener is not None:
        listener()


@contextmanager
def heard_by(listener: Callable[[], None]) -> Iterator[None]:
    """Call a listener, and no other, at every beat of this thread within the block.

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
