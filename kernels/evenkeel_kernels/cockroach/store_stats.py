"""Which stores may be given a replica in a rebalance, and what those of each class have in all.

A decision asks for sums over classes of stores, so they are kept, and counted again for a class
when one of its stores changes. They are whole sums in a fixed order: nothing drifts.
"""

from typing import NamedTuple

import numpy as np

from evenkeel_kernels.build.jit import by_reference, device_function, inline_only, no_alloc
from evenkeel_kernels.cockroach.scores import is_load
from evenkeel_kernels.cockroach.tables import (
    RANGES,
    Flags,
    Floats,
    Localities,
    Longs,
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


def room_to_tally(stores: int, classes: int) -> Tally:
    """Make room for a tally of so many stores and classes, to be filled by `tally_all`."""
    return Tally(
        np.zeros(stores, np.bool_),
        np.zeros(classes, np.int64),
        np.zeros(classes),
        np.zeros(classes),
    )


@inline_only
def is_listed(scorer: Scorer, stores: Stores, s: int) -> bool:
    """Whether a store takes part: available ones, and where load is moved throttled ones too."""
    if is_load(scorer):
        return may_receive_load(stores.status[s])
    return may_receive(stores.status[s])


@device_function
def tally_class(
    localities: Localities,
    stores: Stores,
    settings: Settings,
    scorer: Scorer,
    a: int,
    tally: Tally,
) -> None:
    """Count class ``a`` again, after one of its stores has changed. O(its stores)."""
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
def tally_all(
    localities: Localities, stores: Stores, settings: Settings, scorer: Scorer, tally: Tally
) -> None:
    """Count every class. O(S)."""
    for a in range(tally.number.size):
        tally_class(localities, stores, settings, scorer, a, tally)
