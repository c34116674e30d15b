"""Apply delay windows to a cluster, and find its changes since the last snapshot.

A delay window is the time for which a node that is down keeps its replicas. Which nodes serve is no
part of the comparison, since a baseline is the placement if all nodes did. Arrays are compared by
identity first, so that a snapshot derived from the last one costs nothing.

References
----------
Apache Helix, ``ResourceChangeDetector``: a change of resource configuration, ideal state, cluster
configuration or instance configuration asks for a baseline; a live instance alone does not.
``DelayedRebalanceUtil``: delayed rebalance, per-instance switches, and on-demand rebalance.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.control.binding import numbers, same_names
from evenkeel.control.engines.engine import Change
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.names import Names
from evenkeel.model.nodes import Nodes
from evenkeel.model.reading.arrays import read_only


@dataclass(frozen=True)
class Delay:
    """How long nodes that do not serve keep their places.

    Parameters
    ----------
    seconds : float
        Length of the window; 0 for none.
    enabled : bool
        Whether there are windows at all.
    exempt : frozenset of str
        Names of nodes that have no window.
    on_demand : float
        When a rebalance was last asked for: it ends every window that was open at the time.

    Raises
    ------
    InvalidInput
        If a window is no number of seconds, or the exempt nodes are no set of names.

    Examples
    --------
    >>> Delay(seconds=600.0).enabled
    True
    """

    seconds: float = 0.0
    enabled: bool = True
    exempt: frozenset[str] = frozenset()
    on_demand: float = -np.inf

    def __post_init__(self) -> None:
        faults = FaultList()
        if not isinstance(self.seconds, int | float) or not self.seconds >= 0.0:
            faults.add("delay.seconds", self.seconds, "must be a number, 0 or more")
        if not isinstance(self.on_demand, int | float) or np.isnan(self.on_demand):
            faults.add("delay.on_demand", self.on_demand, "must be a time in seconds")
        if isinstance(self.exempt, str) or not all(isinstance(name, str) for name in self.exempt):
            faults.add("delay.exempt", self.exempt, "must be a set of names of nodes")
        faults.raise_if_any()


@dataclass
class Absences:
    """Since when nodes have not been serving, for those without a time of their own."""

    seen: dict[str, float] = field(default_factory=dict)

    def since(self, nodes: Nodes, now: float) -> NDArray[np.float64]:
        """Return since when each node has been down."""
        down = np.flatnonzero(~nodes.alive)
        since = np.full(len(nodes), np.inf)
        since[down] = nodes.since[down]
        unsaid = {nodes.names[i]: i for i in down[np.isnan(since[down])].tolist()}
        self.seen = {name: self.seen.get(name, now) for name in unsaid}
        for name, i in unsaid.items():
            since[i] = self.seen[name]
        return since


def window_ends(nodes: Nodes, since: NDArray[np.float64], delay: Delay) -> NDArray[np.float64]:
    """Return when each node that is down loses its places."""
    no_window = np.where(np.isfinite(since), -np.inf, np.inf)
    if not delay.enabled or delay.seconds <= 0.0:
        return no_window
    ends = np.where(since < delay.on_demand, since, since + delay.seconds)
    if delay.exempt:
        for i in np.flatnonzero(np.isfinite(since)).tolist():
            if nodes.names[i] in delay.exempt:
                ends[i] = no_window[i]
    return ends


def active_nodes(nodes: Nodes, ends: NDArray[np.float64], now: float) -> NDArray[np.bool_]:
    """Return which nodes keep their places."""
    waited_for = ~nodes.alive & (ends > now)
    return np.asarray(~nodes.gone & (nodes.keeps | waited_for))


@dataclass(frozen=True, eq=False)
class View:
    """One snapshot as it is at one moment. N nodes."""

    given: Cluster  # the snapshot as it came, with the last one's names if they are the same
    cluster: Cluster  # the same, where exactly the active nodes keep their replicas
    # (N,) nodes that keep their places: those that serve, and those that are waited for
    active: NDArray[np.bool_]
    serving: NDArray[np.bool_]  # (N,) of these, nodes that serve now
    wake_at: float | None  # when the next delay window ends, if one is open
    epoch: int  # counts the views that differ in anything that a placement depends on
    static_epoch: int  # counts those that differ in anything that a baseline depends on


class Views:
    """Makes views, and knows the last one."""

    def __init__(self, delay: Delay) -> None:
        self._absences = Absences()
        self._came: Cluster | None = None
        self._last: View | None = None
        self.delay = self._last_delay = delay

    def observe(self, cluster: Cluster, now: float) -> View:
        """Look at a snapshot."""
        last = self._last
        if last is not None and self._came is cluster and self._still_holds(last, now):
            return last
        self._came = cluster
        if last is not None:
            cluster = _with_names_of(last.given, cluster)
        nodes = cluster.nodes
        ends = window_ends(nodes, self._absences.since(nodes, now), self.delay)
        active = active_nodes(nodes, ends, now)
        waited_for = ends[active & ~nodes.alive & (ends > now) & np.isfinite(ends)]
        effective = replace(cluster, nodes=self._with_keeps(nodes, active))
        epoch, static_epoch = 1, 1
        if last is not None:
            is_static_same = not changes(last.given, cluster)
            is_same = is_static_same and same_standing(last.cluster, effective)
            epoch = last.epoch + (not is_same)
            static_epoch = last.static_epoch + (not is_static_same)
        self._last_delay = self.delay
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
        return self._last_delay is self.delay and (last.wake_at is None or now < last.wake_at)

    def _with_keeps(self, nodes: Nodes, active: NDArray[np.bool_]) -> Nodes:
        """The nodes, where exactly the active ones keep; the last ones if these are the same."""
        if np.array_equal(nodes.keeps, active):
            return nodes
        last = self._last
        if last and last.given.nodes is nodes and np.array_equal(last.active, active):
            return last.cluster.nodes
        return replace(nodes, keeps=read_only(active))


def _with_names_of(last: Cluster, cluster: Cluster) -> Cluster:
    """A cluster with the very names of another one, where they are equal."""
    nodes, partitions = cluster.nodes, cluster.partitions
    if nodes.names is not last.nodes.names and same_names(nodes.names, last.nodes.names):
        nodes = replace(nodes, names=last.nodes.names)
    was = last.partitions
    for column in ("names", "group_names"):
        ours, theirs = getattr(partitions, column), getattr(was, column)
        if ours is not theirs and same_names(ours, theirs):
            partitions = replace(partitions, **{column: theirs})
    if nodes is cluster.nodes and partitions is cluster.partitions:
        return cluster
    return replace(cluster, nodes=nodes, partitions=partitions)


@dataclass(frozen=True)
class Changes:
    """What changed."""

    kinds: frozenset[Change] = frozenset()
    groups: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.kinds)


def assignable(cluster: Cluster) -> NDArray[np.bool_]:
    """Return which nodes a baseline is for: those that serve and keep, and those that are down.

    >>> c = Cluster.from_arrays(capacity=[[1.0]] * 3, load=[], alive=[True, True, False],
    ...                         keeps=[True, False, False])
    >>> assignable(c).tolist()
    [True, False, True]
    """
    nodes = cluster.nodes
    return np.asarray(~nodes.gone & (nodes.keeps | ~nodes.alive))


def changes(before: Cluster, now: Cluster) -> Changes:
    """Compare two snapshots."""
    if before is now:
        return Changes()
    kinds = frozenset(
        kind for kind, values in PARTS.items() if not _all_same(values(before), values(now))
    )
    return Changes(kinds, _changed_groups(before, now) if Change.GROUPS in kinds else ())


def same_standing(before: Cluster, now: Cluster) -> bool:
    """Return whether the nodes' states are the same."""
    was, nodes = before.nodes, now.nodes
    return all(
        _same(getattr(was, name), getattr(nodes, name))
        for name in ("alive", "accepts", "keeps", "leads", "gone")
    )


