"""Kubernetes: situations that operators reported."""

import json
import re
from collections import Counter

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.audit import audit

FILES = ("nodes.json", "pods.json", "volumes.json")
NEVER = ("--level", "none")


def evicted(case, *words):
    """Return the answer of a solve, and the pods that it evicts, by name: from where to where."""
    given = [name for name in FILES if case.path(name).exists()]
    answer = case.run("solve", *given, *words, "-o", "plan.json")
    found = json.loads(case.written("plan.json"))["evictions"]
    return answer, {one["pod"]: (one["from"], one["to"]) for one in found}


@pytest.mark.parametrize("name", ["kubernetes/two-constraints", "kubernetes/tainted-groups"])
def test_nothing_moves_where_constraints_leave_no_better_place(public, name):
    assert evicted(public(name))[1] == {}


def test_no_pod_is_placed_where_no_node_has_the_label_of_a_spread(public):
    answer, moved = evicted(public("kubernetes/spread-by-a-label-that-no-node-has"))
    assert (answer.code, moved) == (4, {})
    said = "so that none takes the pods: tenant-root/StatefulSet/opensearch-logs-nodes (topology"
    assert said in answer.text
    assert "a spread by topology" not in answer.text


def test_two_pods_stay_together_while_a_node_is_down(public):
    answer, moved = evicted(public("kubernetes/anti-affinity-and-a-node-down"), *NEVER)
    assert (answer.code, moved) == (4, {}) and "1 same node" in answer.text


def test_requests_that_differ_break_nothing(public):
    case = public("kubernetes/requests-differ")
    assert case.run("check", "nodes.json", "pods.json").code == 0
    answer, moved = evicted(case, *NEVER)
    assert (answer.code, moved) == (0, {})
    assert (
        "pods of default/StatefulSet/db request different amounts: each counts as the largest, and "
        "the node of one that requests less as so much larger"
    ) in answer.text


@pytest.mark.parametrize(
    "name", ["kubernetes/pods-terminating-on-a-dead-node", "kubernetes/evicted-and-completed-pods"]
)
def test_pods_that_end_or_ended_take_nothing(public, name):
    case = public(name)
    assert case.run("check", "nodes.json", "pods.json").code == 0
    answer, moved = evicted(case)
    assert (answer.code, moved) == (0, {})


def test_a_pod_makes_room_for_one_that_is_pending(public):
    case = public("kubernetes/pending-for-want-of-a-defragmentation")
    answer, moved = evicted(case, *NEVER)
    assert answer.code == 0 and "unassigned 1 -" in answer.text
    assert len(moved) == 1 and next(iter(moved)).startswith("small-")


def test_nothing_comes_to_a_node_under_disk_pressure(public):
    answer, moved = evicted(public("kubernetes/node-with-disk-pressure"))
    assert answer.code == 0
    assert [*moved.values()] == [("n1", "n3")] * 3


def test_a_pod_takes_what_it_asks_for_while_it_starts(public):
    answer = public("kubernetes/init-containers-and-a-sidecar").run(
        "check", "nodes.json", "pods.json"
    )
    assert answer.code == 0
    assert "97.5% 25.0%" in answer.text


class TestVolumes:
    def test_no_pod_leaves_the_zone_of_its_volume(self, public):
        case = public("kubernetes/zonal-volumes")
        nodes = json.loads(case.path("nodes.json").read_text())["items"]
        labels = {one["metadata"]["name"]: one["metadata"]["labels"] for one in nodes}
        zone = {name: own["topology.kubernetes.io/zone"] for name, own in labels.items()}
        assert all(zone[before] == zone[after] for before, after in evicted(case)[1].values())
        pods = json.loads(case.path("pods.json").read_text())["items"]
        emptied = pods[0]["spec"]["nodeName"]
        _, moved = evicted(case, "--drain", emptied)
        assert moved
        assert all(zone[before] == zone[after] for before, after in moved.values())

    def test_without_the_volumes_a_note_asks_for_them(self, public):
        answer = public("kubernetes/zonal-volumes").run("check", "nodes.json", "pods.json")
        assert "add kubectl get pv,pvc -A -o json" in answer.text


