"""Show progress while a command runs, and stop with the best so far on Ctrl-C."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, Self

from evenkeel.methods.shared.stopping import Progress
from evenkeel.model.runtime.printable import printable

PATIENCE = 1.0  # seconds before the first line of progress
LONGEST_SILENCE = 10.0  # seconds between two lines at most, where lines are printed
REFRESH = 0.1


class Waiting:
    """Shows on the standard error stream what is being done, once that takes more than a second."""

    def __init__(self, quiet: bool, time_limit: float | None = None) -> None:
        self._quiet = quiet
        self._limit = time_limit
        self._text = ""
        self._started = time.perf_counter()
        self._over = threading.Event()
        self._say: Callable[[str], object] = _print_line
        self._compiled = 0
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if not self._quiet:
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def seconds(self) -> float:
        """Seconds since the waiting began."""
        return time.perf_counter() - self._started

    def doing(self, text: str) -> None:
        """Say what is being done now."""
        self._text = printable(text)

    def progress(self, found: Progress) -> None:
        """Take a solve's progress; meant as its callback."""
        self._text = f"{found.phase}: {found.moves:,} moves, {found.work:,} candidates"

    def compiling(self, kernel: str) -> None:
        """Take word of a kernel about to be compiled; the first one is announced at once."""
        self._compiled += 1
        if self._compiled == 1 and not self._quiet:
            from evenkeel_kernels.build.shipped import why_compiled

            self._say(f"compiling kernels (once each, kept for later runs): {why_compiled()} ...")
        self._text = f"compiling kernel {self._compiled}: {kernel}"

    def _show(self) -> None:
        if self._over.wait(PATIENCE):
            return
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            self._show_line()
        else:
            self._print_lines()

    def _show_line(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Display

        console = Console(stderr=True)
        bar = [] if self._limit is None else [BarColumn(bar_width=20)]
        words = TextColumn("{task.description}", markup=False)
        with Display(
            SpinnerColumn(), words, *bar, TimeElapsedColumn(),
            console=console, transient=True, auto_refresh=False,
        ) as display:  # fmt: skip
            self._say = partial(console.print, markup=False, highlight=False)
            task = display.add_task(self._text, total=self._limit)
            while not self._over.wait(REFRESH):
                display.update(task, description=self._text, completed=self.seconds, refresh=True)
            self._say = _print_line

    def _print_lines(self) -> None:
        pause = PATIENCE
        while True:
            _print_line(f"{self.seconds:.0f} s: {self._text}")
            if self._over.wait(pause):
                return
            pause = min(2 * pause, LONGEST_SILENCE)


def _print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Interrupting:
    """Turns the first Ctrl-C within its context into a request that a callback can ask for.

    >>> with Interrupting() as interrupting:
    ...     interrupting.asked
    False
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Self:
        # elsewhere signals cannot be handled
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        print("stopping with the best so far; Ctrl-C again gives up", file=sys.stderr, flush=True)
