"""Helix's CRUSH and MultiRoundCRUSH, and the trees they draw from."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from evenkeel.systems.helix.crush.method import with_places_kept
from evenkeel.systems.helix.crush.tree import (
    BadTopology,
    HashedNames,
    NoNodes,
    NotEnoughZones,
    NoZones,
    Tree,
    crush,
    multiround,
    state_counts,
    wanted_replicas,
)
from evenkeel_kernels.helix.crush import straw_lengths
from tests.naive.helix import crush as naive
from tests.support.effort import mostly_long
from tests.support.helix_topology import by_path


class Case(NamedTuple):
    """A random cluster and group, and what the naive code needs of it."""

    names: list[str]
    zones: list[str] | None
    weight: list[int]
    live: list[bool]
    partitions: list[str]
    states: list[int]

    @property
    def tree(self) -> Tree:
        return Tree.of(self.names, self.zones, self.weight, self.live)

    @property
    def naive_tree(self) -> naive.Item:
        return naive.tree(self.names, self.zones, self.weight, self.live)


WEIGHTS = ([1000], [1000, 1000, 0], [1, 1000, 50], [1, 2, 3, 4, 5, 6, 7, 8], [2**40, 1, 0, 77])


def random_case(seed: int, *, zoned: bool = True) -> Case:
    """A small cluster; some are a single node, a single zone, uneven, or partly or wholly dead."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 20))
    zones = int(rng.integers(1, 7))
    weights = WEIGHTS[seed % len(WEIGHTS)]
    partitions = int(rng.integers(2, 12))
    live = rng.random(count) < rng.choice([1.0, 0.8, 0.3])
    if seed % 7 == 0:
        live[:] = True
    return Case(
        [f"host-{i * 37 % 101}.example" for i in range(count)],
        [f"zone {z}" for z in rng.integers(0, zones, count)] if zoned else None,
        [int(rng.choice(weights)) for _ in range(count)],
        live.tolist(),
        [f"Db{seed}_{i}" for i in range(partitions - 2)] + ["Aa", "BB"],
        [1, *rng.integers(0, 3, 2).tolist()],
    )


def rows(placed: np.ndarray) -> list[list[int]]:
    """Lists without what is missing at their ends."""
    return [[node for node in row if node >= 0] for row in placed.tolist()]


@pytest.mark.parametrize("zoned", [True, False])
@pytest.mark.parametrize("seed", mostly_long(range(25), range(6)))
def test_crush_equals_the_naive_one(seed, zoned):
    case = random_case(seed, zoned=zoned)
    placed = crush(HashedNames.of(case.partitions), case.tree, case.states)
    root = case.naive_tree
    expected = [naive.crush(root, name, sum(case.states)) for name in case.partitions]
    assert rows(placed) == expected


@pytest.mark.parametrize("seed", mostly_long(range(25), range(8)))
def test_multiround_equals_the_naive_one(seed):
    case = random_case(seed)
    try:
        expected = naive.multiround(case.naive_tree, case.partitions, case.states)
    except naive.NotEnoughZones:
        with pytest.raises(NotEnoughZones):
            multiround(HashedNames.of(case.partitions), case.tree, case.states)
        return
    placed = multiround(HashedNames.of(case.partitions), case.tree, case.states)
    assert placed.tolist() == expected


def test_multiround_deals_surplus_again_as_the_naive_one_does():
    names = [f"n{i}" for i in range(20)]
    zones = [f"z{i % 2}" for i in range(20)]
    partitions = [f"p{i}" for i in range(800)]
    weight = [1 + i % 3 * 5 for i in range(20)]
    root = naive.tree(names, zones, weight, [True] * 20)
    placed = multiround(HashedNames.of(partitions), Tree.of(names, zones, weight), [1, 1])
    assert placed.tolist() == naive.multiround(root, partitions, [1, 1])


