"""Clusters that Helix runs, as users brought them: Helix itself, Pinot, Venice, Ambry."""

import json
from collections import Counter

import numpy as np
import pytest

import evenkeel as ek


def solved(case, *words):
    """Return the answer of a solve of a case's dump, and the ideal states that it wrote, by id."""
    answer = case.run("solve", str(case.path("dump")), *words, "--json", "-o", "ideal.json")
    written = json.loads(case.written("ideal.json")) if answer.json["written"] else []
    return answer, {one["id"]: one for one in written}


def held(record):
    """Return how many replicas of a resource each instance holds."""
    rows = record["mapFields"] or record["listFields"]
    return Counter(node for row in rows.values() for node in row)


def test_capacity_keys_that_only_waged_looks_at(public):
    answer, _ = solved(public("helix/capacity-keys-without-waged"))
    assert answer.json["status"] == "optimal"
    assert "replicas" in answer.json["level"]
    assert "CU" not in answer.json["level"]
    assert "CU" in answer.err


def test_an_instance_that_was_dropped(public):
    answer, written = solved(public("helix/instance-dropped"))
    assert answer.json["status"] == "optimal"
    assert answer.json["moves"] == answer.json["forced_moves"] == 4
    assert answer.err.count("host3_12000") == 1
    assert "host3_12000" not in held(written["DB"])
    assert {len(row) for row in written["DB"]["listFields"].values()} == {2}


@pytest.mark.parametrize(
    ("name", "note", "moves"),
    [
        ("helix/replicas-that-no-view-shows", "replicas of topic on live instances", 1),
        ("helix/weight-of-zero", "weights of instances that differ", 0),
    ],
)
def test_what_is_not_as_stated_is_said(public, name, note, moves):
    answer, written = solved(public(name))
    assert (answer.code, answer.json["moves"]) == (0, moves) and note in answer.err
    for record in written.values():
        assert [*record["mapFields"]["12"]] == ["kaf04-wrkr1"]


@pytest.mark.parametrize(
    ("method", "held"),
    [("balance", [0, 9, 9, 6]), ("helix_crushed", [0, 12, 12, 0]), ("helix_auto", [0, 8, 8, 8])],
)
def test_an_instance_of_weight_0_takes_nothing_new_where_weights_count(public, method, held):
    cluster = ek.read(public("helix/weight-of-zero").path("dump")).drain("host0_12000")
    result = ek.solve(cluster, method)
    assert np.bincount(result.placement.node, minlength=4).tolist() == held


def test_an_ideal_state_in_full_auto_places_nothing(public):
    case = public("helix/full-auto-without-a-view")
    answer = case.run("solve", "idealstate.json", "session.txt", "--json", "-o", "placed.json")
    assert (answer.code, answer.json["status"], answer.json["moves"]) == (0, "optimal", 16)
    assert "no instance in the ideal state of TestDB0: its replicas count as placed" in answer.text
    assert "replicas count as where ideal states have them" not in answer.text
    assert "FULL_AUTO of TestDB0: it is written in SEMI_AUTO" in answer.text
    (record,) = json.loads(case.written("placed.json"))
    assert sorted(held(record).values()) == [3, 3, 3, 3, 4]


def test_a_table_of_pinot_on_one_of_four_servers(public):
    answer, written = solved(public("helix/pinot-table-on-one-server"))
    assert answer.json["status"] == "optimal"
    assert answer.json["broken_before"] == {}
    assert "brokerResource" in answer.err
    assert list(written) == ["testTable_REALTIME"]
    table = written["testTable_REALTIME"]
    assert all(name.startswith("Server_") for name in held(table))
    assert sorted(held(table).values()) == [10, 10, 10, 11]
    states = {name: {*row.values()} for name, row in table["mapFields"].items()}
    assert {"CONSUMING"} in states.values()
    before = json.loads(
        (
            public("helix/pinot-table-on-one-server").path("dump")
            / "IDEALSTATES/testTable_REALTIME.json"
        ).read_text()
    )["mapFields"]
    for name, row in before.items():
        if "CONSUMING" in row.values():
            assert table["mapFields"][name] == row
        assert {*row.values()} == states[name]
    assert table["simpleFields"]["REBALANCE_MODE"] == "CUSTOMIZED"


