"""Read running reassignments, and their target replicas, from output of Kafka's tools.

``kafka-topics --describe`` lists joining and leaving brokers beside all replicas. So does
``kafka-reassign-partitions``: ``--list`` prints a line per partition,
``orders-0: replicas: 4,1,2. adding: 4. removing: 2.``; ``--verify`` prints ``Reassignment of
partition orders-0 is still in progress``, in old releases ``[orders,0]``; ``--execute`` prints the
partitions that it began to move. Releases before 2.6 only list more replicas than the replication
factor of the topic.
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
STARTED = re.compile(rb"Successfully started partition reassignments? for (\S+)")
COMPLETE = re.compile(
    rb"Reassignment of partition (?:\[(\S+),\s*([0-9]{1,9})\]|(\S+-[0-9]{1,9})) (?:is )?complete"
)
TITLES = (
    b"Current partition reassignments:", b"No partition reassignments found.",
    b"Status of partition reassignment:",
)  # fmt: skip


def is_list_of_reassigned(head: bytes) -> bool:
    """Return whether this is output of ``--list`` or ``--verify``."""
    return any(title in head for title in TITLES) or bool(
        LISTED.search(head) or IN_PROGRESS.search(head)
    )


def read_reassigned(findings: Findings, document: Document) -> None:
    """Read the partitions under reassignment, and their joining and leaving brokers."""
    for found in LISTED.finditer(document.data):
        adding, removing = (
            tuple(int(one) for one in (text or b"").split(b",") if one)
            for text in found.groups()[1:]
        )
        findings.reassigned[found[1].decode("utf-8", "replace")] = (adding, removing)
    for name in _named(IN_PROGRESS, document.data):
        findings.reassigned.setdefault(name, ((), ()))


def read_started(findings: Findings, document: Document) -> None:
    """Read the partitions that ``--execute`` began to move and no ``--verify`` has complete."""
    names = {
        name.decode("utf-8", "replace")
        for found in STARTED.finditer(document.data)
        for name in found[1].split(b",")
    }
    for name in sorted(names.difference(_named(COMPLETE, document.data))):
        findings.reassigned.setdefault(name, ((), ()))


def _named(pattern: re.Pattern[bytes], data: bytes) -> list[str]:
    """Return the partitions of the lines of a pattern."""
    names = (found[3] or found[1] + b"-" + found[2] for found in pattern.finditer(data))
    return [name.decode("utf-8", "replace") for name in names]


class Settled(NamedTuple):
    """Partitions at the end of running reassignments. P partitions, K listed replicas."""

    rows: Rows  # without leaving replicas
    stays: NDArray[np.bool_]  # (K,): the listed replicas that are in ``rows``
    under_way: NDArray[np.bool_]  # (P,): under reassignment
    wanted: NDArray[np.int32]  # (P,): wanted number of replicas
    # (P,): more replicas than the replication factor, and not under reassignment
    longer: NDArray[np.bool_]
    shorter: NDArray[np.bool_]  # (P,): fewer of them


def mark_listed(found: Findings, rows: Rows) -> NDArray[np.bool_]:
    """Mark joining and leaving replicas of listed reassignments; return their partitions, (P,)."""
    listed = np.zeros(len(rows.topic), np.bool_)
    if not found.reassigned:
        return listed
    rows.adding, rows.removing = rows.adding.copy(), rows.removing.copy()
    for p, name in enumerate(rows.names()):
        if name not in found.reassigned:
            continue
        listed[p] = True
        adding, removing = found.reassigned[name]
        own = slice(rows.first[p], rows.first[p + 1])
        # else the files are of different times, and none is marked
        if {*adding} <= {*rows.broker[own].tolist()}:
            rows.adding[own] |= np.isin(rows.broker[own], adding)
            rows.removing[own] |= np.isin(rows.broker[own], removing)
    return listed


def settled(rows: Rows, listed: NDArray[np.bool_], up: NDArray[np.bool_]) -> Settled:
    """Return partitions at the end of reassignments; ``up (K,)`` marks replicas on live brokers."""
    gone = rows.removing.copy()
    under_way = listed.copy()
    under_way[rows.owner[rows.adding | rows.removing]] = True
    wanted = np.bincount(rows.owner[~gone], minlength=len(listed)).astype(np.int32)
    factor = _factors(rows, wanted, under_way)
    longer = rows.described & ~under_way & (factor > 0) & (wanted > factor)
    shorter = rows.described & ~under_way & (wanted < factor)
    sound, joins = up & rows.in_sync, up & ~rows.in_sync & ~rows.observing
    # In a list longer than the replication factor, a live replica that is not in sync counts as
    # joining: the partition counts as at its source, since the leaving replicas are unknown. Dead
    # ones are surplus.
    for p in np.flatnonzero(longer).tolist():
        own = np.arange(rows.first[p], rows.first[p + 1])
        wanted[p] = max(factor[p], int(np.count_nonzero(sound[own] | rows.observing[own])))
        if joins[own].any():
            under_way[p], longer[p] = True, False
            wanted[p] = factor[p]
            gone[own[np.lexsort((own, ~up[own], ~sound[own]))][factor[p] :]] = True
    kept = rows.without(gone) if gone.any() else rows
    return Settled(kept, ~gone, under_way, wanted, longer, shorter)


def _factors(
    rows: Rows, wanted: NDArray[np.int32], under_way: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Return the replication factor of each partition's topic, (P,); 0 where unknown."""
    factor = np.zeros(len(wanted), np.int32)
    if not rows.factor:
        return factor
    # Kafka prints that of the first partition, which may differ from the others
    announced = np.array([rows.factor.get(topic, 0) for topic in rows.topics], np.int32)
    # a running reassignment may raise the number
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
