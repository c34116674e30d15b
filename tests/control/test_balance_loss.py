"""After nodes are lost: how level the ``balance`` engine gets, and for how many moves."""

import numpy as np
import pytest

from evenkeel.control.engines.balance import BalanceEngine
from evenkeel.control.engines.engine import Answer, Scope, Task
from evenkeel.measure.audit import audit
from evenkeel.measure.bounds import bounds
from evenkeel.measure.bounds.moves import rehoming_level
from evenkeel.measure.compare import compare
from evenkeel.measure.levelness import levelness
from evenkeel.model.assignment import Assignment
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Goals
from evenkeel.model.placement import Placement
from tests.support.unlike_nodes import Loss, after_loss, fair, fullest

EXTRA = 0.02


def placement_of(cluster: Cluster, assignment: Assignment) -> Placement:
    """Rows of an assignment in the cluster's slots, the top state first."""
    assert (np.diff(assignment.first) <= np.diff(cluster.placement.first)).all()
    node = np.full(len(cluster.placement.node), -1, np.int32)
    held = np.diff(assignment.first)
    at = np.arange(len(assignment.node)) - np.repeat(assignment.first[:-1], held)
    node[cluster.placement.first[assignment.owner] + at] = assignment.node
    return cluster.placement.replaced(node, np.zeros(len(cluster.placement), np.int16))


def run(scope: Scope, cluster: Cluster, current: Assignment) -> tuple[Answer, Placement]:
    answer = BalanceEngine(extra_moves=EXTRA)(Task(scope, cluster, current))
    return answer, placement_of(cluster, answer.assignment)


@pytest.fixture(scope="module", params=[(1, 0.0), (4, 0.02)], ids=["level", "drifted"])
def loss(request) -> Loss:
    """25,032 replicas on 1,000 nodes of which 50 are gone."""
    seed, drift = request.param
    return after_loss(seed=seed, drift=drift)


def test_without_an_extra_move_the_level_is_at_the_proven_floor(loss):
    cluster = loss.cluster
    answer, after = run(Scope.EMERGENCY, cluster, Assignment.of_placement(cluster.placement))
    found = compare(cluster, cluster.placement, after)
    assert (found.moves, found.forced, answer.placed, answer.unplaced) == (loss.lost,) * 3 + (0,)
    assert audit(cluster, after).ok
    floor = rehoming_level(cluster) / fair(cluster).max()
    assert floor > 1.05
    assert floor <= fullest(cluster, after)[0] <= floor + 0.01
    least = bounds(cluster, Goals(level=None)).leaders
    assert levelness(cluster, after).leaders.max() <= least + 1


def test_two_in_a_hundred_extra_moves_make_it_level(loss):
    cluster = loss.cluster
    budget = EXTRA * len(cluster.placement.node)
    current = Assignment.of_placement(cluster.placement)
    rehomed, between = run(Scope.EMERGENCY, cluster, current)
    spent = compare(cluster, cluster.placement, between).moves - loss.lost
    least = bounds(cluster, Goals(level=None)).leaders
    for start in (current, rehomed.assignment):
        answer, after = run(Scope.PARTIAL, cluster, start)
        extra = compare(cluster, cluster.placement, after).moves - loss.lost + spent
        assert 0 < extra <= budget
        assert audit(cluster, after).ok
        assert max(fullest(cluster, after)) <= 1.01
        assert levelness(cluster, after).leaders.max() <= least + 1
        again, _ = run(Scope.PARTIAL, cluster, answer.assignment)
        assert again.assignment.same_as(answer.assignment)
        assert again.placed == 0


def test_same_input_and_seed_give_the_same_bits(loss):
    task = Task(
        Scope.PARTIAL, loss.cluster, Assignment.of_placement(loss.cluster.placement), seed=5
    )
    one, other = BalanceEngine()(task), BalanceEngine()(task)
    assert one.assignment.same_as(other.assignment)


def test_a_baseline_is_level_whether_from_nothing_or_from_the_last_one(loss):
    cluster = loss.cluster
    nothing = Assignment.of_placement(
        cluster.placement.replaced(
            np.full(len(cluster.placement.node), -1, np.int32), cluster.placement.leader
        )
    )
    for start in (nothing, Assignment.of_placement(cluster.placement)):
        answer, after = run(Scope.GLOBAL, cluster, start)
        assert audit(cluster, after).ok
        assert max(fullest(cluster, after)) <= 1.01
        again, _ = run(Scope.GLOBAL, cluster, answer.assignment)
        assert again.assignment.same_as(answer.assignment)


@pytest.mark.parametrize(("partitions", "nodes", "share"), [(600, 60, 0.1), (2_000, 100, 0.05)])
def test_smaller_clusters_are_as_good(partitions, nodes, share):
    cluster = after_loss(partitions, nodes, 6, seed=3, share=share).cluster
    current = Assignment.of_placement(cluster.placement)
    _, after = run(Scope.EMERGENCY, cluster, current)
    floor = rehoming_level(cluster) / fair(cluster).max()
    assert fullest(cluster, after)[0] <= max(floor, 1.0) + 0.01
    answer, after = run(Scope.PARTIAL, cluster, current)
    assert fullest(cluster, after)[0] <= 1.01
    assert answer.unplaced == 0
