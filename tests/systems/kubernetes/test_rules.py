"""What pods of Kubernetes ask of each other, and of the nodes that they are spread over."""

import pytest

from evenkeel.solving import solve
from evenkeel.systems import registry
from evenkeel.systems.kubernetes.constraints import LEFT_OUT
from tests.support.systems.kubernetes import HOST, ZONE, listed, node, pod

TAINTS = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
OWN = {"matchLabels": {"app": "p"}}
HARD = "requiredDuringSchedulingIgnoredDuringExecution"
SOFT = "preferredDuringSchedulingIgnoredDuringExecution"


def not_kept(cluster):
    """Return what pods ask for and no rule keeps."""
    return cluster.native.notes.names(LEFT_OUT)


def read(nodes, pods):
    return registry.read(listed(*nodes, *pods), format="kubernetes")


def zones(names="abc", **more):
    """Return a node in each zone, called as it; what else the nodes have is told by name."""
    return [node(name, labels={ZONE: name}, **more.get(name, {})) for name in names]


def spread(key=ZONE, selector=OWN, **more):
    one = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [one | {"labelSelector": selector} | more]}


def apart(key=HOST, selector=OWN, **more):
    term = {"topologyKey": key, "labelSelector": selector} | more
    return {"affinity": {"podAntiAffinity": {HARD: [term]}}}


def pods(on, owner="p", labels=None, **spec):
    """Return pods of a workload on nodes called by one letter each; on ``-`` for none."""
    places = enumerate(on.replace("-", " "))
    return [pod(f"{owner}-{i}", at.strip(), owner, labels, **spec) for i, at in places]


def alone(on, labels, name="x", **spec):
    """Return a pod that nobody would replace."""
    one = pod(name, on, labels=labels, **spec)
    del one["metadata"]["ownerReferences"]
    return one


def on(cluster, result=None, workload=0):
    """Return the nodes of the pods of a workload, sorted, as a text; ``-`` for none."""
    placement = (result or cluster).placement
    own = placement.node[placement.owner == workload].tolist()
    names = sorted(cluster.nodes.names[n] if n >= 0 else "-" for n in own)
    return "".join(map(str, names))


def solved(cluster, workload=0):
    return on(cluster, solve(cluster), workload)


def broken(cluster):
    found = solve(cluster).violations
    return sorted((one.kind, one.amount) for one in found if one.hard and one.kind != "unassigned")


def closed(cluster, workload=0):
    own = cluster.forbidden[cluster.forbidden[:, 0] == workload, 1]
    return "".join(cluster.nodes.names[n] for n in own.tolist())


