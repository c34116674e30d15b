"""Changes: made all at once, validated all at once, and the same as a cluster built that way."""

import numpy as np
import pytest

import evenkeel as ek
from tests.support.clusters import assert_equal


def small(**more):
    """Three nodes in two zones, four partitions in two groups."""
    given = {
        "capacity": [[9.0]] * 3, "load": [[1.0], [2.0], [3.0], [4.0]],
        "placement": [[0, 1], [1, 2], [2], [0, 2]], "domains": {"zone": [*"aab"]},
        "group": ["x", "y", "x", "y"], "partition_names": [*"abcd"], "forbidden": [[1, 0], [3, 1]],
        "spread": {"zone": 2},
    }  # fmt: skip
    return ek.Cluster.from_arrays(**(given | more))


def paths(cluster, **given):
    with pytest.raises(ek.InvalidInput) as caught:
        ek.Session(cluster).apply(ek.Changes(**given))
    return [fault.path for fault in caught.value.faults]


def test_states_are_those_of_the_cluster_s_own_methods():
    c = small()
    for state in ("down", "up", "drain"):
        ours, theirs = c.apply(ek.Changes(**{state: "zone=a"})), getattr(c, state)("zone=a")
        for flag in ("alive", "accepts", "keeps", "leads", "gone"):
            assert np.array_equal(getattr(ours.nodes, flag), getattr(theirs.nodes, flag))
    cordoned = c.apply(ek.Changes(cordon=["n1"])).nodes
    assert cordoned.accepts.tolist() == [True, False, True]
    assert cordoned.may_hold.all() and cordoned.may_lead.all()


def test_nodes_and_partitions_come_and_go_at_once():
    made = small().apply(
        ek.Changes(
            nodes={"capacity": [[5.0]], "names": ["late"], "domains": {"zone": ["c"]}},
            drop=["b", "group=x"],
            partitions={
                "load": [[7.0], [8.0]], "names": ["e", "f"], "placement": [["late"], [0, 1]],
                "group": ["y", "z"],
            },
            down="late",
            load=[[4.0], [5.0], [2.0]],
        ),
    )  # fmt: skip
    assert list(made.partitions.names) == ["d", "e", "f"]
    assert made.placement.nodes.tolist() == [[0, 2], [3, -1], [0, 1]]
    assert made.partitions.load.voter.ravel().tolist() == [4.0, 5.0, 2.0]
    assert list(made.partitions.group_names) == ["x", "y", "z"]
    assert made.partitions.group.tolist() == [1, 1, 2]
    assert made.partitions.rule.tolist() == [0, 0, 0]
    assert made.forbidden.tolist() == [[0, 1]]
    assert made.nodes.alive.tolist() == [True, True, True, False]
    assert made.topology.tiers == ("zone",)
    assert ek.solve(made).audit.ok


def test_all_partitions_may_leave_and_others_take_their_place():
    c = small()
    empty = c.apply(ek.Changes(drop=[*"abcd"]))
    assert len(empty.partitions) == 0 and len(empty.forbidden) == 0
    again = empty.apply(ek.Changes(partitions={"load": [[1.0]], "replicas": 2, "names": ["q"]}))
    assert again.partitions.replicas.tolist() == [2] and ek.solve(again).audit.ok


def test_counted_names_are_kept_when_others_leave():
    c = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 3, placement=[[0], [1], [0]])
    made = c.apply(ek.Changes(drop=["p0"]))
    assert list(made.partitions.names) == ["p1", "p2"]
    assert paths(made, partitions={"load": [[1.0]], "replicas": 1}) == ["partitions.names[2]"]


def test_roles_that_share_loads_go_on_sharing_them():
    c = small()
    made = c.apply(ek.Changes(drop="a", partitions={"load": [[1.0]], "replicas": 1}))
    assert made.partitions.load.leader is made.partitions.load.voter
    more = {"load": [[1.0]], "leader_load": [[2.0]], "replicas": 1}
    apart = c.apply(ek.Changes(partitions=more))
    assert apart.partitions.load.leader.ravel().tolist() == [1.0, 2.0, 3.0, 4.0, 2.0]
    assert apart.partitions.load.voter.ravel().tolist() == [1.0, 2.0, 3.0, 4.0, 1.0]


