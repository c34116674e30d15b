"""Level tokens over devices in as few moves as possible: upmap's replicas, or primaries.

Every device has a band: at least ``low`` and at most ``high`` tokens. Over-full devices give to
the emptiest device that can take, then empty ones take from the fullest that can give. Where no
single move does it a shortest chain of moves does, found breadth first: a to b in one placement
group, b to c in another. So wherever single moves are found, no solution has fewer: they are the
larger of what is above the bands and what is below them.

Which moves are allowed is data. A *replica* may go to another device of its enclosure (what a rule
of several steps keeps together) whose failure domain no other replica of its group uses. A
*primary* is the one token of its group, and may go to the devices of the group's up set.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import jit, no_alloc

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

NOWHERE = -1

PATIENCE = 8
"""Broken chains after which a device is left as it is."""


class Spread(NamedTuple):
    """Tokens on N devices; a group has ``size`` of them, one after another.

    Attributes
    ----------
    osd : (T,) int32
        Device of each token; -1 for none.
    origin : (T,) int32
        Where it was in the beginning.
    size : int
        Tokens of a group.
    choice : (T, C) int32
        Where each token may go; with no columns, anywhere.
    enclosure : (N,) int32
        Tokens stay within it.
    domain : (N,) int32
        Failure domain; at most one token of a group each.
    tally : (N,) int32
        Tokens on each device.
    head, after, before : (N,), (T,), (T,) int32
        The tokens of each device as a list; -1 ends it.
    """

    osd: Ints
    origin: Ints
    size: int
    choice: Ints
    enclosure: Ints
    domain: Ints
    tally: Ints
    head: Ints
    after: Ints
    before: Ints


class Bands(NamedTuple):
    """What each device should hold.

    Attributes
    ----------
    low, high : (N,) int32
        At least and at most.
    target : (N,) float64
        Ideally.
    """

    low: Ints
    high: Ints
    target: Floats


@jit
def spread(osd: Ints, size: int, choice: Ints, enclosure: Ints, domain: Ints) -> Spread:
    """Set up the lists for tokens as they are.

    Parameters
    ----------
    osd : (T,) int32
        Device of each token, group by group; -1 for none. It is changed by the moves.
    size : int
        Tokens of a group.
    choice : (T, C) int32
        As in ``Spread``.
    enclosure, domain : (N,) int32
        As in ``Spread``.

    Returns
    -------
    Spread
        The state.
    """
    n = domain.size
    state = Spread(
        osd,
        osd.copy(),
        size,
        choice,
        enclosure,
        domain,
        np.zeros(n, np.int32),
        np.full(n, NOWHERE, np.int32),
        np.full(osd.size, NOWHERE, np.int32),
        np.full(osd.size, NOWHERE, np.int32),
    )
    for token in range(osd.size - 1, -1, -1):
        if osd[token] >= 0:
            _insert(state, token, osd[token])
    return state


@no_alloc
def _insert(s: Spread, token: int, osd: int) -> None:
    """Put a token at the head of a device's list."""
    first = s.head[osd]
    s.after[token] = first
    s.before[token] = NOWHERE
    if first >= 0:
        s.before[first] = token
    s.head[osd] = token
    s.osd[token] = osd
    s.tally[osd] += 1


@no_alloc
def _move(s: Spread, token: int, osd: int) -> None:
    """Take a token out of the list of its device and into another's."""
    source = s.osd[token]
    ahead = s.before[token]
    behind = s.after[token]
    if ahead >= 0:
        s.after[ahead] = behind
    else:
        s.head[source] = behind
    if behind >= 0:
        s.before[behind] = ahead
    s.tally[source] -= 1
    _insert(s, token, osd)


@no_alloc
def may_move(s: Spread, token: int, osd: int) -> bool:
    """Whether a token may go to a device.

    Parameters
    ----------
    s : Spread
        The state.
    token, osd : int
        Which token, and where to.

    Returns
    -------
    bool
        True if the device is another one, in the same enclosure and among the token's choices, and
        no other token of the group is in its failure domain.
    """
    if s.enclosure[osd] != s.enclosure[s.osd[token]] or osd == s.osd[token]:
        return False
    chosen = s.choice.shape[1] == 0
    for c in range(s.choice.shape[1]):
        chosen |= s.choice[token, c] == osd
    if not chosen:
        return False
    first = token - token % s.size
    for other in range(first, first + s.size):
        if other != token and s.osd[other] >= 0 and s.domain[s.osd[other]] == s.domain[osd]:
            return False
    return True


