"""Losses in plain Python: what was chosen is followed, each choice compared with all others."""

import numpy as np

from evenkeel.measure.audit import audit
from evenkeel.measure.bounds import bounds
from evenkeel.model.cluster import Cluster
from evenkeel.model.goals import Goals
from evenkeel.model.placement import Placement, Role

# what a replica may break on a node however little it weighs
ROW_KINDS = frozenset(
    {"require", "spread", "same_node", "soft_spread", "forbidden", "max_domains", "max_replicas",
     "on_dead", "not_kept", "not_accepted"}
)  # fmt: skip


class PlainLoss:
    """A placement that is added up anew whenever somebody asks."""

    def __init__(self, cluster: Cluster, lost: list[int]) -> None:
        self.cluster, placement = cluster, cluster.placement
        self.node = [-1 if n in lost else int(n) for n in placement.node]
        self.leader = [int(slot) for slot in placement.leader]
        for p in range(len(self.leader)):
            if self.leader[p] >= 0 and self.node[placement.first[p] + self.leader[p]] < 0:
                self.leader[p] = -1

    def weight(self, k: int) -> np.ndarray:
        """Load of a replica in the role that it has."""
        load, placement = self.cluster.partitions.load, self.cluster.placement
        p = placement.owner[k]
        if self.leader[p] >= 0 and placement.first[p] + self.leader[p] == k:
            return load.leader[p]
        return load.non_voter[p] if placement.role[k] == Role.NON_VOTER else load.voter[p]

    def loads(self) -> np.ndarray:
        """Load of every node, (N, D)."""
        total = np.zeros(self.cluster.nodes.capacity.shape)
        for k, n in enumerate(self.node):
            if n >= 0:
                total[n] += self.weight(k)
        return total

    def breaks(self, k: int, n: int, kinds: frozenset[str] = ROW_KINDS | {"capacity"}) -> bool:
        """Whether anything hard about the row or the node is newly broken with ``k`` on ``n``."""
        cluster = self.cluster
        found = []
        for node in (self.node[k], n):
            there = np.array(self.node, np.int32)
            there[k] = node
            leader = np.array(self.leader, np.int16)
            counts = audit(cluster, cluster.placement.replaced(there, leader)).counts
            found.append(sum(count for kind, count in counts.items() if kind in kinds))
        return found[1] > found[0]


def has_to_be_made_room_for(cluster: Cluster, lost: list[int], goals: Goals) -> bool:
    """Whether a lost replica fits on no node while all others stay, whoever leads."""
    target, plain = bounds(cluster, goals).target, PlainLoss(cluster, lost)
    load, owner = cluster.partitions.load, cluster.placement.owner
    lightest = np.minimum(np.minimum(load.voter, load.leader), load.non_voter)
    stays = np.zeros(target.shape)
    for k, n in enumerate(plain.node):
        if n >= 0:
            stays[n] += lightest[owner[k]]
    gone = [k for k, n in enumerate(cluster.placement.node.tolist()) if n in lost]
    return any(
        all(
            plain.breaks(k, n, ROW_KINDS) or (stays[n] + lightest[owner[k]] > target[n]).any()
            for n in np.flatnonzero(cluster.nodes.may_receive).tolist()
        )
        for k in gone
        if (owner[gone] == owner[k]).sum() == 1
    )


def is_proven_best(
    cluster: Cluster, after: Placement, goals: Goals, moves: int, *, one_more: bool
) -> bool:
    """Whether a placement breaks nothing, meets the goals, and makes no move too many."""
    # ``one_more`` is one that the bound on moves does not ask for
    before = cluster.placement
    proven = bounds(cluster, goals)
    plain = PlainLoss(cluster, [])
    plain.node, plain.leader = after.node.tolist(), after.leader.tolist()
    carried = plain.loads()
    leaders = np.zeros(len(cluster.nodes))
    for p, slot in enumerate(plain.leader):
        if slot >= 0:
            leaders[plain.node[before.first[p] + slot]] += 1
    within = (carried <= proven.target * (1 + 1e-9)).all()
    within &= bool((leaders <= proven.leader_target).all())
    joined = 0
    for p in range(len(before)):
        row = slice(before.first[p], before.first[p + 1])
        joined += len({*after.node[row].tolist()} - {*before.node[row].tolist()} - {-1})
    clean = not any(audit(cluster, after).counts.values())
    return bool(within) and clean and joined == moves == proven.moves_level + one_more
