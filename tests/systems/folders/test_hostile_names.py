"""Whatever things are called: tools are told just those names, by a run and by hand."""

import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.systems.folders.form import Form, lines_of, preparing
from evenkeel.systems.folders.running import FolderRun, Stopped
from tests.support.effort import share_of_examples
from tests.support.systems.worlds import HOSTILE

NAMES = st.lists(
    st.one_of(st.sampled_from(HOSTILE), st.text(min_size=1, max_size=8)),
    min_size=6, max_size=6, unique=True,
)  # fmt: skip
PLAIN = ["a", "b", "c", "d", "e", "f"]

RECORDER = """
import json, os, sys
told = {read}
with open(os.environ["CALLS"], "a") as log:
    log.write(json.dumps([{tool!r}, sys.argv[1:], told]) + "\\n")
print({answer!r}, end="")
"""
READ = {
    "curl": "sys.argv[sys.argv.index('-d') + 1]",
    "helix-admin.sh": "open(sys.argv[-1], encoding='utf-8', errors='surrogateescape').read()",
}
"""What is handed to a tool as a document."""


def elasticsearch(names):
    rows = [
        {"index": index, "shard": "0", "prirep": "p", "state": "STARTED", "node": names[0],
         "ip": "i", "id": "x", "docs": "1", "store": "1"}
        for index in names[3:]
    ]  # fmt: skip
    nodes = {
        f"id-{n}": {"name": name, "transport_address": "x", "ip": "i", "roles": ["data"],
                    "attributes": {}}
        for n, name in enumerate(names[:3])
    }  # fmt: skip
    return ek.read([json.dumps(rows).encode(), json.dumps({"nodes": nodes}).encode()])


def helix(names):
    simple = {"REBALANCE_MODE": "SEMI_AUTO", "STATE_MODEL_DEF_REF": "MasterSlave", "REPLICAS": "1"}
    nodes, records = names[:3], []
    for name in names[3:]:
        own = {"id": name, "simpleFields": simple, "mapFields": {}}
        records.append(own | {"listFields": {f"{name}_0": [nodes[0]]}})
        view = {"id": name, "simpleFields": {}, "listFields": {}}
        records.append(view | {"mapFields": {f"{name}_0": {nodes[0]: "MASTER"}}})
    live = {"LIVE_INSTANCE": "x", "SESSION_ID": "1"}
    records += [{"id": node, "simpleFields": live} for node in nodes]
    return ek.read(json.dumps(records).encode(), format="helix")


def rabbitmq(names):
    rows = [{"name": q, "type": "quorum", "leader": names[0], "members": names[:1],
             "online": names[:1]} for q in names[3:]]  # fmt: skip
    status = {"running_nodes": names[:3], "disk_nodes": names[:3]}
    return ek.read(json.dumps(rows).encode(), json.dumps(status).encode(), vhost=names[4])


def kafka(names):
    rows = [{"topic": topic, "partition": 0, "replicas": [1]} for topic in names[3:]]
    racks = {"1": names[0], "2": names[1], "3": names[2]}
    document = {"version": 1, "partitions": rows}
    return ek.read(json.dumps(document).encode(), json.dumps(racks).encode())


def of_elasticsearch(cluster, calls):
    """The indices and nodes that were named in reroutes."""
    bodies = [json.loads(told) for tool, argv, told in calls if "/_cluster/reroute" in argv[-1]]
    moves = [one["move"] for body in bodies for one in body["commands"]]
    assert {argv[-1].split("?")[0] for _, argv, _ in calls} == {
        "http://localhost:9200/_cluster/reroute"
    }
    found = {(f"{one['index']}/{one['shard']}", one["from_node"]) for one in moves}
    held = cluster.nodes.names[cluster.placement.node[0]]
    assert found == {(name, held) for name in cluster.partitions.names}


def of_helix(cluster, calls):
    assert all(argv[:4] == ["--zkSvr", "localhost:2181", "--addIdealState", "it's c"]
               for _, argv, _ in calls)  # fmt: skip
    assert {argv[4] for _, argv, _ in calls} == {*cluster.partitions.group_names}
    for _, argv, record in calls:
        assert json.loads(record)["id"] == argv[4]


def of_rabbitmq(cluster, calls):
    told = [argv for tool, argv, _ in calls if tool == "rabbitmq-queues"]
    assert not told or {tuple(argv[:2]) for argv in told} <= {
        ("add_member", "--vhost"), ("delete_member", "--vhost")
    }  # fmt: skip
    queues = {queue for _, queue in cluster.native["keys"].values()}
    assert {argv[3] for argv in told} <= queues
    assert {argv[4] for argv in told} <= {*cluster.nodes.names}


