"""Sessions: after any chain of changes, what a fresh solve of the snapshot promises."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.measure.audit import audit
from evenkeel.measure.bounds import bounds
from evenkeel.methods.levelling.losses import HealthyCluster
from evenkeel.methods.registry import METHODS
from tests.session.ready_clusters import ready_cluster
from tests.support.clusters import assert_equal, clusters
from tests.support.effort import share_of_examples

GOALS = ek.Goals(level=0.25)
STEPS = ("down", "up", "drain", "cordon", "nodes", "drop", "partitions", "load", "placement")


def step(rng, cluster, kind, result):
    """One random change of a cluster."""
    nodes, partitions = len(cluster.nodes), len(cluster.partitions)
    if kind in ("down", "up", "drain", "cordon"):
        return ek.Changes(**{kind: rng.integers(0, nodes, 2).tolist() if nodes else ()})
    if kind == "nodes":
        capacity = rng.integers(1, 90, (2, len(cluster.dimensions)))
        names = [f"new{nodes}", f"new{nodes + 1}"]
        homes = dict.fromkeys(cluster.topology.tiers, names)
        return ek.Changes(nodes={"capacity": capacity, "names": names, "domains": homes})
    if kind == "drop":
        return ek.Changes(drop=rng.integers(0, partitions, 2).tolist() if partitions else ())
    if kind == "partitions":
        load = rng.integers(0, 3, (2, len(cluster.dimensions)))
        names = [f"more{partitions}", f"more{partitions + 1}"]
        return ek.Changes(partitions={"load": load, "names": names, "replicas": [1, 2]})
    if kind == "load":
        return ek.Changes(load=cluster.partitions.load.voter * rng.uniform(0.5, 1.5))
    return ek.Changes(placement=result.placement)


def agrees(session, goals):
    """Solve a session and its snapshot, and compare what is promised of both."""
    snapshot = session.cluster
    result, fresh = (one.solve(goals=goals, work_limit=20_000) if one is session
                     else ek.solve(snapshot, goals=goals, work_limit=20_000)
                     for one in (session, None))  # fmt: skip
    assert result.audit.counts == audit(snapshot, result.placement).counts
    assert result.audit.hard <= fresh.audit.hard
    assert result.comparison.moves <= fresh.comparison.moves or not fresh.goals_reached
    assert result.success or not fresh.success
    for name in ("fair", "level", "target", "leader_target", "moves_level", "missing"):
        found, expected = (getattr(one, name) for one in (result.bounds, bounds(snapshot, goals)))
        assert np.allclose(found, expected, rtol=1e-12, atol=0.0), name  # sums in another order
    assert result.regressions == {} or fresh.regressions
    return result


@share_of_examples(0.25)
@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from(STEPS), min_size=1, max_size=5))
def test_a_chain_of_changes_is_as_good_as_a_fresh_solve(seed, kinds):
    rng = np.random.default_rng(seed)
    session = ek.Session(ready_cluster(seed % 1000))
    result = session.solve(goals=GOALS)
    for kind in kinds:
        if kind == "placement" and len(result.placement.node) != len(
            session.cluster.placement.node
        ):
            continue
        session.apply(step(rng, session.cluster, kind, result))
        result = agrees(session, GOALS)


@share_of_examples(0.3)
@given(clusters(solvable=True), st.sets(st.integers(0, 5), max_size=2))
def test_any_cluster_loses_nodes_as_a_fresh_solve_does(cluster, lost):
    before = copy.deepcopy(cluster)
    lost = [n for n in lost if n < len(cluster.nodes)]
    agrees(ek.Session(cluster).apply(ek.Changes(down=lost)), ek.Goals())
    assert_equal("cluster", cluster, before)


def test_losses_one_by_one_are_one_loss_and_forks_go_their_own_way():
    cluster = next(one for one in map(ready_cluster, range(40)) if len(one.nodes) > 9)
    session = ek.Session(cluster)
    both = session.fork().apply(ek.Changes(down=[0, 3])).solve(goals=GOALS)
    other = session.fork().apply(ek.Changes(down="n3")).apply(ek.Changes(down=0))
    assert np.array_equal(other.solve(goals=GOALS).placement.node, both.placement.node)
    assert session.cluster is cluster
    fork = other.fork().apply(ek.Changes(up=[0, 3]))
    assert fork.cluster.nodes.alive.tolist() == [
        bool(a) or n in (0, 3) for n, a in enumerate(cluster.nodes.alive)
    ]
    assert not other.cluster.nodes.alive[0]
    again = pickle.loads(pickle.dumps(other))
    assert np.array_equal(again.solve(goals=GOALS).placement.node, both.placement.node)


def test_a_loss_takes_no_search_and_all_else_is_the_solve_of_the_snapshot(monkeypatch):
    cluster = ready_cluster(3)
    session = ek.Session(cluster).apply(ek.Changes(down=2))
    asked = []
    real = HealthyCluster.lose
    monkeypatch.setattr(HealthyCluster, "lose", lambda *given: asked.append(1) or real(*given))
    quick = session.solve(goals=GOALS)
    assert asked and quick.status == "optimal" and quick.comparison.moves == quick.bounds.missing
    report = session.solve("leaders", goals=None)
    alone = ek.solve(session.cluster, "leaders", goals=None)
    assert np.array_equal(report.placement.node, alone.placement.node)
    for options in ({"limits": ek.Limits(moves=10_000)}, {"callback": lambda progress: None}):
        asked.clear()
        report = session.solve(goals=GOALS, **options)
        assert asked and np.array_equal(report.placement.node, quick.placement.node)
    assert [name for name, one in METHODS.items() if one.ready] == ["balance"]


def test_what_is_refused_is_what_a_solve_refuses():
    session = ek.Session(ready_cluster(3)).apply(ek.Changes(down=2))
    for bad in ({"method": "best"}, {"goals": ek.Goals(level={"gpu": 1.0}), "seed": "x"},
                  {"time_limit": -1.0}, {"options": ek.options.Exact()}, {"goals": 7}):  # fmt: skip
        with pytest.raises(ek.InvalidInput) as ours:
            session.solve(**bad)
        with pytest.raises(ek.InvalidInput) as theirs:
            ek.solve(session.cluster, **bad)
        assert [one.path for one in ours.value.faults] == [one.path for one in theirs.value.faults]
    for make in (lambda: ek.Session(3), lambda: session.apply({"down": 2})):
        with pytest.raises(ek.InvalidInput):
            make()


def test_nothing_to_do_is_nothing_done():
    session = ek.Session(ready_cluster(3))
    assert session.apply(ek.Changes()).cluster is session.cluster
    cluster = ek.Cluster.from_arrays(capacity=[[1.0]], load=np.zeros((0, 1)))
    result = ek.Session(cluster).apply(ek.Changes(down=0)).solve()
    assert result.comparison.moves == 0
    nobody = ek.Cluster.from_arrays(capacity=np.zeros((0, 1)), load=np.zeros((0, 1)))
    assert ek.Session(nobody).solve().comparison.moves == 0


def test_the_same_bits_every_time():
    bits = []
    for _ in range(2):
        session = ek.Session(ready_cluster(8))
        for n in (1, 3):
            result = session.apply(ek.Changes(down=n)).solve(goals=GOALS, seed=4)
            session.apply(ek.Changes(placement=result.placement))
            bits.append((result.placement.node.tobytes(), result.levelness.loads.tobytes()))
    assert bits[:2] == bits[2:]


def levelled():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 6, placement=[[0, 1], [1, 2], [2, 3]] * 2
    )
    return ek.Session(cluster), ek.Goals(level=0.5)


def test_a_loss_is_measured_when_it_is_asked_about_wherever_it_is_then():
    session, goals = levelled()
    session.apply(ek.Changes(down=0))
    result, other = (session.solve(goals=goals) for _ in range(2))
    assert "bounds" not in result.__dict__
    travelled = pickle.loads(pickle.dumps(result))
    renamed = replace(other, message="so it is")
    for one in (travelled, renamed):
        assert one.bounds.moves_level == one.comparison.moves == result.comparison.moves
        assert np.array_equal(one.levelness.loads, result.levelness.loads)
        assert one.success and one.audit.ok
    assert renamed.message == "so it is"
    with pytest.raises(AttributeError, match="costs_nothing"):
        _ = result.costs_nothing


def test_what_stands_ready_is_known_to_be_well_without_a_solve():
    session, goals = levelled()
    fresh = session.solve(goals=goals)
    session.fork().apply(ek.Changes(down=0)).solve(goals=goals)
    quick = session.solve(goals=goals)
    assert "bounds" in fresh.__dict__ and "bounds" not in quick.__dict__
    assert (quick.status, quick.message) == (fresh.status, fresh.message)
    for name in ("levelness", "comparison"):
        assert_equal(name, getattr(quick, name), getattr(fresh, name))
