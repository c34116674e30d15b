"""What ties pods to nodes beside rules: volumes, budgets, and what files do not tell."""

import json

import pytest

from evenkeel.model.errors import InvalidInput
from evenkeel.model.goals import Goals
from evenkeel.model.placement import Flag
from evenkeel.solving import solve
from evenkeel.systems import registry
from tests.support.systems.kubernetes import HOST, ZONE, claim, listed, node, pod, uses, volume


def zoned(**zones):
    return [node(name, labels={ZONE: zone}) for name, zone in zones.items()]


NODES = zoned(a1="a", a2="a", b1="b", b2="b")


def notes_of(cluster):
    return " | ".join(registry.find("kubernetes").left_out(cluster))


def places_after(cluster, *drained):
    """Return node by pod after a solve, drained nodes emptied."""
    result = solve(cluster.drain([*drained]) if drained else cluster)
    names = cluster.nodes.names
    return result, [names[n] if n >= 0 else None for n in result.placement.node.tolist()]


def two_volumes(label, value):
    """One that zone a reaches, and one that nodes with a label reach, each with its claim."""
    first, second = volume("v0", ZONE, "a"), volume("v1", label, value)
    return [first, claim("c0", "v0"), second, claim("c1", "v1")]


class TestVolumes:
    def test_pods_stay_in_the_zones_of_their_volumes(self):
        pods = [
            pod("p-0", "a1", volumes=uses("c0")), pod("p-1", "b1", volumes=uses("c1")),
        ]  # fmt: skip
        bound = two_volumes(ZONE, "b")
        cluster = registry.read(listed(*NODES, *pods, *bound))
        result, after = places_after(cluster, "a1")
        assert result.success
        assert sorted(after) == ["a2", "b1"]
        assert places_after(cluster, "a1", "a2")[0].status == "partial"

    def test_what_one_node_reaches_stays_even_where_it_is_drained(self):
        local = [volume("v", HOST, "a1"), claim("c", "v")]
        cluster = registry.read(listed(*NODES, pod("p-0", "a1", volumes=uses("c")), *local))
        assert cluster.placement.flags[0] & Flag.PINNED
        assert "volumes that no other node reaches: they stay (d/p-0 on a1)" in notes_of(cluster)
        result, after = places_after(cluster, "a1")
        assert after == ["a1"]
        assert not result.success

    @pytest.mark.parametrize(
        ("bound", "open_"),
        [
            ([volume("v"), claim("c", "v")], "1111"), ([claim("c")], "1111"), ([], "1111"),
            ([volume("v", labels={ZONE: "a__c"}), claim("c", "v")], "1100"),
            ([volume("v", ZONE, "b"), claim("c", "v")], "0011"),
        ],
    )  # fmt: skip
    def test_all_that_binds_a_volume(self, bound, open_):
        on = "a1" if open_[0] == "1" else "b1"
        cluster = registry.read(listed(*NODES, pod("p-0", on, volumes=uses("c")), *bound))
        require = cluster.rules[0].require
        mask = cluster.nodes.tags[require[0][1:]] if require else [True] * 4
        assert "".join(str(int(one)) for one in mask) == open_
        assert ("no volume for d/c" in notes_of(cluster)) is (not bound)

    def test_claims_of_ephemeral_volumes_are_named_after_pods(self):
        own = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]
        bound = [volume("v", ZONE, "a"), claim("p-0-scratch", "v")]
        cluster = registry.read(listed(*NODES, pod("p-0", "a1", volumes=own), *bound))
        assert places_after(cluster, "a1")[1] == ["a2"]

    def test_a_pod_that_waits_goes_where_its_volume_is(self):
        pods = [pod("p-0", "a1", volumes=uses("c0")), pod("p-1", "", volumes=uses("c1"))]
        bound = two_volumes(HOST, "b2")
        cluster = registry.read(listed(*NODES, *pods, *bound))
        assert places_after(cluster)[1] == ["a1", "b2"]

    def test_evictions_lead_each_pod_to_its_own_volume(self, tmp_path):
        pods = [pod(f"p-{i}", on, volumes=uses(f"c{i}")) for i, on in enumerate(["a1", "b1"])]
        bound = two_volumes(ZONE, "b")
        cluster = registry.read(listed(*NODES, *pods, *bound))
        result, _ = places_after(cluster, "a1", "b1")
        registry.write(result.cluster, tmp_path / "out.json", placement=result.placement)
        told = json.loads((tmp_path / "out.json").read_text())["evictions"]
        assert {one["pod"]: one["to"] for one in told} == {"p-0": "a2", "p-1": "b2"}

    @pytest.mark.parametrize("tied", [False, True])
    def test_a_template_is_patched_where_cordon_and_volume_leave_a_choice(self, tied, tmp_path):
        bound = [volume("v", ZONE, "b"), claim("c", "v")]
        one = pod("p-0", "b1", volumes=uses("c") if tied else None)
        result, after = places_after(registry.read(listed(*NODES, one, *bound)), "b1")
        assert after != ["b1"]
        registry.write(result.cluster, tmp_path / "out.json", placement=result.placement)
        patches = json.loads((tmp_path / "out.patches.json").read_text())["patches"]
        assert len(patches) == (not tied)

    def test_a_pod_away_from_its_volume_is_noted_and_stays(self):
        bound = [volume("v", ZONE, "b"), claim("c", "v")]
        cluster = registry.read(listed(*NODES, pod("p-0", "a1", volumes=uses("c")), *bound))
        assert places_after(cluster)[1] == ["a1"]
        assert "d/p-0 run on nodes that do not reach their volumes" in notes_of(cluster)

    def test_what_is_on_the_disk_of_a_node_is_noted(self):
        own = [{"name": "tmp", "emptyDir": {}}]
        assert "d/ReplicaSet/p have volumes on the disk of their node" in notes_of(
            registry.read(listed(*NODES, pod("p-0", "a1", volumes=own)))
        )

    def test_a_list_of_volumes_alone_is_known(self):
        cluster = registry.read(
            listed(*NODES), listed(pod("p-0", "a1", volumes=uses("c"))),
            listed(claim("c", "v"), volume("v", ZONE, "a")),
        )  # fmt: skip
        assert places_after(cluster, "a1")[1] == ["a2"]


