"""Outputs as people save and paste them: cut, quoted, appended, coloured, of other tools."""

import json
import tarfile
from zipfile import ZipFile

import numpy as np
import pytest

import evenkeel as ek
from tests.support.clusters import assert_same


def moved(case, *words):
    answer = case.run("solve", *words, "--json")
    return answer.json["moves"], answer


def sizes(case, *names):
    """Return the bytes on each node."""
    cluster = ek.read([case.path(name) for name in names])
    placement, disk = cluster.placement, cluster.dimensions.index("disk")
    size = np.asarray(cluster.partitions.load.voter)[placement.owner, disk]
    held = np.bincount(placement.node, size, len(cluster.nodes))
    return dict(zip(cluster.nodes.names, held.tolist(), strict=True))


class TestKafka:
    def test_backticks_are_no_part_of_names(self, public):
        case = public("kafka/lines-in-backticks")
        cluster = ek.read(case.path("described.txt"))
        assert {*cluster.partitions.names} == {f"yt_gaming_subtitles-{p}" for p in range(6)}
        assert (len(cluster.nodes), case.run("check", "described.txt").code) == (14, 0)

    def test_of_two_descriptions_in_a_session_the_last_counts(self, public):
        case = public("kafka/session-before-and-after")
        answer = case.run("check", "session.txt")
        assert answer.code == 0
        assert "unlike lines on 3 partitions in one file (my-topic-0" in answer.text
        assert "brokers 0, which hold nothing: they count as dead" in answer.text
        cluster, rest = (ek.read(case.path(name)) for name in ("session.txt", "rest.txt"))
        assert [*cluster.nodes.names] == ["0", *rest.nodes.names]
        assert (cluster.placement.node - 1).tolist() == rest.placement.node.tolist()
        drained = case.run("solve", "session.txt", "--drain", "0", "--level", "none", "--json")
        assert (drained.code, drained.json["moves"]) == (0, 0)
        rest = case.run("check", "rest.txt")
        assert rest.code == 0
        assert "proposed assignment" not in rest.text
        assert "running reassignment" not in rest.text

    def test_a_target_that_is_no_broker(self, public):
        case = public("kafka/target-that-never-was")
        answer = case.run("solve", "session.txt", "--level", "none", "-o", "p.json")
        assert answer.code == 3 and "no end of the reassignment of iis-0 while" in answer.text
        assert json.loads(case.written("p.json"))["partitions"] == []

    def test_brokers_by_zookeeper(self, public):
        case = public("kafka/brokers-by-zookeeper")
        assert "announces 50 partitions, 11 follow" in case.run("check", "cut.txt").err
        read = ek.read(case.path("eleven.txt"))
        states = dict(zip(read.nodes.names, read.nodes.alive.tolist(), strict=True))
        assert states == {str(n): n > 1003 for n in range(1001, 1007)}
        answer = case.run("solve", "eleven.txt", "--json")
        assert (answer.code, answer.json["moves"], answer.json["unplaced"]) == (3, 0, 33)

    def test_answers_of_brokers_below_a_description(self, public):
        case = public("kafka/answers-below-a-description")
        moves, answer = moved(case, "session.txt", "--level", "none", "-o", "p.json")
        assert (answer.code, moves) == (0, 1) and "no sign of life" not in answer.text
        [row] = json.loads(case.written("p.json"))["partitions"]
        assert row["partition"] == 1 and {*row["replicas"]} in ({1, 2}, {1, 3})

    @pytest.mark.parametrize(
        ("name", "brokers", "noted"),
        [
            ("described.txt", ("2", "3"), ""),
            ("generated.txt", ("1", "2", "3"), "brokers of the other count as up"),
        ],
    )
    def test_a_prompt_and_blank_lines(self, public, name, brokers, noted):
        case = public("kafka/prompt-of-windows")
        cluster = ek.read(case.path(name))
        assert tuple(cluster.nodes.names) == brokers and cluster.nodes.alive.all()
        assert (len(cluster.partitions), noted in case.run("check", name).text) == (2, True)

    def test_a_topic_that_stands_in_the_head_alone(self, public):
        case = public("kafka/topic-in-the-head-alone")
        answer = case.run("check", "described.txt")
        assert answer.code == 1 and "no sign of life of brokers 1, 3" in answer.text
        assert "nothing can repair 1 partition" in answer.text
        assert moved(case, "indented.txt")[0] == 0

    @pytest.mark.parametrize(
        "name", ["objects.json", "lines.json", "array.json", "each.txt", "prompt.txt"]
    )
    def test_log_dirs_of_all_brokers_in_any_form(self, public, name):
        case = public("kafka/log-dirs-through-jq")
        assert sizes(case, "described.txt", name) == {"1": 7500.0, "2": 7500.0, "3": 0.0}

    @pytest.mark.parametrize("name", ["compose.txt", "mail.txt", "fence.txt", "warning.txt"])
    def test_what_stands_around_lines(self, public, name):
        cluster = ek.read(public("kafka/colours-and-prefixes").path(name))
        topic = "dlee-topic1" if name == "warning.txt" else "orders"
        assert [*cluster.partitions.names] == [f"{topic}-{p}" for p in range(3)]

    @pytest.mark.parametrize(
        ("name", "repeated", "down"),
        [
            ("session.txt", 3, ("102", "103")),
            ("page.txt", 10, ()),  # 102 and 103 lead another topic, which was described before
            ("kcat.txt", 1, ()),
        ],
    )
    def test_the_last_of_several_listings_counts(self, public, name, repeated, down):
        case = public("kafka/listed-before-and-after")
        cluster = ek.read(case.path(name))
        names = cluster.nodes.names
        assert tuple(names[n] for n in np.flatnonzero(~cluster.nodes.alive)) == down
        answer = case.run("check", name)
        partitions = "partition" if repeated == 1 else "partitions"
        assert f"unlike lines on {repeated} {partitions} in one file" in answer.text
        led = {names[n] for n in cluster.placement.leader_node[-repeated:].tolist()}
        assert led == {"101"}

    def test_a_description_behind_what_was_executed_shows_its_end(self, public):
        case = public("kafka/executed-behind-a-description")
        answer = case.run("check", "described-after.txt")
        assert answer.code == 0 and "running reassignment" not in answer.text

    def test_equal_descriptions_are_no_contradiction(self, public):
        case = public("kafka/session-described-twice")
        assert moved(case, "described.txt", "answers.txt", "--level", "5%")[0] == 2

    def test_a_third_broker_gets_its_share_of_topicmappr(self, public):
        case = public("kafka/third-broker-of-topicmappr")
        words = ("--add-nodes", "more.csv", "--level", "5%")
        for floor, wanted in (((), (4, [4, 6, 6])), (("--floor", "5%"), (5, [5, 5, 6]))):
            out = f"{len(floor)}.npz"
            moves, _ = moved(case, "described.txt", *words, *floor, "-o", out)
            placed = ek.read(case.folder / out).placement.node
            assert (moves, sorted(np.bincount(placed).tolist())) == wanted
        for name in ("warnings.txt", "dump.tar.gz"):
            assert len(ek.read(case.path(name)).partitions) == 3

    def test_a_page_of_a_course(self, public):
        case = public("kafka/page-of-a-course")
        moves, answer = moved(case, "page.md", "-o", "p.json")
        assert (moves, answer.code, answer.json["leader_changes"]) == (0, 0, 3)
        elected = json.loads(case.written("p.election.json"))["partitions"]
        assert [one["partition"] for one in elected] == [0, 3, 6]
        moves, answer = moved(case, "outage.md")
        assert (moves, answer.code, answer.json["broken"]) == (0, 4, {"on_dead": 8})


