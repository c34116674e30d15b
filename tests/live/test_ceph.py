"""Ceph, live: read with its own tools, levelled, carried out, broken, mended and undone."""

import json
import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.measure.compare import joined
from tests.live import folders
from tests.live.ceph_cluster import POOL, Ceph
from tests.live.daemons import CallFailed, call
from tests.live.parts import say
from tests.live.seen import after_wave, apart, where

RACKS = {"r1": 3, "r2": 3, "r3": 3}
GROUPS, SIZE = 128, 3
LIGHTER = ("osd.0", "osd.4", "osd.8")
"""One of each rack, so that what devices deserve by weight can be had whatever they weigh."""

THROTTLE = ek.Throttle(node_in=2, node_out=2)
OBJECTS = {f"object-{i}": os.urandom(20_000 + 1_000 * i) for i in range(24)}


@pytest.fixture(scope="module")
def ceph():
    cluster = Ceph(RACKS)
    try:
        cluster.make_pool(GROUPS, SIZE, "rack")
        cluster.wait_clean()
        cluster.rados("bench", 5, "write", "--no-cleanup", "-b", 65536, "-t", 4)
        cluster.put(OBJECTS)
        cluster.wait_clean()
        yield cluster
    finally:
        cluster.stop()


class Reader:
    """Reads the cluster as it is, each time from fresh dumps."""

    def __init__(self, ceph: Ceph, folder: Path) -> None:
        self.ceph, self.folder, self.count = ceph, folder, 0

    def __call__(self) -> ek.Cluster:
        for _ in range(20):
            self.count += 1
            try:
                return ek.read(self.ceph.dumps(self.folder / f"dumps-{self.count}"))
            except ek.InvalidInput as error:  # groups tell late what the map has them do
                if "different times" not in str(error):
                    raise
                time.sleep(1.0)
        raise AssertionError("dumps of one time are not to be had")


@pytest.fixture
def read(ceph, tmp_path):
    return Reader(ceph, tmp_path)


def run(ceph: Ceph, script: Path) -> int:
    """Run a script as an operator would; how many commands it held."""
    call(["sh", "-e", script], env=ceph.env(), timeout=600)
    return script.read_text().count("ceph osd")


def carry_out(ceph: Ceph, read: Reader, plan: ek.Plan, waves: slice = slice(None)) -> None:
    """Carry out waves of a plan one after the other, each from what is seen before it."""
    for number in range(len(plan.waves))[waves]:
        end = after_wave(plan, number)
        script = read.folder / f"wave-{number}-{read.count}.sh"
        ek.write(read(), script, placement=end)
        commands = run(ceph, script)
        ceph.wait_clean()
        assert not apart(where(read()), where(plan.cluster, end)), f"after wave {number}"
        say(f"wave {number}: {commands} commands, clean")


def data_is_whole(ceph: Ceph) -> None:
    read = ceph.get(OBJECTS)
    lost = [name for name in OBJECTS if read[name] != OBJECTS[name]]
    assert lost == []
    assert ceph.json("health")["checks"].keys().isdisjoint({"OBJECT_UNFOUND", "PG_DAMAGED"})


def off(ceph: Ceph, cluster: ek.Cluster) -> float:
    """How far the device furthest from its share is off, in replicas of the pool."""
    pool = ceph.json("osd", "pool", "stats", POOL)[0]["pool_id"]
    own = np.array([name.startswith(f"{pool}.") for name in cluster.partitions.names])
    node = cluster.placement.node[own[cluster.placement.owner]]
    held = np.bincount(node[node >= 0], minlength=len(cluster.nodes))
    weight = np.asarray(cluster.native.reweight, float) * cluster.nodes.weight
    return float(np.abs(held - weight / weight.sum() * GROUPS * SIZE).max())


def levelled(ceph: Ceph, read: Reader) -> None:
    """Solve, plan and carry out; then the state is the plan's, and there is nothing more to do."""
    before = read()
    result = ek.solve(before, "ceph_upmap")
    plan = ek.plan(before, result, throttle=THROTTLE, protocol="ceph")
    assert len(result.moves) > 0 and plan.complete and plan.check().ok
    say(f"deviation {off(ceph, before):.2f}; {plan}")
    carry_out(ceph, read, plan)
    after = read()
    assert not apart(where(after), where(before, result.placement))
    assert off(ceph, after) <= 1.0
    data_is_whole(ceph)
    again = ek.solve(after, "ceph_upmap")
    assert (len(again.moves), len(again.leader_changes)) == (0, 0)
    say(f"deviation {off(ceph, after):.2f}, nothing more to do, {len(OBJECTS)} objects read back")


def test_our_crush_places_the_live_groups_and_who_leads(ceph, read):
    cluster = read()  # compares each group with where the map puts it
    now = where(cluster)
    dump = json.loads((read.folder / "dumps-1" / "pg.json").read_text())
    told = {one["pgid"]: one for one in dump["pg_map"]["pg_stats"]}
    assert {key: leads for key, (_, leads) in now.items()} == {
        key: f"osd.{one['up_primary']}" for key, one in told.items()
    }
    stored = sum(one["stat_sum"]["num_bytes"] for one in told.values())
    assert cluster.partitions.load.voter.sum() == stored > 0


def test_levelled_twice_in_a_row_then_nothing_to_do(ceph, read):
    levelled(ceph, read)
    for device in LIGHTER:  # skewed anew: CRUSH wants them emptier
        ceph.ceph("osd", "crush", "reweight", device, 0.6)
    ceph.wait_clean()
    levelled(ceph, read)
    for device in LIGHTER:
        ceph.ceph("osd", "crush", "reweight", device, 1)
    ceph.wait_clean()


