"""Clusters of systems without a reader of their own, as tables."""

import json

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.placement import Role

FILES = ("nodes.csv", "replicas.csv", "rules.toml")


def solved(case, *words):
    return case.run("solve", *FILES, *words, "--json").json


def test_blocks_of_hdfs_on_two_racks(public):
    found = solved(public("tables/hdfs-two-racks"), "--level", "none")
    assert found["moves"] == found["moves_at_least"] == 40
    assert found["broken"] == {}
    level = solved(public("tables/hdfs-two-racks"))
    assert (level["status"], level["moves"], level["moves_at_least"]) == ("optimal", 57, 57)


def test_leaders_of_tikv_in_one_region(public):
    found = solved(public("tables/tikv-leaders-in-one-region"), "--method", "leaders")
    assert (found["status"], found["leader_changes"]) == ("optimal", 11)
    assert (found["moves"], found["most_leaders"]) == (0, 44)


def test_the_last_rack_of_scylla(public):
    assert solved(public("tables/scylla-last-rack"))["status"] == "infeasible"


def test_racks_that_redpanda_did_not_keep(public):
    found = solved(public("tables/redpanda-racks-not-kept"))
    assert (found["moves"], found["broken_before"], found["broken"]) == (4, {"spread": 4}, {})


def test_a_replacement_in_the_same_data_centre(public):
    found = solved(public("tables/pd-replacement-keeps-the-isolation"))
    assert (found["moves"], found["broken"]) == (20, {})


def test_a_policy_by_type_and_host(public):
    found = solved(public("tables/pd-policy-by-type-and-host"))
    assert (found["moves"], found["broken_before"], found["broken"]) == (12, {"spread": 12}, {})


def test_a_host_that_came_too_full(public):
    case = public("tables/hosts-of-proxmox-overcommitted")
    found = solved(case, "--level", "10%")
    assert (found["moves"], found["broken_before"], found["broken"]) == (3, {"capacity": 1}, {})
    assert found["goals_reached"]
    assert case.run("size", *FILES).code == 0


def test_nodes_of_unlike_size(public):
    found = solved(public("tables/scylla-nodes-of-unlike-size"))
    assert found["goals_reached"] and found["broken"] == {}
    assert found["level"]["disk"] < 1.06


def test_a_store_that_was_removed(public):
    case = public("tables/pd-store-that-was-removed")
    answer = case.run("solve", *FILES, "--json")
    assert (answer.json["moves"], answer.json["broken"]) == (10, {})
    assert answer.err.count("s5") == 1


BOTH = ("nodes.csv", "replicas.csv")


def test_a_shard_whose_move_gains_less_than_half_its_size(public):
    case = public("tables/citus-gain-below-half-a-shard")
    words = ("solve", *FILES, "--level", "10%", "--json")
    assert case.run(*words).json["moves"] == 1
    held = case.run(*words, "--worth", "13.4%/TB")
    assert (held.code, held.json["moves"], held.json["stop_reason"]) == (0, 0, "worth")
    assert "would lower the imbalance by 26.7%" in held.json["message"]


def test_an_empty_store_that_no_mean_shows(public):
    case = public("tables/cockroach-one-empty-store")
    assert case.run("check", *BOTH, "--level", "10%").code == 0
    missed = case.run("check", *BOTH, "--level", "10%", "--floor", "50%")
    assert missed.code == 1
    assert "s39" in missed.text
    filled = case.run("solve", *BOTH, "--floor", "20%", "--act-above", "50%", "--json").json
    assert filled["moves"] >= 7


def test_jitter_at_low_load_moves_nothing(public):
    case = public("tables/kinesis-jitter-at-low-load")
    assert case.run("solve", *BOTH, "--level", "10%", "--json").json["moves"] > 0
    assert case.run("solve", *BOTH, "--level", "10%", "--worth", "25%", "--json").json["moves"] == 0
    held = case.run("solve", *BOTH, "--level", "4%", "--act-above", "20%", "--json").json
    assert (held["moves"], held["stop_reason"]) == (0, "worth")


def test_seventy_megabytes_are_no_reason(public):
    case = public("tables/citus-seventy-megabytes")
    assert case.run("check", *FILES, "--level", "5%").code == 0
    assert case.run("solve", *FILES, "--level", "5%", "--json").json["moves"] == 0


