"""Find the partitions that load a node most."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.placement import Placement, Role
from evenkeel.model.reading.keywords import known_keywords
from evenkeel.model.reading.quantities import require


class Hottest(NamedTuple):
    """The replicas with the most load on one node, hottest first.

    Attributes
    ----------
    partition : ndarray of int64, shape (k,)
        Their partitions.
    load : ndarray of float64, shape (k,)
        What they carry there, in the dimension's unit.
    leads : ndarray of bool, shape (k,)
        Whether they lead.
    names : tuple of str
        Names of the partitions.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0], [2.0]], placement=[[0], [0]])
    >>> found = hottest(c, "n0", 1)
    >>> found.names, found.load.tolist(), found.leads.tolist()
    (('p1',), [2.0], [True])
    """

    partition: NDArray[np.int64]
    load: NDArray[np.float64]
    leads: NDArray[np.bool_]
    names: tuple[str, ...]


@known_keywords
def hottest(
    cluster: Cluster,
    node: int | str,
    k: int = 128,
    *,
    dimension: str | None = None,
    placement: Placement | None = None,
) -> Hottest:
    """Return the replicas that carry most on a node, of any role.

    Parameters
    ----------
    cluster : Cluster
        P partitions with their loads.
    node : int or str
        Its index or its name.
    k : int, optional
        How many at most; 128 are as many as a store of CockroachDB keeps track of.
    dimension : str, optional
        Of the load; by default ``qps``, else ``cpu``, else the first one.
    placement : Placement, optional
        Where replicas are; the cluster's own by default.

    Returns
    -------
    Hottest
        By falling load; of equal ones the partition with the lower index comes first.

    Raises
    ------
    InvalidInput
        If there is no such node or dimension, or ``k`` is no whole number of 0 or more.

    References
    ----------
    CockroachDB, technical note "Rebalancing", section on load; ``replica_rankings.go``.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[9.0]] * 2, load=[[1.0], [2.0], [3.0]], replicas=1,
    ...                            dimensions=("qps",), placement=[[0], [0], [1]])
    >>> found = hottest(c, 0)
    >>> found.partition.tolist(), found.load.tolist()
    ([1, 0], [2.0, 1.0])
    """
    require_cluster(cluster)
    where = cluster.placement if placement is None else placement
    require("placement", where, Placement)
    n, d = _checked(cluster, node, k, dimension)
    replica = np.flatnonzero(where.node == n)
    partition = where.owner[replica].astype(np.int64)
    leads = where.leader_replica[partition] == replica
    load = cluster.partitions.load
    carried = np.where(
        where.role[replica] == Role.NON_VOTER,
        load.non_voter[partition, d],
        np.where(leads, load.leader[partition, d], load.voter[partition, d]),
    )
    order = np.lexsort((partition, -carried))[:k]
    names = cluster.partitions.names
    return Hottest(
        partition[order],
        carried[order],
        leads[order],
        tuple(names[int(p)] for p in partition[order]),
    )


def _checked(cluster: Cluster, node: int | str, k: int, dimension: str | None) -> tuple[int, int]:
    """The indices of the node and the dimension; every fault at once."""
    faults = FaultList()
    n = -1
    if isinstance(node, str):
        n = cluster.nodes.names.index(node) if node in cluster.nodes.names else -1
    elif isinstance(node, int | np.integer) and 0 <= node < len(cluster.nodes):
        n = int(node)
    if n < 0:
        faults.add("node", node, f"is none of the {len(cluster.nodes)} nodes")
    known = cluster.dimensions
    usual = [name for name in ("qps", "cpu") if name in known]
    wanted = dimension if dimension is not None else [*usual, *known, ""][0]
    if not isinstance(wanted, str) or wanted not in known:
        faults.add("dimension", dimension, f"is none of {', '.join(known) or 'none'}")
    if not isinstance(k, int | np.integer) or k < 0:
        faults.add("k", k, "needs a whole number, 0 or more")
    faults.raise_if_any()
    return n, known.index(wanted)
