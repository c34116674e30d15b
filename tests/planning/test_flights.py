"""Copies in flight of which a part has arrived: that part is not copied again."""

from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.placement import Flag
from tests.planning.test_plan import drawn
from tests.support.effort import mostly_long


def in_flight():
    """A plan of one copy of 10 bytes at 2 bytes per second, and its cluster on the way."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[99.0]] * 3, load=[[10.0]], placement=[[0, 1]], dimensions=("disk",),
        bytes="disk",
    )  # fmt: skip
    target = cluster.placement.replaced(np.array([0, 2], np.int32), cluster.placement.leader)
    plan = ek.plan(cluster, target, throttle=ek.Throttle(node_bandwidth=2.0))
    flags = np.array([[0, Flag.INCOMING]], np.uint16)
    return plan, cluster.replace(placement=[[0, 2]], flags=flags)


@pytest.mark.parametrize(("share", "bytes_left"), [(0.0, 10.0), (0.6, 4.0), (1.0, 0.0)])
def test_what_has_arrived_is_not_copied_again(share, bytes_left):
    plan, seen = in_flight()
    arrived = {("p0", "n2"): share}
    rest = plan.resume(seen, arrived=arrived)
    assert rest.bytes == pytest.approx(bytes_left)
    assert rest.makespan == pytest.approx(bytes_left / 2.0)
    assert rest.check().ok
    assert rest.check().end == "target"
    assert plan.merge(plan.target, observed=seen, arrived=arrived).bytes == rest.bytes
    progress = plan.progress(seen, arrived=arrived)
    assert progress.left == pytest.approx(rest.makespan)
    assert progress.bytes_done == pytest.approx(10.0 - bytes_left)


def test_nobody_has_to_say():
    plan, seen = in_flight()
    assert plan.resume(seen).bytes == 10.0
    assert plan.progress(seen).left == 5.0


def test_what_arrives_elsewhere_than_it_is_to_be_counts_as_nothing():
    plan, seen = in_flight()
    onwards = plan.merge(plan.cluster.placement, observed=seen, arrived={("p0", "n2"): 0.5})
    assert onwards.bytes == 0.0
    assert [one.node for one in onwards.cancelled] == ["n2"]


def test_every_problem_is_told():
    plan, seen = in_flight()
    with pytest.raises(ek.InvalidInput) as error:
        plan.resume(seen, arrived={("p0", "n2"): 1.5, ("p0", "n1"): 0.5, ("p9", "n2"): 0.1})
    assert len(error.value.faults) == 3


def permuted(placement, rng):
    """The same nodes, roles and leaders of each partition, in other slots of the same roles."""
    first, order = placement.first, np.arange(len(placement.node))
    for p in range(len(placement)):
        for role in np.unique(placement.role):
            mine = first[p] + np.flatnonzero(placement.role[first[p] : first[p + 1]] == role)
            order[mine] = rng.permutation(mine)
    replica = placement.leader_replica
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    leader = np.where(replica >= 0, place[replica] - first[:-1], -1).astype(np.int16)
    return ek.Placement(
        first, placement.node[order], placement.role[order], placement.flags[order], leader
    )


@pytest.mark.parametrize("seed", mostly_long(range(50), range(20)))
def test_a_copy_goes_on_wherever_the_target_has_its_node(seed):
    _, plan = drawn(seed)
    rng = np.random.default_rng(seed)
    seen = plan.after(int(rng.integers(0, len(plan.waves) + 1)))
    flying = np.flatnonzero((seen.flags & Flag.INCOMING) != 0)
    names, nodes = plan.cluster.partitions.names, plan.cluster.nodes.names
    arrived = {
        (names[seen.owner[k]], nodes[seen.node[k]]): float(rng.choice([0.0, 0.4, 1.0]))
        for k in flying.tolist()
    }
    target = permuted(plan.end, rng) if seed % 2 else plan.end
    onwards = plan.merge(target, observed=seen, arrived=arrived)
    told = onwards.check()
    assert told.ok, str(told)
    assert onwards.bound.seconds <= onwards.makespan * (1.0 + 1e-9)
    for one in onwards.cancelled:
        p, n = names.index(one.partition), nodes.index(one.node)
        mine = slice(*target.first[p : p + 2].tolist())
        begin = onwards.cluster.placement.node[mine]
        assert n not in target.node[mine] or n in begin or not plan.cluster.nodes.serves[n]


def test_a_copy_to_where_a_replica_waits_on_its_way_goes_on():
    cluster = ek.Cluster.from_arrays(
        capacity=[[2.0]] * 3, load=[[2.0]] * 2, dimensions=["disk"], bytes="disk",
        transient=["disk"], placement=[[0], [1]],
    )  # fmt: skip
    target = cluster.placement.replaced(np.array([1, 0], np.int32), cluster.placement.leader)
    plan = ek.plan(cluster, target)  # one of the two goes by way of the third node
    waits = next(row for row in plan.rows() if row.target == "n2")
    assert plan.bytes == 6.0
    k = cluster.partitions.names.index(waits.partition)
    node, flags = cluster.placement.node.copy(), cluster.placement.flags.copy()
    node[k], flags[k] = 2, int(Flag.INCOMING)
    seen = replace(cluster.placement, node=node, flags=flags)
    for share in (0.0, 0.5, 1.0):
        rest = plan.resume(seen, arrived={(waits.partition, "n2"): share})
        assert not rest.cancelled
        assert rest.bytes == 6.0 - 2.0 * share
        assert rest.check().ok