class TestSpread:
    def test_nodes_without_the_label_take_no_pod_of_a_spread_that_must_hold(self):
        full = {"containers": [{"resources": {"requests": {"cpu": "3"}}}]}
        nodes = [*zones("ab"), node("x")]
        assert solved(read(nodes, pods("ab--", **full, **spread()))) == "--ab"
        other = spread(selector={"matchLabels": {"app": "else"}})
        assert solved(read(nodes, pods("ab-", **full, **other))) == "-ab"
        wish = spread(whenUnsatisfiable="ScheduleAnyway")
        assert solved(read(nodes, pods("ab-", **full, **wish))) == "abx"

    def test_each_spread_that_must_hold_wants_its_label(self):
        nodes = [*zones("ab"), node("c", labels={ZONE: "c", "rack": "1"})]
        both = spread()["topologySpreadConstraints"] + spread("rack")["topologySpreadConstraints"]
        assert solved(read(nodes, pods("-", topologySpreadConstraints=both))) == "c"
        # a domain whose nodes lack the other label is not counted
        cluster = read(nodes, pods("ccc", topologySpreadConstraints=both))
        assert not broken(cluster)

    def test_domains_behind_a_taint_count_as_they_are(self):
        nodes = zones(c={"taints": TAINTS})
        assert solved(read(nodes, pods("ab--", **spread()))) == "--ab"
        assert broken(read(nodes, pods("aabb", **spread()))) == [("spread", 1), ("spread", 1)]
        assert solved(read(nodes, pods("aab-", **spread(HOST)))) == "-aab"
        # where some node of a domain is open, it is as others
        more = [*nodes, node("d", labels={ZONE: "c"})]
        assert solved(read(more, pods("ab-", **spread()))) == "abd"

    def test_pods_behind_a_taint_count(self):
        cluster = read(zones(c={"taints": TAINTS}), pods("aabbc", **spread()))
        assert cluster.rules[0].spread == {"node": None, "zone": 2}
        assert cluster.rules[0].skew == {"zone": 1}
        assert closed(cluster) == "c"

    def test_a_domain_that_is_not_ready_counts_as_an_empty_one(self):
        nodes = zones()
        nodes[2]["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
        assert solved(read(nodes, pods("abc", **spread()))) == "abc"
        cluster = read(nodes, pods("ab-", **spread()))
        assert solved(cluster) == "-ab" and not broken(cluster)
        assert solved(read(nodes, pods("ab-", **spread(nodeTaintsPolicy="Honor")))) in "aab abb"

    def test_taints_can_be_honoured(self):
        nodes = zones(c={"taints": TAINTS})
        assert not broken(read(nodes, pods("aabb", **spread(nodeTaintsPolicy="Honor"))))
        bears = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}
        assert solved(read(nodes, pods("ab-", **bears, **spread()))) == "abc"

    def test_nodes_that_were_not_asked_for_can_be_counted(self):
        nodes = [node(name, labels={ZONE: name, "disk": disk}) for name, disk in ["as", "bs", "ch"]]
        wants = {"nodeSelector": {"disk": "s"}}
        assert not broken(read(nodes, pods("aabb", **wants, **spread())))
        ignored = spread(nodeAffinityPolicy="Ignore")
        assert solved(read(nodes, pods("ab-", **wants, **ignored))) == "-ab"

    def test_domains_behind_a_taint_are_among_the_fewest(self):
        nodes = zones(c={"taints": TAINTS})
        cluster = read(nodes, pods("ab", **spread(minDomains=3, nodeTaintsPolicy="Honor")))
        assert cluster.rules[0].spread["zone"] == 1

    def test_cordoned_domains_count(self):
        cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        nodes = zones(c={"unschedulable": True, "taints": [cordon]})
        cluster = read(nodes, pods("ab--", **spread()))
        assert solved(cluster) == "--ab" and not not_kept(cluster)[1:]
        notes = read(nodes, pods("ab--", **spread(nodeTaintsPolicy="Honor"))).native.notes.names(
            LEFT_OUT
        )
        assert f"d/ReplicaSet/p: a spread by {ZONE} that passes over cordoned nodes" in notes

    def test_a_wish_does_not_replace_what_must_hold(self):
        must = spread()["topologySpreadConstraints"]
        wish = spread(whenUnsatisfiable="ScheduleAnyway", maxSkew=3)["topologySpreadConstraints"]
        for both in (must + wish, wish + must):
            cluster = read(zones(), pods("ab", topologySpreadConstraints=both))
            assert cluster.rules[0].skew == {"zone": 1}

    @pytest.mark.parametrize(
        ("selector", "counts"),
        [
            ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["p", "q"]}]}, True),
            ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["q"]}]}, False),
            ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["r"]}]}, True),
            ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
            ({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}, True),
            ({}, True), (OWN, False),
        ],
    )  # fmt: skip
    def test_pods_of_others_count_to_a_spread_or_are_noted(self, selector, counts):
        said = f"d/ReplicaSet/p: a spread by {ZONE} that counts others' pods, too"
        given = pods("aa", **spread(selector=selector))
        cluster = read(zones(), given + pods("b-", "q"))
        assert said not in not_kept(cluster)
        assert broken(cluster) == []
        assert bool(cluster.partitions.group_rule.max() >= 0) is counts
        assert [rule.skew for rule in cluster.rules if rule.skew] == [{"zone": 1}]
        # where not all may come to the same nodes
        other = pods("b", "q", nodeSelector={ZONE: "b"})
        assert (said in not_kept(read(zones(), given + other))) is counts
        # nor where one of them stays
        assert (said in not_kept(read(zones(), [*given, alone("b", {"app": "q"})]))) is counts
        leaving = alone("b", {"app": "q"})
        leaving["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
        assert said not in not_kept(read(zones(), [*given, leaving]))

    def test_a_spread_may_count_only_what_is_labelled_as_the_pod(self):
        hashed = spread(matchLabelKeys=["pod-template-hash", "missing"])
        both = [
            *pods("ab", "p-1", {"app": "p", "pod-template-hash": "1"}, **hashed),
            *pods("ab", "p-2", {"app": "p", "pod-template-hash": "2"}, **hashed),
        ]
        assert not [one for one in not_kept(read(zones(), both)) if "spread" in one]


class TestApart:
    def test_a_rollout_keeps_away_from_the_pods_that_are_there(self):
        old = pods("ab", "p-old", {"app": "p"}, **apart())
        new = pods("-c", "p-new", {"app": "p"}, **apart())
        cluster = read([node(name) for name in "abcd"], old + new)
        assert solved(cluster, 0) == "cd" and solved(cluster, 1) == "ab"
        # nor do both come to the same node
        cluster = read(
            [node(name) for name in "abcd"], old + pods("--", "p-new", {"app": "p"}, **apart())
        )
        cluster = cluster.down("a")
        assert (solved(cluster, 0), solved(cluster, 1)) == ("cd", "ab")
        assert broken(cluster) == [("on_dead", 1.0)]
        assert not [one for one in not_kept(cluster) if "affinity" in one]

    def test_neither_comes_to_the_domain_of_the_other(self):
        nodes = [node(name, labels={ZONE: zone}) for name, zone in ["a1", "b1", "c2", "d2"]]
        nodes.append(node("x"))
        other = {"matchLabels": {"app": "q"}}
        cluster = read(nodes, pods("a", **apart(ZONE, other)) + pods("d", "q"))
        assert closed(cluster, 0) == "cd" and closed(cluster, 1) == "ab"

    def test_who_asks_for_the_same_and_is_not_selected_is_kept_away_from_too(self):
        nodes = [node(name) for name in "abc"]
        term = apart(selector={"matchLabels": {"app": "q"}})
        cluster = read(nodes, pods("a", **term) + pods("b", "q", **term))
        assert closed(cluster, 0) == "b" and closed(cluster, 1) == "a"

    def test_nodes_without_the_label_are_open_to_all(self):
        nodes = [*zones("ab"), node("x"), node("y")]
        every = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
        given = [one for name in "pqr" for one in pods("xy", name, **apart(ZONE, every))]
        assert len(read(nodes, given).forbidden) == 0

    def test_of_two_that_stand_together_one_has_to_go(self):
        nodes = [node(name) for name in "ab"]
        every = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
        given = pods("a", **apart(selector=every))
        cluster = read(nodes, given + pods("a", "q"))
        assert closed(cluster, 0) == "a" and closed(cluster, 1) == ""
        assert solved(cluster) == "b"
        cluster = read(nodes, given + pods("a", "q", **apart(selector=every)))
        assert {solved(cluster, 0), solved(cluster, 1)} == {"a", "b"}
        # whoever does not move is not the one
        cluster = read(nodes, [*pods("a", **apart(selector=every)), alone("a", {"app": "x"})])
        assert closed(cluster) == "a"

    def test_pods_that_stay_close_their_domain_and_nothing_is_left_to_note(self):
        nodes = [node(name) for name in "abc"]
        other = {"matchLabels": {"app": "x"}}
        cluster = read(nodes, [*pods("c-", **apart(selector=other)), alone("a", {"app": "x"})])
        assert closed(cluster) == "a"
        assert not [one for one in not_kept(cluster) if "anti-affinity" in one]
        cluster = read(nodes, [*pods("c-"), alone("a", {"app": "x"}, **apart())])
        assert closed(cluster) == "a"

    def test_a_term_looks_into_its_namespaces(self):
        nodes = [node(name) for name in "ab"]
        elsewhere = alone("b", {"app": "p"})
        elsewhere["metadata"]["namespace"] = "other"
        for where in (
            {"namespaces": ["other"]},
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}},
        ):
            cluster = read(nodes, [*pods("aa", **apart(**where)), elsewhere])
            assert not broken(cluster)
            assert closed(cluster) == "b"
        for where in ({}, {"namespaces": []}):
            cluster = read(nodes, [*pods("a", **apart(**where)), elsewhere])
            assert closed(cluster) == "" and cluster.rules[0].spread == {"node": 1}
        cluster = read(nodes, [*pods("a", **apart(namespaceSelector={})), elsewhere])
        assert closed(cluster) == "b" and cluster.rules[0].spread == {"node": 1}

    def test_namespaces_by_labels_that_are_not_read_are_noted(self):
        where = {"namespaceSelector": {"matchLabels": {"team": "t"}}}
        cluster = read([node("a")], pods("a", **apart(**where)))
        assert cluster.rules[0].spread == {"node": None}
        assert not_kept(cluster) == (
            f"d/ReplicaSet/p: anti-affinity by {HOST} in namespaces with some labels",
        )

    def test_a_term_may_look_only_at_what_is_labelled_as_its_pod_or_unlike(self):
        nodes = [node(name) for name in "abc"]
        for keys, shut, own in (("matchLabelKeys", "", 1), ("mismatchLabelKeys", "b", None)):
            term = apart(**{keys: ["v"]})
            one = pods("a", "p-1", {"app": "p", "v": "1"}, **term)
            cluster = read(nodes, one + pods("b", "p-2", {"app": "p", "v": "2"}))
            assert closed(cluster) == shut
            assert cluster.rules[0].spread == {"node": own}

    def test_a_wish_to_be_apart_from_others_is_noted(self):
        term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "q"}}}
        wish = {SOFT: [{"weight": 1, "podAffinityTerm": term}]}
        given = pods("a", affinity={"podAntiAffinity": wish})
        assert not_kept(read([node("a")], given)) == ()
        cluster = read([node("a")], given + pods("a", "q"))
        assert len(cluster.forbidden) == 0
        assert not_kept(cluster) == (
            f"d/ReplicaSet/p: preferred anti-affinity with other pods by {HOST}",
        )


def test_where_pods_share_nodes_it_is_noted_what_counts_as_no_move():
    nodes = [node(name) for name in "ab"]
    said = (
        "d/ReplicaSet/p: its pods may share a node: one that goes to the node of another counts as "
        "not moved"
    )
    assert not_kept(read(nodes, pods("aaab"))) == (said,)
    for alike in (pods("a"), pods("ab", **apart())):
        assert not_kept(read(nodes, alike)) == ()
