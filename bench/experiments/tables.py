"""What experiments measure: how even a placement is, and what an event moved."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement


@dataclass(frozen=True)
class Spread:
    """How replicas and leaders are distributed over the nodes that are up."""

    what: str
    total: int
    least: int
    most: int
    std: float
    leaders_least: int
    leaders_most: int
    leaders_std: float
    nodes: int


@dataclass(frozen=True)
class Change:
    """What an event moved."""

    event: str
    nodes: int
    total: int
    leaders: int
    moved: int
    forced: int
    leader_changes: int
    forced_changes: int

    @property
    def extra(self) -> int:
        """Moves that the event did not force."""
        return self.moved - self.forced

    @property
    def extra_changes(self) -> int:
        """Leader changes that the event did not force."""
        return self.leader_changes - self.forced_changes


@dataclass(frozen=True)
class Size:
    """How evenly data lies on the nodes where partitions differ in size."""

    what: str
    most: float
    mean: float
    std: float


@dataclass(frozen=True)
class Table:
    """The outcome of an experiment."""

    title: str
    rows: tuple[Spread, ...] | tuple[Change, ...] | tuple[Size, ...]


def most_surplus(cluster: Cluster, placement: Placement) -> NDArray[np.int64]:
    """Find by how much the fullest node exceeds the emptiest, group by group."""
    groups, nodes = len(cluster.partitions.group_names), len(cluster.nodes)
    held = placement.node >= 0
    group = cluster.partitions.group[placement.owner[held]].astype(np.int64)
    key = group * nodes + placement.node[held]
    count = np.bincount(key, minlength=groups * nodes).reshape(groups, nodes)
    seen = count[:, cluster.nodes.alive]
    # CRUSH-ed promises at most one wherever fault zones allow it
    return np.asarray(seen.max(axis=1) - seen.min(axis=1), np.int64)


def spread_of(cluster: Cluster, placement: Placement, what: str) -> Spread:
    """Count replicas and leaders by node."""
    up = cluster.nodes.alive
    held, led = placement.node, placement.leader_node
    count = np.bincount(held[held >= 0], minlength=len(up))[up]
    leaders = np.bincount(led[led >= 0], minlength=len(up))[up]
    return Spread(
        what,
        int(count.sum()),
        int(count.min()),
        int(count.max()),
        float(count.std()),
        int(leaders.min()),
        int(leaders.max()),
        float(leaders.std()),
        int(up.sum()),
    )


NO_NODES = np.zeros(0, np.int64)


def change_of(
    event: str,
    before: Placement,
    after: Placement,
    *,
    went: NDArray[np.int64] = NO_NODES,
    came: NDArray[np.int64] = NO_NODES,
) -> Change:
    """Count what moved between two placements of equal rows."""
    old, new = before.nodes, after.nodes
    joined = (new >= 0) & ~(new[:, :, None] == old[:, None, :]).any(axis=2)
    left = (old >= 0) & ~(old[:, :, None] == new[:, None, :]).any(axis=2)
    pulled = (joined & np.isin(new, came)).sum(axis=1)
    pushed = (left & np.isin(old, went)).sum(axis=1)
    forced = np.minimum(pulled + pushed, joined.sum(axis=1))
    was, leads = before.leader_node, after.leader_node
    changed = was != leads
    forced_change = changed & (np.isin(was, went) | np.isin(leads, came))
    return Change(
        event,
        len(came) - len(went),
        int(np.count_nonzero(new >= 0)),
        int(np.count_nonzero(leads >= 0)),
        int(joined.sum()),
        int(forced.sum()),
        int(changed.sum()),
        int(forced_change.sum()),
    )
