"""The simulator's event loop, and the interface through which controllers act."""

import heapq
import logging
import time
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.runtime.logs import log_event
from evenkeel.simulate.engine.history import TOTALS, Entry, History
from evenkeel.simulate.engine.scenario import Scenario
from evenkeel.simulate.engine.world import Change, Conformance, Environment, Flight, Health, World
from evenkeel.simulate.events import Event

NEVER = 2**62  # later than anything, in milliseconds


class Traffic:
    """What has been asked for and is not done yet."""

    # One change of a partition is under way at a time. A snapshot takes one of the receiver's lanes
    # and one of the sender's; leadership leaves a node at most once per ``lead_gap``.

    def __init__(self, world: World, environment: Environment) -> None:
        self.environment = environment
        self._world = world
        self._waiting: dict[int, Flight] = {}
        self._due: dict[int, list[Flight]] = {}  # what waits, by its first receiver, in order
        self._hurried = 0  # how many of these have a deadline
        self._hurried_under_way = 0
        self._settled = (-1, -1)
        self._again = NEVER
        self._flying: dict[int, Flight] = {}
        self._claimed: set[int] = set()
        self._of: dict[int, int] = {}
        count = len(world.health)
        self._receiving = np.zeros(count, np.int64)
        self._sending = np.zeros(count, np.int64)
        self._next_lead = np.zeros(count, np.int64)
        self._number = 0

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing is under way."""
        return not self._waiting and not self._flying

    def busy(self, partition: int) -> bool:
        """Return whether a partition has a change that waits or is under way."""
        return partition in self._of or partition in self._claimed

    def under_way(self) -> list[Change]:
        """Return the changes that have begun."""
        return [flight.change for flight in self._flying.values() if not flight.cancelled]

    def submit(self, change: Change, now: int) -> int:
        """Ask for a change."""
        partition = change.partition
        if partition in self._claimed or (partition in self._of and not change.claims):
            return -1
        if change.claims:
            self._claimed.add(partition)
        self._number += 1
        self._settled = (-1, -1)
        flight = Flight(change, self._number, now)
        self._waiting[self._number] = flight
        insort(self._due.setdefault(_receiver(change), []), flight, key=_rank)
        self._hurried += not np.isinf(change.deadline)
        if partition not in self._of:
            self._of[partition] = self._number
        return self._number

    def withdraw(self, wanted: Callable[[Change], bool]) -> int:
        """Take back changes that have not begun."""
        gone = [flight for flight in self._waiting.values() if wanted(flight.change)]
        for flight in gone:
            self._forget(flight)
        return len(gone)

    def expire(self, now: int) -> list[Flight]:
        """Give up what has taken longer than it may."""
        late = [
            flight
            for flight in (*self._waiting.values(), *self._flying.values())
            if not flight.cancelled and now >= _latest(flight)
        ]
        for flight in late:
            self._forget(flight)
        return late

    def start(self, now: int) -> tuple[list[Flight], int]:
        """Let go whatever has a lane."""
        if self._settled == (now, self._world.version):
            return [], self._again  # nothing has changed since it was last asked
        begun = []
        again = NEVER
        limit = self.environment.receive
        # of what waits for a receiver that has no lane left nothing but its deadline counts
        first = []
        for receiver, flights in self._due.items():
            if receiver < 0 or self._receiving[receiver] < limit:
                first.append((_rank(flights[0]), receiver, 0))
            elif self._hurried:
                again = min(again, self._first_deadline(flights))
        heapify(first)
        while first:
            _, receiver, place = heappop(first)
            flight = self._due[receiver][place]
            goes, asked_again = self._try(flight, now)
            again = min(again, asked_again)
            if goes:
                begun.append(flight)
            left = self._due.get(receiver, [])[place + (not goes) :]
            if left and (receiver < 0 or self._receiving[receiver] < limit):
                heappush(first, (_rank(left[0]), receiver, place + (not goes)))
            elif self._hurried:
                again = min(again, self._first_deadline(left))
        if self._hurried_under_way:
            again = min([again, *(_latest(flight) for flight in self._flying.values())])
        self._settled, self._again = (now, self._world.version), again
        return begun, again

    def _try(self, flight: Flight, now: int) -> tuple[bool, int]:
        """Start a change if nothing blocks it; else return when the block may end by itself."""
        change = flight.change
        if self._of.get(change.partition) != flight.number:
            return False, NEVER  # it has claimed the partition and waits for the change before it
        source = self._world.leader_node(change.partition)
        leads_on = change.lead >= 0 and change.lead != source
        if leads_on and source >= 0 and self._next_lead[source] > now:
            return False, int(self._next_lead[source])
        if change.add and not self._take_lanes(flight, source):
            return False, _latest(flight)
        if leads_on and source >= 0:
            self._next_lead[source] = now + round(1000 * self.environment.lead_gap)
        seconds = self.environment.seconds(self._world.size(change.partition), len(change.add))
        flight.ends = now + max(1, round(1000 * seconds))
        self._no_longer_waits(flight)
        self._flying[flight.number] = flight
        self._hurried_under_way += not np.isinf(change.deadline)
        return True, NEVER

    def _first_deadline(self, flights: list[Flight]) -> int:
        """When the first of those is given up that could go if they had a lane."""
        mine = (f for f in flights if self._of.get(f.change.partition) == f.number)
        return min((_latest(flight) for flight in mine), default=NEVER)

    def _no_longer_waits(self, flight: Flight) -> None:
        del self._waiting[flight.number]
        receiver = _receiver(flight.change)
        flights = self._due[receiver]
        del flights[bisect_left(flights, _rank(flight), key=_rank)]
        if not flights:
            del self._due[receiver]
        self._hurried -= not np.isinf(flight.change.deadline)

    def finish(self, flight: Flight) -> bool:
        """End a change that was under way, and make it if it still fits."""
        if flight.cancelled:
            return False
        self._forget(flight)
        if not self._world.fits(flight.change):
            return False
        self._world.apply(flight.change)
        return True

    def _take_lanes(self, flight: Flight, source: int) -> bool:
        joining = [node for node, _ in flight.change.add]
        lanes = min(len(joining), self.environment.send)
        full = any(self._receiving[node] >= self.environment.receive for node in joining)
        if full or (source >= 0 and self._sending[source] + lanes > self.environment.send):
            return False
        self._receiving[joining] += 1
        if source >= 0:
            self._sending[source] += lanes
        flight.source = source
        return True

    def _forget(self, flight: Flight) -> None:
        """Free what a change holds."""
        self._settled = (-1, -1)
        partition = flight.change.partition
        if flight.number in self._waiting:
            self._no_longer_waits(flight)
        else:
            del self._flying[flight.number]
            self._hurried_under_way -= not np.isinf(flight.change.deadline)
            flight.cancelled = True
            if flight.change.add:
                self._receiving[[node for node, _ in flight.change.add]] -= 1
                if flight.source >= 0:
                    self._sending[flight.source] -= min(
                        len(flight.change.add), self.environment.send
                    )
        if flight.change.claims:
            self._claimed.discard(partition)
        if self._of.get(partition) == flight.number:
            del self._of[partition]
            if partition in self._claimed:  # by a change that has waited for this one
                self._of[partition] = next(
                    other.number
                    for other in self._waiting.values()
                    if other.change.partition == partition
                )


def _receiver(change: Change) -> int:
    """The node whose lane a change needs first; -1 if it needs none."""
    return change.add[0][0] if change.add else -1


def _rank(flight: Flight) -> tuple[float, int]:
    return -flight.change.urgency, flight.number


def _latest(flight: Flight) -> int:
    limit = flight.change.deadline
    return NEVER if np.isinf(limit) else flight.submitted + round(1000 * limit)


logger = logging.getLogger("evenkeel.simulate")


class Controller(ABC):
    """Who decides.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> class Patient(simulate.Controller):
    ...     def wake(self, stage):
    ...         return float("inf")
    ...     def ended(self, number, change, made):
    ...         pass
    >>> simulate.play(c, method=Patient(), until=60.0, every=60.0)
    <History: Patient, 2 samples, 0 moves, 0 leader changes>
    """

    @abstractmethod
    def wake(self, stage: "Stage") -> float:
        """Look, submit changes, and return when to be woken again, in seconds from the beginning.

        ``inf`` is for not before the next event or the end of a change; it is woken at those too.
        """

    @abstractmethod
    def ended(self, number: int, change: Change, made: bool) -> None:
        """Hear that a change has ended: made, or given up, or no longer fitting."""


_EVENT, _END, _WAKE, _SAMPLE = range(4)  # order of what happens at the same millisecond


class Stage:
    """One run. Nothing happens between two entries of its agenda, so it jumps from one to the next.

    Parameters
    ----------
    scenario : Scenario
        What is played.
    controller : Controller
        Who decides.
    seed : int
        All randomness comes from it.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> class Hasty(simulate.Controller):
    ...     def wake(self, stage):
    ...         if stage.now == 0.0:
    ...             stage.submit(simulate.Change(0, add=((2, 0),), drop=(1,)))
    ...         return float("inf")
    ...     def ended(self, number, change, made):
    ...         print(number, made)
    >>> simulate.play(c, method=Hasty(), until=60.0, every=60.0).total("moves")
    1 True
    1.0
    """

    def __init__(self, scenario: Scenario, controller: Controller, seed: int) -> None:
        self.scenario = scenario
        environment = scenario.environment
        self.world = World(scenario.cluster, environment)
        self.gossip = Gossip(self.world, environment.gossip_interval, environment.gossip_delay)
        self.traffic = Traffic(self.world, environment)
        self.recorder = Recorder(scenario, self.world)
        self.random = np.random.default_rng(seed)
        self._controller = controller
        self._now = 0
        self._end = round(60_000 * scenario.minutes)
        self._agenda: list[tuple[int, int, int, Callable[[], None]]] = []
        self._number = count()
        self._wake_at = NEVER
        self._let_go_at = NEVER

    @property
    def now(self) -> int:
        """Milliseconds from the beginning."""
        return self._now

    def submit(self, change: Change) -> int:
        """Ask for a change, and return its number, or -1 where the partition is busy."""
        return self.traffic.submit(change, self._now)

    def play(self, method: str) -> History:
        """Play the scenario for the controller of a name, up to the end or to an interruption."""
        interrupted = False
        began = time.perf_counter()
        log_event(logger, "playing", scenario=self.scenario.name, method=method)
        try:
            for event in self.scenario.events:
                self._enter(event)
            self._put(0, _SAMPLE, self._sample)
            self._plan_wake(0)
            while self._agenda:
                self._now, _, _, act = heapq.heappop(self._agenda)
                self.world.advance(self._now / 1000)
                act()
        except KeyboardInterrupt:
            interrupted = True
            self.recorder.warn("broken off by the user")
            self.recorder.sample()
        history = self.recorder.history(method, interrupted=interrupted)
        log_event(
            logger, "played", scenario=self.scenario.name, method=method,
            stop_reason="interrupted" if interrupted else "end", moves=history.total("moves"),
            seconds=time.perf_counter() - began,
        )  # fmt: skip
        return history

    def _put(self, at: int, kind: int, act: Callable[[], None]) -> None:
        if at <= self._end:
            heapq.heappush(self._agenda, (at, kind, next(self._number), act))

    def _enter(self, event: Event) -> None:
        if event.at < NEVER / 1000:
            self._put(round(1000 * event.at), _EVENT, lambda: self._happen(event))

    def _happen(self, event: Event) -> None:
        world = self.world
        before, what, led = world.version, event.what(world), world.leader_nodes()
        for later in event.happen(world):
            self._enter(later)
        if world.version != before:
            self.recorder.event(what, led)
            self._plan_wake(self._now)

    def _plan_wake(self, at: int) -> None:
        if at < self._wake_at:
            self._wake_at = at
            self._put(at, _WAKE, self._wake)

    def _wake(self) -> None:
        if self._now != self._wake_at:
            return  # it was woken earlier, and has asked for another time since
        self._wake_at = NEVER
        again = self._controller.wake(self)
        if again < NEVER / 1000:
            self._plan_wake(max(round(1000 * again), self._now + 1))
        self._start()

    def _start(self) -> None:
        begun, again = self.traffic.start(self._now)
        for flight in begun:
            self._put(flight.ends, _END, partial(self._finish, flight))
        if again < self._let_go_at:
            self._let_go_at = max(again, self._now + 1)
            self._put(self._let_go_at, _END, self._let_go)

    def _let_go(self) -> None:
        """Give up what took too long, and let go what has waited for its turn."""
        if self._now != self._let_go_at:
            return  # something was let go earlier, and what waits was asked again then
        self._let_go_at = NEVER
        for flight in self.traffic.expire(self._now):
            self.recorder.not_made(flight.change, "expired")
            self._controller.ended(flight.number, flight.change, False)
            self._plan_wake(self._now)
        self._start()

    def _finish(self, flight: Flight) -> None:
        if flight.cancelled:
            return
        change = flight.change
        leader_was = self.world.leader_node(change.partition)
        made = self.traffic.finish(flight)
        if made:
            self.recorder.made(change, leader_was)
            touched = {node for node, _ in change.add} | set(change.drop)
            if change.lead >= 0:
                touched |= {change.lead, leader_was}
            self.gossip.changed(np.array(sorted(touched - {-1}), np.int64))
        else:
            self.recorder.not_made(change, "failed")
        self._controller.ended(flight.number, change, made)
        self._plan_wake(self._now)
        self._start()

    def _sample(self) -> None:
        self.recorder.sample()
        self._put(self._now + round(1000 * self.scenario.every), _SAMPLE, self._sample)


class Gossip:
    """The last figures that every node has published, as the others know them."""

    # A node publishes every ``interval`` seconds, and once its replicas or leaders have changed by
    # a hundredth, at least by one and at most by three; the others know ``delay`` seconds later.
    # With neither, everything is known at once. CockroachDB, simulator defaults (10 s, 0.5 s) and
    # gossip on change of capacity.

    def __init__(self, world: World, interval: float, delay: float) -> None:
        self._world = world
        self._interval = interval
        self._delay = delay
        self._on_the_way: deque[tuple[float, int, tuple[NDArray[np.float64], int, int]]] = deque()
        self.live = interval == 0.0 and delay == 0.0
        self._load = world.load.copy()
        self._replicas = world.replicas.copy()
        self._leaders = world.leaders.copy()
        self._changes = np.zeros(len(world.health), np.int64)
        self._next = 0.0

    def changed(self, nodes: NDArray[np.int64]) -> None:
        """Note that replicas or leaders of some nodes changed."""
        if self.live:
            return
        world = self._world
        self._changes[nodes] += 1
        for node in nodes.tolist():
            least = min(max(0.01 * float(world.replicas[node]), 1.0), 3.0)
            if self._changes[node] >= least:
                self._publish(node)

    def view(self, node: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Return what a node knows of all nodes; its own figures are always fresh."""
        world = self._world
        if self.live:
            return world.load.copy(), world.replicas.copy(), world.leaders.copy()
        self._hear()
        load, replicas = self._load.copy(), self._replicas.copy()
        leaders = self._leaders.copy()
        load[node] = world.load[node]
        replicas[node], leaders[node] = world.replicas[node], world.leaders[node]
        return load, replicas, leaders

    def _hear(self) -> None:
        now = self._world.seconds
        if now >= self._next:
            # figures of the last round that was due; between rounds only changes are published
            for node in range(len(self._world.health)):
                self._publish(node)
            self._next = now - now % self._interval + self._interval if self._interval else now
        while self._on_the_way and self._on_the_way[0][0] <= now:
            _, node, (load, replicas, leaders) = self._on_the_way.popleft()
            self._load[node] = load
            self._replicas[node] = replicas
            self._leaders[node] = leaders

    def _publish(self, node: int) -> None:
        world = self._world
        figures = (world.load[node].copy(), int(world.replicas[node]), int(world.leaders[node]))
        self._on_the_way.append((world.seconds + self._delay, node, figures))
        self._changes[node] = 0


