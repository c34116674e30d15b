"""RabbitMQ's tools list it, we read it; we write calls of its tools."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evenkeel.model.errors import InvalidInput
from evenkeel.model.intake.stranded import stranded
from evenkeel.model.placement import Flag
from evenkeel.solving import solve
from evenkeel.systems import registry
from evenkeel.systems.rabbitmq.format import has_member, transfer
from tests.support import places

DATA = places.DATA / "formats" / "rabbitmq"
FILES = sorted(DATA.glob("*.json"))


ABC = ("rabbit@a", "rabbit@b", "rabbit@c")


def read(**options):
    return registry.read(FILES, **options)


def text(value):
    return json.dumps(value).encode()


def queue(name="q", members=("rabbit@a", "rabbit@b"), **more):
    own = {"name": name, "leader": members[0] if members else "", "members": [*members]}
    return own | {"online": [*members]} | more


def faults_of(*sources, **options):
    with pytest.raises(InvalidInput) as caught:
        registry.read([*sources], format="rabbitmq", **options)
    return [(fault.path.removeprefix("<bytes>: "), fault.value) for fault in caught.value.faults]


class TestReading:
    def test_quorum_queues_are_partitions_and_hosts_are_groups(self):
        cluster = read()
        assert list(cluster.nodes.names) == [f"rabbit@mq-{one}" for one in "abcde"]
        assert list(cluster.partitions.group_names) == ["/", "books"]
        assert list(cluster.partitions.names) == [
            *(f"%2F/orders.{i}" for i in range(6)), "books/audit", "books/invoices",
        ]  # fmt: skip
        assert cluster.placement.nodes[6].tolist() == [3, -1, -1]
        assert cluster.placement.leader.tolist() == [0, 0, 0, 0, 0, 0, -1, 0]
        assert cluster.partitions.min_active.tolist() == [2, 2, 2, 2, 2, 2, 1, 2]
        assert cluster.dimensions == ("members", "bytes")

    def test_who_is_up_and_who_is_in_maintenance(self):
        nodes = read().nodes
        assert nodes.alive.tolist() == [True, True, True, False, True]
        assert nodes.accepts.tolist() == [True, False, True, False, True]
        assert nodes.leads.tolist() == [True, False, True, False, True]

    def test_without_a_status_who_is_online_somewhere_is_up(self):
        cluster = registry.read(text([queue(online=["rabbit@a"]), queue("r", ["rabbit@a"])]))
        assert cluster.nodes.alive.tolist() == [True, False]
        assert list(cluster.partitions.names) == ["q", "r"]

    @pytest.mark.parametrize(
        ("title", "last", "known", "up"),
        [
            ("Disk Nodes", "rabbit@b", "ab", "ab"),
            ("Running Nodes", "rabbit@a", "abcd", "ab"),
            ("Versions", "4.0.5", "abcd", "ac"),
            ("", "", "abcd", "ac"),
        ],
    )
    def test_a_status_that_is_printed_in_part_is_noted(self, title, last, known, up):
        blocks = ["Cluster status of node rabbit@a ...", "Basics", "Cluster name: x"]
        blocks += ["Disk Nodes", "rabbit@a\nrabbit@b\nrabbit@c\nrabbit@d"]
        blocks += ["Running Nodes", "rabbit@a\nrabbit@c", "Versions", "rabbit@a: RabbitMQ 4.0.5"]
        lines = "\n\n".join([*blocks, "Alarms", "(none)", "Network Partitions", "(none)"])
        end = lines.index(last, lines.index(title)) + len(last) if last else len(lines)
        status = lines[:end].encode()
        cluster = registry.read(text([queue(online=["rabbit@a", "rabbit@b"])]), status)
        names = [name.removeprefix("rabbit@") for name in cluster.nodes.names]
        assert names == [*known]
        assert [name for name, n in zip(names, cluster.nodes.alive, strict=True) if n] == [*up]
        notes = " ".join(registry.find("rabbitmq").left_out(cluster))
        assert ("cluster_status that ends behind" in notes) == bool(title)
        assert f'ends behind "{title}"' in notes or not title

    def test_a_box_without_its_lower_border_is_noted(self):
        rows = ["| name | type   | leader   | members              |"]
        rows += ["| q    | quorum | rabbit@a | [rabbit@a, rabbit@b] |"]
        border = "+------+--------+----------+----------------------+"
        whole = "\n".join([border, rows[0], border, rows[1], border])
        for listing, is_cut in ((whole, False), (whole.rpartition("\n")[0], True)):
            cluster = registry.read(listing.encode())
            notes = " ".join(registry.find("rabbitmq").left_out(cluster))
            assert ("tables whose lower border is missing" in notes) == is_cut

    def test_a_queue_that_lost_its_majority_stays_as_it_is(self, tmp_path):
        cluster = read()
        stays = (cluster.placement.flags & Flag.PINNED) > 0
        assert {cluster.partitions.names[p] for p in cluster.placement.owner[stays]} == {
            "books/audit"
        }
        files = registry.write(cluster, tmp_path / "p.sh", placement=solve(cluster))
        assert "audit" not in files[0].read_text()

    def test_a_majority_is_of_members_that_are_online_not_of_nodes_that_run(self):
        status = text({"running_nodes": [*ABC], "disk_nodes": [*ABC]})
        for online, stays in ((ABC[:1], True), (ABC[:2], False), (ABC, False)):
            cluster = registry.read(text([queue("q", ABC, online=[*online])]), status)
            assert cluster.nodes.alive.all()
            assert (cluster.placement.flags & int(Flag.PINNED) > 0).all() == stays
        row = queue("q", ABC)
        del row["online"]
        cluster = registry.read(text([row]), status)
        assert not (cluster.placement.flags & int(Flag.PINNED)).any()

    def test_a_queue_without_a_leader_stays_as_it_is(self):
        names = ["rabbit@a", "rabbit@b", "rabbit@c"]
        for leader, lost in (("", True), ("rabbit@b", False)):
            cluster = registry.read(text([queue(members=names, online=names, leader=leader)]))
            assert stranded(cluster.placement).tolist() == [lost]

    def test_queues_without_a_type_are_noted(self):
        told = registry.find("rabbitmq").left_out
        unlisted, note = told(registry.read(text([queue("q", ABC)])))
        assert "list them with type" in note and "no cluster_status" in unlisted
        assert [*told(registry.read(text([queue("q", ABC, type="quorum")])))] == [unlisted]

    def test_the_management_api_says_the_same(self):
        nodes = [
            {"name": "rabbit@a", "running": True, "fd_total": 9, "being_drained": True},
            {"name": "rabbit@b", "running": False, "fd_total": 9},
        ]
        found = registry.read(text([queue(type="quorum", node="rabbit@a")]), text(nodes)).nodes
        assert found.alive.tolist() == [True, False]
        assert found.leads.tolist() == [False, False]

    def test_zones_keep_members_apart(self):
        cluster = read()
        assert cluster.topology.tiers == ("zone",)
        assert {str(cluster.rules[r].spread) for r in cluster.partitions.rule} == {"{'zone': 1}"}
        zones = text({"rabbit@a": "x", "rabbit@b": "x"})
        assert registry.read(text([queue()]), zones).rules[0].spread == {"zone": 2}

    def test_the_virtual_host_of_a_listing_is_told(self, tmp_path):
        rows = text([queue(), queue("r", ["rabbit@b", "rabbit@c"])])
        cluster = registry.read(rows, format="rabbitmq", vhost="books")
        assert list(cluster.partitions.group_names) == ["books"]
        target = cluster.placement.replaced(cluster.placement.node, np.array([1, 0], np.int16))
        script = registry.write(cluster, tmp_path / "p.sh", placement=target)[0].read_text()
        assert '<<"books">>' in script

    def test_other_kinds_of_queues_are_not_placed(self):
        rows = [queue(), queue("s", type="stream"), {"name": "c", "members": "", "leader": ""}]
        assert list(registry.read(text(rows)).partitions.names) == ["q"]

    def test_no_queue_at_all_is_a_cluster(self):
        cluster = registry.read(text([]), DATA / "cluster_status.json", format="rabbitmq")
        assert (len(cluster.nodes), len(cluster.partitions)) == (5, 0)


class TestBadInput:
    def test_everything_wrong_is_listed_with_its_place(self):
        rows = [
            queue(), queue(), queue("a", ["rabbit@a", "rabbit@a"]), queue("b", ["rabbit@z"]),
            queue("c", leader="rabbit@z"), queue("d", online=["rabbit@c"]),
            queue("e", message_bytes="many"),
        ]  # fmt: skip
        nodes = ["rabbit@a", "rabbit@b", "rabbit@c"]
        status = text({"disk_nodes": nodes, "running_nodes": nodes,
                       "maintenance_status": {"rabbit@a": "odd"}})  # fmt: skip
        assert faults_of(text(rows), status, text({"rabbit@y": "1"})) == [
            ("[1].name", "q"),
            ("[2].members[1]", "rabbit@a"),
            ("[6].message_bytes", "many"),
            ("<bytes>", ["rabbit@a", "rabbit@b", "rabbit@c"]),
        ]

    def test_what_is_stale_is_noted(self):
        rows = [
            queue("b", ["rabbit@z", "rabbit@a"], type="quorum"),
            queue("c", leader="rabbit@z", type="quorum"),
            queue("d", online=["rabbit@c"], type="quorum"),
        ]  # fmt: skip
        nodes = ["rabbit@a", "rabbit@b", "rabbit@c"]
        status = text({"disk_nodes": nodes, "running_nodes": nodes,
                       "maintenance_status": {"rabbit@a": "odd"}})  # fmt: skip
        zones = text({"rabbit@y": "1"} | dict.fromkeys(nodes, "2"))
        cluster = registry.read(text(rows), status, zones)
        assert cluster.nodes.gone.tolist() == [False, False, False, True]
        assert cluster.nodes.accepts.tolist() == [False, True, True, False]
        assert cluster.placement.leader.tolist() == [0, -1, 0]
        told = " ".join(registry.find("rabbitmq").left_out(cluster))
        for name in ("rabbit@z in 1 queue", "rabbit@y", "odd", "c: rabbit@z", "d: rabbit@c"):
            assert name in told


TOOLS = r"""
import json, os, re, sys
state = json.load(open(os.environ["STATE"]))
tool, *words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
if tool == "rabbitmq-queues":
    verb, _, vhost, queue, node = words
    members = state[json.dumps([vhost, queue])]["members"]
    members.append(node) if verb == "add_member" else members.remove(node)
