"""What ``evenkeel check`` says of files as people saved, pasted and posted them."""

import pytest

DESCRIBE = "kafka-topics.sh --describe"
NO_DATA = "is a message of a tool, and no data"
OF_RANGES = "crdb_internal.ranges"
OF_REPLICAS = "replicas.longhorn.io"
OF_RESOURCES = "get -o json nodes.longhorn.io,volumes.longhorn.io"
OF_SHARDS = "GET /collections/NAME/cluster of each peer"
RING = "object.ring.gz"

REFUSED = {
    "ceph/pools-and-rules-listed": {
        "pools.json rules.json tree.json": "give ceph osd dump … list rules of Ceph's CRUSH map",
    },
    "cockroach/reports-of-a-node": {"ranges.json": OF_RANGES, "r3.json": OF_RANGES},
    "cockroach/status-of-1-0": {"testing_ranges.txt": OF_RANGES},
    "elasticsearch/answers-of-one-session": {
        "cut.txt": "cut.txt:3: has no column node",
        "indices.txt": "_cat/indices lists no node: give _cat/shards",
        "cat-nodes.txt": "needs the answer of _cat/shards",
    },
    "elasticsearch/chosen-columns-without-header": {"shards.txt": "?v"},
    "elasticsearch/copied-by-way-of-a-spreadsheet": {
        "commas.csv": "format=json",
        "rows.json health.json": "_cluster/health lists",
    },
    "elasticsearch/decommission-of-two": {
        "rows-without-prirep.json": "[0].prirep: must be p, r or s",
    },
    "elasticsearch/error-in-place-of-rows": {
        "error.json": "answered with an error",
        "headless.txt": "?v",
    },
    "elasticsearch/messages-in-place-of-answers": {
        "page.json": NO_DATA, "curl.json": NO_DATA, "aws.json": NO_DATA, "topics.txt": NO_DATA,
        "kubectl.json": NO_DATA, "none.json": NO_DATA, "refused.yaml": NO_DATA,
        "rabbit.json": NO_DATA, "middle.json": "begins in the middle of JSON",
    },
    "elasticsearch/session-of-the-console": {
        "two-requests.txt": "two-requests.txt:4: begins another answer of shards",
        "free-space-only.txt": "needs two of the columns disk.avail, disk.total, disk.used",
    },
    "elasticsearch/state-without-nodes": {"nodes.json shards.json": "is already the name of"},
    "helix/answers-and-logs": {
        "log.txt": "zkCli.sh", "assignment.json": "is an assignment alone",
    },
    "kafka/answers-of-consoles": {"ids.txt": DESCRIBE},
    "kafka/cruise-control-own-state": {"state.json": "kafka_cluster_state"},
    "kafka/cruise-control-proposals": {"state.json load.json proposals.json": "--target"},
    "kafka/cruise-control-text": {"load.txt": "json=true"},
    "kafka/listings-of-others": {
        "python.txt": "python.txt:7: lists 4 of its 10 partitions",
        "nothing.txt": "lists no topic",
        "kcat.txt": "lists 0 of its 1 partitions",
        "elision.txt": "announces 1000 partitions, 3 follow",
    },
    "kafka/log-of-a-controller": {
        "log.txt": f"is the log of a controller, with changes of metadata: give what {DESCRIBE}",
        "records.json": f"give what {DESCRIBE}",
    },
    "kafka/rpk-table": {"described.txt": f"names no topic … {DESCRIBE}"},
    "kafka/session-described-twice": {"cut.txt": "cut.txt:7: is cut off"},
    "kafka/session-with-verify": {"cut.txt verify.txt": "cut.txt:13: "},
    "kafka/strimzi-broker-load": {"brokerLoad.json": "kafka_cluster_state"},
    "kafka/third-broker-of-topicmappr": {"topicmappr.txt": "is what topicmappr prints"},
    "kubernetes/printed-for-people": {
        "labels.txt": "lists no pod", "described.txt": "-o json",
    },
    "kubernetes/rows-and-other-answers": {
        "rancher.json": "-o json", "zones.txt": "lists no pod",
        "events.txt": "-o json", "top.txt": "-o json", "deploy.json": "-o json",
    },
    "longhorn/excerpts": {"table-and-yaml.txt": OF_RESOURCES, "snipped.txt": OF_RESOURCES},
    "longhorn/printed-for-people": {
        "volumes.txt": OF_REPLICAS, "nodes.txt": OF_REPLICAS,
    },
    "qdrant/other-answers": {
        "first.json": OF_SHARDS, "script.json": OF_SHARDS,
        "client.txt": OF_SHARDS, "collections.json": OF_SHARDS,
        "disabled.json": "without cluster mode",
        "error.json": "an error of a request to Qdrant",
        "level-2.json": "ask for it with details_level=3",
    },
    "rabbitmq/listing-of-messages": {
        "queues.txt": "without members … rabbitmqctl list_queues name type leader members online",
    },
    "rabbitmq/loop-over-virtual-hosts": {"quiet.json": "read one virtual host at a time"},
    "rabbitmq/outputs-of-erlang": {"eval.txt": "--formatter json"},
    "rabbitmq/status-of-old-releases": {"erlang.txt": "needs rabbitmqctl list_queues"},
    "rabbitmq/queue-asked-for-by-name": {"no-name.txt": "is missing: list all with rabbitmqctl"},
    "swift/builder-as-text": {"builder.txt": RING},
    "swift/other-outputs": {"nodes.txt": RING, "dispersion.txt": RING},
    "tables/answers-of-weaviate": {"nodes.json": "Weaviate answers of its nodes"},
    "tables/exported": {
        "totals.csv replicas.csv": "the total of the rows above",
        "latin.csv replicas.csv": "save it as UTF-8",
        "workbook.xlsx replicas.csv": "save each sheet as CSV",
        "both.json replicas.csv": "needs one table of replicas … there are 2",
    },
    "tables/outputs-of-other-systems": {
        "nodetool.txt": "nodetool … two tables",
        "redis.txt": "redis-cli … two tables",
        "hdfs.txt": "HDFS … two tables",
        "mongo.txt": "MongoDB … two tables",
    },
    "tables/regions-of-show-table": {
        "regions.txt": "tikv_region_peers", "drawn.txt": "peers but not their stores",
    },
}  # fmt: skip
"""What is said of files that are refused, by case and files; an ellipsis parts several texts."""

