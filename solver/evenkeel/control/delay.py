"""Delay windows: the time for which a node that is down keeps its replicas.

References
----------
Apache Helix, ``DelayedRebalanceUtil``: delayed rebalance, per-instance switches, and on-demand
rebalance.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.errors import FaultList
from evenkeel.model.nodes import Nodes


@dataclass(frozen=True)
class Delay:
    """How long nodes that do not serve keep their places.

    Parameters
    ----------
    seconds : float
        Length of the window; 0 for none.
    enabled : bool
        Whether there are windows at all.
    exempt : frozenset of str
        Names of nodes that have no window.
    on_demand : float
        When a rebalance was last asked for: it ends every window that was open at the time.

    Raises
    ------
    InvalidInput
        If a window is no number of seconds, or the exempt nodes are no set of names.

    Examples
    --------
    >>> Delay(seconds=600.0).enabled
    True
    """

    seconds: float = 0.0
    enabled: bool = True
    exempt: frozenset[str] = frozenset()
    on_demand: float = -np.inf

    def __post_init__(self) -> None:
        faults = FaultList()
        if not isinstance(self.seconds, int | float) or not self.seconds >= 0.0:
            faults.add("delay.seconds", self.seconds, "must be a number, 0 or more")
        if not isinstance(self.on_demand, int | float) or np.isnan(self.on_demand):
            faults.add("delay.on_demand", self.on_demand, "must be a time in seconds")
        if isinstance(self.exempt, str) or not all(isinstance(name, str) for name in self.exempt):
            faults.add("delay.exempt", self.exempt, "must be a set of names of nodes")
        faults.raise_if_any()


@dataclass
class Absences:
    """Since when nodes have not been serving, for those without a time of their own."""

    seen: dict[str, float] = field(default_factory=dict)

    def since(self, nodes: Nodes, now: float) -> NDArray[np.float64]:
        """Return since when each node has been down."""
        down = np.flatnonzero(~nodes.alive)
        since = np.full(len(nodes), np.inf)
        since[down] = nodes.since[down]
        unsaid = {nodes.names[i]: i for i in down[np.isnan(since[down])].tolist()}
        self.seen = {name: self.seen.get(name, now) for name in unsaid}
        for name, i in unsaid.items():
            since[i] = self.seen[name]
        return since


def window_ends(nodes: Nodes, since: NDArray[np.float64], delay: Delay) -> NDArray[np.float64]:
    """Return when each node that is down loses its places."""
    no_window = np.where(np.isfinite(since), -np.inf, np.inf)
    if not delay.enabled or delay.seconds <= 0.0:
        return no_window
    ends = np.where(since < delay.on_demand, since, since + delay.seconds)
    if delay.exempt:
        for i in np.flatnonzero(np.isfinite(since)).tolist():
            if nodes.names[i] in delay.exempt:
                ends[i] = no_window[i]
    return ends


def active_nodes(nodes: Nodes, ends: NDArray[np.float64], now: float) -> NDArray[np.bool_]:
    """Return which nodes keep their places."""
    waited_for = ~nodes.alive & (ends > now)
    return np.asarray(~nodes.gone & (nodes.keeps | waited_for))
