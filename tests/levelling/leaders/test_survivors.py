"""What has lost its leader is led by who could at once; a new copy leads only where goals need it.

Somebody has to lead while a copy is made: if that is to lead then, leadership is handed on twice.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.methods.shared.compile import ready
from evenkeel.systems import registry
from evenkeel_kernels.levelling.leaders.moves import lead_by_survivors
from evenkeel_kernels.levelling.penalty import new_targets
from tests.core.test_state import assert_books_are_right
from tests.naive.levelling.leaders import survivors as naive
from tests.support.random_problems import random_problem

NO_LEVEL = ek.Goals(level=None)


def late(cluster: ek.Cluster, placement: ek.Placement) -> int:
    """Partitions that lost their leader and are led by a new copy, though one could at once."""
    before, alive = cluster.placement, np.append(cluster.nodes.alive, False)
    able, count = alive & np.append(cluster.nodes.may_lead, False), 0
    for p, now in enumerate(placement.leader_node.tolist()):
        row = before.node[before.first[p] : before.first[p + 1]].tolist()
        lost = not alive[before.leader_node[p]]
        count += lost and now not in row and any(able[n] for n in row)
    return count


def scattered(nodes: int, partitions: int, replicas: int, heavier: float) -> ek.Cluster:
    """A random cluster with room, of which node 0 is lost."""
    rng = np.random.default_rng(partitions)
    load = rng.lognormal(0.0, 0.5, (partitions, 1))
    rows = np.argsort(rng.random((partitions, nodes)), axis=1)[:, :replicas]
    room = load.sum() * (replicas - 1 + heavier) / nodes * 1.7
    return ek.Cluster.from_arrays(
        capacity=np.full((nodes, 1), room), load=load, leader_load=load * heavier, placement=rows
    ).down("n0")


@pytest.mark.parametrize("method", ["balance", "exact"])
def test_survivors_share_what_a_lost_node_led_and_each_lead_is_handed_on_once(method: str) -> None:
    count = 90 if method == "balance" else 12
    cluster = ek.Cluster.from_arrays(
        capacity=[[100.0]] * 12, load=[[1.0]] * count, placement=[[0, 1, 2]] * count
    ).down("n0")
    result = ek.solve(cluster, method, goals=NO_LEVEL)
    assert result.levelness.leaders[:3].tolist() == [0, count // 2, count // 2]
    assert sum(step.kind == "lead" for step in result.plan().rows()) == count


@pytest.mark.parametrize("heavier", [1.0, 2.0])
@pytest.mark.parametrize("goals", [NO_LEVEL, ek.Goals(level=0.1)])
@pytest.mark.parametrize(("nodes", "partitions"), [(6, 20), (8, 30), (30, 600), (100, 5000)])
def test_no_new_copy_leads_where_nobody_asks_for_level_leaders(
    nodes: int, partitions: int, goals: ek.Goals, heavier: float
) -> None:
    cluster = scattered(nodes, partitions, 3, heavier)
    result = ek.solve(cluster, goals=goals)
    assert result.success and result.goals_reached
    assert late(cluster, result.placement) == 0


@pytest.mark.parametrize("method", ["balance", "exact"])
def test_a_new_copy_leads_where_the_goal_needs_it(method: str) -> None:
    """Of four survivors' leads no more than two are within the goal on each; two have to go."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 6, placement=[[0, 1, 2]] * 6
    ).down("n0")
    result = ek.solve(cluster, method, goals=ek.Goals(level=None, leaders=0.0))
    assert result.goals_reached
    assert result.levelness.leaders.tolist() == [0, 2, 2, 2]
    assert late(cluster, result.placement) == 2


@pytest.mark.parametrize("method", ["balance", "exact", "leaders"])
def test_who_is_in_sync_takes_over_from_a_lost_leader(method: str) -> None:
    """Two of each partition live, one of them lags behind and could not lead at once."""
    flags = np.zeros((6, 3), np.uint16)
    flags[:, 0] = flags[np.arange(6), [1, 2, 1, 2, 1, 1]] = ek.Flag.CAUGHT_UP
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 5, load=[[1.0]] * 6, placement=[[0, 1, 2]] * 6, flags=flags
    ).down("n0")
    assert ready(cluster).reshape(6, 3).sum(axis=1).tolist() == [1] * 6
    result = ek.solve(cluster, method, goals=None if method == "leaders" else NO_LEVEL)
    assert result.placement.leader_node.tolist() == [1, 2, 1, 2, 1, 1]


