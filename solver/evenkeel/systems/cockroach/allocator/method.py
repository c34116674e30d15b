"""The method ``cockroach``: CockroachDB's replicate queue and store rebalancer until convergence.

The run models a cluster with instant gossip: every store knows each change before the next
decision.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.methods.contract import Outcome, Request, SimulatedState
from evenkeel.methods.shared.stopping import StopReason, Watch
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Placement
from evenkeel.model.runtime.printable import counted
from evenkeel.systems.cockroach.allocator.actions import ACTIONS, Enough, enough_of, rules_of
from evenkeel.systems.cockroach.allocator.intake import (
    CockroachMap,
    Fleet,
    fleet_of,
    known_workload,
    status_of,
)
from evenkeel.systems.cockroach.allocator.leases import (
    CPU,
    QPS,
    SETTINGS,
    LeaseAllocator,
    rng_state_of,
)
from evenkeel.systems.cockroach.allocator.range_decider import (
    BY_COUNT,
    HOT,
    KINDS,
    LoadRun,
    ReplicateRun,
    StoreRebalancer,
)
from evenkeel.systems.cockroach.allocator.settings import Cockroach
from evenkeel_kernels.cockroach import scores
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.actions import CONSIDER_REBALANCE
from evenkeel_kernels.cockroach.changes import DecisionLog, nothing_left, room_to_log
from evenkeel_kernels.cockroach.cluster_rules import ClusterRules
from evenkeel_kernels.cockroach.leases import (
    BY_REQUEST,
    LEASES_ONLY,
    MOVED,
    OFF,
    REPLICAS,
    LoadSettings,
    Workload,
)
from evenkeel_kernels.cockroach.store_rebalancer import NON_VOTER_BY_LOAD, VOTER_BY_LOAD

# why a replica was moved, by the least score for it
REASONS = {
    scores.BY_VALIDITY: "the constraints forbid the store it was on",
    scores.BY_DISK: "the disk it was on is full",
    scores.BY_NEED: "the constraints need a replica there",
    scores.BY_VOTERS: "the constraints need a voter there",
    scores.BY_DIVERSITY: "replicas are farther apart",
    scores.BY_IO: "the disk there is less overloaded",
    scores.BY_CONVERGENCE: "both stores come nearer to the mean number of ranges",
    scores.BY_BALANCE: "the store has fewer ranges than most, or the other one more",
    scores.BY_NON_VOTER: "the store holds a non-voter already",
    0.0: "the store has fewer ranges",
}

# why a replica came or went, by how the action begins; the first that fits holds
REPAIRS = {
    "Finalize": "a change of replicas was left unfinished",
    "RemoveLearner": "a change of replicas was left unfinished",
    "ReplaceDead": "the store it was on is dead",
    "RemoveDead": "the store it was on is dead",
    "ReplaceDecommissioning": "the store it was on is being decommissioned",
    "RemoveDecommissioning": "the store it was on is being decommissioned",
    "Add": "the range has too few replicas",
    "Remove": "the range has too many replicas",
}


@dataclass(frozen=True, eq=False)
class RangeLog:
    """Decisions in the order in which they were made: L of them. Arrays are read-only.

    >>> log = RangeLog(*(np.array([v]) for v in (15, 0, 2, 3, 300.0)))
    >>> len(log), log.reason(0)
    (1, 'replicas are farther apart')
    """

    # (L,) index into ``ACTIONS``; from 40 up, a lease or load: ``store_rebalancer_run.KINDS``
    kind: NDArray[np.int8]
    range: NDArray[np.int32]  # (L,) partition
    # source, target: (L,) node that lost the replica or lease, and node that got it; -1 for none
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    score: NDArray[np.float64]  # (L,) by how much the target was better

    def __len__(self) -> int:
        return len(self.kind)

    def action(self, i: int) -> str:
        """Return what was done."""
        kind = int(self.kind[i])
        if kind in (CONSIDER_REBALANCE, VOTER_BY_LOAD, NON_VOTER_BY_LOAD):
            return "Rebalance"
        return ACTIONS[kind] if kind < len(ACTIONS) else "TransferLease"

    def reason(self, i: int) -> str:
        """Return why it was done."""
        kind = int(self.kind[i])
        if kind == CONSIDER_REBALANCE:
            return REASONS[max(least for least in REASONS if least <= max(self.score[i], 0.0))]
        if kind < len(ACTIONS):
            return next(why for name, why in REPAIRS.items() if ACTIONS[kind].startswith(name))
        if kind == MOVED + BY_REQUEST and self.source[i] < 0:
            return "no replica held the lease"
        return KINDS[kind]

    def lines(self, cluster: Cluster) -> Iterator[str]:
        """Tell every decision in names, one line each."""
        partitions, nodes = cluster.partitions.names, cluster.nodes.names
        for i in range(len(self)):
            source, target = int(self.source[i]), int(self.target[i])
            ends = [nodes[n] if n >= 0 else "-" for n in (source, target)]
            name = partitions[int(self.range[i])]
            yield f"{name}: {self.action(i)} {ends[0]} -> {ends[1]}: {self.reason(i)}"


class Writer:
    """Gathers what logs of limited room hold, time after time."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[Any], ...]] = []

    def drain(self, log: DecisionLog) -> None:
        """Take over what a log holds, and empty it."""
        size = int(log.size[0])
        if size:
            columns = (log.kind, log.range, log.source, log.target, log.score)
            self._parts.append(tuple(column[:size].copy() for column in columns))
            log.size[0] = 0

    def finished(self) -> RangeLog:
        """Return everything that was gathered."""
        none = np.zeros(0, np.int32)
        first = (np.zeros(0, np.int8), none, none, none, np.zeros(0))
        columns: list[NDArray[Any]] = [
            np.concatenate(parts) for parts in zip(first, *self._parts, strict=True)
        ]
        for column in columns:
            column.flags.writeable = False
        return RangeLog(*columns)


