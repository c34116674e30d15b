"""RabbitMQ, live: quorum queues read, levelled wave by wave, broken, resumed and undone."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

import evenkeel as ek
from tests.live import folders
from tests.live.daemons import CallFailed, call, until
from tests.live.parts import say
from tests.live.rabbitmq_cluster import BIN, RabbitMQ
from tests.live.seen import after_wave, apart, where

ZONES = {1: "z1", 2: "z2", 3: "z3", 4: "z1", 5: "z2"}
EARLY, MEMBERS = 3, 3  # nodes that were there when queues were made, all of them led by the first
QUEUES = [f"orders.{i}" for i in range(8)] + ["mail", "it's late"]
MESSAGES = [(queue, f"{queue} {n}".replace("'", " ")) for queue in QUEUES for n in range(12)]
LEVEL = 0.25
GOALS = ek.Goals(level=LEVEL, leaders=LEVEL)
THROTTLE = ek.Throttle(node_in=2, node_out=2)


@pytest.fixture(scope="module")
def rabbit():
    cluster = RabbitMQ(len(ZONES), EARLY)
    try:
        cluster.declare(QUEUES, MEMBERS)
        cluster.publish(MESSAGES)
        for late in range(EARLY + 1, len(ZONES) + 1):
            cluster.join(late)
        yield cluster
    finally:
        cluster.stop()


class Reader:
    """Reads the cluster as it is, each time from what its tools print now."""

    def __init__(self, rabbit: RabbitMQ, folder: Path) -> None:
        self.rabbit, self.folder, self.count = rabbit, folder, 0
        self.zones = folder / "zones.json"
        self.zones.write_text(json.dumps({rabbit.name(n): zone for n, zone in ZONES.items()}))

    def __call__(self) -> ek.Cluster:
        self.count += 1
        dumps = self.rabbit.dumps(self.folder / f"dumps-{self.count}")
        # one a zone would put every queue on the only node of the third
        return ek.read([*dumps, self.zones], spread={"zone": 2})


@pytest.fixture
def read(rabbit, tmp_path):
    return Reader(rabbit, tmp_path)


def carry_out(rabbit: RabbitMQ, read: Reader, plan: ek.Plan, waves: slice = slice(None)) -> None:
    """Carry out waves one after the other, each from what is seen before it."""
    for number in range(len(plan.waves))[waves]:
        end = after_wave(plan, number)
        script = read.folder / f"wave-{number}-{read.count}.sh"
        ek.write(read(), script, placement=end)
        rabbit.run(script)
        until("all members online", rabbit.all_online, timeout=120, pause=1.0)
        assert not apart(where(read()), where(plan.cluster, end)), f"after wave {number}"
        say(f"wave {number + 1} of {len(plan.waves)}: as planned")


def data_is_whole(rabbit: RabbitMQ) -> None:
    read = rabbit.messages(QUEUES)
    sent = {queue: Counter(b for q, b in MESSAGES if q == queue) for queue in QUEUES}
    assert {queue: Counter(bodies) for queue, bodies in read.items()} == sent


def levelled(rabbit: RabbitMQ, read: Reader) -> ek.Plan:
    before = read()
    result = ek.solve(before, goals=GOALS)
    plan = ek.plan(before, result, throttle=THROTTLE)
    assert result.success and len(result.moves) > 0 and plan.complete and plan.check().ok
    say(f"{result.message} {plan}")
    carry_out(rabbit, read, plan)
    after = read()
    state = where(after)
    assert not apart(state, where(before, result.placement))
    held = Counter(node for nodes, _ in state.values() for node in nodes)
    assert max(held.values()) <= -(-len(QUEUES) * MEMBERS * (1 + LEVEL) // len(ZONES))
    leads = Counter(leader for _, leader in state.values())
    assert max(leads.values()) <= -(-len(QUEUES) * (1 + LEVEL) // len(ZONES))
    data_is_whole(rabbit)
    again = ek.solve(after, goals=GOALS)
    assert (len(again.moves), len(again.leader_changes)) == (0, 0)
    say(f"members {sorted(held.values())}, leaders {sorted(leads.values())}, nothing more to do")
    return plan


def test_levelled_undone_and_levelled_again_then_nothing_to_do(rabbit, read):
    start = where(read())
    assert {leader for _, leader in start.values()} == {rabbit.name(1)}
    first = levelled(rabbit, read)
    carry_out(rabbit, read, first.undo())
    assert not apart(where(read()), start)
    data_is_whole(rabbit)
    levelled(rabbit, read)


def test_a_node_dies_within_the_plan_which_is_resumed_and_undone(rabbit, read):
    before = read()
    result = ek.solve(before.drain(rabbit.name(2)), goals=GOALS)
    plan = ek.plan(before, result, throttle=THROTTLE)
    assert plan.complete and len(plan.waves) >= 2
    say(f"{rabbit.name(2)} is to be emptied: {plan}")
    carry_out(rabbit, read, plan, slice(0, 1))

    copies = [row for row in plan.rows_of(plan.waves[1]) if row.kind == "copy"]
    gone = next(row.target for row in copies if row.target != rabbit.name(1))
    rabbit.kill(int(gone[1]))
    broken = read()
    assert not broken.nodes.alive[list(broken.nodes.names).index(gone)]
    rest = plan.resume(broken)
    say(f"{gone} died: {rest}")
    assert not rest.complete and gone in {one.target for one in rest.blocked}
    data_is_whole(rabbit)

    rabbit.start(int(gone[1]))
    until("all members online", rabbit.all_online, timeout=120, pause=1.0)
    carry_out(rabbit, read, plan.resume(read()))
    after = read()
    assert not apart(where(after), where(before, plan.end))
    assert all(rabbit.name(2) not in nodes for nodes, _ in where(after).values())
    data_is_whole(rabbit)

    carry_out(rabbit, read, plan.undo())
    assert not apart(where(read()), where(before))
    data_is_whole(rabbit)


def test_a_lost_member_is_deleted_before_another_is_added(rabbit, read):
    before = read()
    lost = rabbit.name(2)
    rabbit.kill(2)
    until("it is down", lambda: not read().nodes.alive[1], timeout=60, pause=1.0)
    words = ("--level", "none")
    folder = folders.plan(rabbit.dumps(read.folder / "dumps"), read.folder / "plan", *words)
    plan = ek.read_plan(folder / "plan.json")
    assert plan.complete and plan.copies > 0
    said = folders.run(folder, rabbit.env())
    say(said)
    after = where(read())
    assert not apart(after, where(plan.cluster, plan.end))
    assert all(lost not in nodes and len(nodes) == MEMBERS for nodes, _ in after.values())
    data_is_whole(rabbit)
    rabbit.start(2)
    until("all members online", rabbit.all_online, timeout=120, pause=1.0)
    carry_out(rabbit, read, ek.plan(read(), before.placement, throttle=THROTTLE))
    assert not apart(where(read()), where(before))
    data_is_whole(rabbit)


def test_a_folder_stops_between_two_members_is_resumed_and_undone_by_a_killed_run(rabbit, read):
    before = read()
    dumps = rabbit.dumps(read.folder / "dumps")
    words = ("--level", "none", "--drain", rabbit.name(3), "--throttle", "node-in=2")
    folder = folders.plan(dumps, read.folder / "plan", *words)
    plan = ek.read_plan(folder / "plan.json")
    with pytest.raises(CallFailed, match=r"delete_member .*failed with exit code 1"):
        folders.run(folder, rabbit.env() | {"PATH": deleting_nothing(read.folder / "bin")})
    assert MEMBERS + 1 in {len(nodes) for nodes, _ in where(read()).values()}

    seen, rest = rabbit.dumps(read.folder / "seen"), read.folder / "rest"
    call([folders.program(read.folder), "resume", folder / "plan.json", *seen, "-o", rest])
    say(folders.run(rest, rabbit.env()))
    assert not apart(where(read()), where(plan.cluster, plan.end))
    data_is_whole(rabbit)
    there = where(read())
    folders.killed(folder / "undo", rabbit.env(), lambda: apart(where(read()), there))
    say(folders.run(folder / "undo", rabbit.env()))
    assert not apart(where(read()), where(before))
    data_is_whole(rabbit)


def deleting_nothing(folder: Path) -> str:
    """Put a tool in front of the path that fails where it is to delete a member; the path."""
    folder.mkdir()
    file = folder / "rabbitmq-queues"
    refusing = "case $1 in delete_member) exit 1 ;; esac"
    file.write_text(f'#!/bin/sh\n{refusing}\nexec "{BIN}/rabbitmq-queues" "$@"\n')
    file.chmod(0o755)
    return f"{folder}{os.pathsep}{BIN}{os.pathsep}{os.environ['PATH']}"