def digests(cluster: Cluster) -> dict[str, str]:
    """Sum up a snapshot, so that a later process can detect changes."""
    return {change.value: _digest(values(cluster)) for change, values in PARTS.items()}


def changes_since(recorded: dict[str, str], now: Cluster) -> Changes:
    """Compare a snapshot with the digests of an earlier one."""
    found = digests(now)
    kinds = frozenset(
        change for change in Change if recorded.get(change.value) != found[change.value]
    )
    every = range(len(now.partitions.group_names)) if Change.GROUPS in kinds else ()
    return Changes(kinds, tuple(every))


def _of_cluster(cluster: Cluster) -> Iterator[Any]:
    topology = cluster.topology
    yield from (cluster.rules, cluster.dimensions, cluster.transient, cluster.bytes_dimension)
    yield from (cluster.depends, cluster.native_format, topology.tiers, topology.crossing)
    yield topology.tier_distance
    for name in sorted(topology.tier_capacity):
        yield from (name, topology.tier_capacity[name])


def _of_nodes(cluster: Cluster) -> Iterator[Any]:
    nodes, topology = cluster.nodes, cluster.topology
    yield from (nodes.names, nodes.capacity, nodes.watermark, nodes.weight, nodes.lead_weight)
    yield from (nodes.max_replicas, nodes.stands_for, assignable(cluster), cluster.forbidden)
    yield from (topology.domain, topology.label, topology.label_names)
    for tag in sorted(nodes.tags):
        yield from (tag, nodes.tags[tag])
    for name in sorted(nodes.attributes):
        codes, meaning = nodes.attributes[name]
        yield from (name, codes, meaning)


