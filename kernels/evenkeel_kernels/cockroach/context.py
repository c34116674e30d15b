"""Inputs and scratch arrays of decisions about the replicas of one range.

A decision asks for sums over classes of stores, so they are kept, and counted again for a class
when one of its stores changes. They are whole sums in a fixed order: nothing drifts.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only, no_alloc
from evenkeel_kernels.cockroach.scores import is_load
from evenkeel_kernels.cockroach.tables import (
    RANGES,
    Configs,
    Flags,
    Floats,
    Ints,
    Localities,
    Longs,
    Members,
    Scorer,
    Settings,
    Stores,
    fraction_used,
    may_receive,
    may_receive_load,
)


@by_reference
class Tally(NamedTuple):
    """What is known of each class of stores, for one scorer."""

    # (S,) stores that may be given a replica: listed, on a host fit for moves, disk not full
    eligible: Flags
    number: Longs  # (C,) eligible stores of each class
    total: Floats  # (C,) what they have of what the scorer levels
    least: Floats  # (C,) the fewest ranges that one of them has; inf where there is none


@by_reference
class Analysis(NamedTuple):
    """How far a range meets its constraints."""

    # held, voter_held: (E,) replicas, or voters, that satisfy each conjunction of its
    # configuration, in their order
    held: Ints
    voter_held: Ints


@by_reference
class AddRoom(NamedTuple):
    """Scratch for one decision."""

    code: NDArray[np.int8]  # (S,) what the constraints say; 0 for a store that is out
    diversity: Floats  # (S,) to the replicas there are
    chosen: Longs  # (S,) the stores that tie at the top


@by_reference
class RemoveRoom(NamedTuple):
    """Scratch for one decision about up to W replicas of a kind."""

    free: Flags  # (W,) whether raft can do without it
    code: NDArray[np.int8]  # (W,) what the constraints say
    full: Flags  # (W,) its disk
    diversity: Floats  # (W,) to the other replicas
    # converges, balance: (W,) within the worst; 0 before these are known
    converges: NDArray[np.int64]
    balance: NDArray[np.int64]
    worst: Longs  # (W,) places of those that tie at the bottom


@by_reference
class ClassRoom(NamedTuple):
    """Scratch, and the equivalence classes found: R replicas of a kind, X special stores."""

    replica: Longs  # (R,) stores of the replicas, ascending
    # listed, valid, necessary, full: (R,) of each replica; one that is not listed has no class
    listed: Flags
    valid: Flags
    necessary: Flags
    full: Flags
    current: Floats  # (1,) diversity of the range
    # target_necessary, voter_necessary: (R,) of the class of each replica
    target_necessary: Flags
    voter_necessary: Flags
    target_diversity: Floats  # (R,) of the range, once a store of the class has taken over
    number: Longs  # (R,) stores of each equivalence class
    # total, least: (R,) what they have of what the scorer levels, and the fewest ranges of one; inf
    # for none
    total: Floats
    least: Floats
    alike: Flags  # (R, C) whether the stores of a class that are not special belong to it
    special: Longs  # (X,) stores of hosts that hold a replica
    special_in: Flags  # (R, X) whether a special store belongs to it
    # without_number, without_total: (C,) what the special stores have of a class
    without_number: Longs
    without_total: Floats
    reach: Floats  # (C,) diversity of a class to all replicas that it is compared with, in all
    rank: NDArray[np.int8]  # (C,) what the constraints say of a class, for the replica at hand
    size: Longs  # (2,) replicas and special stores


@by_reference
class RebalanceRoom(NamedTuple):
    """Scratch for one decision: R replicas of a kind."""

    target: Longs  # (R, S) stores that are better than each replica
    kept: Longs  # (R,) how many these are
    best: Longs  # (S,) those of them that tie at the top
    # (R,) the store of each class to which load goes, where load is levelled; -1 for none
    lightest: Longs
    io_limit: Floats  # (R,) from which a disk's bandwidth counts as overloaded in each class


@by_reference
class AllocatorContext(NamedTuple):
    """All that decisions about the replicas of ranges read, and the scratch that they write to."""

    # ``stores`` are what is decided on; changes are booked there, and ``tally`` is kept up to date

    localities: Localities
    stores: Stores
    tally: Tally
    configs: Configs
    settings: Settings
    scorer: Scorer
    members: Members  # the replicas of the range at hand
    analysis: Analysis
    adding: AddRoom
    removing: RemoveRoom
    classes: ClassRoom
    rebalancing: RebalanceRoom
    barred: Flags  # (S,) stores that are left out, since the cluster's own rules refused them
    impact: Floats  # (1,) load of the range that is moved


def make_members(width: int) -> Members:
    """Make room for the replicas of one range."""
    return Members(
        np.zeros(width, np.int64),
        np.zeros(width, np.int64),
        np.zeros(width, np.bool_),
        np.zeros(3, np.int64),
    )


def make_context(
    localities: Localities,
    stores: Stores,
    configs: Configs,
    settings: Settings,
    scorer: Scorer,
    members: Members,
) -> AllocatorContext:
    """Make room for decisions about ranges that fit into ``members``; `tally_all` fills the tally.

    ``members`` has room for two replicas more than a range.
    """
    count, classes, width = len(localities.host), len(localities.pair), len(members.voter)
    crowd = width * int(np.diff(localities.host_first).max(initial=1))
    of_all, of_voters = (
        max(int(np.diff(first).max(initial=0)), 1) for first in (configs.first, configs.voter_first)
    )

    def flags(*shape: int) -> Flags:
        return np.zeros(shape, np.bool_)

    def whole(*shape: int) -> Longs:
        return np.zeros(shape, np.int64)

    return AllocatorContext(
        localities,
        stores,
        Tally(flags(count), whole(classes), np.zeros(classes), np.zeros(classes)),
        configs,
        settings,
        scorer,
        members,
        Analysis(np.zeros(of_all, np.int32), np.zeros(of_voters, np.int32)),
        AddRoom(np.zeros(count, np.int8), np.zeros(count), whole(count)),
        RemoveRoom(
            free=flags(width),
            code=np.zeros(width, np.int8),
            full=flags(width),
            diversity=np.zeros(width),
            converges=whole(width),
            balance=whole(width),
            worst=whole(width),
        ),
        ClassRoom(
            replica=whole(width),
            listed=flags(width),
            valid=flags(width),
            necessary=flags(width),
            full=flags(width),
            current=np.zeros(1),
            target_necessary=flags(width),
            voter_necessary=flags(width),
            target_diversity=np.zeros(width),
            number=whole(width),
            total=np.zeros(width),
            least=np.zeros(width),
            alike=flags(width, classes),
            special=whole(crowd),
            special_in=flags(width, crowd),
            without_number=whole(classes),
            without_total=np.zeros(classes),
            reach=np.zeros(classes),
            rank=np.zeros(classes, np.int8),
            size=whole(2),
        ),
        RebalanceRoom(
            whole(width, count), whole(width), whole(count), whole(width), np.zeros(width)
        ),
        flags(count),
        np.zeros(1),
    )


@inline_only
def is_listed(scorer: Scorer, stores: Stores, s: int) -> bool:
    """Whether a store takes part: available ones, and where load is moved throttled ones too."""
    if is_load(scorer):
        return may_receive_load(stores.status[s])
    return may_receive(stores.status[s])


@device_function
def tally_class(context: AllocatorContext, a: int) -> None:
    """Count class ``a`` again, after one of its stores has changed. O(its stores)."""
    localities, stores, settings = context.localities, context.stores, context.settings
    scorer, tally = context.scorer, context.tally
    number, total, least = 0, 0.0, np.inf
    for i in range(localities.class_first[a], localities.class_first[a + 1]):
        s = localities.class_store[i]
        tally.eligible[s] = (
            is_listed(scorer, stores, s)
            and stores.ready[s]
            and fraction_used(stores, s) < settings.disk_full
        )
        if tally.eligible[s]:
            number += 1
            total += stores.amount[scorer.row, s]
            least = min(least, stores.amount[RANGES, s])
    tally.number[a] = number
    tally.total[a] = total
    tally.least[a] = least


@no_alloc
def tally_all(context: AllocatorContext) -> None:
    """Count every class. O(S)."""
    tally = context.tally
    for a in range(tally.number.size):
        tally_class(context, a)
