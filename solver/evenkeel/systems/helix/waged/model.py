"""What WAGED knows of a cluster that does not change from run to run."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.helix.crush.hashed import HashedNames
from evenkeel.systems.helix.crush.java_order import filled_capacity, map_order
from evenkeel.systems.helix.crush.resources import state_counts, wanted_replicas

NO_LIMIT = 2**31 - 1
"""Of replicas on a node, or of one group there."""

DASH = ord("-")


class Kind(NamedTuple):
    """What is wanted of some partitions.

    Attributes
    ----------
    states : mapping of str to int or str
        Their state model: states by falling priority, each with a number, ``"R"`` or ``"N"``.
    replicas : int or str
        Replicas of each, or ``"ANY_LIVEINSTANCE"``.
    min_active : int or None
        Least number of live replicas; None for as many as there are replicas.
    """

    states: Mapping[str, int | str]
    replicas: int | str
    min_active: int | None

    @property
    def names(self) -> list[str]:
        """States by falling priority; a replica's state is a place in this list."""
        return list(self.states)


class Wanted(NamedTuple):
    """Replicas of each of Q kinds in one run, S states.

    Attributes
    ----------
    by_state : ndarray of int32, shape (Q, S)
        Replicas in each state.
    replicas : ndarray of int32, shape (Q,)
        Replicas wanted, whatever the zones allow.
    least : ndarray of int32, shape (Q,)
        Replicas that have to be live.
    least_by_state : ndarray of int32, shape (Q, S)
        Replicas in each state, were there just that many.
    """

    by_state: NDArray[np.int32]
    replicas: NDArray[np.int32]
    least: NDArray[np.int32]
    least_by_state: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Model:
    """N nodes, P partitions in G groups, D capacity keys, M node masks, Z zones, Q kinds.

    Parameters
    ----------
    keys : tuple of str
        D names of what has a capacity.
    nodes : HashedNames
        N logical ids.
    capacity : ndarray of int32, shape (N, D)
        Of each node.
    zone : ndarray of int32, shape (N,)
        Fault zone, counted from 0.
    limit : ndarray of int32, shape (N,)
        Most replicas of a node; ``NO_LIMIT`` for none.
    masks : ndarray of bool, shape (M, N)
        Nodes that carry what some partitions ask for.
    groups : HashedNames
        G names: Helix's resources.
    group_limit : ndarray of int32, shape (G,)
        Most replicas of a group on one node; ``NO_LIMIT`` for none.
    partitions : HashedNames
        P names.
    group, mask, kind : ndarray of int32, shape (P,)
        Of each partition: its group, its row of ``masks``, its place in ``kinds``.
    kinds : tuple of Kind
        What is wanted of partitions.
    weight : ndarray of int32, shape (P, D)
        What a replica takes of each key, in whatever state.
    disabled : ndarray of int32, shape (F, 2)
        Pairs of partition and node, sorted.
    """

    keys: tuple[str, ...]
    nodes: HashedNames
    capacity: NDArray[np.int32]
    zone: NDArray[np.int32]
    limit: NDArray[np.int32]
    masks: NDArray[np.bool_]
    groups: HashedNames
    group_limit: NDArray[np.int32]
    partitions: HashedNames
    group: NDArray[np.int32]
    mask: NDArray[np.int32]
    kind: NDArray[np.int32]
    kinds: tuple[Kind, ...]
    weight: NDArray[np.int32]
    disabled: NDArray[np.int32]

    @cached_property
    def states(self) -> int:
        """Most states that a partition can be in."""
        return max((len(kind.names) for kind in self.kinds), default=0)

    @cached_property
    def total_order(self) -> NDArray[np.int64]:
        """Capacity keys in the order in which totals by key are walked, (D,) int64."""
        return map_order(HashedNames.of(self.keys).hash)

    @cached_property
    def weight_order(self) -> NDArray[np.int64]:
        """Capacity keys in the order in which a replica's weights are walked, (D,) int64."""
        return map_order(HashedNames.of(self.keys).hash, filled_capacity(len(self.keys)))

    @cached_property
    def replica_hash(self) -> NDArray[np.uint32]:
        """Java's hash of ``group-partition-state``, (P, S) uint32."""
        group = self.groups.hash.view(np.uint32)[self.group]
        head = (group * np.uint32(31) + np.uint32(DASH)) * self.partitions.power
        head = (head + self.partitions.word) * np.uint32(31) + np.uint32(DASH)
        hashes = np.zeros((len(self.kind), self.states), np.uint32)
        for q, kind in enumerate(self.kinds):
            names = HashedNames.of(kind.names)
            members = self.kind == q
            tail = head[members, np.newaxis] * names.power + names.word
            hashes[members, : len(names)] = tail
        return hashes

    def wanted(self, zones: int, nodes: int) -> Wanted:
        """Count the replicas of each kind."""
        q, s = len(self.kinds), self.states
        found = Wanted(
            np.zeros((q, s), np.int32), np.zeros(q, np.int32), np.zeros(q, np.int32),
            np.zeros((q, s), np.int32),
        )  # fmt: skip
        for i, kind in enumerate(self.kinds):
            replicas = wanted_replicas(kind.replicas, nodes)
            least = replicas if kind.min_active is None else kind.min_active
            found.replicas[i], found.least[i] = replicas, least
            for counts, row in (
                (state_counts(kind.states, zones, replicas), found.by_state),
                (state_counts(kind.states, least, least), found.least_by_state),
            ):
                for j, name in enumerate(kind.names):
                    row[i, j] = counts.get(name, 0)
        return found