def of_kafka(cluster, calls):
    files = [argv[argv.index("--reassignment-json-file") + 1] for _, argv, _ in calls]
    rows = [row for file in map(Path, files) for row in json.loads(file.read_text())["partitions"]]
    assert {row["topic"] for row in rows} == {*cluster.partitions.group_names}


CASES = {
    "elasticsearch": (elasticsearch, of_elasticsearch, {"curl": "\n200"}),
    "helix": (helix, of_helix, {"helix-admin.sh": ""}),
    "rabbitmq": (rabbitmq, of_rabbitmq, {"rabbitmqctl": "true", "rabbitmq-queues": ""}),
    "kafka": (kafka, of_kafka, {"kafka-reassign-partitions.sh": ""}),
}


def moved(cluster):
    """A plan that moves every partition, each of which has one replica, to another node."""
    node = (cluster.placement.node + 1) % len(cluster.nodes)
    return ek.plan(cluster, cluster.placement.replaced(node, cluster.placement.leader))


@pytest.mark.parametrize("system", CASES)
@share_of_examples(0.2)
@example(names=PLAIN)
@example(names=HOSTILE[:6])
@example(names=HOSTILE[6:12])
@example(names=["n1", "n2", "n3", *HOSTILE[-3:]])
@example(names=["n1", "n2", "n3", "../up", "..", "x/../y"])
@given(names=NAMES)
def test_names_reach_tools_as_they_are_or_not_at_all(system, names):
    build, check, tools = CASES[system]
    with TemporaryDirectory() as place:
        here = Path(place)
        try:
            cluster = build(names)
            folder = ek.write_plan_folder(moved(cluster), here / "move")
        except ek.InvalidInput:
            assert names != PLAIN
            assert not (here / "move").exists()
            return
        page = (folder / "README.md").read_text()
        assert not re.search("[\0-\x08\x0b-\x1f\x7f]", page)
        by_run = calls_of(here, tools, lambda environment: applied(folder, environment))
        check(cluster, by_run)
        by_hand = calls_of(here, tools, lambda environment: entered(folder, environment))
        ours, theirs = changes(by_run, folder), changes(by_hand, folder)
        assert [one for one in theirs if one in ours] == ours
        assert len(theirs) == len(ours) or system == "rabbitmq"  # where tests decide what is run
        assert {file.name for file in here.iterdir()} == {"move", "bin", "calls"}


def changes(calls, folder):
    """The calls that change something, with paths in the folder as these are from there."""
    return [
        (tool, [word.replace(f"{folder}/", "") for word in argv], told)
        for tool, argv, told in calls if argv[:2] != ["-q", "eval"]
    ]  # fmt: skip


def calls_of(here, tools, orders):
    """Order all waves against recorders; returns tool, arguments and what it was handed of each."""
    (here / "bin").mkdir(exist_ok=True)
    for tool, answer in tools.items():
        code = RECORDER.format(read=READ.get(tool, "''"), tool=tool, answer=answer)
        file = here / "bin" / tool
        file.write_text(f"#!{sys.executable} -IS\n{code}")
        file.chmod(0o755)
    (here / "calls").write_text("")
    path = f"{here / 'bin'}:/usr/bin:/bin"
    orders({"PATH": path, "CALLS": str(here / "calls"), "CLUSTER": "it's c", "PAUSE": "0"})
    return [json.loads(line) for line in (here / "calls").read_text().splitlines()]


def applied(folder, environment):
    """Order all waves of a folder, one after the other."""
    run = FolderRun(folder, environment, lambda kind, text: None)
    for wave in run._form.waves:
        for command in wave.commands:
            try:
                run._do(command)
            except Stopped:
                # the stand-in of RabbitMQ has no members that come and go
                assert run._form.format == "rabbitmq"


def entered(folder, environment):
    """Enter the commands of all waves in a shell, as the page of the folder lists them."""
    form = msgspec.json.decode((folder / "waves.json").read_bytes(), type=Form)
    commands = [
        msgspec.structs.replace(one, unless=None) for wave in form.waves for one in wave.commands
    ]
    lines = [*lines_of(commands)]
    page = (folder / "README.md").read_text().splitlines()
    assert {line for line in lines if "    # " not in line} <= {*page}
    subprocess.run(
        ["bash", "-c", "\n".join([*preparing(form), *lines])], env=environment, cwd=folder,
        check=True, capture_output=True,
    )  # fmt: skip