def asks(cpu):
    return [{"resources": {"requests": {"cpu": cpu}}}]


class TestRequests:
    def test_each_counts_as_it_is_where_it_stands(self):
        pods = [
            pod("p-0", "a", containers=asks("3")), pod("p-1", "b", containers=asks("1")),
            pod("q-0", "b", owner="q", containers=asks("3")),
        ]  # fmt: skip
        cluster = registry.read(listed(node("a"), node("b"), node("c"), *pods))
        result = solve(cluster, goals=Goals(level=None, leaders=None))
        assert not result.violations and not result.moves
        free = cluster.nodes.capacity - [[3, 0, 1], [6, 0, 2], [0, 0, 0]]
        assert free[:, 0].tolist() == [1, 0, 4]

    def test_pods_that_differ_in_nodes_may_be_where_any_of_them_may(self):
        nodes = [node("a", labels={"x": "1"}), node("b", labels={"x": "2"})]
        pods = [pod("p-0", "a", nodeSelector={"x": "1"}), pod("p-1", "b", nodeSelector={"x": "2"})]
        cluster = registry.read(listed(*nodes, *pods))
        assert not cluster.rules[0].require
        assert "its pods ask for different nodes" in notes_of(cluster)


class TestPorts:
    def test_a_port_of_a_node_is_taken_once(self):
        own = [{"ports": [{"hostPort": 80, "containerPort": 80}]}]
        agent = pod("agent", "c", owner="agent", containers=own)
        agent["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
        pods = [
            pod("p-0", "a", containers=own), pod("p-1", "", containers=own),
            pod("q-0", "", owner="q", containers=own), agent,
        ]  # fmt: skip
        cluster = registry.read(listed(node("a"), node("b"), node("c"), *pods))
        result, after = places_after(cluster)
        assert sorted(str(one) for one in after) == ["None", "a", "b"]
        assert result.status == "infeasible" or result.status == "partial"

    def test_ports_of_other_protocols_and_addresses_are_others(self):
        ports = [{"hostPort": 53}, {"hostPort": 53, "protocol": "UDP"}]
        ports += [{"hostPort": 53, "hostIP": "10.0.0.1"}, {"containerPort": 99}]
        pods = [
            pod(f"p{i}-0", "a", owner=f"p{i}", containers=[{"ports": [one]}])
            for i, one in enumerate(ports)
        ]
        assert not solve(registry.read(listed(node("a"), *pods))).violations


class TestBudgets:
    def budget(self, **spec):
        return {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "d"},
            "spec": {"selector": {"matchLabels": {"app": "p"}}} | spec,
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("spec", "least"),
        [
            ({"minAvailable": 1}, [1]), ({"minAvailable": "100%"}, [2]),
            ({"maxUnavailable": 0}, [2]), ({"maxUnavailable": "50%"}, [1]), ({}, [0]),
        ],
    )  # fmt: skip
    def test_what_may_go(self, spec, least):
        pods = [pod("p-0", "a1"), pod("p-1", "b1")]
        cluster = registry.read(listed(*NODES, *pods, self.budget(**spec)))
        assert cluster.partitions.min_active.tolist() == least
        stays = (cluster.placement.flags & Flag.PINNED) != 0
        assert stays.tolist() == [least == [2]] * 2
        assert ("budgets d/b allow no disruption" in notes_of(cluster)) is (least == [2])

    def test_a_budget_counts_the_pods_of_all_that_it_selects(self):
        pods = [pod("p-0", "a1"), pod("q-0", "b1", owner="q", labels={"app": "p"})]
        cluster = registry.read(listed(*NODES, *pods, self.budget(minAvailable=1)))
        assert cluster.partitions.min_active.tolist() == [0, 0]


