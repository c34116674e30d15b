"""The split: parts are of a size, what is bound together stays so, and shares add up."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.audit import audit
from evenkeel.model.rules import COUNTS, LIMITS, REQUIREMENTS
from evenkeel.studies.parts import Open, cut, shared_out, split, split_up
from tests.support.instances import as_cluster, generate
from tests.support.random_problems import random_cluster


def test_parts_have_as_many_replicas_each():
    cluster = as_cluster(generate(P=9_000, N=30, Z=5, seed=3))
    size = np.bincount(split(cluster, 3, 0), minlength=3)
    assert size.sum() == 9_000
    assert abs(size - 3_000).max() < 200


def test_groups_that_are_bound_stay_together_and_the_rest_evens_out():
    group = np.repeat(np.arange(5), [50, 30, 20, 5, 95])
    cluster = ek.Cluster.from_arrays(
        capacity=[[400.0]] * 6, load=[[1.0]] * 200, replicas=1, group=group,
        domains={"zone": [0, 0, 1, 1, 2, 2]},
        rules=[ek.Rule(max_domains={"zone": 2}), ek.Rule()], rule=np.full(200, 1),
        group_rule=[0, -1, -1, -1, -1], depends=[(1, 2, "zone"), (2, 3, "zone")],
    )  # fmt: skip
    part = split(cluster, 2, 0)
    assert len(set(part[group == 0])) == 1
    assert len(set(part[(group == 1) | (group == 2) | (group == 3)])) == 1
    assert part[0] != part[50]  # the largest first, each where the fewest are
    assert abs(np.bincount(part) - 100).max() < 25
    assert not np.array_equal(part, split(cluster, 2, 1))


@pytest.mark.parametrize("seed", range(40))
def test_shares_add_up_to_what_the_whole_may(seed):
    cluster = random_cluster(seed)
    found = split_up(cluster, ek.Goals(level=0.1), split(cluster, 3, seed), 3, seed)
    for limit, shares in (
        (cluster.nodes.capacity, found.capacity),
        (found.levels.target, found.target),
    ):
        assert np.allclose(shares.sum(0), limit, rtol=1e-9, atol=1e-9)
        assert (shares >= 0.0).all()
    most = np.where(cluster.nodes.max_replicas < 0, np.inf, cluster.nodes.max_replicas)
    assert np.allclose(found.most_replicas.sum(0), most)
    for tier, capacity in cluster.topology.tier_capacity.items():
        assert np.allclose(found.tier_capacity[tier].sum(0), capacity)


@pytest.mark.parametrize("unit", [0.0, 1.0])
def test_what_is_too_much_is_given_away_where_it_is_and_room_goes_where_it_is_needed(unit):
    both = Open(np.ones(3, bool), np.ones(3, bool))
    loads = np.array([[8.0, 0.0, 4.0], [4.0, 0.0, 2.0]])
    limit = np.array([6.0, 12.0, 6.0])
    found = shared_out(limit, loads, loads.sum(1), np.array([0.5, 0.5]), both, unit)
    assert found[:, 0] == pytest.approx([4.0, 2.0])
    # 4 and 2 must go; of the 6 that are free beyond, each part has a half
    assert found[:, 1] == pytest.approx([7.0, 5.0])
    assert found[:, 2] == pytest.approx([4.0, 2.0])
    free = shared_out(np.full(3, np.inf), loads, loads.sum(1), np.array([0.5, 0.5]), both, unit)
    assert np.isinf(free).all()


def test_whole_units_are_cut_into_whole_units_and_nobody_gets_all_that_is_left_over():
    every = Open(np.ones(200, bool), np.ones(200, bool))
    loads = np.ones((3, 200))
    found = shared_out(np.full(200, 5.0), loads, loads.sum(1), np.full(3, 1 / 3), every, 1.0)
    assert np.allclose(found, np.round(found))
    assert np.allclose(found.sum(0), 5.0)
    assert abs(found.sum(1) - 1_000 / 3).max() < 10


@pytest.mark.parametrize("seed", range(12))
def test_parts_break_together_what_the_whole_breaks(seed):
    """Rules of partitions and groups are judged in a part as they are in the whole."""
    cluster = random_cluster(seed)
    part = split(cluster, 3, seed)
    kinds = (*LIMITS, *COUNTS, *REQUIREMENTS, "forbidden")
    whole = audit(cluster, cluster.placement).counts
    pieces = [cut(cluster, part == i) for i in range(3)]
    found = [audit(piece, piece.placement).counts for piece in pieces]
    for kind in kinds:
        if kind in whole:
            assert sum(one[kind] for one in found) == whole[kind], kind