@pytest.mark.parametrize("method", ["balance", "exact"])
def test_who_stays_takes_over_from_a_node_that_may_no_longer_lead(method: str) -> None:
    """A replica has to move to another zone, and the node of the leader keeps its replicas."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 6, load=[[1.0]] * 2, placement=[[0, 3, 1], [0, 1, 3]],
        domains={"zone": [*"abcabc"]}, spread={"zone": 1}, leads=[False] + [True] * 5,
    )  # fmt: skip
    result = ek.solve(cluster, method, goals=NO_LEVEL)
    assert result.comparison.moves == 2
    was = cluster.placement.nodes
    assert all(n in row for n, row in zip(result.placement.leader_node, was, strict=True))


def test_a_kafka_partition_whose_leader_is_lost_is_led_by_who_is_in_sync() -> None:
    lines = [
        f"Topic: t\tPartition: {p}\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,{2 + p % 2}"
        for p in range(8)
    ]
    head = "Topic: t\tPartitionCount: 8\tReplicationFactor: 3\tConfigs: "
    more = "Topic: u\tPartition: 0\tLeader: 4\tReplicas: 4,2,3\tIsr: 4,2,3"
    text = "\n".join([head, *(f"\t{line}" for line in [*lines, more]), ""])
    cluster = registry.read([text.encode()], format="kafka", offline=[1])
    result = ek.solve(cluster)
    names = [result.cluster.nodes.names[n] for n in result.placement.leader_node]
    assert names == ["2", "3"] * 4 + ["4"]


@pytest.mark.small
@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 2.0, np.inf]))
def test_leads_go_to_survivors_as_in_plain_python(seed: int, most: float) -> None:
    _, problem, state = random_problem(seed)
    rng = np.random.default_rng(seed)
    orphans = rng.random(len(state.leader)) < 0.7
    led_from = np.where(orphans, -1, problem.partitions.led_from).astype(np.int32)
    partitions = problem.partitions._replace(
        led_from=led_from, ready=rng.random(len(state.node)) < 0.7
    )
    problem = problem._replace(partitions=partitions)
    targets = new_targets(problem, np.full(len(state.replicas), most), 0.9)
    floor = np.where(rng.random(state.load.shape) < 0.3, rng.uniform(0.0, 4.0), 0.0)
    expected = naive.lead_by_survivors(problem, state, targets, floor)
    before = state.leader.copy()
    changed = lead_by_survivors(problem, state, targets, floor)
    assert state.leader.tolist() == expected
    assert (changed > 0) == bool((state.leader != before).any())
    assert_books_are_right(problem, state)


@pytest.mark.parametrize("seed", [0, 5, 9, 11, 18, 21])
def test_no_node_falls_below_its_floor_for_a_survivor(seed: int) -> None:
    """Leaders weigh three times as much: who hands on may lack what it held as a leader."""
    rng = np.random.default_rng(seed)
    nodes, partitions = int(rng.integers(10, 30)), int(rng.integers(100, 400))
    old = nodes - nodes // 5
    rows = np.array([rng.permutation(old)[:2] for _ in range(partitions)])
    load = np.tile([1.0, 3.0], (partitions, 1))
    lead = load * [3.0, 1.0]
    room = np.ceil((load + lead).sum(axis=0) / nodes / 0.5)
    cluster = ek.Cluster.from_arrays(
        capacity=np.tile(room, (nodes, 1)), load=load, leader_load=lead, placement=rows,
        leader=rng.integers(0, 2, partitions),
    ).down(int(rng.integers(old)))  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=0.1, leaders=0.2, floor=0.2))
    assert result.goals_reached, result.message


@pytest.mark.parametrize("method", ["balance", "exact", "leaders"])
def test_the_last_partition_may_have_no_replica_beside_lagging_ones(method: str) -> None:
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 3, placement=[0, 1, 0, 1], first=[0, 2, 4, 4],
        replicas=[2, 2, 0], flags=[ek.Flag.CAUGHT_UP, 0, ek.Flag.CAUGHT_UP, 0],
    )  # fmt: skip
    result = ek.solve(cluster, method, goals=ek.Goals(level=None, leaders=0.0))
    assert result.placement.leader.tolist() == [0, 0, -1]


@pytest.mark.parametrize("method", ["balance", "exact", "leaders"])
def test_a_leader_that_alone_is_in_sync_leads_on(method: str) -> None:
    """Its node is to lead nothing, but the system elects no other."""
    given = {"capacity": [[9.0]] * 3, "load": [[1.0]], "placement": [[0, 1, 2]]}
    cluster = ek.Cluster.from_arrays(
        **given, leads=[False, True, True], flags=[[ek.Flag.CAUGHT_UP, 0, 0]]
    )
    result = ek.solve(cluster, method, goals=None if method == "leaders" else NO_LEVEL)
    assert result.placement.leader_node.tolist() == [0]
    assert result.status != "optimal"
