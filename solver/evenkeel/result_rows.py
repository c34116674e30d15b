"""Rows and tables of a result: moves, leader changes, and replicas without a node."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit import Violation
from evenkeel.measure.compare import sources_with_surplus
from evenkeel.measure.disks import homes, sizes
from evenkeel.measure.explain import OPEN, blocked_nodes
from evenkeel.measure.loads import replica_counts
from evenkeel.measure.rows import earlier_of
from evenkeel.measure.spending import Spent
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.intake.stranded import unchanged
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.frames import Backend, Frame
from evenkeel.model.reading.keywords import did_you_mean
from evenkeel.model.runtime.printable import counted, some_of
from evenkeel.model.runtime.table import Table


@dataclass(frozen=True)
class Move:
    """A node that joins a partition, and what that copies in the unit of the dimension moved."""

    partition: str
    slot: int
    source: str | None
    target: str | None
    bytes: float | None = None


@dataclass(frozen=True)
class DiskMove:
    """A replica that goes to another disk of the node on which it stays, and what it weighs."""

    partition: str
    slot: int
    source: str
    target: str
    bytes: float


@dataclass(frozen=True)
class Removal:
    """A node that leaves a partition, with none that joins in its place."""

    partition: str
    slot: int
    source: str


@dataclass(frozen=True)
class LeaderChange:
    """A partition that another of its replicas leads now."""

    partition: str
    source: str | None
    target: str | None


@dataclass(frozen=True)
class Unplaced:
    """A replica that found no node, and what keeps it off each class of nodes."""

    partition: str
    slot: int
    blocked: Mapping[str, int]


@dataclass(frozen=True)
class DownNode:
    """A node that is not alive, the replicas on it, and whether they wait for it to come back."""

    node: str
    replicas: int
    waits: bool


def moves_of(cluster: Cluster, after: Placement, moved: NDArray[np.intp]) -> tuple[Move, ...]:
    """List replicas that joined another node, by their indices in ``after``."""
    names, source = cluster.nodes.names, sources_with_surplus(cluster.placement, after)
    return tuple(
        Move(
            cluster.partitions.names[int(after.owner[k])],
            int(k - after.first[after.owner[k]]),
            names[int(source[k])] if source[k] >= 0 else None,
            names[int(after.node[k])],
            size,
        )
        for k, size in zip(moved, bytes_of(cluster, after, moved), strict=True)
    )


def disk_moves_of(cluster: Cluster, after: Placement) -> tuple[DiskMove, ...]:
    """List replicas that change their disk on the node on which they stay."""
    if cluster.disks is None or after.disk is None:
        return ()
    home, names = homes(cluster, cluster.placement, after), cluster.disks.names
    moved = np.flatnonzero((home >= 0) & (after.disk >= 0) & (home != after.disk))
    owner, size = after.owner[moved], sizes(cluster, after)[moved]
    return tuple(
        DiskMove(cluster.partitions.names[p], slot, names[source], names[target], weight)
        for p, slot, source, target, weight in zip(
            owner.tolist(), (moved - after.first[owner]).tolist(), home[moved].tolist(),
            after.disk[moved].tolist(), size.tolist(), strict=True,
        )
    )  # fmt: skip


def removals_of(cluster: Cluster, after: Placement) -> tuple[Removal, ...]:
    """List replicas that partitions have less than before, by their slots there."""
    before, names = cluster.placement, cluster.nodes.names
    had, has = (
        np.bincount(one.owner[one.node >= 0], minlength=len(one)) for one in (before, after)
    )
    source = sources_with_surplus(before, after)
    found = []
    for p in np.flatnonzero(has < had).tolist():
        nodes, then, copied = (
            column[one.first[p] : one.first[p + 1]].tolist()
            for one, column in ((before, before.node), (after, after.node), (after, source))
        )
        gone = Counter(nodes) - Counter(then) - Counter(copied)
        slots: list[int] = []
        for slot in reversed(range(len(nodes))):
            n = nodes[slot]
            if n >= 0 and gone[n] > 0 and len(slots) < had[p] - has[p]:
                gone[n] -= 1
                slots.append(slot)
        found += [
            Removal(cluster.partitions.names[p], slot, names[nodes[slot]])
            for slot in reversed(slots)
        ]
    return tuple(found)


def bytes_of(
    cluster: Cluster, after: Placement, replicas: NDArray[np.intp]
) -> list[float] | list[None]:
    """Return what replicas weigh in their new roles, in the dimension that moves."""
    at = cluster.bytes_dimension
    if at < 0:
        return [None] * len(replicas)
    load, owner = cluster.partitions.load, after.owner[replicas]
    voter = after.role[replicas] == Role.VOTER
    size = np.where(voter, load.voter[owner, at], load.non_voter[owner, at])
    leads = after.leader_replica[owner] == replicas
    found: list[float] = np.where(leads, load.leader[owner, at], size).tolist()
    return found


def leader_changes_of(
    cluster: Cluster, after: Placement, partitions: NDArray[np.intp]
) -> tuple[LeaderChange, ...]:
    """List what led partitions, by their indices, and what leads them now."""
    names = cluster.nodes.names
    was, now = cluster.placement.leader_node, after.leader_node
    return tuple(
        LeaderChange(
            cluster.partitions.names[int(p)],
            names[int(was[p])] if was[p] >= 0 else None,
            names[int(now[p])] if now[p] >= 0 else None,
        )
        for p in partitions
    )


def led_elsewhere(cluster: Cluster, after: Placement) -> NDArray[np.intp]:
    """Find the partitions that another node leads than before."""
    return np.flatnonzero(cluster.placement.leader_node != after.leader_node)


def unplaced_replicas(cluster: Cluster, placement: Placement) -> NDArray[np.int64]:
    """Find the replicas that partitions lack: as many as are wanted and neither live nor kept."""
    nodes = cluster.nodes
    nowhere = ~np.append(nodes.serves | nodes.may_hold, False)[placement.node]
    placed = np.bincount(placement.owner[~nowhere], minlength=len(cluster.partitions))
    lacking = np.maximum(cluster.partitions.replicas - placed, 0)
    earlier = earlier_of(placement, nowhere)
    return np.flatnonzero(nowhere & (earlier < lacking[placement.owner]))


def held_back(cluster: Cluster, placement: Placement) -> NDArray[np.int64]:
    """Find the live replicas on nodes that may not keep them."""
    nodes = cluster.nodes
    return np.flatnonzero(np.append(nodes.serves & ~nodes.may_hold, False)[placement.node])


def waiting_replicas(cluster: Cluster, placement: Placement) -> int:
    """Count the replicas on nodes that are down and keep them, as within a delay window."""
    waits = cluster.nodes.may_hold & ~cluster.nodes.serves
    return int(np.append(waits, False)[placement.node].sum())


def lost_partitions(cluster: Cluster) -> NDArray[np.int64]:
    """Find the partitions that have replicas, none of them alive, and are not left alone."""
    placement, count = cluster.placement, len(cluster.partitions)
    held = placement.node >= 0
    live = np.append(cluster.nodes.serves, False)[placement.node]
    had = np.bincount(placement.owner[held], minlength=count)
    living = np.bincount(placement.owner[live], minlength=count)
    return np.flatnonzero((had > 0) & (living == 0) & ~unchanged(placement))


def lost_message(cluster: Cluster) -> str:
    """Name the partitions of which no replica lives, the first of them; "" for none.

    >>> c = Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0], [1]])
    >>> lost_message(c.down("n0"))
    'no replica lives of 1 partition: p0; a copy comes from elsewhere, or is empty'
    """
    lost = lost_partitions(cluster).tolist()
    if not lost:
        return ""
    named = some_of(lost, lambda p: str(cluster.partitions.names[p]), 5)
    return (
        f"no replica lives of {counted(len(lost), 'partition')}: {named}; a copy comes from "
        "elsewhere, or is empty"
    )


def down_nodes(cluster: Cluster, placement: Placement) -> list[DownNode]:
    """List the nodes that are not alive, those with most replicas first."""
    held, nodes = replica_counts(cluster, placement), cluster.nodes
    down = np.flatnonzero(~nodes.serves)
    return [
        DownNode(nodes.names[n], int(held[n]), bool(nodes.may_hold[n]))
        for n in down[np.argsort(-held[down], kind="stable")].tolist()
    ]


def unplaced_of(
    cluster: Cluster,
    placement: Placement,
    replicas: NDArray[np.int64],
    loads: NDArray[np.float64],
    spent: Spent,
) -> tuple[Unplaced, ...]:
    """List replicas without a node, with what keeps each off the nodes, whose loads are (N, D)."""
    found = []
    for k in replicas:
        verdict, reasons = blocked_nodes(cluster, placement, loads, int(k), spent)
        count = Counter(reasons[v] if v >= 0 else OPEN for v in verdict)
        p = int(placement.owner[k])
        slot = int(k - placement.first[p])
        found.append(Unplaced(cluster.partitions.names[p], slot, dict(count)))
    return tuple(found)


def result_frame(result: Any, table: str, backend: Backend | None) -> Frame:
    """Make one of the frames of a result."""
    if not isinstance(table, str) or table not in TABLES:
        message = (
            f"is not a table of a result; there are {[*TABLES]}{did_you_mean(str(table), TABLES)}"
        )
        raise InvalidInput([Fault("table", table, message)])
    return TABLES[table](result).frame(backend)


def _unplaced(result: Any) -> Table:
    rows = [(one, reason, n) for one in result.unplaced for reason, n in one.blocked.items()]
    return Table.of_columns(
        {
            "partition": [one.partition for one, _, _ in rows],
            "slot": np.array([one.slot for one, _, _ in rows], np.int64),
            "blocked_by": [reason for _, reason, _ in rows],
            "nodes": np.array([n for _, _, n in rows], np.int64),
        }
    )


def _nodes(result: Any) -> Table:
    """Return each node with its domains, and per dimension its load before and after."""
    cluster, before, after = result.cluster, result.levelness_before, result.levelness
    nodes, topology = cluster.nodes, cluster.topology
    columns: dict[str, NDArray[Any] | Sequence[Any]] = {"node": list(nodes.names)}
    for row, tier in enumerate(topology.tiers):
        names = topology.label_names[row]
        columns[tier] = [
            names[code] if code >= 0 else None for code in topology.label[row].tolist()
        ]
    columns |= {name: getattr(nodes, name) for name in ("alive", "accepts", "keeps", "leads")}
    for d, name in enumerate(cluster.dimensions):
        columns[f"cap_{name}"] = nodes.capacity[:, d]
        columns[f"load_before_{name}"] = before.loads[:, d]
        columns[f"load_{name}"] = after.loads[:, d]
        columns[f"utilisation_{name}"] = after.table[:, d]
    columns["replicas"] = replica_counts(cluster, result.placement)
    columns["leaders"] = after.leaders
    return Table.of_columns(columns)


def _replicas(result: Any) -> Table:
    """Return each replica: where it is, where it was, and its role."""
    placement, names = result.placement, result.cluster.nodes.names
    owner, partitions = placement.owner, result.cluster.partitions
    roles = [role.name.lower() for role in Role]
    role = np.array(roles, object)[placement.role]
    led = placement.leader_replica
    role[led[placement.leader >= 0]] = "leader"
    groups = np.array(list(partitions.group_names), object)
    at = [*names, None]
    return Table.of_columns(
        {
            "partition": np.array(list(partitions.names), object)[owner].tolist(),
            "group": groups[partitions.group[owner]].tolist(),
            "slot": np.arange(len(owner)) - placement.first[owner],
            "role": role.tolist(),
            "before": [at[n] for n in result.cluster.placement.node.tolist()],
            "node": [at[n] for n in placement.node.tolist()],
        }
    )


# what makes each table
TABLES: Mapping[str, Callable[[Any], Table]] = {
    "moves": lambda result: Table.of_records(Move, result.moves),
    "disk_moves": lambda result: Table.of_records(DiskMove, result.disk_moves),
    "leader_changes": lambda result: Table.of_records(LeaderChange, result.leader_changes),
    "replicas": _replicas,
    "nodes": _nodes,
    "unplaced": _unplaced,
    "violations": lambda result: Table.of_records(Violation, result.violations),
}


class GroupRow(NamedTuple):
    """How evenly the replicas and leaders of one group lie over nodes that take replicas."""

    group: str
    replicas: int
    share: float  # replicas of a node where all have the same number
    most: int
    fullest: str
    least: int
    emptiest: str
    leaders: int
    most_leaders: int
    leader: str
    least_leaders: int


def group_rows(cluster: Cluster, placement: Placement, most: int) -> list[GroupRow]:
    """Return the groups that lie least evenly, the one furthest above its share first."""
    nodes, groups = np.flatnonzero(cluster.nodes.may_receive), cluster.partitions.group_names
    if not len(nodes):
        return []
    count, size = len(groups), len(cluster.nodes)

    def table(group: NDArray[np.int32], node: NDArray[np.int32]) -> NDArray[np.int64]:
        held = node >= 0
        index = group[held].astype(np.int64) * size + node[held]
        return np.bincount(index, minlength=count * size).reshape(count, size)[:, nodes]

    group = cluster.partitions.group
    held = table(group[placement.owner], placement.node)
    led = table(group, placement.leader_node)
    above = [one.max(1) - np.ceil(one.sum(1) / len(nodes)) for one in (held, led)]
    found = []
    for g in np.lexsort((-held.sum(1), -sum(above)))[:most].tolist():
        ends = (held[g].argmax(), held[g].argmin(), led[g].argmax())
        fullest, emptiest, leader = (str(cluster.nodes.names[nodes[n]]) for n in ends)
        found.append(GroupRow(
            str(groups[g]), int(held[g].sum()), float(held[g].mean()), int(held[g].max()), fullest,
            int(held[g].min()), emptiest, int(led[g].sum()), int(led[g].max()), leader,
            int(led[g].min()),
        ))  # fmt: skip
    return found
