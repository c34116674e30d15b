"""OpenSearch on loopback: its own nodes in zones, in one process, behind their own REST."""

import json
import os
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tests.live import parts
from tests.live.daemons import JavaProgram, call, free_ports, until

VERSION = "2.19.4"
JARS = (
    f"org.opensearch:opensearch:{VERSION}",
    f"org.opensearch.plugin:transport-netty4-client:{VERSION}",
    "org.apache.logging.log4j:log4j-core:2.21.0",
)
OPTIONS = ("-Xmx1500m", "-Dopensearch.set.netty.runtime.available.processors=false")
DISK = "128m"  # size of the disk of each node, a file system in memory that no other process sees
MOUNTED = """cd "$1"; shift
for name in $1; do mkdir -p $name; mount -t tmpfs -o size=$2 none $name || exit; done
cd ..; shift 2; exec "$@"
"""
DUMPS = {
    "shards.json": "_cat/shards?format=json&bytes=b"
    "&h=index,shard,prirep,state,docs,store,ip,id,node",
    "allocation.json": "_cat/allocation?format=json&bytes=b",
    "nodes.json": "_nodes",
    "cluster.json": "_cluster/settings?include_defaults=true&flat_settings=true",
    "indices.json": "_all/_settings?flat_settings=true&expand_wildcards=all",
}
"""What an operator saves, as the page on the system says."""


class OpenSearch:
    """Nodes by name with their zones."""

    def __init__(self, zones: Mapping[str, str]) -> None:
        jars = parts.maven(f"opensearch-{VERSION}", JARS)
        parts.debian(("javac", "curl"), ("openjdk-17-jdk-headless", "curl"))
        self.folder = Path(tempfile.mkdtemp(prefix="evenkeel-opensearch-"))
        self.managers = [*zones][:3]
        ports = iter(free_ports(2 * len(zones)))
        self.ports = {name: (next(ports), next(ports)) for name in zones}
        self.zones = dict(zones)
        self.dumped = 0
        seeds = [f"127.0.0.1:{self.ports[name][1]}" for name in self.managers]
        own = self.folder / "nodes"
        own.mkdir()
        within = [*parts.mounts(), "sh", "-c", MOUNTED, "disks", str(own), " ".join(zones), DISK]
        self.program = JavaProgram(
            "OpenSearchLive", jars, self.folder, OPTIONS, own, *seeds, within=within
        )
        for name in zones:
            self.start(name)
        until("all nodes joined", lambda: self.nodes() == {*zones}, timeout=120)

    def stop(self) -> None:
        self.program.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, name: str) -> None:
        http, transport = self.ports[name]
        self.program.do("start", name, http, transport, self.zones[name], ",".join(self.managers))

    def bring_back(self, name: str) -> None:
        """Start a node that was lost, and wait until it has joined."""
        self.start(name)
        until("it has joined", lambda: name in self.nodes(), timeout=60)

    def lose(self, name: str) -> None:
        """End a node; the others find out."""
        self.program.do("stop", name)
        until("it is gone", lambda: name not in self.nodes(), timeout=60)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.ports[self.managers[0]][0]}"

    def ask(self, path: str, body: object = None, method: str = "") -> str:
        """Send a request; its answer."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body else b""
        kind = "x-ndjson" if isinstance(body, bytes) else "json"
        words = ["-X", method or ("PUT" if data else "GET"), "--data-binary", "@-"] if data else []
        words = words or ["-X", method or "GET"]
        command = ["curl", "-fsS", "-m", "60", "-H", f"Content-Type: application/{kind}", *words]
        return call([*command, f"{self.address}/{path}"], given=data.decode())

    def configure(self, **settings: object) -> None:
        """Set what the cluster keeps; dots are written as two underscores."""
        own = {name.replace("__", "."): value for name, value in settings.items()}
        self.ask("_cluster/settings", {"persistent": own})

    def nodes(self) -> set[str]:
        return {one["name"] for one in json.loads(self.ask("_cat/nodes?format=json&h=name"))}

    def settled(self) -> bool:
        """Whether no shard is under way."""
        health = json.loads(self.ask("_cluster/health"))
        names = ("relocating_shards", "initializing_shards", "delayed_unassigned_shards",
                 "number_of_pending_tasks")  # fmt: skip
        return not any(health[name] for name in names)

    def make_index(
        self, name: str, shards: int, replicas: int, texts: Sequence[str], only: str
    ) -> None:
        """Make an index whose shards are on some nodes at first, and fill it."""
        self.ask(name, {"settings": {
            "number_of_shards": shards, "number_of_replicas": 0,
            "index.routing.allocation.include._name": only,
            "index.unassigned.node_left.delayed_timeout": "0s",
        }})  # fmt: skip
        lines = [f'{{"index":{{}}}}\n{{"n":{i},"t":"{i} {t}"}}\n' for i, t in enumerate(texts)]
        self.ask(f"{name}/_bulk?refresh=true", "".join(lines).encode(), "POST")
        self.ask(f"{name}/_forcemerge?max_num_segments=1&flush=true", method="POST")
        # replicas are copied from primaries: copies of their own making would differ in size
        self.ask(f"{name}/_settings", {"index.number_of_replicas": replicas})
        until("all shards started", self.settled, timeout=120)
        self.ask(f"{name}/_settings", {"index.routing.allocation.include._name": None})

    def count(self, index: str) -> int:
        """Return how many documents an index holds."""
        return json.loads(self.ask(f"{index}/_count"))["count"]

    def free(self) -> dict[str, int]:
        """Return the free bytes of each node's disk."""
        rows = json.loads(self.ask("_cat/allocation?format=json&bytes=b&h=node,disk.avail"))
        return {row["node"]: int(row["disk.avail"]) for row in rows if row["disk.avail"]}

    def refusals(self, deciders: Collection[str]) -> dict[tuple[str, str], dict[str, set[str]]]:
        """Return which deciders refuse each node to each copy, by its shard and node or ""."""
        found = {}
        for row in json.loads(self.ask("_cat/shards?format=json&h=index,shard,prirep,node")):
            asked = {
                "index": row["index"], "shard": int(row["shard"]), "primary": row["prirep"] == "p",
            } | ({"current_node": row["node"]} if row["node"] else {})  # fmt: skip
            said = json.loads(self.ask("_cluster/allocation/explain", asked, "POST"))
            found[f"{row['index']}/{row['shard']}", row["node"] or ""] = {
                one["node_name"]: {
                    own["decider"] for own in one.get("deciders", ())
                    if own["decision"] == "NO" and own["decider"] in deciders
                }
                for one in said["node_allocation_decisions"]
            }  # fmt: skip
        return found

    def dumps(self) -> list[Path]:
        """Save what an operator would; the files."""
        self.dumped += 1
        folder = self.folder / f"dump-{self.dumped}"
        folder.mkdir()
        for name, path in DUMPS.items():
            (folder / name).write_text(self.ask(path))
        return [folder / name for name in DUMPS]

    def env(self) -> dict[str, str]:
        """What a folder's run needs to know."""
        return dict(os.environ) | {"ES": self.address, "PAUSE": "1", "TRIES": "60"}
