"""Throttles: how much may be under way at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.reading.quantities import read_bytes, read_count, read_tier_counts

COUNTS = ("node_in", "node_out", "copies", "partition_copies")
"""Throttles that are one whole number each, 1 or more."""

BY_TIER = ("domain_in", "domain_out")
"""Throttles that are a whole number for each tier."""

RATES = ("node_bandwidth", "cluster_bandwidth")
"""Throttles in bytes per second."""


@dataclass(frozen=True, init=False)
class Throttle:
    """How many copies may be in flight at once, and how many bytes per second they may take.

    Parameters
    ----------
    node_in, node_out : int, optional
        Most copies that enter, or leave, a node at once.
    domain_in, domain_out : mapping of str to int, optional
        Most copies that enter, or leave, a domain of a tier at once, by the tier's name. A copy
        within a domain neither enters nor leaves it.
    copies : int, optional
        Most copies in flight at once.
    partition_copies : int, optional
        Most copies of one partition in flight at once.
    node_bandwidth, cluster_bandwidth : float or str, optional
        Most bytes per second that a node receives, and that it sends; that all copies take
        together. In the unit of the cluster's ``bytes`` dimension; a text such as ``"100MB"`` is
        for clusters whose unit is the byte.

    Raises
    ------
    InvalidInput
        If a number is negative, no number, 0, or a count is not whole.

    Examples
    --------
    >>> Throttle(node_in=2, node_bandwidth="100MB").node_bandwidth
    100000000.0
    """

    node_in: int | None
    node_out: int | None
    domain_in: Mapping[str, int] = field(hash=False)
    domain_out: Mapping[str, int] = field(hash=False)
    copies: int | None
    partition_copies: int | None
    node_bandwidth: float | None
    cluster_bandwidth: float | None

    def __init__(
        self,
        node_in: int | None = None,
        node_out: int | None = None,
        domain_in: Mapping[str, int] | None = None,
        domain_out: Mapping[str, int] | None = None,
        copies: int | None = None,
        partition_copies: int | None = None,
        node_bandwidth: float | str | None = None,
        cluster_bandwidth: float | str | None = None,
    ) -> None:
        given = {
            "node_in": node_in, "node_out": node_out, "copies": copies,
            "partition_copies": partition_copies,
            "domain_in": domain_in, "domain_out": domain_out,
            "node_bandwidth": node_bandwidth, "cluster_bandwidth": cluster_bandwidth,
        }  # fmt: skip
        faults = FaultList()
        for name in COUNTS:
            object.__setattr__(self, name, read_count(faults, f"throttle.{name}", given[name]))
        for name in RATES:
            object.__setattr__(self, name, read_bytes(faults, f"throttle.{name}", given[name]))
        for name in BY_TIER:
            object.__setattr__(
                self, name, read_tier_counts(faults, f"throttle.{name}", given[name])
            )
        for name in (*COUNTS, *RATES):
            if getattr(self, name) == 0:
                faults.add(f"throttle.{name}", 0, "lets nothing ever move")
        for name in BY_TIER:
            for tier, most in getattr(self, name).items():
                if most == 0:
                    faults.add(f"throttle.{name}[{tier!r}]", 0, "lets nothing ever move")
        faults.raise_if_any()

    @property
    def bytes_in(self) -> float | None:
        """Bytes per second into a node."""
        return self.node_bandwidth

    @property
    def bytes_out(self) -> float | None:
        """Bytes per second out of a node."""
        return self.node_bandwidth

    @property
    def bytes(self) -> float | None:
        """Bytes per second in all."""
        return self.cluster_bandwidth

    @property
    def at_once(self) -> float:
        """Copies that can always be under way together if their nodes differ; ``inf`` for any."""
        if self.cluster_bandwidth is not None:
            return 1
        counts = (self.copies, *self.domain_in.values(), *self.domain_out.values())
        return min((float(one) for one in counts if one is not None), default=float("inf"))

    @property
    def paces(self) -> bool:
        """Whether bytes per second are limited, so that copies take as long as they are large."""
        return self.node_bandwidth is not None or self.cluster_bandwidth is not None


def check_throttle(faults: FaultList, cluster: Cluster, throttle: Throttle) -> None:
    """Note what a throttle names that the cluster does not have."""
    for name in RATES:
        if getattr(throttle, name) is not None and cluster.bytes_dimension < 0:
            faults.add(f"throttle.{name}", getattr(throttle, name),
                       "needs a cluster with a bytes dimension")  # fmt: skip
    known = list(cluster.topology.tiers)
    for name in BY_TIER:
        for tier in getattr(throttle, name):
            if tier not in known:
                faults.add(f"throttle.{name}", tier, f"unknown tier; known: {known}")
