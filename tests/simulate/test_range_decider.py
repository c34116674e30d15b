"""CockroachDB's decisions one at a time, as the simulator asks for them."""

import numpy as np
import pytest

import evenkeel as ek
from bench.scenarios.layouts import Ranges, Stores
from evenkeel.methods.contract import StoreView
from evenkeel.model.placement import Role
from evenkeel.simulate.engine.world import World
from evenkeel.systems.cockroach.allocator.range_decider import RangeDecider
from tests.support.simulated import scenario

AVAILABLE, SUSPECT, DRAINING, UNKNOWN, DECOMMISSIONING, DEAD = 0, 2, 3, 4, 5, 6
VOTER, NON_VOTER = Role.VOTER, Role.NON_VOTER


def asked(ranges, *, stores=6, rules=None, status=None, objective="qps", **seen):
    """A decider that has seen everything as it is, but for what is said of nodes."""
    game = scenario(ranges, stores=stores, rules=rules)
    world = World(game.cluster, game.environment)
    decider = RangeDecider(world.snapshot(), objective, 1)
    states = np.zeros(len(world.health), np.int8)
    for node, state in (status or {}).items():
        states[node] = state
    given = {
        "status": states,
        "present": np.ones(len(states), bool),
        "load": world.load.copy(),
        "replicas": world.replicas.copy(),
        "leaders": world.leaders.copy(),
        "io": np.zeros(len(states)),
    }
    decider.look(StoreView(**(given | seen)))
    return decider


def one(stores=(0, 1, 2), **others):
    """One range, led from the first of its stores."""
    return Ranges(count=1, on=[(list(stores), 1.0)], **others)


@pytest.mark.parametrize(
    ("ranges", "status", "action", "comes", "goes"),
    [
        (one([0, 1], wanted=3), {}, "AddVoter", VOTER, None),
        (one(), {2: DEAD}, "ReplaceDeadVoter", VOTER, 2),
        (one(), {1: DECOMMISSIONING}, "ReplaceDecommissioningVoter", VOTER, 1),
        (one([0, 1, 2, 3], wanted=3), {3: DEAD}, "RemoveDeadVoter", None, 3),
        (one([0, 1, 2, 3], wanted=3), {1: DECOMMISSIONING}, "RemoveDecommissioningVoter", None, 1),
        (one([0, 1, 2], wanted=4, voters=3), {}, "AddNonVoter", NON_VOTER, None),
        (one([0, 1, 2, 3], non_voters=1), {3: DEAD}, "ReplaceDeadNonVoter", NON_VOTER, 3),
        (
            one([0, 1, 2, 3], non_voters=1),
            {3: DECOMMISSIONING},
            "ReplaceDecommissioningNonVoter",
            NON_VOTER,
            3,
        ),
        (
            one([0, 1, 2, 3], non_voters=1, wanted=3, voters=3),
            {3: DEAD},
            "RemoveDeadNonVoter",
            None,
            3,
        ),
        (one([0, 1, 2, 3], non_voters=1, wanted=3, voters=3), {}, "RemoveNonVoter", None, 3),
    ],
)
def test_each_action_leads_to_its_change(ranges, status, action, comes, goes):
    decider = asked(ranges, status=status)
    name, priority = decider.action(0)
    assert name == action
    assert priority > 0
    decision = decider.replicas(0)
    assert decision.reason == action
    assert decision.drop == (() if goes is None else (goes,))
    if comes is None:
        assert decision.add == ()
    else:
        ((node, role),) = decision.add
        assert role == comes
        assert node not in (0, 1, 2) or node == goes
        assert status.get(node, AVAILABLE) == AVAILABLE


def test_one_too_many_leaves_the_fullest_store():
    replicas = np.array([10, 10, 10, 90, 10, 10])
    decider = asked(one([0, 1, 2, 3], wanted=3), replicas=replicas)
    assert decider.action(0)[0] == "RemoveVoter"
    assert decider.replicas(0).drop == (3,)


