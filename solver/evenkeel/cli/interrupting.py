"""Ctrl-C while solving: the first one stops with the best so far, the second one gives up."""

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupting:
    """Turns the first Ctrl-C within its context into a request that a callback can ask for.

    Outside the main thread, where signals cannot be handled, it leaves them as they are.

    Examples
    --------
    >>> with Interrupting() as interrupting:
    ...     interrupting.asked
    False
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        print("stopping with the best so far; Ctrl-C again gives up", file=sys.stderr, flush=True)