def test_five_per_cent_of_the_shards_are_accepted(public):
    case = public("tables/elasticsearch-five-per-cent-of-shards")
    assert case.run("check", *BOTH, "--level", "5%").code == 0
    missed = case.run("check", *BOTH, "--level", "2%", "--json")
    assert (missed.code, missed.json["goals"]["met"]) == (1, False)


def nodes_by_partition(path):
    found = ek.read(path)
    names = np.array(found.nodes.names)
    return {
        str(name): {*names[row].tolist()}
        for name, row in zip(found.partitions.names, found.placement.nodes, strict=True)
    }


def test_topics_that_a_pattern_leaves_out(public):
    case = public("tables/topics-left-out-by-pattern")
    words = ("solve", *BOTH, "--pin", "topic=test*", "--pin", "topic=__consumer_offsets")
    found = case.run(*words, "--pin", "topic=foo", "--level", "10%", "-o", "out.npz", "--json")
    assert found.json["moves"] > 0
    before = nodes_by_partition([str(case.path(one)) for one in BOTH])
    after = nodes_by_partition(str(case.folder / "out.npz"))
    moved = {name for name in before if before[name] != after[name]}
    assert moved and all(name.startswith("foo-dlq") for name in moved)


def test_a_broker_that_is_demoted(public):
    case = public("tables/broker-demoted")
    words = ("--demote", "1", "--level", "none", "--json")
    found = case.run("solve", *BOTH, *words, "-o", "out.npz")
    assert (found.code, found.json["moves"], found.json["leader_changes"]) == (3, 0, 20)
    assert "(alone-0), which stay and are led where they are" in found.err
    gone = case.run("solve", *BOTH, *words, "--drain", "1")
    assert (gone.code, gone.json["broken"]) == (0, {})
    again = case.run("solve", str(case.folder / "out.npz"), *words)
    assert (again.json["moves"], again.json["leader_changes"]) == (0, 0)


def test_masters_of_redis_beside_their_replicas(public):
    case = public("tables/redis-masters-beside-replicas")
    words = ("nodes.csv", "replicas.csv", "--spread", "host=1", "--level", "none")
    answer = case.run("solve", *words, "-o", "out.csv")
    assert answer.code == 0
    rows = [line.split(",") for line in case.written("out.csv").split()]
    assert {row[2] for row in rows if row[1] == "leader"} == {"r1", "r3", "r5"}


def test_rows_as_json_are_tables(public):
    case = public("tables/rows-as-json")
    answer = case.run("solve", "nodes.json", "replicas.json", "-o", "out.csv")
    assert answer.code == 0
    assert sorted(case.written("out.csv").split()[1:]) == ["p1,n2,10.0", "p2,n1,10.0"]


def test_tables_divided_by_tabs_are_written_so(public):
    case = public("tables/vitess-cells")
    words = ("nodes.tsv", "replicas.tsv", "--spread", "cell=1", "--leaders", "0")
    assert case.run("solve", *words, "-o", "out.tsv").code == 0
    rows = [line.split("\t") for line in case.written("out.tsv").split("\n")[1:-1]]
    assert sorted((row[1], row[3][:2]) for row in rows) == [
        ("0", "c1"), ("0", "c2"), ("1", "c1"), ("1", "c2"),
    ]  # fmt: skip


def shrunk(case, *words):
    found = case.run("size", "nodes.csv", "replicas.csv", "--shrink", *words, "--json").json
    assert found["status"] == "optimal" and found["price"] == found["price_at_least"]
    return found


def test_two_of_five_nodes_of_cockroach_may_go(public):
    case = public("tables/cockroach-two-of-five")
    found = shrunk(case)
    assert (len(found["leaving"]), found["moves"], found["moves_at_least"]) == (2, 48, 48)
    assert len(shrunk(case, "--survive", "node")["leaving"]) == 1


def test_no_node_of_three_may_go(public):
    found = shrunk(public("tables/cockroach-three-of-three"))
    assert not found["leaving"] and "3 replicas of a partition need places" in found["message"]


def test_nodes_of_elasticsearch_at_half(public):
    case = public("tables/elasticsearch-eight-at-half")
    for most, count in (("60%", 1), ("70%", 2), ("75%", 2), ("100%", 4)):
        assert len(shrunk(case, "--at-most", most, "--after-loss", "1")["leaving"]) == count


