"""Files taken as they were posted, or stand in the tests of other tools."""

import json
from collections import Counter

import pytest

import evenkeel as ek
from evenkeel.systems.elasticsearch.cluster import left_out

SHARDS = ("nodes.json", "shards.json", "allocation.json")


@pytest.mark.parametrize(
    ("case", "file", "says"),
    [
        ("kafka/broker-listed-three-times", "reassign.json", "partitions[0].replicas: names a bro"),
        ("ceph/mapping-of-a-pool", "groups.txt", "ceph osd dump"),
        ("ceph/commands-without-a-map", "c.txt", "needs ceph osd dump and ceph osd crush dump"),
        ("ceph/shell-of-root-around-tables", "osd_df.txt", "needs ceph osd dump and ceph osd"),
        ("ceph/state-alone", "status.txt", "give ceph osd dump"),
        ("ceph/state-alone", "health.txt", "give ceph osd dump"),
        ("ceph/state-alone", "pools.txt", "give ceph osd dump"),
        ("kafka/list-of-reassignments-alone", "list.txt", "kafka-topics.sh --describe"),
        ("tables/stores-of-pd-ctl", "stores.json", "needs one table of replicas"),
        ("helix/commas-at-the-end", "relay_ideal_state.json", "state.json:12: is not JSON"),
        ("helix/view-of-the-first-release", "view.json", "as records"),
        *(("kafka/outputs-of-other-clients", file, "kafka-topics.sh --describe")
          for file in ("astraea.txt", "topics.json", "state.json")),
        ("ceph/lines-of-a-session", "group.txt", "ceph osd crush dump"),
        ("ceph/lines-of-a-session", "upmaps.txt", "ceph osd crush dump"),
        ("ceph/lines-of-a-session", "crush.json", "needs ceph osd dump, with -f json"),
        *(("rabbitmq/outputs-without-members", file, "list_queues name type leader members online")
          for file in ("counts.txt", "stream_status.txt", "pids.txt", "course.txt", "kinds.json")),
        *(("nats/answers-cut-to-a-part", file, "nats server request jetstream --all")
          for file in ("account.txt", "list.json", "end.txt")),
        *(("kafka/lines-without-their-topic", file, "lines of a description without their topic")
          for file in ("rows.txt", "comments.txt")),
        ("rabbitmq/output-for-people", "python.txt", "is an object as Python prints it"),
        ("ceph/lines-of-a-session", "stat.txt", "ceph osd crush dump"),
        ("nats/trace-of-a-report", "trace.txt", "nats server request jetstream --all"),
        ("rabbitmq/what-grow-printed", "grow.txt", "rabbitmqctl list_queues"),
        ("tables/stores-as-sql-prints-them", "stores.txt", "needs one table of replicas"),
        ("elasticsearch/copies-by-shard-stores", "stores.json", "give _cat/shards"),
        ("elasticsearch/header-of-eight-rows-of-seven", "allocation.txt", "cells, the header 8"),
        ("cockroach/regions-in-place-of-ranges", "regions.txt", "crdb_internal.ranges"),
        ("cockroach/regions-in-place-of-ranges", "ls.txt", "node status --all --format=csv"),
        ("cockroach/regions-in-place-of-ranges", "rows.txt", "without its header"),
        ("cockroach/decommission-in-a-log", "decommission.txt", "FROM crdb_internal.ranges"),
        ("helix/ambry-static-layouts", "HardwareLayout.json", "as zkCli.sh prints them"),
        ("helix/ambry-static-layouts", "PartitionLayout.json", "as zkCli.sh prints them"),
        ("helix/pinot-tiers-by-age", "summary.json", "/zk/get?path="),
        ("helix/answers-and-logs", "debug.json", "/zk/get?path="),
        ("longhorn/volume-as-python-prints-it", "volume.txt", "save it as JSON"),
        ("longhorn/volume-as-python-prints-it", "volumes.yaml", "get -o json nodes.longhorn.io"),
        ("longhorn/headings-between-answers", "health.txt", "get -o json nodes.longhorn.io"),
        ("longhorn/node-under-pressure", "describe.txt", "get -o json nodes.longhorn.io"),
        ("kubernetes/objects-without-kind", "node.json", "an object without its kind"),
        ("kubernetes/objects-without-kind", "pod.json", "an object without its kind"),
        ("tables/printed-by-crash", "nodes.txt", "cap_NAME for each dimension"),
        ("tables/printed-by-crash", "backends.txt", "a row for each replica"),
    ],
)  # fmt: skip
def test_what_is_not_read_is_refused_with_a_way_out(public, case, file, says):
    answer = public(case).run("check", file)
    assert answer.code == 2 and says in answer.text


