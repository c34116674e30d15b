"""What systems show of a plan that is under way: other orders, copies beside what they replace."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.placement import Flag
from evenkeel.planning.observed import in_slots
from evenkeel.planning.steps import StepKind, Steps


def moving():
    """A plan that moves the leader of three partitions of two replicas to a new node."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 3, placement=[[0, 1], [1, 2], [2, 0]],
        leader=[0, 0, 0],
    )  # fmt: skip
    node = np.array([3, 1, 1, 3, 2, 3], np.int32)
    return ek.plan(cluster, cluster.placement.replaced(node, cluster.placement.leader))


def shown(plan, rows, leader, flags=None):
    """The plan's cluster as a system lists it."""
    return plan.cluster.replace(placement=rows, leader=leader, flags=flags)


def test_what_a_system_lists_in_another_order_is_done():
    plan = moving()
    done = shown(plan, [[1, 3], [3, 1], [3, 2]], [1, 1, 1])
    assert plan.progress(done).finished
    assert plan.progress(done).astray == ()
    assert len(plan.resume(done)) == 0


def test_a_copy_that_is_listed_beside_what_it_replaces_is_under_way():
    plan = moving()
    flags = np.array([[Flag.OUTGOING, 0, Flag.INCOMING], [0, 0, 0], [0, 0, 0]], np.uint16)
    seen = shown(plan, [[0, 1, 3], [1, 2, -1], [2, 0, -1]], [0, 0, 0], flags)
    progress = plan.progress(seen)
    assert int(progress.under_way.sum()) == 1
    rest = plan.resume(seen)
    assert rest.copies == 3
    assert rest.check().end == "target"
    assert rest.end.node.tolist() == plan.target.node.tolist()


def test_what_has_arrived_beside_what_it_replaces_still_has_that_to_remove():
    plan = moving()
    flags = np.array([[Flag.HEALTHY] * 3, [0, 0, 0], [0, 0, 0]], np.uint16)
    seen = shown(plan, [[0, 1, 3], [1, 2, -1], [2, 0, -1]], [0, 0, 0], flags)
    progress = plan.progress(seen)
    assert (int(progress.under_way.sum()), progress.finished) == (1, False)
    rest = plan.resume(seen)
    assert rest.cluster.placement.node[:2].tolist() == [0, 1]
    assert rest.copies == 3
    there = next(row for row in rest.rows() if (row.kind, row.partition) == ("copy", "p0"))
    assert (there.target, there.start, there.finish) == ("n3", 0.0, 0.0)
    assert rest.check().end == "target"
    assert rest.end.node.tolist() == plan.target.node.tolist()


def test_the_way_back_removes_what_has_arrived_there():
    plan = moving().undo()
    seen = shown(plan, [[0, 1, 3], [3, 1, -1], [2, 3, -1]], [0, 0, 0])
    rest = plan.resume(seen)
    assert [row.source for row in rest.rows() if (row.kind, row.partition) == ("remove", "p0")] == [
        "n3"
    ]
    assert rest.end.node.tolist() == plan.target.node.tolist()


def test_a_partition_on_its_way_wants_no_more_replicas_than_before():
    plan = moving()
    wide = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 3, placement=[[0, 1, 3], [1, 2, -1], [2, 0, -1]],
        replicas=[3, 2, 2], alive=[True, True, False, True],
    )  # fmt: skip
    rest = plan.resume(wide)
    assert rest.cluster.partitions.replicas.tolist() == [2, 2, 2]
    assert rest.cluster.nodes.alive.tolist() == [True, True, False, True]


def test_a_replica_too_many_is_told():
    plan = moving()
    seen = shown(plan, [[1, 2, 3], [1, 2, -1], [2, 0, -1]], [0, 0, 0])
    with pytest.raises(ek.InvalidInput, match=r"observed\.partitions\[0\]: is a node too many"):
        plan.progress(seen)


def test_another_cluster_is_told_once():
    plan = moving()
    other = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 3, placement=[[0, 1], [1, 2], [2, 0]],
        node_names=["a", "b", "c", "d"],
    )  # fmt: skip
    for call in (plan.resume, plan.progress):
        with pytest.raises(ek.InvalidInput, match="is of another cluster") as told:
            call(other)
        assert len(told.value.faults) == 1