def test_a_pod_that_has_room_nowhere_keeps_its_node(public):
    case = public("tables/kubernetes-no-room-elsewhere")
    found = shrunk(case)
    assert len(found["leaving"]) == 1
    gone = found["leaving"][0]["node"]
    after = case.run(
        "solve", "nodes.csv", "replicas.csv", "--drain", gone, "--level", "none", "--json"
    )
    assert (after.json["status"], after.json["broken"]) == ("optimal", {})


def test_memory_that_is_free_on_no_node(public):
    case = public("tables/kubernetes-slack-too-thin")
    found = case.run("size", "nodes.csv", "replicas.csv", "--unit", "memory=2", "--json").json
    assert [found[one] for one in ("now", "count", "at_most", "moves")] == [0, 1, 1, 1]


def test_a_chunk_that_is_pinned_stays(public):
    case = public("tables/jumbo-chunk")
    assert case.run("solve", "nodes.csv", "replicas.csv", "-o", "out.csv").code == 0
    rows = [line.split(",")[:2] for line in case.written("out.csv").split()[1:]]
    assert rows[0] == ["c0", "shard0"]
    assert sorted(node for _, node in rows) == [f"shard{i // 2}" for i in range(6)]


def test_machines_that_need_a_gpu_get_one(public):
    case = public("tables/machines-with-a-gpu")
    assert case.run("solve", *FILES, "-o", "out.csv").code == 0
    assert "ml,vm1,h3," in case.written("out.csv") and "vm2,h1" not in case.written("out.csv")


def test_two_replicas_on_one_node_are_parted(public):
    case = public("tables/one-node-twice")
    answer = case.run("check", "nodes.csv", "replicas.csv")
    assert answer.code == 1 and "same node partition p" in answer.text
    answer = case.run("solve", "nodes.csv", "replicas.csv", "--level", "none", "-o", "out.csv")
    assert answer.code == 0 and "p,a,1.0\np,a,1.0" not in case.written("out.csv")


def test_bricks_of_unlike_size_are_filled_alike(public):
    case = public("tables/bricks-of-unlike-size")
    words = ("nodes.csv", "replicas.csv", "--level", "0")
    assert case.run("solve", *words, "-o", "out.csv").code == 0
    nodes = [line.split(",")[1] for line in case.written("out.csv").split()[1:]]
    assert [nodes.count(f"osd{i}") for i in range(3)] == [2, 2, 4]


def test_what_a_drained_node_has_stays_in_its_zone(public):
    case = public("tables/node-of-a-zone-is-drained")
    answer = case.run("solve", *FILES, "--drain", "n0", "--level", "none", "-o", "out.csv")
    assert answer.code == 0
    nodes = [line.split(",")[2] for line in case.written("out.csv").split()[1:]]
    assert [nodes.count(f"n{i}") for i in range(6)] == [0, 6, 6, 6, 0, 0]


def test_decimal_commas_are_read(tmp_path):
    (tmp_path / "nodes.csv").write_text("node;cap_disk\na;1,5TB\nb;1.000,5\n")
    (tmp_path / "replicas.csv").write_text("partition;node;size_disk\np;a;0,5TB\n")
    cluster = ek.read(tmp_path / "nodes.csv", tmp_path / "replicas.csv")
    assert cluster.nodes.capacity.tolist() == [[1.5e12], [1000.5]]
    assert cluster.partitions.load.voter.tolist() == [[0.5e12]]


def test_nothing_comes_to_a_cordoned_node(public):
    case = public("tables/cordoned-node")
    assert case.run("solve", "nodes.csv", "replicas.csv", "-o", "out.csv").code == 0
    rows = [line.split(",")[:2] for line in case.written("out.csv").split()[1:]]
    assert {name for name, node in rows if node == "a"} <= {"p0", "p2", "p4"}
    assert sorted(node for _, node in rows) == [*"aabbcc"]


def counted(case, *words, files=("nodes.csv", "replicas.csv")):
    """Return the figures of a solve, and its moves as rows."""
    found = case.run("solve", *files, *words, "--table", "moves.csv", "--json")
    rows = [line.split(",") for line in case.written("moves.csv").splitlines()[1:]]
    return found.json, [row for row in rows if row[0] == "move"]


def test_the_last_replica_of_solr_needs_another_to_move(public):
    found, moves = counted(public("tables/solr-last-replica"), "--level", "none")
    assert (found["status"], found["broken"], len(moves)) == ("optimal", {}, 2)


