"""Ceph's crushtool and osdmaptool beside ``ceph_crush`` and ``ceph_upmap``, on the same map."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.peers.contest import called, least
from bench.peers.table import Row
from bench.support.ceph_maps import as_text, regular
from evenkeel.systems.ceph.crush.crush_map import CrushMap
from evenkeel.systems.ceph.crush.failure_domains import broken, failure_domains
from evenkeel.systems.ceph.crush.method import balance, moves_between, standing
from evenkeel.systems.ceph.crush.placement import Pool, raw, upmapped

FOLDER = "EVENKEEL_CEPH_TOOLS"
ABSENT = (
    "Ceph: crushtool and osdmaptool are not here. They come with Debian's package `ceph-base`; "
    f"where it is not installed but unpacked, name the folder of the two in {FOLDER}."
)
MAPS = {"5 racks x 4 hosts x 5 OSDs": (5, 4, 5), "10 racks x 10 hosts x 10 OSDs": (10, 10, 10)}
MAPPINGS = 200_000
# racks, hosts, devices, where replicas are kept apart, greatest weight; 2 to what PGs each
UPMAP = {
    "upmap, 100 unlike OSDs, 3,200 PGs": ((5, 4, 5, "host", 4), 5),
    "upmap, 400 unlike OSDs, 6,400 PGs": ((10, 8, 5, "host", 4), 4),
}


def tool(name: str) -> str | None:
    """Return where a tool is, or None."""
    return shutil.which(name, path=os.environ.get(FOLDER)) or shutil.which(name)


def found() -> bool:
    """Whether both tools are here."""
    return all(map(tool, ("crushtool", "osdmaptool")))


def _tool(name: str, *words: str) -> tuple[str, float, float]:
    """Run one of the two tools: what it printed, and its CPU and wall seconds."""
    path = tool(name)
    assert path is not None
    return called([path, *words])


def run(folder: Path) -> Iterator[Row]:
    """Map, and level by pairs."""
    for title, sizes in MAPS.items():
        yield from mappings(title, compiled(regular(*sizes), folder), regular(*sizes))
    for title, (sizes, bits) in UPMAP.items():
        yield from pairs(title, regular(*sizes), bits, folder)


def compiled(crush: CrushMap, folder: Path) -> str:
    """Write a map and have it compiled; the file's name."""
    text, binary = folder / "crush.txt", folder / "crush.bin"
    text.write_text(as_text(crush))
    _tool("crushtool", "-c", str(text), "-o", str(binary))
    return str(binary)


def mappings(title: str, binary: str, crush: CrushMap) -> Iterator[Row]:
    """Map the same numbers; the answers must be the same. What it costs to start is left out."""
    words = ["crushtool", "-i", binary, "--test", "--rule", "0", "--num-rep", "3", "--min-x", "0"]
    *_, start, began = _tool(*words, "--max-x", "0", "--show-mappings")
    output, cpu, wall = _tool(*words, "--max-x", str(MAPPINGS - 1), "--show-mappings")
    rows = re.findall(r"x (\d+) \[([\d,]*)\]", output)
    theirs = np.full((MAPPINGS, 3), -1)
    for x, devices in rows:
        row = [int(device) for device in devices.split(",") if device]
        theirs[int(x), : len(row)] = row
    seeds = np.arange(MAPPINGS)
    mine = crush.map(0, seeds, 3)
    unlike = int((np.where(np.arange(3) < mine.length[:, None], mine.osd, -1) != theirs).sum())
    for who, (used, took) in {
        "crushtool, printing included": (cpu - start, wall - began),
        "ceph_crush": least(lambda: crush.map(0, seeds, 3)),
    }.items():
        rate = f"{MAPPINGS / used / 1e6:.2f} M mappings/s; {unlike} devices differ"
        yield Row(input=title, who=who, cpu=used, wall=took, broken=unlike, note=rate)


def pairs(title: str, crush: CrushMap, bits: int, folder: Path) -> Iterator[Row]:
    """Level a pool to one replica's deviation."""
    osdmap, answer = str(folder / "osdmap.bin"), folder / "upmap.txt"
    Path(osdmap).unlink(missing_ok=True)
    sizes = ["--pg-bits", str(bits), "--pgp-bits", str(bits)]
    _tool("osdmaptool", "--createsimple", str(crush.devices), *sizes, "--with-default-pool", osdmap)
    _tool("osdmaptool", osdmap, "--import-crush", compiled(crush, folder))
    limits = ["--upmap-deviation", "1", "--upmap-max", "100000"]
    _, cpu, wall = _tool("osdmaptool", osdmap, "--mark-up-in", "--upmap", str(answer), *limits)
    pool = Pool(1, crush.devices << bits, 3, 0)
    items = {}
    for line in answer.read_text().splitlines():
        if line.startswith("ceph osd pg-upmap-items"):
            group, *devices = line.split()[3:]
            chosen = [int(device) for device in devices]
            items[int(group.partition(".")[2], 16)] = list(zip(*[iter(chosen)] * 2, strict=True))
    weights = [1 << 16] * crush.devices
    result = balance(crush, pool)
    contestants = {
        "osdmaptool --upmap": ((cpu, wall), items),
        "ceph_upmap": (least(lambda: balance(crush, pool)), result.items),
    }
    before = raw(crush, pool)
    for who, ((used, took), given) in contestants.items():
        after = upmapped(before, weights, items=given)
        level = standing(after, result.before.share)
        yield Row(
            input=title,
            who=who,
            cpu=used,
            wall=took,
            broken=len(broken(failure_domains(crush, 0, 3), after)),
            moves=moves_between(before, after),
            max_over_mean=level.fill,
            note=f"at most {level.deviation:.2f} replicas off",
        )
