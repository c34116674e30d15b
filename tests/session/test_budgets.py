"""Losses under budgets, with a callback and after new loads: no search, and no worse than one."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.measure.audit import audit
from evenkeel.measure.compare import compare
from evenkeel.measure.levelness import levelness
from evenkeel.measure.spending import exceeded
from evenkeel.methods.levelling.losses import HealthyCluster, standing
from evenkeel.session import ResultOfLoss
from evenkeel.studies.scenario import survival
from tests.session.ready_clusters import cluster_to_the_brim, ready_cluster
from tests.support.clusters import assert_equal
from tests.support.effort import share_of_examples

GOALS = [ek.Goals(level=None), ek.Goals(level=0.3), ek.Goals(level=0.05, leaders=0.5)]
BEST_FIRST = ("optimal", "feasible", "missed", "partial", "infeasible")


def random_limits(rng, cluster, lost):
    """Limits that often bind when these nodes are lost."""
    held = np.isin(cluster.placement.node, lost)
    kind = ["moves", "bytes", "node_in", "domain_in", "partition_moves", "several", "few"][
        rng.integers(0, 7)
    ]
    moves, node_in = int(rng.integers(0, held.sum() + 2)), int(rng.integers(0, 4))
    if kind == "bytes" and cluster.bytes_dimension >= 0:
        load = cluster.partitions.load.voter[cluster.placement.owner[held]]
        share = rng.uniform(0.0, 1.2)
        return ek.Limits(bytes=float(share * load[:, cluster.bytes_dimension].sum()))
    if kind == "domain_in":
        return ek.Limits(domain_in={"zone": int(rng.integers(0, 6))})
    if kind == "partition_moves":
        return ek.Limits(partition_moves=int(rng.integers(0, 2)))
    if kind == "several":
        return ek.Limits(moves=moves, node_in=node_in, node_out=0)
    if kind == "node_in":
        return ek.Limits(node_in=node_in, domain_out={"zone": 0})
    return ek.Limits(moves=moves, leader_changes=0)


def check_against_a_solve(cluster, lost, goals, limits):
    """Whether a session needed no search; what it answers is what was counted, and no worse."""
    session = ek.Session(cluster).apply(ek.Changes(down=lost))
    result, now = session.solve(goals=goals, limits=limits), session.cluster
    if not isinstance(result, ResultOfLoss):
        return False
    fresh, after = ek.solve(now, goals=goals, limits=limits), result.placement
    assert exceeded(now, after, limits) == []
    assert BEST_FIRST.index(result.status) <= BEST_FIRST.index(fresh.status)
    if result.status == "partial":
        assert result.stop_reason == fresh.stop_reason == "limits"
        assert result.message == fresh.message
    assert result.audit.counts == audit(now, after).counts
    assert result.audit.hard <= fresh.audit.hard
    assert result.regressions == {}
    ours, theirs = survival(now, after), survival(now, fresh.placement)
    assert len(ours.under_min_active) <= len(theirs.under_min_active)
    assert len(ours.without_quorum) <= len(theirs.without_quorum)
    way = compare(now, now.placement, after)
    for one in fields(way):
        ours, theirs = getattr(result.comparison, one.name), getattr(way, one.name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, err_msg=one.name)
    found, report = levelness(now, after), result.levelness
    np.testing.assert_allclose(report.loads, found.loads, rtol=1e-9, atol=1e-9)
    assert np.array_equal(report.leaders, found.leaders)
    return True


@share_of_examples(0.4)
@given(st.integers(0, 2**32 - 1), st.sampled_from(GOALS))
def test_budgets_bind_and_nothing_is_worse_than_after_a_solve(seed, goals):
    rng = np.random.default_rng(seed)
    small, large = ready_cluster(seed % 1000), ready_cluster(seed % 1000, more=300)
    for cluster in (small, large, cluster_to_the_brim(seed)):
        lost = sorted({*rng.integers(0, len(cluster.nodes), rng.integers(1, 3)).tolist()})
        check_against_a_solve(cluster, lost, goals, random_limits(rng, cluster, lost))


def large_cluster(seed=0, alike=False):
    """Forty nodes in five zones, level, with three replicas of 1,000 partitions."""
    rng = np.random.default_rng(seed)
    load = np.ones((1000, 2)) if alike else rng.uniform(0.5, 1.5, (1000, 2))
    cluster = ek.Cluster.from_arrays(
        capacity=[[150.0, 150.0]] * 40, load=load, leader_load=1.1 * load, replicas=3,
        min_active=np.arange(1000) % 3, domains={"zone": np.arange(40) % 5}, spread={"zone": 1},
        dimensions=("cpu", "disk"), bytes="disk",
    )  # fmt: skip
    return cluster.with_placement(ek.solve(cluster, goals=ek.Goals(level=0.1)).placement)


@pytest.mark.parametrize(
    "limits",
    [ek.Limits(moves=30), ek.Limits(bytes=30.0), ek.Limits(node_in=1), ek.Limits(node_in=2),
     ek.Limits(moves=500, node_in=5), ek.Limits(partition_moves=0), ek.Limits(node_out=0),
     ek.Limits(domain_in={"zone": 3}, domain_out={"zone": 0}, moves=20)],
)  # fmt: skip
def test_no_search_is_needed_whichever_budget_binds(limits):
    cluster = large_cluster()
    # of what two nodes held, the larger replica may wait where the smaller one has found a place
    for lost in ([3], [8, 20])[: 1 if limits.bytes else 2]:
        assert check_against_a_solve(cluster, lost, ek.Goals(level=0.2), limits)


def test_the_most_endangered_goes_first():
    """Two live replicas of each are left: those that need two to serve go before all others."""
    cluster = large_cluster()
    both = np.isin(cluster.placement.nodes, [3, 8]).sum(1) == 2
    session = ek.Session(cluster).apply(ek.Changes(down=[3, 8]))
    result = session.solve(goals=ek.Goals(level=0.2), limits=ek.Limits(moves=40))
    moved = np.unique(cluster.placement.owner[result.comparison.joined])
    needs = cluster.partitions.min_active
    hit = np.isin(cluster.placement.nodes, [3, 8]).any(1)
    urgency = 3 - hit.astype(int) - both - needs
    assert result.comparison.moves == 40
    assert urgency[moved].max() <= urgency[np.setdiff1d(np.flatnonzero(hit), moved)].min()


def test_under_a_budget_of_data_as_many_as_can_are_mended():
    cluster = large_cluster()
    result = ek.Session(cluster).apply(ek.Changes(down=3)).solve(limits=ek.Limits(bytes=20.0))
    disk = cluster.partitions.load.voter[:, 1]
    needs = cluster.partitions.min_active
    moved = np.unique(cluster.placement.owner[result.comparison.joined])
    waits = np.unique(cluster.placement.owner[result.placement.node == 3])
    first = needs[waits].max() if len(waits) else 0
    last = moved[needs[moved] == first]
    assert len(last) and disk[last].max() <= disk[waits[needs[waits] == first]].min()
    assert isinstance(result, ResultOfLoss) and result.comparison.bytes_moved <= 20.0


@pytest.mark.parametrize("at", [0, 1])
def test_a_callback_is_called_at_both_ends_and_may_interrupt(at):
    session = ek.Session(large_cluster()).apply(ek.Changes(down=3))
    goals, report = ek.Goals(level=0.2), []
    quick = session.solve(goals=goals, callback=report.append)
    assert [one.moves for one in report] == [0, quick.comparison.moves]
    assert quick.stop_reason == "tolerance" and report[0].seconds <= report[1].seconds
    report.clear()

    def interrupt(progress):
        report.append(progress)
        if len(report) == at + 1:
            raise StopIteration

    result = session.solve(goals=goals, callback=interrupt)
    assert len(report) == at + 1 and result.stop_reason == "interrupted"
    assert result.regressions == {}
    if at == 1:
        assert np.array_equal(result.placement.node, quick.placement.node)


def test_what_a_callback_raises_comes_through_and_harms_nothing():
    session = ek.Session(large_cluster()).apply(ek.Changes(down=3))
    before = session.solve()

    def fail(progress):
        raise ValueError(progress.phase)

    with pytest.raises(ValueError, match="losses"):
        session.solve(callback=fail)
    assert np.array_equal(session.solve().placement.node, before.placement.node)


def test_after_new_loads_the_answer_is_that_of_a_session_begun_anew(monkeypatch):
    cluster, goals = large_cluster(), ek.Goals(level=0.2)
    rng = np.random.default_rng(1)
    loads = [cluster.partitions.load.voter * rng.uniform(0.98, 1.02, (1000, 2)) for _ in range(3)]
    session = ek.Session(cluster).apply(ek.Changes(down=3))
    session.solve(goals=goals)
    session.apply(ek.Changes(up=3))
    for load in loads:
        session.apply(ek.Changes(load=load))
        begun = ek.Session(cluster.replace(load=load)).apply(ek.Changes(down=5))
        with monkeypatch.context() as patch:
            patch.setattr("evenkeel.methods.levelling.losses.compile_state", None)
            result = session.fork().apply(ek.Changes(down=5)).solve(goals=goals)  # compiles nothing
        assert isinstance(result, ResultOfLoss)
        for name in ("node", "leader"):
            expected = getattr(begun.solve(goals=goals).placement, name)
            assert np.array_equal(getattr(result.placement, name), expected)


def test_loads_and_losses_at_once_are_one_after_the_other():
    cluster, goals = large_cluster(), ek.Goals(level=0.2)
    load = cluster.partitions.load.voter * 1.01
    one = ek.Session(cluster).apply(ek.Changes(load=load, down=3))
    other = ek.Session(cluster).apply(ek.Changes(load=load)).apply(ek.Changes(down=3))
    results = [session.solve(goals=goals) for session in (one, other)]
    assert all(isinstance(result, ResultOfLoss) for result in results)
    assert np.array_equal(results[0].placement.node, results[1].placement.node)
    assert_equal("nodes", one.cluster.nodes, other.cluster.nodes)
    with pytest.raises(ek.InvalidInput) as wrong:
        one.apply(ek.Changes(load=[[1.0]], down="nobody"))
    assert {fault.path.split("[")[0] for fault in wrong.value.faults} == {"load", "down"}
    assert one.cluster.nodes.alive.sum() == 39


def test_threads_that_change_a_session_lose_nothing():
    cluster = large_cluster()
    for _ in range(3):
        session = ek.Session(cluster)

        def take_down_and_up(thread, session=session):
            for n in range(thread, 40, 4):
                session.apply(ek.Changes(down=n)).apply(ek.Changes(up=n))
                session.apply(ek.Changes(down=n))
                assert session.solve(goals=ek.Goals(level=None)).placement is not None

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(take_down_and_up, range(3)))
        alive = session.cluster.nodes.alive
        assert np.flatnonzero(alive).tolist() == list(range(3, 40, 4))


def test_budgets_leave_nothing_behind():
    """The next loss, without budgets, ends bit by bit as if there had been none before."""
    cluster = large_cluster()
    ready, alone = standing(cluster), standing(cluster)
    for limits in (ek.Limits(moves=5), ek.Limits(node_in=1), ek.Limits(bytes=9.0), None):
        found = ready.lose(np.array([7], np.int32), GOALS[1], limits)
        assert found is not None and (found.waits > 0) == (limits is not None)
    again = alone.lose(np.array([7], np.int32), GOALS[1])
    for one, other in zip(found, again, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    assert isinstance(ready, HealthyCluster)


@pytest.mark.small
def test_what_waits_by_hand():
    """Of three lost replicas one may move: the one whose partition has no other left to serve."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[30.0]] * 40, load=[[1.0]] * 52, min_active=[0, 0, 1, *[0] * 49],
        placement=[[0, 1], [0, 2], [0, 1], *[[3 + p % 37, 3 + (p + 1) % 37] for p in range(49)]],
    )  # fmt: skip
    found = standing(cluster).lose(np.array([0, 1], np.int32), GOALS[0], ek.Limits(moves=1))
    placed = dict(zip(found.replica.tolist(), found.node.tolist(), strict=True))
    assert found.waits == 4 and found.fits
    assert [k for k, n in placed.items() if n > 1] in ([4], [5])
    assert found.replicas[:2].sum() == 4 and found.moved.tolist() == [1.0]
