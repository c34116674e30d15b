"""Compare candidate stores by CockroachDB's criteria, with thresholds around a mean.

References
----------
CockroachDB, ``pkg/kv/kvserver/allocator/allocatorimpl/allocator_scorer.go``.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import inlined
from evenkeel_kernels.cockroach.tables import (
    CLOSE,
    COUNT,
    LOAD,
    NEUTRAL,
    RANGES,
    Scorer,
    Stores,
    draw,
)

UNDERFULL, AROUND_THE_MEAN, OVERFULL = 1, 0, -1

BY_VALIDITY, BY_DISK, BY_NEED, BY_VOTERS, BY_DIVERSITY = 600.0, 500.0, 400.0, 350.0, 300.0
# what the first criterion that two candidates differ in is worth; range counts give below 1
BY_IO, BY_CONVERGENCE, BY_BALANCE, BY_NON_VOTER = 250.0, 200.0, 150.0, 100.0


class Candidate(NamedTuple):
    """A store as the ladder sees it."""

    store: int
    valid: bool
    full: bool  # its disk
    necessary: bool
    voter_necessary: bool
    diversity: float
    overloaded: bool  # its disk's bandwidth
    io: float
    converges: int  # higher is better to have a replica on
    balance: int  # UNDERFULL and so on
    non_voter: bool  # it holds one of the range
    ranges: float


@inlined
def compare(c: Candidate, o: Candidate) -> float:
    """Return how much better ``c`` is than ``o`` by the first criterion they differ in; O(1)."""
    # of two that are not valid, or whose disks are full, each is better than the other
    if not o.valid:
        return BY_VALIDITY
    if not c.valid:
        return -BY_VALIDITY
    if o.full:
        return BY_DISK
    if c.full:
        return -BY_DISK
    if c.necessary != o.necessary:
        return BY_NEED if c.necessary else -BY_NEED
    if c.voter_necessary != o.voter_necessary:
        return BY_VOTERS if c.voter_necessary else -BY_VOTERS
    if abs(c.diversity - o.diversity) > CLOSE:
        return BY_DIVERSITY if c.diversity > o.diversity else -BY_DIVERSITY
    if c.overloaded and o.overloaded and c.io != o.io:
        return BY_IO if c.io < o.io else -BY_IO
    if c.overloaded != o.overloaded:
        return -BY_IO if c.overloaded else BY_IO
    if c.converges != o.converges:
        steps = (c.converges - o.converges) / 10.0
        return steps + (BY_CONVERGENCE if steps > 0 else -BY_CONVERGENCE)
    if c.balance != o.balance:
        steps = (c.balance - o.balance) / 10.0
        return steps + (BY_BALANCE if steps > 0 else -BY_BALANCE)
    if c.non_voter != o.non_voter:
        return BY_NON_VOTER if c.non_voter else -BY_NON_VOTER
    if c.ranges == o.ranges:
        return 0.0
    if c.ranges < o.ranges:
        return (o.ranges - c.ranges) / o.ranges
    return -(c.ranges - o.ranges) / c.ranges


@inlined
def margin(scorer: Scorer, mean: float) -> float:
    """Return how far from the mean a store is still around it."""
    return max(scorer.threshold * mean, scorer.least)


@inlined
def balance(scorer: Scorer, value: float, mean: float) -> int:
    """Return whether a store of that value is UNDERFULL, AROUND_THE_MEAN or OVERFULL."""
    if scorer.kind == NEUTRAL:
        return AROUND_THE_MEAN
    if value < mean - margin(scorer, mean):
        return UNDERFULL
    if value >= mean + margin(scorer, mean):
        return OVERFULL
    return AROUND_THE_MEAN


@inlined
def converges(value: float, changed: float, mean: float) -> bool:
    """Whether ``changed`` is nearer to the mean than ``value``."""
    return abs(changed - mean) < abs(value - mean)


@inlined
def keeps_away(scorer: Scorer, value: float, mean: float) -> int:
    """Return 1 if a range less would not bring a store nearer to the mean; only where counts do."""
    return 1 if scorer.kind == COUNT and not converges(value, value - 1.0, mean) else 0


@inlined
def draws_near(scorer: Scorer, value: float, mean: float) -> int:
    """Return 1 if a range more would bring a store nearer to the mean; only where counts do."""
    return 1 if scorer.kind == COUNT and converges(value, value + 1.0, mean) else 0


@inlined
def too_many(scorer: Scorer, value: float, mean: float) -> bool:
    """Whether so many ranges are too many, whatever the others have."""
    return scorer.kind == COUNT and value > math.ceil(mean + margin(scorer, mean))


@inlined
def too_few(scorer: Scorer, least: float, mean: float) -> bool:
    """Whether so few ranges call for others' ranges."""
    return scorer.kind == COUNT and least < math.floor(mean - margin(scorer, mean))


@inlined
def sheds_load(scorer: Scorer, impact: float, source: float, best: float, mean: float) -> bool:
    """Whether load goes from a store to the ``best`` of a class, by the mean of both together."""
    if best > source or source <= mean + margin(scorer, mean):
        return False
    return max(source - impact, 0.0) - best >= scorer.difference


@inlined
def ranges_of(scorer: Scorer, stores: Stores, s: int) -> float:
    """Return how many ranges a store has, which says nothing where nothing is levelled."""
    return 0.0 if scorer.kind == NEUTRAL else stores.amount[RANGES, s]


@inlined
def is_load(scorer: Scorer) -> bool:
    """Whether load is levelled, and not counts."""
    return scorer.kind == LOAD


@inlined
def two_of(size: int, rng_state: NDArray[np.uint64]) -> tuple[int, int]:
    """Draw two different places out of ``size`` by ``rng_state (1,)``; one place is drawn twice."""
    if size <= 1:
        return 0, 0
    first = draw(rng_state, size)
    second = draw(rng_state, size - 1)
    return first, second + 1 if second >= first else second
