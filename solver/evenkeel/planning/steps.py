"""Steps: operations of a plan on single replicas, with times and dependencies.

What a replica is while it moves
--------------------------------
``COPY`` puts a *learner* of replica ``k`` on ``target``. From its start the learner counts there in
every transient dimension, and for replicas that were nowhere in every dimension; it is *behind*,
serves nothing and is no voter. At its finish it is caught up.

A voter is exchanged by ``PROMOTE`` of the learner and ``DEMOTE`` of the voter on ``source``, or by
``SWAP``, which does both at one instant; a replica that is no voter by ``SWAP`` alone, which has no
``target`` where it only goes and no ``source`` where it only comes. The replica
counts in the dimensions that are not transient where it serves: on ``target`` from ``PROMOTE`` or
``SWAP``, and on ``source`` until ``DEMOTE`` or ``SWAP``. ``LEAD`` hands leadership of a partition
from the replica on ``source`` to the one on ``target`` and with it the share of the load that
leaders alone carry. ``REMOVE`` drops what is left on ``source``; at its finish it counts no more.

Where a replica stays, ``PROMOTE`` and ``DEMOTE`` with its node as both ``source`` and ``target``
make a voter or a non-voter of it: nothing is copied, and it is alone there, with no learner of it
elsewhere. Its role, and what it weighs in that, is another from their finish.

``ORDER`` puts the replica on ``target`` first in the list of its partition, in the place of the one
on ``source``: nothing moves, and the system elects it from then on. Only systems whose lists state
who is to lead have it.

A replica may move twice, first to a spare node (*staging*): its steps carry the same ``replica``.
"""

from dataclasses import dataclass, fields, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.placement import PREFERENCES, Flag, Placement, Role
from evenkeel.model.reading.arrays import Flags, Ints32, Ints64, Reals, Roles, Rows, read_only


class StepKind(IntEnum):
    """What a step does."""

    COPY = 0
    PROMOTE = 1
    LEAD = 2
    DEMOTE = 3
    REMOVE = 4
    SWAP = 5
    ORDER = 6


@dataclass(frozen=True, eq=False)
class Steps:
    """S steps, in an order in which each comes after those that it waits for.

    Parameters
    ----------
    kind : ndarray of int8, shape (S,)
        A ``StepKind``.
    partition : ndarray of int32, shape (S,)
        Partition that the step changes.
    replica : ndarray of int32, shape (S,)
        Row of the replica in the placement; of ``LEAD`` the one that leads afterwards, of ``ORDER``
        the one that is first.
    source : ndarray of int32, shape (S,)
        Node that is copied from or left; -1 for none.
    target : ndarray of int32, shape (S,)
        Node that is copied to or joined; -1 for none.
    size : ndarray of float64, shape (S,)
        Bytes copied; 0 of every step but ``COPY``.
    start, finish : ndarray of float64, shape (S,)
        Seconds from the beginning of the plan. What finishes at an instant has finished before
        anything starts at it.
    wave : ndarray of int32, shape (S,)
        Steps of a wave may be handed out together once the wave before has finished.
    first : ndarray of int64, shape (S + 1,)
        Where each step's predecessors begin in ``before``.
    before : ndarray of int32, shape (B,)
        Steps that must have finished before, each lower than the step itself.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> result = ek.solve(c, goals=ek.Goals(level=0.0))
    >>> steps = result.plan().steps
    >>> [StepKind(kind).name for kind in steps.kind.tolist()][:3], steps.target[:1].tolist()
    (['COPY', 'PROMOTE', 'LEAD'], [1])
    """

    kind: NDArray[np.int8]
    partition: Ints32
    replica: Ints32
    source: Ints32
    target: Ints32
    size: Reals
    start: Reals
    finish: Reals
    wave: Ints32
    first: Ints64
    before: Ints32

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def in_place(self) -> Flags:
        """Whether each step changes a role and leaves the replica where it is, (S,)."""
        changes = (self.kind == StepKind.PROMOTE) | (self.kind == StepKind.DEMOTE)
        return np.asarray(changes & (self.source == self.target) & (self.source >= 0))

    @classmethod
    def none(cls) -> "Steps":
        """Return no steps at all."""
        kind, nothing, reals = np.zeros(0, np.int8), np.zeros(0, np.int32), np.zeros(0)
        rows = nothing, nothing, nothing, nothing
        return cls(kind, *rows, reals, reals, reals, nothing, np.zeros(1, np.int64), nothing)

    def apart(self, some: slice | Rows) -> "Steps":
        """Return some steps, which wait for none of the others."""
        columns = {one.name: getattr(self, one.name)[some] for one in fields(self)[:-2]}
        first = np.zeros(len(columns["kind"]) + 1, np.int64)
        return Steps(**columns, first=first, before=self.before[:0])

    def followed_by(self, others: "Steps") -> "Steps":
        """Return these steps and then others, which wait for none of these."""
        columns = {
            one.name: np.append(getattr(self, one.name), getattr(others, one.name))
            for one in fields(self)[:-2]
        }
        first = np.append(self.first, len(self.before) + others.first[1:])
        before = np.append(self.before, others.before + np.int32(len(self)))
        return Steps(**columns, first=first, before=before)

    def first_ones(self, count: int) -> "Steps":
        """Return the first steps, which wait for none of the others."""
        first = self.first[: count + 1]
        return replace(self.apart(slice(count)), first=first, before=self.before[: first[-1]])


