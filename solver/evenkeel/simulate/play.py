"""Simulate a cluster, or a scenario, with events and a controller that reacts.

One controller decides range by range: every node decides by itself about the partitions that it
leads. Each node has a scanner that visits its partitions at a pace, a queue for their replicas and
one for their leases, each with one worker, and a rebalancer of its load that runs once a minute.

References
----------
CockroachDB, replica scanner (one round in ten minutes, a visit every 10 ms to 1 s), base queue
(one worker, 60 s for each replica), priority inversion and purgatory (retried every minute).
"""

import heapq
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.pipeline import Pipeline
from evenkeel.methods.contract import Decider, Decision, SimulatedState, StoreView
from evenkeel.methods.options import Options
from evenkeel.methods.registry import METHODS, find
from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.model.goals import Goals
from evenkeel.model.placement import Role
from evenkeel.model.runtime.later import imported
from evenkeel.planning.plan import Plan
from evenkeel.simulate.controllers.method import Balancing, Solve, method_named
from evenkeel.simulate.controllers.pipeline import Publishing, check_pipeline
from evenkeel.simulate.controllers.plan import planned
from evenkeel.simulate.engine.history import History
from evenkeel.simulate.engine.scenario import Scenario
from evenkeel.simulate.engine.stage import Controller, Stage
from evenkeel.simulate.engine.world import Change, Environment, Health, World
from evenkeel.simulate.events import Event, above_zero, bound
from evenkeel.systems.helix.options import Waged

ROUND = 600.0  # seconds in which a node visits all partitions that it leads
FASTEST, SLOWEST = 0.01, 1.0  # seconds between two visits
RETRY = 60.0  # seconds after which what is in purgatory is tried again
NO_CHECK = -1.0  # priority of what is put into a queue by hand: it is processed whatever is found


def pace(partitions: int) -> float:
    """Return how long a node waits between two visits."""
    return min(max(ROUND / max(partitions, 1), FASTEST), SLOWEST)


def inverted(queued: float, found: float) -> bool:
    """Return whether what was urgent when it was queued is less so when its turn comes."""
    return queued != NO_CHECK and _category(found) < _category(queued)


def _category(priority: float) -> int:
    return math.floor(priority / 100.0 + 0.5)


def never_done(world: World, environment: Environment) -> list[int]:
    """Return the partitions whose snapshot takes longer than a queue waits."""
    if world.disk < 0:
        return []
    seconds = environment.overhead + world.voter_load[:, world.disk] / environment.snapshot
    found: list[int] = np.flatnonzero(seconds > environment.deadline).tolist()
    return found


class WorkQueue:
    """What waits for the one worker of a node: most urgent first, then first come, first served."""

    def __init__(self) -> None:
        self.working_on = -1  # the change that the worker waits for; -1 if it is free
        # partitions for which nothing can be done now, with the second of the last try
        self.purgatory: dict[int, float] = {}
        self._heap: list[tuple[float, int, int]] = []
        self._priority: dict[int, float] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._priority)

    def push(self, partition: int, priority: float) -> bool:
        """Put a partition in, or move it up."""
        if self._priority.get(partition, -np.inf) >= priority:
            return False
        self._priority[partition] = priority
        self._number += 1
        heapq.heappush(self._heap, (-priority, self._number, partition))
        return True

    def pop(self) -> tuple[int, float] | None:
        """Take the most urgent partition out."""
        while self._heap:
            lowered, _, partition = heapq.heappop(self._heap)
            if self._priority.get(partition) == -lowered:
                del self._priority[partition]
                return partition, -lowered
        return None

    def retry(self, now: float) -> None:
        """Put what has been in purgatory for long enough back into the queue."""
        due = [p for p, since in self.purgatory.items() if now - since >= RETRY]
        for partition in due:
            del self.purgatory[partition]
            self.push(partition, NO_CHECK)

    def clear(self) -> None:
        """Forget what waits, as when the node is no longer there."""
        self._heap.clear()
        self._priority.clear()
        self.purgatory.clear()


MINUTE = 60.0  # seconds between two passes of the rebalancer of load, a quarter more or less
# a node's state as a ``StoreView`` has it, by ``Health``
_STATUS = np.array([0, 2, 3, 5, 4, 6, 6], np.int8)

_HOPELESS = ("nothing", "unavailable")


@dataclass
class _Node:
    """What runs on one node."""

    number: int
    visit_at: int = 0
    load_at: int = 0
    at: int = 0
    replicas: WorkQueue = field(default_factory=WorkQueue)
    leases: WorkQueue = field(default_factory=WorkQueue)
    quiet_since: float = -math.inf


