"""Disks inside nodes: the kernel, the goal, what disks break, and situations of operators."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.cli import main
from evenkeel.measure.spending import exceeded
from evenkeel_kernels.core.disks import NodeDisks, level_disks
from tests.naive.core.disks import fewest_moves

GIB = 2.0**30


def levelled(first, size, home, fixed, disk_first, usable, capacity, target):
    """Return the disk of each replica and the load of each disk, as the kernel has it."""
    count, disks = len(size), len(usable)
    where, load = np.empty(count, np.int32), np.empty(disks)
    goal = np.array(target, float)
    arrays = NodeDisks(
        np.array(first, np.int64), np.array(size, float), np.array(home, np.int32),
        np.array(fixed, bool), np.array(disk_first, np.int64), np.array(usable, bool),
        np.array(capacity, float), goal, where, load, np.empty(count, np.int32), np.empty(count),
    )  # fmt: skip
    level_disks(arrays, goal, 20_000)
    return where, load


@pytest.mark.small
@pytest.mark.parametrize("seed", range(60))
def test_moves_inside_a_node_are_the_fewest(seed):
    rng = np.random.default_rng(seed)
    disks, count = int(rng.integers(1, 4)), int(rng.integers(0, 7))
    size = sorted(rng.integers(0, 6, count).astype(float).tolist(), reverse=True)
    home = rng.integers(-1, disks, count).tolist()
    fixed = [h >= 0 and rng.random() < 0.1 for h in home]
    usable = (rng.random(disks) < 0.85).tolist()
    share = sum(size) / max(1, sum(usable))
    target = [share * rng.choice([1.0, 1.2, 1.6]) if on else 0.0 for on in usable]
    capacity = [most * 1.5 if on else 9.0 for most, on in zip(target, usable, strict=True)]
    where, load = levelled([0, count], size, home, fixed, [0, disks], usable, capacity, target)
    fewest = fewest_moves(size, home, fixed, usable, target)
    over = any(on and load[d] > target[d] * (1 + 1e-9) for d, on in enumerate(usable))
    moves = sum(h >= 0 and d != h for h, d in zip(home, where.tolist(), strict=True))
    assert np.allclose(load, np.bincount(where[where >= 0], np.array(size)[where >= 0], disks))
    assert all(where[i] == home[i] for i in range(count) if fixed[i])
    if fewest is not None:
        assert not over
        assert (where >= 0).all()
        assert moves == fewest


@pytest.mark.small
@pytest.mark.parametrize(
    ("size", "home", "disks"),
    [
        ([], [], 0),
        ([], [], 2),
        ([1.0], [-1], 1),
        ([0.0] * 3, [0, 0, 0], 2),
        ([2.0] * 4, [0] * 4, 2),
    ],
)
def test_degenerate_nodes(size, home, disks):
    count = len(size)
    target = [sum(size) / max(disks, 1)] * disks
    where, _ = levelled(
        [0, count], size, home, [False] * count, [0, disks], [True] * disks, [99.0] * disks, target
    )
    assert ((where >= 0) & (where < disks)).all()


def cluster(nodes, disks, load, placement, disk, *, capacity=100.0, state=None, **more):
    """Build a cluster of equal nodes with equal disks, in one dimension."""
    return ek.Cluster.from_arrays(
        capacity=[[1e9]] * nodes, load=[[one] for one in load], dimensions=["disk"], bytes="disk",
        placement=placement, disk=disk,
        disks=ek.Disks(np.repeat(range(nodes), disks), [capacity] * (nodes * disks), state),
        **more,
    )  # fmt: skip


def test_a_node_holds_what_its_usable_disks_hold():
    c = cluster(2, 2, [1.0], [[0]], [[0]], state=[0, 1, 0, 2])
    assert c.nodes.capacity[:, 0].tolist() == [100.0, 100.0]
    assert c.replace(disks=ek.Disks([0, 1], [7.0, 8.0])).nodes.capacity[:, 0].tolist() == [7.0, 8.0]


def test_log_dirs_of_one_broker_are_evened_out_and_no_other_broker_moves():
    """Source: Cruise Control issue 971. Brokers are level, the directories of one are not."""
    placement = [[n] for n in range(6) for _ in range(4)]
    disk = [[2 * n + (i % 2 if n else 0)] for n in range(6) for i in range(4)]
    result = ek.solve(cluster(6, 2, [1.0] * 24, placement, disk), goals=ek.Goals(disks="10%"))
    assert result.comparison.moves == 0
    assert (result.disks.moves, result.disks.moves_at_least) == (2, 2)
    assert result.disks.loads.tolist() == [2.0] * 12
    assert result.status == "optimal"


def test_what_arrives_is_shared_out_over_the_directories():
    """Source: Cruise Control issue 1590. All that arrived went to one of two directories."""
    c = cluster(2, 2, [10.0] * 16, [[0]] * 16, [[0], [1]] * 8, capacity=90.0)
    result = ek.solve(c, goals=ek.Goals(level=0.0, disks=0.0))
    assert result.comparison.moves == 8
    assert result.disks.loads.tolist() == [40.0] * 4
    assert not result.disks.broken


def test_a_new_disk_fills_up_to_its_share():
    """Source: HDFS disk balancer: a disk was added to a node; within 10 % of its share is level."""
    c = cluster(1, 4, [1.0] * 300, [[0]] * 300, [[i % 3] for i in range(300)], capacity=200.0)
    result = ek.solve(c, goals=ek.Goals(disks=0.1))
    assert result.comparison.moves == 0
    assert result.disks.loads.max() <= 82.0
    assert result.disks.moves == result.disks.moves_at_least == 54


def test_check_names_disks_above_their_goal_and_what_they_break(tmp_path, capsys):
    cases = (([0, 0, 0, 0], "2 disks above"), ([1, 0, 0, 0], "that failed or are to be emptied: 4"))
    for state, text in cases:
        held = cluster(2, 2, [1.0] * 8, [[0]] * 4 + [[1]] * 4, [[0]] * 4 + [[2]] * 4, state=state)
        file, placed = str(tmp_path / "held.npz"), str(tmp_path / "placed.npz")
        ek.write(held, file, overwrite=True)
        assert main(["check", file, "--disks", "10%"]) == 1
        assert text in capsys.readouterr().out
        assert main(["solve", file, "--disks", "10%", "-o", placed, "--force"]) == 0
        assert main(["check", placed, "--disks", "10%"]) == 0


def test_what_finds_no_room_stays_and_takes_no_room_from_what_was_there():
    """What leaves a failed disk goes to another as far as that has room, and the rest is named."""
    held = ek.Cluster.from_arrays(
        capacity=[[14.0]], load=[[4.0], [4.0], [1.0]], dimensions=["disk"], bytes="disk",
        placement=[[0]] * 3, disks=ek.Disks([0, 0], [6.0, 8.0], [0, 2]), disk=[[1], [0], [1]],
    )  # fmt: skip
    result = ek.solve(held, goals=ek.Goals(level=None))
    assert result.placement.disk.tolist() == [1, 0, 0]
    assert result.disks.to_empty.tolist() == [0]
    assert result.disks.over_capacity.tolist() == []


@pytest.mark.parametrize(("state", "pinned"), [(None, False), (None, True), ([2, 0, 0, 0], False)])
def test_nothing_moves_inside_a_node_that_is_down(state, pinned):
    held = cluster(2, 2, [1.0] * 4, [[0, 1]] * 4, [[0, 2]] * 2 + [[0, 3]] * 2, state=state).down(0)
    held = held.pin(*range(4)) if pinned else held
    result = ek.solve(held, goals=ek.Goals(level=None, disks=0.0))
    assert (result.disks.moves, result.disks.moves_at_least, result.disks.broken) == (0, 0, 0)
    assert "disks" not in result.message


@pytest.mark.parametrize("state", [ek.DiskState.EMPTYING, ek.DiskState.FAILED])
def test_a_disk_that_goes_is_emptied_within_its_node(state):
    """Source: Strimzi proposal 106 (remove_disks)."""
    states = [int(state), 0, 0, 0, 0, 0]
    disk = [[0], [0], [0], [1], [1], [3], [4], [5]]
    c = cluster(2, 3, [1.0] * 8, [[0]] * 5 + [[1]] * 3, disk, state=states, capacity=4.0)
    result = ek.solve(c, goals=ek.Goals(level=None))
    assert result.comparison.moves == 0
    assert result.disks.moves == 3
    assert not result.disks.broken
    assert result.success


def test_what_the_other_disks_have_no_room_for_leaves_the_node():
    states = [1, 0, 0, 0]
    c = cluster(2, 2, [3.0] * 4, [[0]] * 4, [[0], [0], [1], [1]], state=states, capacity=7.0)
    result = ek.solve(c, goals=ek.Goals(level=None))
    assert not result.disks.broken
    assert result.comparison.moves == 2
    assert result.disks.moves == 0


@pytest.mark.parametrize("pinned", [False, True])
def test_who_must_leave_its_disk_leaves_the_node_where_one_has_to(pinned):
    """Disk 1 is to be emptied; a node has to give one of three to the other."""
    flags = [[0], [0], [int(ek.Flag.PINNED) * pinned]]
    c = cluster(2, 2, [2.0] * 3, [[0]] * 3, [[0], [0], [1]], state=[0, 1, 0, 0], capacity=5.0,
                flags=flags)  # fmt: skip
    result = ek.solve(c, goals=ek.Goals(level=None))
    assert result.comparison.moves == 1
    assert result.placement.node.tolist() == ([1, 0, 0] if pinned else [0, 0, 1])
    assert result.disks.moves == 0


def test_a_replica_that_no_disk_of_a_node_can_hold_stands_elsewhere():
    c = ek.Cluster.from_arrays(
        capacity=[[100.0]] * 2, load=[[8.0], [1.0]], dimensions=["disk"], bytes="disk",
        placement=[[-1], [1]], disks=ek.Disks([0, 0, 0, 1], [5.0, 5.0, 5.0, 10.0]),
    )  # fmt: skip
    result = ek.solve(c, goals=ek.Goals(level=None))
    assert result.placement.node.tolist() == [1, 1]
    assert result.placement.disk.tolist() == [3, 3]


def test_disks_that_cannot_pack_what_their_node_could_hold_give_it_away():
    """Two disks of 5 hold two replicas of 3, not three, although 9 is below 10."""
    c = cluster(2, 2, [3.0] * 3, [[0]] * 3, [[0], [1], [-1]], capacity=5.0)
    result = ek.solve(c, goals=ek.Goals(level=None))
    assert not result.disks.broken
    assert result.comparison.moves == 1


def test_one_directory_per_node_changes_nothing():
    """Source: Cruise Control issues 1280 and 1936, where this raises an error."""
    rng = np.random.default_rng(3)
    load, placement = rng.uniform(1, 9, 60), [[int(n)] for n in rng.integers(0, 5, 60)]
    c = cluster(5, 1, load, placement, [[row[0]] for row in placement], capacity=1e9)
    with_disks = ek.solve(c, goals=ek.Goals(level=0.05, disks=0.1))
    plain = ek.solve(c.replace(disks=None, disk=None), goals=ek.Goals(level=0.05))
    assert np.array_equal(with_disks.placement.node, plain.placement.node)
    assert with_disks.disks.moves == 0


def test_a_goal_out_of_reach_is_missed_and_a_full_cluster_is_partial():
    pinned = [[int(ek.Flag.PINNED)]] * 4
    c = cluster(1, 2, [1.0] * 4, [[0]] * 4, [[0]] * 4, flags=pinned)
    assert ek.solve(c, goals=ek.Goals(disks=0.0)).status == "missed"
    full = cluster(1, 2, [3.0] * 3, [[0]] * 3, [[0], [0], [1]], capacity=4.0)
    assert ek.solve(full, goals=ek.Goals(level=None)).status == "infeasible"
    split = cluster(1, 2, [3.0] * 3, [[0]] * 3, [[0], [0], [1]], capacity=5.0)
    assert ek.solve(split, goals=ek.Goals(level=None)).status == "partial"


def test_a_solve_of_the_result_moves_nothing_and_disks_outlive_changes(tmp_path):
    rng = np.random.default_rng(5)
    load = rng.uniform(1, 9, 120)
    placement = [rng.permutation(6)[:2].tolist() for _ in range(120)]
    disk = [[3 * n + int(rng.integers(0, 2)) for n in row] for row in placement]
    c = cluster(6, 3, load, placement, disk, capacity=200.0)
    goals = ek.Goals(level=0.1, disks=0.1)
    result = ek.solve(c, goals=goals)
    assert result.success
    assert ek.solve(c, goals=goals).placement.disk.tolist() == result.placement.disk.tolist()
    done = c.with_placement(result.placement)
    again = ek.solve(done, goals=goals)
    assert (again.comparison.moves, again.disks.moves) == (0, 0)
    for name in ("c.npz", "c.json"):
        ek.write(done, tmp_path / name)
        read = ek.read(tmp_path / name)
        assert read.placement.disk.tolist() == result.placement.disk.tolist()
        assert read.disks.names[4] == done.disks.names[4]
        assert read.disks.capacity.tolist() == done.disks.capacity.tolist()
    less = done.remove_nodes("n1").apply(ek.Changes(drop="p0"))
    assert len(less.disks) == 15
    kept = less.placement.node >= 0
    assert (less.disks.node[less.placement.disk[kept]] == less.placement.node[kept]).all()
    assert ek.solve(less, goals=goals).success
    session = ek.Session(done)
    session.apply(ek.Changes(down=["n0"]))
    assert not session.solve(goals=goals).disks.broken


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"disks": ek.Disks([0, 5])}, "disks.node"),
        ({"disks": ek.Disks([0]), "disk": [[7]]}, "disk"),
        ({"disk": [[0]]}, "disk"),
        ({"disks": [0]}, "disks"),
        ({"disks": ek.Disks([0]), "bytes": None}, "disks"),
    ],
)
def test_faults(given, path):
    whole = {"capacity": [[9.0]], "load": [[1.0]], "placement": [[0]], "bytes": "d0", **given}
    with pytest.raises(ek.InvalidInput) as error:
        ek.Cluster.from_arrays(**whole)
    assert any(fault.path.startswith(path) for fault in error.value.faults)


def test_faults_of_disks_and_of_the_goal():
    with pytest.raises(ek.InvalidInput):
        ek.Disks([1, 0], [-1.0, 2.0], [0, 9])
    plain = ek.Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]], placement=[[0]])
    with pytest.raises(ek.InvalidInput, match="disks"):
        ek.solve(plain, goals=ek.Goals(disks=0.1))


def test_the_price_decides_who_moves_inside_a_node_and_who_leaves_it():
    full = cluster(2, 3, [40.0, 20.0, 20.0], [[0]] * 3, [[0], [1], [2]], capacity=50.0)
    full = full.empty_disks("disk0")
    asked = [ek.Goals(level=None, disk_move_cost=price) for price in (0.0, 0.01, 0.5, 0.8, 1.0)]
    found = [ek.solve(full, goals=goals) for goals in asked]
    assert [(one.comparison.moves, one.disks.moves) for one in found] == [(0, 2)] * 3 + [(1, 0)] * 2
    costs = [one.metrics["proven"]["cost of moves"] for one in found]
    assert [one["value"] for one in costs] == [0.0, 0.02, 1.0, 1.0, 1.0]
    assert [one["at_least"] for one in costs] == [0.0, 0.01, 0.5, 0.8, 1.0]
    for wrong in (-0.1, 1.1, "cheap"):
        with pytest.raises(ek.InvalidInput, match="disk_move_cost"):
            ek.Goals(disk_move_cost=wrong)


@pytest.mark.parametrize("most", range(7))
@pytest.mark.parametrize("empty", [[], ["disk0"]])
def test_moves_inside_nodes_have_a_limit_of_their_own(most, empty):
    held = cluster(2, 2, [1.0] * 8, [[0]] * 4 + [[1]] * 4, [[0]] * 4 + [[2]] * 4)
    held = held.empty_disks(*empty) if empty else held
    goals, limits = ek.Goals(level=None, disks=0.0), ek.Limits(disk_moves=most)
    result = ek.solve(held, goals=goals, limits=limits)
    wanted = 6 if empty else 4
    assert result.disks.moves == min(most, wanted)
    assert len(result.disks.to_empty) == (max(4 - most, 0) if empty else 0)
    if most >= wanted:
        assert result.status == "optimal"
    else:
        assert result.status == ("partial" if empty and most < 4 else "missed")
        assert result.stop_reason == "limits"
        assert f"limits.disk_moves={most} used up" in result.message
    after = held.with_placement(result.placement)
    again = ek.solve(after, goals=goals)
    assert result.disks.moves + again.disks.moves == wanted
    whole = ek.solve(held, goals=goals).placement
    above = [f"disk_moves {wanted} above {most}"]
    assert exceeded(held, whole, limits) == (above if most < wanted else [])


def test_a_limit_of_moves_inside_nodes_needs_disks():
    plain = ek.Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]], placement=[[0]])
    with pytest.raises(ek.InvalidInput, match=r"limits\.disk_moves"):
        ek.solve(plain, limits=ek.Limits(disk_moves=1))


def with_folders():
    """Three nodes with two disks each, one replica on each disk."""
    names = [f"n{n}:/d{d}" for n in range(3) for d in (1, 2)]
    return ek.Cluster.from_arrays(
        capacity=[[8.0]] * 3, load=[[1.0]] * 6, dimensions=["disk"], bytes="disk",
        placement=[[0], [0], [1], [1], [2], [2]], disk=[[d] for d in range(6)],
        disks=ek.Disks([0, 0, 1, 1, 2, 2], [4.0] * 6, names=names),
    )  # fmt: skip


def test_disks_are_emptied_and_fail_by_name_pattern_and_number():
    c = with_folders()
    changed = c.apply(ek.Changes(empty_disks="*:/d1", fail_disks=[0, "n2:/d2"], down="n1"))
    assert changed.disks.state.tolist() == [2, 0, 1, 0, 1, 2]
    assert changed.nodes.capacity[:, 0].tolist() == [4.0, 4.0, 0.0]
    assert changed.nodes.alive.tolist() == [True, False, True]
    assert c.empty_disks("n0:/d1", "n1:/*").disks.state.tolist() == [1, 0, 1, 1, 0, 0]
    assert changed.empty_disks("*").disks.state.tolist() == [2, 1, 1, 1, 1, 2]
    odd = cluster(1, 2, [], [], None).replace(disks=ek.Disks([0, 0], names=["[a]", "a"]))
    assert odd.fail_disks("[a]").disks.state.tolist() == [2, 2]


def test_changes_of_disks_name_every_problem():
    wrong = ek.Changes(empty_disks=["n0:/d1", "n9:*"], fail_disks=[6, -1, True], down="n7")
    with pytest.raises(ek.InvalidInput) as caught:
        with_folders().apply(wrong)
    assert [one.path for one in caught.value.faults] == [
        "down[0]", "empty_disks[1]", "fail_disks[0]", "fail_disks[1]", "fail_disks[2]",
    ]  # fmt: skip
    with pytest.raises(ek.InvalidInput, match="the nodes have no disks"):
        with_folders().replace(disks=None, disk=None).fail_disks("n0:/d1")


@pytest.mark.parametrize("after", [{"fail_disks": "n0:/*"}, {"empty_disks": ["*:/d1"]}])
def test_sessions_and_sweeps_change_disks(after):
    c, goals = with_folders(), ek.Goals(level=None)
    session = ek.Session(c)
    session.solve(goals=goals)
    session.apply(ek.Changes(**after))
    ours, fresh = session.solve(goals=goals), ek.solve(c.apply(ek.Changes(**after)), goals=goals)
    assert ours.placement.node.tolist() == fresh.placement.node.tolist()
    assert ours.placement.disk.tolist() == fresh.placement.disk.tolist()
    usable = session.cluster.disks.usable
    assert usable[ours.placement.disk].all() and not ours.disks.broken
    swept = ek.sweep(c, [ek.Changes(**after)], goals=goals).result(0)
    assert swept.placement.disk.tolist() == fresh.placement.disk.tolist()
    session.apply(ek.Changes(down="n2"))
    lost, anew = session.solve(goals=goals), ek.solve(session.cluster, goals=goals)
    assert lost.placement.disk.tolist() == anew.placement.disk.tolist()
    assert (lost.status, lost.disks.broken) == (anew.status, anew.disks.broken)


@pytest.mark.parametrize("gone", [0, 1, 3])
def test_a_plan_goes_on_where_a_node_that_died_lists_its_disks_no_more(gone):
    """As Kafka's log dirs do: disks have other numbers then, and the same names."""
    disks = ek.Disks([0, 0, 1, 1, 2, 2, 3, 3])
    cluster = ek.Cluster.from_arrays(
        capacity=[[100.0]] * 4, load=[[1.0]] * 24, dimensions=["disk"], bytes="disk",
        placement=[[0, 1]] * 24, disks=disks, disk=[[0, 2]] * 24,
    )  # fmt: skip
    plan = ek.solve(cluster, goals=ek.Goals(level=0.0, disks=0.0)).plan(
        throttle=ek.Throttle(node_in=2)
    )
    left = np.flatnonzero(disks.node != gone)
    number = np.full(len(disks) + 1, -1)
    number[left] = np.arange(len(left))
    fewer = ek.Disks(disks.node[left], names=[disks.names[d] for d in left])
    seen = ek.Cluster.from_arrays(
        capacity=[[100.0]] * 4, load=[[1.0]] * 24, dimensions=["disk"], bytes="disk",
        placement=[[0, 1]] * 24, alive=[n != gone for n in range(4)], disks=fewer,
        disk=[number[[0, 2]]] * 24,
    )  # fmt: skip
    assert not plan.progress(seen).finished
    rest = plan.resume(seen)
    assert rest.check().ok
    end, there = rest.end, rest.end.disk >= 0
    assert [*rest.cluster.disks.names] == [*disks.names]
    assert (disks.node[end.disk[there]] == end.node[there]).all()
    assert rest.copies > 0 and (end.node != gone)[end.node != cluster.placement.node].all()
