"""kubectl prints Longhorn's resources, we read them; we write steps, kubectl applies them."""

import json
import subprocess
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenkeel as ek
from evenkeel.cli import main
from evenkeel.cli.arguments import moment
from evenkeel.model.errors import InvalidInput
from evenkeel.model.intake.stranded import stranded_names
from evenkeel.model.placement import Flag
from evenkeel.systems import registry
from evenkeel.systems.longhorn.auto_balance.intake import Disk, Host, cluster_of
from evenkeel.systems.longhorn.format import changes
from tests.support.longhorn.files import FILE, replayed, written

DISKS = ("node-1/hdd-1", "node-1/ssd-1", "node-2/hdd-1", "node-3/hdd-1")


@pytest.fixture
def listed():
    """The list as a document, for a test to spoil."""
    return json.loads(FILE.read_text())


def encoded(document):
    return json.dumps(document).encode()


def named(document, kind, name):
    found = (o for o in document["items"] if (o["kind"], o["metadata"]["name"]) == (kind, name))
    return next(found)


def faults_of(*sources, **options):
    """The faults of what cannot be read, as (path, value)."""
    with pytest.raises(InvalidInput) as caught:
        registry.read([*sources], **options)
    return [(fault.path, fault.value) for fault in caught.value.faults]


class TestReading:
    def test_disks_are_nodes_on_hosts_in_zones(self):
        cluster = registry.read(FILE)
        assert tuple(cluster.nodes.names) == DISKS
        assert cluster.topology.tiers == ("zone", "host")
        zones, hosts = cluster.topology.label
        assert [cluster.topology.label_names[0][z] for z in zones] == [
            "zone-1", "zone-1", "zone-1", "zone-2",
        ]  # fmt: skip
        assert hosts.tolist() == [0, 0, 1, 2]
        assert cluster.native_format == "longhorn"

    def test_volumes_replicas_and_sizes(self):
        cluster = registry.read(FILE)
        assert list(cluster.partitions.names) == ["pvc-cold", "pvc-logs", "pvc-orders", "pvc-torn"]
        assert cluster.partitions.replicas.tolist() == [2, 3, 2, 2]
        gib = 2**30
        sizes = [
            [5 * gib, 20 * gib],
            [8 * gib, 20 * gib],
            [15 * gib, 40 * gib],
            [5 * gib, 20 * gib],
        ]
        assert cluster.partitions.load.voter.tolist() == sizes
        names = cluster.native.replicas.names
        at = dict(zip(names, cluster.placement.node.tolist(), strict=True))
        assert at["pvc-logs-r-2b3c4d5e"] == 0
        assert at["pvc-orders-r-0b0b0b0b"] == 2
        assert "pvc-torn-r-55555555" not in at  # Longhorn has not scheduled it

    def test_a_failed_replica_says_so(self):
        cluster = registry.read(built_once())
        names = cluster.native.replicas.names
        torn = names.index("pvc-torn-r-44444444")
        assert cluster.placement.flags[torn] & Flag.ERROR
        assert not cluster.native.replicas.healthy[torn]

    @pytest.mark.parametrize(
        "spec", [{"lastHealthyAt": ""}, {"rebuildRetryCount": 5}, {"evictionRequested": True}]
    )
    def test_a_failed_replica_that_does_not_return_counts_for_nothing(self, listed, spec):
        torn = {"lastHealthyAt": BUILT, **spec}
        named(listed, "Replica", "pvc-torn-r-44444444")["spec"] |= torn
        cluster, notes = read_with_notes(listed)
        assert "pvc-torn-r-44444444: they count for nothing" in notes
        assert (cluster.placement.node[cluster.placement.owner == 3] >= 0).sum() == 1

    def test_settings_are_read_and_others_left_alone(self):
        settings = registry.read(FILE).native.settings
        assert settings.replica_auto_balance == "least-effort"
        assert settings.replica_soft_anti_affinity
        assert settings.storage_over_provisioning_percentage == 200
        assert settings.storage_minimal_available_percentage == 25

    def test_the_snapshot_is_as_late_as_the_latest_time_in_it(self):
        assert registry.read(FILE).native.now == 1772521200.0  # 2026-03-03T07:00:00Z
        assert registry.read(FILE, now=5.0).native.now == 5.0

    def test_kinds_in_files_of_their_own(self, listed, tmp_path):
        files = []
        for kind in ("Volume", "Replica", "Node", "Setting"):
            own = [one for one in listed["items"] if one.get("kind") == kind]
            for one in own:
                del one["kind"], one["apiVersion"]
            files.append(tmp_path / f"{kind}.json")
            head = {"apiVersion": "longhorn.io/v1beta2", "kind": f"{kind}List"}
            files[-1].write_text(json.dumps(head | {"items": own}))
        cluster, whole = registry.read(files), registry.read(FILE)
        assert np.array_equal(cluster.placement.node, whole.placement.node)
        assert np.array_equal(cluster.nodes.capacity, whole.nodes.capacity)
        assert cluster.native.settings == whole.native.settings

    def test_nodes_that_are_cordoned_down_or_emptied(self, listed):
        def schedulable(name, reason):
            node = named(listed, "Node", name)
            node["status"]["conditions"][1] |= {"status": "False", "reason": reason}
            return node

        schedulable("node-1", "KubernetesNodeCordoned")
        schedulable("node-2", "")["status"]["conditions"][0]["status"] = "False"
        named(listed, "Node", "node-3")["spec"]["evictionRequested"] = True
        nodes = registry.read(encoded(listed)).nodes
        assert nodes.alive.tolist() == [True, True, False, True]
        assert nodes.accepts.tolist()[:3] == [False, False, False]
        # the second has been down for longer than Longhorn waits
        assert nodes.keeps.tolist() == [True, True, False, False]

    def test_a_disk_that_was_just_added_has_no_room(self, listed):
        node = named(listed, "Node", "node-3")
        node["spec"]["disks"]["new"] = {"allowScheduling": True, "path": "/var/lib/new/"}
        cluster = registry.read(encoded(listed))
        assert cluster.nodes.names[4] == "node-3/new"
        assert not cluster.nodes.alive[4]
        assert cluster.nodes.capacity[4].tolist() == [0.0, 0.0]

    def test_what_is_null_is_not_there(self, listed):
        plain = registry.read(encoded(listed))
        named(listed, "Node", "node-1")["status"]["region"] = None
        spec = named(listed, "Volume", "pvc-logs")["spec"]
        assert "nodeSelector" not in spec or not spec["nodeSelector"]
        spec |= {"nodeSelector": None, "migrationNodeID": None}
        replica = named(listed, "Replica", "pvc-logs-r-1a2b3c4d")
        replica["spec"]["failedAt"] = replica["status"] = None
        cluster = registry.read(encoded(listed))
        assert np.array_equal(cluster.placement.node, plain.placement.node)
        assert np.array_equal(cluster.native.replicas.healthy, plain.native.replicas.healthy)
        assert cluster.native.volumes.migrating.tolist() == plain.native.volumes.migrating.tolist()
        named(listed, "Volume", "pvc-cold")["spec"]["size"] = None
        place = listed["items"].index(named(listed, "Volume", "pvc-cold"))
        assert (f"<bytes>: items[{place}].spec.size", None) in faults_of(encoded(listed))

    @pytest.mark.parametrize("effort", ["best-effort", "best_effort"])
    def test_a_volumes_own_setting_in_either_spelling(self, listed, tmp_path, effort):
        named(listed, "Volume", "pvc-logs")["spec"]["replicaAutoBalance"] = effort
        cluster = registry.read(encoded(listed))
        at = list(cluster.partitions.names).index("pvc-logs")
        assert cluster.native.volumes.auto_balance[at] == 3
        node = cluster.placement.node.copy()
        node[cluster.native.replicas.names.index("pvc-logs-r-2b3c4d5e")] = 3
        _, _, there = written(cluster, tmp_path / "plan.json", node)
        held = {"op": "test", "path": "/spec/replicaAutoBalance", "value": effort}
        assert there["steps"][0]["body"][0] == held

    def test_one_resource_by_itself_is_recognised_but_no_cluster(self, listed):
        alone = encoded(named(listed, "Volume", "pvc-logs"))
        assert faults_of(alone) == [("source", ["<bytes>"])]