class RangeByRange(Controller):
    """Lets the decider of a method decide the way a system does that has no centre."""

    def __init__(self, name: str, scenario: Scenario, seed: int) -> None:
        self._make = imported(find(name).decider)
        self._off = frozenset(scenario.switched_off)
        self._seed = seed
        self._decider: Decider
        self._version = -1
        self._nodes = [_Node(number) for number in range(len(scenario.cluster.nodes))]
        self._workers: dict[int, tuple[_Node, WorkQueue]] = {}
        self._lag = scenario.environment.gossip_interval + scenario.environment.gossip_delay
        self._changed_at = 0.0
        self._quiet: NDArray[np.float64]
        self._led: list[list[int]] = []
        self._ended: list[int] = []
        self._looked: tuple[int, int] = (-1, -1)
        self._too_large: set[int] = set()

    def wake(self, stage: Stage) -> float:
        """Let every node whose turn it is visit, work and rebalance."""
        if stage.world.version != self._version:
            self._begin(stage)
        self._hear(stage)
        now = stage.now
        serves = stage.world.serves()
        for node in self._nodes:
            if not serves[node.number]:
                continue
            if node.visit_at <= now:
                self._visit(stage, node)
            if "store" not in self._off and node.load_at <= now:
                self._shed_load(stage, node)
            self._work(stage, node)
        return self._next(stage, serves)

    def ended(self, number: int, change: Change, made: bool) -> None:
        """Hear that a change has ended, and free the worker that waited for it."""
        self._ended.append(change.partition)
        node, queue = self._workers.pop(number, (None, None))
        if node is not None and queue is not None:
            queue.working_on = -1
            if not made:
                queue.purgatory[change.partition] = self._changed_at
            elif queue is node.replicas:
                queue.push(change.partition, 0.0)  # is there more to do for it?

    def _begin(self, stage: Stage) -> None:
        """Take in what happened from outside."""
        world = stage.world
        self._warn(stage)
        if self._version < 0:
            for node in self._nodes:
                node.load_at = round(1000 * MINUTE * (0.75 + 0.5 * stage.random.random()))
        self._decider = self._make(world.snapshot(), stage.scenario.objective, self._seed)
        self._version = world.version
        self._quiet = np.full(len(world), -math.inf)
        self._changed_at = world.seconds
        for node in self._nodes:
            node.visit_at = max(node.visit_at, stage.now)
            node.load_at = max(node.load_at, stage.now)
            for p in list(node.replicas.purgatory):
                del node.replicas.purgatory[p]
                node.replicas.push(p, 0.0)
        self._list_led(stage)

    def _warn(self, stage: Stage) -> None:
        """Name, once each, what has become too large to be sent before a queue gives up."""
        environment = stage.scenario.environment
        for p in never_done(stage.world, environment):
            if p not in self._too_large:
                self._too_large.add(p)
                stage.recorder.warn(
                    f"{stage.world.names[p]}: a snapshot of it takes longer than the "
                    f"{environment.deadline:g} s that a queue waits: it can never be given another "
                    "replica"
                )

    def _hear(self, stage: Stage) -> None:
        """Report the outcome of changes to the decider."""
        world = stage.world
        self._looked = (-1, -1)
        if not self._ended:
            return
        self._changed_at = world.seconds
        for p in self._ended:
            self._decider.place(p, world.node[p], world.role[p], int(world.leader[p]))
        self._ended.clear()
        self._list_led(stage)

    def _list_led(self, stage: Stage) -> None:
        leader = stage.world.leader_nodes()
        order = np.argsort(leader, kind="stable")
        bounds = np.searchsorted(leader[order], np.arange(len(self._nodes) + 1))
        self._led = [
            order[start:stop].tolist()
            for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ]

    def _look(self, stage: Stage, node: _Node) -> None:
        """Show the decider what a node knows."""
        if self._looked == (stage.now, node.number):
            return
        self._looked = (stage.now, node.number)
        world = stage.world
        load, replicas, leaders = stage.gossip.view(node.number)
        self._decider.look(
            StoreView(
                status=_STATUS[world.health],
                present=world.health != Health.ABSENT,
                load=load,
                replicas=replicas,
                leaders=leaders,
                io=world.io,
            )
        )

    def _is_quiet(self, stage: Stage, since: float) -> bool:
        """Whether what was left alone then would be left alone now: nothing new was heard."""
        return since > self._changed_at + self._lag or since >= stage.world.seconds

    def _visit(self, stage: Stage, node: _Node) -> None:
        """Look at the next partition, and queue it if something is to be done for it."""
        led = self._led[node.number]
        node.visit_at = stage.now + max(1, round(1000 * pace(len(led))))
        if not led:
            return
        node.at = (node.at + 1) % len(led)
        p = led[node.at]
        if self._is_quiet(stage, float(self._quiet[p])) or stage.traffic.busy(p):
            return
        self._look(stage, node)
        found = False
        if "replicate" not in self._off:
            action, priority = self._decider.action(p)
            if priority > 0.0 or (
                action not in _HOPELESS and self._replicas(stage, p, priority) is not None
            ):
                found = True
                node.replicas.push(p, priority)
        lease = None if "lease" in self._off else self._decider.lease(p)
        if lease is not None:
            found = True
            node.leases.push(p, lease.urgency)
        if not found:
            self._quiet[p] = stage.world.seconds

    def _work(self, stage: Stage, node: _Node) -> None:
        """Let the workers take up what is next."""
        now = stage.world.seconds
        node.replicas.retry(now)
        while node.replicas.working_on < 0 and (item := node.replicas.pop()) is not None:
            self._process(stage, node, *item)
        while node.leases.working_on < 0 and (item := node.leases.pop()) is not None:
            p = item[0]
            if stage.world.leader_node(p) != node.number or stage.traffic.busy(p):
                continue
            self._look(stage, node)
            decision = self._decider.lease(p)
            if decision is not None and decision.lead != node.number:
                self._submit(stage, node, node.leases, decision)

    def _process(self, stage: Stage, node: _Node, p: int, queued: float) -> None:
        """Do the next thing for a partition, if it is still as urgent as it was."""
        if stage.world.leader_node(p) != node.number or stage.traffic.busy(p):
            return
        self._look(stage, node)
        action, priority = self._decider.action(p)
        if inverted(queued, priority):
            if action == "consider rebalance":
                node.replicas.push(p, 0.0)
            return
        if action in _HOPELESS:
            if action == "unavailable":
                node.replicas.purgatory[p] = stage.world.seconds
            return
        decision = self._replicas(stage, p, priority)
        if decision is not None:
            self._submit(stage, node, node.replicas, decision)
        elif priority > 0.0:
            node.replicas.purgatory[p] = stage.world.seconds

    def _shed_load(self, stage: Stage, node: _Node) -> None:
        """Let the rebalancer of load run; what it wants goes before what the queues want."""
        share = 0.75 + 0.5 * float(stage.random.random())
        node.load_at = stage.now + round(1000 * MINUTE * share)
        if self._is_quiet(stage, node.quiet_since):
            return
        self._look(stage, node)
        decisions = self._decider.load(node.number)
        self._looked = (-1, -1)  # it moves loads in what it was shown
        quiet = True
        for decision in decisions:
            if not _returns(stage, decision):
                quiet = False
                stage.submit(_change(decision, f"load s{node.number + 1}", claims=True))
        if quiet:
            node.quiet_since = stage.world.seconds

    def _replicas(self, stage: Stage, p: int, priority: float) -> Decision | None:
        """What the decider would change, but for improvements that take another one back."""
        decision = self._decider.replicas(p)
        if decision is not None and priority == 0.0 and _returns(stage, decision):
            return None
        return decision

    def _submit(self, stage: Stage, node: _Node, queue: WorkQueue, decision: Decision) -> None:
        kind = "replicate" if queue is node.replicas else "lease"
        change = _change(
            decision, f"{kind} s{node.number + 1}", stage.scenario.environment.deadline
        )
        number = stage.submit(change)
        if number >= 0:
            queue.working_on = number
            self._workers[number] = (node, queue)

    def _next(self, stage: Stage, serves: NDArray[np.bool_]) -> float:
        """When anybody has something to do again."""
        world = stage.world
        resting = (
            not self._workers
            and stage.traffic.idle
            and bool((self._quiet > self._changed_at + self._lag).all())
        )
        soonest = math.inf
        for node in self._nodes:
            if not serves[node.number]:
                continue
            for since in node.replicas.purgatory.values():
                soonest = min(soonest, since + RETRY)
            at_rest = resting and node.quiet_since > self._changed_at + self._lag
            if "store" not in self._off and not at_rest:
                soonest = min(soonest, node.load_at / 1000)
            if not resting and self._led[node.number]:
                soonest = min(soonest, node.visit_at / 1000)
        if world.growth.any():
            soonest = min(soonest, self._fills_up(stage))
        return soonest

    def _fills_up(self, stage: Stage) -> float:
        """When disks that grow are worth another look: at once where one is nearly full."""
        world = stage.world
        self._warn(stage)
        share = world.load[:, world.disk] / np.maximum(world.capacity[:, world.disk], 1e-300)
        if share.max() < 0.9:
            return world.seconds + MINUTE
        self._changed_at = world.seconds
        return world.seconds + 1.0


