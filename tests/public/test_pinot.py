"""Tables of Pinot from the answers of its controller, as users brought them."""

import json
from collections import Counter

import pytest

import evenkeel as ek


def solved(case, *words):
    """Return the answer of a solve of all files of a case, and the states written, by table."""
    files = sorted(one.name for one in case.source.iterdir() if one.name != "about.md")
    answer = case.run("solve", *files, *words, "--json", "-o", "placed.json")
    tables = json.loads(case.written("placed.json")) if answer.json["written"] else []
    return answer, {
        f"{one['tableName']}_{kind}": states
        for one in tables
        for kind, states in one.items()
        if kind != "tableName"
    }


def held(states):
    """Return how many segments each server holds, by its number."""
    return Counter(name.partition(".")[0][-1] for row in states.values() for name in row)


def test_a_replica_more_than_the_table_has_leaves_each_server(public):
    answer, written = solved(public("pinot/replication-reduced"))
    assert (answer.json["status"], answer.json["moves"]) == ("optimal", 0)
    assert answer.json["broken_before"] == {"surplus": 6}
    assert held(written["seg_OFFLINE"]) == {"0": 4, "1": 4, "2": 4}


def test_the_configuration_of_a_table_has_the_number_of_its_replicas(public):
    case = public("pinot/replication-increased")
    files = ("IDEALSTATES.json", "EXTERNALVIEW.json", "PARTICIPANT.json", "LIVEINSTANCES.json",
             "TABLE.json")  # fmt: skip
    answer = case.run("solve", *files, "--json", "-o", "placed.json")
    assert (answer.json["status"], answer.json["moves"]) == ("optimal", 15)
    assert "airlineStats_OFFLINE (2 for 1)" in answer.text
    (record,) = json.loads(case.written("placed.json"))
    assert {len(row) for row in record["mapFields"].values()} == {2}
    assert record["simpleFields"]["REPLICAS"] == "2"


def test_what_the_ideal_state_has_counts_before_the_view_shows_it(public):
    answer, written = solved(public("pinot/view-behind-the-ideal-state"))
    assert (answer.json["moves"], answer.json["broken"], written) == (0, {}, {})


def test_completed_segments_leave_the_one_server_that_consumes(public):
    case = public("pinot/one-stream-partition")
    answer, written = solved(case)
    states = written["testTable_REALTIME"]
    assert sorted(held(states).values()) == [10, 10, 10, 11]
    assert all(name.startswith("Server_") for row in states.values() for name in row)
    assert states["testTable__0__40__20200502T1600Z"] == {
        "Server_pinot-server-3.pinot-server_8098": "CONSUMING"
    }
    assert answer.json["moves"] == 30
    plan = case.run(
        "plan", "session.txt", "--target", str(case.path("placed.json")), "-o", "plan.json"
    )
    assert plan.code == 0 and "30 copies" in plan.text


def test_a_server_that_was_added_takes_half_of_the_segments(public):
    answer, written = solved(public("pinot/server-added"))
    assert (answer.json["status"], answer.json["moves"]) == ("optimal", 6)
    servers = Counter(name for row in written["airlineStats_OFFLINE"].values() for name in row)
    assert servers == {"Server_localhost_22001": 6, "Server_localhost_22004": 6}


def test_segments_of_an_upsert_table_stay_together(public):
    answer, written = solved(public("pinot/upsert-scaled-up"))
    assert (answer.json["moves"], written) == (0, {})
    assert "segments of table orders_REALTIME belong together" in answer.err


def test_a_dimension_table_keeps_all_its_servers(public):
    answer, written = solved(public("pinot/dimension-table"))
    assert (answer.code, answer.json["broken_before"], written) == (0, {}, {})
    assert "each server of the tenant of table dimBaseballTeams_OFFLINE" in answer.err


def test_servers_that_join_replica_groups_take_a_third_of_each(public):
    case = public("pinot/servers-join-replica-groups")
    files = sorted(one.name for one in case.source.iterdir() if one.name != "about.md")
    assert case.run("solve", *files, "--json", "-o", "placed.json").json["moves"] == 8
    (record,) = json.loads(case.written("placed.json"))
    groups = ({"0", "1", "4"}, {"2", "3", "5"})
    for row in record["mapFields"].values():
        numbers = {name.split("_")[1][1] for name in row}
        assert [len(numbers & group) for group in groups] == [1, 1]
    assert {*Counter(name for row in record["mapFields"].values() for name in row).values()} == {4}


