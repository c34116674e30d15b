"""Clusters of unequal nodes that have lost some of them, as in measurements of WAGED.

Three kinds of nodes, which are strong in different dimensions, stand in zones of unlike size. Loads
differ by group and by partition, each dimension for itself, and one dimension is tight. A level
placement is made first; then loads may drift, and a share of the nodes is gone for good. Everything
follows from the seed.

References
----------
Apache Helix, WAGED measured at 25,032 replicas: node capacities of 80 to 150, 400 to 800 and 160 to
300 thousand, weights lognormal with a deviation of 0.6 within a resource and 0.35 between them.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import evenkeel as ek
from evenkeel.measure.levelness import levelness
from evenkeel.measure.loads import wanted_load

# capacity of each kind of node, in units of the second kind's first dimension
KINDS = np.array([[0.8, 8.0, 1.6], [1.0, 4.0, 2.0], [1.5, 6.0, 3.0]])

SHARES = (0.12, 0.61, 0.27)  # how common each kind is
# mean load of a replica in each dimension, in units of the first
WEIGHTS = np.array([1.0, 4.07, 1.6])

TIGHT = 0.62  # utilisation of the first dimension before anything is lost


class Loss(NamedTuple):
    """A cluster that has lost nodes."""

    cluster: ek.Cluster  # with its placement as it was before the loss
    lost: int  # replicas on nodes that are gone


def unlike(
    partitions: int, nodes: int, zones: int, seed: int, replicas: int = 3, groups: int = 28
) -> dict[str, Any]:
    """Draw the arrays of a cluster of which nothing is placed."""
    random = np.random.Generator(np.random.PCG64(seed))
    capacity = KINDS[random.choice(len(KINDS), nodes, p=SHARES)]
    zone = np.sort(np.concatenate([np.arange(zones), random.integers(0, zones, nodes - zones)]))
    group = np.arange(partitions) * groups // partitions
    scale = 200.0 * np.exp(0.35 * random.standard_normal(groups))
    own = np.exp(0.6 * random.standard_normal((partitions, 3)))
    load = np.maximum(np.round(scale[group, None] * own * WEIGHTS), 1.0)
    unit = load[:, 0].sum() * replicas / (TIGHT * capacity[:, 0].sum())
    return {
        "capacity": np.round(capacity * unit),
        "load": load,
        "dimensions": ("cu", "disk", "mem"),
        "domains": {"zone": zone},
        "spread": {"zone": 1},
        "replicas": replicas,
        "group": group,
    }


def fair(cluster: ek.Cluster) -> NDArray[np.float64]:
    """Return all load wanted over all capacity that takes it, (D,)."""
    nodes = cluster.nodes
    return wanted_load(cluster) / nodes.capacity[nodes.may_receive].sum(0)


def tight_goals(cluster: ek.Cluster, level: float) -> ek.Goals:
    """No node fuller, in any dimension, than the tightest one allows."""
    share = fair(cluster)
    tolerance = (1.0 + level) * share.max() / share - 1.0
    return ek.Goals(level=dict(zip(cluster.dimensions, tolerance, strict=True)), leaders=0.15)


def after_loss(
    partitions: int = 8_344,
    nodes: int = 1_000,
    zones: int = 10,
    seed: int = 1,
    share: float = 0.05,
    drift: float = 0.0,
    **more: Any,
) -> Loss:
    """Place everything level to 1.013, let loads drift by a factor, lose a share of the nodes."""
    arrays = unlike(partitions, nodes, zones, seed) | more
    empty = ek.Cluster.from_arrays(**arrays)
    placed = ek.solve(empty, goals=tight_goals(empty, 0.013), seed=seed).placement
    random = np.random.Generator(np.random.PCG64(seed + 100))
    alive = np.ones(nodes, bool)
    alive[random.choice(nodes, round(share * nodes), replace=False)] = False
    load = arrays["load"]
    load = np.maximum(np.round(load * np.exp(drift * random.standard_normal(load.shape))), 1.0)
    arrays |= {"load": load, "alive": alive, "gone": ~alive, "placement": np.asarray(placed)}
    cluster = ek.Cluster.from_arrays(**arrays)
    return Loss(cluster, int(np.count_nonzero(~alive[placed.node])))


def fullest(cluster: ek.Cluster, placement: ek.Placement) -> tuple[float, float]:
    """Fullest node in any dimension over the fair share of the tightest, and over the mean node."""
    level = levelness(cluster, placement)
    table: NDArray[np.float64] = level.table[level.alive].max(1)
    return float(table.max() / fair(cluster).max()), float(table.max() / table.mean())
