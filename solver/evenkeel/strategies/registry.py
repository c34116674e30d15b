"""Which methods there are, and what every strategy takes and returns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.bounds import Bounds, bounds, bounds_of_levels
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.goals import Cost, Goals
from evenkeel.model.limits import Limits
from evenkeel.model.placement import Placement
from evenkeel.model.reading.keywords import did_you_mean
from evenkeel.strategies.options import Options
from evenkeel.strategies.shared.stopping import Progress as Progress
from evenkeel.strategies.shared.stopping import StopReason
from evenkeel.strategies.shared.stopping import Watch as Watch

PROVING = 2e-7
"""Seconds per replica that it takes to prove how many moves the goals take."""


@dataclass(frozen=True)
class Request:
    """What a strategy is asked to do; ``run_method`` makes it, and nobody else."""

    cluster: Cluster
    goals: Goals | Cost
    limits: Limits
    options: Options | None
    start: Placement
    watch: Watch
    seed: int
    proven: Bounds | None = None

    def resumed_from(self, outcome: "Outcome") -> "Request":
        """Return the same request, begun where an outcome ends."""
        return replace(self, start=self.cluster.placement.replaced(outcome.node, outcome.leader))

    @cached_property
    def bounds(self) -> Bounds:
        """What is proven of the goals: what was handed in, or computed when first asked for."""
        if self.proven is not None:
            return self.proven
        prove = bounds if self.has_time_to_prove else bounds_of_levels
        return prove(self.cluster, self.goals)

    @cached_property
    def has_time_to_prove(self) -> bool:
        """Whether the time limit leaves the seconds to prove how many moves the goals take."""
        return self.watch.seconds_left > PROVING * len(self.cluster.placement.node)


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
    enough : ndarray of int32, shape (P,), optional
        Live replicas of each partition that its system is content with where it wants more.
    """

    node: NDArray[np.int32]
    leader: NDArray[np.int16]
    stop_reason: StopReason
    message: str = ""
    work: int = 0
    warnings: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    native: Any = None
    enough: NDArray[np.int32] | None = None


Strategy = Callable[[Request], Outcome]


class Loss(NamedTuple):
    """What becomes of lost nodes without a search. n replicas moved, N nodes, D dimensions."""

    replica: NDArray[np.int64]
    """Indices of the replicas lost, then of those that gave way, (n,)."""
    node: NDArray[np.int32]
    """Where each is placed, (n,); on its lost node what waits for a budget."""
    slot: NDArray[np.int16]
    """The slot that leads its partition, (n,)."""
    lost: NDArray[np.int32]
    """Partitions without data after the loss, ascending."""
    under_min_active: NDArray[np.int32]
    """Partitions short of live replicas, ascending."""
    without_quorum: NDArray[np.int32]
    """Partitions without a majority of their voters, ascending."""
    loads: NDArray[np.float64]
    """What each node carries, (N, D)."""
    replicas: NDArray[np.int64]
    """Replicas on each node, (N,)."""
    leaders: NDArray[np.int64]
    """Leaders on each node, (N,)."""
    most: NDArray[np.float64]
    """Highest utilisation of a node that serves, (D,)."""
    fair: NDArray[np.float64]
    """What is on nodes that serve over the capacity that receives, (D,)."""
    moved: NDArray[np.float64]
    """Load of what moved, (D,)."""
    gave_way: int
    """How many of those that moved were not lost."""
    waits: int
    """How many of those lost wait for a budget."""
    fits: bool
    """Whether a placement of those, too, is known that breaks no rule."""


class LossSeries(NamedTuple):
    """How each of S losses ends, without a search. D dimensions."""

    moves: NDArray[np.int64]
    """Replicas moved, (S,); -1 where it takes a search, and nothing else is told."""
    gave_way: NDArray[np.int64]
    """How many of them were not lost, (S,)."""
    most: NDArray[np.float64]
    """Highest utilisation of a node that serves, (S, D)."""
    fair: NDArray[np.float64]
    """What is on nodes that serve over the capacity that receives, (S, D)."""
    moved: NDArray[np.float64]
    """Load of what moved, (S, D)."""
    endangered: NDArray[np.int32]
    """Partitions without data, short of live replicas, without a majority, loss by loss, (E,)."""
    ends: NDArray[np.int64]
    """Where each of those lists ends, (S, 3)."""