def test_what_an_offline_server_had_goes_to_live_ones(public):
    answer, written = solved(public("pinot/server-offline"), "--level", "none")
    assert answer.json["moves"] == answer.json["forced_moves"] == 4
    assert "2" not in held(written["t_OFFLINE"])


def test_the_quick_start_is_levelled(public):
    answer = public("helix/answers-and-logs").run("solve", "idealstate.json", "--json")
    assert (answer.code, answer.json["status"]) == (0, "optimal")


@pytest.mark.parametrize(
    ("case", "files", "says"),
    [
        ("one-stream-partition", ["session.txt"], "POST /tables/NAME/pauseConsumption"),
        ("server-offline", ["ideal_state_t.json", "external_view_t.json", "liveinstances.json"],
         "only states are known"),
    ],
)  # fmt: skip
def test_a_folder_that_could_lose_settings_or_segments_is_refused(public, case, files, says):
    answer = public(f"pinot/{case}").run("plan", *files, "-o", "move")
    assert answer.code == 2 and says in answer.text


def test_replica_groups_that_the_ideal_state_keeps_itself(public):
    case = public("pinot/groups-in-the-ideal-state")
    files = ("IDEALSTATES", "EXTERNALVIEW", "PARTICIPANT", "LIVEINSTANCES", "TABLE")
    cluster = ek.read(*(case.path(f"{name}.json") for name in files))
    assert (len(cluster.partitions), len(cluster.nodes)) == (6, 6)
    moves = ek.solve(cluster).moves
    ends = {(int(one.source[20]) // 3, int(one.target[20]) // 3) for one in moves}
    assert (len(moves), ends) == (4, {(0, 0), (1, 1)})


def test_servers_that_a_table_is_not_assigned_to_take_nothing(public):
    answer, written = solved(public("pinot/groups-not-reassigned"))
    assert (answer.json["moves"], written) == (0, {})
    assert "table jhow_OFFLINE is not assigned to all servers" in answer.err


def test_assigned_servers_without_the_tag_are_named(public):
    answer, written = solved(public("pinot/assigned-without-the-tag"))
    assert (answer.json["moves"], written) == (0, {})
    assert "no tenant tag on servers Server_s5_8098, Server_s6_8098" in answer.err


def test_segments_of_servers_are_a_placement(public):
    case = public("helix/pinot-servers-of-segments")
    alone = case.run("check", "servers.json")
    assert "2 nodes, 2 alive · 3 partitions · 3 replicas" in alone.text
    assert "no states of segments: all count as ONLINE" in alone.err
    words = ("servers.json", "instances.json", "--json", "-o", "placed.json")
    assert case.run("solve", *words).json["moves"] == 1
    (table,) = json.loads(case.written("placed.json"))
    assert {*table} == {"tableName", "OFFLINE"} and len(table["OFFLINE"]) == 3


def test_the_answer_to_a_rebalance_is_a_placement(public):
    case = public("helix/answers-and-logs")
    found = case.run("check", "rebalance.json")
    assert "2 nodes, 2 alive · 12 partitions · 12 replicas" in found.text
    assert "a decision of a rebalance of Pinot" in found.err
    placed = ek.read(case.path("rebalance.json"))
    assert [*placed.partitions.group_names] == ["airlineStats_OFFLINE"]


def test_a_segment_that_is_to_be_offline_is_not_missing(public):
    answer, written = solved(public("pinot/offline-segment-not-in-view"))
    assert (answer.json["status"], answer.json["moves"]) == ("optimal", 4)
    assert "or that stopped and are OFFLINE" in answer.err and "does not show" not in answer.err
    assert {*written["mytable_REALTIME"]["mytable__1__1__20250327T2130Z"].values()} == {"OFFLINE"}


def test_a_segment_that_is_offline_stays_where_none_is_consumed(public, tmp_path):
    case = public("pinot/offline-segment-not-in-view")
    for name in ("ideal_state_mytable.json", "external_view_mytable.json", "instances.json"):
        text = case.path(name).read_text()
        (tmp_path / name).write_text(text.replace("CONSUMING", "ONLINE"))
    cluster = ek.read(*sorted(tmp_path.iterdir()))
    pinned = cluster.placement.flags & ek.Flag.PINNED != 0
    held = {cluster.partitions.names[p] for p in cluster.placement.owner[pinned].tolist()}
    assert held == {"mytable__1__1__20250327T2130Z"}
