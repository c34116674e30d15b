"""Ceph's crushtool and osdmaptool beside us, on maps that they compiled: no daemon runs."""

import re
from pathlib import Path

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.compare import joined
from evenkeel.model.errors import FaultList
from evenkeel.systems.ceph.crush.crush_map import IN, CrushMap
from evenkeel.systems.ceph.crush_map import crush_map_of, read_crush_text
from evenkeel.systems.ceph.documents import CrushDump
from evenkeel.systems.documents import Document
from evenkeel.systems.json_text import decode_json
from tests.live import parts
from tests.live.crush_texts import RULES, drawn
from tests.live.daemons import call

SEEDS = range(6)
DRAWS = 2_000


@pytest.fixture(scope="module", autouse=True)
def tools():
    parts.debian(("crushtool", "osdmaptool"), ("ceph-base",))


def compiled(folder: Path, text: str) -> Path:
    (folder / "drawn.txt").write_text(text)
    call(["crushtool", "-c", folder / "drawn.txt", "-o", folder / "crush.bin"])
    return folder / "crush.bin"


def read_map(dump: CrushDump, faults: FaultList, size: int) -> CrushMap:
    crush = crush_map_of(faults, "crush", dump, 0, size, set())
    faults.raise_if_any()
    return crush


def by_id(crush: CrushMap) -> list:
    return sorted(crush.buckets, key=lambda bucket: bucket.id)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_crushtool_compiled_maps_alike(seed, tmp_path):
    text, devices = drawn(seed)
    binary = compiled(tmp_path, text)
    faults = FaultList()
    plain = Document("crush.txt", call(["crushtool", "-d", binary]).encode())
    crush = read_map(read_crush_text(faults, plain), faults, len(plain.data))
    dump = Document("crush.json", call(["crushtool", "-i", binary, "--dump"]).encode())
    other = read_map(decode_json(faults, dump, CrushDump), faults, len(dump.data))
    assert by_id(other) == by_id(crush) and other.rules == crush.rules
    assert other.tunables.items() >= crush.tunables.items()
    assert other.devices == crush.devices == devices

    random = np.random.default_rng(seed)
    reweight = np.where(random.random(devices) < 0.2, random.integers(0, IN, devices), IN)
    words = [word for n, w in enumerate(reweight) for word in ("--weight", n, f"{w / IN:.6f}")]
    taken = [int(np.float32(f"{w / IN:.6f}") * np.float32(IN)) for w in reweight]
    for rule, name in enumerate(RULES):
        for size in (1, 3, 4, 6):
            told = call(
                ["crushtool", "-i", binary, "--test", "--rule", rule, "--num-rep", size,
                 "--min-x", 0, "--max-x", DRAWS - 1, "--show-mappings", *words]
            )  # fmt: skip
            mapped = crush.map(rule, np.arange(DRAWS), size, taken)
            unlike = [
                (int(x), row, ours)
                for x, row in re.findall(r"x (\d+) \[([\d,]*)\]", told)
                if (ours := ",".join(map(str, mapped.osd[int(x), : mapped.length[int(x)]]))) != row
            ]
            assert told.count(" x ") == DRAWS
            assert unlike == [], f"rule {name}, {size} replicas"


class Offline:
    """A map in a file, made and changed by osdmaptool."""

    def __init__(self, folder: Path, text: str, devices: int, bits: int) -> None:
        self.file = folder / "osdmap"
        make = ["--createsimple", devices, "--with-default-pool", "--pg-bits", bits]
        self.tool(*make, "--pgp-bits", bits)
        self.tool("--import-crush", compiled(folder, text))
        # devices stay up and in only where a change is saved, too: one pair
        one = ["--upmap", folder / "one.txt", "--upmap-deviation", 1, "--upmap-max", 1]
        self.tool("--mark-up-in", *one, "--save")
        self.tool("--export-crush", folder / "crush.bin")
        self.crush = call(["crushtool", "-d", folder / "crush.bin"]).encode()

    def tool(self, *words: object) -> str:
        return call(["osdmaptool", self.file, *words])

    def dump(self) -> bytes:
        return self.tool("--dump", "json").encode()

    def up(self) -> dict[str, tuple[list[int], int]]:
        """Where osdmaptool puts every group, and its primary."""
        rows = re.findall(r"^(\d+\.[0-9a-f]+)\t\[([\d,]*)\]\t(-?\d+)", self.tool(
            "--test-map-pgs-dump"), re.MULTILINE)  # fmt: skip
        return {
            pgid: ([int(one) for one in row.split(",") if one], int(primary))
            for pgid, row, primary in rows
        }


def ours(cluster: ek.Cluster, placement: ek.Placement | None = None) -> dict:
    placed = cluster.placement if placement is None else placement
    rows, leads = placed.nodes, placed.leader_node
    return {
        name: ([osd for osd in row.tolist() if osd >= 0], int(lead))
        for name, row, lead in zip(cluster.partitions.names, rows, leads, strict=True)
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_osdmaptool_puts_groups_where_we_do_its_own_pairs_included(seed, tmp_path):
    text, devices = drawn(seed)
    offline = Offline(tmp_path, text, devices, bits=5)
    start, before = offline.dump(), offline.up()
    assert ours(ek.read(start, offline.crush)) == before
    commands = tmp_path / "their.txt"
    offline.tool("--upmap", commands, "--upmap-deviation", 1, "--upmap-max", 1_000, "--save")
    after = offline.up()
    assert ours(ek.read(offline.dump(), offline.crush)) == after != before
    # of a group that it both frees and maps, the saved map keeps the first and the file the last
    lines = [line.split()[2:4] for line in commands.read_text().splitlines()]
    freed = {group for command, group in lines if command.startswith("rm-")}
    both = {group for command, group in lines if not command.startswith("rm-")} & freed
    told = ours(ek.read(start, offline.crush, commands))
    assert {key for key in after if told[key] != after[key]} <= both


@pytest.mark.parametrize("seed", SEEDS)
def test_as_level_as_osdmaptool_with_no_more_moves(seed, tmp_path):
    text, devices = drawn(seed, alike=True)
    offline = Offline(tmp_path, text, devices, bits=6)
    cluster = ek.read(offline.dump(), offline.crush)
    commands = tmp_path / "their.txt"
    limits = ["--upmap-deviation", 1, "--upmap-max", 10_000, "--upmap-active"]
    offline.tool("--upmap", commands, *limits, "--save")
    theirs = ek.read(offline.dump(), offline.crush)
    share = len(cluster.partitions) * 3 / devices

    def off(placement: ek.Placement) -> float:
        return float(np.abs(np.bincount(placement.node, minlength=devices) - share).max())

    their_off = off(theirs.placement)
    result = ek.solve(
        cluster, "ceph_upmap", options=ek.options.Upmap(deviation=max(their_off, 0.5))
    )
    our_off = off(result.placement)
    their_moves = int(joined(cluster.placement, theirs.placement).sum())
    parts.say(f"{devices} devices: deviation {our_off:.2f} of {their_off:.2f}, "
              f"moves {len(result.moves)} of {their_moves}")  # fmt: skip
    assert our_off <= their_off and len(result.moves) <= their_moves
