"""Swift, live: devices join, leave and fail; rings written, distributed, replicated and undone."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.audit import audit
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from tests.live import folders
from tests.live.daemons import call
from tests.live.parts import say
from tests.live.seen import apart, where
from tests.live.swift_cluster import Reader, Swift

SERVERS = {
    f"127.0.{zone}.{n}": [f"s{zone}{n}a", f"s{zone}{n}b"] for zone in (1, 2, 3) for n in (1, 2)
}
LATE = {"127.0.2.3": ["s23a"]}  # a server that joins with one device
OBJECTS = {f"o{i}": f"object {i} ".encode() * (50 + i) for i in range(400)}
LEVEL = ("--level", "0.02")
BUILDER_MOVES = 26
"""The most that a builder may still move: two replicas of each device, since its goal is exact."""


@pytest.fixture(scope="module")
def swift() -> Iterator[Swift]:
    found = Swift(SERVERS)
    try:
        for name, body in OBJECTS.items():
            found.put(name, body)
        found.replicate()
        yield found
    finally:
        found.stop()


class Operator:
    """Reads the ring as it is, plans by the command line, and runs what that wrote."""

    def __init__(self, swift: Swift, folder: Path) -> None:
        self.swift, self.folder, self.plans = swift, folder, 0
        self.evenkeel = folders.program(folder)

    def plan(self, *words: object) -> Path:
        self.plans += 1
        return folders.plan([self.swift.ring], self.folder / f"plan-{self.plans}", *words)

    def run(self, folder: Path, *words: object) -> None:
        command = [self.evenkeel, "run", folder, *map(str, words)]
        with Reader(self.swift, OBJECTS) as reader:
            say(call(command, env=self.swift.env(), timeout=900).strip())
        say(f"read meanwhile: {reader.reads} objects, {len(reader.failed)} failed")
        assert not reader.failed

    def killed_in_a_wave(self, folder: Path) -> None:
        """Begin a run, and end it while replicators work for its first ring."""
        mark = self.swift.folder / "replicating"
        mark.unlink(missing_ok=True)
        folders.killed(folder, self.swift.env(), mark.exists)

    def is_as(self, end: Placement, cluster: Cluster) -> Cluster:
        """Verify the ring, the disks and the objects against a placement; the cluster as read."""
        now = ek.read(self.swift.ring)
        assert not apart(where(now), where(cluster, end))
        disks = self.swift.on_disk()
        used = set.union(*disks.values())
        held: dict[str, set[int]] = {name: set() for name in disks}
        for partition, (nodes, _) in where(now).items():
            for node in nodes:
                held[node.rpartition("/")[2]].add(int(partition[1:]))
        assert disks == {name: parts & used for name, parts in held.items()}
        assert not [name for name, body in OBJECTS.items() if self.swift.get(name) != body]
        say(f"parts on disk as in the ring, {len(OBJECTS)} of {len(OBJECTS)} objects whole")
        return now

    def carried_out(self, folder: Path) -> None:
        """Verify the end of a plan, and that nothing is left to do."""
        plan = ek.read_plan(folder / "plan.json")
        now = self.is_as(plan.end, plan.cluster)
        again = ek.solve(now, goals=ek.Goals(level=0.02))
        assert len(again.moves) == 0

    def undone(self, folder: Path) -> None:
        self.run(folder / "undo")
        plan = ek.read_plan(folder / "plan.json")
        self.is_as(plan.cluster.placement, plan.cluster)

    def compare(self, scene: str) -> None:
        """Solve what the builder is given, to the level that the builder reaches."""
        start = ek.read(self.swift.ring)
        ring, passes = self.swift.rebalanced()
        theirs = rebalanced(start, ring)
        height = height_of(start, theirs)
        result = ek.solve(start, goals=ek.Goals(level=max(height - 1.0, 0.0)))
        ours = result.placement
        say(f"{scene}, swift-ring-builder: {moved(start, theirs)} moves in {passes} passes, "
            f"parts/wanted {height:.3f}, {audit(start, theirs).hard} broken rules")  # fmt: skip
        say(f"{scene}, evenkeel: {moved(start, ours)} moves, parts/wanted "
            f"{height_of(start, ours):.3f}, {audit(start, ours).hard} broken rules")  # fmt: skip
        assert height_of(start, ours) <= height + 1e-9
        assert moved(start, ours) <= moved(start, theirs)
        assert audit(start, ours).hard <= audit(start, theirs).hard


@pytest.fixture
def operator(swift: Swift, tmp_path: Path) -> Operator:
    return Operator(swift, tmp_path)


def height_of(cluster: Cluster, placement: Placement) -> float:
    """Return the greatest ratio of parts to those that a weight entitles to."""
    weight = cluster.nodes.weight
    count = np.bincount(placement.node[placement.node >= 0], minlength=len(weight))
    wanted = len(placement.node) * weight / weight.sum()
    return float(np.max(count[weight > 0] / wanted[weight > 0]))


def moved(cluster: Cluster, placement: Placement) -> int:
    """Return how many replicas are on devices that did not hold the part."""
    before, after = where(cluster), where(cluster, placement)
    return sum(len({*after[name][0]} - {*before[name][0]}) for name in before)


def rebalanced(start: Cluster, ring: Path) -> Placement:
    """Return the placement of a later ring, which may lack devices, on the devices of the first."""
    later = ek.read(ring)
    place = {name: n for n, name in enumerate(start.nodes.names)}
    node = np.array([place[name] for name in later.nodes.names], np.int32)
    return start.placement.replaced(node[later.placement.node], start.placement.leader)


def test_a_device_joins_is_undone_and_joins_again(operator, swift):
    swift.add(LATE)
    swift.start(LATE)
    swift.build(swift.builder, "write_ring")
    swift.distribute()
    operator.compare("a device joins")
    folder = operator.plan(*LEVEL, "--throttle", "node-in=40")
    operator.run(folder)
    operator.carried_out(folder)
    operator.undone(folder)
    folder = operator.plan(*LEVEL)
    operator.run(folder)
    operator.carried_out(folder)
    before = ek.read(swift.ring)
    swift.adopt()
    rest = moved(before, rebalanced(before, swift.rebalanced()[0]))
    say(f"a builder made of that ring: its rebalance moves {rest}")
    assert rest <= BUILDER_MOVES


def test_a_device_is_drained_killed_in_the_middle_resumed_and_undone(operator, swift):
    swift.build(swift.builder, "set_weight", "/s11a", 0)
    swift.build(swift.builder, "write_ring")
    operator.compare("a device is drained")
    folder = operator.plan(*LEVEL, "--throttle", "node-out=25")
    operator.run(folder, "--until", "1")
    operator.killed_in_a_wave(folder)
    operator.run(folder)
    assert not swift.on_disk()["s11a"]
    operator.carried_out(folder)
    operator.undone(folder)


def test_a_device_fails_and_comes_back_empty(operator, swift):
    swift.adopt()
    swift.build(swift.builder, "set_weight", "/s11a", 100)
    swift.lose("s31b")
    swift.build(swift.builder, "remove", "/s31b")
    swift.build(swift.builder, "write_ring")
    operator.compare("a device fails")
    folder = operator.plan(*LEVEL)
    operator.run(folder)
    operator.carried_out(folder)
    swift.replace("s31b")
    operator.undone(folder)
