"""Targets on nodes that are down: the rest is planned, and what cannot be is said."""

import numpy as np
import pytest

import evenkeel as ek
from tests.support.effort import mostly_long

RACKS = {"rack": [*"abcabc"]}


def on_three(**rules: dict[str, int]) -> ek.Cluster:
    """Six nodes in three racks, everything on the first three."""
    return ek.Cluster.from_arrays(
        capacity=[[9.0]] * 6, load=[[1.0]] * 2, placement=[[0, 1, 2]] * 2, domains=RACKS,
        **rules,
    )  # fmt: skip


def to(cluster: ek.Cluster, *rows: list[int]) -> ek.Placement:
    return cluster.placement.replaced(
        np.array(rows, np.int32).ravel(), cluster.placement.leader.copy()
    )


@pytest.mark.parametrize("protocol", ["plain", "kafka", "ceph"])
def test_what_goes_elsewhere_is_moved_and_the_rest_once_the_node_is_back(protocol: str):
    cluster = on_three(spread={"rack": 1})
    target = to(cluster, [3, 4, 5], [0, 4, 5])
    down = cluster.down(["n5"])
    part = ek.plan(down, target, protocol=protocol)
    assert part.check().ok
    assert [(one.source, one.target, one.lacks) for one in part.blocked] == [
        ("n2", "n5", "way to n5, which is down")
    ] * 2
    assert part.end.node.tolist() == [3, 4, 2, 0, 4, 2]
    whole = part.resume(cluster.with_placement(part.end))
    assert whole.complete
    assert whole.end.node.tolist() == target.node.tolist()


def test_what_would_list_who_is_down_waits_and_is_told():
    """Kafka refuses a list that names a broker that is down, and would take a shorter for whole."""
    cluster = on_three(replicas=3).down(["n2"])
    part = ek.plan(cluster, to(cluster, [3, 1, 2], [0, 4, 5]), protocol="kafka")
    assert [(one.partition, one.source, one.target, one.lacks) for one in part.blocked] == [
        ("p0", "n0", "n3", "replica list without a dead node")
    ]
    assert part.end.node.tolist() == [0, 1, 2, 0, 4, 5]
    assert not part.complete
    assert ek.plan(cluster, to(cluster, [3, 1, 2], [0, 4, 5])).complete


@pytest.mark.parametrize("dead", [0, 2])
def test_a_hand_over_that_no_list_can_say_is_told(dead: int):
    """Who leads comes first in Kafka's list, which may not name who is down."""
    cluster = on_three(replicas=3).down([f"n{dead}"])
    target = cluster.placement.replaced(cluster.placement.node, np.array([1, 0], np.int16))
    plan = ek.plan(cluster, target, protocol="kafka")
    assert [str(one) for one in plan.blocked] == [
        "p0[1] lead on n1: no replica list without a dead node"
    ]
    assert plan.target.leader.tolist() == [1, 0]
    assert len(plan) == 0
    assert plan.check().ok
    assert ek.plan(cluster, target).complete
    nobody = cluster.placement.replaced(cluster.placement.node, np.array([-1, 0], np.int16))
    assert ek.plan(cluster, nobody, protocol="kafka").complete


def test_what_would_break_a_rule_alone_waits_with_what_cannot_go():
    """Slot 0 goes to the rack that slot 2 leaves for one whose node is down."""
    cluster = on_three(spread={"rack": 1})
    part = ek.plan(cluster.down(["n3"]), to(cluster, [5, 1, 3], [0, 1, 2]))
    assert part.end.node.tolist() == cluster.placement.node.tolist()
    assert len(part.blocked) == 2