def test_one_zone_of_three_lost(public):
    answer, _ = solved(public("helix/one-zone-of-three-lost"))
    assert answer.json["status"] == "infeasible"
    assert answer.json["unplaced"] == 12
    assert answer.json["broken"] == {"unassigned": 12}
    assert answer.json["broken_before"]["leaderless"] == 4


def test_pinots_servers_that_lost_the_tag_of_the_tenant(public):
    answer, written = solved(public("helix/pinot-tenant-retagged"))
    assert answer.json["broken_before"] == {"require": 8}
    assert sorted(held(written["orders_OFFLINE"]).items()) == [
        (f"Server_s{i}_8098", 4) for i in (2, 3, 4)
    ]


def test_any_live_instance_where_one_is_disabled(public):
    answer, written = solved(public("helix/any-live-instance-and-one-disabled"))
    assert answer.json["broken"] == {}
    assert {*map(tuple, written["R"]["listFields"].values())} == {("n2",)}


def test_a_resource_that_waits_by_itself(public):
    case = public("helix/ambry-vcr-delayed")
    assert solved(case, "--now", "1780000300")[0].json["moves"] == 0
    assert solved(case, "--now", "1780003600")[0].json["forced_moves"] == 4


def test_ambrys_lists_of_unlike_length(public):
    answer, written = solved(public("helix/ambry-lists-of-unlike-length"))
    assert (answer.json["moves"], answer.json["broken_before"], written) == (0, {}, {})


def test_who_is_swapped_in_while_the_other_is_offline(public):
    answer, _ = solved(public("helix/swap-out-offline"))
    assert (answer.json["moves"], answer.json["broken"]) == (0, {})


def test_all_resources_of_an_instance_are_disabled(public):
    answer, written = solved(public("helix/all-resources-disabled"), "--level", "none")
    assert (answer.json["moves"], answer.json["broken"]) == (3, {})
    assert held(written["DB"])["n0_1"] == 0 and held(written["DB"])["n1_1"] == 6


def test_an_instance_is_evacuated(public):
    answer, written = solved(public("helix/evacuate-by-field"), "--level", "none")
    assert (answer.json["moves"], answer.json["broken"]) == (2, {})
    assert held(written["DB"])["n0_1"] == 0


def test_new_servers_of_pinots_pools_take_their_share(public):
    answer, written = solved(public("helix/pinot-pools-extended"), "--level", "0.05")
    assert answer.json["moves"] == 8
    assert {*held(written["t_OFFLINE"]).values()} == {4}
    for row in written["t_OFFLINE"]["mapFields"].values():
        assert sorted(int(name[8]) % 2 for name in row) == [0, 1]


def test_venice_waits_for_an_instance_that_is_down(public):
    case = public("helix/venice-one-down")
    assert solved(case, "--level", "none", "--now", "1700000060")[0].json["moves"] == 0
    answer, written = solved(case, "--level", "none", "--now", "1700009999")
    assert answer.json["moves"] == 2
    assert held(written["store_v3"])["v1_1690"] == 4


def test_a_rebalance_on_demand_ends_the_wait(public):
    case = public("helix/rebalanced-on-demand")
    answer, _ = solved(case, "--level", "none", "--now", "1700000600")
    assert (answer.json["moves"], answer.json["broken"]) == (2, {})


def test_leaders_that_waged_gives_to_one_instance(public):
    answer, _ = solved(public("helix/leaders-by-one-instance"), "--level", "none", "--leaders", "0")
    assert (answer.json["moves"], answer.json["leader_changes"]) == (0, 4)
    assert answer.json["most_leaders"] == 2


def test_small_partitions_make_room_for_a_large_one(public):
    case = public("helix/waged-large-partition")
    answer, written = solved(case, "--level", "none")
    assert (answer.json["moves"], answer.json["broken"]) == (3, {})
    assert len(written["big"]["listFields"]["big_0"]) == 1
    waged = case.run("solve", str(case.path("dump")), "--method", "helix_waged", "--level", "none")
    assert waged.code == 3 and "1 replicas placed; 1 are on dead nodes." in waged.text
    without = ek.read(case.path("dump")).apply(ek.Changes(gone=["node4_12000"]))
    found = ek.solve(without, "helix_waged", goals=ek.Goals(level=None))
    assert "partition 'big_0' has no node for its ONLINE" in found.message