class TestCeph:
    def test_the_same_is_asked_in_two_folders(self, public):
        case = public("ceph/page-from-two-folders")
        answer = case.run("check", "page.md")
        assert answer.code == 0 and "192 partitions · 448 replicas wanted" in answer.text
        assert "more than one state of root@node1# ceph osd dump: the last counts" in answer.text
        page = case.path("page.md").read_text().replace("[root@node1 ~]#", "root@node1:~#")
        page = page.replace("[root@node1 day0003]#", "root@node1:/opt/day0003#")
        assert ek.read(page.encode()).partitions.replicas.sum() == 448

    def test_a_folder_of_a_sosreport(self, public, tmp_path):
        case = public("ceph/folder-of-a-sosreport")
        report = tmp_path / "sosreport.tar"
        with tarfile.open(report, "w") as archive:
            archive.add(case.source / "ceph_mon", "sosreport-juju/sos_commands/ceph_mon")
        for given in (case.source / "ceph_mon", report):
            answer = case.run("solve", str(given), "--json")
            assert (answer.code, answer.json["moves"]) == (0, 0)
            assert "differ" not in answer.err
        assert len(ek.read(report).placement.node) == 207

    def test_a_weight_set_of_the_balancer(self, public):
        case = public("ceph/weight-set-of-the-balancer")
        there = {}
        for name in ("plain", "compat"):
            cluster = ek.read(case.path("osd_dump.txt"), case.path(f"crush_{name}.json"))
            rows = ek.solve(cluster, "ceph_crush").placement.nodes.tolist()
            there[name] = dict(zip(cluster.partitions.names, rows, strict=True))
            level = ek.solve(cluster, "ceph_upmap")
            held = np.bincount(level.placement.node, minlength=6)
            assert (held.min(), held.max()) == (27, 28)
        assert there["plain"] != there["compat"]
        assert there["plain"]["3.28"][:2] == [3, 5] and 4 in there["plain"]["3.27"]
        assert all(5 in there["plain"][f"3.{pg}"] for pg in ("1e", "29", "33", "3e"))

    def test_devices_that_a_dump_lacks_are_named(self, public):
        case = public("ceph/weight-set-of-the-balancer")
        lines = case.path("osd_dump.txt").read_text().splitlines()
        cut = "\n".join(lines[:-4]).encode()
        cluster = ek.read(cut, case.path("crush_plain.json"))
        notes = " ".join(cluster.native.notes)
        assert "that the osd dump does not have count as gone: 2, 3, 4, 5" in notes