class TestBrokenClusters:
    def test_pods_on_nodes_that_are_not_listed_are_passed_over(self):
        cluster = registry.read(listed(*NODES, pod("p-0", "gone"), pod("p-1", "a1")))
        assert places_after(cluster)[1] == ["a1"]
        assert "pods on nodes that are not listed: d/p-0 on gone" in notes_of(cluster)

    def test_a_node_without_room_takes_nothing_and_is_not_overfull(self):
        blank = node("z")
        blank["status"] = {}
        few = node("y")
        del few["status"]["allocatable"]["pods"]
        cluster = registry.read(listed(blank, few, pod("p-0", "z"), pod("q-0", "", owner="q")))
        result, after = places_after(cluster)
        assert result.success
        assert after[1] == "y"
        assert "no room for pods on y, z" in notes_of(cluster)

    def test_pods_of_unknown_owners_stay(self):
        own = pod("p-0", "a1")
        own["metadata"]["ownerReferences"][0]["kind"] = "CloneSet"
        cluster = registry.read(listed(*NODES, own))
        assert len(cluster.partitions) == 0
        assert "objects of kind CloneSet" in notes_of(cluster)

    @pytest.mark.parametrize(
        "told",
        [
            b"NAMESPACE     NAME    READY   STATUS    RESTARTS\nd  p-0  1/1  Running  0\n",
            b"NAME   STATUS   ROLES    AGE   VERSION\na1   Ready   <none>  1d  v1.30\n",
        ],
    )
    def test_other_forms_are_refused_with_a_hint(self, told):
        with pytest.raises(InvalidInput, match="-o json"):
            registry.read(told)


def test_a_list_of_all_things_is_read():
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "d"}}
    cluster = registry.read(listed(pod("p-0", "a1"), service, other), listed(*NODES))
    assert list(cluster.partitions.names) == ["d/ReplicaSet/p"]
