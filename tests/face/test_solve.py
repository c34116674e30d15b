"""What ``solve(method="balance")`` promises on any cluster, and on a few that people meet."""

import logging
import math
import threading
import time
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given

import evenkeel as ek
from evenkeel.methods.registry import Method
from evenkeel.methods.shared import stopping
from evenkeel.model.placement import Flag, Placement
from tests.support.clusters import clusters
from tests.support.instances import generate


def cluster_of(instance, **more):
    return ek.Cluster.from_arrays(
        capacity=instance["capacity"],
        load=instance["load"],
        leader_load=instance["load"] + instance["leader_extra_load"],
        domains={"zone": instance["zone"], "rack": instance["rack"]},
        placement=instance["placement_before"],
        alive=~instance["dead"],
        spread={"zone": 1},
        group=instance["resource"],
        **more,
    )


@pytest.fixture(scope="module")
def expanded():
    """A cluster just expanded, with dead nodes and nodes over capacity."""
    return cluster_of(generate(P=600, N=30, Z=5, seed=3))


def live_replicas(cluster: ek.Cluster, placement: Placement):
    # what stands on a node that is gone serves nobody, whether that is said to be alive or not
    alive = np.append(cluster.nodes.alive & ~cluster.nodes.gone, False)[placement.node]
    return np.bincount(placement.owner[alive], minlength=len(cluster.partitions))


def same_bits(one: ek.Result, other: ek.Result) -> bool:
    return np.array_equal(one.placement.node, other.placement.node) and np.array_equal(
        one.placement.leader, other.placement.leader
    )


@given(clusters())
def test_nothing_is_ever_left_worse_than_it_came(cluster):
    result = ek.solve(cluster, goals=ek.Goals(level=0.1), work_limit=100_000)
    before, after = result.audit_before, result.audit
    assert after.hard <= before.hard
    least = np.minimum(live_replicas(cluster, cluster.placement), cluster.partitions.replicas)
    assert (live_replicas(cluster, result.placement) >= least).all()
    for kind in ("spread", "same_node", "forbidden", "require", "pinned", "not_kept"):
        assert after.counts[kind] <= before.counts[kind], kind
    # a partition that can be led is led, even where no replica of it has room for that
    led = before.counts["leaderless"] + before.counts["leader"]
    assert after.counts["capacity"] <= before.counts["capacity"] + led


@given(clusters(solvable=True))
def test_solving_a_finished_result_again_moves_nothing(cluster):
    goals = ek.Goals(level=0.2)
    first = ek.solve(cluster, goals=goals, work_limit=100_000)
    again = ek.solve(cluster.with_placement(first.placement), goals=goals, work_limit=100_000)
    if first.success and first.stop_reason == "tolerance":
        assert again.comparison.moves == 0
        assert again.comparison.leader_changes == 0


def test_a_cluster_is_mended_and_levelled_close_to_the_proven_minimum(expanded):
    result = ek.solve(expanded, goals=ek.Goals(level=0.04))
    assert result.success
    assert result.stop_reason == "tolerance"
    assert result.audit.hard == 0
    assert (result.levelness.ratio <= 1.04 + 1e-9).all()
    assert result.bounds.moves_level <= result.comparison.moves
    assert result.gap.moves <= 0.10
    assert len(result.moves) == result.comparison.moves
    assert len(result.unplaced) == 0


def test_without_a_level_goal_only_what_must_move_moves(expanded):
    result = ek.solve(expanded, goals=ek.Goals(level=None))
    assert result.audit.hard == 0
    assert result.comparison.moves <= 1.1 * result.bounds.moves_feasible


@pytest.mark.small
def test_the_same_seed_gives_the_same_bits(expanded):
    runs = [
        ek.solve(expanded, goals=ek.Goals(level=0.04), seed=5, work_limit=50_000) for _ in range(2)
    ]
    assert same_bits(*runs)


def test_threads_change_nothing(expanded):
    alone = ek.solve(expanded, goals=ek.Goals(level=0.04), work_limit=50_000)
    found: list[ek.Result] = []

    def work() -> None:
        found.append(ek.solve(expanded, goals=ek.Goals(level=0.04), work_limit=50_000))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(same_bits(alone, one) for one in found)


