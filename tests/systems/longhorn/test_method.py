"""Longhorn's auto-balance as a method: what solve returns, warns of and refuses."""

from dataclasses import replace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.systems.longhorn.auto_balance.compile import LIMITED
from evenkeel.systems.longhorn.auto_balance.intake import Disk, Host, Replica, Volume, cluster_of
from evenkeel.systems.longhorn.auto_balance.stepping import ActionLog, AutoBalance, next_action
from tests.support.longhorn.systems import plain, random_system, soft

ZONES = {"a": "x", "b": "y", "c": "z"}
ANY = ek.Goals(level=None)


def balance(cluster, **options):
    return ek.solve(cluster, "longhorn", goals=ANY, options=ek.options.Longhorn(**options))


def test_solve_balances_and_tells_every_action_with_its_reason():
    result = balance(plain(ZONES, {"a": 3}, settings=soft("least-effort")))
    assert sorted(result.placement.node.tolist()) == [0, 1, 2]
    assert result.status == "feasible"
    assert result.message == "2 replicas were added and 2 deleted."
    assert result.comparison.moves == 2
    assert isinstance(result.native, ActionLog)
    assert [(kind, disk) for kind, _, _, disk, _ in result.native.rows()] == [
        ("add", "b/d"), ("delete", "a/d"), ("add", "c/d"), ("delete", "a/d"),
    ]  # fmt: skip
    assert result.native.kind.tolist() == [1, 2, 1, 2]
    assert result.native.disk.tolist() == [1, 0, 2, 0]
    assert result.native.replica.tolist() == [-1, 0, -1, 1]
    told = str(result.native.explain(0))
    assert told.splitlines() == [
        "v (a 3): add v-r-new00001 on b/d, for zones without a replica could hold one "
        "(least-effort, zones): 2",
        "  tier 1: unused hosts in unused zones",
        "  chosen among b/d, c/d",
        "  scores b 0.000000, c 0.000000",
        "  1 disks: an earlier tier has a disk",
    ]
    assert "delete r00 from a/d, for it is among most replicas that share a disk" in str(
        result.native.explain(1)
    )


@pytest.mark.parametrize(("start", "wanted"), [({"a": 3}, 3), ({"a": 1, "b": 1}, 5)])
def test_solving_a_result_again_moves_nothing(start, wanted):
    result = balance(plain(ZONES, start, wanted=wanted, settings=soft()))
    assert result.comparison.moves > 0
    again = balance(result.cluster.with_placement(result.placement))
    assert again.comparison.moves == 0


def test_the_warning_of_limited_redundancy_vanishes_when_it_is_mended():
    cluster = plain(ZONES, {"a": 2, "c": 1}, schedulable="ac", settings=soft("least-effort"))
    assert balance(cluster).warnings == (
        "Limited node redundancy: at least one healthy replica is running at the same node as "
        "another",
        "1 volume with limited node redundancy: v",
    )
    mended = balance(plain(ZONES, {"a": 2, "c": 1}, settings=soft("least-effort")))
    assert mended.warnings == ()


def test_the_warning_counts_healthy_replicas_of_all_volumes_and_names_some():
    hosts = [Host(name=n, disks=[Disk(name=d, maximum=1000) for d in "de"]) for n in "ab"]
    volumes = [
        Volume(
            name=f"v{v}",
            size=1,
            number_of_replicas=2,
            attached_to="a",
            replicas=[
                Replica(name=f"v{v}-0", host="a", disk="d"),
                Replica(name=f"v{v}-1", host="a", disk="e", healthy=v > 0, failed=v == 0),
            ],
            migrating=True,
        )
        for v in range(8)
    ]
    said, which, short = balance(cluster_of(hosts, volumes)).warnings
    assert said == LIMITED
    assert "1 volume short of replicas" in short
    assert which == "7 volumes with limited node redundancy: v1, v2, v3, v4, v5, ..."


@pytest.mark.parametrize("effort", ["best-effort", "best_effort"])
def test_options_win_over_stored_settings_in_either_spelling(effort):
    cluster = plain(dict.fromkeys("ab", "z"), {"a": 4}, settings=soft("disabled"))
    assert balance(cluster).comparison.moves == 0
    moved = balance(cluster, replica_auto_balance=effort)
    assert sorted(moved.placement.node.tolist()) == [0, 0, 1, 1]
    fewer = balance(cluster, replica_auto_balance="least_effort")
    assert sorted(fewer.placement.node.tolist()) == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("own", "moves"), [("ignored", 2), ("disabled", 0), ("least-effort", 1), ("best_effort", 2)]
)
def test_a_volume_s_own_setting_wins_unless_it_is_ignored(own, moves):
    cluster = plain(dict.fromkeys("ab", "z"), {"a": 4}, settings=soft(), replica_auto_balance=own)
    assert balance(cluster).comparison.moves == moves