class Recorder:
    """Collects what a ``History`` holds."""

    def __init__(self, scenario: Scenario, world: World) -> None:
        self._scenario = scenario
        self._world = world
        self._conformance = Conformance(scenario.cluster)
        self._shortfall = Shortfall(world)
        self._totals = dict.fromkeys(TOTALS, 0.0)
        self._moves = np.zeros(len(world.health), np.int64)
        self._left: set[tuple[int, int]] = set()
        self._log: list[Entry] = []
        self._events: list[tuple[float, str]] = []
        self._warnings: list[str] = []
        self._samples: list[dict[str, Any]] = []

    def event(self, what: str, leader_nodes: NDArray[np.int32]) -> None:
        """Note that something happened from outside: from here on a replica may return."""
        if what:
            self._events.append((self._world.seconds, what))
        self._left.clear()
        self._shortfall.look()
        leads = self._world.leader_nodes()
        fell = (leader_nodes >= 0) & (leads[: len(leader_nodes)] != leader_nodes)
        self._totals["failovers"] += int(fell.sum())

    def warn(self, what: str) -> None:
        """Note what a person should look into, once."""
        if what not in self._warnings:
            self._warnings.append(what)

    def left(self, partition: int, node: int) -> bool:
        """Return whether a replica has left a node since the last event."""
        return (partition, node) in self._left

    def all_left(self) -> list[tuple[int, int]]:
        """Return what has left which node since the last event."""
        return sorted(self._left)

    def made(self, change: Change, leader_was: int) -> None:
        """Count and log a change that was made."""
        self._log.append(Entry(self._world.seconds, change, "made"))
        partition = change.partition
        self._totals["moves"] += change.moves
        self._totals["bytes"] += change.moves * self._world.size(partition)
        if change.only_leads and change.lead not in (-1, leader_was):
            self._totals["leader_changes"] += 1
        for node, _ in change.add:
            self._totals["thrash"] += self.left(partition, node)
            self._moves[node] += 1
        for node in change.drop:
            self._left.add((partition, node))
            self._moves[node] += 1
        self._shortfall.look_at(partition)

    def not_made(self, change: Change, outcome: Literal["failed", "expired"]) -> None:
        """Count and log a change that was not made."""
        self._log.append(Entry(self._world.seconds, change, outcome))
        self._totals[outcome] += 1

    def sample(self) -> None:
        """Take a sample."""
        world = self._world
        world.refresh()
        self._totals["below_min_active"] = self._shortfall.total
        alive, accepts, leads = world.states()
        sample = {
            "seconds": world.seconds, "load": world.load.copy(),
            "capacity": world.capacity.copy(), "replicas": world.replicas.copy(),
            "leaders": world.leaders.copy(), "moves": self._moves.copy(),
            "present": world.health != Health.ABSENT,
            "alive": alive, "accepts": accepts, "leads": leads,
            "conformance": self._conformance.count(world),
            "totals": np.array([self._totals[name] for name in TOTALS]),
        }  # fmt: skip
        self._samples.append(sample)

    def history(self, method: str, *, interrupted: bool) -> History:
        """Return what was collected."""
        series = {name: np.array([one[name] for one in self._samples]) for name in self._samples[0]}
        return History(
            scenario=self._scenario, method=method, **series,
            below_min_active=self._shortfall.seconds(), partitions=tuple(self._world.names),
            log=tuple(self._log), events=tuple(self._events), warnings=tuple(self._warnings),
            interrupted=interrupted,
        )  # fmt: skip