class TestElasticsearch:
    def test_columns_that_were_pushed_aside(self, public):
        case = public("elasticsearch/columns-out-of-line")
        moves, answer = moved(case, "shards.txt", "allocation.txt")
        assert (moves, answer.code) == (0, 3)
        full = "Albion (85.9%), Carolyn Trainer (85.9%), Mystique (85.9%)"
        assert f"watermark.low of 85%: {full}; Elasticsearch allocates no" in answer.text
        cluster = ek.read([case.path("shards.txt"), case.path("allocation.txt")])
        assert {*cluster.nodes.names} == {"Albion", "Mystique", "Carolyn Trainer"}
        assert "no room of disks" not in answer.text
        assert "no disk and no shard of logstash" in answer.text

    def test_a_listing_without_what_is_started(self, public):
        moves, answer = moved(public("elasticsearch/without-what-is-started"), "shards.txt")
        assert (moves, answer.code) == (0, 3) and "The listing is filtered" in answer.text

    def test_the_state_in_the_answer_of_a_reroute(self, public):
        case = public("elasticsearch/answer-of-a-reroute")
        cluster = ek.read(case.path("reroute.json"))
        there = dict(zip(cluster.partitions.names, cluster.placement.nodes[:, 0], strict=True))
        names = {name: cluster.nodes.names[n] for name, n in there.items()}
        assert names == {"applogs-test-2024.05.24/0": "ms3", "applogs-test-2024.05.24/1": "ms2"}
        assert moved(case, "reroute.json")[0] == 0

    @pytest.mark.parametrize(
        ("name", "count"),
        [
            ("rows.yaml", 4),
            ("lines.json", 4),
            ("headers.json", 4),
            ("progress.txt", 9),
            ("meter-between-rows.txt", 8),
            ("prompt.txt", 9),
        ],
    )
    def test_other_forms_of_rows(self, public, name, count):
        cluster = ek.read(public("elasticsearch/other-forms-of-rows").path(name))
        assert len(cluster.placement.node) == count

    def test_details_with_blanks(self, public):
        moves, answer = moved(public("elasticsearch/details-with-blanks"), "shards.txt")
        assert (moves, answer.code) == (0, 3) and "allocation of cats/0 failed" in answer.text

    def test_relocations_as_text(self, public):
        case = public("elasticsearch/relocations-as-text")
        assert case.run("check", "shards.txt").code == 0
        moves, _ = moved(case, "shards.txt", "-o", "p.json")
        commands = json.loads(case.written("p.json"))["commands"]
        assert (moves, {of.get("to_node") for one in commands for of in one.values()}) == (
            2, {"psz-ses-02"},
        )  # fmt: skip

    @pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
    def test_diagnostics(self, public, packed):
        case = public("elasticsearch/diagnostics-as-a-zip")
        bundle = case.path("bundle.zip")
        if not packed:
            with ZipFile(bundle) as inside:
                inside.extractall(bundle := case.folder)
        held = ek.read(bundle)
        assert (len(held.nodes), len(held.placement.node)) == (3, 4)
        answer = case.run("solve", str(bundle), "--level", "none", "-o", "p.json")
        commands = json.loads(case.written("p.json"))["commands"]
        places = {
            (of["shard"], of["from_node"], of["to_node"]) for one in commands for of in one.values()
        }
        assert (answer.code, places) == (0, {(0, "node-1", "node-3"), (1, "node-1", "node-2")})

    def test_a_state_without_nodes(self, public):
        case = public("elasticsearch/state-without-nodes")
        assert {*ek.read(case.path("state.json")).nodes.names} == {"id1", "id2"}

    def test_copies_by_node(self, public):
        case = public("elasticsearch/routing-nodes-alone")
        answer = case.run("solve", "state.json", "--json")
        assert (answer.code, answer.json["moves"], answer.json["unplaced"]) == (3, 0, 5)

    def test_sizes_in_gigabytes(self, public):
        case = public("elasticsearch/sizes-in-gigabytes")
        assert (
            "disks of at most 196 bytes" in case.run("check", "shards.txt", "allocation.txt").text
        )


