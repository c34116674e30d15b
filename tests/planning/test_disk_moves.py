"""Plans of clusters with disks: they end on the disks of the answer, safely, and lead back."""

from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.disks import disk_report


def drawn(seed):
    """A cluster with replicas on random disks, of which some are to be emptied."""
    rng = np.random.default_rng(seed)
    nodes, disks, partitions = (int(rng.integers(*ends)) for ends in ((2, 6), (1, 4), (5, 40)))
    slots = int(rng.integers(1, min(3, nodes) + 1))
    load = rng.uniform(1.0, 9.0, partitions)
    placement = [rng.permutation(nodes)[:slots].tolist() for _ in range(partitions)]
    disk = [[disks * n + int(rng.integers(0, disks)) for n in row] for row in placement]
    count = nodes * disks
    capacity = 1.6 * load.sum() * slots / count + 9.0
    state = (rng.random(count) < 0.1).astype(int)
    return ek.Cluster.from_arrays(
        capacity=[[1e9]] * nodes, load=load[:, None], dimensions=["disk"], bytes="disk",
        placement=placement, disk=disk,
        disks=ek.Disks(np.repeat(range(nodes), disks), [capacity] * count, state),
    )  # fmt: skip


def lies(placement):
    """Where each replica lies, in no order of slots."""
    columns = (placement.owner, placement.node, placement.disk)
    return sorted(zip(*(one.tolist() for one in columns), strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_ends_where_the_answer_is_and_leads_back(seed, tmp_path):
    cluster = drawn(seed)
    result = ek.solve(cluster, goals=ek.Goals(level=0.1, disks=0.2))
    throttle = ek.Throttle(node_in=2, disk_moves=1 + seed % 3)
    plan = result.plan(protocol=["plain", "kafka"][seed % 2], throttle=throttle)
    assert plan.check().ok
    assert not len(plan.disk_moves.blocked)
    assert lies(plan.end) == lies(result.placement)
    moves = plan.disk_moves
    for wave in range(moves.waves):
        own = moves.source[moves.wave == wave]
        assert np.bincount(cluster.disks.node[own]).max() <= throttle.disk_moves
    back, held = plan.undo(), disk_report(cluster, cluster.placement, None)
    if not len(held.over_capacity):  # nothing goes back where it had no room
        assert lies(back.end) == lies(cluster.placement)
    again = ek.read_plan(ek.write_plan(plan, tmp_path / "plan.json"))
    assert lies(again.end) == lies(plan.end)
    assert again.disk_moves.wave.tolist() == moves.wave.tolist()


def test_what_comes_takes_another_disk_where_what_was_to_leave_is_blocked():
    """The two large ones cannot trade places; the small one comes beside the one that stays."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[5.0], [2.0], [1.0]], load=[[1.0], [1.0], [2.0], [2.0], [1.0]],
        dimensions=["disk"], bytes="disk", placement=[[0], [0], [0], [1], [2]],
        disk=[[0], [0], [0], [2], [3]], disks=ek.Disks([0, 0, 1, 2], [4.0, 4.0, 2.0, 1.0]),
    )  # fmt: skip
    node, disk = np.array([[0, 0, 1, 0, 0], [0, 0, 2, 1, 0]], np.int32)
    target = replace(cluster.placement, node=node, disk=disk)
    plan = ek.plan(cluster, target)
    assert len(plan.blocked) == 2
    assert plan.end.disk.tolist() == [0, 0, 0, 2, 1]
    assert plan.check().ok


@pytest.mark.parametrize("protocol", ["plain", "kafka", "helix"])
def test_nothing_comes_to_a_disk_that_a_blocked_move_leaves_full(protocol):
    """p0 has no room on n1, and so p3 has none on the disk of n0 that p0 would have left."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0], [1.0], [9.0]], load=[[1.0]] * 4, dimensions=["disk"], bytes="disk",
        placement=[[0], [0], [1], [2]], disks=ek.Disks([0, 0, 1, 2], [1.5, 1.5, 1.0, 9.0]),
        disk=[[0], [1], [2], [3]], flags=[[0], [0], [ek.Flag.PINNED], [0]],
    )  # fmt: skip
    node, disk = np.array([[1, 0, 2, 0], [2, 1, 3, 0]], np.int32)
    plan = ek.plan(cluster, replace(cluster.placement, node=node, disk=disk), protocol=protocol)
    assert plan.check().ok
    assert {one.partition: one.lacks for one in plan.blocked}["p3"] == "room on a disk of n0"
