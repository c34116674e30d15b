"""Texts for people, in which nothing may be dropped, mixed up or invented in silence."""

import json
import time

import pytest

import evenkeel as ek
from evenkeel.systems import printed

MEMBERS = "[rabbit@a, rabbit@b]"
REST = [
    {"topic_name": "o", "partition_id": p, "broker_id": b, "is_leader": p == b, "is_in_sync": True}
    for p in (1, 2) for b in (1, 2)
]  # fmt: skip
ADMIN = {"partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1]}
TITLES = "name\ttype\tleader\tmembers\n"
NODES = "node,cap_x\na,10\nb,10\nc,10\n"

SHARDS = (
    "index shard prirep state docs store ip node\ni 0 p STARTED 1 1kb 10.0.0.1 es-1\n"
    "i 0 r STARTED 1 1kb 10.0.0.2 es-2\ni 1 p STARTED 1 1kb 10.0.0.1 es-1\n"
)

READ = {
    "numbers of brokers and partitions alike": (
        "kafka", [json.dumps({"data": REST})],
        {"o-1": ("1", "2"), "o-2": ("1", "2")},
    ),
    "a cell of a topic left empty": (
        "kafka", ["| Topic | Partition | Leader | Replicas |\n|-|-|-|-|\n| o | 0 | 1 | 1,2 |\n"
                  "| | 1 | 2 | 2,1 |\n"],
        {"o-0": ("1", "2"), "o-1": ("2", "1")},
    ),
    "replicas as a text": (
        "kafka", ['[{"topic":"o","partition":0,"leader":1,"replicas":"1,2","isr":[1,2]}]'],
        {"o-0": ("1", "2")},
    ),
    "a topic with other numbers": (
        "kafka",
        [json.dumps({"topic": "o", "id": 4, "replicas": [1, 2, 3], "partitions": [ADMIN]})],
        {"o-0": ("1", "2")},
    ),
    "a number of brokers": (
        "kafka", [json.dumps({"brokers": 3, "topics": [{"topic": "o", "partitions": [ADMIN]}]})],
        {"o-0": ("1", "2")},
    ),
    "sentences before a table": (
        "kafka", [' topic "a" with 1 partitions:\n'
                  "  partition 0, leader 1, replicas: 1,2, isrs: 1,2\n"
                  "\nName: o\nPartition  Leader  Replicas\n0  1  [1 2]\n"],
        {"a-0": ("1", "2"), "o-0": ("1", "2")},
    ),
    "a blank line between rows": (
        "kafka", ["Name: o\nPartition  Leader  Replicas\n0  1  [1 2]\n\n1  2  [2 1]\n\nName  x\n"],
        {"o-0": ("1", "2"), "o-1": ("2", "1")},
    ),
    "a leader for whom a dash stands": (
        "kafka", ["Topic: o\tPartition: 0\tLeader: -\tReplicas: 1,2\tIsr: 1\n"],
        {"o-0": ("1", "2")},
    ),
    "a shell on Windows": (
        "cockroach",
        [" range_id | replicas | lease_holder\r\n----------+----------+------\r\n"
         "        7 | {1,2}    |            1\r\n(1 row)\r\n",
         " id | is_live | locality\r\n----+---------+-----\r\n  1 | true    | az=a\r\n"
         "  2 | true    | az=b\r\n(2 rows)\r\n"],
        {"7": ("1", "2")},
    ),
    "two hosts without titles": (
        "rabbitmq", [f"Listing queues for vhost a ...\nq1 quorum rabbit@a {MEMBERS}\n"
                     f"Listing queues for vhost b ...\nq2 quorum rabbit@b {MEMBERS}\n"],
        {"a/q1": ("rabbit@a", "rabbit@b"), "b/q2": ("rabbit@a", "rabbit@b")},
    ),
    "names like prompts, and a blank line": (
        "rabbitmq", [f"{TITLES}q\tquorum\trabbit@a\t{MEMBERS}\n\nl%\tquorum\trabbit@a\t{MEMBERS}\n"
                     f"o#rabbitmq\tquorum\trabbit@a\t{MEMBERS}\n"],
        dict.fromkeys(("q", "l%", "o#rabbitmq"), ("rabbit@a", "rabbit@b")),
    ),
    "hosts of the commands": (
        "rabbitmq", [f"$ rabbitmqctl list_queues -p b name type leader members\n{TITLES}"
                     f"q\tquorum\trabbit@a\t{MEMBERS}\n"
                     f"$ rabbitmqctl list_queues -q -p c name type leader members\n{TITLES}"
                     f"q\tquorum\trabbit@a\t{MEMBERS}\n"],
        dict.fromkeys(("b/q", "c/q"), ("rabbit@a", "rabbit@b")),
    ),
    "lines that end as on Windows": (
        "rabbitmq", [f"Listing queues for vhost a ...\n{TITLES}q\tquorum\trabbit@a\t{MEMBERS}\n"
                     .replace("\n", "\r\n")],
        {"q": ("rabbit@a", "rabbit@b")},
    ),
    "quotes of Erlang": (
        "rabbitmq", ["[[{name,<<\"it's\">>},{type,quorum},{leader,'rabbit@a'},"
                     "{members,['rabbit@a','rabbit@b']}]]"],
        {"it's": ("rabbit@a", "rabbit@b")},
    ),
    "a box behind a blank line": (
        "nats", ["┌────────┬─────────┬───────┬──────────┐\n"
                 "│ Stream │ Storage │ Bytes │ Replicas │\n"
                 "├────────┼─────────┼───────┼──────────┤\n"
                 "│ s      │ File    │ 1 MiB │ a*, b    │\n"
                 "└────────┴─────────┴───────┴──────────┘\n\n"
                 "┌────────────────────┐\n│ Replication Report │\n├────────┬───────────┤\n"
                 "│ Stream │ Source    │\n├────────┼───────────┤\n│ s      │ t         │\n"
                 "└────────┴───────────┘\n"],
        {"s": ("a", "b")},
    ),
    "a consumer behind its stream": (
        "nats", ["Information for Key-Value Store Bucket s created 2021\n\nCluster Information:\n\n"
                 "  Leader: a\n  Replica: b, current, seen 1s ago\n\n"
                 "Information for Consumer s > c created 2021\n\nCluster Information:\n\n"
                 "  Leader: d\n  Replica: e, current, seen 1s ago\n"],
        {"KV_s": ("a", "b")},
    ),
    "rows by number with names of their own": (
        "tables", [NODES, json.dumps({str(i): {"group": "g", "index": 0, "node": node}
                                      for i, node in enumerate("abc")})],
        {"g-0": ("a", "b", "c")},
    ),
    "a mark behind the last node": (
        "tables", [NODES, "partition,node\np,a;b;\n"], {"p": ("a", "b")},
    ),
    "a last name that begins no other at its address, and no line break": (
        "elasticsearch", [SHARDS + "i 1 r STARTED 1 1kb 10.0.0.3 es"],
        {"i/0": ("es-1", "es-2"), "i/1": ("es-1", "es")},
    ),
    "numbers of nodes, and no line break": (
        "tables", ["partition,node\np,n10\np,n11\nq,n10\nq,n1"],
        {"p": ("n10", "n11"), "q": ("n10", "n1")},
    ),
}  # fmt: skip

REFUSED = {
    "shards that end in the middle of a name": (
        "elasticsearch", [SHARDS + "i 1 r STARTED 1 1kb 10.0.0.2 e"], "begins es-2, and the file",
    ),
    "shards that end in the middle of a number": (
        "elasticsearch",
        [SHARDS.replace("es-2", "es-22") + "i 1 r STARTED 1 1kb 10.0.0.2 es-2"], "begins es-22",
    ),
    "replicas that end in the middle of a name": (
        "tables", ["partition,node\np,n-1\np,n-2\nq,n-1\nq,n-"], "begins n-1, and the file",
    ),
    "lists that end in the middle of a name": (
        "tables", ["partition\tnodes\np\tn-1,n-2\nq\tn-2,n-1\nr\tn-1,n"], "begins n-1, and the",
    ),
    "a row that lacks a cell": (
        "kafka", ["Name: o\nPARTITION  LEADER  REPLICAS  HW\n0  1  [1 2]  9\n1  2  9\n"],
        "does not fit the titles",
    ),
    "commas without quotes": (
        "kafka", ['Topic,Partition,Leader,Replicas\no,0,1,"1,2"\no,1,1,1,2\n'],
        "does not fit the titles",
    ),
    "a cell on two lines": (
        "kafka", ["Topic: o\n ID | LEADER | REPLICAS\n 0 | 1 | [1 2\n   |   | 3]\n"],
        "does not fit the titles",
    ),
    "an option in place of a topic": (
        "kafka", ["$ rpk topic describe -p o\nPARTITION  LEADER  REPLICAS\n0  1  [1 2]\n"],
        "names no topic",
    ),
    "no list of replicas": (
        "kafka", ['{"topic":"o","isr":[1],"partition_x":{}}'], "lists no topic",
    ),
    "a list as a number": (
        "kafka", ['[{"topic":"o","partition":[1],"broker":2,"inSync":true}]'], "needs a number",
    ),
    "three points for rows of a table with bars": (
        "tables",
        ["| node | cap_x |\n|------|-------|\n| a | 10 |\n...\n", "partition,node\np,a\n"],
        "rows that were left out",
    ),
    "a row with bars that lacks its first cell": (
        "tables", ["| node | zone | cap_x |\n|---|---|---|\n| a | z | 10 |\n z | 10 |\n",
                   "partition,node\np,a\n"],
        "has 2 cells",
    ),
    "columns of unlike rows": (
        "tables", [NODES, '{"node":{"0":"a"},"partition":{"0":"p","1":"q"}}'], "neither a table",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_all_that_is_printed_is_read(name):
    system, texts, expected = READ[name]
    cluster = ek.read([text.encode() for text in texts], format=system)
    placement, nodes = cluster.placement, cluster.nodes.names
    held = {
        partition: tuple(nodes[n] for n in placement.node[first:last].tolist())
        for partition, first, last in zip(
            cluster.partitions.names, placement.first, placement.first[1:], strict=False
        )
    }
    assert held == expected


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name):
    system, texts, says = REFUSED[name]
    with pytest.raises(ek.InvalidInput, match=says):
        ek.read([text.encode() for text in texts], format=system)


@pytest.mark.parametrize("line", [" " * 10**6, "--- | " * 10**5 + "x"])
def test_a_long_line_takes_time_in_proportion(line):
    began = time.process_time()
    assert not printed.DRAWN.fullmatch(line)
    assert time.process_time() - began < 2.0
