"""Limits: hard budgets on the moves of a solve."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.keywords import did_you_mean, known_arguments
from evenkeel.model.reading.quantities import EXACT, read_bytes, read_count, read_tier_counts

NO_BYTES = (
    "needs a dimension of bytes: the argument bytes of a cluster names it, and so does a line such "
    'as bytes = "disk" among the rules of tables; other systems have one where sizes are read'
)

# limits that are one whole number each
COUNTS = ("moves", "partition_moves", "leader_changes", "disk_moves")

BY_NODE = ("node_in", "node_out")  # limits that are a whole number for all nodes, or one for each
# a whole number for every node, one for each that a mapping names, or one for each, (N,)
NodeCounts = int | Mapping[str, int] | Sequence[int] | NDArray[np.integer] | None

BY_TIER = ("domain_in", "domain_out")  # limits that are a whole number for each tier


@dataclass(frozen=True, init=False)
class Limits:
    """Budgets that a result never exceeds; repairs come first and count.

    Replicas lost with their node leave neither the node nor its domain, and a leader in the place
    of a lost leader is no change: ``node_out``, ``domain_out`` and ``leader_changes`` bound what
    lives.

    Parameters
    ----------
    moves : int, optional
        Most moves in all.
    bytes : float or str, optional
        Most data moved, in the unit of the cluster's ``bytes`` dimension. A text such as ``"3TB"``
        or ``"2.5 TiB"`` is for clusters whose unit is the byte.
    node_in, node_out : int, mapping of str to int, or array of int, shape (N,), optional
        Most replicas that may enter, or leave, one node: the same number for every node, a number
        for each node that a mapping names (others are not limited), or one for each node in order.
    partition_moves : int, optional
        Most replicas of one partition that may move: copies of a partition at a time.
    domain_in, domain_out : mapping of str to int, optional
        Most replicas that may enter, or leave, one domain of a tier, by the tier's name. A replica
        that moves within a domain neither enters nor leaves it.
    leader_changes : int, optional
        Most partitions that another node may lead than before.
    disk_moves : int, optional
        Most replicas that may change their disk within a node; the other budgets do not count them.

    Raises
    ------
    InvalidInput
        If a budget is negative, no number, or a count is not whole.

    Examples
    --------
    >>> Limits(moves=500, bytes="3TB", domain_in={"zone": 20}).bytes
    3000000000000.0

    A node that takes nothing more, and one that takes two.

    >>> Limits(node_in={"n7": 0, "n8": 2}).node_in
    {'n7': 0, 'n8': 2}
    """

    moves: int | None
    bytes: float | None
    node_in: int | Mapping[str, int] | tuple[int, ...] | None = field(hash=False)
    node_out: int | Mapping[str, int] | tuple[int, ...] | None = field(hash=False)
    partition_moves: int | None
    domain_in: Mapping[str, int] = field(hash=False)
    domain_out: Mapping[str, int] = field(hash=False)
    leader_changes: int | None
    disk_moves: int | None

    @known_arguments
    def __init__(
        self,
        moves: int | None = None,
        bytes: float | str | None = None,
        node_in: NodeCounts = None,
        node_out: NodeCounts = None,
        partition_moves: int | None = None,
        domain_in: Mapping[str, int] | None = None,
        domain_out: Mapping[str, int] | None = None,
        leader_changes: int | None = None,
        disk_moves: int | None = None,
    ) -> None:
        given: dict[str, Any] = {
            "moves": moves, "node_in": node_in, "node_out": node_out,
            "partition_moves": partition_moves, "leader_changes": leader_changes,
            "domain_in": domain_in, "domain_out": domain_out, "disk_moves": disk_moves,
        }  # fmt: skip
        faults = FaultList()
        for name in COUNTS:
            object.__setattr__(self, name, read_count(faults, f"limits.{name}", given[name]))
        for name in BY_NODE:
            object.__setattr__(self, name, _read_node_counts(faults, f"limits.{name}", given[name]))
        object.__setattr__(self, "bytes", read_bytes(faults, "limits.bytes", bytes))
        for name in BY_TIER:
            object.__setattr__(self, name, read_tier_counts(faults, f"limits.{name}", given[name]))
        faults.raise_if_any()


def _read_node_counts(
    faults: FaultList, path: str, given: Any
) -> int | Mapping[str, int] | tuple[int, ...] | None:
    """Read a count for all nodes, or one for each by name or in order."""
    if isinstance(given, Mapping):
        return read_tier_counts(faults, path, given)
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, list | tuple):
        return read_count(faults, path, given)
    read = [read_count(faults, f"{path}[{i}]", one) for i, one in enumerate(given)]
    for i, one in enumerate(given):
        if one is None:
            faults.add(f"{path}[{i}]", None, "must be a whole number, 0 or more")
    return tuple(one or 0 for one in read)


def node_counts(
    cluster: Cluster, given: int | Mapping[str, int] | tuple[int, ...]
) -> NDArray[np.int64]:
    """Return how many replicas each node may take or give, (N,); ``EXACT`` where any number.

    >>> c = Cluster.from_arrays(capacity=[[9.0]] * 3, load=[[1.0]], placement=[[0]])
    >>> node_counts(c, 4).tolist(), node_counts(c, (1, 0, 2)).tolist()
    ([4, 4, 4], [1, 0, 2])
    >>> (node_counts(c, {"n1": 0}) < EXACT).tolist()
    [False, True, False]
    """
    if not isinstance(given, Mapping):
        return np.broadcast_to(np.asarray(given, np.int64), len(cluster.nodes))
    most = np.full(len(cluster.nodes), EXACT, np.int64)
    for name, one in given.items():
        most[cluster.nodes.names.index(name)] = one
    return most


def check_limits(faults: FaultList, cluster: Cluster, limits: Limits) -> None:
    """Note what limits name that the cluster does not have."""
    if limits.bytes is not None and cluster.bytes_dimension < 0:
        faults.add("limits.bytes", limits.bytes, NO_BYTES)
    if limits.disk_moves is not None and cluster.disks is None:
        message = "needs a cluster whose nodes have disks"
        faults.add("limits.disk_moves", limits.disk_moves, message)
    names = cluster.nodes.names
    for name in BY_NODE:
        given = getattr(limits, name)
        if isinstance(given, tuple) and len(given) != len(names):
            faults.add(f"limits.{name}", given, f"needs one number for each of {len(names)} nodes")
        for node in given if isinstance(given, Mapping) else ():
            if node not in names:
                faults.add(f"limits.{name}", node, f"unknown node{did_you_mean(node, names)}")
    known = list(cluster.topology.tiers)
    for name in BY_TIER:
        for tier in getattr(limits, name):
            if tier not in known:
                faults.add(f"limits.{name}", tier, f"unknown tier; known: {known}")
