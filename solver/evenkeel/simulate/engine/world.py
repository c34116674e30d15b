"""The world: the state of a simulated cluster at one moment, as mutable arrays."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Literal, assert_never

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.binding import nodes_of, nodes_that_meet
from evenkeel.measure.loads import has_leaders
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.names import Names
from evenkeel.model.nodes import Nodes
from evenkeel.model.partitions import Loads
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.arrays import read_only
from evenkeel.model.rules import Term


@dataclass(frozen=True, eq=False)
class Environment:
    """What surrounds a cluster that is played.

    Parameters
    ----------
    snapshot : float
        Bytes per second at which one snapshot is sent.
    overhead : float
        Seconds that any change takes beyond its snapshots; all of it where no dimension is moved.
    receive, send : int
        Snapshots that one node takes in, and sends, at the same time.
    lead_gap : float
        Seconds between two transfers of leadership away from the same node.
    deadline : float
        Seconds after which a queue gives up a change; see ``never_done``.
    growth : ndarray of float64, shape (P,), optional
        What each replica grows by in a second, in the dimension that is moved.
    consensus : bool
        Whether only a majority of its voters can change a partition; else any live replica can.
    pace : float
        Least seconds between two decisions of a method; a pipeline is run after every event, and at
        this pace as long as it finds something. CockroachDB's queues have their own.
    gossip_interval, gossip_delay : float
        Seconds between two rounds of gossip, and until it is heard; 0 where all is known at once.

    Raises
    ------
    InvalidInput
        If a rate is not above 0, or a time below 0.

    References
    ----------
    CockroachDB, cluster settings ``kv.snapshot_rebalance.max_rate`` (32 MiB/s) and
    ``kv.allocator.min_lease_transfer_interval`` (1 s); queue timeout 60 s.

    Examples
    --------
    >>> Environment(snapshot=1e6).seconds(3e6, 2)
    3.1
    """

    snapshot: float = 32.0 * 2**20
    overhead: float = 0.1
    receive: int = 1
    send: int = 2
    lead_gap: float = 1.0
    deadline: float = 60.0
    growth: NDArray[np.float64] | None = None
    consensus: bool = False
    pace: float = 10.0
    gossip_interval: float = 0.0
    gossip_delay: float = 0.0

    def __post_init__(self) -> None:
        faults = FaultList()
        for name in ("snapshot", "receive", "send", "deadline", "pace"):
            if not getattr(self, name) > 0:
                faults.add(f"environment.{name}", getattr(self, name), "must be above 0")
        for name in ("overhead", "lead_gap", "gossip_interval", "gossip_delay"):
            if not getattr(self, name) >= 0:
                faults.add(f"environment.{name}", getattr(self, name), "must be 0 or more")
        faults.raise_if_any()

    def seconds(self, size: float, snapshots: int) -> float:
        """Return how long a change takes once it has begun.

        One node sends at most ``send`` of its snapshots, of ``size`` bytes each, at the same time.
        """
        return self.overhead + -(-snapshots // self.send) * size / self.snapshot


@dataclass(frozen=True)
class Change:
    """One atomic change of a partition's replicas, or of who leads it.

    Parameters
    ----------
    partition : int
        The partition.
    add : tuple of (int, Role)
        Nodes that join, and as what; each is sent a snapshot first.
    drop : tuple of int
        Nodes that leave.
    role : tuple of (int, Role)
        Nodes that stay in another role.
    lead : int
        Node that leads afterwards; -1 keeps the leader, or gives it to the
        replica that takes its slot.
    by : str
        Who asked for it.
    reason : str
        Why, in a few words.
    urgency : float
        Of those that wait for the same lane the most urgent goes first.
    claims : bool
        Whether it waits for a change of the same partition that is under way, and keeps all others
        off until it is done, instead of being refused.
    deadline : float
        Seconds that it may take, waiting included, before it is given up.

    Examples
    --------
    >>> Change(3, add=((7, Role.VOTER),), drop=(1,)).moves
    1
    """

    partition: int
    add: tuple[tuple[int, Role], ...] = ()
    drop: tuple[int, ...] = ()
    role: tuple[tuple[int, Role], ...] = ()
    lead: int = -1
    by: str = ""
    reason: str = ""
    urgency: float = 0.0
    claims: bool = False
    deadline: float = np.inf

    @property
    def moves(self) -> int:
        """Replicas that get another node, or a first one."""
        return len(self.add)

    @property
    def only_leads(self) -> bool:
        """Whether no replica changes, only who leads."""
        return not (self.add or self.drop or self.role)


@dataclass
class Flight:
    """A change that was submitted."""

    change: Change
    number: int
    submitted: int
    ends: int = -1
    source: int = -1
    cancelled: bool = field(default=False)


LOADS = ("leader_load", "voter_load", "non_voter_load", "growth")
# what a world knows of each partition
ROWS = ("origin", "wanted", "voters", "rule", "node", "role", "leader", "moved_at")


class World:
    """Where everything is now. N nodes, P partitions, W slots, D dimensions.

    Parameters
    ----------
    cluster : Cluster
        The beginning: nodes that will ever be, rules that will ever hold, and a placement.
    environment : Environment
        How data grows, and whether changes need a majority.

    Attributes
    ----------
    names : Names
        Of the partitions that there are now.
    led : bool
        Whether partitions have leaders.
    health : ndarray of int8, shape (N,)
        A ``Health``.
    health_since : ndarray of float64, shape (N,)
        Second from which on it has been in that state.
    io : ndarray of float64, shape (N,)
        How overloaded the disks are; 0 for not at all.
    capacity : ndarray of float64, shape (N, D)
        In each dimension's unit.
    leader_load, voter_load, non_voter_load : ndarray of float64, shape (P, D)
        Load of a replica by its role.
    growth : ndarray of float64, shape (P,)
        Bytes by which each replica grows per second, in the dimension that is moved.
    wanted, voters, rule : ndarray of int32, shape (P,)
        Replicas and voters wanted, and the rule.
    node : ndarray of int32, shape (P, W)
        Node in each slot; -1 for none.
    role : ndarray of uint8, shape (P, W)
        A ``Role``.
    leader : ndarray of int16, shape (P,)
        Slot that leads; -1 for none.
    load : ndarray of float64, shape (N, D)
        What each node carries.
    replicas, leaders : ndarray of int64, shape (N,)
        What each node has and leads.
    moved_at : ndarray of float64, shape (P,)
        Second of the last change of replicas; ``-inf`` for never.
    seconds : float
        Time since the beginning.
    version : int
        Grows with every event, and with nothing else.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> world = World(c)
    >>> world.load.ravel().tolist(), world.replicas.tolist(), world.serves().tolist()
    ([4.0, 4.0, 0.0], [4, 4, 0], [True, True, True])
    """

    def __init__(self, cluster: Cluster, environment: Environment = Environment()) -> None:
        placement, partitions = cluster.placement, cluster.partitions
        count = len(partitions)
        widths = np.diff(placement.first)
        width = int(widths.max(initial=1))
        self.cluster = cluster
        self.seconds = 0.0
        self.version = 0
        self.consensus = environment.consensus
        self.names = partitions.names
        self.led = has_leaders(cluster) or not (placement.node >= 0).any()
        self.origin = np.arange(count)
        nodes = cluster.nodes
        self.health = health_of(nodes)
        self.health_since = np.zeros(len(nodes))
        self.io = np.zeros(len(nodes))
        self.adopt(cluster)
        growth = environment.growth
        self.growth = np.zeros(count) if growth is None else np.array(growth, np.float64)
        self.node = np.full((count, width), -1, np.int32)
        self.role = np.zeros((count, width), np.uint8)
        at = (placement.owner, np.arange(len(placement.node)) - placement.first[placement.owner])
        self.node[at] = placement.node
        self.role[at] = placement.role
        self.leader = placement.leader.copy()
        self.moved_at = np.full(count, -np.inf)
        self.refresh()

    def __len__(self) -> int:
        return len(self.leader)

    @property
    def disk(self) -> int:
        """The dimension that is moved; -1 for none."""
        return self.cluster.bytes_dimension

    def adopt(self, changed: Cluster) -> None:
        """Take capacities, loads, wanted numbers and rules from a changed snapshot."""
        partitions = changed.partitions
        if len(changed.rules) > len(self.cluster.rules):
            self.cluster = replace(self.cluster, rules=changed.rules)
        self.capacity = changed.nodes.capacity.copy()
        self.leader_load = partitions.load.leader.copy()
        self.voter_load = partitions.load.voter.copy()
        self.non_voter_load = partitions.load.non_voter.copy()
        self.wanted, self.voters = partitions.replicas.copy(), partitions.voters.copy()
        self.rule = partitions.rule.copy()

    def refresh(self) -> None:
        """Add up anew what every node carries, has and leads."""
        count, dimensions = self.capacity.shape
        rows, slots = np.nonzero(self.node >= 0)
        at = self.node[rows, slots]
        leads = slots == self.leader[rows]
        light = ~leads & (self.role[rows, slots] != Role.VOTER)
        load = self.voter_load[rows]
        load[leads] = self.leader_load[rows[leads]]
        if light.any():
            load[light] = self.non_voter_load[rows[light]]
        self.load = np.zeros((count, dimensions))
        for d in range(dimensions):
            self.load[:, d] = np.bincount(at, load[:, d], count)
        self.replicas: NDArray[np.int64] = np.bincount(at, minlength=count)
        self.leaders: NDArray[np.int64] = np.bincount(at[leads], minlength=count)
        self.growing = np.bincount(at, self.growth[rows], count).astype(np.float64)

    def advance(self, seconds: float) -> None:
        """Let time pass: replicas grow."""
        passed, self.seconds = seconds - self.seconds, seconds
        if passed > 0.0 and self.disk >= 0 and self.growth.any():
            for load in (self.leader_load, self.voter_load, self.non_voter_load):
                load[:, self.disk] += self.growth * passed
            self.load[:, self.disk] += self.growing * passed

    def leader_node(self, partition: int) -> int:
        """Return the node that leads a partition."""
        slot = int(self.leader[partition])
        return int(self.node[partition, slot]) if slot >= 0 else -1

    def leader_nodes(self) -> NDArray[np.int32]:
        """Return the node that leads each partition, (P,) int32."""
        found = self.node[np.arange(len(self)), np.maximum(self.leader, 0)]
        return np.where(self.leader >= 0, found, np.int32(-1))

    def serves(self) -> NDArray[np.bool_]:
        """Return which nodes answer now, (N,) bool."""
        return np.less(self.health, Health.UNKNOWN)

    def least_active(self) -> NDArray[np.int32]:
        """Return the live replicas below which each partition is in danger, (P,) int32."""
        return self.cluster.partitions.min_active[self.origin]

    def size(self, partition: int) -> float:
        """Return the bytes of one replica."""
        return float(self.voter_load[partition, self.disk]) if self.disk >= 0 else 0.0

    def has_quorum(self, partition: int) -> bool:
        """Return whether a partition can decide anything."""
        at = self.node[partition]
        votes = (at >= 0) & (self.role[partition] == Role.VOTER)
        live = votes & self.serves()[at]
        return bool(2 * live.sum() > votes.sum())

    def can_change(self, partition: int) -> bool:
        """Return whether replicas of a partition can be added and dropped."""
        at = self.node[partition]
        held = at >= 0
        if not held.any():
            return True
        if self.consensus:
            return self.has_quorum(partition)
        return bool(self.serves()[at[held]].any())

    def fits(self, change: Change) -> bool:
        """Return whether a change can still be made."""
        at = set(self.node[change.partition].tolist()) - {-1}
        joining = {node for node, _ in change.add}
        staying = (at | joining) - set(change.drop)
        serves = self.serves()
        return (
            not joining & at
            and len(joining) == len(change.add)
            and set(change.drop) <= at
            and {node for node, _ in change.role} <= staying
            and (change.lead < 0 or (change.lead in staying and bool(serves[change.lead])))
            and all(serves[node] for node in joining)
            and len(staying) > 0
            and self.can_change(change.partition)
        )

    def apply(self, change: Change) -> None:
        """Make a change that ``fits``."""
        partition = change.partition
        self._count(partition, -1)
        at = self.node[partition]
        freed = [int(np.flatnonzero(at == node)[0]) for node in change.drop]
        slots = freed + [int(slot) for slot in np.flatnonzero(at < 0)]
        missing = len(change.add) - len(slots)
        if missing > 0:
            slots += range(at.size, at.size + missing)
            self._widen(missing)
        self.node[partition, freed] = -1
        for slot, (node, role) in zip(slots, change.add, strict=False):
            self.node[partition, slot] = node
            self.role[partition, slot] = role
        for node, role in change.role:
            self.role[partition, self.node[partition] == node] = role
        if change.lead >= 0:
            self.leader[partition] = np.flatnonzero(self.node[partition] == change.lead)[0]
        self.keep_led(partition)
        if not change.only_leads:
            self.moved_at[partition] = self.seconds
        self._count(partition, 1)

    def keep_led(self, partition: int) -> None:
        """Give a partition whose leader left or answers no longer the first voter that does."""
        if not self.led:
            return
        at, role = self.node[partition], self.role[partition]
        slot = int(self.leader[partition])
        able = (at >= 0) & self.serves()[at] & (role == Role.VOTER)
        if slot < 0 or not able[slot]:
            choice = np.flatnonzero(able)
            if len(choice) and self.can_change(partition):
                self.leader[partition] = choice[0]

    def keep_all_led(self) -> bool:
        """Give every partition a leader that answers, where it has none and one can be found."""
        at = self.leader_nodes()
        without = np.flatnonzero((at < 0) | ~self.serves()[at])
        for partition in without.tolist():
            self.keep_led(partition)
        return len(without) > 0

    def split(self, partition: int, share: float) -> None:
        """Split a partition in two; the second gets the next number."""
        for name in LOADS:
            given = getattr(self, name)
            taken = given[partition] * share
            given[partition] -= taken
            setattr(self, name, np.concatenate([given, taken[None]]))
        counted = [name == "replicas" for name in self.cluster.dimensions]
        for name in ("leader_load", "voter_load", "non_voter_load"):
            getattr(self, name)[np.ix_([partition, -1], counted)] = 1.0
        self._repeat(np.array([partition]), ROWS)
        self.refresh()

    def add_partitions(self, like: NDArray[np.int64]) -> None:
        """Add partitions that have no replicas so far."""
        count = len(self)
        self._repeat(like, (*LOADS, *ROWS))
        self.node[count:] = -1
        self.role[count:] = Role.VOTER
        self.leader[count:] = -1
        self.moved_at[count:] = -np.inf

    def _repeat(self, which: NDArray[np.int64], columns: Iterable[str]) -> None:
        """Append rows that are the same as others, with names of their own."""
        if self.names.counted:
            prefix = self.names[0].removesuffix("0")  # the name of the first is prefix and number
            self.names = Names(None, len(self) + len(which), prefix)
        else:
            given, taken = list(self.names), set(self.names)
            for parent in which.tolist():
                number = 2
                while (name := f"{given[parent]}/{number}") in taken:
                    number += 1
                given.append(name)
                taken.add(name)
            self.names = Names(given, len(given), "")
        for name in columns:
            column = getattr(self, name)
            setattr(self, name, np.concatenate([column, column[which]]))

    def accepts(self) -> NDArray[np.bool_]:
        """Return which nodes may be given replicas, IO taken into account, (N,) bool."""
        accepts: NDArray[np.bool_] = FLAGS[self.health, 1] & ~self._overloaded(*MAY_NOT_RECEIVE)
        return accepts

    def states(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which nodes are alive, which may be given replicas, and which may lead."""
        flags = FLAGS[self.health]
        return flags[:, 0], self.accepts(), flags[:, 3] & ~self._overloaded(*MAY_NOT_LEAD)

    def snapshot(
        self, under_way: Iterable[Change] = (), forbidden: NDArray[np.int32] | None = None
    ) -> Cluster:
        """Return the cluster as it is now."""
        node, role, leader = self.node, self.role, self.leader
        pending = list(under_way)
        if pending:
            after = object.__new__(World)
            after.__dict__.update(self.__dict__)
            for name in ("node", "role", "leader", "load", "replicas", "leaders", "moved_at"):
                setattr(after, name, getattr(self, name).copy())
            after.growing = self.growing.copy()
            for change in pending:
                if after.fits(change):
                    after.apply(change)
            node, role, leader = after.node, after.role, after.leader
        node, role = _with_empty_slots(node, role, self.wanted, self.voters)
        _, _, keeps, _, gone = (read_only(column) for column in FLAGS[self.health].T.copy())
        alive, accepts, leads = (read_only(column.copy()) for column in self.states())
        template = self.cluster
        count, width = node.shape
        old = template.partitions
        partitions = replace(
            old,
            names=self.names,
            load=Loads(
                read_only(self.leader_load.copy()),
                read_only(self.voter_load.copy()),
                read_only(self.non_voter_load.copy()),
            ),
            replicas=read_only(self.wanted.copy()),
            voters=read_only(self.voters.copy()),
            rule=read_only(self.rule.copy()),
            min_active=read_only(old.min_active[self.origin]),
            group=read_only(old.group[self.origin]),
            attached=read_only(old.attached[self.origin]),
            move_cost=read_only(old.move_cost[self.origin]),
        )
        return replace(
            template,
            nodes=replace(
                template.nodes,
                capacity=read_only(self.capacity.copy()),
                alive=alive,
                accepts=accepts,
                keeps=keeps,
                leads=leads,
                gone=gone,
            ),
            partitions=partitions,
            placement=Placement(
                read_only(np.arange(0, count * width + 1, width, dtype=np.int64)),
                read_only(node.reshape(-1).copy()),
                read_only(role.reshape(-1).copy()),
                read_only(np.zeros(count * width, np.uint16)),
                read_only(leader.copy()),
            ),
            forbidden=_together(template.forbidden, forbidden),
        )

    def _overloaded(self, least: float, factor: float) -> NDArray[np.bool_]:
        serves = self.serves()
        mean = float(self.io[serves].mean()) if serves.any() else 0.0
        return (self.io >= least) & (self.io >= factor * mean)

    def _widen(self, slots: int) -> None:
        rows = len(self)
        self.node = np.hstack([self.node, np.full((rows, slots), -1, np.int32)])
        self.role = np.hstack([self.role, np.zeros((rows, slots), np.uint8)])

    def _count(self, partition: int, sign: int) -> None:
        """Add what a partition's replicas weigh to their nodes, or take it away."""
        for slot, node in enumerate(self.node[partition].tolist()):
            if node < 0:
                continue
            if slot == self.leader[partition]:
                load = self.leader_load[partition]
                self.leaders[node] += sign
            elif self.role[partition, slot] == Role.VOTER:
                load = self.voter_load[partition]
            else:
                load = self.non_voter_load[partition]
            self.load[node] += sign * load
            self.replicas[node] += sign
            self.growing[node] += sign * self.growth[partition]