def _returns(stage: Stage, decision: Decision) -> bool:
    """Whether a replica would come back to a node that it has left since the last event."""
    return any(stage.recorder.left(decision.partition, node) for node, _ in decision.add)


def _change(
    decision: Decision, by: str, deadline: float = math.inf, *, claims: bool = False
) -> Change:
    return Change(
        decision.partition,
        add=tuple((node, Role(role)) for node, role in decision.add),
        drop=decision.drop,
        role=tuple((node, Role(role)) for node, role in decision.role),
        lead=decision.lead,
        by=by,
        reason=decision.reason,
        claims=claims,
        deadline=deadline,
    )


AFTERWARDS = 3600.0  # seconds that are played after the last event, by default


def play(
    cluster: Cluster,
    events: Sequence[Event] = (),
    method: str | Pipeline | Controller | Solve | Plan = "balance",
    *,
    until: float | None = None,
    every: float = 60.0,
    goals: Goals | None = None,
    options: Options | None = None,
    environment: Environment | None = None,
    seed: int = 0,
    name: str = "",
) -> History:
    """Simulate events on a cluster, and a controller that reacts to them.

    Parameters
    ----------
    cluster : Cluster
        The beginning; it is not changed.
    events : sequence of Event, optional
        What happens, in any order: ``Changes`` ``At`` a time, ``RollingUpgrade``, ``LoadDrift``,
        ``Growth`` and others.
    method : str, Pipeline, Plan, Controller or callable, optional
        Who decides. The name of a method, which solves the whole cluster after every event, what it
        reads of the cluster's payload brought up to date; a ``Pipeline`` of
        ``evenkeel.simulate.pipeline``, whose steps are carried out; a ``Plan``, which is carried
        out, and planned anew to the same target when something comes in between; a callable that
        takes a cluster, goals and a seed and returns a placement; or a controller, such as that of
        ``evenkeel.simulate.planned``, which carries out plans.
    until : float, optional
        Seconds that are played; an hour beyond the last event by default.
    every : float, optional
        Seconds between two samples.
    goals : Goals, optional
        What a method is asked for; ``Goals()`` by default.
    options : options.Options, optional
        The method's own options. Without any, ``helix_waged`` has ``scope="emergency"``, which
        repairs what nodes lost and balances nothing; a pipeline runs its other scopes, too.
    environment : Environment, optional
        How fast changes are carried out, how often is decided, how data grows, and whether changes
        need a majority; ``Environment()`` by default.
    seed : int, optional
        For the method; events have seeds of their own. The same seeds give the same bits.
    name : str, optional
        What the history calls it.

    Returns
    -------
    History
        What was measured.

    Raises
    ------
    InvalidInput
        If an argument or an event makes no sense; every problem is named.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> cluster = ek.Cluster.from_arrays(
    ...     capacity=[[30.0]] * 6, load=[[1.0]] * 20, domains={"zone": ["a", "b", "c"] * 2},
    ...     placement=[[0, 1, 2], [3, 4, 5]] * 10, min_active=2, spread={"zone": 1},
    ... )
    >>> events = [
    ...     simulate.At(60.0, ek.Changes(down="n0"), dead_after=300.0),
    ...     simulate.At(1200.0, ek.Changes(load_factor={"p1": 8.0}, name="p1 hot")),
    ... ]
    >>> history = simulate.play(cluster, events, until=3600.0)
    >>> history.total("moves") >= 10, history.total("below_min_active")
    (True, 0.0)
    >>> history.events
    ((60.0, 'n0 down'), (360.0, 'n0 dead'), (1200.0, 'p1 hot'))
    """
    require_cluster(cluster)
    faults = FaultList()
    whole, happens = bound(faults, cluster, events)
    last = max((event.at for event in happens if isinstance(event.at, int | float)), default=0.0)
    end = last + AFTERWARDS if until is None else until
    for what, value in (("until", end), ("every", every)):
        above_zero(faults, what, value)
    if not faults.about("until", "events"):
        for i, event in enumerate(events):
            if event.at > end:
                faults.add(f"events[{i}].at", event.at, f"is after the end, {end:g}")
    if goals is not None and not isinstance(goals, Goals):
        faults.add("goals", goals, "must be Goals")
    surroundings = Environment() if environment is None else environment
    if not isinstance(surroundings, Environment):
        faults.add("environment", surroundings, "must be an Environment")
    elif (growth := surroundings.growth) is not None and np.shape(growth) != (
        len(cluster.partitions),
    ):
        faults.add("environment.growth", np.shape(growth), "needs one value for each partition")
    try:
        seed = operator.index(seed)
    except TypeError:
        faults.add("seed", seed, "must be an integer")
    controller, who = _controller(faults, method, options, seed)
    decides = method.name if isinstance(method, Pipeline) else method
    if isinstance(decides, str) and decides in METHODS:
        _check_payload(faults, decides, cluster, whole, events)
    faults.raise_if_any()
    assert controller is not None
    scenario = Scenario(
        name=name or who,
        cluster=whole,
        minutes=end / 60.0,
        events=happens,
        goals=goals or Goals(),
        environment=surroundings,
        every=every,
    )
    stage = Stage(scenario, controller, seed)
    if last > end:
        stage.recorder.warn(
            f"{sum(event.at > end for event in happens)} things that follow from events come after "
            f"the end, the last of them at {last:g} seconds"
        )
    return stage.play(who)


