"""Events of partitions: other wishes, other loads, more of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.containers import items_of
from evenkeel.model.reading.selection import find_partitions
from evenkeel.simulate.engine.world import World
from evenkeel.simulate.events.event import Event, above_zero, at_least, listed, several

COUNTED = "replicas"
"""A dimension of this name counts replicas, whatever they carry."""


@dataclass(frozen=True, kw_only=True)
class Rewrite(Event):
    """Partitions want something else: other numbers, or another rule.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    partitions : sequence of (str or int) or slice
        Which ones, by name, number or ``"group=NAME"``; all by default.
    rule : int, optional
        Index of the rule in the cluster.
    replicas, voters : int, optional
        Wanted numbers. Where all replicas vote, they do so in other numbers, too.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> more = simulate.Rewrite(at=60.0, partitions=["p0"], replicas=3)
    >>> history = simulate.play(c, [more], until=600.0, every=300.0)
    >>> history.replicas.sum(1).tolist()
    [8, 9, 9]
    """

    partitions: Sequence[str | int] | slice = field(default_factory=lambda: slice(None))
    rule: int | None = None
    replicas: int | None = None
    voters: int | None = None

    def happen(self, world: World) -> Sequence[Event]:
        """Set what is given."""
        if self.replicas is not None:
            votes, wanted = world.voters[self.partitions], world.wanted[self.partitions]
            most = np.minimum(votes, self.replicas)
            world.voters[self.partitions] = np.where(votes == wanted, self.replicas, most)
        given = (("rule", self.rule), ("wanted", self.replicas), ("voters", self.voters))
        for name, value in given:
            if value is not None:
                getattr(world, name)[self.partitions] = value
        world.version += 1
        return ()

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        if self.rule is not None and not -1 <= self.rule < len(cluster.rules):
            faults.add(f"{path}.rule", self.rule, f"must be a rule, -1 to {len(cluster.rules) - 1}")
        for name in ("replicas", "voters"):
            if getattr(self, name) is not None:
                at_least(faults, f"{path}.{name}", getattr(self, name), 0.0)
        if isinstance(self.partitions, slice):
            return (self,)
        which = find_partitions(
            faults, f"{path}.partitions", cluster.partitions, several(self.partitions)
        )
        return (replace(self, partitions=which.tolist()),)

    def _said(self, world: World) -> str:
        given = (("rule", self.rule), ("replicas", self.replicas), ("voters", self.voters))
        return ", ".join(f"{name} {value}" for name, value in given if value is not None)


@dataclass(frozen=True, kw_only=True)
class LoadBecomes(Event):
    """Partitions carry more load, or less.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    partitions : sequence of (str or int)
        Which ones, by name, number or ``"group=NAME"``.
    factors : float or sequence of float
        By which loads are multiplied: one for all of them, or one for each.
    dimensions : sequence of str, optional
        Which dimensions; all but the one that is moved, and counts of replicas, by default.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> more = simulate.LoadBecomes(at=30.0, partitions=["p0"], factors=2.0)
    >>> history = simulate.play(c, [more], until=60.0, every=30.0)
    >>> history.load.sum((1, 2)).tolist()
    [8.0, 10.0, 10.0]
    """

    partitions: Sequence[str | int]
    factors: float | Sequence[float]
    dimensions: Sequence[str] | None = None

    def happen(self, world: World) -> Sequence[Event]:
        """Multiply."""
        which = np.array(self.partitions, np.int64)
        factor = np.broadcast_to(np.asarray(self.factors, np.float64), which.shape)
        multiply(world, which, factor, flows_of(world.cluster, self.dimensions))
        world.growth[which] *= factor
        world.refresh()
        world.version += 1
        return ()

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        which = find_partitions(
            faults, f"{path}.partitions", cluster.partitions, several(self.partitions)
        )
        check_dimensions(faults, f"{path}.dimensions", cluster, self.dimensions)
        if np.ndim(self.factors) == 0:
            above_zero(faults, f"{path}.factors", self.factors)  # type: ignore[arg-type]
        else:
            given = items_of(faults, f"{path}.factors", self.factors)
            if len(given) != len(which) and not faults.about(path):
                faults.add(f"{path}.factors", len(given), f"needs {len(which)}, one a partition")
            for i, factor in enumerate(given):
                above_zero(faults, f"{path}.factors[{i}]", factor)
        return (replace(self, partitions=which.tolist()),)

    def _said(self, world: World) -> str:
        which = listed(world.names, self.partitions)  # type: ignore[arg-type]
        factors = np.unique(np.asarray(self.factors, np.float64))
        return f"load of {which}" + (f" x {factors[0]:.3g}" if len(factors) == 1 else "")


@dataclass(frozen=True, kw_only=True)
class HotSpot(Event):
    """Some partitions are hot for a while.

    Parameters
    ----------
    at : float
        Seconds from the beginning.
    name : str
        What histories call it; what it does, if left empty.
    partitions : sequence of (str or int)
        Which ones, by name, number or ``"group=NAME"``.
    factor : float
        By which their loads are multiplied.
    lasts : float
        Seconds until they are as before; for good by default.
    dimensions : sequence of str, optional
        Which dimensions; all but the one that is moved, and counts of replicas, by default.

    Examples
    --------
    >>> import evenkeel as ek
    >>> from evenkeel import simulate
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 3, load=[[1.0]] * 4, placement=[[0, 1]] * 4)
    >>> hot = simulate.HotSpot(partitions=["p0"], factor=4.0, lasts=60.0)
    >>> history = simulate.play(c, [hot], until=60.0, every=30.0)
    >>> history.load.sum((1, 2)).tolist()
    [14.0, 14.0, 8.0]
    """

    partitions: Sequence[str | int]
    factor: float = 10.0
    lasts: float = np.inf
    dimensions: Sequence[str] | None = None

    def happen(self, world: World) -> Sequence[Event]:
        """Do nothing: it is bound to two changes of load."""
        return self.bound(FaultList(), "event", world.cluster)

    def _bound(self, faults: FaultList, path: str, cluster: Cluster) -> Sequence[Event]:
        which = find_partitions(
            faults, f"{path}.partitions", cluster.partitions, several(self.partitions)
        )
        check_dimensions(faults, f"{path}.dimensions", cluster, self.dimensions)
        above_zero(faults, f"{path}.factor", self.factor)
        at_least(faults, f"{path}.lasts", self.lasts, 0.0)
        if faults.about(path):
            return ()
        partitions, factor = which.tolist(), float(self.factor)
        who = listed(cluster.partitions.names, partitions)
        hot = LoadBecomes(
            at=self.at,
            name=self.name or f"{who} hot",
            partitions=partitions,
            factors=factor,
            dimensions=self.dimensions,
        )
        if np.isinf(self.lasts):
            return (hot,)
        over = f"{self.name} ends" if self.name else f"{who} cool"
        ends = replace(hot, at=self.at + self.lasts, name=over, factors=1.0 / factor)
        return (hot, ends)

    def _said(self, world: World) -> str:
        return "hot spot"


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
        All randomness comes from it, so that it is the same whoever decides.
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
        at_least(faults, f"{path}.lasts", self.lasts, 0.0)
        check_whole(faults, f"{path}.seed", self.seed, 0)
        if self.partitions is None:
            return (self,)
        which = find_partitions(
            faults, f"{path}.partitions", cluster.partitions, several(self.partitions)
        )
        return (replace(self, partitions=which.tolist()),)

    def _said(self, world: World) -> str:
        return "" if self.step else "load drifts"


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
        All randomness comes from it, so that it is the same whoever decides.
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
        at_least(faults, f"{path}.lasts", self.lasts, 0.0)
        at_least(faults, f"{path}.load", self.load, 0.0)
        check_whole(faults, f"{path}.partitions", self.partitions, 0)
        check_whole(faults, f"{path}.seed", self.seed, 0)
        if not self.partitions and not self.load:
            faults.add(f"{path}.partitions", self.partitions, "grows nothing: say what, or load")
        return (self,)

    def _said(self, world: World) -> str:
        if self.step:
            return ""
        said = [f"{self.partitions} more partitions"] if self.partitions else []
        said += [f"load + {100.0 * self.load:g} %"] if self.load else []
        return ", ".join(said)


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

    def _said(self, world: World) -> str:
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
            at_least(faults, f"{path}.{name}", getattr(self, name), 0.0)
        return (self,)

    def _said(self, world: World) -> str:
        return "busy partitions split"


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
        faults.add(path, dimensions, f"leaves nothing to change: name some of {known}")


def check_whole(faults: FaultList, path: str, value: int, least: int) -> None:
    """Note what is no whole number, or too small."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        faults.add(path, value, f"must be a whole number, {least} or more")


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
