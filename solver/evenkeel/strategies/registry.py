"""Which methods there are, and what every strategy takes and returns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds import Bounds
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Placement
from evenkeel.strategies.shared.stopping import Progress as Progress
from evenkeel.strategies.shared.stopping import StopReason
from evenkeel.strategies.shared.stopping import Watch as Watch


@dataclass(frozen=True)
class Request:
    """What a strategy is asked to do."""

    cluster: Cluster
    goals: Goals | Cost
    limits: Limits
    options: Any
    start: Placement
    bounds: Bounds
    watch: Watch
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What a strategy returns; the solve audits it.

    Parameters
    ----------
    node : ndarray of int32, shape (K,)
        Node of each replica of the cluster's placement, in its slots; -1 for none.
    leader : ndarray of int16, shape (P,)
        Slot that leads each partition.
    stop_reason : str
        Why it stopped.
    message : str
        What a person should know beyond that.
    work : int
        Candidates looked at.
    warnings : tuple of str
        What a person should look into.
    timings : mapping of str to float
        Seconds per stage.
    native : object
        What only this method returns: an ordered decision log, pairs for another system.
    """

    node: NDArray[np.int32]
    leader: NDArray[np.int16]
    stop_reason: StopReason
    message: str = ""
    work: int = 0
    warnings: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    native: Any = None


Strategy = Callable[[Request], Outcome]


@dataclass(frozen=True)
class Elapsed:
    """What has become of a cluster, for methods that read more of it than the model says.

    Parameters
    ----------
    began : Cluster
        As it began: P partitions, and all N nodes that will ever be, of which the payload may know
        the first ones only.
    now : Cluster
        As it is, with the payload that it began with. The same nodes; Q partitions.
    origin : ndarray of int64, shape (Q,)
        The partition of ``began`` that each is, or came from.
    seconds : float
        Since ``began``.
    since : ndarray of float64, shape (N,)
        Second at which each node came into its state.
    """

    began: Cluster
    now: Cluster
    origin: NDArray[np.int64]
    seconds: float
    since: NDArray[np.float64]


Follow = Callable[[Elapsed], Cluster]
"""Brings what a method reads of a cluster up to what its nodes, loads and placement say."""


@dataclass(frozen=True)
class Method:
    """One entry of the table of methods."""

    name: str
    where: str
    summary: str
    options: str = ""
    follows: str = ""
    closed: bool = False

    def load(self) -> Strategy:
        """Import the strategy."""
        strategy: Strategy = _imported(self.where)
        return strategy

    def follower(self) -> Follow | None:
        """Import what brings the payload up to date."""
        return _imported(self.follows) if self.follows else None


def _imported(where: str) -> Any:
    module, _, function = where.partition(":")
    return getattr(import_module(module), function)


METHODS: dict[str, Method] = {}


def register(
    name: str,
    where: str,
    summary: str,
    options: str = "",
    *,
    follows: str = "",
    closed: bool = False,
) -> None:
    """Add a method to the table, or replace one."""
    METHODS[name] = Method(name, where, summary, options, follows, closed)


def find(name: str) -> Method:
    """Return a method by name."""
    if name not in METHODS:
        known = ", ".join(sorted(METHODS))
        raise InvalidInput([Fault("method", name, f"is no method; there are: {known}")])
    return METHODS[name]


register(
    "balance",
    "evenkeel.strategies.balance:balance",
    "mends, re-homes and levels with the fewest moves, to the goals and no further",
)
register(
    "exact",
    "evenkeel.strategies.exact.method:exact",
    "small clusters by CP-SAT, with a proof: all placed, then level, then the fewest moves",
    "Exact",
)
register(
    "leaders",
    "evenkeel.strategies.leaders.method:leaders",
    "who leads, replicas staying where they are: the proven least on the fullest node",
    "Leaders",
)
register(
    "helix_crush",
    "evenkeel.strategies.helix.method:helix_crush",
    "Apache Helix's CRUSH, bit for bit",
    "Crush",
)
register(
    "helix_multiround",
    "evenkeel.strategies.helix.method:helix_multiround",
    "Apache Helix's MultiRoundCRUSH, bit for bit or mended",
    "MultiRound",
)
register(
    "helix_crushed",
    "evenkeel.strategies.helix.method:helix_crushed",
    "Apache Helix's CRUSH-ed, bit for bit or mended, on any base strategy",
    "Crushed",
)
register(
    "helix_auto",
    "evenkeel.strategies.helix.method:helix_auto",
    "Apache Helix's card dealing on a given placement, blind to fault zones",
    "Auto",
)
register(
    "helix_waged",
    "evenkeel.strategies.helix.waged.method:helix_waged",
    "Apache Helix's WAGED in all its scopes, bit for bit",
    "Waged",
    follows="evenkeel.strategies.helix.waged.refresh:follow",
)
register(
    "ceph_crush",
    "evenkeel.strategies.ceph.method:ceph_crush",
    "Ceph's CRUSH on a Ceph map, bit for bit",
    "CephCrush",
    follows="evenkeel.strategies.ceph.refresh:follow",
    closed=True,
)
register(
    "ceph_upmap",
    "evenkeel.strategies.ceph.method:ceph_upmap",
    "pg-upmap-items that level the devices of a Ceph map with few moves",
    "Upmap",
    follows="evenkeel.strategies.ceph.refresh:follow",
    closed=True,
)
register(
    "cockroach",
    "evenkeel.strategies.cockroach.method:cockroach",
    "CockroachDB's replicate queue and store rebalancer, run until nothing is decided any more",
    "Cockroach",
    follows="evenkeel.strategies.cockroach.refresh:follow",
)
register(
    "longhorn",
    "evenkeel.strategies.longhorn.method:longhorn",
    "Longhorn's replica auto-balance, volume by volume or as one plan for all of them",
    "Longhorn",
    follows="evenkeel.strategies.longhorn.refresh:follow",
    closed=True,
)