@pytest.mark.parametrize(
    ("begins", "says"),
    [
        (b"PAR1\x15\x04", "Cluster.from_frames"),
        (b"ARROW1\0\0", "Cluster.from_frames"),
        (b"SQLite format 3\0", "as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "save each sheet as CSV"),
        (b"(\xb5/\xfd\x04", "unpack it"),
        (b"\x89PNG\r\n", "the text that it shows"),
        (b"{ cluster_name: 'es', nodes: {} }", "save it as JSON"),
        (b"[{'node': 'n1', 'alive': True}]", "save it as JSON"),
    ],
)
def test_files_of_other_tools_are_named(public, begins, says):
    case = public("tables/lists-of-nodes")
    (case.folder / "given").write_bytes(begins + bytes(range(64)))
    answer = case.run("check", "nodes.csv", str(case.folder / "given"))
    assert answer.code == 2 and says in answer.text


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("metrics.txt", "what one exporter serves"),
        ("promtool.txt", "what promtool prints for people"),
        ("grafana.csv", "as Grafana exports them"),
        ("error.json", "unexpected identifier"),
    ],
)
def test_what_is_no_answer_of_prometheus_is_named(public, file, says):
    case = public("tables/loads-of-an-exporter")
    answer = case.run("check", "topics.txt", "--loads", f"disk={case.path(file)}")
    assert answer.code == 2 and says in answer.text and "query" in answer.text


@pytest.mark.parametrize(
    ("case", "files"),
    [
        ("elasticsearch/opensearch-every-node-a-copy", [*SHARDS]),
        ("kubernetes/nodes-without-custom-labels", ["nodes.json", "pods.json"]),
        ("kubernetes/two-pods-on-the-only-zone", ["nodes.json", "pods.json"]),
        ("longhorn/three-replicas-in-two-zones", ["longhorn.json"]),
        ("longhorn/replica-on-an-unschedulable-node", ["longhorn.json"]),
        ("nats/jsz-of-an-exporter", ["jsz.json"]),
        ("cockroach/figures-of-a-decommissioned-node", ["status.csv", "ranges.csv"]),
        ("kafka/in-sync-beyond-the-replicas", ["described.txt", "--level", "none"]),
    ],
)  # fmt: skip
def test_nothing_moves(public, case, files):
    found = public(case).run("solve", *files, "--json")
    assert found.code == 0, found.text
    assert (found.json["status"], found.json["moves"]) == ("optimal", 0)


def test_answers_of_one_session_are_told_apart(public):
    cluster = ek.read(public("rabbitmq/session-of-two-commands").path("session.txt"))
    assert [*cluster.nodes.names] == ["rabbit@rmq1", "rabbit@rmq2", "rabbit@rmq3"]
    assert cluster.placement.nodes.tolist() == [[0, 1]]


def test_an_assignment_without_a_partition_0_is_drained(public):
    case = public("kafka/nine-brokers-of-a-test")
    words = ("--drain", "10004", "-o", "plan.json")
    assert case.run("solve", "nine_brokers.json", *words).code == 0
    before = json.loads(case.path("nine_brokers.json").read_text())["partitions"]
    was = {one["partition"]: one["replicas"] for one in before}
    now = {
        one["partition"]: one["replicas"]
        for one in json.loads(case.written("plan.json"))["partitions"]
    }
    assert {*now} == {3, 4, 5}
    for number, row in now.items():
        assert len({*row}) == 3 and 10004 not in row
        assert len({*row} - {*was[number]}) == 1