class TestReports:
    @pytest.mark.parametrize(
        ("name", "words", "code", "left", "said"),
        [
            (
                "kubernetes/local-path-drained", ("--drain", "w1"), 3, {"web-7d-1"},
                "still broken: 1 not kept",
            ),
            (
                "kubernetes/pending-by-volume-and-affinity", (), 4, set(),
                "affinity and taints and volumes",
            ),
            (
                "kubernetes/budget-of-one-replica", ("--drain", "a"), 3, {"web-77c-1"},
                "budgets default/issuer allow no disruption",
            ),
            ("kubernetes/rabbitmq-in-two-namespaces", (), 0, set(), "none broken"),
        ],
    )  # fmt: skip
    def test_what_leaves_and_what_is_said(self, public, name, words, code, left, said):
        answer, moved = evicted(public(name), *words)
        assert (answer.code, {*moved}) == (code, left)
        assert said in answer.text

    def test_pods_that_keep_apart_stay_and_others_move(self, public):
        _, moved = evicted(public("kubernetes/anti-affinity-and-utilisation"), "--level", "0")
        assert moved
        assert not {"app-5d4-1", "app-5d4-2"} & {*moved}
        assert {*moved.values()} == {("a", "b")}

    def test_owners_of_other_groups_are_patched_as_what_they_are(self, public):
        case = public("kubernetes/advanced-stateful-set")
        _, moved = evicted(case, "--drain", "a", "--exclude", "c")
        assert {*moved} == {"consumer-0", "consumer-1", "consumer-2"}
        (patch,) = json.loads(case.written("plan.patches.json"))["patches"]
        assert "patch statefulset.apps.kruise.io/consumer --type=merge" in patch["command"]
        assert patch["patchType"] == "application/merge-patch+json"


@pytest.mark.parametrize(
    ("name", "words", "code", "moved"),
    [
        ("kubernetes/racks-and-rows", NEVER, 0, {}),
        ("kubernetes/jobs-beside-a-spread", NEVER, 0, {"psg-1": ("n0", "n2")}),
        ("kubernetes/cordoned-zone", NEVER, 3, {}),
        ("kubernetes/most-pods-of-a-node", NEVER, 4, {}),
    ],
)
def test_pods_that_wait_or_crowd(public, name, words, code, moved):
    case = public(name)
    answer, found = evicted(case, *words)
    assert (answer.code, found) == (code, moved)
    reason = {3: "2 skew zone 1, 1 accepts no replicas", 4: "3 capacity pods"}
    assert reason.get(code, "none broken") in answer.text or code == 0


def test_pods_of_a_drained_node_keep_apart(public):
    _, moved = evicted(public("kubernetes/bookie-drained"), *NEVER, "--drain", "w0")
    assert moved["bookie-0"][1] in ("w3", "w4")
    assert moved["seg-0"][1] in ("w1", "w2")
    assert len(moved) == 2


def test_yaml_is_read(public):
    case = public("kubernetes/two-pods-in-one-zone-as-yaml")
    answer = case.run("solve", "nodes.yaml", "pods.yaml", *NEVER, "-o", "plan.json")
    assert answer.code == 0 and "skew 1 -" in answer.text
    (moved,) = json.loads(case.written("plan.json"))["evictions"]
    assert moved["from"] in ("n2", "n3") and moved["to"] in ("n4", "n5")


@pytest.mark.parametrize(
    ("name", "words", "moved"),
    [
        ("kubernetes/mon-drained", ("--drain", "w2"), {"rook-ceph-mon-b-f96-n": ("w2", "w4")}),
        ("kubernetes/drain-of-a-terminating-pod", ("--drain", "n1"), {}),
        (
            "kubernetes/budget-of-half", ("--drain", "n0"),
            {"web-5-0": ("n0", "n2"), "web-5-1": ("n0", "n1")},
        ),
        ("kubernetes/out-of-service", (), {"db-0": ("n0", "n1"), "db-2": ("n0", "n2")}),
    ],
)  # fmt: skip
def test_pods_of_nodes_that_are_emptied_or_lost(public, name, words, moved):
    answer, found = evicted(public(name), *NEVER, *words)
    assert (answer.code, found) == (0, moved)
    assert "replicas without another in their place" not in answer.text


