"""A floor asks no more of a node than can be met, and no fewer moves than are needed."""

import itertools

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.bounds import bounds, goals_met
from evenkeel.measure.levelness import levelness
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Goals
from tests.judge.case import build
from tests.judge.clusters import draw


def tiny(seed):
    """A few partitions on at most four nodes, some of which are new, closed or small."""
    random = np.random.default_rng(seed)
    n, r = int(random.integers(2, 5)), int(random.integers(1, 3))
    p = int(random.integers(2, 6 if r == 1 else 4))
    given = {
        "capacity": random.choice([6.0, 12.0, 20.0], (n, 1)),
        "load": random.integers(1, 1 + random.choice([1, 4]), (p, 1)).astype(float),
        "placement": np.array([random.permutation(n)[:r] for _ in range(p)]),
        "accepts": random.random(n) < 0.85,
        "tags": {"ssd": random.random(n) < 0.7},
    }
    if seed % 3 == 0:
        given["leader_load"] = given["load"] + random.integers(0, 3, (p, 1))
    if seed % 4 == 0:
        given["max_replicas"] = random.integers(-1, 3, n)
    if seed % 5 == 0:
        given |= {"rules": [ek.Rule(require=["+ssd"])], "rule": random.integers(-1, 1, p)}
    if seed % 7 == 0:
        given["forbidden"] = np.argwhere(random.random((p, n)) < 0.2).reshape(-1, 2)
    return Cluster.from_arrays(**given)


def every_load(cluster):
    """Loads of the nodes and moves of every placement of single-dimension clusters, rules kept."""
    parts, nodes = cluster.partitions, cluster.nodes
    ways = []
    for p in range(len(parts)):
        rule = cluster.rules[parts.rule[p]] if parts.rule[p] >= 0 else None
        row = cluster.placement.node[cluster.placement.first[p] : cluster.placement.first[p + 1]]
        stood = set(row.tolist())
        banned = {int(n) for q, n in cluster.forbidden if q == p}
        able = [
            n
            for n in range(len(nodes))
            if (n in stood or nodes.may_receive[n])
            and n not in banned
            and (rule is None or nodes.tags["ssd"][n])
        ]
        ways.append(list(itertools.permutations(able, int(parts.replicas[p]))))
    for rows in itertools.product(*ways):
        load, count, moves = np.zeros(len(nodes)), np.zeros(len(nodes), int), 0
        for p, row in enumerate(rows):
            start, end = cluster.placement.first[p], cluster.placement.first[p + 1]
            moves += len(set(row) - set(cluster.placement.node[start:end].tolist()))
            for slot, n in enumerate(row):
                load[n] += (parts.load.voter if slot else parts.load.leader)[p, 0]
                count[n] += 1
        if (load > nodes.capacity[:, 0] * (1 + 1e-9)).any():
            continue
        if ((nodes.max_replicas >= 0) & (count > nodes.max_replicas)).any():
            continue
        yield load, moves


@pytest.mark.parametrize("start", [0, 40, 80])
def test_no_placement_meets_a_floor_with_fewer_moves(start):
    bound = 0
    for seed in range(start, start + 40):
        cluster = tiny(seed)
        found = bounds(cluster, Goals(level=None, floor=(0.0, 0.2, 0.5)[seed % 3]))
        assert (found.floor >= 0.0).all()
        assert (found.floor[~cluster.nodes.may_receive] == 0.0).all()
        assert (found.floor <= found.target).all()
        moves = [
            moves
            for load, moves in every_load(cluster)
            if (load >= found.floor[:, 0] * (1 - 1e-9)).all()
        ]
        bound += int(found.arrivals.sum()) > 0
        if moves:
            assert found.moves_level <= min(moves), seed
    assert bound > 5


