"""Partitions: loads of replicas by role, and wanted numbers of replicas."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evenkeel.model.names import Names
from evenkeel.model.reading.arrays import read_only

# of one replica, in whole units: where there are more, it hardly matters that they are whole
MOST_UNITS = 64.0

EXACT = 1e-12  # share of a unit by which a multiple of it may be off, such as 0.3 of 0.1
FEW = 64  # loads by which it is seen first whether there is a unit


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
        """The greatest load of which all are whole multiples, (D,) float64.

        0 where there is none, and where some replica weighs more than ``MOST_UNITS`` of it.
        """
        return read_only(np.array([_unit(by) for by in self._by_role]))

    @cached_property
    def alike(self) -> NDArray[np.bool_]:
        """Whether every replica weighs one unit in every role, (D,) bool."""
        pairs = zip(self.unit.tolist(), self._by_role, strict=True)
        return read_only(np.array([
            unit > 0.0 and all(bool((one == unit).all()) for one in by) for unit, by in pairs
        ], bool))  # fmt: skip

    @property
    def _by_role(self) -> list[list[NDArray[np.float64]]]:
        """The loads of each dimension, of all roles that differ."""
        roles = {id(by): by for by in (self.leader, self.voter, self.non_voter)}.values()
        columns = range(self.voter.shape[1])
        return [[by[:, d] for by in roles] for d in columns]


def _unit(columns: list[NDArray[np.float64]]) -> float:
    """Return the greatest number of which all are whole multiples, by Euclid's algorithm; or 0."""
    most = max((float(column.max(initial=0.0)) for column in columns), default=0.0)
    unit = most
    few = [column[:FEW] for column in columns]
    for part in (few, columns):  # most loads without a unit are found out at once
        while unit * MOST_UNITS >= most > 0.0:
            with np.errstate(under="ignore"):
                left = [np.abs(one - np.rint(one / unit) * unit) for one in part]
            least = min(float(one[one > EXACT * unit].min(initial=np.inf)) for one in left)
            if least == np.inf:
                break
            unit = least
        else:
            return 0.0
    return unit


@dataclass(frozen=True, eq=False)
class Partitions:
    """Wanted replicas of each partition; ``Placement`` has the actual ones. Read-only arrays.

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
