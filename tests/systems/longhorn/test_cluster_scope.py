"""One plan for all volumes of a Longhorn system: what it keeps to, and what it is better at."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.measure.compare import joined
from evenkeel.model.errors import InvalidInput
from evenkeel.systems import registry
from evenkeel.systems.longhorn.auto_balance.cluster_scope import (
    overreached,
    space_problem,
    standings,
)
from evenkeel.systems.longhorn.auto_balance.intake import (
    Disk,
    Host,
    Replica,
    Volume,
    as_cluster,
    cluster_of,
    promised,
    soft,
)
from evenkeel.systems.longhorn.auto_balance.settings import Settings
from tests.support.effort import share_of_examples
from tests.support.longhorn.files import FILE, replayed, written
from tests.support.longhorn.skewed import skewed, use

LIMITED = "Limited node redundancy"


def planned(cluster, effort=None, *, goals=None, limits=None, **options):
    """Solve with one plan for all volumes."""
    chosen = ek.options.Longhorn(scope="cluster", replica_auto_balance=effort, **options)
    return ek.solve(cluster, "longhorn", options=chosen, goals=goals, limits=limits)


def carried_out(cluster, node):
    """The cluster when replicas are on the disks of ``node``."""
    system, was = cluster.native, cluster.placement.node
    owner, disks = cluster.placement.owner, system.disks
    available, scheduled = disks.available.copy(), disks.scheduled.copy()
    gone = np.flatnonzero((was != node) & (was >= 0))
    came = np.flatnonzero((was != node) & (node >= 0))
    for at, sign, disk in ((gone, -1, was), (came, 1, node)):
        np.add.at(available, disk[at], -sign * system.volumes.actual[owner[at]])
        np.add.at(scheduled, disk[at], sign * system.volumes.size[owner[at]])
    after = replace(disks, available=available, scheduled=scheduled)
    return as_cluster(replace(system, disks=after), cluster.placement.first, node)


def rows(cluster, placement=None):
    """Names of the disks of each volume, sorted, by its name."""
    placement = placement or cluster.placement
    found = {name: [] for name in cluster.partitions.names}
    for p, n in zip(placement.owner.tolist(), placement.node.tolist(), strict=True):
        if n >= 0:
            found[cluster.partitions.names[p]].append(cluster.nodes.names[n])
    return {name: sorted(disks) for name, disks in found.items()}


def hosts(count=3, disks=1, size=1_000, **more):
    return [
        Host(
            name=f"h{h}", zone=f"z{h}",
            disks=[Disk(name=f"d{d}", maximum=size) for d in range(disks)], **more,
        )
        for h in range(count)
    ]  # fmt: skip


def volume(name, *at, size=10, **more):
    """A healthy volume with a replica on the one disk of each host of ``at``."""
    replicas = [Replica(name=f"{name}-r{i}", host=h, disk="d0") for i, h in enumerate(at)]
    told = {
        "size": size, "actual_size": size, "number_of_replicas": len(at), "attached_to": at[0],
        "robustness": "healthy", "replicas": replicas,
    }  # fmt: skip
    return Volume(name=name, **(told | more))


def loose(**more):
    """Settings without hard anti-affinity, under which all volumes make the least effort."""
    told = {"replica_auto_balance": "least-effort", "replica_soft_anti_affinity": True}
    return Settings(**(told | more))


class TestEffort:
    @pytest.mark.small
    @pytest.mark.parametrize(
        ("effort", "counts"),
        [("disabled", [6]), ("least-effort", [1, 1, 4]), ("best-effort", [2, 2, 2])],
    )
    def test_six_replicas_on_one_of_three_hosts(self, effort, counts):
        cluster = cluster_of(hosts(), [volume("v", *["h0"] * 6)], settings=loose())
        result = planned(cluster, effort, goals=ek.Goals(level=None))
        assert sorted(Counter(rows(cluster, result.placement)["v"]).values()) == counts

    def test_the_warning_vanishes_with_its_reason(self):
        cluster = cluster_of(hosts(), [volume("v", "h0", "h0")], settings=loose())
        assert planned(cluster, "disabled").warnings[0].startswith(LIMITED)
        assert planned(cluster).warnings == ()

    def test_a_volumes_own_setting_wins(self):
        own = [
            volume("off", "h0", "h0", replica_auto_balance="disabled"),
            volume("as-all", "h0", "h0"),
            volume("on", "h0", "h0", replica_auto_balance="best-effort"),
        ]
        cluster = cluster_of(hosts(), own, settings=loose(replica_auto_balance="disabled"))
        after = rows(cluster, planned(cluster).placement)
        assert after["off"] == after["as-all"] == ["h0/d0", "h0/d0"]
        assert len(set(after["on"])) == 2

    def test_beside_best_effort_least_effort_only_mends(self):
        full = [volume(f"v{i}", "h0", "h1", size=50) for i in range(8)]
        torn = volume("torn", "h0", "h0")
        eager = volume("eager", "h0", "h1", replica_auto_balance="best-effort")
        cluster = cluster_of(hosts(4), [*full, torn, eager], settings=loose())
        before, after = rows(cluster), rows(cluster, planned(cluster).placement)
        assert [after[f"v{i}"] for i in range(8)] == [before[f"v{i}"] for i in range(8)]
        assert len({disk.split("/")[0] for disk in after["torn"]}) == 2

    def test_more_effort_copies_more_and_ends_more_level(self):
        cluster = skewed(volumes=200, hosts=12, seed=1)
        least, best = (planned(cluster, effort) for effort in ("least-effort", "best-effort"))
        assert least.comparison.bytes_moved < best.comparison.bytes_moved
        assert use(best) < use(least) < use(cluster)
        for result in (least, best):
            told = result.native
            allowed = [one.cost for one in told.points if one.copied <= told.most_copied]
            assert told.chosen.cost <= min(allowed) + 0.005
            assert told.chosen.copied == result.comparison.bytes_moved

    def test_a_second_plan_finds_nothing_left_to_do(self):
        cluster = skewed(volumes=200, hosts=12, seed=1)
        result = planned(cluster, "least-effort")
        assert result.comparison.moves > 0
        again = planned(carried_out(cluster, result.placement.node), "least-effort")
        assert again.comparison.moves == 0

    def test_the_same_seed_gives_the_same_bits(self):
        cluster = skewed(volumes=100, hosts=8, seed=2)
        one, two = (planned(cluster, "best-effort").placement.node for _ in range(2))
        assert one.tobytes() == two.tobytes()


class TestWhatMayMove:
    """A volume with both replicas on one host, which is mended where Longhorn would."""

    @pytest.mark.parametrize(
        "told",
        [
            {"attached_to": None},
            {"robustness": "unknown"},
            {"robustness": "faulted"},
            {"migrating": True},
            {"rebuilding": True},
            {"in_sync": False},
            {"data_locality": "strict-local", "number_of_replicas": 1, "at": ("h0",)},
        ],
        ids=str,
    )
    def test_volumes_that_are_left_alone(self, told):
        told = dict(told)
        at = told.pop("at", ("h0", "h0"))
        cluster = cluster_of(hosts(), [volume("v", *at, **told)], settings=loose())
        result = planned(cluster, "best-effort")
        assert result.comparison.moves == 0
        assert rows(cluster, result.placement) == rows(cluster)

    def test_no_rebuilds_allowed_no_moves(self):
        settings = loose(concurrent_replica_rebuild_per_node_limit=0)
        cluster = cluster_of(hosts(), [volume("v", "h0", "h0")], settings=settings)
        assert planned(cluster).comparison.moves == 0

    @pytest.mark.parametrize(
        "closed",
        [{"allow_scheduling": False}, {"ready": False}, {"schedulable": False}, {"cordoned": True}],
        ids=str,
    )
    def test_hosts_that_take_nothing(self, closed):
        free = hosts(3)
        cluster = cluster_of(
            [*free[:2], replace(free[2], **closed)], [volume("v", "h0", "h0")], settings=loose()
        )
        assert rows(cluster, planned(cluster).placement)["v"] == ["h0/d0", "h1/d0"]

    def test_a_host_that_takes_nothing_still_counts(self):
        given = hosts(2)
        given[0] = replace(given[0], cordoned=True)
        cluster = cluster_of(given, [volume("v", "h0", "h0")], settings=loose())
        assert rows(cluster, planned(cluster).placement)["v"] == ["h0/d0", "h1/d0"]

    def test_a_cordoned_host_may_be_used_if_the_setting_says_so(self):
        free = hosts(2)
        cluster = cluster_of(
            [free[0], replace(free[1], cordoned=True)], [volume("v", "h0", "h0")],
            settings=loose(disable_scheduling_on_cordoned_node=False),
        )  # fmt: skip
        assert rows(cluster, planned(cluster).placement)["v"] == ["h0/d0", "h1/d0"]

    def test_replicas_under_eviction_leave_whatever_the_setting(self):
        for evicted in ("host", "disk", "replica"):
            given, v = hosts(4), volume("v", "h0", "h1")
            if evicted == "host":
                given[0] = replace(given[0], eviction_requested=True)
            elif evicted == "disk":
                disk = replace(given[0].disks[0], eviction_requested=True)
                given[0] = replace(given[0], disks=[disk])
            else:
                leaving = replace(v.replicas[0], eviction_requested=True)
                v = replace(v, replicas=[leaving, v.replicas[1]])
            cluster = cluster_of(given, [v], settings=Settings())
            after = rows(cluster, planned(cluster).placement)["v"]
            assert "h0/d0" not in after and "h1/d0" in after and len(after) == 2, evicted

    def test_an_evicted_replica_without_a_place_stays(self):
        given = hosts(2)
        given[0] = replace(given[0], eviction_requested=True)
        cluster = cluster_of(given, [volume("v", "h0", "h1")], settings=Settings())
        assert rows(cluster, planned(cluster).placement)["v"] == ["h0/d0", "h1/d0"]

    def test_the_local_replica_stays_local(self):
        many = [volume(f"v{i}", "h0", "h1", data_locality="best-effort") for i in range(20)]
        cluster = cluster_of(hosts(6), many, settings=loose())
        result = planned(cluster, "best-effort", most_copied=0.25)
        assert result.comparison.moves > 0
        assert all("h0/d0" in disks for disks in rows(cluster, result.placement).values())

    def test_the_source_of_a_linked_clone_stays(self):
        v = volume("v", "h0", "h0")
        first = replace(v.replicas[0], clone_source=True)
        v = replace(v, replicas=[first, v.replicas[1]])
        cluster = cluster_of(hosts(), [v], settings=loose())
        node = planned(cluster).placement.node
        assert node[0] == 0 and node[1] != 0


class TestRepairs:
    def torn(self, **failed):
        """A volume with one replica of two, the other one failed."""
        bad = Replica(name="bad", host="h1", disk="d0", healthy=False, failed=True, **failed)
        v = volume("v", "h0", number_of_replicas=2, robustness="degraded")
        return replace(v, replicas=[v.replicas[0], bad])

    def test_a_failed_replica_is_replaced(self):
        cluster = cluster_of(hosts(), [self.torn()], settings=Settings())
        node = planned(cluster).placement.node
        assert node[0] == 0 and node[1] > 0

    def test_one_that_may_return_is_waited_for(self):
        v = self.torn(reusable=True, failed_at=100.0)
        for now, moves in ((400.0, 0), (1_000.0, 1)):
            closed = hosts()
            closed[1] = replace(closed[1], allow_scheduling=False)
            cluster = cluster_of(closed, [v], settings=Settings(), now=now)
            node = planned(cluster).placement.node
            assert (node != cluster.placement.node).sum() == moves, now

    def test_what_has_failed_goes_when_the_volume_is_whole(self):
        bad = Replica(name="bad", host="h2", disk="d0", healthy=False, failed=True)
        v = volume("v", "h0", "h1")
        cluster = cluster_of(hosts(), [replace(v, replicas=[*v.replicas, bad])], settings=loose())
        assert planned(cluster).placement.node.tolist() == [0, 1, -1]

    def test_a_volume_that_wants_fewer_gives_away_the_surplus(self):
        v = volume("v", "h0", "h1", "h2", number_of_replicas=2)
        cluster = cluster_of(hosts(), [v], settings=loose())
        assert len(rows(cluster, planned(cluster).placement)["v"]) == 2
        still = cluster_of(hosts(), [v], settings=Settings())
        assert len(rows(still, planned(still).placement)["v"]) == 3


class TestPlaces:
    def test_selectors_tags_and_kinds_of_disks(self):
        given = [
            Host(name="h0", zone="a", disks=[Disk(name="d0", maximum=1_000)]),
            Host(
                name="h1", zone="b", tags=["fast"],
                disks=[
                    Disk(name="d0", maximum=1_000),
                    Disk(name="d1", maximum=1_000, tags=["ssd"]),
                    Disk(name="d2", maximum=1_000, tags=["ssd"], type="block"),
                ],
            ),
            Host(name="h2", zone="c", disks=[Disk(name="d0", maximum=9_000, tags=["ssd"])]),
        ]  # fmt: skip
        v = volume("v", "h0", "h0", node_selector=["fast"], disk_selector=["ssd"])
        # both replicas are where the selectors do not allow them, and there is one place
        cluster = cluster_of(given, [v], settings=loose())
        assert "h1/d1" in rows(cluster, planned(cluster).placement)["v"]

    def test_untagged_volumes_and_tagged_disks(self):
        given = hosts()
        given[1] = replace(given[1], tags=["fast"])
        settings = loose(allow_empty_node_selector_volume=False)
        cluster = cluster_of(given, [volume("v", "h0", "h0")], settings=settings)
        assert rows(cluster, planned(cluster).placement)["v"] == ["h0/d0", "h2/d0"]

    def test_an_engine_that_not_all_hosts_have(self):
        given = hosts()
        given[1] = replace(given[1], engines=["old"])
        v = volume("v", "h0", "h0", engine="new")
        cluster = cluster_of(given, [v], settings=loose())
        assert rows(cluster, planned(cluster).placement)["v"] == ["h0/d0", "h2/d0"]

    @pytest.mark.parametrize(
        ("available", "scheduled", "reserved", "fits"),
        [(360, 0, 0, True), (350, 0, 0, False), (1_000, 900, 0, True), (1_000, 901, 0, False),
         (1_000, 0, 900, True), (1_000, 0, 901, False)],
    )  # fmt: skip
    def test_a_disk_is_as_full_as_longhorn_says(self, available, scheduled, reserved, fits):
        # 100 bytes must fit: more than 250 of 1,000 stay free, promises end at 1,000 - reserved
        disk = Disk(
            name="d0", maximum=1_000, available=available, scheduled=scheduled, reserved=reserved
        )
        given = [*hosts(1), Host(name="h1", zone="z1", disks=[disk])]
        cluster = cluster_of(given, [volume("v", "h0", "h0", size=100)], settings=loose())
        assert ("h1/d0" in rows(cluster, planned(cluster).placement)["v"]) == fits

    def test_hard_anti_affinity_leaves_a_replica_without_a_place(self):
        v = volume("v", "h0", number_of_replicas=2, robustness="degraded")
        for told, expected in (({}, 1), ({"replica_soft_anti_affinity": "enabled"}, 2)):
            cluster = cluster_of(hosts(1, disks=2), [replace(v, **told)], settings=Settings())
            assert len(rows(cluster, planned(cluster).placement)["v"]) == expected
        disk = replace(v, replica_soft_anti_affinity="enabled")
        hard = Settings(replica_disk_soft_anti_affinity=False)
        for count in (1, 2):
            cluster = cluster_of(hosts(1, disks=count), [disk], settings=hard)
            assert len(rows(cluster, planned(cluster).placement)["v"]) == count

    @pytest.mark.parametrize("zones", [("", "", ""), ("a", "a", "b")], ids=str)
    @pytest.mark.parametrize("size", [0, 10])
    def test_no_move_within_a_zone_that_hard_anti_affinity_closes(self, zones, size):
        # a host of its own for each replica is worth nothing to a scheduler that sees the zone used
        given = [replace(h, zone=z) for h, z in zip(hosts(), zones, strict=True)]
        hard = Settings(
            replica_auto_balance="least-effort", replica_zone_soft_anti_affinity=False,
            replica_disk_soft_anti_affinity=False,
        )  # fmt: skip
        cluster = cluster_of(given, [volume("v", "h0", "h0", size=size)], settings=hard)
        after = rows(cluster, planned(cluster, goals=ek.Goals(level=None)).placement)["v"]
        assert after == (["h0/d0", "h2/d0"] if zones[2] else ["h0/d0", "h0/d0"])

    def test_where_levelling_would_break_hard_anti_affinity_a_repair_is_made_all_the_same(self):
        given = [replace(h, zone=z) for h, z in zip(hosts(), ("a", "a", "b"), strict=True)]
        hard = Settings(replica_zone_soft_anti_affinity=False)
        v = volume("v", "h0", "h0", "h2", size=100)
        leaving = replace(v.replicas[2], eviction_requested=True)
        v = replace(v, replicas=[*v.replicas[:2], leaving])
        disks = [*given[2].disks, Disk(name="d1", maximum=1_000)]
        cluster = cluster_of([*given[:2], replace(given[2], disks=disks)], [v], settings=hard)
        after = planned(cluster, "best-effort", most_copied=1.0).placement
        assert rows(cluster, after)["v"] == ["h0/d0", "h0/d0", "h2/d1"]

    def test_one_move_mends_zone_and_host_at_once(self):
        given = [replace(host, zone=f"z{h // 2}") for h, host in enumerate(hosts(6))]
        many = [volume(f"v{i}", "h0", "h0", "h2") for i in range(12)]
        cluster = cluster_of(given, many, settings=loose())
        result = planned(cluster, goals=ek.Goals(level=None))
        assert result.comparison.moves == 12
        assert result.audit.soft == 0


class TestLimits:
    def test_bytes_are_kept_to_and_used(self):
        cluster = skewed(volumes=200, hosts=12, seed=3)
        free = planned(cluster, "best-effort").comparison.bytes_moved
        least = planned(cluster, "best-effort", evenness=0.0).comparison.bytes_moved
        assert least < free
        for share in (0.0, 0.3, 1.0):  # of the mending, then of the levelling too
            limit = share * least
            result = planned(cluster, "best-effort", limits=ek.Limits(bytes=limit))
            assert result.comparison.bytes_moved <= limit
            assert result.comparison.bytes_moved >= 0.9 * limit
        limit = 0.5 * (least + free)
        result = planned(cluster, "best-effort", limits=ek.Limits(bytes=limit))
        assert 0.8 * limit <= result.comparison.bytes_moved <= limit
        assert result.audit.soft == planned(cluster, "best-effort").audit.soft

    def test_moves_are_kept_to_and_repairs_come_first(self):
        torn = [volume(f"t{i}", "h0", "h0") for i in range(5)]
        short = volume("short", "h1", number_of_replicas=2, robustness="degraded", size=90)
        cluster = cluster_of(hosts(), [*torn, short], settings=loose())
        result = planned(cluster, limits=ek.Limits(moves=1))
        assert result.comparison.moves == 1
        assert len(rows(cluster, result.placement)["short"]) == 2
        assert result.stop_reason == "limits"

    def test_it_has_a_bound_of_its_own(self):
        cluster = skewed(volumes=200, hosts=12, seed=3)
        mended = planned(cluster, "best-effort", most_copied=0.0)
        assert mended.native.chosen.tolerance is None
        some = planned(cluster, "best-effort", most_copied=0.05)
        everything = float((cluster.native.volumes.actual * cluster.partitions.replicas).sum())
        spent = some.comparison.bytes_moved - mended.comparison.bytes_moved
        assert 0.0 < spent <= 0.05 * everything

    def test_it_stops_when_told_and_keeps_what_it_has(self):
        cluster = skewed(volumes=80, hosts=8, seed=1)
        options = ek.options.Longhorn(
            scope="cluster", replica_auto_balance="best-effort", most_copied=0.25
        )
        free = ek.solve(cluster, "longhorn", options=options)
        told = []

        def enough(progress):
            told.append(progress)
            if progress.work > 0:
                raise StopIteration

        result = ek.solve(cluster, "longhorn", options=options, callback=enough)
        assert result.stop_reason == "interrupted"
        assert len(result.native.points) < len(free.native.points)
        assert result.audit.hard == 0
        assert told

    def test_what_it_cannot_do_is_refused(self):
        cluster = cluster_of(hosts(), [volume("v", "h0")], settings=loose())
        with pytest.raises(InvalidInput) as caught:
            planned(cluster, goals=ek.Cost())
        assert [fault.path for fault in caught.value.faults] == ["goals"]
        with pytest.raises(InvalidInput) as caught:
            planned(cluster, load={"w": 1.0, "v": 1.0})
        assert [fault.path for fault in caught.value.faults] == ["options.load"]
        with pytest.raises(InvalidInput, match="must be a number, 0") as caught:
            ek.options.Longhorn(evenness=-1.0, load={"v": -1.0})
        assert [fault.path for fault in caught.value.faults] == [
            "options.evenness", "options.load['v']",
        ]  # fmt: skip


def test_load_is_levelled_like_space():
    busy = [volume(f"v{i}", "h0", size=1) for i in range(9)]
    cluster = cluster_of(hosts(), busy, settings=loose())
    load = {f"v{i}": 1.0 for i in range(3)}
    result = planned(cluster, "best-effort", load=load, most_copied=1.0)
    after = rows(cluster, result.placement)
    assert sorted(after[f"v{i}"][0] for i in range(3)) == ["h0/d0", "h1/d0", "h2/d0"]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_with_fewer_bytes_it_ends_with_a_lower_fullest_disk_than_best_effort(seed):
    cluster = skewed(seed=seed)
    longhorn = ek.solve(
        cluster, "longhorn", options=ek.options.Longhorn(replica_auto_balance="best-effort")
    )
    ours = planned(cluster, "best-effort")
    assert ours.comparison.bytes_moved < longhorn.comparison.bytes_moved
    assert use(ours) < use(longhorn)
    assert ours.audit.hard == 0 and ours.audit.soft <= longhorn.audit.soft


@st.composite
def systems(draw):
    """Small systems in any state: closed and broken hosts, hard and soft rules, little room."""
    flag = st.booleans()
    mostly = st.sampled_from([True, True, True, True, False])
    rarely = mostly.map(lambda value: not value)
    tags = st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True)
    given_hosts = [
        Host(
            name=f"h{h}", zone=draw(st.sampled_from(["", "x", "y", "z"])), ready=draw(mostly),
            schedulable=draw(mostly), allow_scheduling=draw(mostly), cordoned=draw(rarely),
            eviction_requested=draw(rarely), tags=draw(tags),
            disks=[
                Disk(
                    name=f"d{d}", maximum=draw(st.sampled_from([0, 50, 100, 400])),
                    available=draw(st.sampled_from([0, 20, 50, 100])),
                    scheduled=draw(st.sampled_from([None, 40, 90])),
                    reserved=draw(st.sampled_from([0, 10, 120])), ready=draw(mostly),
                    allow_scheduling=draw(mostly), eviction_requested=draw(rarely),
                    type=draw(st.sampled_from(["filesystem", "filesystem", "block"])),
                    tags=draw(tags),
                )
                for d in range(draw(st.integers(0, 3)))
            ],
        )
        for h in range(draw(st.integers(1, 5)))
    ]  # fmt: skip
    places = [(host.name, disk.name) for host in given_hosts for disk in host.disks]
    switch = st.sampled_from(["ignored", "enabled", "disabled"])
    volumes = []
    for v in range(draw(st.integers(0, 6))):
        replicas = []
        for r in range(draw(st.integers(0, 4)) if places else 0):
            host, disk = draw(st.sampled_from(places))
            state = draw(st.sampled_from(["healthy", "healthy", "healthy", "failed", "built"]))
            replicas.append(
                Replica(
                    name=f"v{v}-r{r}", host=host, disk=disk, healthy=state == "healthy",
                    failed=state == "failed", reusable=state == "failed" and draw(flag),
                    failed_at=draw(st.sampled_from([100.0, 900.0])), active=draw(mostly),
                    eviction_requested=draw(rarely), clone_source=draw(rarely),
                )
            )  # fmt: skip
        volumes.append(
            Volume(
                name=f"v{v}", size=draw(st.sampled_from([0, 10, 30])), replicas=replicas,
                actual_size=draw(st.sampled_from([0, 5, 10])),
                number_of_replicas=draw(st.integers(1, 4)),
                replica_auto_balance=draw(
                    st.sampled_from(["ignored", "disabled", "least-effort", "best-effort"])
                ),
                replica_soft_anti_affinity=draw(switch),
                replica_zone_soft_anti_affinity=draw(switch),
                replica_disk_soft_anti_affinity=draw(switch),
                data_locality=draw(st.sampled_from(["disabled", "best-effort", "strict-local"])),
                attached_to=draw(st.sampled_from([None, "h0", "h0", "h0"])),
                migrating=draw(rarely), in_sync=draw(mostly), node_selector=draw(tags),
                disk_selector=draw(tags), block=draw(rarely),
            )
        )  # fmt: skip
    blocky = {one.block for one in volumes}
    volumes = [replace(one, engine=f"e{one.block:d}") for one in volumes] if blocky else volumes
    settings = Settings(
        replica_auto_balance=draw(st.sampled_from(["disabled", "least-effort", "best-effort"])),
        replica_soft_anti_affinity=draw(flag),
        replica_zone_soft_anti_affinity=draw(flag),
        replica_disk_soft_anti_affinity=draw(flag),
        storage_over_provisioning_percentage=draw(st.sampled_from([100, 200])),
        allow_empty_node_selector_volume=draw(flag),
        allow_empty_disk_selector_volume=draw(flag),
        disable_scheduling_on_cordoned_node=draw(flag),
    )
    return cluster_of(given_hosts, volumes, settings=settings, now=1_000.0)


@share_of_examples(0.5)
@given(systems(), st.sampled_from([None, 0.0, 15.0]))
def test_on_any_system_it_keeps_to_what_longhorn_allows(cluster, most):
    result = planned(cluster, limits=ek.Limits(bytes=most))
    system, node = cluster.native, result.placement.node
    hosts, disks, volumes = system.hosts, system.disks, system.volumes
    was, owner, settings = cluster.placement.node, cluster.placement.owner, system.settings
    came = np.flatnonzero(joined(cluster.placement, result.placement))
    if most is not None:
        assert result.comparison.bytes_moved <= most
    # no volume has fewer live replicas than it had, or wants
    live = (was >= 0) & system.replicas.healthy & system.replicas.active
    lives = live & (node >= 0)
    lives[came] = True
    before, after = (np.bincount(owner[at], minlength=len(volumes)) for at in (live, lives))
    assert (after >= np.minimum(before, volumes.replicas)).all()
    # what is not at rest, or not attached, is left alone
    alone = (volumes.attached < 0) | volumes.migrating | ~volumes.in_sync | volumes.rebuilding
    alone |= volumes.robustness >= 3
    assert (node == was)[alone[owner]].all()
    # new replicas stand where Longhorn's scheduler may put them, with room for all of them even
    # while the old ones are still there
    spread = Counter(), Counter()
    for k in came.tolist():
        n, p = int(node[k]), int(owner[k])
        h = int(disks.host[n])
        assert hosts.ready[h] and hosts.schedulable[h] and hosts.allow_scheduling[h]
        assert not hosts.cordoned[h] or not settings.disable_scheduling_on_cordoned_node
        assert disks.ready[n] and disks.allow_scheduling[n] and not disks.evicting[n]
        assert disks.block[n] == system.engine_block[volumes.engine[p]]
        for tags, at, chosen, empty in (
            (hosts.tags, h, volumes.node_selector, settings.allow_empty_node_selector_volume),
            (disks.tags, n, volumes.disk_selector, settings.allow_empty_disk_selector_volume),
        ):
            own = {tag for tag, carried in tags.items() if carried[at]}
            asked = set(system.selectors[chosen[p]])
            assert asked <= own
            assert asked or empty or not own
        spread[0][n] += int(volumes.actual[p])
        spread[1][n] += int(volumes.size[p])
    allowed = promised(disks.maximum, disks.reserved, settings)
    for n, data in spread[0].items():
        assert disks.available[n] > 0
        free = disks.maximum[n] * settings.storage_minimal_available_percentage // 100
        assert disks.available[n] - data > free or data == 0
        assert disks.scheduled[n] + spread[1][n] <= allowed[n] or spread[1][n] == 0
    # hard anti-affinity holds for whatever is new
    for own, everywhere, place in (
        (volumes.node_soft, settings.replica_soft_anti_affinity, disks.host),
        (volumes.zone_soft, settings.replica_zone_soft_anti_affinity, hosts.zone[disks.host]),
        (volumes.disk_soft, settings.replica_disk_soft_anti_affinity, np.arange(len(disks))),
    ):
        hard = ~soft(own, everywhere)
        for k in came[hard[owner[came]]].tolist():
            peers = np.flatnonzero((owner == owner[k]) & lives)
            assert np.count_nonzero(place[node[peers]] == place[node[k]]) == 1


def test_a_plan_is_written_as_steps_that_never_leave_fewer_replicas(tmp_path):
    cluster = registry.read(FILE)
    result = planned(cluster)
    assert result.comparison.moves > 0
    whole, _, there = written(cluster, tmp_path / "plan.json", result.placement.node)
    _, fewest = replayed(cluster, there["steps"])
    before = {name: len(disks) for name, disks in rows(cluster).items()}
    assert all(fewest[name] >= min(before[name], 2) for name in before)
    after = registry.read(tmp_path / "plan.json")
    assert rows(after) == rows(cluster, result.placement)
    assert planned(after).comparison.moves == 0
    assert len(whole["items"]) >= len(cluster.native.objects.items)


@pytest.mark.parametrize("own", ["ignored", "enabled", "disabled"])
@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize(
    ("name", "tier"),
    [
        ("replica_zone_soft_anti_affinity", "zone"),
        ("replica_soft_anti_affinity", "host"),
        ("replica_disk_soft_anti_affinity", "node"),
    ],
)
def test_a_volumes_own_anti_affinity_wins_unless_it_is_ignored(name, tier, everywhere, own):
    settings = Settings(**{name: everywhere})
    cluster = cluster_of(hosts(), [volume("v", "h0", **{name: own})], settings=settings)
    is_soft = everywhere if own == "ignored" else own == "enabled"
    assert cluster.rules[0].spread[tier] == ((1, "soft") if is_soft else 1)


@pytest.mark.parametrize(
    ("to", "crowded"), [("h0/d1", True), ("h1/d1", True), ("h2/d0", False), ("h2/d1", False)]
)
def test_a_replica_that_moves_within_a_host_it_shares_is_too_far(to, crowded):
    settings = Settings(replica_soft_anti_affinity=False)
    shared = volume("v", "h0", "h0", "h1")
    system = cluster_of(hosts(3, 2), [shared], settings=settings)
    found = standings(system, system.native, settings)
    space = space_problem(system, system.native, settings, found)
    node = space.cluster.placement.node.copy()
    names = list(system.nodes.names)
    moved = int(np.flatnonzero(node == names.index("h0/d0"))[0])
    node[moved] = names.index(to)
    assert overreached(space, space.cluster, node).tolist() == [crowded]