def test_an_array_is_no_placement():
    plan = moving()
    table = np.asarray(plan.target)
    for call in (
        plan.resume, plan.progress, plan.merge, lambda what: ek.plan(plan.cluster, what),
    ):  # fmt: skip
        with pytest.raises(ek.InvalidInput, match="must be a"):
            call(table)


def test_who_trade_nodes_by_way_of_a_third_keep_the_slots_they_are_seen_in():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]], placement=[[3, 0, 1]], leader=[0]
    )
    start = cluster.placement
    wanted = start.replaced(np.array([3, 1, 0], np.int32), start.leader)
    flags = np.array([0, 0, Flag.INCOMING], np.uint16)
    seen = replace(start, node=np.array([3, 0, 2], np.int32), flags=flags)
    found = in_slots(cluster, wanted, Steps.none(), seen)
    assert found.node.tolist() == [3, 0, 2]
    assert found.flags.tolist() == flags.tolist()


def waiting(*, other_left):
    """A plan in which a replica waits on a spare node, or where another of its partition was."""
    capacity, target = [1.0, 3.0, 2.0, 1.0], [3, 1, 2, 1, 2, 0]
    rows, role = [[2, 1], [2, 1], [3, 1]], [[0, 1]] * 3  # else it takes the other's way
    if not other_left:
        capacity, target = [1.0, 1.0, 2.0, 1.0], [1, 2, 0, 2]
        rows, role = [[0, 2], [1, 2]], [[0, 0]] * 2
    cluster = ek.Cluster.from_arrays(
        capacity=np.array(capacity)[:, None], load=np.ones((len(rows), 1)), dimensions=["disk"],
        bytes="disk", transient=["disk"], placement=rows, role=role,
    )  # fmt: skip
    return ek.plan(cluster, cluster.placement.replaced(np.array(target, np.int32),
                                                       cluster.placement.leader))  # fmt: skip


def states(plan):
    """Where replicas serve, and which copies run, while each change of a plan is under way."""
    steps, node = plan.steps, plan.cluster.placement.node.copy()
    for change in np.unique(plan.change):
        mine = np.flatnonzero(plan.change == change)
        copies = mine[steps.kind[mine] == StepKind.COPY]
        yield node.copy(), steps.replica[copies], steps.target[copies]
        node[steps.replica[copies]] = steps.target[copies]
        yield node.copy(), copies[:0], copies[:0]


@pytest.mark.parametrize("other_left", [True, False])
@pytest.mark.parametrize("beside", [True, False])
def test_a_replica_that_waits_elsewhere_is_seen_there(other_left, beside):
    plan = waiting(other_left=other_left)
    assert plan.complete
    assert plan.copies == np.count_nonzero(plan.target.node != plan.cluster.placement.node) + 1
    first, width = plan.cluster.placement.first, 2
    for node, replica, to in states(plan):
        rows = [node[a:b].tolist() for a, b in pairwise(first.tolist())]
        flags = [[0] * width for _ in rows]
        for k, n in zip(replica.tolist(), to.tolist(), strict=True):
            p, slot = divmod(k, width)
            if beside:
                rows[p].append(n)
                flags[p].append(int(Flag.INCOMING))
            else:
                rows[p][slot], flags[p][slot] = n, int(Flag.INCOMING)
        longest = max(len(row) for row in rows)
        pad = [row + [-1] * (longest - len(row)) for row in rows]
        marks = [row + [0] * (longest - len(row)) for row in flags]
        leader = [row.index(int(node[p * width + lead])) if int(node[p * width + lead]) in row
                  else lead for p, (row, lead) in enumerate(
                      zip(rows, plan.cluster.placement.leader.tolist(), strict=True))]  # fmt: skip
        seen = shown(plan, pad, leader, np.array(marks, np.uint16))
        rest = plan.resume(seen)
        assert rest.cluster.placement.node.tolist() == node.tolist()
        assert rest.complete
        assert rest.check().end == "target"


def test_what_is_gone_on_with_leaves_leaders_of_other_partitions_as_they_are():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 2, placement=[[0, 1], [0, 1]]
    )
    target = cluster.placement.replaced(np.array([2, 1, 0, 1], np.int32), [0, 0])
    plan = ek.plan(cluster, target, protocol="kafka")
    done = plan.end.replaced(plan.end.node, [0, 1])  # the second has another leader by itself
    assert len(plan.resume(done)) == 0
    begun = cluster.placement.replaced(cluster.placement.node, [0, 1])
    assert {*plan.resume(begun).steps.partition.tolist()} == {0}
