"""Re-placement instances: an expanded cluster, with some nodes dead and others over capacity.

N nodes in Z zones, of two generations, the second twice as large. A tenth of them is new and empty,
a few have died, and the rest was filled unevenly. P partitions have R replicas in distinct zones;
the first one leads and carries more in some dimensions. Everything follows from the seed.
"""

import json
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from tests.support import places

Instance = dict[str, NDArray[Any]]

GOLDEN = places.DATA / "golden" / "rebalancer"

LEADER_EXTRA = (1.0, 0.0, 0.5, 0.25)  # what leading adds to a load, by dimension in turn
COMMON_SHARE = 0.6  # part of the variance of a load that all dimensions share
LARGEST_SHARE = 0.25  # no replica exceeds this part of a small node


def generate(
    P: int,  # noqa: N803 - the letters of the shapes, as in every instance's "meta"
    N: int,  # noqa: N803
    Z: int,  # noqa: N803
    R: int = 3,  # noqa: N803
    D: int = 3,  # noqa: N803
    seed: int = 1,
    util: float = 0.70,
    frac_new: float = 0.10,
    frac_dead: float = 0.03,
    skew: float = 0.15,
    frac_unassigned: float = 0.001,
    racks_per_zone: int = 5,
) -> Instance:
    """Draw an instance; the order of the draws is part of what it is."""
    random = np.random.Generator(np.random.PCG64(seed))
    each = np.arange(N)
    zone = (each % Z).astype(np.int32)
    rack = (zone * racks_per_zone + each // Z % racks_per_zone).astype(np.int32)
    least_new = Z if N >= 5 * Z else 1
    new = each >= N - max(least_new, round(frac_new * N))
    dead = np.zeros(N, bool)
    dead[random.choice(np.flatnonzero(~new), max(1, round(frac_dead * N)), replace=False)] = True
    size = np.where(random.random(N) < np.where(new, 0.8, 0.4), 2.0, 1.0)
    living = size[~dead].sum()

    load = _loads(random, P, D)
    extra = load * np.array(LEADER_EXTRA)[np.arange(D) % len(LEADER_EXTRA)]
    small_node = (load * R + extra).sum(0) / (util * living)
    shrunk = LARGEST_SHARE * small_node / np.maximum(load + extra, 1e-12)
    shrunk = np.minimum(1.0, shrunk).min(1, keepdims=True)
    load, extra = load * shrunk, extra * shrunk
    small_node = np.ceil((load * R + extra).sum(0) / (util * living))

    pull = size * np.exp(skew * random.standard_normal(N))
    pull[new] = 0.0
    placement = _placement(random, pull, zone, Z, (P, R))
    lost = round(frac_unassigned * P)
    if lost and R > 1:
        whose = random.choice(P, lost, replace=False)
        placement[whose, random.integers(1, R, lost)] = -1

    groups = max(2, P // 100)
    popularity = 1.0 / (np.arange(groups) + 5.0)
    group = np.sort(random.choice(groups, P, p=popularity / popularity.sum()))
    knobs = {
        "version": 1, "P": P, "R": R, "N": N, "D": D, "zones": Z,
        "racks_per_zone": racks_per_zone, "seed": seed, "util_target": util,
        "frac_new": frac_new, "frac_dead": frac_dead, "skew": skew,
        "frac_unassigned": frac_unassigned,
    }  # fmt: skip
    return {
        "capacity": size[:, None] * small_node,
        "zone": zone,
        "rack": rack,
        "load": load,
        "leader_extra_load": extra,
        "placement_before": placement,
        "dead": dead,
        "new": new,
        "resource": group.astype(np.int32),
        "meta": np.array(json.dumps(knobs)),
    }


def _loads(random: Generator, partitions: int, dimensions: int) -> NDArray[np.float64]:
    """Lognormal loads, alike across dimensions, in 64ths; (P, D)."""
    common = random.standard_normal((partitions, 1))
    own = random.standard_normal((partitions, dimensions))
    mixed = np.sqrt(COMMON_SHARE) * common + np.sqrt(1.0 - COMMON_SHARE) * own
    return np.maximum(np.round(np.exp(mixed) * 64.0), 1.0) / 64.0


def _placement(
    random: Generator,
    pull: NDArray[np.float64],
    zone: NDArray[np.int32],
    zones: int,
    shape: tuple[int, int],
) -> NDArray[np.int32]:
    """Replicas in distinct zones, drawn by pull; within a zone, on a node drawn by pull."""
    # the R largest of log weight + Gumbel noise are a weighted draw without replacement
    with np.errstate(divide="ignore"):  # nothing draws to a zone of new nodes alone
        keys = np.log(np.bincount(zone, pull, zones)) + random.gumbel(size=(shape[0], zones))
    drawn = np.argsort(-keys, axis=1, kind="stable")[:, : shape[1]]
    placement = np.empty(shape, np.int32)
    for z in range(zones):
        able = np.flatnonzero((zone == z) & (pull > 0.0))
        reach = np.cumsum(pull[able]) / pull[able].sum()
        at = np.nonzero(drawn == z)
        ticket = np.searchsorted(reach, random.random(len(at[0])))
        placement[at] = able[np.minimum(ticket, len(able) - 1)]
    return placement


def golden(name: str) -> Instance:
    """Load a stored instance, "small" or "medium"."""
    with np.load(GOLDEN / f"{name}.npz", allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}


def as_cluster(instance: Instance) -> Cluster:
    """Turn an instance into a cluster: one replica of a partition per zone."""
    return Cluster.from_arrays(
        capacity=instance["capacity"],
        load=instance["load"],
        leader_load=instance["load"] + instance["leader_extra_load"],
        domains={"zone": instance["zone"], "rack": instance["rack"]},
        replicas=instance["placement_before"].shape[1],
        placement=instance["placement_before"],
        alive=~instance["dead"],
        spread={"zone": 1},
        group=instance["resource"],
    )


def headline(seed: int = 1) -> Instance:
    """Draw the instance that speed is measured on: 25,000 partitions x 3 on 300 nodes."""
    return generate(P=25_000, N=300, Z=10, seed=seed)
