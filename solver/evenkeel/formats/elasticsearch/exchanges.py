"""Which nodes give copies of a shard to which: search replicas and others are not exchanged."""

from collections.abc import Sequence
from typing import NamedTuple

from evenkeel.model.placement import Role


class Exchange(NamedTuple):
    """The nodes that lose copies of one role, and those that get them, in the order of slots."""

    leaves: list[int]
    joins: list[int]


def exchanges(roles: Sequence[int], before: Sequence[int], after: Sequence[int]) -> list[Exchange]:
    """Return what each role exchanges, given role and nodes by slots, -1 for none.

    Slots that have no role yet are for what may lead.

    Examples
    --------
    >>> exchanges([0, 0, 1], [1, -1, 8], [1, 2, 9])
    [Exchange(leaves=[], joins=[2]), Exchange(leaves=[8], joins=[9])]
    """
    found = []
    more = max(len(before), len(after)) - len(roles)
    told = [*roles, *[int(Role.VOTER)] * more]
    for role in sorted({*told}):
        old = [n for own, n in zip(told, before, strict=False) if own == role and n >= 0]
        new = [n for own, n in zip(told, after, strict=False) if own == role and n >= 0]
        leaves = [n for n in old if n not in after]
        found.append(Exchange(leaves, [n for n in new if n not in before]))
    return found
