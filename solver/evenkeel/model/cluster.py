"""The cluster: one validated snapshot of everything a strategy may look at."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.nodes import Nodes
from evenkeel.model.partitions import Partitions
from evenkeel.model.placement import Placement
from evenkeel.model.rules import Rule
from evenkeel.model.shown import Shown
from evenkeel.model.topology import Topology


@dataclass(frozen=True, eq=False)
class Cluster(Shown):
    """A snapshot: nodes, topology, partitions, rules, and where everything is now.

    Build one with ``Cluster.from_arrays`` or ``evenkeel.read``; both validate once and report every
    problem together. A cluster never changes; ``with_placement`` and ``dataclasses.replace`` make
    others.

    Parameters
    ----------
    nodes : Nodes
        N nodes.
    topology : Topology
        L levels.
    partitions : Partitions
        P partitions in G groups.
    placement : Placement
        Where replicas are now. A replica on a dead node keeps that node.
    rules : tuple of Rule
        Shared by partitions and groups, which point into it.
    dimensions : tuple of str
        D names.
    transient : ndarray of bool, shape (D,)
        Dimensions in which a moved replica counts on both ends until all moves are done.
    bytes_dimension : int
        The dimension that is moved when a replica moves; -1 for none.
    forbidden : ndarray of int32, shape (F, 2)
        (partition, node) pairs that are disabled, sorted.
    depends : ndarray of int32, shape (E, 3)
        (group, group it needs, row of the level): every domain that holds a replica of the first
        must hold one of the second.
    native : object
        What only the strategy and the format of one system read (a CRUSH map, latencies).
    native_format : str
        Name of that system.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[10.0], [10.0]], load=[[1.0]] * 3, replicas=1)
    >>> c
    <Cluster: 2 nodes, 3 partitions, 3 replicas wanted, 1 dimension>
    """

    nodes: Nodes
    topology: Topology
    partitions: Partitions
    placement: Placement
    rules: tuple[Rule, ...]
    dimensions: tuple[str, ...]
    transient: NDArray[np.bool_]
    bytes_dimension: int
    forbidden: NDArray[np.int32]
    depends: NDArray[np.int32]
    native: Any = field(default=None, repr=False)
    native_format: str = ""

    @staticmethod
    def from_arrays(**arrays: Any) -> "Cluster":
        """Build a cluster from arrays; see ``evenkeel.model.intake.from_arrays``, which this calls.

        Parameters
        ----------
        **arrays : Any
            As ``evenkeel.model.intake.from_arrays`` takes them.

        Returns
        -------
        Cluster
            Validated.

        Raises
        ------
        InvalidInput
            Naming every problem, with its path and value.
        """
        from evenkeel.model.intake import from_arrays

        return from_arrays(**arrays)

    def with_placement(self, placement: Placement) -> "Cluster":
        """Return the same cluster with its replicas somewhere else.

        Parameters
        ----------
        placement : Placement
            Where they are.

        Returns
        -------
        Cluster
            Sharing everything else with this one.
        """
        return replace(self, placement=placement)

    def __repr__(self) -> str:
        count = len(self.dimensions)
        return (
            f"<Cluster: {len(self.nodes)} nodes, {len(self.partitions)} partitions, "
            f"{int(self.partitions.replicas.sum(dtype=np.int64))} replicas wanted, "
            f"{count} dimension{'s' if count != 1 else ''}>"
        )
