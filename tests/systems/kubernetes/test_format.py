"""kubectl prints it, we read it; we write evictions and patches, kubectl takes them."""

import json
import shlex
import subprocess
from copy import deepcopy

import numpy as np
import pytest

from evenkeel.model.errors import FaultList, InvalidInput
from evenkeel.solving import solve
from evenkeel.systems import registry
from evenkeel.systems.kubernetes.constraints import LEFT_OUT, holds
from evenkeel.systems.kubernetes.resources import Requirement
from evenkeel.systems.kubernetes.workloads import quantity
from tests.support import places
from tests.support.systems.kubernetes import HOST, ZONE, listed, node, pod, text

DATA = places.DATA / "formats" / "kubernetes"
NODES, PODS = (json.loads((DATA / f"{name}.json").read_text()) for name in ("nodes", "pods"))
GI = 2.0**30


def read():
    return registry.read(DATA)


def faults_of(*sources):
    with pytest.raises(InvalidInput) as caught:
        registry.read([*sources], format="kubernetes")
    return [(fault.path.removeprefix("<bytes>: "), fault.value) for fault in caught.value.faults]


def require_of(*pods, nodes):
    """The nodes that the first workload may use, as a text of digits."""
    cluster = registry.read(listed(*nodes, *pods))
    require = cluster.rules[cluster.partitions.rule[0]].require
    mask = cluster.nodes.tags[require[0][1:]] if require else [True] * len(nodes)
    return "".join(str(int(one)) for one in mask)


