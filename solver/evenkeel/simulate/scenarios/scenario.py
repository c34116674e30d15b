"""A scenario: a cluster at its beginning, what happens to it, and what is demanded in the end."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Goals
from evenkeel.simulate.engine.changes import Rates
from evenkeel.simulate.events.binding import bound
from evenkeel.simulate.events.event import Event

if TYPE_CHECKING:
    from evenkeel.simulate.engine.checks import Check


@dataclass(frozen=True)
class Scenario:
    """What is played, as data.

    Parameters
    ----------
    name : str
        What it is called.
    cluster : Cluster
        The beginning. Nodes that join later are part of it, and every rule that will ever hold.
    minutes : float
        How long it is played.
    events : sequence of Event
        What happens from outside; kept by number, with all nodes that ever join in the cluster.
    checks : sequence of Check
        What is demanded, and what the system that the scenario comes from reaches itself.
    beyond : sequence of Check
        What is demanded beyond that.
    growth : ndarray of float64, shape (P,), optional
        Bytes by which each replica grows per second.
    consensus : bool
        Whether only a majority of its voters can change a partition; else any live replica can.
    goals : Goals
        What a method that solves the whole cluster is asked for.
    objective : {"cpu", "qps"}
        What CockroachDB's store rebalancer levels.
    switched_off : sequence of str
        Parts of CockroachDB that are off: ``"replicate"``, ``"lease"``, ``"store"``.
    rates : Rates
        How fast changes are carried out.
    gossip_interval, gossip_delay : float
        Seconds between two rounds of gossip, and until it is heard.
    every : float
        Seconds between two samples.
    note : str
        What was chosen where the source leaves it open, or differs from it.

    Raises
    ------
    InvalidInput
        If a time is not above 0, or events make no sense: every problem is named.
    """

    name: str
    cluster: Cluster
    minutes: float
    events: "Sequence[Event]" = ()
    checks: "Sequence[Check]" = ()
    beyond: "Sequence[Check]" = ()
    growth: NDArray[np.float64] | None = None
    consensus: bool = True
    goals: Goals = field(default_factory=Goals)
    objective: Literal["cpu", "qps"] = "qps"
    switched_off: Sequence[str] = ()
    rates: Rates = field(default_factory=Rates)
    gossip_interval: float = 10.0
    gossip_delay: float = 0.5
    every: float = 10.0
    note: str = ""

    def __post_init__(self) -> None:
        faults = FaultList()
        for name in ("minutes", "every"):
            if not getattr(self, name) > 0.0:
                faults.add(name, getattr(self, name), "must be above 0")
        for name in ("gossip_interval", "gossip_delay"):
            if not getattr(self, name) >= 0.0:
                faults.add(name, getattr(self, name), "must be 0 or more")
        if self.growth is not None and np.shape(self.growth) != (len(self.cluster.partitions),):
            faults.add("growth", np.shape(self.growth), "needs one value for each partition")
        cluster, events = bound(faults, self.cluster, self.events)
        object.__setattr__(self, "cluster", cluster)
        object.__setattr__(self, "events", events)
        for i, part in enumerate(self.switched_off):
            if part not in ("replicate", "lease", "store"):
                faults.add(f"switched_off[{i}]", part, "must be 'replicate', 'lease' or 'store'")
        faults.raise_if_any()