def _check_payload(
    faults: FaultList, method: str, cluster: Cluster, whole: Cluster, events: Sequence[Event]
) -> None:
    """Note events that a method cannot see: it reads more of a cluster than the model holds."""
    refresh = None if faults else find(method).refresher()
    if refresh is None:
        return
    why = f"{method} reads the cluster's payload, which covers only what it was read with"
    fixed = find(method).fixed_membership
    if fixed and len(whole.nodes) > len(cluster.nodes):
        added = [whole.nodes.names[n] for n in range(len(cluster.nodes), len(whole.nodes))]
        faults.add("events", added, f"{why}: have these nodes down from the start, and up later")
    for i, event in enumerate(events):
        if fixed and event.grows:
            faults.add(f"events[{i}]", type(event).__name__, f"{why}: it cannot add partitions")
    if not faults:
        try:  # over no time at all, so that missing input is reported at once
            nodes, partitions = len(whole.nodes), len(whole.partitions)
            refresh(SimulatedState(whole, whole, np.arange(partitions), 0.0, np.zeros(nodes)))
        except InvalidInput as unfit:
            faults.take(unfit, "")


def _controller(
    faults: FaultList,
    method: str | Pipeline | Controller | Solve | Plan,
    options: Options | None,
    seed: int,
) -> tuple[Controller | None, str]:
    """Return who decides, and what they are called."""
    if isinstance(method, str):
        if method == "helix_waged" and options is None:
            options = Waged(scope="emergency")
        try:
            solve, refresh = method_named(method, options), find(method).refresher()
        except InvalidInput as unfit:
            faults.take(unfit, "")
            return None, method
        return Balancing(solve, seed=seed, full=1.0, refresh=refresh), method
    if options is not None:
        faults.add("options", options, "go with the name of a method")
    if isinstance(method, Pipeline):
        check_pipeline(faults, "method", method)
        return Publishing(method) if not faults else None, f"pipeline, {method.name}"
    if isinstance(method, Plan):
        return planned(method), "plan"
    if isinstance(method, Controller):
        return method, type(method).__name__
    if callable(method):
        who = getattr(method, "__name__", type(method).__name__)
        return Balancing(method, seed=seed, full=1.0), who
    faults.add("method", method, "must be a method, a Pipeline, a Plan, a Controller or a callable")
    return None, ""