class TestShards:
    def test_one_node_holds_no_second_copy(self, public):
        case = public("elasticsearch/one-node-of-an-exporter")
        answer = case.run("solve", "shards.json", "-o", "plan.json")
        assert answer.code == 3 and "the last 2 of the replicas find no node" in answer.text
        assert json.loads(case.written("plan.json")) == {"commands": []}

    def test_addresses_that_were_masked(self, public):
        case = public("elasticsearch/masked-addresses")
        words = ("--drain", "elasticsearch-2", "--json", "-o", "plan.json")
        answer = case.run("solve", "shards.txt", *words)
        assert (answer.code, answer.json["moves"]) == (0, 3)
        commands = json.loads(case.written("plan.json"))["commands"]
        assert {one["move"]["from_node"] for one in commands} == {"elasticsearch-2"}
        text = case.path("shards.txt").read_text()
        for mask in ("xxx.xxx.xxx.xxx", "10.0.*.*", "<ip>", "[redacted]", "***"):
            other = case.folder / "masked.txt"
            other.write_text(text.replace("10.x.x.", f"{mask} #").replace(" #1", "")
                             .replace(" #2", "").replace(" #3", ""))  # fmt: skip
            assert len(ek.read(other).nodes) == 3, mask

    @pytest.mark.parametrize("form", ["text", "json"])
    def test_disks_stand_in_a_table_of_nodes(self, public, form):
        case = public("elasticsearch/disks-by-cat-nodes")
        given = case.path("nodes.txt")
        if form == "json":
            titles, *rows = (line.split() for line in given.read_text().splitlines())
            given = case.folder / "nodes.json"
            given.write_text(json.dumps([dict(zip(titles, row, strict=True)) for row in rows]))
        cluster = ek.read(case.path("shards.txt"), given)
        assert [*cluster.nodes.names] == ["n1", "n2", "n3", "n4"]
        disk = cluster.nodes.capacity[:, cluster.dimensions.index("disk")]
        assert (disk < 1e12).all()

    def test_no_order_makes_a_primary(self, public):
        case = public("elasticsearch/opensearch-every-node-a-copy")
        answer = case.run("solve", *SHARDS, "--leaders", "10%")
        assert answer.code == 2 and "no order moves one" in answer.text

    @pytest.mark.parametrize(
        ("case", "moves", "zones"),
        [("elasticsearch/opensearch-skew-factor-of-zero", 2, {"zone-1", "zone-2", "zone-3"}),
         ("elasticsearch/opensearch-zone-is-shut-down", 4, {"zone-2", "zone-3"})],
    )  # fmt: skip
    def test_copies_are_in_zones_of_their_own(self, public, case, moves, zones):
        opened = public(case)
        files = (*SHARDS, "cluster.json")
        found = opened.run("solve", *files, "--json")
        assert (found.code, found.json["moves"]) == (0, moves)
        cluster = ek.read([opened.path(name) for name in files])
        placed = ek.solve(cluster).placement
        tier = cluster.topology.tiers.index("zone")
        for row in placed.nodes.tolist():
            held = [
                cluster.topology.domain_name(tier, cluster.topology.domain[tier][n]) for n in row
            ]
            assert len({*held}) == 2 and {*held} <= zones


def test_json_that_a_terminal_has_wrapped_is_joined(public):
    case = public("kafka/wrapped-within-a-key")
    answer = case.run("check", "executed.txt")
    assert answer.code == 0 and "a running reassignment of 5 partitions" in answer.text
    assert ek.read(case.path("executed.txt")).placement.nodes.tolist()[2] == [2, 0, 1]


def test_nodes_of_queues_of_other_kinds_take_members(public):
    case = public("rabbitmq/nodes-of-other-queues")
    answer = case.run("solve", "queues.json", "-o", "plan.json")
    assert answer.code == 0 and "no cluster_status" in answer.text
    rows = json.loads(case.written("plan.json"))
    held = Counter(name for one in rows if one["type"] == "quorum" for name in one["members"])
    assert held == {f"rabbit@rabbit{i}": 1 for i in range(1, 5)}


