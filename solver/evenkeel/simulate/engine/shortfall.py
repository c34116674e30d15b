"""Shortfall: which partitions are below their min-active, and for how long they were."""

import numpy as np
from numpy.typing import NDArray

from evenkeel.simulate.engine.world import World


class Shortfall:
    """Keeps account of partitions with fewer live replicas than their ``min_active``.

    Time is counted exactly, from one change to the next, and not by samples.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._below = np.zeros(0, bool)
        self._since = np.zeros(0)
        self._seconds = np.zeros(0)
        self._count = 0
        self._total = 0.0
        self._until = world.seconds
        self.look()

    @property
    def total(self) -> float:
        """Seconds so far, added up over partitions."""
        return self._total + self._count * (self._world.seconds - self._until)

    def seconds(self) -> NDArray[np.float64]:
        """Return for how long each partition was below its min-active."""
        open_for = np.where(self._below, self._world.seconds - self._since, 0.0)
        return self._seconds + open_for

    def look(self) -> None:
        """Look at all partitions, after nodes or wishes have changed, or partitions were added."""
        world = self._world
        live = ((world.node >= 0) & world.serves()[world.node]).sum(1)
        below = live < world.least_active()
        new = len(below) - len(self._below)
        if new:
            self._below = np.concatenate([self._below, np.zeros(new, bool)])
            self._since = np.concatenate([self._since, np.zeros(new)])
            self._seconds = np.concatenate([self._seconds, np.zeros(new)])
        for partition in np.flatnonzero(below != self._below).tolist():
            self._turn(partition, bool(below[partition]))

    def look_at(self, partition: int) -> None:
        """Look at a partition whose replicas have changed."""
        world = self._world
        at = world.node[partition]
        live = int(((at >= 0) & world.serves()[at]).sum())
        below = live < int(world.cluster.partitions.min_active[world.origin[partition]])
        if below != self._below[partition]:
            self._turn(partition, below)

    def _turn(self, partition: int, below: bool) -> None:
        now = self._world.seconds
        self._total, self._until = self.total, now
        if below:
            self._since[partition] = now
        else:
            self._seconds[partition] += now - self._since[partition]
        self._below[partition] = below
        self._count += 1 if below else -1