BROKEN = {
    "cockroach/statements-run-at-once": {
        "before.md nodes.csv": "require 2 … partition 34 · node 4 · asked region=us-east … "
        "partition 34 · node 8",
    },
    "elasticsearch/behind-a-forwarded-port": {
        "session.txt": "copies of loja2/0 relocate or initialise … partition loja2/1",
    },
    "elasticsearch/failed-allocations-by-column": {
        "session.txt": "unassigned 2 … allocation of jinjianghotel_db_pro/1, jinjianghotel_db_pro/2"
        " failed … dlog-01 (3 of 241)",
    },
    "elasticsearch/full-node-with-dots": {
        "page.md": "page.md:31: they are not counted … stage: instance-1 (99.7%) … unassigned 1",
    },
    "elasticsearch/session-by-full-addresses": {
        "session.txt shards.txt": "no attributes of nodes … testelk-02 may hold no shard … "
        "not kept 3",
    },
    "elasticsearch/answers-of-one-session": {
        "shards.txt allocation.txt":
            "no disk and no shard of Hoder … Sphinxor (2 of 5) … unassigned 2",
    },
    "elasticsearch/columns-that-were-chosen": {"shards.txt allocation.txt": "es-hot-2 (86.0%)"},
    "elasticsearch/nodes-stats": {"shards.json nodes.json stats.json": "n2 (95.0%)"},
    "kafka/admin-client-of-python": {"topics.json": "not alive: 3 … audit-0 (on 3)"},
    "kafka/cruise-control-demoted": {"state.json load.json": "a demotion of brokers 2"},
    "kafka/kcat-text": {"kcat.txt": "not alive: 6 … lost-0 (on 6)"},
    "kafka/listed-by-a-service-check": {
        "found.txt": "the listing is filtered … not alive: 1 … sjqxBeforeTopic-0",
    },
    "kafka/listings-of-others": {
        "rpk-offline.txt":
            "no sign of life of brokers 0, … 3 nodes, 2 alive · 2 partitions · 6 replicas",
    },
    "kafka/lower-case-of-kafka-08": {"listed.txt": "not alive: 1"},
    "kafka/missing-broker-of-three": {"described.txt": "no sign of life of brokers 1003"},
    "kafka/page-with-tags": {"described.txt": "testSource-1 (on 2)"},
    "kafka/pasted-with-wrapped-lines": {
        "described.txt": "brokers 1001, 1002, 1003 … nothing can repair 3 partitions now",
    },
    "kafka/racks-of-api-versions": {"described.txt api.txt": "t-0 · rack eu-west-1a"},
    "kafka/unavailable-partitions": {
        "described.txt":
            "the listing is filtered … not alive: 6 … a-3 (on 5, 6), b-0 (on 6)",
    },
    "longhorn/faulted-volume": {"longhorn.json": "✗ no hard rule is … pvc-f (on"},
    "longhorn/printed-for-people": {"volumes.json": "1 node, 1 alive … unassigned 2"},
    "longhorn/columns-of-a-runbook": {
        "session.txt": "stopped long ago … not alive: worker-3/disk of worker-3 · 2 replicas on",
    },
    "longhorn/tables-of-replicas": {
        "session.txt": "3 nodes, 3 alive · 3 partitions · 9 replicas … unassigned 1",
    },
    "nats/follower-known-by-its-identifier": {
        "jsz.json": "✗ no hard rule is broken, but no live … my-stream-replicated (on",
    },
    "nats/reports-for-people": {
        "report.txt": "4 nodes, 3 alive · 3 partitions · 7 replicas … not alive: n3 · 1 replica",
        "info.txt": "3 nodes, 2 alive · 1 partition · 3 replicas … not alive: n3-c1 · 1 replica",
        "report.txt servers.txt": "5 nodes, 4 alive … not alive: n3 · 1 replica",
        "session.txt": "5 nodes, 4 alive … not alive: n3 · 1 replica",
    },
    "nats/two-replicas-one-dead": {
        "info.json servers.txt":
            "aaa (on a_1, a_2) … no tags of 2 servers (a_1, a_3) … nothing can repair 1 partition",
    },
    "qdrant/transfer-to-itself": {
        "wiki@0.json": "being copied; they are left alone (wiki/0) … "
        "✗ no hard rule is broken, but no live replica surely has all data of 1 partition",
    },
    "rabbitmq/banner-without-a-blank": {
        "status.txt": "r3@localhost, online for no queue … 3 nodes, 2 alive · 1 partition",
    },
    "rabbitmq/quorum-status-of-a-crash": {
        "status.txt": "3 nodes, 1 alive · 1 partition · 3 replicas … stays as it is",
    },
    "rabbitmq/quorum-status-without-a-leader": {
        "status.txt": "3 nodes, 1 alive · 1 partition · 3 replicas … stays as it is … qq1 (on",
    },
    "rabbitmq/quorum-status": {"status.txt": "not alive: rabbit@node-3 · 1 replica"},
    "rabbitmq/status-of-old-releases": {
        "status.txt queues.txt": "not alive: rabbit@rabbitmq-1 · 1 replica",
    },
    "swift/builder-with-a-device-removed": {
        "object.builder": "an overload of 10%, which is not kept … not kept 128",
    },
    "tables/exported": {"null-nodes.csv null-replicas.csv": "no value of node in 1 row"},
    "tables/printed-by-other-systems": {
        "tidb.txt": "by STATUS: 3385 on 5 … PEER_ID … 4 partitions · 12 replicas … leaders 2.2500",
    },
    "tables/segments-of-greenplum": {
        "segments.txt": "by status: 4 on sdw3 … the coordinator … 3 nodes, 3 alive · 6 partitions",
    },
    "tables/starrocks-replica-is-dead": {
        "backends.txt status.txt": "Status, IsBad: 29502429 on 10007 … 5 alive … unassigned 1",
        "status.txt": "all alive but for those out of service … 4 alive … not alive: 10007",
    },
}  # fmt: skip
"""The same of files in which a hard rule is broken, or a partition is unavailable."""

