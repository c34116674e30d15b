"""The replay of plans: what it finds, against a plain one and on plans that were tampered with."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.planning.replay import BREACHES, replay
from evenkeel.planning.steps import StepKind
from tests.naive.planning.replay import replay as plain_replay
from tests.support.effort import mostly_long
from tests.support.plans.one_by_one import Step, one_by_one, rows_of, steps_of
from tests.support.plans.random_plans import draw, tampered

COPY, PROMOTE, LEAD, DEMOTE, REMOVE, SWAP, ORDER = StepKind
BATCHES, SEEDS = 40, 50


def found_by(replayed):
    """Kinds and steps of a certificate; what ends wrong has no step of its own."""
    return {(one.kind, one.step if one.kind != "end" else -1) for one in replayed.breaches}


def asked(rng, target):
    """Draw what a plan is held to."""

    def some(most):
        return int(rng.integers(1, most)) if rng.random() < 0.5 else None

    held = {"joint": bool(rng.random() < 0.3), "target": target if rng.random() < 0.7 else None}
    if rng.random() < 0.4:
        zone = [{}, {"zone": 1}]
        held["throttle"] = SimpleNamespace(
            node_in=some(3), node_out=some(3), copies=some(3),
            domain_in=zone[int(rng.integers(2))], domain_out=zone[int(rng.integers(2))],
            node_bandwidth=some(2), windows=None,
            recovery_first=bool(rng.random() < 0.5),
        )  # fmt: skip
    held["quorum"] = bool(rng.random() < 0.7)
    return held


def coming(rng, cluster, rows):
    """Draw copies that are under way as a plan begins: some of its own, and some that are not."""
    node = cluster.placement.node.copy()
    if rng.random() < 0.6:
        return None
    for row in rows:
        if row.kind == COPY and rng.random() < 0.4 and row.target >= 0:
            node[row.replica % len(node)] = row.target % len(cluster.nodes)
    if rng.random() < 0.3:
        node[rng.integers(len(node))] = rng.integers(len(cluster.nodes))
    return node


@pytest.mark.parametrize("batch", mostly_long(range(BATCHES), (0, 1)))
def test_it_finds_what_a_plain_replay_finds(batch):
    for seed in range(batch * SEEDS, (batch + 1) * SEEDS):
        cluster, target, rows = draw(seed)
        rng = np.random.default_rng([seed, 99])
        if rows and rng.random() < 0.7:
            rows = tampered(rng, rows, len(cluster.nodes))[1]
        steps, held = steps_of(rows), asked(rng, target)
        held["in_flight"] = coming(rng, cluster, rows)
        expected = {
            (kind, step if kind != "end" else -1)
            for kind, step in plain_replay(cluster, steps, **held)
        }
        assert found_by(replay(cluster, steps, **held)) == expected, seed


def roomy(partitions=6, nodes=9):
    """A cluster with room for everything, and a target one replica away for each partition."""
    zone = [f"z{n % 3}" for n in range(nodes)]
    placement = [[p % nodes, (p + 1) % nodes, (p + 2) % nodes] for p in range(partitions)]
    cluster = ek.Cluster.from_arrays(
        capacity=[[100.0, 100.0]] * nodes, load=[[2.0, 1.0]] * partitions,
        leader_load=[[3.0, 1.0]] * partitions, dimensions=["disk", "cpu"], transient=["disk"],
        bytes="disk", domains={"zone": zone}, placement=placement, spread={"zone": 1}, min_active=2,
    )  # fmt: skip
    node = cluster.placement.node.reshape(partitions, 3).copy()
    for p in range(partitions):
        # the same zone, and a node that the partition is not on
        node[p, p % 3] = (node[p, p % 3] + 3) % nodes
    return cluster, cluster.placement.replaced(node.reshape(-1), cluster.placement.leader)


@pytest.mark.parametrize("batch", mostly_long(range(20), (0, 1)))
def test_one_tampered_step_is_found_unless_it_does_no_harm(batch):
    cluster, target = roomy()
    rows = one_by_one(cluster, target, swaps=True)
    assert replay(cluster, steps_of(rows), target=target).ok
    for seed in range(batch * 50, (batch + 1) * 50):
        way, changed = tampered(np.random.default_rng([seed, 7]), rows, len(cluster.nodes))
        steps = steps_of(changed)
        expected = plain_replay(cluster, steps, target=target)
        certificate = replay(cluster, steps, target=target)
        assert certificate.ok == (not expected), (seed, way)
        if not certificate.ok:
            first = certificate.breach
            assert first.kind in {kind for kind, _ in expected}, (seed, way)


@pytest.mark.parametrize("way", ["target", "kind", "replica", "double", "drop"])
def test_ways_to_tamper_that_always_do_harm(way):
    cluster, target = roomy()
    rows = one_by_one(cluster, target, swaps=True)
    tried = 0
    for seed in range(400):
        done, changed = tampered(np.random.default_rng([seed, 8]), rows, len(cluster.nodes))
        if done != way or changed == rows:
            continue
        named = [i for i, (one, other) in enumerate(zip(rows, changed, strict=False))
                 if one != other]  # fmt: skip
        row = rows[named[0]] if named else rows[-1]
        if way == "target" and row.kind in (DEMOTE, REMOVE):
            continue  # neither has a target
        certificate = replay(cluster, steps_of(changed), target=target)
        tried += 1
        assert not certificate.ok or certificate.end != "target", (seed, row)
    assert tried > 5


def tiny(**given):
    """Two replicas of one partition on four nodes of four zones."""
    arguments = {
        "capacity": [[2.0]] * 4, "load": [[1.0]], "placement": [[0, 1]], "dimensions": ["disk"],
        "transient": ["disk"], "domains": {"zone": list("abcd")},
    }  # fmt: skip
    return ek.Cluster.from_arrays(**arguments | given)


def moved(replica=1, source=1, target=2, kinds=(COPY, SWAP, REMOVE), partition=0, first=0, at=0.0):
    """The steps of one replica, a copy of 10 s and the rest at its end."""
    rows = []
    for i, kind in enumerate(kinds):
        start, finish = (at, at + 10.0) if kind == COPY else (at + 10.0, at + 10.0)
        before = (first + i - 1,) if i else ()
        rows.append(Step(kind, partition, replica, source, target, 0.0, start, finish, i, before))
    return rows


def test_a_sound_plan_has_a_certificate_that_says_how_close_it_comes():
    cluster = tiny()
    target = cluster.placement.replaced(np.array([0, 2], np.int32), cluster.placement.leader)
    certificate = replay(cluster, steps_of(moved()), target=target)
    assert certificate.ok
    assert certificate.breach is None
    assert certificate.end == "target"
    points = {(one.kind, one.of): (one.value, one.limit) for one in certificate.tightest}
    assert points["capacity", "disk"] == (1.0, 2.0)
    assert points["same_node", "node"] == (1.0, 1.0)
    assert str(certificate).startswith("safe: 3 steps end at the target")


def test_nothing_to_do_is_safe():
    cluster = tiny()
    certificate = replay(cluster, steps_of([]), target=cluster.placement)
    assert certificate.ok
    assert certificate.end == "target"


def test_space_is_free_only_when_the_removal_has_finished():
    cluster = ek.Cluster.from_arrays(
        capacity=[[1.0]] * 3, load=[[1.0]] * 2, placement=[[0], [1]], transient=["d0"],
    )  # fmt: skip
    away = moved(replica=0, source=0, target=2, kinds=(COPY, PROMOTE, LEAD, DEMOTE, REMOVE))
    into = moved(1, 1, 0, (COPY, PROMOTE, LEAD, DEMOTE, REMOVE), partition=1, first=5)
    into = [row._replace(wave=row.wave + 5) for row in into]
    into[0] = into[0]._replace(before=(4,))
    for late, sound in ((10.0, True), (9.0, False)):
        shifted = [row._replace(start=row.start + late, finish=row.finish + late) for row in into]
        certificate = replay(cluster, steps_of(away + shifted))
        assert certificate.ok == sound
    assert certificate.counts == {"capacity": 1, "dependency": 1}
    found = next(one for one in certificate.breaches if one.kind == "capacity")
    assert (found.step, found.time) == (5, 9.0)
    assert found.where == "node n0, d0"


def test_a_dimension_that_is_not_transient_is_charged_where_the_replica_serves():
    cluster = ek.Cluster.from_arrays(
        capacity=[[1.0], [1.0], [0.5]], load=[[1.0]], placement=[[0, 1]],
        leader_load=[[1.0]],
    )  # fmt: skip
    copied = replay(cluster, steps_of(moved(kinds=(COPY,))))
    assert {one.kind for one in copied.breaches} == {"end"}
    swapped = replay(cluster, steps_of(moved()))
    assert [(one.kind, one.step) for one in swapped.breaches] == [("capacity", 1)]


def test_a_quorum_that_survives_a_zone_is_kept_where_both_ends_have_it():
    cluster = tiny(placement=[[0, 1, 2]], domains={"zone": list("abcc")}, capacity=[[9.0]] * 4)
    target = cluster.placement.replaced(np.array([0, 1, 3], np.int32), cluster.placement.leader)
    kinds = (COPY, PROMOTE, DEMOTE, REMOVE)
    certificate = replay(cluster, steps_of(moved(2, 2, 3, kinds)), target=target)
    assert [(one.kind, one.step) for one in certificate.breaches] == [("quorum", 1)]
    assert replay(cluster, steps_of(moved(2, 2, 3)), target=target).ok


def test_without_a_majority_one_replica_survives_the_loss_of_a_zone_all_the_same():
    cluster = tiny(placement=[[0, 1]], domains={"zone": list("abba")}, capacity=[[9.0]] * 4)
    target = cluster.placement.replaced(np.array([2, 3], np.int32), cluster.placement.leader)
    kinds = (COPY, PROMOTE, DEMOTE, REMOVE)
    found = replay(cluster, steps_of(moved(0, 0, 2, kinds)), target=target, quorum=False).breaches
    assert ("survivor", 2) in [(one.kind, one.step) for one in found]
    plan = ek.plan(cluster, target, protocol="longhorn")
    assert plan.check().ok


def test_a_leader_hands_over_before_it_goes():
    cluster = tiny()
    rows = moved(replica=0, source=0, target=2)
    assert "leader" in replay(cluster, steps_of(rows)).counts
    lead = Step(LEAD, 0, 1, 0, 1, 0.0, 10.0, 10.0, 0, (0,))
    swap, remove = (row._replace(before=(i + 1,)) for i, row in enumerate(rows[1:]))
    assert replay(cluster, steps_of([rows[0], lead, swap, remove])).ok


def test_a_learner_in_the_zone_of_another_replica_breaks_the_spread_once_it_is_copied():
    cluster = tiny(domains={"zone": list("abaa")}, spread={"zone": 1})
    certificate = replay(cluster, steps_of(moved()))
    assert [(one.kind, one.step) for one in certificate.breaches] == [("spread", 0)]


def test_what_is_left_on_a_dead_node_needs_no_removal():
    cluster = tiny(alive=[True, False, True, True])
    rows = moved(kinds=(COPY, SWAP))
    rows[0] = rows[0]._replace(source=0)
    target = cluster.placement.replaced(np.array([0, 2], np.int32), cluster.placement.leader)
    certificate = replay(cluster, steps_of(rows), target=target)
    assert certificate.ok
    assert certificate.end == "target"


def test_swaps_at_once_are_one_change_where_changes_are_joint():
    cluster = tiny(
        domains={"zone": list("abba")}, rules=[ek.Rule(min_domains={"zone": 2})], leader=[-1]
    )
    target = cluster.placement.replaced(np.array([2, 3], np.int32), cluster.placement.leader)
    rows = [*moved(0, 0, 2), *moved(1, 1, 3, first=3)]
    order = [rows[0], rows[3], rows[1], rows[4], rows[2], rows[5]]
    rows = [row._replace(before=before) for row, before in
            zip(order, [(), (), (0,), (1, 2), (2,), (3,)], strict=True)]  # fmt: skip
    steps = steps_of(rows)
    one_by_one_seen = replay(cluster, steps, target=target)
    assert [(one.kind, one.step) for one in one_by_one_seen.breaches] == [("min_domains", 2)]
    assert replay(cluster, steps, target=target, joint=True).ok


def test_a_partition_without_a_rule_is_not_held_to_that_of_another():
    cluster = tiny(
        placement=[[-1, -1], [0, 1]], load=[[1.0]] * 2, rules=[ek.Rule(skew={"zone": 1})],
        rule=[-1, 0], domains={"zone": list("abab")},
    )  # fmt: skip
    target = cluster.placement.replaced(np.array([2, 3, 0, 1], np.int32), np.array([0, 0]))
    kinds = (COPY, PROMOTE, LEAD, COPY, PROMOTE)
    rows = [
        Step(
            kind, 0, i // 3, -1 if i < 3 else 2, 2 + i // 3, 0.0, i, i + 1.0, i, (i - 1,) * (i > 0)
        )
        for i, kind in enumerate(kinds)
    ]
    rows[4] = rows[4]._replace(source=-1)
    assert replay(cluster, steps_of(rows), target=target).ok


def test_a_plan_that_stops_early_is_a_prefix_if_all_is_settled():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 2, placement=[[0, 1], [0, 1]]
    )
    target = cluster.placement.replaced(np.array([0, 2, 0, 3], np.int32), cluster.placement.leader)
    assert replay(cluster, steps_of(moved()), target=target).end == "prefix"
    unsettled = replay(cluster, steps_of(moved(kinds=(COPY, SWAP))), target=target)
    assert unsettled.counts == {"end": 1}
    astray = replay(cluster, steps_of(moved(target=3)), target=target)
    assert (astray.end, astray.counts) == ("other", {"end": 1})


def test_steps_that_do_not_fit_each_other_are_refused():
    cluster = tiny()
    steps = steps_of(moved())
    broken = type(steps)(**{**vars(steps), "size": np.zeros(1), "first": np.array([0, 1])})
    with pytest.raises(ek.InvalidInput) as refused:
        replay(cluster, broken)
    assert [fault.path for fault in refused.value.faults] == ["steps.size", "steps.first"]


def test_every_kind_that_is_found_is_explained():
    seen = set()
    for seed in range(60):
        cluster, target, rows = draw(seed)
        rng = np.random.default_rng([seed, 99])
        if rows:
            rows = tampered(rng, rows, len(cluster.nodes))[1]
        certificate = replay(cluster, steps_of(rows), **asked(rng, target))
        seen |= {*certificate.counts} | {one.kind for one in certificate.tightest}
    assert len(seen) > 15
    assert seen <= set(BREACHES)


def test_rows_and_arrays_say_the_same():
    rows = moved()
    assert rows_of(steps_of(rows)) == rows


def test_each_rule_that_excludes_a_node_is_kept_by_itself():
    """One rule is broken as it begins; the other, which both ends keep, is broken on the way."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]], domains={"zone": [*"abc"]}, placement=[[0]],
        rules=[ek.Rule(require=["zone!=a"]), ek.Rule(require=["zone!=c"])],
        rule=[0], group_rule=[1],
    )  # fmt: skip
    target = cluster.placement.replaced(np.array([1], np.int32), cluster.placement.leader)
    away = cluster.placement.replaced(np.array([2], np.int32), cluster.placement.leader)
    first = ek.plan(cluster, away)
    assert first.check().ok
    found = replay(cluster, first.steps, target=target)
    assert found.counts["require"] == 1
    assert ("require", 0) in plain_replay(cluster, first.steps, target=target)


