"""Changes: made all at once, validated all at once, and the same as a cluster built that way."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.session.changes import changed


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
        ours, theirs = changed(c, ek.Changes(**{state: "zone=a"})), getattr(c, state)("zone=a")
        for flag in ("alive", "accepts", "keeps", "leads", "gone"):
            assert np.array_equal(getattr(ours.nodes, flag), getattr(theirs.nodes, flag))
    cordoned = changed(c, ek.Changes(cordon=["n1"])).nodes
    assert cordoned.accepts.tolist() == [True, False, True]
    assert cordoned.may_hold.all() and cordoned.may_lead.all()


def test_nodes_and_partitions_come_and_go_at_once():
    made = changed(
        small(),
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
    empty = changed(c, ek.Changes(drop=[*"abcd"]))
    assert len(empty.partitions) == 0 and len(empty.forbidden) == 0
    again = changed(empty, ek.Changes(partitions={"load": [[1.0]], "replicas": 2, "names": ["q"]}))
    assert again.partitions.replicas.tolist() == [2] and ek.solve(again).audit.ok


def test_counted_names_are_kept_when_others_leave():
    c = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 3, placement=[[0], [1], [0]])
    made = changed(c, ek.Changes(drop=["p0"]))
    assert list(made.partitions.names) == ["p1", "p2"]
    assert paths(made, partitions={"load": [[1.0]]}) == ["partitions.names[2]"]


def test_roles_that_share_loads_go_on_sharing_them():
    c = small()
    made = changed(c, ek.Changes(drop="a", partitions={"load": [[1.0]]}))
    assert made.partitions.load.leader is made.partitions.load.voter
    apart = changed(c, ek.Changes(partitions={"load": [[1.0]], "leader_load": [[2.0]]}))
    assert apart.partitions.load.leader.ravel().tolist() == [1.0, 2.0, 3.0, 4.0, 2.0]
    assert apart.partitions.load.voter.ravel().tolist() == [1.0, 2.0, 3.0, 4.0, 1.0]


def test_a_cluster_without_leaders_stays_without():
    c = small(leader=[-1] * 4)
    made = changed(c, ek.Changes(partitions={"load": [[1.0]], "replicas": 1}))
    assert made.placement.leader.tolist() == [-1] * 5


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
    ours, theirs = changed(c, ek.Changes(**given)), c.replace(**given)
    assert ours.rules == theirs.rules
    assert np.array_equal(ours.partitions.load.voter, theirs.partitions.load.voter)
    assert np.array_equal(ours.partitions.rule, theirs.partitions.rule)