def test_queues_of_three_are_levelled_over_five_nodes(public):
    case = public("rabbitmq/imported-on-three-of-five")
    words = ("queues.json", "status.json", "--level", "10%", "-o", "plan.json")
    assert case.run("solve", *words).code == 0
    rows = json.loads(case.written("plan.json"))
    assert all(len({*one["members"]}) == 3 for one in rows)
    count = Counter(name for one in rows for name in one["members"])
    assert len(count) == 5 and max(count.values()) == 6
    was = json.loads(case.path("queues.json").read_text())
    assert all(
        {*before["members"]} & {*after["members"]} for before, after in zip(was, rows, strict=True)
    )


def test_null_stands_for_what_a_decommissioned_node_does_not_tell(public):
    case = public("cockroach/null-in-place-of-an-address")
    assert case.run("solve", "status.csv", "ranges.csv", "-o", "plan.sql").code == 0
    voters = [line for line in case.written("plan.sql").splitlines() if "VOTERS" in line]
    assert voters == ["ALTER RANGE 104 RELOCATE VOTERS FROM 3 TO 6;"]


def test_sizes_without_the_units_of_capacities_are_noted(public):
    case = public("tables/sizes-without-units")
    answer = case.run("check", "nodes.csv", "replicas.csv")
    assert answer.code == 0 and "no units in size_disk, though cap_disk has some" in answer.text
    plain = case.path("replicas.csv").read_text().replace("0\n", "000000000\n")
    (case.folder / "plain.csv").write_text(plain)
    answer = case.run("check", "nodes.csv", str(case.folder / "plain.csv"))
    assert answer.code == 0 and "units" not in answer.text


def test_a_volume_without_a_replica_where_it_is_attached_is_noted(public):
    case = public("longhorn/no-replica-beside-the-engine")
    answer = case.run("check", "longhorn.json")
    assert answer.code == 0 and "data locality is best-effort" in answer.text
    beside = json.loads(case.path("longhorn.json").read_text())
    for one in beside["items"]:
        if one["kind"] == "Volume":
            one["spec"]["nodeID"] = one["status"]["currentNodeID"] = "n1"
    (case.folder / "beside.json").write_text(json.dumps(beside))
    assert "locality" not in case.run("check", str(case.folder / "beside.json")).text


def test_soft_spreads_part_pods_without_goals(public):
    case = public("kubernetes/schedule-anyway")
    files = [case.path(name) for name in ("nodes.json", "pods.json")]
    assert "soft skew" in case.run("check", "nodes.json", "pods.json").text
    cluster = ek.read(files)
    held = ek.solve(cluster, goals=ek.Goals(level=None)).placement.nodes[0].tolist()
    zones = Counter(cluster.topology.domain[0][held].tolist())
    assert len({*held}) == 4 and sorted(zones.values()) == [1, 1, 2]


class TestDecommission:
    def test_a_log_of_the_command_is_no_list_of_all_nodes(self, public):
        case = public("cockroach/decommission-in-a-log")
        assert case.run("solve", "decommission.txt", "ranges.csv", "-o", "plan.sql").code == 0
        voters = [line for line in case.written("plan.sql").splitlines() if "VOTERS" in line]
        assert [line.split()[2] for line in voters] == ["73", "5162", "28"]
        assert all("FROM 4" in line for line in voters)

    def test_others_count_as_live_beside_a_store_status(self, public):
        case = public("cockroach/decommission-in-a-log")
        stores = "".join(f"{n},{n},1000000,400000\n" for n in range(1, 7))
        given = [case.path(name) for name in ("decommission.txt", "ranges.csv")]
        cluster = ek.read([*given, f"node_id,store_id,capacity,used\n{stores}".encode()])
        alive = dict(zip(cluster.nodes.names, cluster.nodes.alive.tolist(), strict=True))
        assert alive == {"1": True, "2": True, "3": True, "4": False, "5": True, "6": True}

    def test_boxes_of_the_first_releases(self, public):
        case = public("cockroach/decommission-in-old-boxes")
        assert case.run("solve", "decommission.txt", "ranges.csv", "-o", "plan.sql").code == 0
        voters = [line for line in case.written("plan.sql").splitlines() if "VOTERS" in line]
        assert len(voters) == 3 and all("FROM 4" in line for line in voters)