BUILT = "2026-03-01T09:00:00Z"


def built_once():
    """The file, in which the failed replica of pvc-torn was healthy before."""
    return FILE.read_bytes().replace(b'"lastHealthyAt": ""', f'"lastHealthyAt": "{BUILT}"'.encode())


def read_with_notes(listed, **options):
    """The cluster of a list, and what is noted of it, in one text."""
    cluster = registry.read(encoded(listed), **options)
    return cluster, "; ".join(registry.find("longhorn").left_out(cluster))


class TestBrokenSystems:
    """What names something that is gone is read, noted, and left alone."""

    def test_without_settings_the_defaults_are_noted(self, listed):
        assert "no settings" not in read_with_notes(listed)[1]
        listed["items"] = [one for one in listed["items"] if one.get("kind") != "Setting"]
        cluster, notes = read_with_notes(listed)
        assert "no settings: Longhorn's defaults are taken" in notes
        assert not cluster.native.settings.replica_soft_anti_affinity

    def test_what_names_something_that_is_not_there(self, listed):
        logs = [one for one in listed["items"] if one["metadata"]["name"].startswith("pvc-logs-r-")]
        logs[0]["spec"]["nodeID"] = "node-9"
        logs[1]["spec"]["diskID"] = "of-old"
        logs[2]["spec"]["volumeName"] = "pvc-lost"
        named(listed, "Volume", "pvc-orders")["status"]["currentNodeID"] = "node-8"
        named(listed, "Node", "node-3")["status"]["diskStatus"]["hdd-1"]["diskUUID"] = ""
        cluster, notes = read_with_notes(listed)
        told = ("node-9", "of-old", "pvc-logs-r-3c4d5e6f", "node-8 (pvc-orders)", "node-3/hdd-1")
        assert all(one in notes for one in told)
        assert cluster.nodes.alive.tolist() == [True, True, True, False]
        assert cluster.partitions.attached[cluster.partitions.names.index("pvc-orders")] == -1
        # nothing is left to copy from: it stays, and nobody makes an empty one of it
        assert stranded_names(cluster) == ["pvc-logs"]
        p = cluster.partitions.names.index("pvc-logs")
        for method in ("balance", "longhorn"):
            after = ek.solve(cluster, method).placement
            assert (after.node[after.first[p] : after.first[p + 1]] == -1).all()

    def test_a_replica_on_a_removed_node_is_built_anew(self, listed):
        orders = [o for o in listed["items"] if o["metadata"]["name"] == "pvc-orders-r-0b0b0b0b"]
        orders[0]["spec"]["nodeID"] = "node-9"
        named(listed, "Volume", "pvc-orders")["status"]["robustness"] = "degraded"
        named(listed, "Volume", "pvc-orders")["status"]["currentNodeID"] = "node-1"
        cluster, notes = read_with_notes(listed)
        assert "node-9 (pvc-orders-r-0b0b0b0b)" in notes
        p = cluster.partitions.names.index("pvc-orders")
        for method in ("balance", "longhorn"):
            after = ek.solve(cluster, method).placement
            assert (after.node[after.first[p] : after.first[p + 1]] >= 0).all()

    def test_a_disk_whose_uuid_is_anothers_is_not_ready(self, listed):
        disks = named(listed, "Node", "node-1")["status"]["diskStatus"]
        disks["ssd-1"]["diskUUID"] = disks["hdd-1"]["diskUUID"]
        cluster, notes = read_with_notes(listed)
        assert cluster.nodes.alive.tolist() == [True, False, True, True]
        assert "node-1/ssd-1" in notes

    @pytest.mark.parametrize(
        "spec", [{"nodeSelector": ["gpu"]}, {"diskSelector": ["nvme"]}, {"dataEngine": "v2"}]
    )
    def test_what_no_disk_has_keeps_a_volume_where_it_is(self, listed, spec):
        orders = named(listed, "Volume", "pvc-orders")
        orders["spec"] |= spec | {"numberOfReplicas": 3}
        cluster, notes = read_with_notes(listed)
        assert "pvc-orders" in notes
        p = cluster.partitions.names.index("pvc-orders")
        rows = slice(cluster.placement.first[p], cluster.placement.first[p + 1])
        for method in ("balance", "longhorn"):
            found = ek.solve(cluster, method)
            assert found.placement.node[rows].tolist() == cluster.placement.node[rows].tolist()
        assert any("short of replicas" in one and "pvc-orders" in one for one in found.warnings)

    def test_volumes_go_to_disks_of_their_data_engine(self, listed):
        for name in ("node-2", "node-3"):
            named(listed, "Node", name)["spec"]["disks"]["hdd-1"]["diskType"] = "block"
        named(listed, "Volume", "pvc-logs")["spec"]["dataEngine"] = "v2"
        cluster, _ = read_with_notes(listed)
        found = ek.solve(cluster)
        p = cluster.partitions.names.index("pvc-logs")
        rows = found.placement.node[found.placement.first[p] : found.placement.first[p + 1]]
        block = [cluster.nodes.names.index(f"{name}/hdd-1") for name in ("node-2", "node-3")]
        assert {*block} <= {*rows.tolist()}

    @pytest.mark.parametrize(
        ("now", "keeps", "waits"),
        [
            (None, True, True),
            ("2026-03-03T07:09:59Z", True, True),
            ("2026-03-03T07:10:00Z", False, False),
        ],
    )
    def test_longhorn_waits_for_failed_replicas_so_long(self, listed, now, keeps, waits):
        node = named(listed, "Node", "node-2")
        node["status"]["conditions"][0] |= {"status": "False", "reason": "KubernetesNodeGone"}
        for name in ("pvc-logs-r-3c4d5e6f", "pvc-orders-r-0b0b0b0b"):
            named(listed, "Replica", name)["spec"]["failedAt"] = "2026-03-03T07:00:00Z"
        for name in ("pvc-logs", "pvc-orders"):
            named(listed, "Volume", name)["status"] |= {
                "robustness": "degraded", "currentNodeID": "node-1"
            }  # fmt: skip
        named(listed, "Replica", "pvc-torn-r-44444444")["spec"]["lastHealthyAt"] = BUILT
        options = {} if now is None else {"now": moment(now)}
        cluster, notes = read_with_notes(listed, **options)
        assert cluster.nodes.keeps.tolist() == [True, True, keeps, True]
        assert ("2026-03-03T07:10:00Z" in notes) == waits
        for scope in ("volume", "cluster"):
            found = ek.solve(cluster, "longhorn", options=ek.options.Longhorn(scope=scope))
            assert any("2026-03-03T07:10:00Z" in one for one in found.warnings) == waits
        assert (ek.solve(cluster).comparison.forced > 0) != waits

    def test_yaml_is_read_as_json_is(self, listed):
        import yaml

        before, text = registry.read(encoded(listed)), yaml.safe_dump(listed)
        documents = "---\n".join(yaml.safe_dump(one) for one in listed["items"])
        for form in (text, documents):
            after = registry.read(form.encode())
            assert (after.placement.node == before.placement.node).all()
            assert (after.nodes.capacity == before.nodes.capacity).all()