def test_without_a_majority_nothing_is_done():
    decider = asked(one(), status={1: DEAD, 2: DEAD})
    assert decider.action(0) == ("unavailable", 0.0)
    assert decider.replicas(0) is None


def test_without_a_place_nothing_is_done_but_it_stays_urgent():
    decider = asked(one([0, 1], wanted=3), stores=3, status={2: SUSPECT})
    name, priority = decider.action(0)
    assert (name, priority > 0) == ("AddVoter", True)
    assert decider.replicas(0) is None


def test_a_leaseholder_that_goes_has_an_heir():
    leaders = np.array([50, 40, 2, 9, 9, 9])
    decider = asked(one(), status={0: DECOMMISSIONING}, leaders=leaders)
    decision = decider.replicas(0)
    assert decision.drop == (0,)
    assert decision.lead == 2


def test_counts_move_a_replica_once_and_not_back():
    replicas = np.array([60, 40, 40, 10, 40, 40])
    decider = asked(one(), replicas=replicas)
    assert decider.action(0) == ("consider rebalance", 0.0)
    decision = decider.replicas(0)
    assert decision.add == ((3, VOTER),)
    (gone,) = decision.drop
    now = [3 if node == gone else node for node in (0, 1, 2)]
    decider.place(0, np.array(now), np.zeros(3, np.uint8), 1)
    turned = np.array([40, 40, 40, 60, 40, 40])
    turned[gone] = 10
    decider.look(StoreView(
        status=np.zeros(6, np.int8), present=np.ones(6, bool), load=np.zeros((6, 5)),
        replicas=turned, leaders=np.zeros(6, np.int64), io=np.zeros(6),
    ))  # fmt: skip
    assert decider.replicas(0) is None


def test_voter_constraints_are_met_by_changing_roles():
    rule = ek.Rule(
        spread={"host": 1},
        place={"region=a": 2, "region=b": 2},
        voters_place={"region=a": 2, "region=b": 1},
    )
    ranges = one([0, 2, 3, 1], non_voters=1)
    decider = asked(ranges, stores=Stores({"a": 2, "b": 3}), rules=[rule])
    decision = decider.replicas(0)
    assert (decision.add, decision.drop) == ((), ())
    assert dict(decision.role) in ({1: VOTER, 2: NON_VOTER}, {1: VOTER, 3: NON_VOTER})


def test_leases_leave_stores_that_are_drained_or_have_too_many():
    assert asked(one(), status={0: DRAINING}).lease(0).lead in (1, 2)
    many = asked(one(), leaders=np.array([40, 10, 10, 10, 10, 10]))
    assert many.lease(0).lead in (1, 2)
    assert asked(one(), leaders=np.full(6, 10)).lease(0) is None
    assert asked(one(), leaders=np.full(6, 10), status={1: UNKNOWN}).lease(0) is None


def test_leases_go_where_they_are_preferred():
    rule = ek.Rule(spread={"host": 1}, lead=["region=b"])
    decider = asked(one([0, 1, 3]), stores=Stores({"a": 2, "b": 3}), rules=[rule])
    assert decider.lease(0).lead == 3


def test_a_hot_store_gives_leases_first_and_then_replicas():
    hot = Ranges(count=6, on=[([0, 1, 2], 1.0)], rate=6000.0, reads=1.0)
    decisions = asked(hot).load(0)
    leases = [one for one in decisions if not one.add]
    assert [one.lead for one in leases[:2]] in ([1, 2], [2, 1])
    assert len({one.partition for one in decisions}) == len(decisions)
    moved = [one for one in decisions if one.add]
    assert all(0 not in dict(one.add) for one in moved)
    assert asked(hot).load(4) == []


def test_a_lease_that_brings_nothing_stays():
    """Write-only ranges weigh the same on every replica (#171402)."""
    written = Ranges(count=60, on=[([0, 1, 2], 1.0)], rate=6000.0, block=100.0, raft_cpu=1e-3)
    decisions = asked(written, objective="cpu").load(0)
    assert all(one.add or one.drop for one in decisions)
