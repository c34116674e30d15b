"""Generators of whole clusters from a seed, the same on every machine."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList

DIMENSIONS = ("cpu", "disk", "net")  # names of the first dimensions; more are counted on
# what leading adds to a replica's load, as a share of it, dimension by dimension and around
LEADER_EXTRA = (1.0, 0.0, 0.5, 0.25)

# part of the variance of a load's logarithm that its dimensions have in common
COMMON_VARIANCE = 0.6

LOAD_STEP = 1.0 / 64.0  # loads are multiples of it, so that they are short in a file
LARGEST_SHARE = 0.25  # no leader takes more than this share of a small node
PARTITIONS_PER_GROUP = 100


@dataclass(frozen=True)
class Disorder:
    """Shares of the nodes and partitions of a cluster with which something is wrong."""

    new: float = 0.10  # of the nodes: empty
    dead: float = 0.03  # of the nodes: just died
    skew: float = 0.15  # how unevenly old nodes are filled: the deviation of a logarithm
    unassigned: float = 0.001  # of the partitions: lack a replica

    def check(self, faults: FaultList) -> None:
        """Note every share that is none."""
        for name in ("new", "dead", "unassigned"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                faults.add(f"disorder.{name}", getattr(self, name), "must be a share, from 0 to 1")
        if not 0.0 <= self.skew < np.inf:
            faults.add("disorder.skew", self.skew, "must be 0 or more")


def expansion(
    partitions: int = 25_000,
    nodes: int = 300,
    zones: int = 10,
    replicas: int = 3,
    dimensions: int = 3,
    seed: int = 1,
    *,
    utilisation: float = 0.70,
    racks_per_zone: int = 5,
    disorder: Disorder | None = None,
) -> Cluster:
    """Make a cluster that was just expanded: some nodes are empty, some died, some too full."""
    # Nodes come in two sizes, one twice the other, and stand round robin in their zones. Loads are
    # lognormal, correlated between dimensions, and higher for leaders. Replicas stand in different
    # zones, on old nodes only, and unevenly. The rule is one replica of a partition per zone.
    faults = FaultList()
    for name, count in (
        ("partitions", partitions), ("nodes", nodes), ("zones", zones), ("replicas", replicas),
        ("dimensions", dimensions), ("racks_per_zone", racks_per_zone),
    ):  # fmt: skip
        if count < 1:
            faults.add(name, count, "must be 1 or more")
    wrong = disorder or Disorder()
    wrong.check(faults)
    if seed < 0:
        faults.add("seed", seed, "must be 0 or more")
    if not 0.0 < utilisation < np.inf:
        faults.add("utilisation", utilisation, "must be above 0")
    faults.raise_if_any()
    fresh = max(zones if nodes >= 5 * zones else 1, round(wrong.new * nodes))
    died = max(1, round(wrong.dead * nodes))
    lost = round(wrong.unassigned * partitions) if replicas > 1 else 0
    if replicas > zones:
        faults.add("replicas", replicas, f"needs as many zones, and there are {zones}")
    if nodes - fresh < max(zones, died):
        message = (
            f"leaves {nodes - fresh} old nodes: too few for {zones} zones, {died} of them dead"
        )
        faults.add("nodes", nodes, message)
    faults.raise_if_any()
    # every draw below stands in this order for good: another order makes another cluster
    rng = np.random.default_rng(np.random.PCG64(seed))
    ids = np.arange(nodes)
    zone = ids % zones
    old = ids < nodes - fresh
    alive = np.ones(nodes, bool)
    alive[rng.choice(ids[old], died, replace=False)] = False
    size = np.where(rng.random(nodes) < np.where(old, 0.4, 0.8), 2.0, 1.0)
    room = utilisation * size[alive].sum()
    load, extra, unit = _loads(rng, partitions, replicas, dimensions, room)
    attraction = size * np.exp(wrong.skew * rng.standard_normal(nodes))
    attraction[~old] = 0.0
    placement = _crowded_placement(rng, partitions, replicas, zone, attraction)
    if lost:
        row = rng.choice(partitions, lost, replace=False)
        placement[row, rng.integers(1, replicas, lost)] = -1
    return Cluster.from_arrays(
        capacity=size[:, None] * unit,
        load=load,
        leader_load=load + extra,
        dimensions=_dimension_names(dimensions),
        bytes="disk" if dimensions > 1 else None,
        domains={"zone": zone, "rack": zone * racks_per_zone + ids // zones % racks_per_zone},
        alive=alive,
        replicas=replicas,
        placement=placement,
        group=_groups(rng, partitions),
        spread={"zone": 1},
    )


def _dimension_names(count: int) -> tuple[str, ...]:
    return DIMENSIONS[:count] + tuple(f"d{i}" for i in range(len(DIMENSIONS), count))


def _loads(
    rng: Generator, partitions: int, replicas: int, dimensions: int, room: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return load and what leading adds, both (P, D), and the capacity of a small node, (D,)."""
    # ``room`` is how many small nodes all load should fill
    common = rng.standard_normal((partitions, 1))
    own = rng.standard_normal((partitions, dimensions))
    drawn = np.exp(np.sqrt(COMMON_VARIANCE) * common + np.sqrt(1 - COMMON_VARIANCE) * own)
    load = np.maximum(np.round(drawn / LOAD_STEP), 1) * LOAD_STEP
    extra = load * np.resize(LEADER_EXTRA, dimensions)

    def unit() -> NDArray[np.float64]:
        total = (load * replicas + extra).sum(axis=0)
        return np.asarray(total / room)

    allowed = LARGEST_SHARE * unit() / np.maximum(load + extra, 1e-12)
    shrink = np.minimum(1.0, allowed).min(axis=1, keepdims=True)
    load *= shrink
    extra *= shrink
    return load, extra, np.ceil(unit())


def _crowded_placement(
    rng: Generator,
    partitions: int,
    replicas: int,
    zone: NDArray[np.int64],
    attraction: NDArray[np.float64],
) -> NDArray[np.int32]:
    """Draw nodes by their attraction, in different zones per partition; (P, R), -1 for none."""
    pull = np.bincount(zone, attraction)
    # the largest of log-weights with Gumbel noise are a draw by weight without replacement
    noisy = np.log(pull) + rng.gumbel(size=(partitions, len(pull)))
    chosen = np.argsort(-noisy, axis=1, kind="stable")[:, :replicas]
    placement = np.empty((partitions, replicas), np.int32)
    for z in range(len(pull)):
        here = np.flatnonzero((zone == z) & (attraction > 0))
        reach = np.cumsum(attraction[here]) / attraction[here].sum()
        row, slot = np.nonzero(chosen == z)
        drawn = np.searchsorted(reach, rng.random(len(row)))
        placement[row, slot] = here[np.minimum(drawn, len(here) - 1)]
    return placement


def _groups(rng: Generator, partitions: int) -> NDArray[np.int32]:
    """Draw a group per partition: neighbours together, few large groups and many small ones."""
    count = max(2, partitions // PARTITIONS_PER_GROUP)
    share = 1.0 / (np.arange(count) + 5.0)
    return np.sort(rng.choice(count, partitions, p=share / share.sum())).astype(np.int32)
