"""The least time that exchanges take, by trying every order of them."""

from itertools import permutations


def shortest(exchanges):
    """Return the least time for exchanges, each a list of copies (seconds, places)."""
    # The copies of an exchange begin at once, and each holds its places for itself while it lasts.
    # One after another, in every order, they begin as early as they can: of the schedules in which
    # none can begin earlier by itself, one is the shortest.
    return min((_length(order) for order in permutations(exchanges)), default=0.0)


def _length(order):
    taken = []
    for copies in order:
        begins = min(
            when
            for when in [0.0, *(finish for _, finish, _ in taken)]
            if _fits(copies, when, taken)
        )
        taken += [(begins, begins + seconds, places) for seconds, places in copies]
    return max((finish for _, finish, _ in taken), default=0.0)


def _fits(copies, when, taken):
    for seconds, places in copies:
        for start, finish, others in taken:
            if when < finish and start < when + seconds and places & others:
                return False
    return True
