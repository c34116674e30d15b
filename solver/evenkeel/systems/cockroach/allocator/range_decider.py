"""CockroachDB's queues: decisions on single ranges, and two runs that change a whole cluster.

Decisions on single ranges change nothing: the caller (a simulation, a control loop) carries them
out and reports what came of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.contract import Decider, Decision, StoreView
from evenkeel.model.cluster import Cluster
from evenkeel.systems.cockroach.allocator import actions as first_things
from evenkeel.systems.cockroach.allocator.actions import actions, no_rules
from evenkeel.systems.cockroach.allocator.intake import (
    ROW_OF,
    SETTINGS,
    UNIT,
    Fleet,
    fleet_of,
    known_workload,
)
from evenkeel.systems.cockroach.allocator.leases import (
    CPU,
    QPS,
    REASONS,
    Lease,
    LeaseAllocator,
    rng_state_of,
)
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.changes import REMEMBERED, DecisionLog, Left, nothing_left
from evenkeel_kernels.cockroach.cluster_rules import ClusterRules
from evenkeel_kernels.cockroach.context import make_context, make_members, tally_all
from evenkeel_kernels.cockroach.leases import (
    BY_PREFERENCE,
    MOVED,
    mean_load,
    room_for_contenders,
    transfer_leases,
)
from evenkeel_kernels.cockroach.replicate_queue import (
    ACTED,
    NEEDED,
    STEPS,
    STUCK,
    Step,
    decide_alone,
    work_off,
)
from evenkeel_kernels.cockroach.store_rebalancer import (
    LEASE_BY_LOAD,
    LEASE_WITH_REPLICAS,
    NON_VOTER_BY_LOAD,
    VOTER_BY_LOAD,
    LoadContext,
    lease_by_load,
    rebalance_stores,
    replicas_by_load,
    room_for_hottest,
    scorer_of,
)

HOT = 128  # replicas that a store looks at
# reasons for moves of leases and replicas, by the log's numbers from 40 up
KINDS = {
    **{MOVED + reason: text for reason, text in REASONS.items()},
    LEASE_BY_LOAD: "the store carries too much load; the lease alone takes some away",
    VOTER_BY_LOAD: "the store carries too much load, and no lease alone could take it away",
    NON_VOTER_BY_LOAD: "the leaseholder's store carries too much load",
    LEASE_WITH_REPLICAS: "of the stores that hold the range now, this one carries least",
}

STATES = ("next", "in a row", "made", "withheld")


@dataclass(frozen=True)
class HotRange:
    """A range that carries load."""

    voters: Sequence[int]
    holder: int
    load: float
    non_voters: Sequence[int] = ()
    replica_load: float = 0.0
    behind: Sequence[int] = ()
    config: int = 0
    number: int = 0

    def as_ranges(self, row: int) -> kernel.Ranges:
        """Lay it out for kernels, as the only range of which anything is known."""
        stores = [*self.voters, *self.non_voters]
        width, ranges = len(stores), self.number + 1
        each, lease = (np.zeros((kernel.AMOUNTS, ranges)) for _ in range(2))
        each[kernel.RANGES], each[row, -1] = 1.0, self.replica_load
        lease[kernel.LEASES], lease[row, -1] = 1.0, self.load
        roles = [kernel.VOTER] * len(self.voters) + [kernel.NON_VOTER] * len(self.non_voters)
        held = np.full(ranges, kernel.NOWHERE, np.int16)
        if self.holder in stores:
            held[-1] = stores.index(self.holder)
        return kernel.Ranges(
            np.append(np.zeros(ranges, np.int64), width),
            np.array(stores, np.int32),
            np.array(roles, np.uint8),
            held,
            np.full(ranges, self.config, np.int32),
            each,
            lease,
            np.full(ranges, kernel.NOT_MODELLED, np.int8),
            np.zeros(width, np.bool_),
            np.array([s in self.behind for s in stores], np.bool_),
            np.zeros(ranges, np.bool_),
        )


@dataclass(frozen=True)
class Relocation:
    """Where the replicas of a range should be, all changed at once.

    >>> Relocation((0, 2), (), 2).holder
    2
    """

    voters: tuple[int, ...]
    non_voters: tuple[int, ...]
    holder: int


@dataclass(frozen=True, eq=False)
class StoreRebalancer:
    """Decides for one hot range at a time."""

    leases: LeaseAllocator
    settings: kernel.Settings = SETTINGS

    def lease_target(self, stores: kernel.Stores, hot: HotRange) -> int:
        """Return the store to which the lease should go."""
        leases = self.leases.context(stores, room_for_contenders(len(hot.voters)))
        row = self.leases.load.row
        mean = mean_load(stores, row)
        return int(lease_by_load(leases, hot.as_ranges(row), mean, hot.number)[0])

    def relocation(
        self, stores: kernel.Stores, hot: HotRange, *, seed: int = 0
    ) -> Relocation | None:
        """Return where its replicas and its lease should be."""
        ranges = hot.as_ranges(self.leases.load.row)
        context = self.context(stores, ranges)
        tally_all(context.allocator)
        holder, _ = replicas_by_load(context, ranges, hot.number, rng_state_of(seed))
        if holder < 0:
            return None
        after = context.allocator.members
        voters = tuple(int(s) for s in after.voter[: after.size[0]])
        others = tuple(int(s) for s in after.non_voter[: after.size[1]])
        return Relocation(voters, others, int(holder))

    def context(self, stores: kernel.Stores, ranges: kernel.Ranges) -> LoadContext:
        """Lay out all that kernels read, and room for what they write."""
        width = int(np.diff(ranges.first).max(initial=0)) + 2
        replicas = len(ranges.store)
        leases = self.leases
        allocator = make_context(
            leases.localities, stores, leases.configs, self.settings, scorer_of(leases.load),
            make_members(width),
        )  # fmt: skip
        return LoadContext(
            leases.context(stores, room_for_contenders(width)),
            allocator,
            make_members(width),
            room_for_hottest(HOT),
            np.zeros(len(stores.io) + 1, np.int64),
            np.zeros(replicas, np.int64),
            np.zeros(replicas, np.int64),
        )


@dataclass(eq=False)
class LoadRun:
    """Moves leases and replicas of ranges, in place, as CockroachDB's stores would in time."""

    rebalancer: StoreRebalancer
    stores: kernel.Stores  # as they are; changes are booked there
    ranges: kernel.Ranges  # as they are; changes are made there
    # where decisions are noted. When it is full, work stops until it has been emptied.
    log: DecisionLog
    left: Left  # stores that replicas have left in this run, and do not return to
    # (1,) state of the generator that draws among what ties
    rng_state: NDArray[np.uint64] = field(default_factory=lambda: rng_state_of(0))

    def __post_init__(self) -> None:
        width = int(np.diff(self.ranges.first).max(initial=0)) + 2
        if len(self.log.kind) < HOT * (2 * width + 1):
            raise ValueError(f"the log must hold {HOT * (2 * width + 1)} decisions at least")
        self._left_leases = nothing_left(len(self.ranges.lease))
        self._context = self.rebalancer.context(self.stores, self.ranges)
        self._leases, self._loads = (np.zeros(len(STATES), np.int64) for _ in range(2))
        self._made = 0

    def begin(self) -> None:
        """Look at everything again, as when others have changed it."""
        self._made = self.decisions
        self._leases = np.zeros(len(STATES), np.int64)
        self._loads = np.zeros(len(STATES), np.int64)

    def transfer(self, budget: int) -> bool:
        """Let leases move for the sake of counts, preferences, requests and overload."""
        transfer_leases(
            self.ranges,
            self._context.leases,
            self._leases,
            budget,
            self._left_leases,
            self.log,
            self.rng_state,
        )
        return bool(self._leases[1] >= len(self.ranges.lease))

    def relieve(self, budget: int) -> bool:
        """Let stores that carry too much give away leases and replicas."""
        rebalance_stores(
            self.ranges, self._context, self._loads, budget, self.left, self._left_leases, self.log,
            self.rng_state,
        )  # fmt: skip
        return bool(self._loads[1] >= len(self.stores.io))

    @property
    def decisions(self) -> int:
        """Decisions made in all."""
        return int(self._made + self._leases[2] + self._loads[2])

    @property
    def withheld(self) -> int:
        """Decisions that the last rounds did not make, since something would have gone back."""
        return int(self._leases[3] + self._loads[3])


