"""Roles that change where replicas are, and what protocols make of them."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import evenkeel as ek
from evenkeel import simulate
from evenkeel.model.placement import Flag
from evenkeel.planning.replay import replay
from evenkeel.planning.steps import StepKind
from tests.naive.planning.replay import replay as plain_replay
from tests.support.effort import mostly_long
from tests.support.plans.one_by_one import rows_of, steps_of
from tests.support.plans.random_plans import tampered
from tests.support.plans.role_clusters import with_roles


def three(**given):
    """A range with voters on n0, n1 and n2, led from n0, and a non-voter on n3."""
    arguments = {
        "capacity": [[9.0]] * 6, "load": [[2.0]], "non_voter_load": [[1.0]],
        "dimensions": ["disk"], "bytes": "disk", "placement": [[0, 1, 2, 3]],
        "role": [[0, 0, 0, 1]], "leader": [0], "domains": {"zone": list("abcdef")},
    }  # fmt: skip
    return ek.Cluster.from_arrays(**arguments | given)


def to(cluster, node, role, leader):
    target = cluster.placement.replaced(np.array(node, np.int32), np.array([leader], np.int16))
    return replace(target, role=np.array(role, np.uint8))


def held(placement):
    rows = placement.owner, placement.node, placement.role
    return sorted(zip(*(one.tolist() for one in rows), strict=True))


def told(plan):
    return [(row.kind, row.slot, row.source, row.target) for row in plan.rows()]


@pytest.mark.parametrize("batch", mostly_long(range(6), (0,)))
def test_plans_that_change_roles_are_safe_and_lead_back_bit_for_bit(batch):
    changed = 0
    for seed in range(batch * 60, (batch + 1) * 60):
        cluster, target, protocol = with_roles(seed)
        plan = ek.plan(cluster, target, protocol=protocol)
        found = plan.check()
        assert found.ok, (seed, str(found))
        assert found.end == "target" or plan.blocked, seed
        changed += int(plan.steps.in_place.sum())
        back = plan.undo()
        assert back.check().ok, seed
        if back.complete:
            for name in ("first", "node", "role", "flags", "leader"):
                was, now = getattr(cluster.placement, name), getattr(back.end, name)
                assert np.array_equal(was, now), (seed, name)
    assert changed > 100


def test_where_nobody_lives_nothing_is_copied_from_who_is_dead():
    """Two replicas of a partition without a live one trade roles; a third is made anew."""
    cluster, target, protocol = with_roles(186)
    plan = ek.plan(cluster, target, protocol=protocol)
    found = plan.check()
    assert found.ok, str(found)


def test_what_no_order_admits_moves_and_changes_roles_at_one_instant():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 5, load=[[1.0]], domains={"zone": [*"ababc"]}, replicas=4, voters=3,
        placement=[[0, 1, 4, 2]], role=[[0, 0, 0, 1]], leader=[2], min_active=3,
    )  # fmt: skip
    # to move, or to trade roles, alone leaves two voters in one zone
    target = to(cluster, [3, 1, 4, 2], [0, 1, 0, 0], 2)
    plan = ek.plan(cluster, target, protocol="cockroach")
    assert plan.complete and plan.check().ok
    steps = plan.steps
    assert len({float(t) for t in steps.finish[steps.kind != StepKind.COPY]}) == 1
    assert ek.plan(cluster, target, protocol="plain").check().ok
    assert plan.undo().check().ok


@pytest.mark.parametrize("batch", mostly_long(range(6), (0,)))
def test_where_there_is_room_nothing_is_blocked_but_what_moves_and_changes_roles(batch):
    """With joint changes, and rules of the system alone: a replica does not do both at once."""
    complete = 0
    for seed in range(batch * 60, (batch + 1) * 60):
        cluster, target, _ = with_roles(seed)
        if not cluster.nodes.alive.all():
            continue
        roomy = cluster.replace(
            capacity=cluster.nodes.capacity * 100.0, rules=[], group_rule=[-1],
            rule=np.full(len(cluster.partitions), -1),
        )  # fmt: skip
        plan = ek.plan(roomy, target, protocol="cockroach")
        assert plan.check().ok, seed
        blocked: dict[str, dict[int, set[str]]] = {}
        for one in plan.blocked:
            slots = blocked.setdefault(one.partition, {})
            slots.setdefault(one.slot, set()).add(one.change)
        for slots in blocked.values():
            assert any("move" in k and k & {"promote", "demote"} for k in slots.values()), seed
        complete += plan.complete
    assert complete


@pytest.mark.parametrize("batch", mostly_long(range(12, 18), (16,)))
def test_a_plan_that_changes_roles_is_begun_and_gone_on_with(batch):
    for seed in range(batch * 40, (batch + 1) * 40):
        cluster, target, protocol = with_roles(seed)
        plan = ek.plan(cluster, target, protocol=protocol)
        begun = plan.prefix(int(np.random.default_rng(seed).integers(len(plan) + 1)))
        assert begun.check().ok, seed
        seen = plan.progress(begun.end)
        assert seen.done[: len(begun)].all(), seed
        assert not seen.done[len(begun) :].any(), seed
        for resumed_plan in (plan.resume(begun.end), plan.merge(plan.target, len(begun))):
            assert resumed_plan.check().ok, seed
            if plan.complete and resumed_plan.complete:
                assert held(resumed_plan.end) == held(plan.end), seed
        assert begun.undo().check().ok, seed


@pytest.mark.parametrize("batch", mostly_long(range(6), (0,)))
def test_a_tampered_change_of_a_role_is_found(batch):
    for seed in range(batch * 40, (batch + 1) * 40):
        cluster, target, protocol = with_roles(seed)
        plan = ek.plan(cluster, target, protocol=protocol)
        if not len(plan):
            continue
        rows = rows_of(plan.steps)
        way, rows = tampered(np.random.default_rng([seed, 7]), rows, len(cluster.nodes))
        steps, asked = steps_of(rows), {"target": plan.target, "joint": protocol.joint}
        found = {one.kind for one in replay(cluster, steps, **asked).breaches}
        assert found == {kind for kind, _ in plain_replay(cluster, steps, **asked)}, (seed, way)


def test_voter_and_non_voter_trade_roles_at_one_instant_and_nothing_is_copied():
    cluster = three()
    plan = ek.plan(cluster, to(cluster, [3, 1, 2, 0], [0, 0, 0, 1], 0), protocol="cockroach")
    assert told(plan) == [
        ("promote", 3, "n3", "n3"), ("lead", 3, "n0", "n3"), ("demote", 0, "n0", "n0"),
    ]  # fmt: skip
    assert (plan.copies, plan.makespan, len(plan.waves)) == (0, 0.0, 1)
    assert plan.check().end == "target"
    assert plan.end.role.tolist() == [1, 0, 0, 0]
    assert plan.end.leader_node.tolist() == [3]
    assert "promote [3] on n3" in plan.explain(0)


def test_where_a_system_changes_one_member_at_a_time_roles_change_one_by_one():
    cluster = three()
    protocol = ek.Protocol("raft", joint=False)
    plan = ek.plan(cluster, to(cluster, [3, 1, 2, 0], [0, 0, 0, 1], 0), protocol=protocol)
    assert [row.kind for row in plan.rows()] == ["promote", "lead", "demote"]
    assert len(set(plan.change.tolist())) == 2
    assert plan.check().end == "target"


def test_who_leaves_gives_its_vote_to_who_stays_and_one_is_copied_as_a_non_voter():
    cluster = three()
    plan = ek.plan(cluster, to(cluster, [3, 1, 2, 4], [0, 0, 0, 1], 0), protocol="cockroach")
    assert [row.kind for row in plan.rows()] == [
        "promote", "lead", "demote", "copy", "swap", "remove",
    ]  # fmt: skip
    assert plan.bytes == 1.0
    assert plan.check().end == "target"


def test_a_dead_voter_s_vote_goes_to_the_non_voter_before_anything_is_copied():
    cluster = three(alive=[True, True, False, True, True, True])
    plan = ek.plan(cluster, to(cluster, [0, 1, 3, 5], [0, 0, 0, 1], 0), protocol="cockroach")
    first = plan.rows()[0]
    assert (first.kind, first.target, first.finish) == ("promote", "n3", 0.0)
    assert plan.check().end == "target"


def test_the_live_replica_moves_and_the_dead_one_goes_if_that_keeps_more_alive():
    """The target's slots have it the other way round, and its new node is in the zone of n0."""
    cluster = three(
        placement=[[0, 1, 2, 3]], leader=[2], domains={"zone": list("abcdea")}, spread={"zone": 1},
        min_active=3, voters=3,
    ).down("n2")  # fmt: skip
    target = to(cluster, [3, 1, -1, 5], [0, 0, 0, 1], 1)
    plan = ek.plan(cluster, target, protocol="cockroach")
    assert plan.complete, plan.blocked
    assert plan.check().ok, str(plan.check())
    # before what is new serves, nothing that lives is gone
    assert plan.bytes == 1.0
    at = plan.end.first[0]
    assert sorted(plan.end.node[at : at + 4].tolist()) == [-1, 1, 3, 5]
    assert dict(zip(plan.end.node.tolist(), plan.end.role.tolist(), strict=True))[5] == 1


