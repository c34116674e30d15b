"""What a run leaves behind: the nodes of the cluster's slots."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.compare import joined
from evenkeel.methods.shared.stopping import Clock
from evenkeel.model.cluster import Cluster
from evenkeel.systems.longhorn.auto_balance.settings import Longhorn
from evenkeel.systems.longhorn.auto_balance.stepping import AutoBalance


def nodes_in_slots(work: AutoBalance) -> tuple[NDArray[np.int32], int]:
    """Put what stands at the end of a run into the slots of its cluster."""
    made, first = work.bundle, work.cluster.placement.first
    node = made.state.node[made.slot].copy()
    beyond = made.state.node.copy()
    beyond[made.slot] = -1
    extra, free = np.flatnonzero(beyond >= 0), np.flatnonzero(node < 0)
    extra_owner, free_owner = made.state.owner[extra], work.cluster.placement.owner[free]
    extra_turn, free_turn = _turns(extra_owner), _turns(free_owner)
    width = np.int64(max(int(np.diff(made.state.first).max(initial=0)), 1))
    wanted, open_to = extra_owner * width + extra_turn, free_owner * width + free_turn
    place = np.searchsorted(open_to, wanted)
    found = place < len(open_to)
    found[found] = open_to[place[found]] == wanted[found]
    node[free[place[found]]] = beyond[extra[found]]
    assert len(node) == first[-1]
    return node, int(np.count_nonzero(~found))


def one_by_one(cluster: Cluster, options: Longhorn, clock: Clock) -> float:
    """Return the bytes that Longhorn's own rule copies, volume by volume; asks the clock."""
    work = AutoBalance(cluster, replace(options, scope="volume"))
    clock.ask("one by one", 0)
    while not work.slice():
        clock.ask("one by one", 0)
    node, _ = nodes_in_slots(work)
    before = cluster.placement
    moved = np.flatnonzero(joined(before, before.replaced(node, before.leader)))
    data = cluster.partitions.load.voter[:, cluster.bytes_dimension]
    return float(data[before.owner[moved]].sum())


def _turns(owner: NDArray[np.int32]) -> NDArray[np.int64]:
    """Count up within each run of equal owners, which are sorted."""
    at = np.arange(len(owner))
    return at - np.searchsorted(owner, owner)
