"""What the files of a Kafka cluster leave out, what is assumed, and what they say is changing."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.systems.kafka.findings import Findings
from evenkeel.systems.kafka.ongoing import Settled
from evenkeel.systems.kafka.rows import Rows

KEY = "missing"  # key of ``cluster.native`` under which what is missing is kept
NAMED = 8  # most brokers or topics that a note names; others are counted


class Missing(msgspec.Struct, omit_defaults=True):
    """Missing input, and the assumptions in its place."""

    down: list[str] = []  # brokers without a sign of life: they count as dead
    # brokers that only join partitions, and so need show no sign of life: they count as up
    up: list[str] = []
    # number of partitions, by dimension, without an amount where others have one: it is 0
    unmeasured: dict[str, int] = {}
    # brokers, by dimension, without a capacity where others have one
    uncapped: dict[str, list[str]] = {}
    topics: list[str] = []  # the first topics in log directories that no file describes
    topic_count: int = 0
    # bytes of those that reduce the capacity of a broker, by broker
    taken_off: dict[str, float] = {}
    uncounted: dict[str, float] = {}  # bytes of those on brokers without a capacity, by broker
    loads: list[str] = []  # the first topics in tables of loads that no file describes
    load_count: int = 0
    observers: int = 0  # number of observers: replicas that never join the ISR
    filtered: bool = False  # whether the description leaves partitions out
    reassigned: list[str] = []  # the first partitions under reassignment
    reassigned_count: int = 0
    undescribed: list[str] = []  # the first partitions under reassignment that no file describes
    undescribed_count: int = 0
    # the first partitions under reassignment with a joining broker that is down
    endless: list[str] = []
    # the first partitions with more replicas than the replication factor of their topic
    longer: list[str] = []
    longer_count: int = 0
    shorter: list[str] = []  # the first partitions with fewer replicas than that
    shorter_count: int = 0
    # the first topics with ``min.insync.replicas`` above their number of replicas
    beyond: list[str] = []
    beyond_count: int = 0
    failed: dict[str, dict[str, str]] = {}  # failed log directories and their errors, by broker
    # other log directories that were not listed, and their errors, by broker
    unread: dict[str, dict[str, str]] = {}
    offline: dict[str, list[str]] = {}  # partitions with a replica in a failed directory, by broker
    awaited: dict[str, dict[str, float]] = {}  # capacities of brokers that no other file names
    deleted: list[str] = []  # the first topics that are marked for deletion
    proposals: list[str] = []  # files with a proposed assignment, which is not used
    replaced: list[str] = []  # the first partitions on which a later line of the same text counts
    replaced_count: int = 0
    notes: list[str] = []  # notes on what was read, in words
    unheld: list[str] = []  # partitions with brokers in sync that hold no replica of them
    demoted: list[str] = []  # brokers that lead nothing since Cruise Control demoted them
    # dimensions without a capacity in Cruise Control, which are not counted
    unlimited: list[str] = []
    controllers: list[str] = []  # nodes that are no brokers
    # number of log directories without a capacity, by broker with several
    roomless: dict[str, int] = {}
    # log directories with a capacity that a broker does not list, by broker
    unlisted: dict[str, list[str]] = {}
    cordoned: list[str] = []  # log directories that take nothing more
    # whether an assignment names log directories, and no file lists them with sizes
    unsized: bool = False
    moving: int = 0  # number of replicas that are being moved between log directories of a broker
    # number of replicas that are not in sync, by broker that is up, and first of their partitions
    behind: dict[str, int] = {}
    lagging: list[str] = []
    lagging_count: int = 0
    # the first of these with fewer replicas in sync than ``min.insync.replicas``
    refused: list[str] = []
    refused_count: int = 0


def expected_in_sync(rows: Rows) -> NDArray[np.bool_]:
    """Return the replicas that a healthy cluster has in sync, (K,): none that join or observe."""
    kept: NDArray[np.bool_] = rows.described[rows.owner] & ~(rows.adding | rows.observing)
    return kept


def note_behind(
    missing: Missing, rows: Rows, least: NDArray[np.int32], names: Sequence[str],
    counted: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Record the replicas that are not in sync, of those that are ``counted (K,)``."""
    lags = expected_in_sync(rows) & ~rows.in_sync & counted
    brokers, counts = np.unique(rows.broker[lags], return_counts=True)
    missing.behind = dict(zip(map(str, brokers.tolist()), counts.tolist(), strict=True))
    behind = np.unique(rows.owner[lags])
    missing.lagging = [names[p] for p in behind[:NAMED].tolist()]
    missing.lagging_count = len(behind)
    synced = np.bincount(rows.owner[rows.in_sync], minlength=len(rows.topic))
    refused = behind[(synced < least)[behind]]
    missing.refused = [names[p] for p in refused[:NAMED].tolist()]
    missing.refused_count = len(refused)