def test_no_vote_is_given_whose_counterpart_waits_for_a_node_that_is_down():
    """The vote of n2 is to go to n3, in its zone, and it to n5; with both that has half of all."""
    cluster = three(domains={"zone": list("abccde")}).down("n5")
    target = to(cluster, [0, 1, 5, 3], [0, 0, 1, 0], 0)
    plan = ek.plan(cluster, target)
    assert plan.check().ok, str(plan.check())
    assert len(plan) == 0
    assert {str(one) for one in plan.blocked} == {
        "p0[2] n2 -> n5: no way to n5, which is down",
        "p0[3] promote on n3: no turn: another change of the partition is blocked",
    }


def test_a_target_may_add_votes_and_take_them():
    cluster = three()
    more = ek.plan(cluster, to(cluster, [0, 1, 2, 3], [0, 0, 0, 0], 0))
    assert told(more) == [("promote", 3, "n3", "n3")]
    less = ek.plan(cluster, to(cluster, [0, 1, 2, 3], [0, 1, 0, 1], 0))
    assert told(less) == [("demote", 1, "n1", "n1")]
    assert less.check().ok
    # nobody is left to lead
    none = ek.plan(cluster, to(cluster, [0, 1, 2, 3], [1, 1, 1, 1], -1))
    assert {str(one).split(":")[0] for one in none.blocked} >= {"p0[0] demote on n0"}
    assert none.check().ok


