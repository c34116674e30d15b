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
    resumed_plan = plan.merge(plan.cluster.placement, observed=seen, arrived={("p0", "n2"): 0.5})
    assert resumed_plan.bytes == 0.0
    assert [one.node for one in resumed_plan.cancelled] == ["n2"]


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
    resumed_plan = plan.merge(target, observed=seen, arrived=arrived)
    told = resumed_plan.check()
    assert told.ok, str(told)
    assert resumed_plan.bound.seconds <= resumed_plan.makespan * (1.0 + 1e-9)
    for one in resumed_plan.cancelled:
        p, n = names.index(one.partition), nodes.index(one.node)
        mine = slice(*target.first[p : p + 2].tolist())
        begin = resumed_plan.cluster.placement.node[mine]
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


def seen(cluster, node, leader, incoming):
    """A placement of which one replica is under way to its node."""
    flags = np.zeros(len(node), np.uint16)
    flags[incoming] = Flag.INCOMING
    return replace(
        cluster.placement, node=np.array(node, np.int32), flags=flags,
        leader=np.array(leader, np.int16),
    )  # fmt: skip


def under_way_to_a_full_node(alive=(True,) * 4):
    """The copy of p0 from n2 to n3 is under way, beside p2 there: n3 is full."""
    given = {"capacity": [[10.0], [10.0], [10.0], [6.0]], "load": [[3.0]] * 3, "bytes": "disk",
             "dimensions": ["disk"], "transient": ["disk"]}  # fmt: skip
    cluster = ek.Cluster.from_arrays(**given, placement=[[2, 1], [0], [3]])
    target = cluster.placement.replaced(np.array([3, 1, 3, 0], np.int32), cluster.placement.leader)
    plan = ek.plan(cluster, target, protocol="kafka")
    first = cluster.placement.first
    now = seen(cluster, [3, 1, 0, 3], cluster.placement.leader, 0)
    return plan, ek.Cluster.from_arrays(
        **given, alive=alive, placement=now.node, first=first, flags=now.flags, leader=now.leader
    )


def test_a_copy_that_cannot_go_on_is_cancelled():
    """n1 has died, and Kafka takes no list with n1 in it: p0 is blocked."""
    plan, observed = under_way_to_a_full_node((True, False, True, True))
    rest = plan.resume(observed)
    assert [(one.partition, one.node) for one in rest.cancelled] == [("p0", "n3")]
    assert {one.partition for one in rest.blocked} == {"p0"}
    assert rest.check().ok


def test_the_room_of_a_copy_under_way_is_taken_until_it_settles():
    plan, observed = under_way_to_a_full_node()
    rest = plan.resume(observed)
    assert rest.complete
    assert not rest.cancelled
    found = {(row.kind, row.partition): row for row in rest.rows()}
    assert found["copy", "p0"].start == 0.0
    assert found["copy", "p1"].start >= found["remove", "p2"].finish


def test_the_check_finds_who_forgets_a_copy_under_way_or_gives_its_room_away(tmp_path):
    plan, observed = under_way_to_a_full_node()
    rest = plan.resume(observed)
    assert ek.read_plan(ek.write_plan(rest, tmp_path / "plan.json")).check().ok
    others = np.flatnonzero(rest.steps.partition != 0)
    fresh = ek.plan(
        rest.cluster, replace(rest.target, node=np.array([2, 1, 3, 0], np.int32)), protocol="kafka"
    )
    assert len(fresh) == len(others)
    forgets = replace(fresh, in_flight=rest.in_flight)
    for one in (forgets, ek.read_plan(ek.write_plan(forgets, tmp_path / "other.json"))):
        assert [breach.kind for breach in one.check().breaches][:1] == ["in_flight"]
    at_once = replace(fresh.steps, before=fresh.steps.before)
    hasty = replace(forgets, steps=at_once)
    assert "in_flight" in {breach.kind for breach in hasty.check().breaches}


@pytest.mark.parametrize("alive", [[True] * 4, [True, True, False, True]])
def test_no_other_change_of_a_partition_comes_before_a_copy_under_way(alive):
    """The leader of p0 is on its way from n1 to n0; n0, of capacity 2, is full with it."""
    given = {"capacity": [[2.0], [9.0], [9.0], [9.0]], "load": [[1.0]] * 3, "transient": ["disk"],
             "domains": {"zone": ["z1", "z1", "z0", "z0"]}, "dimensions": ["disk"],
             "rules": [ek.Rule(spread={"zone": 1}), ek.Rule(place={"zone=z0": 1})], "rule": [0] * 3,
             "group": [0, 1, 1], "group_rule": [1, -1]}  # fmt: skip
    cluster = ek.Cluster.from_arrays(**given, placement=[[1, 2], [3], [0]], leader=[1, 0, 0])
    target = cluster.placement.replaced(np.array([0, 3, 0, 3], np.int32), cluster.placement.leader)
    plan = ek.plan(cluster, target, protocol="cockroach")
    now = seen(cluster, [0, 2, 3, 0], cluster.placement.leader, 0)
    observed = ek.Cluster.from_arrays(
        **given, alive=alive, placement=now.node, first=now.first, flags=now.flags,
        leader=now.leader,
    )  # fmt: skip
    rest = plan.resume(observed)
    assert rest.complete
    assert rest.check().ok
    rows = [row for row in rest.rows() if row.kind in ("copy", "swap", "remove")]
    first = next(row for row in rows if row.partition == "p0")
    assert (first.slot, first.target, first.start) == (0, "n0", 0.0)
    comes = next(row for row in rows if (row.kind, row.partition) == ("copy", "p1"))
    leaves = next(row for row in rows if (row.kind, row.partition) == ("remove", "p2"))
    assert comes.start >= leaves.finish