def test_servers_that_join_as_unknown_take_nothing(public):
    answer, written = solved(public("helix/venice-joins-as-unknown"))
    assert (answer.json["status"], answer.json["moves"]) == ("optimal", 6)
    assert sorted(held(written["user-profile_v7"]).values()) == [9, 9, 9, 9]
    assert "venice-server-6.prod_1690 (UNKNOWN), live as they are" in answer.text


def test_partitions_that_the_configuration_lists_stay(public):
    case = public("helix/ambry-lists-in-the-configuration")
    answer, written = solved(case)
    assert (answer.json["moves"], answer.json["broken"]) == (9, {})
    assert "preference lists in the configuration of 10001 (4 partitions)" in answer.text
    listed = json.loads(case.path("dump/RESOURCE.json").read_text())[0]["listFields"]
    lists = written["10001"]["listFields"]
    assert {name: lists[name] for name in listed} == listed
    cluster = ek.read(case.path("dump"))
    waged = ek.solve(cluster, "helix_waged", goals=ek.Goals(level=None))
    fixed = np.isin(cluster.partitions.names, [*listed])
    assert (waged.placement.nodes[fixed] == cluster.placement.nodes[fixed]).all()


def test_a_host_of_ambry_is_lost_beside_a_bootstrap(public):
    case = public("helix/ambry-host-lost-beside-a-bootstrap")
    answer, written = solved(case)
    assert (answer.json["moves"], answer.json["broken"]) == (1, {})
    before = json.loads(case.path("dump/IDEALSTATES.json").read_text())[1]["listFields"]
    (gained,) = {*written["10001"]["listFields"]["6"]} - {*before["6"]}
    assert gained in {f"host{i}_6667" for i in range(10, 14)}


def test_answers_of_rest_on_one_resource(public):
    answer, written = solved(public("helix/rest-of-one-resource"), "--level", "none")
    assert (answer.json["moves"], answer.json["broken"]) == (2, {})
    assert held(written["DB"]) == {"h0_1": 3, "h1_1": 3}


def test_an_instance_that_rest_lists_as_disabled_is_left(public):
    answer, written = solved(public("helix/rest-lists-a-disabled-instance"))
    assert (answer.json["status"], answer.json["moves"]) == ("optimal", 6)
    assert sorted(held(written["chat"]).values()) == [8, 8, 8]
    assert "no zones, no tags; add" in answer.err and "none disabled" not in answer.err


def test_a_swap_that_is_under_way_changes_nothing(public):
    answer, written = solved(public("helix/swap-under-way"), "--level", "none")
    assert (answer.json["moves"], answer.json["broken_before"], written) == (0, {}, {})
    assert "n9_1" in answer.err


@pytest.mark.parametrize(
    ("name", "broken"),
    [("helix/partition-disabled", "forbidden"), ("helix/racks-of-five-levels", "spread")],
)
def test_one_replica_leaves(public, name, broken):
    answer, written = solved(public(name), "--level", "none")
    assert answer.json["broken_before"] == {broken: 1}
    assert (answer.json["moves"], answer.json["broken"]) == (1, {})
    assert written["DB"]


def test_tables_of_pinot_beside_a_resource_with_leaders(public):
    answer, written = solved(public("helix/pinot-no-live-controller"))
    assert (answer.code, answer.json["status"]) == (0, "optimal")
    assert "leadControllerResource" in answer.err
    assert answer.json["broken_before"] == {}
    assert list(written) == ["tab_OFFLINE"]
    assert sorted(held(written["tab_OFFLINE"]).values()) == [2, 2, 2, 2]


def test_a_resource_without_leaders_beside_one_that_has_some(public):
    case = public("helix/led-and-unled-resources")
    answer, written = solved(case)
    assert answer.json["broken_before"] == {}
    assert "IDX" in answer.err
    for name in ("DB", "IDX"):
        assert sorted(held(written[name]).values()) == [3, 3, 3, 3]
    case.run("plan", str(case.path("dump")), "--drain", "h0_1", "-o", "plan")
    waves = json.loads(case.written("plan/waves.json"))["waves"]
    leaders = [(name[:3], leads) for wave in waves for name, *_, leads in wave["expect"]]
    assert {leads for name, leads in leaders if name == "IDX"} == {-1}
    assert -1 not in {leads for name, leads in leaders if name == "DB_"}


