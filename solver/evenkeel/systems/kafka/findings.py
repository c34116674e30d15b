"""The contents of all files of a Kafka cluster, gathered before the cluster is built."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isclose
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document
from evenkeel.systems.node_states import NodeState
from evenkeel.systems.notes import Notes

if TYPE_CHECKING:
    from evenkeel.systems.kafka.log_dirs import Listed

Value = TypeVar("Value")
# ``disk`` in bytes, ``cpu`` in percent, ``network_in`` and ``network_out`` in bytes per second
Resource = str

MOST = 2**31 - 1  # the largest id of a broker or partition, and most other numbers of Kafka
ROUNDING = 1e-6  # relative difference of equal capacities in unlike units


def whole(text: str) -> int | None:
    """Return a number from 0 to ``MOST``, or None."""
    plain = text.isascii() and text.isdecimal() and len(text) <= 10
    return int(text) if plain and int(text) <= MOST else None


# words in the error of a failed log directory, in lower case
FAILURES = ("storage", "logdir", "log_dir", "disk", "ioexception")


def any_failed(errors: Mapping[str, str]) -> bool:
    """Return whether any error is that of a failed log directory."""
    return any(word in one.lower() for one in errors.values() for word in FAILURES)


class TopicPartition(NamedTuple):
    """A partition by the name of its topic and its number in it."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


@dataclass(frozen=True)
class Replicas:
    """One partition in one file; None for values that the file lacks."""

    brokers: tuple[int, ...]  # in Kafka's order: the first is the preferred leader
    path: str
    document: int
    log_dirs: tuple[str, ...] | None = None  # folder of each replica, or ``any``
    leader: int | None = None  # the leader; -1 for none
    in_sync: tuple[int, ...] | None = None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()  # brokers of a running reassignment
    observing: tuple[int, ...] = ()  # Confluent's observers, which copy and never join the ISR


Line = tuple[int, TopicPartition, Replicas]  # a line of a text on a partition, by its number


class FoundDir(NamedTuple):
    """What is known of a log directory; its room is what Kafka may hold there, in bytes."""

    held: float = 0.0
    room: float | None = None
    failed: bool = False
    cordoned: bool = False


