"""Build a cluster from Kafka's documents: brokers become nodes, topics groups."""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenkeel.measure.elections import led_alone
from evenkeel.model.cluster import Cluster
from evenkeel.model.intake.stranded import stranding, with_left_alone
from evenkeel.model.names import Names
from evenkeel.model.placement import Flag
from evenkeel.model.rules import Amount
from evenkeel.systems.documents import Document
from evenkeel.systems.folders.carrier import Observed, Standing
from evenkeel.systems.kafka.disks import ANY, disks_of, room_of_brokers
from evenkeel.systems.kafka.documents import (
    DEFAULT_BROKER,
    DESCRIBE,
    kind_of,
    read_beside,
    read_document,
    regular_rows,
)
from evenkeel.systems.kafka.findings import Findings, any_failed
from evenkeel.systems.kafka.log_dirs import HeldReplicas, held
from evenkeel.systems.kafka.missing import (
    NAMED,
    Missing,
    as_native,
    expected_in_sync,
    is_filtered,
    note_behind,
    note_guesses,
    note_reassigned,
    note_stated,
    note_topics,
    note_unreadable,
    signs_of_life,
)
from evenkeel.systems.kafka.ongoing import Settled, mark_listed, settled
from evenkeel.systems.kafka.racks import tier_of_racks
from evenkeel.systems.kafka.rows import UNKNOWN, Rows, keys_of, rows_of, within
from evenkeel.systems.kafka.tables import read_loads
from evenkeel.systems.native.arguments import build
from evenkeel.systems.node_states import NODE_STATES, columns_of

NAME = "kafka"
COUNT = "replicas"  # the dimension that counts replicas; sizes are ``disk``, in bytes
STRETCH = 2**16  # replicas per lookup, which bounds the memory of its 64-bit indices
MEASURED = ("disk", "cpu", "network_in", "network_out")


def read(
    documents: Sequence[Document],
    *,
    offline: Collection[int] | None = None,
    spread: Mapping[str, Amount] | None = None,
) -> Cluster:
    """Read a cluster from documents of Kafka that belong together."""
    found, rows = _gathered(documents)
    brokers = _brokers(found, rows, offline)
    names = Names(rows.names(), len(rows.topic), "")
    replicas = held(found, names)
    _check_references(found, rows, names, replicas)
    given: dict[str, Any] = {
        "node_names": [str(broker) for broker in brokers],
        "partition_names": names,
        "group": rows.topic if len(names) else None,
        "group_names": rows.topics,
        "native_format": NAME,
    }
    missing = Missing()
    given |= _states(found, rows, brokers, offline, missing)
    given |= _failed(found, rows, names, replicas, brokers, given, missing)
    listed = mark_listed(found, rows)
    node = _nodes(brokers, rows)
    up = given["alive"][node]
    state = settled(rows, listed, up)
    note_reassigned(missing, state, rows, names, up)
    given |= _placement(state, node, given["alive"], _without_source(rows, up))
    given["min_active"] = _least_in_sync(rows, given["replicas"], missing)
    # of failed directories and running reassignments there are other notes
    counted = up & ~state.under_way[rows.owner] & ~np.isin(rows.broker, [*map(int, missing.failed)])
    note_behind(missing, rows, given["min_active"], names, counted)
    room_of_brokers(found)
    given |= _amounts(found, state.rows, names, replicas, brokers, missing)
    given |= disks_of(found, state.rows, replicas, brokers, missing)
    missing.moving = len(found.moving)
    note_topics(missing, found, names if found.reassigned else ())
    note_stated(missing, found, given["dimensions"])
    given |= tier_of_racks(found, brokers, given["alive"], given["replicas"], spread)
    folders = _folders(rows, names, replicas, brokers)
    native = ({"log_dirs": folders} if folders else {}) | as_native(missing)
    longer = np.flatnonzero(np.diff(given["first"]) > given["replicas"])
    if len(longer):
        native["surplus"] = [given["partition_names"][p] for p in longer.tolist()]
    if native:
        given["native"] = native
    del rows, state
    cluster = build(found.faults, given, lambda path: f"{NAME}: {path}")
    if not found.demoted:
        return cluster
    return with_left_alone(cluster, led_alone(cluster, np.isin(brokers, [*found.demoted])))