def outcome(
    start: Placement, steps: Steps, target: Placement, some: Rows | None = None
) -> Placement:
    """Return where replicas stand, and who leads, once all steps are done, or ``some`` of them."""
    rows = np.arange(len(steps)) if some is None else some
    kind, replica, to = steps.kind[rows], steps.replica[rows], steps.target[rows]
    node, role, leader = start.node.copy(), start.role.copy(), start.leader.copy()
    # of several the last one counts: assignment goes in the order of the steps
    node[replica[kind == StepKind.REMOVE]] = -1
    copied = kind == StepKind.COPY
    node[replica[copied]] = to[copied]
    touched = np.unique(steps.partition[rows])
    leader[touched[start.leader_node[touched] < 0]] = -1
    led = np.flatnonzero(kind == StepKind.LEAD)
    # what comes in place of a leader that died does not lead by that
    left = touched[start.leader_node[touched] >= 0]
    at = start.leader_replica[left]
    leader[left[(node[at] >= 0) & (node[at] != start.node[at])]] = -1
    partition = steps.partition[rows[led]]
    leader[partition] = (replica[led] - start.first[partition]).astype(leader.dtype)
    # a dropped leader has no successor
    gone = np.flatnonzero(leader >= 0)
    gone = gone[node[start.first[gone] + leader[gone]] < 0]
    leader[gone] = np.where(start.leader[gone] == leader[gone], leader[gone], -1)
    flags = start.flags.copy()
    done = np.zeros(len(node), bool)
    done[replica] = True
    done &= node == target.node
    flags[done] = target.flags[done]
    # a list that is written states who is to lead
    differs = (flags ^ target.flags) & PREFERENCES
    listed = np.flatnonzero(differs)
    listed = listed[np.isin(start.owner[listed], touched)]
    flags[listed] ^= differs[listed]
    # what was nowhere, or is nowhere now, has its role in the target
    done &= (start.node < 0) | (node < 0)
    role[done] = target.role[done]
    recast = np.flatnonzero(steps.in_place[rows])
    rises = kind[recast] == StepKind.PROMOTE
    role[replica[recast]] = np.where(rises, Role.VOTER, Role.NON_VOTER)
    coming = np.zeros(len(node), bool)
    coming[replica[copied]] = True
    served = np.flatnonzero((kind == StepKind.PROMOTE) | (kind == StepKind.SWAP))
    coming[replica[served[to[served] == node[replica[served]]]]] = False
    flags[coming] |= np.uint16(Flag.INCOMING)
    disk = None
    if start.disk is not None or target.disk is not None:
        nowhere = np.full(len(node), -1, np.int32)
        was, then = (nowhere if one.disk is None else one.disk for one in (start, target))
        disk = np.where(node == target.node, then, nowhere)
        disk = read_only(np.where(node == start.node, was, disk))
    return Placement(
        start.first, read_only(node), read_only(role), read_only(flags), read_only(leader), disk
    )


def roles_of(start: Placement, steps: Steps, target: Placement) -> Roles:
    """Return the role of each step's replica as the step begins, (S,)."""
    begin = np.where(start.node >= 0, start.role, target.role)
    role = begin[steps.replica]
    recast = np.flatnonzero(steps.in_place)
    if len(recast) == 0:
        return role
    own = np.zeros(len(steps), bool)
    own[recast] = True
    order = np.argsort(steps.replica, kind="stable")
    # the last change of a role before each step of the same replica
    last = np.maximum.accumulate(np.where(own[order], np.arange(len(order)), -1))
    opens = np.flatnonzero(np.diff(steps.replica[order], prepend=-1))
    begins = np.repeat(opens, np.diff(np.append(opens, len(order))))
    before = np.append(-1, last[:-1])[: len(order)]
    some = np.flatnonzero(before >= begins)
    rises = steps.kind[order[before[some]]] == StepKind.PROMOTE
    role[order[some]] = np.where(rises, Role.VOTER, Role.NON_VOTER)
    return role


@dataclass(frozen=True)
class Blocked:
    """A replica that the plan leaves where it is, or as it is, and why.

    Parameters
    ----------
    partition : str
        Name of the partition.
    slot : int
        Slot of the replica.
    source, target : str or None
        Nodes that it should leave and join; the same for what is no move.
    lacks : str
        What it waits for in vain.
    circle : int
        Moves with the same number wait for one another; -1: it waits for one of those.
    change : str
        What should become of it: "move", or where it is "lead", "promote" or "demote".

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[2.0]] * 2, load=[[2.0]] * 2, placement=[[0], [1]])
    >>> swapped = c.placement.replaced(c.placement.node[::-1].copy(), c.placement.leader)
    >>> for one in ek.plan(c, swapped).blocked:
    ...     print(one)
    p0[0] n0 -> n1: no room on n1 in d0
    p1[0] n1 -> n0: no room on n0 in d0
    """

    partition: str
    slot: int
    source: str | None
    target: str | None
    lacks: str
    circle: int
    change: str = "move"

    @property
    def way(self) -> str:
        """From where to where it should go, or what it should become where it is."""
        if self.change != "move":
            return f"{self.change} on {self.target}"
        return f"{self.source or 'nowhere'} -> {self.target or 'nowhere'}"

    def __str__(self) -> str:
        return f"{self.partition}[{self.slot}] {self.way}: no {self.lacks}"
