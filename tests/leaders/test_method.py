"""The leaders method: proven least on the fullest node, by flow, against trying everything."""

import itertools

import numpy as np
import pytest

import evenkeel as ek


def least(placement, weight, may):
    """Least (ratio of the fullest node, changes) over all choices of leaders, slot 0 leading now.

    The ratio is of leaders to the share by weight, over nodes that may lead.
    """
    share = np.where(may, weight, 0.0)
    choices = [[i for i, n in enumerate(row) if may[n]] for row in placement]
    asked = [one for one in choices if one]
    if not asked:
        return None, len(placement)
    share = share * (len(asked) / share.sum()) if share.any() else share
    best = None
    for chosen in itertools.product(*asked):
        count = np.zeros(len(weight))
        rows = [row for row, one in zip(placement, choices, strict=True) if one]
        for row, slot in zip(rows, chosen, strict=True):
            count[row[slot]] += 1
        ratio = max(count[n] / share[n] for n in range(len(weight)) if count[n])
        key = round(ratio, 9), sum(slot != 0 for slot in chosen)
        best = key if best is None or key < best else best
    return best, len(placement) - len(asked)


@pytest.mark.parametrize("seed", range(8))
def test_it_is_equal_to_trying_every_choice(seed):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        nodes, partitions = int(rng.integers(2, 6)), int(rng.integers(1, 7))
        replicas = int(rng.integers(1, min(nodes, 3) + 1))
        placement = [rng.choice(nodes, replicas, replace=False).tolist() for _ in range(partitions)]
        weight = rng.choice([1.0, 1.0, 2.0, 0.5], nodes)
        may = rng.random(nodes) > 0.15
        cluster = ek.Cluster.from_arrays(
            capacity=[[99.0]] * nodes, load=[[1.0]] * partitions, placement=placement,
            lead_weight=weight, leads=may,
        )  # fmt: skip
        result = ek.solve(cluster, method="leaders")
        best, leaderless = least(placement, weight, may)
        proof = result.native
        assert proof.leaderless == leaderless
        assert result.comparison.moves == 0
        if best is None:
            continue
        assert (round(proof.ratio, 9), proof.changes) == best
        led = result.placement.leader_node
        able = [row for row in range(partitions) if any(may[n] for n in placement[row])]
        count = np.bincount(led[able], minlength=nodes)
        assert (count <= proof.most).all()


def test_preferences_come_before_levelness():
    cluster = ek.Cluster.from_arrays(
        capacity=[[99.0]] * 2, load=[[1.0]] * 4, placement=[[0, 1]] * 4,
        domains={"zone": ["a", "b"]}, rules=[ek.Rule(lead=["zone=a"])], rule=[0] * 4,
    )  # fmt: skip
    result = ek.solve(cluster, method="leaders")
    assert result.levelness.leaders.tolist() == [4, 0]
    assert result.audit.counts["lead"] == 0


def test_solving_again_changes_nobody():
    rng = np.random.default_rng(1)
    placement = [rng.choice(20, 3, replace=False).tolist() for _ in range(400)]
    cluster = ek.Cluster.from_arrays(
        capacity=[[999.0]] * 20, load=[[1.0]] * 400, placement=placement
    )  # fmt: skip
    once = ek.solve(cluster, method="leaders")
    assert once.levelness.leaders.max() == 20
    twice = ek.solve(cluster.with_placement(once.placement), method="leaders")
    assert twice.native.changes == 0


def test_a_cluster_without_leaders_is_refused():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]], load=[[1.0]], placement=[[0]], leader=[-1]
    )  # fmt: skip
    with pytest.raises(ek.InvalidInput, match="who leads"):
        ek.solve(cluster, method="leaders")
