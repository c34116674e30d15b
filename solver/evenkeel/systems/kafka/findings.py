"""What the files of a Kafka cluster say together, gathered before it becomes a cluster."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from evenkeel.model.errors import FaultList
from evenkeel.systems.documents import Document, quoted
from evenkeel.systems.node_states import NodeState

if TYPE_CHECKING:
    from evenkeel.systems.kafka.log_dirs import Listed

Resource = str
"""``disk`` in bytes, ``cpu`` in percent, ``network_in`` and ``network_out`` in bytes per second."""

MOST = 2**31 - 1
"""The greatest number of a broker or partition, and of most else that Kafka counts."""


def whole(text: str) -> int | None:
    """Return a number that Kafka can count to, or None."""
    plain = text.isascii() and text.isdecimal() and len(text) <= 10
    return int(text) if plain and int(text) <= MOST else None


class TopicPartition(NamedTuple):
    """A partition by the name of its topic and its number in it."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


@dataclass(frozen=True)
class Replicas:
    """What a file says of one partition; None where it says nothing."""

    brokers: tuple[int, ...]
    """In Kafka's order: the first is the preferred leader."""

    path: str
    document: int
    log_dirs: tuple[str, ...] | None = None
    """Folder of each replica, or ``any``."""

    leader: int | None = None
    """Broker that leads; -1 for none."""

    in_sync: tuple[int, ...] | None = None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    """Brokers of a reassignment under way."""

    observing: tuple[int, ...] = ()
    """Brokers that copy and are never in sync, as Confluent's observers do."""


@dataclass
class Findings:
    """Everything read so far with the place where it stands, and everything found wrong with it."""

    faults: FaultList = field(default_factory=FaultList)
    documents: int = 0
    """How many said where replicas are, so far."""

    partitions: dict[TopicPartition, Replicas] = field(default_factory=dict)
    min_in_sync: dict[str, int] = field(default_factory=dict)
    """``min.insync.replicas`` by topic."""

    factor: dict[str, int] = field(default_factory=dict)
    """Replication factor by topic."""

    reassigned: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    """Brokers that join and that leave, by the name of a partition that is being reassigned."""

    listed_replicas: "list[Listed]" = field(default_factory=list)
    """What log directories hold, a document each."""

    reporting: dict[int, str] = field(default_factory=dict)
    """Brokers whose log directories were read."""

    unreadable: dict[int, dict[str, str]] = field(default_factory=dict)
    """Log directories that cannot be read, and why, by their broker."""

    elsewhere: dict[int, float] = field(default_factory=dict)
    """Bytes in log directories, by broker, of topics that no file describes."""

    topics_elsewhere: set[str] = field(default_factory=set)
    """Those topics."""

    idle_loads: set[str] = field(default_factory=set)
    """Topics in tables of loads that no file describes."""

    observing: set[int] = field(default_factory=set)
    """Brokers with an observer that lives."""

    racks: dict[int, tuple[str | None, str]] = field(default_factory=dict)
    rack_files: list[str] = field(default_factory=list)
    """The files about racks."""

    controllers: set[int] = field(default_factory=set)
    """Nodes whose properties say that they are controllers and no brokers."""

    capacity: dict[int, tuple[dict[Resource, float], str]] = field(default_factory=dict)
    """Capacities of each broker; -1 for the others."""

    states: dict[int, tuple[NodeState | None, str]] = field(default_factory=dict)
    """State of each broker that a table lists; None where it states none."""

    answers: dict[int, tuple[bool, str]] = field(default_factory=dict)
    """Whether each broker answered and takes part, where a file tells that."""

    load_tables: list[Document] = field(default_factory=list)
    """Tables of loads; they are read once it is known which partitions there are."""

    def add_answer(self, at: str, broker: int, *, up: bool) -> None:
        """Take in whether a broker is up; files may agree on it, not differ."""
        before = self.answers.setdefault(broker, (up, at))
        if before[0] != up:
            words = ("did not answer, or is fenced", "answered")
            self.faults.add(at, broker, f"{words[up]}; at {before[1]} it {words[before[0]]}")

    def add_rack(self, at: str, broker: int, rack: str | None) -> None:
        """Take in the rack of a broker; files may agree on it, not differ."""
        before = self.racks.setdefault(broker, (rack or None, at))
        if before[0] != (rack or None):
            self.faults.add(at, quoted(rack), f"{before[1]} has broker {broker} on {before[0]}")

    def add_capacity(self, at: str, broker: int, amounts: dict[Resource, float]) -> None:
        """Take in the capacities of a broker, which stand in one place only."""
        if broker in self.capacity:
            first = self.capacity[broker][1]
            self.faults.add(at, broker, f"is already given at {first}")
        self.capacity[broker] = (amounts, at)

    def add_partition(self, partition: TopicPartition, said: Replicas) -> None:
        """Take in what a file says of a partition; two files may agree on it, not differ."""
        own = set(said.brokers)
        if len(own) != len(said.brokers):
            self.faults.add(said.path, list(said.brokers), "names a broker twice")
        for name in ("in_sync", "adding", "removing", "observing"):
            strangers = sorted(set(getattr(said, name) or ()) - own)
            if strangers:
                label = name.replace("_", "-")
                self.faults.add(said.path, strangers, f"{label} brokers that hold no replica")
        if said.leader is not None and said.leader >= 0 and said.leader not in own:
            self.faults.add(said.path, said.leader, "leads but holds no replica")
        before = self.partitions.get(partition)
        if before is None:
            self.partitions[partition] = said
        elif before.brokers != said.brokers and (one := _reassigned(before, said)):
            self.partitions[partition] = one
        elif before.brokers != said.brokers:
            value = list(said.brokers)
            there = f"{before.path} has {list(before.brokers)}"
            self.faults.add(said.path, value, f"contradicts, on {partition}, {there}")
        elif before.document == said.document:
            self.faults.add(said.path, str(partition), f"is already given at {before.path}")
        else:
            self.partitions[partition] = replace(
                before,
                log_dirs=before.log_dirs or said.log_dirs,
                leader=said.leader if before.leader is None else before.leader,
                in_sync=said.in_sync if before.in_sync is None else before.in_sync,
                adding=before.adding or said.adding,
                removing=before.removing or said.removing,
                observing=before.observing or said.observing,
            )


def _reassigned(one: Replicas, other: Replicas) -> Replicas | None:
    """Return which of two is being reassigned, if the other says from or to what; or None."""
    for now, order in ((one, other), (other, one)):
        if order.in_sync is None and now.adding + now.removing:
            ends = [{*now.brokers} - {*left} for left in (now.removing, now.adding)]
            if {*order.brokers} in ends:
                return now
    return None
