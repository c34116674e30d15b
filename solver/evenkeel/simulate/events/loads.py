"""Events that change loads: scaled, hot for a while, or drifting."""

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

    def _describe(self, world: World) -> str:
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

    def _describe(self, world: World) -> str:
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
        at_least(faults, f"{path}.lasts", self.lasts, 0.0)
        check_whole(faults, f"{path}.seed", self.seed, 0)
        if self.partitions is None:
            return (self,)
        which = find_partitions(
            faults, f"{path}.partitions", cluster.partitions, several(self.partitions)
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