def test_a_vote_counts_from_the_step_that_gives_it():
    """Two voters of three lose their votes first: what is left could not lose a node."""
    cluster = three(min_active=3)
    target = to(cluster, [0, 1, 2, 3], [0, 0, 1, 0], 0)
    plan = ek.plan(cluster, target, protocol=ek.Protocol("raft", joint=False))
    rows = rows_of(plan.steps)
    assert [row.kind for row in rows] == [StepKind.PROMOTE, StepKind.DEMOTE]
    turned = [rows[1]._replace(before=()), rows[0]._replace(before=(0,), wave=1)]
    found = replay(cluster, steps_of(turned), target=target)
    assert "quorum" in found.counts
    assert replay(cluster, steps_of(turned), target=target, joint=True).ok
    again = replay(cluster, steps_of([*rows, rows[0]._replace(before=(1,), wave=9)]), target=target)
    assert again.counts == {"role": 1}


def test_rules_on_voters_hold_while_roles_change():
    """The voter that zone d must have comes before the one that zone c must have goes."""
    rule = ek.Rule(voters_place={"zone=a": 1})
    cluster = three(rules=[rule], rule=[0])
    target = to(cluster, [0, 4, 2, 3], [0, 0, 0, 1], 0)
    assert ek.plan(cluster, target).check().ok
    strict = three(rules=[ek.Rule(voters_require=["zone!=d"])], rule=[0])
    plan = ek.plan(strict, to(strict, [0, 4, 2, 1], [0, 0, 0, 1], 0))
    assert plan.complete
    assert plan.check().ok