@pytest.mark.parametrize(
    "words",
    [
        ["solve", "--leaders", "10%"],
        ["check", "--leaders", "10%"],
        ["solve", "--method", "leaders"],
    ],
)
def test_leaders_of_all_resources_are_not_levelled_where_some_have_none(public, words):
    case = public("helix/led-and-unled-resources")
    command, *more = words
    answer = case.run(command, str(case.path("dump")), *more)
    assert answer.code == 2 and "--group-leaders" in answer.text


def test_leaders_of_the_resource_that_has_some_are_levelled(public):
    case = public("helix/led-and-unled-resources")
    _, written = solved(case, "--group-leaders", "10%")
    lists = written["DB"]["listFields"].values()
    led = sorted(sum(row[0] == f"h{n}_1" for row in lists) for n in range(4))
    assert max(led) <= -(-len(lists) // 4)


@pytest.mark.parametrize("server", ["Server_s0_8098", "Server_s3_8098"])
def test_a_segment_that_stopped_being_consumed_stays_offline(public, server):
    case = public("helix/pinot-segment-stopped-consuming")
    _, written = solved(case, "--drain", server)
    before = json.loads(case.path("dump/IDEALSTATES/ev_REALTIME.json").read_text())["mapFields"]
    after = written["ev_REALTIME"]["mapFields"]
    consumed = {name for name, row in before.items() if "CONSUMING" in row.values()}
    assert {name: after[name] for name in consumed} == {name: before[name] for name in consumed}
    moved = {name for name in before if before[name] != after[name]}
    assert moved == {name for name in {*before} - consumed if server in before[name]}


def test_tasks_are_named_and_stay(public):
    answer, written = solved(public("helix/pinot-minion-tasks"))
    assert "TaskQueue_MergeRollupTask" in answer.err
    assert list(written) == ["tab_OFFLINE"]
    assert sorted(held(written["tab_OFFLINE"]).values()) == [3, 3, 3, 3]


def test_a_disabled_server_of_a_customized_table_is_left(public):
    answer, written = solved(public("helix/customized-and-disabled"))
    assert answer.json["moves"] == answer.json["forced_moves"] == 4
    assert sorted(held(written["tab_OFFLINE"]).values()) == [5, 5, 6]


def test_what_a_killed_service_had_goes_to_live_ones(public):
    case = public("helix/view-of-a-killed-service")
    answer, written = solved(case)
    assert answer.json["moves"] == answer.json["forced_moves"] == 2
    assert sorted(held(written["jobs"]).values()) == [2, 3, 3]
    assert "no replica lives of 2 partitions" in case.run("solve", str(case.path("dump"))).text


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("helix/printed-by-helix-admin", ("resource.txt", "instances.txt", "STATEMODELDEFS")),
        ("helix/printed-by-zkcli", ("dump",)),
    ],
)
def test_records_among_what_tools_print(public, name, files):
    read = ek.read([public(name).source / one for one in files])
    assert read.native_format == "helix"
    assert (len(read.nodes), len(read.partitions)) == (6, 4)
    # as the view has them, and one on h5, which is down, since the view does not show it
    assert (read.placement.node >= 0).sum() == 12


def test_of_a_session_the_last_answers_count_and_what_no_view_shows_is_down(public):
    case = public("helix/failover-of-a-session")
    answer = case.run("solve", "session.txt", "-o", "placed.json", "--json")
    assert (answer.code, answer.json["moves"], answer.json["forced_moves"]) == (0, 5, 4)
    lists = json.loads(case.written("placed.json"))[0]["listFields"]
    assert "localhost_12918" not in {node for row in lists.values() for node in row}
    assert lists["myDB_1"][0] == "localhost_12917"  # as it is
    assert "more than one state of IdealState for myDB, ExternalView for myDB" in answer.text
    assert "that of localhost_12913 is left out" in answer.text


def test_records_that_are_not_there_are_noted(public):
    case = public("helix/led-and-unled-resources")
    ideal = str(case.path("dump") / "IDEALSTATES")
    answer = case.run("check", ideal)
    for kind in ("LIVEINSTANCES", "EXTERNALVIEW", "CONFIGS/PARTICIPANT"):
        assert f"add {kind}" in answer.text
    assert "add " not in case.run("check", str(case.path("dump"))).text