def test_duplicates_of_solr_are_mended_though_counts_are_level(public):
    found, moves = counted(public("tables/solr-duplicates-on-a-node"), "--level", "0")
    assert found["broken_before"] == {"same_node": 2} and found["broken"] == {}
    assert [row[1] for row in moves] == ["c1_s1", "c1_s2"]


def test_nodes_for_other_collections_move_nothing(public):
    assert counted(public("tables/solr-scale-up-for-others"), "--level", "5%")[1] == []


def test_citus_shards_are_level_by_size(public):
    files = ("nodes.csv", "replicas.csv", "rules.toml")
    found, moves = counted(public("tables/citus-145-317-666"), "--level", "5%", files=files)
    assert found["status"] == "optimal" and {row[3] for row in moves} == {"node3"}


def test_servers_are_level_and_so_is_every_table(public):
    case = public("tables/yugabyte-tables-of-four-tablets")
    found, moves = counted(case, "--level", "5%", "--groups", "0")
    assert (found["status"], len(moves)) == ("optimal", 6)
    assert {row[3] for row in moves} == {"ts1"}


def test_tables_of_one_tablet_are_spread(public):
    case = public("tables/yugabyte-single-tablets")
    found, moves = counted(case, "--level", "5%", "--groups", "0")
    assert (found["status"], len(moves)) == ("optimal", 10)


def test_zones_of_unlike_size_are_level_within(public):
    case, files = public("tables/yugabyte-zones-of-three-three-two"), (
        "nodes.csv", "replicas.csv", "rules.toml",
    )  # fmt: skip
    found, moves = counted(case, "--level", "5%", files=files)
    assert (found["status"], len(moves)) == ("optimal", 14)
    assert {(row[3][0], row[4]) for row in moves} == {("a", "a1")}


def test_what_has_one_live_replica_is_repaired_first(public):
    case = public("tables/yugabyte-most-endangered-first")
    _, moves = counted(case, "--moves", "2", "--level", "none")
    assert {row[1] for row in moves} == {"zone0", "zone1"}


def test_leaders_are_level_beside_a_dead_server(public):
    case = public("tables/yugabyte-leaders-beside-a-dead-server")
    found, moves = counted(case, "--method", "leaders")
    assert (found["leader_changes"], found["most_leaders"], moves) == (3, 5, [])


def test_three_servers_take_over_from_a_fourth(public):
    found, moves = counted(public("tables/yugabyte-one-of-four-dies"), "--level", "5%")
    assert (found["status"], found["broken"], len(moves)) == ("optimal", {}, 24)
    assert {row[3] for row in moves} == {"ts4"}


def test_leaders_of_tables_that_are_bound_to_zones(public):
    case = public("tables/yugabyte-leaders-of-partitioned-tables")
    words = ("--level", "none", "--leaders", "0")
    found, moves = counted(case, *words, files=("nodes.csv", "replicas.csv", "rules.toml"))
    assert (found["leader_changes"], found["most_leaders"], moves) == (10, 4, [])


def test_rows_that_a_join_repeats(public):
    case = public("tables/regions-listed-twice")
    refused = case.run("check", "stores.txt", "peers.txt")
    assert refused.code == 2 and "leads already, in a row that this one repeats" in refused.text


def test_a_historical_is_drained_in_parts(public):
    case = public("tables/druid-a-replica-in-each-tier")
    leaves = ("--spread", "tier=1", "--drain", "druid-historical-cold-0:8083", "--level", "none")
    words = ("servers.txt", "segments.txt", *leaves)
    found = case.run("solve", *words, "--moves", "6", "--json")
    assert (found.code, found.json["moves"], found.json["broken"]) == (3, 6, {"not_kept": 6})
    for limit in (("solve", "--bytes", "30GB"), ("plan", "--throttle", "node-bandwidth=100MB")):
        refused = case.run(limit[0], *words, *limit[1:])
        assert refused.code == 2 and 'a line such as bytes = "disk"' in refused.text


def test_machines_of_a_group_are_kept_apart(public):
    case = public("tables/machines-kept-apart")
    alone = case.run("solve", "nodes.csv", "vms.csv", "per-partition.toml", "--level", "none")
    assert "no partition with several replicas in fw, db" in alone.text
    spread = case.run("solve", "nodes.csv", "vms.csv", "--spread", "node=1", "--level", "none")
    assert "no partition with several replicas in fw, other, db" in spread.text
    assert "they may share one" not in spread.text
    found, moves = counted(case, "--level", "none", files=("nodes.csv", "vms.csv", "rules.toml"))
    assert (found["status"], found["broken"], found["leader_changes"]) == ("optimal", {}, 0)
    assert [row[1][:2] for row in moves] == ["FW"]


