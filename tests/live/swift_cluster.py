"""Swift on loopback: object servers in zones, each with an address, devices and a ring of its own.

The builder is that of ``swift-ring-builder``, objects go in and out by a proxy, and replicators
copy by rsync.
"""

import getpass
import http.client
import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Self

from tests.live import parts
from tests.live.daemons import Daemons, call, free_ports, until

POWER, REPLICAS = 8, 3
PROGRAMS = {
    "swift-object-server": "swift-object",
    "swift-object-replicator": "swift-object",
    "swift-container-server": "swift-container",
    "swift-account-server": "swift-account",
    "swift-proxy-server": "swift-proxy",
    "swift-ring-builder": "swift",
    "memcached": "memcached",
    "rsync": "rsync",
}
BACKEND = """
[DEFAULT]
bind_ip = {ip}
bind_port = {port}
swift_dir = {own}
devices = {own}/srv
mount_check = false
fallocate_reserve = 0
user = {user}
workers = 0
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
[{kind}-replicator]
rsync_module = rsync://127.0.0.1:{rsync}/{{replication_ip}}
recon_cache_path = {own}
concurrency = 4
"""
PROXY = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
swift_dir = {own}
user = {user}
workers = 0
[pipeline:main]
pipeline = catch_errors cache tempauth proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
recoverable_node_timeout = 3
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{cache}
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
"""
DISTRIBUTE = """#!/bin/sh
# puts a ring on all nodes
set -e
for own in "{folder}"/nodes/*/; do
    cp -- "$1" "$own/object.ring.gz.part"
    mv -- "$own/object.ring.gz.part" "$own/object.ring.gz"
done
"""
REPLICATED = """#!/bin/sh
# lets every node replicate until a pass copies to all devices in use; fails after the third
touch "{folder}/replicating"
for pass in 1 2 3; do
    for own in "{folder}"/nodes/127.*/; do
        rm -f "$own/object.recon"
        swift-object-replicator "$own/object-server.conf" --once >>"{folder}/replicators.out" 2>&1 &
    done
    wait
    {python} "{folder}/failures.py" && exit 0
done
exit 1
"""
FAILURES = """
import json, pathlib, sys
from swift.common.ring import Ring
folder = pathlib.Path({folder!r})
gone = (folder / "gone").read_text().split()
found = []
for one in sorted(folder.glob("nodes/127.*/")):
    stats = json.loads((one / "object.recon").read_text())["replication_stats"]
    if one.name not in gone:  # a node without one of its devices names all others
        for ip, devices in stats.get("failure_nodes", {{}}).items():
            found += [f"{{one.name}} to {{ip}}/{{name}}" for name in devices if name not in gone]
    ring = Ring(str(one), ring_name="object")
    for part in one.glob("srv/*/objects/[0-9]*"):
        if part.parts[-3] not in {{node["device"] for node in ring.get_part_nodes(int(part.name))}}:
            found.append(f"part {{part.name}} from {{part.parts[-3]}}")