class TestRabbit:
    def test_two_of_five_nodes_hold_nothing(self, public):
        case = public("rabbitmq/five-nodes-three-members")
        moves, answer = moved(case, "queues.json", "status.json")
        assert (moves, answer.json["most_leaders"], answer.json["broken"]) == (6, 1, {})

    def test_a_loop_over_virtual_hosts(self, public):
        case = public("rabbitmq/loop-over-virtual-hosts")
        answer = case.run("solve", "queues.json", "-o", "plan.json", "--json")
        assert (answer.code, answer.json["leader_changes"]) == (0, 2)
        assert "billing" in case.written("plan.sh")

    def test_queues_one_by_one(self, public):
        case = public("rabbitmq/queues-one-by-one")
        for name in ("lines.json", "crlf.json", "session.txt"):
            answer = case.run("solve", name, "--json").json
            assert (answer["moves"], answer["leader_changes"]) == (0, 2)


class TestKubernetes:
    @pytest.mark.parametrize(
        "names",
        [("all.json",), ("all.yaml",), ("nodes.json", "pods.json"),
         ("warned-nodes.json", "warned-pods.json")],
    )  # fmt: skip
    def test_listings_that_were_appended(self, public, names):
        case = public("kubernetes/listings-appended")
        assert case.run("check", *names).code == 1
        moves, answer = moved(case, *names)
        assert (moves, answer.json["broken"]) == (1, {})

    def test_a_dump_of_a_cluster(self, public):
        case = public("kubernetes/dump-of-a-cluster")
        for names in (["dump.json"], ["nodes.json", "all.json"]):
            cluster = ek.read([case.path(name) for name in names])
            assert (len(cluster.nodes), len(cluster.placement.node)) == (2, 2)
        # asked behind cluster-info, of a release that prints a last line
        dump = case.path("dump.json").read_bytes()
        info = b"PS C:\\> kubectl cluster-info\nCoreDNS is running at https://127.0.0.1/kube-dns\n"
        asked = b"\nTo further debug and diagnose, use it.\nPS C:\\> kubectl cluster-info dump\n"
        session = info + asked + dump + b"Cluster info dumped to standard output\nPS C:\\>\n"
        assert len(ek.read(session).placement.node) == 2