class ReadyCluster(Protocol):
    """A cluster that a method holds ready for the loss of nodes; threads may ask side by side."""

    def lose(
        self, nodes: NDArray[np.int32], goals: Goals | Cost, limits: Limits | None = None
    ) -> Loss | None:
        """Lose nodes, each named once; None if that takes a search.

        An answer breaks no rule, which was audited apart from the search, and meets the goals; none
        that meets them makes fewer moves. Where ``limits`` do not allow as many, the most
        endangered of what was lost has moved, and the rest waits for nothing but a budget.
        """

    def lose_each(
        self, losses: Sequence[NDArray[np.int32]], goals: Goals | Cost
    ) -> LossSeries | None:
        """Lose nodes, find how that ends, and have them back; then the next ones.

        The first of the losses are answered, as many as there is room for, which is one at least;
        None if all of them take a search. Each ends as ``lose`` has it.
        """


Holder = Callable[[Cluster], ReadyCluster | None]
"""Holds a cluster ready; None if something is wrong with it, which takes a search anyhow."""


@dataclass(frozen=True)
class SimulatedState:
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


RefreshPayload = Callable[[SimulatedState], Cluster]
"""Brings what a method reads of a cluster up to what its nodes, loads and placement say."""


BUDGETS = ("moves", "bytes", "node_in", "node_out")
ALL_BUDGETS = (*BUDGETS, "partition_moves", "domain_in", "domain_out", "leader_changes")
"""The fields of ``Limits`` that a search keeps while it looks for moves."""


@dataclass(frozen=True)
class Method:
    """Everything that is known about a method; the table of them is ``METHODS``.

    Parameters
    ----------
    name : str
        As ``solve`` takes it.
    where : str
        Its function, ``"module:name"``.
    summary : str
        One line for people.
    options : str
        The class of its options, ``"module:name"``; "" if it takes none.
    limits : tuple of str
        The fields of ``Limits`` that it keeps; others are refused.
    minimises : bool
        Whether it can minimise a ``Cost``; else that is refused.
    goals : tuple of str
        The fields of ``Goals`` that it works towards; its result is compared with all of them.
    starts : bool
        Whether it can start from another placement than the cluster's; else that is refused.
    never_worse : bool
        Whether its result is never worse than what came in: see ``strategies.guard``.
    engine : str
        The class that serves pipelines, ``"module:name"`` in ``control.engines``; "" for none.
    decider : str
        What decides partition by partition in a simulation, ``"module:name"``; "" for nothing. It
        takes a cluster, what to level and a seed, and returns a ``Decider``.
    refresh : str
        What brings the cluster's payload up to date in a simulation, ``"module:name"``.
    ready : str
        What holds a cluster ready for the loss of nodes, ``"module:name"``, a ``Holder``; "" where
        sessions and sweeps solve every snapshot.
    begins : float
        Seconds per replica that it takes to begin, on a slow day: with less time left it is not
        begun, and everything stays where the search would have started.
    fixed_membership : bool
        Whether that payload knows no nodes and partitions but those that it was read with.
    warmup : str
        The function of ``install.warmup_cases`` whose solves compile its kernels.
    """

    name: str
    where: str
    summary: str
    options: str = ""
    limits: tuple[str, ...] = ()
    minimises: bool = False
    goals: tuple[str, ...] = ()
    starts: bool = True
    never_worse: bool = False
    engine: str = ""
    decider: str = ""
    refresh: str = ""
    ready: str = ""
    begins: float = 0.0
    fixed_membership: bool = False
    warmup: str = "expanded"

    def load(self) -> Strategy:
        """Import the strategy."""
        strategy: Strategy = imported(self.where)
        return strategy

    def options_class(self) -> type[Options] | None:
        """Import the class of its options, if it takes any."""
        return imported(self.options) if self.options else None

    def holder(self) -> Holder | None:
        """Import what holds a cluster ready."""
        return imported(self.ready) if self.ready else None

    def refresher(self) -> RefreshPayload | None:
        """Import what brings the payload up to date."""
        return imported(self.refresh) if self.refresh else None


def imported(where: str) -> Any:
    """Import what a table names as ``"module:name"``."""
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)


def find(name: str) -> Method:
    """Return a method by name."""
    if not isinstance(name, str) or name not in METHODS:
        known = ", ".join(sorted(METHODS))
        message = f"unknown method; there are: {known}{did_you_mean(str(name), METHODS)}"
        raise InvalidInput([Fault("method", name, message)])
    return METHODS[name]