@pytest.mark.parametrize("protocol", ["kafka", "ceph"])
def test_a_group_is_in_its_domains_before_and_after_a_set_is_exchanged(protocol):
    """At one instant z2 is left and joined again; with a second between it is not."""
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 5, load=[[1.0]] * 2, domains={"zone": ["z1", "z0", "z2", "z1", "z2"]},
        rules=[ek.Rule(min_domains={"zone": 3})], rule=[-1, -1], group=[0, 0], group_rule=[0],
        placement=[[2, 1], [1, 3]], leader=[1, 0],
    )  # fmt: skip
    node = np.array([0, 4, 1, 3], np.int32)
    plan = ek.plan(cluster, cluster.placement.replaced(node, cluster.placement.leader),
                   protocol=protocol)  # fmt: skip
    assert plan.complete
    assert plan.check().ok
    swap = int(np.flatnonzero(plan.steps.kind == SWAP)[0])
    later = np.where((np.arange(len(plan)) > swap) & (plan.steps.kind != COPY), 1.0, 0.0)
    steps = replace(plan.steps, start=plan.steps.start + later, finish=plan.steps.finish + later)
    assert "min_domains" in {one.kind for one in replace(plan, steps=steps).check().breaches}


@pytest.mark.parametrize(("rule", "late", "wanted"), [
    ({"min_domains": {"zone": 2}}, True, 1), ({"min_domains": {"zone": 2}}, False, 1),
    ({"min_domains": {"zone": 2}}, False, 0), ({"place": {"zone=a": 1}}, False, 1),
    ({"place": {"zone=a": 1}}, False, 0),
    ({"max_domains": {"zone": 2}}, False, 1), ({"max_domains": {"zone": 2}}, True, 1),
])  # fmt: skip
def test_a_group_sees_both_replicas_where_it_needs_some_and_one_where_it_has_too_many(
    rule, late, wanted
):
    """p0 goes from zone a to b, p1 from b to a, or p0 to c; its old one goes late, or at once."""
    crowds = "max_domains" in rule
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 2, placement=[[0], [1]], leader=[-1, -1],
        domains={"zone": list("abcb" if crowds else "abab")}, rules=[ek.Rule(**rule)],
        group=[0, 0], group_rule=[0], replicas=[wanted] * 2,
    )  # fmt: skip
    first, last = (2, 1) if crowds else (3, 2)
    target = cluster.placement.replaced(np.array([first, last], np.int32), cluster.placement.leader)
    gone = 5.0 if late else 1.0
    rows = [
        Step(COPY, 0, 0, 0, first, 1.0, 0.0, 1.0),
        Step(PROMOTE, 0, 0, -1, first, 0.0, 1.0, 1.0, before=(0,)),
    ]
    if not crowds:
        rows += [
            Step(COPY, 1, 1, 1, last, 1.0, 0.0, 1.0),
            Step(PROMOTE, 1, 1, -1, last, 0.0, 2.0, 2.0, before=(2,)),
            Step(DEMOTE, 1, 1, 1, -1, 0.0, 3.0, 3.0, before=(3,)),
            Step(REMOVE, 1, 1, 1, -1, 0.0, 3.0, 3.0, before=(4,)),
        ]
    end = [
        Step(DEMOTE, 0, 0, 0, -1, 0.0, gone, gone, before=(1,)),
        Step(REMOVE, 0, 0, 0, -1, 0.0, gone, gone, before=(2 if crowds else 6,)),
    ]
    steps = steps_of([*rows, *end])
    kinds = {one.kind for one in replay(cluster, steps, target=target, quorum=False).breaches}
    plain = {kind for kind, _ in plain_replay(cluster, steps, target=target, quorum=False)}
    assert kinds == plain
    # needed are both until one goes; too many is only what stays
    broken = {*rule} if wanted and not late and not crowds else set()
    assert kinds & {"min_domains", "max_domains", "place"} == broken


