"""Write files for Kafka's tools: a reassignment, its rollback, and an election of leaders."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
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
from evenkeel.planning.changes.targets import lists_lost
from evenkeel.planning.planner import planned
from evenkeel.planning.throttle import Protocol, Throttle
from evenkeel.systems.kafka.cluster import ANY
from evenkeel.systems.kafka.documents import AssignedPartition
from evenkeel.systems.one_way import left_disabled, one_way

VERSION = ',"version":1'
"""The end of a reassignment, after its partitions."""


def encode(
    cluster: Cluster,
    placement: Placement | None,
    path: Path,
    *,
    partitions: Literal["changed", "all"] | None = None,
) -> dict[Path, bytes]:
    """Return a reassignment, and beside it its rollback and the election of leaders."""
    faults = FaultList()
    target = cluster.placement if placement is None else placement
    topics = topics_of(faults, cluster, range(len(cluster.partitions)))
    brokers = broker_ids(faults, cluster)
    faults.raise_if_any()
    everything = partitions == "all" or (partitions is None and placement is None)
    now = [_slots(cluster.placement, p) for p in range(len(topics))]
    then = now if placement is None else _preferring(now, cluster.placement, target)
    # Kafka refuses a file that names a dead broker, and cannot copy without a source
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
            # a replica that leads already needs no election
            if leads[p] != led[p] and then[p][:1] == [leads[p]] and not lost[p]
        ]
        back = _way_back(cluster, target, now, then)
        # a list is not restored that was too long when it was read
        native = cluster.native if isinstance(cluster.native, dict) else {}
        surplus, names = {*native.get("surplus", ())}, cluster.partitions.names
        kept = [
            p for p in chosen
            if p in back and (len(now[p]) <= len(then[p]) or names[p] not in surplus)
        ]  # fmt: skip
        back_rows = entries({p: back[p] for p in kept})
        files[path.with_suffix(".rollback.json")] = document(back_rows, VERSION)
        files[path.with_suffix(".election.json")] = election(elected)
    return files


def _way_back(
    cluster: Cluster, target: Placement, now: list[list[int]], then: list[list[int]]
) -> dict[int, list[int]]:
    """Return the lists to go back to, by partition.

    Nothing can be copied back to a dead broker: what left one goes back as far as a plan for the
    way back does, which leaves a list as it is where another replica has taken the place. A list
    stays that has left a failed log directory.
    """
    stays, one_sided = left_disabled(cluster, target), one_way(cluster, target)
    lists = {p: row for p, row in enumerate(now) if not stays[p]}
    one_sided &= ~stays
    if not one_sided.any():
        return lists
    there = one_sided[target.owner]
    home = target.replaced(
        np.where(there, cluster.placement.node, target.node),
        np.where(one_sided, cluster.placement.leader, target.leader),
    )
    end = planned(
        replace(cluster, placement=target), home, Throttle(), Protocol.named("kafka")
    ).end  # fmt: skip
    for p in np.flatnonzero(one_sided).tolist():
        lists[p] = preferring(now[p], _slots(end, p), int(end.leader_node[p]), stays=False)
        if lists[p] == then[p]:
            del lists[p]
    return lists


def _left_alone(now: Placement, then: Placement) -> NDArray[np.bool_]:
    """Return the partitions whose replicas are all pinned and unchanged, (P,) bool."""
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
    """Return the topic and number of each partition, from its name."""
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
    """Return the nodes of a partition in the order of its slots, the preferred leader first."""
    nodes = placement.node[placement.first[p] : placement.first[p + 1]]
    return [n for n in nodes.tolist() if n >= 0]


def _preferring(was: Sequence[list[int]], now: Placement, then: Placement) -> list[list[int]]:
    """Return the nodes of each partition, the planned leader first: Kafka prefers that."""
    stands_in = standing_in(now).tolist()
    led, leads = now.leader_node.tolist(), then.leader_node.tolist()
    return [
        preferring(was[p], _slots(then, p), leads[p], stays=stands_in[p] and led[p] == leads[p])
        for p in range(len(now))
    ]


def standing_in(now: Placement) -> NDArray[np.bool_]:
    """Return the partitions with a stand-in for a preferred leader that cannot lead, (P,) bool."""
    return (now.leader > 0) & ~handed_back(now)


def handed_back(now: Placement) -> NDArray[np.bool_]:
    """Return the partitions whose preferred leader an election restores, (P,) bool."""
    returns = np.zeros(len(now), np.bool_)
    returns[now.owner[(now.flags & Flag.PREFERRED) != 0]] = True
    return returns


def preferring(was: list[int], nodes: list[int], leader: int, *, stays: bool) -> list[int]:
    """Return the nodes of a partition with the leader first, which Kafka then prefers.

    If the lead ``stays`` with a stand-in and the preferred leader remains, the order is kept.
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
    """Yield one entry per partition; a replica that stays keeps its known log directory."""
    native = cluster.native if isinstance(cluster.native, dict) else {}
    known, names = native.get("log_dirs", {}), [*cluster.partitions.names]
    texts = [*map(str, brokers)]
    for p, own in nodes.items():
        folders = known.get(names[p]) if known else None
        dirs = None if folders is None else [folders.get(texts[n], ANY) for n in own]
        yield AssignedPartition(*topics[p], [brokers[n] for n in own], dirs)


def election(partitions: Iterable[tuple[str, int]]) -> bytes:
    """Return the document that elects the preferred leaders of partitions."""
    return document(({"topic": topic, "partition": number} for topic, number in partitions), "")


def document(rows: Iterable[object], rest: str) -> bytes:
    """Return a document with one partition per line, which diffs well."""
    # JSON text has no line ends of its own, so each ends a row
    lines = msgspec.json.Encoder().encode_lines(rows)[:-1].replace(b"\n", b",\n")
    return b'{"partitions":[\n' + lines + f"\n]{rest}}}\n".encode()
