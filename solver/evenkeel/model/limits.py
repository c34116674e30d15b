"""Limits: hard budgets on what a solve may move."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.keywords import known_arguments
from evenkeel.model.reading.quantities import read_bytes, read_count, read_tier_counts

COUNTS = ("moves", "node_in", "node_out", "partition_moves", "leader_changes")
"""Limits that are one whole number each."""

BY_TIER = ("domain_in", "domain_out")
"""Limits that are a whole number for each tier."""


@dataclass(frozen=True, init=False)
class Limits:
    """Budgets that a result never exceeds; repairs come first and count.

    What was lost with its node leaves neither the node nor its domain, and who leads in the place
    of a lost leader is no change: ``node_out``, ``domain_out`` and ``leader_changes`` bound what
    lives.

    Parameters
    ----------
    moves : int, optional
        Most moves in all.
    bytes : float or str, optional
        Most data moved, in the unit of the cluster's ``bytes`` dimension. A text such as ``"3TB"``
        or ``"2.5 TiB"`` is for clusters whose unit is the byte.
    node_in, node_out : int, optional
        Most replicas that may enter, or leave, one node.
    partition_moves : int, optional
        Most replicas of one partition that may move: copies of a partition at a time.
    domain_in, domain_out : mapping of str to int, optional
        Most replicas that may enter, or leave, one domain of a tier, by the tier's name. A replica
        that moves within a domain neither enters nor leaves it.
    leader_changes : int, optional
        Most partitions that another node may lead than before.

    Raises
    ------
    InvalidInput
        If a budget is negative, no number, or a count is not whole.

    Examples
    --------
    >>> Limits(moves=500, bytes="3TB", domain_in={"zone": 20}).bytes
    3000000000000.0
    """

    moves: int | None
    bytes: float | None
    node_in: int | None
    node_out: int | None
    partition_moves: int | None
    domain_in: Mapping[str, int] = field(hash=False)
    domain_out: Mapping[str, int] = field(hash=False)
    leader_changes: int | None

    @known_arguments
    def __init__(
        self,
        moves: int | None = None,
        bytes: float | str | None = None,
        node_in: int | None = None,
        node_out: int | None = None,
        partition_moves: int | None = None,
        domain_in: Mapping[str, int] | None = None,
        domain_out: Mapping[str, int] | None = None,
        leader_changes: int | None = None,
    ) -> None:
        given = {
            "moves": moves, "node_in": node_in, "node_out": node_out,
            "partition_moves": partition_moves, "leader_changes": leader_changes,
            "domain_in": domain_in, "domain_out": domain_out,
        }  # fmt: skip
        faults = FaultList()
        for name in COUNTS:
            object.__setattr__(self, name, read_count(faults, f"limits.{name}", given[name]))
        object.__setattr__(self, "bytes", read_bytes(faults, "limits.bytes", bytes))
        for name in BY_TIER:
            object.__setattr__(self, name, read_tier_counts(faults, f"limits.{name}", given[name]))
        faults.raise_if_any()


def check_limits(faults: FaultList, cluster: Cluster, limits: Limits) -> None:
    """Note what limits name that the cluster does not have."""
    if limits.bytes is not None and cluster.bytes_dimension < 0:
        faults.add("limits.bytes", limits.bytes, "needs a cluster with a bytes dimension")
    known = list(cluster.topology.tiers)
    for name in BY_TIER:
        for tier in getattr(limits, name):
            if tier not in known:
                faults.add(f"limits.{name}", tier, f"unknown tier; known: {known}")