def _together(forbidden: NDArray[np.int32], more: NDArray[np.int32] | None) -> NDArray[np.int32]:
    """Return pairs of either kind, sorted, each once."""
    if more is None or len(more) == 0:
        return forbidden
    return read_only(np.unique(np.concatenate([forbidden, more]), axis=0))


def _with_empty_slots(
    node: NDArray[np.int32],
    role: NDArray[np.uint8],
    wanted: NDArray[np.int32],
    voters: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return rows with an empty slot of the right role for each replica that is missing."""
    held = node >= 0
    votes = role == Role.VOTER
    short = np.maximum(voters - (held & votes).sum(1), 0)
    deaf = np.maximum(wanted - voters - (held & ~votes).sum(1), 0)
    width = max(node.shape[1], int((held.sum(1) + short + deaf).max(initial=1)))
    if width > node.shape[1]:
        more = ((0, 0), (0, width - node.shape[1]))
        node = np.pad(node, more, constant_values=-1)
        role = np.pad(role, more)
    empty = node < 0
    rank = np.cumsum(empty, axis=1) - 1
    takes_deaf = empty & (rank >= short[:, None]) & (rank < (short + deaf)[:, None])
    role = np.where(empty, np.where(takes_deaf, Role.NON_VOTER, Role.VOTER), role)
    return node, role.astype(np.uint8)


class Health(IntEnum):
    """The state of a node.

    Examples
    --------
    >>> [one.name for one in Health]
    ['UP', 'SUSPECT', 'DRAINING', 'DECOMMISSIONING', 'UNKNOWN', 'DEAD', 'ABSENT']
    """

    UP = 0
    SUSPECT = 1
    """Back from an outage a moment ago: keeps what it has, is given nothing."""
    DRAINING = 2
    DECOMMISSIONING = 3
    UNKNOWN = 4
    """Not heard of, but not for long enough to be dead."""
    DEAD = 5
    ABSENT = 6
    """Not part of the cluster, or not yet."""


FLAGS = np.array(  # what each state means for ``Nodes``: alive, accepts, keeps, leads, gone
    # alive, accepts, keeps, leads, gone
    [
        [1, 1, 1, 1, 0],
        [1, 0, 1, 1, 0],
        [1, 0, 1, 0, 0],
        [1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1],
    ],
    bool,
)

# a node whose IO score is at least so high, and so many times the mean, is given no replica
MAY_NOT_RECEIVE = (0.3, 1.1)
MAY_NOT_LEAD = (0.4, 1.75)  # and from here on it leads nothing


def health_of(nodes: Nodes) -> NDArray[np.int8]:
    """Return the states of nodes by their flags."""
    health = np.full(len(nodes), Health.UP, np.int8)
    health[~nodes.accepts] = Health.SUSPECT
    health[~nodes.leads] = Health.DRAINING
    health[~nodes.keeps] = Health.DECOMMISSIONING
    health[~nodes.alive] = Health.UNKNOWN
    health[~nodes.alive & ~nodes.keeps] = Health.DEAD
    health[nodes.gone] = Health.ABSENT
    return health


KINDS = (  # what is counted; in danger is what has fewer live replicas than its ``min_active``
    "under", "over", "unavailable", "in_danger", "violating", "lead_violating",
    "lead_less_preferred",
)  # fmt: skip


@dataclass(frozen=True)
class DomainLimit:
    """How the replicas of a partition must stand in the domains of a tier."""

    domain: NDArray[np.int32]  # (N,) domain of each node; -1 for none
    kind: Literal["spread", "min_domains", "max_domains"]  # as in ``model.rules.Limit``
    amount: int  # replicas in one domain, or domains

    def broken(self, node: NDArray[np.int32], held: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which rows break it."""
        at = np.sort(np.where(held, self.domain[node], np.int32(-1)), axis=1)
        inside = at >= 0
        if self.kind == "spread":
            # sorted, more than so many of one domain stand where the next one but so many is equal
            beyond, before = at[:, self.amount :], at[:, : at.shape[1] - self.amount]
            return np.asarray(((beyond == before) & (beyond >= 0)).any(1))
        apart = inside[:, :1].sum(1) + (inside[:, 1:] & (at[:, 1:] != at[:, :-1])).sum(1)
        if self.kind == "min_domains":
            return np.asarray(apart < self.amount)
        if self.kind == "max_domains":
            return np.asarray(apart > self.amount)
        assert_never(self.kind)


@dataclass(frozen=True)
class Demands:
    """What one rule asks for, as masks of nodes."""

    terms: list[tuple[Term, NDArray[np.bool_]]]  # what it wants on some nodes, (N,)
    lead: list[NDArray[np.bool_]]  # (N,) where the leader should be, first choice first
    # hard limits on domains that it sets for each partition by itself; not those on skew
    limits: list[DomainLimit]

    def broken(
        self, node: NDArray[np.int32], held: NDArray[np.bool_], votes: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return which rows break what is asked of their replicas, or of their voters."""
        bad: NDArray[np.bool_] = np.zeros(len(node), bool)
        for term, mask in self.terms:
            counted = votes if term.voters else held
            if term.for_all:
                bad |= (counted & ~mask[node]).any(1)
            else:
                bad |= (counted & mask[node]).sum(1) < term.least
        for limit in self.limits:
            bad |= limit.broken(node, held)
        return bad


def demands_of(cluster: Cluster) -> list[Demands]:
    """Return what each rule of a cluster asks for."""
    domains = cluster.topology.domain_with_nodes
    return [
        Demands(
            terms=[(term, nodes_of(cluster, term)) for term in rule.terms()],
            lead=[nodes_that_meet(cluster, [text]) for text in rule.lead],
            limits=[
                DomainLimit(domains[cluster.topology.tier_index(one.tier)], one.kind, one.amount)
                for one in rule.limits()
                if one.hard and one.kind != "skew"
            ],
        )
        for rule in cluster.rules
    ]


class Conformance:
    """Counts the partitions that are not as they should be."""

    # Too few or too many live replicas, no majority (or, without consensus, no live replica),
    # replicas where a rule does not want them or too close together (skews and rules of whole
    # groups are left to the audit), or a leader where a rule does not want one. CockroachDB,
    # replication reports: under-replicated, over-replicated, unavailable, violating constraints,
    # and the same of lease preferences.

    def __init__(self, cluster: Cluster) -> None:
        self._demands = demands_of(cluster)
        self._seen: tuple[NDArray[np.generic], ...] = ()
        self._found = np.zeros(0, np.int64)

    def count(self, world: World) -> NDArray[np.int64]:
        """Count."""
        if len(self._demands) < len(world.cluster.rules):
            self._demands = demands_of(world.cluster)
        seen: tuple[NDArray[np.generic], ...] = (
            world.node, world.role, world.leader, world.health,
            world.wanted, world.voters, world.least_active(), world.rule,
        )  # fmt: skip
        same = (np.array_equal(now, then) for now, then in zip(seen, self._seen, strict=False))
        if not self._seen or not all(same):
            # most samples find everything as it was
            self._seen = tuple(part.copy() for part in seen)
            self._found = self._count(world)
        return self._found.copy()

    def _count(self, world: World) -> NDArray[np.int64]:
        node = world.node
        held = node >= 0
        votes = held & (world.role == Role.VOTER)
        lost = held & (world.health[node] >= Health.DEAD)
        answering = votes & world.serves()[node]
        live = (held & ~lost).sum(1)
        under = (live < world.wanted) | ((votes & ~lost).sum(1) < world.voters)
        over = live > world.wanted
        in_danger = (held & world.serves()[node]).sum(1) < world.least_active()
        if world.consensus:
            unavailable = 2 * answering.sum(1) <= votes.sum(1)
        else:
            unavailable = ~answering.any(1)
        violating = np.zeros(len(world), bool)
        badly_led = np.zeros(len(world), bool)
        less_preferred = np.zeros(len(world), bool)
        leader = world.leader_nodes()
        for number, demands in enumerate(self._demands):
            mine = np.flatnonzero(world.rule == number)
            if len(mine) == 0:
                continue
            violating[mine] = demands.broken(node[mine], held[mine], votes[mine])
            if demands.lead:
                meets = np.stack(
                    [mask[leader[mine]] & (leader[mine] >= 0) for mask in demands.lead]
                )
                badly_led[mine] = ~meets.any(0)
                less_preferred[mine] = ~meets[0] & meets.any(0)
        kinds = (under, over, unavailable, in_danger, violating, badly_led, less_preferred)
        return np.array([int(which.sum()) for which in kinds])