METHODS: dict[str, Method] = {
    one.name: one
    for one in (
        Method(
            "balance",
            "evenkeel.strategies.balance:balance",
            "mends, re-homes and levels with the fewest moves, to the goals and no further",
            limits=ALL_BUDGETS,
            minimises=True,
            goals=("level", "floor", "leaders", "soft_yield"),
            never_worse=True,
            ready="evenkeel.strategies.levelling.losses.standing:standing",
            begins=3e-7,
            engine="balance:BalanceEngine",
            warmup="any",
        ),
        Method(
            "exact",
            "evenkeel.strategies.exact.method:exact",
            "small clusters by CP-SAT, with a proof: all placed, then level, then the fewest moves",
            "evenkeel.strategies.options:Exact",
            limits=ALL_BUDGETS,
            goals=("level", "leaders"),
            never_worse=True,
            warmup="small",
        ),
        Method(
            "leaders",
            "evenkeel.strategies.leaders.method:leaders",
            "who leads, replicas staying where they are: the proven least on the fullest node",
            "evenkeel.strategies.options:Leaders",
            limits=BUDGETS,
            never_worse=True,
            begins=8e-7,
            warmup="placed",
        ),
        Method(
            "helix_crush",
            "evenkeel.strategies.helix.method:helix_crush",
            "Apache Helix's CRUSH, bit for bit",
            "evenkeel.strategies.options:Crush",
            begins=4e-7,
            warmup="zones",
        ),
        Method(
            "helix_multiround",
            "evenkeel.strategies.helix.method:helix_multiround",
            "Apache Helix's MultiRoundCRUSH, bit for bit or mended",
            "evenkeel.strategies.options:MultiRound",
            begins=4e-7,
            warmup="zones_or_mended_multiround",
        ),
        Method(
            "helix_crushed",
            "evenkeel.strategies.helix.method:helix_crushed",
            "Apache Helix's CRUSH-ed, bit for bit or mended, on any base strategy",
            "evenkeel.strategies.options:Crushed",
            begins=4e-7,
            warmup="zones_or_mended_crushed",
        ),
        Method(
            "helix_auto",
            "evenkeel.strategies.helix.method:helix_auto",
            "Apache Helix's card dealing on a given placement, blind to fault zones",
            "evenkeel.strategies.options:Auto",
            begins=4e-7,
            warmup="zones",
        ),
        Method(
            "helix_waged",
            "evenkeel.strategies.helix.waged.method:helix_waged",
            "Apache Helix's WAGED in all its scopes, bit for bit",
            "evenkeel.strategies.options:Waged",
            begins=1e-6,
            engine="waged:WagedEngine",
            refresh="evenkeel.strategies.helix.waged.refresh:refresh_payload",
            warmup="zones",
        ),
        Method(
            "ceph_crush",
            "evenkeel.strategies.ceph.method:ceph_crush",
            "Ceph's CRUSH on a Ceph map, bit for bit",
            "evenkeel.strategies.options:CephCrush",
            starts=False,
            begins=1e-7,
            refresh="evenkeel.strategies.ceph.refresh:refresh_payload",
            fixed_membership=True,
            warmup="devices",
        ),
        Method(
            "ceph_upmap",
            "evenkeel.strategies.ceph.method:ceph_upmap",
            "pg-upmap-items that level the devices of a Ceph map with few moves",
            "evenkeel.strategies.options:Upmap",
            starts=False,
            begins=1e-7,
            refresh="evenkeel.strategies.ceph.refresh:refresh_payload",
            fixed_membership=True,
            warmup="devices",
        ),
        Method(
            "cockroach",
            "evenkeel.strategies.cockroach.method:cockroach",
            "CockroachDB's replicate queue and store rebalancer, "
            "run until nothing is decided any more",
            "evenkeel.strategies.cockroach.settings:Cockroach",
            never_worse=True,
            begins=4e-7,
            decider="evenkeel.strategies.cockroach.range_decider:RangeDecider",
            refresh="evenkeel.strategies.cockroach.refresh:refresh_payload",
            warmup="stores",
        ),
        Method(
            "longhorn",
            "evenkeel.strategies.longhorn.method:longhorn",
            "Longhorn's replica auto-balance, volume by volume or as one plan for all of them",
            "evenkeel.strategies.longhorn.settings:Longhorn",
            limits=BUDGETS,
            starts=False,
            begins=2e-6,
            refresh="evenkeel.strategies.longhorn.refresh:refresh_payload",
            fixed_membership=True,
            warmup="volumes",
        ),
    )
}
"""The methods by name. A new one is a room of its own and an entry here."""