def test_a_pod_with_a_local_volume_stays_on_a_drained_node(public):
    answer, moved = evicted(public("kubernetes/drain-of-a-local-volume"), *NEVER, "--drain", "n0")
    assert answer.code in (3, 4)
    assert {*moved} == {"frontend-66-0", "geo-6d-0"}
    assert "mongodb-geo" in answer.text


def test_a_new_node_takes_its_share(public):
    answer, moved = evicted(public("kubernetes/new-node-takes-its-share"), *NEVER)
    assert (answer.code, [to for _, to in moved.values()]) == (0, ["n3"] * 3)


def test_pods_of_two_budgets_are_not_evicted(public):
    answer, moved = evicted(public("kubernetes/pods-of-two-budgets"), *NEVER, "--drain", "n0")
    assert (answer.code, moved) == (3, {})
    assert "several budgets select the pods of default/ReplicaSet/web-5" in answer.text


@pytest.mark.parametrize(
    ("name", "code", "places"),
    [
        ("kubernetes/zone-without-room", 3, ["a1", "b1"]),
        ("kubernetes/zone-dead-behind-a-spread", 4, ["a1", "a2"]),
        ("kubernetes/local-volumes-all-on-one-node", 3, ["wrk3"]),
        ("kubernetes/third-pod-of-two-zones", 0, ["a1", "a2", "b1"]),
        ("kubernetes/node-without-a-zone", 0, ["z1", "z1", "z2", "z3", "z2|z3"]),
        ("kubernetes/dead-zone-honoured-as-tainted", 0, ["a"] * 5 + ["b"] * 4),
    ],
)
def test_pending_pods_get_a_place_that_the_spread_allows(public, name, code, places):
    case = public(name)
    answer, moved = evicted(case, *NEVER)
    assert (answer.code, moved) == (code, {})
    cluster = ek.read([str(case.path(one)) for one in FILES if case.path(one).exists()])
    placement = ek.solve(cluster, goals=ek.Goals(level=None)).placement
    pods = [p for p, one in enumerate(cluster.partitions.names) if "other" not in one]
    first, names = placement.first, cluster.nodes.names
    found = [names[n] for p in pods for n in placement.node[first[p] : first[p + 1]] if n >= 0]
    if name == "kubernetes/dead-zone-honoured-as-tainted":
        assert sorted(one[0] for one in found) in (places, ["a"] * 4 + ["b"] * 5)
    elif name == "kubernetes/node-without-a-zone":
        assert sorted(found) in (["z1", "z1", "z2", "z2", "z3"], ["z1", "z1", "z2", "z3", "z3"])
    else:
        assert sorted(found) == places


@pytest.mark.parametrize(("name", "noted"), [("all.json", True), ("always.json", False)])
def test_a_budget_that_allows_nothing_now_is_noted(public, name, noted):
    case = public("kubernetes/crash-loop-behind-a-budget")
    answer = case.run("check", name, "--drain", "old")
    assert ("budgets default/web (0 of 2) allow no disruption now" in answer.text) == noted


def test_a_cordoned_node_takes_no_more_of_the_pods_it_has(public):
    case = public("kubernetes/cordoned-beside-pods")
    answer = case.run("solve", "nodes.json", "pods.json", "--level", "none", "--json")
    assert answer.code == 3 and answer.json["broken"] == {"unassigned": 1}
    cluster = ek.read([case.path(name) for name in ("nodes.json", "pods.json")])
    crowded = np.where(cluster.placement.node < 0, 0, cluster.placement.node).astype(np.int32)
    placed = cluster.placement.replaced(crowded, cluster.placement.leader)
    assert audit(cluster, placed).counts["not_accepted"] == 1


def test_a_volume_where_its_pod_may_not_be(public):
    answer, moved = evicted(public("kubernetes/volume-in-a-third-zone"), *NEVER)
    assert (answer.code, moved) == (4, {})
    assert "no node that takes replicas may hold some of them" in answer.text
    assert "taints and volumes" in answer.text


def test_a_spread_counts_all_that_it_selects(public):
    case = public("kubernetes/two-deployments-under-one-spread")
    assert case.run("check", "nodes.json", "pods.json").code == 1
    answer, moved = evicted(case, *NEVER)
    assert answer.code == 0
    assert [to for _, to in moved.values()] == ["a1", "a1"]
    case = public("kubernetes/volume-in-a-zone-that-is-full-by-spread")
    answer, moved = evicted(case, *NEVER)
    assert (answer.code, moved) == (3, {})
    assert "skew zone 1 of its group" in answer.text and "by volumes" in answer.text


