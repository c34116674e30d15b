"""A cluster with what methods have compiled of it, shared by sessions, forks and sweeps."""

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.contract import Loss, LossSeries, ReadyCluster
from evenkeel.methods.registry import find
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.limits import Limits


class HeldCluster:
    """A cluster, and how each method that can holds it ready; threads may ask side by side."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._ready: dict[str, ReadyCluster | None] = {}
        self._compiling = Lock()

    def changed(self, cluster: Cluster) -> "HeldCluster":
        """Return another cluster, held ready by the methods that were asked about this one."""
        made = HeldCluster(cluster)
        for method in [*self._ready]:
            made.prepare(method)
        return made

    def prepare(self, method: str) -> None:
        """Compile now what is else compiled when a loss is first asked about."""
        self._held_ready(method)

    def is_prepared(self, method: str) -> bool:
        """Whether a loss, of no node even, is answered without compiling anything."""
        return self._ready.get(method) is not None

    def lose(
        self,
        method: str,
        nodes: NDArray[np.int32],
        goals: Goals | Cost,
        limits: Limits | None = None,
    ) -> Loss | None:
        """Lose nodes, each named once; None if the method has to solve the snapshot."""
        ready = self._held_ready(method)
        return None if ready is None else ready.lose(nodes, goals, limits)

    def lose_each(
        self, method: str, losses: Sequence[NDArray[np.int32]], goals: Goals | Cost
    ) -> LossSeries | None:
        """Find how the first of several losses end, as ``ReadyCluster.lose_each`` does."""
        ready = self._held_ready(method)
        return None if ready is None else ready.lose_each(losses, goals)

    def _held_ready(self, method: str) -> ReadyCluster | None:
        if method not in self._ready:
            with self._compiling:  # once, though several threads ask
                if method not in self._ready:
                    hold = find(method).holder()
                    self._ready[method] = None if hold is None else hold(self.cluster)
        return self._ready[method]

    def __reduce__(self) -> tuple[Any, ...]:
        return HeldCluster, (self.cluster,)
