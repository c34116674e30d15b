"""A folder for Ceph, carried out from end to end."""

import json
import re
import subprocess

import pytest

import evenkeel as ek
from evenkeel.model.errors import InvalidInput
from evenkeel.systems.ceph.crush.crush_map import IN, Bucket, CrushMap, CrushRule, Step
from evenkeel.systems.ceph.crush.placement import Pool, raw
from evenkeel.systems.ceph.format import FORMAT
from evenkeel.systems.folders.carrier import Change
from tests.support.systems.bench import System

HOSTS, GROUPS = 5, 32


def crush_map():
    """Five hosts of two devices, one of which is twice as large."""
    hosts = [
        Bucket(-2 - h, f"host-{h}", "host", [(2 * h, IN), (2 * h + 1, 2 * IN)])
        for h in range(HOSTS)
    ]
    root = Bucket(-1, "default", "root", [(host.id, 3 * IN) for host in hosts])
    steps = [Step("take", -1), Step("chooseleaf_firstn", 0, "host"), Step("emit")]
    types = {"osd": 0, "host": 1, "root": 2}
    return CrushMap(2 * HOSTS, types, [root, *hosts], [CrushRule(0, "replicated", steps)])


def crush_dump(crush):
    """The map as ``ceph osd crush dump`` prints it."""
    return {
        "devices": [{"id": osd, "name": f"osd.{osd}"} for osd in range(crush.devices)],
        "types": [{"type_id": number, "name": name} for name, number in crush.types.items()],
        "buckets": [
            {
                "id": one.id, "name": one.name, "type_name": one.type,
                "items": [{"id": child, "weight": weight} for child, weight in one.items],
            }
            for one in crush.buckets
        ],
        "rules": [
            {
                "rule_id": 0, "rule_name": "replicated",
                "steps": [
                    {"op": "take", "item": -1},
                    {"op": "chooseleaf_firstn", "num": 0, "type": "host"},
                    {"op": "emit"},
                ],
            }
        ],
    }  # fmt: skip