def test_a_cluster_without_leaders_stays_without():
    c = small(leader=[-1] * 4)
    made = c.apply(ek.Changes(partitions={"load": [[1.0]], "replicas": 1}))
    assert made.placement.leader.tolist() == [-1] * 5


def test_without_a_placement_numbers_of_replicas_are_given():
    some = {"load": [[8.0]] * 2}
    with pytest.raises(ek.InvalidInput, match=r"^replicas: must be given .* \(got None\)$"):
        ek.Cluster.from_arrays(capacity=[[9.0]] * 3, **some)
    empty = ek.Cluster.from_arrays(capacity=[[9.0]] * 3, **some, placement=[[], []])
    assert not empty.partitions.replicas.any()
    for ask in (
        lambda: empty.apply(ek.Changes(partitions=some)),
        lambda: ek.size(empty, ek.Forecast(partitions=some)),
    ):
        with pytest.raises(ek.InvalidInput, match=r"partitions\.replicas: must be given"):
            ask()


def test_everything_wrong_is_told_at_once_and_nothing_has_happened():
    c = small()
    session = ek.Session(c)
    found = paths(
        c, down=["n9", "n0"], up=["n0"], drain=7, cordon="zone=q", load=[[1.0]],
        rules=[ek.Rule(spread={"row": 1})], rule=[0, 0, 0, 5], placement=[[0]] * 3,
    )  # fmt: skip
    for path in ("down[0]", "up", "drain[0]", "cordon[0]", "load", "rule", "placement"):
        assert any(one.startswith(path) for one in found), (path, found)
    assert any(one.startswith("rules[0]") for one in found)
    found = paths(
        c, nodes={"capacity": [[1.0], [-1.0]], "colour": 3}, drop=["zz"],
        partitions={"load": [[1.0], [np.nan]], "placement": [[0], [9]], "names": ["a", "e"],
                    "rule": [0, 9]},
    )  # fmt: skip
    for path in ("nodes.colour", "nodes.capacity", "drop[0]", "partitions.load",
                 "partitions.placement", "partitions.names", "partitions.rule"):  # fmt: skip
        assert any(one.startswith(path) for one in found), (path, found)
    assert paths(c, nodes={}, partitions={}) == ["nodes.capacity", "partitions.load"]
    assert paths(c, nodes=3, partitions="p") == [
        "nodes", "nodes.capacity", "partitions", "partitions.load",
    ]  # fmt: skip
    assert session.cluster is c


def test_rules_and_loads_are_those_of_replace():
    c = small()
    given = {"rules": [ek.Rule(spread={"zone": 1})], "load": [[2.0]] * 4}
    ours, theirs = c.apply(ek.Changes(**given)), c.replace(**given)
    assert ours.rules == theirs.rules
    assert np.array_equal(ours.partitions.load.voter, theirs.partitions.load.voter)
    assert np.array_equal(ours.partitions.rule, theirs.partitions.rule)


def ruled(seed=0):
    rng = np.random.default_rng(seed)
    return ek.Cluster.from_arrays(
        capacity=rng.uniform(5, 9, (5, 2)), load=rng.uniform(0, 1, (6, 2)),
        placement=[[p % 5, (p + 2) % 5] for p in range(6)], domains={"zone": [*"aabbc"]},
        tags={"ssd": [True, False] * 2 + [True]}, attributes={"os": [*"xyxyx"]},
        tier_capacity={"zone": [[1e3, 1e3], [2e3, 2e3], [3e3, 3e3]]}, attached=[4, 0, -1, 1, 2, 3],
        forbidden=[[0, 1], [2, 4], [3, 0]], stands_for=[-1, -1, -1, -1, 1], spread={"zone": 2},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "which"),
    [("down", "n1"), ("up", 1), ("drain", "zone=b"), ("cordon", ["n1", 2]), ("gone", "+ssd"),
     ("pin", "p1"), ("remove_nodes", "zone=a"), ("remove_nodes", 4)],
)  # fmt: skip
def test_every_verb_of_a_cluster_is_one_of_changes(verb, which):
    cluster = ruled()
    one = ek.Session(cluster).apply(ek.Changes(**{verb: which})).cluster
    assert_equal("cluster", one, getattr(cluster, verb)(which))