def test_missing_replicas_are_placed_and_failed_ones_are_dropped_from_their_slots():
    hosts = [Host(name=n, disks=[Disk(name="d", maximum=1000)]) for n in "abc"]
    hosts[1] = replace(hosts[1], ready=False)
    lost = Replica(name="r1", host="b", disk="d", healthy=False, failed=True)
    held = [Replica(name="r0", host="a", disk="d"), lost]
    volume = Volume(name="v", size=1, number_of_replicas=2, attached_to="a", replicas=held)
    result = balance(cluster_of(hosts, [volume]))
    assert result.placement.node.tolist() == [0, 2]
    assert [row[0] for row in result.native.rows()] == ["add", "drop"]
    assert result.audit.hard == 0


def test_what_finds_no_place_is_told():
    result = balance(plain({"a": "x"}, {"a": 1}, wanted=2))
    assert result.status == "partial"
    assert [one.partition for one in result.unplaced] == ["v"]
    assert next_action(result.cluster, "v").why == (
        "no disk may take another replica, though replicas are missing or to leave (replenishment)"
    )


@pytest.mark.parametrize("work", [0, 1, 40, 400])
def test_a_run_that_is_stopped_has_lost_no_replica(work):
    for seed in range(20):
        cluster, options = random_system(seed, rough=False)
        result = ek.solve(cluster, "longhorn", goals=ANY, options=options, work_limit=work)
        before, after = cluster.placement, result.placement
        held = np.bincount(after.owner[after.node >= 0], minlength=len(after))
        had = np.bincount(before.owner[before.node >= 0], minlength=len(before))
        assert (held >= np.minimum(had, cluster.partitions.replicas)).all()
        again = ek.solve(cluster, "longhorn", goals=ANY, options=options, work_limit=work)
        np.testing.assert_array_equal(again.native.entries, result.native.entries)


def test_a_callback_is_called_and_may_stop_it():
    cluster = plain(ZONES, {"a": 3}, settings=soft())
    seen = []

    def stop(progress):
        seen.append(progress.phase)
        if progress.phase == "longhorn":  # a report of an earlier phase depends on the clock
            raise StopIteration

    result = ek.solve(cluster, "longhorn", goals=ANY, work_limit=1, callback=stop)
    assert (seen[-1], seen.count("longhorn")) == ("longhorn", 1)
    assert result.stop_reason == "interrupted"


def test_what_longhorn_does_not_know_is_refused():
    cluster = plain(ZONES, {"a": 3})
    with pytest.raises(ek.InvalidInput, match="it keeps no limits with these options"):
        ek.solve(cluster, "longhorn", goals=ANY, limits=ek.Limits(moves=1))
    moved = cluster.placement.replaced(cluster.placement.node.copy(), cluster.placement.leader)
    with pytest.raises(ek.InvalidInput, match="begins where the cluster's replicas are"):
        ek.solve(cluster, "longhorn", goals=ANY, start=moved)
    with pytest.raises(ek.InvalidInput, match=r"takes evenkeel.options\.Longhorn"):
        ek.solve(cluster, "longhorn", goals=ANY, options=ek.options.Upmap())
    bare = ek.Cluster.from_arrays(capacity=[[1.0]], load=[[1.0]], placement=[[0]])
    with pytest.raises(ek.InvalidInput, match="must be a Longhorn System"):
        ek.solve(bare, "longhorn", goals=ANY)
    for volume in ("w", 1, -1):
        with pytest.raises(ek.InvalidInput, match="volume"):
            AutoBalance(cluster).next_action(volume)


def test_the_model_says_what_longhorn_s_settings_mean():
    hosts = [
        Host(
            name=name,
            zone=zone,
            disks=[Disk(name="d", maximum=100, available=80, reserved=30, tags=["ssd"])],
            cordoned=name == "b",
            ready=name != "c",
        )
        for name, zone in (("a", ""), ("b", "x"), ("c", "x"))
    ]
    volume = Volume(
        name="v", size=20, actual_size=10, disk_selector=["ssd"], number_of_replicas=1,
        attached_to="a", replicas=[Replica(name="r", host="a", disk="d")],
    )  # fmt: skip
    cluster = cluster_of(
        hosts, [volume, replace(volume, name="w", replicas=[], disk_selector=["no"])]
    )
    assert list(cluster.nodes.names) == ["a/d", "b/d", "c/d"]
    assert cluster.topology.tiers == ("zone", "host")
    assert cluster.topology.label_names[0] == ("(no zone)", "x")
    assert cluster.dimensions == ("bytes", "nominal")
    assert cluster.nodes.capacity.tolist() == [[65.0, 70.0], [55.0, 70.0], [55.0, 70.0]]
    assert cluster.nodes.watermark[0].tolist() == [65.0, 70.0]
    assert cluster.nodes.accepts.tolist() == [True, False, False]
    assert cluster.nodes.alive.tolist() == [True, True, False]
    assert cluster.placement.leader.tolist() == [-1, -1]
    assert cluster.rules[int(cluster.partitions.rule[0])].require == ["+disk:ssd"]
    assert not cluster.rules[int(cluster.partitions.rule[1])].require  # none could be met
    assert next_action(cluster, "w").kind == "nothing"