def test_renaming_nodes_and_partitions_changes_no_decision():
    instance = generate(P=200, N=20, Z=5, seed=4)
    plain = ek.solve(cluster_of(instance), goals=ek.Goals(level=0.05))
    renamed = cluster_of(
        instance,
        node_names=[f"host-{i:03}" for i in range(20)][::-1],
        partition_names=[f"orders-{i}" for i in range(200)],
    )
    assert same_bits(plain, ek.solve(renamed, goals=ek.Goals(level=0.05)))


@pytest.mark.small
def test_an_empty_cluster_is_a_legal_no_op():
    for nodes in (0, 3):
        cluster = ek.Cluster.from_arrays(
            capacity=np.ones((nodes, 2)), load=np.zeros((0, 2)), replicas=3
        )
        result = ek.solve(cluster)
        assert result.success
        assert result.moves == ()


def test_what_does_not_fit_is_listed_with_what_blocks_it():
    cluster = ek.Cluster.from_arrays(
        capacity=[[3.0]] * 3, load=[[2.0]] * 4, replicas=1, dimensions=["disk"]
    )
    result = ek.solve(cluster)
    assert result.status == "infeasible"
    assert result.message.startswith("Proven: no placement meets the hard rules")
    assert not result.success
    (unplaced,) = result.unplaced
    assert unplaced.blocked == {"capacity disk": 3}
    assert result.audit.counts["unassigned"] == 1


def test_more_replicas_than_zones_are_placed_as_far_as_the_rule_lets():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4,
        load=[[1.0]] * 2,
        domains={"zone": ["a", "a", "b", "b"]},
        replicas=3,
        spread={"zone": 1},
    )
    result = ek.solve(cluster)
    assert result.status == "partial"
    assert live_replicas(cluster, result.placement).tolist() == [2, 2]
    assert all("spread zone 1" in one.blocked for one in result.unplaced)


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({"spread": {"node": 1}}, "spread node 1 of its group"),
        ({"spread": {"zone": 1}}, "spread zone 1 of its group"),
        ({"max_domains": {"zone": 1}, "spread": {"node": 1}}, "max_domains zone 1 of its group"),
    ],
)
def test_a_limit_of_a_group_is_named_where_it_keeps_a_replica_off(rule, reason):
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 4, replicas=1, group=[0] * 4,
        domains={"zone": ["a", "a", "b"]}, rules=[ek.Rule(**rule)], group_rule=[0],
    )  # fmt: skip
    result = ek.solve(cluster)
    assert result.unplaced
    for one in result.unplaced:
        assert reason in one.blocked and not any("open" in why for why in one.blocked)


def test_a_wish_gives_way_where_a_replica_would_have_no_node():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4,
        load=[[1.0]] * 2,
        domains={"zone": ["a", "a", "b", "b"]},
        replicas=3,
        spread={"zone": (1, "soft")},
    )
    result = ek.solve(cluster)
    assert result.success
    assert live_replicas(cluster, result.placement).tolist() == [3, 3]
    assert result.audit.soft > 0


def test_replicas_that_share_a_zone_or_a_node_are_parted():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 6,
        load=[[1.0]] * 3,
        domains={"zone": [0, 0, 1, 1, 2, 2]},
        placement=[[0, 1, 2], [0, 0, 4], [3, 5, 1]],
        spread={"zone": 1},
    )
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert result.audit_before.hard > 0
    assert result.audit.hard == 0
    assert result.comparison.moves == 2


def test_more_replicas_than_wanted_are_dropped():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]], placement=[[0, 1, 2, 3]], replicas=3
    )
    result = ek.solve(cluster)
    assert live_replicas(cluster, result.placement).tolist() == [3]
    assert result.placement.node[0] == 0
    assert result.comparison.removed == 1


@pytest.mark.parametrize("behind", [0, 1, 2, 3])
def test_of_surplus_replicas_one_that_is_behind_is_dropped(behind):
    flags = np.full(4, int(Flag.CAUGHT_UP))
    flags[behind] = 0
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 2, placement=[[0, 1, 2, 3], [0, 1, -1, -1]],
        flags=[flags, flags], replicas=[3, 2], leader=(behind == 0) * 1,
    )  # fmt: skip
    placed = ek.solve(cluster, goals=ek.Goals(level=None)).placement.nodes.tolist()
    assert placed[0] == [-1 if n == behind else n for n in range(4)]