def test_pins_are_taken_back():
    cluster = ruled().pin("p1", "p2")
    one = ek.Session(cluster).apply(ek.Changes(pin="p4", unpin=["p1"])).cluster
    assert np.unique(one.placement.owner[one.placement.flags > 0]).tolist() == [2, 4]
    assert_equal("cluster", one, cluster.pin("p4").unpin("p1"))
    with pytest.raises(ek.InvalidInput, match="is also pinned"):
        ek.Session(cluster).apply(ek.Changes(pin="p4", unpin="p4"))
    result = ek.solve(one.drain("n4"), goals=ek.Goals(level=None))
    assert not result.comparison.joined[one.placement.flags > 0].any()


@pytest.mark.parametrize("which", [[0], [1, 3], [4], [0, 1], range(5)])
def test_removed_nodes_leave_nothing_behind(which):
    """All that is report of the others is as it was, by name."""
    cluster = ruled()
    left = [n for n in range(5) if n not in which]
    fewer = cluster.remove_nodes(list(which))
    assert list(fewer.nodes.names) == [f"n{n}" for n in left]
    for name in ("capacity", "alive", "weight", "max_replicas"):
        assert np.array_equal(getattr(fewer.nodes, name), getattr(cluster.nodes, name)[left])
    assert np.array_equal(fewer.nodes.tags["ssd"], cluster.nodes.tags["ssd"][left])
    names = [*fewer.nodes.names, None]
    was = [*cluster.nodes.names, None]
    for one, other in ((fewer.placement.node, cluster.placement.node),
                       (fewer.partitions.attached, cluster.partitions.attached)):  # fmt: skip
        expected = [was[n] if was[n] in names else None for n in other.tolist()]
        assert [names[n] for n in one.tolist()] == expected
    banned = [(p, was[n]) for p, n in cluster.forbidden.tolist() if n in left]
    assert [(p, names[n]) for p, n in fewer.forbidden.tolist()] == banned
    for n, old in enumerate(left):
        new_zone, old_zone = fewer.topology.domain[0, n], cluster.topology.domain[0, old]
        assert fewer.topology.domain_name(0, new_zone) == cluster.topology.domain_name(0, old_zone)
        assert np.array_equal(
            fewer.topology.tier_capacity["zone"][new_zone],
            cluster.topology.tier_capacity["zone"][old_zone],
        )
    if len(left) > 2:
        solved = ek.solve(fewer, goals=ek.Goals(level=None))
        assert solved.audit.counts["unassigned"] == 0
    ek.Cluster(
        **{name: getattr(fewer, name) for name in vars(cluster)}
    )  # checked as if it were new


def test_tables_may_be_told_of_some_rows():
    cluster = ruled()
    changes = ek.Changes(load={"p1": [0.5, 0.25], 3: [1, 1]}, capacity={"zone=b": [7.0, 8.0]})
    one = ek.Session(cluster).apply(changes).cluster
    load, capacity = cluster.partitions.load.voter.copy(), cluster.nodes.capacity.copy()
    load[1], load[3], capacity[2:4] = [0.5, 0.25], 1.0, [7.0, 8.0]
    assert np.array_equal(one.partitions.load.voter, load)
    assert np.array_equal(one.nodes.capacity, capacity)
    with pytest.raises(ek.InvalidInput) as wrong:
        ek.Session(cluster).apply(ek.Changes(load={"p9": [1, 1], "p1": [1]}, capacity={0: [-1, 1]}))
    paths = [fault.path for fault in wrong.value.faults]
    assert any("'p9'" in path for path in paths) and any("'p1'" in path for path in paths)