class TestTables:
    @pytest.mark.parametrize(
        "names",
        [("psql-nodes.txt", "psql-replicas.txt"), ("mysql-nodes.txt", "mysql-replicas.txt"),
         ("nodes.md", "replicas.md")],
    )  # fmt: skip
    def test_tables_that_are_drawn(self, public, names):
        held = sizes(public("tables/drawn-with-lines"), *names)
        assert held["w1"] > 0.0 and held["w2"] == 0.0

    @pytest.mark.parametrize("name", ["clickhouse", "blocks", "pretty", "duckdb", "polars"])
    def test_tables_in_boxes(self, public, name):
        case = public("tables/drawn-with-boxes")
        words = ("nodes.csv", f"{name}.txt", "--drain", "clickhouse")
        moves, answer = moved(case, *words)
        assert (moves, answer.code) == (2, 0)
        assert len(ek.read(case.path(words[0]), case.path(words[1])).placement.node) == 12

    def test_a_box_without_some_of_its_rows_is_refused(self, public):
        answer = public("tables/drawn-with-boxes").run("check", "nodes.csv", "cut.txt")
        assert answer.code == 2
        assert "cut.txt:11: stands for rows that were left out" in answer.text

    def test_shards_of_several_clusters_on_the_same_hosts(self, public):
        cluster = ek.read(public("tables/drawn-with-boxes").path("posted.txt"))
        assert (len(cluster.nodes), len(cluster.placement.node)) == (7, 13)
        assert sorted(cluster.partitions.group_names) == ["default", "otus2S3R", "otus3S2R"]

    def test_tables_of_a_page_with_blanks_before_units(self, public):
        case = public("tables/tablets-of-a-page")
        words = ("backends.txt", "tablets.txt", "--drain", "10006", "-o", "out.npz")
        moves, answer = moved(case, *words)
        placed = ek.read(case.folder / "out.npz")
        assert (moves, answer.code, placed.nodes.capacity[0, 0]) == (2, 0, 3.525e12)
        assert np.bincount(placed.placement.node).max() == 1

    def test_a_column_of_nodes_alone_is_a_table(self):
        cluster = ek.read(b"node\nn1\nn2\n", b"partition,node\np,n1\n")
        assert cluster.nodes.capacity.tolist() == [[1.0], [1.0]]

    def test_a_spreadsheet_with_commas(self, public):
        case = public("tables/from-a-spreadsheet")
        cluster = ek.read(case.path("nodes.csv"), case.path("replicas.csv"))
        assert cluster.nodes.capacity.tolist() == [[1.5, 1000.0]] * 3
        assert cluster.partitions.load.voter[0].tolist() == [0.5, 10.0]
        assert moved(case, "nodes.jsonl", "replicas.jsonl")[0] == 1

    def test_tables_that_programs_export(self, public):
        case = public("tables/exported")
        assert moved(case, "index-nodes.csv", "index-replicas.csv")[0] == 1

    def test_frames_that_pandas_prints(self, public):
        case = public("tables/printed-by-pandas")
        cluster = ek.read(case.path("nodes.txt"), case.path("replicas.txt"))
        assert (len(cluster.nodes), cluster.placement.node.tolist()) == (2, [0, 0, 1])
        assert "cut.txt:4: stands for rows" in case.run("check", "nodes.txt", "cut.txt").text

    def test_a_table_of_one_column(self, public):
        case = public("tables/citus-one-large-tenant")
        moves, answer = moved(case, "workers.txt", "shards.txt", "--level", "10%")
        assert (moves, answer.code, answer.json["goals_reached"]) == (9, 0, True)

    def test_a_session_of_dsql(self, public):
        case = public("tables/druid-a-replica-in-each-tier")
        words = ("servers.txt", "segments.txt", "--spread", "tier=1", "--level", "5%")
        moves, answer = moved(case, *words)
        assert (moves, answer.json["status"]) == (8, "optimal")

    @pytest.mark.parametrize(
        "names",
        [("nodes.txt", "replicas.txt"), ("sqlcmd-nodes.txt", "sqlcmd-replicas.txt"),
         ("box-nodes.txt", "box-replicas.txt"), ("nodes.txt", "pager.txt"),
         ("expanded.txt", "replicas.txt")],
    )  # fmt: skip
    def test_columns_that_blanks_and_boxes_part(self, public, names):
        case = public("tables/parted-by-blanks")
        assert sizes(case, *names) == {"w1": 11.0, "w2": 0.0}