def test_rows_of_zones_without_their_header(public):
    case = public("cockroach/zones-without-a-header")
    answer = case.run("check", "ranges.txt", "zones.txt")
    assert answer.code == 0
    assert "the zones of defaultdb.public.pii, defaultdb.public.non_pii hold" in answer.text
    named = b'range_id,replicas,lease_holder,table_name\n37,"{1,3,5}",5,pii\n'
    stores = b"node_id,store_id,attrs\n" + b"".join(
        b'%d,%d,"[%s]"\n' % (n, n, b"encrypt" if n < 4 else b"open") for n in (1, 2, 3, 4, 5)
    )
    result = ek.solve(ek.read([named, stores, case.path("zones.txt")]))
    assert (result.audit.hard, result.comparison.moves) == (0, 1)


def test_ranges_of_each_table_on_their_own(public):
    case = public("cockroach/ranges-of-each-table")
    answer = case.run("check", "session.txt")
    assert answer.code == 0
    assert "2 partitions · 6 replicas" in answer.text
    assert "no lease_holder of the ranges" in answer.text
    drained = case.run("solve", "session.txt", "--drain", "5", "--level", "none")
    assert drained.code == 4
    assert "3 require +encrypt, 2 spread host 1" in drained.text
    zones, _, others = case.path("session.txt").read_bytes().partition(b"SELECT node_id")
    cluster = ek.read([zones, b"SELECT node_id" + others])
    assert [cluster.partitions.names[p] for p in range(2)] == ["37", "38"]


def test_the_other_instance_leads(public):
    case = public("helix/leader-standby-on-one-of-two")
    words = ("--json", "-o", "ideal.json")
    answer = case.run("solve", str(case.path("dump")), *words)
    assert (answer.code, answer.json["moves"]) == (0, 0)
    (record,) = json.loads(case.written("ideal.json"))
    assert {tuple(row.items()) for row in record["mapFields"].values()} == {
        (("localhost_12919", "LEADER"),)
    }


def test_the_last_disk_has_no_room(public):
    case = public("longhorn/third-disk-too-small")
    answer = case.run("solve", "longhorn.json", "--method", "longhorn", "--level", "none")
    assert answer.code == 4 and "2 spread host 1, 1 capacity nominal" in answer.text


def test_a_budget_of_all_keeps_its_pods(public):
    case = public("kubernetes/budget-of-all")
    answer = case.run("solve", "nodes.json", "pods.json", "--drain", "w1", "--level", "none")
    assert answer.code == 3 and "budgets e2e/pdb allow no disruption" in answer.text
    assert "2 pinned replicas stay" in answer.text and "moves 1" in answer.text


class TestTables:
    def test_two_stores_share_the_leaders(self, public):
        case = public("tables/pd-two-stores-one-leads")
        files = [case.path(name) for name in ("nodes.csv", "replicas.csv")]
        result = ek.solve(ek.read(files), goals=ek.Goals(level=None, leaders=0.0))
        assert (result.comparison.moves, result.status) == (0, "optimal")
        assert sorted(Counter(result.placement.leader_node.tolist()).values()) == [35, 36]

    def test_leaders_bound_to_zones_are_spread_within_them(self, public):
        case = public("tables/pd-leaders-bound-to-zones")
        cluster = ek.read([case.path(name) for name in ("nodes.csv", "replicas.csv", "rules.toml")])
        placed = ek.solve(cluster, goals=ek.Goals(level=None, leaders=0.0)).placement
        assert sorted(placed.leader_node.tolist()) == list(range(9))
        zone = cluster.topology.domain[0]
        for p, name in enumerate(cluster.partitions.names):
            led = cluster.topology.domain_name(0, zone[placed.leader_node[p]])
            assert led == f"z{name[1]}"
            assert len({*zone[placed.nodes[p]].tolist()}) == 3


