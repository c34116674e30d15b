"""Nodes and partitions as a person names them."""

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.selection import find_nodes, find_partitions


@pytest.fixture(scope="module")
def cluster():
    """Four nodes in two zones, four partitions in two groups."""
    return ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4,
        load=[[1.0]] * 4,
        replicas=1,
        domains={"zone": ["a", "b", "a", "b"]},
        tags={"ssd": [True, False, False, False]},
        group=[0, 1, 0, 1],
        group_names=["x", "y"],
    )


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["n3", 1], [1, 3]),
        (["zone=a"], [0, 2]),
        (["+ssd", "zone=b"], [0, 1, 3]),
        (["n0", 0, "n0"], [0]),
        ([], []),
    ],
)
def test_nodes_are_named_in_any_way(cluster, given, found):
    faults = FaultList()
    assert find_nodes(faults, "nodes", cluster.nodes, cluster.topology, given).tolist() == found
    assert not faults


@pytest.mark.parametrize(
    ("given", "found"), [(["p3", 1], [3, 1]), (["group=y"], [1, 3]), (["group=x", 1], [0, 2, 1])]
)
def test_partitions_are_named_in_any_way(cluster, given, found):
    faults = FaultList()
    assert find_partitions(faults, "partitions", cluster.partitions, given).tolist() == found
    assert not faults


def nodes_of(faults, cluster, given):
    return find_nodes(faults, "which", cluster.nodes, cluster.topology, given)


def partitions_of(faults, cluster, given):
    return find_partitions(faults, "which", cluster.partitions, given)


@pytest.mark.parametrize("read", [nodes_of, partitions_of])
def test_what_is_none_is_told_by_its_place(cluster, read):
    faults = FaultList()
    read(faults, cluster, ["nobody", 4, -1, True, None, "group=z", 1.0])
    paths = [fault.path for fault in faults.faults]
    assert paths == [f"which[{i}]" for i in range(7)]
    for given, path in (("n0", "which"), ([True] * 3, "which"), ([[0, 1]], "which[0]")):
        faults = FaultList()
        read(faults, cluster, given)
        assert [fault.path for fault in faults.faults] == [path]


@pytest.mark.parametrize("read", [nodes_of, partitions_of])
@pytest.mark.parametrize("form", [list, tuple, np.array])
def test_booleans_are_a_mask(cluster, read, form):
    faults = FaultList()
    assert read(faults, cluster, form([False, True, False, True])).tolist() == [1, 3]
    assert not faults


def test_a_text_is_a_name_and_a_number_an_index_whatever_names_look_like():
    cluster = ek.Cluster.from_arrays(
        capacity=[[9.0]] * 3, load=[[1.0]] * 3, replicas=1, node_names=["2", "1", "zone=a"],
        partition_names=["1", "2", "0"], domains={"zone": ["a", "b", "b"]},
    )  # fmt: skip
    assert nodes_of(FaultList(), cluster, ["2"]).tolist() == [0]
    assert nodes_of(FaultList(), cluster, [2]).tolist() == [2]
    assert nodes_of(FaultList(), cluster, ["zone=a"]).tolist() == [2]
    assert partitions_of(FaultList(), cluster, ["2", 2]).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("word", "hint"),
    [("b", "zone=b"), ("x1", "disk=x1"), ("ssd", "+ssd"), ("n33", "n3"), ("elsewhere", "")],
)
def test_a_domain_in_place_of_a_node_is_written_as_an_expression(cluster, word, hint):
    faults, labelled = FaultList(), cluster.replace(attributes={"disk": ["x1", "x2"] * 2})
    nodes_of(faults, labelled, [word])
    asked = f"did you mean {hint!r}?" if hint else ""
    assert faults.faults[0].message.partition("; ")[2] == asked
