"""Read measured loads for any cluster from a table or a query result of Prometheus.

A series, or a row of a table, has labels and a value. Its labels name a partition, or a group whose
value is shared out among its partitions, and perhaps the node that it was measured on.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from evenkeel.model.cluster import Cluster, require_cluster
from evenkeel.model.errors import FaultList
from evenkeel.model.partitions import Loads
from evenkeel.model.reading.arrays import entries_of, read_only
from evenkeel.model.reading.keywords import did_you_mean, known_keywords
from evenkeel.model.reading.quantities import check_text
from evenkeel.model.runtime.printable import counted, some_of
from evenkeel.systems.csv_text import ANYTHING, read_table
from evenkeel.systems.documents import Document, Source, collector_held, quoted
from evenkeel.systems.json_text import decode_json
from evenkeel.systems.registry import system_of

# What a label may stand for, and what systems call that; the first found in all series is taken, or
# where there is none, in any. A node is taken from a label only where that is asked, since most
# series carry some such label.
LABELS = {
    "partition": (
        "partition", "shard", "range", "range_id", "pg", "pgid", "volume", "queue", "workload",
        "ring_partition", "segment", "stream", "stream_name",
    ),
    "group": (
        "group", "topic", "index", "pool", "table", "resource", "vhost", "namespace", "collection",
    ),
    "node": ("node", "broker", "broker_id", "store", "store_id", "osd", "ceph_daemon"),
}  # fmt: skip

# dimension of a metric that is known by name; any other metric is a dimension of its own name
DIMENSIONS = {
    "kafka_log_log_size": "disk", "kafka_log_size": "disk", "kafka_topic_partition_size": "disk",
    "ceph_pg_bytes": "bytes", "kubelet_volume_stats_used_bytes": "bytes",
}  # fmt: skip

# what people have in place of an answer, by its pattern
OTHERS = {
    rb"^# (?:HELP|TYPE) \w|^\w+\{[^\n]*\} [-+.\dNI]\S*\s*$": "what one exporter serves",
    rb"^\w*\{[^\n]*\} => \S+ @\[": "what promtool prints for people",
    rb'^"?Time"?,[^\n]*\{[^\n]*=': "a panel's columns as Grafana exports them",
}

LEADER = "leader_"  # prefix of a dimension whose values only leaders carry
HEAD = 65536

MOST_NAMED = 5


class Series(msgspec.Struct, gc=False):
    """One series: its labels, and one sample or several, each a time and a number as text."""

    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None
    values: list[tuple[float, str]] = []


class Data(msgspec.Struct):
    """The result of a query."""

    resultType: Literal["vector", "matrix"]  # noqa: N815
    result: list[Series]


class Answer(msgspec.Struct):
    """What ``/api/v1/query`` and ``/api/v1/query_range`` return."""

    status: Literal["success", "error"]
    data: Data | None = None
    error: str = ""


class Entries(NamedTuple):
    """Series or rows of one dimension."""

    labels: Sequence[Mapping[str, str]]
    value: Sequence[float]  # what is taken of their samples, NaN for none
    stale: set[int]  # those whose last sample is older than that of others


class MeasuredLoads(NamedTuple):
    r"""A cluster with measured loads, and notes on missing, stale, shared and unknown series.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(capacity=[[9.0]], load=[[1.0]] * 2, placement=[[0]] * 2)
    >>> ek.read_loads(c, b"partition,d0\np0,3\n").notes
    ('<bytes>: d0: no value of 1 partition (p1): they keep their loads',)
    """

    cluster: Cluster
    notes: tuple[str, ...]


@known_keywords
def read_loads(
    cluster: Cluster,
    source: Source,
    dimension: str = "",
    *,
    labels: Mapping[str, str] | None = None,
    take: str = "last",
) -> MeasuredLoads:
    r"""Read loads of a cluster's partitions that were measured elsewhere.

    Parameters
    ----------
    cluster : Cluster
        Of any system; its other loads stay.
    source : str, path, bytes or binary file
        A saved answer of Prometheus to an instant or range query, or a table (CSV) with columns of
        labels, and a column of loads for each dimension.
    dimension : str, optional
        The dimension that the values load, one of the cluster's or a new one; with ``leader_``
        before it, only replicas that lead carry them. By default the metric's name, or that of
        each column. A new dimension has the same capacity on every node: the load of all.
    labels : mapping of str to str, optional
        Which label is the ``partition``, the ``group`` (or ``topic``, ``index``, ``table``, ...)
        and the ``node``: ``{"topic": "topic", "partition": "partition"}``. By default found by
        such names. With a node, values of the leader's node are those of replicas that lead.
    take : str, optional
        Of several samples ``"last"``, ``"mean"``, ``"max"``, or a percentile, ``"p95"``.

    Returns
    -------
    MeasuredLoads
        The cluster, and notes for people. A partition without a value keeps its load in a dimension
        that the cluster has; in a new one it gets the mean of its group, else of all.

    Raises
    ------
    InvalidInput
        Naming every problem, such as a file of which no series is of the cluster.

    Examples
    --------
    >>> import evenkeel as ek
    >>> c = ek.Cluster.from_arrays(
    ...     capacity=[[9.0]] * 2, load=[[1.0]] * 2, placement=[[0], [1]], group=["a", "a"],
    ...     partition_names=["a-0", "a-1"])
    >>> found = read_loads(c, b"topic,partition,qps\na,0,5\na,1,7\n")
    >>> found.cluster.dimensions, found.cluster.partitions.load.voter[:, 1].tolist()
    (('d0', 'qps'), [5.0, 7.0])
    """
    faults = FaultList()
    require_cluster(cluster)
    _check_take(faults, take)
    check_text(faults, "dimension", dimension)
    document = Document.load(source)
    given = _read_labels(faults, {} if labels is None else entries_of(faults, "labels", labels))
    faults.raise_if_any()
    notes: list[str] = []
    with collector_held():
        for name, entries in _entries(faults, document, dimension, given, take):
            known = _found_labels(faults, document, entries, given)
            faults.raise_if_any()
            cluster = _loaded(faults, document, cluster, name, entries, known, notes)
    faults.raise_if_any()
    return MeasuredLoads(cluster, tuple(notes))


def _check_take(faults: FaultList, take: str) -> None:
    number = take[1:] if isinstance(take, str) and take[:1] == "p" else ""
    usual = isinstance(take, str) and take in ("last", "mean", "max")
    if not usual and not (number.isdecimal() and int(number) <= 100):
        faults.add("take", take, "must be last, mean, max, or a percentile such as p95")


def _read_labels(faults: FaultList, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the label that stands for each of ``LABELS``, of those that are given."""
    words = {word: name for name, own in LABELS.items() for word in own}
    for word in labels.keys() - words.keys():
        message = f"stands for nothing known: {', '.join(words)}{did_you_mean(word, [*words])}"
        faults.add("labels", word, message)
    return {words[word]: label for word, label in labels.items() if word in words}


