"""Repair and move the replicas of all ranges, as the replicate queue does, until none needs it."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.cockroach.allocator.actions import actions, no_rules
from evenkeel.systems.cockroach.allocator.compile import SETTINGS, Fleet
from evenkeel.systems.cockroach.allocator.leases import rng_state_of
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.changes import DecisionLog, Left
from evenkeel_kernels.cockroach.cluster_rules import ClusterRules
from evenkeel_kernels.cockroach.context import (
    make_context,
    make_members,
    tally_all,
)
from evenkeel_kernels.cockroach.replicate_queue import NEEDED, STEPS, STUCK, work_off

BY_COUNT = kernel.Scorer(kernel.COUNT, kernel.RANGES, 0.05, 2.0, 0.0)
"""Levels the number of ranges, as the replicate queue does."""


@dataclass(eq=False)
class ReplicateRun:
    """Repairs and moves the replicas of ranges, in place, as CockroachDB's queues would in time.

    A pass looks at every range once, the most urgent first. The first passes do with each all that
    it needs; when none needs anything, the next move one replica of each for the sake of counts.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel.systems.cockroach.allocator.compile import fleet_of
    >>> from evenkeel_kernels.cockroach.changes import nothing_left, room_to_log
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[99.0]] * 4, load=[[1.0]] * 12, placement=[[0, 1, 2]] * 12,
    ... )
    >>> run = ReplicateRun(fleet_of(cluster), room_to_log(100), nothing_left(12))
    >>> while run.step(1000) or run.next_pass():
    ...     pass
    >>> run.fleet.stores.amount[kernel.RANGES].tolist()
    [10.0, 9.0, 9.0, 8.0]
    """

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
