"""The ``balance`` engine of a pipeline: what each scope may touch, and what it must reach."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.control.engines.balance import BalanceEngine
from evenkeel.control.engines.engine import Cancelled, Scope, Task
from evenkeel.model.assignment import TOP, Assignment
from evenkeel.model.placement import Flag
from evenkeel.simulate.generators import expansion
from tests.judge.clusters import draw
from tests.judge.trial import try_one
from tests.support.clusters import clusters
from tests.support.effort import share_of_examples
from tests.support.pipeline.world import fresh, level
from tests.support.unlike_nodes import after_loss

ENGINE = BalanceEngine()


def pairs(assignment: Assignment) -> set[tuple[int, int]]:
    """Partition and node of each replica."""
    return set(zip(assignment.owner.tolist(), assignment.node.tolist(), strict=True))


def assignment(rows: list[list[int]]) -> Assignment:
    """Rows of nodes, each led by its first."""
    owner = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    state = np.array([min(slot, 1) for row in rows for slot in range(len(row))], np.uint8)
    node = np.array([n for row in rows for n in row], np.int32)
    return Assignment.of_rows(len(rows), owner, node, state)


def rows(given: Assignment) -> list[list[int]]:
    """Nodes of each partition, the leader first."""
    return [part.tolist() for part in np.split(given.node, given.first[1:-1])]


@st.composite
def tasks(draw):
    """A cluster with any feature, and an assignment of at most one replica per node."""
    cluster = draw(clusters(max_replicas=3))
    partitions, nodes = len(cluster.partitions), len(cluster.nodes)
    given = [
        draw(st.lists(st.integers(0, nodes - 1), max_size=min(4, nodes), unique=True))
        if nodes
        else []
        for _ in range(partitions)
    ]
    return cluster, assignment(given)


def checked(scope: Scope, cluster, current: Assignment):
    """Run, and check what holds in every scope."""
    answer = ENGINE(Task(scope, cluster, current))
    after = answer.assignment
    assert len(after) == len(current)
    nodes = cluster.nodes
    stays = nodes.may_hold | (nodes.alive & ~nodes.gone)
    if scope is not Scope.OVERWRITE and answer.placed:
        assert stays[after.node].all()
    came = pairs(after) - pairs(current)
    assert all(nodes.may_receive[n] for _, n in came)
    if len(pairs(after)) == len(after.node):  # a rule may let several replicas share a node
        assert answer.placed == len(came)
    tops = np.bincount(after.owner[after.state == TOP], minlength=len(after))
    was = np.bincount(current.owner[current.state == TOP], minlength=len(after))
    assert (tops <= np.maximum(was, 1)).all()
    return answer


@share_of_examples(0.5)
@given(tasks())
def test_an_emergency_moves_only_what_is_lost(given):
    cluster, current = given
    answer = checked(Scope.EMERGENCY, cluster, current)
    holds = cluster.nodes.may_hold
    kept = {(p, n) for p, n in pairs(current) if holds[n]}
    assert kept <= pairs(answer.assignment)
    before, after = np.diff(current.first), np.diff(answer.assignment.first)
    assert (after <= before).all()
    if len(kept) == len(current.node):
        assert answer.assignment is current
    again = ENGINE(Task(Scope.EMERGENCY, cluster, answer.assignment))
    assert again.placed == 0 or answer.unplaced


@share_of_examples(0.5)
@given(tasks(), st.integers(0, 3))
def test_an_overwrite_adds_and_takes_nothing(given, least):
    cluster, current = given
    wanted = cluster.partitions.replicas
    active = np.minimum(wanted, least).astype(np.int32)
    cluster = replace(cluster, partitions=replace(cluster.partitions, min_active=active))
    answer = checked(Scope.OVERWRITE, cluster, current)
    assert pairs(current) <= pairs(answer.assignment)
    serves = cluster.nodes.alive & ~cluster.nodes.gone
    live = np.bincount(current.owner[serves[current.node]], minlength=len(current))
    for p, n in pairs(answer.assignment) - pairs(current):
        assert serves[n] and live[p] < active[p]
    after = answer.assignment
    now = np.bincount(after.owner[serves[after.node]], minlength=len(after))
    assert (now <= np.maximum(live, active)).all()
    assert answer.unplaced == np.maximum(active - now, 0).sum()


@share_of_examples(0.5)
@given(tasks(), st.integers(0, 3))
def test_a_partial_comes_to_rest(given, least):
    cluster, current = given
    engine = BalanceEngine(extra_moves=0.1, least_moves=least)
    state = checked(Scope.PARTIAL, cluster, current).assignment
    for _ in range(20):  # each of these moves helps by a fair part, so they end
        following = engine(Task(Scope.PARTIAL, cluster, state))
        if following.assignment.same_as(state):
            break
        state = following.assignment
    else:
        raise AssertionError("it never comes to rest")


@given(tasks(), st.sampled_from(Scope), st.integers(0, 2))
def test_once_stopped_it_is_cancelled(given, scope, after):
    cluster, current = given
    asked = iter(range(10**6))
    task = Task(scope, cluster, current, stop=lambda: next(asked) >= after)
    try:
        answer = ENGINE(task)
    except Cancelled:
        return
    assert next(asked) <= after
    assert answer.assignment.same_as(ENGINE(Task(scope, cluster, current)).assignment)


def test_stopping_is_asked_for_between_slices_of_work():
    cluster = after_loss(2_000, 240, 6, seed=2).cluster
    current = Assignment.of_placement(cluster.placement)
    count = 0

    def stop() -> bool:
        nonlocal count
        count += 1
        return count > 2

    with pytest.raises(Cancelled):
        BalanceEngine(level=0.0)(Task(Scope.PARTIAL, cluster, current, stop=stop))
    assert count == 4  # once more, to tell it from a keyboard interrupt


def small(**more):
    """Six nodes in three zones, with room for eight each."""
    given = {
        "capacity": [[8.0]] * 6, "load": [[1.0]] * 6, "domains": {"zone": [0, 0, 1, 1, 2, 2]},
        "spread": {"zone": 1}, "replicas": 2, "placement": np.full((6, 2), -1),
    }  # fmt: skip
    return ek.Cluster.from_arrays(**given | more)


def test_parameters_are_checked_together():
    with pytest.raises(ek.InvalidInput) as told:
        BalanceEngine(level=-0.1, extra_moves=-1.0, spare_leaders="1")  # type: ignore[arg-type]
    assert [fault.path for fault in told.value.faults] == ["level", "extra_moves", "spare_leaders"]


def test_limits_that_are_not_kept_are_refused():
    for limits in (5, ek.Limits(leader_changes=1)):
        with pytest.raises(ek.InvalidInput, match="limits"):
            BalanceEngine(limits=limits)  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [0, 1, 2])
def test_a_partial_keeps_budgets_of_nodes_and_an_emergency_is_exempt(most):
    cluster = small(
        domains=None, spread=None, replicas=1, load=[[1.0]] * 12, placement=[[0]] * 12,
        capacity=[[16.0]] * 6,
    )  # fmt: skip
    engine = BalanceEngine(limits=ek.Limits(node_in=most))
    current = assignment([[0]] * 12)
    after = engine(Task(Scope.PARTIAL, cluster, current)).assignment.node
    assert np.bincount(after, minlength=6)[1:].tolist() == [most] * 5
    lost = engine(Task(Scope.EMERGENCY, cluster.down("n0"), current)).assignment.node
    assert len(lost) == 12 and not (lost == 0).any()


def test_nothing_wrong_returns_what_came():
    cluster = small()
    current = ENGINE(Task(Scope.GLOBAL, cluster, assignment([[]] * 6))).assignment
    assert sorted(np.bincount(current.node)) == [2] * 6
    for scope in (Scope.EMERGENCY, Scope.OVERWRITE):
        assert ENGINE(Task(scope, cluster, current)).assignment is current
    for scope in (Scope.PARTIAL, Scope.GLOBAL):
        assert ENGINE(Task(scope, cluster, current)).assignment.same_as(current)


def test_an_emergency_leaves_short_rows_short_and_surplus_where_it_is():
    gone = np.array([True, False, False, False, False, False])
    cluster = small(gone=gone, alive=~gone)
    answer = ENGINE(
        Task(Scope.EMERGENCY, cluster, assignment([[0, 2], [2], [2, 4, 1], [], [4, 2], [3, 5]]))
    )
    found = rows(answer.assignment)
    assert sorted(found[0])[0] != 0 and 2 in found[0] and len(found[0]) == 2
    assert [len(row) for row in found] == [2, 1, 3, 0, 2, 2]
    assert (answer.placed, answer.unplaced) == (1, 0)


def test_a_replica_without_a_place_is_left_out_and_stops_nobody():
    # both zones that remain hold partition 0 already; partition 1 has room
    dead = np.array([True, True, False, False, False, False])
    cluster = small(alive=~dead, keeps=~dead, replicas=[3, 2, 2, 2, 2, 2])
    current = assignment([[0, 2, 4], [1, 2], [2, 4], [3, 5], [3, 4], [2, 5]])
    for scope in (Scope.EMERGENCY, Scope.PARTIAL):
        answer = ENGINE(Task(scope, cluster, current))
        assert answer.unplaced == 1
        assert sorted(rows(answer.assignment)[0]) == [2, 4]
        assert len(rows(answer.assignment)[1]) == 2
        assert not np.isin(answer.assignment.node, [0, 1]).any()


def test_a_replica_without_a_place_stays_where_it_still_lives():
    evacuating = np.array([True, True, False, False, False, False])
    cluster = small(keeps=~evacuating, replicas=[3, 2, 2, 2, 2, 2])
    current = assignment([[0, 2, 4], [1, 2], [2, 4], [3, 5], [3, 4], [2, 5]])
    for scope in (Scope.EMERGENCY, Scope.PARTIAL):
        answer = ENGINE(Task(scope, cluster, current))
        assert answer.unplaced == 1
        assert sorted(rows(answer.assignment)[0]) == [0, 2, 4]
        assert 1 not in answer.assignment.node


def test_an_overwrite_counts_only_what_lives():
    down = np.array([True, True, False, False, False, False])  # in their delay window
    cluster = small(alive=~down, min_active=2)
    current = assignment([[0, 2], [2, 4], [1, 3], [5, 3], [4, 2], [0, 4]])
    answer = ENGINE(Task(Scope.OVERWRITE, cluster, current))
    found = rows(answer.assignment)
    assert [len(row) for row in found] == [3, 2, 3, 2, 2, 3]
    for p in (0, 2, 5):
        live = [n for n in found[p] if not down[n]]
        assert len({n // 2 for n in live}) == len(live) == 2
        assert found[p][0] in live  # one of them leads
    assert answer.placed == 3
    states = np.bincount(answer.assignment.owner[answer.assignment.state == TOP])
    assert states.tolist() == [1] * 6


def test_a_partial_places_new_groups_and_ignores_the_baseline():
    cluster = small()
    current = assignment([[0, 2], [1, 3], [2, 4], [3, 5], [], []])
    far = assignment([[5, 3], [4, 2], [3, 1], [2, 0], [1, 5], [0, 4]])
    one = ENGINE(Task(Scope.PARTIAL, cluster, current, baseline=far))
    other = ENGINE(Task(Scope.PARTIAL, cluster, current))
    assert one.assignment.same_as(other.assignment)
    assert (one.placed, one.unplaced) == (4, 0)
    assert pairs(current) <= pairs(one.assignment)


def test_a_large_partition_displaces_smaller_ones():
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0]] * 3, load=[[3.0]] * 6 + [[8.0]], replicas=1,
        placement=np.full((7, 1), -1),
    )  # fmt: skip
    current = assignment([[0], [0], [1], [1], [2], [2], []])
    engine = BalanceEngine(extra_moves=0.3, least_moves=0)
    answer = engine(Task(Scope.PARTIAL, cluster, current))
    assert answer.unplaced == 0
    load = np.bincount(
        answer.assignment.node, cluster.partitions.load.voter[answer.assignment.owner, 0]
    )
    assert sorted(load) == [8.0, 9.0, 9.0]
    none_to_spare = BalanceEngine(extra_moves=0.0, least_moves=0)
    assert none_to_spare(Task(Scope.PARTIAL, cluster, current)).unplaced == 1


@pytest.mark.parametrize(("spare", "most"), [(0, 8), (5, 5), (9, 5)])
def test_a_partial_keeps_its_budget(spare, most):
    cluster = small(load=[[1.0]] * 12, replicas=2, placement=np.full((12, 2), -1))
    gone = np.array([True, False, False, False, False, False])
    cluster = replace(cluster, nodes=replace(cluster.nodes, gone=gone, alive=~gone))
    current = assignment([[0, 2]] * 3 + [[2, 4]] * 4 + [[4, 2]] * 3 + [[1, 2]] * 2)
    engine = BalanceEngine(extra_moves=0.0, least_moves=spare)
    answer = engine(Task(Scope.PARTIAL, cluster, current))
    # 12 stand on a node that takes 8, so 4 have to leave it, beside the 3 that are lost; 9 have to
    # leave nodes for none to hold more than 5
    assert answer.placed <= 3 + 4 + spare
    assert np.bincount(answer.assignment.node).max() == most
    assert answer.unplaced == 0


def test_pinned_replicas_stay():
    placement = [[0, 2]] * 6
    flags = np.zeros((6, 2), np.uint16)
    flags[:4] = Flag.PINNED
    cluster = small(placement=placement, flags=flags)
    answer = BalanceEngine(extra_moves=1.0)(
        Task(Scope.PARTIAL, cluster, Assignment.of_placement(cluster.placement))
    )
    found = rows(answer.assignment)
    assert all(sorted(row) == [0, 2] for row in found[:4])
    assert not any(0 in row or 2 in row for row in found[4:])


@pytest.mark.parametrize("scope", [Scope.GLOBAL, Scope.PARTIAL, Scope.EMERGENCY])
def test_a_replica_pinned_to_a_dead_node_waits_and_no_other_takes_its_place(scope):
    flags = np.zeros((6, 2), np.uint16)
    flags[:4, 0] = Flag.PINNED
    cluster = small(placement=[[0, 2]] * 6, flags=flags, alive=[False, *[True] * 5])
    as_it_was = Assignment.of_placement(cluster.placement)
    live = as_it_was.node != 0
    without = Assignment.of_rows(
        6, as_it_was.owner[live], as_it_was.node[live], np.zeros(6, np.uint8)
    )
    for listed, others in ((as_it_was, 2), (without, 1 if scope is Scope.EMERGENCY else 2)):
        found = rows(BalanceEngine()(Task(scope, cluster, listed)).assignment)
        assert not any(0 in row for row in found)
        assert [len(row) for row in found] == [1] * 4 + [others] * 2


def test_a_small_budget_gets_there_as_well():
    """However little of the excess a run takes away, if each of its moves takes away its part."""
    placement = np.stack([np.arange(150) % 3, (np.arange(150) + 1) % 3], axis=1)
    cluster = ek.Cluster.from_arrays(
        capacity=[[1e6]] * 9, load=[[2.0], [3.0]] * 75, placement=placement
    )
    engine = BalanceEngine(extra_moves=0.01, least_moves=1)
    held = Assignment.of_placement(cluster.placement)
    for _ in range(100):
        found = engine(Task(Scope.PARTIAL, cluster, held, baseline=held)).assignment
        if found.same_as(held):
            break
        held = found
    load = np.bincount(held.node, cluster.partitions.load.voter[held.owner, 0], minlength=9)
    assert load.max() <= 1.05 * load.mean()


@pytest.mark.parametrize(("least", "new"), [(5, 5), (5, 8), (20, 8)])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_budget_that_does_not_reach_levels_new_nodes_all_the_same(seed, least, new):
    """Leaders pile up on some nodes in passing, and a move may lighten the wrong dimension."""
    nodes, partitions = 20, 300
    load = np.random.default_rng(seed).integers(2, 6, (partitions, 2)).astype(float)

    def cluster(alive: int) -> ek.Cluster:
        return ek.Cluster.from_arrays(
            capacity=np.full((nodes, 2), 400.0), load=load, replicas=3,
            domains={"zone": np.arange(nodes) % 5}, spread={"zone": 1},
            alive=np.arange(nodes) < alive,
        )  # fmt: skip

    engine, whole = BalanceEngine(least_moves=least, extra_moves=0.0), cluster(nodes)
    held, before = fresh(engine, cluster(nodes - new)), None
    for _ in range(150):
        before, held = held, engine(Task(Scope.PARTIAL, whole, held)).assignment
        if held.same_as(before):
            break
    assert held.same_as(before)
    assert level(whole, held) <= level(whole, fresh(engine, whole)) + 0.02


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_comes_to_rest_where_leaders_carry_more_than_others(seed):
    cluster = expansion(partitions=600, nodes=30, zones=5, seed=seed)
    cluster = cluster.with_placement(ek.solve(cluster).placement)
    now = Assignment.of_placement(cluster.placement)
    for _ in range(8):
        before, now = now, ENGINE(Task(Scope.PARTIAL, cluster, now)).assignment
        if now.same_as(before):
            break
    assert now.same_as(before)


@pytest.mark.parametrize(
    ("family", "seed"),
    [
        ("states", 3100011),  # pinned to a dead node
        ("extras", 3100009),
        ("finer_budgets", 3100001),  # one partial run after another, in a transient dimension
        ("extras", 3100035),
        ("anything", 3100023),
    ],
)
def test_a_pipeline_keeps_what_a_solve_keeps(family: str, seed: int) -> None:
    assert try_one(draw(family, seed), "pipeline").findings == []
