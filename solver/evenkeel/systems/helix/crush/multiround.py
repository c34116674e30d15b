"""MultiRoundCRUSH as Helix does it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.helix.crush.hashed import HashedNames
from evenkeel.systems.helix.crush.java_order import map_order
from evenkeel.systems.helix.crush.tree import NoNodes, NotEnoughZones, NoZones, Tree
from evenkeel_kernels.helix.multiround import place_in_rounds


def multiround(partitions: HashedNames, tree: Tree, states: Sequence[int]) -> NDArray[np.int32]:
    """Place the partitions of a group by MultiRoundCRUSH.

    References
    ----------
    Apache Helix, ``MultiRoundCrushRebalanceStrategy``.

    Examples
    --------
    >>> tree = Tree.of(["n1", "n2", "n3", "n4"], ["z1", "z1", "z2", "z2"])
    >>> multiround(HashedNames.of(["p0", "p1"]), tree, [1, 1]).tolist()
    [[2, 1], [1, 3]]
    """
    if len(tree) == 0:
        raise NoNodes("the tree has no nodes")
    if tree.zone_names is None:
        raise NoZones("MultiRoundCRUSH needs a tier of fault zones above the nodes")
    state = np.repeat(np.arange(len(states), dtype=np.int32), states)
    order = map_order(partitions.hash)
    placed, failed = place_in_rounds(tree.zone_children, tree.rooms, partitions.word, state, order)
    if failed >= 0:
        live = int(np.count_nonzero(tree.zone_weight))
        raise NotEnoughZones(
            f"partition {partitions.names[failed]!r} needs {state.size} zones;"
            f" {live} of {tree.zones} have live nodes"
        )
    return placed