class TestReading:
    def test_workloads_are_partitions_and_their_pods_replicas(self):
        cluster = read()
        assert list(cluster.partitions.names) == ["shop/ReplicaSet/web-6d4f", "shop/StatefulSet/db"]
        assert list(cluster.nodes.names) == ["control-1", *(f"worker-{i}" for i in range(1, 7))]
        assert cluster.placement.nodes.tolist() == [[1, 1, 1, 4, 6, -1], [1, 2, 5, -1, -1, -1]]
        assert cluster.placement.leader.tolist() == [-1, -1]
        assert cluster.partitions.min_active.tolist() == [4, 0]

    def test_a_list_of_nothing_is_read_beside_others(self):
        nothing = text({"apiVersion": "v1", "items": [], "kind": "List", "metadata": {}})
        assert registry.read([text(NODES), text(PODS), nothing]).placement.nodes.shape == (2, 6)
        with pytest.raises(InvalidInput, match="lists no node"):
            registry.read(nothing, format="kubernetes")

    def test_requests_and_what_stays_is_taken_from_the_nodes(self):
        cluster = read()
        assert cluster.dimensions == ("cpu", "memory", "pods")
        # what runs before asks for more than what runs
        assert cluster.partitions.load.voter.tolist() == [[1, 0.5 * GI, 1], [0.5, 2 * GI, 1]]
        daemon = [0.02, 100 * 2.0**20, 1]
        assert cluster.nodes.capacity[1].tolist() == pytest.approx(
            [3.92 - daemon[0], 16 * GI - daemon[1], 109]
        )
        # a pod that nobody owns stays, one that is done takes nothing
        assert cluster.nodes.capacity[2].tolist() == pytest.approx(
            [3.92 - daemon[0] - 0.4, 15 * GI - daemon[1], 108]
        )

    def test_what_a_pod_asks_for_as_a_whole_stands_for_its_containers(self):
        heavy = {"resources": {"requests": {"cpu": "3", "memory": "1Gi"}}}
        pods = [
            pod("p-1", containers=[heavy, heavy], resources={"requests": {"cpu": "2500m"}}),
            pod("q-1", owner="q", resources={"requests": {"cpu": "1"}}, overhead={"cpu": "0.5"}),
        ]
        load = registry.read(listed(node(), *pods)).partitions.load.voter
        assert load.tolist() == [[2.5, 2 * GI, 1], [1.5, 0, 1]]
        wrong = pod(resources={"requests": {"cpu": "much"}})
        assert faults_of(listed(node(), wrong)) == [
            ("items[1]: spec.resources.requests.cpu", "much")
        ]

    @pytest.mark.parametrize(
        ("reason", "cpu"), [("", 4.5), ("Deferred", 4.5), ("Infeasible", 2.5)]
    )  # fmt: skip
    def test_a_resize_counts_with_the_larger_amount(self, reason, cpu):
        def held(name, amount):
            own = {"requests": {"cpu": amount}}
            return {"name": name, "allocatedResources": {"cpu": "1"}, "resources": own}

        asks = [
            {"name": name, "resources": {"requests": {"cpu": amount}}} for name, amount in
            [("grows", "3"), ("shrinks", "500m"), ("new", "0")]
        ]  # fmt: skip
        one = pod(containers=asks)
        one["status"] |= {
            "containerStatuses": [held("grows", "1"), held("shrinks", "1500m"), {"name": "new"}],
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
        }
        whole = pod("q-1", owner="q", resources={"requests": {"cpu": "2"}})
        whole["status"] |= {"allocatedResources": {"cpu": "7"}, "resources": {}}
        beside = {"name": "s", "restartPolicy": "Always"}
        sidecar = pod("r-1", owner="r", initContainers=[beside, beside | {"name": "t"}])
        sidecar["status"]["initContainerStatuses"] = [held("s", "2"), held("t", "0")]
        load = registry.read(listed(node(), one, whole, sidecar)).partitions.load.voter
        assert load[:, 0].tolist() == [cpu, 7, 3]

    @pytest.mark.parametrize(
        ("expression", "nodes"),
        [
            ("nodepool=old", [0]), ("cloud.google.com/gke-nodepool!=old", [1, 2]),
            ("box_type=warm", [1]), ("zone=z", [0]), (f"{ZONE}=z", [0]), (f"{HOST}=c", [2]),
            ("+dedicated", [2]), ("disk=ssd,box_type!=hot", [1]),
        ],
    )  # fmt: skip
    def test_labels_name_nodes(self, expression, nodes):
        pool = "cloud.google.com/gke-nodepool"
        cluster = registry.read(
            listed(
                node("a", labels={pool: "old", "box_type": "hot", ZONE: "z", "disk": "ssd"}),
                node("b", labels={pool: "new", "box_type": "warm", "disk": "ssd"}),
                node("c", labels={"dedicated": ""}),
                pod(),
            )
        )
        assert np.flatnonzero(~cluster.drain(expression).nodes.keeps).tolist() == nodes

    def test_states_of_nodes(self):
        nodes = read().nodes
        assert nodes.alive.tolist() == [True] * 6 + [False]
        assert nodes.accepts.tolist() == [True] * 5 + [False] * 2

    def test_spread_and_anti_affinity_are_rules(self):
        cluster = read()
        assert cluster.topology.tiers == ("region", "zone")
        web, db = (cluster.rules[r] for r in cluster.partitions.rule)
        assert web.skew == {"zone": 1, "node": (1, "soft")}
        assert web.spread == {"node": None}
        assert db.spread == {"node": 1}
        allowed = cluster.nodes.tags[db.require[0].removeprefix("+")]
        assert allowed.tolist() == [False, True, True, False, True, True, True]
        assert len(cluster.forbidden) == 0

    def test_too_few_domains_count_as_empty_ones(self):
        own = {"labelSelector": {"matchLabels": {"app": "p"}}, "maxSkew": 2, "minDomains": 3,
               "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}  # fmt: skip
        nodes = [node(name, labels={"rack": f"r{i % 2}"}) for i, name in enumerate("abc")]
        rule = registry.read(listed(*nodes, pod(topologySpreadConstraints=[own]))).rules[0]
        assert rule.spread == {"node": None, "rack": 2} and not rule.skew
        own = own | {"minDomains": 2}
        rule = registry.read(listed(*nodes, pod(topologySpreadConstraints=[own]))).rules[0]
        assert rule.skew == {"rack": 2}

    def test_zones_that_no_node_has_can_be_asked_for(self):
        own = {"labelSelector": {"matchLabels": {"app": "p"}}, "maxSkew": 1,
               "topologyKey": "topology.kubernetes.io/zone",
               "whenUnsatisfiable": "DoNotSchedule"}  # fmt: skip
        cluster = registry.read(listed(node(), pod(topologySpreadConstraints=[own])))
        assert cluster.topology.tiers == ("zone",)
        assert cluster.rules[0].skew == {"zone": 1}

    def test_what_no_rule_says_is_noted(self):
        wished = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}
        near = {"podAffinity": {"x": 1}, "nodeAffinity": wished}
        both = [{"labelSelector": {"matchLabels": {"x": "y"}}, "maxSkew": 1, "topologyKey": "z",
                 "whenUnsatisfiable": "DoNotSchedule"}]  # fmt: skip
        pods = [
            pod(affinity=near, labels={"x": "y"}, topologySpreadConstraints=both),
            pod("q-1", labels={"x": "y"}),
        ]
        del pods[1]["metadata"]["ownerReferences"]
        cluster = registry.read(listed(node(labels={"z": "1"}), *pods))
        notes = cluster.native.notes.names(LEFT_OUT)
        partly, told = registry.find("kubernetes").left_out(cluster)
        assert told == f"left out: {', '.join(notes)}"
        assert partly.startswith("pods of namespace d only")
        assert [note.partition(": ")[2] for note in notes] == [
            "a spread by z that counts others' pods, too", "affinity with other pods",
            "preferred nodes",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("condition", "labels", "result"),
        [
            (("In", ["a", "b"]), {"k": "b"}, True), (("In", ["a"]), {}, False),
            (("NotIn", ["a"]), {}, True), (("NotIn", ["a"]), {"k": "a"}, False),
            (("Exists", None), {"k": ""}, True), (("DoesNotExist", None), {"k": ""}, False),
            (("Gt", ["5"]), {"k": "10"}, True), (("Lt", ["5"]), {"k": "10"}, False),
            (("Gt", ["five"]), {"k": "10"}, False), (("Gt", ["5"]), {}, False),
        ],
    )  # fmt: skip
    def test_conditions(self, condition, labels, result):
        assert holds(Requirement("k", *condition), labels) is result

    def test_affinity_selectors_and_taints_say_which_nodes_are_eligible(self):
        nodes = [
            node("a", labels={"disk": "ssd"}), node("b", labels={"disk": "hdd"}),
            node("c", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]),
            node("d", taints=[{"key": "soft", "effect": "PreferNoSchedule"}]),
        ]  # fmt: skip
        assert require_of(pod(), nodes=nodes) == "1101"
        gpu = {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}
        assert require_of(pod(tolerations=[gpu]), nodes=nodes) == "1111"
        assert require_of(pod(tolerations=[gpu | {"value": "no"}]), nodes=nodes) == "1101"
        assert require_of(pod(nodeSelector={"disk": "hdd"}), nodes=nodes) == "0100"
        terms = [
            {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["d"]}]}, {},
        ]  # fmt: skip
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        assert require_of(pod(affinity={"nodeAffinity": required}), nodes=nodes) == "1001"

    def test_one_list_or_many_files_or_single_objects(self):
        items = [*NODES["items"], *PODS["items"]]
        want = read()
        for files in ([listed(*items)], [text(one) for one in items]):
            cluster = registry.read(files)
            assert cluster.placement.nodes.tolist() == want.placement.nodes.tolist()
            assert cluster.rules == want.rules


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("250m", 0.25), ("1Gi", GI), ("1e3", 1000), ("1E3", 1000), ("2E", 2e18), (2, 2),
        ("1.5k", 1500), ("100n", 1e-7), ("", None), ("-1", None), ("1GiB", None), ("1e99", None),
        ("٣", None), ("0x10", None), ("inf", None),
    ],
)  # fmt: skip
def test_quantities(given, value):
    faults = FaultList()
    found = quantity(faults, "at", given)
    assert bool(faults) is (value is None)
    assert found == pytest.approx(value or 0.0)


