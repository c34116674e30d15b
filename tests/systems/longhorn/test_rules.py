"""Longhorn's rules one by one: which tier and disk, which replica goes, when nothing is to do."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.systems.longhorn.auto_balance.intake import Disk, Host, Replica, Volume, cluster_of
from evenkeel.systems.longhorn.auto_balance.settings import Longhorn, Settings
from evenkeel.systems.longhorn.auto_balance.stepping import AutoBalance, next_action
from evenkeel_kernels.longhorn.state import levellest, share_of, under_pressure
from tests.naive.longhorn.auto_balance import score
from tests.support.longhorn.aftermath import cluster_after
from tests.support.longhorn.systems import plain, soft

ABC = {"a": "x", "b": "x", "c": "y"}


def system(hosts, *volumes, settings=None, now=0.0):
    """Hosts given as rows or as (name, zone) pairs with one roomy disk."""
    rows = [
        host
        if isinstance(host, Host)
        else Host(name=host[0], zone=host[1], disks=[Disk(name="d", maximum=10**6)])
        for host in hosts
    ]
    return cluster_of(rows, volumes, settings=settings, now=now)


def volume(*places, wanted=None, name="v", **more):
    """A volume attached to the first host, with replicas ``host`` or ``host/disk``, or rows."""
    replicas = []
    for r, place in enumerate(places):
        if isinstance(place, Replica):
            replicas.append(place)
        else:
            host, _, disk = place.partition("/")
            replicas.append(Replica(name=f"{name}-r{r}", host=host, disk=disk or "d"))
    given = {"size": 10, "actual_size": 5, "attached_to": replicas[0].host} | more
    count = len(places) if wanted is None else wanted
    return Volume(name=name, replicas=replicas, number_of_replicas=count, **given)


def hosts_at_end(cluster, options=None):
    work = AutoBalance(cluster, options)
    work.run()
    after = cluster_after(work)
    on = after.native.disks.host[after.placement.node[after.placement.node >= 0]]
    return sorted(after.native.hosts.names[h] for h in on.tolist())


# where a replica may go


@pytest.mark.small
@given(st.data())
def test_the_levellest_is_that_of_the_exact_scores(data):
    groups = data.draw(st.integers(1, 5))
    rows = st.lists(
        st.tuples(st.integers(0, groups - 1), st.integers(0, 6), st.booleans()), max_size=9
    )
    items = data.draw(rows)
    size = data.draw(st.integers(0, 7))
    group = np.array([g for g, _, _ in items], np.int32)
    usable = np.array([u for _, u, _ in items], np.int64)
    candidate = np.array([c for _, _, c in items], np.bool_)
    rank = np.array(data.draw(st.permutations(range(groups))), np.int32)
    room = np.zeros(groups, np.int64), np.zeros(groups, np.bool_), np.zeros(groups, np.int64)
    found = levellest(group, rank, candidate, usable, size, *room)
    totals = {}
    for g, u, c in items:
        if c:
            totals[g] = totals.get(g, 0) + u
    fit = {g for g, u, c in items if c and u >= size}
    best = min(fit, key=lambda g: (score(totals, g, size), rank[g]), default=-1)
    assert found == best


@pytest.mark.small
@given(st.integers(-(2**53), 2**53), st.integers(0, 100_000))
def test_a_share_is_exact(amount, percent):
    assert share_of(amount, percent) == amount * percent // 100


@pytest.mark.small
@pytest.mark.parametrize(("percent", "says"), [(0, False), (90, True), (99, True), (100, False)])
def test_of_a_disk_without_size_nothing_is_unused(percent, says):
    assert under_pressure(0, 0, 0, percent) is says


def test_a_volume_goes_where_its_selectors_and_engine_allow():
    disks = [
        Disk(name="plain", maximum=10**6),
        Disk(name="raw", maximum=10**6, tags=["fast"], type="block"),
        Disk(name="fast", maximum=10**6, tags=["fast"]),
    ]
    hosts = [
        Host(name="a", disks=disks),
        Host(name="b", disks=disks, tags=["ssd"]),
        Host(name="c", disks=disks, tags=["ssd"], engines=["old"]),
    ]
    asks = volume("a/fast", wanted=2, node_selector=["ssd"], disk_selector=["fast"], engine="new")
    found = next_action(system(hosts, asks), "v")
    assert (found.kind, found.disk, found.candidates) == ("add", "b/fast", ("b/fast",))
    assert found.kept_out["its host lacks the engine"] == 3
    assert found.kept_out["its host lacks a tag of the node selector"] == 3
    assert found.kept_out["it is of another type than the engine wants"] == 1
    assert found.kept_out["it lacks a tag of the disk selector"] == 1


@pytest.mark.parametrize("kind", ["node", "disk"])
def test_tagged_ones_are_open_to_volumes_without_selector_as_the_setting_says(kind):
    tagged = {"tags": ["gold"]}
    hosts = [
        Host(name="a", disks=[Disk(name="d", maximum=10**6)]),
        Host(
            name="b",
            disks=[Disk(name="d", maximum=10**6, **(tagged if kind == "disk" else {}))],
            **(tagged if kind == "node" else {}),
        ),
    ]
    cluster = system(hosts, volume("a", wanted=2))
    assert next_action(cluster, "v").disk == "b/d"
    closed = Longhorn(**{f"allow_empty_{kind}_selector_volume": False})
    found = next_action(cluster, "v", closed)
    assert found.kind == "nothing"
    assert any("tagged" in reason for reason in found.kept_out)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"ready": False}, "not ready"),
        ({"schedulable": False}, "not schedulable"),
        ({"allow_scheduling": False}, "scheduling is off"),
        ({"deleting": True}, "deleted"),
        ({"cordoned": True}, "cordoned"),
        ({"eviction_requested": True}, "evicted"),
    ],
)
def test_hosts_that_take_nothing(change, says):
    other = Host(name="b", disks=[Disk(name="d", maximum=10**6)], **change)
    cluster = system([("a", ""), other], volume("a", wanted=2))
    found = next_action(cluster, "v")
    assert found.kind == "nothing"
    assert any(says in reason for reason in found.kept_out)


def test_cordoned_hosts_take_replicas_where_the_setting_lets_them():
    other = Host(name="b", disks=[Disk(name="d", maximum=10**6)], cordoned=True)
    cluster = system([("a", ""), other], volume("a", wanted=2))
    options = Longhorn(disable_scheduling_on_cordoned_node=False)
    assert next_action(cluster, "v", options).disk == "b/d"


@pytest.mark.parametrize(
    ("disk", "says"),
    [
        ({"maximum": 100, "available": 35}, "too little would stay free"),
        ({"maximum": 100, "scheduled": 91}, "too much would be promised"),
        ({"maximum": 100, "reserved": 95}, "too much would be promised"),
        ({"maximum": 0}, "too little would stay free"),
        ({"maximum": 100, "ready": False}, "it is not ready"),
        ({"maximum": 100, "allow_scheduling": False}, "scheduling is off on it"),
        ({"maximum": 100, "eviction_requested": True}, "it is being evicted"),
    ],
)
def test_disks_that_take_nothing(disk, says):
    hosts = [("a", ""), Host(name="b", disks=[Disk(name="d", **disk)])]
    found = next_action(system(hosts, volume("a", wanted=2, actual_size=10)), "v")
    assert found.kind == "nothing"
    assert any(says in reason for reason in found.kept_out), found.kept_out


@pytest.mark.parametrize("scope", ["volume", "cluster"])
@pytest.mark.parametrize(
    ("reserved", "percent", "fits"), [(None, 30, False), (None, 10, True), (10, 90, True)]
)
def test_a_default_disk_keeps_the_share_that_the_settings_say(reserved, percent, fits, scope):
    hosts = [
        Host(name="a", disks=[Disk(name="d", maximum=10**6)]),
        Host(name="b", disks=[Disk(name="d", maximum=100, reserved=reserved)]),
    ]
    cluster = system(hosts, volume("a", wanted=2, size=80))
    stored = cluster_of(
        hosts,
        [volume("a", wanted=2, size=80)],
        settings=Settings(storage_reserved_percentage_for_default_disk=percent),
    )
    by_option = {"storage_reserved_percentage_for_default_disk": percent}
    for one, options in ((stored, {}), (cluster, by_option)):
        asked = ek.options.Longhorn(scope=scope, **options)
        found = ek.solve(one, "longhorn", goals=ek.Goals(level=None), options=asked)
        assert (1 in found.placement.node.tolist()) is fits


def test_a_disk_with_room_by_rule_but_no_usable_space_is_none():
    hosts = [
        ("a", ""),
        Host(name="b", disks=[Disk(name="d", maximum=100, available=60, scheduled=55)]),
    ]
    found = next_action(system(hosts, volume("a", wanted=2)), "v")
    assert found.kept_out == {
        "anti-affinity keeps the volume's replicas apart": 1,
        "its usable space is less than the volume's size": 1,
    }


def test_unused_disks_come_first_and_hard_disk_anti_affinity_asks_for_one():
    two = Host(name="a", disks=[Disk(name=d, maximum=10**6) for d in ("d", "e")])
    cluster = system([two], volume("a/d", wanted=3), settings=soft("disabled"))
    work = AutoBalance(cluster)
    assert work.step("v").disk == "a/e"
    assert work.step("v").kind == "add"
    assert work.next_action("v").kind == "nothing"
    hard = AutoBalance(cluster, Longhorn(replica_disk_soft_anti_affinity=False))
    assert hard.step("v").disk == "a/e"
    assert hard.next_action("v").kind == "nothing"


@pytest.mark.parametrize(
    ("node_soft", "zone_soft", "held", "goes_to"),
    [
        (False, False, "a", {"c"}),
        (False, False, "ac", set()),
        (True, False, "ac", set()),
        (False, True, "ac", {"b"}),
        (True, True, "ac", {"b"}),
        (False, True, "abc", set()),
        (True, True, "abc", {"a", "b", "c"}),
    ],
)
def test_tiers(node_soft, zone_soft, held, goes_to):
    settings = Settings(
        replica_soft_anti_affinity=node_soft, replica_zone_soft_anti_affinity=zone_soft
    )
    cluster = system(ABC.items(), volume(*held, wanted=len(held) + 1), settings=settings)
    found = next_action(cluster, "v")
    assert {disk.partition("/")[0] for disk in found.candidates} == goes_to


def test_a_volume_s_own_anti_affinity_wins():
    own = {"replica_soft_anti_affinity": "enabled"}
    cluster = system([("a", "")], volume("a", wanted=2, **own))
    assert next_action(cluster, "v").kind == "add"
    own = {"replica_soft_anti_affinity": "disabled"}
    cluster = system([("a", "")], volume("a", wanted=2, **own), settings=soft())
    assert next_action(cluster, "v").kind == "nothing"


def test_hosts_that_evictions_free_come_after_unused_ones():
    leaving = Replica(name="r9", host="b", disk="d", eviction_requested=True)
    rows = [Host(name=h, disks=[Disk(name=d, maximum=10**6) for d in "de"]) for h in "abc"]
    cluster = system(rows, volume("a", leaving, wanted=2))
    assert {d[0] for d in next_action(cluster, "v").candidates} == {"c"}
    cluster = system(rows[:2], volume("a", leaving, wanted=2))
    found = next_action(cluster, "v")
    assert (found.candidates, found.tier) == (("b/e",), "3: hosts that evictions free")


def test_a_zone_that_an_eviction_frees_is_open_where_zones_are_hard():
    leaving = Replica(name="r9", host="c", disk="d", eviction_requested=True)
    hosts = [("a", "x"), ("b", "x"), ("c", "y"), ("e", "y")]
    hard = Settings(replica_zone_soft_anti_affinity=False)
    cluster = system(hosts, volume("a", leaving, wanted=2), settings=hard)
    assert {disk[0] for disk in next_action(cluster, "v").candidates} == {"e"}


def test_a_failed_replica_that_can_serve_again_is_waited_for():
    failed = Replica(
        name="r9", host="b", disk="d", healthy=False, failed=True, reusable=True, failed_at=100.0
    )
    hosts = [("a", ""), ("b", ""), ("c", "")]
    early = system(hosts, volume("a", failed, wanted=2), now=699.0)
    assert next_action(early, "v").why == "a failed replica may return"
    late = system(hosts, volume("a", failed, wanted=2), now=700.0)
    assert next_action(late, "v").kind == "add"
    impatient = Longhorn(replica_replenishment_wait_interval=10)
    assert next_action(early, "v", impatient).kind == "add"
    work = AutoBalance(late)
    assert [kind for kind, *_ in work.run().rows()] == ["add", "drop"]
    assert hosts_at_end(late) == ["a", "c"]


# how many, and when


def test_nothing_is_balanced_while_something_else_is_due():
    settings = soft("best-effort")
    for change, why in (
        ({"attached_to": None}, "the volume is detached"),
        ({"migrating": True}, "the volume is being migrated"),
        ({"in_sync": False}, "the engine is not as the volume wants it"),
        ({"rebuilding": True}, "a rebuild is under way"),
        ({"robustness": "faulted"}, "the volume is faulted"),
        ({"robustness": "degraded"}, "the volume is not healthy"),
        ({"replica_auto_balance": "disabled"}, "auto-balance is disabled"),
    ):
        cluster = system(ABC.items(), volume("a", "a", **change), settings=settings)
        assert next_action(cluster, "v").why == why
    cluster = system(ABC.items(), volume("a", "a"), settings=settings)
    assert next_action(cluster, "v").kind == "add"
    none = Longhorn(concurrent_replica_rebuild_per_node_limit=0)
    assert next_action(cluster, "v", none).kind == "nothing"
    missing = system(ABC.items(), volume("a", wanted=2), settings=settings)
    assert next_action(missing, "v", none).why == "rebuilds are switched off"


def test_a_replica_being_rebuilt_is_waited_for():
    half = Replica(name="r9", host="a", disk="d", healthy=False)
    cluster = system(ABC.items(), volume("a", half), settings=soft())
    assert next_action(cluster, "v").why == "a rebuild is under way"


def test_a_new_volume_gets_all_its_replicas_attached_or_not():
    fresh = Volume(name="v", size=10, number_of_replicas=3)
    assert hosts_at_end(system(ABC.items(), fresh)) == ["a", "b", "c"]


def test_a_volume_without_a_healthy_replica_has_nothing_to_copy_from():
    dead = Replica(name="r9", host="a", disk="d", healthy=False, failed=True)
    cluster = system(ABC.items(), volume(dead, wanted=2, robustness="degraded"))
    assert next_action(cluster, "v").why == "no healthy replica to copy from"


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ({"a": 6, "b": 0}, [3, 3]),
        ({"a": 4, "b": 2}, [3, 3]),
        ({"a": 3, "b": 2}, [2, 3]),
        ({"a": 5, "b": 0, "c": 0}, [1, 2, 2]),
    ],
)
@pytest.mark.parametrize("order", ["node-then-zone", "zone_then_node"])
def test_how_best_effort_ends(start, end, order):
    cluster = plain(dict.fromkeys(start, "z"), start, settings=soft())
    hosts = hosts_at_end(cluster, Longhorn(order=order))
    assert sorted(hosts.count(host) for host in start) == end


@pytest.mark.parametrize("order", ["node-then-zone", "zone-then-node"])
def test_zones_and_hosts_do_not_undo_each_other(order):
    zones = {"a": "x", "b": "x", "c": "x", "d": "y"}
    cluster = plain(zones, dict.fromkeys(zones, 1), settings=soft())
    assert len(AutoBalance(cluster, Longhorn(order=order)).run()) == 0
    cluster = plain(zones, {"a": 2, "b": 2, "c": 2, "d": 1}, settings=soft())
    assert hosts_at_end(cluster, Longhorn(order=order)).count("d") == 2


def test_a_closed_host_that_holds_replicas_is_no_imbalance():
    cluster = plain(dict.fromkeys("ab", "z"), {"a": 1, "b": 1}, schedulable="a", settings=soft())
    assert next_action(cluster, "v").why == "it is balanced"


def test_a_zone_whose_disks_are_full_asks_for_nothing():
    full = Host(name="c", zone="y", disks=[Disk(name="d", maximum=100, available=20)])
    cluster = system([("a", "x"), ("b", "x"), full], volume("a", "b"), settings=soft())
    assert next_action(cluster, "v").why == "it is balanced"


def pressed(**more):
    """Host a has a pressured disk d and a roomy one e; one replica on each of three hosts."""
    tight = [Disk(name="d", maximum=1000, available=50, **more), Disk(name="e", maximum=1000)]
    hosts = [Host(name="a", disks=tight), ("b", ""), ("c", "")]
    settings = Settings(replica_auto_balance="best-effort", storage_minimal_available_percentage=0)
    first = volume("a", "b", "c", name="v1")
    second = volume("a", "b", "c", name="v2")
    return system(hosts, first, second, settings=settings)


def test_disk_pressure_moves_replicas_on_their_host_by_name_whatever_the_anti_affinity():
    cluster = pressed()
    assert next_action(cluster, "v2").kind == "nothing"
    found = next_action(cluster, "v1")
    assert (found.kind, found.disk, found.asked) == ("add", "a/e", 1)
    work = AutoBalance(cluster)
    rows = list(work.run().rows())
    assert [(kind, volume, disk) for kind, volume, _, disk, _ in rows[:2]] == [
        ("add", "v1", "a/e"),
        ("delete", "v1", "a/d"),
    ]
    # both leave: the disk is still under pressure after the first
    assert {(kind, volume) for kind, volume, *_ in rows} == {
        (kind, volume) for kind in ("add", "delete") for volume in ("v1", "v2")
    }


def test_disk_pressure_can_be_switched_off_and_is_for_best_effort_only():
    cluster = pressed()
    off = Longhorn(replica_auto_balance_disk_pressure_percentage=0)
    assert len(AutoBalance(cluster, off).run()) == 0
    least = Longhorn(replica_auto_balance="least-effort")
    assert len(AutoBalance(cluster, least).run()) == 0


def test_two_disks_under_pressure_do_not_pass_a_replica_to_and_fro():
    tight = [Disk(name=d, maximum=1000, available=350, reserved=300) for d in "de"]
    settings = Settings(replica_auto_balance="best-effort")
    hosts = [Host(name="a", disks=tight)]
    assert len(AutoBalance(system(hosts, volume("a"), settings=settings)).run()) == 0


# which one goes


def too_many(*places, effort="least-effort", **more):
    return system(
        more.pop("hosts", ABC.items()),
        volume(*places, wanted=len(places) - 1, **more),
        settings=soft(effort, replica_auto_balance_disk_pressure_percentage=0),
    )


def test_nothing_goes_where_auto_balance_is_disabled_but_what_is_evicted():
    assert next_action(too_many("a", "a", "b", effort="disabled"), "v").kind == "nothing"
    leaving = Replica(name="r9", host="c", disk="d", eviction_requested=True)
    found = next_action(too_many("a", "a", leaving, effort="disabled"), "v")
    assert (found.kind, found.replica, found.why) == ("delete", "r9", "it is under eviction")


def test_the_last_healthy_replica_stays_evicted_or_not():
    emptied = Host(name="a", disks=[Disk(name="d", maximum=10**6, eviction_requested=True)])
    alone = system([emptied], volume("a", wanted=1))
    assert next_action(alone, "v").kind == "nothing"
    other = system([emptied, ("b", "")], volume("a", wanted=1))
    assert [row[0] for row in AutoBalance(other).run().rows()] == ["add", "delete"]
    none = system([("a", "")], volume("a", wanted=0), settings=soft())
    assert next_action(none, "v").kind == "nothing"


def test_data_stays_local():
    near = too_many("b", "b", "a", "c", data_locality="best-effort", attached_to="b")
    found = next_action(near, "v")
    assert found.replica == "v-r0"  # all that share a host are local: as without locality
    far = too_many("a", "c", "b", data_locality="best-effort", attached_to="b")
    assert next_action(far, "v").replica == "v-r0"
    assert "data locality" in next_action(far, "v").why
    assert next_action(too_many("b", "c", "a", attached_to="b"), "v").replica == "v-r0"
    nearest = too_many("b", "c", "a", data_locality="strict_local", attached_to="b")
    assert next_action(nearest, "v").replica == "v-r2"


def test_replicas_on_hosts_that_are_down_go_first():
    down = Host(name="c", zone="y", ready=False, disks=[Disk(name="d", maximum=10**6)])
    found = next_action(too_many("a", "a", "c", hosts=[("a", "x"), down]), "v")
    assert (found.replica, found.why) == ("v-r2", "its host is down or not ready")


def late(host, since):
    disks = [Disk(name="d", maximum=10**6)]
    return Host(name=host, disks=disks, ready_since=since)


def test_an_unstable_host_loses_what_was_there_before():
    def case(*places, since=2000.0):
        hosts = [late("a", 10.0), late("b", 20.0), late("c", since)]
        rows = [
            Replica(name=f"r{i}", host=place[0], disk="d", healthy_at=float(place[1:]))
            for i, place in enumerate(places)
        ]
        return next_action(too_many(*rows, hosts=hosts), "v")

    assert case("a30", "b30", "c30").replica == "r2"
    assert case("a30", "b30", "c30").why.startswith("its host is unstable")
    assert case("a30", "b30", "c3000").replica == "r0"  # rebuilt since: as any other
    assert case("a30", "b30", "c30", since=1820.0).replica == "r0"  # half an hour is not over it
    assert case("b30", "b30", "c30").why == "its host holds more than the unstable one"
    assert case("b30", "b30", "c30").replica == "r0"


def test_sources_of_clones_stay():
    source = Replica(name="r0", host="a", disk="d", clone_source=True)
    found = next_action(too_many(source, "a", "b", hosts=[("a", "x"), ("b", "x")]), "v")
    assert found.replica == "v-r1"
    assert found.candidates == ("v-r1",)


def test_best_effort_takes_from_the_fullest_host_then_zone():
    zones = [("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"), ("e", "y")]
    found = next_action(too_many("a", "a", "c", "c", "d", effort="best-effort", hosts=zones), "v")
    assert found.candidates == ("v-r2", "v-r3")  # of equals the one in the fuller zone
    found = next_action(too_many("a", "c", "d", effort="best-effort", hosts=zones), "v")
    assert found.candidates == ("v-r1", "v-r2")
    assert found.why.startswith("its zone holds most")


def test_the_only_candidate_stays_if_its_going_would_start_all_over():
    hosts = [("a", "x"), ("b", "x"), ("d", "x"), late("c", 0.0)]
    hosts[3] = replace(hosts[3], ready=False, zone="x")
    found = next_action(too_many("a", "a", "b", "c", hosts=hosts), "v")
    assert found.kind == "nothing"
    assert found.why == "it has more replicas than are wanted, and none that should go"
    found = next_action(too_many("a", "d", "b", "c", hosts=hosts), "v")
    assert found.replica == "v-r3"
