"""How the pipeline sees a cluster: with the delay windows applied, and knowing what is new."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.changes import changes, same_standing
from evenkeel.control.delay import Absences, Delay, active_nodes, window_ends
from evenkeel.control.naming import same_names
from evenkeel.model.cluster import Cluster
from evenkeel.model.nodes import Nodes
from evenkeel.model.reading.arrays import read_only


@dataclass(frozen=True, eq=False)
class View:
    """One snapshot as it is at one moment. N nodes.

    Parameters
    ----------
    given : Cluster
        The snapshot as it came, with the last one's names if they are the same.
    cluster : Cluster
        The same, where exactly the active nodes keep their replicas.
    active : ndarray of bool, shape (N,)
        Nodes that keep their places: those that serve, and those that are waited for.
    serving : ndarray of bool, shape (N,)
        Of these, nodes that serve now.
    wake_at : float or None
        When the next delay window ends, if one is open.
    epoch : int
        Counts the views that differ in anything that a placement depends on.
    static_epoch : int
        Counts those that differ in anything that a baseline depends on.
    """

    given: Cluster
    cluster: Cluster
    active: NDArray[np.bool_]
    serving: NDArray[np.bool_]
    wake_at: float | None
    epoch: int
    static_epoch: int


class Views:
    """Makes views, and knows the last one.

    Examples
    --------
    >>> c = Cluster.from_arrays(capacity=[[1.0]] * 2, load=[[1.0]], alive=[True, False],
    ...                         since=[0.0, 100.0])
    >>> views = Views(Delay(60.0))
    >>> views.observe(c, 120.0).active.tolist(), views.observe(c, 200.0).active.tolist()
    ([True, True], [True, False])
    """

    def __init__(self, delay: Delay) -> None:
        self._absences = Absences()
        self._came: Cluster | None = None
        self._last: View | None = None
        self._delay = self._last_delay = delay

    @property
    def delay(self) -> Delay:
        """The delay windows."""
        return self._delay

    @delay.setter
    def delay(self, delay: Delay) -> None:
        self._delay = delay

    def observe(self, cluster: Cluster, now: float) -> View:
        """Look at a snapshot."""
        last = self._last
        if last is not None and self._came is cluster and self._still_holds(last, now):
            return last
        self._came = cluster
        if last is not None:
            cluster = _with_names_of(last.given, cluster)
        nodes = cluster.nodes
        ends = window_ends(nodes, self._absences.since(nodes, now), self._delay)
        active = active_nodes(nodes, ends, now)
        waited_for = ends[active & ~nodes.alive & (ends > now) & np.isfinite(ends)]
        effective = replace(cluster, nodes=self._with_keeps(nodes, active))
        epoch, static_epoch = 1, 1
        if last is not None:
            is_static_same = not changes(last.given, cluster)
            is_same = is_static_same and same_standing(last.cluster, effective)
            epoch = last.epoch + (not is_same)
            static_epoch = last.static_epoch + (not is_static_same)
        self._last_delay = self._delay
        self._last = View(
            given=cluster,
            cluster=effective,
            active=read_only(active),
            serving=read_only(active & nodes.alive),
            wake_at=float(waited_for.min()) if len(waited_for) else None,
            epoch=epoch,
            static_epoch=static_epoch,
        )
        return self._last

    def _still_holds(self, last: View, now: float) -> bool:
        return self._last_delay is self._delay and (last.wake_at is None or now < last.wake_at)

    def _with_keeps(self, nodes: Nodes, active: NDArray[np.bool_]) -> Nodes:
        """The nodes, where exactly the active ones keep; the last ones if these are the same."""
        if np.array_equal(nodes.keeps, active):
            return nodes
        last = self._last
        if last and last.given.nodes is nodes and np.array_equal(last.active, active):
            return last.cluster.nodes
        return replace(nodes, keeps=read_only(active))


def _with_names_of(last: Cluster, cluster: Cluster) -> Cluster:
    """A cluster with the very names of another one, where they are equal.

    To compare names takes longer than all else; after this they are told apart by identity.
    """
    nodes, partitions = cluster.nodes, cluster.partitions
    if nodes.names is not last.nodes.names and same_names(nodes.names, last.nodes.names):
        nodes = replace(nodes, names=last.nodes.names)
    was = last.partitions
    for field in ("names", "group_names"):
        ours, theirs = getattr(partitions, field), getattr(was, field)
        if ours is not theirs and same_names(ours, theirs):
            partitions = replace(partitions, **{field: theirs})
    if nodes is cluster.nodes and partitions is cluster.partitions:
        return cluster
    return replace(cluster, nodes=nodes, partitions=partitions)
