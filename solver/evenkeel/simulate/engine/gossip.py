"""Gossip: what each node knows of the others, and how old that is."""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from evenkeel.simulate.engine.world import World


class Gossip:
    """The last figures that every node has published, as the others know them.

    A node publishes every ``interval`` seconds, and in between once its replicas or leaders have
    changed by a hundredth, at least by one and at most by three; the others know ``delay`` seconds
    later. With neither interval nor delay everybody knows everything at once.

    References
    ----------
    CockroachDB, simulator defaults (10 s, 0.5 s) and gossip on change of capacity.
    """

    def __init__(self, world: World, interval: float, delay: float) -> None:
        self._world = world
        self._interval = interval
        self._delay = delay
        self._on_the_way: deque[tuple[float, int, tuple[NDArray[np.float64], int, int]]] = deque()
        self.live = interval == 0.0 and delay == 0.0
        self._load = world.load.copy()
        self._replicas = world.replicas.copy()
        self._leaders = world.leaders.copy()
        self._changes = np.zeros(len(world.health), np.int64)
        self._next = 0.0

    def changed(self, nodes: NDArray[np.int64]) -> None:
        """Note that replicas or leaders of some nodes changed."""
        if self.live:
            return
        world = self._world
        self._changes[nodes] += 1
        for node in nodes.tolist():
            least = min(max(0.01 * float(world.replicas[node]), 1.0), 3.0)
            if self._changes[node] >= least:
                self._publish(node)

    def view(self, node: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Return what a node knows of all nodes; its own figures are always fresh."""
        world = self._world
        if self.live:
            return world.load.copy(), world.replicas.copy(), world.leaders.copy()
        self._hear()
        load, replicas = self._load.copy(), self._replicas.copy()
        leaders = self._leaders.copy()
        load[node] = world.load[node]
        replicas[node], leaders[node] = world.replicas[node], world.leaders[node]
        return load, replicas, leaders

    def _hear(self) -> None:
        now = self._world.seconds
        if now >= self._next:
            # figures of the last round that was due; between rounds only changes are published
            for node in range(len(self._world.health)):
                self._publish(node)
            self._next = now - now % self._interval + self._interval if self._interval else now
        while self._on_the_way and self._on_the_way[0][0] <= now:
            _, node, (load, replicas, leaders) = self._on_the_way.popleft()
            self._load[node] = load
            self._replicas[node] = replicas
            self._leaders[node] = leaders

    def _publish(self, node: int) -> None:
        world = self._world
        figures = (world.load[node].copy(), int(world.replicas[node]), int(world.leaders[node]))
        self._on_the_way.append((world.seconds + self._delay, node, figures))
        self._changes[node] = 0