IN_SYNC, ELECTED = int(Flag.CAUGHT_UP), int(Flag.CAUGHT_UP | Flag.ELECTED)


@pytest.mark.parametrize("method", ["balance", "exact"])
@pytest.mark.parametrize("goals", [ek.Goals(level=None), ek.Goals(level=0.0)])
@pytest.mark.parametrize(
    ("flags", "changes", "stay", "join"),
    [
        ([IN_SYNC, 0, 0], {"replicas": 1}, {0}, 0),
        ([0, IN_SYNC, 0], {"replicas": 1}, {1}, 0),
        ([IN_SYNC, 0, 0], {"replicas": 2}, {0}, 0),
        ([IN_SYNC, IN_SYNC, 0], {"replicas": 2}, {0, 1}, 0),
        ([IN_SYNC, 0, 0], {"replicas": 1, "drain": "n0"}, set(), 1),
        ([IN_SYNC, IN_SYNC, 0], {"replicas": 1, "drain": "n0"}, {1}, 0),
        ([IN_SYNC, IN_SYNC, 0], {"replicas": 2, "drain": "n0"}, {1}, 1),
        ([IN_SYNC, 0, IN_SYNC], {"replicas": 1, "down": "n0"}, {2}, 0),
        ([ELECTED, IN_SYNC, IN_SYNC], {"replicas": 1}, {0}, 0),
        ([ELECTED, IN_SYNC, IN_SYNC], {"replicas": 2}, {0}, 0),
        ([ELECTED, IN_SYNC, IN_SYNC], {"replicas": 1, "drain": "n0"}, set(), 1),
        ([ELECTED, IN_SYNC, IN_SYNC], {"replicas": 1, "down": "n0"}, set(), 0),
    ],
)
def test_fewer_replicas_keep_those_in_sync_and_elected_leaders(
    method, goals, flags, changes, stay, join
):
    cluster = ek.Cluster.from_arrays(
        capacity=[[99.0]] * 5, load=[[9.0], [5.0]], placement=[[0, 1, 2], [0, 1, 2]],
        flags=[flags, flags], leader=[flags.index(max(flags))] * 2,
    )  # fmt: skip
    orders = [cluster.apply(ek.Changes(**changes))]  # all at once, and one after the other
    for names in permutations(changes) if len(changes) > 1 else ():
        changed = cluster
        for name in names:
            changed = changed.apply(ek.Changes(**{name: changes[name]}))
        orders.append(changed)
    for changed in orders:
        result = ek.solve(changed, method=method, goals=goals)
        for row in result.placement.nodes.tolist():
            held = {n for n in row if n >= 0}
            assert len(held) == changes["replicas"]
            new = held - {0, 1, 2}
            if goals.level is None:
                assert (stay <= held, len(new)) == (True, join)
            # levelling may copy on, never to one behind
            assert len(new | {n for n in held - new if flags[n]}) >= len(stay) + join
        if ELECTED in flags and "down" not in changes:
            assert result.placement.leader.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        ({"node_out": 0}, 3), ({"node_out": {"n1": 0}}, 3), ({"node_out": {"n0": 0}}, 1),
        ({"node_out": 1}, 1), ({"domain_out": {"zone": 0}}, 3), ({"domain_out": {"zone": 1}}, 1),
        ({"moves": 0}, 1),
    ],
)  # fmt: skip
def test_limits_let_no_replica_in_sync_go_in_the_place_of_one_behind(limits, left):
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]], placement=[[0, 1, 2]], flags=[[IN_SYNC, 0, 0]],
        domains={"zone": list("abcd")},
    ).apply(ek.Changes(replicas=1))  # fmt: skip
    held = ek.solve(cluster, limits=ek.Limits(**limits)).placement.node
    assert held[0] == 0
    assert (held >= 0).sum() == left