def test_counts_are_rounded_down_and_always_reached():
    """Where all replicas weigh the same, rounding down leaves room for a floor of 0."""
    for seed in range(40):
        random = np.random.default_rng(seed)
        n, p = int(random.integers(1, 5)), int(random.integers(0, 6))
        cluster = Cluster.from_arrays(
            capacity=np.full((n, 1), 10.0), load=np.ones((p, 1)),
            placement=random.integers(0, n, (p, 1)),
        )  # fmt: skip
        found = bounds(cluster, Goals(level=0.0, floor=0.0))
        assert found.floor[:, 0].tolist() == [p // n] * n
        assert any(
            (load >= found.floor[:, 0]).all() and (load <= found.target[:, 0]).all()
            for load, _ in every_load(cluster)
        )


def test_an_empty_node_misses_its_floor():
    cluster = Cluster.from_arrays(
        capacity=[[10.0]] * 3, load=[[1.0]] * 12, placement=[[0]] * 6 + [[1]] * 6
    )
    goals = Goals(level=1.0, floor=0.25)
    found = bounds(cluster, goals)
    assert found.floor.tolist() == [[3.0]] * 3
    assert found.arrivals.tolist() == [0, 0, 3]
    assert (found.moves_level, found.moves_term) == (3, "nodes below their floor")
    assert not goals_met(levelness(cluster, cluster.placement), found)
    assert goals_met(levelness(cluster, cluster.placement), bounds(cluster, Goals(level=1.0)))


def test_a_node_that_no_rule_opens_has_no_floor():
    cluster = Cluster.from_arrays(
        capacity=[[10.0]] * 3, load=[[1.0]] * 6, placement=[[0], [1]] * 3,
        tags={"ssd": [True, True, False]}, rules=[ek.Rule(require=["+ssd"])], rule=[0] * 6,
    )  # fmt: skip
    assert bounds(cluster, Goals(floor=0.0)).floor.tolist() == [[2.0], [2.0], [0.0]]


def test_floors_beside_what_only_keeps_are_counted_from_the_mean_of_all():
    cluster = Cluster.from_arrays(
        capacity=[[10.0]] * 3, load=[[1.0]] * 8, placement=[[0]] * 6 + [[1], [2]],
        accepts=[False, True, True],
    )  # fmt: skip
    assert bounds(cluster, Goals(floor=0.0)).floor.tolist() == [[0.0], [2.0], [2.0]]
    result = ek.solve(cluster, goals=Goals(floor=0.0))
    assert result.success and result.levelness.loads[:, 0].max() == 3.0


def test_what_must_leave_a_node_that_only_keeps_counts_for_the_floor_of_others():
    """Else the floor would rise as soon as it has left, and with it who is below."""
    cluster = Cluster.from_arrays(
        capacity=[[60.0]] * 3, load=[[1.0]] * 24, leader_load=[[2.0]] * 24,
        placement=[[0, 1]] * 12 + [[0, 2]] * 12, accepts=[False, True, True],
    )  # fmt: skip
    goals = Goals(level=0.0, floor=0.0)
    found = bounds(cluster, goals)
    most = found.target[0, 0]
    assert most < 48.0  # what it would hold if all its replicas led
    assert found.floor[:, 0].tolist() == pytest.approx([0.0, *[(72.0 - most) / 2] * 2])


@pytest.mark.parametrize("seed", range(45, 53))
def test_a_floor_beside_a_cordoned_node_is_the_same_once_it_is_met(seed):
    rng = np.random.default_rng(seed)
    placement = [rng.choice(15, 3, replace=False).tolist() for _ in range(126)]
    cluster = Cluster.from_arrays(
        capacity=np.full((21, 1), 48.0), load=np.ones((126, 1)), leader_load=np.full((126, 1), 2.0),
        placement=placement,
    ).cordon("n6")  # fmt: skip
    goals = Goals(level=0.05, floor=0.3)
    result = ek.solve(cluster, goals=goals)
    assert result.success
    again = ek.solve(cluster.with_placement(result.placement), goals=goals)
    assert again.bounds.floor.tolist() == result.bounds.floor.tolist()
    assert again.comparison.moves == 0


@pytest.mark.parametrize("spread", [None, 1])
def test_a_floor_beside_excluded_nodes_is_counted_from_the_mean_of_all_that_hold_any(spread):
    given = {"domains": {"zone": [*"aab"]}, "spread": {"zone": spread}} if spread else {}
    cluster = Cluster.from_arrays(
        capacity=[[30.0], [30.0], [120.0]], load=[[1.0]] * 30, placement=[[0, 1]] * 30,
        accepts=[False, False, True], **given,
    )  # fmt: skip
    goals = Goals(level=None, floor=0.3)
    assert bounds(cluster, goals).floor[:, 0].tolist() == [0.0, 0.0, 28.0]
    result = ek.solve(cluster, goals=goals)
    assert result.success and result.levelness.loads[2, 0] >= 28.0
    assert "the mean of 33.33% less 30.00%" in str(result)
    again = ek.solve(cluster.with_placement(result.placement), goals=goals)
    assert again.comparison.moves == 0


@pytest.mark.parametrize("seed", [0, 5, 12, 35, 63, 87])
def test_a_floor_beside_excluded_nodes_is_met_for_good(seed):
    cluster, goals, _ = build(draw("exclusions", seed))
    result = ek.solve(cluster, goals=goals)
    assert result.goals_reached
    again = ek.solve(cluster.with_placement(result.placement), goals=goals)
    assert again.comparison.moves == 0
    assert again.bounds.floor.tolist() == result.bounds.floor.tolist()
