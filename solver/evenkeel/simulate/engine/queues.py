"""Queues: the pace at which a node visits its partitions, what waits for its one worker, and what
has to wait because nothing can be done for it.

References
----------
CockroachDB, replica scanner (one round in ten minutes, a visit every 10 ms to 1 s), base queue
(one worker, 60 s for each replica), priority inversion and purgatory (retried every minute).
"""

import heapq
import math

import numpy as np

from evenkeel.simulate.engine.environment import Environment
from evenkeel.simulate.engine.world import World

ROUND = 600.0
"""Seconds in which a node visits all partitions that it leads."""

FASTEST, SLOWEST = 0.01, 1.0
"""Seconds between two visits."""

RETRY = 60.0
"""Seconds after which what is in purgatory is tried again."""

NO_CHECK = -1.0
"""Priority of what is put into a queue by hand: it is processed whatever is found."""


def pace(partitions: int) -> float:
    """Return how long a node waits between two visits.

    Examples
    --------
    >>> pace(100), pace(1200), pace(10**6)
    (1.0, 0.5, 0.01)
    """
    return min(max(ROUND / max(partitions, 1), FASTEST), SLOWEST)


def inverted(queued: float, found: float) -> bool:
    """Return whether what was urgent when it was queued is less so when its turn comes.

    Examples
    --------
    >>> inverted(10_001.0, 0.0), inverted(1001.0, 999.0), inverted(NO_CHECK, 0.0)
    (True, False, False)
    """
    return queued != NO_CHECK and _category(found) < _category(queued)


def _category(priority: float) -> int:
    return math.floor(priority / 100.0 + 0.5)


def never_done(world: World, environment: Environment) -> list[int]:
    """Return the partitions whose snapshot takes longer than a queue waits."""
    if world.disk < 0:
        return []
    seconds = environment.overhead + world.voter_load[:, world.disk] / environment.snapshot
    found: list[int] = np.flatnonzero(seconds > environment.deadline).tolist()
    return found


class WorkQueue:
    """What waits for the one worker of a node: most urgent first, then first come, first served.

    Attributes
    ----------
    working_on : int
        Number of the change that the worker waits for; -1 if it is free.
    purgatory : dict of int to float
        Partitions for which nothing can be done now, with the second of the last try.

    Examples
    --------
    >>> queue = WorkQueue()
    >>> queue.push(3, 0.0), queue.push(7, 12_000.0), queue.push(3, 900.0)
    (True, True, True)
    >>> queue.pop(), queue.pop(), queue.pop()
    ((7, 12000.0), (3, 900.0), None)
    """

    def __init__(self) -> None:
        self.working_on = -1
        self.purgatory: dict[int, float] = {}
        self._heap: list[tuple[float, int, int]] = []
        self._priority: dict[int, float] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._priority)

    def push(self, partition: int, priority: float) -> bool:
        """Put a partition in, or move it up."""
        if self._priority.get(partition, -np.inf) >= priority:
            return False
        self._priority[partition] = priority
        self._number += 1
        heapq.heappush(self._heap, (-priority, self._number, partition))
        return True

    def pop(self) -> tuple[int, float] | None:
        """Take the most urgent partition out."""
        while self._heap:
            lowered, _, partition = heapq.heappop(self._heap)
            if self._priority.get(partition) == -lowered:
                del self._priority[partition]
                return partition, -lowered
        return None

    def retry(self, now: float) -> None:
        """Put what has been in purgatory for long enough back into the queue."""
        due = [p for p, since in self.purgatory.items() if now - since >= RETRY]
        for partition in due:
            del self.purgatory[partition]
            self.push(partition, NO_CHECK)

    def clear(self) -> None:
        """Forget what waits, as when the node is no longer there."""
        self._heap.clear()
        self._priority.clear()
        self.purgatory.clear()
