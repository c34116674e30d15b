"""A scenario: a cluster, the events that happen to it, and checks of its history."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.goals import Goals
from evenkeel.simulate.engine.world import Environment
from evenkeel.simulate.events import Event, bound

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
    environment : Environment
        How fast changes are carried out, how data grows, how late news is.
    goals : Goals
        What a method that solves the whole cluster is asked for.
    objective : {"cpu", "qps"}
        What CockroachDB's store rebalancer levels.
    switched_off : sequence of str
        Parts of CockroachDB that are off: ``"replicate"``, ``"lease"``, ``"store"``.
    every : float
        Seconds between two samples.
    note : str
        What was chosen where the source leaves it open, or differs from it.

    Raises
    ------
    InvalidInput
        If a time is not above 0, or events make no sense: every problem is named.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> lost = simulate.Scenario(
    ...     "n0 lost", c, minutes=10.0, events=[simulate.At(0.0, ek.Changes(down="n0"))],
    ...     checks=[simulate.Conforms(under=0)], every=300.0,
    ... )
    >>> simulate.run(lost, "balance").check()
    (Finding(what='under 0', measured=0.0, met=True),)
    """

    name: str
    cluster: Cluster
    minutes: float
    events: "Sequence[Event]" = ()
    checks: "Sequence[Check]" = ()
    beyond: "Sequence[Check]" = ()
    environment: Environment = field(default_factory=Environment)
    goals: Goals = field(default_factory=Goals)
    objective: Literal["cpu", "qps"] = "qps"
    switched_off: Sequence[str] = ()
    every: float = 10.0
    note: str = ""

    def __post_init__(self) -> None:
        faults = FaultList()
        for name in ("minutes", "every"):
            if not getattr(self, name) > 0.0:
                faults.add(name, getattr(self, name), "must be above 0")
        growth = self.environment.growth
        if growth is not None and np.shape(growth) != (len(self.cluster.partitions),):
            faults.add("environment.growth", np.shape(growth), "needs one value for each partition")
        cluster, events = bound(faults, self.cluster, self.events)
        object.__setattr__(self, "cluster", cluster)
        object.__setattr__(self, "events", events)
        for i, part in enumerate(self.switched_off):
            if part not in ("replicate", "lease", "store"):
                faults.add(f"switched_off[{i}]", part, "must be 'replicate', 'lease' or 'store'")
        faults.raise_if_any()
