"""Goals that are pursued only beyond a wider tolerance, or for a least gain."""

import numpy as np
import pytest

import evenkeel as ek
from tests.support.effort import mostly_long
from tests.support.small_clusters import KINDS, draw


def counts(*held, capacity=100.0, **more):
    """Nodes with so many replicas of one unit each."""
    placement = [[n] for n, count in enumerate(held) for _ in range(count)]
    return ek.Cluster.from_arrays(
        capacity=[[capacity]] * len(held), load=[[1.0]] * len(placement), dimensions=["disk"],
        bytes="disk", placement=placement, **more,
    )  # fmt: skip


def moves(cluster, method="balance", **goals):
    result = ek.solve(cluster, method, goals=ek.Goals(**goals))
    assert result.success, result.message
    return result.comparison.moves


@pytest.mark.parametrize("method", ["balance", "exact"])
@pytest.mark.parametrize(
    ("held", "goals", "found"),
    [
        ((56, 48, 48, 48), {"act_above": 0.15}, 0),
        ((56, 48, 48, 48), {"act_above": "10%"}, 4),
        ((56, 48, 48, 48), {"act_above": {"disk": 0.15}}, 0),
        ((56, 48, 48, 48), {"worth": "2%/move"}, 4),
        ((56, 48, 48, 48), {"worth": "2.1%/move"}, 0),
        ((56, 48, 48, 48), {"worth": 0.07}, 4),
        ((56, 48, 48, 48), {"worth": ["1%", "3%/move"]}, 0),
        ((56, 48, 48, 48), {"worth": "3%/B"}, 0),
        ((56, 48, 48, 48), {"worth": "0%"}, 4),
        ((50, 50, 50, 50), {"worth": "50%"}, 0),
    ],
)
def test_nothing_moves_that_is_not_worth_it(method, held, goals, found):
    assert moves(counts(*held), method, level=0.04, **goals) == found


def test_an_empty_node_is_seen_where_no_node_is_too_full():
    stores = counts(*[50] * 19, 0)
    assert moves(stores, level=0.1, floor=0.2, act_above=0.3) > 0
    assert moves(stores, level=0.1, act_above=0.3) == 0


def test_repairs_are_no_matter_of_worth():
    lost = counts(50, 50, 50, 50).drain("n0")
    result = ek.solve(lost, goals=ek.Goals(level=0.0, act_above="900%", worth="90%"))
    assert result.comparison.moves == 50
    assert result.stop_reason == "worth"


def test_leaders_beyond_their_tolerance_act_too():
    cluster = ek.Cluster.from_arrays(
        capacity=[[99.0]] * 2, load=[[1.0]] * 20, placement=[[0, 1]] * 20, leader=[0] * 20
    )
    for most, changes in ((2.0, 0), (0.5, 10)):
        goals = ek.Goals(leaders=0.0, act_above=f"{100 * most:g}%")
        assert ek.solve(cluster, goals=goals).comparison.leader_changes == changes
    held = ek.solve(cluster, goals=ek.Goals(leaders=0.0, worth=1.5))
    assert (held.comparison.leader_changes, held.stop_reason) == (0, "worth")


def test_noise_between_the_two_tolerances_moves_nothing():
    rng = np.random.default_rng(7)
    cluster = counts(*[60] * 8, capacity=200.0)
    moved = {"plain": 0, "held": 0}
    for _ in range(20):
        load = rng.uniform(0.7, 1.3, (480, 1))
        noisy = cluster.replace(load=load)
        moved["plain"] += moves(noisy, level=0.02)
        moved["held"] += moves(noisy, level=0.02, act_above=0.1)
    assert moved["held"] == 0 < moved["plain"]


@pytest.mark.parametrize(
    ("goals", "message"),
    [
        ({"worth": "1%/second"}, "1%/TB"),
        ({"worth": -1}, "share"),
        ({"worth": {"hour": 1.0}}, "share"),
        ({"act_above": -0.1}, "act_above"),
        ({"act_above": {"cpu": 0.1}}, "unknown dimension"),
    ],
)
def test_what_cannot_be_read_is_named(goals, message):
    with pytest.raises(ek.InvalidInput, match=message):
        ek.solve(counts(1, 1), goals=ek.Goals(**goals))
    with pytest.raises(ek.InvalidInput, match="bytes"):
        ek.solve(ek.Cluster.from_arrays(capacity=[[1.0]], load=[[1.0]], placement=[[0]]),
                 goals=ek.Goals(worth="1%/TB"))  # fmt: skip


@pytest.mark.parametrize("method", ["helix_crush", "leaders"])
def test_methods_that_do_not_work_towards_goals_refuse(method):
    with pytest.raises(ek.InvalidInput, match="act_above"):
        ek.solve(counts(1, 1), method, goals=ek.Goals(act_above=0.1))


def gain(before, after, goals):
    """The greatest fall of fullest ÷ mean, counted anew."""
    falls = [0.0, *(before.levelness.ratio - after.levelness.ratio).tolist()]
    if goals.leaders is not None:
        falls.append(before.levelness.leader_ratio - after.levelness.leader_ratio)
    return max(falls)


@pytest.mark.parametrize("seeds", mostly_long([(0, 1), (2, 3)], [(0, 1)]))
@pytest.mark.parametrize("kind", KINDS)
def test_small_clusters_move_for_goals_just_where_it_is_worth_it(kind, seeds):
    for seed in seeds:
        cluster, goals = draw(kind, seed)
        alone = ek.solve(cluster, goals=goals.repairs)
        plain = ek.solve(cluster, goals=goals)
        more = plain.comparison.moves - alone.comparison.moves
        for least in (0.01, 0.1, 0.5):
            asked = ek.Goals(goals.level, goals.leaders, worth=f"{100 * least:g}%/move")
            found = ek.solve(cluster, goals=asked)
            same = plain if gain(alone, plain, goals) >= least * max(more, 0) else alone
            assert np.array_equal(found.placement.node, same.placement.node)
            assert found.audit.hard <= plain.audit.hard