class TestRolesInOtherWords:
    """Of master and slave, primary, replica and rdonly, voter and observer."""

    def test_a_slave_leaves_the_host_of_its_master(self, public):
        case = public("tables/roles-in-other-words")
        files = ("nodes.csv", "redis.csv", "rules.toml")
        found = case.run("solve", *files, "--level", "none", "--json").json
        assert (found["broken_before"], found["broken"]) == ({"spread": 1}, {})
        assert (found["moves"], found["leader_changes"]) == (2, 0)

    def test_primaries_leave_their_cell_for_replicas(self, public):
        case = public("tables/roles-in-other-words")
        words = ("cells.csv", "vitess.csv", "--method", "leaders", "--table", "moves.csv", "--json")
        found = case.run("solve", *words).json
        assert (found["status"], found["leader_changes"]) == ("optimal", 2)
        assert not any(
            row.startswith(("leader,commerce-80-c0", "leader,commerce-c0-")) and "zone3" in row
            for row in case.written("moves.csv").splitlines()
        )

    def test_an_observer_is_no_voter(self, public):
        case = public("tables/roles-in-other-words")
        words = ("nodes.json", "yugabyte.json", "--level", "none", "--json")
        found = case.run("solve", *words).json
        assert (found["status"], found["moves"]) == ("infeasible", 1)
        assert found["broken"] == {"not_kept": 1}


def test_leaders_of_regions_leave_the_store_that_leads_most(public):
    case = public("tables/printed-by-other-systems")
    found = case.run("solve", "tidb.txt", "--method", "leaders", "-o", "out.csv", "--json").json
    assert (found["leader_changes"], found["most_leaders"]) == (1, 2)
    assert found["broken"] == {"unassigned": 1}  # a peer is down
    assert case.written("out.csv").startswith("REGION_ID,STORE_ID,role,")
    placed = ek.read(case.folder / "out.csv", case.folder / "out.nodes.csv")
    assert np.bincount(placed.placement.leader_node).tolist() == [2, 1, 1]


def test_a_host_that_joins_a_zone_of_nebula(public):
    case = public("tables/nebula-host-joins-a-zone")
    answer = case.run("solve", "zones.txt", "parts.txt", "--spread", "zone=1", "--table", "out.csv")
    assert answer.code == 0
    moves = [row for row in case.written("out.csv").splitlines() if row.startswith("move")]
    assert [row.split(",")[4] for row in moves] == ["192.168.8.152:16779"] * 2
    assert {row.split(",")[3][-5:] for row in moves} == {"11779", "15779"}


def test_primaries_of_crate_are_level(public):
    case = public("tables/crate-primaries-on-one-node")
    words = ("shards.txt", "--leaders", "5%", "--level", "none", "--json")
    found = case.run("solve", *words).json
    assert (found["moves"], found["leader_changes"], found["most_leaders"]) == (0, 1, 2)


def test_a_dead_replica_is_placed_again(public):
    case = public("tables/starrocks-replica-is-dead")
    words = ("--level", "none", "--table", "out.csv")
    for files, left in ((("backends.txt", "status.txt"), ""), (("status.txt",), "10007")):
        assert case.run("solve", *files, *words, "--force").code == 0
        (move,) = (row.split(",") for row in case.written("out.csv").splitlines()[1:])
        assert move[:2] == ["move", "29502429"] and move[3] == left
        assert move[4] not in {"10006", "10002", left}


