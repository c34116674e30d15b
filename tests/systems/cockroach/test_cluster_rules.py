"""What a cluster asks beyond what CockroachDB knows: kept by every decision of a run."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.methods.shared.compile import compile_state
from evenkeel.model.placement import Placement
from evenkeel.systems.cockroach.allocator.actions import rules_of
from evenkeel.systems.cockroach.allocator.intake import fleet_of
from evenkeel.systems.cockroach.allocator.range_decider import ReplicateRun
from evenkeel_kernels.cockroach import tables as kernel
from evenkeel_kernels.cockroach.changes import nothing_left, room_to_log
from tests.judge.case import build
from tests.judge.clusters import FAMILIES, draw
from tests.judge.trial import try_one
from tests.support.effort import mostly_long
from tests.systems.cockroach.test_queue import grown

SOFT = "wish dropped soft_max_domains"


@pytest.mark.parametrize("family", mostly_long(list(FAMILIES), ["tight", "extras", "lost_zone"]))
def test_the_guard_has_nothing_to_do(family):
    for seed in range(20100, 20108):
        case = draw(family, seed)
        cluster, _, _ = build(case)
        assert (seed, ek.solve(cluster, "cockroach", seed=seed).regressions) == (seed, {})
        found = try_one(case, "cockroach").findings
        # decisions keep hard rules, and know no soft limits of domains
        assert (seed, [one for one in found if one.kind != SOFT]) == (seed, [])


@pytest.mark.parametrize(
    ("family", "seed"), [("extras", 440592), ("anything", 440150), ("anything", 420186)]
)
def test_what_leaves_a_dead_node_comes_to_a_domain_that_did_not_carry_it(family, seed):
    case = draw(family, seed)
    assert not ek.solve(build(case)[0], "cockroach").regressions
    assert try_one(case, "cockroach").findings == []


def settled(run):
    while run.step(1000) or run.next_pass():
        run.log.size[0] = 0
    return run


@pytest.mark.parametrize("seed", range(3))
def test_books_stay_what_ranges_add_up_to_whatever_was_refused(seed):
    refused = 0
    for family in ("extras", "tight", "anything", "groups"):
        cluster, _, _ = build(draw(family, seed))
        fleet = fleet_of(cluster)
        rules = rules_of(cluster, cluster.placement, fleet.ranges)
        count = len(cluster.partitions)
        settled(ReplicateRun(fleet, room_to_log(2000), nothing_left(count), rules=rules))
        free = settled(ReplicateRun(fleet_of(cluster), room_to_log(2000), nothing_left(count)))
        refused += not np.array_equal(fleet.ranges.store, free.fleet.ranges.store)
        ranges, state = fleet.ranges, rules.state
        assert np.array_equal(rules.accepted.store, ranges.store)
        assert np.array_equal(state.node, ranges.store)
        assert np.array_equal(state.leader, ranges.lease)
        flags = np.zeros(len(ranges.store), np.uint16)
        placed = Placement(ranges.first, ranges.store, state.role.copy(), flags, ranges.lease)
        anew = compile_state(cluster, rules.problem, placed, np.ones(len(cluster.nodes), bool))
        for name in ("load", "held", "domain_load"):
            assert np.allclose(getattr(state, name), getattr(anew, name))
        for name in ("replicas", "leaders", "group_count", "group_domains", "group_inside"):
            assert np.array_equal(getattr(state, name), getattr(anew, name))
        booked = np.bincount(ranges.store[ranges.store >= 0], minlength=len(cluster.nodes))
        assert fleet.stores.amount[0].tolist() == booked.tolist()
    assert refused > 0


def test_where_nothing_more_is_asked_the_decisions_are_cockroachs_own():
    cluster = grown(2, ranges=600)
    logs = []
    for asked in (False, True):
        fleet = fleet_of(cluster)
        more = {"rules": rules_of(cluster, cluster.placement, fleet.ranges)} if asked else {}
        run = ReplicateRun(fleet, room_to_log(5000), nothing_left(600), **more)
        while run.step(1000) or run.next_pass():
            pass
        logs.append(run.log)
    for name in ("kind", "range", "source", "target", "score", "size"):
        assert np.array_equal(getattr(logs[0], name), getattr(logs[1], name))


def test_a_replica_goes_where_there_is_room_in_what_cockroach_does_not_level():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0], [9.0], [1.0], [9.0]], load=[[2.0]] * 3, dimensions=["licences"],
        placement=[[0, 1, -1]] * 3, replicas=3,
    )  # fmt: skip
    result = ek.solve(cluster, "cockroach")
    assert not result.regressions
    assert np.asarray(result.placement).tolist() == [[0, 1, 3]] * 3


def test_leases_stay_where_leading_finds_no_room():
    cluster = ek.Cluster.from_arrays(
        capacity=[[60.0], [20.0]], load=[[1.0]] * 16, leader_load=[[3.0]] * 16,
        placement=[[0, 1]] * 16,
    )  # fmt: skip
    result = ek.solve(cluster, "cockroach")
    assert not result.regressions
    assert np.bincount(result.placement.leader_node).tolist() == [14, 2]


def test_what_is_pinned_stays():
    cluster = ek.Cluster.from_arrays(
        capacity=[[99.0]] * 4, load=[[1.0]] * 12, placement=[[0, 1]] * 12, flags=[[1, 0]] * 12
    )
    result = ek.solve(cluster, "cockroach")
    assert not result.regressions
    placed = np.asarray(result.placement)
    assert (placed == 0).any(axis=1).all()


def test_a_lease_that_weighs_fills_the_disk_it_comes_to():
    """Where leaders hold more bytes, a move that forgot its lease was undone, again and again."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[100.0]] * 2, load=[[40.0]] * 3, leader_load=[[60.0]] * 3, bytes="d0",
        placement=[[0], [0], [1]],
    )  # fmt: skip
    run = ek.solve(cluster, "cockroach").native
    assert run.converged
    assert len(run.log) == 0


