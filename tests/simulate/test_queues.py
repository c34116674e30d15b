"""Queues of a system without a centre: pace, one worker, priorities, purgatory, and who wins."""

from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from bench.scenarios.layouts import Ranges
from evenkeel import simulate
from evenkeel.methods.contract import Decider, Decision
from evenkeel.methods.registry import METHODS, Method
from evenkeel.model.placement import Role
from evenkeel.simulate import Health
from evenkeel.simulate.engine.stage import Stage
from evenkeel.simulate.engine.world import World
from evenkeel.simulate.events import At, NodesBecome
from evenkeel.simulate.play import (
    NO_CHECK,
    RETRY,
    RangeByRange,
    WorkQueue,
    inverted,
    never_done,
    pace,
)
from tests.support.simulated import ONE_SECOND, scenario


class Toy(Decider):
    """Says what the test tells it, and notes what it is asked."""

    told: "dict[str, object]" = {}
    asked: "list[tuple[str, int]]" = []

    def __init__(self, cluster, objective, seed):
        self.row = list(cluster.placement.nodes)

    def place(self, partition, node, role, leader):
        self.row[partition] = node.copy()

    def look(self, sight):
        self.sight = sight

    def action(self, partition):
        return self.told.get("action", lambda toy, p: ("consider rebalance", 0.0))(self, partition)

    def replicas(self, partition):
        self.asked.append(("replicas", partition))
        return self.told.get("replicas", lambda toy, p: None)(self, partition)

    def lease(self, partition):
        return self.told.get("lease", lambda toy, p: None)(self, partition)

    def load(self, node):
        self.asked.append(("load", node))
        return self.told.get("load", lambda toy, n: [])(self, node)


@pytest.fixture
def toy(monkeypatch):
    """A decider of its own in the registry; what it says is set by the test."""
    monkeypatch.setattr(Toy, "told", {})
    monkeypatch.setattr(Toy, "asked", [])
    toy = Method("toy", "", "for tests", decider="tests.simulate.test_queues:Toy")
    monkeypatch.setitem(METHODS, "toy", toy)
    return Toy


def play(game):
    """Play with the toy, and keep the stage to look at it afterwards."""
    controller = RangeByRange("toy", game, 0)
    stage = Stage(game, controller, 0)
    ends = []
    ended = controller.ended

    def noted(number, change, made):
        ends.append((stage.now / 1000, change, made))
        ended(number, change, made)

    controller.ended = noted
    return stage.play("toy"), ends


def up_replicates(toy, partition):
    """Two replicas, where three are wanted."""
    have = int((toy.row[partition] >= 0).sum())
    return ("AddVoter", 10_000.0) if have < 3 else ("consider rebalance", 0.0)


def adds_third(toy, partition):
    if (toy.row[partition] == 2).any():
        return None
    return Decision(partition, add=((2, Role.VOTER),), reason="AddVoter")


def test_the_worst_waits_for_its_turn_only():
    queue = WorkQueue()
    assert queue.push(1, 0.0)
    assert not queue.push(1, 0.0)
    assert queue.push(2, 500.0)
    assert queue.push(1, 900.0)
    assert len(queue) == 2
    assert [queue.pop(), queue.pop(), queue.pop()] == [(1, 900.0), (2, 500.0), None]


def test_what_nothing_can_be_done_for_is_tried_again_after_a_minute():
    queue = WorkQueue()
    queue.purgatory = {4: 0.0, 5: 30.0}
    queue.retry(RETRY)
    assert queue.pop() == (4, NO_CHECK)
    assert queue.purgatory == {5: 30.0}


def test_pace_and_inversion():
    assert [pace(n) for n in (0, 1, 600, 1200, 10**9)] == [1.0, 1.0, 1.0, 0.5, 0.01]
    assert inverted(5000.0, 900.0)
    assert not inverted(900.0, 5000.0)
    assert not inverted(949.0, 851.0)
    assert inverted(951.0, 949.0)
    assert inverted(1050.0, 1001.0), "halves count as the higher hundred, odd or even"