def _least_in_sync(rows: Rows, replicas: NDArray[np.int32], missing: Missing) -> NDArray[np.int32]:
    """Return how many replicas of each partition must be in sync, (P,)."""
    asked = np.array([rows.min_in_sync.get(t, 0) for t in rows.topics], np.int32)[rows.topic]
    beyond = np.unique(rows.topic[asked > replicas])
    missing.beyond = [rows.topics[g] for g in beyond[:NAMED].tolist()]
    missing.beyond_count = len(beyond)
    # Kafka asks for no more than a partition has
    return np.minimum(asked, replicas)


def observe(documents: Sequence[Document]) -> Observed:
    """Return brokers and partitions as listed, with the replicas of running reassignments."""
    found, rows = _gathered(documents)
    brokers = _brokers(found, rows, None)
    alive = _states(found, rows, brokers, None, Missing())["alive"]
    found.faults.raise_if_any()
    copied = mark_listed(found, rows)
    copied[rows.owner[rows.adding]] = True
    lags = rows.described[rows.owner] & ~rows.in_sync & ~rows.adding
    lags &= alive[_nodes(brokers, rows)]
    first, held, behind = rows.first.tolist(), [*map(str, rows.broker.tolist())], lags.tolist()
    standing = {}
    for p, (name, leader) in enumerate(zip(rows.names(), rows.leader.tolist(), strict=True)):
        own = range(first[p], first[p + 1])
        nodes = [held[k] for k in own]
        leads = nodes[0] if leader == UNKNOWN and nodes else str(leader) if leader >= 0 else ""
        standing[name] = Standing(
            nodes, leads, bool(copied[p]), [held[k] for k in own if behind[k]]
        )
    lives = dict(zip(map(str, brokers.tolist()), alive.tolist(), strict=True))
    racks = {str(broker): rack for broker, (rack, _) in found.racks.items() if rack}
    return Observed(lives, standing, {"rack": racks})


def _nodes(brokers: NDArray[np.int32], rows: Rows) -> NDArray[np.int32]:
    """Return the node of each replica, (K,)."""
    node = np.empty(len(rows.broker), np.int32)
    for begin in range(0, len(node), STRETCH):
        some = slice(begin, begin + STRETCH)
        node[some] = np.searchsorted(brokers, rows.broker[some])
    return node


