"""Which replicas a range can do without, as far as its raft group is up to date.

References
----------
CockroachDB, ``allocator.go``, ``FilterUnremovableReplicas``.
"""

from evenkeel_kernels.build.jit import inlined, no_alloc
from evenkeel_kernels.cockroach.tables import Flags


@inlined
def quorum(n: int) -> int:
    """Return how many of ``n`` voters decide."""
    return n // 2 + 1


@no_alloc
def removable(up_to_date: Flags, n: int, newest: int, free: Flags) -> None:
    """Fill ``free (n,)`` with whether each of ``n`` replicas can be removed.

    ``up_to_date (n,)`` says which have all that is committed. The ``newest``, a place or -1, counts
    as one that has, and cannot be removed. Without a quorum of such, nothing can; where one of them
    could be missed, everything; else those that lag. O(n).
    """
    up = 0
    for i in range(n):
        if up_to_date[i] or i == newest:
            up += 1
    some = up >= quorum(n)
    spare = up > quorum(n - 1)
    for i in range(n):
        free[i] = some and i != newest and (spare or not up_to_date[i])
