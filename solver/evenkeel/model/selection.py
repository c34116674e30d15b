"""Selection: nodes and partitions as a person names them, turned into numbers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.containers import items_of
from evenkeel.model.errors import FaultList
from evenkeel.model.names import Names
from evenkeel.model.rules import mask_of, parse_expression

OF_GROUP = "group="
"""What stands before the name of a group to choose all its partitions."""


def read_nodes(
    faults: FaultList, path: str, cluster: Cluster, given: Sequence[str | int]
) -> NDArray[np.int32]:
    """Turn nodes by name, number or expression into numbers.

    Parameters
    ----------
    faults : FaultList
        Where everything that is no node is noted.
    path : str
        What the caller calls them.
    cluster : Cluster
        Whose nodes they are.
    given : sequence of (str or int)
        Names, numbers, or expressions as in a rule: ``"rack=r7"``, ``"+ssd"``.

    Returns
    -------
    ndarray of int32, shape (n,)
        Ascending, each once.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[1.0]] * 3, load=[], domains={"zone": ["a", "b", "a"]})
    >>> read_nodes(FaultList(), "nodes", c, ["zone=a"]).tolist()
    [0, 2]
    """
    nodes = cluster.nodes
    chosen = np.zeros(len(nodes), bool)
    for i, one in enumerate(items_of(faults, path, given)):
        at = f"{path}[{i}]"
        if isinstance(one, str) and one in nodes.names:
            chosen[nodes.names.index(one)] = True
        elif isinstance(one, str) and ("=" in one or one[:1] in ("+", "-")):
            tests = parse_expression(faults, at, one)
            chosen |= bool(tests) & mask_of(tests, nodes, cluster.topology, faults, at)
        elif isinstance(one, str | bool) or not isinstance(one, int | np.integer):
            faults.add(at, one, "is no node, and no expression such as 'rack=r7'")
        elif not 0 <= one < len(nodes):
            faults.add(at, one, f"must be a node, 0 to {len(nodes) - 1}")
        else:
            chosen[one] = True
    return np.flatnonzero(chosen).astype(np.int32)


def read_partitions(
    faults: FaultList, path: str, cluster: Cluster, given: Sequence[str | int]
) -> NDArray[np.int64]:
    """Turn partitions by name, number or group into numbers.

    Parameters
    ----------
    faults : FaultList
        Where everything that is no partition is noted.
    path : str
        What the caller calls them.
    cluster : Cluster
        Whose partitions they are.
    given : sequence of (str or int)
        Names, numbers, or ``"group=orders"`` for all of a group.

    Returns
    -------
    ndarray of int64, shape (n,)
        In the order given.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[1.0]], load=[[1.0]] * 3)
    >>> read_partitions(FaultList(), "partitions", c, ["p2", 0]).tolist()
    [2, 0]
    """
    partitions = cluster.partitions
    found: list[int] = []
    for i, one in enumerate(items_of(faults, path, given)):
        at = f"{path}[{i}]"
        if isinstance(one, str) and one in partitions.names:
            found.append(partitions.names.index(one))
        elif isinstance(one, str) and one.startswith(OF_GROUP):
            found += _members(faults, at, partitions.group_names, partitions.group, one)
        elif isinstance(one, str | bool) or not isinstance(one, int | np.integer):
            faults.add(at, one, "is no partition, and no group such as 'group=orders'")
        elif not 0 <= one < len(partitions):
            faults.add(at, one, f"must be a partition, 0 to {len(partitions) - 1}")
        else:
            found.append(int(one))
    return np.array(found, np.int64)


def _members(
    faults: FaultList, path: str, names: Names, group: NDArray[np.int32], text: str
) -> list[int]:
    """Partitions of the group that an expression names."""
    name = text.removeprefix(OF_GROUP)
    if name not in names:
        faults.add(path, text, "names no group")
        return []
    found: list[int] = np.flatnonzero(group == names.index(name)).tolist()
    return found