def test_a_pod_that_is_resized_counts_with_the_larger_amount(public):
    case = public("kubernetes/resize-deferred")
    checked = case.run("check", "nodes.json", "pods.json")
    assert checked.code == 1 and "137.5% 50.0%" in checked.text
    answer, moved = evicted(case, *NEVER)
    assert (answer.code, moved) == (0, {"b-7f6d8-x1": ("n1", "n3")})


def test_a_rollout_is_spread_by_each_replica_set(public):
    cluster = ek.read(public("kubernetes/match-label-keys-in-a-rollout").path("all.json"))
    [move] = ek.solve(cluster, goals=ek.Goals(level=None)).moves
    assert move.partition.endswith("app1-7c9d5b6f44") and move.source == "node-1"


def test_a_worker_that_joins_gets_a_pod_without_a_patch_of_all_pods(public):
    case = public("kubernetes/worker-joins-behind-two-spreads")
    assert "skew 1 " in case.run("check", "nodes.json", "pods.json").text
    answer, moved = evicted(case)
    assert answer.code == 0 and "no fewer keep the rules (proven)" in answer.text
    assert "the fewest possible (proven)" in answer.text
    [(source, target)] = moved.values()
    assert target.startswith("ip-x-x-43-184.") and source[:13] in ("ip-x-x-16-25.", "ip-x-x-47-110")
    assert json.loads(case.written("plan.patches.json"))["patches"] == []


def test_pods_on_volumes_of_a_zone_find_no_place_beyond_the_skew(public):
    answer, moved = evicted(public("kubernetes/osds-on-volumes-of-a-zone"))
    assert (answer.code, moved) == (3, {})
    assert re.search("by volumes,? 1 skew node 1 of its group", answer.text)


def test_a_stateful_set_that_was_scaled_down_and_up(public):
    case = public("kubernetes/stateful-set-scaled-down-and-up")
    down = case.run("solve", "nodes.json", "down.json", "volumes.json", "--json")
    assert (down.code, down.json["moves"], down.json["broken"]) == (0, 0, {})
    answer, moved = evicted(case, *NEVER)
    assert (answer.code, moved) == (4, {})
    assert answer.text.count("2 require +eligible") == 2 and "1 capacity cpu" in answer.text
    more = ("--add-nodes", "2", "--table", "moves.csv", *NEVER)
    assert case.run("solve", *FILES, *more).code == 3
    assert case.written("moves.csv").splitlines()[1:] == [
        "move,sre/StatefulSet/test/test-4,0,,new0,"
    ]
    refused = case.run("solve", *FILES, *more, "-o", "plan.json")
    assert refused.code == 2 and "add what is new, read again" in refused.text


def test_a_pod_leaves_its_node_for_the_only_one_that_is_free(public):
    case, node = public("kubernetes/consul-drained-beside-an-excluded-node"), "ip-10-3-{}-{}.*"
    words = ("nodes.yaml", "pods.yaml", *NEVER, "--drain", node.format(0, 11), "-o", "plan.json")
    assert case.run("solve", *words).code == 0
    (moved,) = json.loads(case.written("plan.json"))["evictions"]
    assert moved["pod"] == "consul-server-0" and moved["to"].startswith("ip-10-3-2-12.")
    answer = case.run("solve", *words, "--exclude", node.format(2, 12), "--force")
    assert answer.code == 4 and json.loads(case.written("plan.json"))["evictions"] == []
    assert "4 spread node 1, 1 must be emptied, 1 accepts no replicas" in answer.text


def test_zones_that_nothing_asks_for_are_asked_for(public):
    case = public("kubernetes/three-pods-in-one-zone-without-a-spread")
    words = ("session.txt", "--spread", "zone=1", *NEVER)
    assert case.run("solve", *words, "-o", "plan.json").code == 0
    moved = json.loads(case.written("plan.json"))["evictions"]
    assert [one["pod"].rpartition("-")[0] for one in moved] == [
        "istiod-6b9",
        *["eventing-nats"] * 2,
    ]
    fewer = case.run("solve", *words, "--moves", "1", "--json")
    assert (fewer.code, fewer.json["moves"], fewer.json["broken"]) == (3, 1, {"spread": 2})