HOTTEST = 128  # ranges that a store's rebalancer looks at
_PLAIN = {"ConsiderRebalance": "consider rebalance", "RangeUnavailable": "unavailable"}


class RangeDecider(Decider):
    """Decides for one range at a time, on what it was shown last."""

    def __init__(self, cluster: Cluster, objective: str, seed: int) -> None:
        # rules and nodes may have changed since a system's own payload was taken
        fleet = fleet_of(replace(cluster, native=None))
        workload = known_workload(cluster, fleet, 1.0)
        self._follows = workload is not None
        self._ranges, self._stores = fleet.ranges, fleet.stores
        # no input states when a replica has caught up
        fleet.ranges.raft[:], fleet.ranges.up_to_date[:] = kernel.NOT_MODELLED, True
        fleet.ranges.behind[:] = False
        self._localities, self._configs = fleet.localities, fleet.configs
        self._hosts = fleet.hosts
        self._context = make_context(
            fleet.localities, fleet.stores, fleet.configs, SETTINGS, BY_COUNT,
            make_members(fleet.width),
        )  # fmt: skip
        self._left = nothing_left(len(cluster.partitions))
        self._load = CPU if objective == "cpu" else QPS
        self._leases = LeaseAllocator(
            fleet.localities, fleet.configs, workload=workload, load=self._load
        )
        self._rebalancer = StoreRebalancer(self._leases)
        self._rng_state = rng_state_of(seed)
        self._seed = seed
        self._draws = 0
        self._rows = [
            (ROW_OF[name], d, UNIT.get(ROW_OF[name], 1.0))
            for d, name in enumerate(cluster.dimensions)
            if name in ROW_OF
        ]

    def place(
        self, partition: int, node: NDArray[np.int32], role: NDArray[np.uint8], leader: int
    ) -> None:
        """Hear where the replicas of a range are now."""
        ranges = self._ranges
        row = slice(ranges.first[partition], ranges.first[partition + 1])
        held = np.flatnonzero(node >= 0)
        for store in set(ranges.store[row].tolist()) - set(node.tolist()):
            self._remember(partition, store)
        ranges.store[row] = -1
        ranges.store[row][: len(held)] = node[held]
        ranges.role[row][: len(held)] = role[held]
        ranges.lease[partition] = int((held < leader).sum()) if leader in held else -1

    def look(self, seen: StoreView) -> None:
        """Take in what the store that decides next knows."""
        stores = self._stores
        stores.status[:] = seen.status
        stores.ready[:] = (seen.status == kernel.AVAILABLE) & seen.present
        stores.amount[kernel.RANGES] = seen.replicas
        stores.amount[kernel.LEASES] = seen.leaders
        for row, dimension, unit in self._rows:
            stores.amount[row] = seen.load[:, dimension] * unit
        stores.available[:] = np.maximum(stores.capacity - stores.amount[kernel.BYTES], 0.0)
        stores.io[:] = seen.io
        counts = seen.present & (seen.status != kernel.DECOMMISSIONING)
        self._hosts = len(np.unique(self._localities.host[counts]))
        tally_all(self._context)

    def action(self, partition: int) -> tuple[str, float]:
        """Return what a range needs first, and how urgently."""
        ranges = self._ranges
        row = slice(ranges.first[partition], ranges.first[partition + 1])
        store = ranges.store[row]
        found = first_things.actions(
            first=np.array([0, len(store)]),
            store=store,
            status=self._stores.status,
            configs=self._configs,
            hosts=self._hosts,
            role=ranges.role[row],
            config=ranges.config[partition : partition + 1],
        )
        name = first_things.ACTIONS[found.action[0]]
        return _PLAIN.get(name, name), float(found.priority[0])

    def replicas(self, partition: int) -> Decision | None:
        """Decide the next change of a range's replicas."""
        step = decide_alone(
            self._ranges, self._context, self._hosts, partition, self._left, self._rng_state
        )
        return self._decision(partition, step) if step.came == ACTED else None

    def lease(self, partition: int) -> Decision | None:
        """Decide whether a range's lease should go elsewhere."""
        holder = self._holder(partition)
        if holder < 0:
            return None
        status = self._stores.status[holder]
        asked = bool(status in (kernel.DRAINING, kernel.DECOMMISSIONING))
        voters, _ = self._held(partition)
        lease = self._lease(partition, voters, holder)
        found = self._leases.target(self._stores, lease, asked=asked, seed=self._draw())
        if found.target < 0 or found.target == holder:
            return None
        urgency = first_things.BY_LEASE_PREFERENCE if found.reason == BY_PREFERENCE else 0.0
        return Decision(partition, lead=found.target, reason=found.text, urgency=urgency)

    def load(self, node: int) -> list[Decision]:
        """Decide what a store gives away because it carries too much load."""
        stores, load = self._stores, self._load
        amount = stores.amount[load.row]
        mean = mean_load(stores, load.row)
        most = mean + max(load.threshold * mean, load.least)
        found: list[Decision] = []
        left: list[int] = []
        if amount[node] <= most:
            return found
        for partition in self._hottest(node):
            if amount[node] <= most:
                return found
            if self._ranges.lease_load[load.row, partition] < load.lease_share * amount[node]:
                continue  # its lease alone brings next to nothing
            target = self._rebalancer.lease_target(stores, self._hot(partition))
            if target < 0:
                left.append(partition)
                continue
            self._book_lease(partition, node, target)
            found.append(Decision(partition, lead=target, reason="load: lease"))
        for partition in left:
            if amount[node] <= most:
                break
            hot = self._hot(partition)
            wanted = self._rebalancer.relocation(stores, hot, seed=self._draw())
            if wanted is not None:
                found.append(self._relocated(partition, hot, wanted))
        return found

    def _decision(self, partition: int, step: Step) -> Decision:
        """Turn a step into a change: one comes, one goes, or both at once."""
        name = first_things.ACTIONS[step.action]
        voters, others = self._held(partition)
        target, removed = int(step.target), int(step.removed)
        next_leader = self._next_leader(partition, voters, removed)
        if target in voters or target in others:
            roles = [(target, kernel.VOTER)]
            if removed >= 0:
                roles.append((removed, kernel.NON_VOTER))
            return Decision(partition, role=tuple(roles), lead=next_leader, reason=name)
        return Decision(
            partition,
            add=((target, int(step.role)),) if target >= 0 else (),
            drop=(removed,) if removed >= 0 else (),
            lead=next_leader,
            reason=name,
        )

    def _next_leader(self, partition: int, voters: list[int], removed: int) -> int:
        """Return the next leaseholder after its replica is removed; -1 if another replica is."""
        holder = self._holder(partition)
        if removed < 0 or removed != holder:
            return -1
        staying = [s for s in voters if s != removed]
        lease = self._lease(partition, staying, holder)
        return self._leases.target(self._stores, lease, asked=True, seed=self._draw()).target

    def _relocated(self, partition: int, hot: HotRange, wanted: Relocation) -> Decision:
        """Turn new replicas into a change, and book what they carry."""
        now = dict.fromkeys(hot.voters, kernel.VOTER)
        now |= dict.fromkeys(hot.non_voters, kernel.NON_VOTER)
        then = dict.fromkeys(wanted.voters, kernel.VOTER)
        then |= dict.fromkeys(wanted.non_voters, kernel.NON_VOTER)
        for stores, sign in ((now, -1.0), (then, 1.0)):
            for s in stores:
                self._stores.amount[:, s] += sign * self._ranges.replica_load[:, partition]
        if wanted.holder != hot.holder:
            self._book_lease(partition, hot.holder, wanted.holder)
        return Decision(
            partition,
            add=tuple((s, role) for s, role in then.items() if s not in now),
            drop=tuple(s for s in now if s not in then),
            role=tuple((s, role) for s, role in then.items() if now.get(s, role) != role),
            lead=wanted.holder,
            reason="load: replicas",
        )

    def _book_lease(self, partition: int, source: int, target: int) -> None:
        carried = self._ranges.lease_load[:, partition]
        self._stores.amount[:, source] -= carried
        self._stores.amount[:, target] += carried

    def _hottest(self, node: int) -> list[int]:
        """Ranges that a store leads, hottest first."""
        ranges, row = self._ranges, self._load.row
        slot = ranges.first[:-1] + np.maximum(ranges.lease, 0)
        mine = np.flatnonzero((ranges.store[slot] == node) & (ranges.lease >= 0))
        load = ranges.replica_load[row, mine] + ranges.lease_load[row, mine]
        hottest: list[int] = mine[np.argsort(-load, kind="stable")[:HOTTEST]].tolist()
        return hottest

    def _hot(self, partition: int) -> HotRange:
        ranges, row = self._ranges, self._load.row
        voters, others = self._held(partition)
        return HotRange(
            voters=voters,
            holder=self._holder(partition),
            load=float(ranges.lease_load[row, partition]),
            non_voters=others,
            replica_load=float(ranges.replica_load[row, partition]),
            config=int(ranges.config[partition]),
            number=partition if self._follows else 0,
        )

    def _lease(self, partition: int, voters: list[int], holder: int) -> Lease:
        config = int(self._ranges.config[partition])
        return Lease(voters, holder, config, number=partition if self._follows else 0)

    def _held(self, partition: int) -> tuple[list[int], list[int]]:
        """Stores of the voters and of the non-voters of a range."""
        ranges = self._ranges
        row = slice(ranges.first[partition], ranges.first[partition + 1])
        store, role = ranges.store[row], ranges.role[row]
        held = store >= 0
        return (
            store[held & (role == kernel.VOTER)].tolist(),
            store[held & (role == kernel.NON_VOTER)].tolist(),
        )

    def _holder(self, partition: int) -> int:
        slot = int(self._ranges.lease[partition])
        return int(self._ranges.store[self._ranges.first[partition] + slot]) if slot >= 0 else -1

    def _remember(self, partition: int, store: int) -> None:
        """Remember a store that a range has left; the first of too many is forgotten."""
        row = self._left.store[partition]
        if store < 0 or store in row:
            return
        free = np.flatnonzero(row < 0)
        if len(free):
            row[free[0]] = store
        else:
            row[: REMEMBERED - 1] = row[1:]
            row[REMEMBERED - 1] = store

    def _draw(self) -> int:
        self._draws += 1
        return self._seed * 1_000_003 + self._draws