@pytest.mark.parametrize("method", ["balance", "exact"])
@pytest.mark.parametrize(
    ("rule", "leads"), [({}, True), ({}, False), ({"rack": 1}, True), ({"rack": 1}, False)]
)
def test_to_mend_a_rule_the_last_replica_in_sync_stays(method, rule, leads):
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 6, load=[[1.0]] * 2, placement=[[0, 1, 2], [2, 3, 4]],
        flags=[[IN_SYNC, 0, 0], [IN_SYNC] * 3], domains={"rack": list("aabcde")},
        spread=rule, leads=[leads, *[True] * 5],
    )  # fmt: skip
    result = ek.solve(cluster, method=method, goals=ek.Goals(level=None))
    row = result.placement.nodes[0].tolist()
    assert 0 in row and 2 in row
    assert (1 in row) == (leads and not rule)  # else one moves, so that it may lead
    assert result.placement.leader_node[0] in {0, *row} - {1, 2}
    drained = ek.solve(cluster.drain("n0"), method=method, goals=ek.Goals(level=None))
    assert 0 not in drained.placement.nodes[0]


def test_leaders_leave_a_node_that_may_not_lead_without_a_move():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3,
        load=[[1.0]] * 4,
        placement=[[0, 1], [0, 2], [1, 0], [0, 1]],
        leads=[False, True, True],
    )
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert result.comparison.moves == 0
    assert 0 not in result.placement.leader_node
    assert len(result.leader_changes) == 3


def test_leaders_are_levelled_when_asked():
    cluster = ek.Cluster.from_arrays(
        capacity=[[99.0]] * 3, load=[[1.0]] * 30, placement=[[0, 1, 2]] * 30
    )
    result = ek.solve(cluster, goals=ek.Goals(level=None, leaders=0.0))
    assert np.bincount(result.placement.leader_node).tolist() == [10, 10, 10]
    assert result.comparison.moves == 0


@pytest.mark.parametrize("most", [0, 5, 60, 10_000])
def test_moves_stay_within_their_budget(expanded, most):
    result = ek.solve(expanded, goals=ek.Goals(level=0.04), limits=ek.Limits(moves=most))
    assert result.comparison.moves <= most
    if most < result.bounds.forced:
        assert result.status == "partial"
        assert result.stop_reason == "limits"


