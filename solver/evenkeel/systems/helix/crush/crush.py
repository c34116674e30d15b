"""CRUSH as Helix does it."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.helix.crush.hashed import HashedNames
from evenkeel.systems.helix.crush.tree import NoNodes, Tree
from evenkeel_kernels.helix.crush import place_in_zones, place_on_nodes

Base: TypeAlias = Callable[[HashedNames, Tree, Sequence[int]], NDArray[np.int32]]
"""A strategy that places the partitions of one group, with so many replicas in each state."""


def crush(partitions: HashedNames, tree: Tree, states: Sequence[int]) -> NDArray[np.int32]:
    """Place the partitions of a group by CRUSH.

    References
    ----------
    Apache Helix, ``CrushRebalanceStrategy``.

    Examples
    --------
    >>> tree = Tree.of(["n1", "n2", "n3", "n4"], ["z1", "z1", "z2", "z2"])
    >>> crush(HashedNames.of(["p0", "p1"]), tree, [1, 1]).tolist()
    [[2, 1], [1, 3]]
    """
    if len(tree) == 0:
        raise NoNodes("the tree has no nodes")
    replicas = sum(states)
    if tree.zone_names is None:
        return place_on_nodes(tree.node_children, partitions.word, replicas)
    first, nodes = tree.zone_nodes
    return place_in_zones(tree.zone_children, first, nodes, partitions.word, replicas)