def test_the_folder_of_a_plan_is_killed_run_again_and_undone(ceph, read):
    without_pairs(ceph)
    before = read()
    words = ("--method", "ceph_upmap", "--throttle", "node-in=2", "--throttle", "node-out=2")
    folder = folders.plan(ceph.dumps(read.folder / "dumps"), read.folder / "plan", *words)
    planned = where(before, ek.solve(before, "ceph_upmap").placement)
    folders.killed(folder, ceph.env(), lambda: apart(where(read()), where(before)))
    say(folders.run(folder, ceph.env()))
    assert not apart(where(read()), planned)
    data_is_whole(ceph)
    assert "finished" in folders.run(folder, ceph.env())  # a second time there is nothing to do
    say(folders.run(folder / "undo", ceph.env()))
    assert not apart(where(read()), where(before))
    data_is_whole(ceph)


class Measured(NamedTuple):
    """What pairs did to the live ``up`` sets of the pool."""

    off: float
    moves: int
    pairs: int


def measured(ceph: Ceph, before: ek.Cluster, read: Reader) -> Measured:
    after = read()
    pool = ceph.json("osd", "pool", "stats", POOL)[0]["pool_id"]
    own = np.array([name.startswith(f"{pool}.") for name in after.partitions.names])
    came = joined(before.placement, after.placement)
    moves = int(np.count_nonzero(came & own[after.placement.owner]))
    told = ceph.json("osd", "dump")["pg_upmap_items"]
    pairs = sum(len(one["mappings"]) for one in told if one["pgid"].startswith(f"{pool}."))
    return Measured(off(ceph, after), moves, pairs)


def balanced_by_ceph(ceph: Ceph, deviation: int) -> None:
    """Let Ceph's balancer go on until it finds nothing more."""
    for name, value in (("upmap_max_deviation", deviation), ("upmap_max_optimizations", 100)):
        ceph.ceph("config", "set", "mgr", f"mgr/balancer/{name}", value)
    ceph.ceph("config", "set", "mgr", "target_max_misplaced_ratio", 1)
    ceph.ceph("balancer", "mode", "upmap")
    for turn in range(40):
        ceph.wait_clean()
        try:
            ceph.ceph("balancer", "optimize", f"plan-{deviation}-{turn}")
        except CallFailed as error:
            if "Error EALREADY" in str(error):  # nothing further
                return
            if "Error EAGAIN" not in str(
                error
            ):  # its figures lag behind: it will not work on those
                raise
            continue
        ceph.ceph("balancer", "execute", f"plan-{deviation}-{turn}")
    raise AssertionError("the balancer went on and on")


def without_pairs(ceph: Ceph) -> None:
    for one in ceph.json("osd", "dump")["pg_upmap_items"]:
        ceph.ceph("osd", "rm-pg-upmap-items", one["pgid"])
    ceph.wait_clean()


@pytest.mark.parametrize(("weight", "deviation"), [(1, 5), (1, 1), (0.6, 1)])
def test_as_level_as_the_balancer_with_no_more_moves(ceph, read, weight, deviation):
    """Both from one map: the balancer's own first, then ours to the deviation that it reached."""
    for device in LIGHTER:
        ceph.ceph("osd", "crush", "reweight", device, weight)
    without_pairs(ceph)
    before = read()
    balanced_by_ceph(ceph, deviation)
    theirs = measured(ceph, before, read)
    without_pairs(ceph)
    assert not apart(where(read()), where(before))
    asked = ek.options.Upmap(deviation=max(theirs.off, 0.5))
    result = ek.solve(before, "ceph_upmap", options=asked)
    script = read.folder / "ours.sh"
    ek.write(before, script, placement=result)
    run(ceph, script)
    ours = measured(ceph, before, read)
    say(f"lighter ones weigh {weight}, deviation {off(ceph, before):.2f}, asked for {deviation}: "
        f"balancer {theirs}, ours {ours}")  # fmt: skip
    unfit = read.folder / "unfit.sh"
    call(["osdmaptool", ceph.osdmap(read.folder / "map"), "--upmap-cleanup", unfit])
    assert unfit.read_text() == ""  # Ceph has nothing against any of our pairs
    without_pairs(ceph)
    for device in LIGHTER:
        ceph.ceph("osd", "crush", "reweight", device, 1)
    ceph.wait_clean()
    assert ours.off <= theirs.off and ours.moves <= theirs.moves


def test_a_device_dies_within_the_plan_which_is_resumed_and_undone(ceph, read):
    without_pairs(ceph)
    before = read()
    plan = ek.plan(before, ek.solve(before, "ceph_upmap"), throttle=THROTTLE, protocol="ceph")
    assert len(plan.waves) >= 2
    carry_out(ceph, read, plan, slice(0, 1))
    gets = plan.rows_of(plan.waves[1])[0].target
    device = int(gets.removeprefix("osd."))
    ceph.kill_device(device)

    broken = read()
    assert not broken.nodes.alive[device]
    rest = plan.resume(broken)
    assert not rest.complete and {one.target for one in rest.blocked} >= {gets}
    assert all(row.target != gets for row in rest.rows() if row.kind == "copy")
    for number in range(len(rest.waves)):
        script = read.folder / f"short-{number}.sh"
        ek.write(read(), script, placement=after_wave(rest, number))
        run(ceph, script)
    data_is_whole(ceph)
    assert not apart(where(read()), where(rest.cluster, rest.end))

    ceph.start_device(device)
    ceph.wait_clean()
    carry_out(ceph, read, plan.resume(read()))
    after = read()
    assert not apart(where(after), where(before, plan.end))
    assert plan.progress(after).finished
    data_is_whole(ceph)

    carry_out(ceph, read, plan.undo())
    assert not apart(where(read()), where(before))
    assert ceph.json("osd", "dump")["pg_upmap_items"] == []
    data_is_whole(ceph)