@pytest.mark.parametrize("seed", [15, 20, 29])
def test_one_hot_node_gets_level_with_hardly_more_moves_than_it_must_lose(seed):
    """Relief that does not level it must not use up the moves that walking would put to use."""
    rng = np.random.default_rng(seed)
    nodes, partitions, level = 40, 300, 0.03
    load = rng.integers(2, 7, (partitions, 2)).astype(float)
    here = {
        "capacity": np.full((nodes, 2), load.sum()),
        "replicas": 3,
        "domains": {"zone": np.arange(nodes) % 4},
        "spread": {"zone": 1},
    }
    calm = ek.Cluster.from_arrays(load=load, **here)
    calm = calm.with_placement(ek.solve(calm, goals=ek.Goals(level=0.04)).placement)
    load[np.flatnonzero(calm.placement.node == 0)[:5] // 3] *= 1.5
    hot = ek.Cluster.from_arrays(load=load, **here).with_placement(calm.placement)
    least = ek.solve(hot, goals=ek.Goals(level=level), work_limit=0).bounds.moves_level
    limits = ek.Limits(moves=least + 2)
    result = ek.solve(hot, goals=ek.Goals(level=level), limits=limits, work_limit=1_000_000)
    assert result.stop_reason == "tolerance"
    assert result.levelness.ratio.max() <= 1.0 + level


def test_moves_per_node_and_bytes_stay_within_their_budgets():
    instance = generate(P=600, N=30, Z=5, seed=3)
    cluster = cluster_of(instance, dimensions=["cpu", "disk", "net"], bytes="disk")
    free = ek.solve(cluster, goals=ek.Goals(level=0.04)).comparison
    limits = ek.Limits(node_in=9, node_out=3, bytes=0.8 * free.bytes_moved)
    moved = ek.solve(cluster, goals=ek.Goals(level=0.04), limits=limits).comparison
    alive = cluster.nodes.alive
    assert moved.node_in.max() <= 9
    assert moved.node_out[alive].max() <= 3
    assert moved.bytes_moved <= 0.8 * free.bytes_moved


@pytest.mark.small
def test_a_callback_is_told_and_may_stop(expanded):
    reports = []

    def stop(progress):
        reports.append(progress)
        raise StopIteration

    result = ek.solve(expanded, goals=ek.Goals(level=0.0), callback=stop)
    assert result.stop_reason == "interrupted"
    assert len(reports) == 1
    assert reports[0].phase
    assert result.audit.hard <= result.audit_before.hard


def test_a_callback_is_told_while_bounds_and_audit_are_computed(expanded, monkeypatch):
    slices, reports = [], []
    for every, hears in ((np.inf, slices), (0.0, reports)):
        monkeypatch.setattr(stopping, "EVERY", every)
        result = ek.solve(expanded, goals=ek.Goals(level=0.04), callback=hears.append)
    assert reports[0].phase == "bounds" != slices[0].phase and reports[-1].phase == "audit"
    phases = [name.rpartition(".")[2] for name in result.timings]
    assert {one.phase for one in reports} <= {*phases}
    for name in ("seconds", "work"):
        values = [getattr(one, name) for one in reports]
        assert values == sorted(values), name
    assert reports[-1].moves == result.comparison.moves


def test_the_seconds_in_which_a_method_loads_are_a_phase(expanded, monkeypatch):
    load = Method.load
    monkeypatch.setattr(Method, "load", lambda method: (time.sleep(0.2), load(method))[1])
    timings = ek.solve(expanded, "leaders").timings
    assert 0.2 <= timings["leaders.load"] <= timings["leaders"]


@pytest.mark.parametrize("method", ["balance", "leaders", "cockroach"])
def test_who_stops_before_the_search_has_begun_gets_what_came_in(expanded, method, monkeypatch):
    monkeypatch.setattr(stopping, "EVERY", 0.0)

    def stop(progress):
        raise StopIteration

    result = ek.solve(expanded, method, goals=ek.Goals(level=None), callback=stop)
    assert result.stop_reason == "interrupted"
    assert result.audit.hard <= result.audit_before.hard


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("balance", None),
        ("leaders", ek.options.Leaders(by="load")),
        ("cockroach", None),
        ("helix_crush", None),
    ],
)
def test_listening_changes_no_answer(expanded, method, options, monkeypatch):
    monkeypatch.setattr(stopping, "EVERY", 0.0)
    asked = {"method": method, "options": options, "goals": ek.Goals(level=None)}
    heard = ek.solve(expanded, **asked, callback=lambda progress: None)
    alone = ek.solve(expanded, **asked)
    assert np.array_equal(heard.placement.node, alone.placement.node)
    assert np.array_equal(heard.placement.leader, alone.placement.leader)


def test_ctrl_c_returns_the_best_so_far(expanded, monkeypatch):
    # on a busy machine a report is repeated before there is a best, and ends the solve by raising
    monkeypatch.setattr(stopping, "EVERY", math.inf)

    def interrupt(progress):
        raise KeyboardInterrupt

    result = ek.solve(expanded, goals=ek.Goals(level=0.0), callback=interrupt)
    assert result.stop_reason == "interrupted"
    assert result.audit.hard <= result.audit_before.hard


def test_no_time_still_gives_a_whole_placement(expanded):
    result = ek.solve(expanded, goals=ek.Goals(level=0.0), time_limit=0.0)
    assert result.stop_reason == "time"
    assert result.audit.hard <= result.audit_before.hard


def test_a_start_is_where_the_search_begins_and_moves_are_counted_from_the_cluster(expanded):
    goals = ek.Goals(level=0.04)
    first = ek.solve(expanded, goals=goals)
    again = ek.solve(expanded, goals=goals, start=first.placement)
    assert again.success
    assert again.comparison.moves == first.comparison.moves


SPENT = {"limits": ek.Limits(moves=0)}


