"""Reassignments under way: what tells of them, and where they will leave the partitions.

``kafka-topics --describe`` lists who joins and who leaves beside all replicas. What
``kafka-reassign-partitions`` prints tells it, too: ``--list`` has a line of each partition,
``orders-0: replicas: 4,1,2. adding: 4. removing: 2.``; ``--verify`` says that ``Reassignment of
partition orders-0 is still in progress``, of old releases ``[orders,0]``. Releases before 2.6 only
have more replicas in the list of a partition than its topic is to have.
"""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.systems.documents import Document
from evenkeel.systems.kafka.findings import Findings
from evenkeel.systems.kafka.rows import Rows

LISTED = re.compile(
    rb"^[^\S\n]*(\S+-[0-9]{1,9}): replicas: [0-9,]+\."
    rb"(?: adding: ([0-9,]+)\.)?(?: removing: ([0-9,]+)\.)?\s*$",
    re.MULTILINE,
)
IN_PROGRESS = re.compile(
    rb"Reassignment of partition (?:\[(\S+),\s*([0-9]{1,9})\]|(\S+-[0-9]{1,9})) is still in "
    rb"progress"
)
TITLES = (
    b"Current partition reassignments:", b"No partition reassignments found.",
    b"Status of partition reassignment:",
)  # fmt: skip


def is_list_of_reassigned(head: bytes) -> bool:
    """Whether this is what ``--list`` or ``--verify`` prints."""
    return any(title in head for title in TITLES) or bool(
        LISTED.search(head) or IN_PROGRESS.search(head)
    )


def read_reassigned(findings: Findings, document: Document) -> None:
    """Take in which partitions are being reassigned, and which brokers join and leave them."""
    for found in LISTED.finditer(document.data):
        adding, removing = (
            tuple(int(one) for one in (text or b"").split(b",") if one)
            for text in found.groups()[1:]
        )
        findings.reassigned[found[1].decode("utf-8", "replace")] = (adding, removing)
    for found in IN_PROGRESS.finditer(document.data):
        name = found[3] or found[1] + b"-" + found[2]
        findings.reassigned.setdefault(name.decode("utf-8", "replace"), ((), ()))


class Settled(NamedTuple):
    """Partitions as reassignments will leave them. P partitions, K replicas as they are listed."""

    rows: Rows
    """Without those who leave."""

    under_way: NDArray[np.bool_]
    """(P,): which are being reassigned."""

    wanted: NDArray[np.int32]
    """(P,): how many replicas each is to have."""

    longer: NDArray[np.bool_]
    """(P,): which have more of them than their topic, and are not being reassigned."""


def mark_listed(found: Findings, rows: Rows) -> NDArray[np.bool_]:
    """Mark in rows who joins and leaves by what was listed, and return which are listed, (P,).

    Where somebody joins who is not among the replicas, these were described at another time.
    """
    told = np.zeros(len(rows.topic), np.bool_)
    if not found.reassigned:
        return told
    rows.adding, rows.removing = rows.adding.copy(), rows.removing.copy()
    for p, name in enumerate(rows.names()):
        if name not in found.reassigned:
            continue
        told[p] = True
        adding, removing = found.reassigned[name]
        own = slice(rows.first[p], rows.first[p + 1])
        if {*adding} <= {*rows.broker[own].tolist()}:
            rows.adding[own] |= np.isin(rows.broker[own], adding)
            rows.removing[own] |= np.isin(rows.broker[own], removing)
    return told


def settled(rows: Rows, told: NDArray[np.bool_], up: NDArray[np.bool_]) -> Settled:
    """Return partitions as reassignments will leave them, ``up (K,)`` being who lives.

    Who is on a list that is too long, lives and is not in sync is taken to join: such a partition
    is where it was, since nobody tells who is to leave it. Others that are dead are too many.
    """
    gone = rows.removing.copy()
    under_way = told.copy()
    under_way[rows.owner[rows.adding | rows.removing]] = True
    wanted = np.bincount(rows.owner[~gone], minlength=len(told)).astype(np.int32)
    factor = _factors(rows, wanted, under_way)
    longer = rows.described & ~under_way & (factor > 0) & (wanted > factor)
    sound, joins = up & rows.in_sync, up & ~rows.in_sync & ~rows.observing
    for p in np.flatnonzero(longer).tolist():
        own = np.arange(rows.first[p], rows.first[p + 1])
        wanted[p] = max(factor[p], int(np.count_nonzero(sound[own] | rows.observing[own])))
        if joins[own].any():
            under_way[p], longer[p] = True, False
            wanted[p] = factor[p]
            gone[own[np.lexsort((own, ~up[own], ~sound[own]))][factor[p] :]] = True
    kept = rows.without(gone) if gone.any() else rows
    return Settled(kept, under_way, wanted, longer)


def _factors(
    rows: Rows, wanted: NDArray[np.int32], under_way: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Return how many replicas the topic of each partition is to have, (P,); 0 where unknown.

    Kafka announces what the first partition has, which may be the one that is not as the others.
    """
    factor = np.zeros(len(wanted), np.int32)
    if not rows.factor:
        return factor
    announced = np.array([rows.factor.get(topic, 0) for topic in rows.topics], np.int32)
    # what is being reassigned may be on the way to more
    asked = np.where(under_way, wanted, 0)
    np.maximum.at(announced, rows.topic, np.where(announced[rows.topic] > 0, asked, 0))
    factor = announced[rows.topic]
    differ = ~under_way & (wanted != factor)
    for g in np.unique(rows.topic[differ & (factor > 0)]).tolist():
        own = slice(*np.searchsorted(rows.topic, (g, g + 1)).tolist())
        counts = np.bincount(wanted[own][~under_way[own]])
        if 2 * counts.max() > counts.sum():
            factor[own] = min(announced[g], counts.argmax())
    return factor
