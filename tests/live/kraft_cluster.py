"""A Kafka cluster of today on loopback: three controllers, and brokers in racks with two disks.

Kafka's archive is in no registry; its jars are. What the archive adds to them, scripts that name
a class each, is written here, so that a folder's commands find the tools by the names they know.
"""

import os
import re
import shlex
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.live import parts
from tests.live.daemons import ASIDE, Daemons, call, free_ports, until

VERSION = "4.2.0"
JARS = (
    f"org.apache.kafka:kafka_2.13:{VERSION}",
    f"org.apache.kafka:kafka-tools:{VERSION}",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3",
)
NOT_NEEDED = ("org.apache.kafka:connect-runtime",)

TOOLS = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "configs": "kafka.admin.ConfigCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
}
"""Classes of Kafka's tools, by the names of their scripts."""

JAVA = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xss512k")
CONTROLLERS = (101, 102, 103)
DISKS = ("d1", "d2")
CLUSTER = "ZXZlbmtlZWwtbGl2ZS0xMA"

SETTINGS: Mapping[str, object] = {
    "num.network.threads": 2,
    "num.io.threads": 2,
    "num.replica.fetchers": 1,
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 2,
    "offsets.topic.replication.factor": 3,
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "log.cleaner.enable": "false",
    "log.index.size.max.bytes": 65536,
    "broker.session.timeout.ms": 6000,
    "broker.heartbeat.interval.ms": 1000,
    "replica.lag.time.max.ms": 10000,
    "replica.fetch.wait.max.ms": 200,
    "replica.fetch.response.max.bytes": 262144,
    "replica.fetch.max.bytes": 262144,
    "replica.fetch.backoff.ms": 100,
}


