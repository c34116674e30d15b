"""What no system can mend, since nothing lives to copy it from, is named and left out."""

import csv
import io
import json

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.cli import main
from evenkeel.model.intake.stranded import stranded_names, with_stranded
from evenkeel.model.placement import Flag
from evenkeel.systems import registry
from tests.support import places
from tests.support.longhorn.files import FILE as LONGHORN

DATA = places.DATA / "formats"

ROWS = (("none", "3,1", "3"), ("1", "1,3", "1"), ("2", "2,1", "2,1"), ("none", "1,3", "3"))
BROKERS = "broker,rack,state\n1,a,up\n2,b,up\n3,c,down\n4,c,up\n"
MEND = ek.Goals(level=None)

STRANDED = ["t-0", "t-3"]


def described(rows=ROWS):
    """Partitions of a topic by who leads, who holds them, and who is in sync."""
    lines = [f"Topic: t\tPartitionCount: {len(rows)}\tReplicationFactor: 2\tConfigs: "]
    for p, (leader, replicas, in_sync) in enumerate(rows):
        lines.append(
            f"\tTopic: t\tPartition: {p}\tLeader: {leader}\tReplicas: {replicas}\tIsr: {in_sync}"
        )
    return "\n".join(lines) + "\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "described.txt").write_text(described())
    (tmp_path / "brokers.csv").write_text(BROKERS)
    return [str(tmp_path / "described.txt"), str(tmp_path / "brokers.csv")]


def changed(file, change):
    """A document after a change to what it holds."""
    document = json.loads(file.read_text())
    change(document)
    return json.dumps(document).encode()


class TestKafka:
    def test_a_partition_in_sync_on_dead_brokers_only_is_stranded(self, files):
        assert stranded_names(ek.read(*files)) == STRANDED

    def test_replicas_are_not_in_sync_only_where_a_description_says_so(self):
        rows = [{"topic": "t", "partition": p, "replicas": own} for p, own in enumerate(([1], [2]))]
        text = json.dumps({"partitions": rows, "version": 1}).encode()
        assert stranded_names(ek.read(text)) == []
        assert stranded_names(registry.read(text, offline=[2])) == ["t-1"]

    def test_it_moves_nowhere_and_is_led_by_nobody(self, files):
        result = ek.solve(ek.read(*files), goals=MEND)
        assert {move.partition for move in result.moves} == {"t-1"}
        assert not result.leader_changes
        assert result.status == "partial"
        assert any("t-0 (on 3, 1), t-3 (on 1, 3)" in one for one in result.warnings)
        assert {reason for one in result.unplaced for reason in one.blocked} == {
            "stranded: no live replica surely has all its data", "not alive",
        }  # fmt: skip

    def test_it_is_in_no_file_that_kafka_takes(self, files, tmp_path):
        cluster = ek.read(*files)
        result = ek.solve(cluster, goals=MEND)
        target = cluster.placement.replaced(
            np.array([3, 0, 0, 3, 1, 0, 0, 3], np.int32), np.array([0, 0, 0, 0], np.int16)
        )
        for name, placement in (("solved", result), ("any", target)):
            ek.write(cluster, tmp_path / f"{name}.json", placement=placement)
            told = json.loads((tmp_path / f"{name}.json").read_text())
            assert [one["partition"] for one in told["partitions"]] == [1]
            election = json.loads((tmp_path / f"{name}.election.json").read_text())
            assert election["partitions"] == []

    def test_a_plan_leaves_it_out_whatever_is_asked(self, files):
        cluster = ek.read(*files)
        target = cluster.placement.replaced(
            np.array([3, 0, 0, 3, 1, 0, 0, 3], np.int32), np.array([0, 0, 0, 0], np.int16)
        )
        plan = ek.plan(cluster, target, protocol="kafka")
        assert {row.partition for row in plan.rows()} == {"t-1"}
        assert plan.check().ok and not plan.blocked

    def test_commands_and_pages_name_it(self, files, tmp_path, capsys):
        assert main(["check", *files]) == 1
        told = capsys.readouterr()
        assert "t-0 (on 3, 1)" in " ".join(told.out.split())
        assert "nothing can repair 2 partitions now: Kafka copies from the leader" in told.err
        main(["check", *files, "--json"])
        assert json.loads(capsys.readouterr().out)["stranded"] == STRANDED
        assert main(["plan", *files, "-o", str(tmp_path / "move")]) == 3
        assert "t-0 (on 3, 1)" in " ".join(capsys.readouterr().out.split())
        page = (tmp_path / "move" / "README.md").read_text()
        assert "**2 partitions cannot be repaired and are left out**" in page
        assert "t-0 (on 3, 1), t-3 (on 1, 3)" in page

    def test_what_dies_meanwhile_is_left_out_of_the_rest(self, files):
        plan = ek.plan(cluster := ek.read(*files), ek.solve(cluster, goals=MEND), protocol="kafka")
        text = described([*ROWS[:1], ("none", "1,3", "3"), *ROWS[2:]])
        rest = plan.resume(ek.read(text.encode(), BROKERS.encode()).placement)
        assert len(plan) and not len(rest)


