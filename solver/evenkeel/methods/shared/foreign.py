"""Message of a method of one system that gets a cluster of another."""

from evenkeel.model.cluster import Cluster


def only_for(system: str, cluster: Cluster) -> str:
    """Return the system that a method is for, that of the cluster, and a method for any.

    Examples
    --------
    >>> only_for("Ceph", Cluster.from_arrays(capacity=[[1.0]], load=[], native_format="kafka"))
    'the method is for what was read from Ceph, and this is of kafka; balance takes any cluster'
    """
    own = f"of {cluster.native_format}" if cluster.native_format else "of no system"
    what = f"the method is for what was read from {system}, and this is {own}"
    return f"{what}; balance takes any cluster"