def run(scenario: Scenario, method: str | Controller | Solve = "balance", seed: int = 0) -> History:
    """Play a scenario.

    Parameters
    ----------
    scenario : Scenario
        What is played.
    method : str, Controller or callable
        Who decides: a method's name; ``"cockroach"`` decides range by range as CockroachDB's queues
        do, every other method solves the whole cluster. Or a controller, or a callable that takes a
        cluster, goals and a seed and returns a placement.
    seed : int
        All randomness comes from it; the same seed gives the same bits.

    Returns
    -------
    History
        What was measured; ``history.check()`` holds the scenario's checks against it.

    Raises
    ------
    InvalidInput
        If there is no such method.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> quiet = simulate.Scenario("quiet", c, 1.0, checks=[simulate.AtMost("moves", 9.0)])
    >>> [finding.met for finding in simulate.run(quiet).check()]
    [True]
    """
    if isinstance(method, str) and find(method).decider:
        return Stage(scenario, RangeByRange(method, scenario, seed), seed).play(method)
    if isinstance(method, str):
        return Stage(scenario, Balancing(method_named(method), seed=seed), seed).play(method)
    if callable(method):
        name = getattr(method, "__name__", type(method).__name__)
        return Stage(scenario, Balancing(method, seed=seed), seed).play(name)
    return Stage(scenario, method, seed).play(type(method).__name__)
