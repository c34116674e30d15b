"""No choice of leaders beats the bound on leader changes; where few, all choices are tried."""

import itertools

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.bounds.leaders import leader_bound
from evenkeel.measure.loads import node_loads
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Role


def tiny(seed):
    """A cluster, a placement of it after some moves, and targets that may be hard to meet."""
    random = np.random.default_rng(seed)
    n, p, r = int(random.integers(2, 5)), int(random.integers(1, 6)), int(random.integers(2, 4))
    r = min(r, n)
    load = random.integers(1, 4, (p, 1)).astype(float)
    before = np.array([random.permutation(n)[:r] for _ in range(p)])
    cluster = Cluster.from_arrays(
        capacity=np.full((n, 1), 99.0), load=load, placement=before,
        leader_load=load + random.integers(-1 if seed % 5 == 0 else 0, 4, (p, 1)),
        leader=random.integers(-1 if seed % 3 == 0 else 0, r, p),
        alive=random.random(n) < (0.8 if seed % 4 == 0 else 2.0),
        leads=random.random(n) < (0.8 if seed % 4 == 1 else 2.0),
    )  # fmt: skip
    after = np.array(
        [row if random.random() < 0.6 else random.permutation(n)[:r] for row in before]
    )
    leader = random.integers(0, r, p).astype(np.int16)
    placement = cluster.placement.replaced(after.reshape(-1).astype(np.int32), leader)
    by_count = random.integers(0, p + 1, n).astype(float) if seed % 2 else np.full(n, np.inf)
    by_load = (
        random.integers(2, 14, (n, 1)).astype(float) if seed % 7 < 4 else np.full((n, 1), np.inf)
    )
    return cluster, placement, by_load, by_count


def fewest(cluster, placement, target, leader_target):
    """The fewest changes of all choices of leaders that meet the targets; None if none does."""
    choices = []
    for p in range(len(placement)):
        start, end = placement.first[p], placement.first[p + 1]
        slots = [
            k - start
            for k in range(start, end)
            if placement.role[k] == Role.VOTER and cluster.nodes.may_lead[placement.node[k]]
        ]
        choices.append(slots or [-1])
    came = cluster.placement.leader_node
    best = None
    for leader in itertools.product(*choices):
        chosen = placement.replaced(placement.node, np.array(leader, np.int16))
        if (node_loads(cluster, chosen) > target + 1e-9).any():
            continue
        led = chosen.leader_node
        if (np.bincount(led[led >= 0], minlength=len(leader_target)) > leader_target).any():
            continue
        was_led = (came >= 0) & cluster.nodes.alive[np.maximum(came, 0)]
        able = np.array([slots != [-1] for slots in choices])
        changes = int((was_led & able & (led != came)).sum())
        best = changes if best is None else min(best, changes)
    return best


@pytest.mark.parametrize("start", range(0, 240, 80))
def test_no_choice_of_leaders_changes_fewer(start):
    exact = feasible = 0
    for seed in range(start, start + 80):
        cluster, placement, by_load, by_count = tiny(seed)
        least = fewest(cluster, placement, by_load, by_count)
        found = leader_bound(cluster, placement, by_load, by_count)
        assert found.changes >= found.forced
        if least is None:
            continue
        assert found.changes <= least, seed
        if np.isinf(by_load).all():
            assert proven_by(found, cluster, placement, by_count) == found.changes, seed
        feasible += 1
        exact += found.changes == least
        if np.isinf(by_load).all() and placement.slots == 2:
            assert found.changes == least, seed
    assert feasible > 15
    assert exact > 0.85 * feasible


def proven_by(found, cluster, placement, leader_target):
    """What the prices of leading prove by hand, loads apart."""
    came, price = cluster.placement.leader_node, found.price[:, -1]
    paid = price > 0
    total = -(price[paid] * leader_target[paid]).sum()
    for p, row in enumerate(placement.node.reshape(len(placement), -1)):
        able = row[cluster.nodes.may_lead[row]]
        was_led = came[p] >= 0 and cluster.nodes.alive[came[p]]
        if len(able):
            total += min(float(n != came[p] and was_led) + price[n] for n in able)
    return max(found.forced, int(np.ceil(total - 1e-6)))


def test_a_chain_of_changes_is_proven():
    """Node 0 leads two too many, and what it could hand on goes to node 1, which is full."""
    rows = [[0, 1]] * 4 + [[1, 2]] * 2 + [[2, 3]] * 1
    cluster = Cluster.from_arrays(capacity=[[99.0]] * 4, load=[[1.0]] * 7, placement=rows)
    none = np.full((4, 1), np.inf)
    found = leader_bound(cluster, cluster.placement, none, np.array([2.0, 2.0, 3.0, 0.0]))
    assert (found.changes, found.forced, found.term) == (4, 0, "prices of leading")


def test_a_result_tells_its_fewest_leader_changes():
    cluster = Cluster.from_arrays(
        capacity=[[99.0]] * 3, load=[[1.0]] * 9, placement=[[0, 1]] * 5 + [[0, 2]] * 4
    )
    result = ek.solve(cluster, goals=ek.Goals(level=None, leaders=0.0))
    assert result.leader_bound.changes == 6
    assert result.comparison.leader_changes >= 6
    assert result.gap.leader_changes == (result.comparison.leader_changes - 6) / 6
    (row,) = [one for one in result.proven if one.name == "leader changes"]
    assert (row.least, row.term) == (6, "prices of leading")
    assert "at least 6 by prices of leading, for where replicas stay" in str(row)
    assert result.metrics["proven"]["leader changes"]["given"] == "for where replicas stay"
    assert ek.solve(cluster, goals=ek.Goals(level=None)).leader_bound.changes == 0


def test_the_fewest_changes_where_replicas_stay_are_not_said_to_be_the_fewest_of_all():
    """Both ways take one move; if p0's follower moves, and not who leads it, nobody hands on."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[4.0]] * 4, load=[[1.0]] * 4, placement=[[0, 1]] * 3 + [[2, 3]], leader=[0] * 4
    )
    away = cluster.placement.node.copy()
    rows = []
    for k in (0, 1):
        node = away.copy()
        node[k] = 2
        start = cluster.placement.replaced(node, cluster.placement.leader)
        none = np.full((4, 1), np.inf)
        rows.append(leader_bound(cluster, start, none, np.full(4, np.inf)).changes)
    assert rows == [1, 0]


def test_where_nobody_can_lead_nothing_must_change():
    cluster = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 3, placement=[[-1]] * 3)
    found = leader_bound(cluster, cluster.placement, np.full((2, 1), 1.0), np.ones(2))
    assert (found.changes, found.forced) == (0, 0)