@pytest.mark.parametrize("seed", range(30))
def test_straws_equal_the_naive_ones(seed):
    rng = np.random.default_rng(seed)
    weights = sorted(rng.choice(WEIGHTS[seed % len(WEIGHTS)], rng.integers(1, 12)).tolist())[::-1]
    assert straw_lengths(np.array(weights)).tolist() == naive.straws(weights)


@pytest.mark.parametrize("zones", [["a", "a", "a"], None])
def test_a_partition_that_draws_something_dead_is_placed_as_by_the_naive_one(zones):
    # For these two the live node's hash is 0, so that a dead one, which comes first, wins the draw.
    partitions = ["p107435", "p7", "p251847"]
    names, live = ["n0", "n1", "n2"], [False, False, True]
    root = naive.tree(names, zones, [1000] * 3, live)
    bucket = root if zones is None else root.children[0]
    drawn = [naive.draw(bucket, naive.java_hash(name), 1).out for name in partitions]
    assert drawn == [True, False, True]
    tree = Tree.of(names, zones, live=live)
    for states in ([1], [1, 1]):
        placed = crush(HashedNames.of(partitions), tree, states)
        expected = [naive.crush(root, name, sum(states)) for name in partitions]
        assert rows(placed) == expected == [[2], [2], [2]]
    if zones is not None:
        placed = multiround(HashedNames.of(partitions), tree, [1])
        assert placed.tolist() == naive.multiround(root, partitions, [1])


def test_growing_the_order_of_partitions_changes_nobody_elses_place():
    tree = Tree.of([f"n{i}" for i in range(12)], [f"z{i // 3}" for i in range(12)])
    few = crush(HashedNames.of(["a", "b"]), tree, [1, 2])
    many = crush(HashedNames.of(["c", *[f"x{i}" for i in range(99)], "b", "a"]), tree, [1, 2])
    assert few.tolist() == many[[-1, -2]].tolist()


def test_a_dead_zone_moves_little_that_was_not_in_it():
    names = [f"n{i}" for i in range(20)]
    tree = Tree.of(names, [f"z{i // 4}" for i in range(20)])
    down = replace(tree, live=tree.zone != 2)
    partitions = HashedNames.of([f"p{i}" for i in range(2000)])
    before = crush(partitions, tree, [1, 1])
    after = crush(partitions, down, [1, 1])
    assert not np.isin(after, np.flatnonzero(tree.zone == 2)).any()
    untouched = ~(tree.zone[before] == 2).any(axis=1)
    assert (before[untouched] == after[untouched]).all()


def test_lists_are_short_where_zones_are_missing():
    tree = Tree.of(["n1", "n2", "n3"], ["z1", "z1", "z2"])
    placed = crush(HashedNames.of(["p", "q"]), tree, [1, 2])
    assert (placed[:, 2] == -1).all()
    assert (placed[:, :2] >= 0).all()


def test_nothing_can_be_placed_without_nodes():
    for strategy in (crush, multiround):
        with pytest.raises(NoNodes):
            strategy(HashedNames.of(["p"]), Tree.of([]), [1])


def test_multiround_refuses_a_tree_without_zones():
    with pytest.raises(NoZones, match="tier of fault zones"):
        multiround(HashedNames.of(["p"]), Tree.of(["n1", "n2"]), [1])


def test_multiround_names_the_partition_that_needs_more_zones():
    with pytest.raises(NotEnoughZones, match="'p' needs 2 zones; 1 of 2"):
        multiround(
            HashedNames.of(["p"]), Tree.of(["a", "b"], ["y", "z"], live=[True, False]), [1, 1]
        )


def test_weights_not_stated_and_negative_ones_are_a_thousand():
    assert Tree.of(["a", "b"], weight=[-1, 0]).weight.tolist() == [1000, 0]
    assert Tree.of(["a"]).weight.tolist() == [1000]


def test_two_nodes_of_one_name_in_one_zone_are_refused():
    assert len(Tree.of(["n", "n"], ["a", "b"])) == 2
    with pytest.raises(BadTopology, match="'a' have the name 'n'"):
        Tree.of(["n", "n"], ["a", "a"])
    with pytest.raises(BadTopology, match="have the name 'n'"):
        Tree.of(["n", "n"])