class TestFaults:
    def test_a_list_without_resources(self):
        empty = b'{\n    "apiVersion": "v1",\n    "items": [],\n    "kind": "List"\n}\n'
        assert faults_of(empty) == [("source", ["<bytes>"])]

    @pytest.mark.parametrize("part", [0.2, 0.5, 0.99])
    def test_a_truncated_file_says_where_it_ends(self, part):
        data = FILE.read_bytes()
        cut = data[: int(len(data) * part)]
        ((path, _),) = faults_of(cut)
        line = cut.count(b"\n") + 1
        assert path == f"<bytes>:{line}"

    def test_files_of_other_formats_are_not_ours(self, tmp_path):
        secrets = (
            b'{"apiVersion": "v1", "kind": "List", '
            b'"items": [{"apiVersion": "v1", "kind": "Secret"}]}'
        )
        assert faults_of(secrets) == [("<bytes>", secrets[:40])]
        kafka = b'{"version":1,"partitions":[]}'
        assert registry.read(kafka).native_format == "kafka"
        assert faults_of(kafka, format="longhorn") == [("source", ["<bytes>"])]

    def test_everything_wrong_is_listed_with_its_place(self, listed):
        items = listed["items"]
        at = {one["metadata"]["name"]: f"<bytes>: items[{i}]" for i, one in enumerate(items)}
        named(listed, "Volume", "pvc-cold")["spec"]["size"] = "-5"
        named(listed, "Volume", "pvc-logs")["spec"]["numberOfReplicas"] = -1
        named(listed, "Volume", "pvc-orders")["spec"]["dataLocality"] = "nearby"
        named(listed, "Node", "node-2")["status"]["diskStatus"]["hdd-1"]["storageMaximum"] = -1
        del named(listed, "Replica", "pvc-torn-r-33333333")["spec"]["volumeName"]
        named(listed, "Volume", "pvc-torn")["apiVersion"] = "longhorn.io/v1alpha1"
        found = faults_of(encoded(listed))
        assert set(found) >= {
            (f"{at['pvc-cold']}.spec.size", "-5"),
            (f"{at['pvc-logs']}.spec.numberOfReplicas", -1),
            (f"{at['pvc-orders']}.spec.dataLocality", "nearby"),
            (f"{at['node-2']}.status.diskStatus.hdd-1.storageMaximum", -1),
            (f"{at['pvc-torn-r-33333333']}.spec.volumeName", None),
            (f"{at['pvc-torn']}.apiVersion", "longhorn.io/v1alpha1"),
        }

    @pytest.mark.parametrize("time", ["0333-02-28T12:45:00Z", "yesterday"])
    def test_a_time_before_1970_is_refused_where_it_stands(self, listed, time):
        i = next(i for i, one in enumerate(listed["items"]) if one["kind"] == "Node")
        conditions = listed["items"][i]["status"]["conditions"]
        j = next(j for j, one in enumerate(conditions) if one["type"] == "Ready")
        conditions[j]["lastTransitionTime"] = time
        at = f"<bytes>: items[{i}].status.conditions[{j}].lastTransitionTime"
        assert faults_of(encoded(listed)) == [(at, time)]

    def test_what_is_wrong_is_said_once_and_not_of_all_that_name_it(self, listed):
        items = listed["items"]
        at = {one["metadata"]["name"]: f"<bytes>: items[{i}]" for i, one in enumerate(items)}
        named(listed, "Node", "node-1")["spec"]["allowScheduling"] = "yes"
        named(listed, "Volume", "pvc-logs")["spec"]["size"] = 5
        named(listed, "Volume", "pvc-torn")["apiVersion"] = "longhorn.io/v1alpha1"
        assert set(faults_of(encoded(listed))) == {
            (f"{at['node-1']}.spec.allowScheduling", "yes"),
            (f"{at['pvc-logs']}.spec.size", 5),
            (f"{at['pvc-torn']}.apiVersion", "longhorn.io/v1alpha1"),
        }

    def test_a_resource_twice(self, listed):
        listed["items"].append(deepcopy(listed["items"][0]))
        last = len(listed["items"]) - 1
        assert faults_of(encoded(listed)) == [
            (f"<bytes>: items[{last}].metadata.name", "pvc-cold"),
        ]  # fmt: skip

    def test_a_time_that_is_none(self, listed):
        replica = named(listed, "Replica", "pvc-logs-r-1a2b3c4d")
        replica["spec"]["healthyAt"] = "yesterday"
        place = listed["items"].index(replica)
        assert faults_of(encoded(listed)) == [
            (f"<bytes>: items[{place}].spec.healthyAt", "yesterday"),
        ]  # fmt: skip


