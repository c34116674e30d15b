"""What files left open, and what was taken instead, remembered beside the cluster for its notes."""

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.formats.kafka.findings import Findings
from evenkeel.formats.kafka.rows import Rows
from evenkeel.model.cluster import Cluster

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
    if found.answers:
        return
    told = [broker for broker, (state, _) in found.states.items() if state is not None]
    open_to = ~np.isin(brokers, told)
    proven = np.isin(brokers, [*signs_of_life(found, rows)])
    joins = np.isin(brokers, rows.broker[rows.adding | rows.observing])
    untold.down = [*map(str, brokers[open_to & ~shown].tolist())]
    untold.up = [*map(str, brokers[open_to & shown & ~proven & joins].tolist())]


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
