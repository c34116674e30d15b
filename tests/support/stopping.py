"""Callbacks that stop a search."""

from collections.abc import Callable


def stopping_after(calls: int) -> Callable[[object], None]:
    """Return a callback that stops after so many calls."""
    left = [calls]

    def stop(_: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise StopIteration

    return stop
