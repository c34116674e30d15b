"""Traffic: queued changes, and those in flight."""

from bisect import bisect_left, insort
from collections.abc import Callable
from heapq import heapify, heappop, heappush

import numpy as np

from evenkeel.simulate.engine.environment import Environment
from evenkeel.simulate.engine.world import Change, Flight, World

NEVER = 2**62
"""Later than anything, in milliseconds."""


class Traffic:
    """What has been asked for and is not done yet.

    One change of a partition is under way at a time. A snapshot takes one of the receiver's lanes
    and one of the sender's; leadership leaves a node at most once per ``lead_gap``.
    """

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