class TestBadInput:
    def test_everything_wrong_is_listed_with_its_place(self):
        hostile = pod("$(id)")
        heavy = {"resources": {"requests": {"cpu": "much"}}}
        pods = [pod("p-1"), pod("p-1"), hostile, pod("p-3", containers=[heavy])]
        found = faults_of(listed(node(), node(), *pods))
        assert found == [
            ("items[1]: metadata.name", "a"),
            ("items[3]: metadata.name", "p-1"),
            ("items[4]: metadata.name", "$(id)"),
            ("items[5]: spec.containers[0].resources.requests.cpu", "much"),
        ]

    @pytest.mark.parametrize("name", ["../x", "a\nb", "A", "-a", "a'b", "x" * 300, "a\n"])
    @pytest.mark.parametrize("where", ["pod", "node", "namespace", "owner"])
    def test_names_that_kubernetes_would_not_take(self, name, where):
        own, one = node(), pod()
        if where == "node":
            own["metadata"]["name"] = name
        elif where == "owner":
            one["metadata"]["ownerReferences"][0]["name"] = name
        else:
            one["metadata"]["name" if where == "pod" else "namespace"] = name
        assert any(value == name[:60] for _, value in faults_of(listed(own, one)))

    def test_nulls_are_not_there(self):
        one = pod(affinity=None, tolerations=None)
        one["metadata"]["labels"] = None
        one["spec"]["nodeName"] = ""
        one["spec"]["containers"] = None
        assert registry.read(listed(node(), one)).placement.nodes.tolist() == [[-1]]