def test_one_worker_takes_one_range_at_a_time_at_the_pace_of_the_scanner(toy):
    toy.told |= {"action": up_replicates, "replicas": adds_third}
    ranges = Ranges(count=6, on=[([0, 1], 1.0)], wanted=3, mebibytes=2.0)
    history, ends = play(scenario(ranges))
    assert history.astray("under")[-1] == 0
    began = [at - 2.1 for at, _, _ in ends]
    assert np.allclose(began, [0.0, 2.1, 4.2, 6.3, 8.4, 10.5], atol=0.02)


def test_leases_wait_for_each_other_and_not_for_replicas(toy):
    toy.told["lease"] = lambda toy, p: Decision(p, lead=1)
    game = scenario(Ranges(count=4, on=[([0, 1], 1.0)], mebibytes=1.0), minutes=1.0)

    def memoize(toy, p):
        return Decision(p, lead=1) if toy.sight.leaders[0] > 0 else None

    toy.told["lease"] = memoize
    history, ends = play(game)
    at = [round(at, 3) for at, _, made in ends if made]
    assert np.diff(at).min() >= 1.0
    assert history.leaders[-1].tolist() == [0, 4, 0, 0]


def test_the_more_urgent_lease_goes_first(toy):
    """All are found while the first is under way; of the others the last is urgent."""

    def lease(toy, p):
        if toy.row[p][0] != 0 or p in moved:
            return None
        return Decision(p, lead=1, urgency=1001.0 if p == 3 else 0.0)

    moved = set()
    toy.told["lease"] = lease
    game = scenario(Ranges(count=4, on=[([0, 1], 1.0)], mebibytes=1.0), minutes=1.0, lead_gap=10.0)
    _, ends = play(game)
    order = [change.partition for _, change, made in ends if made]
    assert order.index(3) == 1


def test_what_is_less_urgent_when_its_turn_comes_gives_way(toy):
    """The first range takes long; meanwhile the second becomes a mere improvement."""
    ranges = Ranges(count=2, on=[([0, 1], 1.0)], mebibytes=5.0)
    seen = []

    def action(toy, p):
        late = bool((toy.row[1 - p] == 2).any())
        return ("consider rebalance", 0.0) if late else ("ReplaceDeadVoter", 12_000.0)

    def replicas(toy, p):
        seen.append((p, action(toy, p)[0]))
        return None if (toy.row[p] == 2).any() else Decision(p, add=((2, Role.VOTER),))

    toy.told |= {"action": action, "replicas": replicas}
    history, ends = play(scenario(ranges, minutes=1.0))
    assert [change.partition for _, change, _ in ends][:1] == [1]
    second = [what for p, what in seen if p == 0]
    assert second
    assert set(second) == {"consider rebalance"}, "it came back as what it had become"
    assert history.total("failed") == 0


def test_purgatory_is_left_when_something_happens(toy):
    """No target: tried at once, after a minute, and as soon as a node joins."""
    ranges = Ranges(count=1, on=[([0, 1], 1.0)], wanted=3, mebibytes=1.0)
    joins = [
        NodesBecome(nodes=[2], health=Health.ABSENT),
        NodesBecome(at=100.0, nodes=[2], health=Health.UP),
    ]
    tried = []

    def replicas(toy, p):
        tried.append(toy.sight.present[2])
        return adds_third(toy, p) if toy.sight.present[2] else None

    toy.told |= {"action": up_replicates, "replicas": replicas}
    history, ends = play(scenario(ranges, stores=3, events=joins))
    assert [round(at, 1) for at, _, _ in ends] == [101.1]
    assert history.astray("under")[-1] == 0
    assert tried.count(False) <= 3 + 100, "the scanner looks, the queue does not spin"