class TestWriting:
    def test_nothing_changed_is_written_as_it_was_read(self, tmp_path):
        cluster = registry.read(FILE)
        (file,) = registry.write(cluster, tmp_path / "same.json", format="longhorn")
        assert file.read_bytes() == FILE.read_bytes()
        whole, steps, back = written(cluster, tmp_path / "same.json", cluster.placement.node)
        assert whole == json.loads(FILE.read_text())
        assert steps["steps"] == back["steps"] == []

    def test_a_move_in_steps(self, tmp_path):
        cluster = registry.read(FILE)
        node = cluster.placement.node.copy()
        node[cluster.native.replicas.names.index("pvc-logs-r-2b3c4d5e")] = 3
        _, back, there = written(cluster, tmp_path / "plan.json", node)
        hold, create, wait, delete, release = there["steps"]
        assert [step["step"] for step in there["steps"]] == [1, 2, 3, 4, 5]
        assert hold["target"]["name"] == release["target"]["name"] == "pvc-logs"
        assert hold["body"] == [
            {"op": "test", "path": "/spec/replicaAutoBalance", "value": "best-effort"},
            {"op": "replace", "path": "/spec/replicaAutoBalance", "value": "disabled"},
        ]
        assert release["body"] == [
            {"op": "test", "path": "/spec/replicaAutoBalance", "value": "disabled"},
            {"op": "replace", "path": "/spec/replicaAutoBalance", "value": "best-effort"},
        ]
        made = create["body"]
        assert create["verb"] == "create" and made["kind"] == "Replica" and "status" not in made
        listed = json.loads(FILE.read_text())
        disk = named(listed, "Node", "node-3")["status"]["diskStatus"]["hdd-1"]
        old = named(listed, "Replica", "pvc-logs-r-2b3c4d5e")
        new = made["metadata"]["name"]
        assert made["spec"] == old["spec"] | {
            "nodeID": "node-3", "diskID": disk["diskUUID"], "diskPath": "/var/lib/hdd-1/",
            "dataDirectoryName": f"pvc-logs-{new[-8:]}", "desireState": "stopped",
            "healthyAt": "", "lastHealthyAt": "",
        }  # fmt: skip
        assert made["metadata"]["labels"]["longhornnode"] == "node-3"
        assert made["metadata"]["labels"]["longhorndiskuuid"] == disk["diskUUID"]
        assert made["metadata"]["ownerReferences"] == old["metadata"]["ownerReferences"]
        assert (wait["verb"], wait["target"]["name"]) == ("wait", new)
        assert (delete["verb"], delete["target"]["name"]) == ("delete", "pvc-logs-r-2b3c4d5e")
        gone = [step["target"]["name"] for step in back["steps"] if step["verb"] == "delete"]
        built = [step["body"] for step in back["steps"] if step["verb"] == "create"]
        assert gone == [new]
        assert built[0]["spec"]["nodeID"] == "node-1"
        assert built[0]["spec"]["diskID"] == old["spec"]["diskID"]

    def test_commands_are_shell_that_hands_kubectl_what_the_step_says(self, tmp_path):
        cluster = registry.read(FILE)
        node = cluster.placement.node.copy()
        node[cluster.native.replicas.names.index("pvc-logs-r-2b3c4d5e")] = 3
        _, _, there = written(cluster, tmp_path / "plan.json", node)
        fake = tmp_path / "kubectl"
        fake.write_text(
            '#!/bin/sh\nfor one in "$@"; do printf "%s\\n" "$one"; done\n[ -t 0 ] || cat\n'
        )
        fake.chmod(0o755)
        hold, create, wait, delete, _ = (
            subprocess.run(
                ["sh", "-c", step["command"]], env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=20,
            ).stdout.splitlines()
            for step in there["steps"]
        )  # fmt: skip
        assert hold[:6] == [
            "-n", "longhorn-system", "patch", "volumes.longhorn.io", "pvc-logs", "--type=json",
        ]  # fmt: skip
        assert json.loads(hold[7]) == there["steps"][0]["body"]
        assert create[:5] == ["-n", "longhorn-system", "create", "-f", "-"]
        assert json.loads(create[5]) == there["steps"][1]["body"]
        assert wait == []  # what the fake says is taken for a time
        assert delete[2:] == ["delete", "replicas.longhorn.io", "pvc-logs-r-2b3c4d5e"]

    def test_only_what_changes_is_written_otherwise(self, tmp_path):
        cluster = registry.read(FILE)
        node = cluster.placement.node.copy()
        node[cluster.native.replicas.names.index("pvc-orders-r-0a0a0a0a")] = 3
        whole, _, _ = written(cluster, tmp_path / "plan.json", node)
        before = json.loads(FILE.read_text())
        changed = [
            (old["kind"], old["metadata"]["name"])
            for old, new in zip(before["items"], whole["items"], strict=True)
            if old != new
        ]
        assert sorted(changed) == [
            ("Node", "node-1"), ("Node", "node-3"), ("Replica", "pvc-orders-r-0a0a0a0a"),
        ]  # fmt: skip
        disk = named(whole, "Node", "node-3")["status"]["diskStatus"]["hdd-1"]
        assert disk["storageScheduled"] == 40 * 2**30
        assert disk["storageAvailable"] == (200 - 1 - 15) * 2**30
        assert len(disk["scheduledReplica"]) == 1
        left = named(whole, "Node", "node-1")["status"]["diskStatus"]["ssd-1"]
        assert "pvc-orders-r-0a0a0a0a" not in left["scheduledReplica"]

    def test_a_detached_volume_is_waited_for(self, tmp_path):
        cluster = registry.read(FILE)
        node = cluster.placement.node.copy()
        node[cluster.native.replicas.names.index("pvc-cold-r-11111111")] = 3
        _, _, there = written(cluster, tmp_path / "plan.json", node)
        first = there["steps"][0]
        assert (first["verb"], first["target"]["kind"]) == ("wait", "Volume")
        assert first["until"] == ".status.state=attached"

    def test_data_locality_is_held_too(self, listed, tmp_path):
        named(listed, "Volume", "pvc-logs")["spec"]["dataLocality"] = "best-effort"
        cluster = registry.read(encoded(listed))
        node = cluster.placement.node.copy()
        node[cluster.native.replicas.names.index("pvc-logs-r-2b3c4d5e")] = 3
        _, _, there = written(cluster, tmp_path / "plan.json", node)
        paths = [one["path"] for one in there["steps"][0]["body"] if one["op"] == "replace"]
        assert paths == ["/spec/replicaAutoBalance", "/spec/dataLocality"]

    def test_where_nothing_balances_nothing_is_held(self, listed, tmp_path):
        named(listed, "Setting", "replica-auto-balance")["value"] = "disabled"
        cluster = registry.read(encoded(listed))
        node = cluster.placement.node.copy()
        node[cluster.native.replicas.names.index("pvc-orders-r-0a0a0a0a")] = 3
        _, _, there = written(cluster, tmp_path / "plan.json", node)
        assert [step["verb"] for step in there["steps"]] == ["create", "wait", "delete"]

    def test_a_missing_replica_is_added_and_stays(self, listed, tmp_path):
        listed["items"].remove(named(listed, "Replica", "pvc-torn-r-44444444"))
        cluster = registry.read(encoded(listed))
        node = cluster.placement.node.copy()
        assert node[-1] == -1
        node[-1] = 3
        whole, back, there = written(cluster, tmp_path / "plan.json", node)
        assert [step["verb"] for step in there["steps"]] == ["patch", "create", "wait", "patch"]
        assert back["steps"] == []
        assert whole["items"][-1] == there["steps"][1]["body"] | {
            "spec": there["steps"][1]["body"]["spec"]
            | {"desireState": "running", "healthyAt": "2026-03-03T07:00:00Z"},
            "status": {"currentState": "running"},
        }
        assert named(whole, "Volume", "pvc-torn")["status"]["robustness"] == "healthy"

    def test_a_replica_that_only_goes(self, tmp_path):
        cluster = registry.read(FILE)
        node = cluster.placement.node.copy()
        node[cluster.native.replicas.names.index("pvc-logs-r-2b3c4d5e")] = -1
        whole, back, there = written(cluster, tmp_path / "plan.json", node)
        assert [step["verb"] for step in there["steps"]] == ["patch", "delete", "patch"]
        assert [step["verb"] for step in back["steps"]] == ["patch", "create", "wait", "patch"]
        assert len(whole["items"]) == len(cluster.native.objects.items) - 1

    def test_where_room_is_short_the_step_says_so(self, listed, tmp_path):
        for name in ("node-1", "node-2", "node-3"):
            for disk in named(listed, "Node", name)["status"]["diskStatus"].values():
                disk["storageAvailable"] = 0
        cluster = registry.read(encoded(listed))
        names, node = cluster.native.replicas.names, cluster.placement.node.copy()
        for replica, disk in (("pvc-logs-r-1a2b3c4d", 2), ("pvc-orders-r-0b0b0b0b", 1)):
            node[names.index(replica)] = disk
        _, _, there = written(cluster, tmp_path / "plan.json", node)
        reasons = [step["reason"] for step in there["steps"] if step["verb"] == "create"]
        assert len(reasons) == 2
        assert all("there may be no room for both" in reason for reason in reasons)

    def test_a_swap_of_two_replicas_of_a_volume_changes_nothing(self):
        cluster = registry.read(FILE)
        names, node = cluster.native.replicas.names, cluster.placement.node.copy()
        a, b = names.index("pvc-logs-r-1a2b3c4d"), names.index("pvc-logs-r-2b3c4d5e")
        node[[a, b]] = node[[b, a]]
        after = cluster.placement.replaced(node, cluster.placement.leader)
        assert changes(cluster, names, after) == []

    def test_what_was_not_read_from_resources_is_refused(self, tmp_path):
        cluster = cluster_of([Host(name="a", disks=[Disk(name="d", maximum=9)])], [])
        with pytest.raises(InvalidInput, match="was not read from Longhorn's resources"):
            registry.write(cluster, tmp_path / "x.json", format="longhorn")
        assert list(tmp_path.iterdir()) == []

    def test_no_volume_is_left_without_replicas(self, tmp_path):
        cluster = registry.read(FILE)
        node = np.where(cluster.placement.owner == 2, -1, cluster.placement.node)
        with pytest.raises(InvalidInput, match="pvc-orders: would be left without replicas"):
            written(cluster, tmp_path / "x.json", node)