@pytest.mark.parametrize("more", [{"time_limit": 0.0}, {"work_limit": 0}, SPENT])
@pytest.mark.parametrize("method", ["balance", "exact"])
@pytest.mark.parametrize(
    ("node", "leader", "why"),
    [
        ([0, 1, -1], [0, 0, 0], "1 live replicas, 1 leader"),
        ([0, 1, 2], [0, 0, -1], "1 leader"),
        ([0, 0, 0], [0, 0, 0], "1 capacity"),
        ([0, 0, 2], [0, 0, 0], ""),
    ],
)
def test_a_start_that_breaks_a_rule_or_exceeds_a_budget_is_not_used(
    node, leader, why, method, more
):
    cluster = ek.Cluster.from_arrays(
        capacity=[[2.0]] * 3, load=[[1.0]] * 3, placement=[[0], [1], [2]]
    )
    start = cluster.placement.replaced(node, leader)
    result = ek.solve(cluster, method, goals=ek.Goals(level=None), start=start, **more)
    assert result.regressions == {}
    moved = node != [0, 1, 2] and -1 not in node
    why += "moves" * (more is SPENT and moved)
    assert any("start is not used" in one for one in result.warnings) is bool(why)
    assert result.comparison.moves == 0 or not why


@pytest.mark.parametrize("more", [{}, {"time_limit": 0.0}, {"work_limit": 0}])
def test_what_is_dear_to_move_may_have_moved_in_the_start(more):
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 6, placement=[[0]] * 6, group=[*"aaabbb"]
    )
    start = cluster.placement.replaced([1, 2, 1, 2, 0, 0], [0] * 6)
    goals = ek.Goals(level=0.0, move_cost={"a": 2.0})
    result = ek.solve(cluster, goals=goals, start=start, **more)
    assert result.levelness.loads.ravel().tolist() == [2.0, 2.0, 2.0]
    assert not any("start is not used" in one for one in result.warnings)


@pytest.mark.small
def test_every_wrong_argument_is_named(expanded):
    with pytest.raises(ek.InvalidInput) as error:
        ek.solve(
            expanded,
            goals=ek.Goals(level={"ram": 0.1}),
            limits=ek.Limits(bytes=1.0),
            time_limit=-1.0,
            seed="x",
            callback=3,
        )
    paths = {fault.path for fault in error.value.faults}
    assert paths == {"goals.level", "limits.bytes", "time_limit", "seed", "callback"}
    with pytest.raises(ek.InvalidInput, match=r"there are: .*balance"):
        ek.solve(expanded, method="best")


def test_a_domain_that_may_hold_nothing_is_no_reason_of_a_skew():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 5, load=[[1.0]], domains={"zone": [*"aabbc"]}, placement=[[0, 2, 1]],
        keeps=[True] * 4 + [False], rules=[ek.Rule(skew={"zone": 1})], rule=[0],
    )  # fmt: skip
    result = ek.solve(cluster)
    assert result.audit.counts["skew"] == 0
    for replica in result.explain("p0").replicas:
        assert not any("skew" in row.blocked_by for row in replica.nodes)


def test_a_partition_is_explained_node_by_node(expanded):
    result = ek.solve(expanded, goals=ek.Goals(level=0.04))
    moved = result.moves[0]
    explained = result.explain(moved.partition)
    (one,) = [r for r in explained.replicas if r.slot == moved.slot]
    assert one.before == moved.source
    assert one.now == moved.target
    assert len(one.nodes) == len(expanded.nodes)
    reasons = {row.blocked_by for row in one.nodes}
    assert "spread zone 1" in reasons
    assert "not alive" in reasons
    counts = Counter(row.blocked_by or "could hold it, emptiest first" for row in one.nodes)
    for reason, count in counts.items():
        assert f" {count} {reason}: " in str(explained)
    with pytest.raises(ek.InvalidInput, match="unknown partition"):
        result.explain("nobody")


def test_a_solve_is_logged_and_prints_nothing(expanded, caplog, capsys):
    with caplog.at_level(logging.INFO, logger="evenkeel"):
        result = ek.solve(expanded)
    (record,) = caplog.records
    assert record.evenkeel["status"] == result.status
    assert record.evenkeel["moves"] == result.comparison.moves
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_the_input_is_never_written_to():
    instance = generate(P=100, N=10, Z=5, seed=2)
    kept = {name: array.copy() for name, array in instance.items()}
    ek.solve(cluster_of(instance), goals=ek.Goals(level=0.02))
    assert all(np.array_equal(instance[name], kept[name]) for name in instance)