def _entries(
    faults: FaultList, document: Document, dimension: str, given: Mapping[str, str], take: str
) -> Iterator[tuple[str, Entries]]:
    """Yield the entries of each dimension of a file."""
    for looks, what in OTHERS.items():
        if re.search(looks, document.data[:HEAD], re.MULTILINE):
            message = f"is {what}: save the answer of Prometheus to /api/v1/query?query=METRIC"
            faults.add(document.name, quoted(document.data), message)
            return
    if document.is_json:
        if document.data.lstrip().startswith(b"["):  # as promtool query --format=json prints it
            series = decode_json(faults, document, list[Series])
        else:
            answer = decode_json(faults, document, Answer)
            series = None if answer is None or answer.data is None else answer.data.result
            if answer is not None and series is None:
                message = "is an answer without data: ask again with a query that Prometheus takes"
                faults.add(document.name, answer.error or answer.status, message)
        if series is None:
            return
        names = {one.metric.get("__name__", "") for one in series}
        metric = names.pop() if len(names) == 1 else ""
        if not (dimension or metric):
            message = "has no metric's name, as after rate(): give the dimension, such as qps=FILE"
            faults.add(document.name, quoted(document.data), message)
            return
        samples = [one.values if one.value is None else [one.value] for one in series]
        ends = [one[-1][0] if one else 0.0 for one in samples]
        last = max(ends, default=0.0)
        yield (
            dimension or DIMENSIONS.get(metric, metric),
            Entries(
                [one.metric for one in series],
                [_taken(one, take) for one in samples],
                {i for i, end in enumerate(ends) if end < last},
            ),
        )
        return
    table = read_table(faults, document)
    words = {word for own in LABELS.values() for word in own} | {*given.values()}
    of_labels = [name for name in table.columns if name in words]
    columns = [name for name in table.columns if name and name not in words]
    if dimension and len(columns) > 1:
        columns = [one for one in columns if one == dimension.lower()]
    if not columns:
        faults.add(document.name, [*table.titles], f"has no column {dimension or 'of loads'}")
    cells = zip(*(table.columns[name] for name in of_labels), strict=True)
    rows = [dict(zip(of_labels, one, strict=True)) for one in cells]
    for column in columns:
        values = table.amounts(faults, column, math.nan, unit=ANYTHING)
        values = np.where(table.empty(column), math.nan, values)
        title = table.titles.get(column, column).removeprefix("load_").removeprefix("size_")
        yield dimension or title, Entries(rows, values.tolist(), set())