class TestOthers:
    def test_a_queue_without_a_majority(self):
        cluster = ek.read(*sorted((DATA / "rabbitmq").glob("*.json")))
        lost = stranded_names(cluster)
        assert lost == ["books/audit"]
        result = ek.solve(cluster, goals=ek.Goals(level=0.0, leaders=0.0))
        touched = {one.partition for one in (*result.moves, *result.leader_changes)}
        assert touched and not touched & {*lost}

    def test_a_shard_without_a_primary(self):
        cluster = ek.read(*sorted((DATA / "elasticsearch").glob("*.json")))
        assert stranded_names(cluster) == ["broken/0"]
        result = ek.solve(cluster, goals=MEND)
        assert "broken/0" not in {one.partition for one in result.moves}
        assert any("broken/0 (on no node)" in one for one in result.warnings)

    def test_a_volume_without_a_healthy_replica(self):
        cluster = ek.read(LONGHORN)
        assert stranded_names(cluster) == []
        name = cluster.partitions.names[0]

        def fail(document):
            for one in document["items"]:
                if one["kind"] == "Replica" and one["spec"]["volumeName"] == name:
                    one["spec"] |= {"failedAt": "2026-01-31T12:00:00Z", "healthyAt": ""}

        lost = ek.read(changed(LONGHORN, fail))
        assert stranded_names(lost) == [name]
        result = ek.solve(lost, goals=ek.Goals(level=0.0))
        assert name not in {one.partition for one in result.moves}

    def test_a_volume_that_was_never_attached_has_nothing_to_lose(self):
        name = ek.read(LONGHORN).partitions.names[0]

        def new(document):
            for one in document["items"]:
                if one["kind"] == "Replica" and one["spec"]["volumeName"] == name:
                    one["spec"] |= {"failedAt": "", "healthyAt": "", "lastHealthyAt": ""}
                if one["kind"] == "Volume" and one["metadata"]["name"] == name:
                    one["status"] |= {"robustness": "unknown", "actualSize": 0, "currentNodeID": ""}

        assert stranded_names(ek.read(changed(LONGHORN, new))) == []

    def test_a_range_without_a_quorum(self):
        data = DATA / "cockroach"
        ranges, nodes = data / "ranges.csv", data / "node_status.csv"
        cluster = ek.read(ranges, nodes)
        assert stranded_names(cluster) == []
        held = cluster.placement.nodes[0]
        gone = {cluster.nodes.names[n] for n in held.tolist() if n >= 0}
        rows = [*csv.DictReader(io.StringIO(nodes.read_text()))]
        told = [row | {"is_live": "false"} if row["id"] in gone else row for row in rows]
        text = json.dumps(told).encode()
        assert cluster.partitions.names[0] in stranded_names(ek.read(ranges.read_bytes(), text))

    @pytest.mark.parametrize("state", ["down", "incomplete", "stale+active+clean"])
    def test_a_placement_group_that_does_not_serve(self, state):
        data = DATA / "ceph"

        def stop(document):
            stats = document.get("pg_map", document)["pg_stats"]
            next(one for one in stats if one["pgid"] == "1.3")["state"] = state

        files = [data / "osd_dump.json", data / "crush.txt"]
        cluster = ek.read(*files, changed(data / "pg_dump.json", stop))
        assert stranded_names(cluster) == ["1.3"]
        for method in ("balance", "ceph_upmap"):
            result = ek.solve(cluster, method)
            assert "1.3" not in {one.partition for one in result.moves}

    def test_a_placement_group_of_which_no_device_is_up(self):
        data = DATA / "ceph"
        files = [data / "osd_dump.json", data / "crush.txt"]
        cluster = ek.read(*files)
        held = {n for n in cluster.placement.nodes[0].tolist() if n >= 0}

        def kill(document):
            for one in document["osds"]:
                one["up"] = int(one["up"] and one["osd"] not in held)

        lost = stranded_names(ek.read(changed(files[0], kill), files[1]))
        assert cluster.partitions.names[0] in lost


class TestTheMark:
    def test_it_is_written_and_read_again(self, tmp_path):
        cluster = ek.Cluster.from_arrays(
            capacity=[[9.0]] * 3, load=[[1.0]] * 2, placement=[[0, 1]] * 2
        )
        marked = with_stranded(cluster, np.array([False, True]))
        assert (marked.placement.flags[2:] == int(Flag.STRANDED | Flag.PINNED)).all()
        for name in ("c.npz", "c.rows.json"):
            ek.write(marked, tmp_path / name)
            assert stranded_names(ek.read(tmp_path / name)) == ["p1"]

    def test_nothing_is_marked_where_nothing_is_lost(self):
        cluster = ek.Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]], placement=[[0]])
        assert with_stranded(cluster, np.array([False])) is cluster
