"""How long copies wait for room at least, whatever the order."""

from collections import Counter

import numpy as np

import evenkeel as ek
from evenkeel.planning.explain import last_arrival
from evenkeel.planning.steps import StepKind
from tests.naive.planning.soonest import soonest


def tight(before, after, size, capacity):
    """A cluster of one replica a partition that counts on both ends while it moves."""
    cluster = ek.Cluster.from_arrays(
        capacity=np.array(capacity, float)[:, None], load=np.array(size, float)[:, None],
        dimensions=["disk"], bytes="disk", transient=["disk"], placement=np.array(before)[:, None],
    )  # fmt: skip
    node = np.array(after, np.int32)
    return cluster, cluster.placement.replaced(node, cluster.placement.leader)


def test_a_chain_of_moves_into_full_nodes_takes_the_sum_of_theirs():
    cluster, target = tight([0, 1, 2], [1, 2, 3], [2.0, 2.0, 2.0], [2.0, 2.0, 2.0, 2.0])
    plan = ek.plan(cluster, target, throttle=ek.Throttle(node_bandwidth=1.0))
    assert plan.check().ok
    assert (plan.makespan, plan.bound.seconds) == (6.0, 6.0)
    assert plan.bound.term == "copies that wait for room"


def test_what_only_removes_waits_for_no_room():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 2, placement=[[0, 1], [1, 2]], replicas=1,
        dimensions=["disk"], bytes="disk", transient=["disk"],
    )  # fmt: skip
    plan = ek.solve(cluster, goals=ek.Goals(level=None)).plan()
    assert len(plan) > 0
    assert plan.check().ok
    assert (plan.copies, plan.bound.seconds, plan.bound.term) == (0, 0.0, "nothing is copied")


def test_windows_lengthen_the_chain_too():
    cluster, target = tight([0, 1], [1, 2], [3.0, 3.0], [3.0, 3.0, 3.0])
    windows = ek.Windows([(0.0, 5.0)], every=10.0)
    plan = ek.plan(cluster, target, throttle=ek.Throttle(node_bandwidth=1.0, windows=windows))
    assert (plan.makespan, plan.bound.seconds) == (11.0, 11.0)


def test_what_leaves_soonest_makes_room_first():
    """Two of three leave node 0; the short one is enough for what comes."""
    cluster, target = tight([0, 0, 0, 1], [2, 2, 0, 0], [2.0, 5.0, 1.0, 2.0], [8.0, 2.0, 9.0])
    plan = ek.plan(cluster, target, throttle=ek.Throttle(node_in=4))
    steps = plan.steps
    copies = steps.kind == StepKind.COPY
    alone = cluster.partitions.load.voter[steps.partition[copies], 0]
    assert last_arrival(cluster, target, steps, alone, None) == 5.0
    assert last_arrival(cluster, target, steps, 1.0 + 0.0 * alone, None) == 2.0


def crowded(seed):
    """A few moves between a few nodes, all of which have next to no room at one of the ends."""
    rng = np.random.default_rng(seed)
    count, nodes = int(rng.integers(2, 6)), int(rng.integers(3, 6))
    before = rng.integers(0, nodes, count)
    after = (before + rng.integers(1, nodes, count)) % nodes
    size = rng.integers(1, 5, count).astype(float)
    ends = [np.bincount(one, size, nodes) for one in (before, after)]
    capacity = np.maximum(*ends) + rng.integers(0, 3, nodes)
    return *tight(before, after, size, capacity), (capacity - ends[0]).tolist(), rng


def test_no_order_beats_the_chain():
    found = Counter()
    for seed in range(120):
        cluster, target, room, rng = crowded(seed)
        steps = ek.plan(cluster, target).steps
        copies = np.flatnonzero(steps.kind == StepKind.COPY)
        alone = rng.integers(1, 5, len(copies)).astype(float)
        size = cluster.partitions.load.voter[steps.partition[copies], 0]
        columns = steps.source[copies], steps.target[copies], size, alone
        moves = list(zip(*(one.tolist() for one in columns), strict=True))
        if len(np.unique(steps.replica[copies])) < len(copies):
            found["staged"] += 1
            continue
        least = soonest(moves, room)
        bound = last_arrival(cluster, target, steps, alone, None)
        assert bound <= least, seed
        found["waits"] += bound > alone.max(initial=0.0)
        found["exact"] += bound == least
    assert found["staged"] < 12
    assert found["waits"] > 30
    assert found["exact"] > 80