def note_guesses(
    missing: Missing,
    found: Findings,
    rows: Rows,
    brokers: NDArray[np.int32],
    shown: NDArray[np.bool_],
) -> None:
    """Record the brokers whose state was inferred."""
    missing.observers = int(rows.observing.sum())
    missing.filtered = is_filtered(rows)
    missing.controllers = [*map(str, sorted(found.controllers))]
    if found.answers:
        return
    stated = [broker for broker, (state, _) in found.states.items() if state is not None]
    open_to = ~np.isin(brokers, stated)
    proven = np.isin(brokers, [*signs_of_life(found, rows)])
    open_to &= rows.described.any() or bool(found.reporting)
    missing.down = [*map(str, brokers[open_to & ~shown].tolist())]
    missing.up = [*map(str, brokers[open_to & shown & ~proven].tolist())]


def is_filtered(rows: Rows) -> bool:
    """Tell whether a description omits partitions, as ``--under-replicated-partitions`` does."""
    # Such a listing has no topic lines. One that lost its topic lines to ``grep`` still numbers
    # partitions from 0, and some of them are healthy.
    if rows.factor or not rows.described.any():
        return False
    counts = np.bincount(rows.topic)
    last = np.zeros(len(counts), np.int64)
    np.maximum.at(last, rows.topic, rows.number)
    lacks = np.zeros(len(rows.topic), np.bool_)
    lacks[rows.owner[expected_in_sync(rows) & ~rows.in_sync]] = True
    return bool((last >= counts).any() or lacks.all())


def note_reassigned(
    missing: Missing, state: Settled, rows: Rows, names: Sequence[str], up: NDArray[np.bool_]
) -> None:
    """Record running reassignments, surplus and lacking replicas; ``up (K,)`` marks live ones."""
    under_way, longer = np.flatnonzero(state.under_way), np.flatnonzero(state.longer)
    missing.reassigned = [names[p] for p in under_way[:NAMED].tolist()]
    missing.reassigned_count = len(under_way)
    ordered = np.unique(rows.owner[rows.adding | rows.removing])
    live = np.bincount(rows.owner[up], minlength=len(names))
    factor = np.array([rows.factor.get(topic, 0) for topic in rows.topics], np.int64)[rows.topic]
    # fewer live brokers than the replication factor show that a target is down where its brokers
    # are not listed apart
    short = np.flatnonzero(state.under_way & (live < factor))
    waits = np.union1d(np.intersect1d(rows.owner[~rows.removing & ~up], ordered), short)
    missing.endless = [names[p] for p in waits[:NAMED].tolist()]
    missing.longer = [names[p] for p in longer[:NAMED].tolist()]
    missing.longer_count = len(longer)
    shorter = np.flatnonzero(state.shorter)
    missing.shorter = [names[p] for p in shorter[:NAMED].tolist()]
    missing.shorter_count = len(shorter)


def note_unreadable(missing: Missing, found: Findings, failed: Collection[int]) -> None:
    """Record unlisted log directories, those of brokers with a failed one separately."""
    for broker, errors in found.unreadable.items():
        (missing.failed if broker in failed else missing.unread)[str(broker)] = dict(errors)


def note_topics(missing: Missing, found: Findings, names: Iterable[str]) -> None:
    """Record the topics, and partitions under reassignment, that no file describes."""
    topics, loads = found.topics_elsewhere, found.idle_loads
    others = sorted(found.reassigned.keys() - {*names})
    missing.undescribed, missing.undescribed_count = others[:NAMED], len(others)
    missing.topics, missing.topic_count = sorted(topics)[:NAMED], len(topics)
    missing.loads, missing.load_count = sorted(loads)[:NAMED], len(loads)


def note_stated(missing: Missing, found: Findings, dimensions: Sequence[str]) -> None:
    """Record what files say of topics and brokers that changes the cluster."""
    missing.replaced = sorted(found.replaced)[:NAMED]
    missing.replaced_count = len(found.replaced)
    missing.deleted = sorted(found.deleted)[:NAMED]
    missing.proposals = found.proposals
    missing.notes = [*found.notes]
    missing.unheld = sorted(found.unheld)
    missing.demoted = [*map(str, sorted(found.demoted))]
    missing.unlimited = sorted(found.unlimited - {*dimensions})


def signs_of_life(found: Findings, rows: Rows) -> set[int]:
    """Return brokers that lead, are in sync with a leader, are proposed, or listed directories."""
    # the last in-sync replica of a partition without a leader is no sign of life: Kafka keeps it in
    # the ISR when its broker dies
    led = rows.described & (rows.leader != -1)
    synced = np.unique(rows.broker[rows.in_sync & led[rows.owner]])
    leading = np.unique(rows.leader[led & (rows.leader >= 0)])
    return {
        *leading.tolist(),
        *synced.tolist(),
        *found.reporting,
        *found.observing,
        *found.proposed,
    }


def remembered(cluster: Cluster) -> Missing:
    """Return the missing input that was recorded with a cluster."""
    native = cluster.native if isinstance(cluster.native, dict) else {}
    try:
        return msgspec.convert(native.get(KEY, {}), Missing)
    except msgspec.ValidationError:
        return Missing()


def as_native(missing: Missing) -> dict[str, Any]:
    """Return the record as plain data under its key; empty if nothing is missing."""
    plain = msgspec.to_builtins(missing)
    return {KEY: plain} if plain else {}