def _of_groups(cluster: Cluster) -> Iterator[Any]:
    partitions = cluster.partitions
    yield from (partitions.names, partitions.group_names, partitions.group_rule, partitions.group)
    yield from _by_partition(cluster)


# what of a cluster each kind of change is about
PARTS = {Change.CLUSTER: _of_cluster, Change.NODES: _of_nodes, Change.GROUPS: _of_groups}


def _by_partition(cluster: Cluster) -> tuple[NDArray[Any], ...]:
    partitions, load = cluster.partitions, cluster.partitions.load
    return (
        load.leader, load.voter, load.non_voter, partitions.replicas, partitions.voters,
        partitions.min_active, partitions.rule,
    )  # fmt: skip


def _all_same(one: Iterator[Any], other: Iterator[Any]) -> bool:
    ended = object()
    while True:
        a, b = next(one, ended), next(other, ended)
        if a is ended and b is ended:
            return True
        if not _same(a, b):
            return False


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return _is_view_of_same(a, b) or np.array_equal(a, b)
    if isinstance(a, Names) and isinstance(b, Names):
        return same_names(a, b)
    return type(a) is type(b) and bool(a == b)


def _is_view_of_same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two arrays are the same memory read in the same way."""
    return a.__array_interface__ == b.__array_interface__


def _changed_groups(before: Cluster, now: Cluster) -> tuple[int, ...]:
    """The groups with partitions that are not what they were, by name."""
    old, new = before.partitions, now.partitions
    was = numbers(old.names, new.names)
    differs = was < 0
    known = np.flatnonzero(~differs)
    for a, b in zip(_by_partition(before), _by_partition(now), strict=True):
        if a.shape[1:] != b.shape[1:]:
            differs[:] = True
            continue
        unequal = a[was[known]] != b[known]
        differs[known] |= unequal.reshape(len(known), -1).any(axis=1)
    moved = numbers(old.group_names, new.group_names)[new.group[known]]
    differs[known] |= moved != old.group[was[known]]
    return tuple(np.unique(new.group[differs]).tolist())


def _digest(values: Iterator[Any]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        if isinstance(value, np.ndarray):
            digest.update(f"{value.dtype.str}{value.shape}".encode())
            digest.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, Names):
            digest.update("\0".join(value).encode("utf-8", "surrogatepass"))
        elif isinstance(value, frozenset):
            digest.update(repr(sorted(value)).encode())
        else:
            digest.update(repr(value).encode("utf-8", "backslashreplace"))
        digest.update(b"\1")
    return digest.hexdigest()
