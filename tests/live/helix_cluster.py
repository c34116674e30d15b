"""Apache Helix on loopback: its controllers, participants and ZooKeeper, in one process."""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.live import parts
from tests.live.daemons import JAVA, JavaProgram, free_ports

VERSION = "1.4.3"
JARS = (f"org.apache.helix:helix-core:{VERSION}", "org.slf4j:slf4j-nop:1.7.32")
NOT_NEEDED = ("org.apache.logging.log4j:log4j-slf4j-impl",)
STATES = "MasterSlave,LeaderStandby,OnlineOffline"
REBALANCER = "org.apache.helix.controller.rebalancer"
OF_INSTANCES = ("", "/CURRENTSTATES", "/MESSAGES", "/ERRORS", "/STATUSUPDATES", "/HISTORY")


class Helix:
    """Clusters by name; records are written to ZooKeeper and read from it as they are."""

    def __init__(self) -> None:
        jars = parts.maven(f"helix-{VERSION}", JARS, NOT_NEEDED)
        parts.debian(("javac",), ("openjdk-17-jdk-headless",))
        self.folder = Path(tempfile.mkdtemp(prefix="evenkeel-helix-"))
        zookeeper, rest = free_ports(2)
        self.zookeeper, self.rest = f"localhost:{zookeeper}", f"http://localhost:{rest}"
        self.program = JavaProgram(
            "HelixLive", jars, self.folder, ["-Xmx768m"], zookeeper, rest,
            self.folder / "zookeeper",
        )  # fmt: skip
        self.do = self.program.do
        self.dumps = 0

    def stop(self) -> None:
        self.program.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def put(
        self,
        cluster: str,
        place: str,
        simple: Mapping[str, object] | None = None,
        maps: Mapping[str, Mapping[str, object]] | None = None,
        lists: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Write a record of a cluster."""
        texts = {key: str(value) for key, value in (simple or {}).items()}
        inside = {
            key: {one: str(value) for one, value in row.items()}
            for key, row in (maps or {}).items()
        }
        record = {
            "id": place.rpartition("/")[2], "simpleFields": texts, "mapFields": inside,
            "listFields": lists or {},
        }  # fmt: skip
        file = self.folder / "record.json"
        file.write_text(json.dumps(record))
        self.do("set", cluster, place, file)

    def make(self, cluster: str, settings: Mapping[str, object], **maps) -> None:
        """Make a cluster that spreads replicas over zones, and a controller for it."""
        self.do("cluster", cluster)
        own = {
            "TOPOLOGY_AWARE_ENABLED": "true", "TOPOLOGY": "/zone/host", "FAULT_ZONE_TYPE": "zone",
            "PERSIST_BEST_POSSIBLE_ASSIGNMENT": "true",
        }  # fmt: skip
        self.put(cluster, f"CONFIGS/CLUSTER/{cluster}", own | dict(settings), maps)

    def instance(self, cluster: str, name: str, zone: str, **more) -> None:
        """Register an instance that has not joined yet."""
        host, _, port = name.partition("_")
        own = {
            "HELIX_HOST": host, "HELIX_PORT": port, "HELIX_ENABLED": "true",
            "DOMAIN": f"zone={zone},host={more.pop('logical', name)}",
        }  # fmt: skip
        self.put(cluster, f"CONFIGS/PARTICIPANT/{name}", own | more.pop("simple", {}), **more)
        for one in OF_INSTANCES:
            self.put(cluster, f"INSTANCES/{name}{one}")

    def join(self, cluster: str, name: str) -> None:
        self.do("join", cluster, name, STATES)

    def leave(self, cluster: str, name: str) -> None:
        """End the session of a participant, as its death would."""
        self.do("leave", cluster, name)

    def resource(self, cluster: str, name: str, partitions: int, **simple: object) -> None:
        """Make a resource in FULL_AUTO, unless it says otherwise."""
        own = {
            "REBALANCE_MODE": "FULL_AUTO", "NUM_PARTITIONS": partitions, "REPLICAS": 3,
            "MIN_ACTIVE_REPLICAS": 2, "STATE_MODEL_DEF_REF": "MasterSlave",
            "STATE_MODEL_FACTORY_NAME": "DEFAULT",
            "REBALANCER_CLASS_NAME": f"{REBALANCER}.DelayedAutoRebalancer",
        }  # fmt: skip
        lists = simple.pop("lists", {f"{name}_{i}": [] for i in range(partitions)})
        self.put(cluster, f"IDEALSTATES/{name}", own | simple, {}, lists)

    def dump(self, cluster: str) -> tuple[Path, bool]:
        """Read all records of a cluster into a folder; whether no transition is under way."""
        self.dumps += 1
        folder = self.folder / f"dump-{self.dumps}"
        return folder, self.do("dump", cluster, folder) == "dumped 0"

    def settled(self, cluster: str, quiet: float = 2.5, timeout: float = 60.0) -> Path:
        """Wait until no view has changed for some seconds; a dump of then."""
        end = time.monotonic() + timeout
        seen, since = None, time.monotonic()
        while time.monotonic() < end:
            folder, still = self.dump(cluster)
            views = {
                file.name: file.read_text() for file in sorted((folder / "EXTERNALVIEW").iterdir())
            }
            if not still or views != seen:
                seen, since = views, time.monotonic()
            elif time.monotonic() - since > quiet:
                return folder
            time.sleep(0.5)
        raise AssertionError(f"{cluster} did not settle within {timeout:.0f} s")

    def env(self, cluster: str) -> dict[str, str]:
        """What a folder's run needs to know, with Helix's own tool on the path."""
        tools = self.folder / "bin"
        if not tools.exists():
            tools.mkdir()
            words = " ".join([*JAVA, "-Xmx96m", "-cp", f"'{self.program.classes}'"])
            tool = tools / "helix-admin.sh"
            tool.write_text(f'#!/bin/sh\nexec {words} org.apache.helix.tools.ClusterSetup "$@"\n')
            tool.chmod(0o755)
        return dict(os.environ) | {
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "CLUSTER": cluster,
            "REST": self.rest, "ZOOKEEPER": self.zookeeper, "PAUSE": "1", "TRIES": "40",
            "PYTHON": sys.executable,
        }  # fmt: skip