@pytest.mark.parametrize(
    ("name", "request_", "gone"),
    [
        ("ceph/asked-before-and-after", "$ ceph osd dump -f json", "osd.9"),
        ("kubernetes/asked-before-and-after", "$ kubectl get nodes,pods -o json", "pause-9"),
        ("longhorn/asked-before-and-after", "$ kubectl get -o json all", "n9"),
    ],
)
def test_of_answers_to_the_same_request_the_last_counts(public, name, request_, gone):
    answer = public(name).run("check", "session.txt")
    assert answer.code in (0, 1) and f"more than one state of {request_}: the last" in answer.text
    assert gone not in answer.text


@pytest.mark.parametrize(
    "before",
    [
        "# sent {} to the master\n# on Monday\n\n", "// node 1\n", "+ get it -o json\n",
        "=== all ===\n", "ops@bastion:~/dumps$ sh dump.sh --all\n", "Here is the output:\n",
        "PS C:\\dumps> .\\dump.ps1\n", "[2026-11-03 10:00:00] connecting\n",
        "2026-11-03T10:00:00Z INFO connecting\n", "WARN: old\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "name",
    [
        "kafka/cruise-control-answers", "kafka/admin-client-of-python", "kafka/kcat-json",
        "cockroach/rows-as-json-lines", "elasticsearch/low-watermark",
        "rabbitmq/partition-of-the-network", "longhorn/two-large-replicas-on-one-node",
    ],
)  # fmt: skip
def test_lines_before_json_that_are_none(public, name, before):
    files = [file.read_bytes() for file in public(name).source.glob("*.*json")]
    others = [*public(name).source.glob("*.txt")]
    noisy = [before.encode() + file for file in files]
    assert_same(ek.read([*noisy, *others]), ek.read([*files, *others]))


FENCED = (
    ("kafka/racks-of-three-three-one", "described.txt racks.txt"),
    ("kafka/one-broker-to-three", "session.txt"),
    ("kafka/cruise-control-demoted", "load.json state.json"),
    ("elasticsearch/one-node-holds-most", "shards.txt allocation.txt"),
    ("elasticsearch/answers-in-part", "index.json nodes.json shards.txt"),
    ("ceph/full-under-two-roots", "crush.txt osd_df.txt osd_dump.txt osd_tree.txt"),
    ("cockroach/node-drains", "nodes.csv ranges.csv zones.csv"),
    ("cockroach/partitions-by-list", "ranges.csv status.csv zones.sql"),
)


class TestFences:
    """Pages of Markdown, in which outputs stand between fences and prose."""

    @pytest.mark.parametrize(("name", "names"), FENCED)
    def test_prose_around_them_is_passed_over(self, public, name, names, tmp_path):
        paths = [public(name).path(one) for one in names.split()]
        for path in paths:
            page = f"## Before\n\nHere is the output, as `asked`:\n\n```text\n{path.read_text()}\n"
            (tmp_path / path.with_suffix(".md").name).write_text(f"{page}```\n\nIt's 3 of 5.\n")
        page = ek.read(*sorted(tmp_path.iterdir()))
        plain = ek.read(*paths)
        assert_same(page.replace(native=plain.native), plain)

    def test_outputs_in_items_of_lists_are_read(self, public):
        case = public("ceph/page-of-maps")
        answer = case.run("solve", "page.md", "crush.txt", "--json")
        assert (answer.code, answer.json["moves"]) == (
            0,
            0,
        ) and "already there: 10.e" in answer.text
        case = public("elasticsearch/page-of-a-handbook")
        assert moved(case, "page.md")[0] == 0
        assert moved(case, "page.md", "--drain", "es-node-3")[0] == 2

    @pytest.mark.parametrize("where", ["", "```\n"])
    def test_what_may_be_data_between_them_stays(self, public, where):
        case = public("kafka/racks-of-three-three-one")
        lines = case.path("described.txt").read_text().splitlines(keepends=True)
        page = f"{''.join(lines[:5])}```\nText\n```\n{where}{''.join(lines[5:])}"
        names = ek.read(page.encode()).partitions.names
        assert [*names] == [*ek.read(case.path("described.txt")).partitions.names]