sys.exit("could not replicate: " + ", ".join(found) if found else 0)
"""
"""A replicator writes what failed into its node's cache, which ``swift-recon`` reads; what it
could not give away stays on its disk, and does not count as failed."""


class Swift:
    """Servers by address, such as 127.0.2.1 in zone 2, with the names of their devices."""

    def __init__(self, servers: Mapping[str, Sequence[str]]) -> None:
        parts.debian([*PROGRAMS], [*dict.fromkeys(PROGRAMS.values())])
        self.folder = Path(tempfile.mkdtemp(prefix="evenkeel-swift-"))
        self.daemons = Daemons(self.folder)
        self.devices: dict[str, str] = {}
        self.port, self.proxy, self.cache, self.rsync = free_ports(4)
        self.builder = self.folder / "object.builder"
        self.ring = self.folder / "object.ring.gz"
        self.token = ""
        try:
            self._tools()
            self.build(self.builder, "create", POWER, REPLICAS, 1)
            self.add(servers)
            self.build(self.builder, "rebalance", "--seed", 1)
            self._front()
            self.start(servers)
            self._log_in()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        self.daemons.stop()

    # Its own tools.

    def build(self, builder: Path, *words: object) -> str:
        """Run ``swift-ring-builder``, which returns 1 for a warning."""
        ready = ["swift-ring-builder", builder, *words]
        return call(["sh", "-c", '"$@" || [ $? = 1 ]', "sh", *ready])

    def rebalanced(self) -> tuple[Path, int]:
        """Let a copy of the builder rebalance until it is done; its ring, and how many passes."""
        folder = self.folder / f"theirs-{len([*self.folder.glob('theirs-*')])}"
        folder.mkdir()
        builder = folder / "object.builder"
        shutil.copy(self.builder, builder)
        passes, told = -1, "Reassigned"
        while "Reassigned" in told and passes < 8:
            passes += 1
            self.build(builder, "pretend_min_part_hours_passed")
            told = self.build(builder, "rebalance", "--seed", 1)
        self.build(builder, "write_ring")
        return folder / "object.ring.gz", passes

    def adopt(self) -> None:
        """Make a builder of the ring in use, as one whose builder is lost would."""
        self.builder.unlink()
        self.build(self.ring, "write_builder", 1)

    def distribute(self) -> None:
        call([self.folder / "distribute", self.ring])

    def replicate(self) -> None:
        call([self.folder / "replicated", self.ring], timeout=400)

    def env(self) -> dict[str, str]:
        """What a folder's run needs to know."""
        own = {name.upper(): str(self.folder / name) for name in ("distribute", "replicated")}
        return dict(os.environ) | own | {"RING": str(self.ring), "PAUSE": "1"}

    # Its life.

    def add(self, servers: Mapping[str, Sequence[str]]) -> None:
        """Add servers with their devices to the builder."""
        words: list[object] = []
        for ip, devices in servers.items():
            for name in devices:
                self.devices[name] = ip
                self.device(name).mkdir(parents=True)
                words += [f"r1z{ip.split('.')[2]}-{ip}:{self.port}/{name}", 100]
            conf = self.folder / "nodes" / ip / "object-server.conf"
            conf.write_text(self._backend("object", ip, self.port))
        self.build(self.builder, "add", *words)

    def start(self, servers: Iterable[str]) -> None:
        for ip in servers:
            conf = self.folder / "nodes" / ip / "object-server.conf"
            self.daemons.start(ip, ["swift-object-server", conf])
        for ip in servers:
            until(f"{ip} answers", lambda ip=ip: _ask(ip, self.port, "GET", "/")[0], timeout=60)

    def lose(self, name: str) -> None:
        """Let a device fail: it is not there any more."""
        shutil.rmtree(self.device(name))
        (self.folder / "gone").write_text(f"{self.devices[name]} {name}")

    def replace(self, name: str) -> None:
        """Put an empty device in place of one that failed."""
        self.device(name).mkdir()
        (self.folder / "gone").write_text("")

    def device(self, name: str) -> Path:
        return self.folder / "nodes" / self.devices[name] / "srv" / name

    # Objects.

    def put(self, name: str, body: bytes) -> None:
        code, _ = self._request("PUT", f"/c/{name}", body)
        assert code == 201, (name, code)

    def get(self, name: str) -> bytes | None:
        code, body = self._request("GET", f"/c/{name}")
        return body if code == 200 else None

    def on_disk(self) -> dict[str, set[int]]:
        """Return the partitions with objects on each device that is there."""
        found = {}
        for name in self.devices:
            kept = self.device(name).glob("objects/*/*/*/*.data")
            found[name] = {int(one.parts[-4]) for one in kept}
        return found

    def _request(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        head = {"X-Auth-Token": self.token}
        return _ask("127.0.0.1", self.proxy, method, f"/v1/AUTH_test{path}", body, head)

    # Its beginning.

    def _tools(self) -> None:
        python = "/usr/bin/python3"
        texts = {"distribute": DISTRIBUTE, "replicated": REPLICATED, "failures.py": FAILURES}
        for name, text in texts.items():
            (self.folder / name).write_text(text.format(folder=str(self.folder), python=python))
            (self.folder / name).chmod(0o755)
        (self.folder / "gone").write_text("")

    def _backend(self, kind: str, ip: str, port: int) -> str:
        own = self.folder / "nodes" / ip
        return BACKEND.format(
            kind=kind, ip=ip, port=port, own=own, user=getpass.getuser(), rsync=self.rsync
        )

    def _front(self) -> None:
        """Start what is there once: accounts and containers on a device, the proxy, its cache."""
        own = self.folder / "nodes" / "proxy"
        ports = dict(zip(("account", "container"), free_ports(2), strict=True))
        for kind, port in ports.items():
            (own / "srv" / kind).mkdir(parents=True)
            builder = own / f"{kind}.builder"
            self.build(builder, "create", 4, 1, 1)
            self.build(builder, "add", f"r1z1-127.0.0.1:{port}/{kind}", 1)
            self.build(builder, "rebalance")
            text = self._backend(kind, "proxy", port).replace(
                "bind_ip = proxy", "bind_ip = 127.0.0.1"
            )
            (own / f"{kind}-server.conf").write_text(text)
        text = PROXY.format(port=self.proxy, own=own, user=getpass.getuser(), cache=self.cache)
        (own / "proxy-server.conf").write_text(text)
        (self.folder / "rsyncd.conf").write_text(
            f"use chroot = no\nuid = {getpass.getuser()}\ngid = {getpass.getuser()}\n"
            + f"log file = {self.folder}/rsync.log\n"
            + "".join(
                f"[{ip}]\npath = {self.folder}/nodes/{ip}/srv\nread only = false\n"
                for ip in [f"127.0.{zone}.{n}" for zone in (1, 2, 3) for n in (1, 2, 3)]
            )
        )
        self.distribute()
        memory = [
            "memcached",
            "-u",
            getpass.getuser(),
            "-l",
            "127.0.0.1",
            "-p",
            self.cache,
            "-m",
            "16",
        ]
        copier = ["rsync", "--daemon", "--no-detach", "--address", "127.0.0.1",
                  "--port", self.rsync, "--config", self.folder / "rsyncd.conf"]  # fmt: skip
        self.daemons.start("memcached", [*map(str, memory)])
        self.daemons.start("rsync", [*map(str, copier)])
        for kind in (*ports, "proxy"):
            self.daemons.start(kind, [f"swift-{kind}-server", own / f"{kind}-server.conf"])

    def _log_in(self) -> None:
        def answered() -> bool:
            who = {"X-Auth-User": "test:tester", "X-Auth-Key": "testing"}
            with closing(http.client.HTTPConnection("127.0.0.1", self.proxy, timeout=10)) as line:
                line.request("GET", "/auth/v1.0", headers=who)
                self.token = line.getresponse().getheader("X-Auth-Token") or ""
            return bool(self.token)

        until("the proxy answers", answered, timeout=60)
        until("a container", lambda: self._request("PUT", "/c")[0] in (201, 202), timeout=60)


class Reader:
    """A client that reads objects while other things go on, and counts what it did not get."""

    def __init__(self, swift: Swift, bodies: Mapping[str, bytes]) -> None:
        self.swift, self.bodies = swift, bodies
        self.reads, self.failed = 0, list[str]()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._read)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def _read(self) -> None:
        while True:
            for name, body in self.bodies.items():
                if self.ended.wait(0.05):
                    return
                self.reads += 1
                try:
                    found = self.swift.get(name)
                except OSError as error:
                    found = repr(error).encode()
                if found != body:
                    self.failed.append(name)


def _ask(
    ip: str, port: int, method: str, path: str, body: bytes = b"", head: Mapping[str, str] = {}
) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection(ip, port, timeout=30)) as line:
        line.request(method, path, body or None, {**head, "Content-Length": str(len(body))})
        answer = line.getresponse()
        return answer.status, answer.read()