SLICE = 20_000  # ranges, or stores, looked at between two looks at the work done
PAIRS = 400_000  # ranges times stores looked at between two looks at the clock
ROOM = 65_536  # decisions that the log holds before it is emptied
MODES = {"off": OFF, "leases": LEASES_ONLY, "leases and replicas": REPLICAS}


@dataclass(frozen=True, eq=False)
class CockroachRun:
    """What ``cockroach`` did."""

    log: RangeLog  # every decision, in order
    # whether all came to rest: nothing is left to decide, and nothing was withheld because it would
    # have gone back to where it was
    converged: bool
    passes: int  # passes of the replicate queue over all ranges
    # (.,) ranges that need something that cannot be done: no store is fit, or the quorum is lost
    stuck: NDArray[np.int64]


def cockroach(request: Request) -> Outcome:
    """Run the replicate queue, the store rebalancer and the leases until nothing is decided."""
    options = request.options
    assert isinstance(options, Cockroach)
    fleet = fleet_of(request.cluster, request.start)
    workload = known_workload(request.cluster, fleet, options.aggressiveness)
    enough = enough_of(fleet.configs, fleet.ranges.config, fleet.hosts)
    rules = rules_of(request.cluster, request.start, fleet.ranges, enough)
    run = _Run(fleet, options, workload, rules, request.watch, request.seed)
    reason = run.to_quiescence()
    node, leader, lost = rows_of(request.start, fleet.ranges)
    if not (request.start.leader >= 0).any():
        leader[:] = -1  # who has which lease is not known, so none is given to another
    stuck = run.queue.stuck
    summary = f"{len(run.log):,} decisions in {run.queue.passes:,} passes."
    return Outcome(
        node=node,
        leader=leader,
        stop_reason=reason,
        message=summary if run.converged else f"{summary} It did not converge.",
        work=run.work,
        warnings=_warnings(request.cluster, len(stuck), lost, enough, fleet.hosts),
        native=CockroachRun(run.log, run.converged, run.queue.passes, stuck),
    )