def _without_source(rows: Rows, up: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return partitions without an in-sync replica on a broker that is ``up (K,)``, (P,) bool."""
    # followers fetch from the leader, and only in-sync replicas can be elected
    width = np.diff(rows.first)
    source = up & (rows.in_sync | np.repeat(~rows.described, width))
    lacks = width > 0
    if len(source):
        lacks[lacks] = ~np.logical_or.reduceat(source, rows.first[:-1][lacks])
    return lacks


def _gathered(documents: Sequence[Document]) -> tuple[Findings, Rows]:
    """Read all documents; a single regular placement is read column by column."""
    found = Findings()
    kinds = ("assignment", "description", "metadata", "cluster-state", "proposals")
    placing = [one for one in documents if kind_of(one) in kinds]
    rows = regular_rows(placing[0]) if len(placing) == 1 else None
    for document in documents:
        if rows is None or document is not placing[0]:
            read_document(found, document)
        kind = kind_of(document)
        if kind in ("assignment", "description"):
            read_beside(found, document)
    for broker in found.bad_disks - found.unreadable.keys():
        found.unreadable[broker] = {"": "KafkaStorageException"}
    if not placing and not found.faults:
        names = [document.name for document in documents]
        found.faults.add(
            "source", names, f"needs a reassignment or a topic description: {DESCRIBE}"
        )
    return found, rows or rows_of(found.partitions, found.min_in_sync, found.factor)


def _brokers(found: Findings, rows: Rows, offline: Collection[int] | None) -> NDArray[np.int32]:
    """Return all brokers by number; a file of capacities alone adds none."""
    placed = {*np.unique(rows.broker).tolist()}
    named = {*placed, *found.racks, *found.reporting, *found.states, *found.answers}
    named |= found.proposed | found.earlier
    named -= found.controllers - placed
    for broker in sorted(set(offline or ()) - named):
        found.faults.add("offline", broker, "unknown broker")
    return np.array(sorted(named), np.int32)


def _check_references(
    found: Findings, rows: Rows, names: Sequence[str], replicas: HeldReplicas
) -> None:
    """Report partitions without a size that the log directories of their brokers should list."""
    complete = found.reporting.keys() - found.unreadable.keys()
    if complete:
        counts = np.bincount(replicas.partition, minlength=len(names))
        # a topic without listed replicas was created after the listing
        listed = np.bincount(rows.topic, weights=counts, minlength=len(rows.topics)) > 0
        for p in np.flatnonzero((counts == 0) & listed[rows.topic]).tolist():
            own = rows.broker[rows.first[p] : rows.first[p + 1]].tolist()
            holder = next((broker for broker in own if broker in complete), None)
            if holder is not None:
                at = found.reporting[holder]
                found.faults.add(rows.path(p), names[p], f"has no size: {at} does not hold it")


def _states(
    found: Findings,
    rows: Rows,
    brokers: NDArray[np.int32],
    offline: Collection[int] | None,
    missing: Missing,
) -> dict[str, NDArray[np.bool_]]:
    """Return the states of brokers: as listed, or else as inferred, which is noted."""
    if offline is not None:
        return {"alive": ~np.isin(brokers, [*offline])}
    shown = _shown(found, rows, brokers)
    note_guesses(missing, found, rows, brokers, shown)
    given = columns_of([NODE_STATES["up" if up else "down"] for up in shown])
    for n, broker in enumerate(brokers.tolist()):
        listed = found.states.get(broker, (None, ""))[0]
        if listed is not None:
            for name, value in listed._asdict().items():
                given[name][n] = value
    return given


def _shown(found: Findings, rows: Rows, brokers: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Infer which brokers are up, (N,) bool."""
    # replicas that join or observe need not be in sync: a broker with no others counts as up,
    # unless only other brokers reported their log directories
    if found.answers:
        return np.isin(brokers, [broker for broker, (up, _) in found.answers.items() if up])
    if not (rows.described.any() or found.reporting):
        return np.ones(len(brokers), np.bool_)
    shown = np.isin(brokers, [*signs_of_life(found, rows)])
    if found.reporting:
        return shown
    if is_filtered(rows):
        # the last in-sync broker of a partition without a leader is down; others may be up
        unled = (rows.described & (rows.leader < 0))[rows.owner]
        last = (
            rows.in_sync
            | (np.bincount(rows.owner[rows.in_sync], minlength=len(rows.topic)) == 0)[rows.owner]
        )
        left = found.earlier - {*rows.broker.tolist()}
        return shown | ~np.isin(brokers, [*rows.broker[last & unled].tolist(), *left])
    known = np.isin(brokers, [*np.unique(rows.broker).tolist(), *found.states])
    return shown | (known & ~np.isin(brokers, rows.broker[expected_in_sync(rows)]))


def _failed(
    found: Findings,
    rows: Rows,
    names: Names,
    replicas: HeldReplicas,
    brokers: NDArray[np.int32],
    states: Mapping[str, NDArray[np.bool_]],
    missing: Missing,
) -> dict[str, Any]:
    """Close brokers with a failed log directory, and the replicas lost in it."""
    failed = [broker for broker, errors in found.unreadable.items() if any_failed(errors)]
    note_unreadable(missing, found, failed)
    if not failed:
        return {}
    listed = within(
        np.sort(keys_of(replicas.partition, replicas.broker)), keys_of(rows.owner, rows.broker)
    )
    lost = np.flatnonzero(np.isin(rows.broker, failed) & ~listed & ~rows.in_sync & ~rows.adding)
    node = np.searchsorted(brokers, rows.broker[lost])
    for p, broker in zip(rows.owner[lost].tolist(), rows.broker[lost].tolist(), strict=True):
        missing.offline.setdefault(str(broker), []).append(names[p])
    accepts = states.get("accepts", np.ones(len(brokers), np.bool_)) & ~np.isin(brokers, failed)
    return {"accepts": accepts, "forbidden": np.stack([rows.owner[lost], node], 1)}


def _placement(
    state: Settled, node: NDArray[np.int32], alive: NDArray[np.bool_], lost: NDArray[np.bool_]
) -> dict[str, Any]:
    """Return replicas in Kafka's order, with their flags and leaders."""
    # partitions under reassignment stay at its target, and if a replica comes there, are led by the
    # first that lives, which Kafka prefers; ``lost (P,)`` ones where they are
    rows, node = state.rows, node[state.stays]
    flags = np.zeros(len(rows.broker), np.uint16)
    for flag, marked in (
        (Flag.CAUGHT_UP, rows.in_sync),
        (Flag.INCOMING, rows.adding),
        (Flag.PINNED | Flag.LEFT_ALONE, state.under_way[rows.owner]),
        (Flag.BLOCKS, np.ones(len(node), np.bool_)),
    ):
        flags[marked] |= np.uint16(flag)
    first = rows.first[:-1][np.diff(rows.first) > 0]
    waits = (rows.leader < 0) | state.under_way | lost
    beside = np.zeros(len(flags), np.bool_)
    beside[first] = (np.repeat(rows.leader, np.diff(rows.first)) != rows.broker)[first]
    beside &= ~waits[rows.owner]
    returns = rows.in_sync & alive[node]
    flags[beside & returns] |= np.uint16(Flag.PREFERRED)
    flags[beside & ~returns] |= np.uint16(Flag.AWAITED)
    if lost.any():
        flags = stranding(flags, lost[rows.owner])
    leader = _leading_slots(rows)
    follows = state.under_way & (rows.leader == UNKNOWN)
    follows[rows.owner[rows.adding]] = True
    if follows.any():  # the first of the list that is alive
        at = np.flatnonzero(alive[node] & follows[rows.owner])[::-1]
        led = _rows_at(rows, at)
        leader[led] = at - rows.first[led]
    return {
        "placement": node,
        "first": rows.first,
        "leader": leader,
        "flags": flags,
        "replicas": state.wanted,
    }


def _leading_slots(rows: Rows) -> NDArray[np.int32]:
    """Return the leading slot of each partition: the first by default, -1 for none."""
    width = np.diff(rows.first).astype(np.int32)
    leader = np.where((rows.leader == UNKNOWN) & (width > 0), np.int32(0), np.int32(-1))
    at = np.flatnonzero(rows.broker == np.repeat(rows.leader, width))
    led = _rows_at(rows, at)
    at -= rows.first[led]
    leader[led] = at
    return leader


def _rows_at(rows: Rows, replicas: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rows of some replicas."""
    return np.searchsorted(rows.first, replicas, "right") - 1


def _amounts(
    found: Findings,
    rows: Rows,
    names: Sequence[str],
    replicas: HeldReplicas,
    brokers: NDArray[np.int32],
    missing: Missing,
) -> dict[str, Any]:
    """Return loads and capacities of every dimension that some file measures."""
    every, leading = read_loads(found, rows, names)
    measured = {name for amounts in found.capacity.values() for name in amounts}
    measured |= {*every, *leading} | ({"disk"} if len(replicas.size) else set())
    order = [COUNT, *(name for name in MEASURED if name in measured)]
    load = np.zeros((len(names), len(order)))
    load[:, 0] = 1.0
    measured_at = np.zeros(load.shape, np.bool_)
    if len(replicas.size):
        # replicas that catch up are smaller for a while: the largest is the size
        np.maximum.at(load[:, order.index("disk")], replicas.partition, replicas.size)
        measured_at[replicas.partition, order.index("disk")] = True
    for name, loads in every.items():
        d = order.index(name)
        load[:, d] = np.where(np.isnan(loads), load[:, d], loads)
        measured_at[:, d] |= ~np.isnan(loads)
    leader_load = load.copy() if leading else load
    for name, loads in leading.items():
        d = order.index(name)
        leader_load[:, d] = np.where(np.isnan(loads), load[:, d], loads)
        measured_at[:, d] |= ~np.isnan(loads)
    lacking = (~measured_at).sum(axis=0).tolist()
    for name, count in zip(order, lacking, strict=True):
        if 0 < count < len(names):
            missing.unmeasured[name] = count
    room = room_for_all(rows.first, load, leader_load)
    given = {
        "dimensions": order,
        "load": load,
        "capacity": _capacities(found, brokers, order, room, missing),
        "bytes": "disk" if "disk" in order else None,
    }
    return given | ({"leader_load": leader_load} if leading else {})


def _capacities(
    found: Findings,
    brokers: NDArray[np.int32],
    order: Sequence[str],
    room: NDArray[np.float64],
    missing: Missing,
) -> NDArray[np.float64]:
    """Return the capacity of each broker, (N, D), ``room`` (D,) where none is given."""
    limits = found.capacity
    for broker in sorted(limits.keys() - {*brokers.tolist(), DEFAULT_BROKER}):
        missing.awaited[str(broker)] = limits[broker]
    default = limits.get(DEFAULT_BROKER, {})
    own = [default | limits.get(broker, {}) for broker in brokers.tolist()]
    capacity = np.tile(room, (len(own), 1))
    for d, name in enumerate(order):
        limited = [n for n, one in enumerate(own) if name in one]
        capacity[limited, d] = [own[n][name] for n in limited]
        if 0 < len(limited) < len(own):
            without = [n for n in range(len(own)) if name not in own[n]]
            missing.uncapped[name] = [str(brokers[n]) for n in without]
    for n, broker in enumerate(brokers.tolist()):
        # bytes of topics that no file describes stay on the disks
        if others := found.elsewhere.get(broker, 0.0):
            has_limit = "disk" in own[n]
            (missing.taken_off if has_limit else missing.uncounted)[str(broker)] = others
            if has_limit:
                d = order.index("disk")
                capacity[n, d] = max(capacity[n, d] - others, 0.0)
    return capacity


def room_for_all(
    first: NDArray[np.int64], load: NDArray[np.float64], leader_load: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the capacity, (D,), of a broker without a given one: the load of all replicas."""
    slots = np.diff(first).astype(np.float64)
    room: NDArray[np.float64] = np.maximum(slots @ np.maximum(load, leader_load), 1.0)
    return room


def _folders(
    rows: Rows, names: Sequence[str], replicas: HeldReplicas, brokers: NDArray[np.int32]
) -> dict[str, dict[str, str]]:
    """Return the known log directories of replicas, by partition and broker."""
    if not (len(replicas.size) or rows.log_dirs):
        return {}
    there = np.sort(keys_of(rows.owner, rows.broker))
    own = within(there, keys_of(replicas.partition, replicas.broker))
    counts = np.bincount(replicas.partition[own], minlength=len(names)).tolist()
    text = np.array([*map(str, brokers.tolist())], object)
    broker = text[np.searchsorted(brokers, replicas.broker[own])].tolist()
    pairs = zip(broker, replicas.folder[own].tolist(), strict=True)
    folders = {name: dict(islice(pairs, n)) for name, n in zip(names, counts, strict=True)}
    for p, dirs in rows.log_dirs.items():
        held = rows.broker[rows.first[p] : rows.first[p + 1]].tolist()
        for one, where in zip(map(str, held), dirs, strict=False):
            if where != ANY or one not in folders[names[p]]:
                folders[names[p]][one] = where
    return {name: own for name, own in folders.items() if own}
