"""Time several functions side by side, so that disturbances affect all alike."""

import gc
import time
from collections.abc import Callable
from typing import Any, NamedTuple

IN_A_ROW = 3  # calls of each contender in its turn


class Contender(NamedTuple):
    """Something to time."""

    run: Callable[..., object]  # what is timed, called with what ``prepare`` returned
    # makes its arguments anew before every call, untimed
    prepare: Callable[[], tuple[Any, ...]] = tuple


def twice(contender: Contender) -> Contender:
    """Have a contender do everything two times over, which is what half as fast looks like."""

    def run(*turns: tuple[Any, ...]) -> None:
        for given in turns:
            contender.run(*given)

    return Contender(run, lambda: (contender.prepare(), contender.prepare()))


def thread_seconds(contender: Contender) -> float:
    """CPU seconds of the thread for one call."""
    given = contender.prepare()
    started = time.thread_time()
    contender.run(*given)
    return time.thread_time() - started


def least_seconds(*contenders: Contender, rounds: int) -> list[float]:
    """Least CPU seconds of each, in turns, after one call that warms up."""
    for each in contenders:
        thread_seconds(each)
    gc.collect()
    gc.disable()
    try:
        # several in a row, so that a least is not taken with caches full of what another left there
        turns = [
            [min(thread_seconds(each) for _ in range(IN_A_ROW)) for each in contenders]
            for _ in range(-(-rounds // IN_A_ROW))
        ]
    finally:
        gc.enable()
    return [min(seconds) for seconds in zip(*turns, strict=True)]