@pytest.mark.parametrize(
    ("case", "file", "says"),
    [
        ("kafka/in-sync-beyond-the-replicas", "described.txt", "lines `1 zone-a`"),
        ("rabbitmq/imported-on-three-of-five", "queues.json", '{"rabbit@a": "zone-1"}'),
    ],
)
def test_columns_of_nodes_say_how_racks_are_given(public, case, file, says):
    opened = public(case)
    columns = "NAME   STATUS  ROLES   AGE  VERSION  ZONE\nnode1  Ready   <none>  5d   v1.29.1  a\n"
    (opened.folder / "nodes.txt").write_text(columns)
    answer = opened.run("check", file, str(opened.path("nodes.txt")))
    assert answer.code == 2 and says in answer.text


class TestSessions:
    def test_all_statements_on_ranges_are_read(self, public):
        case = public("cockroach/session-of-several-statements")
        cluster = ek.read(case.path("ranges.txt"))
        assert [*cluster.partitions.names] == ["38", "85"]
        assert cluster.placement.nodes.tolist() == [[0, 1, 2], [0, 1, 3]]
        wanted = ek.read([case.path("ranges.txt"), case.path("zones.txt")]).partitions.replicas
        assert wanted.tolist() == [5, 5]

    def test_tables_of_two_kinds_are_read(self, public):
        case = public("cockroach/session-of-several-statements")
        cluster = ek.read(case.path("both.txt"))
        assert [*cluster.partitions.names] == ["38"]
        assert "region" in cluster.topology.tiers

    def test_settings_and_shards_of_one_session_are_read(self, public):
        case = public("elasticsearch/session-of-the-console")
        cluster = ek.read(case.path("settings-and-shards.txt"))
        assert cluster.nodes.keeps.tolist() == [False, True, True]
        page = ek.read(case.path("page.txt"))
        assert [page.placement.node.tolist().count(n) for n in range(3)] == [3, 3, 4]
        assert "disk" in page.dimensions and (page.nodes.capacity[:, 1] > 4e13).all()

    def test_settings_that_are_put_are_no_second_answer(self, public):
        case = public("elasticsearch/settings-put-and-asked")
        answer = case.run("solve", "session.txt", "--json")
        assert (answer.code, answer.json["moves"]) == (3, 0)
        assert answer.json["broken"] == {"unassigned": 2, "spread": 1}

    @pytest.mark.parametrize(
        ("request_and_body", "left"),
        [
            ("PUT _cluster/settings\n%s\n", 1),
            ('PUT _cluster/settings\n%s\n\n{"acknowledged": true, "persistent": %s}\n', 1),
            ('PUT _cluster/settings\n%s\n{"error": {"type": "x"}, "status": 400}\n', 0),
            ('PUT _cluster/settings\n%s\n{"statusCode": 502, "error": "Bad Gateway"}\n', 0),
            ("curl -X PUT es:9200/_cluster/settings -d'%s'\ncurl: (7) Failed to connect\n", 0),
            ("$ curl -XPUT es:9200/_cluster/settings -H 'Content-Type: a/json' -d '%s'\n", 1),
            ("[me@es ~]# curl -X PUT \"es:9200/_cluster/settings?pretty\" \\\n -d'\n%s\n'\n", 1),
            ("$ curl -XPUT es/_cluster/settings -d '%s'\n{\"acknowledged\": true}\n", 1),
            ("curl --request PUT es:9200/_cluster/settings --data '%s'", 1),
        ],
    )
    @pytest.mark.parametrize("excluded", ['"data-1"', "null"])
    def test_settings_that_are_put_last_count(self, request_and_body, left, excluded):
        row = b"i 0 %b STARTED 1 1kb 1.1.1.%d data-%d\n"
        rows = b"GET _cat/shards\n" + row % (b"p", 1, 1) + row % (b"r", 2, 2)
        asked = b'GET _cluster/settings\n{"persistent": {}, "transient": {}}\n'
        body = f'{{"persistent": {{"cluster.routing.allocation.exclude._name": {excluded}}}}}'
        put = request_and_body.replace("%s", body).encode()
        drained = left if excluded != "null" else 0
        assert (~ek.read(rows + asked + put).nodes.keeps).sum() == drained
        alone = ek.read([rows, put]) if left else ek.read(rows + put)
        assert (~alone.nodes.keeps).sum() == drained
        noted = any("but those that a request puts" in one for one in left_out(alone))
        assert noted == bool(left)

    @pytest.mark.parametrize(
        ("put", "drained"),
        [
            (['{"persistent": {"%s._name": "data-1"}, "transient": {"%s._name": null}}'], 1),
            (['{"transient": {"%s._name": null}, "persistent": {"%s._name": "data-1"}}'], 1),
            (['{"persistent": {"%s._name": "data-1"}, "transient": {"%s._name": ""}}'], 0),
            (['{"persistent": {"%s._name": "data-1"}}', '{"persistent": {"%s": null}}'], 0),
            (['{"persistent": {"%s._name": "data-1"}}', '{"persistent": {"%s.*": null}}'], 0),
            (['{"persistent": {"%s._name": "data-1"}}', '{"transient": {"%s.*": null}}'], 1),
        ],
    )
    def test_null_takes_back_what_was_put_in_the_same_place(self, put, drained):
        rows = (
            b"GET _cat/shards\ni 0 p STARTED 1 1kb 1.1.1.1 data-1\ni 0 r STARTED 1 1kb 1.1.1.2 d\n"
        )
        bodies = [one.replace("%s", "cluster.routing.allocation.exclude") for one in put]
        asked = "".join(f"PUT _cluster/settings\n{one}\n" for one in bodies)
        assert (~ek.read(rows + asked.encode()).nodes.keeps).sum() == drained

    @pytest.mark.parametrize(
        "request_and_body",
        [
            'PUT _cluster/settings\n{"persistent": {"%s": "data-1" // the "old" one\n}}\n',
            'PUT _cluster/settings # {}\n{\n  # it\'s {old}\n  "persistent": {"%s": "data-1"}}\n',
            'PUT _cluster/settings\n{"persistent": /* {"}\n */ {"%s": "data-1"}}\n',
            'curl -XPUT es/_cluster/settings -d "{\\"persistent\\": {\\"%s\\": \\"data-1\\"}}"',
            'C:\\>curl -X PUT es/_cluster/settings -d "{\\"transient\\":{\\"%s\\":\\"data-1\\"}}"',
            '$ curl -XPUT es/_cluster/settings -d \'\n> {"transient": {\n> "%s": "data-1"}}\n> \'',
        ],
    )
    @pytest.mark.parametrize("answer", ["", '\n{"acknowledged": true}\n'])
    def test_bodies_are_read_among_comments_prompts_and_quotes(self, request_and_body, answer):
        rows = b"GET _cat/shards\ni 0 p STARTED 1 1kb 1.1.1.1 data-1\n"
        put = request_and_body.replace("%s", "cluster.routing.allocation.exclude._name") + answer
        for cluster in (ek.read([rows, put.encode()]), ek.read(rows + put.encode())):
            assert (~cluster.nodes.keeps).sum() == 1

    def test_settings_that_are_put_to_indices_are_noted(self):
        rows = b"GET _cat/shards\ni 0 p STARTED 1 1kb 1.1.1.1 data-1\n"
        put = b'PUT i/_settings\n{"index.routing.allocation.exclude._name": "data-1"}\n'
        noted = [one for one in left_out(ek.read(rows + put)) if "that a request puts" in one]
        assert len(noted) == 1 and " i/_settings:" in noted[0]


def test_replicas_that_run_without_a_time_count_as_healthy(public):
    case = public("longhorn/excerpts")
    answer = case.run("solve", "longhorn.json", "--method", "longhorn", "--level", "none", "--json")
    assert "replicas that run without it count as healthy" in answer.err
    assert (answer.code, answer.json["moves"]) == (0, 1)


class TestYamlBehindAPrompt:
    def test_pods_are_read(self, public):
        pytest.importorskip("yaml")
        case = public("kubernetes/yaml-behind-a-prompt")
        answer = case.run("check", "nodes.json", "pods.yaml")
        assert answer.code == 0 and "3 replicas wanted" in answer.text
        assert "a spread of other pods by topology.kubernetes.io/zone" in answer.text

    def test_a_node_of_longhorn_is_read(self, public):
        pytest.importorskip("yaml")
        path = public("kubernetes/yaml-behind-a-prompt").path("longhorn-node.yaml")
        assert [*ek.read(path).nodes.names] == ["kubernetes-node-1/default-disk"]
