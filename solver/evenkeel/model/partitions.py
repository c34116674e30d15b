"""Partitions: what each replica weighs in each role, and how many replicas are wanted."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.names import Names
from evenkeel.model.reading.arrays import read_only

LEAST_UNIT = 1e-150
"""Of a load by which room is counted, so that the counts are finite."""


@dataclass(frozen=True, eq=False)
class Loads:
    """Load of a replica by the class of its role; roles that do not differ share one array.

    Parameters
    ----------
    leader, voter, non_voter : ndarray of float64, shape (P, D)
        Load of one replica of each partition in that role, in each dimension's unit.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[4.0]] * 2, load=[[1.0]] * 3, leader_load=[[2.0]] * 3, placement=[[0, 1]] * 3
    ... )
    >>> c.partitions.load.leader.tolist(), c.partitions.load.voter.tolist()
    ([[2.0], [2.0], [2.0]], [[1.0], [1.0], [1.0]])
    """

    leader: NDArray[np.float64]
    voter: NDArray[np.float64]
    non_voter: NDArray[np.float64]

    @cached_property
    def lightest(self) -> NDArray[np.float64]:
        """What a replica of each partition weighs at least, whatever its role, (P, D) float64."""
        least = self.voter
        for other in (self.leader, self.non_voter):
            if other.ctypes.data != least.ctypes.data and not (other >= least).all():
                least = np.minimum(least, other)
        return read_only(least)

    @property
    def lightest_by_dimension(self) -> NDArray[np.float64]:
        """The same, each dimension in one stretch of memory, (D, P) float64; a copy, not kept."""
        return read_only(np.ascontiguousarray(self.lightest.T))

    @cached_property
    def unit(self) -> NDArray[np.float64]:
        """What every replica weighs in every role, (D,) float64; 0 where they differ.

        And where it is less than ``LEAST_UNIT``: no count of such replicas fills any room.
        """
        unit = np.zeros(self.voter.shape[1])
        for d in range(len(unit) if len(self.voter) else 0):
            first = self.voter[0, d]
            if (
                first >= LEAST_UNIT
                and first == self.voter[-1, d]
                and all(
                    (by[:, d] == first).all() for by in (self.voter, self.leader, self.non_voter)
                )
            ):
                unit[d] = first
        return read_only(unit)


@dataclass(frozen=True, eq=False)
class Partitions:
    """What is wanted of each partition; what *is* stands in ``Placement``. Arrays are read-only.

    Parameters
    ----------
    names : Names
        P names.
    load : Loads
        Load by role.
    replicas : ndarray of int32, shape (P,)
        Replicas wanted, non-voters included.
    voters : ndarray of int32, shape (P,)
        Of these, voters wanted.
    min_active : ndarray of int32, shape (P,)
        Live replicas below which the partition is in danger.
    group : ndarray of int32, shape (P,)
        Group of each partition.
    group_names : Names
        G names.
    rule : ndarray of int32, shape (P,)
        Index into the cluster's rules; -1 for the default rule alone.
    group_rule : ndarray of int32, shape (G,)
        Index of the rule that binds the group as a whole; -1 for none.
    attached : ndarray of int32, shape (P,)
        Node that uses the partition (a Longhorn volume's engine); -1 for none.
    move_cost : ndarray of float64, shape (P,)
        Cost of moving one replica.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[4.0]] * 2, load=[[1.0]] * 4, placement=[[0]] * 4)
    >>> partitions = c.partitions
    >>> len(partitions), partitions.names[3], partitions.replicas.tolist()
    (4, 'p3', [1, 1, 1, 1])
    """

    names: Names
    load: Loads
    replicas: NDArray[np.int32]
    voters: NDArray[np.int32]
    min_active: NDArray[np.int32]
    group: NDArray[np.int32]
    group_names: Names
    rule: NDArray[np.int32]
    group_rule: NDArray[np.int32]
    attached: NDArray[np.int32]
    move_cost: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.replicas)