def test_room_in_another_role_is_found_once_the_replica_has_moved():
    """The non-voter weighs more as a voter than its node can bear; where it goes there is room."""
    cluster = three(capacity=[[9.0]] * 3 + [[1.0]] + [[9.0]] * 2)
    plan = ek.plan(cluster, to(cluster, [0, 1, 2, 4], [0, 0, 0, 0], 0))
    assert plan.complete
    assert [row.kind for row in plan.rows()] == ["copy", "swap", "remove", "promote"]
    assert plan.check().ok


@pytest.mark.parametrize("protocol", ["plain", "kafka", "cockroach", "ceph", "helix", "longhorn"])
def test_no_system_copies_what_is_there_in_another_role(protocol):
    """A non-voter takes the place of a voter that is lost, and is never gone meanwhile."""
    cluster = three().down("n0")
    plan = ek.plan(cluster, to(cluster, [3, 1, 2, 4], [0, 0, 0, 1], 1), protocol=protocol)
    assert plan.complete
    assert plan.copies == 1
    assert plan.check().end == "target"
    assert ("promote", 3, "n3", "n3") in told(plan)
    assert all(row.source == "n0" for row in plan.rows() if row.kind == "remove")


@pytest.mark.parametrize(("whole", "quorum"), [*product([True, False], repeat=2)])
def test_a_protocol_without_roles_says_so(whole, quorum):
    cluster = three()
    protocol = ek.Protocol("own", roles=False, whole=whole, quorum=quorum)
    with pytest.raises(ek.InvalidInput, match="protocol own changes no role") as error:
        ek.plan(cluster, to(cluster, [0, 1, 2, 3], [0, 0, 0, 0], 0), protocol=protocol)
    assert [one.path for one in error.value.faults] == ["target.role[3]"]
    # of two that trade roles, each goes where the other was
    traded = ek.plan(cluster, to(cluster, [3, 1, 2, 0], [0, 0, 0, 1], 1), protocol=protocol)
    assert not traded.steps.in_place.any()
    assert traded.copies or traded.blocked
    assert traded.check().ok
    # the last one that lives is not removed before another serves
    last = three(placement=[[0, 1]], role=[[0, 1]], replicas=1, voters=1).down("n0")
    assert ek.plan(last, to(last, [1, -1], [0, 1], 0), protocol=protocol).check().ok


def test_learners_are_neither_made_nor_promoted_in_place():
    cluster = three()
    with pytest.raises(ek.InvalidInput, match="only voters and non-voters become one another"):
        ek.plan(cluster, to(cluster, [0, 1, 2, 3], [0, 0, 0, 2], 0))


def test_slots_that_are_told_in_another_order_are_the_same_roles():
    cluster = three()
    same = ek.plan(cluster, to(cluster, [3, 2, 1, 0], [1, 0, 0, 0], 3))
    assert len(same) == 0
    moved = ek.plan(cluster, to(cluster, [5, 4, 1, 0], [1, 0, 0, 0], 3))
    assert [row.kind for row in moved.rows()].count("copy") == 2
    assert not moved.steps.in_place.any()


def test_the_file_of_a_plan_holds_changes_of_roles(tmp_path):
    cluster = three()
    plan = ek.plan(cluster, to(cluster, [3, 1, 2, 4], [0, 0, 0, 1], 0), protocol="cockroach")
    read = ek.read_plan(ek.write_plan(plan, tmp_path / "plan.json"))
    assert read.rows() == plan.rows()
    assert read.protocol == plan.protocol
    assert read.check().end == "target"
    assert np.array_equal(read.target.role, plan.target.role)
    blocked = ek.plan(cluster, to(cluster, [0, 1, 2, 3], [1, 1, 1, 1], -1))
    again = ek.read_plan(ek.write_plan(blocked, tmp_path / "blocked.json"))
    assert again.blocked == blocked.blocked