@pytest.mark.parametrize("seed", mostly_long(range(40), range(10)))
def test_no_plan_is_unsafe_or_copies_to_who_is_down(seed: int):
    rng = np.random.default_rng(seed)
    nodes, partitions = int(rng.integers(4, 9)), int(rng.integers(1, 12))
    replicas = int(rng.integers(1, min(nodes - 1, 4)))

    def rows() -> np.ndarray:
        return np.array([rng.choice(nodes, replicas, replace=False) for _ in range(partitions)])

    spread = {"rack": int(rng.integers(1, 3))} if rng.random() < 0.7 else {}
    cluster = ek.Cluster.from_arrays(
        capacity=np.full((nodes, 1), rng.uniform(2.2, 5.0) * partitions * replicas / nodes),
        load=rng.uniform(0.5, 2.0, (partitions, 1)), placement=rows(), spread=spread,
        domains={"rack": [str(one) for one in rng.integers(0, 4, nodes)]},
    )  # fmt: skip
    leader = rng.integers(0, replicas, partitions).astype(np.int16)
    target = cluster.placement.replaced(rows().ravel().astype(np.int32), leader)
    if rng.random() < 0.5:
        target = ek.solve(cluster, goals=ek.Goals(level=0.05)).placement
    name = cluster.nodes.names[int(rng.integers(nodes))]
    down = cluster.down([name])
    for protocol in ("plain", "kafka", "cockroach"):
        plan = ek.plan(down, target, protocol=protocol)
        assert plan.check().ok
        assert not any(row.kind == "copy" and row.target == name for row in plan.rows())


def test_the_way_back_from_a_repair_brings_back_what_can_be_and_names_the_rest():
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 6, load=[[1.0]] * 12, placement=[[0, 1]] * 12
    ).down("n1")
    plan = ek.solve(cluster, goals=ek.Goals(level=0.05)).plan(protocol="kafka")
    back = plan.undo()
    assert back.check().ok
    assert {one.lacks for one in back.blocked} == {"way to n1, which is down"}
    led_by_the_dead = cluster.placement.node == 1
    assert np.array_equal(back.end.node[~led_by_the_dead], cluster.placement.node[~led_by_the_dead])


def orphaned(*full: int) -> ek.Cluster:
    """A partition led by a dead node, n0; of the nodes that it has besides some are full."""
    others = [[node, -1, -1] for node in full]
    return ek.Cluster.from_arrays(
        dimensions=("cpu",), capacity=[[10.0]] * 4, load=[[1.0]] + [[9.0]] * len(full),
        leader_load=[[4.0]] + [[9.0]] * len(full), placement=[[0, 1, 2], *others],
        replicas=[3] + [1] * len(full),
    ).down("n0")  # fmt: skip


@pytest.mark.parametrize("protocol", ["plain", "kafka", "cockroach", "ceph", "helix"])
def test_who_has_room_leads_until_the_heir_is_there(protocol: str):
    cluster = orphaned(1)
    node = cluster.placement.node.copy()
    node[0] = 3
    target = cluster.placement.replaced(node, cluster.placement.leader)
    plan = ek.plan(cluster, target, protocol=protocol)
    assert plan.complete
    assert plan.check().ok
    assert [row.target for row in plan.rows() if row.kind == "lead"] == ["n2", "n3"]


def test_who_has_room_goes_on_leading_where_no_goal_needs_another():
    result = ek.solve(orphaned(1), goals=ek.Goals(level=None))
    assert result.placement.leader_node[0] == 2


@pytest.mark.parametrize("protocol", ["plain", "kafka", "cockroach", "ceph", "helix"])
def test_where_nobody_has_room_to_lead_what_was_lost_is_copied_all_the_same(protocol: str):
    cluster = orphaned(1, 2)
    plan = ek.plan(cluster, ek.solve(cluster, goals=ek.Goals(level=None)), protocol=protocol)
    assert plan.complete
    assert plan.check().ok


def test_many_orphans_share_the_room_that_there_is():
    """Each of the survivors has room to lead a few of the partitions that the dead node led."""
    cluster = ek.Cluster.from_arrays(
        dimensions=("cpu",), capacity=[[40.0]] * 2 + [[20.0]] * 3, load=[[1.0]] * 9,
        leader_load=[[4.0]] * 9, placement=[[0, 2, 3]] * 5 + [[0, 2, 4]] * 4, replicas=3,
    ).down("n0")  # fmt: skip
    next_leader = cluster.placement.nodes.copy()
    next_leader[:, 0] = 1
    target = cluster.placement.replaced(next_leader.ravel(), cluster.placement.leader.copy())
    plan = ek.plan(cluster, target, protocol="kafka")
    assert plan.complete
    assert plan.check().ok


