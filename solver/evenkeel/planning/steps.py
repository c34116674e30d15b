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

A replica may move twice, first to a spare node (*staging*): its steps carry the same ``replica``.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class StepKind(IntEnum):
    """What a step does."""

    COPY = 0
    PROMOTE = 1
    LEAD = 2
    DEMOTE = 3
    REMOVE = 4
    SWAP = 5


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
        Row of the replica in the placement; of ``LEAD`` the one that leads afterwards.
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
    partition: NDArray[np.int32]
    replica: NDArray[np.int32]
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    size: NDArray[np.float64]
    start: NDArray[np.float64]
    finish: NDArray[np.float64]
    wave: NDArray[np.int32]
    first: NDArray[np.int64]
    before: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def in_place(self) -> NDArray[np.bool_]:
        """Whether each step changes a role and leaves the replica where it is, (S,)."""
        changes = (self.kind == StepKind.PROMOTE) | (self.kind == StepKind.DEMOTE)
        return np.asarray(changes & (self.source == self.target) & (self.source >= 0))

    @classmethod
    def none(cls) -> "Steps":
        """Return no steps at all."""
        kind, nothing, reals = np.zeros(0, np.int8), np.zeros(0, np.int32), np.zeros(0)
        rows = nothing, nothing, nothing, nothing
        return cls(kind, *rows, reals, reals, reals, nothing, np.zeros(1, np.int64), nothing)

    def first_ones(self, count: int) -> "Steps":
        """Return the first steps, which wait for none of the others."""
        return Steps(
            self.kind[:count], self.partition[:count], self.replica[:count], self.source[:count],
            self.target[:count], self.size[:count], self.start[:count], self.finish[:count],
            self.wave[:count], self.first[: count + 1], self.before[: self.first[count]],
        )  # fmt: skip