@no_alloc
def _movable(s: Spread, source: int, target: int) -> int:
    """Find a token on one device that may go to another, best one that has moved already."""
    found = NOWHERE
    token = s.head[source]
    while token >= 0:
        moved = s.osd[token] != s.origin[token]
        if (moved or found < 0) and may_move(s, token, target):
            found = token
            if moved:
                break
        token = s.after[token]
    return found


@no_alloc
def _link(s: Spread, here: int, there: int, giving: bool) -> int:
    """Find a token that may go from here to there, or the other way if not ``giving``."""
    return _movable(s, here, there) if giving else _movable(s, there, here)


@no_alloc
def _has_room(s: Spread, bands: Bands, osd: int, giving: bool) -> bool:
    """Whether a device may still take a token, or give one."""
    return s.tally[osd] < bands.high[osd] if giving else s.tally[osd] > bands.low[osd]


@no_alloc
def _need(s: Spread, bands: Bands, osd: int, giving: bool) -> float:
    """How much a device would like to take a token, or give one."""
    excess = s.tally[osd] - bands.target[osd]
    return -excess if giving else excess


@no_alloc
def _settle_directly(
    s: Spread, bands: Bands, osd: int, giving: bool, refused: NDArray[np.bool_]
) -> bool:
    """Move one token off ``osd``, or onto it, in one move with the device that needs it most."""
    refused[:] = False
    while True:
        partner = NOWHERE
        most = -np.inf
        for other in range(s.tally.size):
            if s.enclosure[other] == s.enclosure[osd] and not refused[other]:
                need = _need(s, bands, other, giving)
                if need > most and _has_room(s, bands, other, giving):
                    most = need
                    partner = other
        if partner < 0:
            return False
        token = _link(s, osd, partner, giving)
        if token >= 0:
            _move(s, token, partner if giving else osd)
            return True
        refused[partner] = True


@no_alloc
def _settle_along(
    s: Spread, bands: Bands, osd: int, giving: bool, toward: Ints, queue: Ints
) -> int:
    """Move tokens along a shortest chain of devices between ``osd`` and one with room.

    Returns the moves made; 0 if there is no chain, and a negative number if it broke.
    """
    toward[:] = NOWHERE
    toward[osd] = osd
    queue[0] = osd
    read = 0
    written = 1
    while read < written:
        here = queue[read]
        read += 1
        for there in range(s.tally.size):
            if toward[there] >= 0 or s.enclosure[there] != s.enclosure[osd]:
                continue
            if _link(s, here, there, giving) < 0:
                continue
            toward[there] = here
            if _has_room(s, bands, there, giving):
                return _follow(s, osd, there, giving, toward)
            queue[written] = there
            written += 1
    return 0


@no_alloc
def _follow(s: Spread, osd: int, end: int, giving: bool, toward: Ints) -> int:
    """Move one token over each link of a chain, beginning at the end that has room.

    The chain breaks where the only token for a link belongs to a group that an earlier link has
    changed; the room has then come nearer to ``osd``.
    """
    length = 0
    while end != osd:
        nearer = toward[end]
        token = _link(s, nearer, end, giving)
        if token < 0:
            return -max(length, 1)
        _move(s, token, end if giving else nearer)
        length += 1
        end = nearer
    return length


@no_alloc
def _outermost(s: Spread, bands: Bands, giving: bool, broken: Ints) -> int:
    """Among devices outside their bands, above if ``giving``, else below: the one furthest off."""
    worst = NOWHERE
    most = -np.inf
    for osd in range(s.tally.size):
        outside = s.tally[osd] > bands.high[osd] if giving else s.tally[osd] < bands.low[osd]
        if outside and broken[osd] < PATIENCE:
            need = _need(s, bands, osd, not giving)
            if need > most:
                most = need
                worst = osd
    return worst


@jit
def level(s: Spread, bands: Bands, budget: int) -> int:
    """Move tokens until every device is within its band, or no chain of moves helps.

    Parameters
    ----------
    s : Spread
        The state; it is changed.
    bands : Bands
        What each device should hold.
    budget : int
        Moves it may make; the last chain may go beyond.

    Returns
    -------
    int
        Moves it made.
    """
    n = s.tally.size
    refused = np.empty(n, np.bool_)
    toward = np.empty(n, np.int32)
    queue = np.empty(n, np.int32)
    broken = np.empty(n, np.int32)
    moves = 0
    for giving in (True, False):
        broken[:] = 0
        while moves < budget:
            osd = _outermost(s, bands, giving, broken)
            if osd < 0:
                break
            if _settle_directly(s, bands, osd, giving, refused):
                moves += 1
                continue
            length = _settle_along(s, bands, osd, giving, toward, queue)
            moves += abs(length)
            if length <= 0:
                broken[osd] += PATIENCE if length == 0 else 1
    return moves
