"""A Ceph cluster on loopback: a monitor, a manager and bluestore devices in a temporary folder."""

import json
import os
import tempfile
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.live import parts
from tests.live.daemons import ASIDE, Daemons, call, free_ports, until

PACKAGES = ("ceph-mon", "ceph-osd", "ceph-mgr", "ceph-base", "ceph-common")
PROGRAMS = ("ceph", "ceph-mon", "ceph-osd", "ceph-mgr", "rados", "crushtool", "osdmaptool")
POOL = "evenkeel"

SETTINGS = {
    "auth_cluster_required": "none",
    "auth_service_required": "none",
    "auth_client_required": "none",
    "public_addr": "127.0.0.1",
    "cluster_addr": "127.0.0.1",
    "osd_objectstore": "bluestore",
    "bluestore_block_size": "1073741824",
    "bluestore_block_wal_create": "false",
    "osd_memory_target": "268435456",
    "osd_crush_update_on_start": "false",
    "osd_pool_default_pg_autoscale_mode": "off",
    "osd_max_backfills": "2",
    "osd_recovery_sleep": "0.02",
    "osd_min_pg_log_entries": "2",
    "osd_max_pg_log_entries": "4",
    "osd_heartbeat_interval": "1",
    "osd_heartbeat_grace": "8",
    "mon_osd_min_down_reporters": "2",
    "mon_osd_down_out_interval": "600",
    "mon_max_pg_per_osd": "1000",
    "mon_data_avail_warn": "1",
    "mon_data_avail_crit": "0",
    "mon_cluster_log_to_file": "false",
    "mgr_stats_period": "1",
    "mgr_initial_modules": "balancer",
    "ms_bind_ipv6": "false",
    "log_to_file": "true",
}


def ready() -> None:
    """Install what is missing."""
    parts.debian(PROGRAMS, PACKAGES)


