"""OpenSearch, live: levelled beside its balancer, killed, undone; its limits read as it does."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import evenkeel as ek
from tests.live import folders
from tests.live.daemons import CallFailed, call, until
from tests.live.opensearch_cluster import OpenSearch
from tests.live.parts import say
from tests.live.seen import Where, apart, moves_between, where

ZONES = {"n0": "a", "n1": "b", "n2": "c", "n3": "a", "n4": "b", "n5": "c"}
INDICES = {"orders": (6, 1, 9000), "clicks": (4, 2, 4500), "audit": (5, 1, 1800)}
"""Shards, replicas and documents of each index; at first on three of the nodes."""

COPIES = sum(shards * (1 + replicas) for shards, replicas, _ in INDICES.values())
TEXT = "lorem ipsum dolor sit amet " * 20
LEVEL = ("--level", "0.1")
STAY = ("--level", "none")
MIB = 2**20
SIZES_KEPT = 11.0
"""Seconds for which a node answers with the sizes of shards that it has measured before."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[OpenSearch]:
    found = OpenSearch(ZONES)
    try:
        found.configure(
            cluster__info__update__interval="10s",
            cluster__routing__rebalance__enable="none",
            cluster__routing__allocation__awareness__attributes="zone",
            cluster__routing__allocation__disk__threshold_enabled="false",
        )
        for name, (shards, replicas, docs) in INDICES.items():
            found.make_index(name, shards, replicas, [TEXT] * docs, "n0,n1,n2")
        time.sleep(SIZES_KEPT)  # a plan from sizes of before the merge would find others later
        yield found
    finally:
        found.stop()


STARTED = 3.0  # seconds in which it would begin to move or place copies by itself
DECIDERS = {
    "spread node 1": "same_shard",
    "spread zone": "awareness",
    "spread node": "shards_limit",
    "most replicas per node": "shards_limit",
    "this partition may not come there": "disk_threshold",
    "takes no more replicas": "disk_threshold",
    "capacity disk": "disk_threshold",
}
"""Who refuses a node in OpenSearch, by what a reason of ours begins with."""


class Operator:
    """Reads the cluster as it is, plans by the command line, and runs what that wrote."""

    def __init__(self, cluster: OpenSearch, folder: Path) -> None:
        self.cluster, self.folder, self.plans = cluster, folder, 0

    def seen(self) -> ek.Cluster:
        until("nothing under way", self.cluster.settled, timeout=120)
        return ek.read(self.cluster.dumps())

    def plan(self, *words: object) -> Path:
        self.plans += 1
        until("nothing under way", self.cluster.settled, timeout=120)
        return folders.plan(
            self.cluster.dumps(), self.folder / f"plan-{self.plans}", *words,
            "--throttle", "node-in=2",
        )  # fmt: skip

    def plan_of_a_part(self, *words: object) -> Path:
        """Plan where some copies find no node, which the command line says by its exit status."""
        with pytest.raises(CallFailed, match="exit 3"):
            self.plan(*words)
        return self.folder / f"plan-{self.plans}"

    def run(self, folder: Path, *words: object) -> None:
        """Carry a folder out, of which OpenSearch accepts every request."""
        command = ["sh", "-c", '"$@" 2>&1', "run", folders.program(self.folder), "run", folder]
        said = call([*command, *map(str, words)], env=self.cluster.env(), timeout=400)
        assert '"error"' not in said, said
        say(said.strip())

    def resume(self, folder: Path) -> Path:
        rest = self.folder / f"{folder.name}-rest"
        command = [folders.program(self.folder), "resume", folder / "plan.json"]
        call([*command, *self.cluster.dumps(), "-o", rest])
        return rest

    def is_settled(self) -> None:
        """Nothing is lost, the balancer is as it was, and nothing is left to do."""
        for name, (_, _, docs) in INDICES.items():
            assert self.cluster.count(name) == docs
        assert '"none"' in self.cluster.ask("_cluster/settings")
        time.sleep(SIZES_KEPT)
        again = ek.solve(self.seen(), goals=ek.Goals(level=0.1))
        assert len(again.moves) == 0

    def is_left_by_both(self, name: str) -> int:
        """Verify that neither side would move or place a copy, by the same rules; how many lack.

        Every node that one refuses to a copy, the other refuses to it, for the same reason.
        """
        seen = self.seen()
        result = ek.solve(seen, goals=ek.Goals(level=None))
        assert not result.moves
        ours = {
            (shard, one.now or ""): {row.node: row.blocked_by for row in one.nodes}
            for shard in seen.partitions.names
            for one in result.explain(shard).replicas
        }
        theirs = self.cluster.refusals({*DECIDERS.values()})
        assert theirs.keys() == ours.keys()
        unlike, count = {}, Counter[str]()
        for copy, nodes in theirs.items():
            for node, refused in nodes.items():
                reason = ours[copy][node]
                named = next((DECIDERS[one] for one in DECIDERS if reason.startswith(one)), "")
                count[named] += 1
                if bool(reason) != bool(refused) or not {named} - {""} <= refused:
                    unlike[*copy, node] = (reason, refused)
        assert not unlike
        before = where(seen)
        self.cluster.configure(cluster__routing__allocation__enable="all")
        time.sleep(STARTED)
        assert not apart(where(self.seen()), before)
        self.cluster.configure(cluster__routing__allocation__enable="none")
        lacking = len(result.unplaced_replicas)
        reasons = ", ".join(f"{one} {count[one]}" for one in sorted(count) if one)
        say(f"{name}: both refuse {count.total() - count['']} of {count.total()} places "
            f"({reasons}); {lacking} copies without a node")  # fmt: skip
        return lacking