@pytest.fixture
def system(tmp_path):
    crush = crush_map()
    rows = raw(crush, Pool(id=1, pg_num=GROUPS, size=3, rule=0))
    pool = {
        "pool": 1, "type": 1, "size": 3, "crush_rule": 0, "pg_num": GROUPS,
        "pg_placement_num": GROUPS, "pool_name": "data", "flags": 1,
    }  # fmt: skip
    osds = [
        {"osd": osd, "up": 1, "in": 1, "weight": 1.0, "primary_affinity": 1.0}
        for osd in range(2 * HOSTS)
    ]
    state = {
        "osd_dump": {"pools": [pool], "osds": osds}, "crush": crush_dump(crush),
        "natural": {f"1.{pg:x}": row for pg, row in enumerate(rows.tolist())},
        "bytes": {f"1.{pg:x}": 1000 for pg in range(GROUPS)}, "items": {}, "copying": {},
        "host": {str(osd): osd // 2 for osd in range(2 * HOSTS)}, "pace": 1,
    }  # fmt: skip
    return System(tmp_path / "ceph", "ceph", ["ceph"], state)


def asked(system, *arguments):
    command = [system.bin / "ceph", *arguments, "-f", "json"]
    done = subprocess.run(command, env=system.environment(), capture_output=True, check=True)
    return done.stdout


def words_of(folder):
    """The commands of all waves, without what a setting decides."""
    waves = json.loads((folder / "waves.json").read_text())["waves"]
    return [
        [word for word in one["run"] if isinstance(word, str)]
        for wave in waves for one in wave["commands"]
    ]  # fmt: skip


def shown(system):
    """Where every placement group is, as the system tells it."""
    stats = json.loads(asked(system, "pg", "dump"))["pg_map"]["pg_stats"]
    assert all(one["state"] == "active+clean" for one in stats)
    return {one["pgid"]: sorted(one["up"]) for one in stats}


def stands(plan):
    rows = plan.end.nodes
    return {name: sorted(rows[p].tolist()) for p, name in enumerate(plan.cluster.partitions.names)}


def planned(system):
    documents = [asked(system, *words) for words in (("osd", "dump"), ("osd", "crush", "dump"),
                                                     ("pg", "dump"))]  # fmt: skip
    cluster = ek.read(documents)
    result = ek.solve(cluster, "ceph_upmap")
    found = ek.plan(cluster, result, protocol="ceph", throttle=ek.Throttle(node_in=1))
    assert len(found.waves) > 1
    return found


@pytest.fixture
def plan(system):
    return planned(system)


def test_it_is_carried_out_and_undone(system, plan):
    before = shown(system)
    folder = ek.write_plan_folder(plan, system.folder / "move")
    done = system.run(folder)
    assert done.returncode == 0, done.stderr
    assert shown(system) == stands(plan)
    assert shown(system) != before
    back = system.run(folder / "undo")
    assert back.returncode == 0, back.stderr
    assert shown(system) == before
    assert system.state["items"] == {}


def set_up(system, osd, up):
    state = system.state
    state["osd_dump"]["osds"][osd]["up"] = up
    system.state = state


def test_groups_on_a_device_that_is_down_are_moved_as_planned(system):
    """``pg dump`` shows them without it, and never clean."""
    set_up(system, 3, 0)
    plan = planned(system)
    changed = {row.partition for row in plan.rows()}
    before, down = plan.cluster.placement.nodes, 3
    short = {plan.cluster.partitions.names[p] for p in (before == down).any(axis=1).nonzero()[0]}
    assert changed & short
    assert short - changed
    folder = ek.write_plan_folder(plan, system.folder / "move")
    assert (
        f"**osd.3 is down**, and the plan leaves {len(short)} replicas"
        in (folder / "README.md").read_text()
    )
    done = system.run(folder)
    assert done.returncode == 0, done.stderr
    assert "note:" not in done.stderr
    back = system.run(folder / "undo")
    assert back.returncode == 0, back.stderr
    done = system.run(folder)
    set_up(system, 3, 1)
    assert shown(system) == stands(plan)
    again = system.run(folder)
    assert (again.returncode, again.stderr) == (0, "")


def test_a_device_that_comes_back_meanwhile_does_not_stop_it(system):
    set_up(system, 3, 0)
    plan = planned(system)
    folder = ek.write_plan_folder(plan, system.folder / "move")
    set_up(system, 3, 1)
    done = system.run(folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert shown(system) == stands(plan)


def test_a_new_device_in_another_host_than_planned_stops_it(system):
    state = system.state
    state["osd_dump"]["pools"][0] |= {"pg_num": 4, "pg_placement_num": 4}
    for kept in ("natural", "bytes"):
        state[kept] = dict(list(state[kept].items())[:4])
    system.state = state
    words = (("osd", "dump"), ("osd", "crush", "dump"), ("pg", "dump"))
    cluster = ek.read([asked(system, *one) for one in words])
    plan = ek.plan(cluster, ek.solve(cluster), protocol="ceph")
    came = {*plan.end.node.tolist()} - {*cluster.placement.node.tolist()}
    folder = ek.write_plan_folder(plan, system.folder / "move")
    (host,) = (one for one in state["crush"]["buckets"] if one["name"] == f"host-{min(came) // 2}")
    host["name"] = "elsewhere"
    system.state = state
    stopped = system.run(folder)
    assert stopped.returncode == 3
    there = f"where the plan has it in host-{min(came) // 2}"
    assert f"osd.{min(came)}: is in host elsewhere, {there}" in stopped.stderr


def test_it_goes_on_where_it_stopped(system, plan):
    folder = ek.write_plan_folder(plan, system.folder / "move")
    system.state = system.state | {"breaks": 2}
    stopped = system.run(folder)
    assert stopped.returncode == 1
    assert "failed with exit code 1" in stopped.stderr
    done = system.run(folder)
    assert done.returncode == 0, done.stderr
    assert shown(system) == stands(plan)


def test_a_command_that_is_dropped_without_a_word_stops_it(system, plan):
    folder = ek.write_plan_folder(plan, system.folder / "move")
    # what is one host to the plan is a trap in the live system
    first = words_of(folder)[0]
    target = first[5]
    state = system.state
    others = state["natural"][first[3]]
    other = next(osd for osd in others if str(osd) not in first[4::2])
    state["host"][target] = state["host"][str(other)]
    system.state = state
    stopped = system.run(folder)
    assert stopped.returncode == 1
    assert "what was ordered does not begin" in stopped.stderr
    assert json.loads((folder / "state.json").read_text())["done"] == 0


def test_what_is_written_names_devices_by_number(plan, tmp_path):
    folder = ek.write_plan_folder(plan, tmp_path / "move")
    lines = [" ".join(words) for way in (folder, folder / "undo") for words in words_of(way)]
    assert lines
    assert all(re.fullmatch(r"ceph osd (rm-)?pg-upmap-items 1\.[0-9a-f]+[ 0-9]*", x) for x in lines)


def test_what_would_break_a_rule_is_refused(plan):
    cluster = plan.cluster
    before = tuple(cluster.placement.nodes[0].tolist())
    beside = before[0] ^ 1  # the other device of the host
    after = (before[0], beside, before[2])
    change = Change(0, "1.0", before, after, before[0], before[0], restored=False, joins=(beside,))
    with pytest.raises(InvalidInput, match=r"1\.0: would break CRUSH rule replicated"):
        FORMAT.carrier.orders(cluster, [[change]])
