"""Level replicas or primaries of Ceph over devices in as few moves as possible.

Replicas or primaries are *tokens*. Every device has a band: at least ``low`` and at most ``high``
tokens. Over-full devices give to the emptiest device that can take, then empty ones take from the
fullest that can give. Where no single move does it a shortest chain of moves does, found breadth
first: a to b in one placement group, b to c in another. So wherever single moves are found, no
solution has fewer: they are the larger of what is above the bands and what is below them.

Which moves are allowed is data. A *replica* may go to another device of its enclosure (what a rule
of several steps keeps together) whose failure domain no other replica of its group uses. A
*primary* is the one token of its group, and may go to the devices of the group's up set.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel_kernels.build.jit import by_reference, jit, no_alloc

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

NOWHERE = -1

PATIENCE = 8  # broken chains after which a device is left as it is


class Spread(NamedTuple):
    """Tokens on N devices; a group has ``size`` of them, one after another."""

    osd: Ints  # (T,) device of each token; -1 for none
    origin: Ints  # (T,) where it was in the beginning
    size: int  # tokens of a group
    choice: Ints  # (T, C) where each token may go; with no columns, anywhere
    enclosure: Ints  # (N,) tokens stay within it
    domain: Ints  # (N,) failure domain; at most one token of a group each
    tally: Ints  # (N,) tokens on each device
    # head, after, before: (N,), (T,), (T,) the tokens of each device as a list; -1 ends it
    head: Ints
    after: Ints
    before: Ints


@by_reference
class Bands(NamedTuple):
    """What each device should hold."""

    # low, high: (N,) at least and at most
    low: Ints
    high: Ints
    target: Floats  # (N,) ideally


@jit
def spread(osd: Ints, size: int, choice: Ints, enclosure: Ints, domain: Ints) -> Spread:
    """Set up the lists for tokens as they are.

    ``osd (T,)``: device of each token, group by group; -1 for none. It is changed by the moves;
    ``size``: tokens of a group; ``choice (T, C)``: as in ``Spread``; ``enclosure``, ``domain
    (N,)``: as in ``Spread``.
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

    ``token``, ``osd``: which token, and where to. Returns true if the device is another one, in the
    same enclosure and among the token's choices, and no other token of the group is in its failure
    domain.
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


@by_reference
class Course(NamedTuple):
    """Where levelling stands between two slices, and its working space. N devices."""

    at: NDArray[np.int64]  # (6,) ``TURN`` and so on
    # (N,) devices that no token can be exchanged with, of the one that is being settled
    refused: NDArray[np.bool_]
    # (N,) the next device on the way back to where a search for a chain began; -1 if not reached
    toward: Ints
    queue: Ints  # (N,) devices reached, in order
    broken: Ints  # (N,) how often a chain from each device broke


# of ``Course.at``: 0 while over-full devices give, 1 while empty ones take, 2 at the end; the
# device from which a chain is sought, -1 for none; how much of the queue was read and written;
# moves made; tokens and devices looked at
TURN, SOURCE, READ, WRITTEN, MOVES, LOOKED = range(6)

LOOKS = 2_000_000  # tokens and devices that a slice looks at: some hundredths of a second


def new_course(devices: int) -> Course:
    """Begin levelling so many devices."""
    at = np.zeros(LOOKED + 1, np.int64)
    at[SOURCE] = NOWHERE
    toward, queue = np.zeros(devices, np.int32), np.zeros(devices, np.int32)
    return Course(at, np.zeros(devices, np.bool_), toward, queue, np.zeros(devices, np.int32))


@no_alloc
def _settle_directly(s: Spread, bands: Bands, osd: int, giving: bool, course: Course) -> bool:
    """Move one token off ``osd``, or onto it, in one move with the device that needs it most."""
    refused = course.refused
    refused[:] = False
    while True:
        course.at[LOOKED] += s.tally.size
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
        course.at[LOOKED] += s.tally[osd if giving else partner]
        token = _link(s, osd, partner, giving)
        if token >= 0:
            _move(s, token, partner if giving else osd)
            return True
        refused[partner] = True


@no_alloc
def _begin_chain(course: Course, osd: int) -> None:
    """Begin to look for a chain of devices from ``osd``."""
    course.toward[:] = NOWHERE
    course.toward[osd] = osd
    course.queue[0] = osd
    course.at[SOURCE] = osd
    course.at[READ] = 0
    course.at[WRITTEN] = 1


@no_alloc
def _seek_on(s: Spread, bands: Bands, course: Course, giving: bool) -> int:
    """Look one device further for a shortest chain from the source to a device with room.

    Returns that device; the source itself while there is more to look at, and -1 if there is no
    chain.
    """
    at, toward = course.at, course.toward
    osd = at[SOURCE]
    if at[READ] == at[WRITTEN]:
        return NOWHERE
    here = course.queue[at[READ]]
    at[READ] += 1
    for there in range(s.tally.size):
        at[LOOKED] += 1
        if toward[there] >= 0 or s.enclosure[there] != s.enclosure[osd]:
            continue
        at[LOOKED] += s.tally[here if giving else there]
        if _link(s, here, there, giving) < 0:
            continue
        toward[there] = here
        if _has_room(s, bands, there, giving):
            return there
        course.queue[at[WRITTEN]] = there
        at[WRITTEN] += 1
    return osd


@no_alloc
def _follow(s: Spread, osd: int, end: int, giving: bool, toward: Ints) -> int:
    """Move one token over each link of a chain, beginning at the end that has room."""
    # the chain breaks where the only token for a link belongs to a group that an earlier link has
    # changed; the room has then come nearer to ``osd``
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


@no_alloc
def level_some(s: Spread, bands: Bands, budget: int, course: Course, looks: int) -> bool:
    """Go on with `level` for about so many looks; whether it has come to its end."""
    at = course.at
    until = at[LOOKED] + looks
    while at[TURN] < 2 and at[LOOKED] < until:
        giving = at[TURN] == 0
        if at[SOURCE] >= 0:
            osd = at[SOURCE]
            end = _seek_on(s, bands, course, giving)
            if end == osd:
                continue
            length = _follow(s, osd, end, giving, course.toward) if end >= 0 else 0
            at[MOVES] += abs(length)
            if length <= 0:
                course.broken[osd] += PATIENCE if length == 0 else 1
            at[SOURCE] = NOWHERE
            continue
        at[LOOKED] += s.tally.size
        osd = _outermost(s, bands, giving, course.broken) if at[MOVES] < budget else NOWHERE
        if osd < 0:
            at[TURN] += 1
            course.broken[:] = 0
        elif _settle_directly(s, bands, osd, giving, course):
            at[MOVES] += 1
        else:
            _begin_chain(course, osd)
    return at[TURN] == 2


def level(s: Spread, bands: Bands, budget: int) -> int:
    """Move tokens until every device is within its band, or no chain of moves helps.

    ``budget``: moves it may make; the last chain may go beyond. Returns moves it made.
    """
    course = new_course(s.tally.size)
    while not level_some(s, bands, budget, course, LOOKS):
        pass
    return int(course.at[MOVES])
