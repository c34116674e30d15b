"""Constraints: test whether a store is valid, or necessary, for a range.

What is asked of a store is asked of its class. An answer is a number: VALID, NECESSARY, both or 0.
Replicas must meet one table of conjunctions, voters a second one as well.

References
----------
CockroachDB, ``pkg/kv/kvserver/constraint/analyzer.go`` and the checks of ``allocator_scorer.go``.
"""

from typing import NamedTuple

from evenkeel_kernels.build.jit import device_function, inline_only
from evenkeel_kernels.cockroach.context import AllocatorContext
from evenkeel_kernels.cockroach.tables import Ints, Localities, Longs

VALID, NECESSARY = 1, 2


class Table(NamedTuple):
    """The conjunctions of one configuration, and how far one range meets them."""

    # row, asked: (.,) conjunctions of all configurations, and how many replicas are to satisfy them
    row: Ints
    asked: Ints
    # start, stop: those of this configuration
    start: int
    stop: int
    held: Ints  # (E,) replicas that satisfy each of these
    free: bool  # whether they leave some replicas unconstrained


@inline_only
def every(context: AllocatorContext, q: int) -> Table:
    """Return the conjunctions that bind every replica. O(E)."""
    configs, analysis = context.configs, context.analysis
    start, stop = configs.first[q], configs.first[q + 1]
    free = is_free(configs.asked, start, stop, configs.total[q])
    return Table(configs.row, configs.asked, start, stop, analysis.held, free)


@inline_only
def of_voters(context: AllocatorContext, q: int) -> Table:
    """Return the conjunctions that bind voters. O(E)."""
    configs, analysis = context.configs, context.analysis
    start, stop = configs.voter_first[q], configs.voter_first[q + 1]
    free = is_free(configs.voter_asked, start, stop, configs.voter_total[q])
    return Table(configs.voter_row, configs.voter_asked, start, stop, analysis.voter_held, free)


@inline_only
def is_free(asked: Ints, start: int, stop: int, total: int) -> bool:
    """Whether the numbers ``asked (E,)`` of some conjunctions leave some of ``total`` replicas."""
    bound = 0
    for e in range(start, stop):
        bound += asked[e]
    return 0 < bound < total


@device_function
def analyse(context: AllocatorContext, q: int) -> None:
    """Count who satisfies what. O(W E)."""
    localities, members = context.localities, context.members
    table = every(context, q)
    for e in range(table.start, table.stop):
        held = satisfying(localities, table.row[e], members.voter, members.size[0])
        held += satisfying(localities, table.row[e], members.non_voter, members.size[1])
        table.held[e - table.start] = held
    table = of_voters(context, q)
    for e in range(table.start, table.stop):
        held = satisfying(localities, table.row[e], members.voter, members.size[0])
        table.held[e - table.start] = held


@inline_only
def satisfying(localities: Localities, row: int, store: Longs, size: int) -> int:
    """Count those of the first ``size`` of ``store (W,)`` that satisfy a conjunction. O(W)."""
    found = 0
    for i in range(size):
        if localities.matches[row, localities.alike[store[i]]]:
            found += 1
    return found


@inline_only
def check_add(localities: Localities, table: Table, a: int) -> int:
    """Check a store of class ``a`` that would join. O(E)."""
    found = VALID if table.free or table.start == table.stop else 0
    for e in range(table.start, table.stop):
        if localities.matches[table.row[e], a]:
            found = VALID
            if table.held[e - table.start] < table.asked[e]:
                return VALID | NECESSARY
    return found


@inline_only
def check_remove(localities: Localities, table: Table, a: int) -> int:
    """Check a store of class ``a`` that might leave. O(E)."""
    found = VALID if table.free or table.start == table.stop else 0
    for e in range(table.start, table.stop):
        if localities.matches[table.row[e], a]:
            found |= VALID
            if table.held[e - table.start] <= table.asked[e]:
                return VALID | NECESSARY
    return found


@inline_only
def check_rebalance(localities: Localities, table: Table, a: int, b: int) -> int:
    """Check a store of class ``a`` that would take over from one of class ``b``. O(E)."""
    found = VALID if table.free or table.start == table.stop else 0
    for e in range(table.start, table.stop):
        if localities.matches[table.row[e], a]:
            found = VALID
            missing = table.asked[e] - table.held[e - table.start]
            if missing > 0 or (missing == 0 and localities.matches[table.row[e], b]):
                return VALID | NECESSARY
    return found


@inline_only
def check_replace(localities: Localities, table: Table, a: int, b: int) -> int:
    """Check a store of class ``a`` that would stand in for a lost one of class ``b``. O(E)."""
    # unlike a rebalance, it may leave no conjunction short that the lost one met
    found = VALID if table.free or table.start == table.stop else 0
    for e in range(table.start, table.stop):
        missing = table.asked[e] - table.held[e - table.start]
        lost = localities.matches[table.row[e], b]
        if localities.matches[table.row[e], a]:
            found |= VALID
            if missing > 0 or (missing == 0 and lost):
                found |= NECESSARY
        elif lost and missing >= 0:
            return 0
    return found


@inline_only
def both(found: int, voters: int) -> int:
    """Join the answers of two tables: valid for both, necessary for either."""
    return (found & voters & VALID) | ((found | voters) & NECESSARY)


ADD, REMOVE, REBALANCE, REPLACE = 0, 1, 2, 3  # what a store might be looked at for


@device_function
def check(localities: Localities, table: Table, change: int, a: int, b: int) -> int:
    """Check a store of class ``a`` for a change, in which one of class ``b`` may leave. O(E)."""
    if change == ADD:
        return check_add(localities, table, a)
    if change == REMOVE:
        return check_remove(localities, table, a)
    if change == REBALANCE:
        return check_rebalance(localities, table, a, b)
    return check_replace(localities, table, a, b)