class Ceph:
    """A cluster of devices in racks and hosts, ``racks`` says how many devices each rack has."""

    def __init__(self, racks: Mapping[str, int]) -> None:
        ready()
        self.folder = Path(tempfile.mkdtemp(prefix="evenkeel-ceph-"))
        self.daemons = Daemons(self.folder)
        self.racks = dict(racks)
        self.count = sum(racks.values())
        self.conf = self.folder / "ceph.conf"
        try:
            self._configure()
            self._start_monitor()
            self._start_devices()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        self.daemons.stop()

    # What its own tools say and do.

    def ceph(self, *words: object, timeout: float = 120.0) -> str:
        """Call ``ceph``."""
        argv = [*ASIDE, "ceph", "-c", self.conf, *map(str, words)]
        return call(argv, timeout=timeout, cwd=self.folder)

    def json(self, *words: object) -> Any:
        return json.loads(self.ceph(*words, "-f", "json"))

    def rados(self, *words: object, timeout: float = 240.0) -> str:
        argv = [*ASIDE, "rados", "-c", self.conf, "-p", POOL, *map(str, words)]
        return call(argv, timeout=timeout, cwd=self.folder)

    def env(self) -> dict[str, str]:
        """What a shell needs so that plain ``ceph`` is of this cluster."""
        return os.environ | {"CEPH_CONF": str(self.conf)}

    def dumps(self, folder: Path) -> list[Path]:
        """Write what an operator would: osd dump, CRUSH map, osd tree, osd df, pg dump."""
        folder.mkdir(parents=True, exist_ok=True)
        asked = {
            "osd_dump.json": "osd dump", "crush.json": "osd crush dump", "tree.json": "osd tree",
            "df.json": "osd df", "pg.json": "pg dump",
        }  # fmt: skip
        files = []
        for name, words in asked.items():
            files.append(folder / name)
            files[-1].write_text(self.ceph(*words.split(), "-f", "json"))
        return files

    def osdmap(self, file: Path) -> Path:
        """Write the binary map."""
        self.ceph("osd", "getmap", "-o", file)
        return file

    def groups(self) -> list[dict[str, Any]]:
        dump = self.json("pg", "dump", "pgs")
        return dump if isinstance(dump, list) else dump["pg_stats"]

    def states(self) -> dict[str, int]:
        """How many placement groups are in which state."""
        found: dict[str, int] = {}
        for one in self.groups():
            found[one["state"]] = found.get(one["state"], 0) + 1
        return found

    def clean(self) -> bool:
        """Whether all groups are served where the map wants them."""
        return all(
            "active+clean" in one["state"] and one["up"] == one["acting"] for one in self.groups()
        )

    def wait_clean(self, timeout: float = 240.0) -> None:
        until("all groups active and clean", self.clean, timeout=timeout, pause=1.0)

    # Its life.

    def make_pool(self, groups: int, size: int, tier: str) -> None:
        """Make a pool whose replicas are kept apart by a tier."""
        self.ceph("osd", "crush", "rule", "create-replicated", f"by-{tier}", "default", tier)
        self.ceph("osd", "pool", "create", POOL, groups, groups, "replicated", f"by-{tier}")
        self.ceph("osd", "pool", "set", POOL, "size", size)
        self.ceph("osd", "pool", "set", POOL, "min_size", 1)
        self.ceph("osd", "pool", "application", "enable", POOL, "rados")

    def put(self, objects: Mapping[str, bytes]) -> None:
        """Write objects through one client."""
        folder = self.folder / "put"
        folder.mkdir(exist_ok=True)
        for name, data in objects.items():
            (folder / name).write_bytes(data)
            self.rados("put", name, folder / name)

    def get(self, names: Iterable[str]) -> dict[str, bytes]:
        """Read objects back."""
        file = self.folder / "got"
        found = {}
        for name in names:
            self.rados("get", name, file)
            found[name] = file.read_bytes()
        return found

    def kill_device(self, device: int) -> None:
        """End a device as a failing machine would, and wait until the cluster knows."""
        self.daemons.kill(f"osd.{device}")
        until(f"osd.{device} down", lambda: device not in self.up(), timeout=120)

    def start_device(self, device: int) -> None:
        self._run_device(device)
        until(f"osd.{device} up", lambda: device in self.up(), timeout=120)

    def up(self) -> set[int]:
        return {one["osd"] for one in self.json("osd", "dump")["osds"] if one["up"]}

    def _configure(self) -> None:
        v2, v1 = free_ports(2)
        self.fsid = str(uuid.uuid4())
        told = SETTINGS | {
            "fsid": self.fsid,
            "mon_initial_members": "a",
            "mon_host": f"[v2:127.0.0.1:{v2},v1:127.0.0.1:{v1}]",
            "keyring": f"{self.folder}/keyring",
            "admin_socket": f"{self.folder}/$name.asok",
            "pid_file": f"{self.folder}/$name.pid",
            "log_file": f"{self.folder}/$name.log",
            "run_dir": str(self.folder),
            "mon_data": f"{self.folder}/mon.$id",
            "mgr_data": f"{self.folder}/mgr.$id",
            "osd_data": f"{self.folder}/osd.$id",
            "crash_dir": f"{self.folder}/crash",
        }
        lines = [f"{name} = {value}" for name, value in told.items()]
        self.conf.write_text("[global]\n" + "\n".join(lines) + "\n")
        self.address = told["mon_host"]

    def _start_monitor(self) -> None:
        keyring, monmap = self.folder / "keyring", self.folder / "monmap"
        everything = ["--cap", "mon", "allow *", "--cap", "osd", "allow *", "--cap", "mgr"]
        tool = ["ceph-authtool", keyring, "--gen-key", "-n"]
        call([*tool, "mon.", "--create-keyring", "--cap", "mon", "allow *"])
        call([*tool, "client.admin", *everything, "allow *"])
        call(["monmaptool", "--create", "--fsid", self.fsid, "--addv", "a", self.address, monmap])
        monitor = ["ceph-mon", "-c", self.conf, "-i", "a"]
        call([*monitor, "--mkfs", "--monmap", monmap, "--keyring", keyring])
        self.daemons.start("mon.a", [*monitor, "-f"])
        until("the monitor answers", lambda: self.ceph("mon", "stat", timeout=20), timeout=60)
        (self.folder / "mgr.x").mkdir()
        self.daemons.start("mgr.x", ["ceph-mgr", "-c", self.conf, "-i", "x", "-f"])
        self.ceph("osd", "set-require-min-compat-client", "luminous")
        self.ceph("config", "set", "mon", "mon_allow_pool_delete", "true")

    def _start_devices(self) -> None:
        device = 0
        commands = []
        for rack, count in self.racks.items():
            for i in range(count):
                self.ceph("osd", "new", uuid.uuid4())
                data = self.folder / f"osd.{device}"
                data.mkdir()
                make = ["ceph-osd", "-c", self.conf, "-i", str(device), "--mkfs", "--osd-uuid"]
                call([*ASIDE, *make, self._uuid(device)])
                place = f"root=default rack={rack} host={rack}-{i}"
                commands.append(f"osd crush add osd.{device} 1 {place}")
                device += 1
        for command in commands:
            self.ceph(*command.split())
        for device in range(self.count):
            self._run_device(device)
        until("all devices up", lambda: len(self.up()) == self.count, timeout=180)
        until("a manager", lambda: self.json("mgr", "stat")["available"], timeout=120)
        self.ceph("balancer", "off")

    def _uuid(self, device: int) -> str:
        (one,) = [one for one in self.json("osd", "dump")["osds"] if one["osd"] == device]
        return one["uuid"]

    def _run_device(self, device: int) -> None:
        argv = ["ceph-osd", "-c", self.conf, "-i", str(device), "-f"]
        self.daemons.start(f"osd.{device}", argv)