class TestWriting:
    def test_evicted_pods_are_those_that_move(self, tmp_path):
        cluster = read()
        result = solve(cluster)
        assert not [one for one in result.violations if one.hard]
        files = registry.write(cluster, tmp_path / "plan.json", placement=result)
        assert [one.name for one in files] == ["plan.json", "plan.sh", "plan.patches.json"]
        after = {"items": deepcopy(PODS["items"])}
        by_name = {one["metadata"]["name"]: one for one in after["items"]}
        for one in json.loads(files[0].read_text())["evictions"]:
            own = by_name[one["pod"]]
            assert own["spec"]["nodeName"] == one["from"] != one["to"]
            own["spec"]["nodeName"] = one["to"]
        pending = [one for one in by_name.values() if one["status"].get("phase") == "Pending"]
        again = registry.read(text(NODES), text(PODS | after))
        for p, row in enumerate(result.placement.nodes.tolist()):
            own = [n for n in again.placement.nodes[p].tolist() if n >= 0]
            wanted = [n for n in row if n >= 0]
            assert len(wanted) - len(own) == (len(pending) if p == 0 else 0)
            assert not [n for n in own if own.count(n) > wanted.count(n)]

    def test_patches_prefer_the_planned_nodes_and_keep_what_was_preferred(self, tmp_path):
        term = {"weight": 7, "preference": {"matchExpressions": []}}
        near = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
        one = pod("web-1f-a", owner="web-1f", labels={"pod-template-hash": "1f"}, affinity=near)
        cluster = registry.read(
            listed(node("a"), node("b", labels={"kubernetes.io/hostname": "B'"}), one)
        )
        target = cluster.placement.replaced(1 - cluster.placement.node, cluster.placement.leader)
        files = registry.write(cluster, tmp_path / "p.json", placement=target)
        (patch,) = json.loads(files[2].read_text())["patches"]
        assert (patch["kind"], patch["name"]) == ("Deployment", "web")
        affinity = patch["body"]["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
        old, new = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
        assert old == term
        assert new["preference"]["matchExpressions"][0]["values"] == ["B'"]
        *_, body = shlex.split(patch["command"])
        assert json.loads(body) == patch["body"]

    def test_nodes_that_are_drained_are_cordoned_before_their_pods_leave(self, tmp_path):
        pods = [pod(f"web-1f-{i}", owner="web-1f", on=name) for i, name in enumerate("ab")]
        cluster = registry.read(listed(node("a"), node("b"), node("c"), *pods))
        files = registry.write(
            cluster, tmp_path / "plan.json", placement=solve(cluster.drain(["a"]))
        )
        assert json.loads(files[0].read_text())["cordon"] == []
        files = registry.write(
            cluster.drain(["a"]), tmp_path / "p.json", placement=solve(cluster.drain(["a"]))
        )
        assert json.loads(files[0].read_text())["cordon"] == ["a"]
        assert "}\nkubectl cordon a\nevict " in files[1].read_text()

    def test_the_script_evicts_by_the_api(self, tmp_path):
        cluster = read()
        script = registry.write(cluster, tmp_path / "plan.sh", placement=solve(cluster))[0]
        kubectl = tmp_path / "kubectl"
        kubectl.write_text(
            '#!/bin/sh\nprintf "%s\\n" "$*" >> "$CALLS"\n'
            '[ "$1" != create ] || { cat; echo; } >> "$CALLS"\n'
        )
        kubectl.chmod(0o755)
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CALLS": str(tmp_path / "calls")}
        ran = subprocess.run(["sh", script], env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        calls = (tmp_path / "calls").read_text().splitlines()
        calls = [one for one in calls if not one.startswith("cordon ")]
        for call, body in zip(calls[0::3], calls[1::3], strict=True):
            metadata = json.loads(body)["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
            assert call == f"create --raw {path} -f -"
