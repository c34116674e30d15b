"""The files that Kafka's tools take: a reassignment, the way back, and an election of leaders."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.intake.stranded import stranded
from evenkeel.model.placement import Flag, Placement
from evenkeel.planning.changes.unreplaced import lists_lost
from evenkeel.systems.kafka.cluster import ANY
from evenkeel.systems.kafka.documents import AssignedPartition
from evenkeel.systems.one_way import one_way

VERSION = ',"version":1'
"""What stands behind the partitions of a reassignment."""


def encode(
    cluster: Cluster,
    placement: Placement | None,
    path: Path,
    *,
    partitions: Literal["changed", "all"] | None = None,
) -> dict[Path, bytes]:
    """Return a reassignment, and beside it the way back and the election of leaders.

    Raises
    ------
    InvalidInput
        If a node or partition is not named as Kafka names them, or a partition would be left
        without replicas.
    """
    faults = FaultList()
    target = cluster.placement if placement is None else placement
    topics = topics_of(faults, cluster, range(len(cluster.partitions)))
    brokers = broker_ids(faults, cluster)
    faults.raise_if_any()
    everything = partitions == "all" or (partitions is None and placement is None)
    now = [_slots(cluster.placement, p) for p in range(len(topics))]
    then = now if placement is None else _preferring(now, cluster.placement, target)
    # Kafka refuses a whole file that names who is down, and cannot copy what has no source
    lost = stranded(cluster.placement)
    waits = lists_lost(cluster, target) | lost | _left_alone(cluster.placement, target)
    for p in np.flatnonzero(waits).tolist():
        then[p] = now[p]
    chosen = [p for p in range(len(topics)) if everything or now[p] != then[p]]
    for p in chosen:
        if now[p] and not then[p]:
            faults.add(cluster.partitions.names[p], [], "would be left without replicas")
    faults.raise_if_any()
    entries = partial(rows, topics, brokers, cluster)
    files = {path: document(entries({p: then[p] for p in chosen}), VERSION)}
    if placement is not None:
        leads, led = target.leader_node, cluster.placement.leader_node
        elected = [
            topics[p]
            for p in np.flatnonzero(leads >= 0).tolist()
            # what leads already needs no election, though it was not preferred
            if leads[p] != led[p] and then[p][:1] == [leads[p]] and not lost[p]
        ]
        # nothing is copied to a broker that is dead: what was mended stays as it is then
        mended = one_way(cluster, target)
        # nor is a list given back that is longer than it is to be
        wanted = cluster.partitions.replicas
        kept = [p for p in chosen if not mended[p] and len(now[p]) <= max(wanted[p], len(then[p]))]
        back = entries({p: now[p] for p in kept})
        files[path.with_suffix(".rollback.json")] = document(back, VERSION)
        files[path.with_suffix(".election.json")] = election(elected)
    return files


def _left_alone(now: Placement, then: Placement) -> NDArray[np.bool_]:
    """Return the partitions whose replicas are all pinned and that are as they were, (P,) bool."""
    pinned = np.ones(len(now), np.bool_)
    pinned[now.owner[now.flags & Flag.PINNED == 0]] = False
    pinned &= now.leader_node == then.leader_node
    return pinned & np.array(
        [
            still and sorted(_slots(now, p)) == sorted(_slots(then, p))
            for p, still in enumerate(pinned)
        ],
        np.bool_,
    )


def topics_of(
    faults: FaultList, cluster: Cluster, partitions: Iterable[int]
) -> dict[int, tuple[str, int]]:
    """Divide the names of partitions into topic and number."""
    names, found = [*cluster.partitions.names], {}
    for p in partitions:
        topic, _, number = names[p].rpartition("-")
        if not topic or not number.isdecimal():
            faults.add(f"partition_names[{p}]", names[p], "must be topic-number")
            continue
        found[p] = (topic, int(number))
    return found


def broker_ids(faults: FaultList, cluster: Cluster) -> list[int]:
    """Return the numbers of brokers, by node."""
    for n, name in enumerate(cluster.nodes.names):
        if not name.isdecimal():
            faults.add(f"node_names[{n}]", name, "must be a broker id")
    return [int(name) for name in cluster.nodes.names if name.isdecimal()]


def _slots(placement: Placement, p: int) -> list[int]:
    """Return the nodes of a partition in the order of its slots, which says who is preferred."""
    nodes = placement.node[placement.first[p] : placement.first[p + 1]]
    return [n for n in nodes.tolist() if n >= 0]


def _preferring(was: Sequence[list[int]], now: Placement, then: Placement) -> list[list[int]]:
    """Return the nodes of each partition, the one that is to lead in front: so Kafka prefers it."""
    stands_in = standing_in(now).tolist()
    led, leads = now.leader_node.tolist(), then.leader_node.tolist()
    return [
        preferring(was[p], _slots(then, p), leads[p], stays=stands_in[p] and led[p] == leads[p])
        for p in range(len(now))
    ]


def standing_in(now: Placement) -> NDArray[np.bool_]:
    """Tell whose leader leads only until the first of the list can be elected again, (P,) bool."""
    return (now.leader > 0) & ~handed_back(now)


def handed_back(now: Placement) -> NDArray[np.bool_]:
    """Tell of which partitions an election makes the first of the list lead again, (P,) bool."""
    returns = np.zeros(len(now), np.bool_)
    returns[now.owner[(now.flags & Flag.PREFERRED) != 0]] = True
    return returns


def preferring(was: list[int], nodes: list[int], leader: int, *, stays: bool) -> list[int]:
    """Return the nodes of a partition in the order of a list by which one of them is preferred.

    Where it ``stays`` with who stands in for the first of the list, and that is there, it is kept.
    """
    if leader not in nodes or (stays and was[:1] == nodes[:1]):
        return nodes
    return [leader, *(n for n in nodes if n != leader)]


def rows(
    topics: Mapping[int, tuple[str, int]],
    brokers: Sequence[int],
    cluster: Cluster,
    nodes: Mapping[int, list[int]],
) -> Iterator[AssignedPartition]:
    """Yield one entry per partition; a replica that stays keeps the log directory it is told."""
    native = cluster.native if isinstance(cluster.native, dict) else {}
    told, names = native.get("log_dirs", {}), [*cluster.partitions.names]
    texts = [*map(str, brokers)]
    for p, own in nodes.items():
        folders = told.get(names[p]) if told else None
        dirs = None if folders is None else [folders.get(texts[n], ANY) for n in own]
        yield AssignedPartition(*topics[p], [brokers[n] for n in own], dirs)


def election(partitions: Iterable[tuple[str, int]]) -> bytes:
    """Return the document by which the preferred leaders of partitions are elected."""
    return document(({"topic": topic, "partition": number} for topic, number in partitions), "")


def document(rows: Iterable[object], rest: str) -> bytes:
    """Return a document with one partition per line, for people to read and compare."""
    # text has no line ends of its own, so these stand between rows only
    lines = msgspec.json.Encoder().encode_lines(rows)[:-1].replace(b"\n", b",\n")
    return b'{"partitions":[\n' + lines + f"\n]{rest}}}\n".encode()
