"""NATS, live: servers join, are drained and lost; streams moved wave by wave, resumed, undone."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import evenkeel as ek
from evenkeel.model.cluster import Cluster
from evenkeel.model.placement import Placement
from tests.live import folders
from tests.live.daemons import CallFailed, call, until
from tests.live.nats_cluster import Client, Nats, contents, fill
from tests.live.parts import say
from tests.live.seen import apart, where

ZONES = {"n1": "a", "n2": "b", "n3": "c", "n4": "a", "n5": "b", "n6": "c"}
EARLY, LATE = ["n1", "n2", "n3", "n4"], ["n5", "n6"]
STREAMS = {f"S{i:02}": (3 if i % 4 else 1, 20 + 4 * (i % 7)) for i in range(64)}
"""Replicas and messages of each stream."""

BODY = 8192
WRITTEN = [f"S{i:02}" for i in (0, 1, 2, 3, 5, 6, 32)]
LEVEL = ("--level", "0.1", "--leaders", "0.1")


@pytest.fixture(scope="module")
def nats() -> Iterator[Nats]:
    found = Nats(ZONES, EARLY)
    try:
        fill(found, STREAMS, BODY)
        yield found
    finally:
        found.stop()


class Operator:
    """Reads the cluster as it is, plans by the command line, and runs what that wrote."""

    def __init__(self, nats: Nats, folder: Path) -> None:
        self.nats, self.folder, self.count = nats, folder, 0
        self.evenkeel = folders.program(folder)

    def dump(self) -> Path:
        self.count += 1
        return self.nats.dump(self.folder / f"dump-{self.count}")

    def plan(self, *words: object) -> Path:
        self.count += 1
        return folders.plan([self.dump()], self.folder / f"plan-{self.count}", *words)

    def run(self, folder: Path, *words: object, streams: list[str] = WRITTEN) -> None:
        """Carry a folder out while a client writes to streams and reads them."""
        before = contents(self.nats, [*STREAMS])
        with Client(self.nats, streams) as client:
            command = [self.evenkeel, "run", folder, *map(str, words)]
            say(call(command, env=self.nats.env(), timeout=600).strip())
        sent = sum(map(len, client.sent.values()))
        say(f"written and read meanwhile: {sent} messages, {client.repeated} written again")
        assert sent > 0
        assert {name: sorted(own) for name, own in client.read.items()} == {
            name: sorted(own) for name, own in client.sent.items()
        }
        now = contents(self.nats, [*STREAMS])
        grown = {name: now[name][0] - before[name][0] for name in STREAMS}
        assert grown == {name: len(client.sent.get(name, ())) for name in STREAMS}

    def killed_in_a_wave(self, folder: Path) -> None:
        """Begin a run, and end it in its first wave."""
        start = where(ek.read(self.dump()))
        env = self.nats.env()
        folders.killed(folder, env, lambda: apart(where(ek.read(self.dump())), start))

    def is_as(self, end: Placement, cluster: Cluster) -> Cluster:
        """Verify servers and leaders of all streams against a placement; the cluster as read."""
        until("streams in sync", self.nats.settled, timeout=60, pause=1.0)
        now = ek.read(self.dump())
        assert not apart(where(now), where(cluster, end))
        return now

    def carried_out(self, folder: Path) -> Cluster:
        """Verify the end of a plan, and that nothing is left to do."""
        plan = ek.read_plan(folder / "plan.json")
        return self.is_as(plan.end, plan.cluster)

    def undone(self, folder: Path) -> None:
        self.run(folder / "undo")
        plan = ek.read_plan(folder / "plan.json")
        self.is_as(plan.cluster.placement, plan.cluster)


@pytest.fixture
def operator(nats: Nats, tmp_path: Path) -> Operator:
    return Operator(nats, tmp_path)


@pytest.fixture
def levelled(nats: Nats, operator: Operator) -> None:
    """All six servers, levelled, whichever scene comes first."""
    nats.start([one for one in LATE if one not in nats.daemons.running])
    folder = operator.plan(*LEVEL)
    if folder.exists():  # there is something to do
        call([operator.evenkeel, "run", folder], env=nats.env(), timeout=300)


def counts(cluster: Cluster) -> tuple[list[int], list[int]]:
    """How many streams each server holds, and leads."""
    state = where(cluster)
    held = Counter(server for own, _ in state.values() for server in own)
    leads = Counter(leader for _, leader in state.values())
    return [held[one] for one in cluster.nodes.names], [leads[one] for one in cluster.nodes.names]


def in_one_zone(cluster: Cluster) -> list[str]:
    """Streams that have two replicas in a zone."""
    return [
        name for name, (own, _) in where(cluster).items()
        if len({ZONES[one] for one in own}) < len(own)
    ]  # fmt: skip


def test_servers_join_is_undone_and_done_again(nats, operator, stopwatch):
    nats.start(LATE)
    before = ek.read(operator.dump())
    say(f"64 streams of servers n1 to n4; n5 and n6 are new: streams, leaders {counts(before)}")
    folder = operator.plan(*LEVEL, "--throttle", "node-in=8")
    operator.run(folder)
    now = operator.carried_out(folder)
    held, leads = counts(now)
    say(f"after {stopwatch()}: streams {held}, leaders {leads}")
    wanted = sum(replicas for replicas, _ in STREAMS.values()) / len(ZONES)
    assert max(held) <= -(-wanted * 1.1 // 1) and max(leads) <= -(-len(STREAMS) * 1.1 // 6)
    assert not in_one_zone(now)
    # what the client wrote meanwhile, to seven streams, is up to 3 % of what a server holds
    again = ek.solve(now, goals=ek.Goals(level=0.15, leaders=0.1))
    assert (len(again.moves), len(again.leader_changes)) == (0, 0)
    plan = ek.read_plan(folder / "plan.json")
    again = ek.solve(plan.cluster.with_placement(plan.end), goals=ek.Goals(level=0.1, leaders=0.1))
    assert (len(again.moves), len(again.leader_changes)) == (0, 0)
    operator.undone(folder)
    operator.run(folder)
    operator.carried_out(folder)


def test_a_server_is_drained_by_a_run_that_is_killed_and_while_another_is_lost(
    nats, operator, levelled
):
    folder = operator.plan("--level", "none", "--drain", "n5", "--throttle", "node-out=6")
    plan = ek.read_plan(folder / "plan.json")
    assert plan.complete and len(plan.waves) >= 3
    operator.killed_in_a_wave(folder)
    operator.run(folder, "--until", "2")
    nats.kill("n2")
    with pytest.raises(CallFailed, match="n2: is dead, and the plan needs it"):
        call([operator.evenkeel, "run", folder], env=nats.env(), timeout=120)
    nats.start(["n2"])
    until("streams in sync", nats.settled, timeout=120, pause=1.0)
    # an election may have taken place meanwhile: the plan is resumed from what is there
    rest = operator.folder / "rest"
    call([operator.evenkeel, "resume", folder / "plan.json", operator.dump(), "-o", rest])
    operator.run(rest)
    now = ek.read(operator.dump())
    held = dict(zip(now.nodes.names, counts(now)[0], strict=True))
    say(f"n5 is drained: streams {held}")
    assert held["n5"] == 0 and not in_one_zone(now)
    assert {name: own for name, (own, _) in where(now).items()} == {
        name: own for name, (own, _) in where(plan.cluster, plan.end).items()
    }
    operator.run(folder / "undo")
    now = ek.read(operator.dump())
    assert {name: own for name, (own, _) in where(now).items()} == {
        name: own for name, (own, _) in where(plan.cluster).items()
    }


def test_streams_move_off_a_server_that_is_lost(nats, operator, levelled):
    whole = where(ek.read(operator.dump()))
    nats.kill("n6")
    cluster = ek.read(operator.dump())
    alone = {name for name, (own, _) in whole.items() if own == ["n6"]}
    assert where(cluster).keys() == whole.keys() - alone
    folder = operator.plan("--level", "none")
    plan = ek.read_plan(folder / "plan.json")
    assert plan.complete and plan.copies > 0
    say(f"n6 is lost: {plan.copies} replicas are to be made anew; {len(alone)} streams of one "
        "replica are lost with it")  # fmt: skip
    call([operator.evenkeel, "run", folder], env=nats.env(), timeout=300)
    now = ek.read(operator.dump())
    assert not apart(where(now), where(plan.cluster, plan.end))
    assert not in_one_zone(now)
    assert all("n6" not in own for own, _ in where(now).values())
    nats.start(["n6"])
    until("streams in sync", nats.settled, timeout=120, pause=1.0)
    back = where(ek.read(operator.dump()))
    assert {name: own for name, (own, _) in back.items() if own == ["n6"]}.keys() == alone
    folder = operator.plan(*LEVEL)
    operator.run(folder)
    operator.carried_out(folder)