@pytest.fixture
def operator(cluster: OpenSearch, tmp_path: Path) -> Operator:
    return Operator(cluster, tmp_path)


def holders(seen: Where) -> dict[str, list[str]]:
    """The nodes of every shard: which copy is the primary is not ours to say."""
    return {name: nodes for name, (nodes, _) in seen.items()}


def counts(seen: Where) -> Counter[str]:
    return Counter(node for nodes, _ in seen.values() for node in nodes)


def target(folder: Path) -> dict[str, list[str]]:
    plan = ek.read_plan(folder / "plan.json")
    return holders(where(plan.cluster, plan.end))


def test_levelled_killed_resumed_and_undone(operator):
    before = holders(where(operator.seen()))
    folder = operator.plan(*LEVEL)
    cluster = operator.cluster
    folders.killed(
        folder, cluster.env(), lambda: apart(holders(where(ek.read(cluster.dumps()))), before)
    )
    until("nothing under way", cluster.settled, timeout=120)
    rest = operator.resume(folder)
    operator.run(rest)
    assert not apart(holders(where(operator.seen())), target(folder))
    operator.is_settled()
    operator.run(folder / "undo")
    assert not apart(holders(where(operator.seen())), before)


def test_beside_its_own_balancer_on_the_same_start(operator):
    cluster, start = operator.cluster, operator.seen()
    before = where(start)
    cluster.configure(cluster__routing__rebalance__enable="all")
    until("it begins", lambda: not cluster.settled(), timeout=60)
    until("it ends", lambda: cluster.settled() and cluster.settled(), timeout=300, pause=3.0)
    theirs = where(operator.seen())
    cluster.configure(cluster__routing__rebalance__enable="none")
    replicas = sum(counts(theirs).values())
    height = max(counts(theirs).values()) * len(ZONES) / replicas
    result = ek.solve(start.replace(bytes=None), goals=ek.Goals(level=height - 1.0))
    ours = where(start, result.placement)
    say(f"its balancer: {moves_between(before, theirs)} moves, shards per node "
        f"{sorted(counts(theirs).values())}")  # fmt: skip
    say(f"evenkeel: {moves_between(before, ours)} moves, shards per node "
        f"{sorted(counts(ours).values())}")  # fmt: skip
    assert max(counts(ours).values()) <= max(counts(theirs).values())
    assert moves_between(before, ours) <= moves_between(before, theirs)


def test_a_node_is_drained_by_its_filter(operator):
    operator.cluster.configure(cluster__routing__allocation__enable="none")
    operator.cluster.configure(cluster__routing__allocation__exclude___name="n4")
    folder = operator.plan(*STAY)
    operator.run(folder)
    now = where(operator.seen())
    assert "n4" not in counts(now)
    assert not apart(holders(now), target(folder))
    operator.cluster.configure(cluster__routing__allocation__exclude___name=None)
    operator.cluster.configure(cluster__routing__allocation__enable="all")


def test_a_lost_node_is_made_up_for(operator):
    operator.cluster.configure(cluster__routing__allocation__enable="none")
    operator.cluster.lose("n5")
    assert json_status(operator.cluster) == "yellow"
    folder = operator.plan(*STAY)
    operator.run(folder)
    assert json_status(operator.cluster) == "green"
    assert not apart(holders(where(operator.seen())), target(folder))
    operator.cluster.configure(cluster__routing__allocation__enable="all")
    operator.cluster.bring_back("n5")
    for name, (_, _, docs) in INDICES.items():
        assert operator.cluster.count(name) == docs