def _taken(samples: Sequence[tuple[float, str]], take: str) -> float:
    """Return what is taken of samples, NaN where none of these is a number from 0 on."""
    if take == "last" or len(samples) == 1:
        return _number(samples[-1][1]) if samples else math.nan
    numbers = [one for one in (_number(text) for _, text in samples) if one == one]
    if not numbers:
        return math.nan
    if take == "mean":
        return math.fsum(numbers) / len(numbers)
    return float(np.percentile(numbers, 100.0 if take == "max" else float(take[1:])))


def _number(text: str) -> float:
    """Return a number from 0 on, NaN for any other text."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if 0.0 <= value < math.inf else math.nan


def _found_labels(
    faults: FaultList, document: Document, entries: Entries, given: Mapping[str, str]
) -> dict[str, str]:
    """Return the label of partition, group and node: as given, or found in all entries."""
    labels = entries.labels
    in_all = set(labels[0]).intersection(*labels[1:]) if labels else set()
    there = set[str]().union(*labels)
    found = dict(given)
    for known in (in_all, there):
        for name in () if found.keys() & {"partition", "group"} else ("partition", "group"):
            found |= {name: word for word in LABELS[name][::-1] if word in known}  # noqa: B035
    lacking = [label for label in found.values() if label not in there]
    if not labels or lacking or not found.keys() & {"partition", "group"}:
        message = (
            "holds no series" if not labels
            else f"has no label {lacking}; there are {sorted(there)}" if lacking
            else f"has no label of a partition or group that is known among {sorted(there)}: give "
            "labels, such as topic=LABEL,partition=LABEL"
        )  # fmt: skip
        faults.add(document.name, quoted(document.data), message)
    return found


class _Names:
    """Partitions and groups of a cluster by what labels call them."""

    def __init__(self, cluster: Cluster) -> None:
        parts = cluster.partitions
        self.groups = {str(name): g for g, name in enumerate(parts.group_names)}
        self.whole = {str(name): p for p, name in enumerate(parts.names)}
        self.within: dict[tuple[int, str], int] = {}
        self.tails: dict[str, int] = {}
        groups, within, tails = [*self.groups], self.within, self.tails
        for (name, p), g in zip(self.whole.items(), parts.group.tolist(), strict=True):
            begins = name.startswith(groups[g])
            tail = name[len(groups[g]) :].lstrip("-_./:[") if begins else name.partition("/")[2]
            within[g, tail.rstrip("]")] = p
            within[g, tail.rpartition("/")[2]] = p
            tails[tail] = -1 if tail in tails else p
        dotted: dict[str, list[int]] = {}
        for name, g in self.groups.items():
            dotted.setdefault(name.replace(".", "_"), []).append(g)
        self.dotted = {name: own[0] for name, own in dotted.items() if len(own) == 1}

    def group(self, name: str) -> int:
        """Return the group of a name, also of one whose dots became underscores; -1 for none."""
        return self.groups.get(name, self.dotted.get(name, -1))

    def partition(self, group: str | None, name: str) -> int:
        """Return the partition that labels name; -1 for none."""
        if group is not None and (p := self.within.get((self.group(group), name), -1)) >= 0:
            return p
        return self.whole.get(name, self.tails.get(name, -1) if group is None else -1)


def _loaded(
    faults: FaultList,
    document: Document,
    cluster: Cluster,
    dimension: str,
    entries: Entries,
    labels: Mapping[str, str],
    notes: list[str],
) -> Cluster:
    """Return the cluster with the loads of one dimension, and add notes on them."""
    names, count = _Names(cluster), len(cluster.partitions)
    own, leading = [math.nan] * count, [math.nan] * count
    # by group, then by the node that leads, if it was asked for and is known
    totals: dict[tuple[int, int], float] = {}
    lead = cluster.placement.leader_node.tolist()
    nodes = {str(name): n for n, name in enumerate(cluster.nodes.names)}
    of_group, of_partition, of_node = (labels.get(name) for name in ("group", "partition", "node"))
    strange: list[str] = []
    unknown: dict[str, None] = {}
    stale, fresh = set[int](), set[int]()
    several = 0
    columns = zip(entries.labels, entries.value, strict=True)
    for i, (label, value) in enumerate(columns):
        group = label.get(of_group, "") if of_group else None
        part = label.get(of_partition, "") if of_partition else ""
        n = nodes.get(label.get(of_node, ""), -1) if of_node else -1
        if of_node and n < 0:
            unknown[label.get(of_node, "") or "without a name"] = None
        if not part:
            g = names.group(group or "")
            if g < 0:
                strange.append(group or str(label))
            elif value == value:
                totals[g, n] = totals.get((g, n), 0.0) + value
            continue
        p = names.partition(group, part)
        if p < 0:
            strange.append(f"{group}-{part}" if group else part)
            continue
        if value != value or (p in fresh and i in entries.stale):
            continue
        into = leading if n >= 0 and n == lead[p] else own
        if i in entries.stale:
            stale.add(p)
        elif p in stale:
            stale.discard(p)
            own[p] = leading[p] = math.nan  # what is fresh counts alone
        if i not in entries.stale:
            fresh.add(p)
        several += into[p] == into[p]
        into[p] = max(value, into[p]) if into[p] == into[p] else value
    where = f"{document.name}: {dimension}"
    every, of_leaders = np.array(own), np.array(leading)
    shared, stray = _share_out(cluster, every, totals) if totals else (0, [])
    if np.isnan(every).all() and np.isnan(of_leaders).all():
        faults.add(where, _some(strange) or None, "is of no partition or group of the cluster")
        return cluster
    every = np.where(np.isnan(every), of_leaders, every)
    lacking = np.flatnonzero(np.isnan(every)).tolist()
    of_stale = sorted(stale)
    shown = cluster.partitions.names
    plain = dimension.removeprefix(LEADER) if dimension not in cluster.dimensions else dimension
    kept = plain in cluster.dimensions
    if lacking:
        instead = "they keep their loads" if kept else "the mean of their group, or of all, counts"
        notes.append(
            f"{where}: no value of {counted(len(lacking), 'partition')} "
            f"({_named(lacking, shown)}): {instead}"
        )
    if of_stale:
        last = f"{counted(len(of_stale), 'partition')} ({_named(of_stale, shown)})"
        notes.append(f"{where}: the last value of {last} is older than that of others")
    if strange:
        notes.append(
            f"{where}: {counted(len(strange), 'series', 'series')} of no partition of the cluster "
            f"({_some(strange)})"
        )
    if shared:
        notes.append(
            f"{where}: the value of {counted(shared, 'group')} is shared out {_by(cluster)}"
        )
    if stray:
        groups, on = cluster.partitions.group_names, cluster.nodes.names
        which = _some([f"{groups[g]} on {on[n]}" for g, n in stray])
        notes.append(f"{where}: {which}: no partition is led there, and the value is left out")
    if unknown:
        notes.append(
            f"{where}: {of_node} {_some([*unknown])}: no node of the cluster has such a name, and "
            "the values count without it"
        )
    if several:
        notes.append(f"{where}: of several values for a partition the largest counts")
    return _with_dimension(cluster, plain, every, of_leaders, dimension != plain, notes, where)


def _some(names: Sequence[str]) -> str:
    return some_of(names, str, MOST_NAMED) if names else ""


def _named(which: Sequence[int], names: Sequence[str]) -> str:
    return some_of(which, lambda p: str(names[p]), MOST_NAMED)


def _by(cluster: Cluster) -> str:
    return "by size" if cluster.bytes_dimension >= 0 else "evenly"


def _share_out(
    cluster: Cluster, own: NDArray[np.float64], totals: Mapping[tuple[int, int], float]
) -> tuple[int, list[tuple[int, int]]]:
    """Share out totals of groups; return for how many groups, and the totals of no partition."""
    # a total of a group and a node is that of the partitions led from it; node -1 is for the others
    group, lead = cluster.partitions.group, cluster.placement.leader_node
    cells = {key: c for c, key in enumerate(totals)}
    pairs = zip(group.tolist(), lead.tolist(), strict=True)
    cell = np.array([cells.get(pair, cells.get((pair[0], -1), -1)) for pair in pairs], np.int64)
    known, at = cell >= 0, np.flatnonzero(np.isnan(own) & (cell >= 0))
    size = np.ones(len(own))
    if cluster.bytes_dimension >= 0:
        size = cluster.partitions.load.voter[:, cluster.bytes_dimension]
    empty = np.bincount(cell[at], size[at], len(cells)) <= 0.0
    size = np.where(empty[cell[at]], 1.0, size[at])
    total = np.bincount(cell[at], size, len(cells))
    taken = np.bincount(cell[known], np.nan_to_num(own[known]), len(cells))
    left = np.maximum(np.array([*totals.values()]) - taken, 0.0)
    own[at] = left[cell[at]] * size / total[cell[at]]
    held = np.bincount(cell[known], minlength=len(cells)) > 0
    stray = [key for key, c in cells.items() if not held[c] and key[1] >= 0]
    return len(np.unique(group[at])), stray


def _with_dimension(
    cluster: Cluster,
    name: str,
    own: NDArray[np.float64],
    leading: NDArray[np.float64],
    leaders_only: bool,
    notes: list[str],
    where: str,
) -> Cluster:
    """Return the cluster with loads of a dimension, which may be new."""
    load, nodes, topology = cluster.partitions.load, cluster.nodes, cluster.topology
    kept = name in cluster.dimensions
    d = cluster.dimensions.index(name) if kept else len(cluster.dimensions)

    def wider(array: NDArray[Any], column: Any) -> NDArray[Any]:
        """Return an array with a column more, or a copy where the dimension is kept."""
        if kept:
            return array.copy()
        return np.concatenate([array, np.full((*array.shape[:-1], 1), column, array.dtype)], -1)

    value = own if kept else _filled(own, cluster.partitions.group)
    at_leader = np.where(np.isnan(leading), value, leading)
    roles = [wider(one, 0.0) for one in (load.leader, load.voter, load.non_voter)]
    roles[0][:, d] = np.where(np.isnan(at_leader), roles[0][:, d], at_leader)
    for one in () if leaders_only else roles[1:]:
        one[:, d] = np.where(np.isnan(value), one[:, d], value)
    if all(np.array_equal(roles[0], one) for one in roles[1:]):
        roles = roles[:1] * 3
    loads = replace(cluster.partitions, load=Loads(*map(read_only, roles)))
    placement = replace(cluster.placement)  # what was counted of it was counted of other loads
    capped = kept and name not in system_of(cluster).uncapped(cluster)
    if capped and not np.isinf(nodes.capacity[:, d]).all():
        return replace(cluster, partitions=loads, placement=placement)
    replicas = np.maximum(cluster.partitions.replicas, 1)
    room = max(float(replicas @ np.maximum(roles[0][:, d], roles[1][:, d])), 1.0)
    capacity, watermark = wider(nodes.capacity, room), wider(nodes.watermark, room)
    capacity[:, d], watermark[:, d] = room, room
    limits = {t: read_only(wider(one, np.inf)) for t, one in topology.tier_capacity.items()}
    notes.append(
        f"{where}: no capacities: percentages are of the load of all nodes together, and no node "
        "counts as too full"
    )
    return replace(
        cluster,
        dimensions=cluster.dimensions if kept else (*cluster.dimensions, name),
        transient=read_only(wider(cluster.transient, False)),
        nodes=replace(nodes, capacity=read_only(capacity), watermark=read_only(watermark)),
        topology=replace(topology, tier_capacity=limits),
        partitions=loads,
        placement=placement,
    )


def _filled(own: NDArray[np.float64], group: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return values with the mean of its group, else of all, where there is none."""
    known = ~np.isnan(own)
    sums = np.bincount(group[known], own[known], group.max(initial=0) + 1)
    counts = np.bincount(group[known], minlength=len(sums))
    mean = np.where(counts > 0, sums / np.maximum(counts, 1), own[known].mean())
    return np.where(known, own, mean[group])
