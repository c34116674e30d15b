"""Which nodes may go: against every set of nodes of small clusters, and what keeps a node."""

from itertools import combinations

import numpy as np
import pytest
from ortools.sat.python import cp_model

import evenkeel as ek
from tests.studies.growth.oracle import Small, survives
from tests.support.effort import mostly_long
from tests.support.instances import as_cluster, generate

LOSSES = ("", "node", "zone")


def drawn(seed):
    """Draw a cluster of three to seven nodes that are far from full, and prices of them."""
    rng = np.random.default_rng(seed)
    nodes, dimensions = int(rng.integers(3, 8)), int(rng.integers(1, 3))
    capacity = rng.integers(6, 16, (nodes, dimensions))
    if seed % 2:
        capacity[:] = capacity[0]
    small = Small(
        capacity.tolist(), rng.choice([*"abcd"[: rng.integers(1, 5)]], nodes).tolist(),
        rng.integers(1, 5, (rng.integers(2, 7), dimensions)).tolist(), int(rng.integers(1, 4)),
        None if rng.random() < 0.3 else int(rng.integers(1, 3)), [],
    )  # fmt: skip
    price = rng.integers(1, 4, nodes) / 2 if seed % 3 == 0 else np.ones(nodes)
    if seed % 5 == 4:
        price = rng.choice([0.0, 1e-300, 5e-324, 1.0, 1e15, 1e300], nodes)
    return small, price


def cheapest(small, price, survive):
    """Return the least price of nodes on which everything has its place, losses borne."""
    nodes = range(len(price))
    sets = [one for k in range(len(price) + 1) for one in combinations(nodes, k)]
    for some in sorted(sets, key=lambda one: price[[*one]].sum()):
        if survives(small, [small.capacity[n] for n in some], [small.zone[n] for n in some],
                    survive):  # fmt: skip
            return price[[*some]].sum()
    return np.inf


@pytest.mark.parametrize("seed", mostly_long(range(200), range(16)))
def test_what_stays_is_the_cheapest_of_all_sets(seed):
    small, price = drawn(seed)
    survive = LOSSES[seed // 2 % 3]
    placed = ek.solve(small.cluster, goals=ek.Goals(level=None), seed=seed)
    cluster = small.cluster.with_placement(placed.placement)
    prices = dict(zip(cluster.nodes.names, price.tolist(), strict=True))
    found = ek.size(cluster, shrink=True, survive=survive or (), prices=prices)
    least = cheapest(small, price, survive)
    if found.cluster is None:
        assert ("no rule keeps" in found.message) or np.isinf(least)
        return
    assert found.price_at_least <= least <= found.price <= least + price.max()
    assert (found.status == "optimal") == (found.price == found.price_at_least)
    gone = {one.node for one in found.leaving}
    assert found.price == pytest.approx(sum(p for name, p in prices.items() if name not in gone))
    assert found.moves_at_least <= sum(one.replicas for one in found.leaving) <= found.moves
    gone = [cluster.nodes.names.index(one.node) for one in found.leaving]
    assert not np.isin(found.cluster.placement.node, gone).any()
    again = ek.solve(found.cluster, goals=ek.Goals(level=None))
    assert (again.audit.hard, again.comparison.moves) == (0, 0)


def most_units(small, before, unit, moves):
    """Return the most units that fit within so many moves, by CP-SAT."""
    model = cp_model.CpModel()
    nodes = range(len(small.capacity))
    at = [[model.new_bool_var("") for _ in nodes] for _ in small.load]
    units = [model.new_int_var(0, 50, "") for _ in nodes]
    for row in at:
        model.add(sum(row) == small.replicas)
        for zone in set(small.zone) if small.spread is not None else ():
            there = [v for v, z in zip(row, small.zone, strict=True) if z == zone]
            model.add(sum(there) <= small.spread)
    for n in nodes:
        for d, most in enumerate(small.capacity[n]):
            used = sum(load[d] * row[n] for load, row in zip(small.load, at, strict=True))
            model.add(used + unit[d] * units[n] <= most)
    stays = sum(row[n] for row, old in zip(at, before, strict=True) for n in old)
    model.add(small.replicas * len(before) - stays <= moves)
    model.maximize(sum(units))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.solve(model)
    return round(solver.objective_value)


@pytest.mark.parametrize("seed", mostly_long(range(200), range(12)))
def test_free_units_are_the_most_that_fit(seed):
    small, _ = drawn(seed)
    placed = ek.solve(small.cluster, goals=ek.Goals(level=0.1), seed=seed)
    if placed.audit.hard:
        return
    cluster = small.cluster.with_placement(placed.placement)
    moves = seed % 4
    unit = np.random.default_rng(seed).integers(3, 8, len(cluster.dimensions))
    most = most_units(small, placed.placement.nodes.tolist(), unit.tolist(), moves)
    found = ek.free_units(cluster, unit, limits=ek.Limits(moves=moves))
    assert found.now <= found.count <= most <= found.at_most
    assert found.moves <= moves
    assert found.count >= most - 1 and (moves or found.count == most)
    again = ek.free_units(found.cluster, unit, limits=ek.Limits(moves=0))
    assert again.now == found.count and not again.moves
    assert not ek.solve(found.cluster, goals=ek.Goals(level=None)).comparison.moves


def six(**changes):
    """Six nodes in three zones, of which half are needed."""
    arguments = {
        "dimensions": ("disk",), "bytes": "disk", "capacity": np.full((6, 1), 10.0),
        "domains": {"zone": [*"aabbcc"]}, "load": np.full((9, 1), 1.0),
        "placement": [[0, 2, 4], [1, 3, 5], [0, 3, 4]] * 3, "spread": {"zone": 1},
    }  # fmt: skip
    return ek.Cluster.from_arrays(**(arguments | changes))


@pytest.mark.parametrize(
    ("cluster", "words", "leaving", "stays"),
    [
        (six(), {}, ["n1", "n2", "n5"], []),
        (six(), {"survive": "node"}, [], []),
        (six().pin("p1"), {}, ["n0", "n2", "n4"], ["n1", "n3", "n5"]),
        (six().cordon("n1"), {}, ["n2", "n5"], ["n1"]),
        (six().drain("n1"), {}, ["n2", "n5"], []),
        (six().down("n1"), {}, ["n2", "n5"], []),
        (six(), {"prices": {"zone=a": 5.0, "n0": 9.0}}, ["n0", "n2", "n5"], []),
        (six(), {"limits": ek.Limits(moves=3)}, ["n1"], []),
        (six(), {"limits": ek.Limits(moves=2)}, [], []),
        (six(), {"limits": ek.Limits(bytes=6.5)}, ["n1", "n2"], []),
        (six(), {"at_most": 0.5}, [], []),
        (six(), {"goals": ek.Goals(level=None, leaders=None)}, ["n1", "n2", "n5"], []),
        (six(forbidden=[(0, 3)]), {}, ["n1", "n3", "n5"], []),
    ],
)  # fmt: skip
def test_what_keeps_a_node_is_kept_and_named(cluster, words, leaving, stays):
    found = ek.size(cluster, shrink=True, **words)
    assert sorted(one.node for one in found.leaving) == leaving
    assert [name for name, _ in found.must_stay] == stays


@pytest.mark.parametrize("kept", ["pin", "cordon"])
@pytest.mark.parametrize("survive", [(), ("node",)])
def test_where_every_node_stays_none_may_go(kept, survive):
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 3, load=[[1.0]] * 3, placement=[[0], [1], [2]]
    )
    cluster = cluster.pin([0, 1, 2]) if kept == "pin" else cluster.cordon(0, 1, 2)
    found = ek.size(cluster, shrink=True, survive=survive, recover=False)
    assert found.status in ("optimal", "infeasible")
    assert len(found.must_stay) == 3 or found.status == "infeasible"