def test_disks_of_instances_are_noted(public):
    case = public("helix/ambry-disks-of-instances")
    answer = case.run("check", str(case.path("dump")))
    assert answer.code == 0 and "disks inside host0_6667" in answer.text
    alone = case.run("check", str(case.path("dump") / "CONFIGS"))
    assert alone.code == 2 and "add IDEALSTATES, as zkCli.sh prints it" in alone.text


def test_segments_of_a_tier_stay_there(public):
    answer, written = solved(public("helix/pinot-tiers-by-age"))
    assert answer.json["moves"] == 0 and not written
    assert (
        "segments of table logs_OFFLINE move to servers of other tags with their age" in answer.err
    )


def test_segments_in_error_are_noted(public):
    answer, _ = solved(public("helix/pinot-segments-in-error"))
    assert answer.json["moves"] == 0 and " of t_OFFLINE): Helix leaves them alone" in answer.err


def test_completed_segments_go_to_servers_with_a_tag_of_another_kind(public):
    answer, written = solved(public("helix/pinot-completed-on-another-tenant"), "--level", "none")
    assert "no server with the tenant tag" not in answer.err
    [table] = written.values()
    assert {name: next(iter(row)).split(".")[2] for name, row in table["mapFields"].items()} == {
        f"ev__0__{i}__20250101T0000Z": "0" if i == 4 else "1" for i in range(5)
    }


def test_buckets_of_a_large_resource_are_one(tmp_path):
    rows = {f"DB_{i}": {"a_1": "MASTER", "b_1": "SLAVE"} for i in range(4)}
    fields = {"BUCKET_SIZE": "2", "NUM_PARTITIONS": "4", "REPLICAS": "2",
              "REBALANCE_MODE": "SEMI_AUTO", "STATE_MODEL_DEF_REF": "MasterSlave"}  # fmt: skip
    lists = {name: [*row] for name, row in rows.items()}
    records = {"IDEALSTATES/DB": (fields, {}, lists), "EXTERNALVIEW/DB": (fields, {}, {})}
    for first in (0, 2):
        own = {name: row for name, row in rows.items() if int(name[3:]) // 2 * 2 == first}
        records[f"EXTERNALVIEW/DB/DB_p{first}-p{first + 1}"] = (fields, own, {})
    for path, (simple, maps, listed) in records.items():
        file = tmp_path / f"{path}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        parts = {"simpleFields": simple, "mapFields": maps, "listFields": listed}
        file.write_text(json.dumps({"id": path.rpartition("/")[2], **parts}))
    cluster = ek.read(tmp_path)
    assert [*cluster.partitions.names] == [*rows]
    assert cluster.placement.nodes.tolist() == [[0, 1]] * 4


def test_live_instances_are_read_as_zkcli_lists_them(public):
    case = public("helix/live-instances-listed-by-ls")
    lines = (case.source / "session.txt").read_text().splitlines(keepends=True)
    listing = lines[2:4]
    logged = [
        "$ bin/zkCli.sh -server zk1:2181 ls /MYCLUSTER/LIVEINSTANCES\n", "Connecting to zk1:2181\n",
        "[myid:] - INFO  [main:ZooKeeper@1193] - Initiating client connection, sessionTimeout=3\n",
        "\n", "WATCHER::\n", "\n", "WatchedEvent state:SyncConnected type:None path:null\n",
    ]  # fmt: skip
    for session in (
        lines, [*lines[4:], *listing], [*lines[4:25], *listing, *lines[25:]],
        [*lines[4:], *logged, listing[1]], [*logged, *lines[3:]],
    ):  # fmt: skip
        nodes = ek.read("".join(session).encode()).nodes
        assert dict(zip(nodes.names, nodes.alive.tolist(), strict=True)) == {
            "localhost_12913": True, "localhost_12914": True, "localhost_12915": False
        }  # fmt: skip
    alone = "".join([*lines[:2], *lines[4:]]).encode(), "".join(listing).encode()
    assert ek.read(*alone).nodes.alive.tolist() == [True, True, False]
    answer = case.run("solve", "session.txt", "--level", "none", "--json")
    assert (answer.code, answer.json["broken"]) == (4, {"on_dead": 3})
    assert "no live instances" not in answer.err
