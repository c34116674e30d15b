"""OpenSearch, live: levelled beside its own balancer, killed, resumed, undone, drained."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import evenkeel as ek
from tests.live import folders
from tests.live.daemons import call, until
from tests.live.opensearch_cluster import OpenSearch
from tests.live.parts import say
from tests.live.seen import Where, apart, moves_between, where

ZONES = {"n0": "a", "n1": "b", "n2": "c", "n3": "a", "n4": "b", "n5": "c"}
INDICES = {"orders": (6, 1, 9000), "clicks": (4, 2, 4500), "audit": (5, 1, 1800)}
"""Shards, replicas and documents of each index; at first on three of the nodes."""

LEVEL = ("--level", "0.1")
SIZES_KEPT = 11.0
"""Seconds for which a node answers with the sizes of shards that it has measured before."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[OpenSearch]:
    found = OpenSearch(ZONES)
    try:
        found.configure(
            cluster__routing__rebalance__enable="none",
            cluster__routing__allocation__awareness__attributes="zone",
            cluster__routing__allocation__disk__threshold_enabled="false",
        )
        for name, (shards, replicas, docs) in INDICES.items():
            found.make_index(name, shards, replicas, docs, "n0,n1,n2")
        time.sleep(SIZES_KEPT)  # a plan from sizes of before the merge would find others later
        yield found
    finally:
        found.stop()


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

    def run(self, folder: Path, *words: object) -> None:
        command = [folders.program(self.folder), "run", folder, *map(str, words)]
        say(call(command, env=self.cluster.env(), timeout=400).strip()[-700:])

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
    folder = operator.plan("--level", "none")
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
    folder = operator.plan("--level", "none")
    operator.run(folder)
    assert json_status(operator.cluster) == "green"
    assert not apart(holders(where(operator.seen())), target(folder))
    operator.cluster.configure(cluster__routing__allocation__enable="all")
    operator.cluster.start("n5")
    for name, (_, _, docs) in INDICES.items():
        assert operator.cluster.count(name) == docs


def json_status(cluster: OpenSearch) -> str:
    return cluster.ask("_cat/health?h=status").strip()