# levels the number of ranges, as the replicate queue does
BY_COUNT = kernel.Scorer(kernel.COUNT, kernel.RANGES, 0.05, 2.0, 0.0)


@dataclass(eq=False)
class ReplicateRun:
    """Repairs and moves the replicas of ranges, in place, as CockroachDB's queues would in time."""

    # A pass looks at every range once, the most urgent first. The first passes do with each all
    # that it needs; when none needs anything, the next move one replica of each for the sake of
    # counts.

    fleet: Fleet  # stores and ranges; changes are made there
    # where decisions are noted. When it is full, work stops until it has been emptied.
    log: DecisionLog
    left: Left  # stores that replicas have left in this run, and do not return to by choice
    settings: kernel.Settings = field(default=SETTINGS)  # thresholds; CockroachDB's by default
    # what is levelled; the number of ranges by default
    scorer: kernel.Scorer = field(default=BY_COUNT)
    # (1,) state of the generator that draws among what ties
    rng_state: NDArray[np.uint64] = field(default_factory=lambda: rng_state_of(0))
    # what the cluster asks beyond what CockroachDB knows; nothing by default
    rules: ClusterRules = field(default_factory=no_rules)

    def __post_init__(self) -> None:
        fleet = self.fleet
        self._context = make_context(
            fleet.localities, fleet.stores, fleet.configs, self.settings, self.scorer,
            make_members(fleet.width),
        )  # fmt: skip
        self._state = np.zeros(len(fleet.ranges.config), np.int8)
        self._least = NEEDED
        self.passes = 0
        self.decisions = 0
        self.looked_at = 0
        self.begin()

    def begin(self) -> None:
        """Look at everything again, as when others have changed it."""
        fleet = self.fleet
        tally_all(self._context)
        found = actions(
            first=fleet.ranges.first,
            store=fleet.ranges.store,
            role=fleet.ranges.role,
            joint=fleet.ranges.joint,
            config=fleet.ranges.config,
            status=fleet.stores.status,
            configs=fleet.configs,
            hosts=fleet.hosts,
        )
        self._order = np.argsort(-found.priority, kind="stable").astype(np.int32)
        self._cursor = np.zeros(5, np.int64)
        self.passes += 1

    def step(self, budget: int) -> bool:
        """Go on with the pass."""
        made, looked = int(self._cursor[1]), int(self._cursor[2])
        work_off(
            self.fleet.ranges, self._context, self.rules, self.fleet.hosts, self._order,
            self._cursor, budget, self._least, STEPS if self._least else 1, self._state, self.left,
            self.log, self.rng_state,
        )  # fmt: skip
        self.decisions += int(self._cursor[1]) - made
        self.looked_at += int(self._cursor[2]) - looked
        return bool(self._cursor[0] < len(self._order))

    def next_pass(self) -> bool:
        """Begin another pass if the last one decided anything or counts are still due."""
        if self._cursor[1] == 0:
            if self._least == 0.0:
                return False
            self._least = 0.0
        self.begin()
        return True

    @property
    def withheld(self) -> int:
        """Moves that the last pass did not make, since they would have led back."""
        return int(self._cursor[3])

    @property
    def stuck(self) -> NDArray[np.int64]:
        """Ranges that need something that cannot be done, ascending."""
        return np.flatnonzero(self._state == STUCK)
