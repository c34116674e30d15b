"""Nodes and partitions as a person names them."""

import pytest

import evenkeel as ek
from evenkeel.model.errors import FaultList
from evenkeel.model.selection import read_nodes, read_partitions


@pytest.fixture(scope="module")
def cluster():
    """Four nodes in two zones, four partitions in two groups."""
    return ek.Cluster.from_arrays(
        capacity=[[9.0]] * 4,
        load=[[1.0]] * 4,
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
    assert read_nodes(faults, "nodes", cluster, given).tolist() == found
    assert not faults


@pytest.mark.parametrize(
    ("given", "found"), [(["p3", 1], [3, 1]), (["group=y"], [1, 3]), (["group=x", 1], [0, 2, 1])]
)
def test_partitions_are_named_in_any_way(cluster, given, found):
    faults = FaultList()
    assert read_partitions(faults, "partitions", cluster, given).tolist() == found
    assert not faults


@pytest.mark.parametrize("read", [read_nodes, read_partitions])
def test_what_is_none_is_told_by_its_place(cluster, read):
    faults = FaultList()
    read(faults, "which", cluster, ["nobody", 4, -1, True, None, "group=z", 1.0])
    paths = [fault.path for fault in faults.faults]
    assert paths == [f"which[{i}]" for i in range(7)]
    faults = FaultList()
    read(faults, "which", cluster, "n0")
    assert [fault.path for fault in faults.faults] == ["which"]
