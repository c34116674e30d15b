"""What is blocked has no way out: other orders, other slots, and nodes that come free are tried."""

import numpy as np
import pytest

import evenkeel as ek

PROTOCOLS = ("plain", "kafka", "cockroach", "ceph", "helix", "longhorn")


def to(cluster, node, leader=None, **given):
    """The plan to nodes, by slot; the leaders stay where they are by default."""
    leader = cluster.placement.leader if leader is None else np.array(leader, np.int16)
    target = cluster.placement.replaced(np.array(node, np.int32), leader)
    return ek.plan(cluster, target, **given)


def arrives(plan):
    """Whether a plan is complete and safe."""
    found = plan.check()
    assert found.ok, str(found)
    return plan.complete


def empty(nodes, placement, **given):
    """One partition of one byte, and more room than it needs."""
    return ek.Cluster.from_arrays(
        capacity=[[9.0]] * nodes, load=[[1.0]], placement=[placement], leader=[0], **given
    )


@pytest.mark.parametrize("protocol", ["helix", "longhorn"])
@pytest.mark.parametrize("leader", [0, 1])
def test_the_same_nodes_in_other_slots_are_the_same_target(protocol, leader):
    """Both replicas on n3's host, or both on n4's, would not survive its loss."""
    cluster = empty(5, [0, 1], domains={"zone": ["z0", "z1", "z2", "z0", "z1"]})
    for node in ([4, 3], [3, 4]):
        plan = to(cluster, node, [leader], protocol=protocol)
        assert arrives(plan)
        assert plan.end.leader_node[0] == node[leader]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_who_goes_where_does_not_block_a_chain_of_zones(protocol):
    cluster = empty(
        7, [5, 4, 3], domains={"zone": ["z0", "z1", "z2", "z3", "z0", "z1", "z2"]},
        rules=[ek.Rule(spread={"zone": 1}, place={"zone=z0": 1})],
    )  # fmt: skip
    for node in ([2, 0, 5], [0, 2, 5], [5, 0, 2], [5, 2, 0]):
        for leader in range(3):
            plan = to(cluster, node, [leader], protocol=protocol)
            assert arrives(plan), (node, leader)
            assert plan.copies == 2
            assert plan.end.leader_node[0] == node[leader]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_gone_on_with_was_not_blocked_before(protocol):
    """A skew over zones beside racks that cross them: not all renamings have an order."""
    cluster = empty(
        11, [5, 4, 2], rules=[ek.Rule(skew={"zone": 1})], min_active=3, crossing=["rack"],
        domains={"zone": ["z0", "z1"] * 5 + ["z0"], "rack": [f"r{i % 5}" for i in range(11)]},
    )  # fmt: skip
    assert arrives(to(cluster, [8, 7, 0], [0], protocol=protocol))