RULES = [
    {"spread": {"zone": 1}}, {"skew": {"zone": 1}}, {"max_domains": {"zone": 3}},
    {"min_domains": {"zone": 2}}, {"place": {"zone=z1": 1}}, {"min_domains": {"zone": 3}},
]  # fmt: skip


@pytest.mark.parametrize("protocol", ["plain", "kafka", "cockroach", "ceph", "helix", "longhorn"])
@pytest.mark.parametrize("of", ["rule", "group_rule"])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_what_is_lost_keeps_no_rule_and_breaks_none(rule, of, protocol):
    """n1 of zone z1 is down, and what it has stays or is copied anew; n0's goes to z1 beside it."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 6, load=[[1.0]], placement=[[0, 1, 2]], leader=[2],
        domains={"zone": ["z0", "z1", "z2", "z1", "z0", "z2"]}, rules=[ek.Rule(**rule)],
        alive=[True, False, True, True, True, True], replicas=3, **{of: [0]},
    )  # fmt: skip
    start = cluster.placement.node.tolist()
    for node in ([3, 1, 2], [3, 4, 2], [0, 3, 2], [3, 1, 5]):
        plan = ek.plan(cluster, to(cluster, node), protocol=protocol)
        assert plan.check().ok
        if protocol == "kafka" and 1 in node:
            assert plan.end.node.tolist() == start
        else:
            assert plan.complete, [str(one) for one in plan.blocked]
            assert sorted(plan.end.node.tolist()) == sorted(node)


SHRINKS = ["plain", "kafka", "cockroach", "helix", "longhorn"]


def given_up(**given: object) -> ek.Cluster:
    """A partition of four replicas of which n3 has lost one."""
    return ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]], placement=[[0, 1, 2, 3]], replicas=4,
        alive=[True, True, True, False], **given,
    )  # fmt: skip


@pytest.mark.parametrize("protocol", SHRINKS)
@pytest.mark.parametrize("leader", [0, 3])
def test_what_a_target_gives_up_on_a_dead_node_is_taken_off(protocol: str, leader: int):
    cluster = given_up(leader=[leader])
    target = cluster.placement.replaced(np.array([0, 1, 2, -1], np.int32), np.array([0], np.int16))
    plan = ek.plan(cluster, target, protocol=protocol)
    found = plan.check()
    assert (found.ok, found.end, plan.complete) == (True, "target", True)
    assert [(row.kind, row.source) for row in plan.rows() if row.kind != "lead"] == [
        ("demote", "n3"), ("remove", "n3")
    ]  # fmt: skip
    assert [one.lacks for one in plan.undo().blocked] == ["way to n3, which is down"]
    back = plan.resume(cluster.replace(alive=[True] * 4))
    assert back.complete
    assert back.end.node.tolist() == [0, 1, 2, -1]


def test_what_no_step_takes_off_stays_listed_and_is_told():
    """A pool of Ceph says how many replicas a group has; the last live one is never given up."""
    cluster = given_up()
    for node, protocol in (([0, 1, 2, -1], "ceph"), ([-1, -1, -1, -1], "plain")):
        target = cluster.placement.replaced(np.array(node, np.int32), np.array([0], np.int16))
        plan = ek.plan(cluster, target, protocol=protocol)
        assert plan.check().ok
        assert plan.end.node[3] == 3
        assert [one.slot for one in plan.blocked if "n3 stays listed" in one.lacks] == [3]


@pytest.mark.parametrize("protocol", [*SHRINKS, "ceph"])
def test_what_finds_no_node_is_not_given_up(protocol: str):
    """A method that has no node for a lost replica does not ask for a shorter list."""
    cluster = given_up(keeps=[True, True, True, False])
    answer = ek.solve(cluster, method="helix_auto")
    assert -1 in answer.placement.node
    plan = answer.plan(protocol=protocol)
    assert (len(plan), plan.check().ok, plan.complete) == (0, True, False)
    assert [(one.slot, one.source, one.target) for one in plan.blocked] == [(3, "n3", None)]
    # who comes back is a member as before
    assert plan.resume(cluster.replace(alive=[True] * 4)).end.node.tolist() == [0, 1, 2, 3]
