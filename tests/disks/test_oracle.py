"""Whole small clusters with disks against every placement that there is."""

from itertools import product

import numpy as np
import pytest

import evenkeel as ek

DISKS, REPLICAS = 6, 5
EVERY = np.array([*product(range(DISKS), repeat=REPLICAS)], np.int64)
"""Every way to put the replicas on the disks."""


def drawn(seed):
    """Two or three nodes with six disks, some of them full, closed or of another size."""
    rng = np.random.default_rng(seed)
    of = np.array([0, 0, 0, 1, 1, 1] if rng.random() < 0.5 else [0, 0, 1, 1, 2, 2])
    size = rng.integers(1, 6, REPLICAS).astype(float)
    capacity = rng.choice([4.0, 6.0, 8.0], DISKS) if rng.random() < 0.5 else np.full(DISKS, 7.0)
    state = np.where(rng.random(DISKS) < 0.2, ek.DiskState.EMPTYING, ek.DiskState.FINE)
    home = rng.integers(0, int(rng.integers(2, DISKS + 1)), REPLICAS)
    tolerance = [None, 0.0, 0.25][int(rng.integers(0, 3))]
    return of, size, capacity, state, home, tolerance


def target_of(held, of, capacity, usable, node, tolerance):
    """What disks of a node may hold that has these replicas: the share, or what one must hold."""
    mine = (of == node) & usable
    weight = np.where(mine, capacity, 0.0)
    if tolerance is None or not mine.any():
        return weight
    order, count = sorted(held, reverse=True), int(mine.sum())
    least = [(k // count + 1) * order[k] for k in range(0, len(order), count)]
    share = (1.0 + tolerance) * sum(held) / weight.sum()
    return np.minimum(max(share, max(least, default=0.0) / weight.max()) * weight, weight)


def best(of, size, capacity, state, home, tolerance, price):
    """Whether targets are met beside whole disks, and what moves cost at least; None for no room.

    Moves between nodes cost 1, those between the disks of a node the price.
    """
    usable = state == ek.DiskState.FINE
    load = np.stack([((d == EVERY) * size).sum(1) for d in range(DISKS)], 1)
    fits = usable[EVERY].all(1) & (load <= capacity + 1e-9).all(1)
    if not fits.any():
        return None
    rows, load = EVERY[fits], load[fits]
    node = of[rows]
    between = (node != of[home]).sum(1)
    cost = between + price * ((rows != home) & (node == of[home])).sum(1)
    known, which = np.unique(node, axis=0, return_inverse=True)
    targets = [
        sum(
            np.where(of == n, target_of(size[row == n], of, capacity, usable, n, tolerance), 0.0)
            for n in range(int(of.max()) + 1)
        )
        for row in known
    ]
    met = (load <= np.array(targets)[which.reshape(-1)] * (1 + 1e-9)).all(1)
    return bool(met.any()), float(cost[met if met.any() else slice(None)].min())


def solved(of, size, capacity, state, home, tolerance, price):
    cluster = ek.Cluster.from_arrays(
        capacity=[[100.0]] * (int(of.max()) + 1), load=size[:, None], dimensions=["disk"],
        bytes="disk", placement=of[home][:, None], disk=home[:, None],
        disks=ek.Disks(of, capacity, state),
    )  # fmt: skip
    return ek.solve(cluster, goals=ek.Goals(level=None, disks=tolerance, disk_move_cost=price))


def compared(seeds, price):
    """The cases, how many reach their goal, and what moves cost above the least, in prices."""
    cases, reached, above = 0, 0, []
    for seed in seeds:
        given = *drawn(seed), price
        known = best(*given)
        if known is None:
            continue
        result = solved(*given)
        disks = result.disks
        reachable, least = known
        whole = not disks.broken and result.audit.ok
        met = whole and (given[-2] is None or not len(disks.over_target))
        cases += 1
        reached += met or (whole and not reachable)
        if met and reachable:
            proven = next(one for one in result.proven if one.name == "cost of moves")
            assert proven.least - 1e-9 <= least <= proven.value + 1e-9
            assert proven.value == result.comparison.moves + price * disks.moves
            above.append(proven.value - least)
    return cases, reached, above


@pytest.mark.parametrize("price", [0.01, 0.3, 1.0])
def test_small_clusters_reach_what_can_be_reached_at_almost_the_least_cost(price):
    cases, reached, above = compared(range(60), price)
    assert cases > 30
    assert reached >= 0.99 * cases
    assert np.mean(above) <= 0.1