def test_an_operator_makes_a_pod_anew_without_a_patch(public):
    case = public("kubernetes/instances-of-an-operator-on-one-node")
    assert "same node 1" in case.run("check", "nodes.json", "pods.json").text
    answer, moved = evicted(case)
    assert (answer.code, moved) == (0, {"nautobot-cluster-6": ("hp2", "hp1")})
    assert "operators make the pods of nautobot/Cluster.postgresql.cnpg.io" in answer.text
    assert json.loads(case.written("plan.patches.json"))["patches"] == []


@pytest.mark.parametrize(
    ("node", "code", "leaves"), [("k1", 0, {"keycloak-test-postgresql-0"}), ("k2", 3, set())]
)
def test_a_budget_that_selects_some_pods_of_a_workload_keeps_these(public, node, code, leaves):
    answer, moved = evicted(public("kubernetes/budget-of-the-master"), *NEVER, "--drain", node)
    assert (answer.code, {*moved}) == (code, leaves)
    assert "keycloak-test-postgresql-pdb allow no disruption" in answer.text
    assert ("1 not kept" in answer.text) == (code == 3)


def test_a_rollout_waits_for_a_node(public):
    answer, moved = evicted(public("kubernetes/rollout-of-a-pooler-on-two-nodes"))
    assert (answer.code, moved) == (3, {})
    assert "spread node 1 of its group" in answer.text and "share a node" not in answer.text


def test_a_spread_looks_at_zones_without_volumes(public):
    case = public("kubernetes/spread-beyond-the-zones-of-volumes")
    answer, moved = evicted(case)
    assert (answer.code, moved) == (3, {})
    assert "spread 1 1" in answer.text and "nodes that take any are left in 2 only" in answer.text
    answer = case.run("solve", "nodes.json", "pods.json", *NEVER, "-o", "plan.json")
    (moved,) = json.loads(case.written("plan.json"))["evictions"]
    assert answer.code == 0 and moved["to"] == "ip-192-168-66-78"


class TestTables:
    """What ``kubectl get`` prints names the nodes of pods, and no rules."""

    FILES = ("pods.txt", "nodes.txt")

    def test_the_pod_that_shares_a_node_moves_alone(self, public):
        case = public("kubernetes/wide-after-a-restart")
        answer = case.run("solve", *self.FILES, "--table", "moves.csv")
        assert answer.code == 0 and "no requests, rules, taints" in answer.text
        _, move = case.written("moves.csv").splitlines()
        shared = "sa/ReplicaSet/if-kpi-analysis-74z01i4m-5f987746bc"
        assert re.fullmatch(rf"move,{shared},\d,sa-002,sa-003,", move)

    def test_no_eviction_is_written(self, public):
        case = public("kubernetes/wide-after-a-restart")
        answer = case.run("solve", *self.FILES, "-o", "plan.json")
        assert answer.code == 2 and "without the rules of pods: give -o json" in answer.text


@pytest.mark.parametrize(
    ("name", "files", "joins"),
    [
        (
            "kubernetes/controllers-of-an-old-release",
            ("nodes.txt", "pods.txt"),
            {"pxl0dockr010": 5},
        ),
        (
            "kubernetes/pods-and-nodes-in-one-answer",
            ("wide.txt",),
            {f"aks-scalardlpool-24825674-vmss00000{n}": 1 for n in "abc"},
        ),
    ],
)
def test_pods_of_tables_go_to_nodes_that_have_none(public, name, files, joins):
    case = public(name)
    answer = case.run("solve", *files, "--table", "moves.json")
    assert answer.code == 0 and "they stay" not in answer.text
    assert Counter(one["to"] for one in json.loads(case.written("moves.json"))) == joins


def test_a_pod_that_stays_makes_no_other_one_move(public):
    answer = public("kubernetes/table-with-single-blanks").run("solve", "pods.txt", "--json")
    assert answer.code == 0 and answer.json["moves"] == 1
    assert "affinity-xhmp6: they stay" in answer.err
