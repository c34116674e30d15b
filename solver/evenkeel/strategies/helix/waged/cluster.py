"""From a cluster to what WAGED knows of it."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.arrays import list_entries, thawed
from evenkeel.model.binding import allowed_masks, bound_rules
from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.nodes import Nodes
from evenkeel.model.topology import NODE_LEVEL, Topology
from evenkeel.strategies.helix.hashed import hashed
from evenkeel.strategies.helix.resources import zone_level
from evenkeel.strategies.helix.waged.model import NO_LIMIT, Kind, Model
from evenkeel.strategies.helix.waged.scopes import Scope
from evenkeel.strategies.options import Waged

LARGEST = 2**31 - 1


def model_of(cluster: Cluster, options: Waged) -> Model:
    """Return what does not change from run to run, made once for the same arrays.

    Parameters
    ----------
    cluster : Cluster
        The snapshot.
    options : Waged
        The state model, the level of the fault zones and the limit of a group.

    Returns
    -------
    Model
        The same object as the last time, as long as the cluster's names, capacities, tags, limits,
        topology, partitions, rules and disabled partitions are the same objects.

    Raises
    ------
    InvalidInput
        If WAGED cannot express something; all of it is named.
    """
    nodes = cluster.nodes
    parts = (
        nodes.names, nodes.capacity, nodes.tags, nodes.attributes, nodes.max_replicas,
        cluster.topology, cluster.partitions, cluster.rules, cluster.forbidden,
    )  # fmt: skip
    asked = (tuple(options.states.items()), options.replicas, options.zone, options.max_per_group)
    made_from = replace(
        options, current=None, baseline=None, scope="global"
    )  # what is kept is small
    return _cached(_Parts(cluster, made_from, parts, asked))


def run_nodes(nodes: Nodes, scope: Scope) -> NDArray[np.int64]:
    """Tell which nodes a run is about.

    Parameters
    ----------
    nodes : Nodes
        With their flags.
    scope : Scope
        Of the run.

    Returns
    -------
    (n,) int64
        For a baseline all that are neither gone nor being emptied, dead ones too; for an overwrite
        those that serve; else these and the ones that keep their replicas because they may soon be
        back. A node that only takes the place of another is never one of them.
    """
    usable = ~nodes.gone & ~(nodes.alive & ~nodes.keeps) & (nodes.stands_for < 0)
    if scope is Scope.OVERWRITE:
        usable = usable & nodes.may_receive
    elif scope is not Scope.GLOBAL:
        usable = usable & (nodes.may_receive | nodes.may_hold)
    return np.flatnonzero(usable)


@dataclass(frozen=True, eq=False)
class _Parts:
    """What a model is made of; the same if its parts are the same objects."""

    cluster: Cluster
    options: Waged
    parts: tuple[object, ...]
    asked: tuple[object, ...]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Parts):
            return NotImplemented
        same = all(mine is theirs for mine, theirs in zip(self.parts, other.parts, strict=True))
        return same and self.asked == other.asked

    def __hash__(self) -> int:
        return hash(tuple(map(id, self.parts)))


@lru_cache(maxsize=2)
def _cached(given: _Parts) -> Model:
    return _model(given.cluster, given.options)


def _model(cluster: Cluster, options: Waged) -> Model:
    faults = FaultList()
    rules, rule = bound_rules(cluster)
    levels = {zone_level(cluster, one) for one in rules} if options.zone is None else {options.zone}
    known = [*cluster.topology.levels, NODE_LEVEL]
    if len(levels) > 1:
        message = "must name the level of the fault zones: rules spread over different ones"
        faults.add("options.zone", sorted(levels), message)
    elif not levels <= set(known):
        faults.add("options.zone", options.zone, f"is no level; known: {known}")
    capacity = _whole(faults, "capacity", cluster.nodes.capacity)
    weight = _whole(faults, "load", cluster.partitions.load.voter)
    if not _same(cluster.partitions.load.leader, cluster.partitions.load.voter):
        faults.add(
            "leader_load", "another load", "must be the load: a replica's weight has no role"
        )
    faults.raise_if_any()
    kinds, kind = _kinds(cluster, options)
    limit = cluster.nodes.max_replicas
    groups = len(cluster.partitions.group_names)
    per_group = NO_LIMIT if options.max_per_group is None else options.max_per_group
    return Model(
        keys=cluster.dimensions,
        nodes=hashed(cluster.nodes.names),
        capacity=capacity,
        zone=_zones(cluster.topology, levels.pop(), len(cluster.nodes)),
        limit=np.where(limit < 0, NO_LIMIT, limit).astype(np.int32),
        masks=allowed_masks(cluster, rules),
        groups=hashed(cluster.partitions.group_names),
        group_limit=np.full(groups, per_group, np.int32),
        partitions=hashed(cluster.partitions.names),
        group=thawed(cluster.partitions.group),
        mask=np.array(rule, np.int32),
        kind=kind,
        kinds=kinds,
        weight=weight,
        disabled=thawed(cluster.forbidden),
    )


def _whole(faults: FaultList, path: str, given: NDArray[np.float64]) -> NDArray[np.int32]:
    """Take numbers as 32-bit integers, which is what Helix counts in."""
    bad = ~(given <= LARGEST) | (given != np.floor(given))
    list_entries(faults, path, given, bad, "must be a whole number below 2**31")
    return np.where(bad, 0.0, given).astype(np.int32)


def _same(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return one is other or np.array_equal(one, other)


def _kinds(cluster: Cluster, options: Waged) -> tuple[tuple[Kind, ...], NDArray[np.int32]]:
    """Kinds of partitions, by how many replicas they want and how many of them live."""
    partitions = cluster.partitions
    pairs = partitions.replicas.astype(np.int64) << 32 | partitions.min_active
    distinct, kind = np.unique(pairs, return_inverse=True)
    kinds = tuple(
        Kind(options.states, options.replicas or pair >> 32, pair & (2**32 - 1))
        for pair in distinct.tolist()
    )
    return kinds, kind.astype(np.int32)


def _zones(topology: Topology, level: str, nodes: int) -> NDArray[np.int32]:
    """Fault zone of each node: all its labels down to the level; a missing one is a label too."""
    if level == NODE_LEVEL:
        return np.arange(nodes, dtype=np.int32)
    last = topology.level_index(level)
    rows = [last]
    if level not in topology.crossing:
        rows = [row for row in range(last + 1) if topology.levels[row] not in topology.crossing]
    _, zone = np.unique(topology.label[rows], axis=1, return_inverse=True)
    return np.ravel(zone).astype(np.int32)
