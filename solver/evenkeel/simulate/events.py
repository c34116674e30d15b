"""Events of a simulation: changes of a cluster at a time, and continuous processes."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.changes import (
    DISK_STATES,
    STATES,
    Changes,
    Factor,
    changed_parts,
    listed,
    parts_of,
    read_factor,
)
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.consistency import vouch_for
from evenkeel.model.reading.arrays import items_of
from evenkeel.model.reading.quantities import check_number, check_whole
from evenkeel.model.reading.selection import Which, find_nodes, find_partitions
from evenkeel.model.topology import NODE_TIER
from evenkeel.simulate.engine.world import Health, World

NAMED = 3  # nodes or partitions up to which each is named; of more the first two are


@dataclass(frozen=True, kw_only=True)
class Event(ABC):
    """Something that happens at a time.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> events: list[simulate.Event] = [
    ...     simulate.At(60.0, ek.Changes(down="n0")), simulate.Split(at=30.0, partition="p0"),
    ... ]
    >>> simulate.play(c, events, until=60.0, every=60.0).events
    ((30.0, 'p0 split'), (60.0, 'n0 down'))
    """

    at: float = 0.0
    name: str = ""

    @property
    def grows(self) -> bool:
        """Whether there are more partitions afterwards."""
        return False

    def happen(self, world: World) -> Sequence["Event"]:
        """Change the world, and return the events that follow from it later."""
        return self.bound(FaultList(), "event", world.cluster)

    def what(self, world: World) -> str:
        """Return a short description: the name if it has one; nothing for what only goes on."""
        return self.name or self._describe(world)

    def bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence["Event"]:
        """Return the event with numbers in the place of names, or the ones that it stands for.

        Everything in it that makes no sense is noted under ``path``.
        """
        check_number(faults, f"{path}.at", self.at)
        if not isinstance(self.name, str):
            faults.add(f"{path}.name", self.name, "must be a string")
        return self._bound(faults, path, cluster)

    @abstractmethod
    def _describe(self, world: World) -> str:
        """Return a short description."""

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence["Event"]:
        """Look at what is its own, and put numbers in the place of names."""
        return (self,)


def few_of(names: Sequence[str], which: Iterable[int]) -> str:
    """Name a few of many.

    >>> few_of(["a", "b", "c", "d"], [0, 2]), few_of(["a", "b", "c", "d"], range(4))
    ('a, c', 'a, b and 2 more')
    """
    chosen = [int(i) for i in which]
    if len(chosen) <= NAMED:
        return ", ".join(names[i] for i in chosen)
    return f"{', '.join(names[i] for i in chosen[:2])} and {len(chosen) - 2} more"


def above_zero(faults: FaultList, path: str, value: float) -> None:
    """Note a value that is not above 0, not finite, or no number.

    >>> found = FaultList()
    >>> above_zero(found, "events[0].factor", 0.0)
    >>> str(found.faults[0])
    'events[0].factor: must be finite and above 0 (got 0.0)'
    """
    check_number(faults, path, value)
    if not faults.about(path) and not 0.0 < value < np.inf:
        faults.add(path, value, "must be finite and above 0")


# seconds for which a node that was away is suspect. CockroachDB, allocator, store states.
SUSPECT_FOR = 30.0

MILLISECOND = 0.001

# seconds after which a node that is not heard of is dead. CockroachDB, the same.
DEAD_AFTER = 300.0

DESCRIPTIONS = {
    Health.UP: "up",
    Health.SUSPECT: "suspect",
    Health.DRAINING: "drained",
    Health.DECOMMISSIONING: "evacuated",
    Health.UNKNOWN: "down",
    Health.DEAD: "dead",
    Health.ABSENT: "gone",
}

# states of nodes that answer
ANSWERING = (Health.UP, Health.SUSPECT, Health.DRAINING, Health.DECOMMISSIONING)

# states from which nodes return
AWAY = (Health.SUSPECT, Health.DRAINING, Health.DECOMMISSIONING, Health.UNKNOWN, Health.DEAD)

# for each state of ``Changes``: states of the nodes that it concerns, their next one, a verb
TURNS: dict[str, tuple[Collection[Health], Health, str]] = {
    "down": (ANSWERING, Health.UNKNOWN, "down"),
    "up": ((*AWAY, Health.ABSENT), Health.SUSPECT, "back"),
    "cordon": ((Health.UP,), Health.SUSPECT, "cordoned"),
    "drain": (ANSWERING, Health.DECOMMISSIONING, "evacuated"),
    "gone": (tuple(Health), Health.ABSENT, "gone"),
}

REFUSED = (  # changes that do not happen in a simulation
    "pin", "unpin", "remove_nodes", "drop", "partitions", "rules", "placement", *DISK_STATES,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class NodesBecome(Event):
    """Nodes are in another state from now on.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    nodes : str, int, or sequence of them
        The nodes: names, numbers, or expressions such as ``"zone=a"``.
    health : Health
        Their state.
    where : collection of Health
        States of the nodes that it concerns; all by default.
    lasted : float
        Seconds that they have been in that state at least.
    later : (float, Health), optional
        State that they go to unless another event intervenes, and the seconds until then.
    verb : str
        What histories say of them; the name of the state if left empty.

    Examples
    --------
    >>> NodesBecome(at=60.0, nodes="n3", health=Health.DRAINING).health.name
    'DRAINING'
    """

    nodes: Which
    health: Health
    where: Collection[Health] = tuple(Health)
    lasted: float = 0.0
    later: tuple[float, Health] | None = None
    verb: str = ""

    def happen(self, world: World) -> Sequence[Event]:
        """Set the state; partitions led from nodes that no longer answer find another leader."""
        nodes = self._concerned(world)
        if not nodes:
            return ()
        world.health[nodes] = self.health
        world.health_since[nodes] = world.seconds
        world.version += 1
        if world.keep_all_led() or self.health >= Health.UNKNOWN:
            world.refresh()
        if self.later is None:
            return ()
        seconds, health = self.later
        at = self.at + seconds
        return [
            NodesBecome(at=at, nodes=nodes, health=health, where=(self.health,), lasted=seconds)
        ]

    def _concerned(self, world: World) -> list[int]:
        """Return the nodes that are in one of the states, and for long enough."""
        since = world.seconds - self.lasted + MILLISECOND if self.lasted else np.inf
        return [
            int(node)
            for node in listed(self.nodes)
            if world.health[node] in self.where and world.health_since[node] <= since
        ]

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        found = _nodes_of(faults, f"{path}.nodes", cluster, self.nodes)
        if not found and not faults.about(f"{path}.nodes"):
            faults.add(f"{path}.nodes", self.nodes, "names no node")
        return (replace(self, nodes=found),)

    def _describe(self, world: World) -> str:
        which = few_of(world.cluster.nodes.names, self._concerned(world))
        return f"{which} {self.verb or DESCRIPTIONS[self.health]}"


def _nodes_of(faults: FaultList, path: str, cluster: Cluster, which: Which) -> list[int]:
    found: list[int] = find_nodes(
        faults, path, cluster.nodes, cluster.topology, listed(which)
    ).tolist()
    return found


# states of nodes that may end; of two at once, the former holds
STRICTEST = ("down", "drain", "cordon")


@dataclass(frozen=True, kw_only=True)
class _Turn(NodesBecome):
    """Nodes go into a state of ``Changes``, or it ends.

    Examples
    --------
    >>> _Turn(at=9.0, nodes=[2], health=Health.DEAD, state="down", of=At(9.0)).numbers
    [2]
    """

    state: str
    of: "At"
    ends: bool = False

    @property
    def numbers(self) -> list[int]:
        """The nodes, by number."""
        return [int(n) for n in listed(self.nodes)]

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        return (self,)


class _Span(NamedTuple):
    """From when to when a node is in a state, of what rank, by which turn."""

    rank: int
    start: float
    end: float
    number: int


@dataclass(frozen=True)
class At(Event):
    """Changes that happen to a cluster at a time.

    Nodes that are ``down`` do not answer, and are dead a while later; those that are ``up`` again
    are suspect for a while. A ``drain`` takes until all replicas are elsewhere. Nodes that join may
    be named by any event, and are gone before. A ``load_factor``, that of the dimension that it
    changes most, also multiplies the growth of data. Partitions join by `Growth` and `Split`; pins,
    rules, removals and a placement do not change.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    changes : Changes
        What changes; its name is that in histories.
    lasts : float
        Seconds until nodes that are down, drained or cordoned are back and loads as before; for
        good by default. If events of a node overlap, it is back at the last end of them, unless an
        event has it ``up`` before; until then it is in the state of those that have not ended.
    dead_after : float
        Seconds until nodes that are down count as dead: until then a method leaves their replicas
        where they are. A pipeline uses its own delay windows instead.
    suspect_for : float
        Seconds for which nodes that are back keep what they have and are given nothing.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4,
    ...     domains={"zone": [*"aab"]},
    ... )
    >>> lost = simulate.At(60.0, ek.Changes(down="zone=b"), lasts=400.0)
    >>> simulate.play(c, [lost], until=600.0, every=300.0).events
    ((60.0, 'n2 down'), (360.0, 'n2 dead'), (460.0, 'n2 back'), (490.0, 'n2 up'))
    >>> hot = simulate.At(30.0, ek.Changes(load_factor={"p0": 2.0}))
    >>> simulate.play(c, [hot], until=60.0, every=30.0).load.sum((1, 2)).tolist()
    [8.0, 10.0, 10.0]
    """

    at: float = 0.0
    changes: Changes = field(default_factory=Changes)
    name: str = field(default="", init=False, repr=False)
    lasts: float = np.inf
    dead_after: float = DEAD_AFTER
    suspect_for: float = SUSPECT_FOR

    def happen(self, world: World) -> Sequence[Event]:
        """Take loads, capacities and wanted numbers from a changed snapshot."""
        before = world.snapshot()
        world.adopt(before.apply(self.changes))
        if self.changes.load_factor is not None:
            factor = read_factor(FaultList(), "", parts_of(before), self.changes.load_factor)
            with np.errstate(divide="ignore"):
                furthest = np.abs(np.log(factor)).argmax(1)
            world.growth *= factor[np.arange(len(factor)), furthest]
        world.refresh()
        world.version += 1
        return ()

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        changes = self.changes
        for name in ("lasts", "dead_after", "suspect_for"):
            check_number(faults, f"{path}.{name}", getattr(self, name))
        if not isinstance(changes, Changes):
            faults.add(f"{path}.changes", changes, "must be evenkeel.Changes")
            return ()
        if not changes.named:
            faults.add(f"{path}.changes", None, "changes nothing")
        for name in changes.named.intersection(REFUSED):
            faults.add(f"{path}.changes.{name}", getattr(changes, name), "cannot be simulated")
        inside = FaultList()
        changed_parts(inside, parts_of(cluster), replace(changes, nodes=None))
        factor = None if inside or changes.load_factor is None else self._inverse(faults, path)
        faults.take(inside, f"{path}.changes.")
        if faults.about(path):
            return ()
        events: list[Event] = []
        for verb in STATES:
            if nodes := _nodes_of(faults, path, cluster, getattr(changes, verb)):
                events += self._turned(verb, nodes)
        rest = replace(changes, nodes=None, down=(), up=(), cordon=(), drain=(), gone=())
        if rest.named:
            events.append(replace(self, changes=rest, lasts=np.inf))
        if np.isfinite(self.lasts) and factor is not None:
            ends = Changes(load_factor=factor, name=changes.name and f"{changes.name} ends")
            events.append(At(self.at + self.lasts, ends))
        return events

    def _turned(self, state: str, nodes: list[int]) -> list[Event]:
        """Return the events of nodes that go into a state, and may come back."""
        where, health, verb = TURNS[state]
        back = self.suspect_for, Health.UP
        later = {"down": (self.dead_after, Health.DEAD), "up": back}.get(state)
        events: list[Event] = [
            _Turn(
                at=self.at, name=self.changes.name, nodes=nodes, health=health, where=where,
                later=later, verb=verb, state=state, of=self,
            )
        ]  # fmt: skip
        if np.isfinite(self.lasts) and state in STRICTEST:
            events.append(self.ended(state, "up", nodes))
        return events

    def ended(self, state: str, then: str, nodes: list[int]) -> "_Turn":
        """Return the event by which nodes are no longer in a state, but in another one then."""
        name = self.changes.name
        return _Turn(
            at=self.at + self.lasts, name=name and f"{name} ends", nodes=nodes,
            health=TURNS[then][1], where=AWAY, verb=TURNS[then][2], state=state, of=self, ends=True,
            later=(self.suspect_for, Health.UP) if then == "up" else None,
        )  # fmt: skip

    def _inverse(self, faults: FaultList, path: str) -> Factor | None:
        """Return the factor that undoes a change of loads, where it does not last."""

        def inverse(factor: Any) -> Any:
            if isinstance(factor, Mapping):
                return {key: inverse(one) for key, one in factor.items()}
            if not (np.asarray(factor, np.float64) > 0.0).all():
                faults.add(f"{path}.changes.load_factor", factor, "must be above 0: it ends")
                return None
            return 1.0 / np.asarray(factor, np.float64)[()]

        return inverse(self.changes.load_factor) if np.isfinite(self.lasts) else None

    def _describe(self, world: World) -> str:
        return few_of(what := self.changes.describe().split("; "), range(len(what)))


def bound(
    faults: FaultList, cluster: Cluster, events: Sequence[Event]
) -> tuple[Cluster, tuple[Event, ...]]:
    """Return a cluster with all nodes that will ever be, and what happens to it, by number."""
    given = items_of(faults, "events", events)
    joining: dict[int, NodesBecome] = {}
    for i, event in enumerate(given):
        changes = event.changes if isinstance(event, At) else None
        if isinstance(changes, Changes) and changes.nodes is not None:
            before = len(cluster.nodes)
            cluster = _with_absent(faults, f"events[{i}].changes", cluster, changes)
            new = [*range(before, len(cluster.nodes))]
            joining[i] = NodesBecome(
                at=event.at, name=changes.name, nodes=new, health=Health.UP,
                where=(Health.ABSENT,), verb="added",
            )  # fmt: skip
    found: list[Event] = []
    for i, event in enumerate(given):
        if isinstance(event, Event):
            found += [joining[i]] if i in joining else []
            found += event.bound(faults, f"events[{i}]", cluster)
        else:
            faults.add(f"events[{i}]", event, "must be an event")
    return cluster, tuple(_with_last_ends(found))


def _with_last_ends(events: Sequence[Event]) -> Iterator[Event]:
    """Yield events, nodes coming back only at the last of the ends that overlap."""
    turns = [one for one in events if isinstance(one, _Turn)]
    freed: dict[int, list[float]] = {}
    for turn in turns:
        if turn.state not in STRICTEST:
            for n in turn.numbers:
                freed.setdefault(n, []).append(turn.at)
    spans: dict[int, list[_Span]] = {}
    for i, turn in enumerate(turns):
        if turn.state in STRICTEST and not turn.ends:
            for n in turn.numbers:
                end = min(
                    [turn.at + turn.of.lasts, *(at for at in freed.get(n, ()) if at > turn.at)]
                )
                span = _Span(STRICTEST.index(turn.state), turn.at, end, i)
                spans.setdefault(n, []).append(span)
    for one in events:
        if not (isinstance(one, _Turn) and one.ends):
            yield one
            continue
        nodes: dict[str, list[int]] = {}
        for n in one.numbers:
            own = next(
                span for span in spans[n]
                if turns[span.number].of is one.of and STRICTEST[span.rank] == one.state
            )  # fmt: skip
            goes_on = [
                span.rank for span in spans[n]
                if span.start <= one.at and (span.end, span.number) > (one.at, own.number)
            ]  # fmt: skip
            if own.end == one.at and min(goes_on, default=len(STRICTEST)) > own.rank:
                then = STRICTEST[min(goes_on)] if goes_on else "up"
                nodes.setdefault(then, []).append(n)
        yield from (one.of.ended(one.state, then, some) for then, some in nodes.items())


def _with_absent(faults: FaultList, path: str, cluster: Cluster, changes: Changes) -> Cluster:
    """Return a cluster of which nodes that join later are part, gone so far."""
    inside = FaultList()
    parts = changed_parts(inside, parts_of(cluster), Changes(nodes=changes.nodes))
    faults.take(inside, f"{path}.")
    if inside:
        return cluster
    absent = [*range(len(cluster.nodes), len(parts["nodes"]))]
    parts = changed_parts(faults, parts, Changes(gone=absent))
    vouch_for(parts)
    return replace(cluster, **parts)


@dataclass(frozen=True, kw_only=True)
class Overloaded(Event):
    """The disks of a node are overloaded, or no longer.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    node : int or str
        The node.
    score : float
        0 for not at all.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> busy = simulate.Overloaded(node="n0", score=2.0)
    >>> simulate.play(c, [busy], until=60.0, every=60.0).events
    ((0.0, 'n0 overloaded 2'),)
    """

    node: int | str
    score: float

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        check_number(faults, f"{path}.score", self.score)
        found = _nodes_of(faults, f"{path}.node", cluster, [self.node])
        return (replace(self, node=found[0]),) if found else ()

    def happen(self, world: World) -> Sequence[Event]:
        """Set the score."""
        world.io[int(self.node)] = self.score
        world.version += 1
        return ()

    def _describe(self, world: World) -> str:
        return f"{world.cluster.nodes.names[int(self.node)]} overloaded {self.score:g}"


@dataclass(frozen=True, kw_only=True)
class RollingUpgrade(Event):
    """Nodes are restarted in turn, a few at a time, domain by domain if a tier is named.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    nodes : str, int, or sequence of them, optional
        The nodes: names, numbers, or expressions; all that are there by default.
    tier : str
        Nodes of different domains of this tier are never away together; ``"node"`` for no tier.
    batch : int
        How many are away at the same time.
    away : float
        Seconds for which each is away.
    pause : float
        Seconds between the return of some and the going of the next.
    dead_after : float
        Seconds after which a node that is away counts as dead.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[1.0]] * 3, load=[], domains={"zone": ["a", "b", "a"]})
    >>> upgrade = RollingUpgrade(tier="zone", batch=2, away=60.0, pause=30.0)
    >>> [(e.at, e.nodes) for e in upgrade.bound(FaultList(), "", c)]
    [(0.0, [0, 2]), (60.0, [0, 2]), (90.0, [1]), (150.0, [1])]
    """

    nodes: str | int | Sequence[str | int] | None = None
    tier: str = NODE_TIER
    batch: int = 1
    away: float = 120.0
    pause: float = 60.0
    dead_after: float = DEAD_AFTER

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        above_zero(faults, f"{path}.away", self.away)
        check_number(faults, f"{path}.pause", self.pause)
        check_number(faults, f"{path}.dead_after", self.dead_after)
        check_whole(faults, f"{path}.batch", self.batch, 1)
        chosen = set(np.flatnonzero(~cluster.nodes.gone).tolist())
        if self.nodes is not None:
            chosen = set(_nodes_of(faults, f"{path}.nodes", cluster, self.nodes))
        everywhere = {"": list(range(len(cluster.nodes)))}
        members = everywhere if self.tier == NODE_TIER else domains_of(cluster, self.tier)
        if not members:
            known = [*cluster.topology.tiers, NODE_TIER]
            faults.add(f"{path}.tier", self.tier, f"unknown tier; known: {known}")
        if faults.about(path):
            return ()
        stray = chosen.difference(*members.values())
        events: list[Event] = []
        goes = self.at
        for inside in [*members.values(), sorted(stray)]:
            mine = [node for node in inside if node in chosen]
            for i in range(0, len(mine), self.batch):
                some = Changes(down=mine[i : i + self.batch], name=self.name)
                gone = At(goes, some, lasts=self.away, dead_after=self.dead_after)
                events += gone.bound(faults, path, cluster)
                goes += self.away + self.pause
        return events

    def _describe(self, world: World) -> str:
        return f"rolling upgrade by {self.tier}"


def domains_of(cluster: Cluster, tier: str) -> dict[str, list[int]]:
    """Return the nodes of each domain of a tier that holds any which are not gone."""
    topology = cluster.topology
    if tier not in topology.tiers:
        return {}
    row = topology.tier_index(tier)
    domain = np.where(cluster.nodes.gone, -1, topology.domain[row])
    return {
        topology.domain_name(row, d): np.flatnonzero(domain == d).tolist()
        for d in np.unique(domain[domain >= 0]).tolist()
    }


COUNTED = "replicas"  # a dimension of this name counts replicas, whatever they carry


@dataclass(frozen=True, kw_only=True)
class LoadDrift(Event):
    """Loads go up and down at random, each partition by itself: a random walk.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    every : float
        Seconds from one step to the next.
    deviation : float
        Standard deviation of the logarithm of one step's factor.
    pull : float
        Share of the way back to where it began that each step takes; 0 for a walk that ends
        anywhere, in which sooner or later one partition outweighs all others.
    lasts : float
        Seconds until it ends; never by default.
    partitions : sequence of (str or int), optional
        Which ones, by name, number or ``"group=NAME"``; all by default, those to come too.
    dimensions : sequence of str, optional
        Which dimensions; all but the one that is moved, and counts of replicas, by default.
    seed : int
        All randomness comes from it, so that it is the same for all controllers.
    step : int
        Steps taken so far.
    strayed : ndarray of float64, shape (n,)
        How far each partition is from where it began, as a logarithm.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> drift = simulate.LoadDrift(every=60.0, deviation=0.1, seed=1)
    >>> history = simulate.play(c, [drift], until=120.0, every=60.0)
    >>> history.load.sum((1, 2)).round(2).tolist()
    [8.06, 8.53, 8.54]
    """

    every: float = 60.0
    deviation: float = 0.05
    pull: float = 0.1
    lasts: float = np.inf
    partitions: Sequence[str | int] | None = None
    dimensions: Sequence[str] | None = None
    seed: int = 0
    step: int = field(default=0, repr=False)
    strayed: NDArray[np.float64] = field(
        default_factory=lambda: np.zeros(0), repr=False, compare=False
    )

    def happen(self, world: World) -> Sequence[Event]:
        """Take a step."""
        everywhere = np.arange(len(world))
        which = everywhere if self.partitions is None else np.array(self.partitions, np.int64)
        random = np.random.default_rng([self.seed, self.step])
        noise = random.standard_normal(len(which))
        before = np.zeros(len(which))
        before[: len(self.strayed)] = self.strayed
        after = (1.0 - self.pull) * before + self.deviation * noise
        multiply(world, which, np.exp(after - before), flows_of(world.cluster, self.dimensions))
        world.refresh()
        world.version += 1
        if self.every * (self.step + 1) > self.lasts:
            return ()
        then = self.at + self.every
        return (replace(self, at=then, name="", step=self.step + 1, strayed=after),)

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        check_dimensions(faults, f"{path}.dimensions", cluster, self.dimensions)
        above_zero(faults, f"{path}.every", self.every)
        above_zero(faults, f"{path}.deviation", self.deviation)
        if not 0.0 <= self.pull <= 1.0:
            faults.add(f"{path}.pull", self.pull, "must be a share, from 0 to 1")
        check_number(faults, f"{path}.lasts", self.lasts)
        check_whole(faults, f"{path}.seed", self.seed)
        if self.partitions is None:
            return (self,)
        which = find_partitions(
            faults, f"{path}.partitions", cluster.partitions, listed(self.partitions)
        )
        return (replace(self, partitions=which.tolist()),)

    def _describe(self, world: World) -> str:
        return "" if self.step else "load drifts"


def flows_of(cluster: Cluster, dimensions: Sequence[str] | None) -> list[int]:
    """Return the dimensions in which a change of load counts."""
    if dimensions is not None:
        return sorted({cluster.dimensions.index(name) for name in dimensions})
    return [
        d
        for d, name in enumerate(cluster.dimensions)
        if d != cluster.bytes_dimension and name != COUNTED
    ]


def check_dimensions(
    faults: FaultList, path: str, cluster: Cluster, dimensions: Sequence[str] | None
) -> None:
    """Note dimensions that are none, and a change that would change none."""
    known = list(cluster.dimensions)
    named = [] if dimensions is None else items_of(faults, path, dimensions)
    for i, name in enumerate(named):
        if name not in known:
            faults.add(f"{path}[{i}]", name, f"unknown dimension; known: {known}")
    if not faults.about(path) and not flows_of(cluster, dimensions):
        faults.add(path, dimensions, f"changes nothing: give at least one of {known}")


def multiply(
    world: World,
    partitions: NDArray[np.int64],
    factor: NDArray[np.float64],
    dimensions: Sequence[int],
) -> None:
    """Multiply the loads of some partitions in all roles."""
    columns = np.array(dimensions, np.int64)
    for load in (world.leader_load, world.voter_load, world.non_voter_load):
        load[np.ix_(partitions, columns)] *= factor[:, None]


@dataclass(frozen=True, kw_only=True)
class Growth(Event):
    """Partitions are added, and load grows, again and again.

    Parameters
    ----------
    at : float
        Seconds from the beginning, for the first time.
    name : str
        What histories call it; what it does, if left empty.
    every : float
        Seconds from one time to the next.
    lasts : float
        Seconds until it ends; never by default.
    partitions : int
        How many are added each time, without replicas so far: each wants and weighs what one of
        those that are there does, drawn at random.
    load : float
        Share by which all loads grow each time, the dimension that is moved as well.
    seed : int
        All randomness comes from it, so that it is the same for all controllers.
    step : int
        Times that it has grown so far.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> grown = simulate.Growth(at=60.0, every=60.0, lasts=120.0, partitions=1)
    >>> history = simulate.play(c, [grown], until=300.0, every=300.0)
    >>> history.partitions
    ('p0', 'p1', 'p2', 'p3', 'p4', 'p5', 'p6')
    """

    every: float = 60.0
    lasts: float = np.inf
    partitions: int = 0
    load: float = 0.0
    seed: int = 0
    step: int = field(default=0, repr=False)

    @property
    def grows(self) -> bool:
        """Whether there are more partitions afterwards."""
        return self.partitions > 0

    def happen(self, world: World) -> Sequence[Event]:
        """Grow."""
        if self.load:
            everywhere = np.arange(len(world))
            carried = [d for d, n in enumerate(world.cluster.dimensions) if n != COUNTED]
            multiply(world, everywhere, np.full(len(world), 1.0 + self.load), carried)
        if self.partitions and len(world):
            random = np.random.default_rng([self.seed, self.step])
            world.add_partitions(random.integers(0, len(world), self.partitions))
        world.refresh()
        world.version += 1
        if self.every * (self.step + 1) > self.lasts:
            return ()
        return (replace(self, at=self.at + self.every, name="", step=self.step + 1),)

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        above_zero(faults, f"{path}.every", self.every)
        check_number(faults, f"{path}.lasts", self.lasts)
        check_number(faults, f"{path}.load", self.load)
        check_whole(faults, f"{path}.partitions", self.partitions)
        check_whole(faults, f"{path}.seed", self.seed)
        if not self.partitions and not self.load:
            faults.add(
                f"{path}.partitions", self.partitions, "grows nothing: give partitions or load"
            )
        return (self,)

    def _describe(self, world: World) -> str:
        if self.step:
            return ""
        parts = [f"{self.partitions} more partitions"] if self.partitions else []
        parts += [f"load + {100.0 * self.load:g} %"] if self.load else []
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Split(Event):
    """A partition is split in two.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    partition : int or str
        The partition; the new one gets the next number.
    share : float
        Part of load and size that the new one takes.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> split = simulate.Split(partition="p0", share=0.25)
    >>> simulate.play(c, [split], until=60.0, every=60.0).partitions
    ('p0', 'p1', 'p2', 'p3', 'p4')
    """

    partition: int | str
    share: float = 0.5

    @property
    def grows(self) -> bool:
        """Whether there are more partitions afterwards."""
        return True

    def happen(self, world: World) -> Sequence[Event]:
        """Split it."""
        world.split(int(self.partition), self.share)
        world.version += 1
        return ()

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        which = find_partitions(faults, f"{path}.partition", cluster.partitions, [self.partition])
        if not 0.0 < self.share < 1.0:
            faults.add(f"{path}.share", self.share, "must be between 0 and 1")
        return (replace(self, partition=int(which[0])),) if len(which) else ()

    def _describe(self, world: World) -> str:
        return f"{world.names[int(self.partition)]} split"


@dataclass(frozen=True, kw_only=True)
class SplitBusy(Event):
    """Again and again, whatever carries or holds too much is split in the middle.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    every : float
        Seconds until the next look.
    rate : float
        Most requests per second at the leader, in the dimension ``qps``.
    size : float
        Most bytes of a replica.

    References
    ----------
    CockroachDB, load-based splitting (2,500 requests per second) and range size (512 MiB).

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[9e9]] * 3, load=[[1e9]], placement=[[0, 1]], dimensions=["disk"],
    ...     bytes="disk",
    ... )
    >>> busy = simulate.SplitBusy(every=10.0, size=600e6)
    >>> simulate.play(c, [busy], until=60.0, every=60.0).partitions
    ('p0', 'p1')
    """

    every: float = 10.0
    rate: float = np.inf
    size: float = np.inf

    @property
    def grows(self) -> bool:
        """Whether there are more partitions afterwards."""
        return True

    def happen(self, world: World) -> Sequence[Event]:
        """Split what is too busy or too large."""
        names = world.cluster.dimensions
        busy = np.zeros(len(world), bool)
        if "qps" in names:
            busy |= world.leader_load[:, names.index("qps")] > self.rate
        if world.disk >= 0:
            busy |= world.leader_load[:, world.disk] > self.size
        for partition in np.flatnonzero(busy).tolist():
            Split(partition=partition).happen(world)
        return [replace(self, at=self.at + self.every)]

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        above_zero(faults, f"{path}.every", self.every)
        for name in ("rate", "size"):
            check_number(faults, f"{path}.{name}", getattr(self, name))
        return (self,)

    def _describe(self, world: World) -> str:
        return "busy partitions split"