def _warnings(
    cluster: Cluster, stuck: int, lost: int, enough: Enough, hosts: int
) -> tuple[str, ...]:
    found = []
    fewer = int((enough.replicas < cluster.partitions.replicas).sum())
    if fewer:
        found.append(
            f"{counted(hosts, 'node')} that CockroachDB counts, without those decommissioned, are "
            f"too few for all that {counted(fewer, 'partition')} should have: it keeps an odd "
            "number of voters, no more than there are such nodes."
        )
    if stuck:
        found.append(f"{counted(stuck, 'partition')}: what is needed cannot be done.")
    if lost:
        found.append(f"{lost:,} replicas have no slot of their role and are left out.")
    return tuple(found)


class _Run:
    """Queue, load and leases in turn, until a whole round decides nothing."""

    def __init__(
        self,
        fleet: Fleet,
        options: Cockroach,
        workload: Workload | None,
        rules: ClusterRules,
        watch: Watch,
        seed: int,
    ) -> None:
        width = fleet.width
        log = room_to_log(max(ROOM, 2 * HOT * (width + 1) + 2))
        left = nothing_left(len(fleet.ranges.config))
        rng_state = rng_state_of(seed)
        self._scorer = BY_COUNT._replace(threshold=options.range_threshold)
        self.queue = ReplicateRun(
            fleet, log, left, scorer=self._scorer, rng_state=rng_state, rules=rules
        )
        leases = LeaseAllocator(
            fleet.localities, fleet.configs,
            SETTINGS._replace(share=options.lease_threshold), workload,
            _load_settings(fleet, options), rules,
        )  # fmt: skip
        self._load = LoadRun(
            StoreRebalancer(leases), fleet.stores, fleet.ranges, log, left, rng_state
        )
        self._log = log
        self._watch = watch
        self._writer = Writer()
        self._most = options.max_passes
        self._part = max(1, PAIRS // max(1, len(fleet.stores.amount[0])))
        self._reason: StopReason | None = None
        self.work = 0
        self.converged = False

    @property
    def log(self) -> RangeLog:
        return self._writer.finished()

    def to_quiescence(self) -> StopReason:
        """Go on until all is quiet, or there is another reason to stop."""
        while True:
            before = self._moves
            for stage in (self._queue, self._loads, self._leases):
                reason = stage()
                if reason is not None:
                    return reason
            if self._moves == before:
                self.converged = self.queue.withheld + self._load.withheld == 0
                return "exhausted"
            if self.queue.passes >= self._most:
                return "work"
            self.queue.begin()

    def _queue(self) -> StopReason | None:
        while True:
            reason = self._until(lambda budget: not self.queue.step(budget))
            if reason is not None:
                return reason
            if self.queue.passes >= self._most:
                return "work"
            if not self.queue.next_pass():
                self._load.begin()
                return None

    def _loads(self) -> StopReason | None:
        return self._until(self._load.relieve)

    def _leases(self) -> StopReason | None:
        return self._until(self._load.transfer)

    def _until(self, step: Callable[[int], bool]) -> StopReason | None:
        """Take slices of a step until it is done, or there is a reason to stop."""
        done = False
        while not done:
            if self._reason is not None:
                return self._reason
            budget = self._watch.work_left(self.work, SLICE)
            reason: StopReason | None = None
            for begin in range(0, budget, self._part):
                done = step(min(self._part, budget - begin))
                self._writer.drain(self._log)
                reason = None if done else self._watch.look(self.work, self._moves)
                if done or reason is not None:
                    break
            self.work += budget
            self._reason = reason or self._watch.stop(self.work, self._moves)
        return None

    @property
    def _moves(self) -> int:
        return self.queue.decisions + self._load.decisions


def _load_settings(fleet: Fleet, options: Cockroach) -> LoadSettings:
    """What the store rebalancer levels; nothing, where the cluster has no load."""
    objective = options.objective
    if objective is None:
        objective = "cpu" if fleet.stores.amount[kernel.CPU].any() else "qps"
    load = {"cpu": CPU, "qps": QPS}[objective]
    return load._replace(threshold=options.load_threshold, mode=MODES[options.mode])


def rows_of(
    placement: Placement, ranges: kernel.Ranges
) -> tuple[NDArray[np.int32], NDArray[np.int16], int]:
    """Bring replicas back into the slots of a placement."""
    slots = np.diff(placement.first)
    count = len(placement)
    at = np.arange(len(placement.node)) + np.repeat(ranges.first[:-1] - placement.first[:-1], slots)
    node = ranges.store[at].copy()
    leader = ranges.lease.copy()
    owner = np.repeat(np.arange(count), np.diff(ranges.first))
    spare = np.ones(len(ranges.store), np.bool_)
    spare[at] = False
    odd = np.zeros(count, np.bool_)
    odd[owner[spare & (ranges.store >= 0)]] = True
    odd[placement.owner[(ranges.role[at] != placement.role) & (node >= 0)]] = True
    lost = 0
    for p in np.flatnonzero(odd):
        lost += _row_of(placement, ranges, int(p), node, leader)
    return node, leader, lost


def _row_of(
    placement: Placement,
    ranges: kernel.Ranges,
    p: int,
    node: NDArray[np.int32],
    leader: NDArray[np.int16],
) -> int:
    """Sort one range's replicas into slots of their roles, those that stay first."""
    start, stop = int(ranges.first[p]), int(ranges.first[p + 1])
    holder = ranges.store[start + ranges.lease[p]] if ranges.lease[p] >= 0 else -1
    first, last = int(placement.first[p]), int(placement.first[p + 1])
    here = {
        int(ranges.store[k]): int(ranges.role[k])
        for k in range(start, stop)
        if ranges.store[k] >= 0
    }
    role = placement.role[first:last]
    row = np.full(last - first, -1, np.int32)
    for slot, store in enumerate(placement.node[first:last].tolist()):
        if here.get(store) == role[slot]:
            row[slot] = store
            del here[store]
    for store, its_role in list(here.items()):
        free = np.flatnonzero((row < 0) & (role == its_role))
        if len(free):
            row[free[0]] = store
            del here[store]
    node[first:last] = row
    led = np.flatnonzero(row == holder) if holder >= 0 else np.zeros(0, np.int64)
    leader[p] = led[0] if len(led) else -1
    return len(here)


def refresh_payload(simulated: SimulatedState) -> Cluster:
    """Return a cluster whose `CockroachMap` is up to date."""
    native, began, now = simulated.now.native, simulated.began, simulated.now
    if not isinstance(native, CockroachMap):
        return now
    count, known = len(now.nodes), len(native.status)
    faults = FaultList()
    if count > known and np.ndim(native.latency) > 0:
        faults.add(
            "cluster.native.latency", np.shape(native.latency),
            "covers no later hosts: give one latency for all, or all hosts from the start",
        )  # fmt: skip
    faults.raise_if_any()
    grown = native.grown(count)
    status = status_of(now)
    same = status[:known] == status_of(began)[:known]
    status[:known] = np.where(same, native.status, status[:known])
    requests = [native.requests[p] for p in simulated.origin.tolist()] if native.requests else ()
    tables = native.tables
    if tables is not None:
        origin = enumerate(simulated.origin.tolist())
        starts = {p: tables.starts[was] for p, was in origin if was in tables.starts}
        tables = replace(tables, of=tables.of[simulated.origin], starts=starts)
    return replace(
        now,
        native=replace(
            grown,
            config=native.config[simulated.origin],
            status=status,
            requests=requests,
            tables=tables,
        ),
    )