def test_loads_grow_by_dimension_by_group_and_by_partition():
    cluster = ruled().replace(group=["x", "y"] * 3)
    was = cluster.partitions.load.voter
    for factor, by in (
        (2.0, np.full((6, 2), 2.0)), ({"d1": 3.0}, [[1.0, 3.0]] * 6),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [[p + 1.0] * 2 for p in range(6)]),
        ({"group=x": 4.0, "d0": 2.0, "p1": {"d1": 0.5}},
         [[4, 4], [1, 0.5], [4, 4], [2, 1], [4, 4], [2, 1]]),
    ):  # fmt: skip
        made = cluster.apply(ek.Changes(load_factor=factor))
        assert np.array_equal(made.partitions.load.voter, was * np.array(by))
        assert made.partitions.load.leader is made.partitions.load.voter
    for wrong, path in (
        (-1.0, "load_factor"), ("much", "load_factor"), ([1.0], "load_factor"),
        ({"gpu": 2.0}, "load_factor['gpu']"), ({"p1": {"gpu": 2.0}}, "load_factor['p1']['gpu']"),
        ({"d0": np.nan}, "load_factor['d0']"),
    ):  # fmt: skip
        assert paths(cluster, load_factor=wrong) == [path]


def test_wanted_numbers_and_rules_may_be_of_some_partitions():
    cluster = small(rules=[ek.Rule(), ek.Rule(spread={"zone": 2})], rule=[0] * 4, spread=None)
    made = cluster.apply(ek.Changes(replicas={"group=x": 3, "b": 1}, rule={"c": 1, 3: 1}))
    assert made.partitions.replicas.tolist() == [3, 1, 3, 2]
    assert made.partitions.voters.tolist() == [3, 1, 3, 2]
    assert made.partitions.rule.tolist() == [0, 0, 1, 1]
    assert cluster.apply(ek.Changes(replicas=1)).partitions.replicas.tolist() == [1] * 4
    assert paths(cluster, replicas={"q": 1}) == ["replicas['q'][0]"]
    assert paths(cluster, replicas={"a": -1}) == ["replicas[0]"]


def test_nodes_that_join_may_be_like_others():
    cluster = ruled()
    made = cluster.add_nodes(names=["x", "y"], like=["n0", "n4"])
    assert np.array_equal(made.nodes.capacity[5:], cluster.nodes.capacity[[0, 4]])
    assert made.nodes.tags["ssd"].tolist()[5:] == [True, True]
    assert made.topology.domain[0, 5:].tolist() == cluster.topology.domain[0, [0, 4]].tolist()
    assert made.nodes.stands_for.tolist()[5:] == [-1, -1]
    own = ek.Changes(nodes={"like": "n0", "names": ["x"], "capacity": [[1.0, 2.0]],
                            "domains": {"zone": ["d"]}})  # fmt: skip
    one = cluster.apply(own)
    assert one.nodes.capacity[5].tolist() == [1.0, 2.0]
    assert one.topology.domain_name(0, one.topology.domain[0, 5]) == "d"
    near = cluster.replace(tier_distance=np.arange(25.0).reshape(5, 5))
    assert near.add_nodes(like=3).topology.tier_distance[5].tolist() == [15, 16, 17, 18, 19, 18]
    for nodes, path in (
        ({"like": "nobody"}, "nodes.like[0]"), ({"names": ["x"]}, "nodes.capacity"),
        ({"like": [0, 1], "names": [*"xyz"]}, "nodes.like"),
        ({"like": 0, "domains": 3}, "nodes.domains"),
    ):  # fmt: skip
        assert paths(cluster, nodes=nodes) == [path]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "as it is"), ({"name": "Monday", "down": "n0"}, "Monday"),
        ({"down": ["n0", 1], "up": "zone=a"}, "down n0, #1; up zone=a"),
        ({"down": [True, False]}, "down some"),
        ({"load_factor": [1.0, 2.0]}, "load of each partition"),
        ({"load_factor": {"cpu": 1.5, "group=x": {"cpu": 2.0}}}, "cpu x 1.5; load of group=x"),
        ({"leader_load": [[1.0]], "remove_nodes": 3}, "remove nodes #3; new leader load"),
        ({"fail_disks": "*:/d_1", "drain": "a_b"}, "drain a_b; fail disks *:/d_1"),
    ],
)  # fmt: skip
def test_changes_describe_themselves(given, text):
    assert ek.Changes(**given).describe() == text


def test_nothing_but_changes_is_applied():
    with pytest.raises(ek.InvalidInput, match=r"must be evenkeel\.Changes"):
        small().apply({"down": "n0"})
    assert paths(small(), name=3, drain="n0") == ["name"]