@pytest.mark.parametrize("protocol", ["plain", "kafka", "ceph", "cockroach"])
def test_a_replica_on_its_detour_is_not_where_it_was(protocol):
    """A voter takes the place of a non-voter, which waits elsewhere, and back again."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 11, load=[[1.0]], placement=[[0, 5, 1]], leader=[0], crossing=["rack"],
        role=[[0, 1, 1]], min_active=0,
        rules=[ek.Rule(place={"zone=z0": 1}, spread={"rack": 2, "node": 2})],
        domains={"zone": ["z0", "z1"] * 5 + ["z0"], "rack": [f"r{i % 5}" for i in range(11)]},
    )  # fmt: skip
    there = to(cluster, [1, 5, 0], protocol=protocol)
    assert arrives(there)
    back = there.undo()
    assert arrives(back)
    assert np.array_equal(back.end.node, cluster.placement.node)


def disks(capacity, load, placement):
    """Disks that are all but full, and hold what comes and what goes while it is copied."""
    return ek.Cluster.from_arrays(
        capacity=np.array(capacity)[:, None], load=np.array(load)[:, None], dimensions=["disk"],
        bytes="disk", transient=["disk"], placement=placement,
    )  # fmt: skip


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_leader_goes_first_where_others_wait_for_its_room(protocol):
    """p1 leaves n3 for n2, p0 n1 for n3, p1 n0 for n1: a leader usually goes last."""
    cluster = disks([4.0, 2.0, 2.0, 3.0, 2.0], [2.0, 2.0], [[1, 0], [3, 0]])
    plan = to(cluster, [3, 4, 2, 1], protocol=protocol)
    assert arrives(plan)
    assert plan.copies == 4


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_replica_waits_on_a_node_that_another_of_its_partition_has_left(protocol):
    """n1 has room for p2[0] once p2[1] has gone from there to n0; or they trade where they go."""
    cluster = disks([1.0, 3.0, 2.0, 1.0], [1.0] * 3, [[2, 1], [2, 1], [3, 1]])
    for role, copies in (([0, 0], 3), ([0, 1], 4)):
        plan = to(cluster.replace(role=[role] * 3), [3, 1, 2, 1, 2, 0], protocol=protocol)
        assert arrives(plan)
        assert plan.copies == copies


def test_a_detour_goes_by_another_node_where_the_emptiest_fills_up():
    """A voter and a non-voter trade nodes: n3 is empty, but p1 takes all of its room first.

    The others are more than a search over orders takes on.
    """
    others = 15
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0], [9.0], [9.0], [2.0], [9.0], [2.0], [99.0], [99.0]],
        load=[[1.0], [2.0], [1.0]] + [[1.0]] * others, dimensions=["disk"], bytes="disk",
        transient=["disk"], leader=[0] * (3 + others),
        placement=[[2, 0, 1], [5, -1, -1], [4, -1, -1]] + [[6, -1, -1]] * others,
        role=[[0, 0, 1]] * (3 + others),
    )  # fmt: skip
    target = [2, 1, 0, 3, -1, -1, 4, -1, -1] + [7, -1, -1] * others
    plan = to(cluster, target, protocol=ek.Protocol("own", whole=True, roles=False))
    assert arrives(plan)
    copies = [row for row in plan.rows() if (row.kind, row.partition) == ("copy", "p0")]
    assert copies[0].target == "n7"
    assert sorted(row.target for row in copies[1:]) == ["n0", "n1"]


def test_a_lead_for_a_node_that_died_holds_up_nothing_else():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 4, placement=[[0, 3], [0, 1], [0, 1], [1, 2]],
        leader=[0, 0, 0, 0],
    )  # fmt: skip
    node = np.array([0, 3, 2, 1, 2, 1, 1, 2], np.int32)
    whole = ek.plan(cluster, cluster.placement.replaced(node, np.array([1, 0, 0, 0], np.int32)))
    assert not whole.blocked
    rest = whole.resume(cluster.down("n3"))
    assert rest.check().ok
    assert [(one.partition, one.lacks) for one in rest.blocked] == [
        ("p0", "way to n3, which is down")
    ]
    assert rest.copies == whole.copies == 2


def test_who_leads_next_may_lead_before_it_moves():
    """p1 leaves n4 to p0 first, then takes p0's place on n2; so its leader is the first to go."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[2.0]] * 2 + [[3.0]] * 4, load=[[2.0]] * 2, dimensions=["disk"], bytes="disk",
        transient=["disk"], domains={"zone": [f"z{n % 3}" for n in range(6)]}, spread={"zone": 1},
        placement=[[3, 2], [4, 5]], leader=[0, 0],
    )  # fmt: skip
    plan = to(cluster, [0, 4, 1, 2], [0, 1], protocol="longhorn")
    assert arrives(plan)
    assert plan.bytes == 8.0


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("room", [1.0, 0.5])
def test_more_circles_than_are_searched_share_the_spare_node_that_just_fits(protocol, room):
    """Ten pairs of full nodes trade what they hold, by way of one node with room for one."""
    pairs = 10
    cluster = disks(
        [1.0] * (2 * pairs) + [room], [1.0] * (2 * pairs), [[n] for n in range(2 * pairs)]
    )
    node = [n ^ 1 for n in range(2 * pairs)]
    plan = to(cluster, node, protocol=protocol)
    assert plan.check().ok
    if room < 1.0:
        assert (plan.copies, len(plan.blocked)) == (0, 2 * pairs)
    else:
        assert plan.complete
        assert plan.copies == 3 * pairs


@pytest.mark.parametrize("protocol", ["kafka", "ceph"])
def test_an_exchange_that_finds_no_room_is_split_only_where_each_step_keeps_the_rules(protocol):
    """n1 kept zone a; it left alone, since there was no room for the replica that keeps it next."""
    planned = 0
    for seed in range(400):
        rng = np.random.default_rng([seed, 49])
        nodes = int(rng.integers(5, 7))
        first, after = rng.permutation(nodes)[:2].tolist(), rng.permutation(nodes)[:2].tolist()
        cluster = ek.Cluster.from_arrays(
            capacity=[[10.0]] * (nodes + 1), load=[[4.0], [8.0]],
            placement=[first, [after[0], -1]], alive=[True] * nodes + [False], leader=[0, 0],
            domains={"zone": [*rng.permutation([*"aabbcc"])[:nodes], "d"]}, replicas=[2, 1],
            leads=[*(rng.random(nodes) < 0.7), True],
            rules=[ek.Rule(place={"zone=a": 1}), ek.Rule()], rule=[0, 1],
        )  # fmt: skip
        plan = to(cluster, [*after, nodes, -1], [int(rng.integers(2)), 0], protocol=protocol)
        assert plan.check().ok, seed
        planned += len(plan.steps) > 0
    assert planned > 40


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pinned_replica_that_should_move_is_named(protocol):
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]], placement=[[0, 1]], flags=[[ek.Flag.PINNED, 0]]
    )
    plan = to(cluster, [2, 3], protocol=protocol)
    assert {one.slot: one.lacks for one in plan.blocked} == {
        0: "move of a replica that is pinned",
        1: "turn: another change of the partition is blocked",
    }