def listed():
    """Two partitions on three nodes, of which lists begin with another node than leads."""
    preferred = [ek.Flag.PREFERRED, 0, 0]
    return ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 2, placement=[[0, 1, 2]] * 2, leader=[1, 1],
        flags=[preferred, preferred],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "found", "end"),
    [
        (lambda c, rows: (c, rows), {}, "target"),
        (lambda c, rows: (c, rows[:1]), {}, "prefix"),
        (lambda c, rows: (c, [rows[0], rows[1]._replace(source=2)]), {"order": 1}, "target"),
        (lambda c, rows: (c, [rows[0], rows[1]._replace(target=2)]), {"order": 1}, "prefix"),
        (lambda c, rows: (c, [rows[0], rows[1]._replace(target=-1)]), {"index": 1}, "other"),
        (lambda c, rows: (c, [rows[0], rows[0], rows[1]]), {"order": 2}, "target"),
        (lambda c, rows: (c.down("n2"), rows), {"order": 2}, "target"),
        (
            lambda c, rows: (c, [*rows, Step(LEAD, 0, 2, 1, 2)]),
            {"order": 1}, "prefix",
        ),
    ],
)  # fmt: skip
def test_another_order_is_of_the_list_as_it_is_and_of_nodes_that_live(change, found, end):
    cluster = listed()
    flags = cluster.placement.flags & ~ek.Flag.PREFERRED
    target = replace(cluster.placement, flags=flags)
    steps = ek.plan(cluster, target, protocol="kafka").steps
    assert steps.kind.tolist() == [ORDER, ORDER]
    cluster, rows = change(cluster, rows_of(steps))
    replayed = replay(cluster, steps_of(rows), target=target)
    assert (replayed.counts, replayed.end) == (found, end)
    expected = plain_replay(cluster, steps_of(rows), target=target)
    assert {kind for kind, _ in expected} == {*found}


def test_another_order_waits_for_no_copy_and_for_a_window():
    cluster = listed()
    target = replace(cluster.placement, flags=cluster.placement.flags & ~ek.Flag.PREFERRED)
    paced = ek.Throttle(windows=ek.Windows([(10.0, 20.0)], every=60.0))
    plan = ek.plan(cluster, target, protocol="kafka", throttle=paced)
    assert plan.steps.start.tolist() == [10.0, 10.0] and plan.check().ok
    assert plan.end.preferred_node.tolist() == [1, 1]
    assert plan.undo().end.preferred_node.tolist() == [0, 0]
    # a system without such lists has no step for it
    assert len(ek.plan(cluster, target, protocol="plain")) == 0
