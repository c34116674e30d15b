"""OpenSearch on loopback: its own nodes in zones, in one process, behind their own REST."""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
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
        self.program = JavaProgram(
            "OpenSearchLive", jars, self.folder, OPTIONS, self.folder / "nodes", *seeds
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

    def make_index(self, name: str, shards: int, replicas: int, docs: int, only: str) -> None:
        """Make an index whose shards are on some nodes at first, and fill it."""
        self.ask(name, {"settings": {
            "number_of_shards": shards, "number_of_replicas": 0,
            "index.routing.allocation.include._name": only,
            "index.unassigned.node_left.delayed_timeout": "0s",
        }})  # fmt: skip
        text = "lorem ipsum dolor sit amet " * 20
        lines = [f'{{"index":{{}}}}\n{{"n":{i},"t":"{i} {text}"}}\n' for i in range(docs)]
        self.ask(f"{name}/_bulk?refresh=true", "".join(lines).encode(), "POST")
        self.ask(f"{name}/_forcemerge?max_num_segments=1&flush=true", method="POST")
        # replicas are copied from primaries: copies of their own making would differ in size
        self.ask(f"{name}/_settings", {"index.number_of_replicas": replicas})
        until("all shards started", self.settled, timeout=120)
        self.ask(f"{name}/_settings", {"index.routing.allocation.include._name": None})

    def count(self, index: str) -> int:
        """Return how many documents an index holds."""
        return json.loads(self.ask(f"{index}/_count"))["count"]

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
