"""The garbage collector, held while files are read or made: nothing there goes in circles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_held() -> Iterator[None]:
    """Hold the collector of circular garbage, which else looks at every object of a file again.

    What is dropped is freed all the same. Whoever had it held before has it held afterwards.

    Examples
    --------
    >>> with collector_held():
    ...     gc.isenabled()
    False
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