def test_what_is_observed_tells_roles_by_node():
    """CockroachDB lists voters before non-voters, and a learner while it is copied."""
    cluster = three()
    target = to(cluster, [3, 1, 2, 4], [0, 0, 0, 1], 0)
    plan = ek.plan(cluster, target, protocol="cockroach")
    now = to(cluster, [1, 2, 3, 0], [0, 0, 0, 1], 2)
    assert plan.progress(now).done.tolist() == [True] * 3 + [False] * 3
    rest = plan.resume(now)
    assert [row.kind for row in rest.rows()] == ["copy", "swap", "remove"]
    first = np.array([0, 5])
    learner = replace(
        now, first=first, node=np.array([1, 2, 3, 0, 4], np.int32),
        role=np.array([0, 0, 0, 1, 2], np.uint8), flags=np.zeros(5, np.uint16),
    )  # fmt: skip
    seen = plan.progress(learner)
    assert seen.under_way.tolist() == [False] * 3 + [True, False, False]
    rest = plan.resume(learner)
    assert rest.cluster.placement.flags[0] & Flag.INCOMING
    assert rest.cluster.placement.role.tolist() == [1, 0, 0, 0]
    assert [row.kind for row in rest.rows()] == ["copy", "swap", "remove"]
    assert rest.check().end == "target"


def test_a_simulated_cluster_carries_changes_of_roles_out():
    cluster = three()
    plan = ek.plan(cluster, to(cluster, [3, 1, 2, 4], [0, 0, 0, 1], 0), protocol="cockroach")
    history = simulate.play(cluster, (), plan, until=600.0)
    # a voter weighs two, a non-voter one
    assert history.load[-1, :, 0].tolist() == [0.0, 2.0, 2.0, 2.0, 1.0, 0.0]


def test_a_curve_counts_what_another_role_weighs():
    cluster = three()
    plan = ek.plan(cluster, to(cluster, [0, 1, 2, 3], [0, 0, 0, 0], 0))
    # of 54 there were 7, and each of four voters weighs two of 9
    assert plan.curve().over[-1] == pytest.approx(4 * (2 / 9 - 7 / 54))


TRADES_OF_LEADS = [
    (led, leads, loses, moves)
    for led, leads, loses in product(range(3), range(4), range(3))
    for moves in ((), (0,), (1,), (0, 1), (0, 1, 2))
    if leads not in (led, loses) and loses not in moves
]
"""Who leads, who is to lead, who loses its vote, and who moves."""


@pytest.mark.parametrize(("led", "leads", "loses", "moves"), TRADES_OF_LEADS)
def test_who_is_to_lead_has_its_vote_before_who_led_goes(led, leads, loses, moves):
    """n3 gets a vote that another gives up; who leads, who is to lead and some others move."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 8, load=[[1.0]], placement=[[0, 1, 2, 3]], role=[[0, 0, 0, 1]],
        leader=[led],
    )  # fmt: skip
    node = np.array([n + 4 if n in moves else n for n in range(4)], np.int32)
    role = np.zeros(4, np.uint8)
    role[loses] = 1
    target = cluster.placement.replaced(node, np.array([leads], np.int16))
    plan = ek.plan(cluster, replace(target, role=role), protocol="cockroach")
    assert plan.complete
    assert plan.check().ok
    assert sum(row.kind == "lead" for row in plan.rows()) == 1
    assert plan.copies == len(moves)


@pytest.mark.parametrize(("non_voter", "peak"), [(1.0, 6.0), (4.0, 7.0)])
def test_a_leader_without_a_vote_weighs_what_leaders_do_until_it_hands_over(non_voter, peak):
    """Promoted where it leads it weighs no more; having handed over, what non-voters do."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[5.0], [9.0]], load=[[2.0]] * 2, leader_load=[[3.0]] * 2,
        non_voter_load=[[non_voter]] * 2, placement=[[0, 1], [0, 1]], role=[[1, 0], [0, 1]],
        leader=[0, 0], voters=1,
    )  # fmt: skip
    start = cluster.placement
    traded = start.replaced(np.array([1, 0, 0, 1], np.int32), np.array([1, 0], np.int32))
    promoted = ek.plan(cluster, traded)
    assert {row.kind for row in promoted.rows()} == {"promote", "demote"}
    assert promoted.check().ok
    handed = ek.plan(cluster, start.replaced(start.node, np.array([1, 0], np.int32))).check()
    (room,) = [one for one in handed.tightest if one.kind == "capacity"]
    assert (handed.ok, room.limit) == (True, peak)