def test_where_no_attempt_fits_all_nodes_do():
    """Each partition has one node that it may stand on, of which the needs count but a few."""
    n = 50
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * n, load=[[1.0]] * n, placement=[[p] for p in range(n)],
        forbidden=[(p, node) for p in range(n) for node in range(n) if node != p],
    )  # fmt: skip
    found = ek.size(cluster, shrink=True)
    assert (found.status, found.price, found.leaving) == ("feasible", float(n), ())


@pytest.mark.parametrize(
    ("shape", "full", "words", "most"),
    [
        ((384, 32, 3), 0.63, {"survive": "node"}, 0),
        ((867, 40, 5), 0.6, {"survive": "rack"}, 1),
        ((5_000, 300, 10), 0.4, {"survive": "zone", "at_most": 0.9}, 1),
    ],
)
def test_large_clusters_come_close_to_the_bound(shape, full, words, most):
    cluster = as_cluster(generate(*shape, seed=1, util=full, frac_dead=0.01))
    words = {"at_most": 0.85} | words
    found, again = (ek.size(cluster, shrink=True, **words) for _ in range(2))
    assert found.price - found.price_at_least <= most
    assert found.result.audit.hard == 0 and found.losses.fits.all()
    assert not np.isin(
        found.cluster.placement.node, [cluster.nodes.names.index(one.node) for one in found.leaving]
    ).any()
    assert np.array_equal(found.cluster.placement.node, again.cluster.placement.node)


@pytest.mark.parametrize("size", [1e-4, 1e-8, 1e-308])
def test_units_too_small_to_be_counted_are_refused(size):
    cluster = ek.Cluster.from_arrays(
        dimensions=["cpu"], capacity=[[10.0]] * 4, load=[[1.0]] * 6, placement=[[0, 1]] * 6
    )
    with pytest.raises(ek.InvalidInput, match="unit: is too small"):
        ek.free_units(cluster, {"cpu": size})