SOUND = {
    "cockroach/statements-run-at-once": {
        "session.md nodes.csv": "9 nodes, 9 alive · 3 partitions · 9 replicas",
    },
    "elasticsearch/answers-with-comments": {
        "shards.txt allocation.txt": "no rows of all copies of uecent-20200622/0",
        "page.txt": "es-node3 (3 of 17)",
    },
    "elasticsearch/copied-by-way-of-a-spreadsheet": {
        "tabs.txt": "", "rows.json nodes.txt": "no attributes of nodes",
    },
    "elasticsearch/pages-of-shards": {
        "shards.json": "one page of _list/shards … 4 replicas",
        "shards.txt": "one page of _list/shards … 4 replicas",
    },
    "elasticsearch/pasted-from-the-console": {"shards.txt": "2 nodes, 2 alive"},
    "elasticsearch/session-of-the-console": {
        "twice.txt": "more than one state of shards by _cat/shards: … 1 partition",
    },
    "kafka/answers-of-consoles": {
        "kafkactl.json": "only addresses of the leaders of orders … 2 partitions · 4 replicas",
        "kafka-ui.json": "2 nodes, 2 alive · 1 partition · 2 replicas … leaders 2.0000",
        "rest.json": "2 nodes, 2 alive · 1 partition · 2 replicas … leaders 2.0000",
        "redpanda.json": "2 nodes, 2 alive · 1 partition · 2 replicas … leaders 2.0000",
        "akhq.json": "2 nodes, 2 alive · 1 partition · 2 replicas … leaders 2.0000",
    },
    "kafka/cruise-control-dead-disk": {"state.json load.json": "/d2 (dead disk) on broker 3"},
    "kafka/cruise-control-no-capacities": {
        "state.json load.json": "disk and network_in and network_out … -1",
    },
    "kafka/executed-behind-a-description": {
        "session.txt": "a running reassignment of 2 partitions",
        "kafka-3.txt": "a running reassignment of 2 partitions",
    },
    "kafka/execute-output": {"kafka2.txt": "a running reassignment of 2 partitions"},
    "kafka/generated-assignments": {"generated.txt": "6 nodes, 6 alive … --target"},
    "kafka/generated-over-several-lines": {"generated.txt": "4 nodes, 4 alive … proposed"},
    "kafka/in-sync-beyond-the-replicas": {"described.txt": "orders-1 (4)"},
    "kafka/kcat-json": {"kcat.json": "3 nodes, 3 alive"},
    "kafka/listings-of-others": {
        "topicctl.txt":
            "racks in a column of … 9 nodes, 9 alive · 3 partitions · 9 replicas … leaders 3.0000",
        "zookeeper.txt": "3 nodes, 3 alive · 3 partitions · 6 replicas … leaders 1.0000",
        "sheet.csv": "3 nodes, 3 alive · 3 partitions · 6 replicas … leaders 2.0000",
        "kaf.txt": "3 nodes, 3 alive · 3 partitions · 9 replicas … leaders 1.0000",
        "script.txt": "2 nodes, 2 alive · 3 partitions · 5 replicas … leaders 1.3333",
        "rpk-partitions.txt":
            "namespaces that Kafka's tools do not move, kafka_internal: … "
            "3 nodes, 3 alive · 4 partitions · 8 replicas",
        "rpk-disabled.txt": "no leaders of … bar-2, foo-0 … disabled: bar-1",
        "rpk-session.txt brokers.txt": "addresses of the leaders of audit … 4 nodes, 4 alive",
        "get-twice.txt": "4 nodes, 4 alive · 3 partitions · 6 replicas … leaders 1.3333",
    },
    "kafka/log-dirs-behind-a-description": {"session.txt": "8 partitions … disk 1.0000"},
    "kafka/log-dirs-listed-twice": {
        "topics.txt logdirs.txt":
            "state of log directories of broker 1, log directories of broker 2 … 93.8%",
    },
    "kafka/outputs-of-other-clients": {
        "rpk.txt": "3 nodes, 3 alive · 8 partitions · 24 replicas … leaders 1.8750",
        "ansible.json": "2 nodes, 2 alive · 2 partitions · 4 replicas … leaders 1.0000",
        "ccloud.txt": "4 nodes, 4 alive · 6 partitions · 18 replicas … leaders 1.3333",
    },
    "kafka/pools-of-brokers": {
        "described.txt racks.json": "no sign of life of brokers 100, 101 … --add-nodes",
    },
    "kafka/quoted-with-backslashes": {"page.txt": "3 nodes, 3 alive · 3 partitions"},
    "kafka/session-described-twice": {"session.txt": ""},
    "kafka/session-with-verify": {
        "described.txt verify.txt": "a running reassignment of 2 partitions",
    },
    "kafka/topic-marked-for-deletion": {
        "described.txt": "a mark of deletion on topics gone … 2 partitions",
    },
    "kafka/utf-16-of-powershell": {"described.txt": "3 nodes, 3 alive · 3 partitions"},
    "kafka/verified-after-generate": {
        "session.txt":
            "4 nodes, 4 alive … reassignment of 5 partitions (streaming_ma30_sdc-0",
    },
    "kafka/verified-and-complete": {"described.txt verify.txt": "3 nodes, 3 alive"},
    "kubernetes/dump-of-a-cluster": {
        "nodes.json none.json": "nothing that is placed: it is in kubectl get nodes,pods",
        "nodes-of-podset.json podset.json":
            "operators make the pods of default/StrimziPodSet",
    },
    "kubernetes/nodes-before-names": {
        "info.txt": "job6, job7: they stay … 3 nodes, 3 alive · 1 partition · 2 replicas",
    },
    "kubernetes/printed-for-people": {
        "wide.txt": "no nodes: … 1 node, 1 alive · 1 partition · 2 replicas",
        "columns.txt": "no nodes: … 2 nodes, 2 alive · 1 partition · 3 replicas",
        "wide.txt labels.txt": "on nodes that are not listed: default/pause-0 on zbw-0.211",
    },
    "kubernetes/rows-and-other-answers": {
        "pods.txt": "3 nodes, 3 alive · 2 partitions · 4 replicas",
        "zones.txt pods.txt": "3 nodes, 3 alive",
    },
    "longhorn/answers-of-the-api": {
        "degraded.json": "no nodes: those … 1 volume with failed replicas … 3 nodes, 3 alive",
    },
    "nats/answer-of-the-first-releases": {
        "jetstream.json": "(0 of 1 on nats02)",
    },
    "nats/report-with-boxes": {
        "report.txt": "nats server request jetstream --all … 2 nodes, 2 alive · 0 partitions",
    },
    "nats/inaccessible-stream": {
        "session.txt": "(events): their servers are down … 6 nodes, 3 alive · 4 partitions",
    },
    "tables/headings-of-others": {
        "brokers.csv placement.csv": "2 nodes, 2 alive · 2 partitions … bytes 2.0000 20.0%",
    },
    "tables/exported": {"both.json": "2 nodes, 2 alive · 1 partition · 1 replica"},
    "tables/lists-of-nodes": {
        "nodes.csv list.csv": "3 nodes, 3 alive · 3 partitions · 6 replicas … 35.0%",
        "columns.json list.csv": "3 nodes, 3 alive · 3 partitions · 6 replicas … 35.0%",
        "by-name.json list.csv": "3 nodes, 3 alive · 3 partitions · 6 replicas … 35.0%",
        "split.json arrays.json": "3 nodes, 3 alive · 3 partitions · 6 replicas … 35.0%",
        "nodes.csv braces.csv": "3 nodes, 3 alive · 3 partitions · 6 replicas … 35.0%",
    },
    "qdrant/peers-alone": {"cluster.json": f"of {OF_SHARDS}"},
    "nats/reports-for-people": {
        "ascii.txt": "3 nodes, 3 alive · 3 partitions · 9 replicas … leaders 2.0000",
    },
    "nats/trace-of-a-report": {"placement.txt": "2 nodes, 2 alive · 2 partitions · 4 replicas"},
    "nats/asked-before-and-after": {
        "session.txt": "more than one state of streams of $G: … not alive: n3 · 0 replicas",
        "stream.txt": "more than one state of stream ORDERS: … 1 partition · 3 replicas",
    },
    "qdrant/asked-before-and-after": {
        "session.txt":
            "more than one state of peers, shards of demo … copied; they are left alone (demo/1) "
            "… left alone (demo/1, demo/2) … 3 nodes, 3 alive",
        "two-pods.txt": "nothing that is placed … 3 nodes, 3 alive",
    },
    "rabbitmq/asked-before-and-after": {
        "session.txt": "more than one state of queues of /: … 2 partitions · 8 replicas",
        "hosts.txt": "3 nodes, 3 alive · 2 partitions · 6 replicas",
    },
    "qdrant/peers-without-raft": {"cluster.json demo.json": "3 nodes, 3 alive · 2 partitions"},
    "rabbitmq/lines-within-cells": {
        "queues.txt": "(1 classic): … 3 nodes, 3 alive · 2 partitions · 6 replicas",
    },
    "rabbitmq/output-for-people": {
        "queues.txt": "no types of queues … 3 nodes, 3 alive · 1 partition · 3 replicas",
        "boxes.txt": "3 nodes, 3 alive · 2 partitions · 5 replicas … leaders 1.5000",
        "admin.txt": "3 nodes, 3 alive · 1 partition · 3 replicas",
        "beside-classic.txt": "1 classic … 3 nodes, 3 alive · 1 partition · 3 replicas",
        "two-hosts.txt": "2 nodes, 2 alive · 2 partitions · 4 replicas",
        "session.txt": "4 nodes, 4 alive · 2 partitions · 6 replicas … leaders 4.0000",
    },
    "rabbitmq/outputs-of-erlang": {
        "erlang.txt": "3 nodes, 3 alive · 1 partition · 3 replicas",
        "queues.csv": "3 nodes, 3 alive · 1 partition · 3 replicas",
        "tabs.txt": "3 nodes, 3 alive · 1 partition · 3 replicas",
    },
    "rabbitmq/queue-asked-for-by-name": {"two-fields.txt": "1 partition · 3 replicas"},
    "rabbitmq/row-without-a-header": {"row.txt": "3 nodes, 3 alive · 1 partition · 3 replicas"},
    "rabbitmq/status-of-old-releases": {
        "queues.json zones.txt": "3 nodes, 3 alive · 1 partition · 3 replicas",
    },
    "rabbitmq/queues-one-by-one": {"queue.json": ""},
    "tables/outputs-of-other-systems": {
        "citus.csv": "no table of nodes … nothing that is read in shard_name … 2 nodes, 2 alive",
        "solr.json": "2 nodes, 2 alive · 1 partition · 1 replica wanted",
    },
    "tables/printed-by-other-systems": {
        "vitess.txt": "12 nodes, 12 alive · 4 partitions · 12 replicas",
        "hbase.txt": "2 nodes, 2 alive · 10 partitions · 10 replicas",
        "starrocks.txt": "2 nodes, 2 alive · 2 partitions · 4 replicas",
        "solr.csv": "2 nodes, 2 alive · 2 partitions · 4 replicas … leaders 2.0000",
    },
    "tables/answers-of-sql": {"crate.json": "2 nodes, 2 alive · 2 partitions · 4 replicas"},
    "tables/nomad-client-joins": {
        "nodes.txt allocs.txt": "rows of tasks that are no more … 4 nodes, 4 alive · 3 partitions",
    },
    "tables/swarm-node-joins": {
        "nodes.txt history.txt": "rows of tasks that are no more … 5 nodes, 5 alive · 5 partitions",
    },
    "tables/tablets-of-scylla": {
        "tablets.txt": "session, stage … 3 nodes, 3 alive · 16 partitions · 32 replicas",
        "renamed.txt": "3 nodes, 3 alive · 16 partitions · 32 replicas",
    },
    "tables/tablets-of-yugabyte": {
        "tablets.txt": "3 nodes, 3 alive · 3 partitions · 9 replicas … leaders 3.0000",
    },
    "tables/printed-by-crash": {
        "regions.txt": "2 nodes, 2 alive · 2 partitions · 3 replicas … leaders 2.0000",
        "shards.txt": "2 nodes, 2 alive · 2 partitions · 4 replicas … leaders 2.0000",
        "stores.txt replicas.txt": "3 nodes, 3 alive · 2 partitions · 4 replicas",
    },
}  # fmt: skip
"""The same of files in which neither is."""