@dataclass
class Findings:
    """Everything read so far with its place in the files, and all problems."""

    faults: FaultList = field(default_factory=FaultList)
    documents: int = 0  # number of documents with placements so far
    partitions: dict[TopicPartition, Replicas] = field(default_factory=dict)
    min_in_sync: dict[str, int] = field(default_factory=dict)  # ``min.insync.replicas`` by topic
    factor: dict[str, int] = field(default_factory=dict)  # replication factor by topic
    deleted: set[str] = field(default_factory=set)  # topics that are marked for deletion
    # files with a proposed assignment beside the current one
    proposals: list[str] = field(default_factory=list)
    proposed: set[int] = field(default_factory=set)  # brokers that ``--generate`` proposes
    # joining and leaving brokers, by the name of a partition under reassignment
    reassigned: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    # contents of log directories, by document
    listed_replicas: "list[Listed]" = field(default_factory=list)
    # brokers whose log directories were read
    reporting: dict[int, str] = field(default_factory=dict)
    # unreadable log directories and their errors, by broker
    unreadable: dict[int, dict[str, str]] = field(default_factory=dict)
    # log directories by broker, and by their path
    log_dirs: dict[int, dict[str, FoundDir]] = field(default_factory=dict)
    # log directory to which a replica is being moved, by partition and broker
    moving: dict[tuple[str, int], str] = field(default_factory=dict)
    # capacities of log directories in bytes, by broker; -1 for the others
    dir_capacity: dict[int, dict[str, float]] = field(default_factory=dict)
    demoted: set[int] = field(default_factory=set)  # brokers that Cruise Control has demoted
    # brokers of which Cruise Control says only that some disk failed
    bad_disks: set[int] = field(default_factory=set)
    # dimensions for which Cruise Control has no capacity
    unlimited: set[str] = field(default_factory=set)
    # bytes in log directories, by broker, of topics that no file describes
    elsewhere: dict[int, float] = field(default_factory=dict)
    # the same by broker and log directory
    elsewhere_by_dir: dict[tuple[int, str], float] = field(default_factory=dict)
    topics_elsewhere: set[str] = field(default_factory=set)  # those topics
    # topics in tables of loads that no file describes
    idle_loads: set[str] = field(default_factory=set)
    notes: Notes = field(default_factory=Notes)

    # partitions with brokers in sync that hold no replica of them
    unheld: set[str] = field(default_factory=set)
    # partitions on which a later line of the same text counts
    replaced: set[str] = field(default_factory=set)
    earlier: set[int] = field(default_factory=set)  # brokers of the lines before it
    observing: set[int] = field(default_factory=set)  # brokers with a live observer
    # rack of each broker, None where it is unknown
    racks: dict[int, tuple[str | None, str]] = field(default_factory=dict)
    rack_files: list[str] = field(default_factory=list)  # the files about racks
    # nodes that are controllers and no brokers, by their properties
    controllers: set[int] = field(default_factory=set)
    # capacities of each broker; -1 for the others
    capacity: dict[int, dict[Resource, float]] = field(default_factory=dict)
    # where each was read first
    capacity_at: dict[tuple[int, Resource], str] = field(default_factory=dict)
    # state of each broker that a table lists; None where it states none
    states: dict[int, tuple[NodeState | None, str]] = field(default_factory=dict)
    # whether each broker answered and is not fenced, by the files that list that
    answers: dict[int, tuple[bool | None, str]] = field(default_factory=dict)
    # tables of loads, which are read when all partitions are known
    load_tables: list[Document] = field(default_factory=list)

    def add_answer(self, at: str, broker: int, *, up: bool) -> None:
        """Add whether a broker answered; report a contradiction between files."""
        if unlike := keep_first(self.answers, at, broker, up):
            words = ("did not answer, or is fenced", "answered")
            self.faults.add(at, broker, f"{words[up]}; at {unlike[1]} it {words[not up]}")

    def add_state(self, at: str, broker: int, state: NodeState | None) -> None:
        """Add the state of a broker; an unlike one is a fault, an unknown one contradicts none."""
        if unlike := keep_first(self.states, at, broker, state):
            self.faults.add(at, broker, f"is in another state at {unlike[1]}")

    def add_capacity(self, at: str, broker: int, amounts: dict[Resource, float]) -> None:
        """Add the capacities of a broker; unlike ones, but for rounding, are a fault."""
        known = self.capacity.setdefault(broker, {})
        for name, amount in amounts.items():
            before = known.get(name, amount)
            first = self.capacity_at.setdefault((broker, name), at)
            if not isclose(before, amount, rel_tol=ROUNDING):
                message = f"is the capacity of {name} of broker {broker}, {before:g} at {first}"
                self.faults.add(at, amount, message)
            known[name] = min(before, amount)

    def add_lines(self, lines: Iterable[Line]) -> None:
        """Add the partitions of a text; of several lines on one the last counts."""
        # a session describes a topic before a change and after it
        last: dict[TopicPartition, Replicas] = {}
        for _, partition, given in sorted(lines, key=lambda line: line[0]):
            before = last.get(partition)
            if before is not None and replace(before, path=given.path) != given:
                self.replaced.add(str(partition))
                self.earlier.update(before.brokers)
            last[partition] = given
        for partition, given in last.items():
            self.add_partition(partition, given)

    def add_partition(self, partition: TopicPartition, given: Replicas) -> None:
        """Add a partition of a file; report a contradiction between files."""
        own = set(given.brokers)
        if len(own) != len(given.brokers):
            self.faults.add(
                given.path, list(given.brokers), f"names a broker twice for {partition}"
            )
        for name in ("in_sync", "adding", "removing", "observing"):
            strangers = sorted(set(getattr(given, name) or ()) - own)
            if strangers and name == "in_sync" and own <= {*(given.in_sync or ())}:
                self.unheld.add(f"{partition} ({', '.join(map(str, strangers))})")
                given = replace(given, in_sync=tuple(n for n in given.in_sync or () if n in own))
            elif strangers:
                label = name.replace("_", "-")
                message = f"names {label} brokers without a replica, as a line that is cut off does"
                self.faults.add(given.path, strangers, message)
        if given.leader is not None and given.leader >= 0 and given.leader not in own:
            self.faults.add(given.path, given.leader, "leads but holds no replica")
        before = self.partitions.get(partition)
        if before is None:
            self.partitions[partition] = given
        elif before.brokers != given.brokers and (one := _reassigned(before, given)):
            self.partitions[partition] = one
        elif before.brokers != given.brokers:
            there = f"{before.path}, which has {list(before.brokers)}"
            message = f"contradicts, on {partition}, {there}: keep the one that holds now"
            self.faults.add(given.path, list(given.brokers), message)
        elif before.document == given.document:
            message = f"is already given at {before.path}: keep the one that holds now"
            self.faults.add(given.path, str(partition), message)
        else:
            self.partitions[partition] = replace(
                before,
                log_dirs=before.log_dirs or given.log_dirs,
                leader=given.leader if before.leader is None else before.leader,
                in_sync=given.in_sync if before.in_sync is None else before.in_sync,
                adding=before.adding or given.adding,
                removing=before.removing or given.removing,
                observing=before.observing or given.observing,
            )


def keep_first(
    known: dict[int, tuple[Value | None, str]], at: str, broker: int, value: Value | None
) -> tuple[Value, str] | None:
    """Keep the first value of a broker that is not None, and return it if this one is unlike."""
    before, first = known.get(broker, (None, at))
    known[broker] = (value, at) if before is None else (before, first)
    return None if before is None or value is None or before == value else (before, first)


def _reassigned(one: Replicas, other: Replicas) -> Replicas | None:
    """Return the one under reassignment if the other is its source or target; else None."""
    for now, order in ((one, other), (other, one)):
        if order.in_sync is None and now.adding + now.removing:
            ends = [{*now.brokers} - {*left} for left in (now.removing, now.adding)]
            if {*order.brokers} in ends:
                return now
    return None
