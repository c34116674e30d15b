"""Results as frames: what moves, who leads, what is broken, and how nodes and replicas stand."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.audit.violations import Violation
from evenkeel.measure.loads import replica_counts
from evenkeel.model.errors import Fault, InvalidInput
from evenkeel.model.placement import Role
from evenkeel.model.reading.frames import Backend, Frame, columns_of, frame_of
from evenkeel.model.reading.keywords import did_you_mean
from evenkeel.result_rows import LeaderChange, Move

Columns = Mapping[str, NDArray[Any] | Sequence[Any]]


def result_frame(result: Any, table: str, backend: Backend | None) -> Frame:
    """Make one of the frames of a result."""
    if not isinstance(table, str) or table not in TABLES:
        message = (
            f"is not a table of a result; there are {[*TABLES]}{did_you_mean(str(table), TABLES)}"
        )
        raise InvalidInput([Fault("table", table, message)])
    return frame_of(TABLES[table](result), backend)


def _moves(result: Any) -> Columns:
    return columns_of(Move, result.moves)


def _leader_changes(result: Any) -> Columns:
    return columns_of(LeaderChange, result.leader_changes)


def _unplaced(result: Any) -> Columns:
    rows = [(one, reason, n) for one in result.unplaced for reason, n in one.blocked.items()]
    return {
        "partition": [one.partition for one, _, _ in rows],
        "slot": np.array([one.slot for one, _, _ in rows], np.int64),
        "blocked_by": [reason for _, reason, _ in rows],
        "nodes": np.array([n for _, _, n in rows], np.int64),
    }


def _violations(result: Any) -> Columns:
    return columns_of(Violation, result.violations)


def _nodes(result: Any) -> Columns:
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
    return columns


def _replicas(result: Any) -> Columns:
    """Return each replica: where it is, where it was, and its role."""
    placement, names = result.placement, result.cluster.nodes.names
    owner, partitions = placement.owner, result.cluster.partitions
    roles = [role.name.lower() for role in Role]
    role = np.array(roles, object)[placement.role]
    led = placement.leader_replica
    role[led[placement.leader >= 0]] = "leader"
    groups = np.array(list(partitions.group_names), object)
    at = [*names, None]
    return {
        "partition": np.array(list(partitions.names), object)[owner].tolist(),
        "group": groups[partitions.group[owner]].tolist(),
        "slot": np.arange(len(owner)) - placement.first[owner],
        "role": role.tolist(),
        "before": [at[n] for n in result.cluster.placement.node.tolist()],
        "node": [at[n] for n in placement.node.tolist()],
    }


TABLES: Mapping[str, Callable[[Any], Columns]] = {
    "moves": _moves,
    "leader_changes": _leader_changes,
    "replicas": _replicas,
    "nodes": _nodes,
    "unplaced": _unplaced,
    "violations": _violations,
}
"""What makes the columns of each table."""
