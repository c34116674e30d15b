"""What WAGED knows of a cluster that stays the same, and which nodes a run is about and keeps."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.assignment import Assignment
from evenkeel.model.reading.arrays import writable
from evenkeel.systems.helix.crush.hashed import HashedNames, filled_capacity, map_order, set_orders
from evenkeel.systems.helix.crush.resources import state_counts, wanted_replicas
from evenkeel_kernels.helix import waged as kernel

NO_LIMIT = 2**31 - 1
"""Of replicas on a node, or of one group there."""

DASH = ord("-")


class Kind(NamedTuple):
    """What is wanted of some partitions."""

    # their state model: states by falling priority, each with a number, ``"R"`` or ``"N"``
    states: Mapping[str, int | str]
    replicas: int | str  # replicas of each, or ``"ANY_LIVEINSTANCE"``
    min_active: int | None  # least number of live replicas; None for as many as there are replicas

    @property
    def names(self) -> list[str]:
        """States by falling priority; a replica's state is a place in this list."""
        return list(self.states)


class Wanted(NamedTuple):
    """Replicas of each of Q kinds in one run, S states."""

    by_state: NDArray[np.int32]  # (Q, S) replicas in each state
    replicas: NDArray[np.int32]  # (Q,) replicas wanted, whatever the zones allow
    least: NDArray[np.int32]  # (Q,) replicas that have to be live
    least_by_state: NDArray[np.int32]  # (Q, S) replicas in each state, were there just that many


@dataclass(frozen=True, eq=False)
class Model:
    """N nodes, P partitions in G groups, D capacity keys, M node masks, Z zones, Q kinds."""

    keys: tuple[str, ...]  # d names of what has a capacity
    nodes: HashedNames  # n logical ids
    capacity: NDArray[np.int32]  # (N, D) of each node
    zone: NDArray[np.int32]  # (N,) fault zone, counted from 0
    limit: NDArray[np.int32]  # (N,) most replicas of a node; ``NO_LIMIT`` for none
    masks: NDArray[np.bool_]  # (M, N) nodes that carry what some partitions ask for
    groups: HashedNames  # g names: Helix's resources
    # (G,) most replicas of a group on one node; ``NO_LIMIT`` for none
    group_limit: NDArray[np.int32]
    partitions: HashedNames  # p names
    # group, mask, kind: (P,) of each partition: its group, its row of ``masks``, its place in
    # ``kinds``
    group: NDArray[np.int32]
    mask: NDArray[np.int32]
    kind: NDArray[np.int32]
    kinds: tuple[Kind, ...]  # what is wanted of partitions
    weight: NDArray[np.int32]  # (P, D) what a replica takes of each key, in whatever state
    disabled: NDArray[np.int32]  # (F, 2) pairs of partition and node, sorted

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


class Scope(Enum):
    """How much is placed anew."""

    GLOBAL = "global"
    PARTIAL = "partial"
    EMERGENCY = "emergency"
    OVERWRITE = "overwrite"


@dataclass(frozen=True, eq=False)
class Task:
    """What one run is about. n nodes, P partitions."""

    scope: Scope  # how much is placed anew
    nodes: NDArray[np.int64]  # (n,) nodes of the run, ascending; replicas on others are not kept
    # what to start from: the last baseline for a global run, else the best possible
    current: Assignment
    baseline: Assignment | None  # what a partial run comes closer to
    # (P,) partitions that a global run places anew, whatever is kept of the others
    anew: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Rows:
    """An assignment on the nodes of a run. P partitions, K replicas."""

    first: NDArray[np.int64]  # (P + 1,) where each partition's replicas start
    node: NDArray[np.int32]  # (K,) place of each replica's node in the run, -1 if it is not in it
    state: NDArray[np.uint8]  # (K,) state of each replica, ascending in every row
    owner: NDArray[np.int32]  # (K,) partition of each replica


@dataclass(frozen=True, eq=False)
class Split:
    """What a run keeps and places. P partitions, S states."""

    # owner, node, state: (K,) partition, place of the node in the run, and state of what is kept:
    # int32, int32, uint8
    owner: NDArray[np.int32]
    node: NDArray[np.int32]
    state: NDArray[np.uint8]
    place: NDArray[np.int32]  # (P, S) replicas to place
    # (P, S) replicas that there are as far as the run knows: what expectations are made from
    made: NDArray[np.int32]


def rows_of(assignment: Assignment, place_of: NDArray[np.int32]) -> Rows:
    """Look at an assignment from the nodes of a run."""
    return Rows(
        writable(assignment.first),
        place_of[assignment.node],
        writable(assignment.state),
        writable(assignment.owner),
    )


def split(model: Model, task: Task, wanted: Wanted, current: Rows, baseline: Rows) -> Split:
    """Tell what is kept from what is placed."""
    made = wanted.by_state[model.kind]
    place = np.empty_like(made)
    if task.scope is not Scope.OVERWRITE and kernel.crowded(
        current.first, current.state, model.kind, wanted.by_state
    ):
        current = _as_walked(model, task.current, current)
    keep = np.empty(len(current.node), np.bool_)
    rows = (current.first, current.node, current.state)
    if task.scope is Scope.GLOBAL:
        held = np.bincount(model.group[current.owner], minlength=len(model.groups)) > 0
        anew = task.anew | ~held[model.group]
        kernel.keep_all_valid(*rows, model.kind, wanted.by_state, anew, keep, place)
    elif task.scope is Scope.PARTIAL:
        made = np.empty_like(place)
        meant = (baseline.first, baseline.node, baseline.state)
        kernel.keep_what_agrees(*rows, *meant, model.kind, wanted.by_state, keep, place, made)
    elif task.scope is Scope.EMERGENCY:
        kernel.keep_where_active(*rows, model.kind, wanted.by_state, keep, place)
    else:
        kernel.keep_and_fill(
            *rows, model.kind, wanted.replicas, wanted.least, wanted.least_by_state, keep, place
        )
    return Split(current.owner[keep], current.node[keep], current.state[keep], place, made)


def _as_walked(model: Model, assignment: Assignment, rows: Rows) -> Rows:
    """Let the nodes of each state stand as in the ``HashSet`` that the original makes of them.

    That is filled from a ``HashMap`` of the whole row, and that one, here, by the nodes' names.
    """
    rank = model.nodes.rank[assignment.node]
    hashes = model.nodes.hash[assignment.node]
    by_name = np.lexsort((rank, rows.owner))
    in_map = by_name[set_orders(rows.first, hashes[by_name])]
    by_state = in_map[np.lexsort((rows.state[in_map], rows.owner[in_map]))]
    begins = np.ones(len(rows.owner), np.bool_)
    begins[1:] = (rows.owner[1:] != rows.owner[:-1]) | (rows.state[1:] != rows.state[:-1])
    runs = np.append(np.flatnonzero(begins), len(begins))
    order = by_state[set_orders(runs, hashes[by_state])]
    return Rows(rows.first, rows.node[order], rows.state, rows.owner)


def merged(current: Assignment, overwrite: Assignment) -> Assignment:
    """Lay an overwrite over the best possible."""
    owner = np.concatenate([overwrite.owner, current.owner])
    node = np.concatenate([overwrite.node, current.node])
    state = np.concatenate([overwrite.state, current.state])
    _, kept = np.unique(owner.astype(np.int64) << 32 | node, return_index=True)
    return Assignment.of_rows(len(current), owner[kept], node[kept], state[kept])