def test_what_is_too_large_for_the_deadline_is_named_and_never_done(toy):
    toy.told |= {"action": up_replicates, "replicas": adds_third}
    kinds = [
        Ranges(count=1, on=[([0, 1], 1.0)], wanted=3, mebibytes=61.0),
        Ranges(count=1, on=[([0, 1], 1.0)], wanted=3, mebibytes=59.0),
    ]
    game = scenario(*kinds, minutes=10.0, deadline=60.0)
    assert never_done(World(game.cluster, game.environment), game.environment) == [0]
    history, _ = play(game)
    assert len(history.warnings) == 1
    assert history.warnings[0].startswith("p0: a snapshot of it takes longer than the 60 s")
    assert history.total("expired") >= 3
    assert history.astray("under")[-1] == 1
    assert history.replicas[-1].tolist() == [2, 2, 1, 0]


def test_what_has_become_too_large_is_named_too(toy):
    game = scenario(Ranges(count=2, on=[([0, 1], 1.0)], mebibytes=1.0), deadline=60.0, minutes=4.0)
    grows = replace(game.environment, growth=np.array([ONE_SECOND, 0.0]))
    history, _ = play(replace(game, environment=grows))
    assert [text.partition(":")[0] for text in history.warnings] == ["p0"]


def test_a_relocation_wins_over_the_queue(toy):
    """The queue works on the range when the rebalancer of load wants it elsewhere, and after it."""
    ranges = Ranges(count=1, on=[([0, 1, 2], 1.0)], mebibytes=100.0)
    game = scenario(ranges, stores=6, minutes=10.0, deadline=600.0)

    def load(toy, node):
        if node != 0 or (toy.row[0] == 4).any() or toy.asked.count(("load", 0)) > 1:
            return []
        return [Decision(0, add=((4, Role.VOTER),), drop=(1,), lead=0, reason="load")]

    def replicas(toy, p):
        if (toy.row[0] == 5).any():
            return None
        return Decision(0, add=((5, Role.VOTER),), drop=(2,), reason="rebalance")

    toy.told |= {"load": load, "replicas": replicas}
    history, ends = play(game)
    order = [(change.reason, made) for _, change, made in ends]
    assert order == [("rebalance", True), ("load", True)], "nobody races: each is done once"
    assert history.replicas[-1].tolist() == [1, 0, 0, 0, 1, 1]
    logged = [(entry.change.by, entry.outcome) for entry in history.log]
    assert logged == [("replicate s1", "made"), ("load s1", "made")]


def test_an_improvement_never_takes_a_replica_back(toy):
    def to_and_fro(toy, p):
        here = toy.row[p].tolist()
        source, target = (2, 3) if 2 in here else (3, 2)
        return Decision(p, add=((target, Role.VOTER),), drop=(source,), reason="rebalance")

    toy.told["replicas"] = to_and_fro
    game = scenario(Ranges(count=1, on=[([0, 1, 2], 1.0)]), minutes=5.0)
    history, _ = play(game)
    assert history.total("moves") == 1
    assert history.total("thrash") == 0


def test_a_cluster_at_rest_is_not_asked_again_until_something_happens(toy):
    ranges = Ranges(count=10, on=[([0, 1, 2], 1.0)])
    event = At(1200.0, ek.Changes(replicas=3))
    play(scenario(ranges, minutes=40.0, events=[event], gossip_interval=10.0))
    asked = [p for what, p in toy.asked if what == "replicas"]
    assert len(asked) <= 2 * 2 * 10 + 20
    assert set(asked) == set(range(10))


def test_a_node_that_does_not_answer_runs_nothing(toy):
    dies = NodesBecome(nodes=[0], health=Health.DEAD)
    play(scenario(Ranges(count=2, on=[([0, 1, 2], 1.0)]), events=[dies]))
    assert ("load", 0) not in toy.asked
    assert ("load", 1) in toy.asked


def test_parts_can_be_switched_off(toy):
    toy.told |= {
        "replicas": lambda toy, p: Decision(p, add=((3, Role.VOTER),), drop=(2,)),
        "lease": lambda toy, p: Decision(p, lead=1),
    }
    off = ["replicate", "lease", "store"]
    history, ends = play(scenario(Ranges(count=2, on=[([0, 1, 2], 1.0)]), switched_off=off))
    assert not ends
    assert not toy.asked
    assert simulate.run(scenario(switched_off=off), "toy").total("moves") == 0
    assert history.method == "toy"
