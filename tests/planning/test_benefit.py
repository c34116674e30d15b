"""The order of benefit against its plain twin, and against other orders."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.planning import schedule as schedule
from evenkeel_kernels.planning.schedule import Benefits, Heap, order_by_benefit
from tests.naive.planning.benefit import order_by_benefit as plain_order
from tests.support.effort import mostly_long
from tests.support.instances import as_cluster, generate


def problem(seed):
    """A few changes of a few nodes; some follow others, some change nothing."""
    rng = np.random.default_rng(seed)
    count, nodes, dimensions = (int(rng.integers(low, 9)) for low in (0, 1, 1))
    changes = [
        {
            "urgency": int(rng.integers(2)), "size": float(rng.integers(1, 4)),
            "previous": c - 1 if c and rng.random() < 0.3 else None,
            "shifts": [
                (int(n), (rng.integers(-4, 5, dimensions) / 8.0).tolist())
                for n in rng.permutation(nodes)[: rng.integers(0, 3)]
            ],
        }
        for c in range(count)
    ]  # fmt: skip
    return changes, rng.integers(0, 12, (nodes, dimensions)) / 8.0, rng.random(dimensions)


@pytest.mark.small
@pytest.mark.parametrize("seed", range(300))
def test_order_by_benefit_agrees_with_plain_twin(seed):
    changes, used, mean = problem(seed)
    count = len(changes)
    previous = [-1 if one["previous"] is None else one["previous"] for one in changes]
    following = np.full(count, -1, np.int32)
    for c, before in enumerate(previous):
        if before >= 0:
            following[before] = c
    shifts = [pair for one in changes for pair in one["shifts"]]
    benefits = Benefits(
        np.array([one["urgency"] for one in changes], np.int64),
        np.array([one["size"] for one in changes], np.float64),
        np.array(previous, np.int32), following,
        np.cumsum([0, *(len(one["shifts"]) for one in changes)]).astype(np.int64),
        np.array([n for n, _ in shifts], np.int32),
        np.array([one for _, one in shifts], np.float64).reshape(len(shifts), len(mean)), mean,
    )  # fmt: skip
    none = [np.full(count, -1, np.int32) for _ in range(2)]
    heap = Heap(used.copy(), np.zeros(count), *none)
    assert order_by_benefit(benefits, heap) == count
    assert heap.order.tolist() == plain_order(changes, used.tolist(), mean.tolist())


def total(actions, copies, changes):
    return np.bincount(actions.change, np.where(copies.moves, copies.size, 0.0), changes)


def fullness(cluster):
    carried = np.zeros(len(cluster.nodes) + 1)
    placed = cluster.placement.node >= 0
    load = cluster.partitions.load.voter.sum(1)[cluster.placement.owner]
    np.add.at(carried, cluster.placement.node[placed], load[placed])
    return carried / np.append(cluster.nodes.capacity.sum(1), 1.0)


OBVIOUS = {
    "largest first": lambda _, actions, copies, count: -total(actions, copies, count),
    "smallest first": lambda _, actions, copies, count: total(actions, copies, count),
    "by name": lambda _, actions, copies, count: np.arange(count),
    "fullest source first": lambda cluster, actions, _, count: -fullness(cluster)[actions.source[
        np.searchsorted(actions.change, np.arange(count))]],
    "emptiest target first": lambda cluster, actions, _, count: fullness(cluster)[actions.target[
        np.searchsorted(actions.change, np.arange(count))]],
}  # fmt: skip


@pytest.mark.parametrize("seed", mostly_long(range(12), (2,)))
def test_benefit_comes_early(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(200, 1500)), int(rng.integers(20, 60)), 4
    cluster = as_cluster(generate(*shape, seed=seed, util=float(rng.uniform(0.6, 0.9))))
    cluster = cluster.replace(bytes="d1")
    result = ek.solve(cluster, goals=ek.Goals(level=0.04), work_limit=200_000)
    mine = ek.plan(cluster, result).curve()
    assert mine.bytes[-1] > 0.0

    def area(key):
        def ranks(cluster, actions, copies, effects, throttle, previous):
            # partitions in danger first, as in every plan
            order = np.argsort(key(cluster, actions, copies, len(previous)), kind="stable")
            first = np.searchsorted(actions.change, order)
            danger = schedule.dangers(cluster)[actions.partition[first]]
            return order[np.argsort(danger, kind="stable")].astype(np.int32), np.zeros(
                len(previous), np.int64
            )

        with monkeypatch.context() as patched:
            patched.setattr(schedule, "ranks", ranks)
            return ek.plan(cluster, result).curve().area

    others = {name: area(key) for name, key in OBVIOUS.items()}
    drawn = min(area(lambda *given: rng.permutation(given[-1])) for _ in range(6))
    assert mine.area <= others["largest first"]
    assert mine.area <= 1.1 * min(drawn, *others.values())


def test_the_curve_ends_where_the_plan_does():
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 2, load=[[4.0], [3.0], [2.0]], placement=[[0]] * 3,
        dimensions=["disk"], bytes="disk",
    )  # fmt: skip
    node = np.array([0, 1, 1], np.int32)
    curve = ek.plan(cluster, cluster.placement.replaced(node, cluster.placement.leader)).curve()
    # 9 of 20 is the mean: both are worth as much per byte
    assert curve.bytes.tolist() in ([0.0, 3.0, 5.0], [0.0, 2.0, 5.0])
    first = curve.bytes[1] / 10.0
    assert np.allclose(curve.over, [0.45, 0.45 - first, 0.05])
    assert np.isclose(curve.area, curve.bytes[1] * 0.45 + (5.0 - curve.bytes[1]) * (0.45 - first))
