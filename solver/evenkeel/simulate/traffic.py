"""Traffic: changes that wait for a lane, and those that are under way."""

from collections.abc import Callable

import numpy as np

from evenkeel.simulate.changes import Change, Flight, Rates
from evenkeel.simulate.world import World

NEVER = 2**62
"""Later than anything, in milliseconds."""


class Traffic:
    """What has been asked for and is not done yet.

    One change of a partition is under way at a time. A snapshot takes one of the receiver's lanes
    and one of the sender's; leadership leaves a node at most once per ``lead_gap``.

    Parameters
    ----------
    world : World
        Where everything is.
    rates : Rates
        How fast changes are carried out.
    """

    def __init__(self, world: World, rates: Rates) -> None:
        self.rates = rates
        self._world = world
        self._waiting: dict[int, Flight] = {}
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
        """Return whether a partition has a change that waits or is under way.

        Parameters
        ----------
        partition : int
            The partition.

        Returns
        -------
        bool
            True until it is done or given up.
        """
        return partition in self._of or partition in self._claimed

    def under_way(self) -> list[Change]:
        """Return the changes that have begun.

        Returns
        -------
        list of Change
            In the order in which they were submitted.
        """
        return [flight.change for flight in self._flying.values() if not flight.cancelled]

    def submit(self, change: Change, now: int) -> int:
        """Ask for a change.

        Parameters
        ----------
        change : Change
            The change.
        now : int
            Milliseconds.

        Returns
        -------
        int
            Its number, or -1 if the partition is busy and the change claims nothing, or if another
            one has claimed it.
        """
        partition = change.partition
        if partition in self._claimed or (partition in self._of and not change.claims):
            return -1
        if change.claims:
            self._claimed.add(partition)
        self._number += 1
        self._waiting[self._number] = Flight(change, self._number, now)
        if partition not in self._of:
            self._of[partition] = self._number
        return self._number

    def withdraw(self, wanted: Callable[[Change], bool]) -> int:
        """Take back changes that have not begun.

        Parameters
        ----------
        wanted : callable
            Which of them.

        Returns
        -------
        int
            How many.
        """
        gone = [flight for flight in self._waiting.values() if wanted(flight.change)]
        for flight in gone:
            self._forget(flight)
        return len(gone)

    def expire(self, now: int) -> list[Flight]:
        """Give up what has taken longer than it may.

        Parameters
        ----------
        now : int
            Milliseconds.

        Returns
        -------
        list of Flight
            What was given up.
        """
        late = [
            flight
            for flight in (*self._waiting.values(), *self._flying.values())
            if not flight.cancelled and now >= _latest(flight)
        ]
        for flight in late:
            self._forget(flight)
        return late

    def start(self, now: int) -> tuple[list[Flight], int]:
        """Let go whatever has a lane.

        Parameters
        ----------
        now : int
            Milliseconds.

        Returns
        -------
        tuple of (list of Flight, int)
            What has begun, and when something may begin, or is given up, that nobody will announce.
        """
        begun = []
        again = NEVER
        receiving = self._receiving.tolist()
        for flight in sorted(self._waiting.values(), key=_rank):
            change = flight.change
            if self._of.get(change.partition) != flight.number:
                continue  # it has claimed the partition and waits for the change before it
            if change.add and receiving[change.add[0][0]] >= self.rates.receive:
                again = min(again, _latest(flight))
                continue
            source = self._world.leader_node(change.partition)
            leads_on = change.lead >= 0 and change.lead != source
            if leads_on and source >= 0 and self._next_lead[source] > now:
                again = min(again, int(self._next_lead[source]))
                continue
            if change.add:
                if not self._take_lanes(flight, source):
                    again = min(again, _latest(flight))
                    continue
                receiving = self._receiving.tolist()
            if leads_on and source >= 0:
                self._next_lead[source] = now + round(1000 * self.rates.lead_gap)
            seconds = self.rates.seconds(self._world.size(change.partition), len(change.add))
            flight.ends = now + max(1, round(1000 * seconds))
            del self._waiting[flight.number]
            self._flying[flight.number] = flight
            begun.append(flight)
        again = min([again, *(_latest(flight) for flight in self._flying.values())])
        return begun, again

    def finish(self, flight: Flight) -> bool:
        """End a change that was under way, and make it if it still fits.

        Parameters
        ----------
        flight : Flight
            Its time is over.

        Returns
        -------
        bool
            Whether it was made.
        """
        if flight.cancelled:
            return False
        self._forget(flight)
        if not self._world.fits(flight.change):
            return False
        self._world.apply(flight.change)
        return True

    def _take_lanes(self, flight: Flight, source: int) -> bool:
        joining = [node for node, _ in flight.change.add]
        lanes = min(len(joining), self.rates.send)
        full = any(self._receiving[node] >= self.rates.receive for node in joining)
        if full or (source >= 0 and self._sending[source] + lanes > self.rates.send):
            return False
        self._receiving[joining] += 1
        if source >= 0:
            self._sending[source] += lanes
        flight.source = source
        return True

    def _forget(self, flight: Flight) -> None:
        """Free what a change holds."""
        partition = flight.change.partition
        if self._waiting.pop(flight.number, None) is None:
            del self._flying[flight.number]
            flight.cancelled = True
            if flight.change.add:
                self._receiving[[node for node, _ in flight.change.add]] -= 1
                if flight.source >= 0:
                    self._sending[flight.source] -= min(len(flight.change.add), self.rates.send)
        if flight.change.claims:
            self._claimed.discard(partition)
        if self._of.get(partition) == flight.number:
            del self._of[partition]
            for other in self._waiting.values():
                if other.change.partition == partition:
                    self._of[partition] = other.number
                    break


def _rank(flight: Flight) -> tuple[float, int]:
    return -flight.change.urgency, flight.number


def _latest(flight: Flight) -> int:
    limit = flight.change.deadline
    return NEVER if np.isinf(limit) else flight.submitted + round(1000 * limit)
