"""NATS on loopback: servers in zones, streams in one account, clients that write and read."""

import asyncio
import json
import os
import sys
import tempfile
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.live import parts
from tests.live.daemons import Daemons, call, free_ports, until

SERVER = ("github.com/nats-io/nats-server/v2", "nats-server", "v2.15.2")
TOOL = ("github.com/nats-io/natscli/nats", "nats", "v0.5.0")
CLIENT = ("nats-py", "2.16.0")
CONFIGURATION = """
server_name: {name}
listen: 127.0.0.1:{client}
server_tags: ["zone:{zone}", "server:{name}"]
cluster {{ name: C1, listen: 127.0.0.1:{route}, routes: [{routes}] }}
jetstream {{ store_dir: "{store}", max_file_store: 256MB, max_memory_store: 64MB,
unique_tag: "zone:" }}
system_account: SYS
accounts {{ SYS {{ users: [{{user: system, password: system}}] }}
APP {{ jetstream: enabled, users: [{{user: APP, password: APP}}] }} }}
"""


class Nats:
    """Servers by name with their zones; the ``first`` of them are those that form the cluster."""

    def __init__(self, zones: Mapping[str, str], first: Sequence[str]) -> None:
        self.server, self.tool = parts.go(*SERVER), parts.go(*TOOL)
        sys.path.insert(0, str(parts.pypi(*CLIENT)))
        self.folder = Path(tempfile.mkdtemp(prefix="evenkeel-nats-"))
        self.daemons = Daemons(self.folder)
        ports = free_ports(2 * len(zones))
        self.clients = dict(zip(zones, ports, strict=False))
        routes = dict(zip(zones, ports[len(zones) :], strict=True))
        joined = ", ".join(f"nats://127.0.0.1:{routes[one]}" for one in first)
        for name, zone in zones.items():
            text = CONFIGURATION.format(
                name=name, zone=zone, client=self.clients[name], route=routes[name],
                routes=joined, store=self.folder / "data" / name,
            )  # fmt: skip
            (self.folder / f"{name}.conf").write_text(text)
        self.urls = [f"nats://127.0.0.1:{port}" for port in self.clients.values()]
        contexts = self.folder / "config" / "nats" / "context"
        contexts.mkdir(parents=True)
        for user in ("system", "APP"):
            own = {"url": ",".join(self.urls), "user": user, "password": user}
            (contexts / f"{user}.json").write_text(json.dumps(own))
        try:
            self.start(first)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        self.daemons.stop()

    def start(self, names: Sequence[str]) -> None:
        """Start servers, and wait until JetStream lists them as members that are up to date."""
        for name in names:
            self.daemons.start(name, [self.server, "-c", self.folder / f"{name}.conf"])
        until("JetStream", lambda: self._listed(names), timeout=120, pause=1.0)

    def kill(self, name: str) -> None:
        """End a server as a failing machine would, and wait until the others list it so."""
        self.daemons.kill(name)
        until(f"{name} gone", lambda: name in self._away(), timeout=120, pause=1.0)

    def _meta(self) -> dict[str, Any]:
        answers = [json.loads(line)["data"] for line in self.asked().splitlines()]
        led = {one["meta_cluster"]["leader"] for one in answers}
        return next(
            one["meta_cluster"] for one in answers
            if led == {one["meta_cluster"].get("leader")}
            and all(peer["name"] not in led for peer in one["meta_cluster"].get("replicas", ()))
        )  # fmt: skip

    def _listed(self, names: Sequence[str]) -> bool:
        try:
            meta = self._meta()
        except (StopIteration, KeyError, ValueError):
            return False
        current = {one["name"] for one in meta["replicas"] if one["current"]} | {meta["leader"]}
        return {*names} <= current

    def _away(self) -> set[str]:
        """Servers that the leader does not hear of; it calls them offline minutes later."""
        try:
            return {one["name"] for one in self._meta()["replicas"] if not one["current"]}
        except (StopIteration, KeyError, ValueError):
            return set()

    # What an operator enters.

    def env(self) -> dict[str, str]:
        own = {
            "XDG_CONFIG_HOME": str(self.folder / "config"), "PAUSE": "1", "TRIES": "60",
            "PATH": f"{self.tool.parent}{os.pathsep}{os.environ['PATH']}",
        }  # fmt: skip
        return os.environ | own

    def nats(self, *words: object, timeout: float = 120) -> str:
        return call([self.tool, *map(str, words)], env=self.env(), timeout=timeout)

    def asked(self, *more: str) -> str:
        """Return what all servers answer on JetStream."""
        return self.nats("--context", "system", "server", "request", "jetstream", *more)

    def dump(self, folder: Path) -> Path:
        """Write what an operator would."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "jsz.json"
        file.write_text(self.asked("--all"))
        return file

    def settled(self) -> bool:
        """Whether all peers of all streams are in sync, as their leaders see them."""
        for line in self.asked("--streams", "--config").splitlines():
            answer = json.loads(line)
            for account in answer["data"].get("account_details", ()):
                for one in account.get("stream_detail", ()):
                    group = one["cluster"]
                    peers = group.get("replicas", ())
                    if not group.get("leader") or "desired" in group:
                        return False
                    own = group["leader"] == answer["server"]["name"]
                    if own and not all(peer["current"] for peer in peers):
                        return False
        return True


class Client:
    """Writes to streams until it is left, each message until it is acknowledged, and reads them."""

    def __init__(self, nats: Nats, streams: Sequence[str], pace: float = 0.01) -> None:
        self.nats, self.streams, self.pace = nats, streams, pace
        self.sent: dict[str, list[str]] = {name: [] for name in streams}
        self.read: dict[str, list[str]] = {name: [] for name in streams}
        self.repeated = 0
        self.mark = uuid.uuid4().hex[:8]
        self._leave = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._leave.set()
        self._thread.join(120)
        assert not self._thread.is_alive()
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        try:
            asyncio.run(self._work())
        except BaseException as error:
            self._failed = error

    async def _work(self) -> None:
        import nats

        connection = await nats.connect(
            self.nats.urls, user="APP", password="APP", max_reconnect_attempts=-1,
            reconnect_time_wait=0.2, error_cb=_nothing,
        )  # fmt: skip
        stream = connection.jetstream(timeout=2)
        readers = [asyncio.create_task(self._reader(stream, name)) for name in self.streams]
        number = 0
        while not self._leave.is_set():
            name = self.streams[number % len(self.streams)]
            await self._publish(stream, name, f"{self.mark}-{number}")
            number += 1
            await asyncio.sleep(self.pace)
        await asyncio.gather(*readers)
        await connection.close()

    async def _publish(self, stream: Any, name: str, body: str) -> None:
        """Write one message; what is written again is dropped by its identifier."""
        while True:
            try:
                await stream.publish(f"{name}.x", body.encode(), headers={"Nats-Msg-Id": body})
            except Exception:
                self.repeated += 1
                await asyncio.sleep(0.1)
            else:
                self.sent[name].append(body)
                return

    async def _reader(self, stream: Any, name: str) -> None:
        """Read all that this client writes; what is delivered again counts once."""
        seen: set[int] = set()
        while not (self._leave.is_set() and {*self.sent[name]} <= {*self.read[name]}):
            try:
                reader = await stream.pull_subscribe(f"{name}.x", durable=f"reader-{self.mark}")
                for _ in range(200):
                    for message in await reader.fetch(50, timeout=1):
                        body, number = message.data.decode(), message.metadata.sequence.stream
                        if number not in seen and body.startswith(f"{self.mark}-"):
                            self.read[name].append(body)
                        seen.add(number)
                        await message.ack()
                    if self._leave.is_set() and {*self.sent[name]} <= {*self.read[name]}:
                        return
            except Exception:
                await asyncio.sleep(0.1)


async def _nothing(error: Exception) -> None:
    """Take note of no error of a connection: it is made again."""


def fill(nats: Nats, streams: Mapping[str, tuple[int, int]], body: int) -> None:
    """Create streams with numbers of replicas and messages, and write these."""

    async def work() -> None:
        import nats as client

        connection = await client.connect(nats.urls, user="APP", password="APP")
        stream = connection.jetstream(timeout=20)
        await _answered(connection.jetstream(timeout=2))
        for name, (replicas, _) in streams.items():
            await stream.add_stream(name=name, subjects=[f"{name}.>"], num_replicas=replicas)
        for name, (_, count) in streams.items():
            for number in range(count):
                await stream.publish(f"{name}.old", f"{number} ".encode().ljust(body, b"."))
        await connection.close()

    asyncio.run(work())


async def _answered(stream: Any) -> None:
    """Wait until JetStream answers a client: servers that list each other may not do so yet."""
    for _ in range(30):
        try:
            await stream.account_info()
        except TimeoutError:
            continue
        return
    raise AssertionError("JetStream answers no client")


def contents(nats: Nats, streams: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return how many messages each stream has, and the last of its numbers."""
    found = {}
    for name in streams:
        said = nats.nats("--context", "APP", "request", "--raw", f"$JS.API.STREAM.INFO.{name}", "")
        state = json.loads(said)["state"]
        found[name] = (state["messages"], state["last_seq"])
    return found