def rows(table):
    return [(case, files, says) for case, said in table.items() for files, says in said.items()]


@pytest.mark.parametrize(
    ("code", "case", "files", "says"),
    [
        (code, *row)
        for code, table in ((2, REFUSED), (1, BROKEN), (0, SOUND))
        for row in rows(table)
    ],
)
def test_what_is_said_of_files(public, code, case, files, says):
    answer = public(case).run("check", *files.split())
    assert answer.code == code, answer.text
    assert [one for one in says.split(" … ") if one not in answer.text] == []
    filtered = "the listing is filtered"
    assert (filtered in answer.text) == (filtered in says)


@pytest.mark.parametrize(
    ("case", "files", "solved", "checked"),
    [
        ("ceph/pool-beyond-its-rule", "osd_dump.txt crush.txt",
         "Nothing is judged: all 512 partitions are left alone.",
         (1, "✗ nothing is judged: all 512 partitions are left alone")),
        ("kafka/executed-behind-a-description", "session.txt",
         "Nothing is decided: all 2 partitions are left alone.",
         (0, "✓ no hard rule is broken")),
        ("rabbitmq/classic-queues-alone", "queues.json",
         "Nothing is decided: no partition was read that may be placed.",
         (0, "✓ no hard rule is broken")),
    ],
)  # fmt: skip
def test_files_of_which_nothing_can_be_decided(public, case, files, solved, checked):
    case = public(case)
    answer = case.run("solve", *files.split(), "--json")
    assert (answer.json["status"], answer.json["message"]) == ("feasible", solved)
    answer = case.run("check", *files.split())
    assert (answer.code, answer.text.startswith(checked[1])) == (checked[0], True)
    answer = case.run("plan", *files.split())
    assert (answer.code, f"! {solved[0].lower()}{solved[1:-1]}" in answer.text) == (0, True)