class Shortfall:
    """Keeps account of partitions with fewer live replicas than their ``min_active``."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._below = np.zeros(0, bool)
        self._since = np.zeros(0)
        self._seconds = np.zeros(0)
        self._count = 0
        self._total = 0.0
        self._until = world.seconds
        self.look()

    @property
    def total(self) -> float:
        """Seconds so far, added up over partitions."""
        return self._total + self._count * (self._world.seconds - self._until)

    def seconds(self) -> NDArray[np.float64]:
        """Return for how long each partition was below its min-active."""
        open_for = np.where(self._below, self._world.seconds - self._since, 0.0)
        return self._seconds + open_for

    def look(self) -> None:
        """Look at all partitions, after changes of nodes or requirements, or new partitions."""
        world = self._world
        live = ((world.node >= 0) & world.serves()[world.node]).sum(1)
        below = live < world.least_active()
        new = len(below) - len(self._below)
        if new:
            self._below = np.concatenate([self._below, np.zeros(new, bool)])
            self._since = np.concatenate([self._since, np.zeros(new)])
            self._seconds = np.concatenate([self._seconds, np.zeros(new)])
        for partition in np.flatnonzero(below != self._below).tolist():
            self._turn(partition, bool(below[partition]))

    def look_at(self, partition: int) -> None:
        """Look at a partition whose replicas have changed."""
        world = self._world
        at = world.node[partition]
        live = int(((at >= 0) & world.serves()[at]).sum())
        below = live < int(world.cluster.partitions.min_active[world.origin[partition]])
        if below != self._below[partition]:
            self._turn(partition, below)

    def _turn(self, partition: int, below: bool) -> None:
        now = self._world.seconds
        self._total, self._until = self.total, now
        if below:
            self._since[partition] = now
        else:
            self._seconds[partition] += now - self._since[partition]
        self._below[partition] = below
        self._count += 1 if below else -1
