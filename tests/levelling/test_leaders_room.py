"""Leaders change within what domains share, and beside what has left its node but weighs there.

And where a partition has nobody else to lead it, its only voter moves; where nobody may lead it,
others make way on nodes that may.
"""

import numpy as np
import pytest

import evenkeel as ek


def two_zones(seed: int) -> ek.Cluster:
    """Leading weighs four times as much as following; a zone bears little more than it should."""
    rng = np.random.default_rng(seed)
    partitions = 8
    rows = [[*rng.permutation(2).tolist(), -1, -1] for _ in range(partitions)]
    load = np.round(rng.uniform(1.0, 3.0, (partitions, 1)), 3)
    total = float(load.sum()) * 7.0
    return ek.Cluster.from_arrays(
        capacity=[[total * 0.4]] * 4, load=load, leader_load=4.0 * load, placement=rows,
        replicas=4, domains={"zone": [*"abab"]},
        tier_capacity={"zone": [[total * float(rng.uniform(0.4, 0.6))]] * 2},
        rules=[ek.Rule(lead=["zone=b"])], rule=[0] * partitions,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_leaders_fill_no_zone_beyond_what_its_nodes_share(seed: int) -> None:
    result = ek.solve(two_zones(seed), goals=ek.Goals(level=0.3))
    assert not result.regressions
    assert not result.regressions
    assert result.comparison.moves > 0


def leading_weighs_more_or_less(seed: int) -> ek.Cluster:
    """Two nodes too full, half of all leaders lighter than those who follow."""
    rng = np.random.default_rng(seed)
    partitions, nodes = 24, 6
    load = np.full((partitions, 1), 3.0)
    rows = [rng.choice(4, 2, replace=False, p=[0.1, 0.1, 0.4, 0.4]) for _ in range(partitions)]
    lead = load * rng.choice([0.5, 1.0, 3.0], load.shape)
    return ek.Cluster.from_arrays(
        capacity=[[float((load + lead).sum()) / nodes * 1.15]] * nodes, load=load,
        leader_load=lead, dimensions=["disk"], transient=["disk"], placement=rows,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_who_has_left_while_another_leads_weighs_there_what_it_weighs_as_a_follower(
    seed: int,
) -> None:
    result = ek.solve(leading_weighs_more_or_less(seed), goals=ek.Goals(level=0.1))
    assert not result.regressions
    assert not result.regressions
    assert result.comparison.moves > 0


def crowded(seed: int, lone: float) -> ek.Cluster:
    """Leaders crowd on the first nodes; of so many partitions ``lone``, nobody else can lead."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(8, 60))
    partitions, dimensions = nodes * int(rng.integers(15, 60)), int(rng.integers(1, 4))
    load = rng.integers(1, 6, (partitions, dimensions)).astype(float)
    first = np.minimum((rng.random(partitions) ** 1.6 * nodes).astype(int), nodes - 1)
    further = rng.permuted(np.tile(np.arange(1, nodes), (partitions, 1)), axis=1)
    others = (first[:, None] + further[:, :2]) % nodes
    alone = rng.random(partitions) < lone
    wanted = np.where(alone, 1, 3)
    rows = np.where(alone[:, None] & [[False, True, True]], -1, np.column_stack([first, others]))
    room = np.ceil((load * wanted[:, None]).sum(axis=0) / 0.33 / nodes)
    return ek.Cluster.from_arrays(
        capacity=np.tile(room, (nodes, 1)), load=load, placement=rows, replicas=wanted,
        leader=np.zeros(partitions, int),
    )  # fmt: skip


@pytest.mark.parametrize("lone", [1.0, 0.6])
@pytest.mark.parametrize("seed", range(8))
def test_the_only_voter_of_a_partition_moves_where_its_node_leads_too_many(
    seed: int, lone: float
) -> None:
    cluster = crowded(seed, lone)
    goals = ek.Goals(
        level=0.1, leaders=[0.06, 0.09, 0.14][seed % 3]
    )  # a leader more than the share
    result = ek.solve(cluster, goals=goals)
    assert result.success, result.message
    assert result.goals_reached


def led_by_half(seed: int) -> ek.Cluster:
    """One half of all nodes may lead, and is full of followers; many leaders are on the other."""
    rng = np.random.default_rng(seed)
    nodes, partitions = int(rng.integers(12, 40)), int(rng.integers(300, 900))
    half, others = nodes // 2, nodes - nodes // 2
    load = rng.integers(1, 6, (partitions, 1)).astype(float)
    first, third = rng.integers(0, half, partitions), rng.integers(0, others, partitions)
    second = (first + 1 + rng.integers(0, half - 1, partitions)) % half
    fourth = (third + 1 + rng.integers(0, others - 1, partitions)) % others
    rows = np.column_stack([first, np.where(rng.random(partitions) < 0.25, second, half + third)])
    unled = rng.random(partitions) < 0.2
    rows[unled] = half + np.column_stack([third, fourth])[unled]
    room = float(load.sum()) / half / float(rng.uniform(0.8, 0.95))
    return ek.Cluster.from_arrays(
        capacity=[[room]] * nodes, load=load, placement=rows, replicas=2,
        leader=np.zeros(partitions, int), leads=np.arange(nodes) < half,
    )  # fmt: skip


@pytest.mark.parametrize("level", [None, 0.1])
@pytest.mark.parametrize("seed", range(1, 7))
def test_followers_make_way_on_nodes_that_may_lead(seed: int, level: float | None) -> None:
    cluster = led_by_half(seed)
    result = ek.solve(cluster, goals=ek.Goals(level=level))
    assert result.audit_before.counts["leader"] > 50
    assert result.audit.ok, result.message
    assert result.success


@pytest.mark.parametrize("seed", [8, 20, 25, 35, 38, 60, 61, 63])
def test_of_what_a_lost_node_held_a_voter_goes_where_it_may_lead(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes, partitions = int(rng.integers(12, 60)), int(rng.integers(300, 900))
    rows = np.array([rng.permutation(nodes)[:2] for _ in range(partitions)])
    leads = rng.random(nodes) < 0.8
    rows[~leads[rows].any(axis=1), 0] = int(np.flatnonzero(leads)[0])
    load = rng.integers(1, 6, (partitions, 1)).astype(float)
    cluster = ek.Cluster.from_arrays(
        capacity=[[float(load.sum()) * 4.0 / nodes]] * nodes, load=load, placement=rows,
        leader=np.argmax(leads[rows], axis=1), leads=leads, replicas=2,
    )  # fmt: skip
    lost = rng.permutation(nodes)[:3].tolist()
    result = ek.solve(cluster.down(*lost), goals=ek.Goals(level=0.1))
    assert result.audit.ok, result.message