@given(data=st.data())
def test_steps_lead_from_one_placement_to_the_other_and_back(data, tmp_path_factory):
    cluster = registry.read(built_once())
    nodes = st.integers(0, len(DISKS) - 1)
    size = len(cluster.placement.node)
    node = data.draw(st.lists(nodes, min_size=size, max_size=size))
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    whole, back, there = written(cluster, path, node)
    place, fewest = replayed(cluster, there["steps"])
    before = np.bincount(cluster.placement.owner)
    after = registry.read(path)
    assert all(fewest[name] >= before[p] for p, name in enumerate(cluster.partitions.names))
    for p, name in enumerate(cluster.partitions.names):
        wanted = sorted(
            DISKS[n] for n, q in zip(node, cluster.placement.owner, strict=True) if q == p
        )
        own = [one for one in place if one.startswith(f"{name}-r-")]
        assert sorted(place[one] for one in own) == wanted
        rows = after.placement.node[after.placement.owner == p]
        assert sorted(DISKS[n] for n in rows) == wanted
    returned, _ = replayed(after, back["steps"])
    count = [sorted(place.values()) for place in (returned, replayed(cluster, [])[0])]
    assert count[0] == count[1]
    assert len(whole["items"]) == len(cluster.native.objects.items)


def test_the_command_line_checks_and_solves_such_a_file(tmp_path, capsys):
    assert main(["check", str(FILE)]) in (0, 1)
    assert "4 nodes" in capsys.readouterr().out
    out = tmp_path / "plan.json"
    assert main(["solve", str(FILE), "-o", str(out)]) in (0, 1, 3)
    text = capsys.readouterr().out
    for file in (out, tmp_path / "plan.patches.json", tmp_path / "plan.undo.json"):
        assert f"wrote {file}" in text and file.exists()
    before, after = registry.read(FILE), registry.read(out)
    assert list(after.partitions.names) == list(before.partitions.names)
    assert ek.solve(after).comparison.moves == 0


def test_the_command_line_says_what_is_wrong_with_a_file(tmp_path, capsys):
    cut = tmp_path / "cut.json"
    cut.write_bytes(FILE.read_bytes()[:30_000])
    assert main(["check", str(cut)]) == 2
    assert f"{cut}:" in capsys.readouterr().err