@pytest.mark.parametrize("spread", [{"zone": 2, "rack": 1}, {"rack": 1, "zone": 2}])
def test_every_limit_of_a_group_is_kept_and_not_the_first_alone(spread):
    """By counts p0 would come to n3, which shares its rack with n2, where the other one is."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[99.0]] * 5, load=[[1.0]] * 18, group=[0, 0, 0] + [1] * 15,
        placement=[[0], [2], [4], *[[0]] * 6, *[[1]] * 3, *[[2]] * 3, *[[4]] * 3],
        flags=[[0], *[[1]] * 17], rules=[ek.Rule(spread=spread)],
        domains={"zone": [*"yzzzy"], "rack": [*"01223"]},
        group_rule=[0, -1],
    )  # fmt: skip
    result = ek.solve(cluster, "cockroach")
    assert not result.regressions
    assert result.placement.node[:2].tolist() == [1, 2]
    free = ek.solve(cluster.replace(rules=(), group_rule=[-1, -1]), "cockroach")
    assert free.placement.node[0] == 3


def test_nothing_is_removed_from_a_range_that_nobody_leads():
    """Who has all that is committed is known, but nobody here leads: no replica can be spared."""
    given = {
        "localities": [""] * 5, "replicas": [[0, 1, 2, 3]], "configs": [{"num_replicas": 3}],
        "caught_up": [[True] * 4],
    }  # fmt: skip
    led = ek.solve(ek.cockroach_cluster(**given, leaseholder=[0]), "cockroach")
    assert [led.native.log.action(0)] == ["RemoveVoter"]
    leaderless = ek.solve(ek.cockroach_cluster(**given, leaseholder=[-1]), "cockroach")
    assert not leaderless.moves
    assert (leaderless.placement.node >= 0).sum() == 4
    assert leaderless.native.stuck.tolist() == [0]


BOUND = {"+region=e": 2, "+region=w": 2, "+region=x": 1}
"""Constraints of five replicas, which bind each of them."""


@pytest.mark.parametrize(
    ("config", "roles"),
    [
        ({"num_voters": 3, "voter_constraints": {"+region=e": 2, "+region=w": 1}}, [0] * 5),
        ({"num_voters": 3, "voter_constraints": {"+region=e": 2}}, [0] * 5),
        ({"num_voters": 3}, [0] * 5),
        ({"num_voters": 1, "voter_constraints": {"+region=x": 1}}, [0] * 5),
        ({"num_voters": 5}, [0, 0, 0, 1, 1]),
        ({"num_replicas": 3, "constraints": {"+region=w": 2, "+region=x": 1}}, [0, 0, 0, 1, 1]),
    ],
)
def test_constraints_that_bind_all_replicas_stop_no_change_of_their_number(config, roles):
    """Who is too many goes first, and constraints are met again by the next decisions."""
    asked = {"num_replicas": 5, "constraints": BOUND} | config
    cluster = ek.cockroach_cluster(
        localities=["region=e", "region=e", "region=w", "region=w", "region=x", "region=x"],
        replicas=[[0, 1, 2, 3, 4]] * 3, roles=[roles] * 3, leaseholder=[0] * 3, configs=[asked],
    )  # fmt: skip
    for seed in range(4):
        result = ek.solve(cluster, "cockroach", seed=seed)
        assert (result.native.stuck.tolist(), result.audit.hard) == ([], 0)
        held = result.placement.role[result.placement.node >= 0]
        voters = 3 * asked.get("num_voters", asked["num_replicas"])
        assert np.bincount(held).tolist() == [voters, *filter(None, [len(held) - voters])]


def test_the_dimension_of_bytes_is_the_disk_whatever_it_is_called():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0, 100.0], [9.0, 100.0], [9.0, 200.0]], load=[[1.0, 94.0], [1.0, 4.0]],
        dimensions=["disk", "space"], bytes="space", placement=[[0], [1]],
    )  # fmt: skip
    stores = fleet_of(cluster).stores
    assert stores.capacity.tolist() == [100.0, 100.0, 200.0]
    assert stores.amount[kernel.BYTES].tolist() == [94.0, 4.0, 0.0]
    assert stores.available.tolist() == [6.0, 96.0, 200.0]