else:
    def read(word):
        plain = re.fullmatch(r'<<"(.*)">>', word)
        return plain[1] if plain else bytes(map(int, word[2:-2].split(","))).decode()
    _, _, call = words
    named = r"(?:rabbit_misc:r|:status)\((<<.*?>>),(?: queue,)? (<<.*?>>)\)"
    vhost, queue = re.search(named, call).groups()
    atom = r"(?:'(.*?)'|binary_to_atom\((.*?), utf8\))"
    node = re.search(r"(?:keymember\(|leadership\(Q, |N =:= )" + atom, call)
    node = node[1] or read(node[2])
    own = state[json.dumps([read(vhost), read(queue)])]
    if "keymember" in call or "status(" in call:
        print("true" if node in own["members"] else "false")
    elif node in own["members"]:
        own["leader"] = node
        print("ok")
    else:
        print("{not_migrated,not_a_member}")
json.dump(state, open(os.environ["STATE"], "w"))
"""
"""Stands in for RabbitMQ's tools: it keeps members and leaders in a file."""


class Broker:
    """A cluster of RabbitMQ that only its tools know."""

    def __init__(self, folder, rows):
        self.state = folder / "state.json"
        self.state.write_text(
            json.dumps(
                {
                    json.dumps([row.get("vhost", "/"), row["name"]]): {
                        "members": row["members"], "leader": row["leader"]
                    }
                    for row in rows
                }
            )
        )  # fmt: skip
        self.folder = folder
        for name in ("rabbitmqctl", "rabbitmq-queues"):
            tool = folder / name
            tool.write_text(f"#!{sys.executable} -EsS{TOOLS}")
            tool.chmod(0o755)

    def run(self, script):
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        own = {"PATH": path, "STATE": str(self.state), "PAUSE": "0", "PATIENCE": "3"}
        return subprocess.run(
            ["sh", script], env=os.environ | own, capture_output=True, text=True, timeout=60
        )

    @property
    def queues(self):
        state = json.loads(self.state.read_text())
        return {key: (sorted(own["members"]), own["leader"]) for key, own in state.items()}