class Kraft:
    """Brokers by id with their racks, beside three controllers."""

    def __init__(self, racks: Mapping[int, str]) -> None:
        folder = parts.maven(f"kafka-{VERSION}", JARS, NOT_NEEDED)
        self.classes = f"{folder}/*"
        self.folder = Path(tempfile.mkdtemp(prefix="evenkeel-kraft-"))
        self.daemons = Daemons(self.folder)
        self.racks = dict(racks)
        self.written: dict[str, bytes] = {}
        """What every partition held when it was filled, for who compares."""

        ports = free_ports(len(CONTROLLERS) + len(racks))
        self.ports = dict(zip([*CONTROLLERS, *racks], ports, strict=True))
        (self.folder / "log4j2.properties").write_text(
            "rootLogger.level=warn\nrootLogger.appenderRef.e.ref=e\n"
            "appender.e.type=Console\nappender.e.name=e\nappender.e.target=SYSTEM_ERR\n"
            "appender.e.layout.type=PatternLayout\nappender.e.layout.pattern=%d %p %c{1}: %m%n\n"
        )
        self.bin = self.folder / "bin"
        self._write_tools()
        try:
            self.start([*CONTROLLERS, *racks])
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        self.daemons.stop()

    # What its own tools say and do.

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{self.ports[one]}" for one in self.racks)

    def tool(self, name: str, *words: object, timeout: float = 120) -> str:
        """Run one of Kafka's tools."""
        where = ["--bootstrap-server", self.bootstrap]
        # one of them has its address at the end
        words = (*words, *where) if name == "cluster" else (*where, *words)
        return call([self.bin / f"kafka-{name}.sh", *map(str, words)], timeout=timeout)

    def describe(self, *words: object) -> str:
        return self.tool("topics", "--describe", *words)

    def dumps(self, folder: Path) -> list[Path]:
        """Write what an operator would print: topics, log dirs, brokers; the files."""
        folder.mkdir(parents=True)
        told = {
            "described.txt": ("topics", "--describe"),
            "logdirs.json": ("log-dirs", "--describe"),
            "brokers.txt": ("broker-api-versions",),
        }
        for name, words in told.items():
            (folder / name).write_text(self.tool(*words))
        return [folder / name for name in told]

    def in_sync(self) -> bool:
        """Whether every replica has caught up."""
        line = re.compile(r"Replicas: (\S+)\tIsr: (\S*)")
        rows = line.findall(self.describe())
        return all(sorted(a.split(",")) == sorted(b.split(",")) for a, b in rows)

    def alive(self) -> set[int]:
        """The brokers that are registered and not fenced."""
        said = self.tool("cluster", "list-endpoints")
        return {int(one) for one in re.findall(r"^(\d+)\s.*\sunfenced\s", said, re.MULTILINE)}

    def throttles(self) -> str:
        """What is set that throttles copies, of brokers and topics; "" for nothing."""
        found = []
        for kind in ("brokers", "topics"):
            said = self.tool("configs", "--describe", "--entity-type", kind)
            found += [one for one in said.splitlines() if "throttled" in one]
        return "\n".join(found)

    def env(self, **settings: str) -> dict[str, str]:
        """What a folder's run needs to know."""
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        own = {"BOOTSTRAP": self.bootstrap, "PAUSE": "2", "TRIES": "40", "REPORT": "60"}
        return dict(os.environ) | {"PATH": path} | own | settings

    # Its life.

    def make_topic(self, name: str, replicas: Sequence[Sequence[int]]) -> None:
        """Make a topic whose partitions are where they are told."""
        told = ",".join(":".join(map(str, row)) for row in replicas)
        self.tool("topics", "--create", "--topic", name, "--replica-assignment", told)

    def fill(self, topic: str, records: int) -> None:
        """Write records of a kilobyte, acknowledged by all replicas in sync."""
        main = "org.apache.kafka.tools.ProducerPerformance"
        words = [
            "--topic", topic, "--num-records", records, "--record-size", 1000,
            "--throughput", -1, "--bootstrap-server", self.bootstrap,
            "--command-property", "acks=all", "--command-property", "batch.size=4096",
        ]  # fmt: skip
        call([*ASIDE, *self._java("-Xmx96m"), main, *map(str, words)], timeout=120)

    def stored(self, partition: str, broker: int) -> bytes:
        """Return the log of a replica as it lies on disk."""
        logs = sorted((self.folder / f"n{broker}").glob(f"d*/{partition}/*.log"))
        return b"".join(one.read_bytes() for one in logs)

    def fail_disk(self, broker: int, disk: str) -> None:
        """Put a file in the place of a log directory, so that whatever is written there fails."""
        place = self.folder / f"n{broker}" / disk
        place.rename(place.with_suffix(".gone"))
        place.touch()

    def start(self, nodes: Iterable[int], racks: Mapping[int, str] | None = None) -> None:
        """Start nodes, new ones with their racks, and wait until the brokers among them serve."""
        self.racks |= racks or {}
        nodes = [*nodes]
        fresh = [one for one in nodes if one not in self.ports]
        self.ports |= dict(zip(fresh, free_ports(len(fresh)), strict=True))
        new = [one for one in nodes if not (self.folder / f"n{one}").exists()]
        with ThreadPoolExecutor(2) as pool:
            [*pool.map(self._format, new)]
        for node in nodes:
            settings = self.folder / f"n{node}.properties"
            memory = "-Xmx128m" if node in CONTROLLERS else "-Xmx192m"
            self.daemons.start(f"n{node}", [*self._java(memory), "kafka.Kafka", settings])
        brokers = {*nodes} - {*CONTROLLERS}
        until(f"brokers {brokers} up", lambda: brokers <= self.alive(), timeout=180, pause=2.0)

    def kill(self, broker: int) -> None:
        """End a broker as a failing machine would, and wait until the controllers know."""
        self.daemons.kill(f"n{broker}")
        until(f"broker {broker} gone", lambda: broker not in self.alive(), timeout=60, pause=1.0)

    def _java(self, memory: str) -> list[str]:
        quiet = f"-Dlog4j2.configurationFile={self.folder}/log4j2.properties"
        return ["java", *JAVA, memory, quiet, "-cp", self.classes]

    def _write_tools(self) -> None:
        self.bin.mkdir()
        for name, main in TOOLS.items():
            # apart from the brokers, as an operator's are: each begins a Java of its own
            apart = ["taskset", "-c", str(min(os.sched_getaffinity(0))), "nice", "-n", "10"]
            words = shlex.join([*apart, *self._java("-Xmx96m"), main])
            file = self.bin / f"kafka-{name}.sh"
            file.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            file.chmod(0o755)

    def _format(self, node: int) -> None:
        home = self.folder / f"n{node}"
        settings = self.folder / f"n{node}.properties"
        port = self.ports[node]
        voters = ",".join(f"{one}@127.0.0.1:{self.ports[one]}" for one in CONTROLLERS)
        own: dict[str, object] = {
            "node.id": node,
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }
        if node in CONTROLLERS:
            own |= {"process.roles": "controller", "listeners": f"CONTROLLER://127.0.0.1:{port}"}
            own |= {"log.dirs": home / "meta"}
        else:
            own |= {"process.roles": "broker", "listeners": f"PLAINTEXT://127.0.0.1:{port}"}
            own |= {"log.dirs": ",".join(str(home / one) for one in DISKS)}
            # a broker whose metadata are lost with a disk goes down as a whole
            own |= {"broker.rack": self.racks[node], "metadata.log.dir": home / "meta"}
        lines = [f"{name}={value}\n" for name, value in (SETTINGS | own).items()]
        settings.write_text("".join(lines))
        java = [*ASIDE, *self._java("-Xmx96m"), "kafka.tools.StorageTool"]
        call([*java, "format", "-t", CLUSTER, "-c", settings], timeout=120)