def test_shards_per_node_of_the_cluster_and_an_index(operator):
    cluster = operator.cluster
    cluster.configure(cluster__routing__allocation__enable="none")
    limit = -(-COPIES // len(ZONES))
    assert max(counts(where(operator.seen())).values()) > limit
    cluster.configure(cluster__routing__allocation__total_shards_per_node=limit)
    cluster.ask("orders/_settings", {"index.routing.allocation.total_shards_per_node": 2})
    folder = operator.plan(*STAY)
    operator.run(folder)
    assert not apart(holders(where(operator.seen())), target(folder))
    assert operator.is_left_by_both("shards per node") == 0

    held = counts(where(operator.seen()))
    fullest = max(("n3", "n4", "n5"), key=held.__getitem__)
    cluster.lose(fullest)
    operator.run(operator.plan_of_a_part(*STAY))
    assert json_status(cluster) == "yellow"
    assert operator.is_left_by_both("shards per node, a node less") == COPIES - 5 * limit

    cluster.bring_back(fullest)
    operator.run(operator.plan(*STAY))
    assert json_status(cluster) == "green"
    assert operator.is_left_by_both("shards per node, it is back") == 0
    cluster.configure(cluster__routing__allocation__total_shards_per_node=None)
    cluster.ask("orders/_settings", {"index.routing.allocation.total_shards_per_node": None})


def test_a_zone_is_lost_where_awareness_is_forced_and_where_it_is_not(operator):
    cluster = operator.cluster
    cluster.configure(
        cluster__routing__allocation__enable="none",
        cluster__routing__allocation__awareness__force__zone__values="a,b,c",
    )
    gone = [node for node, zone in ZONES.items() if zone == "c"]
    for node in gone:
        cluster.lose(node)
    operator.run(operator.plan_of_a_part(*STAY))
    shards, replicas, _ = INDICES["clicks"]
    assert replicas + 1 == len({*ZONES.values()})
    assert operator.is_left_by_both("forced awareness, a zone less") == shards
    assert json_status(cluster) == "yellow"

    cluster.configure(cluster__routing__allocation__awareness__force__zone__values=None)
    operator.run(operator.plan(*STAY))
    assert json_status(cluster) == "green"
    assert operator.is_left_by_both("awareness, a zone less") == 0

    for node in gone:
        cluster.bring_back(node)
    folder = operator.plan(*STAY)
    operator.run(folder)
    assert not apart(holders(where(operator.seen())), target(folder))
    assert operator.is_left_by_both("awareness, it is back") == 0
    assert json_status(cluster) == "green"


def test_a_disk_above_the_high_watermark(operator):
    cluster = operator.cluster
    cluster.configure(cluster__routing__allocation__enable="all")
    drawn = random.Random(1)
    cluster.make_index("films", 6, 0, [drawn.randbytes(9000).hex() for _ in range(900)], "n1")
    cluster.configure(cluster__routing__allocation__enable="none")
    time.sleep(SIZES_KEPT)
    free = cluster.free()
    high, low = free["n1"] + 4 * MIB, free["n1"] + 8 * MIB
    assert all(own > low + 6 * MIB for node, own in free.items() if node != "n1")
    cluster.configure(
        cluster__routing__allocation__disk__threshold_enabled="true",
        cluster__routing__allocation__disk__watermark__low=f"{low}b",
        cluster__routing__allocation__disk__watermark__high=f"{high}b",
        cluster__routing__allocation__disk__watermark__flood_stage="1mb",
    )
    start = operator.seen()
    folder = operator.plan(*STAY)
    operator.run(folder)
    assert not apart(holders(where(operator.seen())), target(folder))
    time.sleep(SIZES_KEPT)
    assert cluster.free()["n1"] >= high
    assert operator.is_left_by_both("watermarks") == 0
    ours = operator.seen()

    # back to the start, which the watermarks forbid, and its own way from there
    cluster.configure(cluster__routing__allocation__disk__threshold_enabled="false")
    operator.run(folder / "undo")
    assert not apart(holders(where(operator.seen())), holders(where(start)))
    cluster.configure(cluster__routing__allocation__disk__threshold_enabled="true")
    time.sleep(SIZES_KEPT)
    cluster.configure(cluster__routing__allocation__enable="all")
    until("n1 is below", lambda: cluster.free()["n1"] >= high, timeout=120)
    theirs = operator.seen()
    moves = [moves_between(where(start), where(end)) for end in (theirs, ours)]
    say(f"from n1 above the high watermark: its own way {moves[0]} moves, evenkeel {moves[1]}")
    assert moves[1] <= moves[0]
    for end in (theirs, ours):
        moved = apart(holders(where(end)), holders(where(start)))
        assert all("n1" in was and "n1" not in now for now, was in moved.values())
    cluster.configure(cluster__routing__allocation__disk__threshold_enabled="false")
    cluster.ask("films", method="DELETE")


def json_status(cluster: OpenSearch) -> str:
    return cluster.ask("_cat/health?h=status").strip()