class TestWriting:
    def test_the_script_brings_the_placement_about_and_back(self, tmp_path):
        cluster = read()
        result = solve(cluster)
        after, there, back = registry.write(cluster, tmp_path / "p.json", placement=result)
        assert [one.name for one in (after, there, back)] == ["p.json", "p.sh", "p.undo.sh"]
        rows = json.loads((DATA / "queues.json").read_text())
        broker = Broker(tmp_path, rows)
        before = broker.queues
        for _ in range(2):  # the second time there is nothing left to do
            ran = broker.run(there)
            assert ran.returncode == 0, ran.stderr
        assert broker.queues == {
            json.dumps([row["vhost"], row["name"]]): (sorted(row["members"]), row["leader"])
            for row in json.loads(after.read_text())
        }
        now = broker.queues
        assert now != before
        ran = broker.run(back)
        assert ran.returncode == 0, ran.stderr
        # who was on the node that is down does not join it again
        after = {key: own for key, own in now.items() if "rabbit@mq-d" in before[key][0]}
        assert broker.queues == before | after != before

    def test_the_queues_written_are_those_of_the_placement(self, tmp_path):
        cluster = read()
        result = solve(cluster)
        after = registry.write(cluster, tmp_path / "p.json", placement=result)[0]
        again = registry.read(after, *(one for one in FILES if one.name != "queues.json"))
        assert again.placement.nodes.tolist() == result.placement.nodes.tolist()
        assert again.placement.leader_node.tolist() == result.placement.leader_node.tolist()

    def test_who_is_lost_is_deleted_first_and_is_not_brought_back(self, tmp_path):
        rows = text([queue(online=["rabbit@a", "rabbit@b"], members=[*ABC])])
        status = text({"disk_nodes": [*ABC, "rabbit@d"], "running_nodes": [*ABC[:2], "rabbit@d"]})
        cluster = registry.read(rows, status, format="rabbitmq")
        after, there, back = registry.write(
            cluster, tmp_path / "p.json", placement=solve(cluster)
        )  # fmt: skip
        assert json.loads(after.read_text())[0]["members"] == [*ABC[:2], "rabbit@d"]
        lines = [line.split()[:4] for line in there.read_text().splitlines()]
        calls = [[line[0], line[3]] for line in lines if line[1:3] == ["/", "q"]]
        assert calls == [["leave", "rabbit@c"], ["join", "rabbit@d"]]
        assert "/ q " not in back.read_text()

    def test_hostile_names_are_no_commands(self, tmp_path):
        names = ["; touch pwned", "a'b\"c", "x\ny", "' touch pwned '", "../..", "é ü"]
        names.append('q">>), os:cmd("id')
        rows = [queue(name, vhost="v'\n;") for name in names]
        rows.append(queue("spare", ["rabbit@c", "rabbit@' ; touch pwned '"]))
        cluster = registry.read(text(rows))
        node = cluster.placement.node.copy()
        node[:] = np.array(sorted({*range(4)} - {1, 2}) * len(rows))
        leader = np.ones(len(rows), np.int16)
        target = cluster.placement.replaced(node, leader)
        _, script, _ = registry.write(cluster, tmp_path / "p.json", placement=target)
        broker = Broker(tmp_path, rows)
        ran = broker.run(script)
        assert ran.returncode == 0, ran.stderr
        assert not (tmp_path / "pwned").exists() and not Path("pwned").exists()
        assert {tuple(own[0]) for own in broker.queues.values()} == {
            tuple(sorted(cluster.nodes.names[n] for n in node[:2]))
        }

    def test_expressions_hold_bytes_of_what_is_not_plain(self):
        call = transfer("/", "a'b", "rabbit@x'")
        assert "<<97,39,98>>" in call and "binary_to_atom(<<" in call
        assert "'" not in has_member("/", "'", "rabbit@x'")

    @pytest.mark.parametrize("name", ["-rf", "a\0b", "$(id)", "`id`", "a\\"])
    def test_what_no_command_can_hold_is_refused(self, tmp_path, name):
        cluster = registry.read(text([queue(name), queue("r", ["rabbit@c", "rabbit@a"])]))
        node = cluster.placement.node[::-1].copy()
        target = cluster.placement.replaced(node, cluster.placement.leader)
        with pytest.raises(InvalidInput, match=r"cannot stand in a command.*; pin this queue"):
            registry.write(cluster, tmp_path / "p.sh", placement=target)
        assert [*tmp_path.iterdir()] == []

    def test_a_queue_without_members_is_refused(self, tmp_path):
        cluster = read()
        node = np.full(len(cluster.placement.node), -1, np.int32)
        target = cluster.placement.replaced(node, np.full(len(cluster.partitions), -1, np.int16))
        with pytest.raises(InvalidInput, match="would be left without members"):
            registry.write(cluster, tmp_path / "p.json", placement=target)