def test_with_a_cost_what_must_move_is_placed_before_anything_is_minimised():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3,
        watermark=[[2.0]] * 3,
        load=[[1.0]] * 6,
        placement=[[0]] * 6,
        alive=[False, True, True],
    )
    result = ek.solve(cluster, goals=ek.Cost(watermark=10.0, moves=1.0), work_limit=20_000)
    assert result.success
    assert result.audit.hard == 0
    assert sorted(result.levelness.loads[:, 0].tolist()) == [0.0, 3.0, 3.0]


@pytest.mark.small
def test_budgets_go_with_goals(expanded):
    with pytest.raises(ek.InvalidInput, match="go with Goals"):
        ek.solve(expanded, goals=ek.Cost(), limits=ek.Limits(moves=3))


def test_budgets_never_overfill_a_node_whose_room_a_repair_has_taken():
    cluster = ek.Cluster.from_arrays(
        capacity=[[10.0], [10.0], [10.0]],
        load=[[6.0], [4.0], [3.0]],
        placement=[[0], [0], [2]],
        alive=[True, True, False],
        rules=[ek.Rule(), ek.Rule(require=["node=n0"])],
        rule=[0, 0, 1],
    )
    free = ek.solve(cluster, goals=ek.Goals(level=0.3))
    assert free.audit.hard == 0  # a replica makes room for the lost one
    kept = ek.solve(cluster, goals=ek.Goals(level=0.3), limits=ek.Limits(node_out=0))
    assert kept.comparison.node_out[0] == 0
    assert kept.audit.counts["capacity"] == 0
    assert kept.status == "partial"


def test_rules_are_mended_as_far_as_the_budget_goes():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]] * 4, placement=[[0, 1]] * 4,
        domains={"zone": [0, 0, 1, 1]}, spread={"zone": 1},
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=None), limits=ek.Limits(moves=3))
    assert result.audit_before.counts["spread"] == 4
    assert (result.audit.counts["spread"], result.comparison.moves) == (1, 3)


def test_dropping_replicas_uses_up_no_budget():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 5, replicas=1,
        placement=[[0, 1], [0, -1], [0, -1], [0, -1], [1, -1]],
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=0.0), limits=ek.Limits(moves=2))
    assert result.comparison.removed == 1
    assert result.levelness.most.max() * 9.0 == pytest.approx(2.0)


def test_a_preference_for_leaders_does_not_keep_a_rule_broken():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4, load=[[1.0]], placement=[[0, 1]],
        domains={"region": ["a", "a", "b", "b"]},
        rules=[ek.Rule(place={"region=b": 2}, lead=["region=a"])], rule=[0],
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=None))
    assert result.audit.hard == 0
    assert sorted(result.placement.node.tolist()) == [2, 3]
    assert result.placement.leader[0] >= 0


@pytest.mark.parametrize("load", [0.0, 1.0])
def test_leaders_go_where_they_are_preferred_even_where_nothing_is_to_be_levelled(load):
    cluster = ek.Cluster.from_arrays(
        capacity=[[np.inf if load == 0.0 else 99.0]] * 3, load=[[load]] * 4,
        placement=[[0, 1, 2]] * 4, domains={"region": ["a", "b", "c"]},
        rules=[ek.Rule(lead=["region=c"])], rule=[0] * 4,
    )  # fmt: skip
    result = ek.solve(cluster)
    assert result.levelness.leaders.tolist() == [0, 0, 4]
    assert result.comparison.moves == 0


def test_a_live_replica_stays_where_only_a_dead_pinned_one_would_be_left():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 2, load=[[0.0]], placement=[0, 1], first=[0, 2], replicas=[1],
        flags=[1, 0], alive=[False, True], accepts=[False, True], keeps=[False, False],
    )  # fmt: skip
    result = ek.solve(cluster, goals=ek.Goals(level=0.1))
    assert live_replicas(cluster, result.placement).tolist() == [1]
