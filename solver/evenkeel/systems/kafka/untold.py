"""What files left open, and what was taken instead, remembered beside the cluster for its notes."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.systems.kafka.findings import Findings
from evenkeel.systems.kafka.reassigned import Settled
from evenkeel.systems.kafka.rows import Rows

KEY = "untold"
"""Where it stands in ``cluster.native``."""

NAMED = 8
"""Brokers and topics that are named one by one; the rest is counted."""


class Untold(msgspec.Struct, omit_defaults=True):
    """What nobody told, and what stands for it."""

    down: list[str] = []
    """Brokers that nothing shows to be up: they count as dead."""

    up: list[str] = []
    """Brokers that could show nothing, since they only just join: they count as up."""

    unmeasured: dict[str, int] = {}
    """Partitions, by dimension, of which no amount is told though others' are: it is 0."""

    uncapped: dict[str, list[str]] = {}
    """Brokers, by dimension, of which no capacity is told though others' are."""

    topics: list[str] = []
    """Topics in log directories that are described nowhere, the first of them."""

    topic_count: int = 0
    taken_off: dict[str, float] = {}
    """Bytes that those take, by broker whose capacity is less by that."""

    uncounted: dict[str, float] = {}
    """Bytes that those take, by broker of which no capacity is told that could be less."""

    loads: list[str] = []
    """Topics in tables of loads that are described nowhere, the first of them."""

    load_count: int = 0
    observers: int = 0
    """Replicas that observe, and are in sync with nobody on purpose."""

    filtered: bool = False
    """Whether the description leaves partitions out."""

    reassigned: list[str] = []
    """Partitions that are being reassigned, the first of them."""

    reassigned_count: int = 0
    endless: list[str] = []
    """Those of them, the first, that are to join a broker that is down."""

    longer: list[str] = []
    """Partitions, the first of them, with more replicas than their topic is to have."""

    longer_count: int = 0
    failed: dict[str, dict[str, str]] = {}
    """Log directories that failed, and why, by their broker."""

    unread: dict[str, dict[str, str]] = {}
    """Others that were not listed, and why."""

    offline: dict[str, list[str]] = {}
    """Partitions whose replica is in a directory that failed, by broker."""

    awaited: dict[str, dict[str, float]] = {}
    """Capacities of brokers that no other file names."""

    controllers: list[str] = []
    """Nodes that are no brokers."""


def expected_in_sync(rows: Rows) -> NDArray[np.bool_]:
    """Return which replicas, (K,), are in sync while all is well: none that join or observe."""
    kept: NDArray[np.bool_] = rows.described[rows.owner] & ~(rows.adding | rows.observing)
    return kept


def note_guesses(
    untold: Untold,
    found: Findings,
    rows: Rows,
    brokers: NDArray[np.int32],
    shown: NDArray[np.bool_],
) -> None:
    """Remember the brokers of which nobody told whether they are up, by what they are taken for."""
    untold.observers = int(rows.observing.sum())
    untold.filtered = is_filtered(rows)
    untold.controllers = [*map(str, sorted(found.controllers))]
    if found.answers:
        return
    told = [broker for broker, (state, _) in found.states.items() if state is not None]
    open_to = ~np.isin(brokers, told)
    proven = np.isin(brokers, [*signs_of_life(found, rows)])
    open_to &= rows.described.any() or bool(found.reporting)
    untold.down = [*map(str, brokers[open_to & ~shown].tolist())]
    untold.up = [*map(str, brokers[open_to & shown & ~proven].tolist())]


def is_filtered(rows: Rows) -> bool:
    """Whether a description leaves partitions out, as ``--under-replicated-partitions`` does.

    It has no line of any topic then. One that lost these, by ``grep``, numbers partitions from 0
    on, and some of them are as they should be.
    """
    if rows.factor or not rows.described.any():
        return False
    counts = np.bincount(rows.topic)
    last = np.zeros(len(counts), np.int64)
    np.maximum.at(last, rows.topic, rows.number)
    lacks = np.zeros(len(rows.topic), np.bool_)
    lacks[rows.owner[expected_in_sync(rows) & ~rows.in_sync]] = True
    return bool((last >= counts).any() or lacks.all())


def note_reassigned(
    untold: Untold,
    state: Settled,
    rows: Rows,
    names: Sequence[str],
    up: NDArray[np.bool_],
) -> None:
    """Remember what is being reassigned, and where lists are too long; ``up (K,)`` is who lives."""
    under_way, longer = np.flatnonzero(state.under_way), np.flatnonzero(state.longer)
    untold.reassigned = [names[p] for p in under_way[:NAMED].tolist()]
    untold.reassigned_count = len(under_way)
    waits = np.unique(rows.owner[rows.adding & ~up])
    untold.endless = [names[p] for p in waits[:NAMED].tolist()]
    untold.longer = [names[p] for p in longer[:NAMED].tolist()]
    untold.longer_count = len(longer)


FAILURES = ("storage", "logdir", "log_dir", "disk", "ioexception")
"""What stands in the error of a log directory that failed, in small letters."""


def any_failed(errors: Mapping[str, str]) -> bool:
    """Whether some of the log directories with errors have failed."""
    return any(word in one.lower() for one in errors.values() for word in FAILURES)


def note_unreadable(untold: Untold, found: Findings, failed: Collection[int]) -> None:
    """Remember the log directories that were not listed, of brokers where one failed apart."""
    for broker, errors in found.unreadable.items():
        (untold.failed if broker in failed else untold.unread)[str(broker)] = dict(errors)


def note_topics(untold: Untold, found: Findings) -> None:
    """Remember the topics that other files know and that are described nowhere."""
    topics, loads = found.topics_elsewhere, found.idle_loads
    untold.topics, untold.topic_count = sorted(topics)[:NAMED], len(topics)
    untold.loads, untold.load_count = sorted(loads)[:NAMED], len(loads)


def signs_of_life(found: Findings, rows: Rows) -> set[int]:
    """Return the brokers that lead, are in sync with a leader, or told of their log directories.

    The last replica in sync of a partition that nobody leads is no sign: Kafka leaves it in the
    list when it dies.
    """
    led = rows.described & (rows.leader >= 0)
    synced = np.unique(rows.broker[rows.in_sync & led[rows.owner]])
    leading = np.unique(rows.leader[led])
    return {*leading.tolist(), *synced.tolist(), *found.reporting, *found.observing}


def remembered(cluster: Cluster) -> Untold:
    """Return what a cluster remembers that nobody told."""
    native = cluster.native if isinstance(cluster.native, dict) else {}
    try:
        return msgspec.convert(native.get(KEY, {}), Untold)
    except msgspec.ValidationError:
        return Untold()


def as_native(untold: Untold) -> dict[str, Any]:
    """Return it as plain data, by its key; nothing where everything was told."""
    plain = msgspec.to_builtins(untold)
    return {KEY: plain} if plain else {}