def test_only_the_fault_zone_and_the_node_level_of_a_path_count():
    places = by_path(
        ["i1", "i2"],
        ["zone=a,rack=r,host=h1,instance=i1", "zone=b,rack=r,host=h2,instance=i2"],
        [True, True],
        "/zone/rack/host/instance",
        "rack",
    )
    assert places.zones == ("r", "r")
    assert places.names == ("i1", "i2")


def test_a_fault_zone_that_is_the_node_level_leaves_one_level():
    assert by_path(["i"], ["zone=z,host=h"], [True], "/zone/host").zones is None


@pytest.mark.parametrize(
    ("domain", "fault_zone", "message"),
    [
        ("zone=z,host=h", "rack", "fault zone 'rack' is none of zone, host"),
        ("zone:z", "zone", "domain 'zone:z' of 'i' is no list"),
        ("", "zone", "enabled instances without a domain: 'i'"),
        (None, "zone", "enabled instances without a domain: 'i'"),
    ],
)
def test_bad_domains_are_refused_by_name(domain, fault_zone, message):
    with pytest.raises(BadTopology, match=message):
        by_path(["i"], [domain], [True], "/zone/host", fault_zone)


def test_a_topology_must_name_a_level():
    with pytest.raises(BadTopology, match="names no level"):
        by_path(["i"], ["zone=z"], [True], "/", None)


def test_a_disabled_instance_without_a_place_is_left_out():
    places = by_path(["i", "j"], ["", "zone=z,host=h"], [False, True], "/zone/host", "zone")
    assert places.kept.tolist() == [1]


@pytest.mark.parametrize(
    ("model", "candidates", "replicas", "expected"),
    [
        ({"MASTER": 1, "SLAVE": "R", "OFFLINE": -1}, 5, 3, {"MASTER": 1, "SLAVE": 2}),
        ({"MASTER": 1, "SLAVE": "R"}, 2, 3, {"MASTER": 1, "SLAVE": 1}),
        ({"MASTER": 1, "SLAVE": "R"}, 0, 3, {}),
        ({"ONLINE": "R"}, 5, 3, {"ONLINE": 3}),
        ({"LEADER": 1, "STANDBY": "N", "REST": "R"}, 5, 3, {"LEADER": 1, "STANDBY": 4}),
        ({"A": 1, "B": "R", "C": 2}, 9, 4, {"A": 1, "C": 2, "B": 1}),
        ({"A": "2", "B": 2, "C": 5}, 5, 9, {"A": 2, "B": 2, "C": 1}),
    ],
)
def test_state_counts(model, candidates, replicas, expected):
    assert list(state_counts(model, candidates, replicas).items()) == list(expected.items())


def test_any_live_instance_is_as_many_as_are_eligible():
    assert wanted_replicas("ANY_LIVEINSTANCE", 12) == 12
    assert wanted_replicas(3, 12) == 3


def test_places_are_kept_while_enough_replicas_are_live():
    tree = Tree.of([f"n{i}" for i in range(20)], [f"z{i // 4}" for i in range(20)])
    live = np.arange(20) % 4 != 1
    partitions = HashedNames.of([f"p{i}" for i in range(300)])
    active = crush(partitions, tree, [1, 2])
    on_live = crush(partitions, replace(tree, live=live), [1, 2])
    alive = np.count_nonzero(live[active], axis=1)
    for least in range(4):
        kept = with_places_kept(active, on_live, live, np.full(300, least, np.int32))
        if least == 3:
            assert (kept == on_live).all()
            continue
        enough = alive >= least
        assert (kept[enough] == active[enough]).all()
        short = kept[~enough]
        assert (np.count_nonzero((short >= 0) & live[short], axis=1) == least).all()
        assert not ((short >= 0) & ~live[short]).any()
