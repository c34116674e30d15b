"""What decisions about leases know of the cluster as a whole: mean counts, mean overload.

The mean number of leases is taken over the stores that a configuration allows, so there is one for
each configuration. They are kept as sums, and a transfer changes two entries.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, inlined, no_alloc
from evenkeel_kernels.cockroach.tables import (
    LEASES,
    Configs,
    Flags,
    Floats,
    Ints,
    Localities,
    Longs,
    Stores,
    may_receive_load,
)


@by_reference
class LeaseBook(NamedTuple):
    """Sums over the stores that serve, of which those draining or suspect are no part."""

    # (Q, C) whether stores of a class satisfy both tables of constraints of a configuration
    valid: Flags
    leases: Floats  # (Q,) leases on the serving stores that a configuration allows
    number: Longs  # (Q,) those stores
    # (2,) sum of the overload of disks' bandwidth over all serving stores, and their number
    overload: Floats


def open_book(localities: Localities, configs: Configs) -> LeaseBook:
    """Make a book of all configurations; `count_leases` fills in what may change."""
    width = configs.replicas.size
    book = LeaseBook(
        np.zeros((width, localities.pair.shape[0]), np.bool_),
        np.zeros(width),
        np.zeros(width, np.int64),
        np.zeros(2),
    )
    allow(localities, configs, book.valid)
    return book


@no_alloc
def allow(localities: Localities, configs: Configs, valid: NDArray[np.bool_]) -> None:
    """Fill ``valid (Q, C)``: classes of stores that both tables allow. O(Q C E)."""
    for q in range(valid.shape[0]):
        for a in range(valid.shape[1]):
            valid[q, a] = satisfies_any(
                localities, configs.row, configs.first[q], configs.first[q + 1], a
            ) and satisfies_any(
                localities, configs.voter_row, configs.voter_first[q], configs.voter_first[q + 1], a
            )


@inlined
def satisfies_any(localities: Localities, row: Ints, start: int, stop: int, a: int) -> bool:
    """Whether class ``a`` satisfies one of the conjunctions ``row (.,)``, if there is any. O(E)."""
    for e in range(start, stop):
        if localities.matches[row[e], a]:
            return True
    return start == stop


@no_alloc
def count_leases(localities: Localities, stores: Stores, book: LeaseBook) -> None:
    """Count leases and overload afresh. O(Q S)."""
    book.leases[:] = 0.0
    book.number[:] = 0
    book.overload[:] = 0.0
    for s in range(stores.io.size):
        if not may_receive_load(stores.status[s]):
            continue
        book.overload[0] += stores.io[s]
        book.overload[1] += 1.0
        for q in range(book.number.size):
            if book.valid[q, localities.alike[s]]:
                book.leases[q] += stores.amount[LEASES, s]
                book.number[q] += 1


@no_alloc
def move_in_book(
    localities: Localities, stores: Stores, book: LeaseBook, source: int, target: int
) -> None:
    """Book that a lease has gone from one store to another; -1 for a store that is none. O(Q)."""
    from_one = source >= 0 and may_receive_load(stores.status[source])
    to_one = target >= 0 and may_receive_load(stores.status[target])
    for q in range(book.number.size):
        if from_one and book.valid[q, localities.alike[source]]:
            book.leases[q] -= 1.0
        if to_one and book.valid[q, localities.alike[target]]:
            book.leases[q] += 1.0


@inlined
def mean_leases(book: LeaseBook, q: int) -> float:
    """Return the mean number of leases on the stores of a configuration; 0 without any."""
    return book.leases[q] / book.number[q] if book.number[q] else 0.0


@inlined
def mean_overload(book: LeaseBook) -> float:
    """Return the mean overload of the stores that serve; 0 without any."""
    return book.overload[0] / book.overload[1] if book.overload[1] else 0.0