@pytest.mark.parametrize(
    ("case", "words", "code", "moves"),
    [
        ("tables/influx-node-is-gone", ("nodes.csv", "shards.txt", "--level", "none"), 0,
         [(one, "offline.example:8088", "new.example:8088")
          for one in ("telegraf-3", "_internal-2", "_internal-5", "foo-6")]),
        ("tables/nebula-host-offline", ("hosts.txt", "parts.txt", "--level", "none"), 0,
         [("1", "store1:9779", "store4:9779"), ("2", "store1:9779", "store2:9779"),
          ("4", "store1:9779", "store2:9779")]),
        ("tables/clickhouse-two-by-two", ("clusters.txt", "--add-nodes", "chs01031,", "--drain",
         "chs01022"), 0, [("cluster_chs01-2", "chs01022", "chs01031")]),
        ("tables/tikv-regions-as-jq-prints-them", ("stores.json", "regions.json", "--level",
         "none"), 0, [(str(one), "31", "34") for one in range(2, 14, 2)]),
        ("tables/pd-ctl-down-peer", ("store.json", "region.json", "--level", "none"), 0,
         [("689", None, "103"), ("695", None, "103")]),
        ("tables/swarm-node-joins", ("nodes.txt", "tasks.txt", "--level", "0"), 0,
         [("redis.5", "swarm-4", "swarm-5")]),
        ("tables/mongo-chunks-exported", ("shards.json", "chunks.json", "--level", "0"), 0,
         [(f"6431ab0c2f1e5d000000000{one}", "shard01", "shard03") for one in (0, 1, 3)]),
        ("tables/openstack-host-is-down", ("hypervisors.csv", "servers.csv", "--level", "none"), 0,
         [(f"9f2c000{one}-6d1b-4a2e-9c58-0242ac12000{one}", "compute3", "compute2")
          for one in (5, 6)]),
        ("tables/nomad-client-joins", ("nodes.txt", "allocs.txt", "--level", "0"), 0,
         [("8f1d3c0a", "client-1", "client-3")]),
        ("tables/vmware-host-in-maintenance", ("hosts.csv", "vms.csv", "--level", "10%"), 0,
         [("old01", "esx03.lab.local", "esx02.lab.local")]),
        ("tables/yugabyte-servers-and-tablets", ("servers.txt", "tablets.txt", "--spread", "zone=1",
         "--level", "none"), 0,
         [("e9ad5a1c1c1a4a1b8c2b6f3f4d2f7e12", "10.0.0.4:5433", "10.0.0.1:5433")]),
        ("tables/answers-of-sql", ("clickhouse.json", "--level", "30%"), 0,
         [("202301", "ch1", "ch2")]),
        ("tables/proxmox-resources", ("resources.json", "--level", "10%"), 0,
         [("100", "pve1", "pve2"), ("103", "pve1", "pve3")]),
        ("tables/vertica-subscriptions", ("subscriptions.txt", "--drain", "node02"), 4,
         [("segment002", "node02", "node01")]),
    ],
)  # fmt: skip
def test_shards_as_their_systems_print_them(public, case, words, code, moves):
    answer = public(case).run("solve", *words, "--table", "out.json")
    assert answer.code == code
    rows = json.loads(public(case).written("out.json"))
    assert [
        (one["partition"], one["from"], one["to"]) for one in rows if one["kind"] == "move"
    ] == (moves)


def test_replicas_of_solr_by_its_status(public):
    case = public("tables/solr-cluster-status")
    found = case.run("solve", "status.json", "--level", "0", "--json").json
    assert (found["moves"], found["status"], found["broken"]) == (4, "optimal", {})
    roles = ek.read(case.path("status.json")).placement.role
    assert [*roles].count(Role.NON_VOTER) == 2


@pytest.mark.parametrize("sized", [True, False])
def test_stores_of_tiflash_take_no_voters_and_regions_without_sizes_count_alike(tmp_path, sized):
    def store(i, **labels):
        listed = [{"key": key, "value": value} for key, value in labels.items()]
        return {"store": {"id": i, "state_name": "Up", "labels": listed},
                "status": {"capacity": "1TiB"}}  # fmt: skip

    stores = [*(store(i) for i in (1, 2, 3, 4)), store(9, engine="tiflash")]
    size = {"approximate_size": 96} if sized else {}
    regions = [
        {"id": r, "peers": [{"store_id": i, "role_name": "Voter"} for i in (1, 2, 3)],
         "leader": {"store_id": 1}} | size
        for r in range(8)
    ]  # fmt: skip
    (tmp_path / "stores.json").write_text(json.dumps({"count": 5, "stores": stores}))
    (tmp_path / "regions.json").write_text(json.dumps({"count": 8, "regions": regions}))
    cluster = ek.read([tmp_path / "stores.json", tmp_path / "regions.json"])
    assert cluster.nodes.accepts.tolist() == [True, True, True, True, False]
    held = np.bincount(ek.solve(cluster, goals=ek.Goals(level=0.01)).placement.node, minlength=5)
    assert held.tolist() == [6, 6, 6, 6, 0]
